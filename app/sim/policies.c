/* policies.c - the policies of a scenario: its own, presets, and those of policy files. */
#include "policies.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/conf_internal.h"
#include "conf/suggest.h"

struct held {
    struct held *next;
    char *name; /* as it was asked for; empty: a variation, which nobody asks for */
    enum sim_asker asker;
    struct conf_policy policy;
};

/* ---- the file's own ---- */

void sim_policies_read(struct sim_policies *policies, struct bide_text text, struct conf_diagnostics *told)
{
    unsigned before = told->count;
    conf_ini_read(&policies->own, text, told);
    policies->unsure = told->count > before;
}

/* ---- those that were found ---- */

static struct held *hold(struct sim_policies *policies, const char *name, enum sim_asker asker)
{
    struct held *held = calloc(1, sizeof *held);
    if (held == NULL)
        return NULL;
    held->name = strdup(name);
    held->asker = asker;
    if (held->name == NULL) {
        free(held);
        return NULL;
    }
    held->next = policies->held;
    policies->held = held;
    return held;
}

static void let_go(struct sim_policies *policies)
{
    struct held *first = policies->held;
    policies->held = first->next;
    free(first->name);
    free(first);
}

void sim_policies_free(struct sim_policies *policies)
{
    while (policies->held != NULL)
        let_go(policies);
    conf_free(&policies->own);
}

static const struct conf_policy *known(const struct sim_policies *policies, const char *name, enum sim_asker asker)
{
    for (size_t i = 0; i < policies->own.count; i++)
        if (strcmp(policies->own.policy[i].name, name) == 0)
            return &policies->own.policy[i];
    for (const struct held *held = policies->held; held != NULL; held = held->next)
        if (held->name[0] != '\0' && held->asker == asker && strcmp(held->name, name) == 0)
            return &held->policy;
    return NULL;
}

/* What the scenario itself has is nearer than what conf_find would propose. */
static void not_found(const struct sim_policies *policies, const char *name, char errors[CONF_ERROR_MAX])
{
    struct conf_suggestion near = {name, strlen(name), NULL, 0};
    for (size_t i = 0; i < policies->own.count; i++)
        conf_suggestion_consider(&near, policies->own.policy[i].name, policies->own.policy[i].name);
    if (near.found != NULL)
        snprintf(errors, CONF_ERROR_MAX, "no policy named %s; did you mean %s?",
                 conf_printable(name, strlen(name)).text, near.found);
}

const struct conf_policy *sim_policy_find(struct sim_policies *policies, const char *name, enum sim_asker asker,
                                          char errors[CONF_ERROR_MAX])
{
    const struct conf_policy *policy = known(policies, name, asker);
    enum bide_preset preset = bide_preset_by_name(name, strlen(name));
    if (policy != NULL)
        return policy;
    struct held *held = hold(policies, name, asker);
    if (held == NULL) {
        snprintf(errors, CONF_ERROR_MAX, "no memory");
        return NULL;
    }
    if (preset != BIDE_PRESET_COUNT && asker == SIM_ASKED_BY_FILE) {
        conf_policy_init(&held->policy, preset);
        return &held->policy;
    }
    if (conf_find(&held->policy, policies->config, name, errors))
        return &held->policy;
    let_go(policies);
    if (strchr(name, '#') == NULL && strncmp(errors, "no policy named ", 16) == 0)
        not_found(policies, name, errors);
    return NULL;
}

struct conf_policy *sim_policy_copy(struct sim_policies *policies, const struct conf_policy *policy)
{
    struct held *held = hold(policies, "", SIM_ASKED_BY_FILE);
    if (held == NULL)
        return NULL;
    held->policy = *policy;
    return &held->policy;
}
