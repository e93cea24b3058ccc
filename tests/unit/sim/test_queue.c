/* test_sim_queue.c - what happens next: the total order, held against a sort and against the plain heap, in every crowd
 * that a storm can make. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs these */
#include <cmocka.h>

#include <stdlib.h>

#include "core/random.h"
#include "os/memory.h"
#include "sim/queue.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))
#define MS           INT64_C(1000000)
#define RUN_MAX      2016u /* of queue.c: what is more than this is not sorted at once */

static uint64_t chance; /* SplitMix64 */

static uint64_t any(uint64_t below)
{
    return core_mix(chance += CORE_GOLDEN) % below;
}

/* ---- a crowd: pushed, popped, and held against a sort ---- */

static int by_order(const void *a, const void *b)
{
    const struct sim_event *x = a, *y = b;
    if (x->at_ns != y->at_ns)
        return x->at_ns < y->at_ns ? -1 : 1;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return (x->seq > y->seq) - (x->seq < y->seq);
}

static bool same(struct sim_event a, struct sim_event b)
{
    return by_order(&a, &b) == 0;
}

static struct sim_event *crowd(size_t n)
{
    struct sim_event *event = calloc(n, sizeof *event);
    assert_non_null(event);
    return event;
}

static void push_all(struct sim_queue *queue, const struct sim_event *event, size_t n)
{
    for (size_t i = 0; i < n; i++)
        assert_true(sim_queue_push(queue, event[i]));
}

/* Pops n events that must be these, which are in order. */
static void pop_all(struct sim_queue *queue, const struct sim_event *event, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct sim_event popped;
        assert_int_equal(sim_queue_count(queue), n - i);
        assert_true(sim_queue_pop(queue, &popped));
        if (!same(popped, event[i]))
            fail_msg("%zu: (%lld, %u, %u) instead of (%lld, %u, %u), chance %llx", i, (long long)popped.at_ns,
                     popped.id, popped.seq, (long long)event[i].at_ns, event[i].id, event[i].seq,
                     (unsigned long long)chance);
    }
    struct sim_event none;
    assert_false(sim_queue_pop(queue, &none));
    assert_int_equal(sim_queue_count(queue), 0);
}

/* What was pushed comes out as a sort has it. Frees the events. */
static void assert_sorted(struct sim_event *event, size_t n)
{
    for (int plain = 0; plain <= 1; plain++) {
        struct sim_queue *queue = sim_queue_new(plain);
        assert_non_null(queue);
        push_all(queue, event, n);
        struct sim_event *sorted = crowd(n);
        for (size_t i = 0; i < n; i++)
            sorted[i] = event[i];
        qsort(sorted, n, sizeof *sorted, by_order);
        pop_all(queue, sorted, n);
        free(sorted);
        sim_queue_free(queue);
    }
    free(event);
}

static void shuffle(struct sim_event *event, size_t n)
{
    for (size_t i = n; i > 1; i--) {
        size_t j = any(i);
        struct sim_event moved = event[j];
        event[j] = event[i - 1];
        event[i - 1] = moved;
    }
}

/* ---- order ---- */

static void an_empty_queue_has_nothing(void **state)
{
    for (int plain = 0; plain <= 1; plain++) {
        struct sim_queue *queue = sim_queue_new(plain);
        struct sim_event event;
        uint32_t id;
        assert_false(sim_queue_pop(queue, &event));
        assert_false(sim_queue_peek_id(queue, 0, &id));
        assert_int_equal(sim_queue_count(queue), 0);
        sim_queue_free(queue);
    }
    sim_queue_free(NULL);
}

static void time_comes_first_then_the_id_then_the_sequence(void **state)
{
    static const struct sim_event order[] = {
        {0, 0, 0}, {0, 0, 1}, {0, 1, 0}, {0, UINT32_MAX, UINT32_MAX}, {1, 0, 7}, {1, 3, 2}, {1, 3, 3}, {2, 1, 9},
    };
    for (size_t turn = 0; turn < 200; turn++) {
        struct sim_event *event = crowd(COUNT(order));
        for (size_t i = 0; i < COUNT(order); i++)
            event[i] = order[i];
        shuffle(event, COUNT(order));
        assert_sorted(event, COUNT(order));
    }
}

