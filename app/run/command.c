/* command.c - the subcommand `bide run`: its options, its text output and its JSON events.
 *
 * Text goes to stderr: one short line per retry and one at the end, nothing if the first attempt succeeds. Programs
 * read events instead, one JSON object per line (--json, --log). The call itself is executed by loop.c. */
#include "common/commands.h"
#include "common/event.h"
#include "common/fleet.h"
#include "common/otlp.h"
#include "common/policy.h"
#include "common/shared.h"
#include "common/signals.h"
#include "common/term.h"

#include "common/fd.h"
#include "loop.h"

#include <bide/clock.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GRACE_NS            (10 * BIDE_S)
#define TICK_NS             (100 * BIDE_MS)
#define TEXT_SIZE           1024u
#define PATTERN_COLUMNS_MIN 12u

struct settings {
    struct cli_policy policy;
    struct cli_shared shared;
    struct cli_fleet fleet;
    struct cli_otlp otlp;
    struct conf_rules exits;
    struct run_patterns stderr_patterns, stdout_patterns;
    const char *shell_line; /* --sh; NULL: none */
    const char *like;       /* --like; NULL: none */
    struct run_patterns known[RUN_KNOWN_COUNT];
    const char *until, *fallback;
    const char *log_name;
    int64_t grace_ns;
    uint32_t hints;
    bool hints_given, hint_fd_is_free;
    bool hold_stdout, show_failed, cron, quiet, json;
    enum run_stdin_option stdin_option;
};

/* ---- options ---- */

static const char *read_exits(void *exits, const char *value, const struct cli_option *option)
{
    return conf_rules_read(exits, (struct conf_span)CONF_EXITS, (enum bide_kind)option->min, value);
}

static const char *read_pattern(void *patterns, const char *value)
{
    return run_patterns_add(patterns, value);
}

static const char *const hint_names[] = {"none", "stderr", "fd", "both", NULL};
static const char *const stdin_names[] = {"lend", "inherit", "replay", NULL};
static const struct cli_option failure_options[] = {
    {.name = "like",
     .value = "PROGRAM",
     .help =
         "retry the failures that are transient for this program: apt, docker, git, npm, pg_dump, rsync or ssh; the "
         "command gets a pipe as stderr",
     .kind = CLI_WORD,
     CLI_AT(struct settings, like),
     .details =
         "A table of exit statuses and messages on stderr decides; a failure that it does not know is permanent. "
         "Lists and patterns of yours have priority. bide reads the command's stderr, and sets `LANGUAGE=en`, "
         "because messages may be translated.",
     .choices = run_like_names},
    {.name = "retry-on",
     .value = "LIST",
     .help = "retry only these exit statuses",
     .read_row = read_exits,
     CLI_AT(struct settings, exits),
     .min = BIDE_KIND_TRANSIENT,
     .details = "Numbers and ranges such as `1,75,100-110`; death by signal n is 128+n. May be repeated. All other "
                "statuses except 0 are then permanent."},
    {.name = "stop-on",
     .value = "LIST",
     .help = "never retry these exit statuses",
     .read_row = read_exits,
     CLI_AT(struct settings, exits),
     .min = BIDE_KIND_PERMANENT,
     .details = "All other statuses are classified as without this option. A status in both lists is not retried."},
    {.name = "retry-if-stderr",
     .value = "REGEX",
     .help = "retry if a line of stderr matches, whatever the exit status; the command gets a pipe as stderr",
     .read = read_pattern,
     CLI_AT(struct settings, stderr_patterns),
     .details = "A POSIX extended regular expression without back-references that may match anywhere in a line. May be "
                "repeated. If a pattern is given, a failure that matches none is retried only if `--retry-on` contains "
                "its status. An attempt that exits 0 and matches is a failure; if it is the last, bide exits 1."},
    {.name = "retry-if-stdout",
     .value = "REGEX",
     .help = "retry if a line of stdout matches",
     .read = read_pattern,
     CLI_AT(struct settings, stdout_patterns)},
    {.name = "until",
     .value = "CONDITION",
     .help = "succeed only if this shell command succeeds after an attempt that exited 0",
     .kind = CLI_STRING,
     CLI_AT(struct settings, until),
     .details =
         "Run by `sh -c` within the attempt's timeout, without stdin, its output on stderr. If it fails, the "
         "attempt has failed and is retried; if it was the last attempt, bide exits with the condition's status.",
     .completion = CLI_COMPLETE_COMMAND},
    {.name = "fallback",
     .value = "COMMAND",
     .help = "run this shell command once when bide gives up, and exit with its status",
     .kind = CLI_STRING,
     CLI_AT(struct settings, fallback),
     .details =
         "Run by `sh -c` with `BIDE_REASON` (such as `attempts_spent`) and `BIDE_STATUS` (the exit status without "
         "a fallback). Not run after a signal to bide.",
     .completion = CLI_COMPLETE_COMMAND},
    {.name = "hint",
     .value = "WHERE",
     .help = "where the command may write hints (Retry-After): fd (default: descriptor 3), stderr, both or none; for "
             "stderr the command gets a pipe of bide's",
     .kind = CLI_CHOICE,
     CLI_AT(struct settings, hints),
     CLI_GIVEN(struct settings, hints_given),
     .details =
         "A hint is a line `retry-after: 5` (seconds, or a date) or `retry-after-ms: 250` on stderr, or the same "
         "or a bare number on descriptor 3, which is offered unless bide was started with it. The next wait is "
         "at least as long; the longest of several hints counts.",
     .choices = hint_names},
};

