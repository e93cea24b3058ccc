/* text.h - reading and writing short texts without libc.
 *
 * A cursor is what is left to read of a text. Each core_take_ function reads one thing from its front and says whether
 * it was there; after a false the cursor may stand anywhere, and the reader gives up. A pen writes like snprintf: it
 * counts what it could not write. */
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
    size_t length; /* written or not */
};

bool core_is_digit(int c);

/* True if the text is this word. */
bool core_text_equals(struct bide_text text, const char *word);

/* A cursor over the text without the blanks around it (OWS of RFC 9110 5.6.3). An absent text reads as empty. */
struct core_cursor core_cursor_over(struct bide_text text);

/* The next byte, 0 to 255, or -1 at the end. */
int core_cursor_peek(const struct core_cursor *cursor);
bool core_cursor_at_end(const struct core_cursor *cursor);

/* Reads the next byte, which the caller has seen by core_cursor_peek. */
void core_cursor_skip(struct core_cursor *cursor);

bool core_parse_char(struct core_cursor *cursor, char c);
bool core_parse_word(struct core_cursor *cursor, const char *word);
void core_parse_blanks(struct core_cursor *cursor); /* SP and HTAB, also none */

/* Reads the one of `count` words that stands here, none of which begins another. Returns its index, or -1. */
int core_parse_one_of(struct core_cursor *cursor, const char *const *words, int count);

/* 1*DIGIT: any number of digits, saturated at INT64_MAX. Returns how many there were; 0: *number is 0. */
size_t core_parse_digits(struct core_cursor *cursor, int64_t *number);

/* An optional fraction, as what rounding up makes of it: *up is 1 if it has a digit other than 0, else 0. False for a
 * point without digits. */
bool core_parse_fraction(struct core_cursor *cursor, int64_t *up);

void core_write_text(struct core_writer *writer, const char *words);
void core_write_number(struct core_writer *writer, int64_t number);

/* Ends the text with a NUL, within its size. Returns the length that the whole needs, without the NUL. */
size_t core_write_end(struct core_writer *writer);

#endif
