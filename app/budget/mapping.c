/* mapping.c - see mapping.h. A line of the list is "7f10-7f20 rw-s 00000000 00:19 42
 * /dev/shm/bide-1000/payments@1f2e". */
#include "mapping.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define FIELDS_BEFORE_PATH 5

static bool mapping_contains(const char *line, const void *address)
{
    char *end;
    uintptr_t from = (uintptr_t)strtoull(line, &end, 16);
    uintptr_t to = *end == '-' ? (uintptr_t)strtoull(end + 1, &end, 16) : 0;
    return (uintptr_t)address >= from && (uintptr_t)address < to;
}

static const char *mapping_path(const char *line)
{
    for (int i = 0; i < FIELDS_BEFORE_PATH; i++) {
        line += strcspn(line, " \n");
        line += strspn(line, " ");
    }
    return line;
}

bool budget_mapping_path_in(FILE *maps, char *path, size_t size, const void *address)
{
    char *line = NULL;
    size_t room = 0;
    path[0] = '\0';
    errno = 0;
    while (getline(&line, &room, maps) > 0)
        if (mapping_contains(line, address)) {
            const char *found = mapping_path(line);
            int length = (int)strcspn(found, "\n");
            if (found[0] == '/' && (size_t)length < size)
                snprintf(path, size, "%.*s", length, found);
            break;
        }
    free(line);
    return path[0] != '\0' || feof(maps) || errno != ENOMEM;
}

bool budget_mapping_path(char *path, size_t size, const void *address)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    path[0] = '\0';
    if (maps == NULL)
        return errno != ENOMEM;
    bool ok = budget_mapping_path_in(maps, path, size, address);
    fclose(maps);
    return ok;
}
