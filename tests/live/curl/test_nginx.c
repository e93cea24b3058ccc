/* test_nginx.c - against nginx: kept-alive connections, refusals, limits, a broken upstream, a killed server. Its
 * access log is checked after it has stopped. */
#include "live_client.h"
#include "live_nginx.h"

#include <bide/clock.h>
#include <bide/multi.h>

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct live_client client;
static struct live_process nginx;
static struct live_server upstream;

static int open_all(void **state)
{
    live_client_init(&client, 3);
    live_process_dir(&nginx);
    return 0;
}

static int close_all(void **state)
{
    live_client_free(&client);
    live_process_free(&nginx);
    if (upstream.chaos)
        live_server_free(&upstream);
    return 0;
}

/* Starts nginx with these locations. */
static void start_nginx(const char *inside)
{
    char text[2048];
    snprintf(text, sizeof text, "server { listen 127.0.0.1:$PORT; %s }", inside);
    live_nginx_start(&nginx, text);
}

/* Starts nginx in front of a chaos server with this script. */
static void start_nginx_with_upstream(const char *script)
{
    char text[512];
    live_server_start(&upstream, script);
    snprintf(text, sizeof text,
             "location / { proxy_pass http://127.0.0.1:%u; proxy_next_upstream off; proxy_read_timeout 1s; }",
             chaos_port(upstream.chaos));
    start_nginx(text);
}

static CURLcode perform_get(const char *path)
{
    return live_client_get(&client, live_process_url(&nginx, "http", path));
}

static CURLcode perform_post(const char *path)
{
    return live_client_post(&client, live_process_url(&nginx, "http", path), "charge=1");
}

static size_t seen(const char *text)
{
    live_nginx_end(&nginx);
    return live_nginx_count(&nginx, text);
}

/* ---- connections ---- */

static void many_calls_share_one_connection(void **state)
{
    start_nginx("location / { return 200 fine; }");
    for (int i = 0; i < 50; i++) {
        assert_int_equal(i % 2 ? perform_post("/") : perform_get("/"), CURLE_OK);
        live_assert_done(&client, 1);
        assert_string_equal(client.sink.at, "fine");
    }
    assert_int_equal(seen("/ 200"), 50);
    assert_int_equal(live_nginx_connections(&nginx), 1);
}

static void a_drained_error_keeps_the_connection(void **state)
{
    start_nginx("location / { return 503 busy; }");
    assert_int_equal(perform_get("/"), CURLE_OK);
    live_assert_gave_up(&client, BIDE_REASON_ATTEMPTS_SPENT, 3);
    assert_string_equal(client.sink.at, "busy"); /* of the last attempt, once */
    assert_int_equal(client.result.status, 503);
    assert_int_equal(seen("GET / 503"), 3);
    assert_int_equal(live_nginx_connections(&nginx), 1);
}

static void a_server_that_closes_after_each_response_costs_no_attempt(void **state)
{
    start_nginx("keepalive_timeout 0; location / { return 200 fine; }");
    for (int i = 0; i < 10; i++) {
        assert_int_equal(perform_post("/"), CURLE_OK);
        live_assert_done(&client, 1);
    }
    assert_int_equal(seen("POST / 200"), 10);
    assert_int_equal(live_nginx_connections(&nginx), 10);
}

static void reaching_keepalive_requests_costs_no_attempt(void **state)
{
    start_nginx("keepalive_requests 3; location / { return 200 fine; }");
    for (int i = 0; i < 9; i++) {
        assert_int_equal(perform_post("/"), CURLE_OK);
        live_assert_done(&client, 1);
    }
    assert_int_equal(seen("POST / 200"), 9);
    assert_int_equal(live_nginx_connections(&nginx), 3);
}

/* The FIN on an idle connection arrives unnoticed; libcurl or bide checks the connection before it sends. */
static void a_connection_closed_while_idle_is_replaced(void **state)
{
    start_nginx("location / { return 200 fine; }");
    assert_int_equal(perform_get("/first"), CURLE_OK);
    live_nginx_end(&nginx);
    live_nginx_restart(&nginx);
    assert_int_equal(perform_get("/second"), CURLE_OK);
    assert_int_equal(seen("GET /first 200"), 1);
    assert_int_equal(live_nginx_count(&nginx, "GET /second 200"), 1);
}

static void a_post_on_a_connection_closed_while_idle_is_sent_once(void **state)
{
    start_nginx("location / { return 200 fine; }");
    assert_int_equal(perform_post("/first"), CURLE_OK);
    live_nginx_end(&nginx);
    live_nginx_restart(&nginx);
    assert_int_equal(perform_post("/second"), CURLE_OK);
    live_assert_done(&client, 1);
    assert_int_equal(seen("POST /second 200"), 1);
}

/* ---- refusals ---- */

