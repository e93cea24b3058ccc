/* gates.h - the interface between a call and the gates of its target, and how a gate reads its configuration.
 *
 * Hot words. For each configuration slot two packed words hold all settings that a successful call needs, so that it
 * copies no configuration. Everything else is copied from the slot by core_config_copy, which copies again if a reload
 * interfered. Each copy is consistent; two copies in one event may be of two configurations, so every field must be
 * valid for every kind.
 *
 * Writers of a target: target.c writes identity (lib/os adds CORE_SHARED, CORE_OVERFLOW), active, claim, hot, config
 * and the hold-off (which a success in call.c ends), and resets everything. breaker.c: breaker, probe, failures, votes,
 * openings, healthy votes. budget.c: budget, spends, requests and the counts of a leased target (which lease.c resets
 * when it collects them). lease.c: the words of the lease. throttle.c: asks, attempts, accepts. keylimit.c: key.
 * latency.c: latency, usual latency. resources.c: refused, and the permits (retries, calls, in_flight) for all of them.
 * */
#ifndef CORE_GATES_H
#define CORE_GATES_H

#include <bide/outcome.h>
#include <bide/target.h>

#include "assert.h"
#include "atomic.h"
#include "clamp.h"
#include "random.h"

/* ---- configuration ---- */

/* The hot word: a row for each setting that every call needs, with its lowest bit, its number of bits, the gate of the
 * target that it belongs to (0: none), and the action of the fast path of each event while any of its bits is set:
 *
 *   SLOW  leaves the event to the slow path: the masks below are made of these rows
 *   SEES  checks the gate itself: by the word of the breaker, or by the permit, the retry key or the charge of the call
 *   NO    nothing: the setting has no effect on the event
 *
 * X(NAME, lowest bit, bits, gate, begin, success, failure, wake). A breaker by time and a token budget are 0. */
#define CORE_HOT_LIST(X)                                                                                               \
    X(BREAKER_KIND, 0, 2, BIDE_GATE_BREAKER, SEES, SLOW, SLOW, SEES) /* enum bide_breaker_kind */                      \
    X(SLOW_IS_FAILURE, 2, 1, BIDE_GATE_BREAKER, NO, SLOW, SLOW, NO)  /* slow successes count as failures */            \
    X(BUDGET_KIND, 3, 2, BIDE_GATE_BUDGET, NO, SLOW, SLOW, NO)       /* enum bide_budget_kind */                       \
    X(COUNTS_FIRST, 5, 1, BIDE_GATE_BUDGET, SLOW, NO, NO, NO)        /* a first attempt earns or is counted */         \
    X(REFUND, 6, 1, BIDE_GATE_BUDGET, NO, SEES, NO, NO)              /* see success_earnings */                        \
    X(COST_FAILURE, 7, 1, BIDE_GATE_BUDGET, NO, NO, SLOW, NO)        /* a failure costs tokens */                      \
    X(THROTTLE, 8, 1, BIDE_GATE_THROTTLE, SLOW, SLOW, SLOW, SLOW)                                                      \
    X(IN_FLIGHT, 9, 1, BIDE_GATE_IN_FLIGHT, SLOW, SEES, SEES, SLOW) /* the call holds a permit */                      \
    X(KEYS, 10, 1, BIDE_GATE_KEY_LIMIT, SLOW, NO, SEES, NO)         /* the call has a retry key */                     \
    X(HOLD_OFF_FIRST, 11, 1, 0, SLOW, NO, NO, NO)                                                                      \
    X(LATENCY, 12, 1, 0, NO, SLOW, SLOW, NO)                                                                           \
    X(ON_EMPTY_OPEN, 13, 1, BIDE_GATE_BUDGET, NO, NO, SEES, NO) /* the charge is refused */                            \
    X(TRUST, 14, 2, 0, NO, NO, SEES, NO)                        /* enum bide_trust; unsafe requests */                 \
    X(OBSERVE, 16, BIDE_GATE_COUNT, 0, NO, NO, NO, NO)          /* no gate refuses there */                            \
    X(LEASED, 28, 1, BIDE_GATE_BUDGET, NO, SLOW, SLOW, NO)      /* by a fleet; COUNTS_FIRST is set too */

