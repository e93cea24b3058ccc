/* test_backoff.c - the delay before the next attempt, as exact integer arithmetic.
 *
 * Envelopes and windows are compared to the nanosecond, at the steps where 32-bit and 64-bit shifts go wrong and far
 * beyond. The schedules of the seed documents and of AWS, gRPC and Envoy are restated here as tables.
 * tests/property/test_jitter.c tests the distribution of the draws inside a window. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include <bide/backoff.h>

#define COUNT(table) (sizeof(table) / sizeof *(table))
#define MS           BIDE_MS
#define S            BIDE_S

static const uint32_t edge_steps[] = {0, 1, 31, 32, 33, 34, 62, 63, 64, 65, UINT32_MAX};

static struct bide_policy policy_of(enum bide_preset preset)
{
    struct bide_policy policy;
    assert_int_equal(bide_policy_init(&policy, preset), BIDE_OK);
    return policy;
}

/* Exponential by 2, no jitter, no floor: only the envelope. */
static struct bide_policy without_jitter(int64_t base_ns, int64_t cap_ns)
{
    struct bide_policy policy = policy_of(BIDE_PRESET_SERVICE);
    policy.jitter = BIDE_JITTER_NONE;
    policy.base_ns = base_ns;
    policy.cap_ns = cap_ns;
    policy.floor_ns = 0;
    return policy;
}

static void assert_valid(const struct bide_policy *policy)
{
    struct bide_problem problem;
    assert_int_equal(bide_policy_check(policy, &problem), BIDE_OK);
}

static int64_t envelope(const struct bide_policy *policy, uint32_t step)
{
    return bide_backoff_envelope(policy, (struct bide_step){.step = step});
}

static struct bide_range window(const struct bide_policy *policy, uint32_t step)
{
    return bide_backoff_window(policy, (struct bide_step){.step = step});
}

static void assert_window(struct bide_range got, int64_t lo_ns, int64_t hi_ns)
{
    assert_int_equal(got.lo_ns, lo_ns);
    assert_int_equal(got.hi_ns, hi_ns);
}

static void assert_envelopes(const struct bide_policy *policy, const int64_t *expected, size_t count)
{
    for (size_t i = 0; i < count; i++)
        assert_int_equal(envelope(policy, (uint32_t)i), expected[i]);
}

/* A nanosecond is the shortest base after a throttled outcome; a multiplier next to 2 does not double. */
static void the_smallest_settings_of_growth_have_their_effect(void **state)
{
    static const uint32_t multipliers[] = {1999, 2000, 2001};
    struct bide_policy policy = without_jitter(1000, BIDE_DURATION_MAX);
    (void)state;
    for (size_t i = 0; i < COUNT(multipliers); i++) {
        policy.multiplier_milli = multipliers[i];
        assert_valid(&policy);
        assert_int_equal(envelope(&policy, 1), multipliers[i]);
    }
    policy.throttled_base_ns = 1;
    assert_valid(&policy);
    assert_int_equal(bide_backoff_envelope(&policy, (struct bide_step){.throttled = true}), 1);
}

/* -- growth at the edges ------------------------------------------------------------------------------------------- */

static void doubling_one_nanosecond_is_exact_until_the_cap(void **state)
{
    static const int64_t expected[COUNT(edge_steps)] = {
        1,
        2,
        INT64_C(1) << 31,
        INT64_C(1) << 32,
        INT64_C(1) << 33,
        INT64_C(1) << 34,
        BIDE_DURATION_MAX,
        BIDE_DURATION_MAX,
        BIDE_DURATION_MAX,
        BIDE_DURATION_MAX,
        BIDE_DURATION_MAX,
    };
    struct bide_policy policy = without_jitter(1, BIDE_DURATION_MAX);
    (void)state;
    assert_valid(&policy);
    for (size_t i = 0; i < COUNT(edge_steps); i++)
        assert_int_equal(envelope(&policy, edge_steps[i]), expected[i]);
    assert_int_equal(envelope(&policy, 59), INT64_C(1) << 59); /* the last power of two below 10^18 */
    assert_int_equal(envelope(&policy, 60), BIDE_DURATION_MAX);
}

