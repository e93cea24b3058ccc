/* call.c - the state machine of one call: one function per event, and the only place that decides.
 *
 * States:  NEW -> (HELD ->) RUNNING -> WAITING -> RUNNING -> ... -> OVER, and PARTING -> OVER for long polls.
 *
 * Attempts go in rounds. A round is one attempt and the hedges beside it; the next round begins after a wait, when all
 * attempts of this one have failed. `live` holds the round's size (high half) and which of it are in flight (low).
 *
 * A failure is first accounted for (breaker, budget, latency, quiet), then judged. Gates are asked in a fixed order,
 * free questions first, the one that spends last. What was taken for a retry (token, place in a key's limit) is held
 * until the retry starts, and given back if it never does. */
#include <bide/backoff.h>
#include <bide/call.h>

#include "gates.h"
#include "saturate.h"

/* A call that succeeds at once has two short cuts of its own: inlined, with the long way kept out of line. */
#define HOT    static inline __attribute__((always_inline))
#define DETOUR static __attribute__((noinline))

#define LATE_NS BIDE_S /* a wake this much too late means suspend, or a stalled process: spread again */

enum state { NEW = 0, HELD, RUNNING, WAITING, PARTING, OVER };

enum flag {
    CHARGED = 1u << 0, /* a budget charge is held: for a retry that has not started, or (concurrency) for its run */
    CHARGE_SHIFT = 1,  /* two bits: the kind of budget that was charged last */
    KEY_TAKEN = 1u << 3,
    PAID = 1u << 4,      /* the last retry or hedge was charged */
    PROBE = 1u << 5,     /* this round is a probe of the breaker */
    IN_FLIGHT = 1u << 6, /* the attempts of this round are counted in flight */
    IN_CALLS = 1u << 7,  /* counted among the calls of a concurrency budget */
    CONFLICTED = 1u << 8,
    TRIED_ONCE = 1u << 9,
    SPREAD_AGAIN = 1u << 10,
    INNER = 1u << 11,    /* a caller above retries */
    STOPPED = 1u << 12,  /* the server said not to retry */
    NO_HEDGE = 1u << 13, /* a hedge was refused: no more in this round */
    HINTED = 1u << 14,   /* an attempt of this round was told to wait: wake_ns says until when, no timer is set */
    BODY_GONE = 1u << 15,
};

/* What one event sees. target is NULL when there is none, or when its memory belongs to another by now. */
struct event {
    struct bide_call *call;
    struct bide_target *target;
    int64_t now_ns;
    uint32_t hot;
    uint32_t observed;
};

HOT uint16_t owner_of(const struct bide_target *t)
{
    return (uint16_t)(core_load(&t->identity) >> 16);
}

HOT struct event event_on(struct bide_call *c, struct bide_target *t, int64_t now_ns)
{
    uint32_t no_gates = BIDE_BREAKER_OFF | (uint32_t)BIDE_BUDGET_NONE << CORE_HOT_BUDGET_SHIFT;
    return (struct event){.call = c, .target = t, .now_ns = now_ns, .hot = t ? core_hot(t) : no_gates};
}

HOT struct event event_of(struct bide_call *c, int64_t now_ns)
{
    bool mine = c->target && owner_of(c->target) == c->owner;
    return event_on(c, mine ? c->target : NULL, now_ns);
}

static struct core_chance chance(const struct bide_call *c, enum core_purpose purpose)
{
    return (struct core_chance){c->seed, c->attempt, purpose};
}

HOT bool has(const struct bide_call *c, uint32_t flag)
{
    return (c->flags & flag) != 0;
}

HOT void set(struct bide_call *c, uint32_t flag)
{
    c->flags = (uint16_t)(c->flags | flag);
}

HOT void clear(struct bide_call *c, uint32_t flag)
{
    c->flags = (uint16_t)(c->flags & ~flag);
}

/* ---- verdicts ---- */

static int64_t timer_of(const struct bide_call *c)
{
    return has(c, HINTED) ? BIDE_NEVER : c->wake_ns;
}

HOT struct bide_verdict verdict(const struct event *e, enum bide_what what, enum bide_why why)
{
    return (struct bide_verdict){.what = what,
                                 .why = why,
                                 .attempt = e->call->attempt,
                                 .observed = e->observed,
                                 .wake_ns = e->call->wake_ns,
                                 .attempt_deadline_ns = BIDE_NEVER,
                                 .connect_deadline_ns = BIDE_NEVER};
}

/* Late, repeated or early: nothing changes. */
static struct bide_verdict nothing(const struct bide_call *c)
{
    bool waits = c->state != NEW && c->state != OVER;
    return (struct bide_verdict){.attempt = c->attempt,
                                 .wake_ns = waits ? timer_of(c) : BIDE_NEVER,
                                 .attempt_deadline_ns = BIDE_NEVER,
                                 .connect_deadline_ns = BIDE_NEVER};
}

/* A gate says no. True if that holds, false if the gate only observes. Counted in both cases. */
static bool refuses(struct event *e, enum bide_gate gate)
{
    uint32_t observing = e->hot >> CORE_HOT_OBSERVE_SHIFT | e->call->policy->observe;
    if (e->target)
        core_add(&e->target->refused[__builtin_ctz((unsigned)gate)], 1);
    if (!(observing & (unsigned)gate))
        return true;
    e->observed |= (unsigned)gate;
    return false;
}

