/* test_tls.c - TLS failures. A failure before the end of the handshake proves that nothing was sent; an invalid
 * certificate is permanent, a closed connection is transient. */
#include "live_client.h"
#include "live_nginx.h"
#include "live_tcp.h"
#include "live_tls.h"

#include <bide/multi.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct live_client client;
static struct live_process server;
static struct live_tcp *tcp;

static int open_all(void **state)
{
    live_client_init(&client, 3);
    live_process_dir(&server);
    return 0;
}

static int close_all(void **state)
{
    live_client_free(&client);
    live_tcp_free(tcp);
    tcp = NULL;
    live_process_free(&server);
    return 0;
}

/* Starts nginx with the certificate "site". */
static void start_nginx(void)
{
    live_nginx_start(&server, "server { listen 127.0.0.1:$PORT ssl; ssl_certificate $DIR/site.pem;\n"
                              "ssl_certificate_key $DIR/site.key; location / { return 200 fine; } }");
}

static void set_ca_file(const char *name)
{
    curl_easy_setopt(client.easy, CURLOPT_CAINFO, live_tls_path(&server, name));
}

static CURLcode perform_post(void)
{
    return live_client_post(&client, live_process_url(&server, "https", "/pay"), "charge=1");
}

static size_t requests_seen(void)
{
    live_nginx_end(&server);
    return live_nginx_count(&server, "/pay ");
}

static void assert_permanent_unsent(CURLcode code)
{
    assert_int_equal(code, CURLE_PEER_FAILED_VERIFICATION);
    live_assert_gave_up(&client, BIDE_REASON_PERMANENT, 1);
    live_assert_attempt(&client, 1, BIDE_KIND_PERMANENT, BIDE_EVIDENCE_NOT_SENT);
    assert_int_equal(client.result.attempt[0].code, CURLE_PEER_FAILED_VERIFICATION);
    assert_int_equal(client.result.status, 0);
    assert_int_equal(client.sink.length, 0);
    assert_int_equal(requests_seen(), 0);
}

/* ---- certificates ---- */

static void a_valid_certificate_is_accepted(void **state)
{
    live_tls_make(&server, "site", "IP:127.0.0.1");
    start_nginx();
    set_ca_file("site");
    for (int i = 0; i < 5; i++) {
        assert_int_equal(perform_post(), CURLE_OK);
        live_assert_done(&client, 1);
        assert_string_equal(client.sink.at, "fine");
    }
    assert_int_equal(requests_seen(), 5);
    assert_int_equal(live_nginx_connections(&server), 1);
}

static void an_untrusted_authority_is_permanent(void **state)
{
    live_tls_make(&server, "site", "IP:127.0.0.1");
    live_tls_make(&server, "stranger", "IP:127.0.0.1");
    start_nginx();
    set_ca_file("stranger");
    assert_permanent_unsent(perform_post());
}

static void an_expired_certificate_is_permanent(void **state)
{
    live_tls_make(&server, "site", "IP:127.0.0.1");
    live_tls_expire(&server, "site");
    start_nginx();
    set_ca_file("site");
    assert_permanent_unsent(perform_post());
}

static void a_certificate_of_another_host_is_permanent(void **state)
{
    live_tls_make(&server, "site", "DNS:example.invalid");
    start_nginx();
    set_ca_file("site");
    assert_permanent_unsent(perform_post());
}

static void a_missing_ca_file_is_permanent(void **state)
{
    live_tls_make(&server, "site", "IP:127.0.0.1");
    start_nginx();
    set_ca_file("missing");
    assert_int_equal(perform_post(), CURLE_SSL_CACERT_BADFILE);
    live_assert_gave_up(&client, BIDE_REASON_PERMANENT, 1);
    live_assert_attempt(&client, 1, BIDE_KIND_PERMANENT, BIDE_EVIDENCE_NOT_SENT);
    assert_int_equal(requests_seen(), 0);
}

static CURLcode multi_code;

static void on_done(void *context, const struct bide_multi_end *end)
{
    multi_code = end->code;
}

