/* policy.c - see policy.h. The form of each option is checked when it is parsed, the policy as a whole after all
 * options.
 *
 * The policy is the first of these that exists: the policy named by --policy or --preset; the section with the name of
 * --target; the policy named by $BIDE_POLICY; the section [default] of the file given by --config or $BIDE_CONFIG; the
 * command's preset. A --config file without an applicable section is an error, because the user would expect its values
 * to apply. No file is searched for unless an option or variable requires a policy, so that a bide.conf in the working
 * directory has no effect on, and costs no time in, commands that need no policy. */
#include "policy.h"

#include "conf/suggest.h"

#include <bide/targets.h>

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_SECTION "default"

/* ---- option parsers ---- */

static const char *const presets[] = {
#define PRESET_NAME(NAME, label, purpose) label,
    BIDE_PRESET_LIST(PRESET_NAME)
#undef PRESET_NAME
        NULL,
};

static const char *read_policy(void *settings, const char *value)
{
    struct cli_policy *options = settings;
    options->name = value;
    options->is_preset = false;
    return NULL;
}

static const char *read_preset(void *settings, const char *value)
{
    static char want[96];
    struct cli_policy *options = settings;
    if (bide_preset_by_name(value, strlen(value)) == BIDE_PRESET_COUNT) {
        const char *suggestion = conf_suggest(value, strlen(value), presets);
        snprintf(want, sizeof want, "a preset such as %s (bide help presets lists them)",
                 suggestion != NULL ? suggestion : "service");
        return want;
    }
    options->name = value;
    options->is_preset = true;
    return NULL;
}

static const char *read_target(void *settings, const char *value)
{
    if (bide_targets_name_check(value, NULL) != BIDE_OK)
        return "a name of 1 to 127 bytes without control characters";
    ((struct cli_policy *)settings)->target = value;
    return NULL;
}

/* The six lists are not fields of the engine's structs, so the field table has no rows for them. */
static const struct conf_field list_rows[] = {
    {.key = "retry_status"},   {.key = "permanent_status"}, {.key = "retry_exit"},
    {.key = "permanent_exit"}, {.key = "retry_grpc"},       {.key = "permanent_grpc"},
};

static const struct conf_field *key_row(const struct conf_key *key)
{
    if (key->field != NULL)
        return key->field;
    for (size_t i = 0; i < sizeof list_rows / sizeof *list_rows; i++)
        if (strcmp(list_rows[i].key, conf_key_name(key)) == 0)
            return &list_rows[i];
    return NULL;
}

/* Assigns a value to a key. Returns NULL, or the valid form. */
static const char *policy_assign_key(struct conf_policy *policy, const struct conf_field *row, const char *value)
{
    struct conf_key key;
    (void)conf_key_find(&key, row->key, strlen(row->key));
    return conf_key_assign(&key, policy, value);
}

/* Parses a value into a scratch policy to check its form, and stores it. Returns NULL, or the valid form. */
static const char *options_add_set(void *settings, const char *option, const struct conf_field *row, const char *value)
{
    struct cli_policy *options = settings;
    struct conf_policy scratch;
    conf_policy_init(&scratch, BIDE_PRESET_SERVICE);
    const char *want = policy_assign_key(&scratch, row, value);
    if (want != NULL)
        return want;
    if (options->sets == CLI_SETS_MAX)
        return "one of at most 64 options that change a policy";
    options->set[options->sets++] = (struct cli_set){.field = row, .value = value, .option = option};
    return NULL;
}

const char *cli_unknown_key(const char *suggestion)
{
    static char text[96];
    if (suggestion == NULL)
        return "no such key (bide help policy-file lists them)";
    snprintf(text, sizeof text, "no such key; did you mean %s?", suggestion);
    return text;
}

/* Parses "key=value". */
static const char *read_set(void *settings, const char *value)
{
    size_t length = strcspn(value, "=");
    struct conf_key key;
    if (value[length] != '=')
        return "KEY=VALUE, such as budget.capacity=20";
    if (conf_key_find(&key, value, length))
        return options_add_set(settings, "set", key_row(&key), value + length + 1);
    if (strncmp(value, "extends=", length + 1) == 0)
        return "given as --policy NAME (extends is the base of a policy, not a value)";
    return cli_unknown_key(conf_key_suggest(value, length, ""));
}

