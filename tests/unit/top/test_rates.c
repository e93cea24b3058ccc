/* test_rates.c - what happened between two views of a meter, as `bide top` shows it. */
#include "top/rates.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define S BIDE_S

static struct bide_meter_view before, now;
static struct top_rates rates;

static int clear(void **state)
{
    (void)state;
    memset(&before, 0, sizeof before);
    memset(&now, 0, sizeof now);
    return 0;
}

static void take(int64_t interval_ns)
{
    top_rates_take(&rates, &before, &now, interval_ns);
}

/* ---- counts ---- */

static void rates_are_differences_by_the_second(void **state)
{
    before.attempts[BIDE_METER_ATTEMPT_1] = 100;
    now.attempts[BIDE_METER_ATTEMPT_1] = 140;
    now.attempts[BIDE_METER_ATTEMPT_2] = 6;
    now.attempts[BIDE_METER_HEDGE] = 3;
    now.attempts[BIDE_METER_REFRESH] = 1;
    before.calls[BIDE_METER_FIRST] = 90;
    now.calls[BIDE_METER_FIRST] = 120;
    now.calls[BIDE_METER_RESCUED] = 5;
    now.calls[BIDE_METER_FAILED] = 1;
    now.calls[BIDE_METER_REFUSED] = 4;
    now.calls[BIDE_METER_CANCELLED] = 10;
    take(4 * S);
    assert_true(rates.is_known);
    assert_int_equal(rates.attempts, 50);
    assert_int_equal(rates.first_attempts, 40);
    assert_int_equal(top_rates_amplification_milli(&rates), 1250);
    assert_int_equal(top_rates_calls(&rates), 50);
    assert_int_equal(top_rates_per_second_tenths(&rates, top_rates_calls(&rates)), 125);
    assert_int_equal(top_rates_rescued_permille(&rates), 125); /* of 40 that were not cancelled */
    assert_int_equal(top_rates_failed_permille(&rates), 125);  /* with those that were refused */
}

static void without_calls_there_is_neither_amplification_nor_share_nor_quantile_nor_reason(void **state)
{
    now = before;
    take(S);
    assert_true(rates.is_known);
    assert_int_equal(top_rates_amplification_milli(&rates), -1);
    assert_int_equal(top_rates_rescued_permille(&rates), -1);
    assert_int_equal(top_rates_failed_permille(&rates), -1);
    assert_int_equal(rates.p50_ns, 0);
    assert_int_equal(rates.p99_ns, 0);
    assert_int_equal(rates.reason, BIDE_REASON_NOTHING);
    assert_int_equal(top_rates_per_second_tenths(&rates, 0), 0);
}

static void without_an_earlier_view_or_after_a_restart_nothing_is_known(void **state)
{
    now.attempts[BIDE_METER_ATTEMPT_1] = 7;
    top_rates_take(&rates, NULL, &now, S);
    assert_false(rates.is_known);
    assert_int_equal(top_rates_per_second_tenths(&rates, 7), -1);
    before.waits_ended = 1; /* one count is smaller than before: another file */
    take(S);
    assert_false(rates.is_known);
    assert_int_equal(rates.attempts, 0);
    before.waits_ended = 0;
    take(0);
    assert_false(rates.is_known);
    take(1);
    assert_true(rates.is_known);
}

/* Another process of the user can write anything into the file. */
static void any_counts_are_harmless(void **state)
{
    for (unsigned round = 0; round < 64; round++) {
        for (size_t i = 0; i < sizeof now / sizeof(uint64_t); i++)
            ((uint64_t *)&now)[i] = UINT64_MAX >> (i * 7 + round) % 64;
        take(1);
        assert_true(rates.is_known);
        assert_true(top_rates_amplification_milli(&rates) >= 0);
        assert_true(top_rates_failed_permille(&rates) >= -1);
        assert_true(top_rates_rescued_permille(&rates) >= -1);
        assert_true(top_rates_per_second_tenths(&rates, top_rates_calls(&rates)) >= 0);
        assert_true(rates.p50_ns > 0 && rates.p99_ns > 0);
        assert_in_range(rates.reason, 0, BIDE_REASON_COUNT - 1);
    }
}

/* ---- quantiles ---- */

