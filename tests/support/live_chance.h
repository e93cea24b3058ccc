/* live_chance.h - for live tests: random numbers from a printed seed. BIDE_TEST_SEED=N repeats a run. */
#ifndef LIVE_CHANCE_H
#define LIVE_CHANCE_H

#include <bide/entropy.h>

#include <inttypes.h>
#include <stdlib.h>

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

static inline uint64_t printed_seed(void)
{
    const char *given = getenv("BIDE_TEST_SEED");
    uint64_t seed = given != NULL ? strtoull(given, NULL, 0) : bide_seed();
    print_message("BIDE_TEST_SEED=%" PRIu64 "\n", seed);
    return seed;
}

#endif
