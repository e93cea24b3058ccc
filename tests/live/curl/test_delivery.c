/* test_delivery.c - delivery to the caller of bide_curl_perform: bodies without a sink, resumed parts, heads in the
 * sink, heads with FAILONERROR; and which codes and options apply. */
#define _GNU_SOURCE
#include "live_call.h"
#include "live_tcp.h"

#include <bide/clock.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void expect_done(const struct live_call *c, uint32_t attempts)
{
    assert_int_equal(c->code, CURLE_OK);
    live_expect(c, BIDE_ACTION_DONE, BIDE_REASON_SUCCEEDED, attempts);
}

/* Opens the breaker when the call starts to wait, so that the call gives up after the wait. */
static void open_when_waiting(void *context, const struct bide_event *event)
{
    struct live_call *c = context;
    if (event->verdict->action == BIDE_ACTION_WAIT)
        bide_breaker_hold(&c->target, BIDE_HOLD_OPEN);
}

/* ---- without a sink ---- */

/* Statuses that libcurl may follow with another leg are reported late, after the handle's write function got the
 * body. */
static void a_body_written_without_a_sink_is_not_followed_by_another(void **state)
{
    static const struct bide_rule rule[] = {{300, 499, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_ANSWERED, 0}};
    static const struct bide_rules rules = {rule, 1, false};
    static const char *const first[] = {"401", "407", "417", "302"};
    for (size_t i = 0; i < 4; i++) {
        struct live_call c;
        char script[64];
        snprintf(script, sizeof script, "/a %s body=first | 200 body=second", first[i]);
        live_call_open(&c, script, 4);
        live_call_without_sink(&c);
        c.options.status_rules = &rules;
        live_call_perform(&c, "/a");
        live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_BODY_DELIVERED, 1);
        live_expect_text(&c.sink, "first");
        live_call_close(&c);
    }
}

static void an_empty_failure_without_a_sink_is_retried(void **state)
{
    static const struct bide_rule rule[] = {{401, 401, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_ANSWERED, 0}};
    static const struct bide_rules rules = {rule, 1, false};
    struct live_call c;
    live_call_open(&c, "/a 401 bytes=0 | 200 body=second", 4);
    live_call_without_sink(&c);
    c.options.status_rules = &rules;
    live_call_perform(&c, "/a");
    expect_done(&c, 2);
    live_expect_text(&c.sink, "second");
    live_call_close(&c);
}

/* ---- resumed bodies ---- */

#define PART(range) "206 header=\"Content-Range: bytes " range "\" "

static void open_resumable(struct live_call *c, const char *script)
{
    live_call_open(c, script, 5);
    c->options.resume = true;
}

static void a_part_with_another_validator_is_not_appended(void **state)
{
    static const char *const script[] = {
        "/a 200 body=AAAAAAAAAA etag=one close=5 | " PART("5-9/10") "body=BBBBB etag=two",
        "/a 200 body=AAAAAAAAAA etag=one close=5 | " PART("5-9/10") "body=BBBBB etag=W/one",
        "/a 200 body=AAAAAAAAAA etag=one close=5 | " PART("5-9/10") "body=BBBBB",
        "/a 200 body=AAAAAAAAAA header=\"Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT\" close=5 | " PART(
            "5-9/10") "body=BBBBB header=\"Last-Modified: Thu, 01 Jan 2026 00:00:01 GMT\""};
    for (size_t i = 0; i < 4; i++) {
        struct live_call c;
        open_resumable(&c, script[i]);
        assert_int_equal(live_call_perform(&c, "/a"), CURLE_PARTIAL_FILE);
        live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_BODY_DELIVERED, 2);
        live_expect_text(&c.sink, "AAAAA");
        assert_false(c.result.resumed);
        live_call_close(&c);
    }
}

/* Version 1, version 2 from its start, then version 1 again: it does not continue version 2. */
static void a_resume_after_a_change_uses_the_new_validator(void **state)
{
    struct live_call c;
    struct bide_text value;
    open_resumable(&c, "/a 200 body=AAAAAAAAAA etag=one close=7 | 200 body=BBBBBBBBBB etag=two close=5 | "
                       "200 ranges body=AAAAAAAAAA etag=one");
    c.options.rewind = live_sink_rewind;
    live_call_perform(&c, "/a");
    expect_done(&c, 3);
    live_expect_text(&c.sink, "AAAAAAAAAA");
    live_server_stop(&c.server);
    assert_true(chaos_seen_header(&c.server.seen[2], "If-Range", &value));
    assert_memory_equal(value.at, "\"two\"", value.length);
    live_call_close(&c);
}

