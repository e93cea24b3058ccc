/* test_http2_frames.c - what only a server that writes its frames by hand can say: refused streams, GOAWAY, reset streams,
 * and connections that die with requests in flight.
 *
 * RFC 9113 section 8.7: a request on a stream that was refused, or above the last one that GOAWAY names, was not
 * processed and may be sent again whatever it is. libcurl does so by itself. Anything else may have run. */
#include "live_client.h"
#include "live_h2.h"

#include <bide/clock.h>
#include <bide/multi.h>

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define DEEDS(...) (const enum live_h2_deed[]){__VA_ARGS__}, sizeof(enum live_h2_deed[]){__VA_ARGS__} / sizeof(int)

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

static void serve(const enum live_h2_deed *deeds, size_t count)
{
    server = live_h2_new(deeds, count);
}

static CURLcode get(void)
{
    return live_client_get(&client, live_h2_url(server));
}

static CURLcode post(void)
{
    return live_client_post(&client, live_h2_url(server), "charge=1");
}

/* Makes a connection that later calls reuse. By upgrade from HTTP/1.1, because libcurl before 8.0 cannot reuse one that
 * it made with prior knowledge. Takes the first deed, which is to be OK. */
static void warm_up(void)
{
    curl_easy_setopt(client.easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_2_0);
    assert_int_equal(get(), CURLE_OK);
    live_assert_done(&client, 1);
}

static void assert_seen(size_t count)
{
    assert_int_equal(live_h2_requests(server), count);
}

static void assert_connection(size_t request, unsigned connection)
{
    assert_int_equal(live_h2_seen(server, request).connection, connection);
}

/* ---- what libcurl does alone ---- */

static CURLcode bare_post(void)
{
    CURL *easy = curl_easy_init();
    struct live_sink sink = {0};
    curl_easy_setopt(easy, CURLOPT_URL, live_h2_url(server));
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, "charge=1");
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, live_write);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &sink);
    CURLcode code = curl_easy_perform(easy);
    curl_easy_cleanup(easy);
    live_sink_free(&sink);
    return code;
}

static void libcurl_alone_repeats_a_refused_post_and_tells_nobody(void **state)
{
    serve(DEEDS(LIVE_H2_REFUSE, LIVE_H2_OK));
    assert_int_equal(bare_post(), CURLE_OK);
    assert_seen(2);
}

/* ---- answers ---- */

static void an_answer_is_an_answer(void **state)
{
    serve(DEEDS(LIVE_H2_OK));
    warm_up();
    for (size_t i = 2; i <= 5; i++) {
        assert_int_equal(post(), CURLE_OK);
        live_assert_done(&client, 1);
        assert_string_equal(client.sink.at, "ok\n");
        assert_connection(i, 1);
        assert_int_equal(live_h2_seen(server, i).body_bytes, strlen("charge=1"));
    }
    assert_seen(5);
}

static void a_get_is_tried_again_on_the_same_connection_after_503(void **state)
{
    serve(DEEDS(LIVE_H2_OK, LIVE_H2_503, LIVE_H2_503, LIVE_H2_OK));
    warm_up();
    assert_int_equal(get(), CURLE_OK);
    live_assert_done(&client, 3);
    assert_int_equal(client.result.attempt[0].status, 503);
    assert_string_equal(client.sink.at, "ok\n");
    assert_seen(4);
    assert_connection(4, 1);
}

static void an_attempt_cut_at_the_end_of_its_head_leaves_the_connection_usable(void **state)
{
    live_client_bare_sink(&client);
    serve(DEEDS(LIVE_H2_OK, LIVE_H2_503, LIVE_H2_503, LIVE_H2_OK));
    warm_up();
    assert_int_equal(get(), CURLE_OK);
    live_assert_done(&client, 3);
    assert_string_equal(client.sink.at, "ok\n");
    assert_seen(4);
    assert_connection(4, 1);
}

static void a_post_answered_503_is_not_repeated(void **state)
{
    serve(DEEDS(LIVE_H2_503, LIVE_H2_OK));
    assert_int_equal(post(), CURLE_OK);
    live_assert_gave_up(&client, BIDE_REASON_NOT_REPEATABLE, 1);
    assert_string_equal(client.sink.at, "busy\n");
    assert_seen(1);
}

