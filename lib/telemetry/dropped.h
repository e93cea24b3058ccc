/* dropped.h - what telemetry has lost, by signal and cause: the metric bide_telemetry_dropped_total.
 *
 * Every place that gives up a record, a line or a batch of them adds their number here, so that no loss is silent.
 * Counters of the process: they only grow.
 *
 * Threads: both functions may be called from any thread. */
#ifndef TELEMETRY_DROPPED_H
#define TELEMETRY_DROPPED_H

#include <stdint.h>

/* X(NAME, label, what one dropped item is) */
#define TELEMETRY_SIGNAL_LIST(X)                                                                                       \
    X(SPANS, "spans", "span")                                                                                          \
    X(LOGS, "logs", "log line")                                                                                        \
    X(METRICS, "metrics", "page of all metrics, or request with them to a collector")

/* X(NAME, label, sentence) */
#define TELEMETRY_CAUSE_LIST(X)                                                                                        \
    X(RING_FULL, "ring_full", "the ring between calls and the export thread was full")                                 \
    X(EXPORT_FAILED, "export_failed", "the collector could not be reached, or failed until the retries were spent")    \
    X(REJECTED, "rejected", "the collector refused the items, all or some: they are not sent again")                   \
    X(BLOCKED, "blocked", "the reader of the log was too slow: writing would have blocked")                            \
    X(WRITE_ERROR, "write_error", "the log could not be written: disk full, pipe closed")                              \
    X(TOO_LONG, "too_long", "an item was longer than the room for it")                                                 \
    X(SHUTDOWN, "shutdown", "the process ended before the item was sent")

enum telemetry_signal {
#define TELEMETRY_SIGNAL_ENUM(NAME, label, item) TELEMETRY_##NAME,
    TELEMETRY_SIGNAL_LIST(TELEMETRY_SIGNAL_ENUM)
#undef TELEMETRY_SIGNAL_ENUM
        TELEMETRY_SIGNAL_COUNT
};

enum telemetry_cause {
#define TELEMETRY_CAUSE_ENUM(NAME, label, sentence) TELEMETRY_##NAME,
    TELEMETRY_CAUSE_LIST(TELEMETRY_CAUSE_ENUM)
#undef TELEMETRY_CAUSE_ENUM
        TELEMETRY_CAUSE_COUNT
};

/* Adds n items of a signal that were lost for this cause. */
void telemetry_dropped_add(enum telemetry_signal signal, enum telemetry_cause cause, uint64_t n);

/* Returns how many were lost so far. */
uint64_t telemetry_dropped_get(enum telemetry_signal signal, enum telemetry_cause cause);

/* Return a label, as "spans" or "ring_full"; never NULL. */
const char *telemetry_signal_label(enum telemetry_signal signal);
const char *telemetry_cause_label(enum telemetry_cause cause);

/* Returns the sentence of a cause; never NULL. */
const char *telemetry_cause_text(enum telemetry_cause cause);

#endif
