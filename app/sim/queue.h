/* queue.h - what happens next: events in the order of (time, id, sequence).
 *
 * The order is total: two events that are equal in all three are the same event, and nothing depends on which of them
 * comes first. Time begins at 0 and never runs backwards: an event may be pushed for the instant that was popped last
 * or for later, not for earlier (an assertion).
 *
 * It is a monotone radix heap: events lie in buckets by the highest digit in which they differ from the one popped
 * last, in chunks that go back to a free list, so that 25 million of them take little more than their 16 bytes each.
 * The lowest bucket is sorted when it is small enough and then given out from the front, with what is pushed into its
 * span meanwhile in a small binary heap beside it. `plain` makes the whole of it a binary heap: slower, and obviously
 * right; tests hold one against the other, and `bide sim` gives the same bytes with both. */
#ifndef SIM_QUEUE_H
#define SIM_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_event {
    int64_t at_ns;
    uint32_t id;  /* who */
    uint32_t seq; /* what: the owner's own numbering */
};

struct sim_queue; /* opaque: made by sim_queue_new */

/* NULL: no memory. */
struct sim_queue *sim_queue_new(bool plain);
void sim_queue_free(struct sim_queue *queue); /* accepts NULL */

/* False: no memory; nothing was changed. */
bool sim_queue_push(struct sim_queue *queue, struct sim_event event);

/* The next event; false: there is none. */
bool sim_queue_pop(struct sim_queue *queue, struct sim_event *event);

/* Ids of events that will be popped soon, for prefetching what belongs to them: the one that is `ahead` places behind
 * the next, as far as that is known without work; false: not known. */
bool sim_queue_peek_id(const struct sim_queue *queue, size_t offset, uint32_t *id);

size_t sim_queue_count(const struct sim_queue *queue);

/* Bytes held now, whether they were ever touched or not. */
size_t sim_queue_bytes(const struct sim_queue *queue);

#endif
