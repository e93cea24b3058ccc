/* command.c - bide chaos: a fault-injection HTTP server on 127.0.0.1, controlled by a script.
 *
 * A bad option or script, a port in use or a server that cannot continue ends the program with 125; a server that was
 * stopped returns 0, or 1 if its journal is incomplete. Without a script every path returns 200. The server binds to
 * loopback only, by design: a server that lies has no place on a network. */
#include "chaos.h"
#include "script.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bide/clock.h>
#include <bide/wait.h>

#include "common/commands.h"
#include "common/signals.h"

struct settings {
    struct chaos_config config;
    int64_t for_ns; /* 0: until a signal */
    char *script;   /* owned, if read from a file */
    bool has_script;
};

static struct chaos *served; /* for the signal handler */

/* ---- options ---- */

static const char *set_script(void *context, const char *value)
{
    struct settings *settings = context;
    if (settings->has_script)
        return "only one script: text, a file or - for stdin";
    settings->has_script = true;
    settings->config.script = value;
    return NULL;
}

static const char *open_journal(void *context, const char *value)
{
    struct settings *settings = context;
    bool to_stderr = strcmp(value, "-") == 0;
    settings->config.journal_fd =
        to_stderr ? STDERR_FILENO : open(value, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    return settings->config.journal_fd >= 0 ? NULL : "a file that can be written to, or - for stderr";
}

static const struct cli_option options[] = {
    {.name = "port",
     .value = "N",
     .help = "the port; default 0: any free port",
     .kind = CLI_COUNT,
     CLI_AT(struct settings, config.port),
     .details = "The first line on stdout contains it."},
    {.name = "script",
     .value = "TEXT",
     .help = "the script text, instead of a file",
     .read = set_script,
     .may_be_empty = true},
    {.name = "journal",
     .value = "FILE",
     .help = "write a JSON line for each request; -: to stderr",
     .read = open_journal,
     .details = "Written when the request has ended.",
     .completion = CLI_COMPLETE_FILE},
    {.name = "seed",
     .value = "N",
     .help = "seed of the random fail= and delay=; default 0",
     .kind = CLI_COUNT,
     CLI_AT(struct settings, config.seed)},
    {.name = "for",
     .value = "DURATION",
     .help = "stop after this time",
     .kind = CLI_DURATION,
     CLI_AT(struct settings, for_ns),
     .min = 1,
     .details = "A signal such as SIGINT stops it, too."},
    {.name = "idle",
     .value = "DURATION",
     .help = "disconnect clients that are idle for this time; default 60s",
     .kind = CLI_DURATION,
     CLI_AT(struct settings, config.idle_ns),
     .min = 1,
     .details = "An idle client neither sends nor reads."},
};

static const struct cli_group groups[] = {{CLI_GROUP(NULL, options)}};

static const struct cli_advice advice[] = {
    {"--timeout", "use --for DURATION, or --idle DURATION for clients"},
    {"-t", "use --for DURATION"},
    {"--duration", "use --for DURATION"},
    {"--deadline", "use --for DURATION"},
    {"-p", "use --port N"},
    {"--listen", "use --port N; the address is always 127.0.0.1"},
    {"--log", "use --journal FILE"},
};

/* ---- the script ---- */

/* Reads a whole file. Reads one byte more than a script may have, so that the parser can report the excess. */
static const char *script_read_stream(struct settings *settings, FILE *file)
{
    size_t room = CHAOS_SCRIPT_MAX + 1;
    if ((settings->script = calloc(1, room + 1)) == NULL)
        return "more memory";
    size_t length = fread(settings->script, 1, room, file);
    if (ferror(file) || strlen(settings->script) != length)
        return "a readable text file without NUL";
    return set_script(settings, settings->script);
}

static const char *script_read_file(struct settings *settings, const char *name)
{
    if (settings->has_script)
        return set_script(settings, NULL);
    FILE *file = strcmp(name, "-") == 0 ? stdin : fopen(name, "re");
    const char *want =
        file != NULL ? script_read_stream(settings, file) : "a script file that can be read, or - for stdin";
    if (file != NULL && file != stdin)
        fclose(file);
    return want;
}

/* Formats the directives of a script, from the parser's table. */
static const char *script_help(void)
{
    static char text[8192];
    size_t length = 0;
    const char *parts[] = {
        "A script has a line per path: the path (a prefix if it ends with *; * alone: every other path), then steps "
        "separated by |. Each request takes the next step; the last step repeats, unless the line ends in loop. A step "
        "is a status, xN (repeat N times) and these directives, in any order:\n\n",
        "\nThe last five apply to the whole line, and must be in its first step.\n",
    };
    length += (size_t)snprintf(text, sizeof text, "%s", parts[0]);
    for (size_t i = 0; chaos_directive_help(i) != NULL && length < sizeof text; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "  %-24s%s\n", chaos_directive_help(i)->form,
                                   chaos_directive_help(i)->does);
    if (length < sizeof text)
        snprintf(text + length, sizeof text - length, "%s", parts[1]);
    return text;
}

static const struct cli_section sections[] = {
    {.title = "Script", .generate = script_help},
    {.title = "Exit status",
     .text = "0 after --for or a signal, 1 if writing the journal failed, 125 if the server could not start: a bad "
             "option, an error in the script, a port in use.\n"},
    {.title = "Examples",
     .text = "  bide chaos --script '/flaky 503 retry-after=2 | reset=request x2 | 200'\n"
             "  bide chaos --port 8080 --script '/api* fail=30%:503 200 delay=50ms'\n"
             "  bide chaos outage.chaos --journal - --for 1m\n"},
};

/* ---- serving ---- */

static void on_signal(int number)
{
    (void)number;
    chaos_stop(served);
}

struct stop_timer {
    int64_t at_ns;
    struct bide_cancel cancel;
};

static void *stop_when_due(void *context)
{
    struct stop_timer *stop_timer = context;
    if (bide_wait_until(stop_timer->at_ns, &stop_timer->cancel))
        chaos_stop(served);
    return NULL;
}

/* Serves for a time, or until a signal. */
static enum bide_err serve_for(int64_t for_ns)
{
    struct stop_timer stop_timer = {.at_ns = bide_now() + for_ns};
    pthread_t thread;
    enum bide_err err = BIDE_ERR_SYSTEM;
    bool has_timer = for_ns > 0;
    if (has_timer && (bide_cancel_init(&stop_timer.cancel) != BIDE_OK ||
                      pthread_create(&thread, NULL, stop_when_due, &stop_timer) != 0))
        goto out;
    err = chaos_run(served);
    if (!has_timer)
        goto out;
    bide_cancel_now(&stop_timer.cancel);
    pthread_join(thread, NULL);
out:
    bide_cancel_free(&stop_timer.cancel);
    return err;
}

static int report_error(enum bide_err err, const struct chaos_error *error)
{
    if (err == BIDE_ERR_INVALID && error->line == 0)
        return cli_fail(&cli_chaos, "%s", error->text);
    if (err == BIDE_ERR_INVALID)
        return cli_fail(&cli_chaos, "script line %u: %s", error->line, error->text);
    return cli_fail(&cli_chaos, "cannot serve: %s", err == BIDE_ERR_NOMEM ? "no memory" : strerror(errno));
}

/* Prints the port, serves, and reports the number of requests. */
static int serve_and_report(int64_t for_ns)
{
    int status = EXIT_SUCCESS;
    if (printf("listening on http://127.0.0.1:%u\n", (unsigned)chaos_port(served)) < 0 || fflush(stdout) != 0)
        return cli_fail(&cli_chaos, "cannot print the port: standard output: %s", strerror(errno));
    if (serve_for(for_ns) != BIDE_OK)
        status = report_error(BIDE_ERR_SYSTEM, NULL);
    cli_report(&cli_chaos, "%llu requests seen", (unsigned long long)chaos_requests(served));
    if (chaos_journal_error(served) != 0) {
        cli_report(&cli_chaos, "the journal is incomplete: %s", strerror(chaos_journal_error(served)));
        status = EXIT_FAILURE;
    }
    return status;
}

static bool script_read_operands(struct settings *settings, char **operands)
{
    for (; *operands != NULL; operands++) {
        const char *want = script_read_file(settings, *operands);
        if (want != NULL) {
            cli_fail(&cli_chaos, "%s: expected %s", *operands, want);
            return false;
        }
    }
    return true;
}

static int command_run(void *context, char **operands)
{
    struct settings *settings = context;
    struct chaos_error error;
    int status = CLI_EXIT_BIDE_FAILED;
    enum bide_err err;
    if (!script_read_operands(settings, operands))
        goto out;
    if ((err = chaos_new(&served, &settings->config, &error)) != BIDE_OK) {
        status = report_error(err, &error);
        goto out;
    }
    cli_signals_catch(on_signal, 0);
    status = serve_and_report(settings->for_ns);
out:
    cli_signals_release(); /* before the server is freed: the handler uses it */
    chaos_free(served);
    free(settings->script);
    return status;
}

static void command_init(void *context)
{
    ((struct settings *)context)->config.journal_fd = -1;
}

const struct cli_command cli_chaos = {
    .name = "chaos",
    .summary = CLI_CHAOS_SUMMARY,
    .synopsis = "[options] [SCRIPT-FILE|-]",
    .about = "A fault-injection HTTP/1.1 server on 127.0.0.1, for testing HTTP clients. Without a script it responds "
             "with 200 on every path. The first line that it prints contains its port.\n",
    .groups = groups,
    .group_count = sizeof groups / sizeof *groups,
    .sections = sections,
    .section_count = sizeof sections / sizeof *sections,
    CLI_ADVICE(advice),
    .completion = CLI_COMPLETE_FILE,
    .settings_size = sizeof(struct settings),
    .init = command_init,
    .run = command_run,
};
