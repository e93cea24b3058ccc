/* test_multi_loop.c - a multi in the caller's event loop: an epoll set maintained by libcurl's socket function, and one
 * timer set by bide_multi_on_timer. Retries start on time, without needless wakeups. */
#include "live_multi.h"

#include <bide/clock.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- the event loop ---- */

struct loop {
    struct live_server server;
    struct bide_multi *multi;
    struct bide_policy policy;
    struct bide_target target;
    int epoll;
    int64_t due_ns; /* of its single timer */
    unsigned timer_sets;
    unsigned fired;   /* timers */
    unsigned actions; /* all calls of bide_multi_action */
};

static void set_timer(void *context, int64_t due_ns)
{
    struct loop *loop = context;
    loop->due_ns = due_ns;
    loop->timer_sets++;
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *context, void *known)
{
    struct loop *loop = context;
    struct epoll_event event = {.data.fd = fd};
    (void)easy;
    if (what == CURL_POLL_REMOVE)
        return epoll_ctl(loop->epoll, EPOLL_CTL_DEL, fd, &event), 0;
    event.events = (what & CURL_POLL_IN ? EPOLLIN : 0u) | (what & CURL_POLL_OUT ? EPOLLOUT : 0u);
    if (epoll_ctl(loop->epoll, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event) != 0)
        fail_msg("epoll_ctl");
    return curl_multi_assign(bide_multi_handle_get(loop->multi), fd, loop), 0;
}

static int milliseconds_until(int64_t due_ns)
{
    int64_t left_ns = due_ns - bide_now();
    if (left_ns <= 0)
        return 0;
    return left_ns < 60 * BIDE_S ? (int)((left_ns - 1) / BIDE_MS + 1) : 60000;
}

static void event_loop_fire_timer(struct loop *loop)
{
    loop->due_ns = BIDE_NEVER;
    loop->fired++;
    loop->actions++;
    bide_multi_action(loop->multi, CURL_SOCKET_TIMEOUT, 0);
}

