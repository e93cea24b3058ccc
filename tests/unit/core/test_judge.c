/* test_judge.c - whether and when a failure is retried: the decisions of lib/core/judge.c.
 *
 * Which requests may be repeated, gates that refuse or observe, how long a call waits by its own backoff or by the
 * server's hint, and the hold-off that applies to all calls of a target. */
#include "call_world.h"

#include <bide/backoff.h>

/* ---- repeatable requests ---- */

static void an_unsafe_request_is_repeated_only_if_it_cannot_have_run(void **state)
{
    static const struct {
        struct bide_outcome outcome;
        uint32_t trust;
        bool repeated;
    } table[] = {
        {{.kind = BIDE_KIND_TRANSIENT, .evidence = BIDE_EVIDENCE_UNKNOWN}, 3, false},
        {{.kind = BIDE_KIND_TRANSIENT, .evidence = BIDE_EVIDENCE_NOT_SENT}, 0, true},
        {{.kind = BIDE_KIND_TRANSIENT, .evidence = BIDE_EVIDENCE_REJECTED}, 0, true},
        {{.kind = BIDE_KIND_TRANSIENT, .evidence = BIDE_EVIDENCE_ANSWERED}, 3, false},
        {{.kind = BIDE_KIND_THROTTLED, .evidence = BIDE_EVIDENCE_ANSWERED}, 0, false},
        {{.kind = BIDE_KIND_THROTTLED, .evidence = BIDE_EVIDENCE_ANSWERED}, BIDE_TRUST_UNAVAILABLE, false},
        {{.kind = BIDE_KIND_THROTTLED, .evidence = BIDE_EVIDENCE_ANSWERED}, BIDE_TRUST_THROTTLED, true},
        {{.kind = BIDE_KIND_TRANSIENT, .evidence = BIDE_EVIDENCE_ANSWERED, .flags = BIDE_FLAG_UNAVAILABLE}, 0, false},
        {{.kind = BIDE_KIND_TRANSIENT, .evidence = BIDE_EVIDENCE_ANSWERED, .flags = BIDE_FLAG_UNAVAILABLE},
         BIDE_TRUST_THROTTLED,
         false},
        {{.kind = BIDE_KIND_TRANSIENT, .evidence = BIDE_EVIDENCE_ANSWERED, .flags = BIDE_FLAG_UNAVAILABLE},
         BIDE_TRUST_UNAVAILABLE,
         true},
        {{.kind = BIDE_KIND_THROTTLED, .evidence = BIDE_EVIDENCE_UNKNOWN}, 3, false},
    };
    (void)state;
    reset_world();
    for (size_t i = 0; i < COUNT(table); i++) {
        config.trust = table[i].trust;
        policy.observe = 0;
        open_target();
        begin_as(&post, T0);
        if (table[i].repeated)
            assert_int_equal(report(1, table[i].outcome, T0).action, BIDE_ACTION_WAIT);
        else
            assert_action(report(1, table[i].outcome, T0), BIDE_ACTION_GIVE_UP, BIDE_REASON_NOT_REPEATABLE);
        begin_as(&get, T0);
        assert_int_equal(report(1, table[i].outcome, T0).action, BIDE_ACTION_WAIT);
        policy.observe = BIDE_GATE_REPEAT;
        begin_as(&post, T0);
        assert_int_equal(report(1, table[i].outcome, T0).observed, table[i].repeated ? 0 : BIDE_GATE_REPEAT);
    }
}

static void a_409_is_retried_only_for_a_keyed_request(void **state)
{
    struct bide_outcome running = {.evidence = BIDE_EVIDENCE_ANSWERED, .flags = BIDE_FLAG_KEY_409};
    (void)state;
    open_default();
    for (int safety = BIDE_UNSAFE; safety <= BIDE_KEYED; safety++) {
        struct bide_request request = {.safety = (enum bide_safety)safety};
        begin_as(&request, T0);
        assert_int_equal(report(1, running, T0).action, safety == BIDE_KEYED ? BIDE_ACTION_WAIT : BIDE_ACTION_GIVE_UP);
    }
    begin_as(&(struct bide_request){.safety = BIDE_KEYED}, T0);
    assert_action(report(1, hopeless, T0), BIDE_ACTION_GIVE_UP, BIDE_REASON_PERMANENT);
}

static void a_failure_flagged_once_is_retried_once(void **state)
{
    struct bide_outcome early = {.kind = BIDE_KIND_TRANSIENT, .flags = BIDE_FLAG_ONCE};
    (void)state;
    open_default();
    begin(T0);
    assert_int_equal(report(1, early, T0).action, BIDE_ACTION_WAIT);
    wake(T0 + S);
    assert_action(report(2, early, T0 + S), BIDE_ACTION_GIVE_UP, BIDE_REASON_PERMANENT);
}

static void an_inner_layer_does_not_retry(void **state)
{
    static const struct {
        enum bide_layer_rule rule;
        struct bide_inbound inbound;
        bool inner;
    } table[] = {
        {BIDE_LAYER_OUTERMOST, {0, false}, false}, {BIDE_LAYER_OUTERMOST, {1, false}, false},
        {BIDE_LAYER_OUTERMOST, {2, false}, true},  {BIDE_LAYER_OUTERMOST, {1, true}, true},
        {BIDE_LAYER_ANY, {5, false}, false},       {BIDE_LAYER_ANY, {0, true}, true},
        {BIDE_LAYER_NEVER, {0, false}, true},
    };
    (void)state;
    open_default();
    for (size_t i = 0; i < COUNT(table); i++) {
        struct bide_request request = {.safety = BIDE_SAFE, .inbound = table[i].inbound};
        policy.layer = table[i].rule;
        policy.observe = 0;
        begin_as(&request, T0);
        if (table[i].inner)
            assert_action(report(1, failed, T0), BIDE_ACTION_GIVE_UP, BIDE_REASON_INNER_LAYER);
        else
            assert_int_equal(report(1, failed, T0).action, BIDE_ACTION_WAIT);
        begin_as(&request, T0);
        assert_action(report(1, good, T0), BIDE_ACTION_DONE, BIDE_REASON_SUCCEEDED);
        policy.observe = BIDE_GATE_LAYER;
        begin_as(&request, T0);
        assert_int_equal(report(1, failed, T0).observed, table[i].inner ? BIDE_GATE_LAYER : 0);
    }
}

