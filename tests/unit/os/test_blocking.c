/* test_blocking.c - bide_run: executes every verdict with one action, reports it, and ends.
 *
 * Time is virtual: clock_gettime is replaced by a function of this file, and the listener, which is called before a
 * wait begins, advances the clock. So a wait of an hour is over at once. That real waits last as long as they should is
 * tested in tests/live/os/test_wait.c. */
#define _GNU_SOURCE
#include <bide/bide.h>

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define LOG_MOST 32

static int64_t virtual_ns = 1000 * BIDE_S;

/* Replaces libc's, for every clock. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
    *now = (struct timespec){.tv_sec = virtual_ns / BIDE_S, .tv_nsec = virtual_ns % BIDE_S};
    return 0;
}

/* One call: the outcomes of its attempts, and what was observed. */
struct test_call {
    struct bide_outcome script[8]; /* the last one repeats */
    int scripted;
    int64_t attempt_ns; /* duration of each attempt */
    struct bide_cancel cancel;
    int cancel_at_attempt; /* during that attempt; 0: never */
    enum bide_action cancel_at_event;
    int64_t suspend_ns; /* the machine is suspended for this long in the first wait */

    int attempts;
    int waits;
    int64_t started_ns[8];
    struct bide_verdict start[8];
    int events;
    struct bide_verdict reported[LOG_MOST];
    bool has_outcome[LOG_MOST];
};

static const struct bide_outcome success = {.kind = BIDE_KIND_OK};
static const struct bide_outcome not_sent = {.kind = BIDE_KIND_TRANSIENT, .evidence = BIDE_EVIDENCE_NOT_SENT};

static struct bide_outcome make_attempt(void *context, const struct bide_verdict *start)
{
    struct test_call *s = context;
    int i = s->attempts++;
    assert_true(i < 8);
    s->started_ns[i] = virtual_ns;
    s->start[i] = *start;
    virtual_ns += s->attempt_ns;
    if (s->attempts == s->cancel_at_attempt)
        bide_cancel_now(&s->cancel);
    return s->script[i < s->scripted ? i : s->scripted - 1];
}

static void record_event(void *context, const struct bide_event *event)
{
    struct test_call *s = context;
    assert_true(s->events < LOG_MOST);
    s->reported[s->events] = *event->verdict;
    s->has_outcome[s->events++] = event->outcome != NULL;
    assert_int_equal(event->now_ns, virtual_ns);
    if (event->verdict->action == BIDE_ACTION_WAIT) {
        s->waits++;
        virtual_ns = event->verdict->wake_ns + s->suspend_ns;
        s->suspend_ns = 0;
    }
    if (s->cancel_at_event != BIDE_ACTION_NONE && event->verdict->action == s->cancel_at_event)
        bide_cancel_now(&s->cancel);
}

static struct bide_policy fixed_backoff(uint32_t attempts_max, int64_t wait_ns)
{
    struct bide_policy policy;
    bide_policy_init(&policy, BIDE_PRESET_SERVICE);
    policy.attempts_max = attempts_max;
    policy.backoff = BIDE_BACKOFF_FIXED;
    policy.jitter = BIDE_JITTER_NONE;
    policy.base_ns = policy.cap_ns = wait_ns;
    policy.call_timeout_ns = BIDE_NEVER;
    assert_int_equal(bide_policy_check(&policy, NULL), BIDE_OK);
    return policy;
}

static struct bide_verdict run_call(struct test_call *s, const struct bide_policy *policy, bool cancellable)
{
    struct bide_job job = {
        .policy = policy,
        .target = BIDE_NO_TARGET,
        .attempt = make_attempt,
        .event = record_event,
        .context = s,
        .cancel = cancellable ? &s->cancel : NULL,
    };
    return bide_run(&job);
}

static void assert_reported(const struct test_call *s, const enum bide_action *actions, int count)
{
    assert_int_equal(s->events, count);
    for (int i = 0; i < count; i++)
        assert_int_equal(s->reported[i].action, actions[i]);
}

/* -- Executing verdicts -------------------------------------------------------------------------------------------- */

