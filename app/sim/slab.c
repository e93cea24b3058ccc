/* slab.c - memory for many things of one size, by index: chunks that never move, so that pointers stay good. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "os/memory.h"

#include "state.h"

#define HUGE_PAGE ((size_t)2 << 20)

/* Large pages, where the system has them: with many millions of calls most of the time goes into finding their pages.
 * The first chunk does without, because a small world uses but a little of it. */
static unsigned char *new_chunk(size_t size, bool first)
{
    void *chunk = NULL;
    if (os_memory_refused() || posix_memalign(&chunk, HUGE_PAGE, size << SIM_CHUNK_BITS) != 0)
        return NULL;
    if (!first)
        (void)madvise(chunk, size << SIM_CHUNK_BITS, MADV_HUGEPAGE);
    return chunk;
}

static bool grow(struct sim_pool *pool)
{
    unsigned char **chunk = os_memory_refused() ? NULL : realloc(pool->chunk, (pool->chunks + 1) * sizeof *chunk);
    if (chunk == NULL)
        return false;
    pool->chunk = chunk;
    chunk[pool->chunks] = new_chunk(pool->size, pool->chunks == 0);
    if (chunk[pool->chunks] == NULL)
        return false;
    pool->chunks++;
    return true;
}

uint32_t sim_pool_take(struct sim_pool *pool)
{
    uint32_t i = pool->free;
    if (i != SIM_NOBODY)
        memcpy(&pool->free, (unsigned char *)sim_pool_at(pool, i) + pool->link, sizeof pool->free);
    else {
        i = pool->used;
        if (i == pool->chunks << SIM_CHUNK_BITS && (i >= pool->most || !grow(pool)))
            return SIM_NOBODY;
        pool->used++;
    }
    pool->live++;
    return i;
}

void sim_pool_give(struct sim_pool *pool, uint32_t i)
{
    memcpy((unsigned char *)sim_pool_at(pool, i) + pool->link, &pool->free, sizeof pool->free);
    pool->free = i;
    pool->live--;
}

void sim_pool_free(struct sim_pool *pool)
{
    for (uint32_t i = 0; i < pool->chunks; i++)
        free(pool->chunk[i]);
    free(pool->chunk);
}
