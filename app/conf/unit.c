/* unit.c - parsing and formatting of values with units. Exact: no floating point, no locale, no rounding. */
#include "unit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <bide/base.h>

#define HOUR (60 * BIDE_MINUTE)
#define DAY  (24 * HOUR)

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Computes digits / fraction * scale, if the result is an integer that fits. Common powers of ten are cancelled first,
 * so that the product overflows only if the result does. */
static bool scale_decimal(int64_t digits, int64_t fraction, int64_t scale, int64_t *value)
{
    for (; fraction > 1 && scale % 10 == 0; fraction /= 10)
        scale /= 10;
    for (; fraction > 1 && digits % 10 == 0; fraction /= 10)
        digits /= 10;
    if ((digits != 0 && scale > INT64_MAX / digits) || digits * scale % fraction != 0)
        return false;
    *value = digits * scale / fraction;
    return true;
}

bool conf_decimal_parse(const char *text, size_t length, int64_t scale, int64_t *value)
{
    int64_t digits = 0, fraction = 1;
    bool point = false, any = false;
    for (size_t i = 0; i < length; i++) {
        int64_t digit = text[i] - '0';
        if (text[i] == '.' && !point) {
            point = true;
            continue;
        }
        if (!is_digit(text[i]) || digits > (INT64_MAX - digit) / 10 || fraction > INT64_MAX / 10)
            return false;
        digits = digits * 10 + digit;
        fraction = point ? fraction * 10 : fraction;
        any = true;
    }
    return any && scale_decimal(digits, fraction, scale, value);
}

/* Ordered from the largest unit, as formatting needs them. */
static const struct {
    const char *name;
    int64_t ns;
    bool whole; /* used for whole numbers only: 90s, not 1.5m */
} units[] = {
    {"d", DAY, true},     {"h", HOUR, true},      {"m", BIDE_MINUTE, true}, {"min", BIDE_MINUTE, true},
    {"s", BIDE_S, false}, {"ms", BIDE_MS, false}, {"us", BIDE_US, false},   {"ns", BIDE_NS, false},
};
#define UNITS (sizeof units / sizeof *units)

static bool text_equals(const char *text, size_t length, const char *word)
{
    return strlen(word) == length && memcmp(text, word, length) == 0;
}

bool conf_duration_parse(const char *text, size_t length, int64_t *ns)
{
    size_t digits = 0;
    *ns = BIDE_NEVER;
    if (text_equals(text, length, "never"))
        return true;
    while (digits < length && (is_digit(text[digits]) || text[digits] == '.'))
        digits++;
    if (digits == length)
        return text_equals(text, length, "0") && conf_decimal_parse(text, length, 1, ns);
    for (size_t i = 0; i < UNITS; i++)
        if (text_equals(text + digits, length - digits,
                        units[i].name)) /* the number equal to BIDE_NEVER must be written as never */
            return conf_decimal_parse(text, digits, units[i].ns, ns) && *ns != BIDE_NEVER;
    return false;
}

/* Formats amount / unit as a decimal without trailing zeros. */
static int print_decimal(char *text, size_t size, int64_t amount, int64_t unit)
{
    int length = snprintf(text, size, "%" PRId64, amount / unit);
    int64_t rest = amount % unit;
    if (rest > 0 && length > 0 && (size_t)length + 1 < size)
        text[length++] = '.';
    while (rest > 0 && length > 0 && (size_t)length + 1 < size) { /* rest < unit <= 10^9: cannot overflow */
        unit /= 10;
        text[length++] = (char)('0' + rest / unit);
        rest %= unit;
    }
    text[length] = '\0';
    return length;
}

const char *conf_decimal_format(char text[CONF_VALUE_SIZE], int64_t value, int64_t scale)
{
    print_decimal(text, CONF_VALUE_SIZE, value, scale);
    return text;
}

const char *conf_duration_format(char text[CONF_VALUE_SIZE], int64_t ns)
{
    snprintf(text, CONF_VALUE_SIZE, "%s", ns == BIDE_NEVER ? "never" : "0");
    if (ns == BIDE_NEVER || ns <= 0)
        return text;
    for (size_t i = 0; i < UNITS; i++) {
        if (units[i].whole ? ns % units[i].ns != 0 : ns < units[i].ns)
            continue;
        int length = print_decimal(text, CONF_VALUE_SIZE, ns, units[i].ns);
        snprintf(text + length, CONF_VALUE_SIZE - (size_t)length, "%s", units[i].name);
        break;
    }
    return text;
}

/* Formats two units, the smaller unit rounded: "1m 40s". */
static void format_two_units(char *text, int64_t ns, int64_t large_ns, int64_t small_ns)
{
    const char *const names = large_ns == DAY ? "dh" : large_ns == HOUR ? "hm" : "ms";
    int64_t small = ns / small_ns + (ns % small_ns >= small_ns / 2), many = large_ns / small_ns;
    int length = snprintf(text, CONF_VALUE_SIZE, "%" PRId64 "%c", small / many, names[0]);
    if (small % many != 0 && length > 0)
        snprintf(text + length, CONF_VALUE_SIZE - (size_t)length, " %" PRId64 "%c", small % many, names[1]);
}

/* Rounds to three significant digits: a hundredth, a tenth or a whole of the unit. */
static int64_t round_to_three_digits(int64_t ns, int64_t unit_ns)
{
    int64_t step = ns < 10 * unit_ns ? unit_ns / 100 : ns < 100 * unit_ns ? unit_ns / 10 : unit_ns;
    step = step > 0 ? step : 1;
    return (ns + step / 2) / step * step;
}

const char *conf_duration_format_short(char text[CONF_VALUE_SIZE], int64_t ns)
{
    static const struct {
        const char *name;
        int64_t ns;
    } small[] = {{"ns", BIDE_NS}, {"us", BIDE_US}, {"ms", BIDE_MS}, {"s", BIDE_S}};
    if (ns == BIDE_NEVER || ns <= 0)
        return conf_duration_format(text, ns <= 0 ? 0 : ns);
    for (size_t i = 0; i < sizeof small / sizeof *small; i++) {
        int64_t limit_ns = small[i].ns == BIDE_S ? BIDE_MINUTE : 1000 * small[i].ns;
        int64_t value = ns < limit_ns ? round_to_three_digits(ns, small[i].ns) : limit_ns;
        if (value >= limit_ns)
            continue; /* 999.9ms rounds to the next unit, 1s */
        int length = print_decimal(text, CONF_VALUE_SIZE, value, small[i].ns);
        snprintf(text + length, CONF_VALUE_SIZE - (size_t)length, "%s", small[i].name);
        return text;
    }
    if (ns < HOUR - BIDE_S / 2)
        format_two_units(text, ns, BIDE_MINUTE, BIDE_S);
    else if (ns < DAY - BIDE_MINUTE / 2)
        format_two_units(text, ns, HOUR, BIDE_MINUTE);
    else
        format_two_units(text, ns, DAY, HOUR);
    return text;
}
