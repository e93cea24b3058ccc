/* otlp_metric_text.h - for tests: decodes the data points of an ExportMetricsServiceRequest, independently of
 * lib/telemetry. Attributes are lines, as in otlp_text.h. */
#ifndef OTLP_METRIC_TEXT_H
#define OTLP_METRIC_TEXT_H

#include "otlp_text.h"

#define OTLP_BINS_MAX 32u

struct otlp_metric {
    char name[64], unit[32], description[128];
    unsigned type;        /* field of the data: 5 gauge, 7 sum, 9 histogram */
    unsigned temporality; /* 2: cumulative */
    bool is_monotonic;
};

struct otlp_point {
    struct otlp_metric metric;
    char attributes[1024];
    uint64_t start_ns, time_ns;
    bool has_int, has_double;
    int64_t as_int;
    double as_double; /* of a histogram its sum */
    uint64_t count;   /* of a histogram, as all below */
    uint64_t counts[OTLP_BINS_MAX];
    double bounds[OTLP_BINS_MAX];
    size_t count_length, bound_length;
};

struct otlp_metrics {
    char resource[OTLP_LINES];
    char scope[64], version[64];
    struct otlp_point *point;
    size_t count, room;
    size_t metrics; /* messages of that name */
    unsigned requests;
    bool is_malformed;
};

static inline double otlp_double(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Reads a packed field of fixed64. Returns how many there were. */
static inline size_t otlp_packed(uint64_t values[OTLP_BINS_MAX], struct otlp_cursor c, bool *bad)
{
    size_t count = (size_t)(c.end - c.at) / 8;
    *bad = *bad || (c.end - c.at) % 8 != 0 || count > OTLP_BINS_MAX;
    for (size_t i = 0; !*bad && i < count; i++) {
        values[i] = 0;
        for (size_t byte = 0; byte < 8; byte++)
            values[i] |= (uint64_t)*c.at++ << 8 * byte;
    }
    return *bad ? 0 : count;
}

static inline void otlp_number_decode(struct otlp_point *point, struct otlp_cursor c, bool *bad)
{
    char lines[OTLP_LINES] = "";
    struct otlp_field f;
    while (otlp_next(&c, &f, bad)) {
        switch (f.number) {
        case 2: point->start_ns = f.value; break;
        case 3: point->time_ns = f.value; break;
        case 4: point->as_double = otlp_double(f.value), point->has_double = true; break;
        case 6: point->as_int = (int64_t)f.value, point->has_int = true; break;
        case 7: otlp_attribute(lines, f.bytes, bad); break;
        default: *bad = true;
        }
    }
    snprintf(point->attributes, sizeof point->attributes, "%s", lines);
}

static inline void otlp_histogram_decode(struct otlp_point *point, struct otlp_cursor c, bool *bad)
{
    char lines[OTLP_LINES] = "";
    uint64_t bounds[OTLP_BINS_MAX];
    struct otlp_field f;
    while (otlp_next(&c, &f, bad)) {
        switch (f.number) {
        case 2: point->start_ns = f.value; break;
        case 3: point->time_ns = f.value; break;
        case 4: point->count = f.value; break;
        case 5: point->as_double = otlp_double(f.value), point->has_double = true; break;
        case 6: point->count_length = otlp_packed(point->counts, f.bytes, bad); break;
        case 7: point->bound_length = otlp_packed(bounds, f.bytes, bad); break;
        case 9: otlp_attribute(lines, f.bytes, bad); break;
        default: *bad = true;
        }
    }
    for (size_t i = 0; i < point->bound_length; i++)
        point->bounds[i] = otlp_double(bounds[i]);
    snprintf(point->attributes, sizeof point->attributes, "%s", lines);
}

static inline struct otlp_point *otlp_point_new(struct otlp_metrics *all)
{
    if (all->count == all->room) {
        all->room = all->room * 2 + 64;
        all->point = realloc(all->point, all->room * sizeof *all->point);
    }
    memset(&all->point[all->count], 0, sizeof *all->point);
    return &all->point[all->count++];
}

/* Decodes Gauge, Sum or Histogram. */
static inline void otlp_data_decode(struct otlp_metrics *all, struct otlp_metric *metric, struct otlp_cursor c)
{
    struct otlp_cursor again = c;
    struct otlp_field f;
    while (otlp_next(&c, &f, &all->is_malformed)) {
        if (f.number == 2 && metric->type != 5)
            metric->temporality = (unsigned)f.value;
        else if (f.number == 3 && metric->type == 7)
            metric->is_monotonic = f.value == 1;
        else if (f.number != 1)
            all->is_malformed = true;
    }
    while (otlp_next(&again, &f, &all->is_malformed)) {
        if (f.number != 1)
            continue;
        struct otlp_point *point = otlp_point_new(all);
        point->metric = *metric;
        (metric->type == 9 ? otlp_histogram_decode : otlp_number_decode)(point, f.bytes, &all->is_malformed);
    }
}

static inline void otlp_metric_decode(struct otlp_metrics *all, struct otlp_cursor c)
{
    struct otlp_metric metric = {.type = 0};
    struct otlp_cursor data = {NULL, NULL};
    struct otlp_field f;
    bool *bad = &all->is_malformed;
    while (otlp_next(&c, &f, bad)) {
        switch (f.number) {
        case 1: otlp_string(metric.name, sizeof metric.name, f.bytes, bad); break;
        case 2: otlp_string(metric.description, sizeof metric.description, f.bytes, bad); break;
        case 3: otlp_string(metric.unit, sizeof metric.unit, f.bytes, bad); break;
        case 5:
        case 7:
        case 9: metric.type = f.number, data = f.bytes; break;
        default: *bad = true;
        }
    }
    *bad = *bad || data.at == data.end;
    otlp_data_decode(all, &metric, data);
    all->metrics++;
}

static inline void otlp_scope_metrics(struct otlp_metrics *all, struct otlp_cursor c)
{
    struct otlp_field f, inner;
    while (otlp_next(&c, &f, &all->is_malformed)) {
        if (f.number == 2)
            otlp_metric_decode(all, f.bytes);
        while (f.number == 1 && otlp_next(&f.bytes, &inner, &all->is_malformed))
            otlp_string(inner.number == 1 ? all->scope : all->version, 64, inner.bytes, &all->is_malformed);
    }
}

/* Adds the data points of a request to those of a struct that began as zeros; free(all->point) at the end. */
static inline void otlp_metrics_decode(struct otlp_metrics *all, const void *at, size_t length)
{
    const unsigned char *bytes = at;
    struct otlp_cursor c = {bytes, bytes + length};
    struct otlp_field f, inner, attribute;
    all->resource[0] = '\0';
    all->requests++;
    while (otlp_next(&c, &f, &all->is_malformed))
        while (f.number == 1 && otlp_next(&f.bytes, &inner, &all->is_malformed)) {
            if (inner.number == 2)
                otlp_scope_metrics(all, inner.bytes);
            while (inner.number == 1 && otlp_next(&inner.bytes, &attribute, &all->is_malformed))
                otlp_attribute(all->resource, attribute.bytes, &all->is_malformed);
        }
}

/* Returns the data point of a metric with these attributes, as "\nbide.target=a\nattempt=1\n"; NULL: there is none. */
static inline const struct otlp_point *otlp_find(const struct otlp_metrics *all, const char *name,
                                                 const char *attributes)
{
    for (size_t i = all->count; i > 0; i--)
        if (strcmp(all->point[i - 1].metric.name, name) == 0 && strcmp(all->point[i - 1].attributes, attributes) == 0)
            return &all->point[i - 1];
    return NULL;
}

#endif
