/* print_json.c - prints a report as JSON.
 *
 * Times are nanoseconds, in members that end in _ns; null means never or no limit. If an object cannot be allocated,
 * the whole tree is NULL: json_pack propagates that, and print_tree returns false. An element that a "_new" setter of
 * jansson cannot add is left out. */
#include "report.h"

#include <jansson.h>
#include <stdlib.h>

/* ---- values ---- */

static json_t *time_or_null(int64_t ns)
{
    return ns == BIDE_NEVER ? json_null() : json_integer(ns);
}

static json_t *window_of(struct bide_range r)
{
    return json_pack("{s:o, s:o}", "lo_ns", time_or_null(r.lo_ns), "hi_ns", time_or_null(r.hi_ns));
}

/* Not every JSON reader accepts integers above 2^63. */
static json_t *count_of(uint64_t n)
{
    return n <= INT64_MAX ? json_integer((json_int_t)n) : json_real((double)n);
}

static json_t *fields_of(const struct conf_pair *pair)
{
    json_t *fields = json_object();
    const struct conf_field *field;
    char text[256];
    for (size_t i = 0; (field = conf_field(i)) != NULL; i++)
        json_object_set_new(fields, field->key, json_string(conf_field_format(text, field, pair)));
    return fields;
}

/* Prints and frees the tree. Returns false if it could not be built; write errors remain in the stream. */
static bool print_tree(FILE *out, json_t *tree)
{
    char *text = tree != NULL ? json_dumps(tree, JSON_INDENT(2) | JSON_REAL_PRECISION(6)) : NULL;
    json_decref(tree);
    if (text != NULL)
        fprintf(out, "%s\n", text);
    free(text);
    return text != NULL;
}

/* ---- a policy ---- */

static json_t *policy_of(const struct conf_policy *c)
{
    json_t *policy = json_pack("{s:s, s:s}", "name", c->name, "preset", bide_preset_label(c->preset));
    if (c->line > 0) {
        json_object_set_new(policy, "file", json_string(c->file));
        json_object_set_new(policy, "line", json_integer(c->line));
    }
    json_object_set_new(policy, "fields", fields_of(&c->pair));
    return policy;
}

static json_t *waits_of(const struct explain_schedule *s)
{
    json_t *waits = json_array();
    for (uint32_t i = 0; i < s->waits; i++) {
        const struct explain_wait *w = &s->wait[i];
        json_array_append_new(waits, json_pack("{s:i, s:o, s:I, s:o, s:o}", "attempt", (int)w->attempt, "window",
                                               window_of(w->window), "mean_ns", (json_int_t)w->mean_ns, "earliest_ns",
                                               time_or_null(w->earliest_ns), "latest_ns", time_or_null(w->latest_ns)));
    }
    return waits;
}

static json_t *slo_of(const struct explain_report *r)
{
    if (r->subject.slo_ns == 0)
        return json_null();
    struct explain_slo slo = explain_slo(&r->schedule, r->subject.slo_ns);
    return json_pack("{s:I, s:I, s:o, s:b, s:i}", "slo_ns", (json_int_t)r->subject.slo_ns, "third_ns",
                     (json_int_t)slo.third_ns, "retries_ns", time_or_null(slo.retries_ns), "fits", slo.fits,
                     "attempts_that_fit", (int)slo.attempts_that_fit);
}

static json_t *schedule_of(const struct explain_report *r)
{
    static const char *const binds[] = {"attempts", "either", "deadline"};
    const struct explain_schedule *s = &r->schedule;
    return json_pack("{s:o, s:I, s:b, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:s, s:o}", "waits", waits_of(s), "more_waits",
                     (json_int_t)s->unlisted, "sums_too_small", s->underestimates, "waits_mean_ns",
                     time_or_null(s->waits_mean_ns), "waits_worst_ns", time_or_null(s->waits_worst_ns), "worst_ns",
                     time_or_null(s->worst_ns), "worst_without_deadline_ns", time_or_null(s->worst_without_deadline_ns),
                     "mean_if_slow_ns", time_or_null(s->slow_mean_ns), "attempts_worst_case",
                     (json_int_t)s->attempts_worst_case, "attempts_best_case", (json_int_t)s->attempts_best_case,
                     "binds_first", binds[explain_binds(s)], "slo", slo_of(r));
}

static json_t *load_of(const struct explain_amplification *a)
{
    json_t *loads = json_array();
    for (size_t i = 0; i < EXPLAIN_LOADS; i++) {
        const struct explain_load *l = &a->load[i];
        json_array_append_new(loads,
                              json_pack("{s:f, s:f, s:f, s:f, s:f}", "failing", l->fail_permille / 1000.0,
                                        "attempts_alone", l->plain, "with_budget", l->budgeted, "layers_multiplied",
                                        l->layers_plain, "layers_with_policy", l->layers_budgeted));
    }
    bool known = a->retries_per_second >= 0;
    return json_pack("{s:i, s:o, s:o, s:o, s:o, s:o}", "layers", (int)a->layers, "multiplied", count_of(a->multiplied),
                     "by_layer_rule", count_of(a->by_layer_rule), "burst",
                     a->burst == EXPLAIN_UNLIMITED ? json_null() : json_integer(a->burst),
                     "retries_per_second_if_all_fail", known ? json_real(a->retries_per_second) : json_null(), "load",
                     loads);
}

static const char *const safeties[] = {
    [BIDE_UNSAFE] = "unsafe", [BIDE_IDEMPOTENT] = "idempotent", [BIDE_SAFE] = "safe", [BIDE_KEYED] = "keyed"};

