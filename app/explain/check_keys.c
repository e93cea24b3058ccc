/* check_keys.c - checks of settings that have no effect.
 *
 * A file does not record which keys it contains: a key counts as set if its value differs from that of the preset.
 * Known weakness: a key that a section inherits from another section counts as set, too. */
#include <stdio.h>
#include <string.h>

#include "check.h"

/* Returns true if the other key turns its whole mechanism off: hedges_max = 0 for hedge_delay. */
static bool key_is_off(const struct conf_field *key, const struct conf_pair *pair)
{
    char text[256];
    conf_field_format(text, key, pair);
    return strcmp(text, "none") == 0 || strcmp(text, "off") == 0 || strcmp(text, "0") == 0 || strcmp(text, "0x") == 0 ||
           strcmp(text, "1") == 0 || strcmp(text, "ignore") == 0;
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
    bool off = true;
    for (size_t i = 0; (field = conf_field(i)) != NULL; i++) {
        const struct conf_field *obstacle = conf_field_obstacle(field, pair);
        if (v->subject->policy == NULL || obstacle == NULL || key_is_inherited(v, field->key))
            continue;
        off &= key_is_off(obstacle, pair);
        key_list_add(&keys, field, obstacle, pair);
    }
    if (keys.length == 0)
        return CHECK_NONE;
    if (keys.left_out > 0)
        snprintf(keys.text + keys.length, sizeof keys.text - keys.length, " and %u more", keys.left_out);
    finding_set_text(v->f, "keys without effect: %s", keys.text);
    finding_set_fix(v->f, "remove them, or change the key in parentheses");
    return off ? EXPLAIN_NOTE : EXPLAIN_WARNING;
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