#define CORE_HOT_BITS(low, bits) (((1u << (bits)) - 1) << (low))
#define CORE_MASK_SLOW(mask)     (mask)
#define CORE_MASK_SEES(mask)     0u
#define CORE_MASK_NO(mask)       0u

enum core_hot {
#define CORE_ROW(NAME, low, bits, gate, begin, success, failure, wake)                                                 \
    CORE_HOT_##NAME = CORE_HOT_BITS(low, bits), CORE_HOT_##NAME##_SHIFT = (low),
    CORE_HOT_LIST(CORE_ROW)
#undef CORE_ROW
#define CORE_ROW(NAME, low, bits, gate, begin, success, failure, wake) | CORE_MASK_##begin(CORE_HOT_##NAME)
        CORE_HOT_NO_FAST_BEGIN = 0u CORE_HOT_LIST(CORE_ROW),
#undef CORE_ROW
#define CORE_ROW(NAME, low, bits, gate, begin, success, failure, wake) | CORE_MASK_##success(CORE_HOT_##NAME)
    CORE_HOT_NO_FAST_SUCCESS = 0u CORE_HOT_LIST(CORE_ROW),
#undef CORE_ROW
#define CORE_ROW(NAME, low, bits, gate, begin, success, failure, wake) | CORE_MASK_##failure(CORE_HOT_##NAME)
    CORE_HOT_NO_FAST_FAILURE = 0u CORE_HOT_LIST(CORE_ROW),
#undef CORE_ROW
#define CORE_ROW(NAME, low, bits, gate, begin, success, failure, wake) | CORE_MASK_##wake(CORE_HOT_##NAME)
    CORE_HOT_NO_FAST_WAKE = 0u CORE_HOT_LIST(CORE_ROW),
#undef CORE_ROW
};
_Static_assert(BIDE_BREAKER_BY_TIME == 0 && BIDE_BUDGET_TOKENS == 0, "the masks mean these by zero");

/* Every gate of a target has a row, and no two rows share a bit. A gate of the policy has no hot bit: the conditions of
 * the fast paths in call.c name each of them. */
#define CORE_ROW(NAME, low, bits, gate, begin, success, failure, wake) | (unsigned)(gate)
_Static_assert((0u CORE_HOT_LIST(CORE_ROW)) == BIDE_TARGET_GATES, "a gate of the target has no row");
#undef CORE_ROW
#define CORE_ROW(NAME, low, bits, gate, begin, success, failure, wake) +(uint64_t)CORE_HOT_BITS(low, bits)
#define CORE_OR(NAME, low, bits, gate, begin, success, failure, wake)  | (uint64_t)CORE_HOT_BITS(low, bits)
_Static_assert((0 CORE_HOT_LIST(CORE_ROW)) == (0 CORE_HOT_LIST(CORE_OR)), "two rows share a bit");
#undef CORE_ROW
#undef CORE_OR
_Static_assert((BIDE_TARGET_GATES | BIDE_POLICY_GATES) == (1u << BIDE_GATE_COUNT) - 1, "a gate belongs to neither");

static inline uint64_t core_config_slot(const struct bide_target *t)
{
    return core_load_acquire(&t->active) & 1;
}

static inline uint32_t core_hot(const struct bide_target *t)
{
    return (uint32_t)core_load(&t->hot[core_config_slot(t)][0]);
}

static inline enum bide_budget_kind core_hot_budget_kind(uint32_t hot)
{
    return (enum bide_budget_kind)((hot & CORE_HOT_BUDGET_KIND) >> CORE_HOT_BUDGET_KIND_SHIFT);
}

