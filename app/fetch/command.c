/* command.c - the subcommand `bide fetch`, after its options were read (command_options.c): the policy is resolved,
 * URLs become jobs (plan.h), and the batch runs them. Messages go to stderr; stdout is for responses. */
#include "command.h"

#include "common/commands.h"
#include "common/outer.h"

#include "command_advice.h"
#include "secret.h"
#include "url.h"

#include <bide/clock.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TICK_NS   (100 * BIDE_MS)
#define BAR_CELLS 20

static struct bide_target fleet_target; /* the target of a fleet that is not shared on this host */

/* ---- progress and events ---- */

static void progress_clear(struct progress_bar *p)
{
    if (p->shown)
        cli_rewrite_line(&p->term, "");
    p->shown = false;
}

/* Reports pending messages of the fleet first. */
static void fleet_report_messages(struct fetch_settings *s)
{
    char text[CLI_FLEET_MESSAGE_SIZE];
    while (cli_fleet_poll_message(&s->fleet, text)) {
        progress_clear(&s->progress);
        fetch_log_fleet(&s->log, text);
    }
}

static void progress_on_tick(void *context)
{
    struct fetch_settings *s = context;
    struct progress_bar *p = &s->progress;
    char line[FETCH_PROGRESS_SIZE], bar[4 * BAR_CELLS + 1];
    struct fetch_progress_layout layout = {
        .attempts_max = s->log.attempts_max, .columns = p->term.width - 1, .bar = bar, .bar_columns = BAR_CELLS};
    int64_t now_ns = bide_now();
    if (now_ns - p->state.tick_ns < TICK_NS)
        return;
    fleet_report_messages(s);
    fetch_progress_update(&p->state, fetch_inputs.plan.jobs, fetch_inputs.plan.count, now_ns);
    cli_bar(&p->term, bar, BAR_CELLS, (double)p->state.bytes, p->state.total);
    fetch_progress_line(&p->state, &layout, line, sizeof line);
    cli_rewrite_line(&p->term, line);
    p->shown = true;
}

static void log_on_restart(void *context, const struct fetch_job *job, const char *why)
{
    struct fetch_settings *s = context;
    progress_clear(&s->progress);
    fetch_log_restart(&s->log, job, why);
}

static void log_on_event(void *context, const struct fetch_event *event)
{
    struct fetch_settings *s = context;
    progress_clear(&s->progress);
    fleet_report_messages(s);
    fetch_log_event(&s->log, event);
}

/* ---- preparation ---- */

static void settings_init(void *settings)
{
    struct fetch_settings *s = settings;
    s->request.upload_fd = -1;
    s->request.redirects = FETCH_REDIRECTS;
    s->request.user_agent = "bide/" BIDE_VERSION;
    s->parallel = FETCH_PARALLEL;
    s->outputs.path = s->output;
}

/* Returns false if the user named a policy: by an option, by a variable, or by a section that applies. A section may
 * have the name of the preset. */
static bool has_default_policy(const struct fetch_settings *s)
{
    const char *named = getenv("BIDE_POLICY");
    return s->policy.name == NULL && (named == NULL || named[0] == '\0') && s->resolved.file[0] == '\0';
}

/* The URLs of a batch can wait for each other's breaker, unless an option or a policy of the user decides. */
static bool waits_for_gates_by_default(const struct fetch_settings *s)
{
    return fetch_inputs.plan.count > 1 && has_default_policy(s) && !cli_policy_sets(&s->policy, "when_refused");
}

/* Several URLs share one budget and one breaker, and wait for them. With the attempts and the refill of a single call,
 * many would give up in an outage of seconds: an early one has used its four attempts, a late one waits in vain for one
 * retry per minute. Ten attempts and one retry per second are no load for a server; waits_max limits the time. */
#define BATCH_ATTEMPTS     10u
#define BATCH_REFILL_MILLI (60 * 1000u)

/* A call waits for a gate only if attempt_min is left before its deadline, by default the connect timeout of 3 s: with
 * a deadline of 3 s none would wait. A tenth of the deadline is kept for the attempt. */
#define BATCH_WAIT_SHARE 10

