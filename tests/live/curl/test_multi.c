/* test_multi.c - many calls in one thread: each start that was OK is done exactly once, whatever happens to it; what
 * waits is out of libcurl's sight; what is retried never reaches a sink; what may have run is not repeated. */
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

struct world {
    struct live_server server;
    struct bide_multi *multi;
    struct bide_policy policy;
    struct bide_target target;
};

static void begin(struct world *w, const char *script, uint32_t attempts)
{
    live_serve(&w->server, script);
    w->multi = live_multi();
    w->policy = live_policy(attempts);
    live_open_target(&w->target);
}

static void end(struct world *w)
{
    bide_multi_free(w->multi);
    live_free(&w->server);
}

static void make(struct world *w, struct live_call *call, const char *path)
{
    live_call_init(call, live_url(&w->server, path), &w->policy);
}

static void start(struct world *w, struct live_call *call)
{
    live_call_start(call, w->multi, &w->target);
    assert_int_equal(call->ok, BIDE_OK);
}

static void make_and_start(struct world *w, struct live_call *call, const char *path)
{
    make(w, call, path);
    start(w, call);
}

static void assert_cancelled(const struct live_call *call)
{
    assert_int_equal(call->done, 1);
    assert_int_equal(call->verdict.action, BIDE_GIVE_UP);
    assert_int_equal(call->verdict.reason, BIDE_REASON_CANCELLED);
    assert_int_equal(call->code, CURLE_ABORTED_BY_CALLBACK);
    assert_int_equal(call->result.verdict.reason, BIDE_REASON_CANCELLED);
}

static void assert_succeeded(const struct live_call *call, const char *body)
{
    assert_int_equal(call->done, 1);
    assert_int_equal(call->code, CURLE_OK);
    assert_int_equal(call->verdict.action, BIDE_DONE);
    assert_int_equal(call->result.status, 200);
    assert_string_equal(call->sink.at, body);
}

/* ---- how calls end ---- */

static void a_call_that_succeeds_is_done_once_with_its_body(void **state)
{
    struct world w;
    struct live_call call;
    begin(&w, "/fine body=\"hello\"", 3);
    make_and_start(&w, &call, "/fine");
    assert_int_equal(call.done, 0);
    assert_int_equal(bide_multi_running(w.multi), 1);
    assert_true(live_run(w.multi));
    assert_succeeded(&call, "hello");
    assert_int_equal(call.answered, 200);
    assert_false(call.by_copy);
    assert_int_equal(call.result.attempts, 1);
    live_call_free(&call);
    end(&w);
}

static void a_result_describes_each_attempt(void **state)
{
    struct world w;
    struct live_call call;
    begin(&w, "/flaky 503 body=\"no\" | 429 header=\"retry-after-ms: 30\" | reset | 200 body=\"yes\"", 5);
    make_and_start(&w, &call, "/flaky");
    assert_true(live_run(w.multi));
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
    live_call_free(&call);
    end(&w);
}

static void the_last_failure_is_an_answer_and_reaches_the_sink_whole(void **state)
{
    struct world w;
    struct live_call call;
    begin(&w, "/down 503 body=\"first\" | 503 body=\"second\" | 503 body=\"third\"", 3);
    make_and_start(&w, &call, "/down");
    assert_true(live_run(w.multi));
    assert_int_equal(call.done, 1);
    assert_int_equal(call.code, CURLE_OK);
    assert_int_equal(call.verdict.reason, BIDE_REASON_ATTEMPTS_SPENT);
    assert_int_equal(call.result.status, 503);
    assert_string_equal(call.sink.at, "third");
    live_call_free(&call);
    end(&w);
}

static size_t refuse_bytes(char *at, size_t size, size_t count, void *context)
{
    (void)at, (void)size, (void)count;
    ++*(unsigned *)context;
    return 0;
}

static void a_sink_that_takes_nothing_ends_the_call(void **state)
{
    struct world w;
    struct live_call call;
    unsigned asked = 0;
    begin(&w, "/fine 200", 5);
    make(&w, &call, "/fine");
    call.options.write = refuse_bytes;
    call.options.write_data = &asked;
    start(&w, &call);
    assert_true(live_run(w.multi));
    assert_int_equal(call.done, 1);
    assert_int_equal(call.code, CURLE_WRITE_ERROR);
    assert_int_equal(asked, 1);
    assert_int_equal(call.result.attempts, 1);
    live_call_free(&call);
    end(&w);
}

static void note_event(void *context, const struct bide_event *event)
{
    char *text = context;
    size_t length = strlen(text);
    snprintf(text + length, 200 - length, "%s ", bide_action_label(event->verdict->action));
}

static void a_listener_hears_each_verdict_once(void **state)
{
    struct world w;
    struct live_call call;
    char heard[200] = "";
    begin(&w, "/flaky 503 | 200", 3);
    make(&w, &call, "/flaky");
    call.options.event = note_event;
    call.options.context = heard;
    start(&w, &call);
    assert_true(live_run(w.multi));
    assert_string_equal(heard, "start wait start done ");
    live_call_free(&call);
    end(&w);
}

/* ---- refused at the start ---- */