/* ---- rounds ---- */

#define ONE_IN_FLIGHT 0x11 /* a round of one, and it runs */

HOT uint32_t round_size(const struct bide_call *c)
{
    return c->live >> 4;
}

HOT uint32_t in_flight(const struct bide_call *c)
{
    return c->live & 0xfu;
}

/* The bit of an attempt that is in flight, else 0. */
HOT uint32_t live_bit(const struct bide_call *c, uint32_t attempt)
{
    uint32_t first = c->attempt - round_size(c) + 1, place = attempt - first;
    return place < round_size(c) ? in_flight(c) & 1u << place : 0;
}

HOT int64_t started_ns(const struct bide_call *c, uint32_t place)
{
    return place == 0 ? c->round_ns : c->round_ns + (int64_t)c->hedge_us[place - 1] * BIDE_US;
}

/* The next attempt takes this place in the round; 0 begins one. */
HOT void join_round(struct bide_call *c, uint32_t place, int64_t now_ns)
{
    if (place == 0)
        c->round_ns = now_ns;
    else
        c->hedge_us[place - 1] = (uint32_t)core_min((now_ns - c->round_ns) / BIDE_US, UINT32_MAX);
    c->live = (uint8_t)((place + 1) << 4 | (place == 0 ? 0 : in_flight(c)) | 1u << place);
    c->attempt++;
}

/* ---- charging and giving back ---- */

HOT struct core_charge charge_of(const struct bide_call *c)
{
    return (struct core_charge){(enum bide_budget_kind)(c->flags >> CHARGE_SHIFT & 3), c->charge};
}

static void give_charge_back(struct event *e)
{
    if (has(e->call, CHARGED) && e->target)
        core_budget_give_back(e->target, charge_of(e->call));
    clear(e->call, CHARGED);
}

static void give_key_back(struct event *e)
{
    if (has(e->call, KEY_TAKEN) && e->target)
        core_key_give_back(e->target, e->call->key, e->call->key_tick);
    clear(e->call, KEY_TAKEN);
}

/* A concurrency budget keeps its places while attempts run; a hedge adds one to those held. */
static bool take_charge(struct event *e, const struct bide_outcome *why)
{
    struct bide_call *c = e->call;
    struct core_charge held = charge_of(c), charge;
    if (!core_budget_take(e->target, why, e->now_ns, &charge))
        return false;
    if (charge.kind == BIDE_BUDGET_CONCURRENCY)
        charge.amount = has(c, CHARGED) && held.kind == charge.kind ? held.amount + 1 : 1;
    else
        give_charge_back(e); /* a reload changed the kind: places held under the old one */
    clear(c, 3u << CHARGE_SHIFT);
    set(c, CHARGED | PAID | (uint32_t)charge.kind << CHARGE_SHIFT);
    c->charge = charge.amount;
    return true;
}

/* The attempt starts: what it was charged is spent. */
static void spend(struct bide_call *c)
{
    clear(c, KEY_TAKEN);
    if (charge_of(c).kind != BIDE_BUDGET_CONCURRENCY)
        clear(c, CHARGED);
}

static void leave_flight(struct event *e, uint32_t attempts)
{
    if (has(e->call, IN_FLIGHT) && e->target)
        core_sub(&e->target->in_flight, attempts);
}

static void vote(struct event *e, enum core_vote ballot)
{
    struct bide_call *c = e->call;
    struct core_ballot b = {ballot, c->lease, has(c, PROBE), c->lane, c->seed};
    if (b.probe || (ballot != CORE_VOTE_NEUTRAL && core_hot_breaker(e->hot) != BIDE_BREAKER_OFF))
        core_breaker_vote(e->target, &b, e->hot, e->now_ns);
    clear(c, PROBE);
}

/* Attempts still in flight when the call ends: hedges that lost, or a cancelled call. They teach how long it took at
 * least; they say nothing of the server's health, so a probe among them returns its place without a vote. */
static void drop_live(struct event *e)
{
    struct bide_call *c = e->call;
    leave_flight(e, (uint32_t)__builtin_popcount(in_flight(c)));
    for (uint32_t place = 0; place < round_size(c); place++)
        if (in_flight(c) & 1u << place && e->hot & CORE_HOT_LATENCY)
            core_latency_note(e->target, e->now_ns - started_ns(c, place));
    if (e->target)
        vote(e, CORE_VOTE_NEUTRAL);
    c->live = 0;
}

static void release(struct event *e)
{
    drop_live(e);
    give_charge_back(e);
    give_key_back(e);
    if (has(e->call, IN_CALLS) && e->target)
        core_sub(&e->target->calls, 1);
}

static struct bide_verdict end(struct event *e, enum bide_what what, enum bide_why why)
{
    struct bide_call *c = e->call;
    release(e);
    c->state = OVER;
    c->wake_ns = BIDE_NEVER;
    return verdict(e, what, why);
}

static struct bide_verdict give_up(struct event *e, enum bide_why why)
{
    return end(e, BIDE_GIVE_UP, why);
}

/* ---- starting attempts ---- */

