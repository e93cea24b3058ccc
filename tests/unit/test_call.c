/* test_call.c - one call: the books it keeps with its target, and what its verdicts say.
 *
 * Sequences of events are told as stories (tests/stories). Here is what a story shows badly: that every count returns to
 * where it was whatever path a call took, that what was taken and not used is given back exactly once, that a call whose
 * target has a new owner touches nothing, and each field of each kind of verdict. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include <string.h>

#include <bide/call.h>

#include "core/gates.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))
#define MS           BIDE_MS
#define S            BIDE_S
#define T0           (1000 * S)

static const struct bide_outcome good = {.kind = BIDE_KIND_OK, .reach = BIDE_REACH_ANSWERED};
static const struct bide_outcome failed = {.kind = BIDE_KIND_TRANSIENT, .reach = BIDE_REACH_ANSWERED};
static const struct bide_outcome hopeless = {.kind = BIDE_KIND_PERMANENT, .reach = BIDE_REACH_ANSWERED};
static const struct bide_outcome conflict = {.kind = BIDE_KIND_CONFLICT, .reach = BIDE_REACH_ANSWERED};
static const struct bide_outcome limited = {.kind = BIDE_KIND_THROTTLED, .reach = BIDE_REACH_ANSWERED};
static const struct bide_outcome stopped = {.kind = BIDE_KIND_CANCELLED};
static const struct bide_outcome unsent = {.kind = BIDE_KIND_CANCELLED, .reach = BIDE_REACH_NEVER_SENT};
static const struct bide_request get = {.safety = BIDE_SAFE};
static const struct bide_request post = {.safety = BIDE_UNSAFE};
static const struct bide_request keyed = {.safety = BIDE_SAFE, .retry_key = 77};

static struct bide_policy policy;
static struct bide_target_config config;
static struct bide_target target;
static struct bide_call call;

/* Four attempts, waits of 100, 200 and 400 ms, a minute in all; ten tokens, one a retry, no income; no breaker. */
static void fresh(void)
{
    bide_policy_init(&policy, BIDE_PRESET_SERVICE);
    policy.jitter = BIDE_JITTER_NONE;
    policy.base_ns = 100 * MS;
    bide_target_config_init(&config, BIDE_PRESET_SERVICE);
    config.breaker.kind = BIDE_BREAKER_OFF;
    config.budget.earn_success_milli = 0;
    config.budget.earn_per_minute_milli = 0;
    memset(&call, 0xa5, sizeof call); /* begin does not care what was there */
}

static void open_target(void)
{
    struct bide_problem problem = {"", "", 0};
    if (bide_policy_check(&policy, &problem) != BIDE_OK || bide_target_init(&target, &config, T0, &problem) != BIDE_OK)
        fail_msg("%s is %lld; want %s", problem.field, (long long)problem.value, problem.want);
}

static void open_fresh(void)
{
    fresh();
    open_target();
}

static struct bide_verdict begin_as(const struct bide_request *request, int64_t now_ns)
{
    return bide_call_begin(&call, &policy, &target, request, now_ns);
}

static struct bide_verdict begin(int64_t now_ns)
{
    return begin_as(&get, now_ns);
}

static struct bide_verdict report(uint32_t attempt, struct bide_outcome outcome, int64_t now_ns)
{
    return bide_call_outcome(&call, attempt, &outcome, now_ns);
}

static struct bide_verdict wake(int64_t now_ns)
{
    return bide_call_wake(&call, now_ns);
}

static struct bide_verdict cancel(int64_t now_ns)
{
    return bide_call_cancel(&call, now_ns);
}

static struct bide_outcome with_hint(struct bide_outcome outcome, int64_t wait_ns)
{
    outcome.hint = (struct bide_hint){BIDE_HINT_WAIT, wait_ns};
    return outcome;
}

static struct bide_outcome with_stop(struct bide_outcome outcome)
{
    outcome.hint = (struct bide_hint){.kind = BIDE_HINT_STOP};
    return outcome;
}

static int64_t left(void)
{
    return bide_budget_left_milli(&target, T0);
}

static void assert_says(struct bide_verdict v, enum bide_what what, enum bide_why why)
{
    if (v.what != what || v.why != why)
        fail_msg("%s %s, want %s %s", bide_what_label(v.what), bide_why_label(v.why), bide_what_label(what),
                 bide_why_label(why));
}

/* ---- size ---- */

static void a_call_fits_96_bytes_and_a_target_two_kibibytes(void **state)
{
    (void)state;
    assert_true(sizeof(struct bide_call) <= 96);
    assert_true(sizeof(struct bide_target) <= 2048);
}

/* ---- what a verdict says ---- */

static void assert_verdict(struct bide_verdict got, struct bide_verdict want)
{
    assert_says(got, want.what, want.why);
    assert_int_equal(got.attempt, want.attempt);
    assert_int_equal(got.observed, want.observed);
    assert_int_equal(got.wake_ns, want.wake_ns);
    assert_int_equal(got.attempt_deadline_ns, want.attempt_deadline_ns);
    assert_int_equal(got.connect_deadline_ns, want.connect_deadline_ns);
}

#define VERDICT(w, y, n, wake, cut, connect)                                                                           \
    (struct bide_verdict)                                                                                              \
    {                                                                                                                  \
        .what = BIDE_##w, .why = BIDE_WHY_##y, .attempt = (n), .wake_ns = (wake), .attempt_deadline_ns = (cut),        \
        .connect_deadline_ns = (connect)                                                                               \
    }
#define NEVER BIDE_NEVER

static void every_verdict_fills_every_field(void **state)
{
    (void)state;
    open_fresh(); /* an attempt may take 10 s, connecting 3 s, all together a minute */
    assert_verdict(begin(T0), VERDICT(START, FIRST_ATTEMPT, 1, NEVER, T0 + 10 * S, T0 + 3 * S));
    assert_verdict(wake(T0 + S), VERDICT(NONE, NOTHING, 1, NEVER, NEVER, NEVER));
    assert_verdict(report(2, good, T0 + S), VERDICT(NONE, NOTHING, 1, NEVER, NEVER, NEVER));
    assert_verdict(report(1, failed, T0 + S), VERDICT(WAIT, BACKOFF, 1, T0 + 1100 * MS, NEVER, NEVER));
    assert_verdict(report(1, good, T0 + S), VERDICT(NONE, NOTHING, 1, T0 + 1100 * MS, NEVER, NEVER));
    assert_verdict(wake(T0 + S), VERDICT(NONE, NOTHING, 1, T0 + 1100 * MS, NEVER, NEVER)); /* early */
    assert_verdict(wake(T0 + 2 * S), VERDICT(START, RETRY, 2, NEVER, T0 + 12 * S, T0 + 5 * S));
    assert_verdict(report(2, good, T0 + 3 * S), VERDICT(DONE, SUCCEEDED, 2, NEVER, NEVER, NEVER));
    assert_verdict(wake(T0 + 9 * S), VERDICT(NONE, NOTHING, 2, NEVER, NEVER, NEVER));
    assert_verdict(cancel(T0 + 9 * S), VERDICT(NONE, NOTHING, 2, NEVER, NEVER, NEVER));
    begin(T0);
    assert_verdict(report(1, hopeless, T0 + S), VERDICT(GIVE_UP, PERMANENT, 1, NEVER, NEVER, NEVER));
    begin(T0);
    assert_verdict(cancel(T0), VERDICT(GIVE_UP, CANCELLED, 1, NEVER, NEVER, NEVER));
    policy.hedges_max = 1;
    policy.hedge_delay_ns = 400 * MS;
    assert_verdict(begin(T0), VERDICT(START, FIRST_ATTEMPT, 1, T0 + 400 * MS, T0 + 10 * S, T0 + 3 * S));
    assert_verdict(wake(T0 + 400 * MS),
                   VERDICT(START, HEDGE, 2, NEVER, T0 + 10400 * MS, T0 + 3400 * MS)); /* no more hedges */
    assert_verdict(report(2, failed, T0 + S), VERDICT(NONE, NOTHING, 2, NEVER, NEVER, NEVER));
    assert_verdict(report(1, good, T0 + S), VERDICT(DONE, SUCCEEDED, 1, NEVER, NEVER, NEVER));
}

static void the_deadlines_of_an_attempt_are_the_nearest_of_its_own_and_the_call_s(void **state)
{
    static const struct {
        int64_t attempt_ns, connect_ns, policy_ns, request_ns; /* request_ns: after T0; 0: none */
        int64_t cut_ns, by_ns;                                 /* after T0; BIDE_NEVER: never */
    } table[] = {
        {10 * S, 3 * S, 60 * S, 0, 10 * S, 3 * S},    {10 * S, 3 * S, 5 * S, 0, 5 * S, 3 * S},
        {10 * S, 3 * S, 2 * S, 0, 2 * S, 2 * S},      {10 * S, 3 * S, 60 * S, 4 * S, 4 * S, 3 * S},
        {10 * S, 3 * S, 4 * S, 60 * S, 4 * S, 3 * S}, {10 * S, NEVER, 60 * S, 0, 10 * S, 10 * S},
        {NEVER, 3 * S, 60 * S, 0, 60 * S, 3 * S},     {NEVER, NEVER, NEVER, 0, NEVER, NEVER},
        {NEVER, NEVER, NEVER, 7 * S, 7 * S, 7 * S},   {BIDE_DURATION_MAX, 3 * S, NEVER, 0, BIDE_DURATION_MAX, 3 * S},
    };
    (void)state;
    open_fresh();
    for (size_t i = 0; i < COUNT(table); i++) {
        struct bide_request request = get;
        policy.attempt_timeout_ns = table[i].attempt_ns;
        policy.connect_timeout_ns = table[i].connect_ns;
        policy.deadline_ns = table[i].policy_ns;
        request.deadline_ns = table[i].request_ns > 0 ? T0 + table[i].request_ns : 0;
        struct bide_verdict v = begin_as(&request, T0);
        assert_int_equal(v.attempt_deadline_ns, table[i].cut_ns == NEVER ? NEVER : T0 + table[i].cut_ns);
        assert_int_equal(v.connect_deadline_ns, table[i].by_ns == NEVER ? NEVER : T0 + table[i].by_ns);
    }
}

static void a_call_that_never_began_answers_nothing(void **state)
{
    struct bide_call none = {0};
    (void)state;
    assert_verdict(bide_call_wake(&none, T0), VERDICT(NONE, NOTHING, 0, NEVER, NEVER, NEVER));
    assert_verdict(bide_call_cancel(&none, T0), VERDICT(NONE, NOTHING, 0, NEVER, NEVER, NEVER));
    assert_verdict(bide_call_outcome(&none, 1, &good, T0), VERDICT(NONE, NOTHING, 0, NEVER, NEVER, NEVER));
    assert_verdict(bide_call_outcome(&none, 0, &failed, T0), VERDICT(NONE, NOTHING, 0, NEVER, NEVER, NEVER));
}

static void a_call_that_is_refused_at_its_begin_made_no_attempt(void **state)
{
    struct bide_request late = {.safety = BIDE_SAFE, .deadline_ns = T0};
    (void)state;
    open_fresh();
    assert_verdict(begin_as(&late, T0), VERDICT(GIVE_UP, DEADLINE, 0, NEVER, NEVER, NEVER));
    assert_verdict(begin_as(&late, T0 + 1), VERDICT(GIVE_UP, DEADLINE, 0, NEVER, NEVER, NEVER));
    policy.struct_size--;
    assert_verdict(begin(T0), VERDICT(GIVE_UP, BAD_POLICY, 0, NEVER, NEVER, NEVER));
    assert_says(cancel(T0), BIDE_NONE, BIDE_WHY_NOTHING);
}

