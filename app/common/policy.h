/* policy.h - the options that all subcommands share: which policy applies, and which of its values change.
 *
 * Options are collected while they are parsed and applied afterwards, independent of their order: first the named
 * policy (--policy NAME: a section, a preset or FILE#NAME; else the section named as --target, if it exists), then the
 * short options and --set. Each short option is a key of the policy file under another name. */
#ifndef CLI_POLICY_H
#define CLI_POLICY_H

#include "conf/conf.h"

#include "options.h"

#define CLI_SETS_MAX 64u

struct cli_set {
    const struct conf_field *field; /* for one of the six lists: a row of which only the key is set */
    const char *value;
    const char *option; /* "attempts", for error messages */
};

struct cli_policy {
    const char *config; /* --config FILE */
    const char *name;   /* --policy NAME, --preset NAME */
    bool is_preset;     /* name is a preset: no file is read */
    const char *target; /* --target NAME */
    struct cli_set set[CLI_SETS_MAX];
    size_t sets;
    uint64_t seed; /* 0 without has_seed: drawn at random */
    bool has_seed;
};

/* --policy --preset --config --target --attempts --base --cap --jitter --deadline --attempt-timeout --when-refused
 * --seed --set */
#define CLI_POLICY_COUNT 13u /* a constant, because option tables are initialised with it */
extern const struct cli_option cli_policy_options[CLI_POLICY_COUNT];

/* What these options are called by curl, timeout, retry and libraries. */
#define CLI_POLICY_ADVICE_COUNT 25u
extern const struct cli_advice cli_policy_advice[CLI_POLICY_ADVICE_COUNT];

/* The option group, for a struct cli_policy that is this member of the settings. */
#define CLI_POLICY_GROUP(type, member)                                                                                 \
    {                                                                                                                  \
        .title = "Policy", .option = cli_policy_options, .count = CLI_POLICY_COUNT, .offset = offsetof(type, member),  \
        .advice = cli_policy_advice, .advice_count = CLI_POLICY_ADVICE_COUNT                                           \
    }

/* `read_row` of an option that is a key of the policy: --attempt-timeout sets attempt_timeout. */
const char *cli_policy_read_key(void *options, const char *value, const struct cli_option *option);

/* Returns true if an option (--when-refused, --set when_refused=...) sets this key. */
bool cli_policy_sets(const struct cli_policy *options, const char *key);

/* Returns the error text for an unknown key of a policy, without and with a suggestion (or NULL), as policy files have
 * it. Valid until the next call. */
const char *cli_unknown_key(const char *suggestion);

/* Computes the policy from the options; `preset` applies if no policy is named. Returns false after reporting an error;
 * policy->name is then empty if no policy of the given name exists. */
bool cli_policy_resolve(const struct cli_command *command, const struct cli_policy *options, enum bide_preset preset,
                        struct conf_policy *policy);

#endif
