/* test_adopt.c - recorded handles in other hands: options set and copies made in callbacks, handles that are reset, and
 * adopted handles, which keep bide's callbacks between calls. */
#define _GNU_SOURCE
#include "live_multi.h"
#include "live_program.h"
#include "live_proxy.h"

#include <bide/clock.h>

#include <stdlib.h>

/* ---- options and handles in callbacks ---- */

/* What a program does in its header function, at the first line of the first head. */
struct inside {
    struct program p;
    struct live_sink other;
    CURL *copy;
    CURLcode again;
    bool redirect; /* sends the body elsewhere */
};

static size_t act_in_header(char *at, size_t size, size_t count, void *context)
{
    struct inside *in = context;
    if (in->copy)
        return size * count;
    assert_memory_equal(at, "HTTP/", 5);
    if (in->redirect)
        curl_easy_setopt(in->p.easy, CURLOPT_WRITEDATA, &in->other);
    in->copy = curl_easy_duphandle(in->p.easy);
    in->again = bide_curl_perform(in->p.easy, NULL, NULL, NULL);
    return size * count;
}

static void inside_open(struct inside *in, bool redirect)
{
    memset(in, 0, sizeof *in);
    program_open(&in->p, "/a 200 body=\"fine\"");
    in->redirect = redirect;
    curl_easy_setopt(in->p.easy, CURLOPT_HEADERFUNCTION, act_in_header);
    curl_easy_setopt(in->p.easy, CURLOPT_HEADERDATA, in);
}

static void inside_close(struct inside *in)
{
    curl_easy_cleanup(in->copy);
    live_sink_free(&in->other);
    program_close(&in->p);
}

/* A program that opens its file when it has seen the head. */
static void an_option_set_in_a_callback_applies_to_the_rest_of_the_call(void **state)
{
    struct inside in;
    struct bide_curl_options o = {0};
    for (int with_options = 0; with_options < 2; with_options++) {
        inside_open(&in, true);
        assert_int_equal(with_options ? program_perform_with(&in.p, &o) : program_perform(&in.p), CURLE_OK);
        assert_int_equal(in.p.body.length, 0);
        live_expect_text(&in.other, "fine");
        assert_int_equal(curl_easy_perform(in.p.easy), CURLE_OK);
        live_expect_text(&in.other, "finefine");
        inside_close(&in);
    }
}

static void a_copy_made_in_a_callback_has_the_owner_s_options(void **state)
{
    struct inside in;
    inside_open(&in, false);
    assert_int_equal(program_perform(&in.p), CURLE_OK);
    live_sink_rewind(&in.p.body);
    unsigned prereqs = in.p.prereqs;
    assert_int_equal(curl_easy_perform(in.copy), CURLE_OK);
    live_expect_text(&in.p.body, "fine");
    assert_int_equal(in.p.prereqs, prereqs + 1);
    inside_close(&in);
}

static void a_handle_with_a_running_call_cannot_begin_another(void **state)
{
    struct inside in;
    inside_open(&in, false);
    assert_int_equal(program_perform(&in.p), CURLE_OK);
    assert_int_equal(in.again, CURLE_BAD_FUNCTION_ARGUMENT);
    live_expect_text(&in.p.body, "fine");
    inside_close(&in);
}

static size_t largest_piece;

static size_t note_piece(char *at, size_t size, size_t count, void *context)
{
    (void)at, (void)context;
    largest_piece = size * count > largest_piece ? size * count : largest_piece;
    return size * count;
}

/* Problem details are held until they are complete. */
static void a_write_function_gets_no_larger_pieces_than_from_libcurl(void **state)
{
    struct program p;
    struct bide_curl_options o = {0};
    program_open(&p, "/a 400 bytes=40000 header=\"Content-Type: application/problem+json\"");
    curl_easy_setopt(p.easy, CURLOPT_WRITEFUNCTION, note_piece);
    largest_piece = 0;
    assert_int_equal(program_perform_with(&p, &o), CURLE_OK);
    assert_int_equal(largest_piece, CURL_MAX_WRITE_SIZE);
    program_close(&p);
}