static void batch_adapt(const struct fetch_settings *s, struct conf_policy *policy)
{
    struct bide_policy *p = &policy->pair.policy;
    p->when_refused = BIDE_WHEN_REFUSED_WAIT;
    bool has_deadline = p->call_timeout_ns != BIDE_NEVER;
    if (has_deadline && p->call_timeout_ns / BATCH_WAIT_SHARE < p->connect_timeout_ns &&
        !cli_policy_sets(&s->policy, "attempt_min"))
        p->attempt_min_ns = p->call_timeout_ns / BATCH_WAIT_SHARE;
    if (!cli_policy_sets(&s->policy, "attempts"))
        policy->pair.policy.attempts_max = BATCH_ATTEMPTS;
    if (!cli_policy_sets(&s->policy, "budget.refill_per_minute"))
        policy->pair.target.budget.refill_per_minute_milli = BATCH_REFILL_MILLI;
}

static bool policy_resolve(struct fetch_settings *s)
{
    struct conf_policy *policy = &s->resolved;
    if (!cli_policy_resolve(&cli_fetch, &s->policy, BIDE_PRESET_TRANSFER, policy))
        return false;
    if (s->retry_on) {
        policy->status = (struct conf_rules){.only = true};
        conf_rules_read(&policy->status, (struct conf_span)FETCH_STATUSES, BIDE_KIND_TRANSIENT, s->retry_on);
    }
    if (waits_for_gates_by_default(s))
        batch_adapt(s, policy);
    if (s->request.include || s->request.continues)
        policy->pair.policy.hedges_max = 0; /* the header fields of two responses could not be told apart */
    s->request.policy = &policy->pair.policy;
    s->request.gates = &policy->pair.target;
    s->request.status_rules = conf_rules_for_engine(&policy->status, &s->rules);
    s->request.target = s->policy.target;
    s->request.seed = s->policy.has_seed ? s->policy.seed : 0;
    return true;
}

static void outer_bide_apply(struct fetch_settings *s)
{
    struct cli_outer outer = cli_outer_read(bide_now());
    s->request.inbound = (struct bide_layer){.attempt = outer.attempt, .left_ns = BIDE_NEVER};
    s->request.deadline_ns = outer.deadline_ns;
    for (size_t i = 0; i < CLI_OUTER_COUNT; i++)
        if (outer.ignored[i][0] != '\0')
            fetch_log_error(&s->log, outer.ignored[i]);
}

/* A download can be continued if it is the whole response to a GET, in a file. */
static const char *continue_conflict(const struct fetch_request *r)
{
    if (r->upload_fd >= 0 || (fetch_inputs.data.at && !r->data_in_query) ||
        (r->method && strcmp(r->method, "GET") != 0))
        return "-C: must be used with a GET (not with -T, -d or another -X)";
    if (r->range)
        return "-C and -r cannot be combined (-C determines the range)";
    if (r->include) /* also -I */
        return "-C cannot be combined with -i or -I (the file would begin with header fields)";
    if (r->fail_with_body)
        return "-C and --fail-with-body cannot be combined (an error page would replace the incomplete file)";
    if (fetch_has_header(fetch_inputs.headers, "Range") || fetch_has_header(fetch_inputs.headers, "If-Range"))
        return "-C and -H 'Range: ...' cannot be combined (-C determines the range)";
    return NULL;
}

static const char *options_conflict(const struct fetch_settings *s)
{
    const struct fetch_request *r = &s->request;
    bool many = fetch_inputs.plan.count > 1;
    if (r->upload_fd >= 0 && fetch_inputs.data.at)
        return "-T and -d cannot be combined";
    if (r->head && (r->upload_fd >= 0 || (fetch_inputs.data.at && !r->data_in_query)))
        return "-I cannot be combined with a body (-G puts -d into the query)";
    if (r->data_in_query && !fetch_inputs.data.at)
        return "-G requires -d";
    if (many && fetch_upload_is_one_shot(r))
        return "-T: must be a file for several URLs (a pipe can be read only once)";
    if (r->idempotency_key && bide_key_check(r->idempotency_key, BIDE_KEY_QUOTED, NULL) != BIDE_OK)
        return "--idempotency-key: must be auto, or a key of 1 to 255 printable characters";
    if (many && r->idempotency_key)
        return "--idempotency-key: must be auto for several URLs (a key belongs to one request)";
    if (r->keyed && fetch_has_header(fetch_inputs.headers, BIDE_KEY_HEADER))
        return "--idempotency-key and -H '" BIDE_KEY_HEADER ": ...' cannot be combined";
    if (r->data_in_query && strlen(fetch_inputs.data.at) != fetch_inputs.data.length)
        return "-d: must be text without NUL, to be put into the query (-G)";
    return r->continues ? continue_conflict(r) : NULL;
}

