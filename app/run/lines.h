/* lines.h - output seen as lines: does one match a pattern, does one ask for time?
 *
 * Bytes come as they come; a line is complete at its newline, or at the end of the output. A line longer than
 * RUN_LINE_MAX is looked at in pieces that overlap by half, so that a match of up to half that length is never missed.
 * A carriage return before the newline is not part of the line.
 *
 * The matcher of the C library needs time that grows with the square of a line's length for some patterns ("(a+)+b"),
 * and nothing interrupts it: RUN_LINE_MAX keeps that to a fraction of a second, after which signals are heard again.
 * Back-references, which are no part of extended expressions anyway, would make it exponential, and are refused.
 *
 * Patterns are POSIX extended regular expressions, searched anywhere in a line. Hints are lines such as
 * "Retry-After: 5" (also a date) and "retry-after-ms: 250", in any case, read as hint.h reads header fields; of several
 * valid ones the longest counts. */
#ifndef RUN_LINES_H
#define RUN_LINES_H

#include <bide/hint.h>

#include <regex.h>

#define RUN_LINE_MAX     8192u
#define RUN_PATTERNS_MAX 32u

struct run_patterns {
    struct {
        regex_t regex;
        const char *text; /* borrowed */
    } item[RUN_PATTERNS_MAX];
    size_t count;
};

/* Adds a pattern. NULL, or what is wrong, in memory that the next call overwrites. */
const char *run_patterns_add(struct run_patterns *patterns, const char *text);
void run_patterns_free(struct run_patterns *patterns); /* accepts NULL and an empty one */

struct run_lines {
    const struct run_patterns *patterns; /* NULL: none */
    bool hints;                          /* lines may be hints ... */
    bool bare;                           /* ... also without a name: "5" */
    const char *matched;                 /* the first pattern that did; NULL: none so far */
    struct bide_hint hint;
    size_t length;  /* of the line so far */
    bool continued; /* its beginning is gone: it was too long */
    char line[RUN_LINE_MAX];
};

/* Empty, as for a new attempt; what it looks for stays. */
void run_lines_reset(struct run_lines *lines);

void run_lines_add(struct run_lines *lines, const char *bytes, size_t length);

/* The output is over: what has no newline is a line too. */
void run_lines_end(struct run_lines *lines);

#endif
