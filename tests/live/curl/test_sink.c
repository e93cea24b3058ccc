/* test_sink.c - the sink gets one response, once and completely, and never a byte of a retried attempt. */
#define _GNU_SOURCE
#include "live_call.h"

#include <bide/clock.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KEEP_SLACK 131072 /* libcurl's buffers, beyond bide's limit */

static const char *const failing_scripts[] = {
    "/a 503 body=oops | 200 body=fine",
    "/a 503 bytes=60000 | 200 body=fine",
    "/a 503 bytes=1000000 | 200 body=fine",
    "/a 503 bytes=60000 chunked | 200 body=fine",
    "/a 503 bytes=1000000 chunked | 200 body=fine",
    "/a 503 endless=body | 200 body=fine",
    "/a 503 bytes=100 length=none | 200 body=fine",
    "/a 503 bytes=100 length=+10 connection=close | 200 body=fine",
    "/a 503 bytes=100 length=-10 | 200 body=fine",
    "/a 503 bytes=60000 reset=half | 200 body=fine",
    "/a 503 bytes=60000 close=half | 200 body=fine",
    "/a 503 bytes=60000 chunked close=half | 200 body=fine",
    "/a 503 bytes=100 close=headers | 200 body=fine",
    "/a 503 bytes=100 drip=7/1ms | 200 body=fine",
    "/a 503 bytes=100 drip=7/1ms chunked | 200 body=fine drip=1/1ms",
    "/a 503 bytes=100 half-close connection=close | 200 body=fine",
    "/a 503 bytes=100 header=\"Content-Encoding: gzip\" | 200 body=fine",
    "/a reset=headers | 200 body=fine",
    "/a 200 bytes=100 reset=headers | 200 body=fine",
    "/a 200 bytes=100 chunked close=headers | 200 body=fine",
};

static void nothing_of_a_retried_attempt_reaches_the_sink(void **state)
{
    for (size_t i = 0; i < sizeof failing_scripts / sizeof *failing_scripts; i++)
        live_expect_last_response_only(failing_scripts[i], 2, true);
}

static void nothing_of_a_retried_attempt_reaches_the_handle_s_write_function(void **state)
{
    for (size_t i = 0; i < sizeof failing_scripts / sizeof *failing_scripts; i++)
        live_expect_last_response_only(failing_scripts[i], 2, false);
}

static void an_encoded_error_body_is_not_decoded_for_a_retry(void **state)
{
    for (int sink = 0; sink < 2; sink++) {
        struct live_call c;
        live_call_open(&c, "/a 503 bytes=100 header=\"Content-Encoding: gzip\" | 200 body=fine", 3);
        curl_easy_setopt(c.easy, CURLOPT_ACCEPT_ENCODING, "");
        if (!sink)
            live_call_without_sink(&c);
        /* The bytes are not gzip: decoding them would fail with CURLE_BAD_CONTENT_ENCODING. */
        live_call_perform(&c, "/a");
        live_expect_done(&c, 2);
        live_expect_text(&c.sink, "fine");
        live_call_close(&c);
    }
}

/* ---- the last failure ---- */

static void expect_last_failure_delivered(const char *script, size_t length, bool sink)
{
    struct live_call c;
    live_call_open(&c, script, 2);
    if (!sink)
        live_call_without_sink(&c);
    assert_int_equal(live_call_perform(&c, "/a"), CURLE_OK);
    assert_int_equal(c.result.verdict.action, BIDE_ACTION_GIVE_UP);
    live_expect_pattern(&c.sink, length);
    assert_false(c.result.body_dropped);
    assert_false(c.result.resumed);
    live_call_close(&c);
}

