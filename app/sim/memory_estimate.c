/* memory_estimate.c - estimates the memory of a run before it begins.
 *
 * Known numbers are counted in full: the callers of a herd, closed clients, targets, points of the series. For open
 * groups Little's law gives the number of calls in progress: their rate times the time a call may take. That time is
 * the policy's limit, or else a generous multiple of service and network time. Added to this is the backlog: of a
 * service that gets more than it can serve, for as long as it does; and of outages that hold, swallow or slow requests.
 * All retries are assumed to happen.
 *
 * Known weakness: without deadline and timeout, calls to a service near its capacity wait longer than the mean
 * suggests. Their number is small compared with that of an overload. */
#include "state.h"

#define ATTEMPT_FACTOR 10.0   /* an attempt without a timeout takes at most this many means */
#define EVENT_BYTES    20.0   /* 16 and the overhead of the queue */
#define MEMBER_BYTES   1024.0 /* of a fleet member: see fleet.c */
#define FIXED_BYTES    16e6   /* first chunks of the slabs, and the histogram of the result */

struct load {
    double rate;        /* calls a second, upper bound */
    double total;       /* calls in the whole run, upper bound */
    double in_progress; /* calls in progress at the same time */
    double seconds;     /* duration of a call */
    double attempts;    /* attempts of a call */
    double attempt_s;   /* duration of an attempt */
    bool has_limit;     /* attempts have a timeout: their requests outlive them */
};

static double min_double(double a, double b)
{
    return a < b ? a : b;
}

static double ns_to_seconds(int64_t ns)
{
    return ns == BIDE_NEVER ? 1e18 : (double)ns / 1e9;
}

/* ---- attempts ---- */

/* Returns the mean time of an attempt: network both ways, the service and its downstream services. */
static double attempt_mean_s(const struct sim_world *world, uint32_t s)
{
    double mean = 0;
    for (uint32_t depth = 0; depth < world->services; depth++) {
        const struct sim_service *service = &world->service[s];
        mean += (2 * ns_to_seconds(sim_distribution_mean(&world->delay)) +
                 ns_to_seconds(sim_distribution_mean(&service->time))) *
                service->fan;
        if (service->calls < 0)
            break;
        s = (uint32_t)service->calls;
    }
    return mean;
}

static struct load policy_load(const struct sim_world *world, uint32_t s, const struct bide_policy *policy)
{
    struct load load = {.attempts = policy->attempts_max};
    load.has_limit = policy->attempt_timeout_ns != BIDE_NEVER || policy->call_timeout_ns != BIDE_NEVER;
    load.attempt_s = min_double(ns_to_seconds(policy->attempt_timeout_ns), ATTEMPT_FACTOR * attempt_mean_s(world, s));
    double waits_s =
        min_double(ns_to_seconds(policy->waits_max_ns), (load.attempts - 1) * ns_to_seconds(policy->cap_ns));
    load.seconds = min_double(ns_to_seconds(policy->call_timeout_ns), load.attempts * load.attempt_s + waits_s);
    return load;
}

/* ---- clients ---- */

static double group_rate_max(const struct sim_clients *c)
{
    double rate = (double)c->rate_micro;
    if (c->arrival == SIM_RAMP || c->arrival == SIM_SPIKE)
        rate = (double)c->peak_rate_micro > rate ? (double)c->peak_rate_micro : rate;
    if (c->arrival == SIM_RAMP)
        rate = (double)c->end_rate_micro > rate ? (double)c->end_rate_micro : rate;
    return rate / 1e6 * c->fanout;
}

static struct load group_load(const struct sim_world *world, uint32_t g)
{
    const struct sim_clients *c = &world->clients[g];
    int64_t end_ns = c->until_ns < world->duration_ns ? c->until_ns : world->duration_ns;
    struct load load = policy_load(world, c->service, &world->policy_of_clients[g]->pair.policy);
    if (c->arrival == SIM_HERD || c->arrival == SIM_CLOSED) {
        load.in_progress = load.total = (double)c->count * c->fanout;
        load.rate =
            c->arrival == SIM_HERD ? 0 : load.in_progress / (ns_to_seconds(sim_distribution_mean(&c->think)) + 1e-9);
        load.rate = min_double(load.rate, load.in_progress / (load.attempt_s + 1e-9));
        return load;
    }
    load.rate = group_rate_max(c);
    load.total = end_ns > c->from_ns ? load.rate * ns_to_seconds(end_ns - c->from_ns) : 0;
    if (c->calls > 0)
        load.total = min_double(load.total, (double)c->calls * c->fanout);
    load.in_progress = min_double(load.total, load.rate * load.seconds + 16.0 * c->fanout);
    return load;
}

/* ---- backlog ---- */

/* Returns the requests that pile up: above the capacity of the service, and during outages of kind silence, hold or
 * slow. */
