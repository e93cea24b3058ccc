/* test_policy.c - the presets of the design, and the values that a check refuses: one row for each.
 *
 * A row assigns fields by name to a valid struct. A wrong value must be reported with that name, that value and the
 * accepted values; the limits themselves must pass. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include <bide/call.h>
#include <bide/policy.h>
#include <bide/target.h>

#define COUNT(table) (sizeof(table) / sizeof *(table))
#define MS           BIDE_MS
#define S            BIDE_S
#define NEVER        BIDE_NEVER
#define LONGEST      BIDE_DURATION_MAX

/* -- assigning by name --------------------------------------------------------------------------------------------- */

struct assign {
    const char *field;
    size_t offset, size;
    int64_t value;
};

#define SET(type, field, value)                                                                                        \
    {                                                                                                                  \
#field, offsetof(struct type, field), sizeof(((struct type *)0)->field), value                                 \
    }
#define P(field, value) SET(bide_policy, field, value)
#define T(field, value) SET(bide_target_config, field, value)

static void assign(void *into, const struct assign *a)
{
    unsigned char *at = (unsigned char *)into + a->offset;
    uint32_t narrow = (uint32_t)a->value;
    if (a->size == sizeof(bool))
        *at = a->value != 0;
    else
        memcpy(at, a->size == sizeof narrow ? (const void *)&narrow : (const void *)&a->value, a->size);
}

/* The value as read back: 32-bit fields have no sign. */
static int64_t value_of(const struct assign *a)
{
    return a->size == sizeof(uint32_t) ? (int64_t)(uint32_t)a->value : a->value;
}

static struct bide_policy policy_of(enum bide_preset preset)
{
    struct bide_policy policy;
    assert_int_equal(bide_policy_init(&policy, preset), BIDE_OK);
    return policy;
}

static struct bide_target_config config_of(enum bide_preset preset)
{
    struct bide_target_config config;
    assert_int_equal(bide_target_config_init(&config, preset), BIDE_OK);
    return config;
}

/* Valid, with room on all sides: every single field may be set to its own limits. */
static struct bide_policy roomy_policy(void)
{
    struct bide_policy policy = policy_of(BIDE_PRESET_SERVICE);
    policy.base_ns = 1 * S;
    policy.cap_ns = LONGEST;
    policy.jitter_past_cap = true;
    return policy;
}

static struct bide_target_config roomy_config(void)
{
    struct bide_target_config config = config_of(BIDE_PRESET_SERVICE);
    config.budget.capacity_milli = BIDE_CAPACITY_MAX_MILLI;
    config.breaker.open_ns = 1 * S;
    config.breaker.open_max_ns = LONGEST;
    return config;
}

static void assert_problem(const struct bide_problem *got, const char *field, int64_t value)
{
    char sentence[300];
    assert_non_null(got->field);
    assert_string_equal(got->field, field);
    assert_int_equal(got->value, value);
    assert_true(strlen(got->want) > 0);
    snprintf(sentence, sizeof sentence, "%s is %lld; must be %s", field, (long long)value, got->want);
    assert_string_equal(got->text, sentence);
    assert_int_equal(got->reason, 0);
    assert_int_equal(got->system_errno, 0);
}

static void assert_policy_passes(const struct bide_policy *policy)
{
    struct bide_problem problem = {0};
    enum bide_err err = bide_policy_check(policy, &problem);
    if (err != BIDE_OK)
        print_error("%s is %lld\n", problem.field, (long long)problem.value);
    assert_int_equal(err, BIDE_OK);
}

static void assert_config_passes(const struct bide_target_config *config)
{
    struct bide_problem problem = {0};
    enum bide_err err = bide_target_config_check(config, &problem);
    if (err != BIDE_OK)
        print_error("%s is %lld\n", problem.field, (long long)problem.value);
    assert_int_equal(err, BIDE_OK);
}

/* -- presets ------------------------------------------------------------------------------------------------------- */

static void every_preset_passes_its_own_check(void **state)
{
    for (int i = 0; i < BIDE_PRESET_COUNT; i++) {
        struct bide_policy policy = policy_of((enum bide_preset)i);
        struct bide_target_config config = config_of((enum bide_preset)i);
        assert_policy_passes(&policy);
        assert_config_passes(&config);
    }
}

