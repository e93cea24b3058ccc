/* window.h - sums over a sliding window of ten slots, cheap to add to.
 *
 * Two ways of counting share the slots. Retries of a window budget are counted in the slot itself: `count`. Everything
 * else is counted in totals that only grow, most of them spread over lanes; a slot stores the totals at its beginning,
 * as `mark` and, for a second total, `count`. The sum over the window is then the present total minus the mark of the
 * oldest slot.
 *
 * A slot word is an epoch (24 bits, the highest always set) and a value (40 bits). A slot with another epoch than
 * expected is empty, so no thread has to clear it. An entry lives between 0.9 and 1.0 of the window. The first thread
 * that comes in a new slot begins it; all others only compare the time with edge_ns. */
#ifndef CORE_WINDOW_H
#define CORE_WINDOW_H

#include <bide/target.h>

#include "assert.h"
#include "atomic.h"

struct core_window {
    struct bide_window_words_ *words;
    int64_t slot_ns;
};

/* The window is at least 10 ns long, so a slot is never 0. */
static inline struct core_window core_window(const struct bide_window_words_ *words, int64_t window_ns)
{
    core_assert(window_ns >= (int64_t)BIDE_SLOTS && window_ns <= BIDE_DURATION_MAX);
    return (struct core_window){(struct bide_window_words_ *)(uintptr_t)words, window_ns / (int64_t)BIDE_SLOTS};
}

static inline bool core_window_is_current(const struct bide_window_words_ *words, int64_t now_ns)
{
    return now_ns < (int64_t)core_load_acquire(&words->edge_ns);
}

struct core_marks {
    uint64_t mark;
    uint64_t count;
};

/* Begins the slot of now with these values, unless another thread has begun it. */
void core_window_begin_slot(struct core_window w, struct core_marks marks, int64_t now_ns);

/* Adds one to `count` of the current slot, which must have begun. Returns the epoch of the slot, for
 * core_window_remove. */
uint32_t core_window_add(struct core_window w, int64_t now_ns);

/* Subtracts one from `count` of the slot with that epoch, unless a later epoch has taken the slot. */
void core_window_remove(struct core_window w, uint32_t epoch);

/* Returns the sum of all counts in the window. */
uint64_t core_window_sum(struct core_window w, int64_t now_ns);

/* Returns the marks of the oldest slot in the window, or `otherwise` if the window has none. */
struct core_marks core_window_oldest_marks(struct core_window w, struct core_marks otherwise, int64_t now_ns);

/* Returns total - mark in the 40 bits that a slot stores. */
uint64_t core_window_difference(uint64_t total, uint64_t mark);

#endif
