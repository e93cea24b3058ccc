/* policies.c - the policies of a scenario: its own, presets, and those of policy files. */
#include "policies.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/conf_internal.h"
#include "conf/suggest.h"

struct cached_policy {
    struct cached_policy *next;
    char *name; /* as requested; empty: a modified copy, which is not found by name */
    enum sim_policy_lookup lookup;
    struct conf_policy policy;
};

/* ---- policies of the scenario file ---- */

void sim_policies_read(struct sim_policies *policies, const struct conf_ini *ini, struct conf_diagnostics *diagnostics)
{
    unsigned before = diagnostics->count;
    conf_policies_read(&policies->own, ini, "policy", diagnostics);
    policies->incomplete = diagnostics->count > before;
}

/* ---- cache ---- */

static struct cached_policy *cache_add(struct sim_policies *policies, const char *name, enum sim_policy_lookup lookup)
{
    struct cached_policy *cached = calloc(1, sizeof *cached);
    if (cached == NULL)
        return NULL;
    cached->name = strdup(name);
    cached->lookup = lookup;
    if (cached->name == NULL) {
        free(cached);
        return NULL;
    }
    cached->next = policies->cached;
    policies->cached = cached;
    return cached;
}

static void cache_drop_first(struct sim_policies *policies)
{
    struct cached_policy *first = policies->cached;
    policies->cached = first->next;
    free(first->name);
    free(first);
}

void sim_policies_free(struct sim_policies *policies)
{
    while (policies->cached != NULL)
        cache_drop_first(policies);
    conf_free(&policies->own);
}

static const struct conf_policy *cache_find(const struct sim_policies *policies, const char *name,
                                            enum sim_policy_lookup lookup)
{
    for (size_t i = 0; i < policies->own.count; i++)
        if (strcmp(policies->own.policy[i].name, name) == 0)
            return &policies->own.policy[i];
    for (const struct cached_policy *cached = policies->cached; cached != NULL; cached = cached->next)
        if (cached->name[0] != '\0' && cached->lookup == lookup && strcmp(cached->name, name) == 0)
            return &cached->policy;
    return NULL;
}

/* Replaces the suggestion of conf_find by a similar name of the scenario itself. */
static void report_nearest_own(const struct sim_policies *policies, const char *name, char errors[CONF_ERROR_MAX])
{
    struct conf_suggestion suggestion = {.word = name, .length = strlen(name)};
    for (size_t i = 0; i < policies->own.count; i++)
        conf_suggestion_consider(&suggestion, policies->own.policy[i].name, policies->own.policy[i].name);
    if (suggestion.found != NULL)
        snprintf(errors, CONF_ERROR_MAX, "no policy named %s; did you mean %s?",
                 conf_printable(name, strlen(name)).text, suggestion.found);
}

const struct conf_policy *sim_policy_find(struct sim_policies *policies, const char *name,
                                          enum sim_policy_lookup lookup, char errors[CONF_ERROR_MAX])
{
    const struct conf_policy *policy = cache_find(policies, name, lookup);
    enum bide_preset preset = bide_preset_by_name(name, strlen(name));
    if (policy != NULL)
        return policy;
    struct cached_policy *cached = cache_add(policies, name, lookup);
    if (cached == NULL) {
        snprintf(errors, CONF_ERROR_MAX, "no memory");
        return NULL;
    }
    if (preset != BIDE_PRESET_COUNT && lookup == SIM_LOOKUP_BY_FILE) {
        conf_policy_init(&cached->policy, preset);
        return &cached->policy;
    }
    if (conf_find(&cached->policy, policies->config, name, errors))
        return &cached->policy;
    cache_drop_first(policies);
    if (strchr(name, '#') == NULL && strncmp(errors, "no policy named ", 16) == 0)
        report_nearest_own(policies, name, errors);
    return NULL;
}

struct conf_policy *sim_policy_copy(struct sim_policies *policies, const struct conf_policy *policy)
{
    struct cached_policy *cached = cache_add(policies, "", SIM_LOOKUP_BY_FILE);
    if (cached == NULL)
        return NULL;
    cached->policy = *policy;
    return &cached->policy;
}
