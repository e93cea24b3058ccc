/* clock.h - the clocks for production use of the engine.
 *
 * Waits and deadlines use CLOCK_BOOTTIME: it never jumps, and it advances while the machine is suspended. The wall
 * clock has a single use: turning an HTTP-date into a delay. */
#ifndef BIDE_CLOCK_H
#define BIDE_CLOCK_H

#include <bide/base.h>

BIDE_BEGIN_DECLS

BIDE_API int64_t bide_now(void);    /* nanoseconds of CLOCK_BOOTTIME */
BIDE_API int64_t bide_wall_s(void); /* seconds since 1970 */

BIDE_END_DECLS
#endif
