/* test_policy.c - the policy options that all subcommands share: the resulting policy, and the error messages. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/policy.h"

/* ---- a command that only resolves ---- */

struct settings {
    int other;
    struct cli_policy policy;
};

static struct conf_policy resolved;
static struct cli_policy options;

extern const struct cli_command command;

static int run(void *settings, char **operands)
{
    (void)operands;
    options = ((struct settings *)settings)->policy;
    return cli_policy_resolve(&command, &options, BIDE_PRESET_CURL, &resolved) ? 0 : CLI_EXIT_BIDE_FAILED;
}

static const struct cli_group groups[] = {CLI_POLICY_GROUP(struct settings, policy)};

const struct cli_command command = {
    .name = "try",
    .synopsis = "",
    .groups = groups,
    .group_count = 1,
    .settings_size = sizeof(struct settings),
    .run = run,
};

static char *message;

static int run_words(const char *const *words)
{
    char *argv[16] = {NULL};
    FILE *err = stderr;
    size_t size, count = 0;
    free(message);
    for (; words[count] != NULL; count++)
        argv[count] = (char *)words[count];
    stderr = open_memstream(&message, &size);
    int status = cli_main(&command, argv);
    fclose(stderr);
    stderr = err;
    return status;
}

#define RUN_WORDS(...) run_words((const char *const[]){__VA_ARGS__, NULL})

static void assert_refused(int status, const char *words)
{
    assert_int_equal(status, CLI_EXIT_BIDE_FAILED);
    if (strncmp(message, "bide try: ", 10) != 0 || strcmp(message + 10 + strcspn(message + 10, "\n"), "\n") != 0)
        fail_msg("not one line of ours: %s", message);
    message[strlen(message) - 1] = '\0';
    assert_string_equal(message + 10, words);
}

/* A temporary directory as working directory and home, so that no file of this machine is read. */
static char directory[] = "/tmp/bide-test-XXXXXX";

static int setup_directory(void **state)
{
    (void)state;
    unsetenv("BIDE_POLICY");
    unsetenv("BIDE_CONFIG");
    return mkdtemp(directory) != NULL && chdir(directory) == 0 && setenv("XDG_CONFIG_HOME", directory, 1) == 0 ? 0 : -1;
}

static int remove_directory(void **state)
{
    (void)state;
    free(message);
    message = NULL;
    return chdir("/") == 0 ? rmdir(directory) : -1;
}

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int remove_files(void **state)
{
    (void)state;
    unlink("bide.conf");
    unlink("other.conf");
    unsetenv("BIDE_POLICY");
    unsetenv("BIDE_CONFIG");
    return 0;
}

/* ---- which policy ---- */

static void without_options_the_preset_of_the_command_applies_and_no_file_is_read(void **state)
{
    (void)state;
    write_file("bide.conf", "this is no policy file\n");
    assert_int_equal(run_words((const char *const[]){NULL}), 0);
    assert_int_equal(resolved.preset, BIDE_PRESET_CURL);
    assert_string_equal(resolved.name, "curl");
}

static void section_takes_precedence_over_preset_of_same_name(void **state)
{
    (void)state;
    assert_int_equal(RUN_WORDS("--policy", "service"), 0);
    assert_int_equal(resolved.preset, BIDE_PRESET_SERVICE);
    write_file("bide.conf", "[service]\nextends = service\nattempts = 9\n");
    assert_int_equal(RUN_WORDS("--policy", "service"), 0);
    assert_int_equal(resolved.pair.policy.attempts_max, 9);
    assert_int_equal(RUN_WORDS("--policy", "service", "--preset", "service"), 0);
    assert_int_not_equal(resolved.pair.policy.attempts_max, 9);
    assert_int_equal(RUN_WORDS("--preset", "payment", "--policy", "service"), 0);
    assert_int_equal(resolved.pair.policy.attempts_max, 9);
    assert_refused(RUN_WORDS("--preset", "servce"),
                   "--preset servce: must be a preset such as service (bide help presets lists them)");
}

