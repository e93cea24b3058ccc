/* summary.c - the metrics of a demo, and the table and the JSON object with them. */
#include "summary.h"

#include "chart/chart.h"
#include "conf/unit.h"

#include <inttypes.h>
#include <string.h>

#define NAME_COLUMNS 32
#define COLUMNS      22

const char *demo_fixed(char text[DEMO_METRIC_SIZE], double value, unsigned digits)
{
    uint64_t scale = 1;
    for (unsigned i = 0; i < digits; i++)
        scale *= 10;
    uint64_t units = value > 0 ? (uint64_t)(value * (double)scale + 0.5) : 0;
    if (digits == 0)
        snprintf(text, DEMO_METRIC_SIZE, "%" PRIu64, units);
    else
        snprintf(text, DEMO_METRIC_SIZE, "%" PRIu64 ".%0*" PRIu64, units / scale, (int)digits, units % scale);
    return text;
}

/* ---- metrics ---- */

/* Formats "1395 (87.2 %)". */
static const char *format_share(char text[DEMO_METRIC_SIZE], uint64_t part, uint64_t whole)
{
    char percent[DEMO_METRIC_SIZE];
    demo_fixed(percent, demo_share(part, whole), 1);
    snprintf(text, DEMO_METRIC_SIZE, "%" PRIu64 " (%.10s %%)", part, percent);
    return text;
}

static const char *format_count(char text[DEMO_METRIC_SIZE], uint64_t count)
{
    snprintf(text, DEMO_METRIC_SIZE, "%" PRIu64, count);
    return text;
}

#define FORMAT(name)                                                                                                   \
    static const char *name(char text[DEMO_METRIC_SIZE], const struct demo_result *result,                             \
                            const struct demo_counters *t)

FORMAT(format_calls)
{
    (void)result;
    return format_count(text, t->calls);
}

FORMAT(format_succeeded)
{
    (void)result;
    return format_share(text, t->ended[BIDE_REASON_SUCCEEDED], t->calls);
}

FORMAT(format_succeeded_after)
{
    (void)result;
    return format_share(text, t->after_ok, t->after_calls);
}

FORMAT(format_recovered)
{
    char seconds[DEMO_METRIC_SIZE];
    if (t->recovery_ns != DEMO_NOT_RECOVERED) {
        demo_fixed(seconds, (double)t->recovery_ns / BIDE_S, 1);
        snprintf(text, DEMO_METRIC_SIZE, "%.20s s", seconds);
    } else {
        int64_t looked_ns = result->scenario->length_ns - result->scenario->up_ns;
        demo_fixed(seconds, (double)looked_ns / BIDE_S, looked_ns % BIDE_S == 0 ? 0 : 1);
        snprintf(text, DEMO_METRIC_SIZE, "not within %.20s s", seconds);
    }
    return text;
}

FORMAT(format_requests)
{
    (void)result;
    return format_count(text, t->requests);
}

FORMAT(format_amplification)
{
    char times[DEMO_METRIC_SIZE];
    (void)result;
    demo_fixed(times, demo_amplification(t), 2);
    snprintf(text, DEMO_METRIC_SIZE, "%.20sx", times);
    return text;
}

FORMAT(format_peak)
{
    (void)result;
    return format_count(text, t->peak);
}

FORMAT(format_wasted)
{
    (void)result;
    return format_share(text, t->wasted, t->served);
}

FORMAT(format_took)
{
    char median[CONF_VALUE_SIZE], most[CONF_VALUE_SIZE];
    (void)result;
    snprintf(text, DEMO_METRIC_SIZE, "%.20s / %.20s", conf_duration_format_short(median, t->median_ns),
             conf_duration_format_short(most, t->p99_ns));
    return text;
}

FORMAT(format_gave_up)
{
    (void)result;
    return format_count(text, demo_gave_up(t));
}

FORMAT(format_still_trying)
{
    (void)result;
    return format_count(text, t->ended[BIDE_REASON_CANCELLED]);
}

