/* command.c - `bide sim`: option table and subcommands. Runs scenarios on a virtual clock, compares them and checks
 * expectations.
 *
 * All mistakes are found before anything runs: in the scenario, policies, expectations and output files
 * (command_outputs.c), and a lack of memory. A signal ends the program inside its handler, which removes incomplete
 * output files and the progress bar. */
#include "command_lists.h"
#include "command_outputs.h"
#include "common/atomic_file.h"
#include "common/commands.h"
#include "common/signals.h"
#include "common/term.h"

#include <bide/clock.h>

#include "expect.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXIT_UNMET      1 /* an expectation failed */
#define SETS_MAX        64u
#define EXPECTS_MAX     64u
#define POLICIES_MAX    SIM_CASES_MAX
#define SEEDS_MAX       100000
#define THREADS_MAX     256
#define BAR_DELAY_NS    (500 * BIDE_MS) /* no progress bar for shorter runs */
#define BAR_CELLS       30u
#define COMPLETIONS_MAX 128u

struct settings {
    const char *set[SETS_MAX + 1];
    const char *policy[POLICIES_MAX + 1];
    struct sim_expect expect[EXPECTS_MAX];
    size_t sets, policies, expects;
    const char *config;
    struct cli_sim_outputs outputs;
    struct sim_plan plan;
    bool has_seed;
    bool has_run_option; /* an option was given that only a run of a scenario uses */
};

/* ---- options ---- */

static const char *read_set(void *settings, const char *value)
{
    struct settings *s = settings;
    const char *equals = strchr(value, '=');
    if (equals == NULL || equals == value)
        return "KEY=VALUE, such as clients.rate=300/s or policy.attempts=3; bide sim keys lists the keys";
    if (s->sets == SETS_MAX)
        return "an option given at most 64 times";
    s->set[s->sets++] = value;
    return NULL;
}

static const char *read_policy(void *settings, const char *value)
{
    struct settings *s = settings;
    if (s->policies == POLICIES_MAX)
        return "a policy given with at most 31 others";
    for (size_t i = 0; i < s->policies; i++)
        if (strcmp(s->policy[i], value) == 0)
            return "a policy given once";
    s->policy[s->policies++] = value;
    return NULL;
}

static const char *read_expect(void *settings, const char *value)
{
    struct settings *s = settings;
    return s->expects < EXPECTS_MAX ? sim_expect_read(&s->expect[s->expects++], value)
                                    : "an option given at most 64 times";
}

/* Returns the i-th key that --set accepts: those of the world, then policy.KEY. Valid until the next call. */
static const char *set_key(size_t i)
{
    static char text[128];
    size_t keys = 0;
    while (sim_key(keys) != NULL && keys < i)
        keys++;
    const struct sim_key *key = sim_key(keys);
    const char *of_policy = key == NULL ? conf_key_name_at(i - keys) : NULL;
    if (key == NULL && of_policy == NULL)
        return NULL;
    snprintf(text, sizeof text, "%s.%s", key != NULL ? key->section : "policy", key != NULL ? key->key : of_policy);
    return text;
}

static void settings_init(void *settings)
{
    struct settings *s = settings;
    s->plan = (struct sim_plan){.seed = 1, .seeds = 1};
}

/* ---- option table ---- */