static const struct cli_option command_options[] = {
    {.name = "sh",
     .value = "LINE",
     .help = "run this shell command line, such as 'a && b', instead of COMMAND; its arguments are the operands",
     .kind = CLI_STRING,
     CLI_AT(struct settings, shell_line),
     .completion = CLI_COMPLETE_COMMAND},
};

static const struct cli_option stream_options[] = {
    {.name = "hold",
     .help = "write only the stdout of the successful attempt",
     .kind = CLI_FLAG,
     CLI_AT(struct settings, hold_stdout),
     .details = "Up to 1 MiB is kept in memory, more in an unnamed file in `$TMPDIR` or `/tmp`. The stdout of a failed "
                "attempt is dropped, including the last, unless `--show-failed` is given."},
    {.name = "show-failed",
     .help = "with --hold: when bide gives up, write the stdout of the last attempt to stderr",
     .kind = CLI_FLAG,
     CLI_AT(struct settings, show_failed)},
    {.name = "cron",
     .help = "print nothing unless bide gives up; then the output of the last attempt and the reason, on stderr",
     .kind = CLI_FLAG,
     CLI_AT(struct settings, cron),
     .details =
         "Stores stdout and stderr of each attempt, like `--hold`, and drops them after a success: cron then "
         "sends no mail. With `--hold` the stdout of the successful attempt is written. A setting that bide cannot "
         "follow, such as a target that cannot be shared, is reported in any case."},
    {.name = "stdin",
     .value = "MODE",
     .help = "input from a pipe: lend (default), inherit or replay",
     .kind = CLI_CHOICE,
     CLI_AT(struct settings, stdin_option),
     .details =
         "`lend`: the command gets a copy, and what it does not read stays in the pipe for the next attempt, or for "
         "the shell; once an attempt has read some, there is no retry, because the input cannot be repeated. Only one "
         "process may read the pipe meanwhile. `inherit`: the command gets the pipe itself; after an attempt, which "
         "may have read from it, there is no retry. `replay`: bide stores the input, as with `--hold`, and gives it to "
         "each attempt from the start; what is read ahead is lost to later readers. A file is always rewound.",
     .choices = stdin_names},
    {.name = "replay-stdin",
     .help = "same as --stdin replay",
     .kind = CLI_CONSTANT,
     CLI_AT(struct settings, stdin_option),
     .min = RUN_STDIN_REPLAY},
    {.name = "grace",
     .value = "DURATION",
     .help = "time between SIGTERM and SIGKILL; default 10s",
     .kind = CLI_DURATION,
     CLI_AT(struct settings, grace_ns)},
};

static const struct cli_option report_options[] = {
    {.name = "quiet",
     .letter = 'q',
     .help = "print only failures of bide itself",
     .kind = CLI_FLAG,
     CLI_AT(struct settings, quiet)},
    {.name = "json",
     .help = "write events to stderr instead of text, one JSON object per line",
     .kind = CLI_FLAG,
     CLI_AT(struct settings, json),
     .details = "`event` is attempt, outcome, wait, done, give_up, fallback, fleet or error."},
    {.name = "log",
     .value = "FILE",
     .help = "append the events, as JSON objects, to a file",
     .kind = CLI_STRING,
     CLI_AT(struct settings, log_name),
     .details = "Together with `--json`, only failures of bide itself are printed on stderr.",
     .completion = CLI_COMPLETE_FILE},
};

static const struct cli_group groups[] = {
    {CLI_GROUP("Command", command_options)},
    {CLI_GROUP("Failures", failure_options)},
    {CLI_GROUP("Streams and signals", stream_options)},
    {CLI_GROUP("Messages", report_options)},
    CLI_POLICY_GROUP(struct settings, policy),
    CLI_SHARED_GROUP(struct settings, shared),
    CLI_FLEET_GROUP(struct settings, fleet),
    CLI_OTLP_GROUP(struct settings, otlp),
};

