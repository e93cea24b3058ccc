/* test_multi.c - many calls in one thread: each started call is done exactly once; a waiting call is not in libcurl; no
 * byte of a retried attempt reaches a sink; a request that may have run is not repeated. */
#include "live_multi.h"
#include "live_tcp.h"

#include <bide/clock.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MANY 2000

struct fixture {
    struct live_server server;
    struct bide_multi *multi;
    struct bide_policy policy;
    struct bide_target target;
};

static void fixture_begin(struct fixture *w, const char *script, uint32_t attempts)
{
    live_server_start(&w->server, script);
    w->multi = live_multi_new();
    w->policy = live_policy(attempts);
    live_target_without_gates(&w->target);
}

static void fixture_end(struct fixture *w)
{
    bide_multi_free(w->multi);
    live_server_free(&w->server);
}

static void call_init(struct fixture *w, struct live_multi_call *call, const char *path)
{
    live_multi_call_init(call, live_server_url(&w->server, path), &w->policy);
}

static void call_start(struct fixture *w, struct live_multi_call *call)
{
    live_multi_call_start(call, w->multi, &w->target);
    assert_int_equal(call->start_error, BIDE_OK);
}

static void call_init_and_start(struct fixture *w, struct live_multi_call *call, const char *path)
{
    call_init(w, call, path);
    call_start(w, call);
}

static void assert_cancelled(const struct live_multi_call *call)
{
    assert_int_equal(call->done, 1);
    assert_int_equal(call->verdict.action, BIDE_ACTION_GIVE_UP);
    assert_int_equal(call->verdict.reason, BIDE_REASON_CANCELLED);
    assert_int_equal(call->code, CURLE_ABORTED_BY_CALLBACK);
    assert_int_equal(call->result.verdict.reason, BIDE_REASON_CANCELLED);
}

static void assert_succeeded(const struct live_multi_call *call, const char *body)
{
    assert_int_equal(call->done, 1);
    assert_int_equal(call->code, CURLE_OK);
    assert_int_equal(call->verdict.action, BIDE_ACTION_DONE);
    assert_int_equal(call->result.status, 200);
    assert_string_equal(call->sink.at, body);
}

/* ---- how calls end ---- */

static void a_successful_call_is_done_once_with_its_body(void **state)
{
    struct fixture w;
    struct live_multi_call call;
    fixture_begin(&w, "/fine body=\"hello\"", 3);
    call_init_and_start(&w, &call, "/fine");
    assert_int_equal(call.done, 0);
    assert_int_equal(bide_multi_running_get(w.multi), 1);
    assert_true(live_multi_run(w.multi));
    assert_succeeded(&call, "hello");
    assert_int_equal(call.last_status, 200);
    assert_false(call.by_copy);
    assert_int_equal(call.result.attempts, 1);
    live_multi_call_free(&call);
    fixture_end(&w);
}

static void the_result_describes_each_attempt(void **state)
{
    struct fixture w;
    struct live_multi_call call;
    fixture_begin(&w, "/flaky 503 body=\"no\" | 429 header=\"retry-after-ms: 30\" | reset | 200 body=\"yes\"", 5);
    call_init_and_start(&w, &call, "/flaky");
    assert_true(live_multi_run(w.multi));
    assert_succeeded(&call, "yes");
    const struct bide_curl_attempt *a = call.result.attempt;
    assert_int_equal(call.result.attempts, 4);
    assert_int_equal(call.verdict.attempt, 4);
    assert_int_equal(a[0].status, 503);
    assert_int_equal(a[0].kind, BIDE_KIND_TRANSIENT);
    assert_int_equal(a[0].code, CURLE_OK);
    assert_int_equal(a[0].delay_ns, 0);
    assert_int_equal(a[1].status, 429);
    assert_int_equal(a[1].kind, BIDE_KIND_THROTTLED);
    assert_int_equal(a[1].hint.wait_ns, 30 * BIDE_MS);
    assert_true(a[1].delay_ns >= BIDE_MS);
    assert_int_equal(a[2].status, 0);
    assert_int_not_equal(a[2].code, CURLE_OK);
    assert_true(a[2].delay_ns >= 30 * BIDE_MS);
    assert_int_equal(a[3].status, 200);
    assert_int_equal(a[3].kind, BIDE_KIND_OK);
    assert_true(call.result.total_ns >= a[1].delay_ns + a[2].delay_ns + a[3].delay_ns);
    live_multi_call_free(&call);
    fixture_end(&w);
}

static void the_last_failure_reaches_the_sink_completely(void **state)
{
    struct fixture w;
    struct live_multi_call call;
    fixture_begin(&w, "/down 503 body=\"first\" | 503 body=\"second\" | 503 body=\"third\"", 3);
    call_init_and_start(&w, &call, "/down");
    assert_true(live_multi_run(w.multi));
    assert_int_equal(call.done, 1);
    assert_int_equal(call.code, CURLE_OK);
    assert_int_equal(call.verdict.reason, BIDE_REASON_ATTEMPTS_SPENT);
    assert_int_equal(call.result.status, 503);
    assert_string_equal(call.sink.at, "third");
    live_multi_call_free(&call);
    fixture_end(&w);
}

/* Ten bytes at once, then nothing: libcurl's average of five seconds would notice the silence only later. */
static void a_transfer_without_a_byte_is_stalled_after_the_stall_timeout(void **state)
{
    struct fixture w;
    struct live_multi_call call;
    fixture_begin(&w, "/silent 200 bytes=20 drip=10/1h | 200 body=yes", 3);
    call_init(&w, &call, "/silent");
    call.options.stall_timeout_ns = 300 * BIDE_MS;
    call_start(&w, &call);
    assert_true(live_multi_run(w.multi));
    assert_int_equal(call.done, 1);
    assert_true(call.result.attempt[0].stalled);
    assert_int_equal(call.result.attempt[0].code, CURLE_OPERATION_TIMEDOUT);
    assert_int_equal(call.result.attempt[0].kind, BIDE_KIND_TRANSIENT);
    assert_true(call.result.attempt[0].time_ns >= 300 * BIDE_MS);
    live_multi_call_free(&call);
    fixture_end(&w);
}

