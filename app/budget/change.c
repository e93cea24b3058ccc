/* change.c - see change.h. */
#include "change.h"

#include <bide/lease.h>

#include <string.h>

void budget_change_begin(struct budget_change *change, const struct budget_look *look)
{
    *change = (struct budget_change){.config = look->config, .leased = look->leased};
}

/* ---- reading ---- */

static bool is(const char *word, size_t length, const char *key)
{
    return strlen(key) == length && memcmp(word, key, length) == 0;
}

static bool read_level(struct budget_change *change, const char *value, char want[BUDGET_WANT])
{
    change->level = strcmp(value, "full") == 0 ? BUDGET_LEVEL_FULL : BUDGET_LEVEL_EXACT;
    change->level_milli = 0;
    if (change->level == BUDGET_LEVEL_FULL || strcmp(value, "empty") == 0 ||
        conf_decimal_parse(value, strlen(value), 1000, &change->level_milli))
        return true;
    snprintf(want, BUDGET_WANT, "so many retries, such as 5 or 2.5, or full or empty");
    return false;
}

static bool read_hold(struct budget_change *change, const char *value, char want[BUDGET_WANT])
{
    static const struct {
        const char *word;
        enum bide_hold hold;
    } holds[] = {{"open", BIDE_HOLD_OPEN}, {"closed", BIDE_HOLD_CLOSED}, {"auto", BIDE_HOLD_RELEASE}};
    change->has_hold = true;
    for (size_t i = 0; i < sizeof holds / sizeof *holds; i++)
        if (strcmp(value, holds[i].word) == 0) {
            change->hold = holds[i].hold;
            return true;
        }
    snprintf(want, BUDGET_WANT, "open or closed, to hold it so by hand, or auto, to leave it to the evidence");
    return false;
}

/* No such key: the nearest that a target has. */
static bool unknown(const char *word, size_t length, char want[BUDGET_WANT])
{
    const char *near = conf_field_suggest(word, length);
    if (near != NULL)
        snprintf(want, BUDGET_WANT, "%s: there is no key %.*s", near, (int)(length < 64 ? length : 64), word);
    else
        snprintf(want, BUDGET_WANT,
                 "budget=N, breaker=open|closed|auto, or a key of a target, such as budget.capacity=20; "
                 "bide help policy-file lists them");
    return false;
}

/* A value for the gates of the policy itself would be lost: each process has its own policy. */
static bool read_observe(struct budget_change *change, const struct conf_field *field, const char *value,
                         char want[BUDGET_WANT])
{
    struct conf_pair pair;
    conf_pair_init(&pair, BIDE_PRESET_SERVICE);
    const char *wrong = conf_field_assign(field, &pair, value);
    bool of_policy = wrong == NULL && pair.policy.observe != 0;
    if (wrong != NULL || of_policy) {
        snprintf(want, BUDGET_WANT, "%s",
                 of_policy ? "gates of a target: throttle, breaker, key_limit, budget" : wrong);
        return false;
    }
    change->config.observe = pair.target.observe;
    change->has_config = true;
    return true;
}

static bool read_key(struct budget_change *change, const char *word, size_t length, char want[BUDGET_WANT])
{
    const struct conf_field *field = conf_field_find(word, length);
    struct conf_pair pair;
    if (field == NULL)
        return unknown(word, length, want);
    if (strcmp(field->key, "observe") == 0)
        return read_observe(change, field, word + length + 1, want);
    if (!field->of_target) {
        snprintf(want, BUDGET_WANT, "a key of the target: %s is part of each call's policy, and belongs into bide.conf",
                 field->key);
        return false;
    }
    conf_pair_init(&pair, BIDE_PRESET_SERVICE);
    pair.target = change->config;
    const char *wrong = conf_field_assign(field, &pair, word + length + 1);
    if (wrong != NULL) {
        snprintf(want, BUDGET_WANT, "%s", wrong);
        return false;
    }
    change->config = pair.target;
    change->has_config = true;
    return true;
}