static void a_chunked_part_that_is_too_short_is_resumed_again(void **state)
{
    struct live_call c;
    open_resumable(&c, "/a 200 body=ABCDEFGHIJ etag=v close=4 | " PART("4-9/10") "chunked body=EFG etag=v | " PART(
                           "7-9/10") "body=HIJ etag=v");
    live_call_perform(&c, "/a");
    expect_done(&c, 3);
    live_expect_text(&c.sink, "ABCDEFGHIJ");
    live_call_close(&c);
}

static void a_chunked_part_that_is_too_long_is_not_a_success(void **state)
{
    struct live_call c;
    open_resumable(&c, "/a 200 body=ABCDEFGHIJ etag=v close=4 | " PART("4-9/10") "chunked body=EFGHIJKL etag=v | 416");
    assert_int_not_equal(live_call_perform(&c, "/a"), CURLE_OK);
    assert_int_equal(c.result.verdict.action, BIDE_ACTION_GIVE_UP);
    live_call_close(&c);
}

/* ---- heads in the sink (CURLOPT_HEADER) ---- */

static void open_with_head_in_sink(struct live_call *c, const char *script)
{
    live_call_open(c, script, 4);
    curl_easy_setopt(c->easy, CURLOPT_HEADER, 1L);
}

/* Returns the text after the only head in the sink. */
static const char *body_after_head(const struct live_sink *sink)
{
    const char *end = strstr(sink->at, "\r\n\r\n");
    assert_memory_equal(sink->at, "HTTP/1.1", 8);
    assert_null(strstr(sink->at + 8, "HTTP/1.1"));
    assert_non_null(end);
    return end + 4;
}

static void a_body_with_its_head_in_the_sink_is_not_resumed(void **state)
{
    struct live_call c;
    open_with_head_in_sink(&c, "/a 200 body=ABCDEFGHIJ etag=v close=half | 200 ranges body=ABCDEFGHIJ etag=v");
    c.options.resume = true;
    assert_int_equal(live_call_perform(&c, "/a"), CURLE_PARTIAL_FILE);
    live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_BODY_DELIVERED, 1);
    assert_string_equal(body_after_head(&c.sink), "ABCDE");
    live_call_close(&c);
}

static void a_body_with_its_head_in_the_sink_starts_over_with_its_head(void **state)
{
    struct live_call c;
    open_with_head_in_sink(&c, "/a 200 body=ABCDEFGHIJ etag=v close=half | 200 ranges body=ABCDEFGHIJ etag=v");
    c.options.resume = true;
    c.options.rewind = live_sink_rewind;
    live_call_perform(&c, "/a");
    expect_done(&c, 2);
    assert_string_equal(body_after_head(&c.sink), "ABCDEFGHIJ");
    assert_int_equal(c.sink.rewinds, 1);
    live_call_close(&c);
}

/* Few lines, but more bytes than BIDE_CURL_HEAD_MAX. */
static void serve_long_head(void *context, int fd, unsigned number)
{
    static const char status[] = "HTTP/1.1 200 OK\r\nX-Long: ";
    char line[65536], head[4096];
    memset(line, 'a', sizeof line);
    memcpy(line + sizeof line - 10, "\r\nX-Long: ", 10);
    bool open = live_tcp_read_head(fd, head, sizeof head) && live_tcp_write(fd, status, sizeof status - 1);
    while (open)
        open = live_tcp_write(fd, line, sizeof line);
}

static void a_head_too_long_for_the_sink_is_a_permanent_failure(void **state)
{
    struct live_call c;
    char url[64];
    struct live_tcp *server = live_tcp_new(serve_long_head, NULL);
    open_with_head_in_sink(&c, "");
    snprintf(url, sizeof url, "http://127.0.0.1:%u/", live_tcp_port(server));
    assert_int_equal(live_call_perform_url(&c, url), CURLE_WEIRD_SERVER_REPLY);
    live_expect_attempt(&c, 0, CURLE_WEIRD_SERVER_REPLY, BIDE_KIND_PERMANENT, BIDE_EVIDENCE_UNKNOWN);
    assert_int_equal(c.sink.length, 0);
    live_call_close(&c);
    live_tcp_free(server);
}

