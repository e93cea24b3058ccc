/* shape.c - random policies and configurations; see shape.h. */
#include "shape.h"

static void shape_hints(struct world *w, struct bide_policy *p)
{
    p->hint_rule = (enum bide_hint_rule)below(&w->dice, 5);
    p->hint_long = (enum bide_hint_long)below(&w->dice, 3);
    p->hint_step = (enum bide_hint_step)below(&w->dice, 3);
    p->hint_jitter_permille = chance(w, 50) ? 0 : below(&w->dice, 300);
    p->hint_max_ns = chance(w, 30) ? BIDE_NEVER : 1 + some_ns(w, 8 * w->unit_ns);
    p->hint_over_ns = some_ns(w, 2 * w->unit_ns);
    p->throttled_needs_hint = chance(w, 5);
}

static void shape_policy(struct world *w, struct bide_policy *p)
{
    bide_policy_init(p, BIDE_PRESET_SERVICE);
    p->attempts_max = between(w, 1, 6);
    p->backoff = (enum bide_backoff)below(&w->dice, 4);
    p->jitter = chance(w, 75) ? BIDE_JITTER_NONE : BIDE_JITTER_FULL;
    p->base_ns = 1 + some_ns(w, w->unit_ns);
    p->cap_ns = p->base_ns * between(w, 1, 9);
    p->throttled_base_ns = chance(w, 30) ? p->base_ns + some_ns(w, p->cap_ns - p->base_ns) : 0;
    p->floor_ns = chance(w, 20) ? some_ns(w, p->base_ns) : 0;
    p->call_timeout_ns = chance(w, 70) ? BIDE_NEVER : 1 + some_ns(w, 30 * w->unit_ns);
    p->waits_max_ns = chance(w, 70) ? BIDE_NEVER : 1 + some_ns(w, 12 * w->unit_ns);
    p->connect_timeout_ns = chance(w, 50) ? BIDE_NEVER : 1 + some_ns(w, 2 * w->unit_ns);
    p->attempt_min_ns = chance(w, 70) ? 0 : 1 + some_ns(w, w->unit_ns);
    p->last_wait = chance(w, 50);
    p->when_refused = chance(w, 60) ? BIDE_WHEN_REFUSED_GIVE_UP : BIDE_WHEN_REFUSED_WAIT;
    p->conflict_at_once = chance(w, 50);
    p->long_poll = chance(w, 10);
    shape_hints(w, p);
}

void shape_policies(struct world *w)
{
    w->unit_ns = INT64_C(1) << between(w, 12, 34); /* 4 us to 17 s */
    w->failure_percent = between(w, 20, 95);
    w->hint_percent = chance(w, 50) ? 0 : 10;
    shape_policy(w, &w->policy[0]);
    shape_policy(w, &w->policy[1]);
}

/* The breaker of half the worlds waits for evidence that seldom comes: the fast paths need a breaker by time. */
void shape_plain(struct world *w)
{
    struct bide_target_config *c = &w->config;
    bide_target_config_init(c, BIDE_PRESET_COMMAND);
    c->hold_off_max_ns = chance(w, 50) ? 0 : some_ns(w, 8 * w->unit_ns);
    if (chance(w, 50))
        c->breaker.kind = BIDE_BREAKER_BY_TIME;
    w->keys = 0;
    w->events = 0;
}

void shape_usual(struct world *w)
{
    bide_target_config_init(&w->config, BIDE_PRESET_SERVICE);
    shape_tokens(w);
    w->config.budget.earn_first_milli = w->config.budget.cost_failure_milli = w->config.budget.threshold_milli = 0;
}

void shape_tokens(struct world *w)
{
    struct bide_budget_config *b = &w->config.budget;
    b->kind = BIDE_BUDGET_TOKENS;
    b->on_empty = chance(w, 20) ? BIDE_ON_EMPTY_OPEN : BIDE_ON_EMPTY_REFUSE;
    b->capacity_milli = chance(w, 3) ? 0 : between(w, 1000, 12000);
    b->initial_milli = chance(w, 50) ? BIDE_FULL : below(&w->dice, b->capacity_milli + 1);
    uint32_t most = b->capacity_milli > 0 ? b->capacity_milli : 1000;
    b->cost_milli = between(w, 1, most < 2500 ? most : 2500);
    b->cost_throttled_milli = between(w, 1, most);
    b->cost_timeout_milli = between(w, 1, most);
    b->cost_failure_milli = chance(w, 30) ? below(&w->dice, 1500) : 0;
    b->threshold_milli = chance(w, 20) ? below(&w->dice, most) : 0;
    b->earn_success_milli = chance(w, 80) ? below(&w->dice, 800) : 0;
    b->earn_first_milli = chance(w, 20) ? below(&w->dice, 800) : 0;
    b->refill_per_minute_milli = chance(w, 50) ? 0 : below(&w->dice, chance(w, 50) ? 5000 : 1000000);
    b->refund_permille = chance(w, 40) ? between(w, 1, 1000) : 0;
    if (b->capacity_milli == 0)
        b->threshold_milli = 0;
}

void shape_window(struct world *w)
{
    struct bide_budget_config *b = &w->config.budget;
    b->kind = BIDE_BUDGET_WINDOW;
    b->on_empty = chance(w, 20) ? BIDE_ON_EMPTY_OPEN : BIDE_ON_EMPTY_REFUSE;
    b->ratio_ppm = chance(w, 20) ? 1000000 : below(&w->dice, 1000000);
    b->reserve = chance(w, 50) ? 0 : below(&w->dice, 4);
    b->min_volume = chance(w, 60) ? 0 : below(&w->dice, 12);
    b->window_ns = 10 + some_ns(w, 20 * w->unit_ns);
    b->cooldown_ns = chance(w, 60) ? 0 : some_ns(w, 4 * w->unit_ns);
}

void shape_breaker(struct world *w)
{
    struct bide_breaker_config *b = &w->config.breaker;
    b->kind = (enum bide_breaker_kind)below(&w->dice, 4);
    b->consecutive = between(w, 1, 6);
    b->ratio_permille = between(w, 1, 1000);
    b->count_window = between(w, 1, chance(w, 90) ? 20 : 256);
    b->min_volume = between(w, 1, b->count_window);
    b->window_ns = 10 + some_ns(w, 20 * w->unit_ns);
    b->slow_ns = chance(w, 70) ? BIDE_NEVER : 1 + some_ns(w, 4 * w->unit_ns);
    b->open_ns = 1 + some_ns(w, 4 * w->unit_ns);
    b->open_growth_milli = chance(w, 30) ? 1000 : between(w, 1000, 4000);
    b->open_max_ns = b->open_ns + some_ns(w, 8 * w->unit_ns);
    b->open_jitter_permille = chance(w, 60) ? 0 : below(&w->dice, 901);
    b->probes = between(w, 1, chance(w, 80) ? 3 : 8);
    b->probe_timeout_ns = 1 + some_ns(w, 8 * w->unit_ns);
    b->ramp_ns = chance(w, 60) ? 0 : some_ns(w, 8 * w->unit_ns);
}
