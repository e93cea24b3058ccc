/* test_body.c - the request body is sent again byte for byte, or not at all. */
#define _GNU_SOURCE
#include "live_call.h"

#include <bide/clock.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LONG_BODY 300000

static void expect_done(const struct live_call *c, uint32_t attempts)
{
    assert_int_equal(c->code, CURLE_OK);
    live_expect(c, BIDE_ACTION_DONE, BIDE_REASON_SUCCEEDED, attempts);
}

/* Checks that all requests had this body. */
static void expect_bodies(struct live_call *c, size_t count, const void *at, size_t length)
{
    live_server_stop(&c->server);
    assert_int_equal(c->server.count, count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(c->server.seen[i].body_bytes, length);
        assert_int_equal(c->server.seen[i].body_hash, bide_hash(at, length));
    }
}

static void expect_requests(struct live_call *c, size_t count)
{
    live_server_stop(&c->server);
    assert_int_equal(c->server.count, count);
}

/* Returns a long body without repetitions. */
static char *long_body(void)
{
    char *at = malloc(LONG_BODY);
    for (size_t i = 0; i < LONG_BODY; i++)
        at[i] = (char)(i * 31 + i / 251);
    return at;
}

static void open_keyed(struct live_call *c, const char *script)
{
    live_call_open(c, script, 4);
    c->options.safety = BIDE_CURL_KEYED;
    curl_easy_setopt(c->easy, CURLOPT_POST, 1L);
}

/* ---- memory ---- */

static void a_memory_body_is_sent_again_byte_for_byte(void **state)
{
    char *body = long_body();
    struct live_call c;
    open_keyed(&c, "/a 503 | reset | close | 200");
    c.options.body = (struct bide_curl_body){.kind = BIDE_CURL_BODY_MEMORY, .at = body, .length = LONG_BODY};
    live_call_perform(&c, "/a");
    expect_done(&c, 4);
    expect_bodies(&c, 4, body, LONG_BODY);
    live_call_close(&c);
    free(body);
}

static void an_empty_body_is_sent_again(void **state)
{
    static const char *const at[] = {"", NULL};
    for (size_t i = 0; i < 2; i++) {
        struct live_call c;
        open_keyed(&c, "/a 503 | 200");
        c.options.body = (struct bide_curl_body){.kind = BIDE_CURL_BODY_MEMORY, .at = at[i], .length = 0};
        c.policy.attempt_timeout_ns = 5 * BIDE_S; /* in case libcurl tries to read from stdin */
        live_call_perform(&c, "/a");
        expect_done(&c, 2);
        expect_bodies(&c, 2, "", 0);
        assert_string_equal(c.server.seen[1].method, "POST");
        live_call_close(&c);
    }
}

/* ---- memory, sent by PUT ---- */

static struct bide_curl_body put_body(const void *at, size_t length)
{
    return (struct bide_curl_body){.kind = BIDE_CURL_BODY_MEMORY, .at = at, .length = (int64_t)length, .put = true};
}

static void expect_methods(const struct live_call *c, const char *method)
{
    for (size_t i = 0; i < c->server.count; i++)
        assert_string_equal(c->server.seen[i].method, method);
}

static void a_memory_body_is_sent_again_by_put(void **state)
{
    char *body = long_body();
    for (int upload_set = 0; upload_set < 2; upload_set++) {
        struct live_call c;
        live_call_open(&c, "/a 503 | reset | close | 200", 4);
        if (upload_set)
            curl_easy_setopt(c.easy, CURLOPT_UPLOAD, 1L);
        c.options.body = put_body(body, LONG_BODY);
        live_call_perform(&c, "/a");
        expect_done(&c, 4);
        expect_bodies(&c, 4, body, LONG_BODY);
        expect_methods(&c, "PUT");
        live_call_close(&c);
    }
    free(body);
}

