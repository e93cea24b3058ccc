/* print_json.c - prints a report as JSON.
 *
 * Times are nanoseconds, in members that end in _ns; null means never or no limit. Nothing is allocated, so the text
 * is complete unless the stream fails. */
#include "report.h"

#include "text/json_write.h"

#include <math.h>

#define DIGITS 6 /* significant digits of a computed number */

/* ---- values ---- */

static void json_time(struct text_json *json, const char *name, int64_t ns)
{
    if (ns == BIDE_NEVER)
        text_json_null(json, name);
    else
        text_json_integer(json, name, ns);
}

static void json_range(struct text_json *json, const char *name, struct bide_range range)
{
    text_json_object(json, name);
    json_time(json, "lo_ns", range.lo_ns);
    json_time(json, "hi_ns", range.hi_ns);
    text_json_end(json);
}

/* Not every JSON reader accepts integers above 2^63. */
static void json_count(struct text_json *json, const char *name, uint64_t count)
{
    if (count <= INT64_MAX)
        text_json_unsigned(json, name, count);
    else
        text_json_real(json, name, (double)count, DIGITS);
}

static void json_fields(struct text_json *json, const struct conf_pair *pair)
{
    const struct conf_field *field;
    char text[256];
    text_json_object(json, "fields");
    for (size_t i = 0; (field = conf_field(i)) != NULL; i++)
        text_json_string(json, field->key, conf_field_format(text, field, pair));
    text_json_end(json);
}

/* ---- a policy ---- */

static void json_policy(struct text_json *json, const struct conf_policy *policy)
{
    text_json_object(json, "policy");
    text_json_string(json, "name", policy->name);
    text_json_string(json, "preset", bide_preset_label(policy->preset));
    if (policy->line > 0) {
        text_json_string(json, "file", policy->file);
        text_json_unsigned(json, "line", policy->line);
    }
    json_fields(json, &policy->pair);
    text_json_end(json);
}

static void json_waits(struct text_json *json, const struct explain_schedule *schedule)
{
    text_json_array(json, "waits");
    for (uint32_t i = 0; i < schedule->waits; i++) {
        const struct explain_wait *wait = &schedule->wait[i];
        text_json_object(json, NULL);
        text_json_unsigned(json, "attempt", wait->attempt);
        json_range(json, "window", wait->window);
        text_json_integer(json, "mean_ns", wait->mean_ns);
        json_time(json, "earliest_ns", wait->earliest_ns);
        json_time(json, "latest_ns", wait->latest_ns);
        text_json_end(json);
    }
    text_json_end(json);
}

static void json_slo(struct text_json *json, const struct explain_report *report)
{
    if (report->subject.slo_ns == 0) {
        text_json_null(json, "slo");
        return;
    }
    struct explain_slo slo = explain_slo(&report->schedule, report->subject.slo_ns);
    text_json_object(json, "slo");
    text_json_integer(json, "slo_ns", report->subject.slo_ns);
    text_json_integer(json, "third_ns", slo.third_ns);
    json_time(json, "retries_ns", slo.retries_ns);
    text_json_bool(json, "fits", slo.fits);
    text_json_unsigned(json, "attempts_that_fit", slo.attempts_that_fit);
    text_json_end(json);
}

static void json_schedule(struct text_json *json, const struct explain_report *report)
{
    static const char *const binds[] = {"attempts", "either", "deadline"};
    const struct explain_schedule *s = &report->schedule;
    text_json_object(json, "schedule");
    json_waits(json, s);
    text_json_unsigned(json, "more_waits", s->unlisted);
    text_json_bool(json, "sums_too_small", s->underestimates);
    json_time(json, "waits_mean_ns", s->waits_mean_ns);
    json_time(json, "waits_worst_ns", s->waits_worst_ns);
    json_time(json, "worst_ns", s->worst_ns);
    json_time(json, "worst_without_deadline_ns", s->worst_without_deadline_ns);
    json_time(json, "mean_if_slow_ns", s->slow_mean_ns);
    text_json_unsigned(json, "attempts_worst_case", s->attempts_worst_case);
    text_json_unsigned(json, "attempts_best_case", s->attempts_best_case);
    text_json_string(json, "binds_first", binds[explain_binds(s)]);
    json_slo(json, report);
    text_json_end(json);
}

static void json_sample(struct text_json *json, const struct explain_report *report)
{
    if (!report->sampled) {
        text_json_null(json, "sample");
        return;
    }
    text_json_object(json, "sample");
    json_count(json, "seed", report->seed);
    text_json_array(json, "waits_ns");
    for (uint32_t i = 0; i < report->samples; i++)
        text_json_integer(json, NULL, report->sample_ns[i]);
    text_json_end(json);
    text_json_end(json);
}

