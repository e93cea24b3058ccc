/* test_resources.c - the resources that a call holds of its target (lib/core/resources.c), each released exactly once.
 *
 * Every count returns to its initial value on every path of a call; charges that were not used are refunded; a call
 * whose target has a new owner changes nothing. First stage by stage, then charges and keys separately, and last
 * several calls to one target that receive any events in any order. */
#include "call_world.h"
#include "seed.h"

static const enum bide_budget_kind refillable[] = {BIDE_BUDGET_TOKENS, BIDE_BUDGET_WINDOW, BIDE_BUDGET_CONCURRENCY};

/* A target with another kind of budget. */
static void use_budget_kind(enum bide_budget_kind kind, uint32_t reserve)
{
    config.budget.kind = kind;
    config.budget.reserve = reserve;
    open_target();
}

/* ---- stages of a call ---- */

enum stage { BEGUN, RUNNING, HEDGED, PROBING, WAITING, GIVING_UP, STAGES };

/* Brings a call to a stage in which it holds everything possible: permits in flight and of the calls, a probe slot,
 * a token, a charge of its key. */
static void stage_call(enum stage stage, enum bide_budget_kind kind)
{
    reset_world();
    config.in_flight_max = 4;
    config.key_retries = 2;
    config.latency = true;
    config.hold_off_first = true;
    config.throttle_k_milli = 2000;
    config.budget.kind = kind;
    config.budget.reserve = 5;
    config.breaker.kind = BIDE_BREAKER_BY_RUN;
    config.breaker.consecutive = 1;
    config.breaker.open_ns = config.breaker.open_max_ns = S;
    config.breaker.open_jitter_permille = 0;
    policy.hedges_max = stage == HEDGED ? 2 : 0;
    policy.hedge_delay_ns = 0;
    policy.long_poll = true;
    open_target();
    switch (stage) {
    case BEGUN:
        bide_target_hold_off(&target, T0 + S, T0);
        assert_action(begin_as(&keyed, T0), BIDE_ACTION_WAIT, BIDE_REASON_HOLD_OFF);
        break;
    case PROBING:
        begin_as(&keyed, T0);
        report(1, failed, T0); /* opens the breaker; two seconds later it is half open */
        cancel(T0);
        assert_action(begin_as(&keyed, T0 + 2 * S), BIDE_ACTION_START, BIDE_REASON_FIRST_ATTEMPT);
        assert_int_equal(core_breaker_get(&target).state, BIDE_BREAKER_HALF_OPEN);
        break;
    case RUNNING: assert_action(begin_as(&keyed, T0), BIDE_ACTION_START, BIDE_REASON_FIRST_ATTEMPT); break;
    case HEDGED:
        begin_as(&keyed, T0);
        assert_action(wake(T0), BIDE_ACTION_START, BIDE_REASON_HEDGE);
        assert_action(wake(T0), BIDE_ACTION_START, BIDE_REASON_HEDGE);
        break;
    case WAITING:
        begin_as(&keyed, T0);
        bide_breaker_hold(&target, BIDE_HOLD_CLOSED);
        assert_action(report(1, failed, T0), BIDE_ACTION_WAIT, BIDE_REASON_BACKOFF);
        break;
    case GIVING_UP:
        target.config[0].budget.capacity_milli = target.config[0].budget.reserve = 0;
        begin_as(&keyed, T0);
        bide_breaker_hold(&target, BIDE_HOLD_CLOSED);
        assert_action(report(1, failed, T0), BIDE_ACTION_WAIT, BIDE_REASON_BUDGET_EMPTY);
        break;
    case STAGES: break;
    }
}

static void a_cancelled_call_releases_its_resources_in_every_stage(void **state)
{
    (void)state;
    for (size_t k = 0; k < COUNT(refillable); k++)
        for (enum stage stage = BEGUN; stage < STAGES; stage++) {
            stage_call(stage, refillable[k]);
            int64_t spent = stage == HEDGED && refillable[k] != BIDE_BUDGET_CONCURRENCY ? 2000 : 0;
            int64_t most = stage == GIVING_UP ? 0 : refillable[k] == BIDE_BUDGET_TOKENS ? 10000 : 5000;
            assert_action(cancel(T0 + 2 * S), BIDE_ACTION_GIVE_UP, BIDE_REASON_CANCELLED);
            assert_action(cancel(T0 + 2 * S), BIDE_ACTION_NONE, BIDE_REASON_NOTHING);
            assert_nothing_held();
            assert_int_equal(tokens_left(), most - spent);
            for (size_t i = 0; i < BIDE_KEY_WORDS; i++) /* the hedges were sent: their key charges stay */
                if (stage != HEDGED)
                    assert_int_equal(target.key[i] >> 36 & 0xff, 0);
        }
}

