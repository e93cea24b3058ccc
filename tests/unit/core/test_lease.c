/* test_lease.c - a target that a fleet funds: it earns nothing, and when the fleet is silent, only its trickle.
 *
 * Time is a number here too. What happens when a process is killed is tried at every instruction: a child takes one
 * after the other, and after each the target is looked at as if that had been its last. */
#define _GNU_SOURCE
#include "call_world.h"

#include <pthread.h>
#include <sched.h>

#include <bide/lease.h>

#define MINUTE BIDE_MINUTE
#define TICK   (INT64_C(1) << 23) /* of the trickle: 8.4 ms */

/* ---- the world ---- */

/* Ten tokens; a tenth of one for a success; one trickles in a minute. */
static void fresh_and_funded(void)
{
    fresh();
    config.budget.earn_success_milli = 100;
    config.budget.refill_per_minute_milli = 1000;
}

static void leased_at(int64_t now_ns)
{
    assert_int_equal(bide_lease_begin(&target, now_ns, NULL), BIDE_OK);
}

static void open_leased(void)
{
    fresh_and_funded();
    open_target();
    leased_at(T0);
}

static int64_t left_at(int64_t now_ns)
{
    return bide_budget_left_milli(&target, now_ns);
}

static int64_t add(int64_t milli)
{
    return bide_budget_add_milli(&target, milli, T0);
}

static bool take_of(struct bide_target *t, int64_t now_ns)
{
    struct core_charge charge = {0};
    return core_budget_charge(t, &failed, now_ns, &charge);
}

static bool take(int64_t now_ns)
{
    return take_of(&target, now_ns);
}

static void extend(int64_t until_ns, int64_t now_ns)
{
    bide_lease_extend(&target, until_ns, now_ns);
}

/* A call that succeeds at once, on a lane. */
static void succeed_on(uint32_t lane)
{
    struct bide_request request = {.safety = BIDE_SAFE, .lane = lane};
    assert_says(begin_as(&request, T0), BIDE_START, BIDE_REASON_FIRST_ATTEMPT);
    assert_says(report(1, good, T0), BIDE_DONE, BIDE_REASON_SUCCEEDED);
}

static void assert_report(struct bide_lease_report got, uint64_t firsts, uint64_t successes, uint64_t earned_milli)
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
    assert_false(bide_lease_is_on(&target));
    assert_int_equal(bide_lease_until(&target), 0);
    assert_int_equal(left_at(T0), 10000);
    leased_at(T0);
    assert_true(bide_lease_is_on(&target));
    assert_int_equal(bide_lease_until(&target), T0);
    assert_int_equal(left_at(T0), 0);
    assert_false(take(T0));
}

static void the_first_instant_of_a_clock_is_as_good_as_another(void **state)
{
    fresh_and_funded();
    assert_int_equal(bide_target_init(&target, &config, 0, NULL), BIDE_OK);
    leased_at(0);
    assert_int_equal(add(1000), 1000);
    assert_int_equal(bide_lease_begin(&target, 0, NULL), BIDE_OK); /* it has begun: nothing is emptied */
    assert_int_equal(left_at(0), 1000);
    extend(S, 0);
    extend(0, 0); /* over at once */
    assert_in_range(bide_lease_until(&target), 1, MS);
    assert_true(take(0));
    assert_in_range(left_at(MINUTE), 990, 1000);
}

static void one_that_is_leased_already_keeps_what_it_has(void **state)
{
    open_leased();
    add(3000);
    succeed_on(0);
    extend(T0 + S, T0);
    leased_at(T0 + 2 * S);
    assert_int_equal(left_at(T0), 3000);
    assert_int_equal(bide_lease_until(&target), T0 + S);
    assert_report(bide_lease_collect(&target), 1, 1, 100);
}

static void only_tokens_that_can_all_be_spent_are_lent(void **state)
{
    for (enum bide_budget_kind kind = BIDE_BUDGET_WINDOW; kind <= BIDE_BUDGET_NONE; kind++) {
        struct bide_problem problem = {0};
        fresh_and_funded();
        config.budget.kind = kind;
        open_target();
        struct bide_target before = target;
        assert_int_equal(bide_lease_begin(&target, T0, &problem), BIDE_ERR_INVALID);
        assert_string_equal(problem.field, "budget.kind");
        assert_int_equal(problem.value, kind);
        assert_int_equal(bide_lease_begin(&target, T0, NULL), BIDE_ERR_INVALID);
        assert_memory_equal(&before, &target, sizeof target);
    }
    struct bide_problem problem = {0};
    fresh_and_funded();
    config.budget.threshold_milli = 5000;
    open_target();
    assert_int_equal(bide_lease_begin(&target, T0, &problem), BIDE_ERR_INVALID);
    assert_string_equal(problem.field, "budget.threshold_milli");
    assert_int_equal(problem.value, 5000);
    assert_false(bide_lease_is_on(&target));
    assert_int_equal(left_at(T0), 10000);
}

