/* metric.h - the metrics: one table of names, labels and meanings, from which the text for Prometheus, the names in OTLP
 * and the page docs/metrics.md are made. */
#ifndef TELEMETRY_METRIC_H
#define TELEMETRY_METRIC_H

#include <bide/meter.h>
#include <bide/target.h>

/* The numbers of one target, read at one instant. */
struct telemetry_target {
    const char *name;
    struct bide_meter_view meter;
    bool is_shared;                /* of several processes: what is in flight now is not known */
    bool has_state;                /* the following are known */
    bool has_lease;                /* a fleet funds its budget now */
    uint64_t openings;             /* of the breaker */
    int64_t capacity_milli;        /* of the budget; 0: it has no bucket of tokens */
    int64_t now_ns;                /* when it was read */
    struct bide_target_view state; /* gates */
};

/* Writes all metrics of these targets as bide_telemetry_write does. */
size_t telemetry_prometheus_write(char *text, size_t size, const struct telemetry_target *targets, size_t count);

#endif
