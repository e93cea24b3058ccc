/* test_explain.c - the numbers of `bide explain`: windows, means, sums, the binding limit, the rule of a third, the
 * load.
 *
 * Published numbers are recomputed here, also where the published number was wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include <bide/call.h>

#include <string.h>

#include "conf/conf.h"
#include "explain/advise.h"
#include "explain/amplify.h"
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

static void explain_paysetu(void)
{
    struct conf_policy paysetu;
    char errors[CONF_ERROR_MAX];
    if (!conf_find(&paysetu, NULL, "scenarios/seeds.conf#paysetu", errors))
        fail_msg("%s", errors);
    explain_schedule(&schedule, &paysetu.pair.policy);
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

static void full_jitter_doubles_from_200_ms_with_half_as_mean(void **state)
{
    (void)state;
    explain_preset(BIDE_PRESET_SERVICE);
    assert_int_equal(schedule.waits, 3);
    assert_window(0, 0, 200 * MS, 100 * MS);
    assert_window(1, 0, 400 * MS, 200 * MS);
    assert_window(2, 0, 800 * MS, 400 * MS);
}

/* 200 ms doubled seven times is 25.6 s: the cap of 30 s is reached by the next wait. */
static void wait_before_attempt_nine_is_25_6_s_and_the_next_is_capped(void **state)
{
    (void)state;
    conf_pair_init(&pair, BIDE_PRESET_SERVICE);
    pair.policy.attempts_max = 12;
    explain_schedule(&schedule, &pair.policy);
    assert_window(7, 0, 25600 * MS, 12800 * MS);
    assert_window(8, 0, 30 * S, 15 * S);
    assert_window(10, 0, 30 * S, 15 * S);
}

static void equal_jitter_waits_at_least_half_with_three_quarters_as_mean(void **state)
{
    (void)state;
    conf_pair_init(&pair, BIDE_PRESET_SERVICE);
    pair.policy.jitter = BIDE_JITTER_EQUAL;
    explain_schedule(&schedule, &pair.policy);
    assert_window(1, 200 * MS, 400 * MS, 300 * MS);
}

/* Below the cap the mean follows m' = (base + 3 m) / 2, starting at the base. */
static void decorrelated_means_follow_their_recursion_below_the_cap(void **state)
{
    (void)state;
    static const double means[] = {2, 3.5, 5.75, 9.125, 14.1875, 21.78125};
    conf_pair_init(&pair, BIDE_PRESET_BACKGROUND);
    pair.policy.cap_ns = BIDE_DURATION_MAX;
    pair.policy.attempts_max = 7;
    explain_schedule(&schedule, &pair.policy);
    for (uint32_t i = 0, evidence = 3; i < 6; i++, evidence *= 3) {
        assert_near((double)schedule.wait[i].mean_ns / S, means[i], means[i] * 0.03);
        assert_int_equal(schedule.wait[i].window.lo_ns, 1 * S);
        assert_int_equal(schedule.wait[i].window.hi_ns, evidence * S);
    }
}

static void layer_that_never_retries_has_one_attempt(void **state)
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

/* Returns the mean over many seeds of the waits that the engine draws. */
static double mean_of_drawn_waits(const struct bide_policy *policy, uint32_t wait)
{
    double sum = 0;
    int64_t waits[8];
    for (uint64_t seed = 1; seed <= 20000; seed++) {
        assert_true(explain_sample(policy, seed, waits, 8) > wait);
        sum += (double)waits[wait] / 20000;
    }
    return sum;
}

static void decorrelated_means_match_drawn_waits_at_the_cap(void **state)
{
    (void)state;
    static const enum bide_jitter kinds[] = {BIDE_JITTER_DECORRELATED, BIDE_JITTER_DECORRELATED_AWS};
    for (size_t i = 0; i < 2; i++) {
        conf_pair_init(&pair, BIDE_PRESET_BACKGROUND);
        pair.policy.jitter = kinds[i];
        pair.policy.cap_ns = 5 * S;
        pair.policy.call_timeout_ns = BIDE_NEVER;
        explain_schedule(&schedule, &pair.policy);
        for (uint32_t wait = 0; wait < 5; wait++)
            assert_near((double)schedule.wait[wait].mean_ns, mean_of_drawn_waits(&pair.policy, wait),
                        (double)schedule.wait[wait].mean_ns * 0.02);
    }
}

