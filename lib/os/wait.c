/* wait.c - waits until an instant, cancellable from another thread or a signal handler.
 *
 * A wait is a loop that checks two conditions, "cancelled?" and "instant reached?", and sleeps in between. Any early
 * return from a system call, mostly by a signal, only repeats the check, which reads the clock; so no wait ends a
 * nanosecond early, and a thousand signals a second neither shorten nor prolong it.
 *
 * Without a cancel object the loop sleeps in an absolute clock_nanosleep; with a cancel object, it polls the cancel's
 * eventfd and an absolute timerfd. Both use CLOCK_BOOTTIME, so resuming from suspend ends the wait. If no timerfd can
 * be created (all descriptors are in use), poll's own timeout is used. That timeout stands still during suspend and is
 * therefore limited to POLL_MAX_NS, so a wait without a timerfd ends at most that late.
 *
 * Cancellation has priority: a wait that is cancelled before it starts, or just as it ends, returns false even though
 * the instant has been reached, because the caller that cancelled wants no more work started. */
#include <bide/clock.h>
#include <bide/wait.h>

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define POLL_MAX_NS    BIDE_S
#define ERROR_SLEEP_NS BIDE_MS /* after an unexpected error: slow, but never a busy loop */

static struct timespec timespec_of(int64_t ns)
{
    return (struct timespec){.tv_sec = ns / BIDE_S, .tv_nsec = ns % BIDE_S};
}

enum bide_err bide_cancel_init(struct bide_cancel *cancel)
{
    cancel->fd_plus_one = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) + 1;
    return cancel->fd_plus_one > 0 ? BIDE_OK : BIDE_ERR_SYSTEM;
}

int bide_cancel_fd_get(const struct bide_cancel *cancel)
{
    return cancel != NULL ? cancel->fd_plus_one - 1 : -1;
}

void bide_cancel_free(struct bide_cancel *cancel)
{
    if (bide_cancel_fd_get(cancel) < 0)
        return;
    close(bide_cancel_fd_get(cancel));
    cancel->fd_plus_one = 0;
}

/* The only remaining error is EAGAIN: cancelled 2^64 - 2 times already. */
void bide_cancel_now(struct bide_cancel *cancel)
{
    int saved = errno;
    const uint64_t one = 1;
    if (bide_cancel_fd_get(cancel) >= 0)
        while (write(bide_cancel_fd_get(cancel), &one, sizeof one) < 0 && errno == EINTR)
            continue;
    errno = saved;
}

bool bide_cancelled(const struct bide_cancel *cancel)
{
    if (bide_cancel_fd_get(cancel) < 0)
        return false;
    int saved = errno;
    struct pollfd event = {.fd = bide_cancel_fd_get(cancel), .events = POLLIN};
    int n;
    while ((n = poll(&event, 1, 0)) < 0 && errno == EINTR)
        continue;
    errno = saved;
    return n > 0 && (event.revents & POLLIN) != 0;
}

static void sleep_ns(int64_t ns)
{
    struct timespec rest = timespec_of(ns);
    clock_nanosleep(CLOCK_MONOTONIC, 0, &rest, NULL);
}

static bool wait_uncancellable(int64_t until_ns)
{
    struct timespec until = timespec_of(until_ns);
    while (bide_now() < until_ns) {
        int error = clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &until, NULL);
        if (error != 0 && error != EINTR)
            sleep_ns(ERROR_SLEEP_NS);
    }
    return true;
}

/* Returns a timerfd that expires at that instant; -1 if none is needed, or none can be created. */
static int timerfd_at(int64_t until_ns)
{
    struct itimerspec when = {.it_value = timespec_of(until_ns)};
    int fd = until_ns == BIDE_NEVER ? -1 : timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (fd >= 0 && timerfd_settime(fd, TFD_TIMER_ABSTIME, &when, NULL) != 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* Sleeps until an event may have happened: the timerfd expires after left_ns; without it, at most POLL_MAX_NS. */
static void wait_for_event(int cancel_fd, int timer_fd, int64_t left_ns)
{
    assert(left_ns > 0); /* the kernel would return at once: a busy loop */
    struct pollfd watch[2] = {{.fd = cancel_fd, .events = POLLIN}, {.fd = timer_fd, .events = POLLIN}};
    struct timespec most = timespec_of(left_ns < POLL_MAX_NS ? left_ns : POLL_MAX_NS);
    int n = ppoll(watch, 2, timer_fd >= 0 || left_ns == BIDE_NEVER ? NULL : &most, NULL);
    if ((n < 0 && errno != EINTR) || (watch[0].revents & ~POLLIN) != 0)
        sleep_ns(ERROR_SLEEP_NS); /* a cancel freed meanwhile makes poll return at once, every time */
}

static bool wait_or_cancel(int64_t until_ns, const struct bide_cancel *cancel)
{
    bool cancelled = bide_cancelled(cancel);
    int64_t now_ns = bide_now();
    if (cancelled || now_ns >= until_ns)
        return !cancelled;
    int timer_fd = timerfd_at(until_ns);
    do {
        wait_for_event(bide_cancel_fd_get(cancel), timer_fd, until_ns == BIDE_NEVER ? BIDE_NEVER : until_ns - now_ns);
        cancelled = bide_cancelled(cancel);
        now_ns = bide_now();
    } while (!cancelled && now_ns < until_ns);
    if (timer_fd >= 0)
        close(timer_fd);
    return !cancelled;
}

bool bide_wait_until(int64_t until_ns, const struct bide_cancel *cancel)
{
    int saved = errno;
    bool reached = cancel != NULL ? wait_or_cancel(until_ns, cancel) : wait_uncancellable(until_ns);
    errno = saved;
    return reached;
}
