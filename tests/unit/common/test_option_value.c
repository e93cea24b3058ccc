/* test_option_value.c - the kinds of options: which values each accepts, where it stores them, and its error text
 * (app/common/option_value.c). */
#define _GNU_SOURCE
#include "common/options.h"

#include <bide/base.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum colour { RED, GREEN, BLUE };

static struct {
    bool flag, given;
    uint16_t port;
    uint32_t count;
    uint64_t seed;
    long version;
    int64_t wait_ns;
    const char *text, *word;
    enum colour colour;
} s;

#define AT(member) CLI_AT(__typeof__(s), member)

static const char *const colours[] = {"red", "green", "blue", NULL};

static const char *assign(struct cli_option option, const char *value)
{
    return cli_option_assign(&option, &s, value);
}

static void flags_and_constants_take_no_value(void **state)
{
    (void)state;
    assert_null(assign((struct cli_option){.kind = CLI_FLAG, AT(flag)}, NULL));
    assert_true(s.flag);
    assert_null(assign((struct cli_option){.kind = CLI_CONSTANT, AT(flag), .min = false}, NULL));
    assert_false(s.flag);
    assert_null(assign((struct cli_option){.kind = CLI_CONSTANT, AT(version), .min = 4}, NULL));
    assert_int_equal(s.version, 4);
}

static void given_is_set_only_by_a_valid_value(void **state)
{
    (void)state;
    struct cli_option option = {.kind = CLI_COUNT, AT(count), CLI_GIVEN(__typeof__(s), given)};
    s.given = false;
    assert_non_null(assign(option, "x"));
    assert_false(s.given);
    assert_null(assign(option, "0"));
    assert_true(s.given);
}

static void count_is_a_number_in_its_range(void **state)
{
    (void)state;
    static const char *const invalid[] = {"", "0", "65", "-1", "+1", " 1", "1 ", "1.0", "0x1", "99999999999999999999"};
    struct cli_option option = {.kind = CLI_COUNT, AT(count), .min = 1, .max = 64};
    for (size_t i = 0; i < sizeof invalid / sizeof *invalid; i++)
        assert_string_equal(assign(option, invalid[i]), "a number from 1 to 64");
    assert_null(assign(option, "64"));
    assert_int_equal(s.count, 64);
}

static void count_without_maximum_fills_its_type(void **state)
{
    (void)state;
    assert_null(assign((struct cli_option){.kind = CLI_COUNT, AT(port)}, "65535"));
    assert_int_equal(s.port, 65535);
    assert_string_equal(assign((struct cli_option){.kind = CLI_COUNT, AT(port)}, "65536"), "a number from 0 to 65535");
    assert_null(assign((struct cli_option){.kind = CLI_COUNT, AT(seed)}, "18446744073709551615"));
    assert_true(s.seed == UINT64_MAX);
    assert_string_equal(assign((struct cli_option){.kind = CLI_COUNT, AT(seed)}, "18446744073709551616"),
                        "a number from 0 to 18446744073709551615");
}

static void duration_needs_a_unit_and_a_value_in_its_range(void **state)
{
    (void)state;
    struct cli_option option = {.kind = CLI_DURATION, AT(wait_ns), .min = 1};
    assert_null(assign(option, "1.5s"));
    assert_int_equal(s.wait_ns, 1500 * BIDE_MS);
    assert_string_equal(assign(option, "5"), "a duration with a unit, such as 5s or 5ms");
    assert_string_equal(assign(option, "never"), "a duration of more than 0, such as 200ms, 10s or 5m");
    assert_string_equal(assign(option, "0"), "a duration of more than 0, such as 200ms, 10s or 5m");
    assert_string_equal(assign(option, "1h30m"), "one number with one unit, such as 90m");
    assert_string_equal(assign(option, "20000d"), "a duration of at most 11574d, about 31 years");
    option.min = BIDE_MS;
    assert_string_equal(assign(option, "1us"), "a duration of 1ms or more, such as 200ms, 10s or 5m");
    option.max = 60 * BIDE_S;
    assert_string_equal(assign(option, "2m"), "a duration from 1ms to 1m, such as 200ms, 10s or 5m");
    option.min = 0;
    assert_string_equal(assign(option, "2m"), "a duration of at most 1m, such as 200ms, 10s or 5m");
    assert_null(assign(option, "0"));
    assert_int_equal(s.wait_ns, 0);
}

static void duration_may_be_never_if_the_row_says_so(void **state)
{
    (void)state;
    struct cli_option option = {.kind = CLI_DURATION, AT(wait_ns), .min = 1, .or_never = true};
    assert_null(assign(option, "never"));
    assert_true(s.wait_ns == BIDE_NEVER);
    assert_string_equal(assign(option, "x"), "a duration of more than 0, such as 200ms, 10s or 5m, or never");
}

static void choice_is_stored_as_its_index_and_word_as_its_text(void **state)
{
    (void)state;
    struct cli_option choice = {.kind = CLI_CHOICE, AT(colour), .choices = colours};
    struct cli_option word = {.kind = CLI_WORD, AT(word), .choices = colours};
    assert_null(assign(choice, "blue"));
    assert_int_equal(s.colour, BLUE);
    assert_string_equal(assign(choice, "Blue"), "red, green or blue");
    assert_null(assign(word, "green"));
    assert_ptr_equal(s.word, colours[GREEN]);
    assert_string_equal(assign(word, "gree"), "red, green or blue");
}

static void string_is_stored_unchanged(void **state)
{
    (void)state;
    static const char value[] = "any text";
    assert_null(assign((struct cli_option){.kind = CLI_STRING, AT(text)}, value));
    assert_ptr_equal(s.text, value);
}

static const char *read_into_port(void *at, const char *value)
{
    *(uint16_t *)at = (uint16_t)strlen(value);
    return NULL;
}

static const char *read_row_into_port(void *at, const char *value, const struct cli_option *option)
{
    *(uint16_t *)at = (uint16_t)(strlen(value) + strlen(option->name));
    return NULL;
}

static void function_gets_the_member_of_its_row(void **state)
{
    (void)state;
    assert_null(assign((struct cli_option){.read = read_into_port, AT(port)}, "abc"));
    assert_int_equal(s.port, 3);
    assert_null(assign((struct cli_option){.name = "name", .read_row = read_row_into_port, AT(port)}, "abc"));
    assert_int_equal(s.port, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flags_and_constants_take_no_value),
        cmocka_unit_test(given_is_set_only_by_a_valid_value),
        cmocka_unit_test(count_is_a_number_in_its_range),
        cmocka_unit_test(count_without_maximum_fills_its_type),
        cmocka_unit_test(duration_needs_a_unit_and_a_value_in_its_range),
        cmocka_unit_test(duration_may_be_never_if_the_row_says_so),
        cmocka_unit_test(choice_is_stored_as_its_index_and_word_as_its_text),
        cmocka_unit_test(string_is_stored_unchanged),
        cmocka_unit_test(function_gets_the_member_of_its_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
