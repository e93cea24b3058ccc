/* test_queue.c - the event queue: the total order, compared with a sort and with the plain heap, for all distributions
 * of events that a storm can produce. */
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
#define RUN_MAX      2016u /* of queue.c: larger buckets are redistributed before sorting */

static uint64_t random_state; /* SplitMix64 */

static uint64_t random_below(uint64_t below)
{
    return core_mix(random_state += CORE_GOLDEN) % below;
}

/* ---- push, pop, and compare with a sort ---- */

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

static struct sim_event *new_events(size_t n)
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

/* Pops n events and compares them with these, which are sorted. */
static void pop_all(struct sim_queue *queue, const struct sim_event *event, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct sim_event popped;
        assert_int_equal(sim_queue_count(queue), n - i);
        assert_true(sim_queue_pop(queue, &popped));
        if (!same(popped, event[i]))
            fail_msg("%zu: (%lld, %u, %u) instead of (%lld, %u, %u), chance %llx", i, (long long)popped.at_ns,
                     popped.id, popped.seq, (long long)event[i].at_ns, event[i].id, event[i].seq,
                     (unsigned long long)random_state);
    }
    struct sim_event none;
    assert_false(sim_queue_pop(queue, &none));
    assert_int_equal(sim_queue_count(queue), 0);
}

/* Checks that both queues pop the events in sorted order. Frees the events. */
static void assert_sorted(struct sim_event *event, size_t n)
{
    for (int plain = 0; plain <= 1; plain++) {
        struct sim_queue *queue = sim_queue_new(plain);
        assert_non_null(queue);
        push_all(queue, event, n);
        struct sim_event *sorted = new_events(n);
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
        size_t j = random_below(i);
        struct sim_event moved = event[j];
        event[j] = event[i - 1];
        event[i - 1] = moved;
    }
}

/* ---- order ---- */

static void empty_queue_pops_nothing(void **state)
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

static void events_are_ordered_by_time_then_id_then_sequence(void **state)
{
    static const struct sim_event order[] = {
        {0, 0, 0}, {0, 0, 1}, {0, 1, 0}, {0, UINT32_MAX, UINT32_MAX}, {1, 0, 7}, {1, 3, 2}, {1, 3, 3}, {2, 1, 9},
    };
    for (size_t turn = 0; turn < 200; turn++) {
        struct sim_event *event = new_events(COUNT(order));
        for (size_t i = 0; i < COUNT(order); i++)
            event[i] = order[i];
        shuffle(event, COUNT(order));
        assert_sorted(event, COUNT(order));
    }
}

static void largest_times_are_ordered(void **state)
{
    struct sim_event *event = new_events(5000);
    for (uint32_t i = 0; i < 5000; i++)
        event[i] = (struct sim_event){INT64_MAX - (int64_t)random_below(2000),
                                      (uint32_t)random_below(3) * (UINT32_MAX / 2), i};
    event[0] = (struct sim_event){INT64_MAX, UINT32_MAX, UINT32_MAX};
    assert_sorted(event, 5000);
}

/* Distributions of times: a few instants, a narrow span, a wide span, powers of two, half a herd. */
static void queue_pops_events_in_sorted_order(void **state)
{
    static const size_t sizes[] = {1, 2, 15, 16, 17, 62, 63, 64, RUN_MAX - 1, RUN_MAX, RUN_MAX + 1, 60000};
    for (size_t s = 0; s < COUNT(sizes); s++)
        for (int kind = 0; kind < 6; kind++) {
            struct sim_event *event = new_events(sizes[s]);
            for (size_t i = 0; i < sizes[s]; i++) {
                uint64_t at_ns = kind == 0   ? random_below(3)
                                 : kind == 1 ? 1000000007 + random_below(1000)
                                 : kind == 2 ? random_below(100 * MS)
                                 : kind == 3 ? random_below((uint64_t)INT64_MAX)
                                 : kind == 4
                                     ? UINT64_C(1) << random_below(63)
                                     : (random_below(2) ? 77 * MS : random_below(100 * MS)); /* half of them at the same
                                                                                              * instant */
                event[i] =
                    (struct sim_event){(int64_t)at_ns, (uint32_t)random_below(sizes[s]), (uint32_t)random_below(3)};
            }
            assert_sorted(event, sizes[s]);
        }
}

