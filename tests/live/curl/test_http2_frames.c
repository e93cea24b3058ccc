/* test_http2_frames.c - HTTP/2 frames that only a hand-written server sends: refused streams, GOAWAY, reset streams,
 * and connections that die with requests in flight.
 *
 * RFC 9113 section 8.7: a request on a refused stream, or above the last stream of a GOAWAY, was not processed and may
 * be sent again whatever its method. libcurl does so by itself, but also in cases where the request may have run, and
 * does not expose which case it is. So bide repeats only requests that are safe, idempotent or keyed. */
#include "live_client.h"
#include "live_h2.h"
#include "seed.h"

#include <bide/clock.h>
#include <bide/multi.h>

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define ACTIONS(...)                                                                                                   \
    (const enum live_h2_action[]){__VA_ARGS__}, sizeof(enum live_h2_action[]){__VA_ARGS__} / sizeof(int)

static struct live_client client;
static struct live_h2 *server;

static int open_all(void **state)
{
    live_client_init(&client, 3);
    curl_easy_setopt(client.easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE);
    return 0;
}

static int close_all(void **state)
{
    live_client_free(&client);
    live_h2_free(server);
    server = NULL;
    return 0;
}

static void serve(const enum live_h2_action *actions, size_t count)
{
    server = live_h2_new(actions, count);
}

static CURLcode perform_get(void)
{
    return live_client_get(&client, live_h2_url(server));
}

static CURLcode perform_post(void)
{
    return live_client_post(&client, live_h2_url(server), "charge=1");
}

/* Makes a connection that later calls reuse. It upgrades from HTTP/1.1, because libcurl before 8.0 cannot reuse a
 * connection made with prior knowledge. Consumes the first action, which must be LIVE_H2_OK. */
static void make_connection(void)
{
    curl_easy_setopt(client.easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_2_0);
    assert_int_equal(perform_get(), CURLE_OK);
    live_assert_done(&client, 1);
}

static void assert_requests(size_t count)
{
    assert_int_equal(live_h2_requests(server), count);
}

static void assert_connection(size_t request, unsigned connection)
{
    assert_int_equal(live_h2_seen(server, request).connection, connection);
}

/* ---- bare libcurl ---- */

static CURLcode bare_libcurl_post(void)
{
    CURL *easy = curl_easy_init();
    struct live_sink sink = {0};
    curl_easy_setopt(easy, CURLOPT_URL, live_h2_url(server));
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, "charge=1");
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, live_sink_write);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &sink);
    CURLcode code = curl_easy_perform(easy);
    curl_easy_cleanup(easy);
    live_sink_free(&sink);
    return code;
}

static void bare_libcurl_silently_repeats_a_refused_post(void **state)
{
    serve(ACTIONS(LIVE_H2_REFUSE, LIVE_H2_OK));
    assert_int_equal(bare_libcurl_post(), CURLE_OK);
    assert_requests(2);
}

/* ---- responses ---- */

static void a_response_succeeds_on_a_reused_connection(void **state)
{
    serve(ACTIONS(LIVE_H2_OK));
    make_connection();
    for (size_t i = 2; i <= 5; i++) {
        assert_int_equal(perform_post(), CURLE_OK);
        live_assert_done(&client, 1);
        assert_string_equal(client.sink.at, "ok\n");
        assert_connection(i, 1);
        assert_int_equal(live_h2_seen(server, i).body_bytes, strlen("charge=1"));
    }
    assert_requests(5);
}

static void a_get_is_retried_on_the_same_connection_after_503(void **state)
{
    serve(ACTIONS(LIVE_H2_OK, LIVE_H2_503, LIVE_H2_503, LIVE_H2_OK));
    make_connection();
    assert_int_equal(perform_get(), CURLE_OK);
    live_assert_done(&client, 3);
    assert_int_equal(client.result.attempt[0].status, 503);
    assert_string_equal(client.sink.at, "ok\n");
    assert_requests(4);
    assert_connection(4, 1);
}

static void a_transfer_cut_after_its_head_leaves_the_connection_usable(void **state)
{
    live_client_without_sink(&client);
    serve(ACTIONS(LIVE_H2_OK, LIVE_H2_503, LIVE_H2_503, LIVE_H2_OK));
    make_connection();
    assert_int_equal(perform_get(), CURLE_OK);
    live_assert_done(&client, 3);
    assert_string_equal(client.sink.at, "ok\n");
    assert_requests(4);
    assert_connection(4, 1);
}

