/* test_options.c - the command-line parser: accepted words, error messages, and the output of --help. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/options.h"

/* ---- a command ---- */

struct group_settings {
    const char *number;
};

struct settings {
    bool quiet, verbose;
    const char *text;
    struct group_settings group_settings;
};

static struct settings settings_seen;
static char *operands_seen[16];
static int runs;

static const char *read_number(void *group_settings, const char *value)
{
    ((struct group_settings *)group_settings)->number = value;
    return strspn(value, "0123456789") == strlen(value) ? NULL : "1 or more";
}

static const struct cli_option own[] = {
    {.name = "quiet", .letter = 'q', .help = "say nothing", .kind = CLI_FLAG, CLI_AT(struct settings, quiet)},
    {.name = "verbose", .letter = 'v', .help = "say more", .kind = CLI_FLAG, CLI_AT(struct settings, verbose)},
    {.name = "text",
     .letter = 't',
     .value = "TEXT",
     .help = "any `text`",
     .kind = CLI_STRING,
     CLI_AT(struct settings, text),
     .may_be_empty = true},
};
static const struct cli_option numbers[] = {
    {.name = "attempts",
     .letter = 'n',
     .value = "N",
     .help = "how many, told at such length that it cannot stand in one line of a terminal and must be folded",
     .read = read_number},
    {.name = "a-name-that-is-longer-than-a-column", .value = "N", .help = "has its own line", .read = read_number},
};
static const struct cli_group groups[] = {
    {.option = own, .count = 3},
    {.title = "Numbers", .option = numbers, .count = 2, .offset = offsetof(struct settings, group_settings)},
};
static const struct cli_section sections[] = {
    {.title = "Examples", .text = "  bide try   --quiet `x`\n"},
    {.title = "Exit status", .text = "What the `last` one did.\n"},
};

static int run(void *settings, char **operands)
{
    runs++;
    settings_seen = *(struct settings *)settings;
    memset(operands_seen, 0, sizeof operands_seen);
    for (size_t i = 0; operands[i] != NULL && i < 15; i++)
        operands_seen[i] = operands[i];
    return 7;
}

static struct cli_command command = {
    .name = "try",
    .summary = "try it",
    .synopsis = "[options] WORD...\n--list",
    .about = "First paragraph that goes on for a while, long enough to need a second line on a terminal of usual "
             "width.\n\nSecond paragraph.\n\n  kept   as it is\n",
    .groups = groups,
    .group_count = 2,
    .sections = sections,
    .section_count = 2,
    .settings_size = sizeof(struct settings),
    .run = run,
};

/* ---- running it ---- */

static char *out_text, *err_text;

/* Runs the command with these words and captures its output. */
static int run_words(const char *const *words)
{
    char *argv[16] = {NULL};
    FILE *out = stdout, *err = stderr;
    size_t out_size, err_size;
    free(out_text);
    free(err_text);
    for (size_t i = 0; words[i] != NULL; i++)
        argv[i] = strdup(words[i]);
    char *all[16];
    memcpy(all, argv, sizeof all);
    runs = 0;
    stdout = open_memstream(&out_text, &out_size);
    stderr = open_memstream(&err_text, &err_size);
    int status = cli_main(&command, argv);
    fclose(stdout);
    fclose(stderr);
    stdout = out;
    stderr = err;
    static char *leak[64]; /* the settings of the last run point into its words */
    static size_t leaks;
    for (size_t i = 0; all[i] != NULL; i++) {
        free(leak[leaks % 64]);
        leak[leaks++ % 64] = all[i];
    }
    return status;
}

#define RUN_WORDS(...) run_words((const char *const[]){__VA_ARGS__, NULL})

/* Asserts that exactly this message was printed and the command did not run. */
static void assert_refused(int status, const char *words)
{
    char line[256];
    snprintf(line, sizeof line, "bide try: %s\n", words);
    assert_int_equal(status, CLI_EXIT_BIDE_FAILED);
    assert_string_equal(err_text, line);
    assert_string_equal(out_text, "");
    assert_int_equal(runs, 0);
}

/* ---- reading ---- */

