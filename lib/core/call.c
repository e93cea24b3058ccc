/* call.c - the state machine of one call: one function per event (begin, outcome, wake, safety, cancel).
 *
 * States: NEW -> BEGUN -> RUNNING -> WAITING -> RUNNING -> ... -> ENDED. A call waits in BEGUN only while a hold-off or
 * a gate delays its first attempt, and in BLOCKED while a gate delays a retry. GIVING_UP -> ENDED is the last wait of a
 * long poll with an empty budget.
 *
 * An outcome is first recorded at the target (breaker, throttle, latency, cost of a failure, hold-off); after a failure
 * judge.c then decides about a retry. event.h explains rounds, flags and struct core_event; resources.c acquires and
 * releases the resources of a call.
 *
 * begin, outcome and wake have a fast path for the usual case: no optional gate is configured, the breaker is calm, the
 * round is a single attempt. The slow paths are kept out of line. Both give the same verdicts and leave the target in
 * the same state: the property tests compare the verdicts of every random world on both (core_force_slow_path). Which
 * settings of a target exclude a fast path is in one table, CORE_HOT_LIST in gates.h. */
#include <bide/backoff.h>

#include "bits.h"
#include "event.h"
#include "saturate.h"

#define OUT_OF_LINE static __attribute__((noinline))

/* The gates of the policy: KEY excludes the fast path of begin (require_key); REPEAT, HINT and LAYER that of a failure
 * (unsafe requests, hints, CORE_INNER_LAYER). None of the four applies to a success or a wake. */
_Static_assert(BIDE_POLICY_GATES == (BIDE_GATE_KEY | BIDE_GATE_REPEAT | BIDE_GATE_HINT | BIDE_GATE_LAYER),
               "a new gate of the policy must be entered into the conditions of the fast paths");

#define LATE_NS BIDE_S /* a wake later than this means a suspended machine or a stalled process: jitter again */

static inline struct core_event event_on_target(struct bide_call *c, struct bide_target *t, int64_t now_ns)
{
    uint32_t no_gates = BIDE_BREAKER_OFF | (uint32_t)BIDE_BUDGET_NONE << CORE_HOT_BUDGET_KIND_SHIFT;
    return (struct core_event){.call = c, .target = t, .now_ns = now_ns, .hot = t ? core_hot(t) : no_gates};
}

static inline struct core_event event_of_call(struct bide_call *c, int64_t now_ns)
{
    bool is_ours = c->target && core_owner(c->target) == c->owner;
    return event_on_target(c, is_ours ? c->target : NULL, now_ns);
}

static int64_t call_timer(const struct bide_call *c)
{
    return core_has_flag(c, CORE_ROUND_HINTED) ? BIDE_NEVER : c->wake_ns;
}

/* The verdict NONE, for an event that is late, repeated or early and changes nothing. */
static struct bide_verdict call_none_verdict(const struct bide_call *c)
{
    bool waits = c->state != CORE_NEW && c->state != CORE_ENDED;
    return (struct bide_verdict){.attempt = c->attempt,
                                 .wake_ns = waits ? call_timer(c) : BIDE_NEVER,
                                 .attempt_deadline_ns = BIDE_NEVER,
                                 .connect_deadline_ns = BIDE_NEVER};
}

/* ---- rounds ---- */

#define ROUND_ONE_RUNNING 0x11 /* a round of one attempt, which is in flight */
#define ROUND_ONE_ENDED   0x10 /* ... which has ended */

/* Returns the attempt's bit in `live` if it is in flight, else 0. */
CORE_INLINE uint32_t round_live_bit(const struct bide_call *c, uint32_t attempt)
{
    uint32_t first = c->attempt - core_round_size(c) + 1, place = attempt - first;
    return place < core_round_size(c) ? core_round_in_flight(c) & 1u << place : 0;
}

static void round_begin(struct bide_call *c, int64_t now_ns)
{
    core_assert(core_round_in_flight(c) == 0);
    c->round_ns = now_ns;
    c->live = ROUND_ONE_RUNNING;
    c->attempt++;
}

/* Adds a hedge at the next place of the round. */
static void round_add_hedge(struct bide_call *c, int64_t now_ns)
{
    uint32_t place = core_round_size(c);
    core_assert(place >= 1 && place <= BIDE_HEDGES_MAX && core_round_in_flight(c) != 0);
    c->hedge_us[place - 1] = (uint32_t)core_min((now_ns - c->round_ns) / BIDE_US, UINT32_MAX);
    c->live = (uint8_t)((place + 1) << 4 | core_round_in_flight(c) | 1u << place);
    c->attempt++;
}

/* ---- starting attempts ---- */

/* Adaptive throttling (load shedding): counts the attempt as requested; returns true if it is refused here, to spare
 * the server. A call that waits for gates will request the attempt again: it is counted when it is admitted, and drawn
 * anew after each wait. */
static bool call_shed_load(struct core_event *e)
{
    struct bide_call *c = e->call;
    struct core_random_key key = core_call_random_key(c, CORE_FOR_THROTTLE);
    bool waits = core_policy_waits_for_gates(c->policy);
    if (waits)
        key.draw ^= (uint32_t)c->step << 16;
    if (!(e->hot & CORE_HOT_THROTTLE) || core_throttle_admit(e->target, c->lane, key, e->now_ns) ||
        !core_gate_refuse(e, BIDE_GATE_THROTTLE))
        return false;
    if (waits)
        core_throttle_forget_attempt(e->target, c->lane);
    return true;
}

