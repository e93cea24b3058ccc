/* memory.h - where the OS layer gets its memory, so that tests can refuse it.
 *
 * Two functions in place of malloc, and one switch. Nothing else under lib/os allocates; free() gives it back. */
#ifndef DRIVE_MEMORY_H
#define DRIVE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

#define DRIVE_CACHE_LINE 64u

/* Tests set it: asked before each allocation, true refuses it. NULL in production. */
extern bool (*drive_memory_refuses)(void);

/* Is this allocation refused? For those who need memory of another kind than the two below give. */
bool drive_memory_refused(void);

/* Zeroed memory for `count` things; NULL: there is none, or the product does not fit. Large ones cost nothing until
 * they are touched. */
void *drive_memory(size_t count, size_t size);

/* The same, at the start of a cache line. */
void *drive_memory_lines(size_t count, size_t size);

#endif
