/* test_explain.c - the numbers of `bide explain`: windows, means, sums, what binds, the rule of a third, and the load.
 *
 * Numbers that others have published are restated here as they come out, also where the published ones were wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include <bide/call.h>

#include <string.h>

#include "explain/advise.h"
#include "explain/amplify.h"
#include "explain/decorrelated.h"
#include "explain/schedule.h"

#define MS BIDE_MS
#define S  BIDE_S

static struct conf_pair pair;
static struct explain_schedule schedule;

static void explain_preset(enum bide_preset preset)
{
    conf_pair_init(&pair, preset);
    explain_schedule(&schedule, &pair.policy);
}

static void assert_near(double is, double wanted, double within)
{
    if (is < wanted - within || is > wanted + within)
        fail_msg("%f is not %f within %f", is, wanted, within);
}

static void assert_window(uint32_t wait, int64_t lo_ns, int64_t hi_ns, int64_t mean_ns)
{
    assert_int_equal(schedule.wait[wait].window.lo_ns, lo_ns);
    assert_int_equal(schedule.wait[wait].window.hi_ns, hi_ns);
    assert_int_equal(schedule.wait[wait].mean_ns, mean_ns);
}

/* ---- windows and means ---- */

static void full_jitter_doubles_from_200_ms_and_means_half(void **state)
{
    (void)state;
    explain_preset(BIDE_PRESET_SERVICE);
    assert_int_equal(schedule.waits, 3);
    assert_window(0, 0, 200 * MS, 100 * MS);
    assert_window(1, 0, 400 * MS, 200 * MS);
    assert_window(2, 0, 800 * MS, 400 * MS);
}

/* 200 ms doubled seven times is 25.6 s: a cap of 30 s is reached by the wait after that, not by this one. */
static void the_wait_before_attempt_nine_is_25_6_s_and_the_next_is_capped(void **state)
{
    (void)state;
    conf_pair_init(&pair, BIDE_PRESET_SERVICE);
    pair.policy.attempts_max = 12;
    explain_schedule(&schedule, &pair.policy);
    assert_window(7, 0, 25600 * MS, 12800 * MS);
    assert_window(8, 0, 30 * S, 15 * S);
    assert_window(10, 0, 30 * S, 15 * S);
}

static void equal_jitter_waits_half_and_means_three_quarters(void **state)
{
    (void)state;
    conf_pair_init(&pair, BIDE_PRESET_SERVICE);
    pair.policy.jitter = BIDE_JITTER_EQUAL;
    explain_schedule(&schedule, &pair.policy);
    assert_window(1, 200 * MS, 400 * MS, 300 * MS);
}

/* Without a cap in sight the mean obeys m' = (base + 3 m) / 2, from the base. */
static void decorrelated_means_follow_their_recursion_below_the_cap(void **state)
{
    (void)state;
    static const double means[] = {2, 3.5, 5.75, 9.125, 14.1875, 21.78125};
    conf_pair_init(&pair, BIDE_PRESET_BACKGROUND);
    pair.policy.cap_ns = BIDE_DURATION_MAX;
    pair.policy.attempts_max = 7;
    explain_schedule(&schedule, &pair.policy);
    for (uint32_t i = 0, evidence = 3; i < 6; i++, evidence *= 3) {
        assert_near((double)schedule.wait[i].mean_ns / S, means[i], means[i] * 0.0003);
        assert_int_equal(schedule.wait[i].window.lo_ns, 1 * S);
        assert_int_equal(schedule.wait[i].window.hi_ns, evidence * S);
    }
}

/* Nearly all waits are then a thousandth of the longest and less. */
static void decorrelated_means_hold_however_far_the_cap_is(void **state)
{
    (void)state;
    double mean_ns = 1e6;
    conf_pair_init(&pair, BIDE_PRESET_BACKGROUND);
    pair.policy.base_ns = MS;
    pair.policy.cap_ns = BIDE_DURATION_MAX;
    pair.policy.attempts_max = 25;
    explain_schedule(&schedule, &pair.policy);
    for (uint32_t i = 0; i < 24; i++) {
        mean_ns = (1e6 + 3 * mean_ns) / 2;
        assert_near((double)schedule.wait[i].mean_ns, mean_ns, mean_ns * 0.001);
    }
}

