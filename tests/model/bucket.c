/* bucket.c - the token bucket of the model: docs/budget.md and, for the refill under a lease, docs/internals/lease.md.
 */
#include "model.h"

#define UNIT    ((model_wide)60 * BIDE_S) /* one thousandth: a rate per minute then adds its number per ns */
#define TICK_NS (INT64_C(1) << 23)

static model_wide refill_units(const struct model *m, int64_t ns)
{
    return ns > 0 ? (model_wide)ns * m->config.budget.refill_per_minute_milli : 0;
}

static model_wide at_most(model_wide level, model_wide most)
{
    return level < most ? level : most;
}

void bucket_set(struct bucket *b, int64_t milli, int64_t now_ns)
{
    b->lo = b->hi = milli * UNIT;
    b->since_ns = now_ns;
    b->reloaded = false;
}

/* Returns when the refill counts from: under a lease, not before its end. */
int64_t bucket_refill_from(const struct model *m)
{
    return m->lease.on && m->lease.until_ns > m->bucket.since_ns ? m->lease.until_ns : m->bucket.since_ns;
}

/* The stored level and the refill until now. */
static struct bucket filled(const struct model *m, int64_t now_ns)
{
    model_wide full = m->config.budget.capacity_milli * UNIT, elapsed = refill_units(m, now_ns - bucket_refill_from(m));
    int64_t ticks =
        1 + m->bucket.reloaded + 2 * m->lease.on; /* the beginning and the end of a lease may lose one each */
    model_wide lost = refill_units(m, ticks * TICK_NS) + (ticks > 1 ? UNIT : 0);
    model_wide sure = elapsed > lost ? elapsed - lost : 0;
    return (struct bucket){.lo = at_most(m->bucket.lo + sure, full),
                           .hi = at_most(m->bucket.hi + elapsed, full),
                           .since_ns = now_ns,
                           .reloaded = m->bucket.reloaded && sure == 0};
}

/* The library may be ahead by a part of a tick: that in which it began to count. */
struct level bucket_level(const struct model *m, int64_t now_ns)
{
    struct bucket b = filled(m, now_ns);
    model_wide most = at_most(b.hi + refill_units(m, TICK_NS), m->config.budget.capacity_milli * UNIT);
    return (struct level){(int64_t)(b.lo / UNIT), (int64_t)(most / UNIT)};
}

void bucket_credit(struct model *m, int64_t now_ns)
{
    m->bucket = filled(m, now_ns);
}

/* A fraction of a thousandth, which the library keeps as elapsed time, may be lost. */
void bucket_drop_fraction(struct model *m)
{
    m->bucket.lo -= m->bucket.lo % UNIT;
}

/* A reload credits the part of a tick that the library is ahead, at the old rate. */
void bucket_credit_at_reload(struct model *m, int64_t now_ns)
{
    bucket_credit(m, now_ns);
    m->bucket.hi = at_most(m->bucket.hi + refill_units(m, TICK_NS), m->config.budget.capacity_milli * UNIT);
    bucket_drop_fraction(m);
    m->bucket.reloaded = true;
}

/* Does not convert elapsed time: the refill since the last conversion is added later, up to the capacity. */
void bucket_add(struct model *m, int64_t milli)
{
    model_wide full = m->config.budget.capacity_milli * UNIT;
    m->bucket.lo = at_most(m->bucket.lo + milli * UNIT, full);
    m->bucket.hi = at_most(m->bucket.hi + milli * UNIT, full);
}

int64_t bucket_needed_milli(const struct model *m, int64_t cost_milli)
{
    const struct bide_budget_config *b = &m->config.budget;
    int64_t above = b->threshold_milli > 0 ? (int64_t)b->threshold_milli + 1 : 0;
    return cost_milli > above ? cost_milli : above;
}

enum fate bucket_can_pay(const struct model *m, int64_t cost_milli, int64_t now_ns)
{
    int64_t needed = bucket_needed_milli(m, cost_milli);
    struct level level = bucket_level(m, now_ns);
    if (m->config.budget.capacity_milli == 0 || level.hi < needed)
        return FATE_NO;
    return level.lo >= needed ? FATE_YES : FATE_EITHER;
}

void bucket_pay(struct model *m, int64_t cost_milli, int64_t now_ns)
{
    model_wide needed = bucket_needed_milli(m, cost_milli) * UNIT;
    bucket_credit(m, now_ns);
    m->bucket.lo = (m->bucket.lo > needed ? m->bucket.lo : needed) - cost_milli * UNIT;
    m->bucket.hi = (m->bucket.hi > needed ? m->bucket.hi : needed) - cost_milli * UNIT;
}

/* The library refused where both were possible: its level is below the cost. A refusal converts no time. */
void bucket_refuse(struct model *m, int64_t cost_milli, int64_t now_ns)
{
    model_wide credited = filled(m, now_ns).lo - m->bucket.lo;
    model_wide below = bucket_needed_milli(m, cost_milli) * UNIT - 1 - credited;
    m->bucket.hi = at_most(m->bucket.hi, below > m->bucket.lo ? below : m->bucket.lo);
}

/* Removes whole thousandths: a fraction stays, as elapsed time that is not converted yet. */
void bucket_drain(struct model *m, int64_t milli, int64_t now_ns)
{
    struct bucket *b = &m->bucket;
    if (milli == 0)
        return;
    struct level level = bucket_level(m, now_ns);
    bucket_credit(m, now_ns);
    bool empties = b->hi < (milli + 1) * UNIT, exact = level.lo == level.hi;
    model_wide removed = milli * UNIT;
    model_wide lo_left = exact ? b->lo % UNIT : 0, hi_left = exact ? b->hi % UNIT : UNIT - 1;
    b->hi = empties ? hi_left : b->hi - removed;
    b->lo = empties ? lo_left : b->lo > removed ? b->lo - removed : 0;
}