static void an_empty_body_is_sent_again_by_put(void **state)
{
    struct live_call c;
    live_call_open(&c, "/a 503 | 200", 4);
    c.options.body = put_body(NULL, 0);
    c.policy.attempt_timeout_ns = 5 * BIDE_S; /* in case libcurl tries to read from stdin */
    live_call_perform(&c, "/a");
    expect_done(&c, 2);
    expect_bodies(&c, 2, "", 0);
    expect_methods(&c, "PUT");
    live_call_close(&c);
}

static void a_put_from_memory_follows_redirects_and_is_retried(void **state)
{
    struct live_call c;
    live_call_open(&c, "/a 307 location=/b\n/b 503 | 308 location=/c\n/c 200", 4);
    curl_easy_setopt(c.easy, CURLOPT_FOLLOWLOCATION, 1L);
    c.options.body = put_body("hello", 5);
    live_call_perform(&c, "/a");
    expect_done(&c, 2);
    expect_bodies(&c, 5, "hello", 5);
    expect_methods(&c, "PUT");
    live_call_close(&c);
}

/* libcurl clears CURLOPT_UPLOAD when it follows a 303. */
static void a_put_that_was_answered_by_303_is_retried(void **state)
{
    struct live_call c;
    live_call_open(&c, "/a 303 location=/b\n/b 503 | 200", 4);
    curl_easy_setopt(c.easy, CURLOPT_FOLLOWLOCATION, 1L);
    c.options.body = put_body("hello", 5);
    live_call_perform(&c, "/a");
    expect_done(&c, 2);
    live_server_stop(&c.server);
    for (size_t i = 0; i < 2; i++) {
        const struct chaos_seen *seen = live_server_request(&c.server, "/a", i);
        assert_string_equal(seen->method, "PUT");
        assert_int_equal(seen->body_bytes, 5);
    }
    live_call_close(&c);
}

static void a_memory_body_without_put_is_a_post_on_an_upload_handle(void **state)
{
    struct live_call c;
    live_call_open(&c, "/a 425 | 200", 4);
    curl_easy_setopt(c.easy, CURLOPT_UPLOAD, 1L);
    c.options.body = (struct bide_curl_body){.kind = BIDE_CURL_BODY_MEMORY, .at = "hello", .length = 5};
    c.policy.attempt_timeout_ns = 5 * BIDE_S; /* in case libcurl tries to read from stdin */
    live_call_perform(&c, "/a");
    expect_done(&c, 2);
    expect_bodies(&c, 2, "hello", 5);
    expect_methods(&c, "POST");
    live_call_close(&c);
}

/* The address sanitizer reports an access to the body. */
static void a_plain_perform_afterwards_sends_an_empty_body(void **state)
{
    for (int put = 0; put < 2; put++) {
        struct live_call c;
        char *body = long_body();
        live_call_open(&c, "/a 200\n/b 200", 4);
        c.options.body = put_body(body, LONG_BODY);
        c.options.body.put = put;
        live_call_perform(&c, "/a");
        expect_done(&c, 1);
        free(body);
        curl_easy_setopt(c.easy, CURLOPT_TIMEOUT_MS, 5000L); /* in case libcurl tries to read from stdin */
        curl_easy_setopt(c.easy, CURLOPT_URL, live_server_url(&c.server, "/b"));
        assert_int_equal(curl_easy_perform(c.easy), CURLE_OK);
        live_server_stop(&c.server);
        const struct chaos_seen *plain = live_server_request(&c.server, "/b", 0);
        assert_string_equal(plain->method, put ? "PUT" : "POST");
        assert_int_equal(plain->body_bytes, 0);
        live_call_close(&c);
    }
}

/* ---- files ---- */

static int file_with(const void *at, size_t length)
{
    char name[] = "/tmp/bide-body-XXXXXX";
    int fd = mkstemp(name);
    assert_true(fd >= 0);
    unlink(name);
    assert_int_equal(write(fd, at, length), (ssize_t)length);
    return fd;
}

static struct bide_curl_body file_body(int fd, int64_t offset, int64_t length)
{
    return (struct bide_curl_body){.kind = BIDE_CURL_BODY_FILE, .fd = fd, .offset = offset, .length = length};
}

