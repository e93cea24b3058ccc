/* policy.c - the presets in one table, and the checks of a policy and of a target configuration.
 *
 * A preset is a row with the values that differ between presets; hint rules, budgets and breakers that several presets
 * share have names. Every default of bide is written here and nowhere else; documentation and `--help` are generated
 * from these rows.
 *
 * Checks are rows too: a field, its range, and the text that says which values are valid. A few rules relate two
 * fields. Nothing is corrected silently: the first invalid field is reported. */
#include <bide/policy.h>
#include <bide/target.h>

#include "clamp.h"
#include "event.h"
#include "label.h"
#include "problem.h"
#include "saturate.h"
#include "text.h"

#define MS BIDE_MS
#define S  BIDE_S

/* ---- presets ---- */

struct preset_hints {
    enum bide_hint_rule rule;
    enum bide_hint_long too_long;
    enum bide_hint_step step;
    uint32_t jitter_permille;
    int64_t max_ns;
    int64_t over_ns;
};

static const struct preset_hints default_hints = {
    BIDE_HINT_RULE_FLOOR, BIDE_HINT_LONG_GIVE_UP, BIDE_HINT_STEP_KEEP, 100, 300 * S, 0};
static const struct preset_hints aws_2_0_hints = {
    BIDE_HINT_RULE_EXACT, BIDE_HINT_LONG_CLAMP, BIDE_HINT_STEP_ADVANCE, 0, 20 * S, 0};
static const struct preset_hints aws_2_1_hints = {
    BIDE_HINT_RULE_CLAMP, BIDE_HINT_LONG_GIVE_UP, BIDE_HINT_STEP_ADVANCE, 0, BIDE_NEVER, 5 * S};
static const struct preset_hints grpc_hints = {
    BIDE_HINT_RULE_PUSHBACK, BIDE_HINT_LONG_GIVE_UP, BIDE_HINT_STEP_RESET, 0, BIDE_NEVER, 0};
static const struct preset_hints envoy_hints = {
    BIDE_HINT_RULE_FLOOR, BIDE_HINT_LONG_IGNORE, BIDE_HINT_STEP_KEEP, 500, 300 * S, 0};
static const struct preset_hints curl_hints = {
    BIDE_HINT_RULE_EXACT, BIDE_HINT_LONG_CLAMP, BIDE_HINT_STEP_KEEP, 0, 21600 * S, 0};

/* Ten retries in reserve, a tenth of a retry earned by each success, one per minute refilled. A budget that first
 * attempts fund cannot let an overloaded server recover, and a generous refill per process adds up to a retry storm
 * across a fleet. */
static const struct bide_budget_config default_budget = {.kind = BIDE_BUDGET_TOKENS,
                                                         .capacity_milli = 10000,
                                                         .initial_milli = BIDE_FULL,
                                                         .cost_milli = 1000,
                                                         .cost_throttled_milli = 1000,
                                                         .cost_timeout_milli = 1000,
                                                         .earn_success_milli = 100,
                                                         .refill_per_minute_milli = 1000,
                                                         .window_ns = 10 * S};

static const struct bide_budget_config aws_bucket_2_0 = {.kind = BIDE_BUDGET_TOKENS,
                                                         .capacity_milli = 500000,
                                                         .initial_milli = BIDE_FULL,
                                                         .cost_milli = 5000,
                                                         .cost_throttled_milli = 5000,
                                                         .cost_timeout_milli = 10000,
                                                         .earn_success_milli = 1000,
                                                         .refund_permille = 1000,
                                                         .window_ns = 10 * S};

static const struct bide_budget_config aws_bucket_2_1 = {.kind = BIDE_BUDGET_TOKENS,
                                                         .capacity_milli = 500000,
                                                         .initial_milli = BIDE_FULL,
                                                         .cost_milli = 14000,
                                                         .cost_throttled_milli = 5000,
                                                         .cost_timeout_milli = 14000,
                                                         .earn_success_milli = 1000,
                                                         .refund_permille = 1000,
                                                         .window_ns = 10 * S};