/* ---- not processed ---- */

static void assert_refused(uint32_t n)
{
    live_assert_attempt(&client, n, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_REJECTED);
    assert_true(client.result.attempt[n - 1].replay_stopped);
    assert_int_equal(client.result.attempt[n - 1].status, 0);
}

static void a_refused_post_is_repeated_by_us_and_told(void **state)
{
    serve(DEEDS(LIVE_H2_REFUSE, LIVE_H2_REFUSE, LIVE_H2_OK));
    assert_int_equal(post(), CURLE_OK);
    live_assert_done(&client, 3);
    assert_refused(1);
    assert_refused(2);
    assert_string_equal(client.sink.at, "ok\n");
    assert_seen(3);
}

static void a_post_that_is_always_refused_is_seen_as_often_as_attempts_were_made(void **state)
{
    serve(DEEDS(LIVE_H2_REFUSE));
    assert_int_not_equal(post(), CURLE_OK);
    live_assert_gave_up(&client, BIDE_REASON_ATTEMPTS_SPENT, 3);
    assert_refused(3);
    assert_seen(3);
}

static void one_attempt_is_one_request_even_if_it_is_refused(void **state)
{
    client.policy = live_policy(1);
    serve(DEEDS(LIVE_H2_REFUSE, LIVE_H2_OK));
    assert_int_not_equal(get(), CURLE_OK);
    live_assert_gave_up(&client, BIDE_REASON_ATTEMPTS_SPENT, 1);
    assert_seen(1);
}

static void a_refused_post_whose_body_is_not_known_to_be_repeatable_is_not_repeated(void **state)
{
    serve(DEEDS(LIVE_H2_REFUSE, LIVE_H2_OK));
    curl_easy_setopt(client.easy, CURLOPT_URL, live_h2_url(server));
    curl_easy_setopt(client.easy, CURLOPT_POSTFIELDS, "charge=1");
    assert_int_not_equal(bide_curl_perform(client.easy, &client.target, &client.options, &client.result), CURLE_OK);
    live_assert_gave_up(&client, BIDE_REASON_BODY_SPENT, 1);
    assert_seen(1);
}

/* libcurl before 8.0 takes GOAWAY for a broken connection, later ones for a refusal: then it may be repeated. */
static void a_post_above_goaway_is_seen_as_often_as_we_say(void **state)
{
    serve(DEEDS(LIVE_H2_GOAWAY, LIVE_H2_OK));
    CURLcode code = post();
    assert_seen(client.result.attempts);
    if (client.result.attempt[0].evidence == BIDE_EVIDENCE_REJECTED) {
        live_assert_done(&client, 2);
        assert_refused(1);
    } else {
        assert_int_not_equal(code, CURLE_OK);
        live_assert_gave_up(&client, BIDE_REASON_NOT_REPEATABLE, 1);
        live_assert_attempt(&client, 1, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_UNKNOWN);
    }
}

static void a_get_above_goaway_is_repeated_by_us(void **state)
{
    serve(DEEDS(LIVE_H2_GOAWAY, LIVE_H2_OK));
    assert_int_equal(get(), CURLE_OK);
    live_assert_done(&client, 2);
    assert_seen(2);
}

/* Which of libcurl's reasons it was cannot be told on a connection that was there before: careful. */
static void a_post_refused_on_a_reused_connection_is_not_repeated_and_a_get_is(void **state)
{
    serve(DEEDS(LIVE_H2_OK, LIVE_H2_REFUSE, LIVE_H2_OK, LIVE_H2_REFUSE, LIVE_H2_OK));
    warm_up();
    assert_int_not_equal(post(), CURLE_OK);
    live_assert_gave_up(&client, BIDE_REASON_NOT_REPEATABLE, 1);
    live_assert_attempt(&client, 1, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_UNKNOWN);
    assert_seen(2);
    assert_int_equal(get(), CURLE_OK);
    assert_int_equal(get(), CURLE_OK);
    live_assert_done(&client, 2);
    assert_seen(5);
}

