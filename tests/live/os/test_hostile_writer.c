/* test_hostile_writer.c - calls on a target while another thread writes random bytes into it, as another process may do
 * with a shared target.
 *
 * tests/unit/core/test_hostile.c and fuzz/fuzz_target.c change the bytes between two events. Here they change within
 * one: a value that was checked and is loaded again is another value. The data race is the point, so the thread
 * sanitizer does not run this. The engine has no assertions here, as for fuzz_target: verdicts may be wrong, but no
 * call may access other memory (address sanitizer), overflow (undefined-behaviour sanitizer) or hang. */
#include <bide/call.h>

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/lease.h"
#include "live_chance.h"

#define WORDS  (sizeof(struct bide_target) / sizeof(uint64_t))
#define NOW    (1000 * BIDE_S)
#define CALLS  4u
#define EVENTS SEED_TRIALS(1000000u)
#define FRESH  64u /* events until the target is valid again */

static struct bide_target *target; /* an allocation of its own: the address sanitizer detects what lies beyond it */
static bool is_over;
static uint64_t writes;

static uint64_t draw_word(struct random *r)
{
    return (uint64_t)draw(r, UINT32_MAX) << 32 | draw(r, UINT32_MAX);
}

/* Extreme values, small values, instants near the present, and any value. */
static uint64_t draw_value(struct random *r)
{
    static const uint64_t edges[] = {
        0, 1, 2, 9, 255, UINT32_MAX, INT64_MAX, (uint64_t)INT64_MIN, UINT64_MAX, NOW, NOW + BIDE_MS};
    unsigned i = draw(r, 2 * sizeof edges / sizeof *edges);
    return i < sizeof edges / sizeof *edges ? edges[i] : draw_word(r) >> draw(r, 64);
}

static void *write_until_over(void *context)
{
    struct random *r = context;
    volatile uint64_t *word = (volatile uint64_t *)(void *)target;
    volatile uint8_t *byte = (volatile uint8_t *)(void *)target;
    for (; !__atomic_load_n(&is_over, __ATOMIC_RELAXED); __atomic_add_fetch(&writes, 1, __ATOMIC_RELAXED))
        if (draw(r, 2) == 0)
            word[draw(r, WORDS)] = draw_value(r);
        else
            byte[draw(r, sizeof *target)] = (uint8_t)draw(r, 256);
    return NULL;
}

static void check_verdict(struct bide_verdict v)
{
    assert_true((unsigned)v.action <= BIDE_ACTION_GIVE_UP && (unsigned)v.reason < BIDE_REASON_COUNT);
}

static void make_call_event(struct bide_call *call, const struct bide_policy *policy, struct random *r, int64_t now_ns)
{
    struct bide_request request = {
        .safety = BIDE_SAFE, .seed = draw(r, 9), .lane = draw(r, 9), .retry_key = draw(r, 3)};
    struct bide_outcome outcome = {.kind = (enum bide_kind)draw(r, 8), .evidence = BIDE_EVIDENCE_ANSWERED};
    switch (draw(r, 5)) {
    case 0: check_verdict(bide_call_begin(call, policy, target, &request, now_ns)); break;
    case 1: check_verdict(bide_call_wake(call, now_ns)); break;
    case 2: check_verdict(bide_call_cancel(call, now_ns)); break;
    default: check_verdict(bide_call_outcome(call, call->attempt, &outcome, now_ns));
    }
}

static void make_target_event(struct random *r, int64_t now_ns)
{
    struct bide_target_config config;
    switch (draw(r, 8)) {
    case 0:
        bide_target_config_get(target, &config);
        if (bide_target_config_check(&config, NULL) == BIDE_OK)
            (void)bide_target_configure(target, &config, now_ns, NULL);
        break;
    case 1: (void)bide_breaker_trip(target, draw(r, 9), now_ns); break;
    case 2: bide_target_hold_off(target, now_ns + BIDE_S, now_ns); break;
    case 3: (void)bide_budget_add_milli(target, (int64_t)draw(r, 3000) - 1500, now_ns); break;
    case 4: (void)core_lease_begin(target, now_ns, NULL); break;
    case 5: (void)core_lease_collect(target); break;
    case 6: (void)bide_target_latency_get(target, 990); break;
    default: (void)bide_breaker_state_label(bide_target_get(target, now_ns).breaker.state);
    }
}

static void make_valid(struct random *r)
{
    struct bide_target_config config;
    bide_target_config_init(&config, (enum bide_preset)draw(r, BIDE_PRESET_COUNT));
    config.breaker.probes = 1 + draw(r, BIDE_PROBES_MAX);
    config.key_retries = draw(r, 3);
    config.in_flight_max = draw(r, 4);
    config.throttle_k_milli = draw(r, 2) * 2000;
    config.latency = draw(r, 2) == 0;
    assert_int_equal(bide_target_init(target, &config, NOW, NULL), BIDE_OK);
}

static void bytes_written_during_a_call_are_harmless(void **state)
{
    struct random own = {seed_once()}, of_writer = {own.state + 1};
    struct bide_call calls[CALLS];
    struct bide_policy policy;
    pthread_t writer;
    target = aligned_alloc(64, sizeof *target);
    assert_non_null(target);
    bide_policy_init(&policy, BIDE_PRESET_SERVICE);
    policy.hedges_max = 1;
    make_valid(&own);
    assert_int_equal(pthread_create(&writer, NULL, write_until_over, &of_writer), 0);
    int64_t now_ns = NOW;
    for (unsigned i = 0; i < EVENTS; i++, now_ns += (int64_t)draw(&own, BIDE_S)) {
        if (i % FRESH == 0) {
            memset(calls, 0, sizeof calls);
            now_ns = NOW;
            make_valid(&own);
        }
        make_call_event(&calls[draw(&own, CALLS)], &policy, &own, now_ns);
        if (draw(&own, 4) == 0)
            make_target_event(&own, now_ns);
    }
    __atomic_store_n(&is_over, true, __ATOMIC_RELAXED);
    pthread_join(writer, NULL);
    print_message("%u events, %" PRIu64 " writes\n", EVENTS, writes);
    assert_true(writes > 0);
    free(target);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(bytes_written_during_a_call_are_harmless)};
    return cmocka_run_group_tests_name("hostile writer", tests, NULL, NULL);
}