static void the_last_instants_of_all_are_in_order_too(void **state)
{
    struct sim_event *event = crowd(5000);
    for (uint32_t i = 0; i < 5000; i++)
        event[i] = (struct sim_event){INT64_MAX - (int64_t)any(2000), (uint32_t)any(3) * (UINT32_MAX / 2), i};
    event[0] = (struct sim_event){INT64_MAX, UINT32_MAX, UINT32_MAX};
    assert_sorted(event, 5000);
}

/* A crowd of each kind: a handful of instants, a narrow span, a wide one, and every power of two. */
static void any_crowd_comes_out_as_a_sort_has_it(void **state)
{
    static const size_t sizes[] = {1, 2, 15, 16, 17, 62, 63, 64, RUN_MAX - 1, RUN_MAX, RUN_MAX + 1, 60000};
    for (size_t s = 0; s < COUNT(sizes); s++)
        for (int kind = 0; kind < 6; kind++) {
            struct sim_event *event = crowd(sizes[s]);
            for (size_t i = 0; i < sizes[s]; i++) {
                uint64_t at_ns = kind == 0   ? any(3)
                                 : kind == 1 ? 1000000007 + any(1000)
                                 : kind == 2 ? any(100 * MS)
                                 : kind == 3 ? any((uint64_t)INT64_MAX)
                                 : kind == 4 ? UINT64_C(1) << any(63)
                                             : (any(2) ? 77 * MS : any(100 * MS)); /* half of them a herd */
                event[i] = (struct sim_event){(int64_t)at_ns, (uint32_t)any(sizes[s]), (uint32_t)any(3)};
            }
            assert_sorted(event, sizes[s]);
        }
}

static void a_herd_of_one_instant_comes_by_id_in_whatever_order_it_was_pushed(void **state)
{
    const size_t n = 150000;
    for (int kind = 0; kind < 3; kind++) {
        struct sim_event *event = crowd(n);
        for (uint32_t i = 0; i < n; i++)
            event[i] = (struct sim_event){300 * MS, kind == 1 ? (uint32_t)n - i : i, 1};
        if (kind == 2)
            shuffle(event, n);
        assert_sorted(event, n);
    }
}

static void equal_events_are_all_given_out(void **state)
{
    const size_t n = 4 * RUN_MAX;
    struct sim_event *event = crowd(n);
    for (size_t i = 0; i < n; i++)
        event[i] = (struct sim_event){5 * MS + (i % 4 == 0), 7, 7};
    assert_sorted(event, n);
}

/* Times like 2^k, closer and closer: no slot of equal width spreads them. */
static void crowds_within_crowds_are_sorted(void **state)
{
    const size_t n = RUN_MAX;
    struct sim_event *event = crowd(n);
    for (size_t i = 0; i < n; i++)
        event[i] = (struct sim_event){INT64_C(1) << (i % 60), UINT32_C(1) << i % 32, (uint32_t)(n - i)};
    assert_sorted(event, n);
}

/* ---- pushed while popping ---- */

/* How far ahead an event is pushed; the kinds of a storm, a sparse world, and the far end of time. */
static int64_t ahead_ns(int kind, int64_t now_ns)
{
    uint64_t most = kind == 0   ? 1
                    : kind == 1 ? 40
                    : kind == 2 ? (uint64_t)MS
                    : kind == 3 ? UINT64_C(1) << any(40)
                    : kind == 4 ? (any(5) == 0 ? 10000 * MS : 50)
                                : (uint64_t)(INT64_MAX - now_ns);
    uint64_t left = (uint64_t)(INT64_MAX - now_ns), distance = any(most + 1 ? most + 1 : most);
    return now_ns + (int64_t)(distance < left ? distance : left);
}

