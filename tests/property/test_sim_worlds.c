/* test_sim_worlds.c - invariants of the simulator, checked in thousands of random worlds.
 *
 * Calls and attempts are conserved: each call ends once; each attempt that arrives is served, fails, is refused or
 * dropped. The same world and seed give the same result to the last bit, with the radix heap and with the plain heap. A
 * world is generated from its number alone; a failure names it, and BIDE_TEST_SEED=NUMBER begins with it (seed.h). */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/random.h"
#include "seed.h"
#include "sim/run.h"

#define WORLDS 1500u
#define MS     BIDE_MS
#define S      BIDE_S

static uint64_t first_world;

/* ---- random worlds ---- */

struct dice {
    uint64_t state;
};

static uint64_t roll(struct dice *dice, uint64_t sides)
{
    dice->state += CORE_GOLDEN;
    return core_mix(dice->state) % sides;
}

static bool once_in(struct dice *dice, uint64_t sides)
{
    return roll(dice, sides) == 0;
}

static int64_t some_time(struct dice *dice, int64_t max_ns)
{
    static const int64_t units_ns[] = {1, MS, 10 * MS, 100 * MS};
    int64_t unit_ns = units_ns[roll(dice, 4)];
    return (int64_t)roll(dice, (uint64_t)(max_ns / unit_ns) + 1) * unit_ns; /* round numbers, so that events coincide */
}

static struct sim_distribution some_shape(struct dice *dice, int64_t max_ns)
{
    struct sim_distribution dist = {.shape = (enum sim_shape)roll(dice, 5)};
    dist.a_ns = some_time(dice, max_ns);
    dist.b_ns = dist.a_ns + some_time(dice, max_ns);
    dist.ppm = (uint32_t)roll(dice, 1000001);
    if (once_in(dice, 3))
        dist = (struct sim_distribution){.shape = SIM_FIXED};
    sim_distribution_prepare(&dist);
    return dist;
}

static void some_policy(struct dice *dice, struct conf_policy *into)
{
    conf_policy_init(into, (enum bide_preset)roll(dice, BIDE_PRESET_COUNT));
    struct bide_policy *policy = &into->pair.policy;
    policy->attempts_max = 1 + (uint32_t)roll(dice, 6);
    policy->hedges_max = 0;
    if (policy->attempts_max > 2 && once_in(dice, 3)) {
        policy->hedges_max = 1 + (uint32_t)roll(dice, 2);
        policy->hedge_delay_ns = some_time(dice, 100 * MS);
    }
    if (once_in(dice, 2))
        policy->attempt_timeout_ns = 1 + some_time(dice, S);
    if (policy->connect_timeout_ns > policy->attempt_timeout_ns)
        policy->connect_timeout_ns = BIDE_NEVER;
    if (once_in(dice, 3))
        into->pair.target.breaker.kind = (enum bide_breaker_kind)roll(dice, 4);
}

/* Shares targets between processes of a host, and leases budgets. */
static void some_sharing(struct dice *dice, struct sim_clients *c, const struct conf_policy *policy)
{
    if (c->processes > 0 && once_in(dice, 2))
        c->hosts = 1 + (uint32_t)roll(dice, c->processes);
    const struct bide_budget_config *budget = &policy->pair.target.budget;
    c->fleet = budget->kind == BIDE_BUDGET_TOKENS && budget->threshold_milli == 0 && once_in(dice, 2);
}

/* Makes some requests and replies late or lost. */
static void some_fleet(struct dice *dice, struct sim_fleet *fleet)
{
    fleet->capacity_milli = 1 + (uint32_t)roll(dice, 20000);
    fleet->refill_per_minute_milli = (uint32_t)roll(dice, 3) * 100000;
    fleet->delay = some_shape(dice, 200 * MS);
    fleet->timeout_ns = 1 + some_time(dice, 400 * MS);
    if (once_in(dice, 2))
        return;
    fleet->down_from_ns = some_time(dice, 3 * S);
    fleet->down_until_ns = fleet->down_from_ns + 1 + some_time(dice, S);
}

