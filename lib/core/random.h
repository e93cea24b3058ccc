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
    CORE_FOR_GATE,
    CORE_FOR_LAST_WAIT,
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

/* Returns number (draw, purpose) of the SplitMix64 stream that starts at the seed. */
static inline uint64_t core_random(struct core_random_key key)
{
    uint64_t name = (uint64_t)key.draw << 8 | (uint64_t)key.purpose;
    return core_mix(key.seed + name * CORE_GOLDEN);
}

/* Returns the upper half of the 128-bit product. wasm32 has no wide multiply without an import: there, and on 32-bit
 * machines, it is computed from 32-bit parts. */
static inline uint64_t core_product_high(uint64_t a, uint64_t b)
{
#if defined(__SIZEOF_INT128__) && !defined(__wasm__)
    return (uint64_t)((unsigned __int128)a * b >> 64);
#else
    uint64_t a0 = a & UINT32_MAX, a1 = a >> 32, b0 = b & UINT32_MAX, b1 = b >> 32;
    uint64_t middle = a1 * b0 + (a0 * b0 >> 32);
    uint64_t carry = a0 * b1 + (middle & UINT32_MAX);
    return a1 * b1 + (middle >> 32) + (carry >> 32);
#endif
}

/* Converts 64 random bits to a uniform number in 0 ... most, both included (Lemire's method: scales by a
 * multiplication). Bits that would bias the result are replaced by the next number of their SplitMix64 stream. most is
 * below UINT64_MAX. */
static inline uint64_t core_bits_to_range(uint64_t bits, uint64_t most)
{
    uint64_t range = most + 1;
    if (bits * range < range) {
        uint64_t unfair = (UINT64_MAX - most) % range; /* 2^64 mod range */
        while (bits * range < unfair)
            bits = core_mix(bits + CORE_GOLDEN);
    }
    return core_product_high(bits, range);
}

/* Returns a uniform number in 0 ... most, both included. */
static inline uint64_t core_uniform(struct core_random_key key, uint64_t most)
{
    return core_bits_to_range(core_random(key), most);
}

#endif
