/* test_inbound.c - eight threads count into one inbound retry ratio: no request is lost or counted twice.
 *
 * Most useful under -fsanitize=thread. Time is an argument: the threads are real, the clock is not. */
#include <bide/inbound.h>

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define THREADS 8u
#define EACH    20000u

static const struct bide_layer second_attempt = {.attempt = 2, .left_ns = BIDE_NEVER};

struct worker {
    struct bide_inbound_ratio *ratio;
    int64_t step_ns; /* the time between two requests */
    uint64_t wrong_counts;
};

/* Every fourth request is a retry. */
static void *count_requests(void *context)
{
    struct worker *w = context;
    for (unsigned i = 0; i < EACH; i++) {
        int64_t now_ns = (int64_t)i * w->step_ns;
        bide_inbound_ratio_count(w->ratio, i % 4 == 0 ? &second_attempt : NULL, now_ns);
        struct bide_inbound_ratio_view view = bide_inbound_ratio_get(w->ratio, now_ns);
        w->wrong_counts += view.retries > view.requests || view.requests > THREADS * EACH;
    }
    return NULL;
}

/* Returns the counts at the last instant. */
static struct bide_inbound_ratio_view count_in_threads(int64_t window_ns, int64_t step_ns)
{
    struct bide_inbound_ratio_config config;
    struct bide_inbound_ratio ratio;
    struct worker workers[THREADS];
    pthread_t thread[THREADS];
    bide_inbound_ratio_config_init(&config);
    config.window_ns = window_ns;
    assert_int_equal(bide_inbound_ratio_init(&ratio, &config, NULL), BIDE_OK);
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){&ratio, step_ns, 0};
        assert_int_equal(pthread_create(&thread[i], NULL, count_requests, &workers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(thread[i], NULL), 0);
        assert_int_equal(workers[i].wrong_counts, 0);
    }
    return bide_inbound_ratio_get(&ratio, (int64_t)(EACH - 1) * step_ns);
}

static void eight_threads_in_one_slot_are_counted_exactly(void **state)
{
    struct bide_inbound_ratio_view view = count_in_threads(10 * BIDE_S, 0);
    (void)state;
    assert_int_equal(view.requests, THREADS * EACH);
    assert_int_equal(view.retries, THREADS * EACH / 4);
    assert_true(view.overloaded);
}

static void eight_threads_within_one_window_are_counted_exactly(void **state)
{
    struct bide_inbound_ratio_view view = count_in_threads(10 * BIDE_S, 10 * BIDE_S / EACH);
    (void)state;
    assert_int_equal(view.requests, THREADS * EACH);
    assert_int_equal(view.retries, THREADS * EACH / 4);
}

/* The threads' clocks are several windows apart, so the threads reset each other's slots. At the end at most one window
 * of requests is left. */
static void eight_threads_at_different_times_never_count_too_much(void **state)
{
    struct bide_inbound_ratio_view view = count_in_threads(10 * BIDE_MS, 10 * BIDE_US);
    (void)state;
    assert_in_range(view.requests, 1, THREADS * 2000u);
    assert_in_range(view.retries, 0, view.requests);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(eight_threads_in_one_slot_are_counted_exactly),
        cmocka_unit_test(eight_threads_within_one_window_are_counted_exactly),
        cmocka_unit_test(eight_threads_at_different_times_never_count_too_much),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