static void doubling_saturates_even_where_the_cap_is_the_largest_number(void **state)
{
    static const int64_t expected[COUNT(edge_steps)] = {
        1,         2,         INT64_C(1) << 31, INT64_C(1) << 32, INT64_C(1) << 33, INT64_C(1) << 34, INT64_C(1) << 62,
        INT64_MAX, INT64_MAX, INT64_MAX,        INT64_MAX,
    };
    struct bide_policy policy =
        without_jitter(1, INT64_MAX); /* bide_policy_check refuses it; the arithmetic still holds */
    (void)state;
    for (size_t i = 0; i < COUNT(edge_steps); i++)
        assert_int_equal(envelope(&policy, edge_steps[i]), expected[i]);
}

static void linear_growth_is_base_times_n_until_the_cap(void **state)
{
    static const int64_t expected[COUNT(edge_steps)] = {
        3, 6, 96, 99, 102, 105, 189, 192, 195, 198, INT64_C(3) << 32,
    };
    struct bide_policy policy = without_jitter(3, BIDE_DURATION_MAX);
    (void)state;
    policy.backoff = BIDE_BACKOFF_LINEAR;
    assert_valid(&policy);
    for (size_t i = 0; i < COUNT(edge_steps); i++)
        assert_int_equal(envelope(&policy, edge_steps[i]), expected[i]);
    policy.base_ns = BIDE_DURATION_MAX / 2 + 1;
    assert_int_equal(envelope(&policy, 0), BIDE_DURATION_MAX / 2 + 1);
    assert_int_equal(envelope(&policy, 1), BIDE_DURATION_MAX);
    assert_int_equal(envelope(&policy, UINT32_MAX), BIDE_DURATION_MAX);
    policy.base_ns = policy.cap_ns = INT64_MAX;
    assert_int_equal(envelope(&policy, UINT32_MAX), INT64_MAX);
}

static void fixed_backoff_never_grows(void **state)
{
    struct bide_policy policy = without_jitter(7 * MS, 30 * S);
    (void)state;
    policy.backoff = BIDE_BACKOFF_FIXED;
    for (size_t i = 0; i < COUNT(edge_steps); i++)
        assert_int_equal(envelope(&policy, edge_steps[i]), 7 * MS);
}

static void backoff_none_ignores_jitter_and_floor(void **state)
{
    (void)state;
    for (int jitter = BIDE_JITTER_FULL; jitter <= BIDE_JITTER_NONE; jitter++) {
        struct bide_policy policy = without_jitter(100 * MS, 30 * S);
        policy.backoff = BIDE_BACKOFF_NONE;
        policy.jitter = (enum bide_jitter)jitter;
        policy.jitter_add_ns = 1 * S;
        policy.floor_ns = 50 * MS;
        assert_valid(&policy);
        for (size_t i = 0; i < COUNT(edge_steps); i++) {
            assert_int_equal(envelope(&policy, edge_steps[i]), 0);
            assert_window(window(&policy, edge_steps[i]), 0, 0);
            assert_int_equal(bide_backoff_wait(&policy, (struct bide_step){.step = edge_steps[i]}, 1, 1), 0);
        }
    }
}

static void growth_by_a_half_from_one_nanosecond_never_stops(void **state)
{
    static const int64_t expected[] = {1, 2, 3, 5, 8, 12, 18, 27, 41, 62}; /* times 1.5, rounded up */
    struct bide_policy policy = without_jitter(1, BIDE_DURATION_MAX);
    (void)state;
    policy.multiplier_milli = 1500;
    assert_valid(&policy);
    assert_envelopes(&policy, expected, COUNT(expected));
    assert_int_equal(envelope(&policy, UINT32_MAX), BIDE_DURATION_MAX);
}

