/* test_sim_draw.c - chance for the simulator: frozen numbers, names that do not meet, functions held against libm, and
 * shapes held against their distributions. libm judges here; in the simulator it decides nothing. */
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

static struct sim_random_key named(uint64_t seed, enum sim_stream stream, uint64_t id, uint32_t turn)
{
    return (struct sim_random_key){.seed = seed, .stream = stream, .id = id, .turn = turn};
}

static struct sim_random_key nth(uint64_t id)
{
    return named(1, SIM_FOR_SERVICE, id, 0);
}

/* ---- bits ---- */

/* Changing one of these numbers changes every recorded run: do it knowingly, or not at all. The stream is given by
 * number, so that the order of the enumeration may still change. */
static void the_same_name_gives_the_same_number_for_ever(void **state)
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
        struct sim_random_key name =
            named(frozen[i].seed, (enum sim_stream)frozen[i].stream, frozen[i].id, frozen[i].turn);
        assert_int_equal(sim_random_bits(name), frozen[i].bits);
        assert_int_equal(sim_random_range(name, 999), frozen[i].below_1000);
    }
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* 2.1 million names; two of 2^64 numbers would meet by chance once in eight million such tests. */
static void no_two_of_millions_of_neighbouring_names_share_a_number(void **state)
{
    const size_t n = (size_t)8 * 16 * 16384;
    uint64_t *seen = calloc(n, sizeof *seen);
    size_t i = 0;
    assert_non_null(seen);
    for (uint64_t seed = 0; seed < 4; seed++)
        for (uint32_t stream = 1; stream <= 8; stream++)
            for (uint32_t turn = 0; turn < 8; turn++)
                for (uint64_t id = 0; id < 8192; id++)
                    seen[i++] = sim_random_bits(named(seed, (enum sim_stream)stream, id, turn));
    assert_int_equal(i, n);
    qsort(seen, n, sizeof *seen, by_value);
    for (i = 1; i < n; i++)
        assert_true(seen[i - 1] != seen[i]);
    free(seen);
}

/* Chi-square of n draws over equal cells: its mean is cells - 1, its deviation sqrt(2 (cells - 1)). */
static void assert_even(const uint32_t *cell, size_t cells, uint64_t n)
{
    double expected = (double)n / (double)cells, sum = 0;
    for (size_t i = 0; i < cells; i++)
        sum += ((double)cell[i] - expected) * ((double)cell[i] - expected) / expected;
    double degrees = (double)cells - 1;
    if (fabs(sum - degrees) > 5 * sqrt(2 * degrees))
        fail_msg("chi-square %.1f with %.0f degrees of freedom", sum, degrees);
}

/* One part of the name counts, the others stand still: 0 seed, 1 stream, 2 id, 3 turn. */
static struct sim_random_key counting(int part, uint32_t i)
{
    return named(part == 0 ? i : 7, (enum sim_stream)(part == 1 ? i % 256 : 3), part == 2 || part == 1 ? i : 11,
                 part == 3 ? i : 1);
}

static void every_byte_is_even_whichever_part_of_the_name_counts(void **state)
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

/* Pairs of neighbours, in 64 x 64 cells. */
static void neighbours_know_nothing_of_each_other(void **state)
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

static void one_changed_bit_of_a_name_changes_half_of_the_number(void **state)
{
    uint64_t flipped = 0, pairs = 0;
    for (uint64_t id = 0; id < 500; id++)
        for (uint32_t bit = 0; bit < 32; bit++) {
            uint64_t bits = sim_random_bits(named(id, SIM_FOR_CALL, id, (uint32_t)id));
            flipped += (uint64_t)__builtin_popcountll(
                bits ^ sim_random_bits(named(id ^ UINT64_C(1) << bit, SIM_FOR_CALL, id, (uint32_t)id)));
            flipped += (uint64_t)__builtin_popcountll(
                bits ^ sim_random_bits(named(id, SIM_FOR_CALL, id ^ UINT64_C(1) << bit, (uint32_t)id)));
            flipped += (uint64_t)__builtin_popcountll(
                bits ^ sim_random_bits(named(id, SIM_FOR_CALL, id, (uint32_t)id ^ UINT32_C(1) << bit)));
            pairs += 3;
        }
    double share = (double)flipped / (double)(64 * pairs);
    assert_true(share > 0.499 && share < 0.501);
}

