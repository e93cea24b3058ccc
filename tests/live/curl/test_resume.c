/* test_resume.c - a body that breaks off after part of it was delivered ends the call, unless the sink can be rewound
 * or the rest provably continues it. */
#include "live_call.h"

#include <stdio.h>
#include <string.h>

/* ---- a body that breaks off ---- */

static void expect_broken(struct live_call *c, CURLcode code, size_t delivered)
{
    assert_int_equal(c->code, code);
    live_expect(c, BIDE_ACTION_GIVE_UP, BIDE_REASON_BODY_DELIVERED, 1);
    assert_int_equal(c->result.attempt[0].evidence, BIDE_EVIDENCE_BODY_DELIVERED);
    live_expect_pattern(&c->sink, delivered);
}

static void a_partly_delivered_body_that_breaks_off_ends_the_call(void **state)
{
    for (int sink = 0; sink < 2; sink++) {
        struct live_call c;
        live_call_open(&c, "/a 200 bytes=1000 close=half | 200 body=fine", 4);
        if (!sink)
            live_call_without_sink(&c);
        live_call_perform(&c, "/a");
        expect_broken(&c, CURLE_PARTIAL_FILE, 500);
        live_server_stop(&c.server);
        assert_int_equal(c.server.count, 1);
        live_call_close(&c);
    }
}

static void a_body_that_breaks_off_before_its_first_byte_is_retried(void **state)
{
    static const char *const script[] = {"/a 200 bytes=1000 close=headers | 200 body=fine",
                                         "/a 200 bytes=1000 reset=headers | 200 body=fine",
                                         "/a 200 bytes=1000 chunked reset=headers | 200 body=fine"};
    for (size_t i = 0; i < 3; i++)
        for (int sink = 0; sink < 2; sink++)
            live_expect_last_response_only(script[i], 2, sink);
}

static void a_post_whose_response_breaks_off_is_not_retried(void **state)
{
    static const char *const script[] = {"/a 200 bytes=1000 close=headers", "/a 200 bytes=1000 close=half",
                                         "/a 200 bytes=1000 reset=half"};
    for (size_t i = 0; i < 3; i++) {
        struct live_call c;
        live_call_open(&c, script[i], 4);
        live_call_post(&c, "x");
        c.options.rewind = live_sink_rewind;
        assert_int_not_equal(live_call_perform(&c, "/a"), CURLE_OK);
        live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_NOT_REPEATABLE, 1);
        live_server_stop(&c.server);
        assert_int_equal(c.server.count, 1);
        live_call_close(&c);
    }
}

static void a_rewound_sink_gets_the_body_from_the_start(void **state)
{
    struct live_call c;
    live_call_open(&c, "/a 200 bytes=1000 close=half | 503 bytes=10 | 200 bytes=999 close=half | 200 body=fine", 9);
    c.options.rewind = live_sink_rewind;
    live_call_perform(&c, "/a");
    live_expect_done(&c, 4);
    assert_int_equal(c.sink.rewinds, 2);
    live_expect_text(&c.sink, "fine");
    live_call_close(&c);
}

static bool cannot_rewind(void *context)
{
    return false;
}

static void a_failing_rewind_ends_the_call(void **state)
{
    struct live_call c;
    live_call_open(&c, "/a 200 bytes=1000 close=half | 200 body=fine", 9);
    c.options.rewind = cannot_rewind;
    assert_int_not_equal(live_call_perform(&c, "/a"), CURLE_OK);
    assert_int_equal(c.result.verdict.action, BIDE_ACTION_GIVE_UP);
    live_expect_pattern(&c.sink, 500);
    live_server_stop(&c.server);
    assert_int_equal(c.server.count, 1);
    live_call_close(&c);
}

/* ---- resume ---- */

#define WHOLE "bytes=1000 etag=v1"

static void open_resumable(struct live_call *c, const char *script)
{
    live_call_open(c, script, 6);
    c->options.resume = true;
}

static void expect_range(const struct chaos_seen *seen, const char *range, const char *validator)
{
    struct bide_text value;
    assert_true(chaos_seen_header(seen, "Range", &value));
    assert_int_equal(value.length, strlen(range));
    assert_memory_equal(value.at, range, value.length);
    assert_true(chaos_seen_header(seen, "If-Range", &value));
    assert_int_equal(value.length, strlen(validator));
    assert_memory_equal(value.at, validator, value.length);
}

