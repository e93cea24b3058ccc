/* test_properties.c - invariants of the engine, tested on many thousands of random worlds.
 *
 * A world is a random policy and target configuration (both pass their checks) and a few requests. It receives random
 * events: most of them the next step of a driver, many of them late, early, repeated or out of order. Beside the engine
 * runs a model that knows only what a caller knows (requests, verdicts, outcomes) and checks these invariants for every
 * verdict:
 *
 *   one end         DONE or GIVE_UP exactly once; DONE exactly when an attempt in flight succeeds;
 *   not due         an event that is not due returns NONE and leaves call and target unchanged, byte for byte;
 *   time            no attempt starts, and no wait ends, at or after the deadline; no attempt outlives it;
 *   cap             no backoff above the cap or below the floor;
 *   hints           no retry and no hedge before the instant that a server requested, and none during a hold-off;
 *   safety          an unsafe request that may have run is never started again;
 *   attempts        no more than the policy allows, hedges included, numbered 1, 2, 3, ...;
 *   budget          spending never exceeds the initial tokens plus earnings and refill;
 *   lease           a leased target earns nothing but its refill, and records the earnings of its calls;
 *   no leak         when all calls have ended, no permit of the target is held;
 *   votes           a failure of the caller's own side, and an attempt that the deadline cut before the fastest success
 *                   would have ended, change nothing about the breaker;
 *   limits          attempts in flight, retries of a key, the open breaker, the inner layer;
 *   replay          the same events give the same verdicts, on the fast paths and on the slow paths.
 *
 * Each world comes from a number. A failure prints it, and the shortest list of events found that still fails;
 * BIDE_TEST_SEED=NUMBER begins with that world (seed.h). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/event.h"
#include "model.h"
#include "seed.h"

#ifndef WORLDS /* tools/mutate sets fewer */
#define WORLDS 30000
#endif

/* -- playing ------------------------------------------------------------------------------------------------------- */

static void open_run(struct run *r, const struct world *w)
{
    memset(r, 0, sizeof *r);
    r->world = w;
    r->now_ns = w->epoch_ns;
    r->fastest_ns = BIDE_NEVER;
    r->level_milli =
        w->config.budget.initial_milli == BIDE_FULL ? w->config.budget.capacity_milli : w->config.budget.initial_milli;
    for (int i = 0; i < CALLS; i++)
        r->model[i].wake_ns = BIDE_NEVER;
    if (w->has_target)
        require_invariant(r, bide_target_init(&r->target, &w->config, w->epoch_ns, NULL) == BIDE_OK,
                          "a checked configuration initializes a target");
    if (!w->leased)
        return;
    require_invariant(r, core_lease_begin(&r->target, w->epoch_ns, NULL) == BIDE_OK,
                      "a target with a token budget can be leased");
    r->level_milli = 0;
    r->lease_end_ns = w->epoch_ns > 0 ? w->epoch_ns : 1;
}

static struct bide_verdict apply(struct run *r, const struct event *e)
{
    struct bide_call *call = &r->call[e->call];
    struct bide_target *target = r->world->has_target ? &r->target : BIDE_NO_TARGET;
    switch (e->op) {
    case OP_BEGIN: return bide_call_begin(call, &r->world->policy, target, &r->world->request[e->call], e->now_ns);
    case OP_OUTCOME: return bide_call_outcome(call, e->attempt, &e->outcome, e->now_ns);
    case OP_WAKE: return bide_call_wake(call, e->now_ns);
    case OP_CANCEL:
    case OP_ADD_TOKENS:
    case OP_EXTEND: break;
    }
    return bide_call_cancel(call, e->now_ns);
}

static void fingerprint(struct run *r)
{
    const int64_t parts[] = {(int64_t)r->verdict.action, (int64_t)r->verdict.reason, r->verdict.attempt,
                             r->verdict.observed,        r->verdict.wake_ns,         r->verdict.attempt_deadline_ns};
    for (size_t i = 0; i < LENGTH(parts); i++)
        r->fingerprint = (r->fingerprint ^ (uint64_t)parts[i]) * UINT64_C(0x100000001b3);
}

static void check_not_due(struct run *r, const struct event *e, const struct bide_call *call,
                          const struct bide_target *target)
{
    const struct model *m = &r->model[e->call];
    require_invariant(r, r->verdict.action == BIDE_ACTION_NONE && r->verdict.reason == BIDE_REASON_NOTHING,
                      "an event that is not due returns NONE");
    require_invariant(r, r->verdict.wake_ns == (m->end == ALIVE ? m->wake_ns : BIDE_NEVER),
                      "an event that is not due keeps the timer");
    require_invariant(r, memcmp(call, &r->call[e->call], sizeof *call) == 0,
                      "an event that is not due keeps every byte of the call");
    require_invariant(r, memcmp(target, &r->target, sizeof *target) == 0,
                      "an event that is not due keeps every byte of the target");
}

