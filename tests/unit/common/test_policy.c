/* test_cli_policy.c - the options that every subcommand has: what they come to, and what is said if they do not. */
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

static struct conf_policy got;
static struct cli_policy options;

extern const struct cli_command command;

static int run(void *settings, char **operands)
{
    (void)operands;
    options = ((struct settings *)settings)->policy;
    return cli_policy_resolve(&command, &options, BIDE_PRESET_CURL, &got) ? 0 : CLI_EXIT_BIDE_FAILED;
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

static char *said;

static int try(const char *const *words)
{
    char *argv[16] = {NULL};
    FILE *err = stderr;
    size_t size, count = 0;
    free(said);
    for (; words[count] != NULL; count++)
        argv[count] = (char *)words[count];
    stderr = open_memstream(&said, &size);
    int status = cli_main(&command, argv);
    fclose(stderr);
    stderr = err;
    return status;
}

#define TRY(...) try((const char *const[]){__VA_ARGS__, NULL})

static void assert_refused(int status, const char *words)
{
    assert_int_equal(status, CLI_EXIT_BIDE_FAILED);
    if (strncmp(said, "bide try: ", 10) != 0 || strcmp(said + 10 + strcspn(said + 10, "\n"), "\n") != 0)
        fail_msg("not one line of ours: %s", said);
    said[strlen(said) - 1] = '\0';
    assert_string_equal(said + 10, words);
}

/* A file in a directory of its own, with an empty home: nothing of this machine plays a part. */
static char directory[] = "/tmp/bide-test-XXXXXX";

static int enter(void **state)
{
    (void)state;
    unsetenv("BIDE_POLICY");
    unsetenv("BIDE_CONFIG");
    return mkdtemp(directory) != NULL && chdir(directory) == 0 && setenv("XDG_CONFIG_HOME", directory, 1) == 0 ? 0 : -1;
}

static int leave(void **state)
{
    (void)state;
    free(said);
    said = NULL;
    return chdir("/") == 0 ? rmdir(directory) : -1;
}

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int clean(void **state)
{
    (void)state;
    unlink("bide.conf");
    unlink("other.conf");
    unsetenv("BIDE_POLICY");
    unsetenv("BIDE_CONFIG");
    return 0;
}

/* ---- which policy ---- */

static void without_a_word_the_preset_of_the_command_holds_and_no_file_is_read(void **state)
{
    (void)state;
    write_file("bide.conf", "this is no policy file\n");
    assert_int_equal(try((const char *const[]){NULL}), 0);
    assert_int_equal(got.preset, BIDE_PRESET_CURL);
    assert_string_equal(got.name, "curl");
}

static void a_policy_is_a_section_or_a_preset_and_the_section_goes_before(void **state)
{
    (void)state;
    assert_int_equal(TRY("--policy", "service"), 0);
    assert_int_equal(got.preset, BIDE_PRESET_SERVICE);
    write_file("bide.conf", "[service]\nextends = service\nattempts = 9\n");
    assert_int_equal(TRY("--policy", "service"), 0);
    assert_int_equal(got.pair.policy.attempts_max, 9);
    assert_int_equal(TRY("--policy", "service", "--preset", "service"), 0);
    assert_int_not_equal(got.pair.policy.attempts_max, 9);
    assert_int_equal(TRY("--preset", "payment", "--policy", "service"), 0);
    assert_int_equal(got.pair.policy.attempts_max, 9);
    assert_refused(TRY("--preset", "servce"), "--preset servce: want service; bide help presets lists them");
}

static void a_target_has_the_section_of_its_name_if_there_is_one(void **state)
{
    (void)state;
    assert_int_equal(TRY("--target", "payments"), 0);
    assert_int_equal(got.preset, BIDE_PRESET_CURL);
    write_file("bide.conf", "[payments]\nattempts = 9\n[default]\nattempts = 8\n");
    assert_int_equal(TRY("--target", "payments"), 0);
    assert_int_equal(got.pair.policy.attempts_max, 9);
    assert_string_equal(options.target, "payments");
    assert_int_equal(TRY("--target", "payments", "--policy", "sre"), 0);
    assert_int_equal(got.preset, BIDE_PRESET_SRE);
    assert_int_equal(TRY("--target", "orders"), 0);
    assert_int_equal(got.preset, BIDE_PRESET_CURL);
}

static void a_target_that_is_nearly_a_section_is_a_typing_error(void **state)
{
    (void)state;
    write_file("bide.conf", "[payments]\nattempts = 9\n[default]\nattempts = 8\n");
    assert_refused(TRY("--target", "paymets"),
                   "--target paymets: bide.conf has no such section; did you mean payments?");
    assert_refused(TRY("--config", "bide.conf", "--target", "paymets"),
                   "--target paymets: bide.conf has no such section; did you mean payments?");
    setenv("BIDE_POLICY", "sre", 1);
    assert_int_equal(TRY("--target", "paymets"), CLI_EXIT_BIDE_FAILED);
    assert_int_equal(TRY("--target", "paymets", "--policy", "sre"), 0);
    assert_int_equal(TRY("--target", "search"), 0);
    write_file("bide.conf", "[shard-1]\nattempts = 9\n");
    assert_int_equal(TRY("--target", "shard-2", "--preset", "curl"), 0);
    unsetenv("BIDE_POLICY");
    assert_int_equal(TRY("--target", "shard-2"), 0);
    assert_int_equal(TRY("--target", "shrad-1"), CLI_EXIT_BIDE_FAILED);
}

static void a_target_named_as_a_preset_is_not_that_preset(void **state)
{
    (void)state;
    assert_int_equal(TRY("--target", "payment"), 0);
    assert_int_equal(got.preset, BIDE_PRESET_CURL);
}

static void a_file_that_is_named_must_have_something_to_say(void **state)
{
    (void)state;
    write_file("other.conf", "[a]\nattempts = 7\n");
    assert_int_equal(TRY("--config", "other.conf", "--policy", "a"), 0);
    assert_int_equal(got.pair.policy.attempts_max, 7);
    assert_int_equal(TRY("--config", "other.conf", "--target", "a"), 0);
    assert_int_equal(got.pair.policy.attempts_max, 7);
    assert_refused(TRY("--config", "other.conf"),
                   "--config other.conf: want --policy NAME as well, or a section [default] in it");
    assert_refused(TRY("--config", "other.conf", "--target", "b"),
                   "--config other.conf: want --policy NAME as well, or a section [b] or [default] in it");
    write_file("other.conf", "[default]\nattempts = 8\n");
    assert_int_equal(TRY("--config", "other.conf"), 0);
    assert_int_equal(got.pair.policy.attempts_max, 8);
    assert_int_equal(TRY("--config", "other.conf", "--target", "b"), 0);
    assert_int_equal(got.pair.policy.attempts_max, 8);
}

static void the_environment_says_what_no_option_says(void **state)
{
    (void)state;
    write_file("other.conf", "[a]\nattempts = 7\n[default]\nattempts = 8\n[t]\nattempts = 9\n");
    setenv("BIDE_CONFIG", "other.conf", 1);
    assert_int_equal(try((const char *const[]){NULL}), 0);
    assert_int_equal(got.pair.policy.attempts_max, 8);
    setenv("BIDE_POLICY", "a", 1);
    assert_int_equal(try((const char *const[]){NULL}), 0);
    assert_int_equal(got.pair.policy.attempts_max, 7);
    assert_int_equal(TRY("--target", "t"), 0);
    assert_int_equal(got.pair.policy.attempts_max, 9);
    assert_int_equal(TRY("--target", "u"), 0);
    assert_int_equal(got.pair.policy.attempts_max, 7);
    assert_int_equal(TRY("--policy", "sre"), 0);
    assert_int_equal(got.preset, BIDE_PRESET_SRE);
    write_file("other.conf", "[b]\nattempts = 7\n");
    unsetenv("BIDE_POLICY");
    assert_int_equal(try((const char *const[]){NULL}), 0);
    assert_int_equal(got.preset, BIDE_PRESET_CURL);
}

static void every_mistake_in_a_file_is_told(void **state)
{
    (void)state;
    write_file("bide.conf", "[a]\nattemps = 7\nbase = 5\n");
    assert_int_equal(TRY("--policy", "a"), CLI_EXIT_BIDE_FAILED);
    assert_non_null(strstr(said, "bide.conf:2: [a] attemps = 7: "));
    assert_non_null(strstr(said, "\nbide try: "));
    assert_non_null(strstr(said, "bide.conf:3: [a] base = 5: "));
}

/* ---- what is different now ---- */

static void options_change_the_policy_whatever_their_order(void **state)
{
    (void)state;
    assert_int_equal(TRY("--attempts", "7", "--base=300ms", "--cap", "4s", "--jitter", "equal", "--preset", "service",
                         "--deadline", "never", "--attempt-timeout", "5s", "--set", "budget.capacity=20"),
                     0);
    assert_int_equal(got.preset, BIDE_PRESET_SERVICE);
    assert_int_equal(got.pair.policy.attempts_max, 7);
    assert_int_equal(got.pair.policy.base_ns, 300 * BIDE_MS);
    assert_int_equal(got.pair.policy.cap_ns, 4 * BIDE_S);
    assert_int_equal(got.pair.policy.jitter, BIDE_JITTER_EQUAL);
    assert_true(got.pair.policy.deadline_ns == BIDE_NEVER);
    assert_int_equal(got.pair.policy.attempt_timeout_ns, 5 * BIDE_S);
    assert_int_equal(got.pair.target.budget.capacity_milli, 20000);
}

static enum bide_kind kind_of(const struct conf_rules *rules,
                              struct bide_outcome (*classify)(int, const struct bide_rules *), int number)
{
    struct bide_rules space;
    return classify(number, conf_rules_for_engine(rules, &space)).kind;
}

static void a_list_can_be_set_and_takes_the_place_of_the_policys(void **state)
{
    (void)state;
    write_file("bide.conf", "[a]\nretry_exit = 7\npermanent_exit = 8\n");
    assert_int_equal(TRY("--policy", "a", "--set", "retry_exit=9,100-110", "--set", "retry_status=418", "--set",
                         "permanent_grpc=UNAVAILABLE"),
                     0);
    assert_int_equal(kind_of(&got.exits, bide_classify_exit, 9), BIDE_KIND_TRANSIENT);
    assert_int_equal(kind_of(&got.exits, bide_classify_exit, 105), BIDE_KIND_TRANSIENT);
    assert_int_equal(kind_of(&got.exits, bide_classify_exit, 7), BIDE_KIND_PERMANENT);
    assert_int_equal(kind_of(&got.status, bide_classify_http, 418), BIDE_KIND_TRANSIENT);
    assert_int_equal(kind_of(&got.status, bide_classify_http, 503), BIDE_KIND_PERMANENT);
    assert_int_equal(kind_of(&got.grpc, bide_classify_grpc, 14), BIDE_KIND_PERMANENT);
    assert_string_equal(options.set[0].field->key, "retry_exit");
    assert_refused(TRY("--set", "retry_exit=900"),
                   "--set retry_exit=900: want exit codes and ranges from 1 to 255 such as 1, 75, 100-110, or none");
    assert_refused(TRY("--set", "retry_exi=9"), "--set retry_exi=9: want retry_exit: there is no key retry_exi");
}

static void every_key_of_a_section_but_extends_can_be_set(void **state)
{
    (void)state;
    static const char *const list[] = {"retry_status",   "permanent_status", "retry_exit",
                                       "permanent_exit", "retry_grpc",       "permanent_grpc"};
    char word[512], text[256];
    struct conf_pair service;
    conf_pair_init(&service, BIDE_PRESET_SERVICE);
    for (size_t i = 0; conf_field(i) != NULL; i++) {
        snprintf(word, sizeof word, "%s=%s", conf_field(i)->key, conf_field_format(text, conf_field(i), &service));
        assert_int_equal(TRY("--preset", "service", "--set", word), 0);
    }
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        snprintf(word, sizeof word, "%s=none", list[i]);
        assert_int_equal(TRY("--set", word), 0);
    }
    assert_refused(TRY("--set", "extends=sre"), "--set extends=sre: want --policy NAME instead: extends is where a "
                                                "policy starts from, not a value of it");
}