static void the_last_failure_is_delivered_once_and_completely(void **state)
{
    static const struct {
        const char *script;
        size_t length;
    } last[] = {
        {"/a 503 bytes=100", 100},
        {"/a 503 bytes=70000", 70000},
        {"/a 503 bytes=3000000", 3000000},
        {"/a 503 bytes=3000000 chunked", 3000000},
        {"/a 503 bytes=70000 | 404 bytes=80000", 80000},
        {"/a reset | 500 bytes=80000 length=none", 80000},
        {"/a 503 bytes=10 drip=4/1ms", 10},
    };
    for (size_t i = 0; i < sizeof last / sizeof *last; i++)
        for (int sink = 0; sink < 2; sink++)
            expect_last_failure_delivered(last[i].script, last[i].length, sink);
}

static void a_last_failure_that_breaks_off_is_an_error(void **state)
{
    struct live_call c;
    live_call_open(&c, "/a 503 bytes=1000 close=half", 2);
    assert_int_equal(live_call_perform(&c, "/a"), CURLE_PARTIAL_FILE);
    live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_ATTEMPTS_SPENT, 2);
    live_expect_pattern(&c.sink, 500);
    live_call_close(&c);
}

/* ---- giving up during the wait ---- */

/* Opens the breaker when the call starts to wait, so that the call gives up after the wait. */
static void open_when_waiting(void *context, const struct bide_event *event)
{
    struct live_call *c = context;
    if (event->verdict->action == BIDE_ACTION_WAIT)
        bide_breaker_hold(&c->target, BIDE_HOLD_OPEN);
}

static void perform_and_give_up_waiting(struct live_call *c, const char *script, CURLcode code)
{
    live_call_open(c, script, 4);
    c->options.event = open_when_waiting;
    c->options.context = c;
    assert_int_equal(live_call_perform(c, "/a"), code);
    live_expect(c, BIDE_ACTION_GIVE_UP, BIDE_REASON_BREAKER_OPEN, 1);
    assert_int_equal(c->result.status, 503);
}

static void giving_up_a_wait_delivers_the_kept_failure(void **state)
{
    static const char *const script[] = {"/a 503 bytes=60000", "/a 503 bytes=60000 chunked",
                                         "/a 503 bytes=60000 length=none", "/a 503 bytes=0", "/a 503 bytes=65536"};
    static const size_t length[] = {60000, 60000, 60000, 0, 65536};
    for (size_t i = 0; i < sizeof script / sizeof *script; i++) {
        struct live_call c;
        perform_and_give_up_waiting(&c, script[i], CURLE_OK);
        live_expect_pattern(&c.sink, length[i]);
        assert_false(c.result.body_dropped);
        live_call_close(&c);
    }
}

static void an_incomplete_or_too_long_kept_body_is_dropped_and_reported(void **state)
{
    static const char *const script[] = {
        "/a 503 bytes=65537",           "/a 503 bytes=65537 chunked",
        "/a 503 endless=body",          "/a 503 bytes=1000 reset=half",
        "/a 503 bytes=1000 close=half", "/a 503 bytes=1000 header=\"Content-Encoding: gzip\""};
    for (size_t i = 0; i < sizeof script / sizeof *script; i++) {
        struct live_call c;
        perform_and_give_up_waiting(&c, script[i], CURLE_HTTP_RETURNED_ERROR);
        assert_int_equal(c.sink.length, 0);
        assert_true(c.result.body_dropped);
        live_call_close(&c);
    }
}

static void a_body_cut_without_a_sink_is_reported_as_dropped(void **state)
{
    struct live_call c;
    live_call_open(&c, "/a 503 bytes=100", 4);
    live_call_without_sink(&c);
    c.options.event = open_when_waiting;
    c.options.context = &c;
    assert_int_equal(live_call_perform(&c, "/a"), CURLE_HTTP_RETURNED_ERROR);
    live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_BREAKER_OPEN, 1);
    assert_int_equal(c.sink.length, 0);
    assert_true(c.result.body_dropped);
    live_call_close(&c);
}

/* Another thread cancels when the connection is closed, which is after the response was read and before the wait
 * ends. */
struct canceller {
    struct bide_cancel cancel;
    pthread_mutex_t lock;
    pthread_cond_t closed;
    bool is_closed;
};