static inline enum bide_breaker_kind core_hot_breaker_kind(uint32_t hot)
{
    return (enum bide_breaker_kind)(hot & CORE_HOT_BREAKER_KIND);
}

/* Configurations are copied as words, though their fields are smaller. */
typedef uint64_t core_word __attribute__((may_alias));

/* Copies `size` bytes (whole words) of the configuration in force, from `offset`. The race is with two reloads in a
 * row: the second overwrites the slot that is being copied. Its release stores follow the first reload's change of
 * `active` (the claim orders the two writers), so a copy that contains one of its words, loaded with acquire, finds
 * `active` changed, and is repeated. The size is a compile-time constant: the loop becomes a few loads and stores. */
static inline __attribute__((always_inline)) void core_config_copy(const struct bide_target *t, void *into,
                                                                   size_t offset, size_t size)
{
    uint64_t seen;
    do {
        seen = core_load_acquire(&t->active);
        const core_word *from = (const core_word *)(const void *)((const char *)&t->config[seen & 1] + offset);
#pragma GCC unroll 16
        for (size_t i = 0; i < size / sizeof(core_word); i++)
            ((core_word *)into)[i] = __atomic_load_n(&from[i], __ATOMIC_ACQUIRE);
    } while (!core_is_unchanged(&t->active, seen));
}

/* Copies the first fields of the configuration, up to but not including `field`, which must begin a word. */
#define CORE_CONFIG_COPY_UP_TO(t, into, field)                                                                         \
    do {                                                                                                               \
        _Static_assert(offsetof(struct bide_target_config, field) % sizeof(core_word) == 0, "copied by words");        \
        core_config_copy((t), (into), 0, offsetof(struct bide_target_config, field));                                  \
    } while (0)

static inline void core_budget_config(const struct bide_target *t, struct bide_budget_config *into)
{
    core_config_copy(t, into, offsetof(struct bide_target_config, budget), sizeof *into);
    core_clamp_budget(into);
}

static inline void core_breaker_config(const struct bide_target *t, struct bide_breaker_config *into)
{
    core_config_copy(t, into, offsetof(struct bide_target_config, breaker), sizeof *into);
    core_clamp_breaker(into);
}

static inline uint32_t core_in_flight_max(const struct bide_target *t)
{
    struct bide_target_config c;
    CORE_CONFIG_COPY_UP_TO(t, &c, throttle_k_milli);
    return c.in_flight_max;
}

/* ---- lease ---- */

/* Returns BIDE_ERR_INVALID, and sets *problem, if a fleet cannot fund such a budget. */
enum bide_err core_lease_check(const struct bide_budget_config *budget, struct bide_problem *problem);

/* The writer lock on the configuration: core_target_claim returns false if another writer holds it. The holder may
 * publish the current configuration again with the leased flag set or cleared. */
bool core_target_claim(struct bide_target *t, int64_t now_ns);
void core_target_release(struct bide_target *t);
void core_target_set_leased(struct bide_target *t, bool leased, int64_t now_ns);

/* ---- lanes ---- */

/* Returns the sum of a counter over all lanes; `member` is its offset in a lane. */
static inline uint64_t core_lanes_sum(const struct bide_target *t, size_t member)
{
    uint64_t sum = 0;
#pragma GCC unroll 8
    for (uint32_t i = 0; i < BIDE_LANES; i++)
        sum += core_load((const uint64_t *)(const void *)((const char *)&t->lane[i] + member));
    return sum;
}

/* ---- permits ---- */

/* Permits in use (attempts in flight, calls, retries): one word with the owner of the target (16 bits) and the count
 * (48). The owner is compared by the same CAS that changes the count, so a call of an earlier owner can neither acquire
 * nor release a permit. */
#define CORE_OWNER_SHIFT 48
#define CORE_PERMITS_MAX ((UINT64_C(1) << CORE_OWNER_SHIFT) - 1)

