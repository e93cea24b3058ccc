/* test_latency.c - the latency histogram: never below the true quantile, at most a quarter above it. And the usual
 * latency: an estimate near the median that one slow success does not move far.
 *
 * The histogram is precise between 131 us and 4.3 s; faster and slower attempts fall into its first and last bin. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include <stdlib.h>

#include "core/gates.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))
#define US           BIDE_US
#define MS           BIDE_MS
#define S            BIDE_S
#define LOWEST       (INT64_C(1) << 17)
#define SLOWEST      (INT64_C(7) << 29) /* beginning of the last bin */
#define ENOUGH       20

static struct bide_target target;

static void reset_histogram(void)
{
    struct bide_target_config config;
    bide_target_config_init(&config, BIDE_PRESET_SERVICE);
    config.latency = true;
    assert_int_equal(bide_target_init(&target, &config, 0, NULL), BIDE_OK);
}

static void record_samples(uint32_t times, int64_t latency_ns)
{
    for (uint32_t i = 0; i < times; i++)
        core_latency_record(&target, latency_ns);
}

static int64_t quantile(uint32_t permille)
{
    return bide_target_latency_get(&target, permille);
}

static void assert_tight_bound(int64_t bound_ns, int64_t true_ns)
{
    assert_true(bound_ns >= true_ns);
    assert_true(bound_ns <= true_ns + true_ns / 4);
}

/* -- minimum number of samples ------------------------------------------------------------------------------------- */

static void fewer_than_twenty_samples_give_no_quantile(void **state)
{
    reset_histogram();
    for (int seen = 0; seen < ENOUGH; seen++) {
        assert_int_equal(quantile(500), 0);
        record_samples(1, 10 * MS);
    }
    assert_tight_bound(quantile(500), 10 * MS);
}

/* -- the bound ----------------------------------------------------------------------------------------------------- */

static void a_single_latency_is_bounded_within_a_quarter_over_the_whole_range(void **state)
{
    for (int64_t latency = LOWEST; latency < SLOWEST; latency += latency / 50 + 1) {
        reset_histogram();
        record_samples(ENOUGH, latency);
        assert_tight_bound(quantile(1), latency);
        assert_tight_bound(quantile(999), latency);
    }
}

