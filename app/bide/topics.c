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
    print_prose(page, "The exit status of `bide` is what the last attempt did, not a code of its own:\n\n");
    print_row(page, 12, "0", "it succeeded");
    print_row(page, 12, "N", "`bide run`: the command's own status, from its last attempt");
    print_row(page, 12, "128+N", "`bide run`: the command died by signal N");
    print_row(page, 12, "124", "the attempt was cut for time (--attempt-timeout or --deadline)");
    print_row(page, 12, "126, 127", "the command cannot be executed, or there is none, as in a shell");
    print_row(page, 12, "75", "nothing was run: the breaker or another gate of the target refused");
    print_row(page, 12, "125", "bide itself failed: a bad option, a bad policy. Nothing was run");
    print_prose(
        page,
        "\nWhy it gave up is said on stderr (`bide help reasons`). `bide explain --strict` exits with 1 if it found "
        "something, `bide budget` if there is no such target. What `bide fetch` makes of HTTP statuses: `bide fetch "
        "--help`.\n");
}

static void print_policy_file(const struct cli_page *page)
{
    print_prose(page,
                "A policy file, bide.conf, has a section for each target:\n\n"
                "  [payments]\n"
                "  extends  = payment       # a preset or another section; without it: service\n"
                "  attempts = 3\n"
                "  deadline = 2s\n"
                "  budget.capacity = 20\n"
                "  retry_status = 408, 429, 500-504\n\n"
                "The first of ./bide.conf, $XDG_CONFIG_HOME/bide/bide.conf (~/.config without that variable) and "
                "/etc/bide/bide.conf is read, or the file named by --config. It is read when --policy or --target asks "
                "for a policy, and a mistake anywhere in it is an error. `bide explain NAME --format "
                "json` shows every key of a policy, `--format ini` what differs from its preset. A file that begins "
                "with { is a gRPC service config.\n\nKeys:\n\n");
    for (size_t i = 0; conf_field(i) != NULL; i++)
        print_row(page, 28, conf_field(i)->key, conf_field(i)->about);
    print_prose(page, "\nLists, of numbers and ranges; a retry_ list makes everything in neither list permanent:\n\n");
    print_row(page, 28, "retry_status, permanent_status", "HTTP statuses, 100 to 599");
    print_row(page, 28, "retry_exit, permanent_exit", "exit codes, 1 to 255");
    print_row(page, 28, "retry_grpc, permanent_grpc", "gRPC codes, 0 to 16 or by name");
}

static void print_presets(const struct cli_page *page)
{
    print_prose(page, "Presets, for --preset, --policy and `extends`:\n\n");
    for (enum bide_preset preset = 0; preset < BIDE_PRESET_COUNT; preset++)
        print_row(page, 16, bide_preset_label(preset), bide_preset_purpose(preset));
    print_prose(page, "\n`bide explain NAME` shows what one does.\n");
}

static void print_units(const struct cli_page *page)
{
    print_prose(page,
                "Values carry their unit, without a space. What does not fit exactly is refused, not rounded.\n\n");
    print_row(page, 24, "200ms 1.5s 2m 1h 1d", "durations; also us and ns. 0 needs no unit; never: without end");
    print_row(page, 24, "3", "counts");
    print_row(page, 24, "0.1 full", "tokens of a budget, in thousandths");
    print_row(page, 24, "5/s 1/min", "rates: also /m and /h");
    print_row(page, 24, "10% 99.9%", "shares");
    print_row(page, 24, "2x", "factors; the x may be left out");
    print_row(page, 24, "yes no", "switches; also true false on off");
    print_row(page, 24, "budget,breaker none", "sets of names");
}

static void print_hints(const struct cli_page *page)
{
    print_prose(page,
                "Who is called may say when to come back, and bide waits at least that long, with a little jitter "
                "upwards. A hint longer than hint_max of the policy, or than what is left of the deadline, gives up at "
                "once instead of waiting in vain.\n\nFrom a server (`bide fetch`):\n\n");
    print_row(page, 26, "Retry-After", "seconds, or an HTTP-date, by the server's own clock");
    print_row(page, 26, "RateLimit", "the reset of what is used up");
    print_row(page, 26, "retry-after-ms", "milliseconds; also x-ms-retry-after-ms and x-amz-retry-after");
    print_row(page, 26, "grpc-retry-pushback-ms", "milliseconds; what is no number means: do not retry");
    print_row(page, 26, "x-should-retry", "false: do not retry; also Bide-Retry, stripe-should-retry");
    print_prose(page,
                "\nFrom a command (`bide run`): a line `retry-after: 5` on its stderr or on file descriptor 3.\n\n"
                "`bide explain 503 --retry-after 30` tells what would be made of one.\n");
}

static void print_environment(const struct cli_page *page)
{
    print_prose(page, "What bide reads:\n\n");
    print_row(page, 20, "BIDE_POLICY", "as --policy NAME, where neither an option nor a target's section says it");
    print_row(page, 20, "BIDE_CONFIG", "as --config FILE, but a file that has nothing to say is no error");
    print_row(page, 20, "BIDE_SHARED_DIR",
              "where targets are that processes share; $XDG_RUNTIME_DIR/bide or /dev/shm/bide-UID");
    print_row(page, 20, "BIDE_FLEET", "as --fleet URL of run and fetch, where they have a --target");
    print_row(page, 20, "XDG_CONFIG_HOME", "where bide/bide.conf is looked for; ~/.config without it");
    print_row(page, 20, "PATH", "where programs bide-NAME are found that do not lie beside bide");
    print_row(page, 20, "NO_COLOR", "no colours, if it is not empty");
    print_row(page, 20, "TERM", "dumb or unset: no colours, and no line is rewritten");
    print_row(page, 20, "LC_ALL LC_CTYPE LANG", "blocks and arrows only if they say UTF-8");
    print_row(page, 20, "TMPDIR", "where bide run keeps what does not fit into memory");
    print_prose(page, "\nWhat `bide run` tells the command it runs: BIDE_ATTEMPT and others, see `bide run --help`.\n");
}

static void print_reasons(const struct cli_page *page)
{
    print_prose(page,
                "Every decision has a reason. It is in the messages as a sentence, and with --json as a word:\n\n");
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
        {"policy-file", "bide.conf: where it lies, its keys", print_policy_file},
        {"presets", "policies that are there without a file", print_presets},
        {"policies", "all names that --policy takes here, one a line", print_policies},
        {"units", "how durations, shares and rates are written", print_units},
        {"hints", "how a server or a command says when to come back", print_hints},
        {"environment", "variables that bide reads", print_environment},
        {"reasons", "the reasons for waiting and for giving up", print_reasons},
    };
    return i < sizeof topics / sizeof *topics ? &topics[i] : NULL;
}
