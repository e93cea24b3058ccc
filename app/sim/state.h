/* state.h - the state of one run, and what its parts do for each other.
 *
 *     run.c      the loop: takes the next event, gives it to its owner
 *     client.c   when calls begin; users, closed loops, processes and their targets
 *     call.c     a call of the engine: obeys its verdicts, sends its attempts, hears of their ends
 *     service.c  what a service does with a request: queue, work, outage, hint, calls of its own
 *     fleet.c    budgets leased from one bucket: asks and answers
 *     gauge.c    counts it all
 *
 * Owners of events, by the range of the event's id; its seq says what happens, and to which attempt. An attempt that
 * is answered in the instant it is made (no network delay, no service time) needs no event and no record of its own:
 * a storm of 25 million callers has one call and one event for each. */
#ifndef SIM_STATE_H
#define SIM_STATE_H

#include <bide/call.h>

#include "queue.h"
#include "result.h"
#include "run.h"

#define SIM_ID_REQUEST UINT32_C(0x40000000) /* below: calls */
#define SIM_ID_CLIENT  UINT32_C(0x80000000) /* of a closed group */
#define SIM_ID_GROUP   UINT32_C(0xc0000000)
#define SIM_ID_FLEET   UINT32_C(0xd0000000) /* instances */
#define SIM_ID_END     UINT32_C(0xe0000000)

#define SIM_NONE UINT32_MAX

/* What happens to a request. */
enum sim_step {
    SIM_STEP_ARRIVE = 0,
    SIM_STEP_WRITE, /* a row: its second arrival */
    SIM_STEP_SERVED,
    SIM_STEP_RESPONSE, /* the answer has come */
    SIM_STEP_TIMEOUT,  /* the caller waits no longer */
};

/* A call in progress. Slots are used again: whether an answer is still for this call, its seed tells. */
struct sim_call {
    struct bide_call call;
    int64_t began_ns;
    uint32_t owner;        /* a user (fan-out), a client (closed), or the request that a deeper call is made for */
    uint32_t process : 28; /* of its caller */
    uint32_t caller : 4;   /* a group; from SIM_GROUPS_MAX on, a service */
};

/* An attempt on its way, waiting or being served. Lives until nothing will happen to it any more. */
struct sim_request {
    uint64_t seed; /* of its call */
    int64_t deadline_ns;
    uint32_t slot; /* its call */
    uint32_t attempt;
    struct sim_links {
        uint32_t older, newer;
    } links[2];                /* in a line of its service, and in one of its process: enum sim_side */
    uint32_t row_version;      /* a row: what was read */
    uint32_t process;          /* whose socket it has, or waits for */
    uint32_t downstream_calls; /* calls it has made */
    uint32_t layer_attempt;    /* the attempt that it carries on to the next layer: the largest on the way here */
    uint8_t service;
    uint8_t caller;
    uint8_t refs;        /* events and places that still hold it */
    bool ended;          /* the caller has heard of its end */
    bool waits_for_conn; /* it waits for a socket */
    bool has_conn;
    struct bide_outcome outcome;
};

/* Memory for many things of one size, by index; what is given back is used again first. */
struct sim_slab {
    size_t size;
    size_t link_offset;  /* where in each the list of free ones goes on */
    uint32_t count_max;  /* a multiple of a chunk */
    uint32_t free;       /* the first of a list through what was given back; SIM_NOBODY: none */
    uint32_t high_water; /* indices handed out at some time */
    uint32_t live;
    uint32_t chunks;
    unsigned char **chunk;
};
#define SIM_SLAB_CHUNK_BITS 16u

static inline void *sim_slab_at(const struct sim_slab *slab, uint32_t i)
{
    return slab->chunk[i >> SIM_SLAB_CHUNK_BITS] + (i & ((1u << SIM_SLAB_CHUNK_BITS) - 1)) * slab->size;
}
uint32_t sim_slab_alloc(struct sim_slab *slab); /* SIM_NOBODY: no memory */
void sim_slab_release(struct sim_slab *slab, uint32_t i);
void sim_slab_free(struct sim_slab *slab);

/* Where a request stands in line: it may be in one of each. */
enum sim_list_kind { SIM_LIST_AT_SERVICE = 0, SIM_LIST_AT_CLIENT };

