/* hedge.h - the requests of a call whose attempts are slower than the hedge delay.
 *
 * A round is an attempt with its hedges. Hedges count as attempts, so k attempts with h hedges are rounds of 1 + h
 * requests, until k are sent. All requests of a round are sent before the first response arrives, and the next round
 * starts only if all of them fail: with probability p each, a call sends
 *
 *     r1 + r2 p^r1 + r3 p^(r1 + r2) + ...
 *
 * requests. The sizes of the rounds are those that the engine makes, within the deadline and waits_max. */
#ifndef EXPLAIN_HEDGE_H
#define EXPLAIN_HEDGE_H

#include <bide/policy.h>

#define EXPLAIN_ROUNDS_MAX 64u

struct explain_rounds {
    uint32_t size[EXPLAIN_ROUNDS_MAX];
    uint32_t count;
};

/* Executes a call whose attempts all fail, each later than the hedges beside it start. */
void explain_rounds(struct explain_rounds *rounds, const struct bide_policy *policy, uint64_t seed);

/* Returns the mean number of requests of a call with such attempts, if each fails with probability p. */
double explain_mean_requests_hedged(const struct bide_policy *policy, double p);

#endif