static void of_several_options_for_one_key_the_last_wins(void **state)
{
    (void)state;
    assert_int_equal(TRY("--attempts", "7", "--set", "attempts=5"), 0);
    assert_int_equal(got.pair.policy.attempts_max, 5);
    assert_int_equal(TRY("--set", "attempts=5", "--attempts", "7"), 0);
    assert_int_equal(got.pair.policy.attempts_max, 7);
}

static void a_value_of_the_wrong_form_is_told_with_what_would_be_right(void **state)
{
    (void)state;
    assert_refused(TRY("--base", "5"), "--base 5: want a duration such as 200ms");
    assert_refused(TRY("--deadline", "5"), "--deadline 5: want a duration such as 200ms, or never");
    assert_refused(TRY("--attempts", "99999999999999999999"),
                   "--attempts 99999999999999999999: want 4294967295 at most");
    assert_int_equal(TRY("--jitter", "ful"), CLI_EXIT_BIDE_FAILED);
    assert_non_null(strstr(said, "--jitter ful: want "));
    assert_int_equal(TRY("--attempts", "0"), CLI_EXIT_BIDE_FAILED);
    assert_non_null(strstr(said, "--attempts 0: want 1 or more"));
    assert_refused(TRY("--set", "attempts"), "--set attempts: want KEY=VALUE, such as budget.capacity=20");
    assert_refused(TRY("--set", "attemps=3"), "--set attemps=3: want attempts: there is no key attemps");
    assert_refused(TRY("--set", "qqqqqqqq=3"),
                   "--set qqqqqqqq=3: want a key of the policy file; bide help policy-file lists them");
}

