/* command.c - the subcommand `bide budget`: shows and changes the targets that processes of this host share.
 *
 * Every output (table, page, JSON, the screen of `watch`) is made from a list of snapshots (list.h). Changes are in
 * change.h. */
#include "command_fleet.h"
#include "common/commands.h"
#include "common/term.h"
#include "common/watch.h"

#include "change.h"
#include "conf/suggest.h"
#include "list.h"
#include "screen.h"
#include "table.h"

#include <bide/clock.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EXIT_NOT_THERE 1 /* no such target, or its file or the directory cannot be used or read */
#define INTERVAL_NS    (500 * BIDE_MS)

struct settings {
    const char *directory;
    struct cli_fleet fleet;
    bool json;
    int64_t interval_ns; /* 0: not given */
    int64_t count;       /* of reads; 0: unlimited */
};

/* ---- options ---- */

static const struct cli_option options[] = {
    {.name = "dir",
     .value = "DIRECTORY",
     .help = "directory of the targets; default $BIDE_SHARED_DIR, $XDG_RUNTIME_DIR/bide or /dev/shm/bide-UID",
     .kind = CLI_STRING,
     CLI_AT(struct settings, directory),
     .completion = CLI_COMPLETE_DIRECTORY},
    {.name = "json",
     .help = "print JSON (list, show), one object per line (watch)",
     .kind = CLI_FLAG,
     CLI_AT(struct settings, json)},
    {.name = "interval",
     .value = "DURATION",
     .help = "watch: time between updates; default 500ms",
     .kind = CLI_DURATION,
     CLI_AT(struct settings, interval_ns),
     .min = BIDE_MS,
     .details = "If stdout is not a terminal, every update is printed, not only changes."},
    {.name = "count",
     .value = "N",
     .help = "watch: exit after this number of updates",
     .kind = CLI_COUNT,
     CLI_AT(struct settings, count),
     .min = 1,
     .max = UINT32_MAX},
};

static const struct cli_option fleet_options[] = {
    {.name = "fleet",
     .value = "URL",
     .help = "show: the budget of a whole fleet in Redis, instead of this host; - is $BIDE_FLEET",
     .read = cli_fleet_read_url,
     .details =
         "The URL of `bide run --fleet`. bide sends one request and waits for the reply, at most 500ms unless the "
         "URL has "
         "another timeout; nothing is changed. Other users can see an argument until bide overwrites it, which is "
         "the first thing it does; `-` and a `password_file` are not visible."},
};

static const struct cli_group groups[] = {
    {CLI_GROUP(NULL, options)},
    {CLI_GROUP(NULL, fleet_options), .offset = offsetof(struct settings, fleet)},
};

static const struct cli_advice advice[] = {
    {"--delay", "use --interval DURATION"},
    {"--every", "use --interval DURATION"},
    {"--sleep", "use --interval DURATION"},
    {"-i", "use --interval DURATION"},
    {"-n", "use --interval DURATION (watch -n) or --count N"},
    {"--set", "use bide budget set NAME KEY=VALUE"},
    {"--redis", "use --fleet URL"},
    {"--target", "the name of the target is an argument: bide budget show NAME"},
};

/* ---- errors ---- */

/* Returns the exit status for a list that could not be read. */
static int list_failure(const struct budget_list *list)
{
    return list->no_memory ? CLI_EXIT_BIDE_FAILED : EXIT_NOT_THERE;
}

/* Returns the exit status, after printing an error. */
static int list_read(const struct settings *s, char **names, struct budget_list *list)
{
    struct bide_problem problem;
    if (budget_list_read(list, names, s->directory, &problem))
        return EXIT_SUCCESS;
    cli_fail(&cli_budget, "%s", problem.text);
    return list_failure(list);
}

/* Reports an unusable target. If it does not exist: suggests the nearest name, or how to create it. Returns the exit
 * status. */