static void a_broken_body_is_resumed_at_its_end(void **state)
{
    struct bide_text value;
    struct live_call c;
    open_resumable(&c, "/a 200 " WHOLE " close=half | 200 ranges " WHOLE);
    live_call_perform(&c, "/a");
    live_expect_done(&c, 2);
    assert_true(c.result.resumed);
    live_expect_pattern(&c.sink, 1000);
    live_server_stop(&c.server);
    assert_false(chaos_seen_header(&c.server.seen[0], "Range", &value));
    expect_range(&c.server.seen[1], "bytes=500-", "\"v1\"");
    live_call_close(&c);
}

static void a_body_can_be_resumed_several_times(void **state)
{
    struct live_call c;
    open_resumable(&c,
                   "/a 200 " WHOLE " close=half | 503 | 200 ranges " WHOLE " reset=100 | reset | 200 ranges " WHOLE);
    live_call_perform(&c, "/a");
    live_expect_done(&c, 5);
    live_expect_pattern(&c.sink, 1000);
    live_server_stop(&c.server);
    expect_range(&c.server.seen[1], "bytes=500-", "\"v1\"");
    live_call_close(&c);
}

static void an_old_enough_date_is_a_validator(void **state)
{
    static const char date[] = "Thu, 01 Jan 2026 00:00:00 GMT";
    struct live_call c;
    char script[256];
    snprintf(script, sizeof script,
             "/a 200 bytes=1000 header=\"Last-Modified: %s\" close=half"
             " | 206 header=\"Content-Range: bytes 500-999/1000\" bytes=500",
             date);
    open_resumable(&c, script);
    live_call_perform(&c, "/a");
    live_expect_done(&c, 2);
    live_server_stop(&c.server);
    expect_range(&c.server.seen[1], "bytes=500-", date);
    live_call_close(&c);
}

#define OLD "header=\"Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT\""

/* A part that does not provably continue the body is not appended. */
static void expect_no_resume(const char *script)
{
    struct live_call c;
    open_resumable(&c, script);
    live_call_perform(&c, "/a");
    expect_broken(&c, CURLE_PARTIAL_FILE, 500);
    assert_false(c.result.resumed);
    live_call_close(&c);
}

static void without_a_strong_validator_nothing_is_resumed(void **state)
{
    expect_no_resume("/a 200 bytes=1000 close=half");
    expect_no_resume("/a 200 bytes=1000 etag=W/v1 close=half");
    expect_no_resume("/a 200 bytes=1000 header=\"ETag: v1\" close=half");
    expect_no_resume("/a 200 bytes=1000 etag=W/v1 " OLD " close=half");
    expect_no_resume("/a 200 " WHOLE " header=\"ETag: \\\"v2\\\"\" close=half");
    expect_no_resume("/a 200 bytes=1000 header=\"Last-Modified: nonsense\" close=half");
    expect_no_resume("/a 200 bytes=1000 date=\"Thu, 01 Jan 2026 00:00:30 GMT\""
                     " header=\"Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT\" close=half");
    expect_no_resume("/a 200 " WHOLE " date=none header=\"Content-Encoding: gzip\" close=half");
    expect_no_resume("/a 200 " WHOLE " header=\"Accept-Ranges: none\" close=half");
    expect_no_resume("/a 203 " WHOLE " close=half");
}

/* The second response does not continue the first, which has these fields. */
static void expect_not_appended_to(const char *first, const char *second, uint32_t attempts)
{
    struct live_call c;
    char script[512];
    snprintf(script, sizeof script, "/a 200 bytes=1000 %s close=half | %s", first, second);
    open_resumable(&c, script);
    assert_int_equal(live_call_perform(&c, "/a"), CURLE_PARTIAL_FILE);
    assert_int_equal(c.result.verdict.action, BIDE_ACTION_GIVE_UP);
    assert_int_equal(c.result.attempts, attempts);
    assert_true(c.result.body_dropped);
    live_expect_pattern(&c.sink, 500);
    live_call_close(&c);
}

static void expect_not_appended(const char *second, uint32_t attempts)
{
    expect_not_appended_to("etag=v1", second, attempts);
}

