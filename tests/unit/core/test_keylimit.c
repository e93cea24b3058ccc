/* test_keylimit.c - at most n retries of one key per interval: strictly, and in a table that cannot be flooded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include "core/gates.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))
#define MS           BIDE_MS
#define S            BIDE_S
#define NOW          (1000 * S)
#define TICK         (INT64_C(1) << 23) /* unit of the table's time: 8.4 ms */
#define WAYS         8u
#define SETS         (BIDE_KEY_WORDS / WAYS)

static struct bide_target target;

static void init_target(uint32_t retries, int64_t interval_ns)
{
    struct bide_target_config config;
    bide_target_config_init(&config, BIDE_PRESET_SERVICE);
    config.key_retries = retries;
    config.key_interval_ns = interval_ns;
    assert_int_equal(bide_target_init(&target, &config, NOW, NULL), BIDE_OK);
}

static uint32_t charged_at; /* entry that the last charge must refund */

static bool charge_key(uint32_t key, int64_t now_ns)
{
    return core_key_charge(&target, key, now_ns, &charged_at);
}

static void refund_key(uint32_t key, uint32_t tick)
{
    core_key_refund(&target, key, tick);
}

/* The n-th key that shares a set with all other keys of this family, and its tag with none. */
static uint32_t neighbour(uint32_t n)
{
    uint32_t key = n << 12;
    return key + (SETS - key % SETS) % SETS;
}

static void a_key_gets_exactly_its_retries(void **state)
{
    static const uint32_t limits[] = {1, 2, 3, 100, 255};
    for (size_t i = 0; i < COUNT(limits); i++) {
        init_target(limits[i], 30 * S);
        for (uint32_t n = 0; n < limits[i]; n++)
            assert_true(charge_key(7777777, NOW));
        assert_false(charge_key(7777777, NOW));
        assert_false(charge_key(7777777, NOW + 1 * S));
    }
}

static void every_key_has_its_own_limit(void **state)
{
    init_target(1, 30 * S);
    for (uint32_t n = 1; n <= WAYS; n++)
        assert_true(charge_key(neighbour(n), NOW));
    for (uint32_t n = 1; n <= WAYS; n++)
        assert_false(charge_key(neighbour(n), NOW));
}

/* Whenever a retry is allowed, fewer than n others were allowed in the interval that ends with it. Tested with a
 * clock that steps through the ticks of the table at every offset. */
static void no_interval_contains_more_retries_than_the_limit(void **state)
{
    static const int64_t intervals[] = {1 * MS, TICK - 1, TICK, TICK + 1, 10 * MS, 100 * MS, 1 * S};
    for (size_t i = 0; i < COUNT(intervals); i++)
        for (uint32_t limit = 1; limit <= 3; limit++) {
            int64_t taken[1000], interval = intervals[i];
            uint32_t n = 0;
            init_target(limit, interval);
            for (int64_t at = NOW; at < NOW + 5 * (interval + TICK) && n < COUNT(taken); at += interval / 97 + 12345)
                if (charge_key(1234567, at))
                    taken[n++] = at;
            assert_true(n > limit); /* retries continue afterwards */
            for (uint32_t k = limit; k < n; k++)
                assert_true(taken[k] - taken[k - limit] >= interval);
        }
}

static void the_limit_expires_soon_after_its_interval(void **state)
{
    init_target(2, 30 * S);
    assert_true(charge_key(99, NOW));
    assert_true(charge_key(99, NOW + 10 * S));
    assert_false(charge_key(99, NOW + 31 * S)); /* a whole interval without a retry is needed */
    assert_false(charge_key(99, NOW + 40 * S - 1));
    assert_true(charge_key(99, NOW + 40 * S + 2 * TICK));
    assert_true(charge_key(99, NOW + 40 * S + 2 * TICK));
    assert_false(charge_key(99, NOW + 40 * S + 2 * TICK));
}

static void a_refused_retry_does_not_extend_the_limit(void **state)
{
    init_target(1, 30 * S);
    assert_true(charge_key(99, NOW));
    for (int64_t at = NOW; at < NOW + 30 * S; at += 1 * S)
        assert_false(charge_key(99, at));
    assert_true(charge_key(99, NOW + 30 * S + 2 * TICK));
}

