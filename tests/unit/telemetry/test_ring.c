/* test_ring.c - the ring between calls and the export thread: order, room, padding, wake-ups, and many threads. */
#include "telemetry/ring.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define CAPACITY 65536u

static struct telemetry_ring ring;

static int begin(void **state)
{
    (void)state;
    return telemetry_ring_init(&ring, 1) ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    telemetry_ring_free(&ring);
    return 0;
}

/* Puts a record of `size` bytes that are all `byte`. Returns false if the ring is full. */
static bool put(size_t size, int byte)
{
    struct telemetry_place place = telemetry_ring_reserve(&ring, size);
    if (place.at == NULL)
        return false;
    for (size_t i = 0; i < size; i++)
        assert_int_equal(((unsigned char *)place.at)[i], 0);
    memset(place.at, byte, size);
    telemetry_ring_publish(&ring, &place);
    return true;
}

static void take(size_t size, int byte)
{
    size_t got;
    const unsigned char *record = telemetry_ring_peek(&ring, &got);
    assert_non_null(record);
    assert_int_equal(got, (size + 7) / 8 * 8);
    for (size_t i = 0; i < size; i++)
        assert_int_equal(record[i], byte);
    telemetry_ring_pop(&ring);
}

static void records_come_out_in_their_order(void **state)
{
    size_t size;
    (void)state;
    assert_null(telemetry_ring_peek(&ring, &size));
    put(3, 1);
    put(8, 2);
    put(100, 3);
    take(3, 1);
    take(8, 2);
    take(100, 3);
    assert_null(telemetry_ring_peek(&ring, &size));
    assert_int_equal(telemetry_ring_pending(&ring), 0);
}

/* Sizes that leave every possible rest before the end of the memory, many rounds long. */
static void records_of_all_sizes_survive_the_end_of_the_memory(void **state)
{
    unsigned in = 0, out = 0;
    (void)state;
    while (in < 100000) {
        while (put(1 + in * 7 % 3001, (int)(in % 255) + 1))
            in++;
        for (unsigned i = 0; i < 5 && out < in; i++, out++)
            take(1 + out * 7 % 3001, (int)(out % 255) + 1);
    }
    for (; out < in; out++)
        take(1 + out * 7 % 3001, (int)(out % 255) + 1);
    assert_int_equal(telemetry_ring_pending(&ring), 0);
}

static void a_full_ring_refuses_the_newest_record(void **state)
{
    unsigned in = 0;
    (void)state;
    while (put(56, (int)(in % 250) + 1))
        in++;
    assert_int_equal(in, CAPACITY / 64);
    assert_int_equal(telemetry_ring_pending(&ring), CAPACITY);
    assert_false(put(1, 1));
    take(56, 1);
    assert_true(put(56, 255));
    for (unsigned i = 1; i < in; i++)
        take(56, (int)(i % 250) + 1);
    take(56, 255);
}

static void records_can_be_looked_at_before_they_are_taken(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) { /* so that the end of the memory, and padding before it, comes by */
        unsigned in = 0, seen = 0;
        while (put(3000, (int)++in))
            if (in % 3 == 0)
                assert_int_equal(*(const char *)telemetry_ring_look_ahead(&ring), ++seen);
        for (const char *record; (record = telemetry_ring_look_ahead(&ring)) != NULL;)
            assert_int_equal(*record, ++seen);
        assert_int_equal(seen, --in);
        for (unsigned out = 1; out <= in; out++) {
            size_t size;
            assert_non_null(telemetry_ring_peek(&ring, &size));
            assert_true(telemetry_ring_has_passed(&ring));
            take(3000, (int)out);
        }
    }
    put(8, 1);
    assert_false(telemetry_ring_has_passed(&ring));
    take(8, 1);
    put(8, 2); /* what was taken is not shown */
    assert_int_equal(*(const char *)telemetry_ring_look_ahead(&ring), 2);
}

static void an_unpublished_record_holds_up_those_behind_it(void **state)
{
    size_t size;
    (void)state;
    struct telemetry_place first = telemetry_ring_reserve(&ring, 8);
    put(8, 2);
    assert_null(telemetry_ring_peek(&ring, &size));
    memset(first.at, 1, 8);
    telemetry_ring_publish(&ring, &first);
    take(8, 1);
    take(8, 2);
}

static bool put_wakes(size_t size)
{
    struct telemetry_place place = telemetry_ring_reserve(&ring, size);
    return telemetry_ring_publish(&ring, &place);
}

