/* test_multi_adopt.c - a bide_multi inside an existing program: its CURLM, its own transfers beside bide's calls, its
 * select loop, its connection limits and its mistakes. */
#include "live_multi.h"

#include <bide/clock.h>

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/select.h>

#include <cmocka.h>

#define QUEUED 25

static struct live_server server;
static struct bide_policy policy;
static struct bide_target target;

static int open_all(void **state)
{
    live_server_start(&server, "/ok 200 body=fine\n/flaky 503 | 200 body=fine | loop\n/slow 200 body=fine delay=100ms\n"
                               "/later 200 body=fine delay=600ms\n/silent delay=never");
    policy = live_policy(4);
    live_target_without_gates(&target);
    return 0;
}

static int close_all(void **state)
{
    live_server_free(&server);
    return 0;
}

/* ---- transfers of the program's own ---- */

struct foreign {
    CURLM *curl;
    CURL *easy;
    struct live_sink sink;
    unsigned ended;
    CURLcode code;
};

static void on_message(void *context, CURLMsg *message)
{
    struct foreign *foreign = context;
    assert_int_equal(message->msg, CURLMSG_DONE);
    assert_ptr_equal(message->easy_handle, foreign->easy);
    foreign->ended++;
    foreign->code = message->data.result;
    curl_multi_remove_handle(foreign->curl, foreign->easy);
}

static void foreign_add(struct foreign *foreign, CURLM *curl)
{
    static const char garbage[] = "no pointer of bide's";
    *foreign = (struct foreign){.curl = curl, .easy = curl_easy_init()};
    curl_easy_setopt(foreign->easy, CURLOPT_URL, live_server_url(&server, "/ok"));
    curl_easy_setopt(foreign->easy, CURLOPT_PROXY, "");
    curl_easy_setopt(foreign->easy, CURLOPT_WRITEFUNCTION, live_sink_write);
    curl_easy_setopt(foreign->easy, CURLOPT_WRITEDATA, &foreign->sink);
    curl_easy_setopt(foreign->easy, CURLOPT_PRIVATE, garbage);
    assert_int_equal(curl_multi_add_handle(curl, foreign->easy), CURLM_OK);
}

static void foreign_expect_end(struct foreign *foreign)
{
    assert_int_equal(foreign->ended, 1);
    assert_int_equal(foreign->code, CURLE_OK);
    assert_string_equal(foreign->sink.at, "fine");
    curl_easy_cleanup(foreign->easy);
    live_sink_free(&foreign->sink);
}

static bool foreign_has_ended(void *context)
{
    return ((struct foreign *)context)->ended > 0;
}

static void transfers_of_the_program_run_beside_calls_in_its_own_multi(void **state)
{
    struct live_multi_call call;
    struct foreign foreign;
    struct bide_multi *multi;
    CURLM *curl = curl_multi_init();
    assert_int_equal(bide_multi_adopt(&multi, curl), BIDE_OK);
    assert_ptr_equal(bide_multi_handle_get(multi), curl);
    bide_multi_on_message(multi, on_message, &foreign);
    foreign_add(&foreign, curl);
    live_multi_call_init(&call, live_server_url(&server, "/flaky"), &policy);
    curl_easy_setopt(call.easy, CURLOPT_PRIVATE, "the caller's");
    live_multi_call_start(&call, multi, &target);
    assert_true(live_multi_run(multi));
    assert_true(live_multi_run_until(multi, foreign_has_ended, &foreign));
    assert_int_equal(call.code, CURLE_OK);
    assert_int_equal(call.result.attempts, 2);
    char *private_data = NULL;
    curl_easy_getinfo(call.easy, CURLINFO_PRIVATE, &private_data);
    assert_string_equal(private_data, "the caller's");
    foreign_expect_end(&foreign);
    live_multi_call_free(&call);
    bide_multi_free(multi);
    foreign_add(&foreign, curl); /* the CURLM is still the program's */
    curl_multi_remove_handle(curl, foreign.easy);
    curl_easy_cleanup(foreign.easy);
    assert_int_equal(curl_multi_cleanup(curl), CURLM_OK);
}

