/* spread.h - how the waits of decorrelated jitter are distributed, step by step.
 *
 * Each wait is drawn from a window that depends on the wait before, so its mean is no middle of anything. The
 * distribution is kept as mass in cells, and each step spreads the mass of every cell over the window that the engine
 * gives for it. Most waits are short while a few are three times as long at each step, so cells grow with their
 * distance from the shortest wait: single nanoseconds first, then 64 to each doubling. Means are off by a few
 * hundredths of a per cent, however far the cap is from the base. They are for people, so they are floating point. */
#ifndef EXPLAIN_DECORRELATED_H
#define EXPLAIN_DECORRELATED_H

#include <bide/backoff.h>

#define EXPLAIN_BINS 4096u /* more than the longest wait there is comes to */

#define EXPLAIN_STEPS 64u /* after so many, windows and means stand still: the reach triples with each */

/* The window of a wait, over all waits in `before` that can have been before it. */
struct bide_range explain_window_after(const struct bide_policy *policy, struct bide_step step,
                                       struct bide_range before);

/* The same from the beginning: over all waits that can have been before this step. */
struct bide_range explain_window(const struct bide_policy *policy, struct bide_step step);

struct explain_distribution {
    struct bide_range range;   /* what can be reached */
    double mass[EXPLAIN_BINS]; /* by the distance from range.lo_ns; all of it together with the atom is 1 */
    double atom;               /* what lies exactly at the upper end (the literal AWS form) */
    double mean_ns;
};

/* Before the first wait: all mass in one place. */
void explain_distribution_start(struct explain_distribution *distribution);

/* The next wait after waits that are spread like `before`. */
void explain_distribution_step(struct explain_distribution *next, const struct explain_distribution *before,
                               const struct bide_policy *policy, uint32_t step);

#endif
