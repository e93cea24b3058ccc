/* call.h - one logical call through a failing dependency: three events in, one verdict out.
 *
 *     begin ──► START ──► (the driver runs the attempt) ──► outcome ──► DONE
 *                 ▲                                             ├─────► GIVE_UP (why)
 *                 └───────────── wake ◄────────── WAIT ◄────────┘
 *
 * A call lives on the caller's stack, allocates nothing and takes no lock. It is used by one thread at a time; the
 * target behind it is shared. begin makes the call: it reads nothing of what was in that memory, so nothing needs to be
 * cleared before it, and beginning a call anew forgets the one that was there. Every other event is legal in every
 * state, also in a zeroed call that has not begun: one that comes late, twice or out of order is answered BIDE_NONE and
 * changes nothing. After DONE or GIVE_UP the call may die; before that, give it back with bide_call_cancel, which
 * returns its probe and its unspent token. */
#ifndef BIDE_CALL_H
#define BIDE_CALL_H

#include <bide/base.h>
#include <bide/outcome.h>
#include <bide/policy.h>
#include <bide/request.h>
#include <bide/target.h>
#include <bide/verdict.h>

BIDE_BEGIN_DECLS

/* Private: the fields are here so that it can live on the stack. */
struct bide_call {
    const struct bide_policy *policy;
    struct bide_target *target;
    uint64_t seed;
    int64_t deadline_ns;
    int64_t wake_ns;  /* when the wait ends, or the hedge is due */
    int64_t round_ns; /* when the first attempt of this round started */
    int64_t wait_ns;  /* the last wait of our own, for decorrelated jitter */
    union {
        uint32_t hedge_us[BIDE_HEDGES_MAX]; /* while attempts run: when each hedge started, after round_ns */
        uint32_t key_tick;                  /* while waiting: when the retry key was charged */
    };
    uint32_t attempt;    /* attempts started so far */
    uint32_t step;       /* backoff steps taken */
    uint32_t charge;     /* what the present retry was charged */
    uint32_t generation; /* breaker generation this round began in; of a probe, its lease too */
    uint32_t key;        /* retry key, folded */
    uint16_t flags;
    uint16_t owner; /* the target's owner when the call began */
    uint8_t state;
    uint8_t live; /* attempts of this round in flight, one bit each */
    uint8_t safety;
    uint8_t lane;
};

/* Begins a call. START, WAIT (the target is quiet and holds back first attempts) or GIVE_UP. The policy must have been
 * checked and must outlive the call, and so must the target; a NULL target means none of its gates. */
BIDE_API struct bide_verdict bide_call_begin(struct bide_call *call, const struct bide_policy *policy,
                                             struct bide_target *target, const struct bide_request *request,
                                             int64_t now_ns);

/* Attempt number `attempt` ended like this. */
BIDE_API struct bide_verdict bide_call_outcome(struct bide_call *call, uint32_t attempt,
                                               const struct bide_outcome *outcome, int64_t now_ns);

/* The timer fired. Early is harmless: the verdict says again when. */
BIDE_API struct bide_verdict bide_call_wake(struct bide_call *call, int64_t now_ns);

/* The safety of the request is known only now: for a driver that learns the method when it is about to be sent. Begin
 * with BIDE_SAFE, and tell before the first byte leaves. NONE; or GIVE_UP because the policy wants a key: then send
 * nothing. A hedge that this forbids is not planned any more (see wake_ns). */
BIDE_API struct bide_verdict bide_call_safety(struct bide_call *call, enum bide_safety safety, int64_t now_ns);

/* The caller wants no more of it. GIVE_UP the first time, NONE after the end. */
BIDE_API struct bide_verdict bide_call_cancel(struct bide_call *call, int64_t now_ns);

BIDE_END_DECLS
#endif
