/* command.c - the subcommand `bide metrics`: exports the meters of the shared targets of this host to Prometheus, once
 * on stdout, over HTTP, or into a file.
 *
 * One thread: it waits for the sockets of the server or for the next instant to write the file, and for signals. */
#include "budget/screen.h"
#include "common/atomic_file.h"
#include "common/commands.h"
#include "common/signals.h"

#include "page.h"
#include "telemetry/server.h"

#include <bide/clock.h>

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EXIT_NOT_ALL 1 /* the directory or a target could not be read, or the file not be written */

struct settings {
    const char *directory;
    const char *listen;
    const char *file;
    int64_t interval_ns; /* 0: not given */
};

static const struct cli_option options[] = {
    {.name = "listen",
     .value = "ADDRESS",
     .help = "serve http://ADDRESS/metrics until a signal: PORT, HOST:PORT or [IPV6]:PORT",
     .kind = CLI_STRING,
     CLI_AT(struct settings, listen),
     .details = "A port alone is served on 127.0.0.1, port 0 is a free one; the address is printed on stderr. There is "
                "no encryption and no password: other hosts should reach it only through a network that you trust."},
    {.name = "file",
     .value = "FILE",
     .help = "replace FILE by the text, atomically, for the textfile collector of node_exporter",
     .kind = CLI_STRING,
     CLI_AT(struct settings, file),
     .details = "The collector reads names that end in .prom.",
     .completion = CLI_COMPLETE_FILE},
    {.name = "interval",
     .value = "DURATION",
     .help = "with --file: replace it again and again, until a signal; without, once",
     .kind = CLI_DURATION,
     CLI_AT(struct settings, interval_ns),
     .min = BIDE_MS,
     .details = "If it cannot be written, the old file stays, the reason is reported, and bide tries again after the "
                "interval."},
    {.name = "shared-dir",
     .value = "DIRECTORY",
     .help = "directory of the targets; default $BIDE_SHARED_DIR, $XDG_RUNTIME_DIR/bide or /dev/shm/bide-UID",
     .kind = CLI_STRING,
     CLI_AT(struct settings, directory),
     .completion = CLI_COMPLETE_DIRECTORY},
};

static const struct cli_group groups[] = {{CLI_GROUP(NULL, options)}};

static const struct cli_advice advice[] = {
    {"--port", "use --listen PORT"},         {"-p", "use --listen PORT"},
    {"--address", "use --listen ADDRESS"},   {"--web.listen-address", "use --listen ADDRESS"},
    {"--output", "use --file FILE"},         {"-o", "use --file FILE"},
    {"--dir", "use --shared-dir DIRECTORY"},
};

/* ---- reading ---- */

struct export
{
    const struct settings *s;
    struct metrics_source source;
    char failed[sizeof((struct bide_problem *)0)->text]; /* the last report about the directory or the file; "" */
    bool has_unusable;
};

static void export_report_target(void *context, const char *name, const struct bide_problem *problem)
{
    struct export *export = context;
    export->has_unusable = true;
    cli_report(&cli_metrics, "%s: %s", name, problem->text);
}

/* Reports an error that concerns everything, unless it was the last one. */
static void export_report(struct export *export, const char *text)
{
    if (strcmp(export->failed, text) == 0)
        return;
    snprintf(export->failed, sizeof export->failed, "%s", text);
    cli_report(&cli_metrics, "%s", text);
}

/* Returns the text, to be freed; NULL after reporting why there is none. */
static char *export_read(struct export *export, size_t *length)
{
    struct bide_problem problem;
    size_t targets = 0;
    char *text = metrics_page(&export->source, length, &targets, &problem);
    if (text == NULL)
        export_report(export, problem.text);
    else if (targets == 0 && !export->has_unusable && export->s->listen == NULL && export->s->interval_ns == 0)
        budget_report_empty(&cli_metrics, export->s->directory);
    return text;
}

/* ---- stdout ---- */