static const struct bide_budget_config grpc_throttling = {.kind = BIDE_BUDGET_TOKENS,
                                                          .capacity_milli = 10000,
                                                          .initial_milli = BIDE_FULL,
                                                          .cost_failure_milli = 1000,
                                                          .threshold_milli = 5000,
                                                          .earn_success_milli = 100,
                                                          .window_ns = 10 * S};

static const struct bide_budget_config envoy_budget = {
    .kind = BIDE_BUDGET_CONCURRENCY, .ratio_ppm = 200000, .reserve = 3, .window_ns = 10 * S};

/* 20 % over 10 s, and 10 retries a second on top. */
static const struct bide_budget_config finagle_budget = {
    .kind = BIDE_BUDGET_WINDOW, .ratio_ppm = 200000, .reserve = 100, .window_ns = 10 * S};

static const struct bide_budget_config sre_ratio = {
    .kind = BIDE_BUDGET_WINDOW, .ratio_ppm = 100000, .min_volume = 10, .window_ns = 120 * S};

static const struct bide_budget_config no_budget = {.kind = BIDE_BUDGET_NONE, .window_ns = 10 * S};

/* Opens for a short time, 15 s at most, and then probes: calls refused after the server has recovered are lost for no
 * benefit, and a probe is a single request. Measured: docs/decisions/0023-a-breaker-that-probes-sooner.md. */
static const struct bide_breaker_config default_breaker = {.kind = BIDE_BREAKER_BY_TIME,
                                                           .consecutive = 5,
                                                           .ratio_permille = 500,
                                                           .min_volume = 20,
                                                           .count_window = 100,
                                                           .open_growth_milli = 2000,
                                                           .open_jitter_permille = 500,
                                                           .probes = 1,
                                                           .window_ns = 10 * S,
                                                           .slow_ns = BIDE_NEVER,
                                                           .open_ns = 1 * S,
                                                           .open_max_ns = 10 * S,
                                                           .probe_timeout_ns = 10 * S,
                                                           .ramp_ns = 2 * S};

struct preset_row {
    uint32_t attempts;
    enum bide_jitter jitter;
    int64_t base_ns, cap_ns;
    int64_t attempt_ns, connect_ns, call_ns;
    const struct preset_hints *hints;
    const struct bide_budget_config *budget;
    bool breaker;
    bool require_key;
    bool foreign; /* of another system, which knows neither layers, nor conflicts, nor a hold-off shared by all calls,
                   * nor a last wait */
};

