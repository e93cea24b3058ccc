/* breaker.c - the circuit breaker of a target: closed, open, half open, ramp-up. See bide/breaker.h for the model.
 *
 * The deciding word, t->breaker: state (3 bits), openings in a row (4), generation (16), time (41, in ticks of 2^20 ns:
 * 73 years). The time of an OPEN breaker is the instant when probing may begin; of a CLOSED breaker, the instant when
 * it closed, or 0 once that is forgotten (the breaker is then calm); of any other state, 0. Every change of state is
 * one compare-and-swap (CAS) that also increments the generation. If two threads change the state at once, the CAS of
 * the slower fails, and the other thread's change stands.
 *
 * A probe slot, t->probe[i]: generation (16), stamp (7), expiry (41, the same ticks). A slot is free if its generation
 * is not the current one or its expiry has passed. A probe that succeeded keeps its slot, marked EXPIRY_SUCCEEDED,
 * until the state of the breaker changes. Each claim increments the stamp: a probe that lost its slot by expiry finds
 * another stamp there, so its late result cannot vote. */
#include <bide/breaker.h>

#include "bits.h"
#include "gates.h"
#include "label.h"
#include "saturate.h"
#include "window.h"

#define TICK_SHIFT       20
#define TIME_BITS        41
#define TIME_MAX         ((UINT64_C(1) << TIME_BITS) - 1)
#define OPENINGS_MAX     15u
#define EXPIRY_SUCCEEDED TIME_MAX
#define STAMP_MASK       0x7fu
#define RAMP_START       10 /* the ramp begins by admitting a tenth of the calls */

struct breaker_word {
    enum bide_breaker_state state;
    uint32_t openings;
    uint32_t generation;
    uint64_t time;
};

/* A state that no breaker stores counts as CLOSED: another process wrote it, and the ramp or an opening ends it. */
static struct breaker_word breaker_unpack(uint64_t word)
{
    uint32_t state = word & 7;
    return (struct breaker_word){state <= BIDE_BREAKER_HELD_OPEN ? (enum bide_breaker_state)state : BIDE_BREAKER_CLOSED,
                                 (uint32_t)(word >> 3) & OPENINGS_MAX, core_breaker_generation(word), word >> 23};
}

static uint64_t breaker_pack(struct breaker_word b)
{
    core_assert(b.state <= BIDE_BREAKER_HELD_OPEN && b.openings <= OPENINGS_MAX && b.time <= TIME_MAX);
    return (uint64_t)b.state | (uint64_t)b.openings << 3 | (uint64_t)(b.generation & CORE_GENERATION_MASK) << 7 |
           b.time << 23;
}

/* Returns the first tick after this instant: a breaker never acts early. */
static uint64_t breaker_tick_after(int64_t ns)
{
    core_assert(ns >= 0);
    uint64_t ticks = ((uint64_t)ns >> TICK_SHIFT) + 1;
    return ticks < TIME_MAX ? ticks : TIME_MAX;
}

static int64_t breaker_tick_to_ns(uint64_t ticks)
{
    return (int64_t)(ticks << TICK_SHIFT);
}

/* ---- changes of state ---- */

/* Draws how long the breaker stays open: open_ns, grown by the earlier openings of the row, plus or minus jitter. */
static int64_t breaker_draw_open_time(const struct bide_breaker_config *c, struct breaker_word next, uint64_t seed)
{
    int64_t open = c->open_ns;
    for (uint32_t i = 1; i < next.openings && open < c->open_max_ns; i++)
        open = core_min(c->open_max_ns, core_share(open, c->open_growth_milli, 1000));
    int64_t spread = core_share(open, c->open_jitter_permille, 1000);
    core_assert(open > 0 && spread >= 0 && spread < open);
    struct core_random_key key = {seed, next.generation, CORE_FOR_OPEN};
    return open - spread + (int64_t)core_uniform(key, 2 * (uint64_t)spread);
}

