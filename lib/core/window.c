/* window.c - sums over a sliding window of ten slots: see window.h. */
#include "window.h"

static uint64_t slot_pack(uint64_t epoch, uint64_t value)
{
    uint64_t word = core_epoch_tag(epoch) << CORE_SLOT_VALUE_BITS | (value & CORE_SLOT_VALUE_MASK);
    core_assert(core_slot_is_of_epoch(word, epoch) && !core_slot_is_of_epoch(word, epoch + BIDE_SLOTS));
    return word;
}

/* Begins a slot by one CAS, unless it has begun. Returns false if another thread changed the word first. */
static bool slot_try_begin(uint64_t *word, uint64_t epoch, uint64_t value)
{
    uint64_t old = core_load(word);
    return core_slot_is_of_epoch(old, epoch) || core_cas(word, &old, slot_pack(epoch, value));
}

/* A CAS fails because another thread began this slot, began a later slot in its place, or removed a count that has just
 * left the window (core_window_remove). In all three cases the epoch is computed again: the edge may have moved on.
 *
 * The CAS in core_raise publishes the slot to threads that load the edge with acquire. The edge never moves back: a
 * thread that is late by a slot or more finds a later edge, and then adds to and sums up to the latest slot, as all
 * other threads do.
 *
 * Known weakness: a thread that stalls for a whole window between computing the epoch and loading the slot's word finds
 * the word of the slot one window later, and its CAS replaces it: the counts of that slot are lost. */
void core_window_begin_slot(struct core_window w, struct core_marks marks, int64_t now_ns)
{
    uint64_t epoch, i;
    do {
        epoch = core_epoch_of(w, now_ns);
        i = epoch % BIDE_SLOTS;
    } while (!slot_try_begin(&w.words->mark[i], epoch, marks.mark) ||
             !slot_try_begin(&w.words->count[i], epoch, marks.count));
    core_raise(&w.words->edge_ns, (int64_t)((epoch + 1) * (uint64_t)w.slot_ns));
}

uint32_t core_window_add(struct core_window w, int64_t now_ns)
{
    uint64_t word = core_add(&w.words->count[core_epoch_of(w, now_ns) % BIDE_SLOTS], 1);
    return (uint32_t)(word >> CORE_SLOT_VALUE_BITS);
}

/* Searches all ten slots: the index of a slot follows from the full epoch, of which a charge keeps only the low
 * bits. */
void core_window_remove(struct core_window w, uint32_t epoch)
{
    for (uint32_t i = 0; i < BIDE_SLOTS; i++) {
        uint64_t word = core_load(&w.words->count[i]);
        while (word >> CORE_SLOT_VALUE_BITS == epoch && (word & CORE_SLOT_VALUE_MASK) > 0)
            if (core_cas(&w.words->count[i], &word, word - 1))
                return;
    }
}

uint64_t core_window_sum(struct core_window w, int64_t now_ns)
{
    uint64_t sum = 0, epoch = core_epoch_of(w, now_ns), i = epoch % BIDE_SLOTS;
    for (uint64_t age = 0; age<BIDE_SLOTS; age++, i = i> 0 ? i - 1 : BIDE_SLOTS - 1) {
        uint64_t word = core_load(&w.words->count[i]);
        sum += core_slot_is_of_epoch(word, epoch - age) ? word & CORE_SLOT_VALUE_MASK : 0;
    }
    return sum;
}
