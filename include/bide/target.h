/* target.h - the state of one dependency, and the gates shared by all calls to it: retry budget, circuit breaker,
 * hold-off, latency, adaptive throttling (load shedding), in-flight limit (bulkhead), limit per retry key.
 *
 * One struct of plain 64-bit words, used through atomic builtins: no pointers, and calls take no lock. It works on the
 * stack, on the heap (aligned_alloc(64, ...): malloc does not align it) and in memory shared by the processes of a
 * host. A gate that charges or changes state has one deciding word, changed by compare-and-swap (a window budget has
 * the counts of its slots, changed by atomic addition); the other words are evidence and may be slightly stale. A
 * process killed at any instruction leaves the target usable and loses at most one charge for each call it had in
 * flight, never in favour of more retries.
 *
 * The configuration is stored twice with an index, so that a reload swaps it as a whole while calls are in flight.
 * State survives a reload: an empty budget stays empty, an open breaker stays open.
 *
 * Counters that every call must write are spread over BIDE_LANES cache lines; request.lane selects one of them.
 *
 * Threads: all functions may be called from any thread and process that shares the target, except bide_target_init. */
#ifndef BIDE_TARGET_H
#define BIDE_TARGET_H

#include <bide/base.h>
#include <bide/breaker.h>
#include <bide/budget.h>
#include <bide/policy.h>
#include <bide/verdict.h>

BIDE_BEGIN_DECLS

/* How far the server's failure responses are trusted. By default an unsafe request with a response may have run. */
enum bide_trust {
    BIDE_TRUST_THROTTLED = 1u << 0,   /* a throttled request never ran: an unsafe request may be repeated */
    BIDE_TRUST_UNAVAILABLE = 1u << 1, /* a request with the response "unavailable" (503) never ran */
};

struct bide_target_config {
    uint32_t struct_size;           /* set by bide_target_config_init */
    uint32_t observe;               /* enum bide_gate bits: gates of the target that only observe */
    uint32_t trust;                 /* enum bide_trust bits */
    uint32_t in_flight_max;         /* in-flight limit (bulkhead); 0: no limit. Private targets only */
    uint32_t key_retries;           /* retries per retry key and interval; 0: no limit */
    uint32_t throttle_k_milli;      /* adaptive throttling: K of the SRE book, 2000; above 1000; 0: off */
    uint32_t throttle_max_permille; /* largest share to refuse, so that recovery is noticed; 900 */
    uint32_t throttle_min_volume;   /* requests in the window below which nothing is refused */
    int64_t throttle_window_ns;
    int64_t key_interval_ns;
    int64_t hold_off_max_ns; /* longest hold-off; 0: a hint is not shared between calls */
    bool hold_off_first;     /* a hold-off delays first attempts too, not only retries */
    bool latency;            /* record latencies, for hedging by quantile */
    bool reserved_flags_[6];
    struct bide_budget_config budget;
    struct bide_breaker_config breaker;
};

#define BIDE_LANES         8u
#define BIDE_SLOTS         10u /* slots of a sliding window: an entry lives 0.9 to 1.0 of its length */
#define BIDE_KEY_WORDS     24u
#define BIDE_LATENCY_WORDS 16u

/* Private: the fields are public only so that the struct can live anywhere. 64-bit words only. */
struct bide_window_words_ {
    uint64_t edge_ns;           /* when the current slot ends */
    uint64_t mark[BIDE_SLOTS];  /* epoch, total of a lane counter when the slot began */
    uint64_t count[BIDE_SLOTS]; /* epoch, events counted in this slot, or a second total */
};

struct bide_lane_words_ {
    uint64_t requests; /* window budget: first attempts */
    uint64_t attempts; /* throttle: attempts requested, including refused attempts */
    uint64_t accepts;  /* throttle: attempts that the server accepted */
    uint64_t healthy;  /* healthy votes for the breaker */
    uint64_t firsts;   /* of a leased target: first attempts, successes, tokens that they would have earned */
    uint64_t successes;
    uint64_t earned_milli;
    uint64_t aside; /* not a counter of the lane: in the first four, the lease's end, exchanger and memo; in the next
                     * two, the usual latency and when it was sampled */
};