static int report_unusable(const struct settings *s, const char *name, const struct bide_problem *problem)
{
    char path[BIDE_SHARED_PATH_MAX];
    struct bide_problem other;
    struct budget_list list = {0};
    struct conf_suggestion near = {.word = name, .length = strlen(name)};
    bool absent = problem->reason == BIDE_SHARED_REASON_NOT_THERE;
    if (absent && budget_list_names(&list, s->directory, &other))
        for (size_t i = 0; i < list.count; i++)
            if (list.entry[i].problem.reason == BIDE_SHARED_REASON_NOTHING)
                conf_suggestion_consider(&near, list.entry[i].name, list.entry[i].name);
    if (!absent)
        cli_fail(&cli_budget, "%s: %s", name, problem->text);
    else if (near.found != NULL)
        cli_fail(&cli_budget, "%s: no such target; did you mean %s?", name, near.found);
    else if (list.count > 0)
        cli_fail(&cli_budget, "%s: no such target in %s (bide budget list shows all targets)", name,
                 budget_directory(path, s->directory));
    else
        cli_fail(&cli_budget, "%s: no such target in %s (bide run --target %s --shared creates it)", name,
                 budget_directory(path, s->directory), name);
    budget_list_free(&list);
    return EXIT_NOT_THERE;
}

/* Reports all unusable targets. Returns the exit status. */
static int report_all_unusable(const struct settings *s, const struct budget_list *list)
{
    int status = EXIT_SUCCESS;
    for (size_t i = 0; i < list->count; i++)
        if (!list->entry[i].is_open)
            status = report_unusable(s, list->entry[i].name, &list->entry[i].problem);
    return status;
}

static int finish_output(int status)
{
    return cli_flush(&cli_budget) ? status : CLI_EXIT_BIDE_FAILED;
}

/* ---- JSON ---- */

static void json_add_entry(struct text_json *json, const struct budget_entry *entry)
{
    text_json_object(json, NULL);
    budget_entry_json(json, entry);
    text_json_end(json);
}

static void json_print_list(const struct budget_list *list)
{
    struct text_json json = text_json_to_stream(stdout, TEXT_JSON_INDENTED);
    text_json_array(&json, NULL);
    for (size_t i = 0; i < list->count; i++)
        json_add_entry(&json, &list->entry[i]);
    text_json_end(&json);
    text_json_finish(&json);
}

static void json_print_entry(const struct budget_entry *entry)
{
    struct text_json json = text_json_to_stream(stdout, TEXT_JSON_INDENTED);
    json_add_entry(&json, entry);
    text_json_finish(&json);
}

static void json_add_time(struct text_json *json)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    text_json_time(json, "time", now);
}

static void json_print_line(const struct budget_entry *entry)
{
    struct text_json json = text_json_to_stream(stdout, TEXT_JSON_LINE);
    text_json_object(&json, NULL);
    budget_entry_json(&json, entry);
    json_add_time(&json);
    text_json_end(&json);
    text_json_finish(&json);
    putchar('\n');
}

/* ---- table ---- */

static void table_print(const struct budget_list *list)
{
    struct cli_term term = cli_term_detect(stdout);
    struct cli_table table;
    budget_table_fit(&table, &term, list, false);
    cli_table_put_head(&table);
    putchar('\n');
    for (size_t i = 0; i < list->count; i++) {
        budget_table_put_row(&table, &list->entry[i]);
        putchar('\n');
    }
}

/* ---- list and show ---- */

static int verb_list(const struct settings *s, char **operands)
{
    struct budget_list list = {0};
    int status = list_read(s, operands, &list);
    if (status != EXIT_SUCCESS)
        goto out;
    if (s->json)
        json_print_list(&list);
    else if (list.count > 0)
        table_print(&list);
    else
        budget_report_empty(&cli_budget, s->directory);
    status = finish_output(report_all_unusable(s, &list));
out:
    budget_list_free(&list);
    return status;
}

static void page_print(const struct budget_entry *entry)
{
    cli_print_sanitized(stdout, entry->name);
    fputs("\n  file      ", stdout);
    cli_print_sanitized(stdout,
                        entry->snapshot.file != NULL ? entry->snapshot.file : "unknown (/proc is not available)");
    putchar('\n');
    budget_page(stdout, &entry->snapshot);
}

