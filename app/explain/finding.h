/* finding.h - what is questionable about a policy: the linter.
 *
 * A list of checks, one function each. A finding has an id that stays (for scripts and suppressions), a sentence with
 * the numbers of this policy, and what would be right. Errors cannot be meant, warnings seldom are, notes are worth
 * knowing. Checks that need the traffic (--rate, --layers, --slo) are silent without it. */
#ifndef EXPLAIN_FINDING_H
#define EXPLAIN_FINDING_H

#include "schedule.h"
#include "subject.h"

enum explain_severity { EXPLAIN_NOTE, EXPLAIN_WARNING, EXPLAIN_ERROR };

struct explain_finding {
    const char *id; /* "no-jitter" */
    enum explain_severity severity;
    char text[256];
    char fix[192]; /* empty: nothing to do */
};

#define EXPLAIN_FINDINGS_MAX 40u

struct explain_findings {
    struct explain_finding finding[EXPLAIN_FINDINGS_MAX]; /* the worst first */
    size_t count;
};

void explain_run_checks(struct explain_findings *findings, const struct explain_subject *subject,
                        const struct explain_schedule *schedule);

/* Anything worse than a note: what --strict asks. */
bool explain_has_warnings(const struct explain_findings *findings);

/* "note", "warning", "error". */
const char *explain_severity_label(enum explain_severity severity);

/* The ids there are, in the order in which they are looked for; NULL past the last. */
const char *explain_finding_id(size_t i);

#endif
