/* budget.c - the retry budget of a target: token bucket, sliding window, concurrency. See bide/budget.h for the model.
 *
 * The token bucket is one word: level in thousandths of a token (28 bits), and the time up to which the refill was
 * credited (36 bits, in ticks of 2^23 ns: 18 years). Only charges and reloads convert elapsed time into tokens; a
 * success just adds tokens, and does not write a full bucket. The refill is exact to a tick (8.4 ms): each charge may
 * lose up to one tick, and a bucket that is new, full or reloaded counts from the beginning of the current tick. While
 * a fleet funds the budget (lease.c), successes earn nothing here and the refill does not run before the end of the
 * lease.
 *
 * The sliding window counts a retry first and reads the sum afterwards. Two threads that compete for the last retry
 * count in the same word, so the thread that counts second sees both counts and is refused. At the change of a slot
 * they may count in two words. The thread that begins the later slot moves the edge before it counts, and the edge
 * never moves back, so a thread that counts in the earlier slot afterwards sums up to the later slot and sees both.
 * Both may be refused, but both cannot be admitted. A process killed between the two steps leaves a retry counted that
 * was never made: an error towards fewer retries.
 *
 * Known weaknesses: at the change of a slot, on a machine with weak memory order, one retry too many may be admitted;
 * on every machine, if a thread stalls for nine tenths of the window between its two steps. */
#include <bide/budget.h>

#include "gates.h"
#include "saturate.h"
#include "window.h"

#define LEVEL_BITS 28
#define LEVEL_MASK ((UINT64_C(1) << LEVEL_BITS) - 1)
#define TICK_SHIFT 23
#define TICK_MASK  ((UINT64_C(1) << 36) - 1)

/* ---- tokens ---- */

struct bucket {
    uint64_t level_milli;
    uint64_t stamp; /* in ticks */
};

static struct bucket bucket_unpack(uint64_t word)
{
    return (struct bucket){word & LEVEL_MASK, word >> LEVEL_BITS};
}

static uint64_t bucket_pack(struct bucket b)
{
    core_assert(b.level_milli <= LEVEL_MASK); /* else it would change the stamp */
    return b.level_milli | (b.stamp & TICK_MASK) << LEVEL_BITS;
}

static uint64_t bucket_tick_at(int64_t now_ns)
{
    return (uint64_t)now_ns >> TICK_SHIFT & TICK_MASK;
}

/* Returns the first tick that begins at or after this instant. */
static uint64_t bucket_tick_not_before(int64_t ns)
{
    return bucket_tick_at(ns + (INT64_C(1) << TICK_SHIFT) - 1);
}

/* Returns the ticks since the stamp; 0 if the stamp is in the future, because a thread that read its clock later set
 * it, or because it was rounded up. */
static uint64_t bucket_ticks_since(struct bucket b, int64_t now_ns)
{
    uint64_t ticks = (bucket_tick_at(now_ns) - b.stamp) & TICK_MASK;
    return ticks <= TICK_MASK / 2 ? ticks : 0;
}

/* Reads the bucket of a leased target. Its refill counts from the end of the lease. Tokens from before the lease never
 * count. lease_start sets the end to 0, publishes the leased flag, drains the bucket, and sets the end last. A caller
 * that sees the flag (acquire) therefore sees the end 0, and takes the bucket as empty, or it sees the new end; if its
 * word is from before the drain, its CAS fails. A process killed between these steps leaves the end 0. */
static __attribute__((noinline)) struct bucket bucket_read_leased(const struct bide_target *t, struct bucket b,
                                                                  int64_t now_ns)
{
    int64_t end_ns = (int64_t)core_load(&t->lease_end_ns);
    if (end_ns == 0) /* the stamp never moves back, or a word from before the drain could come again (ABA) */
        return (struct bucket){0, b.stamp + bucket_ticks_since(b, now_ns)};
    uint64_t later = (bucket_tick_not_before(core_min(end_ns, now_ns)) - b.stamp) & TICK_MASK;
    if (later <= TICK_MASK / 2)
        b.stamp += later;
    return b;
}

