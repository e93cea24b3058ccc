/* test_hooks.c - the caller's hooks (classify, before, refresh), and problem details. */
#include "live_call.h"

#include <bide/clock.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROBLEM "type=application/problem+json"

static void expect_done(const struct live_call *c, uint32_t attempts)
{
    assert_int_equal(c->code, CURLE_OK);
    live_expect(c, BIDE_ACTION_DONE, BIDE_REASON_SUCCEEDED, attempts);
}

static void expect_requests(struct live_call *c, size_t count)
{
    live_server_stop(&c->server);
    assert_int_equal(c->server.count, count);
}

/* ---- classify ---- */

/* The hook's calls. */
struct classify_log {
    size_t heads;
    size_t bodies;
    size_t longest;
    bool whole;
    long status;
};

static bool text_starts_with(struct bide_text body, const char *text)
{
    return body.length >= strlen(text) && memcmp(body.at, text, strlen(text)) == 0;
}

/* A body that begins with "later" is transient, with "schema" permanent. */
static void classify_body(void *context, const struct bide_curl_response *r, struct bide_outcome *outcome)
{
    struct classify_log *j = context;
    j->status = r->status;
    if (!r->body.at) {
        j->heads++;
        return;
    }
    j->bodies++;
    j->whole = r->whole;
    j->longest = r->body.length > j->longest ? r->body.length : j->longest;
    if (text_starts_with(r->body, "later"))
        outcome->kind = BIDE_KIND_TRANSIENT;
    if (text_starts_with(r->body, "schema"))
        outcome->kind = BIDE_KIND_PERMANENT;
}

static void open_with_classify(struct live_call *c, struct classify_log *j, const char *script, size_t hold_max)
{
    *j = (struct classify_log){0};
    live_call_open(c, script, 4);
    c->options.classify = classify_body;
    c->options.context = j;
    c->options.hold_max = hold_max;
}

static void a_success_classified_as_transient_is_retried(void **state)
{
    struct live_call c;
    struct classify_log j;
    open_with_classify(&c, &j, "/a 200 body=\"later, please\" | 200 body=later chunked | 200 body=fine", 1000);
    live_call_perform(&c, "/a");
    expect_done(&c, 3);
    live_expect_text(&c.sink, "fine");
    assert_int_equal(c.result.attempt[0].kind, BIDE_KIND_TRANSIENT);
    assert_int_equal(c.result.attempt[0].status, 200);
    assert_int_equal(j.heads, 3);
    assert_int_equal(j.bodies, 3);
    assert_true(j.whole);
    live_call_close(&c);
}

/* When the hook turns a success into a failure, the server's hint counts. */
static void a_success_classified_as_transient_may_have_a_hint(void **state)
{
    struct live_call c;
    struct classify_log j;
    open_with_classify(&c, &j, "/a 200 body=later header=\"retry-after-ms: 300\" | 200 body=fine", 1000);
    live_call_perform(&c, "/a");
    expect_done(&c, 2);
    expect_requests(&c, 2);
    assert_true(c.server.seen[1].at_ns - c.server.seen[0].at_ns >= 300 * BIDE_MS);
    live_call_close(&c);
}

static void a_final_success_classified_as_transient_is_delivered(void **state)
{
    struct live_call c;
    struct classify_log j;
    open_with_classify(&c, &j, "/a 200 body=later", 1000);
    live_call_perform(&c, "/a");
    live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_ATTEMPTS_SPENT, 4);
    live_expect_text(&c.sink, "later");
    assert_int_equal(c.sink.pieces, 1);
    live_call_close(&c);
}

static void a_schema_error_is_permanent_and_delivered(void **state)
{
    struct live_call c;
    struct classify_log j;
    open_with_classify(&c, &j, "/a 200 body=\"schema is wrong\"", 1000);
    live_call_perform(&c, "/a");
    live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_PERMANENT, 1);
    live_expect_text(&c.sink, "schema is wrong");
    live_call_close(&c);
}

static void an_empty_success_is_classified_too(void **state)
{
    struct live_call c;
    struct classify_log j;
    open_with_classify(&c, &j, "/a 200 bytes=0\n/b 204", 1000);
    live_call_perform(&c, "/a");
    expect_done(&c, 1);
    assert_int_equal(c.sink.length, 0);
    live_call_perform(&c, "/b");
    expect_done(&c, 1);
    assert_true(j.heads >= 2);
    live_call_close(&c);
}