/* ---- gates ---- */

static void a_breaker_that_will_be_open_at_the_wake_refuses_the_wait(void **state)
{
    (void)state;
    for (int observe = 0; observe < 2; observe++) {
        open_breaker_of_three();
        config.observe = observe ? BIDE_GATE_BREAKER : 0;
        open_target();
        begin(T0);
        bide_breaker_hold(&target, BIDE_HOLD_OPEN);
        struct bide_verdict v = report(1, failed, T0);
        assert_action(v, observe ? BIDE_ACTION_WAIT : BIDE_ACTION_GIVE_UP,
                      observe ? BIDE_REASON_BACKOFF : BIDE_REASON_BREAKER_OPEN);
        assert_int_equal(v.observed, observe ? BIDE_GATE_BREAKER : 0);
        v = begin(T0);
        assert_int_equal(v.action, observe ? BIDE_ACTION_START : BIDE_ACTION_GIVE_UP);
        assert_int_equal(v.observed, observe ? BIDE_GATE_BREAKER : 0);
    }
}

static void gates_that_refuse_a_first_attempt_may_only_observe(void **state)
{
    (void)state;
    for (int observe = 0; observe < 2; observe++) {
        reset_world();
        config.observe = observe ? BIDE_GATE_THROTTLE | BIDE_GATE_IN_FLIGHT : 0;
        config.throttle_k_milli = 2000;
        config.throttle_max_permille = 1000;
        config.in_flight_max = 1;
        open_target();
        assert_int_equal(begin(T0).action, BIDE_ACTION_START);
        struct bide_call second;
        struct bide_verdict v = bide_call_begin(&second, &policy, &target, &get, T0);
        assert_int_equal(v.action, observe ? BIDE_ACTION_START : BIDE_ACTION_GIVE_UP);
        assert_int_equal(v.observed, observe ? BIDE_GATE_IN_FLIGHT : 0);
        assert_int_equal(target.in_flight, observe ? 2 : 1);
        bide_call_cancel(&second, T0);
        target.lane[0].attempts += 1000000;
        v = bide_call_begin(&second, &policy, &target, &get, T0);
        assert_int_equal(v.action, observe ? BIDE_ACTION_START : BIDE_ACTION_GIVE_UP);
        assert_int_equal(v.observed, observe ? BIDE_GATE_THROTTLE | BIDE_GATE_IN_FLIGHT : 0);
        bide_call_cancel(&second, T0);
        cancel(T0);
        assert_nothing_held();
        assert_int_equal(target.refused[BIDE_GATE_INDEX(BIDE_GATE_THROTTLE)], 1);
    }
}

/* ---- random numbers ---- */

static void run_by_seed(uint64_t seed, int64_t wakes[3])
{
    struct bide_request request = {.safety = BIDE_SAFE, .seed = seed};
    int64_t now_ns = T0;
    open_target();
    begin_as(&request, now_ns);
    for (uint32_t i = 0; i < 3; i++) {
        wakes[i] = now_ns = report(i + 1, i == 1 ? with_hint(limited, S) : failed, now_ns).wake_ns;
        assert_int_equal(wake(now_ns).action, BIDE_ACTION_START);
    }
}

static void the_same_seed_gives_the_same_verdicts_and_another_seed_others(void **state)
{
    int64_t a[3], b[3], other[3];
    (void)state;
    reset_world();
    policy.jitter = BIDE_JITTER_FULL;
    for (uint64_t seed = 0; seed < 100; seed++) {
        run_by_seed(seed, a);
        run_by_seed(seed, b);
        run_by_seed(seed + 1, other);
        assert_memory_equal(a, b, sizeof a);
        assert_memory_not_equal(a, other, sizeof a);
    }
}

/* A gate that is added or active must not shift the waits. */
static void other_gates_do_not_shift_the_waits(void **state)
{
    int64_t plain[3], guarded[3];
    (void)state;
    reset_world();
    policy.jitter = BIDE_JITTER_FULL;
    run_by_seed(7, plain);
    config.throttle_k_milli = 2000;
    config.throttle_min_volume = 1000;
    config.in_flight_max = 5;
    config.breaker.kind = BIDE_BREAKER_BY_RUN;
    run_by_seed(7, guarded);
    assert_memory_equal(plain, guarded, sizeof plain);
}

/* ---- the wait ---- */

static void hints_are_followed_by_their_rule(void **state)
{
    static const struct {
        enum bide_hint_rule rule;
        enum bide_hint_long too_long;
        int64_t hint_ms, wait_ms; /* wait -1: gives up. Own backoff 100 ms, hint_max 10 s, over 2 s */
        enum bide_reason reason;
    } table[] = {
        {BIDE_HINT_RULE_FLOOR, 0, 3000, 3000, BIDE_REASON_SERVER_HINT},
        {BIDE_HINT_RULE_FLOOR, 0, 100, 100, BIDE_REASON_SERVER_HINT},
        {BIDE_HINT_RULE_FLOOR, 0, 99, 100, BIDE_REASON_BACKOFF},
        {BIDE_HINT_RULE_FLOOR, 0, 0, 100, BIDE_REASON_BACKOFF},
        {BIDE_HINT_RULE_FLOOR, 0, 10000, 10000, BIDE_REASON_SERVER_HINT},
        {BIDE_HINT_RULE_FLOOR, 0, 10001, -1, BIDE_REASON_HINT_TOO_LONG},
        {BIDE_HINT_RULE_FLOOR, BIDE_HINT_LONG_CLAMP, 10001, 10000, BIDE_REASON_SERVER_HINT},
        {BIDE_HINT_RULE_FLOOR, BIDE_HINT_LONG_IGNORE, 10001, 100, BIDE_REASON_BACKOFF},
        {BIDE_HINT_RULE_EXACT, 0, 3000, 3000, BIDE_REASON_SERVER_HINT},
        {BIDE_HINT_RULE_EXACT, 0, 20, 20, BIDE_REASON_SERVER_HINT},
        {BIDE_HINT_RULE_EXACT, 0, 0, 100, BIDE_REASON_BACKOFF},
        {BIDE_HINT_RULE_PUSHBACK, 0, 0, 0, BIDE_REASON_SERVER_HINT},
        {BIDE_HINT_RULE_PUSHBACK, 0, 20, 20, BIDE_REASON_SERVER_HINT},
        {BIDE_HINT_RULE_CLAMP, 0, 1000, 1000, BIDE_REASON_SERVER_HINT},
        {BIDE_HINT_RULE_CLAMP, 0, 20, 100, BIDE_REASON_SERVER_HINT},
        {BIDE_HINT_RULE_CLAMP, 0, 9000, 2100, BIDE_REASON_SERVER_HINT},
        {BIDE_HINT_RULE_IGNORE, 0, 3000, 100, BIDE_REASON_BACKOFF},
    };
    (void)state;
    reset_world();
    policy.hint_max_ns = 10 * S;
    policy.hint_over_ns = 2 * S;
    config.hold_off_max_ns = 0; /* a shared hold-off would delay this call too */
    for (size_t i = 0; i < COUNT(table); i++) {
        policy.hint_rule = table[i].rule;
        policy.hint_long = table[i].too_long;
        open_target();
        begin(T0);
        struct bide_verdict v = report(1, with_hint(failed, table[i].hint_ms * MS), T0);
        assert_action(v, table[i].wait_ms < 0 ? BIDE_ACTION_GIVE_UP : BIDE_ACTION_WAIT, table[i].reason);
        if (table[i].wait_ms >= 0)
            assert_int_equal(v.wake_ns, T0 + table[i].wait_ms * MS);
    }
}

