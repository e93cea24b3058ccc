/* unit.h - values as people write them: 200ms, 10%, 5/s, 2x. Exact integers in, exact integers out.
 *
 * A number has digits and at most one point; a unit follows without a space. What does not fit exactly into the field's
 * own unit (0.1ns, 0.05% where thousandths are kept) is refused, not rounded. Writing gives the shortest form that
 * reads back as the same number. */
#ifndef CONF_UNIT_H
#define CONF_UNIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONF_VALUE_SIZE 64u /* room for any written value, with its NUL */

/* "1.5", scale 1000 -> 1500. The whole text must be the number. */
bool conf_decimal_parse(const char *text, size_t length, int64_t scale, int64_t *value);

/* The reverse: 1500, scale 1000 (a power of ten) -> "1.5". Returns text. */
const char *conf_decimal_format(char text[CONF_VALUE_SIZE], int64_t value, int64_t scale);

/* "200ms" "1.5s" "2m" "1h" "1d" "10us" "7ns" ("min" is as "m"), or "never". A bare number is refused, 0 excepted. */
bool conf_duration_parse(const char *text, size_t length, int64_t *ns);

/* The shortest exact form: 200ms, 1.5s, 2m, never. Returns text. */
const char *conf_duration_format(char text[CONF_VALUE_SIZE], int64_t ns);

/* For people, not exact: three digits that matter, "1.23s", "206ms", "1m 40s". Returns text. */
const char *conf_duration_format_short(char text[CONF_VALUE_SIZE], int64_t ns);

#endif
