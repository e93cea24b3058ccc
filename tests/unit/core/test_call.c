/* test_call.c - one call: its events, its rounds of attempts, and its verdicts.
 *
 * Stories (tests/stories) test sequences of events, test_call_table.c tests every event in every state as a table.
 * This file tests what neither shows well: each field of each kind of verdict, when a hedge starts, how the outcome
 * of one attempt affects its round, what the target records of an outcome, and that the fast paths give the same
 * result as the slow paths. The decisions of lib/core/judge.c are in test_judge.c, the resources of a call in
 * test_resources.c. */
#include "call_world.h"

/* ---- size ---- */

static void a_call_fits_96_bytes_and_a_target_36_cache_lines(void **state)
{
    (void)state;
    assert_true(sizeof(struct bide_call) <= 96);
    assert_true(sizeof(struct bide_target) <= 36 * 64);
}

/* ---- fields of a verdict ---- */

static void every_verdict_sets_every_field(void **state)
{
    (void)state;
    open_default(); /* attempt timeout 10 s, connect timeout 3 s, deadline a minute */
    assert_verdict(begin(T0), VERDICT(START, FIRST_ATTEMPT, 1, NEVER, T0 + 10 * S, T0 + 3 * S));
    assert_verdict(wake(T0 + S), VERDICT(NONE, NOTHING, 1, NEVER, NEVER, NEVER));
    assert_verdict(report(2, good, T0 + S), VERDICT(NONE, NOTHING, 1, NEVER, NEVER, NEVER));
    assert_verdict(report(1, failed, T0 + S), VERDICT(WAIT, BACKOFF, 1, T0 + 1100 * MS, NEVER, NEVER));
    assert_verdict(report(1, good, T0 + S), VERDICT(NONE, NOTHING, 1, T0 + 1100 * MS, NEVER, NEVER));
    assert_verdict(wake(T0 + S), VERDICT(NONE, NOTHING, 1, T0 + 1100 * MS, NEVER, NEVER)); /* early */
    assert_verdict(wake(T0 + 2 * S), VERDICT(START, RETRY, 2, NEVER, T0 + 12 * S, T0 + 5 * S));
    assert_verdict(report(2, good, T0 + 3 * S), VERDICT(DONE, SUCCEEDED, 2, NEVER, NEVER, NEVER));
    assert_verdict(wake(T0 + 9 * S), VERDICT(NONE, NOTHING, 2, NEVER, NEVER, NEVER));
    assert_verdict(cancel(T0 + 9 * S), VERDICT(NONE, NOTHING, 2, NEVER, NEVER, NEVER));
    begin(T0);
    assert_verdict(report(1, hopeless, T0 + S), VERDICT(GIVE_UP, PERMANENT, 1, NEVER, NEVER, NEVER));
    begin(T0);
    assert_verdict(cancel(T0), VERDICT(GIVE_UP, CANCELLED, 1, NEVER, NEVER, NEVER));
    policy.hedges_max = 1;
    policy.hedge_delay_ns = 400 * MS;
    assert_verdict(begin(T0), VERDICT(START, FIRST_ATTEMPT, 1, T0 + 400 * MS, T0 + 10 * S, T0 + 3 * S));
    assert_verdict(wake(T0 + 400 * MS),
                   VERDICT(START, HEDGE, 2, NEVER, T0 + 10400 * MS, T0 + 3400 * MS)); /* no more hedges */
    assert_verdict(report(2, failed, T0 + S), VERDICT(NONE, NOTHING, 2, NEVER, NEVER, NEVER));
    assert_verdict(report(1, good, T0 + S), VERDICT(DONE, SUCCEEDED, 1, NEVER, NEVER, NEVER));
}

static void an_attempt_ends_at_its_own_deadline_or_the_call_s(void **state)
{
    static const struct {
        int64_t attempt_ns, connect_ns, policy_ns, request_ns; /* request_ns: after T0; 0: none */
        int64_t cut_ns, by_ns;                                 /* after T0; BIDE_NEVER: never */
    } table[] = {
        {10 * S, 3 * S, 60 * S, 0, 10 * S, 3 * S},    {10 * S, 3 * S, 5 * S, 0, 5 * S, 3 * S},
        {10 * S, 3 * S, 2 * S, 0, 2 * S, 2 * S},      {10 * S, 3 * S, 60 * S, 4 * S, 4 * S, 3 * S},
        {10 * S, 3 * S, 4 * S, 60 * S, 4 * S, 3 * S}, {10 * S, NEVER, 60 * S, 0, 10 * S, 10 * S},
        {NEVER, 3 * S, 60 * S, 0, 60 * S, 3 * S},     {NEVER, NEVER, NEVER, 0, NEVER, NEVER},
        {NEVER, NEVER, NEVER, 7 * S, 7 * S, 7 * S},   {BIDE_DURATION_MAX, 3 * S, NEVER, 0, BIDE_DURATION_MAX, 3 * S},
    };
    (void)state;
    open_default();
    for (size_t i = 0; i < COUNT(table); i++) {
        struct bide_request request = get;
        policy.attempt_timeout_ns = table[i].attempt_ns;
        policy.connect_timeout_ns = table[i].connect_ns;
        policy.call_timeout_ns = table[i].policy_ns;
        request.deadline_ns = table[i].request_ns > 0 ? T0 + table[i].request_ns : 0;
        struct bide_verdict v = begin_as(&request, T0);
        assert_int_equal(v.attempt_deadline_ns, table[i].cut_ns == NEVER ? NEVER : T0 + table[i].cut_ns);
        assert_int_equal(v.connect_deadline_ns, table[i].by_ns == NEVER ? NEVER : T0 + table[i].by_ns);
    }
}