static void an_untrusted_certificate_is_permanent_in_a_multi_too(void **state)
{
    struct bide_multi *multi;
    live_tls_make(&server, "site", "IP:127.0.0.1");
    live_tls_make(&server, "stranger", "IP:127.0.0.1");
    start_nginx();
    set_ca_file("stranger");
    curl_easy_setopt(client.easy, CURLOPT_URL, live_process_url(&server, "https", "/pay"));
    struct bide_multi_job job = {.easy = client.easy,
                                 .target = &client.target,
                                 .options = &client.options,
                                 .result = &client.result,
                                 .done = on_done};
    assert_int_equal(bide_multi_new(&multi), BIDE_OK);
    assert_int_equal(bide_multi_start(multi, &job, NULL, NULL), BIDE_OK);
    while (bide_multi_poll(multi, BIDE_NEVER) > 0)
        continue;
    bide_multi_free(multi);
    assert_permanent_unsent(multi_code);
}

/* With TLS 1.3 a client without a certificate is rejected only after it has sent its request: evidence unknown. */
static void a_post_without_the_required_client_certificate_has_unknown_evidence(void **state)
{
    live_tls_make(&server, "site", "IP:127.0.0.1");
    live_process_start(&server, (const char *const[]){"openssl", "s_server", "-accept", "127.0.0.1:$PORT", "-cert",
                                                      "site.pem", "-key", "site.key", "-tls1_3", "-Verify", "1",
                                                      "-verify_return_error", "-www", NULL});
    set_ca_file("site");
    assert_int_not_equal(perform_post(), CURLE_OK);
    live_assert_gave_up(&client, BIDE_REASON_NOT_REPEATABLE, 1);
    live_assert_attempt(&client, 1, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_UNKNOWN);
}

static void a_response_of_openssl_succeeds(void **state)
{
    live_tls_make(&server, "site", "IP:127.0.0.1");
    live_process_start(&server, (const char *const[]){"openssl", "s_server", "-accept", "127.0.0.1:$PORT", "-cert",
                                                      "site.pem", "-key", "site.key", "-www", NULL});
    set_ca_file("site");
    assert_int_equal(live_client_get(&client, live_process_url(&server, "https", "/")), CURLE_OK);
    live_assert_done(&client, 1);
    assert_true(client.sink.length > 0);
}

/* ---- handshakes ---- */

static void reset_at_once(void *context, int fd, unsigned number)
{
    live_tcp_reset(fd);
}

static void close_after_hello(void *context, int fd, unsigned number)
{
    char hello[64];
    live_tcp_read(fd, hello, sizeof hello);
}

static void answer_in_clear(void *context, int fd, unsigned number)
{
    static const char text[] = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nclear";
    char hello[64];
    if (live_tcp_read(fd, hello, sizeof hello))
        live_tcp_write(fd, text, sizeof text - 1);
}

static void assert_retried_unsent(live_tcp_function *serve_tcp)
{
    char url[64];
    tcp = live_tcp_new(serve_tcp, NULL);
    snprintf(url, sizeof url, "https://127.0.0.1:%u/pay", live_tcp_port(tcp));
    assert_int_not_equal(live_client_post(&client, url, "charge=1"), CURLE_OK);
    live_assert_gave_up(&client, BIDE_REASON_ATTEMPTS_SPENT, 3);
    for (uint32_t n = 1; n <= 3; n++)
        live_assert_attempt(&client, n, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_NOT_SENT);
    assert_int_equal(client.result.status, 0);
    assert_int_equal(client.sink.length, 0);
}

static void a_post_with_a_reset_handshake_was_not_sent_and_is_retried(void **state)
{
    assert_retried_unsent(reset_at_once);
}

static void a_post_with_a_closed_handshake_was_not_sent_and_is_retried(void **state)
{
    assert_retried_unsent(close_after_hello);
}

static void a_cleartext_response_to_tls_is_not_a_response(void **state)
{
    assert_retried_unsent(answer_in_clear);
}

static void serve_port(live_tcp_function *serve_tcp, char url[64])
{
    tcp = live_tcp_new(serve_tcp, NULL);
    snprintf(url, 64, "https://127.0.0.1:%u/pay", live_tcp_port(tcp));
}

/* Only the text in the error buffer distinguishes it from a handshake that was reset. */
static void a_port_of_plain_http_is_permanent_where_the_error_text_is_known(void **state)
{
    char url[64], error[CURL_ERROR_SIZE] = "";
    serve_port(answer_in_clear, url);
    curl_easy_setopt(client.easy, CURLOPT_ERRORBUFFER, error);
    client.options.error_buffer = error;
    assert_int_equal(live_client_post(&client, url, "charge=1"), CURLE_SSL_CONNECT_ERROR);
    live_assert_gave_up(&client, BIDE_REASON_PERMANENT, 1);
    live_assert_attempt(&client, 1, BIDE_KIND_PERMANENT, BIDE_EVIDENCE_NOT_SENT);
    curl_easy_setopt(client.easy, CURLOPT_ERRORBUFFER, NULL);
}