static json_t *verdict_json(const struct explain_prediction *a)
{
    json_t *wait = a->verdict.action == BIDE_WAIT ? window_of(a->wait) : json_null();
    return json_pack("{s:s, s:s, s:s, s:o}", "action", bide_action_label(a->verdict.action), "reason",
                     bide_reason_label(a->verdict.reason), "text", bide_reason_text(a->verdict.reason), "wait", wait);
}

static json_t *class_of(const struct explain_class *c)
{
    json_t *cells = json_array();
    for (size_t i = 0; i < EXPLAIN_COLUMNS; i++) {
        json_t *cell = verdict_json(&c->cell[i]);
        json_object_set_new(cell, "safety", json_string(safeties[explain_columns[i].safety]));
        json_object_set_new(cell, "evidence", json_string(bide_evidence_label(explain_columns[i].evidence)));
        json_array_append_new(cells, cell);
    }
    return json_pack("{s:s, s:s, s:o}", "class", c->name, "examples", c->examples, "verdicts", cells);
}

static json_t *classes_of(const struct explain_report *r)
{
    json_t *classes = json_array();
    for (size_t i = 0; i < EXPLAIN_CLASSES; i++)
        json_array_append_new(classes, class_of(&r->classes[i]));
    return classes;
}

static json_t *findings_of(const struct explain_findings *all)
{
    json_t *findings = json_array();
    for (size_t i = 0; i < all->count; i++) {
        const struct explain_finding *f = &all->finding[i];
        json_array_append_new(findings, json_pack("{s:s, s:s, s:s, s:s}", "id", f->id, "severity",
                                                  explain_severity_label(f->severity), "text", f->text, "fix", f->fix));
    }
    return findings;
}

static json_t *advice_of(const struct explain_report *r)
{
    if (!r->has_advice)
        return json_null();
    const struct explain_advice *a = &r->advice;
    json_t *path = json_array(), *remarks = json_array();
    for (size_t i = 0; i < a->branches; i++)
        json_array_append_new(
            path, json_pack("{s:s, s:s}", "question", a->branch[i].question, "answer", a->branch[i].answer));
    for (size_t i = 0; i < a->remarks; i++)
        json_array_append_new(remarks, json_string(a->remark[i].text));
    return json_pack("{s:o, s:o, s:f, s:o}", "path", path, "remarks", remarks, "herd_per_second", a->herd_per_second,
                     "fields", fields_of(&a->pair));
}

static json_t *sample_of(const struct explain_report *r)
{
    if (!r->sampled)
        return json_null();
    json_t *waits = json_array();
    for (uint32_t i = 0; i < r->samples; i++)
        json_array_append_new(waits, json_integer(r->sample_ns[i]));
    return json_pack("{s:o, s:o}", "seed", count_of(r->seed), "waits_ns", waits);
}

bool explain_json_report(FILE *out, const struct explain_report *r)
{
    return print_tree(out, json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "policy", policy_of(r->policy), "schedule",
                                     schedule_of(r), "sample", sample_of(r), "amplification",
                                     load_of(&r->amplification), "failures", classes_of(r), "findings",
                                     findings_of(&r->findings), "advice", advice_of(r)));
}

/* ---- prediction ---- */

static json_t *gates_of(const struct explain_verdict *v)
{
    static const char *const result_names[] = {"passes", "refuses", "would_refuse_too", "only_observes"};
    json_t *gates = json_array();
    for (size_t i = 0; i < EXPLAIN_GATES; i++) {
        const struct explain_gate *g = &v->gates[i];
        json_t *reason = g->result == EXPLAIN_PASSES ? json_null() : json_string(bide_reason_label(g->reason));
        json_array_append_new(gates, json_pack("{s:s, s:s, s:s, s:o}", "gate", g->name, "question", g->question,
                                               "result", result_names[g->result], "reason", reason));
    }
    return gates;
}

static json_t *hint_of(const struct bide_hint *h)
{
    return h->kind == BIDE_HINT_NONE ? json_null() : time_or_null(h->wait_ns);
}

bool explain_json_verdict(FILE *out, const struct explain_verdict *v)
{
    const struct bide_outcome *o = &v->situation.outcome;
    json_t *changes = json_array();
    for (size_t i = 0; i < v->change_count; i++)
        json_array_append_new(changes, json_string(v->changes[i].text));
    json_t *outcome = json_pack("{s:s, s:s, s:s, s:o}", "name", v->outcome_name.name, "kind", bide_kind_label(o->kind),
                                "evidence", bide_evidence_label(o->evidence), "hint_ns", hint_of(&o->hint));
    json_t *call = json_pack("{s:s, s:I, s:I, s:b}", "safety", safeties[v->situation.request.safety], "attempt",
                             (json_int_t)v->situation.attempt, "elapsed_ns", (json_int_t)v->prediction.elapsed_ns,
                             "reached", v->prediction.reached);
    return print_tree(out, json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "policy", v->policy->name, "outcome", outcome,
                                     "call", call, "verdict", verdict_json(&v->prediction), "gates", gates_of(v),
                                     "changes", changes));
}

/* ---- lists ---- */

bool explain_json_list(FILE *out, const struct conf *conf)
{
    json_t *list = json_array();
    for (size_t i = 0; i < conf->count; i++) {
        const struct conf_policy *c = &conf->policy[i];
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:i}", "name", c->name, "preset",
                                              bide_preset_label(c->preset), "file", c->file, "line", (int)c->line));
    }
    for (enum bide_preset i = 0; i < BIDE_PRESET_COUNT; i++)
        json_array_append_new(list,
                              json_pack("{s:s, s:s}", "name", bide_preset_label(i), "purpose", bide_preset_purpose(i)));
    return print_tree(out, list);
}