static void events_of_a_call_that_never_began_return_none(void **state)
{
    struct bide_call none = {0};
    (void)state;
    assert_verdict(bide_call_wake(&none, T0), VERDICT(NONE, NOTHING, 0, NEVER, NEVER, NEVER));
    assert_verdict(bide_call_cancel(&none, T0), VERDICT(NONE, NOTHING, 0, NEVER, NEVER, NEVER));
    assert_verdict(bide_call_outcome(&none, 1, &good, T0), VERDICT(NONE, NOTHING, 0, NEVER, NEVER, NEVER));
    assert_verdict(bide_call_outcome(&none, 0, &failed, T0), VERDICT(NONE, NOTHING, 0, NEVER, NEVER, NEVER));
}

static void a_call_refused_at_begin_made_no_attempt(void **state)
{
    struct bide_request late = {.safety = BIDE_SAFE, .deadline_ns = T0};
    (void)state;
    open_default();
    assert_verdict(begin_as(&late, T0), VERDICT(GIVE_UP, DEADLINE, 0, NEVER, NEVER, NEVER));
    assert_verdict(begin_as(&late, T0 + 1), VERDICT(GIVE_UP, DEADLINE, 0, NEVER, NEVER, NEVER));
    assert_verdict(bide_call_begin(&call, &policy, NULL, &get, T0),
                   VERDICT(GIVE_UP, NO_TARGET, 0, NEVER, NEVER, NEVER));
    assert_action(cancel(T0), BIDE_ACTION_NONE, BIDE_REASON_NOTHING);
}

static void a_mutating_request_without_a_key_is_refused_or_observed(void **state)
{
    static const struct {
        enum bide_safety safety;
        bool refused;
    } table[] = {{BIDE_UNSAFE, true}, {BIDE_IDEMPOTENT, true}, {BIDE_SAFE, false}, {BIDE_KEYED, false}};
    (void)state;
    open_default();
    policy.require_key = true;
    for (size_t i = 0; i < COUNT(table); i++) {
        struct bide_request request = {.safety = table[i].safety};
        policy.observe = 0;
        assert_int_equal(begin_as(&request, T0).action, table[i].refused ? BIDE_ACTION_GIVE_UP : BIDE_ACTION_START);
        policy.observe = BIDE_GATE_KEY;
        struct bide_verdict v = begin_as(&request, T0);
        assert_action(v, BIDE_ACTION_START, BIDE_REASON_FIRST_ATTEMPT);
        assert_int_equal(v.observed, table[i].refused ? BIDE_GATE_KEY : 0);
    }
    assert_int_equal(target.refused[BIDE_GATE_INDEX(BIDE_GATE_KEY)], 4);
}

/* ---- without a target ---- */

static void without_a_target_only_the_policy_decides(void **state)
{
    (void)state;
    reset_world();
    policy.hedges_max = 1;
    policy.hedge_quantile_permille = 950; /* no latency is recorded: the delay applies */
    policy.hedge_delay_ns = 400 * MS;
    struct bide_verdict v = bide_call_begin(&call, &policy, BIDE_NO_TARGET, &keyed, T0);
    assert_action(v, BIDE_ACTION_START, BIDE_REASON_FIRST_ATTEMPT);
    assert_int_equal(v.wake_ns, T0 + 400 * MS);
    assert_action(wake(T0 + 400 * MS), BIDE_ACTION_START, BIDE_REASON_HEDGE);
    assert_action(report(1, with_hint(limited, 2 * S), T0 + S), BIDE_ACTION_NONE, BIDE_REASON_NOTHING);
    v = report(2, failed, T0 + S);
    assert_action(v, BIDE_ACTION_WAIT, BIDE_REASON_SERVER_HINT);
    assert_int_equal(v.wake_ns, T0 + 3 * S);
    assert_action(wake(T0 + 3 * S), BIDE_ACTION_START, BIDE_REASON_RETRY);
    assert_action(report(3, unsent, T0 + 3 * S), BIDE_ACTION_GIVE_UP, BIDE_REASON_CANCELLED);
    bide_call_begin(&call, &policy, BIDE_NO_TARGET, &get, T0);
    assert_action(report(1, good, T0), BIDE_ACTION_DONE, BIDE_REASON_SUCCEEDED);
    bide_call_begin(&call, &policy, BIDE_NO_TARGET, &get, T0);
    wake(T0 + S);
    assert_action(cancel(T0 + S), BIDE_ACTION_GIVE_UP, BIDE_REASON_CANCELLED);
    policy.require_key = true;
    assert_action(bide_call_begin(&call, &policy, BIDE_NO_TARGET, &post, T0), BIDE_ACTION_GIVE_UP,
                  BIDE_REASON_KEY_REQUIRED);
}

/* ---- when a hedge starts ---- */

