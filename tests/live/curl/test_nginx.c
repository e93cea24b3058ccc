/* test_nginx.c - against a real server: kept connections, its own refusals, its limits, a broken upstream, its death.
 * What it saw is read from its access log, after it has ended. */
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
        live_free(&upstream);
    return 0;
}

/* A server with these locations. */
static void serve(const char *inside)
{
    char text[2048];
    snprintf(text, sizeof text, "server { listen 127.0.0.1:$PORT; %s }", inside);
    live_nginx_start(&nginx, text);
}

/* A server before a chaos server that does as the script says. */
static void serve_upstream(const char *script)
{
    char text[512];
    live_serve(&upstream, script);
    snprintf(text, sizeof text,
             "location / { proxy_pass http://127.0.0.1:%u; proxy_next_upstream off; proxy_read_timeout 1s; }",
             chaos_port(upstream.chaos));
    serve(text);
}

static CURLcode get(const char *path)
{
    return live_client_get(&client, live_process_url(&nginx, "http", path));
}

static CURLcode post(const char *path)
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
    serve("location / { return 200 fine; }");
    for (int i = 0; i < 50; i++) {
        assert_int_equal(i % 2 ? post("/") : get("/"), CURLE_OK);
        live_assert_done(&client, 1);
        assert_string_equal(client.sink.at, "fine");
    }
    assert_int_equal(seen("/ 200"), 50);
    assert_int_equal(live_nginx_connections(&nginx), 1);
}

static void an_error_that_is_read_to_its_end_keeps_the_connection(void **state)
{
    serve("location / { return 503 busy; }");
    assert_int_equal(get("/"), CURLE_OK);
    live_assert_gave_up(&client, BIDE_REASON_ATTEMPTS_SPENT, 3);
    assert_string_equal(client.sink.at, "busy"); /* of the last one, once */
    assert_int_equal(client.result.status, 503);
    assert_int_equal(seen("GET / 503"), 3);
    assert_int_equal(live_nginx_connections(&nginx), 1);
}

static void a_server_that_closes_after_each_answer_costs_no_attempt(void **state)
{
    serve("keepalive_timeout 0; location / { return 200 fine; }");
    for (int i = 0; i < 10; i++) {
        assert_int_equal(post("/"), CURLE_OK);
        live_assert_done(&client, 1);
    }
    assert_int_equal(seen("POST / 200"), 10);
    assert_int_equal(live_nginx_connections(&nginx), 10);
}

static void a_connection_that_had_its_requests_is_replaced_and_costs_no_attempt(void **state)
{
    serve("keepalive_requests 3; location / { return 200 fine; }");
    for (int i = 0; i < 9; i++) {
        assert_int_equal(post("/"), CURLE_OK);
        live_assert_done(&client, 1);
    }
    assert_int_equal(seen("POST / 200"), 9);
    assert_int_equal(live_nginx_connections(&nginx), 3);
}

/* The server's end of an idle connection arrives while nobody looks, and libcurl looks before it sends. */
static void a_connection_closed_while_idle_is_replaced(void **state)
{
    serve("location / { return 200 fine; }");
    assert_int_equal(get("/first"), CURLE_OK);
    live_nginx_end(&nginx);
    live_nginx_again(&nginx);
    assert_int_equal(get("/second"), CURLE_OK);
    assert_int_equal(seen("GET /first 200"), 1);
    assert_int_equal(live_nginx_count(&nginx, "GET /second 200"), 1);
}

/* Some libcurls look only once a second, and count on their own replay. Then bide looks, and it is another attempt. */
static void a_post_on_a_connection_closed_while_idle_is_seen_once(void **state)
{
    serve("location / { return 200 fine; }");
    assert_int_equal(post("/first"), CURLE_OK);
    live_nginx_end(&nginx);
    live_nginx_again(&nginx);
    assert_int_equal(post("/second"), CURLE_OK);
    assert_in_range(client.result.attempts, 1, 2);
    if (client.result.attempts == 2)
        live_assert_attempt(&client, 1, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_NOT_SENT);
    assert_int_equal(seen("POST /second 200"), 1);
}

/* ---- refusals ---- */

static void a_post_without_a_key_is_seen_once(void **state)
{
    serve("location / { return 503 busy; }");
    assert_int_equal(post("/pay"), CURLE_OK);
    live_assert_gave_up(&client, BIDE_REASON_NOT_REPEATABLE, 1);
    assert_string_equal(client.sink.at, "busy");
    assert_int_equal(seen("POST /pay 503"), 1);
}