/* Unpacks the bucket, with no refill credited yet. */
static inline struct bucket bucket_read_as(const struct bide_target *t, uint64_t word, bool leased, int64_t now_ns)
{
    struct bucket b = bucket_unpack(word);
    return leased ? bucket_read_leased(t, b, now_ns) : b;
}

static inline struct bucket bucket_read(const struct bide_target *t, uint64_t word, int64_t now_ns)
{
    return bucket_read_as(t, word, core_hot(t) & CORE_HOT_LEASED, now_ns);
}

/* Returns the tokens that the refill has added since the stamp. */
static __attribute__((noinline)) uint64_t bucket_refill_since(struct bucket b, uint32_t per_minute_milli,
                                                              int64_t now_ns)
{
    uint64_t ns = bucket_ticks_since(b, now_ns) << TICK_SHIFT, minute = (uint64_t)BIDE_MINUTE;
    return ns / minute * per_minute_milli + ns % minute * per_minute_milli / minute;
}

/* Returns the ticks in which the refill adds this many tokens, rounded up. */
static uint64_t refill_ticks(uint64_t milli, uint32_t per_minute_milli)
{
    core_assert(per_minute_milli > 0 && milli <= BIDE_CAPACITY_MAX_MILLI); /* the product fits 64 bits */
    uint64_t ns = milli * (uint64_t)BIDE_MINUTE / per_minute_milli;
    return (ns >> TICK_SHIFT) + 1;
}

/* Returns the bucket with its refill credited. The stamp of a full bucket moves to now: time during which the bucket
 * was full is never credited. */
static inline struct bucket bucket_refilled(struct bucket b, const struct bide_budget_config *c, int64_t now_ns)
{
    bool full = b.level_milli >= c->capacity_milli;
    uint64_t earned = full ? 0 : bucket_refill_since(b, c->refill_per_minute_milli, now_ns);
    if (b.level_milli + earned >= c->capacity_milli)
        return (struct bucket){c->capacity_milli, b.stamp + bucket_ticks_since(b, now_ns)};
    if (earned > 0)
        b.stamp += refill_ticks(earned, c->refill_per_minute_milli);
    b.level_milli += earned;
    core_assert(b.level_milli < c->capacity_milli);
    return b;
}

static uint32_t retry_cost(const struct bide_budget_config *c, const struct bide_outcome *outcome)
{
    if (outcome->kind == BIDE_KIND_THROTTLED)
        return c->cost_throttled_milli;
    return outcome->flags & BIDE_FLAG_TIMED_OUT ? c->cost_timeout_milli : c->cost_milli;
}

static bool bucket_affords(const struct bide_budget_config *c, uint64_t level_milli, uint32_t cost_milli)
{
    return level_milli >= cost_milli && (c->threshold_milli == 0 || level_milli > c->threshold_milli);
}

/* Charges a retry; returns false if the bucket cannot afford it. Two threads cannot spend the same tokens: each decides
 * on the word that it swaps, so the CAS of the slower fails and its thread decides again on the new word.
 *
 * The leased flag is stored before the bucket is read. The race is with lease_start: if the flag is set here, the
 * bucket is read as a leased bucket, so a word from before the drain counts as empty or fails its CAS. Tokens from
 * before the lease are therefore never charged as lent tokens, which core_budget_refund would add to the leased
 * bucket. */
static bool bucket_charge(struct bide_target *t, const struct bide_budget_config *c, uint64_t word, int64_t now_ns,
                          struct core_charge *charge)
{
    struct bucket b;
    do {
        charge->leased = (core_hot(t) & CORE_HOT_LEASED) != 0;
        b = bucket_refilled(bucket_read_as(t, word, charge->leased, now_ns), c, now_ns);
        if (c->capacity_milli == 0 || !bucket_affords(c, b.level_milli, charge->amount))
            return false;
        core_assert(b.level_milli >= charge->amount);
        b.level_milli -= charge->amount;
    } while (!core_cas(&t->budget, &word, bucket_pack(b)));
    return true;
}

