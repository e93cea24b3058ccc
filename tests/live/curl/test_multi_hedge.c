/* test_multi_hedge.c - hedged attempts in a multi: one response reaches the sink, completely; losers are cancelled;
 * every hedge is charged; and requests that must not run twice are not hedged. */
#define _GNU_SOURCE
#include "live_multi.h"
#include "live_tcp.h"

#include <bide/clock.h>

#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define HEDGE_DELAY_NS (20 * BIDE_MS)

struct fixture {
    struct live_server server;
    struct bide_multi *multi;
    struct bide_policy policy;
    struct bide_target target;
    struct live_multi_call call;
};

/* A token bucket that only retries and hedges change. */
static void target_with_tokens(struct bide_target *target, uint32_t capacity_milli)
{
    struct bide_target_config config;
    bide_target_config_init(&config, BIDE_PRESET_SERVICE);
    config.breaker.kind = BIDE_BREAKER_OFF;
    config.hold_off_max_ns = 0;
    config.budget.kind = BIDE_BUDGET_TOKENS;
    config.budget.capacity_milli = capacity_milli;
    config.budget.initial_milli = BIDE_FULL;
    config.budget.cost_milli = config.budget.cost_throttled_milli = config.budget.cost_timeout_milli = 1000;
    config.budget.earn_success_milli = config.budget.earn_first_milli = config.budget.refill_per_minute_milli = 0;
    config.budget.refund_permille = 0;
    assert_int_equal(bide_target_init(target, &config, bide_now(), NULL), BIDE_OK);
}

static int64_t tokens_spent(const struct fixture *w)
{
    return 10 - bide_target_get(&w->target, bide_now()).budget_left_milli / 1000;
}

/* Prepares a call that is hedged unless the test changes its options. */
static void fixture_begin_at(struct fixture *w, const char *url, uint32_t attempts)
{
    w->multi = live_multi_new();
    w->policy = live_policy(attempts);
    w->policy.hedges_max = 1;
    w->policy.hedge_delay_ns = HEDGE_DELAY_NS;
    assert_int_equal(bide_policy_check(&w->policy, NULL), BIDE_OK);
    target_with_tokens(&w->target, 10000);
    live_multi_call_init(&w->call, url, &w->policy);
}

static void fixture_begin(struct fixture *w, const char *script, uint32_t attempts)
{
    live_server_start(&w->server, script);
    fixture_begin_at(w, live_server_url(&w->server, "/"), attempts);
}

static void call_start(struct fixture *w)
{
    live_multi_call_start(&w->call, w->multi, &w->target);
    assert_int_equal(w->call.start_error, BIDE_OK);
}

/* Runs the call to its end and stops the server, so that its requests can be checked. */
static void call_run(struct fixture *w)
{
    call_start(w);
    assert_true(live_multi_run(w->multi));
    live_server_stop(&w->server);
    assert_int_equal(w->call.done, 1);
}

static void fixture_end_calls(struct fixture *w)
{
    bide_multi_free(w->multi);
    live_multi_call_free(&w->call);
}

static void fixture_end(struct fixture *w)
{
    fixture_end_calls(w);
    live_server_free(&w->server);
}

static void assert_won(const struct fixture *w, uint32_t attempt, const char *body)
{
    assert_int_equal(w->call.code, CURLE_OK);
    assert_int_equal(w->call.verdict.action, BIDE_ACTION_DONE);
    assert_int_equal(w->call.verdict.attempt, attempt);
    assert_int_equal(w->call.result.status, 200);
    assert_int_equal(w->call.last_status, 200);
    assert_string_equal(w->call.sink.at, body);
}

/* ---- a manual server: each connection carries one request, and the test decides when it is answered ---- */

#define SEND_RESET ""

struct manual_server {
    struct live_tcp *server;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    const char *reply[4]; /* by connection; NULL: not yet */
    unsigned requests, responses;
    bool stopping;
};

static void manual_server_count(struct manual_server *manual_server, unsigned *count)
{
    pthread_mutex_lock(&manual_server->lock);
    ++*count;
    pthread_cond_broadcast(&manual_server->changed);
    pthread_mutex_unlock(&manual_server->lock);
}

