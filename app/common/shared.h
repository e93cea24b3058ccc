/* shared.h - the option --shared: the command's target is shared with all processes of this user on this host (see
 * bide/shared.h).
 *
 * Gates: see gates.h. An existing target keeps its gates unless the user named a policy or set a key of the target.
 *
 * If the target cannot be shared, the process uses a private target and reports the reason on stderr; with --must-share
 * that is an error. */
#ifndef CLI_SHARED_H
#define CLI_SHARED_H

#include <bide/shared.h>

#include "policy.h"

struct cli_shared {
    bool on;
    bool must;
    const char *directory; /* NULL: the default of bide_shared_directory */
};

/* --shared --must-share --shared-dir */
#define CLI_SHARED_COUNT 3u
extern const struct cli_option cli_shared_options[CLI_SHARED_COUNT];

#define CLI_SHARED_GROUP(type, member)                                                                                 \
    {                                                                                                                  \
        .title = "Sharing", .option = cli_shared_options, .count = CLI_SHARED_COUNT, .offset = offsetof(type, member)  \
    }

/* The command that opens a shared target. */
struct cli_shared_context {
    const struct cli_command *command;
    const struct cli_shared *shared;
    const struct cli_policy *options;
    bool quiet; /* report errors only */
};

/* Opens the target if --shared was given; otherwise handle->target stays NULL. `policy` is the result of
 * cli_policy_resolve; its gates are replaced by those in force. Returns false after reporting an error. */
bool cli_shared_open(const struct cli_shared_context *context, struct conf_policy *policy, struct bide_shared *handle);

#endif