#define NEVER BIDE_NEVER
static const struct preset_row preset_rows[BIDE_PRESET_COUNT] = {
    /* attempts, jitter, base, cap, attempt, connect, call, hints, budget, breaker, require_key, foreign */
    [BIDE_PRESET_SERVICE] = {4, BIDE_JITTER_FULL, 200 * MS, 30 * S, 10 * S, 3 * S, 60 * S, &default_hints,
                             &default_budget, true, false, false},
    [BIDE_PRESET_INTERACTIVE] = {3, BIDE_JITTER_FULL, 100 * MS, 2 * S, 2 * S, 500 * MS, 5 * S, &default_hints,
                                 &default_budget, true, false, false},
    [BIDE_PRESET_EXTERNAL] = {4, BIDE_JITTER_FULL, 1 * S, 60 * S, 30 * S, 5 * S, 180 * S, &default_hints,
                              &default_budget, true, false, false},
    [BIDE_PRESET_BACKGROUND] = {6, BIDE_JITTER_DECORRELATED, 1 * S, 120 * S, 60 * S, 5 * S, 900 * S, &default_hints,
                                &default_budget, true, false, false},
    [BIDE_PRESET_SERVERLESS] = {3, BIDE_JITTER_FULL, 100 * MS, 1 * S, 3 * S, 1 * S, 10 * S, &default_hints,
                                &default_budget, true, false, false},
    [BIDE_PRESET_PAYMENT] = {3, BIDE_JITTER_FULL, 100 * MS, 2 * S, 5 * S, 1 * S, 15 * S, &default_hints,
                             &default_budget, true, true, false},
    /* A process that makes a single call: its own budget and breaker would know no more than its attempts do. */
    [BIDE_PRESET_COMMAND] = {4, BIDE_JITTER_FULL, 200 * MS, 30 * S, NEVER, NEVER, NEVER, &default_hints, &no_budget,
                             false, false, false},
    /* As service, but a transfer may take any time: without a deadline only waits_max_ns limits the waits for hints. */
    [BIDE_PRESET_TRANSFER] = {4, BIDE_JITTER_FULL, 200 * MS, 30 * S, NEVER, 3 * S, NEVER, &default_hints,
                              &default_budget, true, false, false},
    [BIDE_PRESET_AWS_2_0] = {3, BIDE_JITTER_FULL, 1 * S, 20 * S, 60 * S, 60 * S, NEVER, &aws_2_0_hints, &aws_bucket_2_0,
                             false, false, true},
    [BIDE_PRESET_AWS_2_1] = {3, BIDE_JITTER_FULL, 50 * MS, 20 * S, 60 * S, 60 * S, NEVER, &aws_2_1_hints,
                             &aws_bucket_2_1, false, false, true},
    [BIDE_PRESET_GRPC] = {4, BIDE_JITTER_PROPORTIONAL, 100 * MS, 1 * S, NEVER, 20 * S, NEVER, &grpc_hints,
                          &grpc_throttling, false, false, true},
    [BIDE_PRESET_ENVOY] = {2, BIDE_JITTER_FULL, 25 * MS, 250 * MS, NEVER, 5 * S, 15 * S, &envoy_hints, &envoy_budget,
                           false, false, true},
    [BIDE_PRESET_CURL] = {4, BIDE_JITTER_NONE, 1 * S, 600 * S, NEVER, 300 * S, NEVER, &curl_hints, &no_budget, false,
                          false, true},
    [BIDE_PRESET_FINAGLE] = {4, BIDE_JITTER_FULL, 200 * MS, 30 * S, 10 * S, 3 * S, 60 * S, &default_hints,
                             &finagle_budget, false, false, true},
    [BIDE_PRESET_SRE] = {3, BIDE_JITTER_FULL, 200 * MS, 30 * S, 10 * S, 3 * S, 60 * S, &default_hints, &sre_ratio,
                         false, false, true},
};

/* The preset `service`, as a constant for calls without a policy. The other presets start from it. */
const struct bide_policy core_policy_default = {
    .attempts_max = 4,
    .backoff = BIDE_BACKOFF_EXPONENTIAL,
    .jitter = BIDE_JITTER_FULL,
    .base_ns = 200 * MS,
    .cap_ns = 30 * S,
    .multiplier_milli = 2000,
    .jitter_hi_permille = 1000,
    .hedge_delay_ns = 1 * S,
    .layer = BIDE_LAYER_OUTERMOST,
    .attempt_timeout_ns = 10 * S,
    .connect_timeout_ns = 3 * S,
    .call_timeout_ns = 60 * S,
    .waits_max_ns = BIDE_NEVER,
    .hint_jitter_permille = 100,
    .hint_max_ns = 300 * S,
    .conflict_at_once = true,
    .last_wait = true,
};

static void policy_set_hints(struct bide_policy *p, const struct preset_hints *h)
{
    p->hint_rule = h->rule;
    p->hint_long = h->too_long;
    p->hint_step = h->step;
    p->hint_jitter_permille = h->jitter_permille;
    p->hint_max_ns = h->max_ns;
    p->hint_over_ns = h->over_ns;
}