/* Opens a breaker that was CLOSED or HALF_OPEN when `word` was loaded. Returns false if another thread changed the word
 * first: a change of state stands; after a reset to calm (breaker_admit_ramp) the next failure tries to open again. */
static bool breaker_try_open(struct bide_target *t, uint64_t word, uint64_t seed, int64_t now_ns)
{
    struct bide_breaker_config c;
    struct breaker_word b = breaker_unpack(word);
    core_assert(b.state == BIDE_BREAKER_CLOSED || b.state == BIDE_BREAKER_HALF_OPEN);
    core_breaker_config(t, &c);
    struct breaker_word next = {.state = BIDE_BREAKER_OPEN, .generation = (b.generation + 1) & CORE_GENERATION_MASK};
    next.openings = b.openings < OPENINGS_MAX ? b.openings + 1 : OPENINGS_MAX;
    next.time = breaker_tick_after(core_sum(now_ns, breaker_draw_open_time(&c, next, seed)));
    if (!core_cas(&t->breaker, &word, breaker_pack(next)))
        return false;
    core_add(&t->openings, 1);
    return true;
}

void core_breaker_clear_evidence(struct bide_target *t)
{
    core_store(&t->failures, 0);
    core_store(&t->votes.edge_ns, 0);
    for (uint32_t i = 0; i < BIDE_SLOTS; i++) {
        core_store(&t->votes.mark[i], 0);
        core_store(&t->votes.count[i], 0);
    }
}

/* Closes a breaker that was HALF_OPEN when `word` was loaded. Only the winner of the CAS clears the votes. Votes of the
 * new generation that arrive between its two steps are lost, which delays the next opening by those few. */
static void breaker_try_close(struct bide_target *t, uint64_t word, int64_t now_ns)
{
    struct breaker_word b = breaker_unpack(word);
    core_assert(b.state == BIDE_BREAKER_HALF_OPEN);
    struct breaker_word next = {BIDE_BREAKER_CLOSED, b.openings, b.generation + 1, breaker_tick_after(now_ns)};
    if (core_cas(&t->breaker, &word, breaker_pack(next)))
        core_breaker_clear_evidence(t);
}

/* ---- probes ---- */

struct probe_slot {
    uint32_t generation;
    uint32_t stamp;
    uint64_t expiry;
};

static struct probe_slot probe_slot_unpack(uint64_t word)
{
    return (struct probe_slot){(uint32_t)(word >> 48), (uint32_t)(word >> TIME_BITS) & STAMP_MASK, word & TIME_MAX};
}

static uint64_t probe_slot_pack(struct probe_slot slot)
{
    core_assert(slot.generation <= CORE_GENERATION_MASK && slot.stamp <= STAMP_MASK && slot.expiry <= TIME_MAX);
    return (uint64_t)slot.generation << 48 | (uint64_t)slot.stamp << TIME_BITS | slot.expiry;
}

static bool probe_slot_is_taken(struct probe_slot slot, uint32_t generation, int64_t now_ns)
{
    return slot.generation == generation && slot.expiry >= breaker_tick_after(now_ns);
}

static uint32_t probe_slots_succeeded(const struct bide_target *t, uint32_t probes, uint32_t generation)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < probes; i++) {
        struct probe_slot slot = probe_slot_unpack(core_load(&t->probe[i]));
        n += slot.generation == generation && slot.expiry == EXPIRY_SUCCEEDED;
    }
    return n;
}

/* Returns when the first of the slots that probes hold expires; 0 if all have succeeded. */
static int64_t probe_slots_expire_ns(const struct bide_target *t, uint32_t probes)
{
    uint64_t first = EXPIRY_SUCCEEDED;
    for (uint32_t i = 0; i < probes; i++) {
        struct probe_slot slot = probe_slot_unpack(core_load(&t->probe[i]));
        first = slot.expiry < first ? slot.expiry : first;
    }
    return first == EXPIRY_SUCCEEDED ? 0 : breaker_tick_to_ns(first);
}

