/* report.c - the HTML page: a summary, four metrics for each side, charts, the complete table, and how to read and
 * repeat it.
 *
 * The page loads nothing. Light or dark follows the reader's setting (prefers-color-scheme). The two sides are orange
 * and blue, which colour-blind readers can distinguish, and are always labelled. */
#include "report.h"

#include "chart/chart.h"
#include "conf/unit.h"
#include "summary.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#define WIDTH           920u
#define HEIGHT          210u
#define INTERVALS_PER_S (size_t)(BIDE_S / DEMO_INTERVAL_NS)
#define SERIES_MAX      3u
#define INTERVALS(s)    ((size_t)((s)->length_ns / DEMO_INTERVAL_NS)) /* drawn: until the last call began */

static const char style[] =
    ":root{color-scheme:light dark;--paper:#fff;--ink:#1c2024;--soft:#5c6670;--rule:#e4e7ea;--band:#f0f1f3;"
    "--naive:#c25400;--bide:#0068a8}\n"
    "@media(prefers-color-scheme:dark){:root{--paper:#15181c;--ink:#e8eaed;--soft:#9aa4ae;--rule:#2c3238;"
    "--band:#20252a;--naive:#f0a04b;--bide:#5cb8f0}}\n"
    "*{box-sizing:border-box}\n"
    "body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.55 system-ui,-apple-system,'Segoe UI',Roboto,"
    "'Helvetica Neue',sans-serif}\n"
    "main{max-width:960px;margin:0 auto;padding:40px 20px 64px}\n"
    "h1{font-size:30px;line-height:1.2;letter-spacing:-.01em;margin:0 0 12px}\n"
    "h2{font-size:19px;margin:48px 0 4px}\n"
    "h3{font-size:15px;margin:20px 0 4px}\n"
    "p{margin:0 0 12px;max-width:72ch}\n"
    ".lead{font-size:18px}\n"
    ".soft{color:var(--soft)}\n"
    ".note{margin:20px 0 0}\n"
    ".sides{display:grid;grid-template-columns:1fr 1fr;gap:20px;margin:28px 0 0}\n"
    "@media(max-width:640px){.sides{grid-template-columns:1fr}}\n"
    ".side{border:1px solid var(--rule);border-top:4px solid;border-radius:6px;padding:16px 20px}\n"
    ".side h3{margin:0;font-size:18px}\n"
    ".side.naive{border-top-color:var(--naive)} .side.bide{border-top-color:var(--bide)}\n"
    "h3.naive{color:var(--naive)} h3.bide{color:var(--bide)}\n"
    ".side dl{display:grid;grid-template-columns:1fr 1fr;gap:12px 20px;margin:14px 0 0}\n"
    ".side dt{color:var(--soft);font-size:13px} .side dd{margin:0;font-size:25px;line-height:1.25;font-weight:600;"
    "font-variant-numeric:tabular-nums}\n"
    ".side div{display:flex;flex-direction:column-reverse;justify-content:flex-end}\n"
    "svg{display:block;width:100%;height:auto;margin:14px 0 0;overflow:visible}\n"
    "svg text{font:12px system-ui,-apple-system,'Segoe UI',Roboto,sans-serif;fill:var(--soft)}\n"
    "svg .name{font-size:13px;font-weight:600}\n"
    ".grid{stroke:var(--rule)} .axis{stroke:var(--soft);stroke-opacity:.6} .band{fill:var(--band)}\n"
    "line.level{stroke:var(--soft);stroke-dasharray:2 4} text.level{fill:var(--soft);font-weight:400}\n"
    ".line{fill:none;stroke-width:2;stroke-linejoin:round}\n"
    "path.area{stroke:none;fill-opacity:.85}\n"
    ".line.naive,.line.late{stroke:var(--naive)} .line.bide{stroke:var(--bide)} .line.late{stroke-width:1.5;"
    "stroke-dasharray:5 4}\n"
    ".area.naive,svg text.naive,svg text.late{fill:var(--naive)} .area.bide,svg text.bide{fill:var(--bide)}\n"
    "svg text.late{font-weight:400}\n"
    "table{border-collapse:collapse;width:100%;margin:12px 0 0;font-variant-numeric:tabular-nums}\n"
    "th,td{text-align:right;padding:7px 0 7px 16px;border-bottom:1px solid var(--rule);vertical-align:top;"
    "white-space:nowrap;width:172px}\n"
    "th:first-child{text-align:left;font-weight:500;padding-left:0;white-space:normal;width:auto}\n"
    "th small{display:block;color:var(--soft);font-weight:400;font-size:13px}\n"
    "thead th.naive{color:var(--naive)} thead th.bide{color:var(--bide)}\n"
    "@media(max-width:640px){.chart{overflow-x:auto} .chart svg{width:760px} "
    "th,td{white-space:normal;width:104px;font-size:14px;"
    "padding-left:8px} th small{display:none} pre{white-space:pre-wrap;overflow-wrap:anywhere}}\n"
    "code,pre{font:13.5px/1.5 ui-monospace,'SF Mono',Menlo,Consolas,monospace}\n"
    "pre{background:var(--band);padding:12px 16px;border-radius:6px;overflow-x:auto;margin:8px 0 16px}\n"
    "footer{margin-top:48px;padding-top:16px;border-top:1px solid var(--rule);color:var(--soft);font-size:14px}\n";