static void one_producer_wakes_the_consumer_per_announcement(void **state)
{
    size_t size;
    (void)state;
    assert_false(put_wakes(56));
    assert_true(telemetry_ring_sleep(&ring, 256)); /* 64 are there */
    assert_false(put_wakes(56));
    assert_false(put_wakes(56));
    assert_true(put_wakes(56)); /* 256 */
    assert_false(put_wakes(56));
    assert_false(telemetry_ring_sleep(&ring, 256));
    telemetry_ring_awake(&ring);
    while (telemetry_ring_peek(&ring, &size) != NULL)
        telemetry_ring_pop(&ring);
    assert_true(telemetry_ring_sleep(&ring, 1));
    telemetry_ring_awake(&ring);
    assert_false(put_wakes(56));
}

/* ---- many threads ---- */

#define PRODUCERS 4u
#define RECORDS   20000u

struct numbered {
    uint64_t producer;
    uint64_t number;
    uint64_t copies[29]; /* of the number: a torn record would show */
};

static uint64_t dropped[PRODUCERS];
static uint32_t finished;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static uint32_t wakes;

static void wake(void)
{
    pthread_mutex_lock(&lock);
    wakes++;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
}

static void *produce(void *context)
{
    uint64_t producer = (uintptr_t)context;
    for (uint64_t number = 1; number <= RECORDS; number++) {
        size_t copies = (number * 7 + producer) % 29;
        struct telemetry_place place = telemetry_ring_reserve(&ring, 16 + 8 * copies);
        if (place.at == NULL) {
            dropped[producer]++;
            sched_yield();
            continue;
        }
        struct numbered *record = place.at;
        record->producer = producer;
        record->number = number;
        for (size_t i = 0; i < copies; i++)
            record->copies[i] = number;
        if (telemetry_ring_publish(&ring, &place))
            wake();
    }
    __atomic_add_fetch(&finished, 1, __ATOMIC_SEQ_CST);
    wake();
    return NULL;
}

/* Checks a record, in the order of its producer. */
static void check(const struct numbered *record, size_t size, uint64_t last[PRODUCERS])
{
    assert_true(record->producer < PRODUCERS && record->number > last[record->producer]);
    last[record->producer] = record->number;
    assert_int_equal(size, 16 + 8 * ((record->number * 7 + record->producer) % 29));
    for (size_t i = 0; i < size / 8 - 2; i++)
        assert_int_equal(record->copies[i], record->number);
}

/* Sleeps until a producer wakes it. A lost wake-up would hang here. */
static void doze(uint32_t *seen)
{
    if (!telemetry_ring_sleep(&ring, 4096))
        return;
    pthread_mutex_lock(&lock);
    while (wakes == *seen)
        pthread_cond_wait(&changed, &lock);
    *seen = wakes;
    pthread_mutex_unlock(&lock);
    telemetry_ring_awake(&ring);
}

static void every_record_of_many_threads_arrives_whole_or_is_dropped(void **state)
{
    pthread_t thread[PRODUCERS];
    uint64_t last[PRODUCERS] = {0}, count = 0, lost = 0;
    uint32_t seen = 0;
    (void)state;
    for (uintptr_t i = 0; i < PRODUCERS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, produce, (void *)i), 0);
    for (bool is_last = false; !is_last;) {
        size_t size;
        is_last = __atomic_load_n(&finished, __ATOMIC_SEQ_CST) == PRODUCERS;
        for (const void *record; (record = telemetry_ring_peek(&ring, &size)) != NULL; count++) {
            check(record, size, last);
            telemetry_ring_pop(&ring);
        }
        if (!is_last && __atomic_load_n(&finished, __ATOMIC_SEQ_CST) < PRODUCERS)
            doze(&seen);
    }
    for (size_t i = 0; i < PRODUCERS; i++) {
        pthread_join(thread[i], NULL);
        lost += dropped[i];
    }
    assert_int_equal(count + lost, PRODUCERS * RECORDS);
    assert_int_equal(telemetry_ring_pending(&ring), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(records_come_out_in_their_order, begin, end),
        cmocka_unit_test_setup_teardown(records_of_all_sizes_survive_the_end_of_the_memory, begin, end),
        cmocka_unit_test_setup_teardown(a_full_ring_refuses_the_newest_record, begin, end),
        cmocka_unit_test_setup_teardown(records_can_be_looked_at_before_they_are_taken, begin, end),
        cmocka_unit_test_setup_teardown(an_unpublished_record_holds_up_those_behind_it, begin, end),
        cmocka_unit_test_setup_teardown(one_producer_wakes_the_consumer_per_announcement, begin, end),
        cmocka_unit_test_setup_teardown(every_record_of_many_threads_arrives_whole_or_is_dropped, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
