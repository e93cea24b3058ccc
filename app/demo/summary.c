/* summary.c - the metrics of a demo, and the table and the JSON object with them. */
#include "summary.h"

#include "text/json_write.h"
#include "text/unit.h"

#include <inttypes.h>
#include <string.h>

#define NAME_COLUMNS 32
#define COLUMNS      22

/* ---- metrics ---- */

enum metric {
    CALLS,
    SUCCEEDED,
    SUCCEEDED_AFTER,
    GAVE_UP,
    STILL_TRYING,
    RECOVERED,
    REQUESTS,
    AMPLIFICATION,
    PEAK,
    WASTED,
    TIME_TO_SUCCESS,
    METRICS
};

static const struct demo_metric metrics[METRICS] = {
    [CALLS] = {"calls", "Calls that started. Both sides make the same calls at the same times."},
    [SUCCEEDED] = {"succeeded", "Calls that ended with a 200 response. During the outage no call can."},
    [SUCCEEDED_AFTER] = {"... of those after the outage",
                         "The same, for the calls that started after the server was up again."},
    [GAVE_UP] = {"gave up", "Calls that ended without success: their policy allowed no further attempt."},
    [STILL_TRYING] = {"still trying at the end",
                      "Calls that had neither succeeded nor given up at the end of the demo."},
    [RECOVERED] = {"recovered after the outage",
                   "From the end of the outage until, in every later second, 90 % of the calls succeed within a "
                   "second."},
    [REQUESTS] = {"requests at the server", "All requests that the server received, by its own count."},
    [AMPLIFICATION] = {"amplification", "Requests at the server per first attempt."},
    [PEAK] = {"busiest 100 ms", "The largest number of requests that the server received within 100 ms."},
    [WASTED] = {"wasted responses", "Requests that the server served after their callers had left."},
    [TIME_TO_SUCCESS] = {"time to success, median / 99 %",
                         "From the start of a call to its success: the median, and the 99th percentile."},
};

const struct demo_metric *demo_metric(size_t i)
{
    return i < METRICS ? &metrics[i] : NULL;
}

static void format_count(char text[DEMO_METRIC_SIZE], uint64_t count)
{
    snprintf(text, DEMO_METRIC_SIZE, "%" PRIu64, count);
}

/* Formats "1395 (87.2 %)". */
static void format_share(char text[DEMO_METRIC_SIZE], uint64_t part, uint64_t whole)
{
    snprintf(text, DEMO_METRIC_SIZE, "%" PRIu64 " (%.1f %%)", part, demo_share(part, whole));
}

static void format_recovery(char text[DEMO_METRIC_SIZE], const struct demo_scenario *s, int64_t recovery_ns)
{
    int64_t observed_ns = s->length_ns - s->up_ns;
    if (recovery_ns != DEMO_NOT_RECOVERED)
        snprintf(text, DEMO_METRIC_SIZE, "%.1f s", (double)recovery_ns / (double)BIDE_S);
    else
        snprintf(text, DEMO_METRIC_SIZE, "not within %.*f s", observed_ns % BIDE_S == 0 ? 0 : 1,
                 (double)observed_ns / (double)BIDE_S);
}

static void format_times(char text[DEMO_METRIC_SIZE], const struct demo_counters *t)
{
    char median[TEXT_VALUE_SIZE], p99[TEXT_VALUE_SIZE];
    snprintf(text, DEMO_METRIC_SIZE, "%.20s / %.20s", text_duration_format_short(median, t->median_ns),
             text_duration_format_short(p99, t->p99_ns));
}

const char *demo_metric_text(char text[DEMO_METRIC_SIZE], size_t i, const struct demo_result *result, size_t side)
{
    const struct demo_counters *t = &result->side[side].counters;
    switch ((enum metric)i) {
    case CALLS: format_count(text, t->calls); break;
    case SUCCEEDED: format_share(text, t->ended[BIDE_REASON_SUCCEEDED], t->calls); break;
    case SUCCEEDED_AFTER: format_share(text, t->after_ok, t->after_calls); break;
    case GAVE_UP: format_count(text, demo_gave_up(t)); break;
    case STILL_TRYING: format_count(text, t->ended[BIDE_REASON_CANCELLED]); break;
    case RECOVERED: format_recovery(text, result->scenario, t->recovery_ns); break;
    case REQUESTS: format_count(text, t->requests); break;
    case AMPLIFICATION: snprintf(text, DEMO_METRIC_SIZE, "%.2fx", demo_amplification(t)); break;
    case PEAK: format_count(text, t->peak); break;
    case WASTED: format_share(text, t->wasted, t->served); break;
    case TIME_TO_SUCCESS: format_times(text, t); break;
    case METRICS: break;
    }
    return text;
}

/* ---- cost of the policy ---- */

/* Mentions only one cost, that of the breaker if it opened: it explains most. */
const char *demo_cost_note(char text[DEMO_NOTE_SIZE], const struct demo_result *r, const char *between)
{
    const struct bide_breaker_config *breaker = &r->side[1].client->target.breaker;
    const struct demo_counters *naive = &r->side[0].counters, *bide = &r->side[1].counters;
    char open[TEXT_VALUE_SIZE], ramp[TEXT_VALUE_SIZE];
    if (demo_refused(bide) > 0)
        snprintf(text, DEMO_NOTE_SIZE,
                 "bide's breaker opened and rejected %" PRIu64
                 " calls: it is open for %s at first,%sthen ramps up over %s. "
                 "That spares the server, at the expense of callers.",
                 demo_refused(bide), text_duration_format(open, breaker->open_ns), between,
                 text_duration_format(ramp, breaker->ramp_ns));
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
    for (size_t i = 0; i < METRICS; i++)
        fprintf(out, "%-*s%*s%*s\n", NAME_COLUMNS, metrics[i].name, COLUMNS, demo_metric_text(one, i, r, 0), COLUMNS,
                demo_metric_text(other, i, r, 1));
    if (demo_cost_note(note, r, "\n") != NULL)
        fprintf(out, "\n%s\n", note);
}