static void a_hint_in_observe_mode_is_still_followed(void **state)
{
    (void)state;
    reset_world();
    policy.hint_max_ns = 10 * S;
    policy.observe = BIDE_GATE_HINT;
    policy.throttled_needs_hint = true;
    open_target();
    begin(T0);
    struct bide_verdict v = report(1, with_hint(failed, 12 * S), T0);
    assert_action(v, BIDE_ACTION_WAIT, BIDE_REASON_SERVER_HINT);
    assert_int_equal(v.wake_ns, T0 + 12 * S);
    assert_int_equal(v.observed, BIDE_GATE_HINT);
    begin(T0);
    v = report(1, with_stop(failed), T0);
    assert_action(v, BIDE_ACTION_WAIT, BIDE_REASON_BACKOFF);
    assert_int_equal(v.observed, BIDE_GATE_HINT);
    begin(T0);
    v = report(1, limited, T0);
    assert_action(v, BIDE_ACTION_WAIT, BIDE_REASON_BACKOFF);
    assert_int_equal(v.observed, BIDE_GATE_HINT);
    policy.observe = 0;
    begin(T0);
    assert_action(report(1, limited, T0), BIDE_ACTION_GIVE_UP, BIDE_REASON_HINT_MISSING);
    begin(T0);
    assert_action(report(1, with_hint(limited, S), T0), BIDE_ACTION_WAIT, BIDE_REASON_SERVER_HINT);
}

static void a_stop_is_ignored_with_the_ignore_rule(void **state)
{
    (void)state;
    reset_world();
    policy.hint_rule = BIDE_HINT_RULE_IGNORE;
    open_target();
    begin(T0);
    assert_action(report(1, with_stop(failed), T0), BIDE_ACTION_WAIT, BIDE_REASON_BACKOFF);
}

static void a_hinted_wait_keeps_advances_or_resets_the_sequence(void **state)
{
    static const struct {
        enum bide_hint_step step;
        int64_t then_ms;
    } table[] = {{BIDE_HINT_STEP_KEEP, 200}, {BIDE_HINT_STEP_ADVANCE, 400}, {BIDE_HINT_STEP_RESET, 100}};
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        reset_world();
        policy.hint_step = table[i].step;
        open_target();
        begin(T0);
        report(1, failed, T0); /* 100 ms */
        wake(T0 + S);
        report(2, with_hint(failed, 3 * S), T0 + S);
        wake(T0 + 4 * S);
        assert_int_equal(report(3, failed, T0 + 4 * S).wake_ns, T0 + 4 * S + table[i].then_ms * MS);
    }
}

static void a_conflict_is_retried_at_once_one_time_and_never_before_a_hint(void **state)
{
    (void)state;
    open_default();
    begin(T0);
    assert_verdict(report(1, conflict, T0), VERDICT(WAIT, CONFLICT, 1, T0, NEVER, NEVER));
    wake(T0);
    assert_verdict(report(2, conflict, T0), VERDICT(WAIT, BACKOFF, 2, T0 + 100 * MS, NEVER, NEVER));
    begin(T0);
    assert_verdict(report(1, with_hint(conflict, 50 * MS), T0), VERDICT(WAIT, BACKOFF, 1, T0 + 100 * MS, NEVER, NEVER));
    policy.hint_rule = BIDE_HINT_RULE_PUSHBACK;
    open_target();
    begin(T0);
    assert_verdict(report(1, with_hint(conflict, 0), T0), VERDICT(WAIT, SERVER_HINT, 1, T0, NEVER, NEVER));
    policy.conflict_at_once = false;
    open_target();
    begin(T0);
    assert_action(report(1, conflict, T0), BIDE_ACTION_WAIT, BIDE_REASON_BACKOFF);
}

static void the_backoff_step_does_not_wrap(void **state)
{
    (void)state;
    open_default();
    begin(T0);
    call.step = UINT16_MAX;
    assert_int_equal(report(1, failed, T0).wake_ns, T0 + 30 * S);
    assert_int_equal(call.step, UINT16_MAX);
}

static void a_wait_that_ends_at_the_deadline_is_not_started(void **state)
{
    (void)state;
    open_default();
    policy.call_timeout_ns = 100 * MS;
    begin(T0);
    assert_action(report(1, failed, T0), BIDE_ACTION_GIVE_UP, BIDE_REASON_DEADLINE_NEAR);
    policy.call_timeout_ns = 100 * MS + 1;
    begin(T0);
    assert_action(report(1, failed, T0), BIDE_ACTION_WAIT, BIDE_REASON_BACKOFF);
    assert_action(wake(T0 + 100 * MS + 1), BIDE_ACTION_GIVE_UP, BIDE_REASON_DEADLINE);
    begin(T0);
    assert_action(report(1, failed, T0 + 100 * MS + 1), BIDE_ACTION_GIVE_UP, BIDE_REASON_DEADLINE);
    assert_int_equal(tokens_left(), 10000);
}