static void a_body_longer_than_hold_max_is_delivered_after_classify(void **state)
{
    static const char *const script[] = {"/a 200 bytes=300000", "/a 200 bytes=300000 chunked"};
    for (size_t i = 0; i < 2; i++) {
        struct live_call c;
        struct classify_log j;
        open_with_classify(&c, &j, script[i], 1000);
        live_call_perform(&c, "/a");
        expect_done(&c, 1);
        live_expect_pattern(&c.sink, 300000);
        assert_int_equal(j.bodies, 1);
        assert_false(j.whole);
        assert_true(j.longest <= 1000);
        live_call_close(&c);
    }
}

static void a_body_of_exactly_hold_max_is_whole(void **state)
{
    struct live_call c;
    struct classify_log j;
    open_with_classify(&c, &j, "/a 200 bytes=1000", 1000);
    live_call_perform(&c, "/a");
    expect_done(&c, 1);
    live_expect_pattern(&c.sink, 1000);
    assert_true(j.whole);
    assert_int_equal(j.longest, 1000);
    live_call_close(&c);
}

static void a_held_success_that_breaks_off_is_retried(void **state)
{
    struct live_call c;
    struct classify_log j;
    open_with_classify(&c, &j, "/a 200 bytes=500 close=half | 200 bytes=500 reset=half | 200 body=fine", 1000);
    live_call_perform(&c, "/a");
    expect_done(&c, 3);
    live_expect_text(&c.sink, "fine");
    live_call_close(&c);
}

/* Opens the breaker when the call starts to wait, so that the call gives up after the wait. */
static void open_when_waiting(void *context, const struct bide_event *event)
{
    struct live_call *c = context;
    if (event->verdict->action == BIDE_ACTION_WAIT)
        bide_breaker_hold(&c->target, BIDE_HOLD_OPEN);
}

static void classify_as_transient(void *context, const struct bide_curl_response *r, struct bide_outcome *outcome)
{
    if (r->body.at)
        outcome->kind = BIDE_KIND_TRANSIENT;
}

/* hold_max exceeds the limit for kept failures: that limit still applies. */
static void hold_max_does_not_raise_the_keep_limit(void **state)
{
    static const char *const script[] = {"/a 200 bytes=400000 chunked", "/a 200 endless=body chunked"};
    for (size_t i = 0; i < 2; i++) {
        struct live_call c;
        live_call_open(&c, script[i], 4);
        c.options.classify = classify_as_transient;
        c.options.hold_max = 200000;
        c.options.event = open_when_waiting;
        c.options.context = &c;
        live_call_perform(&c, "/a");
        live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_BREAKER_OPEN, 1);
        assert_true(c.result.body_dropped);
        assert_int_equal(c.sink.length, 0);
        live_call_close(&c);
    }
}

static void classify_by_status(void *context, const struct bide_curl_response *r, struct bide_outcome *outcome)
{
    struct curl_header *field;
    if (r->status == 404)
        outcome->kind = BIDE_KIND_TRANSIENT;
    if (r->status == 503)
        outcome->kind = BIDE_KIND_PERMANENT;
    if (curl_easy_header(r->easy, "X-Later", 0, CURLH_HEADER, -1, &field) == CURLHE_OK)
        outcome->kind = BIDE_KIND_TRANSIENT;
}

static void classify_sees_the_head_with_and_without_a_sink(void **state)
{
    for (int sink = 0; sink < 2; sink++) {
        struct live_call c;
        live_call_open(&c, "/a 404 | 200 header=\"X-Later: 1\" body=no | 200 body=fine\n/b 503 body=down", 4);
        c.options.classify = classify_by_status;
        if (!sink)
            live_call_without_sink(&c);
        live_call_perform(&c, "/a");
        expect_done(&c, 3);
        live_expect_text(&c.sink, "fine");
        live_call_perform(&c, "/b");
        live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_PERMANENT, 1);
        live_expect_text(&c.sink, "down");
        live_call_close(&c);
    }
}

