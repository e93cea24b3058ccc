/* test_lines.c - patterns and hints in lines of output, however the output is split (app/run/lines.c). */
#include "run/lines.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct run_lines lines;
static struct run_patterns patterns;

static void search_for(const char *pattern)
{
    memset(&lines, 0, sizeof lines);
    run_patterns_free(&patterns);
    if (pattern != NULL)
        assert_null(run_patterns_add(&patterns, pattern));
    lines.patterns = pattern != NULL ? &patterns : NULL;
    lines.hints = true;
}

static void add(const char *text)
{
    run_lines_add(&lines, text, strlen(text));
}

static int64_t hint_of(const char *text)
{
    search_for(NULL);
    add(text);
    run_lines_end(&lines);
    return lines.hint.kind == BIDE_HINT_WAIT ? lines.hint.wait_ns : -1;
}

/* ---- patterns ---- */

static void pattern_is_found_however_output_is_split(void **state)
{
    static const char text[] = "first\nsecond: connection reset by peer\r\nthird";
    for (size_t piece = 1; piece <= sizeof text; piece++) {
        search_for("^second.*peer$");
        for (size_t at = 0; at < strlen(text); at += piece)
            run_lines_add(&lines, text + at, at + piece < strlen(text) ? piece : strlen(text) - at);
        assert_string_equal(lines.matched, "^second.*peer$");
    }
}

static void incomplete_last_line_is_searched_at_the_end(void **state)
{
    search_for("no newline$");
    add("there is no newline");
    assert_null(lines.matched);
    run_lines_end(&lines);
    assert_non_null(lines.matched);
}

static void pattern_does_not_match_across_lines(void **state)
{
    search_for("one.*two");
    add("one\ntwo\n");
    run_lines_end(&lines);
    assert_null(lines.matched);
}

static void line_may_contain_nul_bytes(void **state)
{
    search_for("needle");
    run_lines_add(&lines, "a\0needle\n", 9);
    assert_non_null(lines.matched);
}

/* One long line: filler, the needle across the border between two parts, filler. */
static void match_in_overlong_line_is_found_at_any_position(void **state)
{
    static char filler[3 * RUN_LINE_MAX];
    memset(filler, 'x', sizeof filler);
    for (size_t before = RUN_LINE_MAX - 8; before < RUN_LINE_MAX + 8; before++) {
        search_for("needle");
        run_lines_add(&lines, filler, before);
        add("needle");
        run_lines_add(&lines, filler, sizeof filler);
        add("\n");
        assert_non_null(lines.matched);
    }
}

static void anchors_match_ends_of_line_not_of_part(void **state)
{
    static char filler[4 * RUN_LINE_MAX];
    memset(filler, 'x', sizeof filler);
    for (int at_end = 0; at_end < 2; at_end++) {
        search_for(at_end ? "xyyyy$" : "^y");
        add(at_end ? "" : "z");
        run_lines_add(&lines, filler, sizeof filler);
        assert_null(lines.matched);
        add("yyyy");
        add("x\nz");
        assert_null(lines.matched);
        add(at_end ? "xyyyy\n" : "\ny\n");
        assert_non_null(lines.matched);
    }
}

static void invalid_pattern_is_reported_with_regex_error(void **state)
{
    struct run_patterns none = {.count = 0};
    assert_non_null(strstr(run_patterns_add(&none, "a(b"), "Unmatched"));
    assert_int_equal(none.count, 0);
}

static void too_many_patterns_are_rejected(void **state)
{
    struct run_patterns many = {.count = 0};
    for (unsigned i = 0; i < RUN_PATTERNS_MAX; i++)
        assert_null(run_patterns_add(&many, "x"));
    assert_non_null(run_patterns_add(&many, "x"));
    run_patterns_free(&many);
    assert_int_equal(many.count, 0);
}

static void reset_discards_match_hint_and_partial_line(void **state)
{
    search_for("x");
    add("x\nretry-after: 5\nhalf a li");
    run_lines_reset(&lines);
    assert_null(lines.matched);
    assert_int_equal(lines.hint.kind, BIDE_HINT_NONE);
    add("ne\n");
    run_lines_end(&lines);
    assert_null(lines.matched);
}

/* ---- hints ---- */

static void hint_is_a_whole_line_in_any_case(void **state)
{
    assert_int_equal(hint_of("retry-after: 5\n"), 5 * BIDE_S);
    assert_int_equal(hint_of("starting\nRetry-After:7\r\nmore\n"), 7 * BIDE_S);
    assert_int_equal(hint_of("  RETRY-AFTER: 2"), 2 * BIDE_S);
    assert_int_equal(hint_of("retry-after-ms: 250\n"), 250 * BIDE_MS);
    assert_int_equal(hint_of("please retry-after: 5\n"), -1);
    assert_int_equal(hint_of("5\n"), -1);
}

static void longest_hint_counts(void **state)
{
    assert_int_equal(hint_of("retry-after: 5\nretry-after: 9\nretry-after: 1\n"), 9 * BIDE_S);
    assert_int_equal(hint_of("retry-after: 1\nretry-after-ms: 1500\n"), 1500 * BIDE_MS);
}

static void malformed_hints_are_parsed_like_header_fields(void **state)
{
    assert_int_equal(hint_of("retry-after: -1\n"), -1);
    assert_int_equal(hint_of("retry-after: +5\n"), -1);
    assert_int_equal(hint_of("retry-after: 0x10\n"), -1);
    assert_int_equal(hint_of("retry-after: 1e3\n"), -1);
    assert_int_equal(hint_of("retry-after: 120s\n"), -1);
    assert_int_equal(hint_of("retry-after:\n"), -1);
    assert_int_equal(hint_of("retry-after: 1.5\n"), 2 * BIDE_S);
    assert_true(hint_of("retry-after: 18446744073709551616\n") > BIDE_DURATION_MAX);
    assert_int_equal(hint_of("retry-after: Sun, 06 Nov 1994 08:49:37 GMT\n"), 0);
}

static void bare_number_is_a_hint_on_the_hint_descriptor(void **state)
{
    search_for(NULL);
    lines.bare = true;
    add("3");
    run_lines_end(&lines);
    assert_int_equal(lines.hint.wait_ns, 3 * BIDE_S);
}

static void hints_are_ignored_when_disabled(void **state)
{
    search_for("x");
    lines.hints = false;
    add("retry-after: 5\n");
    assert_int_equal(lines.hint.kind, BIDE_HINT_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pattern_is_found_however_output_is_split),
        cmocka_unit_test(incomplete_last_line_is_searched_at_the_end),
        cmocka_unit_test(pattern_does_not_match_across_lines),
        cmocka_unit_test(line_may_contain_nul_bytes),
        cmocka_unit_test(match_in_overlong_line_is_found_at_any_position),
        cmocka_unit_test(anchors_match_ends_of_line_not_of_part),
        cmocka_unit_test(invalid_pattern_is_reported_with_regex_error),
        cmocka_unit_test(too_many_patterns_are_rejected),
        cmocka_unit_test(reset_discards_match_hint_and_partial_line),
        cmocka_unit_test(hint_is_a_whole_line_in_any_case),
        cmocka_unit_test(longest_hint_counts),
        cmocka_unit_test(malformed_hints_are_parsed_like_header_fields),
        cmocka_unit_test(bare_number_is_a_hint_on_the_hint_descriptor),
        cmocka_unit_test(hints_are_ignored_when_disabled),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    run_patterns_free(&patterns);
    return failed;
}