static int export_print(struct export *export)
{
    size_t length;
    char *text = export_read(export, &length);
    if (text == NULL)
        return EXIT_NOT_ALL;
    fwrite(text, 1, length, stdout);
    free(text);
    if (!cli_flush(&cli_metrics))
        return CLI_EXIT_BIDE_FAILED;
    return export->has_unusable ? EXIT_NOT_ALL : EXIT_SUCCESS;
}

/* ---- a file ---- */

/* Returns NULL, or the reason why the old file stays. */
static const char *file_replace(const char *path, const char *text, size_t length)
{
    struct cli_atomic_file file = {0};
    const char *wrong = cli_atomic_file_open(&file, path);
    if (wrong != NULL)
        return wrong;
    fwrite(text, 1, length, file.file); /* the commit finds what failed */
    return cli_atomic_file_commit(&file);
}

/* Returns false after reporting why the old file stays. */
static bool export_write(struct export *export)
{
    char problem[sizeof export->failed];
    size_t length;
    char *text = export_read(export, &length);
    if (text == NULL)
        return false;
    const char *wrong = file_replace(export->s->file, text, length);
    free(text);
    if (wrong == NULL) {
        export->failed[0] = '\0';
        return true;
    }
    snprintf(problem, sizeof problem, "--file %s: %s", export->s->file, wrong);
    export_report(export, problem);
    return false;
}

static void wait_for_signal(int signal_fd, int64_t until_ns)
{
    int64_t left_ns = until_ns - bide_now();
    struct timespec left = {left_ns > 0 ? left_ns / BIDE_S : 0, left_ns > 0 ? left_ns % BIDE_S : 0};
    struct pollfd fd = {.fd = signal_fd, .events = POLLIN};
    ppoll(&fd, 1, &left, NULL);
}

/* Writes the file until a signal. */
static int export_write_forever(struct export *export, int signal_fd)
{
    do {
        export_write(export);
        int64_t due_ns = bide_now() + export->s->interval_ns;
        while (bide_now() < due_ns && !cli_signals_pending(signal_fd))
            wait_for_signal(signal_fd, due_ns);
    } while (!cli_signals_pending(signal_fd));
    return EXIT_SUCCESS;
}

/* ---- HTTP ---- */

static char *export_page(void *context, size_t *length)
{
    struct export *export = context;
    char *text = export_read(export, length);
    if (text != NULL)
        export->failed[0] = '\0';
    return text;
}

static void serve_until_signal(struct telemetry_server *server, int signal_fd)
{
    struct pollfd fds[TELEMETRY_SERVER_FDS + 1];
    while (!cli_signals_pending(signal_fd)) {
        size_t count = telemetry_server_fds(server, fds);
        int64_t due_ns = telemetry_server_due(server), left_ns = due_ns - bide_now();
        struct timespec left = {left_ns > 0 ? left_ns / BIDE_S : 0, left_ns > 0 ? left_ns % BIDE_S : 0};
        fds[count] = (struct pollfd){.fd = signal_fd, .events = POLLIN};
        if (ppoll(fds, count + 1, due_ns != BIDE_NEVER ? &left : NULL, NULL) < 0)
            for (size_t i = 0; i < count; i++)
                fds[i].revents = 0; /* EINTR leaves them undefined */
        telemetry_server_process(server, fds, count, bide_now());
    }
}

/* "listening on http://127.0.0.1:9464/metrics": the host as given, with the port in use. */
static void report_address(const char *address, uint16_t port)
{
    const char *colon = strrchr(address, ':');
    int host = colon != NULL ? (int)(colon - address) : 0;
    cli_report(&cli_metrics, "listening on http://%.*s:%u/metrics", host > 0 ? host : (int)strlen("127.0.0.1"),
               host > 0 ? address : "127.0.0.1", (unsigned)port);
}