static void classify_with_hint(void *context, const struct bide_curl_response *r, struct bide_outcome *outcome)
{
    if (r->status == 503)
        outcome->hint = (struct bide_hint){BIDE_HINT_WAIT, 200 * BIDE_MS};
}

static void classify_may_set_a_hint(void **state)
{
    struct live_call c;
    live_call_open(&c, "/a 503 | 200", 4);
    c.options.classify = classify_with_hint;
    live_call_perform(&c, "/a");
    expect_done(&c, 2);
    expect_requests(&c, 2);
    assert_true(c.server.seen[1].at_ns - c.server.seen[0].at_ns >= 200 * BIDE_MS);
    live_call_close(&c);
}

/* ---- before ---- */

struct signer {
    struct curl_slist *list;
    uint32_t calls;
    uint32_t refuse_at; /* 0: never */
    const char *field;  /* NULL: a field with the call's number */
    char text[64];
};

static bool sign_attempt(void *context, CURL *easy, const struct bide_verdict *start, struct curl_slist **headers)
{
    struct signer *s = context;
    s->calls++;
    if (s->calls == s->refuse_at)
        return false;
    curl_slist_free_all(s->list);
    snprintf(s->text, sizeof s->text, "X-Signature: %u-%u", s->calls, start->attempt);
    s->list = curl_slist_append(NULL, s->field ? s->field : s->text);
    *headers = s->list;
    return true;
}

static void open_signed(struct live_call *c, struct signer *s, const char *script)
{
    *s = (struct signer){0};
    live_call_open(c, script, 4);
    c->options.before = sign_attempt;
    c->options.context = s;
    c->options.inject = BIDE_CURL_INJECT_KEY;
    live_call_post(c, "x");
}

static void close_signed(struct live_call *c, struct signer *s)
{
    live_call_close(c);
    curl_slist_free_all(s->list);
}

static void expect_signature(const struct chaos_seen *seen, const char *text)
{
    struct bide_text value;
    assert_true(chaos_seen_header(seen, "X-Signature", &value));
    assert_int_equal(value.length, strlen(text));
    assert_memory_equal(value.at, text, value.length);
}

static void before_is_called_for_each_attempt(void **state)
{
    struct live_call c;
    struct signer s;
    open_signed(&c, &s, "/a 503 | reset | 200");
    live_call_perform(&c, "/a");
    expect_done(&c, 3);
    expect_requests(&c, 3);
    expect_signature(&c.server.seen[0], "1-1");
    expect_signature(&c.server.seen[1], "2-2");
    expect_signature(&c.server.seen[2], "3-3");
    assert_string_equal(c.server.seen[0].key, c.server.seen[2].key);
    close_signed(&c, &s);
}

static void before_can_refuse_the_first_attempt(void **state)
{
    struct live_call c;
    struct signer s;
    struct live_trap trap;
    live_trap_open(&trap);
    open_signed(&c, &s, "");
    s.refuse_at = 1;
    assert_int_equal(live_call_perform_url(&c, trap.url), CURLE_ABORTED_BY_CALLBACK);
    assert_int_equal(c.result.verdict.action, BIDE_ACTION_GIVE_UP);
    assert_int_equal(c.result.verdict.reason, BIDE_REASON_CANCELLED);
    assert_false(live_trap_sprung(&trap));
    live_trap_close(&trap);
    close_signed(&c, &s);
}

static void before_can_refuse_a_retry_and_the_last_response_is_delivered(void **state)
{
    struct live_call c;
    struct signer s;
    open_signed(&c, &s, "/a 503 body=down");
    s.refuse_at = 2;
    live_call_perform(&c, "/a");
    assert_int_equal(c.result.verdict.action, BIDE_ACTION_GIVE_UP);
    live_expect_text(&c.sink, "down");
    assert_int_equal(c.result.status, 503);
    expect_requests(&c, 1);
    close_signed(&c, &s);
}

static void headers_set_by_before_are_checked(void **state)
{
    struct live_call c;
    struct signer s;
    struct live_trap trap;
    live_trap_open(&trap);
    open_signed(&c, &s, "");
    s.field = "X-Signature: 1\r\nX-Evil: 1";
    assert_int_not_equal(live_call_perform_url(&c, trap.url), CURLE_OK);
    assert_int_equal(c.result.verdict.action, BIDE_ACTION_GIVE_UP);
    assert_false(live_trap_sprung(&trap));
    live_trap_close(&trap);
    close_signed(&c, &s);
}

