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

/* In place of a target: the call has none, and no gates of a target apply. (NULL means the default everywhere, which
 * for a target is the one that belongs to the name or the origin of the call.) */
#define BIDE_NO_TARGET ((struct bide_target *)-1)

struct bide_target_config {
    uint32_t observe;               /* enum bide_gate bits: gates of the target that only observe */
    uint32_t trust;                 /* enum bide_trust bits */
    uint32_t in_flight_max;         /* in-flight limit (bulkhead); 0: no limit. Private targets only */
    uint32_t key_retries;           /* retries per retry key and interval; 0: no limit */
    uint32_t throttle_k_milli;      /* adaptive throttling: K of the SRE book, 2000; above 1000; 0: off */
    uint32_t throttle_max_permille; /* largest share to refuse, so that recovery is noticed; 900 */
    uint32_t throttle_min_volume;   /* requests in the window below which nothing is refused */
    bool hold_off_first;            /* a hold-off delays first attempts too, not only retries */
    bool latency;                   /* record latencies, for hedging by quantile */
    uint8_t reserved_flags_[2];
    int64_t throttle_window_ns;
    int64_t key_interval_ns;
    int64_t hold_off_max_ns; /* longest hold-off; 0: a hint is not shared between calls */
    uint64_t reserved_[2];   /* zero: room to grow */
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
    uint64_t reserved_; /* zero: room to grow */
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
    uint64_t lease_end_ns;     /* 0: no lease, or its beginning is not complete */
    uint64_t lease_exchanger;  /* the exchanger, and until when its claim is valid */
    uint64_t lease_progress;   /* the memo from an exchanger to its successor */
    uint64_t lease_base_milli; /* the same */
    uint64_t usual_ns;         /* usual latency; 0: no success was sampled yet */
    uint64_t usual_at_ns;      /* when it was sampled last; before the first sample: when the deadline of a call first
                                * cut an attempt; 0: never */
    struct bide_target_config config[2];
    uint64_t reserved_[8]; /* zero: room to grow, a cache line */
    /* Counters that successes write. */
    struct bide_lane_words_ lane[BIDE_LANES];
} __attribute__((aligned(64)));

/* How many attempts may start now, and when more may: for a queue or a batch that should not begin calls which a gate
 * would refuse. */
struct bide_admission {
    uint32_t attempts;       /* first attempts that may start now; UINT32_MAX: no gate limits them */
    enum bide_reason reason; /* of the gate that limits them; BIDE_REASON_NOTHING: none does */
    int64_t at_ns;           /* attempts is 0: ask again at this instant; BIDE_NEVER: when a call has ended, or the
                              * breaker is released by hand. Else now */
    uint64_t reserved_[2];
};

/* Sets every field from the gates of a preset. */
BIDE_API enum bide_err bide_target_config_init(struct bide_target_config *config, enum bide_preset preset);

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

/* Extends the hold-off, never shortens it: for hints from another source (a fleet). The success of an attempt that did
 * not start before now_ns ends it. */
BIDE_API void bide_target_hold_off(struct bide_target *target, int64_t until_ns, int64_t now_ns);

/* Returns an upper bound (164 us at least, else at most 25 % too high) of that quantile of the latency of recent
 * attempts; 0: too few samples (under 20); BIDE_NEVER: 3.7 s or longer, the range of the histogram. */
BIDE_API int64_t bide_target_latency_get(const struct bide_target *target, uint32_t permille);

/* Returns how many first attempts the gates admit now. Changes nothing and reserves nothing: an attempt that starts
 * later may find another state. While adaptive throttling or the ramp of the breaker admits a share of the attempts, it
 * is one: start it, and ask again. */
BIDE_API struct bide_admission bide_target_next(const struct bide_target *target, int64_t now_ns);

BIDE_END_DECLS
#endif