/* The table of the design, and the numbers of the systems that the other presets are named after. */
static void the_presets_match_the_design(void **state)
{
    static const struct {
        enum bide_preset preset;
        uint32_t attempts;
        enum bide_jitter jitter;
        int64_t base_ns, cap_ns, attempt_ns, connect_ns, deadline_ns;
    } rows[] = {
        {BIDE_PRESET_SERVICE, 4, BIDE_JITTER_FULL, 200 * MS, 30 * S, 10 * S, 3 * S, 60 * S},
        {BIDE_PRESET_INTERACTIVE, 3, BIDE_JITTER_FULL, 100 * MS, 2 * S, 2 * S, 500 * MS, 5 * S},
        {BIDE_PRESET_EXTERNAL, 4, BIDE_JITTER_FULL, 1 * S, 60 * S, 30 * S, 5 * S, 180 * S},
        {BIDE_PRESET_BACKGROUND, 6, BIDE_JITTER_DECORRELATED, 1 * S, 120 * S, 60 * S, 5 * S, 900 * S},
        {BIDE_PRESET_SERVERLESS, 3, BIDE_JITTER_FULL, 100 * MS, 1 * S, 3 * S, 1 * S, 10 * S},
        {BIDE_PRESET_PAYMENT, 3, BIDE_JITTER_FULL, 100 * MS, 2 * S, 5 * S, 1 * S, 15 * S},
        {BIDE_PRESET_COMMAND, 4, BIDE_JITTER_FULL, 200 * MS, 30 * S, NEVER, NEVER, NEVER},
        {BIDE_PRESET_TRANSFER, 4, BIDE_JITTER_FULL, 200 * MS, 30 * S, NEVER, 3 * S, NEVER},
        {BIDE_PRESET_AWS_2_0, 3, BIDE_JITTER_FULL, 1 * S, 20 * S, 60 * S, 60 * S, NEVER},
        {BIDE_PRESET_AWS_2_1, 3, BIDE_JITTER_FULL, 50 * MS, 20 * S, 60 * S, 60 * S, NEVER},
        {BIDE_PRESET_GRPC, 4, BIDE_JITTER_PROPORTIONAL, 100 * MS, 1 * S, NEVER, 20 * S, NEVER},
        {BIDE_PRESET_ENVOY, 2, BIDE_JITTER_FULL, 25 * MS, 250 * MS, NEVER, 5 * S, 15 * S},
        {BIDE_PRESET_CURL, 4, BIDE_JITTER_NONE, 1 * S, 600 * S, NEVER, 300 * S, NEVER},
        {BIDE_PRESET_FINAGLE, 4, BIDE_JITTER_FULL, 200 * MS, 30 * S, 10 * S, 3 * S, 60 * S},
        {BIDE_PRESET_SRE, 3, BIDE_JITTER_FULL, 200 * MS, 30 * S, 10 * S, 3 * S, 60 * S},
    };
    assert_int_equal(COUNT(rows), BIDE_PRESET_COUNT);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct bide_policy p = policy_of(rows[i].preset);
        assert_int_equal(p.attempts_max, rows[i].attempts);
        assert_int_equal(p.backoff, BIDE_BACKOFF_EXPONENTIAL);
        assert_int_equal(p.multiplier_milli, 2000);
        assert_int_equal(p.jitter, rows[i].jitter);
        assert_int_equal(p.base_ns, rows[i].base_ns);
        assert_int_equal(p.cap_ns, rows[i].cap_ns);
        assert_int_equal(p.attempt_timeout_ns, rows[i].attempt_ns);
        assert_int_equal(p.connect_timeout_ns, rows[i].connect_ns);
        assert_int_equal(p.call_timeout_ns, rows[i].deadline_ns);
        assert_int_equal(p.waits_max_ns, rows[i].preset == BIDE_PRESET_TRANSFER ? 60 * S : NEVER);
        assert_int_equal(p.hedges_max, 0);
        assert_int_equal(p.observe, 0);
    }
}

static void bides_own_presets_are_careful_and_the_others_literal(void **state)
{
    for (int i = 0; i < BIDE_PRESET_COUNT; i++) {
        struct bide_policy p = policy_of((enum bide_preset)i);
        struct bide_target_config c = config_of((enum bide_preset)i);
        bool own = i <= BIDE_PRESET_TRANSFER;
        assert_int_equal(p.layer, own ? BIDE_LAYER_OUTERMOST : BIDE_LAYER_ANY);
        assert_int_equal(p.conflict_at_once, own);
        assert_int_equal(c.hold_off_max_ns, own ? 300 * S : 0);
        bool alone = i == BIDE_PRESET_COMMAND;
        assert_int_equal(c.breaker.kind, own && !alone ? BIDE_BREAKER_BY_TIME : BIDE_BREAKER_OFF);
        assert_int_equal(p.require_key, i == BIDE_PRESET_PAYMENT);
        assert_int_equal(c.throttle_k_milli, 0);
        assert_int_equal(c.in_flight_max, 0);
        assert_int_equal(c.key_retries, 0);
    }
}

static void the_default_hint_rule_is_a_floor_with_a_tenth_of_jitter_and_five_minutes_at_most(void **state)
{
    struct bide_policy p = policy_of(BIDE_PRESET_SERVICE);
    assert_int_equal(p.hint_rule, BIDE_HINT_RULE_FLOOR);
    assert_int_equal(p.hint_long, BIDE_HINT_LONG_GIVE_UP);
    assert_int_equal(p.hint_step, BIDE_HINT_STEP_KEEP);
    assert_int_equal(p.hint_jitter_permille, 100);
    assert_int_equal(p.hint_max_ns, 300 * S);
}

static void the_default_breaker_matches_the_design(void **state)
{
    struct bide_breaker_config b = config_of(BIDE_PRESET_SERVICE).breaker;
    assert_int_equal(b.kind, BIDE_BREAKER_BY_TIME);
    assert_int_equal(b.ratio_permille, 500);
    assert_int_equal(b.window_ns, 10 * S);
    assert_int_equal(b.min_volume, 20);
    assert_int_equal(b.open_ns, 1 * S);
    assert_int_equal(b.open_jitter_permille, 500);
    assert_int_equal(b.open_growth_milli, 2000);
    assert_int_equal(b.open_max_ns, 10 * S);
    assert_int_equal(b.probes, 1);
    assert_int_equal(b.probe_timeout_ns, 10 * S);
    assert_int_equal(b.ramp_ns, 2 * S);
    assert_true(b.slow_ns == NEVER);
}

static void the_probe_timeout_is_the_attempt_timeout_up_to_a_minute(void **state)
{
    assert_int_equal(config_of(BIDE_PRESET_INTERACTIVE).breaker.probe_timeout_ns, 2 * S);
    assert_int_equal(config_of(BIDE_PRESET_BACKGROUND).breaker.probe_timeout_ns, 60 * S);
    assert_int_equal(config_of(BIDE_PRESET_ENVOY).breaker.probe_timeout_ns, 60 * S);
    assert_int_equal(config_of(BIDE_PRESET_TRANSFER).breaker.probe_timeout_ns, 60 * S);
}