static void a_hedge_starts_only_if_no_gate_refuses(void **state)
{
    (void)state;
    open_hedged(1);
    policy.call_timeout_ns = 101 * MS;
    begin(T0);
    call.deadline_ns = T0 + 100 * MS; /* passed since the hedge was planned */
    assert_hedge_refused(BIDE_REASON_DEADLINE, "deadline");

    open_hedged(1);
    config.throttle_k_milli = 2000;
    config.throttle_max_permille = 1000;
    open_target();
    begin(T0);
    target.lane[0].attempts += 1000000;
    assert_hedge_refused(BIDE_REASON_THROTTLE, "throttle");

    open_hedged(1);
    begin(T0);
    bide_breaker_hold(&target, BIDE_HOLD_OPEN);
    assert_hedge_refused(BIDE_REASON_BREAKER_OPEN, "breaker");

    open_hedged(1);
    begin(T0);
    bide_target_hold_off(&target, T0 + 5 * S, T0);
    assert_hedge_refused(BIDE_REASON_HOLD_OFF, "hold-off");

    open_hedged(1);
    config.key_retries = 1;
    open_target();
    charge_key_of_another_call();
    begin_as(&keyed, T0);
    assert_hedge_refused(BIDE_REASON_KEY_LIMIT, "key limit");

    open_hedged(1);
    config.in_flight_max = 1;
    open_target();
    begin(T0);
    assert_hedge_refused(BIDE_REASON_IN_FLIGHT_FULL, "in flight");
    assert_int_equal(target.in_flight, 0);

    open_hedged(1);
    config.budget.initial_milli = 999;
    config.key_retries = 1;
    open_target();
    begin_as(&keyed, T0);
    assert_hedge_refused(BIDE_REASON_BUDGET_EMPTY, "budget");
    assert_int_equal(target.in_flight, 0); /* acquired before the budget was charged, and released again */
    assert_int_equal(tokens_left(), 999);
    begin_as(&keyed, T0);
    assert_action(report(1, failed, T0), BIDE_ACTION_GIVE_UP,
                  BIDE_REASON_BUDGET_EMPTY); /* not the key: its charge was refunded */
}

static void a_gate_in_observe_mode_admits_the_hedge(void **state)
{
    (void)state;
    open_hedged(1);
    config.observe = BIDE_TARGET_GATES;
    config.throttle_k_milli = 2000;
    config.throttle_max_permille = 1000;
    config.in_flight_max = 1;
    config.key_retries = 1;
    config.budget.initial_milli = 0;
    open_target();
    charge_key_of_another_call();
    begin_as(&keyed, T0);
    target.lane[0].attempts += 1000000;
    bide_breaker_hold(&target, BIDE_HOLD_OPEN);
    struct bide_verdict v = wake(T0 + 100 * MS);
    assert_action(v, BIDE_ACTION_START, BIDE_REASON_HEDGE);
    assert_int_equal(v.observed, BIDE_TARGET_GATES);
    assert_int_equal(target.in_flight, 2);
    assert_action(report(2, good, T0 + S), BIDE_ACTION_DONE, BIDE_REASON_SUCCEEDED);
    assert_nothing_held();
}

static void a_refused_hedge_may_be_tried_again_in_the_next_round(void **state)
{
    (void)state;
    open_hedged(1);
    config.in_flight_max = 1;
    open_target();
    begin(T0);
    assert_hedge_refused(BIDE_REASON_IN_FLIGHT_FULL, "in flight");
    begin(T0);
    wake(T0 + 100 * MS);
    assert_int_equal(report(1, failed, T0 + S).action, BIDE_ACTION_WAIT);
    struct bide_verdict v = wake(T0 + 1100 * MS);
    assert_action(v, BIDE_ACTION_START, BIDE_REASON_RETRY);
    assert_int_equal(v.wake_ns, T0 + 1200 * MS);
}

static void a_request_that_may_not_be_hedged_has_no_timer(void **state)
{
    struct bide_request inner = {.safety = BIDE_SAFE, .inbound = {.attempt = 2}};
    struct bide_request soon = {.safety = BIDE_SAFE, .deadline_ns = T0 + 100 * MS};
    (void)state;
    open_hedged(1);
    assert_int_equal(begin_as(&get, T0).wake_ns, T0 + 100 * MS);
    assert_int_equal(begin_as(&post, T0).wake_ns, NEVER);
    assert_int_equal(begin_as(&inner, T0).wake_ns, NEVER);
    assert_int_equal(begin_as(&soon, T0).wake_ns, NEVER); /* due at the deadline: not planned */
    policy.attempts_max = 2;
    begin(T0);
    report(1, failed, T0);
    assert_int_equal(wake(T0 + 100 * MS).wake_ns, NEVER); /* the last attempt */
}

static void the_latency_quantile_sets_the_hedge_delay_once_known(void **state)
{
    (void)state;
    open_hedged(1);
    policy.hedge_quantile_permille = 950;
    assert_int_equal(begin(T0).wake_ns, T0 + 100 * MS);
    for (int i = 0; i < 50; i++)
        core_latency_record(&target, 7 * MS);
    assert_in_range(begin(T0).wake_ns, T0 + 7 * MS, T0 + 9 * MS);
    policy.hedge_quantile_permille = 0; /* the policy does not use it */
    assert_int_equal(begin(T0).wake_ns, T0 + 100 * MS);
}

/* ---- a hint to one attempt applies to the round ---- */

static void open_three_in_flight(void)
{
    open_hedged(2);
    begin(T0);
    wake(T0 + 100 * MS);
    assert_action(wake(T0 + 200 * MS), BIDE_ACTION_START, BIDE_REASON_HEDGE);
}

