/* model.h - the knowledge of a caller about its calls, and the invariants that follow for the next verdict.
 *
 * The model sees requests, outcomes and verdicts, never the engine's state (except the public views of the target:
 * hold-off, breaker, budget). Each invariant is one require_invariant() with a sentence; the first one that fails is
 * kept. */
#ifndef PROPERTY_MODEL_H
#define PROPERTY_MODEL_H

#include <bide/breaker.h>
#include <bide/budget.h>
#include <bide/call.h>

#include "core/lease.h"
#include "world.h"

#define EVENTS       120
#define CUT_EARLY_NS (2 * BIDE_MS) /* an attempt that ends this much before the deadline was cut by it */
#define UNKNOWN_NS   (10 * BIDE_S) /* such attempts are excused for this long, even if no success is known */

/* -- the model ----------------------------------------------------------------------------------------------------- */

enum end { NOT_BEGUN, ALIVE, OVER };

struct model {
    enum end end;
    int64_t deadline_ns;
    int64_t wake_ns;    /* from the last verdict */
    int64_t not_before; /* end of the wait that a server requested from this call */
    int64_t waited_ns;  /* all waits */
    uint32_t started;
    int64_t started_ns[32];      /* of each attempt */
    uint32_t hedges;             /* of this round */
    uint32_t live;               /* bits, by attempt */
    bool waiting;                /* received WAIT, for a retry or for the hold-off */
    bool giving_up;              /* received WAIT budget_empty: only GIVE_UP may follow */
    bool blocked;                /* received WAIT from a gate: the retry is charged when it starts */
    struct bide_outcome failure; /* after which it waits */
    bool charged;                /* a retry is charged and has not started */
    bool paid;                   /* the latest retry or hedge was charged */
    bool may_have_run;           /* and must not be repeated then, if it is unsafe */
    bool stopped;                /* the server sent a stop */
    bool last_waited;
    uint32_t cost; /* of the last charge, in milli */
};

struct grant {
    int64_t at_ns;
    uint64_t key; /* 0: none, or its limit is in observe mode */
    int call;
    bool paid; /* false when the budget is in observe mode */
    bool unsent;
};

struct run {
    const struct world *world;
    struct bide_target target;
    struct bide_call call[CALLS];
    struct model model[CALLS];
    int64_t now_ns;
    int64_t fastest_ns;   /* the fastest success; BIDE_NEVER: none */
    int64_t level_milli;  /* tokens: upper bound of the level */
    bool inexact;         /* ... and the level may be lower */
    double refill_milli;  /* refilled by time, less than a thousandth */
    int64_t lease_end_ns; /* leased: no refill before this instant */
    uint64_t successes;   /* ... and these are recorded, */
    int64_t recorded_milli;
    uint32_t requests; /* first attempts, with their instants */
    int64_t request_at[EVENTS];
    struct grant grant[EVENTS];
    uint32_t grants;
    uint64_t fingerprint; /* of all verdicts */
    const char *broken;   /* the invariant that failed; NULL: none */
    struct bide_verdict verdict;
};

static void require_invariant(struct run *r, bool holds, const char *invariant)
{
    if (!holds && r->broken == NULL)
        r->broken = invariant;
}

static bool is_observed(const struct run *r, enum bide_gate gate)
{
    return (r->verdict.observed & (uint32_t)gate) != 0;
}

static uint32_t live_everywhere(const struct run *r)
{
    uint32_t n = 0;
    for (int i = 0; i < CALLS; i++)
        n += (uint32_t)__builtin_popcount(r->model[i].live);
    return n;
}

/* An event that is not due: early, late, repeated or about another attempt. */
static bool is_not_due(const struct model *m, const struct event *e)
{
    if (e->op == OP_BEGIN)
        return false; /* begins a call */
    if (m->end != ALIVE)
        return true;
    if (e->op == OP_OUTCOME)
        return e->attempt == 0 || e->attempt > 31 || (m->live >> e->attempt & 1u) == 0;
    return e->op == OP_WAKE && e->now_ns < m->wake_ns;
}

/* -- budget, seen from outside ------------------------------------------------------------------------------------- */

static const struct bide_budget_config *budget_of(const struct run *r)
{
    return &r->world->config.budget;
}

static bool counts_tokens(const struct run *r)
{
    return r->world->has_target && budget_of(r)->kind == BIDE_BUDGET_TOKENS;
}

