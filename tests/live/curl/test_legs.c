/* test_legs.c - attempts with several legs: libcurl follows redirects and answers challenges by itself, and each leg is
 * a request that a server may execute. Legs may differ in method, origin, and whether the key is sent. */
#include "live_call.h"
#include "live_tcp.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BODY "charge=1"

/* ---- a redirect to another origin ---- */

struct two_origins {
    struct live_call c;
    struct live_server other;
};

/* In the script `first`, THERE is replaced by the other origin. */
static void two_origins_open(struct two_origins *w, const char *first, const char *other, uint32_t attempts)
{
    char script[512];
    size_t used = 0;
    live_server_start(&w->other, other);
    for (const char *at; (at = strstr(first, "THERE")) != NULL; first = at + strlen("THERE"))
        used += (size_t)snprintf(script + used, sizeof script - used, "%.*s%s", (int)(at - first), first,
                                 live_server_url(&w->other, ""));
    snprintf(script + used, sizeof script - used, "%s", first);
    live_call_open(&w->c, script, attempts);
    curl_easy_setopt(w->c.easy, CURLOPT_FOLLOWLOCATION, 1L);
    live_call_post(&w->c, BODY);
}

static void two_origins_close(struct two_origins *w)
{
    curl_slist_free_all(w->c.options.headers);
    live_call_close(&w->c);
    live_server_free(&w->other);
}

static void two_origins_stop(struct two_origins *w)
{
    live_server_stop(&w->c.server);
    live_server_stop(&w->other);
}

static void set_own_key(struct two_origins *w)
{
    w->c.options.safety = BIDE_CURL_KEYED;
    w->c.options.headers = curl_slist_append(NULL, "Idempotency-Key: mine");
}

static void set_generated_key(struct two_origins *w)
{
    w->c.options.inject = BIDE_CURL_INJECT_KEY;
}

static void (*const key_setters[])(struct two_origins *) = {set_own_key, set_generated_key};

static void a_post_that_lost_its_key_is_not_repeated(void **state)
{
    static const char *const first[] = {"/a 307 location=THERE/", "/a 308 location=THERE/"};
    for (size_t i = 0; i < 4; i++) {
        struct two_origins w;
        two_origins_open(&w, first[i % 2], "/ close", 4);
        key_setters[i / 2](&w);
        live_call_perform(&w.c, "/a");
        live_expect(&w.c, BIDE_ACTION_GIVE_UP, BIDE_REASON_NOT_REPEATABLE, 1);
        two_origins_stop(&w);
        assert_non_null(w.c.server.seen[0].key);
        assert_int_equal(w.other.count, 1);
        assert_null(w.other.seen[0].key);
        assert_string_equal(w.other.seen[0].method, "POST");
        two_origins_close(&w);
    }
}

/* The first two attempts did not reach the other origin and were keyed. */
static void a_post_is_keyed_until_a_leg_loses_the_key(void **state)
{
    for (size_t i = 0; i < 2; i++) {
        struct two_origins w;
        two_origins_open(&w, "/a close | 503 | 307 location=THERE/", "/ close", 9);
        key_setters[i](&w);
        live_call_perform(&w.c, "/a");
        live_expect(&w.c, BIDE_ACTION_GIVE_UP, BIDE_REASON_NOT_REPEATABLE, 3);
        two_origins_stop(&w);
        assert_int_equal(w.other.count, 1);
        two_origins_close(&w);
    }
}

static void require_key_sends_no_post_without_its_key(void **state)
{
    for (size_t i = 0; i < 2; i++) {
        struct two_origins w;
        two_origins_open(&w, "/a 307 location=THERE/", "/ 200", 4);
        key_setters[i](&w);
        w.c.policy.require_key = true;
        assert_int_not_equal(live_call_perform(&w.c, "/a"), CURLE_OK);
        live_expect(&w.c, BIDE_ACTION_GIVE_UP, BIDE_REASON_KEY_REQUIRED, 1);
        two_origins_stop(&w);
        assert_int_equal(w.c.server.count, 1);
        assert_int_equal(w.other.count, 0);
        two_origins_close(&w);
    }
}

/* 303: the POST was executed at the first origin, which knows the key; the second origin gets a GET. */
static void a_keyed_post_redirected_to_get_at_another_origin_is_retried(void **state)
{
    for (size_t i = 0; i < 2; i++) {
        struct two_origins w;
        two_origins_open(&w, "/a 303 location=THERE/", "/ close | 200 body=fine", 4);
        key_setters[i](&w);
        assert_int_equal(live_call_perform(&w.c, "/a"), CURLE_OK);
        live_expect(&w.c, BIDE_ACTION_DONE, BIDE_REASON_SUCCEEDED, 2);
        live_expect_text(&w.c.sink, "fine");
        two_origins_stop(&w);
        assert_string_equal(w.c.server.seen[0].key, w.c.server.seen[1].key);
        assert_string_equal(w.other.seen[1].method, "GET");
        assert_null(w.other.seen[1].key);
        two_origins_close(&w);
    }
}