/* Removes up to `milli` from the bucket. Returns the amount removed. */
static uint64_t bucket_drain(struct bide_target *t, const struct bide_budget_config *c, uint64_t milli, int64_t now_ns)
{
    uint64_t word = core_load(&t->budget), taken;
    struct bucket b;
    do {
        b = bucket_refilled(bucket_read(t, word, now_ns), c, now_ns);
        taken = b.level_milli < milli ? b.level_milli : milli;
        b.level_milli -= taken;
    } while (!core_cas(&t->budget, &word, bucket_pack(b)));
    return taken;
}

/* Granted: tokens lent by a fleet and their refunds, `bide budget set`. Earned: by successes and first attempts, and
 * refunds of tokens that were the target's own. */
enum token_source { TOKENS_GRANTED, TOKENS_EARNED };

/* Adds tokens up to the capacity; the stamp stays. Returns the amount added: a full bucket is only read.
 *
 * A leased bucket takes no earned tokens. The race is with lease_start, which publishes the leased flag and then drains
 * the bucket; here the word is loaded (acquire) before the flag. A word from after the drain makes the flag visible. A
 * word from before the drain fails its CAS after the drain, and the flag is checked again; tokens added before the
 * drain are drained. */
static inline uint64_t bucket_add(struct bide_target *t, uint64_t capacity_milli, uint64_t milli,
                                  enum token_source source)
{
    uint64_t word = core_load_acquire(&t->budget), level, added;
    core_assert(capacity_milli <= LEVEL_MASK);
    do {
        level = word & LEVEL_MASK;
        if (level >= capacity_milli || milli == 0 || (source == TOKENS_EARNED && core_hot(t) & CORE_HOT_LEASED))
            return 0;
        added = capacity_milli - level < milli ? capacity_milli - level : milli;
        core_assert(added > 0 && level + added <= capacity_milli);
    } while (!core_cas(&t->budget, &word, word + added));
    return added;
}

/* Stamps move forward and this one moves past the last, so the new word differs from every earlier word (no ABA): a
 * thread that still holds an earlier word fails its CAS. */
void core_budget_drain(struct bide_target *t, int64_t now_ns)
{
    uint64_t word = core_load(&t->budget);
    struct bucket b;
    do {
        b = bucket_unpack(word);
        b = (struct bucket){0, b.stamp + bucket_ticks_since(b, now_ns) + 1};
    } while (!core_cas(&t->budget, &word, bucket_pack(b)));
}

/* ---- window ---- */

struct window_counts {
    uint64_t requests;
    uint64_t retries;
};

static struct window_counts window_read(const struct bide_target *t, struct core_window w, int64_t now_ns)
{
    uint64_t total = core_lanes_sum(t, offsetof(struct bide_lane_words_, requests));
    struct core_marks oldest = core_window_oldest_marks(w, (struct core_marks){total, 0}, now_ns);
    return (struct window_counts){core_window_difference(total, oldest.mark), core_window_sum(w, now_ns)};
}

static void window_begin_slot(const struct bide_target *t, struct core_window w, int64_t now_ns)
{
    uint64_t total = core_lanes_sum(t, offsetof(struct bide_lane_words_, requests));
    core_window_begin_slot(w, (struct core_marks){total, 0}, now_ns);
}

static uint64_t window_allowance(const struct bide_budget_config *c, uint64_t requests)
{
    core_assert(requests <= INT64_MAX && c->ratio_ppm <= CORE_RATIO_MAX_PPM);
    return c->reserve + (uint64_t)core_share((int64_t)requests, c->ratio_ppm, 1000000);
}

/* Returns true while the cooldown after a refusal or a reload lasts. A reload of another kind of budget first stores an
 * end far ahead. If its process was killed before it stored the real end, this moves the end back to the latest that a
 * refusal or a reload can set. */
