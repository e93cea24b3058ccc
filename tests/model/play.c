/* play.c - plays random sequences; see play.h. */
#include "play.h"

#include <stdlib.h>
#include <string.h>

#include "core/event.h"
#include "seed.h"
#include "shape.h"

#ifndef SEQUENCES /* tools/mutate sets fewer */
#define SEQUENCES SEED_TRIALS(100000)
#endif
#define TICK_NS (INT64_C(1) << 20)
#define JUMP_NS (1000 * BIDE_MINUTE) /* no step of time is longer: a bucket forgets after nine years */

/* -- comparison ---------------------------------------------------------------------------------------------------- */

static void differ(struct world *w, const char *what, int64_t library, int64_t lo, int64_t hi)
{
    w->failed = true;
    if (w->verbose)
        printf("    DIFFERENCE: %s is %" PRId64 ", but the model has %" PRId64 " to %" PRId64 "\n", what, library, lo,
               hi);
}

static void require_range(struct world *w, const char *what, int64_t library, int64_t lo, int64_t hi)
{
    if (library < lo || library > hi)
        differ(w, what, library, lo, hi);
}

static void require_equal(struct world *w, const char *what, int64_t library, int64_t model)
{
    require_range(w, what, library, model, model);
}

static void compare_verdict(struct world *w, const struct bide_verdict *v, const struct expected *e)
{
    if (w->verbose)
        printf("    %s %s, attempt %u, observed %x, wake %" PRId64 "\n", bide_action_label(v->action),
               bide_reason_label(v->reason), v->attempt, v->observed, v->wake_ns == BIDE_NEVER ? -1 : v->wake_ns);
    require_equal(w, "action", v->action, e->action);
    if (e->reason != BIDE_REASON_COUNT)
        require_equal(w, "reason", v->reason, e->reason);
    require_equal(w, "attempt", v->attempt, e->attempt);
    require_equal(w, "observed", v->observed, e->observed);
    require_range(w, "wake_ns", v->wake_ns, e->wake_lo_ns, e->wake_hi_ns);
    require_equal(w, "attempt_deadline_ns", v->attempt_deadline_ns, e->attempt_deadline_ns);
    require_range(w, "connect_deadline_ns", v->connect_deadline_ns, w->now_ns,
                  v->action == BIDE_ACTION_START ? v->attempt_deadline_ns : BIDE_NEVER);
}

static void compare_budget(struct world *w)
{
    struct level level = model_left(&w->model, w->now_ns);
    require_range(w, "budget left", bide_target_get(&w->target, w->now_ns).budget_left_milli, level.lo, level.hi);
}

static void compare_breaker(struct world *w)
{
    const struct breaker *b = &w->model.breaker;
    struct bide_breaker_view v = w->model.view;
    require_equal(w, "breaker state", v.state, b->state);
    require_equal(w, "breaker generation", v.generation, b->generation);
    require_equal(w, "openings in total", (int64_t)v.openings_total, (int64_t)b->openings_total);
    require_equal(w, "open until", v.until_ns, b->until_ns);
    require_equal(w, "openings in a row", v.openings, b->openings);
}

static void compare_target(struct world *w)
{
    const struct model *m = &w->model;
    compare_budget(w);
    compare_breaker(w);
    for (int i = 0; i < BIDE_GATE_COUNT; i++)
        require_equal(w, bide_gate_label(1u << i), (int64_t)m->refused_by_library[i], (int64_t)m->refused[i]);
    require_equal(w, "hold-off", bide_target_get(&w->target, w->now_ns).hold_off_until_ns,
                  m->hold_off_ns > w->now_ns ? m->hold_off_ns : 0);
    require_equal(w, "leased", core_lease_is_on(&w->target), m->lease.on);
    require_equal(w, "lease until", core_lease_until(&w->target), m->lease.on ? m->lease.until_ns : 0);
}

/* Reads what the library decided, for the model to follow where both decisions are right. */
static void observe_library(struct world *w)
{
    struct bide_target_view view = bide_target_get(&w->target, w->now_ns);
    for (int i = 0; i < BIDE_GATE_COUNT; i++)
        w->model.refused_by_library[i] = view.refused[i];
    w->model.view = view.breaker;
}

