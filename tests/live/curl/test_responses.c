/* test_responses.c - the outcome of each response: the status table, timeouts, gates, results. */
#include "live_call.h"
#include "live_tcp.h"

#include <bide/clock.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONG_NS (60 * BIDE_S) /* an upper bound for operations that should be immediate */

/* ---- the one-line change ---- */

static void perform_needs_only_the_handle(void **state)
{
    struct live_server server;
    struct live_sink sink = {0};
    live_server_start(&server, "/flaky 503 | 200 body=fine");
    CURL *easy = curl_easy_init();
    curl_easy_setopt(easy, CURLOPT_URL, live_server_url(&server, "/flaky"));
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, live_sink_write);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &sink);
    assert_int_equal(bide_curl_perform(easy, NULL, BIDE_CURL_PLAIN_HANDLE, NULL), CURLE_OK);
    long status = 0;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    assert_int_equal(status, 200);
    live_expect_text(&sink, "fine");
    curl_easy_cleanup(easy);
    live_server_stop(&server);
    assert_int_equal(server.count, 2);
    live_server_free(&server);
    live_sink_free(&sink);
}

static void a_null_handle_is_an_error(void **state)
{
    struct bide_curl_result result;
    assert_int_equal(bide_curl_perform(NULL, NULL, NULL, &result), CURLE_BAD_FUNCTION_ARGUMENT);
}

static void the_origin_s_target_is_taken_from_the_given_table(void **state)
{
    struct bide_target_config config;
    struct live_call c;
    char origin[64];
    live_call_open(&c, "/a 200", 2);
    bide_target_config_init(&config, BIDE_PRESET_SERVICE);
    assert_int_equal(bide_targets_new(&c.options.targets, 8, &config, NULL), BIDE_OK);
    curl_easy_setopt(c.easy, CURLOPT_URL, live_server_url(&c.server, "/a"));
    assert_int_equal(bide_curl_perform(c.easy, NULL, &c.options, &c.result), CURLE_OK);
    snprintf(origin, sizeof origin, "http://127.0.0.1:%u", chaos_port(c.server.chaos));
    struct bide_target *target = bide_targets_find(c.options.targets, origin);
    assert_non_null(target);
    bide_breaker_hold(target, BIDE_HOLD_OPEN);
    assert_int_equal(bide_curl_perform(c.easy, NULL, &c.options, &c.result), BIDE_CURL_NOT_SENT);
    live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_BREAKER_OPEN, 0);
    bide_targets_free(c.options.targets);
    live_call_close(&c);
}

/* ---- every status ---- */

static bool is_one_of(int status, const int *list)
{
    for (; *list != 0; list++)
        if (*list == status)
            return true;
    return false;
}

/* Returns a line for each status from first to last: "/503 503 body=b503 | 200 body=fine". */
static char *script_of_all(int first, int last)
{
    size_t size = (size_t)(last - first + 1) * 64;
    char *text = malloc(size);
    size_t used = 0;
    for (int s = first; s <= last; s++)
        used += (size_t)snprintf(text + used, size - used, "/%d %d body=b%d | 200 body=fine\n", s, s, s);
    return text;
}

static void expect_retried(struct live_call *c, int status)
{
    if (c->result.attempts != 2)
        fail_msg("%d was not retried: %s", status, bide_reason_label(c->result.verdict.reason));
    live_expect(c, BIDE_ACTION_DONE, BIDE_REASON_SUCCEEDED, 2);
    live_expect_text(&c->sink, "fine");
    assert_int_equal(c->result.attempt[0].status, status);
    assert_int_equal(c->result.status, 200);
}

static void expect_final(struct live_call *c, int status)
{
    char body[16];
    snprintf(body, sizeof body, "b%d", status);
    if (c->result.attempts != 1)
        fail_msg("%d was retried", status);
    live_expect_text(&c->sink, body);
    assert_int_equal(c->result.status, status);
    assert_int_equal(c->result.verdict.action, BIDE_ACTION_GIVE_UP);
    assert_false(c->result.body_dropped);
}

/* Performs a call for each error status, with the handle and options prepared by `set`: statuses in the list are
 * retried. */
