/* test_lease.c - a target that a fleet funds: it earns nothing, and after the lease has expired it only refills.
 *
 * Time is an argument. A killed process is tested at every instruction: a child process is single-stepped through an
 * operation, and after each step the target is checked as if the child had died there. */
#define _GNU_SOURCE
#include "call_world.h"
#include "core/lease.h"

#include <pthread.h>
#include <sched.h>

#define MINUTE BIDE_MINUTE
#define TICK   (INT64_C(1) << 23) /* of the refill: 8.4 ms */

/* ---- the world ---- */

/* Ten tokens; a tenth per success; a refill of one per minute. */
static void fresh_and_funded(void)
{
    reset_world();
    config.budget.earn_success_milli = 100;
    config.budget.refill_per_minute_milli = 1000;
}

static void leased_at(int64_t now_ns)
{
    assert_int_equal(core_lease_begin(&target, now_ns, NULL), BIDE_OK);
}

static void open_leased(void)
{
    fresh_and_funded();
    open_target();
    leased_at(T0);
}

static int64_t tokens_left_at(int64_t now_ns)
{
    return core_budget_left_milli(&target, now_ns);
}

static int64_t add_tokens(int64_t milli)
{
    return bide_budget_add_milli(&target, milli, T0);
}

static bool charge_for(struct bide_target *t, int64_t now_ns)
{
    struct core_charge charge = {0};
    return core_budget_charge(t, &failed, now_ns, &charge);
}

static bool charge_retry(int64_t now_ns)
{
    return charge_for(&target, now_ns);
}

static void extend(int64_t until_ns, int64_t now_ns)
{
    core_lease_extend(&target, until_ns, now_ns);
}

/* Runs a call on a lane that succeeds at once. */
static void succeed_on(uint32_t lane)
{
    struct bide_request request = {.safety = BIDE_SAFE, .lane = lane};
    assert_action(begin_as(&request, T0), BIDE_ACTION_START, BIDE_REASON_FIRST_ATTEMPT);
    assert_action(report(1, good, T0), BIDE_ACTION_DONE, BIDE_REASON_SUCCEEDED);
}

static void assert_report(struct core_lease_report got, uint64_t firsts, uint64_t successes, uint64_t earned_milli)
{
    assert_int_equal(got.firsts, firsts);
    assert_int_equal(got.successes, successes);
    assert_int_equal(got.earned_milli, earned_milli);
}

static enum bide_err reload(struct bide_problem *problem, int64_t now_ns)
{
    return bide_target_configure(&target, &config, now_ns, problem);
}

/* ---- beginning ---- */

static void a_lease_begins_with_an_empty_bucket(void **state)
{
    fresh_and_funded();
    open_target();
    assert_false(core_lease_is_on(&target));
    assert_int_equal(core_lease_until(&target), 0);
    assert_int_equal(tokens_left_at(T0), 10000);
    leased_at(T0);
    assert_true(core_lease_is_on(&target));
    assert_int_equal(core_lease_until(&target), T0);
    assert_int_equal(tokens_left_at(T0), 0);
    assert_false(charge_retry(T0));
}

static void a_lease_may_begin_at_instant_zero(void **state)
{
    fresh_and_funded();
    assert_int_equal(bide_target_init(&target, &config, 0, NULL), BIDE_OK);
    leased_at(0);
    assert_int_equal(add_tokens(1000), 1000);
    assert_int_equal(core_lease_begin(&target, 0, NULL), BIDE_OK); /* already leased: the bucket is not emptied */
    assert_int_equal(tokens_left_at(0), 1000);
    extend(S, 0);
    extend(0, 0); /* expired at once */
    assert_in_range(core_lease_until(&target), 1, MS);
    assert_true(charge_retry(0));
    assert_in_range(tokens_left_at(MINUTE), 990, 1000);
}

static void a_leased_target_keeps_its_tokens_when_leased_again(void **state)
{
    open_leased();
    add_tokens(3000);
    succeed_on(0);
    extend(T0 + S, T0);
    leased_at(T0 + 2 * S);
    assert_int_equal(tokens_left_at(T0), 3000);
    assert_int_equal(core_lease_until(&target), T0 + S);
    assert_report(core_lease_collect(&target), 1, 1, 100);
}

static void only_token_budgets_without_a_threshold_can_be_leased(void **state)
{
    for (enum bide_budget_kind kind = BIDE_BUDGET_WINDOW; kind <= BIDE_BUDGET_NONE; kind++) {
        struct bide_problem problem = {0};
        fresh_and_funded();
        config.budget.kind = kind;
        open_target();
        struct bide_target before = target;
        assert_int_equal(core_lease_begin(&target, T0, &problem), BIDE_ERR_INVALID);
        assert_string_equal(problem.field, "budget.kind");
        assert_int_equal(problem.value, kind);
        assert_int_equal(core_lease_begin(&target, T0, NULL), BIDE_ERR_INVALID);
        assert_memory_equal(&before, &target, sizeof target);
    }
    struct bide_problem problem = {0};
    fresh_and_funded();
    config.budget.threshold_milli = 5000;
    open_target();
    assert_int_equal(core_lease_begin(&target, T0, &problem), BIDE_ERR_INVALID);
    assert_string_equal(problem.field, "budget.threshold_milli");
    assert_int_equal(problem.value, 5000);
    assert_false(core_lease_is_on(&target));
    assert_int_equal(tokens_left_at(T0), 10000);
}

