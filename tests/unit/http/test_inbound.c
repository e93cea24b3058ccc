/* test_inbound.c - the inbound retry ratio: requests are counted in a sliding window whatever the clock does, and a
 * ratio above the limit is overload.
 *
 * Threads are in tests/live/http/test_inbound.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include <string.h>

#include <bide/inbound.h>

#include "core/atomic.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))
#define S            BIDE_S
#define LATEST       ((INT64_C(1) << 61) - 1) /* the latest instant */
#define FULL         ((UINT64_C(1) << 26) - 1)

static const struct bide_layer first = {.attempt = 1, .left_ns = BIDE_NEVER};
static const struct bide_layer second = {.attempt = 2, .left_ns = BIDE_NEVER};

static struct bide_inbound_ratio ratio_with_window(int64_t window_ns)
{
    struct bide_inbound_ratio_config config;
    struct bide_inbound_ratio ratio;
    bide_inbound_ratio_config_init(&config);
    config.window_ns = window_ns;
    assert_int_equal(bide_inbound_ratio_init(&ratio, &config, NULL), BIDE_OK);
    return ratio;
}

/* Counts several requests of one kind. Returns the result of the last count. */
static bool count_times(struct bide_inbound_ratio *ratio, const struct bide_layer *layer, int times, int64_t now_ns)
{
    bool no_retry = false;
    while (times-- > 0)
        no_retry = bide_inbound_ratio_count(ratio, layer, now_ns);
    return no_retry;
}

static void assert_view(const struct bide_inbound_ratio *ratio, int64_t now_ns, uint64_t requests, uint64_t retries)
{
    struct bide_inbound_ratio_view view = bide_inbound_ratio_get(ratio, now_ns);
    if (view.requests != requests || view.retries != retries)
        fail_msg("at %lld: %llu requests, %llu retries; want %llu, %llu", (long long)now_ns,
                 (unsigned long long)view.requests, (unsigned long long)view.retries, (unsigned long long)requests,
                 (unsigned long long)retries);
}

/* -- Configuration ------------------------------------------------------------------------------------------------- */

static void the_defaults_are_as_documented_and_valid(void **state)
{
    struct bide_inbound_ratio_config config;
    struct bide_inbound_ratio ratio;
    (void)state;
    memset(&config, 0xff, sizeof config);
    bide_inbound_ratio_config_init(&config);
    assert_int_equal(config.reserved_[0] | config.reserved_[1], 0);
    assert_int_equal(config.share_permille, 100);
    assert_int_equal(config.min_volume, 20);
    assert_int_equal(config.window_ns, 10 * S);
    memset(&ratio, 0xff, sizeof ratio);
    assert_int_equal(bide_inbound_ratio_init(&ratio, &config, NULL), BIDE_OK);
    assert_view(&ratio, 0, 0, 0);
    assert_view(&ratio, LATEST, 0, 0);
}

static void an_invalid_field_is_named_and_nothing_is_changed(void **state)
{
    static const struct {
        const char *field;
        struct bide_inbound_ratio_config config;
        int64_t value;
    } table[] = {
        {"share_permille", {0, 20, 10 * S, {0, 0}}, 0},
        {"share_permille", {1001, 20, 10 * S, {0, 0}}, 1001},
        {"min_volume", {100, 0, 10 * S, {0, 0}}, 0},
        {"reserved_", {100, 20, 10 * S, {0, 7}}, 1},
        {"window_ns", {100, 20, 10 * BIDE_MS - 1, {0, 0}}, 10 * BIDE_MS - 1},
        {"window_ns", {100, 20, 3600 * S + 1, {0, 0}}, 3600 * S + 1},
        {"window_ns", {100, 20, 0, {0, 0}}, 0},
        {"window_ns", {100, 20, -1, {0, 0}}, -1},
        {"window_ns", {100, 20, BIDE_NEVER, {0, 0}}, BIDE_NEVER},
    };
    struct bide_inbound_ratio ratio, before;
    (void)state;
    memset(&ratio, 0x5a, sizeof ratio);
    before = ratio;
    for (size_t i = 0; i < COUNT(table); i++) {
        struct bide_problem problem = {0};
        assert_int_equal(bide_inbound_ratio_init(&ratio, &table[i].config, &problem), BIDE_ERR_INVALID);
        assert_string_equal(problem.field, table[i].field);
        assert_int_equal(problem.value, table[i].value);
        assert_non_null(problem.want);
        assert_int_equal(bide_inbound_ratio_init(&ratio, &table[i].config, NULL), BIDE_ERR_INVALID);
        assert_memory_equal(&ratio, &before, sizeof ratio);
    }
}

