/* fleet.h - the option --fleet: the retry budget of the command's target is leased from a fleet budget in Redis (see
 * bide/fleet.h).
 *
 * Secrets: the URL may contain a password. It is copied when the option is parsed, and the secret part of argv is then
 * overwritten, so that `ps` does not show it. No message contains it, and a child process does not get it in its
 * environment.
 *
 * Gates: see gates.h; the budget must be of kind tokens. With --shared the target belongs to all processes of
 * the host, and one process at a time leases for all of them.
 *
 * Which code is behind --fleet is decided at link time, because `bide` must start at once and libbide-fleet loads
 * hiredis and OpenSSL. The functions of the section "link-time choice" have these definitions:
 *
 *   program                            files of app/bide             cli_fleet_ensure_linked, if a URL is in force
 *   bide-run, bide-budget, bide-fetch  fleet_linked.c                succeeds: libbide-fleet is linked in
 *   bide                               bide.c, fleet_stub.c          execs bide-run or bide-budget
 *   any, built without libbide-fleet   fleet_missing.c, fleet_stub.c fails */
#ifndef CLI_FLEET_H
#define CLI_FLEET_H

#include <bide/fleet.h>
#include <bide/shared.h>

#include "policy.h"

/* common/fleet.c writes all fields except session, which belongs to app/bide/fleet_linked.c. */
struct cli_fleet {
    const char *url;                   /* of --fleet; after cli_fleet_ensure_linked the URL in force; NULL: no fleet */
    char *argument;                    /* the URL in argv, masked since it was parsed; NULL: --fleet was not given */
    bool disabled;                     /* --no-fleet */
    bool from_environment;             /* the URL comes from $BIDE_FLEET */
    struct cli_fleet_session *session; /* NULL: not open */
};

/* --fleet --no-fleet */
#define CLI_FLEET_COUNT 2u
extern const struct cli_option cli_fleet_options[CLI_FLEET_COUNT];

#define CLI_FLEET_GROUP(type, member)                                                                                  \
    {                                                                                                                  \
        .title = "Fleet", .option = cli_fleet_options, .count = CLI_FLEET_COUNT, .offset = offsetof(type, member)      \
    }

/* Parses --fleet, for a command whose table has its own row for it. An empty URL means --no-fleet. */
const char *cli_fleet_read_url(void *fleet, const char *value);

/* The command that uses a fleet. */
struct cli_fleet_context {
    const struct cli_command *command;
    struct cli_fleet *fleet;
    const struct cli_policy *options; /* NULL: the command has no target of its own, so $BIDE_FLEET does not apply */
};

/* ---- link-time choice ---- */

/* Resolves the fleet's URL and ensures that this program can reach a fleet if a URL is in force. Must be called before
 * the command reads or opens anything, because in `bide` itself it may exec another program. Returns false after
 * reporting an error. */
bool cli_fleet_ensure_linked(const struct cli_fleet_context *context);

/* Joins the fleet with this target and starts leasing in the background, without waiting for Redis; does nothing if no
 * fleet is in force. Returns false after reporting an error. An unreachable Redis is not an error here: it is reported
 * through cli_fleet_poll_message. */
bool cli_fleet_open(const struct cli_fleet_context *context, struct bide_target *target);

/* Copies the next message of the fleet, a line without line end ("redis://cache:6379: connection refused; ..."), and
 * removes it. Returns false if there is none. */
#define CLI_FLEET_MESSAGE_SIZE sizeof((struct bide_problem *)0)->text
bool cli_fleet_poll_message(struct cli_fleet *fleet, char text[CLI_FLEET_MESSAGE_SIZE]);

/* Leaves the fleet and returns unspent tokens. Messages of the close can be polled until cli_fleet_free. */
void cli_fleet_close(struct cli_fleet *fleet);
void cli_fleet_free(struct cli_fleet *fleet);

/* Reads the fleet budget of that name from Redis. Returns BIDE_ERR_INVALID for a bad URL. */
enum bide_err cli_fleet_read_bucket(const struct cli_fleet *fleet, const char *name, struct bide_fleet_bucket *bucket,
                                    struct bide_problem *problem);

/* ---- the same in all programs ---- */

/* Sets fleet->url from --fleet or $BIDE_FLEET. Returns false after reporting an error. */
bool cli_fleet_resolve_url(const struct cli_fleet_context *context);

/* Returns "--fleet" or "$BIDE_FLEET", the source of the URL, for messages. */
const char *cli_fleet_source(const struct cli_fleet *fleet);

/* Gives the policy the gates it has in a fleet; call it after cli_shared_open. Returns false after reporting that the
 * budget is of a kind that cannot be leased. */
bool cli_fleet_apply_gates(const struct cli_fleet_context *context, struct conf_policy *policy,
                           const struct bide_shared *handle);

/* Removes user and password from $BIDE_FLEET, so that a child does not inherit them. Modifies the environment: call it
 * before a second thread exists. Returns false if out of memory. */
bool cli_fleet_strip_env_password(void);

/* Restores the URL in argv before an exec of another program, and masks it again if the exec failed. */
void cli_fleet_unmask_argv(const struct cli_fleet *fleet);
void cli_fleet_mask_argv(const struct cli_fleet *fleet);

/* Overwrites and frees the copy of the URL. */
void cli_fleet_wipe_url(struct cli_fleet *fleet);

#endif