static void every_preset_can_be_leased_or_is_refused_with_its_field(void **state)
{
    for (enum bide_preset preset = 0; preset < BIDE_PRESET_COUNT; preset++) {
        bide_target_config_init(&config, preset);
        assert_int_equal(bide_target_init(&target, &config, T0, NULL), BIDE_OK);
        bool leasable = config.budget.kind == BIDE_BUDGET_TOKENS && preset != BIDE_PRESET_GRPC;
        assert_int_equal(core_lease_begin(&target, T0, NULL), leasable ? BIDE_OK : BIDE_ERR_INVALID);
        assert_int_equal(core_lease_is_on(&target), leasable);
    }
}

static void a_lease_cannot_begin_during_a_reload(void **state)
{
    fresh_and_funded();
    open_target();
    target.claim = (uint64_t)T0 | 1;
    assert_int_equal(core_lease_begin(&target, T0, NULL), BIDE_ERR_BUSY);
    assert_false(core_lease_is_on(&target));
    assert_int_equal(tokens_left_at(T0), 10000);
    leased_at(T0 + 11 * S); /* the configuring process was killed */
    target.claim = (uint64_t)(T0 + 11 * S) | 1;
    assert_int_equal(core_lease_end(&target, T0 + 12 * S), BIDE_ERR_BUSY);
    assert_true(core_lease_is_on(&target));
    leased_at(T0 + 12 * S); /* already leased: no claim is needed */
}

static void an_interrupted_begin_leaves_an_empty_bucket_and_can_be_repeated(void **state)
{
    fresh_and_funded();
    open_target();
    uint64_t full = target.budget;
    leased_at(T0);
    target.budget = full;
    target.lease_end_ns = 0;
    assert_int_equal(tokens_left_at(T0 + MINUTE), 0);
    assert_false(charge_retry(T0 + MINUTE));
    extend(T0 + 2 * MINUTE, T0 + MINUTE); /* by the previous leasing process, late */
    assert_int_equal(core_lease_until(&target), 0);
    assert_false(core_target_is_evictable(&target, T0 + MINUTE));
    assert_int_equal(reload(NULL, T0 + MINUTE), BIDE_OK);
    assert_int_equal(tokens_left_at(T0 + MINUTE), 0);
    target.budget = full;
    leased_at(T0 + MINUTE);
    assert_int_equal(tokens_left_at(T0 + MINUTE), 0);
    assert_int_equal(core_lease_until(&target), T0 + MINUTE);
}

static void records_of_an_earlier_lease_are_not_reported_by_the_next(void **state)
{
    open_leased();
    succeed_on(3);
    assert_int_equal(core_lease_end(&target, T0), BIDE_OK);
    leased_at(T0);
    assert_report(core_lease_collect(&target), 0, 0, 0);
}

static void the_bucket_is_emptied_despite_concurrent_changes(void **state)
{
    fresh_and_funded();
    open_target();
    core_cas_successes = 2; /* the claim, and the refill before the lease */
    core_cas_failures = 2;
    leased_at(T0);
    core_cas_successes = 0;
    assert_int_equal(core_cas_failures, 0);
    assert_int_equal(tokens_left_at(T0), 0);
}

/* Race: a thread loaded the bucket word before it was emptied and swaps in its sum afterwards. The swap must fail,
 * even if the bucket was already empty at this very instant. */
static void emptying_the_bucket_stores_a_new_word(void **state)
{
    fresh_and_funded();
    open_target();
    for (int i = 0; i < 10; i++) {
        uint64_t before = target.budget;
        core_budget_drain(&target, T0);
        assert_int_not_equal(target.budget, before);
        assert_int_equal(tokens_left_at(T0), 0);
    }
}

/* ---- earning ---- */

static void calls_earn_nothing_and_their_earnings_are_recorded(void **state)
{
    fresh_and_funded();
    config.budget.earn_first_milli = 7;
    open_target();
    leased_at(T0);
    for (uint32_t lane = 0; lane < BIDE_LANES; lane++)
        succeed_on(lane);
    assert_int_equal(tokens_left_at(T0), 0);
    assert_report(core_lease_collect(&target), 8, 8, 8 * 107);
    assert_report(core_lease_collect(&target), 0, 0, 0);
}

static void a_failed_call_records_a_first_attempt_and_no_success(void **state)
{
    open_leased();
    begin(T0);
    assert_action(report(1, failed, T0), BIDE_ACTION_GIVE_UP, BIDE_REASON_BUDGET_EMPTY);
    begin(T0);
    assert_action(report(1, hopeless, T0), BIDE_ACTION_GIVE_UP, BIDE_REASON_PERMANENT);
    assert_report(core_lease_collect(&target), 2, 0, 0);
    assert_int_equal(target.refused[BIDE_GATE_INDEX(BIDE_GATE_BUDGET)], 1);
}

static void a_refund_is_recorded_instead_of_the_success_earning(void **state)
{
    fresh_and_funded();
    config.budget.refund_permille = 500;
    open_target();
    leased_at(T0);
    add_tokens(1000);
    begin(T0);
    assert_action(report(1, failed, T0), BIDE_ACTION_WAIT, BIDE_REASON_BACKOFF);
    assert_action(wake(T0 + 100 * MS), BIDE_ACTION_START, BIDE_REASON_RETRY);
    assert_action(report(2, good, T0 + 100 * MS), BIDE_ACTION_DONE, BIDE_REASON_SUCCEEDED);
    assert_int_equal(tokens_left_at(T0), 0);
    assert_report(core_lease_collect(&target), 1, 1, 500);
    succeed_on(0); /* without a retry there is no refund */
    assert_report(core_lease_collect(&target), 1, 1, 100);
}

static void a_target_that_is_not_leased_records_nothing(void **state)
{
    fresh_and_funded();
    config.budget.earn_first_milli = 7;
    config.budget.initial_milli = 0;
    open_target();
    succeed_on(0);
    assert_int_equal(tokens_left_at(T0), 107);
    assert_report(core_lease_collect(&target), 0, 0, 0);
}