/* Counts one attempt more in flight, unless that is refused. */
static bool flight_refuses(struct event *e)
{
    uint64_t most = e->hot & CORE_HOT_IN_FLIGHT ? core_in_flight_max(e->target) : UINT64_MAX;
    if (core_add(&e->target->in_flight, 1) > most && refuses(e, BIDE_GATE_IN_FLIGHT)) {
        core_sub(&e->target->in_flight, 1);
        return true;
    }
    set(e->call, IN_FLIGHT);
    return false;
}

static bool throttled_here(struct event *e)
{
    return e->hot & CORE_HOT_THROTTLE &&
           !core_throttle_ask(e->target, e->call->lane, chance(e->call, CORE_FOR_THROTTLE), e->now_ns) &&
           refuses(e, BIDE_GATE_THROTTLE);
}

static enum bide_why ask_breaker(struct event *e)
{
    struct bide_call *c = e->call;
    uint64_t word = core_load(&e->target->breaker);
    struct core_admission a = {.lease = core_breaker_generation(word)};
    if (!CORE_BREAKER_CALM(word))
        a = core_breaker_admit(e->target, c->seed, e->now_ns);
    c->lease = a.lease;
    if (a.probe)
        set(c, PROBE);
    return a.refused != BIDE_WHY_NOTHING && refuses(e, BIDE_GATE_BREAKER) ? a.refused : BIDE_WHY_NOTHING;
}

/* May the first attempt of a round start? BIDE_WHY_NOTHING if so. */
static enum bide_why admit(struct event *e)
{
    if (!e->target)
        return BIDE_WHY_NOTHING;
    if (throttled_here(e))
        return BIDE_WHY_THROTTLE;
    enum bide_why refused = ask_breaker(e);
    if (refused == BIDE_WHY_NOTHING && e->hot & CORE_HOT_IN_FLIGHT && flight_refuses(e))
        return BIDE_WHY_IN_FLIGHT_FULL; /* the end of the call returns a probe taken above */
    return refused;
}

static void note_first(struct event *e)
{
    if (!(e->hot & CORE_HOT_FIRST))
        return;
    if (core_hot_budget(e->hot) != BIDE_BUDGET_CONCURRENCY) {
        core_budget_first(e->target, e->call->lane, e->now_ns);
        return;
    }
    core_add(&e->target->calls, 1);
    set(e->call, IN_CALLS);
}

static bool may_hedge(const struct bide_call *c)
{
    const struct bide_policy *p = c->policy;
    return round_size(c) <= p->hedges_max && c->attempt < p->attempts_max && c->safety != BIDE_UNSAFE &&
           !has(c, PROBE | INNER | STOPPED | NO_HEDGE);
}

/* When the next hedge of this round is due, if one may be. */
static int64_t hedge_due(const struct event *e)
{
    const struct bide_policy *p = e->call->policy;
    int64_t delay = 0;
    if (p->hedges_max == 0 || !may_hedge(e->call))
        return BIDE_NEVER;
    if (p->hedge_quantile_permille > 0 && e->target)
        delay = bide_target_latency_ns(e->target, p->hedge_quantile_permille);
    int64_t due = core_sum(e->now_ns, delay > 0 ? delay : p->hedge_delay_ns);
    return due < e->call->deadline_ns ? due : BIDE_NEVER;
}

HOT struct bide_verdict started(struct event *e, uint32_t place, enum bide_why why)
{
    struct bide_call *c = e->call;
    join_round(c, place, e->now_ns);
    spend(c);
    c->state = RUNNING;
    c->wake_ns = hedge_due(e);
    struct bide_verdict v = verdict(e, BIDE_START, why);
    v.attempt_deadline_ns = core_by(e->now_ns, c->policy->attempt_timeout_ns, c->deadline_ns);
    v.connect_deadline_ns = core_by(e->now_ns, c->policy->connect_timeout_ns, v.attempt_deadline_ns);
    return v;
}

static struct bide_verdict start(struct event *e)
{
    struct bide_call *c = e->call;
    enum bide_why refused = admit(e);
    if (refused != BIDE_WHY_NOTHING)
        return give_up(e, refused);
    if (c->attempt > 0)
        return started(e, 0, BIDE_WHY_RETRY);
    note_first(e);
    return started(e, 0, BIDE_WHY_FIRST_ATTEMPT);
}

/* ---- waiting ---- */

/* What is added to a wait that a server asked for, so that not everyone returns at once. */
static int64_t upward_jitter(const struct bide_call *c, int64_t wait_ns, enum core_purpose purpose)
{
    const struct bide_policy *p = c->policy;
    if (p->jitter == BIDE_JITTER_NONE)
        return 0;
    int64_t width = core_max(core_share(wait_ns, p->hint_jitter_permille, 1000), p->base_ns);
    return (int64_t)core_uniform(chance(c, purpose), (uint64_t)width);
}

static struct bide_verdict wait_until(struct event *e, int64_t wake_ns, enum bide_why why)
{
    e->call->wake_ns = wake_ns;
    return verdict(e, BIDE_WAIT, why);
}

/* The server asked another call for quiet until then. */
static struct bide_verdict keep_quiet(struct event *e, int64_t until_ns)
{
    int64_t wake = core_sum(until_ns, upward_jitter(e->call, until_ns - e->now_ns, CORE_FOR_QUIET));
    if (wake >= e->call->deadline_ns)
        return give_up(e, BIDE_WHY_DEADLINE_NEAR);
    return wait_until(e, wake, BIDE_WHY_QUIET);
}

/* ---- event: begin ---- */

