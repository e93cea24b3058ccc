/* policy.h - the options that mean the same on every subcommand: which policy, and what of it is different now.
 *
 * They are collected as they come and applied together: first the policy that is named (--policy NAME, a section, a
 * preset or FILE#NAME; without it the section named as --target, if there is one), then the short options and --set,
 * whatever their order. Each short option is a key of the policy file under another name. */
#ifndef CLI_POLICY_H
#define CLI_POLICY_H

#include "conf/conf.h"

#include "options.h"

#define CLI_SETS_MAX 64u

struct cli_set {
    const struct conf_field *field; /* for one of the six lists, a row that has nothing but its key */
    const char *value;
    const char *option; /* "--attempts", for messages */
};

struct cli_policy {
    const char *config; /* --config FILE */
    const char *name;   /* --policy NAME, --preset NAME */
    bool is_preset;     /* the latter: no file is asked */
    const char *target; /* --target NAME */
    struct cli_set set[CLI_SETS_MAX];
    size_t sets;
    uint64_t seed; /* 0: drawn */
    bool has_seed;
};

/* --policy --preset --config --target --attempts --base --cap --jitter --deadline --attempt-timeout --seed --set */
#define CLI_POLICY_COUNT 12u /* a constant: tables are initialised with it */
extern const struct cli_option cli_policy_options[CLI_POLICY_COUNT];

/* The whole group, for a struct cli_policy at that offset in the settings. */
#define CLI_POLICY_GROUP(type, member)                                                                                 \
    {                                                                                                                  \
        "Policy", cli_policy_options, CLI_POLICY_COUNT, offsetof(type, member)                                         \
    }

/* What the options come to. `preset` is what holds when no policy is named. On a mistake it is told on stderr, and
 * false is returned; the policy's name is then empty if there is none of the name that was given. */
bool cli_policy_resolve(const struct cli_command *command, const struct cli_policy *options, enum bide_preset preset,
                        struct conf_policy *policy);

#endif