static struct core_refusal call_admit_by_breaker(struct core_event *e)
{
    struct bide_call *c = e->call;
    uint64_t word = core_load(&e->target->breaker);
    struct core_admission a = {.ticket = core_breaker_generation(word)};
    if (!CORE_BREAKER_CALM(word))
        a = core_breaker_admit(e->target, c->seed, e->now_ns);
    c->generation = a.ticket;
    if (a.probe)
        core_set_flag(c, CORE_PROBE);
    if (a.refused.reason != BIDE_REASON_NOTHING && !core_gate_refuse(e, BIDE_GATE_BREAKER))
        a.refused = (struct core_refusal){0};
    return a.refused;
}

/* Decides whether the first attempt of a round may start, and acquires a probe slot and an in-flight permit where
 * needed. */
static struct core_refusal call_admit(struct core_event *e)
{
    if (!e->target)
        return (struct core_refusal){0};
    if (call_shed_load(e))
        return (struct core_refusal){.reason = BIDE_REASON_THROTTLE};
    struct core_refusal refused = call_admit_by_breaker(e);
    if (refused.reason == BIDE_REASON_NOTHING && e->hot & CORE_HOT_IN_FLIGHT && !core_call_enter_in_flight(e))
        refused.reason = BIDE_REASON_IN_FLIGHT_FULL; /* core_call_refused releases a probe slot claimed above */
    return refused;
}

static void call_record_first(struct core_event *e)
{
    if (!(e->hot & CORE_HOT_COUNTS_FIRST))
        return;
    if (core_hot_budget_kind(e->hot) != BIDE_BUDGET_CONCURRENCY) {
        core_budget_record_first(e->target, e->call->lane, e->now_ns);
        return;
    }
    if (core_permit_acquire(&e->target->calls, e->call->owner, CORE_PERMITS_MAX))
        core_set_flag(e->call, CORE_COUNTED_CALL);
}

static bool call_may_hedge(const struct bide_call *c)
{
    const struct bide_policy *p = c->policy;
    return core_round_size(c) <= p->hedges_max && c->attempt < p->attempts_max && c->safety != BIDE_UNSAFE &&
           !core_has_flag(c, CORE_PROBE | CORE_INNER_LAYER | CORE_RETRY_FORBIDDEN);
}

/* Returns when the next hedge of this round is due; BIDE_NEVER if none may start. */
static int64_t call_hedge_due_ns(const struct core_event *e)
{
    const struct bide_policy *p = e->call->policy;
    int64_t delay = 0;
    if (p->hedges_max == 0 || !call_may_hedge(e->call))
        return BIDE_NEVER;
    if (p->hedge_quantile_permille > 0 && e->target)
        delay = bide_target_latency_get(e->target, p->hedge_quantile_permille);
    int64_t due = core_sum(e->now_ns, delay > 0 ? delay : p->hedge_delay_ns);
    return due < e->call->deadline_ns ? due : BIDE_NEVER;
}

static struct bide_verdict call_commit_start(struct core_event *e, enum bide_reason reason)
{
    struct bide_call *c = e->call;
    core_call_commit_charges(c);
    c->state = CORE_RUNNING;
    c->wake_ns = call_hedge_due_ns(e);
    struct bide_verdict v = core_verdict(e, BIDE_ACTION_START, reason);
    v.attempt_deadline_ns = core_capped_sum(e->now_ns, c->policy->attempt_timeout_ns, c->deadline_ns);
    v.connect_deadline_ns = core_capped_sum(e->now_ns, c->policy->connect_timeout_ns, v.attempt_deadline_ns);
    return v;
}

static struct bide_verdict call_start(struct core_event *e)
{
    struct bide_call *c = e->call;
    struct core_refusal refused = call_admit(e);
    if (refused.reason != BIDE_REASON_NOTHING)
        return core_call_refused(e, refused.reason, refused.until_ns);
    if (c->attempt == 0)
        call_record_first(e);
    round_begin(c, e->now_ns);
    return call_commit_start(e, c->attempt == 1 ? BIDE_REASON_FIRST_ATTEMPT : BIDE_REASON_RETRY);
}

/* Waits until the hold-off of the target ends, plus upward jitter; gives up if the call may not wait that long. */
static struct bide_verdict call_wait_hold_off(struct core_event *e, int64_t until_ns)
{
    core_assert(until_ns > e->now_ns && e->call->state != CORE_RUNNING && e->call->state != CORE_ENDED);
    if (core_policy_waits_for_gates(e->call->policy))
        return core_call_refused(e, BIDE_REASON_HOLD_OFF, until_ns);
    int64_t wake = core_sum(until_ns, core_upward_jitter(e->call, until_ns - e->now_ns, CORE_FOR_HOLD_OFF));
    enum bide_reason refused = core_call_check_wait(e, wake);
    if (refused != BIDE_REASON_NOTHING)
        return core_call_give_up(e, refused);
    return core_call_wait_until(e, wake, BIDE_REASON_HOLD_OFF);
}