static bool is_inner(const struct bide_policy *p, const struct bide_request *r)
{
    return p->layer == BIDE_LAYER_NEVER || r->inbound.no_retry ||
           (p->layer == BIDE_LAYER_OUTERMOST && r->inbound.attempt > 1);
}

static bool lacks_key(const struct bide_policy *p, const struct bide_request *r)
{
    return p->require_key && r->safety != BIDE_SAFE && r->safety != BIDE_KEYED;
}

/* Never 0, which means none. */
static uint32_t folded(uint64_t key)
{
    return key == 0 ? 0 : (uint32_t)(key ^ key >> 32) | 1;
}

/* Field by field: the compiler would clear the whole first. */
HOT void prepare(struct bide_call *c, const struct bide_request *r)
{
    c->seed = r->seed;
    c->deadline_ns = r->deadline_ns > 0 ? r->deadline_ns : BIDE_NEVER;
    c->wake_ns = BIDE_NEVER;
    c->round_ns = 0;
    c->wait_ns = 0;
    for (uint32_t i = 0; i < BIDE_HEDGES_MAX; i++)
        c->hedge_us[i] = 0;
    c->attempt = 0;
    c->step = 0;
    c->charge = 0;
    c->lease = 0;
    c->key = 0;
    c->flags = 0;
    c->state = HELD;
    c->live = 0;
    c->safety = (uint8_t)r->safety;
    c->lane = (uint8_t)(r->lane % BIDE_LANES);
}

DETOUR struct bide_verdict begin_with_care(struct bide_call *call, const struct bide_request *request, int64_t now_ns)
{
    const struct bide_policy *policy = call->policy;
    struct event e = event_on(call, call->target, now_ns);
    if (policy->struct_size != sizeof *policy)
        return give_up(&e, BIDE_WHY_BAD_POLICY);
    if (e.hot & CORE_HOT_KEYS)
        call->key = folded(request->retry_key);
    if (lacks_key(policy, request) && refuses(&e, BIDE_GATE_KEY))
        return give_up(&e, BIDE_WHY_KEY_REQUIRED);
    if (now_ns >= call->deadline_ns)
        return give_up(&e, BIDE_WHY_DEADLINE);
    int64_t quiet_ns = e.hot & CORE_HOT_QUIET_FIRST ? core_quiet_until(e.target, now_ns) : 0;
    return quiet_ns > 0 ? keep_quiet(&e, quiet_ns) : start(&e);
}

/* In good weather, which is nearly always, no gate has a question and nothing is counted at the start: the breaker is
 * calm, nobody hedges. Then this is all there is to do; otherwise every step is taken, with the same result. */
struct bide_verdict bide_call_begin(struct bide_call *call, const struct bide_policy *policy,
                                    struct bide_target *target, const struct bide_request *request, int64_t now_ns)
{
    call->policy = policy;
    call->target = target;
    call->owner = target ? owner_of(target) : 0;
    prepare(call, request);
    call->deadline_ns = core_by(now_ns, policy->deadline_ns, call->deadline_ns);
    if (is_inner(policy, request))
        set(call, INNER);
    uint64_t breaker = target ? core_load(&target->breaker) : 0;
    bool gates = target && (core_hot(target) & CORE_HOT_BEGINS || !CORE_BREAKER_CALM(breaker));
    bool care = policy->struct_size != sizeof *policy || policy->require_key || policy->hedges_max > 0;
    if (gates || care || now_ns >= call->deadline_ns)
        return begin_with_care(call, request, now_ns);
    call->lease = core_breaker_generation(breaker);
    call->round_ns = now_ns;
    call->attempt = 1;
    call->live = ONE_IN_FLIGHT;
    call->state = RUNNING;
    int64_t attempt_by_ns = core_by(now_ns, policy->attempt_timeout_ns, call->deadline_ns);
    return (struct bide_verdict){.what = BIDE_START,
                                 .why = BIDE_WHY_FIRST_ATTEMPT,
                                 .attempt = 1,
                                 .wake_ns = BIDE_NEVER,
                                 .attempt_deadline_ns = attempt_by_ns,
                                 .connect_deadline_ns = core_by(now_ns, policy->connect_timeout_ns, attempt_by_ns)};
}

/* ---- event: outcome, first the accounting ---- */

static enum bide_kind kind_for(const struct bide_call *c, const struct bide_outcome *o)
{
    bool still_running = o->flags & BIDE_FLAG_KEY_409 && c->safety == BIDE_KEYED;
    return o->kind == BIDE_KIND_PERMANENT && still_running ? BIDE_KIND_TRANSIENT : o->kind;
}

static bool may_pass(enum bide_kind kind)
{
    return kind == BIDE_KIND_TRANSIENT || kind == BIDE_KIND_THROTTLED || kind == BIDE_KIND_CONFLICT;
}

/* Does this hint tell us to wait? Under most rules a wait of 0 is as none. */
static bool asks_to_wait(const struct bide_policy *p, const struct bide_hint *h)
{
    if (h->kind != BIDE_HINT_WAIT || p->hint_rule == BIDE_HINT_UNHEARD)
        return false;
    if (h->wait_ns > p->hint_max_ns && p->hint_long == BIDE_HINT_LONG_IGNORE)
        return false;
    return h->wait_ns > 0 || p->hint_rule == BIDE_HINT_PUSHBACK;
}