static size_t fail_write(char *at, size_t size, size_t count, void *context)
{
    (void)at, (void)size, (void)count;
    ++*(unsigned *)context;
    return 0;
}

static void a_failing_sink_ends_the_call(void **state)
{
    struct fixture w;
    struct live_multi_call call;
    unsigned writes = 0;
    fixture_begin(&w, "/fine 200", 5);
    call_init(&w, &call, "/fine");
    call.options.write = fail_write;
    call.options.write_data = &writes;
    call_start(&w, &call);
    assert_true(live_multi_run(w.multi));
    assert_int_equal(call.done, 1);
    assert_int_equal(call.code, CURLE_WRITE_ERROR);
    assert_int_equal(writes, 1);
    assert_int_equal(call.result.attempts, 1);
    live_multi_call_free(&call);
    fixture_end(&w);
}

static void log_event(void *context, const struct bide_event *event)
{
    char *text = context;
    size_t length = strlen(text);
    snprintf(text + length, 200 - length, "%s ", bide_action_label(event->verdict->action));
}

static void event_gets_each_verdict_once(void **state)
{
    struct fixture w;
    struct live_multi_call call;
    char events[200] = "";
    fixture_begin(&w, "/flaky 503 | 200", 3);
    call_init(&w, &call, "/flaky");
    call.options.event = log_event;
    call.options.context = events;
    call_start(&w, &call);
    assert_true(live_multi_run(w.multi));
    assert_string_equal(events, "start wait start done ");
    live_multi_call_free(&call);
    fixture_end(&w);
}

/* ---- refused at the start ---- */

static void a_call_refused_by_the_breaker_is_done_before_start_returns(void **state)
{
    struct fixture w;
    struct live_multi_call call;
    fixture_begin(&w, "/fine 200", 3);
    bide_breaker_hold(&w.target, BIDE_HOLD_OPEN);
    call_init_and_start(&w, &call, "/fine");
    assert_int_equal(call.done, 1);
    assert_null(call.active);
    assert_int_equal(call.code, BIDE_CURL_NOT_SENT);
    assert_int_equal(call.verdict.reason, BIDE_REASON_BREAKER_OPEN);
    assert_int_equal(call.result.attempts, 0);
    assert_int_equal(bide_multi_running_get(w.multi), 0);
    live_server_stop(&w.server);
    assert_int_equal(w.server.count, 0);
    live_multi_call_free(&call);
    fixture_end(&w);
}

static void a_call_with_an_expired_deadline_is_done_before_start_returns(void **state)
{
    struct fixture w;
    struct live_multi_call call;
    fixture_begin(&w, "/fine 200", 3);
    call_init(&w, &call, "/fine");
    call.options.deadline_ns = bide_now() - 1;
    call_start(&w, &call);
    assert_int_equal(call.done, 1);
    assert_int_equal(call.code, BIDE_CURL_NOT_SENT);
    assert_int_equal(call.verdict.reason, BIDE_REASON_DEADLINE);
    live_multi_call_free(&call);
    fixture_end(&w);
}

static void invalid_options_start_no_call(void **state)
{
    struct fixture w;
    struct live_multi_call call;
    struct bide_problem problem = {0};
    struct bide_multi_call *transfer = NULL;
    fixture_begin(&w, "/fine 200", 3);
    call_init(&w, &call, "/fine");
    call.options.body.kind = BIDE_CURL_BODY_STREAM; /* without a read function */
    live_multi_call_start(&call, w.multi, &w.target);
    assert_int_equal(call.start_error, BIDE_ERR_INVALID);
    struct bide_multi_job job = {.easy = call.easy, .options = &call.options};
    assert_int_equal(bide_multi_start(w.multi, &job, &transfer, &problem), BIDE_ERR_INVALID);
    assert_string_equal(problem.field, "body.read");
    assert_null(transfer);
    assert_int_equal(call.done, 0);
    assert_int_equal(bide_multi_running_get(w.multi), 0);
    live_multi_call_free(&call);
    fixture_end(&w);
}

static void a_handle_in_another_multi_ends_with_failed_init(void **state)
{
    struct fixture w;
    struct live_multi_call call;
    CURLM *other = curl_multi_init();
    fixture_begin(&w, "/fine 200", 3);
    call_init(&w, &call, "/fine");
    assert_int_equal(curl_multi_add_handle(other, call.easy), CURLM_OK);
    call_start(&w, &call);
    assert_int_equal(call.done, 1);
    assert_int_equal(call.code, CURLE_FAILED_INIT);
    assert_int_equal(call.verdict.action, BIDE_ACTION_GIVE_UP);
    curl_multi_remove_handle(other, call.easy);
    curl_multi_cleanup(other);
    live_multi_call_free(&call);
    fixture_end(&w);
}

static void a_job_needs_neither_done_nor_result(void **state)
{
    struct fixture w;
    CURL *easy = curl_easy_init();
    struct live_sink sink = {0};
    fixture_begin(&w, "/fine body=\"hello\"", 3);
    curl_easy_setopt(easy, CURLOPT_URL, live_server_url(&w.server, "/fine"));
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, live_sink_write);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &sink);
    struct bide_multi_job job = {.easy = easy, .options = BIDE_CURL_PLAIN_HANDLE};
    assert_int_equal(bide_multi_start(w.multi, &job, NULL, NULL), BIDE_OK);
    assert_true(live_multi_run(w.multi));
    assert_string_equal(sink.at, "hello");
    curl_easy_cleanup(easy);
    live_sink_free(&sink);
    fixture_end(&w);
}

/* ---- many ---- */

