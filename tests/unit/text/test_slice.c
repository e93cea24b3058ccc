/* test_slice.c - trimming, comparing and splitting texts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include <string.h>

#include "text/slice.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))

static void assert_text(struct bide_text text, const char *expected)
{
    assert_non_null(text.at);
    assert_int_equal(text.length, strlen(expected));
    assert_memory_equal(text.at, expected, text.length);
}

static void trim_removes_only_the_blanks_at_both_ends(void **state)
{
    static const struct {
        const char *text, *blanks, *expected;
    } cases[] = {
        {"a", TEXT_OWS, "a"},
        {" \t a b\t ", TEXT_OWS, "a b"},
        {"", TEXT_OWS, ""},
        {" \t ", TEXT_OWS, ""},
        {" a\r\n", TEXT_OWS, "a\r\n"}, /* CR and LF are not OWS */
        {"\v\f a\r\n", TEXT_BLANKS, "a"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_text(text_trim(text_from(cases[i].text), cases[i].blanks), cases[i].expected);
}

static void trim_keeps_a_nul_byte(void **state)
{
    (void)state;
    struct bide_text text = text_trim((struct bide_text){" \0 ", 3}, TEXT_BLANKS);
    assert_int_equal(text.length, 1);
    assert_int_equal(text.at[0], 0);
}

static void trim_makes_an_absent_text_empty(void **state)
{
    (void)state;
    assert_text(text_trim(text_from(NULL), TEXT_OWS), "");
}

static void a_text_equals_a_word_of_the_same_bytes_only(void **state)
{
    (void)state;
    assert_true(text_equals(text_from("never"), "never"));
    assert_true(text_equals((struct bide_text){"never mind", 5}, "never"));
    assert_true(text_equals(text_from(""), ""));
    assert_false(text_equals(text_from("neve"), "never"));
    assert_false(text_equals(text_from("nevers"), "never"));
    assert_false(text_equals(text_from("Never"), "never"));
    assert_false(text_equals((struct bide_text){0}, ""));
}

static void items_are_trimmed_and_the_rest_is_absent_after_the_last(void **state)
{
    static const char *const expected[] = {"a b", "", "c", ""};
    struct bide_text rest = text_from(" a b ,,c\t, ");
    size_t i = 0;
    (void)state;
    for (; rest.at != NULL && i < COUNT(expected); i++)
        assert_text(text_take_item(&rest, ',', TEXT_OWS), expected[i]);
    assert_null(rest.at);
    assert_int_equal(i, COUNT(expected));
}

static void a_word_is_compared_without_case_and_with_dash_equal_to_underscore(void **state)
{
    (void)state;
    assert_true(text_equals_word(text_from("on-Empty"), "on_empty"));
    assert_true(text_equals_word(text_from("on_empty"), "on_empty"));
    assert_true(text_equals_word((struct bide_text){"yes, no", 3}, "yes"));
    assert_false(text_equals_word(text_from("on empty"), "on_empty"));
    assert_false(text_equals_word(text_from("on_empt"), "on_empty"));
    assert_false(text_equals_word(text_from("on_empty_"), "on_empty"));
    assert_false(text_equals_word((struct bide_text){0}, ""));
}

static void an_empty_list_has_one_empty_item(void **state)
{
    struct bide_text rest = text_from("");
    (void)state;
    assert_text(text_take_item(&rest, ',', TEXT_OWS), "");
    assert_null(rest.at);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trim_removes_only_the_blanks_at_both_ends),
        cmocka_unit_test(trim_keeps_a_nul_byte),
        cmocka_unit_test(trim_makes_an_absent_text_empty),
        cmocka_unit_test(a_text_equals_a_word_of_the_same_bytes_only),
        cmocka_unit_test(a_word_is_compared_without_case_and_with_dash_equal_to_underscore),
        cmocka_unit_test(items_are_trimmed_and_the_rest_is_absent_after_the_last),
        cmocka_unit_test(an_empty_list_has_one_empty_item),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
