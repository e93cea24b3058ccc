/* judge.c - the decision after a failed round: shall there be another attempt, and when?
 *
 * Gates are checked in a fixed order: those that charge nothing first, then the retry key and, last, the budget, which
 * charge. In between the wait is planned: our own backoff or the server's hint, and never less than the hold-off of the
 * target.
 *
 * A policy may wait for the gates of the target instead of giving up (when_refused): the call then holds nothing while
 * it waits, and its retry is charged when it starts. */
#include <bide/backoff.h>

#include "event.h"
#include "saturate.h"

/* ---- hints ---- */

/* A hint beyond BIDE_DURATION_MAX is too long for every policy. */
bool core_hint_is_too_long(const struct bide_policy *p, const struct bide_hint *h)
{
    return h->wait_ns > p->hint_max_ns || h->wait_ns > BIDE_DURATION_MAX;
}

bool core_hint_requires_wait(const struct bide_policy *p, const struct bide_hint *h)
{
    if (h->kind != BIDE_HINT_WAIT || p->hint_rule == BIDE_HINT_RULE_IGNORE)
        return false;
    if (core_hint_is_too_long(p, h) && p->hint_long == BIDE_HINT_LONG_IGNORE)
        return false;
    return h->wait_ns > 0 || (h->wait_ns == 0 && p->hint_rule == BIDE_HINT_RULE_PUSHBACK);
}

bool core_hint_forbids_retry(const struct bide_policy *p, const struct bide_hint *h)
{
    return h->kind == BIDE_HINT_STOP && p->hint_rule != BIDE_HINT_RULE_IGNORE;
}

int64_t core_upward_jitter(const struct bide_call *c, int64_t wait_ns, enum core_purpose purpose)
{
    const struct bide_policy *p = c->policy;
    if (p->jitter == BIDE_JITTER_NONE)
        return 0;
    int64_t width = core_max(core_share(wait_ns, p->hint_jitter_permille, 1000), p->base_ns);
    return (int64_t)core_uniform(core_call_random_key(c, purpose), (uint64_t)width);
}

/* ---- gates ---- */

/* The idempotency gate: may the request be sent again? Evidence that the server did not process it allows any request;
 * after a response, an unsafe request only if this server is trusted to mean "not processed" by it. */
static bool request_is_repeatable(const struct core_event *e, const struct bide_outcome *o)
{
    uint32_t trust = e->hot >> CORE_HOT_TRUST_SHIFT;
    if (e->call->safety != BIDE_UNSAFE || o->evidence == BIDE_EVIDENCE_NOT_SENT ||
        o->evidence == BIDE_EVIDENCE_REJECTED)
        return true;
    if (o->evidence != BIDE_EVIDENCE_ANSWERED)
        return false;
    return (o->kind == BIDE_KIND_THROTTLED && trust & BIDE_TRUST_THROTTLED) ||
           (o->flags & BIDE_FLAG_UNAVAILABLE && trust & BIDE_TRUST_UNAVAILABLE);
}

static enum bide_reason check_hint_gate(struct core_event *e, const struct bide_outcome *o)
{
    const struct bide_policy *p = e->call->policy;
    bool asked = core_hint_requires_wait(p, &o->hint);
    if (core_has_flag(e->call, CORE_RETRY_FORBIDDEN) && core_gate_refuse(e, BIDE_GATE_HINT))
        return BIDE_REASON_SERVER_STOP;
    if (!asked && o->kind == BIDE_KIND_THROTTLED && p->throttled_needs_hint && core_gate_refuse(e, BIDE_GATE_HINT))
        return BIDE_REASON_HINT_MISSING;
    if (asked && core_hint_is_too_long(p, &o->hint) && p->hint_long == BIDE_HINT_LONG_GIVE_UP &&
        core_gate_refuse(e, BIDE_GATE_HINT))
        return BIDE_REASON_HINT_TOO_LONG;
    return BIDE_REASON_NOTHING;
}