static void a_late_wake_is_jittered_again_once(void **state)
{
    struct bide_request request = {.safety = BIDE_SAFE};
    (void)state;
    reset_world();
    policy.jitter = BIDE_JITTER_FULL;
    open_target();
    for (request.seed = 0; request.seed < 50; request.seed++) {
        begin_as(&request, T0);
        int64_t due_ns = report(1, failed, T0).wake_ns;
        struct bide_verdict v = wake(due_ns + 5 * S);
        assert_action(v, BIDE_ACTION_WAIT, BIDE_REASON_LATE_WAKE);
        assert_in_range(v.wake_ns, due_ns + 5 * S, due_ns + 5 * S + 100 * MS);
        assert_action(wake(v.wake_ns + 5 * S), BIDE_ACTION_START, BIDE_REASON_RETRY);
        cancel(T0);
        bide_budget_add_milli(&target, 10000, T0);
    }
    for (int late = 0; late < 2; late++) { /* a second is not late, slightly more is */
        begin_as(&request, T0);
        int64_t due_ns = report(1, failed, T0).wake_ns;
        assert_int_equal(wake(due_ns + S + late).action, late ? BIDE_ACTION_WAIT : BIDE_ACTION_START);
        cancel(T0);
    }
    begin_as(&request, T0);
    report(1, failed, T0);
    request.deadline_ns = wake(T0 + 5 * S).wake_ns; /* the jittered instant */
    cancel(T0);
    begin_as(&request, T0);
    report(1, failed, T0);
    assert_action(wake(T0 + 5 * S), BIDE_ACTION_START, BIDE_REASON_RETRY); /* no room for the jitter */
    policy.jitter = BIDE_JITTER_NONE;
    begin(T0);
    report(1, failed, T0);
    assert_action(wake(T0 + 5 * S), BIDE_ACTION_START, BIDE_REASON_RETRY);
}

/* ---- the limit of all waits ---- */

/* Opens a world without a deadline in which all waits of a call may take that long, on the fast or the slow path. */
static void open_limited(int64_t waits_max_ns, bool slow)
{
    reset_world();
    policy.call_timeout_ns = NEVER;
    policy.waits_max_ns = waits_max_ns;
    config.breaker.kind = BIDE_BREAKER_BY_TIME;
    open_target();
    core_force_slow_path = slow;
}

/* Reports a failure that is retried at its time; returns the wait. */
static int64_t fail_and_wake(uint32_t attempt, int64_t now_ns)
{
    struct bide_verdict v = report(attempt, failed, now_ns);
    assert_action(v, BIDE_ACTION_WAIT, BIDE_REASON_BACKOFF);
    assert_action(wake(v.wake_ns), BIDE_ACTION_START, BIDE_REASON_RETRY);
    return v.wake_ns - now_ns;
}

/* 100, 200 and 400 ms. Attempts take none of the limit. */
static void all_waits_may_take_the_limit_and_not_a_nanosecond_more(void **state)
{
    (void)state;
    for (int slow = 0; slow <= 1; slow++)
        for (int64_t lacking = 0; lacking <= 1; lacking++) {
            open_limited(300 * MS - lacking, slow);
            core_fast_paths_taken[CORE_FAST_FAILURE] = 0;
            begin(T0);
            assert_int_equal(fail_and_wake(1, T0 + 50 * S), 100 * MS);
            struct bide_verdict v = report(2, failed, T0 + 500 * S);
            assert_action(v, lacking ? BIDE_ACTION_GIVE_UP : BIDE_ACTION_WAIT,
                          lacking ? BIDE_REASON_WAITS_SPENT : BIDE_REASON_BACKOFF);
            assert_int_equal(v.wake_ns, lacking ? NEVER : T0 + 500 * S + 200 * MS);
            assert_int_equal(core_fast_paths_taken[CORE_FAST_FAILURE], slow ? 0 : 2);
            core_force_slow_path = false;
        }
}

static void a_single_wait_may_take_the_limit_and_not_a_nanosecond_more(void **state)
{
    static const int64_t limits[] = {
        1, 2, 65534, 65535, 65536, 65537, 655350, 655351, 60 * S, 61 * S + 1, BIDE_DURATION_MAX - 1, BIDE_DURATION_MAX};
    (void)state;
    for (size_t i = 0; i < COUNT(limits); i++) {
        open_limited(limits[i], false);
        policy.hint_rule = BIDE_HINT_RULE_EXACT;
        policy.hint_max_ns = NEVER;
        config.hold_off_max_ns = 0;
        open_target();
        begin(T0);
        assert_action(report(1, with_hint(failed, limits[i]), T0), BIDE_ACTION_WAIT, BIDE_REASON_SERVER_HINT);
        wake(T0 + limits[i]);
        assert_action(report(2, with_hint(failed, 1), T0 + limits[i]), BIDE_ACTION_GIVE_UP, BIDE_REASON_WAITS_SPENT);
        policy.hint_max_ns = BIDE_DURATION_MAX;
        begin(T0);
        enum bide_reason reason =
            limits[i] < BIDE_DURATION_MAX ? BIDE_REASON_WAITS_SPENT : BIDE_REASON_HINT_TOO_LONG; /* no longer hint */
        assert_action(report(1, with_hint(failed, limits[i] + 1), T0), BIDE_ACTION_GIVE_UP, reason);
    }
}

/* Limits up to 65535 ns count nanoseconds, up to 655350 ns tens of them. */
static void waits_are_counted_in_powers_of_ten(void **state)
{
    static const struct {
        int64_t limit_ns, first_ns, second_ns;
        bool fits;
    } rows[] = {
        {65535, 1, 65534, true},
        {65535, 1, 65535, false},
        {65535, 65534, 1, true},
        {65536, 1, 65526, true},
        {65536, 1, 65527, false},
        {65536, 10, 65526, true},
        {65536, 11, 65516, true},
        {65536, 11, 65517, false},
        {655350, 1, 655340, true},
        {655350, 1, 655341, false},
        {655351, 1, 655251, true},
        {655351, 1, 655252, false},
        {60 * S, 20 * S, 40 * S, true},
        {60 * S, 20 * S, 40 * S + 1, false},
        {60 * S, 20 * S + 1, 40 * S - MS, true},
        {60 * S, 20 * S + 1, 40 * S - MS + 1, false},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        open_limited(rows[i].limit_ns, false);
        policy.hint_rule = BIDE_HINT_RULE_EXACT;
        config.hold_off_max_ns = 0;
        open_target();
        begin(T0);
        report(1, with_hint(failed, rows[i].first_ns), T0);
        wake(T0 + rows[i].first_ns);
        struct bide_verdict v = report(2, with_hint(failed, rows[i].second_ns), T0 + rows[i].first_ns);
        if (v.action != (rows[i].fits ? BIDE_ACTION_WAIT : BIDE_ACTION_GIVE_UP))
            fail_msg("row %u: %s", (unsigned)i, bide_reason_label(v.reason));
    }
}