/* Race: a call reads the target before the lease begins and adds its earning afterwards: on the fast path, and the
 * earning of a first attempt. */
static void an_earning_that_races_with_the_begin_is_dropped(void **state)
{
    open_leased();
    add_tokens(5000);
    core_budget_credit_success(&target, 0);
    assert_int_equal(tokens_left_at(T0), 5000);
    assert_int_equal(core_lease_end(&target, T0), BIDE_OK);
    core_budget_credit_success(&target, 0);
    assert_int_equal(tokens_left_at(T0), 5100);
}

/* ---- spending ---- */

static void leased_tokens_are_spent_like_any_others(void **state)
{
    open_leased();
    assert_int_equal(add_tokens(2500), 2500);
    assert_true(charge_retry(T0) && charge_retry(T0));
    assert_false(charge_retry(T0));
    assert_int_equal(tokens_left_at(T0), 500);
    assert_int_equal(add_tokens(-1000), -500); /* returned to the fleet */
    assert_int_equal(add_tokens(20000), 10000);
}

static void a_charge_is_refunded_if_its_retry_is_not_sent(void **state)
{
    open_leased();
    add_tokens(1000);
    begin(T0);
    assert_action(report(1, failed, T0), BIDE_ACTION_WAIT, BIDE_REASON_BACKOFF);
    assert_int_equal(tokens_left_at(T0), 0);
    cancel(T0);
    assert_int_equal(tokens_left_at(T0), 1000);
}

static void hedges_and_failures_are_charged_to_leased_tokens(void **state)
{
    fresh_and_funded();
    policy.hedges_max = 1;
    policy.hedge_delay_ns = 100 * MS;
    config.budget.cost_failure_milli = 300;
    open_target();
    leased_at(T0);
    extend(T0 + S, T0);
    add_tokens(1200);
    begin(T0);
    assert_action(wake(T0 + 100 * MS), BIDE_ACTION_START, BIDE_REASON_HEDGE);
    assert_int_equal(tokens_left_at(T0), 200);
    report(1, failed, T0 + 200 * MS);
    assert_int_equal(tokens_left_at(T0), 0);
    assert_action(report(2, good, T0 + 200 * MS), BIDE_ACTION_DONE, BIDE_REASON_SUCCEEDED);
    assert_report(core_lease_collect(&target), 1, 1, 100); /* one call */
}

static void a_leased_budget_in_observe_mode_admits_and_counts_retries(void **state)
{
    fresh_and_funded();
    config.observe = BIDE_GATE_BUDGET;
    open_target();
    leased_at(T0);
    begin(T0);
    struct bide_verdict v = report(1, failed, T0);
    assert_action(v, BIDE_ACTION_WAIT, BIDE_REASON_BACKOFF);
    assert_int_equal(v.observed, BIDE_GATE_BUDGET);
    cancel(T0);
    assert_int_equal(tokens_left_at(T0), 0); /* an unpaid retry is not refunded */
    assert_int_equal(target.refused[BIDE_GATE_INDEX(BIDE_GATE_BUDGET)], 1);
}

/* ---- refill ---- */

static void no_refill_until_the_lease_ends(void **state)
{
    open_leased();
    extend(T0 + 10 * MINUTE, T0);
    assert_int_equal(core_lease_until(&target), T0 + 10 * MINUTE);
    for (int64_t now_ns = T0; now_ns <= T0 + 10 * MINUTE; now_ns += 7 * S) {
        assert_int_equal(tokens_left_at(now_ns), 0);
        assert_false(charge_retry(now_ns));
    }
}

static void only_the_refill_adds_tokens_after_the_end(void **state)
{
    open_leased();
    extend(T0 + MINUTE, T0);
    assert_in_range(tokens_left_at(T0 + MINUTE + 30 * S), 499, 500);
    assert_false(charge_retry(T0 + 2 * MINUTE)); /* not a tick too early */
    assert_true(charge_retry(T0 + 2 * MINUTE + 2 * TICK));
    assert_false(charge_retry(T0 + 2 * MINUTE + 2 * TICK));
    succeed_on(0);
    assert_int_equal(tokens_left_at(T0 + 2 * MINUTE + 2 * TICK), 0); /* still recorded for the fleet */
    assert_in_range(tokens_left_at(T0 + 100 * MINUTE), 10000, 10000);
}

static void a_lease_never_extended_refills_from_its_beginning(void **state)
{
    open_leased();
    assert_in_range(tokens_left_at(T0 + MINUTE), 990, 1000);
    assert_false(charge_retry(T0 + MINUTE));
    assert_true(charge_retry(T0 + MINUTE + 3 * TICK));
}

static void unspent_refill_is_removed_when_the_fleet_replies_again(void **state)
{
    open_leased();
    assert_in_range(tokens_left_at(T0 + 5 * MINUTE), 4990, 5000);
    extend(T0 + 6 * MINUTE, T0 + 5 * MINUTE);
    assert_int_equal(tokens_left_at(T0 + 5 * MINUTE), 0);
    assert_false(charge_retry(T0 + 6 * MINUTE));
    assert_in_range(tokens_left_at(T0 + 7 * MINUTE), 990, 1000); /* and is gone after the next end */
}

static void leased_tokens_are_kept_when_the_fleet_does_not_reply(void **state)
{
    open_leased();
    add_tokens(3000);
    extend(T0 + S, T0);
    assert_in_range(tokens_left_at(T0 + S + MINUTE), 3990, 4000);
    assert_true(charge_retry(T0 + S + MINUTE));
    extend(T0 + 3 * MINUTE, T0 + 2 * MINUTE);
    assert_in_range(tokens_left_at(T0 + 2 * MINUTE), 2990, 3000); /* the charge credited the time up to then */
}

