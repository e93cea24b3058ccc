/* mapping.h - the file in which a piece of memory lies. */
#ifndef BUDGET_MAPPING_H
#define BUDGET_MAPPING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* As the kernel tells it of this process; a file that was removed meanwhile ends with " (deleted)". False: it is in
 * none, or the kernel does not say; `path` is then empty. */
bool budget_mapping_path(char *path, size_t size, const void *address);

/* The same for a list of mappings, as in /proc/self/maps, that is already open. */
bool budget_mapping_path_in(FILE *maps, char *path, size_t size, const void *address);

#endif
