/* test_proxy.c - through an HTTP proxy: its response to CONNECT is not the server's, and a request that never entered
 * the tunnel was not sent. */
#include "live_client.h"
#include "live_nginx.h"
#include "live_proxy.h"
#include "live_tcp.h"
#include "live_tls.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define ACTIONS(...)                                                                                                   \
    (const enum live_proxy_action[]){__VA_ARGS__}, sizeof(enum live_proxy_action[]){__VA_ARGS__} / sizeof(int)

static struct live_client client;
static struct live_server origin;
static struct live_server second; /* another origin, where needed */
static struct live_process tls;   /* a real server, where needed */
static struct live_proxy *proxy;
static struct live_tcp *tcp;

static int open_all(void **state)
{
    live_client_init(&client, 3);
    live_server_start(&origin, "");
    return 0;
}

static int close_all(void **state)
{
    live_client_free(&client); /* first: a tunnel ends when its client closes */
    live_proxy_free(proxy);
    proxy = NULL;
    live_tcp_free(tcp);
    tcp = NULL;
    live_server_free(&origin);
    if (second.chaos)
        live_server_free(&second);
    live_process_free(&tls);
    return 0;
}

static void use_proxy(const enum live_proxy_action *actions, size_t count)
{
    proxy = live_proxy_new(actions, count);
    curl_easy_setopt(client.easy, CURLOPT_PROXY, live_proxy_url(proxy));
    curl_easy_setopt(client.easy, CURLOPT_HTTPPROXYTUNNEL, 1L);
}

static CURLcode perform_post(void)
{
    return live_client_post(&client, live_server_url(&origin, "/pay"), "charge=1");
}

static size_t posts_seen(void)
{
    live_server_stop(&origin);
    return live_server_requests(&origin, "/pay");
}

static void start_tls(void)
{
    live_process_dir(&tls);
    live_tls_make(&tls, "right", "IP:127.0.0.1");
    live_tls_make(&tls, "other", "IP:127.0.0.1");
    live_nginx_start(&tls, "server { listen 127.0.0.1:$PORT ssl; ssl_certificate $DIR/right.pem;\n"
                           "ssl_certificate_key $DIR/right.key; location / { return 200 fine; } }");
}

/* ---- tests ---- */

static void a_call_through_a_tunnel_succeeds(void **state)
{
    use_proxy(ACTIONS(LIVE_PROXY_TUNNEL));
    assert_int_equal(perform_post(), CURLE_OK);
    live_assert_done(&client, 1);
    assert_int_equal(client.result.status, 200);
    assert_string_equal(client.sink.at, "ok\n");
    assert_int_equal(posts_seen(), 1);
}

static void a_tunnel_is_reused(void **state)
{
    use_proxy(ACTIONS(LIVE_PROXY_TUNNEL));
    for (int i = 0; i < 5; i++)
        assert_int_equal(perform_post(), CURLE_OK);
    assert_int_equal(live_proxy_requests(proxy), 1);
    assert_int_equal(posts_seen(), 5);
}

static void an_overloaded_proxy_is_retried_even_for_a_post(void **state)
{
    use_proxy(ACTIONS(LIVE_PROXY_503, LIVE_PROXY_502, LIVE_PROXY_TUNNEL));
    assert_int_equal(perform_post(), CURLE_OK);
    live_assert_done(&client, 3);
    live_assert_attempt(&client, 1, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_NOT_SENT);
    live_assert_attempt(&client, 2, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_NOT_SENT);
    assert_string_equal(client.sink.at, "ok\n"); /* and nothing from the proxy */
    assert_int_equal(posts_seen(), 1);
}

