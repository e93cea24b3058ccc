/* spread.h - how the waits of decorrelated jitter are distributed, step by step.
 *
 * Each wait is drawn from a window that depends on the wait before, so its mean is no middle of anything. The
 * distribution is kept as mass in equal cells of the range that can be reached at all, and each step spreads the mass
 * of every cell over the window that the engine gives for it. Integers only: the same on every machine. Means are off
 * by a few hundredths of a per cent. */
#ifndef EXPLAIN_SPREAD_H
#define EXPLAIN_SPREAD_H

#include <bide/backoff.h>

#define EXPLAIN_CELLS 4096u

#define EXPLAIN_STEPS 64u /* after so many, windows and means stand still: the reach triples with each */

/* The window of a wait, over all waits in `before` that can have been before it. */
struct bide_range explain_window_after(const struct bide_policy *policy, struct bide_step step,
                                       struct bide_range before);

/* The same from the beginning: over all waits that can have been before this step. */
struct bide_range explain_window(const struct bide_policy *policy, struct bide_step step);

struct explain_spread {
    struct bide_range range;      /* what can be reached */
    int64_t width_ns;             /* of a cell */
    uint64_t mass[EXPLAIN_CELLS]; /* in 2^-40 */
    uint64_t atom;                /* what lies exactly at the upper end (the literal AWS form) */
};

/* Before the first wait: all mass in one place. */
void explain_spread_start(struct explain_spread *spread);

/* The next wait after waits that are spread like `before`. */
void explain_spread_step(struct explain_spread *next, const struct explain_spread *before,
                         const struct bide_policy *policy, uint32_t step);

int64_t explain_spread_mean(const struct explain_spread *spread);

#endif
