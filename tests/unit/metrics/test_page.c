/* test_page.c - the page of `bide metrics`: which targets are in it, and how often an unusable file is reported. */
#define _GNU_SOURCE
#include "metrics/page.h"

#include <bide/clock.h>
#include <bide/run.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char directory[64];
static struct bide_shared_options here = {.directory = directory};
static struct bide_problem problem;
static char reported[1000]; /* names, each followed by a blank */
static size_t targets;

static void report(void *context, const char *name, const struct bide_problem *wrong)
{
    (void)context;
    assert_int_not_equal(wrong->reason, BIDE_SHARED_REASON_NOTHING);
    assert_true(wrong->text[0] != '\0');
    strcat(strcat(reported, name), " ");
}

static struct metrics_source source;

static int begin(void **state)
{
    (void)state;
    strcpy(directory, "/tmp/bide-page-XXXXXX");
    reported[0] = '\0';
    source = (struct metrics_source){.directory = directory, .report = report};
    return mkdtemp(directory) != NULL ? 0 : -1;
}

static int end(void **state)
{
    char command[100];
    (void)state;
    metrics_source_free(&source);
    snprintf(command, sizeof command, "rm -rf '%s'", directory);
    return system(command);
}

static struct bide_shared open_target(const char *name)
{
    struct bide_shared shared;
    assert_int_equal(bide_shared_open(&shared, name, NULL, &here, bide_now(), &problem), BIDE_OK);
    return shared;
}

static struct bide_outcome succeed(void *context, const struct bide_verdict *start)
{
    (void)context;
    (void)start;
    return (struct bide_outcome){.kind = BIDE_KIND_OK, .evidence = BIDE_EVIDENCE_ANSWERED};
}

/* Creates a target, on which `calls` calls succeed. */
static void make_target(const char *name, unsigned calls)
{
    struct bide_shared shared = open_target(name);
    for (unsigned i = 0; i < calls; i++)
        bide_run(&(struct bide_job){.target = shared.target, .request.safety = BIDE_SAFE, .attempt = succeed});
    bide_shared_close(&shared);
}

/* Makes the file of a target unusable, or usable again. */
static void set_mode(const char *name, mode_t mode)
{
    struct budget_list list = {0};
    char *names[] = {(char *)(uintptr_t)name, NULL};
    static char file[BIDE_SHARED_PATH_MAX];
    assert_true(budget_list_read(&list, names, directory, &problem));
    if (list.entry[0].is_open)
        strcpy(file, list.entry[0].file);
    budget_list_free(&list);
    assert_int_equal(chmod(file, mode), 0);
}

static char *page(void)
{
    size_t length = 0;
    char *text = metrics_page(&source, &length, &targets, &problem);
    assert_non_null(text);
    assert_int_equal(strlen(text), length);
    return text;
}

static void assert_page_has(const char *line)
{
    char *text = page();
    if (strstr(text, line) == NULL)
        fail_msg("no %s in %s", line, text);
    free(text);
}

static void all_targets_are_in_the_page_with_their_calls(void **state)
{
    (void)state;
    make_target("a", 3);
    make_target("b", 0);
    assert_page_has("bide_calls_total{target=\"a\",result=\"first\"} 3\n");
    assert_page_has("bide_calls_total{target=\"b\",result=\"first\"} 0\n");
    assert_page_has("bide_breaker_state{target=\"b\",state=\"closed\"} 1\n");
    assert_int_equal(targets, 2);
    make_target("a", 1);
    assert_page_has("bide_calls_total{target=\"a\",result=\"first\"} 4\n");
    assert_string_equal(reported, "");
}

static void unusable_file_is_reported_once_and_again_when_it_comes_back(void **state)
{
    (void)state;
    make_target("a", 1);
    make_target("b", 1);
    set_mode("a", 0602);
    assert_page_has("target=\"b\"");
    assert_page_has("target=\"b\"");
    assert_int_equal(targets, 1);
    assert_string_equal(reported, "a ");
    set_mode("a", 0600);
    assert_page_has("target=\"a\"");
    assert_int_equal(targets, 2);
    set_mode("a", 0602);
    assert_page_has("target=\"b\"");
    assert_string_equal(reported, "a a ");
}

static void missing_directory_has_no_targets(void **state)
{
    (void)state;
    assert_int_equal(rmdir(directory), 0);
    free(page());
    assert_int_equal(targets, 0);
    assert_string_equal(reported, "");
}

static void unsafe_directory_is_a_problem(void **state)
{
    size_t length;
    (void)state;
    assert_int_equal(chmod(directory, 0777), 0);
    assert_null(metrics_page(&source, &length, &targets, &problem));
    assert_int_equal(problem.reason, BIDE_SHARED_REASON_OPEN_DIRECTORY);
}

static void page_of_many_targets_is_whole(void **state)
{
    char name[16], line[80];
    (void)state;
    for (unsigned i = 0; i < 130; i++) {
        snprintf(name, sizeof name, "t%u", i);
        make_target(name, 1);
    }
    snprintf(line, sizeof line, "bide_calls_total{target=\"t%u\",result=\"first\"} 1\n", 129u);
    assert_page_has(line);
    assert_int_equal(targets, 130);
}

#define IN_DIRECTORY(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_DIRECTORY(all_targets_are_in_the_page_with_their_calls),
        IN_DIRECTORY(unusable_file_is_reported_once_and_again_when_it_comes_back),
        IN_DIRECTORY(missing_directory_has_no_targets),
        IN_DIRECTORY(unsafe_directory_is_a_problem),
        IN_DIRECTORY(page_of_many_targets_is_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
