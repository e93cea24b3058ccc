/* decorrelated.h - the distribution of the waits of decorrelated jitter, step by step.
 *
 * Each wait is drawn from a window that depends on the previous wait, so the mean is not the middle of a window. The
 * distribution is kept as probability mass in bins, and each step distributes the mass of every bin over the window
 * that the engine computes for it. Most waits are short, but the longest triples with each step, so bins widen with the
 * distance from the shortest wait: single nanoseconds first, then 64 bins per doubling. The error of a mean is a few
 * hundredths of a per cent, whatever the distance of cap and base. The means are shown to people, so they are floating
 * point. */
#ifndef EXPLAIN_DECORRELATED_H
#define EXPLAIN_DECORRELATED_H

#include <bide/backoff.h>

#define EXPLAIN_BINS 4096u /* more than the longest possible wait needs */

#define EXPLAIN_STEPS                                                                                                  \
    64u /* the longest wait triples with each step, so windows and means are constant after this many */

/* Returns the union of the windows after any previous wait in `before`. */
struct bide_range explain_window_after(const struct bide_policy *policy, struct bide_step step,
                                       struct bide_range before);

/* Returns the union of the windows of this step over all possible earlier waits. */
struct bide_range explain_window(const struct bide_policy *policy, struct bide_step step);

struct explain_distribution {
    struct bide_range range;   /* of all possible waits */
    double mass[EXPLAIN_BINS]; /* by distance from range.lo_ns; the sum with `atom` is 1 */
    double atom;               /* mass exactly at the upper end (the literal AWS form) */
    double mean_ns;
};

/* Initialises the distribution before the first wait: all mass at a single point. */
void explain_distribution_start(struct explain_distribution *distribution);

/* Computes the distribution of the next wait. */
void explain_distribution_step(struct explain_distribution *next, const struct explain_distribution *before,
                               const struct bide_policy *policy, uint32_t step);

#endif
