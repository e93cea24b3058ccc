/* command.c - the subcommand `bide wait`: waits until ports, URLs and a command are ready.
 *
 * The conditions are checked one after the other, under one deadline. Each is a call of the engine (bide_run) whose
 * attempts are checks (check.h): two in quick succession, then at jittered intervals, without a limit of attempts. */
#include "common/commands.h"
#include "common/outer.h"
#include "common/term.h"

#include "check.h"
#include "text/unit.h"

#include <bide/clock.h>
#include <bide/run.h>

#include <stdlib.h>
#include <string.h>

#define EXIT_TIME_OVER       124
#define FOR_NS               (60 * BIDE_S)
#define EVERY_NS             (500 * BIDE_MS)
#define CHECK_NS             (5 * BIDE_S)
#define SECOND_CHECK_NS      (10 * BIDE_MS)
#define MULTIPLIER_MAX_MILLI 1000000u
#define LAST_CHECK_NS        (200 * BIDE_MS) /* time that the last check has at least, if --for is long enough */
#define LIVE_NAME_COLUMNS    60u
#define NAME_COLUMNS         18u /* a line has room for that much of a name, whatever the error */

struct settings {
    int64_t for_ns, every_ns, check_ns;
    bool quiet;
};

static const struct cli_option options[] = {
    {.name = "for",
     .value = "DURATION",
     .help = "give up after this time; never: no limit; default 60s",
     .kind = CLI_DURATION,
     CLI_AT(struct settings, for_ns),
     .or_never = true,
     .min = 1,
     .details = "For all conditions together."},
    {.name = "every",
     .value = "DURATION",
     .help = "longest pause between two checks; default 500ms",
     .kind = CLI_DURATION,
     CLI_AT(struct settings, every_ns),
     .min = BIDE_MS,
     .details = "Each pause is drawn between half of it and all of it, so that many waiting processes do not check at "
                "the same instant."},
    {.name = "attempt-timeout",
     .value = "DURATION",
     .help = "time limit of each check; default 5s",
     .kind = CLI_DURATION,
     CLI_AT(struct settings, check_ns),
     .min = BIDE_MS},
    {.name = "quiet",
     .letter = 'q',
     .help = "print only the final failure",
     .kind = CLI_FLAG,
     CLI_AT(struct settings, quiet)},
};

/* ---- one condition ---- */

struct waiting {
    const struct settings *settings;
    struct wait_check check;
    struct cli_term term;
    int64_t start_ns;
    uint32_t checks;
    bool reported; /* the first failure was printed */
    enum wait_result result;
    struct wait_error error;
};

static struct bide_outcome check_attempt(void *context, const struct bide_verdict *start)
{
    static const enum bide_kind kinds[] = {[WAIT_READY] = BIDE_KIND_OK,
                                           [WAIT_NOT_READY] = BIDE_KIND_TRANSIENT,
                                           [WAIT_TIMED_OUT] = BIDE_KIND_TRANSIENT,
                                           [WAIT_IMPOSSIBLE] = BIDE_KIND_PERMANENT};
    struct waiting *w = context;
    struct wait_error error = {.text = ""};
    bool is_short = start->attempt_deadline_ns - bide_now() < w->settings->check_ns / 2; /* cut by --for */
    w->checks++;
    w->result = wait_check_run(&w->check, start->attempt_deadline_ns, &error);
    if (w->checks == 1 || w->result != WAIT_TIMED_OUT || !is_short) /* the error of a full check says more */
        w->error = error;
    return (struct bide_outcome){.kind = kinds[w->result]};
}

/* The name of a condition and its error, cut so that they fit into a line beside the rest of it. */
struct line_parts {
    char name[CLI_SHORT_SIZE(CLI_LINE_COLUMNS)], error[CLI_SHORT_SIZE(CLI_LINE_COLUMNS)];
};

