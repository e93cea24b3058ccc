/* test_hostile.c - a target whose memory another process wrote: any bytes at all, also while calls run.
 *
 * A shared target is trusted for its values by those who may write it, but never with the memory of another process: no
 * value may index, shift or divide out of range, nor overflow. The address and undefined-behaviour sanitizers check
 * that here; without them the test still sees a crash or an endless loop. Random bytes come from seeds (seed.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include <string.h>

#include <bide/call.h>

#include "core/event.h"
#include "core/lease.h"
#include "seed.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))
#define S            BIDE_S
#define NOW          (1000 * S)
#define WORDS        (sizeof(struct bide_target) / sizeof(uint64_t))
#define ROUNDS       4000u /* each has a seed of its own */
#define CALLS        4u

union memory {
    struct bide_target target;
    uint64_t word[WORDS];
    uint32_t half[2 * WORDS];
};

static union memory memory;
static struct bide_policy policy;
static struct bide_call calls[CALLS];
static uint64_t seed, draws;

static uint64_t draw(uint64_t most)
{
    uint64_t n = draws++;
    return core_uniform((struct core_random_key){seed, (uint32_t)n, CORE_FOR_BACKOFF}, most);
}

/* Values at the edges of what the engine computes with, and any value. */
static uint64_t hostile_value(void)
{
    static const uint64_t edges[] = {0,
                                     1,
                                     2,
                                     9,
                                     255,
                                     257,
                                     UINT32_MAX,
                                     INT64_MAX,
                                     (uint64_t)INT64_MIN,
                                     UINT64_MAX,
                                     UINT64_MAX - 1,
                                     (uint64_t)NOW,
                                     UINT64_C(1) << 61,
                                     UINT64_C(1) << 48};
    uint64_t i = draw(COUNT(edges) + 2);
    return i < COUNT(edges) ? edges[i] : draw(UINT64_MAX);
}

/* Overwrites a word, or half of one: many settings are 32 bits wide. */
static void overwrite_somewhere(void)
{
    if (draw(1))
        memory.word[draw(WORDS - 1)] = hostile_value();
    else
        memory.half[draw(2 * WORDS - 1)] = (uint32_t)hostile_value();
}

static struct bide_target_config random_config(void)
{
    struct bide_target_config config;
    bide_target_config_init(&config, (enum bide_preset)draw(BIDE_PRESET_COUNT - 1));
    config.breaker.kind = (enum bide_breaker_kind)draw(BIDE_BREAKER_OFF);
    config.breaker.probes = 1 + (uint32_t)draw(BIDE_PROBES_MAX - 1);
    config.throttle_k_milli = draw(1) ? 2000 : 0;
    config.key_retries = (uint32_t)draw(2);
    config.in_flight_max = (uint32_t)draw(3);
    config.latency = draw(1);
    return config;
}

/* Random bytes throughout, or a valid target with a few words overwritten. */
static void fill_memory(void)
{
    struct bide_target_config config = random_config();
    if (draw(2) == 0) {
        for (size_t i = 0; i < WORDS; i++)
            memory.word[i] = hostile_value();
        return;
    }
    assert_int_equal(bide_target_init(&memory.target, &config, NOW, NULL), BIDE_OK);
    for (uint64_t n = draw(40); n > 0; n--)
        overwrite_somewhere();
}

static struct bide_outcome random_outcome(void)
{
    struct bide_outcome o = {.kind = (enum bide_kind)draw(BIDE_KIND_OK),
                             .evidence = (enum bide_evidence)draw(BIDE_EVIDENCE_BODY_DELIVERED),
                             .hint = {(enum bide_hint_kind)draw(BIDE_HINT_STOP), (int64_t)draw(100 * S)}};
    o.flags = (uint32_t)draw(63);
    return o;
}

static void random_call_event(int64_t now_ns)
{
    struct bide_call *c = &calls[draw(CALLS - 1)];
    struct bide_request request = {.safety = (enum bide_safety)draw(BIDE_KEYED),
                                   .seed = draw(9),
                                   .lane = (uint32_t)draw(20),
                                   .retry_key = draw(4)};
    struct bide_outcome outcome = random_outcome();
    switch (draw(7)) {
    case 0: bide_call_begin(c, &policy, &memory.target, &request, now_ns); return;
    case 1: bide_call_cancel(c, now_ns); return;
    case 2: bide_call_safety(c, request.safety, now_ns); return;
    case 3:
    case 4: bide_call_wake(c, now_ns); return;
    default: bide_call_outcome(c, c->attempt - (uint32_t)draw(1), &outcome, now_ns); return;
    }
}

static void read_everything(int64_t now_ns)
{
    struct bide_target *t = &memory.target;
    struct bide_target_config config;
    bide_target_config_get(t, &config);
    (void)core_target_is_evictable(t, now_ns);
    (void)core_hold_off_until(t, now_ns);
    (void)bide_target_latency_get(t, (uint32_t)draw(1000));
    (void)bide_target_get(t, now_ns);
    (void)core_lease_until(t);
    (void)core_lease_memo_get(t);
    assert_true(core_budget_left_milli(t, now_ns) >= 0);
    assert_non_null(bide_breaker_state_label(core_breaker_get(t).state));
}

static void random_control(int64_t now_ns)
{
    struct bide_target *t = &memory.target;
    struct bide_target_config config = random_config();
    switch (draw(9)) {
    case 0: (void)bide_target_configure(t, &config, now_ns, NULL); return;
    case 1: (void)core_target_reuse(t, &config, now_ns, NULL); return;
    case 2: (void)core_lease_begin(t, now_ns, NULL); return;
    case 3: (void)core_lease_end(t, now_ns); return;
    case 4: core_lease_extend(t, now_ns + (int64_t)draw(2 * S) - S, now_ns); return;
    case 5: (void)core_lease_claim(t, 7, now_ns + (int64_t)draw(S), now_ns); return;
    case 6: (void)bide_budget_add_milli(t, (int64_t)draw(20000) - 10000, now_ns); return;
    case 7: bide_breaker_hold(t, (enum bide_hold)draw(3)); return;
    case 8: (void)bide_breaker_trip(t, draw(9), now_ns); return;
    default: bide_target_hold_off(t, now_ns + (int64_t)draw(10 * S), now_ns); return;
    }
}