static void decorrelated_with_cap_equal_to_base_spreads_below_base(void **state)
{
    (void)state;
    conf_pair_init(&pair, BIDE_PRESET_BACKGROUND);
    pair.policy.cap_ns = pair.policy.base_ns;
    explain_schedule(&schedule, &pair.policy);
    assert_int_equal(schedule.wait[2].window.lo_ns, 0);
    assert_int_equal(schedule.wait[2].window.hi_ns, 1 * S);
    assert_near((double)schedule.wait[2].mean_ns, 0.5e9, 1e7);
}

static void every_drawn_wait_lies_in_its_window(void **state)
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

/* Four attempts of 150 ms and waits of 100, 200 and 400 ms are 1.3 s; 6.6 s would need every wait at the cap. */
static void worst_case_of_paysetu_is_1_3_s(void **state)
{
    (void)state;
    explain_paysetu();
    assert_int_equal(schedule.waits_worst_ns, 700 * MS);
    assert_int_equal(schedule.waits_mean_ns, 350 * MS);
    assert_int_equal(schedule.worst_without_deadline_ns, 1300 * MS);
    assert_int_equal(schedule.worst_ns, 1300 * MS);
    assert_int_equal(schedule.slow_mean_ns, 950 * MS);
    assert_int_equal(schedule.wait[2].latest_ns, 1150 * MS);
    assert_int_equal(schedule.wait[2].earliest_ns, 0);
}

static void worst_cases_of_presets_are_as_documented(void **state)
{
    (void)state;
    static const struct {
        enum bide_preset preset;
        int64_t worst_without_deadline_ns, worst_ns;
    } known[] = {
        {BIDE_PRESET_SERVICE, 41400 * MS, 41400 * MS},  {BIDE_PRESET_INTERACTIVE, 6300 * MS, 5 * S},
        {BIDE_PRESET_EXTERNAL, 127 * S, 127 * S},       {BIDE_PRESET_BACKGROUND, 600 * S, 600 * S},
        {BIDE_PRESET_SERVERLESS, 9300 * MS, 9300 * MS}, {BIDE_PRESET_PAYMENT, 15300 * MS, 15 * S},
        {BIDE_PRESET_COMMAND, BIDE_NEVER, BIDE_NEVER},  {BIDE_PRESET_TRANSFER, BIDE_NEVER, BIDE_NEVER},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        explain_preset(known[i].preset);
        assert_int_equal(schedule.worst_without_deadline_ns, known[i].worst_without_deadline_ns);
        assert_int_equal(schedule.worst_ns, known[i].worst_ns);
    }
}

static void waits_max_limits_the_sums_of_waits(void **state)
{
    (void)state;
    conf_pair_init(&pair, BIDE_PRESET_SERVICE); /* waits of 200, 400 and 800 ms at most, half of that on average */
    pair.policy.waits_max_ns = S;
    explain_schedule(&schedule, &pair.policy);
    assert_int_equal(schedule.waits_longest_ns, 1400 * MS);
    assert_int_equal(schedule.waits_worst_ns, S);
    assert_in_range(schedule.waits_mean_ns, 500 * MS, 700 * MS); /* calls that would wait longer give up */
    assert_int_equal(schedule.worst_ns, 41 * S);
    pair.policy.jitter = BIDE_JITTER_NONE; /* 200 ms and 400 ms fit into 700 ms, 800 ms more do not */
    pair.policy.waits_max_ns = 700 * MS;
    explain_schedule(&schedule, &pair.policy);
    assert_int_equal(schedule.waits_mean_ns, 600 * MS);
}