static int cancel_after_a_head(void *context, curl_off_t total, curl_off_t now, curl_off_t up_total, curl_off_t up_now)
{
    const struct program *p = context;
    (void)total, (void)now, (void)up_total, (void)up_now;
    return p->result.attempt[0].status == 503;
}

static void a_recorded_progress_function_cancels_a_wait(void **state)
{
    struct program p;
    program_open(&p, "/a 503 retry-after=50");
    curl_easy_setopt(p.easy, CURLOPT_XFERINFOFUNCTION, cancel_after_a_head);
    curl_easy_setopt(p.easy, CURLOPT_XFERINFODATA, &p);
    curl_easy_setopt(p.easy, CURLOPT_NOPROGRESS, 0L);
    assert_int_equal(program_perform(&p), CURLE_ABORTED_BY_CALLBACK);
    assert_int_equal(p.result.verdict.reason, BIDE_REASON_CANCELLED);
    assert_int_equal(p.result.attempts, 1);
    program_close(&p);
}

static void a_handle_reset_here_is_recorded_from_then_on(void **state)
{
    struct live_server server;
    struct live_sink sink = {0};
    live_server_start(&server, "/a 503 | 200 body=\"fine\"");
    CURL *easy = own_init();
    curl_easy_reset(easy);
    curl_easy_setopt(easy, CURLOPT_URL, live_server_url(&server, "/a"));
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, live_sink_write);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &sink);
    assert_int_equal(bide_curl_perform(easy, NULL, NULL, NULL), CURLE_OK);
    live_expect_text(&sink, "fine");
    curl_easy_cleanup(easy);
    live_sink_free(&sink);
    live_server_free(&server);
}

/* ---- adopted handles ---- */

static void program_adopt(struct program *p, const char *script)
{
    program_open(p, script);
    assert_int_equal(bide_curl_adopt(p->easy), CURLE_OK);
}

/* The handle without bide. Expects its body, one more line of head and one more call of the prereq function. */
static void expect_plain_perform(struct program *p, const char *body)
{
    unsigned prereqs = p->prereqs;
    live_sink_rewind(&p->body);
    live_sink_rewind(&p->head);
    assert_int_equal(curl_easy_perform(p->easy), CURLE_OK);
    live_expect_text(&p->body, body);
    assert_true(p->head.length > 0);
    assert_int_equal(p->prereqs, prereqs + 1);
}

static void an_adopted_handle_keeps_its_callbacks_over_many_calls(void **state)
{
    struct program p;
    program_adopt(&p, "/a 200 body=\"one\" | 503 body=\"sorry\" | 200 body=\"two\" header=\"X-Try: third\" | 404");
    assert_int_equal(program_perform(&p), CURLE_OK);
    live_expect_text(&p.body, "one");
    assert_int_equal(program_perform(&p), CURLE_OK);
    assert_int_equal(p.result.attempts, 2);
    live_expect_text(&p.body, "two");
    assert_non_null(strstr(p.head.at, "X-Try: third"));
    assert_int_equal(program_perform(&p), CURLE_OK);
    assert_int_equal(p.result.status, 404);
    assert_int_equal(p.prereqs, 4);
    program_close(&p);
}

static void an_adopted_handle_still_works_without_bide(void **state)
{
    struct program p;
    program_adopt(&p, "/a 200 body=\"fine\"");
    expect_plain_perform(&p, "fine");
    assert_int_equal(program_perform(&p), CURLE_OK);
    expect_plain_perform(&p, "fine");
    p.forbid = true;
    assert_int_equal(curl_easy_perform(p.easy), CURLE_ABORTED_BY_CALLBACK);
    program_close(&p);
}

