/* world.h - random test inputs: a valid policy, a valid target configuration, and a few requests.
 *
 * Everything in a world follows from its seed. */
#ifndef PROPERTY_WORLD_H
#define PROPERTY_WORLD_H

#include <string.h>

#include <bide/outcome.h>
#include <bide/policy.h>
#include <bide/request.h>
#include <bide/target.h>

#include "dice.h"

#define CALLS        5
#define ATTEMPTS_MAX 8
#define LENGTH(a)    (sizeof(a) / sizeof *(a))

/* -- random values ------------------------------------------------------------------------------------------------- */

static bool one_in(struct dice *d, uint32_t n)
{
    return below(d, n) == 0;
}

/* Returns a duration; each order of magnitude is equally likely. */
static int64_t some_time(struct dice *d)
{
    static const int64_t scale[] = {1, BIDE_US, BIDE_MS, 10 * BIDE_MS, 100 * BIDE_MS, BIDE_S, 10 * BIDE_S, BIDE_MINUTE};
    return scale[below(d, LENGTH(scale))] * (1 + below(d, 12)) + (one_in(d, 2) ? below(d, 1000) : 0);
}

/* -- worlds -------------------------------------------------------------------------------------------------------- */

struct world {
    uint64_t seed;
    struct bide_policy policy;
    struct bide_target_config config;
    struct bide_request request[CALLS];
    bool has_target;
    bool leased; /* the budget is leased, with interruptions */
    int64_t epoch_ns;
};

static uint32_t some_gates(struct dice *d, uint32_t among)
{
    return one_in(d, 4) ? (uint32_t)roll(d) & among : 0;
}

static void some_backoff(struct dice *d, struct bide_policy *p)
{
    p->backoff = (enum bide_backoff)(one_in(d, 3) ? below(d, 4) : BIDE_BACKOFF_EXPONENTIAL);
    p->jitter = (enum bide_jitter)below(d, 7);
    p->base_ns = some_time(d);
    p->cap_ns = p->base_ns + (one_in(d, 4) ? 0 : some_time(d));
    p->floor_ns = one_in(d, 3) ? (int64_t)(roll(d) % (uint64_t)(p->base_ns + 1)) : 0;
    p->throttled_base_ns = one_in(d, 3) ? p->cap_ns - (int64_t)(roll(d) % (uint64_t)(p->cap_ns - p->floor_ns + 1)) : 0;
    p->jitter_add_ns = 1 + (int64_t)(roll(d) % (uint64_t)p->cap_ns);
    p->multiplier_milli = one_in(d, 2) ? 2000 : 1001 + below(d, 5000);
    p->jitter_lo_permille = below(d, 1001);
    p->jitter_hi_permille = p->jitter_lo_permille + below(d, 500);
    p->jitter_past_cap = p->jitter == BIDE_JITTER_PROPORTIONAL && p->jitter_hi_permille > 1000;
}

static void some_policy(struct dice *d, struct bide_policy *p)
{
    bide_policy_init(p, (enum bide_preset)below(d, BIDE_PRESET_COUNT));
    if (one_in(d, 10))
        return; /* an unmodified preset */
    some_backoff(d, p);
    p->attempts_max = 1 + below(d, ATTEMPTS_MAX);
    p->hedges_max = one_in(d, 2) ? below(d, p->attempts_max < 4 ? p->attempts_max : 4) : 0;
    p->hedge_delay_ns = one_in(d, 5) ? 0 : some_time(d);
    p->hedge_quantile_permille = one_in(d, 3) ? below(d, 1000) : 0;
    p->layer = (enum bide_layer_rule)(one_in(d, 3) ? below(d, 3) : BIDE_LAYER_OUTERMOST);
    p->attempt_timeout_ns = one_in(d, 3) ? BIDE_NEVER : some_time(d);
    p->connect_timeout_ns = one_in(d, 3) ? BIDE_NEVER : some_time(d);
    p->call_timeout_ns = one_in(d, 3) ? BIDE_NEVER : some_time(d);
    p->waits_max_ns = one_in(d, 2) ? BIDE_NEVER : some_time(d);
    p->hint_rule = (enum bide_hint_rule)(one_in(d, 2) ? below(d, BIDE_HINT_RULE_IGNORE + 1) : BIDE_HINT_RULE_FLOOR);
    p->hint_long = (enum bide_hint_long)below(d, 3);
    p->hint_step = (enum bide_hint_step)below(d, 3);
    p->hint_jitter_permille = below(d, 1500);
    p->hint_max_ns = one_in(d, 4) ? BIDE_NEVER : some_time(d);
    p->hint_over_ns = some_time(d);
    p->observe = some_gates(d, BIDE_POLICY_GATES);
    p->require_key = one_in(d, 8);
    p->conflict_at_once = one_in(d, 2);
    p->throttled_needs_hint = one_in(d, 8);
    p->long_poll = one_in(d, 8);
    p->last_wait = one_in(d, 2);
    p->when_refused = one_in(d, 3) ? BIDE_WHEN_REFUSED_WAIT : BIDE_WHEN_REFUSED_GIVE_UP;
    p->attempt_min_ns = one_in(d, 2) ? 0 : p->base_ns;
}