static void every_end_of_a_call_releases_its_probe_slot(void **state)
{
    enum way { CANCEL, CANCELLED, UNSENT, PERMANENT, CONFLICT, IN_FLIGHT_FULL, WAYS };
    (void)state;
    for (enum way way = CANCEL; way < WAYS; way++) {
        stage_call(PROBING, BIDE_BUDGET_TOKENS);
        switch (way) {
        case CANCEL: cancel(T0 + 2 * S); break;
        case CANCELLED: report(1, stopped, T0 + 2 * S); break;
        case UNSENT: report(1, unsent, T0 + 2 * S); break;
        case PERMANENT: report(1, hopeless, T0 + 2 * S); break;
        case CONFLICT: report(1, conflict, T0 + 2 * S); break;
        case IN_FLIGHT_FULL:
            cancel(T0 + 2 * S);
            target.in_flight = 4;
            assert_action(begin(T0 + 2 * S), BIDE_ACTION_GIVE_UP, BIDE_REASON_IN_FLIGHT_FULL);
            target.in_flight = 0;
            break;
        case WAYS: break;
        }
        assert_int_equal(core_breaker_get(&target).state, BIDE_BREAKER_HALF_OPEN);
        assert_action(begin(T0 + 2 * S), BIDE_ACTION_START, BIDE_REASON_FIRST_ATTEMPT); /* the slot is free */
        struct bide_call second;
        assert_action(bide_call_begin(&second, &policy, &target, &get, T0 + 2 * S), BIDE_ACTION_GIVE_UP,
                      BIDE_REASON_BREAKER_PROBING);
    }
}

static void a_call_whose_probe_voted_is_no_longer_a_probe(void **state)
{
    (void)state;
    stage_call(PROBING, BIDE_BUDGET_TOKENS);
    policy.hedges_max = 1;
    assert_action(report(1, conflict, T0 + 2 * S), BIDE_ACTION_WAIT, BIDE_REASON_CONFLICT);
    bide_breaker_hold(&target, BIDE_HOLD_CLOSED); /* closed in the meantime */
    struct bide_verdict v = wake(T0 + 2 * S);
    assert_action(v, BIDE_ACTION_START, BIDE_REASON_RETRY);
    assert_int_equal(v.wake_ns, T0 + 2 * S); /* so it may be hedged */
}

static void a_call_does_not_change_a_target_with_a_new_owner(void **state)
{
    enum event { OK, FAILED, PERMANENT, UNSENT, WAKE, CANCEL, EVENTS };
    static struct bide_target before;
    (void)state;
    for (size_t k = 0; k < COUNT(refillable); k++)
        for (int i = 0; i < STAGES * EVENTS; i++) {
            stage_call((enum stage)(i / EVENTS), refillable[k]);
            before = target;
            if (core_target_reuse(&target, &config, T0 + 2 * S, NULL) == BIDE_ERR_BUSY) {
                assert_memory_equal(&target, &before,
                                    sizeof target); /* it holds a permit that must be released first */
                target.in_flight = target.calls = target.retries = 0;
                assert_int_equal(core_target_reuse(&target, &config, T0 + 2 * S, NULL), BIDE_OK);
            }
            before = target;
            switch ((enum event)(i % EVENTS)) {
            case OK: report(call.attempt, good, T0 + 5 * S); break;
            case FAILED: report(call.attempt, with_hint(limited, S), T0 + 5 * S); break;
            case PERMANENT: report(call.attempt, hopeless, T0 + 5 * S); break;
            case UNSENT: report(call.attempt, unsent, T0 + 5 * S); break;
            case WAKE: wake(T0 + 5 * S); break;
            case CANCEL:
            case EVENTS: break;
            }
            wake(T0 + 10 * S);
            report(call.attempt, failed, T0 + 10 * S);
            wake(T0 + 20 * S);
            cancel(T0 + 20 * S);
            assert_memory_equal(&target, &before, sizeof target);
        }
}

/* Order or segment numbers work as keys: they need not be hashed. */
static void small_numbers_are_different_keys(void **state)
{
    (void)state;
    reset_world();
    config.key_retries = 1;
    open_target();
    for (uint64_t key = 1; key <= 6; key++) {
        begin_as(&(struct bide_request){.safety = BIDE_SAFE, .retry_key = key}, T0);
        assert_int_equal(report(1, failed, T0).action, BIDE_ACTION_WAIT);
    }
    begin_as(&(struct bide_request){.safety = BIDE_SAFE, .retry_key = 6}, T0);
    assert_action(report(1, failed, T0), BIDE_ACTION_GIVE_UP, BIDE_REASON_KEY_LIMIT);
}

/* The memory was given to a new owner during an event: a permit that was not acquired is not released later either. */
static void permits_of_a_new_owner_are_neither_acquired_nor_released(void **state)
{
    const uint64_t another = UINT64_C(5) << CORE_OWNER_SHIFT;
    (void)state;
    reset_world();
    config.in_flight_max = 1;
    config.observe = BIDE_GATE_IN_FLIGHT;
    config.budget = (struct bide_budget_config){.kind = BIDE_BUDGET_CONCURRENCY, .reserve = 1, .window_ns = S};
    open_target();
    target.in_flight = target.calls = target.retries = another;
    begin(T0);
    report(1, good, T0);
    assert_int_equal(target.in_flight, another);
    assert_int_equal(target.calls, another);
    begin(T0);
    assert_action(report(1, failed, T0), BIDE_ACTION_GIVE_UP, BIDE_REASON_BUDGET_EMPTY);
    assert_int_equal(target.retries, another);
}