#define RANGE(r) "206 bytes=500 etag=v1 header=\"Content-Range: " r "\""

static void a_part_that_does_not_fit_is_not_appended(void **state)
{
    expect_not_appended("200 bytes=1000 etag=v2", 2);
    expect_not_appended("206 bytes=500", 2);
    expect_not_appended(RANGE("bytes 499-998/1000"), 2);
    expect_not_appended(RANGE("bytes 501-1000/1001"), 2);
    expect_not_appended(RANGE("bytes 500-999/2000"), 2);
    expect_not_appended(RANGE("bytes 500-999"), 2);
    expect_not_appended(RANGE("bytes 500-999/*"), 2);
    expect_not_appended(RANGE("bytes */1000"), 2);
    expect_not_appended(RANGE("lines 500-999/1000"), 2);
    expect_not_appended(RANGE("bytes 18446744073709552116-18446744073709552615/1000"), 2);
    expect_not_appended(RANGE("bytes 500-999/1000") " header=\"Content-Encoding: br\"", 2);
    expect_not_appended(RANGE("bytes 500-999/1000") " header=\"Content-Range: bytes 0-499/1000\"", 2);
    expect_not_appended(RANGE("bytes 500-999/1000") " header=\"ETag: \\\"v2\\\"\"", 2);
    expect_not_appended_to(OLD, RANGE("bytes 500-999/1000"), 2);
    expect_not_appended("416", 2);
    expect_not_appended("404 body=gone", 2);
    expect_not_appended("503 body=down", 6);
}

/* The length of a chunked body is unknown, so only the range itself shows that it is empty. */
static void an_empty_part_does_not_complete_a_body(void **state)
{
    struct live_call c;
    open_resumable(&c, "/a 200 " WHOLE " chunked close=half | 206 etag=v1 header=\"Content-Range: bytes 500-499/500\"");
    assert_int_equal(live_call_perform(&c, "/a"), CURLE_PARTIAL_FILE);
    assert_int_equal(c.result.attempts, 2);
    assert_true(c.result.body_dropped);
    live_expect_pattern(&c.sink, 500);
    live_call_close(&c);
}

static void a_response_that_does_not_fit_is_drained_up_to_the_limit(void **state)
{
    struct live_call c;
    curl_off_t size = -1;
    open_resumable(&c, "/a 200 " WHOLE " close=half | 404 endless=body chunked");
    assert_int_equal(live_call_perform(&c, "/a"), CURLE_PARTIAL_FILE);
    curl_easy_getinfo(c.easy, CURLINFO_SIZE_DOWNLOAD_T, &size);
    assert_true(size >= 0 && size < 3 * BIDE_CURL_KEEP_MAX);
    live_expect_pattern(&c.sink, 500);
    live_call_close(&c);
}

static void a_part_that_ends_early_is_not_a_success(void **state)
{
    struct live_call c;
    open_resumable(&c, "/a 200 " WHOLE " close=half | 206 bytes=300 header=\"Content-Range: bytes 500-799/1000\"");
    live_call_perform(&c, "/a");
    assert_int_not_equal(c.code, CURLE_OK);
    assert_int_equal(c.result.verdict.action, BIDE_ACTION_GIVE_UP);
    live_call_close(&c);
}

static void an_unchanged_body_is_resumed_despite_rewind(void **state)
{
    struct live_call c;
    open_resumable(&c, "/a 200 " WHOLE " close=half | 200 ranges " WHOLE);
    c.options.rewind = live_sink_rewind;
    live_call_perform(&c, "/a");
    live_expect_done(&c, 2);
    live_expect_pattern(&c.sink, 1000);
    assert_true(c.result.resumed);
    assert_int_equal(c.sink.rewinds, 0);
    live_call_close(&c);
}

static void a_changed_body_starts_over_with_rewind(void **state)
{
    struct live_call c;
    open_resumable(&c, "/a 200 " WHOLE " close=half | 200 ranges bytes=700 etag=v2");
    c.options.rewind = live_sink_rewind;
    live_call_perform(&c, "/a");
    live_expect_done(&c, 2);
    live_expect_pattern(&c.sink, 700);
    assert_int_equal(c.sink.rewinds, 1);
    assert_false(c.result.resumed);
    live_call_close(&c);
}