static void target_uses_the_section_of_its_name(void **state)
{
    (void)state;
    assert_int_equal(RUN_WORDS("--target", "payments"), 0);
    assert_int_equal(resolved.preset, BIDE_PRESET_CURL);
    write_file("bide.conf", "[payments]\nattempts = 9\n[default]\nattempts = 8\n");
    assert_int_equal(RUN_WORDS("--target", "payments"), 0);
    assert_int_equal(resolved.pair.policy.attempts_max, 9);
    assert_string_equal(options.target, "payments");
    assert_int_equal(RUN_WORDS("--target", "payments", "--policy", "sre"), 0);
    assert_int_equal(resolved.preset, BIDE_PRESET_SRE);
    assert_int_equal(RUN_WORDS("--target", "orders"), 0);
    assert_int_equal(resolved.preset, BIDE_PRESET_CURL);
}

static void target_that_resembles_a_section_is_rejected(void **state)
{
    (void)state;
    write_file("bide.conf", "[payments]\nattempts = 9\n[default]\nattempts = 8\n");
    assert_refused(RUN_WORDS("--target", "paymets"),
                   "--target paymets: bide.conf has no such section; did you mean payments?");
    assert_refused(RUN_WORDS("--config", "bide.conf", "--target", "paymets"),
                   "--target paymets: bide.conf has no such section; did you mean payments?");
    setenv("BIDE_POLICY", "sre", 1);
    assert_int_equal(RUN_WORDS("--target", "paymets"), CLI_EXIT_BIDE_FAILED);
    assert_int_equal(RUN_WORDS("--target", "paymets", "--policy", "sre"), 0);
    assert_int_equal(RUN_WORDS("--target", "search"), 0);
    write_file("bide.conf", "[shard-1]\nattempts = 9\n");
    assert_int_equal(RUN_WORDS("--target", "shard-2", "--preset", "curl"), 0);
    unsetenv("BIDE_POLICY");
    assert_int_equal(RUN_WORDS("--target", "shard-2"), 0);
    assert_int_equal(RUN_WORDS("--target", "shrad-1"), CLI_EXIT_BIDE_FAILED);
}

static void target_named_like_a_preset_does_not_use_the_preset(void **state)
{
    (void)state;
    assert_int_equal(RUN_WORDS("--target", "payment"), 0);
    assert_int_equal(resolved.preset, BIDE_PRESET_CURL);
}

static void config_file_must_contain_an_applicable_section(void **state)
{
    (void)state;
    write_file("other.conf", "[a]\nattempts = 7\n");
    assert_int_equal(RUN_WORDS("--config", "other.conf", "--policy", "a"), 0);
    assert_int_equal(resolved.pair.policy.attempts_max, 7);
    assert_int_equal(RUN_WORDS("--config", "other.conf", "--target", "a"), 0);
    assert_int_equal(resolved.pair.policy.attempts_max, 7);
    assert_refused(RUN_WORDS("--config", "other.conf"),
                   "--config other.conf: needs --policy NAME, or a section [default] in the file");
    assert_refused(RUN_WORDS("--config", "other.conf", "--target", "b"),
                   "--config other.conf: needs --policy NAME, or a section [b] or [default] in the file");
    write_file("other.conf", "[default]\nattempts = 8\n");
    assert_int_equal(RUN_WORDS("--config", "other.conf"), 0);
    assert_int_equal(resolved.pair.policy.attempts_max, 8);
    assert_int_equal(RUN_WORDS("--config", "other.conf", "--target", "b"), 0);
    assert_int_equal(resolved.pair.policy.attempts_max, 8);
}