static const char *manual_server_wait(struct manual_server *manual_server, unsigned number)
{
    pthread_mutex_lock(&manual_server->lock);
    while (!manual_server->reply[number - 1] && !manual_server->stopping)
        pthread_cond_wait(&manual_server->changed, &manual_server->lock);
    const char *reply = manual_server->reply[number - 1];
    pthread_mutex_unlock(&manual_server->lock);
    return reply;
}

static void manual_server_serve(void *context, int fd, unsigned number)
{
    struct manual_server *manual_server = context;
    char text[4096];
    if (!live_tcp_read_head(fd, text, sizeof text))
        return;
    manual_server_count(manual_server, &manual_server->requests);
    const char *reply = manual_server_wait(manual_server, number);
    if (!reply || strcmp(reply, SEND_RESET) == 0)
        live_tcp_reset(fd);
    else
        live_tcp_write(fd, reply, strlen(reply));
    manual_server_count(manual_server, &manual_server->responses);
}

static void manual_server_begin(struct manual_server *manual_server, struct fixture *w, uint32_t attempts)
{
    char url[64];
    *manual_server = (struct manual_server){.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    manual_server->server = live_tcp_new(manual_server_serve, manual_server);
    snprintf(url, sizeof url, "http://127.0.0.1:%u/", live_tcp_port(manual_server->server));
    fixture_begin_at(w, url, attempts);
    call_start(w);
}

static void manual_server_end(struct manual_server *manual_server, struct fixture *w)
{
    fixture_end_calls(w);
    pthread_mutex_lock(&manual_server->lock);
    manual_server->stopping = true;
    pthread_cond_broadcast(&manual_server->changed);
    pthread_mutex_unlock(&manual_server->lock);
    live_tcp_free(manual_server->server);
}

/* Sends the response on connection `number`, from 1. */
static void reply(struct manual_server *manual_server, unsigned number, const char *text)
{
    pthread_mutex_lock(&manual_server->lock);
    manual_server->reply[number - 1] = text;
    pthread_cond_broadcast(&manual_server->changed);
    pthread_mutex_unlock(&manual_server->lock);
}

static bool two_requests_arrived(void *context)
{
    struct manual_server *manual_server = context;
    pthread_mutex_lock(&manual_server->lock);
    bool both = manual_server->requests >= 2;
    pthread_mutex_unlock(&manual_server->lock);
    return both;
}

static void manual_server_wait_until_sent(struct manual_server *manual_server, unsigned count)
{
    pthread_mutex_lock(&manual_server->lock);
    while (manual_server->responses < count)
        pthread_cond_wait(&manual_server->changed, &manual_server->lock);
    pthread_mutex_unlock(&manual_server->lock);
}

static bool first_outcome_reported(void *context)
{
    return ((struct fixture *)context)->call.result.attempt[0].time_ns > 0;
}

static bool second_outcome_reported(void *context)
{
    return ((struct fixture *)context)->call.result.attempt[1].time_ns > 0;
}

#define HEAD(status, length) "HTTP/1.1 " status "\r\nConnection: close\r\nContent-Length: " length "\r\n\r\n"

static const char first[] = HEAD("200 OK", "5") "first", second[] = HEAD("200 OK", "6") "second",
                  third[] = HEAD("200 OK", "5") "third", bad[] = HEAD("503 Bad", "3") "bad",
                  worse[] = HEAD("502 Worse", "5") "worse", created[] = HEAD("201 Created", "7") "created";

/* ---- the winner ---- */

static void a_hedge_wins_when_the_first_attempt_is_silent(void **state)
{
    struct fixture w;
    fixture_begin(&w, "/ delay=never | 200 body=\"second\"", 3);
    call_run(&w);
    assert_won(&w, 2, "second");
    assert_true(w.call.by_copy);
    assert_int_equal(w.call.result.attempts, 2);
    assert_int_equal(tokens_spent(&w), 1);
    assert_int_equal(w.server.count, 2);
    assert_true(w.server.seen[1].at_ns - w.server.seen[0].at_ns < 60 * BIDE_S);
    assert_string_equal(w.server.seen[0].result, "left");
    assert_string_equal(w.server.seen[1].result, "answered");
    fixture_end(&w);
}

static void the_first_attempt_wins_when_the_hedge_is_silent(void **state)
{
    struct fixture w;
    struct manual_server manual_server;
    manual_server_begin(&manual_server, &w, 3);
    assert_true(live_multi_run_until(w.multi, two_requests_arrived, &manual_server));
    reply(&manual_server, 1, first);
    assert_true(live_multi_run(w.multi));
    assert_won(&w, 1, "first");
    assert_false(w.call.by_copy);
    assert_int_equal(w.call.result.attempts, 2);
    assert_int_equal(tokens_spent(&w), 1);
    manual_server_end(&manual_server, &w);
}

static void two_simultaneous_successes_are_one_success(void **state)
{
    struct fixture w;
    struct manual_server manual_server;
    manual_server_begin(&manual_server, &w, 2);
    assert_true(live_multi_run_until(w.multi, two_requests_arrived, &manual_server));
    reply(&manual_server, 1, first);
    reply(&manual_server, 2, created);
    manual_server_wait_until_sent(&manual_server, 2); /* both responses have arrived before libcurl reads either */
    assert_true(live_multi_run(w.multi));
    assert_int_equal(w.call.done, 1);
    assert_int_equal(w.call.code, CURLE_OK);
    assert_int_equal(w.call.verdict.action, BIDE_ACTION_DONE);
    assert_int_equal(w.call.result.verdict.reason, BIDE_REASON_SUCCEEDED);
    bool by_first = w.call.verdict.attempt == 1;
    assert_int_equal(w.call.result.status, by_first ? 200 : 201);
    assert_int_equal(w.call.last_status, by_first ? 200 : 201);
    assert_string_equal(w.call.sink.at, by_first ? "first" : "created");
    assert_int_equal(tokens_spent(&w), 1);
    manual_server_end(&manual_server, &w);
}

static void a_failure_beside_a_success_changes_nothing(void **state)
{
    struct fixture w;
    for (unsigned good = 1; good <= 2; good++) {
        struct manual_server manual_server;
        manual_server_begin(&manual_server, &w, 2);
        assert_true(live_multi_run_until(w.multi, two_requests_arrived, &manual_server));
        reply(&manual_server, good, first);
        reply(&manual_server, 3 - good, bad);
        manual_server_wait_until_sent(&manual_server, 2);
        assert_true(live_multi_run(w.multi));
        assert_int_equal(w.call.done, 1);
        assert_won(&w, good, "first");
        manual_server_end(&manual_server, &w);
    }
}

static void a_fast_response_starts_no_hedge(void **state)
{
    struct fixture w;
    fixture_begin(&w, "/ 200 body=\"quick\"", 3);
    w.policy.hedge_delay_ns = 50 * BIDE_S;
    call_run(&w);
    assert_won(&w, 1, "quick");
    assert_int_equal(w.server.count, 1);
    assert_int_equal(tokens_spent(&w), 0);
    fixture_end(&w);
}

static void two_hedges_can_run_beside_the_first_attempt(void **state)
{
    struct fixture w;
    fixture_begin(&w, "/ delay=never x2 | 200 body=\"third\"", 3);
    w.policy.hedges_max = 2;
    call_run(&w);
    assert_won(&w, 3, "third");
    assert_true(w.call.by_copy);
    assert_int_equal(w.server.count, 3);
    assert_int_equal(tokens_spent(&w), 2);
    fixture_end(&w);
}

/* ---- failures ---- */

static void a_failed_hedge_leaves_the_first_attempt_running(void **state)
{
    struct fixture w;
    struct manual_server manual_server;
    manual_server_begin(&manual_server, &w, 5);
    assert_true(live_multi_run_until(w.multi, two_requests_arrived, &manual_server));
    reply(&manual_server, 2, bad);
    assert_true(live_multi_run_until(w.multi, second_outcome_reported, &w));
    assert_int_equal(w.call.done, 0);
    reply(&manual_server, 1, first);
    assert_true(live_multi_run(w.multi));
    assert_won(&w, 1, "first");
    assert_int_equal(w.call.result.attempts, 2);
    assert_int_equal(w.call.result.attempt[1].status, 503);
    manual_server_end(&manual_server, &w);
}

static void a_failed_first_attempt_leaves_the_hedge_running(void **state)
{
    struct fixture w;
    struct manual_server manual_server;
    manual_server_begin(&manual_server, &w, 5);
    assert_true(live_multi_run_until(w.multi, two_requests_arrived, &manual_server));
    reply(&manual_server, 1, bad);
    assert_true(live_multi_run_until(w.multi, first_outcome_reported, &w));
    assert_int_equal(w.call.done, 0);
    reply(&manual_server, 2, second);
    assert_true(live_multi_run(w.multi));
    assert_won(&w, 2, "second");
    assert_true(w.call.by_copy);
    assert_int_equal(w.call.result.attempt[0].status, 503);
    assert_int_equal(w.call.result.attempts, 2);
    manual_server_end(&manual_server, &w);
}

static void a_round_of_failures_is_followed_by_a_retry(void **state)
{
    struct fixture w;
    struct manual_server manual_server;
    manual_server_begin(&manual_server, &w, 3);
    assert_true(live_multi_run_until(w.multi, two_requests_arrived, &manual_server));
    reply(&manual_server, 3, third);
    reply(&manual_server, 1, bad);
    assert_true(live_multi_run_until(w.multi, first_outcome_reported, &w));
    reply(&manual_server, 2, worse);
    assert_true(live_multi_run(w.multi));
    assert_won(&w, 3, "third");
    assert_int_equal(w.call.result.attempts, 3);
    assert_int_equal(tokens_spent(&w), 2);
    manual_server_end(&manual_server, &w);
}

static void the_last_failure_of_the_round_is_delivered(void **state)
{
    struct fixture w;
    struct manual_server manual_server;
    manual_server_begin(&manual_server, &w, 2);
    assert_true(live_multi_run_until(w.multi, two_requests_arrived, &manual_server));
    reply(&manual_server, 1, bad);
    assert_true(live_multi_run_until(w.multi, first_outcome_reported, &w));
    reply(&manual_server, 2, worse);
    assert_true(live_multi_run(w.multi));
    assert_int_equal(w.call.done, 1);
    assert_int_equal(w.call.code, CURLE_OK);
    assert_int_equal(w.call.verdict.reason, BIDE_REASON_ATTEMPTS_SPENT);
    assert_int_equal(w.call.result.status, 502);
    assert_int_equal(w.call.last_status, 502);
    assert_string_equal(w.call.sink.at, "worse");
    manual_server_end(&manual_server, &w);
}

static void two_resets_are_one_failure(void **state)
{
    struct fixture w;
    struct manual_server manual_server;
    manual_server_begin(&manual_server, &w, 2);
    assert_true(live_multi_run_until(w.multi, two_requests_arrived, &manual_server));
    reply(&manual_server, 1, SEND_RESET);
    reply(&manual_server, 2, SEND_RESET);
    manual_server_wait_until_sent(&manual_server, 2);
    assert_true(live_multi_run(w.multi));
    assert_int_equal(w.call.done, 1);
    assert_int_not_equal(w.call.code, CURLE_OK);
    assert_int_equal(w.call.verdict.reason, BIDE_REASON_ATTEMPTS_SPENT);
    assert_int_equal(w.call.result.status, 0);
    assert_int_equal(w.call.sink.length, 0);
    manual_server_end(&manual_server, &w);
}

static void a_permanent_failure_cancels_the_other_attempt(void **state)
{
    struct fixture w;
    fixture_begin(&w, "/ delay=never | 404 body=\"nowhere\"", 5);
    call_run(&w);
    assert_int_equal(w.call.code, CURLE_OK);
    assert_int_equal(w.call.verdict.reason, BIDE_REASON_PERMANENT);
    assert_int_equal(w.call.result.status, 404);
    assert_true(w.call.by_copy);
    assert_string_equal(w.call.sink.at, "nowhere");
    fixture_end(&w);
}

/* ---- a winner that breaks off ---- */

static void a_winner_that_breaks_off_in_its_body_ends_the_call(void **state)
{
    struct fixture w;
    fixture_begin(&w, "/ delay=never | bytes=100000 reset=half | 200", 5);
    call_run(&w);
    assert_int_not_equal(w.call.code, CURLE_OK);
    assert_int_equal(w.call.verdict.reason, BIDE_REASON_BODY_DELIVERED);
    assert_int_equal(w.server.count, 2);
    fixture_end(&w);
}

static void a_winner_that_breaks_off_is_retried_if_the_sink_rewinds(void **state)
{
    struct fixture w;
    fixture_begin(&w, "/ delay=never | bytes=100000 reset=half | 200 body=\"anew\"", 5);
    w.call.options.rewind = live_sink_rewind;
    call_run(&w);
    assert_won(&w, 3, "anew");
    assert_false(w.call.by_copy);
    assert_int_equal(w.call.sink.rewinds, 1);
    fixture_end(&w);
}

static void a_winner_that_breaks_off_before_its_body_is_retried(void **state)
{
    struct fixture w;
    fixture_begin(&w, "/ delay=never | bytes=1000 reset=headers | 200 body=\"anew\"", 5);
    call_run(&w);
    assert_won(&w, 3, "anew");
    assert_int_equal(w.server.count, 3);
    fixture_end(&w);
}

/* ---- requests that are not hedged ---- */

static void assert_not_hedged(struct fixture *w, const char *body)
{
    call_run(w);
    assert_won(w, 1, body);
    assert_int_equal(w->server.count, 1);
    assert_int_equal(tokens_spent(w), 0);
    fixture_end(w);
}

static const char slow_script[] = "/ delay=200ms body=\"slow\" | 200 body=\"hedged\"";

static void an_unsafe_request_is_not_hedged(void **state)
{
    struct fixture w;
    fixture_begin(&w, slow_script, 5);
    live_multi_call_post(&w.call, "amount=1");
    w.call.options.safety = BIDE_CURL_UNSAFE;
    assert_not_hedged(&w, "slow");
}

static void an_unsafe_method_is_not_hedged(void **state)
{
    struct fixture w;
    fixture_begin(&w, slow_script, 5);
    live_multi_call_post(&w.call, "amount=1");
    assert_not_hedged(&w, "slow");
}

static void a_call_without_a_sink_is_not_hedged(void **state)
{
    struct fixture w;
    fixture_begin(&w, slow_script, 5);
    curl_easy_setopt(w.call.easy, CURLOPT_WRITEFUNCTION, live_sink_write);
    curl_easy_setopt(w.call.easy, CURLOPT_WRITEDATA, &w.call.sink);
    w.call.options.write = NULL;
    w.call.options.write_data = NULL;
    assert_not_hedged(&w, "slow");
}

static size_t read_x(char *into, size_t size, size_t count, void *left)
{
    (void)size, (void)count;
    if (*(int *)left == 0)
        return 0;
    --*(int *)left;
    *into = 'x';
    return 1;
}

static int seek_x(void *left, curl_off_t offset, int origin)
{
    (void)origin;
    *(int *)left = 3 - (int)offset;
    return CURL_SEEKFUNC_OK;
}

static void a_stream_is_not_hedged(void **state)
{
    struct fixture w;
    int left = 3;
    fixture_begin(&w, slow_script, 5);
    curl_easy_setopt(w.call.easy, CURLOPT_UPLOAD, 1L);
    w.call.options.body = (struct bide_curl_body){.kind = BIDE_CURL_BODY_STREAM,
                                                  .length = 3,
                                                  .read = read_x,
                                                  .read_data = &left,
                                                  .seek = seek_x,
                                                  .seek_data = &left};
    assert_not_hedged(&w, "slow");
}

static void an_unknown_body_is_not_hedged(void **state)
{
    struct fixture w;
    fixture_begin(&w, slow_script, 5);
    curl_easy_setopt(w.call.easy, CURLOPT_POSTFIELDS, "x=1");
    w.call.options.safety = BIDE_CURL_IDEMPOTENT;
    assert_not_hedged(&w, "slow");
}

static void an_empty_budget_refuses_hedges(void **state)
{
    struct fixture w;
    fixture_begin(&w, slow_script, 5);
    target_with_tokens(&w.target, 0);
    call_run(&w);
    assert_won(&w, 1, "slow");
    assert_int_equal(w.server.count, 1);
    assert_true(bide_target_get(&w.target, bide_now()).refused[BIDE_GATE_INDEX(BIDE_GATE_BUDGET)] > 0);
    fixture_end(&w);
}

/* ---- requests that are hedged ---- */

static void a_keyed_request_is_hedged_with_the_same_key_and_body(void **state)
{
    struct fixture w;
    fixture_begin(&w, "/ delay=never | 200 body=\"second\"", 3);
    live_multi_call_post(&w.call, "amount=1");
    w.call.options.inject = BIDE_CURL_INJECT_KEY | BIDE_CURL_INJECT_ATTEMPT;
    call_run(&w);
    assert_won(&w, 2, "second");
    assert_int_equal(w.server.count, 2);
    assert_string_equal(w.server.seen[0].key, w.server.seen[1].key);
    assert_int_equal(w.server.seen[0].body_hash, bide_hash("amount=1", 8));
    assert_int_equal(w.server.seen[1].body_hash, bide_hash("amount=1", 8));
    assert_true(strtol(w.server.seen[0].attempt, NULL, 10) == 1);
    assert_true(strtol(w.server.seen[1].attempt, NULL, 10) == 2);
    fixture_end(&w);
}

static void a_file_body_is_hedged_and_sent_completely_by_both_attempts(void **state)
{
    struct fixture w;
    char name[] = "/tmp/bide-hedge-XXXXXX", text[50000];
    int fd = mkstemp(name);
    assert_true(fd >= 0);
    unlink(name);
    memset(text, 'f', sizeof text);
    assert_int_equal(write(fd, text, sizeof text), sizeof text);
    fixture_begin(&w, "/ delay=never | 200 body=\"second\"", 3);
    curl_easy_setopt(w.call.easy, CURLOPT_UPLOAD, 1L); /* PUT */
    w.call.options.body = (struct bide_curl_body){.kind = BIDE_CURL_BODY_FILE, .fd = fd, .length = sizeof text};
    call_run(&w);
    assert_won(&w, 2, "second");
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(w.server.seen[i].body_hash, bide_hash(text, sizeof text));
    close(fd);
    fixture_end(&w);
}

/* ---- a slow connect: the method is unknown when the hedge is due ---- */

/* Accepts connections and responds to requests. */
struct slow_listener {
    struct live_blackhole port;
    pthread_t thread;
    unsigned requests;
};

static void *slow_listener_serve(void *context)
{
    static const char reply[] = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nlate";
    struct slow_listener *slow_listener = context;
    char head[4096];
    for (int fd; (fd = accept(slow_listener->port.fd[0], NULL, NULL)) >= 0; close(fd)) {
        if (!live_tcp_read_head(fd, head, sizeof head))
            continue;
        slow_listener->requests++;
        live_tcp_write(fd, reply, sizeof reply - 1);
    }
    return NULL;
}

/* Empties the listen queue and starts to accept. The client's next SYN comes after a second. */
static void slow_listener_open(struct slow_listener *slow_listener)
{
    while (slow_listener->port.count > 1)
        close(slow_listener->port.fd[--slow_listener->port.count]);
    assert_int_equal(pthread_create(&slow_listener->thread, NULL, slow_listener_serve, slow_listener), 0);
}

static void slow_listener_close(struct slow_listener *slow_listener)
{
    shutdown(slow_listener->port.fd[0], SHUT_RDWR);
    pthread_join(slow_listener->thread, NULL);
    live_blackhole_close(&slow_listener->port);
}

static void poll_past_the_hedge(struct fixture *w)
{
    int64_t until_ns = bide_now() + 3 * HEDGE_DELAY_NS;
    while (bide_now() < until_ns)
        assert_int_equal(bide_multi_poll(w->multi, until_ns), 1);
}

static void an_unsafe_request_with_a_slow_connect_is_sent_once(void **state)
{
    struct fixture w;
    struct slow_listener slow_listener = {0};
    live_blackhole_open(&slow_listener.port);
    fixture_begin_at(&w, slow_listener.port.url, 5);
    live_multi_call_post(&w.call, "amount=1");
    call_start(&w);
    poll_past_the_hedge(&w);
    slow_listener_open(&slow_listener);
    assert_true(live_multi_run(w.multi));
    assert_won(&w, 1, "late");
    assert_int_equal(tokens_spent(&w), 0);
    slow_listener_close(&slow_listener);
    assert_int_equal(slow_listener.requests, 1);
    fixture_end_calls(&w);
}

static void a_safe_request_with_a_slow_connect_succeeds(void **state)
{
    struct fixture w;
    struct slow_listener slow_listener = {0};
    live_blackhole_open(&slow_listener.port);
    fixture_begin_at(&w, slow_listener.port.url, 5);
    w.call.options.safety = BIDE_CURL_SAFE;
    call_start(&w);
    poll_past_the_hedge(&w);
    slow_listener_open(&slow_listener);
    assert_true(live_multi_run(w.multi));
    assert_int_equal(w.call.done, 1);
    assert_int_equal(w.call.verdict.action, BIDE_ACTION_DONE);
    assert_string_equal(w.call.sink.at, "late");
    fixture_end_calls(&w); /* cancels attempts that are still connecting */
    slow_listener_close(&slow_listener);
}

static void a_connect_timeout_after_the_hedge_delay_is_retried(void **state)
{
    struct fixture w;
    struct live_blackhole port;
    live_blackhole_open(&port);
    fixture_begin_at(&w, port.url, 2);
    w.policy.connect_timeout_ns = 5 * HEDGE_DELAY_NS;
    call_start(&w);
    assert_true(live_multi_run(w.multi));
    assert_int_equal(w.call.done, 1);
    assert_int_equal(w.call.verdict.reason, BIDE_REASON_ATTEMPTS_SPENT);
    assert_int_equal(w.call.result.attempts, 2);
    assert_int_equal(w.call.code, CURLE_OPERATION_TIMEDOUT);
    fixture_end_calls(&w);
    live_blackhole_close(&port);
}

/* ---- cancelling ---- */

static bool two_requests_seen(void *context)
{
    return chaos_requests(((struct fixture *)context)->server.chaos) == 2;
}

static void a_call_with_two_attempts_can_be_cancelled(void **state)
{
    struct fixture w;
    fixture_begin(&w, "/ delay=never", 3);
    call_start(&w);
    assert_true(live_multi_run_until(w.multi, two_requests_seen, &w));
    bide_multi_cancel(w.multi, w.call.active);
    assert_int_equal(w.call.done, 1);
    assert_int_equal(w.call.verdict.reason, BIDE_REASON_CANCELLED);
    assert_int_equal(w.call.code, CURLE_ABORTED_BY_CALLBACK);
    assert_int_equal(w.call.result.attempts, 2);
    assert_int_equal(bide_multi_running_get(w.multi), 0);
    fixture_end(&w);
}

static void a_multi_with_two_attempts_can_be_freed(void **state)
{
    struct fixture w;
    fixture_begin(&w, "/ delay=never", 3);
    call_start(&w);
    assert_true(live_multi_run_until(w.multi, two_requests_seen, &w));
    bide_multi_free(w.multi);
    w.multi = NULL;
    assert_int_equal(w.call.done, 1);
    assert_int_equal(w.call.verdict.reason, BIDE_REASON_CANCELLED);
    fixture_end(&w);
}

static size_t cancel_self(char *at, size_t size, size_t count, void *context)
{
    struct live_multi_call *call = context;
    bide_multi_cancel(call->multi, call->active);
    return live_sink_write(at, size, count, &call->sink);
}

static void a_call_whose_hedge_wins_can_be_cancelled_in_its_write_callback(void **state)
{
    struct fixture w;
    fixture_begin(&w, "/ delay=never | endless=body", 3);
    w.call.options.write = cancel_self;
    w.call.options.write_data = &w.call;
    call_run(&w);
    assert_int_equal(w.call.verdict.reason, BIDE_REASON_CANCELLED);
    assert_int_equal(w.call.code, CURLE_ABORTED_BY_CALLBACK);
    fixture_end(&w);
}

static void the_caller_s_handle_is_usable_after_a_hedge_won(void **state)
{
    struct fixture w;
    char *mine = NULL;
    fixture_begin(&w, "/ delay=never | 200 body=\"second\" | 200 body=\"plain\"", 3);
    curl_easy_setopt(w.call.easy, CURLOPT_PRIVATE, &w);
    call_start(&w);
    assert_true(live_multi_run(w.multi));
    assert_won(&w, 2, "second");
    curl_easy_getinfo(w.call.easy, CURLINFO_PRIVATE, &mine);
    assert_ptr_equal(mine, &w);
    live_sink_free(&w.call.sink);
    assert_int_equal(curl_easy_perform(w.call.easy), CURLE_OK);
    assert_string_equal(w.call.sink.at, "plain");
    fixture_end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hedge_wins_when_the_first_attempt_is_silent),
        cmocka_unit_test(the_first_attempt_wins_when_the_hedge_is_silent),
        cmocka_unit_test(a_fast_response_starts_no_hedge),
        cmocka_unit_test(two_hedges_can_run_beside_the_first_attempt),
        cmocka_unit_test(two_simultaneous_successes_are_one_success),
        cmocka_unit_test(a_failure_beside_a_success_changes_nothing),
        cmocka_unit_test(a_failed_hedge_leaves_the_first_attempt_running),
        cmocka_unit_test(a_failed_first_attempt_leaves_the_hedge_running),
        cmocka_unit_test(a_round_of_failures_is_followed_by_a_retry),
        cmocka_unit_test(the_last_failure_of_the_round_is_delivered),
        cmocka_unit_test(a_permanent_failure_cancels_the_other_attempt),
        cmocka_unit_test(two_resets_are_one_failure),
        cmocka_unit_test(a_winner_that_breaks_off_in_its_body_ends_the_call),
        cmocka_unit_test(a_winner_that_breaks_off_is_retried_if_the_sink_rewinds),
        cmocka_unit_test(a_winner_that_breaks_off_before_its_body_is_retried),
        cmocka_unit_test(an_unsafe_request_is_not_hedged),
        cmocka_unit_test(an_unsafe_method_is_not_hedged),
        cmocka_unit_test(a_call_without_a_sink_is_not_hedged),
        cmocka_unit_test(a_stream_is_not_hedged),
        cmocka_unit_test(an_unknown_body_is_not_hedged),
        cmocka_unit_test(an_empty_budget_refuses_hedges),
        cmocka_unit_test(a_keyed_request_is_hedged_with_the_same_key_and_body),
        cmocka_unit_test(a_file_body_is_hedged_and_sent_completely_by_both_attempts),
        cmocka_unit_test(an_unsafe_request_with_a_slow_connect_is_sent_once),
        cmocka_unit_test(a_safe_request_with_a_slow_connect_succeeds),
        cmocka_unit_test(a_connect_timeout_after_the_hedge_delay_is_retried),
        cmocka_unit_test(a_call_with_two_attempts_can_be_cancelled),
        cmocka_unit_test(a_multi_with_two_attempts_can_be_freed),
        cmocka_unit_test(a_call_whose_hedge_wins_can_be_cancelled_in_its_write_callback),
        cmocka_unit_test(the_caller_s_handle_is_usable_after_a_hedge_won),
    };
    curl_global_init(CURL_GLOBAL_DEFAULT);
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    curl_global_cleanup();
    return failures;
}