/* Puts the values of -d into the body, or into the query of every URL. Returns NULL, or an error text. */
static const char *data_apply(struct fetch_settings *s)
{
    struct fetch_request *r = &s->request;
    for (size_t i = 0; r->data_in_query && i < fetch_inputs.plan.count; i++) {
        struct fetch_job *job = &fetch_inputs.plan.jobs[i];
        char *url = fetch_url_with_query(job->url, fetch_inputs.data.at);
        if (!url)
            return "-d: must be text that is valid in a URL, to be put into the query (-G)";
        fetch_secret_free(job->url);
        job->url = url;
    }
    if (fetch_inputs.cookies && fetch_option_header("Cookie", fetch_inputs.cookies) != NULL)
        return "-b: must be NAME=VALUE without control bytes, at most 8184 bytes together";
    r->data = (struct bide_text){fetch_inputs.data.at, fetch_inputs.data.length};
    bool typed = fetch_inputs.data.at || fetch_has_header(fetch_inputs.headers, "Content-Type");
    if (!typed &&
        fetch_header_add(&fetch_inputs.headers, (char[]){"Content-Type:"}) != NULL) /* an empty body has no type */
        return "out of memory";
    r->headers = fetch_inputs.headers;
    r->resolve = fetch_inputs.resolve;
    return NULL;
}

/* A binary response may change the settings of a terminal: -o - asks for that. */
static bool terminal_is_guarded(const struct fetch_settings *s)
{
    for (size_t i = 0; i < s->outputs.count; i++)
        if (strcmp(s->output[i], "-") == 0)
            return false;
    return isatty(STDOUT_FILENO);
}

static bool user_ask_password(struct fetch_settings *s)
{
    char *password, *whole = NULL;
    if (fetch_inputs.user && !strchr(fetch_inputs.user, ':')) {
        password = fetch_secret_prompt("Password: ");
        if (!password || asprintf(&whole, "%s:%s", fetch_inputs.user, password) < 0)
            whole = NULL;
        fetch_secret_free(password);
        fetch_secret_free(fetch_inputs.user);
        fetch_inputs.user = whole;
        if (!whole)
            return false;
    }
    s->request.user = fetch_inputs.user;
    return true;
}

/* Adds the URLs among the operands, and overwrites their secrets in argv. */
static const char *urls_take(char **operands, const char **wrong)
{
    const char *want = NULL;
    for (; *operands && !want; operands++) {
        want = fetch_plan_add(&fetch_inputs.plan, *operands);
        fetch_url_mask(*operands);
        *wrong = *operands;
    }
    return want;
}

/* Validates all options and resolves the policy. Returns false after printing an error. */
static bool batch_prepare(struct fetch_settings *s, char **operands)
{
    const char *wrong = "", *want = urls_take(operands, &wrong);
    if (want)
        return cli_fail(&cli_fetch, "%s: must be %s", wrong, want), false;
    if (fetch_inputs.plan.count == 0 && s->urls_file)
        return cli_fail(&cli_fetch, "--urls %s: must have at least one URL", s->urls_file), false;
    if (fetch_inputs.plan.count == 0)
        return cli_fail(&cli_fetch, "missing URL, such as https://host/path"), false;
    if ((want = options_conflict(s)) != NULL)
        return cli_fail(&cli_fetch, "%s", want), false;
    struct fetch_plan_problem problem;
    s->outputs.continues = s->request.continues;
    if (!fetch_plan_assign_outputs(&fetch_inputs.plan, &s->outputs, &problem)) {
        bool has_value = problem.option != NULL;
        cli_fail(&cli_fetch, "%s%s%s%s%s", has_value ? problem.option : "", has_value ? " " : "",
                 has_value ? problem.value : "", has_value ? ": " : "", problem.text);
        return false;
    }
    struct cli_shared_context sharing = {&cli_fetch, &s->shared, &s->policy, s->quiet};
    struct cli_fleet_context fleeting = {&cli_fetch, &s->fleet, &s->policy};
    if (!cli_fleet_ensure_linked(&fleeting) || !cli_otlp_ensure_linked(&cli_fetch, &s->otlp) || !policy_resolve(s) ||
        !cli_shared_open(&sharing, &s->resolved, &s->shared_target) ||
        !cli_fleet_apply_gates(&fleeting, &s->resolved, &s->shared_target))
        return false;
    s->request.shared = s->shared_target.target;
    s->request.traced = s->otlp.on;
    if ((want = data_apply(s)) != NULL)
        return cli_fail(&cli_fetch, "%s", want), false;
    if (!user_ask_password(s))
        return cli_fail(&cli_fetch,
                        "-u: must be USER:PASSWORD or @FILE (there is no terminal to ask for the password)"),
               false;
    s->request.guards_terminal = terminal_is_guarded(s);
    bool one_shot = fetch_upload_is_one_shot(&s->request);
    s->request.stall_ns = s->stall_ns > 0 ? s->stall_ns : one_shot ? BIDE_NEVER : BIDE_CURL_STALL_NS;
    return true;
}

