/* window.c - sums over a sliding window of ten slots: see window.h. */
#include "window.h"

#define VALUE_BITS 40
#define VALUE      ((UINT64_C(1) << VALUE_BITS) - 1)
#define EPOCHS     UINT64_C(0x7fffff)

/* Clocks of two threads differ a little: a now from before the present slot counts as its beginning. */
static uint64_t epoch_of(struct core_window w, int64_t now_ns)
{
    int64_t begun_ns = (int64_t)core_load(&w.words->edge_ns) - w.slot_ns;
    return (uint64_t)(now_ns > begun_ns ? now_ns : begun_ns) / (uint64_t)w.slot_ns;
}

/* As a slot keeps it: never 0, so that a cleared word is of no epoch. */
static uint64_t short_of(uint64_t epoch)
{
    return (epoch & EPOCHS) | (EPOCHS + 1);
}

static uint64_t pack(uint64_t epoch, uint64_t value)
{
    return short_of(epoch) << VALUE_BITS | (value & VALUE);
}

static bool is_of(uint64_t word, uint64_t epoch)
{
    return word >> VALUE_BITS == short_of(epoch);
}

static void begin(uint64_t *word, uint64_t epoch, uint64_t value)
{
    uint64_t old = core_load(word);
    if (!is_of(old, epoch))
        (void)core_cas(word, &old, pack(epoch, value)); /* losing means that another thread began it */
}

void core_window_turn(struct core_window w, struct core_marks marks, int64_t now_ns)
{
    uint64_t epoch = epoch_of(w, now_ns), i = epoch % BIDE_SLOTS;
    begin(&w.words->mark[i], epoch, marks.mark);
    begin(&w.words->count[i], epoch, marks.count);
    core_store_release(&w.words->edge_ns, (epoch + 1) * (uint64_t)w.slot_ns); /* who sees the edge sees the slot */
}

uint32_t core_window_count(struct core_window w, int64_t now_ns)
{
    uint64_t word = core_add(&w.words->count[epoch_of(w, now_ns) % BIDE_SLOTS], 1);
    return (uint32_t)(word >> VALUE_BITS);
}

/* The slot's place follows from the full epoch, which a charge does not keep: look at all ten. */
void core_window_uncount(struct core_window w, uint32_t epoch)
{
    for (uint32_t i = 0; i < BIDE_SLOTS; i++) {
        uint64_t word = core_load(&w.words->count[i]);
        while (word >> VALUE_BITS == epoch && (word & VALUE) > 0)
            if (core_cas(&w.words->count[i], &word, word - 1))
                return;
    }
}

uint64_t core_window_counted(struct core_window w, int64_t now_ns)
{
    uint64_t sum = 0, epoch = epoch_of(w, now_ns), i = epoch % BIDE_SLOTS;
    for (uint64_t age = 0; age<BIDE_SLOTS; age++, i = i> 0 ? i - 1 : BIDE_SLOTS - 1) {
        uint64_t word = core_load(&w.words->count[i]);
        sum += is_of(word, epoch - age) ? word & VALUE : 0;
    }
    return sum;
}

struct core_marks core_window_oldest(struct core_window w, struct core_marks otherwise, int64_t now_ns)
{
    uint64_t epoch = epoch_of(w, now_ns) - (BIDE_SLOTS - 1);
    for (uint32_t n = 0; n < BIDE_SLOTS; n++, epoch++) {
        uint64_t mark = core_load(&w.words->mark[epoch % BIDE_SLOTS]);
        if (is_of(mark, epoch))
            return (struct core_marks){mark & VALUE, core_load(&w.words->count[epoch % BIDE_SLOTS]) & VALUE};
    }
    return otherwise;
}

/* A mark that another thread set after the total was summed may be above it. */
uint64_t core_window_since(uint64_t total, uint64_t mark)
{
    uint64_t since = (total - mark) & VALUE;
    return since <= VALUE / 2 ? since : 0;
}