/* ---- event: begin ---- */

static bool request_is_inner(const struct bide_policy *p, const struct bide_request *r)
{
    return p->layer == BIDE_LAYER_NEVER || r->inbound.no_retry ||
           (p->layer == BIDE_LAYER_OUTERMOST && r->inbound.attempt > 1);
}

static uint8_t safety_normalize(enum bide_safety safety)
{
    return (unsigned)safety <= BIDE_KEYED ? (uint8_t)safety : BIDE_UNSAFE;
}

static bool call_lacks_key(const struct bide_call *c)
{
    return c->policy->require_key && c->safety != BIDE_SAFE && c->safety != BIDE_KEYED;
}

/* Folds a retry key to 32 bits. It is mixed first, because callers may use small numbers; 0 means no key. */
static uint32_t retry_key_fold(uint64_t key)
{
    return key == 0 ? 0 : (uint32_t)core_mix(key) | 1;
}

/* Assigns field by field: for a struct literal the compiler would first clear all of it. */
CORE_INLINE void call_prepare(struct bide_call *c, const struct bide_request *r)
{
    c->seed = r->seed;
    c->deadline_ns = r->deadline_ns == 0 ? BIDE_NEVER : core_max(r->deadline_ns, 0);
    c->wake_ns = BIDE_NEVER;
    c->round_ns = 0;
    c->wait_ns = 0;
    for (uint32_t i = 0; i < BIDE_HEDGES_MAX; i++)
        c->hedge_us[i] = 0;
    c->attempt = 0;
    c->step = 0;
    c->waited = 0;
    c->charge = 0;
    c->generation = 0;
    c->key = 0;
    c->flags = 0;
    c->state = CORE_BEGUN;
    c->live = 0;
    c->once = 0;
    c->safety = safety_normalize(r->safety) & 3;
    c->lane = r->lane % BIDE_LANES & 7;
}

OUT_OF_LINE struct bide_verdict begin_slow(struct bide_call *call, const struct bide_request *request, int64_t now_ns)
{
    struct core_event e = event_on_target(call, call->target, now_ns);
    if (e.hot & CORE_HOT_KEYS)
        call->key = retry_key_fold(request->retry_key);
    if (call_lacks_key(call) && core_gate_refuse(&e, BIDE_GATE_KEY))
        return core_call_give_up(&e, BIDE_REASON_KEY_REQUIRED);
    if (now_ns >= call->deadline_ns)
        return core_call_give_up(&e, BIDE_REASON_DEADLINE);
    int64_t hold_off_ns = e.hot & CORE_HOT_HOLD_OFF_FIRST ? core_hold_off_until(e.target, now_ns) : 0;
    return hold_off_ns > 0 ? call_wait_hold_off(&e, hold_off_ns) : call_start(&e);
}

/* Starts a round of one attempt. The caller has checked that no gate applies and that nothing is to be counted. */
CORE_INLINE struct bide_verdict start_fast(struct bide_call *c, uint64_t breaker, enum bide_reason reason,
                                           int64_t now_ns)
{
    const struct bide_policy *p = c->policy;
    c->generation = core_breaker_generation(breaker);
    c->round_ns = now_ns;
    c->wake_ns = BIDE_NEVER;
    c->live = ROUND_ONE_RUNNING;
    c->state = CORE_RUNNING;
    int64_t attempt_by_ns = core_capped_sum(now_ns, p->attempt_timeout_ns, c->deadline_ns);
    return (struct bide_verdict){.action = BIDE_ACTION_START,
                                 .reason = reason,
                                 .attempt = ++c->attempt,
                                 .wake_ns = BIDE_NEVER,
                                 .attempt_deadline_ns = attempt_by_ns,
                                 .connect_deadline_ns = core_capped_sum(now_ns, p->connect_timeout_ns, attempt_by_ns)};
}

CORE_INLINE void begin_set_policy(struct bide_call *call, const struct bide_policy *policy,
                                  const struct bide_request *request, int64_t now_ns)
{
    call->policy = policy;
    call_prepare(call, request);
    call->deadline_ns = core_capped_sum(now_ns, policy->call_timeout_ns, call->deadline_ns);
    if (request_is_inner(policy, request))
        core_set_flag(call, CORE_INNER_LAYER);
}

OUT_OF_LINE struct bide_verdict begin_without_target(struct bide_call *call, const struct bide_policy *policy,
                                                     bool is_wanted, const struct bide_request *request, int64_t now_ns)
{
    call->target = NULL;
    call->owner = 0;
    begin_set_policy(call, policy, request, now_ns);
    struct core_event e = event_on_target(call, NULL, now_ns);
    return is_wanted ? begin_slow(call, request, now_ns) : core_call_give_up(&e, BIDE_REASON_NO_TARGET);
}

/* Fast path: no gate is active at the start, the breaker is calm (closed, no recent opening), no key is required and
 * hedging is off. Gives the same verdict as begin_slow. */
