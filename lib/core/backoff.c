/* backoff.c - the wait before the next attempt: envelope, window, draw. See bide/backoff.h for the model.
 *
 * Everything is integer and saturates. Growth is rounded up, so that 1 ns times 1.5 does not stay 1 ns for ever. */
#include <bide/backoff.h>

#include "random.h"
#include "saturate.h"

static inline int64_t base_for_step(const struct bide_policy *p, struct bide_step step)
{
    return step.throttled && p->throttled_base_ns > 0 ? p->throttled_base_ns : p->base_ns;
}

static int64_t envelope_doubling(int64_t base, uint32_t times, int64_t cap)
{
    return times > 62 || base > cap >> times ? cap : base << times;
}

/* part thousandths of e, rounded up: at least 1 ns. */
static int64_t share_rounded_up(int64_t e, uint32_t part_milli)
{
    return core_sum(core_share(e, part_milli, 1000), e % 1000 * part_milli % 1000 != 0);
}

/* At most some 41,000 rounds (multiplier 1.001, cap at its limit), 64 for the usual 1.5 and more. */
static int64_t envelope_growing(int64_t base, struct bide_step step, uint32_t multiplier_milli, int64_t cap)
{
    int64_t e = base;
    for (uint32_t i = 0; i < step.step && e < cap; i++)
        e = core_sum(e, share_rounded_up(e, multiplier_milli - 1000));
    return core_min(e, cap);
}

static int64_t envelope_exponential(const struct bide_policy *p, struct bide_step step)
{
    if (p->multiplier_milli == 2000)
        return envelope_doubling(base_for_step(p, step), step.step, p->cap_ns);
    return envelope_growing(base_for_step(p, step), step, p->multiplier_milli, p->cap_ns);
}

static inline int64_t envelope(const struct bide_policy *p, struct bide_step step)
{
    switch (p->backoff) {
    case BIDE_BACKOFF_EXPONENTIAL: return envelope_exponential(p, step);
    case BIDE_BACKOFF_LINEAR: return core_min(p->cap_ns, core_product(base_for_step(p, step), (int64_t)step.step + 1));
    case BIDE_BACKOFF_FIXED: return core_min(p->cap_ns, base_for_step(p, step));
    case BIDE_BACKOFF_NONE:
    default: break;
    }
    return 0;
}

int64_t bide_backoff_envelope(const struct bide_policy *p, struct bide_step step)
{
    return envelope(p, step);
}

/* base ... 3 * previous. The literal AWS form cuts the drawn value at the cap, ours cuts the window. */
static struct bide_range window_decorrelated(const struct bide_policy *p, struct bide_step step)
{
    int64_t base = base_for_step(p, step);
    int64_t hi = core_product(core_max(step.previous_ns, base), 3); /* after a throttled one the base may be larger */
    if (p->jitter == BIDE_JITTER_DECORRELATED_AWS)
        return (struct bide_range){base, hi};
    hi = core_min(hi, p->cap_ns);
    if (hi <= base) /* base = cap leaves no room above the base: spread below it rather than wait in step */
        return (struct bide_range){0, base};
    return (struct bide_range){base, hi};
}

/* e ... e + add, moved down as far as the cap demands, so that it neither exceeds the cap nor freezes there. */
static struct bide_range window_additive(const struct bide_policy *p, int64_t e)
{
    int64_t lo = core_max(0, core_min(e, p->cap_ns - p->jitter_add_ns));
    return (struct bide_range){lo, core_sum(lo, p->jitter_add_ns)};
}

static inline struct bide_range window_jittered(const struct bide_policy *p, struct bide_step step, int64_t e)
{
    switch (p->jitter) {
    case BIDE_JITTER_FULL: return (struct bide_range){0, e};
    case BIDE_JITTER_EQUAL: return (struct bide_range){e / 2, e};
    case BIDE_JITTER_DECORRELATED:
    case BIDE_JITTER_DECORRELATED_AWS: return window_decorrelated(p, step);
    case BIDE_JITTER_PROPORTIONAL:
        return (struct bide_range){core_share(e, p->jitter_lo_permille, 1000),
                                   core_share(e, p->jitter_hi_permille, 1000)};
    case BIDE_JITTER_ADDITIVE: return window_additive(p, e);
    case BIDE_JITTER_NONE:
    default: break;
    }
    return (struct bide_range){e, e};
}

/* What is drawn from. The floor moves the lower end instead of lifting single waits: no waits pile up at the floor. */
static inline struct bide_range window_to_draw_from(const struct bide_policy *p, struct bide_step step)
{
    if (p->backoff == BIDE_BACKOFF_NONE)
        return (struct bide_range){0, 0};
    struct bide_range w = window_jittered(p, step, envelope(p, step));
    w.lo_ns = core_max(w.lo_ns, p->floor_ns);
    w.hi_ns = core_max(w.hi_ns, w.lo_ns);
    return w;
}

/* Only the literal AWS window can reach above the cap here: gRPC's may, and the others stay below by construction. */
static int64_t cap_aws_wait(const struct bide_policy *p, int64_t wait_ns)
{
    return p->jitter == BIDE_JITTER_DECORRELATED_AWS ? core_min(wait_ns, p->cap_ns) : wait_ns;
}

struct bide_range bide_backoff_window(const struct bide_policy *p, struct bide_step step)
{
    struct bide_range w = window_to_draw_from(p, step);
    return (struct bide_range){cap_aws_wait(p, w.lo_ns), cap_aws_wait(p, w.hi_ns)};
}

/* On the path of every retry: flattened, since its many small steps cost more to call than to take. */
__attribute__((flatten)) int64_t bide_backoff_wait(const struct bide_policy *p, struct bide_step step, uint64_t seed,
                                                   uint32_t draw)
{
    struct bide_range w = window_to_draw_from(p, step);
    struct core_random_key key = {seed, draw, CORE_FOR_BACKOFF};
    return cap_aws_wait(p, w.lo_ns + (int64_t)core_uniform(key, (uint64_t)(w.hi_ns - w.lo_ns)));
}