static void presets_are_lent_to_or_named_as_wrong(void **state)
{
    for (enum bide_preset preset = 0; preset < BIDE_PRESET_COUNT; preset++) {
        bide_target_config_init(&config, preset);
        assert_int_equal(bide_target_init(&target, &config, T0, NULL), BIDE_OK);
        bool lendable = config.budget.kind == BIDE_BUDGET_TOKENS && preset != BIDE_PRESET_GRPC;
        assert_int_equal(bide_lease_begin(&target, T0, NULL), lendable ? BIDE_OK : BIDE_ERR_INVALID);
        assert_int_equal(bide_lease_is_on(&target), lendable);
    }
}

static void who_configures_is_not_disturbed(void **state)
{
    fresh_and_funded();
    open_target();
    target.claim = (uint64_t)T0 | 1;
    assert_int_equal(bide_lease_begin(&target, T0, NULL), BIDE_ERR_BUSY);
    assert_false(bide_lease_is_on(&target));
    assert_int_equal(left_at(T0), 10000);
    leased_at(T0 + 11 * S); /* he was killed over it */
    target.claim = (uint64_t)(T0 + 11 * S) | 1;
    assert_int_equal(bide_lease_end(&target, T0 + 12 * S), BIDE_ERR_BUSY);
    assert_true(bide_lease_is_on(&target));
    leased_at(T0 + 12 * S); /* there is nothing to do */
}

static void an_interrupted_beginning_is_as_empty_and_can_be_made_good(void **state)
{
    fresh_and_funded();
    open_target();
    uint64_t full = target.budget;
    leased_at(T0);
    target.budget = full;
    *CORE_LEASE_END(&target) = 0;
    assert_int_equal(left_at(T0 + MINUTE), 0);
    assert_false(take(T0 + MINUTE));
    extend(T0 + 2 * MINUTE, T0 + MINUTE); /* by whoever leased it before, and is late */
    assert_int_equal(bide_lease_until(&target), 0);
    assert_false(bide_target_is_evictable(&target, T0 + MINUTE));
    assert_int_equal(reload(NULL, T0 + MINUTE), BIDE_OK);
    assert_int_equal(left_at(T0 + MINUTE), 0);
    target.budget = full;
    leased_at(T0 + MINUTE);
    assert_int_equal(left_at(T0 + MINUTE), 0);
    assert_int_equal(bide_lease_until(&target), T0 + MINUTE);
}

static void what_an_earlier_lease_put_down_is_not_reported_by_the_next(void **state)
{
    open_leased();
    succeed_on(3);
    assert_int_equal(bide_lease_end(&target, T0), BIDE_OK);
    leased_at(T0);
    assert_report(bide_lease_collect(&target), 0, 0, 0);
}

static void the_bucket_is_emptied_though_others_change_it(void **state)
{
    fresh_and_funded();
    open_target();
    core_cas_successes = 2; /* the claim, and the trickle of before */
    core_cas_failures = 2;
    leased_at(T0);
    core_cas_successes = 0;
    assert_int_equal(core_cas_failures, 0);
    assert_int_equal(left_at(T0), 0);
}

/* Who has seen the word of before, and adds to what he saw, must notice: also if it was empty, at this very instant. */
static void emptying_leaves_a_word_that_never_was_there(void **state)
{
    fresh_and_funded();
    open_target();
    for (int i = 0; i < 10; i++) {
        uint64_t before = target.budget;
        core_budget_drain(&target, T0);
        assert_int_not_equal(target.budget, before);
        assert_int_equal(left_at(T0), 0);
    }
}

/* ---- earning ---- */

static void calls_earn_nothing_and_what_they_would_have_is_put_down(void **state)
{
    fresh_and_funded();
    config.budget.earn_first_milli = 7;
    open_target();
    leased_at(T0);
    for (uint32_t lane = 0; lane < BIDE_LANES; lane++)
        succeed_on(lane);
    assert_int_equal(left_at(T0), 0);
    assert_report(bide_lease_collect(&target), 8, 8, 8 * 107);
    assert_report(bide_lease_collect(&target), 0, 0, 0);
}

