/* random.c - random numbers for the simulator: see random.h.
 *
 * The logarithm of x = m 2^e with m around 1 is ln m + e ln 2, and ln m = 2 artanh s = 2 (s + s^3/3 + s^5/5 ...) for s
 * = (m - 1) / (m + 1), which is at most 0.172. The exponential splits off whole multiples of ln 2 as a power of two and
 * sums 1 + r + r^2/2! ... for the remainder r, which is at most 0.347. Both series are cut where a term no longer
 * changes a double.
 *
 * The normal quantile Q has no series that is short everywhere, but a short series around each point: with z = Q(p) and
 * u = (q - p) / density(z), Q(q) = z + u + z u^2/2 + (1 + 2z^2) u^3/6 + ... A table holds z and 1/density for points
 * that are dense enough: 32 in each halving of p. It is computed once, by Newton's method on the normal integral. */
#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

#include <bide/base.h>

#include "core/random.h"

#include "random.h"

/* ---- bits ---- */

/* Returns a second number for a key that needs two. */
static uint64_t bits_next(uint64_t bits)
{
    return core_mix(bits + CORE_GOLDEN);
}

/* ---- logarithm and exponential ---- */

/* ln 2 in two parts: the first has 40 bits, so that its product with an exponent is exact. */
#define LN2_HIGH   0x1.62e42fefa2p-1
#define LN2_LOW    0x1.9ef35793c7673p-41
#define SQRT_HALF  0x1.6a09e667f3bcdp-1
#define ONE_BITS   UINT64_C(0x3ff0000000000000) /* of 1.0 */
#define FRACTION   52u                          /* bits of a double below its exponent */
#define LEAST_FULL 0x1p-1022                    /* smaller numbers are denormal */

