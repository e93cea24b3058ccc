/* timers.c - timer queue: the wake-ups of many calls in one thread.
 *
 * A heap of pointers with four children per node: half as deep as a binary heap, and the four children are adjacent, so
 * a pop touches fewer cache lines. Each timer stores its position (from 1; 0 means "not set"), so moving or removing a
 * timer costs no more than setting it.
 *
 * Timers are ordered by (due_ns, order). Order numbers are unique, so the sequence is fully determined: timers due at
 * the same instant fire in the order in which they were set. Setting a timer to the instant that it already has keeps
 * its order number: a driver that executes every verdict does that often, and must not lose its turn by it. */
#include <bide/timers.h>

#include "memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define CHILDREN   4u
#define ROOM_FIRST 16u

static bool timer_is_before(const struct bide_timer *a, const struct bide_timer *b)
{
    return a->due_ns < b->due_ns || (a->due_ns == b->due_ns && a->order < b->order);
}

static void heap_place(struct bide_timers *queue, struct bide_timer *timer, size_t at)
{
    assert(at < queue->count && queue->count <= queue->room);
    queue->heap[at] = timer;
    timer->place = at + 1;
}

/* Returns true if the timer at this position is due no earlier than its parent, and no child is due earlier. */
__attribute__((unused)) static bool heap_is_ordered_at(const struct bide_timers *queue, size_t at)
{
    size_t child = at * CHILDREN + 1, end = child + CHILDREN < queue->count ? child + CHILDREN : queue->count;
    bool ordered = at == 0 || !timer_is_before(queue->heap[at], queue->heap[(at - 1) / CHILDREN]);
    for (; child < end; child++)
        ordered = ordered && !timer_is_before(queue->heap[child], queue->heap[at]);
    return ordered && queue->heap[at]->place == at + 1;
}

static void heap_sift_up(struct bide_timers *queue, struct bide_timer *timer, size_t at)
{
    while (at > 0 && timer_is_before(timer, queue->heap[(at - 1) / CHILDREN])) {
        heap_place(queue, queue->heap[(at - 1) / CHILDREN], at);
        at = (at - 1) / CHILDREN;
    }
    heap_place(queue, timer, at);
    assert(heap_is_ordered_at(queue, at));
}

/* Returns the earliest child of `at`; `count` if it has none. */
static size_t heap_first_child(const struct bide_timers *queue, size_t at)
{
    size_t best = at * CHILDREN + 1;
    if (best >= queue->count)
        return queue->count;
    for (size_t i = 1; i < CHILDREN && at * CHILDREN + 1 + i < queue->count; i++)
        if (timer_is_before(queue->heap[at * CHILDREN + 1 + i], queue->heap[best]))
            best = at * CHILDREN + 1 + i;
    return best;
}

static void heap_sift_down(struct bide_timers *queue, struct bide_timer *timer, size_t at)
{
    for (size_t child; (child = heap_first_child(queue, at)) < queue->count; at = child) {
        if (!timer_is_before(queue->heap[child], timer))
            break;
        heap_place(queue, queue->heap[child], at);
    }
    heap_place(queue, timer, at);
    assert(heap_is_ordered_at(queue, at));
}

/* Moves the timer up or down from a position whose neighbours are in order. */
static void heap_restore(struct bide_timers *queue, struct bide_timer *timer, size_t at)
{
    if (at > 0 && timer_is_before(timer, queue->heap[(at - 1) / CHILDREN]))
        heap_sift_up(queue, timer, at);
    else
        heap_sift_down(queue, timer, at);
}

static enum bide_err heap_grow(struct bide_timers *queue)
{
    if (queue->room > SIZE_MAX / 2 / sizeof(struct bide_timer *))
        return BIDE_ERR_NOMEM;
    size_t room = queue->room == 0 ? ROOM_FIRST : queue->room * 2;
    struct bide_timer **heap = os_memory(room, sizeof(struct bide_timer *));
    if (heap == NULL)
        return BIDE_ERR_NOMEM;
    if (queue->count > 0)
        memcpy(heap, queue->heap, queue->count * sizeof(struct bide_timer *));
    free(queue->heap);
    queue->heap = heap;
    queue->room = room;
    return BIDE_OK;
}

static enum bide_err timer_insert(struct bide_timers *queue, struct bide_timer *timer, int64_t due_ns)
{
    if (queue->count == queue->room && heap_grow(queue) != BIDE_OK)
        return BIDE_ERR_NOMEM;
    timer->due_ns = due_ns;
    timer->order = queue->order++;
    queue->count++;
    heap_sift_up(queue, timer, queue->count - 1);
    return BIDE_OK;
}

/* Fills the gap with the last timer of the heap. */
static void timer_remove(struct bide_timers *queue, struct bide_timer *timer)
{
    size_t at = timer->place - 1;
    assert(at < queue->count && queue->heap[at] == timer);
    struct bide_timer *last = queue->heap[--queue->count];
    timer->place = 0;
    if (last != timer)
        heap_restore(queue, last, at);
}

static void timer_reschedule(struct bide_timers *queue, struct bide_timer *timer, int64_t due_ns)
{
    if (due_ns == timer->due_ns)
        return;
    timer->due_ns = due_ns;
    timer->order = queue->order++;
    heap_restore(queue, timer, timer->place - 1);
}

void bide_timers_free(struct bide_timers *queue)
{
    if (queue == NULL)
        return;
    free(queue->heap); /* the timers are not touched: their memory may be gone */
    *queue = (struct bide_timers){0};
}

/* Returns true if the timer is in this queue. A position alone proves nothing: it may be left over from a freed
 * queue. */
static bool queue_holds(const struct bide_timers *queue, const struct bide_timer *timer)
{
    return timer->place != 0 && timer->place <= queue->count && queue->heap[timer->place - 1] == timer;
}

enum bide_err bide_timers_set(struct bide_timers *queue, struct bide_timer *timer, int64_t due_ns)
{
    bool is_set = queue_holds(queue, timer);
    if (due_ns != BIDE_NEVER && !is_set)
        return timer_insert(queue, timer, due_ns);
    if (due_ns != BIDE_NEVER)
        timer_reschedule(queue, timer, due_ns);
    else if (is_set)
        timer_remove(queue, timer);
    return BIDE_OK;
}

int64_t bide_timers_due_get(const struct bide_timers *queue)
{
    return queue->count > 0 ? queue->heap[0]->due_ns : BIDE_NEVER;
}

struct bide_timer *bide_timers_pop(struct bide_timers *queue, int64_t now_ns)
{
    if (queue->count == 0 || queue->heap[0]->due_ns > now_ns)
        return NULL;
    struct bide_timer *timer = queue->heap[0];
    timer_remove(queue, timer);
    return timer;
}
