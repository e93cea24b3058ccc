/* test_term.c - terminal output: bars, sparklines, the rewritten line, and when it is left out. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/term.h"

static const struct cli_term plain = {.width = 80}, blocks = {.width = 80, .utf8 = true};

static void bar_length_is_proportional_to_value(void **state)
{
    (void)state;
    char text[4 * 10 + 1];
    assert_string_equal(cli_bar(&plain, text, 10, 5, 10), "#####");
    assert_string_equal(cli_bar(&plain, text, 10, 10, 10), "##########");
    assert_string_equal(cli_bar(&plain, text, 10, 1e9, 10), "##########");
    assert_string_equal(cli_bar(&blocks, text, 10, 5, 10), "█████");
    assert_string_equal(cli_bar(&blocks, text, 2, 1.25, 2), "█▎");
    assert_string_equal(cli_bar(&blocks, text, 10, 1e300, 10), "██████████");
}

static void positive_value_draws_at_least_one_cell_and_zero_none(void **state)
{
    (void)state;
    char text[4 * 10 + 1];
    assert_string_equal(cli_bar(&plain, text, 10, 1e-9, 10), "#");
    assert_string_equal(cli_bar(&blocks, text, 10, 1e-9, 10), "▏");
    assert_string_equal(cli_bar(&plain, text, 10, 0, 10), "");
    assert_string_equal(cli_bar(&plain, text, 10, -1, 10), "");
    assert_string_equal(cli_bar(&plain, text, 10, NAN, 10), "");
    assert_string_equal(cli_bar(&plain, text, 10, 1, 0), "");
    assert_string_equal(cli_bar(&plain, text, 10, 1, NAN), "");
}

static void sparkline_has_one_cell_per_value(void **state)
{
    (void)state;
    char text[4 * 5 + 1];
    const double values[] = {0, 0.001, 4, 8, 9};
    assert_string_equal(cli_spark(&blocks, text, values, 5, 8), " ▁▄██");
    assert_string_equal(cli_spark(&plain, text, values, 5, 8), " .=@@");
    assert_string_equal(cli_spark(&plain, text, values, 0, 8), "");
}

/* Returns the bytes that rewriting the line writes. */
static char *rewrite_into_memory(struct cli_term term, const char *line)
{
    static char *text;
    size_t size;
    free(text);
    term.out = open_memstream(&text, &size);
    cli_rewrite_line(&term, line);
    fclose(term.out);
    return text;
}

static void rewritten_line_never_wraps(void **state)
{
    (void)state;
    struct cli_term term = {.live = true, .width = 10, .utf8 = true};
    assert_string_equal(rewrite_into_memory(term, "short"), "\rshort\033[K");
    assert_string_equal(rewrite_into_memory(term, ""), "\r\033[K");
    assert_string_equal(rewrite_into_memory(term, "0123456789abc"), "\r012345678\033[K");
    assert_string_equal(rewrite_into_memory(term, "█████████▏▏▏"), "\r█████████\033[K");
    term.colour = true;
    assert_string_equal(rewrite_into_memory(term, "\033[31m0123456789\033[0m"), "\r\033[31m012345678\033[0m\033[K");
    assert_string_equal(rewrite_into_memory(term, "\033[31m012\033[0m"), "\r\033[31m012\033[0m\033[K");
}

static void nothing_is_rewritten_on_a_stream_that_is_no_terminal(void **state)
{
    (void)state;
    assert_string_equal(rewrite_into_memory(plain, "words"), "");
}

static void file_has_no_colour_and_80_columns(void **state)
{
    (void)state;
    FILE *file = tmpfile();
    setenv("TERM", "xterm", 1);
    struct cli_term term = cli_term_detect(file);
    assert_false(term.live || term.colour);
    assert_int_equal(term.width, 80);
    assert_string_equal(cli_colour(&term, CLI_RED), "");
    fclose(file);
}

static void locale_variables_are_read_in_posix_order(void **state)
{
    (void)state;
    FILE *file = tmpfile();
    setenv("LC_ALL", "", 1);
    unsetenv("LC_CTYPE");
    setenv("LANG", "de_DE.UTF-8", 1);
    assert_true(cli_term_detect(file).utf8);
    setenv("LC_CTYPE", "C", 1);
    assert_false(cli_term_detect(file).utf8);
    setenv("LC_ALL", "C.utf8", 1);
    assert_true(cli_term_detect(file).utf8);
    fclose(file);
}

static void untrusted_text_cannot_control_the_terminal(void **state)
{
    (void)state;
    char text[128] = "";
    FILE *memory = fmemopen(text, sizeof text, "w");
    setenv("LC_ALL", "C.UTF-8", 1);
    cli_print_sanitized(memory, "caf\xc3\xa9 \033[31m\r\n\x7f \xc2\x9b \xff\xe2\x82 \xe2\x82\xac~");
    fputc('|', memory);
    setenv("LC_ALL", "C", 1);
    cli_print_sanitized(memory, "caf\xc3\xa9\t");
    fclose(memory);
    assert_string_equal(text, "caf\xc3\xa9 ?[31m??? ? ??? \xe2\x82\xac~|caf??");
}