static void the_longest_hint_of_a_round_applies(void **state)
{
    static const struct {
        int64_t hint_s[3]; /* -1: none */
        int64_t wait_ns;
        enum bide_reason reason;
    } table[] = {
        {{-1, -1, -1}, 100 * MS, BIDE_REASON_BACKOFF}, {{5, -1, -1}, 5 * S, BIDE_REASON_SERVER_HINT},
        {{5, 9, -1}, 9 * S, BIDE_REASON_SERVER_HINT},  {{9, 5, -1}, 9 * S, BIDE_REASON_SERVER_HINT},
        {{5, -1, 9}, 9 * S, BIDE_REASON_SERVER_HINT},  {{9, -1, 5}, 9 * S, BIDE_REASON_SERVER_HINT},
        {{-1, -1, 5}, 5 * S, BIDE_REASON_SERVER_HINT},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++)
        for (int shared = 0; shared < 2; shared++) {
            struct bide_verdict v;
            open_three_in_flight();
            if (!shared)
                call.target = NULL; /* without a hold-off, which would also delay the retry */
            for (uint32_t n = 0; n < 3; n++) {
                int64_t hint_s = table[i].hint_s[n];
                v = report(n + 1, hint_s < 0 ? failed : with_hint(limited, hint_s * S), T0 + S);
                if (n < 2)
                    assert_verdict(v, VERDICT(NONE, NOTHING, 3, NEVER, NEVER, NEVER));
            }
            assert_action(v, BIDE_ACTION_WAIT, table[i].reason);
            assert_int_equal(v.wake_ns, T0 + S + table[i].wait_ns);
        }
}

static void a_failure_without_a_hint_leaves_the_planned_hedges(void **state)
{
    (void)state;
    open_hedged(2);
    begin(T0);
    assert_int_equal(wake(T0 + 100 * MS).wake_ns, T0 + 200 * MS);
    assert_int_equal(report(1, failed, T0 + 150 * MS).wake_ns, T0 + 200 * MS);
    assert_action(wake(T0 + 200 * MS), BIDE_ACTION_START, BIDE_REASON_HEDGE);
    assert_int_equal(report(2, with_hint(stopped, S), T0 + S).wake_ns, NEVER); /* cancelled: its hint does not count */
    struct bide_verdict v = report(3, failed, T0 + S);
    assert_action(v, BIDE_ACTION_WAIT, BIDE_REASON_BACKOFF);
}

static void a_hint_to_one_attempt_stops_further_hedges(void **state)
{
    (void)state;
    open_hedged(2);
    begin(T0);
    assert_int_equal(wake(T0 + 100 * MS).wake_ns, T0 + 200 * MS);
    assert_int_equal(report(1, with_hint(limited, S), T0 + 150 * MS).wake_ns, NEVER);
    assert_action(wake(T0 + 5 * S), BIDE_ACTION_NONE, BIDE_REASON_NOTHING);
    assert_action(report(2, good, T0 + 5 * S), BIDE_ACTION_DONE, BIDE_REASON_SUCCEEDED);
}

/* The server requested a wait, but it had passed by the time the other attempts failed. */
static void a_hint_that_expired_during_the_round_is_ignored(void **state)
{
    (void)state;
    open_three_in_flight();
    call.target = NULL;
    report(1, with_hint(limited, S), T0 + S);
    report(2, failed, T0 + S);
    struct bide_verdict v = report(3, failed, T0 + 5 * S);
    assert_action(v, BIDE_ACTION_WAIT, BIDE_REASON_BACKOFF);
    assert_int_equal(v.wake_ns, T0 + 5 * S + 100 * MS);
}

static void a_stop_to_one_attempt_applies_to_the_round(void **state)
{
    (void)state;
    open_three_in_flight();
    assert_int_equal(report(1, with_stop(failed), T0 + S).wake_ns, NEVER);
    report(2, failed, T0 + S);
    assert_action(report(3, failed, T0 + S), BIDE_ACTION_GIVE_UP, BIDE_REASON_SERVER_STOP);
    open_hedged(2);
    begin(T0);
    wake(T0 + 100 * MS);
    assert_int_equal(report(1, with_stop(failed), T0 + 150 * MS).wake_ns, NEVER); /* and no other hedge is planned */
}

static void an_observed_stop_keeps_the_hint_of_the_round(void **state)
{
    (void)state;
    open_three_in_flight();
    policy.observe = BIDE_GATE_HINT;
    report(1, with_hint(limited, 2 * S), T0 + S);
    report(2, with_stop(failed), T0 + S);
    struct bide_verdict v = report(3, failed, T0 + S);
    assert_action(v, BIDE_ACTION_WAIT, BIDE_REASON_SERVER_HINT);
    assert_int_equal(v.wake_ns, T0 + 3 * S);
    assert_int_equal(v.observed, BIDE_GATE_HINT);
}

static void a_spent_body_of_one_attempt_applies_to_the_round(void **state)
{
    struct bide_outcome spent = failed;
    (void)state;
    spent.flags = BIDE_FLAG_BODY_SPENT;
    open_three_in_flight();
    report(2, spent, T0 + S);
    report(1, failed, T0 + S);
    assert_action(report(3, failed, T0 + S), BIDE_ACTION_GIVE_UP, BIDE_REASON_BODY_SPENT);
}

