/* histogram.c - durations counted in bins of at most 1/256 of their value.
 *
 * Below 256 ns each nanosecond has a bin. Above, each doubling is divided into 256 bins of equal width: the index
 * consists of the position of the highest bit and the eight bits below it. */
#include <assert.h>
#include <stddef.h>

#include "histogram.h"

#define FINE (UINT64_C(1) << SIM_HISTOGRAM_BITS) /* bins of each doubling */

/* Returns log2 of the bin's width in nanoseconds. */
static uint32_t bin_coarseness(size_t bin)
{
    uint32_t doubling = (uint32_t)(bin >> SIM_HISTOGRAM_BITS);
    return doubling < 2 ? 0 : doubling - 1;
}

static size_t bin_of(uint64_t ns)
{
    if (ns < FINE)
        return (size_t)ns;
    uint32_t coarse = 63 - (uint32_t)__builtin_clzll(ns) - SIM_HISTOGRAM_BITS;
    return (size_t)(coarse * FINE + (ns >> coarse));
}

/* Returns the longest duration of a bin. */
static int64_t bin_longest(size_t bin)
{
    uint32_t coarse = bin_coarseness(bin);
    uint64_t first = (bin - coarse * FINE) << coarse;
    return (int64_t)(first + ((UINT64_C(1) << coarse) - 1));
}

void sim_histogram_add(struct sim_histogram *histogram, int64_t ns)
{
    assert(ns >= 0);
    if (histogram->total == 0 || ns < histogram->min_ns)
        histogram->min_ns = ns;
    if (histogram->total == 0 || ns > histogram->max_ns)
        histogram->max_ns = ns;
    histogram->total++;
    histogram->sum_ns += (uint64_t)ns;
    histogram->count[bin_of((uint64_t)ns)]++;
}

/* Returns the rank of the quantile, from 1: the least r with r / total >= ppm / 1000000. */
static uint64_t quantile_rank(const struct sim_histogram *histogram, uint32_t ppm)
{
    unsigned __int128 parts = (unsigned __int128)histogram->total * ppm;
    return (uint64_t)((parts + 999999) / 1000000);
}

int64_t sim_histogram_quantile(const struct sim_histogram *histogram, uint32_t ppm)
{
    assert(ppm <= 1000000);
    if (histogram->total == 0 || ppm == 0)
        return histogram->min_ns;
    uint64_t rank = quantile_rank(histogram, ppm), seen = 0;
    size_t bin = 0;
    while ((seen += histogram->count[bin]) < rank)
        bin++;
    int64_t max = bin_longest(bin);
    return max < histogram->max_ns ? max : histogram->max_ns;
}

int64_t sim_histogram_mean(const struct sim_histogram *histogram)
{
    if (histogram->total == 0)
        return 0;
    return (int64_t)((histogram->sum_ns + histogram->total / 2) / histogram->total);
}
