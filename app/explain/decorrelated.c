/* spread.c - the distribution of decorrelated waits over cells. See spread.h for the model. */
#include "decorrelated.h"

#include "core/saturate.h"

#define FINE 64u /* cells to a doubling */

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

/* Where a cell begins, and how wide it is: 0, 1, ... 127 of 1 ns, then 128, 130, ... of 2, 256, 260, ... of 4. */
static int64_t width_of(uint32_t cell)
{
    return cell < FINE ? 1 : INT64_C(1) << (cell / FINE - 1);
}

static int64_t start_of(uint32_t cell)
{
    return cell < FINE ? (int64_t)cell : (int64_t)(FINE + cell % FINE) * width_of(cell);
}

static uint32_t cell_of(int64_t distance_ns)
{
    uint32_t doublings = 0;
    for (; distance_ns >> doublings >= FINE; doublings++)
        ;
    return doublings == 0 ? (uint32_t)distance_ns
                          : doublings * FINE + (uint32_t)(distance_ns >> (doublings - 1)) - FINE;
}

static int64_t middle_of(const struct explain_spread *s, uint32_t cell)
{
    return s->range.lo_ns + start_of(cell) + (width_of(cell) - 1) / 2;
}

/* ---- steps ---- */

void explain_spread_start(struct explain_spread *s)
{
    *s = (struct explain_spread){.atom = 1.0}; /* at 0, which stands for the base */
}

/* As if there were no cap: what the literal AWS form draws from before it cuts. */
static int64_t uncut_hi(const struct bide_policy *policy, struct bide_step step)
{
    struct bide_policy open = *policy;
    open.cap_ns = BIDE_DURATION_MAX;
    return bide_backoff_window(&open, step).hi_ns;
}

/* The share of draws that are cut down to the cap. */
static double cut_off(const struct bide_policy *policy, struct bide_step step, struct bide_range w)
{
    if (policy->jitter != BIDE_JITTER_DECORRELATED_AWS)
        return 0.0;
    int64_t uncut = uncut_hi(policy, step);
    return uncut > w.hi_ns ? (double)(uncut - w.hi_ns) / (double)(uncut - w.lo_ns) : 0.0;
}

/* Spreads mass evenly over a window. All windows of a step begin at range.lo_ns, so each is its density in all cells
 * before its last one (`below`, added up from the far end later) and the rest, for that one. */
static void pour(struct explain_spread *s, double *below, struct bide_range w, double mass)
{
    uint32_t last = cell_of(w.hi_ns - s->range.lo_ns);
    double width = (double)(w.hi_ns - w.lo_ns), before = (double)start_of(last);
    below[last] += width > 0 ? mass / width : 0.0;
    s->mass[last] += width > 0 ? mass * (width - before) / width : mass;
    s->mean_ns += mass * ((double)w.lo_ns + width / 2);
}

static void pour_from(struct explain_spread *next, double *below, const struct bide_policy *policy,
                      struct bide_step step, double mass)
{
    if (mass <= 0)
        return;
    struct bide_range w = bide_backoff_window(policy, step);
    double cut = mass * cut_off(policy, step, w);
    next->atom += cut;
    next->mean_ns += cut * (double)w.hi_ns;
    pour(next, below, w, mass - cut);
}

void explain_spread_step(struct explain_spread *next, const struct explain_spread *before,
                         const struct bide_policy *policy, uint32_t number)
{
    double below[EXPLAIN_CELLS] = {0}, density = 0;
    struct bide_step step = {.step = number};
    *next = (struct explain_spread){.range = explain_window_after(policy, step, before->range)};
    for (uint32_t i = 0, last = cell_of(before->range.hi_ns - before->range.lo_ns); i <= last; i++) {
        step.previous_ns = core_min(middle_of(before, i), before->range.hi_ns);
        pour_from(next, below, policy, step, before->mass[i]);
    }
    step.previous_ns = before->range.hi_ns;
    pour_from(next, below, policy, step, before->atom);
    for (uint32_t i = EXPLAIN_CELLS; i-- > 0;) {
        next->mass[i] += density * (double)width_of(i);
        density += below[i];
    }
}
