/* breaker.c - when to stop asking, and how to begin again. See bide/breaker.h for the model.
 *
 * The deciding word: state (3 bits), openings in a row (4), generation (16), time (41, ticks of 2^20 ns, 73 years).
 * The time is: OPEN, when probing may begin; CLOSED, when it last closed, or 0 once that is forgotten. Every change of
 * state is one compare-and-swap that also raises the generation; whoever loses it finds the work done.
 *
 * A lease word: generation (16), stamp (7), expiry (41, the same ticks). It is free when the generation is not the
 * present one or the expiry has passed; a probe that succeeded keeps its place until the breaker closes. The stamp
 * tells the holder of an expired lease from the next one. */
#include <bide/breaker.h>

#include "bits.h"
#include "gates.h"
#include "label.h"
#include "saturate.h"
#include "window.h"

#define TICK_SHIFT    20
#define TIME_BITS     41
#define TIME_MAX      ((UINT64_C(1) << TIME_BITS) - 1)
#define OPENINGS_MAX  15u
#define EXPIRY_PASSED TIME_MAX
#define STAMPS        0x7fu
#define RAMP_START    10 /* one in ten at first */

struct gate {
    enum bide_breaker_state state;
    uint32_t openings;
    uint32_t generation;
    uint64_t time;
};

static struct gate unpack(uint64_t word)
{
    return (struct gate){(enum bide_breaker_state)(word & 7), (uint32_t)(word >> 3) & OPENINGS_MAX,
                         core_breaker_generation(word), word >> 23};
}

static uint64_t pack(struct gate g)
{
    return (uint64_t)g.state | (uint64_t)g.openings << 3 | (uint64_t)(g.generation & CORE_LEASE_GENERATION) << 7 |
           g.time << 23;
}

/* Instants are rounded up: never early. */
static uint64_t tick_of(int64_t ns)
{
    uint64_t ticks = ((uint64_t)ns >> TICK_SHIFT) + 1;
    return ticks < TIME_MAX ? ticks : TIME_MAX;
}

static int64_t ns_of(uint64_t ticks)
{
    return (int64_t)(ticks << TICK_SHIFT);
}

/* ---- changes of state ---- */

/* open_ns, grown by the openings before this one, then spread. */
static int64_t open_time(const struct bide_breaker_config *c, struct gate next, uint64_t seed)
{
    int64_t open = c->open_ns;
    for (uint32_t i = 1; i < next.openings && open < c->open_max_ns; i++)
        open = core_min(c->open_max_ns, core_share(open, c->open_growth_milli, 1000));
    int64_t spread = core_share(open, c->open_jitter_permille, 1000);
    struct core_chance chance = {seed, next.generation, CORE_FOR_OPEN};
    return open - spread + (int64_t)core_uniform(chance, 2 * (uint64_t)spread);
}

/* From CLOSED or HALF_OPEN, as seen in word, to OPEN. False: somebody else changed it meanwhile. */
static bool open_up(struct bide_target *t, uint64_t word, uint64_t seed, int64_t now_ns)
{
    struct bide_breaker_config c;
    struct gate g = unpack(word);
    core_breaker_config(t, &c);
    struct gate next = {.state = BIDE_BREAKER_OPEN, .generation = (g.generation + 1) & CORE_LEASE_GENERATION};
    next.openings = g.openings < OPENINGS_MAX ? g.openings + 1 : OPENINGS_MAX;
    next.time = tick_of(core_sum(now_ns, open_time(&c, next, seed)));
    if (!core_cas(&t->breaker, &word, pack(next)))
        return false;
    core_add(&t->openings, 1);
    return true;
}

void core_breaker_forget(struct bide_target *t)
{
    core_store(&t->failures, 0);
    core_store(&t->votes.edge_ns, 0);
    for (uint32_t i = 0; i < BIDE_SLOTS; i++) {
        core_store(&t->votes.mark[i], 0);
        core_store(&t->votes.count[i], 0);
    }
}

static void close_up(struct bide_target *t, uint64_t word, int64_t now_ns)
{
    struct gate g = unpack(word);
    struct gate next = {BIDE_BREAKER_CLOSED, g.openings, g.generation + 1, tick_of(now_ns)};
    if (core_cas(&t->breaker, &word, pack(next)))
        core_breaker_forget(t);
}

/* ---- probes ---- */

struct lease {
    uint32_t generation;
    uint32_t stamp;
    uint64_t expiry;
};