/* A GET in one attempt does not make the next attempt safe. */
static void a_get_at_another_origin_does_not_make_a_later_post_safe(void **state)
{
    for (size_t i = 0; i < 2; i++) {
        struct two_origins w;
        two_origins_open(&w, "/a 303 location=THERE/get | 307 location=THERE/pay", "/get close\n/pay close", 9);
        key_setters[i](&w);
        live_call_perform(&w.c, "/a");
        two_origins_stop(&w);
        assert_int_equal(live_server_requests(&w.other, "/pay"), 1);
        live_expect(&w.c, BIDE_ACTION_GIVE_UP, BIDE_REASON_NOT_REPEATABLE, 2);
        two_origins_close(&w);
    }
}

/* Without a key the POST may have run at the first origin when the GET fails. */
static void an_unkeyed_post_redirected_to_get_is_not_repeated(void **state)
{
    struct two_origins w;
    two_origins_open(&w, "/a 303 location=THERE/", "/ close | 200", 4);
    live_call_perform(&w.c, "/a");
    live_expect(&w.c, BIDE_ACTION_GIVE_UP, BIDE_REASON_NOT_REPEATABLE, 1);
    two_origins_stop(&w);
    assert_int_equal(live_server_requests(&w.c.server, "/a"), 1);
    assert_int_equal(w.other.count, 1);
    two_origins_close(&w);
}

/* ---- chains of redirects ---- */

static bool request_has(const struct chaos_seen *seen, const char *name)
{
    struct bide_text value;
    return chaos_seen_header(seen, name, &value);
}

/* First origin twice, other origin, first origin: headers end where the chain leaves the first origin, in each
 * attempt. */