static void add_milli(struct run *r, int64_t milli)
{
    int64_t capacity = budget_of(r)->capacity_milli;
    r->level_milli = r->level_milli + milli > capacity ? capacity : r->level_milli + milli;
}

/* Earning of a call: a leased target only records it. */
static void earn_milli(struct run *r, int64_t milli)
{
    if (r->world->leased)
        r->recorded_milli += milli;
    else
        add_milli(r, milli);
}

static void credit_time(struct run *r, int64_t now_ns)
{
    int64_t since_ns = r->now_ns > r->lease_end_ns ? r->now_ns : r->lease_end_ns;
    if (counts_tokens(r) && now_ns > since_ns) {
        r->refill_milli += (double)(now_ns - since_ns) * budget_of(r)->refill_per_minute_milli / (double)BIDE_MINUTE;
        if (r->refill_milli > budget_of(r)->capacity_milli)
            r->refill_milli = budget_of(r)->capacity_milli;
        add_milli(r, (int64_t)r->refill_milli);
        r->refill_milli -= (double)(int64_t)r->refill_milli;
    }
    r->now_ns = now_ns;
}

/* The engine counts time in ticks of 2^23 ns that do not begin with our world, and credits whole thousandths: it may
 * be ahead of the model by one tick and one thousandth (a drain removes only what was credited). */
static int64_t tick_slack(const struct run *r)
{
    return 2 + (int64_t)((double)(1 << 23) * budget_of(r)->refill_per_minute_milli / (double)BIDE_MINUTE);
}

static uint32_t retry_cost(const struct run *r, const struct bide_outcome *o)
{
    const struct bide_budget_config *b = budget_of(r);
    if (o != NULL && o->kind == BIDE_KIND_THROTTLED)
        return b->cost_throttled_milli;
    return o != NULL && (o->flags & BIDE_FLAG_TIMED_OUT) != 0 ? b->cost_timeout_milli : b->cost_milli;
}

static uint32_t granted_since(const struct run *r, int64_t since_ns)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->grants; i++)
        n += r->grant[i].paid && r->grant[i].at_ns > since_ns;
    return n;
}

static uint32_t requested_since(const struct run *r, int64_t since_ns)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->requests; i++)
        n += r->request_at[i] > since_ns;
    return n;
}

/* Entries of the engine's window count for 0.9 to 1.0 of its length: it knows every retry of the last 0.9, and no
 * request older than 1.0. (A refunded retry is no longer in the list.) */
static bool window_allows(const struct run *r)
{
    const struct bide_budget_config *b = budget_of(r);
    int64_t nine_tenths = b->window_ns / 10 * 9;
    uint64_t retries = granted_since(r, r->now_ns - nine_tenths);
    uint64_t requests = requested_since(r, r->now_ns - b->window_ns);
    return requested_since(r, r->now_ns - nine_tenths) < b->min_volume ||
           retries <= b->reserve + requests * b->ratio_ppm / 1000000;
}

static void check_grant(struct run *r)
{
    const struct bide_budget_config *b = budget_of(r);
    if (!r->world->has_target || is_observed(r, BIDE_GATE_BUDGET))
        return;
    if (b->kind == BIDE_BUDGET_TOKENS)
        require_invariant(r, r->level_milli >= -tick_slack(r) && b->capacity_milli > 0,
                          "charges never exceed the tokens in the bucket");
    if (b->kind == BIDE_BUDGET_WINDOW)
        require_invariant(r, window_allows(r), "no more retries than the window's share of requests");
}

static void check_key(struct run *r, uint64_t key)
{
    const struct bide_target_config *c = &r->world->config;
    uint32_t same = 0;
    if (!r->world->has_target || c->key_retries == 0 || key == 0)
        return;
    for (uint32_t i = 0; i < r->grants; i++)
        same += r->grant[i].key == key && r->grant[i].at_ns > r->now_ns - c->key_interval_ns;
    require_invariant(r, same <= c->key_retries, "no more retries of a key than its interval allows");
}

/* A retry was granted or, without an outcome, a hedge. */
static void charge(struct run *r, int call, const struct bide_outcome *o)
{
    struct model *m = &r->model[call];
    uint64_t key = is_observed(r, BIDE_GATE_KEY_LIMIT) ? 0 : r->world->request[call].retry_key;
    m->charged = m->paid = !is_observed(r, BIDE_GATE_BUDGET);
    r->grant[r->grants++] = (struct grant){r->now_ns, key, call, m->charged, o != NULL};
    check_key(r, key);
    if (m->charged) {
        m->cost = retry_cost(r, o);
        r->level_milli -= m->cost;
    }
    check_grant(r);
}

