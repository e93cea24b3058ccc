/* duration.c - see duration.h. The value is read as a sequence of numbers, each with a unit in one of the spellings of
 * other programs; blanks between them do not matter, nor does the case of a unit. */
#include "duration.h"

#include "text/unit.h"

#include <bide/base.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define PARTS_MAX 8u
#define DAYS_MAX  ((int)(BIDE_DURATION_MAX / BIDE_S / 86400))

static const struct {
    const char *names; /* separated by blanks, in lower case */
    const char *unit;
} spellings[] = {
    {"d day days", "d"},
    {"h hr hrs hour hours", "h"},
    {"m min mins minute minutes", "m"},
    {"s sec secs second seconds", "s"},
    {"ms msec msecs millis millisecond milliseconds", "ms"},
    {"us usec usecs micros microsecond microseconds", "us"},
    {"ns nsec nsecs nanos nanosecond nanoseconds", "ns"},
};

static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

static bool list_has_name(const char *names, const char *name, size_t length)
{
    for (size_t n; *names != '\0'; names += n + (names[n] == ' ')) {
        n = strcspn(names, " ");
        if (n == length && strncasecmp(names, name, n) == 0)
            return true;
    }
    return false;
}

/* Returns the unit as bide spells it, or NULL. */
static const char *unit_find(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++)
        if (list_has_name(spellings[i].names, name, length))
            return spellings[i].unit;
    return NULL;
}

/* A sequence of numbers with units, and their sum. */
struct sum {
    int64_t ns;
    size_t parts;
    char last[TEXT_VALUE_SIZE]; /* the last part, as bide spells it */
    bool too_long;              /* a part, or the sum, exceeds BIDE_DURATION_MAX */
};

/* Adds a number, with at most one point, in a unit. Returns false if bide cannot represent it exactly. */
static bool sum_add(struct sum *sum, const char *number, size_t digits, const char *unit)
{
    int64_t ns;
    int length = snprintf(sum->last, sizeof sum->last, "%.*s%s", (int)digits, number, unit);
    sum->parts++;
    if ((size_t)length >= sizeof sum->last)
        return false;
    if (!text_duration_parse(sum->last, (size_t)length, &ns)) {
        sum->too_long = memchr(number, '.', digits) == NULL; /* only a fraction may be inexact */
        return sum->too_long;
    }
    sum->too_long = sum->too_long || ns > BIDE_DURATION_MAX - sum->ns;
    sum->ns = sum->too_long ? 0 : sum->ns + ns;
    return true;
}

/* Returns false if the value is no such sequence. */
static bool sum_read(struct sum *sum, const char *value)
{
    *sum = (struct sum){0};
    for (value += strspn(value, " "); *value != '\0' && sum->parts < PARTS_MAX && !sum->too_long;) {
        const char *number = value, *name;
        size_t digits = strspn(value, "0123456789.");
        name = value + digits + strspn(value + digits, " ");
        size_t length = strspn(name, letters);
        const char *unit = unit_find(name, length);
        if (digits == 0 || unit == NULL || !sum_add(sum, number, digits, unit))
            return false;
        value = name + length;
        value += strspn(value, " ");
    }
    return sum->parts > 0 && (*value == '\0' || sum->too_long);
}

static bool is_number(const char *value)
{
    char with_unit[16];
    int64_t ns;
    int length = snprintf(with_unit, sizeof with_unit, "%ss", value);
    return (size_t)length < sizeof with_unit && value[strspn(value, "0123456789.")] == '\0' &&
           text_duration_parse(with_unit, (size_t)length, &ns);
}

const char *conf_duration_want(const char *value)
{
    static char want[96];
    char text[TEXT_VALUE_SIZE];
    struct sum sum;
    if (is_number(value))
        snprintf(want, sizeof want, "a duration with a unit, such as %ss or %sms", value, value);
    else if (!sum_read(&sum, value))
        return NULL;
    else if (sum.too_long)
        snprintf(want, sizeof want, "a duration of at most %dd, about 31 years", DAYS_MAX);
    else if (sum.parts > 1)
        snprintf(want, sizeof want, "one number with one unit, such as %s", text_duration_format(text, sum.ns));
    else
        snprintf(want, sizeof want, "written %s", sum.last);
    return want;
}