static int verb_show_fleet(const struct settings *s, const char *name)
{
    struct bide_fleet_bucket bucket;
    struct bide_problem problem;
    enum bide_err err = cli_fleet_read_bucket(&s->fleet, name, &bucket, &problem);
    if (err != BIDE_OK) {
        cli_fail(&cli_budget, "%s: %s", cli_fleet_source(&s->fleet), problem.text);
        return err == BIDE_ERR_INVALID ? CLI_EXIT_BIDE_FAILED : EXIT_NOT_THERE;
    }
    if (!bucket.exists) {
        cli_fail(&cli_budget,
                 "%s: no such fleet budget (unused budgets expire after 24 h); bide run --target %s --fleet creates it",
                 name, name);
        return EXIT_NOT_THERE;
    }
    struct text_json json = text_json_to_stream(stdout, TEXT_JSON_INDENTED);
    if (s->json) {
        budget_fleet_json(&json, name, &bucket);
        text_json_finish(&json);
    } else {
        budget_fleet_page(stdout, name, &bucket);
    }
    return finish_output(EXIT_SUCCESS);
}

static int verb_show(const struct settings *s, char **operands)
{
    struct budget_list list = {0};
    if (s->fleet.url != NULL)
        return verb_show_fleet(s, operands[0]);
    int status = list_read(s, operands, &list);
    if (status == EXIT_SUCCESS)
        status = report_all_unusable(s, &list);
    if (status != EXIT_SUCCESS)
        goto out;
    if (s->json)
        json_print_entry(&list.entry[0]);
    else
        page_print(&list.entry[0]);
    status = finish_output(status);
out:
    budget_list_free(&list);
    return status;
}

/* ---- reset and set ---- */

static void print_change(const char *name, const struct budget_snapshot *before, const struct budget_snapshot *after)
{
    char text[BUDGET_TEXT_SIZE];
    cli_print_sanitized(stdout, name);
    fputs(": ", stdout);
    budget_change_print(stdout, before, after);
    if (after->hold_off_for_ns > 0)
        printf("; the hold-off stays: %s", budget_hold_off_text(text, after));
    putchar('\n');
}

static int verb_reset(const struct settings *s, char **operands)
{
    struct bide_shared shared_target;
    struct bide_problem problem;
    struct budget_snapshot before, after;
    const char *name = operands[0];
    if (!budget_open(&shared_target, name, s->directory, &problem))
        return report_unusable(s, name, &problem);
    budget_snapshot_take(&before, shared_target.target, name, bide_now());
    budget_reset(shared_target.target, bide_now());
    budget_snapshot_take(&after, shared_target.target, name, bide_now());
    bide_shared_close(&shared_target);
    print_change(name, &before, &after);
    if (after.config.budget.kind == BIDE_BUDGET_WINDOW)
        cli_report(&cli_budget, "%s: a sliding-window budget cannot be reset; it expires by itself", name);
    if (after.leased)
        cli_report(&cli_budget, "%s: the tokens are leased from a fleet, which alone fills the bucket", name);
    return finish_output(EXIT_SUCCESS);
}

/* Parses and validates all KEY=VALUE. Returns false after printing an error. */
static bool changes_read(struct budget_change *change, char **text)
{
    char error[BUDGET_ERROR_SIZE];
    for (; *text != NULL; text++)
        if (!budget_change_read(change, *text, error))
            return cli_fail(&cli_budget, "set: %s: %s", *text, error), false;
    if (!budget_change_check(change, error))
        return cli_fail(&cli_budget, "set: %s", error), false;
    return true;
}

static bool config_is_shareable(const struct bide_target_config *c)
{
    return c->in_flight_max == 0 && c->budget.kind != BIDE_BUDGET_CONCURRENCY;
}

