/* test_headers.c - header fields that bide adds or forwards: stable across attempts, checked before a socket opens, and
 * never sent to another origin. */
#include "live_call.h"

#include <bide/clock.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRACE "4bf92f3577b34da6a3ce929d0e0e4736"

static void expect_done(const struct live_call *c, uint32_t attempts)
{
    assert_int_equal(c->code, CURLE_OK);
    live_expect(c, BIDE_ACTION_DONE, BIDE_REASON_SUCCEEDED, attempts);
}

static bool request_has(const struct chaos_seen *seen, const char *field)
{
    struct bide_text value;
    return chaos_seen_header(seen, field, &value);
}

/* Returns the value as text, valid until the next call; NULL if the field is absent. */
static const char *request_field(const struct chaos_seen *seen, const char *field)
{
    static char text[512];
    struct bide_text value;
    if (!chaos_seen_header(seen, field, &value))
        return NULL;
    snprintf(text, sizeof text, "%.*s", (int)value.length, value.at);
    return text;
}

/* ---- key ---- */

static void a_key_is_generated_once_and_sent_with_every_attempt(void **state)
{
    struct live_call c;
    char quoted[BIDE_KEY_TEXT_SIZE + 2];
    live_call_open(&c, "/a 503 | reset | 409 | 200", 5);
    c.options.inject = BIDE_CURL_INJECT_KEY;
    live_call_post(&c, "x");
    live_call_perform(&c, "/a");
    expect_done(&c, 4);
    assert_int_equal(strlen(c.result.key), BIDE_KEY_TEXT_SIZE - 1);
    snprintf(quoted, sizeof quoted, "\"%s\"", c.result.key);
    live_server_stop(&c.server);
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(c.server.seen[i].key, quoted);
    live_call_close(&c);
}

static void each_call_generates_its_own_key(void **state)
{
    struct live_call c;
    live_call_open(&c, "/a 200", 5);
    c.options.inject = BIDE_CURL_INJECT_KEY;
    c.options.body.kind = BIDE_CURL_BODY_REPEATABLE;
    c.options.key_form = BIDE_KEY_RAW;
    live_call_perform(&c, "/a");
    live_call_perform(&c, "/a");
    live_server_stop(&c.server);
    assert_string_not_equal(c.server.seen[0].key, c.server.seen[1].key);
    assert_string_equal(c.server.seen[1].key, c.result.key);
    live_call_close(&c);
}

static void a_given_key_is_sent_in_its_form(void **state)
{
    static const enum bide_key_form form[] = {BIDE_KEY_RAW, BIDE_KEY_QUOTED, BIDE_KEY_QUOTED};
    static const char *const key[] = {"order-17", "order-17", "a\\b\"c"};
    static const char *const sent[] = {"order-17", "\"order-17\"", "\"a\\\\b\\\"c\""};
    for (size_t i = 0; i < 3; i++) {
        struct live_call c;
        live_call_open(&c, "/a 503 | 200", 5);
        c.options.inject = BIDE_CURL_INJECT_KEY;
        c.options.key_form = form[i];
        c.options.key = key[i];
        live_call_post(&c, "x");
        live_call_perform(&c, "/a");
        expect_done(&c, 2);
        assert_string_equal(c.result.key, "");
        live_server_stop(&c.server);
        assert_string_equal(c.server.seen[0].key, sent[i]);
        assert_string_equal(c.server.seen[1].key, sent[i]);
        live_call_close(&c);
    }
}

static void the_longest_key_is_sent_completely(void **state)
{
    char key[BIDE_KEY_MAX + 1];
    struct live_call c;
    memset(key, '"', BIDE_KEY_MAX);
    key[BIDE_KEY_MAX] = '\0';
    live_call_open(&c, "/a 200", 1);
    c.options.inject = BIDE_CURL_INJECT_KEY;
    c.options.body.kind = BIDE_CURL_BODY_REPEATABLE;
    c.options.key = key;
    live_call_perform(&c, "/a");
    expect_done(&c, 1);
    live_server_stop(&c.server);
    assert_int_equal(strlen(c.server.seen[0].key), 2 * BIDE_KEY_MAX + 2);
    live_call_close(&c);
}