static const char *const side_classes[] = {"naive", "bide"}; /* CSS classes */

struct page {
    FILE *out;
    const struct demo_result *result;
    const struct demo_scenario *scenario;
    double *value[SERIES_MAX]; /* buffers for charts */
    struct chart_band outage;
};

/* ---- texts ---- */

static void page_write_seconds(const struct page *p, int64_t ns)
{
    chart_number(p->out, (double)ns / (double)BIDE_S);
}

static void page_write_lead(const struct page *p)
{
    const struct demo_scenario *s = p->scenario;
    fprintf(p->out, "<h1>The same outage, twice</h1>\n<p class=\"lead\">%" PRIu32 " calls in ", demo_call_count(s));
    page_write_seconds(p, s->length_ns);
    fprintf(p->out,
            " seconds, %" PRIu32 " per second, to a server with a capacity of %" PRIu32 " per second. From second ",
            s->rate, demo_capacity_per_s(s));
    page_write_seconds(p, s->down_ns);
    fputs(" to second ", p->out);
    page_write_seconds(p, s->up_ns);
    fputs(" it is down and returns 503. Two groups of callers use two such servers at the same time, with the same "
          "calls at the same times. They differ only in how they retry.</p>\n",
          p->out);
}

static void page_write_card_metric(const struct page *p, const char *name, const char *value)
{
    fputs("<div><dt>", p->out);
    chart_escape(p->out, name);
    fputs("</dt><dd>", p->out);
    chart_escape(p->out, value);
    fputs("</dd></div>\n", p->out);
}

static void page_write_card(const struct page *p, size_t which)
{
    const struct demo_side_result *side = &p->result->side[which];
    const struct demo_counters *t = &side->counters;
    char text[DEMO_METRIC_SIZE], number[DEMO_METRIC_SIZE], summary[DEMO_SUMMARY_SIZE];
    fprintf(p->out, "<section class=\"side %s\"><h3 class=\"%s\">", side_classes[which], side_classes[which]);
    chart_escape(p->out, side->client->name);
    fputs("</h3><div class=\"soft\">", p->out);
    chart_escape(p->out, demo_client_summary(summary, side->client));
    fputs("</div>\n<dl>\n", p->out);
    demo_fixed(number, demo_share(t->ended[BIDE_REASON_SUCCEEDED], t->calls), 1);
    snprintf(text, sizeof text, "%.20s %%", number);
    page_write_card_metric(p, "of all calls succeeded", text);
    demo_fixed(number, demo_share(t->after_ok, t->after_calls), 1);
    snprintf(text, sizeof text, "%.20s %%", number);
    page_write_card_metric(p, "of those after the outage", text);
    demo_fixed(number, demo_amplification(t), 2);
    snprintf(text, sizeof text, "%.20s ×", number);
    page_write_card_metric(p, "requests per first attempt", text);
    if (t->recovery_ns == DEMO_NOT_RECOVERED)
        snprintf(text, sizeof text, "not seen");
    else
        snprintf(text, sizeof text, "%.20s s", demo_fixed(number, (double)t->recovery_ns / (double)BIDE_S, 1));
    page_write_card_metric(p, "from the end of the outage to recovery", text);
    fputs("</dl></section>\n", p->out);
}

