/* clock.h - the clocks for production use of the engine.
 *
 * Waits, deadlines and all times in a target use CLOCK_BOOTTIME: setting the wall clock does not change it, and it
 * advances while the machine is suspended. It starts at boot, so the state of a target must not outlive the boot. The
 * engine reads no clock; a simulator passes its own, the same for all events of a target. The wall clock has a single
 * use: turning an HTTP-date into a delay (bide/hint.h).
 *
 * Threads: all functions may be called from any thread. */
#ifndef BIDE_CLOCK_H
#define BIDE_CLOCK_H

#include <bide/base.h>

BIDE_BEGIN_DECLS

BIDE_API int64_t bide_now(void);    /* nanoseconds of CLOCK_BOOTTIME */
BIDE_API int64_t bide_wall_s(void); /* seconds since 1970 */

BIDE_END_DECLS
#endif