static void values_that_do_not_go_together_name_the_option(void **state)
{
    (void)state;
    assert_refused(TRY("--preset", "service", "--base", "200ms", "--cap", "100ms"),
                   "--cap 100ms: want base (200ms) or more");
    assert_refused(TRY("--preset", "service", "--set", "base=200ms", "--set", "cap=100ms"),
                   "--set cap=100ms: want base (200ms) or more");
    assert_refused(TRY("--preset", "service", "--set", "cap=9s", "--cap=1ms"), "--cap 1ms: want base (200ms) or more");
    assert_int_equal(TRY("--preset", "service", "--base", "1h"), CLI_EXIT_BIDE_FAILED);
    assert_non_null(strstr(said, "of the policy service, does not go with the options given: want base (1h) or more"));
}

static void a_seed_is_any_number_of_64_bits(void **state)
{
    (void)state;
    assert_int_equal(TRY("--seed", "18446744073709551615"), 0);
    assert_true(options.has_seed && options.seed == UINT64_MAX);
    assert_int_equal(TRY("--seed", "0"), 0);
    assert_true(options.has_seed && options.seed == 0);
    assert_refused(TRY("--seed", "18446744073709551616"),
                   "--seed 18446744073709551616: want a number from 0 to 18446744073709551615");
    assert_int_equal(TRY("--seed", "-1"), CLI_EXIT_BIDE_FAILED);
    assert_int_equal(TRY("--seed", " 1"), CLI_EXIT_BIDE_FAILED);
}