static void a_mutating_request_without_a_key_is_refused_or_only_noticed(void **state)
{
    static const struct {
        enum bide_safety safety;
        bool refused;
    } table[] = {{BIDE_UNSAFE, true}, {BIDE_IDEMPOTENT, true}, {BIDE_SAFE, false}, {BIDE_KEYED, false}};
    (void)state;
    open_fresh();
    policy.require_key = true;
    for (size_t i = 0; i < COUNT(table); i++) {
        struct bide_request request = {.safety = table[i].safety};
        policy.observe = 0;
        assert_int_equal(begin_as(&request, T0).what, table[i].refused ? BIDE_GIVE_UP : BIDE_START);
        policy.observe = BIDE_GATE_KEY;
        struct bide_verdict v = begin_as(&request, T0);
        assert_says(v, BIDE_START, BIDE_WHY_FIRST_ATTEMPT);
        assert_int_equal(v.observed, table[i].refused ? BIDE_GATE_KEY : 0);
    }
    assert_int_equal(bide_target_refused(&target, BIDE_GATE_KEY), 4);
}

/* ---- chance ---- */

static void run_by_seed(uint64_t seed, int64_t wakes[3])
{
    struct bide_request request = {.safety = BIDE_SAFE, .seed = seed};
    int64_t now_ns = T0;
    open_target();
    begin_as(&request, now_ns);
    for (uint32_t i = 0; i < 3; i++) {
        wakes[i] = now_ns = report(i + 1, i == 1 ? with_hint(limited, S) : failed, now_ns).wake_ns;
        assert_int_equal(wake(now_ns).what, BIDE_START);
    }
}

static void the_same_seed_gives_the_same_verdicts_and_another_seed_others(void **state)
{
    int64_t a[3], b[3], other[3];
    (void)state;
    fresh();
    policy.jitter = BIDE_JITTER_FULL;
    for (uint64_t seed = 0; seed < 100; seed++) {
        run_by_seed(seed, a);
        run_by_seed(seed, b);
        run_by_seed(seed + 1, other);
        assert_memory_equal(a, b, sizeof a);
        assert_memory_not_equal(a, other, sizeof a);
    }
}

/* A gate added or asked in between must not shift the waits. */
static void other_gates_do_not_shift_the_waits(void **state)
{
    int64_t plain[3], guarded[3];
    (void)state;
    fresh();
    policy.jitter = BIDE_JITTER_FULL;
    run_by_seed(7, plain);
    config.throttle_k_milli = 2000;
    config.throttle_min_volume = 1000;
    config.in_flight_max = 5;
    config.breaker.kind = BIDE_BREAKER_CONSECUTIVE;
    run_by_seed(7, guarded);
    assert_memory_equal(plain, guarded, sizeof plain);
}

/* ---- without a target ---- */

static void without_a_target_only_the_policy_decides(void **state)
{
    (void)state;
    fresh();
    policy.hedges_max = 1;
    policy.hedge_quantile_permille = 950; /* nobody measures: the delay holds */
    policy.hedge_delay_ns = 400 * MS;
    struct bide_verdict v = bide_call_begin(&call, &policy, NULL, &keyed, T0);
    assert_says(v, BIDE_START, BIDE_WHY_FIRST_ATTEMPT);
    assert_int_equal(v.wake_ns, T0 + 400 * MS);
    assert_says(wake(T0 + 400 * MS), BIDE_START, BIDE_WHY_HEDGE);
    assert_says(report(1, with_hint(limited, 2 * S), T0 + S), BIDE_NONE, BIDE_WHY_NOTHING);
    v = report(2, failed, T0 + S);
    assert_says(v, BIDE_WAIT, BIDE_WHY_SERVER_HINT);
    assert_int_equal(v.wake_ns, T0 + 3 * S);
    assert_says(wake(T0 + 3 * S), BIDE_START, BIDE_WHY_RETRY);
    assert_says(report(3, unsent, T0 + 3 * S), BIDE_GIVE_UP, BIDE_WHY_CANCELLED);
    bide_call_begin(&call, &policy, NULL, &get, T0);
    assert_says(report(1, good, T0), BIDE_DONE, BIDE_WHY_SUCCEEDED);
    bide_call_begin(&call, &policy, NULL, &get, T0);
    wake(T0 + S);
    assert_says(cancel(T0 + S), BIDE_GIVE_UP, BIDE_WHY_CANCELLED);
    policy.require_key = true;
    assert_says(bide_call_begin(&call, &policy, NULL, &post, T0), BIDE_GIVE_UP, BIDE_WHY_KEY_REQUIRED);
}

/* ---- what a call is in the middle of ---- */

enum stage { HELD_BACK, RUNS, HEDGED, PROBES, WAITS, PARTS, STAGES };

/* Brings a call to a stage, holding all that one can hold there: places in flight and among the calls, a probe, a token, a
 * place of its key. */
static void stage_call(enum stage stage, enum bide_budget_kind kind)
{
    fresh();
    config.in_flight_max = 4;
    config.key_retries = 2;
    config.latency = true;
    config.quiet_first = true;
    config.throttle_k_milli = 2000;
    config.budget.kind = kind;
    config.budget.reserve = 5;
    config.breaker.kind = BIDE_BREAKER_CONSECUTIVE;
    config.breaker.consecutive = 1;
    config.breaker.open_ns = config.breaker.open_max_ns = S;
    config.breaker.open_jitter_permille = 0;
    policy.hedges_max = stage == HEDGED ? 2 : 0;
    policy.hedge_delay_ns = 0;
    policy.long_poll = true;
    open_target();
    switch (stage) {
    case HELD_BACK:
        bide_target_quiet(&target, T0 + S, T0);
        assert_says(begin_as(&keyed, T0), BIDE_WAIT, BIDE_WHY_QUIET);
        break;
    case PROBES:
        begin_as(&keyed, T0);
        report(1, failed, T0); /* opens it; two seconds later it is half open */
        cancel(T0);
        assert_says(begin_as(&keyed, T0 + 2 * S), BIDE_START, BIDE_WHY_FIRST_ATTEMPT);
        assert_int_equal(bide_breaker_look(&target).state, BIDE_BREAKER_HALF_OPEN);
        break;
    case RUNS: assert_says(begin_as(&keyed, T0), BIDE_START, BIDE_WHY_FIRST_ATTEMPT); break;
    case HEDGED:
        begin_as(&keyed, T0);
        assert_says(wake(T0), BIDE_START, BIDE_WHY_HEDGE);
        assert_says(wake(T0), BIDE_START, BIDE_WHY_HEDGE);
        break;
    case WAITS:
        begin_as(&keyed, T0);
        bide_breaker_hold(&target, BIDE_HOLD_CLOSED);
        assert_says(report(1, failed, T0), BIDE_WAIT, BIDE_WHY_BACKOFF);
        break;
    case PARTS:
        target.config[0].budget.capacity_milli = target.config[0].budget.reserve = 0;
        begin_as(&keyed, T0);
        bide_breaker_hold(&target, BIDE_HOLD_CLOSED);
        assert_says(report(1, failed, T0), BIDE_WAIT, BIDE_WHY_BUDGET_EMPTY);
        break;
    case STAGES: break;
    }
}

static void assert_nothing_held(void)
{
    assert_int_equal(target.in_flight, 0);
    assert_int_equal(target.calls, 0);
    assert_int_equal(target.retries, 0);
}

static const enum bide_budget_kind refillable[] = {BIDE_BUDGET_TOKENS, BIDE_BUDGET_WINDOW, BIDE_BUDGET_CONCURRENCY};

static void a_cancelled_call_gives_back_what_it_holds_in_every_stage(void **state)
{
    (void)state;
    for (size_t k = 0; k < COUNT(refillable); k++)
        for (enum stage stage = HELD_BACK; stage < STAGES; stage++) {
            stage_call(stage, refillable[k]);
            int64_t spent = stage == HEDGED && refillable[k] != BIDE_BUDGET_CONCURRENCY ? 2000 : 0;
            int64_t most = stage == PARTS ? 0 : refillable[k] == BIDE_BUDGET_TOKENS ? 10000 : 5000;
            assert_says(cancel(T0 + 2 * S), BIDE_GIVE_UP, BIDE_WHY_CANCELLED);
            assert_says(cancel(T0 + 2 * S), BIDE_NONE, BIDE_WHY_NOTHING);
            assert_nothing_held();
            assert_int_equal(left(), most - spent);
            for (size_t i = 0; i < BIDE_KEY_WORDS; i++) /* the hedges went out: they keep their places of the key */
                if (stage != HEDGED)
                    assert_int_equal(target.key[i] >> 36 & 0xff, 0);
        }
}

static void a_probe_comes_back_by_whatever_ends_its_call(void **state)
{
    enum way { CANCEL, CANCELLED, UNSENT, PERMANENT, CONFLICT, IN_FLIGHT_FULL, WAYS };
    (void)state;
    for (enum way way = CANCEL; way < WAYS; way++) {
        stage_call(PROBES, BIDE_BUDGET_TOKENS);
        switch (way) {
        case CANCEL: cancel(T0 + 2 * S); break;
        case CANCELLED: report(1, stopped, T0 + 2 * S); break;
        case UNSENT: report(1, unsent, T0 + 2 * S); break;
        case PERMANENT: report(1, hopeless, T0 + 2 * S); break;
        case CONFLICT: report(1, conflict, T0 + 2 * S); break;
        case IN_FLIGHT_FULL:
            cancel(T0 + 2 * S);
            target.in_flight = 4;
            assert_says(begin(T0 + 2 * S), BIDE_GIVE_UP, BIDE_WHY_IN_FLIGHT_FULL);
            target.in_flight = 0;
            break;
        case WAYS: break;
        }
        assert_int_equal(bide_breaker_look(&target).state, BIDE_BREAKER_HALF_OPEN);
        assert_says(begin(T0 + 2 * S), BIDE_START, BIDE_WHY_FIRST_ATTEMPT); /* the place is free */
        struct bide_call second;
        assert_says(bide_call_begin(&second, &policy, &target, &get, T0 + 2 * S), BIDE_GIVE_UP,
                    BIDE_WHY_BREAKER_PROBING);
    }
}

static void a_probe_that_reported_is_a_probe_no_more(void **state)
{
    (void)state;
    stage_call(PROBES, BIDE_BUDGET_TOKENS);
    policy.hedges_max = 1;
    assert_says(report(1, conflict, T0 + 2 * S), BIDE_WAIT, BIDE_WHY_CONFLICT);
    bide_breaker_hold(&target, BIDE_HOLD_RELEASE); /* closed meanwhile */
    struct bide_verdict v = wake(T0 + 2 * S);
    assert_says(v, BIDE_START, BIDE_WHY_RETRY);
    assert_int_equal(v.wake_ns, T0 + 2 * S); /* so it may be hedged */
}

static void a_call_whose_target_has_a_new_owner_leaves_it_alone(void **state)
{
    enum event { OK, FAILED, PERMANENT, UNSENT, WAKE, CANCEL, EVENTS };
    static struct bide_target before;
    (void)state;
    for (size_t k = 0; k < COUNT(refillable); k++)
        for (int i = 0; i < STAGES * EVENTS; i++) {
            stage_call((enum stage)(i / EVENTS), refillable[k]);
            assert_int_equal(bide_target_reuse(&target, &config, T0 + 2 * S, NULL), BIDE_OK);
            before = target;
            switch ((enum event)(i % EVENTS)) {
            case OK: report(call.attempt, good, T0 + 5 * S); break;
            case FAILED: report(call.attempt, with_hint(limited, S), T0 + 5 * S); break;
            case PERMANENT: report(call.attempt, hopeless, T0 + 5 * S); break;
            case UNSENT: report(call.attempt, unsent, T0 + 5 * S); break;
            case WAKE: wake(T0 + 5 * S); break;
            case CANCEL:
            case EVENTS: break;
            }
            wake(T0 + 10 * S);
            report(call.attempt, failed, T0 + 10 * S);
            wake(T0 + 20 * S);
            cancel(T0 + 20 * S);
            assert_memory_equal(&target, &before, sizeof target);
        }
}

