/* test_replay.c - libcurl's silent replay, and that bide stops it.
 *
 * When a kept-alive connection dies before the first byte of the response, libcurl sends the request again by itself, a
 * POST included. Each test first shows that bare libcurl repeats the request; otherwise the test would prove nothing.
 * The server reads the second request on a connection completely, then cuts the connection. */
#include "live_call.h"

#include <bide/clock.h>

#include <poll.h>
#include <string.h>

#define BODY "pay 10 to bob"

/* How the connection is cut: the script of a path that makes the connection, and of the path under test. */
struct cut_case {
    const char *name;
    const char *script;
};

static const struct cut_case cut_cases[] = {
    {"close", "/warm 200 reuse=close\n/pay 200"},
    {"reset", "/warm 200 reuse=reset\n/pay 200"},
};

static void set_body(CURL *easy, const char *body)
{
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, (long)strlen(body));
    curl_easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, body);
}

static size_t discard_body(char *at, size_t size, size_t count, void *context)
{
    return size * count;
}

static CURL *bare_handle(void)
{
    CURL *easy = curl_easy_init();
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, discard_body);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    return easy;
}

static CURLcode bare_get(CURL *easy, struct live_server *server, const char *path)
{
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, NULL);
    curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
    curl_easy_setopt(easy, CURLOPT_URL, live_server_url(server, path));
    return curl_easy_perform(easy);
}

/* Checks that bare libcurl sends the request twice and returns CURLE_OK. */
static void expect_bare_libcurl_repeats(const char *script, const char *method, const char *body)
{
    struct live_server server;
    live_server_start(&server, script);
    CURL *easy = bare_handle();
    assert_int_equal(bare_get(easy, &server, "/warm"), CURLE_OK);
    set_body(easy, body);
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, method);
    curl_easy_setopt(easy, CURLOPT_URL, live_server_url(&server, "/pay"));
    assert_int_equal(curl_easy_perform(easy), CURLE_OK);
    curl_easy_cleanup(easy);
    live_server_stop(&server);
    assert_int_equal(live_server_requests(&server, "/pay"), 2);
    live_server_free(&server);
}

/* Opens a call whose connection has carried a request. */
static void open_with_connection(struct live_call *c, const char *script, uint32_t attempts)
{
    live_call_open(c, script, attempts);
    live_target_service(&c->target);
    assert_int_equal(live_call_perform(c, "/warm"), CURLE_OK);
}

static void expect_requests(struct live_call *c, const char *path, size_t times)
{
    live_server_stop(&c->server);
    assert_int_equal(live_server_requests(&c->server, path), times);
}

static void expect_replay_stopped(const struct live_call *c, uint32_t attempts, enum bide_reason reason)
{
    live_expect(c, BIDE_ACTION_GIVE_UP, reason, attempts);
    live_expect_attempt(c, 0, CURLE_GOT_NOTHING, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_UNKNOWN);
    assert_true(c->result.attempt[0].replay_stopped);
    assert_int_equal(c->code, CURLE_GOT_NOTHING);
}

/* ---- requests that must not be repeated ---- */

static void expect_sent_once(const struct cut_case *cut_case, const char *method, const char *body)
{
    struct live_call c;
    expect_bare_libcurl_repeats(cut_case->script, method, body);
    open_with_connection(&c, cut_case->script, 4);
    int64_t left = bide_target_get(&c.target, bide_now()).budget_left_milli;
    curl_easy_setopt(c.easy, CURLOPT_CUSTOMREQUEST, method);
    live_call_post(&c, body);
    live_call_perform(&c, "/pay");
    expect_replay_stopped(&c, 1, BIDE_REASON_NOT_REPEATABLE);
    expect_requests(&c, "/pay", 1);
    assert_int_equal(c.server.seen[1].body_hash, bide_hash(body, strlen(body)));
    assert_int_equal(c.server.seen[1].on_connection, 2);
    assert_true(bide_target_get(&c.target, bide_now()).budget_left_milli >= left);
    live_call_close(&c);
}

static void a_post_on_a_connection_that_dies_is_sent_once(void **state)
{
    for (size_t i = 0; i < sizeof cut_cases / sizeof *cut_cases; i++)
        expect_sent_once(&cut_cases[i], "POST", BODY);
}

static void an_empty_post_is_sent_once(void **state)
{
    for (size_t i = 0; i < sizeof cut_cases / sizeof *cut_cases; i++)
        expect_sent_once(&cut_cases[i], "POST", "");
}

