/* test_multi_end.c - how calls in a multi end: simultaneous responses of hedges, permitted actions in `done`, options
 * inherited by a copied handle, and calls that end in a wait. */
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

/* ---- a malloc that can fail once ---- */

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
#define UNSANITIZED __attribute__((disable_sanitizer_instrumentation))
#else
#define UNSANITIZED __attribute__((no_sanitize("address", "thread", "undefined")))
#endif

void *REAL_MALLOC(size_t size);

static _Thread_local unsigned failing_malloc; /* 1: the next, 2: the one after it; 0: none */

/* Called before the sanitizers are initialized. */
UNSANITIZED void *malloc(size_t size)
{
    if (failing_malloc == 0 || --failing_malloc > 0)
        return REAL_MALLOC(size);
    errno = ENOMEM;
    return NULL;
}

/* ---- a manual server: each connection carries one request, and the test itself writes the response ---- */

#define CONNECTIONS_MAX 4u

struct manual_server {
    struct live_tcp *server;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int fd[CONNECTIONS_MAX]; /* by connection, once its request has arrived */
    bool ended[CONNECTIONS_MAX];
    unsigned requests;
};

static void manual_server_serve(void *context, int fd, unsigned number)
{
    struct manual_server *s = context;
    char head[4096];
    if (!live_tcp_read_head(fd, head, sizeof head) || number > CONNECTIONS_MAX)
        return;
    pthread_mutex_lock(&s->lock);
    s->fd[number - 1] = fd;
    s->requests++;
    while (!s->ended[number - 1])
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

static void manual_server_send(const struct manual_server *s, unsigned number, const char *text)
{
    assert_true(live_tcp_write(s->fd[number - 1], text, strlen(text)));
}

static void manual_server_close(struct manual_server *s, unsigned number)
{
    pthread_mutex_lock(&s->lock);
    s->ended[number - 1] = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static void manual_server_reset(struct manual_server *s, unsigned number)
{
    live_tcp_reset(s->fd[number - 1]);
    manual_server_close(s, number);
}

static bool two_requests_arrived(void *context)
{
    struct manual_server *s = context;
    pthread_mutex_lock(&s->lock);
    bool both = s->requests >= 2;
    pthread_mutex_unlock(&s->lock);
    return both;
}

/* ---- a call that is hedged ---- */

struct fixture {
    struct live_server server; /* either this server or the manual one */
    struct manual_server manual_server;
    struct bide_multi *multi;
    struct bide_policy policy;
    struct bide_target target;
    struct live_multi_call call;
};

static void fixture_prepare(struct fixture *w, const char *url)
{
    w->multi = live_multi_new();
    w->policy = live_policy(4);
    w->policy.hedges_max = 1;
    w->policy.hedge_delay_ns = 5 * BIDE_MS;
    live_target_without_gates(&w->target);
    live_multi_call_init(&w->call, url, &w->policy);
}

static void fixture_begin(struct fixture *w, const char *script)
{
    *w = (struct fixture){0};
    live_server_start(&w->server, script);
    fixture_prepare(w, live_server_url(&w->server, "/"));
}

static void fixture_begin_manual(struct fixture *w)
{
    char url[64];
    *w = (struct fixture){.manual_server = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER}};
    w->manual_server.server = live_tcp_new(manual_server_serve, &w->manual_server);
    snprintf(url, sizeof url, "http://127.0.0.1:%u/", live_tcp_port(w->manual_server.server));
    fixture_prepare(w, url);
}

static void call_start(struct fixture *w)
{
    live_multi_call_start(&w->call, w->multi, &w->target);
    assert_int_equal(w->call.start_error, BIDE_OK);
}

static void call_start_with_hedge(struct fixture *w)
{
    call_start(w);
    assert_true(live_multi_run_until(w->multi, two_requests_arrived, &w->manual_server));
}

/* Runs the call to its end and stops the server, so that its requests can be checked. */
static void call_run(struct fixture *w)
{
    assert_true(live_multi_run(w->multi));
    assert_int_equal(w->call.done, 1);
    if (w->server.chaos)
        live_server_stop(&w->server);
}

static void fixture_end(struct fixture *w)
{
    bide_multi_free(w->multi);
    live_multi_call_free(&w->call);
    for (unsigned number = 1; w->manual_server.server && number <= CONNECTIONS_MAX; number++)
        manual_server_close(&w->manual_server, number);
    live_tcp_free(w->manual_server.server);
    if (w->server.chaos)
        live_server_free(&w->server);
}

static void expect_end(const struct fixture *w, CURLcode code, enum bide_action action, enum bide_reason reason)
{
    assert_string_equal(bide_reason_label(w->call.verdict.reason), bide_reason_label(reason));
    assert_int_equal(w->call.verdict.action, action);
    assert_int_equal(w->call.code, code);
}

static bool sink_has_bytes(void *context)
{
    return ((struct fixture *)context)->call.sink.length > 0;
}

static bool first_outcome_reported(void *context)
{
    return ((struct fixture *)context)->call.result.attempt[0].time_ns > 0;
}

static bool hedge_outcome_reported(void *context)
{
    return ((struct fixture *)context)->call.result.attempt[1].time_ns > 0;
}

/* Opens the breaker when the call starts to wait, so that the call gives up after the wait. */
static void open_when_waiting(void *context, const struct bide_event *event)
{
    struct fixture *w = context;
    if (event->verdict->action == BIDE_ACTION_WAIT)
        bide_breaker_hold(&w->target, BIDE_HOLD_OPEN);
}

static void give_up_in_the_wait(struct fixture *w)
{
    w->call.options.event = open_when_waiting;
    w->call.options.context = w;
}

/* ---- simultaneous responses ---- */

/* Both heads and half of both bodies have arrived before libcurl reads either. */
static void two_simultaneous_responses_are_one_success(void **state)
{
    static const char half[] = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n01234";
    for (int i = 0; i < 5; i++) {
        struct fixture w;
        fixture_begin_manual(&w);
        call_start_with_hedge(&w);
        manual_server_send(&w.manual_server, 1, half);
        manual_server_send(&w.manual_server, 2, half);
        assert_true(live_multi_run_until(w.multi, sink_has_bytes, &w));
        manual_server_send(&w.manual_server, 1, "56789");
        manual_server_send(&w.manual_server, 2, "56789");
        call_run(&w);
        expect_end(&w, CURLE_OK, BIDE_ACTION_DONE, BIDE_REASON_SUCCEEDED);
        assert_string_equal(w.call.sink.at, "0123456789");
        assert_int_equal(w.call.result.status, 200);
        assert_int_equal(w.call.result.attempt[w.call.verdict.attempt - 1].status, 200);
        assert_int_equal(w.call.result.attempt[w.call.verdict.attempt - 1].kind, BIDE_KIND_OK);
        fixture_end(&w);
    }
}

/* The other attempt fails at the same moment: the winner's bytes are not affected. */
static void a_reset_beside_a_streaming_response_changes_nothing(void **state)
{
    for (unsigned good = 1; good <= 2; good++) {
        struct fixture w;
        fixture_begin_manual(&w);
        call_start_with_hedge(&w);
        manual_server_send(&w.manual_server, good, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n01234");
        manual_server_reset(&w.manual_server, 3 - good);
        assert_true(live_multi_run_until(w.multi, sink_has_bytes, &w));
        manual_server_send(&w.manual_server, good, "56789");
        call_run(&w);
        expect_end(&w, CURLE_OK, BIDE_ACTION_DONE, BIDE_REASON_SUCCEEDED);
        assert_string_equal(w.call.sink.at, "0123456789");
        fixture_end(&w);
    }
}

/* ---- allowed in done ---- */

/* Everything that belongs to a call, in one allocation. */
struct call_memory {
    struct bide_curl_options options;
    struct bide_curl_result result;
    struct live_sink sink, heads;
    char error[CURL_ERROR_SIZE];
    size_t traced;
    unsigned *done;
};

static int trace(CURL *easy, curl_infotype type, char *at, size_t length, void *context)
{
    ((struct call_memory *)context)->traced += length;
    return 0;
}

static struct call_memory *call_memory_new(CURL *easy, const struct bide_policy *policy, unsigned *done)
{
    struct call_memory *b = calloc(1, sizeof *b);
    assert_non_null(b);
    b->done = done;
    b->options = (struct bide_curl_options){0};
    b->options.policy = policy;
    b->options.write = b->options.header = live_sink_write;
    b->options.write_data = &b->sink;
    b->options.header_data = &b->heads;
    b->options.headers = curl_slist_append(NULL, "X-Token: secret");
    b->options.inject = BIDE_CURL_INJECT_KEY;
    b->options.body.kind = BIDE_CURL_BODY_REPEATABLE;
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, b->error);
    curl_easy_setopt(easy, CURLOPT_DEBUGFUNCTION, trace);
    curl_easy_setopt(easy, CURLOPT_DEBUGDATA, b);
    curl_easy_setopt(easy, CURLOPT_VERBOSE, 1L);
    return b;
}

static void call_memory_free(void *context, const struct bide_multi_end *fixture_end)
{
    struct call_memory *b = context;
    assert_int_equal(fixture_end->code, CURLE_OK);
    assert_string_equal(b->sink.at, "fine");
    ++*b->done;
    curl_easy_cleanup(fixture_end->easy);
    curl_slist_free_all(b->options.headers);
    live_sink_free(&b->sink);
    live_sink_free(&b->heads);
    memset(b, 0x5a, sizeof *b);
    free(b);
}

/* The address sanitizer detects later accesses. */
static void done_can_free_everything_of_a_hedged_call(void **state)
{
    static const char *const script[] = {"/ delay=never | 200 body=fine", "/ 200 body=fine delay=50ms | delay=never"};
    for (size_t i = 0; i < 2; i++) {
        struct fixture w;
        unsigned done = 0;
        fixture_begin(&w, script[i]);
        CURL *easy = curl_easy_duphandle(w.call.easy);
        struct call_memory *b = call_memory_new(easy, &w.policy, &done);
        struct bide_multi_job job = {.easy = easy,
                                     .target = &w.target,
                                     .options = &b->options,
                                     .result = &b->result,
                                     .done = call_memory_free,
                                     .context = b};
        assert_int_equal(bide_multi_start(w.multi, &job, NULL, NULL), BIDE_OK);
        assert_true(live_multi_run(w.multi));
        assert_int_equal(done, 1);
        fixture_end(&w);
    }
}

#define MANY       50000u
#define STACK_MOST 4096u

struct call_chain {
    struct bide_multi *multi;
    struct bide_multi_job job;
    uintptr_t low, high; /* stack addresses in done */
    unsigned done;
};

static void call_chain_start_next(void *context, const struct bide_multi_end *fixture_end)
{
    struct call_chain *l = context;
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    l->low = here < l->low ? here : l->low;
    l->high = here > l->high ? here : l->high;
    if (++l->done < MANY)
        assert_int_equal(bide_multi_start(l->multi, &l->job, NULL, NULL), BIDE_OK);
}

/* A chain of calls, each started in `done` of the previous one, during an outage. */
static void calls_refused_in_done_do_not_nest_on_the_stack(void **state)
{
    struct fixture w;
    fixture_begin(&w, "");
    bide_breaker_hold(&w.target, BIDE_HOLD_OPEN);
    struct call_chain l = {.multi = w.multi, .low = UINTPTR_MAX};
    l.job = (struct bide_multi_job){.easy = w.call.easy,
                                    .target = &w.target,
                                    .options = BIDE_CURL_PLAIN_HANDLE,
                                    .done = call_chain_start_next,
                                    .context = &l};
    assert_int_equal(bide_multi_start(w.multi, &l.job, NULL, NULL), BIDE_OK);
    assert_int_equal(l.done, MANY);
    assert_int_equal(bide_multi_running_get(w.multi), 0);
    assert_true(l.high - l.low < STACK_MOST);
    live_server_stop(&w.server);
    assert_int_equal(w.server.count, 0);
    fixture_end(&w);
}

/* ---- forbidden in done ---- */

static void poll_here(struct live_multi_call *call)
{
    bide_multi_poll(call->multi, BIDE_NEVER);
}

static void drain_here(struct live_multi_call *call)
{
    bide_multi_drain(call->multi, BIDE_NEVER);
}

static void act_here(struct live_multi_call *call)
{
    bide_multi_action(call->multi, CURL_SOCKET_TIMEOUT, 0);
}

/* Beside a call that never ends, starts a call that is refused at once; its `done` makes the forbidden call. */
static void call_in_done(void (*it)(struct live_multi_call *))
{
    struct fixture w = {0};
    struct live_blackhole nowhere;
    struct live_multi_call other;
    live_blackhole_open(&nowhere);
    fixture_prepare(&w, nowhere.url);
    call_start(&w);
    live_multi_call_init(&other, nowhere.url, &w.policy);
    other.options.deadline_ns = 1;
    other.after_done = it;
    other.other = &other;
    live_multi_call_start(&other, w.multi, &w.target);
    _exit(other.done == 1 && w.call.done == 0 ? 0 : 1);
}

/* With assertions the process aborts; without them the forbidden call does nothing. It neither hangs nor recurses. */
static void polling_inside_done_asserts_or_does_nothing(void **state)
{
    static void (*const forbidden_calls[])(struct live_multi_call *) = {poll_here, drain_here, act_here};
    for (size_t i = 0; i < 3; i++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
            signal(SIGABRT, SIG_DFL);
            alarm(60);
            call_in_done(forbidden_calls[i]);
        }
        int status = -1;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true((WIFEXITED(status) && WEXITSTATUS(status) == 0) ||
                    (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT));
    }
}