static const struct cli_option world_options[] = {
    {.name = "set",
     .value = "KEY=VALUE",
     .help = "set a key of the scenario, or policy.KEY of every policy; may be repeated",
     .read = read_set,
     .value_key = set_key,
     .details = "Removes the key from sweeps and cases of the scenario. `bide sim keys` lists the keys of the world; "
                "those of policies are in bide.conf(5)."},
    {.name = "policy",
     .value = "NAME",
     .help = "run the scenario with this policy: a section of bide.conf, a preset, or FILE#NAME",
     .read = read_policy,
     .completion = CLI_COMPLETE_POLICY,
     .details = "May be repeated to compare policies. They replace the scenario's own cases."},
    {.name = "config",
     .value = "FILE",
     .help = "read policies from this file instead of bide.conf",
     .kind = CLI_STRING,
     CLI_AT(struct settings, config),
     .completion = CLI_COMPLETE_FILE},
    {.name = "seed",
     .value = "N",
     .help = "seed of the random numbers; default the scenario's seed, or 1",
     .kind = CLI_COUNT,
     CLI_AT(struct settings, plan.seed),
     CLI_GIVEN(struct settings, has_seed),
     .details = "The same seed gives the same bytes, on every machine and with any number of threads."},
    {.name = "seeds",
     .value = "N",
     .help = "run each row with this many seeds; metrics are then means with a 95 % interval",
     .kind = CLI_COUNT,
     CLI_AT(struct settings, plan.seeds),
     .min = 1,
     .max = SEEDS_MAX,
     .details = "The first is --seed, the others follow it. Series and pictures over time show the first."},
    {.name = "threads",
     .value = "N",
     .help = "parallel runs; default the number of cores",
     .kind = CLI_COUNT,
     CLI_AT(struct settings, plan.threads),
     .min = 1,
     .max = THREADS_MAX,
     .details = "Fewer if the memory is not enough; a message then reports the number."},
    {.name = "expect",
     .value = "EXPRESSION",
     .help = "exit 1 unless this is true: 'recovers', 'amplification<1.2'; may be repeated",
     .read = read_expect,
     .details = "See below."},
};

static const struct cli_option output_options[] = {
    {.name = "json",
     .help = "print one JSON object instead of the table",
     .kind = CLI_FLAG,
     CLI_AT(struct settings, outputs.json)},
    {.name = "csv",
     .help = "print comma-separated values instead: a line per row, all metrics",
     .kind = CLI_FLAG,
     CLI_AT(struct settings, outputs.csv),
     CLI_GIVEN(struct settings, has_run_option)},
    {.name = "series",
     .value = "FILE",
     .help = "write the counts of each time bin, as comma-separated values",
     .kind = CLI_STRING,
     CLI_AT(struct settings, outputs.file[CLI_SIM_SERIES]),
     CLI_GIVEN(struct settings, has_run_option),
     .completion = CLI_COMPLETE_FILE},
    {.name = "svg",
     .value = "FILE",
     .help = "write the picture",
     .kind = CLI_STRING,
     CLI_AT(struct settings, outputs.file[CLI_SIM_SVG]),
     CLI_GIVEN(struct settings, has_run_option),
     .completion = CLI_COMPLETE_FILE},
    {.name = "html",
     .value = "FILE",
     .help = "write a page with charts and all metrics; it needs no other file",
     .kind = CLI_STRING,
     CLI_AT(struct settings, outputs.file[CLI_SIM_HTML]),
     CLI_GIVEN(struct settings, has_run_option),
     .completion = CLI_COMPLETE_FILE,
     .details = "A FILE is replaced when the new file is complete. `-` is standard output, instead of the table."},
};

static const struct cli_group groups[] = {
    {CLI_GROUP(NULL, world_options), CLI_GIVEN(struct settings, has_run_option)},
    {CLI_GROUP("Output", output_options)},
};

/* The options of a policy that other subcommands have. */
#define ADVICE_RETRIES  "use --set policy.attempts=N+1 (it counts the first, too)"
#define ADVICE_ATTEMPTS "use --set policy.attempts=N"
#define ADVICE_BASE     "use --set policy.base=DURATION"

static const struct cli_advice advice[] = {
    {"--retries", ADVICE_RETRIES},
    {"--retry", ADVICE_RETRIES},
    {"--max-retries", ADVICE_RETRIES},
    {"--attempts", ADVICE_ATTEMPTS},
    {"--max-attempts", ADVICE_ATTEMPTS},
    {"--tries", ADVICE_ATTEMPTS},
    {"-n", ADVICE_ATTEMPTS},
    {"--timeout", "use --set policy.attempt_timeout=DURATION (or deadline)"},
    {"--attempt-timeout", "use --set policy.attempt_timeout=DURATION"},
    {"--deadline", "use --set policy.deadline=DURATION"},
    {"--delay", ADVICE_BASE},
    {"--interval", ADVICE_BASE},
    {"--backoff", ADVICE_BASE},
    {"--base", ADVICE_BASE},
    {"--cap", "use --set policy.cap=DURATION"},
    {"--jitter", "use --set policy.jitter=KIND"},
    {"--preset", "use --policy NAME"},
    {"--duration", "use --set scenario.duration=DURATION"},
    {"--clients", "use --set clients.count=N"},
};