static void preset_fill_policy(struct bide_policy *p, enum bide_preset preset)
{
    const struct preset_row *r = &preset_rows[preset];
    *p = core_policy_default;
    p->attempts_max = r->attempts;
    p->jitter = r->jitter;
    p->base_ns = r->base_ns;
    p->cap_ns = r->cap_ns;
    p->attempt_timeout_ns = r->attempt_ns;
    p->connect_timeout_ns = r->connect_ns;
    p->call_timeout_ns = r->call_ns;
    p->require_key = r->require_key;
    policy_set_hints(p, r->hints);
    if (r->foreign) {
        p->layer = BIDE_LAYER_ANY;
        p->last_wait = p->conflict_at_once = false;
    }
    if (preset == BIDE_PRESET_TRANSFER)
        p->waits_max_ns = 60 * S;
    if (preset == BIDE_PRESET_AWS_2_1)
        p->throttled_base_ns = 1 * S;
    if (preset == BIDE_PRESET_GRPC) {
        p->jitter_lo_permille = 800;
        p->jitter_hi_permille = 1200;
        p->jitter_past_cap = true;
    }
}

static void preset_fill_config(struct bide_target_config *c, enum bide_preset preset)
{
    const struct preset_row *r = &preset_rows[preset];
    *c = (struct bide_target_config){
        .key_interval_ns = 30 * S,
        .throttle_max_permille = 900,
        .throttle_min_volume = 10,
        .throttle_window_ns = 120 * S,
        .hold_off_max_ns = r->foreign ? 0 : 300 * S,
        .budget = *r->budget,
        .breaker = default_breaker,
    };
    c->breaker.probe_timeout_ns = core_min(r->attempt_ns, 60 * S);
    if (!r->breaker)
        c->breaker.kind = BIDE_BREAKER_OFF;
}

static const char *const preset_labels[] = {BIDE_PRESET_LIST(CORE_LIST_LABEL)};
static const char *const preset_purposes[] = {BIDE_PRESET_LIST(CORE_LIST_TEXT)};

const char *bide_preset_label(enum bide_preset preset)
{
    return CORE_LABEL(preset_labels, preset);
}

const char *bide_preset_purpose(enum bide_preset preset)
{
    return CORE_LABEL(preset_purposes, preset);
}

enum bide_preset bide_preset_by_name(const char *name, size_t length)
{
    unsigned i = 0;
    while (i < BIDE_PRESET_COUNT && !core_text_equals((struct bide_text){name, length}, preset_labels[i]))
        i++;
    return (enum bide_preset)i;
}

enum bide_err bide_policy_init(struct bide_policy *policy, enum bide_preset preset)
{
    if ((unsigned)preset >= BIDE_PRESET_COUNT)
        return BIDE_ERR_INVALID;
    preset_fill_policy(policy, preset);
    return BIDE_OK;
}

enum bide_err bide_target_config_init(struct bide_target_config *config, enum bide_preset preset)
{
    if ((unsigned)preset >= BIDE_PRESET_COUNT)
        return BIDE_ERR_INVALID;
    preset_fill_config(config, preset);
    return BIDE_OK;
}

/* ---- checks ---- */

enum width { NARROW, WIDE, WIDE_OR_NEVER };

struct range {
    const char *field;
    const char *want;
    size_t offset;
    enum width width;
    int64_t least, most;
};

#define DURATION   1, BIDE_DURATION_MAX
#define DURATION_0 0, BIDE_DURATION_MAX
#define WANT_1     "more than 0, at most about 31 years"
#define WANT_0     "0 or more, at most about 31 years"
#define WANT_SLOTS "10 ns or more, at most about 31 years"
#define WANT_NEVER "more than 0, at most about 31 years, or BIDE_NEVER for none"

#define P(field)                       #field, offsetof(struct bide_policy, field)
#define AS_ROW(pair, width, want, ...) AS_ROW_(pair, width, want, __VA_ARGS__)
#define AS_ROW_(name, offset, width, want, ...)                                                                        \
    {                                                                                                                  \
        name, want, offset, width, __VA_ARGS__                                                                         \
    }