static void tell(const struct world *w, const char *event, int64_t number)
{
    if (w->verbose)
        printf("%" PRId64 " %s %" PRId64 "\n", w->now_ns, event, number);
}

static void tell_world(const struct world *w)
{
    const struct bide_budget_config *b = &w->config.budget;
    const struct bide_breaker_config *k = &w->config.breaker;
    printf("budget: kind %d, capacity %u, costs %u %u %u, failure %u, above %u, success %u, first %u, per minute %u, "
           "refund %u, ratio %u, reserve %u, min %u, window %" PRId64 ", cooldown %" PRId64 "\n",
           b->kind, b->capacity_milli, b->cost_milli, b->cost_throttled_milli, b->cost_timeout_milli,
           b->cost_failure_milli, b->threshold_milli, b->earn_success_milli, b->earn_first_milli,
           b->refill_per_minute_milli, b->refund_permille, b->ratio_ppm, b->reserve, b->min_volume, b->window_ns,
           b->cooldown_ns);
    printf("breaker: kind %d, run %u, ratio %u of %u, count %u, window %" PRId64 ", open %" PRId64 " * %u <= %" PRId64
           " +- %u, probes %u for %" PRId64 ", ramp %" PRId64 "\n",
           k->kind, k->consecutive, k->ratio_permille, k->min_volume, k->count_window, k->window_ns, k->open_ns,
           k->open_growth_milli, k->open_max_ns, k->open_jitter_permille, k->probes, k->probe_timeout_ns, k->ramp_ns);
    printf("target: observe %x, keys %u in %" PRId64 ", hold-off %" PRId64 "\n", w->config.observe,
           w->config.key_retries, w->config.key_interval_ns, w->config.hold_off_max_ns);
}

/* -- time ---------------------------------------------------------------------------------------------------------- */

static int64_t after_edge(const struct world *w, int64_t slot_ns)
{
    return (w->now_ns / slot_ns + 1) * slot_ns;
}

/* Returns an instant at which something may change. */
static int64_t instant_of_change(struct world *w)
{
    const struct model *m = &w->model;
    switch (below(&w->dice, 11)) {
    case 0: return m->breaker.until_ns;
    case 1: return m->breaker.probe[below(&w->dice, BIDE_PROBES_MAX)].expires_ns;
    case 2:
        return m->breaker.closed_ns + m->config.breaker.ramp_ns + (chance(w, 50) ? m->config.breaker.open_max_ns : 0);
    case 3: return m->hold_off_ns;
    case 4: return m->blocked_ns;
    case 5: return m->lease.until_ns;
    case 6: return after_edge(w, m->spends.slot_ns) + (int64_t)below(&w->dice, 11) * m->spends.slot_ns;
    case 7: return after_edge(w, m->breaker.votes.slot_ns) + (int64_t)below(&w->dice, 11) * m->breaker.votes.slot_ns;
    case 8: return m->keys[below(&w->dice, 8)].last_ns + m->config.key_interval_ns;
    case 9: return w->model_call[below(&w->dice, PLAY_CALLS)].deadline_ns - (int64_t)below(&w->dice, 2) * 2 * BIDE_MS;
    default: return w->model_call[below(&w->dice, PLAY_CALLS)].wake_ns;
    }
}

static void pass_time(struct world *w)
{
    uint32_t way = below(&w->dice, 100);
    int64_t then_ns = w->now_ns, change_ns = way < 40 ? 0 : instant_of_change(w);
    if (change_ns >= BIDE_NEVER - BIDE_S)
        return;
    if (way < 40)
        then_ns += some_ns(w, w->unit_ns);
    else if (way < 60)
        then_ns = change_ns + (int64_t)below(&w->dice, 3) - 1;
    else if (way < 64)
        then_ns += some_ns(w, 20 * w->unit_ns);
    else if (way < 66)
        then_ns = change_ns + some_ns(w, 3 * TICK_NS);
    if (then_ns > w->now_ns && then_ns < w->now_ns + JUMP_NS)
        w->now_ns = then_ns;
}

