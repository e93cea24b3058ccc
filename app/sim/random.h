/* random.h - chance for the simulator: numbers named by (seed, stream, id, turn), and the shapes they are bent into.
 *
 * As in the engine, a random number is a function of its name and not the next of a stream: who asks first does not
 * matter, so a run does not depend on the order in which a queue gives out events of the same instant, on threads or on
 * the machine. No libm function decides anything: logarithm and exponential are our own, made of additions,
 * multiplications, divisions and square roots of IEEE doubles, which every compiler must round alike (app/sim is
 * compiled with -ffp-contract=off). Their errors are said below and tested against libm.
 *
 * What takes a name is inline: handed over in memory, a name costs more than the number. */
#ifndef SIM_DRAW_H
#define SIM_DRAW_H

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
    SIM_FOR_ASK_DELAY, /* of an instance to its fleet, by number: the two messages of an exchange, */
    SIM_FOR_ANSWER_DELAY,
    SIM_FOR_NEXT_ASK, /* when the next one is, */
    SIM_FOR_RETURN,   /* when the next one is after one that failed */
};

struct sim_name {
    uint64_t seed; /* of the run, or of a call */
    enum sim_stream stream;
    uint64_t id;
    uint32_t turn; /* usually the attempt */
};

/* 64 random bits. Each (seed, id) is a SplitMix64 stream, and (turn, stream) is a place in it. */
static inline uint64_t sim_bits(struct sim_name name)
{
    uint64_t start = core_mix(name.seed + name.id * CORE_GOLDEN);
    return core_mix(start + ((uint64_t)name.turn << 8 | (uint64_t)name.stream) * CORE_GOLDEN);
}

/* ---- bits, bent ---- */

/* 0 ... most, both included, without bias. */
uint64_t sim_scale(uint64_t bits, uint64_t most);

/* Between 0 and 1, never one of them: an odd multiple of 2^-53. (53 bits are all that a double has next to 1.) */
static inline double sim_unit_of(uint64_t bits)
{
    return ((double)(bits >> 12) + 0.5) * 0x1p-52;
}

/* True for so many millionths of all. */
static inline bool sim_happens_of(uint64_t bits, uint32_t ppm)
{
    return sim_scale(bits, 999999) < ppm;
}

static inline uint64_t sim_uniform(struct sim_name name, uint64_t most)
{
    return sim_scale(sim_bits(name), most);
}

static inline double sim_unit(struct sim_name name)
{
    return sim_unit_of(sim_bits(name));
}

static inline bool sim_happens(struct sim_name name, uint32_t ppm)
{
    return sim_happens_of(sim_bits(name), ppm);
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

struct sim_time {
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
void sim_time_ready(struct sim_time *time);

/* Random bits bent into such a duration: 0 or more, at most BIDE_DURATION_MAX, rounded to the nearest nanosecond. */
int64_t sim_time_bend(const struct sim_time *time, uint64_t bits);

static inline int64_t sim_time_draw(const struct sim_time *time, struct sim_name name)
{
    return time->shape == SIM_FIXED ? time->a_ns : sim_time_bend(time, sim_bits(name));
}

/* Its mean, for estimates (memory, capacity): of a tail, between its points. */
int64_t sim_time_mean(const struct sim_time *time);

#endif
