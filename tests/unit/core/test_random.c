/* test_random.c - random numbers as a function of their key: frozen values, unbiased ranges, independent purposes.
 * tests/property/test_jitter.c tests the distribution of the waits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs these */
#include <cmocka.h>

#include "core/random.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))

static struct core_random_key keyed(uint64_t seed, uint32_t draw, enum core_purpose purpose)
{
    return (struct core_random_key){seed, draw, purpose};
}

static struct core_random_key draw_of(uint64_t seed)
{
    return keyed(seed, 1, CORE_FOR_BACKOFF);
}

/* Changing one of these numbers changes every recorded verdict: do it knowingly, or not at all. */
static void the_same_key_always_gives_the_same_number(void **state)
{
    static const struct {
        struct core_random_key name;
        uint64_t number, below_1000;
    } frozen[] = {
        {{0, 0, CORE_FOR_BACKOFF}, UINT64_C(0xe220a8397b1dcdaf), 883},
        {{0, 1, CORE_FOR_BACKOFF}, UINT64_C(0xcbdc6d34b7c7534d), 796},
        {{1, 0, CORE_FOR_BACKOFF}, UINT64_C(0x910a2dec89025cc1), 566},
        {{1, 1, CORE_FOR_HINT}, UINT64_C(0x1774b12d1fbfdaf9), 91},
        {{1, 1, CORE_FOR_HOLD_OFF}, UINT64_C(0x7d350fc506ddc573), 489},
        {{42, 3, CORE_FOR_OPEN}, UINT64_C(0x1e815f95a66b5173), 119},
        {{UINT64_MAX, UINT32_MAX, CORE_FOR_THROTTLE}, UINT64_C(0x40a166a48e58fc6e), 252},
    };
    for (size_t i = 0; i < COUNT(frozen); i++)
        for (int again = 0; again < 2; again++) {
            assert_int_equal(core_random(frozen[i].name), frozen[i].number);
            assert_int_equal(core_uniform(frozen[i].name, 999), frozen[i].below_1000);
        }
}

static void the_numbers_of_the_purposes_are_part_of_the_contract(void **state)
{
    assert_int_equal(CORE_FOR_BACKOFF, 1);
    assert_int_equal(CORE_FOR_HINT, 2);
    assert_int_equal(CORE_FOR_HOLD_OFF, 3);
    assert_int_equal(CORE_FOR_LATE_WAKE, 4);
    assert_int_equal(CORE_FOR_OPEN, 5);
    assert_int_equal(CORE_FOR_RAMP, 6);
    assert_int_equal(CORE_FOR_THROTTLE, 7);
}

static void a_range_of_one_is_always_zero(void **state)
{
    for (uint64_t seed = 0; seed < 1000; seed++)
        assert_int_equal(core_uniform(draw_of(seed), 0), 0);
}

static void small_ranges_include_both_ends_and_are_fair(void **state)
{
    static const uint64_t mosts[] = {1, 2, 5, 9};
    for (size_t i = 0; i < COUNT(mosts); i++) {
        uint64_t most = mosts[i], n = 20000 * (most + 1);
        uint32_t seen[10] = {0};
        for (uint64_t seed = 0; seed < n; seed++) {
            uint64_t x = core_uniform(draw_of(seed), most);
            assert_true(x <= most);
            seen[x]++;
        }
        for (uint64_t x = 0; x <= most; x++)
            assert_in_range(seen[x], 20000 - 700, 20000 + 700); /* five standard deviations */
    }
}

/* With 2^63 + 1 results, half of all first draws would favour some of them. Seed 0 needs a second draw, seed 2 none:
 * without the redraw both would be the upper half of the product, x * (2^63 + 1) / 2^64, which is x / 2. */
static void a_draw_that_would_favour_some_results_is_drawn_again(void **state)
{
    const uint64_t most = UINT64_C(1) << 63;
    uint32_t again = 0, upper = 0, n = 20000;
    assert_int_not_equal(core_uniform(keyed(0, 0, CORE_FOR_BACKOFF), most),
                         core_random(keyed(0, 0, CORE_FOR_BACKOFF)) / 2);
    assert_int_equal(core_uniform(keyed(2, 0, CORE_FOR_BACKOFF), most), core_random(keyed(2, 0, CORE_FOR_BACKOFF)) / 2);
    for (uint64_t seed = 0; seed < n; seed++) {
        uint64_t x = core_uniform(draw_of(seed), most);
        assert_true(x <= most);
        again += x != core_random(draw_of(seed)) / 2;
        upper += x > most / 2;
    }
    assert_in_range(again, n / 2 - 350, n / 2 + 350);
    assert_in_range(upper, n / 2 - 350, n / 2 + 350);
}

