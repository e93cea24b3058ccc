/* fields.c - the keys of `policy`, `target` and `configure` lines, as tables over the public structs.
 *
 * A key is the field's own name without its unit; the value carries the unit instead. A field that is not in a table
 * cannot be set by a story, so a field that is added to a header is added here. */
#include "fields.h"

#include <stdio.h>
#include <string.h>

#include <bide/policy.h>
#include <bide/target.h>

#include "text.h"

enum form {
    FORM_TIME,     /* 200ms, never; int64_t of nanoseconds */
    FORM_COUNT,    /* 3; uint32_t */
    FORM_TOKENS,   /* 0.1, full; uint32_t of thousandths */
    FORM_TIMES,    /* 2x; uint32_t of thousandths */
    FORM_PERMILLE, /* 80%; uint32_t */
    FORM_PPM,      /* 10%; uint32_t */
    FORM_FLAG,     /* the bare key, or yes, or no; bool */
    FORM_GATES,    /* budget,breaker; uint32_t of bits */
    FORM_TRUST,    /* throttled,unavailable; uint32_t of bits */
    FORM_WORD,     /* one of the words; an enum, numbered as the words are */
};

static const char *const form_example[] = {"200ms or never",
                                           "3",
                                           "0.1 or full",
                                           "2x",
                                           "80%",
                                           "10%",
                                           "the bare key, or yes, or no",
                                           "budget,breaker",
                                           "throttled,unavailable",
                                           "one of"};

struct story_field {
    const char *key;
    size_t offset;
    enum form form;
    const char *const *words; /* NULL-terminated */
};

static const char *const backoff_words[] = {"exponential", "linear", "fixed", "none", NULL};
static const char *const jitter_words[] = {"full",         "equal",    "decorrelated", "decorrelated_aws",
                                           "proportional", "additive", "none",         NULL};
static const char *const hint_rule_words[] = {"floor", "exact", "pushback", "clamp", "unheard", NULL};
static const char *const hint_long_words[] = {"give_up", "clamp", "ignore", NULL};
static const char *const hint_step_words[] = {"keep", "advance", "reset", NULL};
static const char *const layer_words[] = {"outermost", "any", "never", NULL};
static const char *const budget_words[] = {"tokens", "window", "concurrency", "none", NULL};
static const char *const on_empty_words[] = {"refuse", "open", NULL};
static const char *const breaker_words[] = {"time_window", "count_window", "consecutive", "off", NULL};

#define P(key, name, form)                                                                                             \
    {                                                                                                                  \
        key, offsetof(struct bide_policy, name), form, NULL                                                            \
    }
#define P_WORD(key, name, words)                                                                                       \
    {                                                                                                                  \
        key, offsetof(struct bide_policy, name), FORM_WORD, words                                                      \
    }
#define T(key, name, form)                                                                                             \
    {                                                                                                                  \
        key, offsetof(struct bide_target_config, name), form, NULL                                                     \
    }
#define T_WORD(key, name, words)                                                                                       \
    {                                                                                                                  \
        key, offsetof(struct bide_target_config, name), FORM_WORD, words                                               \
    }

static const struct story_field policy_field[] = {
    P("struct_size", struct_size, FORM_COUNT),
    P("attempts", attempts_max, FORM_COUNT),
    P_WORD("backoff", backoff, backoff_words),
    P_WORD("jitter", jitter, jitter_words),
    P("base", base_ns, FORM_TIME),
    P("cap", cap_ns, FORM_TIME),
    P("floor", floor_ns, FORM_TIME),
    P("throttled_base", throttled_base_ns, FORM_TIME),
    P("jitter_add", jitter_add_ns, FORM_TIME),
    P("multiplier", multiplier_milli, FORM_TIMES),
    P("jitter_lo", jitter_lo_permille, FORM_PERMILLE),
    P("jitter_hi", jitter_hi_permille, FORM_PERMILLE),
    P("hedges_max", hedges_max, FORM_COUNT),
    P("hedge_delay", hedge_delay_ns, FORM_TIME),
    P("hedge_quantile", hedge_quantile_permille, FORM_PERMILLE),
    P_WORD("layer", layer, layer_words),
    P("attempt_timeout", attempt_timeout_ns, FORM_TIME),
    P("connect_timeout", connect_timeout_ns, FORM_TIME),
    P("deadline", deadline_ns, FORM_TIME),
    P_WORD("hint_rule", hint_rule, hint_rule_words),
    P_WORD("hint_long", hint_long, hint_long_words),
    P_WORD("hint_step", hint_step, hint_step_words),
    P("hint_jitter", hint_jitter_permille, FORM_PERMILLE),
    P("hint_max", hint_max_ns, FORM_TIME),
    P("hint_over", hint_over_ns, FORM_TIME),
    P("observe", observe, FORM_GATES),
    P("require_key", require_key, FORM_FLAG),
    P("conflict_at_once", conflict_at_once, FORM_FLAG),
    P("throttled_needs_hint", throttled_needs_hint, FORM_FLAG),
    P("jitter_past_cap", jitter_past_cap, FORM_FLAG),
    P("long_poll", long_poll, FORM_FLAG),
};

