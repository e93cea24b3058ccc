/* scale.h - the height of a batch's charts: one scale for all rows, on which a single wave does not flatten the rest.
 *
 * If very few bins are far higher than usual, the scale ends near the usual height and higher bins are cut; the drawing
 * code marks them with their value. If rows differ by much, the scale is a square root. */
#ifndef SIM_SCALE_H
#define SIM_SCALE_H

#include "batch.h"

struct sim_scale {
    double max;     /* end of the scale; above 0 */
    double highest; /* the highest value; above `max` if bins are cut */
    bool root;
};

/* The scale over all rows: of arrivals per bin; of arrivals or served per bin, whichever is higher. */
struct sim_scale sim_scale_of_arrivals(const struct sim_batch *batch);
struct sim_scale sim_scale_of_series(const struct sim_batch *batch);

/* Returns true if the values differ so much that only a square-root scale shows the smaller values. Ignores values not
 * above 0. */
bool sim_scale_needs_root(const double *tops, size_t count);

/* Returns the fraction of the scale that this value takes, 0 to 1. */
double sim_scale_fraction(const struct sim_scale *scale, double value);

#endif