/* What is under way may end well, but nobody can say any more what a retry would cost. */
static void a_call_whose_target_is_gone_may_still_succeed_but_is_not_retried(void **state)
{
    (void)state;
    for (int succeeds = 0; succeeds < 2; succeeds++) {
        stage_call(HEDGED, BIDE_BUDGET_TOKENS);
        bide_target_reuse(&target, &config, T0, NULL);
        bide_breaker_hold(&target, BIDE_HOLD_OPEN); /* of somebody else */
        assert_says(report(1, failed, T0), BIDE_NONE, BIDE_WHY_NOTHING);
        assert_says(report(2, failed, T0), BIDE_NONE, BIDE_WHY_NOTHING);
        if (succeeds)
            assert_says(report(3, good, T0), BIDE_DONE, BIDE_WHY_SUCCEEDED);
        else
            assert_says(report(3, failed, T0), BIDE_GIVE_UP, BIDE_WHY_TARGET_GONE);
    }
    stage_call(RUNS, BIDE_BUDGET_TOKENS);
    policy.hedges_max = 1;
    begin(T0);
    bide_target_reuse(&target, &config, T0, NULL);
    assert_says(wake(T0), BIDE_NONE, BIDE_WHY_TARGET_GONE); /* nor hedged */
    assert_says(report(1, good, T0), BIDE_DONE, BIDE_WHY_SUCCEEDED);
}

/* ---- a wake that is refused ---- */

static void a_refused_wake_returns_token_and_key(void **state)
{
    enum refusal { BREAKER, FLIGHT, THROTTLE, DEADLINE, REFUSALS };
    static const enum bide_why whys[] = {BIDE_WHY_BREAKER_OPEN, BIDE_WHY_IN_FLIGHT_FULL, BIDE_WHY_THROTTLE,
                                         BIDE_WHY_DEADLINE};
    (void)state;
    for (enum refusal refusal = BREAKER; refusal < REFUSALS; refusal++) {
        stage_call(WAITS, BIDE_BUDGET_TOKENS);
        assert_int_equal(left(), 9000);
        if (refusal == BREAKER)
            bide_breaker_hold(&target, BIDE_HOLD_OPEN);
        if (refusal == FLIGHT)
            target.in_flight = 4;
        if (refusal == THROTTLE)
            target.lane[0].attempts += 1000000, target.config[0].throttle_max_permille = 1000;
        assert_says(wake(refusal == DEADLINE ? T0 + 60 * S : T0 + S), BIDE_GIVE_UP, whys[refusal]);
        assert_int_equal(left(), 10000);
        assert_int_equal(target.in_flight, refusal == FLIGHT ? 4 : 0);
        for (size_t i = 0; i < BIDE_KEY_WORDS; i++)
            assert_int_equal(target.key[i] >> 36 & 0xff, 0);
    }
}

/* ---- hedges ---- */

static void open_hedged(uint32_t hedges)
{
    fresh();
    policy.hedges_max = hedges;
    policy.hedge_delay_ns = 100 * MS;
    config.in_flight_max = 10;
    config.latency = true;
    open_target();
}

static uint64_t latencies(void)
{
    return target.latency[BIDE_LATENCY_WORDS - 1]; /* counts them all */
}

static void at_done_the_losing_hedges_are_accounted_for(void **state)
{
    (void)state;
    for (uint32_t winner = 1; winner <= 3; winner++) {
        open_hedged(2);
        config.budget.kind = BIDE_BUDGET_CONCURRENCY;
        config.budget.reserve = 5;
        open_target();
        begin(T0);
        wake(T0 + 100 * MS);
        wake(T0 + 200 * MS);
        assert_int_equal(target.in_flight, 3);
        assert_int_equal(target.retries, 2);
        assert_int_equal(target.calls, 1);
        struct bide_verdict v = report(winner, good, T0 + S);
        assert_says(v, BIDE_DONE, BIDE_WHY_SUCCEEDED);
        assert_int_equal(v.attempt, winner);
        assert_nothing_held();
        assert_int_equal(latencies(), 3); /* the losers took at least so long */
        for (uint32_t loser = 1; loser <= 3; loser++)
            assert_says(report(loser, failed, T0 + S), BIDE_NONE, BIDE_WHY_NOTHING);
        assert_int_equal(latencies(), 3);
    }
}

static void a_hedge_is_refused_by(enum bide_why why, const char *what)
{
    struct bide_verdict v = wake(T0 + 100 * MS);
    if (v.what != BIDE_NONE || v.why != why)
        fail_msg("%s: %s %s", what, bide_what_label(v.what), bide_why_label(v.why));
    assert_int_equal(v.wake_ns, NEVER); /* no other is tried in this round */
    assert_int_equal(v.attempt, 1);
    assert_int_equal(call.attempt, 1);
    assert_says(report(1, good, T0 + S), BIDE_DONE, BIDE_WHY_SUCCEEDED);
}

/* Another call with the same key is retried. */
static void use_up_the_key(void)
{
    struct bide_call other;
    bide_call_begin(&other, &policy, &target, &keyed, T0);
    assert_int_equal(bide_call_outcome(&other, 1, &failed, T0).what, BIDE_WAIT);
}

static void a_hedge_goes_only_where_nothing_is_wrong(void **state)
{
    (void)state;
    open_hedged(1);
    policy.deadline_ns = 101 * MS;
    begin(T0);
    call.deadline_ns = T0 + 100 * MS; /* passed, though it was not when the hedge was planned */
    a_hedge_is_refused_by(BIDE_WHY_DEADLINE, "deadline");

    open_hedged(1);
    config.throttle_k_milli = 2000;
    config.throttle_max_permille = 1000;
    open_target();
    begin(T0);
    target.lane[0].attempts += 1000000;
    a_hedge_is_refused_by(BIDE_WHY_THROTTLE, "throttle");

    open_hedged(1);
    begin(T0);
    bide_breaker_hold(&target, BIDE_HOLD_OPEN);
    a_hedge_is_refused_by(BIDE_WHY_BREAKER_OPEN, "breaker");

    open_hedged(1);
    begin(T0);
    bide_target_quiet(&target, T0 + 5 * S, T0);
    a_hedge_is_refused_by(BIDE_WHY_QUIET, "quiet");

    open_hedged(1);
    config.key_retries = 1;
    open_target();
    use_up_the_key();
    begin_as(&keyed, T0);
    a_hedge_is_refused_by(BIDE_WHY_KEY_LIMIT, "key limit");

    open_hedged(1);
    config.in_flight_max = 1;
    open_target();
    begin(T0);
    a_hedge_is_refused_by(BIDE_WHY_IN_FLIGHT_FULL, "in flight");
    assert_int_equal(target.in_flight, 0);

    open_hedged(1);
    config.budget.initial_milli = 999;
    config.key_retries = 1;
    open_target();
    begin_as(&keyed, T0);
    a_hedge_is_refused_by(BIDE_WHY_BUDGET_EMPTY, "budget");
    assert_int_equal(target.in_flight, 0); /* counted before the budget was asked, and out again */
    assert_int_equal(left(), 999);
    begin_as(&keyed, T0);
    assert_says(report(1, failed, T0), BIDE_GIVE_UP, BIDE_WHY_BUDGET_EMPTY); /* not the key: its place came back */
}

static void a_gate_that_only_observes_lets_the_hedge_go(void **state)
{
    (void)state;
    open_hedged(1);
    config.observe = BIDE_TARGET_GATES;
    config.throttle_k_milli = 2000;
    config.throttle_max_permille = 1000;
    config.in_flight_max = 1;
    config.key_retries = 1;
    config.budget.initial_milli = 0;
    open_target();
    use_up_the_key();
    begin_as(&keyed, T0);
    target.lane[0].attempts += 1000000;
    bide_breaker_hold(&target, BIDE_HOLD_OPEN);
    struct bide_verdict v = wake(T0 + 100 * MS);
    assert_says(v, BIDE_START, BIDE_WHY_HEDGE);
    assert_int_equal(v.observed, BIDE_TARGET_GATES);
    assert_int_equal(target.in_flight, 2);
    assert_says(report(2, good, T0 + S), BIDE_DONE, BIDE_WHY_SUCCEEDED);
    assert_nothing_held();
}

static void a_refused_hedge_may_be_tried_again_in_the_next_round(void **state)
{
    (void)state;
    open_hedged(1);
    config.in_flight_max = 1;
    open_target();
    begin(T0);
    a_hedge_is_refused_by(BIDE_WHY_IN_FLIGHT_FULL, "in flight");
    begin(T0);
    wake(T0 + 100 * MS);
    assert_int_equal(report(1, failed, T0 + S).what, BIDE_WAIT);
    struct bide_verdict v = wake(T0 + 1100 * MS);
    assert_says(v, BIDE_START, BIDE_WHY_RETRY);
    assert_int_equal(v.wake_ns, T0 + 1200 * MS);
}

static void what_may_not_be_hedged_has_no_timer(void **state)
{
    struct bide_request inner = {.safety = BIDE_SAFE, .inbound = {.attempt = 2}};
    struct bide_request soon = {.safety = BIDE_SAFE, .deadline_ns = T0 + 100 * MS};
    (void)state;
    open_hedged(1);
    assert_int_equal(begin_as(&get, T0).wake_ns, T0 + 100 * MS);
    assert_int_equal(begin_as(&post, T0).wake_ns, NEVER);
    assert_int_equal(begin_as(&inner, T0).wake_ns, NEVER);
    assert_int_equal(begin_as(&soon, T0).wake_ns, NEVER); /* due at the deadline: too late */
    policy.attempts_max = 2;
    begin(T0);
    report(1, failed, T0);
    assert_int_equal(wake(T0 + 100 * MS).wake_ns, NEVER); /* the last attempt */
}

static void a_quantile_of_the_target_s_latency_sets_the_hedge_once_it_is_known(void **state)
{
    (void)state;
    open_hedged(1);
    policy.hedge_quantile_permille = 950;
    assert_int_equal(begin(T0).wake_ns, T0 + 100 * MS);
    for (int i = 0; i < 50; i++)
        core_latency_note(&target, 7 * MS);
    assert_in_range(begin(T0).wake_ns, T0 + 7 * MS, T0 + 9 * MS);
    policy.hedge_quantile_permille = 0; /* not asked for */
    assert_int_equal(begin(T0).wake_ns, T0 + 100 * MS);
}

static void a_hedge_that_never_went_out_costs_nothing_though_another_attempt_runs(void **state)
{
    (void)state;
    for (size_t k = 0; k < COUNT(refillable); k++) {
        open_hedged(2);
        config.budget.kind = refillable[k];
        config.budget.reserve = 10;
        config.budget.ratio_ppm = 0;
        open_target();
        begin(T0);
        wake(T0 + 100 * MS);
        wake(T0 + 200 * MS);
        assert_int_equal(left(), 8000);
        assert_says(report(3, unsent, T0 + 200 * MS), BIDE_NONE, BIDE_WHY_NOTHING);
        assert_int_equal(left(), 9000);
        assert_says(report(2, unsent, T0 + 200 * MS), BIDE_NONE, BIDE_WHY_NOTHING); /* not the last charged */
        assert_int_equal(left(), 9000);
        report(1, good, T0 + S);
        assert_int_equal(left(), refillable[k] == BIDE_BUDGET_CONCURRENCY ? 10000 : 9000);
        assert_nothing_held();
    }
}

static void the_only_hedge_that_never_went_out_frees_its_place(void **state)
{
    (void)state;
    open_hedged(1);
    config.budget.kind = BIDE_BUDGET_CONCURRENCY;
    config.budget.reserve = 2;
    open_target();
    begin(T0);
    wake(T0 + 100 * MS);
    assert_int_equal(target.retries, 1);
    report(2, unsent, T0 + 200 * MS);
    assert_int_equal(target.retries, 0);
    assert_int_equal(report(1, failed, T0 + S).what, BIDE_WAIT);
    assert_int_equal(target.retries, 1);
    cancel(T0 + S);
    assert_nothing_held();
}