static void perform_all_errors(const int *retried, void (*set)(struct live_call *))
{
    struct live_call c;
    char *script = script_of_all(400, 599);
    live_call_open(&c, script, 3);
    set(&c);
    for (int status = 400; status <= 599; status++) {
        char path[8];
        snprintf(path, sizeof path, "/%d", status);
        assert_int_equal(live_call_perform(&c, path), CURLE_OK);
        if (is_one_of(status, retried))
            expect_retried(&c, status);
        else
            expect_final(&c, status);
    }
    live_call_close(&c);
    free(script);
}

static const int retried_statuses[] = {408, 421, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529, 0};
static const int retried_keyed[] = {408, 409, 421, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529, 0};
static const int retried_unsafe[] = {421, 425, 0};
static const int retried_never[] = {0};

static void set_get(struct live_call *c)
{
    (void)c;
}

static void set_post(struct live_call *c)
{
    live_call_post(c, "x");
}

static void set_put(struct live_call *c)
{
    curl_easy_setopt(c->easy, CURLOPT_CUSTOMREQUEST, "PUT");
    live_call_post(c, "x");
}

static void set_keyed(struct live_call *c)
{
    live_call_post(c, "x");
    c->options.inject = BIDE_CURL_INJECT_KEY;
}

static void set_given_keyed(struct live_call *c)
{
    live_call_post(c, "x");
    c->options.safety = BIDE_CURL_KEYED;
}

static void set_unsafe_get(struct live_call *c)
{
    c->options.safety = BIDE_CURL_UNSAFE;
}

/* A body set on the handle, unknown to bide. */
static void set_unknown_post(struct live_call *c)
{
    curl_easy_setopt(c->easy, CURLOPT_POSTFIELDS, "x");
}

static void set_repeatable_post(struct live_call *c)
{
    curl_easy_setopt(c->easy, CURLOPT_POSTFIELDS, "x");
    c->options.body.kind = BIDE_CURL_BODY_REPEATABLE;
    c->options.safety = BIDE_CURL_IDEMPOTENT;
}

static void a_get_is_retried_after_these_statuses_only(void **state)
{
    perform_all_errors(retried_statuses, set_get);
}

static void a_post_is_retried_only_if_it_was_not_processed(void **state)
{
    perform_all_errors(retried_unsafe, set_post);
}

static void a_put_is_retried_like_a_get(void **state)
{
    perform_all_errors(retried_statuses, set_put);
}

static void a_keyed_post_is_retried_after_409_too(void **state)
{
    perform_all_errors(retried_keyed, set_keyed);
    perform_all_errors(retried_keyed, set_given_keyed);
}

static void a_given_safety_overrides_the_method(void **state)
{
    perform_all_errors(retried_unsafe, set_unsafe_get);
    perform_all_errors(retried_statuses, set_repeatable_post);
}

static void an_unknown_body_is_not_sent_again(void **state)
{
    perform_all_errors(retried_never, set_unknown_post);
}

static void the_same_statuses_are_retried_without_a_sink(void **state)
{
    perform_all_errors(retried_statuses, live_call_without_sink);
}

/* Bodies of 204, 205 and 304 are not checked: they have none. */
static void status_2xx_and_3xx_are_final(void **state)
{
    struct live_call c;
    char *script = script_of_all(200, 399);
    live_call_open(&c, script, 3);
    for (int status = 200; status <= 399; status++) {
        char path[8];
        snprintf(path, sizeof path, "/%d", status);
        if (live_call_perform(&c, path) != CURLE_OK)
            fail_msg("%d: %s", status, curl_easy_strerror(c.code));
        live_expect(&c, BIDE_ACTION_DONE, BIDE_REASON_SUCCEEDED, 1);
        assert_int_equal(c.result.status, status);
    }
    live_call_close(&c);
    free(script);
}

static void status_425_is_retried_once(void **state)
{
    struct live_call c;
    live_call_open(&c, "/a 425", 5);
    assert_int_equal(live_call_perform(&c, "/a"), CURLE_OK);
    live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_PERMANENT, 2);
    live_server_stop(&c.server);
    assert_int_equal(c.server.count, 2);
    live_call_close(&c);
}