static void ranges_include_both_ends_and_are_fair(void **state)
{
    static const uint64_t mosts[] = {0, 1, 2, 5, 9};
    for (size_t m = 0; m < COUNT(mosts); m++) {
        uint32_t cell[10] = {0};
        uint64_t n = 100000;
        for (uint64_t i = 0; i < n; i++) {
            uint64_t x = sim_random_range(nth(i), mosts[m]);
            assert_true(x <= mosts[m]);
            cell[x]++;
        }
        if (mosts[m] > 0)
            assert_even(cell, mosts[m] + 1, n);
    }
    assert_int_equal(sim_random_range(nth(5), UINT64_MAX), sim_random_bits(nth(5)));
}

/* With 3 * 2^62 results, scaling without rejection hits one in three twice as often as the others. */
static void a_wide_range_is_not_biased(void **state)
{
    const uint64_t most = 3 * (UINT64_C(1) << 62) - 1;
    uint32_t remainder[3] = {0}, third[3] = {0};
    for (uint64_t i = 0; i < 60000; i++) {
        uint64_t x = sim_random_range(nth(i), most);
        assert_true(x <= most);
        remainder[x % 3]++;
        third[x >> 62]++;
    }
    assert_even(remainder, 3, 60000);
    assert_even(third, 3, 60000);
}

static void a_unit_is_never_zero_and_never_one(void **state)
{
    assert_true(sim_bits_to_unit(0) == 0x1p-53);
    assert_true(sim_bits_to_unit(UINT64_MAX) == 1 - 0x1p-53);
    assert_true(sim_bits_to_unit(UINT64_C(1) << 63) == 0.5 + 0x1p-53);
    assert_true(sim_random_unit(nth(3)) == sim_bits_to_unit(sim_random_bits(nth(3))));
}

static void what_happens_happens_as_often_as_was_said(void **state)
{
    static const uint32_t ppms[] = {0, 1000, 250000, 500000, 999000, 1000000};
    const uint32_t n = 400000;
    for (size_t p = 0; p < COUNT(ppms); p++) {
        uint32_t times = 0;
        for (uint32_t i = 0; i < n; i++)
            times += sim_random_chance(nth(i), ppms[p]);
        double share = ppms[p] / 1e6, deviation = sqrt(n * share * (1 - share));
        assert_true(fabs(times - n * share) <= 5 * deviation);
    }
}

/* ---- functions, against libm ---- */

static double relative_error(double value, long double truth)
{
    return (double)fabsl((value - truth) / truth);
}

