/* latency.c - the latency of attempts, as a histogram small enough to live in a target.
 *
 * Fifteen octaves from 2^17 ns (131 us) to 2^32 ns (4.3 s), each divided into four equal bins with 16-bit counters,
 * four to a word. A quantile is reported as the upper end of its bin: at most 25 % too high, never too low. Faster
 * attempts fall into the first bin; slower attempts fall into the last bin, which therefore has no upper end. After
 * 1024 samples all counters are halved, so that recent attempts weigh more. */
#include <bide/target.h>

#include "gates.h"

#define OCTAVES         15u
#define BINS_PER_OCTAVE 4u
#define LOWEST          17u
#define SAMPLES         OCTAVES /* index of the word that counts all samples */
#define SAMPLES_MAX     1024u
#define SAMPLES_MIN     20u

struct bin {
    uint32_t octave, index;
};

static struct bin bin_of(int64_t ns)
{
    uint64_t x = (uint64_t)ns;
    if (ns < INT64_C(1) << LOWEST)
        return (struct bin){0, 0};
    uint32_t octave = 63u - (uint32_t)__builtin_clzll(x);
    if (octave >= LOWEST + OCTAVES)
        return (struct bin){OCTAVES - 1, BINS_PER_OCTAVE - 1};
    return (struct bin){octave - LOWEST, (uint32_t)(x >> (octave - 2)) & (BINS_PER_OCTAVE - 1)};
}

/* The last bin has no upper end: it also holds all slower attempts. */
static int64_t bin_upper_end_ns(struct bin bin)
{
    if (bin.octave == OCTAVES - 1 && bin.index == BINS_PER_OCTAVE - 1)
        return BIDE_NEVER;
    return (int64_t)(BINS_PER_OCTAVE + bin.index + 1) << (bin.octave + LOWEST - 2);
}

static uint32_t bin_count(uint64_t word, uint32_t index)
{
    return (uint32_t)(word >> 16 * index) & 0xffff;
}

/* Halves all counters after SAMPLES_MAX samples. The winner of the CAS does it; samples that other threads add
 * meanwhile may be lost, which a histogram of recent samples tolerates. */
static void histogram_halve_if_full(struct bide_target *t)
{
    uint64_t seen = core_load(&t->latency[SAMPLES]);
    if (seen < SAMPLES_MAX || !core_cas(&t->latency[SAMPLES], &seen, seen / 2))
        return;
    for (uint32_t i = 0; i < OCTAVES; i++)
        core_store(&t->latency[i], core_load(&t->latency[i]) >> 1 & UINT64_C(0x7fff7fff7fff7fff));
}

void core_latency_record(struct bide_target *t, int64_t latency_ns)
{
    struct bin bin = bin_of(latency_ns);
    core_add(&t->latency[bin.octave], UINT64_C(1) << 16 * bin.index);
    core_add(&t->latency[SAMPLES], 1);
    histogram_halve_if_full(t);
}

static uint64_t histogram_total(const struct bide_target *t)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < OCTAVES * BINS_PER_OCTAVE; i++)
        total += bin_count(core_load(&t->latency[i / BINS_PER_OCTAVE]), i % BINS_PER_OCTAVE);
    return total;
}

int64_t bide_target_latency_ns(const struct bide_target *t, uint32_t permille)
{
    uint64_t total = histogram_total(t), below = 0;
    struct bin bin = {OCTAVES - 1, BINS_PER_OCTAVE - 1};
    if (total < SAMPLES_MIN)
        return 0;
    for (uint32_t i = 0; i < OCTAVES * BINS_PER_OCTAVE && below * 1000 < total * permille; i++) {
        bin = (struct bin){i / BINS_PER_OCTAVE, i % BINS_PER_OCTAVE};
        below += bin_count(core_load(&t->latency[bin.octave]), bin.index);
    }
    return bin_upper_end_ns(bin);
}
