/* queue.c - a monotone radix heap over (time, id, sequence).
 *
 * An event's key is a number of 128 bits: the time, then id and seq. Keys are read as digits of six bits, 11 of them in
 * each half, and compared with `base`, a key that no pending event outside the run and the side heap is below: an event
 * lies at the level of the highest digit in which it differs from base, in the bucket of its own digit there. Whatever
 * lies at a lower level, or at the same level in a lower bucket, comes before it. So the events to be given out next
 * are those of the lowest bucket of the lowest level that has any:
 *
 *     few    they are sorted and become the run, which is given out from its front; base is its first key
 *     many   base becomes the least of them, and they are put again: all of them fall to lower levels
 *
 * An event falls at most once per level and, as it skips levels that tell nothing apart, about log64(pending) times. A
 * herd of one instant is told apart by ids in the same way, whatever the order in which it was pushed.
 *
 * What is pushed into the span of the run, up to `until`, its last key, goes to a binary heap at its side; it is mostly
 * empty. With `until` at the end of all keys everything goes there: that is the plain queue.
 *
 * A bucket is a list of chunks of 1024 bytes, each at a multiple of 1024, so that the address of the next event says
 * whether the chunk is full and where it begins. Chunks are cut from slabs and go back to a free list. As pop cannot
 * fail, push makes sure that there are chunks for any way in which the pending events may come to lie. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "os/memory.h"

#include "queue.h"

#define DIGIT_BITS   6u
#define DIGITS       (1u << DIGIT_BITS)
#define HALF_LEVELS  11u /* digits of 64 bits: levels 0 to 10 are of id and seq, 11 to 21 of the time */
#define LEVELS       (2 * HALF_LEVELS)
#define BUCKETS      ((size_t)LEVELS * DIGITS)
#define CHUNK_BYTES  1024u
#define CHUNK_EVENTS (CHUNK_BYTES / 16 - 1) /* behind the head */
#define RUN_CHUNKS   32u
#define RUN_MAX      ((size_t)RUN_CHUNKS * CHUNK_EVENTS)
#define SLAB_LEAST   ((size_t)64 << 10) /* bytes of the first slab; each is twice the one before */
#define SLAB_MOST    ((size_t)32 << 20) /* ... up to this */
#define HUGE_PAGE    ((size_t)2 << 20)

typedef unsigned __int128 key_word;

struct chunk {
    struct chunk *below; /* full */
    uint64_t depth;      /* chunks of the bucket from here down, this one included */
    struct sim_event event[CHUNK_EVENTS];
};
static_assert(sizeof(struct chunk) == CHUNK_BYTES, "the address of the next event says whether the chunk is full");

/* The head of a slab takes the place of its first chunk. */
struct slab {
    struct slab *newer;
    char *fresh, *end; /* never used */
};

struct sim_queue {
    key_word base, until;
    struct sim_event *run, *run_end; /* what is left of the run; it lies in `one` */
    struct sim_event *heap;
    size_t heap_count, heap_room;
    size_t count, count_max; /* outside the heap; and how many there are chunks for */
    int64_t last_ns;         /* popped last */
    size_t bytes;
    /* buckets */
    uint32_t levels;                        /* a bit for each level that has any event */
    uint64_t filled[LEVELS];                /* a bit for each bucket that has any */
    struct sim_event *next[LEVELS][DIGITS]; /* where the next event goes; NULL: no chunk */
    /* chunks */
    struct chunk *spare;
    struct slab *oldest, *filling, *newest;
    size_t chunks;
    size_t slab_bytes;                                          /* of the next one */
    struct sim_event run_buffer[RUN_MAX], sort_buffer[RUN_MAX]; /* the other: room for sorting */
};

static uint64_t event_tie(const struct sim_event *event)
{
    return (uint64_t)event->id << 32 | event->seq;
}

static key_word event_key(const struct sim_event *event)
{
    return (key_word)(uint64_t)event->at_ns << 64 | event_tie(event);
}

/* ---- the heap at the side ---- */

static bool heap_has_room(struct sim_queue *queue)
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
    if (!heap_has_room(queue))
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

/* The hole at the top goes down to the bottom along the smaller children, and the last event goes up from there: it
 * nearly always belongs near the bottom. */
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

/* How many events so many chunks are enough for, however these come to lie: full chunks, one partly full for each
 * bucket or each event, and one that is read while its events are put elsewhere. */
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
        (void)madvise(slab, bytes, MADV_HUGEPAGE); /* without it, it is only slower */
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

/* There is one: push has seen to it. */
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

/* The chunk that ends at or after `next`, which is behind one of its events. */
static struct chunk *chunk_of(struct sim_event *next)
{
    uintptr_t last = (uintptr_t)next - 1;
    return (struct chunk *)(void *)((char *)next - 1 - last % CHUNK_BYTES);
}