static void environment_applies_where_no_option_is_given(void **state)
{
    (void)state;
    write_file("other.conf", "[a]\nattempts = 7\n[default]\nattempts = 8\n[t]\nattempts = 9\n");
    setenv("BIDE_CONFIG", "other.conf", 1);
    assert_int_equal(run_words((const char *const[]){NULL}), 0);
    assert_int_equal(resolved.pair.policy.attempts_max, 8);
    setenv("BIDE_POLICY", "a", 1);
    assert_int_equal(run_words((const char *const[]){NULL}), 0);
    assert_int_equal(resolved.pair.policy.attempts_max, 7);
    assert_int_equal(RUN_WORDS("--target", "t"), 0);
    assert_int_equal(resolved.pair.policy.attempts_max, 9);
    assert_int_equal(RUN_WORDS("--target", "u"), 0);
    assert_int_equal(resolved.pair.policy.attempts_max, 7);
    assert_int_equal(RUN_WORDS("--policy", "sre"), 0);
    assert_int_equal(resolved.preset, BIDE_PRESET_SRE);
    write_file("other.conf", "[b]\nattempts = 7\n");
    unsetenv("BIDE_POLICY");
    assert_int_equal(run_words((const char *const[]){NULL}), 0);
    assert_int_equal(resolved.preset, BIDE_PRESET_CURL);
}

static void every_mistake_in_a_file_is_reported(void **state)
{
    (void)state;
    write_file("bide.conf", "[a]\nattemps = 7\nbase = 5\n");
    assert_int_equal(RUN_WORDS("--policy", "a"), CLI_EXIT_BIDE_FAILED);
    assert_non_null(strstr(message, "bide.conf:2: [a] attemps = 7: "));
    assert_non_null(strstr(message, "\nbide try: "));
    assert_non_null(strstr(message, "bide.conf:3: [a] base = 5: "));
}

/* ---- what is different now ---- */

static void option_order_does_not_matter(void **state)
{
    (void)state;
    assert_int_equal(RUN_WORDS("--attempts", "7", "--base=300ms", "--cap", "4s", "--jitter", "equal", "--preset",
                               "service", "--deadline", "never", "--attempt-timeout", "5s", "--set",
                               "budget.capacity=20"),
                     0);
    assert_int_equal(resolved.preset, BIDE_PRESET_SERVICE);
    assert_int_equal(resolved.pair.policy.attempts_max, 7);
    assert_int_equal(resolved.pair.policy.base_ns, 300 * BIDE_MS);
    assert_int_equal(resolved.pair.policy.cap_ns, 4 * BIDE_S);
    assert_int_equal(resolved.pair.policy.jitter, BIDE_JITTER_EQUAL);
    assert_true(resolved.pair.policy.call_timeout_ns == BIDE_NEVER);
    assert_int_equal(resolved.pair.policy.attempt_timeout_ns, 5 * BIDE_S);
    assert_int_equal(resolved.pair.target.budget.capacity_milli, 20000);
}

static enum bide_kind kind_of(const struct conf_rules *rules,
                              struct bide_outcome (*classify)(int, const struct bide_rules *), int number)
{
    struct bide_rules space;
    return classify(number, conf_rules_for_engine(rules, &space)).kind;
}

static void set_replaces_a_list_of_the_policy(void **state)
{
    (void)state;
    write_file("bide.conf", "[a]\nretry_exit = 7\npermanent_exit = 8\n");
    assert_int_equal(RUN_WORDS("--policy", "a", "--set", "retry_exit=9,100-110", "--set", "retry_status=418", "--set",
                               "permanent_grpc=UNAVAILABLE"),
                     0);
    assert_int_equal(kind_of(&resolved.exits, bide_classify_exit, 9), BIDE_KIND_TRANSIENT);
    assert_int_equal(kind_of(&resolved.exits, bide_classify_exit, 105), BIDE_KIND_TRANSIENT);
    assert_int_equal(kind_of(&resolved.exits, bide_classify_exit, 7), BIDE_KIND_PERMANENT);
    assert_int_equal(kind_of(&resolved.status, bide_classify_http, 418), BIDE_KIND_TRANSIENT);
    assert_int_equal(kind_of(&resolved.status, bide_classify_http, 503), BIDE_KIND_PERMANENT);
    assert_int_equal(kind_of(&resolved.grpc, bide_classify_grpc, 14), BIDE_KIND_PERMANENT);
    assert_string_equal(options.set[0].field->key, "retry_exit");
    assert_refused(RUN_WORDS("--set", "retry_exit=900"),
                   "--set retry_exit=900: must be exit codes and ranges from 1 to 255 such as 1, 75, 100-110, or none");
    assert_refused(RUN_WORDS("--set", "retry_exi=9"), "--set retry_exi=9: no such key; did you mean retry_exit?");
}

