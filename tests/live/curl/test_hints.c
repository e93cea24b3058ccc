/* test_hints.c - server hints in header fields are parsed and honoured, in all forms.
 *
 * The minimum wait is measured exactly, with the server's clock. */
#include "live_call.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define LONG_NS (60 * BIDE_S) /* an upper bound for operations that should be immediate */

/* A response with a hint and the expected wait. All cases run at once, each in its own thread. */
struct hint_case {
    const char *step;
    int64_t wait_ns;
    struct live_server *server;
    char path[16];
    struct bide_curl_result result;
    CURLcode code;
    pthread_t thread;
};

static struct hint_case hint_case[] = {
    {.step = "retry-after=1", .wait_ns = BIDE_S},
    {.step = "retry-after=\"  1 \"", .wait_ns = BIDE_S},
    {.step = "retry-after=\"0.5\"", .wait_ns = BIDE_S}, /* rounded up */
    {.step = "retry-after=date+1", .wait_ns = BIDE_S},
    {.step = "retry-after=rfc850+1", .wait_ns = BIDE_S},
    {.step = "retry-after=asctime+1", .wait_ns = BIDE_S},
    {.step = "retry-after=date+3601 date=+3600",
     .wait_ns = BIDE_S}, /* its clock is an hour ahead, and its Date as well */
    {.step = "header=\"Retry-After: 1\" header=\"Retry-After: 0\"", .wait_ns = BIDE_S},
    {.step = "header=\"Retry-After: 0\" header=\"retry-after: 1\"", .wait_ns = BIDE_S},
    {.step = "header=\"retry-after-ms: 300\"", .wait_ns = 300 * BIDE_MS},
    {.step = "header=\"x-ms-retry-after-ms: 300\"", .wait_ns = 300 * BIDE_MS},
    {.step = "header=\"RateLimit: \\\"default\\\";r=0;t=1\"", .wait_ns = BIDE_S},
    {.step = "retry-after=1 header=\"RateLimit: \\\"default\\\";r=0;t=50\"", .wait_ns = BIDE_S},
    {.step = "header=\"X-Reset: 1\"", .wait_ns = BIDE_S},
};
#define HINT_CASES (sizeof hint_case / sizeof *hint_case)

static size_t discard_body(char *at, size_t size, size_t count, void *context)
{
    return size * count;
}

static void *perform_case(void *context)
{
    struct hint_case *a = context;
    struct bide_policy policy = live_policy(2);
    struct bide_target target;
    struct bide_curl_options o;
    char url[64];
    live_target_without_gates(&target);
    o = (struct bide_curl_options){0};
    o.policy = &policy;
    o.write = discard_body;
    o.reset_header = "x-reset";
    o.reset_unit = BIDE_RESET_SECONDS;
    snprintf(url, sizeof url, "http://127.0.0.1:%u%s", chaos_port(a->server->chaos), a->path);
    CURL *easy = curl_easy_init();
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_URL, url);
    a->code = bide_curl_perform(easy, &target, &o, &a->result);
    curl_easy_cleanup(easy);
    return NULL;
}

static void expect_waited(const struct hint_case *a)
{
    const struct chaos_seen *first = live_server_request(a->server, a->path, 0),
                            *second = live_server_request(a->server, a->path, 1);
    if (a->code != CURLE_OK || !second || second->at_ns - first->at_ns < a->wait_ns)
        fail_msg("%s: the hint was not honoured, or there was no retry", a->step);
    assert_int_equal(a->result.attempt[0].hint.kind, BIDE_HINT_WAIT);
    assert_int_equal(a->result.attempt[0].hint.wait_ns, a->wait_ns);
    assert_true(a->result.attempt[1].delay_ns >= a->wait_ns);
    assert_true(a->result.total_ns < LONG_NS);
}

static void retry_waits_at_least_as_long_as_the_hint(void **state)
{
    struct live_server server;
    char script[4096];
    size_t used = 0;
    for (size_t i = 0; i < HINT_CASES; i++) {
        snprintf(hint_case[i].path, sizeof hint_case[i].path, "/%zu", i);
        used += (size_t)snprintf(script + used, sizeof script - used, "%s %d %s | 200\n", hint_case[i].path,
                                 i % 2 ? 429 : 503, hint_case[i].step);
    }
    live_server_start(&server, script);
    for (size_t i = 0; i < HINT_CASES; i++) {
        hint_case[i].server = &server;
        assert_int_equal(pthread_create(&hint_case[i].thread, NULL, perform_case, &hint_case[i]), 0);
    }
    for (size_t i = 0; i < HINT_CASES; i++)
        pthread_join(hint_case[i].thread, NULL);
    live_server_stop(&server);
    for (size_t i = 0; i < HINT_CASES; i++)
        expect_waited(&hint_case[i]);
    live_server_free(&server);
}

static void a_hint_in_a_success_is_ignored(void **state)
{
    struct live_call c;
    live_call_open(&c, "/a 200 retry-after=60", 2);
    assert_int_equal(live_call_perform(&c, "/a"), CURLE_OK);
    live_expect(&c, BIDE_ACTION_DONE, BIDE_REASON_SUCCEEDED, 1);
    assert_int_equal(c.result.attempt[0].hint.kind, BIDE_HINT_NONE);
    live_call_close(&c);
}

