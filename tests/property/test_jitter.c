/* test_jitter.c - is the jitter distributed as documented? Statistics over every kind of wait that the engine draws.
 *
 * Every sample of 100,000 draws is judged by the same tests:
 *   Kolmogorov-Smirnov  the whole shape, against the uniform distribution;
 *   chi-square          100 equal cells, for dents that Kolmogorov-Smirnov smooths over;
 *   fine digits         chi-square over the remainder modulo 1 us and 1 ms: a generator that works in whole
 *                       milliseconds looks uniform from afar;
 *   neighbours          chi-square over pairs of successive draws: clients that move together.
 * Each test has a chance of one in a million to reject a perfect generator; a result repeats with its seed (seed.h).
 *
 * Tests that never reject are worth nothing: the last tests feed them generators that are biased, truncated, piled
 * up at the cap, open at one end, or in lockstep, and each of these must be rejected. */
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
/* cmocka.h needs some of the above */
#include <cmocka.h>

#include <bide/backoff.h>
#include <bide/breaker.h>
#include <bide/call.h>

#include "seed.h"

#define DRAWS  100000
#define CELLS  100
#define SIDE   20                /* pairs are tested on SIDE * SIDE cells */
#define Z_1E_6 4.753424308817087 /* the normal quantile of 1 - 1e-6 */
#define MS     BIDE_MS
#define S      BIDE_S

static uint64_t test_seed;

/* Positions inside their window, 0 to 1, and the draws. */
static double sample[DRAWS];
static int64_t drawn[DRAWS];

/* -- statistical tests --------------------------------------------------------------------------------------------- */

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static bool kolmogorov_smirnov_accepts(const double *positions, size_t count)
{
    static double sorted[DRAWS];
    double worst = 0, n = (double)count;
    for (size_t i = 0; i < count; i++)
        sorted[i] = positions[i];
    qsort(sorted, count, sizeof *sorted, ascending);
    for (size_t i = 0; i < count; i++)
        worst = fmax(worst, fmax(sorted[i] - (double)i / n, (double)(i + 1) / n - sorted[i]));
    return worst * sqrt(n) < sqrt(-log(1e-6 / 2) / 2); /* the asymptotic quantile, 2.693 */
}

/* The quantile of chi-square by Wilson and Hilferty: within 0.1 % for the degrees of freedom used here. */
static double chi_square_limit(size_t freedom)
{
    double k = 2.0 / (9.0 * (double)freedom);
    return (double)freedom * pow(1 - k + Z_1E_6 * sqrt(k), 3);
}

static bool chi_square_accepts(const uint32_t *counts, size_t cells)
{
    double total = 0, sum = 0;
    for (size_t i = 0; i < cells; i++)
        total += counts[i];
    for (size_t i = 0; i < cells; i++)
        sum += pow((double)counts[i] - total / (double)cells, 2) / (total / (double)cells);
    return sum < chi_square_limit(cells - 1);
}

static size_t cell_of(double position, size_t cells)
{
    size_t cell = (size_t)(position * (double)cells);
    return cell < cells ? cell : cells - 1;
}

static bool cells_accept(const double *positions, size_t count)
{
    uint32_t counts[CELLS] = {0};
    for (size_t i = 0; i < count; i++)
        counts[cell_of(positions[i], CELLS)]++;
    return chi_square_accepts(counts, CELLS);
}

static bool pairs_accept(const double *first, const double *second, size_t count, size_t stride)
{
    static uint32_t counts[SIDE * SIDE];
    for (size_t i = 0; i < SIDE * SIDE; i++)
        counts[i] = 0;
    for (size_t i = 0; i < count; i += stride)
        counts[cell_of(first[i], SIDE) * SIDE + cell_of(second[i], SIDE)]++;
    return chi_square_accepts(counts, SIDE * SIDE);
}

/* Pairs that do not overlap, so that they are independent of each other. */
static bool neighbours_accept(const double *positions, size_t count)
{
    return pairs_accept(positions, positions + 1, count - 1, 2);
}