static void the_default_budget_is_ten_retries_a_tenth_per_success_and_one_a_minute(void **state)
{
    struct bide_budget_config b = config_of(BIDE_PRESET_SERVICE).budget;
    assert_int_equal(b.kind, BIDE_BUDGET_TOKENS);
    assert_int_equal(b.on_empty, BIDE_ON_EMPTY_REFUSE);
    assert_int_equal(b.capacity_milli, 10000);
    assert_true(b.initial_milli == BIDE_FULL);
    assert_int_equal(b.cost_milli, 1000);
    assert_int_equal(b.cost_throttled_milli, 1000);
    assert_int_equal(b.cost_timeout_milli, 1000);
    assert_int_equal(b.earn_success_milli, 100);
    assert_int_equal(b.earn_first_milli, 0);
    assert_int_equal(b.refill_per_minute_milli, 1000);
}

static void a_preset_is_found_only_by_its_label(void **state)
{
    static const char *const strangers[] = {"", "servic", "services", "SERVICE", "aws", "unknown"};
    for (int i = 0; i < BIDE_PRESET_COUNT; i++) {
        const char *label = bide_preset_label((enum bide_preset)i);
        assert_int_equal(bide_preset_by_name(label, strlen(label)), i);
        assert_true(strlen(bide_preset_purpose((enum bide_preset)i)) > 0);
    }
    for (size_t i = 0; i < COUNT(strangers); i++)
        assert_int_equal(bide_preset_by_name(strangers[i], strlen(strangers[i])), BIDE_PRESET_COUNT);
    assert_int_equal(bide_preset_by_name("service-mesh", 7), BIDE_PRESET_SERVICE);
    assert_int_equal(bide_preset_by_name("service\0", 8), BIDE_PRESET_COUNT);
    assert_string_equal(bide_preset_label(BIDE_PRESET_COUNT), "unknown");
    assert_string_equal(bide_preset_purpose((enum bide_preset) - 1), "unknown");
}

static void init_refuses_an_unknown_preset(void **state)
{
    struct bide_policy policy = {.attempts_max = 77};
    struct bide_target_config config = {.trust = 77};
    assert_int_equal(bide_policy_init(&policy, BIDE_PRESET_COUNT), BIDE_ERR_INVALID);
    assert_int_equal(bide_policy_init(&policy, (enum bide_preset) - 1), BIDE_ERR_INVALID);
    assert_int_equal(bide_target_config_init(&config, BIDE_PRESET_COUNT), BIDE_ERR_INVALID);
    assert_int_equal(bide_target_config_init(&config, (enum bide_preset) - 1), BIDE_ERR_INVALID);
    assert_int_equal(policy.attempts_max, 77);
    assert_int_equal(config.trust, 77);
}

/* -- bounds of a policy -------------------------------------------------------------------------------------------- */

static void every_wrong_value_of_a_policy_is_reported(void **state)
{
    static const struct assign wrong[] = {
        P(attempts_max, 0),
        P(backoff, BIDE_BACKOFF_NONE + 1),
        P(backoff, -1),
        P(jitter, BIDE_JITTER_NONE + 1),
        P(jitter, -1),
        P(base_ns, 0),
        P(base_ns, -1),
        P(base_ns, LONGEST + 1),
        P(base_ns, NEVER),
        P(base_ns, INT64_MIN),
        P(cap_ns, 0),
        P(cap_ns, -1),
        P(cap_ns, LONGEST + 1),
        P(cap_ns, NEVER),
        P(floor_ns, -1),
        P(floor_ns, LONGEST + 1),
        P(throttled_base_ns, -1),
        P(throttled_base_ns, LONGEST + 1),
        P(jitter_add_ns, -1),
        P(jitter_add_ns, LONGEST + 1),
        P(multiplier_milli, 0),
        P(multiplier_milli, 1),
        P(multiplier_milli, 1000),
        P(multiplier_milli, 1000001),
        P(multiplier_milli, -2000),
        P(jitter_lo_permille, 10001),
        P(jitter_hi_permille, 0),
        P(jitter_hi_permille, 10001),
        P(hedges_max, BIDE_HEDGES_MAX + 1),
        P(hedge_delay_ns, -1),
        P(hedge_delay_ns, LONGEST + 1),
        P(hedge_quantile_permille, 1000),
        P(layer, BIDE_LAYER_NEVER + 1),
        P(attempt_timeout_ns, 0),
        P(attempt_timeout_ns, -1),
        P(attempt_timeout_ns, LONGEST + 1),
        P(attempt_timeout_ns, NEVER - 1),
        P(connect_timeout_ns, 0),
        P(connect_timeout_ns, -1),
        P(connect_timeout_ns, LONGEST + 1),
        P(call_timeout_ns, 0),
        P(call_timeout_ns, -1),
        P(call_timeout_ns, LONGEST + 1),
        P(waits_max_ns, 0),
        P(waits_max_ns, -1),
        P(waits_max_ns, LONGEST + 1),
        P(hint_rule, BIDE_HINT_RULE_IGNORE + 1),
        P(hint_long, BIDE_HINT_LONG_IGNORE + 1),
        P(hint_step, BIDE_HINT_STEP_RESET + 1),
        P(hint_jitter_permille, 10001),
        P(hint_max_ns, 0),
        P(hint_max_ns, -1),
        P(hint_max_ns, LONGEST + 1),
        P(hint_over_ns, -1),
        P(hint_over_ns, LONGEST + 1),
        P(observe, BIDE_GATE_THROTTLE), /* a gate of targets */
        P(observe, -1),
    };
    for (size_t i = 0; i < COUNT(wrong); i++) {
        struct bide_policy policy = roomy_policy();
        struct bide_problem problem = {0};
        assign(&policy, &wrong[i]);
        assert_int_equal(bide_policy_check(&policy, &problem), BIDE_ERR_INVALID);
        assert_problem(&problem, wrong[i].field, value_of(&wrong[i]));
        assert_int_equal(bide_policy_check(&policy, NULL), BIDE_ERR_INVALID);
    }
}

