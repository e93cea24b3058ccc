/* shared.c - see shared.h. */
#include "shared.h"

#include "gates.h"

#include <bide/clock.h>

const struct cli_option cli_shared_options[CLI_SHARED_COUNT] = {
    {.name = "shared",
     .help = "share the target's budget, breaker and hold-off with all processes of this user on this host",
     .kind = CLI_FLAG,
     CLI_AT(struct cli_shared, on),
     .details = "Needs `--target NAME`. Without a policy, an existing target keeps its gates, and a new target gets "
                "the budget and the breaker of the preset service. If the target cannot be shared, a message says why, "
                "and this process uses a private target. `bide budget` shows shared targets."},
    {.name = "must-share",
     .help = "like --shared, but fail if the target cannot be shared",
     .kind = CLI_FLAG,
     CLI_AT(struct cli_shared, must),
     CLI_GIVEN(struct cli_shared, on)},
    {.name = "shared-dir",
     .value = "DIRECTORY",
     .help = "directory of the shared targets; default $BIDE_SHARED_DIR, $XDG_RUNTIME_DIR/bide or /dev/shm/bide-UID",
     .kind = CLI_STRING,
     CLI_AT(struct cli_shared, directory),
     .completion = CLI_COMPLETE_DIRECTORY},
};

/* ---- opening ---- */

static bool config_has_gates(const struct bide_target_config *c)
{
    return c->budget.kind != BIDE_BUDGET_NONE || c->breaker.kind != BIDE_BREAKER_OFF || c->throttle_k_milli > 0 ||
           c->key_retries > 0;
}

/* Opens an existing target and takes over its gates. Returns false if there is none. */
static bool join_existing(const struct cli_shared_context *context, struct conf_policy *policy,
                          struct bide_shared *handle)
{
    struct bide_shared_options options = {.directory = context->shared->directory, .must_exist = true};
    struct bide_problem problem;
    if (bide_shared_open(handle, context->options->target, NULL, &options, bide_now(), &problem) != BIDE_OK)
        return false;
    bide_target_config_get(handle->target, &policy->pair.target);
    return true;
}

static bool open_or_create(const struct cli_shared_context *context, const struct conf_policy *policy,
                           struct bide_shared *handle)
{
    const struct cli_shared *shared = context->shared;
    struct bide_shared_options options = {.directory = shared->directory, .private_instead = !shared->must};
    struct bide_problem problem;
    if (bide_shared_open(handle, context->options->target, &policy->pair.target, &options, bide_now(), &problem) !=
        BIDE_OK) {
        cli_fail(context->command, "--target %s cannot be shared: %s", context->options->target, problem.text);
        return false;
    }
    if (!handle->shared && !context->quiet)
        cli_report(context->command, "--target %s is not shared: %s", context->options->target, problem.text);
    else if (problem.text[0] != '\0' && !context->quiet) /* shared, but with a restriction that the text describes */
        cli_report(context->command, "--target %s", problem.text);
    return true;
}

bool cli_shared_open(const struct cli_shared_context *context, struct conf_policy *policy, struct bide_shared *handle)
{
    const struct cli_shared *shared = context->shared;
    const struct cli_policy *options = context->options;
    *handle = (struct bide_shared){0};
    if (!shared->on && shared->directory != NULL)
        return cli_fail(context->command, "--shared-dir %s: needs --shared", shared->directory), false;
    if (!shared->on)
        return true;
    if (options->target == NULL)
        return cli_fail(context->command, "%s: needs --target NAME (a shared target is found by its name)",
                        shared->must ? "--must-share" : "--shared"),
               false;
    bide_shared_guard();
    if (cli_gates_policy_unnamed(options, policy) && !cli_gates_overridden(options) &&
        join_existing(context, policy, handle))
        return true;
    if (cli_gates_policy_unnamed(options, policy))
        cli_gates_use_service(options, policy);
    if (!config_has_gates(&policy->pair.target) && !context->quiet)
        cli_report(
            context->command,
            "--shared: the policy %s has neither a budget nor a breaker: only the hold-off of a server is shared",
            policy->name);
    return open_or_create(context, policy, handle);
}