static void some_budget(struct dice *d, struct bide_budget_config *b)
{
    b->kind = (enum bide_budget_kind)below(d, 4);
    b->on_empty = one_in(d, 6) ? BIDE_ON_EMPTY_OPEN : BIDE_ON_EMPTY_REFUSE;
    b->capacity_milli = below(d, 6000);
    b->initial_milli = one_in(d, 2) ? BIDE_FULL : below(d, b->capacity_milli + 1);
    b->cost_milli = 1 + below(d, 2000);
    b->cost_throttled_milli = 1 + below(d, 2000);
    b->cost_timeout_milli = 1 + below(d, 2000);
    b->cost_failure_milli = one_in(d, 4) ? below(d, 2000) : 0;
    b->threshold_milli = one_in(d, 4) ? below(d, b->capacity_milli + 1) : 0;
    b->earn_success_milli = below(d, 1000);
    b->earn_first_milli = one_in(d, 4) ? below(d, 1000) : 0;
    b->refill_per_minute_milli = one_in(d, 2) ? below(d, 100000) : 0;
    b->refund_permille = one_in(d, 3) ? below(d, 1001) : 0;
    b->ratio_ppm = below(d, 1000001);
    b->reserve = below(d, 3);
    b->min_volume = below(d, 4);
    b->window_ns = 10 + some_time(d);
    b->cooldown_ns = one_in(d, 2) ? some_time(d) : 0;
}

static void some_breaker(struct dice *d, struct bide_breaker_config *b)
{
    b->kind = (enum bide_breaker_kind)below(d, 4);
    b->consecutive = 1 + below(d, 4);
    b->ratio_permille = 1 + below(d, 1000);
    b->count_window = 1 + below(d, 8);
    b->min_volume = 1 + below(d, b->count_window);
    b->open_growth_milli = 1000 + below(d, 3000);
    b->open_jitter_permille = below(d, 901);
    b->probes = 1 + below(d, 3);
    b->window_ns = 10 + some_time(d);
    b->slow_ns = one_in(d, 3) ? some_time(d) : BIDE_NEVER;
    b->open_ns = some_time(d);
    b->open_max_ns = b->open_ns + some_time(d);
    b->probe_timeout_ns = some_time(d);
    b->ramp_ns = one_in(d, 2) ? some_time(d) : 0;
}

static void some_config(struct dice *d, struct bide_target_config *c)
{
    bide_target_config_init(c, (enum bide_preset)below(d, BIDE_PRESET_COUNT));
    if (one_in(d, 10))
        return;
    some_budget(d, &c->budget);
    some_breaker(d, &c->breaker);
    c->observe = some_gates(d, BIDE_TARGET_GATES);
    c->trust = below(d, 4);
    c->in_flight_max = one_in(d, 3) ? 1 + below(d, 4) : 0;
    c->key_retries = one_in(d, 3) ? 1 + below(d, 3) : 0;
    c->key_interval_ns = some_time(d);
    c->throttle_k_milli = one_in(d, 4) ? 1001 + below(d, 2000) : 0;
    c->throttle_min_volume = below(d, 5);
    c->throttle_window_ns = 10 + some_time(d);
    c->hold_off_max_ns = one_in(d, 4) ? some_time(d) : BIDE_MINUTE;
    c->hold_off_first = one_in(d, 4);
    c->latency = one_in(d, 2);
}

static void make_world(struct world *w, uint64_t seed)
{
    struct dice d = {seed * UINT64_C(0x9e3779b97f4a7c15) + 0x5bd1e995};
    d.state |= d.state == 0;
    memset(w, 0, sizeof *w);
    w->seed = seed;
    w->epoch_ns = one_in(&d, 3) ? 0 : (int64_t)(roll(&d) >> 4); /* up to 36 years */
    do
        some_policy(&d, &w->policy);
    while (bide_policy_check(&w->policy, NULL) != BIDE_OK);
    w->has_target = !one_in(&d, 6);
    do
        some_config(&d, &w->config);
    while (bide_target_config_check(&w->config, NULL) != BIDE_OK);
    for (int i = 0; i < CALLS; i++) {
        w->request[i] = (struct bide_request){.safety = (enum bide_safety)below(&d, 4),
                                              .lane = below(&d, 20),
                                              .seed = roll(&d),
                                              .retry_key = below(&d, 3)};
        if (one_in(&d, 4))
            w->request[i].deadline_ns = w->epoch_ns + some_time(&d);
        if (one_in(&d, 8))
            w->request[i].inbound = (struct bide_inbound){below(&d, 4), one_in(&d, 3)};
    }
    const struct bide_budget_config *b = &w->config.budget;
    w->leased = w->has_target && b->kind == BIDE_BUDGET_TOKENS && b->threshold_milli == 0 && one_in(&d, 2);
}

/* -- events -------------------------------------------------------------------------------------------------------- */

/* The last two only for a leased target: add or remove tokens, or extend the lease. */
enum op { OP_BEGIN, OP_OUTCOME, OP_WAKE, OP_CANCEL, OP_ADD_TOKENS, OP_EXTEND };

struct event {
    enum op op;
    int call;
    uint32_t attempt;
    struct bide_outcome outcome;
    int64_t now_ns;
    int64_t amount; /* ADD_TOKENS: milli tokens; EXTEND: end of the lease */
};

#endif