static bool forbids(const struct bide_policy *p, const struct bide_hint *h)
{
    return h->kind == BIDE_HINT_STOP && p->hint_rule != BIDE_HINT_UNHEARD;
}

static bool was_slow(const struct event *e, int64_t latency_ns)
{
    struct bide_breaker_config c;
    core_breaker_config(e->target, &c);
    return latency_ns >= c.slow_ns;
}

static enum core_vote ballot_for(const struct event *e, enum bide_kind kind, int64_t latency_ns)
{
    if (kind == BIDE_KIND_OK)
        return e->hot & CORE_HOT_SLOW && was_slow(e, latency_ns) ? CORE_VOTE_FAILURE : CORE_VOTE_HEALTHY;
    return kind == BIDE_KIND_TRANSIENT || kind == BIDE_KIND_THROTTLED ? CORE_VOTE_FAILURE : CORE_VOTE_NEUTRAL;
}

static void teach_quiet(struct event *e, const struct bide_outcome *o)
{
    const struct bide_policy *p = e->call->policy;
    if (may_pass(o->kind) && asks_to_wait(p, &o->hint) && o->hint.wait_ns <= p->hint_max_ns)
        bide_target_quiet(e->target, core_sum(e->now_ns, o->hint.wait_ns), e->now_ns);
}

/* A success ends the quiet, if it began after that was asked for: many others may still have been under way. */
static void end_quiet(struct event *e, int64_t began_ns)
{
    if (began_ns >= (int64_t)core_load(&e->target->asked_ns))
        core_store(&e->target->quiet_ns, 0);
}

static void teach_more(struct event *e, const struct bide_outcome *o, int64_t latency_ns)
{
    bool accepted = o->kind == BIDE_KIND_OK || o->kind == BIDE_KIND_PERMANENT || o->kind == BIDE_KIND_CONFLICT;
    if (e->hot & CORE_HOT_THROTTLE && accepted && o->reach != BIDE_REACH_NEVER_SENT)
        core_throttle_accepted(e->target, e->call->lane);
    if (e->hot & CORE_HOT_LATENCY && o->kind == BIDE_KIND_OK)
        core_latency_note(e->target, latency_ns);
    bool counts = may_pass(o->kind) || (o->kind == BIDE_KIND_PERMANENT && forbids(e->call->policy, &o->hint));
    if (e->hot & CORE_HOT_COST_FAILURE && counts)
        core_budget_failure(e->target, e->now_ns);
}

/* What the target learns from one attempt. */
static void teach(struct event *e, const struct bide_outcome *o, int64_t latency_ns)
{
    vote(e, ballot_for(e, o->kind, latency_ns));
    teach_more(e, o, latency_ns);
    if (o->kind != BIDE_KIND_OK)
        teach_quiet(e, o);
    else if (core_load(&e->target->quiet_ns) != 0)
        end_quiet(e, e->now_ns - latency_ns);
}

static void settle(struct event *e, uint32_t bit, const struct bide_outcome *o)
{
    struct bide_call *c = e->call;
    leave_flight(e, 1);
    if (e->target)
        teach(e, o, e->now_ns - started_ns(c, (uint32_t)__builtin_ctz(bit)));
    c->live = (uint8_t)(c->live & ~bit);
}

/* ---- event: outcome, then the judgement ---- */

static bool repeatable(const struct event *e, const struct bide_outcome *o)
{
    uint32_t trust = e->hot >> CORE_HOT_TRUST_SHIFT;
    if (e->call->safety != BIDE_UNSAFE || o->reach == BIDE_REACH_NEVER_SENT || o->reach == BIDE_REACH_REFUSED)
        return true;
    if (o->reach != BIDE_REACH_ANSWERED)
        return false;
    return (o->kind == BIDE_KIND_THROTTLED && trust & BIDE_TRUST_THROTTLED) ||
           (o->flags & BIDE_FLAG_UNAVAILABLE && trust & BIDE_TRUST_UNAVAILABLE);
}

static enum bide_why hint_refuses(struct event *e, const struct bide_outcome *o)
{
    const struct bide_policy *p = e->call->policy;
    bool asked = asks_to_wait(p, &o->hint);
    if (has(e->call, STOPPED) && refuses(e, BIDE_GATE_HINT))
        return BIDE_WHY_SERVER_STOP;
    if (!asked && o->kind == BIDE_KIND_THROTTLED && p->throttled_needs_hint && refuses(e, BIDE_GATE_HINT))
        return BIDE_WHY_HINT_MISSING;
    if (asked && o->hint.wait_ns > p->hint_max_ns && p->hint_long == BIDE_HINT_LONG_GIVE_UP &&
        refuses(e, BIDE_GATE_HINT))
        return BIDE_WHY_HINT_TOO_LONG;
    return BIDE_WHY_NOTHING;
}

