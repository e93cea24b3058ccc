/* call_world.h - one policy, one target and one call, for the tests of calls.
 *
 * A test calls reset_world(), changes `policy` and `config`, opens the target and sends events: begin, report, wake,
 * cancel. Time begins at T0; there is no jitter, so every instant is known. */
#ifndef UNIT_CALL_WORLD_H
#define UNIT_CALL_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include <string.h>

#include <bide/call.h>

#include "core/event.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))
#define MS           BIDE_MS
#define S            BIDE_S
#define T0           (1000 * S)
#define NEVER        BIDE_NEVER

static const struct bide_outcome good = {.kind = BIDE_KIND_OK, .evidence = BIDE_EVIDENCE_ANSWERED};
static const struct bide_outcome failed = {.kind = BIDE_KIND_TRANSIENT, .evidence = BIDE_EVIDENCE_ANSWERED};
static const struct bide_outcome hopeless = {.kind = BIDE_KIND_PERMANENT, .evidence = BIDE_EVIDENCE_ANSWERED};
static const struct bide_outcome conflict = {.kind = BIDE_KIND_CONFLICT, .evidence = BIDE_EVIDENCE_ANSWERED};
static const struct bide_outcome limited = {.kind = BIDE_KIND_THROTTLED, .evidence = BIDE_EVIDENCE_ANSWERED};
static const struct bide_outcome stopped = {.kind = BIDE_KIND_CANCELLED};
static const struct bide_outcome unsent = {.kind = BIDE_KIND_CANCELLED, .evidence = BIDE_EVIDENCE_NOT_SENT};
static const struct bide_request get = {.safety = BIDE_SAFE};
static const struct bide_request post = {.safety = BIDE_UNSAFE};
static const struct bide_request keyed = {.safety = BIDE_SAFE, .retry_key = 77};

static struct bide_policy policy;
static struct bide_target_config config;
static struct bide_target target;
static struct bide_call call;

/* ---- the world ---- */

/* Four attempts, waits of 100, 200 and 400 ms, a deadline of a minute; ten tokens, one per retry, no refill; no
 * breaker. */
static inline void reset_world(void)
{
    bide_policy_init(&policy, BIDE_PRESET_SERVICE);
    policy.jitter = BIDE_JITTER_NONE;
    policy.base_ns = 100 * MS;
    bide_target_config_init(&config, BIDE_PRESET_SERVICE);
    config.breaker.kind = BIDE_BREAKER_OFF;
    config.budget.earn_success_milli = 0;
    config.budget.refill_per_minute_milli = 0;
    memset(&call, 0xa5, sizeof call); /* begin ignores the previous contents */
}

/* Initializes the target from `config`; a policy or configuration that does not pass its check fails the test. */
static inline void open_target(void)
{
    struct bide_problem problem = {.field = ""};
    if (bide_policy_check(&policy, &problem) != BIDE_OK || bide_target_init(&target, &config, T0, &problem) != BIDE_OK)
        fail_msg("%s is %lld; want %s", problem.field, (long long)problem.value, problem.want);
}

/* The default world. */
static inline void open_default(void)
{
    reset_world();
    open_target();
}

/* A breaker that opens at the third consecutive failure, and an unlimited budget. */
static inline void open_breaker_of_three(void)
{
    reset_world();
    config.breaker.kind = BIDE_BREAKER_BY_RUN;
    config.breaker.consecutive = 3;
    config.budget.kind = BIDE_BUDGET_NONE;
    open_target();
}

/* ---- events ---- */

/* Begins the call with this request. */
static inline struct bide_verdict begin_as(const struct bide_request *request, int64_t now_ns)
{
    return bide_call_begin(&call, &policy, &target, request, now_ns);
}

/* Begins the call with a GET. */
static inline struct bide_verdict begin(int64_t now_ns)
{
    return begin_as(&get, now_ns);
}

/* Reports the outcome of an attempt. */
static inline struct bide_verdict report(uint32_t attempt, struct bide_outcome outcome, int64_t now_ns)
{
    return bide_call_outcome(&call, attempt, &outcome, now_ns);
}

/* The timer fired. */
static inline struct bide_verdict wake(int64_t now_ns)
{
    return bide_call_wake(&call, now_ns);
}