static void some_statuses_are_retried_on_a_new_connection(void **state)
{
    static const char *const path[] = {"/408", "/421", "/425"};
    struct live_call c;
    live_call_open(&c, "/408 408 | 200\n/421 421 | 200\n/425 425 | 200\n/503 503 | 200", 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(live_call_perform(&c, path[i]), CURLE_OK);
    assert_int_equal(live_call_perform(&c, "/503"), CURLE_OK);
    live_server_stop(&c.server);
    for (size_t i = 0; i < 3; i++)
        assert_true(live_server_request(&c.server, path[i], 0)->connection !=
                    live_server_request(&c.server, path[i], 1)->connection);
    assert_int_equal(live_server_request(&c.server, "/503", 0)->connection,
                     live_server_request(&c.server, "/503", 1)->connection);
    live_call_close(&c);
}

static void status_rules_override_the_table(void **state)
{
    static const struct bide_rule rule[] = {{404, 404, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_ANSWERED, 0},
                                            {503, 503, BIDE_KIND_PERMANENT, BIDE_EVIDENCE_ANSWERED, 0},
                                            {202, 202, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_ANSWERED, 0}};
    static const struct bide_rules rules = {rule, 3, false};
    struct live_call c;
    live_call_open(&c, "/404 404 | 200\n/503 503 | 200\n/202 202 body=later | 200 body=done", 3);
    c.options.status_rules = &rules;
    live_call_perform(&c, "/404");
    live_expect(&c, BIDE_ACTION_DONE, BIDE_REASON_SUCCEEDED, 2);
    live_call_perform(&c, "/503");
    live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_PERMANENT, 1);
    live_call_perform(&c, "/202");
    live_expect(&c, BIDE_ACTION_DONE, BIDE_REASON_SUCCEEDED, 2);
    live_expect_text(&c.sink, "done");
    live_call_close(&c);
}

/* ---- redirects, interim responses, HEAD ---- */

static void a_retry_follows_the_redirect_from_the_start(void **state)
{
    struct live_call c;
    live_call_open(&c, "/a 302 location=/b\n/b 503 | 200 body=there", 3);
    curl_easy_setopt(c.easy, CURLOPT_FOLLOWLOCATION, 1L);
    assert_int_equal(live_call_perform(&c, "/a"), CURLE_OK);
    live_expect(&c, BIDE_ACTION_DONE, BIDE_REASON_SUCCEEDED, 2);
    live_expect_text(&c.sink, "there");
    live_server_stop(&c.server);
    assert_int_equal(live_server_requests(&c.server, "/a"), 2);
    assert_int_equal(live_server_requests(&c.server, "/b"), 2);
    live_call_close(&c);
}

/* The last leg was a GET, but the call is a POST: its effect at /a must not happen twice. */
static void a_post_redirected_to_get_stays_unsafe(void **state)
{
    struct live_call c;
    live_call_open(&c, "/a 303 location=/b\n/b 503", 3);
    curl_easy_setopt(c.easy, CURLOPT_FOLLOWLOCATION, 1L);
    live_call_post(&c, "x");
    assert_int_equal(live_call_perform(&c, "/a"), CURLE_OK);
    live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_NOT_REPEATABLE, 1);
    live_server_stop(&c.server);
    assert_int_equal(live_server_requests(&c.server, "/a"), 1);
    assert_string_equal(live_server_request(&c.server, "/b", 0)->method, "GET");
    live_call_close(&c);
}

static void a_failure_of_the_second_leg_is_retried(void **state)
{
    for (int sink = 0; sink < 2; sink++) {
        struct live_call c;
        live_call_open(&c, "/a 302 location=/b body=elsewhere\n/b reset | close | 200 body=there", 4);
        curl_easy_setopt(c.easy, CURLOPT_FOLLOWLOCATION, 1L);
        curl_easy_setopt(c.easy, CURLOPT_FORBID_REUSE, 1L); /* otherwise the guard stops a replay */
        if (!sink)
            live_call_without_sink(&c);
        assert_int_equal(live_call_perform(&c, "/a"), CURLE_OK);
        live_expect(&c, BIDE_ACTION_DONE, BIDE_REASON_SUCCEEDED, 3);
        live_expect_text(&c.sink, "there");
        live_call_close(&c);
    }
}