static void headers_follow_redirects_until_they_leave_the_origin(void **state)
{
    struct live_call c;
    live_call_open(&c,
                   "/1 307 location=/2\n/2 307 location=http://localhost:$PORT/3\n"
                   "/3 307 location=http://127.0.0.1:$PORT/4\n/4 503 | 200 body=fine",
                   3);
    curl_easy_setopt(c.easy, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(c.easy, CURLOPT_IPRESOLVE, CURL_IPRESOLVE_V4);
    c.options.headers = curl_slist_append(NULL, "X-Token: secret");
    assert_int_equal(live_call_perform(&c, "/1"), CURLE_OK);
    live_expect(&c, BIDE_ACTION_DONE, BIDE_REASON_SUCCEEDED, 2);
    live_server_stop(&c.server);
    for (size_t i = 0; i < 2; i++) {
        assert_true(request_has(live_server_request(&c.server, "/1", i), "X-Token"));
        assert_true(request_has(live_server_request(&c.server, "/2", i), "X-Token"));
        assert_false(request_has(live_server_request(&c.server, "/3", i), "X-Token"));
        assert_false(request_has(live_server_request(&c.server, "/4", i), "X-Token"));
    }
    curl_slist_free_all(c.options.headers);
    live_call_close(&c);
}

static void a_key_follows_redirects_within_the_origin_and_the_post_is_retried(void **state)
{
    struct live_call c;
    live_call_open(&c, "/1 307 location=/2\n/2 308 location=http://127.0.0.1:$PORT/3\n/3 close | 503 | 200 body=fine",
                   4);
    curl_easy_setopt(c.easy, CURLOPT_FOLLOWLOCATION, 1L);
    c.options.inject = BIDE_CURL_INJECT_KEY;
    live_call_post(&c, BODY);
    assert_int_equal(live_call_perform(&c, "/1"), CURLE_OK);
    live_expect(&c, BIDE_ACTION_DONE, BIDE_REASON_SUCCEEDED, 3);
    live_server_stop(&c.server);
    assert_int_equal(c.server.count, 9);
    for (size_t i = 0; i < c.server.count; i++)
        assert_string_equal(c.server.seen[i].key, c.server.seen[0].key);
    live_call_close(&c);
}

/* ---- challenges ---- */

#define CHALLENGE "header=\"WWW-Authenticate: Digest realm=\\\"r\\\", nonce=\\\"n\\\", qop=\\\"auth\\\"\""

static void set_digest(CURL *easy)
{
    curl_easy_setopt(easy, CURLOPT_HTTPAUTH, CURLAUTH_DIGEST);
    curl_easy_setopt(easy, CURLOPT_USERPWD, "bob:secret");
}

/* Returns the number of requests with the body, which the server could execute. */
static size_t requests_with_body(const struct live_server *server)
{
    size_t n = 0;
    for (size_t i = 0; i < server->count; i++)
        n += server->seen[i].body_hash == bide_hash(BODY, strlen(BODY));
    return n;
}

static bool count_and_agree(void *context, CURL *easy)
{
    ++*(int *)context;
    return true;
}

/* The challenge has no body, so it is not cut. */
static void a_post_that_libcurl_authenticates_runs_once_despite_refresh(void **state)
{
    for (int sink = 0; sink < 2; sink++) {
        struct live_call c;
        int calls = 0;
        live_call_open(&c, "/a 401 bytes=0 " CHALLENGE " | 200 body=fine", 4);
        set_digest(c.easy);
        if (!sink)
            live_call_without_sink(&c);
        live_call_post(&c, BODY);
        c.options.refresh = count_and_agree;
        c.options.context = &calls;
        assert_int_equal(live_call_perform(&c, "/a"), CURLE_OK);
        live_expect(&c, BIDE_ACTION_DONE, BIDE_REASON_SUCCEEDED, 1);
        live_expect_text(&c.sink, "fine");
        live_server_stop(&c.server);
        assert_int_equal(requests_with_body(&c.server), 1);
        assert_int_equal(c.server.count, 2);
        assert_true(sink ? calls == 0 : calls <= 1);
        live_call_close(&c);
    }
}

/* libcurl withholds the body until it is challenged; without a challenge it sends the request again with the body. */
static void show_that_libcurl_makes_two_legs(const char *script)
{
    struct live_call c;
    live_call_open(&c, script, 1);
    live_call_without_sink(&c);
    set_digest(c.easy);
    curl_easy_setopt(c.easy, CURLOPT_POSTFIELDS, BODY);
    curl_easy_setopt(c.easy, CURLOPT_URL, live_server_url(&c.server, "/a"));
    assert_int_equal(curl_easy_perform(c.easy), CURLE_OK);
    live_server_stop(&c.server);
    assert_int_equal(c.server.count, 2);
    assert_int_equal(c.server.seen[0].body_bytes, 0);
    assert_int_equal(requests_with_body(&c.server), 1);
    live_call_close(&c);
}

static void unchallenged_credentials_cost_no_attempt(void **state)
{
    static const char script[] = "/a 200 body=early | 200 body=fine";
    show_that_libcurl_makes_two_legs(script);
    for (int sink = 0; sink < 2; sink++) {
        struct live_call c;
        live_call_open(&c, script, 4);
        set_digest(c.easy);
        if (!sink)
            live_call_without_sink(&c);
        live_call_post(&c, BODY);
        assert_int_equal(live_call_perform(&c, "/a"), CURLE_OK);
        live_expect(&c, BIDE_ACTION_DONE, BIDE_REASON_SUCCEEDED, 1);
        live_expect_attempt(&c, 0, CURLE_OK, BIDE_KIND_OK, BIDE_EVIDENCE_ANSWERED);
        live_expect_text(&c.sink, "fine");
        live_server_stop(&c.server);
        assert_int_equal(requests_with_body(&c.server), 1);
        live_call_close(&c);
    }
}

/* The second leg is an ordinary POST: sent once, whatever fails. */
static void the_leg_that_carries_the_body_is_not_repeated(void **state)
{
    static const char *const script[] = {"/a 200 reuse=close", "/a 200 reuse=reset", "/a 200 | close", "/a 200 | 503"};
    for (size_t i = 0; i < 4; i++) {
        struct live_call c;
        live_call_open(&c, script[i], 4);
        set_digest(c.easy);
        live_call_post(&c, BODY);
        live_call_perform(&c, "/a");
        assert_int_equal(c.result.verdict.action, BIDE_ACTION_GIVE_UP);
        live_server_stop(&c.server);
        assert_int_equal(requests_with_body(&c.server), 1);
        live_call_close(&c);
    }
}

/* ---- a proxy that requires a new nonce for each tunnel, and closes with each challenge ---- */

static void tunnel(int client, uint16_t port)
{
    static const char established[] = "HTTP/1.1 200 Made\r\n\r\n";
    int server = live_tcp_connect(port);
    if (server >= 0 && live_tcp_write(client, established, sizeof established - 1))
        live_tcp_relay(client, server, false);
    close(server);
}

static void challenge_every_other_connect(void *context, int fd, unsigned number)
{
    char text[4096];
    if (!live_tcp_read_head(fd, text, sizeof text))
        return;
    if (number % 2 == 0) {
        tunnel(fd, *(uint16_t *)context);
        return;
    }
    int length = snprintf(text, sizeof text,
                          "HTTP/1.1 407 Who\r\nProxy-Authenticate: Digest realm=\"p\", nonce=\"n%u\", qop=\"auth\", "
                          "stale=true\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
                          number);
    live_tcp_write(fd, text, (size_t)length);
}

static void set_proxy(CURL *easy, const struct live_tcp *proxy)
{
    char url[64];
    snprintf(url, sizeof url, "http://127.0.0.1:%u", live_tcp_port(proxy));
    curl_easy_setopt(easy, CURLOPT_PROXY, url);
    curl_easy_setopt(easy, CURLOPT_HTTPPROXYTUNNEL, 1L);
    curl_easy_setopt(easy, CURLOPT_PROXYAUTH, CURLAUTH_DIGEST);
    curl_easy_setopt(easy, CURLOPT_PROXYUSERPWD, "bob:secret");
}

/* A new tunnel takes two connections, so the number of connections does not show that the first one was reused. */
static void a_dead_tunnel_does_not_look_like_a_refused_stream(void **state)
{
    static const char *const script[] = {"/warm 200 reuse=close\n/pay 200", "/warm 200 reuse=reset\n/pay 200"};
    for (size_t i = 0; i < 2; i++) {
        struct live_call c;
        live_call_open(&c, script[i], 4);
        uint16_t port = chaos_port(c.server.chaos);
        struct live_tcp *proxy = live_tcp_new(challenge_every_other_connect, &port);
        set_proxy(c.easy, proxy);
        assert_int_equal(live_call_perform(&c, "/warm"), CURLE_OK);
        live_call_post(&c, BODY);
        assert_int_equal(live_call_perform(&c, "/pay"), CURLE_GOT_NOTHING);
        live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_NOT_REPEATABLE, 1);
        live_expect_attempt(&c, 0, CURLE_GOT_NOTHING, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_UNKNOWN);
        assert_true(c.result.attempt[0].replay_stopped);
        live_server_stop(&c.server);
        assert_int_equal(live_server_requests(&c.server, "/pay"), 1);
        live_call_close(&c);
        live_tcp_free(proxy);
    }
}