/* Applies the configuration by opening the target again with it: that validates it. */
static bool config_apply(const struct settings *s, const char *name, const struct budget_change *change)
{
    struct bide_shared_options o = {.directory = s->directory, .must_exist = true};
    struct bide_problem problem;
    struct bide_shared shared_target;
    if (!change->has_config)
        return true;
    if (!config_is_shareable(&change->config))
        return cli_fail(&cli_budget, "set: in_flight_max must be 0 and budget.kind must not be concurrency: %s",
                        bide_shared_reason_text(BIDE_SHARED_REASON_IN_FLIGHT)),
               false;
    if (bide_shared_open(&shared_target, name, &change->config, &o, bide_now(), &problem) != BIDE_OK)
        return cli_fail(&cli_budget, "set: %s", problem.text), false;
    bide_shared_close(&shared_target);
    if (problem.text[0] != '\0') /* opened, but without the new configuration */
        return cli_fail(&cli_budget, "set: %s; nothing was changed", problem.text), false;
    return true;
}

static int verb_set(const struct settings *s, char **operands)
{
    struct bide_shared shared_target;
    struct bide_problem problem;
    struct budget_snapshot before, after;
    struct budget_change change;
    const char *name = operands[0];
    int status = CLI_EXIT_BIDE_FAILED;
    if (!budget_open(&shared_target, name, s->directory, &problem))
        return report_unusable(s, name, &problem);
    budget_snapshot_take(&before, shared_target.target, name, bide_now());
    budget_change_begin(&change, &before);
    if (!changes_read(&change, operands + 1) || !config_apply(s, name, &change))
        goto out;
    budget_change_apply(&change, shared_target.target, bide_now());
    budget_snapshot_take(&after, shared_target.target, name, bide_now());
    print_change(name, &before, &after);
    status = finish_output(EXIT_SUCCESS);
out:
    bide_shared_close(&shared_target);
    return status;
}

/* ---- watch on a terminal ---- */

/* Redraws from the top, as many targets as fit. */
static void screen_draw(const struct settings *s, const struct budget_list *list, const char *end_key)
{
    struct cli_term term = cli_term_detect(stdout);
    struct cli_table table;
    size_t shown = budget_screen_rows(&term, list);
    budget_table_fit(&table, &term, list, true);
    budget_screen_begin(&term, list, s->directory, end_key);
    cli_table_put_head(&table);
    cli_screen_end_line(&term);
    for (size_t i = 0; i < shown; i++) {
        budget_table_put_row(&table, &list->entry[i]);
        cli_screen_end_line(&term);
    }
    budget_screen_end(&term, list->count - shown);
}

/* ---- watch without a terminal ---- */

static void watch_print_entry(const struct settings *s, const struct budget_entry *entry, const char *text)
{
    if (s->json) {
        json_print_line(entry);
        return;
    }
    cli_print_sanitized(stdout, entry->name);
    printf(": %s\n", text);
}

/* Prints a line per changed target, or per target if --interval is given. */
static void watch_print_changes(const struct settings *s, const struct budget_list *list,
                                struct budget_history *history)
{
    char text[BUDGET_TEXT_SIZE];
    const char *name;
    for (size_t i = 0; i < list->count; i++) {
        budget_entry_text(text, &list->entry[i]);
        if (budget_history_update(history, list->entry[i].name, text) || s->interval_ns > 0)
            watch_print_entry(s, &list->entry[i], text);
    }
    while ((name = budget_history_next_removed(history)) != NULL) {
        struct budget_entry gone = {
            .problem = {.reason = BIDE_SHARED_REASON_NOT_THERE, .text = "the target was removed"}};
        snprintf(gone.name, sizeof gone.name, "%s", name);
        watch_print_entry(s, &gone, "removed");
    }
}

/* ---- watch ---- */

struct watched {
    const struct settings *s;
    char **names;
    struct budget_history history;
    struct bide_problem problem; /* that ended the loop; printed after the screen is restored */
    int failure;                 /* its exit status; EXIT_SUCCESS: none */
};