/* Each rejected byte is one '?': an overlong '/', an overlong euro sign, a surrogate, U+110000, a cut-off character. */
static void only_well_formed_utf8_reaches_the_terminal(void **state)
{
    (void)state;
    char text[128] = "";
    FILE *memory = fmemopen(text, sizeof text, "w");
    setenv("LC_ALL", "C.UTF-8", 1);
    cli_print_sanitized(memory,
                        "\xe0\x80\xaf|\xf0\x82\x82\xac|\xed\xa0\x80|\xf4\x90\x80\x80|\xf0\x9f\x98\x80|\xe2\x82");
    fclose(memory);
    assert_string_equal(text, "???|????|???|????|\xf0\x9f\x98\x80|??");
}

static void columns_are_characters_not_bytes(void **state)
{
    (void)state;
    assert_int_equal(cli_text_columns(""), 0);
    assert_int_equal(cli_text_columns("caf\xc3\xa9 \xe2\x82\xac"), 6);
    assert_int_equal(cli_text_columns("\xff\xe2\x82"), 3); /* as printed: ??? */
}

static void assert_paragraph(struct cli_paragraph paragraph, const char *text, const char *expected)
{
    char printed[256] = "";
    paragraph.out = fmemopen(printed, sizeof printed, "w");
    paragraph.utf8 = true;
    cli_print_paragraph(&paragraph, text, strlen(text));
    fclose(paragraph.out);
    assert_string_equal(printed, expected);
}

static void paragraph_is_filled_up_to_the_right_margin(void **state)
{
    (void)state;
    struct cli_paragraph narrow = {.right = 10};
    assert_paragraph(narrow, "", "\n");
    assert_paragraph(narrow, " one  two\nthree ", "one two\nthree\n");
    assert_paragraph(narrow, "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9 \xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9 x",
                     "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9 \xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\nx\n");
    assert_paragraph((struct cli_paragraph){.at = 4, .left = 2, .right = 10}, "one two three", "one\n  two\n  three\n");
    assert_paragraph((struct cli_paragraph){.at = 4, .right = 10, .after_word = true}, "one two", " one\ntwo\n");
    assert_paragraph((struct cli_paragraph){.at = 8, .right = 10, .after_word = true}, "one two", "\none two\n");
}

static void long_word_is_broken_if_asked_for_and_backticks_have_no_width(void **state)
{
    (void)state;
    struct cli_paragraph narrow = {.right = 4, .left = 1};
    assert_paragraph(narrow, "abcdefgh i", "abcdefgh\n i\n");
    narrow.breaks_words = true;
    assert_paragraph(narrow, "abcdefgh i", "abcd\n efg\n h i\n");
    assert_paragraph((struct cli_paragraph){.right = 7, .hides_backticks = true}, "`abc` def", "abc def\n");
    assert_paragraph((struct cli_paragraph){.right = 7}, "`abc` def", "`abc`\ndef\n");
    assert_paragraph((struct cli_paragraph){.right = 9}, "a\033[31m b", "a?[31m b\n");
}

static void long_name_is_shortened_in_the_middle(void **state)
{
    char text[CLI_SHORT_SIZE(11)];
    (void)state;
    setenv("LC_ALL", "C.UTF-8", 1);
    assert_string_equal(cli_text_shorten(text, "", 11), "");
    assert_string_equal(cli_text_shorten(text, "abcdefghijk", 11), "abcdefghijk");
    assert_string_equal(cli_text_shorten(text, "abcdefghijkl", 11), "abcde…hijkl");
    assert_string_equal(cli_text_shorten(text, "ääääääöööööö", 11), "äääää…ööööö");
    assert_string_equal(cli_text_shorten(text, "a\033[1m\xff", 11), "a?[1m?");
    assert_string_equal(cli_text_shorten(text, "\033\033\033\033\033\033\xc3\xc3\xc3\xc3\xc3\xc3", 11), "?????…?????");
    setenv("LC_ALL", "C", 1);
    assert_string_equal(cli_text_shorten(text, "abcdefghijkl", 11), "abcd...ijkl");
    assert_string_equal(cli_text_shorten(text, "ä", 11), "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bar_length_is_proportional_to_value),
        cmocka_unit_test(positive_value_draws_at_least_one_cell_and_zero_none),
        cmocka_unit_test(sparkline_has_one_cell_per_value),
        cmocka_unit_test(rewritten_line_never_wraps),
        cmocka_unit_test(nothing_is_rewritten_on_a_stream_that_is_no_terminal),
        cmocka_unit_test(file_has_no_colour_and_80_columns),
        cmocka_unit_test(locale_variables_are_read_in_posix_order),
        cmocka_unit_test(untrusted_text_cannot_control_the_terminal),
        cmocka_unit_test(only_well_formed_utf8_reaches_the_terminal),
        cmocka_unit_test(columns_are_characters_not_bytes),
        cmocka_unit_test(long_name_is_shortened_in_the_middle),
        cmocka_unit_test(paragraph_is_filled_up_to_the_right_margin),
        cmocka_unit_test(long_word_is_broken_if_asked_for_and_backticks_have_no_width),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
