/* test_unit.c - values with units: exact parsing and formatting. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <bide/base.h>

#include "seed.h"
#include "text/unit.h"

static bool decimal(const char *text, int64_t scale, int64_t *value)
{
    return text_decimal_parse(text, strlen(text), scale, value);
}

static int64_t ns_of(const char *text)
{
    int64_t ns;
    assert_true(text_duration_parse(text, strlen(text), &ns));
    return ns;
}

static bool is_duration(const char *text)
{
    int64_t ns;
    return text_duration_parse(text, strlen(text), &ns);
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
    char text[TEXT_VALUE_SIZE];
    assert_string_equal(text_duration_format(text, ns), expected);
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

static void written_values_parse_to_the_same_value_from(uint64_t first)
{
    uint64_t random = first | 1;
    for (int i = 0; i < 200000; i++) {
        char text[TEXT_VALUE_SIZE];
        int64_t ns = (int64_t)(next_random(&random) >> (1 + next_random(&random) % 63)), value;
        assert_int_equal(ns_of(text_duration_format(text, ns)), ns);
        text_decimal_format(text, ns / 1000000, 1000);
        assert_true(decimal(text, 1000, &value) && value == ns / 1000000);
    }
}

static void written_values_parse_to_the_same_value(void **state)
{
    (void)state;
    seed_each(UINT64_C(0x62696465), written_values_parse_to_the_same_value_from);
}

static void assert_short_format(int64_t ns, const char *expected)
{
    char text[TEXT_VALUE_SIZE];
    assert_string_equal(text_duration_format_short(text, ns), expected);
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

/* ---- numbers, shares and rates ---- */

static void whole_number_consists_of_digits_only(void **state)
{
    static const char *const bad[] = {"", "-1", "+1", " 1", "1 ", "1.0", "0x1", "18446744073709551616"};
    uint64_t number;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(text_number_parse(bad[i], strlen(bad[i]), &number));
    assert_true(text_number_parse("18446744073709551615", 20, &number) && number == UINT64_MAX);
    assert_true(text_number_parse("007", 3, &number) && number == 7);
    assert_true(text_number_parse("123", 2, &number) && number == 12);
}

static void leading_digits_are_taken(void **state)
{
    uint64_t number;
    assert_int_equal(text_number_take("120 kB", 6, &number), 3);
    assert_int_equal(number, 120);
    assert_int_equal(text_number_take("max", 3, &number), 0);
    assert_int_equal(text_number_take("18446744073709551616", 20, &number), 0);
}

static void multiple_is_thousand_or_million(void **state)
{
    int64_t value;
    assert_true(text_multiple_parse("10k", 3, 1, &value) && value == 10000);
    assert_true(text_multiple_parse("1.5M", 4, 1, &value) && value == 1500000);
    assert_true(text_multiple_parse("3", 1, 1000, &value) && value == 3000);
    assert_false(text_multiple_parse("k", 1, 1, &value));
    assert_false(text_multiple_parse("1K", 2, 1, &value));
    assert_false(text_multiple_parse("", 0, 1, &value));
}

static void share_is_a_percentage_or_zero(void **state)
{
    int64_t value;
    assert_true(text_share_parse("10%", 3, 1000, &value) && value == 100);
    assert_true(text_share_parse("0.0001%", 7, 1000000, &value) && value == 1);
    assert_true(text_share_parse("150%", 4, 100, &value) && value == 150);
    assert_true(text_share_parse("0", 1, 1000, &value) && value == 0);
    assert_false(text_share_parse("0.05%", 5, 1000, &value)); /* not a whole thousandth */
    assert_false(text_share_parse("1", 1, 1000, &value));
    assert_false(text_share_parse("%", 1, 1000, &value));
    assert_false(text_share_parse("", 0, 1000, &value));
}

static void rate_names_its_period(void **state)
{
    static const struct {
        const char *text;
        int64_t per_minute_milli;
    } rows[] = {{"5/s", 300000}, {"10/min", 10000}, {"10/m", 10000}, {"6/h", 100},
                {"1.44/d", 1},   {"2", 2000},       {"0", 0},        {"0.001/s", 60}};
    static const char *const bad[] = {
        "", "/s", "5/", "5/sec", "5 /s", "1/d", "0.0001/min", "5/s/s", "9999999999999999/s"};
    int64_t value;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_true(text_rate_parse(rows[i].text, strlen(rows[i].text), 60, &value));
        assert_int_equal(value, rows[i].per_minute_milli);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (text_rate_parse(bad[i], strlen(bad[i]), 60, &value))
            fail_msg("%s is accepted", bad[i]);
    assert_true(text_rate_parse("2", 1, 1, &value) && value == 120000);
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
        cmocka_unit_test(whole_number_consists_of_digits_only),
        cmocka_unit_test(leading_digits_are_taken),
        cmocka_unit_test(multiple_is_thousand_or_million),
        cmocka_unit_test(share_is_a_percentage_or_zero),
        cmocka_unit_test(rate_names_its_period),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