static void a_permit_lost_to_another_thread_is_requested_again(void **state)
{
    (void)state;
    uint64_t word = 0;
    core_cas_failures = 2;
    assert_true(core_permit_acquire(&word, 0, 1));
    assert_int_equal(core_cas_failures, 0);
    assert_int_equal(core_permits_held(&word), 1);
    core_cas_failures = 2;
    core_permit_release(&word, 0, 1);
    assert_int_equal(core_cas_failures, 0);
    assert_int_equal(core_permits_held(&word), 0);
}

/* The running attempt may still succeed, but the cost of a retry is unknown. */
static void a_call_whose_target_has_a_new_owner_may_succeed_but_is_not_retried(void **state)
{
    (void)state;
    for (int succeeds = 0; succeeds < 2; succeeds++) {
        stage_call(HEDGED, BIDE_BUDGET_TOKENS);
        target.in_flight = 0; /* no permit held, so that a table may reuse it */
        assert_int_equal(core_target_reuse(&target, &config, T0, NULL), BIDE_OK);
        bide_breaker_hold(&target, BIDE_HOLD_OPEN); /* by the new owner */
        assert_action(report(1, failed, T0), BIDE_ACTION_NONE, BIDE_REASON_NOTHING);
        assert_action(report(2, failed, T0), BIDE_ACTION_NONE, BIDE_REASON_NOTHING);
        if (succeeds)
            assert_action(report(3, good, T0), BIDE_ACTION_DONE, BIDE_REASON_SUCCEEDED);
        else
            assert_action(report(3, failed, T0), BIDE_ACTION_GIVE_UP, BIDE_REASON_TARGET_GONE);
    }
    stage_call(RUNNING, BIDE_BUDGET_TOKENS);
    policy.hedges_max = 1;
    begin(T0);
    target.in_flight = 0;
    assert_int_equal(core_target_reuse(&target, &config, T0, NULL), BIDE_OK);
    assert_action(wake(T0), BIDE_ACTION_NONE, BIDE_REASON_TARGET_GONE); /* and not hedged */
    assert_action(report(1, good, T0), BIDE_ACTION_DONE, BIDE_REASON_SUCCEEDED);
}

/* ---- a wake that is refused ---- */

static void a_refused_wake_refunds_token_and_key(void **state)
{
    enum refusal { BREAKER, FLIGHT, THROTTLE, DEADLINE, REFUSALS };
    static const enum bide_reason reasons[] = {BIDE_REASON_BREAKER_OPEN, BIDE_REASON_IN_FLIGHT_FULL,
                                               BIDE_REASON_THROTTLE, BIDE_REASON_DEADLINE};
    (void)state;
    for (enum refusal refusal = BREAKER; refusal < REFUSALS; refusal++) {
        stage_call(WAITING, BIDE_BUDGET_TOKENS);
        assert_int_equal(tokens_left(), 9000);
        if (refusal == BREAKER)
            bide_breaker_hold(&target, BIDE_HOLD_OPEN);
        if (refusal == FLIGHT)
            target.in_flight = 4;
        if (refusal == THROTTLE)
            target.lane[0].attempts += 1000000, target.config[0].throttle_max_permille = 1000;
        assert_action(wake(refusal == DEADLINE ? T0 + 60 * S : T0 + S), BIDE_ACTION_GIVE_UP, reasons[refusal]);
        assert_int_equal(tokens_left(), 10000);
        assert_int_equal(target.in_flight, refusal == FLIGHT ? 4 : 0);
        for (size_t i = 0; i < BIDE_KEY_WORDS; i++)
            assert_int_equal(target.key[i] >> 36 & 0xff, 0);
    }
}

/* ---- hedges ---- */

static void at_done_the_losing_hedges_are_accounted_for(void **state)
{
    (void)state;
    for (uint32_t winner = 1; winner <= 3; winner++) {
        open_hedged(2);
        use_budget_kind(BIDE_BUDGET_CONCURRENCY, 5);
        begin(T0);
        wake(T0 + 100 * MS);
        wake(T0 + 200 * MS);
        assert_int_equal(target.in_flight, 3);
        assert_int_equal(target.retries, 2);
        assert_int_equal(target.calls, 1);
        struct bide_verdict v = report(winner, good, T0 + S);
        assert_action(v, BIDE_ACTION_DONE, BIDE_REASON_SUCCEEDED);
        assert_int_equal(v.attempt, winner);
        assert_nothing_held();
        assert_int_equal(latencies(), 3); /* the losing attempts took at least that long */
        for (uint32_t loser = 1; loser <= 3; loser++)
            assert_action(report(loser, failed, T0 + S), BIDE_ACTION_NONE, BIDE_REASON_NOTHING);
        assert_int_equal(latencies(), 3);
    }
}

