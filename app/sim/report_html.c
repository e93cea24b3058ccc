/* report_html.c - a batch as one HTML page: question, picture, metrics in groups, settings, and the command to repeat
 * it. */
#include "picture.h"
#include "report.h"

#include "chart/page.h"
#include "number.h"
#include "report_common.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

struct page {
    FILE *out;
    const struct sim_batch *batch;
    bool complete;
};

/* ---- the head ---- */

static void page_put_lead(const struct page *p)
{
    char loop[SIM_REPORT_TEXT_MAX], seeds[SIM_REPORT_TEXT_MAX], bucket[SIM_REPORT_TEXT_MAX];
    chart_element(p->out, "h1", sim_scenario_title(p->batch->scenario));
    chart_element(p->out, "p class=\"lead\"", sim_scenario_question(p->batch->scenario));
    fputs("<p class=\"soft\">Simulated: ", p->out);
    chart_escape(p->out, sim_batch_loop_text(loop, p->batch));
    fprintf(p->out, "; %s", sim_seeds_text(seeds, p->batch));
    if (p->batch->plan.seeds > 1)
        fputs(", metrics are the mean ± half of the 95 % interval, charts over time show the first seed", p->out);
    fprintf(p->out, "; bins of %s.</p>\n", sim_bin_width_text(bucket, p->batch));
}

static void page_put_picture(struct page *p)
{
    size_t left_out = sim_picture_omitted(p->batch);
    bool series = sim_picture_kind(p->batch) == SIM_PICTURE_SERIES;
    char about[SIM_REPORT_TEXT_MAX], more[64] = "";
    if (left_out > 0)
        snprintf(more, sizeof more, " %zu more %s in the tables only.", left_out, left_out == 1 ? "is" : "are");
    snprintf(about, sizeof about, "%s%s",
             series ? "Attempts that arrived at the last service, and those that it answered well. All charts have the "
                      "same scale."
                    : "",
             more);
    chart_section(p->out, series ? "Load of the service" : "At a glance", about);
    for (size_t i = 0; i < sim_picture_panels(p->batch); i++) {
        chart_figure_begin(p->out);
        p->complete = sim_picture_draw(p->out, p->batch, i, NULL) && p->complete;
        chart_figure_end(p->out);
    }
}

/* ---- tables ---- */

/* Prints "latency_p99_ms" as words, between which a line may break. */
static void page_put_head_cell(const struct page *p, const struct sim_metric *metric, const char *omitted_prefix)
{
    size_t skip = strncmp(metric->name, omitted_prefix, strlen(omitted_prefix)) == 0 ? strlen(omitted_prefix) : 0;
    fputs("<th scope=\"col\" title=\"", p->out);
    chart_escape(p->out, metric->about);
    fputs("\">", p->out);
    for (const char *at = metric->name + skip; *at != '\0'; at++)
        fputc(*at == '_' ? ' ' : *at, p->out);
    if (metric->unit[0] == '/')
        fprintf(p->out, " %s", metric->unit);
    fputs("</th>", p->out);
}

static void page_put_cell(const struct page *p, size_t row, size_t metric)
{
    const struct sim_figure *f = sim_batch_figure(p->batch, row, metric);
    char number[SIM_NUMBER_SIZE];
    bool flag = sim_metric(metric)->flag;
    fputs("<td>", p->out);
    if (isnan(f->mean))
        snprintf(number, sizeof number, "–");
    else if (flag)
        sim_flag_text(number, sizeof number, p->batch, f);
    else
        sim_number_fixed(number, f->mean, sim_batch_digits(p->batch, metric));
    fputs(number, p->out);
    if (p->batch->plan.seeds > 1 && !flag && !isnan(f->mean))
        fprintf(p->out, " <span class=\"soft\">±%s</span>",
                sim_number_fixed(number, f->half, sim_batch_digits(p->batch, metric)));
    fputs("</td>", p->out);
}

/* Prints the name of a row, and its swept values if there is a sweep. */
static void page_put_row_cell(const struct page *p, const struct sim_row *row)
{
    chart_row_begin(p->out, sim_row_name(row));
    if (row->swept[0] != '\0')
        chart_element(p->out, "td class=\"swept\"", sim_row_swept_values(row).text);
}