static void successful_call_makes_one_attempt_and_no_wait(void **state)
{
    struct test_call s = {.script = {success}, .scripted = 1};
    struct bide_policy policy = fixed_backoff(3, BIDE_S);
    struct bide_verdict end = run_call(&s, &policy, false);
    assert_int_equal(end.action, BIDE_ACTION_DONE);
    assert_int_equal(end.attempt, 1);
    assert_int_equal(s.attempts, 1);
    assert_int_equal(s.waits, 0);
    assert_reported(&s, (enum bide_action[]){BIDE_ACTION_START, BIDE_ACTION_DONE}, 2);
}

static void failure_is_retried_after_exactly_the_verdict_s_wait(void **state)
{
    struct test_call s = {.script = {not_sent, not_sent, success}, .scripted = 3, .attempt_ns = 7 * BIDE_MS};
    struct bide_policy policy = fixed_backoff(4, 60 * BIDE_MINUTE);
    struct bide_verdict end = run_call(&s, &policy, false);
    assert_int_equal(end.action, BIDE_ACTION_DONE);
    assert_int_equal(end.attempt, 3);
    assert_int_equal(s.attempts, 3);
    for (int i = 1; i < 3; i++)
        assert_int_equal(s.started_ns[i] - s.started_ns[i - 1], 60 * BIDE_MINUTE + 7 * BIDE_MS);
    assert_int_equal(s.waits, 2);
}

static void last_attempt_is_not_followed_by_a_wait(void **state)
{
    struct test_call s = {.script = {not_sent}, .scripted = 1};
    struct bide_policy policy = fixed_backoff(3, BIDE_S);
    struct bide_verdict end = run_call(&s, &policy, false);
    assert_int_equal(end.action, BIDE_ACTION_GIVE_UP);
    assert_int_equal(end.reason, BIDE_REASON_ATTEMPTS_SPENT);
    assert_int_equal(s.attempts, 3);
    assert_int_equal(s.waits, 2);
}

static void attempt_receives_its_number_and_its_deadlines(void **state)
{
    struct test_call s = {.script = {not_sent, success}, .scripted = 2};
    struct bide_policy policy = fixed_backoff(3, BIDE_S);
    policy.attempt_timeout_ns = 5 * BIDE_S;
    policy.connect_timeout_ns = 2 * BIDE_S;
    run_call(&s, &policy, false);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(s.start[i].attempt, i + 1);
        assert_int_equal(s.start[i].attempt_deadline_ns, s.started_ns[i] + 5 * BIDE_S);
        assert_int_equal(s.start[i].connect_deadline_ns, s.started_ns[i] + 2 * BIDE_S);
    }
}

static void slow_attempt_is_not_hedged(void **state)
{
    struct test_call s = {.script = {success}, .scripted = 1, .attempt_ns = 10 * BIDE_S};
    struct bide_policy policy = fixed_backoff(3, BIDE_S);
    policy.hedges_max = 2;
    policy.hedge_delay_ns = 50 * BIDE_MS;
    struct bide_job job = {
        .policy = &policy, .target = BIDE_NO_TARGET, .attempt = make_attempt, .event = record_event, .context = &s};
    job.request.safety = BIDE_SAFE;
    struct bide_verdict end = bide_run(&job);
    assert_true(s.start[0].wake_ns != BIDE_NEVER); /* a hedge was due */
    assert_int_equal(end.action, BIDE_ACTION_DONE);
    assert_int_equal(s.attempts, 1);
}

static void empty_budget_ends_the_call(void **state)
{
    struct bide_target_config config;
    struct bide_target target;
    bide_target_config_init(&config, BIDE_PRESET_SERVICE);
    config.budget.capacity_milli = config.budget.initial_milli = 1000;
    config.budget.cost_milli = config.budget.cost_throttled_milli = config.budget.cost_timeout_milli = 1000;
    assert_int_equal(bide_target_init(&target, &config, virtual_ns, NULL), BIDE_OK);
    struct test_call s = {.script = {not_sent}, .scripted = 1};
    struct bide_policy policy = fixed_backoff(4, BIDE_S);
    struct bide_job job = {
        .policy = &policy, .target = &target, .attempt = make_attempt, .event = record_event, .context = &s};
    struct bide_verdict end = bide_run(&job);
    assert_int_equal(end.action, BIDE_ACTION_GIVE_UP);
    assert_int_equal(end.reason, BIDE_REASON_BUDGET_EMPTY);
    assert_int_equal(s.attempts, 2);
}

