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

/* -- waiting for a gate, and for the last attempt ------------------------------------------------------------------ */

/* Upward jitter on a wait that a server requested, or a gate. */
static int64_t jitter_ns(const struct bide_policy *p, int64_t wait_ns)
{
    if (p->jitter == BIDE_JITTER_NONE)
        return 0;
    model_wide share = (model_wide)wait_ns * p->hint_jitter_permille / 1000;
    return larger(share < BIDE_NEVER ? (int64_t)share : BIDE_NEVER, p->base_ns);
}

static struct range own_backoff(const struct model_call *c, enum bide_kind kind)
{
    const struct bide_policy *p = c->policy;
    model_wide e = kind == BIDE_KIND_THROTTLED && p->throttled_base_ns > 0 ? p->throttled_base_ns : p->base_ns;
    if (p->backoff == BIDE_BACKOFF_NONE)
        return (struct range){0, 0};
    if (p->backoff == BIDE_BACKOFF_LINEAR)
        e *= c->step + 1;
    for (uint32_t i = 0; p->backoff == BIDE_BACKOFF_EXPONENTIAL && i < c->step && e < p->cap_ns; i++)
        e *= 2;
    int64_t envelope = e < p->cap_ns ? (int64_t)e : p->cap_ns;
    return p->jitter == BIDE_JITTER_NONE ? (struct range){envelope, envelope} : (struct range){p->floor_ns, envelope};
}

/* The last instant at which a useful attempt can start. */
static int64_t last_start_ns(const struct model_call *c)
{
    const struct bide_policy *p = c->policy;
    int64_t needs_ns = p->attempt_min_ns != 0 ? p->attempt_min_ns : p->connect_timeout_ns;
    if (needs_ns == BIDE_NEVER)
        needs_ns = 1;
    return c->deadline_ns == BIDE_NEVER ? BIDE_NEVER : c->deadline_ns - needs_ns;
}

/* The backoff that a call waits for a gate of which it does not know when it admits; at least the base. */
static struct range gate_wait(struct model_call *c, int64_t now_ns)
{
    struct range own = own_backoff(c, c->failed);
    c->step += c->step < 65535;
    c->last_wait_ns = own.hi;
    return (struct range){sum(now_ns, larger(own.lo, c->policy->base_ns)),
                          sum(now_ns, larger(own.hi, c->policy->base_ns))};
}

static struct range at_least_base(const struct model_call *c, struct range wake, int64_t now_ns)
{
    int64_t least_ns = sum(now_ns, c->policy->base_ns);
    return (struct range){larger(wake.lo, least_ns), larger(wake.hi, least_ns)};
}

/* A gate refuses: the call gives up or, if the policy says so, holds nothing and waits until an instant of the
 * range. */
static struct expected refused(struct model *m, struct model_call *c, struct expected e, enum bide_reason reason,
                               struct range until, const struct bide_verdict *seen, int64_t now_ns)
{
    int64_t last_ns = smaller(smaller(last_start_ns(c), c->deadline_ns - 1), sum(now_ns, waits_left(c)));
    if (c->policy->when_refused != BIDE_WHEN_REFUSED_WAIT)
        return end(m, c, e, BIDE_ACTION_GIVE_UP, reason, now_ns);
    until.hi = sum(until.hi, jitter_ns(c->policy, until.hi - now_ns));
    if (until.lo > last_ns || (until.hi > last_ns && seen->action == BIDE_ACTION_GIVE_UP))
        return end(m, c, e, BIDE_ACTION_GIVE_UP, reason, now_ns);
    until.hi = smaller(until.hi, last_ns);
    refund_budget(m, c, now_ns);
    refund_key(m, c);
    c->state = c->attempt == 0 ? CALL_BEGUN : CALL_BLOCKED;
    return wait_for(c, e, reason, until, seen, now_ns);
}

