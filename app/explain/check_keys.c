/* check_keys.c - checks of settings that have no effect.
 *
 * A file does not record which keys it contains: a key counts as set if its value differs from that of the preset.
 * Known weakness: a key that a section inherits from another section counts as set, too. */
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "core/saturate.h"

/* Returns true if the other key turns its whole mechanism off: hedges_max = 0 for hedge_delay. */
static bool key_is_off(const struct conf_field *key, const struct conf_pair *pair)
{
    char text[256];
    conf_field_format(text, key, pair);
    return strcmp(text, "none") == 0 || strcmp(text, "off") == 0 || strcmp(text, "0") == 0 || strcmp(text, "0x") == 0 ||
           strcmp(text, "1") == 0 || strcmp(text, "ignore") == 0;
}

/* ---- conditions on values ---- */

/* Of the engine only backoff.c reads the cap. The window of a fixed backoff ends at its base, which the cap may not be
 * below; only decorrelated jitter grows up to the cap, and additive jitter moves its window below it. */
static bool cap_is_ineffective(const struct conf_pair *pair)
{
    enum bide_jitter jitter = pair->policy.jitter;
    return pair->policy.backoff == BIDE_BACKOFF_FIXED && jitter != BIDE_JITTER_DECORRELATED &&
           jitter != BIDE_JITTER_DECORRELATED_AWS && jitter != BIDE_JITTER_ADDITIVE;
}

/* All waits of a call end before its deadline. The engine counts each in units, rounded up: of a limit L, a unit is
 * less than L / 6553. Waits for gates are not limited in number. */
static bool waits_max_is_ineffective(const struct conf_pair *pair)
{
    const struct bide_policy *p = &pair->policy;
    int64_t rounding_ns = core_product(p->waits_max_ns / 6553 + 1, p->attempts_max);
    return p->waits_max_ns != BIDE_NEVER && p->call_timeout_ns != BIDE_NEVER &&
           p->when_refused != BIDE_WHEN_REFUSED_WAIT && p->waits_max_ns >= core_sum(p->call_timeout_ns, rounding_ns);
}

static bool last_wait_is_ineffective(const struct conf_pair *pair)
{
    return pair->policy.last_wait && pair->policy.call_timeout_ns == BIDE_NEVER;
}

/* The open time does not grow. (The breaker also forgets a row of openings after open_max; without growth nothing
 * depends on the row.) */
static bool open_max_is_ineffective(const struct conf_pair *pair)
{
    return pair->target.breaker.kind != BIDE_BREAKER_OFF && pair->target.breaker.open_growth_milli == 1000;
}

/* An attempt ends before the hedge beside it is due. */
static bool hedges_max_is_ineffective(const struct conf_pair *pair)
{
    const struct bide_policy *p = &pair->policy;
    return p->hedges_max > 0 && p->hedge_quantile_permille == 0 && p->hedge_delay_ns != BIDE_NEVER &&
           p->hedge_delay_ns >= core_min(p->attempt_timeout_ns, p->call_timeout_ns);
}

/* After a throttled response with a hint, the backoff of the policy applies too if hint_rule is floor or clamp, and
 * advances with hint_step = advance: there throttled_base has an effect although a response without a hint ends the
 * call. */
static bool throttled_base_is_ineffective(const struct conf_pair *pair)
{
    const struct bide_policy *p = &pair->policy;
    bool own = p->hint_rule == BIDE_HINT_RULE_FLOOR || p->hint_rule == BIDE_HINT_RULE_CLAMP;
    bool later = p->hint_rule != BIDE_HINT_RULE_IGNORE &&
                 (p->hint_step == BIDE_HINT_STEP_ADVANCE || p->when_refused == BIDE_WHEN_REFUSED_WAIT);
    return p->throttled_needs_hint && p->throttled_base_ns > 0 && (p->observe & BIDE_GATE_HINT) == 0 && !own && !later;
}

/* Keys that depend on the values of others, beside the conditions on words in conf/field.c. */
static const struct value_condition {
    const char *key, *obstacle;
    bool (*is_ineffective)(const struct conf_pair *pair);
    int severity;
} value_conditions[] = {
    {"cap", "backoff", cap_is_ineffective, EXPLAIN_WARNING},
    {"waits_max", "deadline", waits_max_is_ineffective, EXPLAIN_WARNING},
    {"last_wait", "deadline", last_wait_is_ineffective, EXPLAIN_NOTE}, /* a program may give a call its own deadline */
    {"hedges_max", "hedge_delay", hedges_max_is_ineffective, EXPLAIN_WARNING},
    {"breaker.open_max", "breaker.open_growth", open_max_is_ineffective, EXPLAIN_WARNING},
    {"throttled_base", "throttled_needs_hint", throttled_base_is_ineffective, EXPLAIN_WARNING},
};

