/* policies.h - the policies of a scenario: its own, presets, and those of policy files, found by name and kept.
 *
 * Whoever asks twice gets the same one: what was found stays where it is until all are freed. */
#ifndef SIM_POLICIES_H
#define SIM_POLICIES_H

#include "conf/diagnostics.h"

struct sim_policies {
    struct conf own;              /* the [policy NAME] sections of the file */
    struct cached_policy *cached; /* others that were found, and variations */
    bool incomplete;              /* the sections could not all be read: nobody knows which names there are */
    const char *config;           /* the policy file for names without one; NULL: the usual places */
};

/* Reads the [policy NAME] sections. What is wrong with them is told. */
void sim_policies_read(struct sim_policies *policies, struct bide_text text, struct conf_diagnostics *diagnostics);
void sim_policies_free(struct sim_policies *policies);

/* A policy of that name: of the scenario; a preset; of a policy file. NULL: `errors` says why not, in one line or more.
 * A name on the command line means the user's own policy rather than the preset that it hides. */
enum sim_policy_lookup { SIM_LOOKUP_BY_FILE, SIM_LOOKUP_BY_USER };
const struct conf_policy *sim_policy_find(struct sim_policies *policies, const char *name,
                                          enum sim_policy_lookup lookup, char errors[CONF_ERROR_MAX]);

/* A copy to be changed. NULL: no memory. */
struct conf_policy *sim_policy_copy(struct sim_policies *policies, const struct conf_policy *policy);

#endif
