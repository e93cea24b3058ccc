/* spread.c - the distribution of decorrelated waits over cells. See spread.h for the model. */
#include "spread.h"

#include "core/saturate.h"

#define WHOLE (UINT64_C(1) << 40)

/* ---- windows ---- */

/* The windows only grow with the wait before, so its two ends are enough. */
struct bide_range explain_window_after(const struct bide_policy *policy, struct bide_step step,
                                       struct bide_range before)
{
    step.previous_ns = before.lo_ns;
    struct bide_range low = bide_backoff_window(policy, step);
    step.previous_ns = before.hi_ns;
    struct bide_range high = bide_backoff_window(policy, step);
    return (struct bide_range){core_min(low.lo_ns, high.lo_ns), core_max(low.hi_ns, high.hi_ns)};
}

struct bide_range explain_window(const struct bide_policy *policy, struct bide_step step)
{
    struct bide_range before = {0, 0};
    for (uint32_t i = 0; i < step.step && i < EXPLAIN_STEPS; i++)
        before = explain_window_after(policy, (struct bide_step){.step = i}, before);
    return explain_window_after(policy, step, before);
}

/* ---- cells ---- */

void explain_spread_start(struct explain_spread *s)
{
    *s = (struct explain_spread){.width_ns = 1, .atom = WHOLE}; /* at 0, which stands for the base */
}

static int64_t middle_of(const struct explain_spread *s, uint32_t cell)
{
    return s->range.lo_ns + cell * s->width_ns + s->width_ns / 2;
}

static uint32_t cell_of(const struct explain_spread *s, int64_t wait_ns)
{
    return (uint32_t)((wait_ns - s->range.lo_ns) / s->width_ns);
}

/* As if there were no cap: what the literal AWS form draws from before it cuts. */
static int64_t uncut_hi(const struct bide_policy *policy, struct bide_step step)
{
    struct bide_policy open = *policy;
    open.cap_ns = BIDE_DURATION_MAX;
    return bide_backoff_window(&open, step).hi_ns;
}

/* mass * part / whole, for part <= whole: a share needs no more than 32 bits of either. */
static uint64_t share_of(uint64_t mass, int64_t part, int64_t whole)
{
    while (whole > UINT32_MAX) {
        part /= 2;
        whole /= 2;
    }
    return whole > 0 ? (uint64_t)core_share((int64_t)mass, (uint32_t)part, (uint32_t)whole) : 0;
}

/* What of a draw is cut down to the cap. */
static uint64_t cut_off(const struct bide_policy *policy, struct bide_step step, struct bide_range w, uint64_t mass)
{
    if (policy->jitter != BIDE_JITTER_DECORRELATED_AWS)
        return 0;
    int64_t uncut = uncut_hi(policy, step);
    return uncut > w.hi_ns ? share_of(mass, uncut - w.hi_ns, uncut - w.lo_ns) : 0;
}

/* Spreads mass evenly over a window: the same for all whole cells (`change` is where that begins and ends), and the rest
 * for the last, which it covers in part. */
static void pour(struct explain_spread *s, int64_t *change, struct bide_range w, uint64_t mass)
{
    uint32_t first = cell_of(s, w.lo_ns), last = cell_of(s, w.hi_ns);
    uint64_t each = last > first ? share_of(mass, s->width_ns, w.hi_ns - w.lo_ns) : 0;
    if (each * (last - first) > mass) /* the window begins inside its first cell */
        each = mass / (last - first);
    change[first] += (int64_t)each;
    change[last] -= (int64_t)each;
    s->mass[last] += mass - each * (last - first);
}

static void pour_from(struct explain_spread *next, int64_t *change, const struct bide_policy *policy,
                      struct bide_step step, uint64_t mass)
{
    if (mass == 0)
        return;
    struct bide_range w = bide_backoff_window(policy, step);
    uint64_t cut = cut_off(policy, step, w, mass);
    next->atom += cut;
    pour(next, change, w, mass - cut);
}

void explain_spread_step(struct explain_spread *next, const struct explain_spread *before,
                         const struct bide_policy *policy, uint32_t number)
{
    int64_t change[EXPLAIN_CELLS + 1] = {0}, density = 0;
    struct bide_step step = {.step = number};
    *next = (struct explain_spread){.range = explain_window_after(policy, step, before->range)};
    next->width_ns = (next->range.hi_ns - next->range.lo_ns) / EXPLAIN_CELLS + 1;
    for (uint32_t i = 0; i < EXPLAIN_CELLS; i++) {
        step.previous_ns = middle_of(before, i);
        pour_from(next, change, policy, step, before->mass[i]);
    }
    step.previous_ns = before->range.hi_ns;
    pour_from(next, change, policy, step, before->atom);
    for (uint32_t i = 0; i < EXPLAIN_CELLS; i++)
        next->mass[i] += (uint64_t)(density += change[i]);
}

/* Halves of cells, weighted; then the fraction of a cell, in 31 bits. */
int64_t explain_spread_mean(const struct explain_spread *s)
{
    uint64_t sum = 0, halves = 0;
    for (uint32_t i = 0; i < EXPLAIN_CELLS; i++) {
        sum += s->mass[i];
        halves += s->mass[i] * (2 * i + 1);
    }
    uint64_t twice = 2 * (sum + s->atom), end = (uint64_t)(s->range.hi_ns - s->range.lo_ns);
    halves += s->atom * (2 * (end / (uint64_t)s->width_ns) + 1);
    uint32_t rest = (uint32_t)(halves % twice >> 10), all = (uint32_t)(twice >> 10);
    return s->range.lo_ns + s->width_ns * (int64_t)(halves / twice) + core_share(s->width_ns, rest, all);
}
