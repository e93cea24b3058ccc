/* fuzz_engine.c - the engine as a state machine: any sequence of events, at any times, keeps its invariants.
 *
 * The input is a preset, a few settings, and events of four bytes: what happens, to which of four calls, how much
 * later, and a detail. Invariants, checked after every event:
 *   a verdict is legal in the state of its call; after DONE or GIVE_UP comes nothing but NONE;
 *   no attempt starts, and no wait ends, at or after the deadline; no attempt outlives it;
 *   attempts are numbered 1, 2, 3 ... up to attempts_max; DONE follows a success only;
 *   the budget is never negative, and counts of refusals never fall.
 * The assertions of the engine are on. */
#include <bide/bide.h>

#include "core/gates.h"
#include "core/lease.h"

#include <stdlib.h>
#include <string.h>

#define CALLS 4

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            abort();                                                                                                   \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Bytes are consumed from the front; after the last byte come zeros. */
struct bytes {
    const uint8_t *at;
    size_t left;
};

static uint8_t take(struct bytes *b)
{
    if (b->left == 0)
        return 0;
    b->left--;
    return *b->at++;
}

struct follower { /* what a driver knows about a call */
    bool live;
    uint32_t attempt;
    int64_t deadline_ns;
};

struct engine {
    struct bide_policy policy;
    struct bide_target_config config;
    struct bide_target target;
    struct bide_call call[CALLS];
    struct follower follower[CALLS];
    uint64_t refused[BIDE_GATE_COUNT];
    int64_t now_ns;
};

static void check_start(const struct engine *g, struct follower *f, const struct bide_verdict *v)
{
    CHECK(v->attempt == f->attempt + 1 && v->attempt <= g->policy.attempts_max);
    CHECK(g->now_ns < f->deadline_ns && v->attempt_deadline_ns <= f->deadline_ns);
    CHECK(v->connect_deadline_ns <= v->attempt_deadline_ns && v->attempt_deadline_ns > g->now_ns);
    f->attempt = v->attempt;
}

static void check_verdict(struct engine *g, struct follower *f, const struct bide_verdict *v, bool succeeded)
{
    CHECK((unsigned)v->action <= BIDE_ACTION_GIVE_UP && (unsigned)v->reason < BIDE_REASON_COUNT);
    CHECK(f->live || v->action == BIDE_ACTION_NONE);
    CHECK((v->observed & ~(BIDE_POLICY_GATES | BIDE_TARGET_GATES)) == 0);
    if (v->action == BIDE_ACTION_START)
        check_start(g, f, v);
    if (v->action == BIDE_ACTION_WAIT)
        CHECK(v->wake_ns >= g->now_ns && v->wake_ns < f->deadline_ns);
    if (v->action == BIDE_ACTION_DONE)
        CHECK(succeeded && v->attempt >= 1 && v->attempt <= f->attempt);
    if (v->action == BIDE_ACTION_DONE || v->action == BIDE_ACTION_GIVE_UP) {
        CHECK(v->wake_ns == BIDE_NEVER);
        f->live = false;
    }
}

static void check_target(struct engine *g)
{
    struct bide_target_view view = bide_target_get(&g->target, g->now_ns);
    CHECK(view.budget_left_milli >= 0);
    CHECK((unsigned)view.breaker.state <= BIDE_BREAKER_HELD_OPEN);
    for (int i = 0; i < BIDE_GATE_COUNT; i++) {
        CHECK(view.refused[i] >= g->refused[i]);
        g->refused[i] = view.refused[i];
    }
    CHECK(view.hold_off_until_ns == 0 || view.hold_off_until_ns > g->now_ns);
}

static int64_t later(int64_t a, int64_t b)
{
    return a > BIDE_NEVER - b ? BIDE_NEVER : a + b;
}

static void begin(struct engine *g, uint32_t i, uint8_t detail)
{
    struct follower *f = &g->follower[i];
    struct bide_request request = {.safety = detail & 3, .seed = detail, .lane = detail, .retry_key = detail >> 5};
    request.inbound.attempt = detail >> 2 & 3;
    if (f->live)
        return;
    *f = (struct follower){true, 0, later(g->now_ns, g->policy.call_timeout_ns)};
    struct bide_verdict v = bide_call_begin(&g->call[i], &g->policy, &g->target, &request, g->now_ns);
    check_verdict(g, f, &v, false);
}

static void outcome(struct engine *g, uint32_t i, uint8_t kind, uint8_t detail)
{
    struct bide_outcome o = {.kind = kind % 7, .evidence = detail & 7, .flags = detail >> 3};
    if (detail & 1)
        o.hint = (struct bide_hint){detail >> 1 & 3, (int64_t)((uint64_t)detail << (kind & 63))};
    uint32_t attempt = g->follower[i].attempt - (detail >> 6);
    struct bide_verdict v = bide_call_outcome(&g->call[i], attempt, &o, g->now_ns);
    check_verdict(g, &g->follower[i], &v, o.kind == BIDE_KIND_OK);
}