/* For windows that are much wider than `unit`. */
static bool fine_digits_accept(const int64_t *draws, size_t count, int64_t unit)
{
    uint32_t counts[CELLS] = {0};
    for (size_t i = 0; i < count; i++)
        counts[(size_t)(draws[i] % unit * CELLS / unit)]++;
    return chi_square_accepts(counts, CELLS);
}

static bool sample_is_accepted(void)
{
    return kolmogorov_smirnov_accepts(sample, DRAWS) && cells_accept(sample, DRAWS) &&
           neighbours_accept(sample, DRAWS) && fine_digits_accept(drawn, DRAWS, BIDE_US) &&
           fine_digits_accept(drawn, DRAWS, MS);
}

/* -- drawing ------------------------------------------------------------------------------------------------------- */

static double position_in(struct bide_range window, int64_t wait)
{
    return ((double)(wait - window.lo_ns) + 0.5) / ((double)(window.hi_ns - window.lo_ns) + 1);
}

static void put_position(size_t i, struct bide_range window, int64_t wait)
{
    assert_true(wait >= window.lo_ns && wait <= window.hi_ns);
    sample[i] = position_in(window, wait);
    drawn[i] = wait;
}

/* The test's own generator (xorshift64*), another family than the engine's. */
static uint64_t own_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(0x2545f4914f6cdd1d);
}

static struct bide_policy policy_with(enum bide_jitter jitter, int64_t base_ns, int64_t cap_ns)
{
    struct bide_policy policy;
    assert_int_equal(bide_policy_init(&policy, BIDE_PRESET_SERVICE), BIDE_OK);
    policy.jitter = jitter;
    policy.base_ns = base_ns;
    policy.cap_ns = cap_ns;
    policy.jitter_add_ns = 150 * MS;
    policy.jitter_lo_permille = 250;
    policy.jitter_hi_permille = 900;
    assert_int_equal(bide_policy_check(&policy, NULL), BIDE_OK);
    return policy;
}

/* Many clients with seeds of their own, all at the same step. */
static void draw_as_many_clients(const struct bide_policy *policy, struct bide_step step, struct bide_range window)
{
    uint64_t state = test_seed;
    for (size_t i = 0; i < DRAWS; i++)
        put_position(i, window, bide_backoff_wait(policy, step, own_random(&state), step.step + 1));
}

/* -- each kind is uniform over its window -------------------------------------------------------------------------- */

/* The draws of many clients at this step are spread over the whole window. */
static void assert_spread(const struct bide_policy *policy, struct bide_step step, struct bide_range window)
{
    draw_as_many_clients(policy, step, window);
    if (!sample_is_accepted())
        fail_msg("jitter %d, step %" PRIu32 ", %" PRId64 " to %" PRId64 " ns: rejected", (int)policy->jitter, step.step,
                 window.lo_ns, window.hi_ns);
}

/* The same for a kind of jitter whose envelope is 200 ms doubled at each step, at most 30 s. */
static void assert_kind_spread(enum bide_jitter jitter, uint32_t step, struct bide_range window)
{
    struct bide_policy policy = policy_with(jitter, 200 * MS, 30 * S);
    assert_spread(&policy, (struct bide_step){.step = step}, window);
}

static void full_jitter_is_uniform_from_zero_to_the_envelope(void **state)
{
    (void)state;
    assert_kind_spread(BIDE_JITTER_FULL, 0, (struct bide_range){0, 200 * MS});
    assert_kind_spread(BIDE_JITTER_FULL, 3, (struct bide_range){0, 1600 * MS});
}

static void full_jitter_at_the_cap_is_still_spread_over_the_whole_cap(void **state)
{
    (void)state;
    assert_kind_spread(BIDE_JITTER_FULL, 8, (struct bide_range){0, 30 * S});
    assert_kind_spread(BIDE_JITTER_FULL, UINT32_MAX - 1, (struct bide_range){0, 30 * S});
}

static void equal_jitter_is_uniform_over_the_upper_half(void **state)
{
    (void)state;
    assert_kind_spread(BIDE_JITTER_EQUAL, 2, (struct bide_range){400 * MS, 800 * MS});
    assert_kind_spread(BIDE_JITTER_EQUAL, 64, (struct bide_range){15 * S, 30 * S});
}

