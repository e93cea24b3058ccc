/* unit.c - parsing and formatting of values with units. Exact: no floating point, no locale, no rounding. */
#include "unit.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <bide/base.h>

#include "slice.h"

#define HOUR (60 * BIDE_MINUTE)
#define DAY  (24 * HOUR)

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

size_t text_number_take(const char *text, size_t length, uint64_t *number)
{
    size_t digits = 0;
    *number = 0;
    for (; digits < length && is_digit(text[digits]); digits++) {
        uint64_t digit = (uint64_t)(text[digits] - '0');
        if (*number > (UINT64_MAX - digit) / 10)
            return 0;
        *number = *number * 10 + digit;
    }
    return digits;
}

bool text_number_parse(const char *text, size_t length, uint64_t *number)
{
    return text_number_take(text, length, number) == length && length > 0;
}

/* Computes digits / fraction * scale, if the result is an integer that fits. Common powers of ten are cancelled first,
 * so that the product overflows only if the result does. */
static bool scale_decimal(int64_t digits, int64_t fraction, int64_t scale, int64_t *value)
{
    assert(digits >= 0 && fraction > 0 && scale > 0);
    for (; fraction > 1 && scale % 10 == 0; fraction /= 10)
        scale /= 10;
    for (; fraction > 1 && digits % 10 == 0; fraction /= 10)
        digits /= 10;
    if ((digits != 0 && scale > INT64_MAX / digits) || digits * scale % fraction != 0)
        return false;
    *value = digits * scale / fraction;
    return true;
}

bool text_decimal_parse(const char *text, size_t length, int64_t scale, int64_t *value)
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

bool text_multiple_parse(const char *text, size_t length, int64_t scale, int64_t *value)
{
    int64_t times = 1;
    if (length > 0 && (text[length - 1] == 'k' || text[length - 1] == 'M'))
        times = text[length - 1] == 'k' ? 1000 : 1000000;
    assert(scale > 0 && scale <= INT64_MAX / times);
    return text_decimal_parse(text, length - (times > 1), scale * times, value);
}

bool text_share_parse(const char *text, size_t length, int64_t whole, int64_t *value)
{
    assert(whole >= 100 && whole % 100 == 0);
    if (length > 0 && text[length - 1] == '%')
        return text_decimal_parse(text, length - 1, whole / 100, value);
    *value = 0;
    return text_equals((struct bide_text){text, length}, "0");
}

bool text_rate_split(const char *text, size_t length, struct text_rate *rate)
{
    static const struct {
        const char *name;
        int64_t s;
    } periods[] = {{"s", 1}, {"min", 60}, {"m", 60}, {"h", 3600}, {"d", 86400}};
    const char *slash = memchr(text, '/', length);
    *rate = (struct text_rate){.digits = slash == NULL ? length : (size_t)(slash - text)};
    for (size_t i = 0; i < sizeof periods / sizeof *periods && slash != NULL; i++)
        if (text_equals((struct bide_text){slash + 1, length - rate->digits - 1}, periods[i].name))
            rate->period_s = periods[i].s;
    return slash == NULL || rate->period_s > 0;
}

bool text_rate_parse(const char *text, size_t length, int64_t default_s, int64_t *per_minute_milli)
{
    struct text_rate rate;
    int64_t milli_s; /* thousandths per minute, times the seconds of the period */
    assert(default_s > 0);
    if (!text_rate_split(text, length, &rate) || !text_decimal_parse(text, rate.digits, INT64_C(60000), &milli_s))
        return false;
    int64_t period_s = rate.period_s > 0 ? rate.period_s : default_s;
    *per_minute_milli = milli_s / period_s;
    return milli_s % period_s == 0;
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

bool text_duration_parse(const char *text, size_t length, int64_t *ns)
{
    size_t digits = 0;
    *ns = BIDE_NEVER;
    if (text_equals((struct bide_text){text, length}, "never"))
        return true;
    while (digits < length && (is_digit(text[digits]) || text[digits] == '.'))
        digits++;
    if (digits == length)
        return text_equals((struct bide_text){text, length}, "0") && text_decimal_parse(text, length, 1, ns);
    for (size_t i = 0; i < UNITS; i++) /* the number equal to BIDE_NEVER must be written as never */
        if (text_equals((struct bide_text){text + digits, length - digits}, units[i].name))
            return text_decimal_parse(text, digits, units[i].ns, ns) && *ns != BIDE_NEVER;
    return false;
}

/* Formats amount / unit as a decimal without trailing zeros. */
static int print_decimal(char *text, size_t size, int64_t amount, int64_t unit)
{
    assert(amount >= 0 && unit > 0);
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

const char *text_decimal_format(char text[TEXT_VALUE_SIZE], int64_t value, int64_t scale)
{
    print_decimal(text, TEXT_VALUE_SIZE, value, scale);
    return text;
}

const char *text_duration_format(char text[TEXT_VALUE_SIZE], int64_t ns)
{
    snprintf(text, TEXT_VALUE_SIZE, "%s", ns == BIDE_NEVER ? "never" : "0");
    if (ns == BIDE_NEVER || ns <= 0)
        return text;
    for (size_t i = 0; i < UNITS; i++) {
        if (units[i].whole ? ns % units[i].ns != 0 : ns < units[i].ns)
            continue;
        int length = print_decimal(text, TEXT_VALUE_SIZE, ns, units[i].ns);
        snprintf(text + length, TEXT_VALUE_SIZE - (size_t)length, "%s", units[i].name);
        break;
    }
    return text;
}

/* Formats two units, the smaller unit rounded: "1m 40s". */
static void format_two_units(char *text, int64_t ns, int64_t large_ns, int64_t small_ns)
{
    const char *const names = large_ns == DAY ? "dh" : large_ns == HOUR ? "hm" : "ms";
    int64_t small = ns / small_ns + (ns % small_ns >= small_ns / 2), many = large_ns / small_ns;
    int length = snprintf(text, TEXT_VALUE_SIZE, "%" PRId64 "%c", small / many, names[0]);
    if (small % many != 0 && length > 0)
        snprintf(text + length, TEXT_VALUE_SIZE - (size_t)length, " %" PRId64 "%c", small % many, names[1]);
}

/* Rounds to three significant digits: a hundredth, a tenth or a whole of the unit. */
static int64_t round_to_three_digits(int64_t ns, int64_t unit_ns)
{
    int64_t step = ns < 10 * unit_ns ? unit_ns / 100 : ns < 100 * unit_ns ? unit_ns / 10 : unit_ns;
    step = step > 0 ? step : 1;
    return (ns + step / 2) / step * step;
}

const char *text_duration_format_short(char text[TEXT_VALUE_SIZE], int64_t ns)
{
    static const struct {
        const char *name;
        int64_t ns;
    } small[] = {{"ns", BIDE_NS}, {"us", BIDE_US}, {"ms", BIDE_MS}, {"s", BIDE_S}};
    if (ns == BIDE_NEVER || ns <= 0)
        return text_duration_format(text, ns <= 0 ? 0 : ns);
    for (size_t i = 0; i < sizeof small / sizeof *small; i++) {
        int64_t limit_ns = small[i].ns == BIDE_S ? BIDE_MINUTE : 1000 * small[i].ns;
        int64_t value = ns < limit_ns ? round_to_three_digits(ns, small[i].ns) : limit_ns;
        if (value >= limit_ns)
            continue; /* 999.9ms rounds to the next unit, 1s */
        int length = print_decimal(text, TEXT_VALUE_SIZE, value, small[i].ns);
        snprintf(text + length, TEXT_VALUE_SIZE - (size_t)length, "%s", small[i].name);
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
