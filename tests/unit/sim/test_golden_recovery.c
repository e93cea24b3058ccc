/* test_golden_recovery.c - scenarios with servers that fail and recover, or do not: compared with queueing theory, with
 * an earlier independent simulator, and with sums computed by hand. */
#include "golden.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- mm1_check ---- */

/* M/M/1: the time in the system is exponential with mean 1 / (300 - 210) s. Its quantiles are -ln(1 - q) times the
 * mean. */
static void mm1_latency_matches_theory(void **state)
{
    static struct sim_result result;
    const double mean_ms = 1000.0 / 90;
    struct sim_scenario *mm1 = golden_read("mm1_check", NULL);
    golden_run(sim_scenario_row(mm1, 0), GOLDEN_SEED, &result);
    golden_near("mean", golden_figure(&result, "latency_mean_ms"), mean_ms, 0.02 * mean_ms);
    golden_near("p50", golden_figure(&result, "latency_p50_ms"), log(2) * mean_ms, 0.02 * log(2) * mean_ms);
    golden_near("p99", golden_figure(&result, "latency_p99_ms"), 51.17, 0.02 * 51.17);
    golden_near("calls", (double)result.calls, 2100000, 4 * sqrt(2100000));
    assert_int_equal(result.served, result.calls);
    assert_int_equal(result.attempts, result.calls);
    sim_result_free(&result);
    sim_scenario_free(mm1);
}

/* The mean is 1 / (mu - lambda) at every load. */
static void mm1_latency_matches_theory_at_other_loads(void **state)
{
    static const struct {
        const char *rate;
        double mean_ms;
    } loads[] = {{"clients.rate=30/s", 1000.0 / 270}, {"clients.rate=150/s", 1000.0 / 150}};
    for (size_t i = 0; i < COUNT(loads); i++) {
        const char *const set[] = {loads[i].rate, "scenario.duration=3000s", NULL};
        struct sim_scenario *mm1 = golden_read("mm1_check", set);
        double mean_ms = golden_mean(sim_scenario_row(mm1, 0), "latency_mean_ms", 1);
        golden_near(loads[i].rate, mean_ms, loads[i].mean_ms, 0.02 * loads[i].mean_ms);
        sim_scenario_free(mm1);
    }
}

/* ---- metastable ---- */

struct fate {
    const char *set; /* clients.rate */
    const char *label;
    bool recovers;
    double min_s, max_s;      /* time to recover: the order of magnitude of two runs */
    double goodput, attempts; /* per second, in steady state */
};

static void fate_is(const struct fate *want)
{
    static struct sim_result result;
    const char *const set[] = {"scenario.duration=500s", want->set, NULL};
    struct sim_scenario *cut = golden_read("metastable", set);
    golden_run(golden_row(cut, want->label), GOLDEN_SEED, &result);
    print_message("metastable %s %s: %s, %.0f s, goodput %.0f/s, attempts %.0f/s\n", want->set, want->label,
                  result.recovers ? "recovers" : "never recovers", golden_figure(&result, "recover_s"), result.goodput,
                  result.attempt_rate);
    assert_true(result.disturbed);
    assert_int_equal(result.recovers, want->recovers);
    if (want->recovers) {
        assert_true(golden_figure(&result, "recover_s") >= want->min_s);
        assert_true(golden_figure(&result, "recover_s") <= want->max_s);
    }
    golden_near("goodput", result.goodput, want->goodput, 0.05 * want->goodput + 10);
    golden_near("attempts a second", result.attempt_rate, want->attempts, 0.05 * want->attempts + 5);
    sim_result_free(&result);
    sim_scenario_free(cut);
}

/* A call that fails makes two attempts: the load is 2 lambda, the capacity 300. So the hidden capacity is 150. The
 * backlog of the outage and its retries is 20 lambda, which is worked off at 300 - 2 lambda. */
static void one_retry_halves_the_sustainable_load(void **state)
{
    static const struct fate fates[] = {
        {"clients.rate=100/s", "one", true, 5, 35, 100, 100},   {"clients.rate=120/s", "one", true, 15, 75, 120, 120},
        {"clients.rate=140/s", "one", true, 50, 210, 140, 140}, {"clients.rate=145/s", "one", true, 100, 450, 145, 145},
        {"clients.rate=150/s", "one", false, 0, 0, 0, 300},     {"clients.rate=155/s", "one", false, 0, 0, 0, 310},
        {"clients.rate=160/s", "one", false, 0, 0, 0, 320},     {"clients.rate=200/s", "one", false, 0, 0, 0, 400},
    };
    for (size_t i = 0; i < COUNT(fates); i++)
        fate_is(&fates[i]);
}

