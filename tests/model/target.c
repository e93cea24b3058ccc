/* target.c - the rest of a target in the model: reload (docs/target.md), hold-off, lease (docs/internals/lease.md). */
#include "model.h"

#include <string.h>

bool model_refuse(struct model *m, struct expected *e, enum bide_gate gate)
{
    m->refused[__builtin_ctz(gate)]++;
    if ((m->config.observe & gate) == 0)
        return true;
    e->observed |= gate;
    return false;
}

bool model_decides_no(const struct model *m, enum bide_gate gate, enum fate allowed)
{
    int i = __builtin_ctz(gate);
    return allowed == FATE_NO || (allowed == FATE_EITHER && m->refused_by_library[i] > m->refused[i]);
}

static int64_t initial_milli(const struct bide_budget_config *b)
{
    return b->initial_milli == BIDE_FULL ? b->capacity_milli : b->initial_milli;
}

void model_init(struct model *m, const struct bide_target_config *config, int64_t now_ns)
{
    memset(m, 0, sizeof *m);
    m->config = *config;
    bucket_set(&m->bucket, initial_milli(&config->budget), now_ns);
    slots_open(&m->spends, config->budget.window_ns);
    breaker_clear_evidence(m);
}

/* -- reload -------------------------------------------------------------------------------------------------------- */