/* poll waits for the program's transfer although no call is running. */
/* An event loop that knows a single timer. */
struct loop_timer {
    int64_t due_ns;
    unsigned set;
};

static void loop_timer_set(void *context, int64_t due_ns)
{
    struct loop_timer *timer = context;
    timer->due_ns = due_ns;
    timer->set += due_ns != BIDE_NEVER;
}

static void a_transfer_of_the_program_sets_the_timer_of_its_event_loop(void **state)
{
    struct loop_timer timer = {.due_ns = BIDE_NEVER};
    struct foreign foreign;
    struct bide_multi *multi;
    CURLM *curl = curl_multi_init();
    assert_int_equal(bide_multi_adopt(&multi, curl), BIDE_OK);
    bide_multi_on_timer(multi, loop_timer_set, &timer);
    foreign_add(&foreign, curl);
    assert_true(timer.set > 0 && timer.due_ns <= bide_now());
    curl_multi_remove_handle(curl, foreign.easy);
    curl_easy_cleanup(foreign.easy);
    bide_multi_free(multi);
    assert_int_equal(curl_multi_cleanup(curl), CURLM_OK);
}

static void a_multi_without_calls_runs_the_transfers_of_the_program(void **state)
{
    struct foreign foreign;
    struct bide_multi *multi = live_multi_new();
    bide_multi_on_message(multi, on_message, &foreign);
    foreign_add(&foreign, bide_multi_handle_get(multi));
    assert_true(live_multi_run_until(multi, foreign_has_ended, &foreign));
    foreign_expect_end(&foreign);
    assert_int_equal(bide_multi_poll(multi, BIDE_NEVER), 0); /* nothing is left: it does not wait */
    bide_multi_free(multi);
}

static void a_message_that_no_function_wants_is_dropped(void **state)
{
    struct foreign foreign;
    struct live_multi_call call;
    struct bide_multi *multi = live_multi_new();
    foreign_add(&foreign, bide_multi_handle_get(multi));
    live_multi_call_init(&call, live_server_url(&server, "/flaky"), &policy);
    live_multi_call_start(&call, multi, &target);
    assert_true(live_multi_run(multi));
    assert_int_equal(call.code, CURLE_OK);
    curl_multi_remove_handle(bide_multi_handle_get(multi), foreign.easy);
    curl_easy_cleanup(foreign.easy);
    live_sink_free(&foreign.sink);
    live_multi_call_free(&call);
    bide_multi_free(multi);
}

static void no_curl_multi_cannot_be_adopted(void **state)
{
    struct bide_multi *multi;
    assert_int_equal(bide_multi_adopt(&multi, NULL), BIDE_ERR_NOMEM);
    assert_null(multi);
}

/* ---- a handle started twice ---- */

static void a_handle_with_a_running_call_cannot_be_started_again(void **state)
{
    struct live_multi_call call;
    struct bide_problem problem = {0};
    struct bide_multi *multi = live_multi_new();
    live_multi_call_init(&call, live_server_url(&server, "/ok"), &policy);
    live_multi_call_start(&call, multi, &target);
    struct bide_multi_job again = {.easy = call.easy, .target = &target, .options = &call.options};
    assert_int_equal(bide_multi_start(multi, &again, NULL, &problem), BIDE_ERR_INVALID);
    assert_string_equal(problem.field, "easy");
    assert_true(live_multi_run(multi));
    assert_int_equal(call.done, 1);
    assert_int_equal(call.code, CURLE_OK);
    assert_int_equal(bide_multi_start(multi, &again, NULL, &problem), BIDE_OK); /* it is free again */
    assert_true(live_multi_run(multi));
    live_multi_call_free(&call);
    bide_multi_free(multi);
}

/* ---- a select loop ---- */

