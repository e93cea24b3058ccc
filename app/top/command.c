/* command.c - the subcommand `bide top`: shows the calls on shared targets live.
 *
 * The first update only reads the meters; each later update shows the calls since the previous update. A live page is
 * drawn at once, without rates. */
#include "budget/screen.h"
#include "common/commands.h"
#include "common/watch.h"

#include "rows.h"

#include <bide/clock.h>

#include <stdlib.h>

#define EXIT_NOT_THERE 1 /* the directory cannot be read */
#define INTERVAL_NS    BIDE_S

struct settings {
    const char *directory;
    bool json;
    int64_t interval_ns;
    int64_t count;
};

static const struct cli_option options[] = {
    {.name = "interval",
     .value = "DURATION",
     .help = "time between updates, over which the rates are taken; default 1s",
     .kind = CLI_DURATION,
     CLI_AT(struct settings, interval_ns),
     .min = BIDE_MS},
    {.name = "count",
     .value = "N",
     .help = "exit after N intervals",
     .kind = CLI_COUNT,
     CLI_AT(struct settings, count),
     .min = 1,
     .max = UINT32_MAX},
    {.name = "json",
     .help = "print one JSON object for each interval",
     .kind = CLI_FLAG,
     CLI_AT(struct settings, json)},
    {.name = "shared-dir",
     .value = "DIRECTORY",
     .help = "directory of the targets; default $BIDE_SHARED_DIR, $XDG_RUNTIME_DIR/bide or /dev/shm/bide-UID",
     .kind = CLI_STRING,
     CLI_AT(struct settings, directory),
     .completion = CLI_COMPLETE_DIRECTORY},
};

static const struct cli_group groups[] = {{CLI_GROUP(NULL, options)}};

static const struct cli_advice advice[] = {
    {"--delay", "use --interval DURATION"},
    {"-d", "use --interval DURATION"},
    {"-i", "use --interval DURATION"},
    {"-n", "use --count N"},
    {"-b", "use --count N | cat"},
    {"--dir", "use --shared-dir DIRECTORY"},
    {"--target", "the names of targets are arguments: bide top payments"},
};

/* ---- updates ---- */

struct view {
    const struct settings *s;
    char **names;
    struct top_rows rows;
    struct bide_problem problem; /* that ended the loop */
    bool has_failed, has_rates;
};

static void screen_draw(const struct view *v, const char *end_key)
{
    struct cli_term term = cli_term_detect(stdout);
    size_t shown = budget_screen_rows(&term, &v->rows.list);
    budget_screen_begin(&term, &v->rows.list, v->s->directory, end_key);
    if (v->rows.list.count > 0)
        top_rows_print(&v->rows, &term, shown, cli_screen_end_line);
    budget_screen_end(&term, v->rows.list.count - shown);
}

static void json_print(const struct view *v)
{
    struct text_json json = text_json_to_stream(stdout, TEXT_JSON_LINE);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    text_json_object(&json, NULL);
    text_json_time(&json, "time", now);
    text_json_array(&json, "targets");
    top_rows_json(&json, &v->rows);
    text_json_end(&json);
    text_json_end(&json);
    text_json_finish(&json);
    putchar('\n');
}

static void end_line(const struct cli_term *term)
{
    fputc('\n', term->out);
}

static void table_print(const struct view *v)
{
    struct cli_term term = cli_term_detect(stdout);
    if (v->rows.list.count > 0) {
        top_rows_print(&v->rows, &term, v->rows.list.count, end_line);
        putchar('\n');
    }
}

static void view_show(struct view *v, const struct cli_watch *watch)
{
    if (watch->live)
        screen_draw(v, cli_watch_end_key(watch));
    else if (!v->has_rates && v->rows.list.count == 0)
        budget_report_empty(&cli_top, v->s->directory);
    else if (v->has_rates && v->s->json)
        json_print(v);
    else if (v->has_rates)
        table_print(v);
}

static int view_update(struct cli_watch *watch)
{
    struct view *v = watch->context;
    if (watch->is_due && !top_rows_update(&v->rows, v->names, v->s->directory, &v->problem)) {
        v->has_failed = true;
        return v->rows.no_memory ? CLI_EXIT_BIDE_FAILED : EXIT_NOT_THERE;
    }
    view_show(v, watch);
    v->has_rates = true; /* from the next update on */
    return CLI_WATCH_GO_ON;
}

/* ---- the command ---- */

static bool names_check(char **names)
{
    for (; *names != NULL; names++)
        if (bide_targets_name_check(*names, NULL) != BIDE_OK)
            return cli_fail(&cli_top, "%s: must be a name of 1 to 127 bytes without control characters", *names), false;
    return true;
}

static int top_main(void *settings, char **operands)
{
    const struct settings *s = settings;
    struct view v = {.s = s, .names = operands};
    struct cli_watch watch = {.command = &cli_top,
                              .live = cli_term_detect(stdout).live && !s->json,
                              .interval_ns = s->interval_ns > 0 ? s->interval_ns : INTERVAL_NS,
                              .count = s->count > 0 ? s->count + 1 : 0,
                              .update = view_update,
                              .context = &v};
    if (!names_check(operands))
        return CLI_EXIT_BIDE_FAILED;
    bide_shared_guard();
    int status = cli_watch_run(&watch);
    if (v.has_failed)
        cli_fail(&cli_top, "%s", v.problem.text);
    top_rows_free(&v.rows);
    return status;
}

static const struct cli_section sections[] = {
    {.title = "Columns",
     .text = "  calls/s     calls that ended, per second\n"
             "  attempts/s  attempts that started, per second\n"
             "  ampl.       amplification: attempts / first attempts; 1 without retries and hedges\n"
             "  rescued     share of the calls that a retry or a hedge saved\n"
             "  failed      share of the calls that failed or were refused by a gate\n"
             "  p50, p99    of the duration of calls, with all their waits\n"
             "  budget      retries left, and the capacity\n"
             "  breaker     state of the circuit breaker\n"
             "  reason      most frequent reason to give up, else to wait\n\n"
             "The target with the highest amplification is first. `-` means that no call was made in the interval. "
             "`q` ends the view. If stdout is not a terminal, a table is printed for each interval."},
    {.title = "Exit status",
     .text = "  0      ended by q, or after --count intervals\n"
             "  1      the directory cannot be read\n"
             "  125    invalid option, or standard output cannot be written\n"
             "  128+n  ended by signal n; 130 for Ctrl-C"},
    {.title = "Examples",
     .text = "  bide top\n"
             "  bide top payments search\n"
             "  bide top --json --interval 10s | jq -c '.targets[] | [.target, .amplification]'\n"
             "  bide top --count 1 | cat"},
};

const struct cli_command cli_top = {
    .name = "top",
    .summary = CLI_TOP_SUMMARY,
    .synopsis = "[options] [NAME...]",
    .about = "Shows live what the calls on the targets that processes of this host share (`bide run --shared`, "
             "`bide fetch --shared`, `bide_shared_open` in a program) do: all targets, or those named. Every call is "
             "counted, also by processes that have ended. Reading affects nothing.",
    .groups = groups,
    .group_count = sizeof groups / sizeof *groups,
    .sections = sections,
    .section_count = sizeof sections / sizeof *sections,
    CLI_ADVICE(advice),
    .settings_size = sizeof(struct settings),
    .run = top_main,
};