/* ---- refresh ---- */

struct refresher {
    int calls;
    bool result;
};

static bool refresh(void *context, CURL *easy)
{
    struct refresher *r = context;
    r->calls++;
    curl_easy_setopt(easy, CURLOPT_XOAUTH2_BEARER, "new");
    return r->result;
}

static void open_refreshed(struct live_call *c, struct refresher *r, const char *script)
{
    *r = (struct refresher){.result = true};
    live_call_open(c, script, 4);
    curl_easy_setopt(c->easy, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
    curl_easy_setopt(c->easy, CURLOPT_XOAUTH2_BEARER, "old");
    c->options.refresh = refresh;
    c->options.context = r;
    c->options.inject = BIDE_CURL_INJECT_ATTEMPT;
}

static const char *const unauthorized_scripts[] = {"/a 401 body=who | 200 body=fine", "/a 401 bytes=0 | 200 body=fine",
                                                   "/a 401 bytes=70000 | 200 body=fine",
                                                   "/a 401 " PROBLEM " body=\"{}\" | 200 body=fine"};

static void refresh_repeats_the_attempt_without_a_retry(void **state)
{
    for (size_t i = 0; i < sizeof unauthorized_scripts / sizeof *unauthorized_scripts; i++)
        for (int sink = 0; sink < 2; sink++) {
            struct live_call c;
            struct refresher r;
            if (sink && i == 2)
                continue; /* see the next test */
            open_refreshed(&c, &r, unauthorized_scripts[i]);
            live_target_service(&c.target);
            bide_budget_add_milli(&c.target, -1000000000, bide_now()); /* no retry could be charged */
            if (!sink)
                live_call_without_sink(&c);
            live_call_perform(&c, "/a");
            expect_done(&c, 1);
            assert_int_equal(r.calls, 1);
            assert_int_equal(c.result.refreshed, 1);
            assert_int_equal(c.result.attempt[0].status, 200);
            live_expect_text(&c.sink, "fine");
            expect_requests(&c, 2);
            assert_string_equal(c.server.seen[0].authorization, "Bearer old");
            assert_string_equal(c.server.seen[1].authorization, "Bearer new");
            assert_int_equal(c.server.seen[1].attempt[0], '1');
            live_call_close(&c);
        }
}

/* A 401 whose body is too long to hold is refreshed, or delivered completely, never partly. */
static void a_long_401_is_refreshed_or_delivered_completely(void **state)
{
    struct live_call c;
    struct refresher r;
    open_refreshed(&c, &r, "/a 401 bytes=70000 | 200 body=fine");
    assert_int_equal(live_call_perform(&c, "/a"), CURLE_OK);
    if (c.result.refreshed)
        live_expect_text(&c.sink, "fine");
    else
        live_expect_pattern(&c.sink, 70000);
    live_call_close(&c);
}

static void a_second_401_is_final(void **state)
{
    for (int sink = 0; sink < 2; sink++) {
        struct live_call c;
        struct refresher r;
        open_refreshed(&c, &r, "/a 401 body=who | 401 body=\"still who\"");
        if (!sink)
            live_call_without_sink(&c);
        live_call_perform(&c, "/a");
        live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_PERMANENT, 1);
        assert_int_equal(r.calls, 1);
        live_expect_text(&c.sink, "still who");
        expect_requests(&c, 2);
        live_call_close(&c);
    }
}

static void refresh_is_called_once_per_call(void **state)
{
    struct live_call c;
    struct refresher r;
    open_refreshed(&c, &r, "/a 401 | 503 | 401 body=who");
    live_call_perform(&c, "/a");
    live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_PERMANENT, 2);
    assert_int_equal(r.calls, 1);
    live_expect_text(&c.sink, "who");
    expect_requests(&c, 3);
    live_call_close(&c);
}