/* ---- attempt and trace ---- */

static void attempts_are_numbered(void **state)
{
    struct live_call c;
    live_call_open(&c, "/a 503 | reset | 200", 5);
    c.options.inject = BIDE_CURL_INJECT_ATTEMPT;
    live_call_perform(&c, "/a");
    expect_done(&c, 3);
    live_server_stop(&c.server);
    int64_t left_ns = BIDE_NEVER;
    for (uint32_t i = 0; i < 3; i++) {
        struct bide_layer layer;
        const char *text = c.server.seen[i].attempt;
        assert_true(bide_layer_parse((struct bide_text){text, strlen(text)}, &layer));
        assert_int_equal(layer.attempt, i + 1);
        assert_int_equal(layer.attempts_max, 5);
        assert_false(layer.no_retry);
        assert_true(layer.left_ns > 0 && layer.left_ns <= c.policy.call_timeout_ns && layer.left_ns <= left_ns);
        left_ns = layer.left_ns;
    }
    live_call_close(&c);
}

static void an_inbound_layer_is_forwarded(void **state)
{
    struct live_call c;
    struct bide_layer layer, inbound = {.attempt = 3, .left_ns = 20 * BIDE_S, .no_retry = true};
    live_call_open(&c, "/a 503", 5);
    c.options.inject = BIDE_CURL_INJECT_ATTEMPT;
    c.options.inbound = &inbound;
    live_call_perform(&c, "/a");
    live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_INNER_LAYER, 1);
    live_server_stop(&c.server);
    const char *text = c.server.seen[0].attempt;
    assert_true(bide_layer_parse((struct bide_text){text, strlen(text)}, &layer));
    assert_int_equal(layer.attempt, 3);
    assert_true(layer.no_retry);
    assert_true(layer.left_ns > 0 && layer.left_ns <= 20 * BIDE_S);
    live_call_close(&c);
}

static void expect_one_trace(struct live_call *c, const char *trace_id, size_t count)
{
    live_server_stop(&c->server);
    assert_int_equal(c->server.count, count);
    for (size_t i = 0; i < count; i++) {
        const char *text = c->server.seen[i].traceparent;
        assert_int_equal(strlen(text), BIDE_TRACE_TEXT_SIZE - 1);
        assert_memory_equal(text + 3, trace_id, 32);
        for (size_t k = 0; k < i; k++)
            assert_memory_not_equal(text + 36, c->server.seen[k].traceparent + 36, 16);
    }
}

static void attempts_share_a_trace_id_and_have_their_own_parent_ids(void **state)
{
    struct live_call c;
    live_call_open(&c, "/a 503 | reset | 200", 5);
    c.options.inject = BIDE_CURL_INJECT_TRACE;
    live_call_perform(&c, "/a");
    expect_done(&c, 3);
    live_server_stop(&c.server);
    expect_one_trace(&c, c.server.seen[0].traceparent + 3, 3);
    live_call_close(&c);
}

static void an_inbound_trace_is_continued(void **state)
{
    struct live_call c;
    live_call_open(&c, "/a 503 | 200", 5);
    c.options.inject = BIDE_CURL_INJECT_TRACE;
    c.options.traceparent = "00-" TRACE "-00f067aa0ba902b7-01";
    live_call_perform(&c, "/a");
    expect_done(&c, 2);
    expect_one_trace(&c, TRACE, 2);
    assert_memory_not_equal(c.server.seen[0].traceparent + 36, "00f067aa0ba902b7", 16);
    assert_string_equal(c.server.seen[0].traceparent + 53, "01");
    live_call_close(&c);
}

