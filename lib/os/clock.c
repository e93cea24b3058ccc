/* clock.c - the clocks that production code passes to the engine.
 *
 * Waits and deadlines use CLOCK_BOOTTIME: setting the wall clock does not change it, and it advances during suspend, so
 * a deadline of ten seconds has passed after a night in suspend. Reading it needs no system call where the kernel
 * offers it through the vDSO. The wall clock is read only to convert an HTTP-date into a delay. */
#include <bide/clock.h>

#include <assert.h>
#include <time.h>

int64_t bide_now(void)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_BOOTTIME, &now); /* cannot fail: Linux has this clock since 2.6.39 */
    assert(now.tv_sec >= 0 && now.tv_sec <= BIDE_DURATION_MAX / BIDE_S);
    return now.tv_sec * BIDE_S + now.tv_nsec;
}

int64_t bide_wall_s(void)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec;
}