static void the_smallest_multiplier_grows_with_every_step_and_ends_at_the_cap(void **state)
{
    struct bide_policy policy = without_jitter(1, 1 * MS);
    int64_t before = 0;
    (void)state;
    policy.multiplier_milli = 1001;
    assert_valid(&policy);
    for (uint32_t step = 0; before < policy.cap_ns; step++) {
        int64_t now = envelope(&policy, step);
        assert_true(now > before);
        before = now;
        assert_true(step < 10000);
    }
    assert_int_equal(envelope(&policy, UINT32_MAX), policy.cap_ns);
}

static void other_multipliers_are_exact_where_the_products_are_whole(void **state)
{
    static const int64_t by_three[] = {1, 3, 9, 27, 81, 243, 729};
    static const int64_t by_1_6[] = {1 * S, 1600 * MS, 2560 * MS, 4096 * MS, 6553600 * BIDE_US, 10 * S, 10 * S};
    struct bide_policy policy = without_jitter(1, BIDE_DURATION_MAX);
    (void)state;
    policy.multiplier_milli = 3000;
    assert_envelopes(&policy, by_three, COUNT(by_three));
    assert_int_equal(envelope(&policy, 37), INT64_C(450283905890997363)); /* 3^37 */
    assert_int_equal(envelope(&policy, 38), BIDE_DURATION_MAX);
    policy = without_jitter(1 * S, 10 * S); /* gRPC's connection backoff multiplies by 1.6 */
    policy.multiplier_milli = 1600;
    assert_envelopes(&policy, by_1_6, COUNT(by_1_6));
}

static void an_envelope_never_shrinks_and_never_exceeds_the_cap(void **state)
{
    static const uint32_t multipliers[] = {1001, 1100, 1500, 2000, 2001, 3000, 10000, 1000000};
    static const int64_t bases[] = {1, 2, 999, 1000, 1001, 123456789, 5 * S};
    static const int64_t caps[] = {5 * S, 7 * S + 1, 30 * S, BIDE_DURATION_MAX};
    (void)state;
    for (size_t i = 0; i < COUNT(multipliers) * COUNT(bases) * COUNT(caps); i++) {
        struct bide_policy policy =
            without_jitter(bases[i / COUNT(multipliers) % COUNT(bases)], caps[i / COUNT(multipliers) / COUNT(bases)]);
        int64_t before = policy.base_ns;
        policy.multiplier_milli = multipliers[i % COUNT(multipliers)];
        assert_valid(&policy);
        for (uint32_t step = 0; step < 70; step++) {
            int64_t now = envelope(&policy, step);
            assert_true(now >= before && now <= policy.cap_ns);
            before = now;
        }
        assert_int_equal(envelope(&policy, UINT32_MAX), policy.cap_ns);
    }
}

/* -- schedules of the seed documents ------------------------------------------------------------------------------- */

static void seed_000_waits_1_2_4_and_8_seconds(void **state)
{
    static const int64_t expected[] = {1 * S, 2 * S, 4 * S, 8 * S};
    struct bide_policy policy = without_jitter(1 * S, 30 * S);
    (void)state;
    assert_envelopes(&policy, expected, COUNT(expected));
    policy.base_ns = 500 * MS; /* its pseudocode: random(0, min(30000, 500 * 2^attempt)) */
    policy.jitter = BIDE_JITTER_FULL;
    assert_window(window(&policy, 0), 0, 500 * MS);
    assert_window(window(&policy, 3), 0, 4 * S);
    assert_window(window(&policy, 6), 0, 30 * S);
}