static void a_401_without_new_credentials_is_delivered(void **state)
{
    struct live_call c;
    struct refresher r;
    open_refreshed(&c, &r, "/a 401 body=who");
    r.result = false;
    assert_int_equal(live_call_perform(&c, "/a"), CURLE_OK);
    live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_PERMANENT, 1);
    live_expect_text(&c.sink, "who");
    assert_false(c.result.body_dropped);
    assert_int_equal(c.result.status, 401);
    expect_requests(&c, 1);
    live_call_close(&c);
}

static void a_401_without_credentials_and_sink_is_reported_as_dropped(void **state)
{
    struct live_call c;
    struct refresher r;
    open_refreshed(&c, &r, "/a 401 body=who");
    r.result = false;
    live_call_without_sink(&c);
    assert_int_equal(live_call_perform(&c, "/a"), CURLE_HTTP_RETURNED_ERROR);
    live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_PERMANENT, 1);
    assert_true(c.result.body_dropped);
    assert_int_equal(c.result.status, 401);
    live_call_close(&c);
}

static void a_spent_body_is_not_sent_again_after_refresh(void **state)
{
    for (int sink = 0; sink < 2; sink++) {
        struct live_call c;
        struct refresher r;
        open_refreshed(&c, &r, "/a 401 body=who | 200");
        curl_easy_setopt(c.easy, CURLOPT_POSTFIELDS, "mine");
        if (!sink)
            live_call_without_sink(&c);
        live_call_perform(&c, "/a");
        assert_int_equal(c.result.verdict.action, BIDE_ACTION_GIVE_UP);
        assert_int_equal(r.calls, 0);
        live_expect_text(&c.sink, "who");
        expect_requests(&c, 1);
        live_call_close(&c);
    }
}

static bool refresh_true(void *context, CURL *easy)
{
    return true;
}

/* The retry was sent and got a 401; only its repetition is refused. */
static void a_retry_whose_repetition_is_refused_is_not_refunded(void **state)
{
    struct live_call c;
    struct signer s;
    open_signed(&c, &s, "/a 503 | 401 | 200");
    live_target_service(&c.target);
    c.options.refresh = refresh_true;
    s.refuse_at = 3;
    int64_t before_milli = bide_target_get(&c.target, bide_now()).budget_left_milli;
    live_call_perform(&c, "/a");
    assert_int_equal(c.result.verdict.action, BIDE_ACTION_GIVE_UP);
    assert_int_equal(c.result.attempts, 2);
    expect_requests(&c, 2);
    assert_true(bide_target_get(&c.target, bide_now()).budget_left_milli <=
                before_milli - 900); /* 100 of refill: many seconds */
    close_signed(&c, &s);
}

static void a_post_is_sent_again_after_refresh(void **state)
{
    struct live_call c;
    struct refresher r;
    open_refreshed(&c, &r, "/a 401 | 200");
    live_call_post(&c, "x");
    live_call_perform(&c, "/a");
    expect_done(&c, 1);
    expect_requests(&c, 2);
    assert_int_equal(c.server.seen[1].body_hash, bide_hash("x", 1));
    live_call_close(&c);
}

/* ---- problem details ---- */

static const struct bide_details_rule types[] = {
    {"https://example.net/busy", BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_REJECTED, 0},
    {"https://example.net/broke", BIDE_KIND_PERMANENT, BIDE_EVIDENCE_ANSWERED, 0},
};

static void open_typed(struct live_call *c, const char *script)
{
    live_call_open(c, script, 3);
    c->options.type_rules = types;
    c->options.type_rule_count = 2;
}

static void a_problem_type_overrides_the_status(void **state)
{
    struct live_call c;
    open_typed(&c, "/busy 400 " PROBLEM " body=\"{\\\"type\\\":\\\"https://example.net/busy\\\"}\" | 200\n"
                   "/broke 503 " PROBLEM " body=\"{\\\"type\\\":\\\"https://example.net/broke\\\"}\"\n"
                   "/other 503 " PROBLEM " body=\"{\\\"type\\\":\\\"https://example.net/other\\\"}\" | 200");
    live_call_post(&c, "x");
    live_call_perform(&c, "/busy"); /* rejected: even an unsafe request is retried */
    expect_done(&c, 2);
    live_call_perform(&c, "/broke");
    live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_PERMANENT, 1);
    live_expect_text(&c.sink, "{\"type\":\"https://example.net/broke\"}");
    curl_easy_setopt(c.easy, CURLOPT_CUSTOMREQUEST, "PUT");
    live_call_perform(&c, "/other");
    expect_done(&c, 2);
    live_call_close(&c);
}

