/* test_golden_queues.c - scenarios about waiting: hedge_tail, collapse_concurrency, drain, pool.
 *
 * Where a closed form exists it is written out here, and the simulation is compared with it within the interval that
 * the sample size allows; the published number is then compared with the closed form within its stated tolerance. */
#include "golden.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))

/* ---- hedge_tail ---- */

/* Returns the share of leaf requests that take longer, log-log-linear between the points. */
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

/* With a second attempt after `hedge_ms` (0: none) both attempts must be slow. */
static double longer_hedged(double ms, double hedge_ms)
{
    return hedge_ms > 0 && ms > hedge_ms ? longer(ms) * longer(ms - hedge_ms) : longer(ms);
}

/* Returns the latency that a share `rank` of users stays below: the slowest of 1000 leaf requests. */
static double users_quantile(double rank, double hedge_ms)
{
    double share = -expm1(log(rank) / 1000), low = 1, high = 20000;
    for (int i = 0; i < 200; i++) {
        double middle = (low + high) / 2;
        *(longer_hedged(middle, hedge_ms) > share ? &low : &high) = middle;
    }
    return low;
}

static void published_tails_follow_from_the_leaf_distribution(void **state)
{
    golden_near("p99.9, no hedge", users_quantile(0.999, 0), 1802, 1802 * 0.03);
    golden_near("p99.9, 5 ms", users_quantile(0.999, 5), 73, 73 * 0.03);
    golden_near("p99.9, 10 ms", users_quantile(0.999, 10), 74.2, 74.2 * 0.03);
    golden_near("p99.9, 20 ms", users_quantile(0.999, 20), 78, 78 * 0.03);
    golden_near("p99, no hedge", users_quantile(0.99, 0), 616, 616 * 0.03);
    golden_near("p50, no hedge", users_quantile(0.5, 0), 82, 82 * 0.03);
    golden_near("p50, 10 ms", users_quantile(0.5, 10), 15, 15 * 0.03);
}

/* The n-th of the ordered samples lies within four standard deviations of its rank, plus four ranks where only a few
 * samples are beyond it. */
static void check_quantile(const struct sim_result *result, const char *metric, double rank, double hedge_ms)
{
    double users = golden_figure(result, "users"), off = (4 * sqrt(rank * (1 - rank) * users) + 4) / users;
    double value = golden_figure(result, metric), min = users_quantile(rank - off, hedge_ms);
    double max = rank + off < 1 ? users_quantile(rank + off, hedge_ms) : 20000;
    if (!(value >= min * (1 - 1.0 / 256) && value <= max * (1 + 1.0 / 256)))
        fail_msg("%s is %.4g ms with a hedge after %g ms; expected %.4g to %.4g (seed %llu)", metric, value, hedge_ms,
                 min, max, (unsigned long long)GOLDEN_SEED);
}

static const char *const fewer_users[] = {"clients.calls=300", NULL};

static void check_hedge(const char *label, double hedge_ms)
{
    static struct sim_result result;
    struct sim_scenario *scenario = golden_read("hedge_tail", fewer_users);
    golden_run(golden_row(scenario, label), GOLDEN_SEED, &result);
    assert_int_equal(result.users, 300);
    check_quantile(&result, "latency_p50_ms", 0.5, hedge_ms);
    check_quantile(&result, "latency_p90_ms", 0.9, hedge_ms);
    check_quantile(&result, "latency_p99_ms", 0.99, hedge_ms);
    check_quantile(&result, "latency_p999_ms", 0.999, hedge_ms);
    double extra = hedge_ms > 0 ? longer(hedge_ms) : 0;
    golden_near(label, golden_figure(&result, "hedge_share"), extra, 4 * sqrt(extra / 300000));
    golden_near(label, golden_figure(&result, "amplification"), 1 + extra, 4 * sqrt(extra / 300000));
    sim_result_free(&result);
    sim_scenario_free(scenario);
}

static void hedge_after_10_ms_cuts_the_tail_for_2_percent_more_requests(void **state)
{
    check_hedge("no-hedge", 0);
    check_hedge("hedge-10ms", 10);
}

static void early_hedge_costs_more_than_a_late_hedge(void **state)
{
    check_hedge("hedge-5ms", 5);
    check_hedge("hedge-20ms", 20);
}

/* Busy leaves: hedging, meant to cut the tail, doubles a load that then exceeds the capacity. A budget of 2 % prevents
 * that. */