static void page_put_swept_head(const struct page *p)
{
    const struct sim_row *row = sim_scenario_row(p->batch->scenario, 0);
    fputs("<th></th>", p->out);
    if (row->swept[0] != '\0')
        chart_element(p->out, "th scope=\"col\" class=\"swept\"", sim_row_swept_keys(row).text);
}

/* Prints a table with a column for each metric, without the omitted prefix in their names. */
static void page_put_figures(const struct page *p, const struct sim_metric_list *list, const char *omitted_prefix)
{
    chart_table_begin(p->out);
    fputs("<thead><tr>", p->out);
    page_put_swept_head(p);
    for (size_t i = 0; i < list->count; i++)
        page_put_head_cell(p, sim_metric(list->metric[i]), omitted_prefix);
    fputs("</tr></thead><tbody>\n", p->out);
    for (size_t row = 0; row < p->batch->rows; row++) {
        page_put_row_cell(p, sim_scenario_row(p->batch->scenario, row));
        for (size_t i = 0; i < list->count; i++)
            page_put_cell(p, row, list->metric[i]);
        chart_row_end(p->out);
    }
    fputs("</tbody>", p->out);
    chart_table_end(p->out);
}

static void page_put_main_figures(const struct page *p)
{
    struct sim_metric_list first, more;
    chart_section(
        p->out, "Metrics",
        "Amplification is arrivals at the last service per call of a client. A dash means that a metric has no "
        "value; point at a name for its meaning.");
    sim_metric_list_primary(&first, p->batch);
    page_put_figures(p, &first, "");
    sim_metric_list_secondary(&more, p->batch, &first);
    if (more.count > 0)
        page_put_figures(p, &more, "");
}

static void page_put_latencies(const struct page *p)
{
    static const char *const names[] = {"latency_mean_ms",
                                        "latency_p50_ms",
                                        "latency_p90_ms",
                                        "latency_p99_ms",
                                        "latency_p999_ms",
                                        "latency_max_ms",
                                        NULL};
    struct sim_metric_list list;
    sim_metric_list_named(&list, p->batch, names, false);
    if (list.count == 0)
        return;
    chart_section(p->out, "Latency", "Of calls that succeeded, from begin to end, all attempts and waits included.");
    page_put_figures(p, &list, "latency_");
}

static void page_put_give_ups(const struct page *p)
{
    struct sim_metric_list list;
    sim_metric_list_give_ups(&list, p->batch);
    chart_section(p->out, "Why calls gave up",
                  list.count > 0 ? "Calls by the reason that ended them." : "No call gave up.");
    if (list.count > 0)
        page_put_figures(p, &list, SIM_GAVE_UP_PREFIX);
}

static void page_put_peaks(const struct page *p)
{
    static const char *const names[] = {"peak_arrivals_1ms",
                                        "peak_arrivals_10ms",
                                        "peak_arrivals_50ms",
                                        "peak_arrivals_1s",
                                        "peak_retries_50ms",
                                        "peak_served_1ms",
                                        "peak_served_10ms",
                                        "peak_served_50ms",
                                        "peak_served_1s",
                                        "peak_probes_50ms",
                                        NULL};
    struct sim_metric_list list;
    sim_metric_list_named(&list, p->batch, names, true);
    if (list.count == 0)
        return;
    chart_section(p->out, "Peaks",
                  "The largest count in a bin of each width, independent of the bin width of the series.");
    page_put_figures(p, &list, "peak_");
}

/* ---- gates ---- */

static void page_put_level(struct page *p, enum sim_level which)
{
    if (!sim_picture_has_level(p->batch, which))
        return;
    chart_figure_begin(p->out);
    p->complete = sim_picture_level(p->out, p->batch, which) && p->complete;
    chart_figure_end(p->out);
}