const char *cli_policy_read_key(void *settings, const char *value, const struct cli_option *option)
{
    char key[32];
    size_t length = strlen(option->name);
    assert(length < sizeof key);
    memcpy(key, option->name, length + 1);
    for (char *dash = key; (dash = strchr(dash, '-')) != NULL;)
        *dash = '_';
    return options_add_set(settings, option->name, conf_field_find(key, length), value);
}

/* ---- option table ---- */

static const char *const when_refused[] = {"give_up", "wait", NULL};
static const char *const jitters[] = {"full", "equal", "decorrelated", "none", NULL};

const struct cli_option cli_policy_options[CLI_POLICY_COUNT] = {
    {.name = "policy",
     .value = "NAME",
     .help = "use this policy: a section of bide.conf, a preset, or FILE#NAME",
     .read = read_policy,
     .completion = CLI_COMPLETE_POLICY,
     .details = "`bide help policies` lists the names. A section takes precedence over a preset of the same name."},
    {.name = "preset",
     .value = "NAME",
     .help = "use this preset, even if a file has a section of its name",
     .read = read_preset,
     .choices = presets,
     .details = "`bide help presets` lists them. The last of --policy and --preset applies."},
    {.name = "config",
     .value = "FILE",
     .help = "read policies from this file instead of bide.conf",
     .kind = CLI_STRING,
     CLI_AT(struct cli_policy, config),
     .completion = CLI_COMPLETE_FILE,
     .details = "Without --policy, its section with the name of --target applies, else its section [default]. A file "
                "with neither is an error, because it would have no effect. `-` reads standard input."},
    {.name = "target",
     .value = "NAME",
     .help = "name of the dependency; its section of bide.conf is the policy",
     .read = read_target,
     .details = "A target need not have a section; a name that resembles that of a section is an error. The calls of "
                "one `bide` process share its budget and breaker; several processes share them only with --shared of "
                "run and fetch.",
     .completion = CLI_COMPLETE_POLICY},
    {.name = "attempts",
     .value = "N",
     .help = "number of attempts, including the first; 1 means no retry; or unlimited",
     .read_row = cli_policy_read_key},
    {.name = "base",
     .value = "DURATION",
     .help = "longest wait before the first retry, doubled for each further retry: 200ms, 1.5s, 2m",
     .read_row = cli_policy_read_key},
    {.name = "cap",
     .value = "DURATION",
     .help = "longest wait, unless the server requests a longer one",
     .read_row = cli_policy_read_key},
    {.name = "jitter",
     .value = "KIND",
     .help = "how a wait is drawn: full, equal, decorrelated or none",
     .read_row = cli_policy_read_key,
     .choices = jitters,
     .details = "full: between 0 and the longest wait; equal: between half of it and all of it; decorrelated: between "
                "base and three times the previous wait; none: always the longest, so that clients that failed "
                "together retry together. The kinds that only policy files need (decorrelated_aws, proportional, "
                "additive) are accepted as well."},
    {.name = "deadline",
     .value = "DURATION",
     .help = "time limit of the call with all attempts and waits; never: no limit",
     .read_row = cli_policy_read_key},
    {.name = "attempt-timeout",
     .value = "DURATION",
     .help = "time limit of each attempt; never: only the deadline",
     .read_row = cli_policy_read_key},
    {.name = "when-refused",
     .value = "ACTION",
     .help = "when the circuit breaker, the budget or another gate refuses: give_up or wait",
     .read_row = cli_policy_read_key,
     .choices = when_refused,
     .details = "wait: until the gate may admit the next attempt, as long as an attempt then still fits before the "
                "deadline; all waits together take at most waits_max."},
    {.name = "seed",
     .value = "N",
     .help = "seed of the random waits, to repeat them",
     .kind = CLI_COUNT,
     CLI_AT(struct cli_policy, seed),
     CLI_GIVEN(struct cli_policy, has_seed),
     .details = "Without it each call draws a seed, so that clients that failed together retry at different times."},
    {.name = "set",
     .value = "KEY=VALUE",
     .help = "set a key of the policy; may be repeated",
     .read = read_set,
     .value_key = conf_key_name_at,
     .details = "`bide help policy-file` and bide.conf(5) list the keys. A list, such as retry_exit=1,75, replaces the "
                "list of the policy."},
};