static void proportional_jitter_is_uniform_between_its_two_shares(void **state)
{
    (void)state;
    assert_kind_spread(BIDE_JITTER_PROPORTIONAL, 1, (struct bide_range){100 * MS, 360 * MS});
    assert_kind_spread(BIDE_JITTER_PROPORTIONAL, 64, (struct bide_range){7500 * MS, 27 * S});
}

static void additive_jitter_is_uniform_over_its_width_also_at_the_cap(void **state)
{
    (void)state;
    assert_kind_spread(BIDE_JITTER_ADDITIVE, 0, (struct bide_range){200 * MS, 350 * MS});
    assert_kind_spread(BIDE_JITTER_ADDITIVE, 64, (struct bide_range){29850 * MS, 30 * S});
}

static void grpc_jitter_is_uniform_twenty_percent_around_the_cap(void **state)
{
    struct bide_policy policy;
    (void)state;
    bide_policy_init(&policy, BIDE_PRESET_GRPC);
    assert_spread(&policy, (struct bide_step){.step = 5}, (struct bide_range){800 * MS, 1200 * MS});
}

static void a_floor_rescales_the_draw_and_leaves_no_pile_at_the_floor(void **state)
{
    struct bide_policy policy = policy_with(BIDE_JITTER_FULL, 200 * MS, 30 * S);
    uint32_t at_floor = 0;
    (void)state;
    policy.floor_ns = 50 * MS;
    assert_spread(&policy, (struct bide_step){.step = 0}, (struct bide_range){50 * MS, 200 * MS});
    for (size_t i = 0; i < DRAWS; i++)
        at_floor += drawn[i] == 50 * MS;
    assert_true(at_floor < 5); /* max(floor, U(0, 200 ms)), as seed 004 writes it, would put 25,000 there */
}

static void base_and_cap_equal_spread_over_the_whole_range(void **state)
{
    static const struct {
        enum bide_jitter jitter;
        int64_t lo_ns;
    } kinds[] = {{BIDE_JITTER_FULL, 0}, {BIDE_JITTER_EQUAL, 500 * MS}, {BIDE_JITTER_DECORRELATED, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct bide_policy policy = policy_with(kinds[i].jitter, 1 * S, 1 * S);
        struct bide_step step = {.step = 7, .previous_ns = 1 * S};
        assert_spread(&policy, step, (struct bide_range){kinds[i].lo_ns, 1 * S});
    }
}

static void no_jitter_never_moves(void **state)
{
    struct bide_policy policy = policy_with(BIDE_JITTER_NONE, 200 * MS, 30 * S);
    (void)state;
    for (uint64_t seed = 0; seed < 1000; seed++)
        assert_int_equal(bide_backoff_wait(&policy, (struct bide_step){.step = 2}, seed, 2), 800 * MS);
}

static void a_window_of_seven_nanoseconds_gives_each_its_seventh(void **state)
{
    struct bide_policy policy = policy_with(BIDE_JITTER_FULL, 6, 6);
    uint32_t counts[7] = {0};
    (void)state;
    for (uint64_t seed = 0; seed < DRAWS; seed++) /* both ends included: 0 to 6 */
        counts[bide_backoff_wait(&policy, (struct bide_step){.step = 0}, test_seed + seed, 1)]++;
    assert_true(chi_square_accepts(counts, 7));
}

/* A range just above a power of two is where a sloppy reduction shows most. */
static void awkward_ranges_are_not_biased_at_their_lower_end(void **state)
{
    static const int64_t widths[] = {(INT64_C(1) << 32) + 1, (INT64_C(3) << 31) - 1, INT64_C(3) << 58,
                                     BIDE_DURATION_MAX};
    (void)state;
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        struct bide_policy policy = policy_with(BIDE_JITTER_FULL, 1 * S, BIDE_DURATION_MAX);
        policy.base_ns = policy.cap_ns = widths[i];
        assert_spread(&policy, (struct bide_step){.step = 0}, (struct bide_range){0, policy.cap_ns});
    }
}

/* 2^64 random numbers do not divide evenly among 3 * 2^61 waits: 8 to every 3. Without a second draw for the surplus,
 * each third wait would come two times where its neighbours come three times. */