struct bide_target {
    /* Read by every call; written by none while all calls succeed. */
    uint64_t identity;                 /* layout version, and the owner number of this memory */
    uint64_t active;                   /* configuration generation; its low bit selects the slot */
    uint64_t claim;                    /* writer lock of the other slot: when it was taken */
    uint64_t hot[2][2];                /* for each slot, the packed settings that a successful call needs */
    uint64_t breaker;                  /* deciding word */
    uint64_t hold_off_ns;              /* deciding word */
    uint64_t hold_off_asked_ns;        /* when that hold-off was requested */
    uint64_t budget;                   /* deciding word of a token bucket; of a window: end of the cooldown */
    uint64_t retries;                  /* deciding word of a concurrency budget: retries in flight */
    uint64_t calls;                    /* calls in flight, for a concurrency budget */
    uint64_t in_flight;                /* deciding word */
    uint64_t failures;                 /* breaker: in a row, or (time window) total */
    uint64_t probe[BIDE_PROBES_MAX];   /* probe slots of a half-open breaker */
    uint64_t refused[BIDE_GATE_COUNT]; /* refusals of each gate, for metrics */
    uint64_t openings;                 /* of the breaker, total, for metrics */
    struct bide_window_words_
        votes; /* breaker: totals of healthy votes and of failures; or the ring of a count window */
    struct bide_window_words_ spends; /* window budget: totals of requests, counts of retries */
    struct bide_window_words_ asks;   /* throttle: totals of attempts and of accepts */
    uint64_t latency[BIDE_LATENCY_WORDS];
    uint64_t key[BIDE_KEY_WORDS];
    struct bide_target_config config[2];
    struct bide_lane_words_ lane[BIDE_LANES];
} __attribute__((aligned(64)));

/* "No target", for functions that make calls: none of the gates of a target apply to the call, only its policy. (NULL
 * would be the default target.) Not for the functions below. */
#define BIDE_NO_TARGET ((struct bide_target *)-1)

/* Sets every field from the gates of a preset. */
#define bide_target_config_init(config, preset) bide_target_config_init_sized((config), sizeof *(config), (preset))
BIDE_API enum bide_err bide_target_config_init_sized(struct bide_target_config *config, size_t size,
                                                     enum bide_preset preset);

/* Reports the first invalid field, its value and the valid values. */
BIDE_API enum bide_err bide_target_config_check(const struct bide_target_config *config, struct bide_problem *problem);

/* Initialises a target that no other thread uses: full budget, closed breaker. NULL config: the gates of the preset
 * service. An invalid config changes nothing. */
BIDE_API enum bide_err bide_target_init(struct bide_target *target, const struct bide_target_config *config,
                                        int64_t now_ns, struct bide_problem *problem);

/* Replaces the configuration of a target in use as a whole and keeps its state. An invalid configuration changes
 * nothing. BIDE_ERR_BUSY: another thread or process is configuring it; try again. */
BIDE_API enum bide_err bide_target_configure(struct bide_target *target, const struct bide_target_config *config,
                                             int64_t now_ns, struct bide_problem *problem);

/* Copies the configuration in force. */
BIDE_API void bide_target_config_get(const struct bide_target *target, struct bide_target_config *config);

/* The state of a target at an instant, for metrics and people: other calls may change it at once. */
struct bide_target_view {
    /* The budget that is left, in thousandths of a retry: tokens in the bucket; window: the allowance minus the retries
     * spent (whole retries), 0 during a cooldown; concurrency likewise. Never negative. INT64_MAX if there is no limit:
     * BIDE_BUDGET_NONE, and a window below its min_volume. */
    int64_t budget_left_milli;
    int64_t hold_off_until_ns; /* 0: no hold-off */
    struct bide_breaker_view breaker;
    /* Calls and hedges that each gate has refused so far (in observe mode: would have refused); those of the budget are
     * refused[BIDE_GATE_INDEX(BIDE_GATE_BUDGET)]. */
    uint64_t refused[BIDE_GATE_COUNT];
    uint64_t reserved_[4]; /* 0 */
};

BIDE_API struct bide_target_view bide_target_get(const struct bide_target *target, int64_t now_ns);

/* Returns true if forgetting this target would lose nothing that matters: budget at its initial level or above,
 * throttle idle, breaker closed and not opened recently (a time window: without failures in it), no hold-off, no key
 * remembered, nothing in flight, not leased. Tables evict only such targets. */
BIDE_API bool bide_target_is_evictable(const struct bide_target *target, int64_t now_ns);

/* As init, for memory that was a target before and that calls in flight may still use: they see that it has a new owner
 * and leave it alone. For tables that reuse memory. BIDE_ERR_BUSY: a permit is in use, the target is leased
 * (bide/lease.h), or it is being configured; nothing was changed. */
BIDE_API enum bide_err bide_target_reuse(struct bide_target *target, const struct bide_target_config *config,
                                         int64_t now_ns, struct bide_problem *problem);

/* Extends the hold-off, never shortens it: for hints from another source (a fleet). The success of an attempt that did
 * not start before now_ns ends it. */
BIDE_API void bide_target_hold_off(struct bide_target *target, int64_t until_ns, int64_t now_ns);

/* Returns an upper bound (164 us at least, else at most 25 % too high) of that quantile of the latency of recent
 * attempts; 0: too few samples (under 20); BIDE_NEVER: 3.7 s or longer, the range of the histogram. */
BIDE_API int64_t bide_target_latency_get(const struct bide_target *target, uint32_t permille);

BIDE_END_DECLS
#endif