static const struct cli_advice advice[] = {
    {"--verbose", "use --json, or --log FILE, for an event of each attempt"},
    {"-v", "use --json, or --log FILE, for an event of each attempt"},
    {"--silent", "use --quiet"},
    {"-s", "use --quiet"},
    /* Debian's command retry */
    {"-t", "use --attempts N, or --attempt-timeout DURATION"},
    {"-d", "use --base DURATION --set backoff=fixed"},
    {"-u", "use --stop-on LIST for the statuses that end the retries"},
    {"-w", "use --retry-on LIST"},
    {"--while", "use --retry-on LIST"},
    {"-m", "use --json, or --log FILE, for the reason of each retry"},
    {"--message", "use --json, or --log FILE, for the reason of each retry"},
    {"--max", "use --attempts N"},
};

/* ---- text for people ---- */

struct reporter {
    struct settings *settings;
    const char *target;
    const char *command;
    uint32_t attempts_max;
    struct cli_term term;
    bool prints_text;     /* print text to stderr */
    bool countdown_shown; /* a countdown is on the screen */
    bool midline;         /* forwarded stderr of the command ends without a newline */
    FILE *log;            /* destination of JSON events; NULL: none. Not owned if it is stderr */
    int log_error;
};

/* Returns stderr, after ending an incomplete line of the command. */
static FILE *stderr_at_line_start(struct reporter *r)
{
    if (r->midline)
        fputc('\n', stderr);
    r->midline = false;
    return stderr;
}

static const char *signal_name(char name[32], int number)
{
    const char *abbreviation = sigabbrev_np(number);
    if (abbreviation != NULL)
        snprintf(name, 32, "SIG%s", abbreviation);
    else
        snprintf(name, 32, "signal %d", number);
    return name;
}

/* "exit 1", "killed by SIGKILL", "timed out after 10s". Returns the length. */
static size_t status_text(char text[TEXT_SIZE], const struct run_result *e)
{
    char word[TEXT_VALUE_SIZE];
    if (e->exec_error != 0)
        snprintf(text, TEXT_SIZE, "%s", e->exec_error == ENOENT ? "command not found" : strerror(e->exec_error));
    else if (e->timed_out)
        snprintf(text, TEXT_SIZE, "timed out after %s", text_duration_format_short(word, e->timed_out_after_ns));
    else if (e->killed)
        snprintf(text, TEXT_SIZE, "killed by %s", signal_name(word, e->status - 128));
    else
        snprintf(text, TEXT_SIZE, "exit %d", e->status);
    return strlen(text);
}

/* The status, and the pattern or condition that made it a failure. A pattern is cut so that the text has at most
 * `columns`, but it keeps PATTERN_COLUMNS_MIN. */
static const char *result_text(char text[TEXT_SIZE], const struct run_result *e, size_t columns)
{
    char pattern[CLI_SHORT_SIZE(CLI_NAME_COLUMNS)];
    size_t n = status_text(text, e);
    const char *matched = e->pattern;
    if (e->pattern != NULL)
        n += (size_t)snprintf(text + n, TEXT_SIZE - n, ", and %s matches ", e->stream);
    else if (e->status != 0 && !e->timed_out && (matched = e->known[RUN_KNOWN_PERMANENT]) != NULL)
        n += (size_t)snprintf(text + n, TEXT_SIZE - n, ", permanent for %s: ", e->like->name);
    else if (e->condition_status != 0)
        snprintf(text + n, TEXT_SIZE - n, ", but the condition exited %d", e->condition_status);
    if (matched == NULL)
        return text;
    size_t room = columns > n + PATTERN_COLUMNS_MIN ? columns - n : PATTERN_COLUMNS_MIN;
    snprintf(text + n, TEXT_SIZE - n, "%s",
             cli_text_shorten(pattern, matched, room < CLI_NAME_COLUMNS ? room : CLI_NAME_COLUMNS));
    return text;
}

/* Text of the reason `permanent`: which option decided that the command is not run again. */
static const char *permanent_text(const struct reporter *r, const struct run_result *e)
{
    struct bide_rules rules;
    if (e != NULL && e->status != 0 &&
        run_rules_name_status(conf_rules_for_engine(&r->settings->exits, &rules), e->status))
        return "its exit status is not to be retried";
    if (e != NULL && e->status != 0 && e->has_patterns)
        return "no pattern matches its output";
    if (e != NULL && e->status != 0 && e->known[RUN_KNOWN_PERMANENT] != NULL)
        return "permanent"; /* the message of the result follows */
    return bide_reason_text(BIDE_REASON_PERMANENT);
}

