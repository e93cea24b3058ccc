/* world.h - one world to be simulated: clients with policies, services with capacity, and the network between them.
 *
 *     clients ──policy──► service ──policy──► service ...      each arrow: calls of the real engine, over the network
 *
 * A plain value. Scenario files (scenario.h) describe it; the key of a field is the field's own name without its unit,
 * behind the name of its section: `rate = 280/s` in [clients] is clients.rate for --set. What a section of several
 * (`[clients background]`) says is clients.background.rate. */
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
#define SIM_BIN_WIDTHS   4u   /* buckets in which peaks are looked for: 1 ms, 10 ms, 50 ms, 1 s */

/* ---- clients ---- */

/* When calls begin. Rates are of the whole group. All but closed are open loops: a call begins whatever became of the
 * others. */
enum sim_arrival {
    SIM_HERD = 0, /* count callers, one call each, all at `from` */
    SIM_POISSON,  /* at random, `rate` a second */
    SIM_UNIFORM,  /* at equal distances: the n-th (from 0) at from + n / rate */
    SIM_RAMP,     /* Poisson; rate at `from`, straight to peak_rate at peak_from, that until peak_until, straight to
                     end_rate at `until` */
    SIM_SPIKE,    /* Poisson; rate, but peak_rate from peak_from until peak_until */
    SIM_CLOSED,   /* each of count clients has one call at a time, and thinks between two */
};

/* What a closed client's next call waits for. */
enum sim_pace {
    SIM_PACE_THINK = 0, /* `think` after the last one ended */
    SIM_PACE_START,     /* `think` after the last one began, or its end if that is later */
    SIM_PACE_QUEUE,     /* its own Poisson arrivals (mean distance `think`), served one by one: none is lost */
};

/* Whose gates a call passes: which calls share a budget, a breaker and so on. */
enum sim_scope {
    SIM_SCOPE_SERVICE = 0, /* one target per process */
    SIM_SCOPE_SHARD,       /* one per process and shard of the service */
};

struct sim_clients {
    char name[SIM_NAME_MAX]; /* empty: the only one */
    enum sim_arrival arrival;
    uint64_t count;      /* callers, clients */
    uint64_t rate_micro; /* calls a second, in millionths: `280/s`, `0.5/s`, `18M/s` */
    uint64_t peak_rate_micro, end_rate_micro;
    int64_t peak_from_ns, peak_until_ns;
    uint64_t calls;                /* no more than this many calls; 0: no limit */
    int64_t from_ns;               /* the first call not before */
    int64_t until_ns;              /* no call begins at or after this; BIDE_NEVER: the world's duration */
    struct sim_distribution think; /* closed */
    enum sim_pace pace;
    uint32_t processes; /* 0: each client its own (herd: each caller). Client i belongs to process i mod processes;
                               call n of an open group to client n mod count (count 0: to process n mod processes) */
    uint32_t hosts;     /* the processes of a host share their gates: process i is on host i mod hosts; 0: none share */
    bool fleet;         /* the budget of each target is leased: see struct sim_fleet */
    enum sim_scope scope;
    uint32_t fanout;             /* a user's call is so many calls at once, and over when all are; 1 */
    uint32_t pool;               /* sockets of one process: an attempt waits for a free one; 0: no limit */
    enum bide_safety safety;     /* unsafe, idempotent, safe (default), keyed */
    uint32_t service;            /* index: whom they call; `service = NAME`, the first one by default */
    char policy[SIM_POLICY_MAX]; /* of this file's [policy NAME], a preset, or FILE#NAME */
    uint32_t gauss_milli;        /* Gaussian jitter, which only the simulator has: 0 off; else the wait is
                               normal(e/2, e/divisor), cut to 0 ... e, e being the wait that the policy decided (use it
                               with jitter = none). `gauss = 6` */
};

/* ---- services ---- */

enum sim_order { SIM_FIFO = 0, SIM_LIFO };

/* What a request meets that a service does not take. */
enum sim_refusal {
    SIM_REFUSE_ERROR = 0, /* "unavailable", at once */
    SIM_REFUSE_THROTTLE,  /* "too many requests", at once */
    SIM_REFUSE_SILENCE,   /* no answer ever: only a timeout tells */
};

enum sim_kind {
    SIM_QUEUEING = 0, /* `servers` at a time, the others wait */
    SIM_UNLIMITED,    /* all at once: service time only */
    SIM_ROW,          /* one row under optimistic concurrency: an attempt reads its version, then writes; the write
                         fails with a conflict if another came between. Four messages, no service time */
};

enum sim_hint_form {
    SIM_HINT_NO = 0,
    SIM_HINT_DELTA, /* Retry-After: 5 */
    SIM_HINT_DATE,  /* Retry-After: an HTTP date, which has whole seconds */
};