static void two_thousand_calls_succeed_despite_failures(void **state)
{
    struct fixture w;
    struct live_multi_call *call = calloc(MANY, sizeof *call);
    uint64_t attempts = 0;
    fixture_begin(
        &w, "/mix 200 body=\"fine\" x3 | 503 body=\"bad\" | 200 body=\"fine\" | reset | 429 body=\"less\" | loop", 60);
    curl_multi_setopt(bide_multi_handle_get(w.multi), CURLMOPT_MAX_TOTAL_CONNECTIONS, 100L);
    for (size_t i = 0; i < MANY; i++)
        call_init_and_start(&w, &call[i], "/mix");
    assert_int_equal(bide_multi_running_get(w.multi), MANY);
    assert_true(live_multi_run(w.multi));
    for (size_t i = 0; i < MANY; i++) {
        assert_succeeded(&call[i], "fine");
        attempts += call[i].result.attempts;
        live_multi_call_free(&call[i]);
    }
    live_server_stop(&w.server);
    assert_int_equal(live_server_requests(&w.server, "/mix"), attempts);
    assert_true(attempts > MANY);
    free(call);
    fixture_end(&w);
}

static size_t calls_left_of_chain;

static void next_in_chain(struct live_multi_call *call)
{
    live_sink_free(&call->sink);
    if (calls_left_of_chain-- > 0)
        live_multi_call_restart(call);
}

static void a_call_can_be_started_in_done(void **state)
{
    struct fixture w;
    struct live_multi_call call;
    fixture_begin(&w, "/mix 503 | 200 | loop", 3);
    call_init(&w, &call, "/mix");
    call.after_done = next_in_chain;
    call.other = &call;
    calls_left_of_chain = 9;
    call_start(&w, &call);
    assert_true(live_multi_run(w.multi));
    assert_int_equal(call.done, 10);
    live_server_stop(&w.server);
    assert_int_equal(w.server.count, 20);
    live_multi_call_free(&call);
    fixture_end(&w);
}

static size_t start_other(char *at, size_t size, size_t count, void *context)
{
    struct live_multi_call *call = context;
    if (call->other->multi == NULL)
        live_multi_call_start(call->other, call->multi, call->target);
    return live_sink_write(at, size, count, &call->sink);
}

static void a_call_can_be_started_in_a_write_callback(void **state)
{
    struct fixture w;
    struct live_multi_call one, two;
    fixture_begin(&w, "/one bytes=100000\n/two 503 | 200", 3);
    call_init(&w, &one, "/one");
    call_init(&w, &two, "/two");
    one.other = &two;
    one.options.write = start_other;
    one.options.write_data = &one;
    call_start(&w, &one);
    assert_true(live_multi_run(w.multi));
    assert_int_equal(one.done, 1);
    assert_int_equal(one.sink.length, 100000);
    assert_succeeded(&two, "ok\n");
    live_multi_call_free(&one);
    live_multi_call_free(&two);
    fixture_end(&w);
}

/* ---- cancelling ---- */

static size_t start_and_cancel_other(char *at, size_t size, size_t count, void *context)
{
    struct live_multi_call *call = context;
    if (call->other->multi == NULL) {
        live_multi_call_start(call->other, call->multi, call->target);
        bide_multi_cancel(call->multi, call->other->active);
    }
    return live_sink_write(at, size, count, &call->sink);
}

static bool count_attempts(void *context, CURL *easy, const struct bide_verdict *v, struct curl_slist **headers)
{
    (void)easy, (void)v, (void)headers;
    ++*(unsigned *)context;
    return true;
}

static void a_call_started_and_cancelled_in_one_callback_makes_no_attempt(void **state)
{
    struct fixture w;
    struct live_multi_call one, two;
    unsigned attempts = 0;
    fixture_begin(&w, "/one 200\n/two 200", 3);
    call_init(&w, &one, "/one");
    call_init(&w, &two, "/two");
    two.options.before = count_attempts;
    two.options.context = &attempts;
    one.other = &two;
    one.options.write = start_and_cancel_other;
    one.options.write_data = &one;
    call_start(&w, &one);
    assert_true(live_multi_run(w.multi));
    assert_int_equal(two.done, 1);
    assert_int_equal(two.verdict.reason, BIDE_REASON_CANCELLED);
    assert_int_equal(two.code, CURLE_ABORTED_BY_CALLBACK);
    assert_int_equal(attempts, 0);
    live_multi_call_free(&one);
    live_multi_call_free(&two);
    fixture_end(&w);
}

static struct bide_policy policy_with_long_waits(void)
{
    struct bide_policy policy = live_policy(3);
    policy.base_ns = policy.cap_ns = 90 * BIDE_S;
    return policy;
}

/* Returns true if the handle is not in libcurl: another multi accepts it. */
static bool handle_is_free(void *context)
{
    struct live_multi_call *call = context;
    CURLM *other = curl_multi_init();
    bool took = curl_multi_add_handle(other, call->easy) == CURLM_OK;
    if (took)
        curl_multi_remove_handle(other, call->easy);
    curl_multi_cleanup(other);
    return took;
}

static bool has_bytes(void *context)
{
    const struct live_multi_call *call = context;
    return call->sink.length > 0;
}

static bool one_request_came(void *context)
{
    return chaos_requests(((struct fixture *)context)->server.chaos) > 0;
}

static void a_waiting_call_has_no_handle_in_libcurl_and_can_be_cancelled(void **state)
{
    struct fixture w;
    struct live_multi_call call;
    fixture_begin(&w, "/down 503 body=\"bad\"", 3);
    w.policy = policy_with_long_waits();
    call_init_and_start(&w, &call, "/down");
    assert_false(handle_is_free(&call));
    assert_true(live_multi_run_until(w.multi, handle_is_free, &call));
    assert_int_equal(bide_multi_running_get(w.multi), 1);
    assert_int_equal(call.done, 0);
    bide_multi_cancel(w.multi, call.active);
    assert_cancelled(&call);
    assert_int_equal(call.result.attempts, 1);
    assert_int_equal(bide_multi_running_get(w.multi), 0);
    assert_int_equal(bide_multi_poll(w.multi, BIDE_NEVER), 0);
    live_server_stop(&w.server);
    assert_int_equal(w.server.count, 1);
    live_multi_call_free(&call);
    fixture_end(&w);
}