static struct lease unpack_lease(uint64_t word)
{
    return (struct lease){(uint32_t)(word >> 48), (uint32_t)(word >> TIME_BITS) & STAMPS, word & EXPIRY_PASSED};
}

static uint64_t pack_lease(struct lease l)
{
    return (uint64_t)l.generation << 48 | (uint64_t)l.stamp << TIME_BITS | l.expiry;
}

static bool is_held(struct lease l, uint32_t generation, int64_t now_ns)
{
    return l.generation == generation && l.expiry >= tick_of(now_ns);
}

static uint32_t passed(const struct bide_target *t, uint32_t probes, uint32_t generation)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < probes; i++) {
        struct lease l = unpack_lease(core_load(&t->probe[i]));
        n += l.generation == generation && l.expiry == EXPIRY_PASSED;
    }
    return n;
}

/* Takes a free place. When all are taken by probes that succeeded, nobody is left to close the breaker (a killed
 * process, or a reload to fewer probes): then it is done here. */
static struct core_admission probe(struct bide_target *t, const struct bide_breaker_config *c, uint64_t gate,
                                   int64_t now_ns)
{
    uint32_t generation = core_breaker_generation(gate);
    uint64_t expiry = tick_of(core_sum(now_ns, c->probe_timeout_ns));
    for (uint32_t i = 0; i < c->probes; i++) {
        uint64_t word = core_load(&t->probe[i]);
        struct lease l = unpack_lease(word);
        if (is_held(l, generation, now_ns))
            continue;
        struct lease mine = {generation, (l.stamp + 1) & STAMPS, expiry < EXPIRY_PASSED ? expiry : EXPIRY_PASSED - 1};
        if (core_cas(&t->probe[i], &word, pack_lease(mine)))
            return (struct core_admission){.lease = generation | mine.stamp << 16 | i << 24, .probe = true};
    }
    if (passed(t, c->probes, generation) >= c->probes)
        close_up(t, gate, now_ns);
    return (struct core_admission){.refused = BIDE_REASON_BREAKER_PROBING, .lease = generation};
}

/* The word of the lease that a probe holds, if it still does. */
static bool still_mine(const struct bide_target *t, uint32_t lease, int64_t now_ns, uint64_t *word)
{
    *word = core_load(&t->probe[lease >> 24]);
    struct lease l = unpack_lease(*word);
    return is_held(l, lease & CORE_LEASE_GENERATION, now_ns) && l.stamp == (lease >> 16 & STAMPS) &&
           l.expiry != EXPIRY_PASSED;
}

/* A failure keeps its place, so that nobody is let through between its report and the opening. */
static void probe_reports(struct bide_target *t, const struct core_ballot *b, uint64_t gate, int64_t now_ns)
{
    struct bide_breaker_config c;
    uint64_t word;
    core_breaker_config(t, &c);
    if (!still_mine(t, b->lease, now_ns, &word))
        return;
    if (b->vote == CORE_VOTE_FAILURE) {
        (void)open_up(t, gate, b->seed, now_ns);
        return;
    }
    struct lease l = unpack_lease(word);
    l.expiry = b->vote == CORE_VOTE_HEALTHY ? EXPIRY_PASSED : 0;
    if (!core_cas(&t->probe[b->lease >> 24], &word, pack_lease(l)))
        return; /* it expired this very moment */
    if (passed(t, c.probes, b->lease & CORE_LEASE_GENERATION) >= c.probes)
        close_up(t, gate, now_ns);
}

/* ---- admission ---- */

/* Closed lately: a growing share may pass. Once closed for long enough, the opening is forgotten. */
static struct core_admission ramp(struct bide_target *t, const struct bide_breaker_config *c, uint64_t word,
                                  uint64_t seed, int64_t now_ns)
{
    struct gate g = unpack(word);
    struct core_admission yes = {.lease = g.generation};
    int64_t elapsed = core_max(0, now_ns - ns_of(g.time));
    if (elapsed >= c->ramp_ns) {
        struct gate calm = {.state = BIDE_BREAKER_CLOSED, .generation = g.generation};
        if (elapsed - c->ramp_ns >= c->open_max_ns)
            (void)core_cas(&t->breaker, &word, pack(calm));
        return yes;
    }
    struct core_chance chance = {seed, g.generation, CORE_FOR_RAMP};
    int64_t share = c->ramp_ns / RAMP_START + elapsed - elapsed / RAMP_START;
    if ((int64_t)core_uniform(chance, (uint64_t)c->ramp_ns - 1) < share)
        return yes;
    return (struct core_admission){.refused = BIDE_REASON_BREAKER_RAMPING, .lease = g.generation};
}