/* Attempts that fail at once, a second apart: at 0, 1 s, ... 9 s. */
static void a_deadline_limits_mean_waits_and_attempts(void **state)
{
    (void)state;
    conf_pair_init(&pair, BIDE_PRESET_SERVICE);
    pair.policy.attempts_max = 20;
    pair.policy.jitter = BIDE_JITTER_NONE;
    pair.policy.backoff = BIDE_BACKOFF_FIXED;
    pair.policy.base_ns = pair.policy.connect_timeout_ns = S;
    pair.policy.call_timeout_ns = 10 * S;
    explain_schedule(&schedule, &pair.policy);
    assert_true(explain_limits_bind(&schedule));
    assert_int_equal(schedule.waits_mean_ns, 9 * S);
    assert_int_equal(schedule.waits_worst_ns, 10 * S);
    assert_int_equal(explain_attempts_made(&pair.policy, 7), 10);
    struct explain_subject subject = {.pair = &pair, .layers = 1};
    struct explain_amplification load;
    explain_amplification_compute(&load, &subject);
    assert_near(load.load[2].plain, 10.0, 1e-9);
    assert_near(load.load[1].plain, 2.0 - 1.0 / 512, 1e-9); /* (1 - 0.5^10) / 0.5 */
}

/* Waits of 1 s, 2 s and, instead of 4 s, a last one that leaves the connect timeout of 1 s before the deadline. */
static void the_last_wait_adds_an_attempt(void **state)
{
    (void)state;
    conf_pair_init(&pair, BIDE_PRESET_SERVICE);
    pair.policy.attempts_max = 20;
    pair.policy.jitter = BIDE_JITTER_NONE;
    pair.policy.base_ns = pair.policy.connect_timeout_ns = S;
    pair.policy.call_timeout_ns = 6 * S;
    for (int adds = 0; adds < 2; adds++) {
        pair.policy.last_wait = adds;
        explain_schedule(&schedule, &pair.policy);
        assert_int_equal(schedule.attempts_best_case, 3 + adds);
        assert_int_equal(explain_attempts_made(&pair.policy, 7), 3 + adds);
    }
    assert_in_range(schedule.waits_mean_ns, 4400 * MS, 4600 * MS); /* 3 s and 1 s to 2 s */
}

static void unlisted_attempts_count_in_sums(void **state)
{
    (void)state;
    conf_pair_init(&pair, BIDE_PRESET_SERVICE);
    pair.policy.attempts_max = 2001;
    pair.policy.jitter = BIDE_JITTER_NONE;
    pair.policy.backoff = BIDE_BACKOFF_FIXED;
    pair.policy.attempt_timeout_ns = 1 * S;
    explain_schedule(&schedule, &pair.policy);
    assert_int_equal(schedule.waits, EXPLAIN_WAITS_MAX);
    assert_int_equal(schedule.unlisted, 1000);
    assert_false(schedule.underestimates);
    assert_int_equal(schedule.waits_longest_ns, 400 * S);
    assert_int_equal(schedule.waits_worst_ns, 60 * S); /* the deadline */
    assert_int_equal(schedule.worst_without_deadline_ns, 2401 * S);
    assert_int_equal(schedule.attempts_best_case, 300); /* at 0, 0.2 s, ... 59.8 s */
    assert_int_equal(schedule.attempts_worst_case, 50); /* at 0, 1.2 s, ... 58.8 s */
    pair.policy.call_timeout_ns = 300 * S;
    explain_schedule(&schedule, &pair.policy);
    assert_int_equal(schedule.attempts_best_case, 1500);
}

static void sums_saturate(void **state)
{
    (void)state;
    conf_pair_init(&pair, BIDE_PRESET_SERVICE);
    pair.policy.attempts_max = UINT32_MAX;
    pair.policy.base_ns = pair.policy.cap_ns = pair.policy.attempt_timeout_ns = BIDE_DURATION_MAX;
    pair.policy.call_timeout_ns = BIDE_NEVER;
    explain_schedule(&schedule, &pair.policy);
    assert_int_equal(schedule.worst_without_deadline_ns, BIDE_NEVER);
    assert_int_equal(schedule.attempts_worst_case, UINT32_MAX);
    pair.policy.backoff = BIDE_BACKOFF_LINEAR;
    pair.policy.base_ns = 1;
    explain_schedule(&schedule, &pair.policy);
    assert_true(schedule.underestimates);
}

static void single_attempt_has_no_wait(void **state)
{
    (void)state;
    conf_pair_init(&pair, BIDE_PRESET_SERVICE);
    pair.policy.attempts_max = 1;
    explain_schedule(&schedule, &pair.policy);
    assert_int_equal(schedule.waits, 0);
    assert_int_equal(schedule.waits_worst_ns, 0);
    assert_int_equal(schedule.worst_without_deadline_ns, 10 * S);
    assert_int_equal(schedule.attempts_best_case, 1);
}

