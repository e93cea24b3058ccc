/* term.h - terminal output: width, colour, bars, and a line that is rewritten in place.
 *
 * Colour and rewriting are used only if the stream is a terminal and TERM is set and not "dumb". A non-empty NO_COLOR
 * switches colour off, but not rewriting. */
#ifndef CLI_TERM_H
#define CLI_TERM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct cli_term {
    FILE *out;
    bool live; /* lines may be rewritten */
    bool colour;
    bool utf8;      /* by the locale's variables; otherwise # and -> instead of blocks and arrows */
    unsigned width; /* 80 if unknown */
};

struct cli_term cli_term_detect(FILE *out);

enum cli_colour { CLI_PLAIN, CLI_DIM, CLI_BOLD, CLI_RED, CLI_GREEN, CLI_YELLOW, CLI_BLUE };

/* Returns the escape sequence, or "" without colour. */
const char *cli_colour(const struct cli_term *term, enum cli_colour colour);

/* Formats a bar that shows `value` on a scale from 0 to `most` in at most `cells` columns, in eighths of a cell with
 * UTF-8. Returns text, a buffer of 4 * cells + 1 bytes. */
const char *cli_bar(const struct cli_term *term, char *text, size_t cells, double value, double most);

/* Formats a sparkline: one cell per value. */
const char *cli_spark(const struct cli_term *term, char *text, const double *value, size_t count, double most);

/* Prints untrusted text: control characters, and bytes that are no text in this locale, become '?'. */
void cli_print_sanitized(FILE *out, const char *text);

/* Prints a word quoted for a shell, if it needs quotes. */
void cli_print_shell_word(FILE *out, const char *word);

/* Replaces the line last written by this function; "" clears it. Does nothing if the terminal is not live. */
void cli_rewrite_line(const struct cli_term *term, const char *text);

#endif