static void a_part_of_a_file_is_sent_again_byte_for_byte(void **state)
{
    char *body = long_body();
    int fd = file_with(body, LONG_BODY);
    struct live_call c;
    open_keyed(&c, "/a 503 | reset | 200");
    c.options.body = file_body(fd, 1000, LONG_BODY - 2000);
    lseek(fd, 77, SEEK_SET);
    live_call_perform(&c, "/a");
    expect_done(&c, 3);
    expect_bodies(&c, 3, body + 1000, LONG_BODY - 2000);
    assert_int_equal(lseek(fd, 0, SEEK_CUR), 77); /* the descriptor's own offset is unchanged */
    close(fd);
    live_call_close(&c);
    free(body);
}

static void a_file_is_sent_to_its_end(void **state)
{
    char *body = long_body();
    int fd = file_with(body, LONG_BODY);
    struct live_call c;
    open_keyed(&c, "/a 503 | 200");
    c.options.body = file_body(fd, 5, -1);
    live_call_perform(&c, "/a");
    expect_done(&c, 2);
    expect_bodies(&c, 2, body + 5, LONG_BODY - 5);
    close(fd);
    live_call_close(&c);
    free(body);
}

static void a_file_can_be_sent_by_put(void **state)
{
    int fd = file_with("hello", 5);
    struct live_call c;
    live_call_open(&c, "/a 503 | 200", 4);
    curl_easy_setopt(c.easy, CURLOPT_UPLOAD, 1L);
    c.options.body = file_body(fd, 0, 5);
    live_call_perform(&c, "/a");
    expect_done(&c, 2);
    expect_bodies(&c, 2, "hello", 5);
    assert_string_equal(c.server.seen[0].method, "PUT");
    close(fd);
    live_call_close(&c);
}

/* While POSTFIELDS is set, libcurl calls no read function. */
static void a_file_can_follow_a_memory_body_on_a_handle(void **state)
{
    int fd = file_with("hello, world", 12);
    struct live_call c;
    open_keyed(&c, "/a 200");
    c.options.body = (struct bide_curl_body){.kind = BIDE_CURL_BODY_MEMORY, .at = "x", .length = 1};
    live_call_perform(&c, "/a");
    c.options.body = file_body(fd, 0, 12);
    live_call_perform(&c, "/a");
    expect_done(&c, 1);
    expect_requests(&c, 2);
    assert_int_equal(c.server.seen[1].body_hash, bide_hash("hello, world", 12));
    expect_methods(&c, "POST");
    close(fd);
    live_call_close(&c);
}

static void a_plain_perform_after_a_file_sends_an_empty_body(void **state)
{
    int fd = file_with("hello", 5);
    struct live_call c;
    live_call_open(&c, "/a 200", 4);
    curl_easy_setopt(c.easy, CURLOPT_UPLOAD, 1L);
    c.options.body = file_body(fd, 0, 5);
    live_call_perform(&c, "/a");
    curl_easy_setopt(c.easy, CURLOPT_TIMEOUT_MS, 5000L); /* in case libcurl tries to read from stdin */
    assert_int_equal(curl_easy_perform(c.easy), CURLE_OK);
    expect_requests(&c, 2);
    assert_int_equal(c.server.seen[1].body_bytes, 0);
    expect_methods(&c, "PUT");
    close(fd);
    live_call_close(&c);
}

/* Changes the file after the first response. */
static void change_file(void *context, const struct bide_event *event)
{
    struct live_call *c = context;
    static const struct timespec times[2] = {{12345, 0}, {12345, 6789}};
    if (event->verdict->action == BIDE_ACTION_WAIT || event->verdict->action == BIDE_ACTION_GIVE_UP) {
        assert_int_equal(pwrite(c->options.body.fd, "J", 1, 0), 1);
        assert_int_equal(futimens(c->options.body.fd, times), 0); /* a clock too coarse to show the change */
    }
}