/* At 280/s: a budget of r per first attempt adds up to (1 + r) lambda, which must be below 300. */
static void budget_helps_if_small_or_earned_by_success(void **state)
{
    static const struct fate fates[] = {
        {"clients.rate=280/s", "none", true, 70, 280, 280, 280},
        {"clients.rate=280/s", "one", false, 0, 0, 0, 560},
        {"clients.rate=280/s", "three", false, 0, 0, 0, 1120},
        {"clients.rate=280/s", "first-10", false, 0, 0, 0, 308},
        {"clients.rate=280/s", "success-10", true, 70, 280, 280, 280},
    };
    for (size_t i = 0; i < COUNT(fates); i++)
        fate_is(&fates[i]);
}

/* (2800 + 10 + 0.05 * 2800) / (300 - 294) is 490 s. */
static void budget_of_five_percent_recovers_slowly(void **state)
{
    static struct sim_result result;
    struct sim_scenario *cut = golden_read("metastable", NULL);
    golden_run(golden_row(cut, "first-5"), GOLDEN_SEED, &result);
    assert_true(result.recovers);
    golden_near("recover_s", golden_figure(&result, "recover_s"), 500, 250);
    sim_result_free(&result);
    sim_scenario_free(cut);
}

static void server_that_drops_dead_work_recovers_at_once(void **state)
{
    static const struct fate fates[] = {
        {"clients.rate=280/s", "one-drop", true, 0, 25, 280, 281},
        {"clients.rate=280/s", "one-lifo", true, 0, 10, 280, 288},
        {"clients.rate=280/s", "three-lifo", true, 0, 10, 280, 290},
    };
    for (size_t i = 0; i < COUNT(fates); i++)
        fate_is(&fates[i]);
}

/* With three retries a third of the calls succeed for ever (102/s and 945/s in the model run). */
static void dropping_dead_work_is_not_enough_with_three_retries(void **state)
{
    static struct sim_result result;
    struct sim_scenario *cut = golden_read("metastable", (const char *const[]){"scenario.duration=500s", NULL});
    golden_run(golden_row(cut, "three-drop"), GOLDEN_SEED, &result);
    assert_false(result.recovers);
    golden_near("goodput", result.goodput, 102, 15);
    golden_near("attempts a second", result.attempt_rate, 945, 50);
    sim_result_free(&result);
    sim_scenario_free(cut);
}

/* ---- metastable_trigger ---- */

static bool comes_back(const struct sim_scenario *trigger, const char *label)
{
    bool recovers = golden(trigger, label, "recovers") > 0;
    print_message("metastable_trigger %s: %s\n", label, recovers ? "recovers" : "never recovers");
    return recovers;
}

/* OSDI'22, figure 5: a loss of 80 % of the capacity for 10 s is too much; 78 %, or 9 s, or two thirds of the load is
 * not. */
static void metastable_trigger_has_a_sharp_threshold(void **state)
{
    struct sim_scenario *trigger =
        golden_read("metastable_trigger", (const char *const[]){"scenario.duration=35s", NULL});
    assert_false(comes_back(trigger, "load-6200, outage.capacity=20%, outage.until=20s"));
    assert_true(comes_back(trigger, "load-6200, outage.capacity=22%, outage.until=20s"));
    assert_true(comes_back(trigger, "load-6200, outage.capacity=20%, outage.until=19s"));
    assert_true(comes_back(trigger, "load-4200, outage.capacity=20%, outage.until=20s"));
    sim_scenario_free(trigger);
}

/* A trigger that is larger in some respect and not smaller in the others is not easier to survive. */
static void larger_trigger_is_never_easier_to_survive(void **state)
{
    static const char *const at[2][2] = {
        {"outage.capacity=22%, outage.until=19s", "outage.capacity=22%, outage.until=20s"},
        {"outage.capacity=15%, outage.until=19s", "outage.capacity=15%, outage.until=20s"}};
    bool alive[2][2];
    struct sim_scenario *trigger =
        golden_read("metastable_trigger", (const char *const[]){"scenario.duration=35s", NULL});
    for (size_t deep = 0; deep < 2; deep++)
        for (size_t late = 0; late < 2; late++) {
            char label[SIM_LABEL_MAX];
            snprintf(label, sizeof label, "load-6200, %s", at[deep][late]);
            alive[deep][late] = comes_back(trigger, label);
        }
    assert_true(alive[0][0] >= alive[0][1] && alive[1][0] >= alive[1][1]);
    assert_true(alive[0][0] >= alive[1][0] && alive[0][1] >= alive[1][1]);
    assert_true(alive[0][0] && !alive[1][1]);
    sim_scenario_free(trigger);
}