/* Requests one behind the other. */
struct sim_request_list {
    uint32_t oldest, newest;
    uint32_t length;
    enum sim_list_kind kind;
};
#define SIM_REQUEST_LIST(where)                                                                                        \
    (struct sim_request_list)                                                                                          \
    {                                                                                                                  \
        .oldest = SIM_NONE, .newest = SIM_NONE, .kind = (where)                                                        \
    }

/* Who makes calls: a group of clients, or a service towards the next one. */
struct sim_caller {
    const struct bide_policy *policy;
    struct bide_target *target; /* one per process (and shard); NULL: there is no gate that could refuse */
    uint32_t targets, processes, shards;
    uint32_t target_owners; /* of targets: processes, or hosts */
    enum bide_safety safety;
    uint8_t service;  /* whom it calls */
    bool is_instant;  /* its attempts are answered in the instant they are made */
    bool has_breaker; /* there is one to be looked at */
};

struct sim_group {
    uint64_t calls_begun;    /* calls so far */
    uint64_t arrivals_drawn; /* arrivals drawn so far */
    double last_arrival_ns;  /* of the last one, with its fraction */
    uint32_t first_client;
    struct sim_conn_pool *conn_pool; /* by process; NULL: there are sockets for all */
};

/* Where a process with a limited number of sockets keeps its attempts. */
struct sim_conn_pool {
    struct sim_request_list waiting; /* for a socket */
    struct sim_request_list in_use;  /* one each */
};

struct sim_closed_client {
    int64_t due_ns; /* pace queue: its last arrival */
    uint32_t calls; /* begun */
    uint8_t group;
};

struct sim_user {
    int64_t began_ns;
    uint32_t calls_left; /* calls not yet over */
    bool failed;
};

struct sim_service_state { /* a service in motion */
    struct sim_request_list queue;
    uint32_t busy_servers;     /* servers */
    uint32_t in_system;        /* waiting or being served */
    uint32_t row_version;      /* a row's */
    uint64_t downstream_calls; /* calls made so far */
};

struct sim_peak_bin {
    int64_t end_ns;
    struct {
        uint64_t arrivals, retries, served, probes;
    } count;
};

/* A second of the world, for recovery and steady state. */
struct sim_second {
    uint64_t calls, succeeded, arrivals;
};

struct sim_stats {
    int64_t bin_end_ns; /* when the next bucket of any kind ends */
    struct sim_peak_bin bin[SIM_BIN_WIDTHS];
    struct sim_point *point; /* the present one, in the result */
    int64_t point_end_ns;
    size_t point_room;
    int64_t last_call_ns; /* when the last call of a client began */
    struct sim_second *second;
    size_t seconds, second_room;
};

/* Accounts of leased budgets: fleet.c. */
struct sim_fleet_state {
    struct lease_bucket *bucket;
    struct sim_instance *instance;
    uint32_t instances;
    uint32_t events; /* in the queue */
    int64_t second;  /* the present one, and the exchanges in it */
    uint64_t second_exchanges;
};

struct sim_state {
    const struct sim_world *world;
    const struct sim_run_options *options;
    struct sim_result *result;
    struct sim_queue *queue;
    int64_t now_ns;
    bool no_memory;
    bool delays; /* the network has any */
    struct sim_slab calls, requests, users;
    struct sim_caller caller[SIM_GROUPS_MAX + SIM_SERVICES_MAX];
    struct sim_group group[SIM_GROUPS_MAX];
    struct sim_service_state service[SIM_SERVICES_MAX];
    struct sim_closed_client *client;
    uint32_t clients;
    uint32_t arrivals; /* of groups and closed clients, in the queue */
    struct sim_fleet_state fleet;
    struct sim_stats stats;
};

/* ---- run.c ---- */

void sim_schedule(struct sim_state *state, int64_t at_ns, uint32_t id, uint32_t seq);

/* ---- client.c ---- */

/* Could any gate of this policy refuse or delay a call to this service? If none can, there is no need of a target, and
 * a storm of millions does not take 2 KiB for each caller. Quiet comes from hints; latency serves hedging by
 * quantile. */
bool sim_has_gates(const struct conf_pair *pair, const struct sim_service *service);

bool sim_clients_open(struct sim_state *state);
void sim_clients_close(struct sim_state *state);
void sim_clients_on_arrival(struct sim_state *state, uint32_t group);
void sim_client_on_turn(struct sim_state *state, uint32_t client);

