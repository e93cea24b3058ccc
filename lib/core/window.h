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
#include "saturate.h"

#define CORE_SLOT_VALUE_BITS 40
#define CORE_SLOT_VALUE_MASK ((UINT64_C(1) << CORE_SLOT_VALUE_BITS) - 1)
#define CORE_SLOT_EPOCH_MASK UINT64_C(0x7fffff)

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

/* Returns total - mark in the bits that a slot stores. A mark may exceed the total, if another thread set it after the
 * total was summed: then the difference is 0. */
static inline uint64_t core_window_difference(uint64_t total, uint64_t mark)
{
    uint64_t since = (total - mark) & CORE_SLOT_VALUE_MASK;
    return since <= CORE_SLOT_VALUE_MASK / 2 ? since : 0;
}

/* Two threads read the clock at slightly different times: an instant before the current slot counts as its
 * beginning. */
static inline uint64_t core_epoch_of(struct core_window w, int64_t now_ns)
{
    int64_t begun_ns = core_max((int64_t)core_load(&w.words->edge_ns), 0) - w.slot_ns;
    core_assert(now_ns >= 0 && w.slot_ns > 0);
    return (uint64_t)core_max(now_ns, begun_ns) / (uint64_t)w.slot_ns;
}

/* The epoch as a slot stores it: never 0, so that a cleared word belongs to no epoch. */
static inline uint64_t core_epoch_tag(uint64_t epoch)
{
    return (epoch & CORE_SLOT_EPOCH_MASK) | (CORE_SLOT_EPOCH_MASK + 1);
}

static inline bool core_slot_is_of_epoch(uint64_t word, uint64_t epoch)
{
    return word >> CORE_SLOT_VALUE_BITS == core_epoch_tag(epoch);
}

/* Returns the marks of the oldest slot in the window, or `otherwise` if the window has none. */
static inline struct core_marks core_window_oldest_marks(struct core_window w, struct core_marks otherwise,
                                                         int64_t now_ns)
{
    uint64_t epoch = core_epoch_of(w, now_ns) - (BIDE_SLOTS - 1);
    for (uint32_t n = 0; n < BIDE_SLOTS; n++, epoch++) {
        uint64_t mark = core_load(&w.words->mark[epoch % BIDE_SLOTS]);
        if (core_slot_is_of_epoch(mark, epoch))
            return (struct core_marks){mark & CORE_SLOT_VALUE_MASK,
                                       core_load(&w.words->count[epoch % BIDE_SLOTS]) & CORE_SLOT_VALUE_MASK};
    }
    return otherwise;
}

#endif
