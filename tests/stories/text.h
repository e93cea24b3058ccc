/* text.h - splits lines into words; parses ranges of the values that lib/text/unit.h reads and prints exactly. */
#ifndef STORY_TEXT_H
#define STORY_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text/unit.h"

#define STORY_WORDS_MAX 40
#define STORY_LINE_MAX  512

/* A line split into words at its blanks; a '#' at the beginning of a word begins a comment. */
struct story_words {
    char bytes[STORY_LINE_MAX];
    const char *word[STORY_WORDS_MAX];
    int count;
};

/* A time or an amount, exact (lo == hi) or anywhere between two ends, both included. */
struct story_range {
    int64_t lo;
    int64_t hi;
};

/* Copies a line of `length` bytes. Returns false if it is longer than STORY_LINE_MAX or has more than
 * STORY_WORDS_MAX words. */
bool story_cut(struct story_words *words, const char *line, size_t length);

/* "2s" or "2s..2.2s". */
bool story_duration_range(const char *text, struct story_range *range);

/* "9.5" or "9..9.5", in thousandths. */
bool story_milli_range(const char *text, struct story_range *range);

/* "2040ms": the largest unit that needs no fraction. */
void story_print_duration(char *text, size_t size, int64_t ns);

#endif
