/* wait.h - waiting until an instant, and cancelling the wait from elsewhere.
 *
 * The wait is absolute, on the clock of clock.h: signals do not shorten it and suspend does not stretch it. A struct
 * bide_cancel can end it from another thread or from a signal handler; a cancellation is permanent, and takes
 * precedence even when the instant has come. All descriptors are close-on-exec.
 *
 * Threads: all functions may be called from any thread, bide_cancel_now from a signal handler too; but
 * bide_cancel_init and bide_cancel_free only while no other thread uses the struct. */
#ifndef BIDE_WAIT_H
#define BIDE_WAIT_H

#include <bide/base.h>

BIDE_BEGIN_DECLS

/* Final: its size will not change. */
struct bide_cancel {
    int fd_plus_one; /* private; 0: none, so a zeroed struct cannot be cancelled */
};

/* Initialises a cancel. BIDE_ERR_SYSTEM: no descriptor; the struct is then zeroed, which every function accepts. */
BIDE_API enum bide_err bide_cancel_init(struct bide_cancel *cancel);
BIDE_API void bide_cancel_free(struct bide_cancel *cancel); /* accepts NULL and a freed struct */

/* Cancels. Safe from any thread and from a signal handler; keeps errno. */
BIDE_API void bide_cancel_now(struct bide_cancel *cancel);
BIDE_API bool bide_cancelled(const struct bide_cancel *cancel); /* NULL: false */

/* Returns a descriptor that becomes readable when cancelled, for your own poll set; -1: none. */
BIDE_API int bide_cancel_fd_get(const struct bide_cancel *cancel);

/* Returns true when the instant has come, false when cancelled first. NULL cancel: cannot be cancelled. until_ns
 * BIDE_NEVER waits for the cancellation alone, without a cancel for ever. Never returns early, not even by a
 * nanosecond. */
BIDE_API bool bide_wait_until(int64_t until_ns, const struct bide_cancel *cancel);

BIDE_END_DECLS
#endif
