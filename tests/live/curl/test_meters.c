/* test_meters.c - calls over libcurl on a shared target are counted in its file, by the easy and by the multi driver,
 * without a listener: each attempt that the server saw, each end, each call. */
#define _GNU_SOURCE
#include "live_call.h"
#include "live_multi.h"

#include <bide/clock.h>
#include <bide/curl.h>
#include <bide/shared.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char directory[] = "/tmp/bide-meters-XXXXXX";
static struct bide_shared shared;

static int open_shared(void **state)
{
    struct bide_problem problem;
    struct bide_shared_options here = {.directory = directory};
    struct bide_target_config config;
    bide_target_config_init(&config, BIDE_PRESET_COMMAND); /* without gates */
    strcpy(directory + sizeof directory - sizeof "XXXXXX", "XXXXXX");
    return mkdtemp(directory) != NULL &&
                   bide_shared_open(&shared, "api", &config, &here, bide_now(), &problem) == BIDE_OK
               ? 0
               : -1;
}

static int close_shared(void **state)
{
    char command[80];
    bide_shared_close(&shared);
    snprintf(command, sizeof command, "rm -rf '%s'", directory);
    return system(command);
}

static struct bide_meter_view counts(void)
{
    struct bide_meter_view view;
    bide_meter_get(bide_shared_meter_get(&shared), &view);
    return view;
}

static uint64_t sum(const uint64_t *words, size_t count)
{
    uint64_t all = 0;
    for (size_t i = 0; i < count; i++)
        all += words[i];
    return all;
}
#define SUM(member) sum((const uint64_t *)&(member), sizeof(member) / sizeof(uint64_t))

/* Checks the sums that hold when no call is in flight, and the attempts that were made. */
static void assert_adds_up(const struct bide_meter_view *m, size_t attempts)
{
    assert_int_equal(SUM(m->attempts), attempts);
    assert_int_equal(SUM(m->outcomes), attempts);
    assert_int_equal(SUM(m->waits), m->waits_ended);
    assert_int_equal(SUM(m->calls), SUM(m->give_ups) + SUM(m->call_ok.count));
}

static void perform_on_shared(struct live_call *c, const char *path)
{
    curl_easy_setopt(c->easy, CURLOPT_URL, live_server_url(&c->server, path));
    bide_curl_perform(c->easy, shared.target, &c->options, &c->result);
}

static void easy_calls_are_counted_by_result(void **state)
{
    struct live_call c;
    live_call_open(&c, "/ok 200\n/flaky 503 | 429 | 200\n/missing 404\n/down 503 | loop", 3);
    perform_on_shared(&c, "/ok");
    perform_on_shared(&c, "/flaky");
    perform_on_shared(&c, "/missing");
    perform_on_shared(&c, "/down");
    live_server_stop(&c.server);
    struct bide_meter_view m = counts();
    assert_int_equal(m.calls[BIDE_METER_FIRST], 1);
    assert_int_equal(m.calls[BIDE_METER_RESCUED], 1);
    assert_int_equal(m.calls[BIDE_METER_FAILED], 2);
    assert_int_equal(m.attempts[BIDE_METER_ATTEMPT_1], 4);
    assert_int_equal(m.attempts[BIDE_METER_ATTEMPT_2], 2);
    assert_int_equal(m.attempts[BIDE_METER_ATTEMPT_3], 2);
    assert_int_equal(m.outcomes[BIDE_METER_ATTEMPT_2][BIDE_KIND_THROTTLED], 1);
    assert_int_equal(m.give_ups[BIDE_REASON_PERMANENT], 1);
    assert_int_equal(m.give_ups[BIDE_REASON_ATTEMPTS_SPENT], 1);
    assert_adds_up(&m, c.server.count);
    live_call_close(&c);
}

static bool refresh_token(void *context, CURL *easy)
{
    return curl_easy_setopt(easy, CURLOPT_XOAUTH2_BEARER, "new") == CURLE_OK;
}

static void a_refresh_is_counted_as_such(void **state)
{
    struct live_call c;
    live_call_open(&c, "/a 401 | 200", 3);
    c.options.refresh = refresh_token;
    perform_on_shared(&c, "/a");
    live_server_stop(&c.server);
    struct bide_meter_view m = counts();
    assert_int_equal(m.attempts[BIDE_METER_REFRESH], 1);
    assert_int_equal(m.outcomes[BIDE_METER_REFRESH][BIDE_KIND_OK], 1);
    assert_int_equal(m.calls[BIDE_METER_FIRST], 1);
    assert_adds_up(&m, c.server.count);
    live_call_close(&c);
}

static void multi_calls_are_counted_with_hedges_and_cancellations(void **state)
{
    struct live_server server;
    struct live_multi_call hedged, cut;
    struct bide_multi *multi = live_multi_new();
    struct bide_policy policy = live_policy(3), alone = live_policy(3);
    policy.hedges_max = 1;
    policy.hedge_delay_ns = 5 * BIDE_MS;
    live_server_start(&server, "/a 200 body=slow delay=10m | 200 body=fine\n/b 200 delay=10m");
    live_multi_call_init(&hedged, live_server_url(&server, "/a"), &policy);
    live_multi_call_start(&hedged, multi, shared.target);
    assert_true(live_multi_run(multi));
    live_multi_call_init(&cut, live_server_url(&server, "/b"), &alone);
    live_multi_call_start(&cut, multi, shared.target);
    bide_multi_cancel_all(multi);
    struct bide_meter_view m = counts();
    assert_int_equal(m.calls[BIDE_METER_RESCUED], 1);
    assert_int_equal(m.calls[BIDE_METER_CANCELLED], 1);
    assert_int_equal(m.attempts[BIDE_METER_HEDGE], 1);
    assert_int_equal(m.outcomes[BIDE_METER_HEDGE][BIDE_KIND_OK], 1);
    assert_int_equal(m.outcomes[BIDE_METER_ATTEMPT_1][BIDE_KIND_CANCELLED], 2);
    assert_adds_up(&m, 3);
    bide_multi_free(multi);
    live_multi_call_free(&hedged);
    live_multi_call_free(&cut);
    live_server_free(&server);
}

#define ON_SHARED(test) cmocka_unit_test_setup_teardown(test, open_shared, close_shared)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_SHARED(easy_calls_are_counted_by_result),
        ON_SHARED(a_refresh_is_counted_as_such),
        ON_SHARED(multi_calls_are_counted_with_hedges_and_cancellations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