static void page_put_gates(struct page *p)
{
    static const char *const levels[] = {"budget_low", "budget_end", NULL};
    static const char *const counts[] = {"openings",
                                         "reopenings",
                                         "probes",
                                         "refused_by_budget",
                                         "refused_by_breaker",
                                         "refused_by_throttle",
                                         "refused_by_in_flight",
                                         "refused_by_key_limit",
                                         NULL};
    struct sim_metric_list list, more;
    sim_metric_list_named(&list, p->batch, levels, false);
    sim_metric_list_named(&more, p->batch, counts, true);
    sim_metric_list_append(&list, &more);
    if (list.count == 0)
        return;
    chart_section(
        p->out, "Budget and breakers",
        "The level of the clients’ retry budgets, how often their breakers opened, and what their gates refused.");
    page_put_figures(p, &list, "");
    page_put_level(p, SIM_LEVEL_BUDGET);
    page_put_level(p, SIM_LEVEL_OPEN);
}

static void page_put_queue(struct page *p)
{
    if (!sim_picture_has_level(p->batch, SIM_LEVEL_QUEUE))
        return;
    chart_section(p->out, "Queue", "Requests that wait at the last service.");
    page_put_level(p, SIM_LEVEL_QUEUE);
}

/* ---- settings ---- */

static void page_put_settings_of(const struct page *p, size_t row)
{
    const char *key;
    char value[256];
    for (size_t i = 0; sim_scenario_setting(p->batch->scenario, row, i, &key, value); i++) {
        fputs("<tr><th scope=\"row\">", p->out);
        if (row != SIM_ALL_ROWS) {
            chart_escape(p->out, sim_scenario_row(p->batch->scenario, row)->label);
            fputs(": ", p->out);
        }
        chart_element(p->out, "code", key);
        fputs("</th>", p->out);
        chart_element(p->out, "td class=\"text\"", value);
        chart_row_end(p->out);
    }
}

static void page_put_settings(const struct page *p)
{
    chart_section(p->out, "Settings",
                  "Settings other than the default: common to all rows, then those in which rows differ.");
    chart_table_begin(p->out);
    page_put_settings_of(p, SIM_ALL_ROWS);
    for (size_t i = 0; i < p->batch->rows; i++)
        page_put_settings_of(p, i);
    chart_table_end(p->out);
    if (sim_batch_has_one_loop(p->batch))
        return;
    chart_element(p->out, "h3", "Loops");
    chart_table_begin(p->out);
    for (size_t i = 0; i < p->batch->rows; i++) {
        const struct sim_row *row = sim_scenario_row(p->batch->scenario, i);
        char loop[SIM_REPORT_TEXT_MAX];
        chart_row_begin(p->out, row->label);
        chart_element(p->out, "td class=\"text\"", sim_loop_text(loop, &row->world));
        chart_row_end(p->out);
    }
    chart_table_end(p->out);
}

static void page_put_command(const struct page *p)
{
    fputs("<h2>Repeat this run</h2>\n<pre>bide sim ", p->out);
    chart_escape(p->out, p->batch->plan.command_line != NULL ? p->batch->plan.command_line
                                                             : sim_scenario_name(p->batch->scenario));
    fprintf(p->out, " --seed %" PRIu64, p->batch->plan.seed);
    if (p->batch->plan.seeds > 1)
        fprintf(p->out, " --seeds %" PRIu32, p->batch->plan.seeds);
    fputs("</pre>\n<p>With the settings above, the same seed gives the same metrics to the last digit, on every "
          "machine.</p>\n",
          p->out);
}

/* ---- page ---- */

bool sim_report_html(FILE *out, const struct sim_batch *batch)
{
    struct page page = {.out = out, .batch = batch, .complete = true};
    chart_page_begin(out, &(struct chart_page){"sim", sim_scenario_title(batch->scenario), ""});
    page_put_lead(&page);
    page_put_picture(&page);
    page_put_main_figures(&page);
    page_put_give_ups(&page);
    page_put_latencies(&page);
    page_put_peaks(&page);
    page_put_gates(&page);
    page_put_queue(&page);
    page_put_settings(&page);
    page_put_command(&page);
    chart_page_end(out, "sim", "");
    return page.complete;
}