#define UNEVEN (INT64_C(3) << 61)

static int64_t scaled_without_rejection(uint64_t random)
{
    return (int64_t)((random >> 3) * 3 + ((random & 7) * 3 >> 3)); /* floor(random * UNEVEN / 2^64) */
}

static void no_wait_is_more_likely_where_random_numbers_do_not_divide_evenly(void **state)
{
    struct bide_policy policy = policy_with(BIDE_JITTER_FULL, 1 * S, 30 * S);
    uint32_t counts[3] = {0}, naive[3] = {0};
    uint64_t random = test_seed;
    (void)state;
    policy.base_ns = policy.cap_ns = UNEVEN - 1; /* more than the check allows; the arithmetic still holds */
    for (size_t i = 0; i < DRAWS; i++) {
        counts[bide_backoff_wait(&policy, (struct bide_step){.step = 0}, test_seed + i, 1) % 3]++;
        naive[scaled_without_rejection(own_random(&random)) % 3]++;
    }
    assert_true(chi_square_accepts(counts, 3));
    assert_false(chi_square_accepts(naive, 3));
}

/* -- decorrelated chains, against their conditional distribution --------------------------------------------------- */

#define CHAIN 10

/* Chains of waits that begin at 1 s; each wait is recorded as its position in its window, 1 s ... 3 * previous.
 * Where the window is not cut at the cap, the distribution has an atom there: a draw at the cap stands for all of
 * cap ... 3 * previous, and the test's own generator places it anywhere in that part. */
static void draw_chains(const struct bide_policy *policy, bool cut_at_cap)
{
    uint64_t random = test_seed;
    for (size_t i = 0; i < DRAWS; i += CHAIN) {
        uint64_t seed = own_random(&random);
        int64_t previous = 0;
        for (uint32_t n = 0; n < CHAIN; n++) {
            struct bide_range window = {1 * S, 3 * (previous == 0 ? 1 * S : previous)};
            struct bide_step step = {.step = n, .previous_ns = previous};
            previous = bide_backoff_wait(policy, step, seed, n + 1);
            assert_true(previous >= 1 * S && previous <= policy->cap_ns);
            int64_t beyond = window.hi_ns - policy->cap_ns;
            window.hi_ns = cut_at_cap && beyond > 0 ? policy->cap_ns : window.hi_ns;
            bool atom = !cut_at_cap && beyond > 0 && previous == policy->cap_ns;
            put_position(i + n, window,
                         atom ? previous + (int64_t)(own_random(&random) % (uint64_t)(beyond + 1)) : previous);
        }
    }
}

static void decorrelated_waits_are_uniform_given_the_previous_wait(void **state)
{
    struct bide_policy policy = policy_with(BIDE_JITTER_DECORRELATED, 1 * S, 120 * S);
    (void)state;
    draw_chains(&policy, true);
    assert_true(sample_is_accepted());
}

static void decorrelated_aws_waits_follow_their_distribution_with_its_atom_at_the_cap(void **state)
{
    struct bide_policy policy = policy_with(BIDE_JITTER_DECORRELATED_AWS, 1 * S, 20 * S);
    (void)state;
    draw_chains(&policy, false);
    assert_true(sample_is_accepted());
}

/* -- the other waits of a call ------------------------------------------------------------------------------------- */

static struct bide_target_config hold_off_config(void)
{
    struct bide_target_config config;
    bide_target_config_init(&config, BIDE_PRESET_SERVICE);
    config.budget.kind = BIDE_BUDGET_NONE;
    config.breaker.kind = BIDE_BREAKER_OFF;
    return config;
}

/* Runs a call whose first attempt gets this outcome at once; returns the wait. */
static int64_t wait_after(const struct bide_policy *policy, struct bide_target *target, uint64_t seed,
                          struct bide_outcome outcome)
{
    struct bide_call call;
    const struct bide_request request = {.safety = BIDE_SAFE, .seed = seed};
    bide_call_begin(&call, policy, target, &request, 1 * S);
    struct bide_verdict v = bide_call_outcome(&call, 1, &outcome, 1 * S);
    assert_int_equal(v.action, BIDE_ACTION_WAIT);
    bide_call_cancel(&call, 1 * S);
    return v.wake_ns - 1 * S;
}