static void what_the_breaker_refuses_is_done_before_start_returns(void **state)
{
    struct world w;
    struct live_call call;
    begin(&w, "/fine 200", 3);
    bide_breaker_hold(&w.target, BIDE_HOLD_OPEN);
    make_and_start(&w, &call, "/fine");
    assert_int_equal(call.done, 1);
    assert_null(call.transfer);
    assert_int_equal(call.code, CURLE_ABORTED_BY_CALLBACK);
    assert_int_equal(call.verdict.reason, BIDE_REASON_BREAKER_OPEN);
    assert_int_equal(call.result.attempts, 0);
    assert_int_equal(bide_multi_running(w.multi), 0);
    live_stop(&w.server);
    assert_int_equal(w.server.count, 0);
    live_call_free(&call);
    end(&w);
}

static void a_deadline_that_has_passed_is_done_before_start_returns(void **state)
{
    struct world w;
    struct live_call call;
    begin(&w, "/fine 200", 3);
    make(&w, &call, "/fine");
    call.options.deadline_ns = bide_now() - 1;
    start(&w, &call);
    assert_int_equal(call.done, 1);
    assert_int_equal(call.code, CURLE_OPERATION_TIMEDOUT);
    assert_int_equal(call.verdict.reason, BIDE_REASON_DEADLINE);
    live_call_free(&call);
    end(&w);
}

static void wrong_options_begin_nothing(void **state)
{
    struct world w;
    struct live_call call;
    struct bide_problem problem = {0};
    struct bide_multi_call *transfer = NULL;
    begin(&w, "/fine 200", 3);
    make(&w, &call, "/fine");
    call.options.body.kind = BIDE_CURL_BODY_STREAM; /* without a function */
    live_call_start(&call, w.multi, &w.target);
    assert_int_equal(call.ok, BIDE_ERR_INVALID);
    struct bide_multi_job job = {.easy = call.easy, .options = &call.options};
    assert_int_equal(bide_multi_start(w.multi, &job, &transfer, &problem), BIDE_ERR_INVALID);
    assert_string_equal(problem.field, "body.read");
    assert_null(transfer);
    assert_int_equal(call.done, 0);
    assert_int_equal(bide_multi_running(w.multi), 0);
    live_call_free(&call);
    end(&w);
}

static void a_handle_at_work_elsewhere_ends_with_failed_init(void **state)
{
    struct world w;
    struct live_call call;
    CURLM *other = curl_multi_init();
    begin(&w, "/fine 200", 3);
    make(&w, &call, "/fine");
    assert_int_equal(curl_multi_add_handle(other, call.easy), CURLM_OK);
    start(&w, &call);
    assert_int_equal(call.done, 1);
    assert_int_equal(call.code, CURLE_FAILED_INIT);
    assert_int_equal(call.verdict.action, BIDE_GIVE_UP);
    curl_multi_remove_handle(other, call.easy);
    curl_multi_cleanup(other);
    live_call_free(&call);
    end(&w);
}

static void a_job_needs_neither_done_nor_result_nor_options(void **state)
{
    struct world w;
    CURL *easy = curl_easy_init();
    struct live_sink sink = {0};
    begin(&w, "/fine body=\"hello\"", 3);
    curl_easy_setopt(easy, CURLOPT_URL, live_url(&w.server, "/fine"));
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, live_write);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &sink);
    struct bide_multi_job job = {.easy = easy};
    assert_int_equal(bide_multi_start(w.multi, &job, NULL, NULL), BIDE_OK);
    assert_true(live_run(w.multi));
    assert_string_equal(sink.at, "hello");
    curl_easy_cleanup(easy);
    live_sink_free(&sink);
    end(&w);
}

/* ---- many ---- */

static void two_thousand_calls_in_one_thread_all_succeed_among_failures(void **state)
{
    struct world w;
    struct live_call *call = calloc(MANY, sizeof *call);
    uint64_t attempts = 0;
    begin(&w, "/mix 200 body=\"fine\" x3 | 503 body=\"bad\" | 200 body=\"fine\" | reset | 429 body=\"less\" | loop",
          60);
    curl_multi_setopt(bide_multi_handle(w.multi), CURLMOPT_MAX_TOTAL_CONNECTIONS, 100L);
    for (size_t i = 0; i < MANY; i++)
        make_and_start(&w, &call[i], "/mix");
    assert_int_equal(bide_multi_running(w.multi), MANY);
    assert_true(live_run(w.multi));
    for (size_t i = 0; i < MANY; i++) {
        assert_succeeded(&call[i], "fine");
        attempts += call[i].result.attempts;
        live_call_free(&call[i]);
    }
    live_stop(&w.server);
    assert_int_equal(live_count(&w.server, "/mix"), attempts);
    assert_true(attempts > MANY);
    free(call);
    end(&w);
}

static size_t calls_left_of_chain;

static void next_in_chain(struct live_call *call)
{
    live_sink_free(&call->sink);
    if (calls_left_of_chain-- > 0)
        live_call_again(call);
}