static void a_failed_exchange_ends_the_lease_at_once_and_only_once(void **state)
{
    open_leased();
    extend(T0 + 10 * MINUTE, T0);
    for (int64_t now_ns = T0 + MINUTE; now_ns <= T0 + 2 * MINUTE; now_ns += S)
        extend(0, now_ns); /* one exchange per second, and each fails */
    assert_int_equal(core_lease_until(&target), T0 + MINUTE);
    assert_in_range(tokens_left_at(T0 + 2 * MINUTE), 990, 1000);
    extend(T0 + 2 * MINUTE, T0 + 2 * MINUTE); /* an end of now has passed, too */
    assert_int_equal(core_lease_until(&target), T0 + MINUTE);
}

/* Removes all tokens whenever there might be more than the refill alone explains. */
static void alternating_replies_and_failures_gain_no_refill(void **state)
{
    const int64_t all = BIDE_CAPACITY_MAX_MILLI;
    int64_t gained_milli = 0, disconnected_ns = 0, now_ns = T0;
    open_leased();
    config.budget.refill_per_minute_milli = 60000000; /* a thousand per second */
    config.budget.capacity_milli = 100000000;
    assert_int_equal(reload(NULL, T0), BIDE_OK);
    for (int64_t i = 1; i <= 1000; i++) {
        extend(now_ns + 10 * MS, now_ns);
        now_ns += 10 * MS + 31 * MS + i;
        gained_milli -= bide_budget_add_milli(&target, -all, now_ns);
        disconnected_ns += 31 * MS + i;
        assert_true(gained_milli <= disconnected_ns / 1000); /* a thousandth in a microsecond */
    }
    assert_true(gained_milli > disconnected_ns / 1000 / 2);
}

static void an_extension_never_shortens_the_lease(void **state)
{
    open_leased();
    extend(T0 + MINUTE, T0);
    extend(T0 + S, T0); /* from a process that was descheduled */
    assert_int_equal(core_lease_until(&target), T0 + MINUTE);
    extend(T0 + 2 * MINUTE, T0 + S);
    assert_int_equal(core_lease_until(&target), T0 + 2 * MINUTE);
    core_cas_failures = 1;
    extend(T0 + 3 * MINUTE, T0 + S);
    assert_int_equal(core_cas_failures, 0);
    assert_int_equal(core_lease_until(&target), T0 + 3 * MINUTE);
}

static void extending_without_a_lease_does_nothing(void **state)
{
    fresh_and_funded();
    open_target();
    struct bide_target before = target;
    extend(T0 + MINUTE, T0);
    extend(0, T0);
    assert_memory_equal(&before, &target, sizeof target);
}

static void the_refill_clock_may_wrap_during_a_lease(void **state)
{
    const int64_t wrap_ns = TICK << 36;
    fresh_and_funded();
    assert_int_equal(bide_target_init(&target, &config, wrap_ns - 2 * MINUTE, NULL), BIDE_OK);
    leased_at(wrap_ns - 2 * MINUTE);
    extend(wrap_ns + MINUTE, wrap_ns - 2 * MINUTE);
    assert_int_equal(tokens_left_at(wrap_ns - 1), 0);
    assert_int_equal(tokens_left_at(wrap_ns + MINUTE), 0);
    assert_in_range(tokens_left_at(wrap_ns + 2 * MINUTE), 990, 1000);
    extend(wrap_ns + 3 * MINUTE, wrap_ns + 2 * MINUTE);
    assert_int_equal(tokens_left_at(wrap_ns + 3 * MINUTE), 0);
}

/* ---- reload, end, reuse ---- */

static void a_reload_does_not_end_the_lease(void **state)
{
    open_leased();
    add_tokens(5000);
    extend(T0 + MINUTE, T0);
    config.budget.capacity_milli = 3000; /* removes tokens */
    config.budget.earn_success_milli = 50;
    config.budget.refill_per_minute_milli = 60000;
    assert_int_equal(reload(NULL, T0 + S), BIDE_OK);
    assert_true(core_lease_is_on(&target));
    assert_int_equal(tokens_left_at(T0 + S), 3000);
    succeed_on(0);
    assert_report(core_lease_collect(&target), 1, 1, 50);
    config.budget.capacity_milli = 20000; /* adds no tokens */
    assert_int_equal(reload(NULL, T0 + 2 * S), BIDE_OK);
    assert_int_equal(tokens_left_at(T0 + MINUTE), 3000);
    assert_in_range(tokens_left_at(T0 + MINUTE + S), 3980, 4000); /* the new floor */
}

static void a_reload_to_a_budget_that_cannot_be_leased_is_refused(void **state)
{
    struct bide_problem problem = {0};
    open_leased();
    add_tokens(5000);
    config.budget.kind = BIDE_BUDGET_WINDOW;
    assert_int_equal(reload(&problem, T0), BIDE_ERR_INVALID);
    assert_string_equal(problem.field, "budget.kind");
    config.budget.kind = BIDE_BUDGET_TOKENS;
    config.budget.threshold_milli = 1;
    assert_int_equal(reload(&problem, T0), BIDE_ERR_INVALID);
    assert_string_equal(problem.field, "budget.threshold_milli");
    assert_int_equal(tokens_left_at(T0), 5000);
    assert_int_equal(target.claim, 0);
    assert_int_equal(core_lease_end(&target, T0), BIDE_OK);
    assert_int_equal(reload(&problem, T0), BIDE_OK);
}

