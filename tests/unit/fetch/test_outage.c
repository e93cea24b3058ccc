/* test_outage.c - how long a batch waits for a server that is down (app/fetch/outage.c). */
#define _GNU_SOURCE
#include "fetch/outage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define URLS 8u

static struct bide_policy policy;
static struct fetch_request request = {.policy = &policy};
static struct fetch_job jobs[URLS];
static char down[] = "http://down/x", up[] = "http://up/x";
static struct fetch_batch batch = {.request = &request, .jobs = jobs, .count = URLS, .parallel = 1};
static struct fetch_outages outages;

/* The last two URLs are of another origin. */
static int enter(void **state)
{
    (void)state;
    for (size_t i = 0; i < URLS; i++)
        jobs[i].url = i < URLS - 2 ? down : up;
    policy.when_refused = BIDE_WHEN_REFUSED_WAIT;
    policy.waits_max_ns = 60 * BIDE_S;
    request.target = NULL;
    return fetch_outages_init(&outages, &batch) ? 0 : -1;
}

static int leave(void **state)
{
    (void)state;
    fetch_outages_free(&outages);
    return 0;
}

static void note(size_t job, enum bide_kind kind, long status, int64_t now_s)
{
    struct fetch_event event = {.index = job, .ended = true, .kind = kind, .status = status};
    fetch_outages_note(&outages, &event, now_s * BIDE_S);
}

static void waits_end_when_a_server_failed_for_waits_max(void **state)
{
    (void)state;
    assert_true(fetch_outages_due(&outages) == BIDE_NEVER);
    note(0, BIDE_KIND_TRANSIENT, 503, 100);
    note(1, BIDE_KIND_TRANSIENT, 0, 120);
    assert_true(fetch_outages_due(&outages) == 160 * BIDE_S);
    assert_false(fetch_outages_ends_wait(&outages, 1, 159 * BIDE_S));
    assert_true(fetch_outages_ends_wait(&outages, 1, 160 * BIDE_S));
    assert_false(fetch_outages_ends_wait(&outages, URLS - 1, 160 * BIDE_S)); /* of another server */
    fetch_outages_restart(&outages, 160 * BIDE_S);
    assert_false(fetch_outages_ends_wait(&outages, 1, 161 * BIDE_S));
}

static void any_response_of_a_working_server_ends_the_outage(void **state)
{
    (void)state;
    static const struct {
        enum bide_kind kind;
        long status;
    } works[] = {{BIDE_KIND_OK, 200}, {BIDE_KIND_PERMANENT, 404}};
    for (size_t i = 0; i < 2; i++) {
        note(0, BIDE_KIND_TRANSIENT, 503, 100);
        note(1, works[i].kind, works[i].status, 130);
        assert_true(fetch_outages_due(&outages) == BIDE_NEVER);
    }
    note(0, BIDE_KIND_TRANSIENT, 503, 100);
    note(1, BIDE_KIND_PERMANENT, 0, 130); /* a failure of TLS is no response */
    assert_false(fetch_outages_due(&outages) == BIDE_NEVER);
}

static void some_broken_urls_are_no_proof_that_a_server_is_down(void **state)
{
    (void)state;
    note(0, BIDE_KIND_TRANSIENT, 503, 100);
    fetch_outages_restart(&outages, 160 * BIDE_S);
    for (size_t i = 0; i < FETCH_OUTAGE_URLS + 1; i++) {
        assert_false(fetch_outages_is_down(&outages, 5));
        fetch_outages_note_end(&outages, i);
    }
    assert_true(fetch_outages_is_down(&outages, 5));
    assert_false(fetch_outages_is_down(&outages, URLS - 1));
    note(5, BIDE_KIND_OK, 200, 170);
    assert_false(fetch_outages_is_down(&outages, 5));
}

/* A POST that may have run gives up at once, and so does each URL with --attempts 1. */
static void urls_that_give_up_before_waits_max_are_no_proof_that_a_server_is_down(void **state)
{
    (void)state;
    note(0, BIDE_KIND_TRANSIENT, 503, 100);
    for (size_t i = 0; i < FETCH_OUTAGE_URLS + 1; i++)
        fetch_outages_note_end(&outages, i);
    fetch_outages_restart(&outages, 159 * BIDE_S);
    assert_false(fetch_outages_is_down(&outages, 5));
    assert_false(fetch_outages_ends_wait(&outages, 5, 159 * BIDE_S));
    fetch_outages_restart(&outages, 160 * BIDE_S);
    assert_true(fetch_outages_is_down(&outages, 5));
    note(5, BIDE_KIND_OK, 200, 170);
    note(5, BIDE_KIND_TRANSIENT, 503, 171);
    for (size_t i = 0; i < FETCH_OUTAGE_URLS + 1; i++)
        fetch_outages_note_end(&outages, i);
    assert_false(fetch_outages_is_down(&outages, 5));
}

static void with_a_common_target_all_urls_have_one_server(void **state)
{
    (void)state;
    fetch_outages_free(&outages);
    request.target = "all";
    assert_true(fetch_outages_init(&outages, &batch));
    note(0, BIDE_KIND_TRANSIENT, 503, 100);
    assert_true(fetch_outages_ends_wait(&outages, URLS - 1, 160 * BIDE_S));
}

static void urls_that_do_not_wait_have_no_limit(void **state)
{
    (void)state;
    fetch_outages_free(&outages);
    policy.when_refused = BIDE_WHEN_REFUSED_GIVE_UP;
    assert_true(fetch_outages_init(&outages, &batch));
    note(0, BIDE_KIND_TRANSIENT, 503, 100);
    assert_true(fetch_outages_due(&outages) == BIDE_NEVER);
    assert_false(fetch_outages_ends_wait(&outages, 0, 200 * BIDE_S));
    assert_false(fetch_outages_is_down(&outages, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(waits_end_when_a_server_failed_for_waits_max, enter, leave),
        cmocka_unit_test_setup_teardown(any_response_of_a_working_server_ends_the_outage, enter, leave),
        cmocka_unit_test_setup_teardown(some_broken_urls_are_no_proof_that_a_server_is_down, enter, leave),
        cmocka_unit_test_setup_teardown(urls_that_give_up_before_waits_max_are_no_proof_that_a_server_is_down, enter,
                                        leave),
        cmocka_unit_test_setup_teardown(with_a_common_target_all_urls_have_one_server, enter, leave),
        cmocka_unit_test_setup_teardown(urls_that_do_not_wait_have_no_limit, enter, leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
