/* test_json_write.c - a JSON object in a bounded buffer: escaped, whole or not at all. jansson reads it back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include <jansson.h>
#include <string.h>

#include "text/json_write.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))

static void an_object_without_members_is_two_braces(void **state)
{
    char text[8];
    struct text_json json = text_json_open(text, sizeof text);
    (void)state;
    assert_int_equal(text_json_close(&json), 2);
    assert_string_equal(text, "{}");
}

static void members_are_separated_by_commas(void **state)
{
    char text[128];
    struct text_json json = text_json_open(text, sizeof text);
    (void)state;
    text_json_string(&json, "a", "x");
    text_json_integer(&json, "b", -7);
    text_json_bool(&json, "c", true);
    text_json_seconds(&json, "d", 2500);
    assert_int_equal(text_json_close(&json), strlen("{\"a\":\"x\",\"b\":-7,\"c\":true,\"d\":2.5}"));
    assert_string_equal(text, "{\"a\":\"x\",\"b\":-7,\"c\":true,\"d\":2.5}");
}

static void integers_reach_both_ends_of_64_bits(void **state)
{
    char text[64];
    (void)state;
    struct text_json json = text_json_open(text, sizeof text);
    text_json_integer(&json, "a", INT64_MIN);
    text_json_integer(&json, "b", INT64_MAX);
    text_json_close(&json);
    assert_string_equal(text, "{\"a\":-9223372036854775808,\"b\":9223372036854775807}");
}

static void seconds_have_no_trailing_zeros(void **state)
{
    static const struct {
        int64_t ms;
        const char *want;
    } table[] = {{0, "{\"s\":0}"},       {1, "{\"s\":0.001}"},   {10, "{\"s\":0.01}"}, {100, "{\"s\":0.1}"},
                 {1050, "{\"s\":1.05}"}, {999, "{\"s\":0.999}"}, {2000, "{\"s\":2}"},  {120034, "{\"s\":120.034}"}};
    char text[64];
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        struct text_json json = text_json_open(text, sizeof text);
        text_json_seconds(&json, "s", table[i].ms);
        text_json_close(&json);
        assert_string_equal(text, table[i].want);
    }
}

/* Each byte that can stand in a C string, alone: what is written is read back by another implementation. */
static void every_ascii_character_reads_back(void **state)
{
    (void)state;
    for (int c = 1; c < 128; c++) {
        char value[] = {(char)c, '\0'}, text[32];
        struct text_json json = text_json_open(text, sizeof text);
        text_json_string(&json, "v", value);
        size_t length = text_json_close(&json);
        json_t *back = json_loadb(text, length, 0, NULL);
        assert_non_null(back);
        assert_string_equal(json_string_value(json_object_get(back, "v")), value);
        json_decref(back);
    }
}

static void control_characters_are_escaped_and_others_are_not(void **state)
{
    char text[128];
    struct text_json json = text_json_open(text, sizeof text);
    (void)state;
    text_json_string(&json, "v", "\b\f\n\r\t\x01\x1f\"\\/\x7fgr\xc3\xbc\xc3\x9f");
    text_json_close(&json);
    assert_string_equal(text, "{\"v\":\"\\b\\f\\n\\r\\t\\u0001\\u001f\\\"\\\\/\x7fgr\xc3\xbc\xc3\x9f\"}");
}

static void a_string_that_is_not_utf8_makes_the_whole_object_empty(void **state)
{
    char text[64];
    struct text_json json = text_json_open(text, sizeof text);
    (void)state;
    text_json_string(&json, "v", "a\xff");
    text_json_integer(&json, "n", 1);
    assert_int_equal(text_json_close(&json), 0);
    assert_string_equal(text, "");
}

static void an_object_that_does_not_fit_is_not_written(void **state)
{
    char text[64];
    (void)state;
    for (size_t size = 0; size <= 20; size++) {
        memset(text, 'x', sizeof text);
        struct text_json json = text_json_open(text, size);
        text_json_string(&json, "v", "\n\xc3\xbc"); /* {"v":"\nü"}: 12 bytes and the NUL */
        assert_int_equal(text_json_close(&json), size > 12 ? 12 : 0);
        assert_int_equal(text[size], 'x');
        if (size > 0)
            assert_int_equal(strlen(text), size > 12 ? 12 : 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_object_without_members_is_two_braces),
        cmocka_unit_test(members_are_separated_by_commas),
        cmocka_unit_test(integers_reach_both_ends_of_64_bits),
        cmocka_unit_test(seconds_have_no_trailing_zeros),
        cmocka_unit_test(every_ascii_character_reads_back),
        cmocka_unit_test(control_characters_are_escaped_and_others_are_not),
        cmocka_unit_test(a_string_that_is_not_utf8_makes_the_whole_object_empty),
        cmocka_unit_test(an_object_that_does_not_fit_is_not_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