static void an_unsent_hedge_is_refunded_while_another_attempt_runs(void **state)
{
    (void)state;
    for (size_t k = 0; k < COUNT(refillable); k++) {
        open_hedged(2);
        config.budget.ratio_ppm = 0;
        use_budget_kind(refillable[k], 10);
        begin(T0);
        wake(T0 + 100 * MS);
        wake(T0 + 200 * MS);
        assert_int_equal(tokens_left(), 8000);
        assert_action(report(3, unsent, T0 + 200 * MS), BIDE_ACTION_NONE, BIDE_REASON_NOTHING);
        assert_int_equal(tokens_left(), 9000);
        assert_action(report(2, unsent, T0 + 200 * MS), BIDE_ACTION_NONE,
                      BIDE_REASON_NOTHING); /* not the last charge */
        assert_int_equal(tokens_left(), 9000);
        report(1, good, T0 + S);
        assert_int_equal(tokens_left(), refillable[k] == BIDE_BUDGET_CONCURRENCY ? 10000 : 9000);
        assert_nothing_held();
    }
}

static void an_unsent_only_hedge_releases_its_permit(void **state)
{
    (void)state;
    open_hedged(1);
    use_budget_kind(BIDE_BUDGET_CONCURRENCY, 2);
    begin(T0);
    wake(T0 + 100 * MS);
    assert_int_equal(target.retries, 1);
    report(2, unsent, T0 + 200 * MS);
    assert_int_equal(target.retries, 0);
    assert_int_equal(report(1, failed, T0 + S).action, BIDE_ACTION_WAIT);
    assert_int_equal(target.retries, 1);
    cancel(T0 + S);
    assert_nothing_held();
}

static void an_unsent_retry_is_not_refunded_twice(void **state)
{
    (void)state;
    open_hedged(1);
    config.budget.initial_milli = 5000;
    config.budget.refund_permille = 1000;
    open_target();
    begin(T0);
    wake(T0 + 100 * MS);
    assert_int_equal(tokens_left(), 4000);
    report(2, unsent, T0 + 100 * MS);
    assert_int_equal(tokens_left(), 5000);
    assert_action(report(1, good, T0 + S), BIDE_ACTION_DONE, BIDE_REASON_SUCCEEDED);
    assert_int_equal(tokens_left(), 5000);
}

static void a_refused_hedge_refunds_its_key_once(void **state)
{
    (void)state;
    open_hedged(1);
    config.key_retries = 2;
    config.budget.initial_milli = 1000;
    open_target();
    charge_key_of_another_call(); /* one of two charges, and the only token */
    begin_as(&keyed, T0);
    assert_hedge_refused(BIDE_REASON_BUDGET_EMPTY, "budget");
    bide_budget_add_milli(&target, 9000, T0);
    charge_key_of_another_call(); /* the other charge */
    begin_as(&keyed, T0);
    assert_action(report(1, failed, T0), BIDE_ACTION_GIVE_UP, BIDE_REASON_KEY_LIMIT);
}

static void permits_of_hedges_survive_a_reload_to_another_kind(void **state)
{
    (void)state;
    open_hedged(2);
    use_budget_kind(BIDE_BUDGET_CONCURRENCY, 5);
    begin(T0);
    wake(T0 + 100 * MS);
    assert_int_equal(target.retries, 1);
    config.budget.kind = BIDE_BUDGET_TOKENS;
    bide_target_configure(&target, &config, T0 + 100 * MS, NULL);
    int64_t before = tokens_left();
    assert_action(wake(T0 + 200 * MS), BIDE_ACTION_START,
                  BIDE_REASON_HEDGE); /* charged to the new kind, and the old permit is released */
    assert_int_equal(target.retries, 0);
    assert_int_equal(tokens_left(), before - 1000);
    report(1, good, T0 + S);
    assert_nothing_held();
}

/* ---- charges ---- */

static void an_unsent_attempt_is_refunded(void **state)
{
    (void)state;
    open_default();
    begin(T0);
    assert_action(report(1, unsent, T0), BIDE_ACTION_GIVE_UP,
                  BIDE_REASON_CANCELLED); /* a first attempt was never charged */
    assert_int_equal(tokens_left(), 10000);
    begin(T0);
    report(1, failed, T0);
    wake(T0 + S);
    assert_int_equal(tokens_left(), 9000);
    assert_action(report(2, stopped, T0 + S), BIDE_ACTION_GIVE_UP, BIDE_REASON_CANCELLED); /* it was sent */
    assert_int_equal(tokens_left(), 9000);
    begin(T0);
    report(1, failed, T0);
    wake(T0 + S);
    assert_action(report(2, unsent, T0 + S), BIDE_ACTION_GIVE_UP, BIDE_REASON_CANCELLED);
    assert_int_equal(tokens_left(), 9000);
}

/* In observe mode a retry may start that the budget did not pay: it is not refunded. */
static void an_uncharged_retry_is_not_refunded(void **state)
{
    (void)state;
    reset_world();
    config.observe = BIDE_GATE_BUDGET;
    config.budget.initial_milli = 1000;
    config.budget.refund_permille = 1000;
    open_target();
    for (int sent = 0; sent < 2; sent++) {
        begin(T0);
        report(1, failed, T0);
        wake(T0 + S);
        assert_int_equal(tokens_left(), 0);
        struct bide_verdict v = report(2, failed, T0 + S);
        assert_action(v, BIDE_ACTION_WAIT, BIDE_REASON_BACKOFF);
        assert_int_equal(v.observed, BIDE_GATE_BUDGET);
        wake(T0 + 2 * S);
        report(3, sent ? good : unsent, T0 + 2 * S);
        assert_int_equal(tokens_left(), 0);
        bide_budget_add_milli(&target, 1000, T0);
    }
}

