/* change.c - parses and applies changes to a shared target; see change.h. */
#include "change.h"
#include "core/lease.h"

#include "common/policy.h"
#include "conf/suggest.h"

#include <string.h>

void budget_change_begin(struct budget_change *change, const struct budget_snapshot *snapshot)
{
    *change = (struct budget_change){.config = snapshot->config, .leased = snapshot->leased};
}

/* ---- parsing ---- */

static bool key_equals(const char *argument, size_t length, const char *key)
{
    return strlen(key) == length && memcmp(argument, key, length) == 0;
}

static bool read_level(struct budget_change *change, const char *value, char error[BUDGET_ERROR_SIZE])
{
    change->level = strcmp(value, "full") == 0 ? BUDGET_LEVEL_FULL : BUDGET_LEVEL_EXACT;
    change->level_milli = 0;
    if (change->level == BUDGET_LEVEL_FULL || strcmp(value, "empty") == 0 ||
        text_decimal_parse(value, strlen(value), 1000, &change->level_milli))
        return true;
    snprintf(error, BUDGET_ERROR_SIZE, "must be a number of retries such as 5 or 2.5, full, or empty");
    return false;
}

static bool read_hold(struct budget_change *change, const char *value, char error[BUDGET_ERROR_SIZE])
{
    static const struct {
        const char *argument;
        enum bide_hold hold;
    } holds[] = {{"open", BIDE_HOLD_OPEN}, {"closed", BIDE_HOLD_CLOSED}, {"auto", BIDE_HOLD_RELEASE}};
    change->has_hold = true;
    for (size_t i = 0; i < sizeof holds / sizeof *holds; i++)
        if (strcmp(value, holds[i].argument) == 0) {
            change->hold = holds[i].hold;
            return true;
        }
    snprintf(error, BUDGET_ERROR_SIZE, "must be open or closed, which hold the breaker, or auto, which releases it");
    return false;
}

const char *budget_change_key(size_t i)
{
    static const char *const states[] = {"budget", "breaker"}; /* the level and the hold */
    const struct conf_field *field = NULL;
    if (i < sizeof states / sizeof *states)
        return states[i];
    i -= sizeof states / sizeof *states;
    for (size_t at = 0; (field = conf_field(at)) != NULL; at++)
        if (field->of_target && i-- == 0)
            return field->key;
    return NULL;
}

/* Suggests only what `set` accepts. Returns false. */
static bool report_unknown_key(const char *argument, size_t length, char error[BUDGET_ERROR_SIZE])
{
    struct conf_suggestion near = {.word = argument, .length = length};
    const char *key;
    for (size_t i = 0; (key = budget_change_key(i)) != NULL; i++)
        conf_suggestion_consider(&near, key, key);
    snprintf(error, BUDGET_ERROR_SIZE, "%s", cli_unknown_key(near.found));
    return false;
}

/* Rejects gates of the policy: each process has its own policy, so the value would be lost. */
static bool read_observe(struct budget_change *change, const struct conf_field *field, const char *value,
                         char error[BUDGET_ERROR_SIZE])
{
    struct conf_pair pair;
    conf_pair_init(&pair, BIDE_PRESET_SERVICE);
    const char *wrong = conf_field_assign(field, &pair, value);
    bool of_policy = wrong == NULL && pair.policy.observe != 0;
    if (wrong != NULL || of_policy) {
        snprintf(error, BUDGET_ERROR_SIZE, "must be %s",
                 of_policy ? "gates of a target: throttle, breaker, key_limit, budget" : wrong);
        return false;
    }
    change->config.observe = pair.target.observe;
    change->has_config = true;
    return true;
}

static bool read_key(struct budget_change *change, const char *argument, size_t length, char error[BUDGET_ERROR_SIZE])
{
    const struct conf_field *field = conf_field_find(argument, length);
    struct conf_pair pair;
    if (field == NULL)
        return report_unknown_key(argument, length, error);
    if (strcmp(field->key, "observe") == 0)
        return read_observe(change, field, argument + length + 1, error);
    if (!field->of_target) {
        snprintf(error, BUDGET_ERROR_SIZE,
                 "must be a key of the target (%s is part of each call's policy and belongs in bide.conf)", field->key);
        return false;
    }
    conf_pair_init(&pair, BIDE_PRESET_SERVICE);
    pair.target = change->config;
    const char *wrong = conf_field_assign(field, &pair, argument + length + 1);
    if (wrong != NULL) {
        snprintf(error, BUDGET_ERROR_SIZE, "must be %s", wrong);
        return false;
    }
    change->config = pair.target;
    change->has_config = true;
    return true;
}

bool budget_change_read(struct budget_change *change, const char *argument, char error[BUDGET_ERROR_SIZE])
{
    size_t length = strcspn(argument, "=");
    if (argument[length] != '=') {
        snprintf(error, BUDGET_ERROR_SIZE, "must be KEY=VALUE, such as budget=5, breaker=open or budget.capacity=20");
        return false;
    }
    if (key_equals(argument, length, "budget"))
        return read_level(change, argument + length + 1, error);
    if (key_equals(argument, length, "breaker"))
        return read_hold(change, argument + length + 1, error);
    return read_key(change, argument, length, error);
}

