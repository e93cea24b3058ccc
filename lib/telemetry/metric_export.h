/* metric_export.h - exports all metrics over OTLP every OTEL_METRIC_EXPORT_INTERVAL, and once more at the end.
 *
 * An export reads the numbers once, and sends them in requests of up to 512 targets or 8 MiB: the usual 128 targets are
 * one request. A request that fails is retried as one of spans is (export.h), and then counted as lost, not kept: the
 * numbers of the next are cumulative and newer. An export that is due while the last one still runs begins when that
 * ends.
 *
 * Memory: the numbers, 3 KiB for each target, until the last request is encoded, and up to TELEMETRY_EXPORT_SLOTS
 * requests.
 *
 * Threads: one thread. */
#ifndef TELEMETRY_METRIC_EXPORT_H
#define TELEMETRY_METRIC_EXPORT_H

#include "export.h"

struct telemetry_metric_export;

/* The options and the multi must outlive the export. The first export is due one interval after now_ns. */
enum bide_err telemetry_metric_export_new(struct telemetry_metric_export **metrics, struct bide_multi *multi,
                                          const struct telemetry_otel *otel, int64_t now_ns,
                                          struct bide_problem *problem);

/* Cancels what is being sent, and frees all. Accepts NULL. */
void telemetry_metric_export_free(struct telemetry_metric_export *metrics);

/* Begins an export if it is due, and sends the requests for which there is room. Returns when the next export is due;
 * BIDE_NEVER while one runs: then the end of a request has to come first. wall_offset_ns: instant of the wall clock
 * minus that of bide_now. */
int64_t telemetry_metric_export_tick(struct telemetry_metric_export *metrics, int64_t now_ns, int64_t wall_offset_ns);

/* Begins the last export. One that runs is cancelled and counted as lost: it may be waiting to be retried. */
void telemetry_metric_export_finish(struct telemetry_metric_export *metrics, int64_t now_ns, int64_t wall_offset_ns);

/* Returns true if no export runs. */
bool telemetry_metric_export_is_idle(const struct telemetry_metric_export *metrics);

#endif
