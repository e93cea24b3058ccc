/* test_golden_occ.c - many writers of a row under optimistic concurrency: calls and time for each backoff, compared
 * with an independent program.
 *
 * The golden values are means and standard deviations over 1000 repetitions of a C program that was written from a
 * description of the model, with another random number generator. A repetition is a seed. The tolerance is four
 * standard errors of the difference; with BIDE_SLOW_TESTS=1 all rows have 100 repetitions, otherwise rows with many
 * clients have fewer. */
#include "golden.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))

struct golden_occ {
    const char *policy;
    unsigned clients;
    struct {
        double mean, deviation;
    } calls, time_ms;
};

static const struct golden_occ golden_occ[] = {
    {"none", 10, {50.767, 4.165}, {379.542, 34.937}},
    {"exponential", 10, {50.953, 4.221}, {3509.389, 1338.528}},
    {"decorrelated", 10, {37.581, 2.309}, {435.357, 84.979}},
    {"equal", 10, {42.501, 2.615}, {733.026, 198.122}},
    {"full", 10, {38.933, 2.361}, {459.589, 103.359}},
    {"none", 50, {690.900, 17.325}, {1142.313, 42.139}},
    {"exponential", 50, {624.098, 29.254}, {36380.578, 3254.644}},
    {"decorrelated", 50, {375.570, 12.366}, {2190.659, 504.821}},
    {"equal", 50, {347.066, 5.813}, {4225.189, 524.719}},
    {"full", 50, {332.508, 4.835}, {2872.048, 551.923}},
    {"none", 100, {2422.548, 31.774}, {2027.813, 45.617}},
    {"exponential", 100, {1853.351, 57.119}, {63321.570, 3756.103}},
    {"decorrelated", 100, {1002.472, 29.478}, {4574.896, 686.761}},
    {"equal", 100, {812.664, 7.453}, {6643.038, 644.139}},
    {"full", 100, {796.018, 6.888}, {4899.207, 502.359}},
    {"none", 150, {5140.586, 49.856}, {2877.781, 44.541}},
    {"exponential", 150, {3548.956, 100.075}, {85852.163, 4020.873}},
    {"decorrelated", 150, {1759.896, 46.391}, {6577.266, 812.016}},
    {"equal", 150, {1323.732, 10.188}, {8256.000, 635.279}},
    {"full", 150, {1318.242, 9.409}, {6407.074, 534.205}},
    {"none", 190, {8003.032, 65.991}, {3538.762, 45.719}},
    {"exponential", 190, {5175.909, 122.860}, {101497.756, 4390.467}},
    {"decorrelated", 190, {2433.927, 59.626}, {7855.740, 814.811}},
    {"equal", 190, {1760.014, 12.199}, {9426.619, 636.184}},
    {"full", 190, {1772.308, 12.091}, {7450.299, 528.336}},
};

#define GOLDEN_REPETITIONS 1000.0

static uint32_t repetitions(unsigned clients)
{
    const char *value = getenv("BIDE_SLOW_TESTS");
    if (clients <= 50 || (value != NULL && strcmp(value, "1") == 0))
        return 100;
    return clients <= 100 ? 20 : 5;
}

static double tolerance(double deviation, uint32_t seeds)
{
    return 4 * sqrt(deviation * deviation / seeds + deviation * deviation / GOLDEN_REPETITIONS);
}

static void check(const struct sim_scenario *scenario, const struct golden_occ *want)
{
    static struct sim_result result;
    char label[SIM_LABEL_MAX];
    uint32_t seeds = repetitions(want->clients);
    double calls = 0, time_ms = 0;
    (void)snprintf(label, sizeof label, "%s, clients.count=%u", want->policy, want->clients);
    for (uint32_t i = 0; i < seeds; i++) {
        golden_run(golden_row(scenario, label), GOLDEN_SEED + i, &result);
        calls += golden_figure(&result, "arrivals") / seeds;
        time_ms += golden_figure(&result, "duration_s") * 1000 / seeds;
        golden_near(label, golden_figure(&result, "success"), 1, 0);
        sim_result_free(&result);
    }
    golden_near(label, calls, want->calls.mean, tolerance(want->calls.deviation, seeds));
    golden_near(label, time_ms, want->time_ms.mean, tolerance(want->time_ms.deviation, seeds));
}

static void calls_and_time_match_an_independent_program(void **state)
{
    struct sim_scenario *scenario = golden_read("occ", NULL);
    for (size_t i = 0; i < COUNT(golden_occ); i++)
        check(scenario, &golden_occ[i]);
    sim_scenario_free(scenario);
}

/* The main conclusion, from 5 seeds of 100 clients. */
static void lockstep_is_slowest_and_no_backoff_fastest_and_most_wasteful(void **state)
{
    struct sim_scenario *scenario = golden_read("occ", (const char *const[]){"clients.count=100", NULL});
    double none = golden_mean(golden_row(scenario, "none"), "duration_s", 5);
    double in_step = golden_mean(golden_row(scenario, "exponential"), "duration_s", 5);
    double full = golden_mean(golden_row(scenario, "full"), "duration_s", 5);
    assert_true(in_step > 8 * full);
    assert_true(in_step > 10 * none);
    assert_true(none < full);
    assert_true(golden_mean(golden_row(scenario, "none"), "arrivals", 5) >
                2 * golden_mean(golden_row(scenario, "full"), "arrivals", 5));
    sim_scenario_free(scenario);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_and_time_match_an_independent_program),
        cmocka_unit_test(lockstep_is_slowest_and_no_backoff_fastest_and_most_wasteful),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
