/* report_html.c - a batch as one HTML page: question, picture, metrics in groups, settings, and the command to repeat
 * it.
 *
 * The page loads no other file. Light or dark follows the reader's setting (prefers-color-scheme). Wide tables scroll
 * sideways in a box of their own; the page itself never does. */
#include "picture.h"
#include "report.h"

#include "number.h"
#include "report_common.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const char style[] =
    ":root{color-scheme:light dark;--paper:#fff;--ink:#1c2024;--soft:#56606a;--rule:#e4e7ea;--band:#f0f1f3}\n"
    "@media(prefers-color-scheme:dark){:root{--paper:#15181c;--ink:#e8eaed;--soft:#a3adb7;--rule:#2c3238;"
    "--band:#20252a}}\n"
    "*{box-sizing:border-box}\n"
    "body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.55 system-ui,-apple-system,'Segoe UI',Roboto,"
    "'Helvetica Neue',sans-serif}\n"
    "main{max-width:960px;margin:0 auto;padding:40px 20px 64px}\n"
    "h1{font-size:30px;line-height:1.2;letter-spacing:-.01em;margin:0 0 12px}\n"
    "h2{font-size:19px;margin:48px 0 4px} h3{font-size:15px;margin:20px 0 4px}\n"
    "p{margin:0 0 12px;max-width:72ch} .lead{font-size:18px} .soft{color:var(--soft)}\n"
    "svg{display:block;width:100%;height:auto;margin:14px 0 0;overflow:visible}\n"
    ".scroll{overflow-x:auto} .chart{overflow-x:auto;overflow-y:hidden}\n"
    "table{border-collapse:collapse;margin:12px 0 0;font-size:14.5px;font-variant-numeric:tabular-nums;min-width:60%}\n"
    "th,td{text-align:right;padding:6px 0 6px 18px;border-bottom:1px solid var(--rule);vertical-align:bottom;"
    "white-space:nowrap}\n"
    "thead th{color:var(--soft);font-weight:500;font-size:13px;line-height:1.3;white-space:normal;max-width:9em}\n"
    "th:first-child,td.text{text-align:left;font-weight:500;padding-left:0;padding-right:6px;max-width:24em;"
    "white-space:normal;overflow-wrap:break-word} td.text{font-weight:400;padding-left:18px;max-width:40em}\n"
    "tbody th:first-child{min-width:8em} td.swept,th.swept{text-align:left;white-space:nowrap;max-width:none}\n"
    "thead th:first-child{font-weight:500}\n"
    "code,pre{font:13.5px/1.5 ui-monospace,'SF Mono',Menlo,Consolas,monospace}\n"
    "pre{background:var(--band);padding:12px 16px;border-radius:6px;overflow-x:auto;margin:8px 0 16px}\n"
    "details{margin:20px 0 0} summary{cursor:pointer;font-weight:600}\n"
    "@media(max-width:700px){.chart svg{width:760px} pre{white-space:pre-wrap;overflow-wrap:anywhere}}\n"
    "@media print{.chart,tr{break-inside:avoid} h2{break-after:avoid} .scroll,.chart{overflow:visible} "
    "main{max-width:none;padding:0} table{font-size:11px}}\n"
    "footer{margin-top:48px;padding-top:16px;border-top:1px solid var(--rule);color:var(--soft);font-size:14px}\n";

struct page {
    FILE *out;
    const struct sim_batch *batch;
    bool complete;
};

/* ---- the head ---- */