static void a_proxy_s_hint_is_honoured(void **state)
{
    live_client_free(&client);
    live_client_init(&client, 4);
    use_proxy(ACTIONS(LIVE_PROXY_503_WAIT, LIVE_PROXY_429_WAIT, LIVE_PROXY_503, LIVE_PROXY_TUNNEL));
    assert_int_equal(perform_post(), CURLE_OK);
    live_assert_done(&client, 4);
    const struct bide_curl_attempt *attempt = client.result.attempt;
    assert_int_equal(attempt[0].hint.kind, BIDE_HINT_WAIT);
    assert_int_equal(attempt[0].hint.wait_ns, BIDE_S);
    assert_true(attempt[1].delay_ns >= BIDE_S);
    assert_int_equal(attempt[1].hint.wait_ns, 300 * BIDE_MS);
    assert_string_equal(bide_kind_label(attempt[1].kind), bide_kind_label(BIDE_KIND_THROTTLED));
    assert_true(attempt[2].delay_ns >= 300 * BIDE_MS);
    assert_int_equal(attempt[2].hint.kind, BIDE_HINT_NONE); /* hints of earlier responses are gone */
    assert_int_equal(attempt[3].hint.kind, BIDE_HINT_NONE);
    assert_int_equal(posts_seen(), 1);
}

static void a_proxy_s_hint_is_honoured_after_an_attempt_that_was_sent(void **state)
{
    use_proxy(ACTIONS(LIVE_PROXY_CUT, LIVE_PROXY_429_WAIT, LIVE_PROXY_TUNNEL));
    assert_int_equal(live_client_get(&client, live_server_url(&origin, "/pay")), CURLE_OK);
    live_assert_done(&client, 3);
    assert_int_equal(client.result.attempt[1].hint.wait_ns, 300 * BIDE_MS);
}

static size_t count_status_lines(char *line, size_t size, size_t count, void *context)
{
    if (size * count > 5 && memcmp(line, "HTTP/", 5) == 0)
        ++*(unsigned *)context;
    return size * count;
}

static void a_proxy_s_head_reaches_neither_sink_nor_header_function(void **state)
{
    unsigned status_lines = 0;
    use_proxy(ACTIONS(LIVE_PROXY_503_WAIT, LIVE_PROXY_TUNNEL));
    curl_easy_setopt(client.easy, CURLOPT_HEADER, 1L);
    client.options.header = count_status_lines;
    client.options.header_data = &status_lines;
    assert_int_equal(perform_post(), CURLE_OK);
    live_assert_done(&client, 2);
    assert_int_equal(status_lines, 1);
    assert_null(strstr(client.sink.at, "Connection established"));
    assert_null(strstr(client.sink.at, "Retry-After"));
    assert_int_equal(strncmp(client.sink.at, "HTTP/1.1 200 OK", 15), 0);
}

static void a_proxy_can_forbid_retries(void **state)
{
    use_proxy(ACTIONS(LIVE_PROXY_503_STOP, LIVE_PROXY_TUNNEL));
    assert_int_not_equal(perform_post(), CURLE_OK);
    live_assert_gave_up(&client, BIDE_REASON_SERVER_STOP, 1);
    assert_int_equal(posts_seen(), 0);
}

/* Returns bare libcurl's code for a proxy that refuses the tunnel. */
static CURLcode bare_code(void)
{
    CURL *easy = curl_easy_init();
    curl_easy_setopt(easy, CURLOPT_URL, live_server_url(&origin, "/bare"));
    curl_easy_setopt(easy, CURLOPT_PROXY, live_proxy_url(proxy));
    curl_easy_setopt(easy, CURLOPT_HTTPPROXYTUNNEL, 1L);
    CURLcode code = curl_easy_perform(easy);
    curl_easy_cleanup(easy);
    return code;
}

static void a_proxy_that_stays_overloaded_is_a_failure_without_a_response(void **state)
{
    use_proxy(ACTIONS(LIVE_PROXY_503));
    CURLcode code = perform_post();
    live_assert_gave_up(&client, BIDE_REASON_ATTEMPTS_SPENT, 3);
    assert_int_not_equal(code, CURLE_OK);
    assert_int_equal(code, bare_code());
    assert_int_equal(client.result.attempt[0].code, code);
    assert_non_null(strstr(client.result.error, "the proxy rejected CONNECT with status 503"));
    assert_int_equal(client.sink.length, 0);
    assert_int_equal(posts_seen(), 0);
}

static void a_proxy_that_requires_credentials_is_not_retried(void **state)
{
    use_proxy(ACTIONS(LIVE_PROXY_407));
    CURLcode code = perform_post();
    live_assert_gave_up(&client, BIDE_REASON_PERMANENT, 1);
    live_assert_attempt(&client, 1, BIDE_KIND_PERMANENT, BIDE_EVIDENCE_NOT_SENT);
    assert_int_equal(code, bare_code());
    assert_int_not_equal(code, CURLE_OK);
    assert_int_equal(live_proxy_requests(proxy), 2); /* one by bide, one by bare libcurl */
    assert_int_equal(posts_seen(), 0);
}

