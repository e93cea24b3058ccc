/* metric.h - the metrics: one table of names, units, labels and meanings, from which the text for Prometheus, the names
 * in OTLP and the tables of docs/telemetry.md are made.
 *
 * telemetry_visit passes each sample of all metrics to a function, metric by metric and, within a metric, target by
 * target, as both formats want them. A sample is a row of the table with the values of its labels and a number; what
 * the number looks like in a format is the visitor's business.
 *
 * Which series exist: rate() cannot see the first value of a series, so a counter that appears with its first increment
 * hides the beginning of the trouble. Therefore all series of attempts, calls, refusals, openings, give-ups and drops
 * exist from the first call of a target, as 0; of outcomes those by which the error ratio is computed (ok, permanent,
 * transient, throttled), of waits the usual reasons, of the histograms those of successes. Other series exist once they
 * are not 0: together they would double the text, and no expression of docs/ takes a rate of them alone. */
#ifndef TELEMETRY_METRIC_H
#define TELEMETRY_METRIC_H

#include <bide/meter.h>
#include <bide/target.h>

#include "dropped.h"

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

/* The requests that a server of this process received. */
struct telemetry_inbound {
    const char *name;
    uint64_t first; /* attempts */
    uint64_t retry;
};

/* What belongs to the process, not to a target. */
struct telemetry_process {
    const struct telemetry_inbound *inbound;
    size_t inbound_count;
    int64_t start_ns; /* since 1970: its counts began then */
    uint64_t dropped[TELEMETRY_SIGNAL_COUNT][TELEMETRY_CAUSE_COUNT];
};

/* All numbers, read at one instant. */
struct telemetry_numbers {
    const struct telemetry_target *targets;
    size_t count;
    const struct telemetry_process *process; /* NULL: shared meters, which belong to no process */
};

/* ---- the table ---- */

enum telemetry_type {
    TELEMETRY_COUNTER,
    TELEMETRY_GAUGE,
    TELEMETRY_HISTOGRAM,
};

#define TELEMETRY_LABELS_MAX 2u

struct telemetry_metric {
    const char *name;      /* "bide_attempts_total", in Prometheus */
    const char *otlp_name; /* "bide.attempts": Prometheus makes `name` of it, the unit and the type */
    enum telemetry_type type;
    const char *unit; /* UCUM, as in OTLP: "s", "{attempt}" */
    uint32_t scale;   /* a number is a multiple of 1/scale of its unit: 1, 1000 (tokens), 1000000 (seconds) */
    bool has_target;  /* has the label `target` */
    const char *labels[TELEMETRY_LABELS_MAX]; /* further labels; NULL: no more */
    const char *help;                         /* one sentence, without the period */
    const char *note;                         /* for the page: what it counts, and what it does not. Markdown */
};

size_t telemetry_metric_count(void);
const struct telemetry_metric *telemetry_metric_at(size_t number);

/* Returns "counter", "gauge" or "histogram". */
const char *telemetry_type_label(enum telemetry_type type);

/* ---- the samples ---- */

struct telemetry_sample {
    const struct telemetry_metric *metric;
    const char *target;                       /* value of the label `target`, any bytes; NULL: it has none */
    const char *labels[TELEMETRY_LABELS_MAX]; /* values of metric->labels: ASCII without quotes */
    uint64_t value;                           /* times metric->scale; of a histogram the number of durations */
    const struct bide_histogram *histogram;   /* of a histogram; else NULL */
};

/* Passes all samples to the visitor. */
void telemetry_visit(const struct telemetry_numbers *numbers,
                     void (*visit)(void *context, const struct telemetry_sample *sample), void *context);

/* ---- Prometheus ---- */

/* Writes all samples in the text format of Prometheus, as bide_telemetry_write does: see there. size 0: text may be
 * NULL. */
size_t telemetry_prometheus_write_all(char *text, size_t size, const struct telemetry_numbers *numbers);

/* The same for targets alone. */
size_t telemetry_prometheus_write(char *text, size_t size, const struct telemetry_target *targets, size_t count);

#endif
