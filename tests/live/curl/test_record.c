/* test_record.c - handles configured with <bide/curl_record.h>: a call keeps every option that its owner set, and the
 * handle has them afterwards. This file includes the header, so its curl_easy_* are bide's. */
#include "live_program.h"
#include "live_tcp.h"

#include <bide/breaker.h>
#include <bide/clock.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- what a call keeps ---- */

static void recorded_callbacks_get_what_libcurl_would_give_them(void **state)
{
    struct program p;
    program_open(&p, "/a 503 body=\"sorry\" header=\"X-Try: first\" | 200 body=\"fine\" header=\"X-Try: second\"");
    assert_int_equal(program_perform(&p), CURLE_OK);
    assert_int_equal(p.result.attempts, 2);
    live_expect_text(&p.body, "fine");
    assert_non_null(strstr(p.head.at, "X-Try: second"));
    assert_null(strstr(p.head.at, "X-Try: first"));
    assert_int_equal(p.prereqs, 2);
    assert_string_equal(p.result.error, "");
    program_close(&p);
}

static void after_the_call_the_handle_has_its_own_options(void **state)
{
    struct program p;
    program_open(&p, "/a 200 body=\"fine\" header=\"X-Try: yes\"");
    assert_int_equal(program_perform(&p), CURLE_OK);
    live_sink_rewind(&p.body);
    live_sink_rewind(&p.head);
    assert_int_equal(curl_easy_perform(p.easy), CURLE_OK);
    live_expect_text(&p.body, "fine");
    assert_non_null(strstr(p.head.at, "X-Try: yes"));
    assert_int_equal(p.prereqs, 2);
    p.forbid = true;
    assert_int_equal(curl_easy_perform(p.easy), CURLE_ABORTED_BY_CALLBACK);
    program_close(&p);
}

static void a_recorded_prereq_function_can_forbid_a_connection(void **state)
{
    struct program p;
    program_open(&p, "/a 200");
    p.forbid = true;
    assert_int_equal(program_perform(&p), CURLE_ABORTED_BY_CALLBACK);
    live_server_stop(&p.server);
    assert_int_equal(live_server_requests(&p.server, "/a"), 0);
    program_close(&p);
}

static void header_lines_go_to_a_file_without_a_header_function(void **state)
{
    struct program p;
    char text[256] = "";
    FILE *file = tmpfile();
    program_open(&p, "/a 200 header=\"X-Try: yes\" body=\"fine\"");
    curl_easy_setopt(p.easy, CURLOPT_HEADERFUNCTION, NULL);
    curl_easy_setopt(p.easy, CURLOPT_WRITEFUNCTION, NULL);
    curl_easy_setopt(p.easy, CURLOPT_WRITEDATA, file);
    curl_easy_setopt(p.easy, CURLOPT_HEADERDATA, file);
    assert_int_equal(program_perform(&p), CURLE_OK);
    rewind(file);
    size_t length = fread(text, 1, sizeof text - 1, file);
    text[length] = '\0';
    assert_non_null(strstr(text, "X-Try: yes"));
    assert_string_equal(text + length - 4, "fine");
    fclose(file);
    program_close(&p);
}

static void a_copy_of_the_handle_is_recorded_too(void **state)
{
    struct program p;
    program_open(&p, "/a 200 body=\"fine\"");
    CURL *copy = curl_easy_duphandle(p.easy);
    assert_int_equal(bide_curl_perform(copy, NULL, NULL, NULL), CURLE_OK);
    live_expect_text(&p.body, "fine");
    assert_true(p.head.length > 0);
    assert_int_equal(p.prereqs, 1);
    curl_easy_cleanup(copy);
    program_close(&p);
}

static void after_a_reset_the_handle_has_no_callbacks(void **state)
{
    struct program p;
    program_open(&p, "/a 200 body=\"fine\"");
    curl_easy_reset(p.easy);
    curl_easy_setopt(p.easy, CURLOPT_WRITEFUNCTION, live_sink_write);
    curl_easy_setopt(p.easy, CURLOPT_WRITEDATA, &p.body);
    curl_easy_setopt(p.easy, CURLOPT_URL, live_server_url(&p.server, "/a"));
    assert_int_equal(program_perform(&p), CURLE_OK);
    live_expect_text(&p.body, "fine");
    assert_int_equal(p.prereqs, 0);
    assert_int_equal(p.head.length, 0);
    program_close(&p);
}