/* The engine answers a very late wake-up with another wait. */
static void late_wake_up_is_followed_by_another_jittered_wait(void **state)
{
    struct test_call s = {.script = {not_sent, success}, .scripted = 2, .suspend_ns = 60 * BIDE_MINUTE};
    struct bide_policy policy = fixed_backoff(3, BIDE_S);
    policy.jitter = BIDE_JITTER_FULL;
    struct bide_verdict end = run_call(&s, &policy, false);
    assert_int_equal(end.action, BIDE_ACTION_DONE);
    assert_reported(&s,
                    (enum bide_action[]){BIDE_ACTION_START, BIDE_ACTION_WAIT, BIDE_ACTION_WAIT, BIDE_ACTION_START,
                                         BIDE_ACTION_DONE},
                    5);
    assert_int_equal(s.reported[2].reason, BIDE_REASON_LATE_WAKE);
}

/* -- Reporting ----------------------------------------------------------------------------------------------------- */

static void every_verdict_is_reported_with_the_outcome_that_led_to_it(void **state)
{
    struct test_call s = {.script = {not_sent, success}, .scripted = 2};
    struct bide_policy policy = fixed_backoff(3, BIDE_S);
    run_call(&s, &policy, false);
    assert_reported(&s, (enum bide_action[]){BIDE_ACTION_START, BIDE_ACTION_WAIT, BIDE_ACTION_START, BIDE_ACTION_DONE},
                    4);
    const bool with_outcome[] = {false, true, false, true};
    assert_memory_equal(s.has_outcome, with_outcome, sizeof with_outcome);
}

static void listener_is_optional(void **state)
{
    struct test_call s = {.script = {not_sent, success}, .scripted = 2};
    struct bide_policy policy = fixed_backoff(3, BIDE_S);
    policy.backoff = BIDE_BACKOFF_NONE;
    struct bide_job job = {.policy = &policy, .target = BIDE_NO_TARGET, .attempt = make_attempt, .context = &s};
    assert_int_equal(bide_run(&job).action, BIDE_ACTION_DONE);
}

/* -- Seeds --------------------------------------------------------------------------------------------------------- */

static int64_t first_wait_ns(uint64_t seed)
{
    struct test_call s = {.script = {not_sent, success}, .scripted = 2};
    struct bide_policy policy = fixed_backoff(3, 60 * BIDE_MINUTE);
    policy.jitter = BIDE_JITTER_FULL;
    struct bide_job job = {
        .policy = &policy, .target = BIDE_NO_TARGET, .attempt = make_attempt, .event = record_event, .context = &s};
    job.request.seed = seed;
    bide_run(&job);
    return s.started_ns[1] - s.started_ns[0];
}

static void same_seed_gives_the_same_waits(void **state)
{
    assert_int_equal(first_wait_ns(42), first_wait_ns(42));
    assert_int_not_equal(first_wait_ns(42), first_wait_ns(43));
    assert_int_not_equal(first_wait_ns(0), first_wait_ns(0));
}

/* -- Cancelling ---------------------------------------------------------------------------------------------------- */

static void call_cancelled_before_its_start_makes_and_reports_no_attempt(void **state)
{
    struct test_call s = {.script = {success}, .scripted = 1};
    struct bide_policy policy = fixed_backoff(3, BIDE_S);
    assert_int_equal(bide_cancel_init(&s.cancel), BIDE_OK);
    bide_cancel_now(&s.cancel);
    struct bide_verdict end = run_call(&s, &policy, true);
    assert_int_equal(end.action, BIDE_ACTION_GIVE_UP);
    assert_int_equal(end.reason, BIDE_REASON_CANCELLED);
    assert_int_equal(s.attempts, 0);
    assert_reported(&s, (enum bide_action[]){BIDE_ACTION_GIVE_UP}, 1);
    bide_cancel_free(&s.cancel);
}

