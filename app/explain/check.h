/* check.h - what the checks of the policy linter share: their input, and the texts of a finding.
 *
 * A check sets the text and the fix of its finding and returns the severity, or CHECK_NONE if it finds nothing. Times
 * in texts are rounded for people. */
#ifndef EXPLAIN_CHECK_H
#define EXPLAIN_CHECK_H

#include "finding.h"

#define CHECK_NONE (-1)

struct check_input {
    const struct explain_subject *subject;
    const struct explain_schedule *schedule;
    const struct bide_policy *p;
    const struct bide_target_config *t;
    struct explain_finding *f;
};

struct time_text {
    char text[TEXT_VALUE_SIZE];
};

__attribute__((format(printf, 2, 3))) void finding_set_text(struct explain_finding *f, const char *format, ...);
__attribute__((format(printf, 2, 3))) void finding_set_fix(struct explain_finding *f, const char *format, ...);
const char *finding_format_time(struct time_text *time_text, int64_t ns);

bool policy_retries(const struct check_input *v);

/* Returns true if the key has the value of the preset that the policy extends; false if the preset is unknown. */
bool key_is_inherited(const struct check_input *v, const char *key);

/* check_lists.c: retry_status, permanent_exit and their like */
int check_lasting_failure_retried(const struct check_input *v);
int check_contradicting_lists(const struct check_input *v);
int check_temporary_failure_permanent(const struct check_input *v);
int check_temporary_failure_unlisted(const struct check_input *v);

/* check_keys.c: keys that have no effect, or members of a file that bide does not know */
int check_key_without_effect(const struct check_input *v);
int check_connect_above_attempt(const struct check_input *v);
int check_wait_for_ready(const struct check_input *v);

#endif