static struct core_admission half_open(struct bide_target *t, const struct bide_breaker_config *c, uint64_t word,
                                       int64_t now_ns)
{
    struct gate g = unpack(word);
    struct gate next = {BIDE_BREAKER_HALF_OPEN, g.openings, g.generation + 1, 0};
    if (!core_cas(&t->breaker, &word, pack(next)))
        return (struct core_admission){.refused = BIDE_REASON_BREAKER_PROBING, .lease = g.generation};
    return probe(t, c, pack(next), now_ns);
}

struct core_admission core_breaker_admit(struct bide_target *t, uint64_t seed, int64_t now_ns)
{
    struct bide_breaker_config c;
    uint64_t word = core_load(&t->breaker);
    struct gate g = unpack(word);
    core_breaker_config(t, &c);
    struct core_admission no = {.refused = BIDE_REASON_BREAKER_OPEN, .lease = g.generation};
    switch (g.state) {
    case BIDE_BREAKER_CLOSED: return ramp(t, &c, word, seed, now_ns);
    case BIDE_BREAKER_OPEN: return now_ns < ns_of(g.time) ? no : half_open(t, &c, word, now_ns);
    case BIDE_BREAKER_HALF_OPEN: return probe(t, &c, word, now_ns);
    case BIDE_BREAKER_HELD_OPEN: return no;
    case BIDE_BREAKER_HELD_CLOSED: break;
    }
    return (struct core_admission){.lease = g.generation};
}

bool core_breaker_is_open_at(const struct bide_target *t, int64_t at_ns)
{
    struct gate g = unpack(core_load(&t->breaker));
    return g.state == BIDE_BREAKER_HELD_OPEN || (g.state == BIDE_BREAKER_OPEN && at_ns < ns_of(g.time));
}

/* ---- evidence ---- */

/* The time window: healthy votes are counted in lanes, failures in one word, and slots keep marks of both. */
static struct core_marks totals(const struct bide_target *t)
{
    return (struct core_marks){core_lanes_sum(t, offsetof(struct bide_lane_words_, healthy)), core_load(&t->failures)};
}

static struct core_marks in_window(const struct bide_target *t, struct core_window w, int64_t now_ns)
{
    struct core_marks now = totals(t), then = core_window_oldest(w, now, now_ns);
    return (struct core_marks){core_window_since(now.mark, then.mark), core_window_since(now.count, then.count)};
}

static bool time_window_failed(struct bide_target *t, const struct bide_breaker_config *c, int64_t now_ns)
{
    struct core_window w = core_window(&t->votes, c->window_ns);
    if (!core_window_is_fresh(w.words, now_ns))
        core_window_turn(w, totals(t), now_ns);
    core_add(&t->failures, 1);
    struct core_marks n = in_window(t, w, now_ns);
    uint64_t volume = n.mark + n.count;
    return volume >= c->min_volume && n.count * 1000 >= volume * c->ratio_permille;
}

/* The ring of a count window lies in the words of the time window: edge_ns counts the votes, mark[0..3] are bits. */
#define RING_WORDS (BIDE_COUNT_WINDOW_MAX / 64)

static uint64_t ring_failures(const struct bide_target *t)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < RING_WORDS; i++)
        n += core_ones(core_load(&t->votes.mark[i]));
    return n;
}

static uint64_t ring_vote(struct bide_target *t, uint32_t size, bool failed)
{
    size = (size - 1) % BIDE_COUNT_WINDOW_MAX + 1; /* as it is; never 0, even if shared memory was zeroed meanwhile */
    uint64_t cast = core_add(&t->votes.edge_ns, 1), place = (cast - 1) % size, bit = UINT64_C(1) << place % 64;
    uint64_t *word = &t->votes.mark[place / 64];
    if (failed)
        __atomic_fetch_or(word, bit, __ATOMIC_RELAXED);
    else
        __atomic_fetch_and(word, ~bit, __ATOMIC_RELAXED);
    return cast < size ? cast : size;
}

static bool count_window_failed(struct bide_target *t, const struct bide_breaker_config *c)
{
    uint64_t volume = ring_vote(t, c->count_window, true);
    return volume >= c->min_volume && ring_failures(t) * 1000 >= volume * c->ratio_permille;
}