static int on_close(void *context, curl_socket_t fd)
{
    struct canceller *k = context;
    pthread_mutex_lock(&k->lock);
    k->is_closed = true;
    pthread_cond_signal(&k->closed);
    pthread_mutex_unlock(&k->lock);
    return close(fd);
}

static void *cancel_after_close(void *context)
{
    struct canceller *k = context;
    pthread_mutex_lock(&k->lock);
    while (!k->is_closed)
        pthread_cond_wait(&k->closed, &k->lock);
    pthread_mutex_unlock(&k->lock);
    bide_cancel_now(&k->cancel);
    return NULL;
}

static void a_call_cancelled_during_its_wait_writes_nothing_to_the_sink(void **state)
{
    struct live_call c;
    struct canceller k = {.lock = PTHREAD_MUTEX_INITIALIZER, .closed = PTHREAD_COND_INITIALIZER};
    pthread_t thread;
    live_call_open(&c, "/a 503 bytes=60000 connection=close", 4);
    c.policy.base_ns = c.policy.cap_ns = 50 * BIDE_S;
    assert_int_equal(bide_cancel_init(&k.cancel), BIDE_OK);
    c.options.cancel = &k.cancel;
    curl_easy_setopt(c.easy, CURLOPT_CLOSESOCKETFUNCTION, on_close);
    curl_easy_setopt(c.easy, CURLOPT_CLOSESOCKETDATA, &k);
    assert_int_equal(pthread_create(&thread, NULL, cancel_after_close, &k), 0);
    assert_int_equal(live_call_perform(&c, "/a"), CURLE_ABORTED_BY_CALLBACK);
    pthread_join(thread, NULL);
    live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_CANCELLED, 1);
    assert_int_equal(c.sink.pieces, 0); /* a cancelled call delivers nothing */
    assert_true(c.result.total_ns < 40 * BIDE_S);
    bide_cancel_free(&k.cancel);
    live_call_close(&c);
}

static void a_call_cancelled_before_its_start_makes_no_attempt(void **state)
{
    struct live_call c;
    struct live_trap trap;
    struct bide_cancel cancel;
    live_trap_open(&trap);
    live_call_open(&c, "", 4);
    assert_int_equal(bide_cancel_init(&cancel), BIDE_OK);
    bide_cancel_now(&cancel);
    c.options.cancel = &cancel;
    assert_int_equal(live_call_perform_url(&c, trap.url), CURLE_ABORTED_BY_CALLBACK);
    live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_CANCELLED, 0);
    assert_false(live_trap_sprung(&trap));
    bide_cancel_free(&cancel);
    live_trap_close(&trap);
    live_call_close(&c);
}

static void *cancel_when_asked(void *context)
{
    struct live_call *c = context;
    while (chaos_requests(c->server.chaos) == 0)
        usleep(1000);
    bide_cancel_now((struct bide_cancel *)(uintptr_t)c->options.cancel);
    return NULL;
}

static void a_call_cancelled_during_an_attempt_ends_soon(void **state)
{
    struct live_call c;
    struct bide_cancel cancel;
    pthread_t thread;
    live_call_open(&c, "/a delay=never", 4);
    assert_int_equal(bide_cancel_init(&cancel), BIDE_OK);
    c.options.cancel = &cancel;
    assert_int_equal(pthread_create(&thread, NULL, cancel_when_asked, &c), 0);
    assert_int_equal(live_call_perform(&c, "/a"), CURLE_ABORTED_BY_CALLBACK);
    pthread_join(thread, NULL);
    live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_CANCELLED, 1);
    live_expect_attempt(&c, 0, CURLE_ABORTED_BY_CALLBACK, BIDE_KIND_CANCELLED, BIDE_EVIDENCE_UNKNOWN);
    assert_true(c.result.total_ns < 30 * BIDE_S);
    bide_cancel_free(&cancel);
    live_call_close(&c);
}

/* ---- limits ---- */

