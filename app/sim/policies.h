/* policies.h - the policies of a scenario: its own, presets, and those of policy files, found by name and cached.
 *
 * The same name always gives the same pointer, which is valid until all policies are freed. */
#ifndef SIM_POLICIES_H
#define SIM_POLICIES_H

#include "conf/ini.h"

struct sim_policies {
    struct conf own;              /* the [policy NAME] sections of the file */
    struct cached_policy *cached; /* policies found elsewhere, and modified copies */
    bool incomplete;              /* some sections are invalid: a missing name may be one of them */
    const char *config;           /* the policy file for names without a file; NULL: the default locations */
};

/* Reads the [policy NAME] sections and reports their mistakes. */
void sim_policies_read(struct sim_policies *policies, const struct conf_ini *ini, struct conf_diagnostics *diagnostics);
void sim_policies_free(struct sim_policies *policies);

/* Finds a policy by name: of the scenario; a preset; of a policy file. Returns NULL after writing the reason to
 * `errors`, a line or more. For a name on the command line the user's own policy hides a preset of the same name. */
enum sim_policy_lookup { SIM_LOOKUP_BY_FILE, SIM_LOOKUP_BY_USER };
const struct conf_policy *sim_policy_find(struct sim_policies *policies, const char *name,
                                          enum sim_policy_lookup lookup, char errors[CONF_ERROR_MAX]);

/* Returns a copy that may be modified; NULL without memory. */
struct conf_policy *sim_policy_copy(struct sim_policies *policies, const struct conf_policy *policy);

#endif
