/* amplify.c - retry amplification: requests at the server per request of a user. See amplify.h for the formulas. */
#include "amplify.h"

#include "hedge.h"
#include "schedule.h"

#define NO_LIMIT 1e300

/* By squaring; this and the minimum avoid loading libm in a program that starts in a millisecond. */
static double power(double x, uint64_t n)
{
    double product = 1.0;
    for (; n > 0; n /= 2, x *= x)
        product *= n % 2 ? x : 1.0;
    return product;
}

static double min_double(double a, double b)
{
    return a < b ? a : b;
}

/* ---- without budget ---- */

uint64_t explain_requests_multiplied(uint32_t attempts, uint32_t layers)
{
    uint64_t product = 1;
    for (uint32_t i = 0; i < layers && attempts > 1; i++) {
        if (product > UINT64_MAX / attempts)
            return UINT64_MAX;
        product *= attempts;
    }
    return product;
}

uint64_t explain_requests_by_layer_rule(const struct bide_policy *policy, uint32_t layers)
{
    switch (policy->layer) {
    case BIDE_LAYER_NEVER: return 1;
    case BIDE_LAYER_OUTERMOST: return 1 + (uint64_t)layers * (policy->attempts_max - 1);
    case BIDE_LAYER_ANY:
    default: break;
    }
    return explain_requests_multiplied(policy->attempts_max, layers);
}

double explain_mean_attempts(uint64_t attempts_most, double p)
{
    return p >= 1.0 ? (double)attempts_most : (1.0 - power(p, attempts_most)) / (1.0 - p);
}

/* ---- with budget ---- */

/* Returns the retries per first attempt that tokens pay for; NO_LIMIT if a retry earns as much as it costs. */
static double token_share(const struct bide_budget_config *b, double p, double rate)
{
    double cost = b->cost_milli,
           earn_again = b->refund_permille > 0 ? cost * b->refund_permille / 1000.0 : b->earn_success_milli;
    double refill = rate > 0 ? b->refill_per_minute_milli / (60.0 * rate) : 0.0;
    double earned = (1.0 - p) * b->earn_success_milli + b->earn_first_milli + refill - p * b->cost_failure_milli;
    double each = cost + p * b->cost_failure_milli - (1.0 - p) * earn_again;
    if (b->capacity_milli == 0 || earned <= 0)
        return 0.0;
    return each > 0 ? earned / each : NO_LIMIT;
}

static double window_share(const struct bide_budget_config *b, double rate)
{
    double requests = rate * (double)b->window_ns / (double)BIDE_S;
    if (rate > 0 && requests < b->min_volume)
        return NO_LIMIT;
    return b->ratio_ppm / 1e6 + (rate > 0 ? b->reserve / requests : 0.0);
}

static double concurrency_share(const struct bide_budget_config *b)
{
    double ratio = b->ratio_ppm / 1e6;
    return ratio < 1.0 ? ratio / (1.0 - ratio) : NO_LIMIT;
}

static double share_of(const struct bide_budget_config *b, double p, double rate)
{
    switch (b->kind) {
    case BIDE_BUDGET_TOKENS: return token_share(b, p, rate);
    case BIDE_BUDGET_WINDOW: return window_share(b, rate);
    case BIDE_BUDGET_CONCURRENCY: return concurrency_share(b);
    case BIDE_BUDGET_NONE:
    default: break;
    }
    return NO_LIMIT;
}

/* Returns the mean number of attempts of one layer without a budget; under a limit that may bind, over many seeds. */
static double attempts_of_one(const struct bide_policy *policy, double p)
{
    struct explain_schedule schedule;
    explain_schedule(&schedule, policy);
    if (!explain_limits_bind(&schedule))
        return explain_mean_attempts(schedule.attempts, p);
    uint32_t seeds = explain_seeds(policy);
    double mean = 0;
    for (uint32_t seed = 1; seed <= seeds; seed++)
        mean += explain_mean_attempts(explain_attempts_made(policy, seed), p) / seeds;
    return mean;
}

/* Returns the mean number of requests of one layer without a budget, if all attempts are slower than the hedge
 * delay. */
static double requests_of_one(const struct bide_policy *policy, double p)
{
    bool hedges = policy->hedges_max > 0 && policy->layer != BIDE_LAYER_NEVER;
    return hedges ? explain_mean_requests_hedged(policy, p) : attempts_of_one(policy, p);
}

double explain_mean_attempts_with_budget(const struct explain_subject *subject, double p)
{
    const struct bide_target_config *target = &subject->pair->target;
    double most = requests_of_one(&subject->pair->policy, p);
    bool observes = (target->observe & BIDE_GATE_BUDGET) != 0;
    return observes ? most : min_double(most, 1.0 + share_of(&target->budget, p, explain_rate(subject)));
}

int64_t explain_budget_burst(const struct bide_budget_config *b)
{
    if (b->kind == BIDE_BUDGET_CONCURRENCY)
        return b->ratio_ppm == 0 ? b->reserve : EXPLAIN_UNLIMITED;
    if (b->kind != BIDE_BUDGET_TOKENS)
        return EXPLAIN_UNLIMITED;
    int64_t level = b->capacity_milli - b->threshold_milli, each = (int64_t)b->cost_milli + b->cost_failure_milli;
    bool strictly = b->threshold_milli > 0; /* the level must exceed the threshold after the cost of the failure */
    return each == 0 ? EXPLAIN_UNLIMITED : (level - strictly) / each;
}

/* ---- layers ---- */

static double max_double(double a, double b)
{
    return a > b ? a : b;
}

static double layers_budgeted(const struct explain_subject *subject, double p, double budgeted)
{
    const struct bide_policy *policy = &subject->pair->policy;
    double most = explain_mean_attempts(explain_requests_by_layer_rule(policy, subject->layers), p);
    bool adds = policy->layer == BIDE_LAYER_OUTERMOST;
    if (policy->hedges_max > 0) /* hedges are sent by every layer, whatever the share of failures */
        most = max_double(most, power(requests_of_one(policy, p), subject->layers));
    double bound = adds ? 1.0 + subject->layers * (budgeted - 1.0) : power(budgeted, subject->layers);
    return min_double(most, bound);
}

void explain_amplification_compute(struct explain_amplification *a, const struct explain_subject *subject)
{
    static const unsigned shares[EXPLAIN_LOADS] = {100, 500, 1000};
    const struct bide_policy *policy = &subject->pair->policy;
    a->layers = subject->layers;
    a->multiplied = explain_requests_multiplied(policy->attempts_max, subject->layers);
    a->by_layer_rule = explain_requests_by_layer_rule(policy, subject->layers);
    double rate = explain_rate(subject);
    a->retries_per_second = rate > 0 ? (explain_mean_attempts_with_budget(subject, 1.0) - 1.0) * rate : -1.0;
    a->burst = explain_budget_burst(&subject->pair->target.budget);
    for (size_t i = 0; i < EXPLAIN_LOADS; i++) {
        double p = shares[i] / 1000.0, budgeted = explain_mean_attempts_with_budget(subject, p);
        double hedged = requests_of_one(policy, p), multiplied = explain_mean_attempts(a->multiplied, p);
        a->load[i] = (struct explain_load){
            .fail_permille = shares[i],
            .plain = attempts_of_one(policy, p),
            .hedged = hedged,
            .budgeted = budgeted,
            .layers_plain = policy->hedges_max > 0 ? max_double(multiplied, power(hedged, a->layers)) : multiplied,
            .layers_budgeted = layers_budgeted(subject, p, budgeted),
        };
    }
}
