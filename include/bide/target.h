/* target.h - what is known of one dependency, and the gates shared by all calls to it.
 *
 * Budget, breaker, quiet-until, latency, throttle, in-flight limit, per-key limit. One struct of plain 64-bit words,
 * used through atomic builtins: no pointers, no locks. It works on the stack, on the heap (aligned_alloc(64, ...):
 * malloc does not align it) and in memory shared by the processes of a host. Each gate has one deciding word; the
 * other words are evidence and may be a little stale. A process killed at any instruction leaves the target usable;
 * what is lost is at most one charge for each call it had in flight, never anything in favour of more retries.
 *
 * The configuration is stored twice with one index, so that a reload swaps it whole while calls are in flight. State
 * survives a reload: a drained budget stays drained, an open breaker stays open.
 *
 * Counters that every call must write are spread over BIDE_LANES cache lines; request.lane picks one. */
#ifndef BIDE_TARGET_H
#define BIDE_TARGET_H

#include <bide/base.h>
#include <bide/breaker.h>
#include <bide/budget.h>
#include <bide/policy.h>
#include <bide/verdict.h>

BIDE_BEGIN_DECLS

/* What this server is trusted to mean. By default an unsafe request that was answered may have run. */
enum bide_trust {
    BIDE_TRUST_THROTTLED = 1u << 0,   /* a throttled request never ran: an unsafe one may be repeated */
    BIDE_TRUST_UNAVAILABLE = 1u << 1, /* a request answered "unavailable" (503) never ran */
};

struct bide_target_config {
    uint32_t struct_size;           /* set by bide_target_config_init */
    uint32_t observe;               /* enum bide_gate bits of the target's gates that only observe */
    uint32_t trust;                 /* enum bide_trust bits */
    uint32_t in_flight_max;         /* attempts in flight at once; 0: no limit. Private targets only */
    uint32_t key_retries;           /* retries per retry key and interval; 0: no limit */
    uint32_t throttle_k_milli;      /* adaptive throttling: K of the SRE book, 2000; above 1000; 0: off */
    uint32_t throttle_max_permille; /* never refuse a larger share than this, so that recovery is seen; 900 */
    uint32_t throttle_min_volume;   /* never refuse below this many requests in the window */
    int64_t throttle_window_ns;
    int64_t key_interval_ns;
    int64_t hold_off_max_ns; /* no quiet is longer than this; 0: a hint is not shared between calls */
    bool hold_off_first;     /* a quiet-until holds back first attempts too, not only retries */
    bool latency;            /* gather latencies, for hedging by quantile */
    bool reserved_flags_[6];
    struct bide_budget_config budget;
    struct bide_breaker_config breaker;
};

#define BIDE_LANES         8u
#define BIDE_SLOTS         10u /* slots of a sliding window: an entry lives 0.9 to 1.0 of its length */
#define BIDE_KEY_WORDS     24u
#define BIDE_LATENCY_WORDS 16u

/* Private: fields are here so that the struct can live anywhere, not to be touched. 64-bit words only. */
struct bide_window_words_ {
    uint64_t edge_ns;           /* when the present slot ends */
    uint64_t mark[BIDE_SLOTS];  /* epoch, sum of a lane counter when the slot began */
    uint64_t count[BIDE_SLOTS]; /* epoch, events counted in this slot, or a second mark */
};

struct bide_lane_words_ {
    uint64_t requests; /* first attempts */
    uint64_t attempts; /* attempts asked for, refused ones included */
    uint64_t accepts;  /* attempts that the server accepted */
    uint64_t healthy;  /* votes for the breaker to stay closed */
    uint64_t firsts;   /* of a leased target: first attempts, successes, what they would have earned */
    uint64_t successes;
    uint64_t earned_milli;
    uint64_t aside; /* not of the lane: the first four have the lease's end, who exchanges, and its memo */
};

