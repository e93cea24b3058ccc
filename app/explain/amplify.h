/* amplify.h - how many requests a failing dependency gets for each that a user made.
 *
 * k attempts, and each fails with probability p: (1 - p^k) / (1 - p) attempts on average, k at total failure. n layers
 * that each retry multiply: k^n. With the layer rule `outermost`, and everybody passing the Bide-Attempt field on, they
 * only add: one first attempt and k - 1 retries of each layer, 1 + n (k - 1).
 *
 * A budget bounds the sum over all calls. In the long run (a full bucket's burst is told apart), with `rate` first
 * attempts a second, x retries for each of them and A = 1 + x:
 *
 *   tokens       what is spent is what is earned:  x cost + A p cost_failure
 *                  = (1-p) earn_success + x (1-p) earn_again + earn_first + refill_per_minute / (60 rate)
 *                where earn_again is the refund if there is one, else earn_success
 *   window       x <= ratio + reserve / (rate window), and no limit below min_volume requests a window
 *   concurrency  of the calls in flight at most the share `ratio` are in a retry: x <= ratio / (1 - ratio), if a retry
 *                with its wait takes as long as a first attempt
 *
 * and never more than without a budget. These are ratios for people, so they are floating point; k^n is exact. */
#ifndef EXPLAIN_AMPLIFY_H
#define EXPLAIN_AMPLIFY_H

#include "subject.h"

#define EXPLAIN_UNLIMITED INT64_MAX

/* k^n; UINT64_MAX: that or more. */
uint64_t explain_requests_multiplied(uint32_t attempts, uint32_t layers);

/* At most so many requests at the bottom for one at the top, by the policy's layer rule. */
uint64_t explain_requests_by_layer_rule(const struct bide_policy *policy, uint32_t layers);

/* Attempts for each first attempt, when an attempt fails with probability p. */
double explain_mean_attempts(uint64_t attempts_most, double p);

/* The same with the budget, in the long run. Without a rate: at a high one. */
double explain_mean_attempts_with_budget(const struct explain_subject *subject, double p);

/* Retries that a full budget pays for at one moment; EXPLAIN_UNLIMITED: no such limit. */
int64_t explain_budget_burst(const struct bide_budget_config *budget);

/* A load for one share of failing attempts. */
struct explain_load {
    unsigned fail_permille;
    double plain;           /* one layer, no budget */
    double budgeted;        /* one layer, with the budget */
    double layers_plain;    /* all layers, multiplied, no budget */
    double layers_budgeted; /* all layers, with the policy's layer rule and every layer's budget: at most */
};
#define EXPLAIN_LOADS 3u /* at 10 %, 50 % and 100 % */

struct explain_amplification {
    uint32_t layers;
    uint64_t multiplied;
    uint64_t by_layer_rule;
    int64_t burst;
    double
        retries_per_second; /* of one process, with the budget, when all attempts fail; below 0: the rate is not said */
    struct explain_load load[EXPLAIN_LOADS];
};

void explain_amplification_compute(struct explain_amplification *amplification, const struct explain_subject *subject);

#endif