/* 655350 ns and one more need units of 100 ns: 6554 of them are longer than the limit. */
static void a_wait_of_zero_fits_a_spent_limit(void **state)
{
    (void)state;
    open_limited(655351, false);
    policy.hint_rule = BIDE_HINT_RULE_EXACT;
    config.hold_off_max_ns = 0;
    open_target();
    begin(T0);
    report(1, with_hint(failed, 655351), T0);
    wake(T0 + 655351);
    assert_verdict(report(2, conflict, T0 + S), VERDICT(WAIT, CONFLICT, 2, T0 + S, NEVER, NEVER));
    wake(T0 + S);
    assert_action(report(3, conflict, T0 + S), BIDE_ACTION_GIVE_UP, BIDE_REASON_WAITS_SPENT);
}

static void a_new_call_has_the_whole_limit(void **state)
{
    (void)state;
    for (int slow = 0; slow <= 1; slow++) {
        open_limited(100 * MS, slow);
        for (int i = 0; i < 2; i++) {
            begin(T0);
            fail_and_wake(1, T0);
            assert_action(report(2, failed, T0 + S), BIDE_ACTION_GIVE_UP, BIDE_REASON_WAITS_SPENT);
        }
        core_force_slow_path = false;
    }
}

/* The limit is asked after the deadline and before the gates that charge. */
static void nothing_is_charged_when_the_waits_are_spent(void **state)
{
    (void)state;
    for (int slow = 0; slow <= 1; slow++) {
        open_limited(100 * MS - 1, slow);
        config.key_retries = 1;
        open_target();
        begin_as(&keyed, T0);
        assert_action(report(1, failed, T0), BIDE_ACTION_GIVE_UP, BIDE_REASON_WAITS_SPENT);
        assert_int_equal(tokens_left(), 10000);
        begin(T0);
        assert_action(report(1, failed, T0), BIDE_ACTION_GIVE_UP, BIDE_REASON_WAITS_SPENT);
        assert_int_equal(tokens_left(), 10000);
        policy.waits_max_ns = 100 * MS;
        begin_as(&keyed, T0);
        assert_action(report(1, failed, T0), BIDE_ACTION_WAIT,
                      BIDE_REASON_BACKOFF); /* the only retry of its key is left */
        cancel(T0);
        policy.waits_max_ns = 1;
        policy.call_timeout_ns = 50 * MS;
        begin(T0);
        assert_action(report(1, failed, T0), BIDE_ACTION_GIVE_UP, BIDE_REASON_DEADLINE_NEAR);
        core_force_slow_path = false;
    }
}

static void a_long_poll_with_spent_waits_gives_up_at_once(void **state)
{
    (void)state;
    reset_world();
    policy.long_poll = true;
    policy.waits_max_ns = 100 * MS;
    config.budget.capacity_milli = 0;
    open_target();
    begin(T0);
    assert_action(report(1, failed, T0), BIDE_ACTION_WAIT, BIDE_REASON_BUDGET_EMPTY);
    assert_action(wake(T0 + 100 * MS), BIDE_ACTION_GIVE_UP, BIDE_REASON_BUDGET_EMPTY);
    policy.waits_max_ns = 100 * MS - 1;
    begin(T0);
    assert_action(report(1, failed, T0), BIDE_ACTION_GIVE_UP, BIDE_REASON_WAITS_SPENT);
}

static void waits_for_a_hold_off_count(void **state)
{
    (void)state;
    reset_world();
    config.hold_off_first = true;
    policy.waits_max_ns = 2 * S + 100 * MS;
    open_target();
    bide_target_hold_off(&target, T0 + 2 * S, T0);
    assert_action(begin(T0), BIDE_ACTION_WAIT, BIDE_REASON_HOLD_OFF);
    assert_action(wake(T0 + 2 * S), BIDE_ACTION_START, BIDE_REASON_FIRST_ATTEMPT);
    assert_action(report(1, failed, T0 + 2 * S), BIDE_ACTION_WAIT, BIDE_REASON_BACKOFF);
    bide_target_hold_off(&target, T0 + 3 * S, T0 + 2 * S);
    assert_action(wake(T0 + 2 * S + 100 * MS), BIDE_ACTION_GIVE_UP, BIDE_REASON_WAITS_SPENT);
    assert_int_equal(tokens_left(), 10000); /* its token is refunded */
    policy.waits_max_ns = 3 * S - 1;
    assert_verdict(begin(T0), VERDICT(GIVE_UP, WAITS_SPENT, 0, NEVER, NEVER, NEVER));
    policy.waits_max_ns = 3 * S;
    assert_action(begin(T0), BIDE_ACTION_WAIT, BIDE_REASON_HOLD_OFF);
}

/* A wake that comes late costs nothing: the wait that was planned is counted. The wait after it counts too. */
static void a_late_wake_is_jittered_again_only_within_the_limit(void **state)
{
    struct bide_request request = {.safety = BIDE_SAFE, .seed = 1};
    (void)state;
    reset_world();
    policy.jitter = BIDE_JITTER_EQUAL; /* a wait that is not 0 */
    policy.waits_max_ns = S;
    open_target();
    begin_as(&request, T0);
    int64_t first_ns = report(1, failed, T0).wake_ns - T0;
    int64_t again_ns = wake(T0 + 5 * S).wake_ns - T0 - 5 * S;
    wake(T0 + 6 * S);
    int64_t second_ns = report(2, failed, T0 + 6 * S).wake_ns - T0 - 6 * S;
    assert_true(first_ns > MS && again_ns > MS && second_ns > MS);
    const int64_t unit_ns = 10 * BIDE_US, limits[] = {first_ns + again_ns, first_ns + again_ns + second_ns};
    for (size_t i = 0; i < COUNT(limits); i++) {
        policy.waits_max_ns = limits[i] + 3 * unit_ns;
        begin_as(&request, T0);
        report(1, failed, T0);
        assert_action(wake(T0 + 5 * S), BIDE_ACTION_WAIT, BIDE_REASON_LATE_WAKE);
        wake(T0 + 6 * S);
        assert_int_equal(report(2, failed, T0 + 6 * S).action, i == 0 ? BIDE_ACTION_GIVE_UP : BIDE_ACTION_WAIT);
        cancel(T0 + 6 * S);
    }
    policy.waits_max_ns = first_ns + again_ns - unit_ns;
    begin_as(&request, T0);
    report(1, failed, T0);
    assert_action(wake(T0 + 5 * S), BIDE_ACTION_START, BIDE_REASON_RETRY);
}

