/* breaker.c - the circuit breaker of the model: docs/breaker.md. */
#include "model.h"

#include <string.h>

#define TICK_NS (INT64_C(1) << 20)

/* Instants are stored in ticks, rounded up; a whole number of ticks becomes the next one. */
static int64_t rounded_up(int64_t ns)
{
    return (ns / TICK_NS + 1) * TICK_NS;
}

void breaker_clear_evidence(struct model *m)
{
    struct breaker *b = &m->breaker;
    slots_open(&b->votes, m->config.breaker.window_ns);
    b->ring_used = b->ring_next = b->run = 0;
}

static void change_state(struct model *m, enum bide_breaker_state state)
{
    m->breaker.state = state;
    m->breaker.generation++;
    m->breaker.until_ns = 0;
}

/* The open time without jitter. Rounding of the growth is open: the difference is smaller than a tick. */
static int64_t open_time_ns(const struct bide_breaker_config *c, uint32_t openings)
{
    model_wide ns = c->open_ns;
    for (uint32_t i = 1; i < openings && ns < c->open_max_ns; i++)
        ns = ns * c->open_growth_milli / 1000;
    return ns < c->open_max_ns ? (int64_t)ns : c->open_max_ns;
}

/* Chooses the end of the open time: the library's, if that is in the range of the jitter. */
static int64_t open_until_ns(const struct model *m, int64_t now_ns)
{
    const struct bide_breaker_config *c = &m->config.breaker;
    int64_t ns = open_time_ns(c, m->breaker.openings);
    int64_t jitter = (int64_t)((model_wide)ns * c->open_jitter_permille / 1000);
    int64_t first = rounded_up(now_ns + ns - jitter), last = rounded_up(now_ns + ns + jitter);
    return m->view.until_ns >= first && m->view.until_ns <= last ? m->view.until_ns : first;
}

/* A call is admitted: the breaker may have stayed closed so long that the next opening is the first of a row. Within a
 * tick both are right. */
static void forget_openings(struct model *m, int64_t now_ns)
{
    const struct bide_breaker_config *c = &m->config.breaker;
    int64_t calm_ns = rounded_up(m->breaker.closed_ns) + c->ramp_ns + c->open_max_ns;
    bool may = now_ns >= calm_ns - TICK_NS, must = now_ns >= calm_ns + TICK_NS;
    if (must || (may && m->view.openings == 0))
        m->breaker.openings = 0;
}

void breaker_open(struct model *m, int64_t now_ns)
{
    struct breaker *b = &m->breaker;
    b->openings += b->openings < 15;
    b->openings_total++;
    change_state(m, BIDE_BREAKER_OPEN);
    b->until_ns = open_until_ns(m, now_ns);
}

static void close_after_probes(struct model *m, int64_t now_ns)
{
    breaker_clear_evidence(m);
    change_state(m, BIDE_BREAKER_CLOSED);
    m->breaker.closed_ns = now_ns;
    m->breaker.ramps = true;
}

/* -- admission ----------------------------------------------------------------------------------------------------- */

static void begin_probing(struct model *m)
{
    memset(m->breaker.probe, 0, sizeof m->breaker.probe);
    change_state(m, BIDE_BREAKER_HALF_OPEN);
}

static bool all_probes_succeeded(const struct model *m)
{
    for (uint32_t i = 0; i < m->config.breaker.probes; i++)
        if (m->breaker.probe[i].use != SLOT_DONE)
            return false;
    return true;
}

static enum bide_reason admit_probe(struct model *m, struct ticket *t, int64_t now_ns)
{
    struct breaker *b = &m->breaker;
    for (uint32_t i = 0; i < m->config.breaker.probes; i++) {
        if (b->probe[i].use == SLOT_DONE || (b->probe[i].use == SLOT_BUSY && now_ns < b->probe[i].expires_ns))
            continue;
        b->probe[i].use = SLOT_BUSY;
        b->probe[i].expires_ns = rounded_up(now_ns + m->config.breaker.probe_timeout_ns);
        b->probe[i].holder = ++b->holders;
        *t = (struct ticket){b->generation, true, (int)i, b->holders};
        return BIDE_REASON_NOTHING;
    }
    return BIDE_REASON_BREAKER_PROBING;
}

static enum bide_reason admit_closed(struct model *m, struct ticket *t, int64_t now_ns)
{
    struct breaker *b = &m->breaker;
    *t = (struct ticket){b->generation, true, -1, 0};
    forget_openings(m, now_ns);
    int64_t ramp_end_ns = b->closed_ns + m->config.breaker.ramp_ns;
    bool ramps = b->ramps && now_ns < ramp_end_ns + TICK_NS;
    if (ramps && model_decides_no(m, BIDE_GATE_BREAKER, FATE_EITHER))
        return BIDE_REASON_BREAKER_RAMPING;
    return BIDE_REASON_NOTHING;
}