static void a_layer_that_never_retries_has_one_attempt(void **state)
{
    (void)state;
    conf_pair_init(&pair, BIDE_PRESET_SERVICE);
    pair.policy.layer = BIDE_LAYER_NEVER;
    explain_schedule(&schedule, &pair.policy);
    assert_int_equal(schedule.attempts, 1);
    assert_int_equal(schedule.waits, 0);
    assert_int_equal(schedule.worst_ns, pair.policy.attempt_timeout_ns);
    assert_true(explain_slo(&schedule, 3 * MS).fits);
}

/* The mean over many seeds of what the engine really draws. */
static double drawn_mean(const struct bide_policy *policy, uint32_t wait)
{
    double sum = 0;
    int64_t waits[8];
    for (uint64_t seed = 1; seed <= 20000; seed++) {
        assert_true(explain_sample(policy, seed, waits, 8) > wait);
        sum += (double)waits[wait] / 20000;
    }
    return sum;
}

static void decorrelated_means_are_those_the_engine_draws_at_the_cap_too(void **state)
{
    (void)state;
    static const enum bide_jitter kinds[] = {BIDE_JITTER_DECORRELATED, BIDE_JITTER_DECORRELATED_AWS};
    for (size_t i = 0; i < 2; i++) {
        conf_pair_init(&pair, BIDE_PRESET_BACKGROUND);
        pair.policy.jitter = kinds[i];
        pair.policy.cap_ns = 5 * S;
        pair.policy.deadline_ns = BIDE_NEVER;
        explain_schedule(&schedule, &pair.policy);
        for (uint32_t wait = 0; wait < 5; wait++)
            assert_near((double)schedule.wait[wait].mean_ns, drawn_mean(&pair.policy, wait),
                        (double)schedule.wait[wait].mean_ns * 0.02);
    }
}

static void decorrelated_without_room_spreads_below_its_base(void **state)
{
    (void)state;
    conf_pair_init(&pair, BIDE_PRESET_BACKGROUND);
    pair.policy.cap_ns = pair.policy.base_ns;
    explain_schedule(&schedule, &pair.policy);
    assert_int_equal(schedule.wait[2].window.lo_ns, 0);
    assert_int_equal(schedule.wait[2].window.hi_ns, 1 * S);
    assert_near((double)schedule.wait[2].mean_ns, 0.5e9, 1e6);
}

static void every_draw_of_the_engine_lies_in_the_window_told(void **state)
{
    (void)state;
    for (enum bide_preset preset = 0; preset < BIDE_PRESET_COUNT; preset++) {
        explain_preset(preset);
        for (uint64_t seed = 1; seed <= 200; seed++) {
            int64_t waits[8];
            uint32_t count = explain_sample(&pair.policy, seed, waits, 8);
            for (uint32_t i = 0; i < count; i++) {
                assert_true(waits[i] >= schedule.wait[i].window.lo_ns);
                assert_true(waits[i] <= schedule.wait[i].window.hi_ns);
            }
        }
    }
}

/* ---- sums ---- */

/* Four attempts of 150 ms and waits of 100, 200 and 400 ms are 1.3 s; 6.6 s would need every wait at its cap. */
static void the_worst_case_of_paysetu_is_1_3_s(void **state)
{
    (void)state;
    explain_preset(BIDE_PRESET_PAYSETU);
    assert_int_equal(schedule.waits_worst_ns, 700 * MS);
    assert_int_equal(schedule.waits_mean_ns, 350 * MS);
    assert_int_equal(schedule.uncut_ns, 1300 * MS);
    assert_int_equal(schedule.worst_ns, 1300 * MS);
    assert_int_equal(schedule.slow_mean_ns, 950 * MS);
    assert_int_equal(schedule.wait[2].latest_ns, 1150 * MS);
    assert_int_equal(schedule.wait[2].earliest_ns, 0);
}

static void our_presets_take_as_long_as_they_say(void **state)
{
    (void)state;
    static const struct {
        enum bide_preset preset;
        int64_t uncut_ns, worst_ns;
    } known[] = {
        {BIDE_PRESET_SERVICE, 41400 * MS, 41400 * MS},  {BIDE_PRESET_INTERACTIVE, 6300 * MS, 5 * S},
        {BIDE_PRESET_EXTERNAL, 127 * S, 127 * S},       {BIDE_PRESET_BACKGROUND, 600 * S, 600 * S},
        {BIDE_PRESET_SERVERLESS, 9300 * MS, 9300 * MS}, {BIDE_PRESET_PAYMENT, 15300 * MS, 15 * S},
        {BIDE_PRESET_COMMAND, BIDE_NEVER, BIDE_NEVER},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        explain_preset(known[i].preset);
        assert_int_equal(schedule.uncut_ns, known[i].uncut_ns);
        assert_int_equal(schedule.worst_ns, known[i].worst_ns);
    }
}