static uint64_t double_to_bits(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static double bits_to_double(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Returns artanh(s) / s - 1 from t = s^2, at most 0.0295: t/3 + t^2/5 + ... The partial sums are independent, so that
 * the processor computes them in parallel. */
static double artanh_series(double t)
{
    double t2 = t * t, t4 = t2 * t2;
    double a = 1.0 / 3 + t * (1.0 / 5), b = 1.0 / 7 + t * (1.0 / 9);
    double c = 1.0 / 11 + t * (1.0 / 13), d = 1.0 / 15 + t * (1.0 / 17);
    double e = 1.0 / 19 + t * (1.0 / 21);
    return t * ((a + t2 * b) + t4 * ((c + t2 * d) + t4 * e));
}

double sim_ln(double x)
{
    assert(x > 0);
    double exponent = 0;
    if (x < LEAST_FULL) {
        x *= 0x1p54;
        exponent = -54;
    }
    /* m = x / 2^e between sqrt(1/2) and sqrt(2): a larger m belongs to the next octave */
    uint64_t bits = double_to_bits(x) + (ONE_BITS - double_to_bits(SQRT_HALF));
    exponent += (double)((int64_t)(bits >> FRACTION) - (int64_t)(ONE_BITS >> FRACTION));
    double m = bits_to_double((bits & ((UINT64_C(1) << FRACTION) - 1)) + double_to_bits(SQRT_HALF));
    double s = (m - 1) / (m + 1);
    double low = 2 * s * artanh_series(s * s) + exponent * LN2_LOW;
    return exponent * LN2_HIGH + (2 * s + low);
}

/* 1 + r + r^2/2! + ... + r^13/13!, for r up to 0.347 either way. */
static double exponential_series(double r)
{
    double r2 = r * r, r4 = r2 * r2, r8 = r4 * r4;
    double a = 1.0 / 2 + r * (1.0 / 6), b = 1.0 / 24 + r * (1.0 / 120), c = 1.0 / 720 + r * (1.0 / 5040);
    double d = 1.0 / 40320 + r * (1.0 / 362880), e = 1.0 / 3628800 + r * (1.0 / 39916800);
    double f = 1.0 / 479001600 + r * (1.0 / 6227020800);
    return 1 + (r + (r2 * a + (r4 * (b + r2 * c) + r8 * ((d + r2 * e) + r4 * f))));
}

double sim_exp(double x)
{
    assert(x > -700 && x < 700);
    double halves = x * (2 / (LN2_HIGH + LN2_LOW));
    int64_t whole = ((int64_t)halves + (halves < 0 ? -1 : 1)) / 2; /* to the nearest */
    double rest = (x - (double)whole * LN2_HIGH) - (double)whole * LN2_LOW;
    return exponential_series(rest) * bits_to_double(ONE_BITS + ((uint64_t)whole << FRACTION));
}

/* ---- the normal distribution ---- */

#define SQRT_TWO_PI    2.50662827463100050242
#define LN_SQRT_TWO_PI 0.91893853320467274178
#define FRACTION_FROM  3.0     /* above, the continued fraction is short; below, the difference is exact enough */
#define TABLE_BITS     5u      /* 32 points in each halving of p */
#define TABLE_LEAST    0x1p-53 /* the smallest value of sim_random_unit */
#define HALVINGS       52u     /* from 1/2 down to TABLE_LEAST */
#define POINTS         (HALVINGS << TABLE_BITS)

struct quantile_point {
    double p, z;
    double over_density; /* 1 / density(z), the slope of the quantile */
};

static struct quantile_point quantile_table[POINTS];
static pthread_once_t quantile_made = PTHREAD_ONCE_INIT;

/* Returns the share beyond x >= 0 divided by the density at x (Mills' ratio): the continued fraction 1 / (x + 1/(x +
 * 2/(x + 3/...))), or for small x one half minus the integral from 0 to x, by the series x + x^3/3 + x^5/(3 5) + ... */
static double mills_ratio(double x)
{
    double sum = x;
    if (x >= FRACTION_FROM) {
        for (int i = 40; i > 0; i--)
            sum = x + i / sum;
        return 1 / sum;
    }
    double term = x;
    for (int i = 3; i < 80; i += 2) {
        term *= x * x / i;
        sum += term;
    }
    return SQRT_TWO_PI / 2 * sim_exp(x * x / 2) - sum;
}

/* Improves x, beyond which the share p <= 1/2 lies: a step of Newton's method on the logarithm of the share. */
static double quantile_newton_step(double x, double ln_p)
{
    double ratio = mills_ratio(x);
    double share = sim_ln(ratio) - x * x / 2 - LN_SQRT_TWO_PI;
    return x + (share - ln_p) * ratio;
}

/* Returns the quantile of a p far below the table, where speed does not matter: starts from above, which converges. */
static double quantile_iterate(double p)
{
    double ln_p = sim_ln(p), x = sqrt(-2 * ln_p);
    for (int i = 0; i < 6; i++)
        x = quantile_newton_step(x, ln_p);
    return -x;
}

/* Returns the quantile of q by the series around a near point. Each coefficient is the derivative of the previous, by
 * the rule (f(z) u'^n)' = (f'(z) + n z f(z)) u'^(n+1). */
static double quantile_near(const struct quantile_point *point, double q)
{
    double z = point->z, u = (q - point->p) * point->over_density, zz = z * z;
    double third = (1 + 2 * zz) * (1.0 / 6);
    double fourth = z * (7 + 6 * zz) * (1.0 / 24);
    double fifth = (7 + zz * (46 + 24 * zz)) * (1.0 / 120);
    double uu = u * u;
    return z + (u + uu * ((z / 2 + u * third) + uu * (fourth + u * fifth)));
}

/* The table is indexed by the exponent and the highest fraction bits of p, counted from TABLE_LEAST upwards; a point is
 * the middle of its piece. */
static uint64_t table_first_piece(void)
{
    return double_to_bits(TABLE_LEAST) >> (FRACTION - TABLE_BITS);
}

static double table_middle(uint64_t i)
{
    uint64_t begin = (table_first_piece() + i) << (FRACTION - TABLE_BITS);
    return bits_to_double(begin + (UINT64_C(1) << (FRACTION - TABLE_BITS - 1)));
}

/* Starts at p = 1/2 and goes outwards: each point starts from the previous. */
static void quantile_make_table(void)
{
    struct quantile_point last = {.p = 0.5, .z = 0, .over_density = SQRT_TWO_PI};
    for (size_t i = POINTS; i-- > 0;) {
        double p = table_middle(i), x = -quantile_near(&last, p);
        for (int again = 0; again < 2; again++)
            x = quantile_newton_step(x, sim_ln(p));
        last = (struct quantile_point){.p = p, .z = -x, .over_density = SQRT_TWO_PI * sim_exp(x * x / 2)};
        quantile_table[i] = last;
    }
}

/* p <= 1/2 */
static double quantile_lower_half(double p)
{
    if (p < TABLE_LEAST)
        return quantile_iterate(p);
    uint64_t i = (double_to_bits(p) >> (FRACTION - TABLE_BITS)) - table_first_piece();
    return quantile_near(&quantile_table[i < POINTS ? i : POINTS - 1], p); /* p = 1/2 belongs to the last piece */
}

double sim_normal_quantile(double p)
{
    assert(p > 0 && p < 1);
    pthread_once(&quantile_made, quantile_make_table);
    return p <= 0.5 ? quantile_lower_half(p) : -quantile_lower_half(1 - p);
}

/* ---- durations ---- */

static int64_t round_to_ns(double ns)
{
    if (ns >= (double)BIDE_DURATION_MAX)
        return BIDE_DURATION_MAX;
    return (int64_t)(ns + 0.5);
}

static double draw_exponential(int64_t mean_ns, uint64_t bits)
{
    return -sim_ln(sim_bits_to_unit(bits)) * (double)mean_ns;
}

static double draw_normal(const struct sim_distribution *dist, uint64_t bits)
{
    double ns = (double)dist->a_ns + (double)dist->b_ns * sim_normal_quantile(sim_bits_to_unit(bits));
    return ns < 0 ? -ns : ns;
}

/* Returns the slope of ln ns over ln share after point i. */
static double tail_slope(const struct sim_distribution *dist, uint32_t i)
{
    return (dist->point[i + 1].ln_ns - dist->point[i].ln_ns) / (dist->point[i + 1].ln_share - dist->point[i].ln_share);
}

/* Returns the duration that `share` of all durations exceed. */
static double draw_tail(const struct sim_distribution *dist, double share)
{
    uint32_t last = dist->points - 1, i = 0;
    if (share >= dist->point[0].share)
        return (double)dist->point[0].ns;
    if (share <= dist->point[last].share)
        return (double)dist->point[last].ns;
    while (share < dist->point[i + 1].share)
        i++;
    return sim_exp(dist->point[i].ln_ns + (sim_ln(share) - dist->point[i].ln_share) * tail_slope(dist, i));
}

void sim_distribution_prepare(struct sim_distribution *dist)
{
    if (dist->shape != SIM_TAIL)
        return;
    assert(dist->points >= 1 && dist->points <= SIM_TAIL_MAX);
    for (uint32_t i = 0; i < dist->points; i++) {
        assert(dist->point[i].ns > 0 && dist->point[i].share > 0);
        dist->point[i].ln_ns = sim_ln((double)dist->point[i].ns);
        dist->point[i].ln_share = sim_ln(dist->point[i].share);
    }
}

int64_t sim_distribution_sample(const struct sim_distribution *dist, uint64_t bits)
{
    switch (dist->shape) {
    case SIM_FIXED: break;
    case SIM_EXPONENTIAL: return round_to_ns(draw_exponential(dist->a_ns, bits));
    case SIM_UNIFORM_SHAPE: return dist->a_ns + (int64_t)core_bits_to_range(bits, (uint64_t)(dist->b_ns - dist->a_ns));
    case SIM_NORMAL: return round_to_ns(draw_normal(dist, bits));
    case SIM_MIXTURE:
        return round_to_ns(
            draw_exponential(sim_bits_to_chance(bits, dist->ppm) ? dist->a_ns : dist->b_ns, bits_next(bits)));
    case SIM_TAIL: return round_to_ns(draw_tail(dist, sim_bits_to_unit(bits)));
    }
    return dist->a_ns;
}

/* ---- means ---- */

/* Mean of the folded normal distribution: m (1 - 2 share below 0) + 2 d density(0). */
static double mean_of_normal(double mean, double deviation)
{
    if (deviation <= 0 || mean > 30 * deviation)
        return mean;
    double x = mean / deviation;
    double density = sim_exp(-x * x / 2) / SQRT_TWO_PI;
    return mean * (1 - 2 * mills_ratio(x) * density) + 2 * deviation * density;
}

/* The part of the mean between two points: the integral of share(t), which is a power of t. */
static double part_of_tail(const struct sim_distribution *dist, uint32_t i)
{
    double begin = dist->point[i].share * (double)dist->point[i].ns;
    double end = dist->point[i + 1].share * (double)dist->point[i + 1].ns;
    double length = dist->point[i + 1].ln_ns - dist->point[i].ln_ns;
    double rise = length + dist->point[i + 1].ln_share - dist->point[i].ln_share; /* ln(end / begin) */
    return rise > -1e-6 && rise < 1e-6 ? begin * length : (end - begin) * length / rise;
}

static double mean_of_tail(const struct sim_distribution *dist)
{
    double mean = (double)dist->point[0].ns;
    for (uint32_t i = 0; i + 1 < dist->points; i++)
        mean += part_of_tail(dist, i);
    return mean;
}

int64_t sim_distribution_mean(const struct sim_distribution *dist)
{
    double first = (double)dist->ppm / 1e6;
    switch (dist->shape) {
    case SIM_FIXED:
    case SIM_EXPONENTIAL: return dist->a_ns;
    case SIM_UNIFORM_SHAPE: return dist->a_ns + (dist->b_ns - dist->a_ns) / 2;
    case SIM_NORMAL: return round_to_ns(mean_of_normal((double)dist->a_ns, (double)dist->b_ns));
    case SIM_MIXTURE: return round_to_ns(first * (double)dist->a_ns + (1 - first) * (double)dist->b_ns);
    case SIM_TAIL: return round_to_ns(mean_of_tail(dist));
    }
    return dist->a_ns;
}
