/* topics.c - the topics of `bide help`. Tables that the library knows are printed from the library. */
#include <string.h>

#include <bide/policy.h>
#include <bide/verdict.h>

#include "common/options.h"
#include "common/topics.h"
#include "conf/conf.h"

static void print_prose(const struct cli_page *page, const char *text)
{
    cli_print_prose(page->out, text, (struct cli_margins){.left = 0, .right = page->width});
}

/* Prints two columns: a word, and its meaning folded under itself. */
static void print_row(const struct cli_page *page, unsigned column, const char *word, const char *meaning)
{
    struct cli_margins margins = {.left = column, .right = page->width};
    fprintf(page->out, "  %s", word);
    cli_print_column(page->out, meaning, (unsigned)strlen(word) + 2, margins);
}

/* ---- texts ---- */

static void print_exit_codes(const struct cli_page *page)
{
    print_prose(page, "The exit status of `bide` is that of the last attempt where there is one:\n\n");
    print_row(page, 12, "0", "success");
    print_row(page, 12, "N", "`bide run`: the command's own status, from its last attempt");
    print_row(page, 12, "128+N", "`bide run`: signal N killed the command");
    print_row(page, 12, "124", "the attempt timed out (--attempt-timeout or --deadline)");
    print_row(page, 12, "126, 127", "the command cannot be executed, or does not exist, as in a shell");
    print_row(page, 12, "75", "nothing was run: the circuit breaker or another gate of the target refused");
    print_row(page, 12, "125", "bide itself failed: an invalid option or policy. Nothing was run");
    print_prose(page, "\nThe reason for giving up is printed on stderr (`bide help reasons`). `bide explain --strict` "
                      "exits with 1 after a finding, `bide budget` if there is no such target. `bide fetch --help` "
                      "lists the exit statuses for HTTP statuses.\n");
}

static void print_policy_file(const struct cli_page *page)
{
    print_prose(page,
                "A policy file, bide.conf, has a section for each target:\n\n  [payments]\n  extends  = payment       "
                "# a preset or another section; default: service\n  attempts = 3\n  deadline = 2s\n  budget.capacity = "
                "20\n  retry_status = 408, 429, 500-504\n\nThe first of ./bide.conf, $XDG_CONFIG_HOME/bide/bide.conf "
                "(~/.config without that variable) and /etc/bide/bide.conf is read, or the file given by --config. It "
                "is read only if --policy or --target requires a policy; a mistake anywhere in it is an error. `bide "
                "explain NAME --format json` prints every key of a policy, `--format ini` the differences from its "
                "preset. A file that begins with { is a gRPC service config.\n\nKeys:\n\n");
    for (size_t i = 0; conf_field(i) != NULL; i++)
        print_row(page, 28, conf_field(i)->key, conf_field(i)->about);
    print_prose(page, "\nLists of numbers and ranges; with a retry_ list, a number in neither list is permanent:\n\n");
    print_row(page, 28, "retry_status, permanent_status", "HTTP statuses, 100 to 599");
    print_row(page, 28, "retry_exit, permanent_exit", "exit codes, 1 to 255");
    print_row(page, 28, "retry_grpc, permanent_grpc", "gRPC codes, 0 to 16 or by name");
}

static void print_presets(const struct cli_page *page)
{
    print_prose(page, "Presets, for --preset, --policy and `extends`:\n\n");
    for (enum bide_preset preset = 0; preset < BIDE_PRESET_COUNT; preset++)
        print_row(page, 16, bide_preset_label(preset), bide_preset_purpose(preset));
    print_prose(page, "\n`bide explain NAME` reports on a preset.\n");
}

static void print_units(const struct cli_page *page)
{
    print_prose(page, "A unit follows its value without a blank. A value that cannot be represented exactly is "
                      "rejected, not rounded.\n\n");
    print_row(page, 24, "200ms 1.5s 2m 1h 1d", "durations; also us and ns. 0 needs no unit; never: no limit");
    print_row(page, 24, "3", "counts");
    print_row(page, 24, "0.1 full", "tokens of a budget, at most three decimals");
    print_row(page, 24, "5/s 1/min", "rates: also /m and /h");
    print_row(page, 24, "10% 99.9%", "shares");
    print_row(page, 24, "2x", "factors; the x is optional");
    print_row(page, 24, "yes no", "switches; also true false on off");
    print_row(page, 24, "budget,breaker none", "sets of names");
}