/* Stores the bytes that the previous attempt received, when the next attempt is about to start. */
static bool note_size(void *context, CURL *easy, const struct bide_verdict *start, struct curl_slist **headers)
{
    if (start->attempt > 1)
        curl_easy_getinfo(easy, CURLINFO_SIZE_DOWNLOAD_T, (curl_off_t *)context);
    return true;
}

static void an_endless_error_body_is_read_up_to_the_limit(void **state)
{
    static const char *const script[] = {"/a 503 endless=body | 200", "/a 503 endless=body chunked | 200",
                                         "/a 503 endless=body type=application/problem+json | 200",
                                         "/a 503 endless=body header=\"Content-Encoding: gzip\" | 200"};
    for (size_t i = 0; i < sizeof script / sizeof *script; i++) {
        struct live_call c;
        curl_off_t size = -1;
        live_call_open(&c, script[i], 4);
        c.options.before = note_size;
        c.options.context = &size;
        live_call_perform(&c, "/a");
        live_expect_done(&c, 2);
        assert_true(size >= 0 && size < BIDE_CURL_KEEP_MAX + KEEP_SLACK);
        live_call_close(&c);
    }
}

/* The announced length exceeds the limit, so not even the beginning is read. */
static void an_announced_long_error_body_is_cut_at_once(void **state)
{
    struct live_call c;
    curl_off_t size = -1;
    live_call_open(&c, "/a 503 bytes=10000000 | 200", 4);
    c.options.before = note_size;
    c.options.context = &size;
    live_call_perform(&c, "/a");
    live_expect_done(&c, 2);
    assert_true(size >= 0 && size < BIDE_CURL_KEEP_MAX); /* bytes that arrived with the head */
    live_call_close(&c);
}

static void endless_headers_are_a_permanent_failure(void **state)
{
    for (int sink = 0; sink < 2; sink++) {
        struct live_call c;
        live_call_open(&c, "/a 200 endless=headers", 4);
        if (!sink)
            live_call_without_sink(&c);
        assert_int_equal(live_call_perform(&c, "/a"), CURLE_WEIRD_SERVER_REPLY);
        live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_PERMANENT, 1);
        live_expect_attempt(&c, 0, CURLE_WEIRD_SERVER_REPLY, BIDE_KIND_PERMANENT, BIDE_EVIDENCE_UNKNOWN);
        assert_int_equal(c.sink.length, 0);
        live_call_close(&c);
    }
}

static void a_drained_failure_keeps_its_connection_reusable(void **state)
{
    static const char *const script[] = {"/a 503 | 200", "/a 503 bytes=65536 | 200", "/a 503 bytes=60000 chunked | 200",
                                         "/a 429 bytes=0 | 200"};
    for (size_t i = 0; i < sizeof script / sizeof *script; i++) {
        struct live_call c;
        live_call_open(&c, script[i], 4);
        live_call_perform(&c, "/a");
        live_expect_done(&c, 2);
        live_server_stop(&c.server);
        assert_int_equal(c.server.seen[0].connection, c.server.seen[1].connection);
        live_call_close(&c);
    }
}

static void a_long_failure_s_connection_is_closed(void **state)
{
    static const char *const script[] = {"/a 503 bytes=65537 | 200", "/a 503 bytes=100000 chunked | 200"};
    for (size_t i = 0; i < sizeof script / sizeof *script; i++) {
        struct live_call c;
        live_call_open(&c, script[i], 4);
        live_call_perform(&c, "/a");
        live_expect_done(&c, 2);
        live_server_stop(&c.server);
        assert_int_not_equal(c.server.seen[0].connection, c.server.seen[1].connection);
        live_call_close(&c);
    }
}

/* The error body would take an hour. The attempt has a minute; the retry does not wait for it. */
static void a_slow_error_body_does_not_delay_the_retry(void **state)
{
    struct live_call c;
    live_call_open(&c, "/a 503 bytes=4000 drip=400/400s | 200 body=fine", 4);
    live_call_perform(&c, "/a");
    live_expect_done(&c, 2);
    assert_true(c.result.total_ns < 30 * BIDE_S);
    live_call_close(&c);
}