static void seed_001_doubles_from_one_second_and_caps_at_30(void **state)
{
    static const int64_t expected[] = {1 * S, 2 * S, 4 * S, 8 * S, 16 * S, 30 * S, 30 * S};
    struct bide_policy policy = without_jitter(1 * S, 30 * S);
    (void)state;
    policy.jitter = BIDE_JITTER_FULL;
    assert_envelopes(&policy, expected, COUNT(expected));
    assert_window(window(&policy, 2), 0, 4 * S);
    policy.cap_ns = BIDE_DURATION_MAX; /* "without a cap, 2^20 = 1,048,576 seconds" */
    assert_int_equal(envelope(&policy, 20), 1048576 * S);
}

static void seed_002_waits_as_documented_except_that_attempt_8_is_not_capped_yet(void **state)
{
    static const int64_t expected[] = {200 * MS, 400 * MS, 800 * MS, 1600 * MS};
    struct bide_policy policy = without_jitter(200 * MS, 30 * S);
    (void)state;
    assert_envelopes(&policy, expected, COUNT(expected));
    /* The seed says "attempt 8: wait 30 s (capped)". By its own rows (attempt 1 waits 200 ms) attempt 8 waits
     * 200 ms * 2^7 = 25.6 s; the cap is reached at attempt 9. */
    assert_int_equal(envelope(&policy, 7), 25600 * MS);
    assert_int_equal(envelope(&policy, 8), 30 * S);
}

static void seed_003_envelopes_double_from_100_to_3200_milliseconds(void **state)
{
    static const int64_t expected[] = {100 * MS, 200 * MS, 400 * MS, 800 * MS, 1600 * MS, 3200 * MS};
    struct bide_policy policy = without_jitter(100 * MS, 30 * S);
    (void)state;
    assert_envelopes(&policy, expected, COUNT(expected));
}

static void seed_004_lifts_its_window_by_a_floor_of_50_ms(void **state)
{
    struct bide_policy policy = policy_of(BIDE_PRESET_SERVICE);
    (void)state;
    policy.floor_ns = 50 * MS;
    assert_window(window(&policy, 0), 50 * MS, 200 * MS);
    assert_window(window(&policy, 3), 50 * MS, 1600 * MS);
    assert_window(window(&policy, 8), 50 * MS, 30 * S);
}

/* -- other systems ------------------------------------------------------------------------------------------------- */

static void aws_2_0_draws_up_to_1_2_4_8_seconds_capped_at_20(void **state)
{
    static const int64_t expected[] = {1 * S, 2 * S, 4 * S, 8 * S, 16 * S, 20 * S, 20 * S};
    struct bide_policy policy = policy_of(BIDE_PRESET_AWS_2_0);
    (void)state;
    assert_envelopes(&policy, expected, COUNT(expected));
    assert_window(window(&policy, 3), 0, 8 * S);
    policy.cap_ns = 3 * S; /* aws_standard_retry_v2_0: max_backoff_time */
    assert_window(window(&policy, 1), 0, 2 * S);
    assert_window(window(&policy, 2), 0, 3 * S);
    assert_window(window(&policy, 3), 0, 3 * S);
}

static void aws_2_1_draws_from_50_ms_and_from_one_second_when_throttled(void **state)
{
    static const int64_t expected[] = {50 * MS, 100 * MS, 200 * MS, 400 * MS, 800 * MS};
    struct bide_policy policy = policy_of(BIDE_PRESET_AWS_2_1);
    (void)state;
    assert_envelopes(&policy, expected, COUNT(expected));
    assert_window(bide_backoff_window(&policy, (struct bide_step){.step = 0, .throttled = true}), 0, 1 * S);
    assert_window(bide_backoff_window(&policy, (struct bide_step){.step = 4, .throttled = true}), 0, 16 * S);
    assert_window(bide_backoff_window(&policy, (struct bide_step){.step = 5, .throttled = true}), 0, 20 * S);
    assert_window(window(&policy, 9), 0, 20 * S);
    policy.cap_ns = 1 * S;
    policy.throttled_base_ns = 0; /* 0: the same base */
    assert_window(bide_backoff_window(&policy, (struct bide_step){.step = 1, .throttled = true}), 0, 100 * MS);
}

