/* window.c - sums over a sliding window of ten slots: see window.h. */
#include "window.h"

#include "saturate.h"

#define VALUE_BITS 40
#define VALUE_MASK ((UINT64_C(1) << VALUE_BITS) - 1)
#define EPOCH_MASK UINT64_C(0x7fffff)

/* Two threads read the clock at slightly different times: an instant before the current slot counts as its
 * beginning. */
static uint64_t epoch_of(struct core_window w, int64_t now_ns)
{
    int64_t begun_ns = core_max((int64_t)core_load(&w.words->edge_ns), 0) - w.slot_ns;
    core_assert(now_ns >= 0 && w.slot_ns > 0);
    return (uint64_t)core_max(now_ns, begun_ns) / (uint64_t)w.slot_ns;
}

/* The epoch as a slot stores it: never 0, so that a cleared word belongs to no epoch. */
static uint64_t epoch_tag(uint64_t epoch)
{
    return (epoch & EPOCH_MASK) | (EPOCH_MASK + 1);
}

static bool slot_is_of_epoch(uint64_t word, uint64_t epoch)
{
    return word >> VALUE_BITS == epoch_tag(epoch);
}

static uint64_t slot_pack(uint64_t epoch, uint64_t value)
{
    uint64_t word = epoch_tag(epoch) << VALUE_BITS | (value & VALUE_MASK);
    core_assert(slot_is_of_epoch(word, epoch) && !slot_is_of_epoch(word, epoch + BIDE_SLOTS));
    return word;
}

/* Begins a slot by one CAS, unless it has begun. Returns false if another thread changed the word first. */
static bool slot_try_begin(uint64_t *word, uint64_t epoch, uint64_t value)
{
    uint64_t old = core_load(word);
    return slot_is_of_epoch(old, epoch) || core_cas(word, &old, slot_pack(epoch, value));
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
        epoch = epoch_of(w, now_ns);
        i = epoch % BIDE_SLOTS;
    } while (!slot_try_begin(&w.words->mark[i], epoch, marks.mark) ||
             !slot_try_begin(&w.words->count[i], epoch, marks.count));
    core_raise(&w.words->edge_ns, (int64_t)((epoch + 1) * (uint64_t)w.slot_ns));
}

uint32_t core_window_add(struct core_window w, int64_t now_ns)
{
    uint64_t word = core_add(&w.words->count[epoch_of(w, now_ns) % BIDE_SLOTS], 1);
    return (uint32_t)(word >> VALUE_BITS);
}

/* Searches all ten slots: the index of a slot follows from the full epoch, of which a charge keeps only the low
 * bits. */
void core_window_remove(struct core_window w, uint32_t epoch)
{
    for (uint32_t i = 0; i < BIDE_SLOTS; i++) {
        uint64_t word = core_load(&w.words->count[i]);
        while (word >> VALUE_BITS == epoch && (word & VALUE_MASK) > 0)
            if (core_cas(&w.words->count[i], &word, word - 1))
                return;
    }
}

uint64_t core_window_sum(struct core_window w, int64_t now_ns)
{
    uint64_t sum = 0, epoch = epoch_of(w, now_ns), i = epoch % BIDE_SLOTS;
    for (uint64_t age = 0; age<BIDE_SLOTS; age++, i = i> 0 ? i - 1 : BIDE_SLOTS - 1) {
        uint64_t word = core_load(&w.words->count[i]);
        sum += slot_is_of_epoch(word, epoch - age) ? word & VALUE_MASK : 0;
    }
    return sum;
}

struct core_marks core_window_oldest_marks(struct core_window w, struct core_marks otherwise, int64_t now_ns)
{
    uint64_t epoch = epoch_of(w, now_ns) - (BIDE_SLOTS - 1);
    for (uint32_t n = 0; n < BIDE_SLOTS; n++, epoch++) {
        uint64_t mark = core_load(&w.words->mark[epoch % BIDE_SLOTS]);
        if (slot_is_of_epoch(mark, epoch))
            return (struct core_marks){mark & VALUE_MASK, core_load(&w.words->count[epoch % BIDE_SLOTS]) & VALUE_MASK};
    }
    return otherwise;
}

/* A mark may exceed the total, if another thread set it after the total was summed: then the difference is 0. */
uint64_t core_window_difference(uint64_t total, uint64_t mark)
{
    uint64_t since = (total - mark) & VALUE_MASK;
    return since <= VALUE_MASK / 2 ? since : 0;
}