static void an_unsent_retry_is_refunded(void **state)
{
    init_target(2, 30 * S);
    assert_true(charge_key(99, NOW));
    assert_true(charge_key(99, NOW + 1 * S));
    refund_key(99, charged_at);
    assert_true(charge_key(99, NOW + 2 * S));
    assert_false(charge_key(99, NOW + 2 * S));
}

static void refunding_more_than_was_charged_stops_at_zero(void **state)
{
    init_target(1, 30 * S);
    assert_true(charge_key(99, NOW));
    for (int i = 0; i < 3; i++)
        refund_key(99, charged_at);
    refund_key(100, charged_at); /* nothing was charged */
    assert_true(charge_key(99, NOW));
    assert_false(charge_key(99, NOW));
}

/* The word does not record which retry was counted last: a late refund is ignored, which is the safe side. */
static void a_refund_after_another_retry_is_ignored(void **state)
{
    init_target(2, 30 * S);
    assert_true(charge_key(99, NOW));
    uint32_t first = charged_at;
    assert_true(charge_key(99, NOW + 1 * S));
    refund_key(99, first);
    assert_false(charge_key(99, NOW + 2 * S));
}

static void a_refund_after_its_interval_does_not_lower_the_next_count(void **state)
{
    init_target(1, 1 * S);
    assert_true(charge_key(99, NOW));
    uint32_t first = charged_at;
    assert_true(charge_key(99, NOW + 5 * S));
    refund_key(99, first); /* after a long wait */
    assert_false(charge_key(99, NOW + 5 * S));
}

static void a_full_set_refuses_new_keys_and_evicts_none(void **state)
{
    init_target(2, 30 * S);
    for (uint32_t n = 1; n <= WAYS; n++)
        assert_true(charge_key(neighbour(n), NOW));
    for (uint32_t n = WAYS + 1; n <= 100; n++)
        assert_false(charge_key(neighbour(n), NOW));
    for (uint32_t n = 1; n <= WAYS; n++) {
        assert_true(charge_key(neighbour(n), NOW));
        assert_false(charge_key(neighbour(n), NOW));
    }
    assert_true(charge_key(neighbour(50), NOW + 31 * S)); /* and then there is room again */
}

static void another_set_still_has_room(void **state)
{
    init_target(1, 30 * S);
    for (uint32_t n = 1; n <= WAYS; n++)
        assert_true(charge_key(neighbour(n), NOW));
    assert_false(charge_key(neighbour(9), NOW));
    assert_true(charge_key(neighbour(9) + 1, NOW));
    assert_true(charge_key(neighbour(9) + 2, NOW));
}

static void a_refunded_entry_is_free_for_another_key(void **state)
{
    init_target(1, 30 * S);
    for (uint32_t n = 1; n <= WAYS; n++)
        assert_true(charge_key(neighbour(n), NOW));
    refund_key(neighbour(3), charged_at);
    assert_true(charge_key(neighbour(20), NOW));
    assert_false(charge_key(neighbour(21), NOW));
}

static void a_charge_that_loses_a_race_counts_exactly_one_retry(void **state)
{
    for (uint32_t losses = 1; losses <= 3; losses++) {
        init_target(2, 30 * S);
        core_cas_failures = losses;
        assert_true(charge_key(99, NOW));
        assert_int_equal(core_cas_failures, 0);
        assert_true(charge_key(99, NOW));
        assert_false(charge_key(99, NOW));
    }
}

static void a_refund_that_loses_a_race_is_ignored(void **state)
{
    init_target(1, 30 * S);
    assert_true(charge_key(99, NOW));
    core_cas_failures = 1;
    refund_key(99, charged_at);
    assert_int_equal(core_cas_failures, 0);
    assert_false(charge_key(99, NOW));
}

/* Race: two threads read their clocks in one order and reach the table in the other. */
static void a_clock_slightly_behind_counts_the_same_entries(void **state)
{
    init_target(1, 30 * S);
    assert_true(charge_key(99, NOW));
    assert_false(charge_key(99, NOW - 1 * S));
    assert_false(core_key_is_evictable(&target, NOW - 1 * S));
}

