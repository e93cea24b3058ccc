/* base.c - the version of the library, and the text of a problem. */
#include <bide/base.h>

#include "text.h"

const char *bide_version(void)
{
    return BIDE_VERSION;
}

size_t bide_problem_format(char *text, size_t size, const struct bide_problem *problem)
{
    struct core_writer writer = {text, size, 0};
    core_write_text(&writer, problem->field);
    core_write_text(&writer, " is ");
    core_write_number(&writer, problem->value);
    core_write_text(&writer, "; must be ");
    core_write_text(&writer, problem->want);
    return core_write_end(&writer);
}