/* ---- retry_after_fleet ---- */

/* The fullest 50 ms relative to the normal 500. */
static void hint_comes_to(const char *label, double want, double off)
{
    static const char *const set[] = {"scenario.duration=12s", NULL};
    struct sim_scenario *fleet = golden_read("retry_after_fleet", set);
    double times = golden_mean(golden_row(fleet, label), "peak_served_50ms", 2) / 500;
    print_message("retry_after_fleet %s: %.3f\n", label, times);
    golden_near(label, times, want, off * want);
    sim_scenario_free(fleet);
}

static void exact_hint_replays_the_wave_and_a_date_aligns_it(void **state)
{
    hint_comes_to("delta", 2.07, 0.05);
    hint_comes_to("date", 21, 0.05);
}

static void only_a_spread_of_seconds_flattens_the_wave(void **state)
{
    hint_comes_to("client-100", 1.24, 0.05);
    hint_comes_to("server-spread", 1.14, 0.05);
    /* A tenth of 5 s is half of the wave's own width of a second: the peak is unchanged. */
    hint_comes_to("client-10", 2.07, 0.05);
}

/* ---- halfopen_stampede ---- */

/* Returns the share below x of a sum of n exponential times of mean 1. */
static double erlang(unsigned n, double x)
{
    double term = exp(-x), sum = term;
    for (unsigned k = 1; k < n; k++)
        sum += term *= x / k;
    return 1 - sum;
}

/* A smaller version: 300 clients, 30,000 calls a second, and a server for 3000. */
#define FEW "clients.count=300", "service.time=333333ns"

/* Five calls of a client fail, 10 ms apart on average; 30 s later its next call is the probe: 30 s plus six such times,
 * so 55 % of all probes fall into [30.05, 30.10) s. Breakers count in ticks of 1.05 ms, rounded up. The published 577
 * of 1000 is within a tenth of that. */
static void breakers_opened_together_probe_together(void **state)
{
    static struct sim_result result;
    double share = erlang(6, 9.95) - erlang(6, 4.95);
    golden_near("share of the probes", share, 0.577, 0.0577);
    struct sim_scenario *stampede =
        golden_read("halfopen_stampede", (const char *const[]){FEW, "scenario.duration=31s", NULL});
    golden_run(golden_row(stampede, "jitter-0"), GOLDEN_SEED, &result);
    golden_near("probes", golden_figure(&result, "peak_probes_50ms"), 300 * share, 4 * sqrt(300 * share * (1 - share)));
    assert_int_equal(result.peak[2].probes.at_ns, 30050 * BIDE_MS);
    sim_result_free(&result);
    sim_scenario_free(stampede);
}

/* Openings, and openings by a failed probe, in eight runs of an independent program with the same server. */
struct stampede {
    const char *label;
    double min, max; /* probes in 50 ms */
    double openings, reopenings, deviation;
};

static void stampede_is(const struct stampede *want)
{
    static struct sim_result result;
    struct sim_scenario *stampede = golden_read("halfopen_stampede", (const char *const[]){FEW, NULL});
    golden_run(golden_row(stampede, want->label), GOLDEN_SEED, &result);
    double peak = golden_figure(&result, "peak_probes_50ms");
    print_message("halfopen_stampede %s: %.0f probes in 50 ms, %llu openings, %llu by a probe\n", want->label, peak,
                  (unsigned long long)result.openings, (unsigned long long)result.reopenings);
    assert_true(peak >= want->min && peak <= want->max);
    golden_near("openings", (double)result.openings, want->openings, 0.04 * want->openings);
    golden_near("openings by a probe", (double)result.reopenings, want->reopenings, 4 * want->deviation);
    sim_result_free(&result);
    sim_scenario_free(stampede);
}

/* Spread over 6 or 30 s there are 2.5 or 0.5 probes in 50 ms on average, and 7 or 4 in the fullest 50 ms. */
static void jitter_of_the_open_time_spreads_probes(void **state)
{
    stampede_is(&(struct stampede){"jitter-0", 130, 200, 830, 358, 10});
    stampede_is(&(struct stampede){"jitter-10", 5, 12, 813, 194, 7.5});
    stampede_is(&(struct stampede){"jitter-50", 3, 7, 718, 121, 7});
}