static bool window_check_cooldown(struct bide_target *t, const struct bide_budget_config *c, uint64_t word,
                                  int64_t now_ns)
{
    int64_t until_ns = (int64_t)word, most_ns = core_sum(now_ns, c->window_ns + c->cooldown_ns);
    if (until_ns > most_ns)
        (void)core_cas(&t->budget, &word, (uint64_t)most_ns);
    return now_ns < until_ns;
}

/* `word` is t->budget, loaded before the configuration. The race is with a reload to a token bucket, which would read
 * the end of a cooldown as tokens. The reload stores the word of the bucket after it has published its configuration:
 * a caller with the old configuration loaded an earlier word, so its CAS fails, or is overwritten by that store. */
static bool window_charge(struct bide_target *t, const struct bide_budget_config *c, uint64_t word, int64_t now_ns,
                          uint32_t *epoch)
{
    struct core_window w = core_window(&t->spends, c->window_ns);
    if (window_check_cooldown(t, c, word, now_ns))
        return false;
    if (!core_window_is_current(w.words, now_ns))
        window_begin_slot(t, w, now_ns);
    *epoch = core_window_add(w, now_ns);
    struct window_counts n = window_read(t, w, now_ns);
    if (n.requests < c->min_volume || n.retries <= window_allowance(c, n.requests))
        return true;
    core_window_remove(w, *epoch);
    (void)core_cas(&t->budget, &word, (uint64_t)core_sum(now_ns, c->cooldown_ns)); /* failed: refused or reloaded by
                                                                                    * another thread */
    return false;
}

/* ---- concurrency ---- */

static uint64_t concurrency_limit(const struct bide_target *t, const struct bide_budget_config *c)
{
    uint64_t limit = (uint64_t)core_share((int64_t)core_permits_held(&t->calls), c->ratio_ppm, 1000000);
    return limit > c->reserve ? limit : c->reserve;
}

/* ---- the interface of all kinds ---- */

/* Out of line, so that the token bucket, which is the default, does not pay for the others. */
static __attribute__((noinline)) bool charge_other_kind(struct bide_target *t, uint64_t word, int64_t now_ns,
                                                        struct core_charge *charge)
{
    struct bide_budget_config c;
    core_budget_config(t, &c);
    charge->amount = 1;
    charge->leased = false;
    if (charge->kind == BIDE_BUDGET_WINDOW)
        return window_charge(t, &c, word, now_ns, &charge->amount);
    return charge->kind == BIDE_BUDGET_NONE ||
           core_permit_acquire(&t->retries, charge->owner, concurrency_limit(t, &c));
}

bool core_budget_charge(struct bide_target *t, const struct bide_outcome *outcome, int64_t now_ns,
                        struct core_charge *charge)
{
    _Static_assert(offsetof(struct bide_budget_config, refund_permille) % sizeof(core_word) == 0, "copied by words");
    struct bide_budget_config c; /* filled up to refund_permille: the settings of a token bucket */
    uint64_t word = core_load_acquire(&t->budget);
    core_config_copy(t, &c, offsetof(struct bide_target_config, budget),
                     offsetof(struct bide_budget_config, refund_permille));
    core_clamp_bucket(&c);
    core_assert(now_ns >= 0 && c.kind <= BIDE_BUDGET_NONE);
    charge->kind = c.kind;
    if (c.kind != BIDE_BUDGET_TOKENS)
        return charge_other_kind(t, word, now_ns, charge);
    charge->amount = retry_cost(&c, outcome);
    return bucket_charge(t, &c, word, now_ns, charge);
}

void core_budget_refund(struct bide_target *t, struct core_charge charge)
{
    struct bide_budget_config c;
    core_budget_config(t, &c);
    core_assert(charge.kind <= BIDE_BUDGET_NONE && (charge.kind != BIDE_BUDGET_CONCURRENCY || charge.amount > 0));
    if (charge.kind == BIDE_BUDGET_CONCURRENCY)
        core_permit_release(&t->retries, charge.owner,
                            charge.amount); /* even if another kind is configured now: the word still counts them */
    else if (charge.kind == c.kind && c.kind == BIDE_BUDGET_TOKENS)
        bucket_add(t, c.capacity_milli, charge.amount, charge.leased ? TOKENS_GRANTED : TOKENS_EARNED);
    else if (charge.kind == c.kind && c.kind == BIDE_BUDGET_WINDOW)
        core_window_remove(core_window(&t->spends, c.window_ns), charge.amount);
}