/* ---- hold-off ---- */

static void a_hold_off_delays_first_attempts_if_configured(void **state)
{
    (void)state;
    reset_world();
    config.hold_off_first = true;
    open_target();
    bide_target_hold_off(&target, T0 + 2 * S, T0);
    assert_verdict(begin(T0), VERDICT(WAIT, HOLD_OFF, 0, T0 + 2 * S, NEVER, NEVER));
    bide_target_hold_off(&target, T0 + 3 * S, T0); /* extended in the meantime */
    assert_verdict(wake(T0 + 2 * S), VERDICT(WAIT, HOLD_OFF, 0, T0 + 3 * S, NEVER, NEVER));
    assert_action(wake(T0 + 3 * S), BIDE_ACTION_START, BIDE_REASON_FIRST_ATTEMPT);
    bide_target_hold_off(&target, T0 + 60 * S, T0); /* the deadline itself */
    assert_verdict(begin(T0), VERDICT(GIVE_UP, DEADLINE_NEAR, 0, NEVER, NEVER, NEVER));
    config.hold_off_first = false;
    bide_target_configure(&target, &config, T0, NULL);
    assert_action(begin(T0), BIDE_ACTION_START, BIDE_REASON_FIRST_ATTEMPT);
}

static void a_hold_off_requested_of_one_call_extends_the_waits_of_others(void **state)
{
    struct bide_call other;
    (void)state;
    open_default();
    begin(T0);
    bide_call_begin(&other, &policy, &target, &get, T0);
    struct bide_outcome o = with_hint(limited, 4 * S);
    bide_call_outcome(&other, 1, &o, T0);
    assert_int_equal(core_hold_off_until(&target, T0), T0 + 4 * S);
    struct bide_verdict v = report(1, failed, T0 + S);
    assert_action(v, BIDE_ACTION_WAIT, BIDE_REASON_HOLD_OFF);
    assert_int_equal(v.wake_ns, T0 + 4 * S);
    bide_target_hold_off(&target, T0 + 70 * S, T0);
    assert_action(wake(T0 + 4 * S), BIDE_ACTION_GIVE_UP, BIDE_REASON_DEADLINE_NEAR);
    assert_int_equal(tokens_left(), 9000); /* its token is refunded; the other call's is still charged */
}

static void a_hint_that_is_too_long_or_empty_causes_no_hold_off(void **state)
{
    (void)state;
    reset_world();
    policy.hint_max_ns = 10 * S;
    policy.hint_long = BIDE_HINT_LONG_CLAMP;
    open_target();
    begin(T0);
    report(1, with_hint(limited, 11 * S), T0);
    begin(T0);
    report(1, with_hint(hopeless, 5 * S), T0);
    begin(T0);
    report(1, with_hint(failed, 0), T0);
    assert_int_equal(core_hold_off_until(&target, T0), 0);
    begin(T0);
    report(1, with_hint(failed, 10 * S), T0); /* just short enough */
    assert_int_equal(core_hold_off_until(&target, T0), T0 + 10 * S);
}

static void a_success_that_started_after_the_hold_off_ends_it(void **state)
{
    (void)state;
    open_default();
    begin(T0);
    bide_target_hold_off(&target, T0 + 9 * S, T0 + S);
    report(1, good, T0 + 2 * S); /* it had started before */
    assert_int_equal(core_hold_off_until(&target, T0 + 2 * S), T0 + 9 * S);
    begin(T0 + S);
    report(1, good, T0 + 2 * S);
    assert_int_equal(core_hold_off_until(&target, T0 + 2 * S), 0);
}

/* Invalid input is read as the careful value. */
static void an_invalid_safety_or_hint_is_read_as_the_careful_value(void **state)
{
    (void)state;
    reset_world();
    open_target();
    begin_as(&(struct bide_request){.safety = (enum bide_safety)9}, T0);
    assert_action(report(1, failed, T0), BIDE_ACTION_GIVE_UP, BIDE_REASON_NOT_REPEATABLE);
    policy.hint_rule = BIDE_HINT_RULE_PUSHBACK;
    begin(T0);
    assert_action(report(1, with_hint(failed, -1), T0), BIDE_ACTION_WAIT, BIDE_REASON_BACKOFF);
}

/* Decorrelated jitter draws from base to three times the previous wait: a reset forgets that wait. */
static void a_reset_by_a_hint_restarts_decorrelated_jitter(void **state)
{
    for (uint64_t seed = 0; seed < 200; seed++) {
        reset_world();
        policy.jitter = BIDE_JITTER_DECORRELATED;
        policy.hint_rule = BIDE_HINT_RULE_EXACT;
        policy.hint_step = BIDE_HINT_STEP_RESET;
        policy.attempts_max = 10;
        open_target();
        begin_as(&(struct bide_request){.safety = BIDE_SAFE, .seed = seed}, T0);
        int64_t now_ns = T0;
        for (uint32_t attempt = 1; attempt <= 4; attempt++) {
            now_ns = report(attempt, failed, now_ns).wake_ns;
            assert_action(wake(now_ns), BIDE_ACTION_START, BIDE_REASON_RETRY);
        }
        now_ns = report(5, with_hint(failed, 10 * MS), now_ns).wake_ns;
        wake(now_ns);
        struct bide_verdict v = report(6, failed, now_ns);
        assert_action(v, BIDE_ACTION_WAIT, BIDE_REASON_BACKOFF);
        assert_in_range(v.wake_ns - now_ns, 100 * MS, 300 * MS);
    }
}