/* `used` is the length of the rest. A short error leaves its room to the name. */
static void line_parts_fit(struct line_parts *parts, const struct waiting *w, size_t used)
{
    size_t room = CLI_LINE_COLUMNS - 1 - used, name_room = NAME_COLUMNS,
           error_columns = cli_text_columns(w->error.text);
    if (error_columns + name_room < room)
        name_room = room - error_columns;
    cli_text_shorten(parts->name, w->check.name, name_room);
    cli_text_shorten(parts->error, w->error.text, room - cli_text_columns(parts->name));
}

/* Shows why bide waits: on a terminal in one line that is rewritten, elsewhere once. */
static void waiting_on_event(void *context, const struct bide_event *event)
{
    struct waiting *w = context;
    char line[2 * CLI_SHORT_SIZE(CLI_LINE_COLUMNS) + 16];
    struct line_parts parts;
    if (event->verdict->action != BIDE_ACTION_WAIT || w->settings->quiet)
        return;
    if (w->term.live) {
        cli_text_shorten(parts.name, w->check.name, LIVE_NAME_COLUMNS);
        cli_text_shorten(parts.error, w->error.text, CLI_LINE_COLUMNS);
        snprintf(line, sizeof line, "waiting for %s: %s", parts.name, parts.error);
        cli_rewrite_line(&w->term, line); /* cuts the line at the width */
    } else if (!w->reported) {
        line_parts_fit(&parts, w, strlen("bide wait: waiting for : "));
        cli_report(&cli_wait, "waiting for %s: %s", parts.name, parts.error);
    }
    w->reported = true;
}

/* The pause is --every, or half of a shorter --for. The engine uses its last wait, for a check shortly before the end,
 * only while the remaining time is longer than the base of the backoff: so the base is short, and the backoff reaches
 * the pause in one step. The cost is a second check right after the first. */
static void policy_fill(struct bide_policy *policy, const struct settings *s, int64_t left_ns)
{
    int64_t pause_ns = s->every_ns < left_ns / 2 ? s->every_ns : left_ns / 2;
    bide_policy_init(policy, BIDE_PRESET_COMMAND);
    policy->attempts_max = UINT32_MAX;
    policy->multiplier_milli = MULTIPLIER_MAX_MILLI;
    policy->jitter = BIDE_JITTER_EQUAL;
    policy->cap_ns = pause_ns > BIDE_MS ? pause_ns : BIDE_MS;
    policy->base_ns = policy->cap_ns < SECOND_CHECK_NS ? policy->cap_ns : SECOND_CHECK_NS;
    if (policy->base_ns < policy->cap_ns / 1000)
        policy->base_ns = policy->cap_ns / 1000;
    policy->last_wait = true;
    policy->attempt_min_ns = left_ns / 20 < LAST_CHECK_NS ? left_ns / 20 : LAST_CHECK_NS;
    if (policy->attempt_min_ns < 0)
        policy->attempt_min_ns = 0;
    policy->attempt_timeout_ns = s->check_ns;
    policy->layer = BIDE_LAYER_ANY; /* a check is no load that multiplies */
}

/* " was not ready in 5s (12 checks): ", without the checks if the error needs their room; ": " if no check can
 * succeed. Returns its length. */
static size_t rest_format(char *rest, size_t size, const struct waiting *w, const char *took)
{
    size_t used = strlen("bide wait: "), columns = cli_text_columns(w->check.name);
    if (w->result == WAIT_IMPOSSIBLE)
        return (size_t)snprintf(rest, size, ": ");
    used += columns < NAME_COLUMNS ? columns : NAME_COLUMNS;
    used += cli_text_columns(w->error.text);
    int n = snprintf(rest, size, " was not ready in %s (%u check%s): ", took, w->checks, w->checks == 1 ? "" : "s");
    if (used + (size_t)n >= CLI_LINE_COLUMNS)
        n = snprintf(rest, size, " was not ready in %s: ", took);
    return (size_t)n;
}

