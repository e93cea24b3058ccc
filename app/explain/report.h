/* report.h - the complete result of `bide explain`, computed before print_text.c or print_json.c prints it. */
#ifndef EXPLAIN_REPORT_H
#define EXPLAIN_REPORT_H

#include <stdio.h>

#include "advise.h"
#include "amplify.h"
#include "common/term.h"
#include "dry_run.h"
#include "finding.h"
#include "outcome_name.h"
#include "schedule.h"

#define EXPLAIN_SAMPLE_MAX 16u

/* The report on a policy. Too large for the stack. */
struct explain_report {
    const struct conf_policy *policy;
    struct explain_subject subject;
    struct explain_schedule schedule;
    struct explain_amplification amplification;
    struct explain_class classes[EXPLAIN_ROWS_MAX];
    size_t class_count;
    struct explain_findings findings;
    bool has_advice; /* requested by --clients or --min-wait */
    struct explain_advice advice;
    bool sampled; /* a seed was given */
    uint64_t seed;
    int64_t sample_ns[EXPLAIN_SAMPLE_MAX];
    uint32_t samples;
};

/* Computes the report from policy, subject, has_advice, sampled and seed. */
void explain_report(struct explain_report *report);

/* The prediction for an outcome. */
struct explain_verdict {
    const struct conf_policy *policy;
    struct explain_outcome_name outcome_name;
    struct explain_case situation;
    const char *method; /* or NULL */
    const char *hint;   /* Retry-After as given, or NULL */
    bool sampled;       /* a seed was given */
    struct explain_prediction prediction;
    struct explain_gate gates[EXPLAIN_GATES];
    struct explain_change changes[EXPLAIN_CHANGES_MAX];
    size_t change_count;
};

/* Computes prediction, gates and changes from situation. */
void explain_verdict(struct explain_verdict *verdict);

/* ---- printing ---- */

void explain_print_report(const struct cli_term *term, const struct explain_report *report);
void explain_print_verdict(const struct cli_term *term, const struct explain_verdict *verdict);

/* Each prints one JSON value and a line end. */
void explain_json_report(FILE *out, const struct explain_report *report);
void explain_json_verdict(FILE *out, const struct explain_verdict *verdict);

/* Prints the policies of a file, if any, each with its preset, then the presets with their purpose. */
void explain_print_list(const struct cli_term *term, const struct conf *conf);
void explain_json_list(FILE *out, const struct conf *conf);

#endif
