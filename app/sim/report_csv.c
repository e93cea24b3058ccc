/* report_csv.c - CSV for spreadsheets and scripts, as in RFC 4180 but with Unix line ends. */
#include "report.h"

#include "number.h"
#include "report_common.h"
#include "text/unit.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static void csv_put_text(FILE *out, const char *value)
{
    if (strpbrk(value, ",\"\r\n") == NULL) {
        fputs(value, out);
        return;
    }
    fputc('"', out);
    for (; *value != '\0'; value++) {
        if (*value == '"')
            fputc('"', out);
        fputc(*value, out);
    }
    fputc('"', out);
}

/* Prints a comma and the mean; with several seeds also the half-width of the interval, empty where there is no
 * value. */
static void csv_put_figure(FILE *out, const struct sim_figure *figure, bool half)
{
    char number[SIM_NUMBER_SIZE];
    fprintf(out, ",%s", sim_number(number, figure->mean));
    if (half)
        fprintf(out, ",%s", sim_number(number, isnan(figure->mean) ? NAN : figure->half));
}

void sim_report_csv(FILE *out, const struct sim_batch *batch)
{
    const struct sim_metric *metric;
    bool half = batch->plan.seeds > 1;
    fputs("scenario,name,label,swept,seed,seeds", out);
    for (size_t i = 0; (metric = sim_metric(i)) != NULL; i++) {
        fprintf(out, ",%s", metric->name);
        if (half)
            fprintf(out, ",%s_half", metric->name);
    }
    fputc('\n', out);
    for (size_t i = 0; i < batch->rows; i++) {
        const struct sim_row *row = sim_scenario_row(batch->scenario, i);
        const char *const columns[] = {sim_scenario_name(batch->scenario), row->name, row->label, row->swept};
        for (size_t j = 0; j < sizeof columns / sizeof *columns; j++) {
            csv_put_text(out, columns[j]);
            fputc(',', out);
        }
        fprintf(out, "%" PRIu64 ",%" PRIu32, batch->plan.seed, batch->plan.seeds);
        for (size_t j = 0; sim_metric(j) != NULL; j++)
            csv_put_figure(out, sim_batch_figure(batch, i, j), half);
        fputc('\n', out);
    }
}

/* ---- series ---- */

static void csv_put_point(FILE *out, const struct sim_point *p)
{
    char budget[TEXT_VALUE_SIZE] = "";
    if (p->budget_milli >= 0)
        text_decimal_format(budget, p->budget_milli, 1000);
    fprintf(out,
            ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu32 ",%" PRIu32
            ",%s\n",
            p->calls, p->attempts, p->arrivals, p->retries, p->served, p->succeeded, p->gave_up, p->queue, p->open,
            budget);
}

void sim_report_csv_series(FILE *out, const struct sim_batch *batch)
{
    fputs("label,from_s,width_s,calls,attempts,arrivals,retries,served,succeeded,gave_up,queue,open,budget\n", out);
    for (size_t i = 0; i < batch->rows; i++) {
        const struct sim_result *r = &batch->row[i].result;
        char from[TEXT_VALUE_SIZE], width[TEXT_VALUE_SIZE];
        text_decimal_format(width, r->bin_ns, BIDE_S);
        for (size_t j = 0; j < r->points; j++) {
            csv_put_text(out, sim_scenario_row(batch->scenario, i)->label);
            fprintf(out, ",%s,%s", text_decimal_format(from, (int64_t)j * r->bin_ns, BIDE_S), width);
            csv_put_point(out, &r->point[j]);
        }
    }
}
