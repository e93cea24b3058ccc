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

/* ---- does the outer bide live? ---- */

/* Reads the ID of a process and the time at which it started, in clock ticks since boot, from its file in /proc.
 * Returns false if there is no such process, if this user may not see it, or if it has ended (a zombie, or dead). */
static bool process_read(const char *path, uint64_t *pid, uint64_t *start)
{
    char line[1024];
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    size_t length = fread(line, 1, sizeof line - 1, file);
    fclose(file);
    line[length] = '\0';
    const char *field = strrchr(line, ')'); /* the name of the program, field 2, may contain blanks and parentheses */
    if (field == NULL || strncmp(field, ") Z", 3) == 0 || strncmp(field, ") X", 3) == 0)
        return false;
    for (int i = 2; field != NULL && i < 22; i++)
        field = strchr(field + 1, ' ');
    return text_number_parse(line, strcspn(line, " "), pid) && field != NULL &&
           text_number_parse(field + 1, strcspn(field + 1, " "), start);
}

bool cli_outer_is_alive(void)
{
    const char *value = getenv("BIDE_OUTER");
    char path[48];
    uint64_t pid, start, now;
    if (value == NULL)
        return true;
    size_t length = strcspn(value, ":");
    if (value[length] == '\0' || !text_number_parse(value, length, &pid) ||
        !text_number_parse(value + length + 1, strlen(value + length + 1), &start))
        return false;
    snprintf(path, sizeof path, "/proc/%" PRIu64 "/stat", pid);
    return process_read(path, &pid, &now) && now == start;
}

/* Not with getpid: /proc may be that of another PID namespace, in which this process has another ID. */
bool cli_outer_describe_self(char text[CLI_OUTER_SIZE])
{
    uint64_t pid, start;
    if (!process_read("/proc/self/stat", &pid, &start))
        return false;
    snprintf(text, CLI_OUTER_SIZE, "%" PRIu64 ":%" PRIu64, pid, start);
    return true;
}

/* ---- its variables ---- */

struct cli_outer cli_outer_read(int64_t now_ns)
{
    struct cli_outer outer = {0};
    uint64_t number;
    if (!cli_outer_is_alive())
        return outer;
    if (variable_read("BIDE_ATTEMPT", 1, UINT32_MAX, &number, outer.ignored[0]))
        outer.attempt = (uint32_t)number;
    if (variable_read("BIDE_DEADLINE_MS", 0, BIDE_DURATION_MAX / BIDE_MS, &number, outer.ignored[1]))
        outer.deadline_ns = now_ns + (int64_t)number * BIDE_MS;
    return outer;
}