static void a_post_is_not_repeated_after_503(void **state)
{
    serve(ACTIONS(LIVE_H2_503, LIVE_H2_OK));
    assert_int_equal(perform_post(), CURLE_OK);
    live_assert_gave_up(&client, BIDE_REASON_NOT_REPEATABLE, 1);
    assert_string_equal(client.sink.at, "busy\n");
    assert_requests(1);
}

/* ---- not processed ---- */

/* libcurl does not expose that the stream was refused: a stopped replay proves nothing. */
static void a_refused_post_is_not_repeated(void **state)
{
    serve(ACTIONS(LIVE_H2_REFUSE, LIVE_H2_OK));
    assert_int_equal(perform_post(), CURLE_GOT_NOTHING);
    live_assert_gave_up(&client, BIDE_REASON_NOT_REPEATABLE, 1);
    live_assert_attempt(&client, 1, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_UNKNOWN);
    assert_true(client.result.attempt[0].replay_stopped);
    assert_int_equal(client.result.attempt[0].status, 0);
    assert_requests(1);
}

static void a_refused_get_is_retried_by_bide(void **state)
{
    serve(ACTIONS(LIVE_H2_REFUSE, LIVE_H2_REFUSE, LIVE_H2_OK));
    assert_int_equal(perform_get(), CURLE_OK);
    live_assert_done(&client, 3);
    assert_true(client.result.attempt[0].replay_stopped && client.result.attempt[1].replay_stopped);
    assert_string_equal(client.sink.at, "ok\n");
    assert_requests(3);
}

static void a_get_that_is_always_refused_is_sent_once_per_attempt(void **state)
{
    serve(ACTIONS(LIVE_H2_REFUSE));
    assert_int_not_equal(perform_get(), CURLE_OK);
    live_assert_gave_up(&client, BIDE_REASON_ATTEMPTS_SPENT, 3);
    assert_requests(3);
}

static void a_post_above_goaway_is_not_repeated(void **state)
{
    serve(ACTIONS(LIVE_H2_GOAWAY, LIVE_H2_OK));
    assert_int_not_equal(perform_post(), CURLE_OK);
    live_assert_gave_up(&client, BIDE_REASON_NOT_REPEATABLE, 1);
    live_assert_attempt(&client, 1, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_UNKNOWN);
    assert_requests(1);
}

static void a_get_above_goaway_is_retried_by_bide(void **state)
{
    serve(ACTIONS(LIVE_H2_GOAWAY, LIVE_H2_OK));
    assert_int_equal(perform_get(), CURLE_OK);
    live_assert_done(&client, 2);
    assert_requests(2);
}

/* libcurl keeps the refusal of a stream on a reused connection as a flag of the handle, and replays the next request
 * whose stream is reset, although the server has read all of that one. The refused GET sets the flag. */
static void a_post_reset_after_an_earlier_refusal_runs_once(void **state)
{
    serve(ACTIONS(LIVE_H2_OK, LIVE_H2_REFUSE, LIVE_H2_CLOSE, LIVE_H2_OK));
    make_connection();
    client.policy = live_policy(1);
    assert_int_not_equal(perform_get(), CURLE_OK);
    client.policy = live_policy(3);
    assert_int_not_equal(perform_post(), CURLE_OK); /* read in full, then the connection closes */
    live_assert_gave_up(&client, BIDE_REASON_NOT_REPEATABLE, 1);
    live_assert_attempt(&client, 1, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_UNKNOWN);
    assert_requests(3);
    assert_int_equal(live_h2_seen(server, 3).body_bytes, strlen("charge=1"));
    assert_int_equal(perform_post(), CURLE_OK);
    assert_requests(4);
}

static void a_post_refused_on_a_reused_connection_is_not_repeated_but_a_get_is(void **state)
{
    serve(ACTIONS(LIVE_H2_OK, LIVE_H2_REFUSE, LIVE_H2_OK, LIVE_H2_REFUSE, LIVE_H2_OK));
    make_connection();
    assert_int_not_equal(perform_post(), CURLE_OK);
    live_assert_gave_up(&client, BIDE_REASON_NOT_REPEATABLE, 1);
    live_assert_attempt(&client, 1, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_UNKNOWN);
    assert_requests(2);
    assert_int_equal(perform_get(), CURLE_OK);
    assert_int_equal(perform_get(), CURLE_OK);
    live_assert_done(&client, 2);
    assert_requests(5);
}

