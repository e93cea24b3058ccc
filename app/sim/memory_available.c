/* memory_available.c - how much memory this process can still have, before it starts what would need more.
 *
 * The least of: what the system can give without swapping (MemAvailable), what the limits of the process leave of its
 * address space and of its data (ulimit -v, -d), and what every control group that it is in, up to the root, leaves of
 * its maximum. Pages of files that a group holds and nobody has used lately are as good as free: the kernel drops them
 * first. A file that is not there, or says "max", is no limit. */
#include "batch.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static uint64_t lesser(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t without(uint64_t all, uint64_t used)
{
    return all > used ? all - used : 0;
}

/* ---- files of /proc and /sys ---- */

static FILE *open_at(const char *root, const char *directory, const char *name)
{
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s%s%s", root, directory, name);
    return length > 0 && (size_t)length < sizeof path ? fopen(path, "re") : NULL;
}

/* Digits, with blanks before them. */
static bool read_number(const char *text, uint64_t *number)
{
    char *end;
    text += strspn(text, " \t");
    *number = strtoull(text, &end, 10);
    return *text >= '0' && *text <= '9' && end > text;
}

/* The number behind a word at the beginning of a line; without a word, the one that the file begins with. */
static bool number_in(FILE *file, const char *word, uint64_t *number)
{
    char line[256];
    bool found = false;
    if (file == NULL)
        return false;
    while (!found && fgets(line, sizeof line, file) != NULL)
        found = strncmp(line, word, strlen(word)) == 0 && read_number(line + strlen(word), number);
    fclose(file);
    return found;
}

static uint64_t system_left(const char *root)
{
    uint64_t kib;
    return number_in(open_at(root, "/proc", "/meminfo"), "MemAvailable:", &kib) ? kib * 1024 : UINT64_MAX;
}

/* ---- limits of the process ---- */

static uint64_t limit_left(const struct rlimit *limit, uint64_t used)
{
    return limit->rlim_cur == RLIM_INFINITY ? UINT64_MAX : without(limit->rlim_cur, used);
}

/* Addresses are used up faster than memory: by what lies between aligned chunks, and by heaps that threads reserve. */
static uint64_t of_addresses(uint64_t left)
{
    return left == UINT64_MAX ? left : left / 4 * 3;
}

static uint64_t process_left(const char *root)
{
    struct rlimit limit;
    uint64_t kib, left = UINT64_MAX;
    if (number_in(open_at(root, "/proc", "/self/status"), "VmSize:", &kib) && getrlimit(RLIMIT_AS, &limit) == 0)
        left = of_addresses(limit_left(&limit, kib * 1024));
    if (number_in(open_at(root, "/proc", "/self/status"), "VmData:", &kib) && getrlimit(RLIMIT_DATA, &limit) == 0)
        left = lesser(left, limit_left(&limit, kib * 1024));
    return left;
}

/* ---- control groups ---- */

/* Where the two generations keep it; the first has a hierarchy for memory alone. */
struct generation {
    const char *mark; /* in a line of /proc/self/cgroup */
    const char *mount;
    const char *most, *used, *idle;
};

static const struct generation generations[] = {
    {"0::", "/sys/fs/cgroup", "/memory.max", "/memory.current", "inactive_file"},
    {":memory:", "/sys/fs/cgroup/memory", "/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_inactive_file"},
};

static uint64_t group_left(const char *root, const struct generation *g, const char *group)
{
    char directory[PATH_MAX];
    uint64_t most, used, idle = 0;
    int length = snprintf(directory, sizeof directory, "%s%s", g->mount, group);
    if (length < 0 || (size_t)length >= sizeof directory)
        return UINT64_MAX;
    if (!number_in(open_at(root, directory, g->most), "", &most) ||
        !number_in(open_at(root, directory, g->used), "", &used))
        return UINT64_MAX;
    (void)number_in(open_at(root, directory, "/memory.stat"), g->idle, &idle);
    return without(most, without(used, idle));
}

/* The group and all that it lies in. */
static uint64_t groups_left(const char *root, const struct generation *g, char *group)
{
    uint64_t left = UINT64_MAX;
    group[strcspn(group, "\n")] = '\0';
    for (char *end = group + strlen(group); end != NULL; end = strrchr(group, '/')) {
        *end = '\0';
        left = lesser(left, group_left(root, g, group));
    }
    return left;
}

static uint64_t cgroup_left(const char *root)
{
    char line[PATH_MAX];
    uint64_t left = UINT64_MAX;
    FILE *file = open_at(root, "/proc", "/self/cgroup");
    if (file == NULL)
        return left;
    while (fgets(line, sizeof line, file) != NULL)
        for (size_t i = 0; i < sizeof generations / sizeof *generations; i++) {
            const struct generation *g = &generations[i];
            char *mark = strstr(line, g->mark);
            if (mark != NULL && (g->mark[0] == ':' || mark == line))
                left = lesser(left, groups_left(root, g, mark + strlen(g->mark)));
        }
    fclose(file);
    return left;
}

/* ---- together ---- */

uint64_t sim_memory_left_under(const char *root)
{
    return lesser(system_left(root), lesser(process_left(root), cgroup_left(root)));
}

uint64_t sim_memory_left(void)
{
    return sim_memory_left_under("");
}
