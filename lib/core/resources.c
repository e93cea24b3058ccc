/* resources.c - the resources that a call acquires from its target, and their release.
 *
 * For a retry: a charge on the budget and on its retry key, held from the decision until the attempt starts (permits of
 * a concurrency budget: until it ends). While attempts run: their permits of the in-flight limit (bulkhead), and the
 * probe slot of a half-open breaker. While the call lives: its permit among the calls of a concurrency budget.
 *
 * However a call ends, core_call_end releases all of it, each exactly once (the fast path of a success ends a call that
 * holds nothing). A flag of the call records each resource. CHARGED, KEY_CHARGED and PROBE are cleared with the
 * release; an in-flight permit is released with the bit of its attempt in `live`; and an ended call ignores further
 * events, so COUNTED_CALL needs no clearing. If the memory of the target now belongs to another name, nothing is
 * released: its state was reset. */
#include "bits.h"
#include "event.h"

bool core_permit_acquire(uint64_t *word, uint16_t owner, uint64_t most)
{
    uint64_t seen = core_load(word);
    core_assert(most <= CORE_PERMITS_MAX); /* so that adding one never changes the owner */
    do
        if (seen >> CORE_OWNER_SHIFT != owner || (seen & CORE_PERMITS_MAX) >= most)
            return false;
    while (!core_cas(word, &seen, seen + 1));
    return true;
}

void core_permit_release(uint64_t *word, uint16_t owner, uint32_t permits)
{
    uint64_t seen = core_load(word);
    while (seen >> CORE_OWNER_SHIFT == owner) {
        uint64_t held = seen & CORE_PERMITS_MAX;
        if (core_cas(word, &seen, seen - (held < permits ? held : permits)))
            return;
    }
}

bool core_gate_refuse(struct core_event *e, enum bide_gate gate)
{
    core_assert(core_popcount((unsigned)gate) == 1 && (unsigned)gate < 1u << BIDE_GATE_COUNT);
    uint32_t observing = e->hot >> CORE_HOT_OBSERVE_SHIFT | e->call->policy->observe;
    if (e->target)
        core_add(&e->target->refused[__builtin_ctz((unsigned)gate)], 1);
    if (!(observing & (unsigned)gate))
        return true;
    e->observed |= (unsigned)gate;
    return false;
}

static void refund_held_charge(struct bide_call *c, struct bide_target *t)
{
    if (!core_has_flag(c, CORE_CHARGED))
        return;
    if (t)
        core_budget_refund(t, core_call_last_charge(c));
    core_clear_flag(c, CORE_CHARGED);
}

void core_call_refund_budget(struct core_event *e)
{
    refund_held_charge(e->call, e->target);
}

void core_call_refund_key(struct core_event *e, uint32_t tick)
{
    if (core_has_flag(e->call, CORE_KEY_CHARGED) && e->target)
        core_key_refund(e->target, e->call->key, tick);
    core_clear_flag(e->call, CORE_KEY_CHARGED);
}

/* A concurrency budget holds its permits while attempts run; a hedge adds a permit to those held. */
bool core_call_try_charge_budget(struct bide_call *c, struct bide_target *t, const struct bide_outcome *outcome,
                                 int64_t now_ns)
{
    struct core_charge charge; /* core_budget_charge sets the rest */
    charge.owner = c->owner;
    core_assert(t);
    if (!core_budget_charge(t, outcome, now_ns, &charge))
        return false;
    if (charge.kind == BIDE_BUDGET_CONCURRENCY)
        charge.amount = core_has_flag(c, CORE_CHARGED) ? c->charge + 1 : 1;
    else if (core_has_flag(c, CORE_CHARGED))
        refund_held_charge(c, t); /* releases permits held under the old kind, if a reload changed the kind */
    uint32_t rest = c->flags & ~(3u << CORE_CHARGE_KIND_SHIFT | CORE_CHARGE_LEASED);
    c->flags = (uint16_t)(rest | CORE_CHARGED | CORE_PAID | (uint32_t)charge.kind << CORE_CHARGE_KIND_SHIFT |
                          (charge.leased ? CORE_CHARGE_LEASED : 0u));
    c->charge = charge.amount;
    return true;
}

bool core_call_charge_budget(struct core_event *e, const struct bide_outcome *o)
{
    if (!e->target || core_call_try_charge_budget(e->call, e->target, o, e->now_ns))
        return true;
    if (!core_gate_refuse(e, BIDE_GATE_BUDGET)) {
        core_clear_flag(e->call, CORE_PAID);
        return true;
    }
    if (e->hot & CORE_HOT_ON_EMPTY_OPEN)
        (void)bide_breaker_trip(e->target, e->call->seed, e->now_ns);
    return false;
}

