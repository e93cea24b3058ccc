/* test_multi_end.c - what a review of the multi found wrong once: hedges that end together, what done may do, what a
 * copy of a handle takes along, and what is told of a call that ends in a wait. */
#define _GNU_SOURCE
#include "live_multi.h"
#include "live_tcp.h"

#include <bide/clock.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- malloc, of which one call can be made to fail ---- */

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || __has_feature(address_sanitizer) ||               \
    __has_feature(thread_sanitizer)
#define REAL_MALLOC __interceptor_malloc
#else
#define REAL_MALLOC __libc_malloc
#endif

#ifdef __clang__ /* no_sanitize("thread") still marks entry and exit */
#define BARE __attribute__((disable_sanitizer_instrumentation))
#else
#define BARE __attribute__((no_sanitize("address", "thread", "undefined")))
#endif

void *REAL_MALLOC(size_t size);

static _Thread_local bool next_malloc_fails;

/* It is called before the sanitizers are ready. */
BARE void *malloc(size_t size)
{
    if (!next_malloc_fails)
        return REAL_MALLOC(size);
    next_malloc_fails = false;
    errno = ENOMEM;
    return NULL;
}

/* ---- a stage: each connection asks once, and the test itself writes the answer ---- */

#define PLACES 4u

struct stage {
    struct live_tcp *server;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int fd[PLACES]; /* by connection, once it has asked */
    bool ended[PLACES];
    unsigned asked;
};