static void a_call_that_fails_is_a_first_attempt_and_no_success(void **state)
{
    open_leased();
    begin(T0);
    assert_says(report(1, failed, T0), BIDE_GIVE_UP, BIDE_REASON_BUDGET_EMPTY);
    begin(T0);
    assert_says(report(1, hopeless, T0), BIDE_GIVE_UP, BIDE_REASON_PERMANENT);
    assert_report(bide_lease_collect(&target), 2, 0, 0);
    assert_int_equal(bide_target_refused(&target, BIDE_GATE_BUDGET), 1);
}

static void a_refund_is_put_down_instead_of_a_success_s_earning(void **state)
{
    fresh_and_funded();
    config.budget.refund_permille = 500;
    open_target();
    leased_at(T0);
    add(1000);
    begin(T0);
    assert_says(report(1, failed, T0), BIDE_WAIT, BIDE_REASON_BACKOFF);
    assert_says(wake(T0 + 100 * MS), BIDE_START, BIDE_REASON_RETRY);
    assert_says(report(2, good, T0 + 100 * MS), BIDE_DONE, BIDE_REASON_SUCCEEDED);
    assert_int_equal(left_at(T0), 0);
    assert_report(bide_lease_collect(&target), 1, 1, 500);
    succeed_on(0); /* without a retry there is nothing to refund */
    assert_report(bide_lease_collect(&target), 1, 1, 100);
}

static void one_that_is_not_leased_puts_nothing_down(void **state)
{
    fresh_and_funded();
    config.budget.earn_first_milli = 7;
    config.budget.initial_milli = 0;
    open_target();
    succeed_on(0);
    assert_int_equal(left_at(T0), 107);
    assert_report(bide_lease_collect(&target), 0, 0, 0);
}

/* A call that read the target before the lease began adds to it after: the short way, and a first attempt's. */
static void an_earning_that_was_under_way_comes_too_late(void **state)
{
    open_leased();
    add(5000);
    core_budget_credit_success(&target, 0);
    assert_int_equal(left_at(T0), 5000);
    assert_int_equal(bide_lease_end(&target, T0), BIDE_OK);
    core_budget_credit_success(&target, 0);
    assert_int_equal(left_at(T0), 5100);
}

/* ---- spending ---- */

static void tokens_that_come_from_outside_are_spent_as_any(void **state)
{
    open_leased();
    assert_int_equal(add(2500), 2500);
    assert_true(take(T0) && take(T0));
    assert_false(take(T0));
    assert_int_equal(left_at(T0), 500);
    assert_int_equal(add(-1000), -500); /* given back to the fleet */
    assert_int_equal(add(20000), 10000);
}

static void a_charge_comes_back_if_its_retry_is_never_sent(void **state)
{
    open_leased();
    add(1000);
    begin(T0);
    assert_says(report(1, failed, T0), BIDE_WAIT, BIDE_REASON_BACKOFF);
    assert_int_equal(left_at(T0), 0);
    cancel(T0);
    assert_int_equal(left_at(T0), 1000);
}

static void hedges_and_failures_pay_with_lent_tokens(void **state)
{
    fresh_and_funded();
    policy.hedges_max = 1;
    policy.hedge_delay_ns = 100 * MS;
    config.budget.cost_failure_milli = 300;
    open_target();
    leased_at(T0);
    extend(T0 + S, T0);
    add(1200);
    begin(T0);
    assert_says(wake(T0 + 100 * MS), BIDE_START, BIDE_REASON_HEDGE);
    assert_int_equal(left_at(T0), 200);
    report(1, failed, T0 + 200 * MS);
    assert_int_equal(left_at(T0), 0);
    assert_says(report(2, good, T0 + 200 * MS), BIDE_DONE, BIDE_REASON_SUCCEEDED);
    assert_report(bide_lease_collect(&target), 1, 1, 100); /* one call */
}