static const struct cli_section sections[] = {
    {.title = "Words",
     .text = "  list           the scenarios of the catalogue\n"
             "  show NAME      the file of a scenario, as a start for your own\n"
             "  keys           all keys of scenario files, with their defaults\n"
             "  metrics        all metrics by name\n"
             "  assert NAME    run NAME, and print a line per expectation instead of the table\n\n"
             "Anything else is a scenario of the catalogue, or a file: a name that contains a . or a /. `-` is "
             "standard input."},
    {.title = "Expectations",
     .text = "  recovers             the flag must be yes; with ! before it, no\n"
             "  amplification<1.2    a comparison: < <= > >= = !=; a unit or % may follow\n"
             "  lifo: recovers       only for rows of that name\n\n"
             "Quote them: < and > are special to the shell, ! to some shells. An expectation applies to every row. "
             "With --seeds the worst seed decides. A metric without a value fails (recover_s if it never recovers)."},
    {.title = "Environment",
     .text = "`BIDE_CONFIG` is the default of --config. `BIDE_SIM_QUEUE=plain` uses the reference implementation of "
             "the event queue: slower, with the same output."},
    {.title = "Exit status",
     .text = "0. 1 if an expectation fails. 125 if a scenario, policy or option is invalid, the memory is not enough "
             "(nothing is run then), or an output cannot be written. 128 plus the signal's number after a signal, 130 "
             "for Ctrl-C."},
    {.title = "Examples",
     .text = "  bide sim list\n"
             "  bide sim metastable --html metastable.html\n"
             "  bide sim storm_herd --set clients.count=100000 --seeds 20\n"
             "  bide sim metastable --policy service --policy bide.conf#payments\n"
             "  bide sim show metastable > mine.ini; bide sim mine.ini\n\n"
             "In CI:\n\n"
             "  bide sim assert metastable --policy bide.conf#payments \\\n"
             "      --expect recovers --expect 'amplification<1.2'"},
};

static int sim_main(void *settings, char **operands);
static const char *completion_word(size_t i);
static const char *scenario_word(size_t i);

static const struct cli_operands operands_of[] = {
    {NULL, completion_word, CLI_COMPLETE_FILE},   {"show", scenario_word, CLI_COMPLETE_NOTHING},
    {"assert", scenario_word, CLI_COMPLETE_FILE}, {"list", NULL, CLI_COMPLETE_NOTHING},
    {"keys", NULL, CLI_COMPLETE_NOTHING},         {"metrics", NULL, CLI_COMPLETE_NOTHING},
};

const struct cli_command cli_sim = {
    .name = "sim",
    .summary = CLI_SIM_SUMMARY,
    .synopsis = "[options] [assert] NAME|FILE\nlist|keys|metrics [--json]\nshow NAME",
    .about = "Simulates clients, services of limited capacity and the network between them on a virtual clock, with "
             "the production engine, and reports the effect of retries on the server: arrivals and served requests, "
             "amplification, give-ups by reason, goodput, recovery, latency.\n\n"
             "A scenario compares several cases or policies, a row each. The catalogue is built in; your own scenario "
             "is an INI file of the same form.",
    .groups = groups,
    .group_count = sizeof groups / sizeof *groups,
    .sections = sections,
    .section_count = sizeof sections / sizeof *sections,
    CLI_ADVICE(advice),
    .operands = operands_of,
    .operands_count = sizeof operands_of / sizeof *operands_of,
    .settings_size = sizeof(struct settings),
    .init = settings_init,
    .run = sim_main,
};

/* ---- subcommands ---- */

static int flush_and_return(int status)
{
    return cli_flush(&cli_sim) ? status : CLI_EXIT_BIDE_FAILED;
}

static int run_list(const struct settings *s, char **operands)
{
    (void)operands;
    return cli_sim_list(s->outputs.json);
}

static int run_keys(const struct settings *s, char **operands)
{
    (void)operands;
    return cli_sim_keys(s->outputs.json);
}

static int run_metrics(const struct settings *s, char **operands)
{
    (void)operands;
    return cli_sim_metrics(s->outputs.json);
}

static int run_show(const struct settings *s, char **operands);
static int run_assert(const struct settings *s, char **operands);