/* The limits apply to each head, not to their sum. */
static void head_limits_apply_to_each_leg(void **state)
{
    struct live_call c;
    char script[4096] = "/a 302 location=/a x9";
    for (size_t i = 0, used = strlen(script); i < 60; i++)
        used += (size_t)snprintf(script + used, sizeof script - used, " header=\"X-%zu: 1\"", i);
    strcat(script, " | 200 body=there");
    live_call_open(&c, script, 1);
    curl_easy_setopt(c.easy, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(c.easy, CURLOPT_MAXREDIRS, 20L);
    assert_int_equal(live_call_perform(&c, "/a"), CURLE_OK);
    live_expect(&c, BIDE_ACTION_DONE, BIDE_REASON_SUCCEEDED, 1);
    live_expect_text(&c.sink, "there");
    live_call_close(&c);
}

/* libcurl might follow these statuses with a leg of its own, so the outcome is reported late; it still comes from the
 * head. */
static void a_failure_status_counts_although_its_body_breaks_off(void **state)
{
    static const int status[] = {401, 407, 417, 404};
    static const char *const cut[] = {"close=headers", "reset=headers", "close=half", "chunked close=headers"};
    for (size_t i = 0; i < 4; i++)
        for (size_t k = 0; k < 4; k++) {
            struct live_call c;
            char script[64];
            snprintf(script, sizeof script, "/a %d bytes=100 %s", status[i], cut[k]);
            live_call_open(&c, script, 3);
            live_call_perform(&c, "/a");
            live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_PERMANENT, 1);
            assert_int_equal(c.result.status, status[i]);
            assert_int_equal(c.result.attempt[0].evidence, BIDE_EVIDENCE_ANSWERED);
            live_call_close(&c);
        }
}

/* The first connection closes within the head. */
static void serve_part_of_a_head(void *context, int fd, unsigned number)
{
    static const char whole[] = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine";
    char head[1024], body;
    const char *at = number == 1 ? context : whole;
    if (live_tcp_read_head(fd, head, sizeof head) && (head[0] != 'P' || live_tcp_read(fd, &body, 1)))
        live_tcp_write(fd, at, strlen(at));
}

static void a_response_that_ends_within_its_head_is_no_response(void **state)
{
    static const char *const parts[] = {"HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Le",
                                        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n",
                                        "HTTP/1.1 302 Found\r\nLocation: /b\r\n"};
    for (size_t i = 0; i < 2 * sizeof parts / sizeof *parts; i++) {
        struct live_call c;
        char url[64];
        struct live_tcp *server = live_tcp_new(serve_part_of_a_head, (void *)(uintptr_t)parts[i / 2]);
        snprintf(url, sizeof url, "http://127.0.0.1:%u/", live_tcp_port(server));
        live_call_open(&c, "* 500", 3);
        if (i % 2 == 1)
            live_call_without_sink(&c);
        assert_int_equal(live_call_perform_url(&c, url), CURLE_OK);
        live_expect(&c, BIDE_ACTION_DONE, BIDE_REASON_SUCCEEDED, 2);
        live_expect_attempt(&c, 0, CURLE_PARTIAL_FILE, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_UNKNOWN);
        live_expect_text(&c.sink, "fine");
        live_tcp_free(server);
        live_call_close(&c);
    }
}

static void a_post_whose_response_ends_within_its_head_is_not_repeated(void **state)
{
    struct live_call c;
    char url[64];
    struct live_tcp *server = live_tcp_new(serve_part_of_a_head, (void *)(uintptr_t) "HTTP/1.1 200 OK\r\nConte");
    snprintf(url, sizeof url, "http://127.0.0.1:%u/", live_tcp_port(server));
    live_call_open(&c, "* 500", 3);
    live_call_post(&c, "x");
    assert_int_equal(live_call_perform_url(&c, url), CURLE_PARTIAL_FILE);
    live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_NOT_REPEATABLE, 1);
    live_tcp_free(server);
    live_call_close(&c);
}