static void serve_long_line(void *context, int fd, unsigned number)
{
    static const char start[] = "HTTP/1.1 200 OK\r\nX-Long: ";
    static char piece[65536];
    char head[1024];
    memset(piece, 'x', sizeof piece);
    bool open = live_tcp_read_head(fd, head, sizeof head) && live_tcp_write(fd, start, sizeof start - 1);
    while (open)
        open = live_tcp_write(fd, piece, sizeof piece);
}

/* libcurl 7.88 reports it as a lack of memory, which would be a cancellation. */
static void a_header_line_beyond_libcurls_limit_is_a_permanent_failure(void **state)
{
    struct live_call c;
    char url[64];
    struct live_tcp *server = live_tcp_new(serve_long_line, NULL);
    live_call_open(&c, "", 4);
    snprintf(url, sizeof url, "http://127.0.0.1:%u/", live_tcp_port(server));
    assert_int_not_equal(live_call_perform_url(&c, url), CURLE_OK);
    live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_PERMANENT, 1);
    if (c.code == CURLE_WEIRD_SERVER_REPLY)
        assert_non_null(strstr(c.result.error, "the response head exceeds the limit"));
    live_call_close(&c);
    live_tcp_free(server);
}

static void problem_details_after_a_head_in_the_sink_are_read(void **state)
{
    struct live_call c;
    open_with_head_in_sink(&c, "/a 503 type=application/problem+json body=\"{\\\"retry_after\\\":86400}\"");
    assert_int_equal(live_call_perform(&c, "/a"), CURLE_OK);
    live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_HINT_TOO_LONG, 1);
    assert_int_equal(c.result.attempt[0].hint.wait_ns, 86400 * BIDE_S);
    assert_string_equal(body_after_head(&c.sink), "{\"retry_after\":86400}");
    live_call_close(&c);
}

/* A success whose held body is "later" is transient. */
static void classify_later(void *context, const struct bide_curl_response *response, struct bide_outcome *outcome)
{
    struct bide_text body = response->body;
    if (!body.at)
        return;
    assert_true(response->whole);
    assert_int_equal(body.length, 5);
    if (memcmp(body.at, "later", 5) == 0)
        outcome->kind = BIDE_KIND_TRANSIENT;
}

static void classify_sees_the_body_without_the_head_in_the_sink(void **state)
{
    struct live_call c;
    open_with_head_in_sink(&c, "/a 200 body=later | 200 body=today");
    c.options.classify = classify_later;
    c.options.hold_max = 5;
    live_call_perform(&c, "/a");
    expect_done(&c, 2);
    assert_string_equal(body_after_head(&c.sink), "today");
    live_call_close(&c);
}

static void a_failure_is_kept_with_its_head_in_the_sink(void **state)
{
    struct live_call c;
    char text[64];
    snprintf(text, sizeof text, "/a 503 bytes=%u", BIDE_CURL_KEEP_MAX);
    open_with_head_in_sink(&c, text);
    c.options.event = open_when_waiting;
    c.options.context = &c;
    assert_int_equal(live_call_perform(&c, "/a"), CURLE_OK);
    live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_BREAKER_OPEN, 1);
    assert_int_equal(strlen(body_after_head(&c.sink)), BIDE_CURL_KEEP_MAX);
    live_call_close(&c);
}

/* ---- credentials ---- */

static bool count_and_agree(void *context, CURL *easy)
{
    ++*(int *)context;
    return true;
}

static void a_401_too_long_to_hold_is_refreshed(void **state)
{
    static const char *const script[] = {"/a 401 bytes=100000 | 200 body=fine",
                                         "/a 401 bytes=100000 chunked | 200 body=fine",
                                         "/a 401 endless=body chunked | 200 body=fine"};
    for (size_t i = 0; i < 6; i++) {
        struct live_call c;
        int calls = 0;
        live_call_open(&c, script[i / 2], 4);
        if (i % 2 == 0)
            live_call_without_sink(&c);
        c.options.refresh = count_and_agree;
        c.options.context = &calls;
        live_call_perform(&c, "/a");
        expect_done(&c, 1);
        assert_int_equal(calls, 1);
        assert_int_equal(c.result.refreshed, 1);
        live_expect_text(&c.sink, "fine");
        live_call_close(&c);
    }
}