/* A call of a group of clients is over. */
void sim_clients_call_ended(struct sim_state *state, const struct sim_call *call, const struct bide_verdict *verdict);

/* ---- call.c ---- */

struct sim_new_call {
    uint8_t caller;
    uint32_t owner;
    uint64_t seed;
    uint64_t process;         /* any number: taken modulo the caller's processes */
    int64_t deadline_ns;      /* 0: none */
    uint32_t inbound_attempt; /* 0: nobody calls the caller */
};
void sim_call_begin(struct sim_state *state, const struct sim_new_call *new_call);
bool sim_call_is_due(const struct sim_state *state, uint32_t slot, int64_t at_ns);
void sim_call_wake(struct sim_state *state, uint32_t slot);
void sim_request_on_response(struct sim_state *state, uint32_t request);
void sim_request_on_timeout(struct sim_state *state, uint32_t request);
void sim_request_release(struct sim_state *state, uint32_t request);

static inline struct sim_call *sim_call_at(const struct sim_state *state, uint32_t slot)
{
    return sim_slab_at(&state->calls, slot);
}

static inline struct sim_request *sim_request_at(const struct sim_state *state, uint32_t request)
{
    return sim_slab_at(&state->requests, request);
}

/* Does anybody still wait for it? */
static inline bool sim_request_is_awaited(const struct sim_state *state, const struct sim_request *request)
{
    return !request->ended && sim_call_at(state, request->slot)->call.seed == request->seed;
}

/* Would anything change if its caller waited no longer? */
static inline bool sim_request_timeout_is_due(const struct sim_state *state, const struct sim_request *request)
{
    return request->waits_for_conn || request->has_conn || sim_request_is_awaited(state, request);
}

/* ---- service.c ---- */

/* The outcome of an attempt at a service that answers at once. */
struct bide_outcome sim_service_instant_outcome(struct sim_state *state, const struct sim_call *call, uint32_t attempt);
void sim_service_arrive(struct sim_state *state, uint32_t request, enum sim_step step); /* ARRIVE, or WRITE */
void sim_service_served(struct sim_state *state, uint32_t request);

/* A call that a request of this service made is over. */
void sim_service_call_ended(struct sim_state *state, uint32_t request, bool well);

/* Which shard of it a call with this seed belongs to. */
uint32_t sim_service_shard(const struct sim_world *world, uint32_t service, uint64_t seed);

/* True if no time passes and nothing waits at this service, whatever comes. */
bool sim_service_is_instant(const struct sim_world *world, uint32_t service);

void sim_request_list_push(struct sim_state *state, struct sim_request_list *list, uint32_t request);
void sim_request_list_remove(struct sim_state *state, struct sim_request_list *list, uint32_t request);

/* ---- fleet.c ---- */

/* Once there are targets: those that lease begin to. */
bool sim_fleet_open(struct sim_state *state);

/* Are there no calls left and none to come, or nothing in the queue that could end those that are left? (The event that
 * is asked about is no longer in it, but counted.) */
static inline bool sim_fleet_is_over(const struct sim_state *state)
{
    return (state->calls.live == 0 && state->arrivals == 0) || sim_queue_count(state->queue) < state->fleet.events;
}
void sim_fleet_event(struct sim_state *state, uint32_t id, uint32_t seq);
void sim_fleet_finish(struct sim_state *state);
void sim_fleet_close(struct sim_state *state);

/* ---- gauge.c ---- */

bool sim_stats_open(struct sim_state *state);
void sim_stats_advance(struct sim_state *state);

/* The last buckets, recovery, what the targets know. */
void sim_stats_finish(struct sim_state *state);
void sim_stats_close(struct sim_state *state);

/* At the leaf. */
void sim_stats_count_arrival(struct sim_state *state, uint32_t attempt);
void sim_stats_count_served(struct sim_state *state);
void sim_stats_count_call(struct sim_state *state);
void sim_stats_count_attempt(struct sim_state *state, const struct bide_verdict *verdict);
void sim_stats_count_probe(struct sim_state *state);
void sim_stats_count_call_end(struct sim_state *state, const struct bide_verdict *verdict);
void sim_stats_count_user(struct sim_state *state, int64_t began_ns, bool well);

#endif
