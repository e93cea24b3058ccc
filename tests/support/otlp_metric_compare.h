/* otlp_metric_compare.h - for tests: asserts that data points of OTLP are samples of a text for Prometheus. */
#ifndef OTLP_METRIC_COMPARE_H
#define OTLP_METRIC_COMPARE_H

#include "telemetry/metric.h"

#include "otlp_metric_text.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* Returns the row of a metric in the table. */
static inline const struct telemetry_metric *otlp_row(const char *otlp_name)
{
    for (size_t i = 0; i < telemetry_metric_count(); i++)
        if (strcmp(telemetry_metric_at(i)->otlp_name, otlp_name) == 0)
            return telemetry_metric_at(i);
    fail_msg("no metric %s", otlp_name);
    return NULL;
}

/* Returns the labels of a point, as in Prometheus, without braces. */
static inline const char *otlp_labels(const struct otlp_point *point)
{
    static char labels[1024];
    char lines[1024];
    labels[0] = '\0';
    snprintf(lines, sizeof lines, "%s", point->attributes);
    for (char *line = strtok(lines, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        char *value = strchr(line, '=');
        *value++ = '\0';
        if (strcmp(line, "otel.metric.overflow") == 0)
            continue;
        size_t length = strlen(labels);
        snprintf(labels + length, sizeof labels - length, "%s%s=\"%s\"", length > 0 ? "," : "",
                 strcmp(line, "bide.target") == 0 ? "target" : line, value);
    }
    return labels;
}

/* Asserts that the text has a series with a value. */
static inline void otlp_assert_sample(const char *text, const char *name, const char *labels, double value)
{
    char series[1200];
    int length = snprintf(series, sizeof series, "\n%s%s%s%s ", name, labels[0] != '\0' ? "{" : "", labels,
                          labels[0] != '\0' ? "}" : "");
    const char *at = strstr(text, series);
    if (at == NULL || strtod(at + length, NULL) != value)
        fail_msg("no%s%.17g", series, value);
}

static inline void otlp_assert_histogram(const struct otlp_point *point, const char *name, const char *text)
{
    char suffixed[80], labels[1100];
    uint64_t count = 0;
    assert_int_equal(point->count_length, BIDE_METER_BINS);
    assert_int_equal(point->bound_length, BIDE_METER_BINS - 1);
    snprintf(suffixed, sizeof suffixed, "%s_bucket", name);
    for (size_t bin = 0; bin < point->count_length; bin++) {
        char bound[32] = "+Inf";
        if (bin < point->bound_length)
            snprintf(bound, sizeof bound, "%.15g", point->bounds[bin]);
        count += point->counts[bin];
        snprintf(labels, sizeof labels, "%s,le=\"%s\"", otlp_labels(point), bound);
        otlp_assert_sample(text, suffixed, labels, (double)count);
    }
    assert_int_equal(point->count, count);
    snprintf(suffixed, sizeof suffixed, "%s_sum", name);
    otlp_assert_sample(text, suffixed, otlp_labels(point), point->as_double);
    snprintf(suffixed, sizeof suffixed, "%s_count", name);
    otlp_assert_sample(text, suffixed, otlp_labels(point), (double)count);
}

/* Asserts that a point is in the text. Returns how many of its lines that are. */
static inline size_t otlp_assert_in_text(const struct otlp_point *point, const char *text)
{
    const struct telemetry_metric *row = otlp_row(point->metric.name);
    if (row->type == TELEMETRY_HISTOGRAM) {
        otlp_assert_histogram(point, row->name, text);
        return BIDE_METER_BINS + 2;
    }
    otlp_assert_sample(text, row->name, otlp_labels(point), point->has_int ? (double)point->as_int : point->as_double);
    return 1;
}

#endif