static void what_came_back_unsent_is_not_refunded_again(void **state)
{
    (void)state;
    open_hedged(1);
    config.budget.initial_milli = 5000;
    config.budget.refund_permille = 1000;
    open_target();
    begin(T0);
    wake(T0 + 100 * MS);
    assert_int_equal(left(), 4000);
    report(2, unsent, T0 + 100 * MS);
    assert_int_equal(left(), 5000);
    assert_says(report(1, good, T0 + S), BIDE_DONE, BIDE_WHY_SUCCEEDED);
    assert_int_equal(left(), 5000);
}

static void a_refused_hedge_gives_its_key_back_once(void **state)
{
    (void)state;
    open_hedged(1);
    config.key_retries = 2;
    config.budget.initial_milli = 1000;
    open_target();
    use_up_the_key(); /* one of two, and the only token */
    begin_as(&keyed, T0);
    a_hedge_is_refused_by(BIDE_WHY_BUDGET_EMPTY, "budget");
    bide_budget_add_milli(&target, 9000, T0);
    use_up_the_key(); /* the other one of two */
    begin_as(&keyed, T0);
    assert_says(report(1, failed, T0), BIDE_GIVE_UP, BIDE_WHY_KEY_LIMIT);
}

static void places_held_by_hedges_survive_a_reload_to_another_kind(void **state)
{
    (void)state;
    open_hedged(2);
    config.budget.kind = BIDE_BUDGET_CONCURRENCY;
    config.budget.reserve = 5;
    open_target();
    begin(T0);
    wake(T0 + 100 * MS);
    assert_int_equal(target.retries, 1);
    config.budget.kind = BIDE_BUDGET_TOKENS;
    bide_target_configure(&target, &config, T0 + 100 * MS, NULL);
    int64_t before = left();
    assert_says(wake(T0 + 200 * MS), BIDE_START, BIDE_WHY_HEDGE); /* pays in the new money, gives the place back */
    assert_int_equal(target.retries, 0);
    assert_int_equal(left(), before - 1000);
    report(1, good, T0 + S);
    assert_nothing_held();
}

/* ---- what one attempt of a round is told holds for the round ---- */

static void open_three_in_flight(void)
{
    open_hedged(2);
    begin(T0);
    wake(T0 + 100 * MS);
    assert_says(wake(T0 + 200 * MS), BIDE_START, BIDE_WHY_HEDGE);
}

static void the_longest_hint_of_a_round_holds(void **state)
{
    static const struct {
        int64_t hint_s[3]; /* -1: none */
        int64_t wait_ns;
        enum bide_why why;
    } table[] = {
        {{-1, -1, -1}, 100 * MS, BIDE_WHY_BACKOFF}, {{5, -1, -1}, 5 * S, BIDE_WHY_SERVER_HINT},
        {{5, 9, -1}, 9 * S, BIDE_WHY_SERVER_HINT},  {{9, 5, -1}, 9 * S, BIDE_WHY_SERVER_HINT},
        {{5, -1, 9}, 9 * S, BIDE_WHY_SERVER_HINT},  {{9, -1, 5}, 9 * S, BIDE_WHY_SERVER_HINT},
        {{-1, -1, 5}, 5 * S, BIDE_WHY_SERVER_HINT},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++)
        for (int shared = 0; shared < 2; shared++) {
            struct bide_verdict v;
            open_three_in_flight();
            if (!shared)
                call.target = NULL; /* without a quiet-until that would save it */
            for (uint32_t n = 0; n < 3; n++) {
                int64_t hint_s = table[i].hint_s[n];
                v = report(n + 1, hint_s < 0 ? failed : with_hint(limited, hint_s * S), T0 + S);
                if (n < 2)
                    assert_verdict(v, VERDICT(NONE, NOTHING, 3, NEVER, NEVER, NEVER));
            }
            assert_says(v, BIDE_WAIT, table[i].why);
            assert_int_equal(v.wake_ns, T0 + S + table[i].wait_ns);
        }
}

static void a_plain_failure_of_one_attempt_leaves_the_hedges_as_planned(void **state)
{
    (void)state;
    open_hedged(2);
    begin(T0);
    assert_int_equal(wake(T0 + 100 * MS).wake_ns, T0 + 200 * MS);
    assert_int_equal(report(1, failed, T0 + 150 * MS).wake_ns, T0 + 200 * MS);
    assert_says(wake(T0 + 200 * MS), BIDE_START, BIDE_WHY_HEDGE);
    assert_int_equal(report(2, with_hint(stopped, S), T0 + S).wake_ns, NEVER); /* cancelled: it heard nothing */
    struct bide_verdict v = report(3, failed, T0 + S);
    assert_says(v, BIDE_WAIT, BIDE_WHY_BACKOFF);
}

static void a_hint_to_one_attempt_stops_further_hedges(void **state)
{
    (void)state;
    open_hedged(2);
    begin(T0);
    assert_int_equal(wake(T0 + 100 * MS).wake_ns, T0 + 200 * MS);
    assert_int_equal(report(1, with_hint(limited, S), T0 + 150 * MS).wake_ns, NEVER);
    assert_says(wake(T0 + 5 * S), BIDE_NONE, BIDE_WHY_NOTHING);
    assert_says(report(2, good, T0 + 5 * S), BIDE_DONE, BIDE_WHY_SUCCEEDED);
}

/* The server asked for time, but by the time the others failed it had passed. */
static void a_hint_that_passed_while_others_ran_asks_for_nothing(void **state)
{
    (void)state;
    open_three_in_flight();
    call.target = NULL;
    report(1, with_hint(limited, S), T0 + S);
    report(2, failed, T0 + S);
    struct bide_verdict v = report(3, failed, T0 + 5 * S);
    assert_says(v, BIDE_WAIT, BIDE_WHY_BACKOFF);
    assert_int_equal(v.wake_ns, T0 + 5 * S + 100 * MS);
}

static void a_stop_to_one_attempt_holds_for_the_round(void **state)
{
    (void)state;
    open_three_in_flight();
    assert_int_equal(report(1, with_stop(failed), T0 + S).wake_ns, NEVER);
    report(2, failed, T0 + S);
    assert_says(report(3, failed, T0 + S), BIDE_GIVE_UP, BIDE_WHY_SERVER_STOP);
    open_hedged(2);
    begin(T0);
    wake(T0 + 100 * MS);
    assert_int_equal(report(1, with_stop(failed), T0 + 150 * MS).wake_ns, NEVER); /* nor is there another hedge */
}

static void an_observed_stop_leaves_the_hint_of_the_round_in_force(void **state)
{
    (void)state;
    open_three_in_flight();
    policy.observe = BIDE_GATE_HINT;
    report(1, with_hint(limited, 2 * S), T0 + S);
    report(2, with_stop(failed), T0 + S);
    struct bide_verdict v = report(3, failed, T0 + S);
    assert_says(v, BIDE_WAIT, BIDE_WHY_SERVER_HINT);
    assert_int_equal(v.wake_ns, T0 + 3 * S);
    assert_int_equal(v.observed, BIDE_GATE_HINT);
}

static void a_spent_body_of_one_attempt_holds_for_the_round(void **state)
{
    struct bide_outcome spent = failed;
    (void)state;
    spent.flags = BIDE_FLAG_BODY_SPENT;
    open_three_in_flight();
    report(2, spent, T0 + S);
    report(1, failed, T0 + S);
    assert_says(report(3, failed, T0 + S), BIDE_GIVE_UP, BIDE_WHY_BODY_SPENT);
}

static void a_final_answer_ends_the_round_and_names_its_attempt(void **state)
{
    struct bide_outcome delivered = {.kind = BIDE_KIND_TRANSIENT, .reach = BIDE_REACH_BODY_DELIVERED};
    (void)state;
    open_three_in_flight();
    assert_verdict(report(2, hopeless, T0 + S), VERDICT(GIVE_UP, PERMANENT, 2, NEVER, NEVER, NEVER));
    assert_nothing_held();
    open_three_in_flight();
    assert_verdict(report(1, delivered, T0 + S), VERDICT(GIVE_UP, BODY_DELIVERED, 1, NEVER, NEVER, NEVER));
    assert_nothing_held();
}

static void a_round_of_which_all_were_cancelled_is_cancelled(void **state)
{
    (void)state;
    open_three_in_flight();
    assert_int_equal(report(1, stopped, T0 + S).what, BIDE_NONE);
    assert_int_equal(report(2, failed, T0 + S).what, BIDE_NONE);
    assert_says(report(3, stopped, T0 + S), BIDE_GIVE_UP, BIDE_WHY_CANCELLED);
}

/* ---- charges ---- */

static void an_attempt_that_never_went_out_costs_nothing(void **state)
{
    (void)state;
    open_fresh();
    begin(T0);
    assert_says(report(1, unsent, T0), BIDE_GIVE_UP, BIDE_WHY_CANCELLED); /* a first attempt was never charged */
    assert_int_equal(left(), 10000);
    begin(T0);
    report(1, failed, T0);
    wake(T0 + S);
    assert_int_equal(left(), 9000);
    assert_says(report(2, stopped, T0 + S), BIDE_GIVE_UP, BIDE_WHY_CANCELLED); /* it went out */
    assert_int_equal(left(), 9000);
    begin(T0);
    report(1, failed, T0);
    wake(T0 + S);
    assert_says(report(2, unsent, T0 + S), BIDE_GIVE_UP, BIDE_WHY_CANCELLED);
    assert_int_equal(left(), 9000);
}

/* In observe mode a retry may go out that the budget did not pay: nothing is given back for it. */
static void what_was_not_charged_is_not_given_back(void **state)
{
    (void)state;
    fresh();
    config.observe = BIDE_GATE_BUDGET;
    config.budget.initial_milli = 1000;
    config.budget.refund_permille = 1000;
    open_target();
    for (int sent = 0; sent < 2; sent++) {
        begin(T0);
        report(1, failed, T0);
        wake(T0 + S);
        assert_int_equal(left(), 0);
        struct bide_verdict v = report(2, failed, T0 + S);
        assert_says(v, BIDE_WAIT, BIDE_WHY_BACKOFF);
        assert_int_equal(v.observed, BIDE_GATE_BUDGET);
        wake(T0 + 2 * S);
        report(3, sent ? good : unsent, T0 + 2 * S);
        assert_int_equal(left(), 0);
        bide_budget_add_milli(&target, 1000, T0);
    }
}

static void the_refund_is_the_last_charge_only(void **state)
{
    (void)state;
    fresh();
    config.budget.refund_permille = 1000;
    config.budget.cost_throttled_milli = 3000;
    open_target();
    begin(T0);
    report(1, failed, T0);
    wake(T0 + S);
    report(2, limited, T0 + S);
    wake(T0 + 2 * S);
    assert_int_equal(left(), 6000);
    report(3, good, T0 + 2 * S);
    assert_int_equal(left(), 9000);
}

static void a_charge_in_another_kind_of_budget_is_not_refunded_in_tokens(void **state)
{
    (void)state;
    fresh();
    config.budget.kind = BIDE_BUDGET_WINDOW;
    config.budget.reserve = 5;
    config.budget.refund_permille = 1000;
    config.budget.earn_success_milli = 10;
    open_target();
    begin(T0);
    report(1, failed, T0);
    wake(T0 + S);
    config.budget.kind = BIDE_BUDGET_TOKENS;
    bide_target_configure(&target, &config, T0 + S, NULL);
    int64_t before = left();
    report(2, good, T0 + S);
    assert_int_equal(left(), before + 10);
}

static void a_budget_that_is_taken_away_in_mid_call_is_no_matter(void **state)
{
    (void)state;
    for (size_t k = 0; k < COUNT(refillable); k++) {
        fresh();
        config.budget.kind = refillable[k];
        config.budget.reserve = 5;
        open_target();
        begin(T0);
        report(1, failed, T0);
        config.budget.kind = BIDE_BUDGET_NONE;
        bide_target_configure(&target, &config, T0, NULL);
        assert_says(wake(T0 + S), BIDE_START, BIDE_WHY_RETRY);
        assert_says(report(2, failed, T0 + S), BIDE_WAIT, BIDE_WHY_BACKOFF);
        wake(T0 + 2 * S);
        report(3, good, T0 + 2 * S);
        assert_nothing_held();
    }
}