static void every_limit_of_a_policy_is_accepted(void **state)
{
    static const struct assign right[] = {
        P(attempts_max, 1),
        P(attempts_max, UINT32_MAX),
        P(backoff, BIDE_BACKOFF_NONE),
        P(jitter, BIDE_JITTER_NONE),
        P(base_ns, 1),
        P(base_ns, LONGEST),
        P(cap_ns, 1 * S), /* the base */
        P(cap_ns, LONGEST),
        P(floor_ns, 0),
        P(floor_ns, 1 * S),
        P(throttled_base_ns, 0),
        P(throttled_base_ns, 1),
        P(throttled_base_ns, LONGEST),
        P(jitter_add_ns, 0),
        P(jitter_add_ns, LONGEST),
        P(multiplier_milli, 1001),
        P(multiplier_milli, 1000000),
        P(jitter_lo_permille, 0),
        P(jitter_lo_permille, 10000),
        P(jitter_hi_permille, 1),
        P(jitter_hi_permille, 10000),
        P(hedges_max, 0),
        P(hedges_max, 3),
        P(hedge_delay_ns, 0),
        P(hedge_delay_ns, LONGEST),
        P(hedge_quantile_permille, 0),
        P(hedge_quantile_permille, 999),
        P(layer, BIDE_LAYER_NEVER),
        P(attempt_timeout_ns, 1),
        P(attempt_timeout_ns, LONGEST),
        P(attempt_timeout_ns, NEVER),
        P(connect_timeout_ns, 1),
        P(connect_timeout_ns, NEVER),
        P(call_timeout_ns, 1),
        P(call_timeout_ns, NEVER),
        P(waits_max_ns, 1),
        P(waits_max_ns, NEVER),
        P(hint_rule, BIDE_HINT_RULE_IGNORE),
        P(hint_long, BIDE_HINT_LONG_IGNORE),
        P(hint_step, BIDE_HINT_STEP_RESET),
        P(hint_jitter_permille, 0),
        P(hint_jitter_permille, 10000),
        P(hint_max_ns, 1),
        P(hint_max_ns, NEVER),
        P(hint_over_ns, 0),
        P(hint_over_ns, LONGEST),
        P(observe, 0),
        P(observe, BIDE_POLICY_GATES),
    };
    for (size_t i = 0; i < COUNT(right); i++) {
        struct bide_policy policy = roomy_policy();
        assign(&policy, &right[i]);
        assert_policy_passes(&policy);
    }
}

#define ASSIGNS_MAX 4

struct conflict {
    struct assign set[ASSIGNS_MAX]; /* on top of a valid struct; the last field is the one reported */
    const char *want;
};

static const struct assign *assign_all(void *into, const struct conflict *c)
{
    const struct assign *last = NULL;
    for (size_t i = 0; i < ASSIGNS_MAX && c->set[i].field; i++)
        assign(into, last = &c->set[i]);
    return last;
}

static void contradicting_fields_of_a_policy_are_reported(void **state)
{
    static const struct conflict conflicts[] = {
        {{P(base_ns, 2 * S), P(cap_ns, 2 * S - 1)}, "base_ns or more"},
        {{P(base_ns, 1), P(cap_ns, 1 * S), P(throttled_base_ns, 1 * S + 1)}, "cap_ns or less"},
        {{P(base_ns, 2 * S), P(floor_ns, 2 * S + 1)}, "base_ns or less"},
        {{P(floor_ns, 1 * S), P(throttled_base_ns, 1 * S - 1)}, "0 (as base_ns), or floor_ns or more"},
        {{P(jitter, BIDE_JITTER_PROPORTIONAL), P(jitter_hi_permille, 800), P(jitter_lo_permille, 801)},
         "jitter_hi_permille or less"},
        {{P(jitter, BIDE_JITTER_PROPORTIONAL), P(jitter_past_cap, 0), P(jitter_hi_permille, 1001)},
         "1000 or less (or set jitter_past_cap)"},
        {{P(jitter, BIDE_JITTER_ADDITIVE), P(jitter_add_ns, 0)}, "more than 0 with additive jitter"},
        {{P(jitter, BIDE_JITTER_ADDITIVE), P(cap_ns, 1 * S), P(jitter_add_ns, 1 * S + 1)}, "cap_ns or less"},
        {{P(attempts_max, 1), P(hedges_max, 1)}, "less than attempts_max: a hedge is an attempt too"},
        {{P(attempts_max, 3), P(hedges_max, 3)}, "less than attempts_max: a hedge is an attempt too"},
    };
    for (size_t i = 0; i < COUNT(conflicts); i++) {
        struct bide_policy policy = roomy_policy();
        struct bide_problem problem = {0};
        const struct assign *last = assign_all(&policy, &conflicts[i]);
        assert_int_equal(bide_policy_check(&policy, &problem), BIDE_ERR_INVALID);
        assert_problem(&problem, last->field, value_of(last));
        assert_string_equal(problem.want, conflicts[i].want);
    }
}

static void fields_of_a_policy_that_just_agree_are_accepted(void **state)
{
    static const struct conflict agreements[] = {
        {{P(base_ns, 2 * S), P(cap_ns, 2 * S)}, NULL},
        {{P(base_ns, 1), P(cap_ns, 1 * S), P(throttled_base_ns, 1 * S)}, NULL},
        {{P(floor_ns, 1 * S), P(throttled_base_ns, 1 * S)}, NULL},
        {{P(floor_ns, 1 * S), P(throttled_base_ns, 0)}, NULL},
        {{P(jitter, BIDE_JITTER_PROPORTIONAL), P(jitter_hi_permille, 800), P(jitter_lo_permille, 800)}, NULL},
        {{P(jitter, BIDE_JITTER_PROPORTIONAL), P(jitter_past_cap, 0), P(jitter_hi_permille, 1000)}, NULL},
        {{P(jitter, BIDE_JITTER_PROPORTIONAL), P(jitter_past_cap, 1), P(jitter_hi_permille, 1200)}, NULL},
        {{P(jitter, BIDE_JITTER_FULL), P(jitter_past_cap, 0), P(jitter_hi_permille, 1200)}, NULL},
        {{P(jitter, BIDE_JITTER_FULL), P(jitter_hi_permille, 1), P(jitter_lo_permille, 2)}, NULL},
        {{P(jitter, BIDE_JITTER_ADDITIVE), P(cap_ns, 1 * S), P(jitter_add_ns, 1 * S)}, NULL},
        {{P(jitter, BIDE_JITTER_ADDITIVE), P(jitter_add_ns, 1)}, NULL},
        {{P(attempts_max, 2), P(hedges_max, 1)}, NULL},
    };
    for (size_t i = 0; i < COUNT(agreements); i++) {
        struct bide_policy policy = roomy_policy();
        assign_all(&policy, &agreements[i]);
        assert_policy_passes(&policy);
    }
}

