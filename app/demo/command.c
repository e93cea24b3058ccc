/* command.c - bide demo: the same outage with naive retries and with bide, side by side, on this machine.
 *
 * Both sides run in threads (side.c); the main thread samples their progress ten times a second and draws it on stderr,
 * if that is a terminal. Metrics and page come from the complete records at the end, not from these samples. The page
 * is written to a temporary file that replaces an older page when it is complete: an interrupted demo leaves the old
 * page unchanged, and a file that is neither empty nor a page of bide demo is never replaced. */
#include "common/atomic_file.h"
#include "common/commands.h"
#include "common/policy.h"
#include "common/signals.h"
#include "common/term.h"

#include <bide/clock.h>
#include <bide/entropy.h>
#include <bide/wait.h>

#include "panels.h"
#include "report.h"
#include "side.h"

#include <curl/curl.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define REPORT_DEFAULT "bide-demo.html"
#define LIVE_LINES     (DEMO_PANELS_LINES + 4u)
#define WIDTH_MAX      120u            /* wider panels are not clearer */
#define LATE_START_NS  (100 * BIDE_MS) /* report starts that were later than this */
#define INTERVALS_MAX  (size_t)((DEMO_LENGTH_MAX_NS + DEMO_GRACE_NS) / DEMO_INTERVAL_NS + 16)

struct settings {
    struct cli_policy policy;
    struct demo_scenario scenario;
    bool has_outage;
    bool json;
    bool no_report;
    const char *report;
};

/* State of a run of the command. */
struct demo {
    struct demo_scenario *scenario;
    struct conf_policy policy;
    struct bide_rules status_rules;
    struct demo_client client[2];
    struct demo_side *side[2];
    struct demo_result result;
    char name[CONF_NAME_MAX + 8];
    char *repeat; /* owned; see demo_result.options */
    char error[DEMO_ERROR_SIZE];
};

/* ---- options ---- */

static const char *read_seconds(void *settings, const char *value)
{
    struct settings *s = settings;
    size_t length = strlen(value);
    bool right = text_decimal_parse(value, length, BIDE_S, &s->scenario.length_ns) ||
                 text_duration_parse(value, length, &s->scenario.length_ns);
    if (right && s->scenario.length_ns >= DEMO_LENGTH_MIN_NS && s->scenario.length_ns <= DEMO_LENGTH_MAX_NS)
        return NULL;
    return "from 2 to 300 seconds";
}

static const char *read_outage(void *settings, const char *value)
{
    struct settings *s = settings;
    const char *dots = strstr(value, "..");
    s->has_outage = true;
    if (dots == NULL || !text_duration_parse(value, (size_t)(dots - value), &s->scenario.down_ns) ||
        !text_duration_parse(dots + 2, strlen(dots + 2), &s->scenario.up_ns) ||
        s->scenario.down_ns >= s->scenario.up_ns)
        return "begin and end of the outage, such as 5s..9s";
    return NULL;
}

static void command_init(void *settings)
{
    struct settings *s = settings;
    s->scenario.length_ns = DEMO_LENGTH_NS;
    s->scenario.rate = DEMO_RATE;
    s->report = REPORT_DEFAULT;
}

static const struct cli_option options[] = {
    {.name = "seconds",
     .value = "N",
     .help = "duration of arriving calls: 2 to 300; default 18",
     .read = read_seconds,
     .details = "Calls in progress have two more seconds; then they are cancelled."},
    {.name = "rate",
     .value = "N",
     .help = "calls per second: 10 to 1000; default 200",
     .kind = CLI_COUNT,
     CLI_AT(struct settings, scenario.rate),
     .min = DEMO_RATE_MIN,
     .max = DEMO_RATE_MAX,
     .details = "The server's capacity is always a quarter above the rate."},
    {.name = "outage",
     .value = "BEGIN..END",
     .help = "when the server is down; default 5s..9s, or the same share of --seconds",
     .read = read_outage},
    {.name = "report",
     .value = "FILE",
     .help = "write the page to this file; default " REPORT_DEFAULT,
     .kind = CLI_STRING,
     CLI_AT(struct settings, report),
     .completion = CLI_COMPLETE_FILE,
     .details = "An older page of `bide demo` is replaced, any other file is not."},
    {.name = "no-report", .help = "write no page", .kind = CLI_FLAG, CLI_AT(struct settings, no_report)},
    {.name = "json",
     .help = "print the metrics as a JSON object instead of the table",
     .kind = CLI_FLAG,
     CLI_AT(struct settings, json),
     .details = "Includes the time series of the charts. docs/command-demo.md describes its keys."},
};