static void value_is_next_word_or_follows_equals_sign(void **state)
{
    (void)state;
    assert_int_equal(RUN_WORDS("--text", "a b"), 7);
    assert_string_equal(settings_seen.text, "a b");
    assert_int_equal(RUN_WORDS("--text=a=b"), 7);
    assert_string_equal(settings_seen.text, "a=b");
    assert_int_equal(RUN_WORDS("--text", "--quiet"), 7);
    assert_string_equal(settings_seen.text, "--quiet");
    assert_false(settings_seen.quiet);
    assert_string_equal(err_text, "");
}

static void letters_combine_and_the_last_may_take_a_value(void **state)
{
    (void)state;
    assert_int_equal(RUN_WORDS("-qvthello"), 7);
    assert_true(settings_seen.quiet && settings_seen.verbose);
    assert_string_equal(settings_seen.text, "hello");
    assert_int_equal(RUN_WORDS("-qt", "-v"), 7);
    assert_false(settings_seen.verbose);
    assert_string_equal(settings_seen.text, "-v");
}

static void group_reads_into_its_own_settings(void **state)
{
    (void)state;
    assert_int_equal(RUN_WORDS("-n3", "--text", "x"), 7);
    assert_string_equal(settings_seen.group_settings.number, "3");
    assert_string_equal(settings_seen.text, "x");
}

static void operands_may_stand_between_options(void **state)
{
    (void)state;
    assert_int_equal(RUN_WORDS("one", "-q", "-", "--text", "x", "two"), 7);
    assert_true(settings_seen.quiet);
    assert_string_equal(operands_seen[0], "one");
    assert_string_equal(operands_seen[1], "-");
    assert_string_equal(operands_seen[2], "two");
    assert_null(operands_seen[3]);
}

static void two_hyphens_end_the_options(void **state)
{
    (void)state;
    assert_int_equal(RUN_WORDS("-q", "--", "--verbose", "--", "-x"), 7);
    assert_false(settings_seen.verbose);
    assert_string_equal(operands_seen[0], "--verbose");
    assert_string_equal(operands_seen[1], "--");
    assert_string_equal(operands_seen[2], "-x");
    assert_null(operands_seen[3]);
}

static void options_after_the_first_operand_belong_to_the_other_command(void **state)
{
    (void)state;
    command.options_first = true;
    assert_int_equal(RUN_WORDS("-q", "ls", "-v", "--", "--help"), 7);
    command.options_first = false;
    assert_true(settings_seen.quiet);
    assert_false(settings_seen.verbose);
    assert_string_equal(operands_seen[0], "ls");
    assert_string_equal(operands_seen[1], "-v");
    assert_string_equal(operands_seen[2], "--");
    assert_string_equal(operands_seen[3], "--help");
    assert_null(operands_seen[4]);
}

static void last_of_repeated_options_wins(void **state)
{
    (void)state;
    assert_int_equal(RUN_WORDS("--text=a", "-tb"), 7);
    assert_string_equal(settings_seen.text, "b");
}

static void empty_value_needs_permission_of_the_table(void **state)
{
    (void)state;
    assert_int_equal(RUN_WORDS("--text", ""), 7);
    assert_string_equal(settings_seen.text, "");
    assert_int_equal(RUN_WORDS("--text="), 7);
    assert_string_equal(settings_seen.text, "");
    assert_refused(RUN_WORDS("--attempts="), "--attempts: must not be empty; needs a value: N");
    assert_refused(RUN_WORDS("-n", ""), "-n: must not be empty; needs a value: N");
}

static void empty_operand_is_valid_only_for_another_command(void **state)
{
    (void)state;
    assert_refused(RUN_WORDS("a", ""), "'': an argument must not be empty; bide try --help describes the arguments");
    assert_refused(RUN_WORDS("--", ""), "'': an argument must not be empty; bide try --help describes the arguments");
    command.options_first = true;
    assert_int_equal(RUN_WORDS("ls", ""), 7);
    command.options_first = false;
    assert_string_equal(operands_seen[1], "");
}

/* ---- refusing ---- */

