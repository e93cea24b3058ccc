/* fleet.c - the part of fleet.h that is the same in all programs: options, URL with its password, gates. */
#include "fleet.h"

#include "gates.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define FLEET_VARIABLE "BIDE_FLEET"

/* The URL in force. Static, because after a bad option the parser exits without a call that could free it. */
static char *current_url;

/* ---- secrets ---- */

static void wipe_current_url(void)
{
    if (current_url != NULL)
        explicit_bzero(current_url, strlen(current_url));
    free(current_url);
    current_url = NULL;
}

static bool set_url(struct cli_fleet *fleet, const char *url)
{
    char *copy = strdup(url);
    wipe_current_url();
    fleet->url = current_url = copy;
    return copy != NULL;
}

/* Returns the start of the authority part of a URL. */
static char *url_authority(char *url)
{
    char *slashes = strstr(url, "://");
    return slashes != NULL ? slashes + 3 : url;
}

/* Overwrites with '*' everything before the last '@' (a password that is not percent-encoded may itself contain '@')
 * and all options. */
static void url_mask(char *url)
{
    char *begin = url_authority(url), *at = strrchr(begin, '@');
    if (at != NULL)
        memset(begin, '*', (size_t)(at - begin));
    char *query = strchr(at != NULL ? at : begin, '?');
    if (query != NULL)
        memset(query + 1, '*', strlen(query + 1));
}

void cli_fleet_mask_argv(const struct cli_fleet *fleet)
{
    if (fleet->argument != NULL)
        url_mask(fleet->argument);
}

void cli_fleet_unmask_argv(const struct cli_fleet *fleet)
{
    if (fleet->argument != NULL && fleet->url != NULL && !fleet->from_environment)
        memcpy(fleet->argument, fleet->url, strlen(fleet->url));
}

/* Removes an option, "user=...", from a URL. */
static void url_remove_option(char *url, const char *option)
{
    char *at = strchr(url, '?');
    while (at != NULL && strncmp(at + 1, option, strlen(option)) != 0)
        at = strchr(at + 1, '&');
    if (at == NULL)
        return;
    char *next = at + 1 + strcspn(at + 1, "&");
    if (*next == '&')
        memmove(at + 1, next + 1, strlen(next + 1) + 1);
    else
        *at = '\0';
}

/* Turns "redis://user:password@host" into "redis://host", the user removed too, since a URL with a user needs a
 * password. A child that uses the result gets an authentication error from Redis, which is better than silently not
 * being in the fleet. Returns false if there was no password. */
static bool url_remove_password(char *url)
{
    char *begin = url_authority(url), *at = begin + strcspn(begin, "@/?#"), *colon = strchr(begin, ':');
    if (*at != '@' || colon == NULL || colon > at)
        return false;
    memmove(begin, at + 1, strlen(at + 1) + 1);
    url_remove_option(begin, "user=");
    return true;
}

bool cli_fleet_strip_env_password(void)
{
    const char *url = getenv(FLEET_VARIABLE);
    char *copy = url != NULL ? strdup(url) : NULL;
    if (copy == NULL)
        return url == NULL;
    size_t length = strlen(copy);
    bool ok = !url_remove_password(copy) || setenv(FLEET_VARIABLE, copy, 1) == 0;
    explicit_bzero(copy, length);
    free(copy);
    return ok;
}

void cli_fleet_wipe_url(struct cli_fleet *fleet)
{
    wipe_current_url();
    fleet->url = NULL;
}

/* ---- options ---- */

const char *cli_fleet_read_url(void *settings, const char *value)
{
    struct cli_fleet *fleet = settings;
    cli_fleet_wipe_url(fleet);
    fleet->disabled = value[0] == '\0';
    if (fleet->disabled)
        return NULL;
    if (!set_url(fleet, value))
        return "a shorter URL (out of memory)";
    fleet->argument = (char *)(uintptr_t)value; /* argv belongs to the program and is writable */
    url_mask(fleet->argument);
    return NULL;
}

