/* random.h - chance for the simulator: numbers named by (seed, stream, id, turn), and the shapes they are bent into.
 *
 * As in the engine, a random number is a function of its name and not the next of a stream: who asks first does not
 * matter, so a run does not depend on the order in which a queue gives out events of the same instant, on threads or on
 * the machine. No libm function decides anything: logarithm and exponential are our own, made of additions,
 * multiplications, divisions and square roots of IEEE doubles, which every compiler must round alike (app/sim is
 * compiled with -ffp-contract=off). Their errors are said below and tested against libm.
 *
 * What takes a name is inline: handed over in memory, a name costs more than the number. */
#ifndef SIM_RANDOM_H
#define SIM_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

#include "core/random.h"

/* What a number is for: a new use does not shift the numbers of the others. */
enum sim_stream {
    SIM_FOR_CALL = 1, /* the seed of a call, given to the engine */
    SIM_FOR_ARRIVAL,
    SIM_FOR_THINNING,
    SIM_FOR_THINK,
    SIM_FOR_REQUEST_DELAY,
    SIM_FOR_REPLY_DELAY,
    SIM_FOR_REQUEST_LOSS,
    SIM_FOR_REPLY_LOSS,
    SIM_FOR_READ_DELAY, /* of a row: the two messages of the read */
    SIM_FOR_READ_REPLY_DELAY,
    SIM_FOR_SERVICE,
    SIM_FOR_FAILURE,
    SIM_FOR_OUTAGE,
    SIM_FOR_HINT,
    SIM_FOR_GAUSS,
    SIM_FOR_SHARD,
    SIM_FOR_READ_LOSS,
    SIM_FOR_READ_REPLY_LOSS,
    SIM_FOR_FLEET_REQUEST_DELAY, /* of an instance to its fleet, by number: the two messages of an exchange, */
    SIM_FOR_FLEET_REPLY_DELAY,
    SIM_FOR_NEXT_FLEET_REQUEST, /* when the next one is, */
    SIM_FOR_FLEET_RETRY,        /* when the next one is after one that failed */
};

struct sim_random_key {
    uint64_t seed; /* of the run, or of a call */
    enum sim_stream stream;
    uint64_t id;
    uint32_t turn; /* usually the attempt */
};

/* 64 random bits. Each (seed, id) is a SplitMix64 stream, and (turn, stream) is a place in it. */
static inline uint64_t sim_random_bits(struct sim_random_key key)
{
    uint64_t start = core_mix(key.seed + key.id * CORE_GOLDEN);
    return core_mix(start + ((uint64_t)key.turn << 8 | (uint64_t)key.stream) * CORE_GOLDEN);
}

/* ---- bits, bent ---- */

/* 0 ... most, both included, without bias. */
uint64_t sim_bits_to_range(uint64_t bits, uint64_t most);

/* Between 0 and 1, never one of them: an odd multiple of 2^-53. (53 bits are all that a double has next to 1.) */
static inline double sim_bits_to_unit(uint64_t bits)
{
    return ((double)(bits >> 12) + 0.5) * 0x1p-52;
}

/* True for so many millionths of all. */
static inline bool sim_bits_to_chance(uint64_t bits, uint32_t ppm)
{
    return sim_bits_to_range(bits, 999999) < ppm;
}

static inline uint64_t sim_random_range(struct sim_random_key key, uint64_t most)
{
    return sim_bits_to_range(sim_random_bits(key), most);
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

/* Natural logarithm of a number above 0; relative error below 5e-16 (two units in the last place). */
double sim_ln(double x);

/* e^x for -700 < x < 700; relative error below 5e-16. */
double sim_exp(double x);

/* The standard normal's quantile for 0 < p < 1; absolute error below 2e-12. The first call makes a table (a
 * millisecond); any number of threads may be the first. */
double sim_normal_quantile(double p);

/* ---- durations ---- */

/* The shapes a duration can have in a scenario file:
 *
 *     10ms                      always the same
 *     exponential 10ms          mean
 *     uniform 5ms 15ms          both ends included
 *     normal 10ms 2ms           mean and standard deviation; what is below 0 is taken as above (absolute value)
 *     mixture 99.9% 0.1ms 10ms  exponential with the first mean, else with the second
 *     tail 1ms:1 10ms:0.02 ...  the share that lasts longer, log-log-linear between the points, cut at the last */
enum sim_shape { SIM_FIXED, SIM_EXPONENTIAL, SIM_UNIFORM_SHAPE, SIM_NORMAL, SIM_MIXTURE, SIM_TAIL };
#define SIM_TAIL_MAX 8u

struct sim_distribution {
    enum sim_shape shape;
    int64_t a_ns, b_ns; /* mean, or low; deviation, or high, or second mean */
    uint32_t ppm;       /* mixture: share of the first */
    uint32_t points;    /* tail */
    struct {
        int64_t ns;
        double share;           /* in (0, 1], falling */
        double ln_ns, ln_share; /* filled by sim_time_ready */
    } point[SIM_TAIL_MAX];
};

/* Fills what is derived. To be called once after the fields were set. */
void sim_distribution_prepare(struct sim_distribution *dist);

/* Random bits bent into such a duration: 0 or more, at most BIDE_DURATION_MAX, rounded to the nearest nanosecond. */
int64_t sim_distribution_sample(const struct sim_distribution *dist, uint64_t bits);

static inline int64_t sim_distribution_draw(const struct sim_distribution *dist, struct sim_random_key key)
{
    return dist->shape == SIM_FIXED ? dist->a_ns : sim_distribution_sample(dist, sim_random_bits(key));
}

/* Its mean, for estimates (memory, capacity): of a tail, between its points. */
int64_t sim_distribution_mean(const struct sim_distribution *dist);

#endif