/* Text of a verdict's reason: that of the engine, or a more specific text for commands. */
static const char *reason_text(const struct reporter *r, const struct run_event *event, char name[32])
{
    static const char *const command_reasons[BIDE_REASON_COUNT] = {
        [BIDE_REASON_CANCELLED] = "the call was interrupted",
        [BIDE_REASON_BODY_SPENT] = "stdin was read (see --stdin)",
        [BIDE_REASON_SERVER_HINT] = "waiting as long as the command asked",
        [BIDE_REASON_HINT_TOO_LONG] = "the command asked for more than hint_max",
    };
    enum bide_reason which = event->verdict->reason;
    if (event->signal != 0)
        return signal_name(name, event->signal);
    if (which == BIDE_REASON_PERMANENT)
        return permanent_text(r, event->result);
    return command_reasons[which] != NULL ? command_reasons[which] : bide_reason_text(which);
}

/* Returns why a command waits, if not for its backoff. */
static const char *wait_note(enum bide_reason reason)
{
    static const char *const notes[BIDE_REASON_COUNT] = {
        [BIDE_REASON_SERVER_HINT] = " (command asked)",
        [BIDE_REASON_LAST_WAIT] = " (the last before the deadline)",
        [BIDE_REASON_BREAKER_OPEN] = " (the circuit breaker is open)",
        [BIDE_REASON_BUDGET_EMPTY] = " (the retry budget is empty)",
    };
    return notes[reason] != NULL ? notes[reason] : "";
}

/* Returns how many columns a line has left beside its other texts. */
static size_t line_room(size_t used)
{
    return used < CLI_LINE_COLUMNS - 1 ? CLI_LINE_COLUMNS - 1 - used : 0;
}

static void text_wait(struct reporter *r, const struct run_event *event)
{
    char text[TEXT_SIZE], head[64], tail[128], wait[TEXT_VALUE_SIZE], name[32], number[CLI_ATTEMPT_SIZE];
    text_duration_format_short(wait, event->verdict->wake_ns - event->now_ns);
    if (event->result == NULL || event->verdict->reason == BIDE_REASON_LATE_WAKE) {
        fprintf(stderr_at_line_start(r), "bide: next in %s: %s\n", wait, reason_text(r, event, name));
        return;
    }
    int used =
        snprintf(head, sizeof head,
                 "bide: attempt %s failed: ", cli_attempt_text(number, event->verdict->attempt, r->attempts_max));
    used += snprintf(tail, sizeof tail, "; next in %s%s", wait, wait_note(event->verdict->reason));
    fprintf(stderr_at_line_start(r), "%s%s%s\n", head, result_text(text, event->result, line_room((size_t)used)), tail);
}

static void text_countdown(struct reporter *r, const struct run_event *event)
{
    char line[TEXT_VALUE_SIZE + 32], wait[TEXT_VALUE_SIZE];
    int64_t left_ns = event->verdict->wake_ns - event->now_ns;
    text_duration_format_short(wait, (left_ns + TICK_NS - 1) / TICK_NS * TICK_NS);
    snprintf(line, sizeof line, "bide: next attempt in %s", wait);
    cli_rewrite_line(&r->term, line);
    r->countdown_shown = true;
}

static void text_success(struct reporter *r, const struct run_event *event)
{
    char took[TEXT_VALUE_SIZE], number[CLI_ATTEMPT_SIZE];
    if (event->verdict->attempt > 1)
        fprintf(stderr_at_line_start(r), "bide: attempt %s succeeded, after %s\n",
                cli_attempt_text(number, event->verdict->attempt, r->attempts_max),
                text_duration_format_short(took, event->now_ns - event->call_start_ns));
}

/* The line has less than CLI_LINE_COLUMNS: without the time if there is no room for it, and with as much of a pattern
 * as fits. */
static void text_final(struct reporter *r, const struct run_event *event)
{
    char text[TEXT_SIZE], head[64], time[TEXT_VALUE_SIZE + 8], took[TEXT_VALUE_SIZE], name[32];
    uint32_t attempts = event->verdict->attempt;
    const char *reason = reason_text(r, event, name);
    if (event->result == NULL) {
        fprintf(stderr_at_line_start(r), "bide: nothing was run: %s\n", reason);
        return;
    }
    snprintf(time, sizeof time, " in %s", text_duration_format_short(took, event->now_ns - event->call_start_ns));
    int n =
        snprintf(head, sizeof head, "bide: gave up after %" PRIu32 " attempt%s", attempts, attempts == 1 ? "" : "s");
    size_t used = (size_t)n + strlen(time) + strlen(": ; last: ") + strlen(reason);
    if (cli_text_columns(result_text(text, event->result, 0)) > line_room(used)) {
        used -= strlen(time);
        time[0] = '\0';
    }
    fprintf(stderr_at_line_start(r), "%s%s: %s; last: %s\n", head, time, reason,
            result_text(text, event->result, line_room(used)));
}

/* Prints "bide: OPTION NAME: WHAT". The name comes from the command line: it may have control characters and be long.
 */