struct bide_verdict bide_call_begin(struct bide_call *call, const struct bide_policy *policy,
                                    struct bide_target *target, const struct bide_request *request, int64_t now_ns)
{
    if (!policy)
        policy = &core_policy_default;
    if ((uintptr_t)target + 1 <= 1) /* NULL, or BIDE_NO_TARGET */
        return begin_without_target(call, policy, target == BIDE_NO_TARGET, request, now_ns);
    call->target = target;
    call->owner = core_owner(target);
    begin_set_policy(call, policy, request, now_ns);
    uint64_t breaker = core_load(&target->breaker);
    bool gates = core_hot(target) & CORE_HOT_NO_FAST_BEGIN || !CORE_BREAKER_CALM(breaker);
    if (core_force_slow_path || gates || policy->require_key || policy->hedges_max > 0 || now_ns >= call->deadline_ns)
        return begin_slow(call, request, now_ns);
    core_assert(call->state == CORE_BEGUN && call->live == 0);
    core_count_fast_path(CORE_FAST_BEGIN);
    return start_fast(call, breaker, BIDE_REASON_FIRST_ATTEMPT, now_ns);
}

/* ---- event: outcome, recorded at the target ---- */

static enum bide_kind outcome_kind_for_call(const struct bide_call *c, const struct bide_outcome *o)
{
    bool still_running = o->flags & BIDE_FLAG_KEY_409 && c->safety == BIDE_KEYED;
    return o->kind == BIDE_KIND_PERMANENT && still_running ? BIDE_KIND_TRANSIENT : o->kind;
}

static bool attempt_was_slow(const struct core_event *e, int64_t latency_ns)
{
    struct bide_breaker_config c;
    core_breaker_config(e->target, &c);
    return latency_ns >= c.slow_ns;
}

/* Timeouts of client libraries count in whole milliseconds, rounded down once or twice: an attempt that the deadline
 * limits may end this much before it. */
#define CUT_EARLY_NS (2 * BIDE_MS)

/* Returns true if the outcome is a failure, but no evidence against the server: it happened on the caller's own side,
 * or the deadline of the call cut the attempt before the server's usual latency had passed. */
static bool failure_is_no_evidence(const struct core_event *e, const struct bide_outcome *o, int64_t latency_ns)
{
    const struct bide_call *c = e->call;
    if (o->kind == BIDE_KIND_OK)
        return false;
    if (o->flags & BIDE_FLAG_LOCAL)
        return true;
    bool cut = o->flags & BIDE_FLAG_TIMED_OUT && e->now_ns >= c->deadline_ns - CUT_EARLY_NS;
    return cut && core_usual_excuses_cut(e->target, latency_ns, core_has_flag(c, CORE_PROBE), e->now_ns);
}

static enum core_vote vote_for_outcome(const struct core_event *e, enum bide_kind kind, int64_t latency_ns)
{
    if (kind == BIDE_KIND_OK)
        return e->hot & CORE_HOT_SLOW_IS_FAILURE && attempt_was_slow(e, latency_ns) ? CORE_VOTE_FAILURE
                                                                                    : CORE_VOTE_HEALTHY;
    return kind == BIDE_KIND_TRANSIENT ? CORE_VOTE_FAILURE : CORE_VOTE_NEUTRAL;
}

/* Publishes a hint as the hold-off of the target, but only if this call itself would wait the full hinted time before a
 * retry. Under the clamp rule, and with a hint that is too long, it would not. */
static void target_record_hold_off(struct core_event *e, const struct bide_outcome *o)
{
    const struct bide_policy *p = e->call->policy;
    if (core_kind_is_retryable(o->kind) && p->hint_rule != BIDE_HINT_RULE_CLAMP &&
        core_hint_requires_wait(p, &o->hint) && !core_hint_is_too_long(p, &o->hint))
        bide_target_hold_off(e->target, core_sum(e->now_ns, o->hint.wait_ns), e->now_ns);
}

/* Ends the hold-off after the success of an attempt that started when or after the hold-off was requested; a success of
 * an earlier attempt proves nothing. The race is with a call that requests a hold-off: it stores hold_off_asked_ns
 * first, then swaps hold_off_ns. This side loads in the opposite order, with acquire, so hold_off_asked_ns is at least
 * as new as the hold_off_ns seen here; a later request that extends the hold-off changes hold_off_ns, so this CAS
 * fails. */
static void target_end_hold_off(struct core_event *e, int64_t began_ns)
{
    uint64_t hold_off_ns = core_load_acquire(&e->target->hold_off_ns);
    if (began_ns >= (int64_t)core_load(&e->target->hold_off_asked_ns))
        (void)core_cas(&e->target->hold_off_ns, &hold_off_ns, 0); /* failed: another call extended the hold-off */
}

/* Updates the counts of the throttle: attempts that the server accepted, or that were no evidence about it. */
static void throttle_record_outcome(struct core_event *e, const struct bide_outcome *o, bool no_evidence)
{
    bool accepted = o->kind == BIDE_KIND_OK || o->kind == BIDE_KIND_PERMANENT || o->kind == BIDE_KIND_CONFLICT;
    if (no_evidence)
        core_throttle_forget_attempt(e->target, e->call->lane);
    else if (accepted && o->evidence != BIDE_EVIDENCE_NOT_SENT)
        core_throttle_record_accept(e->target, e->call->lane);
}

