/* histogram.h - durations counted in buckets of at most 1/256 of their value: quantiles without keeping them all. */
#ifndef SIM_HISTOGRAM_H
#define SIM_HISTOGRAM_H

#include <stdint.h>

#define SIM_HISTOGRAM_BITS 8u
#define SIM_HISTOGRAM_BINS ((64u - SIM_HISTOGRAM_BITS) << SIM_HISTOGRAM_BITS)

struct sim_histogram {
    uint64_t total;
    int64_t least_ns, most_ns; /* exact */
    unsigned __int128 sum_ns;  /* exact, for the mean */
    uint64_t count[SIM_HISTOGRAM_BINS];
};

void sim_histogram_add(struct sim_histogram *histogram, int64_t ns);

/* The duration that so many millionths of all stay at or below (the nearest rank), exact to 1/256; 0 if there is none.
 * 0 and 1000000 are exact. */
int64_t sim_histogram_quantile(const struct sim_histogram *histogram, uint32_t ppm);

int64_t sim_histogram_mean(const struct sim_histogram *histogram);

#endif
