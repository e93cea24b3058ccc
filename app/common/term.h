/* term.h - terminal output: width, colour, bars, a line or a screen that is rewritten in place. No other file has
 * escape sequences.
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
    bool is_terminal;
    bool live; /* lines may be rewritten */
    bool colour;
    bool utf8;      /* by the locale's variables; otherwise # and -> instead of blocks and arrows */
    unsigned width; /* columns; 80 if unknown */
    unsigned rows;  /* 24 if unknown */
};

struct cli_term cli_term_detect(FILE *out);

enum cli_colour { CLI_PLAIN, CLI_DIM, CLI_BOLD, CLI_RED, CLI_GREEN, CLI_YELLOW, CLI_BLUE, CLI_CYAN };

/* Returns the escape sequence, or "" without colour. */
const char *cli_colour(const struct cli_term *term, enum cli_colour colour);

/* Formats a bar that shows `value` on a scale from 0 to `most` in at most `cells` columns, in eighths of a cell with
 * UTF-8. Returns text, a buffer of 4 * cells + 1 bytes. */
const char *cli_bar(const struct cli_term *term, char *text, size_t cells, double value, double most);

/* Formats a sparkline: one cell per value. */
const char *cli_spark(const struct cli_term *term, char *text, const double *value, size_t count, double most);

/* Returns the columns of a text: every character is one column wide, as is the '?' for a byte that is no text. */
size_t cli_text_columns(const char *text);

/* Prints the character at the front of a text; '?' for a control character, a byte that is no UTF-8, and without
 * `utf8` for every character beyond ASCII. Returns its length in bytes. `left`, the bytes of the text, is above 0. */
size_t cli_print_character(FILE *out, const char *text, size_t left, bool utf8);

/* A paragraph: words filled up to the right margin, and printed as by cli_print_character. */
struct cli_paragraph {
    FILE *out;
    bool utf8;
    unsigned at;          /* column of the cursor */
    unsigned left, right; /* indent of the lines after the first, and the width of all */
    bool after_word;      /* the cursor is behind a word: a blank or a new line comes first */
    bool breaks_words;    /* a word that is longer than a line is broken; otherwise it reaches beyond the margin */
    bool hides_backticks; /* they mark words to be typed, in the texts of help */
};
void cli_print_paragraph(const struct cli_paragraph *paragraph, const char *text, size_t length);

/* Prints untrusted text by cli_print_character, for this locale. */
void cli_print_sanitized(FILE *out, const char *text);

/* Copies untrusted text as cli_print_character prints it, at most `columns` wide: a longer text has an ellipsis in the
 * middle, because URLs, paths and patterns differ at both ends. For names in messages, which are lines of less than
 * CLI_LINE_COLUMNS. Returns text, a buffer of CLI_SHORT_SIZE(columns) bytes; `columns` is 4 or more. */
#define CLI_LINE_COLUMNS        100u
#define CLI_NAME_COLUMNS        40u
#define CLI_SHORT_SIZE(columns) (4 * (columns) + 1)
const char *cli_text_shorten(char *text, const char *from, size_t columns);

/* Prints the same text. Returns the columns printed: at least 4 and at most 256 are used. */
unsigned cli_print_shortened(const struct cli_term *term, const char *text, unsigned columns);

/* Prints a word quoted for a shell, if it needs quotes. */
void cli_print_shell_word(FILE *out, const char *word);

/* Replaces the line last written by this function; "" clears it. Does nothing if the terminal is not live. */
void cli_rewrite_line(const struct cli_term *term, const char *text);

/* Moves the cursor to the start of the line that is `lines` above. Does nothing if the terminal is not live. */
void cli_move_up(const struct cli_term *term, unsigned lines);

/* For pages that are redrawn in place on a live terminal. String literals, so that a signal handler can write them. */
#define CLI_SCREEN_ENTER "\033[?1049h\033[?25l\033[?7l" /* alternate screen, no cursor, long lines are cut off */
#define CLI_SCREEN_LEAVE "\033[?7h\033[?25h\033[?1049l"
#define CLI_SCREEN_HOME  "\033[H"
#define CLI_CURSOR_HIDE  "\033[?25l"
#define CLI_CURSOR_SHOW  "\033[?25h"
#define CLI_CLEAR_LINE   "\033[K" /* from the cursor to the end of the line */
#define CLI_CLEAR_BELOW  "\033[J" /* from the cursor to the end of the screen */

/* Ends a line of such a page: clears what an earlier page had behind it. */
void cli_screen_end_line(const struct cli_term *term);

#endif
