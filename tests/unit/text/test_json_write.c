/* test_json_write.c - a JSON object in a bounded buffer: escaped, whole or not at all. jansson reads it back. */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "text/json_write.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))

static struct text_json open_object(char *buffer, size_t size)
{
    struct text_json json = text_json_to_buffer(buffer, size);
    text_json_object(&json, NULL);
    return json;
}

static size_t close_object(struct text_json *json)
{
    text_json_end(json);
    return text_json_finish(json);
}

static void an_object_without_members_is_two_braces(void **state)
{
    char text[8];
    struct text_json json = open_object(text, sizeof text);
    (void)state;
    assert_int_equal(close_object(&json), 2);
    assert_string_equal(text, "{}");
}

static void members_are_separated_by_commas(void **state)
{
    char text[128];
    struct text_json json = open_object(text, sizeof text);
    (void)state;
    text_json_string(&json, "a", "x");
    text_json_integer(&json, "b", -7);
    text_json_bool(&json, "c", true);
    text_json_seconds(&json, "d", 2500);
    assert_int_equal(close_object(&json), strlen("{\"a\":\"x\",\"b\":-7,\"c\":true,\"d\":2.5}"));
    assert_string_equal(text, "{\"a\":\"x\",\"b\":-7,\"c\":true,\"d\":2.5}");
}

static void integers_reach_both_ends_of_64_bits(void **state)
{
    char text[64];
    (void)state;
    struct text_json json = open_object(text, sizeof text);
    text_json_integer(&json, "a", INT64_MIN);
    text_json_integer(&json, "b", INT64_MAX);
    close_object(&json);
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
        struct text_json json = open_object(text, sizeof text);
        text_json_seconds(&json, "s", table[i].ms);
        close_object(&json);
        assert_string_equal(text, table[i].want);
    }
}

/* Each byte that can stand in a C string, alone: what is written is read back by another implementation. */
static void every_ascii_character_reads_back(void **state)
{
    (void)state;
    for (int c = 1; c < 128; c++) {
        char value[] = {(char)c, '\0'}, text[32];
        struct text_json json = open_object(text, sizeof text);
        text_json_string(&json, "v", value);
        size_t length = close_object(&json);
        json_t *back = json_loadb(text, length, 0, NULL);
        assert_non_null(back);
        assert_string_equal(json_string_value(json_object_get(back, "v")), value);
        json_decref(back);
    }
}

static void control_characters_are_escaped_and_others_are_not(void **state)
{
    char text[128];
    struct text_json json = open_object(text, sizeof text);
    (void)state;
    text_json_string(&json, "v", "\b\f\n\r\t\x01\x1f\"\\/\x7fgr\xc3\xbc\xc3\x9f");
    close_object(&json);
    assert_string_equal(text, "{\"v\":\"\\b\\f\\n\\r\\t\\u0001\\u001f\\\"\\\\/\\u007fgr\xc3\xbc\xc3\x9f\"}");
}

static void each_byte_that_is_not_utf8_becomes_the_replacement_character(void **state)
{
    char text[64];
    struct text_json json = open_object(text, sizeof text);
    (void)state;
    text_json_string(&json, "v", "a\xff\xc3|\xed\xa0\x80"); /* a lone byte, a cut character, a surrogate */
    assert_true(close_object(&json) > 0);
    assert_string_equal(text, "{\"v\":\"a\xef\xbf\xbd\xef\xbf\xbd|\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"}");
}

static void an_object_that_does_not_fit_is_not_written(void **state)
{
    char text[64];
    (void)state;
    for (size_t size = 0; size <= 20; size++) {
        memset(text, 'x', sizeof text);
        struct text_json json = open_object(text, size);
        text_json_string(&json, "v", "\n\xc3\xbc"); /* {"v":"\nü"}: 12 bytes and the NUL */
        assert_int_equal(close_object(&json), size > 12 ? 12 : 0);
        assert_int_equal(text[size], 'x');
        if (size > 0)
            assert_int_equal(strlen(text), size > 12 ? 12 : 0);
    }
}