static void begin_model(struct run *r, const struct event *e)
{
    struct model *m = &r->model[e->call];
    int64_t own = r->world->policy.call_timeout_ns, asked = r->world->request[e->call].deadline_ns;
    *m = (struct model){.end = ALIVE, .wake_ns = BIDE_NEVER};
    m->deadline_ns = own == BIDE_NEVER ? BIDE_NEVER : e->now_ns + own;
    if (asked > 0 && asked < m->deadline_ns)
        m->deadline_ns = asked;
}

static void step(struct run *r, const struct event *e)
{
    static struct bide_target before;
    struct bide_call call = r->call[e->call];
    if (e->op == OP_BEGIN && r->model[e->call].end == ALIVE)
        return; /* only in a shortened list: it would lose a live call */
    if (e->op >= OP_ADD_TOKENS) {
        credit_time(r, e->now_ns);
        if (e->op == OP_ADD_TOKENS)
            lease_tokens(r, e->amount);
        else
            extend(r, e->amount);
        check_level(r);
        return;
    }
    before = r->target;
    bool echo = is_not_due(&r->model[e->call], e);
    int64_t hold_off_ns = r->world->has_target ? bide_target_get(&r->target, e->now_ns).hold_off_until_ns : 0;
    struct bide_breaker_view breaker = bide_target_get(&r->target, r->now_ns).breaker;
    credit_time(r, e->now_ns);
    r->verdict = apply(r, e);
    fingerprint(r);
    if (echo) {
        check_not_due(r, e, &call, &before);
        return;
    }
    if (e->op == OP_BEGIN)
        begin_model(r, e);
    if (e->op == OP_OUTCOME)
        record_outcome(r, e);
    check_vote(r, e, breaker);
    check_verdict(r, e, hold_off_ns, breaker);
    check_level(r);
}

/* At the end all calls are cancelled, and all their resources are released. */
static void close_run(struct run *r)
{
    for (int i = 0; i < CALLS; i++) {
        const struct event cancel = {.op = OP_CANCEL, .call = i, .now_ns = r->now_ns};
        step(r, &cancel);
    }
    require_invariant(r, r->target.in_flight == 0, "no permit in flight is left behind");
    require_invariant(r, r->target.retries == 0 && r->target.calls == 0,
                      "no permit of a concurrency budget is left behind");
    if (r->world->leased)
        check_report(r);
}

static size_t play(struct run *r, const struct world *w, const struct event *events, size_t count)
{
    size_t i = 0;
    open_run(r, w);
    while (i < count && r->broken == NULL)
        step(r, &events[i++]);
    if (r->broken == NULL)
        close_run(r);
    return i;
}

/* -- random events ------------------------------------------------------------------------------------------------- */

static struct bide_outcome some_outcome(struct dice *d)
{
    struct bide_outcome o = {.kind = (enum bide_kind)below(d, BIDE_KIND_OK + 1),
                             .evidence = (enum bide_evidence)below(d, BIDE_EVIDENCE_BODY_DELIVERED + 1)};
    if (one_in(d, 2)) /* mostly a retryable outcome */
        o = (struct bide_outcome){.kind = BIDE_KIND_TRANSIENT, .evidence = (enum bide_evidence)below(d, 4)};
    if (one_in(d, 3))
        o.flags = 1u << below(d, 7);
    if (one_in(d, 3))
        o.hint = (struct bide_hint){BIDE_HINT_WAIT, one_in(d, 8) ? 0 : some_time(d)};
    if (one_in(d, 30))
        o.hint = (struct bide_hint){BIDE_HINT_STOP, 0};
    if (one_in(d, 100))
        o.hint = (struct bide_hint){BIDE_HINT_WAIT, BIDE_NEVER};
    return o;
}

/* The instant: now, soon, exactly when a timer fires, just before, when a deadline cuts an attempt, or much later. */
static int64_t some_instant(struct dice *d, const struct run *r)
{
    const struct model *m = &r->model[below(d, CALLS)];
    int64_t wake = m->wake_ns, cut = m->deadline_ns - (int64_t)below(d, 2) * CUT_EARLY_NS;
    switch (below(d, 9)) {
    case 0: return r->now_ns;
    case 1: return r->now_ns + 1;
    case 2: return r->now_ns + some_time(d) / 10;
    case 3: return r->now_ns + some_time(d);
    case 4: return cut > r->now_ns && cut < r->now_ns + BIDE_MINUTE ? cut : r->now_ns;
    case 5: return wake != BIDE_NEVER && wake - 1 > r->now_ns ? wake - 1 : r->now_ns;
    default: return wake != BIDE_NEVER && wake > r->now_ns ? wake : r->now_ns;
    }
}