static void a_post_with_a_key_is_seen_as_often_as_attempts_were_made_with_the_same_key(void **state)
{
    char line[128];
    serve("location / { return 503 busy; }");
    client.options.inject = BIDE_CURL_INJECT_KEY;
    assert_int_equal(post("/pay"), CURLE_OK);
    live_assert_gave_up(&client, BIDE_REASON_ATTEMPTS_SPENT, 3);
    assert_int_not_equal(client.result.key[0], '\0');
    snprintf(line, sizeof line, "POST /pay 503 key=\\x22%s\\x22", client.result.key); /* the log escapes quotes */
    assert_int_equal(seen("POST /pay"), 3);
    assert_int_equal(live_nginx_count(&nginx, line), 3);
}

static void no_retry_comes_before_the_server_wants_it(void **state)
{
    serve("location / { add_header Retry-After 1 always; return 503; }");
    client.policy = live_policy(2);
    int64_t begin_ns = bide_now();
    assert_int_equal(get("/"), CURLE_OK);
    assert_true(bide_now() - begin_ns >= BIDE_S);
    assert_true(client.result.attempt[1].delay_ns >= BIDE_S);
    assert_int_equal(client.result.attempt[0].hint.kind, BIDE_HINT_WAIT);
    assert_int_equal(client.result.attempt[0].hint.wait_ns, BIDE_S);
    assert_int_equal(seen("GET / 503"), 2);
}

static void a_wait_longer_than_the_policy_allows_is_not_begun(void **state)
{
    serve("location / { add_header Retry-After 86400 always; return 429 slower; }");
    assert_int_equal(get("/"), CURLE_OK);
    live_assert_gave_up(&client, BIDE_REASON_HINT_TOO_LONG, 1);
    live_assert_attempt(&client, 1, BIDE_KIND_THROTTLED, BIDE_EVIDENCE_ANSWERED);
    assert_string_equal(client.sink.at, "slower");
    assert_int_equal(seen("GET / 429"), 1);
}

static void what_will_not_change_is_not_asked_again(void **state)
{
    serve("location / { return 404 none; }");
    assert_int_equal(get("/"), CURLE_OK);
    live_assert_gave_up(&client, BIDE_REASON_PERMANENT, 1);
    assert_string_equal(client.sink.at, "none");
    assert_int_equal(seen("GET / 404"), 1);
}

static void a_large_body_that_is_answered_early_is_judged_by_the_answer(void **state)
{
    static char body[1 << 20];
    memset(body, 'x', sizeof body - 1);
    serve("client_max_body_size 1k; location / { return 200 fine; }");
    assert_int_equal(live_client_post(&client, live_process_url(&nginx, "http", "/x"), body), CURLE_OK);
    live_assert_gave_up(&client, BIDE_REASON_PERMANENT, 1);
    assert_int_equal(client.result.status, 413);
}

/* One request a minute is let in: the first, unless the minute is over, which it is not. */
static void a_rate_limit_is_met_with_the_attempts_that_the_policy_allows(void **state)
{
    live_nginx_start(&nginx, "limit_req_zone $server_port zone=z:64k rate=1r/m; limit_req_status 429;\n"
                             "server { listen 127.0.0.1:$PORT; location / { limit_req zone=z; root $DIR; } }");
    live_process_write(&nginx, "page", "fine");
    assert_int_equal(get("/page"), CURLE_OK);
    live_assert_done(&client, 1);
    assert_int_equal(get("/page"), CURLE_OK);
    live_assert_gave_up(&client, BIDE_REASON_ATTEMPTS_SPENT, 3);
    live_assert_attempt(&client, 3, BIDE_KIND_THROTTLED, BIDE_EVIDENCE_ANSWERED);
    assert_int_equal(seen("GET /page 200"), 1);
    assert_int_equal(live_nginx_count(&nginx, "GET /page 429"), 3);
}

/* ---- behind it ---- */

static void a_get_survives_an_upstream_that_cuts(void **state)
{
    serve_upstream("/x reset=request | close=request | 200 body=fine");
    assert_int_equal(get("/x"), CURLE_OK);
    live_assert_done(&client, 3);
    assert_int_equal(client.result.attempt[0].status, 502);
    assert_int_equal(client.result.attempt[1].status, 502);
    assert_string_equal(client.sink.at, "fine");
    live_stop(&upstream);
    assert_int_equal(live_count(&upstream, "/x"), 3);
    assert_int_equal(seen("GET /x"), 3);
}

