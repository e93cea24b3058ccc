/* report.c - the HTML page: a summary, four metrics for each side, charts, the complete table, and how to read and
 * repeat it. The two sides are orange and blue, and always labelled. */
#include "report.h"

#include "summary.h"
#include "text/unit.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#define TITLE           "The same outage, twice"
#define WIDTH           920u
#define HEIGHT          210u
#define INTERVALS_PER_S (size_t)(BIDE_S / DEMO_INTERVAL_NS)
#define SERIES_MAX      3u
#define INTERVALS(s)    ((size_t)((s)->length_ns / DEMO_INTERVAL_NS)) /* drawn: until the last call began */

static const char style[] =
    ".sides{display:grid;grid-template-columns:1fr 1fr;gap:20px;margin:28px 0 0} .note{margin:20px 0 0}\n"
    ".side{border:1px solid var(--rule);border-top:4px solid;border-radius:6px;padding:16px 20px}\n"
    ".side h3{margin:0;font-size:18px} .side.c0{border-top-color:var(--c0)} .side.c1{border-top-color:var(--c1)}\n"
    ".side dl{display:grid;grid-template-columns:1fr 1fr;gap:12px 20px;margin:14px 0 0}\n"
    ".side dt{color:var(--soft);font-size:13px} .side dd{margin:0;font-size:25px;line-height:1.25;font-weight:600;"
    "font-variant-numeric:tabular-nums}\n"
    ".side dl div{display:flex;flex-direction:column-reverse;justify-content:flex-end}\n"
    ".area{fill-opacity:.85} .line.dash{stroke-width:1.5} text.dash,text.level{font-weight:400}\n"
    "table{width:100%;font-size:16px} th,td{vertical-align:top;width:172px} th:first-child{max-width:none;width:auto}\n"
    "thead th{font-size:16px;font-weight:600} th "
    "small{display:block;color:var(--soft);font-weight:400;font-size:13px}\n"
    "@media(max-width:640px){.sides{grid-template-columns:1fr} th,td{white-space:normal;width:104px;font-size:14px;"
    "padding-left:8px} th small{display:none}}\n";

static const char *const side_classes[] = {"c0", "c1"}; /* CSS classes */

struct page {
    FILE *out;
    const struct demo_result *result;
    const struct demo_scenario *scenario;
    double *value[SERIES_MAX]; /* buffers for charts */
    struct chart_band outage;
};

/* ---- texts ---- */

static void page_write_lead(const struct page *p)
{
    const struct demo_scenario *s = p->scenario;
    char length[TEXT_VALUE_SIZE], down[TEXT_VALUE_SIZE], up[TEXT_VALUE_SIZE];
    chart_element(p->out, "h1", TITLE);
    fprintf(p->out,
            "<p class=\"lead\">%" PRIu32 " calls in %s seconds, %" PRIu32
            " per second, to a server with a capacity of %" PRIu32 " per second. From second %s to second %s it is "
            "down and returns 503. Two groups of callers use two such servers at the same time, with the same calls "
            "at the same times. They differ only in how they retry.</p>\n",
            demo_call_count(s), text_decimal_format(length, s->length_ns, BIDE_S), s->rate, demo_capacity_per_s(s),
            text_decimal_format(down, s->down_ns, BIDE_S), text_decimal_format(up, s->up_ns, BIDE_S));
}

static void page_write_card_metric(const struct page *p, const char *name, const char *value)
{
    fputs("<div>", p->out);
    chart_element(p->out, "dt", name);
    chart_element(p->out, "dd", value);
    fputs("</div>\n", p->out);
}

static void page_write_card(const struct page *p, size_t which)
{
    const struct demo_side_result *side = &p->result->side[which];
    const struct demo_counters *t = &side->counters;
    char text[DEMO_METRIC_SIZE], summary[DEMO_SUMMARY_SIZE];
    fprintf(p->out, "<section class=\"side %s\">\n", side_classes[which]);
    chart_element(p->out, which == 0 ? "h3 class=\"c0\"" : "h3 class=\"c1\"", side->client->name);
    chart_element(p->out, "div class=\"soft\"", demo_client_summary(summary, side->client));
    fputs("<dl>\n", p->out);
    snprintf(text, sizeof text, "%.1f %%", demo_share(t->ended[BIDE_REASON_SUCCEEDED], t->calls));
    page_write_card_metric(p, "of all calls succeeded", text);
    snprintf(text, sizeof text, "%.1f %%", demo_share(t->after_ok, t->after_calls));
    page_write_card_metric(p, "of those after the outage", text);
    snprintf(text, sizeof text, "%.2f ×", demo_amplification(t));
    page_write_card_metric(p, "requests per first attempt", text);
    snprintf(text, sizeof text, "%.1f s", (double)t->recovery_ns / (double)BIDE_S);
    if (t->recovery_ns == DEMO_NOT_RECOVERED)
        snprintf(text, sizeof text, "not seen");
    page_write_card_metric(p, "from the end of the outage to recovery", text);
    fputs("</dl></section>\n", p->out);
}