/* An attempt in flight, if there is any; sometimes an arbitrary number. */
static uint32_t some_attempt(struct dice *d, const struct model *m)
{
    uint32_t pick = below(d, 4);
    if (m->live == 0 || one_in(d, 8))
        return below(d, m->started + 3);
    for (uint32_t a = 1, n = 0;; a = a % 31 + 1)
        if ((m->live >> a & 1u) != 0 && n++ == pick)
            return a;
}

/* Mostly the next step of a driver; sometimes any event. */
static enum op some_op(struct dice *d, const struct model *m)
{
    if (one_in(d, 6))
        return (enum op)(m->end == ALIVE ? OP_OUTCOME + below(d, 3) : below(d, 4)); /* begin would lose a live call */
    if (m->end == NOT_BEGUN || (m->end == OVER && one_in(d, 2)))
        return OP_BEGIN;
    if (one_in(d, 25))
        return OP_CANCEL;
    if (m->live != 0)
        return one_in(d, 3) ? OP_WAKE : OP_OUTCOME;
    return OP_WAKE;
}

/* Sometimes tokens are added or removed; sometimes the fleet replies, or is known not to. */
static void some_exchange(struct dice *d, const struct world *w, struct event *e)
{
    e->op = one_in(d, 2) ? OP_ADD_TOKENS : OP_EXTEND;
    if (e->op == OP_ADD_TOKENS)
        e->amount = (int64_t)below(d, w->config.budget.capacity_milli + 1000) - (one_in(d, 4) ? 3000 : 0);
    else
        e->amount = one_in(d, 3) ? 0 : e->now_ns + some_time(d);
}

static size_t make_event(struct run *r, const struct world *w, struct event *events)
{
    struct dice d = {w->seed ^ UINT64_C(0xd1b54a32d192ed03)};
    size_t count = 0;
    d.state |= d.state == 0;
    open_run(r, w);
    while (count < EVENTS && r->broken == NULL) {
        struct event *e = &events[count++];
        memset(e, 0, sizeof *e);
        e->call = (int)below(&d, CALLS);
        e->op = some_op(&d, &r->model[e->call]);
        e->now_ns = some_instant(&d, r);
        e->attempt = e->op == OP_OUTCOME ? some_attempt(&d, &r->model[e->call]) : 0;
        if (e->op == OP_OUTCOME)
            e->outcome = some_outcome(&d);
        if (e->op == OP_OUTCOME && is_past_cut(&r->model[e->call], e->now_ns) && one_in(&d, 2))
            e->outcome = (struct bide_outcome){.kind = BIDE_KIND_TRANSIENT, .flags = BIDE_FLAG_TIMED_OUT};
        if (w->leased && one_in(&d, 5))
            some_exchange(&d, w, e);
        step(r, e);
    }
    if (r->broken == NULL)
        close_run(r);
    return count;
}

/* -- reporting a failure ------------------------------------------------------------------------------------------- */

/* Removes events one by one as long as the same invariant still fails. */
static size_t shorten(const struct world *w, struct event *events, size_t count, const char *broken)
{
    static struct run r;
    for (size_t i = count; i-- > 0;) {
        struct event kept[EVENTS];
        memcpy(kept, events, count * sizeof *events);
        memmove(&events[i], &events[i + 1], (count - i - 1) * sizeof *events);
        play(&r, w, events, count - 1);
        if (r.broken != NULL && strcmp(r.broken, broken) == 0)
            count--;
        else
            memcpy(events, kept, count * sizeof *events);
    }
    return count;
}

static void print_event(const struct world *w, const struct event *e)
{
    const struct bide_outcome *o = &e->outcome;
    printf("  at %" PRId64 "ns c%d: ", e->now_ns - w->epoch_ns, e->call);
    switch (e->op) {
    case OP_BEGIN:
        printf("begin safety=%d seed=%" PRIu64 " deadline=%" PRId64 "ns retry_key=%" PRIu64 " inbound=%" PRIu32 "%s",
               (int)w->request[e->call].safety, w->request[e->call].seed, w->request[e->call].deadline_ns,
               w->request[e->call].retry_key, w->request[e->call].inbound.attempt,
               w->request[e->call].inbound.no_retry ? " no_retry" : "");
        break;
    case OP_OUTCOME:
        printf("fail %" PRIu32 " %s evidence=%s flags=%" PRIu32, e->attempt, bide_kind_label(o->kind),
               bide_evidence_label(o->evidence), o->flags);
        if (o->hint.kind == BIDE_HINT_WAIT)
            printf(" hint=%" PRId64 "ns", o->hint.wait_ns);
        if (o->hint.kind == BIDE_HINT_STOP)
            printf(" hint=stop");
        break;
    case OP_WAKE: printf("wake"); break;
    case OP_CANCEL: printf("cancel"); break;
    case OP_ADD_TOKENS: printf("add %" PRId64, e->amount); break;
    case OP_EXTEND: printf("extend until %" PRId64 "ns", e->amount - w->epoch_ns); break;
    }
}