static void some_clients(struct dice *dice, struct sim_clients *c, uint32_t services)
{
    c->arrival = (enum sim_arrival)roll(dice, 6);
    c->count = c->arrival == SIM_HERD || c->arrival == SIM_CLOSED ? 1 + roll(dice, 60) : roll(dice, 20);
    c->rate_micro = (1 + roll(dice, 60)) * 1000000;
    c->peak_rate_micro = c->rate_micro * (1 + roll(dice, 4));
    c->end_rate_micro = roll(dice, 2) * c->rate_micro;
    c->from_ns = some_time(dice, S);
    c->peak_from_ns = c->from_ns + 1 + some_time(dice, S);
    c->peak_until_ns = c->peak_from_ns + 1 + some_time(dice, S);
    c->until_ns = c->peak_until_ns + 1 + some_time(dice, 2 * S);
    c->think = some_shape(dice, 200 * MS);
    if (c->think.a_ns < MS)
        c->think = (struct sim_distribution){.shape = SIM_FIXED, .a_ns = 50 * MS};
    c->pace = (enum sim_pace)roll(dice, 3);
    c->processes = (uint32_t)roll(dice, 4);
    c->scope = (enum sim_scope)roll(dice, 2);
    c->fanout = c->arrival != SIM_CLOSED && once_in(dice, 4) ? 1 + (uint32_t)roll(dice, 5) : 1;
    c->pool = once_in(dice, 3) ? 1 + (uint32_t)roll(dice, 3) : 0;
    c->safety = (enum bide_safety)roll(dice, 4);
    c->service = (uint32_t)roll(dice, services);
    c->gauss_milli = once_in(dice, 6) ? 4000 : 0;
}

static void some_service(struct dice *dice, struct sim_service *s, uint32_t i, uint32_t services)
{
    s->kind = (enum sim_kind)roll(dice, 3);
    s->servers = 1 + (uint32_t)roll(dice, 4);
    s->time = some_shape(dice, 60 * MS);
    s->per_in_flight_ns = once_in(dice, 4) ? (int64_t)roll(dice, 5) * MS : 0;
    s->order = (enum sim_order)roll(dice, 2);
    s->queue_max = once_in(dice, 2) ? UINT32_MAX : (uint32_t)roll(dice, 5);
    s->full = (enum sim_refusal)roll(dice, 3);
    s->drop_dead = once_in(dice, 2);
    s->fail_ppm = once_in(dice, 2) ? (uint32_t)roll(dice, 1000001) : 0;
    s->throttles = once_in(dice, 2);
    s->shards = 1 + (uint32_t)roll(dice, 3);
    s->bad_shards = once_in(dice, 3) ? (uint32_t)roll(dice, s->shards) : 0;
    s->hint = (enum sim_hint_form)roll(dice, 3);
    s->hint_ns = some_time(dice, 2 * S);
    s->hint_spread_ns = some_time(dice, S);
    s->cold_permille = once_in(dice, 3) ? 1 + (uint32_t)roll(dice, 1000) : 1000;
    s->cold_ns = 1 + some_time(dice, S);
    s->cold_at_start = once_in(dice, 2);
    s->calls = s->kind != SIM_ROW && i + 1 < services && once_in(dice, 2) ? (int32_t)(i + 1) : -1;
    s->processes = 1 + (uint32_t)roll(dice, 3);
    s->fan = 1 + (uint32_t)roll(dice, 2);
}

static void some_outage(struct dice *dice, struct sim_outage *o, uint32_t services)
{
    o->service = (uint32_t)roll(dice, services);
    o->kind = (enum sim_outage_kind)roll(dice, 5);
    o->from_ns = some_time(dice, 3 * S);
    o->until_ns = o->from_ns + 1 + some_time(dice, S);
    o->inclusive = once_in(dice, 2);
    o->capacity_permille = 1 + (uint32_t)roll(dice, 1000);
    o->fail_ppm = once_in(dice, 2) ? 1000000 : (uint32_t)roll(dice, 1000001);
}

static struct conf_policy policies[SIM_GROUPS_MAX + SIM_SERVICES_MAX];