/* libcurl answers the 407 by itself with another CONNECT: a single request and attempt. */
static void proxy_authentication_costs_no_attempt(void **state)
{
    use_proxy(ACTIONS(LIVE_PROXY_407, LIVE_PROXY_TUNNEL));
    curl_easy_setopt(client.easy, CURLOPT_PROXYAUTH, (long)CURLAUTH_ANY);
    curl_easy_setopt(client.easy, CURLOPT_PROXYUSERPWD, "user:secret");
    assert_int_equal(perform_post(), CURLE_OK);
    live_assert_done(&client, 1);
    assert_int_equal(client.result.status, 200);
    assert_int_equal(live_proxy_requests(proxy), 2);
    assert_int_equal(posts_seen(), 1);
}

static void a_proxy_that_forbids_the_tunnel_is_not_retried(void **state)
{
    use_proxy(ACTIONS(LIVE_PROXY_403));
    assert_int_not_equal(perform_post(), CURLE_OK);
    live_assert_gave_up(&client, BIDE_REASON_PERMANENT, 1);
    assert_int_equal(live_proxy_requests(proxy), 1);
    assert_int_equal(posts_seen(), 0);
}

static void a_proxy_that_closes_is_retried_even_for_a_post(void **state)
{
    use_proxy(ACTIONS(LIVE_PROXY_CLOSE, LIVE_PROXY_TUNNEL));
    assert_int_equal(perform_post(), CURLE_OK);
    live_assert_done(&client, 2);
    live_assert_attempt(&client, 1, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_NOT_SENT);
    assert_int_equal(posts_seen(), 1);
}

static void a_silent_proxy_is_retried_even_for_a_post(void **state)
{
    use_proxy(ACTIONS(LIVE_PROXY_SILENCE));
    client.policy.connect_timeout_ns = 50 * BIDE_MS;
    assert_int_equal(perform_post(), CURLE_OPERATION_TIMEDOUT);
    live_assert_gave_up(&client, BIDE_REASON_ATTEMPTS_SPENT, 3);
    live_assert_attempt(&client, 3, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_NOT_SENT);
    assert_int_equal(posts_seen(), 0);
}

/* RFC 1928: no authentication; then "connection refused" for every request. */
static void refuse_by_socks(void *context, int fd, unsigned number)
{
    static const char none[] = "\x05", refused[] = "\x05\x05\x00\x01\x00\x00\x00\x00\x00\x00";
    unsigned char greeting[2], methods[255], request[10];
    if (live_tcp_read(fd, greeting, 2) && live_tcp_read(fd, methods, greeting[1]) &&
        live_tcp_write(fd, none, sizeof none) && live_tcp_read(fd, request, sizeof request))
        live_tcp_write(fd, refused, sizeof refused - 1);
}

static void a_socks_proxy_that_cannot_connect_is_retried_even_for_a_post(void **state)
{
    char url[64];
    tcp = live_tcp_new(refuse_by_socks, NULL);
    snprintf(url, sizeof url, "socks5://127.0.0.1:%u", live_tcp_port(tcp));
    curl_easy_setopt(client.easy, CURLOPT_PROXY, url);
    assert_int_equal(perform_post(), CURLE_PROXY);
    live_assert_gave_up(&client, BIDE_REASON_ATTEMPTS_SPENT, 3);
    live_assert_attempt(&client, 3, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_NOT_SENT);
    assert_int_equal(posts_seen(), 0);
}

static void serve_nothing(void *context, int fd, unsigned number) {}

static void a_missing_proxy_is_retried_even_for_a_post(void **state)
{
    char url[64];
    struct live_tcp *gone = live_tcp_new(serve_nothing, NULL);
    snprintf(url, sizeof url, "http://127.0.0.1:%u", live_tcp_port(gone));
    live_tcp_free(gone);
    curl_easy_setopt(client.easy, CURLOPT_PROXY, url);
    curl_easy_setopt(client.easy, CURLOPT_HTTPPROXYTUNNEL, 1L);
    assert_int_equal(perform_post(), CURLE_COULDNT_CONNECT);
    live_assert_gave_up(&client, BIDE_REASON_ATTEMPTS_SPENT, 3);
    live_assert_attempt(&client, 3, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_NOT_SENT);
    assert_int_equal(posts_seen(), 0);
}