static void reserved_fields_must_be_zero(void **state)
{
    for (size_t i = 0; i < COUNT(((struct bide_policy *)0)->reserved_); i++) {
        struct bide_policy policy = roomy_policy();
        struct bide_problem problem = {0};
        policy.reserved_[i] = UINT64_C(1) << 63;
        assert_int_equal(bide_policy_check(&policy, &problem), BIDE_ERR_INVALID);
        assert_problem(&problem, "reserved_", 1);
    }
}

static void the_problem_text_names_field_value_and_accepted_values(void **state)
{
    struct bide_policy policy = policy_of(BIDE_PRESET_SERVICE);
    struct bide_problem problem;
    policy.attempts_max = 0;
    assert_int_equal(bide_policy_check(&policy, &problem), BIDE_ERR_INVALID);
    assert_string_equal(problem.text, "attempts_max is 0; must be 1 or more (1 means no retry)");
}

/* -- bounds of a target's configuration ---------------------------------------------------------------------------- */

static void every_wrong_value_of_a_configuration_is_reported(void **state)
{
    static const struct assign wrong[] = {
        T(observe, BIDE_GATE_HINT), /* a gate of policies */
        T(observe, -1),
        T(trust, 4),
        T(key_retries, 256),
        T(throttle_k_milli, 1),
        T(throttle_k_milli, 1000),
        T(throttle_k_milli, 1000001),
        T(throttle_max_permille, 0),
        T(throttle_max_permille, 1001),
        T(throttle_window_ns, 0),
        T(throttle_window_ns, 9),
        T(throttle_window_ns, -1),
        T(throttle_window_ns, LONGEST + 1),
        T(key_interval_ns, 0),
        T(key_interval_ns, -1),
        T(key_interval_ns, LONGEST + 1),
        T(hold_off_max_ns, -1),
        T(hold_off_max_ns, NEVER),
        T(budget.kind, BIDE_BUDGET_NONE + 1),
        T(budget.kind, -1),
        T(budget.on_empty, BIDE_ON_EMPTY_OPEN + 1),
        T(budget.capacity_milli, BIDE_CAPACITY_MAX_MILLI + 1),
        T(budget.cost_milli, BIDE_CAPACITY_MAX_MILLI + 1),
        T(budget.cost_throttled_milli, BIDE_CAPACITY_MAX_MILLI + 1),
        T(budget.cost_timeout_milli, BIDE_CAPACITY_MAX_MILLI + 1),
        T(budget.cost_failure_milli, BIDE_CAPACITY_MAX_MILLI + 1),
        T(budget.threshold_milli, BIDE_CAPACITY_MAX_MILLI + 1),
        T(budget.initial_milli, BIDE_CAPACITY_MAX_MILLI + 1),
        T(budget.earn_success_milli, BIDE_CAPACITY_MAX_MILLI + 1),
        T(budget.earn_first_milli, BIDE_CAPACITY_MAX_MILLI + 1),
        T(budget.refill_per_minute_milli, 100000001),
        T(budget.refund_permille, 1001),
        T(budget.ratio_ppm, 1000001),
        T(budget.window_ns, 9),
        T(budget.window_ns, 0),
        T(budget.window_ns, LONGEST + 1),
        T(budget.cooldown_ns, -1),
        T(budget.cooldown_ns, LONGEST + 1),
        T(breaker.kind, BIDE_BREAKER_OFF + 1),
        T(breaker.kind, -1),
        T(breaker.consecutive, 0),
        T(breaker.ratio_permille, 0),
        T(breaker.ratio_permille, 1001),
        T(breaker.min_volume, 0),
        T(breaker.count_window, 0),
        T(breaker.count_window, BIDE_COUNT_WINDOW_MAX + 1),
        T(breaker.open_growth_milli, 0),
        T(breaker.open_growth_milli, 999),
        T(breaker.open_growth_milli, 100001),
        T(breaker.open_jitter_permille, 901),
        T(breaker.probes, 0),
        T(breaker.probes, BIDE_PROBES_MAX + 1),
        T(breaker.window_ns, 9),
        T(breaker.window_ns, -1),
        T(breaker.window_ns, LONGEST + 1),
        T(breaker.slow_ns, 0),
        T(breaker.slow_ns, -1),
        T(breaker.open_ns, 0),
        T(breaker.open_ns, LONGEST + 1),
        T(breaker.open_max_ns, 0),
        T(breaker.open_max_ns, LONGEST + 1),
        T(breaker.probe_timeout_ns, 0),
        T(breaker.probe_timeout_ns, NEVER),
        T(breaker.ramp_ns, -1),
        T(breaker.ramp_ns, LONGEST + 1),
    };
    for (size_t i = 0; i < COUNT(wrong); i++) {
        struct bide_target_config config = roomy_config();
        struct bide_problem problem = {0};
        assign(&config, &wrong[i]);
        assert_int_equal(bide_target_config_check(&config, &problem), BIDE_ERR_INVALID);
        assert_problem(&problem, wrong[i].field, value_of(&wrong[i]));
        assert_int_equal(bide_target_config_check(&config, NULL), BIDE_ERR_INVALID);
    }
}