static void hedging_worsens_overload_unless_a_budget_limits_it(void **state)
{
    struct sim_scenario *scenario = golden_read("hedge_tail", (const char *const[]){"clients.calls=200", NULL});
    double alone_ms = golden(scenario, "busy-no-hedge", "latency_p50_ms");
    assert_true(golden(scenario, "busy-hedge-10ms", "amplification") > 1.5);
    assert_true(golden(scenario, "busy-hedge-10ms", "latency_p50_ms") > 3 * alone_ms);
    assert_true(golden(scenario, "busy-hedge-budget", "amplification") < 1.03);
    assert_true(golden(scenario, "busy-hedge-budget", "latency_p50_ms") < 1.2 * alone_ms);
    sim_scenario_free(scenario);
}

/* ---- collapse_concurrency ---- */

/* Counts the seeds with a final goodput of about 0. */
static uint32_t collapsed(const struct sim_scenario *scenario, const char *label, uint32_t seeds)
{
    static struct sim_result result;
    uint32_t count = 0;
    for (uint32_t i = 0; i < seeds; i++) {
        golden_run(golden_row(scenario, label), GOLDEN_SEED + i, &result);
        count += golden_figure(&result, "goodput") < 1;
        sim_result_free(&result);
    }
    return count;
}

/* Published: 8 of 10. A run collapses with a probability of about 0.7 (an independent program: 28 of 40), so 28 of 40
 * seeds do, within four standard deviations of 2.9. */
static void backoff_with_jitter_survives_a_short_spike(void **state)
{
    struct sim_scenario *scenario = golden_read("collapse_concurrency", NULL);
    golden_near("collapsed at once", collapsed(scenario, "spike-at-once", 40), 28, 11);
    golden_near("collapsed with backoff", collapsed(scenario, "spike-backoff", 10), 0, 0);
    golden_near("collapsed with a budget", collapsed(scenario, "spike-budget", 10), 0, 0);
    golden_near("goodput", golden(scenario, "spike-backoff", "goodput"), 40, 4 * sqrt(40.0 / 20));
    sim_scenario_free(scenario);
}

static void only_calls_without_retries_survive_a_long_ramp(void **state)
{
    struct sim_scenario *scenario = golden_read("collapse_concurrency", NULL);
    golden_near("collapsed at once", collapsed(scenario, "ramp-at-once", 10), 10, 0);
    golden_near("collapsed with backoff", collapsed(scenario, "ramp-backoff", 10), 10, 0);
    golden_near("collapsed without retries", collapsed(scenario, "ramp-once", 10), 0, 0);
    sim_scenario_free(scenario);
}

/* ---- drain ---- */

/* Returns the requests served per second between two instants. */
static double served_rate(const struct sim_result *result, int64_t from_ns, int64_t until_ns)
{
    uint64_t served = 0;
    for (int64_t i = from_ns / result->bin_ns; i < until_ns / result->bin_ns; i++)
        served += result->point[i].served;
    return (double)served * (double)BIDE_S / (double)(until_ns - from_ns);
}

struct drained {
    double amplification, latency_max_ms, served_rate;
};

static struct drained drain(const struct sim_scenario *scenario, const char *label)
{
    static struct sim_result result;
    golden_run(golden_row(scenario, label), GOLDEN_SEED, &result);
    struct drained found = {golden_figure(&result, "amplification"), golden_figure(&result, "latency_max_ms"),
                            served_rate(&result, 20 * BIDE_S, 70 * BIDE_S)};
    golden_near(label, golden_figure(&result, "success"), 1, 0);
    sim_result_free(&result);
    return found;
}

/* An overloaded server serves at its capacity with every backoff: 100 a second, 5000 in 50 seconds, within four
 * standard deviations of 71. */
static void backoff_does_not_raise_the_capacity_in_an_open_loop(void **state)
{
    struct sim_scenario *scenario = golden_read("drain", NULL);
    golden_near("fixed", drain(scenario, "open-fixed").served_rate, 100, 6);
    golden_near("linear", drain(scenario, "open-linear").served_rate, 100, 6);
    golden_near("exponential", drain(scenario, "open-exponential").served_rate, 100, 8);
    sim_scenario_free(scenario);
}

