/* timers.h - a queue for the wake-ups of many calls in one thread.
 *
 * A timer is a small struct inside the caller's own; the queue holds pointers to the timers that are set, ordered by
 * due time, then by the order in which they were set. To execute a verdict, call bide_timers_set(q, t, v.wake_ns);
 * BIDE_NEVER removes the timer. Setting a timer to its present instant keeps its turn. A timer must be removed before
 * its memory is released.
 *
 * Threads: a queue is used by one thread at a time; use a queue per event loop. */
#ifndef BIDE_TIMERS_H
#define BIDE_TIMERS_H

#include <bide/base.h>

BIDE_BEGIN_DECLS

/* Final: its size will not change. */
struct bide_timer {
    int64_t due_ns;
    uint64_t order; /* private: breaks ties */
    size_t place;   /* private: index in the heap, from 1; 0: the timer is not set */
};

/* Private, except for its zero value. Final: its size will not change. */
struct bide_timers {
    struct bide_timer **heap;
    size_t count;
    size_t room;
    uint64_t order;
};

/* A zeroed struct bide_timers is an empty queue, a zeroed struct bide_timer is not set. */
BIDE_API void bide_timers_free(struct bide_timers *queue); /* frees the queue, not the caller's timers */

/* Sets, moves or (BIDE_NEVER) removes a timer. BIDE_ERR_NOMEM changes nothing. Moving and removing never fail. */
BIDE_API enum bide_err bide_timers_set(struct bide_timers *queue, struct bide_timer *timer, int64_t due_ns);

/* Returns when the first timer is due; BIDE_NEVER: none is set. */
BIDE_API int64_t bide_timers_due_get(const struct bide_timers *queue);

/* Removes and returns the first timer that is due at now_ns; NULL: none is. */
BIDE_API struct bide_timer *bide_timers_pop(struct bide_timers *queue, int64_t now_ns);

BIDE_END_DECLS
#endif