static int waiting_report_end(struct waiting *w, const struct bide_verdict *end)
{
    char took[TEXT_VALUE_SIZE], rest[2 * TEXT_VALUE_SIZE + 32];
    struct line_parts parts;
    text_duration_format_short(took, bide_now() - w->start_ns);
    line_parts_fit(&parts, w, strlen("bide wait: ") + rest_format(rest, sizeof rest, w, took));
    cli_rewrite_line(&w->term, "");
    if (end->action == BIDE_ACTION_DONE) {
        if (w->reported && !w->settings->quiet)
            cli_report(&cli_wait, "%s is ready, after %s", parts.name, took);
        return 0;
    }
    if (w->checks == 0)
        cli_report(&cli_wait, "%s: the time was over before the first check", parts.name);
    else
        cli_report(&cli_wait, "%s%s%s", parts.name, rest, parts.error);
    return w->result == WAIT_IMPOSSIBLE && w->checks > 0 ? w->error.exit_status : EXIT_TIME_OVER;
}

/* Waits for one condition. Returns the exit status. */
static int condition_wait(const struct settings *s, const struct wait_check *check, int64_t start_ns,
                          int64_t deadline_ns)
{
    struct waiting w = {.settings = s, .check = *check, .term = cli_term_detect(stderr), .start_ns = start_ns};
    struct bide_policy policy;
    policy_fill(&policy, s, deadline_ns == 0 ? BIDE_NEVER : deadline_ns - bide_now());
    struct bide_job job = {.policy = &policy,
                           .target = BIDE_NO_TARGET,
                           .request = {.safety = BIDE_SAFE, .deadline_ns = deadline_ns},
                           .attempt = check_attempt,
                           .event = waiting_on_event,
                           .context = &w};
    struct bide_verdict end = bide_run(&job);
    return waiting_report_end(&w, &end);
}

/* ---- the command ---- */

static void settings_init(void *settings)
{
    *(struct settings *)settings = (struct settings){.for_ns = FOR_NS, .every_ns = EVERY_NS, .check_ns = CHECK_NS};
}

/* Parses the operand at `at`: a condition, or "--" and a command, which takes the rest. Returns the number of operands
 * used, 0 after printing an error. */
static size_t operand_parse(struct wait_check *check, char **at)
{
    size_t used = 1;
    if (strcmp(*at, "--") == 0) {
        if (at[1] == NULL)
            return cli_fail(&cli_wait, "--: must be followed by a command"), 0;
        *check = (struct wait_check){.kind = WAIT_COMMAND, .command = at + 1};
        snprintf(check->name, sizeof check->name, "%s", at[1]);
        while (at[used] != NULL)
            used++;
        return used;
    }
    const char *want = wait_check_parse(check, *at);
    if (want != NULL)
        return cli_fail(&cli_wait, "%s: must be %s",
                        check->name[0] == '\0' || strchr(check->name, '@') != NULL ? "URL" : check->name, want),
               0;
    return used;
}

/* The earlier of --for and the deadline of a bide run around this one. */
static int64_t deadline_of(const struct settings *s, int64_t start_ns)
{
    int64_t outer_ns = cli_outer_read(start_ns).deadline_ns;
    int64_t own_ns = s->for_ns == BIDE_NEVER ? 0 : start_ns + s->for_ns;
    if (own_ns == 0 || (outer_ns != 0 && outer_ns < own_ns))
        return outer_ns;
    return own_ns;
}

static int wait_main(void *settings, char **operands)
{
    const struct settings *s = settings;
    struct wait_check check;
    int64_t start_ns = bide_now(), deadline_ns = deadline_of(s, start_ns);
    size_t used;
    if (operands[0] == NULL)
        return cli_fail(&cli_wait, "nothing to wait for: bide wait tcp:HOST:PORT, a URL, or -- COMMAND");
    for (char **at = operands; *at != NULL; at += used) /* all mistakes before the first wait */
        if ((used = operand_parse(&check, at)) == 0)
            return CLI_EXIT_BIDE_FAILED;
    wait_install_signals();
    for (char **at = operands; *at != NULL; at += used) {
        used = operand_parse(&check, at);
        int status = condition_wait(s, &check, start_ns, deadline_ns);
        if (status != 0)
            return status;
    }
    return 0;
}

