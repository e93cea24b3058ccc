/* budget.c - the retry budget of a target: tokens, window, concurrency. See bide/budget.h for the model.
 *
 * The token word: level in thousandths (28 bits) and the time up to which the trickle was credited (36 bits, ticks of
 * 2^23 ns, 18 years). Only a taker turns time into tokens; a success just adds, and a full bucket is not written. The
 * trickle is exact to a tick (8.4 ms): each take may lose up to one, and a bucket that is new, full or reloaded counts
 * from the beginning of the present one. While a fleet funds the budget (lease.c) nothing is earned here, and time does
 * not count before the end of the lease.
 *
 * A window counts first and looks afterwards: two threads at the last place may both step back, but they can never both
 * go ahead. (Known weakness: at the very turn of a slot, on a machine with weak memory order, one retry too many may.)
 * A process killed in between leaves a retry counted that was not made: the safe side. */
#include <bide/budget.h>

#include "gates.h"
#include "saturate.h"
#include "window.h"

#define LEVEL_BITS 28
#define LEVEL      ((UINT64_C(1) << LEVEL_BITS) - 1)
#define TICK_SHIFT 23
#define TICKS      ((UINT64_C(1) << 36) - 1)

/* ---- tokens ---- */

struct bucket {
    uint64_t level_milli;
    uint64_t stamp; /* ticks */
};

static struct bucket unpack(uint64_t word)
{
    return (struct bucket){word & LEVEL, word >> LEVEL_BITS};
}

static uint64_t pack(struct bucket b)
{
    return b.level_milli | (b.stamp & TICKS) << LEVEL_BITS;
}

static uint64_t tick_of(int64_t now_ns)
{
    return (uint64_t)now_ns >> TICK_SHIFT & TICKS;
}

/* The first tick that does not begin before. */
static uint64_t tick_from(int64_t ns)
{
    return tick_of(ns + (INT64_C(1) << TICK_SHIFT) - 1);
}

/* Ticks since the stamp. One in the future (another thread's later clock) is as now. */
static uint64_t ticks_since(struct bucket b, int64_t now_ns)
{
    uint64_t ticks = (tick_of(now_ns) - b.stamp) & TICKS;
    return ticks <= TICKS / 2 ? ticks : 0;
}

/* Under a lease time does not count; and what was there before it, not even when whoever began it was killed before the
 * bucket was emptied. */
static __attribute__((noinline)) struct bucket look_leased(const struct bide_target *t, struct bucket b, int64_t now_ns)
{
    int64_t end_ns = (int64_t)core_load(CORE_LEASE_END(t));
    if (end_ns == 0)
        return (struct bucket){0, tick_of(now_ns)};
    uint64_t later = (tick_from(core_min(end_ns, now_ns)) - b.stamp) & TICKS;
    if (later <= TICKS / 2)
        b.stamp += later;
    return b;
}

/* The bucket as it lies there. */
static inline struct bucket look(const struct bide_target *t, uint64_t word, int64_t now_ns)
{
    struct bucket b = unpack(word);
    return core_hot(t) & CORE_HOT_LEASED ? look_leased(t, b, now_ns) : b;
}

/* What the trickle earned since the stamp. */
static uint64_t trickle(struct bucket b, uint32_t per_minute_milli, int64_t now_ns)
{
    uint64_t ns = ticks_since(b, now_ns) << TICK_SHIFT, minute = (uint64_t)BIDE_MINUTE;
    return ns / minute * per_minute_milli + ns % minute * per_minute_milli / minute;
}

/* The ticks it takes to earn that much, rounded up. */
static uint64_t ticks_for(uint64_t milli, uint32_t per_minute_milli)
{
    uint64_t ns = milli * (uint64_t)BIDE_MINUTE / per_minute_milli;
    return (ns >> TICK_SHIFT) + 1;
}

/* The bucket with its trickle credited. A full bucket forgets the time before now: it could not hold it anyway. */
static struct bucket credited(struct bucket b, const struct bide_budget_config *c, int64_t now_ns)
{
    bool full = b.level_milli >= c->capacity_milli;
    uint64_t earned = full ? 0 : trickle(b, c->refill_per_minute_milli, now_ns);
    if (b.level_milli + earned >= c->capacity_milli)
        return (struct bucket){c->capacity_milli, b.stamp + ticks_since(b, now_ns)};
    if (earned > 0)
        b.stamp += ticks_for(earned, c->refill_per_minute_milli);
    b.level_milli += earned;
    return b;
}

static uint32_t price(const struct bide_budget_config *c, const struct bide_outcome *reason)
{
    if (reason->kind == BIDE_KIND_THROTTLED)
        return c->cost_throttled_milli;
    return reason->flags & BIDE_FLAG_TIMED_OUT ? c->cost_timeout_milli : c->cost_milli;
}

