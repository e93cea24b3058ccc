/* backoff.h - the wait before the next attempt: exponential backoff with jitter; integer, saturating, never above the
 * cap.
 *
 * First the envelope: the base, grown by the kind of backoff, cut at the cap. Then the window inside it that the kind
 * of jitter allows. Then a uniform draw from the window, both ends included. Because the envelope is cut before the
 * draw, the waits of many clients stay spread even at the cap. Step counts the waits before this one, from 0.
 *
 * Threads: all functions may be called from any thread. */
#ifndef BIDE_BACKOFF_H
#define BIDE_BACKOFF_H

#include <bide/policy.h>

BIDE_BEGIN_DECLS

/* Final: its size will not change. */
struct bide_range {
    int64_t lo_ns;
    int64_t hi_ns; /* included */
};

/* Final: its size will not change. */
struct bide_step {
    uint32_t step;       /* waits before this one */
    bool throttled;      /* use throttled_base_ns */
    int64_t previous_ns; /* the previous wait, for decorrelated jitter; 0: none, the base is used */
};

/* Returns the envelope at a step, cut at the cap, before jitter. */
BIDE_API int64_t bide_backoff_envelope(const struct bide_policy *policy, struct bide_step step);

/* Returns the window that the wait is drawn from. */
BIDE_API struct bide_range bide_backoff_window(const struct bide_policy *policy, struct bide_step step);

/* Draws a wait. `seed` and `draw` identify the random number: the same pair gives the same wait on every platform. */
BIDE_API int64_t bide_backoff_wait(const struct bide_policy *policy, struct bide_step step, uint64_t seed,
                                   uint32_t draw);

BIDE_END_DECLS
#endif
