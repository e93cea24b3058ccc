/* test_unit.c - values with units: exact parsing and formatting. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <bide/base.h>

#include "conf/unit.h"

static bool decimal(const char *text, int64_t scale, int64_t *value)
{
    return conf_decimal_parse(text, strlen(text), scale, value);
}

static int64_t ns_of(const char *text)
{
    int64_t ns;
    assert_true(conf_duration_parse(text, strlen(text), &ns));
    return ns;
}

static bool is_duration(const char *text)
{
    int64_t ns;
    return conf_duration_parse(text, strlen(text), &ns);
}

static void decimal_is_exact_or_rejected(void **state)
{
    int64_t value = -1;
    assert_true(decimal("1.5", 1000, &value) && value == 1500);
    assert_true(decimal("0.001", 1000, &value) && value == 1);
    assert_true(decimal("2.5000000", 10, &value) && value == 25);
    assert_true(decimal("0", 1, &value) && value == 0);
    assert_true(decimal(".5", 10, &value) && value == 5);
    assert_false(decimal("0.0001", 1000, &value));
    assert_false(decimal("1.5", 1, &value));
}

static void malformed_number_is_rejected(void **state)
{
    static const char *const bad[] = {"", ".", "-1", "+1", "1e3", "0x10", " 1", "1 ", "1.2.3", "1,5", "nan", "inf"};
    int64_t value;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(decimal(bad[i], 1000, &value));
}

static void number_overflow_is_rejected_not_wrapped(void **state)
{
    int64_t value;
    assert_true(decimal("9223372036854775799", 1, &value));
    assert_int_equal(value, INT64_C(9223372036854775799));
    assert_false(decimal("9223372036854775808", 1, &value));
    assert_false(decimal("9223372036854776", 1000, &value));
    assert_false(decimal("99999999999999999999999999999999", 1, &value));
    assert_false(decimal("0.00000000000000000000000000000001", 1000, &value));
}

static void duration_carries_its_unit(void **state)
{
    assert_int_equal(ns_of("7ns"), 7);
    assert_int_equal(ns_of("10us"), 10 * BIDE_US);
    assert_int_equal(ns_of("200ms"), 200 * BIDE_MS);
    assert_int_equal(ns_of("1.5s"), 1500 * BIDE_MS);
    assert_int_equal(ns_of("2m"), 2 * BIDE_MINUTE);
    assert_int_equal(ns_of("2min"), 2 * BIDE_MINUTE);
    assert_int_equal(ns_of("1h"), 60 * BIDE_MINUTE);
    assert_int_equal(ns_of("1d"), 24 * 60 * BIDE_MINUTE);
    assert_int_equal(ns_of("never"), BIDE_NEVER);
    assert_int_equal(ns_of("0"), 0);
    assert_int_equal(ns_of("0s"), 0);
}

static void duration_without_unit_is_rejected(void **state)
{
    static const char *const bad[] = {"",     "200", "0.0",   "00",  "1 s",   "s",   "1S",
                                      "1sec", "-1s", "Never", "1.5", "1m30s", "1ss", "0.1ns"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(is_duration(bad[i]));
}

static void duration_overflow_is_rejected_not_wrapped(void **state)
{
    assert_false(is_duration("365243d"));
    assert_false(is_duration("9223372037s"));
    assert_false(is_duration("9223372036854775807ns")); /* this number must be written as never */
    assert_true(is_duration("36500d"));
}

static void assert_format(int64_t ns, const char *expected)
{
    char text[CONF_VALUE_SIZE];
    assert_string_equal(conf_duration_format(text, ns), expected);
    assert_int_equal(ns_of(text), ns);
}

static void shortest_exact_form_is_written(void **state)
{
    assert_format(0, "0");
    assert_format(1, "1ns");
    assert_format(1500, "1.5us");
    assert_format(200 * BIDE_MS, "200ms");
    assert_format(1500 * BIDE_MS, "1.5s");
    assert_format(90 * BIDE_S, "90s");
    assert_format(120 * BIDE_S, "2m");
    assert_format(60 * BIDE_MINUTE, "1h");
    assert_format(36 * 60 * BIDE_MINUTE, "36h");
    assert_format(48 * 60 * BIDE_MINUTE, "2d");
    assert_format(BIDE_S + 1, "1.000000001s");
    assert_format(BIDE_NEVER, "never");
    assert_format(BIDE_NEVER - 1, "9223372036.854775806s");
}

/* splitmix64 */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static void written_values_parse_to_the_same_value(void **state)
{
    uint64_t random = UINT64_C(0x62696465);
    print_message("seed 0x62696465\n");
    for (int i = 0; i < 200000; i++) {
        char text[CONF_VALUE_SIZE];
        int64_t ns = (int64_t)(next_random(&random) >> (1 + next_random(&random) % 63)), value;
        assert_int_equal(ns_of(conf_duration_format(text, ns)), ns);
        conf_decimal_format(text, ns / 1000000, 1000);
        assert_true(decimal(text, 1000, &value) && value == ns / 1000000);
    }
}

static void assert_short_format(int64_t ns, const char *expected)
{
    char text[CONF_VALUE_SIZE];
    assert_string_equal(conf_duration_format_short(text, ns), expected);
}

static void short_form_has_three_significant_digits(void **state)
{
    assert_short_format(0, "0");
    assert_short_format(12, "12ns");
    assert_short_format(1234567, "1.23ms");
    assert_short_format(206400000, "206ms");
    assert_short_format(99960000, "100ms");
    assert_short_format(999600000, "1s");
    assert_short_format(1234 * BIDE_MS, "1.23s");
    assert_short_format(12340 * BIDE_MS, "12.3s");
    assert_short_format(59999 * BIDE_MS, "1m");
    assert_short_format(100 * BIDE_S, "1m 40s");
    assert_short_format(60 * BIDE_MINUTE - 1, "1h");
    assert_short_format(65 * BIDE_MINUTE, "1h 5m");
    assert_short_format(24 * 60 * BIDE_MINUTE - 1, "1d");
    assert_short_format(28 * 60 * BIDE_MINUTE, "1d 4h");
    assert_short_format(BIDE_NEVER, "never");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decimal_is_exact_or_rejected),
        cmocka_unit_test(malformed_number_is_rejected),
        cmocka_unit_test(number_overflow_is_rejected_not_wrapped),
        cmocka_unit_test(duration_carries_its_unit),
        cmocka_unit_test(duration_without_unit_is_rejected),
        cmocka_unit_test(duration_overflow_is_rejected_not_wrapped),
        cmocka_unit_test(shortest_exact_form_is_written),
        cmocka_unit_test(written_values_parse_to_the_same_value),
        cmocka_unit_test(short_form_has_three_significant_digits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
