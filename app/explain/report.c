/* report.c - computes all parts of a report. See report.h. */
#include "report.h"

void explain_report(struct explain_report *r)
{
    const struct conf_pair *pair = &r->policy->pair;
    r->subject.pair = pair;
    r->subject.policy = r->policy;
    explain_schedule(&r->schedule, &pair->policy);
    explain_amplification_compute(&r->amplification, &r->subject);
    r->class_count = explain_classes(r->classes, r->policy, r->seed);
    explain_run_checks(&r->findings, &r->subject, &r->schedule);
    if (r->has_advice)
        explain_advise(&r->advice, &r->subject);
    if (r->sampled)
        r->samples = explain_sample(&pair->policy, r->seed, r->sample_ns, EXPLAIN_SAMPLE_MAX);
}

void explain_verdict(struct explain_verdict *v)
{
    explain_dry_run(&v->prediction, &v->situation);
    explain_gates(v->gates, &v->situation);
    v->change_count = explain_changes(v->changes, &v->situation);
    if (v->outcome_name.source == EXPLAIN_EXIT && v->prediction.verdict.action == BIDE_ACTION_WAIT)
        v->change_count = 0; /* a command has no method that could change */
}
