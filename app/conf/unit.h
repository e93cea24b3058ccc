/* unit.h - values with units as people write them: 200ms, 10%, 5/s, 2x. Exact integers in, exact integers out.
 *
 * A number consists of digits and at most one decimal point; its unit follows without a blank. A value that the unit of
 * its field cannot represent exactly (0.1ns, 0.05% in thousandths) is rejected, not rounded. Formatting gives the
 * shortest form that parses to the same number. */
#ifndef CONF_UNIT_H
#define CONF_UNIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONF_VALUE_SIZE 64u /* enough for any formatted value, with its NUL */

/* Parses "1.5" with scale 1000 to 1500. The number must be the whole text. */
bool conf_decimal_parse(const char *text, size_t length, int64_t scale, int64_t *value);

/* The reverse: formats 1500 with scale 1000 (a power of ten) as "1.5". Returns text. */
const char *conf_decimal_format(char text[CONF_VALUE_SIZE], int64_t value, int64_t scale);

/* Parses "200ms" "1.5s" "2m" "1h" "1d" "10us" "7ns" ("min" equals "m"), or "never". Rejects a number without unit,
 * except 0. */
bool conf_duration_parse(const char *text, size_t length, int64_t *ns);

/* Formats the shortest exact form: 200ms, 1.5s, 2m, never. Returns text. */
const char *conf_duration_format(char text[CONF_VALUE_SIZE], int64_t ns);

/* Formats three significant digits for people: "1.23s", "206ms", "1m 40s". Not exact. Returns text. */
const char *conf_duration_format_short(char text[CONF_VALUE_SIZE], int64_t ns);

#endif