/* Warns the reader before the charts if bide's side paid a price, too. */
static void page_write_note(const struct page *p)
{
    char text[DEMO_NOTE_SIZE];
    if (demo_cost_note(text, p->result, " ") == NULL)
        return;
    fputs("<p class=\"note\">", p->out);
    chart_escape(p->out, text);
    fputs("</p>\n", p->out);
}

/* ---- charts ---- */

static void page_fill_counts(const struct page *p, size_t line, const struct demo_counters *t, size_t offset)
{
    for (size_t i = 0; i < INTERVALS(p->scenario); i++)
        p->value[line][i] = *(const uint32_t *)(const void *)((const char *)&t->interval[i] + offset);
}

/* Computes for each interval the rate over it and its two neighbours; at the ends, over those that exist. */
static void page_fill_rates(const struct page *p, size_t line, const struct demo_counters *t, size_t offset)
{
    size_t count = INTERVALS(p->scenario);
    for (size_t i = 0; i < count; i++) {
        size_t from = i > 0 ? i - 1 : 0, to = i + 2 < count ? i + 2 : count;
        double sum = 0;
        for (size_t j = from; j < to; j++)
            sum += *(const uint32_t *)(const void *)((const char *)&t->interval[j] + offset);
        p->value[line][i] = sum * (double)INTERVALS_PER_S / (double)(to - from);
    }
}

static struct chart_lines page_chart(const struct page *p)
{
    return (struct chart_lines){.x_unit = " s",
                                .width = WIDTH,
                                .height = HEIGHT,
                                .x_step = (double)DEMO_INTERVAL_NS / (double)BIDE_S,
                                .bands = &p->outage,
                                .band_count = 1};
}

/* On a narrow screen the chart scrolls sideways: shrunk letters would not be readable. */
static void page_write_chart(const struct page *p, const struct chart_lines *chart)
{
    fputs("<div class=\"chart\">\n", p->out);
    chart_lines(p->out, chart);
    fputs("</div>\n", p->out);
}

static void page_draw_requests(const struct page *p, size_t which)
{
    const struct demo_side_result *side = &p->result->side[which];
    const struct demo_counters *other = &p->result->side[1 - which].counters;
    char about[256], id[32];
    struct chart_series series = {.name = side->client->name,
                                  .style = side_classes[which],
                                  .value = p->value[0],
                                  .count = INTERVALS(p->scenario),
                                  .filled = true};
    struct chart_lines chart = page_chart(p);
    page_fill_counts(p, 0, &side->counters, offsetof(struct demo_interval, requests));
    snprintf(id, sizeof id, "requests-%s", side_classes[which]);
    snprintf(about, sizeof about,
             "Requests received by the server of the %.40s per 100 ms. The maximum is %" PRIu32 ", at second %zu.",
             side->client->name, side->counters.peak, side->counters.peak_interval / INTERVALS_PER_S);
    chart.id = id;
    chart.title = side->client->name;
    chart.about = about;
    chart.y_name = "requests per 100 ms";
    chart.y_most = side->counters.peak > other->peak ? side->counters.peak : other->peak;
    chart.level = demo_capacity_per_s(p->scenario) / (double)INTERVALS_PER_S;
    chart.level_name = "server’s capacity";
    chart.series = &series;
    chart.series_count = 1;
    page_write_chart(p, &chart);
}