static void some_world(uint64_t number, struct sim_world *world)
{
    struct dice dice = {number * CORE_GOLDEN};
    sim_world_init(world);
    world->duration_ns = 4 * S;
    world->bin_ns = (1 + (int64_t)roll(&dice, 400)) * MS;
    world->drain = !once_in(&dice, 4);
    world->delay = some_shape(&dice, 20 * MS);
    world->loss_ppm = once_in(&dice, 4) ? (uint32_t)roll(&dice, 300000) : 0;
    some_fleet(&dice, &world->fleet);
    world->groups = 1 + (uint32_t)roll(&dice, 2);
    world->services = 1 + (uint32_t)roll(&dice, 3);
    world->outages = (uint32_t)roll(&dice, 3);
    for (uint32_t i = 0; i < SIM_GROUPS_MAX + SIM_SERVICES_MAX; i++)
        some_policy(&dice, &policies[i]);
    for (uint32_t i = 0; i < world->groups; i++) {
        some_clients(&dice, &world->clients[i], world->services);
        some_sharing(&dice, &world->clients[i], &policies[i]);
        world->policy_of_clients[i] = &policies[i];
    }
    for (uint32_t i = 0; i < world->services; i++) {
        some_service(&dice, &world->service[i], i, world->services);
        world->policy_of_service[i] = &policies[SIM_GROUPS_MAX + i];
    }
    for (uint32_t i = 0; i < world->outages; i++)
        some_outage(&dice, &world->outage[i], world->services);
}

/* ---- laws ---- */

