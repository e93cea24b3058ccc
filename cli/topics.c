/* topics.c - the topics of `bide help`. What the library knows as a table is printed from that table. */
#include <string.h>

#include <bide/policy.h>
#include <bide/verdict.h>

#include "common/options.h"
#include "common/topics.h"
#include "conf/conf.h"

#define WIDTH 79u

static void prose(FILE *out, const char *text)
{
    cli_prose(out, text, (struct cli_margins){.left = 0, .right = WIDTH});
}

/* Two columns: a word, and what it means, folded under itself. */
static void row(FILE *out, unsigned column, const char *word, const char *meaning)
{
    fprintf(out, "  %s", word);
    cli_column(out, meaning, (unsigned)strlen(word) + 2, (struct cli_margins){.left = column, .right = WIDTH});
}

/* ---- texts ---- */

static void exit_codes(FILE *out)
{
    prose(out, "The exit status of `bide` is what the last attempt did, not a code of its own:\n\n");
    row(out, 12, "0", "it succeeded");
    row(out, 12, "N", "`bide run`: the command's own status, from its last attempt");
    row(out, 12, "128+N", "`bide run`: the command died by signal N");
    row(out, 12, "124", "the attempt was cut for time (--attempt-timeout or --deadline)");
    row(out, 12, "126, 127", "the command cannot be executed, or there is none, as in a shell");
    row(out, 12, "75", "nothing was run: the breaker or another gate of the target refused");
    row(out, 12, "125", "bide itself failed: a bad option, a bad policy. Nothing was run");
    prose(out, "\nWhy it gave up is said on stderr (`bide help why`). `bide explain --strict` exits with 1 if it found "
               "something. What `bide fetch` makes of HTTP statuses: `bide fetch --help`.\n");
}

static void policy_file(FILE *out)
{
    prose(out, "A policy file, bide.conf, has a section for each target:\n\n"
               "  [payments]\n"
               "  extends  = payment       # a preset or another section; without it: service\n"
               "  attempts = 3\n"
               "  deadline = 2s\n"
               "  budget.capacity = 20\n"
               "  retry_status = 408, 429, 500-504\n\n"
               "The first of ./bide.conf, $XDG_CONFIG_HOME/bide/bide.conf (~/.config without that variable) and "
               "/etc/bide/bide.conf is read, or the file named by --config. It is read when --policy or --target asks "
               "for a policy, and a mistake anywhere in it is an error. `bide explain NAME --format ini` shows a "
               "policy with all its values. A file that begins with { is a gRPC service config.\n\nKeys:\n\n");
    for (size_t i = 0; conf_field(i) != NULL; i++)
        row(out, 28, conf_field(i)->key, conf_field(i)->about);
    prose(out, "\nLists, of numbers and ranges; a retry_ list makes everything in neither list permanent:\n\n");
    row(out, 28, "retry_status, permanent_status", "HTTP statuses, 100 to 599");
    row(out, 28, "retry_exit, permanent_exit", "exit codes, 1 to 255");
    row(out, 28, "retry_grpc, permanent_grpc", "gRPC codes, 0 to 16 or by name");
}

static void presets(FILE *out)
{
    prose(out, "Presets, for --preset, --policy and `extends`:\n\n");
    for (enum bide_preset preset = 0; preset < BIDE_PRESET_COUNT; preset++)
        row(out, 16, bide_preset_label(preset), bide_preset_purpose(preset));
    prose(out, "\n`bide explain NAME` shows what one does.\n");
}

static void units(FILE *out)
{
    prose(out, "Values carry their unit, without a space. What does not fit exactly is refused, not rounded.\n\n");
    row(out, 24, "200ms 1.5s 2m 1h 1d", "durations; also us and ns. 0 needs no unit; never: without end");
    row(out, 24, "3", "counts");
    row(out, 24, "0.1 full", "tokens of a budget, in thousandths");
    row(out, 24, "5/s 1/min", "rates: also /m and /h");
    row(out, 24, "10% 99.9%", "shares");
    row(out, 24, "2x", "factors; the x may be left out");
    row(out, 24, "yes no", "switches; also true false on off");
    row(out, 24, "budget,breaker none", "sets of names");
}