static void print_verdict(const struct run *r)
{
    const struct bide_verdict *v = &r->verdict;
    printf(" -> %s %" PRIu32 " %s", bide_action_label(v->action), v->attempt, bide_reason_label(v->reason));
    if (v->wake_ns != BIDE_NEVER)
        printf(" wake=%" PRId64 "ns", v->wake_ns - r->world->epoch_ns);
    if (v->observed != 0)
        printf(" observed=0x%" PRIx32, v->observed);
    printf("\n");
}

static void print_world(const struct world *w)
{
    const struct bide_policy *p = &w->policy;
    const struct bide_target_config *c = &w->config;
    printf("  policy attempts=%" PRIu32 " backoff=%d jitter=%d base=%" PRId64 "ns cap=%" PRId64 "ns floor=%" PRId64
           "ns hedges_max=%" PRIu32 " deadline=%" PRId64 "ns hint_rule=%d hint_long=%d hint_max=%" PRId64
           "ns observe=0x%" PRIx32 "%s\n",
           p->attempts_max, (int)p->backoff, (int)p->jitter, p->base_ns, p->cap_ns, p->floor_ns, p->hedges_max,
           p->call_timeout_ns, (int)p->hint_rule, (int)p->hint_long, p->hint_max_ns, p->observe,
           p->long_poll ? " long_poll" : "");
    if (w->has_target)
        printf("  target observe=0x%" PRIx32 " in_flight_max=%" PRIu32 " key_retries=%" PRIu32
               " budget.kind=%d budget.capacity=%" PRIu32 " breaker.kind=%d breaker.open=%" PRId64 "ns%s\n",
               c->observe, c->in_flight_max, c->key_retries, (int)c->budget.kind, c->budget.capacity_milli,
               (int)c->breaker.kind, c->breaker.open_ns, c->hold_off_first ? " hold_off_first" : "");
    if (w->leased)
        printf("  leased\n");
}

static void report_failure(const struct world *w, struct event *events, size_t count, const char *broken)
{
    static struct run r;
    printf("invariant violated: %s\n  world %" PRIu64 ": run again with `test_properties %" PRIu64 " 1`\n", broken,
           w->seed, w->seed);
    count = shorten(w, events, count, broken);
    print_world(w);
    open_run(&r, w);
    for (size_t i = 0; i < count; i++) {
        print_event(w, &events[i]);
        step(&r, &events[i]);
        print_verdict(&r);
    }
}

static bool world_holds(uint64_t seed, uint64_t seen[BIDE_REASON_COUNT])
{
    static struct world w;
    static struct run first, second;
    static struct event events[EVENTS];
    make_world(&w, seed);
    size_t count = make_event(&first, &w, events);
    if (first.broken != NULL) {
        report_failure(&w, events, count, first.broken);
        return false;
    }
    for (core_force_slow_path = false;; core_force_slow_path = true) {
        play(&second, &w, events, count);
        if (second.fingerprint != first.fingerprint) {
            printf("invariant violated: the same events give the same verdicts%s\n  world %" PRIu64 "\n",
                   core_force_slow_path ? ", on the fast paths and the slow paths" : "", seed);
            return false;
        }
        if (core_force_slow_path)
            break;
    }
    core_force_slow_path = false;
    seen[first.verdict.reason]++; /* of the last event: a sample is enough */
    return true;
}

static int play_worlds(uint64_t seed)
{
    uint64_t seen[BIDE_REASON_COUNT] = {0};
    uint64_t failed = 0;
    printf("worlds %" PRIu64 " to %" PRIu64 ", %d events each\n", seed, seed + WORLDS - 1, EVENTS);
    for (uint64_t i = 0; i < WORLDS && failed < 3; i++)
        failed += !world_holds(seed + i, seen);
    printf("%s\n", failed == 0 ? "all hold" : "see above");
    return failed != 0;
}

int main(int argc, char **argv)
{
    (void)argc;
    return seed_main(argv[0], 1, play_worlds);
}
