/* told.h - what is wrong with a file, collected until there is no more room; then only counted. */
#ifndef CONF_DIAGNOSTICS_H
#define CONF_DIAGNOSTICS_H

#include "conf.h"

#define CONF_DIAGNOSTICS_MAX 128u

struct conf_diagnostics {
    char *text; /* CONF_ERROR_MAX bytes */
    const char *file;
    unsigned column; /* said behind the line; 0: not known */
    size_t used;
    struct conf_diagnostic {
        unsigned line;
        size_t at, length;
    } entry[CONF_DIAGNOSTICS_MAX];
    unsigned count; /* of all, told or not */
    unsigned stored;
};

void conf_diagnostics_begin(struct conf_diagnostics *diagnostics, char text[CONF_ERROR_MAX], const char *file);

/* "FILE:LINE: ...", or "FILE: ..." for line 0. Returns false, for callers that return what they tell. */
bool conf_diagnostics_add(struct conf_diagnostics *diagnostics, unsigned line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* False: there is no more room, so it would not be read. */
bool conf_diagnostics_have_room(const struct conf_diagnostics *diagnostics);

/* Puts what was told in the order of lines, and adds "... and 7 more" if it is so. Returns true if nothing was told. */
bool conf_diagnostics_finish(struct conf_diagnostics *diagnostics);

/* A piece of a file as it may be shown: without control characters, and not too long. */
struct conf_printable {
    char text[100];
};
struct conf_printable conf_printable(const char *text, size_t length);

#endif
