/* base.c - the version of the library, and problems. */
#include <bide/base.h>

#include "assert.h"
#include "problem.h"
#include "text.h"

const char *bide_version(void)
{
    return BIDE_VERSION;
}

enum bide_err core_problem_set(struct bide_problem *problem, const char *field, int64_t value, const char *want)
{
    if (problem == NULL)
        return BIDE_ERR_INVALID;
    struct core_writer writer = {problem->text, sizeof problem->text, 0};
    core_write_text(&writer, field);
    core_write_text(&writer, " is ");
    core_write_number(&writer, value);
    core_write_text(&writer, "; must be ");
    core_write_text(&writer, want);
    size_t length = core_write_end(&writer);
    core_assert(length < sizeof problem->text); /* field and want are literals of the library */
    problem->field = field;
    problem->want = want;
    problem->value = value;
    problem->reason = problem->system_errno = 0;
    return BIDE_ERR_INVALID;
}

enum bide_err core_problem_set_text(struct bide_problem *problem, enum bide_err err, const char *text)
{
    if (problem == NULL)
        return err;
    struct core_writer writer = {problem->text, sizeof problem->text, 0};
    core_write_text(&writer, text);
    core_write_end(&writer);
    problem->field = problem->want = NULL;
    problem->value = problem->reason = problem->system_errno = 0;
    return err;
}

enum bide_err core_problem_set_busy(struct bide_problem *problem)
{
    return core_problem_set_text(problem, BIDE_ERR_BUSY,
                                 "another thread or process is configuring the target; try again");
}