static void text_problem(struct reporter *r, const char *option, const char *name, const char *what)
{
    char shown[CLI_SHORT_SIZE(CLI_NAME_COLUMNS)];
    size_t room = line_room(strlen("bide: : ") + strlen(option) + cli_text_columns(what));
    room = room < PATTERN_COLUMNS_MIN ? PATTERN_COLUMNS_MIN : room < CLI_NAME_COLUMNS ? room : CLI_NAME_COLUMNS;
    fprintf(stderr_at_line_start(r), "bide: %s%s: %s\n", option, cli_text_shorten(shown, name, room), what);
}

/* A closed pipe (SIGPIPE) needs no message; a failed exec is reported as a shell does. */
static void text_give_up(struct reporter *r, const struct run_event *event)
{
    char text[TEXT_SIZE];
    const struct run_result *e = event->result;
    if (e != NULL && e->exec_error == ENOENT && strchr(r->command, '/') != NULL && access(r->command, F_OK) == 0)
        text_problem(r, "", r->command, "the interpreter of its first line (#!) was not found");
    else if (e != NULL && e->exec_error == ENOENT && strpbrk(r->command, " |&;<>$") != NULL)
        text_problem(r, "", r->command, "command not found; a shell command line needs --sh 'LINE'");
    else if (e != NULL && e->exec_error != 0)
        text_problem(r, "", r->command, result_text(text, e, CLI_LINE_COLUMNS));
    else if (!r->settings->quiet && !(e != NULL && e->stdout_closed))
        text_final(r, event);
}

/* The text may quote a variable of the environment. */
static void text_message(struct reporter *r, const char *text)
{
    fputs("bide: ", stderr_at_line_start(r));
    cli_print_sanitized(stderr, text);
    fputc('\n', stderr);
}

static void text_event(struct reporter *r, const struct run_event *event)
{
    bool prints_text = r->prints_text && !r->settings->quiet && !r->settings->cron;
    switch (event->kind) {
    case RUN_ERROR:
        if (r->log != stderr)
            text_message(r, event->text);
        break;
    case RUN_TICK: text_countdown(r, event); break;
    case RUN_GAVE_UP:
        if (r->prints_text)
            text_give_up(r, event);
        break;
    case RUN_WAITING:
        if (prints_text)
            text_wait(r, event);
        break;
    case RUN_SUCCEEDED:
        if (prints_text)
            text_success(r, event);
        break;
    case RUN_FALLBACK_ENDED:
        if (prints_text)
            fprintf(stderr_at_line_start(r), "bide: exit status %d is that of the fallback\n", event->status);
        break;
    case RUN_ATTEMPT_STARTS:
    case RUN_ATTEMPT_ENDED: break;
    }
}

/* ---- JSON for programs ---- */

/* Returns the event as common/event.h describes it. Its texts are in the arguments. */
static struct cli_event event_describe(const struct reporter *r, const struct run_event *event, char text[TEXT_SIZE])
{
    static const enum cli_event_kind kinds[] = {
        [RUN_ATTEMPT_STARTS] = CLI_EVENT_ATTEMPT,
        [RUN_ATTEMPT_ENDED] = CLI_EVENT_OUTCOME,
        [RUN_WAITING] = CLI_EVENT_WAIT,
        [RUN_SUCCEEDED] = CLI_EVENT_DONE,
        [RUN_GAVE_UP] = CLI_EVENT_GIVE_UP,
        [RUN_FALLBACK_ENDED] = CLI_EVENT_FALLBACK,
        [RUN_ERROR] = CLI_EVENT_ERROR,
    };
    const struct run_result *result = event->result;
    struct cli_event described = {.kind = kinds[event->kind],
                                  .target = r->target,
                                  .attempts_max = r->attempts_max,
                                  .status = CLI_EVENT_NO_STATUS,
                                  .exit_status = event->status,
                                  .text = event->text,
                                  .elapsed_ns = event->now_ns - event->call_start_ns,
                                  .signal = event->signal};
    if (event->verdict != NULL) {
        described.attempt = event->verdict->attempt;
        described.reason = event->verdict->reason;
        described.wait_ns = event->verdict->wake_ns - event->now_ns;
    }
    if (result != NULL) {
        described.status = result->status;
        described.outcome = result->outcome.kind;
        described.text = event->kind == RUN_SUCCEEDED ? NULL : result_text(text, result, TEXT_SIZE);
        described.took_ns = result->took_ns;
        described.timed_out = result->timed_out;
        described.hint = result->hint;
    }
    return described;
}

static void log_write(struct reporter *r, const struct cli_event *event)
{
    if (r->log == stderr)
        stderr_at_line_start(r);
    if (!cli_event_write(r->log, event) && r->log_error == 0)
        r->log_error = errno != 0 ? errno : EIO;
}

/* ---- event callback ---- */

static void countdown_clear(struct reporter *r)
{
    if (r->countdown_shown)
        cli_rewrite_line(&r->term, "");
    r->countdown_shown = false;
}