static void page_draw_successes(const struct page *p)
{
    const struct demo_side_result *side = p->result->side;
    size_t count = INTERVALS(p->scenario);
    struct chart_series series[SERIES_MAX] = {
        {.name = "naive: all responses", .style = "late", .value = p->value[0], .count = count},
        {.name = side[0].client->name, .style = "naive", .value = p->value[1], .count = count},
        {.name = side[1].client->name, .style = "bide", .value = p->value[2], .count = count}};
    struct chart_lines chart = page_chart(p);
    page_fill_rates(p, 0, &side[0].counters, offsetof(struct demo_interval, served));
    page_fill_rates(p, 1, &side[0].counters, offsetof(struct demo_interval, succeeded));
    page_fill_rates(p, 2, &side[1].counters, offsetof(struct demo_interval, succeeded));
    chart.id = "answers";
    chart.title = "Calls that succeeded, per second";
    chart.about =
        "For both sides the calls that succeeded per second, and for the naive loop also all 200 responses of "
        "its server, including those to callers that had left.";
    chart.y_name = "calls per second";
    chart.height = HEIGHT + 50;
    chart.level = p->scenario->rate;
    chart.level_name = "arriving calls";
    chart.series = series;
    chart.series_count = SERIES_MAX;
    page_write_chart(p, &chart);
}

static void page_write_charts(const struct page *p)
{
    fputs("<h2>Load of the servers</h2>\n<p class=\"soft\">Requests that each server received per 100 ms, counted by "
          "the server. Both charts have the same scale.</p>\n",
          p->out);
    for (size_t i = 0; i < 2; i++)
        page_draw_requests(p, i);
    fputs(
        "<h2>Success of the callers</h2>\n<p class=\"soft\">Calls that succeeded, per second. The dashed line shows "
        "all 200 responses of the naive side’s server: where it is above the solid line, the server worked for callers "
        "that had already left.</p>\n",
        p->out);
    page_draw_successes(p);
}

/* ---- table and explanations ---- */

static void page_write_table(const struct page *p)
{
    const struct demo_result *r = p->result;
    char text[DEMO_METRIC_SIZE];
    fputs("<h2>All metrics</h2>\n<table><thead><tr><th></th>", p->out);
    for (size_t i = 0; i < 2; i++) {
        fprintf(p->out, "<th scope=\"col\" class=\"%s\">", side_classes[i]);
        chart_escape(p->out, r->side[i].client->name);
        fputs("</th>", p->out);
    }
    fputs("</tr></thead><tbody>\n", p->out);
    for (size_t i = 0; demo_metric(i) != NULL; i++) {
        fputs("<tr><th scope=\"row\">", p->out);
        chart_escape(p->out, demo_metric(i)->name);
        fputs("<small>", p->out);
        chart_escape(p->out, demo_metric(i)->means);
        fputs("</small></th>", p->out);
        for (size_t j = 0; j < 2; j++) {
            fputs("<td>", p->out);
            chart_escape(p->out, demo_metric(i)->format(text, r, &r->side[j].counters));
            fputs("</td>", p->out);
        }
        fputs("</tr>\n", p->out);
    }
    fputs("</tbody></table>\n", p->out);
}

static void page_write_reasons(const struct page *p)
{
    fputs("<h3>Why calls gave up</h3>\n<table><tbody>\n", p->out);
    for (unsigned reason = 0; reason < BIDE_REASON_COUNT; reason++) {
        uint64_t naive = p->result->side[0].counters.ended[reason], bide = p->result->side[1].counters.ended[reason];
        if (reason == BIDE_REASON_SUCCEEDED || naive + bide == 0)
            continue;
        fputs("<tr><th scope=\"row\">", p->out);
        chart_escape(p->out, reason == BIDE_REASON_CANCELLED ? "none: still trying at the end of the demo"
                                                             : bide_reason_text((enum bide_reason)reason));
        fprintf(p->out, "</th><td>%" PRIu64 "</td><td>%" PRIu64 "</td></tr>\n", naive, bide);
    }
    fputs("</tbody></table>\n", p->out);
}