static const struct demo_metric metrics[] = {
    {"calls", "Calls that started. Both sides make the same calls at the same times.", format_calls},
    {"succeeded", "Calls that ended with a 200 response. During the outage no call can.", format_succeeded},
    {"... of those after the outage", "The same, for the calls that started after the server was up again.",
     format_succeeded_after},
    {"gave up", "Calls that ended without success: their policy allowed no further attempt.", format_gave_up},
    {"still trying at the end", "Calls that had neither succeeded nor given up at the end of the demo.",
     format_still_trying},
    {"recovered after the outage",
     "From the end of the outage until, in every later second, 90 % of the calls succeed within a second.",
     format_recovered},
    {"requests at the server", "All requests that the server received, by its own count.", format_requests},
    {"amplification", "Requests at the server per first attempt.", format_amplification},
    {"busiest 100 ms", "The largest number of requests that the server received within 100 ms.", format_peak},
    {"wasted responses", "Requests that the server served after their callers had left.", format_wasted},
    {"time to success, median / 99 %", "From the start of a call to its success: the median, and the 99th percentile.",
     format_took},
};

const struct demo_metric *demo_metric(size_t i)
{
    return i < sizeof metrics / sizeof *metrics ? &metrics[i] : NULL;
}

/* ---- cost of the policy ---- */

/* Mentions only one cost, that of the breaker if it opened: it explains most. */
const char *demo_cost_note(char text[DEMO_NOTE_SIZE], const struct demo_result *r, const char *between)
{
    const struct bide_breaker_config *breaker = &r->side[1].client->target.breaker;
    const struct demo_counters *naive = &r->side[0].counters, *bide = &r->side[1].counters;
    char open[CONF_VALUE_SIZE], ramp[CONF_VALUE_SIZE];
    if (demo_refused(bide) > 0)
        snprintf(text, DEMO_NOTE_SIZE,
                 "bide's breaker opened and rejected %" PRIu64
                 " calls: it is open for %s at first,%sthen ramps up over %s. "
                 "That spares the server, at the expense of callers.",
                 demo_refused(bide), conf_duration_format(open, breaker->open_ns), between,
                 conf_duration_format(ramp, breaker->ramp_ns));
    else if (naive->ended[BIDE_REASON_SUCCEEDED] > bide->ended[BIDE_REASON_SUCCEEDED])
        snprintf(
            text, DEMO_NOTE_SIZE,
            "More calls of the naive loop succeeded: its callers outlasted this outage,%sbide's callers failed fast. "
            "Requests show the cost for the server.",
            between);
    else
        return NULL;
    return text;
}

/* ---- the table ---- */

void demo_table(FILE *out, const struct demo_result *r)
{
    char one[DEMO_METRIC_SIZE], other[DEMO_METRIC_SIZE], note[DEMO_NOTE_SIZE];
    fprintf(out, "%-*s%*.*s%*.*s\n", NAME_COLUMNS, "", COLUMNS, COLUMNS - 1, r->side[0].client->name, COLUMNS,
            COLUMNS - 1, r->side[1].client->name);
    for (const struct demo_metric *f = metrics; f < metrics + sizeof metrics / sizeof *metrics; f++)
        fprintf(out, "%-*s%*s%*s\n", NAME_COLUMNS, f->name, COLUMNS, f->format(one, r, &r->side[0].counters), COLUMNS,
                f->format(other, r, &r->side[1].counters));
    if (demo_cost_note(note, r, "\n") != NULL)
        fprintf(out, "\n%s\n", note);
}

/* ---- JSON ---- */

static void json_text(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\' || c < 0x20 || c >= 0x7f) /* policy names: non-ASCII bytes become '?' */
            fprintf(out, c >= 0x7f ? "?" : "\\u%04x", c);
        else
            fputc(c, out);
    }
    fputc('"', out);
}