/* ---- what binds ---- */

static void attempts_bind_when_all_fit_before_the_deadline(void **state)
{
    (void)state;
    explain_preset(BIDE_PRESET_SERVICE);
    assert_int_equal(explain_binds(&schedule), EXPLAIN_ATTEMPTS_BIND);
    explain_preset(BIDE_PRESET_COMMAND);
    assert_int_equal(explain_binds(&schedule), EXPLAIN_ATTEMPTS_BIND);
}

static void deadline_may_bind_when_attempts_are_slow(void **state)
{
    (void)state;
    conf_pair_init(&pair, BIDE_PRESET_SERVICE);
    pair.policy.call_timeout_ns = 15 * S;
    explain_schedule(&schedule, &pair.policy);
    assert_int_equal(explain_binds(&schedule), EXPLAIN_EITHER_BINDS);
    assert_int_equal(schedule.attempts_worst_case, 2);
    assert_int_equal(schedule.attempts_best_case, 4);
}

/* A wait that would end at the deadline is not started: 100 + 200 ms is too late for a deadline of 300 ms. */
static void deadline_binds_when_the_earliest_attempts_do_not_fit(void **state)
{
    (void)state;
    conf_pair_init(&pair, BIDE_PRESET_SERVICE);
    pair.policy.jitter = BIDE_JITTER_NONE;
    pair.policy.base_ns = 100 * MS;
    pair.policy.call_timeout_ns = 300 * MS;
    explain_schedule(&schedule, &pair.policy);
    assert_int_equal(explain_binds(&schedule), EXPLAIN_DEADLINE_BINDS);
    assert_int_equal(schedule.attempts_best_case, 2);
    int64_t waits[8];
    assert_int_equal(explain_sample(&pair.policy, 1, waits, 8), 1);
    pair.policy.call_timeout_ns = 300 * MS + 1;
    explain_schedule(&schedule, &pair.policy);
    assert_int_equal(schedule.attempts_best_case, 3);
}

/* ---- the rule of a third ---- */

static void retries_may_take_a_third_of_the_slo(void **state)
{
    (void)state;
    explain_paysetu();
    struct explain_slo slo = explain_slo(&schedule, 2 * S);
    assert_int_equal(slo.third_ns, 666666666);
    assert_int_equal(slo.retries_ns, 1150 * MS); /* all but the first attempt */
    assert_false(slo.fits);
    assert_int_equal(slo.attempts_that_fit, 3);
    assert_true(explain_slo(&schedule, 3450 * MS).fits);
    assert_false(explain_slo(&schedule, 3450 * MS - 1).fits);
}

static void deadline_bounds_the_time_of_retries(void **state)
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
    assert_int_equal(explain_requests_multiplied(3, 3), 27);
    assert_int_equal(explain_requests_multiplied(4, 3), 64);
    assert_int_equal(explain_requests_multiplied(3, 5), 243);
    assert_int_equal(explain_requests_multiplied(1, 64), 1);
    assert_int_equal(explain_requests_multiplied(2, 63), UINT64_C(1) << 63);
    assert_true(explain_requests_multiplied(2, 64) == UINT64_MAX);
    assert_true(explain_requests_multiplied(UINT32_MAX, 3) == UINT64_MAX);
}

/* Returns the requests at the innermost layer if all fail, by real calls that forward the attempt number. */
static uint64_t requests_at_the_bottom(const struct bide_policy *policy, uint32_t layers, uint32_t inbound)
{
    const struct bide_outcome failed = {.kind = BIDE_KIND_TRANSIENT, .evidence = BIDE_EVIDENCE_NOT_SENT};
    const struct bide_request request = {.safety = BIDE_SAFE, .seed = 1, .inbound.attempt = inbound};
    struct bide_call call;
    int64_t now_ns = 0;
    uint64_t reached = 0;
    if (layers == 0)
        return 1;
    struct bide_verdict v = bide_call_begin(&call, policy, BIDE_NO_TARGET, &request, now_ns);
    while (v.action == BIDE_ACTION_START) {
        reached += requests_at_the_bottom(policy, layers - 1, v.attempt > inbound ? v.attempt : inbound);
        v = bide_call_outcome(&call, v.attempt, &failed, now_ns);
        if (v.action == BIDE_ACTION_WAIT) {
            now_ns = v.wake_ns;
            v = bide_call_wake(&call, now_ns);
        }
    }
    return reached;
}