static void an_empty_budget_may_open_the_breaker(void **state)
{
    (void)state;
    fresh();
    config.budget.on_empty = BIDE_ON_EMPTY_OPEN;
    config.budget.initial_milli = 0;
    config.breaker.kind = BIDE_BREAKER_CONSECUTIVE;
    open_target();
    begin(T0);
    assert_says(report(1, failed, T0), BIDE_GIVE_UP, BIDE_WHY_BUDGET_EMPTY);
    assert_int_equal(bide_breaker_look(&target).state, BIDE_BREAKER_OPEN);
    assert_says(begin(T0), BIDE_GIVE_UP, BIDE_WHY_BREAKER_OPEN);
}

static void a_long_poll_that_parts_hears_nothing_more(void **state)
{
    (void)state;
    stage_call(PARTS, BIDE_BUDGET_TOKENS);
    assert_verdict(report(1, good, T0), VERDICT(NONE, NOTHING, 1, T0 + 100 * MS, NEVER, NEVER));
    assert_verdict(wake(T0), VERDICT(NONE, NOTHING, 1, T0 + 100 * MS, NEVER, NEVER));
    assert_verdict(wake(T0 + 100 * MS), VERDICT(GIVE_UP, BUDGET_EMPTY, 1, NEVER, NEVER, NEVER));
    assert_nothing_held();
}

static void a_key_is_limited_or_only_watched(void **state)
{
    (void)state;
    for (int observe = 0; observe < 2; observe++) {
        fresh();
        config.key_retries = 1;
        config.observe = observe ? BIDE_GATE_KEY_LIMIT : 0;
        open_target();
        begin_as(&keyed, T0);
        report(1, failed, T0);
        wake(T0 + S);
        struct bide_verdict v = report(2, failed, T0 + S);
        assert_int_equal(v.what, observe ? BIDE_WAIT : BIDE_GIVE_UP);
        assert_int_equal(v.observed, observe ? BIDE_GATE_KEY_LIMIT : 0);
        cancel(T0 + S);
        begin(T0 + S);
        assert_int_equal(report(1, failed, T0 + S).what, BIDE_WAIT); /* who names no key is not limited */
    }
}

static void a_key_whose_halves_cancel_out_is_still_a_key(void **state)
{
    struct bide_request request = {.safety = BIDE_SAFE, .retry_key = UINT64_C(0x1234567812345678)};
    (void)state;
    fresh();
    config.key_retries = 1;
    open_target();
    for (int i = 0; i < 2; i++) {
        begin_as(&request, T0);
        assert_int_equal(report(1, failed, T0).what, i == 0 ? BIDE_WAIT : BIDE_GIVE_UP);
    }
}

/* ---- what may be repeated ---- */

static void an_unsafe_request_is_repeated_only_if_it_surely_did_not_run(void **state)
{
    static const struct {
        struct bide_outcome outcome;
        uint32_t trust;
        bool repeated;
    } table[] = {
        {{.kind = BIDE_KIND_TRANSIENT, .reach = BIDE_REACH_MAYBE_RAN}, 3, false},
        {{.kind = BIDE_KIND_TRANSIENT, .reach = BIDE_REACH_NEVER_SENT}, 0, true},
        {{.kind = BIDE_KIND_TRANSIENT, .reach = BIDE_REACH_REFUSED}, 0, true},
        {{.kind = BIDE_KIND_TRANSIENT, .reach = BIDE_REACH_ANSWERED}, 3, false},
        {{.kind = BIDE_KIND_THROTTLED, .reach = BIDE_REACH_ANSWERED}, 0, false},
        {{.kind = BIDE_KIND_THROTTLED, .reach = BIDE_REACH_ANSWERED}, BIDE_TRUST_UNAVAILABLE, false},
        {{.kind = BIDE_KIND_THROTTLED, .reach = BIDE_REACH_ANSWERED}, BIDE_TRUST_THROTTLED, true},
        {{.kind = BIDE_KIND_TRANSIENT, .reach = BIDE_REACH_ANSWERED, .flags = BIDE_FLAG_UNAVAILABLE}, 0, false},
        {{.kind = BIDE_KIND_TRANSIENT, .reach = BIDE_REACH_ANSWERED, .flags = BIDE_FLAG_UNAVAILABLE},
         BIDE_TRUST_THROTTLED,
         false},
        {{.kind = BIDE_KIND_TRANSIENT, .reach = BIDE_REACH_ANSWERED, .flags = BIDE_FLAG_UNAVAILABLE},
         BIDE_TRUST_UNAVAILABLE,
         true},
        {{.kind = BIDE_KIND_THROTTLED, .reach = BIDE_REACH_MAYBE_RAN}, 3, false},
    };
    (void)state;
    fresh();
    for (size_t i = 0; i < COUNT(table); i++) {
        config.trust = table[i].trust;
        policy.observe = 0;
        open_target();
        begin_as(&post, T0);
        if (table[i].repeated)
            assert_int_equal(report(1, table[i].outcome, T0).what, BIDE_WAIT);
        else
            assert_says(report(1, table[i].outcome, T0), BIDE_GIVE_UP, BIDE_WHY_NOT_REPEATABLE);
        begin_as(&get, T0);
        assert_int_equal(report(1, table[i].outcome, T0).what, BIDE_WAIT);
        policy.observe = BIDE_GATE_REPEAT;
        begin_as(&post, T0);
        assert_int_equal(report(1, table[i].outcome, T0).observed, table[i].repeated ? 0 : BIDE_GATE_REPEAT);
    }
}

static void a_409_is_retried_for_a_key_and_for_nothing_else(void **state)
{
    struct bide_outcome running = {.reach = BIDE_REACH_ANSWERED, .flags = BIDE_FLAG_KEY_409};
    (void)state;
    open_fresh();
    for (int safety = BIDE_UNSAFE; safety <= BIDE_KEYED; safety++) {
        struct bide_request request = {.safety = (enum bide_safety)safety};
        begin_as(&request, T0);
        assert_int_equal(report(1, running, T0).what, safety == BIDE_KEYED ? BIDE_WAIT : BIDE_GIVE_UP);
    }
    begin_as(&(struct bide_request){.safety = BIDE_KEYED}, T0);
    assert_says(report(1, hopeless, T0), BIDE_GIVE_UP, BIDE_WHY_PERMANENT);
}

static void what_is_worth_one_more_attempt_gets_one(void **state)
{
    struct bide_outcome early = {.kind = BIDE_KIND_TRANSIENT, .flags = BIDE_FLAG_ONCE};
    (void)state;
    open_fresh();
    begin(T0);
    assert_int_equal(report(1, early, T0).what, BIDE_WAIT);
    wake(T0 + S);
    assert_says(report(2, early, T0 + S), BIDE_GIVE_UP, BIDE_WHY_PERMANENT);
}

static void a_layer_below_one_that_retries_does_not(void **state)
{
    static const struct {
        enum bide_layer_rule rule;
        struct bide_inbound inbound;
        bool inner;
    } table[] = {
        {BIDE_LAYER_OUTERMOST, {0, false}, false}, {BIDE_LAYER_OUTERMOST, {1, false}, false},
        {BIDE_LAYER_OUTERMOST, {2, false}, true},  {BIDE_LAYER_OUTERMOST, {1, true}, true},
        {BIDE_LAYER_ANY, {5, false}, false},       {BIDE_LAYER_ANY, {0, true}, true},
        {BIDE_LAYER_NEVER, {0, false}, true},
    };
    (void)state;
    open_fresh();
    for (size_t i = 0; i < COUNT(table); i++) {
        struct bide_request request = {.safety = BIDE_SAFE, .inbound = table[i].inbound};
        policy.layer = table[i].rule;
        policy.observe = 0;
        begin_as(&request, T0);
        if (table[i].inner)
            assert_says(report(1, failed, T0), BIDE_GIVE_UP, BIDE_WHY_INNER_LAYER);
        else
            assert_int_equal(report(1, failed, T0).what, BIDE_WAIT);
        begin_as(&request, T0);
        assert_says(report(1, good, T0), BIDE_DONE, BIDE_WHY_SUCCEEDED);
        policy.observe = BIDE_GATE_LAYER;
        begin_as(&request, T0);
        assert_int_equal(report(1, failed, T0).observed, table[i].inner ? BIDE_GATE_LAYER : 0);
    }
}

/* ---- how long it waits ---- */

static void hints_are_obeyed_by_their_rule(void **state)
{
    static const struct {
        enum bide_hint_rule rule;
        enum bide_hint_long too_long;
        int64_t hint_ms, wait_ms; /* wait -1: gives up. Own backoff 100 ms, hint_max 10 s, over 2 s */
        enum bide_why why;
    } table[] = {
        {BIDE_HINT_FLOOR, 0, 3000, 3000, BIDE_WHY_SERVER_HINT},
        {BIDE_HINT_FLOOR, 0, 100, 100, BIDE_WHY_SERVER_HINT},
        {BIDE_HINT_FLOOR, 0, 99, 100, BIDE_WHY_BACKOFF},
        {BIDE_HINT_FLOOR, 0, 0, 100, BIDE_WHY_BACKOFF},
        {BIDE_HINT_FLOOR, 0, 10000, 10000, BIDE_WHY_SERVER_HINT},
        {BIDE_HINT_FLOOR, 0, 10001, -1, BIDE_WHY_HINT_TOO_LONG},
        {BIDE_HINT_FLOOR, BIDE_HINT_LONG_CLAMP, 10001, 10000, BIDE_WHY_SERVER_HINT},
        {BIDE_HINT_FLOOR, BIDE_HINT_LONG_IGNORE, 10001, 100, BIDE_WHY_BACKOFF},
        {BIDE_HINT_EXACT, 0, 3000, 3000, BIDE_WHY_SERVER_HINT},
        {BIDE_HINT_EXACT, 0, 20, 20, BIDE_WHY_SERVER_HINT},
        {BIDE_HINT_EXACT, 0, 0, 100, BIDE_WHY_BACKOFF},
        {BIDE_HINT_PUSHBACK, 0, 0, 0, BIDE_WHY_SERVER_HINT},
        {BIDE_HINT_PUSHBACK, 0, 20, 20, BIDE_WHY_SERVER_HINT},
        {BIDE_HINT_CLAMP, 0, 1000, 1000, BIDE_WHY_SERVER_HINT},
        {BIDE_HINT_CLAMP, 0, 20, 100, BIDE_WHY_SERVER_HINT},
        {BIDE_HINT_CLAMP, 0, 9000, 2100, BIDE_WHY_SERVER_HINT},
        {BIDE_HINT_UNHEARD, 0, 3000, 100, BIDE_WHY_BACKOFF},
    };
    (void)state;
    fresh();
    policy.hint_max_ns = 10 * S;
    policy.hint_over_ns = 2 * S;
    config.quiet_max_ns = 0; /* a shared quiet would hold for this call too */
    for (size_t i = 0; i < COUNT(table); i++) {
        policy.hint_rule = table[i].rule;
        policy.hint_long = table[i].too_long;
        open_target();
        begin(T0);
        struct bide_verdict v = report(1, with_hint(failed, table[i].hint_ms * MS), T0);
        assert_says(v, table[i].wait_ms < 0 ? BIDE_GIVE_UP : BIDE_WAIT, table[i].why);
        if (table[i].wait_ms >= 0)
            assert_int_equal(v.wake_ns, T0 + table[i].wait_ms * MS);
    }
}