/* ---- failing sinks, and files ---- */

struct limited_sink {
    size_t room;
    size_t got;
};

static size_t write_limited(char *at, size_t size, size_t count, void *context)
{
    struct limited_sink *m = context;
    m->got += size * count;
    return m->got > m->room ? 0 : size * count;
}

static void a_failing_sink_ends_the_call(void **state)
{
    static const char *const script[] = {"/a 200 bytes=1000", "/a 404 bytes=1000", "/a 503 bytes=1000",
                                         "/a 404 bytes=1000 type=application/problem+json"};
    for (size_t i = 0; i < sizeof script / sizeof *script; i++)
        for (int own = 0; own < 2; own++) {
            struct live_call c;
            struct limited_sink m = {.room = 10};
            live_call_open(&c, script[i], 1);
            live_call_without_sink(&c);
            curl_easy_setopt(c.easy, CURLOPT_WRITEFUNCTION, write_limited);
            curl_easy_setopt(c.easy, CURLOPT_WRITEDATA, &m);
            c.options.write = own ? NULL : write_limited;
            c.options.write_data = own ? NULL : &m;
            assert_int_equal(live_call_perform(&c, "/a"), CURLE_WRITE_ERROR);
            assert_int_equal(c.result.verdict.action, BIDE_ACTION_GIVE_UP);
            assert_int_equal(c.result.attempts, 1);
            live_call_close(&c);
        }
}

static void a_failing_sink_is_a_local_failure(void **state)
{
    struct live_call c;
    struct limited_sink m = {.room = 10};
    live_call_open(&c, "/a 200 bytes=1000", 5);
    c.options.write = write_limited;
    c.options.write_data = &m;
    assert_int_equal(live_call_perform(&c, "/a"), CURLE_WRITE_ERROR);
    assert_int_equal(c.result.verdict.action, BIDE_ACTION_GIVE_UP);
    assert_int_equal(c.result.attempts, 1);
    assert_int_equal(c.result.attempt[0].kind, BIDE_KIND_CANCELLED);
    live_call_close(&c);
}

static void a_sink_that_rejects_a_kept_body_is_a_write_error(void **state)
{
    struct live_call c;
    struct limited_sink m = {.room = 10};
    live_call_open(&c, "/a 503 bytes=1000", 5);
    c.options.write = write_limited;
    c.options.write_data = &m;
    c.options.event = open_when_waiting;
    c.options.context = &c;
    assert_int_equal(live_call_perform(&c, "/a"), CURLE_WRITE_ERROR);
    live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_BREAKER_OPEN, 1);
    live_call_close(&c);
}

static void a_file_can_be_the_sink(void **state)
{
    struct live_call c;
    char text[16] = "";
    FILE *file = tmpfile();
    live_call_open(&c, "/a 503 body=oops | 200 body=fine", 5);
    c.options.write = NULL;
    c.options.write_data = file;
    live_call_perform(&c, "/a");
    live_expect_done(&c, 2);
    rewind(file);
    assert_int_equal(fread(text, 1, sizeof text, file), 4);
    assert_string_equal(text, "fine");
    fclose(file);
    live_call_close(&c);
}

/* ---- the header function ---- */

static void open_with_heads(struct live_call *c, struct live_sink *heads, const char *script)
{
    live_call_open(c, script, 3);
    *heads = (struct live_sink){0};
    c->options.header = live_sink_write;
    c->options.header_data = heads;
}

static size_t count_of(const struct live_sink *sink, const char *text)
{
    size_t n = 0;
    for (const char *at = sink->at; at && (at = strstr(at, text)); at++)
        n++;
    return n;
}

static void heads_of_retried_failures_are_not_delivered(void **state)
{
    struct live_call c;
    struct live_sink heads;
    open_with_heads(&c, &heads, "/a 503 header=\"X-N: 1\" | 429 header=\"X-N: 2\" | 200 header=\"X-N: 3\"");
    live_call_perform(&c, "/a");
    live_expect_done(&c, 3);
    assert_int_equal(count_of(&heads, "HTTP/1.1"), 1);
    assert_int_equal(count_of(&heads, "X-N: 3\r\n"), 1);
    assert_int_equal(count_of(&heads, "\r\n\r\n"), 1);
    live_sink_free(&heads);
    live_call_close(&c);
}

