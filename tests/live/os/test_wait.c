/* test_wait.c - waits on the real clock: never early, whatever interrupts them, and cancellable from anywhere.
 *
 * That a wait is not early is checked exactly. That it is not too late is only checked with a bound that no healthy
 * machine reaches, so that a loaded machine does not fail. timerfd_create is replaced by a function of this file that
 * can fail. */
#define _GNU_SOURCE
#include <bide/bide.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define LATE_NS (20 * BIDE_S)

static bool no_timerfd;

/* Replaces libc's. */
int timerfd_create(int clock, int flags)
{
    if (!no_timerfd)
        return (int)syscall(SYS_timerfd_create, clock, flags);
    errno = EMFILE;
    return -1;
}

static volatile sig_atomic_t signals;
static struct bide_cancel *cancel_by_signal;

static void on_signal(int number)
{
    signals++;
    if (cancel_by_signal != NULL)
        bide_cancel_now(cancel_by_signal);
}

/* Sends SIGALRM every `us` microseconds, without SA_RESTART, so that each interrupts. 0: stops. */
static void signal_every(suseconds_t us)
{
    struct sigaction action = {.sa_handler = on_signal};
    struct itimerval interval = {{0, us}, {0, us}};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &interval, NULL);
}

static int64_t cpu_ns(void)
{
    struct timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return used.tv_sec * BIDE_S + used.tv_nsec;
}

static void assert_waits(int64_t ns, const struct bide_cancel *cancel)
{
    int64_t until_ns = bide_now() + ns;
    errno = 1234;
    assert_true(bide_wait_until(until_ns, cancel));
    int64_t now_ns = bide_now();
    assert_int_equal(errno, 1234);
    assert_true(now_ns >= until_ns);
    assert_true(now_ns < until_ns + LATE_NS);
}

/* The three ways of waiting: clock_nanosleep; timerfd; poll's own timeout. */
static void assert_waits_in_every_way(int64_t ns)
{
    struct bide_cancel cancel;
    assert_int_equal(bide_cancel_init(&cancel), BIDE_OK);
    assert_waits(ns, NULL);
    assert_waits(ns, &cancel);
    no_timerfd = true;
    assert_waits(ns, &cancel);
    no_timerfd = false;
    bide_cancel_free(&cancel);
}

static void wait_is_never_a_nanosecond_early(void **state)
{
    for (int64_t ns = 1; ns < 20 * BIDE_MS; ns = ns * 2 + 1)
        assert_waits_in_every_way(ns);
}

static void a_thousand_signals_a_second_do_not_shorten_a_wait(void **state)
{
    signals = 0;
    signal_every(1000);
    assert_waits_in_every_way(200 * BIDE_MS);
    signal_every(0);
    assert_true(signals > 3);
}

static void past_instant_needs_no_wait(void **state)
{
    struct bide_cancel cancel;
    const int64_t past[] = {INT64_MIN, -1, 0, 1, bide_now()};
    assert_int_equal(bide_cancel_init(&cancel), BIDE_OK);
    for (size_t i = 0; i < sizeof past / sizeof *past; i++) {
        assert_true(bide_wait_until(past[i], NULL));
        assert_true(bide_wait_until(past[i], &cancel));
    }
    bide_cancel_free(&cancel);
}

static void cancelled_wait_returns_false_even_if_the_instant_is_reached(void **state)
{
    struct bide_cancel cancel;
    assert_int_equal(bide_cancel_init(&cancel), BIDE_OK);
    assert_false(bide_cancelled(&cancel));
    errno = 1234;
    bide_cancel_now(&cancel);
    bide_cancel_now(&cancel);
    assert_int_equal(errno, 1234);
    for (int i = 0; i < 3; i++) { /* it stays cancelled */
        assert_true(bide_cancelled(&cancel));
        assert_false(bide_wait_until(BIDE_NEVER, &cancel));
        assert_false(bide_wait_until(bide_now() + BIDE_MINUTE, &cancel));
        assert_false(bide_wait_until(0, &cancel));
    }
    bide_cancel_free(&cancel);
}

static void freed_or_null_cancel_cancels_nothing(void **state)
{
    struct bide_cancel cancel;
    assert_int_equal(bide_cancel_init(&cancel), BIDE_OK);
    bide_cancel_free(&cancel);
    bide_cancel_free(&cancel);
    bide_cancel_free(NULL);
    bide_cancel_now(&cancel);
    bide_cancel_now(NULL);
    assert_false(bide_cancelled(&cancel));
    assert_false(bide_cancelled(NULL));
    assert_waits(BIDE_MS, &cancel);
}

