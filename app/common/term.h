/* term.h - what a terminal can show: width, colour, a line that is rewritten, a bar.
 *
 * Colour and rewriting only where a person is looking: the stream is a terminal, TERM is set and not "dumb", and
 * NO_COLOR is unset or empty (rewriting does not mind NO_COLOR). */
#ifndef CLI_TERM_H
#define CLI_TERM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct cli_term {
    FILE *out;
    bool live; /* lines may be rewritten */
    bool colour;
    bool utf8;      /* by the locale's variables: blocks and arrows instead of # and -> */
    unsigned width; /* 80 if unknown */
};

struct cli_term cli_term_detect(FILE *out);

enum cli_colour { CLI_PLAIN, CLI_DIM, CLI_BOLD, CLI_RED, CLI_GREEN, CLI_YELLOW, CLI_BLUE };

/* The escape sequence, or "" without colour. */
const char *cli_colour(const struct cli_term *term, enum cli_colour colour);

/* A bar of `value` of `most`, at most `cells` wide, in eighths where blocks are to be had. Returns the text, in a
 * buffer of 4 * cells + 1 bytes. */
const char *cli_bar(const struct cli_term *term, char *text, size_t cells, double value, double most);

/* The same for a whole row of values, one cell each: a sparkline. */
const char *cli_spark(const struct cli_term *term, char *text, const double *value, size_t count, double most);

/* Text of others as a terminal may be shown it: control characters, and what is no text in this locale, become '?'. */
void cli_print_sanitized(FILE *out, const char *text);

/* A word as a shell reads it back: in quotes, if it needs them. */
void cli_print_shell_word(FILE *out, const char *word);

/* Replaces the line that was last written this way; "" wipes it. Nothing on what is not live. */
void cli_rewrite_line(const struct cli_term *term, const char *text);

#endif
