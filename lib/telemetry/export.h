/* export.h - sends spans to a collector, over OTLP/HTTP with protobuf, under bide's own policy.
 *
 * Retried are exactly the statuses 429, 502, 503, 504 and connections that could not be made or were lost, as the
 * specification of OTLP demands, with the hint of Retry-After; for at most OTEL_BSP_EXPORT_TIMEOUT. A batch that the
 * collector accepted in part is not sent again. Redirects are not followed. What does not arrive is counted (dropped.h):
 *     rejected        the collector refused the batch (4xx), or spans of it (partial success)
 *     export_failed   every other end: no connection, timeout, 5xx, no HTTP
 *     shutdown        it was cancelled by telemetry_export_free
 *     too_long        a span that does not fit in an empty batch
 *
 * Memory: TELEMETRY_EXPORT_SLOTS batches, one of which is being filled; the others are being sent, or are free. A response
 * is read up to 4 MiB, and 4 KiB of it are kept. While no batch is free, records stay in the ring.
 *
 * Exports are calls of bide_multi that nobody observes (unobserved in bide/curl.h): they make no spans, and no meter
 * counts them.
 *
 * Threads: one thread. */
#ifndef TELEMETRY_EXPORT_H
#define TELEMETRY_EXPORT_H

#include <bide/multi.h>

#include "otel.h"
#include "record.h"

#define TELEMETRY_EXPORT_SLOTS 4u

struct telemetry_export;

/* The options and the multi must outlive the export. */
enum bide_err telemetry_export_new(struct telemetry_export **export, struct bide_multi *multi,
                                   const struct telemetry_otel *otel, struct bide_problem *problem);

/* Cancels what is being sent, and frees all. Accepts NULL. */
void telemetry_export_free(struct telemetry_export *export);

/* Adds the spans of a record to the batch, and sends the batch when it is full. Returns false if no batch is free: offer
 * the record again when one is. wall_offset_ns: instant of the wall clock minus that of bide_now. */
bool telemetry_export_add(struct telemetry_export *export, const struct telemetry_record *record,
                          int64_t wall_offset_ns);

/* Sends the batch, unless it is empty. */
void telemetry_export_flush(struct telemetry_export *export);

/* Returns true if telemetry_export_add would accept a record. */
bool telemetry_export_is_free(const struct telemetry_export *export);

/* Returns how many batches are being sent. */
unsigned telemetry_export_sending(const struct telemetry_export *export);

/* Returns how many spans the batch still needs to be full. */
uint32_t telemetry_export_missing(const struct telemetry_export *export);

#endif