static void a_hint_beyond_hint_max_ends_the_call_at_once(void **state)
{
    static const char *const value[] = {"86400", "9223372037", "18446744073709551616",
                                        "999999999999999999999999999999999999999999999999999999999999999999999999"};
    for (size_t i = 0; i < sizeof value / sizeof *value; i++) {
        struct live_call c;
        char script[256];
        snprintf(script, sizeof script, "/a 503 retry-after=\"%s\" body=\"the last word\"", value[i]);
        live_call_open(&c, script, 3);
        assert_int_equal(live_call_perform(&c, "/a"), CURLE_OK);
        live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_HINT_TOO_LONG, 1);
        live_expect_text(&c.sink, "the last word");
        assert_true(c.result.total_ns < LONG_NS);
        live_call_close(&c);
    }
}

/* The server asked for time: full jitter alone could retry at once. */
static void a_malformed_hint_or_a_past_date_is_a_wait_of_twice_the_base(void **state)
{
    static const char *const value[] = {"-1",
                                        "+5",
                                        "0x10",
                                        "1e3",
                                        "120s",
                                        "",
                                        "tomorrow",
                                        "Thu, 99 Jan 2026",
                                        "Sun, 06 Nov 2044 08:49:37 UTC",
                                        "Sun, 06 Nov 2044 08:49:37 +0000",
                                        "sun, 06 nov 2044 08:49:37 gmt",
                                        "2044-11-06T08:49:37Z",
                                        "Sun, 06 Nov 1994 08:49:37 GMT",
                                        "Sun Nov  6 08:49:37 1994"};
    for (size_t i = 0; i < sizeof value / sizeof *value; i++) {
        struct live_call c;
        char script[128];
        snprintf(script, sizeof script, "/a 503 retry-after=\"%s\" | 200", value[i]);
        live_call_open(&c, script, 2);
        assert_int_equal(live_call_perform(&c, "/a"), CURLE_OK);
        live_expect(&c, BIDE_ACTION_DONE, BIDE_REASON_SUCCEEDED, 2);
        assert_int_equal(c.result.attempt[0].hint.kind, BIDE_HINT_WAIT);
        assert_int_equal(c.result.attempt[0].hint.wait_ns, 2 * c.policy.base_ns);
        assert_true(c.result.attempt[1].delay_ns >= 2 * c.policy.base_ns);
        live_call_close(&c);
    }
}

static void the_wait_for_a_malformed_hint_is_limited_by_the_policy(void **state)
{
    static const int64_t cap_ns[] = {1500 * BIDE_US, BIDE_S}, hint_max_ns[] = {BIDE_S, 1200 * BIDE_US};
    static const int64_t wait_ns[] = {1500 * BIDE_US, 1200 * BIDE_US};
    for (size_t i = 0; i < 2; i++) {
        struct live_call c;
        live_call_open(&c, "/a 503 retry-after=soon | 200", 2);
        c.policy.base_ns = BIDE_MS;
        c.policy.cap_ns = cap_ns[i];
        c.policy.hint_max_ns = hint_max_ns[i];
        assert_int_equal(live_call_perform(&c, "/a"), CURLE_OK);
        assert_int_equal(c.result.attempt[0].hint.wait_ns, wait_ns[i]);
        live_call_close(&c);
    }
}

static void a_malformed_hint_is_ignored_under_another_rule_or_beside_a_readable_one(void **state)
{
    struct live_call c;
    live_call_open(&c, "/a 503 retry-after=soon | 200\n/b 503 retry-after=soon header=\"retry-after-ms: 3\" | 200", 2);
    c.policy.hint_rule = BIDE_HINT_RULE_EXACT;
    assert_int_equal(live_call_perform(&c, "/a"), CURLE_OK);
    assert_int_equal(c.result.attempt[0].hint.kind, BIDE_HINT_NONE);
    c.policy.hint_rule = BIDE_HINT_RULE_FLOOR;
    assert_int_equal(live_call_perform(&c, "/b"), CURLE_OK);
    assert_int_equal(c.result.attempt[0].hint.wait_ns, 3 * BIDE_MS);
    live_call_close(&c);
}

static void a_stop_hint_ends_the_call(void **state)
{
    static const char *const field[] = {"x-should-retry: false", "Bide-Retry: ?0", "stripe-should-retry: false",
                                        "grpc-retry-pushback-ms: -1"};
    for (size_t i = 0; i < sizeof field / sizeof *field; i++) {
        struct live_call c;
        char script[128];
        snprintf(script, sizeof script, "/a 503 retry-after=0 header=\"%s\" | 200", field[i]);
        live_call_open(&c, script, 3);
        assert_int_equal(live_call_perform(&c, "/a"), CURLE_OK);
        live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_SERVER_STOP, 1);
        assert_int_equal(c.result.attempt[0].hint.kind, BIDE_HINT_STOP);
        live_call_close(&c);
    }
}

static void permission_to_retry_does_not_make_an_unsafe_request_safe(void **state)
{
    struct live_call c;
    live_call_open(&c, "/a 503 header=\"Bide-Retry: ?1\" header=\"x-should-retry: true\" retry-after=0", 3);
    live_call_post(&c, "x");
    live_call_perform(&c, "/a");
    live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_NOT_REPEATABLE, 1);
    live_call_close(&c);
}

int main(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(retry_waits_at_least_as_long_as_the_hint),
        cmocka_unit_test(a_hint_in_a_success_is_ignored),
        cmocka_unit_test(a_hint_beyond_hint_max_ends_the_call_at_once),
        cmocka_unit_test(a_malformed_hint_or_a_past_date_is_a_wait_of_twice_the_base),
        cmocka_unit_test(the_wait_for_a_malformed_hint_is_limited_by_the_policy),
        cmocka_unit_test(a_malformed_hint_is_ignored_under_another_rule_or_beside_a_readable_one),
        cmocka_unit_test(a_stop_hint_ends_the_call),
        cmocka_unit_test(permission_to_retry_does_not_make_an_unsafe_request_safe),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    curl_global_cleanup();
    return failed;
}