static bool affordable(const struct bide_budget_config *c, uint64_t level_milli, uint32_t cost_milli)
{
    return level_milli >= cost_milli && (c->threshold_milli == 0 || level_milli > c->threshold_milli);
}

static bool take_tokens(struct bide_target *t, const struct bide_budget_config *c, uint32_t cost_milli, int64_t now_ns)
{
    uint64_t word = core_load(&t->budget);
    struct bucket b;
    do {
        b = credited(look(t, word, now_ns), c, now_ns);
        if (c->capacity_milli == 0 || !affordable(c, b.level_milli, cost_milli))
            return false;
        b.level_milli -= cost_milli;
    } while (!core_cas(&t->budget, &word, pack(b)));
    return true;
}

/* Takes as much of the amount as there is. Returns what was taken. */
static uint64_t drain_tokens(struct bide_target *t, const struct bide_budget_config *c, uint64_t milli, int64_t now_ns)
{
    uint64_t word = core_load(&t->budget), taken;
    struct bucket b;
    do {
        b = credited(look(t, word, now_ns), c, now_ns);
        taken = b.level_milli < milli ? b.level_milli : milli;
        b.level_milli -= taken;
    } while (!core_cas(&t->budget, &word, pack(b)));
    return taken;
}

enum gain { GIVEN, EARNED };

/* Adds up to the capacity, the stamp untouched. Returns what was added: a full bucket is only read. A leased one earns
 * nothing. That is asked after the word was seen: a lease that began before that shows, and one that begins later
 * changes the word. */
static uint64_t add_tokens(struct bide_target *t, uint64_t capacity_milli, uint64_t milli, enum gain gain)
{
    uint64_t word = core_load_acquire(&t->budget), level, added;
    do {
        level = word & LEVEL;
        if (level >= capacity_milli || milli == 0 || (gain == EARNED && core_hot(t) & CORE_HOT_LEASED))
            return 0;
        added = capacity_milli - level < milli ? capacity_milli - level : milli;
    } while (!core_cas(&t->budget, &word, word + added));
    return added;
}

/* The stamp moves beyond any that was there, so that nobody who still holds the word of before can change this one. */
void core_budget_empty(struct bide_target *t, int64_t now_ns)
{
    uint64_t word = core_load(&t->budget);
    struct bucket b;
    do {
        b = unpack(word);
        b = (struct bucket){0, b.stamp + ticks_since(b, now_ns) + 1};
    } while (!core_cas(&t->budget, &word, pack(b)));
}

/* ---- window ---- */

struct tally {
    uint64_t requests;
    uint64_t retries;
};

static struct tally count_up(const struct bide_target *t, struct core_window w, int64_t now_ns)
{
    uint64_t total = core_lanes_sum(t, offsetof(struct bide_lane_words_, requests));
    struct core_marks oldest = core_window_oldest(w, (struct core_marks){total, 0}, now_ns);
    return (struct tally){core_window_since(total, oldest.mark), core_window_counted(w, now_ns)};
}

static void turn(const struct bide_target *t, struct core_window w, int64_t now_ns)
{
    uint64_t total = core_lanes_sum(t, offsetof(struct bide_lane_words_, requests));
    core_window_turn(w, (struct core_marks){total, 0}, now_ns);
}

static uint64_t allowance(const struct bide_budget_config *c, uint64_t requests)
{
    return c->reserve + (uint64_t)core_share((int64_t)requests, c->ratio_ppm, 1000000);
}

/* An end further away than any refusal could have set it (a reload was cut short) is brought near. */
static bool is_cooling(struct bide_target *t, const struct bide_budget_config *c, int64_t now_ns)
{
    int64_t until_ns = (int64_t)core_load(&t->budget), most_ns = core_sum(now_ns, c->window_ns + c->cooldown_ns);
    if (until_ns > most_ns)
        core_store(&t->budget, (uint64_t)most_ns);
    return now_ns < until_ns;
}

static bool take_window(struct bide_target *t, const struct bide_budget_config *c, int64_t now_ns, uint32_t *epoch)
{
    struct core_window w = core_window(&t->spends, c->window_ns);
    if (is_cooling(t, c, now_ns))
        return false;
    if (!core_window_is_fresh(w.words, now_ns))
        turn(t, w, now_ns);
    *epoch = core_window_count(w, now_ns);
    struct tally n = count_up(t, w, now_ns);
    if (n.requests < c->min_volume || n.retries <= allowance(c, n.requests))
        return true;
    core_window_uncount(w, *epoch);
    core_store(&t->budget, (uint64_t)core_sum(now_ns, c->cooldown_ns));
    return false;
}