/* ---- may have run ---- */

static void assert_unsafe_not_repeated(enum live_h2_action action)
{
    const enum live_h2_action actions[] = {action, LIVE_H2_OK, action, LIVE_H2_OK};
    serve(actions, 4);
    assert_int_not_equal(perform_post(), CURLE_OK); /* on a new connection */
    live_assert_gave_up(&client, BIDE_REASON_NOT_REPEATABLE, 1);
    live_assert_attempt(&client, 1, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_UNKNOWN);
    assert_requests(1);
    live_client_free(&client);
    live_client_init(&client, 3);
    make_connection();
    assert_int_equal(perform_get(), CURLE_OK); /* on a reused connection */
    live_assert_done(&client, 2);
    live_assert_attempt(&client, 1, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_UNKNOWN);
    assert_requests(4);
}

static void a_post_with_an_internal_error_is_not_repeated_but_a_get_is(void **state)
{
    assert_unsafe_not_repeated(LIVE_H2_INTERNAL_ERROR);
}

static void a_post_with_a_cancelled_stream_is_not_repeated_but_a_get_is(void **state)
{
    assert_unsafe_not_repeated(LIVE_H2_CANCEL);
}

static void a_post_on_a_closed_connection_is_not_repeated_but_a_get_is(void **state)
{
    assert_unsafe_not_repeated(LIVE_H2_CLOSE);
}

static void a_post_within_goaway_is_not_repeated_but_a_get_is(void **state)
{
    assert_unsafe_not_repeated(LIVE_H2_GOAWAY_AND_CLOSE);
}

static void a_post_is_sent_once_when_its_reused_connection_dies(void **state)
{
    serve(ACTIONS(LIVE_H2_OK, LIVE_H2_CLOSE, LIVE_H2_OK));
    make_connection();
    assert_int_not_equal(perform_post(), CURLE_OK);
    live_assert_gave_up(&client, BIDE_REASON_NOT_REPEATABLE, 1);
    live_assert_attempt(&client, 1, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_UNKNOWN);
    assert_requests(2);
    assert_connection(2, 1);
}

static void a_keyed_post_is_retried_after_every_failure(void **state)
{
    serve(ACTIONS(LIVE_H2_OK, LIVE_H2_INTERNAL_ERROR, LIVE_H2_CLOSE, LIVE_H2_OK));
    make_connection();
    client.options.inject = BIDE_CURL_INJECT_KEY;
    assert_int_equal(perform_post(), CURLE_OK);
    live_assert_done(&client, 3);
    assert_requests(4);
}

static void a_partial_body_is_never_followed_by_another(void **state)
{
    serve(ACTIONS(LIVE_H2_OK, LIVE_H2_HALF, LIVE_H2_OK));
    make_connection();
    assert_int_not_equal(perform_get(), CURLE_OK);
    live_assert_gave_up(&client, BIDE_REASON_BODY_DELIVERED, 1);
    assert_string_equal(client.sink.at, "half\n");
    assert_requests(2);
}

static void a_partial_body_is_rewound_if_the_sink_supports_it(void **state)
{
    serve(ACTIONS(LIVE_H2_OK, LIVE_H2_HALF, LIVE_H2_OK));
    make_connection();
    client.options.rewind = live_sink_rewind;
    assert_int_equal(perform_get(), CURLE_OK);
    live_assert_done(&client, 2);
    assert_string_equal(client.sink.at, "ok\n");
    assert_int_equal(client.sink.rewinds, 1);
    assert_requests(3);
}

/* ---- HTTP_1_1_REQUIRED ---- */

static void bare_libcurl_falls_back_to_http_1_when_required(void **state)
{
    serve(ACTIONS(LIVE_H2_HTTP_1_1_REQUIRED, LIVE_H2_OK));
    assert_int_equal(bare_libcurl_post(), CURLE_OK);
    assert_requests(2);
    assert_int_equal(live_h2_seen(server, 2).stream, 0);
}