/* ---- the page file ---- */

/* Returns NULL, or the reason why the file at that path must not be replaced. */
static const char *page_file_objection(const char *path)
{
    char begin[sizeof DEMO_REPORT_MARK] = "";
    struct stat found;
    if (stat(path, &found) != 0)
        return errno == ENOENT ? NULL : strerror(errno);
    if (!S_ISREG(found.st_mode))
        return "it is not a regular file";
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return strerror(errno);
    size_t length = fread(begin, 1, sizeof begin - 1, file);
    fclose(file);
    return length == 0 || strcmp(begin, DEMO_REPORT_MARK) == 0 ? NULL : "it exists and is not a page of bide demo";
}

/* Opens the page before the demo starts, so that a page that cannot be written is reported at once. */
static bool page_file_open(struct cli_atomic_file *page, const struct settings *s)
{
    if (s->no_report)
        return true;
    const char *reason = page_file_objection(s->report);
    if (reason == NULL)
        reason = cli_atomic_file_open(page, s->report);
    if (reason != NULL)
        cli_fail(&cli_demo, "%s: %s; use --report FILE for another file, --no-report for none", s->report, reason);
    return reason == NULL;
}

static bool page_file_write(struct cli_atomic_file *page, const char *path, const struct demo_result *result)
{
    if (page->file == NULL)
        return true;
    const char *reason = demo_report(page->file, result) ? cli_atomic_file_commit(page) : "out of memory";
    if (reason == NULL)
        cli_report(&cli_demo, "the report with charts is in %s", path);
    else
        cli_fail(&cli_demo, "%s: %s", path, reason);
    return reason == NULL;
}

/* ---- signals ---- */

static struct bide_cancel interrupted;
static volatile sig_atomic_t caught, continued;

static void on_signal(int number)
{
    caught = number;
    bide_cancel_now(&interrupted);
}

/* Handles Ctrl-Z: shows the cursor again, stops the process, and after fg requests a new drawing. */
static void on_stop(int number)
{
    int error = errno;
    (void)number;
    (void)!write(STDERR_FILENO, CLI_CURSOR_SHOW, strlen(CLI_CURSOR_SHOW));
    raise(SIGSTOP);
    continued = 1;
    errno = error;
}

/* Installs on_stop; called when the cursor is first hidden. */
static void watch_stop(void)
{
    cli_signal_catch(SIGTSTP, on_stop, SA_RESTART);
}

static bool watch_signals(void)
{
    if (bide_cancel_init(&interrupted) != BIDE_OK)
        return false;
    cli_signals_catch(on_signal, SA_RESTART);
    return true;
}

/* ---- watching ---- */

struct watch {
    const struct demo *demo;
    struct cli_term term;
    bool drawing; /* the panels are on the screen */
    int64_t start_ns;
    struct demo_progress progress[2];
    uint32_t requests[2][INTERVALS_MAX];
    uint32_t peak[2];
    size_t known; /* completed intervals */
    size_t phase; /* last reported phase */
};

static struct cli_term detect_terminal(FILE *out)
{
    struct cli_term term = cli_term_detect(out);
    term.width = term.width < WIDTH_MAX ? term.width : WIDTH_MAX;
    return term;
}

/* Returns true if the terminal has enough lines and columns for the panels. */
static bool terminal_has_room(const struct cli_term *term)
{
    return term->live && term->width >= DEMO_PANELS_WIDTH_MIN && term->rows > LIVE_LINES;
}

static void watch_sample(struct watch *w)
{
    for (size_t i = 0; i < 2; i++) {
        struct demo_progress now = demo_side_progress(w->demo->side[i]);
        uint32_t came = (uint32_t)(now.requests - w->progress[i].requests);
        w->progress[i] = now;
        w->requests[i][w->known] = came;
        w->peak[i] = came > w->peak[i] ? came : w->peak[i];
    }
    w->known++;
}

static void watch_print_counts(const struct watch *w, const struct cli_term *term)
{
    char line[3][2][128];
    for (size_t i = 0; i < 2; i++) {
        const struct demo_progress *g = &w->progress[i];
        uint64_t begun = g->succeeded + g->failed + g->in_progress;
        snprintf(line[0][i], sizeof line[0][i], "%7" PRIu64 " requests, peak %" PRIu32 "/100 ms", g->requests,
                 w->peak[i]);
        snprintf(line[1][i], sizeof line[1][i], "%7" PRIu64 " of %" PRIu64 " calls succeeded", g->succeeded, begun);
        snprintf(line[2][i], sizeof line[2][i], "%7" PRIu64 " failed, %" PRIu64 " in progress", g->failed,
                 g->in_progress);
    }
    for (size_t i = 0; i < 3; i++)
        demo_panels_line(term, (const char *const[2]){line[i][0], line[i][1]});
}