static void linear_backoff_drains_sooner_than_exponential_with_more_attempts(void **state)
{
    struct sim_scenario *scenario = golden_read("drain", NULL);
    struct drained linear = drain(scenario, "open-linear"), exponential = drain(scenario, "open-exponential");
    assert_true(exponential.latency_max_ms > 2 * linear.latency_max_ms);
    assert_true(linear.amplification > 1.5 * exponential.amplification);
    linear = drain(scenario, "closed-linear");
    exponential = drain(scenario, "closed-exponential");
    assert_true(exponential.latency_max_ms > 2 * linear.latency_max_ms);
    sim_scenario_free(scenario);
}

/* ---- pool ---- */

/* Erlang B: the share of requests that find all servers busy, for this offered load. */
static double erlang_b(unsigned places, double offered)
{
    double share = 1;
    for (unsigned i = 1; i <= places; i++)
        share = offered * share / (i + offered * share);
    return share;
}

/* Erlang C: the share of requests that must wait. */
static double erlang_c(unsigned places, double offered)
{
    double b = erlang_b(places, offered);
    return b / (1 - offered / places * (1 - b));
}

/* 100 calls a second of 100 ms are an offered load of ten. */
static void in_flight_limit_refuses_as_erlang_b(void **state)
{
    static const char *const steady[] = {"scenario.duration=400s", "outage.capacity=99.9%",
                                         "service.time=exponential 100ms", NULL};
    struct sim_scenario *scenario = golden_read("pool", steady);
    golden_near("refused", golden(scenario, "once-limited", "error"), erlang_b(10, 10), 0.015);
    sim_scenario_free(scenario);
}

/* 80 ms: eight of ten connections are busy, and a call waits 16.4 ms for a connection on average. */
static void calls_wait_for_connections_as_erlang_c(void **state)
{
    static const char *const steady[] = {"scenario.duration=1000s", "outage.capacity=99.9%",
                                         "service.time=exponential 80ms", NULL};
    struct sim_scenario *scenario = golden_read("pool", steady);
    double want_ms = 80 + 1000 * erlang_c(10, 8) / (10 / 0.08 - 100);
    golden_near("mean", golden(scenario, "once", "latency_mean_ms"), want_ms, want_ms * 0.03);
    sim_scenario_free(scenario);
}

/* For 20 s of 80 an attempt takes 500 ms: an offered load of 50. */
static void in_flight_limit_replaces_waiting_by_a_known_loss(void **state)
{
    struct sim_scenario *scenario = golden_read("pool", NULL);
    double lost = (60 * erlang_b(10, 5) + 20 * erlang_b(10, 50)) / 80;
    golden_near("lost", golden(scenario, "once-limited", "error"), lost, 0.02);
    assert_true(golden(scenario, "once-limited", "latency_p99_ms") < 1500);
    assert_true(golden(scenario, "retries-limited", "wasted") < golden(scenario, "retries", "wasted") / 10);
    sim_scenario_free(scenario);
}

/* 80 calls a second pile up while the service is slow. A call that begins four seconds into that waits longest: the 320
 * calls before it leave at 20 a second, in 16 s. */
static void without_in_flight_limit_a_call_waits_16_s_for_a_connection(void **state)
{
    struct sim_scenario *scenario = golden_read("pool", NULL);
    golden_near("p99", golden(scenario, "once", "latency_p99_ms"), 16000, 2000);
    sim_scenario_free(scenario);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_tails_follow_from_the_leaf_distribution),
        cmocka_unit_test(hedge_after_10_ms_cuts_the_tail_for_2_percent_more_requests),
        cmocka_unit_test(early_hedge_costs_more_than_a_late_hedge),
        cmocka_unit_test(hedging_worsens_overload_unless_a_budget_limits_it),
        cmocka_unit_test(backoff_with_jitter_survives_a_short_spike),
        cmocka_unit_test(only_calls_without_retries_survive_a_long_ramp),
        cmocka_unit_test(backoff_does_not_raise_the_capacity_in_an_open_loop),
        cmocka_unit_test(linear_backoff_drains_sooner_than_exponential_with_more_attempts),
        cmocka_unit_test(in_flight_limit_refuses_as_erlang_b),
        cmocka_unit_test(calls_wait_for_connections_as_erlang_c),
        cmocka_unit_test(in_flight_limit_replaces_waiting_by_a_known_loss),
        cmocka_unit_test(without_in_flight_limit_a_call_waits_16_s_for_a_connection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
