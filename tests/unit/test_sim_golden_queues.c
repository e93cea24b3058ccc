/* test_sim_golden_queues.c - scenarios about waiting: hedge_tail, collapse_concurrency, drain, pool.
 *
 * Where a closed form exists it is written out here, and the simulation is held against it with the interval that so
 * many samples allow; the published figure is then held against the closed form with the tolerance it is given with. */
#include "sim_golden.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))

/* ---- hedge_tail ---- */

/* The share of leaves that take longer, log-log-linear between the points. */
static double longer(double ms)
{
    static const struct {
        double ms, share;
    } point[] = {{1, 1}, {10, 0.02}, {69, 1e-3}, {1800, 1e-6}, {20000, 1e-9}};
    if (ms <= 1)
        return 1;
    for (size_t i = 1; i < COUNT(point); i++)
        if (ms <= point[i].ms) {
            double slope = log(point[i].share / point[i - 1].share) / log(point[i].ms / point[i - 1].ms);
            return point[i - 1].share * exp(slope * log(ms / point[i - 1].ms));
        }
    return 0;
}

/* With a second attempt after `hedge_ms` (0: none) both must be slow. */
static double longer_hedged(double ms, double hedge_ms)
{
    return hedge_ms > 0 && ms > hedge_ms ? longer(ms) * longer(ms - hedge_ms) : longer(ms);
}

/* What a share `rank` of users stays below: the slowest of 1000 leaves. */
static double users_quantile(double rank, double hedge_ms)
{
    double share = -expm1(log(rank) / 1000), low = 1, high = 20000;
    for (int i = 0; i < 200; i++) {
        double middle = (low + high) / 2;
        *(longer_hedged(middle, hedge_ms) > share ? &low : &high) = middle;
    }
    return low;
}

static void the_published_tails_follow_from_the_leaf_s_within_three_percent(void **state)
{
    golden_near("p99.9, no hedge", users_quantile(0.999, 0), 1802, 1802 * 0.03);
    golden_near("p99.9, 5 ms", users_quantile(0.999, 5), 73, 73 * 0.03);
    golden_near("p99.9, 10 ms", users_quantile(0.999, 10), 74.2, 74.2 * 0.03);
    golden_near("p99.9, 20 ms", users_quantile(0.999, 20), 78, 78 * 0.03);
    golden_near("p99, no hedge", users_quantile(0.99, 0), 616, 616 * 0.03);
    golden_near("p50, no hedge", users_quantile(0.5, 0), 82, 82 * 0.03);
    golden_near("p50, 10 ms", users_quantile(0.5, 10), 15, 15 * 0.03);
}

/* The n-th of so many ordered samples lies within four standard deviations of its rank. */
static void check_quantile(const struct sim_result *result, const char *metric, double rank, double hedge_ms)
{
    double users = golden_figure(result, "users"), off = 4 * sqrt(rank * (1 - rank) / users);
    double value = golden_figure(result, metric), least = users_quantile(rank - off, hedge_ms);
    double most = rank + off < 1 ? users_quantile(rank + off, hedge_ms) : 20000;
    if (!(value >= least * (1 - 1.0 / 256) && value <= most * (1 + 1.0 / 256)))
        fail_msg("%s is %.4g ms with a hedge after %g ms; expected %.4g to %.4g (seed %llu)", metric, value, hedge_ms,
                 least, most, (unsigned long long)GOLDEN_SEED);
}

static const char *const fewer_users[] = {"clients.calls=500000", NULL};

static void check_hedge(const char *label, double hedge_ms)
{
    static struct sim_result result;
    struct sim_scenario *scenario = golden_read("hedge_tail", fewer_users);
    golden_run(golden_row(scenario, label), GOLDEN_SEED, &result);
    assert_int_equal(result.users, 500);
    check_quantile(&result, "latency_p50_ms", 0.5, hedge_ms);
    check_quantile(&result, "latency_p90_ms", 0.9, hedge_ms);
    check_quantile(&result, "latency_p99_ms", 0.99, hedge_ms);
    check_quantile(&result, "latency_p999_ms", 0.999, hedge_ms);
    double extra = hedge_ms > 0 ? longer(hedge_ms) : 0;
    golden_near(label, golden_figure(&result, "hedge_share"), extra, 4 * sqrt(extra / 500000));
    golden_near(label, golden_figure(&result, "amplification"), 1 + extra, 4 * sqrt(extra / 500000));
    sim_result_free(&result);
    sim_scenario_free(scenario);
}

static void a_hedge_after_10_ms_cuts_the_tail_for_a_fiftieth_more_requests(void **state)
{
    check_hedge("no-hedge", 0);
    check_hedge("hedge-10ms", 10);
}

static void an_early_hedge_costs_more_and_a_late_one_less(void **state)
{
    check_hedge("hedge-5ms", 5);
    check_hedge("hedge-20ms", 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_published_tails_follow_from_the_leaf_s_within_three_percent),
        cmocka_unit_test(a_hedge_after_10_ms_cuts_the_tail_for_a_fiftieth_more_requests),
        cmocka_unit_test(an_early_hedge_costs_more_and_a_late_one_less),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