static void a_malformed_traceparent_starts_a_new_trace(void **state)
{
    struct live_call c;
    live_call_open(&c, "/a 200", 5);
    c.options.inject = BIDE_CURL_INJECT_TRACE;
    c.options.traceparent = "00-" TRACE "-00f067aa0ba902b7-01\r\nX-Evil: 1";
    live_call_perform(&c, "/a");
    expect_done(&c, 1);
    live_server_stop(&c.server);
    assert_int_equal(strlen(c.server.seen[0].traceparent), BIDE_TRACE_TEXT_SIZE - 1);
    assert_memory_not_equal(c.server.seen[0].traceparent + 3, TRACE, 32);
    assert_false(request_has(&c.server.seen[0], "X-Evil"));
    live_call_close(&c);
}

static void no_header_is_added_without_inject(void **state)
{
    struct live_call c;
    live_call_open(&c, "/a 503 | 200", 5);
    curl_easy_setopt(c.easy, CURLOPT_HTTPHEADER, NULL);
    live_call_perform(&c, "/a");
    live_server_stop(&c.server);
    for (size_t i = 0; i < 2; i++) {
        assert_null(c.server.seen[i].key);
        assert_null(c.server.seen[i].attempt);
        assert_null(c.server.seen[i].traceparent);
    }
    live_call_close(&c);
}

static void the_handle_s_header_list_stays_without_inject(void **state)
{
    struct live_call c;
    struct curl_slist *list = curl_slist_append(NULL, "X-Mine: 1");
    live_call_open(&c, "/a 503 | 200", 5);
    curl_easy_setopt(c.easy, CURLOPT_HTTPHEADER, list);
    live_call_perform(&c, "/a");
    live_server_stop(&c.server);
    assert_true(request_has(&c.server.seen[0], "X-Mine"));
    assert_true(request_has(&c.server.seen[1], "X-Mine"));
    curl_slist_free_all(list);
    live_call_close(&c);
}

static void the_caller_s_headers_are_sent_and_stay_unchanged(void **state)
{
    struct live_call c;
    live_call_open(&c, "/a 503 | 200", 5);
    c.options.headers = curl_slist_append(curl_slist_append(NULL, "X-Mine: 1"), "Accept:");
    c.options.inject = BIDE_CURL_INJECT_KEY | BIDE_CURL_INJECT_ATTEMPT | BIDE_CURL_INJECT_TRACE;
    c.options.body.kind = BIDE_CURL_BODY_REPEATABLE;
    live_call_perform(&c, "/a");
    expect_done(&c, 2);
    assert_string_equal(c.options.headers->data, "X-Mine: 1");
    assert_string_equal(c.options.headers->next->data, "Accept:");
    assert_null(c.options.headers->next->next);
    live_server_stop(&c.server);
    for (size_t i = 0; i < 2; i++) {
        assert_string_equal(request_field(&c.server.seen[i], "X-Mine"), "1");
        assert_false(request_has(&c.server.seen[i], "Accept"));
        assert_non_null(c.server.seen[i].key);
        assert_non_null(c.server.seen[i].attempt);
        assert_non_null(c.server.seen[i].traceparent);
    }
    curl_slist_free_all(c.options.headers);
    live_call_close(&c);
}

/* ---- rejected before a socket opens ---- */

static void expect_refused(void (*set)(struct live_call *, const char *), const char *text)
{
    struct live_call c;
    struct live_trap trap;
    live_trap_open(&trap);
    live_call_open(&c, "", 3);
    set(&c, text);
    assert_int_equal(live_call_perform_url(&c, trap.url), CURLE_BAD_FUNCTION_ARGUMENT);
    assert_int_equal(c.result.attempts, 0);
    assert_false(live_trap_sprung(&trap));
    curl_slist_free_all(c.options.headers);
    live_trap_close(&trap);
    live_call_close(&c);
}

static bool allow_attempt(void *context, CURL *easy, const struct bide_verdict *start, struct curl_slist **headers)
{
    return true;
}

static void set_key(struct live_call *c, const char *text)
{
    c->options.inject = BIDE_CURL_INJECT_KEY;
    c->options.body.kind = BIDE_CURL_BODY_REPEATABLE;
    c->options.key = text;
}