struct pair {
    struct sim_queue *radix, *plain;
    int64_t now_ns;
    uint32_t seq;
};

static void push_to_both(struct pair *pair, int kind, uint32_t ids)
{
    struct sim_event event = {ahead_ns(kind, pair->now_ns), (uint32_t)any(ids), pair->seq++};
    assert_true(sim_queue_push(pair->radix, event));
    assert_true(sim_queue_push(pair->plain, event));
}

static bool pop_from_both(struct pair *pair)
{
    struct sim_event a, b;
    bool some = sim_queue_pop(pair->radix, &a);
    assert_int_equal(sim_queue_pop(pair->plain, &b), some);
    assert_int_equal(sim_queue_count(pair->radix), sim_queue_count(pair->plain));
    if (!some)
        return false;
    if (!same(a, b))
        fail_msg("(%lld, %u, %u) instead of (%lld, %u, %u)", (long long)a.at_ns, a.id, a.seq, (long long)b.at_ns, b.id,
                 b.seq);
    assert_true(a.at_ns >= pair->now_ns);
    pair->now_ns = a.at_ns;
    return true;
}

/* In waves: the queue fills, holds its level, and empties. */
static void run_both(uint64_t seed, int kind, uint32_t most)
{
    chance = seed;
    struct pair pair = {sim_queue_new(false), sim_queue_new(true), 0, 0};
    for (int wave = 0; wave < 4; wave++) {
        size_t level = any(most);
        while (sim_queue_count(pair.radix) < level) {
            push_to_both(&pair, kind, most);
            if (any(4) == 0)
                pop_from_both(&pair);
        }
        for (size_t i = 0; i < 2 * level; i++) {
            pop_from_both(&pair);
            for (uint64_t more = any(3); more > 0; more--)
                push_to_both(&pair, kind, most);
        }
        while (sim_queue_count(pair.radix) > level / 2)
            pop_from_both(&pair);
    }
    while (pop_from_both(&pair))
        ;
    sim_queue_free(pair.radix);
    sim_queue_free(pair.plain);
}

static void both_queues_agree_on_random_pushes_and_pops(void **state)
{
    for (uint64_t seed = 1; seed <= 20; seed++)
        for (int kind = 0; kind < 6; kind++) {
            print_message("seed %d, kind %d\n", (int)seed, kind);
            run_both(seed, kind, seed % 4 == 0 ? 20000 : seed % 4 == 1 ? 6 : 1000);
        }
}

static void an_event_may_be_pushed_for_the_instant_that_was_popped_last(void **state)
{
    struct sim_queue *queue = sim_queue_new(false);
    struct sim_event event;
    for (uint32_t id = 10; id < 5000; id++)
        assert_true(sim_queue_push(queue, (struct sim_event){MS, id, 0}));
    for (uint32_t id = 10; id < 5000; id++) {
        assert_true(sim_queue_pop(queue, &event));
        assert_int_equal(event.id, id);
        assert_true(sim_queue_push(queue, (struct sim_event){MS, id, 1})); /* right behind it */
        assert_true(sim_queue_push(queue, (struct sim_event){MS, 3, id})); /* before everything that is left */
        assert_true(sim_queue_pop(queue, &event));
        assert_true(same(event, (struct sim_event){MS, 3, id}));
        assert_true(sim_queue_pop(queue, &event));
        assert_true(same(event, (struct sim_event){MS, id, 1}));
    }
    assert_int_equal(sim_queue_count(queue), 0);
    sim_queue_free(queue);
}

/* ---- ahead ---- */