static void the_bins_end_at_the_documented_durations(void **state)
{
    static const struct {
        int64_t latency_ns, bound_ns;
    } rows[] = {
        {0, 5 * LOWEST / 4},
        {1 * US, 5 * LOWEST / 4},
        {LOWEST, 5 * LOWEST / 4},
        {5 * LOWEST / 4 - 1, 5 * LOWEST / 4},
        {5 * LOWEST / 4, 6 * LOWEST / 4},
        {6 * LOWEST / 4, 7 * LOWEST / 4},
        {2 * LOWEST - 1, 2 * LOWEST},
        {2 * LOWEST, 5 * LOWEST / 2},
        {SLOWEST - 1, SLOWEST},
        {SLOWEST, BIDE_NEVER}, /* the last bin also contains everything slower: no bound */
        {3600 * S, BIDE_NEVER},
        {INT64_MAX, BIDE_NEVER},
        {-1, 5 * LOWEST / 4}, /* two clocks: counts as the fastest */
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        reset_histogram();
        record_samples(ENOUGH, rows[i].latency_ns);
        assert_int_equal(quantile(500), rows[i].bound_ns);
    }
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The k-th smallest of n, where k is the least with k >= n * permille / 1000. */
static int64_t true_quantile(const int64_t *sorted, uint32_t n, uint32_t permille)
{
    uint32_t k = (n * permille + 999) / 1000;
    return sorted[k - 1];
}

static void every_quantile_of_any_sample_is_bounded_within_a_quarter(void **state)
{
    static const uint32_t permilles[] = {1, 10, 250, 500, 900, 950, 990, 999, 1000};
    for (uint64_t seed = 0; seed < 100; seed++) {
        int64_t sample[1000];
        uint32_t n = 20 + (uint32_t)seed * 9;
        reset_histogram();
        for (uint32_t i = 0; i < n; i++) {
            struct core_random_key chance = {seed, i, CORE_FOR_HINT};
            uint64_t octave = core_uniform(chance, 13);
            chance.purpose = CORE_FOR_HOLD_OFF;
            sample[i] = (LOWEST << octave) + (int64_t)core_uniform(chance, ((uint64_t)LOWEST << octave) - 1);
            record_samples(1, sample[i]);
        }
        qsort(sample, n, sizeof *sample, by_size);
        for (size_t i = 0; i < COUNT(permilles); i++)
            assert_tight_bound(quantile(permilles[i]), true_quantile(sample, n, permilles[i]));
    }
}

static void a_slow_tail_shows_only_in_the_quantiles_that_reach_it(void **state)
{
    reset_histogram();
    record_samples(95, 10 * MS);
    record_samples(5, 2 * S);
    assert_tight_bound(quantile(500), 10 * MS);
    assert_tight_bound(quantile(950), 10 * MS);
    assert_tight_bound(quantile(951), 2 * S);
    assert_tight_bound(quantile(999), 2 * S);
}

static void a_quantile_above_all_samples_has_no_bound(void **state)
{
    reset_histogram();
    record_samples(ENOUGH, 10 * MS);
    assert_tight_bound(quantile(1000), 10 * MS);
    assert_int_equal(quantile(1001), BIDE_NEVER);
    assert_int_equal(quantile(UINT32_MAX), BIDE_NEVER);
}

/* -- ageing -------------------------------------------------------------------------------------------------------- */

static void old_samples_weigh_less_after_each_halving(void **state)
{
    reset_histogram();
    record_samples(1023, 10 * MS);
    assert_tight_bound(quantile(500), 10 * MS);
    record_samples(600, 1 * S); /* the first sample halves the counts */
    assert_tight_bound(quantile(400), 10 * MS);
    assert_tight_bound(quantile(500), 1 * S);
    record_samples(4000, 1 * S);
    assert_tight_bound(quantile(50), 1 * S);
}

static void millions_of_samples_do_not_overflow_a_counter(void **state)
{
    reset_histogram();
    for (int i = 0; i < 300; i++) {
        record_samples(900, 10 * MS);
        record_samples(100, 1 * S);
        assert_true(quantile(500) < 13 * MS);
    }
    assert_tight_bound(quantile(700), 10 * MS);
    assert_tight_bound(quantile(999), 1 * S);
}

static void a_lost_race_to_halve_leaves_it_to_the_next_sample(void **state)
{
    reset_histogram();
    record_samples(1023, 10 * MS);
    core_cas_failures = 2;
    record_samples(2, 10 * MS);
    assert_int_equal(core_cas_failures, 0);
    assert_tight_bound(quantile(999), 10 * MS);
    record_samples(1, 10 * MS); /* halves 1026 to 513 */
    record_samples(511, 1 * S); /* 1024 again: 256 and 255 are left */
    assert_tight_bound(quantile(500), 10 * MS);
    assert_tight_bound(quantile(502), 1 * S);
}

/* -- the usual latency --------------------------------------------------------------------------------------------- */

static int64_t usual(void)
{
    return (int64_t)core_load(&target.usual_ns);
}

/* Samples of this latency, a second apart. */
static void sample_usual(uint32_t times, int64_t latency_ns)
{
    static int64_t now_ns = 0;
    for (uint32_t i = 0; i < times; i++)
        core_usual_sample(&target, latency_ns, now_ns += S);
}

static void the_first_success_is_the_usual_latency(void **state)
{
    static const int64_t latencies[] = {1, 2 * MS, 5 * S, BIDE_DURATION_MAX};
    for (size_t i = 0; i < COUNT(latencies); i++) {
        reset_histogram();
        assert_int_equal(usual(), 0);
        sample_usual(1, latencies[i]);
        assert_int_equal(usual(), latencies[i]);
    }
    reset_histogram();
    sample_usual(1, 0); /* 0 would mean that it is unknown */
    assert_int_equal(usual(), 1);
    reset_histogram();
    sample_usual(1, -1);
    assert_int_equal(usual(), 1);
}

static void the_usual_latency_moves_a_quarter_of_the_way_to_a_sample(void **state)
{
    static const struct {
        int64_t sample_ns, usual_ns;
    } rows[] = {
        {16 * MS, 16 * MS}, {20 * MS, 17 * MS},
        {8 * MS, 14 * MS},  {32 * MS, 20 * MS}, /* twice as much, the most that counts */
        {50 * S, 20 * MS},  {4 * MS, 13 * MS},  /* a quarter, the least that counts */
        {0, 13 * MS},       {-1, 13 * MS},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        reset_histogram();
        sample_usual(1, 16 * MS);
        sample_usual(1, rows[i].sample_ns);
        assert_int_equal(usual(), rows[i].usual_ns);
    }
}

static void the_usual_latency_follows_a_lasting_change_within_a_score_of_samples(void **state)
{
    reset_histogram();
    sample_usual(1, 2 * MS);
    sample_usual(20, 50 * MS);
    assert_true(usual() > 45 * MS && usual() <= 50 * MS);
    sample_usual(20, 2 * MS);
    assert_true(usual() >= 2 * MS && usual() < 5 * MS / 2);
}

static void one_success_in_a_hundred_milliseconds_is_sampled(void **state)
{
    reset_histogram();
    core_usual_sample(&target, 16 * MS, S);
    core_usual_sample(&target, 20 * MS, S);
    core_usual_sample(&target, 20 * MS, S + 100 * MS - 1);
    assert_int_equal(usual(), 16 * MS);
    core_usual_sample(&target, 20 * MS, S + 100 * MS);
    assert_int_equal(usual(), 17 * MS);
    core_usual_sample(&target, 21 * MS, S); /* another process stored an instant in the future: it does not count */
    assert_int_equal(usual(), 18 * MS);
}

static void garbage_in_the_estimate_is_harmless(void **state)
{
    reset_histogram();
    core_store(&target.usual_ns, UINT64_MAX); /* negative: unknown */
    assert_true(core_usual_excuses_cut(&target, BIDE_DURATION_MAX, false, S));
    core_store(&target.usual_ns, INT64_MAX);
    core_store(&target.usual_at_ns, 0);
    core_usual_sample(&target, INT64_MAX, S);
    assert_true(usual() > 0 && usual() <= 2 * BIDE_DURATION_MAX);
}

static void a_cut_attempt_is_excused_if_it_ran_shorter_than_usual(void **state)
{
    reset_histogram();
    sample_usual(1, 50 * MS);
    for (int probe = 0; probe <= 1; probe++) {
        assert_true(core_usual_excuses_cut(&target, 5 * MS, probe, 100 * S));
        assert_true(core_usual_excuses_cut(&target, 50 * MS - 1, probe, 100 * S));
        assert_false(core_usual_excuses_cut(&target, 50 * MS, probe, 100 * S));
    }
}

static void without_a_success_cut_attempts_are_excused_for_ten_seconds(void **state)
{
    static const int64_t first[] = {0, 1, 100 * S};
    for (size_t i = 0; i < COUNT(first); i++) {
        int64_t from_ns = first[i] > 0 ? first[i] : 1; /* an instant of 0 would mean none */
        reset_histogram();
        assert_true(core_usual_excuses_cut(&target, S, i == 1, first[i]));
        assert_true(core_usual_excuses_cut(&target, S, false, from_ns + 10 * S - 1));
        assert_false(core_usual_excuses_cut(&target, S, false, from_ns + 10 * S));
        assert_true(core_usual_excuses_cut(&target, S, true, from_ns + 10 * S)); /* a probe always */
        sample_usual(1, 50 * MS);
        assert_true(core_usual_excuses_cut(&target, 5 * MS, false, from_ns + 20 * S));
    }
}

/* Two samples in the first bin, the others in the second octave. */
static void all_counters_are_halved_after_1024_samples(void **state)
{
    reset_histogram();
    record_samples(2, 0);
    record_samples(1021, 2 * LOWEST);
    assert_int_equal(target.latency[0], 2);
    record_samples(1, 2 * LOWEST);
    assert_int_equal(target.latency[0], 1);
    assert_int_equal(target.latency[1], 511);
    assert_int_equal(target.latency[BIDE_LATENCY_WORDS - 1], 512); /* the number of samples */
}

static void the_quantile_of_no_attempts_has_no_bound(void **state)
{
    reset_histogram();
    record_samples(ENOUGH, 10 * MS);
    assert_int_equal(quantile(0), BIDE_NEVER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fewer_than_twenty_samples_give_no_quantile),
        cmocka_unit_test(a_single_latency_is_bounded_within_a_quarter_over_the_whole_range),
        cmocka_unit_test(the_bins_end_at_the_documented_durations),
        cmocka_unit_test(every_quantile_of_any_sample_is_bounded_within_a_quarter),
        cmocka_unit_test(a_slow_tail_shows_only_in_the_quantiles_that_reach_it),
        cmocka_unit_test(a_quantile_above_all_samples_has_no_bound),
        cmocka_unit_test(old_samples_weigh_less_after_each_halving),
        cmocka_unit_test(millions_of_samples_do_not_overflow_a_counter),
        cmocka_unit_test(a_lost_race_to_halve_leaves_it_to_the_next_sample),
        cmocka_unit_test(the_first_success_is_the_usual_latency),
        cmocka_unit_test(the_usual_latency_moves_a_quarter_of_the_way_to_a_sample),
        cmocka_unit_test(the_usual_latency_follows_a_lasting_change_within_a_score_of_samples),
        cmocka_unit_test(one_success_in_a_hundred_milliseconds_is_sampled),
        cmocka_unit_test(garbage_in_the_estimate_is_harmless),
        cmocka_unit_test(a_cut_attempt_is_excused_if_it_ran_shorter_than_usual),
        cmocka_unit_test(without_a_success_cut_attempts_are_excused_for_ten_seconds),
        cmocka_unit_test(all_counters_are_halved_after_1024_samples),
        cmocka_unit_test(the_quantile_of_no_attempts_has_no_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
