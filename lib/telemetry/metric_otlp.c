/* metric_otlp.c - metrics as messages of OTLP: see metric_otlp.h.
 *
 * Everything is written backwards (protobuf.h). The samples come metric by metric, so a metric is opened by its first
 * sample, which writes the fields behind the data points, and is closed by the first sample of the next metric, or by
 * the end. Metrics and data points are therefore in reverse order, which has no meaning in OTLP. */
#include "metric_otlp.h"

#include "meters.h"
#include "span.h"

#include <assert.h>
#include <string.h>

#define NS_PER_S 1000000000.0

/* Fields of opentelemetry.proto.metrics.v1. */
enum {
    SCOPE_METRICS_METRICS = 2,
    METRIC_NAME = 1,
    METRIC_DESCRIPTION = 2,
    METRIC_UNIT = 3,
    METRIC_GAUGE = 5,
    METRIC_SUM = 7,
    METRIC_HISTOGRAM = 9,
    DATA_POINTS = 1, /* of Gauge, Sum and Histogram */
    DATA_TEMPORALITY = 2,
    DATA_IS_MONOTONIC = 3,
    TEMPORALITY_CUMULATIVE = 2,
    POINT_START = 2, /* of both kinds of data points */
    POINT_TIME = 3,
    NUMBER_AS_DOUBLE = 4,
    NUMBER_AS_INT = 6,
    NUMBER_ATTRIBUTES = 7,
    HISTOGRAM_COUNT = 4,
    HISTOGRAM_SUM = 5,
    HISTOGRAM_BUCKET_COUNTS = 6,
    HISTOGRAM_EXPLICIT_BOUNDS = 7,
    HISTOGRAM_ATTRIBUTES = 9,
};

struct writer {
    struct telemetry_proto *proto;
    const struct telemetry_metric_times *times;
    const struct telemetry_metric *metric; /* which is being written; NULL: none */
    size_t end;                            /* where its message ends */
};

static struct bide_text text_of(const char *text)
{
    return (struct bide_text){text, strlen(text)};
}

/* ---- data points ---- */

static void write_attributes(const struct writer *w, const struct telemetry_sample *sample, uint32_t field)
{
    for (size_t i = TELEMETRY_LABELS_MAX; i > 0; i--)
        if (sample->metric->labels[i - 1] != NULL)
            telemetry_attribute_write(w->proto, field, sample->metric->labels[i - 1], text_of(sample->labels[i - 1]));
    if (sample->target == NULL)
        return;
    if (strcmp(sample->target, TELEMETRY_OTHER) == 0)
        telemetry_attribute_write_bool(w->proto, field, "otel.metric.overflow", true);
    telemetry_attribute_write(w->proto, field, "bide.target", text_of(sample->target));
}

/* A gauge has no start: its value does not grow since then. */
static void write_times(const struct writer *w)
{
    telemetry_proto_fixed64(w->proto, POINT_TIME, (uint64_t)w->times->now_ns);
    if (w->metric->type != TELEMETRY_GAUGE)
        telemetry_proto_fixed64(w->proto, POINT_START, (uint64_t)w->times->start_ns);
}

static void write_number(const struct writer *w, const struct telemetry_sample *sample)
{
    write_attributes(w, sample, NUMBER_ATTRIBUTES);
    if (sample->metric->scale == 1)
        telemetry_proto_fixed64(w->proto, NUMBER_AS_INT, sample->value);
    else
        telemetry_proto_double(w->proto, NUMBER_AS_DOUBLE, (double)sample->value / sample->metric->scale);
    write_times(w);
}

/* The last bin has no bound. As in OTLP, the bound of a bin belongs to it, and the counts are those of single bins. */
static void write_histogram(const struct writer *w, const struct telemetry_sample *sample)
{
    double bounds[BIDE_METER_BINS - 1];
    assert(bide_meter_bound_ns(BIDE_METER_BINS - 1) == BIDE_NEVER);
    for (uint32_t bin = 0; bin < BIDE_METER_BINS - 1; bin++)
        bounds[bin] = (double)bide_meter_bound_ns(bin) / NS_PER_S;
    write_attributes(w, sample, HISTOGRAM_ATTRIBUTES);
    telemetry_proto_doubles(w->proto, HISTOGRAM_EXPLICIT_BOUNDS, bounds, BIDE_METER_BINS - 1);
    telemetry_proto_fixed64s(w->proto, HISTOGRAM_BUCKET_COUNTS, sample->histogram->count, BIDE_METER_BINS);
    telemetry_proto_double(w->proto, HISTOGRAM_SUM, (double)sample->histogram->sum_us / sample->metric->scale);
    telemetry_proto_fixed64(w->proto, HISTOGRAM_COUNT, sample->value);
    write_times(w);
}

/* ---- metrics ---- */

static void metric_open(struct writer *w, const struct telemetry_metric *metric)
{
    w->metric = metric;
    w->end = w->proto->at;
    if (metric->type == TELEMETRY_COUNTER)
        telemetry_proto_uint(w->proto, DATA_IS_MONOTONIC, true);
    if (metric->type != TELEMETRY_GAUGE)
        telemetry_proto_uint(w->proto, DATA_TEMPORALITY, TEMPORALITY_CUMULATIVE);
}

static void metric_close(const struct writer *w)
{
    static const uint32_t fields[] = {METRIC_SUM, METRIC_GAUGE, METRIC_HISTOGRAM};
    if (w->metric == NULL)
        return;
    telemetry_proto_message(w->proto, fields[w->metric->type], w->end);
    telemetry_proto_string(w->proto, METRIC_UNIT, text_of(w->metric->unit));
    telemetry_proto_string(w->proto, METRIC_DESCRIPTION, text_of(w->metric->help));
    telemetry_proto_string(w->proto, METRIC_NAME, text_of(w->metric->otlp_name));
    telemetry_proto_message(w->proto, SCOPE_METRICS_METRICS, w->end);
}

static void write_visited(void *context, const struct telemetry_sample *sample)
{
    struct writer *w = context;
    if (sample->metric != w->metric) {
        metric_close(w);
        metric_open(w, sample->metric);
    }
    size_t end = w->proto->at;
    if (sample->histogram != NULL)
        write_histogram(w, sample);
    else
        write_number(w, sample);
    telemetry_proto_message(w->proto, DATA_POINTS, end);
}

bool telemetry_metric_otlp_write(struct telemetry_proto *proto, const struct telemetry_numbers *numbers,
                                 const struct telemetry_metric_times *times)
{
    struct writer w = {.proto = proto, .times = times};
    size_t before = proto->at;
    telemetry_visit(numbers, write_visited, &w);
    metric_close(&w);
    if (proto->failed)
        proto->at = before;
    return !proto->failed;
}
