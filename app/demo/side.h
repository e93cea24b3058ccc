/* side.h - one side of the comparison: a server in one thread, all its callers in another, over real sockets.
 *
 * The server is bide chaos. The callers are driven by bide_multi whatever the plan, the naive loop included: the two
 * sides differ in their policy and target and in nothing else. Both sides run at the same time. */
#ifndef DEMO_SIDE_H
#define DEMO_SIDE_H

#include "counters.h"

#define DEMO_ERROR_SIZE 200u

struct demo_side;

/* How far a side has come; from any thread while it runs. */
struct demo_progress {
    uint64_t requests;  /* that the server saw */
    uint64_t succeeded; /* calls */
    uint64_t failed;
    uint64_t in_progress; /* calls that wait for an answer or for their next attempt */
    bool over;
};

/* Ready to begin: the server listens, and serves from now on. Scenario and plan must outlive the side. NULL: what went
 * wrong is in error. */
struct demo_side *demo_side_new(const struct demo_scenario *scenario, const struct demo_client *client,
                                char error[DEMO_ERROR_SIZE]);

/* The callers start; start_ns is the instant that all times count from. */
bool demo_side_begin(struct demo_side *side, int64_t start_ns, char error[DEMO_ERROR_SIZE]);

struct demo_progress demo_side_progress(const struct demo_side *side);

/* Ends it early: what is under way is cancelled. From any thread. */
void demo_side_stop(struct demo_side *side);

/* Waits for the end of the callers and stops the server. False: what went wrong is in error. */
bool demo_side_end(struct demo_side *side, struct demo_record *record, char error[DEMO_ERROR_SIZE]);

/* How late the call began that began latest, compared with its plan: a busy machine. After the end. */
int64_t demo_side_late_ns(const struct demo_side *side);

void demo_side_free(struct demo_side *side); /* ends it, too; accepts NULL */

#endif
