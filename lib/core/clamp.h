/* clamp.h - makes settings that were copied out of a target safe to compute with.
 *
 * bide_target_config_check has refused every setting out of range, but a process that shares the memory of a target may
 * write any bytes there. A setting that is used as an index, a divisor or in arithmetic is therefore clamped after each
 * copy; of a valid configuration the clamp changes nothing. Settings that are only compared are taken as they are: a
 * wrong value then makes a wrong decision, but the process is safe. bide_target_config_get clamps all settings. */
#ifndef CORE_CLAMP_H
#define CORE_CLAMP_H

#include <bide/target.h>

#include "assert.h"

/* Ranges of settings; policy.c has the others, and the texts. */
#define CORE_KEY_RETRIES_MAX  255u /* an entry of keylimit.c has 8 bits for them */
#define CORE_THROTTLE_K_MAX   1000000u
#define CORE_REFILL_MAX_MILLI 100000000u
#define CORE_RATIO_MAX_PPM    1000000u
#define CORE_OPEN_GROWTH_MIN  1000u
#define CORE_OPEN_GROWTH_MAX  100000u
#define CORE_OPEN_JITTER_MAX  900u
#define CORE_WINDOW_MIN_NS    ((int64_t)BIDE_SLOTS)

/* The valid value of reserved_ fields. */
#define CORE_WANT_RESERVED "0: a field that only a newer version of bide knows is set"

static inline uint32_t core_clamp(uint32_t value, uint32_t least, uint32_t most)
{
    core_assert(least <= most);
    return value < least ? least : value > most ? most : value;
}

static inline int64_t core_clamp_ns(int64_t value, int64_t least)
{
    return value < least ? least : value > BIDE_DURATION_MAX ? BIDE_DURATION_MAX : value;
}

/* The settings before refund_permille: those of a token bucket. */
static inline void core_clamp_bucket(struct bide_budget_config *c)
{
    if ((unsigned)c->kind > BIDE_BUDGET_NONE)
        c->kind = BIDE_BUDGET_TOKENS; /* a charge stores its kind in two bits */
    c->capacity_milli = core_clamp(c->capacity_milli, 0, BIDE_CAPACITY_MAX_MILLI);
    c->refill_per_minute_milli = core_clamp(c->refill_per_minute_milli, 0, CORE_REFILL_MAX_MILLI);
}

static inline void core_clamp_budget(struct bide_budget_config *c)
{
    core_clamp_bucket(c);
    c->ratio_ppm = core_clamp(c->ratio_ppm, 0, CORE_RATIO_MAX_PPM);
    c->window_ns = core_clamp_ns(c->window_ns, CORE_WINDOW_MIN_NS);
    c->cooldown_ns = core_clamp_ns(c->cooldown_ns, 0);
}

/* The settings before slow_ns: those that decide on an opening. */
static inline void core_clamp_evidence(struct bide_breaker_config *c)
{
    c->count_window = core_clamp(c->count_window, 1, BIDE_COUNT_WINDOW_MAX);
    c->window_ns = core_clamp_ns(c->window_ns, CORE_WINDOW_MIN_NS);
}

static inline void core_clamp_breaker(struct bide_breaker_config *c)
{
    core_clamp_evidence(c);
    c->open_growth_milli = core_clamp(c->open_growth_milli, CORE_OPEN_GROWTH_MIN, CORE_OPEN_GROWTH_MAX);
    c->open_jitter_permille = core_clamp(c->open_jitter_permille, 0, CORE_OPEN_JITTER_MAX);
    c->probes = core_clamp(c->probes, 1, BIDE_PROBES_MAX); /* the index of a probe slot */
    c->open_ns = core_clamp_ns(c->open_ns, 1);
    c->open_max_ns = core_clamp_ns(c->open_max_ns, 1);
    c->probe_timeout_ns = core_clamp_ns(c->probe_timeout_ns, 1);
    c->ramp_ns = core_clamp_ns(c->ramp_ns, 0);
}

/* Clamps every setting to its range in the table of policy.c. */
void core_clamp_config(struct bide_target_config *config);

#endif
