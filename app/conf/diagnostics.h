/* diagnostics.h - the mistakes of a file: collected until the buffer is full, then only counted. */
#ifndef CONF_DIAGNOSTICS_H
#define CONF_DIAGNOSTICS_H

#include "conf.h"

#define CONF_DIAGNOSTICS_MAX 128u

struct conf_diagnostics {
    char *text; /* CONF_ERROR_MAX bytes */
    const char *file;
    unsigned column; /* printed after the line number; 0: unknown */
    size_t used;
    struct conf_diagnostic {
        unsigned line;
        size_t at, length;
    } entry[CONF_DIAGNOSTICS_MAX];
    unsigned count; /* all messages, stored or not */
    unsigned stored;
};

void conf_diagnostics_begin(struct conf_diagnostics *diagnostics, char text[CONF_ERROR_MAX], const char *file);

/* Adds "FILE:LINE: ...", or "FILE: ..." for line 0. Returns false, so that a caller can return its result. */
bool conf_diagnostics_add(struct conf_diagnostics *diagnostics, unsigned line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Returns false if the buffer is full, so that another message would only be counted. */
bool conf_diagnostics_have_room(const struct conf_diagnostics *diagnostics);

/* Sorts the messages by line and appends "... and 7 more" if not all were stored. Returns true if there are none. */
bool conf_diagnostics_finish(struct conf_diagnostics *diagnostics);

/* Untrusted text for a message: control characters replaced, cut to 96 bytes. */
struct conf_printable {
    char text[100];
};
struct conf_printable conf_printable(const char *text, size_t length);

#endif