/* The questions that cost nothing, in order. */
static enum bide_why free_gates(struct event *e, const struct bide_outcome *o)
{
    struct bide_call *c = e->call;
    if (c->attempt >= c->policy->attempts_max)
        return BIDE_WHY_ATTEMPTS_SPENT;
    if (e->now_ns >= c->deadline_ns)
        return BIDE_WHY_DEADLINE;
    if (c->target && !e->target) /* nobody can say what a retry would cost */
        return BIDE_WHY_TARGET_GONE;
    if (has(c, BODY_GONE))
        return BIDE_WHY_BODY_SPENT;
    if (o->flags & BIDE_FLAG_ONCE && has(c, TRIED_ONCE))
        return BIDE_WHY_PERMANENT;
    if (has(c, INNER) && refuses(e, BIDE_GATE_LAYER))
        return BIDE_WHY_INNER_LAYER;
    if (!repeatable(e, o) && refuses(e, BIDE_GATE_REPEAT))
        return BIDE_WHY_NOT_REPEATABLE;
    return hint_refuses(e, o);
}

struct plan {
    int64_t wait_ns;
    enum bide_why why;
};

static int64_t hinted_wait(const struct bide_call *c, int64_t hint_ns, int64_t own_ns)
{
    const struct bide_policy *p = c->policy;
    if (p->hint_long == BIDE_HINT_LONG_CLAMP)
        hint_ns = core_min(hint_ns, p->hint_max_ns);
    if (p->hint_rule == BIDE_HINT_FLOOR)
        return core_sum(hint_ns, upward_jitter(c, hint_ns, CORE_FOR_HINT));
    if (p->hint_rule == BIDE_HINT_CLAMP)
        return core_max(own_ns, core_min(hint_ns, core_sum(own_ns, p->hint_over_ns)));
    return hint_ns;
}

static void take_step(struct bide_call *c, int64_t own_ns)
{
    if (c->step < UINT32_MAX)
        c->step++;
    c->wait_ns = own_ns;
}

static void hinted_step(struct bide_call *c, int64_t own_ns)
{
    if (c->policy->hint_step == BIDE_HINT_STEP_ADVANCE)
        take_step(c, own_ns);
    if (c->policy->hint_step == BIDE_HINT_STEP_RESET) {
        c->step = 0;
        c->wait_ns = 0;
    }
}

static struct plan own_or_hinted(struct bide_call *c, const struct bide_outcome *o)
{
    struct bide_step step = {c->step, o->kind == BIDE_KIND_THROTTLED, c->wait_ns};
    int64_t own_ns = bide_backoff_wait(c->policy, step, c->seed, c->attempt);
    int64_t hinted_ns = asks_to_wait(c->policy, &o->hint) ? hinted_wait(c, o->hint.wait_ns, own_ns) : -1;
    bool floor_below = c->policy->hint_rule == BIDE_HINT_FLOOR && hinted_ns < own_ns;
    if (hinted_ns >= 0 && !floor_below) { /* a floor below our own backoff changes nothing */
        hinted_step(c, own_ns);
        return (struct plan){hinted_ns, BIDE_WHY_SERVER_HINT};
    }
    if (hinted_ns < 0 && o->kind == BIDE_KIND_CONFLICT && c->policy->conflict_at_once && !has(c, CONFLICTED)) {
        set(c, CONFLICTED);
        return (struct plan){0, BIDE_WHY_CONFLICT};
    }
    take_step(c, own_ns);
    return (struct plan){own_ns, BIDE_WHY_BACKOFF};
}

/* How long to wait: our own backoff or the server's hint, and never less than the quiet it asked others for. */
static struct plan plan_wait(struct event *e, const struct bide_outcome *o)
{
    struct plan plan = own_or_hinted(e->call, o);
    int64_t until_ns = e->target ? core_quiet_until(e->target, e->now_ns) : 0;
    if (until_ns <= core_sum(e->now_ns, plan.wait_ns))
        return plan;
    int64_t quiet_ns = until_ns - e->now_ns;
    return (struct plan){core_sum(quiet_ns, upward_jitter(e->call, quiet_ns, CORE_FOR_QUIET)), BIDE_WHY_QUIET};
}

static bool key_refuses(struct event *e)
{
    struct bide_call *c = e->call;
    if (c->key == 0 || !e->target)
        return false;
    if (!core_key_take(e->target, c->key, e->now_ns, &c->key_tick))
        return refuses(e, BIDE_GATE_KEY_LIMIT);
    set(c, KEY_TAKEN);
    return false;
}

static bool budget_refuses(struct event *e, const struct bide_outcome *o)
{
    if (!e->target || take_charge(e, o))
        return false;
    if (!refuses(e, BIDE_GATE_BUDGET)) {
        clear(e->call, PAID);
        return false;
    }
    if (e->hot & CORE_HOT_ON_EMPTY_OPEN)
        core_breaker_trip(e->target, e->call->seed, e->now_ns);
    return true;
}

static struct bide_verdict out_of_budget(struct event *e, int64_t wake_ns)
{
    if (!e->call->policy->long_poll)
        return give_up(e, BIDE_WHY_BUDGET_EMPTY);
    e->call->state = PARTING;
    return wait_until(e, wake_ns, BIDE_WHY_BUDGET_EMPTY);
}