static void reload(struct engine *g, uint8_t detail)
{
    struct bide_target_config config = g->config;
    config.budget.kind = detail & 3;
    config.breaker.kind = detail >> 2 & 3;
    config.breaker.probes = 1 + (detail >> 4 & 7);
    config.observe = detail & 128 ? BIDE_TARGET_GATES : 0;
    config.hold_off_first = detail & 64;
    enum bide_err err = bide_target_configure(&g->target, &config, g->now_ns, NULL);
    CHECK(err == BIDE_OK || err == BIDE_ERR_INVALID);
}

static void touch_target(struct engine *g, uint8_t what, uint8_t detail)
{
    int64_t amount = (int64_t)(detail - 100) * 100;
    switch (what % 8) {
    case 0: reload(g, detail); break;
    case 1: bide_breaker_hold(&g->target, detail % 4); break;
    case 2: (void)bide_breaker_trip(&g->target, detail, g->now_ns); break;
    case 3: bide_target_hold_off(&g->target, later(g->now_ns, (int64_t)detail << 24), g->now_ns); break;
    case 4: (void)bide_budget_add_milli(&g->target, amount, g->now_ns); break;
    case 5:
        (void)(detail & 1 ? core_lease_begin(&g->target, g->now_ns, NULL) : core_lease_end(&g->target, g->now_ns));
        break;
    case 6: core_lease_extend(&g->target, g->now_ns + amount * BIDE_MS, g->now_ns); break;
    default: (void)core_lease_collect(&g->target); (void)core_target_is_evictable(&g->target, g->now_ns);
    }
}

static void step(struct engine *g, struct bytes *b)
{
    uint8_t what = take(b), whom = take(b), when = take(b), detail = take(b);
    uint32_t i = whom % CALLS;
    g->now_ns += when < 64 ? when : (int64_t)(1 + when % 8) << (when / 8 + 6); /* to 36 s */
    struct bide_verdict v;
    switch (what % 8) {
    case 0: begin(g, i, detail); return;
    case 1:
    case 2: outcome(g, i, whom / CALLS, detail); return;
    case 3: v = bide_call_wake(&g->call[i], g->now_ns); break;
    case 4: /* on time */
        if (g->call[i].wake_ns != BIDE_NEVER && g->call[i].wake_ns > g->now_ns &&
            g->call[i].wake_ns < BIDE_DURATION_MAX)
            g->now_ns = g->call[i].wake_ns;
        v = bide_call_wake(&g->call[i], g->now_ns);
        break;
    case 5: v = bide_call_cancel(&g->call[i], g->now_ns); break;
    case 6: v = bide_call_safety(&g->call[i], detail & 3, g->now_ns); break;
    default: touch_target(g, whom, detail); return;
    }
    check_verdict(g, &g->follower[i], &v, false);
}

/* Returns false if the settings are not valid. */
static bool open_engine(struct engine *g, struct bytes *b)
{
    memset(g, 0, sizeof *g);
    bide_policy_init(&g->policy, take(b) % BIDE_PRESET_COUNT);
    bide_target_config_init(&g->config, take(b) % BIDE_PRESET_COUNT);
    uint8_t bits = take(b), more = take(b);
    g->policy.attempts_max = 1 + (bits & 7);
    g->policy.hedges_max = bits >> 3 & 1 ? 1 + (bits >> 4 & 1) : 0;
    g->policy.hedge_delay_ns = (int64_t)more * BIDE_MS;
    g->policy.long_poll = bits & 32;
    g->config.hold_off_first = bits & 64;
    g->config.latency = bits & 128;
    g->config.in_flight_max = more & 1 ? 2 : 0;
    g->config.key_retries = more & 2 ? 2 : 0;
    g->config.throttle_k_milli = more & 4 ? 2000 : 0;
    g->config.breaker.min_volume = more & 8 ? 1 : g->config.breaker.min_volume;
    g->config.budget.on_empty = more & 16 ? BIDE_ON_EMPTY_OPEN : BIDE_ON_EMPTY_REFUSE;
    g->now_ns = (int64_t)take(b) << 32;
    return bide_policy_check(&g->policy, NULL) == BIDE_OK &&
           bide_target_init(&g->target, &g->config, g->now_ns, NULL) == BIDE_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct engine g;
    struct bytes b = {data, size};
    if (size > 4096 || !open_engine(&g, &b))
        return 0;
    while (b.left > 0) {
        step(&g, &b);
        check_target(&g);
    }
    return 0;
}
