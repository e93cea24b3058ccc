/* client.c - when calls begin, and for whom.
 *
 * An open group has one event in the queue: its next arrival. When it happens the call begins, and the one after it is
 * drawn. A closed client has one event or one call. The calls of a group are numbered, and everything about a call
 * follows from the world's seed, the group and that number. */
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

static bool make_targets(const struct sim_world *world, struct sim_caller *caller, const struct conf_pair *pair)
{
    const struct bide_target_config *config = &pair->target;
    if (!sim_has_gates(pair, &world->service[caller->service]))
        return true;
    caller->targets = caller->owners * caller->shards;
    if (!os_memory_refused())
        caller->target = aligned_alloc(64, (size_t)caller->targets * sizeof *caller->target);
    if (caller->target == NULL)
        return false;
    for (uint32_t i = 0; i < caller->targets; i++)
        if (bide_target_init(&caller->target[i], config, 0, NULL) != BIDE_OK)
            return false;
    caller->breaker = config->breaker.kind != BIDE_BREAKER_OFF || config->budget.on_empty == BIDE_ON_EMPTY_OPEN;
    return true;
}

static uint32_t processes_of(const struct sim_clients *clients)
{
    if (clients->processes > 0)
        return clients->processes;
    return clients->count > 0 ? (uint32_t)clients->count : 1;
}

static bool open_callers(struct sim_play *play)
{
    const struct sim_world *world = play->world;
    for (uint32_t i = 0; i < world->groups; i++) {
        const struct sim_clients *clients = &world->clients[i];
        struct sim_caller *caller = &play->caller[i];
        caller->policy = &world->policy_of_clients[i]->pair.policy;
        caller->service = (uint8_t)clients->service;
        caller->safety = clients->safety;
        caller->processes = processes_of(clients);
        caller->owners = clients->hosts > 0 ? clients->hosts : caller->processes;
        caller->shards = clients->scope == SIM_SCOPE_SHARD ? world->service[clients->service].shards : 1;
        caller->at_once = !play->delays && world->loss_ppm == 0 && clients->pool == 0 &&
                          sim_service_is_instant(world, clients->service);
        if (!make_targets(world, caller, &world->policy_of_clients[i]->pair))
            return false;
    }
    for (uint32_t i = 0; i < world->services; i++) {
        const struct sim_service *service = &world->service[i];
        struct sim_caller *caller = &play->caller[SIM_GROUPS_MAX + i];
        if (service->calls < 0)
            continue;
        caller->policy = &world->policy_of_service[i]->pair.policy;
        caller->service = (uint8_t)service->calls;
        caller->safety = BIDE_SAFE;
        caller->processes = service->processes > 0 ? service->processes : 1;
        caller->owners = caller->processes;
        caller->shards = 1;
        caller->at_once =
            !play->delays && world->loss_ppm == 0 && sim_service_is_instant(world, (uint32_t)service->calls);
        if (!make_targets(world, caller, &world->policy_of_service[i]->pair))
            return false;
    }
    return true;
}

/* ---- arrivals of open groups ---- */

/* Calls begin before this. */
static int64_t until(const struct sim_world *world, const struct sim_clients *clients)
{
    return clients->until_ns < world->duration_ns ? clients->until_ns : world->duration_ns;
}

/* The rate at an instant, a second, between the corners of a trapezoid. */
static double ramp(const struct sim_clients *c, int64_t end_ns, double at_ns)
{
    double rate = (double)c->rate_micro, peak = (double)c->peak_rate_micro, last = (double)c->end_rate_micro;
    if (at_ns < (double)c->peak_from_ns)
        return rate + (peak - rate) * (at_ns - (double)c->from_ns) / (double)(c->peak_from_ns - c->from_ns);
    if (at_ns < (double)c->peak_until_ns)
        return peak;
    return peak + (last - peak) * (at_ns - (double)c->peak_until_ns) / (double)(end_ns - c->peak_until_ns);
}

static double rate_at(const struct sim_world *world, const struct sim_clients *c, double at_ns)
{
    if (c->arrival == SIM_RAMP)
        return ramp(c, until(world, c), at_ns);
    bool peak = c->arrival == SIM_SPIKE && at_ns >= (double)c->peak_from_ns && at_ns < (double)c->peak_until_ns;
    return (double)(peak ? c->peak_rate_micro : c->rate_micro);
}