static void json_load(struct text_json *json, const struct explain_load *load)
{
    text_json_object(json, NULL);
    text_json_real(json, "failing", load->fail_permille / 1000.0, DIGITS);
    text_json_real(json, "attempts_alone", load->plain, DIGITS);
    text_json_real(json, "with_hedges", load->hedged, DIGITS);
    text_json_real(json, "with_budget", load->budgeted, DIGITS);
    text_json_real(json, "layers_multiplied", load->layers_plain, DIGITS);
    text_json_real(json, "layers_with_policy", load->layers_budgeted, DIGITS);
    text_json_end(json);
}

static void json_amplification(struct text_json *json, const struct explain_amplification *a)
{
    text_json_object(json, "amplification");
    text_json_unsigned(json, "layers", a->layers);
    json_count(json, "multiplied", a->multiplied);
    json_count(json, "by_layer_rule", a->by_layer_rule);
    if (a->burst == EXPLAIN_UNLIMITED)
        text_json_null(json, "burst");
    else
        text_json_integer(json, "burst", a->burst);
    text_json_real(json, "retries_per_second_if_all_fail", a->retries_per_second >= 0 ? a->retries_per_second : NAN,
                   DIGITS);
    text_json_array(json, "load");
    for (size_t i = 0; i < EXPLAIN_LOADS; i++)
        json_load(json, &a->load[i]);
    text_json_end(json);
    text_json_end(json);
}

/* ---- verdicts ---- */

static const char *const safeties[] = {
    [BIDE_UNSAFE] = "unsafe", [BIDE_IDEMPOTENT] = "idempotent", [BIDE_SAFE] = "safe", [BIDE_KEYED] = "keyed"};

static void json_prediction(struct text_json *json, const struct explain_prediction *prediction)
{
    const struct bide_verdict *verdict = &prediction->verdict;
    text_json_string(json, "action", bide_action_label(verdict->action));
    text_json_string(json, "reason", bide_reason_label(verdict->reason));
    text_json_string(json, "text", bide_reason_text(verdict->reason));
    if (verdict->action == BIDE_ACTION_WAIT)
        json_range(json, "wait", prediction->wait);
    else
        text_json_null(json, "wait");
}

static void json_class(struct text_json *json, const struct explain_class *failure)
{
    text_json_object(json, NULL);
    text_json_string(json, "class", failure->name);
    text_json_string(json, "examples", failure->examples);
    text_json_array(json, "verdicts");
    for (size_t i = 0; i < EXPLAIN_COLUMNS; i++) {
        text_json_object(json, NULL);
        json_prediction(json, &failure->cell[i]);
        text_json_string(json, "safety", safeties[explain_columns[i].safety]);
        text_json_string(json, "evidence", bide_evidence_label(explain_columns[i].evidence));
        text_json_end(json);
    }
    text_json_end(json);
    text_json_end(json);
}

/* What each list of the policy retries, as ranges. */
static void json_lists(struct text_json *json, const struct conf_policy *policy)
{
    static const char *const names[EXPLAIN_LISTS] = {"status", "exit", "grpc"};
    struct explain_list_summary summary;
    text_json_object(json, "retried_by_list");
    for (size_t i = 0; i < EXPLAIN_LISTS; i++)
        if (explain_list_summary(&summary, policy, i))
            text_json_string(json, names[i], summary.retried);
        else
            text_json_null(json, names[i]);
    text_json_end(json);
}

static void json_findings(struct text_json *json, const struct explain_findings *findings)
{
    text_json_array(json, "findings");
    for (size_t i = 0; i < findings->count; i++) {
        const struct explain_finding *finding = &findings->finding[i];
        text_json_object(json, NULL);
        text_json_string(json, "id", finding->id);
        text_json_string(json, "severity", explain_severity_label(finding->severity));
        text_json_string(json, "text", finding->text);
        text_json_string(json, "fix", finding->fix);
        text_json_end(json);
    }
    text_json_end(json);
}

static void json_advice(struct text_json *json, const struct explain_advice *advice)
{
    text_json_object(json, "advice");
    text_json_array(json, "path");
    for (size_t i = 0; i < advice->branches; i++) {
        text_json_object(json, NULL);
        text_json_string(json, "question", advice->branch[i].question);
        text_json_string(json, "answer", advice->branch[i].answer);
        text_json_end(json);
    }
    text_json_end(json);
    text_json_array(json, "remarks");
    for (size_t i = 0; i < advice->remarks; i++)
        text_json_string(json, NULL, advice->remark[i].text);
    text_json_end(json);
    text_json_real(json, "herd_per_second", advice->herd_per_second, DIGITS);
    json_fields(json, &advice->pair);
    text_json_end(json);
}

