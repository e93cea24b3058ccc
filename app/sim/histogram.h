/* histogram.h - durations counted in bins of at most 1/256 of their value: quantiles without keeping all durations. */
#ifndef SIM_HISTOGRAM_H
#define SIM_HISTOGRAM_H

#include <stdint.h>

#define SIM_HISTOGRAM_BITS 8u
#define SIM_HISTOGRAM_BINS ((64u - SIM_HISTOGRAM_BITS) << SIM_HISTOGRAM_BITS)

struct sim_histogram {
    uint64_t total;
    int64_t min_ns, max_ns;   /* exact */
    unsigned __int128 sum_ns; /* exact, for the mean */
    uint64_t count[SIM_HISTOGRAM_BINS];
};

void sim_histogram_add(struct sim_histogram *histogram, int64_t ns);

/* Returns the duration that `ppm` millionths of all durations do not exceed (nearest rank), exact to 1/256; 0 if the
 * histogram is empty. Exact for 0 and 1000000. */
int64_t sim_histogram_quantile(const struct sim_histogram *histogram, uint32_t ppm);

int64_t sim_histogram_mean(const struct sim_histogram *histogram);

#endif
