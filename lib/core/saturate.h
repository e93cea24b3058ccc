/* saturate.h - arithmetic on time that saturates instead of wrapping. Durations and instants are never negative. */
#ifndef CORE_SATURATE_H
#define CORE_SATURATE_H

#include <bide/base.h>

static inline int64_t core_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t core_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static inline int64_t core_sum(int64_t a, int64_t b)
{
    return a > BIDE_NEVER - b ? BIDE_NEVER : a + b;
}

/* Returns the earlier of now + wait and the limit. The unsigned sum of two non-negative values cannot wrap. */
static inline int64_t core_capped_sum(int64_t now, int64_t wait, int64_t limit)
{
    uint64_t then = (uint64_t)now + (uint64_t)wait;
    return then < (uint64_t)limit ? (int64_t)then : limit;
}

static inline int64_t core_product(int64_t a, int64_t b)
{
    return a != 0 && b > BIDE_NEVER / a ? BIDE_NEVER : a * b; /* no 128-bit product: wasm32 would have to import it */
}

/* Returns value * part / whole, rounded down, without overflow for part <= 2^32 and 0 < whole <= 2^32. */
static inline int64_t core_share(int64_t value, uint32_t part, uint32_t whole)
{
    int64_t rough = core_product(value / whole, part);
    return core_sum(rough, value % whole * part / whole);
}

#endif
