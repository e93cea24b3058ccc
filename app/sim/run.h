/* run.h - plays one world with one seed: the real engine on a virtual clock.
 *
 * Each call is a struct bide_call, each process has a struct bide_target; the event's own time is their clock. The
 * result depends on world and seed alone. */
#ifndef SIM_RUN_H
#define SIM_RUN_H

#include "result.h"
#include "world.h"

struct sim_run_options {
    uint64_t seed;
    bool plain_queue; /* the reference queue: the same result, slower */
    /* Called now and then with how far the virtual clock is, 0 to 1; false stops the run. May be NULL. */
    bool (*progress)(void *context, double done);
    void *context;
};

enum sim_end {
    SIM_END_DONE = 0,
    SIM_END_NO_MEMORY,
    SIM_END_STOPPED, /* by progress */
    SIM_END_ENDLESS, /* drain: calls go on for ever (more than 4e9 events, or a virtual year) */
};

/* `result` is filled, and freed by sim_result_free; on anything but DONE it is empty. */
enum sim_end sim_run(const struct sim_world *world, const struct sim_run_options *how, struct sim_result *result);

#endif
