/* dice.h - random numbers for property tests: xorshift64*, another family than the engine's generator. */
#ifndef DICE_H
#define DICE_H

#include <stdint.h>

struct dice {
    uint64_t state; /* not 0 */
};

static inline uint64_t roll(struct dice *d)
{
    d->state ^= d->state >> 12;
    d->state ^= d->state << 25;
    d->state ^= d->state >> 27;
    return d->state * UINT64_C(0x2545f4914f6cdd1d);
}

static inline uint32_t below(struct dice *d, uint32_t n)
{
    return (uint32_t)((roll(d) >> 32) % n);
}

#endif