static void after_the_lease_ends_the_target_earns_for_itself_again(void **state)
{
    open_leased();
    add_tokens(3000);
    extend(T0 + MINUTE, T0);
    assert_int_equal(core_lease_end(&target, T0 + 30 * S), BIDE_OK);
    assert_false(core_lease_is_on(&target));
    assert_int_equal(core_lease_until(&target), 0);
    assert_int_equal(tokens_left_at(T0 + 30 * S), 3000);
    assert_in_range(tokens_left_at(T0 + 30 * S + MINUTE), 3990,
                    4001); /* credited from then on, not for the time before */
    succeed_on(0);
    assert_int_equal(tokens_left_at(T0 + 30 * S), 3100);
    assert_report(core_lease_collect(&target), 0, 0, 0);
    assert_int_equal(core_lease_end(&target, T0 + MINUTE), BIDE_OK); /* there is no lease */
    assert_int_equal(tokens_left_at(T0 + 30 * S), 3100);
}

static void a_leased_target_is_neither_evictable_nor_reusable(void **state)
{
    open_leased();
    add_tokens(10000);
    assert_false(core_target_is_evictable(&target, T0));
    assert_int_equal(core_target_reuse(&target, &config, T0, NULL), BIDE_ERR_BUSY);
    assert_int_equal(target.claim, 0);
    assert_true(core_lease_is_on(&target));
    assert_int_equal(core_lease_end(&target, T0), BIDE_OK);
    assert_true(core_target_is_evictable(&target, T0));
    assert_int_equal(core_target_reuse(&target, &config, T0, NULL), BIDE_OK);
    assert_int_equal(tokens_left_at(T0), 10000);
}

static void a_configuration_read_from_a_leased_target_carries_no_lease(void **state)
{
    open_leased();
    struct bide_target_config read;
    bide_target_config_get(&target, &read);
    assert_memory_equal(&read, &config, sizeof read);
    static struct bide_target other;
    assert_int_equal(bide_target_init(&other, &read, T0, NULL), BIDE_OK);
    assert_false(core_lease_is_on(&other));
    assert_int_equal(core_budget_left_milli(&other, T0), 10000);
}

/* ---- the claim ---- */

static bool claim(uint32_t who, int64_t until_ns, int64_t now_ns)
{
    return core_lease_claim(&target, who, until_ns, now_ns);
}

static void one_process_at_a_time_holds_the_claim(void **state)
{
    open_leased();
    assert_true(claim(7, T0 + 10 * S, T0));
    assert_false(claim(8, T0 + 20 * S, T0 + S));
    assert_true(claim(7, T0 + 20 * S, T0 + 9 * S)); /* renewed */
    assert_false(claim(8, T0 + 30 * S, T0 + 20 * S - 1));
    assert_true(claim(8, T0 + 30 * S, T0 + 21 * S)); /* 7 did not renew in time */
    assert_false(claim(7, T0 + 40 * S, T0 + 21 * S));
}

static void only_the_holder_can_release_the_claim(void **state)
{
    open_leased();
    assert_true(claim(7, T0 + 10 * S, T0));
    assert_false(claim(8, 0, T0));
    assert_false(claim(8, T0 + S, T0));
    assert_false(claim(7, 0, T0));
    assert_true(claim(8, T0 + S, T0));
    assert_false(claim(9, T0, T0 + 5 * S)); /* the claim of 8 has expired, but 9 holds none to release */
    assert_true(claim(8, T0 + 6 * S, T0 + 5 * S));
}

static void one_of_two_concurrent_claims_succeeds(void **state)
{
    open_leased();
    core_cas_failures = 1;
    assert_false(claim(7, T0 + S, T0));
    assert_true(claim(7, T0 + S, T0));
    assert_int_equal(core_cas_failures, 0);
}

static void a_claim_holds_with_clocks_of_any_age(void **state)
{
    const int64_t clocks[] = {0, S, T0, 2 * BIDE_DURATION_MAX};
    for (size_t i = 0; i < COUNT(clocks); i++) {
        open_leased();
        assert_true(claim(UINT32_MAX, clocks[i] + S, clocks[i]));
        assert_false(claim(1, clocks[i] + 2 * S, clocks[i] + S - 1));
        assert_true(claim(1, clocks[i] + 4 * S, clocks[i] + 2 * S));
        assert_true(claim(1, BIDE_NEVER, clocks[i] + 3 * S));
        assert_false(claim(2, BIDE_NEVER, clocks[i] + 3 * S));
    }
}

/* ---- threads ---- */

static bool stop;

static void *earn_on(void *argument)
{
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
        core_budget_credit_success(argument, 0); /* like a call that saw the target before the lease */
    return NULL;
}

static void no_earning_is_added_while_a_lease_begins(void **state)
{
    fresh_and_funded();
    for (int i = 0; i < 100; i++) {
        pthread_t earners[2];
        open_target();
        __atomic_store_n(&stop, false, __ATOMIC_RELAXED);
        core_budget_drain(&target, T0);
        for (size_t j = 0; j < COUNT(earners); j++)
            assert_int_equal(pthread_create(&earners[j], NULL, earn_on, &target), 0);
        while (i % 2 == 0 && tokens_left_at(T0) == 0)
            sched_yield(); /* until the threads are running */
        leased_at(T0);
        int64_t found_milli = tokens_left_at(T0);
        __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
        for (size_t j = 0; j < COUNT(earners); j++)
            pthread_join(earners[j], NULL);
        assert_int_equal(found_milli, 0);
        assert_int_equal(tokens_left_at(T0), 0);
    }
}

static void *spend_on(void *argument)
{
    uint64_t *spent = argument;
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
        *spent += charge_retry(T0);
    return NULL;
}

