/* live_chance.h - for live tests: random numbers from a printed seed (seed.h), once with the seed of the day: these
 * tests take seconds, and the order of processes and threads is different in each run. */
#ifndef LIVE_CHANCE_H
#define LIVE_CHANCE_H

#include "seed.h"

struct random {
    uint64_t state; /* SplitMix64 */
};

static inline unsigned draw(struct random *r, unsigned below)
{
    uint64_t x = r->state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return (unsigned)((x ^ x >> 31) % below);
}

#endif
