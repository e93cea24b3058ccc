/* memory.c - where the OS layer gets its memory: see memory.h. */
#include "memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

bool (*drive_memory_refuses)(void);

bool drive_memory_refused(void)
{
    return drive_memory_refuses != NULL && drive_memory_refuses();
}

void *drive_memory(size_t count, size_t size)
{
    return drive_memory_refused() ? NULL : calloc(count, size);
}

void *drive_memory_lines(size_t count, size_t size)
{
    if (size != 0 && count > (SIZE_MAX - DRIVE_CACHE_LINE) / size)
        return NULL;
    size_t bytes = (count * size + DRIVE_CACHE_LINE - 1) & ~(size_t)(DRIVE_CACHE_LINE - 1);
    void *memory = drive_memory_refused() ? NULL : aligned_alloc(DRIVE_CACHE_LINE, bytes);
    if (memory != NULL)
        memset(memory, 0, bytes);
    return memory;
}