static void every_limit_of_a_configuration_is_accepted(void **state)
{
    static const struct assign right[] = {
        T(observe, BIDE_TARGET_GATES),
        T(trust, 3),
        T(in_flight_max, UINT32_MAX),
        T(key_retries, 0),
        T(key_retries, 255),
        T(throttle_k_milli, 0),
        T(throttle_k_milli, 1001),
        T(throttle_k_milli, 1000000),
        T(throttle_max_permille, 1),
        T(throttle_max_permille, 1000),
        T(throttle_min_volume, UINT32_MAX),
        T(throttle_window_ns, 10),
        T(throttle_window_ns, LONGEST),
        T(key_interval_ns, 1),
        T(key_interval_ns, LONGEST),
        T(hold_off_max_ns, 0),
        T(hold_off_max_ns, LONGEST),
        T(budget.kind, BIDE_BUDGET_NONE),
        T(budget.on_empty, BIDE_ON_EMPTY_OPEN),
        T(budget.capacity_milli, 0),
        T(budget.capacity_milli, BIDE_CAPACITY_MAX_MILLI),
        T(budget.initial_milli, 0),
        T(budget.initial_milli, BIDE_CAPACITY_MAX_MILLI),
        T(budget.initial_milli, BIDE_FULL),
        T(budget.cost_milli, BIDE_CAPACITY_MAX_MILLI),
        T(budget.cost_failure_milli, BIDE_CAPACITY_MAX_MILLI),
        T(budget.threshold_milli, BIDE_CAPACITY_MAX_MILLI - 1), /* of as much capacity */
        T(budget.earn_success_milli, BIDE_CAPACITY_MAX_MILLI),
        T(budget.earn_first_milli, BIDE_CAPACITY_MAX_MILLI),
        T(budget.refill_per_minute_milli, 100000000),
        T(budget.refund_permille, 1000),
        T(budget.ratio_ppm, 1000000),
        T(budget.reserve, UINT32_MAX),
        T(budget.window_ns, 10),
        T(budget.window_ns, LONGEST),
        T(budget.cooldown_ns, 0),
        T(breaker.kind, BIDE_BREAKER_OFF),
        T(breaker.consecutive, 1),
        T(breaker.ratio_permille, 1),
        T(breaker.ratio_permille, 1000),
        T(breaker.min_volume, 1),
        T(breaker.min_volume, UINT32_MAX),
        T(breaker.count_window, 1),
        T(breaker.count_window, 256),
        T(breaker.open_growth_milli, 1000),
        T(breaker.open_growth_milli, 100000),
        T(breaker.open_jitter_permille, 0),
        T(breaker.open_jitter_permille, 900),
        T(breaker.probes, 8),
        T(breaker.window_ns, 10),
        T(breaker.slow_ns, 1),
        T(breaker.slow_ns, NEVER),
        T(breaker.open_ns, 1),
        T(breaker.open_ns, LONGEST),
        T(breaker.open_max_ns, 1 * S), /* open_ns */
        T(breaker.probe_timeout_ns, 1),
        T(breaker.probe_timeout_ns, LONGEST),
        T(breaker.ramp_ns, 0),
        T(breaker.ramp_ns, LONGEST),
    };
    for (size_t i = 0; i < COUNT(right); i++) {
        struct bide_target_config config = roomy_config();
        assign(&config, &right[i]);
        assert_config_passes(&config);
    }
}

static void contradicting_fields_of_a_configuration_are_reported(void **state)
{
    static const char never_binds[] =
        "more than 0 (unless cost_failure_milli is): else the budget never refuses a retry";
    static const struct conflict conflicts[] = {
        {{T(budget.cost_milli, 0)}, never_binds},
        {{T(budget.cost_throttled_milli, 0)}, never_binds},
        {{T(budget.cost_timeout_milli, 0)}, never_binds},
        {{T(budget.capacity_milli, 5000), T(budget.cost_milli, 5001)},
         "capacity_milli or less: else no retry is ever allowed (use a capacity of 0 for that)"},
        {{T(breaker.open_ns, 2 * S), T(breaker.open_max_ns, 2 * S - 1)}, "open_ns or more"},
        {{T(breaker.kind, BIDE_BREAKER_BY_COUNT), T(breaker.count_window, 10), T(breaker.min_volume, 11)},
         "count_window or less: else the breaker never opens"},
        {{T(budget.capacity_milli, 5000), T(budget.initial_milli, 5001)}, "capacity_milli or less, or BIDE_FULL"},
        {{T(budget.capacity_milli, 5000), T(budget.threshold_milli, 5000)},
         "less than capacity_milli: else no retry is ever allowed"},
        {{T(budget.cost_milli, 0), T(budget.cost_failure_milli, 1), T(budget.threshold_milli, 0)},
         "more than 0 when only failures cost: else the budget never refuses a retry"},
    };
    for (size_t i = 0; i < COUNT(conflicts); i++) {
        struct bide_target_config config = roomy_config();
        struct bide_problem problem = {0};
        const struct assign *last = assign_all(&config, &conflicts[i]);
        assert_int_equal(bide_target_config_check(&config, &problem), BIDE_ERR_INVALID);
        assert_problem(&problem, last->field, value_of(last));
        assert_string_equal(problem.want, conflicts[i].want);
    }
}

