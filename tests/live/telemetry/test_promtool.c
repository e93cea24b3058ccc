/* test_promtool.c - Prometheus's own tool reads the text of a process with all kinds of calls, and has no complaint.
 *
 * Without promtool (Debian: prometheus) it is skipped; under CI=true that is a failure. */
#define _GNU_SOURCE
#include "live_process.h"

#include <bide/bide.h>
#include <bide/telemetry.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct live_process promtool;
static struct bide_policy policy;

static int make_dir(void **state)
{
    (void)state;
    live_process_dir(&promtool);
    bide_policy_init(&policy, BIDE_PRESET_SERVICE);
    policy.base_ns = BIDE_MS;
    policy.cap_ns = BIDE_MS;
    return bide_telemetry_start(NULL, NULL) == BIDE_OK ? 0 : -1;
}

static int remove_dir(void **state)
{
    (void)state;
    bide_telemetry_stop();
    live_process_free(&promtool);
    return 0;
}

static void skip_without_promtool(void)
{
    if (system("command -v promtool > /dev/null") != 0) {
        print_message("promtool is missing\n");
        skip();
    }
}

/* The first attempts of a call have this status, the others succeed. */
struct failures {
    uint32_t count;
    int status;
};

static struct bide_outcome attempt(void *context, const struct bide_verdict *start)
{
    const struct failures *failures = context;
    return bide_classify_http(start->attempt <= failures->count ? failures->status : 200, NULL);
}

static void call(const char *name, struct bide_target *target, struct failures failures)
{
    struct bide_job job = {.name = name,
                           .target = target,
                           .policy = &policy,
                           .request.safety = BIDE_SAFE,
                           .attempt = attempt,
                           .context = &failures};
    bide_run(&job);
}

/* Writes the metrics, in memory of exactly their size, to a file. */
static void write_page(const char *file)
{
    size_t length = bide_telemetry_write(NULL, 0);
    char *text = malloc(length + 1);
    assert_non_null(text);
    assert_int_equal(bide_telemetry_write(text, length + 1), length);
    live_process_write(&promtool, file, text);
    free(text);
}

static void promtool_has_no_complaint_about_any_series(void **state)
{
    static struct bide_inbound_ratio ratio;
    static const int statuses[] = {503, 429, 409, 400, 404};
    (void)state;
    skip_without_promtool();
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        for (uint32_t count = 0; count < 6; count++)
            call("inventory", NULL, (struct failures){count, statuses[i]});
    call("quote\" backslash\\ gr\xc3\xbc\xc3\x9f", NULL, (struct failures){0, 0});
    call("not utf-8: \xff\xc3(\xed\xa0\x80", BIDE_NO_TARGET, (struct failures){0, 0});
    call("two\nlines {of} text", BIDE_NO_TARGET, (struct failures){0, 0});
    assert_int_equal(bide_inbound_ratio_init(&ratio, NULL, NULL), BIDE_OK);
    assert_int_equal(bide_telemetry_inbound("checkout", &ratio, NULL), BIDE_OK);
    write_page("page");
    live_process_run(&promtool, (const char *const[]){
                                    "sh", "-c", "promtool check metrics < $DIR/page > $DIR/complaints 2>&1", NULL});
    assert_int_equal(live_process_count(&promtool, "complaints", ""), 0);
    assert_int_equal(live_process_count(&promtool, "page", "bide_inbound_requests_total{target=\"checkout\""), 2);
    assert_int_equal(live_process_count(&promtool, "page", "bide_call_duration_seconds_count{target="), 5);
}

/* Else the test above would prove nothing. */
static void promtool_rejects_text_that_is_not_utf_8_or_has_no_help(void **state)
{
    (void)state;
    skip_without_promtool();
    live_process_write(&promtool, "bad", "# HELP a_total A.\n# TYPE a_total counter\na_total{target=\"\xff\"} 1\n");
    live_process_write(&promtool, "lint", "# TYPE a counter\na 1\n");
    live_process_run(&promtool, (const char *const[]){"sh", "-c", "! promtool check metrics < $DIR/bad", NULL});
    live_process_run(&promtool, (const char *const[]){"sh", "-c", "! promtool check metrics < $DIR/lint", NULL});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(promtool_has_no_complaint_about_any_series),
        cmocka_unit_test(promtool_rejects_text_that_is_not_utf_8_or_has_no_help),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
