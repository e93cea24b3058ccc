/* finding.h - the linter for policies.
 *
 * It is a list of checks, one function each. A finding has an id (for scripts), a sentence with the numbers of this
 * policy, and a fix. An error is never intended, a warning rarely, a note is worth knowing. Checks that depend on the
 * traffic (--rate, --layers, --slo) find nothing without it. */
#ifndef EXPLAIN_FINDING_H
#define EXPLAIN_FINDING_H

#include "schedule.h"
#include "subject.h"

enum explain_severity { EXPLAIN_NOTE, EXPLAIN_WARNING, EXPLAIN_ERROR };

struct explain_finding {
    const char *id; /* "no-jitter" */
    enum explain_severity severity;
    char text[256];
    char fix[192]; /* empty: no action is needed */
};

#define EXPLAIN_FINDINGS_MAX 48u

struct explain_findings {
    struct explain_finding finding[EXPLAIN_FINDINGS_MAX]; /* the most severe first */
    size_t count;
};

void explain_run_checks(struct explain_findings *findings, const struct explain_subject *subject,
                        const struct explain_schedule *schedule);

/* Returns true if there is a finding above a note, for --strict. */
bool explain_has_warnings(const struct explain_findings *findings);

/* "note", "warning", "error". */
const char *explain_severity_label(enum explain_severity severity);

/* Returns the i-th id in the order of the checks; NULL after the last. */
const char *explain_finding_id(size_t i);

/* ---- lists ---- */

#define EXPLAIN_LISTS       3u  /* of statuses, exit statuses and gRPC codes */
#define EXPLAIN_RANGES_SIZE 96u /* room for a few ranges; the rest is "..." */

struct explain_list_summary {
    const char *name;                  /* "HTTP status" */
    char retried[EXPLAIN_RANGES_SIZE]; /* "429, 500-504", or "none" */
};

/* Summarizes the i-th list of the policy: what it retries, as the engine classifies. Returns false if the policy has
 * no such list. */
bool explain_list_summary(struct explain_list_summary *summary, const struct conf_policy *policy, size_t i);

#endif