static void misspelt_option_suggests_the_nearest(void **state)
{
    (void)state;
    assert_refused(RUN_WORDS("--attemps", "3"), "--attemps: no such option; did you mean --attempts?");
    assert_refused(RUN_WORDS("--attemps=3"), "--attemps: no such option; did you mean --attempts?");
    assert_refused(RUN_WORDS("-attempts", "3"), "-attempts: no such option; did you mean --attempts?");
    assert_refused(RUN_WORDS("--frobnicate"), "--frobnicate: no such option; bide try --help lists the options");
    assert_refused(RUN_WORDS("-qx"), "-x: no such option; bide try --help lists the options");
}

static void option_of_other_programs_gets_advice(void **state)
{
    static const struct cli_advice own_advice[] = {{"--retry", "use --attempts N"}, {"-m", "use --text TEXT"}};
    static const struct cli_advice other_advice[] = {{"--retry", "never reached"},
                                                     {"--size", "use --attempts N"},
                                                     {"--sized", "use --attempts N"},
                                                     {"--tree", "use --text T"},
                                                     {"--trees", "use --attempts N"}};
    struct cli_group with_advice[2] = {groups[0], groups[1]};
    (void)state;
    with_advice[1].advice = other_advice;
    with_advice[1].advice_count = 5;
    command.advice = own_advice;
    command.advice_count = 2;
    command.groups = with_advice;
    assert_refused(RUN_WORDS("--retry=3"), "--retry: no such option: use --attempts N");
    assert_refused(RUN_WORDS("-retry"), "--retry: no such option: use --attempts N");
    assert_refused(RUN_WORDS("-qm", "3"), "-m: no such option: use --text TEXT");
    assert_refused(RUN_WORDS("--size"), "--size: no such option: use --attempts N");
    assert_refused(RUN_WORDS("--siz"), "--siz: no such option: use --attempts N");
    assert_refused(RUN_WORDS("--retr"), "--retr: no such option: use --attempts N");
    assert_refused(RUN_WORDS("--tre"), "--tre: no such option; bide try --help lists the options");
    assert_refused(RUN_WORDS("--sizes"), "--sizes: no such option; bide try --help lists the options");
    command.groups = groups;
    command.advice_count = 0;
}

static void number_after_a_flag_gets_its_advice(void **state)
{
    static const struct cli_advice own_advice[] = {{"-q N", "it is --quiet; use --attempts N"}};
    (void)state;
    command.advice = own_advice;
    command.advice_count = 1;
    assert_refused(RUN_WORDS("-q", "3"), "-q 3: -q takes no number: it is --quiet; use --attempts N");
    assert_int_equal(RUN_WORDS("-q", "3x"), 7);
    assert_int_equal(RUN_WORDS("-q", "--", "3"), 7);
    assert_int_equal(RUN_WORDS("-q"), 7);
    command.advice_count = 0;
    assert_int_equal(RUN_WORDS("-q", "3"), 7);
}

static void beginning_of_options_suggests_them(void **state)
{
    (void)state;
    assert_refused(RUN_WORDS("--att", "3"), "--att: no such option; did you mean --attempts?");
    assert_refused(RUN_WORDS("--ver"), "--ver: no such option; did you mean --verbose or --version?");
    assert_refused(RUN_WORDS("--a=1"),
                   "--a: no such option; did you mean --attempts or --a-name-that-is-longer-than-a-column?");
}

static void abbreviated_options_are_rejected(void **state)
{
    (void)state;
    assert_int_equal(RUN_WORDS("--attempt", "3"), CLI_EXIT_BIDE_FAILED);
    assert_int_equal(RUN_WORDS("--verb"), CLI_EXIT_BIDE_FAILED);
    assert_int_equal(runs, 0);
}

static void invalid_value_is_reported_with_the_valid_form(void **state)
{
    (void)state;
    assert_refused(RUN_WORDS("--attempts", "x"), "--attempts x: must be 1 or more");
    assert_refused(RUN_WORDS("--attempts=x"), "--attempts x: must be 1 or more");
    assert_refused(RUN_WORDS("-nx"), "-n x: must be 1 or more");
}