static void a_final_outcome_ends_the_round_and_names_its_attempt(void **state)
{
    struct bide_outcome delivered = {.kind = BIDE_KIND_TRANSIENT, .evidence = BIDE_EVIDENCE_BODY_DELIVERED};
    (void)state;
    open_three_in_flight();
    assert_verdict(report(2, hopeless, T0 + S), VERDICT(GIVE_UP, PERMANENT, 2, NEVER, NEVER, NEVER));
    assert_nothing_held();
    open_three_in_flight();
    assert_verdict(report(1, delivered, T0 + S), VERDICT(GIVE_UP, BODY_DELIVERED, 1, NEVER, NEVER, NEVER));
    assert_nothing_held();
}

static void a_round_is_cancelled_when_all_its_attempts_are(void **state)
{
    (void)state;
    open_three_in_flight();
    assert_int_equal(report(1, stopped, T0 + S).action, BIDE_ACTION_NONE);
    assert_int_equal(report(2, failed, T0 + S).action, BIDE_ACTION_NONE);
    assert_action(report(3, stopped, T0 + S), BIDE_ACTION_GIVE_UP, BIDE_REASON_CANCELLED);
}

/* ---- what the target records ---- */

static void each_outcome_votes_as_failure_healthy_or_not_at_all(void **state)
{
    static const struct {
        struct bide_outcome outcome;
        bool opens;
    } table[] = {
        {{.kind = BIDE_KIND_TRANSIENT}, true},  {{.kind = BIDE_KIND_THROTTLED}, false},
        {{.kind = BIDE_KIND_CONFLICT}, false},  {{.kind = BIDE_KIND_PERMANENT}, false},
        {{.kind = BIDE_KIND_CANCELLED}, false}, {{.kind = BIDE_KIND_OK}, false},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        open_breaker_of_three();
        for (int n = 0; n < 3; n++) {
            begin(T0);
            report(1, table[i].outcome, T0);
        }
        assert_int_equal(core_breaker_get(&target).state, table[i].opens ? BIDE_BREAKER_OPEN : BIDE_BREAKER_CLOSED);
    }
}

static void a_slow_success_may_count_as_a_failure(void **state)
{
    (void)state;
    for (int64_t latency_ns = 2 * S - 1; latency_ns <= 2 * S; latency_ns++) {
        open_breaker_of_three();
        config.breaker.slow_ns = 2 * S;
        open_target();
        for (int n = 0; n < 3; n++) {
            begin(T0);
            assert_action(report(1, good, T0 + latency_ns), BIDE_ACTION_DONE, BIDE_REASON_SUCCEEDED);
        }
        assert_int_equal(core_breaker_get(&target).state, latency_ns < 2 * S ? BIDE_BREAKER_CLOSED : BIDE_BREAKER_OPEN);
    }
}

static void the_throttle_counts_accepted_attempts(void **state)
{
    static const struct {
        struct bide_outcome outcome;
        uint64_t accepts;
    } table[] = {
        {{.kind = BIDE_KIND_OK}, 1},
        {{.kind = BIDE_KIND_PERMANENT}, 1},
        {{.kind = BIDE_KIND_CONFLICT}, 1},
        {{.kind = BIDE_KIND_TRANSIENT}, 0},
        {{.kind = BIDE_KIND_THROTTLED}, 0},
        {{.kind = BIDE_KIND_CANCELLED}, 0},
        {{.kind = BIDE_KIND_PERMANENT, .evidence = BIDE_EVIDENCE_NOT_SENT}, 0},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        reset_world();
        config.throttle_k_milli = 2000;
        open_target();
        begin_as(&(struct bide_request){.safety = BIDE_SAFE, .lane = 11}, T0);
        report(1, table[i].outcome, T0);
        assert_int_equal(target.lane[3].attempts, 1);
        assert_int_equal(target.lane[3].accepts, table[i].accepts);
    }
}

/* ---- fast paths ---- */

/* Events have fast paths, taken when no resource is held and no gate is active. Both paths must return the same
 * verdicts and leave the same target. */
static void play_calls(const struct bide_request *request, bool long_way, struct bide_verdict said[4])
{
    struct bide_outcome refused = {.kind = BIDE_KIND_TRANSIENT, .evidence = BIDE_EVIDENCE_NOT_SENT};
    core_force_slow_path = long_way;
    open_target();
    begin_as(request, T0);
    report(1, good, T0); /* begins the slot of the breaker's window: always the slow path */
    said[0] = begin_as(request, T0);
    said[1] = report(1, refused, T0 + 200 * MS);
    said[2] = wake(T0 + 300 * MS);
    said[3] = report(2, good, T0 + 400 * MS);
    begin_as(request, T0 + 400 * MS);
    assert_verdict(report(1, good, T0 + 500 * MS), VERDICT(DONE, SUCCEEDED, 1, NEVER, NEVER, NEVER));
    core_force_slow_path = false;
}

static void the_fast_paths_give_the_same_result_as_the_slow_paths(void **state)
{
    static const uint32_t refunds[] = {0, 500, 1000};
    static struct bide_target shortly;
    (void)state;
    for (uint32_t i = 0; i < COUNT(refunds) * BIDE_LANES; i++) {
        struct bide_request request = {.safety = BIDE_UNSAFE, .lane = i};
        struct bide_verdict brief[4], full[4];
        reset_world();
        config.breaker.kind = BIDE_BREAKER_BY_TIME;
        config.budget.earn_success_milli = 100;
        config.budget.refund_permille = refunds[i / BIDE_LANES];
        config.budget.initial_milli = i % 2 ? BIDE_FULL : 5000;
        play_calls(&request, false, brief);
        shortly = target;
        play_calls(&request, true, full);
        for (size_t k = 0; k < COUNT(full); k++)
            assert_verdict(brief[k], full[k]);
        assert_memory_equal(&shortly, &target, sizeof target);
    }
}