/* The caller cancels the call. */
static inline struct bide_verdict cancel(int64_t now_ns)
{
    return bide_call_cancel(&call, now_ns);
}

/* Returns the outcome with a hint to wait that long. */
static inline struct bide_outcome with_hint(struct bide_outcome outcome, int64_t wait_ns)
{
    outcome.hint = (struct bide_hint){BIDE_HINT_WAIT, wait_ns};
    return outcome;
}

/* Returns the outcome with a hint to stop. */
static inline struct bide_outcome with_stop(struct bide_outcome outcome)
{
    outcome.hint = (struct bide_hint){.kind = BIDE_HINT_STOP};
    return outcome;
}

/* ---- verdicts and resources ---- */

/* The level of the budget, in thousandths of a token. */
static inline int64_t tokens_left(void)
{
    return core_budget_left_milli(&target, T0);
}

/* The number of latencies that the target recorded. */
static inline uint64_t latencies(void)
{
    return target.latency[BIDE_LATENCY_WORDS - 1]; /* the last word counts all samples */
}

/* The verdict has this action and reason. */
static inline void assert_action(struct bide_verdict v, enum bide_action action, enum bide_reason reason)
{
    if (v.action != action || v.reason != reason)
        fail_msg("%s %s, want %s %s", bide_action_label(v.action), bide_reason_label(v.reason),
                 bide_action_label(action), bide_reason_label(reason));
}

/* Two verdicts are the same in every field. */
static inline void assert_verdict(struct bide_verdict got, struct bide_verdict want)
{
    assert_action(got, want.action, want.reason);
    assert_int_equal(got.attempt, want.attempt);
    assert_int_equal(got.observed, want.observed);
    assert_int_equal(got.wake_ns, want.wake_ns);
    assert_int_equal(got.attempt_deadline_ns, want.attempt_deadline_ns);
    assert_int_equal(got.connect_deadline_ns, want.connect_deadline_ns);
}

/* Action, reason, attempt, wake instant, attempt deadline and connect deadline. */
#define VERDICT(w, y, n, wake, cut, connect)                                                                           \
    (struct bide_verdict)                                                                                              \
    {                                                                                                                  \
        .action = BIDE_ACTION_##w, .reason = BIDE_REASON_##y, .attempt = (n), .wake_ns = (wake),                       \
        .attempt_deadline_ns = (cut), .connect_deadline_ns = (connect)                                                 \
    }

/* No permit is held: neither in flight, nor of the calls, nor of the retries. */
static inline void assert_nothing_held(void)
{
    assert_int_equal(target.in_flight, 0);
    assert_int_equal(target.calls, 0);
    assert_int_equal(target.retries, 0);
}

/* ---- hedges ---- */

/* `hedges` hedges, 100 ms apart; an in-flight limit of ten; latencies are recorded. */
static inline void open_hedged(uint32_t hedges)
{
    reset_world();
    policy.hedges_max = hedges;
    policy.hedge_delay_ns = 100 * MS;
    config.in_flight_max = 10;
    config.latency = true;
    open_target();
}

/* At 100 ms the hedge is refused, no other hedge is planned, and the first attempt may still succeed. */
static inline void assert_hedge_refused(enum bide_reason reason, const char *action)
{
    struct bide_verdict v = wake(T0 + 100 * MS);
    if (v.action != BIDE_ACTION_NONE || v.reason != reason)
        fail_msg("%s: %s %s", action, bide_action_label(v.action), bide_reason_label(v.reason));
    assert_int_equal(v.wake_ns, NEVER); /* no other hedge in this round */
    assert_int_equal(v.attempt, 1);
    assert_int_equal(call.attempt, 1);
    assert_action(report(1, good, T0 + S), BIDE_ACTION_DONE, BIDE_REASON_SUCCEEDED);
}

/* Retries another call with the same key. */
static inline void charge_key_of_another_call(void)
{
    struct bide_call other;
    bide_call_begin(&other, &policy, &target, &keyed, T0);
    assert_int_equal(bide_call_outcome(&other, 1, &failed, T0).action, BIDE_ACTION_WAIT);
}

#endif