/* Subcommands: words accepted in the place of a scenario's name. */
static const struct subcommand {
    const char *name;
    size_t operands;
    int (*run)(const struct settings *settings, char **operands);
    bool runs; /* runs a scenario: all options are valid */
    bool has_json;
} subcommands[] = {
    {"list", 0, run_list, false, true},     {"show", 1, run_show, false, false},
    {"keys", 0, run_keys, false, true},     {"metrics", 0, run_metrics, false, true},
    {"assert", 1, run_assert, true, false},
};
#define SUBCOMMANDS (sizeof subcommands / sizeof *subcommands)

static const char *scenario_word(size_t i)
{
    const struct sim_entry *entry = sim_catalogue(i);
    return entry != NULL ? entry->name : NULL;
}

static const char *completion_word(size_t i)
{
    return i < SUBCOMMANDS ? subcommands[i].name : scenario_word(i - SUBCOMMANDS);
}

/* ---- scenarios by name ---- */

static const struct sim_entry *catalogue_find(const char *name)
{
    const struct sim_entry *entry = NULL;
    for (size_t i = 0; (entry = sim_catalogue(i)) != NULL && strcmp(entry->name, name) != 0; i++)
        continue;
    return entry;
}

static bool name_is_file(const char *name)
{
    return strcmp(name, "-") == 0 || strpbrk(name, "./") != NULL;
}

/* Reports an unknown scenario with a suggestion. `from`: 0 suggests subcommands too, SUBCOMMANDS only scenarios. */
static int command_unknown_scenario(const char *name, size_t from)
{
    const char *all[COMPLETIONS_MAX + 1] = {NULL}, *word;
    struct stat found;
    for (size_t i = 0; i < COMPLETIONS_MAX && (word = completion_word(from + i)) != NULL; i++)
        all[i] = word;
    const char *suggestion = conf_suggest(name, strlen(name), all);
    if (stat(name, &found) == 0 && S_ISREG(found.st_mode))
        return cli_fail(&cli_sim, "%s: no such scenario; the file of that name is ./%s", name, name);
    if (suggestion != NULL)
        return cli_fail(&cli_sim, "%s: no such scenario; did you mean %s?", name, suggestion);
    return cli_fail(&cli_sim, "%s: must be a scenario of bide sim list, or a file name with a . or a / in it", name);
}

static int run_show(const struct settings *s, char **operands)
{
    const struct sim_entry *entry = catalogue_find(operands[0]);
    (void)s;
    if (entry == NULL && name_is_file(operands[0]))
        return cli_fail(&cli_sim, "show %s: must be a scenario of bide sim list; a file is shown by cat", operands[0]);
    if (entry == NULL)
        return command_unknown_scenario(operands[0], SUBCOMMANDS);
    fwrite(entry->text, 1, entry->length, stdout);
    return flush_and_return(EXIT_SUCCESS);
}

/* ---- signals ---- */

static volatile sig_atomic_t bar_is_shown;

static void on_signal(int number)
{
    static const char wipe[] = "\r" CLI_CLEAR_LINE;
    if (bar_is_shown)
        (void)!write(STDERR_FILENO, wipe, sizeof wipe - 1);
    cli_atomic_files_unlink();
    _exit(128 + number);
}

/* ---- progress ---- */

struct bar {
    struct cli_term term;
    int64_t start_ns;
};

static bool show_progress(void *context, double done)
{
    const struct bar *bar = context;
    char cells[4 * BAR_CELLS + 1], left[TEXT_VALUE_SIZE] = "", line[256];
    int64_t since_ns = bide_now() - bar->start_ns;
    if (!bar->term.live || since_ns < BAR_DELAY_NS)
        return true;
    if (done > 0.01)
        text_duration_format_short(left, (int64_t)((double)since_ns * (1 - done) / done) / BIDE_S * BIDE_S + BIDE_S);
    snprintf(line, sizeof line, "%3.0f %%  %s%s%s  %s%s%s", done * 100, left[0] != '\0' ? "about " : "", left,
             left[0] != '\0' ? " left" : "", cli_colour(&bar->term, CLI_BLUE),
             cli_bar(&bar->term, cells, BAR_CELLS, done, 1), cli_colour(&bar->term, CLI_PLAIN));
    bar_is_shown = 1;
    cli_rewrite_line(&bar->term, line);
    return true;
}