static void a_hinted_wait_is_uniform_over_its_upward_jitter(void **state)
{
    struct bide_policy policy = policy_with(BIDE_JITTER_FULL, 200 * MS, 30 * S);
    const struct bide_outcome throttled = {
        .kind = BIDE_KIND_THROTTLED, .evidence = BIDE_EVIDENCE_ANSWERED, .hint = {BIDE_HINT_WAIT, 20 * S}};
    (void)state;
    for (size_t i = 0; i < DRAWS; i++) /* 10 % of 20 s, and never a nanosecond early */
        put_position(i, (struct bide_range){20 * S, 22 * S},
                     wait_after(&policy, BIDE_NO_TARGET, test_seed + i, throttled));
    assert_true(sample_is_accepted());
}

static void a_hold_off_wait_is_uniform_over_its_upward_jitter(void **state)
{
    static struct bide_target target;
    struct bide_target_config config = hold_off_config();
    struct bide_policy policy = policy_with(BIDE_JITTER_FULL, 200 * MS, 30 * S);
    const struct bide_outcome transient = {.kind = BIDE_KIND_TRANSIENT, .evidence = BIDE_EVIDENCE_ANSWERED};
    (void)state;
    assert_int_equal(bide_target_init(&target, &config, 1 * S, NULL), BIDE_OK);
    bide_target_hold_off(&target, 21 * S, 1 * S);
    for (size_t i = 0; i < DRAWS; i++)
        put_position(i, (struct bide_range){20 * S, 22 * S}, wait_after(&policy, &target, test_seed + i, transient));
    assert_true(sample_is_accepted());
}

/* The second wait, of up to an hour, does not fit before the deadline; 8 s are left for it. */
static void the_last_wait_is_uniform_over_the_second_half_of_the_time_left(void **state)
{
    struct bide_policy policy = policy_with(BIDE_JITTER_NONE, 1 * S, 3600 * S);
    const struct bide_outcome transient = {.kind = BIDE_KIND_TRANSIENT, .evidence = BIDE_EVIDENCE_ANSWERED};
    (void)state;
    policy.multiplier_milli = 1000000;
    policy.call_timeout_ns = 10 * S;
    policy.attempt_min_ns = 1 * S;
    for (size_t i = 0; i < DRAWS; i++) {
        struct bide_call call;
        const struct bide_request request = {.safety = BIDE_SAFE, .seed = test_seed + i};
        bide_call_begin(&call, &policy, BIDE_NO_TARGET, &request, 0);
        bide_call_outcome(&call, 1, &transient, 0);
        bide_call_wake(&call, 1 * S);
        struct bide_verdict v = bide_call_outcome(&call, 2, &transient, 1 * S);
        assert_int_equal(v.reason, BIDE_REASON_LAST_WAIT);
        put_position(i, (struct bide_range){4 * S, 8 * S}, v.wake_ns - 1 * S);
    }
    assert_true(sample_is_accepted());
}

static void a_late_wake_is_jittered_uniformly(void **state)
{
    struct bide_policy policy = policy_with(BIDE_JITTER_FULL, 1 * S, 1 * S);
    const struct bide_outcome transient = {.kind = BIDE_KIND_TRANSIENT, .evidence = BIDE_EVIDENCE_ANSWERED};
    (void)state;
    policy.call_timeout_ns = BIDE_NEVER;
    for (size_t i = 0; i < DRAWS; i++) {
        struct bide_call call;
        const struct bide_request request = {.safety = BIDE_SAFE, .seed = test_seed + i};
        bide_call_begin(&call, &policy, BIDE_NO_TARGET, &request, 0);
        bide_call_outcome(&call, 1, &transient, 0);
        struct bide_verdict v = bide_call_wake(&call, 3600 * S);
        assert_int_equal(v.reason, BIDE_REASON_LATE_WAKE);
        put_position(i, (struct bide_range){0, 1 * S}, v.wake_ns - 3600 * S);
    }
    assert_true(sample_is_accepted());
}