struct bide_target {
    /* Read by every call, written by none in good times. */
    uint64_t identity;          /* layout version, and which owner of this memory this is */
    uint64_t active;            /* configuration generation; its low bit names the slot */
    uint64_t claim;             /* who is writing the other slot, since when */
    uint64_t hot[2][2];         /* what a successful call needs of each slot, packed */
    uint64_t breaker;           /* deciding word */
    uint64_t hold_off_ns;       /* deciding word */
    uint64_t hold_off_asked_ns; /* when that quiet was asked for */
    uint64_t budget;            /* deciding word of tokens; of a window: end of the cooldown */
    uint64_t retries;           /* deciding word of a concurrency budget: retries in flight */
    uint64_t calls;             /* calls in flight, for a concurrency budget */
    uint64_t in_flight;         /* deciding word */
    uint64_t failures;          /* breaker: in a row, or (time window) all so far */
    uint64_t probe[BIDE_PROBES_MAX];
    uint64_t refused[BIDE_GATE_COUNT];
    uint64_t openings; /* total, for metrics */
    struct bide_window_words_
        votes; /* breaker: marks of healthy votes and of failures; or the ring of a count window */
    struct bide_window_words_ spends; /* window budget: marks of requests, counts of retries */
    struct bide_window_words_ asks;   /* throttle: marks of attempts and of accepts */
    uint64_t latency[BIDE_LATENCY_WORDS];
    uint64_t key[BIDE_KEY_WORDS];
    struct bide_target_config config[2];
    struct bide_lane_words_ lane[BIDE_LANES];
} __attribute__((aligned(64)));

/* Sets every field from a preset's gates. */
#define bide_target_config_init(config, preset) bide_target_config_init_sized((config), sizeof *(config), (preset))
BIDE_API enum bide_err bide_target_config_init_sized(struct bide_target_config *config, size_t size,
                                                     enum bide_preset preset);

BIDE_API enum bide_err bide_target_config_check(const struct bide_target_config *config, struct bide_problem *problem);

/* Makes a fresh target: full budget, closed breaker. Nobody may use it yet. A bad configuration changes nothing. */
BIDE_API enum bide_err bide_target_init(struct bide_target *target, const struct bide_target_config *config,
                                        int64_t now_ns, struct bide_problem *problem);

/* Gives a target in use a new configuration, whole, keeping its state. A bad one changes nothing.
 * BIDE_ERR_BUSY: somebody else is at it; try again. */
BIDE_API enum bide_err bide_target_configure(struct bide_target *target, const struct bide_target_config *config,
                                             int64_t now_ns, struct bide_problem *problem);

/* A copy of the configuration in force. */
BIDE_API void bide_target_config_get(const struct bide_target *target, struct bide_target_config *config);

/* True if forgetting this target would lose nothing that matters: budget at its initial level or above, throttle at
 * rest, breaker closed and not lately opened (a window of time: without failures in it), nobody asked for quiet, no key
 * remembered, nothing counted in flight, not leased. Tables evict only such targets. */
BIDE_API bool bide_target_is_evictable(const struct bide_target *target, int64_t now_ns);

/* As init, for memory that was a target before and that calls in flight may still hold: they see that it has a new
 * owner and leave it alone. For tables that reuse memory. BIDE_ERR_BUSY: something of it is held, it is leased
 * (bide/lease.h), or somebody is configuring it; nothing was changed. */
BIDE_API enum bide_err bide_target_reuse(struct bide_target *target, const struct bide_target_config *config,
                                         int64_t now_ns, struct bide_problem *problem);

/* When the server's request for quiet ends; 0: none. */
BIDE_API int64_t bide_target_hold_off_until(const struct bide_target *target, int64_t now_ns);

/* Raises quiet-until, never lowers it: for hints that came by another way (a fleet). A success of an attempt that
 * did not start before now ends the quiet. */
BIDE_API void bide_target_hold_off(struct bide_target *target, int64_t until_ns, int64_t now_ns);

/* An upper bound (164 us at least, else at most 25 % too high) of the latency that permille of recent attempts stayed
 * below; 0: too few seen (under 20); BIDE_NEVER: 3.7 s or longer, which is as far as it tells them apart. */
BIDE_API int64_t bide_target_latency_ns(const struct bide_target *target, uint32_t permille);

/* How often one gate has said no so far, to calls and to hedges (in observe mode: would have). */
BIDE_API uint64_t bide_target_refused(const struct bide_target *target, enum bide_gate gate);

BIDE_END_DECLS
#endif
