/* test_http2.c - HTTP/2 with real servers: nginx over TLS, where connections are reused and shared, and nghttpd in
 * cleartext. */
#define _GNU_SOURCE
#include "live_client.h"
#include "live_nginx.h"
#include "live_tls.h"

#include <bide/clock.h>
#include <bide/multi.h>

#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct live_client client;
static struct live_client other;
static struct live_client unread; /* sends a request that the server does not read */
static struct live_process server;
static struct live_server upstream;

static void client_init_http_2(struct live_client *c)
{
    live_client_init(c, 3);
    curl_easy_setopt(c->easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_2TLS);
    curl_easy_setopt(c->easy, CURLOPT_PIPEWAIT, 1L); /* wait for a shared connection instead of opening another */
    curl_easy_setopt(c->easy, CURLOPT_CAINFO, live_tls_path(&server, "right"));
}

static int open_all(void **state)
{
    live_process_dir(&server);
    live_tls_make(&server, "right", "IP:127.0.0.1");
    client_init_http_2(&client);
    client_init_http_2(&other);
    client_init_http_2(&unread);
    return 0;
}

static int close_all(void **state)
{
    live_client_free(&client);
    live_client_free(&other);
    live_client_free(&unread);
    live_process_free(&server);
    if (upstream.chaos)
        live_server_free(&upstream);
    return 0;
}

static void start_nginx(const char *inside)
{
    char text[2048];
    snprintf(text, sizeof text,
             "server { listen 127.0.0.1:$PORT ssl http2; ssl_certificate $DIR/right.pem;\n"
             "ssl_certificate_key $DIR/right.key; %s }",
             inside);
    live_nginx_start(&server, text);
}

static void start_nginx_with_upstream(const char *script)
{
    char text[512];
    live_server_start(&upstream, script);
    snprintf(text, sizeof text, "location / { proxy_pass http://127.0.0.1:%u; proxy_next_upstream off; }",
             chaos_port(upstream.chaos));
    start_nginx(text);
}

static const char *url(const char *path)
{
    return live_process_url(&server, "https", path);
}

static void assert_http_2(void)
{
    long version = 0;
    curl_easy_getinfo(client.easy, CURLINFO_HTTP_VERSION, &version);
    assert_int_equal(version, CURL_HTTP_VERSION_2_0);
}

static size_t nginx_requests(const char *text)
{
    live_nginx_end(&server);
    return live_nginx_count(&server, text);
}

static void client_set_post(struct live_client *c)
{
    curl_easy_setopt(c->easy, CURLOPT_POSTFIELDS, "charge=1");
    c->options.body.kind = BIDE_CURL_BODY_REPEATABLE;
}

/* ---- sequential calls ---- */

static void many_calls_share_one_connection(void **state)
{
    start_nginx("location / { return 200 fine; }");
    for (int i = 0; i < 20; i++) {
        assert_int_equal(i % 2 ? live_client_post(&client, url("/"), "x") : live_client_get(&client, url("/")),
                         CURLE_OK);
        live_assert_done(&client, 1);
        assert_string_equal(client.sink.at, "fine");
        assert_http_2();
    }
    assert_int_equal(nginx_requests("/ 200"), 20);
    assert_int_equal(live_nginx_connections(&server), 1);
}

static void a_failure_is_retried_on_the_same_connection(void **state)
{
    start_nginx_with_upstream("/x 503 x2 | 200 body=fine");
    assert_int_equal(live_client_get(&client, url("/x")), CURLE_OK);
    live_assert_done(&client, 3);
    assert_int_equal(client.result.attempt[1].status, 503);
    assert_string_equal(client.sink.at, "fine");
    assert_int_equal(nginx_requests("GET /x"), 3);
    assert_int_equal(live_nginx_connections(&server), 1);
}

static void retry_waits_for_retry_after(void **state)
{
    start_nginx_with_upstream("/x 503 retry-after=1 | 200 body=fine");
    assert_int_equal(live_client_get(&client, url("/x")), CURLE_OK);
    live_assert_done(&client, 2);
    assert_true(client.result.attempt[1].delay_ns >= BIDE_S);
}