static void a_hint_as_long_as_the_policy_allows_is_followed(void **state)
{
    static const int64_t most[] = {10 * S, BIDE_DURATION_MAX, BIDE_NEVER};
    for (size_t i = 0; i < COUNT(most); i++) {
        int64_t longest = most[i] < BIDE_DURATION_MAX ? most[i] : BIDE_DURATION_MAX;
        reset_world();
        policy.hint_max_ns = most[i];
        policy.call_timeout_ns = NEVER;
        config.hold_off_max_ns = 0;
        open_target();
        begin(T0);
        assert_action(report(1, with_hint(failed, longest), T0), BIDE_ACTION_WAIT, BIDE_REASON_SERVER_HINT);
        begin(T0);
        assert_action(report(1, with_hint(failed, longest + 1), T0), BIDE_ACTION_GIVE_UP, BIDE_REASON_HINT_TOO_LONG);
    }
}

/* On the fast path and on the slow path. */
static void a_retry_that_would_start_at_the_deadline_is_not_planned(void **state)
{
    for (int slow = 0; slow <= 1; slow++) {
        reset_world();
        config.breaker.kind = BIDE_BREAKER_BY_TIME;
        policy.call_timeout_ns = 100 * MS;
        open_target();
        core_force_slow_path = slow;
        begin(T0);
        assert_action(report(1, failed, T0), BIDE_ACTION_GIVE_UP, BIDE_REASON_DEADLINE_NEAR);
        policy.call_timeout_ns = 100 * MS + 1;
        begin(T0);
        assert_action(report(1, failed, T0), BIDE_ACTION_WAIT, BIDE_REASON_BACKOFF);
        assert_action(wake(T0 + 100 * MS), BIDE_ACTION_START, BIDE_REASON_RETRY);
        begin(T0);
        assert_action(report(1, failed, T0), BIDE_ACTION_WAIT, BIDE_REASON_BACKOFF);
        assert_action(wake(T0 + 100 * MS + 1), BIDE_ACTION_GIVE_UP, BIDE_REASON_DEADLINE);
        core_force_slow_path = false;
    }
}

/* ---- exact waits ---- */

static void a_hint_of_a_nanosecond_is_a_hint(void **state)
{
    (void)state;
    reset_world();
    policy.hint_rule = BIDE_HINT_RULE_EXACT;
    open_target();
    begin(T0);
    assert_verdict(report(1, with_hint(failed, 1), T0), VERDICT(WAIT, SERVER_HINT, 1, T0 + 1, NEVER, NEVER));
}

static void a_hint_is_jittered_by_exactly_its_share(void **state)
{
    (void)state;
    reset_world();
    policy.jitter = BIDE_JITTER_FULL;
    policy.hint_jitter_permille = 500;
    policy.call_timeout_ns = NEVER;
    open_target();
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct bide_request request = {.safety = BIDE_SAFE, .seed = seed};
        uint64_t jitter = core_uniform((struct core_random_key){seed, 1, CORE_FOR_HINT}, 50 * S);
        begin_as(&request, T0);
        assert_int_equal(report(1, with_hint(failed, 100 * S), T0).wake_ns, T0 + 100 * S + (int64_t)jitter);
    }
}

static void decorrelated_jitter_grows_from_the_previous_wait(void **state)
{
    (void)state;
    reset_world();
    policy.jitter = BIDE_JITTER_DECORRELATED;
    open_target();
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct bide_request request = {.safety = BIDE_SAFE, .seed = seed};
        int64_t first_ns = bide_backoff_wait(&policy, (struct bide_step){0}, seed, 1);
        int64_t second_ns = bide_backoff_wait(&policy, (struct bide_step){1, false, first_ns}, seed, 2);
        begin_as(&request, T0);
        assert_int_equal(report(1, failed, T0).wake_ns, T0 + first_ns);
        wake(T0 + first_ns);
        assert_int_equal(report(2, failed, T0 + first_ns).wake_ns, T0 + first_ns + second_ns);
    }
}

/* ---- the last wait ---- */

/* Waits of 1 s and 2 s; an attempt needs 1 s. The second failure is at T0 + 1 s. */
static struct bide_verdict second_failure(int64_t deadline_ns, struct bide_outcome outcome)
{
    struct bide_request request = {.safety = BIDE_SAFE, .deadline_ns = deadline_ns};
    policy.base_ns = policy.attempt_min_ns = S;
    open_target();
    begin_as(&request, T0);
    report(1, failed, T0);
    wake(T0 + S);
    return report(2, outcome, T0 + S);
}

static void a_wait_that_leaves_exactly_enough_time_is_not_replaced(void **state)
{
    (void)state;
    reset_world();
    struct bide_verdict v = second_failure(T0 + 4 * S, failed);
    assert_action(v, BIDE_ACTION_WAIT, BIDE_REASON_BACKOFF);
    assert_int_equal(v.wake_ns, T0 + 3 * S);
    reset_world();
    v = second_failure(T0 + 4 * S - 1, failed);
    assert_action(v, BIDE_ACTION_WAIT, BIDE_REASON_LAST_WAIT);
    assert_in_range(v.wake_ns, T0 + 2 * S - 1, T0 + 3 * S - 1);
}

static void a_last_wait_needs_room_for_the_base(void **state)
{
    (void)state;
    reset_world();
    assert_action(second_failure(T0 + 3 * S, failed), BIDE_ACTION_WAIT, BIDE_REASON_LAST_WAIT);
    reset_world(); /* the backoff itself would end at the deadline */
    assert_action(second_failure(T0 + 3 * S - 1, failed), BIDE_ACTION_GIVE_UP, BIDE_REASON_DEADLINE_NEAR);
}

/* Another call was asked to wait until T0 + 2.9 s; this one would wait until T0 + 3 s, half a second too late. */
static void a_last_wait_does_not_end_before_the_hold_off(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        reset_world();
        policy.base_ns = policy.attempt_min_ns = S;
        open_target();
        begin_as(&(struct bide_request){.safety = BIDE_SAFE, .seed = seed, .deadline_ns = T0 + 3950 * MS}, T0);
        report(1, failed, T0);
        wake(T0 + S);
        bide_target_hold_off(&target, T0 + 2900 * MS, T0 + S);
        struct bide_verdict v = report(2, failed, T0 + S);
        assert_action(v, BIDE_ACTION_WAIT, BIDE_REASON_LAST_WAIT);
        assert_in_range(v.wake_ns, T0 + 2900 * MS, T0 + 2950 * MS);
    }
}