static void an_option_set_between_calls_applies_to_an_adopted_handle(void **state)
{
    struct program p;
    struct live_sink other = {0};
    program_adopt(&p, "/a 200 body=\"fine\"");
    assert_int_equal(program_perform(&p), CURLE_OK);
    curl_easy_setopt(p.easy, CURLOPT_WRITEDATA, &other);
    assert_int_equal(program_perform(&p), CURLE_OK);
    assert_int_equal(p.body.length, 0);
    live_expect_text(&other, "fine");
    curl_easy_setopt(p.easy, CURLOPT_PREREQFUNCTION, NULL);
    unsigned prereqs = p.prereqs;
    assert_int_equal(program_perform(&p), CURLE_OK);
    assert_int_equal(curl_easy_perform(p.easy), CURLE_OK);
    assert_int_equal(p.prereqs, prereqs);
    live_expect_text(&other, "finefinefine");
    live_sink_free(&other);
    program_close(&p);
}

/* The first call leaves its timeout on the handle. */
static void an_option_set_between_calls_leaves_no_timeout_of_the_last_call(void **state)
{
    struct program p;
    struct bide_curl_options o = {.call_timeout_ns = 300 * BIDE_MS};
    program_adopt(&p, "/a 200 | 200 delay=600ms");
    assert_int_equal(program_perform_with(&p, &o), CURLE_OK);
    curl_easy_setopt(p.easy, CURLOPT_WRITEDATA, &p.body);
    assert_int_equal(program_perform(&p), CURLE_OK);
    assert_int_equal(p.result.attempts, 1);
    program_close(&p);
}

/* The proxy is set after the first call, or in the environment before the handle is adopted. */
static void an_adopted_handle_honours_a_proxy_s_hint(void **state)
{
    static const enum live_proxy_action actions[] = {LIVE_PROXY_429_WAIT, LIVE_PROXY_TUNNEL};
    for (int by_environment = 0; by_environment < 2; by_environment++) {
        struct program p;
        struct live_proxy *proxy = live_proxy_new(actions, 2);
        if (by_environment)
            setenv("all_proxy", live_proxy_url(proxy), 1);
        program_adopt(&p, "/a 200");
        curl_easy_setopt(p.easy, CURLOPT_NOPROXY, by_environment ? "" : NULL);
        curl_easy_setopt(p.easy, CURLOPT_PROXY, "");
        assert_int_equal(program_perform(&p), CURLE_OK);
        assert_int_equal(p.result.attempts, 1);
        curl_easy_setopt(p.easy, CURLOPT_PROXY, by_environment ? NULL : live_proxy_url(proxy));
        curl_easy_setopt(p.easy, CURLOPT_HTTPPROXYTUNNEL, 1L);
        assert_int_equal(program_perform(&p), CURLE_OK);
        assert_int_equal(p.result.attempts, 2);
        assert_int_equal(p.result.attempt[0].hint.wait_ns, 300 * BIDE_MS);
        unsetenv("all_proxy");
        program_close(&p);
        live_proxy_free(proxy);
    }
}

/* Its timeout is the owner's again, not the one that bide had set for the last attempt. */
static void a_released_handle_has_its_own_options(void **state)
{
    struct program p;
    struct bide_curl_options o = {0};
    o.call_timeout_ns = 100 * BIDE_S;
    program_adopt(&p, "/a 200 body=\"fine\" | 200 body=\"fine\" | 200 delay=never");
    curl_easy_setopt(p.easy, CURLOPT_TIMEOUT_MS, 300L);
    assert_int_equal(program_perform_with(&p, &o), CURLE_OK);
    bide_curl_release(p.easy);
    bide_curl_release(p.easy);
    expect_plain_perform(&p, "fine");
    assert_int_equal(curl_easy_perform(p.easy), CURLE_OPERATION_TIMEDOUT);
    program_close(&p);
}

