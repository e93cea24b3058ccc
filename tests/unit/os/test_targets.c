/* test_targets.c - the table of targets: names, eviction, overflow, memory and reload, in a single thread without a
 * clock.
 *
 * Concurrent threads are in tests/live/os/test_threads.c. */
#include <bide/bide.h>

#include "core/gates.h"
#include "os/memory.h"
#include "seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NOW (1000 * BIDE_S)

#ifdef __has_feature
#if __has_feature(thread_sanitizer)
#define __SANITIZE_THREAD__ 1 /* as gcc defines it */
#endif
#endif

static struct bide_target_config service_config(void)
{
    struct bide_target_config config;
    bide_target_config_init(&config, BIDE_PRESET_SERVICE);
    return config;
}

static struct bide_targets *new_table(size_t most)
{
    struct bide_target_config config = service_config();
    struct bide_targets *table;
    assert_int_equal(bide_targets_new(&table, most, &config, NULL), BIDE_OK);
    return table;
}

static const char *name_of(char prefix, unsigned number)
{
    static char name[32];
    snprintf(name, sizeof name, "%c%u.example", prefix, number);
    return name;
}

static struct bide_target *get_target(struct bide_targets *table, char prefix, unsigned number)
{
    struct bide_target *target = bide_targets_get(table, name_of(prefix, number), NOW);
    assert_non_null(target);
    return target;
}

static struct bide_target *find_target(struct bide_targets *table, char prefix, unsigned number)
{
    return bide_targets_find(table, name_of(prefix, number));
}

static void drain(struct bide_target *target)
{
    bide_budget_add_milli(target, -BIDE_S, NOW);
    assert_int_equal(bide_target_get(target, NOW).budget_left_milli, 0);
}

/* -- Names --------------------------------------------------------------------------------------------------------- */

static void each_name_has_its_own_target(void **state)
{
    struct bide_targets *table = new_table(10);
    struct bide_target *a = bide_targets_get(table, "payments", NOW), *b = bide_targets_get(table, "search", NOW);
    assert_ptr_not_equal(a, b);
    assert_ptr_equal(bide_targets_get(table, "payments", NOW), a);
    assert_ptr_equal(bide_targets_find(table, "search"), b);
    assert_null(bide_targets_find(table, "mail"));
    assert_int_equal(bide_targets_view_get(table).held, 2);
    bide_targets_free(table);
    bide_targets_free(NULL);
}

static void names_of_every_length_have_different_targets(void **state)
{
    struct bide_targets *table = new_table(200);
    struct bide_target *target[BIDE_TARGET_NAME_MAX + 1];
    char name[BIDE_TARGET_NAME_MAX + 1] = "";
    for (size_t n = 1; n <= BIDE_TARGET_NAME_MAX; n++) {
        name[n - 1] = 'a';
        target[n] = bide_targets_get(table, name, NOW);
    }
    assert_int_equal(bide_targets_view_get(table).held, BIDE_TARGET_NAME_MAX);
    for (size_t n = BIDE_TARGET_NAME_MAX; n >= 1; n--) {
        assert_ptr_equal(bide_targets_find(table, name), target[n]);
        name[n - 1] = 0;
    }
    bide_targets_free(table);
}

static void invalid_names_are_reported_and_get_the_overflow_target(void **state)
{
    struct bide_targets *table = new_table(10);
    struct bide_problem problem;
    char text[BIDE_TARGET_NAME_MAX + 2];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = 0;
    struct bide_target *overflow = bide_targets_get(table, text, NOW);
    assert_non_null(overflow);
    assert_int_equal(bide_targets_name_check(text, &problem), BIDE_ERR_INVALID);
    assert_string_equal(problem.field, "name");
    assert_int_equal(problem.value, 128);
    assert_ptr_equal(bide_targets_get(table, "", NOW), overflow);
    assert_ptr_equal(bide_targets_get(table, NULL, NOW), overflow);
    assert_int_equal(bide_targets_name_check(NULL, NULL), BIDE_ERR_INVALID);
    assert_null(bide_targets_find(table, text));
    assert_null(bide_targets_find(table, NULL));
    for (int byte = 1; byte < 256; byte++) {
        const char name[] = {'a', (char)byte, 0};
        bool fine = byte >= 0x20 && byte != 0x7f;
        assert_int_equal(bide_targets_name_check(name, &problem) == BIDE_OK, fine);
        if (fine)
            continue;
        assert_int_equal(problem.value, byte);
        assert_ptr_equal(bide_targets_get(table, name, NOW), overflow);
        assert_null(bide_targets_find(table, name));
    }
    assert_int_equal(bide_targets_view_get(table).held, 0);
    bide_targets_free(table);
}