static void a_call_can_be_cancelled_right_after_start(void **state)
{
    struct fixture w;
    struct live_multi_call call;
    fixture_begin(&w, "/fine 200", 3);
    call_init_and_start(&w, &call, "/fine");
    bide_multi_cancel(w.multi, call.active);
    assert_cancelled(&call);
    assert_int_equal(call.sink.length, 0);
    live_multi_call_free(&call);
    fixture_end(&w);
}

static void a_connecting_call_can_be_cancelled(void **state)
{
    struct fixture w;
    struct live_blackhole port;
    struct live_multi_call call;
    fixture_begin(&w, "", 3);
    live_blackhole_open(&port);
    live_multi_call_init(&call, port.url, &w.policy);
    call_start(&w, &call);
    for (int i = 0; i < 3; i++)
        assert_int_equal(bide_multi_poll(w.multi, bide_now() + BIDE_MS), 1);
    bide_multi_cancel(w.multi, call.active);
    assert_cancelled(&call);
    live_multi_call_free(&call);
    live_blackhole_close(&port);
    fixture_end(&w);
}

static void a_call_can_be_cancelled_in_the_middle_of_its_body(void **state)
{
    struct fixture w;
    struct live_multi_call call;
    fixture_begin(&w, "/long endless=body", 3);
    call_init_and_start(&w, &call, "/long");
    assert_true(live_multi_run_until(w.multi, has_bytes, &call));
    bide_multi_cancel(w.multi, call.active);
    assert_cancelled(&call);
    live_multi_call_free(&call);
    fixture_end(&w);
}

static unsigned done_inside_callback;

static size_t cancel_self(char *at, size_t size, size_t count, void *context)
{
    struct live_multi_call *call = context;
    bide_multi_cancel(call->multi, call->active);
    done_inside_callback += call->done;
    return live_sink_write(at, size, count, &call->sink);
}

static void a_call_can_be_cancelled_in_its_own_write_callback(void **state)
{
    struct fixture w;
    struct live_multi_call call;
    fixture_begin(&w, "/long endless=body", 3);
    call_init(&w, &call, "/long");
    call.options.write = cancel_self;
    call.options.write_data = &call;
    done_inside_callback = 0;
    call_start(&w, &call);
    assert_true(live_multi_run(w.multi));
    assert_cancelled(&call);
    assert_int_equal(done_inside_callback, 0);
    live_multi_call_free(&call);
    fixture_end(&w);
}

/* Cancels the call when attempt 2 is about to start. */
static bool cancel_second(void *context, CURL *easy, const struct bide_verdict *v, struct curl_slist **headers)
{
    struct live_multi_call *call = context;
    (void)easy, (void)headers;
    if (v->attempt == 2)
        bide_multi_cancel(call->multi, call->active);
    return true;
}

static void a_call_can_be_cancelled_in_its_own_before_hook(void **state)
{
    struct fixture w;
    struct live_multi_call call;
    fixture_begin(&w, "/silent 503 | delay=never", 3);
    call_init(&w, &call, "/silent");
    call.options.before = cancel_second;
    call.options.context = &call;
    call_start(&w, &call);
    assert_true(live_multi_run(w.multi));
    assert_cancelled(&call);
    live_server_stop(&w.server);
    assert_int_equal(w.server.count, 1);
    live_multi_call_free(&call);
    fixture_end(&w);
}

static void cancel_call(struct live_multi_call *call)
{
    bide_multi_cancel(call->multi, call->active);
}

static void a_call_can_be_cancelled_in_done_of_another(void **state)
{
    struct fixture w;
    struct live_multi_call one, two;
    fixture_begin(&w, "/one 200\n/two delay=never", 3);
    call_init_and_start(&w, &two, "/two");
    call_init(&w, &one, "/one");
    one.after_done = cancel_call;
    one.other = &two;
    call_start(&w, &one);
    assert_true(live_multi_run(w.multi));
    assert_succeeded(&one, "ok\n");
    assert_cancelled(&two);
    live_multi_call_free(&one);
    live_multi_call_free(&two);
    fixture_end(&w);
}

static void cancelling_a_call_in_its_own_done_changes_nothing(void **state)
{
    struct fixture w;
    struct live_multi_call call;
    fixture_begin(&w, "/fine 200", 3);
    call_init(&w, &call, "/fine");
    call.after_done = cancel_call;
    call.other = &call;
    call_start(&w, &call);
    assert_true(live_multi_run(w.multi));
    assert_succeeded(&call, "ok\n");
    live_multi_call_free(&call);
    fixture_end(&w);
}

/* A connecting call, a silent server, a body in progress, a waiting call, and one not yet processed. */
struct mixed_calls {
    struct live_blackhole port;
    struct live_multi_call call[5];
};

static bool mixed_calls_are_ready(void *context)
{
    struct mixed_calls *m = context;
    return has_bytes(&m->call[2]) && handle_is_free(&m->call[3]);
}

static void mixed_calls_begin(struct fixture *w, struct mixed_calls *m)
{
    fixture_begin(w, "/silent delay=never\n/long endless=body\n/down 503\n/fine 200", 3);
    w->policy = policy_with_long_waits();
    live_blackhole_open(&m->port);
    live_multi_call_init(&m->call[0], m->port.url, &w->policy);
    call_init(w, &m->call[1], "/silent");
    call_init(w, &m->call[2], "/long");
    call_init(w, &m->call[3], "/down");
    call_init(w, &m->call[4], "/fine");
    for (size_t i = 0; i < 4; i++)
        call_start(w, &m->call[i]);
    assert_true(live_multi_run_until(w->multi, mixed_calls_are_ready, m));
    call_start(w, &m->call[4]);
    assert_int_equal(bide_multi_running_get(w->multi), 5);
}