static void layer_formula_matches_real_calls(void **state)
{
    (void)state;
    for (uint32_t attempts = 1; attempts <= 4; attempts++)
        for (uint32_t layers = 1; layers <= 4; layers++)
            for (enum bide_layer_rule rule = BIDE_LAYER_OUTERMOST; rule <= BIDE_LAYER_NEVER; rule++) {
                conf_pair_init(&pair, BIDE_PRESET_SERVICE);
                pair.policy.attempts_max = attempts;
                pair.policy.layer = rule;
                assert_int_equal(explain_requests_by_layer_rule(&pair.policy, layers),
                                 requests_at_the_bottom(&pair.policy, layers, 0));
            }
    conf_pair_init(&pair, BIDE_PRESET_SERVICE);
    pair.policy.attempts_max = 3;
    assert_int_equal(explain_requests_by_layer_rule(&pair.policy, 3), 7);
}

/* ---- averages and budgets ---- */

static void mean_attempts_without_budget_is_a_geometric_series(void **state)
{
    (void)state;
    assert_near(explain_mean_attempts(4, 0.1), 1.111, 1e-9);
    assert_near(explain_mean_attempts(4, 0.5), 1.875, 1e-9);
    assert_near(explain_mean_attempts(4, 0.9), 3.439, 1e-9);
    assert_near(explain_mean_attempts(4, 1.0), 4.0, 1e-9);
    assert_near(explain_mean_attempts(27, 0.9), 9.42, 0.005);
    assert_near(explain_mean_attempts(27, 0.99), 23.8, 0.05);
    assert_near(explain_mean_attempts(UINT64_MAX, 0.5), 2.0, 1e-9);
}

static double mean_attempts(double p, int64_t rate_per_minute_milli)
{
    struct explain_subject subject = {.pair = &pair, .layers = 1, .rate_per_minute_milli = rate_per_minute_milli};
    return explain_mean_attempts_with_budget(&subject, p);
}

/* 1 / (1 - r (1 - p)) with r = 0.1: 1.10 at p = 0.1, no retries at total failure. */
static void budget_funded_by_successes_stops_retries_in_an_outage(void **state)
{
    (void)state;
    conf_pair_init(&pair, BIDE_PRESET_SERVICE);
    assert_near(mean_attempts(0.01, 0), 1.0101, 1e-4);
    assert_near(mean_attempts(0.1, 0), 1.0 / 0.91, 1e-9);
    assert_near(mean_attempts(0.5, 0), 1.0 / 0.95, 1e-9);
    assert_near(mean_attempts(0.9, 0), 1.0 / 0.99, 1e-9);
    assert_near(mean_attempts(1.0, 0), 1.0, 1e-9);
}

static void refill_matters_at_low_rates(void **state)
{
    (void)state;
    conf_pair_init(&pair, BIDE_PRESET_SERVICE);
    assert_near(mean_attempts(1.0, 60 * 100 * 1000), 1.0 + 1.0 / 6000, 1e-9); /* 100/s: one retry a minute */
    assert_near(mean_attempts(1.0, 1000), 2.0, 1e-9); /* 1/min: each request may be retried once */
    assert_near(mean_attempts(1.0, 100), 4.0, 1e-9);  /* never more than the attempts of the policy */
}

static void budget_funded_by_first_attempts_pays_in_an_outage(void **state)
{
    (void)state;
    conf_pair_init(&pair, BIDE_PRESET_SERVICE);
    pair.target.budget.earn_success_milli = pair.target.budget.refill_per_minute_milli = 0;
    pair.target.budget.earn_first_milli = 100;
    assert_near(mean_attempts(0.5, 0), 1.1, 1e-9);
    assert_near(mean_attempts(1.0, 0), 1.1, 1e-9);
}

