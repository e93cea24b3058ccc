/* ring.c - a lock-free ring of bytes: many producers, one consumer. See ring.h.
 *
 *     tail                                       head
 *      v                                          v
 *      [header|record][header|record][0    |.....][free ...
 *                                     ^ reserved, not published
 *
 * A record is contiguous and begins with a header word: its size, or its size and PADDING for the rest of the memory
 * behind the last record that fits before the end. All sizes are multiples of 8, so a header never straddles the end.
 *
 * INVARIANT: every byte between head and tail + capacity is zero. So a header that was reserved reads 0 until its
 * producer publishes it. The memory begins as zeros, and the consumer clears a record before it advances the tail.
 *
 * RACE of two producers that reserve: both compute a place from the same head; the compare-and-swap lets one of them
 * have it, the other repeats with the new head. So no two places overlap. Positions never wrap, so a head that was
 * loaded long ago cannot be mistaken for the current head (no ABA).
 *
 * RACE of a producer that reserves with the consumer that frees: the producer loads the tail with acquire after the
 * head; the consumer stores it with release after it has cleared the bytes. A producer that gets a place saw the tail
 * that made it free, thus also sees its bytes cleared, and the consumer does not touch them again before it has seen
 * the header. A tail that is already out of date only makes the ring seem fuller. If the head is out of date, the tail
 * may have passed it: the difference is negative, the ring does not seem full, and the compare-and-swap fails. If the
 * ring seems full with a head that is out of date, it was full when the tail was loaded: the head at that instant was
 * not lower.
 *
 * RACE of a producer that publishes with the consumer that reads: the header is stored with release after the record,
 * and loaded with acquire before it. Records are read in the order in which they were reserved: one that is not yet
 * published holds up those behind it, which wait, and are not lost.
 *
 * RACE of a producer that publishes with the consumer that falls asleep (a lost wake-up): the consumer stores wake_at,
 * then loads the head; a producer changes the head, then loads wake_at. All four are sequentially consistent, so at
 * least one of both sees the store of the other: the consumer sees the new head and does not sleep, or the producer
 * sees wake_at and wakes it. Of all producers exactly one reserves the bytes at position wake_at, because their places
 * partition the positions: one wake-up for each announcement. That producer wakes the consumer after it has published;
 * producers before it may not have: then the consumer looks again soon (thread.c) instead of sleeping until the next
 * batch.
 *
 * KNOWN WEAKNESS: a thread that is stopped for ever between reserving and publishing (a debugger) stops the export. The
 * ring fills, later records are dropped and counted; calls go on.
 *
 * fork: the child has a copy of the ring, perhaps with places that no thread of the child will publish. Nothing reads
 * that copy: listener.c writes no records in a child, and a start in the child makes a new ring. */
#include "ring.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define PADDING UINT64_C(1) /* in a header; sizes are multiples of 8 */

bool telemetry_ring_init(struct telemetry_ring *ring, uint64_t capacity)
{
    uint64_t size = 65536;
    while (size < capacity)
        size *= 2;
    *ring = (struct telemetry_ring){.bytes = calloc(1, size), .mask = size - 1, .wake_at = TELEMETRY_RING_NO_WAKE};
    assert(((uintptr_t)ring->bytes & 7) == 0);
    return ring->bytes != NULL;
}

void telemetry_ring_free(struct telemetry_ring *ring)
{
    free(ring->bytes);
    ring->bytes = NULL;
}

static uint64_t *ring_header(const struct telemetry_ring *ring, uint64_t position)
{
    assert((position & 7) == 0);
    return (uint64_t *)(void *)(ring->bytes + (position & ring->mask));
}

void telemetry_ring_pad(struct telemetry_ring *ring, uint64_t position, uint64_t size)
{
    __atomic_store_n(ring_header(ring, position), size | PADDING, __ATOMIC_RELEASE);
}

/* Frees `size` bytes from the tail: clears them, then lets producers have them. */
static void ring_release(struct telemetry_ring *ring, uint64_t size)
{
    uint64_t tail = __atomic_load_n(&ring->tail, __ATOMIC_RELAXED);
    memset(ring_header(ring, tail), 0, size);
    __atomic_store_n(&ring->tail, tail + size, __ATOMIC_RELEASE);
}

static uint64_t ring_oldest(const struct telemetry_ring *ring)
{
    return __atomic_load_n(ring_header(ring, __atomic_load_n(&ring->tail, __ATOMIC_RELAXED)), __ATOMIC_ACQUIRE);
}

const void *telemetry_ring_peek(struct telemetry_ring *ring, size_t *size)
{
    uint64_t header = ring_oldest(ring);
    while (header & PADDING) {
        ring_release(ring, header & ~PADDING);
        header = ring_oldest(ring);
    }
    *size = header > 0 ? header - TELEMETRY_RING_HEADER : 0;
    return header > 0 ? ring_header(ring, __atomic_load_n(&ring->tail, __ATOMIC_RELAXED)) + 1 : NULL;
}

void telemetry_ring_pop(struct telemetry_ring *ring)
{
    uint64_t header = ring_oldest(ring);
    assert(header > 0 && (header & PADDING) == 0);
    ring_release(ring, header);
}

/* The position one capacity behind the tail is that of the tail again. */
const void *telemetry_ring_look_ahead(struct telemetry_ring *ring)
{
    uint64_t tail = __atomic_load_n(&ring->tail, __ATOMIC_RELAXED), header = PADDING, at = 0;
    if (ring->ahead < tail)
        ring->ahead = tail;
    while ((header & PADDING) && ring->ahead - tail <= ring->mask) {
        at = ring->ahead;
        header = __atomic_load_n(ring_header(ring, at), __ATOMIC_ACQUIRE);
        ring->ahead += header & ~PADDING;
    }
    return header == 0 || (header & PADDING) ? NULL : ring_header(ring, at) + 1;
}

bool telemetry_ring_has_passed(const struct telemetry_ring *ring)
{
    return ring->ahead > __atomic_load_n(&ring->tail, __ATOMIC_RELAXED);
}

/* Position wake_at is the last byte of what the consumer waits for. */
bool telemetry_ring_sleep(struct telemetry_ring *ring, uint64_t pending)
{
    uint64_t wake_at = __atomic_load_n(&ring->tail, __ATOMIC_RELAXED) + pending - 1;
    assert(pending > 0);
    __atomic_store_n(&ring->wake_at, wake_at, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&ring->head, __ATOMIC_SEQ_CST) <= wake_at)
        return true;
    telemetry_ring_awake(ring);
    return false;
}

void telemetry_ring_awake(struct telemetry_ring *ring)
{
    __atomic_store_n(&ring->wake_at, TELEMETRY_RING_NO_WAKE, __ATOMIC_RELAXED);
}

uint64_t telemetry_ring_pending(const struct telemetry_ring *ring)
{
    return __atomic_load_n(&ring->head, __ATOMIC_RELAXED) - __atomic_load_n(&ring->tail, __ATOMIC_RELAXED);
}
