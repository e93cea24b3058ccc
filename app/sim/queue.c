/* queue.c - a monotone radix heap over (time, id, sequence).
 *
 * An event's key is a number of 128 bits: the time, then id and seq. Keys are read as digits of six bits, 11 in each
 * half, and compared with `base`, a lower bound of the keys of all events in buckets. An event lies at the level of the
 * highest digit in which it differs from base, in the bucket of its own digit at that level. All events at lower
 * levels, or at the same level in a lower bucket, come before it. So the next events are those of the lowest bucket of
 * the lowest level that is not empty:
 *
 *     few    they are sorted and become the run, which is popped from its front; base is its first key
 *     many   base becomes the least of them and they are inserted again: all of them fall to lower levels
 *
 * An event falls at most once per level and, as it skips levels that do not distinguish events, about log64(pending)
 * times. The events of one instant (a herd) are distinguished by their ids in the same way, independent of the order in
 * which they were pushed.
 *
 * Events pushed into the span of the run, up to its last key `until`, go to a binary heap beside it, which is mostly
 * empty. With `until` at the end of all keys every event goes there: that is the plain queue.
 *
 * A bucket is a list of chunks of 1024 bytes, each aligned to 1024, so that the address of the next event shows whether
 * the chunk is full and where it begins. Chunks are cut from slabs and return to a free list. As pop cannot fail, push
 * allocates enough chunks for every possible distribution of the pending events. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "os/memory.h"

#include "queue.h"

#define DIGIT_BITS   6u
#define DIGITS       (1u << DIGIT_BITS)
#define HALF_LEVELS  11u /* digits of 64 bits: levels 0 to 10 belong to id and seq, 11 to 21 to the time */
#define LEVELS       (2 * HALF_LEVELS)
#define BUCKETS      ((size_t)LEVELS * DIGITS)
#define CHUNK_BYTES  1024u
#define CHUNK_EVENTS (CHUNK_BYTES / 16 - 1) /* after the header */
#define RUN_CHUNKS   32u
#define RUN_MAX      ((size_t)RUN_CHUNKS * CHUNK_EVENTS)
#define SLAB_LEAST   ((size_t)64 << 10) /* bytes of the first slab; each slab is twice as large as the previous */
#define SLAB_MOST    ((size_t)32 << 20) /* ... up to this size */
#define HUGE_PAGE    ((size_t)2 << 20)

typedef unsigned __int128 key_word;

struct chunk {
    struct chunk *below; /* the next older chunk, which is full */
    uint64_t depth;      /* number of chunks from here down */
    struct sim_event event[CHUNK_EVENTS];
};
static_assert(sizeof(struct chunk) == CHUNK_BYTES, "the address of the next event says whether the chunk is full");

/* Stored in the place of the slab's first chunk. */
struct slab {
    struct slab *newer;
    char *fresh, *end; /* the part never used */
};

struct sim_queue {
    key_word base, until;
    struct sim_event *run, *run_end; /* the rest of the run, in run_buffer */
    struct sim_event *heap;
    size_t heap_count, heap_room;
    size_t count, count_max; /* events in run and buckets; and for how many there are chunks */
    int64_t last_ns;         /* time of the event popped last */
    size_t bytes;
    /* buckets */
    uint32_t levels;                        /* bit set of levels that are not empty */
    uint64_t filled[LEVELS];                /* bit set of buckets that are not empty */
    struct sim_event *next[LEVELS][DIGITS]; /* where the next event of the bucket goes; NULL: no chunk */
    /* chunks */
    struct chunk *spare;
    struct slab *oldest, *filling, *newest;
    size_t chunks;
    size_t slab_bytes;                                          /* size of the next slab */
    struct sim_event run_buffer[RUN_MAX], sort_buffer[RUN_MAX]; /* sort_buffer: scratch space */
};

static uint64_t event_tie(const struct sim_event *event)
{
    return (uint64_t)event->id << 32 | event->seq;
}

static key_word event_key(const struct sim_event *event)
{
    return (key_word)(uint64_t)event->at_ns << 64 | event_tie(event);
}

/* ---- the binary heap ---- */

static bool heap_reserve(struct sim_queue *queue)
{
    if (queue->heap_count < queue->heap_room)
        return true;
    size_t room = queue->heap_room ? 2 * queue->heap_room : 64;
    struct sim_event *heap = os_memory_refused() ? NULL : realloc(queue->heap, room * sizeof *heap);
    if (!heap)
        return false;
    queue->bytes += (room - queue->heap_room) * sizeof *heap;
    queue->heap = heap;
    queue->heap_room = room;
    return true;
}