/* A port alone gets the loopback address. */
static int export_serve(struct export *export, int signal_fd)
{
    const char *given = export->s->listen;
    char address[300];
    struct telemetry_server *server;
    struct bide_problem problem;
    snprintf(address, sizeof address, "%s%s", strchr(given, ':') == NULL ? "127.0.0.1:" : "", given);
    if (telemetry_server_open(&server, strlen(given) < 256 ? address : given, export_page, export, &problem) != BIDE_OK)
        return cli_fail(&cli_metrics, "--listen %s: %s", given, problem.text);
    report_address(address, telemetry_server_port(server));
    serve_until_signal(server, signal_fd);
    telemetry_server_close(server);
    return EXIT_SUCCESS;
}

/* ---- the command ---- */

/* Runs until a signal, which is no failure: it is how a service ends. */
static int export_run_forever(struct export *export)
{
    struct cli_signals_blocked blocked;
    cli_signals_catch(SIG_DFL, 0); /* and ignores SIGPIPE and SIGXFSZ */
    cli_signals_collect(&blocked);
    sigdelset(&blocked.set, SIGTSTP);
    int signal_fd = cli_signals_descriptor(&blocked);
    if (signal_fd < 0)
        return cli_fail(&cli_metrics, "signalfd: %s", strerror(errno));
    int status = export->s->listen != NULL ? export_serve(export, signal_fd) : export_write_forever(export, signal_fd);
    close(signal_fd);
    return status;
}

static int export_write_once(struct export *export)
{
    cli_signals_catch(SIG_DFL, 0);
    return export_write(export) && !export->has_unusable ? EXIT_SUCCESS : EXIT_NOT_ALL;
}

static int metrics_main(void *settings, char **operands)
{
    const struct settings *s = settings;
    struct export export = {.s = s, .source = {.directory = s->directory, .report = export_report_target}};
    int status;
    export.source.context = &export;
    if (operands[0] != NULL)
        return cli_fail(&cli_metrics, "%s: unexpected operand", operands[0]);
    if (s->listen != NULL && s->file != NULL)
        return cli_fail(&cli_metrics, "--listen and --file exclude each other");
    if (s->interval_ns > 0 && s->file == NULL)
        return cli_fail(&cli_metrics, "--interval: needs --file FILE");
    bide_shared_guard();
    if (s->listen != NULL || s->interval_ns > 0)
        status = export_run_forever(&export);
    else
        status = s->file != NULL ? export_write_once(&export) : export_print(&export);
    metrics_source_free(&export.source);
    return status;
}

static const struct cli_section sections[] = {
    {.title = "Exit status",
     .text = "  0    success; --listen and --file --interval were ended by SIGTERM, SIGINT, SIGHUP or SIGQUIT\n"
             "  1    without --listen and --interval: the directory or a target could not be read, or the file not "
             "written\n"
             "  125  invalid option, the address cannot be used, or standard output cannot be written"},
    {.title = "Examples",
     .text = "  bide metrics\n"
             "  bide metrics --listen 9464\n"
             "  bide metrics --file /var/lib/node_exporter/bide.prom --interval 15s\n"
             "  * * * * * bide metrics --file /var/lib/node_exporter/bide.prom"},
};

const struct cli_command cli_metrics = {
    .name = "metrics",
    .summary = CLI_METRICS_SUMMARY,
    .synopsis = "[options]\n"
                "--listen ADDRESS\n"
                "--file FILE [--interval DURATION]",
    .about =
        "Exports the meters and the gates of the targets that processes of this host share (`bide run --shared`, "
        "`bide fetch --shared`, `bide_shared_open` in a program), in the text format of Prometheus. A meter counts "
        "every call, also of processes that have ended. Run it once for a host: a process that exports its own "
        "metrics leaves shared targets out.",
    .groups = groups,
    .group_count = sizeof groups / sizeof *groups,
    .sections = sections,
    .section_count = sizeof sections / sizeof *sections,
    CLI_ADVICE(advice),
    .settings_size = sizeof(struct settings),
    .run = metrics_main,
};