static void without_a_configuration_the_defaults_apply(void **state)
{
    struct bide_inbound_ratio ratio, by_default;
    struct bide_inbound_ratio_config config;
    (void)state;
    bide_inbound_ratio_config_init(&config);
    assert_int_equal(bide_inbound_ratio_init(&by_default, &config, NULL), BIDE_OK);
    assert_int_equal(bide_inbound_ratio_init(&ratio, NULL, NULL), BIDE_OK);
    assert_memory_equal(&ratio, &by_default, sizeof ratio);
}

static void range_limits_are_valid(void **state)
{
    static const struct bide_inbound_ratio_config table[] = {
        {1, 1, 10 * BIDE_MS, {0, 0}},
        {1000, UINT32_MAX, 3600 * S, {0, 0}},
    };
    struct bide_inbound_ratio ratio;
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++)
        assert_int_equal(bide_inbound_ratio_init(&ratio, &table[i], NULL), BIDE_OK);
}

/* -- Counting ------------------------------------------------------------------------------------------------------ */

static void the_attempt_header_distinguishes_first_attempts_and_retries(void **state)
{
    static const struct bide_layer absent = {.left_ns = BIDE_NEVER};
    static const struct bide_layer last = {.attempt = UINT32_MAX, .left_ns = BIDE_NEVER};
    struct bide_inbound_ratio ratio = ratio_with_window(10 * S);
    (void)state;
    bide_inbound_ratio_count(&ratio, NULL, 5);
    assert_view(&ratio, 5, 1, 0);
    bide_inbound_ratio_count(&ratio, &absent, 5);
    assert_view(&ratio, 5, 2, 0);
    bide_inbound_ratio_count(&ratio, &first, 5);
    assert_view(&ratio, 5, 3, 0);
    bide_inbound_ratio_count(&ratio, &second, 5);
    assert_view(&ratio, 5, 4, 1);
    bide_inbound_ratio_count(&ratio, &last, 5);
    assert_view(&ratio, 5, 5, 2);
}

static void a_request_counts_for_nine_to_ten_tenths_of_the_window(void **state)
{
    static const int64_t bases[] = {0, 30 * S, 1000000 * S, LATEST / S / 10 * 10 * S - 60 * S};
    (void)state;
    for (size_t i = 0; i < COUNT(bases); i++) {
        for (int slot = 0; slot < 10; slot++) {
            struct bide_inbound_ratio ratio = ratio_with_window(10 * S);
            int64_t begins = bases[i] + slot * S, ends = begins + S - 1;
            bide_inbound_ratio_count(&ratio, &second, begins);
            bide_inbound_ratio_count(&ratio, &first, ends);
            assert_view(&ratio, ends, 2, 1);
            assert_view(&ratio, begins + 10 * S - 1, 2, 1);
            assert_view(&ratio, begins + 10 * S, 0, 0);
            assert_view(&ratio, begins + 20 * S, 0, 0);
            assert_view(&ratio, begins + 21 * S, 0, 0);
        }
    }
}

static void steady_traffic_is_counted_exactly(void **state)
{
    struct bide_inbound_ratio ratio = ratio_with_window(10 * S);
    (void)state;
    for (int64_t ms = 0; ms < 100000; ms += 10) { /* a hundred requests a second, every tenth a retry */
        int64_t now_ns = ms * BIDE_MS, slots = ms / 1000 < 9 ? ms / 1000 : 9;
        bide_inbound_ratio_count(&ratio, ms % 100 == 0 ? &second : &first, now_ns);
        uint64_t requests = (uint64_t)(slots * 100 + ms % 1000 / 10 + 1), retries = (requests + 9) / 10;
        assert_view(&ratio, now_ns, requests, retries);
    }
}

