/* problem.c - see problem.h. */
#include "problem.h"

#include "core/problem.h"

#include <stdarg.h>
#include <stdio.h>

enum bide_err fleet_problem_set(struct bide_problem *problem, enum bide_err err, int system_errno, const char *format,
                                ...)
{
    char
        whole[2 * sizeof problem->text]; /* longer than the text, so that only core_problem_cut decides where it ends */
    if (problem == NULL)
        return err;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(whole, sizeof whole, format, arguments);
    va_end(arguments);
    *problem = (struct bide_problem){.system_errno = system_errno};
    snprintf(problem->text, sizeof problem->text, "%.*s", (int)core_problem_cut(whole, sizeof problem->text - 1),
             whole);
    return err;
}
