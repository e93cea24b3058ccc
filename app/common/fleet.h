/* fleet.h - --fleet: the budget of a command's target is one for a whole fleet, in Redis. See bide/fleet.h.
 *
 * A URL may hold a password. It is copied when it is read, and what is secret in the argument is overwritten; it is not
 * said in any message, and the command that is run does not find it in its environment.
 *
 * Which gates the target has: see gates.h; its budget must be of tokens. With --shared as well it is the target of the
 * host, for which one process at a time leases.
 *
 * `bide` must start at once, and libbide-fleet brings hiredis and OpenSSL. So what is done with a fleet stands behind a
 * seam, and each program is linked with one of three files: app/bide/fleet_linked.c does it (bide-run, bide-budget,
 * bide-fetch); `bide` itself (app/bide/bide.c, over app/bide/fleet_stub.c) becomes bide-run or bide-budget, the
 * same command with the library inside; app/bide/fleet_missing.c says that this build has no fleets. */
#ifndef CLI_FLEET_H
#define CLI_FLEET_H

#include <bide/fleet.h>
#include <bide/shared.h>

#include "policy.h"

struct cli_fleet {
    const char *url;       /* of --fleet; after cli_fleet_ensure_linked: of the fleet that is in force. NULL: none */
    char *argument;        /* where --fleet said it, overwritten since; NULL: it did not */
    bool disabled;         /* --no-fleet */
    bool from_environment; /* $BIDE_FLEET said it */
    struct cli_fleet_session *session; /* to the fleet; NULL: it is not open */
};

/* --fleet --no-fleet */
#define CLI_FLEET_COUNT 2u
extern const struct cli_option cli_fleet_options[CLI_FLEET_COUNT];

#define CLI_FLEET_GROUP(type, member)                                                                                  \
    {                                                                                                                  \
        "Fleet", cli_fleet_options, CLI_FLEET_COUNT, offsetof(type, member)                                            \
    }

/* Reads --fleet, for a table that has a row of its own for it. */
const char *cli_fleet_read_url(void *fleet, const char *value);

/* Whose fleet it is. */
struct cli_fleet_context {
    const struct cli_command *command;
    struct cli_fleet *fleet;
    const struct cli_policy *options; /* NULL: the command has no target of its own, and $BIDE_FLEET does not count */
};

/* ---- the seam ---- */

/* First of all, before anything is read or opened: settles whether there is a fleet, and whether this program can reach
 * one. False: it was said what is wrong. */
bool cli_fleet_ensure_linked(const struct cli_fleet_context *context);

/* Leases for that target from now on, without waiting for anything; does nothing if there is no fleet. False: it was
 * said what is wrong. Redis that cannot be reached is not wrong: cli_fleet_poll_message tells. */
bool cli_fleet_open(const struct cli_fleet_context *context, struct bide_target *target, bool shared);

/* What there is to be said, a line without its end: "redis://cache:6379: connection refused; ...". False: nothing. */
#define CLI_FLEET_MESSAGE_SIZE sizeof(struct bide_fleet_problem)
bool cli_fleet_poll_message(struct cli_fleet *fleet, char text[CLI_FLEET_MESSAGE_SIZE]);

/* Gives back what is unspent. What there is to be said then can still be asked for, until cli_fleet_free. */
void cli_fleet_close(struct cli_fleet *fleet);
void cli_fleet_free(struct cli_fleet *fleet);

/* What lies in Redis under that name. BIDE_ERR_INVALID: the URL is wrong. */
enum bide_err cli_fleet_read_bucket(const struct cli_fleet *fleet, const char *name, struct bide_fleet_bucket *bucket,
                                    struct bide_fleet_problem *problem);

/* ---- what stands in front of it ---- */

/* The part of cli_fleet_ensure_linked that is the same in all programs. */
bool cli_fleet_resolve_url(const struct cli_fleet_context *context);

/* "--fleet" or "$BIDE_FLEET": who said it. */
const char *cli_fleet_source(const struct cli_fleet *fleet);

/* The policy's gates as they hold in a fleet, once --shared has had its say. False: its budget is none that could be
 * leased, and that was said. */
bool cli_fleet_apply_gates(const struct cli_fleet_context *context, struct conf_policy *policy,
                           const struct bide_shared *handle);

/* A password in $BIDE_FLEET is not for the command that is run: it finds the URL without it. Before there is a second
 * thread: it writes the environment. False: no memory. */
bool cli_fleet_strip_env_password(void);

/* The argument as it was, for who becomes another program; and overwritten again, if that failed. */
void cli_fleet_unmask_argv(const struct cli_fleet *fleet);
void cli_fleet_mask_argv(const struct cli_fleet *fleet);

/* Wipes the copy of the URL. */
void cli_fleet_wipe_url(struct cli_fleet *fleet);

#endif
