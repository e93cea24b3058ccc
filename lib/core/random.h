/* random.h - random numbers as a function: a number is named by (seed, draw, purpose), not taken from a stream.
 *
 * The same key gives the same number on every platform, and a new purpose does not shift the numbers of the others.
 * Each seed is a SplitMix64 stream, and (draw, purpose) is a position in it; ranges are unbiased and include both
 * ends. */
#ifndef CORE_RANDOM_H
#define CORE_RANDOM_H

#include <stdint.h>

enum core_purpose {
    CORE_FOR_BACKOFF = 1,
    CORE_FOR_HINT,
    CORE_FOR_HOLD_OFF,
    CORE_FOR_LATE_WAKE,
    CORE_FOR_OPEN,
    CORE_FOR_RAMP,
    CORE_FOR_THROTTLE,
};

#define CORE_GOLDEN UINT64_C(0x9e3779b97f4a7c15) /* 2^64 / phi: the Weyl step of SplitMix64 */

/* The finaliser of SplitMix64: every input bit flips about half of the output bits. */
static inline uint64_t core_mix(uint64_t x)
{
    x ^= x >> 30;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    x ^= x >> 27;
    x *= UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

struct core_random_key {
    uint64_t seed;
    uint32_t draw; /* usually the number of the attempt */
    enum core_purpose purpose;
};

uint64_t core_random(struct core_random_key key);

/* Returns a uniform number in 0 ... most, both included. */
uint64_t core_uniform(struct core_random_key key, uint64_t most);

#endif
