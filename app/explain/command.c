/* command.c - `bide explain`: the option table, and the choice between its four functions.
 *
 * It reports on a policy (schedule, load, classes of failure, findings, advice), predicts the verdict for an outcome,
 * writes a policy in another format, or lists all names. Operands are a policy and an outcome in any order: a word that
 * names an outcome is one, any other word names a policy. */
#include "common/commands.h"
#include "common/policy.h"
#include "common/term.h"
#include "text/unit.h"

#include <bide/clock.h>
#include <bide/hint.h>

#include <stdlib.h>
#include <string.h>

#include "report.h"

#define EXIT_FOUND      1 /* --strict found something */
#define LAYERS_MAX      64u
#define ATTEMPT_MAX     1000 /* every earlier attempt is executed */
#define CLIENTS_MAX     INT64_C(1000000000000)
#define MIN_WAIT_MAX_NS (INT64_C(5000) * 24 * 3600 * BIDE_S) /* twice this is a valid wait */
#define RATE_MAX        INT64_C(1000000000)                  /* per second */

struct settings {
    struct cli_policy options;
    struct explain_subject subject;
    bool strict, json, list, has_report_option;
    const char *format;
    /* for an outcome */
    const char *method;
    const char *retry_after;
    const char *date;
    bool key, has_evidence, has_outcome_option;
    enum bide_evidence evidence;
    uint32_t attempt, inbound;
    int64_t elapsed_ns;
};

/* ---- option parsers ---- */

static const char *read_rate(void *settings, const char *value)
{
    int64_t per_minute_milli;
    bool valid = text_rate_parse(value, strlen(value), 1, &per_minute_milli) && per_minute_milli > 0 &&
                 per_minute_milli <= RATE_MAX * 1000 * 60;
    ((struct settings *)settings)->subject.rate_per_minute_milli = valid ? per_minute_milli : 0;
    return valid ? NULL : "requests per second or minute: 200, 0.5/s or 30/min";
}

static const char *const formats[] = {"ini", "json", "grpc", "envoy", NULL};

/* ---- option parsers for an outcome ---- */