/* Checks the gates that charge nothing, in order. Returns BIDE_REASON_NOTHING, or the reason of the refusal. */
static enum bide_reason check_free_gates(struct core_event *e, const struct bide_outcome *o)
{
    struct bide_call *c = e->call;
    if (c->attempt >= c->policy->attempts_max)
        return BIDE_REASON_ATTEMPTS_SPENT;
    if (e->now_ns >= c->deadline_ns)
        return BIDE_REASON_DEADLINE;
    if (c->target && !e->target) /* the cost of a retry is unknown */
        return BIDE_REASON_TARGET_GONE;
    if (o->flags & BIDE_FLAG_ONCE && c->once & CORE_ONCE_FLAGGED)
        return BIDE_REASON_PERMANENT;
    if (core_has_flag(c, CORE_INNER_LAYER) && core_gate_refuse(e, BIDE_GATE_LAYER))
        return BIDE_REASON_INNER_LAYER;
    if (!request_is_repeatable(e, o) && core_gate_refuse(e, BIDE_GATE_REPEAT))
        return BIDE_REASON_NOT_REPEATABLE;
    if (core_has_flag(c, CORE_BODY_SPENT))
        return BIDE_REASON_BODY_SPENT;
    return check_hint_gate(e, o);
}

/* ---- the wait ---- */

struct wait_plan {
    int64_t wait_ns;
    enum bide_reason reason;
    int64_t floor_ns; /* the shortest wait that the server's hints allow */
};

static int64_t hinted_wait_ns(const struct bide_call *c, int64_t hint_ns, int64_t own_ns)
{
    const struct bide_policy *p = c->policy;
    if (p->hint_long == BIDE_HINT_LONG_CLAMP)
        hint_ns = core_min(hint_ns, core_min(p->hint_max_ns, BIDE_DURATION_MAX));
    if (p->hint_rule == BIDE_HINT_RULE_FLOOR)
        return core_sum(hint_ns, core_upward_jitter(c, hint_ns, CORE_FOR_HINT));
    if (p->hint_rule == BIDE_HINT_RULE_CLAMP)
        return core_max(own_ns, core_min(hint_ns, core_sum(own_ns, p->hint_over_ns)));
    return hint_ns;
}

static void hinted_advance_backoff(struct bide_call *c, int64_t own_ns)
{
    if (c->policy->hint_step == BIDE_HINT_STEP_ADVANCE)
        core_call_advance_backoff(c, own_ns);
    if (c->policy->hint_step == BIDE_HINT_STEP_RESET) {
        c->step = 0;
        c->wait_ns = 0;
    }
}

static struct wait_plan plan_backoff_or_hint(struct bide_call *c, const struct bide_outcome *o)
{
    struct bide_step step = {c->step, o->kind == BIDE_KIND_THROTTLED, c->wait_ns};
    int64_t own_ns = bide_backoff_wait(c->policy, step, c->seed, c->attempt);
    int64_t hinted_ns = core_hint_requires_wait(c->policy, &o->hint) ? hinted_wait_ns(c, o->hint.wait_ns, own_ns) : -1;
    bool floor_below = c->policy->hint_rule == BIDE_HINT_RULE_FLOOR && hinted_ns < own_ns;
    if (hinted_ns >= 0 && !floor_below) { /* a floor below our own backoff changes nothing */
        hinted_advance_backoff(c, own_ns);
        return (struct wait_plan){hinted_ns, BIDE_REASON_SERVER_HINT, hinted_ns};
    }
    if (hinted_ns < 0 && o->kind == BIDE_KIND_CONFLICT && c->policy->conflict_at_once &&
        core_first_time(c, CORE_ONCE_CONFLICT))
        return (struct wait_plan){0, BIDE_REASON_CONFLICT, 0};
    core_call_advance_backoff(c, own_ns);
    return (struct wait_plan){own_ns, BIDE_REASON_BACKOFF, core_max(hinted_ns, 0)};
}

/* Plans the wait: our own backoff or the server's hint, and never less than the hold-off of the target. */
static struct wait_plan plan_wait(struct core_event *e, const struct bide_outcome *o)
{
    struct wait_plan plan = plan_backoff_or_hint(e->call, o);
    int64_t until_ns = e->target ? core_hold_off_until(e->target, e->now_ns) : 0;
    int64_t hold_off_ns = until_ns - e->now_ns;
    plan.floor_ns = core_max(plan.floor_ns, hold_off_ns);
    if (until_ns <= core_sum(e->now_ns, plan.wait_ns))
        return plan;
    return (struct wait_plan){core_sum(hold_off_ns, core_upward_jitter(e->call, hold_off_ns, CORE_FOR_HOLD_OFF)),
                              BIDE_REASON_HOLD_OFF, hold_off_ns};
}