static void a_hint_that_is_only_observed_is_still_waited_for(void **state)
{
    (void)state;
    fresh();
    policy.hint_max_ns = 10 * S;
    policy.observe = BIDE_GATE_HINT;
    policy.throttled_needs_hint = true;
    open_target();
    begin(T0);
    struct bide_verdict v = report(1, with_hint(failed, 12 * S), T0);
    assert_says(v, BIDE_WAIT, BIDE_WHY_SERVER_HINT);
    assert_int_equal(v.wake_ns, T0 + 12 * S);
    assert_int_equal(v.observed, BIDE_GATE_HINT);
    begin(T0);
    v = report(1, with_stop(failed), T0);
    assert_says(v, BIDE_WAIT, BIDE_WHY_BACKOFF);
    assert_int_equal(v.observed, BIDE_GATE_HINT);
    begin(T0);
    v = report(1, limited, T0);
    assert_says(v, BIDE_WAIT, BIDE_WHY_BACKOFF);
    assert_int_equal(v.observed, BIDE_GATE_HINT);
    policy.observe = 0;
    begin(T0);
    assert_says(report(1, limited, T0), BIDE_GIVE_UP, BIDE_WHY_HINT_MISSING);
    begin(T0);
    assert_says(report(1, with_hint(limited, S), T0), BIDE_WAIT, BIDE_WHY_SERVER_HINT);
}

static void a_stop_that_is_not_heard_is_no_stop(void **state)
{
    (void)state;
    fresh();
    policy.hint_rule = BIDE_HINT_UNHEARD;
    open_target();
    begin(T0);
    assert_says(report(1, with_stop(failed), T0), BIDE_WAIT, BIDE_WHY_BACKOFF);
}

static void a_hinted_wait_keeps_advances_or_resets_the_sequence(void **state)
{
    static const struct {
        enum bide_hint_step step;
        int64_t then_ms;
    } table[] = {{BIDE_HINT_STEP_KEEP, 200}, {BIDE_HINT_STEP_ADVANCE, 400}, {BIDE_HINT_STEP_RESET, 100}};
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        fresh();
        policy.hint_step = table[i].step;
        open_target();
        begin(T0);
        report(1, failed, T0); /* 100 ms */
        wake(T0 + S);
        report(2, with_hint(failed, 3 * S), T0 + S);
        wake(T0 + 4 * S);
        assert_int_equal(report(3, failed, T0 + 4 * S).wake_ns, T0 + 4 * S + table[i].then_ms * MS);
    }
}

static void a_conflict_is_tried_at_once_one_time_and_never_before_a_hint(void **state)
{
    (void)state;
    open_fresh();
    begin(T0);
    assert_verdict(report(1, conflict, T0), VERDICT(WAIT, CONFLICT, 1, T0, NEVER, NEVER));
    wake(T0);
    assert_verdict(report(2, conflict, T0), VERDICT(WAIT, BACKOFF, 2, T0 + 100 * MS, NEVER, NEVER));
    begin(T0);
    assert_verdict(report(1, with_hint(conflict, 50 * MS), T0), VERDICT(WAIT, BACKOFF, 1, T0 + 100 * MS, NEVER, NEVER));
    policy.hint_rule = BIDE_HINT_PUSHBACK;
    open_target();
    begin(T0);
    assert_verdict(report(1, with_hint(conflict, 0), T0), VERDICT(WAIT, SERVER_HINT, 1, T0, NEVER, NEVER));
    policy.conflict_at_once = false;
    open_target();
    begin(T0);
    assert_says(report(1, conflict, T0), BIDE_WAIT, BIDE_WHY_BACKOFF);
}

static void the_backoff_step_does_not_wrap(void **state)
{
    (void)state;
    open_fresh();
    begin(T0);
    call.step = UINT32_MAX;
    assert_int_equal(report(1, failed, T0).wake_ns, T0 + 30 * S);
    assert_int_equal(call.step, UINT32_MAX);
}

static void a_wait_that_ends_at_the_deadline_is_not_started(void **state)
{
    (void)state;
    open_fresh();
    policy.deadline_ns = 100 * MS;
    begin(T0);
    assert_says(report(1, failed, T0), BIDE_GIVE_UP, BIDE_WHY_DEADLINE_NEAR);
    policy.deadline_ns = 100 * MS + 1;
    begin(T0);
    assert_says(report(1, failed, T0), BIDE_WAIT, BIDE_WHY_BACKOFF);
    assert_says(wake(T0 + 100 * MS + 1), BIDE_GIVE_UP, BIDE_WHY_DEADLINE);
    begin(T0);
    assert_says(report(1, failed, T0 + 100 * MS + 1), BIDE_GIVE_UP, BIDE_WHY_DEADLINE);
    assert_int_equal(left(), 10000);
}

static void a_wake_that_comes_late_is_spread_again_once(void **state)
{
    struct bide_request request = {.safety = BIDE_SAFE};
    (void)state;
    fresh();
    policy.jitter = BIDE_JITTER_FULL;
    open_target();
    for (request.seed = 0; request.seed < 50; request.seed++) {
        begin_as(&request, T0);
        int64_t due_ns = report(1, failed, T0).wake_ns;
        struct bide_verdict v = wake(due_ns + 5 * S);
        assert_says(v, BIDE_WAIT, BIDE_WHY_LATE_WAKE);
        assert_in_range(v.wake_ns, due_ns + 5 * S, due_ns + 5 * S + 100 * MS);
        assert_says(wake(v.wake_ns + 5 * S), BIDE_START, BIDE_WHY_RETRY);
        cancel(T0);
        bide_budget_add_milli(&target, 10000, T0);
    }
    for (int late = 0; late < 2; late++) { /* a second is not late, a little more is */
        begin_as(&request, T0);
        int64_t due_ns = report(1, failed, T0).wake_ns;
        assert_int_equal(wake(due_ns + S + late).what, late ? BIDE_WAIT : BIDE_START);
        cancel(T0);
    }
    begin_as(&request, T0);
    report(1, failed, T0);
    request.deadline_ns = wake(T0 + 5 * S).wake_ns; /* where it would be spread to */
    cancel(T0);
    begin_as(&request, T0);
    report(1, failed, T0);
    assert_says(wake(T0 + 5 * S), BIDE_START, BIDE_WHY_RETRY); /* no room to spread */
    policy.jitter = BIDE_JITTER_NONE;
    begin(T0);
    report(1, failed, T0);
    assert_says(wake(T0 + 5 * S), BIDE_START, BIDE_WHY_RETRY);
}

/* ---- quiet ---- */

static void quiet_holds_back_first_attempts_if_told_to(void **state)
{
    (void)state;
    fresh();
    config.quiet_first = true;
    open_target();
    bide_target_quiet(&target, T0 + 2 * S, T0);
    assert_verdict(begin(T0), VERDICT(WAIT, QUIET, 0, T0 + 2 * S, NEVER, NEVER));
    bide_target_quiet(&target, T0 + 3 * S, T0); /* meanwhile asked for more */
    assert_verdict(wake(T0 + 2 * S), VERDICT(WAIT, QUIET, 0, T0 + 3 * S, NEVER, NEVER));
    assert_says(wake(T0 + 3 * S), BIDE_START, BIDE_WHY_FIRST_ATTEMPT);
    bide_target_quiet(&target, T0 + 60 * S, T0); /* the deadline itself */
    assert_verdict(begin(T0), VERDICT(GIVE_UP, DEADLINE_NEAR, 0, NEVER, NEVER, NEVER));
    config.quiet_first = false;
    bide_target_configure(&target, &config, T0, NULL);
    assert_says(begin(T0), BIDE_START, BIDE_WHY_FIRST_ATTEMPT);
}

static void quiet_asked_of_one_call_prolongs_the_waits_of_others(void **state)
{
    struct bide_call other;
    (void)state;
    open_fresh();
    begin(T0);
    bide_call_begin(&other, &policy, &target, &get, T0);
    struct bide_outcome o = with_hint(limited, 4 * S);
    bide_call_outcome(&other, 1, &o, T0);
    assert_int_equal(bide_target_quiet_until(&target, T0), T0 + 4 * S);
    struct bide_verdict v = report(1, failed, T0 + S);
    assert_says(v, BIDE_WAIT, BIDE_WHY_QUIET);
    assert_int_equal(v.wake_ns, T0 + 4 * S);
    bide_target_quiet(&target, T0 + 70 * S, T0);
    assert_says(wake(T0 + 4 * S), BIDE_GIVE_UP, BIDE_WHY_DEADLINE_NEAR);
    assert_int_equal(left(), 9000); /* its token is back; the other's is still out */
}

static void quiet_is_not_asked_of_others_when_the_hint_is_too_long_or_says_nothing(void **state)
{
    (void)state;
    fresh();
    policy.hint_max_ns = 10 * S;
    policy.hint_long = BIDE_HINT_LONG_CLAMP;
    open_target();
    begin(T0);
    report(1, with_hint(limited, 11 * S), T0);
    begin(T0);
    report(1, with_hint(hopeless, 5 * S), T0);
    begin(T0);
    report(1, with_hint(failed, 0), T0);
    assert_int_equal(bide_target_quiet_until(&target, T0), 0);
    begin(T0);
    report(1, with_hint(failed, 10 * S), T0); /* just not too long */
    assert_int_equal(bide_target_quiet_until(&target, T0), T0 + 10 * S);
}

static void a_success_ends_the_quiet_if_it_began_after_it(void **state)
{
    (void)state;
    open_fresh();
    begin(T0);
    bide_target_quiet(&target, T0 + 9 * S, T0 + S);
    report(1, good, T0 + 2 * S); /* it was under way already */
    assert_int_equal(bide_target_quiet_until(&target, T0 + 2 * S), T0 + 9 * S);
    begin(T0 + S);
    report(1, good, T0 + 2 * S);
    assert_int_equal(bide_target_quiet_until(&target, T0 + 2 * S), 0);
}

/* ---- what the target learns ---- */

static void open_breaker_of_three(void)
{
    fresh();
    config.breaker.kind = BIDE_BREAKER_CONSECUTIVE;
    config.breaker.consecutive = 3;
    config.budget.kind = BIDE_BUDGET_NONE;
    open_target();
}

static void some_outcomes_speak_against_the_server_some_for_it_and_some_say_nothing(void **state)
{
    static const struct {
        struct bide_outcome outcome;
        bool opens;
    } table[] = {
        {{.kind = BIDE_KIND_TRANSIENT}, true},  {{.kind = BIDE_KIND_THROTTLED}, true},
        {{.kind = BIDE_KIND_CONFLICT}, false},  {{.kind = BIDE_KIND_PERMANENT}, false},
        {{.kind = BIDE_KIND_CANCELLED}, false}, {{.kind = BIDE_KIND_OK}, false},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        open_breaker_of_three();
        for (int n = 0; n < 3; n++) {
            begin(T0);
            report(1, table[i].outcome, T0);
        }
        assert_int_equal(bide_breaker_look(&target).state, table[i].opens ? BIDE_BREAKER_OPEN : BIDE_BREAKER_CLOSED);
    }
}

static void a_slow_success_may_count_as_a_failure(void **state)
{
    (void)state;
    for (int64_t latency_ns = 2 * S - 1; latency_ns <= 2 * S; latency_ns++) {
        open_breaker_of_three();
        config.breaker.slow_ns = 2 * S;
        open_target();
        for (int n = 0; n < 3; n++) {
            begin(T0);
            assert_says(report(1, good, T0 + latency_ns), BIDE_DONE, BIDE_WHY_SUCCEEDED);
        }
        assert_int_equal(bide_breaker_look(&target).state,
                         latency_ns < 2 * S ? BIDE_BREAKER_CLOSED : BIDE_BREAKER_OPEN);
    }
}

static void a_breaker_that_will_be_open_at_the_wake_refuses_the_wait(void **state)
{
    (void)state;
    for (int observe = 0; observe < 2; observe++) {
        open_breaker_of_three();
        config.observe = observe ? BIDE_GATE_BREAKER : 0;
        open_target();
        begin(T0);
        bide_breaker_hold(&target, BIDE_HOLD_OPEN);
        struct bide_verdict v = report(1, failed, T0);
        assert_says(v, observe ? BIDE_WAIT : BIDE_GIVE_UP, observe ? BIDE_WHY_BACKOFF : BIDE_WHY_BREAKER_OPEN);
        assert_int_equal(v.observed, observe ? BIDE_GATE_BREAKER : 0);
        v = begin(T0);
        assert_int_equal(v.what, observe ? BIDE_START : BIDE_GIVE_UP);
        assert_int_equal(v.observed, observe ? BIDE_GATE_BREAKER : 0);
    }
}

