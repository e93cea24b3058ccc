/* print_json.c - a snapshot as JSON, with stable names; times in milliseconds, rounded up, as in `bide run --json`.
 *
 * If an object cannot be allocated, the whole tree is NULL: json_pack propagates that. A single member of `refused`,
 * `latency_ms` or `settings` that cannot be allocated is left out. */
#include "list.h"

#include <jansson.h>

static json_t *ms_json(int64_t ns)
{
    return json_integer(ns / BIDE_MS + (ns % BIDE_MS != 0));
}

static json_t *milli_json(int64_t milli)
{
    return milli == INT64_MAX ? json_null() : json_real((double)milli / 1000);
}

/* Many JSON readers have no integers above 2^63. */
static json_t *count_json(uint64_t n)
{
    return n <= INT64_MAX ? json_integer((json_int_t)n) : json_real((double)n);
}

static json_t *level_json(const struct budget_snapshot *snapshot)
{
    static const char *const kinds[] = {
        [BIDE_BUDGET_TOKENS] = "tokens",
        [BIDE_BUDGET_WINDOW] = "window",
        [BIDE_BUDGET_CONCURRENCY] = "concurrency",
        [BIDE_BUDGET_NONE] = "none",
    };
    bool tokens = snapshot->config.budget.kind == BIDE_BUDGET_TOKENS;
    return json_pack("{s:s, s:o, s:o}", "kind", kinds[snapshot->config.budget.kind], "left",
                     milli_json(snapshot->left_milli), "capacity",
                     milli_json(tokens ? snapshot->config.budget.capacity_milli : INT64_MAX));
}

static json_t *lease_json(const struct budget_snapshot *snapshot)
{
    if (!snapshot->leased)
        return json_null();
    return json_pack("{s:o, s:o}", "funded_for_ms", ms_json(snapshot->funded_for_ns), "disconnected_for_ms",
                     ms_json(snapshot->disconnected_for_ns));
}

static json_t *breaker_json(const struct budget_snapshot *snapshot)
{
    const struct bide_breaker_view *b = &snapshot->breaker;
    return json_pack("{s:s, s:o, s:i, s:o}", "state", bide_breaker_state_label(b->state), "open_for_ms",
                     ms_json(snapshot->open_for_ns), "openings", (int)b->openings, "openings_total",
                     count_json(b->openings_total));
}

/* null: not measured, or too few samples. A null quantile is 3.7 s or longer. */
static json_t *latency_json(const struct budget_snapshot *snapshot)
{
    static const char *const names[BUDGET_QUANTILES] = {"p50", "p95", "p99"};
    if (snapshot->latency_ns[0] == 0)
        return json_null();
    json_t *latency = json_object();
    for (size_t i = 0; i < BUDGET_QUANTILES; i++)
        json_object_set_new(latency, names[i],
                            snapshot->latency_ns[i] == BIDE_NEVER
                                ? json_null()
                                : json_real((double)snapshot->latency_ns[i] / (double)BIDE_MS));
    return latency;
}

static json_t *refused_json(const struct budget_snapshot *snapshot)
{
    json_t *refused = json_object();
    for (uint32_t i = 0; i < BIDE_GATE_COUNT; i++)
        json_object_set_new(refused, bide_gate_label((enum bide_gate)(1u << i)), count_json(snapshot->refused[i]));
    return refused;
}

static json_t *settings_json(const struct budget_snapshot *snapshot)
{
    json_t *settings = json_object();
    const struct conf_field *field;
    char text[256];
    for (size_t i = 0; (field = budget_changed_setting(snapshot, i, text)) != NULL; i++)
        json_object_set_new(settings, field->key, json_string(text));
    return settings;
}

/* null for a name that is not UTF-8, which JSON cannot represent. */
static json_t *text_json(const char *text)
{
    json_t *string = text != NULL ? json_string(text) : NULL;
    return string != NULL ? string : json_null();
}

json_t *budget_json(const struct budget_snapshot *snapshot)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s, s:o}", "target", text_json(snapshot->name), "file",
                     text_json(snapshot->file), "budget", level_json(snapshot), "lease", lease_json(snapshot),
                     "breaker", breaker_json(snapshot), "hold_off_ms", ms_json(snapshot->hold_off_for_ns), "latency_ms",
                     latency_json(snapshot), "refused", refused_json(snapshot), "preset",
                     bide_preset_label(snapshot->preset), "settings", settings_json(snapshot));
}

json_t *budget_entry_json(const struct budget_entry *entry)
{
    if (entry->is_open)
        return budget_json(&entry->snapshot);
    return json_pack("{s:o, s:s, s:o}", "target", text_json(entry->name), "problem",
                     bide_shared_reason_label(entry->problem.reason), "text", text_json(entry->problem.text));
}