static void set_raw_key(struct live_call *c, const char *text)
{
    set_key(c, text);
    c->options.key_form = BIDE_KEY_RAW;
}

static void set_header(struct live_call *c, const char *text)
{
    c->options.headers = curl_slist_append(curl_slist_append(NULL, "X-Fine: 1"), text);
}

/* The handle has a list, and the options do not name it. */
static void set_list_on_handle(struct live_call *c, const char *option)
{
    static char line[] = "Authorization: Bearer secret";
    static struct curl_slist list = {line, NULL};
    curl_easy_setopt(c->easy, CURLOPT_HTTPHEADER, &list);
    c->options.no_headers = false;
    c->options.resume = strcmp(option, "resume") == 0;
    c->options.inject = strcmp(option, "inject") == 0 ? BIDE_CURL_INJECT_TRACE : 0;
    c->options.before = strcmp(option, "before") == 0 ? allow_attempt : NULL;
}

static void the_list_of_the_handle_is_never_replaced(void **state)
{
    struct live_call c;
    expect_refused(set_list_on_handle, "resume");
    expect_refused(set_list_on_handle, "inject");
    expect_refused(set_list_on_handle, "before");
    live_call_open(&c, "/a 503 | 200", 3);
    set_list_on_handle(&c, "");
    live_call_perform(&c, "/a");
    expect_done(&c, 2);
    live_server_stop(&c.server);
    assert_string_equal(c.server.seen[1].authorization, "Bearer secret");
    live_call_close(&c);
}

static char *repeated_text(const char *start, size_t length)
{
    char *text = malloc(length + 1);
    memset(text, 'k', length);
    memcpy(text, start, strlen(start));
    text[length] = '\0';
    return text;
}

static void invalid_keys_are_rejected_before_a_socket_opens(void **state)
{
    static const char *const invalid[] = {"a\rb", "a\nb", "a\r\nX-Evil: 1", "\x7f", "a\x01", "", "caf\xc3\xa9"};
    for (size_t i = 0; i < sizeof invalid / sizeof *invalid; i++) {
        expect_refused(set_key, invalid[i]);
        expect_refused(set_raw_key, invalid[i]);
    }
    expect_refused(set_raw_key, "a,b");
    char *too_long = repeated_text("", 8192);
    expect_refused(set_key, too_long);
    expect_refused(set_raw_key, too_long);
    free(too_long);
}

static void invalid_header_lines_are_rejected_before_a_socket_opens(void **state)
{
    expect_refused(set_header, "X-A: 1\r\nX-Evil: 1");
    expect_refused(set_header, "X-A: 1\nX-Evil: 1");
    expect_refused(set_header, "X-A: 1\r");
    expect_refused(set_header, "X-A: 1\n");
    expect_refused(set_header, "X-A: \x01");
    expect_refused(set_header, "X-A: a long value with \x1b[1m in it");
    expect_refused(set_header, "X-A: \x7f");
    char *too_long = repeated_text("X-A: ", 8193);
    expect_refused(set_header, too_long);
    free(too_long);
}

/* ---- redirects ---- */

/* Two servers: the first redirects to the second, `other`. */
struct redirect {
    struct live_call c;
    struct live_server other;
    char script[256];
};

static void redirect_open(struct redirect *r, const char *other)
{
    live_server_start(&r->other, other);
    snprintf(r->script, sizeof r->script, "/a 307 location=http://127.0.0.1:%u/b\n/b 200 body=here",
             chaos_port(r->other.chaos));
    live_call_open(&r->c, r->script, 3);
    curl_easy_setopt(r->c.easy, CURLOPT_FOLLOWLOCATION, 1L);
    r->c.options.inject = BIDE_CURL_INJECT_KEY | BIDE_CURL_INJECT_ATTEMPT | BIDE_CURL_INJECT_TRACE;
    r->c.options.headers =
        curl_slist_append(curl_slist_append(NULL, "X-Token: secret"), "Authorization: Bearer secret");
    live_call_post(&r->c, "x");
}