static void more_attempts_than_are_listed_still_count(void **state)
{
    (void)state;
    conf_pair_init(&pair, BIDE_PRESET_SERVICE);
    pair.policy.attempts_max = 2001;
    pair.policy.jitter = BIDE_JITTER_NONE;
    pair.policy.backoff = BIDE_BACKOFF_FIXED;
    pair.policy.attempt_timeout_ns = 1 * S;
    explain_schedule(&schedule, &pair.policy);
    assert_int_equal(schedule.waits, EXPLAIN_WAITS_MAX);
    assert_int_equal(schedule.more, 1000);
    assert_false(schedule.rough);
    assert_int_equal(schedule.waits_worst_ns, 400 * S);
    assert_int_equal(schedule.uncut_ns, 2401 * S);
    assert_int_equal(schedule.at_best, 300); /* at 0, 0.2 s, ... 59.8 s */
    assert_int_equal(schedule.surely, 50);   /* at 0, 1.2 s, ... 58.8 s */
    pair.policy.deadline_ns = 300 * S;
    explain_schedule(&schedule, &pair.policy);
    assert_int_equal(schedule.at_best, 1500);
}

static void sums_of_the_largest_numbers_saturate(void **state)
{
    (void)state;
    conf_pair_init(&pair, BIDE_PRESET_SERVICE);
    pair.policy.attempts_max = UINT32_MAX;
    pair.policy.base_ns = pair.policy.cap_ns = pair.policy.attempt_timeout_ns = BIDE_DURATION_MAX;
    pair.policy.deadline_ns = BIDE_NEVER;
    explain_schedule(&schedule, &pair.policy);
    assert_int_equal(schedule.uncut_ns, BIDE_NEVER);
    assert_int_equal(schedule.surely, UINT32_MAX);
    pair.policy.backoff = BIDE_BACKOFF_LINEAR;
    pair.policy.base_ns = 1;
    explain_schedule(&schedule, &pair.policy);
    assert_true(schedule.rough);
}

static void one_attempt_waits_for_nothing(void **state)
{
    (void)state;
    conf_pair_init(&pair, BIDE_PRESET_SERVICE);
    pair.policy.attempts_max = 1;
    explain_schedule(&schedule, &pair.policy);
    assert_int_equal(schedule.waits, 0);
    assert_int_equal(schedule.waits_worst_ns, 0);
    assert_int_equal(schedule.uncut_ns, 10 * S);
    assert_int_equal(schedule.at_best, 1);
}

/* ---- what binds ---- */

static void attempts_bind_where_all_of_them_fit(void **state)
{
    (void)state;
    explain_preset(BIDE_PRESET_SERVICE);
    assert_int_equal(explain_binds(&schedule), EXPLAIN_ATTEMPTS_BIND);
    explain_preset(BIDE_PRESET_COMMAND);
    assert_int_equal(explain_binds(&schedule), EXPLAIN_ATTEMPTS_BIND);
}

static void a_deadline_may_bind_when_attempts_are_slow(void **state)
{
    (void)state;
    conf_pair_init(&pair, BIDE_PRESET_SERVICE);
    pair.policy.deadline_ns = 15 * S;
    explain_schedule(&schedule, &pair.policy);
    assert_int_equal(explain_binds(&schedule), EXPLAIN_EITHER_BINDS);
    assert_int_equal(schedule.surely, 2);
    assert_int_equal(schedule.at_best, 4);
}

