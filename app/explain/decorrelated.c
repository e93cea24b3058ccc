/* decorrelated.c - computes the distribution of decorrelated waits in bins. See decorrelated.h for the model. */
#include "decorrelated.h"

#include "core/saturate.h"

#define BINS_PER_DOUBLING 64u

/* ---- windows ---- */

/* A window grows monotonically with the previous wait, so the two ends of its range suffice. */
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

/* ---- bins ---- */

/* Width and start of a bin: 0, 1, ... 127 of 1 ns each, then 128, 130, ... of 2 ns, 256, 260, ... of 4 ns. */
static int64_t bin_width(uint32_t bin)
{
    return bin < BINS_PER_DOUBLING ? 1 : INT64_C(1) << (bin / BINS_PER_DOUBLING - 1);
}

static int64_t bin_start(uint32_t bin)
{
    return bin < BINS_PER_DOUBLING ? (int64_t)bin
                                   : (int64_t)(BINS_PER_DOUBLING + bin % BINS_PER_DOUBLING) * bin_width(bin);
}

static uint32_t bin_index(int64_t distance_ns)
{
    uint32_t doublings = 0;
    for (; distance_ns >> doublings >= BINS_PER_DOUBLING; doublings++)
        ;
    return doublings == 0
               ? (uint32_t)distance_ns
               : doublings * BINS_PER_DOUBLING + (uint32_t)(distance_ns >> (doublings - 1)) - BINS_PER_DOUBLING;
}

static int64_t bin_middle(const struct explain_distribution *s, uint32_t bin)
{
    return s->range.lo_ns + bin_start(bin) + (bin_width(bin) - 1) / 2;
}

/* ---- steps ---- */

void explain_distribution_start(struct explain_distribution *s)
{
    *s = (struct explain_distribution){.atom = 1.0}; /* at 0, which the engine replaces by the base */
}

/* Returns the upper end without a cap: the literal AWS form draws from that window and caps the result. */
static int64_t uncapped_hi(const struct bide_policy *policy, struct bide_step step)
{
    struct bide_policy open = *policy;
    open.cap_ns = BIDE_DURATION_MAX;
    return bide_backoff_window(&open, step).hi_ns;
}

/* Returns the share of draws that exceed the cap and become the cap. */
static double capped_share(const struct bide_policy *policy, struct bide_step step, struct bide_range w)
{
    if (policy->jitter != BIDE_JITTER_DECORRELATED_AWS)
        return 0.0;
    int64_t uncapped = uncapped_hi(policy, step);
    return uncapped > w.hi_ns ? (double)(uncapped - w.hi_ns) / (double)(uncapped - w.lo_ns) : 0.0;
}

/* Distributes mass evenly over a window. All windows of a step begin at range.lo_ns, so a window contributes its
 * density to all bins before its last (`below`, summed from the far end later) and the remainder to the last. */
static void distribution_add(struct explain_distribution *s, double *below, struct bide_range w, double mass)
{
    uint32_t last = bin_index(w.hi_ns - s->range.lo_ns);
    double width = (double)(w.hi_ns - w.lo_ns), before = (double)bin_start(last);
    below[last] += width > 0 ? mass / width : 0.0;
    s->mass[last] += width > 0 ? mass * (width - before) / width : mass;
    s->mean_ns += mass * ((double)w.lo_ns + width / 2);
}

static void distribution_add_from(struct explain_distribution *next, double *below, const struct bide_policy *policy,
                                  struct bide_step step, double mass)
{
    if (mass <= 0)
        return;
    struct bide_range w = bide_backoff_window(policy, step);
    double capped = mass * capped_share(policy, step, w);
    next->atom += capped;
    next->mean_ns += capped * (double)w.hi_ns;
    distribution_add(next, below, w, mass - capped);
}

void explain_distribution_step(struct explain_distribution *next, const struct explain_distribution *before,
                               const struct bide_policy *policy, uint32_t number)
{
    double below[EXPLAIN_BINS] = {0}, density = 0;
    struct bide_step step = {.step = number};
    *next = (struct explain_distribution){.range = explain_window_after(policy, step, before->range)};
    for (uint32_t i = 0, last = bin_index(before->range.hi_ns - before->range.lo_ns); i <= last; i++) {
        step.previous_ns = core_min(bin_middle(before, i), before->range.hi_ns);
        distribution_add_from(next, below, policy, step, before->mass[i]);
    }
    step.previous_ns = before->range.hi_ns;
    distribution_add_from(next, below, policy, step, before->atom);
    for (uint32_t i = EXPLAIN_BINS; i-- > 0;) {
        next->mass[i] += density * (double)bin_width(i);
        density += below[i];
    }
}