static void a_call_may_be_started_from_done(void **state)
{
    struct world w;
    struct live_call call;
    begin(&w, "/mix 503 | 200 | loop", 3);
    make(&w, &call, "/mix");
    call.then = next_in_chain;
    call.other = &call;
    calls_left_of_chain = 9;
    start(&w, &call);
    assert_true(live_run(w.multi));
    assert_int_equal(call.done, 10);
    live_stop(&w.server);
    assert_int_equal(w.server.count, 20);
    live_call_free(&call);
    end(&w);
}

static size_t start_other(char *at, size_t size, size_t count, void *context)
{
    struct live_call *call = context;
    if (call->other->multi == NULL)
        live_call_start(call->other, call->multi, call->target);
    return live_write(at, size, count, &call->sink);
}

static void a_call_may_be_started_from_a_write_callback(void **state)
{
    struct world w;
    struct live_call one, two;
    begin(&w, "/one bytes=100000\n/two 503 | 200", 3);
    make(&w, &one, "/one");
    make(&w, &two, "/two");
    one.other = &two;
    one.options.write = start_other;
    one.options.write_data = &one;
    start(&w, &one);
    assert_true(live_run(w.multi));
    assert_int_equal(one.done, 1);
    assert_int_equal(one.sink.length, 100000);
    assert_succeeded(&two, "ok\n");
    live_call_free(&one);
    live_call_free(&two);
    end(&w);
}

/* ---- cancelled ---- */

static size_t start_and_cancel_other(char *at, size_t size, size_t count, void *context)
{
    struct live_call *call = context;
    if (call->other->multi == NULL) {
        live_call_start(call->other, call->multi, call->target);
        bide_multi_cancel(call->multi, call->other->transfer);
    }
    return live_write(at, size, count, &call->sink);
}

static bool count_attempts(void *context, CURL *easy, const struct bide_verdict *v, struct curl_slist **headers)
{
    (void)easy, (void)v, (void)headers;
    ++*(unsigned *)context;
    return true;
}

static void a_call_started_and_cancelled_in_one_callback_attempts_nothing(void **state)
{
    struct world w;
    struct live_call one, two;
    unsigned attempts = 0;
    begin(&w, "/one 200\n/two 200", 3);
    make(&w, &one, "/one");
    make(&w, &two, "/two");
    two.options.before = count_attempts;
    two.options.context = &attempts;
    one.other = &two;
    one.options.write = start_and_cancel_other;
    one.options.write_data = &one;
    start(&w, &one);
    assert_true(live_run(w.multi));
    assert_int_equal(two.done, 1);
    assert_int_equal(two.verdict.reason, BIDE_REASON_CANCELLED);
    assert_int_equal(two.code, CURLE_ABORTED_BY_CALLBACK);
    assert_int_equal(attempts, 0);
    live_call_free(&one);
    live_call_free(&two);
    end(&w);
}

static struct bide_policy patient(void)
{
    struct bide_policy policy = live_policy(3);
    policy.base_ns = policy.cap_ns = 90 * BIDE_S;
    return policy;
}

/* Out of libcurl: another multi takes it. */
static bool handle_is_free(void *context)
{
    struct live_call *call = context;
    CURLM *other = curl_multi_init();
    bool took = curl_multi_add_handle(other, call->easy) == CURLM_OK;
    if (took)
        curl_multi_remove_handle(other, call->easy);
    curl_multi_cleanup(other);
    return took;
}

static bool has_bytes(void *context)
{
    const struct live_call *call = context;
    return call->sink.length > 0;
}

static bool one_request_came(void *context)
{
    return chaos_requests(((struct world *)context)->server.chaos) > 0;
}

static void a_waiting_call_has_no_handle_in_libcurl_and_can_be_cancelled(void **state)
{
    struct world w;
    struct live_call call;
    begin(&w, "/down 503 body=\"bad\"", 3);
    w.policy = patient();
    make_and_start(&w, &call, "/down");
    assert_false(handle_is_free(&call));
    assert_true(live_run_until(w.multi, handle_is_free, &call));
    assert_int_equal(bide_multi_running(w.multi), 1);
    assert_int_equal(call.done, 0);
    bide_multi_cancel(w.multi, call.transfer);
    assert_cancelled(&call);
    assert_int_equal(call.result.attempts, 1);
    assert_int_equal(bide_multi_running(w.multi), 0);
    assert_int_equal(bide_multi_poll(w.multi, BIDE_NEVER), 0);
    live_stop(&w.server);
    assert_int_equal(w.server.count, 1);
    live_call_free(&call);
    end(&w);
}

static void a_call_can_be_cancelled_before_anything_happened(void **state)
{
    struct world w;
    struct live_call call;
    begin(&w, "/fine 200", 3);
    make_and_start(&w, &call, "/fine");
    bide_multi_cancel(w.multi, call.transfer);
    assert_cancelled(&call);
    assert_int_equal(call.sink.length, 0);
    live_call_free(&call);
    end(&w);
}

static void a_connecting_call_can_be_cancelled(void **state)
{
    struct world w;
    struct live_void port;
    struct live_call call;
    begin(&w, "", 3);
    live_void_open(&port);
    live_call_init(&call, port.url, &w.policy);
    start(&w, &call);
    for (int i = 0; i < 3; i++)
        assert_int_equal(bide_multi_poll(w.multi, bide_now() + BIDE_MS), 1);
    bide_multi_cancel(w.multi, call.transfer);
    assert_cancelled(&call);
    live_call_free(&call);
    live_void_close(&port);
    end(&w);
}

