/* breaker_world.h - one target whose circuit breaker is tested: admissions and votes without calls, and calls.
 *
 * Votes are written as strings: '.' is a healthy call, 'x' a failed call, '-' a neutral call that does not vote.
 * Times have no jitter unless a test is about jitter; instants are stored in ticks of 2^20 ns and rounded up, never
 * early. */
#ifndef UNIT_BREAKER_WORLD_H
#define UNIT_BREAKER_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include <bide/call.h>

#include "core/gates.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))
#define MS           BIDE_MS
#define S            BIDE_S
#define NOW          (1000 * S)
#define TICK         (INT64_C(1) << 20)
#define LATER        (NOW + 6 * S) /* an instant at which probing may begin */

static struct bide_target target;

/* -- the world ----------------------------------------------------------------------------------------------------- */

/* The configuration of a service, with open times of 5 s, doubled up to 60 s, without jitter, and 10 s of ramp. */
static inline struct bide_target_config service(void)
{
    struct bide_target_config config;
    assert_int_equal(bide_target_config_init(&config, BIDE_PRESET_SERVICE), BIDE_OK);
    config.breaker.open_jitter_permille = 0;
    config.breaker.open_ns = 5 * BIDE_S;
    config.breaker.open_max_ns = 60 * BIDE_S;
    config.breaker.ramp_ns = 10 * BIDE_S;
    return config;
}

/* One failure opens the breaker for 5 s, then `probes` probes with a timeout of 10 s; ramp-up over 10 s. */
static inline struct bide_target_config fragile(uint32_t probes)
{
    struct bide_target_config config = service();
    config.breaker.kind = BIDE_BREAKER_BY_RUN;
    config.breaker.consecutive = 1;
    config.breaker.probes = probes;
    return config;
}

/* Initializes the target. */
static inline void init_target(const struct bide_target_config *config)
{
    assert_int_equal(bide_target_init(&target, config, NOW, NULL), BIDE_OK);
}

/* The state from the public view. */
static inline enum bide_breaker_state state_now(void)
{
    return core_breaker_get(&target).state;
}

/* -- admissions and votes ------------------------------------------------------------------------------------------ */

/* Requests admission for a call with this seed. */
static inline struct core_admission admit(uint64_t seed, int64_t now_ns)
{
    return core_breaker_admit(&target, seed, now_ns);
}

/* An admitted call ends and votes. */
static inline void report(struct core_admission a, enum core_vote vote, int64_t now_ns)
{
    struct core_ballot b = {.vote = vote, .ticket = a.ticket, .probe = a.probe, .lane = 3, .seed = 1};
    core_breaker_vote(&target, &b, core_hot(&target), now_ns);
}

/* The call is admitted, as a probe or as a normal call. */
static inline void assert_admitted(struct core_admission a, bool probe)
{
    assert_int_equal(a.refused.reason, BIDE_REASON_NOTHING);
    assert_int_equal(a.probe, probe);
}

/* The call is refused with this reason. */
static inline void assert_refused(struct core_admission a, enum bide_reason reason)
{
    assert_int_equal(a.refused.reason, reason);
    assert_false(a.probe);
}

/* A call is admitted as a probe. */
static inline struct core_admission probe_at(int64_t now_ns)
{
    struct core_admission a = admit(1, now_ns);
    assert_admitted(a, true);
    return a;
}

/* A call that is admitted and ends at once. */
static inline void call(char outcome, int64_t now_ns)
{
    struct core_admission a = {.ticket = core_breaker_get(&target).generation};
    report(a, outcome == '.' ? CORE_VOTE_HEALTHY : outcome == 'x' ? CORE_VOTE_FAILURE : CORE_VOTE_NEUTRAL, now_ns);
}

/* One call per character, in sequence. */
static inline void calls(const char *outcomes, int64_t now_ns)
{
    for (; *outcomes; outcomes++)
        call(*outcomes, now_ns);
}

/* A breaker that has just opened for the first time. */
static inline void open_breaker(const struct bide_target_config *config)
{
    init_target(config);
    bide_breaker_trip(&target, 1, NOW);
    assert_int_equal(state_now(), BIDE_BREAKER_OPEN);
}

/* A breaker that has opened, was probed, and has closed at LATER. */
static inline void close_breaker(const struct bide_target_config *config)
{
    open_breaker(config);
    for (uint32_t i = 0; i < config->breaker.probes; i++)
        report(probe_at(LATER), CORE_VOTE_HEALTHY, LATER);
    assert_int_equal(state_now(), BIDE_BREAKER_CLOSED);
}

/* -- calls as the engine makes them -------------------------------------------------------------------------------- */

static const struct bide_outcome ok = {.kind = BIDE_KIND_OK, .evidence = BIDE_EVIDENCE_ANSWERED};
static const struct bide_outcome bad_gateway = {.kind = BIDE_KIND_TRANSIENT, .evidence = BIDE_EVIDENCE_ANSWERED};

/* A policy of one attempt. */
static inline struct bide_policy single_attempt(void)
{
    struct bide_policy policy;
    assert_int_equal(bide_policy_init(&policy, BIDE_PRESET_SERVICE), BIDE_OK);
    policy.attempts_max = 1;
    return policy;
}

/* A call of the engine begins. */
static inline struct bide_verdict begin(struct bide_call *c, const struct bide_policy *policy, uint64_t seed,
                                        int64_t now_ns)
{
    struct bide_request request = {.safety = BIDE_SAFE, .seed = seed};
    return bide_call_begin(c, policy, &target, &request, now_ns);
}

#endif