/* The last wait: replaces a backoff that would leave too little time for an attempt, once per call, by a draw from the
 * second half of the time in which a useful attempt can still start. Ending all of them at that limit would bring the
 * clients of an outage back together. Nothing is replaced if not even the base fits, or the wait that a hint asks for.
 */
static void plan_last_wait(struct core_event *e, struct wait_plan *plan)
{
    struct bide_call *c = e->call;
    int64_t last_start_ns = core_call_last_start_ns(c), room_ns = last_start_ns - e->now_ns;
    if (!c->policy->last_wait || plan->reason != BIDE_REASON_BACKOFF ||
        core_sum(e->now_ns, plan->wait_ns) <= last_start_ns || room_ns < core_max(c->policy->base_ns, plan->floor_ns) ||
        !core_first_time(c, CORE_ONCE_LAST_WAIT))
        return;
    int64_t width = core_min(room_ns / 2, room_ns - plan->floor_ns);
    uint64_t earlier = core_uniform(core_call_random_key(c, CORE_FOR_LAST_WAIT), (uint64_t)width);
    *plan = (struct wait_plan){room_ns - (int64_t)earlier, BIDE_REASON_LAST_WAIT, plan->floor_ns};
}

/* ---- the limit of all waits ---- */

/* A call has 16 bits for the sum of its waits. They count units: the smallest power of ten, in nanoseconds, of which
 * 65535 cover the limit (1 ms for a limit of a minute). Each wait is compared with the rest in nanoseconds, and then
 * counted in units, rounded up: the sum never exceeds the limit, and waits of whole units may take all of it. The
 * product does not overflow, because limits end at BIDE_DURATION_MAX. */
static int64_t waits_unit_ns(const struct bide_policy *p)
{
    int64_t unit_ns = 1;
    while (unit_ns * UINT16_MAX < p->waits_max_ns)
        unit_ns *= 10;
    return unit_ns;
}

/* Not negative, although the units of a last wait may be longer than the limit. */
int64_t core_call_waits_left_ns(const struct bide_call *c)
{
    return core_max(0, c->policy->waits_max_ns - c->waited * waits_unit_ns(c->policy));
}

/* The 16 bits suffice: 65535 units cover the limit, and the wait is no longer than the limit less the counted units, so
 * that the uncounted units cover the wait. */
void core_call_count_wait(struct bide_call *c, int64_t wait_ns)
{
    core_assert(wait_ns >= 0 && wait_ns <= core_call_waits_left_ns(c));
    int64_t unit_ns = waits_unit_ns(c->policy), units = wait_ns / unit_ns + (wait_ns % unit_ns > 0);
    core_assert(units <= UINT16_MAX - c->waited);
    c->waited = (uint16_t)(c->waited + units);
}

/* ---- waiting for a gate ---- */

/* Draws a wait for a gate of which nobody knows when it admits again: our own backoff, which advances, so that a call
 * asks less and less often; and at least the base, so that it does not spin. */
static int64_t draw_gate_wait_ns(struct bide_call *c)
{
    struct bide_step step = {c->step, core_has_flag(c, CORE_THROTTLED), c->wait_ns};
    int64_t own_ns = bide_backoff_wait(c->policy, step, c->seed, c->attempt);
    core_call_advance_backoff(c, own_ns);
    return core_max(own_ns, c->policy->base_ns);
}

/* Releases what the call acquired for the attempt that was refused: charges, and the probe slot of a breaker. */
static void call_release_unstarted(struct core_event *e)
{
    core_assert(e->target); /* or nothing would have refused */
    core_call_refund_budget(e);
    core_call_refund_key(e, e->call->key_tick);
    core_call_vote(e, CORE_VOTE_NEUTRAL);
}

