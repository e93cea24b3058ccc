/* date.c - reading dates: the three forms of an HTTP-date, and RFC 3339.
 *
 * A form is a pattern in the manner of strptime. Each letter after a % has a row in a table: which part of the date it
 * sets, how the part is written, and its range. Every other character matches itself, so the forms are case-sensitive
 * as RFC 9110 requires. A date with all parts in range is then checked against the length of its month and converted to
 * seconds. */
#include "date.h"

#include "saturate.h"

enum part { YEAR, MONTH, DAY, HOUR, MINUTE, SECOND, WEEKDAY, PARTS };

struct moment {
    int32_t part[PARTS];
};

static const char *const weekdays[] = {"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"};
static const char *const long_weekdays[] = {"Monday", "Tuesday",  "Wednesday", "Thursday",
                                            "Friday", "Saturday", "Sunday"};
static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

/* A part is one of `names`, or a number with this many digits. */
static const struct specifier {
    char letter;
    enum part part;
    int32_t least;
    int32_t most;
    int digits;
    const char *const *names;
} specifiers[] = {
    {'a', WEEKDAY, 0, 6, 0, weekdays}, /* not checked against the date: the date counts */
    {'A', WEEKDAY, 0, 6, 0, long_weekdays},
    {'b', MONTH, 1, 12, 0, months},
    {'m', MONTH, 1, 12, 2, NULL},
    {'d', DAY, 1, 31, 2, NULL},
    {'e', DAY, 1, 9, 1, NULL},
    {'Y', YEAR, 0, 9999, 4, NULL},
    {'y', YEAR, 0, 99, 2, NULL},
    {'H', HOUR, 0, 23, 2, NULL},
    {'M', MINUTE, 0, 59, 2, NULL},
    {'S', SECOND, 0, 60, 2, NULL}, /* 60: a leap second, read as the second after it */
};

/* RFC 9110 5.6.7: a recipient MUST accept all three. asctime writes a day below 10 with a blank before it. */
static const struct form {
    const char *pattern;
    bool short_year;
} forms[] = {
    {"%a, %d %b %Y %H:%M:%S GMT", false}, /* IMF-fixdate */
    {"%A, %d-%b-%y %H:%M:%S GMT", true},  /* rfc850-date */
    {"%a %b %d %H:%M:%S %Y", false},      /* asctime-date */
    {"%a %b  %e %H:%M:%S %Y", false},
};

/* Reads exactly this many digits; returns -1, which is in no range, if there are fewer. */
static int32_t parse_number(struct core_cursor *cursor, int digits)
{
    int32_t number = 0;
    for (; digits > 0; digits--) {
        if (!core_is_digit(core_cursor_peek(cursor)))
            return -1;
        number = number * 10 + (core_cursor_peek(cursor) - '0');
        core_cursor_skip(cursor);
    }
    return number;
}

static bool parse_part(struct core_cursor *cursor, char letter, struct moment *moment)
{
    const struct specifier *specifier = specifiers;
    while (specifier->letter != letter) /* always found: the patterns are constants of this file */
        specifier++;
    int32_t value =
        specifier->names != NULL
            ? specifier->least + core_parse_one_of(cursor, specifier->names, specifier->most - specifier->least + 1)
            : parse_number(cursor, specifier->digits);
    moment->part[specifier->part] = value;
    return value >= specifier->least && value <= specifier->most;
}

static bool parse_pattern(struct core_cursor *cursor, const char *pattern, struct moment *moment)
{
    for (; *pattern != '\0'; pattern++) {
        bool matches = *pattern == '%' ? parse_part(cursor, *++pattern, moment) : core_parse_char(cursor, *pattern);
        if (!matches)
            return false;
    }
    return true;
}

static bool is_leap_year(int32_t year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static bool day_exists(const struct moment *moment)
{
    static const uint8_t length[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int32_t month = moment->part[MONTH];
    bool longer = month == 2 && is_leap_year(moment->part[YEAR]);
    return moment->part[DAY] <= length[month - 1] + longer;
}

/* Converts to seconds since 1970 in the proleptic Gregorian calendar, for years from 0. A year that begins in March
 * ends with its leap day, so the months before a date always have the same length: 153 days in five months. Adding 400
 * years (146097 days) keeps all terms positive. */
static int64_t seconds_of(const struct moment *moment)
{
    const int32_t *part = moment->part;
    int64_t year = part[YEAR] + 400 - (part[MONTH] <= 2);
    int64_t month = (part[MONTH] + 9) % 12;
    int64_t days = year * 365 + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + part[DAY] - 1;
    days -= 719468 + 146097; /* from 0000-03-01 to 1970-01-01 */
    return ((days * 24 + part[HOUR]) * 60 + part[MINUTE]) * 60 + part[SECOND];
}

/* RFC 9110 5.6.7: a two-digit year that appears to be more than 50 years in the future is the most recent past year
 * with those digits. So this returns the latest year with those digits that puts the date at most 50 years ahead. (29
 * February counts as 1 March where the year 50 years earlier has no such day.) */
static int32_t full_year(struct moment moment, int64_t wall_s)
{
    moment.part[YEAR] += 9900 - 50;
    while (seconds_of(&moment) > core_max(wall_s, 0)) /* ends before 1970 at the latest */
        moment.part[YEAR] -= 100;
    return moment.part[YEAR] + 50;
}

bool core_parse_http_date(struct core_cursor *cursor, int64_t wall_s, int64_t *seconds)
{
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        struct core_cursor ahead = *cursor;
        struct moment moment = {{0}};
        if (!parse_pattern(&ahead, forms[i].pattern, &moment))
            continue;
        if (forms[i].short_year)
            moment.part[YEAR] = full_year(moment, wall_s);
        if (!day_exists(&moment))
            return false;
        *cursor = ahead;
        *seconds = seconds_of(&moment);
        return true;
    }
    return false;
}

bool bide_http_date(struct bide_text value, int64_t wall_s, int64_t *seconds)
{
    struct core_cursor cursor = core_cursor_over(value);
    return core_parse_http_date(&cursor, wall_s, seconds) && core_cursor_at_end(&cursor);
}

/* RFC 3339 5.6 time-offset: Z, or how far the local time is ahead of UTC. */
static bool parse_offset(struct core_cursor *cursor, int64_t *offset_s)
{
    static const char *const marks[] = {"Z", "z", "+", "-"};
    static const int64_t sign[] = {0, 0, 1, -1};
    struct moment moment = {{0}};
    int mark = core_parse_one_of(cursor, marks, 4);
    if (mark < 0 || (sign[mark] != 0 && !parse_pattern(cursor, "%H:%M", &moment)))
        return false;
    *offset_s = sign[mark] * (moment.part[HOUR] * 60 + moment.part[MINUTE]) * 60;
    return true;
}

bool core_parse_rfc3339(struct bide_text value, int64_t *seconds)
{
    struct core_cursor cursor = core_cursor_over(value);
    struct moment moment = {{0}};
    int64_t up, offset_s;
    if (!parse_pattern(&cursor, "%Y-%m-%d", &moment) || !day_exists(&moment))
        return false;
    if (!core_parse_char(&cursor, 'T') && !core_parse_char(&cursor, 't'))
        return false;
    if (!parse_pattern(&cursor, "%H:%M:%S", &moment) || !core_parse_fraction(&cursor, &up) ||
        !parse_offset(&cursor, &offset_s))
        return false;
    *seconds = seconds_of(&moment) + up - offset_s;
    return core_cursor_at_end(&cursor);
}