static void clear_progress(const struct bar *bar)
{
    if (bar_is_shown)
        cli_rewrite_line(&bar->term, "");
    bar_is_shown = 0;
}

/* ---- memory ---- */

/* "4.1 GB" */
static const char *bytes_text(char text[32], uint64_t bytes)
{
    bool gb = bytes >= 1000000000;
    snprintf(text, 32, "%.*f %s", gb ? 1 : 0, (double)bytes / (gb ? 1e9 : 1e6), gb ? "GB" : "MB");
    return text;
}

/* Returns the keys that determine the memory of the largest row. */
static const char *largest_row_keys(const struct sim_scenario *scenario)
{
    const struct sim_world *largest = &sim_scenario_row(scenario, 0)->world;
    for (size_t r = 1; r < sim_scenario_rows(scenario); r++) {
        const struct sim_world *world = &sim_scenario_row(scenario, r)->world;
        if (sim_world_bytes(world) > sim_world_bytes(largest))
            largest = world;
    }
    enum sim_arrival arrival = largest->clients[0].arrival;
    return arrival == SIM_HERD || arrival == SIM_CLOSED ? "clients.count"
                                                        : "clients.rate, scenario.duration or policy.attempts";
}

/* Reduces the number of threads to the memory available. Returns false if it is not enough for a single thread. */
static bool plan_fit_memory(struct sim_plan *plan, const struct sim_scenario *scenario)
{
    char needed[32], there[32];
    uint64_t left = sim_memory_available(), need = sim_batch_bytes(scenario, plan);
    uint32_t wanted = sim_batch_threads(scenario, plan);
    plan->threads = wanted;
    bytes_text(needed, need);
    bytes_text(there, left);
    while (plan->threads > 1 && sim_batch_bytes(scenario, plan) > left)
        plan->threads--;
    if (sim_batch_bytes(scenario, plan) > left) {
        cli_fail(&cli_sim, "needs about %s of memory, and %s are available: use a smaller %s",
                 bytes_text(needed, sim_batch_bytes(scenario, plan)), there, largest_row_keys(scenario));
        return false;
    }
    if (plan->threads < wanted)
        cli_report(&cli_sim,
                   "%" PRIu32 " parallel runs need about %s of memory, and %s are available: running %" PRIu32
                   " at a time",
                   wanted, needed, there, plan->threads);
    return true;
}

/* ---- expectations ---- */

/* Checks that every row named by an expectation exists. */
static bool expectations_check_rows(const struct settings *s, const struct sim_scenario *scenario)
{
    for (size_t i = 0; i < s->expects; i++) {
        const char *row = s->expect[i].row, *names[SIM_ROWS_MAX + 1] = {NULL};
        if (sim_expect_rows(&s->expect[i], scenario) > 0)
            continue;
        for (size_t r = 0; r < sim_scenario_rows(scenario) && r < SIM_ROWS_MAX; r++)
            names[r] = sim_scenario_row(scenario, r)->name;
        const char *suggestion = conf_suggest(row, strlen(row), names);
        cli_fail(&cli_sim, "--expect: there is no row %s; %s %s%s", row,
                 suggestion != NULL ? "did you mean" : "the first is",
                 suggestion != NULL ? suggestion : sim_scenario_row(scenario, 0)->label, suggestion != NULL ? "?" : "");
        return false;
    }
    return true;
}

/* Prints a line per expectation, after the table; with data on stdout, only failures, on stderr. Returns true if all
 * hold. */
static bool print_expectations(const struct settings *s, const struct sim_batch *batch,
                               enum cli_sim_stdout stdout_content)
{
    struct cli_term term = cli_term_detect(stdout);
    bool all = true;
    char text[256];
    if (s->expects > 0 && stdout_content == CLI_SIM_STDOUT_TABLE)
        putchar('\n'); /* empty line after the table */
    for (size_t i = 0; i < s->expects; i++) {
        bool holds = sim_expect_holds(&s->expect[i], batch, text);
        all = all && holds;
        if (stdout_content == CLI_SIM_STDOUT_DATA && !holds)
            cli_report(&cli_sim, "%s", text);
        if (stdout_content == CLI_SIM_STDOUT_DATA)
            continue;
        printf("%s%s%s  ", cli_colour(&term, holds ? CLI_GREEN : CLI_RED), holds ? "ok    " : "FAILED",
               cli_colour(&term, CLI_PLAIN));
        cli_print_sanitized(stdout, text);
        putchar('\n');
    }
    return all;
}

