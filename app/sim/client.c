/* client.c - when calls begin: arrival processes of open groups, closed loops, users with fan-out, and set-up of
 * callers.
 *
 * An open group has a single pending event: its next arrival. When it happens, the call begins and the following
 * arrival is drawn. A closed client has a pending event or a call, never both. The calls of a group are numbered, and
 * everything random about a call follows from the run's seed, the group and that number. */
#include <stdlib.h>

#include "os/memory.h"

#include "state.h"

/* ---- processes and their targets ---- */

bool sim_has_gates(const struct conf_pair *pair, const struct sim_service *service)
{
    const struct bide_target_config *config = &pair->target;
    return config->budget.kind != BIDE_BUDGET_NONE || config->breaker.kind != BIDE_BREAKER_OFF ||
           config->in_flight_max > 0 || config->key_retries > 0 || config->throttle_k_milli > 0 ||
           (config->hold_off_max_ns > 0 && service->hint != SIM_HINT_NO) ||
           (config->latency && pair->policy.hedge_quantile_permille > 0);
}

static bool caller_make_targets(const struct sim_world *world, struct sim_caller *caller, const struct conf_pair *pair)
{
    const struct bide_target_config *config = &pair->target;
    if (!sim_has_gates(pair, &world->service[caller->service]))
        return true;
    caller->targets = caller->target_owners * caller->shards;
    if (!os_memory_refused())
        caller->target = aligned_alloc(64, (size_t)caller->targets * sizeof *caller->target);
    if (caller->target == NULL)
        return false;
    for (uint32_t i = 0; i < caller->targets; i++)
        if (bide_target_init(&caller->target[i], config, 0, NULL) != BIDE_OK)
            return false;
    caller->has_breaker = config->breaker.kind != BIDE_BREAKER_OFF || config->budget.on_empty == BIDE_ON_EMPTY_OPEN;
    return true;
}

static uint32_t clients_processes(const struct sim_clients *clients)
{
    if (clients->processes > 0)
        return clients->processes;
    return clients->count > 0 ? (uint32_t)clients->count : 1;
}

static bool callers_open(struct sim_state *state)
{
    const struct sim_world *world = state->world;
    for (uint32_t i = 0; i < world->groups; i++) {
        const struct sim_clients *clients = &world->clients[i];
        struct sim_caller *caller = &state->caller[i];
        caller->policy = &world->policy_of_clients[i]->pair.policy;
        caller->service = (uint8_t)clients->service;
        caller->safety = clients->safety;
        caller->processes = clients_processes(clients);
        caller->target_owners = clients->hosts > 0 ? clients->hosts : caller->processes;
        caller->shards = clients->scope == SIM_SCOPE_SHARD ? world->service[clients->service].shards : 1;
        caller->is_instant = !state->delays && world->loss_ppm == 0 && clients->pool == 0 &&
                             sim_service_is_instant(world, clients->service);
        if (!caller_make_targets(world, caller, &world->policy_of_clients[i]->pair))
            return false;
    }
    for (uint32_t i = 0; i < world->services; i++) {
        const struct sim_service *service = &world->service[i];
        struct sim_caller *caller = &state->caller[SIM_GROUPS_MAX + i];
        if (service->calls < 0)
            continue;
        caller->policy = &world->policy_of_service[i]->pair.policy;
        caller->service = (uint8_t)service->calls;
        caller->safety = BIDE_SAFE;
        caller->processes = service->processes > 0 ? service->processes : 1;
        caller->target_owners = caller->processes;
        caller->shards = 1;
        caller->is_instant =
            !state->delays && world->loss_ppm == 0 && sim_service_is_instant(world, (uint32_t)service->calls);
        if (!caller_make_targets(world, caller, &world->policy_of_service[i]->pair))
            return false;
    }
    return true;
}

/* ---- arrivals of open groups ---- */

/* Returns the instant at and after which no call of the group begins. */
static int64_t clients_end_ns(const struct sim_world *world, const struct sim_clients *clients)
{
    return clients->until_ns < world->duration_ns ? clients->until_ns : world->duration_ns;
}

/* Returns the rate of a ramp, in millionths a second: linear up, constant, linear down. */
static double clients_ramp_rate(const struct sim_clients *c, int64_t end_ns, double at_ns)
{
    double rate = (double)c->rate_micro, peak = (double)c->peak_rate_micro, last = (double)c->end_rate_micro;
    if (at_ns < (double)c->peak_from_ns)
        return rate + (peak - rate) * (at_ns - (double)c->from_ns) / (double)(c->peak_from_ns - c->from_ns);
    if (at_ns < (double)c->peak_until_ns)
        return peak;
    return peak + (last - peak) * (at_ns - (double)c->peak_until_ns) / (double)(end_ns - c->peak_until_ns);
}

static double clients_rate_at(const struct sim_world *world, const struct sim_clients *c, double at_ns)
{
    if (c->arrival == SIM_RAMP)
        return clients_ramp_rate(c, clients_end_ns(world, c), at_ns);
    bool peak = c->arrival == SIM_SPIKE && at_ns >= (double)c->peak_from_ns && at_ns < (double)c->peak_until_ns;
    return (double)(peak ? c->peak_rate_micro : c->rate_micro);
}

