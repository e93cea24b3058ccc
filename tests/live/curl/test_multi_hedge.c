/* test_multi_hedge.c - hedged attempts in a multi: one answer reaches the sink, whole; losers are cut; all of them pay;
 * and what must not run twice is not hedged. */
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

#define DELAY (20 * BIDE_MS) /* of a hedge */

struct world {
    struct live_server server;
    struct bide_multi *multi;
    struct bide_policy policy;
    struct bide_target target;
    struct live_call call;
};

/* Tokens that nothing but retries and hedges changes. */
static void count_tokens(struct bide_target *target, uint32_t capacity_milli)
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

static int64_t tokens_spent(const struct world *w)
{
    return 10 - bide_budget_left_milli(&w->target, bide_now()) / 1000;
}

/* A call that may be hedged, if it has not other options before it is started. */
static void begin_at(struct world *w, const char *url, uint32_t attempts)
{
    w->multi = live_multi();
    w->policy = live_policy(attempts);
    w->policy.hedges_max = 1;
    w->policy.hedge_delay_ns = DELAY;
    assert_int_equal(bide_policy_check(&w->policy, NULL), BIDE_OK);
    count_tokens(&w->target, 10000);
    live_call_init(&w->call, url, &w->policy);
}

static void begin(struct world *w, const char *script, uint32_t attempts)
{
    live_serve(&w->server, script);
    begin_at(w, live_url(&w->server, "/"), attempts);
}

static void start(struct world *w)
{
    live_call_start(&w->call, w->multi, &w->target);
    assert_int_equal(w->call.ok, BIDE_OK);
}

/* Starts it, waits until it is done, and stops the server, so that it can be asked what it saw. */
static void run(struct world *w)
{
    start(w);
    assert_true(live_run(w->multi));
    live_stop(&w->server);
    assert_int_equal(w->call.done, 1);
}

static void end_calls(struct world *w)
{
    bide_multi_free(w->multi);
    live_call_free(&w->call);
}

static void end(struct world *w)
{
    end_calls(w);
    live_free(&w->server);
}

static void assert_won(const struct world *w, uint32_t attempt, const char *body)
{
    assert_int_equal(w->call.code, CURLE_OK);
    assert_int_equal(w->call.verdict.action, BIDE_DONE);
    assert_int_equal(w->call.verdict.attempt, attempt);
    assert_int_equal(w->call.result.status, 200);
    assert_int_equal(w->call.answered, 200);
    assert_string_equal(w->call.sink.at, body);
}

/* ---- a stage: each connection asks once, and is answered when the test says so ---- */

#define RESET ""

struct stage {
    struct live_tcp *server;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    const char *answer[4]; /* by connection; NULL: not yet */
    unsigned asked, answered;
    bool over;
};

static void change(struct stage *stage, unsigned *count)
{
    pthread_mutex_lock(&stage->lock);
    ++*count;
    pthread_cond_broadcast(&stage->changed);
    pthread_mutex_unlock(&stage->lock);
}

static const char *cue(struct stage *stage, unsigned number)
{
    pthread_mutex_lock(&stage->lock);
    while (!stage->answer[number - 1] && !stage->over)
        pthread_cond_wait(&stage->changed, &stage->lock);
    const char *answer = stage->answer[number - 1];
    pthread_mutex_unlock(&stage->lock);
    return answer;
}

static void play(void *context, int fd, unsigned number)
{
    struct stage *stage = context;
    char text[4096];
    if (!live_tcp_read_head(fd, text, sizeof text))
        return;
    change(stage, &stage->asked);
    const char *answer = cue(stage, number);
    if (!answer || strcmp(answer, RESET) == 0)
        live_tcp_reset(fd);
    else
        live_tcp_write(fd, answer, strlen(answer));
    change(stage, &stage->answered);
}

