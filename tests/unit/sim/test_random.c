/* test_random.c - random numbers of the simulator: frozen values, distinct keys, functions compared with libm, samples
 * compared with their distributions. libm is the judge here; in the simulator it decides nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs these */
#include <cmocka.h>

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include <bide/base.h>

#include "sim/random.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))
#define MS           BIDE_MS

static struct sim_random_key key_of(uint64_t seed, enum sim_stream stream, uint64_t id, uint32_t turn)
{
    return (struct sim_random_key){.seed = seed, .stream = stream, .id = id, .turn = turn};
}

static struct sim_random_key nth_key(uint64_t id)
{
    return key_of(1, SIM_FOR_SERVICE, id, 0);
}

/* ---- bits ---- */

/* Changing a number here changes every recorded run. The stream is given as a number, so that the order of the
 * enumeration may change. */
static void same_key_always_gives_the_same_number(void **state)
{
    static const struct {
        uint64_t seed, id;
        uint32_t stream, turn;
        uint64_t bits, below_1000;
    } frozen[] = {
        {0, 0, 1, 0, UINT64_C(0xe220a8397b1dcdaf), 883},
        {0, 0, 1, 1, UINT64_C(0xcbdc6d34b7c7534d), 796},
        {0, 1, 1, 0, UINT64_C(0xa706dd2f4d197e6f), 652},
        {1, 0, 1, 0, UINT64_C(0xbfef8030ddc2d772), 749},
        {1, 1, 2, 1, UINT64_C(0xb254b2260af9b3d0), 696},
        {42, 25000000, 9, 3, UINT64_C(0x52c0ef2ca9dee7fe), 323},
        {UINT64_MAX, UINT64_MAX, 255, UINT32_MAX, UINT64_C(0xcaddd0a7acdb3d90), 792},
    };
    for (size_t i = 0; i < COUNT(frozen); i++) {
        struct sim_random_key key =
            key_of(frozen[i].seed, (enum sim_stream)frozen[i].stream, frozen[i].id, frozen[i].turn);
        assert_int_equal(sim_random_bits(key), frozen[i].bits);
        assert_int_equal(sim_random_range(key, 999), frozen[i].below_1000);
    }
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* 2.1 million keys; a collision of 64-bit numbers by chance happens once in eight million such tests. */
static void millions_of_neighbouring_keys_have_distinct_numbers(void **state)
{
    const size_t n = (size_t)8 * 16 * 16384;
    uint64_t *seen = calloc(n, sizeof *seen);
    size_t i = 0;
    assert_non_null(seen);
    for (uint64_t seed = 0; seed < 4; seed++)
        for (uint32_t stream = 1; stream <= 8; stream++)
            for (uint32_t turn = 0; turn < 8; turn++)
                for (uint64_t id = 0; id < 8192; id++)
                    seen[i++] = sim_random_bits(key_of(seed, (enum sim_stream)stream, id, turn));
    assert_int_equal(i, n);
    qsort(seen, n, sizeof *seen, by_value);
    for (i = 1; i < n; i++)
        assert_true(seen[i - 1] != seen[i]);
    free(seen);
}

/* Chi-square test of n draws over equal cells: mean cells - 1, standard deviation sqrt(2 (cells - 1)). */
static void assert_even(const uint32_t *cell, size_t cells, uint64_t n)
{
    double expected = (double)n / (double)cells, sum = 0;
    for (size_t i = 0; i < cells; i++)
        sum += ((double)cell[i] - expected) * ((double)cell[i] - expected) / expected;
    double degrees = (double)cells - 1;
    if (fabs(sum - degrees) > 5 * sqrt(2 * degrees))
        fail_msg("chi-square %.1f with %.0f degrees of freedom", sum, degrees);
}

/* A key in which only one part varies: 0 seed, 1 stream, 2 id, 3 turn. */
static struct sim_random_key counting(int part, uint32_t i)
{
    return key_of(part == 0 ? i : 7, (enum sim_stream)(part == 1 ? i % 256 : 3), part == 2 || part == 1 ? i : 11,
                  part == 3 ? i : 1);
}

static void every_byte_is_uniform_for_each_part_of_the_key(void **state)
{
    const uint32_t n = 200000;
    for (int part = 0; part < 4; part++)
        for (uint32_t shift = 0; shift < 64; shift += 8) {
            uint32_t cell[256] = {0};
            for (uint32_t i = 0; i < n; i++)
                cell[sim_random_bits(counting(part, i)) >> shift & 255]++;
            assert_even(cell, COUNT(cell), n);
        }
}

/* Pairs of numbers of neighbouring keys, in 64 x 64 cells. */
static void numbers_of_neighbouring_keys_are_independent(void **state)
{
    const uint32_t n = 400000;
    static uint32_t cell[4096];
    for (int part = 0; part < 4; part++) {
        for (size_t i = 0; i < COUNT(cell); i++)
            cell[i] = 0;
        for (uint32_t i = 0; i < n; i++)
            cell[(sim_random_bits(counting(part, i)) >> 58) << 6 | sim_random_bits(counting(part, i + 1)) >> 58]++;
        assert_even(cell, COUNT(cell), n);
    }
}

static void changing_a_key_bit_flips_half_of_the_result_bits(void **state)
{
    uint64_t flipped = 0, pairs = 0;
    for (uint64_t id = 0; id < 500; id++)
        for (uint32_t bit = 0; bit < 32; bit++) {
            uint64_t bits = sim_random_bits(key_of(id, SIM_FOR_CALL, id, (uint32_t)id));
            flipped += (uint64_t)__builtin_popcountll(
                bits ^ sim_random_bits(key_of(id ^ UINT64_C(1) << bit, SIM_FOR_CALL, id, (uint32_t)id)));
            flipped += (uint64_t)__builtin_popcountll(
                bits ^ sim_random_bits(key_of(id, SIM_FOR_CALL, id ^ UINT64_C(1) << bit, (uint32_t)id)));
            flipped += (uint64_t)__builtin_popcountll(
                bits ^ sim_random_bits(key_of(id, SIM_FOR_CALL, id, (uint32_t)id ^ UINT32_C(1) << bit)));
            pairs += 3;
        }
    double share = (double)flipped / (double)(64 * pairs);
    assert_true(share > 0.499 && share < 0.501);
}

static void ranges_include_both_ends_and_are_uniform(void **state)
{
    static const uint64_t mosts[] = {0, 1, 2, 5, 9};
    for (size_t m = 0; m < COUNT(mosts); m++) {
        uint32_t cell[10] = {0};
        uint64_t n = 100000;
        for (uint64_t i = 0; i < n; i++) {
            uint64_t x = sim_random_range(nth_key(i), mosts[m]);
            assert_true(x <= mosts[m]);
            cell[x]++;
        }
        if (mosts[m] > 0)
            assert_even(cell, mosts[m] + 1, n);
    }
}

/* With 3 * 2^62 results, scaling without rejection would return one in three twice as often as the others. */
static void wide_range_is_not_biased(void **state)
{
    const uint64_t max = 3 * (UINT64_C(1) << 62) - 1;
    uint32_t remainder[3] = {0}, third[3] = {0};
    for (uint64_t i = 0; i < 60000; i++) {
        uint64_t x = sim_random_range(nth_key(i), max);
        assert_true(x <= max);
        remainder[x % 3]++;
        third[x >> 62]++;
    }
    assert_even(remainder, 3, 60000);
    assert_even(third, 3, 60000);
}

static void unit_is_never_zero_and_never_one(void **state)
{
    assert_true(sim_bits_to_unit(0) == 0x1p-53);
    assert_true(sim_bits_to_unit(UINT64_MAX) == 1 - 0x1p-53);
    assert_true(sim_bits_to_unit(UINT64_C(1) << 63) == 0.5 + 0x1p-53);
    assert_true(sim_random_unit(nth_key(3)) == sim_bits_to_unit(sim_random_bits(nth_key(3))));
}

static void chance_matches_the_given_probability(void **state)
{
    static const uint32_t ppms[] = {0, 1000, 250000, 500000, 999000, 1000000};
    const uint32_t n = 400000;
    for (size_t p = 0; p < COUNT(ppms); p++) {
        uint32_t dists = 0;
        for (uint32_t i = 0; i < n; i++)
            dists += sim_random_chance(nth_key(i), ppms[p]);
        double share = ppms[p] / 1e6, deviation = sqrt(n * share * (1 - share));
        assert_true(fabs(dists - n * share) <= 5 * deviation);
    }
}

/* ---- functions, against libm ---- */

static double relative_error(double value, long double truth)
{
    return (double)fabsl((value - truth) / truth);
}

static void logarithm_is_exact_to_two_units_in_the_last_place(void **state)
{
    double worst = 0;
    for (uint64_t i = 0; i < 400000; i++) {
        double u = sim_random_unit(nth_key(i));
        double all = ldexp(1 + u, (int)(i % 2040) - 1020), near = 0.5 + 1.5 * u, tiny = 1 + (u - 0.5) * 1e-6;
        worst = fmax(worst, relative_error(sim_ln(all), logl(all)));
        worst = fmax(worst, relative_error(sim_ln(near), logl(near)));
        worst = fmax(worst, relative_error(sim_ln(tiny), logl(tiny)));
        worst = fmax(worst, relative_error(sim_ln(u), logl(u)));
    }
    print_message("worst relative error %.3g\n", worst);
    assert_true(worst < 5e-16);
    assert_true(sim_ln(1) == 0);
    assert_true(relative_error(sim_ln(0x1p-1074), logl(0x1p-1074)) < 5e-16);
    assert_true(relative_error(sim_ln(0x1.fffffffffffffp+1023), logl(0x1.fffffffffffffp+1023)) < 5e-16);
}

static void exponential_is_exact_to_two_units_in_the_last_place(void **state)
{
    double worst = 0;
    for (uint64_t i = 0; i < 400000; i++) {
        double u = 2 * sim_random_unit(nth_key(i)) - 1;
        worst = fmax(worst, relative_error(sim_exp(700 * u), expl(700 * u)));
        worst = fmax(worst, relative_error(sim_exp(u), expl(u)));
        worst = fmax(worst, relative_error(sim_exp(1e-6 * u), expl(1e-6 * u)));
    }
    print_message("worst relative error %.3g\n", worst);
    assert_true(worst < 5e-16);
    assert_true(sim_exp(0) == 1);
}

/* The distance of z from the quantile of p: the difference of the shares divided by the density. */
static double quantile_error(double z, double p)
{
    long double share = 0.5L * erfcl(-(long double)z * sqrtl(0.5L));
    long double density = expl(-(long double)z * z / 2) / sqrtl(2 * acosl(-1));
    return (double)fabsl((share - p) / density);
}

static void normal_quantile_inverts_the_integral_of_the_density(void **state)
{
    double worst = 0;
    for (uint64_t i = 0; i < 300000; i++) {
        double u = sim_random_unit(nth_key(i)), small = exp2(-53 * u);
        worst = fmax(worst, quantile_error(sim_normal_quantile(u), u));
        worst = fmax(worst, quantile_error(sim_normal_quantile(small), small));
        assert_true(sim_normal_quantile(1 - small) == -sim_normal_quantile(1 - (1 - small)));
    }
    for (uint64_t i = 0; i < 3000; i++) {
        double below = exp2(-53 - 960 * sim_random_unit(nth_key(i))); /* below the table: computed by iteration */
        worst = fmax(worst, quantile_error(sim_normal_quantile(below), below));
    }
    print_message("worst error %.3g\n", worst);
    assert_true(worst < 2e-12);
    assert_true(fabs(sim_normal_quantile(0.5)) < 2e-12);
}

/* At the borders between pieces of the table. */
static void normal_quantile_is_monotone(void **state)
{
    for (int octave = -53; octave < -1; octave++)
        for (int piece = 0; piece < 32; piece++) {
            double p = ldexp(1 + piece / 32.0, octave);
            assert_true(sim_normal_quantile(nextafter(p, 0)) <= sim_normal_quantile(p) + 2e-12);
            assert_true(sim_normal_quantile(p * (1 - 1e-9)) < sim_normal_quantile(p * (1 + 1e-9)));
        }
}

static void *quantile_of_a_thread(void *context)
{
    *(double *)context = sim_normal_quantile(0.01);
    return NULL;
}

static void quantile_table_is_built_once_by_concurrent_threads(void **state)
{
    pthread_t thread[8];
    double z[COUNT(thread)];
    for (size_t i = 0; i < COUNT(thread); i++)
        assert_int_equal(pthread_create(&thread[i], NULL, quantile_of_a_thread, &z[i]), 0);
    for (size_t i = 0; i < COUNT(thread); i++) {
        pthread_join(thread[i], NULL);
        assert_true(z[i] == sim_normal_quantile(0.01));
    }
}

/* ---- durations ---- */

#define DRAWS 100000u

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Returns sorted draws of a distribution. */
static const int64_t *sample_of(struct sim_distribution *dist)
{
    static int64_t sample[DRAWS];
    sim_distribution_prepare(dist);
    for (uint32_t i = 0; i < DRAWS; i++) {
        sample[i] = sim_distribution_draw(dist, key_of(42, SIM_FOR_SERVICE, i, 3));
        assert_true(sample[i] >= 0 && sample[i] <= BIDE_DURATION_MAX);
    }
    qsort(sample, DRAWS, sizeof *sample, by_size);
    return sample;
}

/* Kolmogorov-Smirnov test: the greatest distance between sample and distribution; 1.95 / sqrt(n) is exceeded once in a
 * thousand. The seed is fixed. */
static void assert_distributed(struct sim_distribution *dist, double (*share_up_to)(double ns))
{
    const int64_t *sample = sample_of(dist);
    double worst = 0;
    for (uint32_t i = 0; i < DRAWS; i++) {
        double share = share_up_to((double)sample[i]);
        worst = fmax(worst, fmax(fabs(share - (double)i / DRAWS), fabs(share - (double)(i + 1) / DRAWS)));
    }
    assert_true(worst * sqrt(DRAWS) < 1.95);
}

/* Checks that the sample mean is within five standard errors of sim_distribution_mean. */
static void assert_mean(struct sim_distribution *dist)
{
    const int64_t *sample = sample_of(dist);
    double sum = 0, squares = 0;
    for (uint32_t i = 0; i < DRAWS; i++)
        sum += (double)sample[i];
    double mean = sum / DRAWS;
    for (uint32_t i = 0; i < DRAWS; i++)
        squares += ((double)sample[i] - mean) * ((double)sample[i] - mean);
    double error = sqrt(squares) / DRAWS;
    if (fabs(mean - (double)sim_distribution_mean(dist)) > 5 * error + 1)
        fail_msg("shape %d: mean %.0f, said to be %.0f, standard error %.0f", (int)dist->shape, mean,
                 (double)sim_distribution_mean(dist), error);
}

static double exponential_share(double ns)
{
    return 1 - exp(-ns / (10.0 * MS));
}

static double uniform_share(double ns)
{
    return (ns - 5.0 * MS) / (10.0 * MS);
}

static double normal_share(double ns)
{
    return 0.5 * erfc(-(ns - 10.0 * MS) / (2.0 * MS) * sqrt(0.5));
}

/* Of |normal(1 ms, 2 ms)|. */
static double folded_share(double ns)
{
    return 0.5 * erfc(-(ns - 1.0 * MS) / (2.0 * MS) * sqrt(0.5)) - 0.5 * erfc((ns + 1.0 * MS) / (2.0 * MS) * sqrt(0.5));
}

static double mixture_share(double ns)
{
    return 0.9 * (1 - exp(-ns / (0.1 * MS))) + 0.1 * (1 - exp(-ns / (10.0 * MS)));
}

/* 1 ms: 1; 10 ms: 0.02; 69 ms: 0.001; later points are too rare for this sample. */
static double tail_share(double ns)
{
    double ms = ns / MS;
    return ms < 10 ? 1 - pow(ms, log(0.02) / log(10)) : 1 - 0.02 * pow(ms / 10, log(0.05) / log(6.9));
}

static struct sim_distribution make_distribution(enum sim_shape shape, int64_t a_ns, int64_t b_ns)
{
    return (struct sim_distribution){.shape = shape, .a_ns = a_ns, .b_ns = b_ns};
}

static struct sim_distribution make_tail(void)
{
    struct sim_distribution dist = {.shape = SIM_TAIL, .points = 5};
    static const double ms[] = {1, 10, 69, 1800, 20000}, share[] = {1, 0.02, 0.001, 1e-6, 1e-9};
    for (uint32_t i = 0; i < dist.points; i++) {
        dist.point[i].ns = (int64_t)(ms[i] * MS);
        dist.point[i].share = share[i];
    }
    return dist;
}

static void each_shape_has_its_distribution(void **state)
{
    struct sim_distribution exponential = make_distribution(SIM_EXPONENTIAL, 10 * MS, 0);
    struct sim_distribution uniform = make_distribution(SIM_UNIFORM_SHAPE, 5 * MS, 15 * MS);
    struct sim_distribution normal = make_distribution(SIM_NORMAL, 10 * MS, 2 * MS),
                            folded = make_distribution(SIM_NORMAL, 1 * MS, 2 * MS);
    struct sim_distribution mixture = make_distribution(SIM_MIXTURE, MS / 10, 10 * MS), tail = make_tail();
    mixture.ppm = 900000;
    assert_distributed(&exponential, exponential_share);
    assert_distributed(&uniform, uniform_share);
    assert_distributed(&normal, normal_share);
    assert_distributed(&folded, folded_share);
    assert_distributed(&mixture, mixture_share);
    assert_distributed(&tail, tail_share);
}

static void mean_equals_the_sample_mean(void **state)
{
    struct sim_distribution dists[] = {make_distribution(SIM_FIXED, 7 * MS, 0),
                                       make_distribution(SIM_EXPONENTIAL, 10 * MS, 0),
                                       make_distribution(SIM_UNIFORM_SHAPE, 5 * MS, 15 * MS),
                                       make_distribution(SIM_NORMAL, 10 * MS, 2 * MS),
                                       make_distribution(SIM_NORMAL, MS, 2 * MS),
                                       make_distribution(SIM_NORMAL, 0, 2 * MS),
                                       make_distribution(SIM_NORMAL, 3 * MS, 0),
                                       make_distribution(SIM_MIXTURE, MS, 10 * MS),
                                       make_tail()};
    dists[7].ppm = 300000;
    for (size_t i = 0; i < COUNT(dists); i++)
        assert_mean(&dists[i]);
}

static void fixed_duration_is_constant(void **state)
{
    struct sim_distribution dist = make_distribution(SIM_FIXED, 12345, 0);
    assert_int_equal(sim_distribution_draw(&dist, nth_key(0)), 12345);
    assert_int_equal(sim_distribution_sample(&dist, 99), 12345);
    dist = make_distribution(SIM_UNIFORM_SHAPE, 77, 77);
    assert_int_equal(sim_distribution_draw(&dist, nth_key(0)), 77);
}

static void tail_passes_through_its_points_and_stays_within_them(void **state)
{
    struct sim_distribution dist = make_tail();
    sim_distribution_prepare(&dist);
    assert_int_equal(sim_distribution_sample(&dist, UINT64_MAX), 1 * MS);
    assert_int_equal(sim_distribution_sample(&dist, 0), 20000 * MS); /* 2^-53 is rarer than 1e-9 */
    assert_in_range(sim_distribution_sample(&dist, (uint64_t)(0.02 * 0x1p64)), 10 * MS - 1, 10 * MS + 1);
    dist.points = 1;
    assert_int_equal(sim_distribution_sample(&dist, 12345), 1 * MS);
    assert_int_equal(sim_distribution_mean(&dist), 1 * MS);
    dist = make_tail();
    dist.point[0].share = 0.5; /* half of all durations equal the first point */
    sim_distribution_prepare(&dist);
    assert_int_equal(sim_distribution_sample(&dist, UINT64_C(3) << 62), 1 * MS);
    assert_true(sim_distribution_sample(&dist, UINT64_C(1) << 62) > 1 * MS);
}

static void tail_with_logarithmic_integral_has_the_right_mean(void **state)
{
    struct sim_distribution dist = {.shape = SIM_TAIL, .points = 2};
    dist.point[0].ns = 1 * MS, dist.point[0].share = 1;
    dist.point[1].ns = 100 * MS, dist.point[1].share = 0.01; /* share = 1 ms / t */
    sim_distribution_prepare(&dist);
    double mean = MS * (1 + log(100));
    assert_true(fabs((double)sim_distribution_mean(&dist) - mean) < 2);
    dist.point[1].ns = 1 * MS; /* no distance between the points */
    sim_distribution_prepare(&dist);
    assert_int_equal(sim_distribution_mean(&dist), 1 * MS);
}

static void durations_saturate_at_the_maximum(void **state)
{
    struct sim_distribution dist = make_distribution(SIM_EXPONENTIAL, BIDE_DURATION_MAX, 0);
    assert_int_equal(sim_distribution_sample(&dist, 0), BIDE_DURATION_MAX);
    assert_true(sim_distribution_sample(&dist, UINT64_MAX) < 1000);
    dist = make_distribution(SIM_EXPONENTIAL, 0, 0);
    assert_int_equal(sim_distribution_sample(&dist, 0), 0);
}

/* Frozen: the same with every compiler and optimization level. */
static void same_key_always_draws_the_same_duration(void **state)
{
    struct sim_distribution dists[] = {make_distribution(SIM_EXPONENTIAL, 10 * MS, 0),
                                       make_distribution(SIM_NORMAL, 10 * MS, 2 * MS),
                                       make_distribution(SIM_MIXTURE, MS, 10 * MS), make_tail()};
    static const uint64_t frozen[] = {UINT64_C(0x4932b54d9bb8aced), UINT64_C(0x57d80589611bdd63),
                                      UINT64_C(0x18bf9c535b6521fd), UINT64_C(0x1703cdc7c94ffc90)};
    dists[2].ppm = 300000;
    for (size_t t = 0; t < COUNT(dists); t++) {
        uint64_t sum = 0;
        sim_distribution_prepare(&dists[t]);
        for (uint64_t i = 0; i < 100000; i++)
            sum = sum * 31 + (uint64_t)sim_distribution_sample(&dists[t], core_mix(i));
        if (sum != frozen[t])
            fail_msg("%zu: %llx", t, (unsigned long long)sum);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantile_table_is_built_once_by_concurrent_threads), /* must run first */
        cmocka_unit_test(same_key_always_gives_the_same_number),
        cmocka_unit_test(millions_of_neighbouring_keys_have_distinct_numbers),
        cmocka_unit_test(every_byte_is_uniform_for_each_part_of_the_key),
        cmocka_unit_test(numbers_of_neighbouring_keys_are_independent),
        cmocka_unit_test(changing_a_key_bit_flips_half_of_the_result_bits),
        cmocka_unit_test(ranges_include_both_ends_and_are_uniform),
        cmocka_unit_test(wide_range_is_not_biased),
        cmocka_unit_test(unit_is_never_zero_and_never_one),
        cmocka_unit_test(chance_matches_the_given_probability),
        cmocka_unit_test(logarithm_is_exact_to_two_units_in_the_last_place),
        cmocka_unit_test(exponential_is_exact_to_two_units_in_the_last_place),
        cmocka_unit_test(normal_quantile_inverts_the_integral_of_the_density),
        cmocka_unit_test(normal_quantile_is_monotone),
        cmocka_unit_test(each_shape_has_its_distribution),
        cmocka_unit_test(mean_equals_the_sample_mean),
        cmocka_unit_test(fixed_duration_is_constant),
        cmocka_unit_test(tail_passes_through_its_points_and_stays_within_them),
        cmocka_unit_test(tail_with_logarithmic_integral_has_the_right_mean),
        cmocka_unit_test(durations_saturate_at_the_maximum),
        cmocka_unit_test(same_key_always_draws_the_same_duration),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