static const struct range policy_ranges[] = {
    AS_ROW(P(attempts_max), NARROW, "1 or more (1 means no retry)", 1, UINT32_MAX),
    AS_ROW(P(backoff), NARROW, "0 (exponential) to 3 (none)", 0, BIDE_BACKOFF_NONE),
    AS_ROW(P(jitter), NARROW, "0 (full) to 6 (none)", 0, BIDE_JITTER_NONE),
    AS_ROW(P(base_ns), WIDE, WANT_1, DURATION),
    AS_ROW(P(cap_ns), WIDE, WANT_1, DURATION),
    AS_ROW(P(floor_ns), WIDE, WANT_0, DURATION_0),
    AS_ROW(P(throttled_base_ns), WIDE, "0 (as base_ns) or more, at most about 31 years", DURATION_0),
    AS_ROW(P(jitter_add_ns), WIDE, WANT_0, DURATION_0),
    AS_ROW(P(multiplier_milli), NARROW, "1001 to 1000000 (2000 doubles; for a constant wait use BIDE_BACKOFF_FIXED)",
           1001, 1000000),
    AS_ROW(P(jitter_lo_permille), NARROW, "0 to 10000", 0, 10000),
    AS_ROW(P(jitter_hi_permille), NARROW, "1 to 10000", 1, 10000),
    AS_ROW(P(hedges_max), NARROW, "0 to 3 (0: no hedging)", 0, BIDE_HEDGES_MAX),
    AS_ROW(P(hedge_delay_ns), WIDE, WANT_0, DURATION_0),
    AS_ROW(P(hedge_quantile_permille), NARROW, "0 (use hedge_delay_ns only) to 999", 0, 999),
    AS_ROW(P(layer), NARROW, "0 (outermost) to 2 (never)", 0, BIDE_LAYER_NEVER),
    AS_ROW(P(attempt_timeout_ns), WIDE_OR_NEVER, WANT_NEVER, DURATION),
    AS_ROW(P(connect_timeout_ns), WIDE_OR_NEVER, WANT_NEVER, DURATION),
    AS_ROW(P(call_timeout_ns), WIDE_OR_NEVER, WANT_NEVER, DURATION),
    AS_ROW(P(waits_max_ns), WIDE_OR_NEVER, WANT_NEVER, DURATION),
    AS_ROW(P(attempt_min_ns), WIDE, "0 (as connect_timeout_ns) or more, at most about 31 years", DURATION_0),
    AS_ROW(P(when_refused), NARROW, "0 (give up) or 1 (wait)", 0, BIDE_WHEN_REFUSED_WAIT),
    AS_ROW(P(hint_rule), NARROW, "0 (floor) to 4 (ignore)", 0, BIDE_HINT_RULE_IGNORE),
    AS_ROW(P(hint_long), NARROW, "0 (give up) to 2 (ignore)", 0, BIDE_HINT_LONG_IGNORE),
    AS_ROW(P(hint_step), NARROW, "0 (keep) to 2 (reset)", 0, BIDE_HINT_STEP_RESET),
    AS_ROW(P(hint_jitter_permille), NARROW, "0 to 10000", 0, 10000),
    AS_ROW(P(hint_max_ns), WIDE_OR_NEVER, WANT_NEVER, DURATION),
    AS_ROW(P(hint_over_ns), WIDE, WANT_0, DURATION_0),
    AS_ROW(P(observe), NARROW, "a combination of BIDE_POLICY_GATES bits", 0, BIDE_POLICY_GATES),
};
#undef P

#define T(field) #field, offsetof(struct bide_target_config, field)