static double most_rate(const struct sim_clients *c)
{
    uint64_t most = c->rate_micro;
    if (c->arrival == SIM_RAMP || c->arrival == SIM_SPIKE)
        most = c->peak_rate_micro > most ? c->peak_rate_micro : most;
    if (c->arrival == SIM_RAMP)
        most = c->end_rate_micro > most ? c->end_rate_micro : most;
    return (double)most;
}

/* A Poisson process of any rate: candidates at the highest one, of which as many are taken as the rate then says. */
static double poisson(struct sim_play *play, uint32_t g)
{
    const struct sim_clients *c = &play->world->clients[g];
    struct sim_group *group = &play->group[g];
    double most = most_rate(c), end_ns = (double)until(play->world, c);
    for (;;) {
        struct sim_name name = {play->how->seed, SIM_FOR_ARRIVAL, group->candidates++, g};
        group->at_ns += -sim_ln(sim_unit(name)) * (1e15 / most);
        if (group->at_ns >= end_ns || (c->arrival != SIM_RAMP && c->arrival != SIM_SPIKE))
            return group->at_ns;
        name.stream = SIM_FOR_THINNING;
        if (sim_unit(name) * most < rate_at(play->world, c, group->at_ns))
            return group->at_ns;
    }
}

/* Of the n-th, in whole numbers: with a fraction in between, the third of 3/s may come before the second is over. A
 * double holds them for a hundred days, and to 4 ns for a year. */
static double uniform(const struct sim_clients *c, uint64_t n)
{
    unsigned __int128 whole_ns = (unsigned __int128)n * (UINT64_C(1000000) * BIDE_S) / c->rate_micro;
    return (double)c->from_ns + (double)whole_ns;
}

/* When the next call of the group begins; BIDE_NEVER: there is none. */
static int64_t next_arrival(struct sim_play *play, uint32_t g)
{
    const struct sim_clients *c = &play->world->clients[g];
    uint64_t n = play->group[g].made / c->fanout, most = c->arrival == SIM_HERD ? c->count : c->calls;
    if (most > 0 && n >= most)
        return BIDE_NEVER;
    if (c->arrival == SIM_HERD)
        return c->from_ns < play->world->duration_ns ? c->from_ns : BIDE_NEVER;
    double at_ns = c->arrival == SIM_UNIFORM ? uniform(c, n) : poisson(play, g);
    return at_ns < (double)until(play->world, c) ? (int64_t)at_ns : BIDE_NEVER;
}

static void plan_arrival(struct sim_play *play, uint32_t g)
{
    int64_t at_ns = next_arrival(play, g);
    if (at_ns == BIDE_NEVER)
        return;
    play->arrivals++;
    sim_play_at(play, at_ns, SIM_ID_GROUP + g, 0);
}

/* ---- calls ---- */

/* One call for each branch of the fan-out, from the user or client `owner`. */
static void begin(struct sim_play *play, uint32_t g, uint64_t client, uint32_t owner)
{
    const struct sim_clients *c = &play->world->clients[g];
    struct sim_group *group = &play->group[g];
    play->result->users++;
    for (uint32_t i = 0; i < c->fanout; i++) {
        struct sim_name name = {play->how->seed, SIM_FOR_CALL, group->made++, g};
        struct sim_new_call call = {.caller = (uint8_t)g, .owner = owner, .seed = sim_bits(name), .process = client};
        sim_gauge_call(play);
        sim_call_begin(play, &call);
    }
}

static void begin_open(struct sim_play *play, uint32_t g)
{
    const struct sim_clients *c = &play->world->clients[g];
    uint64_t user = play->group[g].made / c->fanout, client = c->count > 0 ? user % c->count : user;
    uint32_t owner = SIM_NOBODY;
    if (c->fanout > 1) {
        owner = sim_pool_take(&play->users);
        if (owner == SIM_NOBODY) {
            play->no_memory = true;
            return;
        }
        *(struct sim_user *)sim_pool_at(&play->users, owner) =
            (struct sim_user){.began_ns = play->now_ns, .left = c->fanout};
    }
    begin(play, g, client, owner);
}

void sim_clients_arrive(struct sim_play *play, uint32_t group)
{
    play->arrivals--;
    begin_open(play, group);
    plan_arrival(play, group);
}

/* ---- closed loops ---- */

static int64_t think(struct sim_play *play, uint32_t client)
{
    const struct sim_closed_client *c = &play->client[client];
    struct sim_name name = {play->how->seed, SIM_FOR_THINK, client, c->calls};
    return sim_time_draw(&play->world->clients[c->group].think, name);
}

