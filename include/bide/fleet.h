/* fleet.h - one retry budget for all processes of all hosts, in Redis or Valkey (libbide-fleet).
 *
 *     struct bide_fleet *fleet;
 *     struct bide_problem problem;
 *     if (bide_fleet_open(&fleet, getenv("BIDE_FLEET"), NULL, &problem) != BIDE_OK) ... report problem.text
 *     bide_fleet_join(fleet, "payments", &target, &problem);
 *     ... calls on that target, as usual ...
 *     bide_fleet_close(fleet);
 *
 * The budget is a token bucket in Redis. A thread of the library leases a few tokens at a time into the target and
 * reports the tokens that its calls earned; calls spend the leased tokens and never wait for Redis. A leased target
 * earns nothing for itself.
 *
 * The promise: retries of the fleet <= tokens that the fleet's bucket held and received + tokens that are leased + for
 * each member, its floor (refill_per_minute of its budget) x the time it could not reach Redis; whichever process dies.
 * Two exceptions: a Redis that comes back with an earlier state may grant again the tokens it had granted since, a
 * bucketful at most; and the first retry of a member that Redis grants nothing, see below.
 *
 * First retries. A joining member can retry once before Redis has replied: the first retry of its floor is there at
 * once, so that a short-lived process without Redis has a retry; the refill starts after the time in which that retry
 * would have accrued (a minute by default), and the first grant repays it. A member that ends before that, without a
 * grant, has made one retry more than the promise: a retry for each start of a process, or for the host if the target
 * is shared. A new fleet's bucket is empty, and each new member adds one retry to it, up to its capacity in all.
 *
 * If Redis is absent, slow, stopped, read-only, out of memory or replies garbage, the target continues on its own, at
 * its floor; the callback is called once a minute at most; reconnects are jittered.
 *
 * Opening never waits for Redis either: it only parses the URL and starts the thread.
 *
 *     redis://[user[:password]@]host[:6379][/db][?option=value&...]     rediss:// the same over TLS
 *     unix:///path/to/socket[?db=0&...]
 *
 * Options of the URL: capacity (tokens of the fleet's bucket, 100), per_minute (its refill, 60), prefix (of keys,
 * "bide"), timeout (milliseconds for one exchange, 500), db, user, password_file, ca_file, cert_file, key_file (TLS).
 * bide_fleet_open reads the password_file once; TLS files are read with each connection. The password never appears in
 * a text of the library.
 *
 * Threads: any function from any thread, also at once; but bide_fleet_close only when no other function is running or
 * will be called. */
#ifndef BIDE_FLEET_H
#define BIDE_FLEET_H

#include <bide/target.h>

BIDE_BEGIN_DECLS

struct bide_fleet;

struct bide_fleet_options {
    /* Called from the library's thread, at most once a minute: "redis://cache:6379: connection refused; retries go on
     * at 1 a minute for payments (the first at once)". Once when the connection is back. And once by the member whose
     * first exchange creates the fleet's bucket: "payments is a new fleet budget: ..."; that may be during
     * bide_fleet_close. NULL: no reports. It must return quickly: meanwhile nothing is exchanged, and bide_fleet_close
     * waits for it. It may call the functions below, but not close its own fleet. */
    void (*report)(void *context, const char *text);
    void *context;
    uint64_t reserved_[4]; /* zero: room to grow */
};

/* The state of a member, for metrics. */
struct bide_fleet_view {
    bool connected;           /* the lease is valid, and no exchange failed since */
    bool exchanger;           /* this process exchanges for the target, not another process of the host */
    int64_t fleet_left_milli; /* tokens in the bucket of the fleet, by the last reply */
    int64_t leased_milli;     /* tokens in the bucket of the target */
    int64_t share_milli;      /* tokens that an idle member may keep */
    uint64_t members;         /* members of the fleet, approximately */
    uint64_t exchanges, failures;
    uint64_t granted_milli, returned_milli, earned_milli; /* by this member, so far */
    int64_t disconnected_ns; /* how long the target ran without a lease so far, also before the first reply */
    char problem[160];       /* the last failure in this fleet, cut to size; "" after a successful exchange */
    uint64_t reserved_[4];   /* zero: room to grow */
};

/* The bucket in Redis, for `bide budget show --fleet`. */
struct bide_fleet_bucket {
    bool exists; /* false: never used, or expired */
    int64_t capacity_milli, per_minute_milli, left_milli;
    uint64_t members, wanting, exchanges;
    uint64_t firsts, successes, spent_milli, granted_milli;
    int64_t age_ms;        /* since the last exchange, by the clock of Redis */
    uint64_t reserved_[4]; /* zero: room to grow */
};

/* Parses the URL and starts the thread. BIDE_ERR_INVALID: the URL is invalid; BIDE_ERR_NOMEM: no memory;
 * BIDE_ERR_SYSTEM: no thread. NULL options: no reports. After fork the thread does not run in the child, and the
 * child's private targets are emptied: it must open the fleet anew. */
BIDE_API enum bide_err bide_fleet_open(struct bide_fleet **fleet, const char *url,
                                       const struct bide_fleet_options *options, struct bide_problem *problem);

/* Leases for that target from now on. Its budget must be of kind tokens; the tokens in it are removed (not if it is
 * leased already), except one retry if the budget has a floor. A target of bide/shared.h may be joined by each process
 * that uses it; one process at a time leases for all of them. The name is the same in the whole fleet, 1 to 127
 * bytes. The target must live until it leaves. */
BIDE_API enum bide_err bide_fleet_join(struct bide_fleet *fleet, const char *name, struct bide_target *target,
                                       struct bide_problem *problem);

/* A private target returns its unspent tokens, without waiting for a reply, and earns for itself again. (Without a
 * connection, because Redis is gone or the fleet is large and idle, these tokens are lost.) A shared target keeps its
 * tokens for the other processes. Unknown targets are ignored. After this call the target belongs to the caller
 * alone. */
BIDE_API void bide_fleet_leave(struct bide_fleet *fleet, struct bide_target *target);

/* Returns false if the target has not joined. */
BIDE_API bool bide_fleet_get(struct bide_fleet *fleet, const struct bide_target *target, struct bide_fleet_view *view);

/* Leaves with all targets and stops the thread. Takes at most the timeout of the URL, plus the duration of a `report`
 * that is running. Accepts NULL. */
BIDE_API void bide_fleet_close(struct bide_fleet *fleet);

/* Reads the bucket of that name from Redis and waits for it, for the timeout at most. Changes nothing there.
 * BIDE_ERR_INVALID: the URL or the name is invalid; BIDE_ERR_SYSTEM: no usable reply in time. */
BIDE_API enum bide_err bide_fleet_read(const char *url, const char *name, struct bide_fleet_bucket *bucket,
                                       struct bide_problem *problem);

BIDE_END_DECLS
#endif