static void more_changes_than_there_is_room_for_are_refused(void **state)
{
    (void)state;
    static struct cli_policy full;
    const struct cli_option *set = &cli_policy_options[CLI_POLICY_COUNT - 1];
    assert_string_equal(set->name, "set");
    for (size_t i = 0; i < CLI_SETS_MAX; i++)
        assert_null(set->read(&full, "attempts=3"));
    assert_non_null(set->read(&full, "attempts=3"));
}

static void the_choices_that_completions_offer_are_words_of_the_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < CLI_POLICY_COUNT; i++)
        for (size_t c = 0; cli_policy_options[i].choices != NULL && cli_policy_options[i].choices[c] != NULL; c++)
            assert_null(cli_policy_options[i].read(&(struct cli_policy){0}, cli_policy_options[i].choices[c]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(without_a_word_the_preset_of_the_command_holds_and_no_file_is_read, clean),
        cmocka_unit_test_teardown(a_policy_is_a_section_or_a_preset_and_the_section_goes_before, clean),
        cmocka_unit_test_teardown(a_target_has_the_section_of_its_name_if_there_is_one, clean),
        cmocka_unit_test_teardown(a_target_that_is_nearly_a_section_is_a_typing_error, clean),
        cmocka_unit_test_teardown(a_target_named_as_a_preset_is_not_that_preset, clean),
        cmocka_unit_test_teardown(a_file_that_is_named_must_have_something_to_say, clean),
        cmocka_unit_test_teardown(the_environment_says_what_no_option_says, clean),
        cmocka_unit_test_teardown(every_mistake_in_a_file_is_told, clean),
        cmocka_unit_test(options_change_the_policy_whatever_their_order),
        cmocka_unit_test_teardown(a_list_can_be_set_and_takes_the_place_of_the_policys, clean),
        cmocka_unit_test(every_key_of_a_section_but_extends_can_be_set),
        cmocka_unit_test(of_several_options_for_one_key_the_last_wins),
        cmocka_unit_test(a_value_of_the_wrong_form_is_told_with_what_would_be_right),
        cmocka_unit_test(values_that_do_not_go_together_name_the_option),
        cmocka_unit_test(a_seed_is_any_number_of_64_bits),
        cmocka_unit_test(more_changes_than_there_is_room_for_are_refused),
        cmocka_unit_test(the_choices_that_completions_offer_are_words_of_the_table),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