static void json_scenario(FILE *out, const struct demo_result *r)
{
    const struct demo_scenario *s = r->scenario;
    char script[DEMO_SCRIPT_SIZE];
    fprintf(out,
            "{\"version\":\"%s\",\"seed\":\"%" PRIu64 "\",\"rate_per_s\":%" PRIu32 ",\"length_ms\":%" PRId64
            ",\"outage_ms\":[%" PRId64 ",%" PRId64 "],\"capacity_per_s\":%" PRIu32 ",\"script\":",
            bide_version(), s->seed, s->rate, s->length_ns / BIDE_MS, s->down_ns / BIDE_MS, s->up_ns / BIDE_MS,
            demo_capacity_per_s(s));
    json_text(out, demo_script(script, s));
    fprintf(out, ",\"interval_ms\":%" PRId64 ",\"policy\":", DEMO_INTERVAL_NS / BIDE_MS);
    json_text(out, r->policy);
}

static void json_ends(FILE *out, const struct demo_counters *t)
{
    const char *comma = "";
    fputs(",\"gave_up\":{", out);
    for (unsigned reason = 0; reason < BIDE_REASON_COUNT; reason++) {
        if (t->ended[reason] == 0 || reason == BIDE_REASON_SUCCEEDED || reason == BIDE_REASON_CANCELLED)
            continue;
        fprintf(out, "%s\"%s\":%" PRIu64, comma, bide_reason_label((enum bide_reason)reason), t->ended[reason]);
        comma = ",";
    }
    fputc('}', out);
}

static void json_series(FILE *out, const struct demo_counters *t, const char *name, size_t offset)
{
    fprintf(out, ",\"%s\":[", name);
    for (size_t i = 0; i < t->intervals; i++) {
        uint32_t value;
        memcpy(&value, (const char *)&t->interval[i] + offset, sizeof value);
        fprintf(out, "%s%" PRIu32, i > 0 ? "," : "", value);
    }
    fputc(']', out);
}

static void json_side(FILE *out, const struct demo_side_result *side)
{
    const struct demo_counters *t = &side->counters;
    char summary[DEMO_SUMMARY_SIZE];
    fputs("{\"name\":", out);
    json_text(out, side->client->name);
    fputs(",\"policy\":", out);
    json_text(out, demo_client_summary(summary, side->client));
    fprintf(out,
            ",\"calls\":%" PRIu64 ",\"succeeded\":%" PRIu64 ",\"still_trying\":%" PRIu64 ",\"attempts\":%" PRIu64
            ",\"requests\":%" PRIu64 ",\"first_attempts\":%" PRIu64 ",\"amplification\":",
            t->calls, t->ended[BIDE_REASON_SUCCEEDED], t->ended[BIDE_REASON_CANCELLED], t->attempts, t->requests,
            t->first_attempts);
    chart_number(out, demo_amplification(t));
    fprintf(out,
            ",\"peak\":%" PRIu32 ",\"peak_at_ms\":%" PRId64 ",\"served\":%" PRIu64 ",\"wasted\":%" PRIu64
            ",\"after_outage\":{\"calls\":%" PRIu64 ",\"succeeded\":%" PRIu64 "},\"median_us\":%" PRId64
            ",\"p99_us\":%" PRId64 ",\"late_us\":%" PRId64 ",\"recovery_ms\":",
            t->peak, (int64_t)t->peak_interval * (DEMO_INTERVAL_NS / BIDE_MS), t->served, t->wasted, t->after_calls,
            t->after_ok, t->median_ns / 1000, t->p99_ns / 1000, side->late_ns / 1000);
    if (t->recovery_ns == DEMO_NOT_RECOVERED)
        fputs("null", out);
    else
        fprintf(out, "%" PRId64, t->recovery_ns / BIDE_MS);
    json_ends(out, t);
    json_series(out, t, "started_by_interval", offsetof(struct demo_interval, began));
    json_series(out, t, "requests_by_interval", offsetof(struct demo_interval, requests));
    json_series(out, t, "served_by_interval", offsetof(struct demo_interval, served));
    json_series(out, t, "succeeded_by_interval", offsetof(struct demo_interval, succeeded));
    fputc('}', out);
}

void demo_json(FILE *out, const struct demo_result *r)
{
    json_scenario(out, r);
    fputs(",\"sides\":[", out);
    json_side(out, &r->side[0]);
    fputc(',', out);
    json_side(out, &r->side[1]);
    fputs("]}\n", out);
}
