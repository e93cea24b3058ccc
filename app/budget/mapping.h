/* mapping.h - finds the file that is mapped at an address. */
#ifndef BUDGET_MAPPING_H
#define BUDGET_MAPPING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Reads /proc/self/maps; the path of a removed file ends with " (deleted)". `path` is empty if no file is mapped there,
 * or if /proc is not available. Returns false if out of memory. */
bool budget_mapping_path(char *path, size_t size, const void *address);

/* The same for a list of mappings that is already open. */
bool budget_mapping_path_in(FILE *maps, char *path, size_t size, const void *address);

#endif