static const char *phase_text(const struct demo_scenario *s, int64_t since_ns)
{
    return since_ns < s->down_ns     ? "the servers are up"
           : since_ns < s->up_ns     ? "the servers are down"
           : since_ns < s->length_ns ? "the servers are up again"
                                     : "no new calls; waiting for calls in progress";
}

/* Redraws all lines over the previous lines, in a single write. */
static void watch_draw(struct watch *w, int64_t since_ns)
{
    const struct demo *demo = w->demo;
    struct cli_term term = w->term;
    struct demo_panel panel[2];
    char summary[2][DEMO_SUMMARY_SIZE], *text = NULL;
    size_t length = 0;
    term.out = open_memstream(&text, &length);
    if (term.out == NULL)
        return;
    for (size_t i = 0; i < 2; i++)
        panel[i] = (struct demo_panel){demo->client[i].name, demo_client_summary(summary[i], &demo->client[i]),
                                       w->requests[i], w->known};
    bool again = w->drawing && !continued; /* after Ctrl-Z and fg other output follows the old lines */
    continued = 0;
    if (again)
        cli_move_up(&term, LIVE_LINES);
    else
        fputs(CLI_CURSOR_HIDE, term.out);
    demo_panels(&term, demo->scenario, panel);
    watch_print_counts(w, &term);
    fprintf(term.out, "%5.1f s  %s" CLI_CLEAR_LINE "\n", (double)since_ns / (double)BIDE_S,
            phase_text(demo->scenario, since_ns));
    fclose(term.out);
    fwrite(text, 1, length, w->term.out);
    fflush(w->term.out);
    free(text);
    if (!w->drawing)
        watch_stop();
    w->drawing = true;
}

static void watch_report_phase(struct watch *w, int64_t since_ns)
{
    const struct demo_scenario *s = w->demo->scenario;
    const int64_t begin_ns[] = {0, s->down_ns, s->up_ns, s->length_ns};
    if (w->phase < 4 && since_ns >= begin_ns[w->phase]) {
        cli_report(&cli_demo, "%4.1f s  %s", (double)begin_ns[w->phase] / (double)BIDE_S,
                   phase_text(s, begin_ns[w->phase]));
        w->phase++;
    }
}

static void watch_update(struct watch *w)
{
    int64_t since_ns = bide_now() - w->start_ns;
    if (terminal_has_room(&w->term) || w->drawing)
        watch_draw(w, since_ns);
    else
        watch_report_phase(w, since_ns);
}

/* Waits until both sides have ended. Returns false after a signal. */
static bool watch_run(struct watch *w)
{
    bool going = true;
    watch_update(w);
    while (going && !(w->progress[0].over && w->progress[1].over) && w->known < INTERVALS_MAX) {
        going = bide_wait_until(w->start_ns + (int64_t)(w->known + 1) * DEMO_INTERVAL_NS, &interrupted);
        watch_sample(w);
        watch_update(w);
    }
    if (w->drawing) {
        fputs(CLI_CURSOR_SHOW "\n", w->term.out);
        fflush(w->term.out);
    }
    return going;
}

/* ---- the demo ---- */

/* Raises the descriptor limit as far as the system allows, and lowers the rate to fit that limit. */
static bool scenario_fit_descriptors(struct demo_scenario *s)
{
    struct rlimit limit;
    uint32_t wanted = s->rate;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return true;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    getrlimit(RLIMIT_NOFILE, &limit);
    while (demo_scenario_descriptors(s) > limit.rlim_cur && s->rate > DEMO_RATE_MIN) {
        s->rate--;
        demo_scenario_complete(s);
    }
    if (demo_scenario_descriptors(s) > limit.rlim_cur) {
        cli_fail(&cli_demo, "the limit of open files is %" PRIu64 ", must be at least %" PRIu64 ": see ulimit -n",
                 (uint64_t)limit.rlim_cur, demo_scenario_descriptors(s));
        return false;
    }
    if (s->rate < wanted)
        cli_report(&cli_demo,
                   "the limit of open files is %" PRIu64 ": %" PRIu32 " calls per second instead of %" PRIu32,
                   (uint64_t)limit.rlim_cur, s->rate, wanted);
    return true;
}