static void events_of_one_instant_are_popped_by_id(void **state)
{
    const size_t n = 150000;
    for (int kind = 0; kind < 3; kind++) {
        struct sim_event *event = new_events(n);
        for (uint32_t i = 0; i < n; i++)
            event[i] = (struct sim_event){300 * MS, kind == 1 ? (uint32_t)n - i : i, 1};
        if (kind == 2)
            shuffle(event, n);
        assert_sorted(event, n);
    }
}

static void equal_events_are_all_popped(void **state)
{
    const size_t n = 4 * RUN_MAX;
    struct sim_event *event = new_events(n);
    for (size_t i = 0; i < n; i++)
        event[i] = (struct sim_event){5 * MS + (i % 4 == 0), 7, 7};
    assert_sorted(event, n);
}

/* Times like 2^k: no slots of equal width separate them. */
static void geometrically_clustered_times_are_sorted(void **state)
{
    const size_t n = RUN_MAX;
    struct sim_event *event = new_events(n);
    for (size_t i = 0; i < n; i++)
        event[i] = (struct sim_event){INT64_C(1) << (i % 60), UINT32_C(1) << i % 32, (uint32_t)(n - i)};
    assert_sorted(event, n);
}

/* ---- pushed while popping ---- */

/* Returns the time of a new event; kinds: storms, sparse worlds, and the far end of time. */
static int64_t ahead_ns(int kind, int64_t now_ns)
{
    uint64_t max = kind == 0   ? 1
                   : kind == 1 ? 40
                   : kind == 2 ? (uint64_t)MS
                   : kind == 3 ? UINT64_C(1) << random_below(40)
                   : kind == 4 ? (random_below(5) == 0 ? 10000 * MS : 50)
                               : (uint64_t)(INT64_MAX - now_ns);
    uint64_t left = (uint64_t)(INT64_MAX - now_ns), distance = random_below(max + 1 ? max + 1 : max);
    return now_ns + (int64_t)(distance < left ? distance : left);
}

struct pair {
    struct sim_queue *radix, *plain;
    int64_t now_ns;
    uint32_t seq;
};