void core_budget_record_first(struct bide_target *t, uint32_t lane, int64_t now_ns)
{
    struct bide_budget_config c;
    core_budget_config(t, &c);
    core_assert(lane < BIDE_LANES);
    if (core_hot(t) & CORE_HOT_LEASED) {
        core_add(&t->lane[lane].firsts, 1);
        core_add(&t->lane[lane].earned_milli, c.earn_first_milli);
        return;
    }
    if (c.kind == BIDE_BUDGET_TOKENS) {
        bucket_add(t, c.capacity_milli, c.earn_first_milli, TOKENS_EARNED);
        return;
    }
    if (!core_window_is_current(&t->spends, now_ns))
        window_begin_slot(t, core_window(&t->spends, c.window_ns), now_ns);
    core_add(&t->lane[lane].requests, 1);
}

void core_budget_charge_failure(struct bide_target *t, int64_t now_ns)
{
    struct bide_budget_config c;
    core_budget_config(t, &c);
    if (c.kind == BIDE_BUDGET_TOKENS) /* a reload may have changed the kind since the hot word was read */
        bucket_drain(t, &c, c.cost_failure_milli, now_ns);
}

/* Returns the tokens that a successful call earns: earn_success_milli, or a share of its last charge. */
static inline uint64_t success_earnings(const struct bide_target *t, uint64_t slot, uint32_t last_milli)
{
    struct bide_budget_config c;
    if (last_milli == 0 || !(core_load(&t->hot[slot][0]) & CORE_HOT_REFUND))
        return core_load(&t->hot[slot][1]) & LEVEL_MASK;
    core_budget_config(t, &c);
    return (uint64_t)core_share(last_milli, c.refund_permille, 1000);
}

void core_budget_credit_success(struct bide_target *t, uint32_t last_milli)
{
    uint64_t slot = core_config_slot(t), capacity_milli = core_load(&t->hot[slot][1]) >> 32 & LEVEL_MASK;
    bucket_add(t, capacity_milli, success_earnings(t, slot, last_milli), TOKENS_EARNED);
}

void core_budget_record_success(struct bide_target *t, uint32_t lane, uint32_t last_milli)
{
    core_add(&t->lane[lane].successes, 1);
    core_add(&t->lane[lane].earned_milli, success_earnings(t, core_config_slot(t), last_milli));
}