/* ---- buckets ---- */

static bool chunk_is_full(const struct sim_event *next)
{
    return (uintptr_t)next % CHUNK_BYTES == 0; /* or there is no chunk yet */
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

/* Puts an event, which is at base or later, into its bucket. */
static inline void bucket_put(struct sim_queue *queue, const struct sim_event *event)
{
    uint64_t half = (uint64_t)event->at_ns, differs = half ^ (uint64_t)(queue->base >> 64);
    uint32_t level = HALF_LEVELS;
    if (differs == 0) {
        half = event_tie(event);
        differs = (half ^ (uint64_t)queue->base) | 1; /* base itself lies at level 0 too */
        level = 0;
    }
    uint32_t place = (63 - (uint32_t)__builtin_clzll(differs)) / DIGIT_BITS;
    uint32_t digit = half >> place * DIGIT_BITS & (DIGITS - 1);
    level += place;
    if (chunk_is_full(queue->next[level][digit]))
        bucket_open_chunk(queue, level, digit);
    *queue->next[level][digit]++ = *event;
}

/* The end of a bucket is moved back to the end of a full chunk, or to nothing. */
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
    key_word least = event_key(&chunk->event[0]);
    for (; chunk; chunk = chunk->below, end = chunk ? chunk->event + CHUNK_EVENTS : NULL)
        for (const struct sim_event *event = chunk->event; event < end; event++) {
            key_word key = event_key(event);
            least = key < least ? key : least;
        }
    return least;
}

/* Puts the events of the lowest bucket again, from the least of them. */
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
#define INSERTION_MAX 16u /* are sorted by insertion */

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

/* What a sort needs to know: the ends of the keys, and whether there is anything to do. */
struct extent {
    key_word least, most;
    bool sorted;
};

static struct extent extent_of(const struct sim_event *event, size_t n)
{
    struct extent extent = {event_key(event), event_key(event), true};
    key_word last = extent.least;
    for (size_t i = 1; i < n; i++) {
        key_word key = event_key(&event[i]);
        extent.sorted &= last <= key;
        extent.least = key < extent.least ? key : extent.least;
        extent.most = key > extent.most ? key : extent.most;
        last = key;
    }
    return extent;
}

/* One half of a key, counted from `least` in slots of 2^shift: events of a later slot come later. */
struct ruler {
    bool by_time;
    uint64_t least;
    uint32_t shift;
};

/* At least n slots, up to SLOTS, for keys that are not all equal. */
static struct ruler ruler_for(const struct extent *extent, size_t n)
{
    uint64_t length = (uint64_t)(extent->most >> 64) - (uint64_t)(extent->least >> 64);
    struct ruler ruler = {.by_time = length > 0, .least = (uint64_t)(extent->least >> 64)};
    if (!ruler.by_time) {
        ruler.least = (uint64_t)extent->least;
        length = (uint64_t)extent->most - ruler.least;
    }
    uint32_t bits = 64 - (uint32_t)__builtin_clzll(n), length_bits = 64 - (uint32_t)__builtin_clzll(length);
    bits = bits < SLOT_BITS ? bits : SLOT_BITS;
    ruler.shift = length_bits > bits ? length_bits - bits : 0;
    return ruler;
}

static inline size_t ruler_slot(const struct ruler *ruler, const struct sim_event *event)
{
    uint64_t half = ruler->by_time ? (uint64_t)event->at_ns : event_tie(event);
    return (size_t)((half - ruler->least) >> ruler->shift);
}

/* Sorts the events by slot; end[i] becomes the end of slot i. */
static void sort_by_slot(struct sim_event *event, struct sim_event *room, size_t n, const struct ruler *ruler,
                         uint16_t end[SLOTS])
{
    memset(end, 0, SLOTS * sizeof *end);
    for (size_t i = 0; i < n; i++)
        end[ruler_slot(ruler, &event[i])]++;
    size_t sum = 0;
    for (size_t i = 0; i < SLOTS; i++) {
        size_t count = end[i];
        end[i] = (uint16_t)sum; /* its begin, for now */
        sum += count;
    }
    for (size_t i = 0; i < n; i++)
        room[end[ruler_slot(ruler, &event[i])]++] = event[i];
    memcpy(event, room, n * sizeof *event);
}

/* By slots, of which there are about as many as events: most then hold few. One that holds many is sorted in the same
 * way, by slots that are so many times finer; it has fewer events, as the least and the most are never in one slot. */
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

/* Makes events of the lowest bucket the run: all of them, or, where all are equal, as many as it can hold. The oldest
 * chunk comes first: what was pushed in order is in order. */
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

/* The next run; false: nothing is left. */
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