static void an_unkeyed_post_is_sent_once(void **state)
{
    start_nginx("location / { return 503 busy; }");
    assert_int_equal(perform_post("/pay"), CURLE_OK);
    live_assert_gave_up(&client, BIDE_REASON_NOT_REPEATABLE, 1);
    assert_string_equal(client.sink.at, "busy");
    assert_int_equal(seen("POST /pay 503"), 1);
}

static void a_keyed_post_is_retried_with_the_same_key(void **state)
{
    char line[128];
    start_nginx("location / { return 503 busy; }");
    client.options.inject = BIDE_CURL_INJECT_KEY;
    assert_int_equal(perform_post("/pay"), CURLE_OK);
    live_assert_gave_up(&client, BIDE_REASON_ATTEMPTS_SPENT, 3);
    assert_int_not_equal(client.result.key[0], '\0');
    snprintf(line, sizeof line, "POST /pay 503 key=\\x22%s\\x22", client.result.key); /* the log escapes quotes */
    assert_int_equal(seen("POST /pay"), 3);
    assert_int_equal(live_nginx_count(&nginx, line), 3);
}

static void retry_waits_for_retry_after(void **state)
{
    start_nginx("location / { add_header Retry-After 1 always; return 503; }");
    client.policy = live_policy(2);
    int64_t begin_ns = bide_now();
    assert_int_equal(perform_get("/"), CURLE_OK);
    assert_true(bide_now() - begin_ns >= BIDE_S);
    assert_true(client.result.attempt[1].delay_ns >= BIDE_S);
    assert_int_equal(client.result.attempt[0].hint.kind, BIDE_HINT_WAIT);
    assert_int_equal(client.result.attempt[0].hint.wait_ns, BIDE_S);
    assert_int_equal(seen("GET / 503"), 2);
}

static void a_hint_beyond_hint_max_ends_the_call_at_once(void **state)
{
    start_nginx("location / { add_header Retry-After 86400 always; return 429 slower; }");
    assert_int_equal(perform_get("/"), CURLE_OK);
    live_assert_gave_up(&client, BIDE_REASON_HINT_TOO_LONG, 1);
    live_assert_attempt(&client, 1, BIDE_KIND_THROTTLED, BIDE_EVIDENCE_ANSWERED);
    assert_string_equal(client.sink.at, "slower");
    assert_int_equal(seen("GET / 429"), 1);
}

static void a_permanent_failure_is_not_retried(void **state)
{
    start_nginx("location / { return 404 none; }");
    assert_int_equal(perform_get("/"), CURLE_OK);
    live_assert_gave_up(&client, BIDE_REASON_PERMANENT, 1);
    assert_string_equal(client.sink.at, "none");
    assert_int_equal(seen("GET / 404"), 1);
}

static void a_response_before_the_end_of_the_upload_decides(void **state)
{
    static char body[1 << 20];
    memset(body, 'x', sizeof body - 1);
    start_nginx("client_max_body_size 1k; location / { return 200 fine; }");
    assert_int_equal(live_client_post(&client, live_process_url(&nginx, "http", "/x"), body), CURLE_OK);
    live_assert_gave_up(&client, BIDE_REASON_PERMANENT, 1);
    assert_int_equal(client.result.status, 413);
}

/* One request per minute is admitted: only the first in this test. */
static void a_rate_limited_call_ends_after_its_attempts(void **state)
{
    live_nginx_start(&nginx, "limit_req_zone $server_port zone=z:64k rate=1r/m; limit_req_status 429;\n"
                             "server { listen 127.0.0.1:$PORT; location / { limit_req zone=z; root $DIR; } }");
    live_process_write(&nginx, "page", "fine");
    assert_int_equal(perform_get("/page"), CURLE_OK);
    live_assert_done(&client, 1);
    assert_int_equal(perform_get("/page"), CURLE_OK);
    live_assert_gave_up(&client, BIDE_REASON_ATTEMPTS_SPENT, 3);
    live_assert_attempt(&client, 3, BIDE_KIND_THROTTLED, BIDE_EVIDENCE_ANSWERED);
    assert_int_equal(seen("GET /page 200"), 1);
    assert_int_equal(live_nginx_count(&nginx, "GET /page 429"), 3);
}

/* ---- upstreams ---- */

static void a_get_survives_an_upstream_that_cuts_connections(void **state)
{
    start_nginx_with_upstream("/x reset=request | close=request | 200 body=fine");
    assert_int_equal(perform_get("/x"), CURLE_OK);
    live_assert_done(&client, 3);
    assert_int_equal(client.result.attempt[0].status, 502);
    assert_int_equal(client.result.attempt[1].status, 502);
    assert_string_equal(client.sink.at, "fine");
    live_server_stop(&upstream);
    assert_int_equal(live_server_requests(&upstream, "/x"), 3);
    assert_int_equal(seen("GET /x"), 3);
}

