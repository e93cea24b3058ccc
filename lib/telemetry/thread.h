/* thread.h - the one thread of telemetry: it takes records from the ring, sends spans and metrics, writes the log, and
 * serves /metrics. */
#ifndef TELEMETRY_THREAD_H
#define TELEMETRY_THREAD_H

#include <bide/telemetry.h>

#include "otel.h"

#define TELEMETRY_STOP_NS (500 * BIDE_MS)

/* Starts the thread. otel says which signals are exported, whatever the options say; it is taken over, and then empty.
 * BIDE_ERR_SYSTEM: there is no thread, or the address to listen on is taken. */
enum bide_err telemetry_thread_start(const struct bide_telemetry_options *options, struct telemetry_otel *otel,
                                     struct bide_problem *problem);

/* Sends what is left, for at most TELEMETRY_STOP_NS, counts the rest as lost, and ends the thread. */
void telemetry_thread_stop(void);

/* Returns true if this process has the thread. */
bool telemetry_thread_runs(void);

/* In a forked child: there is no thread, and what belonged to it is the parent's. */
void telemetry_thread_forked(void);

#endif