/* Updates the optional state of the target: latency histogram, the cost of a failure. */
static void target_record_optional(struct core_event *e, const struct bide_outcome *o, int64_t latency_ns)
{
    if (e->hot & CORE_HOT_LATENCY && o->kind == BIDE_KIND_OK)
        core_latency_record(e->target, latency_ns);
    bool counts = core_kind_is_retryable(o->kind) ||
                  (o->kind == BIDE_KIND_PERMANENT && core_hint_forbids_retry(e->call->policy, &o->hint));
    if (e->hot & CORE_HOT_COST_FAILURE && counts)
        core_budget_charge_failure(e->target, e->now_ns);
}

/* Records the outcome of an attempt at the target. */
static void target_record_outcome(struct core_event *e, const struct bide_outcome *o, int64_t latency_ns)
{
    bool no_evidence = failure_is_no_evidence(e, o, latency_ns);
    if (o->kind == BIDE_KIND_OK && core_usual_may_sample(e->target, e->hot, e->now_ns))
        core_usual_sample(e->target, latency_ns, e->now_ns); /* before the vote, which begins the slot */
    core_call_vote(e, no_evidence ? CORE_VOTE_NEUTRAL : vote_for_outcome(e, o->kind, latency_ns));
    if (e->hot & CORE_HOT_THROTTLE)
        throttle_record_outcome(e, o, no_evidence);
    target_record_optional(e, o, latency_ns);
    if (o->kind != BIDE_KIND_OK)
        target_record_hold_off(e, o);
    else if (core_load(&e->target->hold_off_ns) != 0)
        target_end_hold_off(e, e->now_ns - latency_ns);
}

/* Ends an attempt of the round: leaves the in-flight count and records the outcome. */
static void attempt_end(struct core_event *e, uint32_t bit, const struct bide_outcome *o)
{
    struct bide_call *c = e->call;
    core_assert(c->state == CORE_RUNNING && core_popcount(bit) == 1 && c->live & bit);
    core_call_leave_in_flight(e, 1);
    if (e->target)
        target_record_outcome(e, o, e->now_ns - core_attempt_started_ns(c, (uint32_t)__builtin_ctz(bit)));
    c->live = (uint8_t)(c->live & ~bit);
}

/* ---- event: outcome, the next action ---- */

static struct bide_verdict call_succeed(struct core_event *e, uint32_t attempt)
{
    struct bide_call *c = e->call;
    bool paid = core_has_flag(c, CORE_PAID) && core_call_last_charge(c).kind == BIDE_BUDGET_TOKENS;
    if (e->hot & CORE_HOT_LEASED)
        core_budget_record_success(e->target, c->lane, paid ? c->charge : 0);
    else if (core_hot_budget_kind(e->hot) == BIDE_BUDGET_TOKENS)
        core_budget_credit_success(e->target, paid ? c->charge : 0);
    struct bide_verdict v = core_call_end(e, BIDE_ACTION_DONE, BIDE_REASON_SUCCEEDED);
    v.attempt = attempt;
    return v;
}

/* Other attempts of the round are in flight and may succeed: the verdict is NONE. The hint to this attempt holds for
 * the whole round: no hedge starts any more once the server asked for time or forbade retries, or the body is spent. */
static struct bide_verdict call_wait_for_siblings(struct core_event *e, const struct bide_outcome *o)
{
    struct bide_call *c = e->call;
    if (core_has_flag(c, CORE_RETRY_FORBIDDEN | CORE_BODY_SPENT) && !core_has_flag(c, CORE_ROUND_HINTED))
        c->wake_ns = BIDE_NEVER;
    if (core_kind_is_retryable(o->kind) && core_hint_requires_wait(c->policy, &o->hint)) {
        int64_t until_ns = core_sum(e->now_ns, o->hint.wait_ns);
        c->wake_ns = core_has_flag(c, CORE_ROUND_HINTED) ? core_max(c->wake_ns, until_ns) : until_ns;
        core_set_flag(c, CORE_ROUND_HINTED);
    }
    struct bide_verdict v = core_verdict(e, BIDE_ACTION_NONE, BIDE_REASON_NOTHING);
    v.wake_ns = call_timer(c);
    return v;
}

/* Returns the longest wait that the server requested from the attempts of this round. */
static struct bide_hint round_hint(struct core_event *e, struct bide_hint last)
{
    struct bide_call *c = e->call;
    struct bide_hint earlier = {BIDE_HINT_WAIT, core_max(0, c->wake_ns - e->now_ns)};
    bool longer = core_has_flag(c, CORE_ROUND_HINTED) &&
                  (!core_hint_requires_wait(c->policy, &last) || earlier.wait_ns > last.wait_ns);
    core_clear_flag(c, CORE_ROUND_HINTED);
    return longer ? earlier : last;
}

static struct bide_verdict call_give_up_on(struct core_event *e, uint32_t attempt, enum bide_reason reason)
{
    struct bide_verdict v = core_call_give_up(e, reason);
    v.attempt = attempt;
    return v;
}