static void window_and_concurrency_budgets_bound_by_ratio(void **state)
{
    (void)state;
    conf_pair_init(&pair, BIDE_PRESET_SRE);
    assert_near(mean_attempts(1.0, 0), 1.1, 1e-9);
    assert_near(mean_attempts(1.0, 4000), 3.0, 1e-9); /* 8 requests in the window of 2 min: below the volume of 10 */
    assert_near(mean_attempts(1.0, 5000), 1.1, 1e-9);
    conf_pair_init(&pair, BIDE_PRESET_FINAGLE);
    assert_near(mean_attempts(1.0, 60 * 100 * 1000), 1.3, 1e-9); /* 20 %, and a reserve of 10 per second, at 100/s */
    conf_pair_init(&pair, BIDE_PRESET_ENVOY);
    assert_near(mean_attempts(1.0, 0), 1.25, 1e-9);
    conf_pair_init(&pair, BIDE_PRESET_CURL);
    assert_near(mean_attempts(1.0, 0), 4.0, 1e-9);
    conf_pair_init(&pair, BIDE_PRESET_GRPC);
    assert_near(mean_attempts(1.0, 0), 1.0, 1e-9);
    conf_pair_init(&pair, BIDE_PRESET_SERVICE);
    pair.target.observe = BIDE_GATE_BUDGET;
    assert_near(mean_attempts(1.0, 0), 4.0, 1e-9);
}

/* Returns the number of retries until a real target refuses because its budget is empty. */
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
        if (bide_call_outcome(&call, 1, &failed, S).action != BIDE_ACTION_WAIT)
            return paid;
    }
}

static void full_bucket_pays_for_the_reported_burst(void **state)
{
    (void)state;
    static const enum bide_preset presets[] = {BIDE_PRESET_SERVICE, BIDE_PRESET_AWS_2_0, BIDE_PRESET_AWS_2_1,
                                               BIDE_PRESET_GRPC};
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++) {
        conf_pair_init(&pair, presets[i]);
        assert_int_equal(explain_budget_burst(&pair.target.budget), retries_paid_at_once());
    }
    conf_pair_init(&pair, BIDE_PRESET_CURL);
    assert_int_equal(explain_budget_burst(&pair.target.budget), EXPLAIN_UNLIMITED);
}

/* ---- advice ---- */

static struct explain_advice advice;

static void advise(uint64_t clients, int64_t min_wait_ns, int64_t rate_per_minute_milli)
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

static void advice_for_many_clients_is_full_jitter_then_budget_and_breaker(void **state)
{
    (void)state;
    conf_pair_init(&pair, BIDE_PRESET_CURL);
    advise(1000, 0, 0);
    assert_int_equal(advice.pair.policy.jitter, BIDE_JITTER_FULL);
    assert_int_equal(advice.pair.target.budget.kind, BIDE_BUDGET_NONE);
    advise(1001, 0, 0);
    assert_int_equal(advice.pair.target.budget.kind, BIDE_BUDGET_TOKENS);
    assert_int_equal(advice.pair.target.breaker.kind, BIDE_BREAKER_BY_TIME);
}

static void advice_for_few_clients_keeps_jitter(void **state)
{
    (void)state;
    conf_pair_init(&pair, BIDE_PRESET_CURL);
    advise(9, 0, 0);
    assert_int_equal(advice.pair.policy.jitter, BIDE_JITTER_FULL);
    assert_int_equal(advice.remarks, 1);
}

static void advice_for_a_minimum_wait_is_equal_jitter(void **state)
{
    (void)state;
    conf_pair_init(&pair, BIDE_PRESET_SERVICE);
    advise(100, 500 * MS, 0);
    assert_int_equal(advice.pair.policy.jitter, BIDE_JITTER_EQUAL);
    explain_schedule(&schedule, &advice.pair.policy);
    assert_int_equal(schedule.wait[0].window.lo_ns, 500 * MS);
    advise(100, 60 * S, 0); /* above the cap, which is raised */
    explain_schedule(&schedule, &advice.pair.policy);
    assert_int_equal(schedule.wait[0].window.lo_ns, 60 * S);
}

static void advice_for_background_jobs_is_decorrelated_jitter(void **state)
{
    (void)state;
    conf_pair_init(&pair, BIDE_PRESET_BACKGROUND);
    advise(100, 0, 0);
    assert_int_equal(advice.pair.policy.jitter, BIDE_JITTER_DECORRELATED);
    conf_pair_init(&pair, BIDE_PRESET_SERVICE);
    pair.policy.attempts_max = 20;
    advise(100, 0, 0);
    assert_int_equal(advice.pair.policy.attempts_max, 5);
    pair.policy.attempts_max = 1;
    advise(100, 0, 0);
    assert_int_equal(advice.pair.policy.attempts_max, 3);
}