/* Claims a free probe slot of a breaker that was HALF_OPEN when `breaker` was loaded. If two callers find the same slot
 * free, the CAS of the slower fails and that caller tries the next slot.
 *
 * A caller may stall after it loaded `breaker`, until the breaker is half open again. It must not take a slot from a
 * probe of that later generation, so it checks the breaker after it loaded the slot: the slot's holder loaded the
 * later generation before it claimed, so a caller that sees the claim sees the change. A stall after the check is
 * harmless: if the slot is claimed meanwhile, the CAS fails; if not, the caller is a late probe of its own generation,
 * in a slot that generation left free.
 *
 * Normally the last probe to succeed closes the breaker. All slots may be successful although it did not: its process
 * was killed first, a reload lowered the number of probes, or the last two succeeded at once and, on a machine with
 * weak memory order, neither saw the other's mark. Then the next caller closes the breaker here and is refused. */
static struct core_admission probe_slot_try_claim(struct bide_target *t, const struct bide_breaker_config *c,
                                                  uint64_t breaker, int64_t now_ns)
{
    core_assert(breaker_unpack(breaker).state == BIDE_BREAKER_HALF_OPEN);
    core_assert(c->probes >= 1 && c->probes <= BIDE_PROBES_MAX);
    uint32_t generation = core_breaker_generation(breaker);
    uint64_t expiry = breaker_tick_after(core_sum(now_ns, c->probe_timeout_ns));
    for (uint32_t i = 0; i < c->probes; i++) {
        uint64_t word = core_load_acquire(&t->probe[i]);
        struct probe_slot slot = probe_slot_unpack(word);
        if (!core_is_unchanged(&t->breaker, breaker))
            break;
        if (probe_slot_is_taken(slot, generation, now_ns))
            continue;
        struct probe_slot mine = {generation, (slot.stamp + 1) & STAMP_MASK,
                                  expiry < EXPIRY_SUCCEEDED ? expiry : EXPIRY_SUCCEEDED - 1};
        if (core_cas(&t->probe[i], &word, probe_slot_pack(mine)))
            return (struct core_admission){.ticket = generation | mine.stamp << 16 | i << 24, .probe = true};
    }
    if (probe_slots_succeeded(t, c->probes, generation) >= c->probes)
        breaker_try_close(t, breaker, now_ns);
    return (struct core_admission){.refused = {BIDE_REASON_BREAKER_PROBING, probe_slots_expire_ns(t, c->probes)},
                                   .ticket = generation};
}

/* Returns true if the probe with this ticket still holds its slot; *word is the word of the slot. */
static bool probe_slot_is_mine(const struct bide_target *t, uint32_t ticket, int64_t now_ns, uint64_t *word)
{
    core_assert(ticket >> 24 < BIDE_PROBES_MAX); /* the call keeps its ticket itself */
    *word = core_load(&t->probe[ticket >> 24]);
    struct probe_slot slot = probe_slot_unpack(*word);
    return probe_slot_is_taken(slot, ticket & CORE_GENERATION_MASK, now_ns) &&
           slot.stamp == (ticket >> 16 & STAMP_MASK) && slot.expiry != EXPIRY_SUCCEEDED;
}

/* Records the vote of a probe: success marks its slot, a neutral vote frees it. A failed probe keeps its slot, so that
 * no other probe is admitted between this vote and the opening, which frees all slots by changing the generation. */
static void probe_record_vote(struct bide_target *t, const struct core_ballot *b, uint64_t breaker, int64_t now_ns)
{
    struct bide_breaker_config c;
    uint64_t word;
    core_breaker_config(t, &c);
    if (!probe_slot_is_mine(t, b->ticket, now_ns, &word))
        return;
    if (b->vote == CORE_VOTE_FAILURE) {
        (void)breaker_try_open(t, breaker, b->seed, now_ns);
        return;
    }
    struct probe_slot slot = probe_slot_unpack(word);
    slot.expiry = b->vote == CORE_VOTE_HEALTHY ? EXPIRY_SUCCEEDED : 0;
    if (!core_cas(&t->probe[b->ticket >> 24], &word, probe_slot_pack(slot)))
        return; /* another probe claimed the slot after it was loaded: it had expired */
    if (probe_slots_succeeded(t, c.probes, b->ticket & CORE_GENERATION_MASK) >= c.probes)
        breaker_try_close(t, breaker, now_ns);
}