/* The bytes in the sink can be removed, so nothing forbids to begin anew. */
static void a_part_that_does_not_fit_starts_over_with_rewind(void **state)
{
    static const struct {
        const char *second;
        enum bide_curl_mismatch mismatch;
    } row[] = {{"206 bytes=500", BIDE_CURL_MISMATCH_NO_RANGE},
               {"206 bytes=500 type=multipart/byteranges;boundary=x", BIDE_CURL_MISMATCH_PARTS},
               {RANGE("bytes */1000"), BIDE_CURL_MISMATCH_NO_RANGE},
               {RANGE("bytes 499-998/1000"), BIDE_CURL_MISMATCH_RANGE},
               {RANGE("bytes 500-999/2000"), BIDE_CURL_MISMATCH_LENGTH},
               {RANGE("bytes 500-799/1000"), BIDE_CURL_MISMATCH_RANGE},
               {RANGE("bytes 500-999/*"), BIDE_CURL_MISMATCH_UNKNOWN},
               {RANGE("bytes 500-999/1000") " header=\"Content-Encoding: br\"", BIDE_CURL_MISMATCH_ENCODED},
               {"206 bytes=500 etag=v2 header=\"Content-Range: bytes 500-999/1000\"", BIDE_CURL_MISMATCH_CHANGED},
               {"416 header=\"Content-Range: bytes */400\"", BIDE_CURL_MISMATCH_STATUS},
               {"416 body=no", BIDE_CURL_MISMATCH_STATUS}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct live_call c;
        char script[512];
        snprintf(script, sizeof script,
                 "/a 200 " WHOLE " close=half | %s | 200 bytes=700 etag=v2 close=half | 200 bytes=700", row[i].second);
        open_resumable(&c, script);
        c.options.rewind = live_sink_rewind;
        live_call_perform(&c, "/a");
        live_expect_done(&c, 4);
        live_expect_pattern(&c.sink, 700);
        assert_int_equal(c.result.attempt[1].evidence, BIDE_EVIDENCE_ANSWERED);
        assert_int_equal(c.result.attempt[1].mismatch, row[i].mismatch);
        assert_int_equal(c.result.attempt[2].mismatch, BIDE_CURL_MISMATCH_NONE);
        assert_false(c.result.resumed);
        live_server_stop(&c.server);
        expect_range(&c.server.seen[1], "bytes=500-", "\"v1\"");
        for (size_t n = 2; n < 4; n++) { /* no range after one that did not fit */
            struct bide_text range;
            assert_false(chaos_seen_header(&c.server.seen[n], "Range", &range));
        }
        live_call_close(&c);
    }
}

/* A 416 would otherwise be permanent, which is not why the call ends: the sink has bytes that it cannot remove. */
static void without_rewind_the_result_names_what_did_not_fit(void **state)
{
    static const struct {
        const char *second, *error;
    } row[] = {
        {"416", "status 416 instead of the rest of the body after 2 attempts: part of the response was delivered"},
        {"200 bytes=1000 etag=v2", "status 200 of a changed body after 2 attempts: part of the response"},
        {"200 " WHOLE, "status 200 instead of the rest of the body after 2 attempts: part of the response"},
        {RANGE("bytes 500-999/*"), "status 206 with an unknown length after 2 attempts: part of the response"}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct live_call c;
        char script[256];
        snprintf(script, sizeof script, "/a 200 " WHOLE " close=half | %s", row[i].second);
        open_resumable(&c, script);
        assert_int_equal(live_call_perform(&c, "/a"), CURLE_PARTIAL_FILE);
        live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_BODY_DELIVERED, 2);
        assert_memory_equal(c.result.error, row[i].error, strlen(row[i].error));
        live_expect_pattern(&c.sink, 500);
        live_call_close(&c);
    }
}

static void a_part_that_never_fits_is_given_up_with_the_number_of_attempts(void **state)
{
    struct live_call c;
    open_resumable(&c, "/a 200 " WHOLE " close=half | 416");
    c.options.rewind = live_sink_rewind;
    c.policy.attempts_max = 2;
    assert_int_not_equal(live_call_perform(&c, "/a"), CURLE_OK);
    live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_ATTEMPTS_SPENT, 2);
    assert_true(c.result.body_dropped);
    assert_int_equal(c.sink.length, 0); /* no later call can resume it, either */
    live_call_close(&c);
}