static struct bide_verdict call_handle_failure(struct core_event *e, uint32_t attempt, struct bide_outcome *o)
{
    struct bide_call *c = e->call;
    bool cancelled = o->kind == BIDE_KIND_CANCELLED;
    if (!core_kind_is_retryable(o->kind) && !cancelled)
        return call_give_up_on(e, attempt, BIDE_REASON_PERMANENT);
    if (o->evidence == BIDE_EVIDENCE_BODY_DELIVERED)
        return call_give_up_on(e, attempt, BIDE_REASON_BODY_DELIVERED);
    if (cancelled && o->evidence == BIDE_EVIDENCE_NOT_SENT)
        core_call_refund_unsent(e, attempt);
    if (core_hint_forbids_retry(c->policy, &o->hint))
        core_set_flag(c, CORE_RETRY_FORBIDDEN);
    if (o->flags & BIDE_FLAG_BODY_SPENT)
        core_set_flag(c, CORE_BODY_SPENT);
    if (core_round_in_flight(c) != 0)
        return call_wait_for_siblings(e, o);
    if (cancelled)
        return core_call_give_up(e, BIDE_REASON_CANCELLED);
    o->hint = round_hint(e, o->hint);
    return core_call_judge(e, o);
}

OUT_OF_LINE struct bide_verdict outcome_slow(struct bide_call *call, uint32_t attempt,
                                             const struct bide_outcome *outcome, int64_t now_ns)
{
    uint32_t bit = call->state == CORE_RUNNING ? round_live_bit(call, attempt) : 0;
    if (bit == 0)
        return call_none_verdict(call);
    struct core_event e = event_of_call(call, now_ns);
    attempt_end(&e, bit, outcome);
    struct bide_outcome o = *outcome;
    o.kind = outcome_kind_for_call(call, outcome); /* after recording: to the target, a 409 is the response of a healthy
                                                    * server */
    return o.kind == BIDE_KIND_OK ? call_succeed(&e, attempt) : call_handle_failure(&e, attempt, &o);
}

/* Flags that do not change how a single attempt ends. The bits of the charge's kind are not among them: the fast path
 * needs them to be 0, tokens. */
#define FAST_FLAGS (CORE_PAID | CORE_THROTTLED | CORE_TIMED_OUT)

/* Returns true if this is the outcome of the only attempt of its round, the call holds no resource but a spent charge,
 * and the target still belongs to the call and has no hold-off. */
CORE_INLINE bool outcome_fits_fast_path(const struct bide_call *c, const struct bide_target *t, uint32_t attempt,
                                        uint32_t allowed)
{
    return !core_force_slow_path && c->state == CORE_RUNNING && c->live == ROUND_ONE_RUNNING && attempt == c->attempt &&
           t && (c->flags & ~allowed) == 0 && core_owner(t) == c->owner && core_load(&t->hold_off_ns) == 0;
}

/* Tries the fast path of a success: all that the target records is one healthy vote, counted here. The caller credits
 * the budget. Returns false if the slow path is needed; then nothing was recorded. */
CORE_INLINE bool success_try_fast(const struct bide_call *c, struct bide_target *t, uint32_t attempt, int64_t now_ns)
{
    return outcome_fits_fast_path(c, t, attempt, FAST_FLAGS | CORE_INNER_LAYER) &&
           !(core_hot(t) & CORE_HOT_NO_FAST_SUCCESS) &&
           core_breaker_try_count_healthy(t, c->generation, c->lane, now_ns);
}

/* Returns true if the failure is transient, without a hint and repeatable, and no optional gate is configured. The
 * breaker is calm: *breaker is its word. */
static bool failure_fits_fast_path(const struct bide_call *c, uint32_t attempt, const struct bide_outcome *o,
                                   int64_t now_ns, uint64_t *breaker)
{
    bool unsent = o->evidence == BIDE_EVIDENCE_NOT_SENT || o->evidence == BIDE_EVIDENCE_REJECTED;
    if (o->kind != BIDE_KIND_TRANSIENT || o->hint.kind != BIDE_HINT_NONE ||
        !outcome_fits_fast_path(c, c->target, attempt, FAST_FLAGS))
        return false;
    if (o->evidence == BIDE_EVIDENCE_BODY_DELIVERED ||
        o->flags & (BIDE_FLAG_ONCE | BIDE_FLAG_BODY_SPENT | BIDE_FLAG_LOCAL))
        return false;
    if (c->attempt >= c->policy->attempts_max || now_ns >= c->deadline_ns - CUT_EARLY_NS || c->key != 0)
        return false;
    if (!unsent && c->safety == BIDE_UNSAFE)
        return false;
    *breaker = core_load(&c->target->breaker);
    return !(core_hot(c->target) & CORE_HOT_NO_FAST_FAILURE) && CORE_BREAKER_CALM(*breaker) &&
           core_breaker_generation(*breaker) == c->generation;
}

/* The fast path of a retry: one vote, one wait, one charge. If the call may not wait that long, the vote opened the
 * breaker, or the charge is refused, core_call_judge decides and gives the reason. */