static void an_option_that_libcurl_rejects_is_not_recorded(void **state)
{
    struct program p;
    program_open(&p, "/a 200");
    assert_int_equal(curl_easy_setopt(p.easy, CURLOPT_TIMEOUT, 200L), CURLE_OK);
    assert_int_not_equal(curl_easy_setopt(p.easy, CURLOPT_TIMEOUT, -1L), CURLE_OK);
    assert_int_equal(program_perform(&p), CURLE_OK);
    program_close(&p);
}

/* ---- time ---- */

struct started {
    struct bide_verdict first;
    unsigned starts;
};

static void note_start(void *context, const struct bide_event *event)
{
    struct started *s = context;
    if (event->verdict->action == BIDE_ACTION_START && s->starts++ == 0)
        s->first = *event->verdict;
}

static void without_a_policy_an_attempt_may_take_any_time(void **state)
{
    struct program p;
    struct started s = {0};
    struct bide_curl_options o = {0};
    o.event = note_start;
    o.context = &s;
    program_open(&p, "/a 200");
    int64_t now_ns = bide_now();
    assert_int_equal(bide_curl_perform(p.easy, NULL, &o, NULL), CURLE_OK);
    assert_int_equal(s.first.attempt_deadline_ns, BIDE_NEVER);
    assert_true(s.first.connect_deadline_ns > now_ns && s.first.connect_deadline_ns < now_ns + 60 * BIDE_S);
    program_close(&p);
}

static void a_recorded_timeout_is_the_deadline_of_the_call(void **state)
{
    struct program p;
    struct started s = {0};
    struct bide_curl_options o = {0};
    o.event = note_start;
    o.context = &s;
    program_open(&p, "/a 200");
    curl_easy_setopt(p.easy, CURLOPT_TIMEOUT, 7L);
    int64_t before_ns = bide_now();
    assert_int_equal(bide_curl_perform(p.easy, NULL, &o, NULL), CURLE_OK);
    int64_t after_ns = bide_now();
    assert_true(s.first.attempt_deadline_ns >= before_ns + 7 * BIDE_S);
    assert_true(s.first.attempt_deadline_ns <= after_ns + 7 * BIDE_S);
    program_close(&p);
}

/* The second attempt would have to wait 60 s, after the call's end. */
static void a_recorded_timeout_ends_the_waits_of_the_call(void **state)
{
    struct program p;
    program_open(&p, "/a 503 retry-after=60 body=\"sorry\"");
    curl_easy_setopt(p.easy, CURLOPT_TIMEOUT_MS, 20000L);
    assert_int_equal(program_perform(&p), CURLE_OK);
    assert_int_equal(p.result.verdict.reason, BIDE_REASON_DEADLINE_NEAR);
    assert_int_equal(p.result.attempts, 1);
    live_expect_text(&p.body, "sorry");
    program_close(&p);
}

/* A call without options has no deadline: the policy limits all its waits to a minute. */
static void a_program_never_waits_more_than_a_minute(void **state)
{
    struct program p;
    program_open(&p, "/a 503 retry-after=70 body=\"sorry\"");
    assert_int_equal(program_perform(&p), CURLE_OK);
    assert_int_equal(p.result.verdict.reason, BIDE_REASON_WAITS_SPENT);
    assert_int_equal(p.result.attempts, 1);
    assert_true(p.result.total_ns < 15 * BIDE_S);
    live_expect_text(&p.body, "sorry");
    program_close(&p);
}

static void a_recorded_timeout_still_applies_without_bide(void **state)
{
    struct program p;
    struct bide_curl_options o = {0};
    o.call_timeout_ns = 100 * BIDE_S;
    program_open(&p, "/a 200 | 200 delay=never");
    curl_easy_setopt(p.easy, CURLOPT_TIMEOUT_MS, 300L);
    assert_int_equal(program_perform_with(&p, &o), CURLE_OK);
    assert_int_equal(curl_easy_perform(p.easy), CURLE_OPERATION_TIMEDOUT);
    program_close(&p);
}