/* -- events of a call ---------------------------------------------------------------------------------------------- */

static void settle(struct world *w, int i, const struct bide_verdict *v, const struct expected *e)
{
    compare_verdict(w, v, e);
    if (v->action == BIDE_ACTION_WAIT)
        w->model_call[i].wake_ns = v->wake_ns;
    else if (v->action != BIDE_ACTION_NONE)
        w->model_call[i].wake_ns = BIDE_NEVER;
}

static void begin(struct world *w, int i)
{
    const struct bide_policy *policy = &w->policy[below(&w->dice, 2)];
    struct bide_request request = {.safety = chance(w, 50) ? BIDE_SAFE : BIDE_KEYED,
                                   .lane = below(&w->dice, BIDE_LANES),
                                   .seed = roll(&w->dice),
                                   .retry_key = w->keys > 0 && chance(w, 90) ? between(w, 1, w->keys) : 0};
    if (w->keys > 0)
        tell(w, "key", (int64_t)request.retry_key);
    tell(w, policy == w->policy ? "begin, first policy," : "begin, second policy,", i);
    struct bide_verdict v = bide_call_begin(&w->call[i], policy, &w->target, &request, w->now_ns);
    observe_library(w);
    struct expected e = model_begin(&w->model, &w->model_call[i], policy, &request, &v, w->now_ns);
    settle(w, i, &v, &e);
}

static struct bide_hint some_hint(struct world *w)
{
    if (!chance(w, w->hint_percent))
        return (struct bide_hint){.kind = BIDE_HINT_NONE};
    if (chance(w, 5))
        return (struct bide_hint){.kind = BIDE_HINT_STOP};
    int64_t wait_ns = chance(w, 5) ? 0 : chance(w, 3) ? INT64_MAX : some_ns(w, 4 * w->unit_ns);
    return (struct bide_hint){BIDE_HINT_WAIT, wait_ns};
}

static uint32_t some_flags(struct world *w)
{
    uint32_t flags = chance(w, 20) ? BIDE_FLAG_TIMED_OUT : 0;
    flags |= chance(w, 3) ? BIDE_FLAG_ONCE : 0;
    flags |= chance(w, 5) ? BIDE_FLAG_LOCAL : 0;
    return flags | (chance(w, 1) ? BIDE_FLAG_BODY_SPENT : 0);
}

static struct bide_outcome some_outcome(struct world *w)
{
    static const enum bide_kind failures[] = {BIDE_KIND_TRANSIENT, BIDE_KIND_TRANSIENT, BIDE_KIND_TRANSIENT,
                                              BIDE_KIND_THROTTLED, BIDE_KIND_THROTTLED, BIDE_KIND_CONFLICT};
    struct bide_outcome o = {.kind = BIDE_KIND_OK, .evidence = BIDE_EVIDENCE_UNKNOWN};
    if (!chance(w, w->failure_percent))
        return o;
    o.evidence = chance(w, 2) ? BIDE_EVIDENCE_BODY_DELIVERED : below(&w->dice, BIDE_EVIDENCE_BODY_DELIVERED);
    if (chance(w, 6)) {
        o.kind = chance(w, 50) ? BIDE_KIND_CANCELLED : BIDE_KIND_PERMANENT;
        o.flags = o.kind == BIDE_KIND_PERMANENT && chance(w, 60) ? BIDE_FLAG_KEY_409 : 0;
    } else {
        o.kind = failures[below(&w->dice, 6)];
        o.flags = chance(w, 30) ? some_flags(w) : 0;
    }
    o.hint = some_hint(w);
    return o;
}