static void interim_responses_are_ignored(void **state)
{
    struct live_call c;
    live_call_open(&c, "/a interim=103 503 | interim=102 interim=103 200 body=fine", 3);
    assert_int_equal(live_call_perform(&c, "/a"), CURLE_OK);
    live_expect(&c, BIDE_ACTION_DONE, BIDE_REASON_SUCCEEDED, 2);
    assert_int_equal(c.result.attempt[0].status, 503);
    live_expect_text(&c.sink, "fine");
    live_call_close(&c);
}

static void a_head_request_is_retried_on_the_same_connection(void **state)
{
    for (int sink = 0; sink < 2; sink++) {
        struct live_call c;
        live_call_open(&c, "/a 503 bytes=1000000 | 200 bytes=1000000", 3);
        curl_easy_setopt(c.easy, CURLOPT_NOBODY, 1L);
        if (!sink)
            live_call_without_sink(&c);
        assert_int_equal(live_call_perform(&c, "/a"), CURLE_OK);
        live_expect(&c, BIDE_ACTION_DONE, BIDE_REASON_SUCCEEDED, 2);
        assert_int_equal(c.sink.length, 0);
        live_server_stop(&c.server);
        assert_string_equal(c.server.seen[1].method, "HEAD");
        assert_int_equal(c.server.seen[0].connection, c.server.seen[1].connection);
        live_call_close(&c);
    }
}

/* A field whose name looks like a status line. */
static void a_header_field_cannot_imitate_a_status_line(void **state)
{
    struct live_call c;
    live_call_open(&c, "/a 503 header=\"HTTP/1.1 200: x\" | 200 body=fine", 3);
    assert_int_equal(live_call_perform(&c, "/a"), CURLE_OK);
    live_expect(&c, BIDE_ACTION_DONE, BIDE_REASON_SUCCEEDED, 2);
    live_expect_text(&c.sink, "fine");
    live_call_close(&c);
}

/* ---- time ---- */

static void a_hint_beyond_the_deadline_ends_the_call_at_once(void **state)
{
    struct live_call c;
    live_call_open(&c, "/a 503 retry-after=25 body=late", 3);
    c.options.deadline_ns = bide_now() + 20 * BIDE_S;
    assert_int_equal(live_call_perform(&c, "/a"), CURLE_OK);
    live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_DEADLINE_NEAR, 1);
    live_expect_text(&c.sink, "late");
    assert_true(c.result.total_ns < 15 * BIDE_S);
    live_call_close(&c);
}

static void an_expired_deadline_opens_no_connection(void **state)
{
    struct live_call c;
    struct live_trap trap;
    live_trap_open(&trap);
    live_call_open(&c, "", 3);
    c.options.deadline_ns = bide_now() - 1;
    assert_int_equal(live_call_perform_url(&c, trap.url), BIDE_CURL_NOT_SENT);
    live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_DEADLINE, 0);
    assert_false(live_trap_sprung(&trap));
    live_trap_close(&trap);
    live_call_close(&c);
}

static void the_deadline_ends_a_running_attempt(void **state)
{
    struct live_call c;
    live_call_open(&c, "/a delay=never", 3);
    c.options.deadline_ns = bide_now() + 300 * BIDE_MS;
    assert_int_equal(live_call_perform(&c, "/a"), CURLE_OPERATION_TIMEDOUT);
    assert_int_equal(c.result.verdict.action, BIDE_ACTION_GIVE_UP);
    live_expect_attempt(&c, 0, CURLE_OPERATION_TIMEDOUT, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_UNKNOWN);
    assert_true(c.result.total_ns < LONG_NS / 2);
    live_call_close(&c);
}

static void an_attempt_timeout_is_retried_for_a_get(void **state)
{
    struct live_call c;
    live_call_open(&c, "/a delay=never | 200", 4);
    c.policy.attempt_timeout_ns = 500 * BIDE_MS;
    assert_int_equal(live_call_perform(&c, "/a"), CURLE_OK);
    assert_true(c.result.attempts >= 2);
    live_expect_attempt(&c, 0, CURLE_OPERATION_TIMEDOUT, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_UNKNOWN);
    assert_true(c.result.attempt[0].time_ns >= 490 * BIDE_MS);
    live_call_close(&c);
}

