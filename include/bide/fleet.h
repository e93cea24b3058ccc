/* fleet.h - one retry budget for all processes of all hosts, in Redis or Valkey (libbide-fleet).
 *
 *     struct bide_fleet *fleet;
 *     struct bide_fleet_problem problem;
 *     if (bide_fleet_open(&fleet, getenv("BIDE_FLEET"), NULL, &problem) != BIDE_OK) ... problem.text says why
 *     bide_fleet_join(fleet, "payments", &target, false, &problem);
 *     ... calls on that target, as ever ...
 *     bide_fleet_close(fleet);
 *
 * The budget lies in Redis. A thread of the library's own leases a few tokens at a time into the target and reports
 * what its calls earned; calls spend what is there and never wait for Redis. While it is leased, the target earns
 * nothing for itself (bide/lease.h). A quiet that one instance was asked for, and the opinion of their breakers, travel
 * along.
 *
 * The promise: retries of the fleet <= what the fleet's bucket held and got + what is leased + the floor of each
 * instance (refill_per_minute of its budget) x the time it could not reach Redis. Whatever dies. One exception: a Redis
 * that comes back with an earlier state may grant again what it had granted since, one bucket at most.
 *
 * Redis absent, slow, stopped, read-only, out of memory, talking garbage: the target goes on alone, at its floor; the
 * callback is told once a minute at most; the way back is jittered.
 *
 * Opening never waits for Redis either: it only reads the URL and starts the thread.
 *
 *     redis://[user[:password]@]host[:6379][/db][?option=value&...]     rediss:// the same over TLS
 *     unix:///path/to/socket[?db=0&...]
 *
 * Options of the URL: capacity (tokens of the fleet's bucket, 100), per_minute (its trickle, 60), prefix (of keys,
 * "bide"), timeout (milliseconds for one exchange, 500), open (per cent of instances whose open breakers open ours,
 * 50; 0: never), db, user, password_file, ca_file, cert_file, key_file (TLS). The password_file is read once, by
 * bide_fleet_open; the files of TLS with each connection. The password never appears in a text of ours.
 *
 * Threads: any function from any thread, also at once; but bide_fleet_close only when no other one is running or will
 * be. */
#ifndef BIDE_FLEET_H
#define BIDE_FLEET_H

#include <bide/target.h>

BIDE_BEGIN_DECLS

struct bide_fleet;

struct bide_fleet_problem {
    char text[512]; /* "redis://cache:6379/0: option capacity is \"many\"; want tokens, 1 to 268435" */
};

struct bide_fleet_options {
    /* Told from the library's thread, at most once a minute: "redis://cache:6379: connection refused; retries go on at
     * 1 a minute for payments". And once when it is back. NULL: nothing is told. It must be quick: meanwhile nothing is
     * exchanged, and bide_fleet_close waits for it. It may call the functions below, but not close its own fleet. */
    void (*report)(void *context, const char *text);
    void *context;
};

/* How things stand, for metrics. */
struct bide_fleet_view {
    bool connected;           /* the lease holds, and nothing failed since */
    bool exchanger;           /* we exchange for this target, not another process of the host */
    int64_t fleet_left_milli; /* as the last answer said */
    int64_t leased_milli;     /* in the target's bucket */
    int64_t share_milli;      /* what an idle instance may keep */
    uint64_t members;         /* about so many */
    uint64_t exchanges, failures;
    uint64_t granted_milli, returned_milli, earned_milli; /* by us, so far */
    uint64_t openings_followed;
    int64_t disconnected_ns; /* how long the target went on alone so far */
    char problem[160];       /* the last that failed in this fleet, cut to size; "" since an exchange went well */
};

/* What lies in Redis, for `bide budget show --fleet`. */
struct bide_fleet_bucket {
    bool exists; /* false: nobody has been at it, or it has expired */
    int64_t capacity_milli, per_minute_milli, left_milli;
    uint64_t members, wanting, open, exchanges;
    uint64_t firsts, successes, spent_milli, granted_milli;
    int64_t hold_off_ms;
    bool is_open;
    int64_t age_ms; /* since the last exchange, by Redis' clock */
};

/* BIDE_ERR_INVALID: the URL is wrong. BIDE_ERR_NOMEM, BIDE_ERR_SYSTEM (no thread). options and problem may be NULL.
 * After fork the child has no exchange and its private targets are emptied: open anew there. */
BIDE_API enum bide_err bide_fleet_open(struct bide_fleet **fleet, const char *url,
                                       const struct bide_fleet_options *options, struct bide_fleet_problem *problem);

/* Leases for that target from now on. Its budget must be of tokens; what is in it is taken away (of one that is leased
 * already nothing is). `shared`: other processes have it too (bide/shared.h) and may lease for it; one at a time does.
 * The name is the same in the whole fleet, 1 to 127 bytes. The target must live until it leaves. */
BIDE_API enum bide_err bide_fleet_join(struct bide_fleet *fleet, const char *name, struct bide_target *target,
                                       bool shared, struct bide_fleet_problem *problem);

/* A private target gives back what is unspent, without waiting for an answer, and earns for itself again. (If there is
 * no connection just then, because Redis is gone or the fleet is large and idle, it is lost.) A shared one keeps what
 * it has, for the others. Unknown ones are ignored. When it returns, the target is the caller's alone. */
BIDE_API void bide_fleet_leave(struct bide_fleet *fleet, struct bide_target *target);

/* False: not one that joined. */
BIDE_API bool bide_fleet_get(struct bide_fleet *fleet, const struct bide_target *target, struct bide_fleet_view *view);

/* Leaves all, stops the thread. Takes at most the URL's timeout, and as long as a `tell` that is running.
 * Accepts NULL. */
BIDE_API void bide_fleet_close(struct bide_fleet *fleet);

/* Asks Redis what lies under that name, and waits for it, timeout at most. Changes nothing there. */
BIDE_API enum bide_err bide_fleet_read(const char *url, const char *name, struct bide_fleet_bucket *bucket,
                                       struct bide_fleet_problem *problem);

BIDE_END_DECLS
#endif