static void threads_spend_at_most_the_leased_tokens(void **state)
{
    pthread_t spenders[2];
    uint64_t spent[COUNT(spenders)] = {0};
    int64_t lent_milli = 0;
    open_leased();
    __atomic_store_n(&stop, false, __ATOMIC_RELAXED);
    extend(T0 + MINUTE, T0);
    for (size_t i = 0; i < COUNT(spenders); i++)
        assert_int_equal(pthread_create(&spenders[i], NULL, spend_on, &spent[i]), 0);
    for (int i = 0; i < 20000; i++)
        lent_milli += add_tokens(i % 3 == 0 ? -500 : 700);
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    for (size_t i = 0; i < COUNT(spenders); i++)
        pthread_join(spenders[i], NULL);
    assert_int_equal((int64_t)(spent[0] + spent[1]) * 1000 + tokens_left_at(T0), lent_milli);
}

/* ---- killed at any instruction ---- */

#if defined(__x86_64__) /* elsewhere a compare-and-swap may be a loop that single-stepping never leaves */
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

/* Single-steps a child process through the operation on a copy of the target, and checks the copy after each
 * instruction. */
static void at_every_instruction(void (*operation)(struct bide_target *), void (*look)(const struct bide_target *))
{
    struct bide_target *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(shared, MAP_FAILED);
    *shared = target;
    operation(shared); /* once in full, so that lazy binding is done */
    *shared = target;
    int status = 0;
    uint32_t changes = 0;
    pid_t child = fork();
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
            _exit(1);
        raise(SIGSTOP);
        operation(shared);
        _exit(0);
    }
    struct bide_target seen = target;
    while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
        changes += memcmp(&seen, shared, sizeof seen) != 0;
        seen = *shared;
        look(&seen);
        ptrace(PTRACE_SINGLESTEP, child, NULL, NULL);
    }
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_true(changes > 0);
    munmap(shared, sizeof *shared);
}

static void run_begin(struct bide_target *t)
{
    core_lease_begin(t, T0, NULL);
}

static void run_end(struct bide_target *t)
{
    core_lease_end(t, T0 + S);
}

static void run_configure(struct bide_target *t)
{
    bide_target_configure(t, &config, T0 + S, NULL);
}

static void run_extend(struct bide_target *t)
{
    core_lease_extend(t, T0 + 2 * MINUTE, T0 + MINUTE);
    core_lease_extend(t, 0, T0 + MINUTE);
}

static void run_collect(struct bide_target *t)
{
    (void)core_lease_collect(t);
}

/* Full before, empty when leased; and the next process can continue. */
static void check_begun_or_not(const struct bide_target *seen)
{
    static struct bide_target t;
    t = *seen;
    bool leased = core_lease_is_on(&t);
    assert_int_equal(core_budget_left_milli(&t, T0), leased ? 0 : 10000);
    assert_int_equal(charge_for(&t, T0), !leased);
    t = *seen;
    assert_int_equal(core_lease_begin(&t, T0 + 11 * S, NULL), BIDE_OK);
    assert_true(core_lease_is_on(&t));
    assert_int_equal(core_budget_left_milli(&t, T0 + 11 * S), 0);
    assert_int_equal(bide_budget_add_milli(&t, 1000, T0 + 11 * S), 1000);
    assert_true(charge_for(&t, T0 + 11 * S));
}

static void check_three_tokens(const struct bide_target *seen)
{
    static struct bide_target t;
    t = *seen;
    assert_int_equal(core_budget_left_milli(&t, T0 + S), 3000);
    assert_true(charge_for(&t, T0 + S) && charge_for(&t, T0 + S) && charge_for(&t, T0 + S));
    assert_false(charge_for(&t, T0 + S));
}

/* Never more than a minute's refill, and no token exists twice. */
static void check_refill_of_a_minute_at_most(const struct bide_target *seen)
{
    int64_t left_milli = core_budget_left_milli(seen, T0 + MINUTE);
    assert_true(left_milli == 0 || (left_milli >= 990 && left_milli <= 1000));
    assert_in_range(core_budget_left_milli(seen, T0 + 2 * MINUTE), 0, 2000);
}

static void check_recorded_once_at_most(const struct bide_target *seen)
{
    static struct bide_target t;
    t = *seen;
    struct core_lease_report left_there = core_lease_collect(&t);
    assert_in_range(left_there.firsts, 0, 8);
    assert_in_range(left_there.successes, 0, 8);
    assert_in_range(left_there.earned_milli, 0, 800);
    assert_int_equal(left_there.earned_milli % 100, 0);
}

static void a_process_killed_during_begin_leaves_no_earlier_tokens(void **state)
{
    reset_world(); /* no refill */
    open_target();
    at_every_instruction(run_begin, check_begun_or_not);
    target.lease_end_ns = T0; /* the process that ended the previous lease was killed in the middle */
    at_every_instruction(run_begin, check_begun_or_not);
}

static void a_process_killed_during_end_or_reload_changes_no_tokens(void **state)
{
    open_leased();
    add_tokens(3000);
    extend(T0 + MINUTE, T0);
    at_every_instruction(run_end, check_three_tokens);
    config.budget.refill_per_minute_milli = 0;
    config.budget.capacity_milli = 20000;
    at_every_instruction(run_configure, check_three_tokens);
}

static void a_process_killed_during_extend_or_collect_adds_no_tokens(void **state)
{
    open_leased();
    at_every_instruction(run_extend, check_refill_of_a_minute_at_most);
    for (uint32_t lane = 0; lane < BIDE_LANES; lane++)
        succeed_on(lane);
    at_every_instruction(run_collect, check_recorded_once_at_most);
}
#endif