struct sim_service {
    char name[SIM_NAME_MAX];
    enum sim_kind kind;
    uint32_t servers;             /* 1 */
    struct sim_distribution time; /* `time`: how long one request takes one server */
    int64_t per_in_flight_ns;     /* and this much longer for each other request in the house when work begins */
    enum sim_order order;
    uint32_t queue_max;      /* waiting at most; UINT32_MAX (`never`): no bound; 0: none may wait */
    enum sim_refusal full;   /* what the next one meets */
    bool drop_dead;          /* a request whose caller has given it up by then is thrown away instead of served */
    uint32_t fail_ppm;       /* of what was served: fails all the same */
    bool throttles;          /* and that failure is "too many requests" */
    uint32_t shards;         /* 1; a call belongs to one, drawn evenly; they share the servers */
    uint32_t bad_shards;     /* so many of them fail always */
    enum sim_hint_form hint; /* failures and refusals ask for patience */
    int64_t hint_ns;         /* so long ... */
    int64_t hint_spread_ns;  /* ... and up to this much longer, drawn by the server for each */
    /* cold start: after an outage its capacity begins at cold and grows to all of it over cold_time */
    uint32_t cold_permille; /* 1000: it is never cold */
    int64_t cold_ns;
    bool cold_at_start; /* also at time 0 */
    /* deeper */
    int32_t calls; /* index of the service that each request calls after its own time; -1: none. `calls = NAME`.
                                Its own server is held meanwhile */
    char policy[SIM_POLICY_MAX]; /* for those calls */
    uint32_t processes;          /* of this service: how many targets they have; 1 */
    uint32_t fan; /* how many calls deeper each request makes, one after the other; 1. All must succeed */
};

enum sim_outage_kind {
    SIM_OUTAGE_FAIL = 0, /* answers "unavailable" at once */
    SIM_OUTAGE_THROTTLE, /* answers "too many requests" at once */
    SIM_OUTAGE_SILENCE,  /* swallows requests */
    SIM_OUTAGE_HOLD,     /* the network is cut and keeps what is sent: all of it arrives when the outage ends */
    SIM_OUTAGE_SLOW,     /* works, at `capacity` of its speed, failing `fail` of what it serves */
};

struct sim_outage {
    uint32_t service;
    enum sim_outage_kind kind;
    int64_t from_ns;
    int64_t until_ns; /* an instant at this very time is still in the outage, if `inclusive` */
    bool inclusive;
    uint32_t capacity_permille; /* slow */
    uint32_t fail_ppm;          /* slow, in place of the service's; fail, throttle: this share only; 1000000 */
    char name[SIM_NAME_MAX];    /* empty: the only one */
};

/* ---- the fleet ---- */

/* One bucket for all groups of clients that lease from it and call the same service (and shard). Each of their targets
 * is an instance: the production code of both sides, lib/fleet/protocol, with a message in each direction for an
 * exchange. */
struct sim_fleet {
    uint32_t capacity_milli, per_minute_milli; /* of the bucket; it begins empty */
    struct sim_distribution delay;             /* one way, drawn for each message */
    int64_t timeout_ns;                  /* after it an instance counts on no answer, and what it asked is spent */
    int64_t down_from_ns, down_until_ns; /* the bucket answers nobody; BIDE_NEVER: it always does */
};

/* ---- the whole ---- */

struct sim_world {
    int64_t duration_ns;     /* no call begins after it */
    bool drain;              /* go on until nothing happens any more (default); else stop at duration */
    int64_t bin_ns;          /* of the series */
    int64_t recover_from_ns; /* when recovery is looked for from; BIDE_NEVER: the end of the last outage or peak */
    struct sim_distribution delay; /* [network] delay: one way, drawn for each message */
    uint32_t loss_ppm;             /* [network] loss: of each message */
    struct sim_fleet fleet;
    struct sim_clients clients[SIM_GROUPS_MAX];
    uint32_t groups;
    struct sim_service service[SIM_SERVICES_MAX];
    uint32_t services;
    struct sim_outage outage[SIM_OUTAGES_MAX];
    uint32_t outages;
    /* The policies by index, resolved; they belong to the scenario. */
    const struct conf_policy *policy_of_clients[SIM_GROUPS_MAX];
    const struct conf_policy *policy_of_service[SIM_SERVICES_MAX];
};

/* A world with one group and one service and everything at its default. */
void sim_world_init(struct sim_world *world);

/* Fills in what follows from the rest: what a slow outage fails by default. To be called once all fields are set. */
void sim_world_prepare(struct sim_world *world);

/* What is wrong with the world as a whole; NULL: nothing. Names the key and says what would be right. */
const char *sim_world_problem(const struct sim_world *world, char text[256]);

/* Bytes that a run of it may need, from above where it can be known (herd, closed), else by Little's law. */
uint64_t sim_world_bytes(const struct sim_world *world);

#endif