static bool has_failed(struct bide_target *t, const struct bide_breaker_config *c, int64_t now_ns)
{
    switch (c->kind) {
    case BIDE_BREAKER_BY_TIME: return time_window_failed(t, c, now_ns);
    case BIDE_BREAKER_BY_COUNT: return count_window_failed(t, c);
    case BIDE_BREAKER_BY_RUN: return core_add(&t->failures, 1) >= c->consecutive;
    case BIDE_BREAKER_OFF:
    default: break;
    }
    return false;
}

/* In good times a ring without failures, and no failures in a row, are only read. */
static void note_healthy(struct bide_target *t, const struct core_ballot *b, enum bide_breaker_kind kind,
                         int64_t now_ns)
{
    struct bide_breaker_config c;
    core_breaker_config(t, &c);
    if (kind == BIDE_BREAKER_BY_TIME) {
        if (!core_window_is_fresh(&t->votes, now_ns))
            core_window_turn(core_window(&t->votes, c.window_ns), totals(t), now_ns);
        core_add(&t->lane[b->lane].healthy, 1);
    } else if (kind == BIDE_BREAKER_BY_COUNT) {
        if (core_load(&t->votes.edge_ns) < c.count_window || ring_failures(t) > 0)
            ring_vote(t, c.count_window, false);
    } else if (core_load(&t->failures) > 0) {
        core_store(&t->failures, 0);
    }
}

void core_breaker_failure(struct bide_target *t, uint64_t word, uint64_t seed, int64_t now_ns)
{
    _Static_assert(offsetof(struct bide_breaker_config, slow_ns) % sizeof(core_word) == 0, "copied by words");
    struct bide_breaker_config c; /* only what evidence needs */
    core_config_part(t, &c, offsetof(struct bide_target_config, breaker),
                     offsetof(struct bide_breaker_config, slow_ns));
    if (has_failed(t, &c, now_ns))
        (void)open_up(t, word, seed, now_ns);
}

void core_breaker_vote(struct bide_target *t, const struct core_ballot *b, uint32_t hot, int64_t now_ns)
{
    uint64_t word = core_load(&t->breaker);
    if (core_breaker_generation(word) != (b->lease & CORE_LEASE_GENERATION))
        return; /* began before the last change: no vote */
    if (b->probe)
        probe_reports(t, b, word, now_ns);
    else if (unpack(word).state != BIDE_BREAKER_CLOSED)
        return; /* let through by observe mode, or held by hand */
    else if (b->vote == CORE_VOTE_HEALTHY)
        note_healthy(t, b, core_hot_breaker(hot), now_ns);
    else if (b->vote == CORE_VOTE_FAILURE)
        core_breaker_failure(t, word, b->seed, now_ns);
}

bool bide_breaker_trip(struct bide_target *t, uint64_t seed, int64_t now_ns)
{
    uint64_t word = core_load(&t->breaker);
    return unpack(word).state == BIDE_BREAKER_CLOSED && open_up(t, word, seed, now_ns);
}

/* ---- by hand, and looking ---- */

static bool is_by_hand(enum bide_breaker_state state)
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
    struct gate next = {.state = states[hold]};
    do {
        if (hold == BIDE_HOLD_RELEASE && !is_by_hand(unpack(word).state))
            return; /* what nobody holds goes on as it is */
        next.generation = core_breaker_generation(word) + 1;
    } while (!core_cas(&t->breaker, &word, pack(next)));
    core_breaker_forget(t);
}

struct bide_breaker_view bide_breaker_get(const struct bide_target *t)
{
    struct gate g = unpack(core_load(&t->breaker));
    return (struct bide_breaker_view){.state = g.state,
                                      .generation = g.generation,
                                      .openings = g.openings,
                                      .openings_total = core_load(&t->openings),
                                      .until_ns = g.state == BIDE_BREAKER_OPEN ? ns_of(g.time) : 0};
}

bool core_breaker_blank(const struct bide_target *t, int64_t now_ns)
{
    struct bide_breaker_config c;
    struct gate g = unpack(core_load(&t->breaker));
    core_breaker_config(t, &c);
    bool long_ago = g.time == 0 || now_ns - ns_of(g.time) >= core_sum(c.ramp_ns, c.open_max_ns);
    bool by_time = c.kind == BIDE_BREAKER_BY_TIME; /* the other kinds' evidence never ages: it would be kept for ever */
    bool failures = by_time && in_window(t, core_window(&t->votes, c.window_ns), now_ns).count > 0;
    return g.state == BIDE_BREAKER_CLOSED && long_ago && !failures;
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