static void bad_size_or_configuration_is_refused_with_its_field(void **state)
{
    struct bide_targets *table;
    struct bide_target_config config = service_config();
    struct bide_problem problem;
    const size_t bad[] = {0, 1000001, SIZE_MAX};
    for (size_t i = 0; i < 3; i++) {
        table = (struct bide_targets *)&config;
        assert_int_equal(bide_targets_new(&table, bad[i], &config, &problem), BIDE_ERR_INVALID);
        assert_int_equal(bide_targets_new(&table, bad[i], &config, NULL), BIDE_ERR_INVALID);
        assert_null(table);
        assert_string_equal(problem.field, "most");
        assert_int_equal(problem.value, bad[i] == SIZE_MAX ? INT64_MAX : (int64_t)bad[i]);
    }
    config.breaker.probes = 99;
    assert_int_equal(bide_targets_new(&table, 10, &config, &problem), BIDE_ERR_INVALID);
    assert_non_null(strstr(problem.field, "probes"));
    assert_null(table);
}

/* -- Eviction ------------------------------------------------------------------------------------------------------ */

static void full_table_evicts_an_evictable_target(void **state)
{
    struct bide_targets *table = new_table(3);
    for (unsigned i = 0; i < 4; i++)
        get_target(table, 'a', i);
    struct bide_targets_view count = bide_targets_view_get(table);
    assert_int_equal(count.held, 3);
    assert_int_equal(count.evicted, 1);
    assert_int_equal(count.overflowed, 0);
    assert_non_null(find_target(table, 'a', 3));
    bide_targets_free(table);
}

static void name_in_steady_use_outlives_names_used_once(void **state)
{
    struct bide_targets *table = new_table(10);
    struct bide_target *steady = bide_targets_get(table, "steady", NOW);
    for (unsigned i = 0; i < 1000; i++) {
        get_target(table, 'a', i);
        assert_ptr_equal(bide_targets_get(table, "steady", NOW), steady);
        assert_ptr_equal(bide_targets_find(table, "steady"), steady);
    }
    bide_targets_free(table);
}

static void targets_with_state_are_never_evicted(void **state)
{
    struct bide_targets *table = new_table(3);
    struct bide_target *drained = bide_targets_get(table, "drained", NOW);
    struct bide_target *open = bide_targets_get(table, "open", NOW);
    struct bide_target *hold_off = bide_targets_get(table, "held off", NOW);
    drain(drained);
    bide_breaker_hold(open, BIDE_HOLD_OPEN);
    bide_target_hold_off(hold_off, NOW + BIDE_MINUTE, NOW);
    struct bide_target *overflow = bide_targets_get(table, "more", NOW);
    assert_ptr_equal(bide_targets_get(table, "still more", NOW), overflow);
    assert_null(bide_targets_find(table, "more"));
    assert_int_equal(bide_targets_view_get(table).overflowed, 2);
    assert_int_equal(bide_targets_view_get(table).evicted, 0);
    assert_ptr_equal(bide_targets_find(table, "drained"), drained);
    assert_int_equal(bide_target_get(drained, NOW).budget_left_milli, 0);
    assert_int_equal(bide_target_get(open, NOW).breaker.state, BIDE_BREAKER_HELD_OPEN);
    assert_int_equal(bide_target_get(hold_off, NOW).hold_off_until_ns, NOW + BIDE_MINUTE);
    assert_ptr_equal(bide_targets_get(table, "more", NOW + 2 * BIDE_MINUTE), hold_off); /* no longer worth keeping */
    bide_targets_free(table);
}