static void a_post_reaches_an_upstream_that_cuts_connections_once(void **state)
{
    start_nginx_with_upstream("/x reset=request | 200");
    assert_int_equal(perform_post("/x"), CURLE_OK);
    live_assert_gave_up(&client, BIDE_REASON_NOT_REPEATABLE, 1);
    assert_int_equal(client.result.status, 502);
    live_server_stop(&upstream);
    assert_int_equal(live_server_requests(&upstream, "/x"), 1);
}

static void a_keyed_post_is_retried_at_an_upstream_that_cuts_connections(void **state)
{
    start_nginx_with_upstream("/x reset=request | 200");
    client.options.inject = BIDE_CURL_INJECT_KEY;
    assert_int_equal(perform_post("/x"), CURLE_OK);
    live_assert_done(&client, 2);
    live_server_stop(&upstream);
    assert_int_equal(upstream.count, 2);
    assert_string_equal(upstream.seen[0].key, upstream.seen[1].key);
    assert_int_equal(upstream.seen[0].body_hash, upstream.seen[1].body_hash);
}

static void a_silent_upstream_is_a_504_and_a_get_is_retried(void **state)
{
    start_nginx_with_upstream("/x delay=never | 200 body=fine");
    assert_int_equal(perform_get("/x"), CURLE_OK);
    live_assert_done(&client, 2);
    assert_int_equal(client.result.attempt[0].status, 504);
    assert_string_equal(client.sink.at, "fine");
}

static void a_missing_upstream_is_a_502(void **state)
{
    start_nginx_with_upstream("");
    live_server_free(&upstream);
    assert_int_equal(perform_get("/x"), CURLE_OK);
    live_assert_gave_up(&client, BIDE_REASON_ATTEMPTS_SPENT, 3);
    assert_int_equal(client.result.status, 502);
    assert_int_equal(seen("GET /x 502"), 3);
}

static void a_partial_body_through_nginx_is_not_followed_by_another(void **state)
{
    start_nginx_with_upstream("/x 200 bytes=100000 reset=half | 200 body=fine");
    assert_int_not_equal(perform_get("/x"), CURLE_OK);
    live_assert_gave_up(&client, BIDE_REASON_BODY_DELIVERED, 1);
    assert_true(client.sink.length > 0 && client.sink.length < 100000);
    for (size_t i = 0; i < client.sink.length; i++)
        assert_int_equal(client.sink.at[i], chaos_pattern(i));
    assert_int_equal(seen("GET /x"), 1);
}

/* ---- a killed server ---- */

static pthread_t killer;

/* Kills nginx when the request has reached the upstream. */
static void *kill_nginx(void *context)
{
    while (chaos_requests(upstream.chaos) == 0)
        bide_wait_until(bide_now() + BIDE_MS / 10, NULL);
    live_process_end(&nginx, SIGKILL);
    return NULL;
}

/* Restarts nginx after the first attempt has failed. */
static void revive_nginx(void *context, const struct bide_event *event)
{
    if (event->verdict->action != BIDE_ACTION_WAIT)
        return;
    pthread_join(killer, NULL);
    live_nginx_restart(&nginx);
}

static void a_get_survives_a_killed_server(void **state)
{
    start_nginx_with_upstream("/x delay=never | 200 body=fine");
    client.policy = live_policy(2);
    client.options.event = revive_nginx;
    assert_int_equal(pthread_create(&killer, NULL, kill_nginx, NULL), 0);
    assert_int_equal(perform_get("/x"), CURLE_OK);
    live_assert_done(&client, 2);
    live_assert_attempt(&client, 1, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_UNKNOWN);
    assert_string_equal(client.sink.at, "fine");
    live_server_stop(&upstream);
    assert_int_equal(live_server_requests(&upstream, "/x"), 2);
}

static void on_done(void *context, const struct bide_multi_end *end)
{
    *(size_t *)context += end->code == CURLE_OK && end->verdict.action == BIDE_ACTION_DONE;
}

static void start_call(struct bide_multi *multi, struct live_client *c, const char *url, size_t *ok)
{
    struct bide_multi_job job = {.easy = c->easy,
                                 .target = &c->target,
                                 .options = &c->options,
                                 .result = &c->result,
                                 .done = on_done,
                                 .context = ok};
    curl_easy_setopt(c->easy, CURLOPT_URL, url);
    assert_int_equal(bide_multi_start(multi, &job, NULL, NULL), BIDE_OK);
}

static void run_to_end(struct bide_multi *multi)
{
    while (bide_multi_poll(multi, BIDE_NEVER) > 0)
        continue;
}

