/* test_listener.c - what a call writes into the ring: which events, which spans, what is counted as lost. */
#include <bide/bide.h>

#include "telemetry/dropped.h"
#include "telemetry/listener.h"
#include "telemetry/meters.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct telemetry_listener_options options = {
    .spans = true, .sampler.limit = TELEMETRY_SAMPLER_ALL, .ring_bytes = 65536};

static int begin(void **state)
{
    (void)state;
    options.spans = true;
    options.log = false;
    return telemetry_meters_begin(8) && telemetry_listener_begin(&options, NULL) == BIDE_OK ? 0 : -1;
}

static int begin_log(void **state)
{
    (void)state;
    options.spans = false;
    options.log = true;
    return telemetry_listener_begin(&options, NULL) == BIDE_OK ? 0 : -1;
}

static const struct telemetry_record *peek(void)
{
    size_t size;
    return telemetry_listener_peek(&size);
}

static int end(void **state)
{
    (void)state;
    telemetry_listener_end();
    while (peek() != NULL)
        telemetry_listener_pop();
    return 0;
}

static uint32_t failures;
static struct bide_target *target = BIDE_NO_TARGET; /* NULL: found by name, the shortest way to a record */

static struct bide_outcome attempt(void *context, const struct bide_verdict *start)
{
    (void)context;
    return bide_classify_http(start->attempt <= failures ? 503 : 200, NULL);
}

static void call(uint32_t fails)
{
    struct bide_policy policy;
    bide_policy_init(&policy, BIDE_PRESET_SERVICE);
    policy.backoff = BIDE_BACKOFF_NONE;
    failures = fails;
    struct bide_job job = {
        .name = "inventory", .policy = &policy, .target = target, .request.safety = BIDE_SAFE, .attempt = attempt};
    bide_run(&job);
}

static void check_record_of_success(void)
{
    const struct telemetry_record *record = peek();
    assert_non_null(record);
    assert_true(record->is_sampled && record->attempt_ended && record->call_ended);
    assert_true(record->kind == BIDE_KIND_OK && record->evidence == BIDE_EVIDENCE_ANSWERED);
    assert_true(record->action == BIDE_ACTION_DONE && record->reason == BIDE_REASON_SUCCEEDED);
    assert_true(record->attempt == 1 && record->attempts == 1 && record->attempt_kind == BIDE_ATTEMPT_REGULAR);
    assert_true(record->span != 0 && record->call_id != 0 && record->span != record->call_id);
    assert_true((record->trace_hi | record->trace_lo) != 0 && record->inbound_id == 0);
    assert_int_equal(record->trace_flags, BIDE_TRACE_SAMPLED | BIDE_TRACE_RANDOM);
    assert_true(record->begin_ns == record->start_ns && record->now_ns >= record->begin_ns);
    assert_true(record->delay_ns == 0 && record->hint_ns == 0 && record->status == 0);
    assert_true(record->wake_ns == BIDE_NEVER && record->texts_dropped == 0);
    assert_int_equal(record->length[TELEMETRY_TEXT_TARGET], strlen("inventory"));
    assert_int_equal(record->length[TELEMETRY_TEXT_URL], 0);
    assert_memory_equal(telemetry_record_text(record, TELEMETRY_TEXT_TARGET), "inventory", strlen("inventory"));
    telemetry_listener_pop();
    assert_null(peek());
}

/* On each way that lib/os/blocking.c has for it. */
static void a_call_that_succeeds_at_once_is_one_record(void **state)
{
    (void)state;
    for (int i = 0; i < 6; i++) {
        target = i % 2 == 0 ? NULL : BIDE_NO_TARGET;
        call(0);
        check_record_of_success();
    }
}

static void a_trace_that_is_not_sampled_is_no_record(void **state)
{
    (void)state;
    telemetry_listener_end();
    options.sampler.limit = 0;
    assert_int_equal(telemetry_listener_begin(&options, NULL), BIDE_OK);
    for (int i = 0; i < 6; i++) {
        target = i % 2 == 0 ? NULL : BIDE_NO_TARGET;
        call(i > 3);
    }
    assert_null(peek());
    options.sampler.limit = TELEMETRY_SAMPLER_ALL;
}

static void each_attempt_that_ends_is_a_record(void **state)
{
    uint64_t call_id = 0, trace_lo = 0;
    (void)state;
    call(1);
    for (uint32_t i = 1; i <= 2; i++) {
        const struct telemetry_record *record = peek();
        assert_non_null(record);
        assert_int_equal(record->attempt, i);
        assert_int_equal(record->call_ended, i == 2);
        assert_true(i == 1 || (record->call_id == call_id && record->trace_lo == trace_lo));
        call_id = record->call_id;
        trace_lo = record->trace_lo;
        telemetry_listener_pop();
    }
    assert_null(peek());
}