static void a_post_to_a_server_that_requires_http_1_is_not_repeated(void **state)
{
    serve(ACTIONS(LIVE_H2_HTTP_1_1_REQUIRED, LIVE_H2_OK));
    assert_int_not_equal(perform_post(), CURLE_OK);
    live_assert_gave_up(&client, BIDE_REASON_NOT_REPEATABLE, 1);
    assert_requests(1);
}

/* ---- parallel calls ---- */

static size_t done_count;

static void on_done(void *context, const struct bide_multi_end *end)
{
    done_count++;
}

static void start(struct bide_multi *multi, struct live_client *c)
{
    curl_easy_setopt(c->easy, CURLOPT_URL, live_h2_url(server));
    curl_easy_setopt(c->easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_2_0); /* see make_connection */
    struct bide_multi_job job = {
        .easy = c->easy, .target = &c->target, .options = &c->options, .result = &c->result, .done = on_done};
    assert_int_equal(bide_multi_start(multi, &job, NULL, NULL), BIDE_OK);
}

static void start_post(struct bide_multi *multi, struct live_client *c)
{
    curl_easy_setopt(c->easy, CURLOPT_POSTFIELDS, "charge=1");
    c->options.body.kind = BIDE_CURL_BODY_REPEATABLE;
    start(multi, c);
}

static void poll_until_seen(struct bide_multi *multi, size_t requests)
{
    while (live_h2_requests(server) < requests)
        bide_multi_poll(multi, bide_now() + BIDE_MS);
}

/* Returns a multi with a connection that has carried a request. */
static struct bide_multi *multi_with_connection(void)
{
    struct bide_multi *multi;
    assert_int_equal(bide_multi_new(&multi), BIDE_OK);
    start(multi, &client);
    while (bide_multi_poll(multi, BIDE_NEVER) > 0)
        continue;
    live_assert_done(&client, 1);
    done_count = 0;
    return multi;
}

static void posts_on_a_shared_connection_that_dies_are_sent_once_each(void **state)
{
    struct live_client other;
    live_client_init(&other, 3);
    serve(ACTIONS(LIVE_H2_OK, LIVE_H2_SILENCE, LIVE_H2_CLOSE, LIVE_H2_OK));
    struct bide_multi *multi = multi_with_connection();
    start_post(multi, &client);
    poll_until_seen(multi, 2);
    start_post(multi, &other);
    while (bide_multi_poll(multi, BIDE_NEVER) > 0)
        continue;
    assert_int_equal(done_count, 2);
    assert_connection(2, 1);
    assert_connection(3, 1);
    assert_requests(3);
    live_assert_gave_up(&client, BIDE_REASON_NOT_REPEATABLE, 1);
    live_assert_gave_up(&other, BIDE_REASON_NOT_REPEATABLE, 1);
    bide_multi_free(multi);
    live_client_free(&other);
}

static void run_all(struct bide_multi *multi)
{
    while (bide_multi_poll(multi, BIDE_NEVER) > 0)
        continue;
}

/* In a multi, on a reused and on a new connection: each way in which libcurl replays by itself. */
static void a_post_in_a_multi_is_sent_once(void **state)
{
    static const enum live_h2_action ways[] = {LIVE_H2_REFUSE, LIVE_H2_GOAWAY, LIVE_H2_GOAWAY_AND_CLOSE,
                                               LIVE_H2_HTTP_1_1_REQUIRED, LIVE_H2_CLOSE};
    for (size_t i = 0; i < 2 * sizeof ways / sizeof *ways; i++) {
        enum live_h2_action way = ways[i / 2];
        bool reused = i % 2 == 1;
        struct bide_multi *multi;
        if (reused) {
            serve(ACTIONS(LIVE_H2_OK, way, LIVE_H2_OK));
            multi = multi_with_connection();
        } else {
            serve(ACTIONS(way, LIVE_H2_OK));
            assert_int_equal(bide_multi_new(&multi), BIDE_OK);
        }
        start_post(multi, &client);
        run_all(multi);
        live_assert_gave_up(&client, BIDE_REASON_NOT_REPEATABLE, 1);
        assert_requests(reused ? 2 : 1);
        bide_multi_free(multi);
        live_h2_free(server);
        live_client_free(&client);
        live_client_init(&client, 3);
    }
    server = NULL;
}