static const char *read_no_fleet(void *settings, const char *value)
{
    struct cli_fleet *fleet = settings;
    (void)value;
    cli_fleet_wipe_url(fleet);
    fleet->disabled = true;
    return NULL;
}

const struct cli_option cli_fleet_options[CLI_FLEET_COUNT] = {
    {.name = "fleet",
     .value = "URL",
     .help = "lease the retries of the target from a fleet budget in Redis; default $BIDE_FLEET",
     .read = cli_fleet_read_url,
     .details =
         "`redis://[user:password@]host[:6379][/db][?option=value&...]`, `rediss://` for TLS, or `unix:///path?...`. "
         "Needs `--target NAME`: all processes with that name share the budget. Options of the URL: capacity (100) and "
         "per_minute (60) of the fleet's bucket, prefix, timeout, user, password_file, ca_file, cert_file, "
         "key_file. No call waits for Redis. If Redis cannot be reached, a message says so, and retries continue at "
         "refill_per_minute of the target's own budget. With `--shared` one process leases for all processes of the "
         "host. The budget must be of kind tokens; without a policy it is that of the preset service. `-` stands for "
         "$BIDE_FLEET, which must then be set.\n\nOther users can see an argument until it is overwritten, which "
         "happens as soon as it is parsed. They cannot see `$BIDE_FLEET` or a `password_file`. The command that is run "
         "gets `$BIDE_FLEET` without the password.",
     .may_be_empty = true},
    {.name = "no-fleet", .help = "no fleet, even if $BIDE_FLEET is set", .read = read_no_fleet},
};

const char *cli_fleet_source(const struct cli_fleet *fleet)
{
    return fleet->from_environment ? "$" FLEET_VARIABLE : "--fleet";
}

bool cli_fleet_resolve_url(const struct cli_fleet_context *context)
{
    struct cli_fleet *fleet = context->fleet;
    const struct cli_policy *options = context->options;
    const char *variable = getenv(FLEET_VARIABLE);
    bool is_dash = fleet->url != NULL && strcmp(fleet->url, "-") == 0;
    bool is_set = variable != NULL && variable[0] != '\0';
    if (is_dash && !is_set)
        return cli_fail(context->command, "--fleet -: $" FLEET_VARIABLE " must be set (it holds the URL of the fleet)"),
               false;
    if (fleet->url != NULL && options != NULL && options->target == NULL)
        return cli_fail(context->command,
                        "--fleet: needs --target NAME (a fleet budget is found by the name of its target)"),
               false;
    bool by_default = fleet->url == NULL && !fleet->disabled && options != NULL && options->target != NULL;
    if (!is_set || !(is_dash || by_default))
        return true;
    fleet->from_environment = true;
    return set_url(fleet, variable) || (cli_fail(context->command, "out of memory"), false);
}

/* ---- gates ---- */

bool cli_fleet_apply_gates(const struct cli_fleet_context *context, struct conf_policy *policy,
                           const struct bide_shared *handle)
{
    const struct cli_policy *options = context->options;
    const char *source = cli_fleet_source(context->fleet);
    static const char key[] = "budget.kind";
    char kind[256];
    if (context->fleet->url == NULL)
        return true;
    if (handle->target == NULL && cli_gates_policy_unnamed(options, policy))
        cli_gates_use_service(options, policy);
    if (policy->pair.target.budget.kind == BIDE_BUDGET_TOKENS)
        return true;
    conf_field_format(kind, conf_field_find(key, sizeof key - 1), &policy->pair);
    if (handle->target != NULL)
        cli_fail(context->command,
                 "%s: the shared target %s has budget.kind = %s: must be tokens, the only kind that a fleet leases; "
                 "use --preset service to change it, or --no-fleet",
                 source, options->target, kind);
    else
        cli_fail(context->command,
                 "%s: the policy %s has budget.kind = %s: must be tokens, the only kind that a fleet leases; use the "
                 "preset service, or --no-fleet",
                 source, policy->name, kind);
    return false;
}