static inline uint64_t core_permits_held(const uint64_t *word)
{
    return core_load(word) & CORE_PERMITS_MAX;
}

/* Acquires a permit if fewer than `most` are in use and the word belongs to this owner. */
bool core_permit_acquire(uint64_t *word, uint16_t owner, uint64_t most);

/* Releases permits, unless the word has another owner by now. */
void core_permit_release(uint64_t *word, uint16_t owner, uint32_t permits);

static inline uint16_t core_owner(const struct bide_target *t)
{
    return (uint16_t)(core_load(&t->identity) >> 16);
}

/* Bits of the identity word, set by the creator of a target: it is in memory that processes share; it is the overflow
 * target of a table, which serves several names. */
#define CORE_SHARED   (UINT64_C(1) << 15)
#define CORE_OVERFLOW (UINT64_C(1) << 14)

/* The gate to which a reason belongs, or 0: see bide_reason_gate. */
extern const uint16_t core_reason_gates[BIDE_REASON_COUNT];

/* ---- tables of targets ---- */

/* Returns true if forgetting this target would lose nothing that matters: budget at its initial level or above,
 * throttle idle, breaker closed and not opened recently (a time window: without failures in it), no hold-off, no key
 * remembered, nothing in flight, not leased. Tables evict only such targets. */
bool core_target_is_evictable(const struct bide_target *target, int64_t now_ns);

/* As init, for memory that was a target before and that calls in flight may still use: they see that it has a new owner
 * and leave it alone. For tables that reuse memory. BIDE_ERR_BUSY: a permit is in use, the target is leased
 * (lease.h), or it is being configured; nothing was changed. */
enum bide_err core_target_reuse(struct bide_target *target, const struct bide_target_config *config, int64_t now_ns,
                                struct bide_problem *problem);

/* ---- budget ---- */

struct core_charge {
    uint16_t owner; /* owner of the target that was charged */
    enum bide_budget_kind kind;
    uint32_t amount; /* tokens: thousandths. window: epoch of the slot. concurrency: permits held */
    bool leased;     /* tokens: the bucket was leased */
};

/* Charges a retry after this outcome, all or nothing; returns false if the budget cannot afford it. The caller sets
 * charge->owner. */
bool core_budget_charge(struct bide_target *t, const struct bide_outcome *outcome, int64_t now_ns,
                        struct core_charge *charge);

/* Refunds the charge of a retry that was never sent. */
void core_budget_refund(struct bide_target *t, struct core_charge charge);

/* Records that a first attempt starts: it earns tokens, or is counted: as a request of a window, or for the fleet. */
void core_budget_record_first(struct bide_target *t, uint32_t lane, int64_t now_ns);

/* Charges a retryable failure itself (cost_failure_milli). */
void core_budget_charge_failure(struct bide_target *t, int64_t now_ns);

/* Credits the success of a call; last_milli is its last charge in tokens, 0 if it needed no retry. A full bucket is
 * only read, and so is a bucket that was leased meanwhile. */
void core_budget_credit_success(struct bide_target *t, uint32_t last_milli);

/* Records the success of a call in the lane of a leased target, for the fleet to collect. */
void core_budget_record_success(struct bide_target *t, uint32_t lane, uint32_t last_milli);

/* Empties the token bucket; tokens that another thread is about to add do not survive it. */
void core_budget_drain(struct bide_target *t, int64_t now_ns);

/* Returns true if a success has nothing to earn: the level (low 28 bits of the word) has reached the capacity. */
static inline bool core_budget_is_full(const struct bide_target *t)
{
    return (core_load(&t->budget) & BIDE_CAPACITY_MAX_MILLI) >= core_load(&t->hot[core_config_slot(t)][1]) >> 32;
}

/* Returns the deciding word of a new budget. */
uint64_t core_budget_initial_word(const struct bide_budget_config *c, int64_t now_ns);