static void a_patch_is_sent_once(void **state)
{
    for (size_t i = 0; i < sizeof cut_cases / sizeof *cut_cases; i++)
        expect_sent_once(&cut_cases[i], "PATCH", BODY);
}

static void the_one_line_change_stops_the_replay(void **state)
{
    for (size_t i = 0; i < sizeof cut_cases / sizeof *cut_cases; i++) {
        struct live_server server;
        live_server_start(&server, cut_cases[i].script);
        CURL *easy = bare_handle();
        assert_int_equal(bare_get(easy, &server, "/warm"), CURLE_OK);
        set_body(easy, BODY);
        curl_easy_setopt(easy, CURLOPT_URL, live_server_url(&server, "/pay"));
        assert_int_equal(bide_curl_perform(easy, NULL, BIDE_CURL_PLAIN_HANDLE, NULL), CURLE_GOT_NOTHING);
        curl_easy_cleanup(easy);
        live_server_stop(&server);
        assert_int_equal(live_server_requests(&server, "/pay"), 1);
        live_server_free(&server);
    }
}

/* ---- legs ---- */

static void expect_bare_leg_repeats(const char *script, const char *from, const char *to, size_t times,
                                    void (*set)(CURL *))
{
    struct live_server server;
    live_server_start(&server, script);
    CURL *easy = bare_handle();
    set(easy);
    set_body(easy, BODY);
    curl_easy_setopt(easy, CURLOPT_URL, live_server_url(&server, from));
    assert_int_equal(curl_easy_perform(easy), CURLE_OK);
    curl_easy_cleanup(easy);
    live_server_stop(&server);
    assert_int_equal(live_server_requests(&server, to), times);
    live_server_free(&server);
}

/* The first leg uses a new connection, the second leg the same one, which is then cut. */
static void expect_leg_sent_once(const char *script, const char *from, const char *to, size_t legs, void (*set)(CURL *))
{
    struct live_call c;
    expect_bare_leg_repeats(script, from, to, legs + 1, set);
    live_call_open(&c, script, 4);
    live_target_service(&c.target);
    set(c.easy);
    live_call_post(&c, BODY);
    live_call_perform(&c, from);
    expect_requests(&c, to, legs);
    expect_replay_stopped(&c, 1, BIDE_REASON_NOT_REPEATABLE);
    live_call_close(&c);
}

static void set_follow(CURL *easy)
{
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 1L);
}

static void set_digest(CURL *easy)
{
    curl_easy_setopt(easy, CURLOPT_HTTPAUTH, CURLAUTH_DIGEST);
    curl_easy_setopt(easy, CURLOPT_USERPWD, "bob:secret");
}

#define DIGEST "header=\"WWW-Authenticate: Digest realm=\\\"r\\\", nonce=\\\"n1\\\", qop=\\\"auth\\\"\""

static void a_post_is_sent_once_after_a_redirect(void **state)
{
    expect_leg_sent_once("/from 307 location=/to reuse=close\n/to 200", "/from", "/to", 1, set_follow);
    expect_leg_sent_once("/from 308 location=/to reuse=reset\n/to 200", "/from", "/to", 1, set_follow);
}

static void a_post_is_sent_once_after_two_redirects(void **state)
{
    expect_leg_sent_once("/from 307 location=/mid\n/mid 307 location=/to reuse=reset\n/to 200", "/from", "/to", 1,
                         set_follow);
}

static void a_post_with_digest_is_sent_once_with_its_body(void **state)
{
    expect_leg_sent_once("/login 401 " DIGEST " reuse=close | 200", "/login", "/login", 2, set_digest);
    expect_leg_sent_once("/login 401 " DIGEST " reuse=reset | 200", "/login", "/login", 2, set_digest);
}

static void a_redirect_on_a_reused_connection_is_guarded_too(void **state)
{
    struct live_call c;
    open_with_connection(&c, "/warm 200\n/from 307 location=/to reuse=close\n/to 200", 4);
    set_follow(c.easy);
    live_call_post(&c, BODY);
    live_call_perform(&c, "/from");
    expect_replay_stopped(&c, 1, BIDE_REASON_NOT_REPEATABLE);
    expect_requests(&c, "/to", 1);
    live_call_close(&c);
}

/* ---- requests that bide may retry ---- */