static void the_refund_is_the_last_charge_only(void **state)
{
    (void)state;
    reset_world();
    config.budget.refund_permille = 1000;
    config.budget.cost_throttled_milli = 3000;
    open_target();
    begin(T0);
    report(1, failed, T0);
    wake(T0 + S);
    report(2, limited, T0 + S);
    wake(T0 + 2 * S);
    assert_int_equal(tokens_left(), 6000);
    report(3, good, T0 + 2 * S);
    assert_int_equal(tokens_left(), 9000);
}

static void a_charge_in_another_kind_of_budget_is_not_refunded_in_tokens(void **state)
{
    (void)state;
    reset_world();
    config.budget.kind = BIDE_BUDGET_WINDOW;
    config.budget.reserve = 5;
    config.budget.refund_permille = 1000;
    config.budget.earn_success_milli = 10;
    open_target();
    begin(T0);
    report(1, failed, T0);
    wake(T0 + S);
    config.budget.kind = BIDE_BUDGET_TOKENS;
    bide_target_configure(&target, &config, T0 + S, NULL);
    int64_t before = tokens_left();
    report(2, good, T0 + S);
    assert_int_equal(tokens_left(), before + 10);
}

static void a_reload_without_a_budget_during_a_call_is_harmless(void **state)
{
    (void)state;
    for (size_t k = 0; k < COUNT(refillable); k++) {
        reset_world();
        use_budget_kind(refillable[k], 5);
        begin(T0);
        report(1, failed, T0);
        config.budget.kind = BIDE_BUDGET_NONE;
        bide_target_configure(&target, &config, T0, NULL);
        assert_action(wake(T0 + S), BIDE_ACTION_START, BIDE_REASON_RETRY);
        assert_action(report(2, failed, T0 + S), BIDE_ACTION_WAIT, BIDE_REASON_BACKOFF);
        wake(T0 + 2 * S);
        report(3, good, T0 + 2 * S);
        assert_nothing_held();
    }
}

static void an_empty_budget_may_open_the_breaker(void **state)
{
    (void)state;
    reset_world();
    config.budget.on_empty = BIDE_ON_EMPTY_OPEN;
    config.budget.initial_milli = 0;
    config.breaker.kind = BIDE_BREAKER_BY_RUN;
    open_target();
    begin(T0);
    assert_action(report(1, failed, T0), BIDE_ACTION_GIVE_UP, BIDE_REASON_BUDGET_EMPTY);
    assert_int_equal(core_breaker_get(&target).state, BIDE_BREAKER_OPEN);
    assert_action(begin(T0), BIDE_ACTION_GIVE_UP, BIDE_REASON_BREAKER_OPEN);
}

static void a_long_poll_that_is_giving_up_ignores_further_outcomes(void **state)
{
    (void)state;
    stage_call(GIVING_UP, BIDE_BUDGET_TOKENS);
    assert_verdict(report(1, good, T0), VERDICT(NONE, NOTHING, 1, T0 + 100 * MS, NEVER, NEVER));
    assert_verdict(wake(T0), VERDICT(NONE, NOTHING, 1, T0 + 100 * MS, NEVER, NEVER));
    assert_verdict(wake(T0 + 100 * MS), VERDICT(GIVE_UP, BUDGET_EMPTY, 1, NEVER, NEVER, NEVER));
    assert_nothing_held();
}

/* ---- keys ---- */

static void a_key_limit_refuses_or_observes(void **state)
{
    (void)state;
    for (int observe = 0; observe < 2; observe++) {
        reset_world();
        config.key_retries = 1;
        config.observe = observe ? BIDE_GATE_KEY_LIMIT : 0;
        open_target();
        begin_as(&keyed, T0);
        report(1, failed, T0);
        wake(T0 + S);
        struct bide_verdict v = report(2, failed, T0 + S);
        assert_int_equal(v.action, observe ? BIDE_ACTION_WAIT : BIDE_ACTION_GIVE_UP);
        assert_int_equal(v.observed, observe ? BIDE_GATE_KEY_LIMIT : 0);
        cancel(T0 + S);
        begin(T0 + S);
        assert_int_equal(report(1, failed, T0 + S).action,
                         BIDE_ACTION_WAIT); /* a request without a key is not limited */
    }
}

static void a_key_whose_halves_cancel_out_is_still_a_key(void **state)
{
    struct bide_request request = {.safety = BIDE_SAFE, .retry_key = UINT64_C(0x1234567812345678)};
    (void)state;
    reset_world();
    config.key_retries = 1;
    open_target();
    for (int i = 0; i < 2; i++) {
        begin_as(&request, T0);
        assert_int_equal(report(1, failed, T0).action, i == 0 ? BIDE_ACTION_WAIT : BIDE_ACTION_GIVE_UP);
    }
}

/* ---- any events in any order ---- */

static uint64_t next_random(uint64_t *x)
{
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return *x;
}