/* ---- admission ---- */

/* Admits a growing share of the attempts after the breaker has closed, so that traffic does not return as a thundering
 * herd. Once the breaker has stayed closed for ramp_ns + open_max_ns, resets the word to calm; a failed CAS means that
 * another thread did so or changed the state. */
static struct core_admission breaker_admit_ramp(struct bide_target *t, const struct bide_breaker_config *c,
                                                uint64_t word, uint64_t seed, int64_t now_ns)
{
    struct breaker_word b = breaker_unpack(word);
    struct core_admission admitted = {.ticket = b.generation};
    int64_t elapsed = core_max(0, now_ns - breaker_tick_to_ns(b.time));
    if (elapsed >= c->ramp_ns) {
        struct breaker_word calm = {.state = BIDE_BREAKER_CLOSED, .generation = b.generation};
        if (elapsed - c->ramp_ns >= c->open_max_ns)
            (void)core_cas(&t->breaker, &word, breaker_pack(calm));
        return admitted;
    }
    struct core_random_key key = {seed, b.generation, CORE_FOR_RAMP};
    int64_t share = c->ramp_ns / RAMP_START + elapsed - elapsed / RAMP_START;
    core_assert(elapsed < c->ramp_ns && share >= 0 && share <= c->ramp_ns);
    int64_t turn = (int64_t)core_uniform(key, (uint64_t)c->ramp_ns - 1);
    if (turn < share)
        return admitted;
    /* The share grows by 9/10 of the time that passes, rounded up or down by less than RAMP_START ns. */
    int64_t missing = core_share(turn - share, RAMP_START, RAMP_START - 1) + RAMP_START;
    return (struct core_admission){.refused = {BIDE_REASON_BREAKER_RAMPING, core_sum(now_ns, missing)},
                                   .ticket = b.generation};
}

/* The open time is over: moves to HALF_OPEN and claims a probe slot. Of two callers that try this at once the loser is
 * refused. The winner competes for the slots with callers that see HALF_OPEN already, so it may be refused too, but
 * then another caller is the first probe. */
static struct core_admission breaker_begin_half_open(struct bide_target *t, const struct bide_breaker_config *c,
                                                     uint64_t word, int64_t now_ns)
{
    struct breaker_word b = breaker_unpack(word);
    core_assert(b.state == BIDE_BREAKER_OPEN);
    struct breaker_word next = {BIDE_BREAKER_HALF_OPEN, b.openings, b.generation + 1, 0};
    if (!core_cas(&t->breaker, &word, breaker_pack(next)))
        return (struct core_admission){.refused = {.reason = BIDE_REASON_BREAKER_PROBING}, .ticket = b.generation};
    return probe_slot_try_claim(t, c, breaker_pack(next), now_ns);
}

struct core_admission core_breaker_admit(struct bide_target *t, uint64_t seed, int64_t now_ns)
{
    struct bide_breaker_config c;
    uint64_t word = core_load(&t->breaker);
    struct breaker_word b = breaker_unpack(word);
    core_breaker_config(t, &c);
    struct core_admission refused_open = {.refused = {BIDE_REASON_BREAKER_OPEN, core_breaker_open_until_ns(t)},
                                          .ticket = b.generation};
    switch (b.state) {
    case BIDE_BREAKER_CLOSED: return breaker_admit_ramp(t, &c, word, seed, now_ns);
    case BIDE_BREAKER_OPEN:
        return now_ns < breaker_tick_to_ns(b.time) ? refused_open : breaker_begin_half_open(t, &c, word, now_ns);
    case BIDE_BREAKER_HALF_OPEN: return probe_slot_try_claim(t, &c, word, now_ns);
    case BIDE_BREAKER_HELD_OPEN: return refused_open;
    case BIDE_BREAKER_HELD_CLOSED:
    default: break;
    }
    return (struct core_admission){.ticket = b.generation};
}

