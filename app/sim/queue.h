/* queue.h - the event queue: a priority queue in the order of (time, id, sequence).
 *
 * The order is total: two events that are equal in all three are the same event, so their order does not matter. Time
 * begins at 0 and never runs backwards: an event may be pushed for the instant popped last or later, not earlier (an
 * assertion).
 *
 * It is a monotone radix heap: events lie in buckets by the highest digit in which they differ from the event popped
 * last, in chunks that return to a free list, so that 25 million of them take little more than their 16 bytes each. The
 * lowest bucket is sorted once it is small enough and then popped from the front; events pushed into its span meanwhile
 * go to a small binary heap. `plain` makes the whole queue a binary heap: slower, and obviously correct. Tests compare
 * the two, and `bide sim` prints the same bytes with both. */
#ifndef SIM_QUEUE_H
#define SIM_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_event {
    int64_t at_ns;
    uint32_t id;  /* the owner: see state.h */
    uint32_t seq; /* defined by the owner */
};

struct sim_queue; /* opaque: created by sim_queue_new */

/* Returns NULL without memory. */
struct sim_queue *sim_queue_new(bool plain);
void sim_queue_free(struct sim_queue *queue); /* accepts NULL */

/* Returns false without memory; the queue is then unchanged. */
bool sim_queue_push(struct sim_queue *queue, struct sim_event event);

/* Removes the next event. Returns false if the queue is empty. */
bool sim_queue_pop(struct sim_queue *queue, struct sim_event *event);

/* Gets the id of the event at position `offset` after the next, for prefetching. Returns false if it is not known
 * without work. */
bool sim_queue_peek_id(const struct sim_queue *queue, size_t offset, uint32_t *id);

size_t sim_queue_count(const struct sim_queue *queue);

/* Returns the bytes allocated, touched or not. */
size_t sim_queue_bytes(const struct sim_queue *queue);

#endif