/* The replacement breaks off as well: its validator is used for the resume. */
static void a_changed_body_that_breaks_off_again_is_not_mixed(void **state)
{
    struct live_call c;
    open_resumable(&c, "/a 200 " WHOLE " close=half | 200 bytes=700 etag=v2 close=600 | 200 ranges bytes=700 etag=v2");
    c.options.rewind = live_sink_rewind;
    live_call_perform(&c, "/a");
    live_expect_done(&c, 3);
    live_expect_pattern(&c.sink, 700);
    live_call_close(&c);
}

static void a_post_is_not_resumed(void **state)
{
    struct live_call c;
    open_resumable(&c, "/a 200 " WHOLE " close=half | 200 ranges " WHOLE);
    live_call_post(&c, "x");
    c.options.safety = BIDE_CURL_IDEMPOTENT;
    live_call_perform(&c, "/a");
    expect_broken(&c, CURLE_PARTIAL_FILE, 500);
    live_call_close(&c);
}

/* ---- a part from an earlier call ---- */

/* The first call breaks off, the second resumes what it left in the sink. `rewind`: both can empty the sink. */
struct two_calls {
    struct live_call c;
    struct bide_curl_resume_from from;
    char validator[64];
};

static void note_validator(void *context, const struct bide_curl_response *response, struct bide_outcome *outcome)
{
    struct two_calls *two = context;
    bide_curl_validator(two->validator, sizeof two->validator, response->easy);
}

static void two_calls_begin(struct two_calls *two, const char *script)
{
    open_resumable(&two->c, script);
    two->c.options.classify = note_validator;
    two->c.options.context = two;
    two->c.policy.attempts_max = 1;
    live_call_perform(&two->c, "/a");
    assert_int_not_equal(two->c.code, CURLE_OK);
    two->from = (struct bide_curl_resume_from){two->c.sink.length, 1000, two->validator};
    two->c.policy.attempts_max = 3;
    two->c.options.resume_from = &two->from;
    two->c.options.classify = NULL;
}

static CURLcode two_calls_resume(struct two_calls *two)
{
    struct live_call *c = &two->c;
    c->code = bide_curl_perform(c->easy, &c->target, &c->options, &c->result);
    return c->code;
}

static void a_later_call_resumes_the_part_in_the_sink(void **state)
{
    struct two_calls two;
    two_calls_begin(&two, "/a 200 " WHOLE " close=half | 503 | 200 ranges " WHOLE);
    assert_string_equal(two.validator, "\"v1\"");
    two_calls_resume(&two);
    live_expect_done(&two.c, 2);
    assert_true(two.c.result.resumed);
    live_expect_pattern(&two.c.sink, 1000);
    live_server_stop(&two.c.server);
    expect_range(&two.c.server.seen[1], "bytes=500-", "\"v1\"");
    expect_range(&two.c.server.seen[2], "bytes=500-", "\"v1\"");
    live_call_close(&two.c);
}

static void a_later_call_replaces_a_part_that_is_not_continued(void **state)
{
    static const char *const second[] = {
        "200 bytes=700 etag=v2", "416 | 200 bytes=700", RANGE("bytes 500-999/*") " | 200 bytes=700",
        RANGE("bytes 500-999/1000") " header=\"Content-Encoding: br\" | 200 bytes=700"};
    for (size_t i = 0; i < sizeof second / sizeof *second; i++) {
        struct two_calls two;
        char script[512];
        snprintf(script, sizeof script, "/a 200 " WHOLE " close=half | %s", second[i]);
        two_calls_begin(&two, script);
        two.c.options.rewind = live_sink_rewind;
        two_calls_resume(&two);
        live_expect_done(&two.c, i == 0 ? 1 : 2);
        assert_false(two.c.result.resumed);
        live_expect_pattern(&two.c.sink, 700);
        live_call_close(&two.c);
    }
}

static void a_later_call_that_cannot_rewind_gives_up_on_a_changed_body(void **state)
{
    struct two_calls two;
    two_calls_begin(&two, "/a 200 " WHOLE " close=half | 200 bytes=700 etag=v2");
    assert_int_equal(two_calls_resume(&two), CURLE_PARTIAL_FILE);
    live_expect(&two.c, BIDE_ACTION_GIVE_UP, BIDE_REASON_BODY_DELIVERED, 1);
    live_expect_pattern(&two.c.sink, 500);
    live_call_close(&two.c);
}

