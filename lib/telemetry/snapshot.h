/* snapshot.h - reads all numbers of this process at one instant: for the exposition, and for exports of metrics.
 *
 * Meters are found by name (meters.h), the state of their gates in the table of targets by the same name. A name that
 * is not in the table (a call with a target of its own, or without one; a target that was evicted) has no state.
 *
 * Threads: all functions may be called from any thread. A lock keeps a snapshot from reading a table of targets or an
 * inbound ratio after the call that withdraws it has returned; no call of a user's request takes it. */
#ifndef TELEMETRY_SNAPSHOT_H
#define TELEMETRY_SNAPSHOT_H

#include <bide/inbound.h>
#include <bide/targets.h>

#include "metric.h"

/* Reads state in this table from now on. NULL: nowhere. */
void telemetry_snapshot_targets_set(struct bide_targets *targets);

/* The counts of this process begin now, by the wall clock, unless they began before. */
void telemetry_snapshot_started(int64_t wall_ns);

/* Registers a ratio of a server, or removes all of a name: see bide_telemetry_inbound. */
enum bide_err telemetry_snapshot_inbound_set(const char *name, const struct bide_inbound_ratio *ratio,
                                             struct bide_problem *problem);

/* Returns the numbers, which telemetry_snapshot_free frees, or NULL if there is no memory. */
struct telemetry_numbers *telemetry_snapshot_new(int64_t now_ns);
void telemetry_snapshot_free(struct telemetry_numbers *numbers); /* accepts NULL */

/* Sets what is known of the gates of a target. */
void telemetry_snapshot_state(struct telemetry_target *to, const struct bide_target *target, int64_t now_ns);

/* Passes the breakers of all targets that are counted to the log (telemetry_log_breaker). */
struct telemetry_log;
void telemetry_snapshot_log_breakers(struct telemetry_log *log, int64_t now_ns);

/* Returns the text for Prometheus in a buffer of malloc, and its length; NULL: no memory. */
char *telemetry_snapshot_page(void *context, size_t *length);

#endif
