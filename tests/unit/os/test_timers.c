/* test_timers.c - the timer queue: order, moving, removing, memory, and random operations compared with a plain
 * list. */
#include <bide/timers.h>

#include "os/memory.h"
#include "seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define MANY 300u

static void empty_queue_is_never_due(void **state)
{
    struct bide_timers q = {0};
    assert_int_equal(bide_timers_due_get(&q), BIDE_NEVER);
    assert_null(bide_timers_pop(&q, BIDE_NEVER));
    bide_timers_free(&q);
    bide_timers_free(&q);
    bide_timers_free(NULL);
}

static void timer_is_popped_when_due_and_not_a_nanosecond_before(void **state)
{
    struct bide_timers q = {0};
    struct bide_timer t = {0};
    assert_int_equal(bide_timers_set(&q, &t, 100), BIDE_OK);
    assert_int_equal(bide_timers_due_get(&q), 100);
    assert_null(bide_timers_pop(&q, 99));
    assert_ptr_equal(bide_timers_pop(&q, 100), &t);
    assert_int_equal(t.place, 0);
    assert_null(bide_timers_pop(&q, 100));
    bide_timers_free(&q);
}

static void timers_due_at_the_same_instant_fire_in_the_order_of_setting(void **state)
{
    struct bide_timers q = {0};
    struct bide_timer t[MANY] = {{0}};
    for (size_t i = 0; i < MANY; i++)
        assert_int_equal(bide_timers_set(&q, &t[i], 7), BIDE_OK);
    for (size_t i = 0; i < MANY; i++)
        assert_ptr_equal(bide_timers_pop(&q, 7), &t[i]);
    bide_timers_free(&q);
}

static void moved_timer_fires_at_its_new_time_only(void **state)
{
    struct bide_timers q = {0};
    struct bide_timer a = {0}, b = {0};
    bide_timers_set(&q, &a, 10);
    bide_timers_set(&q, &b, 20);
    bide_timers_set(&q, &a, 30);
    assert_null(bide_timers_pop(&q, 10));
    assert_int_equal(bide_timers_due_get(&q), 20);
    bide_timers_set(&q, &a, 5);
    assert_ptr_equal(bide_timers_pop(&q, 30), &a);
    assert_ptr_equal(bide_timers_pop(&q, 30), &b);
    assert_null(bide_timers_pop(&q, 30));
    bide_timers_free(&q);
}

static void moved_timer_fires_after_timers_already_due_then(void **state)
{
    struct bide_timers q = {0};
    struct bide_timer a = {0}, b = {0};
    bide_timers_set(&q, &a, 10);
    bide_timers_set(&q, &b, 20);
    bide_timers_set(&q, &a, 20);
    assert_ptr_equal(bide_timers_pop(&q, 20), &b);
    assert_ptr_equal(bide_timers_pop(&q, 20), &a);
    bide_timers_free(&q);
}

static void setting_a_timer_to_its_present_instant_keeps_its_turn(void **state)
{
    struct bide_timers q = {0};
    struct bide_timer a = {0}, b = {0};
    bide_timers_set(&q, &a, 10);
    bide_timers_set(&q, &b, 10);
    bide_timers_set(&q, &a, 10);
    assert_ptr_equal(bide_timers_pop(&q, 10), &a);
    assert_ptr_equal(bide_timers_pop(&q, 10), &b);
    bide_timers_free(&q);
}

static void setting_a_timer_to_never_removes_it(void **state)
{
    struct bide_timers q = {0};
    struct bide_timer a = {0}, b = {0};
    assert_int_equal(bide_timers_set(&q, &a, BIDE_NEVER), BIDE_OK);
    assert_int_equal(q.room, 0); /* nothing was allocated */
    bide_timers_set(&q, &a, 10);
    bide_timers_set(&q, &b, 20);
    assert_int_equal(bide_timers_set(&q, &a, BIDE_NEVER), BIDE_OK);
    assert_int_equal(bide_timers_set(&q, &a, BIDE_NEVER), BIDE_OK);
    assert_ptr_equal(bide_timers_pop(&q, 100), &b);
    assert_null(bide_timers_pop(&q, BIDE_NEVER));
    assert_int_equal(bide_timers_set(&q, &a, 30), BIDE_OK);
    assert_ptr_equal(bide_timers_pop(&q, 30), &a);
    bide_timers_free(&q);
}

static void timers_of_a_freed_queue_can_be_set_again(void **state)
{
    struct bide_timers q = {0};
    struct bide_timer a = {0}, b = {0};
    bide_timers_set(&q, &a, 10);
    bide_timers_set(&q, &b, 20);
    bide_timers_free(&q);
    assert_int_equal(bide_timers_due_get(&q), BIDE_NEVER);
    assert_int_equal(bide_timers_set(&q, &b, BIDE_NEVER), BIDE_OK);
    assert_int_equal(bide_timers_set(&q, &b, 5), BIDE_OK);
    assert_int_equal(bide_timers_set(&q, &a, 4), BIDE_OK);
    assert_ptr_equal(bide_timers_pop(&q, 5), &a);
    assert_ptr_equal(bide_timers_pop(&q, 5), &b);
    bide_timers_free(&q);
}

/* -- Memory -------------------------------------------------------------------------------------------------------- */

static size_t allocation_count, fail_from, fail_until;

static bool fail_allocation(void)
{
    allocation_count++;
    return allocation_count >= fail_from && allocation_count < fail_until;
}

static void fail_allocations(size_t from, size_t until)
{
    allocation_count = 0;
    fail_from = from;
    fail_until = until;
    os_memory_refuses = fail_allocation;
}