static void listen_and_stay(void *context, int fd, unsigned number)
{
    struct stage *s = context;
    char head[4096];
    if (!live_tcp_read_head(fd, head, sizeof head) || number > PLACES)
        return;
    pthread_mutex_lock(&s->lock);
    s->fd[number - 1] = fd;
    s->asked++;
    while (!s->ended[number - 1])
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

static void say(const struct stage *s, unsigned number, const char *text)
{
    assert_true(live_tcp_write(s->fd[number - 1], text, strlen(text)));
}

static void leave(struct stage *s, unsigned number)
{
    pthread_mutex_lock(&s->lock);
    s->ended[number - 1] = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static void reset(struct stage *s, unsigned number)
{
    live_tcp_reset(s->fd[number - 1]);
    leave(s, number);
}

static bool two_asked(void *context)
{
    struct stage *s = context;
    pthread_mutex_lock(&s->lock);
    bool both = s->asked >= 2;
    pthread_mutex_unlock(&s->lock);
    return both;
}

/* ---- a call that may be hedged ---- */

struct world {
    struct live_server server; /* one of the two */
    struct stage stage;
    struct bide_multi *multi;
    struct bide_policy policy;
    struct bide_target target;
    struct live_call call;
};

static void prepare(struct world *w, const char *url)
{
    w->multi = live_multi();
    w->policy = live_policy(4);
    w->policy.hedges_max = 1;
    w->policy.hedge_delay_ns = 5 * BIDE_MS;
    live_open_target(&w->target);
    live_call_init(&w->call, url, &w->policy);
}

static void begin(struct world *w, const char *script)
{
    *w = (struct world){0};
    live_serve(&w->server, script);
    prepare(w, live_url(&w->server, "/"));
}

static void begin_on_stage(struct world *w)
{
    char url[64];
    *w = (struct world){.stage = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER}};
    w->stage.server = live_tcp_new(listen_and_stay, &w->stage);
    snprintf(url, sizeof url, "http://127.0.0.1:%u/", live_tcp_port(w->stage.server));
    prepare(w, url);
}

static void start(struct world *w)
{
    live_call_start(&w->call, w->multi, &w->target);
    assert_int_equal(w->call.ok, BIDE_OK);
}

static void start_both(struct world *w)
{
    start(w);
    assert_true(live_run_until(w->multi, two_asked, &w->stage));
}

/* To its end; then the server can be asked what it saw. */
static void run(struct world *w)
{
    assert_true(live_run(w->multi));
    assert_int_equal(w->call.done, 1);
    if (w->server.chaos)
        live_stop(&w->server);
}

static void end(struct world *w)
{
    bide_multi_free(w->multi);
    live_call_free(&w->call);
    for (unsigned number = 1; w->stage.server && number <= PLACES; number++)
        leave(&w->stage, number);
    live_tcp_free(w->stage.server);
    if (w->server.chaos)
        live_free(&w->server);
}

static void expect_end(const struct world *w, CURLcode code, enum bide_action action, enum bide_reason reason)
{
    assert_string_equal(bide_reason_label(w->call.verdict.reason), bide_reason_label(reason));
    assert_int_equal(w->call.verdict.action, action);
    assert_int_equal(w->call.code, code);
}

static bool sink_has_some(void *context)
{
    return ((struct world *)context)->call.sink.length > 0;
}

static bool first_judged(void *context)
{
    return ((struct world *)context)->call.result.attempt[0].time_ns > 0;
}

static bool hedge_judged(void *context)
{
    return ((struct world *)context)->call.result.attempt[1].time_ns > 0;
}

/* When the call decides to wait, the breaker opens: so it gives up when the wait ends. */
static void open_when_waiting(void *context, const struct bide_event *event)
{
    struct world *w = context;
    if (event->verdict->action == BIDE_WAIT)
        bide_breaker_hold(&w->target, BIDE_HOLD_OPEN);
}

static void give_up_in_the_wait(struct world *w)
{
    w->call.options.event = open_when_waiting;
    w->call.options.context = w;
}

/* ---- two answers at once ---- */

/* Both heads and halves are here before either is looked at. */
static void two_answers_that_begin_at_once_are_one_success(void **state)
{
    static const char half[] = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n01234";
    for (int i = 0; i < 5; i++) {
        struct world w;
        begin_on_stage(&w);
        start_both(&w);
        say(&w.stage, 1, half);
        say(&w.stage, 2, half);
        assert_true(live_run_until(w.multi, sink_has_some, &w));
        say(&w.stage, 1, "56789");
        say(&w.stage, 2, "56789");
        run(&w);
        expect_end(&w, CURLE_OK, BIDE_DONE, BIDE_REASON_SUCCEEDED);
        assert_string_equal(w.call.sink.at, "0123456789");
        assert_int_equal(w.call.result.status, 200);
        assert_int_equal(w.call.result.attempt[w.call.verdict.attempt - 1].status, 200);
        assert_int_equal(w.call.result.attempt[w.call.verdict.attempt - 1].kind, BIDE_KIND_OK);
        end(&w);
    }
}

/* The other one breaks in the same moment: that is nothing against the bytes of the winner. */
static void one_that_breaks_beside_an_answer_changes_nothing(void **state)
{
    for (unsigned good = 1; good <= 2; good++) {
        struct world w;
        begin_on_stage(&w);
        start_both(&w);
        say(&w.stage, good, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n01234");
        reset(&w.stage, 3 - good);
        assert_true(live_run_until(w.multi, sink_has_some, &w));
        say(&w.stage, good, "56789");
        run(&w);
        expect_end(&w, CURLE_OK, BIDE_DONE, BIDE_REASON_SUCCEEDED);
        assert_string_equal(w.call.sink.at, "0123456789");
        end(&w);
    }
}

/* ---- what done may do ---- */

/* All that a call was given, in one piece of memory. */
struct belongings {
    struct bide_curl_options options;
    struct bide_curl_result result;
    struct live_sink sink, heads;
    char error[CURL_ERROR_SIZE];
    size_t traced;
    unsigned *done;
};

static int trace(CURL *easy, curl_infotype type, char *at, size_t length, void *context)
{
    ((struct belongings *)context)->traced += length;
    return 0;
}

static struct belongings *belongings_new(CURL *easy, const struct bide_policy *policy, unsigned *done)
{
    struct belongings *b = calloc(1, sizeof *b);
    assert_non_null(b);
    b->done = done;
    bide_curl_options_init(&b->options);
    b->options.policy = policy;
    b->options.write = b->options.header = live_write;
    b->options.write_data = &b->sink;
    b->options.header_data = &b->heads;
    b->options.headers = curl_slist_append(NULL, "X-Token: secret");
    b->options.inject = BIDE_CURL_INJECT_KEY;
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, b->error);
    curl_easy_setopt(easy, CURLOPT_DEBUGFUNCTION, trace);
    curl_easy_setopt(easy, CURLOPT_DEBUGDATA, b);
    curl_easy_setopt(easy, CURLOPT_VERBOSE, 1L);
    return b;
}

static void free_all(void *context, const struct bide_multi_end *end)
{
    struct belongings *b = context;
    assert_int_equal(end->code, CURLE_OK);
    assert_string_equal(b->sink.at, "fine");
    ++*b->done;
    curl_easy_cleanup(end->easy);
    curl_slist_free_all(b->options.headers);
    live_sink_free(&b->sink);
    live_sink_free(&b->heads);
    memset(b, 0x5a, sizeof *b);
    free(b);
}

/* Whoever reads there afterwards is seen by the address sanitizer. */
static void done_may_free_all_that_belongs_to_a_hedged_call(void **state)
{
    static const char *const script[] = {"/ delay=never | 200 body=fine", "/ 200 body=fine delay=50ms | delay=never"};
    for (size_t i = 0; i < 2; i++) {
        struct world w;
        unsigned done = 0;
        begin(&w, script[i]);
        CURL *easy = curl_easy_duphandle(w.call.easy);
        struct belongings *b = belongings_new(easy, &w.policy, &done);
        struct bide_multi_job job = {.easy = easy,
                                     .target = &w.target,
                                     .options = &b->options,
                                     .result = &b->result,
                                     .done = free_all,
                                     .context = b};
        assert_int_equal(bide_multi_start(w.multi, &job, NULL, NULL), BIDE_OK);
        assert_true(live_run(w.multi));
        assert_int_equal(done, 1);
        end(&w);
    }
}

#define MANY       50000u
#define STACK_MOST 4096u

struct list {
    struct bide_multi *multi;
    struct bide_multi_job job;
    uintptr_t low, high; /* of the stack, in done */
    unsigned done;
};

static void start_the_next(void *context, const struct bide_multi_end *end)
{
    struct list *l = context;
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    l->low = here < l->low ? here : l->low;
    l->high = here > l->high ? here : l->high;
    if (++l->done < MANY)
        assert_int_equal(bide_multi_start(l->multi, &l->job, NULL, NULL), BIDE_OK);
}

/* A list of jobs, each started by done of the one before, in an outage. */
static void calls_that_are_refused_at_once_do_not_pile_up_on_the_stack(void **state)
{
    struct world w;
    begin(&w, "");
    bide_breaker_hold(&w.target, BIDE_HOLD_OPEN);
    struct list l = {.multi = w.multi, .low = UINTPTR_MAX};
    l.job = (struct bide_multi_job){.easy = w.call.easy, .target = &w.target, .done = start_the_next, .context = &l};
    assert_int_equal(bide_multi_start(w.multi, &l.job, NULL, NULL), BIDE_OK);
    assert_int_equal(l.done, MANY);
    assert_int_equal(bide_multi_running(w.multi), 0);
    assert_true(l.high - l.low < STACK_MOST);
    live_stop(&w.server);
    assert_int_equal(w.server.count, 0);
    end(&w);
}

/* ---- what done must not do ---- */

static void poll_here(struct live_call *call)
{
    bide_multi_poll(call->multi, BIDE_NEVER);
}

static void drain_here(struct live_call *call)
{
    bide_multi_drain(call->multi, BIDE_NEVER);
}

static void act_here(struct live_call *call)
{
    bide_multi_action(call->multi, CURL_SOCKET_TIMEOUT, 0);
}

/* Beside a call that never ends, one that is refused: its done does it. */
static void misuse(void (*it)(struct live_call *))
{
    struct world w = {0};
    struct live_void nowhere;
    struct live_call other;
    live_void_open(&nowhere);
    prepare(&w, nowhere.url);
    start(&w);
    live_call_init(&other, nowhere.url, &w.policy);
    other.options.deadline_ns = 1;
    other.then = it;
    other.other = &other;
    live_call_start(&other, w.multi, &w.target);
    _exit(other.done == 1 && w.call.done == 0 ? 0 : 1);
}

/* With assertions it ends there; without them it does nothing. It never hangs, and never runs what is running. */
static void a_loop_inside_done_is_a_mistake_that_does_no_harm(void **state)
{
    static void (*const mistakes[])(struct live_call *) = {poll_here, drain_here, act_here};
    for (size_t i = 0; i < 3; i++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
            signal(SIGABRT, SIG_DFL);
            alarm(60);
            misuse(mistakes[i]);
        }
        int status = -1;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true((WIFEXITED(status) && WEXITSTATUS(status) == 0) ||
                    (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT));
    }
}