static void cancel_is_closed_by_exec(void **state)
{
    struct bide_cancel cancel;
    assert_int_equal(bide_cancel_init(&cancel), BIDE_OK);
    assert_true(fcntl(bide_cancel_fd_get(&cancel), F_GETFD) & FD_CLOEXEC);
    bide_cancel_free(&cancel);
}

struct waiter {
    struct bide_cancel cancel;
    int64_t until_ns;
    bool reached;
};

static void *wait_in_thread(void *argument)
{
    struct waiter *w = argument;
    w->reached = bide_wait_until(w->until_ns, &w->cancel);
    return NULL;
}

/* The cancellation may come before, during or after the thread goes to sleep: each must end the wait. */
static void another_thread_can_end_a_wait(void **state)
{
    for (int i = 0; i < 60; i++) {
        struct waiter w = {.until_ns = i % 3 == 0 ? BIDE_NEVER : bide_now() + 60 * BIDE_MINUTE, .reached = true};
        pthread_t thread;
        no_timerfd = i % 3 == 1;
        assert_int_equal(bide_cancel_init(&w.cancel), BIDE_OK);
        assert_int_equal(pthread_create(&thread, NULL, wait_in_thread, &w), 0);
        bide_wait_until(bide_now() + i * 10 * BIDE_US, NULL);
        bide_cancel_now(&w.cancel);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_false(w.reached);
        bide_cancel_free(&w.cancel);
    }
    no_timerfd = false;
}

static void signal_handler_can_end_the_wait_it_interrupts(void **state)
{
    struct bide_cancel cancel;
    assert_int_equal(bide_cancel_init(&cancel), BIDE_OK);
    cancel_by_signal = &cancel;
    signal_every(5000);
    bool reached = bide_wait_until(bide_now() + 60 * BIDE_MINUTE, &cancel);
    signal_every(0);
    cancel_by_signal = NULL;
    assert_false(reached);
    bide_cancel_free(&cancel);
}

static void wait_uses_no_cpu_time(void **state)
{
    int64_t used_ns = cpu_ns();
    assert_waits_in_every_way(100 * BIDE_MS);
    assert_true(cpu_ns() - used_ns < 100 * BIDE_MS);
}

/* The descriptor was closed: poll then returns at once, every time. */
static void wait_with_a_closed_cancel_does_not_spin(void **state)
{
    struct bide_cancel cancel;
    assert_int_equal(bide_cancel_init(&cancel), BIDE_OK);
    close(bide_cancel_fd_get(&cancel));
    int64_t used_ns = cpu_ns();
    no_timerfd = true; /* otherwise the timerfd would get the same number */
    assert_waits(200 * BIDE_MS, &cancel);
    no_timerfd = false;
    assert_true(cpu_ns() - used_ns < 100 * BIDE_MS);
}