static void a_budget_that_observes_lets_retries_go_and_counts_them(void **state)
{
    fresh_and_funded();
    config.observe = BIDE_GATE_BUDGET;
    open_target();
    leased_at(T0);
    begin(T0);
    struct bide_verdict v = report(1, failed, T0);
    assert_says(v, BIDE_WAIT, BIDE_REASON_BACKOFF);
    assert_int_equal(v.observed, BIDE_GATE_BUDGET);
    cancel(T0);
    assert_int_equal(left_at(T0), 0); /* what was not paid does not come back */
    assert_int_equal(bide_target_refused(&target, BIDE_GATE_BUDGET), 1);
}

/* ---- the trickle ---- */

static void nothing_trickles_while_the_lease_holds(void **state)
{
    open_leased();
    extend(T0 + 10 * MINUTE, T0);
    assert_int_equal(bide_lease_until(&target), T0 + 10 * MINUTE);
    for (int64_t now_ns = T0; now_ns <= T0 + 10 * MINUTE; now_ns += 7 * S) {
        assert_int_equal(left_at(now_ns), 0);
        assert_false(take(now_ns));
    }
}

static void from_its_end_on_the_trickle_is_all_there_is(void **state)
{
    open_leased();
    extend(T0 + MINUTE, T0);
    assert_in_range(left_at(T0 + MINUTE + 30 * S), 499, 500);
    assert_false(take(T0 + 2 * MINUTE)); /* not a tick too early */
    assert_true(take(T0 + 2 * MINUTE + 2 * TICK));
    assert_false(take(T0 + 2 * MINUTE + 2 * TICK));
    succeed_on(0);
    assert_int_equal(left_at(T0 + 2 * MINUTE + 2 * TICK), 0); /* still put down */
    assert_in_range(left_at(T0 + 100 * MINUTE), 10000, 10000);
}

static void one_that_was_never_extended_trickles_from_its_beginning(void **state)
{
    open_leased();
    assert_in_range(left_at(T0 + MINUTE), 990, 1000);
    assert_false(take(T0 + MINUTE));
    assert_true(take(T0 + MINUTE + 3 * TICK));
}

static void what_trickled_and_was_not_spent_is_forfeited_when_it_answers_again(void **state)
{
    open_leased();
    assert_in_range(left_at(T0 + 5 * MINUTE), 4990, 5000);
    extend(T0 + 6 * MINUTE, T0 + 5 * MINUTE);
    assert_int_equal(left_at(T0 + 5 * MINUTE), 0);
    assert_false(take(T0 + 6 * MINUTE));
    assert_in_range(left_at(T0 + 7 * MINUTE), 990, 1000); /* and is not there after its next end */
}

static void what_was_lent_is_kept_when_the_other_side_is_silent(void **state)
{
    open_leased();
    add(3000);
    extend(T0 + S, T0);
    assert_in_range(left_at(T0 + S + MINUTE), 3990, 4000);
    assert_true(take(T0 + S + MINUTE));
    extend(T0 + 3 * MINUTE, T0 + 2 * MINUTE);
    assert_in_range(left_at(T0 + 2 * MINUTE), 2990, 3000); /* what was taken credited the time up to then */
}

static void what_failed_for_certain_ends_it_at_once_and_only_once(void **state)
{
    open_leased();
    extend(T0 + 10 * MINUTE, T0);
    for (int64_t now_ns = T0 + MINUTE; now_ns <= T0 + 2 * MINUTE; now_ns += S)
        extend(0, now_ns); /* an exchange a second, and each fails */
    assert_int_equal(bide_lease_until(&target), T0 + MINUTE);
    assert_in_range(left_at(T0 + 2 * MINUTE), 990, 1000);
    extend(T0 + 2 * MINUTE, T0 + 2 * MINUTE); /* now is over, too */
    assert_int_equal(bide_lease_until(&target), T0 + MINUTE);
}