static void a_file_that_changed_is_not_sent_again(void **state)
{
    int fd = file_with("hello", 5);
    struct live_call c;
    open_keyed(&c, "/a 503 body=down");
    c.options.body = file_body(fd, 0, 5);
    c.options.event = change_file;
    c.options.context = &c;
    live_call_perform(&c, "/a");
    assert_int_equal(c.result.verdict.action, BIDE_ACTION_GIVE_UP);
    expect_bodies(&c, 1, "hello", 5);
    live_expect_text(&c.sink, "down"); /* the last response is delivered */
    assert_int_equal(c.result.status, 503);
    close(fd);
    live_call_close(&c);
}

/* libcurl rewinds the body before its replay: that must not hide the change. */
static int change_first(void *context, char *ip, char *local_ip, int port, int local_port)
{
    static const struct timespec times[2] = {{12345, 0}, {12345, 6789}};
    return futimens(*(int *)context, times) == 0 ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT;
}

static void a_file_that_changed_is_not_sent_again_after_a_replay_was_stopped(void **state)
{
    int fd = file_with("hello", 5);
    struct live_call c;
    live_call_open(&c, "/warm 200 reuse=close\n/a 200", 4);
    live_call_perform(&c, "/warm");
    curl_easy_setopt(c.easy, CURLOPT_POST, 1L);
    c.options.safety = BIDE_CURL_KEYED;
    c.options.body = file_body(fd, 0, 5);
    c.options.prereq = change_first;
    c.options.prereq_data = &fd;
    live_call_perform(&c, "/a");
    live_server_stop(&c.server);
    assert_int_equal(live_server_requests(&c.server, "/a"), 1);
    assert_int_equal(c.result.verdict.action, BIDE_ACTION_GIVE_UP);
    close(fd);
    live_call_close(&c);
}

static void a_file_shorter_than_its_length_ends_the_call(void **state)
{
    int fd = file_with("hello", 5);
    struct live_call c;
    open_keyed(&c, "/a 200");
    c.options.body = file_body(fd, 0, 50);
    assert_int_equal(live_call_perform(&c, "/a"), CURLE_ABORTED_BY_CALLBACK);
    live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_CANCELLED, 1);
    close(fd);
    live_call_close(&c);
}

/* ---- streams ---- */

struct stream {
    const char *text;
    size_t at;
    size_t reads;
    size_t seeks;
    bool stuck; /* cannot be rewound */
};

static size_t read_stream(char *into, size_t size, size_t count, void *context)
{
    struct stream *s = context;
    size_t n = strlen(s->text) - s->at;
    n = n < size * count ? n : size * count;
    memcpy(into, s->text + s->at, n);
    s->at += n;
    s->reads++;
    return n;
}

static int seek_stream(void *context, curl_off_t offset, int origin)
{
    struct stream *s = context;
    s->seeks++;
    if (s->stuck)
        return CURL_SEEKFUNC_FAIL;
    s->at = (size_t)offset;
    return origin == SEEK_SET ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_FAIL;
}

static void open_stream(struct live_call *c, struct stream *s, const char *script, bool seekable)
{
    *s = (struct stream){.text = "all of the stream"};
    open_keyed(c, script);
    c->options.body = (struct bide_curl_body){.kind = BIDE_CURL_BODY_STREAM,
                                              .read = read_stream,
                                              .read_data = s,
                                              .seek = seekable ? seek_stream : NULL,
                                              .seek_data = seekable ? s : NULL,
                                              .length = (int64_t)strlen(s->text)};
}

static void a_seekable_stream_is_sent_again(void **state)
{
    for (int chunked = 0; chunked < 2; chunked++) {
        struct live_call c;
        struct stream s;
        open_stream(&c, &s, "/a 503 | reset | 200", true);
        if (chunked)
            c.options.body.length = -1;
        live_call_perform(&c, "/a");
        expect_done(&c, 3);
        expect_bodies(&c, 3, s.text, strlen(s.text));
        assert_true(s.seeks >= 2);
        live_call_close(&c);
    }
}