static void print_hints(const struct cli_page *page)
{
    print_prose(page, "A server or a command may send a hint when to retry. bide waits at least that long, plus some "
                      "jitter. If the hint exceeds hint_max of the policy or the time left until the deadline, the "
                      "call gives up at once instead of waiting in vain.\n\nFrom a server (`bide fetch`):\n\n");
    print_row(page, 26, "Retry-After", "seconds, or an HTTP date, compared with the server's clock");
    print_row(page, 26, "RateLimit", "the reset time of an exhausted quota");
    print_row(page, 26, "retry-after-ms", "milliseconds; also x-ms-retry-after-ms and x-amz-retry-after");
    print_row(page, 26, "grpc-retry-pushback-ms", "milliseconds; anything but a number means: do not retry");
    print_row(page, 26, "x-should-retry", "false: do not retry; also Bide-Retry, stripe-should-retry");
    print_prose(
        page,
        "\nFrom a command (`bide run`): a line `retry-after: 5` on file descriptor 3, or "
        "with --hint stderr on its stderr.\n\n`bide explain 503 --retry-after 30` predicts the effect of a hint.\n");
}

static void print_environment(const struct cli_page *page)
{
    print_prose(page, "Variables that bide reads:\n\n");
    print_row(page, 20, "BIDE_POLICY", "like --policy NAME, if neither an option nor a section of the target applies");
    print_row(page, 20, "BIDE_CONFIG", "like --config FILE, but a file without an applicable section is no error");
    print_row(page, 20, "BIDE_SHARED_DIR",
              "directory of shared targets; default $XDG_RUNTIME_DIR/bide or /dev/shm/bide-UID");
    print_row(page, 20, "BIDE_FLEET", "like --fleet URL of run and fetch, if they have a --target");
    print_row(page, 20, "XDG_CONFIG_HOME", "directory of bide/bide.conf; default ~/.config");
    print_row(page, 20, "PATH", "programs bide-NAME that are not beside bide");
    print_row(page, 20, "NO_COLOR", "no colours, if not empty");
    print_row(page, 20, "TERM", "dumb or unset: no colours and no progress line");
    print_row(page, 20, "LC_ALL LC_CTYPE LANG", "blocks and arrows only with UTF-8");
    print_row(page, 20, "TMPDIR", "directory for data of run and fetch that is too large to be held in memory");
    print_prose(page, "\n`bide run --help` lists the variables that the command gets, such as BIDE_ATTEMPT.\n");
}

static void print_reasons(const struct cli_page *page)
{
    print_prose(page, "Every verdict has a reason, printed as a sentence in messages and as a label with --json:\n\n");
#define REASON_ROW(NAME, label, text) print_row(page, 20, label, text);
    BIDE_REASON_LIST(REASON_ROW)
#undef REASON_ROW
}

/* Prints only names, one per line: completions parse this. A file with mistakes contributes no names; the command that
 * uses the file reports the mistakes. */
static void print_policies(const struct cli_page *page)
{
    char path[CONF_PATH_MAX], errors[CONF_ERROR_MAX];
    struct conf conf = {0};
    if (conf_default_path(path) && conf_read(&conf, path, errors))
        for (size_t i = 0; i < conf.count; i++)
            fprintf(page->out, "%s\n", conf.policy[i].name);
    for (enum bide_preset preset = 0; preset < BIDE_PRESET_COUNT; preset++)
        fprintf(page->out, "%s\n", bide_preset_label(preset));
    conf_free(&conf);
}

/* ---- the list ---- */

const struct cli_topic *cli_topic(size_t i)
{
    static const struct cli_topic topics[] = {
        {"exit-codes", "what the exit status means", print_exit_codes},
        {"policy-file", "bide.conf: search path and keys", print_policy_file},
        {"presets", "the built-in policies", print_presets},
        {"policies", "all names that --policy accepts here, one per line", print_policies},
        {"units", "the format of durations, shares and rates", print_units},
        {"hints", "how a server or a command requests a pause", print_hints},
        {"environment", "variables that bide reads", print_environment},
        {"reasons", "the reasons for waiting and for giving up", print_reasons},
    };
    return i < sizeof topics / sizeof *topics ? &topics[i] : NULL;
}
