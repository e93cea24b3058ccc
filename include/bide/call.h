/* call.h - one logical call to a dependency that may fail: events in, one verdict out.
 *
 *     begin ──► START ──► (the driver runs the attempt) ──► outcome ──► DONE
 *                 ▲                                             ├─────► GIVE_UP (reason)
 *                 └───────────── wake ◄────────── WAIT ◄────────┘
 *
 * A call lives on the caller's stack, allocates nothing and takes no lock. bide_call_begin initialises it: the memory
 * need not be cleared before, and beginning a call anew discards the earlier call. Every other event is legal in every
 * state, also in a zeroed call that has not begun: an event that comes late, twice or out of order returns NONE and
 * changes nothing. After DONE or GIVE_UP the memory may be reused; before that, end the call with bide_call_cancel,
 * which releases its probe slot and refunds its unspent charge.
 *
 * Threads: a call is used by one thread at a time; the target behind it is shared. */
#ifndef BIDE_CALL_H
#define BIDE_CALL_H

#include <bide/base.h>
#include <bide/outcome.h>
#include <bide/policy.h>
#include <bide/request.h>
#include <bide/target.h>
#include <bide/verdict.h>

BIDE_BEGIN_DECLS

/* Private: the fields are public only so that a call can live on the stack. Final: its size will not change. */
struct bide_call {
    const struct bide_policy *policy;
    struct bide_target *target;
    uint64_t seed;
    int64_t deadline_ns;
    int64_t wake_ns;  /* when the wait ends, or the hedge is due */
    int64_t round_ns; /* when the first attempt of this round started */
    int64_t wait_ns;  /* the last wait of our own backoff, for decorrelated jitter */
    union {
        uint32_t hedge_us[BIDE_HEDGES_MAX]; /* while attempts run: when each hedge started, after round_ns */
        uint32_t key_tick;                  /* while waiting: when the retry key was charged */
    };
    uint32_t attempt;    /* attempts started so far */
    uint16_t step;       /* backoff steps taken; 65535: or more */
    uint16_t waited;     /* all waits, each rounded up to the unit of waits_max_ns (judge.c) */
    uint32_t charge;     /* amount of the last charge */
    uint32_t generation; /* breaker generation in which this round began; for a probe, also its probe slot */
    uint32_t key;        /* retry key, folded to 32 bits */
    uint16_t flags;
    uint16_t owner; /* owner number of the target when the call began */
    uint8_t state;
    uint8_t live; /* attempts of this round in flight, one bit each; and the size of the round */
    uint8_t once; /* what a call does only once, and has done */
    uint8_t safety : 4;
    uint8_t lane : 4;
};

/* Begins a call. Returns START, GIVE_UP, or WAIT (a hold-off delays first attempts, or the policy waits for gates). The
 * policy must have been checked, and policy and target must outlive the call. NULL policy: BIDE_PRESET_SERVICE.
 * BIDE_NO_TARGET: none of the gates of a target apply. The engine keeps no table from which a NULL target could be
 * found; it must not mean "no limits" by mistake, so the call gives up, with BIDE_REASON_NO_TARGET. */
BIDE_API struct bide_verdict bide_call_begin(struct bide_call *call, const struct bide_policy *policy,
                                             struct bide_target *target, const struct bide_request *request,
                                             int64_t now_ns);

/* Reports the outcome of attempt number `attempt`. */
BIDE_API struct bide_verdict bide_call_outcome(struct bide_call *call, uint32_t attempt,
                                               const struct bide_outcome *outcome, int64_t now_ns);

/* Reports that the timer fired. An early call is harmless: the verdict repeats the time. */
BIDE_API struct bide_verdict bide_call_wake(struct bide_call *call, int64_t now_ns);

/* Sets the safety of the request, for a driver that learns the method only when the request is about to be sent: it
 * begins the call with BIDE_SAFE and calls this before the first byte leaves. Returns NONE, or GIVE_UP because the
 * policy requires an idempotency key: then send nothing. A hedge that the new safety forbids is no longer planned (see
 * wake_ns). */
BIDE_API struct bide_verdict bide_call_safety(struct bide_call *call, enum bide_safety safety, int64_t now_ns);

/* Ends the call at the request of the caller. Returns GIVE_UP the first time, NONE after the end. */
BIDE_API struct bide_verdict bide_call_cancel(struct bide_call *call, int64_t now_ns);

BIDE_END_DECLS
#endif