static void select_until_due(struct bide_multi *multi)
{
    fd_set readable, writable, failed;
    int last = -1;
    FD_ZERO(&readable);
    FD_ZERO(&writable);
    FD_ZERO(&failed);
    assert_int_equal(curl_multi_fdset(bide_multi_handle_get(multi), &readable, &writable, &failed, &last), CURLM_OK);
    int64_t due_ns = bide_multi_due_get(multi), left_ns = due_ns - bide_now();
    assert_true(last >= 0 || due_ns != BIDE_NEVER); /* or the loop would hang */
    left_ns = left_ns < 0 ? 0 : left_ns < 60 * BIDE_S ? left_ns : 60 * BIDE_S;
    struct timeval wait = {.tv_sec = left_ns / BIDE_S, .tv_usec = left_ns % BIDE_S / 1000};
    select(last + 1, &readable, &writable, &failed, &wait);
}

static void a_select_loop_knows_when_a_retry_is_due(void **state)
{
    struct live_multi_call call;
    struct bide_multi *multi = live_multi_new();
    assert_int_equal(bide_multi_due_get(multi), BIDE_NEVER);
    policy.base_ns = policy.cap_ns = 50 * BIDE_MS;
    live_multi_call_init(&call, live_server_url(&server, "/flaky"), &policy);
    live_multi_call_start(&call, multi, &target);
    while (bide_multi_poll(multi, 0) > 0)
        select_until_due(multi);
    assert_int_equal(call.code, CURLE_OK);
    assert_int_equal(call.result.attempts, 2);
    assert_true(call.result.attempt[1].delay_ns >= 50 * BIDE_MS);
    live_multi_call_free(&call);
    bide_multi_free(multi);
}

/* ---- time limits ---- */

/* All calls share one connection, so most of them wait in libcurl's queue for longer than the policy's limits. */
static void expect_queue_costs_nothing(void)
{
    static struct live_multi_call calls[QUEUED];
    struct bide_multi *multi = live_multi_new();
    curl_multi_setopt(bide_multi_handle_get(multi), CURLMOPT_MAX_HOST_CONNECTIONS, 1L);
    live_target_service(&target);
    for (size_t i = 0; i < QUEUED; i++) {
        live_multi_call_init(&calls[i], live_server_url(&server, "/slow"), &policy);
        live_multi_call_start(&calls[i], multi, &target);
    }
    assert_true(live_multi_run(multi));
    for (size_t i = 0; i < QUEUED; i++) {
        assert_int_equal(calls[i].code, CURLE_OK);
        assert_int_equal(calls[i].result.attempts, 1);
        live_multi_call_free(&calls[i]);
    }
    bide_multi_free(multi);
}

static void time_in_libcurl_s_queue_is_no_attempt_time(void **state)
{
    policy.attempt_timeout_ns = 1500 * BIDE_MS;
    expect_queue_costs_nothing();
}

static void time_in_libcurl_s_queue_is_no_connect_time(void **state)
{
    policy.connect_timeout_ns = BIDE_S;
    expect_queue_costs_nothing();
}

/* The second call waits in the queue for longer than its connect timeout, and then has all of it. */
static void the_connect_timeout_begins_after_libcurl_s_queue(void **state)
{
    struct live_multi_call first, queued;
    struct live_blackhole port;
    struct bide_multi *multi = live_multi_new();
    live_blackhole_open(&port);
    curl_multi_setopt(bide_multi_handle_get(multi), CURLMOPT_MAX_TOTAL_CONNECTIONS, 1L);
    policy.attempts_max = 1;
    policy.connect_timeout_ns = 400 * BIDE_MS;
    live_multi_call_init(&first, live_server_url(&server, "/later"), &policy);
    live_multi_call_start(&first, multi, &target);
    live_multi_call_init(&queued, port.url, &policy);
    queued.options.deadline_ns = bide_now() + 30 * BIDE_S;
    live_multi_call_start(&queued, multi, &target);
    assert_true(live_multi_run(multi));
    assert_int_equal(first.code, CURLE_OK);
    assert_int_equal(queued.code, CURLE_OPERATION_TIMEDOUT);
    assert_int_equal(queued.result.attempt[0].evidence, BIDE_EVIDENCE_NOT_SENT);
    assert_in_range(queued.result.attempt[0].time_ns, BIDE_S - 5 * BIDE_MS, 20 * BIDE_S);
    bide_multi_free(multi);
    live_blackhole_close(&port);
    live_multi_call_free(&first);
    live_multi_call_free(&queued);
}

