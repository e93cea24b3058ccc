/* test_exit.c - exit status of a job, and the messages about it. */
#define _GNU_SOURCE
#include "fetch/fetch.h"
#include "fetch/log.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct fetch_job gave_up(enum bide_reason reason, CURLcode code, long status)
{
    static char shown[] = "http://h/p";
    return (struct fetch_job){.display_url = shown,
                              .verdict = {.action = BIDE_ACTION_GIVE_UP, .reason = reason},
                              .code = code,
                              .status = status,
                              .attempts = 1};
}

static int status_of(enum bide_reason reason, CURLcode code, long status)
{
    struct fetch_job job = gave_up(reason, code, status);
    return fetch_exit_status(&job);
}

static void success_exits_0_unless_output_could_not_be_written(void **state)
{
    struct fetch_job job = {
        .verdict = {.action = BIDE_ACTION_DONE, .reason = BIDE_REASON_SUCCEEDED}, .status = 200, .attempts = 1};
    assert_int_equal(fetch_exit_status(&job), 0);
    job.error = ENOSPC;
    assert_int_equal(fetch_exit_status(&job), 23);
}

static void failure_response_exits_22(void **state)
{
    assert_int_equal(status_of(BIDE_REASON_PERMANENT, CURLE_OK, 404), 22);
    assert_int_equal(status_of(BIDE_REASON_ATTEMPTS_SPENT, CURLE_OK, 503), 22);
    assert_int_equal(status_of(BIDE_REASON_NOT_REPEATABLE, CURLE_HTTP_RETURNED_ERROR, 503), 22);
    assert_int_equal(status_of(BIDE_REASON_ATTEMPTS_SPENT, CURLE_OK, 200), 22); /* a rule makes it a failure */
    assert_int_equal(status_of(BIDE_REASON_DEADLINE_NEAR, CURLE_OK, 503), 22);
    assert_int_equal(status_of(BIDE_REASON_PERMANENT, CURLE_PARTIAL_FILE, 404), 22);
}

static void failure_without_response_exits_with_curl_code(void **state)
{
    assert_int_equal(status_of(BIDE_REASON_ATTEMPTS_SPENT, CURLE_COULDNT_RESOLVE_HOST, 0), 6);
    assert_int_equal(status_of(BIDE_REASON_ATTEMPTS_SPENT, CURLE_OPERATION_TIMEDOUT, 0), 28);
    assert_int_equal(status_of(BIDE_REASON_PERMANENT, CURLE_PEER_FAILED_VERIFICATION, 0), 60);
    assert_int_equal(status_of(BIDE_REASON_BODY_DELIVERED, CURLE_RECV_ERROR, 200), 56);
}

static void deadline_exits_124(void **state)
{
    assert_int_equal(status_of(BIDE_REASON_DEADLINE, CURLE_OPERATION_TIMEDOUT, 0), 124);
    assert_int_equal(status_of(BIDE_REASON_DEADLINE, CURLE_OK, 503), 124);
    assert_int_equal(status_of(BIDE_REASON_DEADLINE_NEAR, CURLE_OPERATION_TIMEDOUT, 0), 124);
}

static void unsent_request_exits_75_or_125(void **state)
{
    assert_int_equal(status_of(BIDE_REASON_BREAKER_OPEN, BIDE_CURL_NOT_SENT, 0), 75);
    assert_int_equal(status_of(BIDE_REASON_BREAKER_OPEN, CURLE_RECV_ERROR, 0), 56); /* an attempt was made */
    assert_int_equal(status_of(BIDE_REASON_DEADLINE_NEAR, BIDE_CURL_NOT_SENT, 0), 124);
    assert_int_equal(status_of(BIDE_REASON_KEY_REQUIRED, BIDE_CURL_NOT_SENT, 0), 125);
}

static void signal_exits_128_plus_number(void **state)
{
    struct fetch_job job = gave_up(BIDE_REASON_CANCELLED, CURLE_ABORTED_BY_CALLBACK, 0);
    job.cancelled = true;
    fetch_signal = SIGTERM;
    assert_int_equal(fetch_exit_status(&job), 143);
    fetch_signal = 0;
}

/* ---- messages ---- */

static const char *logged(struct fetch_log log, const struct fetch_event *event)
{
    static char *text;
    size_t length;
    free(text);
    text = NULL;
    log.out = open_memstream(&text, &length);
    log.attempts_max = 4;
    fetch_log_event(&log, event);
    fclose(log.out);
    return text;
}