static void a_post_is_sent_once_after_503(void **state)
{
    start_nginx_with_upstream("/x 503 body=busy | 200");
    assert_int_equal(live_client_post(&client, url("/x"), "charge=1"), CURLE_OK);
    live_assert_gave_up(&client, BIDE_REASON_NOT_REPEATABLE, 1);
    assert_string_equal(client.sink.at, "busy");
    assert_int_equal(nginx_requests("POST /x"), 1);
}

/* Without a sink the transfer is cut after the head; that costs only the stream. */
static void a_transfer_cut_after_its_head_leaves_the_connection_usable(void **state)
{
    live_client_without_sink(&client);
    start_nginx_with_upstream("/x 503 bytes=30000 x2 | 200 body=fine");
    assert_int_equal(live_client_get(&client, url("/x")), CURLE_OK);
    live_assert_done(&client, 3);
    assert_string_equal(client.sink.at, "fine");
    assert_int_equal(live_client_get(&client, url("/x")), CURLE_OK);
    assert_int_equal(nginx_requests("GET /x"), 4);
    assert_int_equal(live_nginx_connections(&server), 1);
}

static void a_long_error_body_costs_its_stream_but_not_the_connection(void **state)
{
    start_nginx_with_upstream("/x 503 bytes=1000000 x2 | 200 body=fine");
    assert_int_equal(live_client_get(&client, url("/x")), CURLE_OK);
    live_assert_done(&client, 3);
    assert_string_equal(client.sink.at, "fine");
    assert_int_equal(nginx_requests("GET /x"), 3);
    assert_int_equal(live_nginx_connections(&server), 1);
}

static void a_partial_body_is_never_followed_by_another(void **state)
{
    start_nginx_with_upstream("/x 200 bytes=100000 reset=half | 200 body=fine");
    assert_int_not_equal(live_client_get(&client, url("/x")), CURLE_OK);
    live_assert_gave_up(&client, BIDE_REASON_BODY_DELIVERED, 1);
    for (size_t i = 0; i < client.sink.length; i++)
        assert_int_equal(client.sink.at[i], chaos_pattern(i));
    assert_int_equal(nginx_requests("GET /x"), 1);
}

/* A megabyte, which exceeds the server's limit. */
static const char *large_body(void)
{
    static char body[1 << 20];
    memset(body, 'x', sizeof body - 1);
    return body;
}

static void a_response_before_the_end_of_the_upload_decides(void **state)
{
    start_nginx("client_max_body_size 1k; location / { return 200 fine; }");
    assert_int_equal(live_client_post(&client, url("/x"), large_body()), CURLE_OK);
    live_assert_gave_up(&client, BIDE_REASON_PERMANENT, 1);
    assert_int_equal(client.result.status, 413);
}

static void a_stream_that_timed_out_leaves_the_connection_usable(void **state)
{
    start_nginx_with_upstream("/x delay=never | 200 body=fine");
    client.policy.attempt_timeout_ns = 2 * BIDE_S;
    assert_int_equal(live_client_get(&client, url("/x")), CURLE_OK);
    live_assert_done(&client, 2);
    live_assert_attempt(&client, 1, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_UNKNOWN);
    assert_int_equal(client.result.attempt[0].code, CURLE_OPERATION_TIMEDOUT);
    live_server_stop(&upstream);
    assert_int_equal(live_server_requests(&upstream, "/x"), 2);
    assert_int_equal(nginx_requests("GET /x 200"), 1);
    assert_int_equal(live_nginx_connections(&server), 1);
}

/* ---- idle connections ---- */

#define IDLE_CALLS 12

/* Stores the socket of a new connection. */
static int note_socket(void *context, curl_socket_t fd, curlsocktype purpose)
{
    curl_socket_t *last = context;
    *last = fd;
    return CURL_SOCKOPT_OK;
}

