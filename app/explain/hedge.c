/* hedge.c - executes the engine with slow attempts, to count hedges. See hedge.h for the model. */
#include "hedge.h"

#include <bide/call.h>

#include "core/saturate.h"

#define SEEDS 100u /* the number of rounds varies only if the deadline or waits_max binds */

struct running_attempt {
    uint32_t attempt;
    int64_t ends_ns;
};

struct slow_call {
    struct bide_call call;
    struct running_attempt running[BIDE_HEDGES_MAX + 1]; /* in the order of their start, hence of their end */
    uint32_t count;
    int64_t now_ns, lasts_ns;
    int64_t hedge_ns; /* when the next hedge is due; BIDE_NEVER: none */
};

static void slow_call_start_attempt(struct slow_call *s, const struct bide_verdict *v)
{
    int64_t ends_ns = core_min(core_sum(s->now_ns, s->lasts_ns), v->attempt_deadline_ns);
    s->running[s->count++] = (struct running_attempt){v->attempt, ends_ns};
}

static struct bide_verdict slow_call_end_attempt(struct slow_call *s)
{
    const struct bide_outcome failed = {.kind = BIDE_KIND_TRANSIENT, .evidence = BIDE_EVIDENCE_NOT_SENT};
    struct running_attempt first = s->running[0];
    s->count--;
    for (uint32_t i = 0; i < s->count; i++)
        s->running[i] = s->running[i + 1];
    s->now_ns = core_max(s->now_ns, first.ends_ns);
    return bide_call_outcome(&s->call, first.attempt, &failed, s->now_ns);
}

/* Lets the next event take place: a hedge, or the end of an attempt. */
static struct bide_verdict slow_call_step(struct slow_call *s)
{
    if (s->hedge_ns >= s->running[0].ends_ns)
        return slow_call_end_attempt(s);
    s->now_ns = core_max(s->now_ns, s->hedge_ns);
    return bide_call_wake(&s->call, s->now_ns);
}

void explain_rounds(struct explain_rounds *rounds, const struct bide_policy *policy, uint64_t seed)
{
    const struct bide_request request = {.safety = BIDE_SAFE, .seed = seed};
    int64_t hedges_ns = core_product(policy->hedge_delay_ns, (int64_t)policy->hedges_max + 1);
    struct slow_call s = {.lasts_ns = core_min(core_sum(hedges_ns, 1), policy->attempt_timeout_ns)};
    struct bide_verdict v = bide_call_begin(&s.call, policy, BIDE_NO_TARGET, &request, 0);
    rounds->count = 0;
    while (rounds->count < EXPLAIN_ROUNDS_MAX) {
        uint32_t size = 0;
        while (v.action == BIDE_ACTION_START || s.count > 0) {
            if (v.action == BIDE_ACTION_START) {
                slow_call_start_attempt(&s, &v);
                size++;
            }
            s.hedge_ns = v.wake_ns;
            v = slow_call_step(&s);
        }
        if (size > 0)
            rounds->size[rounds->count++] = size;
        if (v.action != BIDE_ACTION_WAIT)
            break;
        s.now_ns = v.wake_ns;
        v = bide_call_wake(&s.call, s.now_ns);
    }
    bide_call_cancel(&s.call, s.now_ns);
}

static double rounds_mean_requests(const struct explain_rounds *rounds, double p)
{
    double mean = 0, reached = 1;
    for (uint32_t i = 0; i < rounds->count; i++) {
        mean += reached * rounds->size[i];
        for (uint32_t j = 0; j < rounds->size[i]; j++)
            reached *= p;
    }
    return mean;
}

double explain_mean_requests_hedged(const struct bide_policy *policy, double p)
{
    struct explain_rounds rounds;
    double mean = 0;
    for (uint32_t seed = 1; seed <= SEEDS; seed++) {
        explain_rounds(&rounds, policy, seed);
        mean += rounds_mean_requests(&rounds, p) / SEEDS;
    }
    return mean;
}