static void a_memo_stays_until_another_lease_begins(void **state)
{
    open_leased();
    struct core_lease_memo memo = core_lease_memo_get(&target);
    assert_true(memo.progress == 0 && memo.base_milli == 0);
    core_lease_memo_set(&target, (struct core_lease_memo){42, 7000});
    memo = core_lease_memo_get(&target);
    assert_true(memo.progress == 42 && memo.base_milli == 7000);
    assert_int_equal(core_lease_begin(&target, T0, NULL), BIDE_OK); /* already leased: nothing begins */
    assert_int_equal(core_lease_memo_get(&target).progress, 42);
    assert_int_equal(core_lease_end(&target, T0), BIDE_OK);
    assert_int_equal(core_lease_begin(&target, T0, NULL), BIDE_OK);
    assert_int_equal(core_lease_memo_get(&target).progress, 0);
}

/* ---- races ---- */

static void begin_and_fund_elsewhere(uint64_t *word)
{
    leased_at(T0);
    add_tokens(3000);
    extend(T0 + MINUTE, T0);
}

/* Race: another process begins the lease, and is lent tokens, between this process's check and its claim. */
static void a_lease_that_another_process_began_is_not_begun_again(void **state)
{
    fresh_and_funded();
    open_target();
    core_before_cas = begin_and_fund_elsewhere;
    leased_at(T0);
    assert_int_equal(tokens_left_at(T0), 3000);
    assert_int_equal(core_lease_until(&target), T0 + MINUTE);
}

/* The tokens of a retry that was charged before the lease were not the fleet's. */
static void a_charge_from_before_the_lease_is_not_refunded_under_it(void **state)
{
    fresh_and_funded();
    open_target();
    begin(T0);
    assert_action(report(1, failed, T0), BIDE_ACTION_WAIT, BIDE_REASON_BACKOFF);
    leased_at(T0);
    cancel(T0);
    assert_int_equal(tokens_left_at(T0), 0);
}

/* A call keeps its own tokens if the lease ends before its retry is sent, and loses none that it charged under it. */
static void a_charge_is_refunded_after_the_end_of_its_lease(void **state)
{
    open_leased();
    add_tokens(1000);
    begin(T0);
    assert_action(report(1, failed, T0), BIDE_ACTION_WAIT, BIDE_REASON_BACKOFF);
    assert_int_equal(core_lease_end(&target, T0), BIDE_OK);
    cancel(T0);
    assert_int_equal(tokens_left_at(T0), 1000);
}

/* Race: while a lease begins, its end is 0. A failure that costs tokens must not store a word with an earlier stamp: a
 * credit from before the lease may still hold that word. */
static void the_stamp_does_not_move_back_while_a_lease_begins(void **state)
{
    fresh_and_funded();
    config.budget.cost_failure_milli = 100;
    open_target();
    leased_at(T0);
    uint64_t drained = target.budget;
    target.lease_end_ns = 0;
    core_budget_charge_failure(&target, T0);
    assert_int_equal(target.budget, drained);
    assert_int_equal(tokens_left_at(T0 + MINUTE), 0); /* and no refill counts */
}

/* The refill counts from the first tick that begins at or after the end of the lease. */
static void the_refill_begins_with_the_first_whole_tick_after_the_end(void **state)
{
    const int64_t boundary = (T0 / TICK + 100) * TICK;
    static const int64_t ends[] = {-1, 0, 1, TICK - 1, TICK};
    static const int64_t ticks[] = {0, 0, 1, 1, 1}; /* after the boundary */
    for (size_t i = 0; i < COUNT(ends); i++) {
        fresh_and_funded();
        config.budget.refill_per_minute_milli = 100000000; /* a tick is worth 13981 */
        config.budget.capacity_milli = BIDE_CAPACITY_MAX_MILLI;
        open_target();
        leased_at(T0);
        extend(boundary + ends[i], T0);
        int64_t from = boundary + ticks[i] * TICK;
        assert_int_equal(tokens_left_at(from), 0);
        assert_int_equal(tokens_left_at(from + TICK - 1), 0);
        assert_int_equal(tokens_left_at(from + TICK), 13981);
    }
}

static void begin_the_lease_elsewhere(uint64_t *word)
{
    leased_at(T0);
}

/* Race: a success loads an empty bucket and adds its earning after a lease has begun in the same tick. */
static void an_earning_is_not_added_to_an_empty_bucket_that_was_leased_meanwhile(void **state)
{
    fresh_and_funded();
    config.budget.initial_milli = 0;
    open_target();
    core_before_cas = begin_the_lease_elsewhere;
    core_budget_credit_success(&target, 0);
    assert_true(core_lease_is_on(&target));
    assert_int_equal(tokens_left_at(T0), 0);
}

/* The tick of a bucket has 36 bits, and half of the range counts as the future: nine years. */
static void the_refill_counts_from_the_end_of_the_longest_lease(void **state)
{
    int64_t end_ns = (T0 / TICK + 1 + (INT64_C(1) << 35) - 1) * TICK; /* half of the range after the stamp */
    open_leased();
    extend(end_ns, T0);
    assert_int_equal(tokens_left_at(end_ns), 0);
    assert_int_equal(tokens_left_at(end_ns + MINUTE + TICK), 1000);
}

static void an_ended_lease_cannot_be_extended(void **state)
{
    open_leased();
    assert_int_equal(core_lease_end(&target, T0), BIDE_OK);
    extend(T0 + S, T0);
    assert_int_equal(target.lease_end_ns, 0);
}

