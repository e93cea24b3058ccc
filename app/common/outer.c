/* outer.c - reads the variables of an outer `bide run`; see outer.h. */
#include "outer.h"

#include "text/unit.h"

#include <bide/base.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns true if the variable has a valid value. If it has another, sets `ignored`. */
static bool variable_read(const char *name, uint64_t least, uint64_t most, uint64_t *number, char ignored[160])
{
    const char *value = getenv(name);
    if (value == NULL)
        return false;
    if (text_number_parse(value, strlen(value), number) && *number >= least && *number <= most)
        return true;
    snprintf(ignored, 160, "%s=%.40s: must be a whole number from %" PRIu64 " to %" PRIu64 "; it is ignored", name,
             value, least, most);
    return false;
}

struct cli_outer cli_outer_read(int64_t now_ns)
{
    struct cli_outer outer = {0};
    uint64_t number;
    if (variable_read("BIDE_ATTEMPT", 1, UINT32_MAX, &number, outer.ignored[0]))
        outer.attempt = (uint32_t)number;
    if (variable_read("BIDE_DEADLINE_MS", 0, BIDE_DURATION_MAX / BIDE_MS, &number, outer.ignored[1]))
        outer.deadline_ns = now_ns + (int64_t)number * BIDE_MS;
    return outer;
}