/* The connection is reused and the server is back before libcurl notices: bare libcurl would send the POST again. */
static void a_post_in_flight_at_a_killed_server_is_not_repeated(void **state)
{
    struct bide_multi *multi;
    size_t ok = 0;
    start_nginx_with_upstream("/warm 200\n/x delay=never | 200");
    assert_int_equal(bide_multi_new(&multi), BIDE_OK);
    start_call(multi, &client, live_process_url(&nginx, "http", "/warm"), &ok);
    run_to_end(multi);
    curl_easy_setopt(client.easy, CURLOPT_POSTFIELDS, "charge=1");
    client.options.body.kind = BIDE_CURL_BODY_REPEATABLE;
    start_call(multi, &client, live_process_url(&nginx, "http", "/x"), &ok);
    while (chaos_requests(upstream.chaos) < 2)
        bide_multi_poll(multi, bide_now() + BIDE_MS);
    live_process_end(&nginx, SIGKILL);
    live_nginx_restart(&nginx);
    run_to_end(multi);
    assert_int_equal(ok, 1); /* only the first call */
    live_assert_gave_up(&client, BIDE_REASON_NOT_REPEATABLE, 1);
    live_assert_attempt(&client, 1, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_UNKNOWN);
    assert_true(client.result.attempt[0].replay_stopped);
    bide_multi_free(multi);
    live_server_stop(&upstream);
    assert_int_equal(live_server_requests(&upstream, "/x"), 1);
}

static void a_post_to_a_server_that_is_down_is_retried_and_sent_once(void **state)
{
    start_nginx("location / { return 200 fine; }");
    live_process_end(&nginx, SIGKILL);
    client.policy = live_policy(2);
    assert_int_equal(perform_post("/x"), CURLE_COULDNT_CONNECT);
    live_assert_gave_up(&client, BIDE_REASON_ATTEMPTS_SPENT, 2);
    live_assert_attempt(&client, 2, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_NOT_SENT);
    live_nginx_restart(&nginx);
    assert_int_equal(perform_post("/x"), CURLE_OK);
    live_assert_done(&client, 1);
    assert_int_equal(seen("POST /x 200"), 1);
}

/* ---- parallel calls ---- */

#define CALLS 64

static void parallel_calls_send_one_request_per_recorded_attempt(void **state)
{
    static struct live_client calls[CALLS];
    struct bide_multi *multi;
    size_t attempts = 0, ok = 0;
    start_nginx_with_upstream("/x 200 fail=30%:503");
    assert_int_equal(bide_multi_new(&multi), BIDE_OK);
    curl_multi_setopt(bide_multi_handle_get(multi), CURLMOPT_MAX_TOTAL_CONNECTIONS, 8L);
    for (size_t i = 0; i < CALLS; i++) {
        live_client_init(&calls[i], 50);
        start_call(multi, &calls[i], live_process_url(&nginx, "http", "/x"), &ok);
    }
    run_to_end(multi);
    bide_multi_free(multi);
    assert_int_equal(ok, CALLS);
    for (size_t i = 0; i < CALLS; i++) {
        attempts += calls[i].result.attempts;
        assert_string_equal(calls[i].sink.at, "ok\n");
        live_client_free(&calls[i]);
    }
    assert_true(attempts > CALLS);
    assert_int_equal(seen("GET /x"), attempts);
    assert_int_equal(live_nginx_count(&nginx, "GET /x 200"), CALLS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(many_calls_share_one_connection),
        TEST(a_drained_error_keeps_the_connection),
        TEST(a_server_that_closes_after_each_response_costs_no_attempt),
        TEST(reaching_keepalive_requests_costs_no_attempt),
        TEST(a_connection_closed_while_idle_is_replaced),
        TEST(a_post_on_a_connection_closed_while_idle_is_sent_once),
        TEST(an_unkeyed_post_is_sent_once),
        TEST(a_keyed_post_is_retried_with_the_same_key),
        TEST(retry_waits_for_retry_after),
        TEST(a_hint_beyond_hint_max_ends_the_call_at_once),
        TEST(a_permanent_failure_is_not_retried),
        TEST(a_response_before_the_end_of_the_upload_decides),
        TEST(a_rate_limited_call_ends_after_its_attempts),
        TEST(a_get_survives_an_upstream_that_cuts_connections),
        TEST(a_post_reaches_an_upstream_that_cuts_connections_once),
        TEST(a_keyed_post_is_retried_at_an_upstream_that_cuts_connections),
        TEST(a_silent_upstream_is_a_504_and_a_get_is_retried),
        TEST(a_missing_upstream_is_a_502),
        TEST(a_partial_body_through_nginx_is_not_followed_by_another),
        TEST(a_get_survives_a_killed_server),
        TEST(a_post_in_flight_at_a_killed_server_is_not_repeated),
        TEST(a_post_to_a_server_that_is_down_is_retried_and_sent_once),
        TEST(parallel_calls_send_one_request_per_recorded_attempt),
    };
    curl_global_init(CURL_GLOBAL_ALL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
