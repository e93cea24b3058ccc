/* budget.h - the retry budget: how many retries towards a target are still allowed.
 *
 * Limits per call do not bound a fleet: when all calls fail, every call uses all its attempts. A budget bounds their
 * sum. Three kinds share an interface:
 *
 * TOKENS (default): a token bucket. A retry takes tokens; a success adds a fraction of a token; a refill over time lets
 * a client with little traffic retry too. The state is a single 64-bit word without pointers, so the same struct works
 * on the stack, on the heap and in memory shared between processes, and a process killed at any instruction leaves it
 * usable. A full bucket is only read, never written: while all calls succeed, threads do not contend for it.
 *
 * WINDOW: a sliding window of ten slots with retries <= ratio * requests + reserve; below min_volume requests every
 * retry is allowed. A refusal is followed by cooldown_ns without retries.
 *
 * CONCURRENCY: retries in flight (from the decision to the end) < max(ratio * calls in flight, reserve).
 *
 * A retry is charged atomically when it is decided, before its wait, and refunded if it is never sent. Hedges are
 * charged too. Tokens are counted in thousandths.
 *
 * Threads: all functions may be called from any thread and process that shares the target. */
#ifndef BIDE_BUDGET_H
#define BIDE_BUDGET_H

#include <bide/base.h>

BIDE_BEGIN_DECLS

enum bide_budget_kind {
    BIDE_BUDGET_TOKENS = 0,
    BIDE_BUDGET_WINDOW,
    BIDE_BUDGET_CONCURRENCY, /* private targets only: a killed process would leak its permits */
    BIDE_BUDGET_NONE,        /* no limit; `bide explain` warns about it */
};

enum bide_on_empty {
    BIDE_ON_EMPTY_REFUSE = 0, /* the retry is refused */
    BIDE_ON_EMPTY_OPEN,       /* the circuit breaker opens too, so that first attempts stop as well */
};

#define BIDE_CAPACITY_MAX_MILLI 268435455u /* 2^28 - 1: the level has 28 bits */
#define BIDE_FULL               UINT32_MAX

/* Final: its size will not change; room to grow is in struct bide_target_config. */
struct bide_budget_config {
    enum bide_budget_kind kind;
    enum bide_on_empty on_empty;

    /* tokens */
    uint32_t capacity_milli;          /* 0: no retry is ever allowed */
    uint32_t initial_milli;           /* BIDE_FULL: starts full */
    uint32_t cost_milli;              /* cost of a retry after a transient failure or a conflict, and of a hedge */
    uint32_t cost_throttled_milli;    /* cost of a retry after a throttled outcome */
    uint32_t cost_timeout_milli;      /* cost of a retry after a timeout */
    uint32_t cost_failure_milli;      /* removed for each retryable failure, as far as the bucket allows (gRPC) */
    uint32_t threshold_milli;         /* a retry needs more than this, after the cost of the failure (gRPC: half) */
    uint32_t earn_success_milli;      /* earned by a successful call */
    uint32_t earn_first_milli;        /* earned by each first attempt. Beware: it funds retries during an outage */
    uint32_t refill_per_minute_milli; /* refill over time */
    uint32_t refund_permille;         /* a call that succeeds after retries earns this share of its last charge instead
                                       * of earn_success (AWS: 1000) */
    /* window, concurrency */
    uint32_t ratio_ppm;  /* retries per request, in millionths */
    uint32_t reserve;    /* window: retries allowed on top. concurrency: the smallest limit */
    uint32_t min_volume; /* window: with fewer requests, every retry is allowed */
    int64_t window_ns;   /* length of the window, in ten slots; must be valid for the other kinds too */
    int64_t cooldown_ns; /* 0: none */
};

struct bide_target;

/* Adds tokens up to the capacity, or removes tokens down to 0 (a negative amount): for a lease from the budget of a
 * fleet, and for `bide budget set`. Returns the amount added (negative: removed); 0 for kinds other than tokens. */
BIDE_API int64_t bide_budget_add_milli(struct bide_target *target, int64_t amount_milli, int64_t now_ns);

BIDE_END_DECLS
#endif