/* ---- options ---- */

static void a_curl_rule_sets_the_evidence(void **state)
{
    static const struct bide_rule rule[] = {
        {CURLE_GOT_NOTHING, CURLE_GOT_NOTHING, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_REJECTED, 0}};
    static const struct bide_rules rules = {rule, 1, false};
    struct live_call c;
    live_call_open(&c, "/a close | 200", 4);
    c.options.curl_rules = &rules;
    live_call_post(&c, "charge=1");
    live_call_perform(&c, "/a");
    expect_done(&c, 2);
    live_expect_attempt(&c, 0, CURLE_GOT_NOTHING, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_REJECTED);
    live_call_close(&c);
}

/* A stopped replay is not a code of libcurl: no rule applies to it. */
static void a_curl_rule_does_not_apply_to_a_stopped_replay(void **state)
{
    static const struct bide_rule rule[] = {{0, 200, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_REJECTED, 0}};
    static const struct bide_rules rules = {rule, 1, false};
    struct live_call c;
    live_call_open(&c, "/warm 200 reuse=close\n/a 200", 4);
    live_call_perform(&c, "/warm");
    c.options.curl_rules = &rules;
    live_call_post(&c, "charge=1");
    live_call_perform(&c, "/a");
    live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_NOT_REPEATABLE, 1);
    live_server_stop(&c.server);
    assert_int_equal(live_server_requests(&c.server, "/a"), 1);
    live_call_close(&c);
}

static void header_data_without_a_function_is_rejected(void **state)
{
    struct live_call c;
    struct live_trap trap;
    struct bide_problem problem = {0};
    live_trap_open(&trap);
    live_call_open(&c, "", 4);
    c.options.header_data = stderr;
    assert_int_equal(bide_curl_options_check(&c.options, &problem), BIDE_ERR_INVALID);
    assert_string_equal(problem.field, "header_data");
    assert_int_equal(live_call_perform_url(&c, trap.url), CURLE_BAD_FUNCTION_ARGUMENT);
    assert_false(live_trap_sprung(&trap));
    live_trap_close(&trap);
    live_call_close(&c);
}

static int expect_no_data(void *context, char *ip, char *local_ip, int port, int local_port)
{
    assert_null(context);
    return CURL_PREREQFUNC_OK;
}

static void the_guard_is_removed_from_the_handle(void **state)
{
    struct live_call c;
    live_call_open(&c, "/a 200", 4);
    live_call_perform(&c, "/a");
    expect_done(&c, 1);
    curl_easy_setopt(c.easy, CURLOPT_PREREQFUNCTION, expect_no_data);
    assert_int_equal(curl_easy_perform(c.easy), CURLE_OK);
    live_call_close(&c);
}

/* ---- compared with bare libcurl ---- */

/* Stores the head that bare libcurl passes to the header function. */
static void perform_bare(struct live_call *c, const char *path, struct live_sink *heads)
{
    live_sink_free(heads);
    curl_easy_setopt(c->easy, CURLOPT_URL, live_server_url(&c->server, path));
    curl_easy_setopt(c->easy, CURLOPT_HEADERFUNCTION, live_sink_write);
    curl_easy_setopt(c->easy, CURLOPT_HEADERDATA, heads);
    assert_int_equal(curl_easy_perform(c->easy), CURLE_HTTP_RETURNED_ERROR);
}

static void failonerror_delivers_the_head_of_the_last_failure(void **state)
{
    static const char *const path[] = {"/permanent", "/spent", "/denied", "/wait"};
    struct live_call c;
    struct live_sink bare = {0}, ours = {0};
    live_call_open(&c, "/permanent 404 date=none\n/spent 503 date=none\n/denied 401 date=none\n/wait 503 date=none", 3);
    curl_easy_setopt(c.easy, CURLOPT_FAILONERROR, 1L);
    c.options.header = live_sink_write;
    c.options.header_data = &ours;
    c.options.context = &c;
    for (size_t i = 0; i < 4; i++) {
        perform_bare(&c, path[i], &bare);
        live_sink_free(&ours);
        c.options.event = i == 3 ? open_when_waiting : NULL;
        assert_int_equal(live_call_perform(&c, path[i]), CURLE_HTTP_RETURNED_ERROR);
        assert_int_equal(c.result.attempts, i == 1 ? 3 : 1);
        assert_int_equal(c.sink.length, 0);
        assert_true(bare.length > 0);
        live_expect_text(&ours, bare.at);
    }
    live_sink_free(&bare);
    live_sink_free(&ours);
    live_call_close(&c);
}