static void a_lower_limit_applies_from_the_reload_on(void **state)
{
    struct bide_target_config config;
    init_target(5, 30 * S);
    for (int i = 0; i < 3; i++)
        assert_true(charge_key(99, NOW));
    bide_target_config_get(&target, &config);
    config.key_retries = 2;
    assert_int_equal(bide_target_configure(&target, &config, NOW, NULL), BIDE_OK);
    assert_false(charge_key(99, NOW));
    config.key_retries = 4;
    assert_int_equal(bide_target_configure(&target, &config, NOW, NULL), BIDE_OK);
    assert_true(charge_key(99, NOW));
    assert_false(charge_key(99, NOW));
}

static void the_key_table_is_evictable_when_no_entry_counts(void **state)
{
    init_target(1, 30 * S);
    assert_true(core_key_is_evictable(&target, NOW));
    assert_true(charge_key(99, NOW));
    assert_false(core_key_is_evictable(&target, NOW));
    assert_false(core_key_is_evictable(&target, NOW + 30 * S - 1));
    assert_true(core_key_is_evictable(&target, NOW + 30 * S + 2 * TICK));
    assert_true(charge_key(100, NOW));
    refund_key(100, charged_at);
    refund_key(99, charged_at); /* charged in the same tick */
    assert_true(core_key_is_evictable(&target, NOW));
}

/* 36 bits of ticks wrap after 18 years. */
static void the_limit_holds_across_a_tick_wrap(void **state)
{
    const int64_t end = INT64_C(1) << 59;
    init_target(1, 30 * S);
    assert_true(charge_key(99, end - 1 * S));
    assert_false(charge_key(99, end + 1 * S));
    assert_true(charge_key(99, end + 30 * S));
}

static bool other_admitted;

/* Another thread refunds the last entry of the set and charges the key 20 there. */
static void charge_the_same_key_elsewhere(uint64_t *word)
{
    uint32_t tick;
    refund_key(neighbour(1), charged_at);
    other_admitted = core_key_charge(&target, neighbour(20), NOW, &tick);
}

/* Fills the set but for one entry, then charges the key 20, while another thread does so too: in another entry. The
 * search takes the last free entry, so neighbour(1) is charged in the last. */
static bool charge_in_two_entries(uint32_t limit)
{
    init_target(limit, 30 * S);
    for (uint32_t n = 1; n < WAYS; n++)
        assert_true(charge_key(neighbour(n), NOW));
    core_before_cas = charge_the_same_key_elsewhere;
    return charge_key(neighbour(20), NOW);
}

/* Race: neither thread sees an entry of the key, and each takes another one. */
static void two_first_retries_in_two_entries_count_together(void **state)
{
    assert_false(charge_in_two_entries(1) && other_admitted);
    assert_true(other_admitted); /* it was first */
    assert_false(charge_key(neighbour(20), NOW));
    assert_true(charge_in_two_entries(3) && other_admitted);
    assert_true(charge_key(neighbour(20), NOW));
    assert_false(charge_key(neighbour(20), NOW));
}

static void a_reload_that_removes_the_limit_refuses_no_key(void **state)
{
    struct bide_target_config config;
    init_target(1, 30 * S);
    assert_true(charge_key(99, NOW));
    bide_target_config_get(&target, &config);
    config.key_retries = 0;
    assert_int_equal(bide_target_configure(&target, &config, NOW, NULL), BIDE_OK);
    for (int i = 0; i < 3; i++)
        assert_true(charge_key(99, NOW));
}

/* Another process wrote the limit: an entry has eight bits for its retries. */
static void a_limit_beyond_its_range_counts_as_255(void **state)
{
    init_target(1, 30 * S);
    target.config[0].key_retries = 1000;
    for (int i = 0; i < 255; i++)
        assert_true(charge_key(99, NOW));
    assert_false(charge_key(99, NOW));
}

static void every_entry_of_a_set_can_be_refunded(void **state)
{
    for (uint32_t n = 1; n <= WAYS; n++) {
        init_target(1, 30 * S);
        for (uint32_t other = 1; other <= WAYS; other++)
            assert_true(charge_key(neighbour(other), NOW));
        refund_key(neighbour(n), charged_at);
        for (uint32_t other = 1; other <= WAYS; other++)
            assert_int_equal(charge_key(neighbour(other), NOW), other == n);
    }
}

/* -- ends of the range --------------------------------------------------------------------------------------------- */