/* The conditions of the fast path of a success: the slot of the breaker's window has begun, and no resource is held. */
static void open_for_fast_path(void)
{
    config.breaker.kind = BIDE_BREAKER_BY_TIME;
    open_target();
    begin(T0);
    report(1, good, T0);
}

static void a_success_with_more_to_record_takes_the_slow_path(void **state)
{
    enum lesson { LATENCY, THROTTLE, IN_FLIGHT, SLOW, HOLD_OFF, LESSONS };
    (void)state;
    for (enum lesson lesson = LATENCY; lesson < LESSONS; lesson++) {
        reset_world();
        config.latency = lesson == LATENCY;
        config.throttle_k_milli = lesson == THROTTLE ? 2000 : 0;
        config.in_flight_max = lesson == IN_FLIGHT ? 2 : 0;
        config.breaker.slow_ns = lesson == SLOW ? MS : NEVER;
        open_for_fast_path();
        begin(T0);
        if (lesson == HOLD_OFF)
            bide_target_hold_off(&target, T0 + 9 * S, T0);
        assert_action(report(1, good, T0 + MS), BIDE_ACTION_DONE, BIDE_REASON_SUCCEEDED);
        assert_int_equal(latencies(), lesson == LATENCY ? 2 : 0);
        assert_int_equal(target.lane[0].accepts, lesson == THROTTLE ? 2 : 0);
        assert_int_equal(target.in_flight, 0);
        assert_int_equal(target.lane[0].healthy, lesson == SLOW ? 1 : 2);
        assert_int_equal(core_hold_off_until(&target, T0), 0);
    }
}

static void the_fast_path_accepts_only_the_attempt_in_flight(void **state)
{
    (void)state;
    reset_world();
    open_for_fast_path();
    begin(T0);
    assert_action(report(2, good, T0), BIDE_ACTION_NONE, BIDE_REASON_NOTHING);
    assert_action(report(0, good, T0), BIDE_ACTION_NONE, BIDE_REASON_NOTHING);
    assert_action(report(1, failed, T0), BIDE_ACTION_WAIT, BIDE_REASON_BACKOFF);
    assert_action(report(1, good, T0), BIDE_ACTION_NONE, BIDE_REASON_NOTHING);
    assert_action(wake(T0 + 100 * MS), BIDE_ACTION_START, BIDE_REASON_RETRY);
    assert_action(report(1, good, T0), BIDE_ACTION_NONE, BIDE_REASON_NOTHING);
    assert_action(report(2, good, T0), BIDE_ACTION_DONE, BIDE_REASON_SUCCEEDED);
    assert_action(report(2, good, T0), BIDE_ACTION_NONE, BIDE_REASON_NOTHING);
    begin(T0);
    assert_action(report(1, stopped, T0), BIDE_ACTION_GIVE_UP, BIDE_REASON_CANCELLED);
    assert_action(report(1, good, T0), BIDE_ACTION_NONE, BIDE_REASON_NOTHING);
}

static void the_fast_paths_detect_a_new_owner(void **state)
{
    static struct bide_target before;
    (void)state;
    for (int waits = 0; waits < 2; waits++) {
        reset_world();
        config.breaker.kind = BIDE_BREAKER_BY_TIME;
        config.budget.earn_success_milli = 100;
        config.budget.initial_milli = 5000;
        open_target();
        begin(T0);
        if (waits)
            report(1, failed, T0);
        core_target_reuse(&target, &config, T0, NULL);
        struct bide_call theirs;
        bide_call_begin(&theirs, &policy, &target, &get, T0);
        bide_call_outcome(&theirs, 1, &good, T0); /* begins the slot */
        before = target;
        if (waits)
            assert_action(wake(T0 + 100 * MS), BIDE_ACTION_START, BIDE_REASON_RETRY);
        assert_action(report(call.attempt, good, T0 + 100 * MS), BIDE_ACTION_DONE, BIDE_REASON_SUCCEEDED);
        assert_memory_equal(&before, &target, sizeof target);
    }
}

static void the_breaker_is_consulted_again_after_the_wait(void **state)
{
    (void)state;
    open_default();
    begin(T0);
    report(1, failed, T0);
    bide_breaker_hold(&target, BIDE_HOLD_CLOSED);
    assert_action(wake(T0 + 100 * MS), BIDE_ACTION_START, BIDE_REASON_RETRY);
    report(2, failed, T0 + 100 * MS);
    bide_breaker_hold(&target, BIDE_HOLD_OPEN);
    assert_action(wake(T0 + 300 * MS), BIDE_ACTION_GIVE_UP, BIDE_REASON_BREAKER_OPEN);
}

/* Each hedge has its own start: here 100, 200 and 300 ms after the first attempt. A success counts as slow from 50 ms
 * on, and then opens the breaker. */