static bool heap_push(struct sim_queue *queue, struct sim_event event)
{
    if (!heap_reserve(queue))
        return false;
    struct sim_event *heap = queue->heap;
    key_word key = event_key(&event);
    size_t i = queue->heap_count++;
    while (i > 0 && key < event_key(&heap[(i - 1) / 2])) {
        heap[i] = heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    heap[i] = event;
    return true;
}

/* Moves the hole at the top down to the bottom along the smaller children, then the last event up from there: it nearly
 * always belongs near the bottom. */
static struct sim_event heap_pop(struct sim_queue *queue)
{
    struct sim_event *heap = queue->heap, top = heap[0], last = heap[--queue->heap_count];
    key_word key = event_key(&last);
    size_t i = 0, n = queue->heap_count;
    for (size_t child = 1; child < n; child = 2 * i + 1) {
        child += child + 1 < n && event_key(&heap[child + 1]) < event_key(&heap[child]);
        heap[i] = heap[child];
        i = child;
    }
    while (i > 0 && key < event_key(&heap[(i - 1) / 2])) {
        heap[i] = heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    heap[i] = last;
    return top;
}

/* ---- chunks ---- */

/* Returns how many events fit into this many chunks however they are distributed: full chunks, a partly full chunk for
 * each bucket or each event, and a chunk that is read while its events are inserted elsewhere. */
static size_t chunks_hold_events(size_t chunks)
{
    if (chunks <= BUCKETS + BUCKETS / CHUNK_EVENTS + 2)
        return (chunks - 2) * CHUNK_EVENTS / (CHUNK_EVENTS + 1);
    return (chunks - 2 - BUCKETS) * CHUNK_EVENTS;
}

static bool queue_add_slab(struct sim_queue *queue)
{
    size_t bytes = queue->slab_bytes;
    struct slab *slab = os_memory_refused() ? NULL : aligned_alloc(bytes < HUGE_PAGE ? CHUNK_BYTES : HUGE_PAGE, bytes);
    if (!slab)
        return false;
    if (bytes >= HUGE_PAGE)
        (void)madvise(slab, bytes, MADV_HUGEPAGE); /* optional: only speed depends on it */
    *slab = (struct slab){.fresh = (char *)slab + CHUNK_BYTES, .end = (char *)slab + bytes};
    if (queue->newest)
        queue->newest->newer = slab;
    else
        queue->oldest = queue->filling = slab;
    queue->newest = slab;
    queue->chunks += bytes / CHUNK_BYTES - 1;
    queue->count_max = chunks_hold_events(queue->chunks);
    queue->bytes += bytes;
    queue->slab_bytes = bytes < SLAB_MOST ? 2 * bytes : bytes;
    return true;
}

/* Returns a free chunk. Never fails: push has allocated enough (chunks_hold_events). */
static struct chunk *chunk_take(struct sim_queue *queue)
{
    struct chunk *chunk = queue->spare;
    if (chunk) {
        queue->spare = chunk->below;
        return chunk;
    }
    if (queue->filling->fresh == queue->filling->end) {
        assert(queue->filling->newer);
        queue->filling = queue->filling->newer;
    }
    chunk = (struct chunk *)(void *)queue->filling->fresh;
    queue->filling->fresh += CHUNK_BYTES;
    return chunk;
}

static void chunk_release(struct sim_queue *queue, struct chunk *chunk)
{
    chunk->below = queue->spare;
    queue->spare = chunk;
}

/* Returns the chunk of the event before `next`. */
static struct chunk *chunk_of(struct sim_event *next)
{
    uintptr_t last = (uintptr_t)next - 1;
    return (struct chunk *)(void *)((char *)next - 1 - last % CHUNK_BYTES);
}

/* ---- buckets ---- */

static bool chunk_is_full(const struct sim_event *next)
{
    return (uintptr_t)next % CHUNK_BYTES == 0; /* also if there is no chunk yet */
}

static void bucket_open_chunk(struct sim_queue *queue, uint32_t level, uint32_t digit)
{
    struct sim_event **next = &queue->next[level][digit];
    struct chunk *chunk = chunk_take(queue), *below = *next ? chunk_of(*next) : NULL;
    chunk->below = below;
    chunk->depth = below ? below->depth + 1 : 1;
    *next = chunk->event;
    queue->filled[level] |= UINT64_C(1) << digit;
    queue->levels |= UINT32_C(1) << level;
}

/* Inserts an event, not below base, into its bucket. */
static inline void bucket_put(struct sim_queue *queue, const struct sim_event *event)
{
    uint64_t half = (uint64_t)event->at_ns, differs = half ^ (uint64_t)(queue->base >> 64);
    uint32_t level = HALF_LEVELS;
    if (differs == 0) {
        half = event_tie(event);
        differs = (half ^ (uint64_t)queue->base) | 1; /* base itself belongs to level 0 too */
        level = 0;
    }
    uint32_t place = (63 - (uint32_t)__builtin_clzll(differs)) / DIGIT_BITS;
    uint32_t digit = half >> place * DIGIT_BITS & (DIGITS - 1);
    level += place;
    if (chunk_is_full(queue->next[level][digit]))
        bucket_open_chunk(queue, level, digit);
    *queue->next[level][digit]++ = *event;
}

/* Truncates a bucket to the end of a full chunk, or to nothing. */
static void bucket_truncate(struct sim_queue *queue, uint32_t level, uint32_t digit, struct chunk *rest)
{
    queue->next[level][digit] = rest ? rest->event + CHUNK_EVENTS : NULL;
    if (rest)
        return;
    queue->filled[level] &= ~(UINT64_C(1) << digit);
    if (queue->filled[level] == 0)
        queue->levels &= ~(UINT32_C(1) << level);
}

static key_word chunks_least_key(const struct chunk *chunk, const struct sim_event *end)
{
    key_word min = event_key(&chunk->event[0]);
    for (; chunk; chunk = chunk->below, end = chunk ? chunk->event + CHUNK_EVENTS : NULL)
        for (const struct sim_event *event = chunk->event; event < end; event++) {
            key_word key = event_key(event);
            min = key < min ? key : min;
        }
    return min;
}

/* Inserts the events of the lowest bucket again, with the least of them as base. */
static void bucket_redistribute(struct sim_queue *queue, uint32_t level, uint32_t digit)
{
    struct sim_event *end = queue->next[level][digit];
    struct chunk *chunk = chunk_of(end);
    bucket_truncate(queue, level, digit, NULL);
    queue->base = chunks_least_key(chunk, end);
    while (chunk) {
        for (struct sim_event *event = chunk->event; event < end; event++)
            bucket_put(queue, event);
        struct chunk *below = chunk->below;
        chunk_release(queue, chunk);
        chunk = below;
        end = chunk ? chunk->event + CHUNK_EVENTS : NULL;
    }
}

/* ---- the run ---- */

#define SLOT_BITS     9u
#define SLOTS         (1u << SLOT_BITS)
#define INSERTION_MAX 16u /* up to this many are sorted by insertion */

static void insertion_sort(struct sim_event *event, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        struct sim_event moved = event[i];
        key_word key = event_key(&moved);
        size_t j = i;
        for (; j > 0 && key < event_key(&event[j - 1]); j--)
            event[j] = event[j - 1];
        event[j] = moved;
    }
}

/* Range of the keys, and whether they are sorted already. */
struct extent {
    key_word min, max;
    bool sorted;
};

static struct extent extent_of(const struct sim_event *event, size_t n)
{
    struct extent extent = {event_key(event), event_key(event), true};
    key_word last = extent.min;
    for (size_t i = 1; i < n; i++) {
        key_word key = event_key(&event[i]);
        extent.sorted &= last <= key;
        extent.min = key < extent.min ? key : extent.min;
        extent.max = key > extent.max ? key : extent.max;
        last = key;
    }
    return extent;
}

/* Maps a half of a key to slots of 2^shift, counted from `min`: an event in a later slot comes later. */
struct ruler {
    bool by_time;
    uint64_t min;
    uint32_t shift;
};

/* Chooses at least n slots, up to SLOTS, for keys that are not all equal. */
static struct ruler ruler_for(const struct extent *extent, size_t n)
{
    uint64_t length = (uint64_t)(extent->max >> 64) - (uint64_t)(extent->min >> 64);
    struct ruler ruler = {.by_time = length > 0, .min = (uint64_t)(extent->min >> 64)};
    if (!ruler.by_time) {
        ruler.min = (uint64_t)extent->min;
        length = (uint64_t)extent->max - ruler.min;
    }
    uint32_t bits = 64 - (uint32_t)__builtin_clzll(n), length_bits = 64 - (uint32_t)__builtin_clzll(length);
    bits = bits < SLOT_BITS ? bits : SLOT_BITS;
    ruler.shift = length_bits > bits ? length_bits - bits : 0;
    return ruler;
}

static inline size_t ruler_slot(const struct ruler *ruler, const struct sim_event *event)
{
    uint64_t half = ruler->by_time ? (uint64_t)event->at_ns : event_tie(event);
    return (size_t)((half - ruler->min) >> ruler->shift);
}

/* Sorts the events by slot (counting sort); end[i] becomes the end of slot i. */
static void sort_by_slot(struct sim_event *event, struct sim_event *room, size_t n, const struct ruler *ruler,
                         uint16_t end[SLOTS])
{
    memset(end, 0, SLOTS * sizeof *end);
    for (size_t i = 0; i < n; i++)
        end[ruler_slot(ruler, &event[i])]++;
    size_t sum = 0;
    for (size_t i = 0; i < SLOTS; i++) {
        size_t count = end[i];
        end[i] = (uint16_t)sum; /* its beginning, for now */
        sum += count;
    }
    for (size_t i = 0; i < n; i++)
        room[end[ruler_slot(ruler, &event[i])]++] = event[i];
    memcpy(event, room, n * sizeof *event);
}

/* Sorts by slots, about as many as events, so that most slots hold few. A slot with many events is sorted in the same
 * way by finer slots; it has fewer events, as the least and the greatest are never in the same slot. */
static void run_sort(struct sim_event *event, struct sim_event *room, size_t n)
{
    struct extent extent = extent_of(event, n);
    if (extent.sorted)
        return;
    if (n > INSERTION_MAX) {
        struct ruler ruler = ruler_for(&extent, n);
        uint16_t end[SLOTS];
        sort_by_slot(event, room, n, &ruler, end);
        for (size_t i = 0, begin = 0; i < SLOTS; begin = end[i++])
            if (end[i] - begin > INSERTION_MAX)
                run_sort(event + begin, room + begin, end[i] - begin);
    }
    insertion_sort(event, n);
}

/* Makes the events of the lowest bucket the run: all of them, or, where all are equal, as many as fit. The oldest chunk
 * comes first: events that were pushed in order are in order. */
static void run_load(struct sim_queue *queue, uint32_t level, uint32_t digit)
{
    struct sim_event *end = queue->next[level][digit], *run = queue->run_buffer + RUN_MAX;
    struct chunk *chunk = chunk_of(end);
    for (size_t taken = 0; chunk && taken < RUN_CHUNKS; taken++) {
        size_t n = (size_t)(end - chunk->event);
        run -= n;
        memcpy(run, chunk->event, n * sizeof *run);
        struct chunk *below = chunk->below;
        chunk_release(queue, chunk);
        chunk = below;
        end = chunk ? chunk->event + CHUNK_EVENTS : NULL;
    }
    bucket_truncate(queue, level, digit, chunk);
    queue->run = run;
    queue->run_end = queue->run_buffer + RUN_MAX;
    run_sort(run, queue->sort_buffer, (size_t)(queue->run_end - run));
    queue->base = event_key(run);
    queue->until = event_key(queue->run_end - 1);
}

/* Loads the next run. Returns false if no event is left. */
static bool run_load_next(struct sim_queue *queue)
{
    while (queue->levels != 0) {
        uint32_t level = (uint32_t)__builtin_ctz(queue->levels);
        uint32_t digit = (uint32_t)__builtin_ctzll(queue->filled[level]);
        if (level == 0 || chunk_of(queue->next[level][digit])->depth <= RUN_CHUNKS) {
            run_load(queue, level, digit);
            return true;
        }
        bucket_redistribute(queue, level, digit);
    }
    return false;
}

/* ---- the queue ---- */

struct sim_queue *sim_queue_new(bool plain)
{
    struct sim_queue *queue = os_memory_refused() ? NULL : calloc(1, sizeof *queue);
    if (!queue)
        return NULL;
    queue->bytes = sizeof *queue;
    queue->slab_bytes = SLAB_LEAST;
    queue->until = plain ? ~(key_word)0 : 0;
    return queue;
}

void sim_queue_free(struct sim_queue *queue)
{
    if (!queue)
        return;
    for (struct slab *slab = queue->oldest, *newer; slab; slab = newer) {
        newer = slab->newer;
        free(slab);
    }
    free(queue->heap);
    free(queue);
}

bool sim_queue_push(struct sim_queue *queue, struct sim_event event)
{
    assert(event.at_ns >= queue->last_ns);
    if (event_key(&event) <= queue->until)
        return heap_push(queue, event);
    if (queue->count == queue->count_max && !queue_add_slab(queue))
        return false;
    bucket_put(queue, &event);
    queue->count++;
    return true;
}

bool sim_queue_pop(struct sim_queue *queue, struct sim_event *event)
{
    bool run = queue->run < queue->run_end;
    if (!run && queue->heap_count == 0)
        run = run_load_next(queue);
    if (queue->heap_count > 0 && !(run && event_key(queue->run) < event_key(queue->heap))) {
        *event = heap_pop(queue);
    } else if (run) {
        *event = *queue->run++;
        queue->count--;
    } else {
        return false;
    }
    queue->last_ns = event->at_ns;
    return true;
}

bool sim_queue_peek_id(const struct sim_queue *queue, size_t offset, uint32_t *id)
{
    if (offset >= (size_t)(queue->run_end - queue->run))
        return false;
    *id = queue->run[offset].id;
    return true;
}

size_t sim_queue_count(const struct sim_queue *queue)
{
    return queue->count + queue->heap_count;
}

size_t sim_queue_bytes(const struct sim_queue *queue)
{
    return queue->bytes;
}
