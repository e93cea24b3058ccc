/* backoff.h - how long to wait before the next attempt: integer, saturating, and never above the cap.
 *
 * First the envelope: base, grown by the backoff kind, cut at the cap. Then the window inside it that the jitter kind
 * allows. Then one uniform draw from the window, both ends included. Cutting before drawing means that a fleet at its
 * cap is still spread out. Step counts the waits before this one, from 0. */
#ifndef BIDE_BACKOFF_H
#define BIDE_BACKOFF_H

#include <bide/policy.h>

BIDE_BEGIN_DECLS

struct bide_range {
    int64_t lo_ns;
    int64_t hi_ns; /* included */
};

struct bide_step {
    uint32_t step;       /* waits before this one */
    bool throttled;      /* use throttled_base_ns */
    int64_t previous_ns; /* the wait before this one, for decorrelated jitter; 0: none, which stands for the base */
};

/* The envelope at a step, cap applied, before jitter. */
BIDE_API int64_t bide_backoff_envelope(const struct bide_policy *policy, struct bide_step step);

/* The window the wait is drawn from. */
BIDE_API struct bide_range bide_backoff_window(const struct bide_policy *policy, struct bide_step step);

/* One wait. `seed` and `draw` name the random number: the same pair gives the same wait on every platform. */
BIDE_API int64_t bide_backoff_wait(const struct bide_policy *policy, struct bide_step step, uint64_t seed,
                                   uint32_t draw);

BIDE_END_DECLS
#endif