static void the_throttle_learns_what_the_server_accepted(void **state)
{
    static const struct {
        struct bide_outcome outcome;
        uint64_t accepts;
    } table[] = {
        {{.kind = BIDE_KIND_OK}, 1},
        {{.kind = BIDE_KIND_PERMANENT}, 1},
        {{.kind = BIDE_KIND_CONFLICT}, 1},
        {{.kind = BIDE_KIND_TRANSIENT}, 0},
        {{.kind = BIDE_KIND_THROTTLED}, 0},
        {{.kind = BIDE_KIND_CANCELLED}, 0},
        {{.kind = BIDE_KIND_PERMANENT, .reach = BIDE_REACH_NEVER_SENT}, 0},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        fresh();
        config.throttle_k_milli = 2000;
        open_target();
        begin_as(&(struct bide_request){.safety = BIDE_SAFE, .lane = 11}, T0);
        report(1, table[i].outcome, T0);
        assert_int_equal(target.lane[3].attempts, 1);
        assert_int_equal(target.lane[3].accepts, table[i].accepts);
    }
}

static void gates_that_refuse_a_first_attempt_may_only_observe(void **state)
{
    (void)state;
    for (int observe = 0; observe < 2; observe++) {
        fresh();
        config.observe = observe ? BIDE_GATE_THROTTLE | BIDE_GATE_IN_FLIGHT : 0;
        config.throttle_k_milli = 2000;
        config.throttle_max_permille = 1000;
        config.in_flight_max = 1;
        open_target();
        assert_int_equal(begin(T0).what, BIDE_START);
        struct bide_call second;
        struct bide_verdict v = bide_call_begin(&second, &policy, &target, &get, T0);
        assert_int_equal(v.what, observe ? BIDE_START : BIDE_GIVE_UP);
        assert_int_equal(v.observed, observe ? BIDE_GATE_IN_FLIGHT : 0);
        assert_int_equal(target.in_flight, observe ? 2 : 1);
        bide_call_cancel(&second, T0);
        target.lane[0].attempts += 1000000;
        v = bide_call_begin(&second, &policy, &target, &get, T0);
        assert_int_equal(v.what, observe ? BIDE_START : BIDE_GIVE_UP);
        assert_int_equal(v.observed, observe ? BIDE_GATE_THROTTLE | BIDE_GATE_IN_FLIGHT : 0);
        bide_call_cancel(&second, T0);
        cancel(T0);
        assert_nothing_held();
        assert_int_equal(bide_target_refused(&target, BIDE_GATE_THROTTLE), 1);
    }
}

/* Begin, wake and success have short cuts, taken when nothing is held, counted or asked. A policy that hedges takes the
 * long way round; here nothing may be hedged, so both must say the same and keep the same books. */
static void walk(const struct bide_request *request, bool long_way, struct bide_verdict said[4])
{
    struct bide_outcome refused = {.kind = BIDE_KIND_TRANSIENT, .reach = BIDE_REACH_NEVER_SENT};
    const uint16_t no_hedge =
        1u << 13; /* a flag of call.c that has no meaning here, but keeps a success from being plain */
    policy.hedges_max = long_way;
    open_target();
    begin_as(request, T0);
    report(1, good, T0); /* begins the slot of the breaker's window: never plain */
    said[0] = begin_as(request, T0);
    said[1] = report(1, refused, T0 + 200 * MS);
    said[2] = wake(T0 + 300 * MS);
    call.flags = (uint16_t)(call.flags | (long_way ? no_hedge : 0));
    said[3] = report(2, good, T0 + 400 * MS);
    begin_as(request, T0 + 400 * MS);
    call.flags = (uint16_t)(call.flags | (long_way ? no_hedge : 0));
    assert_verdict(report(1, good, T0 + 500 * MS), VERDICT(DONE, SUCCEEDED, 1, NEVER, NEVER, NEVER));
}

static void the_short_ways_end_where_the_long_ones_do(void **state)
{
    static const uint32_t refunds[] = {0, 500, 1000};
    static struct bide_target shortly;
    (void)state;
    for (uint32_t i = 0; i < COUNT(refunds) * BIDE_LANES; i++) {
        struct bide_request request = {.safety = BIDE_UNSAFE, .lane = i};
        struct bide_verdict brief[4], full[4];
        fresh();
        config.breaker.kind = BIDE_BREAKER_TIME_WINDOW;
        config.budget.earn_success_milli = 100;
        config.budget.refund_permille = refunds[i / BIDE_LANES];
        config.budget.initial_milli = i % 2 ? BIDE_FULL : 5000;
        walk(&request, false, brief);
        shortly = target;
        walk(&request, true, full);
        for (size_t k = 0; k < COUNT(full); k++)
            assert_verdict(brief[k], full[k]);
        assert_memory_equal(&shortly, &target, sizeof target);
    }
}

/* All that the short way of a success wants: a slot of the breaker's window has begun, and nothing is held. */
static void open_in_fair_weather(void)
{
    config.breaker.kind = BIDE_BREAKER_TIME_WINDOW;
    open_target();
    begin(T0);
    report(1, good, T0);
}

static void a_success_that_has_more_to_teach_goes_the_long_way(void **state)
{
    enum lesson { LATENCY, THROTTLE, IN_FLIGHT, SLOW, QUIET, LESSONS };
    (void)state;
    for (enum lesson lesson = LATENCY; lesson < LESSONS; lesson++) {
        fresh();
        config.latency = lesson == LATENCY;
        config.throttle_k_milli = lesson == THROTTLE ? 2000 : 0;
        config.in_flight_max = lesson == IN_FLIGHT ? 2 : 0;
        config.breaker.slow_ns = lesson == SLOW ? MS : NEVER;
        open_in_fair_weather();
        begin(T0);
        if (lesson == QUIET)
            bide_target_quiet(&target, T0 + 9 * S, T0);
        assert_says(report(1, good, T0 + MS), BIDE_DONE, BIDE_WHY_SUCCEEDED);
        assert_int_equal(latencies(), lesson == LATENCY ? 2 : 0);
        assert_int_equal(target.lane[0].accepts, lesson == THROTTLE ? 2 : 0);
        assert_int_equal(target.in_flight, 0);
        assert_int_equal(target.lane[0].healthy, lesson == SLOW ? 1 : 2);
        assert_int_equal(bide_target_quiet_until(&target, T0), 0);
    }
}

static void in_fair_weather_only_a_success_of_the_attempt_in_flight_is_one(void **state)
{
    (void)state;
    fresh();
    open_in_fair_weather();
    begin(T0);
    assert_says(report(2, good, T0), BIDE_NONE, BIDE_WHY_NOTHING);
    assert_says(report(0, good, T0), BIDE_NONE, BIDE_WHY_NOTHING);
    assert_says(report(1, failed, T0), BIDE_WAIT, BIDE_WHY_BACKOFF);
    assert_says(report(1, good, T0), BIDE_NONE, BIDE_WHY_NOTHING);
    assert_says(wake(T0 + 100 * MS), BIDE_START, BIDE_WHY_RETRY);
    assert_says(report(1, good, T0), BIDE_NONE, BIDE_WHY_NOTHING);
    assert_says(report(2, good, T0), BIDE_DONE, BIDE_WHY_SUCCEEDED);
    assert_says(report(2, good, T0), BIDE_NONE, BIDE_WHY_NOTHING);
    begin(T0);
    assert_says(report(1, stopped, T0), BIDE_GIVE_UP, BIDE_WHY_CANCELLED);
    assert_says(report(1, good, T0), BIDE_NONE, BIDE_WHY_NOTHING);
}

static void the_short_ways_notice_a_new_owner(void **state)
{
    static struct bide_target before;
    (void)state;
    for (int waits = 0; waits < 2; waits++) {
        fresh();
        config.breaker.kind = BIDE_BREAKER_TIME_WINDOW;
        config.budget.earn_success_milli = 100;
        config.budget.initial_milli = 5000;
        open_target();
        begin(T0);
        if (waits)
            report(1, failed, T0);
        bide_target_reuse(&target, &config, T0, NULL);
        struct bide_call theirs;
        bide_call_begin(&theirs, &policy, &target, &get, T0);
        bide_call_outcome(&theirs, 1, &good, T0); /* begins the slot */
        before = target;
        if (waits)
            assert_says(wake(T0 + 100 * MS), BIDE_START, BIDE_WHY_RETRY);
        assert_says(report(call.attempt, good, T0 + 100 * MS), BIDE_DONE, BIDE_WHY_SUCCEEDED);
        assert_memory_equal(&before, &target, sizeof target);
    }
}

static void a_breaker_that_changed_during_the_wait_is_asked_again(void **state)
{
    (void)state;
    open_fresh();
    begin(T0);
    report(1, failed, T0);
    bide_breaker_hold(&target, BIDE_HOLD_CLOSED);
    assert_says(wake(T0 + 100 * MS), BIDE_START, BIDE_WHY_RETRY);
    report(2, failed, T0 + 100 * MS);
    bide_breaker_hold(&target, BIDE_HOLD_OPEN);
    assert_says(wake(T0 + 300 * MS), BIDE_GIVE_UP, BIDE_WHY_BREAKER_OPEN);
}

/* ---- any events in any order ---- */

static uint64_t next(uint64_t *x)
{
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return *x;
}

static uint32_t pick(uint64_t *x, uint32_t below)
{
    return (uint32_t)(next(x) >> 33) % below;
}

/* One of several calls to one target, and what the test knows of it. */
struct actor {
    struct bide_call call;
    bool begun, over;
    uint64_t live; /* attempts in flight, one bit each */
    bool held;     /* a charge for a retry that has not started */
    bool paid;     /* the last attempt was charged */
};

enum { ACTORS = 6, STEPS = 400 };

struct play {
    struct actor actor[ACTORS];
    uint64_t x;
    int64_t now_ns;
    int64_t spent; /* charges that are out for good */
};

static struct bide_outcome any_outcome(uint64_t *x)
{
    struct bide_outcome o = {.kind = (enum bide_kind)pick(x, BIDE_KIND_OK + 1),
                             .reach = (enum bide_reach)pick(x, BIDE_REACH_BODY_DELIVERED + 1),
                             .flags = pick(x, 4) == 0 ? pick(x, 64) : 0};
    o.kind = pick(x, 2) ? BIDE_KIND_TRANSIENT : o.kind;
    o.reach = pick(x, 2) ? BIDE_REACH_ANSWERED : o.reach;
    if (pick(x, 4) == 0)
        o.hint = (struct bide_hint){(enum bide_hint_kind)pick(x, 3), (int64_t)pick(x, 4000) * MS};
    return o;
}

static struct bide_verdict play_begin(struct play *p, struct actor *a)
{
    struct bide_request request = {.safety = pick(&p->x, 4) ? BIDE_SAFE : (enum bide_safety)pick(&p->x, 4),
                                   .lane = pick(&p->x, 100),
                                   .seed = next(&p->x),
                                   .retry_key = pick(&p->x, 5),
                                   .inbound = {.attempt = pick(&p->x, 20) == 0 ? 2 : 0}};
    *a = (struct actor){.begun = true};
    return bide_call_begin(&a->call, &policy, &target, &request, p->now_ns);
}

static struct bide_verdict play_outcome(struct play *p, struct actor *a)
{
    struct bide_outcome o = any_outcome(&p->x);
    uint32_t attempt = a->call.attempt + 1 - pick(&p->x, 4); /* sometimes one that is not in flight */
    bool live = attempt < 64 && a->live >> attempt & 1;
    bool back = live && o.kind == BIDE_KIND_CANCELLED && o.reach == BIDE_REACH_NEVER_SENT;
    struct bide_verdict v = bide_call_outcome(&a->call, attempt, &o, p->now_ns);
    assert_int_equal(v.what == BIDE_DONE, live && o.kind == BIDE_KIND_OK);
    assert_int_not_equal(v.what, BIDE_START);
    if (back && attempt == a->call.attempt && a->paid) {
        p->spent--;
        a->paid = false;
    }
    a->live &= live ? ~(UINT64_C(1) << attempt) : UINT64_MAX;
    a->held =
        v.what == BIDE_WAIT && v.why != BIDE_WHY_BUDGET_EMPTY ? live && !(v.observed & BIDE_GATE_BUDGET) : a->held;
    return v;
}