static void missing_and_superfluous_values_are_reported(void **state)
{
    (void)state;
    assert_refused(RUN_WORDS("--attempts"), "--attempts: needs a value: N");
    assert_refused(RUN_WORDS("-qn"), "-n: needs a value: N");
    assert_refused(RUN_WORDS("--quiet=yes"), "--quiet=yes: --quiet takes no value");
    assert_refused(RUN_WORDS("-q=yes"), "-q=yes: -q takes no value");
    assert_refused(RUN_WORDS("-="), "-=: no such option; bide try --help lists the options");
}

/* ---- help ---- */

static void assert_narrow(const char *text, size_t most)
{
    for (size_t length; *text != '\0'; text += length + (text[length] == '\n')) {
        length = strcspn(text, "\n");
        if (length > most)
            fail_msg("longer than %zu columns: %.*s", most, (int)length, text);
    }
}

static void help_goes_to_stdout_and_runs_nothing(void **state)
{
    (void)state;
    assert_int_equal(RUN_WORDS("--help", "--bogus"), 0);
    assert_int_equal(runs, 0);
    assert_string_equal(err_text, "");
    assert_narrow(out_text, 79);
    assert_ptr_equal(strstr(out_text, "usage: bide try [options] WORD...\n       bide try --list\n\n"), out_text);
    assert_int_equal(RUN_WORDS("-qh"), 0);
    assert_int_equal(runs, 0);
}

static void help_aligns_options_and_ends_with_examples(void **state)
{
    (void)state;
    assert_int_equal(RUN_WORDS("--help"), 0);
    assert_non_null(strstr(out_text, "\n  -q, --quiet       say nothing\n"));
    assert_non_null(strstr(out_text, "\n  -t, --text TEXT   any text\n"));
    assert_non_null(strstr(out_text, "\n  -h, --help        show this help\n"));
    assert_non_null(strstr(out_text, "\nNumbers:\n  -n, --attempts N  how many, told"));
    assert_non_null(strstr(out_text, "\n                    "));
    assert_non_null(
        strstr(out_text, "\n      --a-name-that-is-longer-than-a-column N\n                    has its own line\n"));
    assert_non_null(strstr(out_text, "\n\nSecond paragraph.\n\n  kept   as it is\n"));
    assert_non_null(
        strstr(out_text, "\nExit status:\nWhat the last one did.\n\nExamples:\n  bide try   --quiet `x`\n"));
    const char *last = strstr(out_text, "\nExamples:\n");
    assert_string_equal(last, "\nExamples:\n  bide try   --quiet `x`\n");
}

static void version_is_that_of_bide(void **state)
{
    (void)state;
    assert_int_equal(RUN_WORDS("--version"), 0);
    assert_string_equal(out_text, "bide 0.1.0\n");
    assert_refused(RUN_WORDS("--version=2"), "--version=2: --version takes no value");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(value_is_next_word_or_follows_equals_sign),
        cmocka_unit_test(letters_combine_and_the_last_may_take_a_value),
        cmocka_unit_test(group_reads_into_its_own_settings),
        cmocka_unit_test(operands_may_stand_between_options),
        cmocka_unit_test(two_hyphens_end_the_options),
        cmocka_unit_test(options_after_the_first_operand_belong_to_the_other_command),
        cmocka_unit_test(last_of_repeated_options_wins),
        cmocka_unit_test(empty_value_needs_permission_of_the_table),
        cmocka_unit_test(empty_operand_is_valid_only_for_another_command),
        cmocka_unit_test(misspelt_option_suggests_the_nearest),
        cmocka_unit_test(option_of_other_programs_gets_advice),
        cmocka_unit_test(number_after_a_flag_gets_its_advice),
        cmocka_unit_test(beginning_of_options_suggests_them),
        cmocka_unit_test(abbreviated_options_are_rejected),
        cmocka_unit_test(invalid_value_is_reported_with_the_valid_form),
        cmocka_unit_test(missing_and_superfluous_values_are_reported),
        cmocka_unit_test(help_goes_to_stdout_and_runs_nothing),
        cmocka_unit_test(help_aligns_options_and_ends_with_examples),
        cmocka_unit_test(version_is_that_of_bide),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
