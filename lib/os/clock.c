/* clock.c - the time that production hands to the engine.
 *
 * CLOCK_BOOTTIME for everything that waits: setting the wall clock does not move it, and it goes on while the machine
 * sleeps, so that a deadline of ten seconds is over after a night in suspend. Reading it costs no system call where
 * the kernel offers it through the vDSO. The wall clock is read only to turn an HTTP-date into a delay. */
#include <bide/clock.h>

#include <time.h>

int64_t bide_now(void)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_BOOTTIME, &now); /* cannot fail: Linux has had this clock since 2.6.39 */
    return now.tv_sec * BIDE_S + now.tv_nsec;
}

int64_t bide_wall_s(void)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec;
}