int64_t core_budget_left_milli(const struct bide_target *t, int64_t now_ns)
{
    struct bide_budget_config c;
    struct window_counts n;
    core_budget_config(t, &c);
    switch (c.kind) {
    case BIDE_BUDGET_TOKENS:
        return (int64_t)bucket_refilled(bucket_read(t, core_load(&t->budget), now_ns), &c, now_ns).level_milli;
    case BIDE_BUDGET_WINDOW:
        n = window_read(t, core_window(&t->spends, c.window_ns), now_ns);
        if (now_ns < (int64_t)core_load(&t->budget))
            return 0;
        if (n.requests < c.min_volume)
            return INT64_MAX;
        return 1000 * core_max(0, (int64_t)(window_allowance(&c, n.requests) - n.retries));
    case BIDE_BUDGET_CONCURRENCY:
        return 1000 * core_max(0, (int64_t)(concurrency_limit(t, &c) - core_permits_held(&t->retries)));
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
        return (int64_t)bucket_add(t, c.capacity_milli, (uint64_t)amount_milli, TOKENS_GRANTED);
    return -(int64_t)bucket_drain(t, &c, 0 - (uint64_t)amount_milli, now_ns);
}

/* ---- reload ---- */

uint64_t core_budget_initial_word(const struct bide_budget_config *c, int64_t now_ns)
{
    uint32_t initial_milli = c->initial_milli < c->capacity_milli ? c->initial_milli : c->capacity_milli;
    core_assert(now_ns >= 0 && initial_milli <= LEVEL_MASK);
    struct bucket full = {initial_milli, bucket_tick_at(now_ns)};
    return c->kind == BIDE_BUDGET_TOKENS ? bucket_pack(full) : 0;
}

bool core_budget_is_evictable(const struct bide_target *t, int64_t now_ns)
{
    struct bide_budget_config c;
    core_budget_config(t, &c);
    bool idle =
        core_permits_held(&t->retries) == 0 && core_permits_held(&t->calls) == 0 && !(core_hot(t) & CORE_HOT_LEASED);
    if (c.kind == BIDE_BUDGET_WINDOW)
        return idle && now_ns >= (int64_t)core_load(&t->budget) &&
               core_window_sum(core_window(&t->spends, c.window_ns), now_ns) == 0;
    uint64_t level = bucket_unpack(core_budget_initial_word(&c, now_ns)).level_milli;
    return idle && bucket_refilled(bucket_read(t, core_load(&t->budget), now_ns), &c, now_ns).level_milli >= level;
}

/* Credits the refill at the old rate and moves the stamp to now: the new rate counts from here. */
static void bucket_settle_refill(struct bide_target *t, const struct bide_budget_config *c, int64_t now_ns)
{
    uint64_t word = core_load(&t->budget);
    struct bucket b;
    do {
        b = bucket_read(t, word, now_ns);
        b = (struct bucket){bucket_refilled(b, c, now_ns).level_milli, b.stamp + bucket_ticks_since(b, now_ns)};
    } while (!core_cas(&t->budget, &word, bucket_pack(b)));
}

struct core_budget_carry core_budget_before_reload(struct bide_target *t, const struct bide_budget_config *next,
                                                   int64_t now_ns)
{
    struct bide_budget_config c;
    struct core_budget_carry carry = {0};
    core_budget_config(t, &c);
    bool same = c.kind == next->kind && (c.kind != BIDE_BUDGET_WINDOW || c.window_ns == next->window_ns);
    if (same && c.kind == BIDE_BUDGET_TOKENS)
        bucket_settle_refill(t, &c, now_ns);
    if (same)
        return carry;
    struct window_counts n = window_read(t, core_window(&t->spends, c.window_ns), now_ns);
    int64_t left = core_budget_left_milli(t, now_ns);
    bool tokens = c.kind == BIDE_BUDGET_TOKENS;
    carry = (struct core_budget_carry){.moved = true, .requests = n.requests, .retries = n.retries};
    carry.drained = tokens ? !bucket_affords(&c, (uint64_t)left, c.cost_milli) : left == 0;
    struct bucket b = bucket_unpack(core_budget_initial_word(next, now_ns));
    core_assert(left >= 0);
    b.level_milli = (uint64_t)core_min((int64_t)b.level_milli, left);
    carry.word = bucket_pack(b);
    b = (struct bucket){0, bucket_tick_at(now_ns) + 1}; /* as tokens: empty; as a window: cooling down */
    core_store(&t->budget, bucket_pack(b));
    return carry;
}

void core_budget_after_reload(struct bide_target *t, const struct bide_budget_config *next,
                              struct core_budget_carry carry, int64_t now_ns)
{
    if (!carry.moved)
        return;
    if (next->kind == BIDE_BUDGET_TOKENS) {
        core_store_release(&t->budget, carry.word);
        return;
    }
    core_store(&t->spends.edge_ns, 0);
    for (uint32_t i = 0; i < BIDE_SLOTS; i++) {
        core_store(&t->spends.mark[i], 0);
        core_store(&t->spends.count[i], 0);
    }
    uint64_t total = core_lanes_sum(t, offsetof(struct bide_lane_words_, requests));
    struct core_marks marks = {total - carry.requests, carry.retries};
    core_window_begin_slot(core_window(&t->spends, next->window_ns), marks, now_ns);
    core_store(&t->budget, carry.drained ? (uint64_t)core_sum(now_ns, next->window_ns) : 0);
}