static void a_reset_handshake_is_retried_where_the_error_text_is_known(void **state)
{
    char url[64], error[CURL_ERROR_SIZE] = "";
    serve_port(reset_at_once, url);
    curl_easy_setopt(client.easy, CURLOPT_ERRORBUFFER, error);
    client.options.error_buffer = error;
    assert_int_not_equal(live_client_post(&client, url, "charge=1"), CURLE_OK);
    live_assert_gave_up(&client, BIDE_REASON_ATTEMPTS_SPENT, 3);
    curl_easy_setopt(client.easy, CURLOPT_ERRORBUFFER, NULL);
}

static void read_forever(void *context, int fd, unsigned number)
{
    char byte;
    while (live_tcp_read(fd, &byte, 1))
        continue;
}

static void a_post_with_a_slow_handshake_was_not_sent_and_is_retried(void **state)
{
    client.policy.connect_timeout_ns = 50 * BIDE_MS;
    assert_retried_unsent(read_forever);
    assert_int_equal(client.result.attempt[2].code, CURLE_OPERATION_TIMEDOUT);
}

/* Fails twice, then relays to the real server. */
static void fail_twice_then_relay(void *context, int fd, unsigned number)
{
    if (number < 3) {
        close_after_hello(context, fd, number);
        return;
    }
    int to = live_tcp_connect(server.port);
    live_tcp_relay(fd, to, false);
    close(to);
}

static void a_post_survives_failed_handshakes_and_is_sent_once(void **state)
{
    char url[64];
    live_tls_make(&server, "site", "IP:127.0.0.1");
    start_nginx();
    set_ca_file("site");
    tcp = live_tcp_new(fail_twice_then_relay, NULL);
    snprintf(url, sizeof url, "https://127.0.0.1:%u/pay", live_tcp_port(tcp));
    assert_int_equal(live_client_post(&client, url, "charge=1"), CURLE_OK);
    live_assert_done(&client, 3);
    assert_string_equal(client.sink.at, "fine");
    assert_int_equal(requests_seen(), 1);
}

static void a_plain_request_to_a_tls_port_is_permanent(void **state)
{
    live_tls_make(&server, "site", "IP:127.0.0.1");
    start_nginx();
    assert_int_equal(live_client_get(&client, live_process_url(&server, "http", "/")), CURLE_OK);
    live_assert_gave_up(&client, BIDE_REASON_PERMANENT, 1);
    assert_int_equal(client.result.status, 400);
}

static void a_tls_request_to_a_plain_port_is_not_sent(void **state)
{
    live_nginx_start(&server, "server { listen 127.0.0.1:$PORT; location / { return 200 fine; } }");
    assert_int_equal(perform_post(), CURLE_SSL_CONNECT_ERROR);
    live_assert_attempt(&client, 1, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_NOT_SENT);
    live_nginx_end(&server);
    assert_int_equal(live_nginx_count(&server, "POST"), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_valid_certificate_is_accepted),
        TEST(an_untrusted_authority_is_permanent),
        TEST(an_expired_certificate_is_permanent),
        TEST(a_certificate_of_another_host_is_permanent),
        TEST(a_missing_ca_file_is_permanent),
        TEST(an_untrusted_certificate_is_permanent_in_a_multi_too),
        TEST(a_post_without_the_required_client_certificate_has_unknown_evidence),
        TEST(a_response_of_openssl_succeeds),
        TEST(a_post_with_a_reset_handshake_was_not_sent_and_is_retried),
        TEST(a_post_with_a_closed_handshake_was_not_sent_and_is_retried),
        TEST(a_cleartext_response_to_tls_is_not_a_response),
        TEST(a_port_of_plain_http_is_permanent_where_the_error_text_is_known),
        TEST(a_reset_handshake_is_retried_where_the_error_text_is_known),
        TEST(a_post_with_a_slow_handshake_was_not_sent_and_is_retried),
        TEST(a_post_survives_failed_handshakes_and_is_sent_once),
        TEST(a_plain_request_to_a_tls_port_is_permanent),
        TEST(a_tls_request_to_a_plain_port_is_not_sent),
    };
    curl_global_init(CURL_GLOBAL_ALL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