static void problem_members_are_hints(void **state)
{
    struct live_call c;
    live_call_open(&c,
                   "/wait 503 " PROBLEM " body=\"{\\\"retry_after\\\":0.4}\" | 200\n"
                   "/longer 503 retry-after=1 " PROBLEM " body=\"{\\\"retry_after\\\":0.1}\" | 200\n"
                   "/stop 503 retry-after=0 " PROBLEM "; body=\"{\\\"retry\\\":false}\"\n"
                   "/far 503 " PROBLEM " body=\"{\\\"retryAfter\\\":1e9}\"",
                   3);
    live_call_perform(&c, "/wait");
    expect_done(&c, 2);
    assert_int_equal(c.result.attempt[0].hint.wait_ns, 400 * BIDE_MS);
    live_call_perform(&c, "/longer");
    expect_done(&c, 2);
    live_call_perform(&c, "/stop");
    live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_SERVER_STOP, 1);
    live_expect_text(&c.sink, "{\"retry\":false}");
    live_call_perform(&c, "/far");
    live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_HINT_TOO_LONG, 1);
    live_server_stop(&c.server);
    assert_true(live_server_request(&c.server, "/wait", 1)->at_ns - live_server_request(&c.server, "/wait", 0)->at_ns >=
                400 * BIDE_MS);
    assert_true(live_server_request(&c.server, "/longer", 1)->at_ns -
                    live_server_request(&c.server, "/longer", 0)->at_ns >=
                BIDE_S);
    live_call_close(&c);
}

static void problem_details_of_a_retried_failure_do_not_reach_the_sink(void **state)
{
    struct live_call c;
    live_call_open(&c, "/a 503 " PROBLEM " body=\"{}\" | 503 " PROBLEM " bytes=60000 | 200 body=fine", 3);
    live_call_perform(&c, "/a");
    expect_done(&c, 3);
    live_expect_text(&c.sink, "fine");
    expect_requests(&c, 3);
    assert_int_equal(c.server.seen[0].connection, c.server.seen[2].connection);
    live_call_close(&c);
}

static void problem_details_that_are_too_long_are_classified_by_status(void **state)
{
    static const char *const script[] = {"/a 503 " PROBLEM " bytes=70000 | 200\n/b 400 " PROBLEM " bytes=70000",
                                         "/a 503 " PROBLEM " bytes=70000 chunked | 200\n/b 400 " PROBLEM
                                         " bytes=70000 chunked"};
    for (size_t i = 0; i < 2; i++) {
        struct live_call c;
        live_call_open(&c, script[i], 3);
        live_call_perform(&c, "/a");
        expect_done(&c, 2);
        live_call_perform(&c, "/b");
        live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_PERMANENT, 1);
        live_expect_pattern(&c.sink, 70000);
        live_call_close(&c);
    }
}

static void encoded_problem_details_are_ignored(void **state)
{
    struct live_call c;
    live_call_open(&c, "/a 503 " PROBLEM " header=\"Content-Encoding: gzip\" body=\"{\\\"retry\\\":false}\" | 200", 3);
    live_call_perform(&c, "/a");
    expect_done(&c, 2);
    live_call_close(&c);
}

static void malformed_problem_details_are_classified_by_status(void **state)
{
    struct live_call c;
    live_call_open(&c, "/a 503 " PROBLEM " body=\"{\\\"retry\\\":false\" | 200\n/b 404 " PROBLEM " body=nonsense", 3);
    live_call_perform(&c, "/a");
    expect_done(&c, 2);
    live_call_perform(&c, "/b");
    live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_PERMANENT, 1);
    live_expect_text(&c.sink, "nonsense");
    live_call_close(&c);
}