static void a_post_reaches_an_upstream_that_cuts_only_once(void **state)
{
    serve_upstream("/x reset=request | 200");
    assert_int_equal(post("/x"), CURLE_OK);
    live_assert_gave_up(&client, BIDE_REASON_NOT_REPEATABLE, 1);
    assert_int_equal(client.result.status, 502);
    live_stop(&upstream);
    assert_int_equal(live_count(&upstream, "/x"), 1);
}

static void a_keyed_post_reaches_an_upstream_that_cuts_with_one_key(void **state)
{
    serve_upstream("/x reset=request | 200");
    client.options.inject = BIDE_CURL_INJECT_KEY;
    assert_int_equal(post("/x"), CURLE_OK);
    live_assert_done(&client, 2);
    live_stop(&upstream);
    assert_int_equal(upstream.count, 2);
    assert_string_equal(upstream.seen[0].key, upstream.seen[1].key);
    assert_int_equal(upstream.seen[0].body_hash, upstream.seen[1].body_hash);
}

static void an_upstream_that_is_silent_is_a_504_and_a_get_is_tried_again(void **state)
{
    serve_upstream("/x delay=never | 200 body=fine");
    assert_int_equal(get("/x"), CURLE_OK);
    live_assert_done(&client, 2);
    assert_int_equal(client.result.attempt[0].status, 504);
    assert_string_equal(client.sink.at, "fine");
}

static void an_upstream_that_is_gone_is_a_502(void **state)
{
    serve_upstream("");
    live_free(&upstream);
    assert_int_equal(get("/x"), CURLE_OK);
    live_assert_gave_up(&client, BIDE_REASON_ATTEMPTS_SPENT, 3);
    assert_int_equal(client.result.status, 502);
    assert_int_equal(seen("GET /x 502"), 3);
}

static void half_a_body_through_nginx_is_not_followed_by_another(void **state)
{
    serve_upstream("/x 200 bytes=100000 reset=half | 200 body=fine");
    assert_int_not_equal(get("/x"), CURLE_OK);
    live_assert_gave_up(&client, BIDE_REASON_BODY_DELIVERED, 1);
    assert_true(client.sink.length > 0 && client.sink.length < 100000);
    for (size_t i = 0; i < client.sink.length; i++)
        assert_int_equal(client.sink.at[i], chaos_pattern(i));
    assert_int_equal(seen("GET /x"), 1);
}

/* ---- its death ---- */

static pthread_t killer;

/* Kills nginx when the upstream has the request. */
static void *kill_nginx(void *context)
{
    while (chaos_requests(upstream.chaos) == 0)
        bide_wait_until(bide_now() + BIDE_MS / 10, NULL);
    live_process_end(&nginx, SIGKILL);
    return NULL;
}

/* The first attempt has failed: nginx comes back. */
static void revive_nginx(void *context, const struct bide_event *event)
{
    if (event->verdict->action != BIDE_WAIT)
        return;
    pthread_join(killer, NULL);
    live_nginx_again(&nginx);
}

static void a_get_survives_the_death_of_its_server(void **state)
{
    serve_upstream("/x delay=never | 200 body=fine");
    client.policy = live_policy(2);
    client.options.event = revive_nginx;
    assert_int_equal(pthread_create(&killer, NULL, kill_nginx, NULL), 0);
    assert_int_equal(get("/x"), CURLE_OK);
    live_assert_done(&client, 2);
    live_assert_attempt(&client, 1, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_UNKNOWN);
    assert_string_equal(client.sink.at, "fine");
    live_stop(&upstream);
    assert_int_equal(live_count(&upstream, "/x"), 2);
}

static void on_done(void *context, const struct bide_multi_end *end)
{
    *(size_t *)context += end->code == CURLE_OK && end->verdict.action == BIDE_DONE;
}

static void start(struct bide_multi *multi, struct live_client *c, const char *url, size_t *ok)
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

static void finish(struct bide_multi *multi)
{
    while (bide_multi_poll(multi, BIDE_NEVER) > 0)
        continue;
}