/* ---- advice ---- */

#define ADVICE_TIMEOUT  "use --attempt-timeout (per attempt) or --deadline (all)"
#define ADVICE_DEADLINE "use --deadline DURATION"
#define ADVICE_RETRIES  "use --attempts N+1: it counts the first attempt, too"
#define ADVICE_ATTEMPTS "use --attempts N"
#define ADVICE_BASE     "use --base DURATION (--set backoff=fixed: no growth)"
#define ADVICE_CAP      "use --cap DURATION"

const struct cli_advice cli_policy_advice[CLI_POLICY_ADVICE_COUNT] = {
    {"--timeout", ADVICE_TIMEOUT},
    {"-t", ADVICE_TIMEOUT},
    {"--time-limit", ADVICE_DEADLINE},
    {"--max-time", ADVICE_DEADLINE},
    {"--total-timeout", ADVICE_DEADLINE},
    {"--retry-max-time", ADVICE_DEADLINE},
    {"--retry", ADVICE_RETRIES},
    {"--retries", ADVICE_RETRIES},
    {"--max-retries", ADVICE_RETRIES},
    {"--retry-count", ADVICE_RETRIES},
    {"-r", ADVICE_RETRIES},
    {"--tries", ADVICE_ATTEMPTS},
    {"--max-attempts", ADVICE_ATTEMPTS},
    {"--max-tries", ADVICE_ATTEMPTS},
    {"--times", ADVICE_ATTEMPTS},
    {"-n", ADVICE_ATTEMPTS},
    {"--delay", ADVICE_BASE},
    {"--interval", ADVICE_BASE},
    {"--sleep", ADVICE_BASE},
    {"--wait", ADVICE_BASE},
    {"--backoff", ADVICE_BASE},
    {"--retry-delay", ADVICE_BASE},
    {"--max-delay", ADVICE_CAP},
    {"--max-interval", ADVICE_CAP},
    {"--max-backoff", ADVICE_CAP},
};

/* ---- resolving ---- */

/* Reports the lines; the variable that named policy or file, or NULL, precedes each. Returns false. */
static bool report_errors(const struct cli_command *command, const char *variable, const char *errors)
{
    for (size_t length; *errors != '\0'; errors += length + (errors[length] == '\n')) {
        length = strcspn(errors, "\n");
        cli_report(command, "%s%s%.*s", variable != NULL ? variable : "", variable != NULL ? ": " : "", (int)length,
                   errors);
    }
    return false;
}