static void every_key_but_extends_can_be_set(void **state)
{
    (void)state;
    static const char *const list[] = {"retry_status",   "permanent_status", "retry_exit",
                                       "permanent_exit", "retry_grpc",       "permanent_grpc"};
    char word[512], text[256];
    struct conf_pair service;
    conf_pair_init(&service, BIDE_PRESET_SERVICE);
    for (size_t i = 0; conf_field(i) != NULL; i++) {
        snprintf(word, sizeof word, "%s=%s", conf_field(i)->key, conf_field_format(text, conf_field(i), &service));
        assert_int_equal(RUN_WORDS("--preset", "service", "--set", word), 0);
    }
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        snprintf(word, sizeof word, "%s=none", list[i]);
        assert_int_equal(RUN_WORDS("--set", word), 0);
    }
    assert_refused(RUN_WORDS("--set", "extends=sre"),
                   "--set extends=sre: must be given as --policy NAME (extends is the base of a policy, not a value)");
}

static void last_option_for_a_key_wins(void **state)
{
    (void)state;
    assert_int_equal(RUN_WORDS("--attempts", "7", "--set", "attempts=5"), 0);
    assert_int_equal(resolved.pair.policy.attempts_max, 5);
    assert_int_equal(RUN_WORDS("--set", "attempts=5", "--attempts", "7"), 0);
    assert_int_equal(resolved.pair.policy.attempts_max, 7);
}

static void malformed_value_is_reported_with_the_valid_form(void **state)
{
    (void)state;
    assert_refused(RUN_WORDS("--base", "5"), "--base 5: must be a duration with a unit, such as 5s or 5ms");
    assert_refused(RUN_WORDS("--deadline", "5"), "--deadline 5: must be a duration with a unit, such as 5s or 5ms");
    assert_refused(RUN_WORDS("--attempts", "99999999999999999999"),
                   "--attempts 99999999999999999999: must be 4294967295 at most");
    assert_int_equal(RUN_WORDS("--jitter", "ful"), CLI_EXIT_BIDE_FAILED);
    assert_non_null(strstr(message, "--jitter ful: must be "));
    assert_int_equal(RUN_WORDS("--attempts", "0"), CLI_EXIT_BIDE_FAILED);
    assert_non_null(strstr(message, "--attempts 0: must be 1 or more"));
    assert_refused(RUN_WORDS("--set", "attempts"), "--set attempts: must be KEY=VALUE, such as budget.capacity=20");
    assert_refused(RUN_WORDS("--set", "attemps=3"), "--set attemps=3: no such key; did you mean attempts?");
    assert_refused(RUN_WORDS("--set", "qqqqqqqq=3"),
                   "--set qqqqqqqq=3: no such key (bide help policy-file lists them)");
}

static void target_has_a_printable_name(void **state)
{
    (void)state;
    assert_refused(RUN_WORDS("--target", "a\nb"),
                   "--target a?b: must be a name of 1 to 127 bytes without control characters");
}

static void error_names_the_variable_it_comes_from(void **state)
{
    (void)state;
    setenv("BIDE_POLICY", "nosuch", 1);
    assert_int_equal(RUN_WORDS("--attempts", "2"), CLI_EXIT_BIDE_FAILED);
    assert_non_null(strstr(message, "$BIDE_POLICY: no policy named nosuch"));
    unsetenv("BIDE_POLICY");
    setenv("BIDE_CONFIG", "/nosuch.conf", 1);
    assert_int_equal(RUN_WORDS("--attempts", "2"), CLI_EXIT_BIDE_FAILED);
    assert_non_null(strstr(message, "$BIDE_CONFIG: /nosuch.conf: cannot be read"));
    assert_int_equal(RUN_WORDS("--policy", "x"), CLI_EXIT_BIDE_FAILED);
    assert_non_null(strstr(message, "$BIDE_CONFIG: /nosuch.conf: cannot be read"));
    unsetenv("BIDE_CONFIG");
}