/* A wait that would end at the deadline is not started: 100 + 200 ms is too late for a deadline of 300 ms. */
static void a_deadline_binds_where_even_the_soonest_attempts_do_not_fit(void **state)
{
    (void)state;
    conf_pair_init(&pair, BIDE_PRESET_SERVICE);
    pair.policy.jitter = BIDE_JITTER_NONE;
    pair.policy.base_ns = 100 * MS;
    pair.policy.deadline_ns = 300 * MS;
    explain_schedule(&schedule, &pair.policy);
    assert_int_equal(explain_binds(&schedule), EXPLAIN_DEADLINE_BINDS);
    assert_int_equal(schedule.at_best, 2);
    int64_t waits[8];
    assert_int_equal(explain_sample(&pair.policy, 1, waits, 8), 1);
    pair.policy.deadline_ns = 300 * MS + 1;
    explain_schedule(&schedule, &pair.policy);
    assert_int_equal(schedule.at_best, 3);
}

/* ---- the rule of a third ---- */

static void retries_may_take_a_third_of_the_slo(void **state)
{
    (void)state;
    explain_preset(BIDE_PRESET_PAYSETU);
    struct explain_slo slo = explain_slo(&schedule, 2 * S);
    assert_int_equal(slo.third_ns, 666666666);
    assert_int_equal(slo.retries_ns, 1150 * MS); /* all but the first attempt */
    assert_false(slo.fits);
    assert_int_equal(slo.attempts_fit, 3);
    assert_true(explain_slo(&schedule, 3450 * MS).fits);
    assert_false(explain_slo(&schedule, 3450 * MS - 1).fits);
}

static void a_deadline_bounds_what_retries_take(void **state)
{
    (void)state;
    explain_preset(BIDE_PRESET_GRPC);
    assert_int_equal(explain_slo(&schedule, 2 * S).retries_ns, BIDE_NEVER);
    assert_false(explain_slo(&schedule, 2 * S).fits);
    explain_preset(BIDE_PRESET_ENVOY); /* 15 s, and no attempt timeout */
    assert_int_equal(explain_slo(&schedule, 45 * S).retries_ns, 15 * S);
    assert_true(explain_slo(&schedule, 45 * S).fits);
}

/* ---- layers ---- */

static void three_attempts_over_three_layers_are_27(void **state)
{
    (void)state;
    assert_int_equal(explain_multiplied(3, 3), 27);
    assert_int_equal(explain_multiplied(4, 3), 64);
    assert_int_equal(explain_multiplied(3, 5), 243);
    assert_int_equal(explain_multiplied(1, 64), 1);
    assert_int_equal(explain_multiplied(2, 63), UINT64_C(1) << 63);
    assert_true(explain_multiplied(2, 64) == UINT64_MAX);
    assert_true(explain_multiplied(UINT32_MAX, 3) == UINT64_MAX);
}

/* Requests that reach the bottom when all fail, through real calls that pass the attempt number on. */
static uint64_t cascade(const struct bide_policy *policy, uint32_t layers, uint32_t inbound)
{
    const struct bide_outcome failed = {.kind = BIDE_KIND_TRANSIENT, .evidence = BIDE_EVIDENCE_NOT_SENT};
    const struct bide_request request = {.safety = BIDE_SAFE, .seed = 1, .inbound.attempt = inbound};
    struct bide_call call;
    int64_t now_ns = 0;
    uint64_t reached = 0;
    if (layers == 0)
        return 1;
    struct bide_verdict v = bide_call_begin(&call, policy, NULL, &request, now_ns);
    while (v.action == BIDE_START) {
        reached += cascade(policy, layers - 1, v.attempt > inbound ? v.attempt : inbound);
        v = bide_call_outcome(&call, v.attempt, &failed, now_ns);
        if (v.action == BIDE_WAIT) {
            now_ns = v.wake_ns;
            v = bide_call_wake(&call, now_ns);
        }
    }
    return reached;
}

static void layers_come_to_what_the_engine_makes_of_them(void **state)
{
    (void)state;
    for (uint32_t attempts = 1; attempts <= 4; attempts++)
        for (uint32_t layers = 1; layers <= 4; layers++)
            for (enum bide_layer_rule rule = BIDE_LAYER_OUTERMOST; rule <= BIDE_LAYER_NEVER; rule++) {
                conf_pair_init(&pair, BIDE_PRESET_SERVICE);
                pair.policy.attempts_max = attempts;
                pair.policy.layer = rule;
                assert_int_equal(explain_layered(&pair.policy, layers), cascade(&pair.policy, layers, 0));
            }
    conf_pair_init(&pair, BIDE_PRESET_SERVICE);
    pair.policy.attempts_max = 3;
    assert_int_equal(explain_layered(&pair.policy, 3), 7);
}

