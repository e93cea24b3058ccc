/* golden.h - for tests of the catalogue: reads a scenario as `bide sim` does, runs a row of it, and returns metrics.
 *
 * A row is named by its label: "full, clients.count=10". Every failure names scenario, row, seed and metric. */
#ifndef SIM_GOLDEN_H
#define SIM_GOLDEN_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* cmocka.h needs four of the above */
#include <cmocka.h>

#include "sim/run.h"
#include "sim/scenario.h"

#define GOLDEN_SEED UINT64_C(1)

/* A scenario of the catalogue with some keys set: a NULL-terminated list, or NULL. */
static inline struct sim_scenario *golden_read(const char *name, const char *const *set)
{
    static char errors[CONF_ERROR_MAX];
    struct sim_overrides overrides = {.set = set};
    struct sim_scenario *scenario = sim_scenario_read(name, &overrides, errors);
    if (scenario == NULL)
        fail_msg("%s", errors);
    return scenario;
}

static inline const struct sim_row *golden_row(const struct sim_scenario *scenario, const char *label)
{
    for (size_t i = 0; i < sim_scenario_rows(scenario); i++)
        if (strcmp(sim_scenario_row(scenario, i)->label, label) == 0)
            return sim_scenario_row(scenario, i);
    fail_msg("%s has no row \"%s\"", sim_scenario_name(scenario), label);
    return NULL;
}

static inline void golden_run(const struct sim_row *row, uint64_t seed, struct sim_result *result)
{
    struct sim_run_options options = {.seed = seed};
    if (sim_run(&row->world, &options, result) != SIM_END_DONE)
        fail_msg("\"%s\", seed %llu: the run did not come to its end", row->label, (unsigned long long)seed);
}

static inline double golden_figure(const struct sim_result *result, const char *metric)
{
    size_t i = sim_metric_find(metric, strlen(metric));
    if (i == SIZE_MAX)
        fail_msg("no metric is called %s", metric);
    return sim_metric_value(result, i);
}

/* Returns a metric of a row with the first seed. */
static inline double golden(const struct sim_scenario *scenario, const char *label, const char *metric)
{
    static struct sim_result result;
    golden_run(golden_row(scenario, label), GOLDEN_SEED, &result);
    double value = golden_figure(&result, metric);
    sim_result_free(&result);
    return value;
}

/* Returns the mean of a metric over several seeds. */
static inline double golden_mean(const struct sim_row *row, const char *metric, uint32_t seeds)
{
    static struct sim_result result;
    double sum = 0;
    for (uint32_t i = 0; i < seeds; i++) {
        golden_run(row, GOLDEN_SEED + i, &result);
        sum += golden_figure(&result, metric);
        sim_result_free(&result);
    }
    return sum / seeds;
}

/* Fails unless the value is within the tolerance. */
static inline void golden_near(const char *what, double value, double want, double tolerance)
{
    if (!(fabs(value - want) <= tolerance))
        fail_msg("%s is %.6g; expected %.6g, give or take %.3g (seeds from %llu)", what, value, want, tolerance,
                 (unsigned long long)GOLDEN_SEED);
}

#endif