/* ---- JSON ---- */

static void json_scenario(struct text_json *json, const struct demo_result *r)
{
    const struct demo_scenario *s = r->scenario;
    char script[DEMO_SCRIPT_SIZE], seed[DEMO_METRIC_SIZE];
    text_json_string(json, "version", bide_version());
    format_count(seed, s->seed);
    text_json_string(json, "seed", seed); /* many JSON readers have no 64-bit integers */
    text_json_unsigned(json, "rate_per_s", s->rate);
    text_json_integer(json, "length_ms", s->length_ns / BIDE_MS);
    text_json_array(json, "outage_ms");
    text_json_integer(json, NULL, s->down_ns / BIDE_MS);
    text_json_integer(json, NULL, s->up_ns / BIDE_MS);
    text_json_end(json);
    text_json_unsigned(json, "capacity_per_s", demo_capacity_per_s(s));
    text_json_string(json, "script", demo_script(script, s));
    text_json_integer(json, "interval_ms", DEMO_INTERVAL_NS / BIDE_MS);
    text_json_string(json, "policy", r->policy);
}

static void json_give_ups(struct text_json *json, const struct demo_counters *t)
{
    text_json_object(json, "gave_up");
    for (unsigned reason = 0; reason < BIDE_REASON_COUNT; reason++)
        if (t->ended[reason] > 0 && reason != BIDE_REASON_SUCCEEDED && reason != BIDE_REASON_CANCELLED)
            text_json_unsigned(json, bide_reason_label((enum bide_reason)reason), t->ended[reason]);
    text_json_end(json);
}

static void json_series(struct text_json *json, const struct demo_counters *t, const char *name, size_t offset)
{
    text_json_array(json, name);
    for (size_t i = 0; i < t->intervals; i++) {
        uint32_t value;
        memcpy(&value, (const char *)&t->interval[i] + offset, sizeof value);
        text_json_unsigned(json, NULL, value);
    }
    text_json_end(json);
}

static void json_requests(struct text_json *json, const struct demo_counters *t)
{
    text_json_unsigned(json, "attempts", t->attempts);
    text_json_unsigned(json, "requests", t->requests);
    text_json_unsigned(json, "first_attempts", t->first_attempts);
    text_json_real(json, "amplification", demo_amplification(t), 4);
    text_json_unsigned(json, "peak", t->peak);
    text_json_integer(json, "peak_at_ms", (int64_t)t->peak_interval * (DEMO_INTERVAL_NS / BIDE_MS));
    text_json_unsigned(json, "served", t->served);
    text_json_unsigned(json, "wasted", t->wasted);
}

static void json_recovery(struct text_json *json, const struct demo_side_result *side)
{
    const struct demo_counters *t = &side->counters;
    text_json_object(json, "after_outage");
    text_json_unsigned(json, "calls", t->after_calls);
    text_json_unsigned(json, "succeeded", t->after_ok);
    text_json_end(json);
    text_json_integer(json, "median_us", t->median_ns / 1000);
    text_json_integer(json, "p99_us", t->p99_ns / 1000);
    text_json_integer(json, "late_us", side->late_ns / 1000);
    if (t->recovery_ns == DEMO_NOT_RECOVERED)
        text_json_null(json, "recovery_ms");
    else
        text_json_integer(json, "recovery_ms", t->recovery_ns / BIDE_MS);
}

static void json_side(struct text_json *json, const struct demo_side_result *side)
{
    const struct demo_counters *t = &side->counters;
    char summary[DEMO_SUMMARY_SIZE];
    text_json_object(json, NULL);
    text_json_string(json, "name", side->client->name);
    text_json_string(json, "policy", demo_client_summary(summary, side->client));
    text_json_unsigned(json, "calls", t->calls);
    text_json_unsigned(json, "succeeded", t->ended[BIDE_REASON_SUCCEEDED]);
    text_json_unsigned(json, "still_trying", t->ended[BIDE_REASON_CANCELLED]);
    json_requests(json, t);
    json_recovery(json, side);
    json_give_ups(json, t);
    json_series(json, t, "started_by_interval", offsetof(struct demo_interval, began));
    json_series(json, t, "requests_by_interval", offsetof(struct demo_interval, requests));
    json_series(json, t, "served_by_interval", offsetof(struct demo_interval, served));
    json_series(json, t, "succeeded_by_interval", offsetof(struct demo_interval, succeeded));
    text_json_end(json);
}

void demo_json(FILE *out, const struct demo_result *r)
{
    struct text_json json = text_json_to_stream(out, TEXT_JSON_LINE);
    text_json_object(&json, NULL);
    json_scenario(&json, r);
    text_json_array(&json, "sides");
    json_side(&json, &r->side[0]);
    json_side(&json, &r->side[1]);
    text_json_end(&json);
    text_json_end(&json);
    text_json_finish(&json);
    fputc('\n', out);
}