/* ---- copies ---- */

static void expect_cookie(const struct chaos_seen *seen, const char *text)
{
    struct bide_text value;
    assert_true(chaos_seen_header(seen, "Cookie", &value));
    assert_int_equal(value.length, strlen(text));
    assert_memory_equal(value.at, text, value.length);
}

/* The server says who it takes us for. */
static void log_in(struct world *w)
{
    curl_easy_setopt(w->call.easy, CURLOPT_COOKIEFILE, "");
    curl_easy_setopt(w->call.easy, CURLOPT_URL, live_url(&w->server, "/login"));
    curl_easy_setopt(w->call.easy, CURLOPT_NOBODY, 1L);
    assert_int_equal(curl_easy_perform(w->call.easy), CURLE_OK);
    curl_easy_setopt(w->call.easy, CURLOPT_HTTPGET, 1L);
    curl_easy_setopt(w->call.easy, CURLOPT_URL, live_url(&w->server, "/"));
}

static void a_hedge_sends_the_cookies_and_leaves_the_jar_alone(void **state)
{
    struct world w;
    char dir[] = "/tmp/bide-jar-XXXXXX", jar[64];
    assert_non_null(mkdtemp(dir));
    snprintf(jar, sizeof jar, "%s/jar", dir);
    begin(&w, "/login 200 header=\"Set-Cookie: session=42; Path=/\"\n"
              "/ delay=never | 200 header=\"Set-Cookie: who=copy\"");
    log_in(&w);
    curl_easy_setopt(w.call.easy, CURLOPT_COOKIEJAR, jar);
    start(&w);
    run(&w);
    assert_true(w.call.by_copy);
    expect_cookie(&w.server.seen[1], "session=42");
    expect_cookie(&w.server.seen[2], "session=42");
    assert_int_equal(access(jar, F_OK), -1); /* the copy is gone already */
    end(&w);
    assert_int_equal(access(jar, F_OK), 0);
    unlink(jar);
    rmdir(dir);
}