static int watch_update(struct cli_watch *watch)
{
    struct watched *w = watch->context;
    struct budget_list list = {0};
    bool ok = budget_list_read(&list, w->names, w->s->directory, &w->problem);
    w->failure = ok ? EXIT_SUCCESS : list_failure(&list);
    if (ok && watch->live)
        screen_draw(w->s, &list, cli_watch_end_key(watch));
    else if (ok)
        watch_print_changes(w->s, &list, &w->history);
    budget_list_free(&list);
    return ok ? CLI_WATCH_GO_ON : w->failure;
}

static int verb_watch(const struct settings *s, char **operands)
{
    struct watched w = {.s = s, .names = operands};
    struct cli_watch watch = {.command = &cli_budget,
                              .live = cli_term_detect(stdout).live && !s->json,
                              .interval_ns = s->interval_ns > 0 ? s->interval_ns : INTERVAL_NS,
                              .count = s->count,
                              .update = watch_update,
                              .context = &w};
    struct budget_list list = {0};
    int status = list_read(s, operands, &list);
    if (status == EXIT_SUCCESS && operands[0] != NULL)
        status = report_all_unusable(s, &list);
    budget_list_free(&list);
    if (status != EXIT_SUCCESS)
        return status;
    status = cli_watch_run(&watch);
    if (w.failure != EXIT_SUCCESS)
        cli_fail(&cli_budget, "%s", w.problem.text);
    budget_history_free(&w.history);
    return status;
}

/* ---- the command ---- */

static const struct verb {
    const char *name;
    size_t least, most; /* number of operands */
    const char *takes;
    bool has_json, watches;
    int (*run)(const struct settings *s, char **operands);
} verbs[] = {
    {"list", 0, 0, "no operands", true, false, verb_list},
    {"show", 1, 1, "the name of one target", true, false, verb_show},
    {"watch", 0, SIZE_MAX, "names of targets", true, true, verb_watch},
    {"reset", 1, 1, "the name of one target", false, false, verb_reset},
    {"set", 2, SIZE_MAX, "the name of a target and KEY=VALUE, such as budget=5 or breaker=open", false, false,
     verb_set},
};
#define VERBS (sizeof verbs / sizeof *verbs)

static const char *verb_word(size_t i)
{
    return i < VERBS ? verbs[i].name : NULL;
}

/* Returns the i-th KEY= that `set` accepts. Valid until the next call. */
static const char *change_word(size_t i)
{
    static char word[64];
    const char *key = budget_change_key(i);
    snprintf(word, sizeof word, "%s=", key != NULL ? key : "");
    return key != NULL ? word : NULL;
}

static const struct cli_operands operands_of[] = {
    {NULL, verb_word, CLI_COMPLETE_NOTHING}, {"list", NULL, CLI_COMPLETE_NOTHING},
    {"show", NULL, CLI_COMPLETE_NOTHING},    {"watch", NULL, CLI_COMPLETE_NOTHING},
    {"reset", NULL, CLI_COMPLETE_NOTHING},   {"set", change_word, CLI_COMPLETE_NOTHING},
};

static int verb_unknown(const char *name)
{
    const char *text[VERBS + 1] = {NULL};
    for (size_t i = 0; i < VERBS; i++)
        text[i] = verbs[i].name;
    const char *near = conf_suggest(name, strlen(name), text);
    if (near != NULL)
        return cli_fail(&cli_budget, "%s: must be list, show, watch, reset or set; did you mean %s?", name, near);
    return cli_fail(&cli_budget, "%s: must be list, show, watch, reset or set", name);
}