/* ---- running a scenario ---- */

static int command_failed_run(enum sim_end end, const char *row)
{
    if (end == SIM_END_ENDLESS)
        return cli_fail(&cli_sim,
                        "%s: does not end: calls continue after the duration; --set scenario.drain=no stops "
                        "the run there",
                        row);
    return cli_fail(&cli_sim, "%s: %s", row, end == SIM_END_NO_MEMORY ? "no memory" : "stopped");
}

/* Reads BIDE_SIM_QUEUE. Returns false after reporting an invalid value. */
static bool plan_read_queue(struct sim_plan *plan)
{
    const char *queue = getenv("BIDE_SIM_QUEUE");
    plan->plain_queue = queue != NULL && strcmp(queue, "plain") == 0;
    if (queue == NULL || queue[0] == '\0' || plan->plain_queue)
        return true;
    cli_fail(&cli_sim, "BIDE_SIM_QUEUE=%s: must be plain, or empty", queue);
    return false;
}

/* Returns the policy file named by --config or BIDE_CONFIG; NULL: none. */
static const char *config_of(const struct settings *s)
{
    const char *config = s->config != NULL ? s->config : getenv("BIDE_CONFIG");
    return config != NULL && config[0] != '\0' ? config : NULL;
}

static struct sim_scenario *read_scenario(const struct settings *s, const char *name)
{
    char errors[CONF_ERROR_MAX] = "";
    struct sim_overrides choice = {s->sets > 0 ? s->set : NULL, s->policies > 0 ? s->policy : NULL, config_of(s)};
    if (s->config != NULL && access(s->config, R_OK) != 0) { /* checked here because its policies may not be used */
        cli_fail(&cli_sim, "--config %s: cannot be read: %s", s->config, strerror(errno));
        return NULL;
    }
    if (catalogue_find(name) == NULL && !name_is_file(name)) {
        command_unknown_scenario(name, 0);
        return NULL;
    }
    struct sim_scenario *scenario = sim_scenario_read(name, &choice, errors);
    if (scenario == NULL)
        cli_report_lines(&cli_sim, errors);
    return scenario;
}

/* Checks that no output is the FILE of a policy FILE#NAME. A name alone refers to bide.conf, which the caller
 * checks. */
static bool outputs_check_policy(const struct cli_sim_outputs *outputs, const char *policy)
{
    char file[CONF_PATH_MAX];
    const char *mark = strrchr(policy, '#');
    if (mark == NULL)
        return true;
    snprintf(file, sizeof file, "%.*s", (int)(mark - policy), policy);
    return cli_sim_outputs_check_input(outputs, file);
}

/* Checks that no output would replace an input of the run: the scenario, bide.conf or a policy file. */
static bool outputs_check_inputs(const struct cli_sim_outputs *outputs, const struct settings *s, const char *name,
                                 const struct sim_scenario *scenario)
{
    char path[CONF_PATH_MAX];
    const char *config = config_of(s) != NULL ? config_of(s) : conf_default_path(path) ? path : NULL;
    bool ok = (!name_is_file(name) || cli_sim_outputs_check_input(outputs, name)) &&
              (config == NULL || cli_sim_outputs_check_input(outputs, config));
    for (size_t i = 0; i < s->policies && ok; i++)
        ok = outputs_check_policy(outputs, s->policy[i]);
    for (size_t r = 0; r < sim_scenario_rows(scenario) && ok; r++) {
        const struct sim_world *world = &sim_scenario_row(scenario, r)->world;
        for (uint32_t i = 0; i < world->groups && ok; i++)
            ok = outputs_check_policy(outputs, world->clients[i].policy);
        for (uint32_t i = 0; i < world->services && ok; i++)
            ok = outputs_check_policy(outputs, world->service[i].policy);
    }
    return ok;
}