static double service_backlog(const struct sim_world *world, uint32_t s, double rate)
{
    const struct sim_service *service = &world->service[s];
    double capacity = 1e18, max = 1e18, more = 0, mean = ns_to_seconds(sim_distribution_mean(&service->time));
    for (uint32_t i = 0; i < world->outages; i++)
        if (world->outage[i].service == s && world->outage[i].kind >= SIM_OUTAGE_SILENCE)
            more += rate * min_double(ns_to_seconds(world->outage[i].until_ns), ns_to_seconds(world->duration_ns));
    if (service->kind == SIM_QUEUEING && mean > 0)
        capacity = service->servers / mean;
    if (service->kind == SIM_QUEUEING && service->queue_max != UINT32_MAX)
        max = service->queue_max;
    if (rate > capacity)
        more += min_double(max, (rate - capacity) * ns_to_seconds(world->duration_ns));
    return more;
}

/* Returns the memory of the requests of these calls at a service and its downstream services, and of the downstream
 * calls. */
static double downstream_bytes(const struct sim_world *world, uint32_t s, const struct load *load, double request_bytes)
{
    double rate = load->rate * load->attempts, bytes = 0;
    double pending = load->in_progress * (load->has_limit ? min_double(load->attempts, 16) : 1);
    for (uint32_t depth = 0; depth < world->services; depth++) {
        const struct sim_service *service = &world->service[s];
        pending += min_double(service_backlog(world, s, rate), load->total * load->attempts);
        bytes += pending * request_bytes;
        if (service->calls < 0)
            break;
        const struct bide_policy *policy = &world->policy_of_service[s]->pair.policy;
        pending = service->kind == SIM_QUEUEING ? min_double(pending, service->servers) : pending;
        bytes += pending * (sizeof(struct sim_call) + EVENT_BYTES);
        rate *= (double)policy->attempts_max * service->fan;
        s = (uint32_t)service->calls;
    }
    return bytes;
}

/* ---- world ---- */

static double target_bytes(const struct sim_world *world, const struct conf_policy *policy, uint32_t s, double targets)
{
    return sim_has_gates(&policy->pair, &world->service[s]) ? targets * sizeof(struct bide_target) : 0;
}

static double group_bytes(const struct sim_world *world, uint32_t g)
{
    const struct sim_clients *c = &world->clients[g];
    const struct conf_policy *policy = world->policy_of_clients[g];
    struct load load = group_load(world, g);
    double processes = c->processes > 0 ? c->processes : c->count > 0 ? (double)c->count : 1;
    double shards = c->scope == SIM_SCOPE_SHARD ? world->service[c->service].shards : 1;
    double owners = c->hosts > 0 ? c->hosts : processes;
    double bytes = target_bytes(world, policy, c->service, owners * shards);
    bytes += c->fleet ? owners * shards * (MEMBER_BYTES + EVENT_BYTES) : 0;
    bytes += c->pool > 0 ? processes * sizeof(struct sim_conn_pool) : 0;
    bool is_instant = sim_service_is_instant(world, c->service) && world->delay.shape == SIM_FIXED &&
                      world->delay.a_ns == 0 && world->loss_ppm == 0 && c->pool == 0;
    load.in_progress +=
        min_double(load.total, load.has_limit ? 0 : service_backlog(world, c->service, load.rate * load.attempts));
    bytes += load.in_progress * (sizeof(struct sim_call) + EVENT_BYTES);
    bytes += c->fanout > 1 ? load.in_progress / c->fanout * sizeof(struct sim_user) : 0;
    bytes += c->arrival == SIM_CLOSED ? (double)c->count * (sizeof(struct sim_closed_client) + EVENT_BYTES) : 0;
    if (!is_instant)
        bytes +=
            downstream_bytes(world, c->service, &load,
                             (1.0 + policy->pair.policy.hedges_max) * (sizeof(struct sim_request) + 2 * EVENT_BYTES));
    return bytes;
}

uint64_t sim_world_bytes(const struct sim_world *world)
{
    double span_s = ns_to_seconds(world->duration_ns) * (world->drain ? 2 : 1); /* allow as much again for the drain */
    double bytes = FIXED_BYTES + sizeof(struct sim_result);
    bytes += (span_s / ns_to_seconds(world->bin_ns) + 2) * sizeof(struct sim_point);
    bytes += (span_s + 2) * sizeof(struct sim_second);
    for (uint32_t i = 0; i < world->groups; i++)
        bytes += group_bytes(world, i);
    for (uint32_t i = 0; i < world->services; i++)
        if (world->service[i].calls >= 0)
            bytes += target_bytes(world, world->policy_of_service[i], (uint32_t)world->service[i].calls,
                                  world->service[i].processes);
    return bytes < 1e19 ? (uint64_t)bytes : UINT64_MAX;
}
