/* problem.h - fills a struct bide_problem for libbide-telemetry. All functions accept a NULL problem. */
#ifndef TELEMETRY_PROBLEM_H
#define TELEMETRY_PROBLEM_H

#include <bide/base.h>

/* Sets the problem of a field with a number: "FIELD is VALUE; must be WANT". Returns BIDE_ERR_INVALID. */
enum bide_err telemetry_problem_number(struct bide_problem *problem, const char *field, int64_t value,
                                       const char *want);

/* The same for a field with a text: "FIELD is "VALUE"; must be WANT". */
enum bide_err telemetry_problem_text(struct bide_problem *problem, const char *field, const char *value,
                                     const char *want);

/* Sets a problem that is not the value of a field, cut to size. system_errno is 0 if the operating system did not
 * refuse. Returns err. */
__attribute__((format(printf, 4, 5))) enum bide_err
telemetry_problem_set(struct bide_problem *problem, enum bide_err err, int system_errno, const char *format, ...);

#endif