/* What is there is taken out whenever it might be more than the time alone has earned. */
static void flapping_gains_no_time(void **state)
{
    const int64_t all = BIDE_CAPACITY_MAX_MILLI;
    int64_t gained_milli = 0, disconnected_ns = 0, now_ns = T0;
    open_leased();
    config.budget.refill_per_minute_milli = 60000000; /* a thousand a second */
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

static void an_extension_is_never_shortened_by_another(void **state)
{
    open_leased();
    extend(T0 + MINUTE, T0);
    extend(T0 + S, T0); /* of somebody who was stopped on his way */
    assert_int_equal(bide_lease_until(&target), T0 + MINUTE);
    extend(T0 + 2 * MINUTE, T0 + S);
    assert_int_equal(bide_lease_until(&target), T0 + 2 * MINUTE);
    core_cas_failures = 1;
    extend(T0 + 3 * MINUTE, T0 + S);
    assert_int_equal(core_cas_failures, 0);
    assert_int_equal(bide_lease_until(&target), T0 + 3 * MINUTE);
}

static void extending_what_is_not_leased_does_nothing(void **state)
{
    fresh_and_funded();
    open_target();
    struct bide_target before = target;
    extend(T0 + MINUTE, T0);
    extend(0, T0);
    assert_memory_equal(&before, &target, sizeof target);
}

static void the_trickle_s_clock_may_wrap_during_a_lease(void **state)
{
    const int64_t wrap_ns = TICK << 36;
    fresh_and_funded();
    assert_int_equal(bide_target_init(&target, &config, wrap_ns - 2 * MINUTE, NULL), BIDE_OK);
    leased_at(wrap_ns - 2 * MINUTE);
    extend(wrap_ns + MINUTE, wrap_ns - 2 * MINUTE);
    assert_int_equal(left_at(wrap_ns - 1), 0);
    assert_int_equal(left_at(wrap_ns + MINUTE), 0);
    assert_in_range(left_at(wrap_ns + 2 * MINUTE), 990, 1000);
    extend(wrap_ns + 3 * MINUTE, wrap_ns + 2 * MINUTE);
    assert_int_equal(left_at(wrap_ns + 3 * MINUTE), 0);
}

/* ---- reload, end, reuse ---- */

static void a_new_configuration_does_not_end_it(void **state)
{
    open_leased();
    add(5000);
    extend(T0 + MINUTE, T0);
    config.budget.capacity_milli = 3000; /* cuts */
    config.budget.earn_success_milli = 50;
    config.budget.refill_per_minute_milli = 60000;
    assert_int_equal(reload(NULL, T0 + S), BIDE_OK);
    assert_true(bide_lease_is_on(&target));
    assert_int_equal(left_at(T0 + S), 3000);
    succeed_on(0);
    assert_report(bide_lease_collect(&target), 1, 1, 50);
    config.budget.capacity_milli = 20000; /* does not fill */
    assert_int_equal(reload(NULL, T0 + 2 * S), BIDE_OK);
    assert_int_equal(left_at(T0 + MINUTE), 3000);
    assert_in_range(left_at(T0 + MINUTE + S), 3980, 4000); /* the new floor */
}

static void a_configuration_that_cannot_be_leased_is_refused(void **state)
{
    struct bide_problem problem = {0};
    open_leased();
    add(5000);
    config.budget.kind = BIDE_BUDGET_WINDOW;
    assert_int_equal(reload(&problem, T0), BIDE_ERR_INVALID);
    assert_string_equal(problem.field, "budget.kind");
    config.budget.kind = BIDE_BUDGET_TOKENS;
    config.budget.threshold_milli = 1;
    assert_int_equal(reload(&problem, T0), BIDE_ERR_INVALID);
    assert_string_equal(problem.field, "budget.threshold_milli");
    assert_int_equal(left_at(T0), 5000);
    assert_int_equal(target.claim, 0);
    assert_int_equal(bide_lease_end(&target, T0), BIDE_OK);
    assert_int_equal(reload(&problem, T0), BIDE_OK);
}

static void when_it_ends_the_target_earns_for_itself_again(void **state)
{
    open_leased();
    add(3000);
    extend(T0 + MINUTE, T0);
    assert_int_equal(bide_lease_end(&target, T0 + 30 * S), BIDE_OK);
    assert_false(bide_lease_is_on(&target));
    assert_int_equal(bide_lease_until(&target), 0);
    assert_int_equal(left_at(T0 + 30 * S), 3000);
    assert_in_range(left_at(T0 + 30 * S + MINUTE), 3990, 4001); /* from then on, and not for the time before */
    succeed_on(0);
    assert_int_equal(left_at(T0 + 30 * S), 3100);
    assert_report(bide_lease_collect(&target), 0, 0, 0);
    assert_int_equal(bide_lease_end(&target, T0 + MINUTE), BIDE_OK); /* there is none */
    assert_int_equal(left_at(T0 + 30 * S), 3100);
}

static void what_is_leased_is_not_blank_and_its_memory_is_not_given_away(void **state)
{
    open_leased();
    add(10000);
    assert_false(bide_target_is_evictable(&target, T0));
    assert_int_equal(bide_target_reuse(&target, &config, T0, NULL), BIDE_ERR_BUSY);
    assert_int_equal(target.claim, 0);
    assert_true(bide_lease_is_on(&target));
    assert_int_equal(bide_lease_end(&target, T0), BIDE_OK);
    assert_true(bide_target_is_evictable(&target, T0));
    assert_int_equal(bide_target_reuse(&target, &config, T0, NULL), BIDE_OK);
    assert_int_equal(left_at(T0), 10000);
}

static void a_configuration_read_from_it_leases_nothing_else(void **state)
{
    open_leased();
    struct bide_target_config read;
    bide_target_config_get(&target, &read);
    assert_memory_equal(&read, &config, sizeof read);
    static struct bide_target other;
    assert_int_equal(bide_target_init(&other, &read, T0, NULL), BIDE_OK);
    assert_false(bide_lease_is_on(&other));
    assert_int_equal(bide_budget_left_milli(&other, T0), 10000);
}

/* ---- who exchanges ---- */

static bool claim(uint32_t who, int64_t until_ns, int64_t now_ns)
{
    return bide_lease_claim(&target, who, until_ns, now_ns);
}

static void one_at_a_time_exchanges(void **state)
{
    open_leased();
    assert_true(claim(7, T0 + 10 * S, T0));
    assert_false(claim(8, T0 + 20 * S, T0 + S));
    assert_true(claim(7, T0 + 20 * S, T0 + 9 * S)); /* goes on */
    assert_false(claim(8, T0 + 30 * S, T0 + 20 * S - 1));
    assert_true(claim(8, T0 + 30 * S, T0 + 21 * S)); /* it was silent for too long */
    assert_false(claim(7, T0 + 40 * S, T0 + 21 * S));
}

static void who_gives_it_up_makes_room_and_nobody_else_can(void **state)
{
    open_leased();
    assert_true(claim(7, T0 + 10 * S, T0));
    assert_false(claim(8, 0, T0));
    assert_false(claim(8, T0 + S, T0));
    assert_false(claim(7, 0, T0));
    assert_true(claim(8, T0 + S, T0));
    assert_false(claim(9, T0, T0 + 5 * S)); /* 8's time is over, but there is nothing of 9's to give up */
    assert_true(claim(8, T0 + 6 * S, T0 + 5 * S));
}

static void of_two_who_claim_at_once_one_gets_it(void **state)
{
    open_leased();
    core_cas_failures = 1;
    assert_false(claim(7, T0 + S, T0));
    assert_true(claim(7, T0 + S, T0));
    assert_int_equal(core_cas_failures, 0);
}

static void a_claim_holds_on_clocks_of_any_age(void **state)
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
        core_budget_credit_success(argument, 0); /* as a call does that has seen that it is not leased */
    return NULL;
}