void explain_json_report(FILE *out, const struct explain_report *report)
{
    struct text_json json = text_json_to_stream(out, TEXT_JSON_INDENTED);
    text_json_object(&json, NULL);
    json_policy(&json, report->policy);
    json_schedule(&json, report);
    json_sample(&json, report);
    json_amplification(&json, &report->amplification);
    text_json_array(&json, "failures");
    for (size_t i = 0; i < report->class_count; i++)
        json_class(&json, &report->classes[i]);
    text_json_end(&json);
    json_lists(&json, report->policy);
    json_findings(&json, &report->findings);
    if (report->has_advice)
        json_advice(&json, &report->advice);
    else
        text_json_null(&json, "advice");
    text_json_end(&json);
    text_json_finish(&json);
}

/* ---- prediction ---- */

static void json_outcome(struct text_json *json, const struct explain_verdict *verdict)
{
    const struct bide_outcome *outcome = &verdict->situation.outcome;
    text_json_object(json, "outcome");
    text_json_string(json, "name", verdict->outcome_name.name);
    text_json_string(json, "kind", bide_kind_label(outcome->kind));
    text_json_string(json, "evidence", bide_evidence_label(outcome->evidence));
    json_time(json, "hint_ns", outcome->hint.kind == BIDE_HINT_NONE ? BIDE_NEVER : outcome->hint.wait_ns);
    text_json_end(json);
}

static void json_call(struct text_json *json, const struct explain_verdict *verdict)
{
    text_json_object(json, "call");
    text_json_string(json, "safety", safeties[verdict->situation.request.safety]);
    text_json_unsigned(json, "attempt", verdict->situation.attempt);
    text_json_integer(json, "elapsed_ns", verdict->prediction.elapsed_ns);
    text_json_bool(json, "reached", verdict->prediction.reached);
    text_json_end(json);
}

static void json_gates(struct text_json *json, const struct explain_verdict *verdict)
{
    static const char *const result_names[] = {"passes", "refuses", "would_refuse_too", "only_observes"};
    text_json_array(json, "gates");
    for (size_t i = 0; i < EXPLAIN_GATES; i++) {
        const struct explain_gate *gate = &verdict->gates[i];
        text_json_object(json, NULL);
        text_json_string(json, "gate", gate->name);
        text_json_string(json, "question", gate->question);
        text_json_string(json, "result", result_names[gate->result]);
        text_json_string(json, "reason", gate->result == EXPLAIN_PASSES ? NULL : bide_reason_label(gate->reason));
        text_json_end(json);
    }
    text_json_end(json);
}

void explain_json_verdict(FILE *out, const struct explain_verdict *verdict)
{
    struct text_json json = text_json_to_stream(out, TEXT_JSON_INDENTED);
    text_json_object(&json, NULL);
    text_json_string(&json, "policy", verdict->policy->name);
    json_outcome(&json, verdict);
    json_call(&json, verdict);
    text_json_object(&json, "verdict");
    json_prediction(&json, &verdict->prediction);
    text_json_end(&json);
    json_gates(&json, verdict);
    text_json_array(&json, "changes");
    for (size_t i = 0; i < verdict->change_count; i++)
        text_json_string(&json, NULL, verdict->changes[i].text);
    text_json_end(&json);
    text_json_end(&json);
    text_json_finish(&json);
}

/* ---- lists ---- */

static void json_list_policy(struct text_json *json, const struct conf_policy *policy)
{
    text_json_object(json, NULL);
    text_json_string(json, "name", policy->name);
    text_json_string(json, "preset", bide_preset_label(policy->preset));
    text_json_string(json, "file", policy->file);
    text_json_unsigned(json, "line", policy->line);
    text_json_end(json);
}

static void json_list_preset(struct text_json *json, enum bide_preset preset)
{
    text_json_object(json, NULL);
    text_json_string(json, "name", bide_preset_label(preset));
    text_json_string(json, "purpose", bide_preset_purpose(preset));
    text_json_end(json);
}

void explain_json_list(FILE *out, const struct conf *conf)
{
    struct text_json json = text_json_to_stream(out, TEXT_JSON_INDENTED);
    text_json_array(&json, NULL);
    for (size_t i = 0; i < conf->count; i++)
        json_list_policy(&json, &conf->policy[i]);
    for (enum bide_preset i = 0; i < BIDE_PRESET_COUNT; i++)
        json_list_preset(&json, i);
    text_json_end(&json);
    text_json_finish(&json);
}