struct level model_left(const struct model *m, int64_t now_ns)
{
    int64_t window = window_left_milli(m, now_ns);
    if (m->config.budget.kind == BIDE_BUDGET_TOKENS)
        return bucket_level(m, now_ns);
    if (m->config.budget.kind == BIDE_BUDGET_WINDOW)
        return (struct level){now_ns < m->blocked_most_ns ? 0 : window, now_ns < m->blocked_ns ? 0 : window};
    return (struct level){INT64_MAX, INT64_MAX};
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void reload_to_tokens(struct model *m, struct level left, int64_t now_ns)
{
    int64_t initial = initial_milli(&m->config.budget);
    struct bucket most;
    bucket_set(&most, smaller(initial, left.hi), now_ns);
    bucket_set(&m->bucket, smaller(initial, left.lo), now_ns);
    m->bucket.hi = most.hi;
}

/* A new grid of slots: requests and retries so far count from now on. */
static void reload_slots(struct model *m, int64_t now_ns)
{
    int64_t requests, retries;
    slots_sum(&m->spends, now_ns, &requests, &retries);
    slots_open(&m->spends, m->config.budget.window_ns);
    slots_add(&m->spends, requests, retries, now_ns);
}

/* The page leaves open when a cooldown ends that is reloaded: at the latest with the old cooldown or a new window. */
static void reload_cooldown(struct model *m, int64_t now_ns)
{
    int64_t window_ns = now_ns + m->config.budget.window_ns;
    if (now_ns >= m->blocked_most_ns)
        return;
    m->blocked_most_ns = m->blocked_most_ns > window_ns ? m->blocked_most_ns : window_ns;
    m->blocked_ns = now_ns;
}

static void reload_budget(struct model *m, const struct bide_budget_config *old, struct level left, bool could_pay,
                          int64_t now_ns)
{
    const struct bide_budget_config *b = &m->config.budget;
    bool same = b->kind == old->kind && (b->kind != BIDE_BUDGET_WINDOW || b->window_ns == old->window_ns);
    if (same && b->kind == BIDE_BUDGET_TOKENS)
        bucket_add(m, 0); /* the excess over a smaller capacity */
    if (same && b->kind == BIDE_BUDGET_WINDOW)
        reload_cooldown(m, now_ns);
    if (same)
        return;
    if (b->kind == BIDE_BUDGET_TOKENS)
        reload_to_tokens(m, left, now_ns);
    if (b->kind == BIDE_BUDGET_WINDOW)
        reload_slots(m, now_ns);
    if (b->kind == BIDE_BUDGET_WINDOW && !could_pay)
        m->blocked_ns = m->blocked_most_ns = now_ns + b->window_ns;
    else if (b->kind != old->kind)
        m->blocked_ns = m->blocked_most_ns = 0;
}

/* Could the budget afford a retry before the reload? FATE_EITHER: its level is not known well enough. */
enum fate model_could_pay(const struct model *m, int64_t now_ns)
{
    struct level left = model_left(m, now_ns);
    bool tokens = m->config.budget.kind == BIDE_BUDGET_TOKENS;
    int64_t needed = tokens ? bucket_needed_milli(m, m->config.budget.cost_milli) : 1;
    if (left.hi < needed)
        return FATE_NO;
    return left.lo >= needed ? FATE_YES : FATE_EITHER;
}

static bool evidence_restarts(const struct bide_breaker_config *a, const struct bide_breaker_config *b)
{
    return a->kind != b->kind || a->window_ns != b->window_ns || a->count_window != b->count_window;
}

void model_configure(struct model *m, const struct bide_target_config *config, int64_t now_ns)
{
    struct bide_target_config old = m->config;
    struct level left = model_left(m, now_ns);
    bool paid = model_could_pay(m, now_ns) != FATE_NO;
    if (old.budget.kind == BIDE_BUDGET_TOKENS)
        bucket_credit_at_reload(m, now_ns);
    m->config = *config;
    reload_budget(m, &old.budget, left, paid, now_ns);
    if (evidence_restarts(&old.breaker, &config->breaker))
        breaker_clear_evidence(m);
    if (m->hold_off_ns > now_ns)
        m->hold_off_ns = smaller(m->hold_off_ns, now_ns + config->hold_off_max_ns);
}

/* -- hold-off ------------------------------------------------------------------------------------------------------ */

/* Extends the hold-off. Only a success of an attempt that starts from now on ends it. */
void model_hold_off(struct model *m, int64_t until_ns, int64_t now_ns)
{
    int64_t limit_ns = m->config.hold_off_max_ns;
    if (limit_ns == 0 || until_ns <= now_ns)
        return;
    if (until_ns - now_ns > limit_ns)
        until_ns = now_ns + limit_ns;
    if (m->hold_off_ns < until_ns)
        m->hold_off_ns = until_ns;
    m->hold_asked_ns = now_ns;
}

/* -- lease --------------------------------------------------------------------------------------------------------- */

void model_lease_begin(struct model *m, int64_t now_ns)
{
    if (m->lease.on)
        return;
    bucket_set(&m->bucket, 0, now_ns);
    m->lease.on = true; /* a claim outlives the lease */
    m->lease.until_ns = now_ns > 0 ? now_ns : 1;
    m->lease.report = (struct core_lease_report){0, 0, 0};
    m->lease.memo = (struct core_lease_memo){0, 0};
}

/* Refill since the last end that no charge has credited is forfeited. */
void model_lease_extend(struct model *m, int64_t until_ns, int64_t now_ns)
{
    struct lease *l = &m->lease;
    if (!l->on)
        return;
    if (until_ns > now_ns && until_ns > l->until_ns) {
        l->until_ns = until_ns;
        bucket_drop_fraction(m);
    } else if (until_ns <= now_ns && l->until_ns > now_ns) {
        l->until_ns = now_ns > 0 ? now_ns : 1; /* 0 means that there is no lease */
    }
}

/* The refill after the end of the lease is credited, as by a reload. */
void model_lease_end(struct model *m, int64_t now_ns)
{
    if (!m->lease.on)
        return;
    bucket_credit_at_reload(m, now_ns);
    m->lease.on = false;
}

#define HALF_SECOND_NS (INT64_C(1) << 29) /* 0.54 s */

bool model_lease_claim(struct model *m, uint32_t exchanger, int64_t until_ns, int64_t now_ns)
{
    struct lease *l = &m->lease;
    bool others = l->exchanger != 0 && l->exchanger != exchanger && l->claim_until_ns > now_ns;
    if (others)
        return false;
    if (until_ns <= now_ns) {
        if (l->exchanger == exchanger)
            l->exchanger = 0;
        return false;
    }
    l->exchanger = exchanger;
    l->claim_until_ns = (until_ns + HALF_SECOND_NS - 1) / HALF_SECOND_NS * HALF_SECOND_NS;
    return true;
}
