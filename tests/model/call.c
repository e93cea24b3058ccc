/* call.c - a call in the model: the order of the gates and the wait (docs/call.md), hints (docs/hint.md), what an
 * outcome does to the target (docs/outcome.md). */
#include "model.h"

struct range {
    int64_t lo, hi;
};

static struct expected expect(const struct model_call *c, enum bide_action action, enum bide_reason reason)
{
    return (struct expected){.action = action,
                             .reason = reason,
                             .attempt = c->attempt,
                             .wake_lo_ns = BIDE_NEVER,
                             .wake_hi_ns = BIDE_NEVER,
                             .attempt_deadline_ns = BIDE_NEVER};
}

/* Sums with BIDE_NEVER stay BIDE_NEVER, and nothing is later. */
static int64_t sum(int64_t a, int64_t b)
{
    return a > BIDE_NEVER - b ? BIDE_NEVER : a + b;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* -- what a call holds --------------------------------------------------------------------------------------------- */

static void refund_budget(struct model *m, struct model_call *c, int64_t now_ns)
{
    if (!c->held)
        return;
    c->held = false;
    if (m->config.budget.kind != c->charge_kind)
        return;
    if (c->charge_kind == BIDE_BUDGET_TOKENS && (c->charged_under_lease || !m->lease.on))
        bucket_add(m, c->charge_milli);
    if (c->charge_kind != BIDE_BUDGET_WINDOW)
        return;
    struct slots *s = &m->spends;
    int i = (int)(c->charge_slot % MODEL_SLOTS);
    if (s->at[i].number == c->charge_slot && s->at[i].second > 0)
        s->at[i].second--;
    (void)now_ns;
}

static void refund_key(struct model *m, struct model_call *c)
{
    if (c->key_held)
        key_refund(m, c->key, c->key_charged_ns);
    c->key_held = false;
}

static struct expected end(struct model *m, struct model_call *c, struct expected e, enum bide_action action,
                           enum bide_reason reason, int64_t now_ns)
{
    uint32_t observed = e.observed;
    refund_budget(m, c, now_ns);
    refund_key(m, c);
    e = expect(c, action, reason);
    e.observed = observed;
    c->state = CALL_IDLE;
    return e;
}

/* -- starting an attempt ------------------------------------------------------------------------------------------- */

static void record_first(struct model *m, int64_t now_ns)
{
    const struct bide_budget_config *b = &m->config.budget;
    if (b->kind == BIDE_BUDGET_WINDOW)
        slots_add(&m->spends, 1, 0, now_ns);
    if (b->kind != BIDE_BUDGET_TOKENS)
        return;
    if (m->lease.on) {
        m->lease.report.firsts++;
        m->lease.report.earned_milli += b->earn_first_milli;
    } else {
        bucket_add(m, b->earn_first_milli);
    }
}

static struct expected start(struct model *m, struct model_call *c, struct expected e, int64_t now_ns)
{
    bool first = c->attempt == 0;
    uint32_t observed = e.observed;
    enum bide_reason refusal = breaker_admit(m, &c->ticket, now_ns);
    if (refusal != BIDE_REASON_NOTHING) {
        c->ticket.votes = refusal == BIDE_REASON_BREAKER_RAMPING; /* observed: a closed breaker still counts it */
        if (model_refuse(m, &e, BIDE_GATE_BREAKER))
            return end(m, c, e, BIDE_ACTION_GIVE_UP, refusal, now_ns);
        observed = e.observed;
    }
    if (first)
        record_first(m, now_ns);
    c->attempt++;
    c->state = CALL_RUNNING;
    c->started_ns = now_ns;
    c->held = c->key_held = false; /* spent */
    e = expect(c, BIDE_ACTION_START, first ? BIDE_REASON_FIRST_ATTEMPT : BIDE_REASON_RETRY);
    e.observed = observed;
    e.attempt_deadline_ns = smaller(sum(now_ns, c->policy->attempt_timeout_ns), c->deadline_ns);
    return e;
}

/* -- the limit of all waits ---------------------------------------------------------------------------------------- */

static int64_t waits_left(const struct model_call *c)
{
    int64_t most_ns = c->policy->waits_max_ns;
    return most_ns == BIDE_NEVER ? BIDE_NEVER : larger(0, most_ns - c->waited_ns);
}

/* Would the wait exceed the limit? Where jitter decides, the library did. */
static bool waits_are_spent(const struct model_call *c, struct range wake, const struct bide_verdict *seen,
                            int64_t now_ns)
{
    int64_t last_ns = sum(now_ns, waits_left(c));
    return wake.lo > last_ns || (wake.hi > last_ns && seen->reason == BIDE_REASON_WAITS_SPENT);
}

static void count_wait(struct model_call *c, int64_t wait_ns)
{
    int64_t most_ns = c->policy->waits_max_ns, unit_ns = 1;
    while ((model_wide)65535 * unit_ns < most_ns)
        unit_ns *= 10;
    if (most_ns != BIDE_NEVER)
        c->waited_ns += (wait_ns + unit_ns - 1) / unit_ns * unit_ns;
}

/* Waits until an instant of the range: that of the library, which is compared with the range afterwards. */
static struct expected wait_for(struct model_call *c, struct expected e, enum bide_reason reason, struct range wake,
                                const struct bide_verdict *seen, int64_t now_ns)
{
    uint32_t observed = e.observed;
    wake.hi = smaller(wake.hi, sum(now_ns, waits_left(c)));
    count_wait(c, (seen->action == BIDE_ACTION_WAIT ? seen->wake_ns : wake.lo) - now_ns);
    e = expect(c, BIDE_ACTION_WAIT, reason);
    e.observed = observed;
    e.wake_lo_ns = wake.lo;
    e.wake_hi_ns = wake.hi;
    return e;
}

/* Upward jitter on a wait that a server requested. */
static int64_t jitter_ns(const struct bide_policy *p, int64_t wait_ns)
{
    if (p->jitter == BIDE_JITTER_NONE)
        return 0;
    model_wide share = (model_wide)wait_ns * p->hint_jitter_permille / 1000;
    return larger(share < BIDE_NEVER ? (int64_t)share : BIDE_NEVER, p->base_ns);
}

static bool holds_off(const struct model *m, int64_t now_ns)
{
    return m->hold_off_ns > now_ns;
}

static struct range hold_off_range(const struct model *m, const struct bide_policy *p, int64_t now_ns)
{
    return (struct range){m->hold_off_ns, m->hold_off_ns + jitter_ns(p, m->hold_off_ns - now_ns)};
}

/* Waits for the hold-off, or gives up if that would end at the deadline or later, or pass the limit of all waits. */
static struct expected wait_for_hold_off(struct model *m, struct model_call *c, struct expected e,
                                         const struct bide_verdict *seen, int64_t now_ns)
{
    struct range wake = hold_off_range(m, c->policy, now_ns);
    bool near = seen->reason == BIDE_REASON_DEADLINE_NEAR;
    if (wake.lo >= c->deadline_ns || (wake.hi >= c->deadline_ns && near))
        return end(m, c, e, BIDE_ACTION_GIVE_UP, BIDE_REASON_DEADLINE_NEAR, now_ns);
    if (waits_are_spent(c, wake, seen, now_ns))
        return end(m, c, e, BIDE_ACTION_GIVE_UP, BIDE_REASON_WAITS_SPENT, now_ns);
    return wait_for(c, e, BIDE_REASON_HOLD_OFF, wake, seen, now_ns);
}

struct expected model_begin(struct model *m, struct model_call *c, const struct bide_policy *policy,
                            const struct bide_request *request, const struct bide_verdict *seen, int64_t now_ns)
{
    *c = (struct model_call){.policy = policy,
                             .state = CALL_BEGUN,
                             .safety = request->safety,
                             .key =
                                 m->config.key_retries > 0 ? request->retry_key : 0, /* a reload concerns later calls */
                             .deadline_ns = sum(now_ns, policy->call_timeout_ns),
                             .wake_ns = BIDE_NEVER};
    if (request->deadline_ns != 0)
        c->deadline_ns = smaller(c->deadline_ns, request->deadline_ns);
    struct expected e = expect(c, BIDE_ACTION_NONE, BIDE_REASON_NOTHING);
    if (c->deadline_ns <= now_ns)
        return end(m, c, e, BIDE_ACTION_GIVE_UP, BIDE_REASON_DEADLINE, now_ns);
    if (m->config.hold_off_first && holds_off(m, now_ns))
        return wait_for_hold_off(m, c, e, seen, now_ns);
    return start(m, c, e, now_ns);
}

/* -- recording an outcome ------------------------------------------------------------------------------------------ */

static bool is_retried_kind(enum bide_kind kind)
{
    return kind == BIDE_KIND_TRANSIENT || kind == BIDE_KIND_THROTTLED || kind == BIDE_KIND_CONFLICT;
}

static bool is_too_long(const struct bide_policy *p, int64_t wait_ns)
{
    return wait_ns > p->hint_max_ns || wait_ns > BIDE_DURATION_MAX;
}

static bool has_hint(const struct bide_policy *p, const struct bide_hint *h)
{
    if (h->kind != BIDE_HINT_WAIT || p->hint_rule == BIDE_HINT_RULE_IGNORE || h->wait_ns < 0)
        return false;
    return h->wait_ns > 0 || p->hint_rule == BIDE_HINT_RULE_PUSHBACK;
}

/* Does the call wait for this hint? A hint that is too long may count as none. */
static bool follows_hint(const struct bide_policy *p, const struct bide_hint *h)
{
    return has_hint(p, h) && !(is_too_long(p, h->wait_ns) && p->hint_long == BIDE_HINT_LONG_IGNORE);
}

static void share_hint(struct model *m, const struct model_call *c, const struct bide_outcome *o, int64_t now_ns)
{
    const struct bide_policy *p = c->policy;
    if (is_retried_kind(o->kind) && has_hint(p, &o->hint) && p->hint_rule != BIDE_HINT_RULE_CLAMP &&
        !is_too_long(p, o->hint.wait_ns))
        model_hold_off(m, sum(now_ns, o->hint.wait_ns), now_ns);
}

static void earn_success(struct model *m, struct model_call *c)
{
    const struct bide_budget_config *b = &m->config.budget;
    if (b->kind != BIDE_BUDGET_TOKENS)
        return;
    int64_t earned = b->earn_success_milli;
    if (c->paid && b->refund_permille > 0 && c->charge_kind == BIDE_BUDGET_TOKENS)
        earned = c->charge_milli * b->refund_permille / 1000;
    if (m->lease.on) {
        m->lease.report.successes++;
        m->lease.report.earned_milli += (uint64_t)earned;
    } else {
        bucket_add(m, earned);
    }
}

/* A success is a sample of the usual latency: not within 100 ms of the last, and by a time window only if no vote was
 * counted in the current slot. */
static void sample_latency(struct model *m, int64_t took_ns, int64_t now_ns)
{
    const struct slots *s = &m->breaker.votes;
    int64_t number = now_ns / s->slot_ns;
    bool counted = s->at[number % MODEL_SLOTS].number == number;
    if (m->config.breaker.kind == BIDE_BREAKER_BY_TIME && counted)
        return;
    if (m->usual_ns > 0 && now_ns - m->sampled_ns < 100 * BIDE_MS)
        return;
    int64_t sample_ns = smaller(larger(took_ns, m->usual_ns / 4), 2 * m->usual_ns);
    m->usual_ns = m->usual_ns > 0 ? m->usual_ns + (sample_ns - m->usual_ns) / 4 : larger(took_ns, 1);
    m->sampled_ns = now_ns;
}

/* The deadline of the call cut the attempt, and nothing can be concluded from that. */
static bool is_excused(struct model *m, const struct model_call *c, int64_t now_ns)
{
    if (m->usual_ns > 0)
        return now_ns - c->started_ns < m->usual_ns;
    if (m->first_cut_ns == 0)
        m->first_cut_ns = larger(now_ns, 1);
    return c->ticket.probe >= 0 || now_ns - m->first_cut_ns < 10 * BIDE_S;
}

static bool is_no_evidence(struct model *m, const struct model_call *c, const struct bide_outcome *o, int64_t now_ns)
{
    bool cut = (o->flags & BIDE_FLAG_TIMED_OUT) != 0 && sum(now_ns, 2 * BIDE_MS) >= c->deadline_ns;
    return (o->flags & BIDE_FLAG_LOCAL) != 0 || (cut && is_excused(m, c, now_ns));
}

static int vote_of(struct model *m, const struct model_call *c, const struct bide_outcome *o, int64_t now_ns)
{
    if (o->kind == BIDE_KIND_OK)
        return now_ns - c->started_ns >= m->config.breaker.slow_ns ? -1 : 1;
    if (is_no_evidence(m, c, o, now_ns))
        return 0;
    return o->kind == BIDE_KIND_TRANSIENT || o->kind == BIDE_KIND_THROTTLED ? -1 : 0;
}

static void record(struct model *m, struct model_call *c, const struct bide_outcome *o, int64_t now_ns)
{
    const struct bide_budget_config *b = &m->config.budget;
    bool stop = o->hint.kind == BIDE_HINT_STOP && c->policy->hint_rule != BIDE_HINT_RULE_IGNORE;
    bool costs = is_retried_kind(o->kind) || (o->kind == BIDE_KIND_PERMANENT && stop);
    if (o->kind == BIDE_KIND_OK)
        sample_latency(m, now_ns - c->started_ns, now_ns);
    breaker_vote(m, &c->ticket, vote_of(m, c, o, now_ns), now_ns);
    if (o->kind == BIDE_KIND_OK && holds_off(m, now_ns) && c->started_ns >= m->hold_asked_ns)
        m->hold_off_ns = 0;
    if (costs && b->kind == BIDE_BUDGET_TOKENS)
        bucket_drain(m, b->cost_failure_milli, now_ns);
    share_hint(m, c, o, now_ns);
}

/* -- the wait ------------------------------------------------------------------------------------------------------ */

static struct range own_backoff(const struct model_call *c, enum bide_kind kind)
{
    const struct bide_policy *p = c->policy;
    model_wide e = kind == BIDE_KIND_THROTTLED && p->throttled_base_ns > 0 ? p->throttled_base_ns : p->base_ns;
    if (p->backoff == BIDE_BACKOFF_NONE)
        return (struct range){0, 0};
    if (p->backoff == BIDE_BACKOFF_LINEAR)
        e *= c->step + 1;
    for (uint32_t i = 0; p->backoff == BIDE_BACKOFF_EXPONENTIAL && i < c->step; i++)
        e *= 2;
    int64_t envelope = e < p->cap_ns ? (int64_t)e : p->cap_ns;
    return p->jitter == BIDE_JITTER_NONE ? (struct range){envelope, envelope} : (struct range){p->floor_ns, envelope};
}

/* The wait that the server asked for, under the rule of the policy. */
static struct range hinted_wait(const struct bide_policy *p, struct range own, int64_t hint_ns)
{
    if (p->hint_rule == BIDE_HINT_RULE_FLOOR)
        return (struct range){larger(hint_ns, own.lo), larger(sum(hint_ns, jitter_ns(p, hint_ns)), own.hi)};
    if (p->hint_rule == BIDE_HINT_RULE_CLAMP)
        return (struct range){larger(own.lo, smaller(hint_ns, own.lo + p->hint_over_ns)),
                              larger(own.hi, smaller(hint_ns, own.hi + p->hint_over_ns))};
    return (struct range){hint_ns, hint_ns};
}

struct plan {
    struct range wait;
    enum bide_reason reason; /* BIDE_REASON_COUNT: the range decides it, or the page leaves it open */
    bool at_once;
    int64_t own_ns; /* the longest wait of the backoff alone */
};

static struct plan plan_wait(const struct model_call *c, const struct bide_outcome *o, enum bide_kind kind)
{
    const struct bide_policy *p = c->policy;
    bool too_long = is_too_long(p, o->hint.wait_ns);
    bool hint = follows_hint(p, &o->hint);
    struct range own = own_backoff(c, kind);
    if (kind == BIDE_KIND_CONFLICT && p->conflict_at_once && !c->conflict && !hint)
        return (struct plan){{0, 0}, BIDE_REASON_CONFLICT, true, 0};
    if (!hint)
        return (struct plan){own, BIDE_REASON_BACKOFF, false, own.hi};
    int64_t hint_ns = too_long ? smaller(p->hint_max_ns, BIDE_DURATION_MAX) : o->hint.wait_ns;
    struct plan plan = {hinted_wait(p, own, hint_ns), BIDE_REASON_COUNT, false, own.hi};
    if (p->hint_rule != BIDE_HINT_RULE_FLOOR || hint_ns > own.hi)
        plan.reason = BIDE_REASON_SERVER_HINT;
    else if (hint_ns < own.lo && jitter_ns(p, hint_ns) == 0)
        plan.reason = BIDE_REASON_BACKOFF;
    return plan;
}

/* The backoff sequence after this wait, which the hint decided or not. */
static void step_on(struct model_call *c, bool by_hint, const struct plan *plan)
{
    enum bide_hint_step step = c->policy->hint_step;
    if (plan->at_once || (by_hint && step == BIDE_HINT_STEP_KEEP))
        return;
    if (by_hint && step == BIDE_HINT_STEP_RESET) {
        c->step = 0;
        return;
    }
    c->step++;
    c->last_wait_ns = plan->own_ns;
}

/* -- the charges --------------------------------------------------------------------------------------------------- */

static int64_t cost_of(const struct bide_budget_config *b, enum bide_kind kind, const struct bide_outcome *o)
{
    if (kind == BIDE_KIND_THROTTLED)
        return b->cost_throttled_milli;
    return o->flags & BIDE_FLAG_TIMED_OUT ? b->cost_timeout_milli : b->cost_milli;
}

static bool charge_tokens(struct model *m, struct model_call *c, int64_t cost_milli, int64_t now_ns)
{
    enum fate fate = bucket_can_pay(m, cost_milli, now_ns);
    if (model_decides_no(m, BIDE_GATE_BUDGET, fate)) {
        if (fate == FATE_EITHER)
            bucket_refuse(m, cost_milli, now_ns);
        return false;
    }
    bucket_pay(m, cost_milli, now_ns);
    c->charge_milli = cost_milli;
    return true;
}

static bool charge_window(struct model *m, struct model_call *c, int64_t now_ns)
{
    struct level left = model_left(m, now_ns);
    enum fate fate = left.hi == 0 ? FATE_NO : left.lo > 0 ? FATE_YES : FATE_EITHER;
    if (model_decides_no(m, BIDE_GATE_BUDGET, fate)) {
        if (now_ns >= m->blocked_most_ns)
            m->blocked_ns = m->blocked_most_ns = now_ns + m->config.budget.cooldown_ns;
        else
            m->blocked_most_ns = larger(m->blocked_most_ns, now_ns + m->config.budget.cooldown_ns);
        return false;
    }
    slots_add(&m->spends, 0, 1, now_ns);
    c->charge_slot = now_ns / m->spends.slot_ns;
    return true;
}

/* Charges the budget for a retry; returns false if it is refused. */
static bool charge_budget(struct model *m, struct model_call *c, struct expected *e, int64_t cost_milli, int64_t now_ns)
{
    enum bide_budget_kind kind = m->config.budget.kind;
    c->paid = false;
    if (kind == BIDE_BUDGET_NONE)
        return true;
    bool charged = kind == BIDE_BUDGET_TOKENS ? charge_tokens(m, c, cost_milli, now_ns) : charge_window(m, c, now_ns);
    if (!charged)
        return !model_refuse(m, e, BIDE_GATE_BUDGET);
    c->held = c->paid = true;
    c->charge_kind = kind;
    c->charged_under_lease = m->lease.on;
    return true;
}

static bool charge_key(struct model *m, struct model_call *c, struct expected *e, int64_t now_ns)
{
    if (m->config.key_retries == 0 || c->key == 0)
        return true;
    enum fate fate = key_can_retry(m, c->key, now_ns);
    if (model_decides_no(m, BIDE_GATE_KEY_LIMIT, fate)) {
        if (fate == FATE_EITHER)
            key_refuse(m, c->key);
        return !model_refuse(m, e, BIDE_GATE_KEY_LIMIT);
    }
    key_charge(m, c->key, now_ns);
    c->key_charged_ns = now_ns;
    c->key_held = true;
    return true;
}

/* -- judging a failure --------------------------------------------------------------------------------------------- */

/* Refusals before the wait is computed; BIDE_REASON_NOTHING: none. */
static enum bide_reason refusal_before_wait(struct model_call *c, const struct bide_outcome *o, enum bide_kind kind,
                                            int64_t now_ns)
{
    const struct bide_policy *p = c->policy;
    bool once_again = (o->flags & BIDE_FLAG_ONCE) != 0 && c->once;
    if (o->evidence == BIDE_EVIDENCE_BODY_DELIVERED)
        return BIDE_REASON_BODY_DELIVERED;
    if (c->attempt >= p->attempts_max)
        return BIDE_REASON_ATTEMPTS_SPENT;
    if (now_ns >= c->deadline_ns)
        return BIDE_REASON_DEADLINE;
    if (once_again)
        return BIDE_REASON_PERMANENT;
    if (o->flags & BIDE_FLAG_BODY_SPENT)
        return BIDE_REASON_BODY_SPENT;
    if (o->hint.kind == BIDE_HINT_STOP && p->hint_rule != BIDE_HINT_RULE_IGNORE)
        return BIDE_REASON_SERVER_STOP;
    if (kind == BIDE_KIND_THROTTLED && p->throttled_needs_hint && !follows_hint(p, &o->hint))
        return BIDE_REASON_HINT_MISSING;
    if (has_hint(p, &o->hint) && is_too_long(p, o->hint.wait_ns) && p->hint_long == BIDE_HINT_LONG_GIVE_UP)
        return BIDE_REASON_HINT_TOO_LONG;
    return BIDE_REASON_NOTHING;
}

static struct expected budget_is_empty(struct model *m, struct model_call *c, struct expected e, struct range wake,
                                       const struct bide_verdict *seen, int64_t now_ns)
{
    if (m->config.budget.on_empty == BIDE_ON_EMPTY_OPEN && m->breaker.state == BIDE_BREAKER_CLOSED)
        breaker_open(m, now_ns);
    if (!c->policy->long_poll)
        return end(m, c, e, BIDE_ACTION_GIVE_UP, BIDE_REASON_BUDGET_EMPTY, now_ns);
    c->state = CALL_GIVING_UP;
    return wait_for(c, e, BIDE_REASON_COUNT, wake, seen, now_ns);
}

static struct expected retry(struct model *m, struct model_call *c, const struct bide_outcome *o, enum bide_kind kind,
                             const struct bide_verdict *seen, int64_t now_ns)
{
    struct expected e = expect(c, BIDE_ACTION_NONE, BIDE_REASON_NOTHING);
    struct plan plan = plan_wait(c, o, kind);
    struct range wake = {sum(now_ns, plan.wait.lo), sum(now_ns, plan.wait.hi)};
    enum bide_reason reason = plan.reason;
    if (holds_off(m, now_ns) && m->hold_off_ns + jitter_ns(c->policy, m->hold_off_ns - now_ns) > wake.lo) {
        struct range hold = hold_off_range(m, c->policy, now_ns);
        reason = hold.lo > wake.hi ? BIDE_REASON_HOLD_OFF : BIDE_REASON_COUNT;
        wake = (struct range){larger(wake.lo, hold.lo), larger(wake.hi, hold.hi)};
    }
    bool near = seen->reason == BIDE_REASON_DEADLINE_NEAR;
    if (wake.lo >= c->deadline_ns || (wake.hi >= c->deadline_ns && near))
        return end(m, c, e, BIDE_ACTION_GIVE_UP, BIDE_REASON_DEADLINE_NEAR, now_ns);
    if (waits_are_spent(c, wake, seen, now_ns))
        return end(m, c, e, BIDE_ACTION_GIVE_UP, BIDE_REASON_WAITS_SPENT, now_ns);
    int64_t wake_ns = seen->action == BIDE_ACTION_WAIT ? seen->wake_ns : -1;
    if (wake.lo <= wake_ns && wake_ns <= wake.hi)
        wake.lo = wake.hi = wake_ns;
    if (model_decides_no(m, BIDE_GATE_BREAKER, breaker_admits_wait(m, wake.lo, wake.hi)) &&
        model_refuse(m, &e, BIDE_GATE_BREAKER))
        return end(m, c, e, BIDE_ACTION_GIVE_UP, BIDE_REASON_BREAKER_OPEN, now_ns);
    if (!charge_key(m, c, &e, now_ns))
        return end(m, c, e, BIDE_ACTION_GIVE_UP, BIDE_REASON_KEY_LIMIT, now_ns);
    if (!charge_budget(m, c, &e, cost_of(&m->config.budget, kind, o), now_ns))
        return budget_is_empty(m, c, e, wake, seen, now_ns);
    enum bide_reason own_reason = plan.reason == BIDE_REASON_COUNT ? seen->reason : plan.reason;
    step_on(c, own_reason == BIDE_REASON_SERVER_HINT, &plan);
    c->conflict = c->conflict || plan.at_once;
    c->once = c->once || (o->flags & BIDE_FLAG_ONCE) != 0;
    c->state = CALL_WAITING;
    return wait_for(c, e, reason, wake, seen, now_ns);
}

static struct expected judge(struct model *m, struct model_call *c, const struct bide_outcome *o,
                             const struct bide_verdict *seen, int64_t now_ns)
{
    struct expected e = expect(c, BIDE_ACTION_NONE, BIDE_REASON_NOTHING);
    bool key_409 = (o->flags & BIDE_FLAG_KEY_409) != 0 && c->safety == BIDE_KEYED;
    enum bide_kind kind = key_409 ? BIDE_KIND_TRANSIENT : o->kind;
    if (kind == BIDE_KIND_PERMANENT)
        return end(m, c, e, BIDE_ACTION_GIVE_UP, BIDE_REASON_PERMANENT, now_ns);
    enum bide_reason refusal = refusal_before_wait(c, o, kind, now_ns);
    bool by_hint = refusal == BIDE_REASON_SERVER_STOP || refusal == BIDE_REASON_HINT_MISSING ||
                   refusal == BIDE_REASON_HINT_TOO_LONG;
    if (by_hint)
        model_refuse(m, &e, BIDE_GATE_HINT);
    if (refusal != BIDE_REASON_NOTHING)
        return end(m, c, e, BIDE_ACTION_GIVE_UP, refusal, now_ns);
    return retry(m, c, o, kind, seen, now_ns);
}

struct expected model_outcome(struct model *m, struct model_call *c, uint32_t attempt, const struct bide_outcome *o,
                              const struct bide_verdict *seen, int64_t now_ns)
{
    struct expected e = expect(c, BIDE_ACTION_NONE, BIDE_REASON_NOTHING);
    if (c->state != CALL_RUNNING || attempt != c->attempt) {
        e.wake_lo_ns = e.wake_hi_ns = c->state == CALL_IDLE || c->state == CALL_RUNNING ? BIDE_NEVER : c->wake_ns;
        return e;
    }
    record(m, c, o, now_ns);
    if (o->kind == BIDE_KIND_OK) {
        earn_success(m, c);
        return end(m, c, e, BIDE_ACTION_DONE, BIDE_REASON_SUCCEEDED, now_ns);
    }
    if (o->kind != BIDE_KIND_CANCELLED)
        return judge(m, c, o, seen, now_ns);
    c->held = o->evidence == BIDE_EVIDENCE_NOT_SENT && c->attempt > 1 && c->paid;
    bool delivered = o->evidence == BIDE_EVIDENCE_BODY_DELIVERED;
    return end(m, c, e, BIDE_ACTION_GIVE_UP, delivered ? BIDE_REASON_BODY_DELIVERED : BIDE_REASON_CANCELLED, now_ns);
}

/* -- the other events ---------------------------------------------------------------------------------------------- */

/* A late wake is jittered again, once; if that could pass the deadline or the limit of all waits, the library may start
 * at once instead. */
static bool is_jittered_again(struct model_call *c, const struct bide_verdict *seen, int64_t now_ns)
{
    bool late = now_ns - c->wake_ns > BIDE_S;
    if (!late || c->rejittered || c->policy->jitter == BIDE_JITTER_NONE)
        return false;
    c->rejittered = true;
    int64_t last_ns = now_ns + larger(c->policy->base_ns, c->last_wait_ns);
    bool fits = last_ns < c->deadline_ns && last_ns <= sum(now_ns, waits_left(c));
    return fits || seen->reason == BIDE_REASON_LATE_WAKE;
}

static struct expected wait_again(const struct model *m, struct model_call *c, struct expected e,
                                  const struct bide_verdict *seen, int64_t now_ns)
{
    struct range wake = {now_ns, now_ns + larger(c->policy->base_ns, c->last_wait_ns)};
    if (holds_off(m, now_ns))
        wake.hi = larger(wake.hi, hold_off_range(m, c->policy, now_ns).hi);
    return wait_for(c, e, BIDE_REASON_LATE_WAKE, wake, seen, now_ns);
}

struct expected model_wake(struct model *m, struct model_call *c, const struct bide_verdict *seen, int64_t now_ns)
{
    struct expected e = expect(c, BIDE_ACTION_NONE, BIDE_REASON_NOTHING);
    if (c->state == CALL_IDLE || c->state == CALL_RUNNING)
        return e;
    e.wake_lo_ns = e.wake_hi_ns = c->wake_ns;
    if (now_ns < c->wake_ns)
        return e;
    if (c->state == CALL_GIVING_UP)
        return end(m, c, e, BIDE_ACTION_GIVE_UP, BIDE_REASON_BUDGET_EMPTY, now_ns);
    if (now_ns >= c->deadline_ns)
        return end(m, c, e, BIDE_ACTION_GIVE_UP, BIDE_REASON_DEADLINE, now_ns);
    if (is_jittered_again(c, seen, now_ns))
        return wait_again(m, c, e, seen, now_ns);
    if (holds_off(m, now_ns))
        return wait_for_hold_off(m, c, e, seen, now_ns);
    return start(m, c, e, now_ns);
}

struct expected model_cancel(struct model *m, struct model_call *c, int64_t now_ns)
{
    struct expected e = expect(c, BIDE_ACTION_NONE, BIDE_REASON_NOTHING);
    if (c->state == CALL_IDLE)
        return e;
    if (c->state == CALL_RUNNING)
        breaker_vote(m, &c->ticket, 0, now_ns);
    return end(m, c, e, BIDE_ACTION_GIVE_UP, BIDE_REASON_CANCELLED, now_ns);
}