/* Removes the latest charged retry of a call from the list, sent or not. */
static void remove_grant(struct run *r, int call, bool unsent)
{
    for (uint32_t i = r->grants; i-- > 0;)
        if (r->grant[i].call == call && r->grant[i].unsent == unsent) {
            memmove(&r->grant[i], &r->grant[i + 1], (r->grants - i - 1) * sizeof *r->grant);
            r->grants--;
            return;
        }
}

/* The charged retry will not be sent. */
static void refund_unsent(struct run *r, int call)
{
    struct model *m = &r->model[call];
    remove_grant(r, call, true);
    if (m->charged)
        add_milli(r, m->cost);
    m->charged = false;
}

static void record_sent(struct run *r, int call)
{
    for (uint32_t i = 0; i < r->grants; i++)
        if (r->grant[i].call == call)
            r->grant[i].unsent = false;
    r->model[call].charged = false;
}

/* A failure that could be retried, or that came with a stop, has a cost of its own in some budgets (gRPC). */
static bool has_failure_cost(const struct run *r, const struct event *e)
{
    const struct bide_outcome *o = &e->outcome;
    bool stop = o->hint.kind == BIDE_HINT_STOP && r->world->policy.hint_rule != BIDE_HINT_RULE_IGNORE;
    return o->kind == BIDE_KIND_TRANSIENT || o->kind == BIDE_KIND_THROTTLED || o->kind == BIDE_KIND_CONFLICT ||
           (o->kind == BIDE_KIND_PERMANENT && stop);
}

static void account_outcome(struct run *r, const struct event *e)
{
    struct model *m = &r->model[e->call];
    const struct bide_budget_config *b = budget_of(r);
    if (e->outcome.kind == BIDE_KIND_CANCELLED && e->outcome.evidence == BIDE_EVIDENCE_NOT_SENT && m->paid) {
        add_milli(
            r,
            m->cost); /* our side stopped a retry before it was sent: refund of its charge, or of another attempt's */
        remove_grant(r, e->call, false);
        r->inexact = true;
    }
    if (e->outcome.kind == BIDE_KIND_OK) {
        int64_t refund = m->paid && b->refund_permille > 0 ? (int64_t)m->cost * b->refund_permille / 1000 : -1;
        bool plain = refund < 0 || (r->inexact && refund < b->earn_success_milli);
        earn_milli(r, plain ? b->earn_success_milli : refund);
        r->successes++;
    }
    if (has_failure_cost(r, e))
        r->level_milli -= r->level_milli < b->cost_failure_milli ? r->level_milli : b->cost_failure_milli;
}

/* -- a lease, seen from outside ------------------------------------------------------------------------------------ */

static void lease_tokens(struct run *r, int64_t milli)
{
    int64_t added_milli = bide_budget_add_milli(&r->target, milli, r->now_ns);
    require_invariant(r,
                      milli >= 0 ? added_milli >= 0 && added_milli <= milli : added_milli <= 0 && added_milli >= milli,
                      "add_milli changes the level by at most the requested amount");
    add_milli(r, added_milli);
}

static void extend(struct run *r, int64_t until_ns)
{
    int64_t now_ns = r->now_ns > 0 ? r->now_ns : 1;
    core_lease_extend(&r->target, until_ns, r->now_ns);
    if (until_ns > r->now_ns ? until_ns > r->lease_end_ns : now_ns < r->lease_end_ns)
        r->lease_end_ns = until_ns > r->now_ns ? until_ns : now_ns;
    require_invariant(r, core_lease_until(&r->target) == r->lease_end_ns, "a lease ends at its last extension");
}

/* All earnings of calls are recorded, once. */
static void check_report(struct run *r)
{
    struct core_lease_report report = core_lease_collect(&r->target);
    require_invariant(r, report.firsts == r->requests && report.successes == r->successes,
                      "every first attempt and success is recorded");
    require_invariant(r, report.earned_milli == (uint64_t)r->recorded_milli || r->inexact,
                      "the earnings of calls are recorded");
    require_invariant(r, core_lease_collect(&r->target).firsts == 0, "nothing is recorded twice");
}

