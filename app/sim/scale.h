/* scale.h - how high the charts of a batch go: one scale for all rows, in which one wave does not flatten the rest.
 *
 * If hardly any bucket is as high as the highest one, the scale ends at what is usual, and what is higher is cut: who
 * draws says so, with its value. If the rows differ by much, square roots stand at equal distances. */
#ifndef SIM_SCALE_H
#define SIM_SCALE_H

#include "batch.h"

struct sim_scale {
    double most;    /* where it ends; above 0 */
    double highest; /* that there is: above most, if something is cut */
    bool root;
};

/* Over all rows, of arrivals per bucket; and of what is higher of those and what was served. */
struct sim_scale sim_scale_of_arrivals(const struct sim_batch *batch);
struct sim_scale sim_scale_of_series(const struct sim_batch *batch);

/* Is so much the largest of these, that the others need square roots to be seen? What is not above 0 does not count. */
bool sim_scale_needs_root(const double *tops, size_t count);

/* The part of the scale that this value takes, 0 to 1. */
double sim_scale_fraction(const struct sim_scale *scale, double value);

#endif
