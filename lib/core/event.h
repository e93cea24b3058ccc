/* event.h - what the files of the call share: its states and flags, and what one event sees.
 *
 * call.c has the events, judge.c the judgement after a failure, resources.c what a call holds of its target and gives back.
 *
 * Attempts go in rounds. A round is one attempt and the hedges beside it; the next round begins after a wait, when all
 * attempts of this one have failed. `live` holds the round's size (high half) and which of it are in flight (low). */
#ifndef CORE_EVENT_H
#define CORE_EVENT_H

#include <bide/call.h>

#include "gates.h"

#define CORE_INLINE static inline __attribute__((always_inline))

#ifdef BIDE_INJECT_CAS
extern bool core_force_slow_path; /* tests set it: no event takes its short cut */
#else
#define core_force_slow_path false
#endif

enum core_state { CORE_NEW = 0, CORE_BEGUN, CORE_RUNNING, CORE_WAITING, CORE_GIVING_UP, CORE_ENDED };

enum core_flag {
    CORE_CHARGED = 1u << 0,     /* a charge is held, for a retry that has not started or (concurrency) for its run */
    CORE_CHARGE_KIND_SHIFT = 1, /* two bits: the kind of budget that was charged last */
    CORE_KEY_CHARGED = 1u << 3,
    CORE_PAID = 1u << 4,         /* the last retry or hedge was charged */
    CORE_PROBE = 1u << 5,        /* this round is a probe of the breaker */
    CORE_IN_FLIGHT = 1u << 6,    /* the attempts of this round are counted in flight */
    CORE_COUNTED_CALL = 1u << 7, /* counted among the calls of a concurrency budget */
    CORE_CONFLICT_RETRIED = 1u << 8,
    CORE_ONCE_RETRIED = 1u << 9,
    CORE_REJITTERED = 1u << 10,
    CORE_INNER_LAYER = 1u << 11,     /* a caller above retries */
    CORE_RETRY_FORBIDDEN = 1u << 12, /* the server said not to retry */
    CORE_ROUND_HINTED =
        1u << 13, /* an attempt of this round was told to wait: wake_ns says until when, no timer is set */
    CORE_BODY_SPENT = 1u << 14,
};

/* What one event sees. target is NULL when there is none, or when its memory belongs to another by now. */
struct core_event {
    struct bide_call *call;
    struct bide_target *target;
    int64_t now_ns;
    uint32_t hot;
    uint32_t observed;
};

/* ---- the call's own state ---- */

CORE_INLINE bool core_has_flag(const struct bide_call *c, uint32_t flag)
{
    return (c->flags & flag) != 0;
}

CORE_INLINE void core_set_flag(struct bide_call *c, uint32_t flag)
{
    c->flags = (uint16_t)(c->flags | flag);
}

CORE_INLINE void core_clear_flag(struct bide_call *c, uint32_t flag)
{
    c->flags = (uint16_t)(c->flags & ~flag);
}

static inline struct core_random_key core_call_random_key(const struct bide_call *c, enum core_purpose purpose)
{
    return (struct core_random_key){c->seed, c->attempt, purpose};
}

CORE_INLINE uint32_t core_round_size(const struct bide_call *c)
{
    return c->live >> 4;
}

CORE_INLINE uint32_t core_round_in_flight(const struct bide_call *c)
{
    return c->live & 0xfu;
}

/* When the attempt at that place of the round started. */
CORE_INLINE int64_t core_attempt_started_ns(const struct bide_call *c, uint32_t place)
{
    return place == 0 ? c->round_ns : c->round_ns + (int64_t)c->hedge_us[place - 1] * BIDE_US;
}

static inline bool core_kind_is_retryable(enum bide_kind kind)
{
    return kind == BIDE_KIND_TRANSIENT || kind == BIDE_KIND_THROTTLED || kind == BIDE_KIND_CONFLICT;
}

/* ---- verdicts ---- */

CORE_INLINE struct bide_verdict core_verdict(const struct core_event *e, enum bide_action action,
                                             enum bide_reason reason)
{
    return (struct bide_verdict){.action = action,
                                 .reason = reason,
                                 .attempt = e->call->attempt,
                                 .observed = e->observed,
                                 .wake_ns = e->call->wake_ns,
                                 .attempt_deadline_ns = BIDE_NEVER,
                                 .connect_deadline_ns = BIDE_NEVER};
}

/* The call ends: everything it holds is given back. */
struct bide_verdict core_call_end(struct core_event *e, enum bide_action action, enum bide_reason reason);

CORE_INLINE struct bide_verdict core_call_give_up(struct core_event *e, enum bide_reason reason)
{
    return core_call_end(e, BIDE_GIVE_UP, reason);
}

CORE_INLINE struct bide_verdict core_call_wait_until(struct core_event *e, int64_t wake_ns, enum bide_reason reason)
{
    e->call->wake_ns = wake_ns;
    return core_verdict(e, BIDE_WAIT, reason);
}

/* ---- resources.c ---- */

/* A gate says no. True if that holds, false if the gate only observes. Counted in both cases. */
bool core_gate_refuse(struct core_event *e, enum bide_gate gate);

/* Each takes what a retry or hedge needs, or says that it is refused. What is taken is held until the attempt starts.
 * */
bool core_call_try_charge_budget(struct core_event *e, const struct bide_outcome *outcome);
bool core_call_charge_budget(struct core_event *e, const struct bide_outcome *o);
bool core_call_charge_key(struct core_event *e, uint32_t *tick);

/* Counts one attempt more in flight, unless that is refused. */
bool core_call_enter_in_flight(struct core_event *e);
void core_call_leave_in_flight(struct core_event *e, uint32_t attempts);

CORE_INLINE struct core_charge core_call_last_charge(const struct bide_call *c)
{
    return (struct core_charge){c->owner, (enum bide_budget_kind)(c->flags >> CORE_CHARGE_KIND_SHIFT & 3), c->charge};
}

/* The attempt starts: what it was charged is spent. */
void core_call_commit_charges(struct bide_call *c);

/* What was taken comes back. */
void core_call_refund_budget(struct core_event *e);
void core_call_refund_key(struct core_event *e, uint32_t tick);

/* Our own side stopped an attempt before it went out: if it was the retry or hedge charged last, that comes back. */
void core_call_refund_unsent(struct core_event *e, uint32_t attempt);

/* One attempt's vote on the breaker. There must be a target. */
void core_call_vote(struct core_event *e, enum core_vote ballot);

/* ---- judge.c ---- */

/* Does this hint tell us to wait? Under most rules a wait of 0 is as none. */
bool core_hint_requires_wait(const struct bide_policy *p, const struct bide_hint *h);

/* Longer than the policy allows? */
bool core_hint_is_too_long(const struct bide_policy *p, const struct bide_hint *h);

/* Does it tell us not to retry? */
bool core_hint_forbids_retry(const struct bide_policy *p, const struct bide_hint *h);

/* What is added to a wait that a server asked for, so that not everyone returns at once. */
int64_t core_upward_jitter(const struct bide_call *c, int64_t wait_ns, enum core_purpose purpose);

/* One step of our own backoff was taken, and this is the wait it gave. */
void core_call_advance_backoff(struct bide_call *c, int64_t own_ns);

/* All attempts of the round have failed, the last one like this: shall there be another round? */
struct bide_verdict core_call_judge(struct core_event *e, const struct bide_outcome *o);

#endif
