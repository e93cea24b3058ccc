/* event.h - shared by the files of the call: its states and flags, and the context of an event.
 *
 * call.c has the events, judge.c decides about a retry after a failure, resources.c acquires and releases the resources
 * of a call.
 *
 * Attempts go in rounds. A round is one attempt and the hedges beside it; the next round begins after a wait, when all
 * attempts of this round have failed. `live` holds the size of the round (high 4 bits) and one bit for each of its
 * attempts that is in flight (low 4 bits).
 *
 * Writers of a call: judge.c writes step, wait_ns, waited, key_tick, the flags of the last failure (THROTTLED,
 * TIMED_OUT), what is done once except LATE_WAKE, and with a WAIT also state and wake_ns. resources.c writes charge and
 * the flags of held resources (CHARGED, its kind and lease, PAID, KEY_CHARGED, IN_FLIGHT; it clears PROBE), and in
 * core_call_end state, live and wake_ns. call.c initialises all fields and writes everything else; its events change
 * state, live and wake_ns too, and clear IN_FLIGHT before a new round. */
#ifndef CORE_EVENT_H
#define CORE_EVENT_H

#include <bide/call.h>

#include "gates.h"

#define CORE_INLINE static inline __attribute__((always_inline))

/* The fast paths. A test build counts how often each is taken, so that a test can fail if it never takes one. */
enum core_fast_path { CORE_FAST_BEGIN, CORE_FAST_SUCCESS, CORE_FAST_FAILURE, CORE_FAST_WAKE, CORE_FAST_PATHS };

#ifdef BIDE_INJECT_CAS
extern bool core_force_slow_path; /* set by tests: no event takes its fast path */
extern _Thread_local uint64_t core_fast_paths_taken[CORE_FAST_PATHS];
#define core_count_fast_path(path) ((void)core_fast_paths_taken[path]++)
#else
#define core_force_slow_path       false
#define core_count_fast_path(path) ((void)0)
#endif

/* WAITING: for a retry that is charged. BLOCKED: a gate refused the retry and the policy waits for it; nothing is
 * charged until the wake. GIVING_UP: the last wait of a long poll. */
enum core_state { CORE_NEW = 0, CORE_BEGUN, CORE_RUNNING, CORE_WAITING, CORE_BLOCKED, CORE_GIVING_UP, CORE_ENDED };

/* What a call does only once (call.once). */
enum core_once {
    CORE_ONCE_CONFLICT = 1u << 0,  /* retries a conflict without a wait */
    CORE_ONCE_FLAGGED = 1u << 1,   /* retries an outcome with BIDE_FLAG_ONCE */
    CORE_ONCE_LATE_WAKE = 1u << 2, /* jitters a late wake again */
    CORE_ONCE_LAST_WAIT = 1u << 3, /* shortens a wait to fit before the deadline */
};

enum core_flag {
    CORE_CHARGED = 1u << 0,     /* a charge is held: for a retry that has not started, or (concurrency) while it runs */
    CORE_CHARGE_KIND_SHIFT = 1, /* two bits: the kind of budget of the last charge */
    CORE_KEY_CHARGED = 1u << 3, /* the retry key is charged, for a retry that has not started */
    CORE_PAID = 1u << 4,        /* the last retry or hedge was charged */
    CORE_PROBE = 1u << 5,       /* this round is a probe of the breaker */
    CORE_IN_FLIGHT = 1u << 6,   /* the attempts of this round are counted in flight */
    CORE_COUNTED_CALL = 1u << 7, /* counted among the calls of a concurrency budget */
    CORE_THROTTLED = 1u << 8,    /* the last failure was throttled; or it timed out: what a retry after it costs */
    CORE_TIMED_OUT = 1u << 9,
    CORE_INNER_LAYER = 1u << 11,     /* a caller above retries, so this layer does not */
    CORE_RETRY_FORBIDDEN = 1u << 12, /* the server forbade retries */
    CORE_ROUND_HINTED = 1u << 13,  /* the server asked for a wait in this round: wake_ns is its end, no timer is set */
    CORE_BODY_SPENT = 1u << 14,    /* the request body cannot be sent again */
    CORE_CHARGE_LEASED = 1u << 15, /* the tokens of the last charge were lent by a fleet */
};

