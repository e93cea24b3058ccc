/* state.h - the state of a simulation run, and the functions that its parts call in each other.
 *
 *     run.c      event loop: pops the next event and passes it to its owner
 *     client.c   when calls begin: open and closed groups, users with fan-out, processes and their targets
 *     call.c     calls of the engine: executes their verdicts, sends attempts, reports outcomes
 *     service.c  how a service handles a request: queue, servers, outage, Retry-After hint, downstream calls
 *     fleet.c    budgets leased from a common bucket: requests and replies of lib/fleet/protocol
 *     stats.c    counters, peaks, the series over time, recovery
 *     slab.c     memory for calls, requests and users, by index
 *
 * The range of an event's id determines its owner (SIM_ID_ constants below); its seq is defined by the owner. Fast
 * path: an attempt that is answered in the instant it is made (no network delay, no service time) needs no event and no
 * struct sim_request, so each caller of a herd of 25 million takes only a call and an event.
 *
 * Which file writes which field:
 *
 *     sim_call, sim_conn_pool             call.c (client.c allocates the pools)
 *     sim_request                         call.c: creation, ended, connection, refs; service.c: outcome, row_version,
 *                                         downstream_calls, links
 *     sim_caller, sim_group, sim_user,    client.c
 *     sim_closed_client, arrivals
 *     sim_service_state                   service.c (run.c initialises the queues)
 *     sim_stats                           stats.c
 *     sim_fleet_state                     fleet.c; run.c counts its discarded events
 *     now_ns                              run.c
 *     no_memory                           any of them; the loop stops after the event
 *     result                              stats.c; lost, refused, failed, dropped, wasted service.c; lost, reopenings
 *                                         call.c; users client.c; fleet_ fields fleet.c; seed, events run.c */
#ifndef SIM_STATE_H
#define SIM_STATE_H

#include <bide/call.h>

#include "queue.h"
#include "result.h"
#include "run.h"

#define SIM_ID_REQUEST UINT32_C(0x40000000) /* ids below this are calls */
#define SIM_ID_CLIENT  UINT32_C(0x80000000) /* clients of closed groups */
#define SIM_ID_GROUP   UINT32_C(0xc0000000)
#define SIM_ID_FLEET   UINT32_C(0xd0000000) /* fleet members */
#define SIM_ID_END     UINT32_C(0xe0000000)

#define SIM_NONE UINT32_MAX

/* Seq of a request's event. */
enum sim_step {
    SIM_STEP_ARRIVE = 0,
    SIM_STEP_WRITE, /* kind = row: the write arrives; ARRIVE was the read */
    SIM_STEP_SERVED,
    SIM_STEP_RESPONSE, /* the response reaches the caller */
    SIM_STEP_TIMEOUT,  /* the attempt's timeout at the caller */
};

/* A call in progress. Slots are reused: a response is for this call only if the seeds match. */
struct sim_call {
    struct bide_call call;
    int64_t began_ns;
    uint32_t owner;        /* index of its user (fan-out) or client (closed), or of the request that made this
                            * downstream call */
    uint32_t process : 28; /* of the caller, 0 to processes - 1 */
    uint32_t caller : 4;   /* index of the group; from SIM_GROUPS_MAX on, of the service */
};

/* An attempt that travels, waits or is being served. Freed when the last reference (refs) is released. */
struct sim_request {
    uint64_t seed; /* of the call */
    int64_t deadline_ns;
    uint32_t slot; /* index of the call */
    uint32_t attempt;
    struct sim_links {
        uint32_t older, newer;
    } links[2];                /* neighbours in a list of its service and in a list of its process, by enum
                                * sim_list_kind */
    uint32_t row_version;      /* kind = row: the version that was read */
    uint32_t process;          /* of the client: selects the connection pool */
    uint32_t downstream_calls; /* downstream calls made for it so far */
    uint32_t layer_attempt;    /* attempt number sent to the next layer: the largest of all layers so far */
    uint8_t service;
    uint8_t caller;
    uint8_t refs;        /* reference count: pending events, queue and connection pool */
    bool ended;          /* the outcome has been reported to the call */
    bool waits_for_conn; /* it is in the waiting list of its connection pool */
    bool has_conn;
    struct bide_outcome outcome;
};