static void write_file(const char *path, const char *text, size_t times)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    while (times-- > 0)
        fputs(text, file);
    fclose(file);
}

static void a_file_url_that_looks_like_a_response_is_delivered(void **state)
{
    static const char text[] = "HTTP/1.1 503 is what this file begins with\r\n\r\n";
    static const size_t times[] = {1, 1000, 10000};
    char url[] = "file:///tmp/bide-review-XXXXXX", *path = url + strlen("file://");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    for (size_t i = 0; i < 3; i++) {
        struct live_call c;
        write_file(path, text, times[i]);
        live_call_open(&c, "", 3);
        live_call_perform_url(&c, url);
        expect_done(&c, 1);
        assert_int_equal(c.sink.length, strlen(text) * times[i]);
        assert_memory_equal(c.sink.at, text, strlen(text));
        live_call_close(&c);
    }
    close(fd);
    unlink(path);
}

/* ---- connections ---- */

struct reader {
    const char *at;
};

static size_t read_text(char *into, size_t size, size_t count, void *context)
{
    struct reader *r = context;
    size_t n = strlen(r->at) < size * count ? strlen(r->at) : size * count;
    memcpy(into, r->at, n);
    r->at += n;
    return n;
}

static void a_chunked_upload_keeps_its_connection_reusable(void **state)
{
    struct live_call c;
    struct reader r;
    live_call_open(&c, "/a 200", 3);
    curl_easy_setopt(c.easy, CURLOPT_UPLOAD, 1L);
    c.options.body =
        (struct bide_curl_body){.kind = BIDE_CURL_BODY_STREAM, .read = read_text, .read_data = &r, .length = -1};
    for (int i = 0; i < 3; i++) {
        r.at = "some text";
        live_call_perform(&c, "/a");
        expect_done(&c, 1);
    }
    live_server_stop(&c.server);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(c.server.seen[i].connection, 1);
        assert_int_equal(c.server.seen[i].body_hash, bide_hash("some text", 9));
    }
    live_call_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_body_written_without_a_sink_is_not_followed_by_another),
        cmocka_unit_test(an_empty_failure_without_a_sink_is_retried),
        cmocka_unit_test(a_part_with_another_validator_is_not_appended),
        cmocka_unit_test(a_resume_after_a_change_uses_the_new_validator),
        cmocka_unit_test(a_chunked_part_that_is_too_short_is_resumed_again),
        cmocka_unit_test(a_chunked_part_that_is_too_long_is_not_a_success),
        cmocka_unit_test(a_body_with_its_head_in_the_sink_is_not_resumed),
        cmocka_unit_test(a_body_with_its_head_in_the_sink_starts_over_with_its_head),
        cmocka_unit_test(a_head_too_long_for_the_sink_is_a_permanent_failure),
        cmocka_unit_test(a_header_line_beyond_libcurls_limit_is_a_permanent_failure),
        cmocka_unit_test(problem_details_after_a_head_in_the_sink_are_read),
        cmocka_unit_test(classify_sees_the_body_without_the_head_in_the_sink),
        cmocka_unit_test(a_failure_is_kept_with_its_head_in_the_sink),
        cmocka_unit_test(a_401_too_long_to_hold_is_refreshed),
        cmocka_unit_test(a_curl_rule_sets_the_evidence),
        cmocka_unit_test(a_curl_rule_does_not_apply_to_a_stopped_replay),
        cmocka_unit_test(header_data_without_a_function_is_rejected),
        cmocka_unit_test(the_guard_is_removed_from_the_handle),
        cmocka_unit_test(failonerror_delivers_the_head_of_the_last_failure),
        cmocka_unit_test(a_file_url_that_looks_like_a_response_is_delivered),
        cmocka_unit_test(a_chunked_upload_keeps_its_connection_reusable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
