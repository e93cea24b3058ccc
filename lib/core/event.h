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
extern bool core_long_way; /* tests set it: no event takes its short cut */
#else
#define core_long_way false
#endif

enum core_state { CORE_NEW = 0, CORE_HELD, CORE_RUNNING, CORE_WAITING, CORE_PARTING, CORE_OVER };

enum core_flag {
    CORE_CHARGED = 1u << 0, /* a charge is held, for a retry that has not started or (concurrency) for its run */
    CORE_CHARGE_SHIFT = 1,  /* two bits: the kind of budget that was charged last */
    CORE_KEY_TAKEN = 1u << 3,
    CORE_PAID = 1u << 4,      /* the last retry or hedge was charged */
    CORE_PROBE = 1u << 5,     /* this round is a probe of the breaker */
    CORE_IN_FLIGHT = 1u << 6, /* the attempts of this round are counted in flight */
    CORE_IN_CALLS = 1u << 7,  /* counted among the calls of a concurrency budget */
    CORE_CONFLICTED = 1u << 8,
    CORE_TRIED_ONCE = 1u << 9,
    CORE_SPREAD_AGAIN = 1u << 10,
    CORE_INNER = 1u << 11,   /* a caller above retries */
    CORE_STOPPED = 1u << 12, /* the server said not to retry */
    CORE_HINTED = 1u << 13,  /* an attempt of this round was told to wait: wake_ns says until when, no timer is set */
    CORE_BODY_GONE = 1u << 14,
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

CORE_INLINE bool core_has(const struct bide_call *c, uint32_t flag)
{
    return (c->flags & flag) != 0;
}

CORE_INLINE void core_set(struct bide_call *c, uint32_t flag)
{
    c->flags = (uint16_t)(c->flags | flag);
}

CORE_INLINE void core_clear(struct bide_call *c, uint32_t flag)
{
    c->flags = (uint16_t)(c->flags & ~flag);
}

static inline struct core_chance core_chance_for(const struct bide_call *c, enum core_purpose purpose)
{
    return (struct core_chance){c->seed, c->attempt, purpose};
}

CORE_INLINE uint32_t core_round_size(const struct bide_call *c)
{
    return c->live >> 4;
}

CORE_INLINE uint32_t core_in_flight(const struct bide_call *c)
{
    return c->live & 0xfu;
}

/* When the attempt at that place of the round started. */
CORE_INLINE int64_t core_started_ns(const struct bide_call *c, uint32_t place)
{
    return place == 0 ? c->round_ns : c->round_ns + (int64_t)c->hedge_us[place - 1] * BIDE_US;
}

static inline bool core_may_pass(enum bide_kind kind)
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
struct bide_verdict core_end(struct core_event *e, enum bide_action action, enum bide_reason reason);

CORE_INLINE struct bide_verdict core_give_up(struct core_event *e, enum bide_reason reason)
{
    return core_end(e, BIDE_GIVE_UP, reason);
}

CORE_INLINE struct bide_verdict core_wait_until(struct core_event *e, int64_t wake_ns, enum bide_reason reason)
{
    e->call->wake_ns = wake_ns;
    return core_verdict(e, BIDE_WAIT, reason);
}

/* ---- resources.c ---- */

/* A gate says no. True if that holds, false if the gate only observes. Counted in both cases. */
bool core_refuses(struct core_event *e, enum bide_gate gate);

/* Each takes what a retry or hedge needs, or says that it is refused. What is taken is held until the attempt starts.
 * */
bool core_take_charge(struct core_event *e, const struct bide_outcome *reason);
bool core_budget_refuses(struct core_event *e, const struct bide_outcome *o);
bool core_key_refuses(struct core_event *e, uint32_t *tick);

/* Counts one attempt more in flight, unless that is refused. */
bool core_flight_refuses(struct core_event *e);
void core_leave_flight(struct core_event *e, uint32_t attempts);

CORE_INLINE struct core_charge core_charge_of(const struct bide_call *c)
{
    return (struct core_charge){c->owner, (enum bide_budget_kind)(c->flags >> CORE_CHARGE_SHIFT & 3), c->charge};
}

/* The attempt starts: what it was charged is spent. */
void core_spend(struct bide_call *c);

/* What was taken comes back. */
void core_give_charge_back(struct core_event *e);
void core_give_key_back(struct core_event *e, uint32_t tick);

/* Our own side stopped an attempt before it went out: if it was the retry or hedge charged last, that comes back. */
void core_take_back(struct core_event *e, uint32_t attempt);

/* One attempt's vote on the breaker. There must be a target. */
void core_vote(struct core_event *e, enum core_vote ballot);

/* ---- judge.c ---- */

/* Does this hint tell us to wait? Under most rules a wait of 0 is as none. */
bool core_asks_to_wait(const struct bide_policy *p, const struct bide_hint *h);

/* Longer than the policy allows? */
bool core_is_too_long(const struct bide_policy *p, const struct bide_hint *h);

/* Does it tell us not to retry? */
bool core_forbids(const struct bide_policy *p, const struct bide_hint *h);

/* What is added to a wait that a server asked for, so that not everyone returns at once. */
int64_t core_upward_jitter(const struct bide_call *c, int64_t wait_ns, enum core_purpose purpose);

/* One step of our own backoff was taken, and this is the wait it gave. */
void core_take_step(struct bide_call *c, int64_t own_ns);

/* All attempts of the round have failed, the last one like this: shall there be another round? */
struct bide_verdict core_judge(struct core_event *e, const struct bide_outcome *o);

#endif