static void an_attempt_timeout_is_not_retried_for_a_post(void **state)
{
    struct live_call c;
    live_call_open(&c, "/a delay=never | 200", 4);
    c.policy.attempt_timeout_ns = 300 * BIDE_MS;
    live_call_post(&c, "x");
    assert_int_equal(live_call_perform(&c, "/a"), CURLE_OPERATION_TIMEDOUT);
    live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_NOT_REPEATABLE, 1);
    live_server_stop(&c.server);
    assert_int_equal(c.server.count, 1);
    live_call_close(&c);
}

/* ---- gates ---- */

static void a_refused_connection_is_retried_for_every_method(void **state)
{
    static void (*const set[])(struct live_call *) = {set_get, set_post, set_unknown_post};
    struct live_trap trap;
    live_refuser_open(&trap);
    for (size_t i = 0; i < 3; i++) {
        struct live_call c;
        live_call_open(&c, "", 3);
        set[i](&c);
        assert_int_equal(live_call_perform_url(&c, trap.url), CURLE_COULDNT_CONNECT);
        live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_ATTEMPTS_SPENT, 3);
        for (size_t k = 0; k < 3; k++)
            live_expect_attempt(&c, k, CURLE_COULDNT_CONNECT, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_NOT_SENT);
        live_call_close(&c);
    }
    live_trap_close(&trap);
}

static void an_open_breaker_opens_no_connection(void **state)
{
    struct live_call c;
    struct live_trap trap;
    live_trap_open(&trap);
    live_call_open(&c, "", 3);
    bide_breaker_hold(&c.target, BIDE_HOLD_OPEN);
    assert_int_equal(live_call_perform_url(&c, trap.url), BIDE_CURL_NOT_SENT);
    live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_BREAKER_OPEN, 0);
    assert_false(live_trap_sprung(&trap));
    live_trap_close(&trap);
    live_call_close(&c);
}

static void an_empty_budget_refuses_retries_but_not_first_attempts(void **state)
{
    struct live_call c;
    struct bide_target_config config;
    live_call_open(&c, "/a 503", 2);
    bide_target_config_init(&config, BIDE_PRESET_SERVICE);
    config.breaker.kind = BIDE_BREAKER_OFF;
    config.budget.refill_per_minute_milli = 0;
    config.budget.capacity_milli = 3 * config.budget.cost_milli;
    assert_int_equal(bide_target_init(&c.target, &config, bide_now(), NULL), BIDE_OK);
    for (int i = 0; i < 3; i++) {
        live_call_perform(&c, "/a");
        live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_ATTEMPTS_SPENT, 2);
        assert_int_equal(bide_target_get(&c.target, bide_now()).budget_left_milli,
                         (2 - i) * (int64_t)config.budget.cost_milli);
    }
    live_call_perform(&c, "/a");
    live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_BUDGET_EMPTY, 1);
    assert_int_equal(c.code, CURLE_OK);
    live_expect_text(&c.sink, "Service Unavailable\n");
    live_server_stop(&c.server);
    assert_int_equal(c.server.count, 7);
    live_call_close(&c);
}

static void retries_of_one_retry_key_are_limited(void **state)
{
    struct live_call c;
    struct bide_target_config config;
    live_call_open(&c, "/a 503", 2);
    bide_target_config_get(&c.target, &config);
    config.key_retries = 1;
    config.key_interval_ns = 60 * BIDE_S;
    assert_int_equal(bide_target_configure(&c.target, &config, bide_now(), NULL), BIDE_OK);
    c.options.retry_key = bide_hash("bob", 3);
    live_call_perform(&c, "/a");
    live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_ATTEMPTS_SPENT, 2);
    live_call_perform(&c, "/a");
    live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_KEY_LIMIT, 1);
    c.options.retry_key = bide_hash("eve", 3);
    live_call_perform(&c, "/a");
    live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_ATTEMPTS_SPENT, 2);
    live_call_close(&c);
}