/* When the breaker may admit the call; a probe mostly ends before its slot expires. */
static struct range breaker_until(const struct model *m, struct model_call *c, enum bide_reason reason, int64_t now_ns)
{
    int64_t until_ns = m->breaker.until_ns;
    if (reason == BIDE_REASON_BREAKER_RAMPING)
        return (struct range){now_ns, breaker_ramp_end_ns(m)};
    if (reason == BIDE_REASON_BREAKER_OPEN && until_ns > now_ns)
        return (struct range){until_ns, until_ns};
    struct range wait = gate_wait(c, now_ns);
    if (reason == BIDE_REASON_BREAKER_PROBING)
        wait.lo = now_ns;
    return wait;
}

static struct expected start(struct model *m, struct model_call *c, struct expected e, const struct bide_verdict *seen,
                             int64_t now_ns)
{
    bool first = c->attempt == 0;
    uint32_t observed = e.observed;
    enum bide_reason refusal = breaker_admit(m, &c->ticket, now_ns);
    if (refusal != BIDE_REASON_NOTHING) {
        c->ticket.votes = refusal == BIDE_REASON_BREAKER_RAMPING; /* observed: a closed breaker still counts it */
        if (model_refuse(m, &e, BIDE_GATE_BREAKER))
            return refused(m, c, e, refusal, breaker_until(m, c, refusal, now_ns), seen, now_ns);
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
    if (c->policy->when_refused == BIDE_WHEN_REFUSED_WAIT)
        return refused(m, c, e, BIDE_REASON_HOLD_OFF, (struct range){m->hold_off_ns, m->hold_off_ns}, seen, now_ns);
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
    return start(m, c, e, seen, now_ns);
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
    return o->kind == BIDE_KIND_TRANSIENT ? -1 : 0;
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

/* The time that the call waits of a hint that it follows. */
static int64_t shortened(const struct bide_policy *p, int64_t hint_ns)
{
    return is_too_long(p, hint_ns) ? smaller(p->hint_max_ns, BIDE_DURATION_MAX) : hint_ns;
}

static struct plan plan_wait(const struct model_call *c, const struct bide_outcome *o, enum bide_kind kind)
{
    const struct bide_policy *p = c->policy;
    bool hint = follows_hint(p, &o->hint);
    struct range own = own_backoff(c, kind);
    if (kind == BIDE_KIND_CONFLICT && p->conflict_at_once && !c->conflict && !hint)
        return (struct plan){{0, 0}, BIDE_REASON_CONFLICT, true, 0};
    if (!hint)
        return (struct plan){own, BIDE_REASON_BACKOFF, false, own.hi};
    int64_t hint_ns = shortened(p, o->hint.wait_ns);
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

static int64_t cost_of(const struct bide_budget_config *b, enum bide_kind kind, bool timed_out)
{
    if (kind == BIDE_KIND_THROTTLED)
        return b->cost_throttled_milli;
    return timed_out ? b->cost_timeout_milli : b->cost_milli;
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
    if (!c->policy->long_poll || c->policy->when_refused == BIDE_WHEN_REFUSED_WAIT)
        return refused(m, c, e, BIDE_REASON_BUDGET_EMPTY, at_least_base(c, wake, now_ns), seen, now_ns);
    c->state = CALL_GIVING_UP;
    return wait_for(c, e, BIDE_REASON_COUNT, wake, seen, now_ns);
}

/* Is the backoff, and nothing else, replaced by a draw that leaves time for a last attempt? */
static bool is_last_wait(const struct model_call *c, enum bide_reason reason, struct range wake, int64_t floor_ns,
                         const struct bide_verdict *seen, int64_t now_ns)
{
    int64_t last_ns = last_start_ns(c);
    if (!c->policy->last_wait || c->last_waited || last_ns - now_ns < larger(c->policy->base_ns, floor_ns) ||
        wake.hi <= last_ns)
        return false;
    bool certain = reason == BIDE_REASON_BACKOFF && wake.lo > last_ns;
    bool open = reason == BIDE_REASON_BACKOFF || reason == BIDE_REASON_COUNT;
    return certain || (open && seen->reason == BIDE_REASON_LAST_WAIT);
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
    int64_t hint_ns = follows_hint(c->policy, &o->hint) ? shortened(c->policy, o->hint.wait_ns) : 0;
    int64_t floor_ns = larger(hint_ns, holds_off(m, now_ns) ? m->hold_off_ns - now_ns : 0);
    if (is_last_wait(c, reason, wake, floor_ns, seen, now_ns)) {
        int64_t room_ns = last_start_ns(c) - now_ns;
        wake = (struct range){now_ns + larger(room_ns - room_ns / 2, floor_ns), now_ns + room_ns};
        reason = BIDE_REASON_LAST_WAIT;
        c->last_waited = true;
    }
    bool near = seen->reason == BIDE_REASON_DEADLINE_NEAR;
    if (wake.lo >= c->deadline_ns || (wake.hi >= c->deadline_ns && near))
        return end(m, c, e, BIDE_ACTION_GIVE_UP, BIDE_REASON_DEADLINE_NEAR, now_ns);
    if (waits_are_spent(c, wake, seen, now_ns))
        return end(m, c, e, BIDE_ACTION_GIVE_UP, BIDE_REASON_WAITS_SPENT, now_ns);
    enum bide_reason own_reason = plan.reason == BIDE_REASON_COUNT ? seen->reason : plan.reason;
    step_on(c, own_reason == BIDE_REASON_SERVER_HINT, &plan);
    c->conflict = c->conflict || plan.at_once;
    c->once = c->once || (o->flags & BIDE_FLAG_ONCE) != 0;
    c->failed = kind;
    c->timed_out = (o->flags & BIDE_FLAG_TIMED_OUT) != 0;
    bool by_gate = c->policy->when_refused == BIDE_WHEN_REFUSED_WAIT &&
                   (seen->reason == BIDE_REASON_BREAKER_OPEN || seen->reason == BIDE_REASON_KEY_LIMIT ||
                    seen->reason == BIDE_REASON_BUDGET_EMPTY);
    int64_t wake_ns = seen->action == BIDE_ACTION_WAIT && !by_gate ? seen->wake_ns : -1;
    if (wake.lo <= wake_ns && wake_ns <= wake.hi)
        wake.lo = wake.hi = wake_ns;
    if (model_decides_no(m, BIDE_GATE_BREAKER, breaker_admits_wait(m, wake.lo, wake.hi)) &&
        model_refuse(m, &e, BIDE_GATE_BREAKER))
        return refused(m, c, e, BIDE_REASON_BREAKER_OPEN, breaker_until(m, c, BIDE_REASON_BREAKER_OPEN, now_ns), seen,
                       now_ns);
    if (!charge_key(m, c, &e, now_ns))
        return refused(m, c, e, BIDE_REASON_KEY_LIMIT, at_least_base(c, wake, now_ns), seen, now_ns);
    if (!charge_budget(m, c, &e, cost_of(&m->config.budget, c->failed, c->timed_out), now_ns))
        return budget_is_empty(m, c, e, wake, seen, now_ns);
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
    if (c->state != CALL_BLOCKED)
        return start(m, c, e, seen, now_ns);
    struct range backoff;
    if (!charge_key(m, c, &e, now_ns)) {
        backoff = gate_wait(c, now_ns);
        return refused(m, c, e, BIDE_REASON_KEY_LIMIT, backoff, seen, now_ns);
    }
    if (!charge_budget(m, c, &e, cost_of(&m->config.budget, c->failed, c->timed_out), now_ns)) {
        backoff = gate_wait(c, now_ns);
        return budget_is_empty(m, c, e, backoff, seen, now_ns);
    }
    return start(m, c, e, seen, now_ns);
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