static void a_failing_seek_ends_the_call_with_the_last_response(void **state)
{
    struct live_call c;
    struct stream s;
    open_stream(&c, &s, "/a 503 body=down", true);
    s.stuck = true;
    live_call_perform(&c, "/a");
    assert_int_equal(c.result.verdict.action, BIDE_ACTION_GIVE_UP);
    live_expect_text(&c.sink, "down");
    assert_int_equal(c.result.status, 503);
    expect_requests(&c, 1);
    live_call_close(&c);
}

static void a_one_shot_stream_is_not_sent_again(void **state)
{
    /* The server reads at least a byte: a response before that would leave the stream unread. */
    static const char *const script[] = {"/a 503 body=down", "/a reset", "/a close", "/a 425",
                                         "/a early=1 503 body=down"};
    for (size_t i = 0; i < sizeof script / sizeof *script; i++) {
        struct live_call c;
        struct stream s;
        open_stream(&c, &s, script[i], false);
        live_call_perform(&c, "/a");
        live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_BODY_SPENT, 1);
        expect_requests(&c, 1);
        live_call_close(&c);
    }
}

static void an_unread_one_shot_stream_is_retried(void **state)
{
    struct live_call c;
    struct stream s;
    struct live_trap trap;
    live_refuser_open(&trap);
    open_stream(&c, &s, "", false);
    live_call_perform_url(&c, trap.url);
    live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_ATTEMPTS_SPENT, 4);
    assert_int_equal(s.reads, 0);
    live_trap_close(&trap);
    live_call_close(&c);
}

/* The server requests the body only in the second attempt. */
static void a_one_shot_stream_without_100_continue_is_sent_by_the_retry(void **state)
{
    struct live_call c;
    struct stream s;
    open_stream(&c, &s, "/a 503 early continue=no | 200", false);
    c.options.headers = curl_slist_append(NULL, "Expect: 100-continue");
    curl_easy_setopt(c.easy, CURLOPT_EXPECT_100_TIMEOUT_MS, 60000L);
    live_call_perform(&c, "/a");
    expect_done(&c, 2);
    live_server_stop(&c.server);
    assert_int_equal(c.server.seen[0].body_bytes, 0);
    assert_int_equal(c.server.seen[1].body_hash, bide_hash(s.text, strlen(s.text)));
    curl_slist_free_all(c.options.headers);
    live_call_close(&c);
}

static void a_partly_read_one_shot_stream_does_not_follow_a_redirect(void **state)
{
    struct live_call c;
    struct stream s;
    open_stream(&c, &s, "/a 307 location=/b\n/b 200", false);
    curl_easy_setopt(c.easy, CURLOPT_FOLLOWLOCATION, 1L);
    assert_int_equal(live_call_perform(&c, "/a"), CURLE_SEND_FAIL_REWIND);
    assert_int_equal(c.result.verdict.action, BIDE_ACTION_GIVE_UP);
    live_server_stop(&c.server);
    assert_int_equal(live_server_requests(&c.server, "/b"), 0);
    live_call_close(&c);
}

static size_t abort_read(char *into, size_t size, size_t count, void *context)
{
    return CURL_READFUNC_ABORT;
}

static void a_stream_can_abort_the_call(void **state)
{
    struct live_call c;
    struct stream s;
    open_stream(&c, &s, "/a 200", true);
    c.options.body.read = abort_read;
    assert_int_equal(live_call_perform(&c, "/a"), CURLE_ABORTED_BY_CALLBACK);
    live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_CANCELLED, 1);
    live_call_close(&c);
}

/* ---- a body set on the handle ---- */

static void an_unknown_body_is_spent_once_sent(void **state)
{
    static const char *const script[] = {"/a 503", "/a reset", "/a close", "/a 425", "/a 421"};
    for (size_t i = 0; i < sizeof script / sizeof *script; i++) {
        struct live_call c;
        live_call_open(&c, script[i], 4);
        c.options.safety = BIDE_CURL_IDEMPOTENT;
        curl_easy_setopt(c.easy, CURLOPT_POSTFIELDS, "mine");
        live_call_perform(&c, "/a");
        live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_BODY_SPENT, 1);
        expect_bodies(&c, 1, "mine", 4);
        live_call_close(&c);
    }
}