static uint32_t pick(uint64_t *x, uint32_t below)
{
    return (uint32_t)(next_random(x) >> 33) % below;
}

/* One of several calls to one target, with the test's own account of it. */
struct actor {
    struct bide_call call;
    bool begun, over;
    uint64_t live; /* attempts in flight, one bit each */
    bool held;     /* the charge of a retry that has not started */
    bool paid;     /* the last attempt was charged */
};

enum { ACTORS = 6, STEPS = 400 };

struct play {
    struct actor actor[ACTORS];
    uint64_t x;
    int64_t now_ns;
    int64_t spent; /* charges that are spent */
};

static struct bide_outcome any_outcome(uint64_t *x)
{
    struct bide_outcome o = {.kind = (enum bide_kind)pick(x, BIDE_KIND_OK + 1),
                             .evidence = (enum bide_evidence)pick(x, BIDE_EVIDENCE_BODY_DELIVERED + 1),
                             .flags = pick(x, 4) == 0 ? pick(x, 64) : 0};
    o.kind = pick(x, 2) ? BIDE_KIND_TRANSIENT : o.kind;
    o.evidence = pick(x, 2) ? BIDE_EVIDENCE_ANSWERED : o.evidence;
    if (pick(x, 4) == 0)
        o.hint = (struct bide_hint){(enum bide_hint_kind)pick(x, 3), (int64_t)pick(x, 4000) * MS};
    return o;
}

static struct bide_verdict play_begin(struct play *p, struct actor *a)
{
    struct bide_request request = {.safety = pick(&p->x, 4) ? BIDE_SAFE : (enum bide_safety)pick(&p->x, 4),
                                   .lane = pick(&p->x, 100),
                                   .seed = next_random(&p->x),
                                   .retry_key = pick(&p->x, 5),
                                   .inbound = {.attempt = pick(&p->x, 20) == 0 ? 2 : 0}};
    *a = (struct actor){.begun = true};
    return bide_call_begin(&a->call, &policy, &target, &request, p->now_ns);
}

static struct bide_verdict play_outcome(struct play *p, struct actor *a)
{
    struct bide_outcome o = any_outcome(&p->x);
    uint32_t attempt = a->call.attempt + 1 - pick(&p->x, 4); /* sometimes an attempt that is not in flight */
    bool live = attempt < 64 && a->live >> attempt & 1;
    bool back = live && o.kind == BIDE_KIND_CANCELLED && o.evidence == BIDE_EVIDENCE_NOT_SENT;
    struct bide_verdict v = bide_call_outcome(&a->call, attempt, &o, p->now_ns);
    assert_int_equal(v.action == BIDE_ACTION_DONE, live && o.kind == BIDE_KIND_OK);
    assert_int_not_equal(v.action, BIDE_ACTION_START);
    if (back && attempt == a->call.attempt && a->paid) {
        p->spent--;
        a->paid = false;
    }
    a->live &= live ? ~(UINT64_C(1) << attempt) : UINT64_MAX;
    a->held = v.action == BIDE_ACTION_WAIT && v.reason != BIDE_REASON_BUDGET_EMPTY
                  ? live && !(v.observed & BIDE_GATE_BUDGET)
                  : a->held;
    return v;
}

static struct bide_verdict play_event(struct play *p, struct actor *a)
{
    if (!a->begun || a->over)
        return play_begin(p, a);
    switch (pick(&p->x, 8)) {
    case 0: return bide_call_cancel(&a->call, p->now_ns);
    case 1:
    case 2:
    case 3:
        p->now_ns = a->call.wake_ns != NEVER && a->call.wake_ns > p->now_ns ? a->call.wake_ns : p->now_ns;
        return bide_call_wake(&a->call, p->now_ns);
    default: return play_outcome(p, a);
    }
}

static void play_step(struct play *p)
{
    struct actor *a = &p->actor[pick(&p->x, ACTORS)];
    p->now_ns += pick(&p->x, 300) * MS;
    struct bide_verdict v = play_event(p, a);
    if (v.action == BIDE_ACTION_START) {
        a->paid = a->held || (v.reason == BIDE_REASON_HEDGE && !(v.observed & BIDE_GATE_BUDGET));
        p->spent += a->paid;
        a->held = false;
        a->live |= UINT64_C(1) << v.attempt;
    }
    if (v.action == BIDE_ACTION_DONE || v.action == BIDE_ACTION_GIVE_UP) {
        a->over = true;
        a->held = false;
        a->live = 0;
        assert_int_equal(bide_call_wake(&a->call, p->now_ns).action, BIDE_ACTION_NONE);
        assert_int_equal(bide_call_cancel(&a->call, p->now_ns).action, BIDE_ACTION_NONE);
    }
}