static void a_copy_of_an_adopted_handle_outlives_it(void **state)
{
    struct program p;
    program_adopt(&p, "/a 200 body=\"fine\"");
    assert_int_equal(program_perform(&p), CURLE_OK);
    CURL *copy = curl_easy_duphandle(p.easy);
    assert_int_equal(program_perform(&p), CURLE_OK); /* the original is adopted still */
    curl_easy_cleanup(p.easy);
    p.easy = copy;
    expect_plain_perform(&p, "fine");
    assert_int_equal(program_perform(&p), CURLE_OK);
    live_expect_text(&p.body, "fine");
    program_close(&p);
}

static void a_reset_adopted_handle_has_no_callbacks_and_makes_calls(void **state)
{
    struct program p;
    program_adopt(&p, "/a 200 body=\"fine\"");
    assert_int_equal(program_perform(&p), CURLE_OK);
    curl_easy_reset(p.easy);
    curl_easy_setopt(p.easy, CURLOPT_WRITEFUNCTION, live_sink_write);
    curl_easy_setopt(p.easy, CURLOPT_WRITEDATA, &p.body);
    curl_easy_setopt(p.easy, CURLOPT_URL, live_server_url(&p.server, "/a"));
    assert_int_equal(program_perform(&p), CURLE_OK);
    live_expect_text(&p.body, "fine");
    assert_int_equal(p.prereqs, 1);
    assert_int_equal(p.head.length, 0);
    program_close(&p);
}

static void an_adopted_handle_can_be_used_in_a_multi(void **state)
{
    struct program p;
    struct bide_multi *multi = live_multi_new();
    program_adopt(&p, "/a 200 body=\"fine\"");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(program_perform(&p), CURLE_OK);
        live_sink_rewind(&p.body);
        struct bide_multi_job job = {.easy = p.easy, .result = &p.result};
        assert_int_equal(bide_multi_start(multi, &job, NULL, NULL), BIDE_OK);
        assert_true(live_multi_run(multi));
        assert_int_equal(p.result.verdict.action, BIDE_ACTION_DONE);
        live_expect_text(&p.body, "fine");
    }
    expect_plain_perform(&p, "fine");
    bide_multi_free(multi);
    program_close(&p);
}

static void only_a_recorded_handle_can_be_adopted(void **state)
{
    CURL *easy = own_init();
    assert_int_equal(bide_curl_adopt(NULL), CURLE_BAD_FUNCTION_ARGUMENT);
    assert_int_equal(bide_curl_adopt(easy), CURLE_BAD_FUNCTION_ARGUMENT);
    bide_curl_release(easy);
    bide_curl_release(NULL);
    own_cleanup(easy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_option_set_in_a_callback_applies_to_the_rest_of_the_call),
        cmocka_unit_test(a_copy_made_in_a_callback_has_the_owner_s_options),
        cmocka_unit_test(a_handle_with_a_running_call_cannot_begin_another),
        cmocka_unit_test(a_write_function_gets_no_larger_pieces_than_from_libcurl),
        cmocka_unit_test(a_recorded_progress_function_cancels_a_wait),
        cmocka_unit_test(a_handle_reset_here_is_recorded_from_then_on),
        cmocka_unit_test(an_adopted_handle_keeps_its_callbacks_over_many_calls),
        cmocka_unit_test(an_adopted_handle_still_works_without_bide),
        cmocka_unit_test(an_option_set_between_calls_applies_to_an_adopted_handle),
        cmocka_unit_test(an_option_set_between_calls_leaves_no_timeout_of_the_last_call),
        cmocka_unit_test(an_adopted_handle_honours_a_proxy_s_hint),
        cmocka_unit_test(a_released_handle_has_its_own_options),
        cmocka_unit_test(a_copy_of_an_adopted_handle_outlives_it),
        cmocka_unit_test(a_reset_adopted_handle_has_no_callbacks_and_makes_calls),
        cmocka_unit_test(an_adopted_handle_can_be_used_in_a_multi),
        cmocka_unit_test(only_a_recorded_handle_can_be_adopted),
    };
    return cmocka_run_group_tests(tests, find_own_functions, NULL);
}
