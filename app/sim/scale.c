/* scale.c - highest and usual height of the bins of each row, and how much rows differ. */
#include "scale.h"

#include <math.h>
#include <stdlib.h>

#define RARE       50u /* at most one bin of so many is higher than the usual height of a row */
#define CUT_RATIO  2.0 /* bins are cut if the highest is more than this times the usual */
#define NEAR       1.2 /* bins up to this times the usual are not cut */
#define ROOT_RATIO 8.0 /* ratio of the highest to the lowest row that needs a square-root scale */

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double scale_arrivals(const struct sim_point *p)
{
    return (double)p->arrivals;
}

static double scale_higher(const struct sim_point *p)
{
    return (double)(p->arrivals > p->served ? p->arrivals : p->served);
}

struct tops {
    double highest, usual;
};

/* Without memory for sorting, the highest counts as the usual: no bin is cut. */
static struct tops tops_of(const struct sim_result *r, double (*at)(const struct sim_point *))
{
    struct tops tops = {0, 0};
    double *value = malloc((r->points + 1) * sizeof *value);
    for (size_t i = 0; i < r->points; i++) {
        double top = at(&r->point[i]);
        tops.highest = top > tops.highest ? top : tops.highest;
        if (value != NULL)
            value[i] = top;
    }
    tops.usual = tops.highest;
    if (value != NULL && r->points > 0) {
        qsort(value, r->points, sizeof *value, compare_doubles);
        tops.usual = value[r->points - 1 - r->points / RARE];
    }
    free(value);
    return tops;
}

bool sim_scale_needs_root(const double *tops, size_t count)
{
    double min = HUGE_VAL, max = 0;
    for (size_t i = 0; i < count; i++) {
        min = tops[i] > 0 && tops[i] < min ? tops[i] : min;
        max = tops[i] > max ? tops[i] : max;
    }
    return max > ROOT_RATIO * min;
}

/* Returns the highest value not far above the usual. */
static double highest_near_usual(const struct sim_batch *batch, double usual, double (*at)(const struct sim_point *))
{
    double max = usual;
    for (size_t i = 0; i < batch->rows; i++)
        for (size_t j = 0; j < batch->row[i].result.points; j++) {
            double top = at(&batch->row[i].result.point[j]);
            max = top > max && top <= NEAR * usual ? top : max;
        }
    return max;
}

static struct sim_scale scale_of(const struct sim_batch *batch, double (*at)(const struct sim_point *))
{
    struct sim_scale scale = {0};
    double top[SIM_ROWS_MAX] = {0}, usual = 0;
    for (size_t i = 0; i < batch->rows; i++) {
        struct tops tops = tops_of(&batch->row[i].result, at);
        scale.highest = tops.highest > scale.highest ? tops.highest : scale.highest;
        usual = tops.usual > usual ? tops.usual : usual;
        top[i] = tops.highest;
    }
    scale.max = usual > 0 && scale.highest > CUT_RATIO * usual ? highest_near_usual(batch, usual, at) : scale.highest;
    for (size_t i = 0; i < batch->rows; i++)
        top[i] = top[i] < scale.max ? top[i] : scale.max;
    scale.root = sim_scale_needs_root(top, batch->rows);
    scale.max = scale.max > 0 ? scale.max : 1;
    return scale;
}

struct sim_scale sim_scale_of_arrivals(const struct sim_batch *batch)
{
    return scale_of(batch, scale_arrivals);
}

struct sim_scale sim_scale_of_series(const struct sim_batch *batch)
{
    return scale_of(batch, scale_higher);
}

double sim_scale_fraction(const struct sim_scale *scale, double value)
{
    double part = value > 0 ? value / scale->max : 0;
    part = part < 1 ? part : 1;
    return scale->root ? sqrt(part) : part;
}