static void a_get_or_delete_without_upload_is_not_spent(void **state)
{
    static const char *const method[] = {"GET", "DELETE", "OPTIONS"};
    for (size_t i = 0; i < 3; i++) {
        struct live_call c;
        live_call_open(&c, "/a 503 | reset | 200", 4);
        curl_easy_setopt(c.easy, CURLOPT_CUSTOMREQUEST, method[i]);
        live_call_perform(&c, "/a");
        expect_done(&c, 3);
        live_call_close(&c);
    }
}

static void a_delete_with_upload_is_spent(void **state)
{
    struct live_call c;
    live_call_open(&c, "/a 503 | 200", 4);
    curl_easy_setopt(c.easy, CURLOPT_CUSTOMREQUEST, "DELETE");
    curl_easy_setopt(c.easy, CURLOPT_POSTFIELDS, "mine");
    live_call_perform(&c, "/a");
    live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_BODY_SPENT, 1);
    live_call_close(&c);
}

static void a_repeatable_body_is_sent_again(void **state)
{
    struct live_call c;
    open_keyed(&c, "/a 503 | reset | 200");
    curl_easy_setopt(c.easy, CURLOPT_POSTFIELDS, "mine");
    c.options.body.kind = BIDE_CURL_BODY_REPEATABLE;
    live_call_perform(&c, "/a");
    expect_done(&c, 3);
    expect_bodies(&c, 3, "mine", 4);
    live_call_close(&c);
}

static void a_copied_body_is_sent_again(void **state)
{
    struct live_call c;
    open_keyed(&c, "/a 503 | reset | 200");
    curl_easy_setopt(c.easy, CURLOPT_COPYPOSTFIELDS, (char[]){"mine"});
    c.options.body.kind = BIDE_CURL_BODY_REPEATABLE;
    live_call_perform(&c, "/a");
    expect_done(&c, 3);
    expect_bodies(&c, 3, "mine", 4);
    live_call_close(&c);
}

static void a_repeatable_body_is_sent_again_after_a_redirect_to_get(void **state)
{
    struct live_call c;
    open_keyed(&c, "/a 303 location=/b\n/b 503 | 200");
    curl_easy_setopt(c.easy, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(c.easy, CURLOPT_POSTFIELDS, "mine");
    c.options.body.kind = BIDE_CURL_BODY_REPEATABLE;
    live_call_perform(&c, "/a");
    expect_done(&c, 2);
    live_server_stop(&c.server);
    assert_int_equal(live_server_request(&c.server, "/a", 1)->body_bytes, 4);
    live_call_close(&c);
}

/* Sets a mime with a part of text and a part that is read from the stream, whose size is declared or unknown. */
static curl_mime *set_mime(struct live_call *c, struct stream *s, curl_off_t size)
{
    curl_mime *mime = curl_mime_init(c->easy);
    curl_mimepart *part = curl_mime_addpart(mime);
    curl_mime_name(part, "text");
    curl_mime_data(part, "mine", CURL_ZERO_TERMINATED);
    part = curl_mime_addpart(mime);
    curl_mime_name(part, "stream");
    curl_mime_data_cb(part, size, read_stream, seek_stream, NULL, s);
    curl_easy_setopt(c->easy, CURLOPT_MIMEPOST, mime);
    c->options.body.kind = BIDE_CURL_BODY_REPEATABLE;
    return mime;
}

static void a_mime_with_known_sizes_is_sent_again(void **state)
{
    struct stream s = {.text = "all of the stream"};
    struct live_call c;
    open_keyed(&c, "/a 503 | reset | 200");
    curl_mime *mime = set_mime(&c, &s, (curl_off_t)strlen(s.text));
    live_call_perform(&c, "/a");
    expect_done(&c, 3);
    expect_requests(&c, 3);
    assert_true(c.server.seen[0].body_bytes > strlen(s.text));
    assert_int_equal(c.server.seen[0].body_hash, c.server.seen[1].body_hash);
    assert_int_equal(c.server.seen[0].body_hash, c.server.seen[2].body_hash);
    live_call_close(&c);
    curl_mime_free(mime);
}

static void a_mime_of_unknown_size_is_spent_once_sent(void **state)
{
    struct stream s = {.text = "all of the stream"};
    struct live_call c;
    open_keyed(&c, "/a 503 | 200");
    curl_mime *mime = set_mime(&c, &s, -1);
    live_call_perform(&c, "/a");
    live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_BODY_SPENT, 1);
    live_call_close(&c);
    curl_mime_free(mime);
}

