/* mapping.h - the file in which a piece of memory lies. */
#ifndef BUDGET_WHERE_H
#define BUDGET_WHERE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* As the kernel tells it of this process; a file that was removed meanwhile ends with " (deleted)". False: it is in
 * none, or the kernel does not say; `path` is then empty. */
bool budget_where(char *path, size_t size, const void *address);

/* The same for a list of mappings, as in /proc/self/maps, that is already open. */
bool budget_where_in(FILE *maps, char *path, size_t size, const void *address);

#endif