/* libcurl counts whole milliseconds and may end the attempt just before the deadline: then no wait fits before it. */
static void a_recorded_timeout_ends_an_attempt(void **state)
{
    struct program p;
    program_open(&p, "/a 200 delay=never");
    curl_easy_setopt(p.easy, CURLOPT_TIMEOUT_MS, 300L);
    assert_int_equal(program_perform(&p), CURLE_OPERATION_TIMEDOUT);
    enum bide_reason reason = p.result.verdict.reason;
    assert_true(reason == BIDE_REASON_DEADLINE || reason == BIDE_REASON_DEADLINE_NEAR);
    program_close(&p);
}

/* ---- request bodies ---- */

static const char body_text[] = "the bytes of the request";

struct upload {
    size_t at;
    unsigned seeks;
};

static size_t upload_read(char *into, size_t size, size_t count, void *context)
{
    struct upload *u = context;
    size_t rest = strlen(body_text) - u->at, n = size * count < rest ? size * count : rest;
    memcpy(into, body_text + u->at, n);
    u->at += n;
    return n;
}

static int upload_seek(void *context, curl_off_t offset, int origin)
{
    struct upload *u = context;
    assert_int_equal(origin, SEEK_SET);
    u->at = (size_t)offset;
    u->seeks++;
    return CURL_SEEKFUNC_OK;
}

static void expect_same_body_twice(struct program *p)
{
    live_server_stop(&p->server);
    assert_int_equal(live_server_requests(&p->server, "/a"), 2);
    for (size_t i = 0; i < 2; i++) {
        const struct chaos_seen *seen = live_server_request(&p->server, "/a", i);
        assert_int_equal(seen->body_bytes, strlen(body_text));
        assert_int_equal(seen->body_hash, bide_hash(body_text, strlen(body_text)));
    }
}