/* Downloads often begin with a redirect to another host, which has the body and so knows its validator. */
static void a_body_is_resumed_after_a_redirect_to_another_origin(void **state)
{
    struct live_server other;
    struct two_calls two;
    char script[128];
    live_server_start(&other, "/b 200 " WHOLE " close=half | 200 ranges " WHOLE);
    snprintf(script, sizeof script, "/a 302 location=http://127.0.0.1:%u/b", chaos_port(other.chaos));
    open_resumable(&two.c, script);
    curl_easy_setopt(two.c.easy, CURLOPT_FOLLOWLOCATION, 1L);
    live_call_perform(&two.c, "/a");
    live_expect_done(&two.c, 2);
    live_expect_pattern(&two.c.sink, 1000);
    live_server_stop(&other);
    expect_range(&other.seen[1], "bytes=500-", "\"v1\"");
    live_server_free(&other);
    live_call_close(&two.c);
}

static void only_a_response_that_can_be_resumed_has_a_validator(void **state)
{
    static const struct {
        const char *script, *validator;
    } row[] = {
        {"/a 200 " WHOLE, "\"v1\""},
        {"/a 200 bytes=9 header=\"Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT\"", "Thu, 01 Jan 2026 00:00:00 GMT"},
        {"/a 200 bytes=9 etag=W/v1", ""},
        {"/a 200 bytes=9", ""},
        {"/a 206 " WHOLE, ""},
        {"/a 200 " WHOLE " header=\"Accept-Ranges: none\"", ""},
        {"/a 200 " WHOLE " header=\"Content-Encoding: gzip\"", ""}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct live_call c;
        char text[64] = "x", small[4] = "x";
        live_call_open(&c, row[i].script, 1);
        live_call_perform(&c, "/a");
        assert_int_equal(bide_curl_validator(text, sizeof text, c.easy), row[i].validator[0] != '\0');
        assert_string_equal(text, row[i].validator);
        assert_false(bide_curl_validator(small, sizeof small, c.easy)); /* too long */
        assert_string_equal(small, "");
        live_call_close(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_partly_delivered_body_that_breaks_off_ends_the_call),
        cmocka_unit_test(a_body_that_breaks_off_before_its_first_byte_is_retried),
        cmocka_unit_test(a_post_whose_response_breaks_off_is_not_retried),
        cmocka_unit_test(a_rewound_sink_gets_the_body_from_the_start),
        cmocka_unit_test(a_failing_rewind_ends_the_call),
        cmocka_unit_test(a_broken_body_is_resumed_at_its_end),
        cmocka_unit_test(a_body_can_be_resumed_several_times),
        cmocka_unit_test(an_old_enough_date_is_a_validator),
        cmocka_unit_test(without_a_strong_validator_nothing_is_resumed),
        cmocka_unit_test(a_part_that_does_not_fit_is_not_appended),
        cmocka_unit_test(an_empty_part_does_not_complete_a_body),
        cmocka_unit_test(a_response_that_does_not_fit_is_drained_up_to_the_limit),
        cmocka_unit_test(a_part_that_ends_early_is_not_a_success),
        cmocka_unit_test(an_unchanged_body_is_resumed_despite_rewind),
        cmocka_unit_test(a_changed_body_starts_over_with_rewind),
        cmocka_unit_test(a_part_that_does_not_fit_starts_over_with_rewind),
        cmocka_unit_test(without_rewind_the_result_names_what_did_not_fit),
        cmocka_unit_test(a_part_that_never_fits_is_given_up_with_the_number_of_attempts),
        cmocka_unit_test(a_changed_body_that_breaks_off_again_is_not_mixed),
        cmocka_unit_test(a_post_is_not_resumed),
        cmocka_unit_test(a_later_call_resumes_the_part_in_the_sink),
        cmocka_unit_test(a_later_call_replaces_a_part_that_is_not_continued),
        cmocka_unit_test(a_later_call_that_cannot_rewind_gives_up_on_a_changed_body),
        cmocka_unit_test(a_body_is_resumed_after_a_redirect_to_another_origin),
        cmocka_unit_test(only_a_response_that_can_be_resumed_has_a_validator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
