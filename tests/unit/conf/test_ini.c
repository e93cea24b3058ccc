/* test_ini.c - the reader of INI files: headings, values, skipped sections, continued lines, and lack of memory. */
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "conf/ini.h"

static struct conf_ini ini;
static struct conf_diagnostics diagnostics;
static char errors[CONF_ERROR_MAX];

static bool is_list(const char *key)
{
    return strcmp(key, "list") == 0;
}

/* [skip] is skipped; in [free] every value may continue, elsewhere only `list`. */
static const struct conf_ini_syntax *syntax_of(const char *heading)
{
    static const struct conf_ini_syntax usual = {"=:", is_list}, free_text = {"=", NULL};
    if (heading != NULL && strcmp(heading, "skip") == 0)
        return NULL;
    return heading != NULL && strcmp(heading, "free") == 0 ? &free_text : &usual;
}

/* Returns true if the text was read without a diagnostic. */
static bool read_text(const char *text)
{
    conf_ini_free(&ini);
    conf_diagnostics_begin(&diagnostics, errors, "f");
    bool read = conf_ini_read(&ini, (struct bide_text){text, strlen(text)}, syntax_of, &diagnostics);
    return conf_diagnostics_finish(&diagnostics) && read;
}

static void assert_entry(size_t i, const char *key, const char *value)
{
    assert_true(i < ini.entries);
    assert_string_equal(ini.entry[i].key, key);
    assert_string_equal(ini.entry[i].value, value);
}

static void value_begins_after_the_first_separator(void **state)
{
    (void)state;
    assert_true(read_text("[a]\nk = x = y\nl: z = 1 ; comment\nempty =\n#k = 2\nurl = http://h/#part"));
    assert_int_equal(ini.entries, 4);
    assert_entry(0, "k", "x = y");
    assert_entry(1, "l", "z = 1");
    assert_entry(2, "empty", "");
    assert_entry(3, "url", "http://h/#part");
    assert_int_equal(ini.entry[3].line, 6);
    assert_true(read_text("[free]\na:b = c")); /* there only = separates */
    assert_entry(0, "a:b", "c");
}

static void heading_has_a_kind_and_a_name(void **state)
{
    (void)state;
    assert_true(read_text("[ policy  pay ments ]\n[policy]\n"));
    assert_string_equal(ini.section[0].heading, "policy  pay ments");
    assert_string_equal(conf_ini_name_after(ini.section[0].heading, "policy"), "pay ments");
    assert_string_equal(conf_ini_name_after("policy", "policy"), "");
    assert_null(conf_ini_name_after("policyx", "policy"));
    assert_null(conf_ini_name_after("pol", "policy"));
    assert_null(conf_ini_name_after("other policy", "policy"));
}

static void malformed_line_is_reported(void **state)
{
    static const struct {
        const char *text, *error;
    } rows[] = {{"k = v", "f:1: k = v: must follow a [section]"},
                {"[a]\nword", "f:2: word: must be key = value"},
                {"[a]\n = v", "f:2: = v: must be key = value"},
                {"[a", "f:1: [a: must be [section] and nothing after it"},
                {"[a] b", "f:1: [a] b: must be [section] and nothing after it"},
                {"[a]\nk = \xff", "f:2: k = ?: must be UTF-8"}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_false(read_text(rows[i].text));
        assert_string_equal(errors, rows[i].error);
    }
    assert_true(read_text("[a]\n# \xff is allowed in a comment"));
}

static void lines_of_a_skipped_section_are_not_read(void **state)
{
    (void)state;
    assert_true(read_text("[a]\nk = 1\n[skip]\nno key\n= no value\nk = 2\n[b]\nk = 3\n"));
    assert_int_equal(ini.sections, 3);
    assert_int_equal(ini.section[1].count, 0);
    assert_int_equal(ini.section[2].first, 1);
    assert_int_equal(ini.entries, 2);
    assert_entry(1, "k", "3");
}

static void indented_line_continues_a_value_where_the_syntax_allows_it(void **state)
{
    (void)state;
    assert_true(read_text("[a]\nlist = 1,\n  2, # two\n\t3\nk = v"));
    assert_entry(0, "list", "1, 2, 3");
    assert_true(read_text("[a]\nlist =\n  1"));
    assert_entry(0, "list", "1");
    assert_false(read_text("[a]\nk = 1\n  2"));
    assert_string_equal(errors, "f:3: 2: must be key = value");
    assert_false(read_text("[a]\nlist = 1\n2")); /* not indented */
    assert_false(read_text("[a]\nlist = 1\n[b]\n  2"));
}

static void every_value_may_continue_without_may_continue(void **state)
{
    (void)state;
    assert_true(read_text("[free]\nany = one\n  two\nother = a\n b"));
    assert_entry(0, "any", "one two");
    assert_entry(1, "other", "a b");
}

/* ---- memory ---- */

static int allocations_left = -1; /* until a growing array fails; -1: none fails */

/* Replaces realloc, with which the arrays grow; by malloc, so that it also works with the allocator of a sanitizer. */
void *realloc(void *old, size_t size)
{
    if (allocations_left >= 0 && allocations_left-- == 0)
        return NULL;
    void *grown = malloc(size);
    size_t kept = old == NULL ? 0 : malloc_usable_size(old);
    if (grown != NULL && old != NULL)
        memcpy(grown, old, kept < size ? kept : size);
    if (grown != NULL)
        free(old);
    return grown;
}

/* A sanitizer ends the process otherwise. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "allocator_may_return_null=1";
}

static void lack_of_memory_is_reported_and_ends_the_reading(void **state)
{
    char text[2048] = "[a]\n";
    int failures = 0;
    (void)state;
    for (int i = 0; i < 40; i++) /* more entries than the first room */
        strcat(text, "key = value\n");
    for (bool failed = true; failed; failures += failed) {
        allocations_left = failures;
        bool read = read_text(text);
        failed = allocations_left < 0;
        allocations_left = -1;
        assert_int_equal(read, !failed);
        if (failed)
            assert_non_null(strstr(errors, ": out of memory"));
    }
    assert_int_equal(failures, 3); /* sections, entries, more entries */
    assert_int_equal(ini.entries, 40);
}

static void text_too_large_for_the_memory_is_reported(void **state)
{
    (void)state;
    conf_ini_free(&ini);
    conf_diagnostics_begin(&diagnostics, errors, "f");
    assert_false(conf_ini_read(&ini, (struct bide_text){"[a]", SIZE_MAX / 2}, syntax_of, &diagnostics));
    assert_false(conf_diagnostics_finish(&diagnostics));
    assert_string_equal(errors, "f: out of memory");
}

static int free_ini(void **state)
{
    (void)state;
    conf_ini_free(&ini);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(value_begins_after_the_first_separator),
        cmocka_unit_test(heading_has_a_kind_and_a_name),
        cmocka_unit_test(malformed_line_is_reported),
        cmocka_unit_test(lines_of_a_skipped_section_are_not_read),
        cmocka_unit_test(indented_line_continues_a_value_where_the_syntax_allows_it),
        cmocka_unit_test(every_value_may_continue_without_may_continue),
        cmocka_unit_test(lack_of_memory_is_reported_and_ends_the_reading),
        cmocka_unit_test(text_too_large_for_the_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, free_ini);
}