OUT_OF_LINE struct bide_verdict retry_fast(struct bide_call *c, const struct bide_outcome *o, uint64_t breaker,
                                           int64_t now_ns)
{
    const struct bide_policy *p = c->policy;
    struct bide_target *t = c->target; /* the owner was checked; the slow path has the same race with a later change */
    core_count_fast_path(CORE_FAST_FAILURE);
    struct bide_step step = {c->step, false, c->wait_ns};
    int64_t wait_ns = bide_backoff_wait(p, step, c->seed, c->attempt), wake_ns = core_sum(now_ns, wait_ns);
    core_assert(!core_has_flag(c, CORE_CHARGED | CORE_KEY_CHARGED | CORE_PROBE | CORE_IN_FLIGHT));
    c->live = ROUND_ONE_ENDED;
    core_breaker_record_failure(t, breaker, c->seed, now_ns);
    bool limited = core_policy_limits_waits(p);
    if (wake_ns > c->deadline_ns - core_policy_attempt_min_ns(p) || (limited && wait_ns > core_call_waits_left_ns(c)) ||
        core_load(&t->breaker) != breaker || !core_call_try_charge_budget(c, t, o, now_ns)) {
        struct core_event e = event_on_target(c, t, now_ns);
        return core_call_judge(&e, o);
    }
    if (limited)
        core_call_count_wait(c, wait_ns);
    core_call_note_failure(c, false, o->flags);
    core_call_advance_backoff(c, wait_ns);
    c->state = CORE_WAITING;
    c->wake_ns = wake_ns;
    return (struct bide_verdict){.action = BIDE_ACTION_WAIT,
                                 .reason = BIDE_REASON_BACKOFF,
                                 .attempt = c->attempt,
                                 .wake_ns = wake_ns,
                                 .attempt_deadline_ns = BIDE_NEVER,
                                 .connect_deadline_ns = BIDE_NEVER};
}

struct bide_verdict bide_call_outcome(struct bide_call *call, uint32_t attempt, const struct bide_outcome *outcome,
                                      int64_t now_ns)
{
    uint64_t breaker;
    struct bide_target *t = call->target;
    if (outcome->kind != BIDE_KIND_OK && failure_fits_fast_path(call, attempt, outcome, now_ns, &breaker))
        return retry_fast(call, outcome, breaker, now_ns);
    if (outcome->kind != BIDE_KIND_OK || !success_try_fast(call, t, attempt, now_ns))
        return outcome_slow(call, attempt, outcome, now_ns);
    core_count_fast_path(CORE_FAST_SUCCESS);
    if (!core_budget_is_full(t))
        core_budget_credit_success(t, core_has_flag(call, CORE_PAID) ? call->charge : 0);
    call->live = 0;
    call->state = CORE_ENDED;
    return (struct bide_verdict){.action = BIDE_ACTION_DONE,
                                 .reason = BIDE_REASON_SUCCEEDED,
                                 .attempt = attempt,
                                 .wake_ns = BIDE_NEVER,
                                 .attempt_deadline_ns = BIDE_NEVER,
                                 .connect_deadline_ns = BIDE_NEVER};
}

/* ---- event: wake ---- */

/* Charges a hedge like a retry: retry key, in-flight permit, budget; all or nothing. Returns BIDE_REASON_NOTHING, or
 * the reason of the refusal. */
static enum bide_reason hedge_charge(struct core_event *e)
{
    static const struct bide_outcome slow = {.kind = BIDE_KIND_TRANSIENT};
    uint32_t tick = 0;
    if (!core_call_charge_key(e, &tick))
        return BIDE_REASON_KEY_LIMIT;
    bool counted = core_has_flag(e->call, CORE_IN_FLIGHT); /* the round is counted in flight, so the hedge must be
                                                            * too */
    bool entered = !counted || core_call_enter_in_flight(e);
    if (entered && core_call_charge_budget(e, &slow))
        return BIDE_REASON_NOTHING;
    core_call_refund_key(e, tick);
    if (!entered)
        return BIDE_REASON_IN_FLIGHT_FULL;
    core_call_leave_in_flight(e, 1);
    return BIDE_REASON_BUDGET_EMPTY;
}

/* Decides whether a hedge may start, and charges it. A hedge starts only while the target is healthy: breaker closed,
 * no hold-off. */
static enum bide_reason hedge_admit(struct core_event *e)
{
    struct bide_call *c = e->call;
    if (e->now_ns >= c->deadline_ns)
        return BIDE_REASON_DEADLINE;
    if (!e->target)
        return c->target ? BIDE_REASON_TARGET_GONE : BIDE_REASON_NOTHING;
    if (call_shed_load(e))
        return BIDE_REASON_THROTTLE;
    if (!core_breaker_still_closed(e->target, c->generation) && core_gate_refuse(e, BIDE_GATE_BREAKER))
        return BIDE_REASON_BREAKER_OPEN;
    if (core_hold_off_until(e->target, e->now_ns) > 0)
        return BIDE_REASON_HOLD_OFF;
    return hedge_charge(e);
}

static struct bide_verdict call_hedge(struct core_event *e)
{
    enum bide_reason refused = hedge_admit(e);
    if (refused == BIDE_REASON_NOTHING) {
        round_add_hedge(e->call, e->now_ns);
        return call_commit_start(e, BIDE_REASON_HEDGE);
    }
    e->call->wake_ns = BIDE_NEVER;
    return core_verdict(e, BIDE_ACTION_NONE, refused);
}

