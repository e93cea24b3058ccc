/* test_safety.c - a call whose safety becomes known only when the request is about to be sent. */
#include "call_world.h"

static void a_request_that_turns_out_unsafe_is_not_repeated(void **state)
{
    (void)state;
    open_default();
    begin(T0);
    assert_action(bide_call_safety(&call, BIDE_UNSAFE, T0), BIDE_ACTION_NONE, BIDE_REASON_NOTHING);
    assert_action(report(1, failed, T0 + S), BIDE_ACTION_GIVE_UP, BIDE_REASON_NOT_REPEATABLE);
}

static void a_request_that_turns_out_idempotent_is_repeated(void **state)
{
    (void)state;
    open_default();
    begin(T0);
    bide_call_safety(&call, BIDE_IDEMPOTENT, T0);
    assert_action(report(1, failed, T0 + S), BIDE_ACTION_WAIT, BIDE_REASON_BACKOFF);
}

static void an_invalid_safety_is_unsafe(void **state)
{
    (void)state;
    open_default();
    begin(T0);
    bide_call_safety(&call, (enum bide_safety)99, T0);
    assert_action(report(1, failed, T0 + S), BIDE_ACTION_GIVE_UP, BIDE_REASON_NOT_REPEATABLE);
}

static void a_missing_key_is_detected_before_anything_is_sent(void **state)
{
    (void)state;
    reset_world();
    policy.require_key = true;
    open_target();
    assert_action(begin(T0), BIDE_ACTION_START, BIDE_REASON_FIRST_ATTEMPT);
    assert_action(bide_call_safety(&call, BIDE_UNSAFE, T0), BIDE_ACTION_GIVE_UP, BIDE_REASON_KEY_REQUIRED);
    assert_action(report(1, failed, T0 + S), BIDE_ACTION_NONE, BIDE_REASON_NOTHING); /* the call has ended */
    begin(T0);
    assert_action(bide_call_safety(&call, BIDE_KEYED, T0), BIDE_ACTION_NONE, BIDE_REASON_NOTHING);
}

static void the_key_gate_in_observe_mode_reports_the_missing_key(void **state)
{
    (void)state;
    reset_world();
    policy.require_key = true;
    policy.observe = BIDE_GATE_KEY;
    open_target();
    begin(T0);
    struct bide_verdict v = bide_call_safety(&call, BIDE_UNSAFE, T0);
    assert_action(v, BIDE_ACTION_NONE, BIDE_REASON_NOTHING);
    assert_int_equal(v.observed, BIDE_GATE_KEY);
}

static void a_hedge_is_planned_only_for_a_repeatable_request(void **state)
{
    (void)state;
    reset_world();
    policy.hedges_max = 1;
    policy.hedge_delay_ns = 400 * MS;
    open_target();
    assert_int_equal(begin(T0).wake_ns, T0 + 400 * MS);
    assert_int_equal(bide_call_safety(&call, BIDE_IDEMPOTENT, T0).wake_ns, T0 + 400 * MS);
    assert_int_equal(bide_call_safety(&call, BIDE_UNSAFE, T0).wake_ns, NEVER);
    assert_action(wake(T0 + 500 * MS), BIDE_ACTION_NONE, BIDE_REASON_NOTHING);
}

static void the_hint_of_a_round_is_kept(void **state)
{
    (void)state;
    reset_world();
    policy.hedges_max = 1;
    policy.hedge_delay_ns = 400 * MS;
    open_target();
    begin(T0);
    wake(T0 + 400 * MS);
    report(1, with_hint(failed, 5 * S), T0 + 500 * MS);
    assert_int_equal(bide_call_safety(&call, BIDE_SAFE, T0 + 500 * MS).wake_ns, NEVER);
    struct bide_verdict v = report(2, failed, T0 + 600 * MS);
    assert_action(v, BIDE_ACTION_WAIT, BIDE_REASON_SERVER_HINT);
    assert_true(v.wake_ns >= T0 + 5500 * MS);
}

static void the_safety_may_be_set_while_the_call_waits(void **state)
{
    (void)state;
    open_default();
    begin(T0);
    struct bide_verdict v = report(1, failed, T0);
    assert_int_equal(bide_call_safety(&call, BIDE_UNSAFE, T0).wake_ns, v.wake_ns);
    wake(v.wake_ns);
    assert_action(report(2, failed, v.wake_ns), BIDE_ACTION_GIVE_UP, BIDE_REASON_NOT_REPEATABLE);
}

static void setting_the_safety_before_begin_or_after_the_end_changes_nothing(void **state)
{
    (void)state;
    struct bide_call none = {0};
    assert_action(bide_call_safety(&none, BIDE_UNSAFE, T0), BIDE_ACTION_NONE, BIDE_REASON_NOTHING);
    open_default();
    begin(T0);
    report(1, good, T0);
    assert_action(bide_call_safety(&call, BIDE_UNSAFE, T0), BIDE_ACTION_NONE, BIDE_REASON_NOTHING);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_that_turns_out_unsafe_is_not_repeated),
        cmocka_unit_test(a_request_that_turns_out_idempotent_is_repeated),
        cmocka_unit_test(an_invalid_safety_is_unsafe),
        cmocka_unit_test(a_missing_key_is_detected_before_anything_is_sent),
        cmocka_unit_test(the_key_gate_in_observe_mode_reports_the_missing_key),
        cmocka_unit_test(a_hedge_is_planned_only_for_a_repeatable_request),
        cmocka_unit_test(the_hint_of_a_round_is_kept),
        cmocka_unit_test(the_safety_may_be_set_while_the_call_waits),
        cmocka_unit_test(setting_the_safety_before_begin_or_after_the_end_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
