/* test_golden_storms.c - the storm scenarios compared with known values: shares of ten million callers, means of 200
 * runs of an independent program, and sums computed by hand. */
#include "golden.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define SEEDS        50

/* ---- means over seeds ---- */

struct spread {
    double mean, deviation;
};

/* Computes mean and standard deviation of several metrics of a row over many seeds. */
static void over_seeds(const struct sim_row *row, const char *const *metric, size_t metrics, uint32_t seeds,
                       struct spread *spread)
{
    static struct sim_result result;
    memset(spread, 0, metrics * sizeof *spread);
    for (uint32_t seed = 0; seed < seeds; seed++) {
        golden_run(row, GOLDEN_SEED + seed, &result);
        for (size_t i = 0; i < metrics; i++) {
            double value = golden_figure(&result, metric[i]);
            spread[i].mean += value / seeds;
            spread[i].deviation += value * value / seeds;
        }
        sim_result_free(&result);
    }
    for (size_t i = 0; i < metrics; i++)
        spread[i].deviation = sqrt(fmax(0, spread[i].deviation - spread[i].mean * spread[i].mean));
}

/* Returns the tolerance for two means of `runs` and `seeds` runs with this deviation: four standard errors, plus the
 * rounding of the printed mean. */
static double four_errors(double deviation, uint32_t runs, uint32_t seeds, double rounded)
{
    return 4 * deviation * sqrt(1.0 / runs + 1.0 / seeds) + rounded;
}

/* ---- storm_herd ---- */

#define HERD 100000

/* Shares of a herd of ten million in the fullest bin of 1, 10 and 50 ms (storm_sync.csv). */
struct shares {
    const char *label;
    double retries[3], served[3], attempts, gave_up;
};

static const struct shares shares[] = {
    {"none", {1, 1, 1}, {1, 1, 1}, 3, 0},
    {"fixed", {1, 1, 1}, {1, 1, 1}, 4, 0},
    {"equal", {0.020072, 0.200109, 1}, {0.010056, 0.100069, 0.500046}, 3.24996, 0},
    {"full", {0.015654, 0.153542, 0.706367}, {0.007021, 0.068121, 0.290652}, 3.90586, 0.000255},
    {"decorrelated", {0.006555, 0.064689, 0.312344}, {0.006555, 0.064689, 0.312344}, 2.5, 0},
    {"gauss-4", {0.028408, 0.173968, 0.638326}, {0.006235, 0.059729, 0.246489}, 3.91103, 0.000102},
    {"gauss-6", {0.024294, 0.229990, 0.585232}, {0.005068, 0.049262, 0.233636}, 3.93499, 0},
    {"gauss-10", {0.040017, 0.341659, 0.512658}, {0.008700, 0.086019, 0.361645}, 3.98784, 0},
};

static const char *const retries_in[] = {"peak_retries_1ms", "peak_retries_10ms", "peak_retries_50ms"};
static const char *const served_in[] = {"peak_served_1ms", "peak_served_10ms", "peak_served_50ms"};

/* Checks a share counted over HERD callers: four standard deviations of a binomial. */
static void share_is(const char *label, const char *what, double count, double share)
{
    char name[128];
    snprintf(name, sizeof name, "%s: share in %s", label, what);
    golden_near(name, count / HERD, share, 4 * sqrt(share * (1 - share) / HERD) + 1e-9);
}

static void shares_are(const struct sim_row *row, const struct shares *want)
{
    static struct sim_result result;
    golden_run(row, GOLDEN_SEED, &result);
    for (size_t i = 0; i < 3; i++) {
        share_is(want->label, retries_in[i], golden_figure(&result, retries_in[i]), want->retries[i]);
        share_is(want->label, served_in[i], golden_figure(&result, served_in[i]), want->served[i]);
    }
    share_is(want->label, "gave_up", (double)result.gave_up, want->gave_up);
    /* The standard deviation of a caller's attempts is below 1. */
    golden_near(want->label, (double)result.attempts / HERD, want->attempts, 4 / sqrt(HERD));
    sim_result_free(&result);
}

static void large_herd_has_the_shares_of_ten_million_callers(void **state)
{
    struct sim_scenario *herd = golden_read("storm_herd", (const char *const[]){"clients.herd.count=100000", NULL});
    assert_int_equal(sim_scenario_rows(herd), COUNT(shares));
    for (size_t i = 0; i < COUNT(shares); i++)
        shares_are(golden_row(herd, shares[i].label), &shares[i]);
    sim_scenario_free(herd);
}