static void a_call_can_be_cancelled_in_the_middle_of_its_body(void **state)
{
    struct world w;
    struct live_call call;
    begin(&w, "/long endless=body", 3);
    make_and_start(&w, &call, "/long");
    assert_true(live_run_until(w.multi, has_bytes, &call));
    bide_multi_cancel(w.multi, call.transfer);
    assert_cancelled(&call);
    live_call_free(&call);
    end(&w);
}

static unsigned done_inside_callback;

static size_t cancel_self(char *at, size_t size, size_t count, void *context)
{
    struct live_call *call = context;
    bide_multi_cancel(call->multi, call->transfer);
    done_inside_callback += call->done;
    return live_write(at, size, count, &call->sink);
}

static void a_call_can_be_cancelled_in_its_own_write_callback(void **state)
{
    struct world w;
    struct live_call call;
    begin(&w, "/long endless=body", 3);
    make(&w, &call, "/long");
    call.options.write = cancel_self;
    call.options.write_data = &call;
    done_inside_callback = 0;
    start(&w, &call);
    assert_true(live_run(w.multi));
    assert_cancelled(&call);
    assert_int_equal(done_inside_callback, 0);
    live_call_free(&call);
    end(&w);
}

/* Cancels attempt number 2, which it is told is about to be made. */
static bool cancel_second(void *context, CURL *easy, const struct bide_verdict *v, struct curl_slist **headers)
{
    struct live_call *call = context;
    (void)easy, (void)headers;
    if (v->attempt == 2)
        bide_multi_cancel(call->multi, call->transfer);
    return true;
}

static void a_call_can_be_cancelled_in_its_own_before_hook(void **state)
{
    struct world w;
    struct live_call call;
    begin(&w, "/silent 503 | delay=never", 3);
    make(&w, &call, "/silent");
    call.options.before = cancel_second;
    call.options.context = &call;
    start(&w, &call);
    assert_true(live_run(w.multi));
    assert_cancelled(&call);
    live_stop(&w.server);
    assert_int_equal(w.server.count, 1);
    live_call_free(&call);
    end(&w);
}

static void cancel_it(struct live_call *call)
{
    bide_multi_cancel(call->multi, call->transfer);
}

static void a_call_can_be_cancelled_from_done_of_another(void **state)
{
    struct world w;
    struct live_call one, two;
    begin(&w, "/one 200\n/two delay=never", 3);
    make_and_start(&w, &two, "/two");
    make(&w, &one, "/one");
    one.then = cancel_it;
    one.other = &two;
    start(&w, &one);
    assert_true(live_run(w.multi));
    assert_succeeded(&one, "ok\n");
    assert_cancelled(&two);
    live_call_free(&one);
    live_call_free(&two);
    end(&w);
}

static void cancelling_in_its_own_done_changes_nothing(void **state)
{
    struct world w;
    struct live_call call;
    begin(&w, "/fine 200", 3);
    make(&w, &call, "/fine");
    call.then = cancel_it;
    call.other = &call;
    start(&w, &call);
    assert_true(live_run(w.multi));
    assert_succeeded(&call, "ok\n");
    live_call_free(&call);
    end(&w);
}

/* One that connects, one that is silent, one in its body, one that waits, one that is in no one's hand yet. */
struct motley {
    struct live_void port;
    struct live_call call[5];
};

static bool motley_is_ready(void *context)
{
    struct motley *m = context;
    return has_bytes(&m->call[2]) && handle_is_free(&m->call[3]);
}

static void motley_begin(struct world *w, struct motley *m)
{
    begin(w, "/silent delay=never\n/long endless=body\n/down 503\n/fine 200", 3);
    w->policy = patient();
    live_void_open(&m->port);
    live_call_init(&m->call[0], m->port.url, &w->policy);
    make(w, &m->call[1], "/silent");
    make(w, &m->call[2], "/long");
    make(w, &m->call[3], "/down");
    make(w, &m->call[4], "/fine");
    for (size_t i = 0; i < 4; i++)
        start(w, &m->call[i]);
    assert_true(live_run_until(w->multi, motley_is_ready, m));
    start(w, &m->call[4]);
    assert_int_equal(bide_multi_running(w->multi), 5);
}

static void motley_end(struct motley *m)
{
    for (size_t i = 0; i < 5; i++) {
        assert_cancelled(&m->call[i]);
        live_call_free(&m->call[i]);
    }
    live_void_close(&m->port);
}

static void cancel_all_ends_every_call_once(void **state)
{
    struct world w;
    struct motley m;
    motley_begin(&w, &m);
    bide_multi_cancel_all(w.multi);
    assert_int_equal(bide_multi_running(w.multi), 0);
    bide_multi_cancel_all(w.multi);
    motley_end(&m);
    end(&w);
}

static void free_ends_every_running_call_once(void **state)
{
    struct world w;
    struct motley m;
    motley_begin(&w, &m);
    bide_multi_free(w.multi);
    w.multi = NULL;
    motley_end(&m);
    end(&w);
}