int64_t core_breaker_open_until_ns(const struct bide_target *t)
{
    struct breaker_word b = breaker_unpack(core_load(&t->breaker));
    return b.state == BIDE_BREAKER_OPEN ? breaker_tick_to_ns(b.time) : 0;
}

static void half_open_next(const struct bide_target *t, const struct bide_breaker_config *c, uint32_t generation,
                           struct bide_admission *next, int64_t now_ns)
{
    next->attempts = 0;
    for (uint32_t i = 0; i < c->probes; i++)
        next->attempts += !probe_slot_is_taken(probe_slot_unpack(core_load(&t->probe[i])), generation, now_ns);
    next->reason = BIDE_REASON_BREAKER_PROBING;
    if (next->attempts == 0)
        next->at_ns = probe_slots_expire_ns(t, c->probes);
}

void core_breaker_next(const struct bide_target *t, struct bide_admission *next, int64_t now_ns)
{
    struct bide_breaker_config c;
    struct breaker_word b = breaker_unpack(core_load(&t->breaker));
    core_breaker_config(t, &c);
    bool held = b.state == BIDE_BREAKER_HELD_OPEN;
    if (b.state == BIDE_BREAKER_HALF_OPEN) {
        half_open_next(t, &c, b.generation, next, now_ns);
    } else if (held || (b.state == BIDE_BREAKER_OPEN && now_ns < breaker_tick_to_ns(b.time))) {
        *next = (struct bide_admission){.reason = BIDE_REASON_BREAKER_OPEN,
                                        .at_ns = held ? BIDE_NEVER : breaker_tick_to_ns(b.time)};
    } else if (b.state == BIDE_BREAKER_OPEN) {
        *next = (struct bide_admission){c.probes, BIDE_REASON_BREAKER_PROBING, now_ns, {0}};
    } else if (b.state == BIDE_BREAKER_CLOSED && b.time != 0 && now_ns - breaker_tick_to_ns(b.time) < c.ramp_ns) {
        *next = (struct bide_admission){1, BIDE_REASON_BREAKER_RAMPING, now_ns, {0}};
    }
}

bool core_breaker_is_open_at(const struct bide_target *t, int64_t at_ns)
{
    struct breaker_word b = breaker_unpack(core_load(&t->breaker));
    return b.state == BIDE_BREAKER_HELD_OPEN || (b.state == BIDE_BREAKER_OPEN && at_ns < breaker_tick_to_ns(b.time));
}

/* ---- evidence ---- */

/* Returns the running totals for the marks of the time window: healthy votes, which are counted in lanes, and failures,
 * which are counted in one word. */
static struct core_marks votes_total(const struct bide_target *t)
{
    return (struct core_marks){core_lanes_sum(t, offsetof(struct bide_lane_words_, healthy)), core_load(&t->failures)};
}

static struct core_marks votes_in_window(const struct bide_target *t, struct core_window w, int64_t now_ns)
{
    struct core_marks now = votes_total(t), then = core_window_oldest_marks(w, now, now_ns);
    return (struct core_marks){core_window_difference(now.mark, then.mark),
                               core_window_difference(now.count, then.count)};
}

static __attribute__((noinline)) bool votes_suffice(const struct bide_target *t, struct core_window w,
                                                    uint32_t min_volume, uint32_t ratio_permille, int64_t now_ns)
{
    struct core_marks n = votes_in_window(t, w, now_ns);
    uint64_t volume = n.mark + n.count;
    return volume >= min_volume && n.count * 1000 >= volume * ratio_permille;
}

