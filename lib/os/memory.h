/* memory.h - where the OS layer gets its memory, so that tests can refuse it.
 *
 * Two functions in place of malloc, and one switch. Nothing else under lib/os allocates; free() gives it back. */
#ifndef OS_MEMORY_H
#define OS_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

#define OS_CACHE_LINE 64u

/* Tests set it: asked before each allocation, true refuses it. NULL in production. */
extern bool (*os_memory_refuses)(void);

/* Is this allocation refused? For those who need memory of another kind than the two below give. */
bool os_memory_refused(void);

/* Zeroed memory for `count` things; NULL: there is none, or the product does not fit. Large ones cost nothing until
 * they are touched. */
void *os_memory(size_t count, size_t size);

/* The same, at the start of a cache line. */
void *os_memory_lines(size_t count, size_t size);

#endif
