/* gates.h - which gates the target of a command has when others share it: on this host (shared.h) or in a fleet
 * (fleet.h).
 *
 * Those of the policy, if somebody named one or said a key of the target. If nobody did, those of the preset `service`:
 * a command's own preset may have none, and nobody shares nothing on purpose. */
#ifndef CLI_GATES_H
#define CLI_GATES_H

#include "policy.h"

/* Nobody named a policy: neither an option, nor the target's section, nor the environment. */
bool cli_gates_policy_unnamed(const struct cli_policy *options, const struct conf_policy *policy);

/* An option (--set) says something about the target. */
bool cli_gates_overridden(const struct cli_policy *options);

/* The gates of the preset service, but what options said. */
void cli_gates_use_service(const struct cli_policy *options, struct conf_policy *policy);

#endif