static void expect_retried_by_bide(struct live_call *c, int64_t left)
{
    assert_int_equal(c->code, CURLE_OK);
    live_expect(c, BIDE_ACTION_DONE, BIDE_REASON_SUCCEEDED, 2);
    assert_true(c->result.attempt[0].replay_stopped);
    assert_false(c->result.attempt[1].replay_stopped);
    live_expect_attempt(c, 0, CURLE_GOT_NOTHING, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_UNKNOWN);
    assert_true(bide_target_get(&c->target, bide_now()).budget_left_milli < left);
    expect_requests(c, "/pay", c->result.attempts);
    assert_int_equal(live_server_request(&c->server, "/pay", 0)->body_hash,
                     live_server_request(&c->server, "/pay", 1)->body_hash);
    assert_true(live_server_request(&c->server, "/pay", 0)->connection !=
                live_server_request(&c->server, "/pay", 1)->connection);
}

static void a_get_is_retried_by_bide_and_charged(void **state)
{
    for (size_t i = 0; i < sizeof cut_cases / sizeof *cut_cases; i++) {
        struct live_call c;
        open_with_connection(&c, cut_cases[i].script, 4);
        int64_t left = bide_target_get(&c.target, bide_now()).budget_left_milli;
        live_call_perform(&c, "/pay");
        expect_retried_by_bide(&c, left);
        live_call_close(&c);
    }
}

static void a_put_is_retried_by_bide_and_charged(void **state)
{
    struct live_call c;
    open_with_connection(&c, cut_cases[0].script, 4);
    int64_t left = bide_target_get(&c.target, bide_now()).budget_left_milli;
    curl_easy_setopt(c.easy, CURLOPT_CUSTOMREQUEST, "PUT");
    live_call_post(&c, BODY);
    live_call_perform(&c, "/pay");
    expect_retried_by_bide(&c, left);
    live_call_close(&c);
}

static void a_keyed_post_is_retried_by_bide_with_the_same_key(void **state)
{
    for (size_t i = 0; i < sizeof cut_cases / sizeof *cut_cases; i++) {
        struct live_call c;
        open_with_connection(&c, cut_cases[i].script, 4);
        int64_t left = bide_target_get(&c.target, bide_now()).budget_left_milli;
        c.options.inject = BIDE_CURL_INJECT_KEY;
        live_call_post(&c, BODY);
        live_call_perform(&c, "/pay");
        expect_retried_by_bide(&c, left);
        assert_string_equal(live_server_request(&c.server, "/pay", 0)->key,
                            live_server_request(&c.server, "/pay", 1)->key);
        live_call_close(&c);
    }
}

static void a_keyed_post_after_a_redirect_is_retried_by_bide(void **state)
{
    struct live_call c;
    live_call_open(&c, "/from 307 location=/to reuse=close | 307 location=/to\n/to 200", 4);
    set_follow(c.easy);
    c.options.inject = BIDE_CURL_INJECT_KEY;
    live_call_post(&c, BODY);
    assert_int_equal(live_call_perform(&c, "/from"), CURLE_OK);
    live_expect(&c, BIDE_ACTION_DONE, BIDE_REASON_SUCCEEDED, 2);
    expect_requests(&c, "/to", 2);
    assert_int_equal(live_server_requests(&c.server, "/from"), 2);
    live_call_close(&c);
}

static void an_empty_budget_refuses_the_retry(void **state)
{
    struct live_call c;
    open_with_connection(&c, cut_cases[0].script, 4);
    bide_budget_add_milli(&c.target, -1000000000, bide_now());
    live_call_perform(&c, "/pay");
    expect_replay_stopped(&c, 1, BIDE_REASON_BUDGET_EMPTY);
    expect_requests(&c, "/pay", 1);
    live_call_close(&c);
}

/* libcurl rewinds a body before its replay: a body that cannot be rewound ends the transfer there. */
static size_t read_text(char *into, size_t size, size_t count, void *context)
{
    const char **at = context;
    size_t n = strlen(*at) < size * count ? strlen(*at) : size * count;
    memcpy(into, *at, n);
    *at += n;
    return n;
}

static void a_one_shot_stream_is_sent_once_even_if_keyed(void **state)
{
    for (size_t i = 0; i < sizeof cut_cases / sizeof *cut_cases; i++) {
        struct live_call c;
        const char *at = BODY;
        open_with_connection(&c, cut_cases[i].script, 4);
        curl_easy_setopt(c.easy, CURLOPT_POST, 1L);
        c.options.safety = BIDE_CURL_KEYED;
        c.options.body = (struct bide_curl_body){
            .kind = BIDE_CURL_BODY_STREAM, .read = read_text, .read_data = &at, .length = (int64_t)strlen(BODY)};
        assert_int_not_equal(live_call_perform(&c, "/pay"), CURLE_OK);
        assert_int_equal(c.result.verdict.action, BIDE_ACTION_GIVE_UP);
        assert_int_equal(c.result.attempts, 1);
        expect_requests(&c, "/pay", 1);
        live_call_close(&c);
    }
}