static void the_head_of_the_last_failure_is_delivered_before_its_body(void **state)
{
    struct live_call c;
    live_call_open(&c, "/a 503 body=down header=\"X-N: 1\"", 2);
    c.options.header = live_sink_write;
    c.options.header_data = &c.sink; /* into the same sink, to check the order */
    live_call_perform(&c, "/a");
    assert_int_equal(count_of(&c.sink, "HTTP/1.1 503"), 1);
    assert_int_equal(count_of(&c.sink, "X-N: 1"), 1);
    assert_int_equal(count_of(&c.sink, "\r\n\r\ndown"), 1);
    live_call_close(&c);
}

static void a_kept_head_is_delivered_when_the_wait_is_given_up(void **state)
{
    struct live_call c;
    live_call_open(&c, "/a 503 body=down", 3);
    c.options.header = live_sink_write;
    c.options.header_data = &c.sink;
    c.options.event = open_when_waiting;
    c.options.context = &c;
    live_call_perform(&c, "/a");
    live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_BREAKER_OPEN, 1);
    assert_int_equal(count_of(&c.sink, "HTTP/1.1 503"), 1);
    assert_int_equal(count_of(&c.sink, "\r\n\r\ndown"), 1);
    live_call_close(&c);
}

/* With CURLOPT_HEADER the head precedes the body in the sink: that of the delivered response. */
static void heads_in_the_sink_are_those_of_the_delivered_response(void **state)
{
    static const char *const last[] = {"200 body=fine", "404 body=fine", "503 body=fine"};
    for (size_t i = 0; i < 3; i++) {
        struct live_call c;
        char script[128];
        snprintf(script, sizeof script, "/a 503 body=oops x2 | %s", last[i]);
        live_call_open(&c, script, 3);
        curl_easy_setopt(c.easy, CURLOPT_HEADER, 1L);
        assert_int_equal(live_call_perform(&c, "/a"), CURLE_OK);
        assert_int_equal(c.result.attempts, 3);
        assert_int_equal(count_of(&c.sink, "HTTP/1.1"), 1);
        assert_int_equal(count_of(&c.sink, "\r\n\r\nfine"), 1);
        assert_int_equal(count_of(&c.sink, "oops"), 0);
        assert_memory_equal(c.sink.at, "HTTP/1.1", 8);
        live_call_close(&c);
    }
}

/* A sink that pauses once and is resumed by the progress function. */
struct pauser {
    struct live_sink sink;
    CURL *easy;
    bool paused;
    int pauses;
};

static size_t pause_once(char *at, size_t size, size_t count, void *context)
{
    struct pauser *p = context;
    if (p->pauses++ == 1) {
        p->paused = true;
        return CURL_WRITEFUNC_PAUSE;
    }
    return live_sink_write(at, size, count, &p->sink);
}

static int unpause(void *context, curl_off_t total, curl_off_t now, curl_off_t up_total, curl_off_t up_now)
{
    struct pauser *p = context;
    if (p->paused) {
        p->paused = false;
        curl_easy_pause(p->easy, CURLPAUSE_CONT);
    }
    return 0;
}

static void a_sink_can_pause(void **state)
{
    struct live_call c;
    live_call_open(&c, "/a 503 | 200 bytes=300000", 3);
    struct pauser p = {.easy = c.easy};
    c.options.progress = unpause;
    c.options.progress_data = &p;
    c.options.write = pause_once;
    c.options.write_data = &p;
    live_call_perform(&c, "/a");
    live_expect_done(&c, 2);
    live_expect_pattern(&p.sink, 300000);
    assert_true(p.pauses > 2);
    live_sink_free(&p.sink);
    live_call_close(&c);
}