/* -- invariants of each verdict ------------------------------------------------------------------------------------ */

static bool trusted(const struct run *r, const struct bide_outcome *o)
{
    uint32_t trust = r->world->has_target ? r->world->config.trust : 0;
    return o->evidence == BIDE_EVIDENCE_ANSWERED &&
           ((o->kind == BIDE_KIND_THROTTLED && (trust & BIDE_TRUST_THROTTLED) != 0) ||
            ((o->flags & BIDE_FLAG_UNAVAILABLE) != 0 && (trust & BIDE_TRUST_UNAVAILABLE) != 0));
}

/* Records what a caller learns from the outcome, before the verdict is checked. */
static void record_outcome(struct run *r, const struct event *e)
{
    const struct bide_policy *p = &r->world->policy;
    const struct bide_outcome *o = &e->outcome;
    struct model *m = &r->model[e->call];
    bool proof = o->evidence == BIDE_EVIDENCE_NOT_SENT || o->evidence == BIDE_EVIDENCE_REJECTED || trusted(r, o);
    m->live &= ~(1u << e->attempt);
    m->may_have_run |= !proof && o->kind != BIDE_KIND_OK;
    m->stopped |= o->hint.kind == BIDE_HINT_STOP && p->hint_rule != BIDE_HINT_RULE_IGNORE;
    account_outcome(r, e);
    if (p->hint_rule != BIDE_HINT_RULE_FLOOR || o->hint.kind != BIDE_HINT_WAIT || o->kind == BIDE_KIND_PERMANENT ||
        o->kind == BIDE_KIND_CANCELLED)
        return;
    if (o->hint.wait_ns > p->hint_max_ns && p->hint_long != BIDE_HINT_LONG_GIVE_UP)
        return; /* the policy clamps or ignores it */
    if (o->hint.wait_ns < BIDE_NEVER - r->now_ns && r->now_ns + o->hint.wait_ns > m->not_before)
        m->not_before = r->now_ns + o->hint.wait_ns;
}

static bool is_past_cut(const struct model *m, int64_t now_ns)
{
    return m->end == ALIVE && now_ns >= m->deadline_ns - CUT_EARLY_NS;
}

/* The usual latency lies between the fastest and the slowest success. The engine stores the start of a hedge in
 * microseconds, rounded down. */
static bool is_no_evidence(const struct run *r, const struct event *e)
{
    const struct model *m = &r->model[e->call];
    int64_t took_ns = r->now_ns - m->started_ns[e->attempt] + BIDE_US;
    bool cut = (e->outcome.flags & BIDE_FLAG_TIMED_OUT) != 0 && is_past_cut(m, r->now_ns);
    return (e->outcome.flags & BIDE_FLAG_LOCAL) != 0 ||
           (cut && took_ns < r->fastest_ns && r->now_ns < r->world->epoch_ns + UNKNOWN_NS);
}

/* An empty budget may open the breaker as well. */
static void check_vote(struct run *r, const struct event *e, struct bide_breaker_view before)
{
    const struct model *m = &r->model[e->call];
    if (e->op != OP_OUTCOME || !r->world->has_target)
        return;
    if (e->outcome.kind == BIDE_KIND_OK)
        r->fastest_ns = r->now_ns - m->started_ns[e->attempt] < r->fastest_ns ? r->now_ns - m->started_ns[e->attempt]
                                                                              : r->fastest_ns;
    else if (is_no_evidence(r, e))
        require_invariant(r,
                          bide_target_get(&r->target, r->now_ns).breaker.generation == before.generation ||
                              r->verdict.reason == BIDE_REASON_BUDGET_EMPTY,
                          "a failure that is no evidence casts no vote");
}