static void fields_of_a_configuration_that_just_agree_are_accepted(void **state)
{
    static const struct conflict agreements[] = {
        {{T(breaker.kind, BIDE_BREAKER_BY_COUNT), T(breaker.count_window, 10), T(breaker.min_volume, 10)}, NULL},
        {{T(breaker.kind, BIDE_BREAKER_BY_TIME), T(breaker.count_window, 10), T(breaker.min_volume, 11)}, NULL},
        {{T(budget.capacity_milli, 5000), T(budget.initial_milli, 5000)}, NULL},
        {{T(budget.capacity_milli, 5000), T(budget.cost_milli, 5000)}, NULL},
        {{T(budget.capacity_milli, 0), T(budget.cost_milli, 5000)}, NULL},
        {{T(budget.kind, BIDE_BUDGET_WINDOW), T(budget.capacity_milli, 5), T(budget.initial_milli, 6)}, NULL},
        {{T(budget.capacity_milli, 5000), T(budget.threshold_milli, 4999)}, NULL},
        {{T(budget.kind, BIDE_BUDGET_WINDOW), T(budget.cost_milli, 0)}, NULL},
        {{T(budget.kind, BIDE_BUDGET_WINDOW), T(budget.capacity_milli, 5), T(budget.threshold_milli, 6)}, NULL},
        {{T(budget.kind, BIDE_BUDGET_WINDOW), T(budget.cost_milli, 0), T(budget.cost_failure_milli, 1)}, NULL},
        {{T(budget.cost_milli, 0), T(budget.cost_failure_milli, 1), T(budget.threshold_milli, 1)}, NULL},
        {{T(budget.cost_failure_milli, 1), T(budget.threshold_milli, 0)}, NULL},
    };
    for (size_t i = 0; i < COUNT(agreements); i++) {
        struct bide_target_config config = roomy_config();
        assign_all(&config, &agreements[i]);
        assert_config_passes(&config);
    }
}

/* -- fields of later versions ------------------------------------------------------------------------------------- */

/* A later version may use this flag: ignoring it silently would be worse than refusing it. */
static void a_reserved_flag_that_is_set_is_refused(void **state)
{
    struct bide_problem problem;
    struct bide_policy policy = policy_of(BIDE_PRESET_SERVICE);
    struct bide_target_config config = roomy_config();
    policy.reserved_flags_[2] = true;
    config.reserved_flags_[0] = 2;
    assert_int_equal(bide_policy_check(&policy, &problem), BIDE_ERR_INVALID);
    assert_problem(&problem, "reserved_", 1);
    assert_int_equal(bide_target_config_check(&config, &problem), BIDE_ERR_INVALID);
    assert_problem(&problem, "reserved_", 1);
    config = roomy_config();
    config.reserved_[1] = 1;
    assert_int_equal(bide_target_config_check(&config, &problem), BIDE_ERR_INVALID);
    assert_problem(&problem, "reserved_", 1);
}

/* -- the other numbers of the presets ------------------------------------------------------------------------------ */

/* 5 tokens per retry and 10 after a timeout in AWS 2.0; half of ten tokens in gRPC; and so on: see docs/policy.md. */
static const struct bide_budget_config
    bides_own = {.capacity_milli = 10000,
                 .initial_milli = BIDE_FULL,
                 .cost_milli = 1000,
                 .cost_throttled_milli = 1000,
                 .cost_timeout_milli = 1000,
                 .earn_success_milli = 100,
                 .refill_per_minute_milli = 1000,
                 .window_ns = 10 * S},
    aws_2_0 = {.capacity_milli = 500000,
               .initial_milli = BIDE_FULL,
               .cost_milli = 5000,
               .cost_throttled_milli = 5000,
               .cost_timeout_milli = 10000,
               .earn_success_milli = 1000,
               .refund_permille = 1000,
               .window_ns = 10 * S},
    aws_2_1 = {.capacity_milli = 500000,
               .initial_milli = BIDE_FULL,
               .cost_milli = 14000,
               .cost_throttled_milli = 5000,
               .cost_timeout_milli = 14000,
               .earn_success_milli = 1000,
               .refund_permille = 1000,
               .window_ns = 10 * S},
    grpc = {.capacity_milli = 10000,
            .initial_milli = BIDE_FULL,
            .cost_failure_milli = 1000,
            .threshold_milli = 5000,
            .earn_success_milli = 100,
            .window_ns = 10 * S},
    envoy = {.kind = BIDE_BUDGET_CONCURRENCY, .ratio_ppm = 200000, .reserve = 3, .window_ns = 10 * S},
    finagle = {.kind = BIDE_BUDGET_WINDOW, .ratio_ppm = 200000, .reserve = 100, .window_ns = 10 * S},
    sre = {.kind = BIDE_BUDGET_WINDOW, .ratio_ppm = 100000, .min_volume = 10, .window_ns = 120 * S},
    none = {.kind = BIDE_BUDGET_NONE, .window_ns = 10 * S};

static void the_budgets_and_hints_of_the_presets_match_the_design(void **state)
{
    static const struct {
        const struct bide_budget_config *budget;
        uint32_t hint_jitter_permille;
        int64_t hint_over_ns;
    } rows[BIDE_PRESET_COUNT] = {
        [BIDE_PRESET_SERVICE] = {&bides_own, 100, 0},
        [BIDE_PRESET_INTERACTIVE] = {&bides_own, 100, 0},
        [BIDE_PRESET_EXTERNAL] = {&bides_own, 100, 0},
        [BIDE_PRESET_BACKGROUND] = {&bides_own, 100, 0},
        [BIDE_PRESET_SERVERLESS] = {&bides_own, 100, 0},
        [BIDE_PRESET_PAYMENT] = {&bides_own, 100, 0},
        [BIDE_PRESET_COMMAND] = {&none, 100, 0},
        [BIDE_PRESET_TRANSFER] = {&bides_own, 100, 0},
        [BIDE_PRESET_AWS_2_0] = {&aws_2_0, 0, 0},
        [BIDE_PRESET_AWS_2_1] = {&aws_2_1, 0, 5 * S},
        [BIDE_PRESET_GRPC] = {&grpc, 0, 0},
        [BIDE_PRESET_ENVOY] = {&envoy, 500, 0},
        [BIDE_PRESET_CURL] = {&none, 0, 0},
        [BIDE_PRESET_FINAGLE] = {&finagle, 100, 0},
        [BIDE_PRESET_SRE] = {&sre, 100, 0},
    };
    for (int i = 0; i < BIDE_PRESET_COUNT; i++) {
        struct bide_policy p = policy_of((enum bide_preset)i);
        struct bide_target_config c = config_of((enum bide_preset)i);
        assert_memory_equal(&c.budget, rows[i].budget, sizeof c.budget); /* it has no padding */
        assert_int_equal(p.hint_jitter_permille, rows[i].hint_jitter_permille);
        assert_int_equal(p.hint_over_ns, rows[i].hint_over_ns);
        assert_int_equal(p.floor_ns, 0);
    }
}