static void the_latency_of_a_hedge_counts_from_its_own_start(void **state)
{
    (void)state;
    for (uint32_t hedge = 1; hedge <= 3; hedge++)
        for (int slow = 0; slow <= 1; slow++) {
            reset_world();
            policy.hedges_max = 3;
            policy.hedge_delay_ns = 100 * MS;
            config.breaker.kind = BIDE_BREAKER_BY_RUN;
            config.breaker.consecutive = 1;
            config.breaker.slow_ns = 50 * MS;
            open_target();
            begin(T0);
            for (uint32_t n = 1; n <= hedge; n++)
                assert_action(wake(T0 + n * 100 * MS), BIDE_ACTION_START, BIDE_REASON_HEDGE);
            int64_t end_ns = T0 + hedge * 100 * MS + 50 * MS - (slow ? 0 : BIDE_US);
            assert_action(report(hedge + 1, good, end_ns), BIDE_ACTION_DONE, BIDE_REASON_SUCCEEDED);
            assert_int_equal(core_breaker_get(&target).state, slow ? BIDE_BREAKER_OPEN : BIDE_BREAKER_CLOSED);
        }
}

/* The start of a hedge is stored in 32 bits of microseconds, 71 minutes: a later one counts as started then. */
static void a_hedge_after_more_than_an_hour_has_a_start_too(void **state)
{
    (void)state;
    reset_world();
    policy.hedges_max = 1;
    policy.call_timeout_ns = policy.attempt_timeout_ns = NEVER;
    policy.hedge_delay_ns = 2 * 3600 * S;
    open_target();
    begin(T0);
    assert_action(wake(T0 + 2 * 3600 * S), BIDE_ACTION_START, BIDE_REASON_HEDGE);
    assert_int_equal(call.hedge_us[0], UINT32_MAX);
}

/* ---- the first instants of a clock, and other ends of a range ---- */

static void open_at_instant_zero(void)
{
    policy.backoff = BIDE_BACKOFF_NONE;
    assert_int_equal(bide_target_init(&target, &config, 0, NULL), BIDE_OK);
}

static void a_hold_off_until_the_first_instant_is_kept(void **state)
{
    (void)state;
    reset_world();
    config.hold_off_first = true;
    open_at_instant_zero();
    bide_target_hold_off(&target, 1, 0);
    assert_verdict(begin(0), VERDICT(WAIT, HOLD_OFF, 0, 1, NEVER, NEVER));

    reset_world();
    open_at_instant_zero();
    begin(0);
    report(1, failed, 0);
    bide_target_hold_off(&target, 1, 0);
    assert_verdict(wake(0), VERDICT(WAIT, HOLD_OFF, 1, 1, NEVER, NEVER));

    reset_world();
    policy.hedges_max = 1;
    policy.hedge_delay_ns = 0;
    open_at_instant_zero();
    begin(0);
    bide_target_hold_off(&target, 1, 0);
    assert_verdict(wake(0), VERDICT(NONE, HOLD_OFF, 1, NEVER, NEVER, NEVER));
    assert_action(report(1, good, 0), BIDE_ACTION_DONE, BIDE_REASON_SUCCEEDED);
    assert_int_equal(core_hold_off_until(&target, 0), 0); /* the success ends it */
}

static void a_deadline_before_the_first_instant_has_passed(void **state)
{
    struct bide_request late = {.safety = BIDE_SAFE, .deadline_ns = -1};
    (void)state;
    reset_world();
    open_at_instant_zero();
    assert_verdict(begin_as(&late, 0), VERDICT(GIVE_UP, DEADLINE, 0, NEVER, NEVER, NEVER));
}

static void only_a_concurrency_budget_counts_the_calls(void **state)
{
    static const enum bide_budget_kind kinds[] = {BIDE_BUDGET_TOKENS, BIDE_BUDGET_WINDOW, BIDE_BUDGET_CONCURRENCY};
    (void)state;
    for (size_t i = 0; i < COUNT(kinds); i++) {
        reset_world();
        config.budget.kind = kinds[i];
        config.budget.earn_first_milli = 1;
        open_target();
        begin(T0);
        assert_int_equal(target.calls, kinds[i] == BIDE_BUDGET_CONCURRENCY);
    }
    target.calls = CORE_PERMITS_MAX; /* no room for another call: it is not counted, and releases nothing */
    begin(T0);
    cancel(T0);
    assert_int_equal(target.calls, CORE_PERMITS_MAX);
}

static void the_lowest_quantile_of_the_latency_delays_a_hedge(void **state)
{
    (void)state;
    open_hedged(1);
    policy.hedge_quantile_permille = 1;
    for (int i = 0; i < 20; i++)
        core_latency_record(&target, 10 * MS);
    int64_t expected_ns = T0 + bide_target_latency_get(&target, 1);
    assert_in_range(expected_ns, T0 + 10 * MS, T0 + 13 * MS);
    assert_int_equal(begin(T0).wake_ns, expected_ns);
}

/* The low 32 bits of this key are 0 after mixing, and 0 would mean that the request has no key. */
static void every_retry_key_is_limited(void **state)
{
    struct bide_request request = {.safety = BIDE_SAFE, .retry_key = UINT64_C(0xa0d6349ed189bf84)};
    (void)state;
    assert_int_equal((uint32_t)core_mix(request.retry_key), 0);
    reset_world();
    config.key_retries = 1;
    open_target();
    begin_as(&request, T0);
    assert_action(report(1, failed, T0), BIDE_ACTION_WAIT, BIDE_REASON_BACKOFF);
    begin_as(&request, T0);
    assert_action(report(1, failed, T0), BIDE_ACTION_GIVE_UP, BIDE_REASON_KEY_LIMIT);
}

