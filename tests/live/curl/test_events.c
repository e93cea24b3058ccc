/* test_events.c - what the listeners get of calls over libcurl: target, status, one end for each start, refreshes, and
 * the parent id that the server received. */
#include "live_call.h"
#include "live_multi.h"

#include <bide/clock.h>
#include <bide/curl.h>
#include <bide/event.h>

#include <stdio.h>
#include <string.h>

/* Events as text, one a line: "wait backoff after 1 transient 503". Of a refresh "refresh" follows the number. */
struct event_log {
    char text[1024];
    char target[BIDE_TARGET_NAME_MAX + 1];
    char parent[4][17]; /* parent ids of the starts */
    size_t starts;
};

static void log_event(void *context, const struct bide_event *event)
{
    static const char *const kinds[] = {"", " hedge", " refresh"};
    struct event_log *log = context;
    size_t used = strlen(log->text);
    bool is_start = event->verdict->action == BIDE_ACTION_START;
    snprintf(log->target, sizeof log->target, "%s", event->target);
    used += (size_t)snprintf(log->text + used, sizeof log->text - used, "%s %s",
                             bide_action_label(event->verdict->action), bide_reason_label(event->verdict->reason));
    if (event->attempt > 0)
        used += (size_t)snprintf(log->text + used, sizeof log->text - used, "%s %u%s", is_start ? "" : " after",
                                 event->attempt, kinds[event->attempt_kind]);
    if (event->outcome)
        used += (size_t)snprintf(log->text + used, sizeof log->text - used, " %s %d",
                                 bide_kind_label(event->outcome->kind), event->status);
    snprintf(log->text + used, sizeof log->text - used, "\n");
    if (is_start && event->trace && log->starts < 4)
        snprintf(log->parent[log->starts++], sizeof log->parent[0], "%016llx",
                 (unsigned long long)event->trace->parent);
}

static void open_logged(struct live_call *c, struct event_log *log, const char *script, uint32_t attempts)
{
    *log = (struct event_log){.starts = 0};
    live_call_open(c, script, attempts);
    c->options.event = log_event;
    c->options.context = log;
}

static void expect_events(const char *script, uint32_t attempts, const char *text)
{
    struct live_call c;
    struct event_log log;
    open_logged(&c, &log, script, attempts);
    live_call_perform(&c, "/a");
    assert_string_equal(log.text, text);
    live_call_close(&c);
}

static void event_gets_every_verdict_in_order(void **state)
{
    expect_events("/a 200", 3, "start first_attempt 1\ndone succeeded after 1 ok 200\n");
    expect_events("/a 503 | 429 | 200", 3,
                  "start first_attempt 1\nwait backoff after 1 transient 503\nstart retry 2\n"
                  "wait backoff after 2 throttled 429\nstart retry 3\ndone succeeded after 3 ok 200\n");
    expect_events("/a reset", 2,
                  "start first_attempt 1\nwait backoff after 1 transient 0\nstart retry 2\n"
                  "give_up attempts_spent after 2 transient 0\n");
    expect_events("/a 404", 2, "start first_attempt 1\ngive_up permanent after 1 permanent 404\n");
}

static void event_gets_no_start_of_a_cancelled_call(void **state)
{
    struct live_call c;
    struct event_log log;
    struct bide_cancel cancel;
    open_logged(&c, &log, "/a 200", 3);
    assert_int_equal(bide_cancel_init(&cancel), BIDE_OK);
    bide_cancel_now(&cancel);
    c.options.cancel = &cancel;
    live_call_perform(&c, "/a");
    assert_string_equal(log.text, "give_up cancelled\n");
    bide_cancel_free(&cancel);
    live_call_close(&c);
}

static void a_call_that_could_not_begin_has_no_event(void **state)
{
    struct live_call c;
    struct event_log log;
    open_logged(&c, &log, "/a 200", 3);
    c.options.body.kind = BIDE_CURL_BODY_STREAM; /* without a read function */
    live_call_perform(&c, "/a");
    assert_int_equal(c.code, CURLE_BAD_FUNCTION_ARGUMENT);
    assert_string_equal(log.text, "");
    live_call_close(&c);
}

/* ---- the target's name ---- */

static void a_target_is_named_by_the_origin_or_by_the_options(void **state)
{
    struct live_call c;
    struct event_log log;
    open_logged(&c, &log, "/a 200", 3);
    live_call_perform(&c, "/a?token=secret");
    char origin[BIDE_TARGET_NAME_MAX + 1];
    assert_true(bide_curl_origin(origin, sizeof origin, c.server.url));
    assert_string_equal(log.target, origin);
    c.options.target_name = "payments";
    live_call_perform(&c, "/a");
    assert_string_equal(log.target, "payments");
    live_call_close(&c);
}

/* ---- attempts that no outcome of the engine ends ---- */

static bool refresh_token(void *context, CURL *easy)
{
    return curl_easy_setopt(easy, CURLOPT_XOAUTH2_BEARER, "new") == CURLE_OK;
}

