/* text.c - how stories write numbers and instants, read and printed exactly.
 *
 * No floating point and no rounding: a number that its unit cannot hold exactly is an error of the story. */
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

bool story_decimal(const char *text, size_t length, int64_t scale, int64_t *value)
{
    int64_t digits = 0, fraction = 1;
    bool point = false, any = false;
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '.' && !point) {
            point = true;
            continue;
        }
        if (text[i] < '0' || text[i] > '9' || digits > (INT64_MAX - 9) / 10 || fraction > INT64_MAX / 10)
            return false;
        digits = digits * 10 + (text[i] - '0');
        fraction = point ? fraction * 10 : fraction;
        any = true;
    }
    while (fraction > 1 && digits % 10 == 0) { /* 2.50 is 2.5: keeps the product small */
        digits /= 10;
        fraction /= 10;
    }
    if (!any || (digits != 0 && scale > INT64_MAX / digits) || digits * scale % fraction != 0)
        return false;
    *value = digits * scale / fraction;
    return true;
}

static const struct {
    const char *name;
    int64_t ns;
} units[] = {{"min", BIDE_MINUTE}, {"ms", BIDE_MS}, {"us", BIDE_US},
             {"ns", BIDE_NS},      {"s", BIDE_S},   {"h", 60 * BIDE_MINUTE}};

bool story_duration(const char *text, size_t length, int64_t *ns)
{
    if (length == 5 && memcmp(text, "never", 5) == 0) {
        *ns = BIDE_NEVER;
        return true;
    }
    if (length == 1 && text[0] == '0') {
        *ns = 0;
        return true;
    }
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        size_t tail = strlen(units[i].name);
        if (length > tail && memcmp(text + length - tail, units[i].name, tail) == 0 && text[length - tail - 1] >= '0' &&
            text[length - tail - 1] <= '9')
            return story_decimal(text, length - tail, units[i].ns, ns);
    }
    return false;
}

/* Finds the ".." of a range; without one, both halves are the whole. */
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
    return halves(text, &first, &second) && story_duration(text, first, &range->lo) &&
           story_duration(second, strlen(second), &range->hi) && range->lo <= range->hi;
}

bool story_milli_range(const char *text, struct story_range *range)
{
    size_t first;
    const char *second;
    return halves(text, &first, &second) && story_decimal(text, first, 1000, &range->lo) &&
           story_decimal(second, strlen(second), 1000, &range->hi) && range->lo <= range->hi;
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

void story_print_milli(char *text, size_t size, int64_t milli)
{
    int length = snprintf(text, size, "%" PRId64 ".%03d", milli / 1000, (int)(milli % 1000));
    while (length > 0 && text[length - 1] == '0')
        text[--length] = '\0';
    if (length > 0 && text[length - 1] == '.')
        text[length - 1] = '\0';
}