static void grpc_spreads_twenty_percent_around_the_capped_value(void **state)
{
    static const int64_t lo[] = {80 * MS, 160 * MS, 320 * MS, 640 * MS, 800 * MS, 800 * MS};
    static const int64_t hi[] = {120 * MS, 240 * MS, 480 * MS, 960 * MS, 1200 * MS, 1200 * MS};
    struct bide_policy policy = policy_of(BIDE_PRESET_GRPC);
    (void)state;
    for (uint32_t step = 0; step < COUNT(lo); step++)
        assert_window(window(&policy, step), lo[step], hi[step]); /* gRFC A6: it may exceed maxBackoff */
}

static void envoy_ceilings_double_until_the_maximum(void **state)
{
    /* backoff_strategy_test.cc, in milliseconds. Envoy draws whole milliseconds below the ceiling, rand % ceiling;
     * bide draws nanoseconds up to the ceiling, both ends included. */
    static const struct {
        int64_t base, max, ceiling[7];
    } rows[] = {
        {25, 250, {25, 50, 100, 200, 250, 250, 250}},
        {25, 30, {25, 30, 30, 30, 30, 30, 30}},
        {5, 100, {5, 10, 20, 40, 80, 100, 100}},
        {100, 1200, {100, 200, 400, 800, 1200, 1200, 1200}},
        {100, 1000, {100, 200, 400, 800, 1000, 1000, 1000}},
    };
    struct bide_policy policy = policy_of(BIDE_PRESET_ENVOY);
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        policy.base_ns = rows[i].base * MS;
        policy.cap_ns = rows[i].max * MS;
        assert_valid(&policy);
        for (uint32_t step = 0; step < 7; step++)
            assert_window(window(&policy, step), 0, rows[i].ceiling[step] * MS);
    }
}

static void curl_waits_1_2_4_seconds_without_jitter_up_to_ten_minutes(void **state)
{
    struct bide_policy policy = policy_of(BIDE_PRESET_CURL);
    (void)state;
    assert_window(window(&policy, 0), 1 * S, 1 * S);
    assert_window(window(&policy, 2), 4 * S, 4 * S);
    assert_window(window(&policy, 9), 512 * S, 512 * S);
    assert_window(window(&policy, 10), 600 * S, 600 * S);
}

/* -- windows ------------------------------------------------------------------------------------------------------- */

static void equal_jitter_keeps_the_upper_half(void **state)
{
    struct bide_policy policy = without_jitter(100 * MS, 30 * S);
    (void)state;
    policy.jitter = BIDE_JITTER_EQUAL;
    assert_window(window(&policy, 0), 50 * MS, 100 * MS);
    assert_window(window(&policy, 3), 400 * MS, 800 * MS);
    assert_window(window(&policy, 63), 15 * S, 30 * S);
}

static struct bide_range decorrelated_after(const struct bide_policy *policy, int64_t previous_ns)
{
    return bide_backoff_window(policy, (struct bide_step){.step = 1, .previous_ns = previous_ns});
}

static void decorrelated_jitter_reaches_from_the_base_to_three_times_the_previous_wait(void **state)
{
    struct bide_policy policy = without_jitter(1 * S, 20 * S);
    (void)state;
    policy.jitter = BIDE_JITTER_DECORRELATED;
    assert_valid(&policy);
    assert_window(decorrelated_after(&policy, 0), 1 * S, 3 * S); /* no previous wait: as after the base */
    assert_window(decorrelated_after(&policy, 1 * S), 1 * S, 3 * S);
    assert_window(decorrelated_after(&policy, 2500 * MS), 1 * S, 7500 * MS);
    assert_window(decorrelated_after(&policy, 7 * S), 1 * S, 20 * S); /* the window is capped, not the draw */
    assert_window(decorrelated_after(&policy, INT64_MAX), 1 * S, 20 * S);
}