static void random_policy(void)
{
    bide_policy_init(&policy, (enum bide_preset)draw(BIDE_PRESET_COUNT - 1));
    policy.hedges_max = (uint32_t)draw(policy.attempts_max - 1 < 3 ? policy.attempts_max - 1 : 3);
    policy.hedge_quantile_permille = (uint32_t)draw(1) * 950;
    policy.attempts_max += (uint32_t)draw(20);
}

static void any_bytes_in_a_target_are_harmless_from(uint64_t first)
{
    for (seed = first; seed < first + ROUNDS; seed++) {
        draws = 0;
        random_policy();
        fill_memory();
        memset(calls, 0, sizeof calls);
        int64_t now_ns = draw(3) == 0 ? 0 : NOW;
        for (uint32_t i = 0; i < 60; i++, now_ns += (int64_t)draw(3 * S)) {
            random_call_event(now_ns);
            if (draw(5) == 0)
                random_control(now_ns);
            if (draw(5) == 0)
                read_everything(now_ns);
            if (draw(3) == 0)
                overwrite_somewhere(); /* another process writes while calls run */
        }
    }
}

static void any_bytes_in_a_target_are_harmless(void **state)
{
    seed_each(1, any_bytes_in_a_target_are_harmless_from);
}

/* Makes the settings agree that the check relates to each other; each of the others must be in its range by itself. */
static void relate_settings(struct bide_target_config *c)
{
    c->throttle_k_milli = 0;
    c->budget.capacity_milli = c->budget.cost_milli = 1000;
    c->budget.cost_throttled_milli = c->budget.cost_timeout_milli = 1000;
    c->budget.initial_milli = BIDE_FULL;
    c->budget.threshold_milli = 0;
    c->breaker.open_ns = c->breaker.open_max_ns;
    c->breaker.min_volume = 1;
}

static void every_setting_is_read_in_its_range_from(uint64_t first)
{
    struct bide_target_config config;
    struct bide_problem problem = {.field = ""};
    for (seed = first; seed < first + ROUNDS; seed++) {
        draws = 0;
        fill_memory();
        bide_target_config_get(&memory.target, &config);
        assert_in_range(config.throttle_k_milli, 0, 1000000);
        assert_in_range(config.budget.capacity_milli, 0, BIDE_CAPACITY_MAX_MILLI);
        assert_true(config.breaker.open_ns > 0);
        relate_settings(&config);
        if (bide_target_config_check(&config, &problem) != BIDE_OK)
            fail_msg("seed %llu: %s is %lld; want %s", (unsigned long long)seed, problem.field,
                     (long long)problem.value, problem.want);
    }
}

static void every_setting_is_read_in_its_range(void **state)
{
    seed_each(1, every_setting_is_read_in_its_range_from);
}

/* A new target whose memory the test then overwrites. */
static void init_memory(void)
{
    struct bide_target_config config;
    bide_target_config_init(&config, BIDE_PRESET_SERVICE);
    assert_int_equal(bide_target_init(&memory.target, &config, NOW, NULL), BIDE_OK);
}

static void a_claim_far_in_the_future_is_taken_over(void **state)
{
    static const uint64_t claims[] = {NOW + 10 * S + 1, INT64_MAX, (uint64_t)INT64_MIN, UINT64_MAX};
    struct bide_target_config config;
    bide_target_config_init(&config, BIDE_PRESET_GRPC);
    for (size_t i = 0; i < COUNT(claims); i++) {
        init_memory();
        memory.target.claim = claims[i];
        assert_int_equal(bide_target_configure(&memory.target, &config, NOW, NULL), BIDE_OK);
    }
    memory.target.claim = NOW + 10 * S; /* a process whose clock was read later */
    assert_int_equal(bide_target_configure(&memory.target, &config, NOW, NULL), BIDE_ERR_BUSY);
}

static void releasing_more_permits_than_are_held_leaves_none_and_keeps_the_owner(void **state)
{
    uint64_t word = UINT64_C(5) << CORE_OWNER_SHIFT | 2;
    core_permit_release(&word, 5, 3);
    assert_int_equal(word, UINT64_C(5) << CORE_OWNER_SHIFT);
}

static void a_capacity_beyond_the_level_bits_adds_nothing_to_the_stamp(void **state)
{
    init_memory();
    memory.target.hot[0][1] = (uint64_t)UINT32_MAX << 32 | BIDE_CAPACITY_MAX_MILLI;
    memory.target.config[0].budget.capacity_milli = UINT32_MAX;
    uint64_t stamp = memory.target.budget >> 28;
    core_budget_credit_success(&memory.target, 0);
    assert_int_equal(memory.target.budget, stamp << 28 | BIDE_CAPACITY_MAX_MILLI);
    assert_int_equal(bide_budget_add_milli(&memory.target, INT64_MAX, NOW), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_setting_is_read_in_its_range),
        cmocka_unit_test(a_claim_far_in_the_future_is_taken_over),
        cmocka_unit_test(releasing_more_permits_than_are_held_leaves_none_and_keeps_the_owner),
        cmocka_unit_test(a_capacity_beyond_the_level_bits_adds_nothing_to_the_stamp),
        cmocka_unit_test(any_bytes_in_a_target_are_harmless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