static void free_refuses_what_done_would_start(void **state)
{
    struct world w;
    struct live_call one, two;
    begin(&w, "/silent delay=never", 3);
    make_and_start(&w, &one, "/silent");
    make(&w, &two, "/silent");
    two.multi = w.multi;
    one.then = live_call_again;
    one.other = &two;
    bide_multi_free(w.multi);
    w.multi = NULL;
    assert_cancelled(&one);
    assert_int_equal(two.ok, BIDE_ERR_BUSY);
    assert_int_equal(two.done, 0);
    live_call_free(&one);
    live_call_free(&two);
    end(&w);
}

static void a_cancelled_answer_that_was_final_already_is_still_done_once(void **state)
{
    struct world w;
    struct live_call call;
    begin(&w, "/gone 404 endless=body", 3);
    make_and_start(&w, &call, "/gone");
    assert_true(live_run_until(w.multi, has_bytes, &call));
    bide_multi_cancel(w.multi, call.transfer);
    assert_int_equal(call.done, 1);
    assert_int_equal(call.verdict.action, BIDE_GIVE_UP);
    assert_int_equal(call.code, CURLE_ABORTED_BY_CALLBACK); /* the sink has part of it */
    live_call_free(&call);
    end(&w);
}

/* A multi has bide_multi_cancel. */
static void the_cancel_of_the_options_is_refused(void **state)
{
    struct world w;
    struct live_call call;
    struct bide_cancel cancel;
    struct bide_problem problem = {0};
    begin(&w, "/fine 200", 3);
    assert_int_equal(bide_cancel_init(&cancel), BIDE_OK);
    make(&w, &call, "/fine");
    call.options.cancel = &cancel;
    struct bide_multi_job job = {.easy = call.easy, .options = &call.options};
    assert_int_equal(bide_multi_start(w.multi, &job, NULL, &problem), BIDE_ERR_INVALID);
    assert_string_equal(problem.field, "cancel");
    live_call_free(&call);
    bide_cancel_free(&cancel);
    end(&w);
}

/* ---- drained ---- */

static void a_drain_lets_calls_end_and_refuses_new_ones(void **state)
{
    struct world w;
    struct live_call one, two;
    begin(&w, "/flaky 503 | 503 | 200", 3);
    make(&w, &two, "/flaky");
    two.multi = w.multi;
    make(&w, &one, "/flaky");
    one.then = live_call_again;
    one.other = &two;
    start(&w, &one);
    assert_int_equal(bide_multi_drain(w.multi, bide_now() + 60 * BIDE_S), 0);
    assert_succeeded(&one, "ok\n");
    assert_int_equal(two.ok, BIDE_ERR_BUSY);
    assert_int_equal(two.done, 0);
    start(&w, &two); /* afterwards it may */
    assert_true(live_run(w.multi));
    assert_succeeded(&two, "ok\n");
    live_call_free(&one);
    live_call_free(&two);
    end(&w);
}

static void a_drain_cancels_what_is_left_at_its_end(void **state)
{
    struct world w;
    struct live_call fine, silent, waiting;
    begin(&w, "/fine 200\n/silent delay=never\n/down 503", 3);
    w.policy = patient();
    make_and_start(&w, &fine, "/fine");
    make_and_start(&w, &silent, "/silent");
    make_and_start(&w, &waiting, "/down");
    assert_true(live_run_until(w.multi, handle_is_free, &waiting));
    int64_t until_ns = bide_now() + 100 * BIDE_MS;
    assert_int_equal(bide_multi_drain(w.multi, until_ns), 2);
    assert_true(bide_now() >= until_ns);
    assert_succeeded(&fine, "ok\n");
    assert_cancelled(&silent);
    assert_cancelled(&waiting);
    live_call_free(&fine);
    live_call_free(&silent);
    live_call_free(&waiting);
    end(&w);
}

/* ---- 401 ---- */

struct login {
    struct curl_slist *token;
    unsigned asked;
    bool works;
};