/* The breaker stores time in ticks of about a millisecond, so its fine digits are not tested. */
static void the_open_time_of_a_breaker_is_uniform_over_its_spread(void **state)
{
    struct bide_target_config config = hold_off_config();
    struct bide_policy policy = policy_with(BIDE_JITTER_FULL, 200 * MS, 30 * S);
    const struct bide_outcome transient = {.kind = BIDE_KIND_TRANSIENT, .evidence = BIDE_EVIDENCE_ANSWERED};
    (void)state;
    policy.attempts_max = 1;
    config.breaker.open_ns = 5 * S;
    config.breaker.kind = BIDE_BREAKER_BY_RUN;
    config.breaker.consecutive = 1;
    for (size_t i = 0; i < DRAWS; i++) {
        static struct bide_target target;
        struct bide_call call;
        const struct bide_request request = {.safety = BIDE_SAFE, .seed = test_seed + i};
        bide_target_init(&target, &config, 0, NULL);
        bide_call_begin(&call, &policy, &target, &request, 0);
        bide_call_outcome(&call, 1, &transient, 0);
        put_position(i, (struct bide_range){2500 * MS, 7502 * MS}, bide_target_get(&target, 0).breaker.until_ns);
    }
    assert_true(kolmogorov_smirnov_accepts(sample, DRAWS));
    assert_true(neighbours_accept(sample, DRAWS));
}

/* -- independence -------------------------------------------------------------------------------------------------- */

static const struct bide_step one_step = {.step = 3};
static const struct bide_range one_window = {0, 1600 * MS};

/* The source of draw i: the seed and the number of the draw, and how far each moves from one i to the next. */
struct course {
    uint64_t seed, seed_stride;
    uint32_t draw, draw_stride;
};

static void assert_independent(struct course c)
{
    struct bide_policy policy = policy_with(BIDE_JITTER_FULL, 200 * MS, 30 * S);
    for (size_t i = 0; i < DRAWS; i++, c.seed += c.seed_stride, c.draw += c.draw_stride)
        put_position(i, one_window, bide_backoff_wait(&policy, one_step, c.seed, c.draw));
    assert_true(sample_is_accepted());
}

static void clients_with_consecutive_seeds_do_not_move_together(void **state)
{
    (void)state;
    assert_independent((struct course){.seed = 0, .seed_stride = 1, .draw = 1});
}

static void seeds_that_differ_in_their_highest_bits_do_not_move_together(void **state)
{
    (void)state;
    assert_independent((struct course){.seed = 0, .seed_stride = UINT64_C(1) << 47, .draw = 1});
}

static void successive_draws_of_one_client_are_independent(void **state)
{
    (void)state;
    assert_independent((struct course){.seed = test_seed, .draw = 0, .draw_stride = 1});
}

/* Every pair of the first four draws of a client, and of the same draw of clients some seeds apart. */
static void the_first_waits_of_a_client_do_not_predict_later_waits(void **state)
{
    static double by_draw[4][DRAWS];
    struct bide_policy policy = policy_with(BIDE_JITTER_FULL, 200 * MS, 30 * S);
    (void)state;
    for (uint32_t draw = 0; draw < 4; draw++)
        for (size_t i = 0; i < DRAWS; i++)
            by_draw[draw][i] = position_in(one_window, bide_backoff_wait(&policy, one_step, i, draw + 1));
    for (size_t a = 0; a < 4; a++)
        for (size_t b = a + 1; b < 4; b++) {
            assert_true(pairs_accept(by_draw[a], by_draw[b], DRAWS, 1));
            assert_true(pairs_accept(by_draw[a], by_draw[b] + 1, DRAWS - 1, 1)); /* draw 1 of s, draw 2 of s + 1 */
            assert_true(pairs_accept(by_draw[a] + 1, by_draw[b], DRAWS - 1, 1)); /* draw 1 of s + 1, draw 2 of s */
        }
    for (size_t lag = 2; lag <= 64; lag *= 2)
        assert_true(pairs_accept(by_draw[0], by_draw[0] + lag, DRAWS - lag, 2 * lag));
}