/* A slab allocator: objects of one size, addressed by index. Released objects are reused first. Chunks never move. */
struct sim_slab {
    size_t size;
    size_t link_offset;  /* offset in a free object of the index of the next free object */
    uint32_t count_max;  /* a multiple of a chunk's objects */
    uint32_t free;       /* head of the free list; SIM_NONE: empty */
    uint32_t high_water; /* indices below this were allocated at some time */
    uint32_t live;
    uint32_t chunks;
    unsigned char **chunk;
};
#define SIM_SLAB_CHUNK_BITS 16u

static inline void *sim_slab_at(const struct sim_slab *slab, uint32_t i)
{
    return slab->chunk[i >> SIM_SLAB_CHUNK_BITS] + (i & ((1u << SIM_SLAB_CHUNK_BITS) - 1)) * slab->size;
}
uint32_t sim_slab_alloc(struct sim_slab *slab); /* SIM_NONE: no memory */
void sim_slab_release(struct sim_slab *slab, uint32_t i);
void sim_slab_free(struct sim_slab *slab);

/* A request is in at most one list of each kind. */
enum sim_list_kind { SIM_LIST_AT_SERVICE = 0, SIM_LIST_AT_CLIENT };

/* A doubly linked list of requests, oldest first. */
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

/* A caller: a group of clients, or a service that calls another service. */
struct sim_caller {
    const struct bide_policy *policy;
    struct bide_target *target; /* one per owner and shard; NULL: no gate could refuse or delay a call */
    uint32_t targets, processes, shards;
    uint32_t target_owners; /* number of processes, or of hosts if their processes share targets */
    enum bide_safety safety;
    uint8_t service;  /* index of the called service */
    bool is_instant;  /* attempts are answered in the instant they are made */
    bool has_breaker; /* its targets have a circuit breaker */
};

struct sim_group {
    uint64_t calls_begun;    /* by the whole group */
    uint64_t arrivals_drawn; /* candidates of the Poisson process, accepted or not */
    double last_arrival_ns;  /* with its fraction of a nanosecond */
    uint32_t first_client;
    struct sim_conn_pool *conn_pool; /* by process; NULL: no limit on connections */
};

/* The connection pool of a process: `pool` attempts may hold a connection, the others wait. */
struct sim_conn_pool {
    struct sim_request_list waiting; /* attempts without a connection, oldest first */
    struct sim_request_list in_use;  /* attempts that hold a connection */
};

struct sim_closed_client {
    int64_t due_ns; /* pace = queue: its latest Poisson arrival */
    uint32_t calls; /* begun so far */
    uint8_t group;
};

struct sim_user {
    int64_t began_ns;
    uint32_t calls_left; /* calls of the fan-out that have not ended */
    bool failed;
};

struct sim_service_state { /* the run-time state of a service */
    struct sim_request_list queue;
    uint32_t busy_servers;     /* requests being served */
    uint32_t in_system;        /* requests waiting or being served */
    uint32_t row_version;      /* kind = row: successful writes */
    uint64_t downstream_calls; /* made by all its requests: spreads them over its processes */
};

struct sim_peak_bin {
    int64_t end_ns;
    struct {
        uint64_t arrivals, retries, served, probes;
    } count;
};

/* Counters of a simulated second, for recovery and steady state. */
struct sim_second {
    uint64_t calls, succeeded, arrivals;
};

struct sim_stats {
    int64_t bin_end_ns; /* the earliest end of a current bin: no roll-over before */
    struct sim_peak_bin bin[SIM_BIN_WIDTHS];
    struct sim_point *point; /* the current point of the series; in the result */
    int64_t point_end_ns;
    size_t point_room;
    int64_t last_call_ns; /* when the latest call of a client began */
    struct sim_second *second;
    size_t seconds, second_room;
};

/* Leased budgets: see fleet.c. */
struct sim_fleet_state {
    struct lease_bucket *bucket;
    struct sim_fleet_member *member;
    uint32_t members;
    uint32_t events;           /* pending in the queue */
    int64_t second;            /* of the latest exchange */
    uint64_t second_exchanges; /* in that second */
};

struct sim_state {
    const struct sim_world *world;
    const struct sim_run_options *options;
    struct sim_result *result;
    struct sim_queue *queue;
    int64_t now_ns;
    bool no_memory;
    bool delays; /* network.delay is not 0 */
    struct sim_slab calls, requests, users;
    struct sim_caller caller[SIM_GROUPS_MAX + SIM_SERVICES_MAX];
    struct sim_group group[SIM_GROUPS_MAX];
    struct sim_service_state service[SIM_SERVICES_MAX];
    struct sim_closed_client *client;
    uint32_t clients;
    uint32_t arrivals; /* pending events of groups and closed clients */
    struct sim_fleet_state fleet;
    struct sim_stats stats;
};

