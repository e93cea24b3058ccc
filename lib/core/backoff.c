/* backoff.c - the wait before the next attempt: envelope, window, draw. See bide/backoff.h for the model.
 *
 * All arithmetic is on integers and saturates. Growth is rounded up: otherwise 1 ns times 1.5 would stay 1 ns for
 * ever. */
#include <bide/backoff.h>

#include "assert.h"
#include "random.h"
#include "saturate.h"

#define OUT_OF_LINE static __attribute__((noinline)) /* so that the default kinds do not pay for the others */

static inline int64_t base_for_step(const struct bide_policy *p, struct bide_step step)
{
    return step.throttled && p->throttled_base_ns > 0 ? p->throttled_base_ns : p->base_ns;
}

static inline int64_t envelope_doubling(int64_t base, uint32_t times, int64_t cap)
{
    return times > 62 || base > cap >> times ? cap : base << times;
}

/* Returns e * part_milli / 1000, rounded up: at least 1 ns. */
static int64_t share_rounded_up(int64_t e, uint32_t part_milli)
{
    return core_sum(core_share(e, part_milli, 1000), e % 1000 * part_milli % 1000 != 0);
}

/* Takes at most about 41,000 iterations (multiplier 1.001, cap at its limit), about 100 for a multiplier of 1.5. */
OUT_OF_LINE int64_t envelope_growing(int64_t base, struct bide_step step, uint32_t multiplier_milli, int64_t cap)
{
    int64_t e = base;
    for (uint32_t i = 0; i < step.step && e < cap; i++)
        e = core_sum(e, share_rounded_up(e, multiplier_milli - 1000));
    return core_min(e, cap);
}

static inline int64_t envelope_exponential(const struct bide_policy *p, struct bide_step step)
{
    if (p->multiplier_milli == 2000)
        return envelope_doubling(base_for_step(p, step), step.step, p->cap_ns);
    return envelope_growing(base_for_step(p, step), step, p->multiplier_milli, p->cap_ns);
}

OUT_OF_LINE int64_t envelope_linear(const struct bide_policy *p, struct bide_step step)
{
    return core_min(p->cap_ns, core_product(base_for_step(p, step), (int64_t)step.step + 1));
}

static inline int64_t envelope(const struct bide_policy *p, struct bide_step step)
{
    if (p->backoff == BIDE_BACKOFF_EXPONENTIAL)
        return envelope_exponential(p, step);
    if (p->backoff == BIDE_BACKOFF_LINEAR)
        return envelope_linear(p, step);
    return p->backoff == BIDE_BACKOFF_FIXED ? core_min(p->cap_ns, base_for_step(p, step)) : 0;
}

int64_t bide_backoff_envelope(const struct bide_policy *p, struct bide_step step)
{
    return envelope(p, step);
}

/* The window base ... 3 * previous wait. The literal AWS formula caps the drawn value instead of the window. */
static struct bide_range window_decorrelated(const struct bide_policy *p, struct bide_step step)
{
    int64_t base = base_for_step(p, step);
    int64_t hi = core_product(core_max(step.previous_ns, base), 3); /* the base after a throttled outcome may exceed the
                                                                     * previous wait */
    if (p->jitter == BIDE_JITTER_DECORRELATED_AWS)
        return (struct bide_range){base, hi};
    hi = core_min(hi, p->cap_ns);
    if (hi <= base) /* base = cap leaves no room above the base: spread below it, or all clients would wait in step */
        return (struct bide_range){0, base};
    return (struct bide_range){base, hi};
}

/* The window e ... e + jitter_add_ns, moved down as a whole so that it ends at or below the cap and keeps its width. */
static struct bide_range window_additive(const struct bide_policy *p, int64_t e)
{
    int64_t lo = core_max(0, core_min(e, p->cap_ns - p->jitter_add_ns));
    return (struct bide_range){lo, core_sum(lo, p->jitter_add_ns)};
}

OUT_OF_LINE struct bide_range window_jittered(const struct bide_policy *p, struct bide_step step, int64_t e)
{
    switch (p->jitter) {
    case BIDE_JITTER_EQUAL: return (struct bide_range){e / 2, e};
    case BIDE_JITTER_DECORRELATED:
    case BIDE_JITTER_DECORRELATED_AWS: return window_decorrelated(p, step);
    case BIDE_JITTER_PROPORTIONAL:
        return (struct bide_range){core_share(e, p->jitter_lo_permille, 1000),
                                   core_share(e, p->jitter_hi_permille, 1000)};
    case BIDE_JITTER_ADDITIVE: return window_additive(p, e);
    case BIDE_JITTER_FULL:
    case BIDE_JITTER_NONE:
    default: break;
    }
    return (struct bide_range){e, e};
}

/* Returns the window that the wait is drawn from. The floor raises the lower end of the window instead of single waits,
 * so that waits do not pile up at the floor. */
static inline struct bide_range window_to_draw_from(const struct bide_policy *p, struct bide_step step)
{
    if (p->backoff == BIDE_BACKOFF_NONE)
        return (struct bide_range){0, 0};
    int64_t e = envelope(p, step);
    struct bide_range w = p->jitter == BIDE_JITTER_FULL ? (struct bide_range){0, e} : window_jittered(p, step, e);
    w.lo_ns = core_max(w.lo_ns, p->floor_ns);
    w.hi_ns = core_max(w.hi_ns, w.lo_ns);
    return w;
}

/* Caps a wait drawn from the literal AWS window. The other kinds need no cap here: gRPC's proportional jitter may
 * exceed it, and the rest do not exceed it by construction. */
static int64_t cap_aws_wait(const struct bide_policy *p, int64_t wait_ns)
{
    return p->jitter == BIDE_JITTER_DECORRELATED_AWS ? core_min(wait_ns, p->cap_ns) : wait_ns;
}

struct bide_range bide_backoff_window(const struct bide_policy *p, struct bide_step step)
{
    struct bide_range w = window_to_draw_from(p, step);
    return (struct bide_range){cap_aws_wait(p, w.lo_ns), cap_aws_wait(p, w.hi_ns)};
}

int64_t bide_backoff_wait(const struct bide_policy *p, struct bide_step step, uint64_t seed, uint32_t draw)
{
    struct bide_range w = window_to_draw_from(p, step);
    core_assert(w.lo_ns >= 0 && w.lo_ns <= w.hi_ns);
    struct core_random_key key = {seed, draw, CORE_FOR_BACKOFF};
    return cap_aws_wait(p, w.lo_ns + (int64_t)core_uniform(key, (uint64_t)(w.hi_ns - w.lo_ns)));
}
