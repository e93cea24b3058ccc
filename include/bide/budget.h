/* budget.h - how many retries may still be afforded towards one target.
 *
 * Per-call limits do not bound a fleet: when everything fails, every call uses all its attempts. A budget bounds the
 * sum. Three kinds behind one interface:
 *
 * TOKENS (default). A bucket. A retry takes some; a success puts a fraction of one back; a trickle keeps a quiet
 * client able to try. All state is one 64-bit word without pointers, so the same struct works on the stack, on the
 * heap and in memory shared between processes, and a process killed at any instruction leaves it usable. A full bucket
 * is only read, never written: in good times threads do not meet here.
 *
 * WINDOW. retries <= ratio * requests + reserve over a sliding window of ten slots; below min_volume requests every
 * retry is allowed. After a refusal, cooldown_ns without any.
 *
 * CONCURRENCY. Retries in flight (from the decision to the end) < max(ratio * calls in flight, reserve).
 *
 * A retry is charged atomically when it is decided, before its wait, and given back if it is never sent. Hedges pay
 * too. Tokens are counted in thousandths. */
#ifndef BIDE_BUDGET_H
#define BIDE_BUDGET_H

#include <bide/base.h>

BIDE_BEGIN_DECLS

enum bide_budget_kind {
    BIDE_BUDGET_TOKENS = 0,
    BIDE_BUDGET_WINDOW,
    BIDE_BUDGET_CONCURRENCY, /* private targets only: a killed process would leak its count */
    BIDE_BUDGET_NONE,        /* no limit: a finding for the linter */
};

enum bide_on_empty {
    BIDE_ON_EMPTY_REFUSE = 0, /* the retry is refused */
    BIDE_ON_EMPTY_OPEN,       /* the breaker opens too, so that first attempts stop as well */
};

#define BIDE_CAPACITY_MAX_MILLI 268435455u /* 2^28 - 1: what the word holds */
#define BIDE_FULL               UINT32_MAX

struct bide_budget_config {
    enum bide_budget_kind kind;
    enum bide_on_empty on_empty;

    /* tokens */
    uint32_t capacity_milli;          /* 0: no retry ever */
    uint32_t initial_milli;           /* BIDE_FULL: starts full */
    uint32_t cost_milli;              /* of a retry after a transient failure or a conflict, and of a hedge */
    uint32_t cost_throttled_milli;    /* of a retry after a throttled one */
    uint32_t cost_timeout_milli;      /* of a retry after one that timed out */
    uint32_t cost_failure_milli;      /* taken for each failure that could be retried, as far as there is (gRPC) */
    uint32_t threshold_milli;         /* a retry needs more than this left, after the failure's cost (gRPC: half) */
    uint32_t earn_success_milli;      /* earned by a call that succeeds */
    uint32_t earn_first_milli;        /* earned by each first attempt. Beware: it funds retries during an outage */
    uint32_t refill_per_minute_milli; /* the trickle */
    uint32_t refund_permille;         /* a call that succeeds after retries gets back this share of its last charge
                                        instead of earn_success (AWS: 1000) */
    /* window, concurrency */
    uint32_t ratio_ppm;  /* retries per request, in millionths */
    uint32_t reserve;    /* window: retries allowed on top. concurrency: the least limit */
    uint32_t min_volume; /* window: with fewer requests, every retry is allowed */
    int64_t window_ns;   /* its length, in ten slots; must be valid for the other kinds too */
    int64_t cooldown_ns; /* 0: none */
};

struct bide_target;

/* Thousandths of a retry that could be afforded now: tokens left; window: allowance less what was spent (a whole
 * number of retries), 0 while cooling down; concurrency likewise. Never negative. INT64_MAX where there is no limit:
 * BIDE_BUDGET_NONE, and a window below its min_volume. */
BIDE_API int64_t bide_budget_left_milli(const struct bide_target *target, int64_t now_ns);

/* Adds tokens, or takes them away as far as there are (a negative amount): for a lease from a fleet's budget, and for
 * `bide budget set`. Never above the capacity. Returns what was really added. Tokens only; 0 for other kinds. */
BIDE_API int64_t bide_budget_add_milli(struct bide_target *target, int64_t amount_milli, int64_t now_ns);

BIDE_END_DECLS
#endif