/* Returns the value of a variable, or NULL if it is empty or not set. */
static const char *variable_get(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* Returns the file named by --config, or by $BIDE_CONFIG after setting *variable; NULL: none. */
static const char *named_file(const struct cli_policy *options, const char **variable)
{
    const char *file = variable_get("BIDE_CONFIG");
    *variable = options->config == NULL && file != NULL ? "$BIDE_CONFIG" : NULL;
    return options->config != NULL ? options->config : file;
}

static bool section_copy(const struct conf *conf, const char *name, struct conf_policy *policy)
{
    for (size_t i = 0; i < conf->count; i++)
        if (strcmp(conf->policy[i].name, name) == 0) {
            *policy = conf->policy[i];
            return true;
        }
    return false;
}

/* shard-1 and shard-2 are two targets, not a misspelling. */
static bool names_differ_in_digits_only(const char *one, const char *other)
{
    static const char digits[] = "0123456789";
    for (;; one++, other++) {
        one += strspn(one, digits);
        other += strspn(other, digits);
        if (*one != *other)
            return false;
        if (*one == '\0')
            return true;
    }
}

/* A target need not have a section, but a name close to that of a section is probably a typing error, and using the
 * default policy would hide it. Returns false after reporting that. */
static bool target_check_spelling(const struct cli_command *command, const struct conf *conf, const char *target,
                                  const char *file)
{
    struct conf_suggestion suggestion = {.word = target, .length = strlen(target)};
    for (size_t i = 0; i < conf->count; i++)
        if (!names_differ_in_digits_only(target, conf->policy[i].name))
            conf_suggestion_consider(&suggestion, conf->policy[i].name, conf->policy[i].name);
    if (suggestion.found != NULL)
        cli_fail(command, "--target %s: %s has no such section; did you mean %s?", target, file, suggestion.found);
    return suggestion.found == NULL;
}

/* Used if no policy was named: takes the section of the target, $BIDE_POLICY, [default] of a named file, or the
 * preset. */
static bool find_default_policy(const struct cli_command *command, const struct cli_policy *options,
                                struct conf_policy *policy)
{
    char errors[CONF_ERROR_MAX], path[CONF_PATH_MAX];
    const char *variable, *name = variable_get("BIDE_POLICY"), *file = named_file(options, &variable);
    struct conf conf = {0};
    bool found = false, ok = true;
    if (file == NULL && options->target != NULL && conf_default_path(path))
        file = path;
    if (file != NULL && !conf_read(&conf, file, errors))
        return report_errors(command, variable, errors);
    if (options->target != NULL)
        found = section_copy(&conf, options->target, policy);
    if (!found && options->target != NULL && !target_check_spelling(command, &conf, options->target, file)) {
        conf_free(&conf);
        return false;
    }
    if (!found && name != NULL) {
        ok = section_copy(&conf, name, policy) || conf_find(policy, file, name, errors) ||
             report_errors(command, "$BIDE_POLICY", errors);
        found = true;
    }
    if (!found && file != NULL && file != path)
        found = section_copy(&conf, DEFAULT_SECTION, policy);
    if (!found && options->config != NULL) {
        cli_fail(command, "--config %s: needs --policy NAME, or a section [%s%s" DEFAULT_SECTION "] in the file",
                 options->config, options->target != NULL ? options->target : "",
                 options->target != NULL ? "] or [" : "");
        ok = false;
    }
    conf_free(&conf);
    return ok;
}

static bool find_base_policy(const struct cli_command *command, const struct cli_policy *options,
                             struct conf_policy *policy)
{
    char errors[CONF_ERROR_MAX];
    const char *variable, *config = named_file(options, &variable);
    if (options->name == NULL)
        return find_default_policy(command, options, policy);
    if (options->is_preset) {
        conf_policy_init(policy, bide_preset_by_name(options->name, strlen(options->name)));
        return true;
    }
    return conf_find(policy, config, options->name, errors) || report_errors(command, variable, errors);
}

/* Returns the last option that set this field, or NULL. */
static const struct cli_set *options_last_set(const struct cli_policy *options, const struct conf_field *field)
{
    for (size_t i = options->sets; i > 0; i--)
        if (options->set[i - 1].field == field)
            return &options->set[i - 1];
    return NULL;
}

bool cli_policy_sets(const struct cli_policy *options, const char *key)
{
    return options_last_set(options, conf_field_find(key, strlen(key))) != NULL;
}

/* Reports the problem for the option that caused it, else for the key with the policy that it comes from. Returns
 * false. */
static bool report_problem(const struct cli_command *command, const struct cli_policy *options,
                           const struct conf_policy *policy, const struct conf_problem *problem)
{
    char text[256];
    const struct cli_set *set = problem->field != NULL ? options_last_set(options, problem->field) : NULL;
    if (problem->field == NULL)
        cli_fail(command, "policy %s: must be %s", policy->name, problem->want);
    else if (set != NULL && strcmp(set->option, "set") == 0)
        cli_fail(command, "--set %s=%s: must be %s", set->field->key, set->value, problem->want);
    else if (set != NULL)
        cli_fail(command, "--%s %s: must be %s", set->option, set->value, problem->want);
    else
        cli_fail(command, "%s = %s of the policy %s contradicts the options: must be %s", problem->field->key,
                 conf_field_format(text, problem->field, &policy->pair), policy->name, problem->want);
    return false;
}

bool cli_policy_resolve(const struct cli_command *command, const struct cli_policy *options, enum bide_preset preset,
                        struct conf_policy *policy)
{
    struct conf_problem problem;
    conf_policy_init(policy, preset);
    if (!find_base_policy(command, options, policy))
        return false;
    for (size_t i = 0; i < options->sets; i++)
        (void)policy_assign_key(policy, options->set[i].field,
                                options->set[i].value); /* the form was checked when it was parsed */
    return conf_pair_check(&policy->pair, &problem) || report_problem(command, options, policy, &problem);
}