static void outcome(struct world *w, int i)
{
    struct bide_outcome o = some_outcome(w);
    if (w->now_ns >= w->model_call[i].deadline_ns - 2 * BIDE_MS && chance(w, 70))
        o = (struct bide_outcome){.kind = BIDE_KIND_TRANSIENT, .flags = BIDE_FLAG_TIMED_OUT};
    uint32_t attempt = w->model_call[i].attempt + (chance(w, 1) ? 1 : 0);
    tell(w, "outcome of call", i);
    if (w->verbose)
        printf("    %s, evidence %s, flags %x, hint %d %" PRId64 "\n", bide_kind_label(o.kind),
               bide_evidence_label(o.evidence), o.flags, o.hint.kind, o.hint.wait_ns);
    struct bide_verdict v = bide_call_outcome(&w->call[i], attempt, &o, w->now_ns);
    observe_library(w);
    struct expected e = model_outcome(&w->model, &w->model_call[i], attempt, &o, &v, w->now_ns);
    settle(w, i, &v, &e);
}

static void wake(struct world *w, int i)
{
    int64_t wake_ns = w->model_call[i].wake_ns;
    if (wake_ns > w->now_ns && wake_ns < w->now_ns + JUMP_NS && chance(w, 60))
        w->now_ns = wake_ns + (chance(w, 5) ? some_ns(w, 3 * BIDE_S) : 0);
    tell(w, "wake", i);
    struct bide_verdict v = bide_call_wake(&w->call[i], w->now_ns);
    observe_library(w);
    struct expected e = model_wake(&w->model, &w->model_call[i], &v, w->now_ns);
    settle(w, i, &v, &e);
}

static void cancel(struct world *w, int i)
{
    tell(w, "cancel", i);
    struct bide_verdict v = bide_call_cancel(&w->call[i], w->now_ns);
    observe_library(w);
    struct expected e = model_cancel(&w->model, &w->model_call[i], w->now_ns);
    settle(w, i, &v, &e);
}

static void step_call(struct world *w)
{
    int i = (int)below(&w->dice, PLAY_CALLS);
    if (chance(w, 3))
        cancel(w, i);
    else if (w->model_call[i].state == CALL_IDLE && chance(w, 97))
        begin(w, i);
    else if (w->model_call[i].state == CALL_RUNNING ? chance(w, 97) : chance(w, 3))
        outcome(w, i);
    else
        wake(w, i);
}

/* -- other events -------------------------------------------------------------------------------------------------- */

static void hold(struct world *w)
{
    uint32_t kind = below(&w->dice, 5);
    tell(w, "hold or trip", kind);
    if (kind < 3) {
        bide_breaker_hold(&w->target, (enum bide_hold)kind);
        observe_library(w);
        breaker_hold(&w->model, (enum bide_hold)kind);
        return;
    }
    bool tripped = bide_breaker_trip(&w->target, roll(&w->dice), w->now_ns);
    observe_library(w);
    require_equal(w, "trip", tripped, w->model.breaker.state == BIDE_BREAKER_CLOSED);
    if (w->model.breaker.state == BIDE_BREAKER_CLOSED)
        breaker_open(&w->model, w->now_ns);
}

static void hold_off(struct world *w)
{
    int64_t until_ns = w->now_ns + some_ns(w, 4 * w->unit_ns);
    tell(w, "hold off until", until_ns);
    bide_target_hold_off(&w->target, until_ns, w->now_ns);
    model_hold_off(&w->model, until_ns, w->now_ns);
}

/* The change lies between the room that the highest level and the room that the stored level leaves. */
static void add_tokens(struct world *w)
{
    int64_t amount = (int64_t)below(&w->dice, 6000) - (chance(w, 30) ? 3000 : 0);
    bool tokens = w->model.config.budget.kind == BIDE_BUDGET_TOKENS;
    struct level before = bucket_level(&w->model, w->now_ns);
    tell(w, "add tokens", amount);
    int64_t change = bide_budget_add_milli(&w->target, amount, w->now_ns);
    if (!tokens) {
        require_equal(w, "tokens added to another kind", change, 0);
    } else if (amount >= 0) {
        int64_t room = (int64_t)w->model.config.budget.capacity_milli - before.hi;
        require_range(w, "tokens added", change, amount < room ? amount : room, amount);
        bucket_add(&w->model, amount);
    } else {
        int64_t least = -amount < before.lo ? -amount : before.lo, most = -amount < before.hi ? -amount : before.hi;
        require_range(w, "tokens removed", -change, least, most);
        bucket_drain(&w->model, -amount, w->now_ns);
    }
}

