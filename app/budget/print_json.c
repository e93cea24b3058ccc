/* print_json.c - a snapshot as JSON, with stable names; times in milliseconds, rounded up, as in `bide run --json`. */
#include "list.h"

static void json_ms(struct text_json *json, const char *name, int64_t ns)
{
    text_json_integer(json, name, ns / BIDE_MS + (ns % BIDE_MS != 0));
}

void budget_json_tokens(struct text_json *json, const char *name, int64_t milli)
{
    char digits[TEXT_VALUE_SIZE];
    text_json_digits(json, name, milli == INT64_MAX ? NULL : text_decimal_format(digits, milli, 1000));
}

/* Many JSON readers have no integers above 2^63. */
static void json_count(struct text_json *json, const char *name, uint64_t count)
{
    if (count <= INT64_MAX)
        text_json_unsigned(json, name, count);
    else
        text_json_real(json, name, (double)count, 6);
}

static void json_level(struct text_json *json, const struct budget_snapshot *snapshot)
{
    static const char *const kinds[] = {
        [BIDE_BUDGET_TOKENS] = "tokens",
        [BIDE_BUDGET_WINDOW] = "window",
        [BIDE_BUDGET_CONCURRENCY] = "concurrency",
        [BIDE_BUDGET_NONE] = "none",
    };
    const struct bide_budget_config *budget = &snapshot->config.budget;
    text_json_object(json, "budget");
    text_json_string(json, "kind", kinds[budget->kind]);
    budget_json_tokens(json, "left", snapshot->left_milli);
    budget_json_tokens(json, "capacity", budget->kind == BIDE_BUDGET_TOKENS ? budget->capacity_milli : INT64_MAX);
    text_json_end(json);
}

static void json_lease(struct text_json *json, const struct budget_snapshot *snapshot)
{
    if (!snapshot->leased) {
        text_json_null(json, "lease");
        return;
    }
    text_json_object(json, "lease");
    json_ms(json, "funded_for_ms", snapshot->funded_for_ns);
    json_ms(json, "disconnected_for_ms", snapshot->disconnected_for_ns);
    text_json_end(json);
}

static void json_breaker(struct text_json *json, const struct budget_snapshot *snapshot)
{
    const struct bide_breaker_view *breaker = &snapshot->breaker;
    text_json_object(json, "breaker");
    text_json_string(json, "state", bide_breaker_state_label(breaker->state));
    json_ms(json, "open_for_ms", snapshot->open_for_ns);
    text_json_unsigned(json, "openings", breaker->openings);
    json_count(json, "openings_total", breaker->openings_total);
    text_json_end(json);
}

/* null: not measured, or too few samples. A null quantile is 3.7 s or longer. */
static void json_latency(struct text_json *json, const struct budget_snapshot *snapshot)
{
    static const char *const names[BUDGET_QUANTILES] = {"p50", "p95", "p99"};
    char digits[TEXT_VALUE_SIZE];
    if (snapshot->latency_ns[0] == 0) {
        text_json_null(json, "latency_ms");
        return;
    }
    text_json_object(json, "latency_ms");
    for (size_t i = 0; i < BUDGET_QUANTILES; i++)
        text_json_digits(json, names[i],
                         snapshot->latency_ns[i] == BIDE_NEVER
                             ? NULL
                             : text_decimal_format(digits, snapshot->latency_ns[i], BIDE_MS));
    text_json_end(json);
}

static void json_refused(struct text_json *json, const struct budget_snapshot *snapshot)
{
    text_json_object(json, "refused");
    for (uint32_t i = 0; i < BIDE_GATE_COUNT; i++)
        json_count(json, bide_gate_label((enum bide_gate)(1u << i)), snapshot->refused[i]);
    text_json_end(json);
}

static void json_settings(struct text_json *json, const struct budget_snapshot *snapshot)
{
    const struct conf_field *field;
    char text[256];
    text_json_object(json, "settings");
    for (size_t i = 0; (field = budget_changed_setting(snapshot, i, text)) != NULL; i++)
        text_json_string(json, field->key, text);
    text_json_end(json);
}

void budget_json_gates(struct text_json *json, const struct budget_snapshot *snapshot)
{
    json_level(json, snapshot);
    json_breaker(json, snapshot);
}

void budget_json(struct text_json *json, const struct budget_snapshot *snapshot)
{
    text_json_string(json, "target", snapshot->name);
    text_json_string(json, "file", snapshot->file);
    json_level(json, snapshot);
    json_lease(json, snapshot);
    json_breaker(json, snapshot);
    json_ms(json, "hold_off_ms", snapshot->hold_off_for_ns);
    json_latency(json, snapshot);
    json_refused(json, snapshot);
    text_json_string(json, "preset", bide_preset_label(snapshot->preset));
    json_settings(json, snapshot);
}

void budget_entry_json(struct text_json *json, const struct budget_entry *entry)
{
    if (entry->is_open) {
        budget_json(json, &entry->snapshot);
        return;
    }
    text_json_string(json, "target", entry->name);
    text_json_string(json, "problem", bide_shared_reason_label((enum bide_shared_reason)entry->problem.reason));
    text_json_string(json, "text", entry->problem.text);
}