static void any_configuration(uint64_t *x)
{
    reset_world();
    policy.jitter = (enum bide_jitter)pick(x, BIDE_JITTER_NONE + 1);
    policy.jitter_add_ns = 10 * MS;
    policy.attempts_max = 1 + pick(x, 8);
    policy.hedges_max = pick(x, policy.attempts_max < 4 ? policy.attempts_max : 4);
    policy.hedge_delay_ns = pick(x, 300) * MS;
    policy.long_poll = pick(x, 2);
    policy.hint_rule = (enum bide_hint_rule)pick(x, BIDE_HINT_RULE_IGNORE + 1);
    policy.observe = pick(x, 2) ? 0 : pick(x, 16);
    config.in_flight_max = pick(x, 4);
    config.key_retries = pick(x, 4);
    config.latency = pick(x, 2);
    config.hold_off_first = pick(x, 2);
    config.throttle_k_milli = pick(x, 2) ? 2000 : 0;
    config.breaker.kind = (enum bide_breaker_kind)pick(x, BIDE_BREAKER_OFF + 1);
    config.breaker.consecutive = 2;
    config.breaker.min_volume = 5;
    config.breaker.open_ns = config.breaker.open_max_ns = 500 * MS;
    config.breaker.ramp_ns = S;
    config.budget.window_ns = 1000000 * S;
    config.budget.reserve = 10;
    config.budget.ratio_ppm = 0;
    config.observe = pick(x, 2) ? 0 : pick(x, 32) << 4;
}

static uint32_t count_in_flight(const struct play *p)
{
    uint32_t n = 0;
    for (size_t i = 0; i < ACTORS; i++)
        n += (uint32_t)__builtin_popcountll(p->actor[i].live);
    return n;
}

static int64_t count_held(const struct play *p)
{
    int64_t n = 0;
    for (size_t i = 0; i < ACTORS; i++)
        n += p->actor[i].held;
    return n;
}

static void charges_and_permits_balance_after_every_event_from(uint64_t first)
{
    for (uint64_t seed = first; seed < first + 600; seed++) {
        struct play p = {.x = seed * 0x9e3779b97f4a7c15 | 1, .now_ns = T0};
        any_configuration(&p.x);
        config.budget.kind = refillable[seed % 3];
        bool counted = config.in_flight_max > 0, concurrency = config.budget.kind == BIDE_BUDGET_CONCURRENCY;
        open_target();
        for (int i = 0; i < STEPS; i++) {
            play_step(&p);
            int64_t balance = 10 - p.spent - count_held(&p);
            if (!concurrency && core_budget_left_milli(&target, p.now_ns) != 1000 * balance)
                fail_msg("seed %llu, step %d: the budget is off", (unsigned long long)seed, i);
            if (target.in_flight != (counted ? count_in_flight(&p) : 0))
                fail_msg("seed %llu, step %d: in flight is off", (unsigned long long)seed, i);
        }
        for (size_t i = 0; i < ACTORS; i++)
            bide_call_cancel(&p.actor[i].call, p.now_ns);
        assert_nothing_held();
        if (!concurrency)
            assert_int_equal(core_budget_left_milli(&target, p.now_ns), 1000 * (10 - p.spent));
    }
}

static void charges_and_permits_balance_after_every_event(void **state)
{
    (void)state;
    seed_each(1, charges_and_permits_balance_after_every_event_from);
}

static void reloads_between_events_leave_no_permit_behind_from(uint64_t first)
{
    for (uint64_t seed = first; seed < first + 300; seed++) {
        struct play p = {.x = seed * 0xd1342543de82ef95 | 1, .now_ns = T0};
        any_configuration(&p.x);
        open_target();
        for (int i = 0; i < STEPS; i++) {
            play_step(&p);
            if (pick(&p.x, 10) == 0) {
                config.budget.kind = (enum bide_budget_kind)pick(&p.x, BIDE_BUDGET_NONE + 1);
                config.in_flight_max = pick(&p.x, 4);
                config.key_retries = pick(&p.x, 3);
                config.observe = pick(&p.x, 2) ? 0 : pick(&p.x, 32) << 4;
                assert_int_equal(bide_target_configure(&target, &config, p.now_ns, NULL), BIDE_OK);
            }
        }
        for (size_t i = 0; i < ACTORS; i++)
            bide_call_cancel(&p.actor[i].call, p.now_ns);
        assert_nothing_held();
    }
}

static void reloads_between_events_leave_no_permit_behind(void **state)
{
    (void)state;
    seed_each(1, reloads_between_events_leave_no_permit_behind_from);
}

/* ---- permits of other calls ---- */

/* Another call holds a permit of the concurrency budget; the call under test may hedge twice. */
static void open_beside_another_retry(struct bide_call *other)
{
    open_hedged(2);
    config.budget.ratio_ppm = 0;
    use_budget_kind(BIDE_BUDGET_CONCURRENCY, 10);
    bide_call_begin(other, &policy, &target, &get, T0);
    assert_int_equal(bide_call_outcome(other, 1, &failed, T0).action, BIDE_ACTION_WAIT);
    assert_int_equal(target.retries, 1);
    begin(T0);
    wake(T0 + 100 * MS);
}

static void hedges_release_only_their_own_permits(void **state)
{
    struct bide_call other;
    (void)state;
    open_beside_another_retry(&other);
    wake(T0 + 200 * MS);
    assert_int_equal(target.retries, 3);
    assert_action(report(1, good, T0 + S), BIDE_ACTION_DONE, BIDE_REASON_SUCCEEDED);
    assert_int_equal(target.retries, 1);
}