static void no_earning_slips_in_while_a_lease_begins(void **state)
{
    fresh_and_funded();
    for (int i = 0; i < 100; i++) {
        pthread_t earners[2];
        open_target();
        __atomic_store_n(&stop, false, __ATOMIC_RELAXED);
        core_budget_drain(&target, T0);
        for (size_t j = 0; j < COUNT(earners); j++)
            assert_int_equal(pthread_create(&earners[j], NULL, earn_on, &target), 0);
        while (i % 2 == 0 && left_at(T0) == 0)
            sched_yield(); /* until they are at it */
        leased_at(T0);
        int64_t found_milli = left_at(T0);
        __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
        for (size_t j = 0; j < COUNT(earners); j++)
            pthread_join(earners[j], NULL);
        assert_int_equal(found_milli, 0);
        assert_int_equal(left_at(T0), 0);
    }
}

static void *spend_on(void *argument)
{
    uint64_t *spent = argument;
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
        *spent += take(T0);
    return NULL;
}

static void threads_spend_what_was_lent_and_no_more(void **state)
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
        lent_milli += add(i % 3 == 0 ? -500 : 700);
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    for (size_t i = 0; i < COUNT(spenders); i++)
        pthread_join(spenders[i], NULL);
    assert_int_equal((int64_t)(spent[0] + spent[1]) * 1000 + left_at(T0), lent_milli);
}

/* ---- killed at any instruction ---- */

#if defined(__x86_64__) /* elsewhere a compare-and-swap may be a loop that no single step gets out of */
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