static void check_start(struct run *r, const struct event *e, int64_t hold_off_ns, struct bide_breaker_view breaker)
{
    const struct bide_policy *p = &r->world->policy;
    const struct bide_request *request = &r->world->request[e->call];
    struct model *m = &r->model[e->call];
    struct bide_verdict v = r->verdict;
    bool hedge = v.reason == BIDE_REASON_HEDGE, first = m->started == 0;
    bool inner = p->layer == BIDE_LAYER_NEVER || request->inbound.no_retry ||
                 (p->layer == BIDE_LAYER_OUTERMOST && request->inbound.attempt > 1);
    require_invariant(r, e->op == OP_BEGIN || e->op == OP_WAKE, "only begin and wake start attempts");
    require_invariant(r, v.attempt == m->started + 1, "attempts are numbered without a gap");
    require_invariant(r, v.attempt <= p->attempts_max, "no more attempts than the policy allows");
    require_invariant(r,
                      v.reason == (first   ? BIDE_REASON_FIRST_ATTEMPT
                                   : hedge ? BIDE_REASON_HEDGE
                                           : BIDE_REASON_RETRY),
                      "a start has a fitting reason");
    require_invariant(r, hedge == (m->live != 0), "an attempt is a hedge exactly when another attempt runs");
    require_invariant(r, r->now_ns < m->deadline_ns, "no attempt starts at or after the deadline");
    require_invariant(r, v.attempt_deadline_ns > r->now_ns && v.attempt_deadline_ns <= m->deadline_ns,
                      "an attempt ends before the deadline");
    require_invariant(r, v.connect_deadline_ns <= v.attempt_deadline_ns, "connecting ends before the attempt");
    require_invariant(r,
                      p->attempt_timeout_ns == BIDE_NEVER || v.attempt_deadline_ns <= r->now_ns + p->attempt_timeout_ns,
                      "an attempt ends at its timeout");
    require_invariant(
        r, first || request->safety != BIDE_UNSAFE || !m->may_have_run || (p->observe & BIDE_GATE_REPEAT) != 0,
        "an unsafe request that may have run is never repeated");
    require_invariant(r, !hedge || request->safety != BIDE_UNSAFE, "an unsafe request is never hedged");
    require_invariant(r, first || !inner || (p->observe & BIDE_GATE_LAYER) != 0, "an inner layer makes one attempt");
    require_invariant(r, first || !m->stopped || (p->observe & BIDE_GATE_HINT) != 0,
                      "no attempt follows a server's stop");
    require_invariant(r, r->now_ns >= m->not_before, "no attempt starts before the instant that a server requested");
    require_invariant(r, first || hold_off_ns == 0, "no retry or hedge starts during a hold-off");
    require_invariant(r, !m->giving_up, "no attempt follows the last wait of a long poll");
    if (r->world->has_target && (r->world->config.observe & BIDE_GATE_BREAKER) == 0) {
        require_invariant(r, breaker.state != BIDE_BREAKER_HELD_OPEN, "an open breaker admits no attempt");
        require_invariant(r, breaker.state != BIDE_BREAKER_OPEN || r->now_ns >= breaker.until_ns,
                          "an open breaker admits no attempt");
    }
    if (r->world->has_target && r->world->config.in_flight_max > 0 && !is_observed(r, BIDE_GATE_IN_FLIGHT))
        require_invariant(r, live_everywhere(r) < r->world->config.in_flight_max,
                          "no more attempts in flight than the target allows");
}

static void apply_start(struct run *r, const struct event *e)
{
    struct model *m = &r->model[e->call];
    bool hedge = r->verdict.reason == BIDE_REASON_HEDGE;
    if (m->started == 0 && counts_tokens(r))
        earn_milli(r, budget_of(r)->earn_first_milli);
    if (m->started == 0)
        r->request_at[r->requests++] = r->now_ns;
    m->hedges = hedge ? m->hedges + 1 : 0;
    require_invariant(r, m->hedges <= r->world->policy.hedges_max, "no more hedges in a round than the policy allows");
    if (hedge || m->blocked)
        charge(r, e->call, hedge ? NULL : &m->failure);
    m->blocked = false;
    record_sent(r, e->call);
    m->started++;
    m->started_ns[m->started % 32] = r->now_ns;
    m->live |= 1u << m->started;
    m->waiting = false;
}

/* Checks the delay against the longest and the shortest backoff. */
static bool own_wait_fits(const struct bide_policy *p, int64_t wait_ns)
{
    int64_t most = p->cap_ns;
    if (p->jitter == BIDE_JITTER_PROPORTIONAL && p->jitter_past_cap)
        most = (int64_t)((double)p->cap_ns * p->jitter_hi_permille / 1000) + 1;
    return wait_ns <= most && (p->backoff == BIDE_BACKOFF_NONE ? wait_ns == 0 : wait_ns >= p->floor_ns);
}