static void hints(FILE *out)
{
    prose(out, "Who is called may say when to come back, and bide waits at least that long, with a little jitter "
               "upwards. A hint longer than hint_max of the policy, or than what is left of the deadline, gives up at "
               "once instead of waiting in vain.\n\nFrom a server (`bide fetch`):\n\n");
    row(out, 26, "Retry-After", "seconds, or an HTTP-date, by the server's own clock");
    row(out, 26, "RateLimit", "the reset of what is used up");
    row(out, 26, "retry-after-ms", "milliseconds; also x-ms-retry-after-ms and x-amz-retry-after");
    row(out, 26, "grpc-retry-pushback-ms", "milliseconds; what is no number means: do not retry");
    row(out, 26, "x-should-retry", "false: do not retry; also Bide-Retry, stripe-should-retry");
    prose(out, "\nFrom a command (`bide run`): a line `retry-after: 5` on its stderr or on file descriptor 3.\n\n"
               "`bide explain 503 --retry-after 30` tells what would be made of one.\n");
}

static void environment(FILE *out)
{
    prose(out, "What bide reads:\n\n");
    row(out, 20, "BIDE_POLICY", "as --policy NAME, where neither an option nor a target's section says it");
    row(out, 20, "BIDE_CONFIG", "as --config FILE, but a file that has nothing to say is no error");
    row(out, 20, "XDG_CONFIG_HOME", "where bide/bide.conf is looked for; ~/.config without it");
    row(out, 20, "PATH", "where programs bide-NAME are found that do not lie beside bide");
    row(out, 20, "NO_COLOR", "no colours, if it is not empty");
    row(out, 20, "TERM", "dumb or unset: no colours, and no line is rewritten");
    row(out, 20, "LC_ALL LC_CTYPE LANG", "blocks and arrows only if they say UTF-8");
    row(out, 20, "TMPDIR", "where bide run keeps what does not fit into memory");
    prose(out, "\nWhat `bide run` tells the command it runs: BIDE_ATTEMPT and others, see `bide run --help`.\n");
}

static void whys(FILE *out)
{
    prose(out, "Every decision has a reason. It is in the messages as a sentence, and with --json as a word:\n\n");
#define WHY_ROW(NAME, label, text) row(out, 20, label, text);
    BIDE_WHY_LIST(WHY_ROW)
#undef WHY_ROW
}

/* Names alone, one a line: completions read this. A file with mistakes offers nothing; whoever uses it is told. */
static void policies(FILE *out)
{
    char path[CONF_PATH_MAX], errors[CONF_ERROR_MAX];
    struct conf conf = {0};
    if (conf_path(path) && conf_read(&conf, path, errors))
        for (size_t i = 0; i < conf.count; i++)
            fprintf(out, "%s\n", conf.policy[i].name);
    for (enum bide_preset preset = 0; preset < BIDE_PRESET_COUNT; preset++)
        fprintf(out, "%s\n", bide_preset_label(preset));
    conf_free(&conf);
}

/* ---- the list ---- */

const struct cli_topic *cli_topic(size_t i)
{
    static const struct cli_topic topics[] = {
        {"exit-codes", "what the exit status means", exit_codes},
        {"policy-file", "bide.conf: where it lies, its keys", policy_file},
        {"presets", "policies that are there without a file", presets},
        {"policies", "all names that --policy takes here, one a line", policies},
        {"units", "how durations, shares and rates are written", units},
        {"hints", "how a server or a command says when to come back", hints},
        {"environment", "variables that bide reads", environment},
        {"why", "the reasons for waiting and for giving up", whys},
    };
    return i < sizeof topics / sizeof *topics ? &topics[i] : NULL;
}