/* Returns scenario and options as shell words, for repeating the run; NULL without memory. */
static char *command_line_text(const struct settings *s, const char *name)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    if (out == NULL)
        return NULL;
    cli_print_shell_word(out, name);
    if (s->config != NULL) {
        fputs(" --config ", out);
        cli_print_shell_word(out, s->config);
    }
    for (size_t i = 0; i < s->policies + s->sets; i++) {
        fputs(i < s->policies ? " --policy " : " --set ", out);
        cli_print_shell_word(out, i < s->policies ? s->policy[i] : s->set[i - s->policies]);
    }
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

static int run_scenario(const struct settings *s, const char *name, bool asserts)
{
    struct cli_sim_outputs outputs = s->outputs;
    struct sim_batch batch = {0};
    struct sim_plan plan = s->plan;
    struct bar bar = {cli_term_detect(stderr), bide_now()};
    char *command_line = command_line_text(s, name);
    const char *at = "";
    int status = CLI_EXIT_BIDE_FAILED;
    if (command_line == NULL)
        return cli_fail(&cli_sim, "no memory");
    bool agree = cli_sim_outputs_check(&outputs, asserts) && plan_read_queue(&plan);
    struct sim_scenario *scenario = agree ? read_scenario(s, name) : NULL;
    if (scenario == NULL || !expectations_check_rows(s, scenario) ||
        !outputs_check_inputs(&outputs, s, name, scenario) || !plan_fit_memory(&plan, scenario))
        goto out;
    cli_signals_catch(on_signal, 0);
    if (!cli_sim_outputs_open(&outputs))
        goto out;
    plan.seed = s->has_seed ? s->plan.seed : sim_scenario_seed(scenario);
    plan.progress = show_progress;
    plan.context = &bar;
    plan.command_line = command_line;
    enum sim_end end = sim_batch_run(&batch, scenario, &plan, &at);
    clear_progress(&bar);
    if (end != SIM_END_DONE) {
        command_failed_run(end, at);
        goto out;
    }
    bool written = cli_sim_outputs_write(&outputs, &batch);
    bool holds = print_expectations(s, &batch, outputs.stdout_content);
    status = flush_and_return(!written ? CLI_EXIT_BIDE_FAILED : holds ? EXIT_SUCCESS : EXIT_UNMET);
out:
    cli_sim_outputs_close(&outputs);
    sim_batch_free(&batch);
    sim_scenario_free(scenario);
    free(command_line);
    return status;
}

static int run_assert(const struct settings *s, char **operands)
{
    if (s->expects == 0)
        return cli_fail(&cli_sim, "assert %s: needs an expectation, such as --expect 'amplification<1.2'", operands[0]);
    return run_scenario(s, operands[0], true);
}

/* ---- entry point ---- */

static int subcommand_run(const struct subcommand *subcommand, const struct settings *s, char **operands)
{
    size_t count = 0;
    while (operands[count] != NULL)
        count++;
    if (count < subcommand->operands)
        return cli_fail(&cli_sim, "%s: needs a scenario after it; see bide sim list", subcommand->name);
    if (count > subcommand->operands)
        return cli_fail(&cli_sim, "%s: unexpected argument: must be %s after %s", operands[subcommand->operands],
                        subcommand->operands > 0 ? "one scenario" : "nothing", subcommand->name);
    if ((s->has_run_option && !subcommand->runs) || (s->outputs.json && !subcommand->has_json && !subcommand->runs))
        return cli_fail(&cli_sim, "%s: accepts no option%s", subcommand->name,
                        subcommand->has_json ? " but --json" : "");
    return subcommand->run(s, operands);
}

static int sim_main(void *settings, char **operands)
{
    const struct settings *s = settings;
    if (operands[0] == NULL)
        return cli_fail(&cli_sim, "a scenario is missing, such as storm_herd; see bide sim list");
    for (size_t i = 0; i < SUBCOMMANDS; i++)
        if (strcmp(operands[0], subcommands[i].name) == 0)
            return subcommand_run(&subcommands[i], s, operands + 1);
    if (operands[1] != NULL)
        return cli_fail(
            &cli_sim, "%s: unexpected argument after the scenario %s: must be one scenario; use --policy for a policy",
            operands[1], operands[0]);
    return run_scenario(s, operands[0], false);
}