static void a_stale_slot_is_reset_however_old_it_is(void **state)
{
    static const int64_t windows[] = {10 * BIDE_MS, 15 * BIDE_MS + 7, S, 10 * S, 3600 * S};
    (void)state;
    for (size_t i = 0; i < COUNT(windows); i++) {
        int64_t ring_ns = windows[i] / 10 * 10; /* one turn of the ring */
        for (int64_t laps = 1; laps < LATEST / ring_ns - 5; laps = laps * 2 + laps % 3) {
            struct bide_inbound_ratio ratio = ratio_with_window(windows[i]);
            count_times(&ratio, &second, 3, 5);
            assert_view(&ratio, 5 + laps * ring_ns, 0, 0);
            bide_inbound_ratio_count(&ratio, &second, 5 + laps * ring_ns);
            assert_view(&ratio, 5 + laps * ring_ns, 1, 1);
        }
    }
}

static void laps_that_differ_by_a_power_of_two_are_stale(void **state)
{
    int64_t ring_ns = 10 * BIDE_MS; /* the shortest window has the most laps: 2^37 and a few */
    (void)state;
    for (int bit = 1; bit < 38; bit++) {
        struct bide_inbound_ratio ratio = ratio_with_window(ring_ns);
        int64_t later_ns = (INT64_C(1) << bit) * ring_ns;
        if (later_ns > LATEST)
            break;
        count_times(&ratio, &second, 3, 0);
        assert_view(&ratio, later_ns, 0, 0);
    }
}

static void idle_time_of_any_length_empties_the_window(void **state)
{
    struct bide_inbound_ratio ratio = ratio_with_window(10 * S);
    int64_t now_ns = 3 * S;
    (void)state;
    for (int64_t gap_ns = 10 * S; now_ns < LATEST - gap_ns; gap_ns = gap_ns * 3 / 2, now_ns += gap_ns) {
        count_times(&ratio, &second, 7, now_ns);
        assert_view(&ratio, now_ns, 7, 7);
    }
}

/* -- Time that goes back ------------------------------------------------------------------------------------------- */

static void a_slow_clock_loses_no_count_and_counts_nothing_twice(void **state)
{
    static const int64_t behind_ns[] = {1, S / 2, S, 5 * S, 9 * S, 10 * S};
    (void)state;
    for (size_t i = 0; i < COUNT(behind_ns); i++) {
        struct bide_inbound_ratio ratio = ratio_with_window(10 * S);
        int64_t now_ns = 100 * S + S / 2;
        count_times(&ratio, &first, 10, now_ns);
        count_times(&ratio, &second, 5, now_ns - behind_ns[i]);
        struct bide_inbound_ratio_view ahead = bide_inbound_ratio_get(&ratio, now_ns);
        assert_int_equal(ahead.requests - ahead.retries, 10); /* the earlier counts are still there */
        assert_view(&ratio, now_ns - behind_ns[i], 15, 5);    /* the slow clock sees both */
        assert_view(&ratio, now_ns + 30 * S, 0, 0);
    }
}

static void a_clock_set_far_back_starts_over(void **state)
{
    struct bide_inbound_ratio ratio = ratio_with_window(10 * S);
    (void)state;
    count_times(&ratio, &second, 3, 520 * S);
    count_times(&ratio, &second, 5, 500 * S); /* two windows */
    assert_view(&ratio, 500 * S, 5, 5);
    for (int64_t s = 1000; s < 1010; s++)
        count_times(&ratio, &second, 100, s * S);
    assert_true(bide_inbound_ratio_get(&ratio, 1009 * S).overloaded);
    assert_view(&ratio, 5 * S, 0, 0);
    for (int64_t s = 5; s < 15; s++)
        assert_false(count_times(&ratio, &first, 10, s * S));
    assert_view(&ratio, 14 * S, 100, 0);
}

