/* report.h - everything `bide explain` says, gathered before any of it is shown: as text (show.c) or JSON (json.c). */
#ifndef EXPLAIN_REPORT_H
#define EXPLAIN_REPORT_H

#include <stdio.h>

#include "advise.h"
#include "amplify.h"
#include "dry_run.h"
#include "finding.h"
#include "outcome_name.h"
#include "schedule.h"

#define EXPLAIN_SAMPLE_MAX 16u

/* Of a policy. Large: not for the stack. */
struct explain_report {
    const struct conf_policy *policy;
    struct explain_subject subject;
    struct explain_schedule schedule;
    struct explain_amplification amplification;
    struct explain_class classes[EXPLAIN_CLASSES];
    struct explain_findings findings;
    bool has_advice; /* it was asked to: --clients, --min-wait */
    struct explain_advice advice;
    bool sampled; /* a seed was given */
    uint64_t seed;
    int64_t sample_ns[EXPLAIN_SAMPLE_MAX];
    uint32_t samples;
};

/* Fills the rest from policy, subject, advises, sampled and seed. */
void explain_report(struct explain_report *report);

/* Of one outcome. */
struct explain_verdict {
    const struct conf_policy *policy;
    struct explain_outcome_name outcome_name;
    struct explain_case situation;
    const char *method; /* or NULL */
    const char *hint;   /* the Retry-After as it was given, or NULL */
    bool sampled;       /* a seed was given */
    struct explain_prediction prediction;
    struct explain_gate gates[EXPLAIN_GATES];
    struct explain_change changes[EXPLAIN_CHANGES_MAX];
    size_t change_count;
};

/* Fills answer, gates and changes from situation. */
void explain_verdict(struct explain_verdict *verdict);

/* ---- showing ---- */

/* What the terminal can do. */
struct explain_screen {
    FILE *out;
    bool colour;
    bool utf8;
    unsigned width;
};

void explain_print_report(const struct explain_screen *screen, const struct explain_report *report);
void explain_print_verdict(const struct explain_screen *screen, const struct explain_verdict *verdict);

/* One JSON object and a line end. False: no memory. */
bool explain_json_report(FILE *out, const struct explain_report *report);
bool explain_json_verdict(FILE *out, const struct explain_verdict *verdict);

/* The policies of a file (or none), each with the preset it goes back to, then the presets with what they are for. */
void explain_print_list(const struct explain_screen *screen, const struct conf *conf);
bool explain_json_list(FILE *out, const struct conf *conf);

#endif
