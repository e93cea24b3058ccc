/* latency.c - how long attempts take, as a histogram small enough to live in a target.
 *
 * Fifteen octaves from 2^17 ns (131 us) to 2^32 ns (4.3 s), each in four equal parts, 16-bit counters, four to a word.
 * An answer is the upper end of a part: at most 25 % too high, never too low. Faster ones fall into the first part,
 * slower ones into the last, whose upper end is therefore unknown. When 1024 were seen all counters are halved, so
 * that the recent ones weigh more. */
#include <bide/target.h>

#include "gates.h"

#define OCTAVES   15u
#define PARTS     4u
#define LOWEST    17u
#define SEEN      OCTAVES /* index of the word that counts them all */
#define SEEN_MOST 1024u
#define SEEN_FEW  20u

struct part {
    uint32_t octave, part;
};

static struct part part_of(int64_t ns)
{
    uint64_t x = (uint64_t)ns;
    if (ns < INT64_C(1) << LOWEST)
        return (struct part){0, 0};
    uint32_t octave = 63u - (uint32_t)__builtin_clzll(x);
    if (octave >= LOWEST + OCTAVES)
        return (struct part){OCTAVES - 1, PARTS - 1};
    return (struct part){octave - LOWEST, (uint32_t)(x >> (octave - 2)) & (PARTS - 1)};
}

/* The last part has none: it also holds what is slower than all parts. */
static int64_t upper_end(struct part p)
{
    if (p.octave == OCTAVES - 1 && p.part == PARTS - 1)
        return BIDE_NEVER;
    return (int64_t)(PARTS + p.part + 1) << (p.octave + LOWEST - 2);
}

static uint32_t counter(uint64_t word, uint32_t part)
{
    return (uint32_t)(word >> 16 * part) & 0xffff;
}

/* One thread wins the right to halve; increments that happen meanwhile may be lost, which evidence can bear. */
static void age(struct bide_target *t)
{
    uint64_t seen = core_load(&t->latency[SEEN]);
    if (seen < SEEN_MOST || !core_cas(&t->latency[SEEN], &seen, seen / 2))
        return;
    for (uint32_t i = 0; i < OCTAVES; i++)
        core_store(&t->latency[i], core_load(&t->latency[i]) >> 1 & UINT64_C(0x7fff7fff7fff7fff));
}

void core_latency_note(struct bide_target *t, int64_t latency_ns)
{
    struct part p = part_of(latency_ns);
    core_add(&t->latency[p.octave], UINT64_C(1) << 16 * p.part);
    core_add(&t->latency[SEEN], 1);
    age(t);
}

static uint64_t total_of(const struct bide_target *t)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < OCTAVES * PARTS; i++)
        total += counter(core_load(&t->latency[i / PARTS]), i % PARTS);
    return total;
}

int64_t bide_target_latency_ns(const struct bide_target *t, uint32_t permille)
{
    uint64_t total = total_of(t), below = 0;
    struct part p = {OCTAVES - 1, PARTS - 1};
    if (total < SEEN_FEW)
        return 0;
    for (uint32_t i = 0; i < OCTAVES * PARTS && below * 1000 < total * permille; i++) {
        p = (struct part){i / PARTS, i % PARTS};
        below += counter(core_load(&t->latency[p.octave]), p.part);
    }
    return upper_end(p);
}