static bool refresh(void *context, CURL *easy)
{
    struct login *login = context;
    login->asked++;
    if (login->works)
        curl_easy_setopt(easy, CURLOPT_XOAUTH2_BEARER, "new"),
            curl_easy_setopt(easy, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
    return login->works;
}

static void new_credentials_make_one_more_attempt_that_is_no_retry(void **state)
{
    struct world w;
    struct live_call call;
    struct login login = {.works = true};
    begin(&w, "/private 401 body=\"who?\" | 200 body=\"you\"", 1);
    make(&w, &call, "/private");
    call.options.refresh = refresh;
    call.options.context = &login;
    start(&w, &call);
    assert_true(live_run(w.multi));
    assert_succeeded(&call, "you");
    assert_int_equal(login.asked, 1);
    assert_int_equal(call.result.attempts, 1);
    assert_int_equal(call.result.refreshed, 1);
    live_stop(&w.server);
    assert_int_equal(w.server.count, 2);
    assert_string_equal(w.server.seen[1].authorization, "Bearer new");
    live_call_free(&call);
    end(&w);
}

static void a_401_without_new_credentials_is_the_answer(void **state)
{
    struct world w;
    struct live_call call;
    struct login login = {.works = false};
    begin(&w, "/private 401 body=\"who?\"", 3);
    make(&w, &call, "/private");
    call.options.refresh = refresh;
    call.options.context = &login;
    start(&w, &call);
    assert_true(live_run(w.multi));
    assert_int_equal(call.done, 1);
    assert_int_equal(call.code, CURLE_OK);
    assert_int_equal(call.result.status, 401);
    assert_string_equal(call.sink.at, "who?");
    assert_int_equal(login.asked, 1);
    live_call_free(&call);
    end(&w);
}

static void a_second_401_is_the_answer(void **state)
{
    struct world w;
    struct live_call call;
    struct login login = {.works = true};
    begin(&w, "/private 401 body=\"who?\"", 3);
    make(&w, &call, "/private");
    call.options.refresh = refresh;
    call.options.context = &login;
    start(&w, &call);
    assert_true(live_run(w.multi));
    assert_int_equal(call.result.status, 401);
    assert_string_equal(call.sink.at, "who?");
    assert_int_equal(login.asked, 1);
    live_stop(&w.server);
    assert_int_equal(w.server.count, 2);
    live_call_free(&call);
    end(&w);
}

/* ---- what is kept ---- */

static void a_wait_that_is_given_up_shows_the_failure_before_it(void **state)
{
    struct world w;
    struct live_call call;
    begin(&w, "/down 503 body=\"bad luck\" | 200", 3);
    w.policy.base_ns = w.policy.cap_ns = 50 * BIDE_MS;
    make_and_start(&w, &call, "/down");
    assert_true(live_run_until(w.multi, handle_is_free, &call));
    assert_int_equal(call.sink.length, 0);
    bide_breaker_hold(&w.target, BIDE_HOLD_OPEN);
    assert_true(live_run(w.multi));
    assert_int_equal(call.done, 1);
    assert_int_equal(call.code, CURLE_OK);
    assert_int_equal(call.verdict.reason, BIDE_REASON_BREAKER_OPEN);
    assert_int_equal(call.result.status, 503);
    assert_false(call.result.body_dropped);
    assert_string_equal(call.sink.at, "bad luck");
    live_call_free(&call);
    end(&w);
}

static void open_on_wait(void *context, const struct bide_event *event)
{
    if (event->verdict->action == BIDE_WAIT)
        bide_breaker_hold(context, BIDE_HOLD_OPEN);
}

static void half_a_failure_is_not_shown_as_if_it_were_whole(void **state)
{
    struct world w;
    struct live_call call;
    begin(&w, "/down 503 bytes=60000 drip=1000/200ms | 200", 3);
    w.policy.base_ns = w.policy.cap_ns = 50 * BIDE_MS;
    make(&w, &call, "/down");
    call.options.event = open_on_wait;
    call.options.context = &w.target;
    start(&w, &call);
    assert_true(live_run(w.multi));
    assert_int_equal(call.done, 1);
    assert_int_equal(call.verdict.reason, BIDE_REASON_BREAKER_OPEN);
    assert_true(call.result.body_dropped);
    assert_int_equal(call.sink.length, 0);
    live_call_free(&call);
    end(&w);
}

static void a_dripping_failure_does_not_delay_the_retry(void **state)
{
    struct world w;
    struct live_call call;
    begin(&w, "/slow 503 bytes=60000 drip=200/1s | 200", 3);
    make_and_start(&w, &call, "/slow");
    assert_true(live_run(w.multi));
    assert_succeeded(&call, "ok\n");
    assert_true(call.result.total_ns < 100 * BIDE_S); /* its body alone takes five minutes */
    live_stop(&w.server);
    assert_int_equal(w.server.count, 2);
    live_call_free(&call);
    end(&w);
}

/* ---- the owner's handle ---- */

static void a_handle_has_its_private_pointer_again_and_works_with_plain_libcurl(void **state)
{
    struct world w;
    struct live_call call;
    char *mine = NULL;
    begin(&w, "/flaky 503 | 200 | 408 body=\"plain\"", 3);
    make(&w, &call, "/flaky");
    curl_easy_setopt(call.easy, CURLOPT_PRIVATE, &w);
    start(&w, &call);
    assert_true(live_run(w.multi));
    assert_succeeded(&call, "ok\n");
    curl_easy_getinfo(call.easy, CURLINFO_PRIVATE, &mine);
    assert_ptr_equal(mine, &w);
    live_sink_free(&call.sink);
    assert_int_equal(curl_easy_perform(call.easy), CURLE_OK);
    assert_string_equal(call.sink.at, "plain"); /* into the sink of the options, as the table in http.h says */
    live_stop(&w.server);
    assert_int_equal(w.server.count, 3);
    live_call_free(&call);
    end(&w);
}

/* How many connections a plain request makes. */
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
    return chaos_requests(((struct world *)context)->server.chaos) >= 2;
}