/* All attempts of the round have failed, the last one like this: shall there be another round? */
static struct bide_verdict judge(struct event *e, const struct bide_outcome *o)
{
    struct bide_call *c = e->call;
    enum bide_why refused = free_gates(e, o);
    if (refused != BIDE_WHY_NOTHING)
        return give_up(e, refused);
    struct plan plan = plan_wait(e, o);
    int64_t wake_ns = core_sum(e->now_ns, plan.wait_ns);
    if (wake_ns >= c->deadline_ns)
        return give_up(e, BIDE_WHY_DEADLINE_NEAR);
    if (e->target && core_breaker_blocks(e->target, wake_ns) && refuses(e, BIDE_GATE_BREAKER))
        return give_up(e, BIDE_WHY_BREAKER_OPEN);
    if (key_refuses(e))
        return give_up(e, BIDE_WHY_KEY_LIMIT);
    give_charge_back(e);      /* a concurrency budget's places of the round that ended */
    if (budget_refuses(e, o)) /* the gate that spends: last */
        return out_of_budget(e, wake_ns);
    if (o->flags & BIDE_FLAG_ONCE)
        set(c, TRIED_ONCE);
    c->state = WAITING;
    return wait_until(e, wake_ns, plan.why);
}

static struct bide_verdict succeeded(struct event *e, uint32_t attempt)
{
    struct bide_call *c = e->call;
    bool paid = has(c, PAID) && charge_of(c).kind == BIDE_BUDGET_TOKENS;
    if (core_hot_budget(e->hot) == BIDE_BUDGET_TOKENS)
        core_budget_earn(e->target, paid ? c->charge : 0);
    struct bide_verdict v = end(e, BIDE_DONE, BIDE_WHY_SUCCEEDED);
    v.attempt = attempt;
    return v;
}

/* Our own side stopped an attempt before it went out: if it was the retry or hedge charged last, that comes back. */
static void take_back(struct event *e, uint32_t attempt)
{
    struct bide_call *c = e->call;
    if (attempt != c->attempt || !has(c, PAID))
        return;
    struct core_charge charge = charge_of(c);
    if (charge.kind == BIDE_BUDGET_CONCURRENCY)
        charge.amount = 1; /* of the places held */
    if (e->target)
        core_budget_give_back(e->target, charge);
    if (charge.kind == BIDE_BUDGET_CONCURRENCY && --c->charge == 0)
        clear(c, CHARGED);
    clear(c, PAID);
}

/* Others of the round are still in flight and may succeed. What this one was told holds for the round: no more hedges
 * once the server asked for time. */
static struct bide_verdict one_less(struct event *e, const struct bide_outcome *o)
{
    struct bide_call *c = e->call;
    if (has(c, STOPPED))
        c->wake_ns = BIDE_NEVER;
    if (may_pass(o->kind) && asks_to_wait(c->policy, &o->hint)) {
        int64_t until_ns = core_sum(e->now_ns, o->hint.wait_ns);
        c->wake_ns = has(c, HINTED) ? core_max(c->wake_ns, until_ns) : until_ns;
        set(c, HINTED);
    }
    struct bide_verdict v = verdict(e, BIDE_NONE, BIDE_WHY_NOTHING);
    v.wake_ns = timer_of(c);
    return v;
}

/* The longest wait that an attempt of the round was asked for. */
static struct bide_hint hint_of_round(struct event *e, struct bide_hint last)
{
    struct bide_call *c = e->call;
    struct bide_hint earlier = {BIDE_HINT_WAIT, core_max(0, c->wake_ns - e->now_ns)};
    bool longer = has(c, HINTED) && (!asks_to_wait(c->policy, &last) || earlier.wait_ns > last.wait_ns);
    clear(c, HINTED);
    return longer ? earlier : last;
}

static struct bide_verdict final(struct event *e, uint32_t attempt, enum bide_why why)
{
    struct bide_verdict v = give_up(e, why);
    v.attempt = attempt;
    return v;
}

static struct bide_verdict failed(struct event *e, uint32_t attempt, struct bide_outcome *o)
{
    struct bide_call *c = e->call;
    bool cancelled = o->kind == BIDE_KIND_CANCELLED;
    if (!may_pass(o->kind) && !cancelled)
        return final(e, attempt, BIDE_WHY_PERMANENT);
    if (o->reach == BIDE_REACH_BODY_DELIVERED)
        return final(e, attempt, BIDE_WHY_BODY_DELIVERED);
    if (cancelled && o->reach == BIDE_REACH_NEVER_SENT)
        take_back(e, attempt);
    if (forbids(c->policy, &o->hint))
        set(c, STOPPED);
    if (o->flags & BIDE_FLAG_BODY_SPENT)
        set(c, BODY_GONE);
    if (in_flight(c) != 0)
        return one_less(e, o);
    if (cancelled)
        return give_up(e, BIDE_WHY_CANCELLED);
    o->hint = hint_of_round(e, o->hint);
    return judge(e, o);
}

DETOUR struct bide_verdict outcome_with_care(struct bide_call *call, uint32_t attempt,
                                             const struct bide_outcome *outcome, int64_t now_ns)
{
    uint32_t bit = call->state == RUNNING ? live_bit(call, attempt) : 0;
    if (bit == 0)
        return nothing(call);
    struct event e = event_of(call, now_ns);
    struct bide_outcome o = *outcome;
    o.kind = kind_for(call, outcome);
    settle(&e, bit, &o);
    return o.kind == BIDE_KIND_OK ? succeeded(&e, attempt) : failed(&e, attempt, &o);
}

/* Flags that change nothing about a success. */
#define HARMLESS (INNER | PAID | CONFLICTED | TRIED_ONCE | SPREAD_AGAIN)

/* The only attempt of a round succeeded in a call that holds nothing, and all that the target has to learn is one
 * healthy vote. The budget is the caller's to see to. */