static void quantiles_are_interpolated_within_their_bin(void **state)
{
    now.call_ok.count[2] = 60; /* above 2.5 ms, up to 5 ms */
    now.call_failed.count[2] = 40;
    take(S);
    assert_int_equal(rates.p50_ns, 3750000);
    assert_int_equal(rates.p99_ns, 4975000);
    now.call_ok.count[0] = 100; /* up to 1 ms: rank 100 of 200 is its last */
    take(S);
    assert_int_equal(rates.p50_ns, BIDE_MS);
    now.call_ok.count[0] = 300;
    take(S);
    assert_int_equal(rates.p50_ns, 2 * BIDE_MS / 3);
}

static void only_calls_of_the_interval_are_in_its_quantiles(void **state)
{
    before.call_ok.count[11] = now.call_ok.count[11] = 1000; /* a second, earlier */
    now.call_ok.count[0] = 1;
    take(S);
    assert_true(rates.p99_ns < BIDE_MS);
}

static void above_the_last_bound_a_quantile_is_beyond_the_range(void **state)
{
    now.call_ok.count[0] = 98;
    now.call_failed.count[BIDE_METER_BINS - 1] = 2;
    take(S);
    assert_true(rates.p50_ns < BIDE_MS);
    assert_true(rates.p99_ns == BIDE_NEVER);
}

static void a_quantile_lies_between_the_bounds_of_a_bin_that_has_calls(void **state)
{
    uint64_t count[BIDE_METER_BINS];
    for (uint32_t bin = 0; bin + 1 < BIDE_METER_BINS; bin++)
        for (uint32_t permille = 1; permille <= 1000; permille++) {
            memset(count, 0, sizeof count);
            count[bin] = 3;
            int64_t found = top_quantile_ns(count, permille);
            assert_true(found <= bide_meter_bound_ns(bin) && found >= (bin > 0 ? bide_meter_bound_ns(bin - 1) : 1));
        }
}

/* ---- reason ---- */

static void the_most_frequent_reason_to_give_up_comes_before_reasons_to_wait(void **state)
{
    now.waits[BIDE_REASON_BACKOFF] = 500;
    now.waits[BIDE_REASON_SERVER_HINT] = 501;
    take(S);
    assert_int_equal(rates.reason, BIDE_REASON_SERVER_HINT);
    now.give_ups[BIDE_REASON_DEADLINE] = 1;
    now.give_ups[BIDE_REASON_NO_TARGET] = 2; /* the last one there is */
    take(S);
    assert_int_equal(rates.reason, BIDE_REASON_NO_TARGET);
    before.give_ups[BIDE_REASON_NO_TARGET] = 2;
    take(S);
    assert_int_equal(rates.reason, BIDE_REASON_DEADLINE);
}

/* ---- order ---- */

static struct top_rates rates_of(uint64_t first, uint64_t attempts, uint64_t calls)
{
    return (struct top_rates){
        .is_known = true, .interval_ns = S, .first_attempts = first, .attempts = attempts, .first = calls};
}

static void the_highest_amplification_is_first_then_most_calls_then_no_attempts(void **state)
{
    struct top_rates worst = rates_of(10, 30, 10), busy = rates_of(100, 110, 100), calm = rates_of(10, 11, 10);
    struct top_rates none = rates_of(0, 0, 1000);
    assert_true(top_rates_compare(&worst, &busy) < 0);
    assert_true(top_rates_compare(&busy, &worst) > 0);
    assert_true(top_rates_compare(&busy, &calm) < 0);
    assert_true(top_rates_compare(&calm, &none) < 0);
    assert_int_equal(top_rates_compare(&calm, &calm), 0);
}

#define CLEARED(test) cmocka_unit_test_setup(test, clear)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLEARED(rates_are_differences_by_the_second),
        CLEARED(without_calls_there_is_neither_amplification_nor_share_nor_quantile_nor_reason),
        CLEARED(without_an_earlier_view_or_after_a_restart_nothing_is_known),
        CLEARED(any_counts_are_harmless),
        CLEARED(quantiles_are_interpolated_within_their_bin),
        CLEARED(only_calls_of_the_interval_are_in_its_quantiles),
        CLEARED(above_the_last_bound_a_quantile_is_beyond_the_range),
        CLEARED(a_quantile_lies_between_the_bounds_of_a_bin_that_has_calls),
        CLEARED(the_most_frequent_reason_to_give_up_comes_before_reasons_to_wait),
        CLEARED(the_highest_amplification_is_first_then_most_calls_then_no_attempts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
