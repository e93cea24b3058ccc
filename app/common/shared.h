/* shared.h - --shared: the target of a command is that of all processes of this host. See bide/shared.h.
 *
 * Which gates it has: see gates.h. If nobody said anything of them, a target that is there keeps what it has.
 *
 * A target that cannot be shared is one of this process's own instead, and a line on stderr says why; with --must-share
 * that is an error. */
#ifndef CLI_SHARED_H
#define CLI_SHARED_H

#include <bide/shared.h>

#include "policy.h"

struct cli_shared {
    bool on;
    bool must;
    const char *directory; /* NULL: bide_shared_directory */
};

/* --shared --must-share --shared-dir */
#define CLI_SHARED_COUNT 3u
extern const struct cli_option cli_shared_options[CLI_SHARED_COUNT];

#define CLI_SHARED_GROUP(type, member)                                                                                 \
    {                                                                                                                  \
        "Sharing", cli_shared_options, CLI_SHARED_COUNT, offsetof(type, member)                                        \
    }

/* What is to be opened, and for whom. */
struct cli_shared_context {
    const struct cli_command *command;
    const struct cli_shared *shared;
    const struct cli_policy *options;
    bool quiet; /* say nothing but errors */
};

/* Opens the target, if it is to be shared; else `host` stays closed, its target NULL. `policy` is what the options came
 * to, and gets the gates that hold. False: it was said what is wrong. */
bool cli_shared_open(const struct cli_shared_context *context, struct conf_policy *policy, struct bide_shared *handle);

#endif
