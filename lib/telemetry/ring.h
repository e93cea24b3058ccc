/* ring.h - a bounded queue of records, from the threads of calls to the thread that exports: many producers, one
 * consumer, no lock.
 *
 * A producer reserves room, writes its record there, and publishes it; it never waits. If the ring is full, it gets no
 * room: the newest record is dropped, so that the records that stay are a whole prefix of what happened. (With a
 * log, the consumer gives up old spans before the ring is full: thread.c.) */
#ifndef TELEMETRY_RING_H
#define TELEMETRY_RING_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TELEMETRY_RING_NO_WAKE UINT64_MAX

/* Positions count bytes since the beginning and never wrap (at 10 GB/s in 58 years). */
struct telemetry_ring {
    /* Set before the first use. */
    unsigned char *bytes;
    uint64_t mask; /* capacity - 1; the capacity is a power of two */
    /* Written by producers: on a cache line of its own. */
    uint64_t head __attribute__((aligned(64))); /* where the next record begins */
    /* Written by the consumer. */
    uint64_t tail __attribute__((aligned(64))); /* where the oldest record begins; before it all is free */
    uint64_t ahead;   /* only the consumer's: what it has looked at; behind the tail: nothing yet */
    uint64_t wake_at; /* the producer whose record reaches beyond this position wakes the consumer */
};

#define TELEMETRY_RING_HEADER sizeof(uint64_t)

/* A place in the ring that a producer has reserved. */
struct telemetry_place {
    void *at;            /* 8-byte aligned, zero; NULL: the ring is full */
    uint64_t size;       /* header included */
    uint64_t begin, end; /* positions */
};

/* Allocates a ring of at least `capacity` bytes (a multiple of 64 KiB; rounded up to a power of two). Returns false if
 * there is no memory. */
bool telemetry_ring_init(struct telemetry_ring *ring, uint64_t capacity);
void telemetry_ring_free(struct telemetry_ring *ring);

/* Marks the rest of the memory, behind the last record that fits, as padding. */
void telemetry_ring_pad(struct telemetry_ring *ring, uint64_t position, uint64_t size);

/* Producer: reserves room for a record of that size, at most a quarter of the capacity. Inline, like publish: it is
 * part of every call. */
static inline struct telemetry_place telemetry_ring_reserve(struct telemetry_ring *ring, size_t size)
{
    uint64_t capacity = ring->mask + 1, need = (TELEMETRY_RING_HEADER + size + 7) & ~UINT64_C(7), begin, rest;
    uint64_t head = __atomic_load_n(&ring->head, __ATOMIC_RELAXED);
    assert(need <= capacity / 4);
    do {
        uint64_t tail = __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE);
        rest = capacity - (head & ring->mask); /* until the end of the memory */
        begin = rest >= need ? head : head + rest;
        if ((int64_t)(begin + need - tail) > (int64_t)capacity)
            return (struct telemetry_place){0};
    } while (!__atomic_compare_exchange_n(&ring->head, &head, begin + need, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
    if (begin != head)
        telemetry_ring_pad(ring, head, rest);
    return (struct telemetry_place){.at = ring->bytes + (begin & ring->mask) + TELEMETRY_RING_HEADER,
                                    .size = need,
                                    .begin = head,
                                    .end = begin + need};
}

/* Producer: publishes the record. Returns true if the consumer sleeps and is to be woken by this producer. */
static inline bool telemetry_ring_publish(struct telemetry_ring *ring, const struct telemetry_place *place)
{
    uint64_t *header = (uint64_t *)place->at - 1;
    assert(__atomic_load_n(header, __ATOMIC_RELAXED) == 0);
    __atomic_store_n(header, place->size, __ATOMIC_RELEASE);
    uint64_t wake_at = __atomic_load_n(&ring->wake_at, __ATOMIC_SEQ_CST);
    return place->begin <= wake_at && wake_at < place->end;
}

/* Consumer: returns the oldest record and its size, rounded up to a multiple of 8; NULL: there is none, or its producer
 * has not published it yet. */
const void *telemetry_ring_peek(struct telemetry_ring *ring, size_t *size);

/* Consumer: frees the record that peek returned. */
void telemetry_ring_pop(struct telemetry_ring *ring);

/* Consumer: returns the oldest record that neither this function nor pop has passed, and passes it; it stays in the
 * ring. NULL: there is none, or it is not published yet. */
const void *telemetry_ring_look_ahead(struct telemetry_ring *ring);

/* Consumer: returns true if look_ahead has passed the oldest record. */
bool telemetry_ring_has_passed(const struct telemetry_ring *ring);

/* Consumer: announces that it sleeps, and wants to be woken when `pending` bytes are in the ring. Returns false if they
 * are there already: then nothing was announced. */
bool telemetry_ring_sleep(struct telemetry_ring *ring, uint64_t pending);

/* Consumer: withdraws the announcement. */
void telemetry_ring_awake(struct telemetry_ring *ring);

/* Returns how many bytes are reserved or published. */
uint64_t telemetry_ring_pending(const struct telemetry_ring *ring);

#endif