static bool time_window_record_failure(struct bide_target *t, const struct bide_breaker_config *c, int64_t now_ns)
{
    struct core_window w = core_window(&t->votes, c->window_ns);
    if (!core_window_is_current(w.words, now_ns))
        core_window_begin_slot(w, votes_total(t), now_ns);
    uint64_t failures = core_add(&t->failures, 1);
    struct core_marks then = core_window_oldest_marks(w, (struct core_marks){0, failures}, now_ns);
    failures = core_window_difference(failures, then.count);
    bool too_few =
        failures * 1000 < (uint64_t)c->min_volume * c->ratio_permille; /* whatever the volume is: mostly so */
    return !too_few && votes_suffice(t, w, c->min_volume, c->ratio_permille, now_ns);
}

/* A count window is a ring of bits (1: failure) inside the words of the time window: edge_ns counts the votes,
 * mark[0..3] hold the bits. */
#define RING_WORDS (BIDE_COUNT_WINDOW_MAX / 64)

static uint64_t ring_count_failures(const struct bide_target *t)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < RING_WORDS; i++)
        n += core_popcount(core_load(&t->votes.mark[i]));
    return n;
}

/* Adds a vote to the ring and returns how many votes it holds. Counting the vote and writing its bit are two
 * operations: a reader in between sees the oldest vote in place of the newest, an error of one vote for each thread
 * that is between the two. */
static uint64_t ring_vote(struct bide_target *t, uint32_t size, bool failed)
{
    core_assert(size >= 1 && size <= BIDE_COUNT_WINDOW_MAX);
    uint64_t cast = core_add(&t->votes.edge_ns, 1), place = (cast - 1) % size, bit = UINT64_C(1) << place % 64;
    uint64_t *word = &t->votes.mark[place / 64];
    if (failed)
        __atomic_fetch_or(word, bit, __ATOMIC_RELAXED);
    else
        __atomic_fetch_and(word, ~bit, __ATOMIC_RELAXED);
    return cast < size ? cast : size;
}

static bool count_window_record_failure(struct bide_target *t, const struct bide_breaker_config *c)
{
    uint64_t volume = ring_vote(t, c->count_window, true);
    return volume >= c->min_volume && ring_count_failures(t) * 1000 >= volume * c->ratio_permille;
}

static bool evidence_record_failure(struct bide_target *t, const struct bide_breaker_config *c, int64_t now_ns)
{
    if (c->kind == BIDE_BREAKER_BY_TIME)
        return time_window_record_failure(t, c, now_ns);
    if (c->kind == BIDE_BREAKER_BY_COUNT)
        return count_window_record_failure(t, c);
    return c->kind == BIDE_BREAKER_BY_RUN && core_add(&t->failures, 1) >= c->consecutive;
}

/* Records a healthy vote. While all attempts succeed, threads do not contend: a time window counts in the thread's
 * lane, and a full ring without failures and a run counter of 0 are only read. */
static void evidence_record_healthy(struct bide_target *t, const struct core_ballot *b, enum bide_breaker_kind kind,
                                    int64_t now_ns)
{
    struct bide_breaker_config c;
    core_breaker_config(t, &c);
    if (kind == BIDE_BREAKER_BY_TIME) {
        if (!core_window_is_current(&t->votes, now_ns))
            core_window_begin_slot(core_window(&t->votes, c.window_ns), votes_total(t), now_ns);
        core_add(&t->lane[b->lane].healthy, 1);
    } else if (kind == BIDE_BREAKER_BY_COUNT) {
        if (core_load(&t->votes.edge_ns) < c.count_window || ring_count_failures(t) > 0)
            ring_vote(t, c.count_window, false);
    } else if (core_load(&t->failures) > 0) {
        core_store(&t->failures, 0);
    }
}

void core_breaker_record_failure(struct bide_target *t, uint64_t word, uint64_t seed, int64_t now_ns)
{
    _Static_assert(offsetof(struct bide_breaker_config, slow_ns) % sizeof(core_word) == 0, "copied by words");
    struct bide_breaker_config c; /* filled up to slow_ns: the fields that decide on an opening */
    core_config_copy(t, &c, offsetof(struct bide_target_config, breaker),
                     offsetof(struct bide_breaker_config, slow_ns));
    core_clamp_evidence(&c);
    if (evidence_record_failure(t, &c, now_ns))
        (void)breaker_try_open(t, word, seed, now_ns);
}