/* Without jitter the run is deterministic: attempts at 100 and 300 (100 + 200) ms; the outage's last instant is 200
 * ms. */
static void herd_without_jitter_stays_in_lockstep(void **state)
{
    static struct sim_result result;
    struct sim_scenario *herd = golden_read("storm_herd", NULL);
    golden_run(golden_row(herd, "none"), GOLDEN_SEED, &result);
    assert_int_equal(result.attempts, 3000);
    assert_int_equal(result.peak[0].served.max, 1000);
    assert_int_equal(result.peak[0].served.at_ns, 300 * BIDE_MS);
    assert_int_equal(result.ended_ns, 300 * BIDE_MS);
    sim_result_free(&result);
    golden_run(golden_row(herd, "fixed"), GOLDEN_SEED, &result);
    assert_int_equal(result.attempts, 4000);
    assert_int_equal(result.peak[0].served.at_ns, 300 * BIDE_MS);
    sim_result_free(&result);
    sim_scenario_free(herd);
}

/* Means of the fullest bin over 200 runs of 1000 callers, as printed. */
static void thousand_callers_match_the_published_means(void **state)
{
    static const struct {
        const char *label;
        double want[7]; /* attempts; retries in 1, 10, 50 ms; served likewise */
    } table[] = {
        {"equal", {3250, 30.8, 216, 1000, 18.0, 111.5, 499}},
        {"full", {3904, 23.6, 159, 706, 12.2, 71.5, 291}},
        {"decorrelated", {2501, 13.3, 72.8, 313, 13.1, 72.7, 313}},
        {"gauss-4", {3910, 31.1, 180, 640, 11.0, 61.9, 247}},
        {"gauss-6", {3934, 32.8, 238, 587, 11.0, 57.4, 238}},
        {"gauss-10", {3988, 48.6, 352, 521, 15.5, 93.6, 372}},
    };
    static const char *const metric[] = {"attempts",          "peak_retries_1ms", "peak_retries_10ms",
                                         "peak_retries_50ms", "peak_served_1ms",  "peak_served_10ms",
                                         "peak_served_50ms"};
    struct sim_scenario *herd = golden_read("storm_herd", NULL);
    for (size_t i = 0; i < COUNT(table); i++) {
        struct spread spread[COUNT(metric)];
        over_seeds(golden_row(herd, table[i].label), metric, COUNT(metric), SEEDS, spread);
        for (size_t m = 0; m < COUNT(metric); m++) {
            char name[96];
            snprintf(name, sizeof name, "%s: mean %s", table[i].label, metric[m]);
            golden_near(name, spread[m].mean, table[i].want[m], four_errors(spread[m].deviation, 200, SEEDS, 0.51));
        }
    }
    sim_scenario_free(herd);
}

/* With a background of 1000 a second, 50 in each 50 ms are normal. The peak in multiples of that. */
static void no_jitter_comes_near_the_claimed_peak_of_1_2(void **state)
{
    static const struct {
        const char *label;
        double times;
    } table[] = {{"none", 22.0},        {"equal", 12.5},  {"full", 8.5},
                 {"decorrelated", 8.2}, {"gauss-6", 6.3}, {"gauss-10", 8.8}};
    static const char *const metric[] = {"peak_served_50ms"};
    struct sim_scenario *herd = golden_read("storm_herd", (const char *const[]){"clients.background.until=1s", NULL});
    for (size_t i = 0; i < COUNT(table); i++) {
        struct spread peak;
        over_seeds(golden_row(herd, table[i].label), metric, 1, SEEDS, &peak);
        golden_near(table[i].label, peak.mean / 50, table[i].times,
                    four_errors(peak.deviation / 50, 200, SEEDS, 0.051));
        assert_true(peak.mean / 50 > 6); /* "uniform 1.2x" needs a herd that is spread over 5 s */
    }
    sim_scenario_free(herd);
}

/* The width law: with N callers, a normal load of r a second and waits of W, the peak is at least 1 + N / (W r). At W =
 * 5 s that is 1.2, and a hint of 5 s with full jitter reaches it. */
