/* unit.h - values with units as people write them: 200ms, 10%, 5/s, 2x. Exact integers in, exact integers out.
 *
 * A number consists of digits and at most one decimal point; its unit follows without a blank. A value that the unit of
 * its field cannot represent exactly (0.1ns, 0.05% in thousandths) is rejected, not rounded. Formatting gives the
 * shortest form that parses to the same number. */
#ifndef TEXT_UNIT_H
#define TEXT_UNIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TEXT_VALUE_SIZE 64u /* enough for any formatted value, with its NUL */

/* Parses digits only, which must be the whole text. */
bool text_number_parse(const char *text, size_t length, uint64_t *number);

/* Parses the digits at the beginning of the text. Returns how many there are, 0 if there are none or too many. */
size_t text_number_take(const char *text, size_t length, uint64_t *number);

/* Parses "1.5" with scale 1000 to 1500. The number must be the whole text. */
bool text_decimal_parse(const char *text, size_t length, int64_t scale, int64_t *value);

/* The reverse: formats 1500 with scale 1000 (a power of ten) as "1.5". Returns text. */
const char *text_decimal_format(char text[TEXT_VALUE_SIZE], int64_t value, int64_t scale);

/* The same with an optional multiple: "10k" "1.5M". */
bool text_multiple_parse(const char *text, size_t length, int64_t scale, int64_t *value);

/* Parses a share such as "10%", in parts of which `whole` (100 or more) make 100 %. 0 needs no unit. */
bool text_share_parse(const char *text, size_t length, int64_t whole, int64_t *value);

struct text_rate {
    size_t digits;    /* length of the number before the slash */
    int64_t period_s; /* 1, 60, 3600, 86400; 0: there is no slash */
};

/* Splits a rate: "5/s" "10/min" "10/m" "1/h" "1/d", or a number alone. Returns false if the period is unknown. */
bool text_rate_split(const char *text, size_t length, struct text_rate *rate);

/* Parses a rate to thousandths per minute: "5/s" to 300000. A number alone is per `default_s` seconds. */
bool text_rate_parse(const char *text, size_t length, int64_t default_s, int64_t *per_minute_milli);

/* Parses "200ms" "1.5s" "2m" "1h" "1d" "10us" "7ns" ("min" equals "m"), or "never". Rejects a number without unit,
 * except 0. */
bool text_duration_parse(const char *text, size_t length, int64_t *ns);

/* Formats the shortest exact form: 200ms, 1.5s, 2m, never. Returns text. */
const char *text_duration_format(char text[TEXT_VALUE_SIZE], int64_t ns);

/* Formats three significant digits for people: "1.23s", "206ms", "1m 40s". Not exact. Returns text. */
const char *text_duration_format_short(char text[TEXT_VALUE_SIZE], int64_t ns);

#endif