/* The parts of bide_target_get. */
int64_t core_budget_left_milli(const struct bide_target *t, int64_t now_ns);
struct bide_breaker_view core_breaker_get(const struct bide_target *t);
int64_t core_hold_off_until(const struct bide_target *t, int64_t now_ns);

/* Returns true if forgetting this budget would allow no additional retry. */
bool core_budget_is_evictable(const struct bide_target *t, int64_t now_ns);

/* A reload that changes the kind of budget, or the length of its window, carries over the retries that were spent.
 * Before the new configuration is published, the deciding word is set to a value that allows at most as many retries as
 * before, whether a call reads it as the old kind or as the new; afterwards the window is rebuilt from the counts
 * carried over, or the bucket filled with the tokens that the old kind had left. Known weakness: a thread that read the
 * configuration of a bucket before a reload to a window, and charges after it, is granted its retry; the word that it
 * stores makes the window cool down. */
struct core_budget_carry {
    bool moved;
    bool drained;  /* the old budget could not afford a retry */
    uint64_t word; /* to tokens: the word of the bucket */
    uint64_t requests, retries;
};
struct core_budget_carry core_budget_before_reload(struct bide_target *t, const struct bide_budget_config *next,
                                                   int64_t now_ns);
void core_budget_after_reload(struct bide_target *t, const struct bide_budget_config *next,
                              struct core_budget_carry carry, int64_t now_ns);

/* ---- breaker ---- */

/* A ticket is the proof that a round needs to vote: the breaker generation in which it began (low 16 bits) and, for a
 * probe, the stamp (from bit 16) and the index (from bit 24) of its probe slot. */
#define CORE_GENERATION_MASK 0xffffu

struct core_refusal {
    enum bide_reason reason; /* BIDE_REASON_NOTHING: admitted */
    int64_t until_ns;        /* when the gate may admit the call; 0: unknown */
};

struct core_admission {
    struct core_refusal refused;
    uint32_t ticket;
    bool probe;
};

/* A calm breaker is closed and has no recent opening: of its word, only the generation is set. */
#define CORE_BREAKER_CALM(word) (((word) & ~(UINT64_C(0xffff) << 7)) == 0)

static inline uint32_t core_breaker_generation(uint64_t word)
{
    return (uint32_t)(word >> 7) & CORE_GENERATION_MASK;
}

/* Returns true if the breaker has been closed since the round with this ticket began. */
static inline bool core_breaker_still_closed(const struct bide_target *t, uint32_t ticket)
{
    uint64_t word = core_load(&t->breaker), state = word & 7;
    return core_breaker_generation(word) == ticket &&
           (state == BIDE_BREAKER_CLOSED || state == BIDE_BREAKER_HELD_CLOSED);
}

/* Decides whether an attempt may start now; claims a probe slot if the breaker is half open. */
struct core_admission core_breaker_admit(struct bide_target *t, uint64_t seed, int64_t now_ns);

/* Returns true if an attempt would be refused at that later instant, as far as is known now. */
bool core_breaker_is_open_at(const struct bide_target *t, int64_t at_ns);

static inline bool core_breaker_blocks(const struct bide_target *t, int64_t at_ns)
{
    return !CORE_BREAKER_CALM(core_load(&t->breaker)) && core_breaker_is_open_at(t, at_ns);
}

/* Returns when probing may begin; 0 if the breaker is not open, or held open by hand. */
int64_t core_breaker_open_until_ns(const struct bide_target *t);

/* Returns how many attempts the breaker admits now; next->reason and next->at_ns tell why and until when it limits
 * them. */
void core_breaker_next(const struct bide_target *t, struct bide_admission *next, int64_t now_ns);

enum core_vote { CORE_VOTE_NEUTRAL, CORE_VOTE_HEALTHY, CORE_VOTE_FAILURE };