static void names_in_the_overflow_target_share_a_budget(void **state)
{
    struct bide_targets *table = new_table(1);
    drain(get_target(table, 'a', 0));
    drain(get_target(table, 'a', 1));
    assert_int_equal(bide_target_get(get_target(table, 'a', 2), NOW).budget_left_milli, 0);
    bide_targets_free(table);
}

static void overflow_target_starts_when_first_needed(void **state)
{
    struct bide_target_config config = service_config();
    struct bide_targets *table;
    config.budget.initial_milli = 0;
    config.budget.refill_per_minute_milli = 1000;
    assert_int_equal(bide_targets_new(&table, 1, &config, NULL), BIDE_OK);
    bide_breaker_hold(get_target(table, 'a', 0), BIDE_HOLD_OPEN);
    struct bide_target *overflow = get_target(table, 'a', 1);
    assert_null(find_target(table, 'a', 1));
    assert_int_equal(bide_target_get(overflow, NOW).budget_left_milli, 0); /* no refill for the time before */
    bide_targets_free(table);
}

static void target_with_a_refilled_budget_may_be_evicted(void **state)
{
    struct bide_targets *table = new_table(1);
    drain(get_target(table, 'a', 0));
    assert_ptr_not_equal(get_target(table, 'a', 1), find_target(table, 'a', 0));
    bide_targets_get(table, "later", NOW + 60 * BIDE_MINUTE);
    assert_null(find_target(table, 'a', 0));
    assert_non_null(bide_targets_find(table, "later"));
    bide_targets_free(table);
}

/* One target among a thousand becomes evictable, after a long time without any: it is found after as many insertions as
 * it takes to examine all slots, no later. */
static void evictable_target_is_found_after_a_bounded_number_of_insertions(void **state)
{
    enum { MOST = 1000, EARNED = 16 };
    struct bide_targets *table = new_table(MOST);
    for (unsigned i = 0; i < MOST; i++)
        drain(get_target(table, 'a', i));
    for (unsigned blank = 0; blank < 5; blank++) {
        for (unsigned i = 0; i < 200; i++) /* until no scan credit is left */
            get_target(table, 'b', i);
        assert_int_equal(bide_targets_view_get(table).evicted, blank);
        bide_budget_add_milli(find_target(table, 'a', blank * 199), BIDE_S, NOW);
        struct bide_target *last = NULL;
        for (unsigned i = 0; i <= MOST / EARNED && bide_targets_view_get(table).evicted == blank; i++)
            last = get_target(table, 'c', blank * 100 + i);
        assert_int_equal(bide_targets_view_get(table).evicted, blank + 1);
        assert_null(find_target(table, 'a', blank * 199));
        drain(last);
    }
    bide_targets_free(table);
}

#ifdef __SANITIZE_THREAD__
#define MILLION 100000u /* fifty times slower there, and a single thread has no races */
#else
#define MILLION 1000000u
#endif

static unsigned allocations;

static bool count_allocation(void)
{
    allocations++;
    return false;
}

static void assert_state_kept(struct bide_targets *table, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        struct bide_target *target = find_target(table, 'm', i);
        assert_non_null(target);
        if (i % 2 == 0)
            assert_int_equal(bide_target_get(target, NOW).budget_left_milli, 0);
        else
            assert_int_equal(bide_target_get(target, NOW).breaker.state, BIDE_BREAKER_HELD_OPEN);
    }
}

static void give_state(struct bide_targets *table, unsigned first, unsigned count)
{
    for (unsigned i = first; i < first + count; i++)
        if (i % 2 == 0)
            drain(get_target(table, 'm', i));
        else
            bide_breaker_hold(get_target(table, 'm', i), BIDE_HOLD_OPEN);
}