static void a_failing_header_function_ends_the_call(void **state)
{
    static const char *const script[] = {"/a 200", "/a 404"};
    for (size_t i = 0; i < 2; i++) {
        struct live_call c;
        struct limited_sink m = {.room = 10};
        live_call_open(&c, script[i], 3);
        c.options.header = write_limited;
        c.options.header_data = &m;
        assert_int_equal(live_call_perform(&c, "/a"), CURLE_WRITE_ERROR);
        assert_int_equal(c.result.verdict.action, BIDE_ACTION_GIVE_UP);
        assert_int_equal(c.result.attempts, 1);
        live_call_close(&c);
    }
}

/* ---- the handle afterwards ---- */

static int count_prereqs(void *context, char *ip, char *local_ip, int port, int local_port)
{
    ++*(int *)context;
    return CURL_PREREQFUNC_OK;
}

static int count_progress(void *context, curl_off_t total, curl_off_t now, curl_off_t up_total, curl_off_t up_now)
{
    ++*(int *)context;
    return 0;
}

static void the_handle_has_the_caller_s_values_afterwards(void **state)
{
    struct live_call c;
    struct live_sink heads;
    struct bide_cancel cancel;
    struct bide_text value;
    int prereqs = 0, progresses = 0;
    open_with_heads(&c, &heads, "/a 503 | 200\n/b 503 body=down");
    assert_int_equal(bide_cancel_init(&cancel), BIDE_OK);
    c.options.cancel = &cancel;
    c.options.prereq = count_prereqs;
    c.options.prereq_data = &prereqs;
    c.options.progress = count_progress;
    c.options.progress_data = &progresses;
    c.options.headers = curl_slist_append(NULL, "X-Mine: yes");
    c.options.inject = BIDE_CURL_INJECT_KEY | BIDE_CURL_INJECT_ATTEMPT | BIDE_CURL_INJECT_TRACE;
    c.options.body.kind = BIDE_CURL_BODY_REPEATABLE;
    live_call_perform(&c, "/a");
    live_expect_done(&c, 2);
    assert_int_equal(prereqs, 2);
    assert_true(progresses > 0);
    live_sink_free(&heads);
    live_sink_free(&c.sink);
    progresses = 0;
    curl_easy_setopt(c.easy, CURLOPT_URL, live_server_url(&c.server, "/b"));
    assert_int_equal(curl_easy_perform(c.easy), CURLE_OK);
    assert_int_equal(prereqs, 3);
    assert_true(progresses > 0);
    live_expect_text(&c.sink, "down");
    assert_int_equal(count_of(&heads, "HTTP/1.1 503"), 1);
    live_server_stop(&c.server);
    const struct chaos_seen *plain = live_server_request(&c.server, "/b", 0);
    assert_true(chaos_seen_header(plain, "X-Mine", &value));
    assert_null(plain->key);
    assert_null(plain->attempt);
    assert_null(plain->traceparent);
    curl_slist_free_all(c.options.headers);
    bide_cancel_free(&cancel);
    live_sink_free(&heads);
    live_call_close(&c);
}

/* The handle must not refer to memory of the call: the sanitizers would detect the access. */
static void a_plain_perform_afterwards_uses_no_memory_of_the_call(void **state)
{
    CURL *easy = curl_easy_init();
    struct live_server server;
    struct live_sink sink = {0};
    live_server_start(&server, "/a 408 | 200 body=one\n/b 302 location=/c\n/c 200 body=two");
    struct bide_policy *policy = malloc(sizeof *policy);
    struct bide_curl_options *o = malloc(sizeof *o);
    *policy = live_policy(3);
    *o = (struct bide_curl_options){0};
    o->policy = policy;
    o->write = live_sink_write;
    o->write_data = &sink;
    o->resume = true;
    o->no_headers = true;
    o->inject = BIDE_CURL_INJECT_KEY;
    o->body.kind = BIDE_CURL_BODY_REPEATABLE;
    curl_easy_setopt(easy, CURLOPT_URL, live_server_url(&server, "/a"));
    assert_int_equal(bide_curl_perform(easy, NULL, o, NULL), CURLE_OK);
    free(o);
    free(policy);
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(easy, CURLOPT_URL, live_server_url(&server, "/b"));
    assert_int_equal(curl_easy_perform(easy), CURLE_OK);
    live_expect_text(&sink, "onetwo");
    curl_easy_cleanup(easy);
    live_server_stop(&server);
    assert_int_equal(live_server_request(&server, "/b", 0)->on_connection, 2); /* FRESH_CONNECT is no longer set */
    live_sink_free(&sink);
    live_server_free(&server);
}

