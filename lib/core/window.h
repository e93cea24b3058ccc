/* window.h - sums over a sliding window of ten slots, cheap to add to.
 *
 * Two ways of counting share the slots. Retries of a window budget are counted in the slot itself: `count`. All else is
 * counted in ever-growing totals, most of them spread over lanes; the slot only remembers the totals when it began:
 * `mark`, and `count` as a second mark. What happened in the window is then the total now less the mark of the oldest
 * slot.
 *
 * A slot word is an epoch (24 bits, the highest always set) and a value (40 bits). A slot whose epoch is not the
 * expected one is empty: nobody has to clear it. An entry lives between 0.9 and 1.0 of the window. Whoever comes first
 * in a new slot begins it; the others only compare the time with edge_ns. */
#ifndef CORE_WINDOW_H
#define CORE_WINDOW_H

#include <bide/target.h>

#include "atomic.h"

struct core_window {
    struct bide_window_words_ *words;
    int64_t slot_ns;
};

/* Never without length: a target in shared memory may be zeroed under a call, by whoever truncates its file. */
static inline struct core_window core_window(const struct bide_window_words_ *words, int64_t window_ns)
{
    int64_t slot_ns = window_ns / (int64_t)BIDE_SLOTS;
    return (struct core_window){(struct bide_window_words_ *)(uintptr_t)words, slot_ns + (slot_ns == 0)};
}

static inline bool core_window_is_current(const struct bide_window_words_ *words, int64_t now_ns)
{
    return now_ns < (int64_t)core_load_acquire(&words->edge_ns);
}

struct core_marks {
    uint64_t mark;
    uint64_t count;
};

/* Begins the slot of now, if nobody has yet, with these values. */
void core_window_begin_slot(struct core_window w, struct core_marks marks, int64_t now_ns);

/* Adds one to `count` of the present slot, which must have begun. Returns the slot's epoch, to take it back. */
uint32_t core_window_add(struct core_window w, int64_t now_ns);

/* Takes one back, if that slot is still the one it was counted in. */
void core_window_remove(struct core_window w, uint32_t epoch);

/* All counts in the window. */
uint64_t core_window_sum(struct core_window w, int64_t now_ns);

/* The marks of the oldest slot in the window; those given when no slot is in it. */
struct core_marks core_window_oldest_marks(struct core_window w, struct core_marks otherwise, int64_t now_ns);

/* total - mark in the 40 bits that a slot keeps. */
uint64_t core_window_difference(uint64_t total, uint64_t mark);

#endif