struct bide_verdict core_call_refused(struct core_event *e, enum bide_reason reason, int64_t until_ns)
{
    struct bide_call *c = e->call;
    if (!core_policy_waits_for_gates(c->policy))
        return core_call_give_up(e, reason);
    int64_t wait_ns = until_ns - e->now_ns;
    if (wait_ns <= 0)
        wait_ns = draw_gate_wait_ns(c);
    else if (reason == BIDE_REASON_BREAKER_PROBING) /* until_ns is when a probe's slot expires; mostly it ends sooner */
        wait_ns = core_min(wait_ns, draw_gate_wait_ns(c));
    int64_t wake_ns = core_sum(core_sum(e->now_ns, wait_ns), core_upward_jitter(c, wait_ns, CORE_FOR_GATE));
    if (wake_ns > core_call_last_start_ns(c) || core_call_check_wait(e, wake_ns) != BIDE_REASON_NOTHING)
        return core_call_give_up(e, reason);
    call_release_unstarted(e);
    c->state = c->attempt == 0 ? CORE_BEGUN : CORE_BLOCKED;
    return core_call_wait_until(e, wake_ns, reason);
}

/* ---- the decision ---- */

enum bide_reason core_call_charge_blocked(struct core_event *e)
{
    struct bide_call *c = e->call;
    const struct bide_outcome last = {.kind =
                                          core_has_flag(c, CORE_THROTTLED) ? BIDE_KIND_THROTTLED : BIDE_KIND_TRANSIENT,
                                      .flags = core_has_flag(c, CORE_TIMED_OUT) ? BIDE_FLAG_TIMED_OUT : 0u};
    if (!core_call_charge_key(e, &c->key_tick))
        return BIDE_REASON_KEY_LIMIT;
    return core_call_charge_budget(e, &last) ? BIDE_REASON_NOTHING : BIDE_REASON_BUDGET_EMPTY;
}

/* Returns when a retry that was refused at its decision asks again: after its planned wait, and at least the base. */
static int64_t call_asks_again_ns(const struct core_event *e, int64_t wake_ns)
{
    return core_max(wake_ns, core_sum(e->now_ns, e->call->policy->base_ns));
}

/* The budget is empty. A long poll waits out its backoff before it gives up, so that its loop does not spin. */
static struct bide_verdict call_out_of_budget(struct core_event *e, int64_t wake_ns)
{
    if (!e->call->policy->long_poll || core_policy_waits_for_gates(e->call->policy))
        return core_call_refused(e, BIDE_REASON_BUDGET_EMPTY, call_asks_again_ns(e, wake_ns));
    e->call->state = CORE_GIVING_UP;
    return core_call_wait_until(e, wake_ns, BIDE_REASON_BUDGET_EMPTY);
}

struct bide_verdict core_call_judge(struct core_event *e, const struct bide_outcome *o)
{
    struct bide_call *c = e->call;
    core_assert(c->state == CORE_RUNNING && core_round_in_flight(c) == 0 && core_kind_is_retryable(o->kind));
    enum bide_reason refused = check_free_gates(e, o);
    if (refused != BIDE_REASON_NOTHING)
        return core_call_give_up(e, refused);
    struct wait_plan plan = plan_wait(e, o);
    plan_last_wait(e, &plan);
    core_assert(plan.wait_ns >= 0);
    int64_t wake_ns = core_sum(e->now_ns, plan.wait_ns);
    refused = core_call_check_wait(e, wake_ns);
    if (refused != BIDE_REASON_NOTHING)
        return core_call_give_up(e, refused);
    core_call_note_failure(c, o->kind == BIDE_KIND_THROTTLED, o->flags);
    if (o->flags & BIDE_FLAG_ONCE)
        (void)core_first_time(c, CORE_ONCE_FLAGGED);
    if (e->target && core_breaker_blocks(e->target, wake_ns) && core_gate_refuse(e, BIDE_GATE_BREAKER))
        return core_call_refused(e, BIDE_REASON_BREAKER_OPEN, core_breaker_open_until_ns(e->target));
    if (!core_call_charge_key(e, &c->key_tick))
        return core_call_refused(e, BIDE_REASON_KEY_LIMIT, call_asks_again_ns(e, wake_ns));
    core_call_refund_budget(e);         /* permits of the round that ended (concurrency budget) */
    if (!core_call_charge_budget(e, o)) /* last: a refusal by an earlier gate must not cost tokens */
        return call_out_of_budget(e, wake_ns);
    c->state = CORE_WAITING;
    return core_call_wait_until(e, wake_ns, plan.reason);
}
