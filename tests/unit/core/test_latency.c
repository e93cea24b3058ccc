/* test_latency.c - the latency histogram: never below the true quantile, at most a quarter above it.
 *
 * It is precise between 131 us and 4.3 s; faster and slower attempts fall into its first and last bin. */
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
    return bide_target_latency_ns(&target, permille);
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