/* ---- averages and budgets ---- */

static void the_average_without_a_budget_is_the_known_series(void **state)
{
    (void)state;
    assert_near(explain_average(4, 0.1), 1.111, 1e-9);
    assert_near(explain_average(4, 0.5), 1.875, 1e-9);
    assert_near(explain_average(4, 0.9), 3.439, 1e-9);
    assert_near(explain_average(4, 1.0), 4.0, 1e-9);
    assert_near(explain_average(27, 0.9), 9.42, 0.005);
    assert_near(explain_average(27, 0.99), 23.8, 0.05);
    assert_near(explain_average(UINT64_MAX, 0.5), 2.0, 1e-9);
}

static double budgeted(double p, int64_t rate_per_minute_milli)
{
    struct explain_subject subject = {.pair = &pair, .layers = 1, .rate_per_minute_milli = rate_per_minute_milli};
    return explain_budgeted(&subject, p);
}

/* 1 / (1 - r (1 - p)) with r = 0.1: 1.10 at 1 in 10, nothing at total failure. */
static void a_budget_that_successes_fund_ends_retries_in_an_outage(void **state)
{
    (void)state;
    conf_pair_init(&pair, BIDE_PRESET_SERVICE);
    assert_near(budgeted(0.01, 0), 1.0101, 1e-4);
    assert_near(budgeted(0.1, 0), 1.0 / 0.91, 1e-9);
    assert_near(budgeted(0.5, 0), 1.0 / 0.95, 1e-9);
    assert_near(budgeted(0.9, 0), 1.0 / 0.99, 1e-9);
    assert_near(budgeted(1.0, 0), 1.0, 1e-9);
}

static void the_trickle_counts_for_those_who_ask_seldom(void **state)
{
    (void)state;
    conf_pair_init(&pair, BIDE_PRESET_SERVICE);
    assert_near(budgeted(1.0, 60 * 100 * 1000), 1.0 + 1.0 / 6000, 1e-9); /* 100/s: one retry a minute */
    assert_near(budgeted(1.0, 1000), 2.0, 1e-9);                         /* 1/min: each may be retried once */
    assert_near(budgeted(1.0, 100), 4.0, 1e-9);                          /* never more than the attempts */
}

static void a_budget_that_first_attempts_fund_pays_on_in_an_outage(void **state)
{
    (void)state;
    conf_pair_init(&pair, BIDE_PRESET_SERVICE);
    pair.target.budget.earn_success_milli = pair.target.budget.refill_per_minute_milli = 0;
    pair.target.budget.earn_first_milli = 100;
    assert_near(budgeted(0.5, 0), 1.1, 1e-9);
    assert_near(budgeted(1.0, 0), 1.1, 1e-9);
}

static void other_budgets_bound_by_their_ratio(void **state)
{
    (void)state;
    conf_pair_init(&pair, BIDE_PRESET_SRE);
    assert_near(budgeted(1.0, 0), 1.1, 1e-9);
    assert_near(budgeted(1.0, 4000), 3.0, 1e-9); /* 8 requests in its window of 2 min: below its volume of 10 */
    assert_near(budgeted(1.0, 5000), 1.1, 1e-9);
    conf_pair_init(&pair, BIDE_PRESET_FINAGLE);
    assert_near(budgeted(1.0, 60 * 100 * 1000), 1.3, 1e-9); /* 20 %, and 10 a second on top, at 100/s */
    conf_pair_init(&pair, BIDE_PRESET_ENVOY);
    assert_near(budgeted(1.0, 0), 1.25, 1e-9);
    conf_pair_init(&pair, BIDE_PRESET_CURL);
    assert_near(budgeted(1.0, 0), 4.0, 1e-9);
    conf_pair_init(&pair, BIDE_PRESET_GRPC);
    assert_near(budgeted(1.0, 0), 1.0, 1e-9);
    conf_pair_init(&pair, BIDE_PRESET_SERVICE);
    pair.target.observe = BIDE_GATE_BUDGET;
    assert_near(budgeted(1.0, 0), 4.0, 1e-9);
}