/* ---- not a replay ---- */

static void the_guard_keeps_connections_reusable(void **state)
{
    struct live_call c;
    live_call_open(&c, "/a 200", 4);
    for (int i = 0; i < 5; i++)
        assert_int_equal(live_call_perform(&c, "/a"), CURLE_OK);
    live_server_stop(&c.server);
    assert_int_equal(c.server.count, 5);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(c.server.seen[i].connection, 1);
    live_call_close(&c);
}

/* Waits until the server's close of an idle connection has arrived. */
static void wait_for_close(CURL *easy)
{
    curl_socket_t fd = CURL_SOCKET_BAD;
    assert_int_equal(curl_easy_getinfo(easy, CURLINFO_ACTIVESOCKET, &fd), CURLE_OK);
    struct pollfd end = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&end, 1, 60000), 1);
}

static void a_post_survives_a_connection_closed_while_idle(void **state)
{
    static const char *const script[] = {"/warm 200 close=end\n/pay 200", "/warm 200 reset=end\n/pay 200"};
    for (size_t i = 0; i < 2; i++) {
        struct live_call c;
        open_with_connection(&c, script[i], 4);
        wait_for_close(c.easy);
        live_call_post(&c, BODY);
        assert_int_equal(live_call_perform(&c, "/pay"), CURLE_OK);
        expect_requests(&c, "/pay", 1);
        live_call_close(&c);
    }
}

static void a_failure_on_a_new_connection_is_not_a_replay(void **state)
{
    struct live_call c;
    live_call_open(&c, "/a close | reset | 200", 4);
    assert_int_equal(live_call_perform(&c, "/a"), CURLE_OK);
    live_expect(&c, BIDE_ACTION_DONE, BIDE_REASON_SUCCEEDED, 3);
    assert_false(c.result.attempt[0].replay_stopped);
    assert_false(c.result.attempt[1].replay_stopped);
    expect_requests(&c, "/a", 3);
    live_call_close(&c);
}

static void redirects_and_challenges_pass_the_guard(void **state)
{
    struct live_call c;
    live_call_open(&c, "/login 401 " DIGEST " | 307 location=/to\n/to 200", 4);
    set_follow(c.easy);
    set_digest(c.easy);
    live_call_post(&c, BODY);
    assert_int_equal(live_call_perform(&c, "/login"), CURLE_OK);
    live_expect(&c, BIDE_ACTION_DONE, BIDE_REASON_SUCCEEDED, 1);
    expect_requests(&c, "/login", 2);
    assert_int_equal(live_server_requests(&c.server, "/to"), 1);
    assert_int_equal(live_server_request(&c.server, "/to", 0)->body_hash, bide_hash(BODY, strlen(BODY)));
    live_call_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_post_on_a_connection_that_dies_is_sent_once),
        cmocka_unit_test(an_empty_post_is_sent_once),
        cmocka_unit_test(a_patch_is_sent_once),
        cmocka_unit_test(the_one_line_change_stops_the_replay),
        cmocka_unit_test(a_post_is_sent_once_after_a_redirect),
        cmocka_unit_test(a_post_is_sent_once_after_two_redirects),
        cmocka_unit_test(a_post_with_digest_is_sent_once_with_its_body),
        cmocka_unit_test(a_redirect_on_a_reused_connection_is_guarded_too),
        cmocka_unit_test(a_get_is_retried_by_bide_and_charged),
        cmocka_unit_test(a_put_is_retried_by_bide_and_charged),
        cmocka_unit_test(a_keyed_post_is_retried_by_bide_with_the_same_key),
        cmocka_unit_test(a_keyed_post_after_a_redirect_is_retried_by_bide),
        cmocka_unit_test(an_empty_budget_refuses_the_retry),
        cmocka_unit_test(a_one_shot_stream_is_sent_once_even_if_keyed),
        cmocka_unit_test(the_guard_keeps_connections_reusable),
        cmocka_unit_test(a_post_survives_a_connection_closed_while_idle),
        cmocka_unit_test(a_failure_on_a_new_connection_is_not_a_replay),
        cmocka_unit_test(redirects_and_challenges_pass_the_guard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
