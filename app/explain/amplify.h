/* amplify.h - retry amplification: how many requests a failing dependency gets per request of a user.
 *
 * With k attempts that each fail with probability p, a call makes (1 - p^k) / (1 - p) attempts on average, and k if all
 * fail. n layers that each retry multiply to k^n. With the layer rule `outermost`, and if every layer forwards the
 * field Bide-Attempt, they only add: one first attempt and k - 1 retries per layer, 1 + n (k - 1).
 *
 * A budget bounds the sum over all calls. In the long run (the burst of a full bucket is reported separately), with
 * `rate` first attempts per second, x retries per first attempt and A = 1 + x:
 *
 *   tokens       spending equals earning:  x cost + A p cost_failure
 *                  = (1-p) earn_success + x (1-p) earn_again + earn_first + refill_per_minute / (60 rate)
 *                where earn_again is the refund if there is one, else earn_success
 *   window       x <= ratio + reserve / (rate window), and no limit below min_volume requests per window
 *   concurrency  at most the share `ratio` of the calls in flight are in a retry: x <= ratio / (1 - ratio), if a retry
 *                with its wait takes as long as a first attempt
 *
 * and never more than without a budget. A hedge costs as much as a retry, so it is one in these formulas. The ratios
 * are shown to people, so they are floating point; k^n is exact. */
#ifndef EXPLAIN_AMPLIFY_H
#define EXPLAIN_AMPLIFY_H

#include "subject.h"

#define EXPLAIN_UNLIMITED INT64_MAX

/* Returns k^n, saturated at UINT64_MAX. */
uint64_t explain_requests_multiplied(uint32_t attempts, uint32_t layers);

/* Returns the largest number of requests at the innermost layer per request at the outermost, by the policy's layer
 * rule. */
uint64_t explain_requests_by_layer_rule(const struct bide_policy *policy, uint32_t layers);

/* Returns the mean number of attempts per first attempt if an attempt fails with probability p. */
double explain_mean_attempts(uint64_t attempts_most, double p);

/* The same with the budget, in the long run, and with hedges beside slow attempts. An unknown rate is taken to be
 * high. */
double explain_mean_attempts_with_budget(const struct explain_subject *subject, double p);

/* Returns the number of retries that a full budget pays for at once; EXPLAIN_UNLIMITED: no such limit. */
int64_t explain_budget_burst(const struct bide_budget_config *budget);

/* The load for a share of failing attempts. */
struct explain_load {
    unsigned fail_permille;
    double plain;           /* one layer, no budget, no hedges */
    double hedged;          /* the same with hedges, if all attempts are slow; equal without hedges */
    double budgeted;        /* one layer, with the budget */
    double layers_plain;    /* all layers, multiplied, no budget */
    double layers_budgeted; /* upper bound for all layers, with the policy's layer rule and the budget of every layer */
};
#define EXPLAIN_LOADS 3u /* at 10 %, 50 % and 100 % */

struct explain_amplification {
    uint32_t layers;
    uint64_t multiplied;
    uint64_t by_layer_rule;
    int64_t burst;
    double retries_per_second; /* of a process, with the budget, if all attempts fail; negative: the rate is unknown */
    struct explain_load load[EXPLAIN_LOADS];
};

void explain_amplification_compute(struct explain_amplification *amplification, const struct explain_subject *subject);

#endif
