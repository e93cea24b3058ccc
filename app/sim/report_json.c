/* report_json.c - a batch as one JSON object. Metrics come in the order of their table; every row has all of them, null
 * where undefined.
 *
 * A flag is true, false or null with any number of seeds: with several, true if true for each; NAME_share is the share
 * of seeds for which it is true. */
#include "report.h"

#include "number.h"
#include "report_common.h"
#include "text/json_write.h"
#include "text/unit.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

/* ---- values ---- */

static void json_number(struct text_json *json, const char *name, double value)
{
    char digits[SIM_NUMBER_SIZE];
    text_json_digits(json, name, isnan(value) ? NULL : sim_number(digits, value));
}

static void json_bin_width(struct text_json *json, int64_t ns)
{
    char digits[TEXT_VALUE_SIZE];
    text_json_digits(json, "bin_s", text_decimal_format(digits, ns, BIDE_S));
}

/* ---- row ---- */

static void json_flag(struct text_json *json, const char *name, double share)
{
    char share_name[SIM_LABEL_MAX];
    snprintf(share_name, sizeof share_name, "%s_share", name);
    text_json_digits(json, name, isnan(share) ? NULL : share >= 1 ? "true" : "false");
    json_number(json, share_name, share);
}

static void json_metrics(struct text_json *json, const struct sim_batch *batch, size_t row)
{
    const struct sim_metric *metric;
    for (size_t i = 0; (metric = sim_metric(i)) != NULL; i++)
        (metric->flag ? json_flag : json_number)(json, metric->name, sim_batch_figure(batch, row, i)->mean);
}

static void json_halves(struct text_json *json, const struct sim_batch *batch, size_t row)
{
    const struct sim_metric *metric;
    text_json_line(json);
    text_json_object(json, "half");
    for (size_t i = 0; (metric = sim_metric(i)) != NULL; i++) {
        const struct sim_figure *figure = sim_batch_figure(batch, row, i);
        json_number(json, metric->name, isnan(figure->mean) ? NAN : figure->half);
    }
    text_json_end(json);
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

static void json_budget(struct text_json *json, const struct sim_result *r)
{
    char digits[TEXT_VALUE_SIZE];
    text_json_line(json);
    text_json_array(json, "budget");
    for (size_t i = 0; i < r->points; i++) {
        int64_t milli = r->point[i].budget_milli;
        text_json_digits(json, NULL, milli >= 0 ? text_decimal_format(digits, milli, 1000) : NULL);
    }
    text_json_end(json);
}

static void json_series(struct text_json *json, const struct sim_result *r)
{
    text_json_object(json, "series");
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        text_json_line(json);
        text_json_array(json, counts[i].name);
        for (size_t j = 0; j < r->points; j++) {
            const void *at = (const char *)&r->point[j] + counts[i].offset;
            text_json_unsigned(json, NULL, counts[i].narrow ? *(const uint32_t *)at : *(const uint64_t *)at);
        }
        text_json_end(json);
    }
    json_budget(json, r);
    text_json_end(json);
}

/* Writes the settings common to all rows, or those in which one row differs. */
static void json_settings(struct text_json *json, const struct sim_scenario *scenario, size_t row)
{
    const char *key;
    char value[256];
    text_json_object(json, "settings");
    for (size_t i = 0; sim_scenario_setting(scenario, row, i, &key, value); i++)
        text_json_string(json, key, value);
    text_json_end(json);
}

static void json_row(struct text_json *json, const struct sim_batch *batch, size_t i)
{
    const struct sim_row *row = sim_scenario_row(batch->scenario, i);
    text_json_object(json, NULL);
    text_json_string(json, "name", row->name);
    text_json_string(json, "label", row->label);
    text_json_string(json, "swept", row->swept);
    json_settings(json, batch->scenario, i);
    json_bin_width(json, batch->row[i].result.bin_ns);
    json_metrics(json, batch, i);
    if (batch->plan.seeds > 1)
        json_halves(json, batch, i);
    json_series(json, &batch->row[i].result);
    text_json_end(json);
}

/* ---- batch ---- */

void sim_report_json(FILE *out, const struct sim_batch *batch)
{
    struct text_json json = text_json_to_stream(out, TEXT_JSON_INDENTED);
    text_json_object(&json, NULL);
    text_json_string(&json, "scenario", sim_scenario_name(batch->scenario));
    text_json_string(&json, "title", sim_scenario_title(batch->scenario));
    text_json_unsigned(&json, "seed", batch->plan.seed);
    text_json_unsigned(&json, "seeds", batch->plan.seeds);
    if (batch->rows > 0)
        json_bin_width(&json, batch->row[0].result.bin_ns);
    else
        text_json_null(&json, "bin_s");
    json_settings(&json, batch->scenario, SIM_ALL_ROWS);
    text_json_array(&json, "rows");
    for (size_t i = 0; i < batch->rows; i++)
        json_row(&json, batch, i);
    text_json_end(&json);
    text_json_end(&json);
    text_json_finish(&json);
}