static const char *read_method(void *settings, const char *value)
{
    ((struct settings *)settings)->method = value;
    bool valid = value[0] != '\0' && value[strspn(value, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-")] == '\0';
    return valid ? NULL : "a method in capitals, such as POST";
}

static const char *read_date(void *settings, const char *value)
{
    int64_t seconds;
    ((struct settings *)settings)->date = value;
    bool valid = bide_http_date((struct bide_text){value, strlen(value)}, bide_wall_s(), &seconds);
    return valid ? NULL : "an HTTP date such as 'Sun, 06 Nov 1994 08:49:37 GMT'";
}

/* ---- option table ---- */

static const struct cli_option own_options[] = {
    {.name = "slo",
     .value = "DURATION",
     .help = "check that retries fit into a third of this time",
     .kind = CLI_DURATION,
     CLI_AT(struct settings, subject.slo_ns),
     .min = 1,
     CLI_GIVEN(struct settings, has_report_option),
     .details = "The time that a user may wait in total. Waits and repeated attempts may take at most a third of it in "
                "the worst case; the rest is for the first attempt and the other services on the path."},
    {.name = "rate",
     .value = "RATE",
     .help = "request rate of a process to the target: 200, 0.5/s, 30/min",
     .read = read_rate,
     CLI_GIVEN(struct settings, has_report_option),
     .details = "Enables findings that depend on the rate: a budget that never binds, a breaker that never opens."},
    {.name = "shared",
     .help = "the processes of a host share the target; --rate is their total rate",
     .kind = CLI_FLAG,
     CLI_AT(struct settings, subject.shared),
     CLI_GIVEN(struct settings, has_report_option),
     .details = "As with `bide run --shared`, `bide fetch --shared` and programs that call `bide_shared_open`."},
    {.name = "layers",
     .value = "N",
     .help = "number of layers that retry, each calling the next",
     .kind = CLI_COUNT,
     CLI_AT(struct settings, subject.layers),
     .min = 1,
     .max = LAYERS_MAX,
     CLI_GIVEN(struct settings, has_report_option)},
    {.name = "clients",
     .value = "N",
     .help = "give advice for this number of clients that may fail at once",
     .kind = CLI_COUNT,
     CLI_AT(struct settings, subject.clients),
     .min = 1,
     .max = CLIENTS_MAX,
     CLI_GIVEN(struct settings, has_report_option)},
    {.name = "min-wait",
     .value = "DURATION",
     .help = "give advice for a minimum wait before a retry",
     .kind = CLI_DURATION,
     CLI_AT(struct settings, subject.min_wait_ns),
     .min = 1,
     .max = MIN_WAIT_MAX_NS,
     CLI_GIVEN(struct settings, has_report_option)},
    {.name = "strict",
     .help = "exit with 1 if there is a warning or an error, or if --format loses a setting",
     .kind = CLI_FLAG,
     CLI_AT(struct settings, strict)},
    {.name = "format",
     .value = "FORMAT",
     .help = "write the policy as ini, json, grpc or envoy instead",
     .kind = CLI_WORD,
     CLI_AT(struct settings, format),
     .choices = formats,
     .details = "Settings that the format cannot express are reported on stderr."},
    {.name = "list",
     .help = "list the policies of the file and the presets",
     .kind = CLI_FLAG,
     CLI_AT(struct settings, list)},
    {.name = "json", .help = "one JSON object instead of text", .kind = CLI_FLAG, CLI_AT(struct settings, json)},
};

static const struct cli_option outcome_options[] = {
    {.name = "method", .value = "METHOD", .help = "method of the request; default GET", .read = read_method},
    {.name = "key", .help = "the request carries an idempotency key", .kind = CLI_FLAG, CLI_AT(struct settings, key)},
    {.name = "retry-after",
     .value = "VALUE",
     .help = "the server's Retry-After: seconds, or a date",
     .kind = CLI_STRING,
     CLI_AT(struct settings, retry_after),
     .details = "Parsed like the header field of a response: a malformed value is ignored, and a number that is too "
                "large saturates.",
     .may_be_empty = true},
    {.name = "date",
     .value = "DATE",
     .help = "Date of the response, the reference for a date in --retry-after",
     .read = read_date},
    {.name = "attempt",
     .value = "N",
     .help = "number of the attempt that ended with the outcome; default 1",
     .kind = CLI_COUNT,
     CLI_AT(struct settings, attempt),
     .min = 1,
     .max = ATTEMPT_MAX},
    {.name = "elapsed",
     .value = "DURATION",
     .help = "time since the call began; default: the sum of the earlier waits",
     .kind = CLI_DURATION,
     CLI_AT(struct settings, elapsed_ns)},
    {.name = "evidence",
     .value = "WORD",
     .help = "how far the request got, if more is known than the outcome tells",
     .kind = CLI_CHOICE,
     CLI_AT(struct settings, evidence),
     CLI_GIVEN(struct settings, has_evidence),
     .choices = explain_evidence_words,
     .details = "unknown, not_sent, rejected, answered or body_delivered."},
    {.name = "inbound",
     .value = "N",
     .help = "this process serves attempt N of its own caller",
     .kind = CLI_COUNT,
     CLI_AT(struct settings, inbound),
     .min = 1},
};

static const struct cli_group groups[] = {
    {CLI_GROUP(NULL, own_options)},
    CLI_POLICY_GROUP(struct settings, options),
    {CLI_GROUP("Prediction", outcome_options), CLI_GIVEN(struct settings, has_outcome_option)},
};

static const struct cli_section sections[] = {
    {.title = "Outcomes",
     .text = "An HTTP status (`503`), `grpc UNAVAILABLE` or `grpc:14`, `exit 75` or `exit:75`, the name of an errno or "
             "resolver error (`ECONNRESET`, `EAI_AGAIN`), `timeout`, `refused`, `reset`, `unreachable`, `dns`, "
             "`nxdomain`, or a kind: `transient`, `throttled`, `conflict`, `permanent`, `cancelled`. Use --policy for "
             "a policy with such a name."},
    {.title = "Exit status",
     .text = "0; with --strict 1 if there is a finding above a note, or if --format loses a setting; 125 if a policy "
             "or an option is invalid."},
    {.title = "Examples",
     .text = "  bide explain\n"
             "  bide explain payments --slo 2s --rate 200 --strict\n"
             "  bide explain --preset interactive --clients 5000\n"
             "  bide explain 503 --retry-after 30 --method POST\n"
             "  bide explain exit 75 --attempts 3\n"
             "  bide explain payments --format grpc"},
};

static void settings_init(void *settings)
{
    struct settings *s = settings;
    s->subject.layers = 1;
    s->attempt = 1;
}

static int explain_main(void *settings, char **operands);

const struct cli_command cli_explain = {
    .name = "explain",
    .summary = CLI_EXPLAIN_SUMMARY,
    .synopsis = "[options] [POLICY|FILE#NAME] [OUTCOME]",
    .about = "Reports on a policy: the schedule of attempts, the longest duration of a call, the load on a server that "
             "is down, which failures are retried, and findings of a linter. The default policy is `service`.\n\nWith "
             "an outcome, such as `503` or `timeout`, it predicts the verdict of the engine and its reason, gate by "
             "gate, and names changes that would lead to a retry.",
    .groups = groups,
    .group_count = sizeof groups / sizeof *groups,
    .sections = sections,
    .section_count = sizeof sections / sizeof *sections,
    .completion = CLI_COMPLETE_POLICY,
    .settings_size = sizeof(struct settings),
    .init = settings_init,
    .run = explain_main,
};

/* ---- output ---- */

static int finish_output(int status)
{
    return cli_flush(&cli_explain) ? status : CLI_EXIT_BIDE_FAILED;
}

static int print_report(const struct settings *s, const struct conf_policy *policy)
{
    struct cli_term term = cli_term_detect(stdout);
    struct explain_report *report = calloc(1, sizeof *report);
    if (report == NULL)
        return cli_fail(&cli_explain, "out of memory");
    report->policy = policy;
    report->subject = s->subject;
    report->has_advice = s->subject.clients > 0 || s->subject.min_wait_ns > 0;
    report->sampled = s->options.has_seed;
    report->seed = s->options.seed;
    explain_report(report);
    if (s->json)
        explain_json_report(stdout, report);
    else
        explain_print_report(&term, report);
    bool found = s->strict && explain_has_warnings(&report->findings);
    free(report);
    return finish_output(found ? EXIT_FOUND : EXIT_SUCCESS);
}

/* A user of `bide run` asserts that the command may be repeated. */
static enum bide_safety safety_of(const struct settings *s, const struct explain_outcome_name *outcome_name)
{
    enum bide_safety safety = outcome_name->source == EXPLAIN_EXIT ? BIDE_IDEMPOTENT : BIDE_SAFE;
    if (s->method != NULL)
        safety = bide_method_safety(s->method, strlen(s->method));
    return s->key && safety != BIDE_SAFE ? BIDE_KEYED : safety;
}

static struct bide_hint hint_of(const struct settings *s)
{
    const char *value = s->retry_after, *date = s->date;
    struct bide_text asked = {value, value != NULL ? strlen(value) : 0}, at = {date, date != NULL ? strlen(date) : 0};
    return bide_hint_retry_after(asked, at, bide_wall_s());
}

static int print_prediction(const struct settings *s, const struct conf_policy *policy,
                            const struct explain_outcome_name *outcome_name)
{
    struct cli_term term = cli_term_detect(stdout);
    struct explain_verdict verdict = {
        .policy = policy, .outcome_name = *outcome_name, .method = s->method, .hint = s->retry_after};
    struct explain_case *c = &verdict.situation;
    if (s->attempt > policy->pair.policy.attempts_max)
        return cli_fail(&cli_explain, "--attempt %u: must be 1 to %u, the attempts of %s", s->attempt,
                        policy->pair.policy.attempts_max, policy->name);
    c->pair = policy->pair;
    c->request = (struct bide_request){.safety = safety_of(s, outcome_name), .seed = s->options.seed};
    c->request.inbound.attempt = s->inbound;
    c->outcome = explain_outcome_name_classify(outcome_name, policy);
    c->outcome.hint = hint_of(s);
    if (s->has_evidence)
        c->outcome.evidence = s->evidence;
    c->attempt = s->attempt;
    c->elapsed_ns = s->elapsed_ns;
    verdict.sampled = s->options.has_seed;
    explain_verdict(&verdict);
    if (s->json)
        explain_json_verdict(stdout, &verdict);
    else
        explain_print_verdict(&term, &verdict);
    return finish_output(EXIT_SUCCESS);
}

static int print_converted(const struct settings *s, const struct conf_policy *policy)
{
    char losses[CONF_ERROR_MAX] = "";
    enum conf_format format = CONF_INI;
    while (strcmp(formats[format], s->format) != 0)
        format++;
    char *text = conf_write(policy, format, losses);
    if (text == NULL)
        return cli_fail(&cli_explain, "out of memory");
    fputs(text, stdout);
    free(text);
    cli_report_lines(&cli_explain, losses);
    return finish_output(s->strict && losses[0] != '\0' ? EXIT_FOUND : EXIT_SUCCESS);
}

static int print_policies(const struct settings *s)
{
    struct cli_term term = cli_term_detect(stdout);
    char errors[CONF_ERROR_MAX], path[CONF_PATH_MAX];
    const char *file = s->options.config != NULL ? s->options.config : getenv("BIDE_CONFIG");
    struct conf conf = {0};
    if (file == NULL || file[0] == '\0')
        file = conf_default_path(path) ? path : NULL;
    if (file != NULL && !conf_read(&conf, file, errors)) {
        cli_report_lines(&cli_explain, errors);
        return CLI_EXIT_BIDE_FAILED;
    }
    if (s->json)
        explain_json_list(stdout, &conf);
    else
        explain_print_list(&term, &conf);
    conf_free(&conf);
    return finish_output(EXIT_SUCCESS);
}

/* ---- operands ---- */

struct operands {
    const char *policy;
    bool has_outcome;
    struct explain_outcome_name outcome_name;
};

/* Sorts the operands into policy and outcome. Returns NULL, or the unexpected word, with the valid form in `want`. */
static const char *parse_operands(struct operands *sorted, char **words, const char **want)
{
    while (*words != NULL) {
        struct explain_outcome_name outcome_name;
        size_t used = explain_outcome_name_parse(&outcome_name, words, want);
        if (*want != NULL)
            return *words;
        bool second = used > 0 ? sorted->has_outcome : sorted->policy != NULL;
        *want = "one policy and one outcome at most";
        if (second)
            return *words;
        if (used > 0)
            sorted->outcome_name = outcome_name;
        else
            sorted->policy = *words;
        sorted->has_outcome |= used > 0;
        words += used > 0 ? used : 1;
    }
    *want = NULL;
    return NULL;
}

/* Returns a message about options that exclude each other, or NULL. */
static const char *find_conflict(const struct settings *s, const struct operands *o)
{
    if (s->format != NULL && s->json)
        return "--json excludes --format: use --format json";
    if (s->has_outcome_option && !o->has_outcome)
        return "--method, --key, --retry-after, --date, --attempt, --elapsed, --evidence and --inbound need an "
               "outcome, "
               "such as 503";
    if (o->has_outcome && (s->format != NULL || s->list))
        return "an outcome excludes --format and --list";
    if (s->has_report_option && (o->has_outcome || s->format != NULL || s->list))
        return "--slo, --rate, --shared, --layers, --clients and --min-wait exclude an outcome, --format and --list";
    if (s->strict && (o->has_outcome || s->list))
        return "--strict excludes an outcome and --list";
    if (o->policy != NULL && s->list)
        return "--list takes no policy: use --config FILE --list for another file";
    if (o->policy != NULL && s->options.name != NULL)
        return "the policy is named twice: use --policy NAME, --preset NAME or the bare name";
    return NULL;
}

static int explain_main(void *settings, char **words)
{
    struct settings *s = settings;
    struct operands sorted = {0};
    struct conf_policy policy;
    const char *want, *unexpected = parse_operands(&sorted, words, &want);
    if (unexpected != NULL)
        return cli_fail(&cli_explain, "%s: must be %s", unexpected, want);
    if ((want = find_conflict(s, &sorted)) != NULL)
        return cli_fail(&cli_explain, "%s", want);
    if (s->list)
        return print_policies(s);
    if (sorted.policy != NULL)
        s->options.name = sorted.policy;
    bool command = sorted.has_outcome && sorted.outcome_name.source == EXPLAIN_EXIT;
    if (!cli_policy_resolve(&cli_explain, &s->options, command ? BIDE_PRESET_COMMAND : BIDE_PRESET_SERVICE, &policy)) {
        bool unknown = sorted.policy != NULL && policy.name[0] == '\0';
        if (unknown && strchr(sorted.policy, '#') == NULL) /* FILE#NAME can only mean a policy */
            cli_report(&cli_explain,
                       "an outcome is a status such as 503, exit 75, grpc UNAVAILABLE, ECONNRESET, timeout");
        return CLI_EXIT_BIDE_FAILED;
    }
    if (s->format != NULL)
        return print_converted(s, &policy);
    return sorted.has_outcome ? print_prediction(s, &policy, &sorted.outcome_name) : print_report(s, &policy);
}