/* Waits for an event or the timer, until `until_ns` at most. */
static void event_loop_round(struct loop *loop, int64_t until_ns)
{
    struct epoll_event event[64];
    int64_t due_ns = loop->due_ns < until_ns ? loop->due_ns : until_ns;
    int count = epoll_wait(loop->epoll, event, 64, milliseconds_until(due_ns));
    for (int i = 0; i < count; i++) {
        int what = (event[i].events & EPOLLIN ? CURL_CSELECT_IN : 0) |
                   (event[i].events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
                   (event[i].events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0);
        loop->actions++;
        bide_multi_action(loop->multi, event[i].data.fd, what);
    }
    if (bide_now() >= loop->due_ns)
        event_loop_fire_timer(loop);
}

static bool event_loop_run(struct loop *loop)
{
    int64_t until_ns = bide_now() + 60 * BIDE_S;
    while (bide_multi_running_get(loop->multi) > 0 && bide_now() < until_ns)
        event_loop_round(loop, until_ns);
    return bide_multi_running_get(loop->multi) == 0;
}

static void event_loop_begin(struct loop *loop, const char *script, uint32_t attempts)
{
    *loop = (struct loop){.epoll = epoll_create1(EPOLL_CLOEXEC), .due_ns = BIDE_NEVER};
    assert_true(loop->epoll >= 0);
    live_server_start(&loop->server, script);
    loop->multi = live_multi_new();
    loop->policy = live_policy(attempts);
    live_target_without_gates(&loop->target);
    curl_multi_setopt(bide_multi_handle_get(loop->multi), CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(bide_multi_handle_get(loop->multi), CURLMOPT_SOCKETDATA, loop);
    bide_multi_on_timer(loop->multi, set_timer, loop);
}

static void event_loop_end(struct loop *loop)
{
    bide_multi_free(loop->multi);
    close(loop->epoll);
    live_server_free(&loop->server);
}

static void call_init(struct loop *loop, struct live_multi_call *call, const char *path)
{
    live_multi_call_init(call, live_server_url(&loop->server, path), &loop->policy);
}

static void call_start(struct loop *loop, struct live_multi_call *call)
{
    live_multi_call_start(call, loop->multi, &loop->target);
    assert_int_equal(call->start_error, BIDE_OK);
}

static void assert_succeeded(const struct live_multi_call *call, const char *body)
{
    assert_int_equal(call->done, 1);
    assert_int_equal(call->code, CURLE_OK);
    assert_int_equal(call->verdict.action, BIDE_ACTION_DONE);
    assert_string_equal(call->sink.at, body);
}

/* ---- the tests ---- */

static void a_flaky_call_succeeds_in_the_caller_s_event_loop(void **state)
{
    struct loop loop;
    struct live_multi_call call;
    event_loop_begin(&loop, "/flaky 503 | reset | 200 body=\"yes\"", 5);
    call_init(&loop, &call, "/flaky");
    call_start(&loop, &call);
    assert_true(loop.due_ns != BIDE_NEVER); /* bide_multi_start sets the timer that starts the attempt */
    assert_true(event_loop_run(&loop));
    assert_succeeded(&call, "yes");
    assert_int_equal(call.result.attempts, 3);
    live_multi_call_free(&call);
    event_loop_end(&loop);
}

static void many_calls_share_the_event_loop(void **state)
{
    enum { CALLS = 300 };
    struct loop loop;
    struct live_multi_call *call = calloc(CALLS, sizeof *call);
    event_loop_begin(&loop, "/mix 200 body=\"fine\" x3 | 503 | reset | 429 | loop", 60);
    curl_multi_setopt(bide_multi_handle_get(loop.multi), CURLMOPT_MAX_TOTAL_CONNECTIONS, 50L);
    for (size_t i = 0; i < CALLS; i++) {
        call_init(&loop, &call[i], "/mix");
        call_start(&loop, &call[i]);
    }
    assert_true(event_loop_run(&loop));
    for (size_t i = 0; i < CALLS; i++) {
        assert_succeeded(&call[i], "fine");
        live_multi_call_free(&call[i]);
    }
    free(call);
    event_loop_end(&loop);
}

static void a_wait_causes_no_wakeups_and_ends_on_time(void **state)
{
    struct loop loop;
    struct live_multi_call call;
    event_loop_begin(&loop, "/busy 503 retry-after=1 | 200", 3);
    call_init(&loop, &call, "/busy");
    call_start(&loop, &call);
    assert_true(event_loop_run(&loop));
    assert_succeeded(&call, "ok\n");
    print_message("%u actions, %u of them timers, timer set %u times\n", loop.actions, loop.fired, loop.timer_sets);
    assert_true(loop.actions < 40);
    assert_true(loop.timer_sets < 40);
    live_server_stop(&loop.server);
    assert_int_equal(loop.server.count, 2);
    assert_true(loop.server.seen[1].at_ns - loop.server.seen[0].at_ns >= BIDE_S);
    live_multi_call_free(&call);
    event_loop_end(&loop);
}

static void no_timer_is_set_after_the_last_call(void **state)
{
    struct loop loop;
    struct live_multi_call call;
    event_loop_begin(&loop, "/flaky 503 | 200", 3);
    call_init(&loop, &call, "/flaky");
    call_start(&loop, &call);
    assert_true(event_loop_run(&loop));
    unsigned fired = loop.fired;
    while (loop.due_ns != BIDE_NEVER && loop.fired < fired + 10)
        event_loop_round(&loop, BIDE_NEVER); /* libcurl may have a last timer of the transfer */
    assert_int_equal(loop.due_ns, BIDE_NEVER);
    live_multi_call_free(&call);
    event_loop_end(&loop);
}

static void a_silent_server_is_left_at_the_attempt_timeout(void **state)
{
    struct loop loop;
    struct live_multi_call call;
    event_loop_begin(&loop, "/silent delay=never | 200", 3);
    loop.policy.attempt_timeout_ns = 100 * BIDE_MS;
    call_init(&loop, &call, "/silent");
    call_start(&loop, &call);
    assert_true(event_loop_run(&loop));
    assert_succeeded(&call, "ok\n");
    assert_int_equal(call.result.attempt[0].code, CURLE_OPERATION_TIMEDOUT);
    assert_true(loop.actions < 100);
    live_multi_call_free(&call);
    event_loop_end(&loop);
}

static void the_timer_starts_a_hedge(void **state)
{
    struct loop loop;
    struct live_multi_call call;
    event_loop_begin(&loop, "/slow delay=never | 200 body=\"hedged\"", 3);
    loop.policy.hedges_max = 1;
    loop.policy.hedge_delay_ns = 20 * BIDE_MS;
    call_init(&loop, &call, "/slow");
    call_start(&loop, &call);
    assert_true(event_loop_run(&loop));
    assert_succeeded(&call, "hedged");
    assert_true(call.by_copy);
    live_multi_call_free(&call);
    event_loop_end(&loop);
}

static void a_timer_that_fires_early_is_set_again(void **state)
{
    struct loop loop;
    struct live_multi_call call;
    event_loop_begin(&loop, "/busy 503 retry-after=1 | 200", 3);
    call_init(&loop, &call, "/busy");
    call_start(&loop, &call);
    while (bide_multi_running_get(loop.multi) > 0) {
        event_loop_round(&loop, BIDE_NEVER);
        if (loop.due_ns != BIDE_NEVER)
            event_loop_fire_timer(&loop); /* before it is due: the multi must set it again */
    }
    assert_succeeded(&call, "ok\n");
    live_server_stop(&loop.server);
    assert_true(loop.server.seen[1].at_ns - loop.server.seen[0].at_ns >= BIDE_S);
    live_multi_call_free(&call);
    event_loop_end(&loop);
}

static void a_call_can_be_cancelled_between_events(void **state)
{
    struct loop loop;
    struct live_multi_call silent, fine;
    event_loop_begin(&loop, "/silent delay=never\n/fine 200", 3);
    call_init(&loop, &silent, "/silent");
    call_start(&loop, &silent);
    while (chaos_requests(loop.server.chaos) == 0)
        event_loop_round(&loop, bide_now() + BIDE_MS);
    bide_multi_cancel(loop.multi, silent.active);
    assert_int_equal(silent.done, 1);
    assert_int_equal(silent.code, CURLE_ABORTED_BY_CALLBACK);
    call_init(&loop, &fine, "/fine");
    call_start(&loop, &fine);
    assert_true(event_loop_run(&loop));
    assert_succeeded(&fine, "ok\n");
    live_multi_call_free(&silent);
    live_multi_call_free(&fine);
    event_loop_end(&loop);
}

static void a_call_can_be_started_in_done(void **state)
{
    struct loop loop;
    struct live_multi_call one, two;
    event_loop_begin(&loop, "/mix 503 | 200 | loop", 3);
    call_init(&loop, &one, "/mix");
    call_init(&loop, &two, "/mix");
    two.multi = loop.multi;
    two.target = &loop.target;
    one.after_done = live_multi_call_restart;
    one.other = &two;
    call_start(&loop, &one);
    assert_true(event_loop_run(&loop));
    assert_succeeded(&one, "ok\n");
    assert_succeeded(&two, "ok\n");
    live_multi_call_free(&one);
    live_multi_call_free(&two);
    event_loop_end(&loop);
}

static void calls_started_before_on_timer_continue(void **state)
{
    struct loop loop;
    struct live_multi_call call;
    event_loop_begin(&loop, "/flaky 503 | 200", 3);
    bide_multi_on_timer(loop.multi, NULL, NULL);
    call_init(&loop, &call, "/flaky");
    call_start(&loop, &call);
    assert_int_equal(loop.due_ns, BIDE_NEVER);
    bide_multi_on_timer(loop.multi, set_timer, &loop);
    assert_true(loop.due_ns != BIDE_NEVER);
    assert_true(event_loop_run(&loop));
    assert_succeeded(&call, "ok\n");
    live_multi_call_free(&call);
    event_loop_end(&loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_flaky_call_succeeds_in_the_caller_s_event_loop),
        cmocka_unit_test(many_calls_share_the_event_loop),
        cmocka_unit_test(a_wait_causes_no_wakeups_and_ends_on_time),
        cmocka_unit_test(no_timer_is_set_after_the_last_call),
        cmocka_unit_test(a_silent_server_is_left_at_the_attempt_timeout),
        cmocka_unit_test(the_timer_starts_a_hedge),
        cmocka_unit_test(a_timer_that_fires_early_is_set_again),
        cmocka_unit_test(a_call_can_be_cancelled_between_events),
        cmocka_unit_test(a_call_can_be_started_in_done),
        cmocka_unit_test(calls_started_before_on_timer_continue),
    };
    curl_global_init(CURL_GLOBAL_DEFAULT);
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    curl_global_cleanup();
    return failures;
}