static void decorrelated_jitter_never_falls_below_a_base_that_has_just_grown(void **state)
{
    struct bide_policy policy = without_jitter(50 * MS, 20 * S);
    (void)state;
    policy.jitter = BIDE_JITTER_DECORRELATED;
    policy.throttled_base_ns = 1 * S;
    assert_valid(&policy);
    /* a transient wait of 60 ms, then a 429 with its own base: three times 60 ms would be below that base */
    assert_window(bide_backoff_window(&policy, (struct bide_step){1, true, 60 * MS}), 1 * S, 3 * S);
    assert_window(bide_backoff_window(&policy, (struct bide_step){1, true, 2 * S}), 1 * S, 6 * S);
}

static void a_throttled_base_below_the_floor_is_refused(void **state)
{
    struct bide_policy policy = without_jitter(100 * MS, 20 * S);
    struct bide_problem problem;
    (void)state;
    policy.floor_ns = 80 * MS;
    policy.throttled_base_ns = 50 * MS; /* every throttled wait would be exactly the floor */
    assert_int_equal(bide_policy_check(&policy, &problem), BIDE_ERR_INVALID);
    assert_string_equal(problem.field, "throttled_base_ns");
}

static void decorrelated_aws_is_capped_after_the_draw(void **state)
{
    struct bide_policy policy = without_jitter(1 * S, 20 * S);
    int at_cap = 0;
    (void)state;
    policy.jitter = BIDE_JITTER_DECORRELATED_AWS;
    assert_window(decorrelated_after(&policy, 0), 1 * S, 3 * S);
    assert_window(decorrelated_after(&policy, 20 * S), 1 * S, 20 * S);
    assert_window(decorrelated_after(&policy, INT64_MAX), 1 * S, 20 * S);
    for (uint64_t seed = 0; seed < 1000; seed++) {
        int64_t wait = bide_backoff_wait(&policy, (struct bide_step){.step = 5, .previous_ns = 20 * S}, seed, 5);
        assert_true(wait >= 1 * S && wait <= 20 * S);
        at_cap += wait == 20 * S;
    }
    assert_in_range(at_cap, 600, 760); /* U(1, 60) is above 20 with probability 40/59 = 0.678 */
}

static void decorrelated_jitter_with_base_and_cap_equal_still_spreads(void **state)
{
    struct bide_policy policy = without_jitter(5 * S, 5 * S);
    (void)state;
    policy.jitter = BIDE_JITTER_DECORRELATED;
    assert_valid(&policy);
    assert_window(decorrelated_after(&policy, 0), 0, 5 * S); /* aws-c-io waited 0 here, others in lockstep */
    assert_window(decorrelated_after(&policy, 5 * S), 0, 5 * S);
}

static void additive_jitter_shifts_down_at_the_cap_and_stays_spread(void **state)
{
    struct bide_policy policy = without_jitter(100 * MS, 1 * S);
    (void)state;
    policy.jitter = BIDE_JITTER_ADDITIVE;
    policy.jitter_add_ns = 300 * MS;
    assert_valid(&policy);
    assert_window(window(&policy, 0), 100 * MS, 400 * MS);
    assert_window(window(&policy, 2), 400 * MS, 700 * MS);
    assert_window(window(&policy, 3), 700 * MS, 1 * S);
    assert_window(window(&policy, 9), 700 * MS, 1 * S);
    assert_window(window(&policy, UINT32_MAX), 700 * MS, 1 * S);
    policy.jitter_add_ns = 1 * S; /* as wide as the cap: the whole range, at every step */
    assert_valid(&policy);
    assert_window(window(&policy, 0), 0, 1 * S);
    assert_window(window(&policy, 9), 0, 1 * S);
}