static void reload(struct world *w, const struct play *play)
{
    struct bide_target_config active;
    if (model_could_pay(&w->model, w->now_ns) == FATE_EITHER) /* then a window would be blocked, or not */
        return;
    play->reshape(w);
    tell(w, "reload", w->config.budget.kind);
    if (w->verbose)
        tell_world(w);
    require_equal(w, "reload", bide_target_configure(&w->target, &w->config, w->now_ns, NULL), BIDE_OK);
    bide_target_config_get(&w->target, &active);
    require_equal(w, "active configuration", memcmp(&active, &w->config, sizeof active), 0);
    model_configure(&w->model, &w->config, w->now_ns);
}

static void collect(struct world *w)
{
    struct core_lease_report is = core_lease_collect(&w->target), *should = &w->model.lease.report;
    require_equal(w, "first attempts collected", (int64_t)is.firsts, (int64_t)should->firsts);
    require_equal(w, "successes collected", (int64_t)is.successes, (int64_t)should->successes);
    require_equal(w, "earnings collected", (int64_t)is.earned_milli, (int64_t)should->earned_milli);
    *should = (struct core_lease_report){0, 0, 0};
}

static void claim(struct world *w)
{
    uint32_t exchanger = between(w, 1, 3);
    int64_t until_ns = w->now_ns + some_ns(w, 3 * BIDE_S) - BIDE_S / 2;
    tell(w, "claim by", exchanger);
    tell(w, "    until", until_ns);
    bool claimed = core_lease_claim(&w->target, exchanger, until_ns, w->now_ns);
    tell(w, "    claimed", claimed);
    require_equal(w, "claim", claimed, model_lease_claim(&w->model, exchanger, until_ns, w->now_ns));
}

static void memo(struct world *w)
{
    struct core_lease_memo is = core_lease_memo_get(&w->target);
    require_equal(w, "memo: progress", (int64_t)is.progress, (int64_t)w->model.lease.memo.progress);
    require_equal(w, "memo: base", (int64_t)is.base_milli, (int64_t)w->model.lease.memo.base_milli);
    w->model.lease.memo = (struct core_lease_memo){below(&w->dice, 1000), below(&w->dice, 1000)};
    core_lease_memo_set(&w->target, w->model.lease.memo);
}

static void extend(struct world *w)
{
    int64_t until_ns = w->now_ns + some_ns(w, 2 * w->unit_ns) - (chance(w, 20) ? 2 * w->unit_ns : 0);
    tell(w, "lease: extend until", until_ns);
    core_lease_extend(&w->target, until_ns, w->now_ns);
    model_lease_extend(&w->model, until_ns, w->now_ns);
}

static void lease(struct world *w)
{
    uint32_t kind = below(&w->dice, 20);
    tell(w, "lease", kind);
    if (kind < 4) {
        require_equal(w, "lease: begin", core_lease_begin(&w->target, w->now_ns, NULL), BIDE_OK);
        model_lease_begin(&w->model, w->now_ns);
    } else if (kind == 4) {
        require_equal(w, "lease: end", core_lease_end(&w->target, w->now_ns), BIDE_OK);
        model_lease_end(&w->model, w->now_ns);
    } else if (kind < 7 && w->model.lease.on) {
        collect(w);
    } else if (kind < 10) {
        claim(w);
    } else if (kind < 12 && w->model.lease.on) {
        memo(w);
    } else {
        extend(w);
    }
}

static void step_target(struct world *w, const struct play *play)
{
    switch (w->events & 1u << below(&w->dice, 5)) {
    case PLAY_RELOAD: reload(w, play); break;
    case PLAY_HOLD: hold(w); break;
    case PLAY_HOLD_OFF: hold_off(w); break;
    case PLAY_ADD: add_tokens(w); break;
    case PLAY_LEASE: lease(w); break;
    default: step_call(w);
    }
}

/* -- sequences ----------------------------------------------------------------------------------------------------- */