/* ---- a read function on the handle that the caller wrongly declares repeatable ---- */

static void open_upload(struct live_call *c, struct stream *s, const char *script)
{
    *s = (struct stream){.text = "all of the stream"};
    live_call_open(c, script, 4);
    curl_easy_setopt(c->easy, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(c->easy, CURLOPT_READFUNCTION, read_stream);
    curl_easy_setopt(c->easy, CURLOPT_READDATA, s);
    c->options.body.kind = BIDE_CURL_BODY_REPEATABLE;
}

static void a_chunked_read_function_is_spent_once_sent(void **state)
{
    static const char *const script[] = {"/a 503 | 200", "/a reset | 200", "/a close | 200", "/a early=1 503 | 200"};
    for (size_t i = 0; i < sizeof script / sizeof *script; i++) {
        struct live_call c;
        struct stream s;
        open_upload(&c, &s, script[i]);
        live_call_perform(&c, "/a");
        live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_BODY_SPENT, 1);
        expect_requests(&c, 1);
        live_call_close(&c);
    }
}

/* The last leg has no body, but an earlier one read it. */
static void a_chunked_read_function_is_spent_after_a_redirect_to_get(void **state)
{
    struct live_call c;
    struct stream s;
    open_upload(&c, &s, "/a 303 location=/b\n/b 503 | 200");
    curl_easy_setopt(c.easy, CURLOPT_FOLLOWLOCATION, 1L);
    live_call_perform(&c, "/a");
    live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_BODY_SPENT, 1);
    expect_requests(&c, 2);
    live_call_close(&c);
}

static void an_unread_chunked_read_function_is_retried(void **state)
{
    struct live_call c;
    struct stream s;
    struct live_trap trap;
    live_refuser_open(&trap);
    open_upload(&c, &s, "");
    live_call_perform_url(&c, trap.url);
    live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_ATTEMPTS_SPENT, 4);
    live_trap_close(&trap);
    live_call_close(&c);
}

/* libcurl since 8.7 notices that the reader ended before its length. */
static void a_read_function_with_a_length_is_spent_when_a_retry_sends_nothing(void **state)
{
    struct live_call c;
    struct stream s;
    bool libcurl_notices = curl_version_info(CURLVERSION_NOW)->version_num >= 0x080700;
    open_upload(&c, &s, "/a 503 | 200");
    curl_easy_setopt(c.easy, CURLOPT_INFILESIZE, (long)strlen(s.text));
    c.policy.attempt_timeout_ns = BIDE_S;
    live_call_perform(&c, "/a");
    live_expect(&c, BIDE_ACTION_GIVE_UP, libcurl_notices ? BIDE_REASON_CANCELLED : BIDE_REASON_BODY_SPENT, 2);
    assert_int_equal(c.code, libcurl_notices ? CURLE_READ_ERROR : CURLE_OPERATION_TIMEDOUT);
    live_call_close(&c);
}

/* ---- a partly sent body ---- */