/* Reports pending messages of the fleet first. */
static void fleet_report_messages(struct reporter *r)
{
    char text[CLI_FLEET_MESSAGE_SIZE];
    while (cli_fleet_poll_message(&r->settings->fleet, text)) {
        countdown_clear(r);
        if (r->prints_text && !r->settings->quiet && !r->settings->cron)
            text_message(r, text);
        if (r->log != NULL)
            log_write(r, &(struct cli_event){.kind = CLI_EVENT_FLEET, .target = r->target, .text = text});
    }
}

static void reporter_on_event(void *context, const struct run_event *event)
{
    struct reporter *r = context;
    char text[TEXT_SIZE];
    fleet_report_messages(r);
    if (event->kind != RUN_TICK)
        countdown_clear(r);
    text_event(r, event);
    if (r->log == NULL || event->kind == RUN_TICK)
        return;
    struct cli_event described = event_describe(r, event, text);
    log_write(r, &described);
}

/* ---- the command ---- */

static void settings_init(void *settings)
{
    struct settings *s = settings;
    s->hint_fd_is_free = run_hint_fd_is_free();
    s->hints = RUN_HINT_FD;
    s->grace_ns = GRACE_NS;
}

/* Descriptor 3 is not offered if bide was started with it: it belongs to the user. */
static uint32_t hints_resolve(const struct settings *s)
{
    bool requested = (s->hints & RUN_HINT_FD) != 0 && s->hints_given;
    if (requested && !s->hint_fd_is_free && !s->quiet)
        cli_report(&cli_run,
                   "--hint %s: bide was started with descriptor 3, so no hints are read from it (3>&- closes it)",
                   hint_names[s->hints]);
    return s->hint_fd_is_free ? s->hints : s->hints & ~(uint32_t)RUN_HINT_FD;
}

/* Rules of the command line precede those of the policy; a --retry-on list replaces the policy's. */
static void exit_rules_merge(struct conf_rules *exits, const struct conf_rules *policy)
{
    if (exits->only)
        return;
    for (size_t i = 0; i < policy->count && exits->count < CONF_RULES_MAX; i++)
        exits->rule[exits->count++] = policy->rule[i];
    exits->only = policy->only;
}

static bool log_open(struct reporter *r)
{
    const struct settings *s = r->settings;
    r->prints_text = !s->json;
    r->log = s->json ? stderr : NULL;
    if (s->log_name == NULL)
        return true;
    int fd = cli_fd_above_first(open(s->log_name, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666)); /* never 0 to 2 */
    r->log = fd >= 0 ? fdopen(fd, "a") : NULL;
    return r->log != NULL;
}

/* Reports that events are missing in the log: by a message and, like events missing on stderr, by the exit status,
 * unless the reader of stderr went away. Returns the exit status. */
static int log_close(struct reporter *r, int status)
{
    if (r->log != NULL && r->log != stderr && fclose(r->log) != 0 && r->log_error == 0)
        r->log_error = errno;
    if (r->log_error == 0)
        return status;
    if (r->log == stderr && r->log_error == EPIPE)
        return status;
    if (r->log != stderr) {
        char what[TEXT_SIZE];
        snprintf(what, sizeof what, "events are missing: %s", strerror(r->log_error));
        text_problem(r, "--log ", r->settings->log_name, what);
    }
    return status == 0 ? RUN_EXIT_INTERNAL : status;
}

static int call_run(struct settings *s, const struct conf_policy *policy, struct bide_target *target, char **operands)
{
    struct bide_rules rules;
    struct reporter reporter = {.settings = s,
                                .target = s->policy.target,
                                .command = operands[0],
                                .attempts_max = policy->pair.policy.attempts_max,
                                .term = cli_term_detect(stderr)};
    if (!log_open(&reporter))
        return cli_fail(&cli_run, "--log %s: %s", s->log_name, strerror(errno));
    struct run_config config = {.policy = &policy->pair.policy,
                                .target = target,
                                .target_name = s->policy.target,
                                .exit_rules = conf_rules_for_engine(&s->exits, &rules),
                                .stderr_patterns = s->stderr_patterns.count > 0 ? &s->stderr_patterns : NULL,
                                .stdout_patterns = s->stdout_patterns.count > 0 ? &s->stdout_patterns : NULL,
                                .seed = s->policy.seed,
                                .has_seed = s->policy.has_seed,
                                .command = operands,
                                .like = s->like != NULL ? run_like_find(s->like) : NULL,
                                .known = s->known,
                                .until = s->until,
                                .fallback = s->fallback,
                                .grace_ns = s->grace_ns,
                                .hints = hints_resolve(s),
                                .hold_stdout = s->hold_stdout,
                                .only_failures = s->cron,
                                .show_failed = s->show_failed || s->cron,
                                .stdin_option = s->stdin_option,
                                .tick_ns =
                                    reporter.prints_text && !s->quiet && !s->cron && reporter.term.live ? TICK_NS : 0,
                                .midline = &reporter.midline,
                                .event = reporter_on_event,
                                .context = &reporter};
    int status = run_command(&config);
    cli_fleet_close(&s->fleet);
    fleet_report_messages(&reporter);
    return log_close(&reporter, status);
}