static void a_million_names_use_bounded_memory_and_evict_no_state(void **state)
{
    enum { MOST = 1000 };
    allocations = 0;
    os_memory_refuses = count_allocation;
    struct bide_targets *table = new_table(MOST);
    give_state(table, 0, MOST / 2);
    for (unsigned i = 0; i < MILLION / 2; i++) /* half of the table is evictable: no overflow */
        get_target(table, 'x', i);
    struct bide_targets_view count = bide_targets_view_get(table);
    assert_int_equal(count.held, MOST);
    assert_int_equal(count.evicted, MILLION / 2 - MOST / 2);
    assert_int_equal(count.overflowed, 0);
    give_state(table, MOST / 2, MOST / 2);
    uint64_t before = bide_targets_view_get(table).overflowed;
    struct bide_target *overflow = get_target(table, 'y', 0);
    for (unsigned i = 1; i < MILLION / 2; i++) /* nothing is evictable: every name overflows */
        assert_ptr_equal(get_target(table, 'y', i), overflow);
    assert_int_equal(bide_targets_view_get(table).overflowed - before, MILLION / 2);
    assert_state_kept(table, MOST);
    os_memory_refuses = NULL;
    assert_true(allocations <= 3 + MOST / 32 + 1);
    bide_targets_free(table);
}

/* -- Against the invariants, at random ----------------------------------------------------------------------------- */

static uint64_t random_state; /* SplitMix64 */

static unsigned random_below(unsigned below)
{
    uint64_t x = random_state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return (unsigned)((x ^ x >> 31) % below);
}

enum { NAMES = 200, ROOM = 64 };

/* Checks that each found name has its own target, that `held` is the number found, and that no drained target is
 * missing. */
static void assert_consistent(struct bide_targets *table, const bool *drained)
{
    struct bide_target *seen[NAMES];
    size_t found = 0;
    for (unsigned i = 0; i < NAMES; i++) {
        struct bide_target *target = find_target(table, 'n', i);
        assert_true(target != NULL || !drained[i]);
        if (target == NULL)
            continue;
        assert_int_equal(bide_target_get(target, NOW).budget_left_milli == 0, drained[i]);
        for (size_t j = 0; j < found; j++)
            assert_ptr_not_equal(seen[j], target);
        seen[found++] = target;
    }
    assert_int_equal(found, bide_targets_view_get(table).held);
}

static void random_insertions_and_evictions_keep_the_table_consistent_from(uint64_t seed)
{
    random_state = seed;
    struct bide_targets *table = new_table(ROOM);
    bool drained[NAMES] = {false};
    for (int step = 0; step < 20000; step++) {
        unsigned i = random_below(NAMES);
        struct bide_target *target = get_target(table, 'n', i);
        if (find_target(table, 'n', i) != target)
            continue; /* it overflowed */
        if (random_below(10) == 0)
            drain(target);
        else if (drained[i] && random_below(2) == 0)
            bide_budget_add_milli(target, BIDE_S, NOW);
        drained[i] = bide_target_get(target, NOW).budget_left_milli == 0;
        if (step % 50 == 0)
            assert_consistent(table, drained);
    }
    assert_true(bide_targets_view_get(table).evicted > 0);
    bide_targets_free(table);
}

static void random_insertions_and_evictions_keep_the_table_consistent(void **state)
{
    seed_each(1, random_insertions_and_evictions_keep_the_table_consistent_from);
}

/* -- Memory -------------------------------------------------------------------------------------------------------- */

static unsigned allocation_count, fail_from, fail_until;

static bool fail_allocation(void)
{
    allocation_count++;
    return allocation_count >= fail_from && allocation_count < fail_until;
}

static void fail_allocations(unsigned from, unsigned until)
{
    allocation_count = 0;
    fail_from = from;
    fail_until = until;
    os_memory_refuses = fail_allocation;
}

static void table_creation_fails_without_memory(void **state)
{
    struct bide_target_config config = service_config();
    for (unsigned n = 1; n <= 3; n++)
        for (int for_ever = 0; for_ever <= 1; for_ever++) {
            struct bide_targets *table = (struct bide_targets *)&config;
            fail_allocations(n, for_ever ? UINT32_MAX : n + 1);
            assert_int_equal(bide_targets_new(&table, 100, &config, NULL), BIDE_ERR_NOMEM);
            assert_null(table);
            os_memory_refuses = NULL;
        }
}