static double clients_rate_max(const struct sim_clients *c)
{
    uint64_t max = c->rate_micro;
    if (c->arrival == SIM_RAMP || c->arrival == SIM_SPIKE)
        max = c->peak_rate_micro > max ? c->peak_rate_micro : max;
    if (c->arrival == SIM_RAMP)
        max = c->end_rate_micro > max ? c->end_rate_micro : max;
    return (double)max;
}

/* Returns the next arrival of a Poisson process. For a rate that varies, by thinning: candidates are drawn at the
 * highest rate, and each is accepted with probability rate(t) / highest rate. */
static double group_next_poisson(struct sim_state *state, uint32_t g)
{
    const struct sim_clients *c = &state->world->clients[g];
    struct sim_group *group = &state->group[g];
    double max = clients_rate_max(c), end_ns = (double)clients_end_ns(state->world, c);
    for (;;) {
        struct sim_random_key key = {state->options->seed, SIM_FOR_ARRIVAL, group->arrivals_drawn++, g};
        group->last_arrival_ns += -sim_ln(sim_random_unit(key)) * (1e15 / max);
        if (group->last_arrival_ns >= end_ns || (c->arrival != SIM_RAMP && c->arrival != SIM_SPIKE))
            return group->last_arrival_ns;
        key.stream = SIM_FOR_THINNING;
        if (sim_random_unit(key) * max < clients_rate_at(state->world, c, group->last_arrival_ns))
            return group->last_arrival_ns;
    }
}

/* Returns the time of call n, from 0, computed in integers: adding up a rounded distance could put call 3 of 3/s before
 * the end of the first second. A double holds the result exactly for a hundred days, and to 4 ns for a year. */
static double clients_nth_uniform(const struct sim_clients *c, uint64_t n)
{
    unsigned __int128 whole_ns = (unsigned __int128)n * (UINT64_C(1000000) * BIDE_S) / c->rate_micro;
    return (double)c->from_ns + (double)whole_ns;
}

/* Returns when the next call of the group begins; BIDE_NEVER: none will. */
static int64_t group_next_arrival(struct sim_state *state, uint32_t g)
{
    const struct sim_clients *c = &state->world->clients[g];
    uint64_t n = state->group[g].calls_begun / c->fanout, max = c->arrival == SIM_HERD ? c->count : c->calls;
    if (max > 0 && n >= max)
        return BIDE_NEVER;
    if (c->arrival == SIM_HERD)
        return c->from_ns < state->world->duration_ns ? c->from_ns : BIDE_NEVER;
    double at_ns = c->arrival == SIM_UNIFORM ? clients_nth_uniform(c, n) : group_next_poisson(state, g);
    return at_ns < (double)clients_end_ns(state->world, c) ? (int64_t)at_ns : BIDE_NEVER;
}

static void group_schedule_arrival(struct sim_state *state, uint32_t g)
{
    int64_t at_ns = group_next_arrival(state, g);
    if (at_ns == BIDE_NEVER)
        return;
    state->arrivals++;
    sim_schedule(state, at_ns, SIM_ID_GROUP + g, 0);
}

/* ---- calls ---- */

/* Begins a call for each branch of the fan-out, owned by the user or client `owner`. */
static void group_begin_calls(struct sim_state *state, uint32_t g, uint64_t client, uint32_t owner)
{
    const struct sim_clients *c = &state->world->clients[g];
    struct sim_group *group = &state->group[g];
    state->result->users++;
    for (uint32_t i = 0; i < c->fanout; i++) {
        struct sim_random_key key = {state->options->seed, SIM_FOR_CALL, group->calls_begun++, g};
        struct sim_new_call call = {
            .caller = (uint8_t)g, .owner = owner, .seed = sim_random_bits(key), .process = client};
        sim_stats_count_call(state);
        sim_call_begin(state, &call);
    }
}

static void group_begin_open(struct sim_state *state, uint32_t g)
{
    const struct sim_clients *c = &state->world->clients[g];
    uint64_t user = state->group[g].calls_begun / c->fanout, client = c->count > 0 ? user % c->count : user;
    uint32_t owner = SIM_NONE;
    if (c->fanout > 1) {
        owner = sim_slab_alloc(&state->users);
        if (owner == SIM_NONE) {
            state->no_memory = true;
            return;
        }
        *(struct sim_user *)sim_slab_at(&state->users, owner) =
            (struct sim_user){.began_ns = state->now_ns, .calls_left = c->fanout};
    }
    group_begin_calls(state, g, client, owner);
}

void sim_clients_on_arrival(struct sim_state *state, uint32_t group)
{
    state->arrivals--;
    group_begin_open(state, group);
    group_schedule_arrival(state, group);
}

/* ---- closed loops ---- */

static int64_t client_think_ns(struct sim_state *state, uint32_t client)
{
    const struct sim_closed_client *c = &state->client[client];
    struct sim_random_key key = {state->options->seed, SIM_FOR_THINK, client, c->calls};
    return sim_distribution_draw(&state->world->clients[c->group].think, key);
}

