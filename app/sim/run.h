/* run.h - simulates a world with a seed: the production engine on a virtual clock.
 *
 * Each call is a struct bide_call, each process (or host) has a struct bide_target, and the time of the current event
 * is their clock. The result depends on world and seed alone. */
#ifndef SIM_RUN_H
#define SIM_RUN_H

#include "result.h"
#include "world.h"

struct sim_run_options {
    uint64_t seed;
    bool plain_queue; /* use the reference queue, a binary heap: same result, slower */
    /* Called every 65,536 events with the share of the duration that has passed, 0 to 1; returning false stops the run.
     * May be NULL. */
    bool (*progress)(void *context, double done);
    void *context;
};

enum sim_end {
    SIM_END_DONE = 0,
    SIM_END_NO_MEMORY,
    SIM_END_STOPPED, /* progress returned false */
    SIM_END_ENDLESS, /* drain: calls never end (more than 4e9 events, or a virtual year) */
};

/* Fills `result`, which sim_result_free frees; it is empty unless DONE is returned. */
enum sim_end sim_run(const struct sim_world *world, const struct sim_run_options *options, struct sim_result *result);

#endif