static const struct cli_group groups[] = {{CLI_GROUP(NULL, options)}};

/* What the time limit and the pause are called by wait-for-it, dockerize, curl and bide run. */
#define ADVICE_FOR      "use --for DURATION"
#define ADVICE_EVERY    "use --every DURATION"
#define ADVICE_NO_LIMIT "the number of checks has no limit; use --for DURATION"

static const struct cli_advice advice[] = {
    {"--timeout", ADVICE_FOR},
    {"-t", ADVICE_FOR},
    {"--deadline", ADVICE_FOR},
    {"--max-time", ADVICE_FOR},
    {"-m", ADVICE_FOR},
    {"--interval", ADVICE_EVERY},
    {"-i", ADVICE_EVERY},
    {"--delay", ADVICE_EVERY},
    {"--sleep", ADVICE_EVERY},
    {"--base", ADVICE_EVERY},
    {"--retry-interval", ADVICE_EVERY},
    {"--retry-delay", ADVICE_EVERY},
    {"--retries", ADVICE_NO_LIMIT},
    {"--retry", ADVICE_NO_LIMIT},
    {"--tries", ADVICE_NO_LIMIT},
    {"--attempts", ADVICE_NO_LIMIT},
    {"--max-attempts", ADVICE_NO_LIMIT},
    {"-n", ADVICE_NO_LIMIT},
    {"--connect-timeout", "use --attempt-timeout DURATION"},
    {"-s", "use --quiet"},
    {"--silent", "use --quiet"},
};

static const struct cli_section sections[] = {
    {.title = "What is ready",
     .text = "  tcp:HOST:PORT   a port that accepts a connection; tcp:[::1]:5432 for IPv6\n"
             "  URL             http or https: GET returns a status below 400 and its whole\n"
             "                  body, within the time of a check\n"
             "  -- COMMAND      exits 0; of its output only the last line is shown, when the\n"
             "                  wait begins and if the time is over\n\n"
             "Several are waited for one after the other; all must be ready."},
    {.title = "Exit status",
     .text = "  0        everything is ready\n"
             "  124      the time is over; the last error is printed\n"
             "  126      the command cannot be executed\n"
             "  127      the command was not found\n"
             "  125      bide itself failed: invalid option or operand\n"
             "  128+n    ended by signal n"},
    {.title = "Examples",
     .text = "  bide wait tcp:db:5432 && exec ./server\n"
             "  bide wait --for 2m http://localhost:8080/health\n"
             "  bide wait tcp:redis:6379 tcp:db:5432 -- pg_isready -h db"},
};

static const char *operand_word(size_t i)
{
    static const char *const words[] = {"tcp:", "http://", "https://"};
    return i < sizeof words / sizeof *words ? words[i] : NULL;
}

static const struct cli_operands operands_of[] = {{NULL, operand_word, CLI_COMPLETE_NOTHING}};

const struct cli_command cli_wait = {
    .name = "wait",
    .summary = CLI_WAIT_SUMMARY,
    .synopsis = "[options] [tcp:HOST:PORT | URL]... [-- COMMAND [ARGUMENT...]]",
    .about = "Waits until ports, URLs and a command are ready: for entrypoints and CI, instead of a loop with `sleep`. "
             "Checks at jittered intervals, and prints the last error in clear words when the time is over.",
    .groups = groups,
    .group_count = sizeof groups / sizeof *groups,
    .sections = sections,
    .section_count = sizeof sections / sizeof *sections,
    CLI_ADVICE(advice),
    .keeps_separator = true,
    .operands = operands_of,
    .operands_count = sizeof operands_of / sizeof *operands_of,
    .settings_size = sizeof(struct settings),
    .init = settings_init,
    .run = wait_main,
};