static int verb_run(const struct verb *verb, const struct settings *s, char **operands)
{
    size_t count = 0;
    while (operands[count] != NULL)
        count++;
    if (count < verb->least)
        return cli_fail(&cli_budget, "%s: requires %s", verb->name, verb->takes);
    if (count > verb->most)
        return cli_fail(&cli_budget, "%s: unexpected operand; %s takes %s", operands[verb->most], verb->name,
                        verb->takes);
    if (s->json && !verb->has_json)
        return cli_fail(&cli_budget, "--json is only valid with list, show or watch");
    if ((s->interval_ns > 0 || s->count > 0) && !verb->watches)
        return cli_fail(&cli_budget, "%s is only valid with watch", s->interval_ns > 0 ? "--interval" : "--count");
    for (size_t i = 0; i < count && verb->run != verb_set; i++)
        if (bide_targets_name_check(operands[i], NULL) != BIDE_OK)
            return cli_fail(&cli_budget, "%s: must be a name of 1 to 127 bytes without control characters",
                            operands[i]);
    if (s->fleet.url != NULL && (verb->run != verb_show || s->directory != NULL))
        return cli_fail(&cli_budget, "--fleet is only valid with show, and without --dir");
    bide_shared_guard();
    return verb->run(s, operands);
}

static int verb_dispatch(struct settings *settings, char **operands)
{
    if (operands[0] == NULL)
        return cli_fail(&cli_budget, "missing subcommand: list, show, watch, reset or set");
    for (size_t i = 0; i < VERBS; i++)
        if (strcmp(operands[0], verbs[i].name) == 0)
            return verb_run(&verbs[i], settings, operands + 1);
    return verb_unknown(operands[0]);
}

static int budget_main(void *settings, char **operands)
{
    struct settings *s = settings;
    struct cli_fleet_context fleeting = {.command = &cli_budget, .fleet = &s->fleet};
    int status = cli_fleet_ensure_linked(&fleeting) ? verb_dispatch(s, operands) : CLI_EXIT_BIDE_FAILED;
    cli_fleet_free(&s->fleet);
    return status;
}

static const struct cli_section sections[] = {
    {.title = "Subcommands",
     .text = "  list   all targets: remaining budget, breaker, hold-off, refusals\n"
             "  show   everything about one target, including its settings and its file\n"
             "  watch  the list, live on a terminal; otherwise a line per change\n"
             "  reset  fill the budget, close the breaker; the hold-off stays\n"
             "  set    change one target: all changes are applied, or none\n\n"
             "`set` takes `budget=N` (or `full`, `empty`): the level of a token bucket; `breaker=open` or "
             "`breaker=closed`, which hold the breaker until `breaker=auto` releases it; and every key of bide.conf "
             "that belongs to a target, such as `budget.capacity=20`. A key applies until a process opens the target "
             "with a policy that has another value: permanent settings belong in bide.conf.\n\n"
             "Other processes can use the target at the same time, and calls in flight lose nothing. To start with a "
             "completely new state, remove the file that `show` prints."},
    {.title = "Exit status",
     .text = "  0      success; watch was ended by q\n"
             "  1      no such target, its file cannot be used, or Redis cannot be reached\n"
             "  125    invalid option, key or value: nothing was changed\n"
             "  128+n  watch was ended by signal n; 130 for Ctrl-C"},
    {.title = "Examples",
     .text = "  bide budget list\n"
             "  bide budget show payments --json\n"
             "  bide budget show payments --fleet redis://cache\n"
             "  bide budget watch\n"
             "  bide budget set payments breaker=open\n"
             "  bide budget set payments budget.capacity=20 budget=full\n"
             "  bide budget reset payments"},
};

const struct cli_command cli_budget = {
    .name = "budget",
    .summary = CLI_BUDGET_SUMMARY,
    .synopsis = "list\n"
                "show NAME [--fleet URL]\n"
                "watch [NAME...]\n"
                "reset NAME\n"
                "set NAME KEY=VALUE...",
    .about =
        "Shows and changes the targets that processes of this host share (`bide run --shared`, `bide fetch --shared`, "
        "`bide_shared_open` in a program): remaining budget, state of the breaker, hold-off. There is no "
        "daemon; each target is a file. With `--fleet` the budget of a whole fleet in Redis is shown.",
    .groups = groups,
    .group_count = sizeof groups / sizeof *groups,
    .sections = sections,
    .section_count = sizeof sections / sizeof *sections,
    CLI_ADVICE(advice),
    .operands = operands_of,
    .operands_count = sizeof operands_of / sizeof *operands_of,
    .settings_size = sizeof(struct settings),
    .run = budget_main,
};
