/* side.h - one side of the comparison: a server in one thread, all its callers in another, over real sockets.
 *
 * The server is bide chaos. The callers use bide_multi on both sides, also for the naive loop: the two sides differ
 * only in policy and target. Both sides run at the same time. */
#ifndef DEMO_SIDE_H
#define DEMO_SIDE_H

#include "counters.h"

#define DEMO_ERROR_SIZE 512u

struct demo_side;

/* Progress of a side; readable from any thread while it runs. */
struct demo_progress {
    uint64_t requests;  /* received by the server */
    uint64_t succeeded; /* calls */
    uint64_t failed;
    uint64_t in_progress; /* calls that wait for a response or for their next attempt */
    bool over;
};

/* Creates a side; its server listens and serves from now on. Scenario and client must outlive it. Returns NULL after
 * setting `error`. */
struct demo_side *demo_side_new(const struct demo_scenario *scenario, const struct demo_client *client,
                                char error[DEMO_ERROR_SIZE]);

/* Starts the callers; start_ns is the origin of all times. */
bool demo_side_begin(struct demo_side *side, int64_t start_ns, char error[DEMO_ERROR_SIZE]);

struct demo_progress demo_side_progress(const struct demo_side *side);

/* Cancels the calls in progress. Safe from any thread. */
void demo_side_stop(struct demo_side *side);

/* Waits for the callers to finish and stops the server. Returns false after setting `error`. */
bool demo_side_end(struct demo_side *side, struct demo_record *record, char error[DEMO_ERROR_SIZE]);

/* Returns the largest delay of a call's start against the schedule, which is a sign of a busy machine. Valid after the
 * end. */
int64_t demo_side_late_ns(const struct demo_side *side);

void demo_side_free(struct demo_side *side); /* ends it first; accepts NULL */

#endif