static void open_world(struct world *w, const struct play *play, uint64_t number)
{
    w->dice.state = (number + 1) * UINT64_C(0x9e3779b97f4a7c15) | 1;
    for (int i = 0; i < 4; i++)
        roll(&w->dice);
    w->failed = false;
    w->now_ns = chance(w, 10) ? 0 : some_ns(w, INT64_C(1) << 50);
    play->shape(w);
    if (number % 8 == 0)
        shape_usual(w);
    memset(w->call, 0, sizeof w->call);
    memset(w->model_call, 0, sizeof w->model_call);
    for (int i = 0; i < PLAY_CALLS; i++)
        w->model_call[i].wake_ns = BIDE_NEVER;
    struct bide_problem problem;
    if (bide_target_init(&w->target, &w->config, w->now_ns, &problem) != BIDE_OK ||
        bide_policy_check(&w->policy[0], &problem) != BIDE_OK ||
        bide_policy_check(&w->policy[1], &problem) != BIDE_OK) {
        printf("%s is %" PRId64 ", must be %s\n", problem.field, problem.value, problem.want);
        abort();
    }
    model_init(&w->model, &w->config, w->now_ns);
}

static void tell_policy(const struct bide_policy *p)
{
    printf("policy: attempts %u, backoff %d, jitter %d, base %" PRId64 ", cap %" PRId64 ", throttled %" PRId64
           ", deadline %" PRId64 ", hints: rule %d, long %d, step %d, jitter %u, max %" PRId64 ", over %" PRId64 "\n",
           p->attempts_max, p->backoff, p->jitter, p->base_ns, p->cap_ns, p->throttled_base_ns, p->call_timeout_ns,
           p->hint_rule, p->hint_long, p->hint_step, p->hint_jitter_permille, p->hint_max_ns, p->hint_over_ns);
}

static bool play_sequence(struct world *w, const struct play *play, uint64_t number, bool verbose)
{
    w->verbose = verbose;
    open_world(w, play, number);
    if (verbose) {
        tell_world(w);
        tell_policy(&w->policy[0]);
        tell_policy(&w->policy[1]);
    }
    core_force_slow_path = number % 4 == 3;
    uint32_t length = between(w, 20, 120);
    for (uint32_t i = 0; i < length && !w->failed; i++) {
        pass_time(w);
        if (w->events != 0 && chance(w, 20))
            step_target(w, play);
        else
            step_call(w);
        observe_library(w);
        compare_target(w);
        if (verbose)
            printf("    left %" PRId64 ", breaker %s, generation %u, opened %u, until %" PRId64 "\n",
                   bide_target_get(&w->target, w->now_ns).budget_left_milli,
                   bide_breaker_state_label(w->model.view.state), w->model.view.generation, w->model.view.openings,
                   w->model.view.until_ns);
    }
    core_force_slow_path = false;
    return !w->failed;
}

static const struct play *playing;

/* A model that never saw a fast path would say nothing about it. Returns the number of fast paths not taken. */
static int count_fast_paths(void)
{
    static const char *const names[] = {"begin", "success", "failure", "wake"};
    int missing = 0;
    printf("fast paths taken:");
    for (int i = 0; i < CORE_FAST_PATHS; i++) {
        printf(" %s %" PRIu64, names[i], core_fast_paths_taken[i]);
        missing += core_fast_paths_taken[i] == 0;
        core_fast_paths_taken[i] = 0;
    }
    printf("%s\n", missing > 0 ? ": a fast path was never taken" : "");
    return missing;
}

static int play_seed(uint64_t seed)
{
    static struct world w;
    for (uint64_t i = 0; i < SEQUENCES; i++) {
        uint64_t number = seed + i;
        if (play_sequence(&w, playing, number, false))
            continue;
        printf("sequence %" PRIu64 " of %s:\n", i, playing->name);
        play_sequence(&w, playing, number, true);
        return 1;
    }
    printf("%d sequences agree with the model; ", SEQUENCES);
    return count_fast_paths();
}

int play_main(const char *program, const struct play *play)
{
    playing = play;
    return seed_main(program, 1, play_seed);
}