static int abort_prereq(void *context, char *ip, char *local_ip, int port, int local_port)
{
    return CURL_PREREQFUNC_ABORT;
}

static void the_caller_s_prereq_can_abort(void **state)
{
    struct live_call c;
    live_call_open(&c, "/a 200", 3);
    c.options.prereq = abort_prereq;
    assert_int_equal(live_call_perform(&c, "/a"), CURLE_ABORTED_BY_CALLBACK);
    live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_CANCELLED, 1);
    live_expect_attempt(&c, 0, CURLE_ABORTED_BY_CALLBACK, BIDE_KIND_CANCELLED, BIDE_EVIDENCE_NOT_SENT);
    live_server_stop(&c.server);
    assert_int_equal(c.server.count, 0);
    live_call_close(&c);
}

int main(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_of_a_retried_attempt_reaches_the_sink),
        cmocka_unit_test(nothing_of_a_retried_attempt_reaches_the_handle_s_write_function),
        cmocka_unit_test(an_encoded_error_body_is_not_decoded_for_a_retry),
        cmocka_unit_test(the_last_failure_is_delivered_once_and_completely),
        cmocka_unit_test(a_last_failure_that_breaks_off_is_an_error),
        cmocka_unit_test(giving_up_a_wait_delivers_the_kept_failure),
        cmocka_unit_test(an_incomplete_or_too_long_kept_body_is_dropped_and_reported),
        cmocka_unit_test(a_body_cut_without_a_sink_is_reported_as_dropped),
        cmocka_unit_test(a_call_cancelled_during_its_wait_writes_nothing_to_the_sink),
        cmocka_unit_test(a_call_cancelled_before_its_start_makes_no_attempt),
        cmocka_unit_test(a_call_cancelled_during_an_attempt_ends_soon),
        cmocka_unit_test(an_endless_error_body_is_read_up_to_the_limit),
        cmocka_unit_test(an_announced_long_error_body_is_cut_at_once),
        cmocka_unit_test(endless_headers_are_a_permanent_failure),
        cmocka_unit_test(a_drained_failure_keeps_its_connection_reusable),
        cmocka_unit_test(a_long_failure_s_connection_is_closed),
        cmocka_unit_test(a_slow_error_body_does_not_delay_the_retry),
        cmocka_unit_test(a_failing_sink_ends_the_call),
        cmocka_unit_test(a_failing_sink_is_a_local_failure),
        cmocka_unit_test(a_sink_that_rejects_a_kept_body_is_a_write_error),
        cmocka_unit_test(a_file_can_be_the_sink),
        cmocka_unit_test(heads_of_retried_failures_are_not_delivered),
        cmocka_unit_test(the_head_of_the_last_failure_is_delivered_before_its_body),
        cmocka_unit_test(a_kept_head_is_delivered_when_the_wait_is_given_up),
        cmocka_unit_test(heads_in_the_sink_are_those_of_the_delivered_response),
        cmocka_unit_test(a_sink_can_pause),
        cmocka_unit_test(a_failing_header_function_ends_the_call),
        cmocka_unit_test(the_handle_has_the_caller_s_values_afterwards),
        cmocka_unit_test(a_plain_perform_afterwards_uses_no_memory_of_the_call),
        cmocka_unit_test(the_caller_s_prereq_can_abort),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    curl_global_cleanup();
    return failed;
}
