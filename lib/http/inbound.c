/* inbound.c - the inbound retry ratio of a server: first attempts and retries of the last seconds, in a sliding window.
 *
 * The window is a ring of ten slots, a tenth of the window each: a slot's place in the ring is its number modulo ten,
 * its lap the number of times the ring has gone round. First attempts and retries have ten words each; a word packs a
 * lap (38 bits) and a count (26 bits). A word of an earlier lap is stale and needs no clearing: the next request
 * counted there overwrites it with the new lap and the count 1.
 *
 * Beside the window two words count all requests since init, exactly, for metrics.
 *
 * Races. A request is either a first attempt or a retry, so it changes a single word of the window, by
 * compare-and-swap; no invariant spans two words. If two threads count into the same word in the same lap, the second
 * CAS fails and is repeated on the new value, so no request is lost. If the clocks of two threads differ by a lap, the
 * word carries the later lap in either order: the thread that is ahead, coming second, overwrites a count that is a
 * window old by its clock; the thread that is behind, coming second, finds a recent word and adds to it.
 *
 * Laps do not wrap around: the shortest window is 10 ms, and 2^38 windows of 10 ms exceed the 2^61 ns within which
 * instants lie. A full count stays full (67 million requests in a tenth of the window).
 *
 * Clocks may differ between threads, and time may go back. A word of the next lap was written with a faster clock and
 * is recent. A word further ahead (a clock that was set back, memory of another boot) is stale. So time that goes back
 * by less than a window loses nothing, by one to two windows the newest slots, by more than that everything.
 *
 * Known weaknesses: a thread that is descheduled for two windows between reading its clock and counting overwrites a
 * word, a tenth of the counts. And the words are read in sequence: a result is exact only while no other thread
 * counts. */
#include <bide/inbound.h>

#include "core/atomic.h"
#include "core/clamp.h"
#include "core/problem.h"

#include <assert.h>
#include <string.h>

#define SLOTS      BIDE_INBOUND_SLOTS
#define COUNT_BITS 26
#define COUNT_MAX  ((UINT64_C(1) << COUNT_BITS) - 1)
#define LAP_MASK   (UINT64_MAX >> COUNT_BITS)
#define WINDOW_MIN (10 * BIDE_MS)
#define WINDOW_MAX (60 * BIDE_MINUTE)

_Static_assert((UINT64_C(1) << 61) / WINDOW_MIN < LAP_MASK, "laps must not wrap around");

/* ---- configuration ---- */

void bide_inbound_ratio_config_init(struct bide_inbound_ratio_config *config)
{
    *config = (struct bide_inbound_ratio_config){
        .share_permille = 100,
        .min_volume = 20,
        .window_ns = 10 * BIDE_S,
    };
}

static enum bide_err config_check(const struct bide_inbound_ratio_config *c, struct bide_problem *problem)
{
    const struct {
        bool is_valid;
        const char *field;
        int64_t value;
        const char *want;
    } rows[] = {
        {c->share_permille >= 1 && c->share_permille <= 1000, "share_permille", c->share_permille,
         "1 to 1000 (1000: never overload)"},
        {c->min_volume >= 1, "min_volume", c->min_volume, "1 or more"},
        {(c->reserved_[0] | c->reserved_[1]) == 0, "reserved_", 1, CORE_WANT_RESERVED},
        {c->window_ns >= WINDOW_MIN && c->window_ns <= WINDOW_MAX, "window_ns", c->window_ns,
         "10000000 (10 ms) to 3600000000000 (1 h)"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!rows[i].is_valid)
            return core_problem_set(problem, rows[i].field, rows[i].value, rows[i].want);
    return BIDE_OK;
}

enum bide_err bide_inbound_ratio_init(struct bide_inbound_ratio *ratio, const struct bide_inbound_ratio_config *config,
                                      struct bide_problem *problem)
{
    struct bide_inbound_ratio_config defaults;
    if (config == NULL) {
        bide_inbound_ratio_config_init(&defaults);
        config = &defaults;
    }
    enum bide_err err = config_check(config, problem);
    if (err == BIDE_OK)
        *ratio = (struct bide_inbound_ratio){.config = *config};
    return err;
}

/* ---- slots ---- */

/* The position of an instant in the ring. */
struct position {
    uint64_t place;
    uint64_t lap;
};

static struct position position_at(const struct bide_inbound_ratio *ratio, int64_t now_ns)
{
    assert(ratio->config.window_ns >= WINDOW_MIN && ratio->config.window_ns <= WINDOW_MAX);
    uint64_t slot = (uint64_t)(now_ns > 0 ? now_ns : 0) / ((uint64_t)ratio->config.window_ns / SLOTS);
    return (struct position){slot % SLOTS, slot / SLOTS};
}

/* Returns true for a word of this lap or the next. */
static bool slot_is_recent(uint64_t word, uint64_t lap)
{
    return (((word >> COUNT_BITS) - lap) & LAP_MASK) <= 1;
}

static void slot_increment(uint64_t *word, uint64_t lap)
{
    uint64_t old = core_load(word), next;
    do {
        bool recent = slot_is_recent(old, lap);
        if (recent && (old & COUNT_MAX) == COUNT_MAX)
            return;
        next = recent ? old + 1 : (lap & LAP_MASK) << COUNT_BITS | 1;
        assert((next & COUNT_MAX) > 0 && slot_is_recent(next, lap));
    } while (!core_cas(word, &old, next));
}

/* Places up to the current slot's belong to the current lap, the places after it to the previous lap. */
static uint64_t slots_sum(const uint64_t word[SLOTS], struct position now)
{
    uint64_t total = 0;
    for (uint64_t place = 0; place < SLOTS; place++) {
        uint64_t value = core_load(&word[place]);
        total += slot_is_recent(value, place <= now.place ? now.lap : now.lap - 1) ? value & COUNT_MAX : 0;
    }
    return total;
}

/* ---- counting and reading ---- */

static bool ratio_is_exceeded(const struct bide_inbound_ratio_config *c, uint64_t retries, uint64_t requests)
{
    return requests >= c->min_volume && retries * 1000 > requests * c->share_permille;
}

static struct bide_inbound_ratio_view view_at(const struct bide_inbound_ratio *ratio, struct position now)
{
    uint64_t retries = slots_sum(ratio->retry, now), requests = slots_sum(ratio->first, now) + retries;
    assert(retries <= requests && requests <= 2 * (uint64_t)SLOTS * COUNT_MAX);
    return (struct bide_inbound_ratio_view){
        .requests = requests, .retries = retries, .overloaded = ratio_is_exceeded(&ratio->config, retries, requests)};
}

bool bide_inbound_ratio_count(struct bide_inbound_ratio *ratio, const struct bide_layer *inbound, int64_t now_ns)
{
    struct position now = position_at(ratio, now_ns);
    bool is_retry = inbound != NULL && inbound->attempt > 1;
    slot_increment(is_retry ? &ratio->retry[now.place] : &ratio->first[now.place], now.lap);
    core_add(is_retry ? &ratio->retry_total : &ratio->first_total, 1);
    return (inbound != NULL && inbound->no_retry) || view_at(ratio, now).overloaded;
}

struct bide_inbound_ratio_view bide_inbound_ratio_get(const struct bide_inbound_ratio *ratio, int64_t now_ns)
{
    struct bide_inbound_ratio_view view = view_at(ratio, position_at(ratio, now_ns));
    view.retries_total = core_load(&ratio->retry_total);
    view.requests_total = core_load(&ratio->first_total) + view.retries_total;
    return view;
}
