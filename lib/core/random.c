/* random.c - random numbers as a function of (seed, draw, purpose): see random.h. */
#include "random.h"

/* Number `name` of the SplitMix64 stream that starts at the seed. */
uint64_t core_random(struct core_random_key key)
{
    uint64_t name = (uint64_t)key.draw << 8 | (uint64_t)key.purpose;
    return core_mix(key.seed + name * CORE_GOLDEN);
}

/* The upper half of the 128-bit product, from 32-bit parts: wasm32 has no wide multiply without an import. */
static uint64_t product_high(uint64_t a, uint64_t b)
{
    uint64_t a0 = a & UINT32_MAX, a1 = a >> 32, b0 = b & UINT32_MAX, b1 = b >> 32;
    uint64_t middle = a1 * b0 + (a0 * b0 >> 32);
    uint64_t carry = a0 * b1 + (middle & UINT32_MAX);
    return a1 * b1 + (middle >> 32) + (carry >> 32);
}

/* Lemire's method: scales by a multiplication and rejects the few products that would favour some results. */
uint64_t core_uniform(struct core_random_key key, uint64_t most)
{
    uint64_t range = most + 1, x = core_random(key);
    if (range == 0)
        return x;
    if (x * range < range) {
        uint64_t unfair = (UINT64_MAX - most) % range; /* 2^64 mod range */
        while (x * range < unfair)
            x = core_mix(x + CORE_GOLDEN);
    }
    return product_high(x, range);
}