/* Settings that take effect only if another one turns them on. */
static void settings_that_are_off_have_the_same_values_in_all_presets(void **state)
{
    for (int i = 0; i < BIDE_PRESET_COUNT; i++) {
        struct bide_policy p = policy_of((enum bide_preset)i);
        struct bide_target_config c = config_of((enum bide_preset)i);
        assert_int_equal(p.jitter_lo_permille, i == BIDE_PRESET_GRPC ? 800 : 0);
        assert_int_equal(p.jitter_hi_permille, i == BIDE_PRESET_GRPC ? 1200 : 1000);
        assert_int_equal(p.hedge_delay_ns, S);
        assert_int_equal(c.key_interval_ns, 30 * S);
        assert_int_equal(c.throttle_max_permille, 900);
        assert_int_equal(c.throttle_min_volume, 10);
        assert_int_equal(c.throttle_window_ns, 120 * S);
        assert_int_equal(c.breaker.consecutive, 5);
        assert_int_equal(c.breaker.count_window, 100);
    }
}

/* -- relations at the smallest values ------------------------------------------------------------------------------ */

static void contradictions_of_a_thousandth_or_a_nanosecond_are_reported(void **state)
{
    struct bide_problem problem;
    struct bide_policy policy = policy_of(BIDE_PRESET_SERVICE);
    struct bide_target_config config = config_of(BIDE_PRESET_SERVICE);
    policy.floor_ns = 2;
    policy.throttled_base_ns = 1;
    assert_int_equal(bide_policy_check(&policy, &problem), BIDE_ERR_INVALID);
    assert_problem(&problem, "throttled_base_ns", 1);
    config.budget.capacity_milli = 1;
    assert_int_equal(bide_target_config_check(&config, &problem), BIDE_ERR_INVALID);
    assert_problem(&problem, "budget.cost_milli", 1000);
    config.budget.cost_milli = config.budget.threshold_milli = 1;
    assert_int_equal(bide_target_config_check(&config, &problem), BIDE_ERR_INVALID);
    assert_problem(&problem, "budget.threshold_milli", 1);
}

/* Another process may have stored any byte there. */
static void a_flag_from_shared_memory_is_read_as_true_or_false(void **state)
{
    static const size_t flags[] = {offsetof(struct bide_target_config, hold_off_first),
                                   offsetof(struct bide_target_config, latency)};
    struct bide_target_config config = config_of(BIDE_PRESET_SERVICE);
    static struct bide_target target;
    for (size_t i = 0; i < COUNT(flags); i++) {
        assert_int_equal(bide_target_init(&target, &config, 0, NULL), BIDE_OK);
        ((unsigned char *)&target.config[0])[flags[i]] = 0x82;
        bide_target_config_get(&target, &config);
        assert_int_equal(((unsigned char *)&config)[flags[i]], 1);
    }
}

/* The constant for calls without a policy, from which the presets start. */
static void a_call_without_a_policy_has_the_preset_service(void **state)
{
    struct bide_policy service;
    struct bide_call call;
    (void)state;
    bide_policy_init(&service, BIDE_PRESET_SERVICE);
    bide_call_begin(&call, NULL, BIDE_NO_TARGET, &(struct bide_request){0}, 0);
    assert_memory_equal(call.policy, &service, sizeof service);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_without_a_policy_has_the_preset_service),
        cmocka_unit_test(every_preset_passes_its_own_check),
        cmocka_unit_test(the_presets_match_the_design),
        cmocka_unit_test(bides_own_presets_are_careful_and_the_others_literal),
        cmocka_unit_test(the_default_hint_rule_is_a_floor_with_a_tenth_of_jitter_and_five_minutes_at_most),
        cmocka_unit_test(the_default_breaker_matches_the_design),
        cmocka_unit_test(the_probe_timeout_is_the_attempt_timeout_up_to_a_minute),
        cmocka_unit_test(the_default_budget_is_ten_retries_a_tenth_per_success_and_one_a_minute),
        cmocka_unit_test(a_preset_is_found_only_by_its_label),
        cmocka_unit_test(init_refuses_an_unknown_preset),
        cmocka_unit_test(every_wrong_value_of_a_policy_is_reported),
        cmocka_unit_test(every_limit_of_a_policy_is_accepted),
        cmocka_unit_test(contradicting_fields_of_a_policy_are_reported),
        cmocka_unit_test(fields_of_a_policy_that_just_agree_are_accepted),
        cmocka_unit_test(reserved_fields_must_be_zero),
        cmocka_unit_test(the_problem_text_names_field_value_and_accepted_values),
        cmocka_unit_test(every_wrong_value_of_a_configuration_is_reported),
        cmocka_unit_test(every_limit_of_a_configuration_is_accepted),
        cmocka_unit_test(contradicting_fields_of_a_configuration_are_reported),
        cmocka_unit_test(fields_of_a_configuration_that_just_agree_are_accepted),
        cmocka_unit_test(a_reserved_flag_that_is_set_is_refused),
        cmocka_unit_test(the_budgets_and_hints_of_the_presets_match_the_design),
        cmocka_unit_test(settings_that_are_off_have_the_same_values_in_all_presets),
        cmocka_unit_test(contradictions_of_a_thousandth_or_a_nanosecond_are_reported),
        cmocka_unit_test(a_flag_from_shared_memory_is_read_as_true_or_false),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