static void drain_in_order(struct bide_timers *q, struct bide_timer *t)
{
    for (size_t i = 0; i < MANY; i++)
        assert_ptr_equal(bide_timers_pop(q, BIDE_NEVER), &t[i]);
    assert_null(bide_timers_pop(q, BIDE_NEVER));
}

/* Sets all timers, retrying each until it succeeds, while the n-th allocation fails (and, with for_ever, all after
 * it). */
static void set_all_despite_failures(size_t n, bool for_ever)
{
    struct bide_timers q = {0};
    struct bide_timer t[MANY] = {{0}};
    fail_allocations(n, for_ever ? SIZE_MAX : n + 1);
    for (size_t i = 0; i < MANY; i++) {
        struct bide_timers before = q;
        if (bide_timers_set(&q, &t[i], (int64_t)i) == BIDE_OK)
            continue;
        assert_memory_equal(&q, &before, sizeof q);
        assert_int_equal(t[i].place, 0);
        if (i > 0) { /* moving and removing need no memory */
            assert_int_equal(bide_timers_set(&q, &t[0], BIDE_NEVER), BIDE_OK);
            assert_int_equal(bide_timers_set(&q, &t[0], 0), BIDE_OK);
            assert_int_equal(bide_timers_set(&q, &t[i - 1], 1 << 20), BIDE_OK);
            assert_int_equal(bide_timers_set(&q, &t[i - 1], (int64_t)i - 1), BIDE_OK);
        }
        os_memory_refuses = for_ever ? NULL : fail_allocation;
        assert_int_equal(bide_timers_set(&q, &t[i], (int64_t)i), BIDE_OK);
    }
    os_memory_refuses = NULL;
    drain_in_order(&q, t);
    bide_timers_free(&q);
}

static void queue_without_memory_stays_unchanged(void **state)
{
    for (size_t n = 1; n <= 6; n++) { /* 16, 32, 64, 128, 256, 512 */
        set_all_despite_failures(n, false);
        set_all_despite_failures(n, true);
    }
}

static void queue_does_not_grow_beyond_size_max(void **state)
{
    size_t most = SIZE_MAX / 2 / sizeof(struct bide_timer *) + 1;
    struct bide_timers q = {.count = most, .room = most};
    struct bide_timer t = {0};
    assert_int_equal(bide_timers_set(&q, &t, 1), BIDE_ERR_NOMEM);
    assert_int_equal(q.count, most);
}

/* -- Comparison with a plain list ---------------------------------------------------------------------------------- */

struct entry {
    int64_t due_ns;
    uint64_t turn;
    bool set;
};

static uint64_t random_state; /* SplitMix64 */

static uint64_t random_below(uint64_t below)
{
    uint64_t x = random_state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return (x ^ x >> 31) % below;
}

static size_t first_of(const struct entry *list)
{
    size_t best = MANY;
    for (size_t i = 0; i < MANY; i++)
        if (list[i].set && (best == MANY || list[i].due_ns < list[best].due_ns ||
                            (list[i].due_ns == list[best].due_ns && list[i].turn < list[best].turn)))
            best = i;
    return best;
}

static void set_both(struct bide_timers *q, struct bide_timer *t, struct entry *entry, int64_t due_ns)
{
    static uint64_t turns;
    if (!entry->set || entry->due_ns != due_ns)
        *entry = (struct entry){.due_ns = due_ns, .turn = turns++, .set = due_ns != BIDE_NEVER};
    assert_int_equal(bide_timers_set(q, t, due_ns), BIDE_OK);
    assert_int_equal(t->place != 0, entry->set);
}

static void pop_both(struct bide_timers *q, struct bide_timer *t, struct entry *list, int64_t now_ns)
{
    size_t first = first_of(list);
    bool due = first < MANY && list[first].due_ns <= now_ns;
    assert_int_equal(bide_timers_due_get(q), first < MANY ? list[first].due_ns : BIDE_NEVER);
    assert_ptr_equal(bide_timers_pop(q, now_ns), due ? &t[first] : NULL);
    if (due)
        list[first].set = false;
}

static void random_operations_agree_with_a_sorted_list_from(uint64_t seed)
{
    random_state = seed;
    struct bide_timers q = {0};
    struct bide_timer t[MANY] = {{0}};
    struct entry list[MANY] = {{0}};
    for (int step = 0; step < 20000; step++) {
        size_t i = random_below(MANY);
        uint64_t operation = random_below(8);
        if (operation < 5)
            set_both(&q, &t[i], &list[i], (int64_t)random_below(64)); /* few instants: many ties */
        else if (operation == 5)
            set_both(&q, &t[i], &list[i], BIDE_NEVER);
        else
            pop_both(&q, t, list, (int64_t)random_below(64));
    }
    for (size_t i = 0; i <= MANY; i++)
        pop_both(&q, t, list, BIDE_NEVER);
    assert_int_equal(q.count, 0);
    bide_timers_free(&q);
}

static void random_operations_agree_with_a_sorted_list(void **state)
{
    seed_each(1, random_operations_agree_with_a_sorted_list_from);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_queue_is_never_due),
        cmocka_unit_test(timer_is_popped_when_due_and_not_a_nanosecond_before),
        cmocka_unit_test(timers_due_at_the_same_instant_fire_in_the_order_of_setting),
        cmocka_unit_test(moved_timer_fires_at_its_new_time_only),
        cmocka_unit_test(moved_timer_fires_after_timers_already_due_then),
        cmocka_unit_test(setting_a_timer_to_its_present_instant_keeps_its_turn),
        cmocka_unit_test(setting_a_timer_to_never_removes_it),
        cmocka_unit_test(timers_of_a_freed_queue_can_be_set_again),
        cmocka_unit_test(queue_without_memory_stays_unchanged),
        cmocka_unit_test(queue_does_not_grow_beyond_size_max),
        cmocka_unit_test(random_operations_agree_with_a_sorted_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