bool budget_change_read(struct budget_change *change, const char *word, char want[BUDGET_WANT])
{
    size_t length = strcspn(word, "=");
    if (word[length] != '=') {
        snprintf(want, BUDGET_WANT, "KEY=VALUE, such as budget=5, breaker=open or budget.capacity=20");
        return false;
    }
    if (is(word, length, "budget"))
        return read_level(change, word + length + 1, want);
    if (is(word, length, "breaker"))
        return read_hold(change, word + length + 1, want);
    return read_key(change, word, length, want);
}

/* ---- the whole ---- */

static bool level_fits(const struct budget_change *change, char want[BUDGET_WANT])
{
    const struct bide_budget_config *c = &change->config.budget;
    char capacity[CONF_VALUE_SIZE];
    if (change->level == BUDGET_LEVEL_AS_IT_IS)
        return true;
    if (change->leased && (change->level == BUDGET_LEVEL_FULL || change->level_milli > 0))
        snprintf(want, BUDGET_WANT,
                 "budget=empty, if anything: a fleet lends this target its retries, and nobody else fills it");
    else if (c->kind != BIDE_BUDGET_TOKENS)
        snprintf(want, BUDGET_WANT, "budget: only one of tokens has a level to be set; this target's is %s",
                 c->kind == BIDE_BUDGET_NONE ? "none: nothing limits retries" : "a window, which forgets by itself");
    else if (change->level == BUDGET_LEVEL_EXACT && change->level_milli > c->capacity_milli)
        snprintf(want, BUDGET_WANT, "budget: 0 to %s, the capacity; budget.capacity=N makes it larger",
                 conf_decimal_format(capacity, c->capacity_milli, 1000));
    else
        return true;
    return false;
}

bool budget_change_check(const struct budget_change *change, char want[BUDGET_WANT])
{
    struct conf_pair pair;
    struct conf_problem wrong;
    conf_pair_init(&pair, BIDE_PRESET_SERVICE);
    pair.target = change->config;
    if (!conf_pair_check(&pair, &wrong)) {
        snprintf(want, BUDGET_WANT, "%s%s%s", wrong.field != NULL ? wrong.field->key : "",
                 wrong.field != NULL ? ": " : "", wrong.want);
        return false;
    }
    return level_fits(change, want);
}

void budget_change_do(const struct budget_change *change, struct bide_target *target, int64_t now_ns)
{
    int64_t left_milli = bide_budget_left_milli(target, now_ns);
    if (change->level == BUDGET_LEVEL_FULL)
        bide_budget_add_milli(target, BIDE_CAPACITY_MAX_MILLI, now_ns);
    else if (change->level == BUDGET_LEVEL_EXACT && left_milli != INT64_MAX)
        bide_budget_add_milli(target, change->level_milli - left_milli, now_ns);
    if (change->has_hold)
        bide_breaker_hold(target, change->hold);
}

/* Held and released: what was held goes on as closed, and the evidence against it is forgotten. */
void budget_reset(struct bide_target *target, int64_t now_ns)
{
    bool funded = bide_lease_until(target) > now_ns;
    if (!funded && bide_lease_end(target, now_ns) == BIDE_OK)
        bide_budget_add_milli(target, BIDE_CAPACITY_MAX_MILLI, now_ns);
    bide_breaker_hold(target, BIDE_HOLD_CLOSED);
    bide_breaker_hold(target, BIDE_HOLD_RELEASE);
}

/* ---- telling ---- */

static void tell_settings(FILE *out, const struct budget_look *before, const struct budget_look *after)
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

void budget_change_tell(FILE *out, const struct budget_look *before, const struct budget_look *after)
{
    char was[BUDGET_WORDS], is_now[BUDGET_WORDS];
    tell_settings(out, before, after);
    budget_level_words(was, before);
    budget_level_words(is_now, after);
    fprintf(out, "budget %s", is_now);
    if (strcmp(was, is_now) != 0)
        fprintf(out, " (was %s)", was);
    if (before->leased && !after->leased)
        fputs("; the lease is over", out);
    budget_breaker_words(was, before);
    budget_breaker_words(is_now, after);
    fprintf(out, "; breaker %s", is_now);
    if (strcmp(was, is_now) != 0)
        fprintf(out, " (was %s)", was);
}