void core_breaker_vote(struct bide_target *t, const struct core_ballot *b, uint32_t hot, int64_t now_ns)
{
    uint64_t word = core_load(&t->breaker);
    if (core_breaker_generation(word) != (b->ticket & CORE_GENERATION_MASK))
        return; /* the attempt began before the last change of state: no vote */
    enum bide_breaker_state state = breaker_unpack(word).state;
    if (state != (b->probe ? BIDE_BREAKER_HALF_OPEN : BIDE_BREAKER_CLOSED))
        return; /* admitted by observe mode, or the breaker is held by hand */
    if (b->probe)
        probe_record_vote(t, b, word, now_ns);
    else if (b->vote == CORE_VOTE_HEALTHY)
        evidence_record_healthy(t, b, core_hot_breaker_kind(hot), now_ns);
    else if (b->vote == CORE_VOTE_FAILURE)
        core_breaker_record_failure(t, word, b->seed, now_ns);
}

bool bide_breaker_trip(struct bide_target *t, uint64_t seed, int64_t now_ns)
{
    uint64_t word = core_load(&t->breaker);
    return breaker_unpack(word).state == BIDE_BREAKER_CLOSED && breaker_try_open(t, word, seed, now_ns);
}

/* ---- held by hand; the view ---- */

static bool breaker_is_held(enum bide_breaker_state state)
{
    return state == BIDE_BREAKER_HELD_CLOSED || state == BIDE_BREAKER_HELD_OPEN;
}

void bide_breaker_hold(struct bide_target *t, enum bide_hold hold)
{
    static const enum bide_breaker_state states[] = {BIDE_BREAKER_CLOSED, BIDE_BREAKER_HELD_CLOSED,
                                                     BIDE_BREAKER_HELD_OPEN};
    uint64_t word = core_load(&t->breaker);
    if ((unsigned)hold >= sizeof states / sizeof *states)
        return;
    struct breaker_word next = {.state = states[hold]};
    do {
        if (hold == BIDE_HOLD_RELEASE && !breaker_is_held(breaker_unpack(word).state))
            return; /* not held: automatic operation goes on unchanged */
        next.generation = core_breaker_generation(word) + 1;
    } while (!core_cas(&t->breaker, &word, breaker_pack(next)));
    core_breaker_clear_evidence(t);
}

struct bide_breaker_view core_breaker_get(const struct bide_target *t)
{
    struct breaker_word b = breaker_unpack(core_load(&t->breaker));
    return (struct bide_breaker_view){.state = b.state,
                                      .generation = b.generation,
                                      .openings = b.openings,
                                      .openings_total = core_load(&t->openings),
                                      .until_ns = b.state == BIDE_BREAKER_OPEN ? breaker_tick_to_ns(b.time) : 0};
}

bool core_breaker_is_evictable(const struct bide_target *t, int64_t now_ns)
{
    struct bide_breaker_config c;
    struct breaker_word b = breaker_unpack(core_load(&t->breaker));
    core_breaker_config(t, &c);
    bool long_ago = b.time == 0 || now_ns - breaker_tick_to_ns(b.time) >= core_sum(c.ramp_ns, c.open_max_ns);
    bool by_time = c.kind == BIDE_BREAKER_BY_TIME; /* votes of the other kinds never expire */
    bool failures = by_time && votes_in_window(t, core_window(&t->votes, c.window_ns), now_ns).count > 0;
    return b.state == BIDE_BREAKER_CLOSED && long_ago && !failures;
}

static const char *const state_labels[] = {
    [BIDE_BREAKER_CLOSED] = "closed",       [BIDE_BREAKER_OPEN] = "open",
    [BIDE_BREAKER_HALF_OPEN] = "half_open", [BIDE_BREAKER_HELD_CLOSED] = "held_closed",
    [BIDE_BREAKER_HELD_OPEN] = "held_open",
};

const char *bide_breaker_state_label(enum bide_breaker_state state)
{
    return CORE_LABEL(state_labels, state);
}