/* In a child, because the limit cannot be raised again. */
static void run_in_child(void (*function)(void))
{
    pid_t child = fork();
    int status;
    assert_true(child >= 0);
    if (child == 0) {
        function();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void limit_descriptors(rlim_t most)
{
    struct rlimit limit = {most, most};
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        _exit(2);
}

static void with_all_descriptors_in_use(void)
{
    struct bide_cancel cancel, second;
    if (bide_cancel_init(&cancel) != BIDE_OK)
        _exit(3);
    limit_descriptors((rlim_t)bide_cancel_fd_get(&cancel) + 1);
    errno = 0;
    if (bide_cancel_init(&second) != BIDE_ERR_SYSTEM || errno != EMFILE || bide_cancel_fd_get(&second) >= 0)
        _exit(4);
    int64_t until_ns = bide_now() + 20 * BIDE_MS;
    if (!bide_wait_until(until_ns, &cancel) || bide_now() < until_ns)
        _exit(5);
    bide_cancel_now(&cancel);
    if (bide_wait_until(until_ns, &cancel))
        _exit(6);
}

static void existing_cancel_works_without_free_descriptors(void **state)
{
    run_in_child(with_all_descriptors_in_use);
}

static void with_poll_refused(void)
{
    struct bide_cancel cancel;
    if (bide_cancel_init(&cancel) != BIDE_OK)
        _exit(3);
    limit_descriptors(1); /* poll(2): EINVAL for more than RLIMIT_NOFILE descriptors */
    int64_t until_ns = bide_now() + 200 * BIDE_MS, used_ns = cpu_ns();
    if (!bide_wait_until(until_ns, &cancel) || bide_now() < until_ns)
        _exit(5);
    if (cpu_ns() - used_ns > 100 * BIDE_MS)
        _exit(6);
    bide_cancel_now(&cancel);
    if (bide_wait_until(until_ns, &cancel))
        _exit(7);
}

static void wait_with_failing_poll_does_not_spin(void **state)
{
    run_in_child(with_poll_refused);
}

static int open_descriptors(void)
{
    int count = 0;
    for (int fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static void wait_leaks_no_descriptor(void **state)
{
    int before = open_descriptors();
    assert_waits_in_every_way(BIDE_MS);
    assert_int_equal(open_descriptors(), before);
}

/* -- bide_run ------------------------------------------------------------------------------------------------------ */

struct work {
    struct bide_cancel cancel;
    int64_t last_ns;
    int64_t shortest_ns; /* between two attempts */
    int attempts;
};

static struct bide_outcome fail_fast(void *context, const struct bide_verdict *start)
{
    struct work *w = context;
    int64_t now_ns = bide_now();
    if (w->attempts++ > 0 && now_ns - w->last_ns < w->shortest_ns)
        w->shortest_ns = now_ns - w->last_ns;
    w->last_ns = bide_now();
    return (struct bide_outcome){.kind = BIDE_KIND_TRANSIENT, .evidence = BIDE_EVIDENCE_NOT_SENT};
}

static void run_waits_the_full_backoff_under_signals(void **state)
{
    struct bide_policy policy;
    bide_policy_init(&policy, BIDE_PRESET_SERVICE);
    policy.attempts_max = 4;
    policy.backoff = BIDE_BACKOFF_FIXED;
    policy.jitter = BIDE_JITTER_NONE;
    policy.base_ns = policy.cap_ns = 20 * BIDE_MS;
    struct work w = {.shortest_ns = BIDE_NEVER};
    struct bide_job job = {.policy = &policy, .target = BIDE_NO_TARGET, .attempt = fail_fast, .context = &w};
    signal_every(1000);
    struct bide_verdict end = bide_run(&job);
    signal_every(0);
    assert_int_equal(end.action, BIDE_ACTION_GIVE_UP);
    assert_int_equal(end.reason, BIDE_REASON_ATTEMPTS_SPENT);
    assert_int_equal(w.attempts, 4);
    assert_true(w.shortest_ns >= 20 * BIDE_MS);
}

static void *cancel_in_thread(void *argument)
{
    bide_wait_until(bide_now() + 10 * BIDE_MS, NULL);
    bide_cancel_now(argument);
    return NULL;
}

static void run_ends_when_another_thread_cancels_its_wait(void **state)
{
    struct bide_policy policy;
    bide_policy_init(&policy, BIDE_PRESET_SERVICE);
    policy.backoff = BIDE_BACKOFF_FIXED;
    policy.jitter = BIDE_JITTER_NONE;
    policy.base_ns = policy.cap_ns = 60 * BIDE_MINUTE;
    policy.call_timeout_ns = BIDE_NEVER;
    struct work w = {.shortest_ns = BIDE_NEVER};
    struct bide_job job = {
        .policy = &policy, .target = BIDE_NO_TARGET, .attempt = fail_fast, .context = &w, .cancel = &w.cancel};
    pthread_t thread;
    assert_int_equal(bide_cancel_init(&w.cancel), BIDE_OK);
    assert_int_equal(pthread_create(&thread, NULL, cancel_in_thread, &w.cancel), 0);
    struct bide_verdict end = bide_run(&job);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(end.action, BIDE_ACTION_GIVE_UP);
    assert_int_equal(end.reason, BIDE_REASON_CANCELLED);
    assert_in_range(w.attempts, 0, 1); /* 0: the thread was faster than the first attempt */
    bide_cancel_free(&w.cancel);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wait_is_never_a_nanosecond_early),
        cmocka_unit_test(a_thousand_signals_a_second_do_not_shorten_a_wait),
        cmocka_unit_test(past_instant_needs_no_wait),
        cmocka_unit_test(cancelled_wait_returns_false_even_if_the_instant_is_reached),
        cmocka_unit_test(freed_or_null_cancel_cancels_nothing),
        cmocka_unit_test(cancel_is_closed_by_exec),
        cmocka_unit_test(another_thread_can_end_a_wait),
        cmocka_unit_test(signal_handler_can_end_the_wait_it_interrupts),
        cmocka_unit_test(wait_uses_no_cpu_time),
        cmocka_unit_test(wait_with_a_closed_cancel_does_not_spin),
        cmocka_unit_test(existing_cancel_works_without_free_descriptors),
        cmocka_unit_test(wait_with_failing_poll_does_not_spin),
        cmocka_unit_test(wait_leaks_no_descriptor),
        cmocka_unit_test(run_waits_the_full_backoff_under_signals),
        cmocka_unit_test(run_ends_when_another_thread_cancels_its_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