HOT bool ends_plainly(const struct bide_call *c, uint32_t attempt, const struct bide_outcome *o, int64_t now_ns)
{
    struct bide_target *t = c->target;
    if (o->kind != BIDE_KIND_OK || c->state != RUNNING || c->live != ONE_IN_FLIGHT || attempt != c->attempt)
        return false;
    if (!t || (c->flags & ~HARMLESS) != 0 || owner_of(t) != c->owner)
        return false;
    if (core_hot(t) & CORE_HOT_ENDS || core_load(&t->quiet_ns) != 0)
        return false;
    return core_breaker_fine(t, c->lease, c->lane, now_ns);
}

struct bide_verdict bide_call_outcome(struct bide_call *call, uint32_t attempt, const struct bide_outcome *outcome,
                                      int64_t now_ns)
{
    if (!ends_plainly(call, attempt, outcome, now_ns))
        return outcome_with_care(call, attempt, outcome, now_ns);
    if (!core_budget_is_full(call->target))
        core_budget_earn(call->target, has(call, PAID) ? call->charge : 0);
    call->live = 0;
    call->state = OVER;
    return (struct bide_verdict){.what = BIDE_DONE,
                                 .why = BIDE_WHY_SUCCEEDED,
                                 .attempt = attempt,
                                 .wake_ns = BIDE_NEVER,
                                 .attempt_deadline_ns = BIDE_NEVER,
                                 .connect_deadline_ns = BIDE_NEVER};
}

/* ---- event: wake ---- */

/* A hedge is a retry that does not wait: it pays, and goes only where nothing is wrong with the target. */
static enum bide_why hedge_refused(struct event *e)
{
    static const struct bide_outcome slow = {.kind = BIDE_KIND_TRANSIENT};
    struct bide_call *c = e->call;
    if (e->now_ns >= c->deadline_ns)
        return BIDE_WHY_DEADLINE;
    if (!e->target)
        return c->target ? BIDE_WHY_TARGET_GONE : BIDE_WHY_NOTHING;
    if (throttled_here(e))
        return BIDE_WHY_THROTTLE;
    if (!core_breaker_still_closed(e->target, c->lease) && refuses(e, BIDE_GATE_BREAKER))
        return BIDE_WHY_BREAKER_OPEN;
    if (core_quiet_until(e->target, e->now_ns) > 0)
        return BIDE_WHY_QUIET;
    if (key_refuses(e))
        return BIDE_WHY_KEY_LIMIT;
    if (has(c, IN_FLIGHT) && flight_refuses(e)) /* the round is counted, so this one is too */
        return BIDE_WHY_IN_FLIGHT_FULL;
    if (budget_refuses(e, &slow)) {
        leave_flight(e, 1);
        return BIDE_WHY_BUDGET_EMPTY;
    }
    return BIDE_WHY_NOTHING;
}

static struct bide_verdict hedge(struct event *e)
{
    enum bide_why refused = hedge_refused(e);
    if (refused == BIDE_WHY_NOTHING)
        return started(e, round_size(e->call), BIDE_WHY_HEDGE);
    give_key_back(e);
    set(e->call, NO_HEDGE);
    e->call->wake_ns = BIDE_NEVER;
    return verdict(e, BIDE_NONE, refused);
}

/* The wait ended much too late: the machine was suspended, and so were its neighbours. Once. */
static bool spread_again(struct event *e)
{
    struct bide_call *c = e->call;
    bool late = e->now_ns - c->wake_ns > LATE_NS && c->policy->jitter != BIDE_JITTER_NONE;
    if (!late || has(c, SPREAD_AGAIN))
        return false;
    set(c, SPREAD_AGAIN);
    int64_t width = core_max(c->policy->base_ns, c->wait_ns);
    int64_t wake = core_sum(e->now_ns, (int64_t)core_uniform(chance(c, CORE_FOR_LATE_WAKE), (uint64_t)width));
    if (wake >= c->deadline_ns)
        return false;
    c->wake_ns = wake;
    return true;
}

static struct bide_verdict resume(struct event *e)
{
    struct bide_call *c = e->call;
    if (e->now_ns >= c->deadline_ns)
        return give_up(e, BIDE_WHY_DEADLINE);
    if (spread_again(e))
        return verdict(e, BIDE_WAIT, BIDE_WHY_LATE_WAKE);
    int64_t quiet_ns = e->target ? core_quiet_until(e->target, e->now_ns) : 0;
    if (quiet_ns > 0)
        return keep_quiet(e, quiet_ns);
    clear(c, IN_FLIGHT | NO_HEDGE); /* of the round before */
    return start(e);
}

struct bide_verdict bide_call_wake(struct bide_call *call, int64_t now_ns)
{
    if (call->state == NEW || call->state == OVER || now_ns < timer_of(call))
        return nothing(call);
    struct event e = event_of(call, now_ns);
    if (call->state == RUNNING)
        return hedge(&e);
    return call->state == PARTING ? give_up(&e, BIDE_WHY_BUDGET_EMPTY) : resume(&e);
}

/* ---- event: cancel ---- */

struct bide_verdict bide_call_cancel(struct bide_call *call, int64_t now_ns)
{
    if (call->state == NEW || call->state == OVER)
        return nothing(call);
    struct event e = event_of(call, now_ns);
    return give_up(&e, BIDE_WHY_CANCELLED);
}