/* The server asked the first attempt for 50 ms, which have passed when its hedge fails. */
static void a_hint_of_the_round_that_has_passed_is_no_hint(void **state)
{
    (void)state;
    open_hedged(1);
    policy.hint_rule = BIDE_HINT_RULE_EXACT;
    begin(T0);
    wake(T0 + 100 * MS);
    report(1, with_hint(failed, 50 * MS), T0 + 100 * MS);
    assert_verdict(report(2, failed, T0 + 200 * MS), VERDICT(WAIT, BACKOFF, 2, T0 + 300 * MS, NEVER, NEVER));
}

/* A reload removes the in-flight limit while a call waits: its retry is not counted, and releases no permit. */
static void a_retry_releases_no_permit_of_another_call(void **state)
{
    (void)state;
    for (int slow = 0; slow < 2; slow++) {
        struct bide_call other;
        reset_world();
        config.in_flight_max = 2;
        open_target();
        begin(T0);
        assert_action(report(1, failed, T0), BIDE_ACTION_WAIT, BIDE_REASON_BACKOFF);
        bide_call_begin(&other, &policy, &target, &get, T0);
        assert_int_equal(target.in_flight, 1);
        config.in_flight_max = 0;
        assert_int_equal(bide_target_configure(&target, &config, T0, NULL), BIDE_OK);
        core_force_slow_path = slow;
        assert_action(wake(T0 + 100 * MS), BIDE_ACTION_START, BIDE_REASON_RETRY);
        core_force_slow_path = false;
        assert_action(report(2, good, T0 + 100 * MS), BIDE_ACTION_DONE, BIDE_REASON_SUCCEEDED);
        assert_int_equal(target.in_flight, 1);
    }
}

static void a_wake_up_to_a_second_late_starts_the_retry(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        bool slow = i & 1, too_late = i & 2;
        reset_world();
        policy.jitter = BIDE_JITTER_FULL;
        open_target();
        core_force_slow_path = slow;
        begin(T0);
        int64_t wake_ns = report(1, failed, T0).wake_ns;
        assert_action(wake(wake_ns + S + too_late), too_late ? BIDE_ACTION_WAIT : BIDE_ACTION_START,
                      too_late ? BIDE_REASON_LATE_WAKE : BIDE_REASON_RETRY);
        core_force_slow_path = false;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_fits_96_bytes_and_a_target_36_cache_lines),
        cmocka_unit_test(every_verdict_sets_every_field),
        cmocka_unit_test(an_attempt_ends_at_its_own_deadline_or_the_call_s),
        cmocka_unit_test(events_of_a_call_that_never_began_return_none),
        cmocka_unit_test(a_call_refused_at_begin_made_no_attempt),
        cmocka_unit_test(a_mutating_request_without_a_key_is_refused_or_observed),
        cmocka_unit_test(without_a_target_only_the_policy_decides),
        cmocka_unit_test(a_hedge_starts_only_if_no_gate_refuses),
        cmocka_unit_test(a_gate_in_observe_mode_admits_the_hedge),
        cmocka_unit_test(a_refused_hedge_may_be_tried_again_in_the_next_round),
        cmocka_unit_test(a_request_that_may_not_be_hedged_has_no_timer),
        cmocka_unit_test(the_latency_quantile_sets_the_hedge_delay_once_known),
        cmocka_unit_test(the_longest_hint_of_a_round_applies),
        cmocka_unit_test(a_failure_without_a_hint_leaves_the_planned_hedges),
        cmocka_unit_test(a_hint_to_one_attempt_stops_further_hedges),
        cmocka_unit_test(a_hint_that_expired_during_the_round_is_ignored),
        cmocka_unit_test(a_stop_to_one_attempt_applies_to_the_round),
        cmocka_unit_test(an_observed_stop_keeps_the_hint_of_the_round),
        cmocka_unit_test(a_spent_body_of_one_attempt_applies_to_the_round),
        cmocka_unit_test(a_final_outcome_ends_the_round_and_names_its_attempt),
        cmocka_unit_test(a_round_is_cancelled_when_all_its_attempts_are),
        cmocka_unit_test(each_outcome_votes_as_failure_healthy_or_not_at_all),
        cmocka_unit_test(a_slow_success_may_count_as_a_failure),
        cmocka_unit_test(the_throttle_counts_accepted_attempts),
        cmocka_unit_test(the_fast_paths_give_the_same_result_as_the_slow_paths),
        cmocka_unit_test(a_success_with_more_to_record_takes_the_slow_path),
        cmocka_unit_test(the_fast_path_accepts_only_the_attempt_in_flight),
        cmocka_unit_test(the_fast_paths_detect_a_new_owner),
        cmocka_unit_test(the_breaker_is_consulted_again_after_the_wait),
        cmocka_unit_test(the_latency_of_a_hedge_counts_from_its_own_start),
        cmocka_unit_test(a_hedge_after_more_than_an_hour_has_a_start_too),
        cmocka_unit_test(a_hold_off_until_the_first_instant_is_kept),
        cmocka_unit_test(a_deadline_before_the_first_instant_has_passed),
        cmocka_unit_test(only_a_concurrency_budget_counts_the_calls),
        cmocka_unit_test(the_lowest_quantile_of_the_latency_delays_a_hedge),
        cmocka_unit_test(every_retry_key_is_limited),
        cmocka_unit_test(a_hint_of_the_round_that_has_passed_is_no_hint),
        cmocka_unit_test(a_retry_releases_no_permit_of_another_call),
        cmocka_unit_test(a_wake_up_to_a_second_late_starts_the_retry),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