static const struct story_field target_field[] = {
    T("observe", observe, FORM_GATES),
    T("trust", trust, FORM_TRUST),
    T("in_flight_max", in_flight_max, FORM_COUNT),
    T("key_retries", key_retries, FORM_COUNT),
    T("throttle_k", throttle_k_milli, FORM_TIMES),
    T("throttle_max", throttle_max_permille, FORM_PERMILLE),
    T("throttle_min_volume", throttle_min_volume, FORM_COUNT),
    T("throttle_window", throttle_window_ns, FORM_TIME),
    T("key_interval", key_interval_ns, FORM_TIME),
    T("quiet_max", quiet_max_ns, FORM_TIME),
    T("quiet_first", quiet_first, FORM_FLAG),
    T("latency", latency, FORM_FLAG),
    T_WORD("budget.kind", budget.kind, budget_words),
    T_WORD("budget.on_empty", budget.on_empty, on_empty_words),
    T("budget.capacity", budget.capacity_milli, FORM_TOKENS),
    T("budget.initial", budget.initial_milli, FORM_TOKENS),
    T("budget.cost", budget.cost_milli, FORM_TOKENS),
    T("budget.cost_throttled", budget.cost_throttled_milli, FORM_TOKENS),
    T("budget.cost_timeout", budget.cost_timeout_milli, FORM_TOKENS),
    T("budget.cost_failure", budget.cost_failure_milli, FORM_TOKENS),
    T("budget.threshold", budget.threshold_milli, FORM_TOKENS),
    T("budget.earn_success", budget.earn_success_milli, FORM_TOKENS),
    T("budget.earn_first", budget.earn_first_milli, FORM_TOKENS),
    T("budget.earn_per_minute", budget.earn_per_minute_milli, FORM_TOKENS),
    T("budget.refund", budget.refund_permille, FORM_PERMILLE),
    T("budget.ratio", budget.ratio_ppm, FORM_PPM),
    T("budget.reserve", budget.reserve, FORM_COUNT),
    T("budget.min_volume", budget.min_volume, FORM_COUNT),
    T("budget.window", budget.window_ns, FORM_TIME),
    T("budget.cooldown", budget.cooldown_ns, FORM_TIME),
    T_WORD("breaker.kind", breaker.kind, breaker_words),
    T("breaker.consecutive", breaker.consecutive, FORM_COUNT),
    T("breaker.ratio", breaker.ratio_permille, FORM_PERMILLE),
    T("breaker.min_volume", breaker.min_volume, FORM_COUNT),
    T("breaker.count_window", breaker.count_window, FORM_COUNT),
    T("breaker.open_growth", breaker.open_growth_milli, FORM_TIMES),
    T("breaker.open_jitter", breaker.open_jitter_permille, FORM_PERMILLE),
    T("breaker.probes", breaker.probes, FORM_COUNT),
    T("breaker.window", breaker.window_ns, FORM_TIME),
    T("breaker.slow", breaker.slow_ns, FORM_TIME),
    T("breaker.open", breaker.open_ns, FORM_TIME),
    T("breaker.open_max", breaker.open_max_ns, FORM_TIME),
    T("breaker.probe_lease", breaker.probe_lease_ns, FORM_TIME),
    T("breaker.ramp", breaker.ramp_ns, FORM_TIME),
};

const struct story_fields story_policy_fields = {"policy", policy_field, sizeof policy_field / sizeof *policy_field};
const struct story_fields story_target_fields = {"target", target_field, sizeof target_field / sizeof *target_field};

/* Reads a comma-separated list; `bit` gives the bit of one name, or 0. */
static bool bits_of(const char *text, uint32_t (*bit)(const char *, size_t), uint32_t *bits)
{
    *bits = 0;
    if (strcmp(text, "none") == 0)
        return true;
    for (;;) {
        size_t length = strcspn(text, ",");
        uint32_t one = bit(text, length);
        if (one == 0)
            return false;
        *bits |= one;
        if (text[length] == '\0')
            return true;
        text += length + 1;
    }
}