struct core_ballot {
    enum core_vote vote;
    uint32_t ticket;
    bool probe;
    uint32_t lane;
    uint64_t seed;
};

/* Records the vote of an attempt, unless the state has changed since its round began. */
void core_breaker_vote(struct bide_target *t, const struct core_ballot *ballot, uint32_t hot, int64_t now_ns);

/* Records a failure at a breaker that was closed when `word` was loaded, and opens it on enough evidence. */
void core_breaker_record_failure(struct bide_target *t, uint64_t word, uint64_t seed, int64_t now_ns);

/* Fast path of a healthy vote: counts it in its lane. Returns false if it needs core_breaker_vote. Loads edge_ns
 * relaxed, which suffices because no slot is accessed here. */
static inline bool core_breaker_try_count_healthy(struct bide_target *t, uint32_t ticket, uint32_t lane, int64_t now_ns)
{
    uint64_t word = core_load(&t->breaker);
    if (!CORE_BREAKER_CALM(word) || core_breaker_generation(word) != ticket)
        return false;
    if (now_ns >= (int64_t)core_load(&t->votes.edge_ns))
        return false; /* a new slot of the window must begin first */
    core_assert(lane < BIDE_LANES);
    core_add(&t->lane[lane].healthy, 1);
    return true;
}

/* Returns true if the breaker is closed, was not opened recently, and has no failure in its time window. */
bool core_breaker_is_evictable(const struct bide_target *t, int64_t now_ns);

/* Clears all votes: the state changed, or a reload changed the window. */
void core_breaker_clear_evidence(struct bide_target *t);

/* ---- the smaller gates ---- */

/* Adaptive throttling: counts a requested attempt and draws whether it may start; returns false to shed it. */
bool core_throttle_admit(struct bide_target *t, uint32_t lane, struct core_random_key key, int64_t now_ns);
void core_throttle_record_accept(struct bide_target *t, uint32_t lane);

/* Subtracts an attempt that was counted as requested: its end is no evidence about the server. */
void core_throttle_forget_attempt(struct bide_target *t, uint32_t lane);
bool core_throttle_is_evictable(const struct bide_target *t, int64_t now_ns);

/* The share of requests to refuse, by the SRE book: max(0, (requests - K * accepts) / (requests + 1)). */
struct core_fraction {
    uint64_t numerator, denominator;
};
struct core_fraction core_throttle_reject_share(uint64_t requests, uint64_t accepts, uint32_t k_milli);

/* Charges a retry of that key; returns false if the limit refuses it. *tick identifies the charge for a refund. */
bool core_key_charge(struct bide_target *t, uint32_t key, int64_t now_ns, uint32_t *tick);
void core_key_refund(struct bide_target *t, uint32_t key, uint32_t tick);
bool core_key_is_evictable(const struct bide_target *t, int64_t now_ns);

void core_latency_record(struct bide_target *t, int64_t latency_ns);

/* ---- the usual latency ---- */

/* Returns true if a success that ends now may be sampled: with a time window only the first vote of a slot is. The fast
 * path of a success leaves exactly these to the slow path (core_breaker_try_count_healthy), so it needs no sampling of
 * its own, and both paths take the same samples. */
static inline bool core_usual_may_sample(const struct bide_target *t, uint32_t hot, int64_t now_ns)
{
    return core_hot_breaker_kind(hot) != BIDE_BREAKER_BY_TIME || now_ns >= (int64_t)core_load(&t->votes.edge_ns);
}

/* Moves the estimate towards the latency of a success, at most once in 100 ms. */
void core_usual_sample(struct bide_target *t, int64_t latency_ns, int64_t now_ns);

/* The deadline of a call cut an attempt after latency_ns. Returns true if that is no evidence about the server. */
bool core_usual_excuses_cut(struct bide_target *t, int64_t latency_ns, bool probe, int64_t now_ns);

#endif