/* Warns the reader before the charts if bide's side paid a price, too. */
static void page_write_note(const struct page *p)
{
    char text[DEMO_NOTE_SIZE];
    if (demo_cost_note(text, p->result, " ") != NULL)
        chart_element(p->out, "p class=\"note\"", text);
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

static void page_write_chart(const struct page *p, const struct chart_lines *chart)
{
    chart_figure_begin(p->out);
    chart_lines(p->out, chart);
    chart_figure_end(p->out);
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
    snprintf(id, sizeof id, "requests-%zu", which);
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
        {.name = "naive: all responses", .style = "c0 dash", .value = p->value[0], .count = count},
        {.name = side[0].client->name, .style = "c0", .value = p->value[1], .count = count},
        {.name = side[1].client->name, .style = "c1", .value = p->value[2], .count = count}};
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
    chart_section(p->out, "Load of the servers",
                  "Requests that each server received per 100 ms, counted by the server. Both charts have the same "
                  "scale.");
    for (size_t i = 0; i < 2; i++)
        page_draw_requests(p, i);
    chart_section(p->out, "Success of the callers",
                  "Calls that succeeded, per second. The dashed line shows all 200 responses of the naive side’s "
                  "server: where it is above the solid line, the server worked for callers that had already left.");
    page_draw_successes(p);
}

/* ---- table and explanations ---- */

static void page_write_table(const struct page *p)
{
    const struct demo_result *r = p->result;
    char text[DEMO_METRIC_SIZE];
    chart_element(p->out, "h2", "All metrics");
    chart_table_begin(p->out);
    fputs("<thead><tr><th></th>\n", p->out);
    chart_element(p->out, "th scope=\"col\" class=\"c0\"", r->side[0].client->name);
    chart_element(p->out, "th scope=\"col\" class=\"c1\"", r->side[1].client->name);
    fputs("</tr></thead><tbody>\n", p->out);
    for (size_t i = 0; demo_metric(i) != NULL; i++) {
        fputs("<tr><th scope=\"row\">", p->out);
        chart_escape(p->out, demo_metric(i)->name);
        chart_element(p->out, "small", demo_metric(i)->means);
        fputs("</th>", p->out);
        for (size_t j = 0; j < 2; j++)
            chart_element(p->out, "td", demo_metric_text(text, i, r, j));
        chart_row_end(p->out);
    }
    fputs("</tbody>", p->out);
    chart_table_end(p->out);
}

static void page_write_reasons(const struct page *p)
{
    chart_element(p->out, "h3", "Why calls gave up");
    chart_table_begin(p->out);
    for (unsigned reason = 0; reason < BIDE_REASON_COUNT; reason++) {
        uint64_t naive = p->result->side[0].counters.ended[reason], bide = p->result->side[1].counters.ended[reason];
        if (reason == BIDE_REASON_SUCCEEDED || naive + bide == 0)
            continue;
        chart_row_begin(p->out, reason == BIDE_REASON_CANCELLED ? "none: still trying at the end of the demo"
                                                                : bide_reason_text((enum bide_reason)reason));
        fprintf(p->out, "<td>%" PRIu64 "</td><td>%" PRIu64 "</td>", naive, bide);
        chart_row_end(p->out);
    }
    chart_table_end(p->out);
}

static void page_write_explanation(const struct page *p)
{
    char text[TEXT_VALUE_SIZE], queue[TEXT_VALUE_SIZE];
    const struct bide_policy *policy = &p->result->side[1].client->policy;
    text_duration_format(text, policy->attempt_timeout_ns);
    text_duration_format(queue, DEMO_QUEUE_NS);
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
    char length[TEXT_VALUE_SIZE], down[TEXT_VALUE_SIZE], up[TEXT_VALUE_SIZE], script[DEMO_SCRIPT_SIZE];
    fprintf(p->out,
            "<h2>To repeat it</h2>\n<pre>bide demo --seed %" PRIu64 " --rate %" PRIu32 " --seconds %s --outage %s..%s ",
            s->seed, s->rate, text_duration_format(length, s->length_ns), text_duration_format(down, s->down_ns),
            text_duration_format(up, s->up_ns));
    chart_escape(p->out, p->result->options != NULL ? p->result->options : "");
    fputs(
        "</pre>\n<p>The same seed gives the same calls at the same times. Measured values differ slightly from run to "
        "run. Each server was <code>bide chaos</code> with this script:</p>\n",
        p->out);
    chart_element(p->out, "pre", demo_script(script, s));
}

static void page_write_footer(const struct page *p)
{
    char made[64] = "";
    time_t at = (time_t)p->result->made_s;
    struct tm utc;
    if (at > 0 && gmtime_r(&at, &utc) != NULL)
        strftime(made, sizeof made, "%Y-%m-%d %H:%M UTC", &utc);
    chart_page_end(p->out, "demo", made);
}

/* ---- the page ---- */

static void page_write(const struct page *p)
{
    chart_page_begin(p->out, &(struct chart_page){"demo", TITLE, style});
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
