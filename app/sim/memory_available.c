/* memory_available.c - how much memory this process can still allocate.
 *
 * The least of: the memory the system can give without swapping (MemAvailable), the rest of the limits on address space
 * and data of the process (ulimit -v, -d), and the rest of the maximum of each of its control groups, up to the root.
 * Inactive file pages of a group count as free: the kernel drops them first. A missing file, or "max", is no limit. */
#include "batch.h"

#include "text/unit.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t subtract_saturated(uint64_t all, uint64_t used)
{
    return all > used ? all - used : 0;
}

/* ---- files of /proc and /sys ---- */

static FILE *file_open(const char *root, const char *directory, const char *name)
{
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s%s%s", root, directory, name);
    return length > 0 && (size_t)length < sizeof path ? fopen(path, "re") : NULL;
}

/* Reads digits after blanks. */
static bool parse_number(const char *text, uint64_t *number)
{
    text += strspn(text, " \t");
    return text_number_take(text, strlen(text), number) > 0;
}

/* Finds the number after a word at the beginning of a line; with an empty word, the first number of the file. Closes
 * the file. */
static bool file_find_number(FILE *file, const char *word, uint64_t *number)
{
    char line[256];
    bool found = false;
    if (file == NULL)
        return false;
    while (!found && fgets(line, sizeof line, file) != NULL)
        found = strncmp(line, word, strlen(word)) == 0 && parse_number(line + strlen(word), number);
    fclose(file);
    return found;
}

static uint64_t system_available(const char *root)
{
    uint64_t kib;
    return file_find_number(file_open(root, "/proc", "/meminfo"), "MemAvailable:", &kib) ? kib * 1024 : UINT64_MAX;
}

/* ---- limits of the process ---- */

static uint64_t rlimit_available(const struct rlimit *limit, uint64_t used)
{
    return limit->rlim_cur == RLIM_INFINITY ? UINT64_MAX : subtract_saturated(limit->rlim_cur, used);
}

/* Returns three quarters: address space is used up faster than memory, by gaps between aligned chunks and by heaps that
 * threads reserve. */
static uint64_t address_space_usable(uint64_t available)
{
    return available == UINT64_MAX ? available : available / 4 * 3;
}

static uint64_t process_available(const char *root)
{
    struct rlimit limit;
    uint64_t kib, available = UINT64_MAX;
    if (file_find_number(file_open(root, "/proc", "/self/status"), "VmSize:", &kib) &&
        getrlimit(RLIMIT_AS, &limit) == 0)
        available = address_space_usable(rlimit_available(&limit, kib * 1024));
    if (file_find_number(file_open(root, "/proc", "/self/status"), "VmData:", &kib) &&
        getrlimit(RLIMIT_DATA, &limit) == 0)
        available = min_u64(available, rlimit_available(&limit, kib * 1024));
    return available;
}

/* ---- control groups ---- */

/* Files of control groups v2 and v1; v1 has a separate hierarchy for memory. */
struct generation {
    const char *prefix; /* marks the line of /proc/self/cgroup */
    const char *mount;
    const char *max_file, *used, *idle;
};

static const struct generation generations[] = {
    {"0::", "/sys/fs/cgroup", "/memory.max", "/memory.current", "inactive_file"},
    {":memory:", "/sys/fs/cgroup/memory", "/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_inactive_file"},
};

static uint64_t cgroup_available(const char *root, const struct generation *g, const char *group)
{
    char directory[PATH_MAX];
    uint64_t max, used, idle = 0;
    int length = snprintf(directory, sizeof directory, "%s%s", g->mount, group);
    if (length < 0 || (size_t)length >= sizeof directory)
        return UINT64_MAX;
    if (!file_find_number(file_open(root, directory, g->max_file), "", &max) ||
        !file_find_number(file_open(root, directory, g->used), "", &used))
        return UINT64_MAX;
    (void)file_find_number(file_open(root, directory, "/memory.stat"), g->idle, &idle);
    return subtract_saturated(max, subtract_saturated(used, idle));
}

/* Returns the least over the group and all its parents. */
static uint64_t cgroup_path_available(const char *root, const struct generation *g, char *group)
{
    uint64_t available = UINT64_MAX;
    group[strcspn(group, "\n")] = '\0';
    for (char *end = group + strlen(group); end != NULL; end = strrchr(group, '/')) {
        *end = '\0';
        available = min_u64(available, cgroup_available(root, g, group));
    }
    return available;
}

static uint64_t cgroups_available(const char *root)
{
    char line[PATH_MAX];
    uint64_t available = UINT64_MAX;
    FILE *file = file_open(root, "/proc", "/self/cgroup");
    if (file == NULL)
        return available;
    while (fgets(line, sizeof line, file) != NULL)
        for (size_t i = 0; i < sizeof generations / sizeof *generations; i++) {
            const struct generation *g = &generations[i];
            char *prefix = strstr(line, g->prefix);
            if (prefix != NULL && (g->prefix[0] == ':' || prefix == line))
                available = min_u64(available, cgroup_path_available(root, g, prefix + strlen(g->prefix)));
        }
    fclose(file);
    return available;
}

/* ---- all limits ---- */

uint64_t sim_memory_available_under(const char *root)
{
    return min_u64(system_available(root), min_u64(process_available(root), cgroups_available(root)));
}

uint64_t sim_memory_available(void)
{
    return sim_memory_available_under("");
}