void core_call_refund_unsent(struct core_event *e, uint32_t attempt)
{
    struct bide_call *c = e->call;
    if (attempt != c->attempt || !core_has_flag(c, CORE_PAID))
        return;
    struct core_charge charge = core_call_last_charge(c);
    core_assert(charge.kind != BIDE_BUDGET_CONCURRENCY || charge.amount > 0);
    if (charge.kind == BIDE_BUDGET_CONCURRENCY)
        charge.amount = 1; /* one of the permits held */
    if (e->target)
        core_budget_refund(e->target, charge);
    if (charge.kind == BIDE_BUDGET_CONCURRENCY && --c->charge == 0)
        core_clear_flag(c, CORE_CHARGED);
    core_clear_flag(c, CORE_PAID);
}

bool core_call_charge_key(struct core_event *e, uint32_t *tick)
{
    struct bide_call *c = e->call;
    if (c->key == 0)
        return true;
    core_assert(!core_has_flag(c, CORE_KEY_CHARGED) && e->target);
    if (!core_key_charge(e->target, c->key, e->now_ns, tick))
        return !core_gate_refuse(e, BIDE_GATE_KEY_LIMIT);
    core_set_flag(c, CORE_KEY_CHARGED);
    return true;
}

/* In observe mode an attempt beyond the limit is counted too: core_call_leave_in_flight will subtract it. */
bool core_call_enter_in_flight(struct core_event *e)
{
    struct bide_call *c = e->call;
    uint64_t most = e->hot & CORE_HOT_IN_FLIGHT ? core_in_flight_max(e->target) : CORE_PERMITS_MAX;
    bool taken = core_permit_acquire(&e->target->in_flight, c->owner, most);
    if (!taken && core_gate_refuse(e, BIDE_GATE_IN_FLIGHT))
        return false;
    if (taken || core_permit_acquire(&e->target->in_flight, c->owner, CORE_PERMITS_MAX))
        core_set_flag(c, CORE_IN_FLIGHT);
    return true;
}

void core_call_leave_in_flight(struct core_event *e, uint32_t attempts)
{
    if (core_has_flag(e->call, CORE_IN_FLIGHT) && e->target)
        core_permit_release(&e->target->in_flight, e->call->owner, attempts);
}

void core_call_vote(struct core_event *e, enum core_vote ballot)
{
    struct bide_call *c = e->call;
    struct core_ballot b = {ballot, c->generation, core_has_flag(c, CORE_PROBE), c->lane, c->seed};
    if (b.probe || (ballot != CORE_VOTE_NEUTRAL && core_hot_breaker_kind(e->hot) != BIDE_BREAKER_OFF))
        core_breaker_vote(e->target, &b, e->hot, e->now_ns);
    core_clear_flag(c, CORE_PROBE);
}

/* Releases the attempts that are in flight when the call ends. Beside a success they are attempts that lost against a
 * faster one: their time so far, a lower bound of their latency, is recorded. They are no evidence of the server's
 * health, so a probe among them frees its slot by a neutral vote. */
static void call_drop_live_attempts(struct core_event *e, bool lost)
{
    struct bide_call *c = e->call;
    core_call_leave_in_flight(e, core_popcount(core_round_in_flight(c)));
    for (uint32_t place = 0; place < core_round_size(c); place++)
        if (lost && core_round_in_flight(c) & 1u << place && e->hot & CORE_HOT_LATENCY)
            core_latency_record(e->target, e->now_ns - core_attempt_started_ns(c, place));
    if (e->target)
        core_call_vote(e, CORE_VOTE_NEUTRAL);
    c->live = 0;
}

static void call_release_all(struct core_event *e, enum bide_action action)
{
    call_drop_live_attempts(e, action == BIDE_ACTION_DONE);
    core_call_refund_budget(e);
    core_call_refund_key(e, e->call->key_tick);
    if (core_has_flag(e->call, CORE_COUNTED_CALL) && e->target)
        core_permit_release(&e->target->calls, e->call->owner, 1);
}

struct bide_verdict core_call_end(struct core_event *e, enum bide_action action, enum bide_reason reason)
{
    struct bide_call *c = e->call;
    core_assert(c->state != CORE_NEW && c->state != CORE_ENDED);
    core_assert(action == BIDE_ACTION_DONE || action == BIDE_ACTION_GIVE_UP);
    call_release_all(e, action);
    core_assert(c->live == 0 && !core_has_flag(c, CORE_CHARGED | CORE_KEY_CHARGED));
    c->state = CORE_ENDED;
    c->wake_ns = BIDE_NEVER;
    return core_verdict(e, action, reason);
}