static void containers_nest_and_are_indented(void **state)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    (void)state;
    struct text_json json = text_json_to_stream(out, TEXT_JSON_INDENTED);
    text_json_object(&json, NULL);
    text_json_array(&json, "rows");
    text_json_object(&json, NULL);
    text_json_string(&json, "a \"name\"", NULL);
    text_json_unsigned(&json, "n", UINT64_MAX);
    text_json_line(&json);
    text_json_array(&json, "series");
    text_json_real(&json, NULL, 0.5, 6);
    text_json_array(&json, NULL);
    text_json_integer(&json, NULL, 1);
    text_json_integer(&json, NULL, 2);
    text_json_end(&json);
    text_json_end(&json);
    text_json_end(&json);
    text_json_end(&json);
    text_json_object(&json, "empty");
    text_json_end(&json);
    text_json_end(&json);
    size_t length = text_json_finish(&json);
    fclose(out);
    assert_string_equal(text, "{\n"
                              "  \"rows\": [\n"
                              "    {\n"
                              "      \"a \\\"name\\\"\": null,\n"
                              "      \"n\": 18446744073709551615,\n"
                              "      \"series\": [0.5, [1, 2]]\n"
                              "    }\n"
                              "  ],\n"
                              "  \"empty\": {}\n"
                              "}\n");
    assert_int_equal(length, size);
    free(text);
}

static void reals_are_the_same_in_every_locale(void **state)
{
    static const struct {
        double value;
        int digits;
        const char *want;
    } table[] = {{0, 6, "0"},      {1.5, 6, "1.5"},       {-1e300, 6, "-1e+300"},           {1.0 / 3, 3, "0.333"},
                 {NAN, 6, "null"}, {INFINITY, 6, "null"}, {0.1, 17, "0.10000000000000001"}, {2.5e-9, 6, "2.5e-09"}};
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        char text[64];
        struct text_json json = text_json_to_buffer(text, sizeof text);
        text_json_real(&json, NULL, table[i].value, table[i].digits);
        assert_true(text_json_finish(&json) > 0);
        assert_string_equal(text, table[i].want);
    }
}

static void an_instant_is_written_in_utc_with_milliseconds(void **state)
{
    static const struct {
        struct timespec time;
        const char *want;
    } table[] = {{{0, 0}, "\"1970-01-01T00:00:00.000Z\""},
                 {{1770000000, 999999999}, "\"2026-02-02T02:40:00.999Z\""},
                 {{951782399, 1000000}, "\"2000-02-28T23:59:59.001Z\""},
                 {{-1, 0}, "\"1969-12-31T23:59:59.000Z\""},
                 {{INT64_MAX, 0}, "null"}};
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        char text[64];
        struct text_json json = text_json_to_buffer(text, sizeof text);
        text_json_time(&json, NULL, table[i].time);
        assert_true(text_json_finish(&json) > 0);
        assert_string_equal(text, table[i].want);
    }
}

static void a_stream_that_cannot_be_written_fails_the_text(void **state)
{
    FILE *full = fopen("/dev/full", "w");
    (void)state;
    setvbuf(full, NULL, _IONBF, 0);
    struct text_json json = text_json_to_stream(full, TEXT_JSON_LINE);
    text_json_object(&json, NULL);
    text_json_end(&json);
    assert_int_equal(text_json_finish(&json), 0);
    fclose(full);
}

/* The program learns the cause from its last fflush, not from the write that failed first. */
static void a_failed_stream_still_fails_when_it_is_flushed(void **state)
{
    FILE *full = fopen("/dev/full", "w");
    (void)state;
    struct text_json json = text_json_to_stream(full, TEXT_JSON_LINE);
    text_json_array(&json, NULL);
    for (int i = 0; i < 2 * BUFSIZ; i++)
        text_json_integer(&json, NULL, 1);
    text_json_end(&json);
    assert_int_equal(text_json_finish(&json), 0);
    errno = 0;
    assert_int_not_equal(fflush(full), 0);
    assert_int_equal(errno, ENOSPC);
    fclose(full);
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
        cmocka_unit_test(each_byte_that_is_not_utf8_becomes_the_replacement_character),
        cmocka_unit_test(an_object_that_does_not_fit_is_not_written),
        cmocka_unit_test(containers_nest_and_are_indented),
        cmocka_unit_test(reals_are_the_same_in_every_locale),
        cmocka_unit_test(an_instant_is_written_in_utc_with_milliseconds),
        cmocka_unit_test(a_stream_that_cannot_be_written_fails_the_text),
        cmocka_unit_test(a_failed_stream_still_fails_when_it_is_flushed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
