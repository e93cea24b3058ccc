/* metric_otlp.h - metrics (metric.h) as messages of OTLP, opentelemetry.proto.metrics.v1: counters are monotonic sums,
 * sums and histograms are cumulative since the start of telemetry in this process.
 *
 * The request around them has the field numbers of a request with spans: telemetry_request_finish (span.h) completes
 * both. */
#ifndef TELEMETRY_METRIC_OTLP_H
#define TELEMETRY_METRIC_OTLP_H

#include "metric.h"
#include "protobuf.h"

/* Instants since 1970. */
struct telemetry_metric_times {
    int64_t start_ns; /* the counters were 0 */
    int64_t now_ns;   /* the numbers were read */
};

/* Writes all samples, in front of what `proto` has. Returns false if the buffer is full: then proto->failed is set, and
 * what was written before is unchanged. */
bool telemetry_metric_otlp_write(struct telemetry_proto *proto, const struct telemetry_numbers *numbers,
                                 const struct telemetry_metric_times *times);

#endif
