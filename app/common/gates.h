/* gates.h - the gates of a target that is shared with other processes (shared.h) or with a fleet (fleet.h).
 *
 * The gates are those of the policy if the user named a policy or set a key of the target. Otherwise they are those of
 * the preset `service`: a command's own preset may have no gates, and sharing a target without gates is never
 * intended. */
#ifndef CLI_GATES_H
#define CLI_GATES_H

#include "policy.h"

/* Returns true if no policy was named: by an option, by a section of the target's name, or by $BIDE_POLICY. */
bool cli_gates_policy_unnamed(const struct cli_policy *options, const struct conf_policy *policy);

/* Returns true if an option (--set) sets a key of the target. */
bool cli_gates_overridden(const struct cli_policy *options);

/* Replaces the target's gates by those of the preset service, except keys that options set. */
void cli_gates_use_service(const struct cli_policy *options, struct conf_policy *policy);

#endif
