/* intake.c - for a server: first attempts and retries of the last seconds, counted in ten slots.
 *
 * Time is a tape of slots, a tenth of the window each, wound around ten places: `place` is the slot's number modulo
 * ten, `lap` how often the tape has gone around. First attempts and retries have ten words each. A word is a lap (38
 * bits) and a count (26 bits). A word of an earlier lap is stale: nobody has to clear it, whoever counts there next
 * begins it anew. Since a request is either a first attempt or a retry it touches one word, by one compare-and-swap;
 * there is no moment at which two words must agree.
 *
 * Laps never come around again: the shortest window is 10 ms, and 2^38 of those are more than the 2^61 ns in which
 * instants lie. A count that is full stays full (67 million in a tenth of a window).
 *
 * Clocks of two threads may differ, and time may go back. A word of one lap ahead is that of a faster clock and counts
 * as recent. One further ahead cannot be (a clock that was set back, memory of another boot) and is as stale. So time
 * going back by less than a window loses nothing, and by more than that begins anew.
 *
 * Known weaknesses: a thread that sleeps for two windows between reading its clock and counting wipes one word, a tenth
 * of the evidence. And counts of different words are read one after the other: a look is exact only when nobody counts
 * meanwhile. */
#include <bide/inbound.h>

#include "core/atomic.h"

#include <string.h>

#define SLOTS      BIDE_INBOUND_SLOTS
#define COUNT_BITS 26
#define COUNT_MAX  ((UINT64_C(1) << COUNT_BITS) - 1)
#define LAP_MASK   (UINT64_MAX >> COUNT_BITS) /* as a mask */
#define WINDOW_MIN (10 * BIDE_MS)
#define WINDOW_MAX (60 * BIDE_MINUTE)

_Static_assert((UINT64_C(1) << 61) / WINDOW_MIN < LAP_MASK, "a lap must never come around again");

/* ---- configuration ---- */

/* Writes no byte beyond the size. A struct of another version is refused by bide_inbound_ratio_init, which names it. */
void bide_inbound_ratio_config_init_sized(struct bide_inbound_ratio_config *config, size_t size)
{
    struct bide_inbound_ratio_config defaults = {
        .struct_size = (uint32_t)size,
        .share_permille = 100,
        .min_volume = 20,
        .window_ns = 10 * BIDE_S,
    };
    memset(config, 0, size);
    memcpy(config, &defaults, size < sizeof defaults ? size : sizeof defaults);
}

static enum bide_err config_check(const struct bide_inbound_ratio_config *c, struct bide_problem *problem)
{
    const struct {
        bool is_valid;
        struct bide_problem problem;
    } rows[] = {
        {c->struct_size == sizeof *c, {"struct_size", "what bide_inbound_ratio_config_init set", c->struct_size}},
        {c->share_permille >= 1 && c->share_permille <= 1000,
         {"share_permille", "1 to 1000 (1000: never too many)", c->share_permille}},
        {c->min_volume >= 1, {"min_volume", "1 or more", c->min_volume}},
        {c->reserved_ == 0, {"reserved_", "0: start from bide_inbound_ratio_config_init", c->reserved_}},
        {c->window_ns >= WINDOW_MIN && c->window_ns <= WINDOW_MAX,
         {"window_ns", "10000000 (10 ms) to 3600000000000 (1 h)", c->window_ns}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].is_valid)
            continue;
        if (problem != NULL)
            *problem = rows[i].problem;
        return BIDE_ERR_INVALID;
    }
    return BIDE_OK;
}

enum bide_err bide_inbound_ratio_init(struct bide_inbound_ratio *ratio, const struct bide_inbound_ratio_config *config,
                                      struct bide_problem *problem)
{
    enum bide_err err = config_check(config, problem);
    if (err == BIDE_OK)
        *ratio = (struct bide_inbound_ratio){.config = *config};
    return err;
}

/* ---- slots ---- */

/* Where an instant is on the tape. */
struct position {
    uint64_t place;
    uint64_t lap;
};

static struct position position_at(const struct bide_inbound_ratio *ratio, int64_t now_ns)
{
    uint64_t slot = (uint64_t)(now_ns > 0 ? now_ns : 0) / ((uint64_t)ratio->config.window_ns / SLOTS);
    return (struct position){slot % SLOTS, slot / SLOTS};
}

/* Of this lap, or one ahead. */
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
    } while (!core_cas(word, &old, next));
}

/* Places up to the present one are of this lap, those behind it still of the last. */
static uint64_t slots_sum(const uint64_t word[SLOTS], struct position now)
{
    uint64_t total = 0;
    for (uint64_t place = 0; place < SLOTS; place++) {
        uint64_t value = core_load(&word[place]);
        total += slot_is_recent(value, place <= now.place ? now.lap : now.lap - 1) ? value & COUNT_MAX : 0;
    }
    return total;
}

/* ---- the two questions ---- */

static bool ratio_is_exceeded(const struct bide_inbound_ratio_config *c, uint64_t retries, uint64_t requests)
{
    return requests >= c->min_volume && retries * 1000 > requests * c->share_permille;
}

static struct bide_inbound_ratio_view view_at(const struct bide_inbound_ratio *ratio, struct position now)
{
    uint64_t retries = slots_sum(ratio->retry, now), requests = slots_sum(ratio->first, now) + retries;
    return (struct bide_inbound_ratio_view){requests, retries, ratio_is_exceeded(&ratio->config, retries, requests)};
}

bool bide_inbound_ratio_count(struct bide_inbound_ratio *ratio, const struct bide_layer *inbound, int64_t now_ns)
{
    struct position now = position_at(ratio, now_ns);
    bool is_retry = inbound != NULL && inbound->attempt > 1;
    slot_increment(is_retry ? &ratio->retry[now.place] : &ratio->first[now.place], now.lap);
    return (inbound != NULL && inbound->no_retry) || view_at(ratio, now).overloaded;
}

struct bide_inbound_ratio_view bide_inbound_ratio_get(const struct bide_inbound_ratio *ratio, int64_t now_ns)
{
    return view_at(ratio, position_at(ratio, now_ns));
}