/* With 3 * 2^62 results, scaling without rejection hits one in three twice as often as the others. */
static void a_wide_range_is_not_biased_towards_any_third(void **state)
{
    const uint64_t most = 3 * (UINT64_C(1) << 62) - 1;
    uint32_t thirds[3] = {0}, remainders[3] = {0}, n = 30000;
    for (uint64_t seed = 0; seed < n; seed++) {
        uint64_t x = core_uniform(draw_of(seed), most);
        assert_true(x <= most);
        thirds[x >> 62]++;
        remainders[x % 3]++;
    }
    for (int i = 0; i < 3; i++) {
        assert_in_range(thirds[i], n / 3 - 400, n / 3 + 400);
        assert_in_range(remainders[i], n / 3 - 400, n / 3 + 400);
    }
}

static uint32_t bits_in(uint64_t word)
{
    return (uint32_t)__builtin_popcountll(word);
}

/* Two independent numbers differ in half of their bits. */
static void assert_unrelated(uint64_t bits, uint64_t pairs)
{
    double share = (double)bits / (double)(64 * pairs);
    assert_true(share > 0.49 && share < 0.51);
}

static void purposes_draws_and_seeds_are_independent_of_each_other(void **state)
{
    const uint64_t n = 4000;
    uint64_t purposes = 0, draws = 0, seeds = 0;
    for (uint64_t seed = 0; seed < n; seed++) {
        uint64_t x = core_random(keyed(seed, 1, CORE_FOR_BACKOFF));
        purposes += bits_in(x ^ core_random(keyed(seed, 1, CORE_FOR_HINT)));
        draws += bits_in(x ^ core_random(keyed(seed, 2, CORE_FOR_BACKOFF)));
        seeds += bits_in(x ^ core_random(keyed(seed + 1, 1, CORE_FOR_BACKOFF)));
    }
    assert_unrelated(purposes, n);
    assert_unrelated(draws, n);
    assert_unrelated(seeds, n);
}

static void neighbouring_keys_share_no_number(void **state)
{
    static uint64_t seen[20 * 20 * CORE_FOR_THROTTLE];
    size_t n = 0;
    for (uint64_t seed = 0; seed < 20; seed++)
        for (uint32_t draw = 0; draw < 20; draw++)
            for (int purpose = CORE_FOR_BACKOFF; purpose <= CORE_FOR_THROTTLE; purpose++)
                seen[n++] = core_random(keyed(seed, draw, (enum core_purpose)purpose));
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++)
            assert_true(seen[i] != seen[j]);
}

__extension__ typedef unsigned __int128 wide;

/* The same method with a 128-bit product. */
static uint64_t scaled(uint64_t bits, uint64_t most)
{
    wide range = (wide)most + 1, unfair = ((wide)1 << 64) % range;
    while ((uint64_t)(bits * range) < unfair)
        bits = core_mix(bits + CORE_GOLDEN);
    return (uint64_t)(bits * range >> 64);
}

static void bits_are_scaled_as_with_a_wide_product(void **state)
{
    for (uint64_t seed = 0; seed < 2000; seed++) {
        uint64_t bits = core_random(keyed(seed, 1, CORE_FOR_BACKOFF)),
                 most = core_random(keyed(seed, 2, CORE_FOR_HINT));
        assert_int_equal(core_bits_to_range(bits, most), scaled(bits, most));
        assert_int_equal(core_bits_to_range(bits, most >> 40), scaled(bits, most >> 40));
    }
}

/* Of these bits the product with the range wraps to 0, 1, 2, ...: the first of them must be drawn again. */
static void the_few_unfair_bits_of_a_small_range_are_drawn_again(void **state)
{
    static const uint64_t ranges[] = {3, 6, 7, 10, 1000, 999983};
    for (size_t i = 0; i < COUNT(ranges); i++)
        for (uint64_t k = 1; k < ranges[i] && k < 50; k++) {
            uint64_t bits = (uint64_t)(((wide)k << 64) / ranges[i]) + 1; /* the first bits whose product exceeds k */
            assert_int_equal(core_bits_to_range(bits, ranges[i] - 1), scaled(bits, ranges[i] - 1));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_key_always_gives_the_same_number),
        cmocka_unit_test(the_numbers_of_the_purposes_are_part_of_the_contract),
        cmocka_unit_test(a_range_of_one_is_always_zero),
        cmocka_unit_test(small_ranges_include_both_ends_and_are_fair),
        cmocka_unit_test(a_draw_that_would_favour_some_results_is_drawn_again),
        cmocka_unit_test(a_wide_range_is_not_biased_towards_any_third),
        cmocka_unit_test(purposes_draws_and_seeds_are_independent_of_each_other),
        cmocka_unit_test(neighbouring_keys_share_no_number),
        cmocka_unit_test(bits_are_scaled_as_with_a_wide_product),
        cmocka_unit_test(the_few_unfair_bits_of_a_small_range_are_drawn_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