static void require_key_refuses_an_unkeyed_post_before_it_is_sent(void **state)
{
    struct live_call c;
    live_call_open(&c, "/a 200", 3);
    c.policy.require_key = true;
    assert_int_equal(live_call_perform(&c, "/a"), CURLE_OK);
    live_expect(&c, BIDE_ACTION_DONE, BIDE_REASON_SUCCEEDED, 1);
    live_call_post(&c, "x");
    assert_int_equal(live_call_perform(&c, "/a"), BIDE_CURL_NOT_SENT);
    assert_int_equal(c.result.verdict.action, BIDE_ACTION_GIVE_UP);
    assert_int_equal(c.result.verdict.reason, BIDE_REASON_KEY_REQUIRED);
    c.options.inject = BIDE_CURL_INJECT_KEY;
    assert_int_equal(live_call_perform(&c, "/a"), CURLE_OK);
    live_server_stop(&c.server);
    assert_int_equal(c.server.count, 2);
    assert_null(c.server.seen[0].key);
    assert_non_null(c.server.seen[1].key);
    live_call_close(&c);
}

static void require_key_refuses_a_given_unsafe_request_before_connecting(void **state)
{
    struct live_call c;
    struct live_trap trap;
    live_trap_open(&trap);
    live_call_open(&c, "", 3);
    c.policy.require_key = true;
    c.options.safety = BIDE_CURL_UNSAFE;
    assert_int_equal(live_call_perform_url(&c, trap.url), BIDE_CURL_NOT_SENT);
    live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_KEY_REQUIRED, 0);
    assert_false(live_trap_sprung(&trap));
    live_trap_close(&trap);
    live_call_close(&c);
}

static void an_inner_layer_does_not_retry(void **state)
{
    struct live_call c;
    struct bide_layer inbound = {.attempt = 2, .left_ns = BIDE_NEVER};
    live_call_open(&c, "/a 503", 3);
    c.options.inbound = &inbound;
    live_call_perform(&c, "/a");
    live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_INNER_LAYER, 1);
    live_call_close(&c);
}

static void invalid_options_open_no_connection(void **state)
{
    struct live_call c;
    struct live_trap trap;
    live_trap_open(&trap);
    live_call_open(&c, "", 3);
    c.options.reserved_[0] = 1;
    assert_int_equal(live_call_perform_url(&c, trap.url), CURLE_BAD_FUNCTION_ARGUMENT);
    assert_int_equal(c.result.attempts, 0);
    assert_false(live_trap_sprung(&trap));
    live_trap_close(&trap);
    live_call_close(&c);
}

/* ---- the result ---- */

static void the_result_describes_each_attempt(void **state)
{
    struct live_call c;
    live_call_open(&c, "/a 503 | reset | 429 retry-after=0 | close | 200", 9);
    assert_int_equal(live_call_perform(&c, "/a"), CURLE_OK);
    live_expect(&c, BIDE_ACTION_DONE, BIDE_REASON_SUCCEEDED, 5);
    live_expect_attempt(&c, 0, CURLE_OK, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_ANSWERED);
    assert_int_equal(c.result.attempt[1].status, 0);
    assert_int_equal(c.result.attempt[1].evidence, BIDE_EVIDENCE_UNKNOWN);
    live_expect_attempt(&c, 2, CURLE_OK, BIDE_KIND_THROTTLED, BIDE_EVIDENCE_ANSWERED);
    assert_int_equal(c.result.attempt[2].hint.kind, BIDE_HINT_WAIT);
    live_expect_attempt(&c, 4, CURLE_OK, BIDE_KIND_OK, BIDE_EVIDENCE_ANSWERED);
    int64_t sum = 0;
    for (size_t i = 0; i < 5; i++) {
        assert_true(i == 0 ? c.result.attempt[i].delay_ns == 0 : c.result.attempt[i].delay_ns >= BIDE_MS);
        assert_true(c.result.attempt[i].time_ns > 0);
        sum += c.result.attempt[i].delay_ns + c.result.attempt[i].time_ns;
    }
    assert_true(sum <= c.result.total_ns);
    assert_int_equal(c.result.attempt[5].status, 0);
    live_call_close(&c);
}