static void an_unsent_hedge_releases_its_permit_once(void **state)
{
    struct bide_call other;
    (void)state;
    open_beside_another_retry(&other);
    report(2, unsent, T0 + 200 * MS);
    assert_int_equal(target.retries, 1);
    assert_action(report(1, good, T0 + S), BIDE_ACTION_DONE, BIDE_REASON_SUCCEEDED);
    assert_int_equal(target.retries, 1);
}

static void a_call_that_ends_releases_one_permit_of_the_calls(void **state)
{
    struct bide_call others[2];
    (void)state;
    reset_world();
    use_budget_kind(BIDE_BUDGET_CONCURRENCY, 10);
    for (size_t i = 0; i < COUNT(others); i++)
        bide_call_begin(&others[i], &policy, &target, &get, T0);
    begin(T0);
    cancel(T0);
    assert_int_equal(target.calls, COUNT(others));
}

static void a_hedge_is_not_limited_once_a_reload_removed_the_limit(void **state)
{
    (void)state;
    open_hedged(1);
    begin(T0);
    config.in_flight_max = 0;
    assert_int_equal(bide_target_configure(&target, &config, T0, NULL), BIDE_OK);
    assert_action(wake(T0 + 100 * MS), BIDE_ACTION_START, BIDE_REASON_HEDGE);
    assert_int_equal(target.in_flight, 2);
}

/* A count at its largest value takes no further permit, not even in observe mode. */
static void an_attempt_that_was_not_counted_releases_nothing(void **state)
{
    (void)state;
    open_hedged(1);
    config.observe = BIDE_GATE_IN_FLIGHT;
    open_target();
    target.in_flight = CORE_PERMITS_MAX;
    begin(T0);
    report(1, good, T0);
    assert_int_equal(target.in_flight, CORE_PERMITS_MAX);
}

/* The loser ran for 200 ms when the winner, which took 100 ms, succeeded. */
static void a_losing_attempt_is_recorded_with_its_time_so_far(void **state)
{
    (void)state;
    open_hedged(1);
    config.budget.capacity_milli = 100000;
    open_target();
    for (int i = 0; i < 20; i++) {
        begin(T0);
        wake(T0 + 100 * MS);
        report(2, good, T0 + 200 * MS);
    }
    assert_in_range(bide_target_latency_get(&target, 500), 100 * MS, 125 * MS);
    assert_in_range(bide_target_latency_get(&target, 999), 200 * MS, 250 * MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cancelled_call_releases_its_resources_in_every_stage),
        cmocka_unit_test(every_end_of_a_call_releases_its_probe_slot),
        cmocka_unit_test(a_call_whose_probe_voted_is_no_longer_a_probe),
        cmocka_unit_test(a_call_does_not_change_a_target_with_a_new_owner),
        cmocka_unit_test(small_numbers_are_different_keys),
        cmocka_unit_test(permits_of_a_new_owner_are_neither_acquired_nor_released),
        cmocka_unit_test(a_permit_lost_to_another_thread_is_requested_again),
        cmocka_unit_test(a_call_whose_target_has_a_new_owner_may_succeed_but_is_not_retried),
        cmocka_unit_test(a_refused_wake_refunds_token_and_key),
        cmocka_unit_test(at_done_the_losing_hedges_are_accounted_for),
        cmocka_unit_test(an_unsent_hedge_is_refunded_while_another_attempt_runs),
        cmocka_unit_test(an_unsent_only_hedge_releases_its_permit),
        cmocka_unit_test(an_unsent_retry_is_not_refunded_twice),
        cmocka_unit_test(a_refused_hedge_refunds_its_key_once),
        cmocka_unit_test(permits_of_hedges_survive_a_reload_to_another_kind),
        cmocka_unit_test(an_unsent_attempt_is_refunded),
        cmocka_unit_test(an_uncharged_retry_is_not_refunded),
        cmocka_unit_test(the_refund_is_the_last_charge_only),
        cmocka_unit_test(a_charge_in_another_kind_of_budget_is_not_refunded_in_tokens),
        cmocka_unit_test(a_reload_without_a_budget_during_a_call_is_harmless),
        cmocka_unit_test(an_empty_budget_may_open_the_breaker),
        cmocka_unit_test(a_long_poll_that_is_giving_up_ignores_further_outcomes),
        cmocka_unit_test(a_key_limit_refuses_or_observes),
        cmocka_unit_test(a_key_whose_halves_cancel_out_is_still_a_key),
        cmocka_unit_test(charges_and_permits_balance_after_every_event),
        cmocka_unit_test(reloads_between_events_leave_no_permit_behind),
        cmocka_unit_test(hedges_release_only_their_own_permits),
        cmocka_unit_test(an_unsent_hedge_releases_its_permit_once),
        cmocka_unit_test(a_call_that_ends_releases_one_permit_of_the_calls),
        cmocka_unit_test(a_hedge_is_not_limited_once_a_reload_removed_the_limit),
        cmocka_unit_test(an_attempt_that_was_not_counted_releases_nothing),
        cmocka_unit_test(a_losing_attempt_is_recorded_with_its_time_so_far),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