static void a_recorded_read_function_is_rewound_by_its_seek_function(void **state)
{
    struct program p;
    struct upload u = {0};
    program_open(&p, "/a 503 | 200");
    curl_easy_setopt(p.easy, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(p.easy, CURLOPT_READFUNCTION, upload_read);
    curl_easy_setopt(p.easy, CURLOPT_READDATA, &u);
    curl_easy_setopt(p.easy, CURLOPT_SEEKFUNCTION, upload_seek);
    curl_easy_setopt(p.easy, CURLOPT_SEEKDATA, &u);
    curl_easy_setopt(p.easy, CURLOPT_INFILESIZE, (long)strlen(body_text));
    assert_int_equal(program_perform(&p), CURLE_OK);
    assert_true(u.seeks > 0);
    expect_same_body_twice(&p);
    program_close(&p);
}

static void a_recorded_read_function_without_seek_is_sent_once(void **state)
{
    struct program p;
    struct upload u = {0};
    program_open(&p, "/a 503 body=\"sorry\" | 200");
    curl_easy_setopt(p.easy, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(p.easy, CURLOPT_READFUNCTION, upload_read);
    curl_easy_setopt(p.easy, CURLOPT_READDATA, &u);
    assert_int_equal(program_perform(&p), CURLE_OK);
    assert_int_equal(p.result.verdict.reason, BIDE_REASON_BODY_SPENT);
    live_expect_text(&p.body, "sorry");
    program_close(&p);
}

/* The part of the file before its position is not the body. */
static void a_recorded_file_is_sent_again_from_where_it_stood(void **state)
{
    struct program p;
    FILE *file = tmpfile();
    fputs("skipped", file);
    fputs(body_text, file);
    fseek(file, strlen("skipped"), SEEK_SET);
    program_open(&p, "/a 503 | 200");
    curl_easy_setopt(p.easy, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(p.easy, CURLOPT_READDATA, file);
    curl_easy_setopt(p.easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)strlen(body_text));
    assert_int_equal(program_perform(&p), CURLE_OK);
    expect_same_body_twice(&p);
    fclose(file);
    program_close(&p);
}

static void recorded_post_fields_are_sent_again_if_the_request_is_keyed(void **state)
{
    struct program p;
    struct bide_curl_options o = {0};
    o.inject = BIDE_CURL_INJECT_KEY;
    program_open(&p, "/a 503 | 200");
    struct curl_slist *list = curl_slist_append(NULL, "X-Own: yes");
    curl_easy_setopt(p.easy, CURLOPT_HTTPHEADER, list);
    curl_easy_setopt(p.easy, CURLOPT_COPYPOSTFIELDS, body_text);
    assert_int_equal(program_perform_with(&p, &o), CURLE_OK);
    expect_same_body_twice(&p);
    for (size_t i = 0; i < 2; i++) {
        struct bide_text value;
        const struct chaos_seen *seen = live_server_request(&p.server, "/a", i);
        assert_non_null(seen->key);
        assert_true(chaos_seen_header(seen, "X-Own", &value));
    }
    curl_easy_setopt(p.easy, CURLOPT_HTTPHEADER, NULL);
    curl_slist_free_all(list);
    program_close(&p);
}

static void recorded_post_fields_are_not_repeated_without_a_key(void **state)
{
    struct program p;
    program_open(&p, "/a reset=request | 200");
    curl_easy_setopt(p.easy, CURLOPT_POSTFIELDS, body_text);
    assert_int_not_equal(program_perform(&p), CURLE_OK);
    assert_int_equal(p.result.verdict.reason, BIDE_REASON_NOT_REPEATABLE);
    live_server_stop(&p.server);
    assert_int_equal(live_server_requests(&p.server, "/a"), 1);
    program_close(&p);
}

/* A handle with a read function and a call with a body of its own, then a call without: the record knows that the
 * handle's body is empty now. */
static void expect_empty_body_after(struct bide_curl_body body)
{
    struct program p;
    struct upload u = {0};
    struct bide_curl_options o = {0};
    o.safety = BIDE_CURL_IDEMPOTENT;
    o.body = body;
    program_open(&p, "/a 200 | 503 | 200");
    curl_easy_setopt(p.easy, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(p.easy, CURLOPT_READFUNCTION, upload_read);
    curl_easy_setopt(p.easy, CURLOPT_READDATA, &u);
    curl_easy_setopt(p.easy, CURLOPT_SEEKFUNCTION, upload_seek);
    curl_easy_setopt(p.easy, CURLOPT_SEEKDATA, &u);
    assert_int_equal(program_perform_with(&p, &o), CURLE_OK);
    o.body = (struct bide_curl_body){0};
    assert_int_equal(program_perform_with(&p, &o), CURLE_OK);
    live_server_stop(&p.server);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(live_server_request(&p.server, "/a", i)->body_bytes, i == 0 ? 5 : 0);
    assert_int_equal(u.at, 0);
    program_close(&p);
}

static void a_body_of_the_options_leaves_an_empty_one_on_the_handle(void **state)
{
    struct bide_curl_body body = {.kind = BIDE_CURL_BODY_MEMORY, .at = "other", .length = 5};
    expect_empty_body_after(body);
    body.put = true;
    expect_empty_body_after(body);
}

static void a_recorded_list_stays_if_bide_needs_none(void **state)
{
    struct program p;
    struct bide_text value;
    program_open(&p, "/a 503 | 200");
    struct curl_slist *list = curl_slist_append(NULL, "X-Own: yes");
    curl_easy_setopt(p.easy, CURLOPT_HTTPHEADER, list);
    assert_int_equal(program_perform(&p), CURLE_OK);
    live_server_stop(&p.server);
    assert_true(chaos_seen_header(live_server_request(&p.server, "/a", 1), "X-Own", &value));
    curl_easy_cleanup(p.easy);
    p.easy = NULL;
    curl_slist_free_all(list);
    program_close(&p);
}

/* ---- progress and cancellation ---- */

static int on_progress(void *context, double total, double now, double up_total, double up_now)
{
    (void)total, (void)now, (void)up_total, (void)up_now;
    ((struct program *)context)->progress++;
    return 0;
}

static void a_progress_function_in_doubles_is_called_beside_cancel(void **state)
{
    struct program p;
    struct bide_curl_options o;
    struct bide_cancel cancel;
    o = (struct bide_curl_options){0};
    assert_int_equal(bide_cancel_init(&cancel), BIDE_OK);
    o.cancel = &cancel;
    program_open(&p, "/a 200");
    curl_easy_setopt(p.easy, (CURLoption)(CURLOPTTYPE_FUNCTIONPOINT + 56), on_progress); /* PROGRESSFUNCTION */
    curl_easy_setopt(p.easy, CURLOPT_PROGRESSDATA, &p);
    curl_easy_setopt(p.easy, CURLOPT_NOPROGRESS, 0L);
    assert_int_equal(program_perform_with(&p, &o), CURLE_OK);
    assert_true(p.progress > 0);
    p.progress = 0;
    assert_int_equal(curl_easy_perform(p.easy), CURLE_OK);
    assert_true(p.progress > 0);
    bide_cancel_free(&cancel);
    program_close(&p);
}

/* ---- errors ---- */

static void a_refused_call_is_told_apart_from_every_other_failure(void **state)
{
    struct program p;
    struct bide_target target;
    long status = -1;
    live_target_service(&target);
    program_open(&p, "/a 503");
    bide_breaker_hold(&target, BIDE_HOLD_CLOSED);
    assert_int_equal(curl_easy_perform(p.easy), CURLE_OK);
    curl_easy_getinfo(p.easy, CURLINFO_RESPONSE_CODE, &status);
    assert_int_equal(status, 503);
    bide_breaker_hold(&target, BIDE_HOLD_OPEN);
    CURLcode code = bide_curl_perform(p.easy, &target, NULL, &p.result);
    assert_int_equal(code, BIDE_CURL_NOT_SENT);
    assert_string_equal(curl_easy_strerror(code), "bide refused the call: nothing was sent");
    assert_string_equal(p.result.error, "nothing was sent: the circuit breaker is open (breaker_open)");
    assert_string_equal(p.error, p.result.error);
    curl_easy_getinfo(p.easy, CURLINFO_RESPONSE_CODE, &status);
    assert_int_equal(status, 0);
    program_close(&p);
}

static void the_error_buffer_has_libcurls_text_or_bides_never_an_old_one(void **state)
{
    struct program p;
    struct live_trap refuser;
    program_open(&p, "/a reuse=close | 200");
    live_refuser_open(&refuser);
    curl_easy_setopt(p.easy, CURLOPT_URL, refuser.url);
    assert_int_equal(program_perform(&p), CURLE_COULDNT_CONNECT);
    assert_non_null(strstr(p.error, "onnect"));
    assert_non_null(strstr(p.result.error, "after 4 attempts"));
    curl_easy_setopt(p.easy, CURLOPT_URL, live_server_url(&p.server, "/a"));
    curl_easy_setopt(p.easy, CURLOPT_POSTFIELDS, body_text);
    assert_int_equal(program_perform(&p), CURLE_OK);
    assert_string_equal(p.error, "");
    assert_string_equal(p.result.error, "");
    assert_int_equal(program_perform(&p), CURLE_GOT_NOTHING);
    assert_non_null(strstr(p.error, "libcurl was stopped from sending the request a second time by itself"));
    live_trap_close(&refuser);
    program_close(&p);
}

static void a_failure_with_a_response_has_a_reason_in_the_result(void **state)
{
    struct program p;
    struct bide_curl_options o = {0};
    program_open(&p, "/a 503");
    assert_int_equal(program_perform_with(&p, &o), CURLE_OK);
    assert_string_equal(p.result.error, "status 503 after 4 attempts: no attempts left (attempts_spent)");
    assert_string_equal(p.error, "");
    program_close(&p);
}

static void invalid_options_are_described(void **state)
{
    struct program p;
    struct bide_curl_options o = {0};
    o.call_timeout_ns = -1;
    program_open(&p, "/a 200");
    assert_int_equal(bide_curl_perform(p.easy, NULL, &o, &p.result), CURLE_BAD_FUNCTION_ARGUMENT);
    assert_string_equal(p.result.error, "call_timeout_ns is -1; must be 0 (none) or more");
    assert_string_equal(p.error, p.result.error);
    program_close(&p);
}

/* ---- verbose output ---- */

static void verbose_output_marks_each_attempt(void **state)
{
    struct program p;
    struct bide_curl_options o = {0};
    program_open(&p, "/a 503 | 200");
    curl_easy_setopt(p.easy, CURLOPT_DEBUGFUNCTION, program_on_debug);
    curl_easy_setopt(p.easy, CURLOPT_DEBUGDATA, &p);
    curl_easy_setopt(p.easy, CURLOPT_VERBOSE, 1L);
    assert_int_equal(program_perform_with(&p, &o), CURLE_OK);
    const char *first = strstr(p.trace.at, "bide: attempt 1 (first_attempt)\n");
    const char *wait = strstr(p.trace.at, "bide: waiting 0.00");
    const char *second = strstr(p.trace.at, "bide: attempt 2 (retry)\n");
    const char *done = strstr(p.trace.at, "bide: done after 2 attempts\n");
    assert_true(first && wait && second && done && first < wait && wait < second && second < done);
    curl_easy_setopt(p.easy, CURLOPT_VERBOSE, 0L);
    live_sink_rewind(&p.trace);
    assert_int_equal(program_perform_with(&p, &o), CURLE_OK);
    assert_int_equal(p.trace.length, 0);
    program_close(&p);
}

/* ---- handles that are not recorded ---- */

static void expect_refused_without_options(CURL *easy, const char *url)
{
    struct bide_curl_result result;
    curl_easy_setopt(easy, CURLOPT_URL, url);
    assert_int_equal(bide_curl_perform(easy, NULL, NULL, &result), BIDE_CURL_NOT_RECORDED);
    assert_non_null(strstr(curl_easy_strerror(BIDE_CURL_NOT_RECORDED), "include <bide/curl_record.h>"));
    assert_non_null(strstr(result.error, "include <bide/curl_record.h> where it is created, or pass "
                                         "BIDE_CURL_PLAIN_HANDLE if it has none of the options that bide owns"));
    assert_int_equal(result.attempts, 0);
}

static void an_unrecorded_handle_needs_options(void **state)
{
    struct live_trap trap;
    live_trap_open(&trap);
    CURL *easy = own_init();
    expect_refused_without_options(easy, trap.url);
    CURL *copy = curl_easy_duphandle(easy);
    expect_refused_without_options(copy, trap.url);
    assert_false(live_trap_sprung(&trap));
    curl_easy_cleanup(copy);
    curl_easy_cleanup(easy);
    live_trap_close(&trap);
}

static void an_unrecorded_handle_may_be_declared_plain(void **state)
{
    struct live_server server;
    struct live_sink sink = {0};
    live_server_start(&server, "/a 200 body=\"fine\"");
    CURL *easy = own_init();
    curl_easy_setopt(easy, CURLOPT_URL, live_server_url(&server, "/a"));
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, live_sink_write);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &sink);
    assert_int_equal(bide_curl_perform(easy, NULL, BIDE_CURL_PLAIN_HANDLE, NULL), CURLE_OK);
    live_expect_text(&sink, "fine");
    own_cleanup(easy);
    live_sink_free(&sink);
    live_server_free(&server);
}

/* A file without the header resets the handle: the recorded callbacks are gone from it, and must not be called. */
static void a_handle_reset_elsewhere_is_not_recorded_any_more(void **state)
{
    struct live_trap trap;
    struct program p;
    live_trap_open(&trap);
    program_open(&p, "/a 200");
    own_reset(p.easy);
    expect_refused_without_options(p.easy, trap.url);
    assert_false(live_trap_sprung(&trap));
    live_trap_close(&trap);
    program_close(&p);
}

/* A file without the header frees handles; libcurl's allocator often returns their addresses for new handles. */
static void a_new_handle_at_the_address_of_a_freed_one_is_not_recorded(void **state)
{
    enum { COUNT = 16 };
    CURL *recorded[COUNT], *fresh[COUNT];
    struct live_trap trap;
    unsigned same = 0;
    live_trap_open(&trap);
    for (int i = 0; i < COUNT; i++)
        recorded[i] = curl_easy_init();
    for (int i = 0; i < COUNT; i++)
        own_cleanup(recorded[i]);
    for (int i = 0; i < COUNT; i++) {
        fresh[i] = own_init();
        for (int j = 0; j < COUNT; j++)
            same += fresh[i] == recorded[j];
        expect_refused_without_options(fresh[i], trap.url);
    }
    print_message("%u of %d addresses were used again\n", same, COUNT);
    assert_false(live_trap_sprung(&trap));
    for (int i = 0; i < COUNT; i++)
        own_cleanup(fresh[i]);
    for (int i = 0; i < COUNT; i++)
        curl_easy_cleanup(NULL);
    live_trap_close(&trap);
}

static void a_pointer_to_setopt_records_too(void **state)
{
    struct program p;
    program_open(&p, "/a 503 retry-after=60");
    CURLcode (*set)(CURL *, CURLoption, ...) = curl_easy_setopt;
    set(p.easy, CURLOPT_TIMEOUT, 5L);
    assert_int_equal(program_perform(&p), CURLE_OK);
    assert_int_equal(p.result.verdict.reason, BIDE_REASON_DEADLINE_NEAR);
    program_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recorded_callbacks_get_what_libcurl_would_give_them),
        cmocka_unit_test(after_the_call_the_handle_has_its_own_options),
        cmocka_unit_test(a_recorded_prereq_function_can_forbid_a_connection),
        cmocka_unit_test(header_lines_go_to_a_file_without_a_header_function),
        cmocka_unit_test(a_copy_of_the_handle_is_recorded_too),
        cmocka_unit_test(after_a_reset_the_handle_has_no_callbacks),
        cmocka_unit_test(an_option_that_libcurl_rejects_is_not_recorded),
        cmocka_unit_test(without_a_policy_an_attempt_may_take_any_time),
        cmocka_unit_test(a_recorded_timeout_is_the_deadline_of_the_call),
        cmocka_unit_test(a_recorded_timeout_ends_the_waits_of_the_call),
        cmocka_unit_test(a_program_never_waits_more_than_a_minute),
        cmocka_unit_test(a_recorded_timeout_still_applies_without_bide),
        cmocka_unit_test(a_recorded_timeout_ends_an_attempt),
        cmocka_unit_test(a_recorded_read_function_is_rewound_by_its_seek_function),
        cmocka_unit_test(a_recorded_read_function_without_seek_is_sent_once),
        cmocka_unit_test(a_recorded_file_is_sent_again_from_where_it_stood),
        cmocka_unit_test(recorded_post_fields_are_sent_again_if_the_request_is_keyed),
        cmocka_unit_test(recorded_post_fields_are_not_repeated_without_a_key),
        cmocka_unit_test(a_body_of_the_options_leaves_an_empty_one_on_the_handle),
        cmocka_unit_test(a_recorded_list_stays_if_bide_needs_none),
        cmocka_unit_test(a_progress_function_in_doubles_is_called_beside_cancel),
        cmocka_unit_test(a_refused_call_is_told_apart_from_every_other_failure),
        cmocka_unit_test(the_error_buffer_has_libcurls_text_or_bides_never_an_old_one),
        cmocka_unit_test(a_failure_with_a_response_has_a_reason_in_the_result),
        cmocka_unit_test(invalid_options_are_described),
        cmocka_unit_test(verbose_output_marks_each_attempt),
        cmocka_unit_test(an_unrecorded_handle_needs_options),
        cmocka_unit_test(an_unrecorded_handle_may_be_declared_plain),
        cmocka_unit_test(a_handle_reset_elsewhere_is_not_recorded_any_more),
        cmocka_unit_test(a_new_handle_at_the_address_of_a_freed_one_is_not_recorded),
        cmocka_unit_test(a_pointer_to_setopt_records_too),
    };
    return cmocka_run_group_tests(tests, find_own_functions, NULL);
}