/* ---- breaker_outage ---- */

/* Results of a case; the label has the end of the outage. */
struct waited {
    double lost, reached; /* calls that gave up; requests that reached the dead server */
    double again;         /* failed probes */
};

static struct waited wait_out(const struct sim_scenario *outage, const char *name, const char *until, uint64_t seed)
{
    static struct sim_result result;
    char label[SIM_LABEL_MAX];
    snprintf(label, sizeof label, "%s%s%s", name, until == NULL ? "" : ", outage.until=", until == NULL ? "" : until);
    golden_run(golden_row(outage, label), seed, &result);
    struct waited found = {golden_figure(&result, "gave_up"), (double)result.refused, (double)result.reopenings};
    print_message("breaker_outage %s, seed %llu: lost %.0f, reached %.0f, probes failed %.0f\n", label,
                  (unsigned long long)seed, found.lost, found.reached, found.again);
    sim_result_free(&result);
    return found;
}

/* The worst of these runs have 0.44, 1.18, 1/5.3 and 1/18. */
static void shorter_open_time_loses_fewer_calls_for_little_load(void **state)
{
    static const char *const untils[] = {"65s", "90s", "180s"};
    struct sim_scenario *outage = golden_read("breaker_outage", NULL);
    for (uint64_t seed = GOLDEN_SEED; seed < GOLDEN_SEED + 6; seed++)
        for (size_t i = 0; i < COUNT(untils); i++) {
            struct waited none = wait_out(outage, "none", untils[i], seed);
            struct waited old = wait_out(outage, "old", untils[i], seed);
            struct waited bide = wait_out(outage, "bide", untils[i], seed);
            assert_true(none.lost < bide.lost && bide.lost < old.lost);
            assert_true(bide.lost - none.lost < 0.5 * (old.lost - none.lost));
            assert_true(old.reached <= bide.reached && bide.reached < 1.3 * old.reached);
            assert_true(i == 0 || bide.reached < none.reached / (i == 1 ? 4.5 : 15));
        }
    sim_scenario_free(outage);
}

/* All cases are alike until the first opening; then there is a request per opening, which fails and opens the breaker
 * again. */
static void dead_server_receives_one_probe_per_opening(void **state)
{
    static const char *const names[] = {"old", "bide", "max-5"};
    static const char *const untils[] = {"90s", "180s"};
    struct sim_scenario *outage = golden_read("breaker_outage", NULL);
    struct waited first = wait_out(outage, "old", "90s", GOLDEN_SEED);
    for (size_t i = 0; i < COUNT(names) * COUNT(untils); i++) {
        struct waited other = wait_out(outage, names[i % COUNT(names)], untils[i / COUNT(names)], GOLDEN_SEED);
        assert_true(other.reached - other.again == first.reached - first.again);
    }
    sim_scenario_free(outage);
}

/* The end of a long outage falls into an open time and the wait for the next call of a process, 0.1 s: of both together
 * E[X^2] / 2 E[X] remain on average, in which all calls are lost, plus 0.45 of the ramp. The standard deviation is that
 * of twenty processes in six runs: E[R^2] = E[X^3] / 3 E[X], neglecting the 0.1 s. */
static void long_outage_costs_half_of_the_longest_open_time(void **state)
{
    static const struct {
        const char *name;
        double open_max_s, ramp_s;
    } cases[] = {{"old", 60, 10}, {"bide", 10, 2}, {"max-5", 5, 2}};
    static const char *const set[] = {"outage.until=660s", "scenario.duration=800s", NULL};
    struct sim_scenario *outage = golden_read("breaker_outage", set);
    for (size_t i = 0; i < COUNT(cases); i++) {
        double open = cases[i].open_max_s, mean = open + 0.1, square = mean * mean + open * open / 12 + 0.01;
        double left = square / (2 * mean), deviation = sqrt(open * open * 1.25 / 3 - left * left);
        double lost = 0;
        for (uint64_t seed = GOLDEN_SEED; seed < GOLDEN_SEED + 6; seed++)
            lost +=
                (wait_out(outage, cases[i].name, NULL, seed).lost - wait_out(outage, "none", NULL, seed).lost) / 200;
        golden_near(cases[i].name, lost / 6, left + 0.45 * cases[i].ramp_s, 4 * deviation / sqrt(20 * 6));
    }
    sim_scenario_free(outage);
}

/* ---- herd_capacity ---- */

/* 1000 requests queue for a server of 100 a second, and each caller waits a second: 100 are served in time. The retries
 * queue behind 9 s of dead work every time. */
