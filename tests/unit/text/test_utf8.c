/* test_utf8.c - well-formed UTF-8, by RFC 3629 section 4 and its neighbours. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include <string.h>

#include "text/utf8.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))

static void a_well_formed_character_has_its_length(void **state)
{
    static const char *const characters[] = {"a",
                                             "\x7f",
                                             "\xc2\x80",
                                             "\xdf\xbf",
                                             "\xe0\xa0\x80",
                                             "\xed\x9f\xbf",
                                             "\xee\x80\x80",
                                             "\xef\xbf\xbf",
                                             "\xf0\x90\x80\x80",
                                             "\xf4\x8f\xbf\xbf"};
    (void)state;
    for (size_t i = 0; i < COUNT(characters); i++) {
        size_t length = strlen(characters[i]);
        assert_int_equal(text_utf8_length(characters[i], length), length);
        assert_int_equal(text_utf8_length(characters[i], length + 1), length); /* the NUL behind it does not matter */
        for (size_t cut = 0; cut < length; cut++)
            assert_int_equal(text_utf8_length(characters[i], cut), 0);
    }
}

static void a_malformed_character_has_length_zero(void **state)
{
    static const char *const bytes[] = {
        "\x80",             /* a continuation byte alone */
        "\xc0\xaf",         /* overlong */
        "\xc1\xbf",         /* overlong */
        "\xe0\x9f\xbf",     /* overlong */
        "\xf0\x8f\xbf\xbf", /* overlong */
        "\xed\xa0\x80",     /* a surrogate */
        "\xed\xbf\xbf",     /* a surrogate */
        "\xf4\x90\x80\x80", /* above U+10FFFF */
        "\xf5\x80\x80\x80", /* above U+10FFFF */
        "\xff",
        "\xc2\x20",         /* the second byte is not a continuation byte */
        "\xe1\x80\x20",     /* nor the third here */
        "\xf1\x80\x80\xc0", /* nor the fourth here */
    };
    (void)state;
    for (size_t i = 0; i < COUNT(bytes); i++)
        assert_int_equal(text_utf8_length(bytes[i], strlen(bytes[i])), 0);
}

/* Decodes each code point's own encoding, and every two-byte string against the ranges written out. */
static void every_code_point_is_accepted_except_surrogates(void **state)
{
    (void)state;
    for (uint32_t code = 0x80; code <= 0x10ffff; code++) {
        unsigned char b[4];
        size_t length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
        for (size_t i = length; i-- > 1;)
            b[i] = (unsigned char)(0x80 | (code >> 6 * (length - 1 - i) & 0x3f));
        b[0] = (unsigned char)((0xf00 >> length & 0xff) | code >> 6 * (length - 1));
        size_t want = code >= 0xd800 && code <= 0xdfff ? 0 : length;
        if (text_utf8_length((const char *)b, length) != want)
            fail_msg("U+%04X has length %zu", code, text_utf8_length((const char *)b, length));
    }
}

static void a_text_is_valid_if_each_of_its_characters_is(void **state)
{
    static const char text[] = "a\xc3\xbc\0b";
    (void)state;
    assert_true(text_utf8_is_valid("", 0));
    assert_true(text_utf8_is_valid(text, sizeof text - 1));
    assert_false(text_utf8_is_valid(text, 2)); /* cut in the second character */
    assert_false(text_utf8_is_valid("a\xc0\x80", 3));
}

static void one_byte_order_mark_is_skipped(void **state)
{
    struct bide_text text = text_utf8_skip_mark((struct bide_text){"\xef\xbb\xbf\xef\xbb\xbf", 6});
    (void)state;
    assert_int_equal(text.length, 3);
    assert_int_equal(text_utf8_skip_mark(text).length, 0);
    assert_int_equal(text_utf8_skip_mark((struct bide_text){"\xef\xbb\xbf", 2}).length, 2);
    assert_int_equal(text_utf8_skip_mark((struct bide_text){"abcd", 4}).length, 4);
}

static void control_characters_are_not_printable(void **state)
{
    (void)state;
    static const char *const controls[] = {"\t", "\033", "\x7f", "\xc2\x80", "\xc2\x9f", "\x80", "\xff"};
    for (size_t i = 0; i < sizeof controls / sizeof *controls; i++)
        assert_int_equal(text_utf8_printable(controls[i], strlen(controls[i])), 0);
    assert_int_equal(text_utf8_printable("~", 1), 1);
    assert_int_equal(text_utf8_printable("\xc2\xa0", 2), 2);
    assert_int_equal(text_utf8_printable("\xe2\x82\xac", 3), 3);
}

static void each_byte_that_begins_no_character_counts_as_one(void **state)
{
    (void)state;
    assert_int_equal(text_utf8_count("", 0), 0);
    assert_int_equal(text_utf8_count("a\xe2\x82\xac\xe2\x82", 6), 4);
    assert_int_equal(text_utf8_prefix("a\xe2\x82\xac\xe2\x82", 6, 2), 4);
    assert_int_equal(text_utf8_prefix("a\xe2\x82\xac\xe2\x82", 6, 3), 5);
    assert_int_equal(text_utf8_prefix("abc", 3, 9), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_well_formed_character_has_its_length),
        cmocka_unit_test(a_malformed_character_has_length_zero),
        cmocka_unit_test(every_code_point_is_accepted_except_surrogates),
        cmocka_unit_test(a_text_is_valid_if_each_of_its_characters_is),
        cmocka_unit_test(one_byte_order_mark_is_skipped),
        cmocka_unit_test(control_characters_are_not_printable),
        cmocka_unit_test(each_byte_that_begins_no_character_counts_as_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