static void page_put_lead(const struct page *p)
{
    char loop[SIM_REPORT_TEXT_MAX] = "open and closed loops", seeds[SIM_REPORT_TEXT_MAX], bucket[SIM_REPORT_TEXT_MAX];
    if (sim_batch_has_one_loop(p->batch))
        sim_loop_text(loop, &sim_scenario_row(p->batch->scenario, 0)->world);
    fputs("<h1>", p->out);
    chart_escape(p->out, sim_scenario_title(p->batch->scenario));
    fputs("</h1>\n<p class=\"lead\">", p->out);
    chart_escape(p->out, sim_scenario_question(p->batch->scenario));
    fputs("</p>\n<p class=\"soft\">Simulated: ", p->out);
    chart_escape(p->out, loop);
    fprintf(p->out, "; %s", sim_seeds_text(seeds, p->batch));
    if (p->batch->plan.seeds > 1)
        fputs(", metrics are the mean ± half of the 95 % interval, charts over time show the first seed", p->out);
    fprintf(p->out, "; bins of %s.</p>\n", sim_bin_width_text(bucket, p->batch));
}

static void page_put_picture(struct page *p)
{
    size_t left_out = sim_picture_omitted(p->batch);
    bool series = sim_picture_kind(p->batch) == SIM_PICTURE_SERIES;
    fprintf(p->out, "<h2>%s</h2>\n<p class=\"soft\">", series ? "Load of the service" : "At a glance");
    if (series)
        fputs("Attempts that arrived at the last service, and those that it answered well. All charts have the same "
              "scale.",
              p->out);
    if (left_out > 0)
        fprintf(p->out, " %zu more %s in the tables only.", left_out, left_out == 1 ? "is" : "are");
    fputs("</p>\n", p->out);
    for (size_t i = 0; i < sim_picture_panels(p->batch); i++) {
        fputs("<div class=\"chart\">\n", p->out);
        p->complete = sim_picture_draw(p->out, p->batch, i, NULL) && p->complete;
        fputs("</div>\n", p->out);
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
    fputs("<tr><th scope=\"row\">", p->out);
    chart_escape(p->out, sim_row_name(row));
    fputs("</th>", p->out);
    if (row->swept[0] == '\0')
        return;
    fputs("<td class=\"swept\">", p->out);
    chart_escape(p->out, sim_row_swept_values(row).text);
    fputs("</td>", p->out);
}

static void page_put_swept_head(const struct page *p)
{
    const struct sim_row *row = sim_scenario_row(p->batch->scenario, 0);
    fputs("<th></th>", p->out);
    if (row->swept[0] == '\0')
        return;
    fputs("<th scope=\"col\" class=\"swept\">", p->out);
    chart_escape(p->out, sim_row_swept_keys(row).text);
    fputs("</th>", p->out);
}

/* Prints a table with a column for each metric, without the omitted prefix in their names. */
static void page_put_figures(const struct page *p, const struct sim_metric_list *list, const char *omitted_prefix)
{
    fputs("<div class=\"scroll\"><table><thead><tr>", p->out);
    page_put_swept_head(p);
    for (size_t i = 0; i < list->count; i++)
        page_put_head_cell(p, sim_metric(list->metric[i]), omitted_prefix);
    fputs("</tr></thead><tbody>\n", p->out);
    for (size_t row = 0; row < p->batch->rows; row++) {
        page_put_row_cell(p, sim_scenario_row(p->batch->scenario, row));
        for (size_t i = 0; i < list->count; i++)
            page_put_cell(p, row, list->metric[i]);
        fputs("</tr>\n", p->out);
    }
    fputs("</tbody></table></div>\n", p->out);
}

static void page_put_section(const struct page *p, const char *title, const char *about)
{
    fprintf(p->out, "<h2>%s</h2>\n<p class=\"soft\">%s</p>\n", title, about);
}

static void page_put_main_figures(const struct page *p)
{
    struct sim_metric_list first, more;
    page_put_section(
        p, "Metrics",
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
    page_put_section(p, "Latency", "Of calls that succeeded, from begin to end, all attempts and waits included.");
    page_put_figures(p, &list, "latency_");
}

static void page_put_give_ups(const struct page *p)
{
    struct sim_metric_list list;
    sim_metric_list_give_ups(&list, p->batch);
    page_put_section(p, "Why calls gave up",
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
    page_put_section(p, "Peaks",
                     "The largest count in a bin of each width, independent of the bin width of the series.");
    page_put_figures(p, &list, "peak_");
}

/* ---- gates ---- */

static void page_put_level(struct page *p, enum sim_level which)
{
    if (!sim_picture_has_level(p->batch, which))
        return;
    fputs("<div class=\"chart\">\n", p->out);
    p->complete = sim_picture_level(p->out, p->batch, which) && p->complete;
    fputs("</div>\n", p->out);
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
    page_put_section(
        p, "Budget and breakers",
        "The level of the clients’ retry budgets, how often their breakers opened, and what their gates refused.");
    page_put_figures(p, &list, "");
    page_put_level(p, SIM_LEVEL_BUDGET);
    page_put_level(p, SIM_LEVEL_OPEN);
}

static void page_put_queue(struct page *p)
{
    if (!sim_picture_has_level(p->batch, SIM_LEVEL_QUEUE))
        return;
    page_put_section(p, "Queue", "Requests that wait at the last service.");
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
        fputs("<code>", p->out);
        chart_escape(p->out, key);
        fputs("</code></th><td class=\"text\">", p->out);
        chart_escape(p->out, value);
        fputs("</td></tr>\n", p->out);
    }
}

static void page_put_settings(const struct page *p)
{
    page_put_section(p, "Settings",
                     "Settings other than the default: common to all rows, then those in which rows differ.");
    fputs("<div class=\"scroll\"><table><tbody>\n", p->out);
    page_put_settings_of(p, SIM_ALL_ROWS);
    for (size_t i = 0; i < p->batch->rows; i++)
        page_put_settings_of(p, i);
    fputs("</tbody></table></div>\n", p->out);
    if (sim_batch_has_one_loop(p->batch))
        return;
    fputs("<h3>Loops</h3>\n<div class=\"scroll\"><table><tbody>\n", p->out);
    for (size_t i = 0; i < p->batch->rows; i++) {
        const struct sim_row *row = sim_scenario_row(p->batch->scenario, i);
        char loop[SIM_REPORT_TEXT_MAX];
        fputs("<tr><th scope=\"row\">", p->out);
        chart_escape(p->out, row->label);
        fputs("</th><td class=\"text\">", p->out);
        chart_escape(p->out, sim_loop_text(loop, &row->world));
        fputs("</td></tr>\n", p->out);
    }
    fputs("</tbody></table></div>\n", p->out);
}

static void page_put_command(const struct page *p)
{
    fputs("<h2>Repeat this run</h2>\n<pre>bide sim ", p->out);
    chart_escape(p->out, p->batch->plan.command_line != NULL ? p->batch->plan.command_line
                                                             : sim_scenario_name(p->batch->scenario));
    fprintf(p->out, " --seed %" PRIu64, p->batch->plan.seed);
    if (p->batch->plan.seeds > 1)
        fprintf(p->out, " --seeds %" PRIu32, p->batch->plan.seeds);
    fprintf(p->out,
            "</pre>\n<p>With the settings above, the same seed gives the same metrics to the last digit, on every "
            "machine.</p>\n<footer>Made by <code>bide sim</code>, bide %s. This page needs no other "
            "file.</footer>\n",
            bide_version());
}

/* ---- page ---- */

bool sim_report_html(FILE *out, const struct sim_batch *batch)
{
    struct page page = {.out = out, .batch = batch, .complete = true};
    fputs("<!DOCTYPE html><!-- a report of bide sim -->\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
          "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"/>\n<title>bide sim: ",
          out);
    chart_escape(out, sim_scenario_title(batch->scenario));
    fprintf(out, "</title>\n<style>\n%s%s</style>\n</head>\n<body>\n<main>\n", style, sim_picture_style);
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
    fputs("</main>\n</body>\n</html>\n", out);
    return page.complete;
}