/* ---- may have run ---- */

static void assert_may_have_run(enum live_h2_deed deed)
{
    const enum live_h2_deed deeds[] = {deed, LIVE_H2_OK, deed, LIVE_H2_OK};
    serve(deeds, 4);
    assert_int_not_equal(post(), CURLE_OK); /* on a new connection */
    live_assert_gave_up(&client, BIDE_REASON_NOT_REPEATABLE, 1);
    live_assert_attempt(&client, 1, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_UNKNOWN);
    assert_seen(1);
    live_client_free(&client);
    live_client_init(&client, 3);
    warm_up();
    assert_int_equal(get(), CURLE_OK); /* on a reused one */
    live_assert_done(&client, 2);
    live_assert_attempt(&client, 1, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_UNKNOWN);
    assert_seen(4);
}

static void a_post_whose_stream_broke_is_not_repeated_and_a_get_is(void **state)
{
    assert_may_have_run(LIVE_H2_INTERNAL_ERROR);
}

static void a_post_whose_stream_was_cancelled_is_not_repeated_and_a_get_is(void **state)
{
    assert_may_have_run(LIVE_H2_CANCEL);
}

static void a_post_whose_connection_died_is_not_repeated_and_a_get_is(void **state)
{
    assert_may_have_run(LIVE_H2_CLOSE);
}

static void a_post_is_seen_once_when_a_reused_connection_dies_with_it(void **state)
{
    serve(DEEDS(LIVE_H2_OK, LIVE_H2_CLOSE, LIVE_H2_OK));
    warm_up();
    assert_int_not_equal(post(), CURLE_OK);
    live_assert_gave_up(&client, BIDE_REASON_NOT_REPEATABLE, 1);
    live_assert_attempt(&client, 1, BIDE_KIND_TRANSIENT, BIDE_EVIDENCE_UNKNOWN);
    assert_seen(2);
    assert_connection(2, 1);
}

static void a_keyed_post_is_repeated_whatever_broke(void **state)
{
    serve(DEEDS(LIVE_H2_OK, LIVE_H2_INTERNAL_ERROR, LIVE_H2_CLOSE, LIVE_H2_OK));
    warm_up();
    client.options.inject = BIDE_CURL_INJECT_KEY;
    assert_int_equal(post(), CURLE_OK);
    live_assert_done(&client, 3);
    assert_seen(4);
}

static void half_a_body_is_never_followed_by_another(void **state)
{
    serve(DEEDS(LIVE_H2_OK, LIVE_H2_HALF, LIVE_H2_OK));
    warm_up();
    assert_int_not_equal(get(), CURLE_OK);
    live_assert_gave_up(&client, BIDE_REASON_BODY_DELIVERED, 1);
    assert_string_equal(client.sink.at, "half\n");
    assert_seen(2);
}

static void half_a_body_is_taken_back_where_the_sink_can(void **state)
{
    serve(DEEDS(LIVE_H2_OK, LIVE_H2_HALF, LIVE_H2_OK));
    warm_up();
    client.options.rewind = live_rewind;
    assert_int_equal(get(), CURLE_OK);
    live_assert_done(&client, 2);
    assert_string_equal(client.sink.at, "ok\n");
    assert_int_equal(client.sink.rewinds, 1);
    assert_seen(3);
}

/* ---- HTTP_1_1_REQUIRED ---- */

static void libcurl_alone_goes_back_to_http_1_where_that_is_required(void **state)
{
    serve(DEEDS(LIVE_H2_HTTP_1_1_REQUIRED, LIVE_H2_OK));
    assert_int_equal(bare_post(), CURLE_OK);
    assert_seen(2);
    assert_int_equal(live_h2_seen(server, 2).stream, 0);
}

static void a_server_that_requires_http_1_is_not_asked_more_often_than_we_say(void **state)
{
    serve(DEEDS(LIVE_H2_HTTP_1_1_REQUIRED));
    (void)post();
    assert_seen(client.result.attempts);
}

/* ---- several at once ---- */

static size_t done_count;

