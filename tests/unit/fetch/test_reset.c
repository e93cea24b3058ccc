/* test_reset.c - X-RateLimit-Reset and RateLimit-Reset: instants and waits. */
#include "fetch/reset.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define NOW_S  INT64_C(1767571200) /* Mon, 05 Jan 2026 00:00:00 GMT */
#define YEAR_S (INT64_C(365) * 24 * 3600)

static struct bide_text text(const char *value)
{
    return (struct bide_text){value, value ? strlen(value) : 0};
}

static int64_t x_wait_s(const char *reset, const char *remaining, const char *date)
{
    struct fetch_reset fields = {
        .x_reset = text(reset), .x_remaining = text(remaining), .date = text(date), .wall_s = NOW_S};
    struct bide_hint hint = fetch_reset_hint(&fields);
    return hint.kind == BIDE_HINT_WAIT ? hint.wait_ns / BIDE_S : -1;
}

static int64_t wait_s(const char *reset, const char *remaining)
{
    struct fetch_reset fields = {.reset = text(reset), .remaining = text(remaining), .wall_s = NOW_S};
    struct bide_hint hint = fetch_reset_hint(&fields);
    return hint.kind == BIDE_HINT_WAIT ? hint.wait_ns / BIDE_S : -1;
}

static void absent_and_malformed_fields_ask_for_nothing(void **state)
{
    static const char *const value[] = {NULL, "", "soon", "-1", "+1", "0x10", "1e3", "5s"};
    for (size_t i = 0; i < sizeof value / sizeof *value; i++) {
        assert_int_equal(x_wait_s(value[i], NULL, NULL), -1);
        assert_int_equal(wait_s(value[i], NULL), -1);
    }
}

static void a_small_number_is_a_wait(void **state)
{
    assert_int_equal(x_wait_s("0", NULL, NULL), 0);
    assert_int_equal(x_wait_s("7", NULL, NULL), 7);
    assert_int_equal(x_wait_s("1.5", "0", NULL), 2);
    assert_int_equal(x_wait_s("31535999", NULL, NULL), YEAR_S - 1);
    assert_int_equal(wait_s("7", NULL), 7);
}

static void a_number_near_the_present_is_an_instant(void **state)
{
    assert_int_equal(x_wait_s("1767571205", NULL, NULL), 5);
    assert_int_equal(x_wait_s("1767571195", NULL, NULL), 0);
    assert_int_equal(x_wait_s("1767571205.5", NULL, NULL), 6);
    assert_int_equal(x_wait_s("1799107200", NULL, NULL), YEAR_S); /* NOW_S + YEAR_S */
    assert_int_equal(x_wait_s("1736035200", NULL, NULL), 0);      /* NOW_S - YEAR_S */
}

static void an_instant_may_be_in_milliseconds(void **state)
{
    assert_int_equal(x_wait_s("1767571205000", NULL, NULL), 5);
    assert_int_equal(x_wait_s("1767571195000", NULL, NULL), 0);
}

static void both_fields_may_be_instants(void **state)
{
    assert_int_equal(wait_s("1767571205", NULL), 5);
    assert_int_equal(wait_s("1767571205000", "0"), 5);
}

static void the_present_is_that_of_the_server(void **state)
{
    assert_int_equal(x_wait_s("1767574805", NULL, "Mon, 05 Jan 2026 01:00:00 GMT"), 5);
    assert_int_equal(x_wait_s("1767571205", NULL, "yesterday"), 5);
}

static void any_other_number_is_ignored(void **state)
{
    static const char *const value[] = {"31536000", "1736035199", "1799107201", "1736035199999",
                                        "99999999999999999999999999"};
    for (size_t i = 0; i < sizeof value / sizeof *value; i++)
        assert_int_equal(x_wait_s(value[i], NULL, NULL), -1);
}

static void a_limit_with_requests_remaining_does_not_count(void **state)
{
    assert_int_equal(x_wait_s("7", "1", NULL), -1);
    assert_int_equal(x_wait_s("7", "0", NULL), 7);
    assert_int_equal(x_wait_s("7", "none", NULL), 7);
    assert_int_equal(wait_s("7", "1"), -1);
    assert_int_equal(wait_s("7", "0"), 7);
}

static void of_two_fields_the_longer_wait_counts(void **state)
{
    struct fetch_reset fields = {.x_reset = text("7"), .reset = text("9"), .wall_s = NOW_S};
    assert_int_equal(fetch_reset_hint(&fields).wait_ns, 9 * BIDE_S);
    fields.reset = text("3");
    assert_int_equal(fetch_reset_hint(&fields).wait_ns, 7 * BIDE_S);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(absent_and_malformed_fields_ask_for_nothing),
        cmocka_unit_test(a_small_number_is_a_wait),
        cmocka_unit_test(a_number_near_the_present_is_an_instant),
        cmocka_unit_test(an_instant_may_be_in_milliseconds),
        cmocka_unit_test(both_fields_may_be_instants),
        cmocka_unit_test(the_present_is_that_of_the_server),
        cmocka_unit_test(any_other_number_is_ignored),
        cmocka_unit_test(a_limit_with_requests_remaining_does_not_count),
        cmocka_unit_test(of_two_fields_the_longer_wait_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
