/* batch.h - all rows of a scenario with one or more seeds, on all cores, and what they come to together.
 *
 * Seed s of a row is the same run whatever else is run beside it, and results are put together in the order of rows and
 * seeds: the number of threads changes nothing but the time it takes. */
#ifndef SIM_BATCH_H
#define SIM_BATCH_H

#include "result.h"
#include "run.h"
#include "scenario.h"

/* One metric over all seeds. */
struct sim_figure {
    double mean; /* of those seeds that have a value; NAN: none has */
    double half; /* half of its 95 % interval (Student's t); 0 with one seed */
    double least, most;
    uint32_t count; /* seeds that have a value */
};

struct sim_row_result {
    struct sim_result result;  /* of the first seed, with its series */
    struct sim_figure *figure; /* by metric; owned */
};

struct sim_plan {
    uint64_t seed;    /* the first; the next are seed + 1 ... */
    uint32_t seeds;   /* 1 or more */
    uint32_t threads; /* 0: as many as there are cores */
    bool plain_queue;
    /* Called about ten times a second, from the thread that called, with the share of all work that is done; false
     * stops everything. May be NULL. */
    bool (*progress)(void *context, double done);
    void *context;
    const char
        *command_line; /* scenario and options (but those of seeds) as a shell reads them back; NULL: the name alone */
};

struct sim_batch {
    const struct sim_scenario *scenario;
    struct sim_plan plan;
    struct sim_row_result *row; /* owned; one per row of the scenario */
    size_t rows;
};

/* DONE, or what stopped it: then `at` names the row, and nothing needs to be freed. */
enum sim_end sim_batch_run(struct sim_batch *batch, const struct sim_scenario *scenario, const struct sim_plan *plan,
                           const char **failed_row);
void sim_batch_free(struct sim_batch *batch);

/* How many threads it will use: not more than there are runs. */
uint32_t sim_batch_threads(const struct sim_scenario *scenario, const struct sim_plan *plan);

/* Bytes that it needs at once with so many threads, and those the system can still give (MemAvailable, and the limits
 * of the process and its control groups; UINT64_MAX: not known). `root` has /proc and /sys: "" but in tests. */
uint64_t sim_batch_bytes(const struct sim_scenario *scenario, const struct sim_plan *plan);
uint64_t sim_memory_available(void);
uint64_t sim_memory_available_under(const char *root);

#endif