/* A claim ends at the first tick that is not before its end. */
static void a_claim_ends_exactly_with_its_tick(void **state)
{
    const int64_t tick = INT64_C(1) << 29, at = T0 / tick * tick;
    static const struct {
        int64_t until_ticks, extra_ns, end_ticks;
    } table[] = {{10, -1, 10}, {10, 0, 10}, {10, 1, 11}, {10, 2, 11}};
    for (size_t i = 0; i < COUNT(table); i++) {
        int64_t end_ns = at + table[i].end_ticks * tick;
        open_leased();
        assert_true(claim(7, at + table[i].until_ticks * tick + table[i].extra_ns, at));
        assert_false(claim(8, end_ns + S, end_ns - 1));
        assert_true(claim(8, end_ns + S, end_ns));
    }
}

static void a_claim_until_now_releases_it_at_any_instant(void **state)
{
    static const int64_t clocks[] = {0, T0};
    for (size_t i = 0; i < COUNT(clocks); i++) {
        open_leased();
        assert_true(claim(7, clocks[i] + S, clocks[i]));
        assert_false(claim(7, clocks[i], clocks[i]));
        assert_true(claim(8, clocks[i] + S, clocks[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_memo_stays_until_another_lease_begins),
        cmocka_unit_test(a_lease_begins_with_an_empty_bucket),
        cmocka_unit_test(a_lease_may_begin_at_instant_zero),
        cmocka_unit_test(a_leased_target_keeps_its_tokens_when_leased_again),
        cmocka_unit_test(only_token_budgets_without_a_threshold_can_be_leased),
        cmocka_unit_test(every_preset_can_be_leased_or_is_refused_with_its_field),
        cmocka_unit_test(a_lease_cannot_begin_during_a_reload),
        cmocka_unit_test(an_interrupted_begin_leaves_an_empty_bucket_and_can_be_repeated),
        cmocka_unit_test(records_of_an_earlier_lease_are_not_reported_by_the_next),
        cmocka_unit_test(the_bucket_is_emptied_despite_concurrent_changes),
        cmocka_unit_test(emptying_the_bucket_stores_a_new_word),
        cmocka_unit_test(calls_earn_nothing_and_their_earnings_are_recorded),
        cmocka_unit_test(a_failed_call_records_a_first_attempt_and_no_success),
        cmocka_unit_test(a_refund_is_recorded_instead_of_the_success_earning),
        cmocka_unit_test(a_target_that_is_not_leased_records_nothing),
        cmocka_unit_test(an_earning_that_races_with_the_begin_is_dropped),
        cmocka_unit_test(leased_tokens_are_spent_like_any_others),
        cmocka_unit_test(a_charge_is_refunded_if_its_retry_is_not_sent),
        cmocka_unit_test(hedges_and_failures_are_charged_to_leased_tokens),
        cmocka_unit_test(a_leased_budget_in_observe_mode_admits_and_counts_retries),
        cmocka_unit_test(no_refill_until_the_lease_ends),
        cmocka_unit_test(only_the_refill_adds_tokens_after_the_end),
        cmocka_unit_test(a_lease_never_extended_refills_from_its_beginning),
        cmocka_unit_test(unspent_refill_is_removed_when_the_fleet_replies_again),
        cmocka_unit_test(leased_tokens_are_kept_when_the_fleet_does_not_reply),
        cmocka_unit_test(a_failed_exchange_ends_the_lease_at_once_and_only_once),
        cmocka_unit_test(alternating_replies_and_failures_gain_no_refill),
        cmocka_unit_test(an_extension_never_shortens_the_lease),
        cmocka_unit_test(extending_without_a_lease_does_nothing),
        cmocka_unit_test(the_refill_clock_may_wrap_during_a_lease),
        cmocka_unit_test(a_reload_does_not_end_the_lease),
        cmocka_unit_test(a_reload_to_a_budget_that_cannot_be_leased_is_refused),
        cmocka_unit_test(after_the_lease_ends_the_target_earns_for_itself_again),
        cmocka_unit_test(a_leased_target_is_neither_evictable_nor_reusable),
        cmocka_unit_test(a_configuration_read_from_a_leased_target_carries_no_lease),
        cmocka_unit_test(one_process_at_a_time_holds_the_claim),
        cmocka_unit_test(only_the_holder_can_release_the_claim),
        cmocka_unit_test(one_of_two_concurrent_claims_succeeds),
        cmocka_unit_test(a_claim_holds_with_clocks_of_any_age),
        cmocka_unit_test(no_earning_is_added_while_a_lease_begins),
        cmocka_unit_test(threads_spend_at_most_the_leased_tokens),
#if defined(__x86_64__)
        cmocka_unit_test(a_process_killed_during_begin_leaves_no_earlier_tokens),
        cmocka_unit_test(a_process_killed_during_end_or_reload_changes_no_tokens),
        cmocka_unit_test(a_process_killed_during_extend_or_collect_adds_no_tokens),
#endif
        cmocka_unit_test(a_lease_that_another_process_began_is_not_begun_again),
        cmocka_unit_test(a_charge_from_before_the_lease_is_not_refunded_under_it),
        cmocka_unit_test(a_charge_is_refunded_after_the_end_of_its_lease),
        cmocka_unit_test(the_stamp_does_not_move_back_while_a_lease_begins),
        cmocka_unit_test(the_refill_begins_with_the_first_whole_tick_after_the_end),
        cmocka_unit_test(an_earning_is_not_added_to_an_empty_bucket_that_was_leased_meanwhile),
        cmocka_unit_test(the_refill_counts_from_the_end_of_the_longest_lease),
        cmocka_unit_test(an_ended_lease_cannot_be_extended),
        cmocka_unit_test(a_claim_ends_exactly_with_its_tick),
        cmocka_unit_test(a_claim_until_now_releases_it_at_any_instant),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