static void push_to_both(struct pair *pair, int kind, uint32_t ids)
{
    struct sim_event event = {ahead_ns(kind, pair->now_ns), (uint32_t)random_below(ids), pair->seq++};
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

/* Fills the queue, keeps its level and empties it, in waves. */
static void run_both(uint64_t seed, int kind, uint32_t max)
{
    random_state = seed;
    struct pair pair = {sim_queue_new(false), sim_queue_new(true), 0, 0};
    for (int wave = 0; wave < 4; wave++) {
        size_t level = random_below(max);
        while (sim_queue_count(pair.radix) < level) {
            push_to_both(&pair, kind, max);
            if (random_below(4) == 0)
                pop_from_both(&pair);
        }
        for (size_t i = 0; i < 2 * level; i++) {
            pop_from_both(&pair);
            for (uint64_t more = random_below(3); more > 0; more--)
                push_to_both(&pair, kind, max);
        }
        while (sim_queue_count(pair.radix) > level / 2)
            pop_from_both(&pair);
    }
    while (pop_from_both(&pair))
        ;
    sim_queue_free(pair.radix);
    sim_queue_free(pair.plain);
}

static void radix_heap_and_binary_heap_agree_on_random_operations(void **state)
{
    for (uint64_t seed = 1; seed <= 20; seed++)
        for (int kind = 0; kind < 6; kind++) {
            print_message("seed %d, kind %d\n", (int)seed, kind);
            run_both(seed, kind, seed % 4 == 0 ? 20000 : seed % 4 == 1 ? 6 : 1000);
        }
}

static void event_may_be_pushed_for_the_current_instant(void **state)
{
    struct sim_queue *queue = sim_queue_new(false);
    struct sim_event event;
    for (uint32_t id = 10; id < 5000; id++)
        assert_true(sim_queue_push(queue, (struct sim_event){MS, id, 0}));
    for (uint32_t id = 10; id < 5000; id++) {
        assert_true(sim_queue_pop(queue, &event));
        assert_int_equal(event.id, id);
        assert_true(sim_queue_push(queue, (struct sim_event){MS, id, 1})); /* directly after it */
        assert_true(sim_queue_push(queue, (struct sim_event){MS, 3, id})); /* before all other events */
        assert_true(sim_queue_pop(queue, &event));
        assert_true(same(event, (struct sim_event){MS, 3, id}));
        assert_true(sim_queue_pop(queue, &event));
        assert_true(same(event, (struct sim_event){MS, id, 1}));
    }
    assert_int_equal(sim_queue_count(queue), 0);
    sim_queue_free(queue);
}

/* ---- ahead ---- */

static void peeked_id_is_popped_at_its_position(void **state)
{
    struct sim_queue *queue = sim_queue_new(false);
    size_t known = 0;
    random_state = 5;
    for (uint32_t i = 0; i < 100000; i++)
        assert_true(sim_queue_push(queue, (struct sim_event){(int64_t)random_below(100 * MS), i, 0}));
    static uint32_t predicted[100000]; /* id + 1, expected 8 pops later */
    struct sim_event event;
    for (size_t i = 0; sim_queue_pop(queue, &event); i++) {
        if (predicted[i])
            assert_int_equal(event.id, predicted[i] - 1);
        known += predicted[i] != 0;
        uint32_t id;
        if (sim_queue_peek_id(queue, 7, &id))
            predicted[i + 8] = id + 1;
    }
    assert_true(known > 90000); /* otherwise prefetching would be useless */
    sim_queue_free(queue);
}

/* ---- memory ---- */

static void millions_of_events_need_little_more_than_16_bytes_each(void **state)
{
    const size_t n = 3000000;
    struct sim_queue *queue = sim_queue_new(false);
    random_state = 9;
    for (uint32_t i = 0; i < n; i++)
        assert_true(sim_queue_push(queue, (struct sim_event){(int64_t)random_below(100 * MS), i, 0}));
    size_t held = sim_queue_bytes(queue);
    assert_true(held >= 16 * n && held < 17 * n + ((size_t)40 << 20)); /* the last slab may be nearly empty */
    struct sim_event event;
    for (size_t i = 0; i < n; i++) {
        assert_true(sim_queue_pop(queue, &event));
        event.at_ns += (int64_t)random_below(100 * MS);
        assert_true(sim_queue_push(queue, event));
    }
    assert_true(sim_queue_bytes(queue) < held + ((size_t)64 << 10)); /* chunks are reused */
    sim_queue_free(queue);
}

static unsigned allocations, refuse_from;

static bool refuse(void)
{
    return ++allocations >= refuse_from;
}

/* Pushes events until allocations fail; the accepted events are popped in order without any memory. */
static void fill_until_refused(bool plain, unsigned from, size_t n)
{
    struct sim_event *taken = new_events(n);
    size_t count = 0;
    allocations = 0;
    refuse_from = from;
    os_memory_refuses = refuse;
    struct sim_queue *queue = sim_queue_new(plain);
    for (uint32_t i = 0; queue && i < n; i++) {
        struct sim_event event = {(int64_t)random_below(random_below(2) ? 1000 * MS : UINT64_C(1) << random_below(50)),
                                  (uint32_t)random_below(1000), i};
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

static void failed_push_loses_no_event(void **state)
{
    random_state = 3;
    for (unsigned from = 1; from <= 8; from++) {
        fill_until_refused(false, from, 200000);
        fill_until_refused(true, from, 200000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_queue_pops_nothing),
        cmocka_unit_test(events_are_ordered_by_time_then_id_then_sequence),
        cmocka_unit_test(largest_times_are_ordered),
        cmocka_unit_test(queue_pops_events_in_sorted_order),
        cmocka_unit_test(events_of_one_instant_are_popped_by_id),
        cmocka_unit_test(equal_events_are_all_popped),
        cmocka_unit_test(geometrically_clustered_times_are_sorted),
        cmocka_unit_test(radix_heap_and_binary_heap_agree_on_random_operations),
        cmocka_unit_test(event_may_be_pushed_for_the_current_instant),
        cmocka_unit_test(peeked_id_is_popped_at_its_position),
        cmocka_unit_test(millions_of_events_need_little_more_than_16_bytes_each),
        cmocka_unit_test(failed_push_loses_no_event),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