static void a_request_after_a_401_is_an_attempt_of_its_own_kind(void **state)
{
    struct live_call c;
    struct event_log log;
    open_logged(&c, &log, "/a 401 body=who | 503 | 200", 3);
    c.options.refresh = refresh_token;
    c.options.inject = BIDE_CURL_INJECT_TRACE;
    live_call_perform(&c, "/a");
    live_expect_done(&c, 2);
    assert_string_equal(log.text,
                        "start first_attempt 1\nnone nothing after 1 permanent 401\nstart first_attempt 1 refresh\n"
                        "wait backoff after 1 refresh transient 503\nstart retry 2\ndone succeeded after 2 ok 200\n");
    assert_int_equal(log.starts, 3);
    assert_string_not_equal(log.parent[0], log.parent[1]);
    live_call_close(&c);
}

static void a_hedge_that_lost_ends_as_cancelled(void **state)
{
    struct live_server server;
    struct live_multi_call call;
    struct event_log log = {.starts = 0};
    struct bide_multi *multi = live_multi_new();
    struct bide_policy policy = live_policy(3);
    policy.hedges_max = 1;
    policy.hedge_delay_ns = 5 * BIDE_MS;
    live_server_start(&server, "/a 200 body=slow delay=10m | 200 body=fine");
    live_multi_call_init(&call, live_server_url(&server, "/a"), &policy);
    call.options.event = log_event;
    call.options.context = &log;
    live_multi_call_start(&call, multi, BIDE_NO_TARGET);
    assert_true(live_multi_run(multi));
    assert_string_equal(call.sink.at, "fine");
    assert_string_equal(log.text, "start first_attempt 1\nstart hedge 2 hedge\nnone nothing after 1 cancelled 0\n"
                                  "done succeeded after 2 hedge ok 200\n");
    assert_string_equal(log.target, ""); /* BIDE_NO_TARGET */
    bide_multi_free(multi);
    live_multi_call_free(&call);
    live_server_free(&server);
}

static void an_attempt_cut_by_a_cancellation_ends_as_cancelled(void **state)
{
    struct live_server server;
    struct live_multi_call call;
    struct event_log log = {.starts = 0};
    struct bide_multi *multi = live_multi_new();
    struct bide_policy policy = live_policy(3);
    live_server_start(&server, "/a 200 delay=10m");
    live_multi_call_init(&call, live_server_url(&server, "/a"), &policy);
    call.options.event = log_event;
    call.options.context = &log;
    live_multi_call_start(&call, multi, NULL);
    bide_multi_cancel_all(multi);
    assert_int_equal(call.done, 1);
    assert_string_equal(log.text, "start first_attempt 1\nnone nothing after 1 cancelled 0\ngive_up cancelled\n");
    bide_multi_free(multi);
    live_multi_call_free(&call);
    live_server_free(&server);
}

/* ---- traces ---- */

static void an_event_has_the_parent_id_that_the_server_received(void **state)
{
    struct live_call c;
    struct event_log log;
    open_logged(&c, &log, "/a 401 | 503 | 200", 3);
    c.options.inject = BIDE_CURL_INJECT_TRACE;
    c.options.refresh = refresh_token;
    live_call_perform(&c, "/a");
    live_server_stop(&c.server);
    assert_int_equal(c.server.count, 3);
    assert_int_equal(log.starts, 3);
    for (size_t i = 0; i < 3; i++)
        assert_memory_equal(c.server.seen[i].traceparent + sizeof "00-" + 32, log.parent[i], 16);
    live_call_close(&c);
}

static bool sample_all(void *context, const struct bide_trace *trace)
{
    return true;
}

static void a_new_trace_is_sampled_if_the_listener_of_the_process_records_it(void **state)
{
    static const struct bide_listener listener = {.sample = sample_all};
    struct live_call c;
    live_call_open(&c, "/a 200", 3);
    c.options.inject = BIDE_CURL_INJECT_TRACE;
    live_call_perform(&c, "/a");
    assert_int_equal(bide_listen(&listener), BIDE_OK);
    live_call_perform(&c, "/a");
    bide_listen(NULL);
    live_server_stop(&c.server);
    assert_string_equal(c.server.seen[0].traceparent + 53, "02");
    assert_string_equal(c.server.seen[1].traceparent + 53, "03");
    live_call_close(&c);
}

static void the_listener_of_the_process_gets_calls_without_a_hook(void **state)
{
    static struct event_log log;
    static const struct bide_listener listener = {.event = log_event, .context = &log};
    struct live_call c;
    live_call_open(&c, "/a 503 | 200", 3);
    assert_int_equal(bide_listen(&listener), BIDE_OK);
    live_call_perform(&c, "/a");
    bide_listen(NULL);
    live_call_perform(&c, "/a");
    assert_string_equal(log.text, "start first_attempt 1\nwait backoff after 1 transient 503\nstart retry 2\n"
                                  "done succeeded after 2 ok 200\n");
    live_call_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(event_gets_every_verdict_in_order),
        cmocka_unit_test(event_gets_no_start_of_a_cancelled_call),
        cmocka_unit_test(a_call_that_could_not_begin_has_no_event),
        cmocka_unit_test(a_target_is_named_by_the_origin_or_by_the_options),
        cmocka_unit_test(a_request_after_a_401_is_an_attempt_of_its_own_kind),
        cmocka_unit_test(a_hedge_that_lost_ends_as_cancelled),
        cmocka_unit_test(an_attempt_cut_by_a_cancellation_ends_as_cancelled),
        cmocka_unit_test(an_event_has_the_parent_id_that_the_server_received),
        cmocka_unit_test(a_new_trace_is_sampled_if_the_listener_of_the_process_records_it),
        cmocka_unit_test(the_listener_of_the_process_gets_calls_without_a_hook),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