static void plan_turn(struct sim_play *play, uint32_t client, int64_t at_ns)
{
    uint32_t g = play->client[client].group;
    const struct sim_clients *c = &play->world->clients[g];
    if (at_ns >= until(play->world, c) || (c->calls > 0 && play->group[g].made >= c->calls))
        return;
    play->arrivals++;
    sim_play_at(play, at_ns, SIM_ID_CLIENT + client, 0);
}

void sim_client_turn(struct sim_play *play, uint32_t client)
{
    struct sim_closed_client *c = &play->client[client];
    const struct sim_clients *group = &play->world->clients[c->group];
    play->arrivals--;
    if (group->calls > 0 && play->group[c->group].made >= group->calls)
        return;
    c->calls++;
    begin(play, c->group, client - play->group[c->group].first_client, client);
}

/* After a call that began at such a time. */
static void next_turn(struct sim_play *play, uint32_t client, int64_t began_ns)
{
    struct sim_closed_client *c = &play->client[client];
    int64_t think_ns = think(play, client), at_ns = play->now_ns + think_ns;
    switch (play->world->clients[c->group].pace) {
    case SIM_PACE_THINK: break;
    case SIM_PACE_START: at_ns = began_ns + think_ns; break;
    case SIM_PACE_QUEUE:
        c->due_ns += think_ns;
        at_ns = c->due_ns;
        break;
    }
    plan_turn(play, client, at_ns > play->now_ns ? at_ns : play->now_ns);
}

static bool open_closed(struct sim_play *play, uint32_t g)
{
    const struct sim_clients *c = &play->world->clients[g];
    size_t count = play->clients + c->count;
    if (count > SIM_ID_GROUP - SIM_ID_CLIENT || os_memory_refused())
        return false;
    struct sim_closed_client *clients = realloc(play->client, count * sizeof *clients);
    if (clients == NULL)
        return false;
    play->client = clients;
    play->group[g].first_client = play->clients;
    for (uint64_t i = 0; i < c->count; i++) {
        uint32_t client = play->clients++;
        play->client[client] = (struct sim_closed_client){.group = (uint8_t)g};
        play->client[client].due_ns = c->from_ns + think(play, client);
        plan_turn(play, client, play->client[client].due_ns);
    }
    return true;
}

/* ---- ends ---- */

static void end_user(struct sim_play *play, uint32_t index, bool well)
{
    struct sim_user *user = sim_pool_at(&play->users, index);
    user->failed |= !well;
    if (--user->left > 0)
        return;
    sim_gauge_user(play, user->began_ns, !user->failed);
    sim_pool_give(&play->users, index);
}

void sim_clients_ended(struct sim_play *play, const struct sim_call *call, const struct bide_verdict *verdict)
{
    const struct sim_clients *c = &play->world->clients[call->caller];
    bool well = verdict->action == BIDE_DONE;
    sim_gauge_ended(play, verdict);
    if (c->fanout > 1)
        end_user(play, call->owner, well);
    else
        sim_gauge_user(play, call->began_ns, well);
    if (c->arrival == SIM_CLOSED)
        next_turn(play, call->owner, call->began_ns);
}

/* ---- the whole ---- */

static bool open_sockets(struct sim_play *play, uint32_t g)
{
    uint32_t processes = play->caller[g].processes;
    struct sim_group *group = &play->group[g];
    if (play->world->clients[g].pool == 0)
        return true;
    group->desk = os_memory(processes, sizeof *group->desk);
    if (group->desk == NULL)
        return false;
    for (uint32_t i = 0; i < processes; i++)
        group->desk[i] = (struct sim_desk){SIM_LINE(SIM_AT_HOME), SIM_LINE(SIM_AT_HOME)};
    return true;
}

bool sim_clients_open(struct sim_play *play)
{
    const struct sim_world *world = play->world;
    if (!open_callers(play))
        return false;
    for (uint32_t g = 0; g < world->groups; g++) {
        if (!open_sockets(play, g))
            return false;
        play->group[g].at_ns = (double)world->clients[g].from_ns;
        if (world->clients[g].arrival != SIM_CLOSED)
            plan_arrival(play, g);
        else if (!open_closed(play, g))
            return false;
    }
    return true;
}

void sim_clients_close(struct sim_play *play)
{
    for (size_t i = 0; i < sizeof play->caller / sizeof play->caller[0]; i++)
        free(play->caller[i].target);
    for (size_t g = 0; g < SIM_GROUPS_MAX; g++) {
        free(play->group[g].desk);
    }
    free(play->client);
}
