/* test_entropy.c - seeds and lanes: different in every thread, whatever getrandom returns.
 *
 * A thread seeds its generator at its first draw, so each scenario runs in a new thread. getrandom is replaced by a
 * function of this file that fails on request. Processes are in tests/live/os/test_fork.c. */
#define _GNU_SOURCE
#include <bide/entropy.h>

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#define DRAWS 64u

static int fails_with; /* errno of the next calls ... */
static int fails_left; /* ... for this many calls; -1: all */
static size_t at_most; /* limit of bytes per call; 0: none */
static bool gives_zeros;
static int calls;

/* Replaces libc's. */
ssize_t getrandom(void *bytes, size_t size, unsigned flags)
{
    calls++;
    if (fails_left != 0) {
        fails_left -= fails_left > 0;
        errno = fails_with;
        return -1;
    }
    size = at_most != 0 && size > at_most ? at_most : size;
    if (!gives_zeros)
        return (ssize_t)syscall(SYS_getrandom, bytes, size, flags);
    memset(bytes, 0, size);
    return (ssize_t)size;
}

static int set_up(void **state)
{
    fails_left = calls = 0;
    at_most = 0;
    gives_zeros = false;
    return 0;
}

static void *draw_many(void *numbers)
{
    errno = 1234;
    for (size_t i = 0; i < DRAWS; i++)
        ((uint64_t *)numbers)[i] = bide_seed();
    return errno == 1234 ? numbers : NULL;
}

static void draw_in_a_new_thread(uint64_t *numbers)
{
    pthread_t thread;
    void *result;
    assert_int_equal(pthread_create(&thread, NULL, draw_many, numbers), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_non_null(result); /* errno was preserved */
}

static void assert_all_different(const uint64_t *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        assert_true(numbers[i] != 0);
        for (size_t j = 0; j < i; j++)
            assert_true(numbers[i] != numbers[j]);
    }
}

static void two_threads_never_draw_the_same_seeds(void **state)
{
    uint64_t numbers[2 * DRAWS];
    draw_in_a_new_thread(numbers);
    draw_in_a_new_thread(numbers + DRAWS);
    assert_all_different(numbers, 2 * DRAWS);
}

static void a_thread_calls_getrandom_once(void **state)
{
    uint64_t numbers[DRAWS];
    draw_in_a_new_thread(numbers);
    assert_int_equal(calls, 1);
}

static void interrupted_getrandom_is_repeated(void **state)
{
    uint64_t numbers[DRAWS];
    fails_with = EINTR;
    fails_left = 5;
    draw_in_a_new_thread(numbers);
    assert_int_equal(calls, 6);
    assert_all_different(numbers, DRAWS);
}

static void short_reads_of_getrandom_are_completed(void **state)
{
    uint64_t numbers[DRAWS];
    at_most = 5;
    draw_in_a_new_thread(numbers);
    assert_int_equal(calls, 7); /* for 32 bytes */
    assert_all_different(numbers, DRAWS);
}

static void threads_differ_without_getrandom(void **state)
{
    uint64_t numbers[4 * DRAWS];
    const int errors[] = {ENOSYS, EAGAIN};
    fails_left = -1;
    for (size_t i = 0; i < 4; i++) {
        fails_with = errors[i % 2];
        draw_in_a_new_thread(numbers + i * DRAWS);
    }
    assert_all_different(numbers, 4 * DRAWS);
}

static void all_zero_seed_does_not_stop_the_generator(void **state)
{
    uint64_t numbers[DRAWS];
    gives_zeros = true;
    draw_in_a_new_thread(numbers);
    assert_true(numbers[DRAWS - 1] != numbers[DRAWS - 2]);
    assert_true(numbers[DRAWS - 2] != numbers[DRAWS - 3]);
}

/* xoshiro256** from the state {golden, 0, 0, 0}, as in its authors' reference code. */
static void generator_is_the_published_one(void **state)
{
    uint64_t s[4] = {UINT64_C(0x9e3779b97f4a7c15), 0, 0, 0}, numbers[DRAWS];
    gives_zeros = true;
    draw_in_a_new_thread(numbers);
    for (size_t i = 0; i < DRAWS; i++) {
        uint64_t x = s[1] * 5, result = (x << 7 | x >> 57) * 9, t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3] << 45 | s[3] >> 19;
        if (result != 0) /* a seed is never 0 */
            assert_true(numbers[i] == result);
    }
}

static void each_bit_is_set_about_half_of_the_time(void **state)
{
    enum { ROUNDS = 20000, SLACK = 500 }; /* seven standard deviations */
    int ones[64] = {0};
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t number = bide_seed();
        for (int bit = 0; bit < 64; bit++)
            ones[bit] += (int)(number >> bit & 1);
    }
    for (int bit = 0; bit < 64; bit++)
        assert_in_range(ones[bit], ROUNDS / 2 - SLACK, ROUNDS / 2 + SLACK);
}

static void *lane_of_thread(void *lane)
{
    *(uint32_t *)lane = bide_lane();
    return *(uint32_t *)lane == bide_lane() ? lane : NULL;
}

static void each_thread_has_its_own_lane_and_keeps_it(void **state)
{
    uint32_t lanes[9] = {bide_lane()};
    for (size_t i = 1; i < 9; i++) {
        pthread_t thread;
        void *kept;
        assert_int_equal(pthread_create(&thread, NULL, lane_of_thread, &lanes[i]), 0);
        assert_int_equal(pthread_join(thread, &kept), 0);
        assert_non_null(kept);
        for (size_t j = 0; j < i; j++)
            assert_int_not_equal(lanes[i], lanes[j]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(two_threads_never_draw_the_same_seeds, set_up),
        cmocka_unit_test_setup(a_thread_calls_getrandom_once, set_up),
        cmocka_unit_test_setup(interrupted_getrandom_is_repeated, set_up),
        cmocka_unit_test_setup(short_reads_of_getrandom_are_completed, set_up),
        cmocka_unit_test_setup(threads_differ_without_getrandom, set_up),
        cmocka_unit_test_setup(all_zero_seed_does_not_stop_the_generator, set_up),
        cmocka_unit_test_setup(generator_is_the_published_one, set_up),
        cmocka_unit_test_setup(each_bit_is_set_about_half_of_the_time, set_up),
        cmocka_unit_test_setup(each_thread_has_its_own_lane_and_keeps_it, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