static void negative_time_counts_as_zero(void **state)
{
    struct bide_inbound_ratio ratio = ratio_with_window(10 * S);
    (void)state;
    bide_inbound_ratio_count(&ratio, &first, -1);
    bide_inbound_ratio_count(&ratio, &second, INT64_MIN);
    assert_view(&ratio, 0, 2, 1);
    assert_view(&ratio, INT64_MIN, 2, 1);
}

static void the_latest_instant_is_valid(void **state)
{
    struct bide_inbound_ratio ratio = ratio_with_window(10 * BIDE_MS);
    (void)state;
    count_times(&ratio, &second, 3, LATEST);
    assert_view(&ratio, LATEST, 3, 3);
    count_times(&ratio, &second, 3, INT64_MAX); /* beyond all instants: harmless */
    (void)bide_inbound_ratio_get(&ratio, INT64_MAX);
}

static void arbitrary_memory_content_is_harmless(void **state)
{
    (void)state;
    for (int byte = 0; byte < 256; byte++) {
        struct bide_inbound_ratio ratio = ratio_with_window(10 * S);
        memset(ratio.first, byte, sizeof ratio.first);
        memset(ratio.retry, byte, sizeof ratio.retry);
        for (int64_t s = 1000; s < 1020; s++)
            count_times(&ratio, &first, 3, s * S);
        assert_view(&ratio, 1019 * S, 30, 0);
    }
}

/* -- Full counts --------------------------------------------------------------------------------------------------- */

static void a_full_count_saturates_and_keeps_its_lap(void **state)
{
    struct bide_inbound_ratio ratio = ratio_with_window(10 * S);
    (void)state;
    bide_inbound_ratio_count(&ratio, &first, 3 * S);
    bide_inbound_ratio_count(&ratio, &second, 3 * S);
    ratio.first[3] += FULL - 2;
    ratio.retry[3] += FULL - 2;
    assert_view(&ratio, 3 * S, 2 * FULL - 2, FULL - 1);
    count_times(&ratio, &first, 5, 3 * S);
    count_times(&ratio, &second, 5, 3 * S);
    assert_view(&ratio, 3 * S, 2 * FULL, FULL);
    assert_view(&ratio, 13 * S, 0, 0);
    bide_inbound_ratio_count(&ratio, &first, 13 * S);
    assert_view(&ratio, 13 * S, 1, 0);
}

static void ten_full_slots_are_summed_without_overflow(void **state)
{
    struct bide_inbound_ratio ratio = ratio_with_window(10 * S);
    (void)state;
    for (int64_t s = 0; s < 10; s++) {
        bide_inbound_ratio_count(&ratio, &first, s * S);
        bide_inbound_ratio_count(&ratio, &second, s * S);
        ratio.first[s] += FULL - 1;
        ratio.retry[s] += FULL - 1;
    }
    assert_view(&ratio, 9 * S, 20 * FULL, 10 * FULL);
    assert_true(bide_inbound_ratio_get(&ratio, 9 * S).overloaded);
}

static void a_lost_compare_and_swap_is_repeated(void **state)
{
    struct bide_inbound_ratio ratio = ratio_with_window(10 * S);
    (void)state;
    core_cas_failures = 3;
    bide_inbound_ratio_count(&ratio, &second, 5);
    assert_int_equal(core_cas_failures, 0);
    assert_view(&ratio, 5, 1, 1);
}

/* -- Overload ------------------------------------------------------------------------------------------------------ */

static void more_retries_than_the_share_are_overload(void **state)
{
    struct bide_inbound_ratio ratio = ratio_with_window(10 * S);
    (void)state;
    count_times(&ratio, &first, 90, 0);
    assert_false(count_times(&ratio, &second, 10, 0)); /* exactly a tenth */
    assert_true(bide_inbound_ratio_count(&ratio, &second, 0));
    /* First attempts are refused a retry, too, while the overload lasts. */
    assert_true(bide_inbound_ratio_count(&ratio, &first, 0));
    assert_false(count_times(&ratio, &first, 8, 0)); /* 11 of 110 */
    assert_true(count_times(&ratio, &second, 1, 0));
    assert_true(bide_inbound_ratio_get(&ratio, 9 * S).overloaded);
    assert_false(bide_inbound_ratio_get(&ratio, 10 * S).overloaded);
}