static const struct value_condition *value_condition_of(const struct conf_field *key, const struct conf_pair *pair)
{
    for (size_t i = 0; i < sizeof value_conditions / sizeof *value_conditions; i++)
        if (strcmp(value_conditions[i].key, key->key) == 0 && value_conditions[i].is_ineffective(pair))
            return &value_conditions[i];
    return NULL;
}

/* ---- keys without effect ---- */

/* Returns the key that makes this key ineffective, and how severe that is; NULL: it has an effect. */
static const struct conf_field *key_obstacle(const struct conf_field *key, const struct conf_pair *pair, int *severity)
{
    const struct conf_field *obstacle = conf_field_obstacle(key, pair);
    const struct value_condition *condition = obstacle == NULL ? value_condition_of(key, pair) : NULL;
    if (condition != NULL) {
        *severity = condition->severity;
        return conf_field_find(condition->obstacle, strlen(condition->obstacle));
    }
    *severity = obstacle != NULL && key_is_off(obstacle, pair) ? EXPLAIN_NOTE : EXPLAIN_WARNING;
    return obstacle;
}

struct key_list {
    char text[200];
    size_t length;
    unsigned left_out;
};

/* Appends "breaker.ratio (breaker.kind = consecutive)". */
static void key_list_add(struct key_list *keys, const struct conf_field *key, const struct conf_field *obstacle,
                         const struct conf_pair *pair)
{
    char value[256], item[128];
    snprintf(item, sizeof item, "%s%s (%s = %.40s)", keys->length > 0 ? ", " : "", key->key, obstacle->key,
             conf_field_format(value, obstacle, pair));
    if (keys->length + strlen(item) + sizeof " and 99 more" > sizeof keys->text)
        keys->left_out++;
    else
        keys->length += (size_t)snprintf(keys->text + keys->length, sizeof keys->text - keys->length, "%s", item);
}

/* A mechanism that is off was perhaps turned off for a while, and its other keys are kept for later; with another kind
 * of the mechanism the policy does not do what its author believes. */
int check_key_without_effect(const struct check_input *v)
{
    const struct conf_pair *pair = v->subject->pair;
    const struct conf_field *field;
    struct key_list keys = {.length = 0};
    int worst = EXPLAIN_NOTE, severity;
    for (size_t i = 0; (field = conf_field(i)) != NULL; i++) {
        const struct conf_field *obstacle = key_obstacle(field, pair, &severity);
        if (v->subject->policy == NULL || obstacle == NULL || key_is_inherited(v, field->key))
            continue;
        worst = severity > worst ? severity : worst;
        key_list_add(&keys, field, obstacle, pair);
    }
    if (keys.length == 0)
        return CHECK_NONE;
    if (keys.left_out > 0)
        snprintf(keys.text + keys.length, sizeof keys.text - keys.length, " and %u more", keys.left_out);
    finding_set_text(v->f, "keys without effect: %s", keys.text);
    finding_set_fix(v->f, "remove them, or change the key in parentheses");
    return worst;
}

/* The engine reserves connect_timeout for the next attempt unless attempt_min is set: it then gives up earlier than the
 * attempts need. A connect_timeout that was not chosen for this policy is only a note. */
int check_connect_above_attempt(const struct check_input *v)
{
    struct time_text connect, attempt;
    if (v->p->connect_timeout_ns == BIDE_NEVER || v->p->connect_timeout_ns <= v->p->attempt_timeout_ns)
        return CHECK_NONE;
    finding_set_text(v->f, "connect_timeout of %s exceeds the attempt timeout of %s, which ends the attempt first",
                     finding_format_time(&connect, v->p->connect_timeout_ns),
                     finding_format_time(&attempt, v->p->attempt_timeout_ns));
    finding_set_fix(v->f, "connect_timeout below attempt_timeout, or a longer attempt_timeout");
    return key_is_inherited(v, "connect_timeout") ? EXPLAIN_NOTE : EXPLAIN_WARNING;
}

int check_wait_for_ready(const struct check_input *v)
{
    if (v->subject->policy == NULL || !v->subject->policy->wait_for_ready)
        return CHECK_NONE;
    finding_set_text(v->f, "waitForReady of the service config is lost: an attempt without a connection fails at once");
    finding_set_fix(v->f, "attempts, waits and a deadline that cover the time until the server is ready");
    return EXPLAIN_WARNING;
}