static void table_of_the_process_is_created_once_there_is_memory(void **state)
{
    struct bide_target_config service = service_config(), found;
    fail_allocations(1, UINT32_MAX);
    assert_null(bide_targets_default());
    os_memory_refuses = NULL;
    struct bide_targets *table = bide_targets_default();
    assert_non_null(table);
    assert_ptr_equal(bide_targets_default(), table);
    bide_target_config_get(bide_targets_get(table, "payments", NOW), &found);
    assert_memory_equal(&found, &service, sizeof found);
    for (unsigned i = 0; i < 2000; i++)
        get_target(table, 'p', i);
    assert_int_equal(bide_targets_view_get(table).held, 1024);
}

static void name_without_memory_overflows_and_is_created_later(void **state)
{
    struct bide_targets *table = new_table(100);
    fail_allocations(1, UINT32_MAX);
    struct bide_target *overflow = get_target(table, 'a', 0);
    assert_ptr_equal(get_target(table, 'a', 1), overflow);
    assert_int_equal(bide_targets_view_get(table).held, 0);
    assert_int_equal(bide_targets_view_get(table).overflowed, 2);
    os_memory_refuses = NULL;
    assert_ptr_not_equal(get_target(table, 'a', 0), overflow);
    assert_int_equal(bide_targets_view_get(table).held, 1);
    bide_targets_free(table);
}

/* The allocation of a chunk fails once: names that arrive meanwhile replace evictable ones. */
static void table_without_memory_evicts_instead_of_growing(void **state)
{
    struct bide_targets *table = new_table(100);
    for (unsigned i = 0; i < 32; i++)
        get_target(table, 'a', i);
    fail_allocations(1, 2);
    assert_non_null(get_target(table, 'b', 0));
    assert_int_equal(bide_targets_view_get(table).evicted, 1);
    assert_non_null(find_target(table, 'b', 0));
    get_target(table, 'b', 1);
    assert_int_equal(bide_targets_view_get(table).held, 33);
    os_memory_refuses = NULL;
    bide_targets_free(table);
}

/* -- Reload -------------------------------------------------------------------------------------------------------- */

static uint32_t capacity_of(struct bide_target *target)
{
    struct bide_target_config config;
    bide_target_config_get(target, &config);
    return config.budget.capacity_milli;
}

static void reload_reaches_all_targets_and_keeps_their_state(void **state)
{
    struct bide_targets *table = new_table(2);
    struct bide_target *a = get_target(table, 'a', 0), *b = get_target(table, 'a', 1);
    drain(a);
    drain(b);
    struct bide_target *overflow = get_target(table, 'a', 2);
    struct bide_target_config config = service_config();
    config.budget.capacity_milli = 77000;
    assert_int_equal(bide_targets_configure(table, &config, NOW, NULL), BIDE_OK);
    assert_int_equal(capacity_of(a), 77000);
    assert_int_equal(capacity_of(b), 77000);
    assert_int_equal(capacity_of(overflow), 77000);
    assert_int_equal(bide_target_get(a, NOW).budget_left_milli, 0);
    struct bide_target *later = bide_targets_get(table, "later", NOW + 120 * BIDE_MINUTE); /* in the slot of a or b */
    assert_ptr_not_equal(later, overflow);
    assert_int_equal(capacity_of(later), 77000);
    bide_targets_free(table);
}

static void targets_created_after_a_reload_have_the_new_configuration(void **state)
{
    struct bide_targets *table = new_table(2);
    struct bide_target_config config = service_config();
    config.budget.capacity_milli = 77000;
    assert_int_equal(bide_targets_configure(table, &config, NOW, NULL), BIDE_OK);
    drain(get_target(table, 'a', 0));
    drain(get_target(table, 'a', 1));
    assert_int_equal(capacity_of(get_target(table, 'a', 1)), 77000);
    assert_int_equal(capacity_of(get_target(table, 'a', 2)), 77000); /* overflow */
    bide_targets_free(table);
}

static void bad_configuration_changes_nothing(void **state)
{
    struct bide_targets *table = new_table(2);
    struct bide_target *a = get_target(table, 'a', 0);
    struct bide_target_config config = service_config();
    struct bide_problem problem;
    uint32_t before = capacity_of(a);
    config.budget.capacity_milli = 77000;
    config.breaker.probes = 99;
    assert_int_equal(bide_targets_configure(table, &config, NOW, &problem), BIDE_ERR_INVALID);
    assert_non_null(strstr(problem.field, "probes"));
    assert_int_equal(capacity_of(a), before);
    assert_int_equal(capacity_of(get_target(table, 'a', 1)), before);
    config.breaker.probes = 1;
    assert_int_equal(bide_targets_configure(table, &config, NOW, &problem), BIDE_OK);
    assert_int_equal(capacity_of(a), 77000);
    bide_targets_free(table);
}

