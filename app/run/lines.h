/* lines.h - searches output, line by line, for patterns and hints.
 *
 * A line ends at its newline or at the end of the output; a carriage return before the newline does not count. A line
 * longer than RUN_LINE_MAX is searched in parts that overlap by half, so a match of up to half that length is never
 * missed.
 *
 * For some patterns ("(a+)+b") the regex matcher of the C library takes time quadratic in the length of the line, and
 * it cannot be interrupted. RUN_LINE_MAX bounds one search to a fraction of a second; signals are handled between
 * searches. Back-references would make it exponential, and are rejected; POSIX extended expressions do not have them.
 *
 * Patterns are POSIX extended regular expressions that may match anywhere in a line. Hints are lines such as
 * "Retry-After: 5" (or a date) and "retry-after-ms: 250", case-insensitive, parsed like header fields (hint.h). The
 * longest valid hint counts. */
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

/* Adds a pattern. Returns NULL, or a description of a valid value, in memory that the next call overwrites. */
const char *run_patterns_add(struct run_patterns *patterns, const char *text);
void run_patterns_free(struct run_patterns *patterns); /* accepts NULL and an empty set */

enum run_known { RUN_KNOWN_PERMANENT, RUN_KNOWN_TRANSIENT, RUN_KNOWN_COUNT };

struct run_lines {
    struct run_patterns *patterns;               /* of the user; NULL: none */
    struct run_patterns *known[RUN_KNOWN_COUNT]; /* messages that --like knows; NULL: none */
    bool hints;                                  /* lines may be hints ... */
    bool bare;                                   /* ... and need no name: "5" */
    const char *matched;                         /* the first pattern that matched; NULL: none so far */
    const char *known_matched[RUN_KNOWN_COUNT];
    int error; /* errno of a search that failed, so that its result is unknown; 0: none */
    struct bide_hint hint;
    size_t length;  /* of the incomplete line */
    bool continued; /* the beginning of the line was already searched and dropped */
    char line[RUN_LINE_MAX];
};

/* Discards line, match, error and hint before a new attempt. Patterns and flags stay. */
void run_lines_reset(struct run_lines *lines);

void run_lines_add(struct run_lines *lines, const char *bytes, size_t length);

/* End of output: an incomplete last line counts as a line. */
void run_lines_end(struct run_lines *lines);

#endif
