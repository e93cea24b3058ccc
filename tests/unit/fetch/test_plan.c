/* test_plan.c - which file each URL is written to, and the errors that are found before anything is sent
 * (app/fetch/plan.c). */
#define _GNU_SOURCE
#include "fetch/plan.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Replaces that of libc. It fails for ever, so that the report of the failure must not need memory. */
static bool no_memory;

char *strdup(const char *text)
{
    if (no_memory) {
        errno = ENOMEM;
        return NULL;
    }
    size_t size = strlen(text) + 1;
    char *copy = malloc(size);
    return copy != NULL ? memcpy(copy, text, size) : NULL;
}

static struct fetch_plan plan;
static struct fetch_plan_problem problem;

/* Assigns outputs to two URLs. Returns false after setting `problem`. */
static bool assign(const char *one, const char *other, struct fetch_output_options outputs)
{
    fetch_plan_free(&plan);
    assert_null(fetch_plan_add(&plan, one));
    assert_null(fetch_plan_add(&plan, other));
    problem = (struct fetch_plan_problem){0};
    return fetch_plan_assign_outputs(&plan, &outputs, &problem);
}

static void assert_problem(const char *option, const char *value, const char *text)
{
    assert_string_equal(problem.option, option);
    assert_string_equal(problem.value, value);
    assert_non_null(strstr(problem.text, text));
}

static void output_options_belong_to_urls_in_order(void **state)
{
    (void)state;
    const char *paths[] = {"first"};
    assert_true(assign("http://h/a", "http://h/b", (struct fetch_output_options){paths, 1, true, "dir", false}));
    assert_string_equal(plan.jobs[0].output_path, "dir/first");
    assert_string_equal(plan.jobs[1].output_path, "dir/b");
    assert_true(assign("http://h/a", "http://h/b", (struct fetch_output_options){0}));
    assert_null(plan.jobs[0].output_path);
}

static void problem_names_the_option_and_its_value(void **state)
{
    (void)state;
    const char *paths[] = {"a", "./a", "b"}, *directory[] = {"/"};
    assert_false(assign("http://h/a", "http://h/b", (struct fetch_output_options){paths, 3, false, NULL, false}));
    assert_problem("-o", "b", "more -o than URLs");
    assert_false(assign("http://h/a", "http://h/b", (struct fetch_output_options){paths, 2, false, NULL, false}));
    assert_string_equal(problem.option, "-o");
    assert_non_null(strstr(problem.text, "two URLs"));
    assert_false(assign("http://h/a", "http://h/b", (struct fetch_output_options){directory, 1, false, NULL, false}));
    assert_problem("-o", "/", "is a directory");
    assert_false(assign("http://h/a", "http://h/", (struct fetch_output_options){NULL, 0, true, NULL, false}));
    assert_problem("-O", "http://h/", "no file name");
    assert_false(assign("http://h/x", "http://g/x", (struct fetch_output_options){NULL, 0, true, NULL, false}));
    assert_problem("-O", "x", "two URLs");
}

static void device_may_get_several_responses(void **state)
{
    (void)state;
    const char *paths[] = {"/dev/null", "/dev/null"};
    assert_true(assign("http://h/a", "http://h/b", (struct fetch_output_options){paths, 2, false, NULL, false}));
}

static void continued_download_needs_a_regular_file_and_its_partial_file(void **state)
{
    (void)state;
    const char *device[] = {"/dev/null"}, *partial[] = {"x.part", "x"}, *record[] = {"x", "./x.part.bide"};
    assert_true(assign("http://h/a", "http://h/b", (struct fetch_output_options){NULL, 0, true, NULL, true}));
    assert_false(assign("http://h/a", "http://h/b", (struct fetch_output_options){.continues = true}));
    assert_problem("-C", "-", "a regular file");
    assert_false(assign("http://h/a", "http://h/b", (struct fetch_output_options){device, 1, true, NULL, true}));
    assert_problem("-C", "-", "a regular file");
    assert_false(assign("http://h/a", "http://h/b", (struct fetch_output_options){partial, 2, false, NULL, true}));
    assert_non_null(strstr(problem.text, "two URLs"));
    assert_false(assign("http://h/a", "http://h/b", (struct fetch_output_options){record, 2, false, NULL, true}));
    assert_non_null(strstr(problem.text, "two URLs"));
    assert_true(assign("http://h/a", "http://h/b", (struct fetch_output_options){partial, 2, false, NULL, false}));
}

static void lack_of_memory_is_a_problem_without_a_value(void **state)
{
    (void)state;
    const char *paths[] = {"new-a", "new-b"};
    struct fetch_output_options outputs = {paths, 2, false, NULL, false};
    fetch_plan_free(&plan);
    assert_null(fetch_plan_add(&plan, "http://h/a"));
    assert_null(fetch_plan_add(&plan, "http://h/b"));
    no_memory = true;
    bool assigned = fetch_plan_assign_outputs(&plan, &outputs, &problem);
    no_memory = false;
    assert_false(assigned);
    assert_null(problem.option);
    assert_string_equal(problem.text, "out of memory");
}

static int free_plan(void **state)
{
    (void)state;
    fetch_plan_free(&plan);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(output_options_belong_to_urls_in_order),
        cmocka_unit_test(problem_names_the_option_and_its_value),
        cmocka_unit_test(device_may_get_several_responses),
        cmocka_unit_test(continued_download_needs_a_regular_file_and_its_partial_file),
        cmocka_unit_test(lack_of_memory_is_a_problem_without_a_value),
    };
    return cmocka_run_group_tests(tests, NULL, free_plan);
}
