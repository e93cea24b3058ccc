/* base.c - the version, and what was wrong with an input in one sentence. */
#include <bide/base.h>

#include "text.h"

const char *bide_version(void)
{
    return BIDE_VERSION;
}

size_t bide_problem_format(char *text, size_t size, const struct bide_problem *problem)
{
    struct core_pen pen = {text, size, 0};
    core_put(&pen, problem->field);
    core_put(&pen, " is ");
    core_put_number(&pen, problem->value);
    core_put(&pen, "; want ");
    core_put(&pen, problem->want);
    return core_put_end(&pen);
}