/* As if a thread had stopped in the middle of configuring one of them. */
static void busy_target_is_reported_and_does_not_delay_the_others(void **state)
{
    struct bide_targets *table = new_table(3);
    struct bide_target *a = get_target(table, 'a', 0), *busy = get_target(table, 'a', 1),
                       *c = get_target(table, 'a', 2);
    struct bide_target_config config = service_config();
    config.budget.capacity_milli = 77000;
    busy->claim = NOW | 1;
    assert_int_equal(bide_targets_configure(table, &config, NOW, NULL), BIDE_ERR_BUSY);
    assert_int_equal(capacity_of(a), 77000);
    assert_int_not_equal(capacity_of(busy), 77000);
    assert_int_equal(capacity_of(c), 77000);
    busy->claim = 0;
    assert_int_equal(bide_targets_configure(table, &config, NOW, NULL), BIDE_OK);
    assert_int_equal(capacity_of(busy), 77000);
    bide_targets_free(table);
}

/* -- Calls in flight ----------------------------------------------------------------------------------------------- */

static void call_does_not_touch_its_target_after_reuse(void **state)
{
    struct bide_targets *table = new_table(1);
    struct bide_policy policy;
    struct bide_call call = {0};
    struct bide_request request = {.safety = BIDE_SAFE, .seed = 1};
    struct bide_outcome failed = {.kind = BIDE_KIND_TRANSIENT};
    bide_policy_init(&policy, BIDE_PRESET_SERVICE);
    struct bide_target *old = get_target(table, 'a', 0);
    assert_int_equal(bide_call_begin(&call, &policy, old, &request, NOW).action, BIDE_ACTION_START);
    assert_ptr_equal(get_target(table, 'a', 1), old);
    bide_call_outcome(&call, 1, &failed, NOW + BIDE_MS);
    bide_call_cancel(&call, NOW + 2 * BIDE_MS);
    assert_true(core_target_is_evictable(old, NOW + 2 * BIDE_MS));
    assert_int_equal(bide_targets_view_get(table).evicted, 1);
    bide_targets_free(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_name_has_its_own_target),
        cmocka_unit_test(names_of_every_length_have_different_targets),
        cmocka_unit_test(invalid_names_are_reported_and_get_the_overflow_target),
        cmocka_unit_test(bad_size_or_configuration_is_refused_with_its_field),
        cmocka_unit_test(full_table_evicts_an_evictable_target),
        cmocka_unit_test(name_in_steady_use_outlives_names_used_once),
        cmocka_unit_test(targets_with_state_are_never_evicted),
        cmocka_unit_test(names_in_the_overflow_target_share_a_budget),
        cmocka_unit_test(overflow_target_starts_when_first_needed),
        cmocka_unit_test(target_with_a_refilled_budget_may_be_evicted),
        cmocka_unit_test(evictable_target_is_found_after_a_bounded_number_of_insertions),
        cmocka_unit_test(a_million_names_use_bounded_memory_and_evict_no_state),
        cmocka_unit_test(random_insertions_and_evictions_keep_the_table_consistent),
        cmocka_unit_test(table_creation_fails_without_memory),
        cmocka_unit_test(table_of_the_process_is_created_once_there_is_memory),
        cmocka_unit_test(name_without_memory_overflows_and_is_created_later),
        cmocka_unit_test(table_without_memory_evicts_instead_of_growing),
        cmocka_unit_test(reload_reaches_all_targets_and_keeps_their_state),
        cmocka_unit_test(targets_created_after_a_reload_have_the_new_configuration),
        cmocka_unit_test(bad_configuration_changes_nothing),
        cmocka_unit_test(busy_target_is_reported_and_does_not_delay_the_others),
        cmocka_unit_test(call_does_not_touch_its_target_after_reuse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