static uint32_t gate_bit(const char *name, size_t length)
{
    for (uint32_t i = 0; i < BIDE_GATE_COUNT; i++) {
        const char *label = bide_gate_label((enum bide_gate)(1u << i));
        if (strlen(label) == length && memcmp(label, name, length) == 0)
            return 1u << i;
    }
    return 0;
}

static uint32_t trust_bit(const char *name, size_t length)
{
    if (length == 9 && memcmp(name, "throttled", length) == 0)
        return BIDE_TRUST_THROTTLED;
    if (length == 11 && memcmp(name, "unavailable", length) == 0)
        return BIDE_TRUST_UNAVAILABLE;
    return 0;
}

bool story_gates(const char *text, uint32_t *bits)
{
    return bits_of(text, gate_bit, bits);
}

void story_print_gates(char *text, size_t size, uint32_t bits)
{
    size_t used = 0;
    snprintf(text, size, "none");
    for (uint32_t i = 0; i < BIDE_GATE_COUNT && used < size; i++)
        if ((bits >> i & 1u) != 0)
            used += (size_t)snprintf(text + used, size - used, "%s%s", used > 0 ? "," : "",
                                     bide_gate_label((enum bide_gate)(1u << i)));
}

/* A number with a one-letter unit behind it, or without one when `unit` is 0, into a uint32_t. */
static bool number(const char *text, char unit, int64_t scale, uint32_t *into)
{
    size_t length = strlen(text);
    int64_t value;
    if (unit != 0 && (length == 0 || text[--length] != unit))
        return false;
    if (!story_decimal(text, length, scale, &value) || value > UINT32_MAX)
        return false;
    *into = (uint32_t)value;
    return true;
}

static bool flag(const char *text, bool *into)
{
    *into = strcmp(text, "no") != 0;
    return text[0] == '\0' || strcmp(text, "yes") == 0 || strcmp(text, "no") == 0;
}

static bool word_of(const char *const *words, const char *text, void *into)
{
    for (int i = 0; words[i] != NULL; i++) {
        if (strcmp(words[i], text) == 0) {
            memcpy(into, &i, sizeof i); /* an enum of the public headers: as wide as an int */
            return true;
        }
    }
    return false;
}

static bool tokens(const char *text, uint32_t *into)
{
    if (strcmp(text, "full") != 0)
        return number(text, 0, 1000, into);
    *into = BIDE_FULL;
    return true;
}

static bool assign(const struct story_field *field, char *object, const char *value)
{
    void *into = object + field->offset;
    switch (field->form) {
    case FORM_TIME: return story_duration(value, strlen(value), into);
    case FORM_COUNT: return number(value, 0, 1, into);
    case FORM_TOKENS: return tokens(value, into);
    case FORM_TIMES: return number(value, 'x', 1000, into);
    case FORM_PERMILLE: return number(value, '%', 10, into);
    case FORM_PPM: return number(value, '%', 10000, into);
    case FORM_FLAG: return flag(value, into);
    case FORM_GATES: return story_gates(value, into);
    case FORM_TRUST: return bits_of(value, trust_bit, into);
    case FORM_WORD: return word_of(field->words, value, into);
    }
    return false;
}

static const struct story_field *find(const struct story_fields *fields, const char *key, size_t length)
{
    for (size_t i = 0; i < fields->count; i++)
        if (strlen(fields->field[i].key) == length && memcmp(fields->field[i].key, key, length) == 0)
            return &fields->field[i];
    return NULL;
}

static void say_keys(const struct story_fields *fields, const char *word, char *why, size_t size)
{
    size_t used = (size_t)snprintf(why, size, "unknown %s key in '%s'; the keys are", fields->of, word);
    for (size_t i = 0; i < fields->count && used < size; i++)
        used += (size_t)snprintf(why + used, size - used, " %s", fields->field[i].key);
}

static void say_form(const struct story_field *field, const char *word, char *why, size_t size)
{
    size_t used = (size_t)snprintf(why, size, "bad value in '%s'; want %s", word, form_example[field->form]);
    for (int i = 0; field->words != NULL && field->words[i] != NULL && used < size; i++)
        used += (size_t)snprintf(why + used, size - used, " %s", field->words[i]);
}

bool story_assign(const struct story_fields *fields, void *object, const char *word, char *why, size_t size)
{
    size_t length = strcspn(word, "=");
    const struct story_field *field = find(fields, word, length);
    if (field == NULL) {
        say_keys(fields, word, why, size);
        return false;
    }
    if (!assign(field, object, word[length] == '=' ? word + length + 1 : "")) {
        say_form(field, word, why, size);
        return false;
    }
    return true;
}