static uint64_t entry_word(uint32_t key, uint64_t retries, int64_t now_ns)
{
    return (uint64_t)(key >> 12) << 44 | retries << 36 | (uint64_t)(now_ns / TICK);
}

/* Half of the range of ticks counts as the future: nine years. */
static void an_entry_counts_as_old_for_half_of_the_range(void **state)
{
    int64_t half_ns = (NOW / TICK + (INT64_C(1) << 35) - 1) * TICK;
    init_target(1, 30 * S);
    assert_true(charge_key(99, NOW));
    assert_false(charge_key(99, half_ns + TICK));
    assert_true(charge_key(99, half_ns));
}

static void the_thread_that_exceeds_the_limit_refunds_its_charge(void **state)
{
    uint32_t charged = 0;
    assert_false(charge_in_two_entries(1));
    for (size_t i = 0; i < BIDE_KEY_WORDS; i++)
        charged += target.key[i] == entry_word(neighbour(20), 1, NOW);
    assert_int_equal(charged, 1);
}

/* A key of the next set, with the same tag. */
static void a_refund_stays_in_its_set(void **state)
{
    init_target(1, 30 * S);
    target.key[WAYS] = entry_word(neighbour(1), 1, NOW);
    refund_key(neighbour(1), (uint32_t)(NOW / TICK));
    assert_int_equal(target.key[WAYS], entry_word(neighbour(1), 1, NOW));
}

static void exactly_the_entries_of_the_table_prevent_eviction(void **state)
{
    struct bide_target_config config;
    bide_target_config_init(&config, BIDE_PRESET_SERVICE);
    int64_t now_ns = NOW;
    assert_int_equal(bide_target_init(&target, &config, now_ns, NULL), BIDE_OK);
    uint64_t retry = entry_word(7777777, 1, now_ns); /* as an entry: a retry */
    memcpy((char *)&target + offsetof(struct bide_target, key) + sizeof target.key, &retry, sizeof retry);
    assert_true(core_key_is_evictable(&target, now_ns));
    for (size_t i = 0; i < BIDE_KEY_WORDS; i++) {
        target.key[i] = entry_word(7777777, 1, now_ns);
        assert_false(core_key_is_evictable(&target, now_ns));
        target.key[i] = 0;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_gets_exactly_its_retries),
        cmocka_unit_test(every_key_has_its_own_limit),
        cmocka_unit_test(no_interval_contains_more_retries_than_the_limit),
        cmocka_unit_test(the_limit_expires_soon_after_its_interval),
        cmocka_unit_test(a_refused_retry_does_not_extend_the_limit),
        cmocka_unit_test(an_unsent_retry_is_refunded),
        cmocka_unit_test(refunding_more_than_was_charged_stops_at_zero),
        cmocka_unit_test(a_refund_after_another_retry_is_ignored),
        cmocka_unit_test(a_refund_after_its_interval_does_not_lower_the_next_count),
        cmocka_unit_test(a_full_set_refuses_new_keys_and_evicts_none),
        cmocka_unit_test(another_set_still_has_room),
        cmocka_unit_test(a_refunded_entry_is_free_for_another_key),
        cmocka_unit_test(a_charge_that_loses_a_race_counts_exactly_one_retry),
        cmocka_unit_test(a_refund_that_loses_a_race_is_ignored),
        cmocka_unit_test(a_clock_slightly_behind_counts_the_same_entries),
        cmocka_unit_test(a_lower_limit_applies_from_the_reload_on),
        cmocka_unit_test(the_key_table_is_evictable_when_no_entry_counts),
        cmocka_unit_test(the_limit_holds_across_a_tick_wrap),
        cmocka_unit_test(two_first_retries_in_two_entries_count_together),
        cmocka_unit_test(a_reload_that_removes_the_limit_refuses_no_key),
        cmocka_unit_test(a_limit_beyond_its_range_counts_as_255),
        cmocka_unit_test(every_entry_of_a_set_can_be_refunded),
        cmocka_unit_test(an_entry_counts_as_old_for_half_of_the_range),
        cmocka_unit_test(the_thread_that_exceeds_the_limit_refunds_its_charge),
        cmocka_unit_test(a_refund_stays_in_its_set),
        cmocka_unit_test(exactly_the_entries_of_the_table_prevent_eviction),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