static void only_a_spread_of_seconds_flattens_the_herd(void **state)
{
    static const char *const set[] = {"clients.background.until=12s",
                                      "scenario.duration=12s",
                                      "policy.base=5s",
                                      "policy.attempts=2",
                                      "outage.until=0",
                                      NULL};
    static const char *const metric[] = {"peak_served_50ms"};
    struct sim_scenario *herd = golden_read("storm_herd", set);
    struct spread peak;
    over_seeds(golden_row(herd, "full"), metric, 1, 20, &peak);
    /* 50 and 10 in each bin; the largest of a hundred Poisson numbers of mean 10 is about 18.5 */
    assert_true(peak.mean / 50 > 1.2);
    assert_true(peak.mean / 50 < 1.45);
    sim_scenario_free(herd);
}

/* ---- storm_seed003 ---- */

struct seed003 {
    const char *label;
    double rps, deviation; /* peak served in 50 ms, times 20: mean and standard deviation of 200 runs */
    double arrivals;       /* the same for arrivals; 0: unknown */
};

static const char *const peaks[] = {"peak_served_50ms", "peak_arrivals_50ms"};

static void peaks_are(const char *const *set, const struct seed003 *want, size_t rows, double failing)
{
    struct sim_scenario *storm = golden_read("storm_seed003", set);
    golden_near("callers that fail first", golden(storm, "no_retry", "refused"), failing, 0);
    for (size_t i = 0; i < rows; i++) {
        struct spread peak[2];
        over_seeds(golden_row(storm, want[i].label), peaks, 2, SEEDS, peak);
        double deviation = fmax(20 * peak[0].deviation, want[i].deviation);
        golden_near(want[i].label, 20 * peak[0].mean, want[i].rps, four_errors(deviation, 200, SEEDS, 0.51));
        deviation = fmax(20 * peak[1].deviation, want[i].deviation);
        if (want[i].arrivals > 0)
            golden_near(want[i].label, 20 * peak[1].mean, want[i].arrivals, four_errors(deviation, 200, SEEDS, 0.51));
    }
    sim_scenario_free(storm);
}

/* 1000 callers 2 ms apart end at 2.000 s, the outage's first instant: it affects one of them. */
static void every_strategy_gives_500_as_written(void **state)
{
    static const struct seed003 want[] = {{"no_retry", 500, 0, 0}, {"none", 500, 0, 0},         {"equal", 500, 0, 0},
                                          {"full", 500, 0, 0},     {"decorrelated", 500, 0, 0}, {"gauss-6", 500, 0, 0}};
    peaks_are((const char *const[]){"clients.calls=1000", NULL}, want, COUNT(want), 1);
}

static void tick_of_2_1_ms_gives_480(void **state)
{
    static const struct seed003 want[] = {{"no_retry", 480, 0, 0}, {"none", 480, 0, 0},         {"equal", 486, 18, 0},
                                          {"full", 480, 0, 0},     {"decorrelated", 480, 0, 0}, {"gauss-6", 481, 6, 0}};
    peaks_are((const char *const[]){"clients.calls=1000", "clients.from=2.1ms", "clients.rate=476.190476/s", NULL},
              want, COUNT(want), 48);
}

static void tick_of_2_26_ms_reverses_the_order(void **state)
{
    static const struct seed003 want[] = {{"no_retry", 460, 0, 0},      {"none", 880, 0, 0},
                                          {"equal", 1111, 78, 0},       {"full", 1161, 87, 0},
                                          {"decorrelated", 723, 65, 0}, {"gauss-6", 1264, 84, 0}};
    peaks_are((const char *const[]){"clients.calls=1000", "clients.from=2.26ms", "clients.rate=442.477876/s", NULL},
              want, COUNT(want), 89);
}

static void full_jitter_has_a_higher_peak_than_none_as_intended(void **state)
{
    static const struct seed003 want[] = {{"no_retry", 500, 0, 500},        {"none", 1020, 0, 1020},
                                          {"equal", 1283, 61, 1294},        {"full", 1313, 90, 1430},
                                          {"decorrelated", 1041, 60, 1042}, {"gauss-6", 1416, 84, 1468}};
    peaks_are(NULL, want, COUNT(want), 101);
}

/* All requests that can fail, served in the same bin as all new requests: (101 + 26) * 20 = 2540. So not 4380. */
static void no_seed_comes_near_4380(void **state)
{
    static struct sim_result result;
    struct sim_scenario *storm = golden_read("storm_seed003", NULL);
    for (size_t row = 0; row < sim_scenario_rows(storm); row++)
        for (uint64_t seed = 1000; seed < 1020; seed++) {
            golden_run(sim_scenario_row(storm, row), seed, &result);
            assert_in_range(20 * result.peak[2].served.max, 500, 2540);
            sim_result_free(&result);
        }
    sim_scenario_free(storm);
}