static void mixed_calls_end(struct mixed_calls *m)
{
    for (size_t i = 0; i < 5; i++) {
        assert_cancelled(&m->call[i]);
        live_multi_call_free(&m->call[i]);
    }
    live_blackhole_close(&m->port);
}

static void cancel_all_ends_every_call_once(void **state)
{
    struct fixture w;
    struct mixed_calls m;
    mixed_calls_begin(&w, &m);
    bide_multi_cancel_all(w.multi);
    assert_int_equal(bide_multi_running_get(w.multi), 0);
    bide_multi_cancel_all(w.multi);
    mixed_calls_end(&m);
    fixture_end(&w);
}

static void free_ends_every_running_call_once(void **state)
{
    struct fixture w;
    struct mixed_calls m;
    mixed_calls_begin(&w, &m);
    bide_multi_free(w.multi);
    w.multi = NULL;
    mixed_calls_end(&m);
    fixture_end(&w);
}

static void free_refuses_calls_started_in_done(void **state)
{
    struct fixture w;
    struct live_multi_call one, two;
    fixture_begin(&w, "/silent delay=never", 3);
    call_init_and_start(&w, &one, "/silent");
    call_init(&w, &two, "/silent");
    two.multi = w.multi;
    one.after_done = live_multi_call_restart;
    one.other = &two;
    bide_multi_free(w.multi);
    w.multi = NULL;
    assert_cancelled(&one);
    assert_int_equal(two.start_error, BIDE_ERR_BUSY);
    assert_int_equal(two.done, 0);
    live_multi_call_free(&one);
    live_multi_call_free(&two);
    fixture_end(&w);
}

static void a_call_cancelled_during_its_final_response_is_done_once(void **state)
{
    struct fixture w;
    struct live_multi_call call;
    fixture_begin(&w, "/gone 404 endless=body", 3);
    call_init_and_start(&w, &call, "/gone");
    assert_true(live_multi_run_until(w.multi, has_bytes, &call));
    bide_multi_cancel(w.multi, call.active);
    assert_int_equal(call.done, 1);
    assert_int_equal(call.verdict.action, BIDE_ACTION_GIVE_UP);
    assert_int_equal(call.code, CURLE_ABORTED_BY_CALLBACK); /* the sink holds part of it */
    live_multi_call_free(&call);
    fixture_end(&w);
}

/* A multi has bide_multi_cancel instead. */
static void options_cancel_is_rejected_in_a_multi(void **state)
{
    struct fixture w;
    struct live_multi_call call;
    struct bide_cancel cancel;
    struct bide_problem problem = {0};
    fixture_begin(&w, "/fine 200", 3);
    assert_int_equal(bide_cancel_init(&cancel), BIDE_OK);
    call_init(&w, &call, "/fine");
    call.options.cancel = &cancel;
    struct bide_multi_job job = {.easy = call.easy, .options = &call.options};
    assert_int_equal(bide_multi_start(w.multi, &job, NULL, &problem), BIDE_ERR_INVALID);
    assert_string_equal(problem.field, "cancel");
    live_multi_call_free(&call);
    bide_cancel_free(&cancel);
    fixture_end(&w);
}

/* ---- draining ---- */

static void drain_lets_calls_end_and_refuses_new_calls(void **state)
{
    struct fixture w;
    struct live_multi_call one, two;
    fixture_begin(&w, "/flaky 503 | 503 | 200", 3);
    call_init(&w, &two, "/flaky");
    two.multi = w.multi;
    call_init(&w, &one, "/flaky");
    one.after_done = live_multi_call_restart;
    one.other = &two;
    call_start(&w, &one);
    assert_int_equal(bide_multi_drain(w.multi, bide_now() + 60 * BIDE_S), 0);
    assert_succeeded(&one, "ok\n");
    assert_int_equal(two.start_error, BIDE_ERR_BUSY);
    assert_int_equal(two.done, 0);
    call_start(&w, &two); /* allowed after the drain */
    assert_true(live_multi_run(w.multi));
    assert_succeeded(&two, "ok\n");
    live_multi_call_free(&one);
    live_multi_call_free(&two);
    fixture_end(&w);
}

static void drain_cancels_remaining_calls_at_its_deadline(void **state)
{
    struct fixture w;
    struct live_multi_call fine, silent, waiting;
    fixture_begin(&w, "/fine 200\n/silent delay=never\n/down 503", 3);
    w.policy = policy_with_long_waits();
    call_init_and_start(&w, &fine, "/fine");
    call_init_and_start(&w, &silent, "/silent");
    call_init_and_start(&w, &waiting, "/down");
    assert_true(live_multi_run_until(w.multi, handle_is_free, &waiting));
    int64_t until_ns = bide_now() + 100 * BIDE_MS;
    assert_int_equal(bide_multi_drain(w.multi, until_ns), 2);
    assert_true(bide_now() >= until_ns);
    assert_succeeded(&fine, "ok\n");
    assert_cancelled(&silent);
    assert_cancelled(&waiting);
    live_multi_call_free(&fine);
    live_multi_call_free(&silent);
    live_multi_call_free(&waiting);
    fixture_end(&w);
}

/* ---- 401 ---- */

struct login {
    struct curl_slist *token;
    unsigned calls;
    bool works;
};

