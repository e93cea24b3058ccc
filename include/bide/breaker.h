/* breaker.h - the circuit breaker: stops requests to a dependency that is known to be down, and probes gently for its
 * recovery.
 *
 * CLOSED admits all attempts and gathers evidence: failures in a row, or the share of failures among the last n
 * attempts or the attempts of the last window_ns. Slow successes may count as failures. Enough evidence opens the
 * breaker.
 *
 * OPEN refuses all attempts for a time that is jittered (so that the clients do not return together) and grows with
 * each opening in a row. HALF_OPEN then admits a few probes. A probe holds a probe slot with an expiry and a
 * generation: the slot of a probe that never reports expires and goes to another call; a late result, or the result of
 * an attempt that began before the last change of state, never votes; a neutral outcome (cancelled, permanent,
 * conflict) frees the slot without a vote. When all probes have succeeded the breaker closes; a single failure opens it
 * again, for longer.
 *
 * After closing, traffic ramps up: the share of admitted attempts grows from a tenth to all of them over ramp_ns.
 * Openings count as in a row until the breaker has stayed closed for ramp_ns + open_max_ns.
 *
 * Votes, one per attempt: transient outcomes are failures, a success is healthy, all other outcomes are neutral (a
 * server that throttles is alive: hold-off, backoff and budget answer it). Neutral too, because they are no evidence
 * about the server: failures on the caller's own side (BIDE_FLAG_LOCAL), and attempts that the deadline of their call
 * cut before the usual latency of the target had passed. Holding the breaker by hand, and on_empty of a budget, work
 * with kind OFF too.
 *
 * State, generation, openings in a row and the time of the next or last change are one 64-bit word, changed by
 * compare-and-swap.
 *
 * Threads: all functions may be called from any thread and process that shares the target. */
#ifndef BIDE_BREAKER_H
#define BIDE_BREAKER_H

#include <bide/base.h>

BIDE_BEGIN_DECLS

enum bide_breaker_kind {
    BIDE_BREAKER_BY_TIME = 0, /* failures >= ratio of the attempts of the last window_ns */
    BIDE_BREAKER_BY_COUNT,    /* failures >= ratio of the last count_window attempts */
    BIDE_BREAKER_BY_RUN,      /* `consecutive` failures in a row */
    BIDE_BREAKER_OFF,
};

enum bide_breaker_state {
    BIDE_BREAKER_CLOSED = 0,
    BIDE_BREAKER_OPEN,
    BIDE_BREAKER_HALF_OPEN,
    BIDE_BREAKER_HELD_CLOSED, /* closed by hand: evidence does not open it until it is released */
    BIDE_BREAKER_HELD_OPEN,   /* opened by hand: time does not end it until it is released */
};

#define BIDE_PROBES_MAX       8u
#define BIDE_COUNT_WINDOW_MAX 256u

/* Final: its size will not change; room to grow is in struct bide_target_config. */
struct bide_breaker_config {
    enum bide_breaker_kind kind;
    uint32_t consecutive;          /* BY_RUN: failures in a row that open it */
    uint32_t ratio_permille;       /* BY_TIME, BY_COUNT: 1 to 1000 */
    uint32_t min_volume;           /* BY_TIME, BY_COUNT: attempts needed before the ratio counts; 1 or more */
    uint32_t count_window;         /* BY_COUNT: 1 to 256 */
    uint32_t open_growth_milli;    /* growth of the open time per opening in a row: 2000 doubles; 1000: constant */
    uint32_t open_jitter_permille; /* the open time varies by plus or minus this share; up to 900 */
    uint32_t probes;               /* 1 to 8 */
    int64_t window_ns;             /* BY_TIME */
    int64_t slow_ns;               /* a success that took this long counts as a failure; BIDE_NEVER: none does */
    int64_t open_ns;               /* how long it stays open the first time (before jitter) */
    int64_t open_max_ns;           /* growth stops here (before jitter) */
    int64_t probe_timeout_ns;      /* a probe that has not reported by then loses its slot */
    int64_t ramp_ns;               /* 0: all traffic at once */
};

/* The state of a breaker: see bide_target_get. */
struct bide_breaker_view {
    enum bide_breaker_state state;
    uint32_t generation; /* changes with every change of state */
    uint32_t openings;   /* in a row; 0 after it stayed closed */
    uint64_t openings_total;
    int64_t until_ns;      /* OPEN: when probing may begin; else 0 */
    uint64_t reserved_[1]; /* zero: room to grow */
};

struct bide_target;

enum bide_hold {
    BIDE_HOLD_RELEASE = 0, /* back to automatic: a held breaker becomes closed, any other is unchanged */
    BIDE_HOLD_CLOSED,
    BIDE_HOLD_OPEN,
};

/* Opens or closes the breaker by hand, or returns it to automatic operation. Takes effect with the next event. */
BIDE_API void bide_breaker_hold(struct bide_target *target, enum bide_hold hold);

/* Opens a closed breaker as enough evidence would: for news from another source (a health check). The seed jitters
 * the open time. Returns false if the breaker was not closed or is held, or if another thread changed it first. */
BIDE_API bool bide_breaker_trip(struct bide_target *target, uint64_t seed, int64_t now_ns);

/* Returns "closed", "half_open", ...; never NULL. */
BIDE_API const char *bide_breaker_state_label(enum bide_breaker_state state);

BIDE_END_DECLS
#endif
