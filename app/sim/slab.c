/* slab.c - a slab allocator: objects of one size, addressed by index, in chunks that never move, so that pointers stay
 * valid. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "os/memory.h"

#include "state.h"

#define HUGE_PAGE ((size_t)2 << 20)

/* Asks for huge pages: with many millions of calls most of the time goes into TLB misses. Not for the first chunk, of
 * which a small world uses only a part. */
static unsigned char *slab_new_chunk(size_t size, bool first)
{
    void *chunk = NULL;
    if (os_memory_refused() || posix_memalign(&chunk, HUGE_PAGE, size << SIM_SLAB_CHUNK_BITS) != 0)
        return NULL;
    if (!first)
        (void)madvise(chunk, size << SIM_SLAB_CHUNK_BITS, MADV_HUGEPAGE);
    return chunk;
}

static bool slab_grow(struct sim_slab *slab)
{
    unsigned char **chunk = os_memory_refused() ? NULL : realloc(slab->chunk, (slab->chunks + 1) * sizeof *chunk);
    if (chunk == NULL)
        return false;
    slab->chunk = chunk;
    chunk[slab->chunks] = slab_new_chunk(slab->size, slab->chunks == 0);
    if (chunk[slab->chunks] == NULL)
        return false;
    slab->chunks++;
    return true;
}

uint32_t sim_slab_alloc(struct sim_slab *slab)
{
    uint32_t i = slab->free;
    if (i != SIM_NONE)
        memcpy(&slab->free, (unsigned char *)sim_slab_at(slab, i) + slab->link_offset, sizeof slab->free);
    else {
        i = slab->high_water;
        if (i == slab->chunks << SIM_SLAB_CHUNK_BITS && (i >= slab->count_max || !slab_grow(slab)))
            return SIM_NONE;
        slab->high_water++;
    }
    slab->live++;
    return i;
}

void sim_slab_release(struct sim_slab *slab, uint32_t i)
{
    memcpy((unsigned char *)sim_slab_at(slab, i) + slab->link_offset, &slab->free, sizeof slab->free);
    slab->free = i;
    slab->live--;
}

void sim_slab_free(struct sim_slab *slab)
{
    for (uint32_t i = 0; i < slab->chunks; i++)
        free(slab->chunk[i]);
    free(slab->chunk);
}
