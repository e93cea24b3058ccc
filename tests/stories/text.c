/* text.c - splits lines into words; parses ranges of the values that lib/text/unit.h reads and prints exactly.
 *
 * No floating point and no rounding: a number that its unit cannot represent exactly is an error of the story. */
#include "text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <bide/base.h>

bool story_cut(struct story_words *words, const char *line, size_t length)
{
    char *at = words->bytes;
    words->count = 0;
    if (length >= sizeof words->bytes)
        return false;
    memcpy(words->bytes, line, length);
    words->bytes[length] = '\0';
    for (;;) {
        at += strspn(at, " \t\r");
        if (*at == '\0' || *at == '#')
            return true;
        if (words->count == STORY_WORDS_MAX)
            return false;
        words->word[words->count++] = at;
        at += strcspn(at, " \t\r");
        if (*at != '\0')
            *at++ = '\0';
    }
}

/* Finds the ".." of a range; without it, both halves are the whole text. */
static bool halves(const char *text, size_t *first, const char **second)
{
    const char *dots = strstr(text, "..");
    *first = dots == NULL ? strlen(text) : (size_t)(dots - text);
    *second = dots == NULL ? text : dots + 2;
    return **second != '\0';
}

bool story_duration_range(const char *text, struct story_range *range)
{
    size_t first;
    const char *second;
    return halves(text, &first, &second) && text_duration_parse(text, first, &range->lo) &&
           text_duration_parse(second, strlen(second), &range->hi) && range->lo <= range->hi;
}

bool story_milli_range(const char *text, struct story_range *range)
{
    size_t first;
    const char *second;
    return halves(text, &first, &second) && text_decimal_parse(text, first, 1000, &range->lo) &&
           text_decimal_parse(second, strlen(second), 1000, &range->hi) && range->lo <= range->hi;
}

void story_print_duration(char *text, size_t size, int64_t ns)
{
    if (ns == BIDE_NEVER)
        snprintf(text, size, "never");
    else if (ns % BIDE_S == 0 && ns >= 10 * BIDE_S)
        snprintf(text, size, "%" PRId64 "s", ns / BIDE_S);
    else if (ns % BIDE_MS == 0)
        snprintf(text, size, "%" PRId64 "ms", ns / BIDE_MS);
    else if (ns % BIDE_US == 0)
        snprintf(text, size, "%" PRId64 "us", ns / BIDE_US);
    else
        snprintf(text, size, "%" PRId64 "ns", ns);
}