/* A command that waits for a gate must not wait for ever. Returns false after printing an error. */
static bool check_wait_limit(const struct bide_policy *policy)
{
    bool bounded = policy->call_timeout_ns != BIDE_NEVER || policy->waits_max_ns != BIDE_NEVER;
    if (policy->when_refused == BIDE_WHEN_REFUSED_WAIT && !bounded)
        cli_fail(&cli_run, "--when-refused wait: needs a limit: --deadline DURATION, or --set waits_max=DURATION");
    return policy->when_refused != BIDE_WHEN_REFUSED_WAIT || bounded;
}

/* Resolves policy, shared target and fleet gates. Returns false after printing an error. */
static bool call_prepare(struct settings *s, struct conf_policy *policy, struct bide_shared *shared_target)
{
    struct cli_shared_context sharing = {&cli_run, &s->shared, &s->policy, s->quiet};
    struct cli_fleet_context fleeting = {&cli_run, &s->fleet, &s->policy};
    return cli_fleet_ensure_linked(&fleeting) && cli_otlp_ensure_linked(&cli_run, &s->otlp) &&
           cli_policy_resolve(&cli_run, &s->policy, BIDE_PRESET_COMMAND, policy) &&
           check_wait_limit(&policy->pair.policy) && cli_shared_open(&sharing, policy, shared_target) &&
           cli_fleet_apply_gates(&fleeting, policy, shared_target);
}

/* Opens the fleet. The password of $BIDE_FLEET is hidden from the command's environment. */
static bool fleet_open(struct settings *s, struct bide_target *target)
{
    struct cli_fleet_context fleeting = {&cli_run, &s->fleet, &s->policy};
    if (s->fleet.url != NULL && !cli_fleet_strip_env_password())
        return cli_fail(&cli_run, "out of memory"), false;
    return cli_fleet_open(&fleeting, target);
}

/* Compiles the messages of --like. Returns false after printing an error: out of memory. */
static bool like_compile(struct settings *s)
{
    const struct run_like *like = s->like != NULL ? run_like_find(s->like) : NULL;
    for (size_t i = 0; like != NULL && i < RUN_KNOWN_COUNT; i++)
        for (const char *const *at = i == RUN_KNOWN_PERMANENT ? like->permanent : like->transient; *at != NULL; at++) {
            const char *want = run_patterns_add(&s->known[i], *at);
            if (want != NULL)
                return cli_fail(&cli_run, "--like %s: %s: must be %s", s->like, *at, want), false;
        }
    return true;
}

/* --sh: replaces the operands by sh -c -- LINE sh OPERAND... Returns NULL if out of memory. */
static char **shell_operands(const char *line, char **operands)
{
    static char shell[] = "/bin/sh", option[] = "-c", end[] = "--", name[] = "sh";
    size_t count = 0;
    while (operands[count] != NULL)
        count++;
    char **all = calloc(count + 6, sizeof *all);
    char *copy = strdup(line);
    if (all == NULL || copy == NULL) {
        free(all);
        free(copy);
        return NULL;
    }
    char *first[] = {shell, option, end, copy, name};
    memcpy(all, first, sizeof first);
    memcpy(all + 5, operands, count * sizeof *all);
    return all;
}

static int run_main(void *settings, char **operands)
{
    struct settings *s = settings;
    char **shell = NULL;
    struct conf_policy policy;
    struct bide_shared shared_target = {0};
    struct bide_target target;
    struct bide_problem problem;
    int status = CLI_EXIT_BIDE_FAILED;
    if (s->shell_line != NULL && (operands = shell = shell_operands(s->shell_line, operands)) == NULL) {
        cli_fail(&cli_run, "out of memory");
        goto out;
    }
    if (operands[0] == NULL) {
        cli_fail(&cli_run, "missing command: bide run [options] [--] COMMAND [ARGUMENT...], or --sh 'LINE'");
        goto out;
    }
    if (s->show_failed && !s->hold_stdout && !s->cron) {
        cli_fail(&cli_run, "--show-failed: needs --hold, because without it all output is shown");
        goto out;
    }
    if (!like_compile(s) || !call_prepare(s, &policy, &shared_target))
        goto out;
    if (shared_target.target == NULL &&
        bide_target_init(&target, &policy.pair.target, bide_now(), &problem) != BIDE_OK) {
        status = cli_fail(&cli_run, "%s: must be %s", problem.field, problem.want);
        goto out;
    }
    if (!fleet_open(s, shared_target.target != NULL ? shared_target.target : &target) ||
        !cli_otlp_start(&cli_run, &s->otlp))
        goto out;
    exit_rules_merge(&s->exits, &policy.exits);
    status = call_run(s, &policy, shared_target.target != NULL ? shared_target.target : &target, operands);
    cli_otlp_stop(&cli_run, &s->otlp, s->quiet);
out:
    cli_fleet_free(&s->fleet);
    bide_shared_close(&shared_target);
    run_patterns_free(&s->stderr_patterns);
    run_patterns_free(&s->stdout_patterns);
    for (size_t i = 0; i < RUN_KNOWN_COUNT; i++)
        run_patterns_free(&s->known[i]);
    if (shell != NULL)
        free(shell[3]);
    free(shell);
    if (status < 0)
        cli_signal_die(-status);
    return status;
}