/* The context of an event. target is NULL if the call has none, or if its memory now belongs to another target. hot is
 * the hot word of the target when the event began (without a target: that of a target without gates); observed collects
 * the gates that would have refused. */
struct core_event {
    struct bide_call *call;
    struct bide_target *target;
    int64_t now_ns;
    uint32_t hot;
    uint32_t observed;
};

/* ---- state of the call ---- */

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

/* Returns true the first time it is asked, and remembers it. */
CORE_INLINE bool core_first_time(struct bide_call *c, enum core_once what)
{
    bool first = !(c->once & what);
    c->once = (uint8_t)(c->once | what);
    return first;
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

/* Returns when the attempt at this place of the round started. */
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

/* Ends the call and releases all that it acquired. */
struct bide_verdict core_call_end(struct core_event *e, enum bide_action action, enum bide_reason reason);

CORE_INLINE struct bide_verdict core_call_give_up(struct core_event *e, enum bide_reason reason)
{
    return core_call_end(e, BIDE_ACTION_GIVE_UP, reason);
}

/* ---- waits ---- */

CORE_INLINE bool core_policy_waits_for_gates(const struct bide_policy *p)
{
    return p->when_refused == BIDE_WHEN_REFUSED_WAIT;
}

/* Returns the time that an attempt needs before the deadline to be useful. */
CORE_INLINE int64_t core_policy_attempt_min_ns(const struct bide_policy *p)
{
    int64_t least_ns = p->attempt_min_ns > 0 ? p->attempt_min_ns : p->connect_timeout_ns;
    return least_ns == BIDE_NEVER ? 1 : least_ns;
}

/* Returns the latest instant at which an attempt that begins can be useful. */
CORE_INLINE int64_t core_call_last_start_ns(const struct bide_call *c)
{
    return c->deadline_ns == BIDE_NEVER ? BIDE_NEVER : c->deadline_ns - core_policy_attempt_min_ns(c->policy);
}

/* Returns how long the call may still wait under a policy that limits the sum of its waits. */
int64_t core_call_waits_left_ns(const struct bide_call *c);

/* Counts a wait, which must fit, against that limit. */
void core_call_count_wait(struct bide_call *c, int64_t wait_ns);

CORE_INLINE bool core_policy_limits_waits(const struct bide_policy *p)
{
    return p->waits_max_ns != BIDE_NEVER;
}

/* Returns BIDE_REASON_NOTHING if the call may wait until wake_ns, or the reason why it must not. */
CORE_INLINE enum bide_reason core_call_check_wait(const struct core_event *e, int64_t wake_ns)
{
    const struct bide_call *c = e->call;
    if (wake_ns >= c->deadline_ns)
        return BIDE_REASON_DEADLINE_NEAR;
    if (core_policy_limits_waits(c->policy) && wake_ns - e->now_ns > core_call_waits_left_ns(c))
        return BIDE_REASON_WAITS_SPENT;
    return BIDE_REASON_NOTHING;
}

/* Returns the verdict WAIT and counts the wait, which core_call_check_wait has allowed. */
CORE_INLINE struct bide_verdict core_call_wait_until(struct core_event *e, int64_t wake_ns, enum bide_reason reason)
{
    if (core_policy_limits_waits(e->call->policy))
        core_call_count_wait(e->call, wake_ns - e->now_ns);
    e->call->wake_ns = wake_ns;
    return core_verdict(e, BIDE_ACTION_WAIT, reason);
}

/* ---- resources.c ---- */

/* Counts a refusal by the gate. Returns true if the refusal is enforced, false if the gate only observes. */
bool core_gate_refuse(struct core_event *e, enum bide_gate gate);

/* Charges the budget for a retry or hedge; returns false if the budget cannot afford it. Does not count that as a
 * refusal and ignores observe mode: for a caller that then calls core_call_charge_budget. There must be a target. */
bool core_call_try_charge_budget(struct bide_call *c, struct bide_target *t, const struct bide_outcome *outcome,
                                 int64_t now_ns);

/* Charge the budget, or the retry key, for a retry or hedge. They return true if it was charged, the gate only observes
 * or does not apply; false if it is refused. A charge is held, and can be refunded, until the attempt starts. */
bool core_call_charge_budget(struct core_event *e, const struct bide_outcome *o);
bool core_call_charge_key(struct core_event *e, uint32_t *tick);

/* Counts one more attempt in flight; returns false if the in-flight limit (bulkhead) refuses it. */
bool core_call_enter_in_flight(struct core_event *e);
void core_call_leave_in_flight(struct core_event *e, uint32_t attempts);

CORE_INLINE struct core_charge core_call_last_charge(const struct bide_call *c)
{
    return (struct core_charge){c->owner, (enum bide_budget_kind)(c->flags >> CORE_CHARGE_KIND_SHIFT & 3), c->charge,
                                core_has_flag(c, CORE_CHARGE_LEASED)};
}

/* The attempt starts: its charges are spent, and the end of the call no longer refunds them. Permits of a concurrency
 * budget stay held until the round ends. */
CORE_INLINE void core_call_commit_charges(struct bide_call *c)
{
    bool permits = core_call_last_charge(c).kind == BIDE_BUDGET_CONCURRENCY;
    core_clear_flag(c, permits ? CORE_KEY_CHARGED : CORE_KEY_CHARGED | CORE_CHARGED);
}

/* Refund the charge that the call holds, if any. */
void core_call_refund_budget(struct core_event *e);
void core_call_refund_key(struct core_event *e, uint32_t tick);

/* Our own side stopped an attempt before it was sent: refunds its charge if it was the last retry or hedge charged. */
void core_call_refund_unsent(struct core_event *e, uint32_t attempt);

/* Casts the vote of an attempt at the breaker. There must be a target. */
void core_call_vote(struct core_event *e, enum core_vote ballot);

/* ---- policy.c ---- */

/* The policy of a call that is begun without one: the preset `service`. */
extern const struct bide_policy core_policy_default;

/* ---- judge.c ---- */

/* Returns true if the hint demands a wait under this policy. Under most rules a wait of 0 counts as no hint. */
bool core_hint_requires_wait(const struct bide_policy *p, const struct bide_hint *h);

/* Returns true if the hint is longer than the policy allows. */
bool core_hint_is_too_long(const struct bide_policy *p, const struct bide_hint *h);

/* Returns true if the hint forbids a retry. */
bool core_hint_forbids_retry(const struct bide_policy *p, const struct bide_hint *h);

/* Draws the jitter that is added to a wait requested by a server, so that its clients do not all return at once. */
int64_t core_upward_jitter(const struct bide_call *c, int64_t wait_ns, enum core_purpose purpose);

/* Remembers of a failure what decides the cost of a retry after it. */
static inline void core_call_note_failure(struct bide_call *c, bool throttled, uint32_t flags)
{
    uint32_t rest = c->flags & ~(uint32_t)(CORE_THROTTLED | CORE_TIMED_OUT);
    c->flags =
        (uint16_t)(rest | (throttled ? CORE_THROTTLED : 0u) | (flags & BIDE_FLAG_TIMED_OUT ? CORE_TIMED_OUT : 0u));
}

/* Advances the backoff by a step, which gave this wait. Steps saturate. By then an exponential backoff is at its cap,
 * whatever its multiplier; a linear one stays at 65536 times its base. */
static inline void core_call_advance_backoff(struct bide_call *c, int64_t own_ns)
{
    if (c->step < UINT16_MAX)
        c->step++;
    c->wait_ns = own_ns;
}

/* A gate refused an attempt. The call gives up or, if the policy waits for gates, releases what it holds and waits:
 * until until_ns, or for its next backoff if that is not in the future. */
struct bide_verdict core_call_refused(struct core_event *e, enum bide_reason reason, int64_t until_ns);

/* Charges a retry that waited for a gate. Returns BIDE_REASON_NOTHING, or the reason of the refusal. */
enum bide_reason core_call_charge_blocked(struct core_event *e);

/* Decides about another round after all attempts of this round have failed; `o` is the last outcome. Charges the
 * retry. */
struct bide_verdict core_call_judge(struct core_event *e, const struct bide_outcome *o);

#endif