static void attempts_beyond_the_recorded_number_are_made(void **state)
{
    struct live_call c;
    live_call_open(&c, "/a 503", 20);
    live_call_perform(&c, "/a");
    live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_ATTEMPTS_SPENT, 20);
    assert_int_equal(c.result.attempt[BIDE_CURL_ATTEMPTS_RECORDED - 1].status, 503);
    live_server_stop(&c.server);
    assert_int_equal(c.server.count, 20);
    live_call_close(&c);
}

static void a_second_call_resets_the_result(void **state)
{
    struct live_call c;
    live_call_open(&c, "/a 503 | 200\n/b 200", 3);
    c.options.inject = BIDE_CURL_INJECT_KEY;
    c.options.body.kind = BIDE_CURL_BODY_REPEATABLE;
    live_call_perform(&c, "/a");
    assert_int_equal(c.result.attempts, 2);
    c.options.inject = 0;
    live_call_perform(&c, "/b");
    live_expect(&c, BIDE_ACTION_DONE, BIDE_REASON_SUCCEEDED, 1);
    assert_int_equal(c.result.attempt[1].status, 0);
    assert_string_equal(c.result.key, "");
    live_call_close(&c);
}

int main(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(perform_needs_only_the_handle),
        cmocka_unit_test(a_null_handle_is_an_error),
        cmocka_unit_test(the_origin_s_target_is_taken_from_the_given_table),
        cmocka_unit_test(a_get_is_retried_after_these_statuses_only),
        cmocka_unit_test(a_post_is_retried_only_if_it_was_not_processed),
        cmocka_unit_test(a_put_is_retried_like_a_get),
        cmocka_unit_test(a_keyed_post_is_retried_after_409_too),
        cmocka_unit_test(a_given_safety_overrides_the_method),
        cmocka_unit_test(an_unknown_body_is_not_sent_again),
        cmocka_unit_test(the_same_statuses_are_retried_without_a_sink),
        cmocka_unit_test(status_2xx_and_3xx_are_final),
        cmocka_unit_test(status_425_is_retried_once),
        cmocka_unit_test(some_statuses_are_retried_on_a_new_connection),
        cmocka_unit_test(status_rules_override_the_table),
        cmocka_unit_test(a_retry_follows_the_redirect_from_the_start),
        cmocka_unit_test(a_post_redirected_to_get_stays_unsafe),
        cmocka_unit_test(a_failure_of_the_second_leg_is_retried),
        cmocka_unit_test(head_limits_apply_to_each_leg),
        cmocka_unit_test(a_failure_status_counts_although_its_body_breaks_off),
        cmocka_unit_test(a_response_that_ends_within_its_head_is_no_response),
        cmocka_unit_test(a_post_whose_response_ends_within_its_head_is_not_repeated),
        cmocka_unit_test(interim_responses_are_ignored),
        cmocka_unit_test(a_head_request_is_retried_on_the_same_connection),
        cmocka_unit_test(a_header_field_cannot_imitate_a_status_line),
        cmocka_unit_test(a_hint_beyond_the_deadline_ends_the_call_at_once),
        cmocka_unit_test(an_expired_deadline_opens_no_connection),
        cmocka_unit_test(the_deadline_ends_a_running_attempt),
        cmocka_unit_test(an_attempt_timeout_is_retried_for_a_get),
        cmocka_unit_test(an_attempt_timeout_is_not_retried_for_a_post),
        cmocka_unit_test(a_refused_connection_is_retried_for_every_method),
        cmocka_unit_test(an_open_breaker_opens_no_connection),
        cmocka_unit_test(an_empty_budget_refuses_retries_but_not_first_attempts),
        cmocka_unit_test(retries_of_one_retry_key_are_limited),
        cmocka_unit_test(require_key_refuses_an_unkeyed_post_before_it_is_sent),
        cmocka_unit_test(require_key_refuses_a_given_unsafe_request_before_connecting),
        cmocka_unit_test(an_inner_layer_does_not_retry),
        cmocka_unit_test(invalid_options_open_no_connection),
        cmocka_unit_test(the_result_describes_each_attempt),
        cmocka_unit_test(attempts_beyond_the_recorded_number_are_made),
        cmocka_unit_test(a_second_call_resets_the_result),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    curl_global_cleanup();
    return failed;
}
