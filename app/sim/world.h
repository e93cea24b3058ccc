/* world.h - a world to be simulated: clients with policies, services with capacity, and the network between them.
 *
 *     clients ──policy──► service ──policy──► service ...      each arrow: calls of the engine over the network
 *
 * A plain value. Scenario files (scenario.h) describe it. The key of a field is its name without the unit, after the
 * name of its section: `rate = 280/s` in [clients] is clients.rate for --set; in [clients background], one of several
 * groups, it is clients.background.rate. */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include <bide/request.h>

#include "conf/conf.h"

#include "random.h"

#define SIM_NAME_MAX     64u
#define SIM_POLICY_MAX   256u /* FILE#NAME */
#define SIM_GROUPS_MAX   4u   /* [clients ...] */
#define SIM_SERVICES_MAX 8u   /* [service ...] */
#define SIM_OUTAGES_MAX  8u   /* [outage ...], of all services together */
#define SIM_BIN_WIDTHS   4u   /* bins in which peaks are counted: 1 ms, 10 ms, 50 ms, 1 s */

/* ---- clients ---- */

/* When calls begin. Rates are of the whole group. All but closed are open loops: the start of a call does not depend on
 * other calls. */
enum sim_arrival {
    SIM_HERD = 0, /* a thundering herd: count callers, a call each, all at `from` */
    SIM_POISSON,  /* a Poisson process of `rate` */
    SIM_UNIFORM,  /* equally spaced: the n-th (from 0) at from + n / rate */
    SIM_RAMP,     /* Poisson; linear from rate at `from` to peak_rate at peak_from, constant until peak_until, linear to
                   * end_rate at `until` */
    SIM_SPIKE,    /* Poisson; peak_rate from peak_from until peak_until, else rate */
    SIM_CLOSED,   /* each of count clients has one call at a time and thinks between two calls */
};

/* When a closed client's next call begins. */
enum sim_pace {
    SIM_PACE_THINK = 0, /* `think` after the last call ended */
    SIM_PACE_START,     /* `think` after the last call began, or at its end if that is later */
    SIM_PACE_QUEUE,     /* at its own Poisson arrivals (mean distance `think`), which queue while a call is in
                         * progress */
};

/* Which calls share a target, and with it a budget, a breaker and the other gates. */
enum sim_scope {
    SIM_SCOPE_SERVICE = 0, /* one target per process */
    SIM_SCOPE_SHARD,       /* one target per process and shard of the service */
};

struct sim_clients {
    char name[SIM_NAME_MAX]; /* empty: the only group */
    enum sim_arrival arrival;
    uint64_t count;      /* of callers or clients */
    uint64_t rate_micro; /* calls (with fan-out: users) a second in millionths: `280/s`, `0.5/s`, `18M/s` */
    uint64_t peak_rate_micro, end_rate_micro;
    int64_t peak_from_ns, peak_until_ns;
    uint64_t calls;                /* at most this many calls (with fan-out: users); 0: no limit */
    int64_t from_ns;               /* no call begins before */
    int64_t until_ns;              /* no call begins at or after this; BIDE_NEVER: until the duration ends */
    struct sim_distribution think; /* closed clients */
    enum sim_pace pace;
    uint32_t processes; /* 0: each client its own (herd: each caller). Client i belongs to process i mod processes; call
                         * n of an open group to client n mod count (count 0: to process n mod processes) */
    uint32_t hosts;     /* the processes of a host share their targets: process i is on host i mod hosts; 0: no process
                         * shares */
    bool fleet;         /* the budget of each target is leased from the fleet's bucket: see struct sim_fleet */
    enum sim_scope scope;
    uint32_t fanout;             /* calls that a user makes at once; the user waits for all of them. Default 1 */
    uint32_t pool;               /* connections of a process: an attempt waits for a free connection; 0: no limit */
    enum bide_safety safety;     /* unsafe, idempotent, safe (default), keyed */
    uint32_t service;            /* index of the called service; `service = NAME`, default the first */
    char policy[SIM_POLICY_MAX]; /* a [policy NAME] of this file, a preset, or FILE#NAME */
    uint32_t gauss_milli;        /* Gaussian jitter, which only the simulator has: 0 off; else a backoff wait is drawn
                                  * from normal(e/2, e/divisor), cut to 0 ... e, with e the wait that the policy decided
                                  * (use jitter = none). `gauss = 6` */
};

/* ---- services ---- */

enum sim_order { SIM_FIFO = 0, SIM_LIFO };

/* How a service rejects a request. */
enum sim_refusal {
    SIM_REFUSE_ERROR = 0, /* "unavailable", immediately */
    SIM_REFUSE_THROTTLE,  /* "too many requests", immediately */
    SIM_REFUSE_SILENCE,   /* no response: the caller's timeout ends the attempt */
};

enum sim_kind {
    SIM_QUEUEING = 0, /* `servers` requests at a time, the others wait in a queue */
    SIM_UNLIMITED,    /* any number of requests at a time: service time only */
    SIM_ROW,          /* one row under optimistic concurrency control: an attempt reads its version, then writes; the
                       * write fails with a conflict if another write came between. Four messages, no service time */
};