static void retry_is_one_line_with_attempt_reason_and_wait(void **state)
{
    struct fetch_job job = gave_up(BIDE_REASON_BACKOFF, CURLE_OK, 503);
    struct fetch_event event = {
        .job = &job,
        .verdict = {.action = BIDE_ACTION_WAIT, .reason = BIDE_REASON_SERVER_HINT, .attempt = 1},
        .ended = true,
        .status = 503,
        .text = "",
        .hint = {BIDE_HINT_WAIT, 2 * BIDE_S},
        .wait_ns = 2100 * BIDE_MS,
        .time_ns = 10 * BIDE_MS};
    assert_string_equal(logged((struct fetch_log){0}, &event),
                        "bide: attempt 1 of 4 failed: 503; next in 2.1s (server asked)\n");
    assert_string_equal(logged((struct fetch_log){.several_urls = true}, &event),
                        "bide: http://h/p: attempt 1 of 4 failed: 503; next in 2.1s (server asked)\n");
    assert_string_equal(
        logged((struct fetch_log){.verbose = true}, &event),
        "bide: attempt 1 of 4 failed: 503 after 10ms, server asked for 2s; next in 2.1s (server asked)\n");
    assert_string_equal(logged((struct fetch_log){.silent = true}, &event), "");
    event.ended = false; /* its wait ended, and the breaker refuses the next attempt */
    event.verdict.reason = BIDE_REASON_BREAKER_OPEN;
    assert_string_equal(logged((struct fetch_log){0}, &event), "bide: next in 2.1s (the circuit breaker is open)\n");
}

/* The members are those of bide run; the time of day is not compared. */
static void failed_attempt_is_outcome_then_wait_in_json(void **state)
{
    struct fetch_job job = gave_up(BIDE_REASON_BACKOFF, CURLE_OK, 503);
    struct fetch_event event = {
        .job = &job,
        .verdict = {.action = BIDE_ACTION_WAIT, .reason = BIDE_REASON_SERVER_HINT, .attempt = 1},
        .ended = true,
        .attempt = 1,
        .kind = BIDE_KIND_TRANSIENT,
        .status = 503,
        .text = "",
        .hint = {BIDE_HINT_WAIT, 2 * BIDE_S},
        .wait_ns = 2100 * BIDE_MS - 1,
        .time_ns = 10 * BIDE_MS};
    const char *text = logged((struct fetch_log){.json = true}, &event);
    assert_non_null(strstr(text, "{\"event\":\"outcome\",\"time\":\""));
    assert_non_null(strstr(text, "Z\",\"url\":\"http://h/p\",\"attempt\":1,\"attempts\":4,\"status\":503,"
                                 "\"kind\":\"transient\",\"text\":\"503\",\"took_ms\":10,\"code\":null,"
                                 "\"hint_ms\":2000}\n{\"event\":\"wait\",\"time\":\""));
    assert_non_null(strstr(text, "Z\",\"url\":\"http://h/p\",\"attempt\":1,\"attempts\":4,\"wait_ms\":2100,"
                                 "\"reason\":\"server_hint\"}\n"));
    event.verdict.action = BIDE_ACTION_NONE;
    text = logged((struct fetch_log){.json = true, .target = "t"}, &event);
    assert_non_null(strstr(text, "Z\",\"target\":\"t\",\"url\""));
    assert_null(strstr(text, "wait"));
    assert_string_equal(logged((struct fetch_log){.verbose = true}, &event), "");
}

static void closed_pipe_is_not_reported(void **state)
{
    struct fetch_job job = gave_up(BIDE_REASON_CANCELLED, CURLE_WRITE_ERROR, 200);
    struct fetch_event event = {.job = &job, .verdict = job.verdict, .text = ""};
    job.error = EPIPE;
    assert_string_equal(logged((struct fetch_log){0}, &event), "");
    job.error = ENOSPC;
    assert_string_equal(logged((struct fetch_log){0}, &event),
                        "bide: http://h/p: cannot write to standard output: No space left on device\n");
}

static void bytes_are_formatted_with_three_digits(void **state)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {{0, "0 B"},         {999, "999 B"},         {1000, "1.0 kB"},       {99949, "99.9 kB"},
                 {100000, "100 kB"}, {1234567890, "1.2 GB"}, {UINT64_MAX, "18.4 EB"}};
    char text[FETCH_BYTES_SIZE];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(fetch_bytes_text(text, cases[i].bytes), cases[i].text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(success_exits_0_unless_output_could_not_be_written),
        cmocka_unit_test(failure_response_exits_22),
        cmocka_unit_test(failure_without_response_exits_with_curl_code),
        cmocka_unit_test(deadline_exits_124),
        cmocka_unit_test(unsent_request_exits_75_or_125),
        cmocka_unit_test(signal_exits_128_plus_number),
        cmocka_unit_test(retry_is_one_line_with_attempt_reason_and_wait),
        cmocka_unit_test(failed_attempt_is_outcome_then_wait_in_json),
        cmocka_unit_test(closed_pipe_is_not_reported),
        cmocka_unit_test(bytes_are_formatted_with_three_digits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