/* ---- storm_cricstream ---- */

#define VIEWERS  1000000.0
#define PERIOD_S 1.39
#define BLIP_S   0.1

static double failing(void)
{
    return VIEWERS * BLIP_S / PERIOD_S;
}

/* Only the part of the period around the blip. */
static const char *const around[] = {"clients.from=450ms", "clients.until=650ms", "clients.calls=0", NULL};

static void blip_affects_viewers_times_blip_over_period(void **state)
{
    static struct sim_result result;
    struct sim_scenario *cricket = golden_read("storm_cricstream", around);
    golden_run(golden_row(cricket, "hint"), GOLDEN_SEED, &result);
    golden_near("calls", (double)result.calls, 0.2 * VIEWERS / PERIOD_S, 1);
    golden_near("failing", (double)result.refused, failing(), 1);
    golden_near("retries", (double)result.retries, failing(), 1);
    assert_int_equal(result.succeeded, result.calls);
    /* the wave returns unchanged 4 s later */
    golden_near("peak", (double)result.peak[2].retries.max, failing() / 2, 1);
    assert_int_equal(result.peak[2].retries.at_ns / BIDE_S, 4);
    sim_result_free(&result);
    sim_scenario_free(cricket);
}

/* Waits of 0 to 100 ms: half of the retries fall into the same blip of 100 ms, and are the last attempts. */
static void short_jitter_with_two_attempts_loses_half_of_the_calls(void **state)
{
    static struct sim_result result;
    struct sim_scenario *cricket = golden_read("storm_cricstream", around);
    golden_run(golden_row(cricket, "full"), GOLDEN_SEED, &result);
    golden_near("lost", (double)result.gave_up, failing() / 2, 4 * sqrt(failing() / 4));
    sim_result_free(&result);
    golden_run(golden_row(cricket, "lockstep"), GOLDEN_SEED, &result);
    assert_int_equal(result.gave_up, 0);
    sim_result_free(&result);
    sim_scenario_free(cricket);
}

/* Spread over W = 4 s, 1/80 of the retries fall into each 50 ms; the largest of 80 such numbers is at most five
 * standard deviations above. */
static void spread_hint_flattens_the_wave(void **state)
{
    struct sim_scenario *cricket = golden_read("storm_cricstream", around);
    double peak = golden(cricket, "hint-spread", "peak_retries_50ms"), plain = failing() * 0.05 / 4;
    assert_true(peak > plain);
    assert_true(peak < plain + 5 * sqrt(plain));
    sim_scenario_free(cricket);
}

/* The published 1.8 million retries of 25 million viewers are V D / P with P = 1.39 s. A tenth of the blip is enough
 * for the test. */
static void law_holds_for_25_million_viewers(void **state)
{
    static const char *const set[] = {"clients.rate=17985612/s", "clients.from=499ms", "clients.until=511ms",
                                      "clients.calls=0",         "outage.until=510ms", NULL};
    struct sim_scenario *cricket = golden_read("storm_cricstream", set);
    golden_near("failing", golden(cricket, "hint-spread", "refused"), 179856, 1);
    sim_scenario_free(cricket);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_herd_has_the_shares_of_ten_million_callers),
        cmocka_unit_test(herd_without_jitter_stays_in_lockstep),
        cmocka_unit_test(thousand_callers_match_the_published_means),
        cmocka_unit_test(no_jitter_comes_near_the_claimed_peak_of_1_2),
        cmocka_unit_test(only_a_spread_of_seconds_flattens_the_herd),
        cmocka_unit_test(every_strategy_gives_500_as_written),
        cmocka_unit_test(tick_of_2_1_ms_gives_480),
        cmocka_unit_test(tick_of_2_26_ms_reverses_the_order),
        cmocka_unit_test(full_jitter_has_a_higher_peak_than_none_as_intended),
        cmocka_unit_test(no_seed_comes_near_4380),
        cmocka_unit_test(blip_affects_viewers_times_blip_over_period),
        cmocka_unit_test(short_jitter_with_two_attempts_loses_half_of_the_calls),
        cmocka_unit_test(spread_hint_flattens_the_wave),
        cmocka_unit_test(law_holds_for_25_million_viewers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