/* Returns true if the call waits for a gate and holds nothing. */
static bool is_gate_wait(const struct run *r, const struct event *e)
{
    enum bide_reason reason = r->verdict.reason;
    bool hold_off = reason == BIDE_REASON_HOLD_OFF && e->op != OP_OUTCOME; /* at the decision it is part of the wait */
    return r->world->policy.when_refused == BIDE_WHEN_REFUSED_WAIT &&
           (hold_off || reason == BIDE_REASON_BREAKER_OPEN || reason == BIDE_REASON_BREAKER_PROBING ||
            reason == BIDE_REASON_BREAKER_RAMPING || reason == BIDE_REASON_THROTTLE ||
            reason == BIDE_REASON_IN_FLIGHT_FULL || reason == BIDE_REASON_KEY_LIMIT ||
            reason == BIDE_REASON_BUDGET_EMPTY);
}

static int64_t last_start_ns(const struct bide_policy *p, const struct model *m)
{
    int64_t needs_ns = p->attempt_min_ns > 0 ? p->attempt_min_ns : p->connect_timeout_ns;
    return m->deadline_ns == BIDE_NEVER ? BIDE_NEVER : m->deadline_ns - (needs_ns == BIDE_NEVER ? 0 : needs_ns);
}

static void check_wait(struct run *r, const struct event *e, int64_t hold_off_ns)
{
    const struct bide_policy *p = &r->world->policy;
    struct model *m = &r->model[e->call];
    struct bide_verdict v = r->verdict;
    require_invariant(r, m->live == 0, "no wait while an attempt runs");
    require_invariant(r, v.wake_ns >= r->now_ns && v.wake_ns < m->deadline_ns, "a wait ends before the deadline");
    require_invariant(r, v.wake_ns - r->now_ns <= p->waits_max_ns - m->waited_ns,
                      "all waits together never exceed the limit");
    require_invariant(r, v.reason == BIDE_REASON_BUDGET_EMPTY || v.wake_ns >= m->not_before,
                      "no wait ends before a server's hint");
    require_invariant(r,
                      m->started == 0 || hold_off_ns == 0 || v.reason == BIDE_REASON_BUDGET_EMPTY ||
                          v.reason == BIDE_REASON_LATE_WAKE || v.wake_ns >= hold_off_ns,
                      "no wait for a retry ends during a hold-off");
    if (v.reason == BIDE_REASON_BACKOFF)
        require_invariant(r, own_wait_fits(p, v.wake_ns - r->now_ns), "a backoff is between floor and cap");
    if (v.reason == BIDE_REASON_CONFLICT)
        require_invariant(r, v.wake_ns == r->now_ns && e->outcome.kind == BIDE_KIND_CONFLICT,
                          "only a conflict is retried at once");
    if (v.reason == BIDE_REASON_BUDGET_EMPTY)
        require_invariant(r, p->long_poll || p->when_refused == BIDE_WHEN_REFUSED_WAIT,
                          "only a long poll, or a call that waits for gates, waits on an empty budget");
    if (is_gate_wait(r, e))
        require_invariant(r, v.wake_ns <= last_start_ns(p, m), "a wait for a gate leaves time for an attempt");
    if (v.reason == BIDE_REASON_LAST_WAIT)
        require_invariant(r, p->last_wait && v.wake_ns <= last_start_ns(p, m) && !m->last_waited,
                          "the last wait leaves time for an attempt, and there is one");
    if (e->op == OP_OUTCOME)
        require_invariant(r, m->started < p->attempts_max, "no wait for an attempt that is not allowed");
}

static void apply_wait(struct run *r, const struct event *e)
{
    struct model *m = &r->model[e->call];
    m->waiting = true;
    m->waited_ns += r->verdict.wake_ns - r->now_ns;
    m->last_waited = m->last_waited || r->verdict.reason == BIDE_REASON_LAST_WAIT;
    if (e->op == OP_OUTCOME)
        m->failure = e->outcome;
    if (is_gate_wait(r, e)) {
        refund_unsent(r, e->call);
        m->blocked = m->started > 0;
        return;
    }
    m->giving_up = r->verdict.reason == BIDE_REASON_BUDGET_EMPTY;
    if (e->op == OP_OUTCOME && !m->giving_up)
        charge(r, e->call, &e->outcome);
}

static void apply_end(struct run *r, const struct event *e)
{
    struct model *m = &r->model[e->call];
    if (m->waiting)
        refund_unsent(r, e->call);
    m->end = OVER;
    m->live = 0;
}