/* ---- copied handles ---- */

static void expect_cookie(const struct chaos_seen *seen, const char *text)
{
    struct bide_text value;
    assert_true(chaos_seen_header(seen, "Cookie", &value));
    assert_int_equal(value.length, strlen(text));
    assert_memory_equal(value.at, text, value.length);
}

/* Gets a session cookie. */
static void get_login_cookie(struct fixture *w)
{
    curl_easy_setopt(w->call.easy, CURLOPT_COOKIEFILE, "");
    curl_easy_setopt(w->call.easy, CURLOPT_URL, live_server_url(&w->server, "/login"));
    curl_easy_setopt(w->call.easy, CURLOPT_NOBODY, 1L);
    assert_int_equal(curl_easy_perform(w->call.easy), CURLE_OK);
    curl_easy_setopt(w->call.easy, CURLOPT_HTTPGET, 1L);
    curl_easy_setopt(w->call.easy, CURLOPT_URL, live_server_url(&w->server, "/"));
}

static void a_hedge_sends_the_cookies_and_does_not_write_the_jar(void **state)
{
    struct fixture w;
    char dir[] = "/tmp/bide-jar-XXXXXX", jar[64];
    assert_non_null(mkdtemp(dir));
    snprintf(jar, sizeof jar, "%s/jar", dir);
    fixture_begin(&w, "/login 200 header=\"Set-Cookie: session=42; Path=/\"\n"
                      "/ delay=never | 200 header=\"Set-Cookie: who=copy\"");
    get_login_cookie(&w);
    curl_easy_setopt(w.call.easy, CURLOPT_COOKIEJAR, jar);
    call_start(&w);
    call_run(&w);
    assert_true(w.call.by_copy);
    expect_cookie(&w.server.seen[1], "session=42");
    expect_cookie(&w.server.seen[2], "session=42");
    assert_int_equal(access(jar, F_OK), -1); /* the copy was already cleaned up */
    fixture_end(&w);
    assert_int_equal(access(jar, F_OK), 0);
    unlink(jar);
    rmdir(dir);
}

