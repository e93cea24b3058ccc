/* problem.c - see problem.h. */
#include "problem.h"

#include "core/problem.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/* Replaces the problem. The text is formatted longer than its field, so that only core_problem_cut decides where it
 * ends. */
__attribute__((format(printf, 3, 0))) static void problem_fill(struct bide_problem *problem, struct bide_problem fields,
                                                               const char *format, va_list arguments)
{
    char whole[2 * sizeof problem->text];
    vsnprintf(whole, sizeof whole, format, arguments);
    *problem = fields;
    snprintf(problem->text, sizeof problem->text, "%.*s", (int)core_problem_cut(whole, sizeof problem->text - 1),
             whole);
}

__attribute__((format(printf, 3, 4))) static void problem_format(struct bide_problem *problem,
                                                                 struct bide_problem fields, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    problem_fill(problem, fields, format, arguments);
    va_end(arguments);
}

enum bide_err telemetry_problem_number(struct bide_problem *problem, const char *field, int64_t value, const char *want)
{
    if (problem != NULL)
        problem_format(problem, (struct bide_problem){.field = field, .want = want, .value = value},
                       "%s is %" PRId64 "; must be %s", field, value, want);
    return BIDE_ERR_INVALID;
}

enum bide_err telemetry_problem_text(struct bide_problem *problem, const char *field, const char *value,
                                     const char *want)
{
    if (problem != NULL)
        problem_format(problem, (struct bide_problem){.field = field, .want = want}, "%s is \"%.200s\"; must be %s",
                       field, value, want);
    return BIDE_ERR_INVALID;
}

enum bide_err telemetry_problem_set(struct bide_problem *problem, enum bide_err err, int system_errno,
                                    const char *format, ...)
{
    if (problem == NULL)
        return err;
    va_list arguments;
    va_start(arguments, format);
    problem_fill(problem, (struct bide_problem){.system_errno = system_errno}, format, arguments);
    va_end(arguments);
    return err;
}