static void unbounded_queue_serves_no_call_after_the_first_second(void **state)
{
    static const char *const labels[] = {"lockstep", "jitter"};
    static struct sim_result result;
    struct sim_scenario *herd = golden_read("herd_capacity", NULL);
    for (size_t i = 0; i < COUNT(labels); i++) {
        golden_run(golden_row(herd, labels[i]), GOLDEN_SEED, &result);
        assert_int_equal(result.succeeded, 100);
        assert_int_equal(result.attempts, 1000 + 3 * 900);
        assert_int_equal(result.served, 3700);
        assert_int_equal(result.wasted, 3600);
        assert_int_equal(result.reason[BIDE_REASON_ATTEMPTS_SPENT], 900);
        sim_result_free(&result);
    }
    sim_scenario_free(herd);
}

/* With a bounded queue each round serves 100 more, and no work is wasted: m rounds serve 100 m. */
static void bounded_queue_serves_a_hundred_per_round(void **state)
{
    static struct sim_result result;
    struct sim_scenario *herd = golden_read("herd_capacity", NULL);
    golden_run(golden_row(herd, "lockstep-bounded"), GOLDEN_SEED, &result);
    assert_int_equal(result.succeeded, 400);
    assert_int_equal(result.attempts, 1000 + 900 + 800 + 700);
    assert_int_equal(result.refused, 900 + 800 + 700 + 600);
    assert_int_equal(result.wasted, 0);
    sim_result_free(&result);
    golden_run(golden_row(herd, "jitter-bounded"), GOLDEN_SEED, &result);
    assert_in_range(result.succeeded, 401, 1000);
    sim_result_free(&result);
    sim_scenario_free(herd);
}

/* A hint that spreads 900 calls over 20 s makes a load of 45 a second at a capacity of 100: every call succeeds with
 * one retry. */
static void spread_hint_serves_every_call(void **state)
{
    static struct sim_result result;
    struct sim_scenario *herd = golden_read("herd_capacity", NULL);
    golden_run(golden_row(herd, "hint-bounded"), GOLDEN_SEED, &result);
    assert_int_equal(result.succeeded, 1000);
    assert_int_equal(result.attempts, 1900);
    assert_int_equal(result.refused, 900);
    sim_result_free(&result);
    sim_scenario_free(herd);
}

/* 100 tokens and a tenth for each success limit the retries; the other calls give up immediately. */
static void budget_limits_the_retries_of_a_herd(void **state)
{
    static struct sim_result result;
    struct sim_scenario *herd = golden_read("herd_capacity", NULL);
    golden_run(golden_row(herd, "budget-bounded"), GOLDEN_SEED, &result);
    assert_in_range(result.retries, 100, 100 + result.succeeded / 10);
    assert_in_range(result.succeeded, 190, 200);
    assert_in_range(result.reason[BIDE_REASON_BUDGET_EMPTY], 800, 810);
    sim_result_free(&result);
    sim_scenario_free(herd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mm1_latency_matches_theory),
        cmocka_unit_test(mm1_latency_matches_theory_at_other_loads),
        cmocka_unit_test(one_retry_halves_the_sustainable_load),
        cmocka_unit_test(budget_helps_if_small_or_earned_by_success),
        cmocka_unit_test(budget_of_five_percent_recovers_slowly),
        cmocka_unit_test(server_that_drops_dead_work_recovers_at_once),
        cmocka_unit_test(dropping_dead_work_is_not_enough_with_three_retries),
        cmocka_unit_test(metastable_trigger_has_a_sharp_threshold),
        cmocka_unit_test(larger_trigger_is_never_easier_to_survive),
        cmocka_unit_test(exact_hint_replays_the_wave_and_a_date_aligns_it),
        cmocka_unit_test(only_a_spread_of_seconds_flattens_the_wave),
        cmocka_unit_test(breakers_opened_together_probe_together),
        cmocka_unit_test(jitter_of_the_open_time_spreads_probes),
        cmocka_unit_test(shorter_open_time_loses_fewer_calls_for_little_load),
        cmocka_unit_test(dead_server_receives_one_probe_per_opening),
        cmocka_unit_test(long_outage_costs_half_of_the_longest_open_time),
        cmocka_unit_test(unbounded_queue_serves_no_call_after_the_first_second),
        cmocka_unit_test(bounded_queue_serves_a_hundred_per_round),
        cmocka_unit_test(spread_hint_serves_every_call),
        cmocka_unit_test(budget_limits_the_retries_of_a_herd),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