/* Returns the options that select this policy with all its changes; NULL without memory. */
static char *repeat_options(const struct conf_policy *policy, const struct cli_policy *given)
{
    bool from_stdin = given->config != NULL && strcmp(given->config, "-") == 0;
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    if (out == NULL)
        return NULL;
    if (policy->line > 0) {
        fputs("--config ", out);
        cli_print_shell_word(out, from_stdin ? "-" : policy->file);
        fputc(' ', out);
    }
    fputs("--policy ", out);
    cli_print_shell_word(out, policy->name);
    for (size_t i = 0; i < given->sets; i++) {
        fprintf(out, " --set %s=", given->set[i].field->key);
        cli_print_shell_word(out, given->set[i].value);
    }
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

static bool demo_prepare(struct demo *demo, struct settings *s)
{
    demo->scenario = &s->scenario;
    s->scenario.seed = s->policy.has_seed ? s->policy.seed : bide_seed();
    if (!s->has_outage)
        demo_scenario_outage(&s->scenario);
    const char *want = demo_scenario_complete(&s->scenario);
    if (want != NULL) {
        cli_fail(&cli_demo, "--outage: must be %s", want);
        return false;
    }
    if (!cli_policy_resolve(&cli_demo, &s->policy, BIDE_PRESET_INTERACTIVE, &demo->policy) ||
        !scenario_fit_descriptors(&s->scenario))
        return false;
    snprintf(demo->name, sizeof demo->name, "bide, %s", demo->policy.name);
    demo->client[1] =
        (struct demo_client){.name = demo->name,
                             .policy = demo->policy.pair.policy,
                             .target = demo->policy.pair.target,
                             .status_rules = conf_rules_for_engine(&demo->policy.status, &demo->status_rules)};
    demo_client_init_naive(&demo->client[0], &demo->client[1].policy);
    demo->repeat = repeat_options(&demo->policy, &s->policy);
    if (demo->repeat == NULL)
        cli_fail(&cli_demo, "out of memory");
    return demo->repeat != NULL;
}

static bool demo_begin(struct demo *demo, int64_t *start_ns)
{
    for (size_t i = 0; i < 2; i++)
        if ((demo->side[i] = demo_side_new(demo->scenario, &demo->client[i], demo->error)) == NULL)
            return false;
    *start_ns = bide_now();
    return demo_side_begin(demo->side[0], *start_ns, demo->error) &&
           demo_side_begin(demo->side[1], *start_ns, demo->error);
}

/* Returns false after a signal, or after setting demo->error. */
static bool demo_perform(struct demo *demo, struct watch *w)
{
    if (!demo_begin(demo, &w->start_ns))
        return false;
    if (!watch_run(w))
        return false;
    demo->result = (struct demo_result){
        .scenario = demo->scenario, .policy = demo->policy.name, .options = demo->repeat, .made_s = bide_wall_s()};
    for (size_t i = 0; i < 2; i++) {
        struct demo_side_result *result = &demo->result.side[i];
        struct demo_record record;
        if (!demo_side_end(demo->side[i], &record, demo->error))
            return false;
        result->client = &demo->client[i];
        result->late_ns = demo_side_late_ns(demo->side[i]);
        bool counted = demo_counters_compute(&result->counters, demo->scenario, &record);
        demo_record_free(&record);
        if (!counted) {
            snprintf(demo->error, sizeof demo->error, "out of memory");
            return false;
        }
    }
    return true;
}

static void demo_end(struct demo *demo)
{
    for (size_t i = 0; i < 2; i++) {
        if (demo->side[i] != NULL)
            demo_side_stop(demo->side[i]);
        demo_counters_free(&demo->result.side[i].counters);
    }
    demo_side_free(demo->side[0]);
    demo_side_free(demo->side[1]);
    free(demo->repeat);
}

/* ---- output ---- */

static void print_panels(const struct demo *demo, struct cli_term term)
{
    struct demo_panel panel[2];
    char summary[2][DEMO_SUMMARY_SIZE];
    static uint32_t requests[2][INTERVALS_MAX];
    for (size_t i = 0; i < 2; i++) {
        const struct demo_counters *t = &demo->result.side[i].counters;
        for (size_t j = 0; j < t->intervals && j < INTERVALS_MAX; j++)
            requests[i][j] = t->interval[j].requests;
        panel[i] = (struct demo_panel){demo->client[i].name, demo_client_summary(summary[i], &demo->client[i]),
                                       requests[i], t->intervals};
    }
    term.live = false; /* printed once */
    demo_panels(&term, demo->scenario, panel);
    putchar('\n');
}

static void print_table(const struct demo *demo, bool drawn)
{
    const struct demo_scenario *s = demo->scenario;
    struct cli_term term = detect_terminal(stdout);
    printf("%" PRIu32 " calls in %.4g s, a server with a capacity of %" PRIu32 "/s, down from %.4g s to %.4g s:\n\n",
           demo_call_count(s), (double)s->length_ns / (double)BIDE_S, demo_capacity_per_s(s),
           (double)s->down_ns / (double)BIDE_S, (double)s->up_ns / (double)BIDE_S);
    if (!drawn || !term.live)
        print_panels(demo, term);
    demo_table(stdout, &demo->result);
    printf("\nseed %" PRIu64 "\n", s->seed);
}

static void warn_late(const struct demo_result *result)
{
    char text[TEXT_VALUE_SIZE];
    int64_t late_ns = result->side[0].late_ns;
    late_ns = result->side[1].late_ns > late_ns ? result->side[1].late_ns : late_ns;
    if (late_ns > LATE_START_NS)
        cli_report(&cli_demo, "this machine was busy: calls started up to %s late, which distorts the metrics",
                   text_duration_format_short(text, late_ns));
}

static int demo_conclude(struct demo *demo, const struct watch *w, struct cli_atomic_file *page,
                         const struct settings *s)
{
    warn_late(&demo->result);
    if (s->json)
        demo_json(stdout, &demo->result);
    else
        print_table(demo, w->drawing);
    bool printed = cli_flush(&cli_demo);
    return page_file_write(page, s->report, &demo->result) && printed ? EXIT_SUCCESS : CLI_EXIT_BIDE_FAILED;
}

static int command_run(void *settings, char **operands)
{
    struct settings *s = settings;
    static struct demo demo;
    static struct watch watcher;
    struct cli_atomic_file page = {0};
    int status = CLI_EXIT_BIDE_FAILED;
    if (operands[0] != NULL)
        return cli_fail(&cli_demo, "%s: unexpected argument, only options are allowed", operands[0]);
    if (!watch_signals() || curl_global_init(CURL_GLOBAL_ALL) != CURLE_OK)
        return cli_fail(&cli_demo, "cannot start: no descriptor or no memory");
    if (!demo_prepare(&demo, s) || !page_file_open(&page, s))
        return CLI_EXIT_BIDE_FAILED;
    watcher = (struct watch){.demo = &demo, .term = detect_terminal(stderr)};
    if (demo_perform(&demo, &watcher))
        status = demo_conclude(&demo, &watcher, &page, s);
    else if (caught == 0)
        cli_fail(&cli_demo, "%s", demo.error);
    else
        status = 128 + caught;
    demo_end(&demo);
    cli_atomic_file_discard(&page);
    return status;
}

/* ---- the command ---- */

static const struct cli_group groups[] = {
    {CLI_GROUP(NULL, options)},
    CLI_POLICY_GROUP(struct settings, policy),
};

static const struct cli_section sections[] = {
    {.title = "Exit status",
     .text = "0 when the demo was complete; 125 when it failed, or its report or metrics could not be written; 128 "
             "plus the signal number when it was interrupted, 130 for Ctrl-C."},
    {.title = "Examples",
     .text = "Twenty seconds, and a page with charts:\n\n"
             "  bide demo\n\n"
             "An outage that is long enough to open the breaker:\n\n"
             "  bide demo --seconds 40 --outage 5s..15s\n\n"
             "Your own policy against the naive loop:\n\n"
             "  bide demo --policy payments --no-report\n\n"
             "Metrics for a program:\n\n"
             "  bide demo --json --no-report |\n"
             "      jq '.sides[] | {name, amplification, recovery_ms}'"},
};

const struct cli_command cli_demo = {
    .name = "demo",
    .summary = CLI_DEMO_SUMMARY,
    .synopsis = "[options]",
    .about =
        "Starts two equal servers on this machine (`bide chaos`, loopback only) that have a limited capacity and an "
        "outage of some seconds, and sends the same calls to both at the same time: to one with the usual retry loop "
        "(10 attempts, 500 ms apart), to the other with bide's policy. It shows side by side the load of the servers, "
        "the successful calls and the recovery time, and writes a page with charts.\n\n"
        "It takes twenty seconds. Without --policy, bide's side has the preset `interactive`, unchanged; the naive "
        "loop always has the same attempt timeout as the other side.",
    .groups = groups,
    .group_count = sizeof groups / sizeof *groups,
    .sections = sections,
    .section_count = sizeof sections / sizeof *sections,
    .settings_size = sizeof(struct settings),
    .init = command_init,
    .run = command_run,
};