static void a_post_through_a_cut_tunnel_is_not_repeated(void **state)
{
    use_proxy(ACTIONS(LIVE_PROXY_CUT, LIVE_PROXY_TUNNEL));
    CURLcode code = perform_post();
    live_assert_gave_up(&client, BIDE_REASON_NOT_REPEATABLE, 1);
    live_assert_attempt(&client, 1, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_UNKNOWN);
    assert_int_not_equal(code, CURLE_OK); /* the proxy's 200 is not the server's */
    assert_int_equal(client.result.status, 0);
    assert_int_equal(client.result.attempt[0].status, 0);
    assert_int_equal(posts_seen(), 1);
}

static void a_post_on_a_reused_tunnel_that_dies_is_sent_once(void **state)
{
    live_server_free(&origin);
    live_server_start(&origin, "/warm 200 reuse=reset\n/pay 200");
    use_proxy(ACTIONS(LIVE_PROXY_TUNNEL));
    assert_int_equal(live_client_get(&client, live_server_url(&origin, "/warm")), CURLE_OK);
    assert_int_not_equal(perform_post(), CURLE_OK);
    live_assert_gave_up(&client, BIDE_REASON_NOT_REPEATABLE, 1);
    live_assert_attempt(&client, 1, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_UNKNOWN);
    assert_int_equal(client.result.status, 0);
    assert_int_equal(posts_seen(), 1);
}

static void a_proxy_s_status_is_not_the_server_s_response(void **state)
{
    live_server_free(&origin);
    live_server_start(&origin, "/warm 200 reuse=reset\n/pay 200");
    use_proxy(ACTIONS(LIVE_PROXY_TUNNEL, LIVE_PROXY_503, LIVE_PROXY_TUNNEL));
    assert_int_equal(live_client_get(&client, live_server_url(&origin, "/warm")), CURLE_OK);
    assert_int_not_equal(perform_post(), CURLE_OK); /* libcurl requested a tunnel for its replay */
    live_assert_gave_up(&client, BIDE_REASON_NOT_REPEATABLE, 1);
    live_assert_attempt(&client, 1, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_UNKNOWN);
    assert_int_equal(client.result.status, 0);
    assert_int_equal(client.sink.length, 0);
    assert_int_equal(posts_seen(), 1);
}

static void a_get_through_a_cut_tunnel_is_retried(void **state)
{
    use_proxy(ACTIONS(LIVE_PROXY_CUT, LIVE_PROXY_TUNNEL));
    assert_int_equal(live_client_get(&client, live_server_url(&origin, "/pay")), CURLE_OK);
    live_assert_done(&client, 2);
    live_assert_attempt(&client, 1, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_UNKNOWN);
    assert_int_equal(posts_seen(), 2);
}

static void a_server_behind_a_proxy_is_classified_by_its_own_response(void **state)
{
    live_server_free(&origin);
    live_server_start(&origin, "/pay 503 retry-after=0 | 200");
    use_proxy(ACTIONS(LIVE_PROXY_TUNNEL));
    client.options.safety = BIDE_CURL_IDEMPOTENT;
    assert_int_equal(perform_post(), CURLE_OK);
    live_assert_done(&client, 2);
    assert_int_equal(client.result.attempt[0].status, 503);
    live_assert_attempt(&client, 1, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_ANSWERED);
    assert_int_equal(live_proxy_requests(proxy), 1);
    assert_int_equal(posts_seen(), 2);
}

static void a_redirect_to_another_server_goes_through_another_tunnel(void **state)
{
    char script[128];
    live_server_start(&second, "/there 200 body=fine");
    snprintf(script, sizeof script, "/pay 302 location=%s", live_server_url(&second, "/there"));
    live_server_free(&origin);
    live_server_start(&origin, script);
    use_proxy(ACTIONS(LIVE_PROXY_TUNNEL));
    curl_easy_setopt(client.easy, CURLOPT_FOLLOWLOCATION, 1L);
    assert_int_equal(live_client_get(&client, live_server_url(&origin, "/pay")), CURLE_OK);
    live_assert_done(&client, 1);
    assert_int_equal(client.result.status, 200);
    assert_string_equal(client.sink.at, "fine");
    assert_int_equal(live_proxy_requests(proxy), 2);
    assert_int_equal(posts_seen(), 1);
}

