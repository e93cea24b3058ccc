/* memory.h - allocation functions of the OS layer, so that tests can make them fail.
 *
 * lib/os takes all its heap memory from here; the runs of app/sim use these functions as well. Memory is released with
 * free(). */
#ifndef OS_MEMORY_H
#define OS_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

#define OS_CACHE_LINE 64u

/* Test hook, called before each allocation: true makes it fail. NULL in production. */
extern bool (*os_memory_refuses)(void);

/* Returns true if this allocation must fail. For code that allocates in another way than the two functions below. */
bool os_memory_refused(void);

/* Returns zeroed memory for `count` elements; NULL if there is none, or the product overflows. Large blocks cost
 * nothing until they are touched. */
void *os_memory(size_t count, size_t size);

/* The same, aligned to a cache line. */
void *os_memory_lines(size_t count, size_t size);

#endif