static void wait_until_closed(curl_socket_t fd)
{
    struct pollfd waiting = {.fd = fd, .events = POLLRDHUP};
    assert_int_equal(poll(&waiting, 1, 60000), 1);
}

/* Makes POSTs, each after the server has closed the connection of the previous one. */
static void expect_idle_closes_cost_nothing(CURLcode (*post)(void *context), void *context)
{
    curl_socket_t fd = CURL_SOCKET_BAD;
    start_nginx("keepalive_timeout 5ms; location / { return 200 fine; }");
    live_target_service(&client.target);
    curl_easy_setopt(client.easy, CURLOPT_SOCKOPTFUNCTION, note_socket);
    curl_easy_setopt(client.easy, CURLOPT_SOCKOPTDATA, &fd);
    for (int i = 0; i < IDLE_CALLS; i++) {
        assert_int_equal(post(context), CURLE_OK);
        live_assert_done(&client, 1);
        wait_until_closed(fd);
    }
    assert_int_equal(nginx_requests("POST / 200"), IDLE_CALLS);
}

static CURLcode post_alone(void *context)
{
    return live_client_post(&client, url("/"), "charge=1");
}

static void idle_closes_cost_nothing(void **state)
{
    expect_idle_closes_cost_nothing(post_alone, NULL);
}