/* ---- concurrency ---- */

static uint64_t concurrency_limit(const struct bide_target *t, const struct bide_budget_config *c)
{
    uint64_t limit = (uint64_t)core_share((int64_t)core_places(&t->calls), c->ratio_ppm, 1000000);
    return limit > c->reserve ? limit : c->reserve;
}

/* ---- the one interface ---- */

bool core_budget_take(struct bide_target *t, const struct bide_outcome *reason, int64_t now_ns,
                      struct core_charge *charge)
{
    struct bide_budget_config c;
    core_budget_config(t, &c);
    charge->kind = c.kind;
    charge->amount = 1;
    switch (c.kind) {
    case BIDE_BUDGET_TOKENS: charge->amount = price(&c, reason); return take_tokens(t, &c, charge->amount, now_ns);
    case BIDE_BUDGET_WINDOW: return take_window(t, &c, now_ns, &charge->amount);
    case BIDE_BUDGET_CONCURRENCY: return core_place_take(&t->retries, charge->owner, concurrency_limit(t, &c));
    case BIDE_BUDGET_NONE:
    default: break;
    }
    return true;
}

void core_budget_give_back(struct bide_target *t, struct core_charge charge)
{
    struct bide_budget_config c;
    core_budget_config(t, &c);
    if (charge.kind == BIDE_BUDGET_CONCURRENCY)
        core_place_leave(&t->retries, charge.owner, charge.amount); /* whatever is configured now: they were counted */
    else if (charge.kind == c.kind && c.kind == BIDE_BUDGET_TOKENS)
        add_tokens(t, c.capacity_milli, charge.amount, GIVEN);
    else if (charge.kind == c.kind && c.kind == BIDE_BUDGET_WINDOW)
        core_window_uncount(core_window(&t->spends, c.window_ns), charge.amount);
}

void core_budget_first(struct bide_target *t, uint32_t lane, int64_t now_ns)
{
    struct bide_budget_config c;
    core_budget_config(t, &c);
    if (core_hot(t) & CORE_HOT_LEASED) {
        core_add(&t->lane[lane].firsts, 1);
        core_add(&t->lane[lane].earned_milli, c.earn_first_milli);
        return;
    }
    if (c.kind == BIDE_BUDGET_TOKENS) {
        add_tokens(t, c.capacity_milli, c.earn_first_milli, EARNED);
        return;
    }
    if (!core_window_is_fresh(&t->spends, now_ns))
        turn(t, core_window(&t->spends, c.window_ns), now_ns);
    core_add(&t->lane[lane].requests, 1);
}

void core_budget_failure(struct bide_target *t, int64_t now_ns)
{
    struct bide_budget_config c;
    core_budget_config(t, &c);
    if (c.kind == BIDE_BUDGET_TOKENS) /* a reload may just have changed it */
        drain_tokens(t, &c, c.cost_failure_milli, now_ns);
}

/* What a call that succeeded earns. */
static uint64_t earnings(const struct bide_target *t, uint64_t slot, uint32_t last_milli)
{
    struct bide_budget_config c;
    if (last_milli == 0 || !(core_load(&t->hot[slot][0]) & CORE_HOT_REFUND))
        return core_load(&t->hot[slot][1]) & LEVEL;
    core_budget_config(t, &c);
    return (uint64_t)core_share(last_milli, c.refund_permille, 1000);
}

void core_budget_earn(struct bide_target *t, uint32_t last_milli)
{
    uint64_t slot = core_slot(t);
    add_tokens(t, core_load(&t->hot[slot][1]) >> 32, earnings(t, slot, last_milli), EARNED);
}

void core_budget_report(struct bide_target *t, uint32_t lane, uint32_t last_milli)
{
    core_add(&t->lane[lane].successes, 1);
    core_add(&t->lane[lane].earned_milli, earnings(t, core_slot(t), last_milli));
}

int64_t bide_budget_left_milli(const struct bide_target *t, int64_t now_ns)
{
    struct bide_budget_config c;
    struct tally n;
    core_budget_config(t, &c);
    switch (c.kind) {
    case BIDE_BUDGET_TOKENS: return (int64_t)credited(look(t, core_load(&t->budget), now_ns), &c, now_ns).level_milli;
    case BIDE_BUDGET_WINDOW:
        n = count_up(t, core_window(&t->spends, c.window_ns), now_ns);
        if (now_ns < (int64_t)core_load(&t->budget))
            return 0;
        if (n.requests < c.min_volume)
            return INT64_MAX;
        return 1000 * core_max(0, (int64_t)(allowance(&c, n.requests) - n.retries));
    case BIDE_BUDGET_CONCURRENCY:
        return 1000 * core_max(0, (int64_t)(concurrency_limit(t, &c) - core_places(&t->retries)));
    case BIDE_BUDGET_NONE:
    default: break;
    }
    return INT64_MAX;
}