static void client_schedule_turn(struct sim_state *state, uint32_t client, int64_t at_ns)
{
    uint32_t g = state->client[client].group;
    const struct sim_clients *c = &state->world->clients[g];
    if (at_ns >= clients_end_ns(state->world, c) || (c->calls > 0 && state->group[g].calls_begun >= c->calls))
        return;
    state->arrivals++;
    sim_schedule(state, at_ns, SIM_ID_CLIENT + client, 0);
}

void sim_client_on_turn(struct sim_state *state, uint32_t client)
{
    struct sim_closed_client *c = &state->client[client];
    const struct sim_clients *group = &state->world->clients[c->group];
    state->arrivals--;
    if (group->calls > 0 && state->group[c->group].calls_begun >= group->calls)
        return;
    c->calls++;
    group_begin_calls(state, c->group, client - state->group[c->group].first_client, client);
}

/* Schedules the next call of a client after its call that began at began_ns. */
static void client_schedule_next(struct sim_state *state, uint32_t client, int64_t began_ns)
{
    struct sim_closed_client *c = &state->client[client];
    int64_t think_ns = client_think_ns(state, client), at_ns = state->now_ns + think_ns;
    switch (state->world->clients[c->group].pace) {
    case SIM_PACE_THINK: break;
    case SIM_PACE_START: at_ns = began_ns + think_ns; break;
    case SIM_PACE_QUEUE:
        c->due_ns += think_ns;
        at_ns = c->due_ns;
        break;
    }
    client_schedule_turn(state, client, at_ns > state->now_ns ? at_ns : state->now_ns);
}

static bool closed_clients_open(struct sim_state *state, uint32_t g)
{
    const struct sim_clients *c = &state->world->clients[g];
    size_t count = state->clients + c->count;
    if (count > SIM_ID_GROUP - SIM_ID_CLIENT || os_memory_refused())
        return false;
    struct sim_closed_client *clients = realloc(state->client, count * sizeof *clients);
    if (clients == NULL)
        return false;
    state->client = clients;
    state->group[g].first_client = state->clients;
    for (uint64_t i = 0; i < c->count; i++) {
        uint32_t client = state->clients++;
        state->client[client] = (struct sim_closed_client){.group = (uint8_t)g};
        state->client[client].due_ns = c->from_ns + client_think_ns(state, client);
        client_schedule_turn(state, client, state->client[client].due_ns);
    }
    return true;
}

/* ---- ends of calls ---- */

static void user_call_ended(struct sim_state *state, uint32_t index, bool succeeded)
{
    struct sim_user *user = sim_slab_at(&state->users, index);
    user->failed |= !succeeded;
    if (--user->calls_left > 0)
        return;
    sim_stats_count_user(state, user->began_ns, !user->failed);
    sim_slab_release(&state->users, index);
}

void sim_clients_call_ended(struct sim_state *state, const struct sim_call *call, const struct bide_verdict *verdict)
{
    const struct sim_clients *c = &state->world->clients[call->caller];
    bool succeeded = verdict->action == BIDE_ACTION_DONE;
    sim_stats_count_call_end(state, verdict);
    if (c->fanout > 1)
        user_call_ended(state, call->owner, succeeded);
    else
        sim_stats_count_user(state, call->began_ns, succeeded);
    if (c->arrival == SIM_CLOSED)
        client_schedule_next(state, call->owner, call->began_ns);
}

/* ---- set-up ---- */

static bool conn_pools_open(struct sim_state *state, uint32_t g)
{
    uint32_t processes = state->caller[g].processes;
    struct sim_group *group = &state->group[g];
    if (state->world->clients[g].pool == 0)
        return true;
    group->conn_pool = os_memory(processes, sizeof *group->conn_pool);
    if (group->conn_pool == NULL)
        return false;
    for (uint32_t i = 0; i < processes; i++)
        group->conn_pool[i] =
            (struct sim_conn_pool){SIM_REQUEST_LIST(SIM_LIST_AT_CLIENT), SIM_REQUEST_LIST(SIM_LIST_AT_CLIENT)};
    return true;
}

bool sim_clients_open(struct sim_state *state)
{
    const struct sim_world *world = state->world;
    if (!callers_open(state))
        return false;
    for (uint32_t g = 0; g < world->groups; g++) {
        if (!conn_pools_open(state, g))
            return false;
        state->group[g].last_arrival_ns = (double)world->clients[g].from_ns;
        if (world->clients[g].arrival != SIM_CLOSED)
            group_schedule_arrival(state, g);
        else if (!closed_clients_open(state, g))
            return false;
    }
    return true;
}

void sim_clients_close(struct sim_state *state)
{
    for (size_t i = 0; i < sizeof state->caller / sizeof state->caller[0]; i++)
        free(state->caller[i].target);
    for (size_t g = 0; g < SIM_GROUPS_MAX; g++) {
        free(state->group[g].conn_pool);
    }
    free(state->client);
}
