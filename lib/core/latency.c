/* latency.c - the latency of attempts: a histogram small enough to live in a target, and the usual latency.
 *
 * Fifteen octaves from 2^17 ns (131 us) to 2^32 ns (4.3 s), each divided into four equal bins with 16-bit counters,
 * four to a word. A quantile is reported as the upper end of its bin: at most 25 % too high, never too low. Faster
 * attempts fall into the first bin; slower attempts fall into the last bin, which therefore has no upper end. After
 * 1024 samples all counters are halved, so that recent attempts weigh more.
 *
 * The histogram is optional, because every success must write it. The usual latency is always known: an estimate near
 * the median of the successes, from a sample of them that costs the fast path of a success nothing. It answers one
 * question: when the deadline of a call cut an attempt, would a healthy server have replied by then? */
#include <bide/target.h>

#include "gates.h"
#include "saturate.h"

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
    core_assert(bin.octave < OCTAVES && bin.index < BINS_PER_OCTAVE);
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
    core_assert(latency_ns < bin_upper_end_ns(bin) || bin_upper_end_ns(bin) == BIDE_NEVER);
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

int64_t bide_target_latency_get(const struct bide_target *t, uint32_t permille)
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

/* ---- the usual latency ---- */

#define SAMPLE_INTERVAL (100 * BIDE_MS)
#define UNKNOWN_MAX     (10 * BIDE_S) /* how long attempts are excused while no success is known */

/* Another process may have written any bytes. */
static int64_t usual_ns(const struct bide_target *t)
{
    return core_clamp_ns((int64_t)core_load(&t->usual_ns), 0);
}

/* Moves a quarter of the way towards the sample, which counts as a quarter of the estimate at least and as twice of it
 * at most: a single slow success (a new connection, a pause of the server) moves it up by no more than a quarter. Known
 * weakness: an estimate below 4 ns never moves. It comes from a driver whose clock did not advance during the first
 * success; cut attempts then vote. */
static int64_t usual_moved_ns(int64_t usual_ns, int64_t latency_ns)
{
    int64_t sample_ns = core_min(core_max(latency_ns, usual_ns / 4), 2 * usual_ns);
    return usual_ns + (sample_ns - usual_ns) / 4;
}

/* Two threads that sample at once may lose one of the two samples, or count both: either is harmless. An instant of the
 * last sample that lies in the future, which is the case between two readings of the clock at most, does not count. */
void core_usual_sample(struct bide_target *t, int64_t latency_ns, int64_t now_ns)
{
    int64_t usual = usual_ns(t);
    if (usual > 0 && (uint64_t)now_ns - core_load(&t->usual_at_ns) < (uint64_t)SAMPLE_INTERVAL)
        return;
    int64_t next = usual > 0 ? usual_moved_ns(usual, latency_ns) : core_max(latency_ns, 1);
    core_assert(next > 0);
    core_store(&t->usual_at_ns, (uint64_t)now_ns);
    core_store(&t->usual_ns, (uint64_t)next);
}

/* Without an estimate nothing distinguishes a server that hangs from a caller that is impatient. Attempts are excused
 * for UNKNOWN_MAX, in which a patient caller can provide a success; then they count, so that a server that is dead from
 * the start is noticed. A probe is excused even then: impatient callers must not reopen the breaker for longer and
 * longer before a patient caller can close it. */
bool core_usual_excuses_cut(struct bide_target *t, int64_t latency_ns, bool probe, int64_t now_ns)
{
    int64_t usual = usual_ns(t);
    if (usual > 0)
        return latency_ns < usual;
    uint64_t since = core_load(&t->usual_at_ns);
    if (since == 0)
        core_store(&t->usual_at_ns, (uint64_t)core_max(now_ns, 1));
    return probe || since == 0 || (int64_t)((uint64_t)now_ns - since) < UNKNOWN_MAX;
}