static void stage_begin(struct stage *stage, struct world *w, uint32_t attempts)
{
    char url[64];
    *stage = (struct stage){.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    stage->server = live_tcp_new(play, stage);
    snprintf(url, sizeof url, "http://127.0.0.1:%u/", live_tcp_port(stage->server));
    begin_at(w, url, attempts);
    start(w);
}

static void stage_end(struct stage *stage, struct world *w)
{
    end_calls(w);
    pthread_mutex_lock(&stage->lock);
    stage->over = true;
    pthread_cond_broadcast(&stage->changed);
    pthread_mutex_unlock(&stage->lock);
    live_tcp_free(stage->server);
}

/* Answers connection `number`, from 1. */
static void answer(struct stage *stage, unsigned number, const char *text)
{
    pthread_mutex_lock(&stage->lock);
    stage->answer[number - 1] = text;
    pthread_cond_broadcast(&stage->changed);
    pthread_mutex_unlock(&stage->lock);
}

static bool two_asked(void *context)
{
    struct stage *stage = context;
    pthread_mutex_lock(&stage->lock);
    bool both = stage->asked >= 2;
    pthread_mutex_unlock(&stage->lock);
    return both;
}

static void wait_until_answered(struct stage *stage, unsigned count)
{
    pthread_mutex_lock(&stage->lock);
    while (stage->answered < count)
        pthread_cond_wait(&stage->changed, &stage->lock);
    pthread_mutex_unlock(&stage->lock);
}

static bool first_judged(void *context)
{
    return ((struct world *)context)->call.result.attempt[0].time_ns > 0;
}

static bool second_judged(void *context)
{
    return ((struct world *)context)->call.result.attempt[1].time_ns > 0;
}

#define HEAD(status, length) "HTTP/1.1 " status "\r\nConnection: close\r\nContent-Length: " length "\r\n\r\n"

static const char first[] = HEAD("200 OK", "5") "first", second[] = HEAD("200 OK", "6") "second",
                  third[] = HEAD("200 OK", "5") "third", bad[] = HEAD("503 Bad", "3") "bad",
                  worse[] = HEAD("502 Worse", "5") "worse", created[] = HEAD("201 Created", "7") "created";

/* ---- who wins ---- */

static void a_hedge_wins_when_the_first_attempt_is_silent(void **state)
{
    struct world w;
    begin(&w, "/ delay=never | 200 body=\"second\"", 3);
    run(&w);
    assert_won(&w, 2, "second");
    assert_true(w.call.by_copy);
    assert_int_equal(w.call.result.attempts, 2);
    assert_int_equal(tokens_spent(&w), 1);
    assert_int_equal(w.server.count, 2);
    assert_true(w.server.seen[1].at_ns - w.server.seen[0].at_ns < 60 * BIDE_S);
    assert_string_equal(w.server.seen[0].result, "left");
    assert_string_equal(w.server.seen[1].result, "answered");
    end(&w);
}

static void the_first_attempt_wins_when_the_hedge_is_silent(void **state)
{
    struct world w;
    struct stage stage;
    stage_begin(&stage, &w, 3);
    assert_true(live_run_until(w.multi, two_asked, &stage));
    answer(&stage, 1, first);
    assert_true(live_run(w.multi));
    assert_won(&w, 1, "first");
    assert_false(w.call.by_copy);
    assert_int_equal(w.call.result.attempts, 2);
    assert_int_equal(tokens_spent(&w), 1);
    stage_end(&stage, &w);
}

static void two_that_succeed_at_once_are_one_success(void **state)
{
    struct world w;
    struct stage stage;
    stage_begin(&stage, &w, 2);
    assert_true(live_run_until(w.multi, two_asked, &stage));
    answer(&stage, 1, first);
    answer(&stage, 2, created);
    wait_until_answered(&stage, 2); /* both are here before either is looked at */
    assert_true(live_run(w.multi));
    assert_int_equal(w.call.done, 1);
    assert_int_equal(w.call.code, CURLE_OK);
    assert_int_equal(w.call.verdict.action, BIDE_DONE);
    assert_int_equal(w.call.result.verdict.reason, BIDE_REASON_SUCCEEDED);
    bool by_first = w.call.verdict.attempt == 1;
    assert_int_equal(w.call.result.status, by_first ? 200 : 201);
    assert_int_equal(w.call.answered, by_first ? 200 : 201);
    assert_string_equal(w.call.sink.at, by_first ? "first" : "created");
    assert_int_equal(tokens_spent(&w), 1);
    stage_end(&stage, &w);
}

static void one_that_fails_as_the_other_succeeds_changes_nothing(void **state)
{
    struct world w;
    for (unsigned good = 1; good <= 2; good++) {
        struct stage stage;
        stage_begin(&stage, &w, 2);
        assert_true(live_run_until(w.multi, two_asked, &stage));
        answer(&stage, good, first);
        answer(&stage, 3 - good, bad);
        wait_until_answered(&stage, 2);
        assert_true(live_run(w.multi));
        assert_int_equal(w.call.done, 1);
        assert_won(&w, good, "first");
        stage_end(&stage, &w);
    }
}

static void a_quick_answer_needs_no_hedge(void **state)
{
    struct world w;
    begin(&w, "/ 200 body=\"quick\"", 3);
    w.policy.hedge_delay_ns = 50 * BIDE_S;
    run(&w);
    assert_won(&w, 1, "quick");
    assert_int_equal(w.server.count, 1);
    assert_int_equal(tokens_spent(&w), 0);
    end(&w);
}

static void two_hedges_may_run_beside_the_first(void **state)
{
    struct world w;
    begin(&w, "/ delay=never x2 | 200 body=\"third\"", 3);
    w.policy.hedges_max = 2;
    run(&w);
    assert_won(&w, 3, "third");
    assert_true(w.call.by_copy);
    assert_int_equal(w.server.count, 3);
    assert_int_equal(tokens_spent(&w), 2);
    end(&w);
}

/* ---- failures ---- */

static void a_hedge_that_fails_leaves_the_first_running(void **state)
{
    struct world w;
    struct stage stage;
    stage_begin(&stage, &w, 5);
    assert_true(live_run_until(w.multi, two_asked, &stage));
    answer(&stage, 2, bad);
    assert_true(live_run_until(w.multi, second_judged, &w));
    assert_int_equal(w.call.done, 0);
    answer(&stage, 1, first);
    assert_true(live_run(w.multi));
    assert_won(&w, 1, "first");
    assert_int_equal(w.call.result.attempts, 2);
    assert_int_equal(w.call.result.attempt[1].status, 503);
    stage_end(&stage, &w);
}

static void a_first_attempt_that_fails_leaves_the_hedge_running(void **state)
{
    struct world w;
    struct stage stage;
    stage_begin(&stage, &w, 5);
    assert_true(live_run_until(w.multi, two_asked, &stage));
    answer(&stage, 1, bad);
    assert_true(live_run_until(w.multi, first_judged, &w));
    assert_int_equal(w.call.done, 0);
    answer(&stage, 2, second);
    assert_true(live_run(w.multi));
    assert_won(&w, 2, "second");
    assert_true(w.call.by_copy);
    assert_int_equal(w.call.result.attempt[0].status, 503);
    assert_int_equal(w.call.result.attempts, 2);
    stage_end(&stage, &w);
}

static void after_a_round_in_which_all_failed_comes_another(void **state)
{
    struct world w;
    struct stage stage;
    stage_begin(&stage, &w, 3);
    assert_true(live_run_until(w.multi, two_asked, &stage));
    answer(&stage, 3, third);
    answer(&stage, 1, bad);
    assert_true(live_run_until(w.multi, first_judged, &w));
    answer(&stage, 2, worse);
    assert_true(live_run(w.multi));
    assert_won(&w, 3, "third");
    assert_int_equal(w.call.result.attempts, 3);
    assert_int_equal(tokens_spent(&w), 2);
    stage_end(&stage, &w);
}

static void when_all_have_failed_the_last_failure_is_the_answer(void **state)
{
    struct world w;
    struct stage stage;
    stage_begin(&stage, &w, 2);
    assert_true(live_run_until(w.multi, two_asked, &stage));
    answer(&stage, 1, bad);
    assert_true(live_run_until(w.multi, first_judged, &w));
    answer(&stage, 2, worse);
    assert_true(live_run(w.multi));
    assert_int_equal(w.call.done, 1);
    assert_int_equal(w.call.code, CURLE_OK);
    assert_int_equal(w.call.verdict.reason, BIDE_REASON_ATTEMPTS_SPENT);
    assert_int_equal(w.call.result.status, 502);
    assert_int_equal(w.call.answered, 502);
    assert_string_equal(w.call.sink.at, "worse");
    stage_end(&stage, &w);
}

static void both_cut_without_an_answer_are_one_failure(void **state)
{
    struct world w;
    struct stage stage;
    stage_begin(&stage, &w, 2);
    assert_true(live_run_until(w.multi, two_asked, &stage));
    answer(&stage, 1, RESET);
    answer(&stage, 2, RESET);
    wait_until_answered(&stage, 2);
    assert_true(live_run(w.multi));
    assert_int_equal(w.call.done, 1);
    assert_int_not_equal(w.call.code, CURLE_OK);
    assert_int_equal(w.call.verdict.reason, BIDE_REASON_ATTEMPTS_SPENT);
    assert_int_equal(w.call.result.status, 0);
    assert_int_equal(w.call.sink.length, 0);
    stage_end(&stage, &w);
}

static void a_permanent_failure_of_one_ends_the_other(void **state)
{
    struct world w;
    begin(&w, "/ delay=never | 404 body=\"nowhere\"", 5);
    run(&w);
    assert_int_equal(w.call.code, CURLE_OK);
    assert_int_equal(w.call.verdict.reason, BIDE_REASON_PERMANENT);
    assert_int_equal(w.call.result.status, 404);
    assert_true(w.call.by_copy);
    assert_string_equal(w.call.sink.at, "nowhere");
    end(&w);
}

/* ---- a winner that breaks ---- */

static void a_winner_that_breaks_in_its_body_ends_the_call(void **state)
{
    struct world w;
    begin(&w, "/ delay=never | bytes=100000 reset=half | 200", 5);
    run(&w);
    assert_int_not_equal(w.call.code, CURLE_OK);
    assert_int_equal(w.call.verdict.reason, BIDE_REASON_BODY_DELIVERED);
    assert_int_equal(w.server.count, 2);
    end(&w);
}

static void a_winner_that_breaks_is_tried_anew_if_the_sink_can_be_rewound(void **state)
{
    struct world w;
    begin(&w, "/ delay=never | bytes=100000 reset=half | 200 body=\"anew\"", 5);
    w.call.options.rewind = live_rewind;
    run(&w);
    assert_won(&w, 3, "anew");
    assert_false(w.call.by_copy);
    assert_int_equal(w.call.sink.rewinds, 1);
    end(&w);
}

static void a_winner_that_breaks_before_its_body_is_tried_anew(void **state)
{
    struct world w;
    begin(&w, "/ delay=never | bytes=1000 reset=headers | 200 body=\"anew\"", 5);
    run(&w);
    assert_won(&w, 3, "anew");
    assert_int_equal(w.server.count, 3);
    end(&w);
}

/* ---- what is not hedged ---- */

static void assert_not_hedged(struct world *w, const char *body)
{
    run(w);
    assert_won(w, 1, body);
    assert_int_equal(w->server.count, 1);
    assert_int_equal(tokens_spent(w), 0);
    end(w);
}

static const char slow[] = "/ delay=200ms body=\"slow\" | 200 body=\"hedged\"";

static void an_unsafe_request_is_not_hedged(void **state)
{
    struct world w;
    begin(&w, slow, 5);
    live_call_post(&w.call, "amount=1");
    w.call.options.safety = BIDE_CURL_UNSAFE;
    assert_not_hedged(&w, "slow");
}

static void a_method_that_turns_out_unsafe_is_not_hedged(void **state)
{
    struct world w;
    begin(&w, slow, 5);
    live_call_post(&w.call, "amount=1");
    assert_not_hedged(&w, "slow");
}

static void without_a_sink_nothing_is_hedged(void **state)
{
    struct world w;
    begin(&w, slow, 5);
    curl_easy_setopt(w.call.easy, CURLOPT_WRITEFUNCTION, live_write);
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
    struct world w;
    int left = 3;
    begin(&w, slow, 5);
    curl_easy_setopt(w.call.easy, CURLOPT_UPLOAD, 1L);
    w.call.options.body = (struct bide_curl_body){.kind = BIDE_CURL_BODY_STREAM,
                                                  .length = 3,
                                                  .read = read_x,
                                                  .read_data = &left,
                                                  .seek = seek_x,
                                                  .seek_data = &left};
    assert_not_hedged(&w, "slow");
}

static void a_body_that_only_the_handle_knows_is_not_hedged(void **state)
{
    struct world w;
    begin(&w, slow, 5);
    curl_easy_setopt(w.call.easy, CURLOPT_POSTFIELDS, "x=1");
    w.call.options.safety = BIDE_CURL_IDEMPOTENT;
    assert_not_hedged(&w, "slow");
}

static void an_empty_budget_pays_for_no_hedge(void **state)
{
    struct world w;
    begin(&w, slow, 5);
    count_tokens(&w.target, 0);
    run(&w);
    assert_won(&w, 1, "slow");
    assert_int_equal(w.server.count, 1);
    assert_true(bide_target_refused(&w.target, BIDE_GATE_BUDGET) > 0);
    end(&w);
}

/* ---- what is ---- */

static void a_keyed_request_is_hedged_with_the_same_key_and_body(void **state)
{
    struct world w;
    begin(&w, "/ delay=never | 200 body=\"second\"", 3);
    live_call_post(&w.call, "amount=1");
    w.call.options.inject = BIDE_CURL_INJECT_KEY | BIDE_CURL_INJECT_ATTEMPT;
    run(&w);
    assert_won(&w, 2, "second");
    assert_int_equal(w.server.count, 2);
    assert_string_equal(w.server.seen[0].key, w.server.seen[1].key);
    assert_int_equal(w.server.seen[0].body_hash, bide_hash("amount=1", 8));
    assert_int_equal(w.server.seen[1].body_hash, bide_hash("amount=1", 8));
    assert_true(strtol(w.server.seen[0].attempt, NULL, 10) == 1);
    assert_true(strtol(w.server.seen[1].attempt, NULL, 10) == 2);
    end(&w);
}

static void a_file_is_hedged_and_both_read_all_of_it(void **state)
{
    struct world w;
    char name[] = "/tmp/bide-hedge-XXXXXX", text[50000];
    int fd = mkstemp(name);
    assert_true(fd >= 0);
    unlink(name);
    memset(text, 'f', sizeof text);
    assert_int_equal(write(fd, text, sizeof text), sizeof text);
    begin(&w, "/ delay=never | 200 body=\"second\"", 3);
    curl_easy_setopt(w.call.easy, CURLOPT_UPLOAD, 1L); /* PUT */
    w.call.options.body = (struct bide_curl_body){.kind = BIDE_CURL_BODY_FILE, .fd = fd, .length = sizeof text};
    run(&w);
    assert_won(&w, 2, "second");
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(w.server.seen[i].body_hash, bide_hash(text, sizeof text));
    close(fd);
    end(&w);
}

/* ---- a slow connect: the method is not known when the hedge is due ---- */

/* Accepts what comes, and answers what asks. */
struct late {
    struct live_void port;
    pthread_t thread;
    unsigned requests;
};

static void *accept_at_last(void *context)
{
    static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nlate";
    struct late *late = context;
    char head[4096];
    for (int fd; (fd = accept(late->port.fd[0], NULL, NULL)) >= 0; close(fd)) {
        if (!live_tcp_read_head(fd, head, sizeof head))
            continue;
        late->requests++;
        live_tcp_write(fd, answer, sizeof answer - 1);
    }
    return NULL;
}

/* Those that fill the queue leave; the listener accepts. The client's next SYN comes after a second. */
static void late_open(struct late *late)
{
    while (late->port.count > 1)
        close(late->port.fd[--late->port.count]);
    assert_int_equal(pthread_create(&late->thread, NULL, accept_at_last, late), 0);
}

static void late_close(struct late *late)
{
    shutdown(late->port.fd[0], SHUT_RDWR);
    pthread_join(late->thread, NULL);
    live_void_close(&late->port);
}

static void poll_past_the_hedge(struct world *w)
{
    int64_t until_ns = bide_now() + 3 * DELAY;
    while (bide_now() < until_ns)
        assert_int_equal(bide_multi_poll(w->multi, until_ns), 1);
}

static void an_unsafe_request_whose_connect_is_slow_is_sent_once(void **state)
{
    struct world w;
    struct late late = {0};
    live_void_open(&late.port);
    begin_at(&w, late.port.url, 5);
    live_call_post(&w.call, "amount=1");
    start(&w);
    poll_past_the_hedge(&w);
    late_open(&late);
    assert_true(live_run(w.multi));
    assert_won(&w, 1, "late");
    assert_int_equal(tokens_spent(&w), 0);
    late_close(&late);
    assert_int_equal(late.requests, 1);
    end_calls(&w);
}

static void a_safe_request_whose_connect_is_slow_is_answered(void **state)
{
    struct world w;
    struct late late = {0};
    live_void_open(&late.port);
    begin_at(&w, late.port.url, 5);
    w.call.options.safety = BIDE_CURL_SAFE;
    start(&w);
    poll_past_the_hedge(&w);
    late_open(&late);
    assert_true(live_run(w.multi));
    assert_int_equal(w.call.done, 1);
    assert_int_equal(w.call.verdict.action, BIDE_DONE);
    assert_string_equal(w.call.sink.at, "late");
    end_calls(&w); /* cuts whoever else is still connecting */
    late_close(&late);
}

static void a_connect_that_fails_after_the_hedge_was_due_is_retried(void **state)
{
    struct world w;
    struct live_void port;
    live_void_open(&port);
    begin_at(&w, port.url, 2);
    w.policy.connect_timeout_ns = 5 * DELAY;
    start(&w);
    assert_true(live_run(w.multi));
    assert_int_equal(w.call.done, 1);
    assert_int_equal(w.call.verdict.reason, BIDE_REASON_ATTEMPTS_SPENT);
    assert_int_equal(w.call.result.attempts, 2);
    assert_int_equal(w.call.code, CURLE_OPERATION_TIMEDOUT);
    end_calls(&w);
    live_void_close(&port);
}

/* ---- cancelled ---- */

static bool two_came(void *context)
{
    return chaos_requests(((struct world *)context)->server.chaos) == 2;
}

static void a_call_with_two_attempts_can_be_cancelled(void **state)
{
    struct world w;
    begin(&w, "/ delay=never", 3);
    start(&w);
    assert_true(live_run_until(w.multi, two_came, &w));
    bide_multi_cancel(w.multi, w.call.transfer);
    assert_int_equal(w.call.done, 1);
    assert_int_equal(w.call.verdict.reason, BIDE_REASON_CANCELLED);
    assert_int_equal(w.call.code, CURLE_ABORTED_BY_CALLBACK);
    assert_int_equal(w.call.result.attempts, 2);
    assert_int_equal(bide_multi_running(w.multi), 0);
    end(&w);
}

static void a_multi_with_two_attempts_can_be_freed(void **state)
{
    struct world w;
    begin(&w, "/ delay=never", 3);
    start(&w);
    assert_true(live_run_until(w.multi, two_came, &w));
    bide_multi_free(w.multi);
    w.multi = NULL;
    assert_int_equal(w.call.done, 1);
    assert_int_equal(w.call.verdict.reason, BIDE_REASON_CANCELLED);
    end(&w);
}

static size_t cancel_self(char *at, size_t size, size_t count, void *context)
{
    struct live_call *call = context;
    bide_multi_cancel(call->multi, call->transfer);
    return live_write(at, size, count, &call->sink);
}

static void a_call_whose_hedge_wins_can_be_cancelled_in_its_write_callback(void **state)
{
    struct world w;
    begin(&w, "/ delay=never | endless=body", 3);
    w.call.options.write = cancel_self;
    w.call.options.write_data = &w.call;
    run(&w);
    assert_int_equal(w.call.verdict.reason, BIDE_REASON_CANCELLED);
    assert_int_equal(w.call.code, CURLE_ABORTED_BY_CALLBACK);
    end(&w);
}

static void the_owner_s_handle_is_whole_after_a_hedge_won(void **state)
{
    struct world w;
    char *mine = NULL;
    begin(&w, "/ delay=never | 200 body=\"second\" | 200 body=\"plain\"", 3);
    curl_easy_setopt(w.call.easy, CURLOPT_PRIVATE, &w);
    start(&w);
    assert_true(live_run(w.multi));
    assert_won(&w, 2, "second");
    curl_easy_getinfo(w.call.easy, CURLINFO_PRIVATE, &mine);
    assert_ptr_equal(mine, &w);
    live_sink_free(&w.call.sink);
    assert_int_equal(curl_easy_perform(w.call.easy), CURLE_OK);
    assert_string_equal(w.call.sink.at, "plain");
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hedge_wins_when_the_first_attempt_is_silent),
        cmocka_unit_test(the_first_attempt_wins_when_the_hedge_is_silent),
        cmocka_unit_test(a_quick_answer_needs_no_hedge),
        cmocka_unit_test(two_hedges_may_run_beside_the_first),
        cmocka_unit_test(two_that_succeed_at_once_are_one_success),
        cmocka_unit_test(one_that_fails_as_the_other_succeeds_changes_nothing),
        cmocka_unit_test(a_hedge_that_fails_leaves_the_first_running),
        cmocka_unit_test(a_first_attempt_that_fails_leaves_the_hedge_running),
        cmocka_unit_test(after_a_round_in_which_all_failed_comes_another),
        cmocka_unit_test(when_all_have_failed_the_last_failure_is_the_answer),
        cmocka_unit_test(a_permanent_failure_of_one_ends_the_other),
        cmocka_unit_test(both_cut_without_an_answer_are_one_failure),
        cmocka_unit_test(a_winner_that_breaks_in_its_body_ends_the_call),
        cmocka_unit_test(a_winner_that_breaks_is_tried_anew_if_the_sink_can_be_rewound),
        cmocka_unit_test(a_winner_that_breaks_before_its_body_is_tried_anew),
        cmocka_unit_test(an_unsafe_request_is_not_hedged),
        cmocka_unit_test(a_method_that_turns_out_unsafe_is_not_hedged),
        cmocka_unit_test(without_a_sink_nothing_is_hedged),
        cmocka_unit_test(a_stream_is_not_hedged),
        cmocka_unit_test(a_body_that_only_the_handle_knows_is_not_hedged),
        cmocka_unit_test(an_empty_budget_pays_for_no_hedge),
        cmocka_unit_test(a_keyed_request_is_hedged_with_the_same_key_and_body),
        cmocka_unit_test(a_file_is_hedged_and_both_read_all_of_it),
        cmocka_unit_test(an_unsafe_request_whose_connect_is_slow_is_sent_once),
        cmocka_unit_test(a_safe_request_whose_connect_is_slow_is_answered),
        cmocka_unit_test(a_connect_that_fails_after_the_hedge_was_due_is_retried),
        cmocka_unit_test(a_call_with_two_attempts_can_be_cancelled),
        cmocka_unit_test(a_multi_with_two_attempts_can_be_freed),
        cmocka_unit_test(a_call_whose_hedge_wins_can_be_cancelled_in_its_write_callback),
        cmocka_unit_test(the_owner_s_handle_is_whole_after_a_hedge_won),
    };
    curl_global_init(CURL_GLOBAL_DEFAULT);
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    curl_global_cleanup();
    return failures;
}