static const struct range config_ranges[] = {
    AS_ROW(T(trust), NARROW, "a combination of enum bide_trust bits", 0, 3),
    AS_ROW(T(key_retries), NARROW, "0 (no limit) to 255", 0, CORE_KEY_RETRIES_MAX),
    AS_ROW(T(throttle_k_milli), NARROW, "0 (off), or 1001 to 1000000 (2000 in the SRE book)", 0, CORE_THROTTLE_K_MAX),
    AS_ROW(T(throttle_max_permille), NARROW, "1 to 1000", 1, 1000),
    AS_ROW(T(throttle_window_ns), WIDE, WANT_SLOTS, CORE_WINDOW_MIN_NS, BIDE_DURATION_MAX),
    AS_ROW(T(key_interval_ns), WIDE, WANT_1, DURATION),
    AS_ROW(T(hold_off_max_ns), WIDE, "0 (hints are not shared) or more, at most about 31 years", DURATION_0),
    AS_ROW(T(budget.kind), NARROW, "0 (tokens) to 3 (none)", 0, BIDE_BUDGET_NONE),
    AS_ROW(T(budget.on_empty), NARROW, "0 (refuse) or 1 (open)", 0, BIDE_ON_EMPTY_OPEN),
    AS_ROW(T(budget.capacity_milli), NARROW, "0 (no retry ever) to 268435455", 0, BIDE_CAPACITY_MAX_MILLI),
    AS_ROW(T(budget.cost_milli), NARROW, "0 to 268435455", 0, BIDE_CAPACITY_MAX_MILLI),
    AS_ROW(T(budget.cost_throttled_milli), NARROW, "0 to 268435455", 0, BIDE_CAPACITY_MAX_MILLI),
    AS_ROW(T(budget.cost_timeout_milli), NARROW, "0 to 268435455", 0, BIDE_CAPACITY_MAX_MILLI),
    AS_ROW(T(budget.cost_failure_milli), NARROW, "0 to 268435455", 0, BIDE_CAPACITY_MAX_MILLI),
    AS_ROW(T(budget.threshold_milli), NARROW, "0 to 268435455", 0, BIDE_CAPACITY_MAX_MILLI),
    AS_ROW(T(budget.earn_success_milli), NARROW, "0 to 268435455", 0, BIDE_CAPACITY_MAX_MILLI),
    AS_ROW(T(budget.earn_first_milli), NARROW, "0 to 268435455", 0, BIDE_CAPACITY_MAX_MILLI),
    AS_ROW(T(budget.refill_per_minute_milli), NARROW, "0 to 100000000", 0, CORE_REFILL_MAX_MILLI),
    AS_ROW(T(budget.refund_permille), NARROW, "0 to 1000", 0, 1000),
    AS_ROW(T(budget.ratio_ppm), NARROW, "0 to 1000000 (one retry for each request)", 0, CORE_RATIO_MAX_PPM),
    AS_ROW(T(budget.window_ns), WIDE, WANT_SLOTS, CORE_WINDOW_MIN_NS, BIDE_DURATION_MAX),
    AS_ROW(T(budget.cooldown_ns), WIDE, WANT_0, DURATION_0),
    AS_ROW(T(breaker.kind), NARROW, "0 (time window) to 3 (off)", 0, BIDE_BREAKER_OFF),
    AS_ROW(T(breaker.consecutive), NARROW, "1 or more", 1, UINT32_MAX),
    AS_ROW(T(breaker.ratio_permille), NARROW, "1 to 1000", 1, 1000),
    AS_ROW(T(breaker.min_volume), NARROW, "1 or more", 1, UINT32_MAX),
    AS_ROW(T(breaker.count_window), NARROW, "1 to 256 (for more, use a time window)", 1, BIDE_COUNT_WINDOW_MAX),
    AS_ROW(T(breaker.open_growth_milli), NARROW, "1000 (constant) to 100000", CORE_OPEN_GROWTH_MIN,
           CORE_OPEN_GROWTH_MAX),
    AS_ROW(T(breaker.open_jitter_permille), NARROW, "0 to 900", 0, CORE_OPEN_JITTER_MAX),
    AS_ROW(T(breaker.probes), NARROW, "1 to 8", 1, BIDE_PROBES_MAX),
    AS_ROW(T(breaker.window_ns), WIDE, WANT_SLOTS, CORE_WINDOW_MIN_NS, BIDE_DURATION_MAX),
    AS_ROW(T(breaker.slow_ns), WIDE_OR_NEVER, WANT_NEVER, DURATION),
    AS_ROW(T(breaker.open_ns), WIDE, WANT_1, DURATION),
    AS_ROW(T(breaker.open_max_ns), WIDE, WANT_1, DURATION),
    AS_ROW(T(breaker.probe_timeout_ns), WIDE, WANT_1, DURATION),
    AS_ROW(T(breaker.ramp_ns), WIDE, WANT_0, DURATION_0),
};
#undef T