/* ---- validation and application ---- */

static bool level_check(const struct budget_change *change, char error[BUDGET_ERROR_SIZE])
{
    const struct bide_budget_config *c = &change->config.budget;
    char capacity[TEXT_VALUE_SIZE], level[TEXT_VALUE_SIZE] = "full";
    if (change->level == BUDGET_LEVEL_UNCHANGED)
        return true;
    if (change->level == BUDGET_LEVEL_EXACT)
        text_decimal_format(level, change->level_milli, 1000);
    if (change->leased && (change->level == BUDGET_LEVEL_FULL || change->level_milli > 0))
        snprintf(error, BUDGET_ERROR_SIZE,
                 "budget=%s: must be empty (the tokens are leased from a fleet, which alone fills the bucket)", level);
    else if (c->kind != BIDE_BUDGET_TOKENS)
        snprintf(error, BUDGET_ERROR_SIZE, "budget=%s: cannot be set, because this target has %s", level,
                 c->kind == BIDE_BUDGET_NONE ? "no budget: nothing limits retries"
                                             : "a sliding window, which expires by itself");
    else if (change->level == BUDGET_LEVEL_EXACT && change->level_milli > c->capacity_milli)
        snprintf(error, BUDGET_ERROR_SIZE, "budget=%s: must be 0 to %s, the capacity (budget.capacity=N changes it)",
                 level, text_decimal_format(capacity, c->capacity_milli, 1000));
    else
        return true;
    return false;
}

bool budget_change_check(const struct budget_change *change, char error[BUDGET_ERROR_SIZE])
{
    struct conf_pair pair;
    struct conf_problem wrong;
    conf_pair_init(&pair, BIDE_PRESET_SERVICE);
    pair.target = change->config;
    if (!conf_pair_check(&pair, &wrong)) {
        char value[256] = "";
        if (wrong.field != NULL)
            conf_field_format(value, wrong.field, &pair);
        snprintf(error, BUDGET_ERROR_SIZE, "%s%s%s%smust be %s", wrong.field != NULL ? wrong.field->key : "",
                 wrong.field != NULL ? "=" : "", value, wrong.field != NULL ? ": " : "", wrong.want);
        return false;
    }
    return level_check(change, error);
}

void budget_change_apply(const struct budget_change *change, struct bide_target *target, int64_t now_ns)
{
    int64_t left_milli = bide_target_get(target, now_ns).budget_left_milli;
    if (change->level == BUDGET_LEVEL_FULL)
        bide_budget_add_milli(target, BIDE_CAPACITY_MAX_MILLI, now_ns);
    else if (change->level == BUDGET_LEVEL_EXACT && left_milli != INT64_MAX)
        bide_budget_add_milli(target, change->level_milli - left_milli, now_ns);
    if (change->has_hold)
        bide_breaker_hold(target, change->hold);
}

/* Holding and releasing the breaker leaves it closed, with its failure statistics cleared. */
void budget_reset(struct bide_target *target, int64_t now_ns)
{
    bool funded = core_lease_until(target) > now_ns;
    if (!funded && core_lease_end(target, now_ns) == BIDE_OK)
        bide_budget_add_milli(target, BIDE_CAPACITY_MAX_MILLI, now_ns);
    bide_breaker_hold(target, BIDE_HOLD_CLOSED);
    bide_breaker_hold(target, BIDE_HOLD_RELEASE);
}

/* ---- output ---- */

static void print_settings(FILE *out, const struct budget_snapshot *before, const struct budget_snapshot *after)
{
    struct conf_pair old, new;
    const struct conf_field *field;
    char was[256], is_now[256];
    conf_pair_init(&old, BIDE_PRESET_SERVICE);
    new = old;
    old.target = before->config;
    new.target = after->config;
    for (size_t i = 0; (field = conf_field(i)) != NULL; i++)
        if (!conf_field_equal(field, &old, &new))
            fprintf(out, "%s = %s (was %s); ", field->key, conf_field_format(is_now, field, &new),
                    conf_field_format(was, field, &old));
}

void budget_change_print(FILE *out, const struct budget_snapshot *before, const struct budget_snapshot *after)
{
    char was[BUDGET_TEXT_SIZE], is_now[BUDGET_TEXT_SIZE];
    print_settings(out, before, after);
    budget_level_text(was, before);
    budget_level_text(is_now, after);
    fprintf(out, "budget %s", is_now);
    if (strcmp(was, is_now) != 0)
        fprintf(out, " (was %s)", was);
    if (before->leased && !after->leased)
        fputs("; the lease has ended", out);
    budget_breaker_text(was, before);
    budget_breaker_text(is_now, after);
    fprintf(out, "; breaker %s", is_now);
    if (strcmp(was, is_now) != 0)
        fprintf(out, " (was %s)", was);
}