/* ---- run.c ---- */

void sim_schedule(struct sim_state *state, int64_t at_ns, uint32_t id, uint32_t seq);

/* ---- client.c ---- */

/* Returns true if a gate of this policy could refuse or delay a call to this service. Without gates a caller needs no
 * target, which saves 2 KiB for each caller of a herd. Hold-off needs hints; latency is recorded for hedging by
 * quantile. */
bool sim_has_gates(const struct conf_pair *pair, const struct sim_service *service);

bool sim_clients_open(struct sim_state *state);
void sim_clients_close(struct sim_state *state);
void sim_clients_on_arrival(struct sim_state *state, uint32_t group);
void sim_client_on_turn(struct sim_state *state, uint32_t client);

/* Handles the end of a client's call: counts it, ends its user, schedules a closed client's next call. */
void sim_clients_call_ended(struct sim_state *state, const struct sim_call *call, const struct bide_verdict *verdict);

/* ---- call.c ---- */

struct sim_new_call {
    uint8_t caller;
    uint32_t owner;
    uint64_t seed;
    uint64_t process;         /* taken modulo the caller's processes */
    int64_t deadline_ns;      /* 0: none */
    uint32_t inbound_attempt; /* 0: the caller is a client */
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

/* Returns true if the call still waits for this attempt. */
static inline bool sim_request_is_awaited(const struct sim_state *state, const struct sim_request *request)
{
    return !request->ended && sim_call_at(state, request->slot)->call.seed == request->seed;
}

/* Returns true if the timeout of this attempt would change anything. */
static inline bool sim_request_timeout_is_due(const struct sim_state *state, const struct sim_request *request)
{
    return request->waits_for_conn || request->has_conn || sim_request_is_awaited(state, request);
}

/* ---- service.c ---- */

/* Fast path: returns the outcome of an attempt at a service that answers in the same instant. */
struct bide_outcome sim_service_instant_outcome(struct sim_state *state, const struct sim_call *call, uint32_t attempt);
void sim_service_arrive(struct sim_state *state, uint32_t request, enum sim_step step); /* step: ARRIVE or WRITE */
void sim_service_served(struct sim_state *state, uint32_t request);

/* Handles the end of a downstream call that this request made. */
void sim_service_call_ended(struct sim_state *state, uint32_t request, bool succeeded);

/* Returns the shard of the service that a call with this seed belongs to. */
uint32_t sim_service_shard(const struct sim_world *world, uint32_t service, uint64_t seed);

/* Returns true if this service answers every request in the instant of its arrival. */
bool sim_service_is_instant(const struct sim_world *world, uint32_t service);

void sim_request_list_push(struct sim_state *state, struct sim_request_list *list, uint32_t request);
void sim_request_list_remove(struct sim_state *state, struct sim_request_list *list, uint32_t request);

/* ---- fleet.c ---- */

/* Registers the targets that lease. Call it after sim_clients_open. Returns false without memory. */
bool sim_fleet_open(struct sim_state *state);

/* Returns true if fleet events cannot matter any more: no call is left and none will come, or only fleet events are
 * pending, which cannot end the calls that are left. (The event in question has been popped, but still counts in
 * fleet.events.) */
static inline bool sim_fleet_is_over(const struct sim_state *state)
{
    return (state->calls.live == 0 && state->arrivals == 0) || sim_queue_count(state->queue) < state->fleet.events;
}
void sim_fleet_event(struct sim_state *state, uint32_t id, uint32_t seq);
void sim_fleet_finish(struct sim_state *state);
void sim_fleet_close(struct sim_state *state);

/* ---- stats.c ---- */

bool sim_stats_open(struct sim_state *state);
void sim_stats_advance(struct sim_state *state);

/* Closes the last bins, computes recovery and steady state, reads the counters of the targets. */
void sim_stats_finish(struct sim_state *state);
void sim_stats_close(struct sim_state *state);

/* The first two count attempts at the leaf: the last service of a chain. */
void sim_stats_count_arrival(struct sim_state *state, uint32_t attempt);
void sim_stats_count_served(struct sim_state *state);
void sim_stats_count_call(struct sim_state *state);
void sim_stats_count_attempt(struct sim_state *state, const struct bide_verdict *verdict);
void sim_stats_count_probe(struct sim_state *state);
void sim_stats_count_call_end(struct sim_state *state, const struct bide_verdict *verdict);
void sim_stats_count_user(struct sim_state *state, int64_t began_ns, bool succeeded);

#endif
