/* told.h - what is wrong with a file, collected until there is no more room; then only counted. */
#ifndef CONF_TOLD_H
#define CONF_TOLD_H

#include "conf.h"

#define CONF_TOLD_MAX 128u

struct conf_told {
    char *text; /* CONF_ERROR_MAX bytes */
    const char *file;
    unsigned column; /* said behind the line; 0: not known */
    size_t used;
    struct conf_told_line {
        unsigned line;
        size_t at, length;
    } said[CONF_TOLD_MAX];
    unsigned count; /* of all, told or not */
    unsigned told;
};

void conf_told_begin(struct conf_told *told, char text[CONF_ERROR_MAX], const char *file);

/* "FILE:LINE: ...", or "FILE: ..." for line 0. Returns false, for callers that return what they tell. */
bool conf_tell(struct conf_told *told, unsigned line, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* False: there is no more room, so it would not be read. */
bool conf_told_room(const struct conf_told *told);

/* Puts what was told in the order of lines, and adds "... and 7 more" if it is so. Returns true if nothing was told. */
bool conf_told_end(struct conf_told *told);

/* A piece of a file as it may be shown: without control characters, and not too long. */
struct conf_shown {
    char text[100];
};
struct conf_shown conf_shown(const char *text, size_t length);

#endif