/* A wait that ended much too late: the machine was suspended, and its neighbours probably too. Draws a new end of the
 * wait, once per call, so that they do not return as a thundering herd. Returns BIDE_NEVER if the retry shall start at
 * once: the wake is on time, or the call may not wait that long. */
static int64_t call_rejitter_late_wake(struct core_event *e)
{
    struct bide_call *c = e->call;
    bool late = e->now_ns - c->wake_ns > LATE_NS && c->policy->jitter != BIDE_JITTER_NONE;
    if (!late || !core_first_time(c, CORE_ONCE_LATE_WAKE))
        return BIDE_NEVER;
    int64_t width = core_max(c->policy->base_ns, c->wait_ns);
    int64_t wake =
        core_sum(e->now_ns, (int64_t)core_uniform(core_call_random_key(c, CORE_FOR_LATE_WAKE), (uint64_t)width));
    return core_call_check_wait(e, wake) == BIDE_REASON_NOTHING ? wake : BIDE_NEVER;
}

static struct bide_verdict call_resume(struct core_event *e)
{
    struct bide_call *c = e->call;
    core_assert(c->state == CORE_BEGUN || c->state == CORE_WAITING || c->state == CORE_BLOCKED);
    core_assert(c->wake_ns <= e->now_ns);
    if (e->now_ns >= c->deadline_ns)
        return core_call_give_up(e, BIDE_REASON_DEADLINE);
    int64_t later_ns = call_rejitter_late_wake(e);
    if (later_ns != BIDE_NEVER)
        return core_call_wait_until(e, later_ns, BIDE_REASON_LATE_WAKE);
    int64_t hold_off_ns = e->target ? core_hold_off_until(e->target, e->now_ns) : 0;
    if (hold_off_ns > 0)
        return call_wait_hold_off(e, hold_off_ns);
    core_clear_flag(c, CORE_IN_FLIGHT); /* left from the previous round */
    enum bide_reason refused = c->state == CORE_BLOCKED ? core_call_charge_blocked(e) : BIDE_REASON_NOTHING;
    return refused != BIDE_REASON_NOTHING ? core_call_refused(e, refused, 0) : call_start(e);
}

OUT_OF_LINE struct bide_verdict wake_slow(struct bide_call *call, int64_t now_ns)
{
    if (call->state == CORE_NEW || call->state == CORE_ENDED || now_ns < call_timer(call))
        return call_none_verdict(call);
    struct core_event e = event_of_call(call, now_ns);
    if (call->state == CORE_RUNNING)
        return call_hedge(&e);
    return call->state == CORE_GIVING_UP ? core_call_give_up(&e, BIDE_REASON_BUDGET_EMPTY) : call_resume(&e);
}

/* Returns true if a wait ended on time and no gate applies but the breaker, which the caller checks. */
CORE_INLINE bool wake_fits_fast_path(const struct bide_call *c, int64_t now_ns)
{
    struct bide_target *t = c->target;
    if (core_force_slow_path || c->state != CORE_WAITING || now_ns < c->wake_ns || now_ns - c->wake_ns > LATE_NS ||
        now_ns >= c->deadline_ns)
        return false;
    if (!t || core_owner(t) != c->owner || c->policy->hedges_max > 0)
        return false;
    return !(core_hot(t) & CORE_HOT_NO_FAST_WAKE) && core_load(&t->hold_off_ns) == 0;
}

struct bide_verdict bide_call_wake(struct bide_call *call, int64_t now_ns)
{
    if (!wake_fits_fast_path(call, now_ns))
        return wake_slow(call, now_ns);
    uint64_t breaker = core_load(&call->target->breaker);
    if (!CORE_BREAKER_CALM(breaker))
        return wake_slow(call, now_ns);
    core_assert(call->state == CORE_WAITING && core_round_in_flight(call) == 0);
    core_count_fast_path(CORE_FAST_WAKE);
    core_call_commit_charges(call);
    core_clear_flag(call, CORE_IN_FLIGHT); /* left from the previous round */
    return start_fast(call, breaker, BIDE_REASON_RETRY, now_ns);
}

/* ---- event: safety ---- */

struct bide_verdict bide_call_safety(struct bide_call *call, enum bide_safety safety, int64_t now_ns)
{
    if (call->state == CORE_NEW || call->state == CORE_ENDED)
        return call_none_verdict(call);
    struct core_event e = event_of_call(call, now_ns);
    call->safety = safety_normalize(safety) & 3;
    if (call_lacks_key(call) && core_gate_refuse(&e, BIDE_GATE_KEY))
        return core_call_give_up(&e, BIDE_REASON_KEY_REQUIRED);
    if (call->state == CORE_RUNNING && !call_may_hedge(call) && !core_has_flag(call, CORE_ROUND_HINTED))
        call->wake_ns = BIDE_NEVER;
    struct bide_verdict v = call_none_verdict(call);
    v.observed = e.observed;
    return v;
}

/* ---- event: cancel ---- */

struct bide_verdict bide_call_cancel(struct bide_call *call, int64_t now_ns)
{
    if (call->state == CORE_NEW || call->state == CORE_ENDED)
        return call_none_verdict(call);
    struct core_event e = event_of_call(call, now_ns);
    return core_call_give_up(&e, BIDE_REASON_CANCELLED);
}