#define LAW(holds)                                                                                                     \
    do {                                                                                                               \
        if (!(holds))                                                                                                  \
            fail_msg("world %" PRIu64 ": %s", number, #holds);                                                         \
    } while (0)

static uint64_t sum(const struct sim_result *r, size_t offset)
{
    uint64_t all = 0;
    for (size_t i = 0; i < r->points; i++)
        all += *(const uint64_t *)((const char *)&r->point[i] + offset);
    return all;
}
#define SUM(field) sum(r, offsetof(struct sim_point, field))

static void every_call_ends_once(uint64_t number, const struct sim_result *r)
{
    uint64_t reasons = 0;
    for (size_t i = 0; i < BIDE_REASON_COUNT; i++)
        reasons += r->reason[i];
    LAW(r->calls == r->succeeded + r->gave_up + r->unfinished);
    LAW(r->gave_up == reasons);
    LAW(r->reason[BIDE_REASON_NOTHING] == 0 && r->reason[BIDE_REASON_SUCCEEDED] == 0 &&
        r->reason[BIDE_REASON_CANCELLED] == 0);
    LAW(r->attempts >= r->retries + r->hedges && r->attempts - r->retries - r->hedges <= r->calls);
    LAW(r->users <= r->calls && r->users_succeeded <= r->users && r->latency.total == r->users_succeeded);
    LAW(r->latency.max_ns <= r->ended_ns);
}

/* In worlds without layers, attempts of clients arrive unless they are lost or wait for a connection; a call succeeds
 * by an attempt that was served while the call waited. */
static void attempts_add_up(uint64_t number, const struct sim_world *world, const struct sim_result *r)
{
    bool layers = false, fan_out = false, limited = false;
    for (uint32_t i = 0; i < world->services; i++)
        layers |= world->service[i].calls >= 0;
    for (uint32_t i = 0; i < world->groups; i++) {
        fan_out |= world->clients[i].fanout > 1;
        limited |= world->clients[i].pool > 0;
    }
    LAW(fan_out || (r->users == r->calls && r->users_succeeded == r->succeeded));
    if (layers)
        return;
    LAW(r->arrivals <= r->attempts && r->first_arrivals <= r->calls);
    LAW(r->succeeded + r->wasted <= r->served + r->failed);
    LAW(limited || !world->drain || r->arrivals + r->lost >= r->attempts);
}

static void every_arrival_is_accounted_for(uint64_t number, const struct sim_world *world, const struct sim_result *r)
{
    uint64_t ends = r->served + r->failed + r->refused + r->dropped;
    LAW(r->first_arrivals <= r->arrivals);
    if (world->drain)
        LAW(ends == r->arrivals);
    else
        LAW(ends <= r->arrivals);
    LAW(r->wasted <= r->served + r->failed);
}

static void the_series_adds_up(uint64_t number, const struct sim_result *r)
{
    LAW((int64_t)r->points == r->ended_ns / r->bin_ns + 1);
    LAW(SUM(calls) == r->calls);
    LAW(SUM(attempts) == r->attempts);
    LAW(SUM(arrivals) == r->arrivals);
    LAW(SUM(retries) == r->arrivals - r->first_arrivals);
    LAW(SUM(served) == r->served);
    LAW(SUM(succeeded) == r->succeeded);
    LAW(SUM(gave_up) == r->gave_up);
    for (size_t w = 0; w < SIM_BIN_WIDTHS; w++) {
        const struct sim_peaks *p = &r->peak[w];
        LAW(p->arrivals.max <= r->arrivals && (p->arrivals.max > 0) == (r->arrivals > 0));
        LAW(p->retries.max <= p->arrivals.max);
        LAW(p->served.max <= r->served && (p->served.max > 0) == (r->served > 0));
        LAW(w == 0 || p->arrivals.max >= r->peak[w - 1].arrivals.max);
        LAW(w == 0 || p->served.max <= r->peak[w - 1].served.max * (uint64_t)(p->width_ns / p[-1].width_ns));
        LAW(p->probes.max <= r->probes && (p->probes.max > 0) == (r->probes > 0));
        LAW(p->arrivals.at_ns % p->width_ns == 0);
    }
}

/* Returns the cost of the cheapest retry or hedge. */
static uint64_t cheapest_milli(const struct bide_budget_config *budget)
{
    uint64_t min = budget->cost_milli;
    min = budget->cost_throttled_milli < min ? budget->cost_throttled_milli : min;
    return budget->cost_timeout_milli < min ? budget->cost_timeout_milli : min;
}

/* If all groups lease: every retry is covered by tokens that the bucket granted, that were refilled locally while
 * disconnected, or by the one retry of a join; and the bucket grants no more than it received and its initial tokens,
 * at most its capacity. */
static void retries_are_covered_by_leases_and_local_refill(uint64_t number, const struct sim_world *world,
                                                           const struct sim_result *r)
{
    uint64_t cost_milli = UINT64_MAX, floor_milli = 0, join_milli = 0, buckets = 0;
    for (uint32_t i = 0; i < world->groups; i++) {
        const struct bide_budget_config *budget = &world->policy_of_clients[i]->pair.target.budget;
        if (!world->clients[i].fleet)
            return;
        cost_milli = cheapest_milli(budget) < cost_milli ? cheapest_milli(budget) : cost_milli;
        floor_milli = budget->refill_per_minute_milli > floor_milli ? budget->refill_per_minute_milli : floor_milli;
        if (budget->refill_per_minute_milli > 0 && budget->cost_milli > join_milli)
            join_milli = budget->cost_milli;
        buckets += world->service[world->clients[i].service].shards;
    }
    double got_milli = (double)r->fleet_earned_milli + (double)(buckets * world->fleet.capacity_milli) +
                       (double)(buckets * world->fleet.refill_per_minute_milli) * (double)(r->ended_ns + MS) / (60e9);
    double trickled_milli = (double)floor_milli * (double)r->fleet_disconnected_ns / 60e9;
    double joined_milli = (double)(r->fleet_joins * join_milli);
    LAW((double)((r->retries + r->hedges) * cost_milli) <=
        (double)r->fleet_leased_milli + trickled_milli + joined_milli);
    LAW((double)r->fleet_leased_milli <= got_milli);
    LAW(r->fleet_peak <= r->fleet_exchanges && (r->fleet_peak > 0) == (r->fleet_exchanges > 0));
}

static void both_queues_agree(uint64_t number, const struct sim_world *world, const struct sim_result *r)
{
    static struct sim_result plain, one;
    struct sim_run_options options = {.seed = number, .plain_queue = true};
    LAW(sim_run(world, &options, &plain) == SIM_END_DONE);
    LAW(plain.points == r->points);
    LAW(memcmp(plain.point, r->point, r->points * sizeof *r->point) == 0);
    one = *r;
    struct sim_point *points = plain.point;
    plain.point = one.point = NULL;
    LAW(memcmp(&plain, &one, sizeof one) == 0);
    plain.point = points;
    sim_result_free(&plain);
}

static void a_world(uint64_t number)
{
    static struct sim_world world;
    static struct sim_result result;
    some_world(number, &world);
    enum sim_end end = sim_run(&world, &(struct sim_run_options){.seed = number}, &result);
    LAW(end == SIM_END_DONE);
    every_call_ends_once(number, &result);
    every_arrival_is_accounted_for(number, &world, &result);
    attempts_add_up(number, &world, &result);
    the_series_adds_up(number, &result);
    retries_are_covered_by_leases_and_local_refill(number, &world, &result);
    both_queues_agree(number, &world, &result);
    sim_result_free(&result);
}

static void invariants_hold_in_every_world(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < WORLDS; i++)
        a_world(first_world + i);
}

static int play_seed(uint64_t seed)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(invariants_hold_in_every_world)};
    first_world = seed;
    return cmocka_run_group_tests_name("sim_worlds", tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    (void)argc;
    return seed_main(argv[0], 1, play_seed);
}
