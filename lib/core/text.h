/* text.h - parsing and writing short texts without libc.
 *
 * A cursor is the rest of a text that is still to be parsed. Each core_parse_ function reads an element at the cursor
 * and returns whether it was there; after a false the cursor may be anywhere, and the caller gives up. A writer works
 * like snprintf: it counts the characters that did not fit. */
#ifndef CORE_TEXT_H
#define CORE_TEXT_H

#include <bide/hint.h>

struct core_cursor {
    const char *at;
    size_t left;
};

struct core_writer {
    char *text;
    size_t size;
    size_t length; /* characters, written or not */
};

bool core_is_digit(int c);

/* Returns true if the text equals this word. */
bool core_text_equals(struct bide_text text, const char *word);

/* Returns a cursor over the text without the blanks around it (OWS of RFC 9110 5.6.3). An absent text is empty. */
struct core_cursor core_cursor_over(struct bide_text text);

/* Returns the next byte, 0 to 255, or -1 at the end. */
int core_cursor_peek(const struct core_cursor *cursor);
bool core_cursor_at_end(const struct core_cursor *cursor);

/* Skips the next byte; the caller has checked that it exists. */
void core_cursor_skip(struct core_cursor *cursor);

bool core_parse_char(struct core_cursor *cursor, char c);
bool core_parse_word(struct core_cursor *cursor, const char *word);
void core_parse_blanks(struct core_cursor *cursor); /* any number of SP and HTAB */

/* Reads one of `count` words, none of which is a prefix of another. Returns its index, or -1. */
int core_parse_one_of(struct core_cursor *cursor, const char *const *words, int count);

/* *DIGIT: any number of digits, saturated at INT64_MAX. Returns how many there were; if 0, *number is 0. */
size_t core_parse_digits(struct core_cursor *cursor, int64_t *number);

/* An optional fraction, reduced to its effect on rounding up: *up is 1 if it has a digit other than 0, else 0. Returns
 * false for a point without digits. */
bool core_parse_fraction(struct core_cursor *cursor, int64_t *up);

void core_write_text(struct core_writer *writer, const char *words);
void core_write_number(struct core_writer *writer, int64_t number);

/* Ends the text with a NUL, within its size. Returns the length of the whole text, without the NUL. */
size_t core_write_end(struct core_writer *writer);

#endif