static void proportional_jitter_stays_below_the_cap_without_jitter_past_cap(void **state)
{
    struct bide_policy policy = without_jitter(100 * MS, 1 * S);
    struct bide_problem problem;
    (void)state;
    policy.jitter = BIDE_JITTER_PROPORTIONAL;
    policy.jitter_lo_permille = 250;
    policy.jitter_hi_permille = 1000;
    assert_valid(&policy);
    assert_window(window(&policy, 1), 50 * MS, 200 * MS);
    assert_window(window(&policy, 9), 250 * MS, 1 * S);
    policy.jitter_hi_permille = 1200;
    assert_int_equal(bide_policy_check(&policy, &problem), BIDE_ERR_INVALID);
    assert_string_equal(problem.field, "jitter_hi_permille");
}

static void a_floor_moves_the_lower_end_of_every_window_and_nothing_else(void **state)
{
    static const struct {
        enum bide_jitter jitter;
        int64_t lo, hi;
    } rows[] = {
        {BIDE_JITTER_FULL, 80 * MS, 100 * MS},          {BIDE_JITTER_EQUAL, 80 * MS, 100 * MS},
        {BIDE_JITTER_DECORRELATED, 100 * MS, 300 * MS}, {BIDE_JITTER_DECORRELATED_AWS, 100 * MS, 300 * MS},
        {BIDE_JITTER_PROPORTIONAL, 80 * MS, 100 * MS},  {BIDE_JITTER_ADDITIVE, 100 * MS, 110 * MS},
        {BIDE_JITTER_NONE, 100 * MS, 100 * MS},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct bide_policy policy = without_jitter(100 * MS, 10 * S);
        policy.jitter = rows[i].jitter;
        policy.floor_ns = 80 * MS;
        policy.jitter_lo_permille = 100;
        policy.jitter_add_ns = 10 * MS;
        assert_valid(&policy);
        assert_window(window(&policy, 0), rows[i].lo, rows[i].hi);
    }
}

static void every_window_of_every_kind_stays_between_floor_and_cap(void **state)
{
    static const int64_t previous[] = {0, 1, 50 * MS, 5 * S, BIDE_DURATION_MAX, INT64_MAX};
    (void)state;
    for (size_t i = 0; i < 4 * 7 * COUNT(edge_steps) * COUNT(previous) * 2; i++) {
        struct bide_policy policy = without_jitter(50 * MS, 5 * S);
        struct bide_step step = {.step = edge_steps[i / 28 % COUNT(edge_steps)],
                                 .throttled = i / 28 / COUNT(edge_steps) / COUNT(previous) != 0,
                                 .previous_ns = previous[i / 28 / COUNT(edge_steps) % COUNT(previous)]};
        policy.backoff = (enum bide_backoff)(i % 4);
        policy.jitter = (enum bide_jitter)(i / 4 % 7);
        policy.floor_ns = 20 * MS;
        policy.throttled_base_ns = 1 * S;
        policy.jitter_add_ns = 200 * MS;
        assert_valid(&policy);
        struct bide_range w = bide_backoff_window(&policy, step);
        int64_t wait = bide_backoff_wait(&policy, step, i, step.step);
        assert_true(w.lo_ns <= wait && wait <= w.hi_ns && w.hi_ns <= policy.cap_ns);
        assert_true(policy.backoff == BIDE_BACKOFF_NONE || w.lo_ns >= policy.floor_ns);
    }
}

static void the_largest_durations_saturate_instead_of_wrapping(void **state)
{
    (void)state;
    for (int jitter = BIDE_JITTER_FULL; jitter <= BIDE_JITTER_NONE; jitter++) {
        struct bide_policy policy = without_jitter(INT64_MAX - 1, INT64_MAX);
        struct bide_step step = {.step = 64, .previous_ns = INT64_MAX};
        policy.jitter = (enum bide_jitter)jitter;
        policy.jitter_add_ns = INT64_MAX / 2;
        policy.jitter_hi_permille = 1200;
        policy.jitter_past_cap = true;
        struct bide_range w = bide_backoff_window(&policy, step);
        int64_t wait = bide_backoff_wait(&policy, step, 7, 7);
        assert_true(w.lo_ns >= 0 && w.hi_ns >= w.lo_ns);
        assert_true(wait >= w.lo_ns && wait <= w.hi_ns);
    }
}