static struct bide_verdict play_event(struct play *p, struct actor *a)
{
    if (!a->begun || a->over)
        return play_begin(p, a);
    switch (pick(&p->x, 8)) {
    case 0: return bide_call_cancel(&a->call, p->now_ns);
    case 1:
    case 2:
    case 3:
        p->now_ns = a->call.wake_ns != NEVER && a->call.wake_ns > p->now_ns ? a->call.wake_ns : p->now_ns;
        return bide_call_wake(&a->call, p->now_ns);
    default: return play_outcome(p, a);
    }
}

static void play_step(struct play *p)
{
    struct actor *a = &p->actor[pick(&p->x, ACTORS)];
    p->now_ns += pick(&p->x, 300) * MS;
    struct bide_verdict v = play_event(p, a);
    if (v.what == BIDE_START) {
        a->paid = a->held || (v.why == BIDE_WHY_HEDGE && !(v.observed & BIDE_GATE_BUDGET));
        p->spent += a->paid;
        a->held = false;
        a->live |= UINT64_C(1) << v.attempt;
    }
    if (v.what == BIDE_DONE || v.what == BIDE_GIVE_UP) {
        a->over = true;
        a->held = false;
        a->live = 0;
        assert_int_equal(bide_call_wake(&a->call, p->now_ns).what, BIDE_NONE);
        assert_int_equal(bide_call_cancel(&a->call, p->now_ns).what, BIDE_NONE);
    }
}

static void any_configuration(uint64_t *x)
{
    fresh();
    policy.jitter = (enum bide_jitter)pick(x, BIDE_JITTER_NONE + 1);
    policy.jitter_add_ns = 10 * MS;
    policy.attempts_max = 1 + pick(x, 8);
    policy.hedges_max = pick(x, policy.attempts_max < 4 ? policy.attempts_max : 4);
    policy.hedge_delay_ns = pick(x, 300) * MS;
    policy.long_poll = pick(x, 2);
    policy.hint_rule = (enum bide_hint_rule)pick(x, BIDE_HINT_UNHEARD + 1);
    policy.observe = pick(x, 2) ? 0 : pick(x, 16);
    config.in_flight_max = pick(x, 4);
    config.key_retries = pick(x, 4);
    config.latency = pick(x, 2);
    config.quiet_first = pick(x, 2);
    config.throttle_k_milli = pick(x, 2) ? 2000 : 0;
    config.breaker.kind = (enum bide_breaker_kind)pick(x, BIDE_BREAKER_OFF + 1);
    config.breaker.consecutive = 2;
    config.breaker.min_volume = 5;
    config.breaker.open_ns = config.breaker.open_max_ns = 500 * MS;
    config.breaker.ramp_ns = S;
    config.budget.window_ns = 1000000 * S;
    config.budget.reserve = 10;
    config.budget.ratio_ppm = 0;
    config.observe = pick(x, 2) ? 0 : pick(x, 32) << 4;
}

static uint32_t count_in_flight(const struct play *p)
{
    uint32_t n = 0;
    for (size_t i = 0; i < ACTORS; i++)
        n += (uint32_t)__builtin_popcountll(p->actor[i].live);
    return n;
}

static int64_t count_held(const struct play *p)
{
    int64_t n = 0;
    for (size_t i = 0; i < ACTORS; i++)
        n += p->actor[i].held;
    return n;
}

static void whatever_happens_the_books_balance_at_every_instant(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 600; seed++) {
        struct play p = {.x = seed * 0x9e3779b97f4a7c15, .now_ns = T0};
        any_configuration(&p.x);
        config.budget.kind = refillable[seed % 3];
        bool counted = config.in_flight_max > 0, concurrency = config.budget.kind == BIDE_BUDGET_CONCURRENCY;
        open_target();
        for (int i = 0; i < STEPS; i++) {
            play_step(&p);
            int64_t balance = 10 - p.spent - count_held(&p);
            if (!concurrency && bide_budget_left_milli(&target, p.now_ns) != 1000 * balance)
                fail_msg("seed %llu, step %d: the budget is off", (unsigned long long)seed, i);
            if (target.in_flight != (counted ? count_in_flight(&p) : 0))
                fail_msg("seed %llu, step %d: in flight is off", (unsigned long long)seed, i);
        }
        for (size_t i = 0; i < ACTORS; i++)
            bide_call_cancel(&p.actor[i].call, p.now_ns);
        assert_nothing_held();
        if (!concurrency)
            assert_int_equal(bide_budget_left_milli(&target, p.now_ns), 1000 * (10 - p.spent));
    }
}

static void reloads_in_between_leave_no_count_behind(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct play p = {.x = seed * 0xd1342543de82ef95, .now_ns = T0};
        any_configuration(&p.x);
        open_target();
        for (int i = 0; i < STEPS; i++) {
            play_step(&p);
            if (pick(&p.x, 10) == 0) {
                config.budget.kind = (enum bide_budget_kind)pick(&p.x, BIDE_BUDGET_NONE + 1);
                config.in_flight_max = pick(&p.x, 4);
                config.key_retries = pick(&p.x, 3);
                config.observe = pick(&p.x, 2) ? 0 : pick(&p.x, 32) << 4;
                assert_int_equal(bide_target_configure(&target, &config, p.now_ns, NULL), BIDE_OK);
            }
        }
        for (size_t i = 0; i < ACTORS; i++)
            bide_call_cancel(&p.actor[i].call, p.now_ns);
        assert_nothing_held();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_fits_96_bytes_and_a_target_two_kibibytes),
        cmocka_unit_test(every_verdict_fills_every_field),
        cmocka_unit_test(the_deadlines_of_an_attempt_are_the_nearest_of_its_own_and_the_call_s),
        cmocka_unit_test(a_call_that_never_began_answers_nothing),
        cmocka_unit_test(a_call_that_is_refused_at_its_begin_made_no_attempt),
        cmocka_unit_test(a_mutating_request_without_a_key_is_refused_or_only_noticed),
        cmocka_unit_test(the_same_seed_gives_the_same_verdicts_and_another_seed_others),
        cmocka_unit_test(other_gates_do_not_shift_the_waits),
        cmocka_unit_test(without_a_target_only_the_policy_decides),
        cmocka_unit_test(a_cancelled_call_gives_back_what_it_holds_in_every_stage),
        cmocka_unit_test(a_probe_comes_back_by_whatever_ends_its_call),
        cmocka_unit_test(a_probe_that_reported_is_a_probe_no_more),
        cmocka_unit_test(a_call_whose_target_has_a_new_owner_leaves_it_alone),
        cmocka_unit_test(a_call_whose_target_is_gone_may_still_succeed_but_is_not_retried),
        cmocka_unit_test(a_refused_wake_returns_token_and_key),
        cmocka_unit_test(at_done_the_losing_hedges_are_accounted_for),
        cmocka_unit_test(a_hedge_goes_only_where_nothing_is_wrong),
        cmocka_unit_test(a_gate_that_only_observes_lets_the_hedge_go),
        cmocka_unit_test(a_refused_hedge_may_be_tried_again_in_the_next_round),
        cmocka_unit_test(what_may_not_be_hedged_has_no_timer),
        cmocka_unit_test(a_quantile_of_the_target_s_latency_sets_the_hedge_once_it_is_known),
        cmocka_unit_test(a_hedge_that_never_went_out_costs_nothing_though_another_attempt_runs),
        cmocka_unit_test(the_only_hedge_that_never_went_out_frees_its_place),
        cmocka_unit_test(what_came_back_unsent_is_not_refunded_again),
        cmocka_unit_test(a_refused_hedge_gives_its_key_back_once),
        cmocka_unit_test(places_held_by_hedges_survive_a_reload_to_another_kind),
        cmocka_unit_test(the_longest_hint_of_a_round_holds),
        cmocka_unit_test(a_plain_failure_of_one_attempt_leaves_the_hedges_as_planned),
        cmocka_unit_test(a_hint_to_one_attempt_stops_further_hedges),
        cmocka_unit_test(a_hint_that_passed_while_others_ran_asks_for_nothing),
        cmocka_unit_test(a_stop_to_one_attempt_holds_for_the_round),
        cmocka_unit_test(an_observed_stop_leaves_the_hint_of_the_round_in_force),
        cmocka_unit_test(a_spent_body_of_one_attempt_holds_for_the_round),
        cmocka_unit_test(a_final_answer_ends_the_round_and_names_its_attempt),
        cmocka_unit_test(a_round_of_which_all_were_cancelled_is_cancelled),
        cmocka_unit_test(an_attempt_that_never_went_out_costs_nothing),
        cmocka_unit_test(what_was_not_charged_is_not_given_back),
        cmocka_unit_test(the_refund_is_the_last_charge_only),
        cmocka_unit_test(a_charge_in_another_kind_of_budget_is_not_refunded_in_tokens),
        cmocka_unit_test(a_budget_that_is_taken_away_in_mid_call_is_no_matter),
        cmocka_unit_test(an_empty_budget_may_open_the_breaker),
        cmocka_unit_test(a_long_poll_that_parts_hears_nothing_more),
        cmocka_unit_test(a_key_is_limited_or_only_watched),
        cmocka_unit_test(a_key_whose_halves_cancel_out_is_still_a_key),
        cmocka_unit_test(an_unsafe_request_is_repeated_only_if_it_surely_did_not_run),
        cmocka_unit_test(a_409_is_retried_for_a_key_and_for_nothing_else),
        cmocka_unit_test(what_is_worth_one_more_attempt_gets_one),
        cmocka_unit_test(a_layer_below_one_that_retries_does_not),
        cmocka_unit_test(hints_are_obeyed_by_their_rule),
        cmocka_unit_test(a_hint_that_is_only_observed_is_still_waited_for),
        cmocka_unit_test(a_stop_that_is_not_heard_is_no_stop),
        cmocka_unit_test(a_hinted_wait_keeps_advances_or_resets_the_sequence),
        cmocka_unit_test(a_conflict_is_tried_at_once_one_time_and_never_before_a_hint),
        cmocka_unit_test(the_backoff_step_does_not_wrap),
        cmocka_unit_test(a_wait_that_ends_at_the_deadline_is_not_started),
        cmocka_unit_test(a_wake_that_comes_late_is_spread_again_once),
        cmocka_unit_test(quiet_holds_back_first_attempts_if_told_to),
        cmocka_unit_test(quiet_asked_of_one_call_prolongs_the_waits_of_others),
        cmocka_unit_test(quiet_is_not_asked_of_others_when_the_hint_is_too_long_or_says_nothing),
        cmocka_unit_test(a_success_ends_the_quiet_if_it_began_after_it),
        cmocka_unit_test(some_outcomes_speak_against_the_server_some_for_it_and_some_say_nothing),
        cmocka_unit_test(a_slow_success_may_count_as_a_failure),
        cmocka_unit_test(a_breaker_that_will_be_open_at_the_wake_refuses_the_wait),
        cmocka_unit_test(the_throttle_learns_what_the_server_accepted),
        cmocka_unit_test(gates_that_refuse_a_first_attempt_may_only_observe),
        cmocka_unit_test(the_short_ways_end_where_the_long_ones_do),
        cmocka_unit_test(a_success_that_has_more_to_teach_goes_the_long_way),
        cmocka_unit_test(in_fair_weather_only_a_success_of_the_attempt_in_flight_is_one),
        cmocka_unit_test(the_short_ways_notice_a_new_owner),
        cmocka_unit_test(a_breaker_that_changed_during_the_wait_is_asked_again),
        cmocka_unit_test(whatever_happens_the_books_balance_at_every_instant),
        cmocka_unit_test(reloads_in_between_leave_no_count_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
