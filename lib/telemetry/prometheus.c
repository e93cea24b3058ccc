/* prometheus.c - writes samples in the text format of Prometheus, version 0.0.4.
 *
 *     # HELP bide_attempts_total Attempts started.
 *     # TYPE bide_attempts_total counter
 *     bide_attempts_total{target="inventory",attempt="1"} 1041
 *
 * Numbers are written digit by digit from integers: exactly, and the same in every locale. A histogram becomes a series
 * for each bound, cumulative, and _sum and _count; the count is the sum of its bins, so it equals the series +Inf.
 *
 * The writer works like snprintf: what does not fit is counted, not written. */
#include "metric.h"

#include "text/utf8.h"

#include <assert.h>
#include <string.h>

#define DIGITS_MAX  20u /* of UINT64_MAX */
#define US_PER_S    1000000u
#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

struct writer {
    char *text;
    size_t size;
    size_t length;                       /* of the whole text, written or not */
    const struct telemetry_metric *last; /* whose head was written */
};

static void write_bytes(struct writer *writer, const char *bytes, size_t length)
{
    if (writer->length < writer->size) {
        size_t left = writer->size - writer->length;
        memcpy(writer->text + writer->length, bytes, length < left ? length : left);
    }
    writer->length += length;
}

static void write_text(struct writer *writer, const char *text)
{
    write_bytes(writer, text, strlen(text));
}

/* ---- numbers ---- */

/* Writes at least `least` digits. */
static void write_digits(struct writer *writer, uint64_t number, size_t least)
{
    char digits[DIGITS_MAX];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0 || sizeof digits - at < least);
    write_bytes(writer, digits + at, sizeof digits - at);
}

/* Writes number / scale, exactly; scale is a power of ten. */
static void write_number(struct writer *writer, uint64_t number, uint64_t scale)
{
    uint64_t fraction = number % scale;
    size_t places = 0;
    write_digits(writer, number / scale, 1);
    if (fraction == 0)
        return;
    for (uint64_t left = scale; left > 1; left /= 10)
        places++;
    for (; fraction % 10 == 0; fraction /= 10)
        places--;
    write_text(writer, ".");
    write_digits(writer, fraction, places);
}

/* ---- labels ---- */

/* Writes the value of a label that a program chose. Invalid UTF-8 would make Prometheus reject the whole page. */
static void write_escaped(struct writer *writer, const char *value)
{
    size_t left = strlen(value), n;
    for (; left > 0; value += n, left -= n) {
        size_t whole = text_utf8_length(value, left);
        n = whole > 0 ? whole : 1;
        if (whole == 0)
            write_text(writer, REPLACEMENT);
        else if (*value == '\n')
            write_text(writer, "\\n");
        else if (*value == '"' || *value == '\\')
            write_bytes(writer, (const char[]){'\\', *value}, 2);
        else
            write_bytes(writer, value, n);
    }
}

static void write_label(struct writer *writer, bool is_first, const char *name, const char *value)
{
    write_text(writer, is_first ? "{" : ",");
    write_text(writer, name);
    write_text(writer, "=\"");
    write_escaped(writer, value);
    write_text(writer, "\"");
}

/* Writes name and labels, without the closing brace. Returns true if there was no label. */
static bool write_series(struct writer *writer, const struct telemetry_sample *sample, const char *suffix)
{
    const struct telemetry_metric *metric = sample->metric;
    bool is_first = true;
    write_text(writer, metric->name);
    write_text(writer, suffix);
    if (sample->target != NULL) {
        write_label(writer, is_first, "target", sample->target);
        is_first = false;
    }
    for (size_t i = 0; i < TELEMETRY_LABELS_MAX && metric->labels[i] != NULL; i++) {
        write_label(writer, is_first, metric->labels[i], sample->labels[i]);
        is_first = false;
    }
    return is_first;
}

static void write_sample(struct writer *writer, const struct telemetry_sample *sample, const char *suffix,
                         uint64_t value, uint64_t scale)
{
    write_text(writer, write_series(writer, sample, suffix) ? " " : "} ");
    write_number(writer, value, scale);
    write_text(writer, "\n");
}

/* ---- histograms ---- */

static void write_bin(struct writer *writer, const struct telemetry_sample *sample, uint32_t bin, uint64_t count)
{
    int64_t bound_ns = bide_meter_bound_ns(bin);
    write_text(writer, write_series(writer, sample, "_bucket") ? "{le=\"" : ",le=\"");
    if (bound_ns == BIDE_NEVER)
        write_text(writer, "+Inf");
    else
        write_number(writer, (uint64_t)bound_ns / 1000, US_PER_S);
    write_text(writer, "\"} ");
    write_digits(writer, count, 1);
    write_text(writer, "\n");
}

static void write_histogram(struct writer *writer, const struct telemetry_sample *sample)
{
    uint64_t count = 0;
    for (uint32_t bin = 0; bin < BIDE_METER_BINS; bin++) {
        count += sample->histogram->count[bin];
        write_bin(writer, sample, bin, count);
    }
    assert(count == sample->value);
    write_sample(writer, sample, "_sum", sample->histogram->sum_us, US_PER_S);
    write_sample(writer, sample, "_count", count, 1);
}

/* ---- the text ---- */

static void write_head(struct writer *writer, const struct telemetry_metric *metric)
{
    write_text(writer, "# HELP ");
    write_text(writer, metric->name);
    write_text(writer, " ");
    write_text(writer, metric->help);
    write_text(writer, ".\n# TYPE ");
    write_text(writer, metric->name);
    write_text(writer, " ");
    write_text(writer, telemetry_type_label(metric->type));
    write_text(writer, "\n");
    writer->last = metric;
}

static void write_visited(void *context, const struct telemetry_sample *sample)
{
    struct writer *writer = context;
    if (sample->metric != writer->last)
        write_head(writer, sample->metric);
    if (sample->histogram != NULL)
        write_histogram(writer, sample);
    else
        write_sample(writer, sample, "", sample->value, sample->metric->scale);
}

size_t telemetry_prometheus_write_all(char *text, size_t size, const struct telemetry_numbers *numbers)
{
    struct writer writer = {.text = text, .size = size};
    telemetry_visit(numbers, write_visited, &writer);
    if (size > 0)
        text[writer.length < size ? writer.length : size - 1] = '\0';
    return writer.length;
}

size_t telemetry_prometheus_write(char *text, size_t size, const struct telemetry_target *targets, size_t count)
{
    return telemetry_prometheus_write_all(text, size, &(struct telemetry_numbers){.targets = targets, .count = count});
}
