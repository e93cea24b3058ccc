/* test_histogram.c - quantiles without keeping the durations: never below the true value, at most 1/256 above it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs these */
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "core/random.h"
#include "sim/histogram.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))

static struct sim_histogram histogram; /* 112 KiB: too large for some stacks */

static void reset(void)
{
    memset(&histogram, 0, sizeof histogram);
}

static int64_t quantile(uint32_t ppm)
{
    return sim_histogram_quantile(&histogram, ppm);
}

static void assert_tight(int64_t value, int64_t truth)
{
    if (value < truth || value - truth > truth / 256)
        fail_msg("%lld for %lld", (long long)value, (long long)truth);
}

static void empty_histogram_returns_zero(void **state)
{
    reset();
    assert_int_equal(quantile(0), 0);
    assert_int_equal(quantile(500000), 0);
    assert_int_equal(quantile(1000000), 0);
    assert_int_equal(sim_histogram_mean(&histogram), 0);
}

static void single_duration_is_exact(void **state)
{
    static const int64_t durations[] = {0, 1, 255, 256, 257, 511, 512, 1000003, INT64_MAX - 1, INT64_MAX};
    for (size_t i = 0; i < COUNT(durations); i++) {
        reset();
        sim_histogram_add(&histogram, durations[i]);
        for (uint32_t ppm = 0; ppm <= 1000000; ppm += 250000)
            assert_int_equal(quantile(ppm), durations[i]);
        assert_int_equal(sim_histogram_mean(&histogram), durations[i]);
        assert_int_equal(histogram.total, 1);
    }
}

/* With a longer duration added, so that the maximum does not correct the result. */
static void bin_is_never_wider_than_a_256th(void **state)
{
    for (uint32_t bit = 0; bit < 62; bit++)
        for (int64_t near = -300; near <= 300; near++) {
            int64_t ns = (INT64_C(1) << bit) + near * (bit > 16 ? INT64_C(1) << (bit - 10) : 1);
            if (ns < 0)
                continue;
            reset();
            sim_histogram_add(&histogram, ns);
            sim_histogram_add(&histogram, INT64_MAX);
            assert_tight(quantile(500000), ns);
            assert_int_equal(quantile(500001), INT64_MAX);
        }
}

static void short_durations_are_exact(void **state)
{
    reset();
    for (int64_t ns = 0; ns < 512; ns++)
        sim_histogram_add(&histogram, ns);
    for (uint32_t k = 1; k <= 512; k++)
        assert_int_equal(quantile(k * (1000000 / 512)), k - 1);
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The k-th smallest of n, where k is the least with k >= n * ppm / 1000000. */
static int64_t true_quantile(const int64_t *sorted, uint64_t n, uint32_t ppm)
{
    uint64_t k = (n * ppm + 999999) / 1000000;
    return sorted[k > 0 ? k - 1 : 0];
}

static void quantiles_match_the_sorted_sample(void **state)
{
    static const uint32_t ppms[] = {0, 1, 1000, 250000, 500000, 900000, 990000, 999000, 999999, 1000000};
    static int64_t sample[20000];
    for (uint64_t seed = 1; seed <= 30; seed++) {
        print_message("seed %d\n", (int)seed);
        uint64_t n = 1 + core_mix(seed) % COUNT(sample), sum = 0;
        reset();
        for (uint64_t i = 0; i < n; i++) {
            uint64_t bits = core_mix(seed * CORE_GOLDEN + i);
            sample[i] = (int64_t)(bits >> (24 + bits % 40)); /* all magnitudes up to 2^40 */
            sum += (uint64_t)sample[i];
            sim_histogram_add(&histogram, sample[i]);
        }
        qsort(sample, n, sizeof *sample, by_size);
        for (size_t i = 0; i < COUNT(ppms); i++)
            assert_tight(quantile(ppms[i]), true_quantile(sample, n, ppms[i]));
        assert_int_equal(quantile(0), sample[0]);
        assert_int_equal(quantile(1000000), sample[n - 1]);
        assert_int_equal(histogram.min_ns, sample[0]);
        assert_int_equal(histogram.max_ns, sample[n - 1]);
        assert_int_equal(sim_histogram_mean(&histogram), (sum + n / 2) / n);
    }
}

static void mean_of_longest_durations_does_not_overflow(void **state)
{
    reset();
    for (int i = 0; i < 1000; i++)
        sim_histogram_add(&histogram, INT64_MAX);
    assert_int_equal(sim_histogram_mean(&histogram), INT64_MAX);
    assert_int_equal(quantile(500000), INT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_histogram_returns_zero),
        cmocka_unit_test(single_duration_is_exact),
        cmocka_unit_test(bin_is_never_wider_than_a_256th),
        cmocka_unit_test(short_durations_are_exact),
        cmocka_unit_test(quantiles_match_the_sorted_sample),
        cmocka_unit_test(mean_of_longest_durations_does_not_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
