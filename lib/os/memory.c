/* memory.c - allocation for the OS layer: see memory.h. */
#include "memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

bool (*os_memory_refuses)(void);

bool os_memory_refused(void)
{
    return os_memory_refuses != NULL && os_memory_refuses();
}

void *os_memory(size_t count, size_t size)
{
    return os_memory_refused() ? NULL : calloc(count, size);
}

void *os_memory_lines(size_t count, size_t size)
{
    if (size != 0 && count > (SIZE_MAX - OS_CACHE_LINE) / size)
        return NULL;
    size_t bytes = (count * size + OS_CACHE_LINE - 1) & ~(size_t)(OS_CACHE_LINE - 1);
    void *memory = os_memory_refused() ? NULL : aligned_alloc(OS_CACHE_LINE, bytes);
    if (memory != NULL)
        memset(memory, 0, bytes);
    return memory;
}