static void a_silent_server_is_cut_at_the_attempt_timeout(void **state)
{
    struct live_multi_call call;
    struct bide_multi *multi = live_multi_new();
    policy.attempt_timeout_ns = 50 * BIDE_MS;
    policy.attempts_max = 2;
    live_multi_call_init(&call, live_server_url(&server, "/silent"), &policy);
    live_multi_call_start(&call, multi, &target);
    assert_true(live_multi_run(multi));
    assert_int_equal(call.code, CURLE_OPERATION_TIMEDOUT);
    assert_int_equal(call.result.attempts, 2);
    for (int i = 0; i < 2; i++)
        assert_true(call.result.attempt[i].time_ns >= 50 * BIDE_MS);
    live_multi_call_free(&call);
    bide_multi_free(multi);
}

/* The call's own deadline ends a transfer that never leaves the queue. */
static void a_call_that_stays_in_the_queue_ends_at_its_deadline(void **state)
{
    struct live_multi_call first, queued;
    struct bide_multi *multi = live_multi_new();
    curl_multi_setopt(bide_multi_handle_get(multi), CURLMOPT_MAX_HOST_CONNECTIONS, 1L);
    live_multi_call_init(&first, live_server_url(&server, "/silent"), &policy);
    live_multi_call_start(&first, multi, &target);
    live_multi_call_init(&queued, live_server_url(&server, "/silent"), &policy);
    queued.options.deadline_ns = bide_now() + 100 * BIDE_MS;
    live_multi_call_start(&queued, multi, &target);
    while (queued.done == 0)
        bide_multi_poll(multi, BIDE_NEVER);
    assert_int_equal(queued.code, CURLE_OPERATION_TIMEDOUT);
    assert_int_equal(queued.result.attempt[0].evidence, BIDE_EVIDENCE_NOT_SENT);
    assert_int_equal(first.done, 0);
    bide_multi_free(multi);
    live_multi_call_free(&first);
    live_multi_call_free(&queued);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(transfers_of_the_program_run_beside_calls_in_its_own_multi, open_all,
                                        close_all),
        cmocka_unit_test_setup_teardown(a_multi_without_calls_runs_the_transfers_of_the_program, open_all, close_all),
        cmocka_unit_test_setup_teardown(a_transfer_of_the_program_sets_the_timer_of_its_event_loop, open_all,
                                        close_all),
        cmocka_unit_test_setup_teardown(a_message_that_no_function_wants_is_dropped, open_all, close_all),
        cmocka_unit_test_setup_teardown(no_curl_multi_cannot_be_adopted, open_all, close_all),
        cmocka_unit_test_setup_teardown(a_handle_with_a_running_call_cannot_be_started_again, open_all, close_all),
        cmocka_unit_test_setup_teardown(a_select_loop_knows_when_a_retry_is_due, open_all, close_all),
        cmocka_unit_test_setup_teardown(time_in_libcurl_s_queue_is_no_attempt_time, open_all, close_all),
        cmocka_unit_test_setup_teardown(time_in_libcurl_s_queue_is_no_connect_time, open_all, close_all),
        cmocka_unit_test_setup_teardown(the_connect_timeout_begins_after_libcurl_s_queue, open_all, close_all),
        cmocka_unit_test_setup_teardown(a_silent_server_is_cut_at_the_attempt_timeout, open_all, close_all),
        cmocka_unit_test_setup_teardown(a_call_that_stays_in_the_queue_ends_at_its_deadline, open_all, close_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