static void a_wait_depends_on_seed_and_draw_alone(void **state)
{
    struct bide_policy policy = policy_of(BIDE_PRESET_SERVICE);
    struct bide_step step = {.step = 3};
    int64_t wait = bide_backoff_wait(&policy, step, 42, 3);
    (void)state;
    assert_int_equal(bide_backoff_wait(&policy, step, 42, 3), wait);
    assert_int_not_equal(bide_backoff_wait(&policy, step, 43, 3), wait);
    assert_int_not_equal(bide_backoff_wait(&policy, step, 42, 4), wait);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_smallest_settings_of_growth_have_their_effect),
        cmocka_unit_test(doubling_one_nanosecond_is_exact_until_the_cap),
        cmocka_unit_test(doubling_saturates_even_where_the_cap_is_the_largest_number),
        cmocka_unit_test(linear_growth_is_base_times_n_until_the_cap),
        cmocka_unit_test(fixed_backoff_never_grows),
        cmocka_unit_test(backoff_none_ignores_jitter_and_floor),
        cmocka_unit_test(growth_by_a_half_from_one_nanosecond_never_stops),
        cmocka_unit_test(the_smallest_multiplier_grows_with_every_step_and_ends_at_the_cap),
        cmocka_unit_test(other_multipliers_are_exact_where_the_products_are_whole),
        cmocka_unit_test(an_envelope_never_shrinks_and_never_exceeds_the_cap),
        cmocka_unit_test(seed_000_waits_1_2_4_and_8_seconds),
        cmocka_unit_test(seed_001_doubles_from_one_second_and_caps_at_30),
        cmocka_unit_test(seed_002_waits_as_documented_except_that_attempt_8_is_not_capped_yet),
        cmocka_unit_test(seed_003_envelopes_double_from_100_to_3200_milliseconds),
        cmocka_unit_test(seed_004_lifts_its_window_by_a_floor_of_50_ms),
        cmocka_unit_test(aws_2_0_draws_up_to_1_2_4_8_seconds_capped_at_20),
        cmocka_unit_test(aws_2_1_draws_from_50_ms_and_from_one_second_when_throttled),
        cmocka_unit_test(grpc_spreads_twenty_percent_around_the_capped_value),
        cmocka_unit_test(envoy_ceilings_double_until_the_maximum),
        cmocka_unit_test(curl_waits_1_2_4_seconds_without_jitter_up_to_ten_minutes),
        cmocka_unit_test(equal_jitter_keeps_the_upper_half),
        cmocka_unit_test(decorrelated_jitter_reaches_from_the_base_to_three_times_the_previous_wait),
        cmocka_unit_test(decorrelated_jitter_never_falls_below_a_base_that_has_just_grown),
        cmocka_unit_test(a_throttled_base_below_the_floor_is_refused),
        cmocka_unit_test(decorrelated_aws_is_capped_after_the_draw),
        cmocka_unit_test(decorrelated_jitter_with_base_and_cap_equal_still_spreads),
        cmocka_unit_test(additive_jitter_shifts_down_at_the_cap_and_stays_spread),
        cmocka_unit_test(proportional_jitter_stays_below_the_cap_without_jitter_past_cap),
        cmocka_unit_test(a_floor_moves_the_lower_end_of_every_window_and_nothing_else),
        cmocka_unit_test(every_window_of_every_kind_stays_between_floor_and_cap),
        cmocka_unit_test(the_largest_durations_saturate_instead_of_wrapping),
        cmocka_unit_test(a_wait_depends_on_seed_and_draw_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