/* ---- waiting for a gate ---- */

static void open_waiting(void)
{
    reset_world();
    policy.when_refused = BIDE_WHEN_REFUSED_WAIT;
    config.in_flight_max = 1;
    open_target();
}

static void a_wait_for_a_gate_may_leave_exactly_the_time_of_an_attempt(void **state)
{
    struct bide_call other;
    (void)state;
    for (int64_t less = 0; less < 2; less++) {
        open_waiting();
        bide_call_begin(&other, &policy, &target, &get, T0);
        struct bide_request request = {.safety = BIDE_SAFE, .deadline_ns = T0 + 100 * MS + 3 * S - less};
        struct bide_verdict v = begin_as(&request, T0); /* the connect timeout is 3 s */
        assert_action(v, less ? BIDE_ACTION_GIVE_UP : BIDE_ACTION_WAIT, BIDE_REASON_IN_FLIGHT_FULL);
    }
}

/* Instant 0 is also "unknown". */
static void a_wait_for_a_gate_takes_at_least_the_base_at_instant_zero_too(void **state)
{
    struct bide_call other;
    (void)state;
    open_waiting();
    bide_target_init(&target, &config, 0, NULL);
    bide_call_begin(&other, &policy, &target, &get, 0);
    struct bide_verdict v = begin(0);
    assert_action(v, BIDE_ACTION_WAIT, BIDE_REASON_IN_FLIGHT_FULL);
    assert_int_equal(v.wake_ns, 100 * MS);
}

/* The breaker admits a probe, but the in-flight limit refuses it: its slot is free again while it waits. */
static void a_call_that_waits_for_a_gate_holds_no_probe_slot(void **state)
{
    struct bide_call before;
    (void)state;
    reset_world();
    policy.when_refused = BIDE_WHEN_REFUSED_WAIT;
    config.in_flight_max = 1;
    config.breaker.kind = BIDE_BREAKER_BY_RUN;
    config.breaker.consecutive = 1;
    open_target();
    bide_call_begin(&before, &policy, &target, &get, T0);
    bide_breaker_trip(&target, 1, T0);
    int64_t probing_ns = core_breaker_get(&target).until_ns;
    assert_action(begin(probing_ns), BIDE_ACTION_WAIT, BIDE_REASON_IN_FLIGHT_FULL);
    bide_call_cancel(&before, probing_ns);
    assert_int_equal(bide_target_next(&target, probing_ns).attempts, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wait_that_leaves_exactly_enough_time_is_not_replaced),
        cmocka_unit_test(a_last_wait_needs_room_for_the_base),
        cmocka_unit_test(a_last_wait_does_not_end_before_the_hold_off),
        cmocka_unit_test(a_wait_for_a_gate_may_leave_exactly_the_time_of_an_attempt),
        cmocka_unit_test(a_wait_for_a_gate_takes_at_least_the_base_at_instant_zero_too),
        cmocka_unit_test(a_call_that_waits_for_a_gate_holds_no_probe_slot),
        cmocka_unit_test(an_unsafe_request_is_repeated_only_if_it_cannot_have_run),
        cmocka_unit_test(a_409_is_retried_only_for_a_keyed_request),
        cmocka_unit_test(a_failure_flagged_once_is_retried_once),
        cmocka_unit_test(an_inner_layer_does_not_retry),
        cmocka_unit_test(a_breaker_that_will_be_open_at_the_wake_refuses_the_wait),
        cmocka_unit_test(gates_that_refuse_a_first_attempt_may_only_observe),
        cmocka_unit_test(the_same_seed_gives_the_same_verdicts_and_another_seed_others),
        cmocka_unit_test(other_gates_do_not_shift_the_waits),
        cmocka_unit_test(hints_are_followed_by_their_rule),
        cmocka_unit_test(a_hint_in_observe_mode_is_still_followed),
        cmocka_unit_test(a_stop_is_ignored_with_the_ignore_rule),
        cmocka_unit_test(a_hinted_wait_keeps_advances_or_resets_the_sequence),
        cmocka_unit_test(a_conflict_is_retried_at_once_one_time_and_never_before_a_hint),
        cmocka_unit_test(the_backoff_step_does_not_wrap),
        cmocka_unit_test(a_wait_that_ends_at_the_deadline_is_not_started),
        cmocka_unit_test(a_late_wake_is_jittered_again_once),
        cmocka_unit_test(all_waits_may_take_the_limit_and_not_a_nanosecond_more),
        cmocka_unit_test(a_single_wait_may_take_the_limit_and_not_a_nanosecond_more),
        cmocka_unit_test(waits_are_counted_in_powers_of_ten),
        cmocka_unit_test(a_wait_of_zero_fits_a_spent_limit),
        cmocka_unit_test(a_new_call_has_the_whole_limit),
        cmocka_unit_test(nothing_is_charged_when_the_waits_are_spent),
        cmocka_unit_test(a_long_poll_with_spent_waits_gives_up_at_once),
        cmocka_unit_test(waits_for_a_hold_off_count),
        cmocka_unit_test(a_late_wake_is_jittered_again_only_within_the_limit),
        cmocka_unit_test(a_hold_off_delays_first_attempts_if_configured),
        cmocka_unit_test(a_hold_off_requested_of_one_call_extends_the_waits_of_others),
        cmocka_unit_test(a_hint_that_is_too_long_or_empty_causes_no_hold_off),
        cmocka_unit_test(a_success_that_started_after_the_hold_off_ends_it),
        cmocka_unit_test(an_invalid_safety_or_hint_is_read_as_the_careful_value),
        cmocka_unit_test(a_reset_by_a_hint_restarts_decorrelated_jitter),
        cmocka_unit_test(a_hint_as_long_as_the_policy_allows_is_followed),
        cmocka_unit_test(a_retry_that_would_start_at_the_deadline_is_not_planned),
        cmocka_unit_test(a_hint_of_a_nanosecond_is_a_hint),
        cmocka_unit_test(a_hint_is_jittered_by_exactly_its_share),
        cmocka_unit_test(decorrelated_jitter_grows_from_the_previous_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