static void check_give_up(struct run *r, const struct event *e)
{
    struct model *m = &r->model[e->call];
    enum bide_reason reason = r->verdict.reason;
    require_invariant(r, e->op != OP_OUTCOME || e->outcome.kind != BIDE_KIND_OK, "a success is never given up");
    require_invariant(r,
                      (reason == BIDE_REASON_CANCELLED) ==
                          (e->op == OP_CANCEL || (e->op == OP_OUTCOME && e->outcome.kind == BIDE_KIND_CANCELLED &&
                                                  e->outcome.evidence != BIDE_EVIDENCE_BODY_DELIVERED)),
                      "the reason is cancelled exactly when the call was cancelled");
    require_invariant(r, reason != BIDE_REASON_DEADLINE || r->now_ns >= m->deadline_ns,
                      "the reason is deadline only after the deadline");
    require_invariant(r, reason != BIDE_REASON_ATTEMPTS_SPENT || m->started == r->world->policy.attempts_max,
                      "the reason is attempts_spent only after all attempts");
    require_invariant(r, reason != BIDE_REASON_WAITS_SPENT || r->world->policy.waits_max_ns != BIDE_NEVER,
                      "the reason is waits_spent only with a limit");
    require_invariant(r, m->started > 0 || r->verdict.attempt == 0, "the verdict names no attempt if none was made");
    require_invariant(r, r->verdict.attempt <= m->started, "the verdict names an attempt that was made");
}

static void check_verdict(struct run *r, const struct event *e, int64_t hold_off_ns, struct bide_breaker_view breaker)
{
    struct model *m = &r->model[e->call];
    struct bide_verdict v = r->verdict;
    bool success = e->op == OP_OUTCOME && e->outcome.kind == BIDE_KIND_OK;
    require_invariant(r, success == (v.action == BIDE_ACTION_DONE),
                      "the call is done exactly when an attempt succeeds");
    require_invariant(r, e->op != OP_CANCEL || v.action == BIDE_ACTION_GIVE_UP, "a cancelled call has ended");
    switch (v.action) {
    case BIDE_ACTION_NONE:
        require_invariant(r, m->live != 0, "a call without an attempt in flight gets an action");
        break;
    case BIDE_ACTION_START:
        check_start(r, e, hold_off_ns, breaker);
        apply_start(r, e);
        break;
    case BIDE_ACTION_WAIT:
        check_wait(r, e, hold_off_ns);
        apply_wait(r, e);
        break;
    case BIDE_ACTION_DONE:
        require_invariant(r, v.reason == BIDE_REASON_SUCCEEDED && v.attempt == e->attempt,
                          "done names the attempt that succeeded");
        apply_end(r, e);
        break;
    case BIDE_ACTION_GIVE_UP:
        check_give_up(r, e);
        apply_end(r, e);
        break;
    }
    if (v.action == BIDE_ACTION_DONE || v.action == BIDE_ACTION_GIVE_UP)
        require_invariant(r, v.wake_ns == BIDE_NEVER, "an ended call has no timer");
    if (v.action != BIDE_ACTION_START)
        require_invariant(r, v.attempt_deadline_ns == BIDE_NEVER && v.connect_deadline_ns == BIDE_NEVER,
                          "only a start has deadlines");
    require_invariant(r, v.wake_ns == BIDE_NEVER || v.wake_ns >= r->now_ns || v.wake_ns == m->wake_ns,
                      "a timer is never set in the past");
    require_invariant(r, v.wake_ns == BIDE_NEVER || v.wake_ns <= m->deadline_ns,
                      "a timer is never set beyond the deadline");
    m->wake_ns = v.wake_ns;
}

/* The level of the budget agrees with the model; with a refill it may lose ticks, but never gains any. */
static void check_level(struct run *r)
{
    if (!counts_tokens(r))
        return;
    int64_t left = bide_target_get(&r->target, r->now_ns).budget_left_milli;
    require_invariant(r, left >= 0 && left <= budget_of(r)->capacity_milli, "the level is between 0 and the capacity");
    require_invariant(r, left <= r->level_milli + tick_slack(r), "the level never exceeds the tokens added");
    require_invariant(r, left == r->level_milli || r->inexact || budget_of(r)->refill_per_minute_milli > 0,
                      "no token is lost or created");
}

#endif