static void a_hedge_does_not_write_the_caller_s_error_buffer(void **state)
{
    struct fixture w;
    char error[CURL_ERROR_SIZE] = "";
    fixture_begin_manual(&w);
    curl_easy_setopt(w.call.easy, CURLOPT_ERRORBUFFER, error);
    call_start_with_hedge(&w);
    manual_server_reset(&w.manual_server, 2);
    assert_true(live_multi_run_until(w.multi, hedge_outcome_reported, &w));
    manual_server_send(&w.manual_server, 1, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine");
    call_run(&w);
    expect_end(&w, CURLE_OK, BIDE_ACTION_DONE, BIDE_REASON_SUCCEEDED);
    assert_string_equal(error, "");
    fixture_end(&w);
}

static bool fail_refresh(void *context, CURL *easy)
{
    fail_msg("refresh was called without a 401");
    return false;
}

/* A refresh in one attempt would change the credentials under the other. */
static void a_call_with_refresh_is_not_hedged(void **state)
{
    struct fixture w;
    fixture_begin(&w, "/ 200 body=fine delay=100ms | 200 body=hedge");
    w.call.options.refresh = fail_refresh;
    call_start(&w);
    call_run(&w);
    expect_end(&w, CURLE_OK, BIDE_ACTION_DONE, BIDE_REASON_SUCCEEDED);
    assert_int_equal(w.server.count, 1);
    assert_string_equal(w.call.sink.at, "fine");
    fixture_end(&w);
}

/* ---- calls that end in a wait ---- */

/* The body of the first attempt's 503 is still being read when the second attempt fails: the second outcome is the
 * last. */
static void a_discarded_body_does_not_change_the_code(void **state)
{
    struct fixture w;
    fixture_begin_manual(&w);
    w.policy.base_ns = w.policy.cap_ns = 300 * BIDE_MS; /* longer than the rest of the body takes */
    give_up_in_the_wait(&w);
    call_start_with_hedge(&w);
    manual_server_send(&w.manual_server, 1, "HTTP/1.1 503 Down\r\nContent-Length: 6\r\n\r\nfir");
    assert_true(live_multi_run_until(w.multi, first_outcome_reported, &w));
    manual_server_reset(&w.manual_server, 2);
    assert_true(live_multi_run_until(w.multi, hedge_outcome_reported, &w));
    manual_server_send(&w.manual_server, 1, "st\n");
    call_run(&w);
    expect_end(&w, w.call.result.attempt[1].code, BIDE_ACTION_GIVE_UP, BIDE_REASON_BREAKER_OPEN);
    assert_int_not_equal(w.call.code, CURLE_OK);
    assert_int_equal(w.call.result.status, 0);
    assert_int_equal(w.call.sink.length, 0);
    fixture_end(&w);
}

/* The caller's handle failed, the copy has the response that turned out to be final. */
static void a_response_kept_by_a_copy_is_reported_with_the_copy(void **state)
{
    struct fixture w;
    fixture_begin_manual(&w);
    give_up_in_the_wait(&w);
    call_start_with_hedge(&w);
    manual_server_reset(&w.manual_server, 1);
    assert_true(live_multi_run_until(w.multi, first_outcome_reported, &w));
    manual_server_send(&w.manual_server, 2, "HTTP/1.1 503 Down\r\nContent-Length: 4\r\n\r\ndown");
    call_run(&w);
    expect_end(&w, CURLE_OK, BIDE_ACTION_GIVE_UP, BIDE_REASON_BREAKER_OPEN);
    assert_true(w.call.by_copy);
    assert_int_equal(w.call.last_status, 503);
    assert_int_equal(w.call.result.status, 503);
    assert_string_equal(w.call.sink.at, "down");
    fixture_end(&w);
}

static bool refuse_the_second(void *context, CURL *easy, const struct bide_verdict *call_start,
                              struct curl_slist **headers)
{
    return call_start->attempt < 2;
}

static void before_can_refuse_a_retry_and_the_last_response_is_delivered(void **state)
{
    struct fixture w;
    struct live_sink heads = {0};
    fixture_begin(&w, "/ 503 body=down");
    w.call.options.before = refuse_the_second;
    w.call.options.header = live_sink_write;
    w.call.options.header_data = &heads;
    call_start(&w);
    call_run(&w);
    assert_int_equal(w.call.verdict.action, BIDE_ACTION_GIVE_UP);
    assert_int_equal(w.call.result.status, 503);
    assert_int_equal(w.server.count, 1);
    assert_string_equal(w.call.sink.at, "down");
    assert_memory_equal(heads.at, "HTTP/1.1 503", 12);
    live_sink_free(&heads);
    fixture_end(&w);
}

static void cancel_one(struct fixture *w)
{
    bide_multi_cancel(w->multi, w->call.active);
}

static void cancel_all(struct fixture *w)
{
    bide_multi_cancel_all(w->multi);
}

static void drain_now(struct fixture *w)
{
    assert_int_equal(bide_multi_drain(w->multi, bide_now()), 1);
}

static void free_multi(struct fixture *w)
{
    bide_multi_free(w->multi);
    w->multi = NULL;
}

static void a_call_cancelled_during_its_wait_writes_nothing_to_the_sink(void **state)
{
    static void (*const ways[])(struct fixture *) = {cancel_one, cancel_all, drain_now, free_multi};
    for (size_t i = 0; i < 4; i++) {
        struct fixture w;
        struct live_sink heads = {0};
        fixture_begin(&w, "/ 503 body=down");
        w.policy.base_ns = w.policy.cap_ns = 50 * BIDE_S;
        w.call.options.header = live_sink_write;
        w.call.options.header_data = &heads;
        call_start(&w);
        assert_true(live_multi_run_until(w.multi, first_outcome_reported, &w));
        ways[i](&w);
        assert_int_equal(w.call.done, 1);
        expect_end(&w, CURLE_ABORTED_BY_CALLBACK, BIDE_ACTION_GIVE_UP, BIDE_REASON_CANCELLED);
        assert_int_equal(w.call.sink.pieces, 0);
        assert_int_equal(heads.pieces, 0);
        fixture_end(&w);
    }
}

static bool start_other_call(void *context, CURL *easy, const struct bide_verdict *start, struct curl_slist **headers)
{
    struct live_multi_call *call = context;
    live_multi_call_start(call->other, call->multi, call->target);
    return true;
}

static void cancel_all_of(struct live_multi_call *call)
{
    bide_multi_cancel_all(call->multi);
}

/* The call's own hook starts another call that ends at once, and whose `done` cancels all: live_multi.c checks that
 * bide_multi_start returns no pointer to the freed call. */
static void a_call_cancelled_while_it_starts_is_not_returned(void **state)
{
    struct fixture w;
    struct live_multi_call other;
    fixture_begin(&w, "/ 200");
    live_multi_call_init(&other, live_server_url(&w.server, "/"), &w.policy);
    other.options.deadline_ns = 1;
    other.after_done = cancel_all_of;
    other.other = &w.call;
    w.call.options.before = start_other_call;
    w.call.options.context = &w.call;
    w.call.other = &other;
    call_start(&w);
    assert_int_equal(other.done, 1);
    assert_int_equal(w.call.done, 1);
    expect_end(&w, CURLE_ABORTED_BY_CALLBACK, BIDE_ACTION_GIVE_UP, BIDE_REASON_CANCELLED);
    fixture_end(&w);
    live_multi_call_free(&other);
}

static void a_handle_that_cannot_be_installed_ends_the_call_with_its_code(void **state)
{
    struct fixture w;
    struct curl_slist *headers = curl_slist_append(NULL, "X-Token: secret");
    fixture_begin(&w, "");
    w.call.options.headers = headers;
    failing_malloc = 2; /* that of the header list, after that of the call */
    call_start(&w);
    assert_int_equal(failing_malloc, 0);
    call_run(&w);
    assert_int_equal(w.call.code, CURLE_OUT_OF_MEMORY);
    assert_int_equal(w.call.verdict.action, BIDE_ACTION_GIVE_UP);
    assert_int_equal(w.call.result.attempts, 0);
    assert_int_equal(w.server.count, 0);
    curl_easy_setopt(w.call.easy, CURLOPT_HTTPHEADER, NULL);
    curl_slist_free_all(headers);
    fixture_end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_simultaneous_responses_are_one_success),
        cmocka_unit_test(a_reset_beside_a_streaming_response_changes_nothing),
        cmocka_unit_test(done_can_free_everything_of_a_hedged_call),
        cmocka_unit_test(calls_refused_in_done_do_not_nest_on_the_stack),
        cmocka_unit_test(polling_inside_done_asserts_or_does_nothing),
        cmocka_unit_test(a_hedge_sends_the_cookies_and_does_not_write_the_jar),
        cmocka_unit_test(a_hedge_does_not_write_the_caller_s_error_buffer),
        cmocka_unit_test(a_call_with_refresh_is_not_hedged),
        cmocka_unit_test(a_discarded_body_does_not_change_the_code),
        cmocka_unit_test(a_response_kept_by_a_copy_is_reported_with_the_copy),
        cmocka_unit_test(before_can_refuse_a_retry_and_the_last_response_is_delivered),
        cmocka_unit_test(a_call_cancelled_during_its_wait_writes_nothing_to_the_sink),
        cmocka_unit_test(a_call_cancelled_while_it_starts_is_not_returned),
        cmocka_unit_test(a_handle_that_cannot_be_installed_ends_the_call_with_its_code),
    };
    curl_global_init(CURL_GLOBAL_DEFAULT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