static void an_invalid_certificate_behind_a_proxy_is_an_error(void **state)
{
    start_tls();
    use_proxy(ACTIONS(LIVE_PROXY_TUNNEL));
    curl_easy_setopt(client.easy, CURLOPT_CAINFO, live_tls_path(&tls, "other"));
    CURLcode code = live_client_post(&client, live_process_url(&tls, "https", "/"), "charge=1");
    live_assert_gave_up(&client, BIDE_REASON_PERMANENT, 1);
    live_assert_attempt(&client, 1, BIDE_KIND_PERMANENT, BIDE_EVIDENCE_NOT_SENT);
    assert_int_equal(code, CURLE_PEER_FAILED_VERIFICATION);
    assert_int_equal(client.result.attempt[0].code, CURLE_PEER_FAILED_VERIFICATION);
    assert_int_equal(client.result.status, 0);
}

static void a_tls_server_behind_a_proxy_responds(void **state)
{
    start_tls();
    use_proxy(ACTIONS(LIVE_PROXY_503, LIVE_PROXY_TUNNEL));
    curl_easy_setopt(client.easy, CURLOPT_CAINFO, live_tls_path(&tls, "right"));
    assert_int_equal(live_client_post(&client, live_process_url(&tls, "https", "/"), "charge=1"), CURLE_OK);
    live_assert_done(&client, 2);
    assert_string_equal(client.sink.at, "fine");
}

/* For plain HTTP a proxy is an ordinary server: its response may be the origin's. */
static void a_plain_request_through_a_proxy_is_classified_as_without_it(void **state)
{
    char url[64];
    live_server_free(&origin);
    live_server_start(&origin, "/pay 503 | 200");
    snprintf(url, sizeof url, "http://127.0.0.1:%u", chaos_port(origin.chaos));
    curl_easy_setopt(client.easy, CURLOPT_PROXY, url);
    assert_int_equal(live_client_post(&client, "http://bide.invalid/pay", "charge=1"), CURLE_OK);
    live_assert_gave_up(&client, BIDE_REASON_NOT_REPEATABLE, 1);
    assert_int_equal(client.result.status, 503);
    assert_int_equal(posts_seen(), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_call_through_a_tunnel_succeeds),
        TEST(a_tunnel_is_reused),
        TEST(an_overloaded_proxy_is_retried_even_for_a_post),
        TEST(a_proxy_s_hint_is_honoured),
        TEST(a_proxy_s_hint_is_honoured_after_an_attempt_that_was_sent),
        TEST(a_proxy_s_head_reaches_neither_sink_nor_header_function),
        TEST(a_proxy_can_forbid_retries),
        TEST(a_proxy_that_stays_overloaded_is_a_failure_without_a_response),
        TEST(a_proxy_that_requires_credentials_is_not_retried),
        TEST(proxy_authentication_costs_no_attempt),
        TEST(a_proxy_that_forbids_the_tunnel_is_not_retried),
        TEST(a_proxy_that_closes_is_retried_even_for_a_post),
        TEST(a_silent_proxy_is_retried_even_for_a_post),
        TEST(a_socks_proxy_that_cannot_connect_is_retried_even_for_a_post),
        TEST(a_missing_proxy_is_retried_even_for_a_post),
        TEST(a_post_through_a_cut_tunnel_is_not_repeated),
        TEST(a_post_on_a_reused_tunnel_that_dies_is_sent_once),
        TEST(a_proxy_s_status_is_not_the_server_s_response),
        TEST(a_get_through_a_cut_tunnel_is_retried),
        TEST(a_server_behind_a_proxy_is_classified_by_its_own_response),
        TEST(a_redirect_to_another_server_goes_through_another_tunnel),
        TEST(an_invalid_certificate_behind_a_proxy_is_an_error),
        TEST(a_tls_server_behind_a_proxy_responds),
        TEST(a_plain_request_through_a_proxy_is_classified_as_without_it),
    };
    curl_global_init(CURL_GLOBAL_ALL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