static void a_call_cancelled_on_a_fresh_connection_leaves_connections_reusable(void **state)
{
    struct world w;
    struct live_call call;
    begin(&w, "/stale 408 | delay=never\n/fine 200", 3);
    make_and_start(&w, &call, "/stale");
    assert_true(live_run_until(w.multi, two_requests_came, &w));
    bide_multi_cancel(w.multi, call.transfer);
    assert_cancelled(&call);
    assert_int_equal(connects_of(call.easy, live_url(&w.server, "/fine")), 1);
    assert_int_equal(connects_of(call.easy, live_url(&w.server, "/fine")), 0);
    live_call_free(&call);
    end(&w);
}

static void connections_are_shared_by_the_calls_of_a_multi(void **state)
{
    struct world w;
    struct live_call call[5];
    begin(&w, "/fine 200", 3);
    for (size_t i = 0; i < 5; i++) {
        make_and_start(&w, &call[i], "/fine");
        assert_true(live_run(w.multi));
    }
    live_stop(&w.server);
    for (size_t i = 0; i < 5; i++) {
        assert_succeeded(&call[i], "ok\n");
        assert_int_equal(w.server.seen[i].connection, 1);
        live_call_free(&call[i]);
    }
    end(&w);
}

/* ---- time ---- */

static void a_poll_with_nothing_to_do_returns_when_told(void **state)
{
    struct world w;
    struct live_call call;
    begin(&w, "/silent delay=never", 3);
    make_and_start(&w, &call, "/silent");
    assert_true(live_run_until(w.multi, one_request_came, &w));
    while (bide_multi_poll(w.multi, 0) > 0 && chaos_requests(w.server.chaos) == 0)
        continue;
    int64_t until_ns = bide_now() + 50 * BIDE_MS;
    unsigned rounds = 0;
    while (bide_now() < until_ns) {
        bide_multi_poll(w.multi, until_ns);
        rounds++;
    }
    assert_true(rounds < 20); /* and does not spin meanwhile */
    bide_multi_cancel_all(w.multi);
    live_call_free(&call);
    end(&w);
}

static void a_retry_comes_when_its_wait_is_over_and_not_before(void **state)
{
    struct world w;
    struct live_call call;
    unsigned rounds = 0;
    begin(&w, "/busy 503 retry-after=1 | 200", 3);
    make_and_start(&w, &call, "/busy");
    for (; bide_multi_running(w.multi) > 0; rounds++)
        bide_multi_poll(w.multi, BIDE_NEVER);
    assert_succeeded(&call, "ok\n");
    live_stop(&w.server);
    assert_int_equal(w.server.count, 2);
    assert_true(w.server.seen[1].at_ns - w.server.seen[0].at_ns >= BIDE_S);
    assert_true(rounds < 100);
    live_call_free(&call);
    end(&w);
}

static void *wake_it(void *context)
{
    bide_multi_wakeup(context);
    return NULL;
}

static void another_thread_can_end_a_poll(void **state)
{
    struct world w;
    struct live_call call;
    pthread_t thread;
    begin(&w, "/down 503", 3);
    w.policy = patient();
    make_and_start(&w, &call, "/down");
    assert_true(live_run_until(w.multi, handle_is_free, &call)); /* it waits: nothing else can end a poll */
    int64_t before_ns = bide_now();
    assert_int_equal(pthread_create(&thread, NULL, wake_it, w.multi), 0);
    assert_int_equal(bide_multi_poll(w.multi, before_ns + 60 * BIDE_S), 1);
    assert_true(bide_now() - before_ns < 60 * BIDE_S);
    pthread_join(thread, NULL);
    bide_multi_cancel_all(w.multi);
    live_call_free(&call);
    end(&w);
}

static void a_poll_without_calls_returns_at_once(void **state)
{
    struct bide_multi *multi = live_multi();
    assert_int_equal(bide_multi_poll(multi, BIDE_NEVER), 0);
    assert_int_equal(bide_multi_drain(multi, BIDE_NEVER), 0);
    bide_multi_cancel_all(multi);
    bide_multi_free(multi);
    bide_multi_free(NULL);
}

/* ---- libcurl's own replay ---- */

static const char cut_on_reuse[] = "/first 200 reuse=close\n/pay 200 body=\"paid\"";

static void an_unsafe_request_on_a_dead_connection_is_sent_once(void **state)
{
    struct world w;
    struct live_call call, pay;
    begin(&w, cut_on_reuse, 5);
    make_and_start(&w, &call, "/first");
    assert_true(live_run(w.multi));
    make(&w, &pay, "/pay");
    live_call_post(&pay, "amount=1");
    start(&w, &pay);
    assert_true(live_run(w.multi));
    assert_int_equal(pay.done, 1);
    assert_int_equal(pay.verdict.reason, BIDE_REASON_NOT_REPEATABLE);
    assert_int_equal(pay.code, CURLE_GOT_NOTHING);
    assert_int_equal(pay.result.attempts, 1);
    assert_true(pay.result.attempt[0].replay_stopped);
    assert_int_equal(pay.result.attempt[0].evidence, BIDE_EVIDENCE_UNKNOWN);
    live_stop(&w.server);
    assert_int_equal(live_count(&w.server, "/pay"), 1);
    live_call_free(&call);
    live_call_free(&pay);
    end(&w);
}