/* Creates the target if it is not shared on this host, and leases its tokens from the fleet. */
static bool fleet_open(struct fetch_settings *s)
{
    struct cli_fleet_context fleeting = {&cli_fetch, &s->fleet, &s->policy};
    struct bide_problem problem;
    if (s->fleet.url == NULL)
        return true;
    if (s->shared_target.target == NULL) {
        if (bide_target_init(&fleet_target, &s->resolved.pair.target, bide_now(), &problem) != BIDE_OK)
            return cli_fail(&cli_fetch, "%s", problem.text), false;
        s->request.shared = &fleet_target;
    }
    return cli_fleet_open(&fleeting, s->request.shared);
}

static struct fetch_listener listener_make(struct fetch_settings *s)
{
    struct fetch_listener l = {
        .on_event = log_on_event, .on_restart = log_on_restart, .tick_ns = TICK_NS, .context = s};
    bool body_on_terminal = isatty(STDOUT_FILENO) && fetch_plan_uses_stdout(&fetch_inputs.plan);
    s->log.out = stderr;
    s->log.attempts_max = s->resolved.pair.policy.attempts_max;
    s->log.several_urls = fetch_inputs.plan.count > 1;
    s->log.silent = s->quiet;
    s->log.target = s->request.target;
    s->progress.term = cli_term_detect(stderr);
    if (s->progress.term.live && !s->quiet && !s->log.json && !body_on_terminal)
        l.on_tick = progress_on_tick;
    return l;
}

static int batch_run(struct fetch_settings *s)
{
    struct bide_problem problem;
    struct fetch_batch batch = {.request = &s->request,
                                .jobs = fetch_inputs.plan.jobs,
                                .count = fetch_inputs.plan.count,
                                .parallel = s->parallel,
                                .listener = listener_make(s)};
    outer_bide_apply(s);
    fetch_install_signals();
    int status = fetch_batch_run(&batch, &problem);
    progress_clear(&s->progress);
    cli_fleet_close(&s->fleet);
    fleet_report_messages(s);
    if (status < 0)
        return cli_fail(&cli_fetch, "%s", problem.text);
    if (s->summary)
        fetch_log_summary(&s->log, fetch_inputs.plan.jobs, fetch_inputs.plan.count);
    if (fetch_signal != 0 && !s->quiet && !s->log.json)
        fprintf(stderr, "bide: ended by SIG%s\n", sigabbrev_np((int)fetch_signal));
    if (status == 0 && s->log.error != 0 && s->log.error != EPIPE)
        status = CLI_EXIT_BIDE_FAILED; /* events are missing, and nothing but the status can say so */
    return status;
}

static int fetch_main(void *settings, char **operands)
{
    struct fetch_settings *s = settings;
    int status = CLI_EXIT_BIDE_FAILED;
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return cli_fail(&cli_fetch, "cannot initialize libcurl");
    if (batch_prepare(s, operands) && fleet_open(s) && cli_otlp_start(&cli_fetch, &s->otlp)) {
        status = batch_run(s);
        cli_otlp_stop(&cli_fetch, &s->otlp, s->quiet);
    }
    cli_fleet_free(&s->fleet);
    bide_shared_close(&s->shared_target);
    fetch_inputs_free();
    curl_global_cleanup();
    return status;
}

const struct cli_command cli_fetch = {
    .name = "fetch",
    .summary = CLI_FETCH_SUMMARY,
    .synopsis = "[options] URL...",
    .about =
        "Makes HTTP requests like curl, and repeats them where that can help and is safe: with jitter, not earlier "
        "than the server asks, resuming an incomplete download. No byte of an attempt that was retried reaches "
        "standard output or the file. A final failure exits non-zero.",
    .groups = fetch_groups,
    .group_count = FETCH_GROUP_COUNT,
    .advice = fetch_advice,
    .advice_count = FETCH_ADVICE_COUNT,
    .sections = fetch_sections,
    .section_count = FETCH_SECTION_COUNT,
    .settings_size = sizeof(struct fetch_settings),
    .init = settings_init,
    .run = fetch_main,
};