static void a_refused_stream_does_not_affect_other_streams(void **state)
{
    struct live_client other;
    live_client_init(&other, 3);
    serve(ACTIONS(LIVE_H2_OK, LIVE_H2_SILENCE, LIVE_H2_REFUSE, LIVE_H2_OK));
    struct bide_multi *multi = multi_with_connection();
    start_post(multi, &client);
    poll_until_seen(multi, 2);
    start(multi, &other);
    while (done_count == 0)
        bide_multi_poll(multi, BIDE_NEVER);
    live_assert_done(&other, 2);
    assert_int_equal(bide_multi_running_get(multi), 1);
    bide_multi_free(multi);
    assert_int_equal(done_count, 2);
    live_assert_gave_up(&client, BIDE_REASON_CANCELLED, 1); /* it was still waiting for its response */
    assert_requests(4);
    live_client_free(&other);
}

/* ---- everything at once ---- */

#define ROUNDS 10
#define POSTS  100

/* A POST that gets no response fails, and was sent once. */
static void send_posts_to_a_faulty_server(uint64_t seed)
{
    for (uint64_t round = 0; round < ROUNDS; round++) {
        enum live_h2_action actions[POSTS + 1] = {LIVE_H2_OK};
        for (size_t i = 1; i <= POSTS; i++) {
            uint64_t key[] = {seed, round, i};
            uint64_t draw = bide_hash(key, sizeof key) % (2 * LIVE_H2_SILENCE);
            actions[i] = draw < LIVE_H2_SILENCE ? (enum live_h2_action)draw : LIVE_H2_OK; /* half of them succeed */
        }
        live_client_init(&client, 3);
        serve(actions, POSTS + 1);
        make_connection();
        for (size_t i = 1; i <= POSTS; i++) {
            bool succeeds = actions[i] == LIVE_H2_OK;
            assert_int_equal(perform_post() == CURLE_OK, succeeds || actions[i] == LIVE_H2_503);
            assert_int_equal(client.result.attempts, 1);
            assert_requests(i + 1);
        }
        live_client_free(&client);
        live_h2_free(server);
    }
}

static void a_thousand_posts_to_a_faulty_server_are_sent_once_each(void **state)
{
    close_all(state);
    seed_each(1, send_posts_to_a_faulty_server);
    server = NULL;
    open_all(state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(bare_libcurl_silently_repeats_a_refused_post),
        TEST(a_response_succeeds_on_a_reused_connection),
        TEST(a_get_is_retried_on_the_same_connection_after_503),
        TEST(a_transfer_cut_after_its_head_leaves_the_connection_usable),
        TEST(a_post_is_not_repeated_after_503),
        TEST(a_refused_post_is_not_repeated),
        TEST(a_refused_get_is_retried_by_bide),
        TEST(a_get_that_is_always_refused_is_sent_once_per_attempt),
        TEST(a_post_above_goaway_is_not_repeated),
        TEST(a_post_reset_after_an_earlier_refusal_runs_once),
        TEST(a_get_above_goaway_is_retried_by_bide),
        TEST(a_post_refused_on_a_reused_connection_is_not_repeated_but_a_get_is),
        TEST(a_post_with_an_internal_error_is_not_repeated_but_a_get_is),
        TEST(a_post_with_a_cancelled_stream_is_not_repeated_but_a_get_is),
        TEST(a_post_on_a_closed_connection_is_not_repeated_but_a_get_is),
        TEST(a_post_within_goaway_is_not_repeated_but_a_get_is),
        TEST(a_post_is_sent_once_when_its_reused_connection_dies),
        TEST(a_keyed_post_is_retried_after_every_failure),
        TEST(a_partial_body_is_never_followed_by_another),
        TEST(a_partial_body_is_rewound_if_the_sink_supports_it),
        TEST(bare_libcurl_falls_back_to_http_1_when_required),
        TEST(a_post_to_a_server_that_requires_http_1_is_not_repeated),
        TEST(posts_on_a_shared_connection_that_dies_are_sent_once_each),
        TEST(a_post_in_a_multi_is_sent_once),
        TEST(a_refused_stream_does_not_affect_other_streams),
        TEST(a_thousand_posts_to_a_faulty_server_are_sent_once_each),
    };
    curl_global_init(CURL_GLOBAL_ALL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