static void contradicting_values_name_the_option(void **state)
{
    (void)state;
    assert_refused(RUN_WORDS("--preset", "service", "--base", "200ms", "--cap", "100ms"),
                   "--cap 100ms: must be base (200ms) or more");
    assert_refused(RUN_WORDS("--preset", "service", "--set", "base=200ms", "--set", "cap=100ms"),
                   "--set cap=100ms: must be base (200ms) or more");
    assert_refused(RUN_WORDS("--preset", "service", "--set", "cap=9s", "--cap=1ms"),
                   "--cap 1ms: must be base (200ms) or more");
    assert_int_equal(RUN_WORDS("--preset", "service", "--base", "1h"), CLI_EXIT_BIDE_FAILED);
    assert_non_null(strstr(message, "of the policy service contradicts the options: must be base (1h) or more"));
}

static void seed_is_any_64_bit_number(void **state)
{
    (void)state;
    assert_int_equal(RUN_WORDS("--seed", "18446744073709551615"), 0);
    assert_true(options.has_seed && options.seed == UINT64_MAX);
    assert_int_equal(RUN_WORDS("--seed", "0"), 0);
    assert_true(options.has_seed && options.seed == 0);
    assert_refused(RUN_WORDS("--seed", "18446744073709551616"),
                   "--seed 18446744073709551616: must be a number from 0 to 18446744073709551615");
    assert_int_equal(RUN_WORDS("--seed", "-1"), CLI_EXIT_BIDE_FAILED);
    assert_int_equal(RUN_WORDS("--seed", " 1"), CLI_EXIT_BIDE_FAILED);
}

static void too_many_set_options_are_rejected(void **state)
{
    (void)state;
    static struct cli_policy full;
    const struct cli_option *set = &cli_policy_options[CLI_POLICY_COUNT - 1];
    assert_string_equal(set->name, "set");
    for (size_t i = 0; i < CLI_SETS_MAX; i++)
        assert_null(cli_option_assign(set, &full, "attempts=3"));
    assert_non_null(cli_option_assign(set, &full, "attempts=3"));
}

static void completion_choices_are_accepted_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < CLI_POLICY_COUNT; i++)
        for (size_t c = 0; cli_policy_options[i].choices != NULL && cli_policy_options[i].choices[c] != NULL; c++)
            assert_null(
                cli_option_assign(&cli_policy_options[i], &(struct cli_policy){0}, cli_policy_options[i].choices[c]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(without_options_the_preset_of_the_command_applies_and_no_file_is_read, remove_files),
        cmocka_unit_test_teardown(section_takes_precedence_over_preset_of_same_name, remove_files),
        cmocka_unit_test_teardown(target_uses_the_section_of_its_name, remove_files),
        cmocka_unit_test_teardown(target_that_resembles_a_section_is_rejected, remove_files),
        cmocka_unit_test_teardown(target_named_like_a_preset_does_not_use_the_preset, remove_files),
        cmocka_unit_test_teardown(config_file_must_contain_an_applicable_section, remove_files),
        cmocka_unit_test_teardown(environment_applies_where_no_option_is_given, remove_files),
        cmocka_unit_test_teardown(every_mistake_in_a_file_is_reported, remove_files),
        cmocka_unit_test(option_order_does_not_matter),
        cmocka_unit_test_teardown(set_replaces_a_list_of_the_policy, remove_files),
        cmocka_unit_test(every_key_but_extends_can_be_set),
        cmocka_unit_test(last_option_for_a_key_wins),
        cmocka_unit_test(malformed_value_is_reported_with_the_valid_form),
        cmocka_unit_test(target_has_a_printable_name),
        cmocka_unit_test(error_names_the_variable_it_comes_from),
        cmocka_unit_test(contradicting_values_name_the_option),
        cmocka_unit_test(seed_is_any_64_bit_number),
        cmocka_unit_test(too_many_set_options_are_rejected),
        cmocka_unit_test(completion_choices_are_accepted_values),
    };
    return cmocka_run_group_tests(tests, setup_directory, remove_directory);
}