static int64_t range_field_value(const void *base, const struct range *r)
{
    const unsigned char *at = (const unsigned char *)base + r->offset;
    return r->width == NARROW ? *(const uint32_t *)(const void *)at : *(const int64_t *)(const void *)at;
}

static enum bide_err check_ranges(const void *base, const struct range *r, size_t count, struct bide_problem *problem)
{
    for (const struct range *end = r + count; r < end; r++) {
        int64_t value = range_field_value(base, r);
        if (r->width == WIDE_OR_NEVER && value == BIDE_NEVER)
            continue;
        if (value < r->least || value > r->most)
            return core_problem_set(problem, r->field, value, r->want);
    }
    return BIDE_OK;
}

/* A rule that relates two fields; `field` is the field to change if it is broken. */
struct relation {
    bool broken;
    const char *field;
    int64_t value;
    const char *want;
};

static enum bide_err check_relations(const struct relation *r, size_t count, struct bide_problem *problem)
{
    for (const struct relation *end = r + count; r < end; r++)
        if (r->broken)
            return core_problem_set(problem, r->field, r->value, r->want);
    return BIDE_OK;
}

#define COUNT(table) (sizeof(table) / sizeof *(table))

/* Reads bytes: a flag that a newer program has set may hold any byte. */
static bool any_byte_set(const void *bytes, size_t size)
{
    const unsigned char *byte = bytes;
    while (size > 0 && byte[size - 1] == 0)
        size--;
    return size > 0;
}

#define IS_RESERVED_USED(object)                                                                                       \
    (any_byte_set((object)->reserved_flags_, sizeof(object)->reserved_flags_) ||                                       \
     any_byte_set((object)->reserved_, sizeof(object)->reserved_))

static enum bide_err check_policy_relations(const struct bide_policy *p, struct bide_problem *problem)
{
    bool additive = p->jitter == BIDE_JITTER_ADDITIVE, proportional = p->jitter == BIDE_JITTER_PROPORTIONAL;
    const struct relation relations[] = {
        {p->cap_ns < p->base_ns, "cap_ns", p->cap_ns, "base_ns or more"},
        {p->throttled_base_ns > p->cap_ns, "throttled_base_ns", p->throttled_base_ns, "cap_ns or less"},
        {p->floor_ns > p->base_ns, "floor_ns", p->floor_ns, "base_ns or less"},
        {p->throttled_base_ns > 0 && p->throttled_base_ns < p->floor_ns, "throttled_base_ns", p->throttled_base_ns,
         "0 (as base_ns), or floor_ns or more"},
        {proportional && p->jitter_lo_permille > p->jitter_hi_permille, "jitter_lo_permille", p->jitter_lo_permille,
         "jitter_hi_permille or less"},
        {proportional && p->jitter_hi_permille > 1000 && !p->jitter_past_cap, "jitter_hi_permille",
         p->jitter_hi_permille, "1000 or less (or set jitter_past_cap)"},
        {additive && p->jitter_add_ns == 0, "jitter_add_ns", 0, "more than 0 with additive jitter"},
        {additive && p->jitter_add_ns > p->cap_ns, "jitter_add_ns", p->jitter_add_ns, "cap_ns or less"},
        {p->hedges_max >= p->attempts_max, "hedges_max", p->hedges_max,
         "less than attempts_max: a hedge is an attempt too"},
        {IS_RESERVED_USED(p), "reserved_", 1, CORE_WANT_RESERVED},
    };
    return check_relations(relations, COUNT(relations), problem);
}

enum bide_err bide_policy_check(const struct bide_policy *policy, struct bide_problem *problem)
{
    enum bide_err err = check_ranges(policy, policy_ranges, COUNT(policy_ranges), problem);
    return err != BIDE_OK ? err : check_policy_relations(policy, problem);
}

#define WANT_COST "more than 0 (unless cost_failure_milli is): else the budget never refuses a retry"