/* Retries until a target in real use says that its budget is empty. */
static int64_t retries_paid_at_once(void)
{
    const struct bide_outcome failed = {.kind = BIDE_KIND_TRANSIENT, .evidence = BIDE_EVIDENCE_NOT_SENT};
    const struct bide_request request = {.safety = BIDE_SAFE, .seed = 1};
    struct bide_target target;
    int64_t paid = 0;
    pair.target.breaker.kind = BIDE_BREAKER_OFF;
    assert_int_equal(bide_target_init(&target, &pair.target, S, NULL), BIDE_OK);
    for (;; paid++) {
        struct bide_call call;
        bide_call_begin(&call, &pair.policy, &target, &request, S);
        if (bide_call_outcome(&call, 1, &failed, S).action != BIDE_WAIT)
            return paid;
    }
}

static void a_full_bucket_pays_for_as_many_retries_as_told(void **state)
{
    (void)state;
    static const enum bide_preset presets[] = {BIDE_PRESET_SERVICE, BIDE_PRESET_AWS_2_0, BIDE_PRESET_AWS_2_1,
                                               BIDE_PRESET_GRPC, BIDE_PRESET_SEED_001};
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++) {
        conf_pair_init(&pair, presets[i]);
        assert_int_equal(explain_burst(&pair.target.budget), retries_paid_at_once());
    }
    conf_pair_init(&pair, BIDE_PRESET_CURL);
    assert_int_equal(explain_burst(&pair.target.budget), EXPLAIN_UNLIMITED);
}

/* ---- advice ---- */

static struct explain_advice advice;

static void ask_advice(uint64_t clients, int64_t min_wait_ns, int64_t rate_per_minute_milli)
{
    struct explain_subject subject = {.pair = &pair,
                                      .layers = 1,
                                      .clients = clients,
                                      .min_wait_ns = min_wait_ns,
                                      .rate_per_minute_milli = rate_per_minute_milli};
    explain_advise(&advice, &subject);
    assert_int_equal(bide_policy_check(&advice.pair.policy, NULL), BIDE_OK);
    assert_int_equal(bide_target_config_check(&advice.pair.target, NULL), BIDE_OK);
    assert_int_equal(advice.branches, 5);
}

static void many_clients_get_full_jitter_and_very_many_a_budget_and_a_breaker(void **state)
{
    (void)state;
    conf_pair_init(&pair, BIDE_PRESET_CURL);
    ask_advice(1000, 0, 0);
    assert_int_equal(advice.pair.policy.jitter, BIDE_JITTER_FULL);
    assert_int_equal(advice.pair.target.budget.kind, BIDE_BUDGET_NONE);
    ask_advice(1001, 0, 0);
    assert_int_equal(advice.pair.target.budget.kind, BIDE_BUDGET_TOKENS);
    assert_int_equal(advice.pair.target.breaker.kind, BIDE_BREAKER_BY_TIME);
}

static void few_clients_keep_their_jitter_all_the_same(void **state)
{
    (void)state;
    conf_pair_init(&pair, BIDE_PRESET_CURL);
    ask_advice(9, 0, 0);
    assert_int_equal(advice.pair.policy.jitter, BIDE_JITTER_FULL);
    assert_int_equal(advice.remarks, 1);
}

static void a_least_wait_is_kept_by_equal_jitter(void **state)
{
    (void)state;
    conf_pair_init(&pair, BIDE_PRESET_SERVICE);
    ask_advice(100, 500 * MS, 0);
    assert_int_equal(advice.pair.policy.jitter, BIDE_JITTER_EQUAL);
    explain_schedule(&schedule, &advice.pair.policy);
    assert_int_equal(schedule.wait[0].window.lo_ns, 500 * MS);
    ask_advice(100, 60 * S, 0); /* beyond the cap, which moves */
    explain_schedule(&schedule, &advice.pair.policy);
    assert_int_equal(schedule.wait[0].window.lo_ns, 60 * S);
}

static void background_jobs_get_decorrelated_jitter_and_others_3_to_5_attempts(void **state)
{
    (void)state;
    conf_pair_init(&pair, BIDE_PRESET_BACKGROUND);
    ask_advice(100, 0, 0);
    assert_int_equal(advice.pair.policy.jitter, BIDE_JITTER_DECORRELATED);
    conf_pair_init(&pair, BIDE_PRESET_SERVICE);
    pair.policy.attempts_max = 20;
    ask_advice(100, 0, 0);
    assert_int_equal(advice.pair.policy.attempts_max, 5);
    pair.policy.attempts_max = 1;
    ask_advice(100, 0, 0);
    assert_int_equal(advice.pair.policy.attempts_max, 3);
}