/* The problem details are truncated. The head still counts, above all its hint. */
static void problem_details_that_break_off_are_classified_by_head(void **state)
{
    static const char *const cut[] = {"reset=half", "close=half", "reset=headers", "chunked close=half"};
    for (size_t i = 0; i < sizeof cut / sizeof *cut; i++) {
        struct live_call c;
        char script[256];
        snprintf(script, sizeof script,
                 "/a 503 header=\"retry-after-ms: 300\" " PROBLEM " bytes=100 %s | 200\n"
                 "/b 400 " PROBLEM " bytes=100 %s",
                 cut[i], cut[i]);
        live_call_open(&c, script, 3);
        live_call_perform(&c, "/a");
        expect_done(&c, 2);
        assert_int_equal(c.result.attempt[0].status, 503);
        assert_int_equal(c.result.attempt[0].hint.wait_ns, 300 * BIDE_MS);
        live_call_perform(&c, "/b");
        live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_PERMANENT, 1);
        live_server_stop(&c.server);
        assert_true(live_server_request(&c.server, "/a", 1)->at_ns - live_server_request(&c.server, "/a", 0)->at_ns >=
                    300 * BIDE_MS);
        assert_int_equal(live_server_requests(&c.server, "/b"), 1);
        live_call_close(&c);
    }
}

static void problem_details_are_not_read_without_a_sink(void **state)
{
    struct live_call c;
    live_call_open(&c, "/a 503 " PROBLEM " body=\"{\\\"retry\\\":false}\" | 200 body=fine", 3);
    live_call_without_sink(&c);
    live_call_perform(&c, "/a");
    expect_done(&c, 2);
    live_expect_text(&c.sink, "fine");
    live_call_close(&c);
}

/* A success is not classified by its problem details. */
static void problem_details_of_a_success_are_ignored(void **state)
{
    struct live_call c;
    live_call_open(&c, "/a 200 " PROBLEM " body=\"{\\\"retry\\\":false}\"", 3);
    live_call_perform(&c, "/a");
    expect_done(&c, 1);
    live_call_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_success_classified_as_transient_is_retried),
        cmocka_unit_test(a_success_classified_as_transient_may_have_a_hint),
        cmocka_unit_test(a_final_success_classified_as_transient_is_delivered),
        cmocka_unit_test(a_schema_error_is_permanent_and_delivered),
        cmocka_unit_test(an_empty_success_is_classified_too),
        cmocka_unit_test(a_body_longer_than_hold_max_is_delivered_after_classify),
        cmocka_unit_test(a_body_of_exactly_hold_max_is_whole),
        cmocka_unit_test(a_held_success_that_breaks_off_is_retried),
        cmocka_unit_test(hold_max_does_not_raise_the_keep_limit),
        cmocka_unit_test(classify_sees_the_head_with_and_without_a_sink),
        cmocka_unit_test(classify_may_set_a_hint),
        cmocka_unit_test(before_is_called_for_each_attempt),
        cmocka_unit_test(before_can_refuse_the_first_attempt),
        cmocka_unit_test(before_can_refuse_a_retry_and_the_last_response_is_delivered),
        cmocka_unit_test(headers_set_by_before_are_checked),
        cmocka_unit_test(refresh_repeats_the_attempt_without_a_retry),
        cmocka_unit_test(a_long_401_is_refreshed_or_delivered_completely),
        cmocka_unit_test(a_second_401_is_final),
        cmocka_unit_test(refresh_is_called_once_per_call),
        cmocka_unit_test(a_401_without_new_credentials_is_delivered),
        cmocka_unit_test(a_401_without_credentials_and_sink_is_reported_as_dropped),
        cmocka_unit_test(a_spent_body_is_not_sent_again_after_refresh),
        cmocka_unit_test(a_retry_whose_repetition_is_refused_is_not_refunded),
        cmocka_unit_test(a_post_is_sent_again_after_refresh),
        cmocka_unit_test(a_problem_type_overrides_the_status),
        cmocka_unit_test(problem_members_are_hints),
        cmocka_unit_test(problem_details_of_a_retried_failure_do_not_reach_the_sink),
        cmocka_unit_test(problem_details_that_are_too_long_are_classified_by_status),
        cmocka_unit_test(encoded_problem_details_are_ignored),
        cmocka_unit_test(malformed_problem_details_are_classified_by_status),
        cmocka_unit_test(problem_details_that_break_off_are_classified_by_head),
        cmocka_unit_test(problem_details_are_not_read_without_a_sink),
        cmocka_unit_test(problem_details_of_a_success_are_ignored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