static enum bide_err check_config_relations(const struct bide_target_config *c, struct bide_problem *problem)
{
    const struct bide_budget_config *b = &c->budget;
    bool tokens = b->kind == BIDE_BUDGET_TOKENS, costless = tokens && b->cost_failure_milli == 0;
    uint32_t cheapest = (uint32_t)core_min(b->cost_milli, core_min(b->cost_throttled_milli, b->cost_timeout_milli));
    const struct relation relations[] = {
        {(c->observe & ~BIDE_TARGET_GATES) != 0, "observe", c->observe, "a combination of BIDE_TARGET_GATES bits"},
        {c->throttle_k_milli > 0 && c->throttle_k_milli <= 1000, "throttle_k_milli", c->throttle_k_milli,
         "0 (off), or 1001 to 1000000 (2000 in the SRE book)"},
        {costless && b->cost_milli == 0, "budget.cost_milli", 0, WANT_COST},
        {costless && b->cost_throttled_milli == 0, "budget.cost_throttled_milli", 0, WANT_COST},
        {costless && b->cost_timeout_milli == 0, "budget.cost_timeout_milli", 0, WANT_COST},
        {tokens && b->capacity_milli > 0 && b->cost_milli > b->capacity_milli, "budget.cost_milli", b->cost_milli,
         "capacity_milli or less: else no retry is ever allowed (use a capacity of 0 for that)"},
        {tokens && b->cost_failure_milli > 0 && b->threshold_milli == 0 && cheapest == 0, "budget.threshold_milli", 0,
         "more than 0 when only failures cost: else the budget never refuses a retry"},
        {tokens && b->initial_milli != BIDE_FULL && b->initial_milli > b->capacity_milli, "budget.initial_milli",
         b->initial_milli, "capacity_milli or less, or BIDE_FULL"},
        {tokens && b->threshold_milli > 0 && b->threshold_milli >= b->capacity_milli, "budget.threshold_milli",
         b->threshold_milli, "less than capacity_milli: else no retry is ever allowed"},
        {IS_RESERVED_USED(c), "reserved_", 1, CORE_WANT_RESERVED},
        {c->breaker.open_max_ns < c->breaker.open_ns, "breaker.open_max_ns", c->breaker.open_max_ns, "open_ns or more"},
        {c->breaker.kind == BIDE_BREAKER_BY_COUNT && c->breaker.min_volume > c->breaker.count_window,
         "breaker.min_volume", c->breaker.min_volume, "count_window or less: else the breaker never opens"},
    };
    return check_relations(relations, COUNT(relations), problem);
}

enum bide_err bide_target_config_check(const struct bide_target_config *config, struct bide_problem *problem)
{
    enum bide_err err = check_ranges(config, config_ranges, COUNT(config_ranges), problem);
    return err != BIDE_OK ? err : check_config_relations(config, problem);
}

/* ---- a configuration from memory that another process may write ---- */

static void range_clamp_field(void *base, const struct range *r)
{
    unsigned char *at = (unsigned char *)base + r->offset;
    int64_t value = range_field_value(base, r), clamped = core_min(core_max(value, r->least), r->most);
    if (r->width == NARROW)
        *(uint32_t *)(void *)at = (uint32_t)clamped;
    else if (r->width == WIDE || value != BIDE_NEVER)
        *(int64_t *)(void *)at = clamped;
}

/* A flag is read as a byte first: any byte but 0 and 1 is no valid bool. */
static void clamp_flag(bool *flag)
{
    const unsigned char *byte = (const unsigned char *)flag;
    *flag = *byte != 0;
}

void core_clamp_config(struct bide_target_config *config)
{
    for (size_t i = 0; i < COUNT(config_ranges); i++)
        range_clamp_field(config, &config_ranges[i]);
    config->observe &= BIDE_TARGET_GATES;
    clamp_flag(&config->hold_off_first);
    clamp_flag(&config->latency);
    for (size_t i = 0; i < COUNT(config->reserved_flags_); i++)
        config->reserved_flags_[i] = 0;
    for (size_t i = 0; i < COUNT(config->reserved_); i++)
        config->reserved_[i] = 0;
}