static const struct cli_section sections[] = {
    {.title = "What is retried",
     .text = "By using `bide run` you state that running the command again is safe.\n\n"
             "Exit statuses 64-68, 70, 72, 73 and 76-78 (of sysexits) and the shell's 126 and 127 are permanent; death "
             "by SIGINT, SIGQUIT or SIGTERM ends the call, and so do the exit statuses 130, 131 and 143, with which a "
             "shell reports such a death (`--retry-on 143` overrides that); every other failure is retried."},
    {.title = "Exit status",
     .text = "That of the last attempt:\n\n"
             "  any      exit status of the command; 128+n if it died by signal n\n"
             "  1        the command exited 0, but a pattern made it a failure\n"
             "  124      it timed out, or the deadline had passed before the first attempt\n"
             "  126      the command cannot be executed\n"
             "  127      the command was not found\n"
             "  75       nothing was run: a gate of the target refused\n"
             "  125      bide itself failed: invalid option or policy, no disk space\n"
             "  128+n    bide received signal n\n\n"
             "With `--until` also the status of the condition, with `--fallback` that of the fallback."},
    {.title = "Streams",
     .text =
         "The command gets bide's own stdout and stderr: lines keep their order, and processes that the command leaves "
         "in "
         "the background can write after bide has ended. Only for `--like`, `--retry-if-stderr`, `--hint stderr` or "
         "`both`, and `--cron` bide reads stderr, and for `--retry-if-stdout`, `--hold` and `--cron` stdout: the "
         "command "
         "then gets a pipe. Of input from a pipe only what the command reads is removed (`--stdin`)."},
    {.title = "Environment",
     .text =
         "The command gets `BIDE_ATTEMPT` (from 1), `BIDE_ATTEMPTS`, `BIDE_LAST_STATUS` (from the second attempt on), "
         "`BIDE_TARGET`, `BIDE_DEADLINE_MS` (time left), `BIDE_IDEMPOTENCY_KEY` (the same in all attempts) and "
         "`BIDE_HINT_FD`; with `--otlp` also a `TRACEPARENT` of each attempt's own.\n\n"
         "A `bide run` inside another reads `BIDE_ATTEMPT` and `BIDE_DEADLINE_MS`: within an attempt that is "
         "already a retry it does not retry, and the earlier deadline applies. It ignores them if the outer bide has "
         "ended (`BIDE_OUTER`), so that a daemon started by the command is not affected."},
    {.title = "Examples",
     .text = "  bide run -- ./deploy.sh\n"
             "  bide run --attempts 5 --attempt-timeout 30s -- rsync -a src/ host:dst/\n"
             "  bide run --retry-on 1,75,100-110 -- ./job\n"
             "  bide run --like git -- git fetch\n"
             "  bide run --sh './build && ./upload'\n"
             "  bide run --retry-if-stderr 'timed out|reset by peer' -- ./sync\n"
             "  bide run --until 'test -s new.csv' --fallback 'cp old.csv new.csv' -- ./export\n"
             "  pg_dump db | bide run --stdin replay -- ssh host 'cat > db.sql'\n"
             "  bide run --target payments --shared -- ./charge-one\n"
             "  bide run --target payments --fleet 'redis://cache?password_file=/etc/pw' -- \\\n"
             "      ./charge-one"},
};

const struct cli_command cli_run = {
    .name = "run",
    .summary = CLI_RUN_SUMMARY,
    .synopsis = "[options] [--] COMMAND [ARGUMENT...]",
    .about =
        "Runs a command, and repeats it while it fails in a transient way: with jittered waits, a limited number of "
        "attempts, and hints (Retry-After) from the command itself. Prints nothing if the first attempt succeeds.",
    .groups = groups,
    .group_count = sizeof groups / sizeof *groups,
    CLI_ADVICE(advice),
    .sections = sections,
    .section_count = sizeof sections / sizeof *sections,
    .options_first = true,
    .completion = CLI_COMPLETE_COMMAND,
    .settings_size = sizeof(struct settings),
    .init = settings_init,
    .run = run_main,
};