/* The connection is a reused one and the server is back before libcurl looks: alone, it would send the POST again. */
static void a_post_in_flight_when_its_server_dies_is_not_repeated(void **state)
{
    struct bide_multi *multi;
    size_t ok = 0;
    serve_upstream("/warm 200\n/x delay=never | 200");
    assert_int_equal(bide_multi_new(&multi), BIDE_OK);
    start(multi, &client, live_process_url(&nginx, "http", "/warm"), &ok);
    finish(multi);
    curl_easy_setopt(client.easy, CURLOPT_POSTFIELDS, "charge=1");
    client.options.body.kind = BIDE_CURL_BODY_REPEATABLE;
    start(multi, &client, live_process_url(&nginx, "http", "/x"), &ok);
    while (chaos_requests(upstream.chaos) < 2)
        bide_multi_poll(multi, bide_now() + BIDE_MS);
    live_process_end(&nginx, SIGKILL);
    live_nginx_again(&nginx);
    finish(multi);
    assert_int_equal(ok, 1); /* only the first */
    live_assert_gave_up(&client, BIDE_REASON_NOT_REPEATABLE, 1);
    live_assert_attempt(&client, 1, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_UNKNOWN);
    assert_true(client.result.attempt[0].replay_stopped);
    bide_multi_free(multi);
    live_stop(&upstream);
    assert_int_equal(live_count(&upstream, "/x"), 1);
}

static void a_post_to_a_server_that_is_down_waits_for_it_and_is_seen_once(void **state)
{
    serve("location / { return 200 fine; }");
    live_process_end(&nginx, SIGKILL);
    client.policy = live_policy(2);
    assert_int_equal(post("/x"), CURLE_COULDNT_CONNECT);
    live_assert_gave_up(&client, BIDE_REASON_ATTEMPTS_SPENT, 2);
    live_assert_attempt(&client, 2, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_NOT_SENT);
    live_nginx_again(&nginx);
    assert_int_equal(post("/x"), CURLE_OK);
    live_assert_done(&client, 1);
    assert_int_equal(seen("POST /x 200"), 1);
}

/* ---- many at once ---- */

#define CALLS 64

static void many_calls_at_once_are_each_seen_as_often_as_their_results_say(void **state)
{
    static struct live_client calls[CALLS];
    struct bide_multi *multi;
    size_t attempts = 0, ok = 0;
    serve_upstream("/x 200 fail=30%:503");
    assert_int_equal(bide_multi_new(&multi), BIDE_OK);
    curl_multi_setopt(bide_multi_handle(multi), CURLMOPT_MAX_TOTAL_CONNECTIONS, 8L);
    for (size_t i = 0; i < CALLS; i++) {
        live_client_init(&calls[i], 50);
        start(multi, &calls[i], live_process_url(&nginx, "http", "/x"), &ok);
    }
    finish(multi);
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
        TEST(an_error_that_is_read_to_its_end_keeps_the_connection),
        TEST(a_server_that_closes_after_each_answer_costs_no_attempt),
        TEST(a_connection_that_had_its_requests_is_replaced_and_costs_no_attempt),
        TEST(a_connection_closed_while_idle_is_replaced),
        TEST(a_post_on_a_connection_closed_while_idle_is_seen_once),
        TEST(a_post_without_a_key_is_seen_once),
        TEST(a_post_with_a_key_is_seen_as_often_as_attempts_were_made_with_the_same_key),
        TEST(no_retry_comes_before_the_server_wants_it),
        TEST(a_wait_longer_than_the_policy_allows_is_not_begun),
        TEST(what_will_not_change_is_not_asked_again),
        TEST(a_large_body_that_is_answered_early_is_judged_by_the_answer),
        TEST(a_rate_limit_is_met_with_the_attempts_that_the_policy_allows),
        TEST(a_get_survives_an_upstream_that_cuts),
        TEST(a_post_reaches_an_upstream_that_cuts_only_once),
        TEST(a_keyed_post_reaches_an_upstream_that_cuts_with_one_key),
        TEST(an_upstream_that_is_silent_is_a_504_and_a_get_is_tried_again),
        TEST(an_upstream_that_is_gone_is_a_502),
        TEST(half_a_body_through_nginx_is_not_followed_by_another),
        TEST(a_get_survives_the_death_of_its_server),
        TEST(a_post_in_flight_when_its_server_dies_is_not_repeated),
        TEST(a_post_to_a_server_that_is_down_waits_for_it_and_is_seen_once),
        TEST(many_calls_at_once_are_each_seen_as_often_as_their_results_say),
    };
    curl_global_init(CURL_GLOBAL_ALL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