static void the_error_of_a_hedge_is_not_the_owner_s(void **state)
{
    struct world w;
    char error[CURL_ERROR_SIZE] = "";
    begin_on_stage(&w);
    curl_easy_setopt(w.call.easy, CURLOPT_ERRORBUFFER, error);
    start_both(&w);
    reset(&w.stage, 2);
    assert_true(live_run_until(w.multi, hedge_judged, &w));
    say(&w.stage, 1, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine");
    run(&w);
    expect_end(&w, CURLE_OK, BIDE_DONE, BIDE_REASON_SUCCEEDED);
    assert_string_equal(error, "");
    end(&w);
}

static bool never_asked(void *context, CURL *easy)
{
    fail_msg("there was no 401");
    return false;
}

/* Two attempts with the same credentials, one of which renews them: who is right? */
static void what_may_renew_its_credentials_is_not_hedged(void **state)
{
    struct world w;
    begin(&w, "/ 200 body=fine delay=100ms | 200 body=hedge");
    w.call.options.refresh = never_asked;
    start(&w);
    run(&w);
    expect_end(&w, CURLE_OK, BIDE_DONE, BIDE_REASON_SUCCEEDED);
    assert_int_equal(w.server.count, 1);
    assert_string_equal(w.call.sink.at, "fine");
    end(&w);
}

/* ---- a call that ends in a wait ---- */

/* The first is answered by 503, and its body still read when the second breaks: the second was the last. */
static void a_body_that_nobody_wants_does_not_change_the_code(void **state)
{
    struct world w;
    begin_on_stage(&w);
    w.policy.base_ns = w.policy.cap_ns = 300 * BIDE_MS; /* the rest of the body comes within */
    give_up_in_the_wait(&w);
    start_both(&w);
    say(&w.stage, 1, "HTTP/1.1 503 Down\r\nContent-Length: 6\r\n\r\nfir");
    assert_true(live_run_until(w.multi, first_judged, &w));
    reset(&w.stage, 2);
    assert_true(live_run_until(w.multi, hedge_judged, &w));
    say(&w.stage, 1, "st\n");
    run(&w);
    expect_end(&w, w.call.result.attempt[1].code, BIDE_GIVE_UP, BIDE_REASON_BREAKER_OPEN);
    assert_int_not_equal(w.call.code, CURLE_OK);
    assert_int_equal(w.call.result.status, 0);
    assert_int_equal(w.call.sink.length, 0);
    end(&w);
}

/* The owner's handle broke, the copy has the answer that turned out to be the last: it is the one to ask. */
static void an_answer_that_a_copy_kept_is_told_with_the_copy(void **state)
{
    struct world w;
    begin_on_stage(&w);
    give_up_in_the_wait(&w);
    start_both(&w);
    reset(&w.stage, 1);
    assert_true(live_run_until(w.multi, first_judged, &w));
    say(&w.stage, 2, "HTTP/1.1 503 Down\r\nContent-Length: 4\r\n\r\ndown");
    run(&w);
    expect_end(&w, CURLE_OK, BIDE_GIVE_UP, BIDE_REASON_BREAKER_OPEN);
    assert_true(w.call.by_copy);
    assert_int_equal(w.call.answered, 503);
    assert_int_equal(w.call.result.status, 503);
    assert_string_equal(w.call.sink.at, "down");
    end(&w);
}

static bool refuse_the_second(void *context, CURL *easy, const struct bide_verdict *start, struct curl_slist **headers)
{
    return start->attempt < 2;
}

static void when_the_next_attempt_is_not_signed_the_last_answer_is_shown(void **state)
{
    struct world w;
    struct live_sink heads = {0};
    begin(&w, "/ 503 body=down");
    w.call.options.before = refuse_the_second;
    w.call.options.header = live_write;
    w.call.options.header_data = &heads;
    start(&w);
    run(&w);
    assert_int_equal(w.call.verdict.action, BIDE_GIVE_UP);
    assert_int_equal(w.call.result.status, 503);
    assert_int_equal(w.server.count, 1);
    assert_string_equal(w.call.sink.at, "down");
    assert_memory_equal(heads.at, "HTTP/1.1 503", 12);
    live_sink_free(&heads);
    end(&w);
}

static void cancel_one(struct world *w)
{
    bide_multi_cancel(w->multi, w->call.transfer);
}

static void cancel_all(struct world *w)
{
    bide_multi_cancel_all(w->multi);
}

static void drain_now(struct world *w)
{
    assert_int_equal(bide_multi_drain(w->multi, bide_now()), 1);
}

static void free_multi(struct world *w)
{
    bide_multi_free(w->multi);
    w->multi = NULL;
}

static void a_call_cancelled_in_its_wait_leaves_the_sink_alone(void **state)
{
    static void (*const ways[])(struct world *) = {cancel_one, cancel_all, drain_now, free_multi};
    for (size_t i = 0; i < 4; i++) {
        struct world w;
        struct live_sink heads = {0};
        begin(&w, "/ 503 body=down");
        w.policy.base_ns = w.policy.cap_ns = 50 * BIDE_S;
        w.call.options.header = live_write;
        w.call.options.header_data = &heads;
        start(&w);
        assert_true(live_run_until(w.multi, first_judged, &w));
        ways[i](&w);
        assert_int_equal(w.call.done, 1);
        expect_end(&w, CURLE_ABORTED_BY_CALLBACK, BIDE_GIVE_UP, BIDE_REASON_CANCELLED);
        assert_int_equal(w.call.sink.pieces, 0);
        assert_int_equal(heads.pieces, 0);
        end(&w);
    }
}

static void a_handle_that_cannot_be_taken_says_why(void **state)
{
    struct world w;
    struct curl_slist *headers = curl_slist_append(NULL, "X-Token: secret");
    begin(&w, "");
    w.call.options.headers = headers;
    next_malloc_fails = true; /* which is for the list */
    start(&w);
    assert_false(next_malloc_fails);
    run(&w);
    assert_int_equal(w.call.code, CURLE_OUT_OF_MEMORY);
    assert_int_equal(w.call.verdict.action, BIDE_GIVE_UP);
    assert_int_equal(w.call.result.attempts, 0);
    assert_int_equal(w.server.count, 0);
    curl_easy_setopt(w.call.easy, CURLOPT_HTTPHEADER, NULL);
    curl_slist_free_all(headers);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_answers_that_begin_at_once_are_one_success),
        cmocka_unit_test(one_that_breaks_beside_an_answer_changes_nothing),
        cmocka_unit_test(done_may_free_all_that_belongs_to_a_hedged_call),
        cmocka_unit_test(calls_that_are_refused_at_once_do_not_pile_up_on_the_stack),
        cmocka_unit_test(a_loop_inside_done_is_a_mistake_that_does_no_harm),
        cmocka_unit_test(a_hedge_sends_the_cookies_and_leaves_the_jar_alone),
        cmocka_unit_test(the_error_of_a_hedge_is_not_the_owner_s),
        cmocka_unit_test(what_may_renew_its_credentials_is_not_hedged),
        cmocka_unit_test(a_body_that_nobody_wants_does_not_change_the_code),
        cmocka_unit_test(an_answer_that_a_copy_kept_is_told_with_the_copy),
        cmocka_unit_test(when_the_next_attempt_is_not_signed_the_last_answer_is_shown),
        cmocka_unit_test(a_call_cancelled_in_its_wait_leaves_the_sink_alone),
        cmocka_unit_test(a_handle_that_cannot_be_taken_says_why),
    };
    curl_global_init(CURL_GLOBAL_DEFAULT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