static void success_after_cancellation_is_still_a_success(void **state)
{
    struct test_call s = {.script = {success}, .scripted = 1, .cancel_at_attempt = 1};
    struct bide_policy policy = fixed_backoff(3, BIDE_S);
    assert_int_equal(bide_cancel_init(&s.cancel), BIDE_OK);
    assert_int_equal(run_call(&s, &policy, true).action, BIDE_ACTION_DONE);
    bide_cancel_free(&s.cancel);
}

static void failure_after_cancellation_is_reported_and_then_ends_the_call(void **state)
{
    struct test_call s = {.script = {not_sent}, .scripted = 1, .cancel_at_attempt = 1};
    struct bide_policy policy = fixed_backoff(3, 60 * BIDE_MINUTE);
    assert_int_equal(bide_cancel_init(&s.cancel), BIDE_OK);
    struct bide_verdict end = run_call(&s, &policy, true);
    assert_int_equal(end.action, BIDE_ACTION_GIVE_UP);
    assert_int_equal(end.reason, BIDE_REASON_CANCELLED);
    assert_int_equal(s.attempts, 1);
    assert_reported(&s, (enum bide_action[]){BIDE_ACTION_START, BIDE_ACTION_WAIT, BIDE_ACTION_GIVE_UP}, 3);
    bide_cancel_free(&s.cancel);
}

static void retry_without_a_wait_is_cancelled_too(void **state)
{
    const struct bide_outcome lost_race = {.kind = BIDE_KIND_CONFLICT, .evidence = BIDE_EVIDENCE_NOT_SENT};
    struct test_call s = {.script = {lost_race}, .scripted = 1, .cancel_at_attempt = 1};
    struct bide_policy policy = fixed_backoff(3, 60 * BIDE_MINUTE);
    policy.conflict_at_once = true;
    assert_int_equal(bide_cancel_init(&s.cancel), BIDE_OK);
    assert_int_equal(run_call(&s, &policy, true).reason, BIDE_REASON_CANCELLED);
    assert_int_equal(s.attempts, 1);
    bide_cancel_free(&s.cancel);
}

static void listener_may_cancel(void **state)
{
    struct test_call s = {.script = {not_sent}, .scripted = 1, .cancel_at_event = BIDE_ACTION_WAIT};
    struct bide_policy policy = fixed_backoff(3, 60 * BIDE_MINUTE);
    assert_int_equal(bide_cancel_init(&s.cancel), BIDE_OK);
    assert_int_equal(run_call(&s, &policy, true).reason, BIDE_REASON_CANCELLED);
    assert_int_equal(s.attempts, 1);
    bide_cancel_free(&s.cancel);
}

static void cancelled_retry_refunds_its_token(void **state)
{
    struct bide_target_config config;
    struct bide_target target;
    bide_target_config_init(&config, BIDE_PRESET_SERVICE);
    assert_int_equal(bide_target_init(&target, &config, virtual_ns, NULL), BIDE_OK);
    struct test_call s = {.script = {not_sent}, .scripted = 1, .cancel_at_attempt = 1};
    struct bide_policy policy = fixed_backoff(3, 60 * BIDE_MINUTE);
    struct bide_job job = {
        .policy = &policy, .target = &target, .attempt = make_attempt, .context = &s, .cancel = &s.cancel};
    int64_t before = bide_target_get(&target, virtual_ns).budget_left_milli;
    assert_int_equal(bide_cancel_init(&s.cancel), BIDE_OK);
    assert_int_equal(bide_run(&job).reason, BIDE_REASON_CANCELLED);
    assert_int_equal(bide_target_get(&target, virtual_ns).budget_left_milli, before);
    bide_cancel_free(&s.cancel);
}

static struct bide_target *target_named(const char *name)
{
    return bide_targets_find(bide_targets_default(), name);
}

