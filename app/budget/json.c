/* json.c - a look for programs: names that stay, times in milliseconds, rounded up, as in `bide run --json`.
 *
 * A tree that could not be built for want of memory is NULL all the way up: jansson's "_new" setters pass that on. */
#include "list.h"

#include <jansson.h>

static json_t *milliseconds(int64_t ns)
{
    return json_integer(ns / BIDE_MS + (ns % BIDE_MS != 0));
}

static json_t *thousandths(int64_t milli)
{
    return milli == INT64_MAX ? json_null() : json_real((double)milli / 1000);
}

/* Numbers beyond 2^63 are not integers in JSON that everybody reads. */
static json_t *count_of(uint64_t n)
{
    return n <= INT64_MAX ? json_integer((json_int_t)n) : json_real((double)n);
}

static json_t *budget_of(const struct budget_look *look)
{
    static const char *const kinds[] = {
        [BIDE_BUDGET_TOKENS] = "tokens",
        [BIDE_BUDGET_WINDOW] = "window",
        [BIDE_BUDGET_CONCURRENCY] = "concurrency",
        [BIDE_BUDGET_NONE] = "none",
    };
    bool tokens = look->config.budget.kind == BIDE_BUDGET_TOKENS;
    return json_pack("{s:s, s:o, s:o}", "kind", kinds[look->config.budget.kind], "left", thousandths(look->left_milli),
                     "capacity", thousandths(tokens ? look->config.budget.capacity_milli : INT64_MAX));
}

static json_t *lease_of(const struct budget_look *look)
{
    if (!look->leased)
        return json_null();
    return json_pack("{s:o, s:o}", "funded_for_ms", milliseconds(look->funded_for_ns), "alone_for_ms",
                     milliseconds(look->alone_for_ns));
}

static json_t *breaker_of(const struct budget_look *look)
{
    const struct bide_breaker_view *b = &look->breaker;
    return json_pack("{s:s, s:o, s:i, s:o}", "state", bide_breaker_state_label(b->state), "open_for_ms",
                     milliseconds(look->open_for_ns), "openings", (int)b->openings, "openings_total",
                     count_of(b->openings_total));
}

/* null: not gathered, or too few; a quantile that is null is 3.7 s or longer. */
static json_t *latency_of(const struct budget_look *look)
{
    static const char *const names[BUDGET_QUANTILES] = {"p50", "p95", "p99"};
    if (look->latency_ns[0] == 0)
        return json_null();
    json_t *latency = json_object();
    for (size_t i = 0; i < BUDGET_QUANTILES; i++)
        json_object_set_new(
            latency, names[i],
            look->latency_ns[i] == BIDE_NEVER ? json_null() : json_real((double)look->latency_ns[i] / (double)BIDE_MS));
    return latency;
}

static json_t *refused_of(const struct budget_look *look)
{
    json_t *refused = json_object();
    for (uint32_t i = 0; i < BIDE_GATE_COUNT; i++)
        json_object_set_new(refused, bide_gate_label((enum bide_gate)(1u << i)), count_of(look->refused[i]));
    return refused;
}

static json_t *settings_of(const struct budget_look *look)
{
    json_t *settings = json_object();
    const struct conf_field *field;
    char text[256];
    for (size_t i = 0; (field = budget_differs(look, i, text)) != NULL; i++)
        json_object_set_new(settings, field->key, json_string(text));
    return settings;
}

/* A name need not be UTF-8, and JSON knows nothing else: then it has none here. */
static json_t *text_or_null(const char *text)
{
    json_t *string = text != NULL ? json_string(text) : NULL;
    return string != NULL ? string : json_null();
}

json_t *budget_json(const struct budget_look *look)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s, s:o}", "target", text_or_null(look->name), "file",
                     text_or_null(look->file), "budget", budget_of(look), "lease", lease_of(look), "breaker",
                     breaker_of(look), "quiet_for_ms", milliseconds(look->hold_off_for_ns), "latency_ms",
                     latency_of(look), "refused", refused_of(look), "preset", bide_preset_label(look->preset),
                     "settings", settings_of(look));
}

json_t *budget_row_json(const struct budget_row *row)
{
    if (row->is_open)
        return budget_json(&row->look);
    return json_pack("{s:o, s:s, s:o}", "target", text_or_null(row->name), "problem",
                     bide_shared_reason_label(row->problem.reason), "text", text_or_null(row->problem.text));
}