static int ascending_waits(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Pairs of equal waits among n draws of a window of w: n * (n - 1) / 2w are expected, 3 here. */
static void a_hundred_thousand_clients_hardly_ever_choose_the_same_nanosecond(void **state)
{
    struct bide_policy policy = policy_with(BIDE_JITTER_FULL, 200 * MS, 30 * S);
    uint32_t equal = 0;
    (void)state;
    for (size_t i = 0; i < DRAWS; i++)
        drawn[i] = bide_backoff_wait(&policy, one_step, i, 1);
    qsort(drawn, DRAWS, sizeof *drawn, ascending_waits);
    for (size_t i = 1; i < DRAWS; i++)
        equal += drawn[i] == drawn[i - 1];
    assert_true(equal < 20);
}

/* -- the statistical tests themselves ------------------------------------------------------------------------------ */

/* Draws from the given biased generator over one_window. */
static void draw_biased(int64_t (*generator)(uint64_t random, uint64_t i))
{
    uint64_t state = test_seed;
    for (size_t i = 0; i < DRAWS; i++)
        put_position(i, one_window, generator(own_random(&state), i));
}

static int64_t draw_fair(uint64_t random, uint64_t i)
{
    (void)i;
    return (int64_t)((random >> 11) % (uint64_t)(1600 * MS + 1)); /* 53 bits: the bias is too small to be detected */
}

static int64_t draw_modulo_31_bits(uint64_t random, uint64_t i)
{
    (void)i;
    return (int64_t)((random >> 33) % (uint64_t)(1600 * MS + 1)); /* rand(): the lower 547 ms come twice as often */
}

static int64_t draw_truncated_to_ms(uint64_t random, uint64_t i)
{
    return draw_fair(random, i) / MS * MS;
}

static int64_t draw_truncated_to_us(uint64_t random, uint64_t i)
{
    return draw_fair(random, i) / BIDE_US * BIDE_US;
}

static int64_t draw_piled_at_cap(uint64_t random, uint64_t i)
{
    int64_t wait = draw_fair(random, i) * 11 / 10; /* jitter first, then the cap */
    return wait > 1600 * MS ? 1600 * MS : wait;
}

static int64_t draw_piled_at_floor(uint64_t random, uint64_t i)
{
    int64_t wait = draw_fair(random, i);
    return wait < 50 * MS ? 50 * MS : wait;
}

static int64_t draw_gaussian(uint64_t random, uint64_t i)
{
    uint64_t sum = 0;
    (void)i;
    for (int shift = 0; shift < 64; shift += 16)
        sum += random >> shift & 0xffff;
    return (int64_t)(sum * (uint64_t)(1600 * MS) / (4 * 0xffff));
}

static int64_t draw_in_lockstep_pairs(uint64_t random, uint64_t i)
{
    static uint64_t shared; /* a forked child that kept its parent's generator */
    if (i % 2 == 0)
        shared = random;
    return draw_fair(shared, i);
}

static int64_t draw_after_previous(uint64_t random, uint64_t i)
{
    static int64_t before; /* reseeded from the clock for each call */
    (void)random;
    before = i == 0 ? 0 : (before + 7919 * MS + 104729) % (1600 * MS + 1);
    return before;
}

static void the_tests_accept_a_fair_generator(void **state)
{
    (void)state;
    draw_biased(draw_fair);
    assert_true(sample_is_accepted());
}

static void the_tests_reject_modulo_bias(void **state)
{
    (void)state;
    draw_biased(draw_modulo_31_bits);
    assert_false(kolmogorov_smirnov_accepts(sample, DRAWS));
    assert_false(cells_accept(sample, DRAWS));
}

static void the_tests_reject_truncation_to_milliseconds_or_microseconds(void **state)
{
    (void)state;
    draw_biased(draw_truncated_to_ms);
    assert_false(fine_digits_accept(drawn, DRAWS, MS));
    assert_false(sample_is_accepted());
    draw_biased(draw_truncated_to_us);
    assert_false(fine_digits_accept(drawn, DRAWS, BIDE_US));
    assert_false(sample_is_accepted());
}

static void the_tests_reject_waits_that_pile_up_at_the_cap_or_the_floor(void **state)
{
    (void)state;
    draw_biased(draw_piled_at_cap);
    assert_false(kolmogorov_smirnov_accepts(sample, DRAWS));
    draw_biased(draw_piled_at_floor);
    assert_false(kolmogorov_smirnov_accepts(sample, DRAWS));
    assert_false(cells_accept(sample, DRAWS));
}

static void the_tests_reject_a_bell_curve(void **state)
{
    (void)state;
    draw_biased(draw_gaussian);
    assert_false(kolmogorov_smirnov_accepts(sample, DRAWS));
}

static void the_tests_reject_clients_in_lockstep(void **state)
{
    (void)state;
    draw_biased(draw_in_lockstep_pairs);
    assert_false(neighbours_accept(sample, DRAWS));
    draw_biased(draw_after_previous);
    assert_false(neighbours_accept(sample, DRAWS));
}

static void the_tests_reject_an_end_that_is_never_drawn(void **state)
{
    uint32_t counts[7] = {0};
    uint64_t random = test_seed;
    (void)state;
    for (size_t i = 0; i < DRAWS; i++)
        counts[own_random(&random) % 6]++; /* 0 to 5 instead of 0 to 6 */
    assert_false(chi_square_accepts(counts, 7));
}

static int play_seed(uint64_t seed)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(full_jitter_is_uniform_from_zero_to_the_envelope),
        cmocka_unit_test(full_jitter_at_the_cap_is_still_spread_over_the_whole_cap),
        cmocka_unit_test(equal_jitter_is_uniform_over_the_upper_half),
        cmocka_unit_test(proportional_jitter_is_uniform_between_its_two_shares),
        cmocka_unit_test(additive_jitter_is_uniform_over_its_width_also_at_the_cap),
        cmocka_unit_test(grpc_jitter_is_uniform_twenty_percent_around_the_cap),
        cmocka_unit_test(a_floor_rescales_the_draw_and_leaves_no_pile_at_the_floor),
        cmocka_unit_test(base_and_cap_equal_spread_over_the_whole_range),
        cmocka_unit_test(no_jitter_never_moves),
        cmocka_unit_test(a_window_of_seven_nanoseconds_gives_each_its_seventh),
        cmocka_unit_test(awkward_ranges_are_not_biased_at_their_lower_end),
        cmocka_unit_test(no_wait_is_more_likely_where_random_numbers_do_not_divide_evenly),
        cmocka_unit_test(decorrelated_waits_are_uniform_given_the_previous_wait),
        cmocka_unit_test(decorrelated_aws_waits_follow_their_distribution_with_its_atom_at_the_cap),
        cmocka_unit_test(a_hinted_wait_is_uniform_over_its_upward_jitter),
        cmocka_unit_test(a_hold_off_wait_is_uniform_over_its_upward_jitter),
        cmocka_unit_test(the_last_wait_is_uniform_over_the_second_half_of_the_time_left),
        cmocka_unit_test(a_late_wake_is_jittered_uniformly),
        cmocka_unit_test(the_open_time_of_a_breaker_is_uniform_over_its_spread),
        cmocka_unit_test(clients_with_consecutive_seeds_do_not_move_together),
        cmocka_unit_test(seeds_that_differ_in_their_highest_bits_do_not_move_together),
        cmocka_unit_test(successive_draws_of_one_client_are_independent),
        cmocka_unit_test(the_first_waits_of_a_client_do_not_predict_later_waits),
        cmocka_unit_test(a_hundred_thousand_clients_hardly_ever_choose_the_same_nanosecond),
        cmocka_unit_test(the_tests_accept_a_fair_generator),
        cmocka_unit_test(the_tests_reject_modulo_bias),
        cmocka_unit_test(the_tests_reject_truncation_to_milliseconds_or_microseconds),
        cmocka_unit_test(the_tests_reject_waits_that_pile_up_at_the_cap_or_the_floor),
        cmocka_unit_test(the_tests_reject_a_bell_curve),
        cmocka_unit_test(the_tests_reject_clients_in_lockstep),
        cmocka_unit_test(the_tests_reject_an_end_that_is_never_drawn),
    };
    test_seed = seed | 1; /* own_random would stay at 0 */
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    (void)argc;
    return seed_main(argv[0], UINT64_C(0x62696465), play_seed); /* "bide" */
}