static void the_default_policy_is_what_is_advised(void **state)
{
    (void)state;
    conf_pair_init(&pair, BIDE_PRESET_SERVICE);
    ask_advice(100000, 0, 0);
    assert_memory_equal(&advice.pair.policy, &pair.policy, sizeof pair.policy);
    assert_memory_equal(&advice.pair.target, &pair.target, sizeof pair.target);
}

static void a_herd_beyond_all_clocks_is_advised_the_longest_window(void **state)
{
    (void)state;
    conf_pair_init(&pair, BIDE_PRESET_SERVICE);
    ask_advice(1000000000000, 0, 1);
    assert_int_equal(advice.remarks, 1);
    assert_non_null(strstr(advice.remark[0].text, "window is 11574d"));
}

static void a_herd_arrives_within_the_first_window(void **state)
{
    (void)state;
    conf_pair_init(&pair, BIDE_PRESET_SERVICE);
    ask_advice(1000, 0, 0);
    assert_near(advice.herd_per_second, 5000, 1e-6); /* 1000 in 200 ms */
    assert_int_equal(advice.remarks, 0);
    ask_advice(1000, 0, 60 * 1000 * 1000); /* 1000/s would need a second */
    assert_int_equal(advice.remarks, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(full_jitter_doubles_from_200_ms_and_means_half),
        cmocka_unit_test(the_wait_before_attempt_nine_is_25_6_s_and_the_next_is_capped),
        cmocka_unit_test(equal_jitter_waits_half_and_means_three_quarters),
        cmocka_unit_test(decorrelated_means_follow_their_recursion_below_the_cap),
        cmocka_unit_test(decorrelated_means_hold_however_far_the_cap_is),
        cmocka_unit_test(a_layer_that_never_retries_has_one_attempt),
        cmocka_unit_test(decorrelated_means_are_those_the_engine_draws_at_the_cap_too),
        cmocka_unit_test(decorrelated_without_room_spreads_below_its_base),
        cmocka_unit_test(every_draw_of_the_engine_lies_in_the_window_told),
        cmocka_unit_test(the_worst_case_of_paysetu_is_1_3_s),
        cmocka_unit_test(our_presets_take_as_long_as_they_say),
        cmocka_unit_test(more_attempts_than_are_listed_still_count),
        cmocka_unit_test(sums_of_the_largest_numbers_saturate),
        cmocka_unit_test(one_attempt_waits_for_nothing),
        cmocka_unit_test(attempts_bind_where_all_of_them_fit),
        cmocka_unit_test(a_deadline_may_bind_when_attempts_are_slow),
        cmocka_unit_test(a_deadline_binds_where_even_the_soonest_attempts_do_not_fit),
        cmocka_unit_test(retries_may_take_a_third_of_the_slo),
        cmocka_unit_test(a_deadline_bounds_what_retries_take),
        cmocka_unit_test(three_attempts_over_three_layers_are_27),
        cmocka_unit_test(layers_come_to_what_the_engine_makes_of_them),
        cmocka_unit_test(the_average_without_a_budget_is_the_known_series),
        cmocka_unit_test(a_budget_that_successes_fund_ends_retries_in_an_outage),
        cmocka_unit_test(the_trickle_counts_for_those_who_ask_seldom),
        cmocka_unit_test(a_budget_that_first_attempts_fund_pays_on_in_an_outage),
        cmocka_unit_test(other_budgets_bound_by_their_ratio),
        cmocka_unit_test(a_full_bucket_pays_for_as_many_retries_as_told),
        cmocka_unit_test(many_clients_get_full_jitter_and_very_many_a_budget_and_a_breaker),
        cmocka_unit_test(few_clients_keep_their_jitter_all_the_same),
        cmocka_unit_test(a_least_wait_is_kept_by_equal_jitter),
        cmocka_unit_test(background_jobs_get_decorrelated_jitter_and_others_3_to_5_attempts),
        cmocka_unit_test(the_default_policy_is_what_is_advised),
        cmocka_unit_test(a_herd_beyond_all_clocks_is_advised_the_longest_window),
        cmocka_unit_test(a_herd_arrives_within_the_first_window),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