static void below_min_volume_nothing_is_overload(void **state)
{
    struct bide_inbound_ratio ratio = ratio_with_window(10 * S);
    (void)state;
    assert_false(count_times(&ratio, &second, 19, 0));
    assert_true(count_times(&ratio, &second, 1, 0));
    assert_false(bide_inbound_ratio_count(&ratio, &second, 10 * S));
}

static void a_share_of_1000_is_never_exceeded(void **state)
{
    struct bide_inbound_ratio ratio = ratio_with_window(10 * S);
    (void)state;
    ratio.config.share_permille = 1000;
    assert_false(count_times(&ratio, &second, 1000, 0));
    ratio.config.share_permille = 1;
    assert_true(count_times(&ratio, &second, 1, 0));
}

static void an_inbound_no_retry_is_always_answered_with_no_retry(void **state)
{
    static const struct bide_layer inner = {.attempt = 1, .left_ns = BIDE_NEVER, .no_retry = true};
    struct bide_inbound_ratio ratio = ratio_with_window(10 * S);
    (void)state;
    assert_true(bide_inbound_ratio_count(&ratio, &inner, 0));
    assert_false(bide_inbound_ratio_count(&ratio, &first, 0)); /* other requests are not affected */
    assert_view(&ratio, 0, 2, 0);
}

/* The window forgets; a full slot counts no further. */
static void totals_count_every_request_since_init(void **state)
{
    struct bide_inbound_ratio ratio = ratio_with_window(10 * S);
    (void)state;
    count_times(&ratio, &first, 5, 0);
    count_times(&ratio, &second, 3, 20 * S);
    count_times(&ratio, NULL, 1, 40 * S);
    ratio.retry[(60 * S / S) % BIDE_INBOUND_SLOTS] = UINT64_C(6) << 26 | FULL;
    count_times(&ratio, &second, 1, 60 * S);
    struct bide_inbound_ratio_view view = bide_inbound_ratio_get(&ratio, 200 * S);
    assert_int_equal(view.requests, 0);
    assert_int_equal(view.requests_total, 10);
    assert_int_equal(view.retries_total, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_defaults_are_as_documented_and_valid),
        cmocka_unit_test(an_invalid_field_is_named_and_nothing_is_changed),
        cmocka_unit_test(without_a_configuration_the_defaults_apply),
        cmocka_unit_test(range_limits_are_valid),
        cmocka_unit_test(the_attempt_header_distinguishes_first_attempts_and_retries),
        cmocka_unit_test(a_request_counts_for_nine_to_ten_tenths_of_the_window),
        cmocka_unit_test(steady_traffic_is_counted_exactly),
        cmocka_unit_test(a_stale_slot_is_reset_however_old_it_is),
        cmocka_unit_test(laps_that_differ_by_a_power_of_two_are_stale),
        cmocka_unit_test(idle_time_of_any_length_empties_the_window),
        cmocka_unit_test(a_slow_clock_loses_no_count_and_counts_nothing_twice),
        cmocka_unit_test(a_clock_set_far_back_starts_over),
        cmocka_unit_test(negative_time_counts_as_zero),
        cmocka_unit_test(the_latest_instant_is_valid),
        cmocka_unit_test(arbitrary_memory_content_is_harmless),
        cmocka_unit_test(a_full_count_saturates_and_keeps_its_lap),
        cmocka_unit_test(ten_full_slots_are_summed_without_overflow),
        cmocka_unit_test(a_lost_compare_and_swap_is_repeated),
        cmocka_unit_test(more_retries_than_the_share_are_overload),
        cmocka_unit_test(below_min_volume_nothing_is_overload),
        cmocka_unit_test(a_share_of_1000_is_never_exceeded),
        cmocka_unit_test(an_inbound_no_retry_is_always_answered_with_no_retry),
        cmocka_unit_test(totals_count_every_request_since_init),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
