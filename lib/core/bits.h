/* bits.h - counting set bits without the compiler's run-time library, which a freestanding build does not have. */
#ifndef CORE_BITS_H
#define CORE_BITS_H

#include <stdint.h>

static inline uint32_t core_popcount(uint64_t x)
{
    x -= x >> 1 & UINT64_C(0x5555555555555555);
    x = (x & UINT64_C(0x3333333333333333)) + (x >> 2 & UINT64_C(0x3333333333333333));
    x = (x + (x >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    return (uint32_t)(x * UINT64_C(0x0101010101010101) >> 56);
}

#endif