static bool refresh(void *context, CURL *easy)
{
    struct login *login = context;
    login->calls++;
    if (login->works)
        curl_easy_setopt(easy, CURLOPT_XOAUTH2_BEARER, "new"),
            curl_easy_setopt(easy, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
    return login->works;
}

static void refresh_repeats_the_attempt_without_a_retry(void **state)
{
    struct fixture w;
    struct live_multi_call call;
    struct login login = {.works = true};
    fixture_begin(&w, "/private 401 body=\"who?\" | 200 body=\"you\"", 1);
    call_init(&w, &call, "/private");
    call.options.refresh = refresh;
    call.options.context = &login;
    call_start(&w, &call);
    assert_true(live_multi_run(w.multi));
    assert_succeeded(&call, "you");
    assert_int_equal(login.calls, 1);
    assert_int_equal(call.result.attempts, 1);
    assert_int_equal(call.result.refreshed, 1);
    live_server_stop(&w.server);
    assert_int_equal(w.server.count, 2);
    assert_string_equal(w.server.seen[1].authorization, "Bearer new");
    live_multi_call_free(&call);
    fixture_end(&w);
}

static void a_401_without_new_credentials_is_final(void **state)
{
    struct fixture w;
    struct live_multi_call call;
    struct login login = {.works = false};
    fixture_begin(&w, "/private 401 body=\"who?\"", 3);
    call_init(&w, &call, "/private");
    call.options.refresh = refresh;
    call.options.context = &login;
    call_start(&w, &call);
    assert_true(live_multi_run(w.multi));
    assert_int_equal(call.done, 1);
    assert_int_equal(call.code, CURLE_OK);
    assert_int_equal(call.result.status, 401);
    assert_string_equal(call.sink.at, "who?");
    assert_int_equal(login.calls, 1);
    live_multi_call_free(&call);
    fixture_end(&w);
}

static void a_second_401_is_final(void **state)
{
    struct fixture w;
    struct live_multi_call call;
    struct login login = {.works = true};
    fixture_begin(&w, "/private 401 body=\"who?\"", 3);
    call_init(&w, &call, "/private");
    call.options.refresh = refresh;
    call.options.context = &login;
    call_start(&w, &call);
    assert_true(live_multi_run(w.multi));
    assert_int_equal(call.result.status, 401);
    assert_string_equal(call.sink.at, "who?");
    assert_int_equal(login.calls, 1);
    live_server_stop(&w.server);
    assert_int_equal(w.server.count, 2);
    live_multi_call_free(&call);
    fixture_end(&w);
}

/* ---- kept failures ---- */

static void giving_up_a_wait_delivers_the_kept_failure(void **state)
{
    struct fixture w;
    struct live_multi_call call;
    fixture_begin(&w, "/down 503 body=\"bad luck\" | 200", 3);
    w.policy.base_ns = w.policy.cap_ns = 50 * BIDE_MS;
    call_init_and_start(&w, &call, "/down");
    assert_true(live_multi_run_until(w.multi, handle_is_free, &call));
    assert_int_equal(call.sink.length, 0);
    bide_breaker_hold(&w.target, BIDE_HOLD_OPEN);
    assert_true(live_multi_run(w.multi));
    assert_int_equal(call.done, 1);
    assert_int_equal(call.code, CURLE_OK);
    assert_int_equal(call.verdict.reason, BIDE_REASON_BREAKER_OPEN);
    assert_int_equal(call.result.status, 503);
    assert_false(call.result.body_dropped);
    assert_string_equal(call.sink.at, "bad luck");
    live_multi_call_free(&call);
    fixture_end(&w);
}

static void open_on_wait(void *context, const struct bide_event *event)
{
    if (event->verdict->action == BIDE_ACTION_WAIT)
        bide_breaker_hold(context, BIDE_HOLD_OPEN);
}

static void a_partly_received_failure_is_dropped(void **state)
{
    struct fixture w;
    struct live_multi_call call;
    fixture_begin(&w, "/down 503 bytes=60000 drip=1000/200ms | 200", 3);
    w.policy.base_ns = w.policy.cap_ns = 50 * BIDE_MS;
    call_init(&w, &call, "/down");
    call.options.event = open_on_wait;
    call.options.context = &w.target;
    call_start(&w, &call);
    assert_true(live_multi_run(w.multi));
    assert_int_equal(call.done, 1);
    assert_int_equal(call.verdict.reason, BIDE_REASON_BREAKER_OPEN);
    assert_true(call.result.body_dropped);
    assert_int_equal(call.sink.length, 0);
    live_multi_call_free(&call);
    fixture_end(&w);
}

static void a_slow_error_body_does_not_delay_the_retry(void **state)
{
    struct fixture w;
    struct live_multi_call call;
    fixture_begin(&w, "/slow 503 bytes=60000 drip=200/1s | 200", 3);
    call_init_and_start(&w, &call, "/slow");
    assert_true(live_multi_run(w.multi));
    assert_succeeded(&call, "ok\n");
    assert_true(call.result.total_ns < 100 * BIDE_S); /* its body alone takes five minutes */
    live_server_stop(&w.server);
    assert_int_equal(w.server.count, 2);
    live_multi_call_free(&call);
    fixture_end(&w);
}

/* ---- the caller's handle ---- */

static void the_private_pointer_is_restored_and_plain_libcurl_works(void **state)
{
    struct fixture w;
    struct live_multi_call call;
    char *mine = NULL;
    fixture_begin(&w, "/flaky 503 | 200 | 408 body=\"plain\"", 3);
    call_init(&w, &call, "/flaky");
    curl_easy_setopt(call.easy, CURLOPT_PRIVATE, &w);
    call_start(&w, &call);
    assert_true(live_multi_run(w.multi));
    assert_succeeded(&call, "ok\n");
    curl_easy_getinfo(call.easy, CURLINFO_PRIVATE, &mine);
    assert_ptr_equal(mine, &w);
    live_sink_free(&call.sink);
    assert_int_equal(curl_easy_perform(call.easy), CURLE_OK);
    assert_string_equal(call.sink.at, "plain"); /* into the sink of the options, as curl.h documents */
    live_server_stop(&w.server);
    assert_int_equal(w.server.count, 3);
    live_multi_call_free(&call);
    fixture_end(&w);
}

/* Returns the number of connections that a plain request makes. */
static long connects_of(CURL *easy, const char *url)
{
    long connects = -1;
    curl_easy_setopt(easy, CURLOPT_URL, url);
    assert_int_equal(curl_easy_perform(easy), CURLE_OK);
    curl_easy_getinfo(easy, CURLINFO_NUM_CONNECTS, &connects);
    return connects;
}

static bool two_requests_came(void *context)
{
    return chaos_requests(((struct fixture *)context)->server.chaos) >= 2;
}

static void a_call_cancelled_on_a_fresh_connection_leaves_connections_reusable(void **state)
{
    struct fixture w;
    struct live_multi_call call;
    fixture_begin(&w, "/stale 408 | delay=never\n/fine 200", 3);
    call_init_and_start(&w, &call, "/stale");
    assert_true(live_multi_run_until(w.multi, two_requests_came, &w));
    bide_multi_cancel(w.multi, call.active);
    assert_cancelled(&call);
    assert_int_equal(connects_of(call.easy, live_server_url(&w.server, "/fine")), 1);
    assert_int_equal(connects_of(call.easy, live_server_url(&w.server, "/fine")), 0);
    live_multi_call_free(&call);
    fixture_end(&w);
}

static void connections_are_shared_by_the_calls_of_a_multi(void **state)
{
    struct fixture w;
    struct live_multi_call call[5];
    fixture_begin(&w, "/fine 200", 3);
    for (size_t i = 0; i < 5; i++) {
        call_init_and_start(&w, &call[i], "/fine");
        assert_true(live_multi_run(w.multi));
    }
    live_server_stop(&w.server);
    for (size_t i = 0; i < 5; i++) {
        assert_succeeded(&call[i], "ok\n");
        assert_int_equal(w.server.seen[i].connection, 1);
        live_multi_call_free(&call[i]);
    }
    fixture_end(&w);
}

/* ---- time ---- */

static void poll_returns_at_its_deadline(void **state)
{
    struct fixture w;
    struct live_multi_call call;
    fixture_begin(&w, "/silent delay=never", 3);
    call_init_and_start(&w, &call, "/silent");
    assert_true(live_multi_run_until(w.multi, one_request_came, &w));
    while (bide_multi_poll(w.multi, 0) > 0 && chaos_requests(w.server.chaos) == 0)
        continue;
    int64_t until_ns = bide_now() + 50 * BIDE_MS;
    unsigned rounds = 0;
    while (bide_now() < until_ns) {
        bide_multi_poll(w.multi, until_ns);
        rounds++;
    }
    assert_true(rounds < 20); /* poll does not spin */
    bide_multi_cancel_all(w.multi);
    live_multi_call_free(&call);
    fixture_end(&w);
}

static void a_retry_starts_when_its_wait_is_over_and_not_before(void **state)
{
    struct fixture w;
    struct live_multi_call call;
    unsigned rounds = 0;
    fixture_begin(&w, "/busy 503 retry-after=1 | 200", 3);
    call_init_and_start(&w, &call, "/busy");
    for (; bide_multi_running_get(w.multi) > 0; rounds++)
        bide_multi_poll(w.multi, BIDE_NEVER);
    assert_succeeded(&call, "ok\n");
    live_server_stop(&w.server);
    assert_int_equal(w.server.count, 2);
    assert_true(w.server.seen[1].at_ns - w.server.seen[0].at_ns >= BIDE_S);
    assert_true(rounds < 100);
    live_multi_call_free(&call);
    fixture_end(&w);
}

static void *wake_multi(void *context)
{
    bide_multi_wakeup(context);
    return NULL;
}

static void another_thread_can_end_a_poll(void **state)
{
    struct fixture w;
    struct live_multi_call call;
    pthread_t thread;
    fixture_begin(&w, "/down 503", 3);
    w.policy = policy_with_long_waits();
    call_init_and_start(&w, &call, "/down");
    /* While the call waits, nothing else ends a poll. */
    assert_true(live_multi_run_until(w.multi, handle_is_free, &call));
    int64_t before_ns = bide_now();
    assert_int_equal(pthread_create(&thread, NULL, wake_multi, w.multi), 0);
    assert_int_equal(bide_multi_poll(w.multi, before_ns + 60 * BIDE_S), 1);
    assert_true(bide_now() - before_ns < 60 * BIDE_S);
    pthread_join(thread, NULL);
    bide_multi_cancel_all(w.multi);
    live_multi_call_free(&call);
    fixture_end(&w);
}

static void poll_without_calls_returns_at_once(void **state)
{
    struct bide_multi *multi = live_multi_new();
    assert_int_equal(bide_multi_poll(multi, BIDE_NEVER), 0);
    assert_int_equal(bide_multi_drain(multi, BIDE_NEVER), 0);
    bide_multi_cancel_all(multi);
    bide_multi_free(multi);
    bide_multi_free(NULL);
}

/* ---- libcurl's silent replay ---- */

static const char cut_on_reuse[] = "/first 200 reuse=close\n/pay 200 body=\"paid\"";

static void an_unsafe_request_on_a_dead_connection_is_sent_once(void **state)
{
    struct fixture w;
    struct live_multi_call call, pay;
    fixture_begin(&w, cut_on_reuse, 5);
    call_init_and_start(&w, &call, "/first");
    assert_true(live_multi_run(w.multi));
    call_init(&w, &pay, "/pay");
    live_multi_call_post(&pay, "amount=1");
    call_start(&w, &pay);
    assert_true(live_multi_run(w.multi));
    assert_int_equal(pay.done, 1);
    assert_int_equal(pay.verdict.reason, BIDE_REASON_NOT_REPEATABLE);
    assert_int_equal(pay.code, CURLE_GOT_NOTHING);
    assert_int_equal(pay.result.attempts, 1);
    assert_true(pay.result.attempt[0].replay_stopped);
    assert_int_equal(pay.result.attempt[0].evidence, BIDE_EVIDENCE_UNKNOWN);
    live_server_stop(&w.server);
    assert_int_equal(live_server_requests(&w.server, "/pay"), 1);
    live_multi_call_free(&call);
    live_multi_call_free(&pay);
    fixture_end(&w);
}

static void a_safe_request_on_a_dead_connection_is_retried_by_bide(void **state)
{
    struct fixture w;
    struct live_multi_call call, get;
    fixture_begin(&w, cut_on_reuse, 5);
    call_init_and_start(&w, &call, "/first");
    assert_true(live_multi_run(w.multi));
    call_init_and_start(&w, &get, "/pay");
    assert_true(live_multi_run(w.multi));
    assert_succeeded(&get, "paid");
    assert_int_equal(get.result.attempts, 2);
    assert_true(get.result.attempt[0].replay_stopped);
    live_server_stop(&w.server);
    assert_int_equal(live_server_requests(&w.server, "/pay"), 2);
    live_multi_call_free(&call);
    live_multi_call_free(&get);
    fixture_end(&w);
}

static void bare_perform(CURLM *multi, CURL *easy, const char *url)
{
    int left = 1;
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_multi_add_handle(multi, easy);
    while (left > 0) {
        curl_multi_poll(multi, NULL, 0, 100, NULL);
        curl_multi_perform(multi, &left);
    }
    curl_multi_remove_handle(multi, easy);
}

static void bare_libcurl_sends_an_unsafe_request_twice(void **state)
{
    struct live_server server;
    struct live_sink sink = {0};
    CURLM *multi = curl_multi_init();
    CURL *easy = curl_easy_init();
    live_server_start(&server, cut_on_reuse);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, live_sink_write);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &sink);
    bare_perform(multi, easy, live_server_url(&server, "/first"));
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, "amount=1");
    bare_perform(multi, easy, live_server_url(&server, "/pay"));
    live_server_stop(&server);
    assert_int_equal(live_server_requests(&server, "/pay"), 2);
    curl_easy_cleanup(easy);
    curl_multi_cleanup(multi);
    live_sink_free(&sink);
    live_server_free(&server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_successful_call_is_done_once_with_its_body),
        cmocka_unit_test(the_result_describes_each_attempt),
        cmocka_unit_test(the_last_failure_reaches_the_sink_completely),
        cmocka_unit_test(a_transfer_without_a_byte_is_stalled_after_the_stall_timeout),
        cmocka_unit_test(a_failing_sink_ends_the_call),
        cmocka_unit_test(event_gets_each_verdict_once),
        cmocka_unit_test(a_call_refused_by_the_breaker_is_done_before_start_returns),
        cmocka_unit_test(a_call_with_an_expired_deadline_is_done_before_start_returns),
        cmocka_unit_test(invalid_options_start_no_call),
        cmocka_unit_test(a_handle_in_another_multi_ends_with_failed_init),
        cmocka_unit_test(a_job_needs_neither_done_nor_result),
        cmocka_unit_test(two_thousand_calls_succeed_despite_failures),
        cmocka_unit_test(a_call_can_be_started_in_done),
        cmocka_unit_test(a_call_can_be_started_in_a_write_callback),
        cmocka_unit_test(a_call_started_and_cancelled_in_one_callback_makes_no_attempt),
        cmocka_unit_test(a_waiting_call_has_no_handle_in_libcurl_and_can_be_cancelled),
        cmocka_unit_test(a_call_can_be_cancelled_right_after_start),
        cmocka_unit_test(a_connecting_call_can_be_cancelled),
        cmocka_unit_test(a_call_can_be_cancelled_in_the_middle_of_its_body),
        cmocka_unit_test(a_call_can_be_cancelled_in_its_own_write_callback),
        cmocka_unit_test(a_call_can_be_cancelled_in_its_own_before_hook),
        cmocka_unit_test(a_call_can_be_cancelled_in_done_of_another),
        cmocka_unit_test(cancelling_a_call_in_its_own_done_changes_nothing),
        cmocka_unit_test(cancel_all_ends_every_call_once),
        cmocka_unit_test(free_ends_every_running_call_once),
        cmocka_unit_test(free_refuses_calls_started_in_done),
        cmocka_unit_test(a_call_cancelled_during_its_final_response_is_done_once),
        cmocka_unit_test(options_cancel_is_rejected_in_a_multi),
        cmocka_unit_test(drain_lets_calls_end_and_refuses_new_calls),
        cmocka_unit_test(drain_cancels_remaining_calls_at_its_deadline),
        cmocka_unit_test(refresh_repeats_the_attempt_without_a_retry),
        cmocka_unit_test(a_401_without_new_credentials_is_final),
        cmocka_unit_test(a_second_401_is_final),
        cmocka_unit_test(giving_up_a_wait_delivers_the_kept_failure),
        cmocka_unit_test(a_partly_received_failure_is_dropped),
        cmocka_unit_test(a_slow_error_body_does_not_delay_the_retry),
        cmocka_unit_test(the_private_pointer_is_restored_and_plain_libcurl_works),
        cmocka_unit_test(a_call_cancelled_on_a_fresh_connection_leaves_connections_reusable),
        cmocka_unit_test(connections_are_shared_by_the_calls_of_a_multi),
        cmocka_unit_test(poll_returns_at_its_deadline),
        cmocka_unit_test(a_retry_starts_when_its_wait_is_over_and_not_before),
        cmocka_unit_test(another_thread_can_end_a_poll),
        cmocka_unit_test(poll_without_calls_returns_at_once),
        cmocka_unit_test(an_unsafe_request_on_a_dead_connection_is_sent_once),
        cmocka_unit_test(a_safe_request_on_a_dead_connection_is_retried_by_bide),
        cmocka_unit_test(bare_libcurl_sends_an_unsafe_request_twice),
    };
    curl_global_init(CURL_GLOBAL_DEFAULT);
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    curl_global_cleanup();
    return failures;
}
