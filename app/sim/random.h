/* random.h - random numbers for the simulator, keyed by (seed, stream, id, turn), and distributions of durations.
 *
 * As in the engine, a random number is a function of its key, not the next number of a stream: so a run does not depend
 * on the order in which draws happen, on threads or on the machine. No libm function decides anything: logarithm and
 * exponential are implemented here from additions, multiplications, divisions and square roots of IEEE doubles, which
 * every compiler rounds alike (app/sim is compiled with -ffp-contract=off). Their errors are stated below and tested
 * against libm.
 *
 * Functions that take a key are inline: passing a key in memory costs more than computing the number. */
#ifndef SIM_RANDOM_H
#define SIM_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

#include "core/random.h"

/* The purpose of a number: a new purpose does not change the numbers of the others. */
enum sim_stream {
    SIM_FOR_CALL = 1, /* the seed of a call, passed to the engine */
    SIM_FOR_ARRIVAL,
    SIM_FOR_THINNING,
    SIM_FOR_THINK,
    SIM_FOR_REQUEST_DELAY,
    SIM_FOR_RESPONSE_DELAY,
    SIM_FOR_REQUEST_LOSS,
    SIM_FOR_RESPONSE_LOSS,
    SIM_FOR_READ_DELAY, /* kind = row: the two messages of the read */
    SIM_FOR_READ_RESPONSE_DELAY,
    SIM_FOR_SERVICE,
    SIM_FOR_FAILURE,
    SIM_FOR_OUTAGE,
    SIM_FOR_HINT,
    SIM_FOR_GAUSS,
    SIM_FOR_SHARD,
    SIM_FOR_READ_LOSS,
    SIM_FOR_READ_RESPONSE_LOSS,
    SIM_FOR_FLEET_REQUEST_DELAY, /* fleet, by member: the two messages of an exchange, */
    SIM_FOR_FLEET_REPLY_DELAY,
    SIM_FOR_NEXT_FLEET_REQUEST, /* when the next request is sent, */
    SIM_FOR_FLEET_RETRY,        /* when a failed request is retried */
};

struct sim_random_key {
    uint64_t seed; /* of the run, or of a call */
    enum sim_stream stream;
    uint64_t id;
    uint32_t turn; /* usually the attempt */
};

/* Returns 64 random bits. Each (seed, id) is a SplitMix64 stream, and (turn, stream) is a position in it. */
static inline uint64_t sim_random_bits(struct sim_random_key key)
{
    uint64_t start = core_mix(key.seed + key.id * CORE_GOLDEN);
    return core_mix(start + ((uint64_t)key.turn << 8 | (uint64_t)key.stream) * CORE_GOLDEN);
}

/* ---- conversions of random bits ---- */

/* Returns a number between 0 and 1, both excluded: an odd multiple of 2^-53, the precision of a double next to 1. */
static inline double sim_bits_to_unit(uint64_t bits)
{
    return ((double)(bits >> 12) + 0.5) * 0x1p-52;
}

/* Returns true with a probability of `ppm` millionths. */
static inline bool sim_bits_to_chance(uint64_t bits, uint32_t ppm)
{
    return core_bits_to_range(bits, 999999) < ppm;
}

/* Returns a uniform number in 0 ... max, both included; max is below UINT64_MAX. */
static inline uint64_t sim_random_range(struct sim_random_key key, uint64_t max)
{
    return core_bits_to_range(sim_random_bits(key), max);
}

static inline double sim_random_unit(struct sim_random_key key)
{
    return sim_bits_to_unit(sim_random_bits(key));
}

static inline bool sim_random_chance(struct sim_random_key key, uint32_t ppm)
{
    return sim_bits_to_chance(sim_random_bits(key), ppm);
}

/* ---- functions ---- */

/* Natural logarithm of x > 0; relative error below 5e-16 (two units in the last place). */
double sim_ln(double x);

/* e^x for -700 < x < 700; relative error below 5e-16. */
double sim_exp(double x);

/* Quantile of the standard normal distribution for 0 < p < 1; absolute error below 2e-12. The first call computes a
 * table (a millisecond); it may come from several threads at once. */
double sim_normal_quantile(double p);

/* ---- durations ---- */

/* Distributions of a duration as a scenario file writes them:
 *
 *     10ms                      constant
 *     exponential 10ms          mean
 *     uniform 5ms 15ms          both ends included
 *     normal 10ms 2ms           mean and standard deviation; folded: a negative value loses its sign
 *     mixture 99.9% 0.1ms 10ms  exponential with the first mean, else with the second
 *     tail 1ms:1 10ms:0.02 ...  share of longer durations, log-log-linear between the points, cut at the last */
enum sim_shape { SIM_FIXED, SIM_EXPONENTIAL, SIM_UNIFORM_SHAPE, SIM_NORMAL, SIM_MIXTURE, SIM_TAIL };
#define SIM_TAIL_MAX 8u

struct sim_distribution {
    enum sim_shape shape;
    int64_t a_ns, b_ns; /* a: mean, or low end; b: deviation, high end, or second mean */
    uint32_t ppm;       /* mixture: share of the first mean */
    uint32_t points;    /* tail */
    struct {
        int64_t ns;
        double share;           /* in (0, 1], falling */
        double ln_ns, ln_share; /* set by sim_distribution_prepare */
    } point[SIM_TAIL_MAX];
};

/* Computes derived fields. Call it once after the fields are set. */
void sim_distribution_prepare(struct sim_distribution *dist);

/* Returns the duration for these random bits: 0 to BIDE_DURATION_MAX, rounded to the nearest nanosecond. */
int64_t sim_distribution_sample(const struct sim_distribution *dist, uint64_t bits);

static inline int64_t sim_distribution_draw(const struct sim_distribution *dist, struct sim_random_key key)
{
    return dist->shape == SIM_FIXED ? dist->a_ns : sim_distribution_sample(dist, sim_random_bits(key));
}

/* Returns the mean, for estimates of memory and capacity. */
int64_t sim_distribution_mean(const struct sim_distribution *dist);

#endif