static void a_safe_request_on_a_dead_connection_is_repeated_by_us_and_counted(void **state)
{
    struct world w;
    struct live_call call, get;
    begin(&w, cut_on_reuse, 5);
    make_and_start(&w, &call, "/first");
    assert_true(live_run(w.multi));
    make_and_start(&w, &get, "/pay");
    assert_true(live_run(w.multi));
    assert_succeeded(&get, "paid");
    assert_int_equal(get.result.attempts, 2);
    assert_true(get.result.attempt[0].replay_stopped);
    live_stop(&w.server);
    assert_int_equal(live_count(&w.server, "/pay"), 2);
    live_call_free(&call);
    live_call_free(&get);
    end(&w);
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

static void bare_libcurl_would_have_sent_it_twice(void **state)
{
    struct live_server server;
    struct live_sink sink = {0};
    CURLM *multi = curl_multi_init();
    CURL *easy = curl_easy_init();
    live_serve(&server, cut_on_reuse);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, live_write);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &sink);
    bare_perform(multi, easy, live_url(&server, "/first"));
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, "amount=1");
    bare_perform(multi, easy, live_url(&server, "/pay"));
    live_stop(&server);
    assert_int_equal(live_count(&server, "/pay"), 2);
    curl_easy_cleanup(easy);
    curl_multi_cleanup(multi);
    live_sink_free(&sink);
    live_free(&server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_that_succeeds_is_done_once_with_its_body),
        cmocka_unit_test(a_result_describes_each_attempt),
        cmocka_unit_test(the_last_failure_is_an_answer_and_reaches_the_sink_whole),
        cmocka_unit_test(a_sink_that_takes_nothing_ends_the_call),
        cmocka_unit_test(a_listener_hears_each_verdict_once),
        cmocka_unit_test(what_the_breaker_refuses_is_done_before_start_returns),
        cmocka_unit_test(a_deadline_that_has_passed_is_done_before_start_returns),
        cmocka_unit_test(wrong_options_begin_nothing),
        cmocka_unit_test(a_handle_at_work_elsewhere_ends_with_failed_init),
        cmocka_unit_test(a_job_needs_neither_done_nor_result_nor_options),
        cmocka_unit_test(two_thousand_calls_in_one_thread_all_succeed_among_failures),
        cmocka_unit_test(a_call_may_be_started_from_done),
        cmocka_unit_test(a_call_may_be_started_from_a_write_callback),
        cmocka_unit_test(a_call_started_and_cancelled_in_one_callback_attempts_nothing),
        cmocka_unit_test(a_waiting_call_has_no_handle_in_libcurl_and_can_be_cancelled),
        cmocka_unit_test(a_call_can_be_cancelled_before_anything_happened),
        cmocka_unit_test(a_connecting_call_can_be_cancelled),
        cmocka_unit_test(a_call_can_be_cancelled_in_the_middle_of_its_body),
        cmocka_unit_test(a_call_can_be_cancelled_in_its_own_write_callback),
        cmocka_unit_test(a_call_can_be_cancelled_in_its_own_before_hook),
        cmocka_unit_test(a_call_can_be_cancelled_from_done_of_another),
        cmocka_unit_test(cancelling_in_its_own_done_changes_nothing),
        cmocka_unit_test(cancel_all_ends_every_call_once),
        cmocka_unit_test(free_ends_every_running_call_once),
        cmocka_unit_test(free_refuses_what_done_would_start),
        cmocka_unit_test(a_cancelled_answer_that_was_final_already_is_still_done_once),
        cmocka_unit_test(the_cancel_of_the_options_is_refused),
        cmocka_unit_test(a_drain_lets_calls_end_and_refuses_new_ones),
        cmocka_unit_test(a_drain_cancels_what_is_left_at_its_end),
        cmocka_unit_test(new_credentials_make_one_more_attempt_that_is_no_retry),
        cmocka_unit_test(a_401_without_new_credentials_is_the_answer),
        cmocka_unit_test(a_second_401_is_the_answer),
        cmocka_unit_test(a_wait_that_is_given_up_shows_the_failure_before_it),
        cmocka_unit_test(half_a_failure_is_not_shown_as_if_it_were_whole),
        cmocka_unit_test(a_dripping_failure_does_not_delay_the_retry),
        cmocka_unit_test(a_handle_has_its_private_pointer_again_and_works_with_plain_libcurl),
        cmocka_unit_test(a_call_cancelled_on_a_fresh_connection_leaves_connections_reusable),
        cmocka_unit_test(connections_are_shared_by_the_calls_of_a_multi),
        cmocka_unit_test(a_poll_with_nothing_to_do_returns_when_told),
        cmocka_unit_test(a_retry_comes_when_its_wait_is_over_and_not_before),
        cmocka_unit_test(another_thread_can_end_a_poll),
        cmocka_unit_test(a_poll_without_calls_returns_at_once),
        cmocka_unit_test(an_unsafe_request_on_a_dead_connection_is_sent_once),
        cmocka_unit_test(a_safe_request_on_a_dead_connection_is_repeated_by_us_and_counted),
        cmocka_unit_test(bare_libcurl_would_have_sent_it_twice),
    };
    curl_global_init(CURL_GLOBAL_DEFAULT);
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    curl_global_cleanup();
    return failures;
}