/* The server responds after half of the body and keeps the connection: the other half must not be read as a request. */
static void a_partly_sent_body_is_retried_on_a_new_connection(void **state)
{
    size_t length = 8u << 20; /* more than the socket buffers hold */
    char *body = calloc(1, length);
    struct live_call c;
    open_keyed(&c, "/a 503 early=1000 | 200");
    c.options.headers = curl_slist_append(NULL, "Expect:");
    c.options.body = (struct bide_curl_body){.kind = BIDE_CURL_BODY_MEMORY, .at = body, .length = (int64_t)length};
    live_call_perform(&c, "/a");
    expect_done(&c, 2);
    live_server_stop(&c.server);
    const struct chaos_seen *first = live_server_request(&c.server, "/a", 0),
                            *second = live_server_request(&c.server, "/a", 1);
    assert_int_not_equal(first->connection, second->connection);
    assert_true(first->body_bytes < length);
    assert_int_equal(second->body_bytes, length);
    assert_int_equal(second->body_hash, bide_hash(body, length));
    assert_int_equal(live_server_requests(&c.server, "/a"), c.server.count);
    curl_slist_free_all(c.options.headers);
    free(body);
    live_call_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_memory_body_is_sent_again_byte_for_byte),
        cmocka_unit_test(an_empty_body_is_sent_again),
        cmocka_unit_test(a_memory_body_is_sent_again_by_put),
        cmocka_unit_test(an_empty_body_is_sent_again_by_put),
        cmocka_unit_test(a_put_from_memory_follows_redirects_and_is_retried),
        cmocka_unit_test(a_put_that_was_answered_by_303_is_retried),
        cmocka_unit_test(a_memory_body_without_put_is_a_post_on_an_upload_handle),
        cmocka_unit_test(a_plain_perform_afterwards_sends_an_empty_body),
        cmocka_unit_test(a_part_of_a_file_is_sent_again_byte_for_byte),
        cmocka_unit_test(a_file_is_sent_to_its_end),
        cmocka_unit_test(a_file_can_be_sent_by_put),
        cmocka_unit_test(a_file_can_follow_a_memory_body_on_a_handle),
        cmocka_unit_test(a_plain_perform_after_a_file_sends_an_empty_body),
        cmocka_unit_test(a_file_that_changed_is_not_sent_again),
        cmocka_unit_test(a_file_that_changed_is_not_sent_again_after_a_replay_was_stopped),
        cmocka_unit_test(a_file_shorter_than_its_length_ends_the_call),
        cmocka_unit_test(a_seekable_stream_is_sent_again),
        cmocka_unit_test(a_failing_seek_ends_the_call_with_the_last_response),
        cmocka_unit_test(a_one_shot_stream_is_not_sent_again),
        cmocka_unit_test(an_unread_one_shot_stream_is_retried),
        cmocka_unit_test(a_one_shot_stream_without_100_continue_is_sent_by_the_retry),
        cmocka_unit_test(a_partly_read_one_shot_stream_does_not_follow_a_redirect),
        cmocka_unit_test(a_stream_can_abort_the_call),
        cmocka_unit_test(an_unknown_body_is_spent_once_sent),
        cmocka_unit_test(a_get_or_delete_without_upload_is_not_spent),
        cmocka_unit_test(a_delete_with_upload_is_spent),
        cmocka_unit_test(a_repeatable_body_is_sent_again),
        cmocka_unit_test(a_copied_body_is_sent_again),
        cmocka_unit_test(a_repeatable_body_is_sent_again_after_a_redirect_to_get),
        cmocka_unit_test(a_mime_with_known_sizes_is_sent_again),
        cmocka_unit_test(a_mime_of_unknown_size_is_spent_once_sent),
        cmocka_unit_test(a_chunked_read_function_is_spent_once_sent),
        cmocka_unit_test(a_chunked_read_function_is_spent_after_a_redirect_to_get),
        cmocka_unit_test(an_unread_chunked_read_function_is_retried),
        cmocka_unit_test(a_read_function_with_a_length_is_spent_when_a_retry_sends_nothing),
        cmocka_unit_test(a_partly_sent_body_is_retried_on_a_new_connection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
