/* report_json.c - a batch as one JSON object. Metrics come in the order of their table; every row has all of them, null
 * where undefined.
 *
 * The object is streamed, not built as a tree: a series may be long. A flag is true, false or null with any number of
 * seeds: with several, true if true for each; NAME_share is the share of seeds for which it is true. */
#include "report.h"

#include "chart/chart.h"
#include "conf/unit.h"
#include "number.h"
#include "report_common.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

/* ---- values ---- */

/* Prints a string. Invalid UTF-8 becomes the replacement character: the output is valid JSON for every input. */
static void json_put_text(FILE *out, const char *value)
{
    const unsigned char *at = (const unsigned char *)value;
    fputc('"', out);
    while (*at != '\0') {
        size_t length = chart_character((const char *)at);
        if (*at == '"' || *at == '\\')
            fprintf(out, "\\%c", *at);
        else if (*at < 0x20 || *at == 0x7f)
            fprintf(out, "\\u%04x", *at);
        else if (length == 0)
            fputs("\xef\xbf\xbd", out);
        else
            fwrite(at, 1, length, out);
        at += length > 0 ? length : 1;
    }
    fputc('"', out);
}

static void json_put_member(FILE *out, const char *indent, const char *name)
{
    fprintf(out, "%s\"%s\": ", indent, name);
}

static void json_put_number(FILE *out, double value)
{
    char digits[SIM_NUMBER_SIZE];
    fputs(isnan(value) ? "null" : sim_number(digits, value), out);
}

/* ---- row ---- */

static void json_put_metrics(FILE *out, const struct sim_batch *batch, size_t row)
{
    const struct sim_metric *metric;
    for (size_t i = 0; (metric = sim_metric(i)) != NULL; i++) {
        double mean = sim_batch_figure(batch, row, i)->mean;
        json_put_member(out, ",\n      ", metric->name);
        if (!metric->flag) {
            json_put_number(out, mean);
            continue;
        }
        fprintf(out, "%s,\n      \"%s_share\": ", isnan(mean) ? "null" : mean >= 1 ? "true" : "false", metric->name);
        json_put_number(out, mean);
    }
}

static void json_put_halves(FILE *out, const struct sim_batch *batch, size_t row)
{
    const struct sim_metric *metric;
    json_put_member(out, ",\n      ", "half");
    for (size_t i = 0; (metric = sim_metric(i)) != NULL; i++) {
        const struct sim_figure *figure = sim_batch_figure(batch, row, i);
        json_put_member(out, i > 0 ? ", " : "{", metric->name);
        json_put_number(out, isnan(figure->mean) ? NAN : figure->half);
    }
    fputc('}', out);
}

#define U64(name)                                                                                                      \
    {                                                                                                                  \
#name, offsetof(struct sim_point, name), false                                                                 \
    }
#define U32(name)                                                                                                      \
    {                                                                                                                  \
#name, offsetof(struct sim_point, name), true                                                                  \
    }
static const struct {
    const char *name;
    size_t offset;
    bool narrow; /* 32 bits */
} counts[] = {U64(calls),     U64(attempts), U64(arrivals), U64(retries), U64(served),
              U64(succeeded), U64(gave_up),  U32(queue),    U32(open)};

static void json_put_budget(FILE *out, const struct sim_result *r)
{
    char digits[CONF_VALUE_SIZE];
    json_put_member(out, ",\n        ", "budget");
    fputc('[', out);
    for (size_t i = 0; i < r->points; i++) {
        int64_t milli = r->point[i].budget_milli;
        fprintf(out, "%s%s", i > 0 ? "," : "", milli >= 0 ? conf_decimal_format(digits, milli, 1000) : "null");
    }
    fputc(']', out);
}

static void json_put_series(FILE *out, const struct sim_result *r)
{
    json_put_member(out, ",\n      ", "series");
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        json_put_member(out, i > 0 ? ",\n        " : "{\n        ", counts[i].name);
        fputc('[', out);
        for (size_t j = 0; j < r->points; j++) {
            const void *at = (const char *)&r->point[j] + counts[i].offset;
            uint64_t count = counts[i].narrow ? *(const uint32_t *)at : *(const uint64_t *)at;
            fprintf(out, "%s%" PRIu64, j > 0 ? "," : "", count);
        }
        fputc(']', out);
    }
    json_put_budget(out, r);
    fputs("\n      }", out);
}

/* Prints the settings common to all rows, or those in which one row differs. */
static void json_put_settings(FILE *out, const struct sim_scenario *scenario, size_t row, const char *indent)
{
    const char *key, *between = "";
    char value[256];
    fprintf(out, ",\n%s\"settings\": {", indent);
    for (size_t i = 0; sim_scenario_setting(scenario, row, i, &key, value); i++) {
        fprintf(out, "%s\n%s  ", between, indent);
        json_put_text(out, key);
        fputs(": ", out);
        json_put_text(out, value);
        between = ",";
    }
    fprintf(out, "\n%s}", indent);
}

static void json_put_row(FILE *out, const struct sim_batch *batch, size_t i)
{
    const struct sim_row *row = sim_scenario_row(batch->scenario, i);
    char digits[CONF_VALUE_SIZE];
    json_put_member(out, "    {\n      ", "name");
    json_put_text(out, row->name);
    json_put_member(out, ",\n      ", "label");
    json_put_text(out, row->label);
    json_put_member(out, ",\n      ", "swept");
    json_put_text(out, row->swept);
    json_put_settings(out, batch->scenario, i, "      ");
    json_put_member(out, ",\n      ", "bin_s");
    fputs(conf_decimal_format(digits, batch->row[i].result.bin_ns, BIDE_S), out);
    json_put_metrics(out, batch, i);
    if (batch->plan.seeds > 1)
        json_put_halves(out, batch, i);
    json_put_series(out, &batch->row[i].result);
    fputs("\n    }", out);
}

/* ---- batch ---- */

void sim_report_json(FILE *out, const struct sim_batch *batch)
{
    char digits[CONF_VALUE_SIZE];
    json_put_member(out, "{\n  ", "scenario");
    json_put_text(out, sim_scenario_name(batch->scenario));
    json_put_member(out, ",\n  ", "title");
    json_put_text(out, sim_scenario_title(batch->scenario));
    fprintf(out, ",\n  \"seed\": %" PRIu64 ",\n  \"seeds\": %" PRIu32, batch->plan.seed, batch->plan.seeds);
    json_put_member(out, ",\n  ", "bin_s");
    fputs(batch->rows > 0 ? conf_decimal_format(digits, batch->row[0].result.bin_ns, BIDE_S) : "null", out);
    json_put_settings(out, batch->scenario, SIM_ALL_ROWS, "  ");
    fputs(",\n  \"rows\": [", out);
    for (size_t i = 0; i < batch->rows; i++) {
        fputs(i > 0 ? ",\n" : "\n", out);
        json_put_row(out, batch, i);
    }
    fputs("\n  ]\n}\n", out);
}