static void the_logarithm_is_exact_to_two_units_in_the_last_place(void **state)
{
    double worst = 0;
    for (uint64_t i = 0; i < 400000; i++) {
        double u = sim_random_unit(nth(i));
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

static void the_exponential_is_exact_to_two_units_in_the_last_place(void **state)
{
    double worst = 0;
    for (uint64_t i = 0; i < 400000; i++) {
        double u = 2 * sim_random_unit(nth(i)) - 1;
        worst = fmax(worst, relative_error(sim_exp(700 * u), expl(700 * u)));
        worst = fmax(worst, relative_error(sim_exp(u), expl(u)));
        worst = fmax(worst, relative_error(sim_exp(1e-6 * u), expl(1e-6 * u)));
    }
    print_message("worst relative error %.3g\n", worst);
    assert_true(worst < 5e-16);
    assert_true(sim_exp(0) == 1);
}

/* How far z is from the quantile of p: what its share differs from p, divided by the density. */
static double quantile_error(double z, double p)
{
    long double share = 0.5L * erfcl(-(long double)z * sqrtl(0.5L));
    long double density = expl(-(long double)z * z / 2) / sqrtl(2 * acosl(-1));
    return (double)fabsl((share - p) / density);
}

static void the_normal_quantile_inverts_the_integral_of_the_density(void **state)
{
    double worst = 0;
    for (uint64_t i = 0; i < 300000; i++) {
        double u = sim_random_unit(nth(i)), small = exp2(-53 * u);
        worst = fmax(worst, quantile_error(sim_normal_quantile(u), u));
        worst = fmax(worst, quantile_error(sim_normal_quantile(small), small));
        assert_true(sim_normal_quantile(1 - small) == -sim_normal_quantile(1 - (1 - small)));
    }
    for (uint64_t i = 0; i < 3000; i++) {
        double below = exp2(-53 - 960 * sim_random_unit(nth(i))); /* beyond what sim_unit gives: by another way */
        worst = fmax(worst, quantile_error(sim_normal_quantile(below), below));
    }
    print_message("worst error %.3g\n", worst);
    assert_true(worst < 2e-12);
    assert_true(fabs(sim_normal_quantile(0.5)) < 2e-12);
}

/* At the seams of the table, where one piece hands over to the next, it must not fall. */
static void the_normal_quantile_never_falls(void **state)
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

static void any_number_of_threads_may_be_the_first(void **state)
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

/* Draws of a time, sorted. */
static const int64_t *sample_of(struct sim_distribution *time)
{
    static int64_t sample[DRAWS];
    sim_distribution_prepare(time);
    for (uint32_t i = 0; i < DRAWS; i++) {
        sample[i] = sim_distribution_draw(time, named(42, SIM_FOR_SERVICE, i, 3));
        assert_true(sample[i] >= 0 && sample[i] <= BIDE_DURATION_MAX);
    }
    qsort(sample, DRAWS, sizeof *sample, by_size);
    return sample;
}

/* Kolmogorov and Smirnov: the greatest distance between the sample and the distribution; 1.95 / sqrt(n) is exceeded
 * once in a thousand. The seed is fixed. */
static void assert_distributed(struct sim_distribution *time, double (*share_up_to)(double ns))
{
    const int64_t *sample = sample_of(time);
    double worst = 0;
    for (uint32_t i = 0; i < DRAWS; i++) {
        double share = share_up_to((double)sample[i]);
        worst = fmax(worst, fmax(fabs(share - (double)i / DRAWS), fabs(share - (double)(i + 1) / DRAWS)));
    }
    assert_true(worst * sqrt(DRAWS) < 1.95);
}

/* The mean of the sample is within five standard errors of what sim_time_mean says. */
static void assert_mean(struct sim_distribution *time)
{
    const int64_t *sample = sample_of(time);
    double sum = 0, squares = 0;
    for (uint32_t i = 0; i < DRAWS; i++)
        sum += (double)sample[i];
    double mean = sum / DRAWS;
    for (uint32_t i = 0; i < DRAWS; i++)
        squares += ((double)sample[i] - mean) * ((double)sample[i] - mean);
    double error = sqrt(squares) / DRAWS;
    if (fabs(mean - (double)sim_distribution_mean(time)) > 5 * error + 1)
        fail_msg("shape %d: mean %.0f, said to be %.0f, standard error %.0f", (int)time->shape, mean,
                 (double)sim_distribution_mean(time), error);
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

/* 1 ms: all; 10 ms: 0.02; 69 ms: 0.001; what is beyond that does not show among so few. */
static double tail_share(double ns)
{
    double ms = ns / MS;
    return ms < 10 ? 1 - pow(ms, log(0.02) / log(10)) : 1 - 0.02 * pow(ms / 10, log(0.05) / log(6.9));
}

static struct sim_distribution time_of(enum sim_shape shape, int64_t a_ns, int64_t b_ns)
{
    return (struct sim_distribution){.shape = shape, .a_ns = a_ns, .b_ns = b_ns};
}

static struct sim_distribution tail_time(void)
{
    struct sim_distribution time = {.shape = SIM_TAIL, .points = 5};
    static const double ms[] = {1, 10, 69, 1800, 20000}, share[] = {1, 0.02, 0.001, 1e-6, 1e-9};
    for (uint32_t i = 0; i < time.points; i++) {
        time.point[i].ns = (int64_t)(ms[i] * MS);
        time.point[i].share = share[i];
    }
    return time;
}

static void each_shape_is_distributed_as_its_name_says(void **state)
{
    struct sim_distribution exponential = time_of(SIM_EXPONENTIAL, 10 * MS, 0);
    struct sim_distribution uniform = time_of(SIM_UNIFORM_SHAPE, 5 * MS, 15 * MS);
    struct sim_distribution normal = time_of(SIM_NORMAL, 10 * MS, 2 * MS), folded = time_of(SIM_NORMAL, 1 * MS, 2 * MS);
    struct sim_distribution mixture = time_of(SIM_MIXTURE, MS / 10, 10 * MS), tail = tail_time();
    mixture.ppm = 900000;
    assert_distributed(&exponential, exponential_share);
    assert_distributed(&uniform, uniform_share);
    assert_distributed(&normal, normal_share);
    assert_distributed(&folded, folded_share);
    assert_distributed(&mixture, mixture_share);
    assert_distributed(&tail, tail_share);
}

static void the_mean_is_the_mean_of_what_is_drawn(void **state)
{
    struct sim_distribution times[] = {time_of(SIM_FIXED, 7 * MS, 0),
                                       time_of(SIM_EXPONENTIAL, 10 * MS, 0),
                                       time_of(SIM_UNIFORM_SHAPE, 5 * MS, 15 * MS),
                                       time_of(SIM_NORMAL, 10 * MS, 2 * MS),
                                       time_of(SIM_NORMAL, MS, 2 * MS),
                                       time_of(SIM_NORMAL, 0, 2 * MS),
                                       time_of(SIM_NORMAL, 3 * MS, 0),
                                       time_of(SIM_MIXTURE, MS, 10 * MS),
                                       tail_time()};
    times[7].ppm = 300000;
    for (size_t i = 0; i < COUNT(times); i++)
        assert_mean(&times[i]);
}

static void a_fixed_duration_is_always_the_same(void **state)
{
    struct sim_distribution time = time_of(SIM_FIXED, 12345, 0);
    assert_int_equal(sim_distribution_draw(&time, nth(0)), 12345);
    assert_int_equal(sim_distribution_sample(&time, 99), 12345);
    time = time_of(SIM_UNIFORM_SHAPE, 77, 77);
    assert_int_equal(sim_distribution_draw(&time, nth(0)), 77);
}

static void a_tail_keeps_within_its_points_and_passes_through_them(void **state)
{
    struct sim_distribution time = tail_time();
    sim_distribution_prepare(&time);
    assert_int_equal(sim_distribution_sample(&time, UINT64_MAX), 1 * MS);
    assert_int_equal(sim_distribution_sample(&time, 0), 20000 * MS); /* 2^-53 is rarer than 1e-9 */
    assert_in_range(sim_distribution_sample(&time, (uint64_t)(0.02 * 0x1p64)), 10 * MS - 1, 10 * MS + 1);
    time.points = 1;
    assert_int_equal(sim_distribution_sample(&time, 12345), 1 * MS);
    assert_int_equal(sim_distribution_mean(&time), 1 * MS);
    time = tail_time();
    time.point[0].share = 0.5; /* half of all last just as long as the first point */
    sim_distribution_prepare(&time);
    assert_int_equal(sim_distribution_sample(&time, UINT64_C(3) << 62), 1 * MS);
    assert_true(sim_distribution_sample(&time, UINT64_C(1) << 62) > 1 * MS);
}

static void a_tail_whose_integral_is_a_logarithm_has_its_mean(void **state)
{
    struct sim_distribution time = {.shape = SIM_TAIL, .points = 2};
    time.point[0].ns = 1 * MS, time.point[0].share = 1;
    time.point[1].ns = 100 * MS, time.point[1].share = 0.01; /* share = 1 ms / t */
    sim_distribution_prepare(&time);
    double mean = MS * (1 + log(100));
    assert_true(fabs((double)sim_distribution_mean(&time) - mean) < 2);
    time.point[1].ns = 1 * MS; /* no length at all */
    sim_distribution_prepare(&time);
    assert_int_equal(sim_distribution_mean(&time), 1 * MS);
}

static void durations_end_at_the_longest_there_is(void **state)
{
    struct sim_distribution time = time_of(SIM_EXPONENTIAL, BIDE_DURATION_MAX, 0);
    assert_int_equal(sim_distribution_sample(&time, 0), BIDE_DURATION_MAX);
    assert_true(sim_distribution_sample(&time, UINT64_MAX) < 1000);
    time = time_of(SIM_EXPONENTIAL, 0, 0);
    assert_int_equal(sim_distribution_sample(&time, 0), 0);
}

/* The same with every compiler and at every level of optimisation: frozen, and run by all of them. */
static void the_same_name_draws_the_same_duration_for_ever(void **state)
{
    struct sim_distribution times[] = {time_of(SIM_EXPONENTIAL, 10 * MS, 0), time_of(SIM_NORMAL, 10 * MS, 2 * MS),
                                       time_of(SIM_MIXTURE, MS, 10 * MS), tail_time()};
    static const uint64_t frozen[] = {UINT64_C(0x4932b54d9bb8aced), UINT64_C(0x57d80589611bdd63),
                                      UINT64_C(0x18bf9c535b6521fd), UINT64_C(0x1703cdc7c94ffc90)};
    times[2].ppm = 300000;
    for (size_t t = 0; t < COUNT(times); t++) {
        uint64_t sum = 0;
        sim_distribution_prepare(&times[t]);
        for (uint64_t i = 0; i < 100000; i++)
            sum = sum * 31 + (uint64_t)sim_distribution_sample(&times[t], core_mix(i));
        if (sum != frozen[t])
            fail_msg("%zu: %llx", t, (unsigned long long)sum);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_threads_may_be_the_first), /* the first of all */
        cmocka_unit_test(the_same_name_gives_the_same_number_for_ever),
        cmocka_unit_test(no_two_of_millions_of_neighbouring_names_share_a_number),
        cmocka_unit_test(every_byte_is_even_whichever_part_of_the_name_counts),
        cmocka_unit_test(neighbours_know_nothing_of_each_other),
        cmocka_unit_test(one_changed_bit_of_a_name_changes_half_of_the_number),
        cmocka_unit_test(ranges_include_both_ends_and_are_fair),
        cmocka_unit_test(a_wide_range_is_not_biased),
        cmocka_unit_test(a_unit_is_never_zero_and_never_one),
        cmocka_unit_test(what_happens_happens_as_often_as_was_said),
        cmocka_unit_test(the_logarithm_is_exact_to_two_units_in_the_last_place),
        cmocka_unit_test(the_exponential_is_exact_to_two_units_in_the_last_place),
        cmocka_unit_test(the_normal_quantile_inverts_the_integral_of_the_density),
        cmocka_unit_test(the_normal_quantile_never_falls),
        cmocka_unit_test(each_shape_is_distributed_as_its_name_says),
        cmocka_unit_test(the_mean_is_the_mean_of_what_is_drawn),
        cmocka_unit_test(a_fixed_duration_is_always_the_same),
        cmocka_unit_test(a_tail_keeps_within_its_points_and_passes_through_them),
        cmocka_unit_test(a_tail_whose_integral_is_a_logarithm_has_its_mean),
        cmocka_unit_test(durations_end_at_the_longest_there_is),
        cmocka_unit_test(the_same_name_draws_the_same_duration_for_ever),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