int64_t bide_budget_add_milli(struct bide_target *t, int64_t amount_milli, int64_t now_ns)
{
    struct bide_budget_config c;
    core_budget_config(t, &c);
    if (c.kind != BIDE_BUDGET_TOKENS)
        return 0;
    if (amount_milli >= 0)
        return (int64_t)add_tokens(t, c.capacity_milli, (uint64_t)amount_milli, GIVEN);
    return -(int64_t)drain_tokens(t, &c, 0 - (uint64_t)amount_milli, now_ns);
}

/* ---- a new configuration ---- */

uint64_t core_budget_fresh(const struct bide_budget_config *c, int64_t now_ns)
{
    struct bucket full = {c->initial_milli == BIDE_FULL ? c->capacity_milli : c->initial_milli, tick_of(now_ns)};
    return c->kind == BIDE_BUDGET_TOKENS ? pack(full) : 0;
}

bool core_budget_blank(const struct bide_target *t, int64_t now_ns)
{
    struct bide_budget_config c;
    core_budget_config(t, &c);
    bool idle = core_places(&t->retries) == 0 && core_places(&t->calls) == 0 && !(core_hot(t) & CORE_HOT_LEASED);
    if (c.kind == BIDE_BUDGET_WINDOW)
        return idle && now_ns >= (int64_t)core_load(&t->budget) &&
               core_window_counted(core_window(&t->spends, c.window_ns), now_ns) == 0;
    uint64_t level = unpack(core_budget_fresh(&c, now_ns)).level_milli;
    return idle && credited(look(t, core_load(&t->budget), now_ns), &c, now_ns).level_milli >= level;
}

/* What the old rate has earned is credited, and nothing before now is left for the new one to count. */
static void settle_trickle(struct bide_target *t, const struct bide_budget_config *c, int64_t now_ns)
{
    uint64_t word = core_load(&t->budget);
    struct bucket b;
    do {
        b = look(t, word, now_ns);
        b = (struct bucket){credited(b, c, now_ns).level_milli, b.stamp + ticks_since(b, now_ns)};
    } while (!core_cas(&t->budget, &word, pack(b)));
}

struct core_carry core_budget_before(struct bide_target *t, const struct bide_budget_config *next, int64_t now_ns)
{
    struct bide_budget_config c;
    struct core_carry carry = {0};
    core_budget_config(t, &c);
    bool same = c.kind == next->kind && (c.kind != BIDE_BUDGET_WINDOW || c.window_ns == next->window_ns);
    if (same && c.kind == BIDE_BUDGET_TOKENS)
        settle_trickle(t, &c, now_ns);
    if (same)
        return carry;
    struct tally n = count_up(t, core_window(&t->spends, c.window_ns), now_ns);
    int64_t left = bide_budget_left_milli(t, now_ns);
    bool tokens = c.kind == BIDE_BUDGET_TOKENS;
    carry = (struct core_carry){.moved = true, .requests = n.requests, .retries = n.retries};
    carry.drained = tokens ? !affordable(&c, (uint64_t)left, c.cost_milli) : left == 0;
    if (next->kind == BIDE_BUDGET_TOKENS) {
        struct bucket b = unpack(core_budget_fresh(next, now_ns));
        b.level_milli = (uint64_t)core_min((int64_t)b.level_milli, left);
        core_store(&t->budget, pack(b));
    } else {
        core_store(&t->budget, pack((struct bucket){0, tick_of(now_ns)})); /* no tokens; a cooldown far ahead */
    }
    return carry;
}

void core_budget_after(struct bide_target *t, const struct bide_budget_config *next, struct core_carry carry,
                       int64_t now_ns)
{
    if (!carry.moved || next->kind == BIDE_BUDGET_TOKENS)
        return;
    core_store(&t->spends.edge_ns, 0);
    for (uint32_t i = 0; i < BIDE_SLOTS; i++) {
        core_store(&t->spends.mark[i], 0);
        core_store(&t->spends.count[i], 0);
    }
    uint64_t total = core_lanes_sum(t, offsetof(struct bide_lane_words_, requests));
    struct core_marks marks = {total - carry.requests, carry.retries};
    core_window_turn(core_window(&t->spends, next->window_ns), marks, now_ns);
    core_store(&t->budget, carry.drained ? (uint64_t)core_sum(now_ns, next->window_ns) : 0);
}