enum sim_hint_form {
    SIM_HINT_NO = 0,
    SIM_HINT_DELTA, /* Retry-After: 5 (delta-seconds) */
    SIM_HINT_DATE,  /* Retry-After: an HTTP date, which has whole seconds (RFC 9110, 10.2.3) */
};

struct sim_service {
    char name[SIM_NAME_MAX];
    enum sim_kind kind;
    uint32_t servers;             /* default 1 */
    struct sim_distribution time; /* service time of a request */
    int64_t per_in_flight_ns;     /* added for each other request in the service when service begins */
    enum sim_order order;
    uint32_t queue_max;      /* queue limit; UINT32_MAX (`never`): unbounded; 0: no request may wait */
    enum sim_refusal full;   /* how a request is rejected when the queue is full */
    bool drop_dead;          /* a queued request is dropped once its deadline has passed */
    uint32_t fail_ppm;       /* share of served requests that fail */
    bool throttles;          /* those failures are "too many requests" */
    uint32_t shards;         /* default 1; a call belongs to a shard, drawn uniformly; shards share the servers */
    uint32_t bad_shards;     /* so many shards always fail */
    enum sim_hint_form hint; /* failures and rejections carry a Retry-After hint */
    int64_t hint_ns;         /* of this length ... */
    int64_t hint_spread_ns;  /* ... plus a random part up to this, drawn for each response */
    /* cold start: after an outage the speed starts at `cold` and grows to 100 % over cold_time */
    uint32_t cold_permille; /* 1000: never cold */
    int64_t cold_ns;
    bool cold_at_start; /* cold at time 0, too */
    /* downstream calls */
    int32_t calls; /* index of the service that each request calls after its service time; -1: none. `calls = NAME`. The
                    * server is held meanwhile */
    char policy[SIM_POLICY_MAX]; /* for downstream calls */
    uint32_t processes;          /* of this service, each with its own targets for downstream calls; default 1 */
    uint32_t fan;                /* sequential downstream calls of each request; default 1. All must succeed */
};

enum sim_outage_kind {
    SIM_OUTAGE_FAIL = 0, /* answers "unavailable" immediately */
    SIM_OUTAGE_THROTTLE, /* answers "too many requests" immediately */
    SIM_OUTAGE_SILENCE,  /* sends no response */
    SIM_OUTAGE_HOLD,     /* the network holds all requests back and delivers them when the outage ends */
    SIM_OUTAGE_SLOW,     /* serves at `capacity` of its speed and fails `fail` of the served requests */
};

struct sim_outage {
    uint32_t service;
    enum sim_outage_kind kind;
    int64_t from_ns;
    int64_t until_ns; /* with `inclusive`, the instant until_ns itself belongs to the outage */
    bool inclusive;
    uint32_t capacity_permille; /* kind = slow */
    uint32_t fail_ppm;          /* kind = slow: replaces the service's fail; fail, throttle: share of requests affected,
                                 * default 1000000 */
    char name[SIM_NAME_MAX];    /* empty: the only outage */
};

/* ---- fleet ---- */

/* One token bucket for all groups of clients that lease from it and call the same service (and shard). Each of their
 * targets is a member; both sides run the production code of lib/fleet/protocol, with a message in each direction
 * for an exchange. */
struct sim_fleet {
    uint32_t capacity_milli, refill_per_minute_milli; /* of the bucket, which starts empty */
    struct sim_distribution delay;                    /* one way, drawn for each message */
    int64_t timeout_ns;                  /* a member gives a request up after this long; tokens granted by a later
                                          * reply are lost */
    int64_t down_from_ns, down_until_ns; /* the bucket does not reply in this time; BIDE_NEVER: it always does */
};

/* ---- world ---- */

struct sim_world {
    int64_t duration_ns;     /* no call begins after this */
    bool drain;              /* continue until no event is pending (default); else stop at the duration */
    int64_t bin_ns;          /* width of a bin of the series */
    int64_t recover_from_ns; /* start of the search for recovery; BIDE_NEVER: the end of the last outage or peak */
    struct sim_distribution delay; /* [network] delay: one way, drawn for each message */
    uint32_t loss_ppm;             /* [network] loss: share of messages lost */
    struct sim_fleet fleet;
    struct sim_clients clients[SIM_GROUPS_MAX];
    uint32_t groups;
    struct sim_service service[SIM_SERVICES_MAX];
    uint32_t services;
    struct sim_outage outage[SIM_OUTAGES_MAX];
    uint32_t outages;
    /* The resolved policies, by index; owned by the scenario. */
    const struct conf_policy *policy_of_clients[SIM_GROUPS_MAX];
    const struct conf_policy *policy_of_service[SIM_SERVICES_MAX];
};

/* Sets a single group, a single service, and every field to its default. */
void sim_world_init(struct sim_world *world);

/* Computes derived fields: the default fail of a slow outage. Call it once after all fields are set. */
void sim_world_prepare(struct sim_world *world);

/* Estimates the memory of a run in bytes: an upper bound for herds and closed clients, else by Little's law. */
uint64_t sim_world_bytes(const struct sim_world *world);

#endif