static void default_policy_needs_no_advice(void **state)
{
    (void)state;
    conf_pair_init(&pair, BIDE_PRESET_SERVICE);
    advise(100000, 0, 0);
    assert_memory_equal(&advice.pair.policy, &pair.policy, sizeof pair.policy);
    assert_memory_equal(&advice.pair.target, &pair.target, sizeof pair.target);
}

static void advice_for_a_huge_herd_is_the_longest_window(void **state)
{
    (void)state;
    conf_pair_init(&pair, BIDE_PRESET_SERVICE);
    advise(1000000000000, 0, 1);
    assert_int_equal(advice.remarks, 1);
    assert_non_null(strstr(advice.remark[0].text, "window is at least 11574d"));
}

static void herd_arrives_within_the_first_window(void **state)
{
    (void)state;
    conf_pair_init(&pair, BIDE_PRESET_SERVICE);
    advise(1000, 0, 0);
    assert_near(advice.herd_per_second, 5000, 1e-6); /* 1000 in 200 ms */
    assert_int_equal(advice.remarks, 0);
    advise(1000, 0, 60 * 1000 * 1000); /* at 1000/s the window must be 1 s wide */
    assert_int_equal(advice.remarks, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(full_jitter_doubles_from_200_ms_with_half_as_mean),
        cmocka_unit_test(wait_before_attempt_nine_is_25_6_s_and_the_next_is_capped),
        cmocka_unit_test(equal_jitter_waits_at_least_half_with_three_quarters_as_mean),
        cmocka_unit_test(decorrelated_means_follow_their_recursion_below_the_cap),
        cmocka_unit_test(layer_that_never_retries_has_one_attempt),
        cmocka_unit_test(decorrelated_means_match_drawn_waits_at_the_cap),
        cmocka_unit_test(decorrelated_with_cap_equal_to_base_spreads_below_base),
        cmocka_unit_test(every_drawn_wait_lies_in_its_window),
        cmocka_unit_test(worst_case_of_paysetu_is_1_3_s),
        cmocka_unit_test(worst_cases_of_presets_are_as_documented),
        cmocka_unit_test(waits_max_limits_the_sums_of_waits),
        cmocka_unit_test(a_deadline_limits_mean_waits_and_attempts),
        cmocka_unit_test(the_last_wait_adds_an_attempt),
        cmocka_unit_test(unlisted_attempts_count_in_sums),
        cmocka_unit_test(sums_saturate),
        cmocka_unit_test(single_attempt_has_no_wait),
        cmocka_unit_test(attempts_bind_when_all_fit_before_the_deadline),
        cmocka_unit_test(deadline_may_bind_when_attempts_are_slow),
        cmocka_unit_test(deadline_binds_when_the_earliest_attempts_do_not_fit),
        cmocka_unit_test(retries_may_take_a_third_of_the_slo),
        cmocka_unit_test(deadline_bounds_the_time_of_retries),
        cmocka_unit_test(three_attempts_over_three_layers_are_27),
        cmocka_unit_test(layer_formula_matches_real_calls),
        cmocka_unit_test(mean_attempts_without_budget_is_a_geometric_series),
        cmocka_unit_test(budget_funded_by_successes_stops_retries_in_an_outage),
        cmocka_unit_test(refill_matters_at_low_rates),
        cmocka_unit_test(budget_funded_by_first_attempts_pays_in_an_outage),
        cmocka_unit_test(window_and_concurrency_budgets_bound_by_ratio),
        cmocka_unit_test(full_bucket_pays_for_the_reported_burst),
        cmocka_unit_test(advice_for_many_clients_is_full_jitter_then_budget_and_breaker),
        cmocka_unit_test(advice_for_few_clients_keeps_jitter),
        cmocka_unit_test(advice_for_a_minimum_wait_is_equal_jitter),
        cmocka_unit_test(advice_for_background_jobs_is_decorrelated_jitter),
        cmocka_unit_test(default_policy_needs_no_advice),
        cmocka_unit_test(advice_for_a_huge_herd_is_the_longest_window),
        cmocka_unit_test(herd_arrives_within_the_first_window),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