enum bide_reason breaker_admit(struct model *m, struct ticket *t, int64_t now_ns)
{
    struct breaker *b = &m->breaker;
    *t = (struct ticket){.probe = -1};
    if (b->state == BIDE_BREAKER_HELD_CLOSED)
        return BIDE_REASON_NOTHING;
    if (b->state == BIDE_BREAKER_HELD_OPEN || (b->state == BIDE_BREAKER_OPEN && now_ns < b->until_ns))
        return BIDE_REASON_BREAKER_OPEN;
    if (b->state == BIDE_BREAKER_OPEN)
        begin_probing(m);
    if (b->state == BIDE_BREAKER_HALF_OPEN && all_probes_succeeded(m)) /* fewer probes after a reload */
        close_after_probes(m, now_ns);
    return b->state == BIDE_BREAKER_HALF_OPEN ? admit_probe(m, t, now_ns) : admit_closed(m, t, now_ns);
}

int64_t breaker_ramp_end_ns(const struct model *m)
{
    return rounded_up(m->breaker.closed_ns) + m->config.breaker.ramp_ns + TICK_NS;
}

/* Would a wait be admitted that ends between lo_ns and hi_ns? */
enum fate breaker_admits_wait(const struct model *m, int64_t lo_ns, int64_t hi_ns)
{
    const struct breaker *b = &m->breaker;
    if (b->state == BIDE_BREAKER_HELD_OPEN || (b->state == BIDE_BREAKER_OPEN && b->until_ns > hi_ns))
        return FATE_NO;
    return b->state == BIDE_BREAKER_OPEN && b->until_ns > lo_ns ? FATE_EITHER : FATE_YES;
}

/* -- votes --------------------------------------------------------------------------------------------------------- */

static void vote_of_probe(struct model *m, const struct ticket *t, int vote, int64_t now_ns)
{
    struct breaker *b = &m->breaker;
    if (b->probe[t->probe].use != SLOT_BUSY || b->probe[t->probe].holder != t->holder ||
        now_ns >= b->probe[t->probe].expires_ns)
        return;
    if (vote < 0) {
        breaker_open(m, now_ns);
        return;
    }
    b->probe[t->probe].use = vote > 0 ? SLOT_DONE : SLOT_FREE;
    if (all_probes_succeeded(m))
        close_after_probes(m, now_ns);
}

static bool ratio_is_reached(const struct bide_breaker_config *c, int64_t votes, int64_t failures)
{
    return votes >= c->min_volume && failures * 1000 >= votes * c->ratio_permille;
}

static bool opens_by_time(struct model *m, bool failed, int64_t now_ns)
{
    int64_t healthy, failures;
    slots_add(&m->breaker.votes, !failed, failed, now_ns);
    slots_sum(&m->breaker.votes, now_ns, &healthy, &failures);
    return failed && ratio_is_reached(&m->config.breaker, healthy + failures, failures);
}

static bool opens_by_count(struct model *m, bool failed)
{
    struct breaker *b = &m->breaker;
    uint32_t size = m->config.breaker.count_window, failures = 0;
    b->ring[b->ring_next] = failed;
    b->ring_next = (b->ring_next + 1) % size;
    b->ring_used += b->ring_used < size;
    for (uint32_t i = 0; i < b->ring_used; i++)
        failures += b->ring[i];
    return failed && ratio_is_reached(&m->config.breaker, b->ring_used, failures);
}

static bool opens_by_run(struct model *m, bool failed)
{
    m->breaker.run = failed ? m->breaker.run + 1 : 0;
    return m->breaker.run >= m->config.breaker.consecutive;
}

static bool opens(struct model *m, bool failed, int64_t now_ns)
{
    switch (m->config.breaker.kind) {
    case BIDE_BREAKER_BY_TIME: return opens_by_time(m, failed, now_ns);
    case BIDE_BREAKER_BY_COUNT: return opens_by_count(m, failed);
    case BIDE_BREAKER_BY_RUN: return opens_by_run(m, failed);
    default: return false;
    }
}

void breaker_vote(struct model *m, const struct ticket *t, int vote, int64_t now_ns)
{
    if (!t->votes || t->generation != m->breaker.generation)
        return;
    if (t->probe >= 0)
        vote_of_probe(m, t, vote, now_ns);
    else if (vote != 0 && opens(m, vote < 0, now_ns))
        breaker_open(m, now_ns);
}

/* -- by hand ------------------------------------------------------------------------------------------------------- */

void breaker_hold(struct model *m, enum bide_hold hold)
{
    static const enum bide_breaker_state states[] = {BIDE_BREAKER_CLOSED, BIDE_BREAKER_HELD_CLOSED,
                                                     BIDE_BREAKER_HELD_OPEN};
    enum bide_breaker_state now = m->breaker.state;
    bool held = now == BIDE_BREAKER_HELD_CLOSED || now == BIDE_BREAKER_HELD_OPEN;
    if (hold == BIDE_HOLD_RELEASE && !held)
        return;
    breaker_clear_evidence(m);
    change_state(m, states[hold]);
    m->breaker.ramps = false;
    m->breaker.openings = 0;
}
