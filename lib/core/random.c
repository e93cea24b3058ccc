/* random.c - random numbers as a function of (seed, draw, purpose): see random.h. */
#include "random.h"

#include "assert.h"

/* Number `name` of the SplitMix64 stream that starts at the seed. */
uint64_t core_random(struct core_random_key key)
{
    uint64_t name = (uint64_t)key.draw << 8 | (uint64_t)key.purpose;
    return core_mix(key.seed + name * CORE_GOLDEN);
}

uint64_t core_uniform(struct core_random_key key, uint64_t most)
{
    uint64_t drawn = core_bits_to_range(core_random(key), most);
    core_assert(drawn <= most);
    return drawn;
}