static void idle_closes_of_http_1_cost_nothing(void **state)
{
    curl_easy_setopt(client.easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
    expect_idle_closes_cost_nothing(post_alone, NULL);
}

/* ---- parallel calls ---- */

static void count_done(void *context, const struct bide_multi_end *end)
{
    ++*(size_t *)context;
}

static void start_call(struct bide_multi *multi, struct live_client *c, const char *path, size_t *done)
{
    struct bide_multi_job job = {.easy = c->easy,
                                 .target = &c->target,
                                 .options = &c->options,
                                 .result = &c->result,
                                 .done = count_done,
                                 .context = done};
    curl_easy_setopt(c->easy, CURLOPT_URL, url(path));
    assert_int_equal(bide_multi_start(multi, &job, NULL, NULL), BIDE_OK);
}

static void run_to_end(struct bide_multi *multi)
{
    while (bide_multi_poll(multi, BIDE_NEVER) > 0)
        continue;
}

static CURLcode post_in_multi(void *multi)
{
    size_t done = 0;
    client_set_post(&client);
    start_call(multi, &client, "/", &done);
    run_to_end(multi);
    assert_int_equal(done, 1);
    return CURLE_OK;
}

static void idle_closes_in_a_multi_cost_nothing(void **state)
{
    struct bide_multi *multi;
    assert_int_equal(bide_multi_new(&multi), BIDE_OK);
    expect_idle_closes_cost_nothing(post_in_multi, multi);
    bide_multi_free(multi);
}

static void poll_until_upstream_saw(struct bide_multi *multi, uint64_t requests)
{
    while (chaos_requests(upstream.chaos) < requests)
        bide_multi_poll(multi, bide_now() + BIDE_MS);
}

#define CALLS 40

static void parallel_calls_share_one_connection_and_are_retried(void **state)
{
    static struct live_client calls[CALLS];
    struct bide_multi *multi;
    size_t done = 0, attempts = 0;
    start_nginx_with_upstream("/x 200 fail=30%:503");
    assert_int_equal(bide_multi_new(&multi), BIDE_OK);
    for (size_t i = 0; i < CALLS; i++) {
        client_init_http_2(&calls[i]);
        calls[i].policy = live_policy(50);
        start_call(multi, &calls[i], "/x", &done);
    }
    run_to_end(multi);
    bide_multi_free(multi);
    assert_int_equal(done, CALLS);
    for (size_t i = 0; i < CALLS; i++) {
        assert_string_equal(bide_action_label(calls[i].result.verdict.action), "done");
        assert_string_equal(calls[i].sink.at, "ok\n");
        attempts += calls[i].result.attempts;
        live_client_free(&calls[i]);
    }
    assert_true(attempts > CALLS);
    assert_int_equal(nginx_requests("GET /x"), attempts);
    assert_int_equal(live_nginx_connections(&server), 1);
}

/* Kills the server and restarts it before libcurl notices. A request that it has not read makes the kernel reset the
 * connection instead of closing it; after a reset libcurl before 8.0 replays. */
static void kill_server_with_unread_request(struct bide_multi *multi, size_t *done)
{
    long sent = 0;
    kill(server.pid, SIGSTOP);
    start_call(multi, &unread, "/unread", done);
    while (sent == 0) {
        bide_multi_poll(multi, bide_now() + BIDE_MS);
        curl_easy_getinfo(unread.easy, CURLINFO_REQUEST_SIZE, &sent);
    }
    live_process_end(&server, SIGKILL);
    live_nginx_restart(&server);
}

/* Both POSTs are at the upstream when nginx dies. To libcurl the connection counts as reused, even for the call that
 * made it, because another call shared it: bare libcurl would send both again. */
static void posts_on_a_shared_connection_that_died_are_not_repeated(void **state)
{
    struct bide_multi *multi;
    size_t done = 0;
    start_nginx_with_upstream("/x delay=never x2 | 200\n/unread 200");
    client_set_post(&client);
    client_set_post(&other);
    assert_int_equal(bide_multi_new(&multi), BIDE_OK);
    start_call(multi, &client, "/x", &done);
    poll_until_upstream_saw(multi, 1);
    start_call(multi, &other, "/x", &done);
    poll_until_upstream_saw(multi, 2);
    kill_server_with_unread_request(multi, &done);
    run_to_end(multi);
    bide_multi_free(multi);
    assert_int_equal(done, 3);
    live_assert_gave_up(&client, BIDE_REASON_NOT_REPEATABLE, 1);
    live_assert_attempt(&client, 1, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_UNKNOWN);
    assert_true(client.result.attempt[0].replay_stopped);
    live_assert_gave_up(&other, BIDE_REASON_NOT_REPEATABLE, 1);
    live_assert_attempt(&other, 1, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_UNKNOWN);
    live_assert_done(&unread, 2); /* a GET */
    live_server_stop(&upstream);
    assert_int_equal(live_server_requests(&upstream, "/x"), 2);
    assert_int_equal(live_server_requests(&upstream, "/unread"), 1);
}

static void gets_on_a_shared_connection_that_died_are_retried_by_bide(void **state)
{
    struct bide_multi *multi;
    size_t done = 0;
    start_nginx_with_upstream("/x delay=never x2 | 200\n/unread 200");
    assert_int_equal(bide_multi_new(&multi), BIDE_OK);
    start_call(multi, &client, "/x", &done);
    start_call(multi, &other, "/x", &done);
    poll_until_upstream_saw(multi, 2);
    kill_server_with_unread_request(multi, &done);
    run_to_end(multi);
    bide_multi_free(multi);
    assert_int_equal(done, 3);
    live_assert_done(&client, 2);
    live_assert_done(&other, 2);
    live_server_stop(&upstream);
    assert_int_equal(live_server_requests(&upstream, "/x"), 4);
}

static void cancelling_a_call_leaves_the_shared_connection_usable(void **state)
{
    struct bide_multi *multi;
    struct bide_multi_call *transfer;
    size_t done = 0;
    start_nginx_with_upstream("/slow delay=never\n/x 200 body=fine");
    assert_int_equal(bide_multi_new(&multi), BIDE_OK);
    curl_easy_setopt(client.easy, CURLOPT_URL, url("/slow"));
    struct bide_multi_job job = {.easy = client.easy,
                                 .target = &client.target,
                                 .options = &client.options,
                                 .result = &client.result,
                                 .done = count_done,
                                 .context = &done};
    assert_int_equal(bide_multi_start(multi, &job, &transfer, NULL), BIDE_OK);
    poll_until_upstream_saw(multi, 1);
    bide_multi_cancel(multi, transfer);
    assert_int_equal(done, 1);
    live_assert_gave_up(&client, BIDE_REASON_CANCELLED, 1);
    start_call(multi, &other, "/x", &done);
    run_to_end(multi);
    bide_multi_free(multi);
    live_assert_done(&other, 1);
    assert_string_equal(other.sink.at, "fine");
    assert_int_equal(nginx_requests("GET /x 200"), 1);
    assert_int_equal(live_nginx_connections(&server), 1);
}

/* ---- nghttpd ---- */

static void start_nghttpd(void)
{
    live_process_write(&server, "page", "fine");
    live_process_start(
        &server, (const char *const[]){"nghttpd", "-v", "--no-tls", "-a", "127.0.0.1", "-d", "$DIR", "$PORT", NULL});
    curl_easy_setopt(client.easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE);
    curl_easy_setopt(client.easy, CURLOPT_FRESH_CONNECT, 1L); /* libcurl before 8.0 cannot reuse such a connection */
}

static size_t nghttpd_requests(const char *text)
{
    live_process_end(&server, SIGKILL); /* its output is not buffered */
    return live_process_count(&server, "output", text);
}

static void a_call_to_nghttpd_succeeds(void **state)
{
    start_nghttpd();
    assert_int_equal(live_client_get(&client, live_process_url(&server, "http", "/page")), CURLE_OK);
    live_assert_done(&client, 1);
    assert_http_2();
    assert_string_equal(client.sink.at, "fine");
    assert_int_equal(nghttpd_requests(":method: GET"), 1);
}

static void a_404_is_requested_once(void **state)
{
    start_nghttpd();
    assert_int_equal(live_client_post(&client, live_process_url(&server, "http", "/none"), "x"), CURLE_OK);
    live_assert_gave_up(&client, BIDE_REASON_PERMANENT, 1);
    assert_int_equal(client.result.status, 404);
    assert_int_equal(nghttpd_requests(":method: POST"), 1);
}

static void a_404_is_retried_if_a_rule_makes_it_transient(void **state)
{
    static const struct bide_rule rule = {404, 404, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_ANSWERED, BIDE_FLAG_FRESH};
    static const struct bide_rules rules = {&rule, 1, false};
    start_nghttpd();
    client.options.status_rules = &rules;
    assert_int_equal(live_client_get(&client, live_process_url(&server, "http", "/none")), CURLE_OK);
    live_assert_gave_up(&client, BIDE_REASON_ATTEMPTS_SPENT, 3);
    assert_true(client.sink.length > 0);
    assert_int_equal(nghttpd_requests(":method: GET"), 3);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(many_calls_share_one_connection),
        TEST(a_failure_is_retried_on_the_same_connection),
        TEST(retry_waits_for_retry_after),
        TEST(a_post_is_sent_once_after_503),
        TEST(a_transfer_cut_after_its_head_leaves_the_connection_usable),
        TEST(a_long_error_body_costs_its_stream_but_not_the_connection),
        TEST(a_partial_body_is_never_followed_by_another),
        TEST(a_response_before_the_end_of_the_upload_decides),
        TEST(a_stream_that_timed_out_leaves_the_connection_usable),
        TEST(idle_closes_cost_nothing),
        TEST(idle_closes_of_http_1_cost_nothing),
        TEST(idle_closes_in_a_multi_cost_nothing),
        TEST(parallel_calls_share_one_connection_and_are_retried),
        TEST(posts_on_a_shared_connection_that_died_are_not_repeated),
        TEST(gets_on_a_shared_connection_that_died_are_retried_by_bide),
        TEST(cancelling_a_call_leaves_the_shared_connection_usable),
        TEST(a_call_to_nghttpd_succeeds),
        TEST(a_404_is_requested_once),
        TEST(a_404_is_retried_if_a_rule_makes_it_transient),
    };
    curl_global_init(CURL_GLOBAL_ALL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
