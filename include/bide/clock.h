/* clock.h - the time that production hands to the engine.
 *
 * Waits and deadlines run on CLOCK_BOOTTIME: it never jumps, and it counts while the machine is suspended. The wall
 * clock is used for one thing only, turning an HTTP-date into a delay. */
#ifndef BIDE_CLOCK_H
#define BIDE_CLOCK_H

#include <bide/base.h>

BIDE_BEGIN_DECLS

BIDE_API int64_t bide_now(void);    /* nanoseconds of CLOCK_BOOTTIME */
BIDE_API int64_t bide_wall_s(void); /* seconds since 1970 */

BIDE_END_DECLS
#endif