static void what_is_said_to_come_soon_comes_then(void **state)
{
    struct sim_queue *queue = sim_queue_new(false);
    size_t known = 0;
    chance = 5;
    for (uint32_t i = 0; i < 100000; i++)
        assert_true(sim_queue_push(queue, (struct sim_event){(int64_t)any(100 * MS), i, 0}));
    static uint32_t said[100000]; /* in 8 pops: one more than the id */
    struct sim_event event;
    for (size_t i = 0; sim_queue_pop(queue, &event); i++) {
        if (said[i])
            assert_int_equal(event.id, said[i] - 1);
        known += said[i] != 0;
        uint32_t id;
        if (sim_queue_peek_id(queue, 7, &id))
            said[i + 8] = id + 1;
    }
    assert_true(known > 90000); /* or prefetching would be worth little */
    sim_queue_free(queue);
}

/* ---- memory ---- */

static void millions_of_events_take_little_more_than_their_sixteen_bytes(void **state)
{
    const size_t n = 3000000;
    struct sim_queue *queue = sim_queue_new(false);
    chance = 9;
    for (uint32_t i = 0; i < n; i++)
        assert_true(sim_queue_push(queue, (struct sim_event){(int64_t)any(100 * MS), i, 0}));
    size_t held = sim_queue_bytes(queue);
    assert_true(held >= 16 * n && held < 17 * n + ((size_t)40 << 20)); /* the last slab may be nearly empty */
    struct sim_event event;
    for (size_t i = 0; i < n; i++) {
        assert_true(sim_queue_pop(queue, &event));
        event.at_ns += (int64_t)any(100 * MS);
        assert_true(sim_queue_push(queue, event));
    }
    assert_true(sim_queue_bytes(queue) < held + ((size_t)64 << 10)); /* chunks go round */
    sim_queue_free(queue);
}

static unsigned allocations, refuse_from;

static bool refuse(void)
{
    return ++allocations >= refuse_from;
}

/* Pushes, each of which may be refused; those that were taken come out in order, although there is no memory any
 * more. */
static void fill_until_refused(bool plain, unsigned from, size_t n)
{
    struct sim_event *taken = crowd(n);
    size_t count = 0;
    allocations = 0;
    refuse_from = from;
    os_memory_refuses = refuse;
    struct sim_queue *queue = sim_queue_new(plain);
    for (uint32_t i = 0; queue && i < n; i++) {
        struct sim_event event = {(int64_t)any(any(2) ? 1000 * MS : UINT64_C(1) << any(50)), (uint32_t)any(1000), i};
        if (sim_queue_push(queue, event))
            taken[count++] = event;
        assert_int_equal(sim_queue_count(queue), count);
    }
    assert_true(from > 1 ? queue != NULL && count < n : queue == NULL);
    if (queue) {
        qsort(taken, count, sizeof *taken, by_order);
        pop_all(queue, taken, count);
    }
    os_memory_refuses = NULL;
    sim_queue_free(queue);
    free(taken);
}

static void without_memory_a_push_is_refused_and_nothing_is_lost(void **state)
{
    chance = 3;
    for (unsigned from = 1; from <= 8; from++) {
        fill_until_refused(false, from, 200000);
        fill_until_refused(true, from, 200000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_queue_has_nothing),
        cmocka_unit_test(time_comes_first_then_the_id_then_the_sequence),
        cmocka_unit_test(the_last_instants_of_all_are_in_order_too),
        cmocka_unit_test(any_crowd_comes_out_as_a_sort_has_it),
        cmocka_unit_test(a_herd_of_one_instant_comes_by_id_in_whatever_order_it_was_pushed),
        cmocka_unit_test(equal_events_are_all_given_out),
        cmocka_unit_test(crowds_within_crowds_are_sorted),
        cmocka_unit_test(both_queues_agree_on_random_pushes_and_pops),
        cmocka_unit_test(an_event_may_be_pushed_for_the_instant_that_was_popped_last),
        cmocka_unit_test(what_is_said_to_come_soon_comes_then),
        cmocka_unit_test(millions_of_events_take_little_more_than_their_sixteen_bytes),
        cmocka_unit_test(without_memory_a_push_is_refused_and_nothing_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