/* ---- methods ---- */

/* A GET first, a POST from the second attempt on. */
static bool post_later(void *context, CURL *easy, const struct bide_verdict *start, struct curl_slist **headers)
{
    if (start->attempt == 2)
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS, BODY);
    return true;
}

static void a_method_made_unsafe_by_before_is_not_repeated(void **state)
{
    struct live_call c;
    live_call_open(&c, "/a 503 | close", 5);
    c.options.before = post_later;
    c.options.body.kind = BIDE_CURL_BODY_REPEATABLE;
    live_call_perform(&c, "/a");
    live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_NOT_REPEATABLE, 2);
    live_server_stop(&c.server);
    assert_int_equal(c.server.count, 2);
    assert_string_equal(c.server.seen[0].method, "GET");
    assert_string_equal(c.server.seen[1].method, "POST");
    live_call_close(&c);
}

/* A POST first, which was not processed; then a GET. The call stays unsafe. */
static bool get_later(void *context, CURL *easy, const struct bide_verdict *start, struct curl_slist **headers)
{
    if (start->attempt == 2)
        curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
    return true;
}

static void a_method_made_safe_by_before_stays_unsafe(void **state)
{
    struct live_call c;
    live_call_open(&c, "/a 425 | close", 5);
    c.options.before = get_later;
    c.options.body.kind = BIDE_CURL_BODY_REPEATABLE;
    curl_easy_setopt(c.easy, CURLOPT_POSTFIELDS, BODY);
    live_call_perform(&c, "/a");
    live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_NOT_REPEATABLE, 2);
    live_server_stop(&c.server);
    assert_string_equal(c.server.seen[1].method, "GET");
    live_call_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_post_that_lost_its_key_is_not_repeated),
        cmocka_unit_test(a_post_is_keyed_until_a_leg_loses_the_key),
        cmocka_unit_test(require_key_sends_no_post_without_its_key),
        cmocka_unit_test(a_keyed_post_redirected_to_get_at_another_origin_is_retried),
        cmocka_unit_test(a_get_at_another_origin_does_not_make_a_later_post_safe),
        cmocka_unit_test(an_unkeyed_post_redirected_to_get_is_not_repeated),
        cmocka_unit_test(headers_follow_redirects_until_they_leave_the_origin),
        cmocka_unit_test(a_key_follows_redirects_within_the_origin_and_the_post_is_retried),
        cmocka_unit_test(a_post_that_libcurl_authenticates_runs_once_despite_refresh),
        cmocka_unit_test(unchallenged_credentials_cost_no_attempt),
        cmocka_unit_test(the_leg_that_carries_the_body_is_not_repeated),
        cmocka_unit_test(a_dead_tunnel_does_not_look_like_a_refused_stream),
        cmocka_unit_test(a_method_made_unsafe_by_before_is_not_repeated),
        cmocka_unit_test(a_method_made_safe_by_before_stays_unsafe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