static void redirect_close(struct redirect *r)
{
    live_server_stop(&r->other);
    live_server_free(&r->other);
    curl_slist_free_all(r->c.options.headers);
    live_call_close(&r->c);
}

static void expect_no_headers(const struct chaos_seen *seen)
{
    assert_false(request_has(seen, "X-Token"));
    assert_null(seen->authorization);
    assert_null(seen->key);
    assert_null(seen->attempt);
    assert_null(seen->traceparent);
}

static void expect_all_headers(const struct chaos_seen *seen)
{
    assert_true(request_has(seen, "X-Token"));
    assert_non_null(seen->authorization);
    assert_non_null(seen->key);
    assert_non_null(seen->attempt);
    assert_non_null(seen->traceparent);
}

static void headers_are_not_sent_to_another_port(void **state)
{
    struct redirect r;
    redirect_open(&r, "* 200 body=there");
    live_call_perform(&r.c, "/a");
    expect_done(&r.c, 1);
    live_expect_text(&r.c.sink, "there");
    live_server_stop(&r.c.server);
    live_server_stop(&r.other);
    expect_all_headers(&r.c.server.seen[0]);
    assert_int_equal(r.other.count, 1);
    expect_no_headers(&r.other.seen[0]);
    redirect_close(&r);
}

/* The same port at the same address, by another name. */
static void headers_are_not_sent_to_another_host(void **state)
{
    struct live_call c;
    live_call_open(&c, "/a 302 location=http://127.0.0.1:$PORT/b\n/b 503 | 200 body=there", 3);
    curl_easy_setopt(c.easy, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(c.easy, CURLOPT_IPRESOLVE, CURL_IPRESOLVE_V4);
    c.options.inject = BIDE_CURL_INJECT_KEY | BIDE_CURL_INJECT_ATTEMPT | BIDE_CURL_INJECT_TRACE;
    c.options.headers = curl_slist_append(curl_slist_append(NULL, "X-Token: secret"), "Authorization: Bearer secret");
    c.options.body.kind = BIDE_CURL_BODY_REPEATABLE;
    char url[64];
    snprintf(url, sizeof url, "http://localhost:%u/a", chaos_port(c.server.chaos));
    live_call_perform_url(&c, url);
    expect_done(&c, 2);
    live_server_stop(&c.server);
    for (size_t i = 0; i < 2; i++) {
        expect_all_headers(live_server_request(&c.server, "/a", i)); /* in the second attempt, too */
        expect_no_headers(live_server_request(&c.server, "/b", i));
    }
    curl_slist_free_all(c.options.headers);
    live_call_close(&c);
}

static void headers_follow_a_redirect_within_the_origin(void **state)
{
    static const char *const script[] = {"/a 307 location=/b\n/b 200",
                                         "/a 307 location=http://127.0.0.1:$PORT/b\n/b 200",
                                         "/a 307 location=HTTP://user:pw@127.0.0.1:$PORT/b\n/b 200"};
    for (size_t i = 0; i < 3; i++) {
        struct live_call c;
        live_call_open(&c, script[i], 3);
        curl_easy_setopt(c.easy, CURLOPT_FOLLOWLOCATION, 1L);
        c.options.inject = BIDE_CURL_INJECT_KEY | BIDE_CURL_INJECT_ATTEMPT | BIDE_CURL_INJECT_TRACE;
        c.options.headers =
            curl_slist_append(curl_slist_append(NULL, "X-Token: secret"), "Authorization: Bearer secret");
        live_call_post(&c, "x");
        live_call_perform(&c, "/a");
        expect_done(&c, 1);
        live_server_stop(&c.server);
        expect_all_headers(live_server_request(&c.server, "/b", 0));
        curl_slist_free_all(c.options.headers);
        live_call_close(&c);
    }
}

/* The caller's Content-Type belongs to the body: where the body goes it goes, and where not, not. */
static void fields_that_describe_the_body_follow_it_to_another_origin(void **state)
{
    static const char *const other[] = {"/b 200", "/b 308 location=/c\n/c 200", "/b 303 location=/c\n/c 200"};
    for (size_t i = 0; i < 3; i++) {
        struct redirect r;
        redirect_open(&r, other[i]);
        r.c.options.headers = curl_slist_append(r.c.options.headers, "content-type: application/json");
        r.c.options.headers = curl_slist_append(r.c.options.headers, "Accept: application/json");
        r.c.options.headers = curl_slist_append(r.c.options.headers, "User-Agent: me");
        r.c.options.headers = curl_slist_append(r.c.options.headers, "Content-Type-Secret: secret");
        live_call_perform(&r.c, "/a");
        expect_done(&r.c, 1);
        live_server_stop(&r.c.server);
        live_server_stop(&r.other);
        for (size_t leg = 0; leg < r.other.count; leg++) {
            const struct chaos_seen *seen = &r.other.seen[leg];
            bool has_body = leg == 0 || i == 1;
            expect_no_headers(seen);
            assert_false(request_has(seen, "Content-Type-Secret"));
            assert_string_equal(request_field(seen, "Accept"), "application/json");
            assert_string_equal(request_field(seen, "User-Agent"), "me");
            assert_int_equal(request_has(seen, "Content-Type"), has_body);
            if (has_body)
                assert_string_equal(request_field(seen, "Content-Type"), "application/json");
        }
        assert_int_equal(r.other.count, i == 0 ? 1 : 2);
        redirect_close(&r);
    }
}

/* A redirect back does not restore the headers: another server chose the location. */
static void headers_stay_removed_after_a_redirect_back(void **state)
{
    struct live_call c;
    live_call_open(&c, "/a 302 location=http://localhost:$PORT/b\n/b 302 location=http://127.0.0.1:$PORT/c\n/c 200", 3);
    curl_easy_setopt(c.easy, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(c.easy, CURLOPT_IPRESOLVE, CURL_IPRESOLVE_V4);
    c.options.inject = BIDE_CURL_INJECT_KEY;
    c.options.body.kind = BIDE_CURL_BODY_REPEATABLE;
    c.options.headers = curl_slist_append(NULL, "X-Token: secret");
    live_call_perform(&c, "/a");
    expect_done(&c, 1);
    live_server_stop(&c.server);
    assert_true(request_has(live_server_request(&c.server, "/a", 0), "X-Token"));
    assert_false(request_has(live_server_request(&c.server, "/b", 0), "X-Token"));
    assert_false(request_has(live_server_request(&c.server, "/c", 0), "X-Token"));
    curl_slist_free_all(c.options.headers);
    live_call_close(&c);
}

static void user_and_password_are_not_sent_to_another_port(void **state)
{
    struct redirect r;
    redirect_open(&r, "* 200 body=there");
    curl_slist_free_all(r.c.options.headers);
    r.c.options.headers = NULL;
    curl_easy_setopt(r.c.easy, CURLOPT_USERPWD, "bob:secret");
    live_call_perform(&r.c, "/a");
    expect_done(&r.c, 1);
    live_server_stop(&r.c.server);
    live_server_stop(&r.other);
    assert_non_null(r.c.server.seen[0].authorization);
    assert_null(r.other.seen[0].authorization);
    redirect_close(&r);
}

/* The key was not sent to the other origin: there the request is as unsafe as its method. */
static void a_post_without_its_key_at_another_origin_is_not_repeated(void **state)
{
    static const char *const script[] = {"* 503 body=down", "* close", "* reset", "* 409"};
    for (size_t i = 0; i < 4; i++) {
        struct redirect r;
        redirect_open(&r, script[i]);
        live_call_perform(&r.c, "/a");
        assert_int_equal(r.c.result.verdict.action, BIDE_ACTION_GIVE_UP);
        assert_int_equal(r.c.result.attempts, 1);
        live_server_stop(&r.other);
        assert_int_equal(r.other.count, 1);
        assert_null(r.other.seen[0].key);
        redirect_close(&r);
    }
}

static void a_redirect_to_another_origin_can_be_refused(void **state)
{
    struct redirect r;
    redirect_open(&r, "* 200 body=there");
    r.c.options.redirect = BIDE_CURL_REDIRECT_REFUSE;
    assert_int_not_equal(live_call_perform(&r.c, "/a"), CURLE_OK);
    live_expect(&r.c, BIDE_ACTION_GIVE_UP, BIDE_REASON_PERMANENT, 1);
    assert_int_equal(r.c.sink.length, 0);
    live_server_stop(&r.other);
    assert_int_equal(r.other.count, 0);
    redirect_close(&r);
}

static void a_redirect_to_another_origin_is_refused_without_headers_too(void **state)
{
    struct redirect r;
    redirect_open(&r, "* 200 body=there");
    curl_slist_free_all(r.c.options.headers);
    r.c.options.headers = NULL;
    r.c.options.inject = 0;
    r.c.options.redirect = BIDE_CURL_REDIRECT_REFUSE;
    assert_int_not_equal(live_call_perform(&r.c, "/a"), CURLE_OK);
    live_expect(&r.c, BIDE_ACTION_GIVE_UP, BIDE_REASON_PERMANENT, 1);
    live_server_stop(&r.other);
    assert_int_equal(r.other.count, 0);
    live_server_stop(&r.c.server);
    assert_int_equal(r.c.server.count, 1);
    redirect_close(&r);
}

static void a_redirect_within_the_origin_is_not_refused(void **state)
{
    struct live_call c;
    live_call_open(&c, "/a 302 location=/b\n/b 200", 3);
    curl_easy_setopt(c.easy, CURLOPT_FOLLOWLOCATION, 1L);
    c.options.redirect = BIDE_CURL_REDIRECT_REFUSE;
    live_call_perform(&c, "/a");
    expect_done(&c, 1);
    live_call_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_is_generated_once_and_sent_with_every_attempt),
        cmocka_unit_test(each_call_generates_its_own_key),
        cmocka_unit_test(a_given_key_is_sent_in_its_form),
        cmocka_unit_test(the_longest_key_is_sent_completely),
        cmocka_unit_test(attempts_are_numbered),
        cmocka_unit_test(an_inbound_layer_is_forwarded),
        cmocka_unit_test(attempts_share_a_trace_id_and_have_their_own_parent_ids),
        cmocka_unit_test(an_inbound_trace_is_continued),
        cmocka_unit_test(a_malformed_traceparent_starts_a_new_trace),
        cmocka_unit_test(no_header_is_added_without_inject),
        cmocka_unit_test(the_handle_s_header_list_stays_without_inject),
        cmocka_unit_test(the_caller_s_headers_are_sent_and_stay_unchanged),
        cmocka_unit_test(the_list_of_the_handle_is_never_replaced),
        cmocka_unit_test(invalid_keys_are_rejected_before_a_socket_opens),
        cmocka_unit_test(invalid_header_lines_are_rejected_before_a_socket_opens),
        cmocka_unit_test(headers_are_not_sent_to_another_port),
        cmocka_unit_test(headers_are_not_sent_to_another_host),
        cmocka_unit_test(headers_follow_a_redirect_within_the_origin),
        cmocka_unit_test(fields_that_describe_the_body_follow_it_to_another_origin),
        cmocka_unit_test(headers_stay_removed_after_a_redirect_back),
        cmocka_unit_test(user_and_password_are_not_sent_to_another_port),
        cmocka_unit_test(a_post_without_its_key_at_another_origin_is_not_repeated),
        cmocka_unit_test(a_redirect_to_another_origin_can_be_refused),
        cmocka_unit_test(a_redirect_to_another_origin_is_refused_without_headers_too),
        cmocka_unit_test(a_redirect_within_the_origin_is_not_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