static void name_safety_and_function_are_enough(void **state)
{
    struct test_call s = {.script = {not_sent, success}, .scripted = 2};
    struct bide_job job = {.name = "inventory", .request.safety = BIDE_SAFE, .attempt = make_attempt, .context = &s};
    job.event = record_event; /* which advances the clock */
    assert_int_equal(bide_run(&job).action, BIDE_ACTION_DONE);
    assert_int_equal(s.attempts, 2);
    struct bide_target *target = target_named("inventory");
    assert_non_null(target);
    assert_null(target_named("default"));
    assert_true(bide_target_get(target, virtual_ns).budget_left_milli < 10000); /* the retry was charged */
}

static void calls_of_one_name_share_a_budget(void **state)
{
    struct test_call s = {.script = {not_sent}, .scripted = 1};
    struct bide_policy policy = fixed_backoff(8, BIDE_MS);
    struct bide_job job = {
        .name = "orders", .policy = &policy, .attempt = make_attempt, .event = record_event, .context = &s};
    enum bide_reason reason = BIDE_REASON_ATTEMPTS_SPENT;
    for (int i = 0; i < 20 && reason == BIDE_REASON_ATTEMPTS_SPENT; i++) {
        s.attempts = s.events = 0;
        reason = bide_run(&job).reason;
    }
    assert_true(reason == BIDE_REASON_BUDGET_EMPTY || reason == BIDE_REASON_BREAKER_OPEN);
    job.name = "customers";
    s.attempts = s.events = 0;
    assert_int_equal(bide_run(&job).reason, BIDE_REASON_ATTEMPTS_SPENT);
}

static void call_without_a_name_has_the_target_named_default(void **state)
{
    struct test_call s = {.script = {success}, .scripted = 1};
    struct bide_job job = {.attempt = make_attempt, .context = &s};
    assert_int_equal(bide_run(&job).action, BIDE_ACTION_DONE);
    assert_non_null(target_named("default"));
}

static void call_without_a_target_meets_no_gate_and_leaves_no_name(void **state)
{
    struct test_call s = {.script = {not_sent}, .scripted = 1};
    struct bide_policy policy = fixed_backoff(8, BIDE_MS);
    struct bide_job job = {.name = "unused", .policy = &policy, .target = BIDE_NO_TARGET, .attempt = make_attempt};
    job.event = record_event;
    job.context = &s;
    for (int i = 0; i < 20; i++) {
        s.attempts = s.events = 0;
        assert_int_equal(bide_run(&job).reason, BIDE_REASON_ATTEMPTS_SPENT);
    }
    assert_null(target_named("unused"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(successful_call_makes_one_attempt_and_no_wait),
        cmocka_unit_test(failure_is_retried_after_exactly_the_verdict_s_wait),
        cmocka_unit_test(last_attempt_is_not_followed_by_a_wait),
        cmocka_unit_test(attempt_receives_its_number_and_its_deadlines),
        cmocka_unit_test(slow_attempt_is_not_hedged),
        cmocka_unit_test(empty_budget_ends_the_call),
        cmocka_unit_test(late_wake_up_is_followed_by_another_jittered_wait),
        cmocka_unit_test(every_verdict_is_reported_with_the_outcome_that_led_to_it),
        cmocka_unit_test(listener_is_optional),
        cmocka_unit_test(same_seed_gives_the_same_waits),
        cmocka_unit_test(call_cancelled_before_its_start_makes_and_reports_no_attempt),
        cmocka_unit_test(success_after_cancellation_is_still_a_success),
        cmocka_unit_test(failure_after_cancellation_is_reported_and_then_ends_the_call),
        cmocka_unit_test(retry_without_a_wait_is_cancelled_too),
        cmocka_unit_test(listener_may_cancel),
        cmocka_unit_test(cancelled_retry_refunds_its_token),
        cmocka_unit_test(name_safety_and_function_are_enough),
        cmocka_unit_test(calls_of_one_name_share_a_budget),
        cmocka_unit_test(call_without_a_name_has_the_target_named_default),
        cmocka_unit_test(call_without_a_target_meets_no_gate_and_leaves_no_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