static void on_done(void *context, const struct bide_multi_end *end)
{
    done_count++;
}

static void start(struct bide_multi *multi, struct live_client *c)
{
    curl_easy_setopt(c->easy, CURLOPT_URL, live_h2_url(server));
    curl_easy_setopt(c->easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_2_0); /* see warm_up */
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

/* A multi with one connection, over which one request went. */
static struct bide_multi *warm_multi(void)
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

static void posts_on_a_shared_connection_that_dies_are_seen_once_each(void **state)
{
    struct live_client other;
    live_client_init(&other, 3);
    serve(DEEDS(LIVE_H2_OK, LIVE_H2_SILENCE, LIVE_H2_CLOSE, LIVE_H2_OK));
    struct bide_multi *multi = warm_multi();
    start_post(multi, &client);
    poll_until_seen(multi, 2);
    start_post(multi, &other);
    while (bide_multi_poll(multi, BIDE_NEVER) > 0)
        continue;
    assert_int_equal(done_count, 2);
    assert_connection(2, 1);
    assert_connection(3, 1);
    assert_seen(3);
    live_assert_gave_up(&client, BIDE_REASON_NOT_REPEATABLE, 1);
    live_assert_gave_up(&other, BIDE_REASON_NOT_REPEATABLE, 1);
    bide_multi_free(multi);
    live_client_free(&other);
}

static void a_request_refused_beside_another_leaves_the_other_alone(void **state)
{
    struct live_client other;
    live_client_init(&other, 3);
    serve(DEEDS(LIVE_H2_OK, LIVE_H2_SILENCE, LIVE_H2_REFUSE, LIVE_H2_OK));
    struct bide_multi *multi = warm_multi();
    start_post(multi, &client);
    poll_until_seen(multi, 2);
    start(multi, &other);
    while (done_count == 0)
        bide_multi_poll(multi, BIDE_NEVER);
    live_assert_done(&other, 2);
    assert_int_equal(bide_multi_running(multi), 1);
    bide_multi_free(multi);
    assert_int_equal(done_count, 2);
    live_assert_gave_up(&client, BIDE_REASON_CANCELLED, 1); /* it still waited for its answer */
    assert_seen(4);
    live_client_free(&other);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(libcurl_alone_repeats_a_refused_post_and_tells_nobody),
        TEST(an_answer_is_an_answer),
        TEST(a_get_is_tried_again_on_the_same_connection_after_503),
        TEST(an_attempt_cut_at_the_end_of_its_head_leaves_the_connection_usable),
        TEST(a_post_answered_503_is_not_repeated),
        TEST(a_refused_post_is_repeated_by_us_and_told),
        TEST(a_post_that_is_always_refused_is_seen_as_often_as_attempts_were_made),
        TEST(one_attempt_is_one_request_even_if_it_is_refused),
        TEST(a_refused_post_whose_body_is_not_known_to_be_repeatable_is_not_repeated),
        TEST(a_post_above_goaway_is_seen_as_often_as_we_say),
        TEST(a_get_above_goaway_is_repeated_by_us),
        TEST(a_post_refused_on_a_reused_connection_is_not_repeated_and_a_get_is),
        TEST(a_post_whose_stream_broke_is_not_repeated_and_a_get_is),
        TEST(a_post_whose_stream_was_cancelled_is_not_repeated_and_a_get_is),
        TEST(a_post_whose_connection_died_is_not_repeated_and_a_get_is),
        TEST(a_post_is_seen_once_when_a_reused_connection_dies_with_it),
        TEST(a_keyed_post_is_repeated_whatever_broke),
        TEST(half_a_body_is_never_followed_by_another),
        TEST(half_a_body_is_taken_back_where_the_sink_can),
        TEST(libcurl_alone_goes_back_to_http_1_where_that_is_required),
        TEST(a_server_that_requires_http_1_is_not_asked_more_often_than_we_say),
        TEST(posts_on_a_shared_connection_that_dies_are_seen_once_each),
        TEST(a_request_refused_beside_another_leaves_the_other_alone),
    };
    curl_global_init(CURL_GLOBAL_ALL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
