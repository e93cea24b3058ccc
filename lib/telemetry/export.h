/* export.h - sends spans, or metrics, to a collector, over OTLP/HTTP with protobuf, under bide's own policy.
 *
 * An export has one signal. A batch of spans is filled record by record and counts its spans; a batch of metrics has
 * what was read at one instant, is full at once, and counts as one item.
 *
 * Retried are exactly the statuses 429, 502, 503, 504 and connections that could not be made or were lost, as the
 * specification of OTLP demands, with the hint of Retry-After; for at most OTEL_BSP_EXPORT_TIMEOUT or
 * OTEL_METRIC_EXPORT_TIMEOUT. A batch that the
 * collector accepted in part is not sent again. Redirects are not followed. What does not arrive is counted
 * (dropped.h):
 *     rejected        the collector refused the batch (4xx), or spans of it (partial success); of metrics the batch
 *                     counts as rejected if any data point of it was
 *     export_failed   every other end: no connection, timeout, 5xx, no HTTP
 *     shutdown        it was cancelled by telemetry_export_free
 *     too_long        a span that does not fit in an empty batch
 *
 * Memory: TELEMETRY_EXPORT_SLOTS batches, one of which is being filled; the others are being sent, or are free. A
 * response is read up to 4 MiB, and 4 KiB of it are kept. While no batch is free, records stay in the ring.
 *
 * Exports are calls of bide_multi that nobody observes (unobserved in bide/curl.h): they make no spans, and no meter
 * counts them.
 *
 * Threads: one thread. */
#ifndef TELEMETRY_EXPORT_H
#define TELEMETRY_EXPORT_H

#include <bide/multi.h>

#include "dropped.h"
#include "metric_otlp.h"
#include "otel.h"
#include "record.h"

#define TELEMETRY_EXPORT_SLOTS 4u

struct telemetry_export;

/* Creates the export of TELEMETRY_SPANS or TELEMETRY_METRICS. The options and the multi must outlive it. */
enum bide_err telemetry_export_new(struct telemetry_export **export, struct bide_multi *multi,
                                   enum telemetry_signal signal, const struct telemetry_otel *otel,
                                   struct bide_problem *problem);

/* Cancels what is being sent, and frees all. Accepts NULL. */
void telemetry_export_free(struct telemetry_export *export);

/* Adds the spans of a record to the batch, and sends the batch when it is full. Returns false if no batch is free:
 * offer the record again when one is. wall_offset_ns: instant of the wall clock minus that of bide_now. */
bool telemetry_export_add(struct telemetry_export *export, const struct telemetry_record *record,
                          int64_t wall_offset_ns);

enum telemetry_sent {
    TELEMETRY_SENT,
    TELEMETRY_TOO_BIG, /* for one batch: nothing was sent */
    TELEMETRY_NO_ROOM, /* no batch is free, or there is no memory: nothing was sent */
};

/* Sends metrics as one batch. */
enum telemetry_sent telemetry_export_send_metrics(struct telemetry_export *export,
                                                  const struct telemetry_numbers *numbers,
                                                  const struct telemetry_metric_times *times);

/* Cancels what is being sent, and counts it as lost by the shutdown. */
void telemetry_export_cancel(struct telemetry_export *export);

/* Sends the batch, unless it is empty. */
void telemetry_export_flush(struct telemetry_export *export);

/* Returns true if a batch is free, or being filled. */
bool telemetry_export_is_free(const struct telemetry_export *export);

/* Returns how many batches are being sent. */
unsigned telemetry_export_sending(const struct telemetry_export *export);

/* Returns how many spans the batch still needs to be full. */
uint32_t telemetry_export_missing(const struct telemetry_export *export);

#endif