/* Lets a child do the deed on a copy of the target, one instruction at a time, and has it looked at after each. */
static void at_every_instruction(void (*deed)(struct bide_target *), void (*look)(const struct bide_target *))
{
    struct bide_target *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(shared, MAP_FAILED);
    *shared = target;
    deed(shared); /* once in full: what is linked lazily is there */
    *shared = target;
    int status = 0;
    uint32_t changes = 0;
    pid_t child = fork();
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
            _exit(1);
        raise(SIGSTOP);
        deed(shared);
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

static void do_begin(struct bide_target *t)
{
    bide_lease_begin(t, T0, NULL);
}

static void do_end(struct bide_target *t)
{
    bide_lease_end(t, T0 + S);
}

static void do_configure(struct bide_target *t)
{
    bide_target_configure(t, &config, T0 + S, NULL);
}

static void do_extend(struct bide_target *t)
{
    bide_lease_extend(t, T0 + 2 * MINUTE, T0 + MINUTE);
    bide_lease_extend(t, 0, T0 + MINUTE);
}

static void do_collect(struct bide_target *t)
{
    (void)bide_lease_collect(t);
}

/* Full before, empty when it is leased; and whoever comes next can go on. */
static void looks_begun_or_not(const struct bide_target *seen)
{
    static struct bide_target t;
    t = *seen;
    bool leased = bide_lease_is_on(&t);
    assert_int_equal(bide_budget_left_milli(&t, T0), leased ? 0 : 10000);
    assert_int_equal(take_of(&t, T0), !leased);
    t = *seen;
    assert_int_equal(bide_lease_begin(&t, T0 + 11 * S, NULL), BIDE_OK);
    assert_true(bide_lease_is_on(&t));
    assert_int_equal(bide_budget_left_milli(&t, T0 + 11 * S), 0);
    assert_int_equal(bide_budget_add_milli(&t, 1000, T0 + 11 * S), 1000);
    assert_true(take_of(&t, T0 + 11 * S));
}

static void looks_as_if_it_had_three_tokens(const struct bide_target *seen)
{
    static struct bide_target t;
    t = *seen;
    assert_int_equal(bide_budget_left_milli(&t, T0 + S), 3000);
    assert_true(take_of(&t, T0 + S) && take_of(&t, T0 + S) && take_of(&t, T0 + S));
    assert_false(take_of(&t, T0 + S));
}

/* Never more than a minute's trickle, and nothing that is there twice. */
static void looks_alone_for_a_minute_at_most(const struct bide_target *seen)
{
    int64_t left_milli = bide_budget_left_milli(seen, T0 + MINUTE);
    assert_true(left_milli == 0 || (left_milli >= 990 && left_milli <= 1000));
    assert_in_range(bide_budget_left_milli(seen, T0 + 2 * MINUTE), 0, 2000);
}

static void looks_put_down_once_at_most(const struct bide_target *seen)
{
    static struct bide_target t;
    t = *seen;
    struct bide_lease_report left_there = bide_lease_collect(&t);
    assert_in_range(left_there.firsts, 0, 8);
    assert_in_range(left_there.successes, 0, 8);
    assert_in_range(left_there.earned_milli, 0, 800);
    assert_int_equal(left_there.earned_milli % 100, 0);
}

static void killed_while_it_begins_it_never_has_what_was_there_before(void **state)
{
    fresh(); /* no trickle */
    open_target();
    at_every_instruction(do_begin, looks_begun_or_not);
    *CORE_LEASE_END(&target) = T0; /* whoever ended the lease before was killed over that */
    at_every_instruction(do_begin, looks_begun_or_not);
}

static void killed_while_it_ends_or_is_reloaded_it_has_what_it_had(void **state)
{
    open_leased();
    add(3000);
    extend(T0 + MINUTE, T0);
    at_every_instruction(do_end, looks_as_if_it_had_three_tokens);
    config.budget.refill_per_minute_milli = 0;
    config.budget.capacity_milli = 20000;
    at_every_instruction(do_configure, looks_as_if_it_had_three_tokens);
}

static void killed_while_it_extends_or_collects_it_has_no_more(void **state)
{
    open_leased();
    at_every_instruction(do_extend, looks_alone_for_a_minute_at_most);
    for (uint32_t lane = 0; lane < BIDE_LANES; lane++)
        succeed_on(lane);
    at_every_instruction(do_collect, looks_put_down_once_at_most);
}
#endif

static void a_memo_stays_until_another_lease_begins(void **state)
{
    open_leased();
    struct bide_lease_memo memo = bide_lease_memo_get(&target);
    assert_true(memo.progress == 0 && memo.base_milli == 0);
    bide_lease_memo_set(&target, (struct bide_lease_memo){42, 7000});
    memo = bide_lease_memo_get(&target);
    assert_true(memo.progress == 42 && memo.base_milli == 7000);
    assert_int_equal(bide_lease_begin(&target, T0, NULL), BIDE_OK); /* it is on: nothing begins */
    assert_int_equal(bide_lease_memo_get(&target).progress, 42);
    assert_int_equal(bide_lease_end(&target, T0), BIDE_OK);
    assert_int_equal(bide_lease_begin(&target, T0, NULL), BIDE_OK);
    assert_int_equal(bide_lease_memo_get(&target).progress, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_memo_stays_until_another_lease_begins),
        cmocka_unit_test(a_lease_begins_with_an_empty_bucket),
        cmocka_unit_test(the_first_instant_of_a_clock_is_as_good_as_another),
        cmocka_unit_test(one_that_is_leased_already_keeps_what_it_has),
        cmocka_unit_test(only_tokens_that_can_all_be_spent_are_lent),
        cmocka_unit_test(presets_are_lent_to_or_named_as_wrong),
        cmocka_unit_test(who_configures_is_not_disturbed),
        cmocka_unit_test(an_interrupted_beginning_is_as_empty_and_can_be_made_good),
        cmocka_unit_test(what_an_earlier_lease_put_down_is_not_reported_by_the_next),
        cmocka_unit_test(the_bucket_is_emptied_though_others_change_it),
        cmocka_unit_test(emptying_leaves_a_word_that_never_was_there),
        cmocka_unit_test(calls_earn_nothing_and_what_they_would_have_is_put_down),
        cmocka_unit_test(a_call_that_fails_is_a_first_attempt_and_no_success),
        cmocka_unit_test(a_refund_is_put_down_instead_of_a_success_s_earning),
        cmocka_unit_test(one_that_is_not_leased_puts_nothing_down),
        cmocka_unit_test(an_earning_that_was_under_way_comes_too_late),
        cmocka_unit_test(tokens_that_come_from_outside_are_spent_as_any),
        cmocka_unit_test(a_charge_comes_back_if_its_retry_is_never_sent),
        cmocka_unit_test(hedges_and_failures_pay_with_lent_tokens),
        cmocka_unit_test(a_budget_that_observes_lets_retries_go_and_counts_them),
        cmocka_unit_test(nothing_trickles_while_the_lease_holds),
        cmocka_unit_test(from_its_end_on_the_trickle_is_all_there_is),
        cmocka_unit_test(one_that_was_never_extended_trickles_from_its_beginning),
        cmocka_unit_test(what_trickled_and_was_not_spent_is_forfeited_when_it_answers_again),
        cmocka_unit_test(what_was_lent_is_kept_when_the_other_side_is_silent),
        cmocka_unit_test(what_failed_for_certain_ends_it_at_once_and_only_once),
        cmocka_unit_test(flapping_gains_no_time),
        cmocka_unit_test(an_extension_is_never_shortened_by_another),
        cmocka_unit_test(extending_what_is_not_leased_does_nothing),
        cmocka_unit_test(the_trickle_s_clock_may_wrap_during_a_lease),
        cmocka_unit_test(a_new_configuration_does_not_end_it),
        cmocka_unit_test(a_configuration_that_cannot_be_leased_is_refused),
        cmocka_unit_test(when_it_ends_the_target_earns_for_itself_again),
        cmocka_unit_test(what_is_leased_is_not_blank_and_its_memory_is_not_given_away),
        cmocka_unit_test(a_configuration_read_from_it_leases_nothing_else),
        cmocka_unit_test(one_at_a_time_exchanges),
        cmocka_unit_test(who_gives_it_up_makes_room_and_nobody_else_can),
        cmocka_unit_test(of_two_who_claim_at_once_one_gets_it),
        cmocka_unit_test(a_claim_holds_on_clocks_of_any_age),
        cmocka_unit_test(no_earning_slips_in_while_a_lease_begins),
        cmocka_unit_test(threads_spend_what_was_lent_and_no_more),
#if defined(__x86_64__)
        cmocka_unit_test(killed_while_it_begins_it_never_has_what_was_there_before),
        cmocka_unit_test(killed_while_it_ends_or_is_reloaded_it_has_what_it_had),
        cmocka_unit_test(killed_while_it_extends_or_collects_it_has_no_more),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
