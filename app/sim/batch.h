/* batch.h - runs all rows of a scenario with one or more seeds on all cores, and combines the results.
 *
 * The run of a row with a seed does not depend on other runs, and results are combined in the order of rows and seeds:
 * the number of threads changes nothing but the elapsed time. */
#ifndef SIM_BATCH_H
#define SIM_BATCH_H

#include "result.h"
#include "run.h"
#include "scenario.h"

/* One metric over all seeds. */
struct sim_figure {
    double mean; /* over the seeds that have a value; NAN: no seed has */
    double half; /* half-width of the 95 % confidence interval (Student's t); 0 with a single seed */
    double min, max;
    uint32_t count; /* number of seeds that have a value */
};

struct sim_row_result {
    struct sim_result result;  /* of the first seed, with its series */
    struct sim_figure *figure; /* by metric; owned */
};

struct sim_plan {
    uint64_t seed;    /* the first seed; the others are seed + 1 ... */
    uint32_t seeds;   /* 1 or more */
    uint32_t threads; /* 0: number of cores */
    bool plain_queue;
    /* Called about ten times a second, in the calling thread, with the share of all work that is done; returning false
     * stops all runs. May be NULL. */
    bool (*progress)(void *context, double done);
    void *context;
    const char
        *command_line; /* scenario and options (without those of seeds), quoted for a shell; NULL: the name alone */
};

struct sim_batch {
    const struct sim_scenario *scenario;
    struct sim_plan plan;
    struct sim_row_result *row; /* owned; one per row of the scenario */
    size_t rows;
};

/* Returns DONE, or why it stopped: then failed_row names the row, and nothing needs to be freed. */
enum sim_end sim_batch_run(struct sim_batch *batch, const struct sim_scenario *scenario, const struct sim_plan *plan,
                           const char **failed_row);
void sim_batch_free(struct sim_batch *batch);

/* Returns the number of threads that will be used: at most one per run. */
uint32_t sim_batch_threads(const struct sim_scenario *scenario, const struct sim_plan *plan);

/* sim_batch_bytes estimates the peak memory of a batch with this number of threads. sim_memory_available returns the
 * memory that the process can still get (MemAvailable, limits of the process and of its control groups; UINT64_MAX:
 * unknown). `root` contains /proc and /sys: "" except in tests. */
uint64_t sim_batch_bytes(const struct sim_scenario *scenario, const struct sim_plan *plan);
uint64_t sim_memory_available(void);
uint64_t sim_memory_available_under(const char *root);

#endif