static void page_write_explanation(const struct page *p)
{
    char text[CONF_VALUE_SIZE], queue[CONF_VALUE_SIZE];
    const struct bide_policy *policy = &p->result->side[1].client->policy;
    conf_duration_format(text, policy->attempt_timeout_ns);
    conf_duration_format(queue, DEMO_QUEUE_NS);
    fprintf(
        p->out,
        "<h2>How to read this</h2>\n<p>While the server is down no call can succeed, and every retry is wasted. The "
        "decisive time is after the outage. The server processes requests in order of arrival, and its queue holds %s "
        "of work; an attempt is abandoned after %s. Retries that accumulated during the outage fill that queue at "
        "once. If requests then wait longer than callers do, the server works for callers that have left and that "
        "have meanwhile sent their next attempt: it is always busy and serves no one, although nothing is broken any "
        "more (a metastable failure). Only fewer requests end it.</p>\n",
        queue, policy->attempt_timeout_ns == BIDE_NEVER ? "no time limit" : text);
    fputs(
        "<p>A retry budget prevents this accumulation: successes pay for retries, and during an outage there are none. "
        "Most calls that start during the outage therefore fail fast. A patient loop may outlast a short outage, at "
        "the server’s expense; a longer outage it prolongs.</p>\n",
        p->out);
    fputs(
        "<p>Both sides use the same engine and the same event loop, over real sockets on this machine; the naive loop "
        "is a policy with a fixed wait and without jitter, budget, breaker and deadline. The calls start at random "
        "times, drawn from the seed, whether or not earlier calls have ended.</p>\n",
        p->out);
    if (p->result->side[1].client->target.breaker.kind != BIDE_BREAKER_OFF &&
        demo_refused(&p->result->side[1].counters) == 0)
        fputs("<p>The outage was too short to open bide’s breaker; a longer one shows its effect.</p>\n", p->out);
}

static void page_write_repeat(const struct page *p)
{
    const struct demo_scenario *s = p->scenario;
    char length[CONF_VALUE_SIZE], down[CONF_VALUE_SIZE], up[CONF_VALUE_SIZE], script[DEMO_SCRIPT_SIZE];
    fprintf(p->out,
            "<h2>To repeat it</h2>\n<pre>bide demo --seed %" PRIu64 " --rate %" PRIu32 " --seconds %s --outage %s..%s ",
            s->seed, s->rate, conf_duration_format(length, s->length_ns), conf_duration_format(down, s->down_ns),
            conf_duration_format(up, s->up_ns));
    chart_escape(p->out, p->result->options != NULL ? p->result->options : "");
    fputs(
        "</pre>\n<p>The same seed gives the same calls at the same times. Measured values differ slightly from run to "
        "run. Each server was <code>bide chaos</code> with this script:</p>\n<pre>",
        p->out);
    chart_escape(p->out, demo_script(script, s));
    fputs("</pre>\n", p->out);
}

static void page_write_footer(const struct page *p)
{
    char made[64] = "";
    time_t at = (time_t)p->result->made_s;
    struct tm utc;
    if (at > 0 && gmtime_r(&at, &utc) != NULL)
        strftime(made, sizeof made, ", %Y-%m-%d %H:%M UTC", &utc);
    fprintf(p->out, "<footer>Made by <code>bide demo</code>, bide %s%s. This page is self-contained.</footer>\n",
            bide_version(), made);
}

/* ---- the page ---- */

static void page_write(const struct page *p)
{
    fprintf(p->out,
            DEMO_REPORT_MARK
            "\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n<meta name=\"viewport\" "
            "content=\"width=device-width,initial-scale=1\"/>\n<title>bide demo: the same outage, twice"
            "</title>\n<style>\n%s</style>\n</head>\n<body>\n<main>\n",
            style);
    page_write_lead(p);
    fputs("<div class=\"sides\">\n", p->out);
    page_write_card(p, 0);
    page_write_card(p, 1);
    fputs("</div>\n", p->out);
    page_write_note(p);
    page_write_charts(p);
    page_write_table(p);
    page_write_reasons(p);
    page_write_explanation(p);
    page_write_repeat(p);
    page_write_footer(p);
    fputs("</main>\n</body>\n</html>\n", p->out);
}

bool demo_report(FILE *out, const struct demo_result *result)
{
    struct page page = {.out = out, .result = result, .scenario = result->scenario};
    page.outage = (struct chart_band){(double)result->scenario->down_ns / (double)BIDE_S,
                                      (double)result->scenario->up_ns / (double)BIDE_S, "outage"};
    size_t count = INTERVALS(result->scenario);
    double *room = calloc(count > 0 ? count : 1, SERIES_MAX * sizeof *room);
    if (room == NULL)
        return false;
    for (size_t i = 0; i < SERIES_MAX; i++)
        page.value[i] = room + i * count;
    page_write(&page);
    free(room);
    return true;
}