static void a_full_ring_drops_the_newest_and_counts_both_spans(void **state)
{
    (void)state;
    for (int way = 0; way < 2; way++) {
        uint64_t before = telemetry_dropped_get(TELEMETRY_SPANS, TELEMETRY_RING_FULL), kept = 0;
        target = way == 0 ? NULL : BIDE_NO_TARGET;
        for (int i = 0; i < 2000; i++)
            call(0);
        for (; peek() != NULL; kept++)
            telemetry_listener_pop();
        uint64_t lost = telemetry_dropped_get(TELEMETRY_SPANS, TELEMETRY_RING_FULL) - before;
        assert_true(kept > 100 && lost > 100);
        assert_int_equal(2 * kept + lost, 2 * 2000);
    }
}

static bool is_woken(void)
{
    struct pollfd fd = {.fd = telemetry_listener_fd(), .events = POLLIN};
    return poll(&fd, 1, 0) == 1;
}

static void a_call_wakes_the_consumer_once_per_batch(void **state)
{
    (void)state;
    assert_true(telemetry_listener_sleep(1000));
    call(0);
    assert_false(is_woken());
    for (int i = 0; i < 10; i++)
        call(0);
    assert_true(is_woken());
    telemetry_listener_awake();
    assert_false(is_woken());
    call(0);
    assert_false(is_woken());
}

static void calls_after_the_stop_are_not_recorded(void **state)
{
    (void)state;
    telemetry_listener_end();
    call(0);
    assert_null(peek());
    assert_int_equal(telemetry_listener_begin(&options, NULL), BIDE_OK);
}

static void a_second_listener_is_refused(void **state)
{
    struct bide_problem problem;
    (void)state;
    assert_int_equal(telemetry_listener_begin(&options, &problem), BIDE_ERR_BUSY);
    assert_true(problem.text[0] != '\0');
}

/* The child's calls are counted as lost, until it starts telemetry itself; then its ring is empty. */
static int child(void)
{
    telemetry_listener_forked();
    uint64_t before = telemetry_dropped_get(TELEMETRY_SPANS, TELEMETRY_SHUTDOWN);
    call(0);
    if (telemetry_dropped_get(TELEMETRY_SPANS, TELEMETRY_SHUTDOWN) != before + 2)
        return 1;
    telemetry_listener_end();
    if (telemetry_listener_begin(&options, NULL) != BIDE_OK || peek() != NULL)
        return 2;
    call(0);
    return peek() != NULL ? 0 : 3;
}

static void a_forked_child_records_nothing_until_it_starts_telemetry(void **state)
{
    int status = 0;
    (void)state;
    call(0);
    pid_t pid = fork();
    if (pid == 0)
        _exit(child());
    assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
    assert_int_equal(status, 0);
    assert_non_null(peek()); /* of the parent */
    telemetry_listener_pop();
    assert_null(peek());
}

static void the_log_gets_failures_and_the_end_of_calls_that_gave_up(void **state)
{
    uint32_t records = 0;
    (void)state;
    call(0);
    assert_null(peek());
    call(1);
    call(100);
    for (const struct telemetry_record *record; (record = peek()) != NULL; records++) {
        assert_false(record->is_sampled);
        assert_true(record->kind != BIDE_KIND_OK);
        telemetry_listener_pop();
    }
    assert_true(records >= 3);
}

static void a_ratio_samples_by_the_random_bits_of_the_trace(void **state)
{
    struct telemetry_sampler quarter = {.limit = TELEMETRY_SAMPLER_ALL / 4}, by_parent = {.parent_based = true};
    struct bide_trace trace = {.trace_lo = TELEMETRY_SAMPLER_ALL / 4 - 1};
    (void)state;
    assert_true(telemetry_sampler_decide(&quarter, &trace));
    trace.trace_lo++;
    assert_false(telemetry_sampler_decide(&quarter, &trace));
    trace.trace_lo = UINT64_C(0xab) << 56; /* these bits need not be random */
    assert_true(telemetry_sampler_decide(&quarter, &trace));
    assert_false(telemetry_sampler_decide(&by_parent, &trace));
    trace.flags = BIDE_TRACE_SAMPLED;
    assert_false(telemetry_sampler_decide(&by_parent, &trace)); /* without a parent the flag says nothing */
    trace.parent = 1;
    assert_true(telemetry_sampler_decide(&by_parent, &trace));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_call_that_succeeds_at_once_is_one_record, begin, end),
        cmocka_unit_test_setup_teardown(a_trace_that_is_not_sampled_is_no_record, begin, end),
        cmocka_unit_test_setup_teardown(each_attempt_that_ends_is_a_record, begin, end),
        cmocka_unit_test_setup_teardown(a_full_ring_drops_the_newest_and_counts_both_spans, begin, end),
        cmocka_unit_test_setup_teardown(a_call_wakes_the_consumer_once_per_batch, begin, end),
        cmocka_unit_test_setup_teardown(calls_after_the_stop_are_not_recorded, begin, end),
        cmocka_unit_test_setup_teardown(a_second_listener_is_refused, begin, end),
        cmocka_unit_test_setup_teardown(a_forked_child_records_nothing_until_it_starts_telemetry, begin, end),
        cmocka_unit_test_setup_teardown(the_log_gets_failures_and_the_end_of_calls_that_gave_up, begin_log, end),
        cmocka_unit_test(a_ratio_samples_by_the_random_bits_of_the_trace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
