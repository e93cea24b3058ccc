/* test_target.c - initializing a target, reloading it while it is in use, hold-off, reuse and eviction.
 *
 * A reload must never refill a drained budget, close an open breaker, mix two configurations, or leave a target that
 * the next reload cannot repair. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include <pthread.h>
#include <string.h>

#include <bide/call.h>

#include "core/gates.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))
#define MS           BIDE_MS
#define S            BIDE_S
#define NOW          (1000 * S)

static struct bide_target target;

static const struct bide_outcome ok = {.kind = BIDE_KIND_OK, .evidence = BIDE_EVIDENCE_ANSWERED};
static const struct bide_outcome failed = {.kind = BIDE_KIND_TRANSIENT, .evidence = BIDE_EVIDENCE_ANSWERED};

static struct bide_target_config service(void)
{
    struct bide_target_config config;
    assert_int_equal(bide_target_config_init(&config, BIDE_PRESET_SERVICE), BIDE_OK);
    return config;
}

/* Two consecutive failures open the breaker. */
static struct bide_target_config fragile(void)
{
    struct bide_target_config config = service();
    config.breaker.kind = BIDE_BREAKER_BY_RUN;
    config.breaker.consecutive = 2;
    config.breaker.open_ns = 5 * S;
    return config;
}

static struct bide_target_config windowed(int64_t window_ns)
{
    struct bide_target_config config = service();
    config.budget = (struct bide_budget_config){
        .kind = BIDE_BUDGET_WINDOW, .ratio_ppm = 100000, .min_volume = 10, .window_ns = window_ns};
    return config;
}

static void init_target(const struct bide_target_config *config)
{
    assert_int_equal(bide_target_init(&target, config, NOW, NULL), BIDE_OK);
}

static void reload(const struct bide_target_config *config)
{
    assert_int_equal(bide_target_configure(&target, config, NOW, NULL), BIDE_OK);
}

static struct bide_policy policy(void)
{
    struct bide_policy p;
    assert_int_equal(bide_policy_init(&p, BIDE_PRESET_SERVICE), BIDE_OK);
    return p;
}

static struct bide_verdict begin(struct bide_call *call, const struct bide_policy *p, uint64_t seed)
{
    struct bide_request request = {.safety = BIDE_SAFE, .seed = seed, .retry_key = 77};
    return bide_call_begin(call, p, &target, &request, NOW);
}

static void vote(enum core_vote what, int64_t now_ns)
{
    struct core_ballot b = {.vote = what, .ticket = core_breaker_get(&target).generation};
    core_breaker_vote(&target, &b, core_hot(&target), now_ns);
}

static bool charge_retry(void)
{
    struct core_charge charge = {0};
    return core_budget_charge(&target, &failed, NOW, &charge);
}

static uint32_t charge_all_retries(void)
{
    uint32_t n = 0;
    while (n < 1000 && charge_retry())
        n++;
    return n;
}

static void first_attempts(uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        core_budget_record_first(&target, i % BIDE_LANES, NOW);
}

/* -- init ---------------------------------------------------------------------------------------------------------- */

static void a_new_target_has_a_full_budget_a_closed_breaker_and_no_history(void **state)
{
    struct bide_target_config config = service(), got;
    memset(&target, 0xff, sizeof target); /* any previous contents */
    init_target(&config);
    bide_target_config_get(&target, &got);
    assert_memory_equal(&got, &config, sizeof got);
    assert_int_equal(core_budget_left_milli(&target, NOW), 10000);
    assert_int_equal(core_breaker_get(&target).state, BIDE_BREAKER_CLOSED);
    assert_int_equal(core_hold_off_until(&target, NOW), 0);
    assert_int_equal(bide_target_latency_get(&target, 500), 0);
    assert_true(core_target_is_evictable(&target, NOW));
    for (uint32_t i = 0; i < BIDE_GATE_COUNT; i++)
        assert_int_equal(target.refused[i], 0);
}

static void init_refuses_a_bad_configuration_and_reports_its_field(void **state)
{
    struct bide_target_config config = service();
    struct bide_target before;
    struct bide_problem problem;
    config.budget.ratio_ppm = 1000001;
    memset(&target, 0x5a, sizeof target);
    before = target;
    assert_int_equal(bide_target_init(&target, &config, NOW, &problem), BIDE_ERR_INVALID);
    assert_string_equal(problem.field, "budget.ratio_ppm");
    assert_int_equal(problem.value, 1000001);
    assert_int_equal(bide_target_init(&target, &config, NOW, NULL), BIDE_ERR_INVALID);
    assert_int_equal(core_target_reuse(&target, &config, NOW, &problem), BIDE_ERR_INVALID);
    assert_memory_equal(&target, &before, sizeof target);
}

static void a_target_is_aligned_to_cache_lines_and_at_most_36_of_them(void **state)
{
    assert_true(sizeof target <= 36 * 64);
    assert_int_equal(sizeof target % 64, 0);
    assert_int_equal((uintptr_t)&target % 64, 0);
    assert_int_equal(sizeof target.lane[0], 64);
    assert_int_equal(offsetof(struct bide_target, lane) % 64, 0);
}

/* The part of the configuration that a successful call reads is packed into one word: each bit must match the
 * fields. */
static void the_packed_word_matches_the_configuration(void **state)
{
    struct bide_target_config c = service();
    init_target(&c);
    assert_int_equal(core_hot_breaker_kind(core_hot(&target)), BIDE_BREAKER_BY_TIME);
    assert_int_equal(core_hot_budget_kind(core_hot(&target)), BIDE_BUDGET_TOKENS);
    assert_int_equal(core_hot(&target), 0);

    c.breaker.kind = BIDE_BREAKER_OFF;
    c.breaker.slow_ns = 1 * S;
    c.budget.earn_first_milli = 1;
    c.budget.refund_permille = 1;
    c.budget.cost_failure_milli = 1;
    c.budget.on_empty = BIDE_ON_EMPTY_OPEN;
    c.throttle_k_milli = 2000;
    c.in_flight_max = 1;
    c.key_retries = 1;
    c.hold_off_first = true;
    c.latency = true;
    c.trust = BIDE_TRUST_UNAVAILABLE;
    c.observe = BIDE_GATE_BUDGET | BIDE_GATE_THROTTLE;
    reload(&c);
    uint32_t hot = core_hot(&target);
    assert_int_equal(core_hot_breaker_kind(hot), BIDE_BREAKER_OFF);
    static const uint32_t flags[] = {CORE_HOT_SLOW_IS_FAILURE, CORE_HOT_COUNTS_FIRST, CORE_HOT_REFUND,
                                     CORE_HOT_COST_FAILURE,    CORE_HOT_THROTTLE,     CORE_HOT_KEYS,
                                     CORE_HOT_HOLD_OFF_FIRST,  CORE_HOT_LATENCY,      CORE_HOT_IN_FLIGHT,
                                     CORE_HOT_ON_EMPTY_OPEN};
    for (size_t i = 0; i < COUNT(flags); i++)
        assert_int_equal(hot & flags[i], flags[i]);
    assert_int_equal(hot >> CORE_HOT_TRUST_SHIFT & 3, BIDE_TRUST_UNAVAILABLE);
    assert_int_equal(hot >> CORE_HOT_OBSERVE_SHIFT, BIDE_GATE_BUDGET | BIDE_GATE_THROTTLE);

    c.budget.kind = BIDE_BUDGET_WINDOW; /* counts first attempts with any earnings; failures cost nothing */
    c.budget.earn_first_milli = 0;
    reload(&c);
    assert_int_equal(core_hot(&target) & (CORE_HOT_COUNTS_FIRST | CORE_HOT_COST_FAILURE), CORE_HOT_COUNTS_FIRST);
    c.budget.kind = BIDE_BUDGET_NONE;
    reload(&c);
    assert_int_equal(core_hot(&target) & (CORE_HOT_COUNTS_FIRST | CORE_HOT_COST_FAILURE), 0);
}

/* -- reloading ----------------------------------------------------------------------------------------------------- */

static void a_reload_takes_effect_at_once_as_a_whole(void **state)
{
    struct bide_target_config a = service(), b = fragile(), got;
    init_target(&a);
    for (int i = 0; i < 5; i++) {
        const struct bide_target_config *next = i % 2 ? &a : &b;
        reload(next);
        bide_target_config_get(&target, &got);
        assert_memory_equal(&got, next, sizeof got);
    }
}

static void a_drained_budget_stays_drained_through_a_reload(void **state)
{
    struct bide_target_config config = service();
    init_target(&config);
    assert_int_equal(charge_all_retries(), 10);
    reload(&config);
    assert_int_equal(core_budget_left_milli(&target, NOW), 0);
    config.budget.capacity_milli = 50000;
    reload(&config);
    assert_int_equal(core_budget_left_milli(&target, NOW), 0);
    assert_false(charge_retry());
}

static void a_smaller_capacity_removes_tokens_above_it(void **state)
{
    struct bide_target_config config = service();
    init_target(&config);
    config.budget.capacity_milli = 2000;
    reload(&config);
    assert_int_equal(core_budget_left_milli(&target, NOW), 2000);
    assert_int_equal(charge_all_retries(), 2);
}

static void an_open_breaker_stays_open_through_a_reload(void **state)
{
    struct bide_target_config config = fragile();
    init_target(&config);
    vote(CORE_VOTE_FAILURE, NOW);
    vote(CORE_VOTE_FAILURE, NOW);
    struct bide_breaker_view before = core_breaker_get(&target);
    assert_int_equal(before.state, BIDE_BREAKER_OPEN);
    config.breaker.kind = BIDE_BREAKER_BY_COUNT;
    reload(&config);
    struct bide_breaker_view after = core_breaker_get(&target);
    assert_int_equal(after.state, BIDE_BREAKER_OPEN);
    assert_int_equal(after.until_ns, before.until_ns);
    assert_int_equal(after.generation, before.generation);
    assert_true(core_breaker_is_open_at(&target, NOW + 1 * S));
}

static void the_hold_off_and_keys_survive_a_reload(void **state)
{
    struct bide_target_config config = service();
    uint32_t tick;
    config.key_retries = 1;
    init_target(&config);
    bide_target_hold_off(&target, NOW + 20 * S, NOW);
    assert_true(core_key_charge(&target, 9, NOW, &tick));
    config.throttle_k_milli = 2000;
    reload(&config);
    assert_int_equal(core_hold_off_until(&target, NOW), NOW + 20 * S);
    assert_false(core_key_charge(&target, 9, NOW, &tick));
}

static void evidence_is_kept_by_a_reload_that_still_fits_it(void **state)
{
    struct bide_target_config config = fragile();
    init_target(&config);
    vote(CORE_VOTE_FAILURE, NOW);
    config.breaker.open_ns = 7 * S;
    config.budget.cost_milli = 2000;
    reload(&config);
    vote(CORE_VOTE_FAILURE, NOW);
    assert_int_equal(core_breaker_get(&target).state, BIDE_BREAKER_OPEN);
}

static void evidence_is_cleared_when_a_reload_changes_how_it_is_counted(void **state)
{
    static const struct {
        enum bide_breaker_kind from, to;
        int64_t window_ns;
        uint32_t count_window;
    } rows[] = {
        {BIDE_BREAKER_BY_RUN, BIDE_BREAKER_BY_TIME, 10 * S, 100},
        {BIDE_BREAKER_BY_RUN, BIDE_BREAKER_BY_COUNT, 10 * S, 100},
        {BIDE_BREAKER_BY_TIME, BIDE_BREAKER_BY_TIME, 11 * S, 100},
        {BIDE_BREAKER_BY_TIME, BIDE_BREAKER_BY_TIME, 1 * S, 100},
        {BIDE_BREAKER_BY_TIME, BIDE_BREAKER_BY_RUN, 10 * S, 100},
        {BIDE_BREAKER_BY_COUNT, BIDE_BREAKER_BY_COUNT, 10 * S, 50},
        {BIDE_BREAKER_BY_COUNT, BIDE_BREAKER_BY_TIME, 10 * S, 100},
        {BIDE_BREAKER_BY_COUNT, BIDE_BREAKER_OFF, 10 * S, 100},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct bide_target_config config = fragile();
        config.breaker.kind = rows[i].from;
        config.breaker.min_volume = 2;
        init_target(&config);
        vote(CORE_VOTE_FAILURE, NOW);
        config.breaker.kind = rows[i].to;
        config.breaker.window_ns = rows[i].window_ns;
        config.breaker.count_window = rows[i].count_window;
        reload(&config);
        assert_true(core_breaker_is_evictable(&target, NOW));
        vote(CORE_VOTE_FAILURE, NOW);
        assert_int_equal(core_breaker_get(&target).state, BIDE_BREAKER_CLOSED);
    }
}

static void a_shorter_window_slides_from_the_reload_on(void **state)
{
    struct bide_target_config config = service();
    config.breaker.window_ns = 3600 * S;
    config.breaker.min_volume = 2;
    init_target(&config);
    vote(CORE_VOTE_HEALTHY, NOW);
    config.breaker.window_ns = 10 * S;
    reload(&config);
    vote(CORE_VOTE_FAILURE, NOW + 1 * S);
    vote(CORE_VOTE_FAILURE, NOW + 60 * S);
    assert_int_equal(core_breaker_get(&target).state, BIDE_BREAKER_CLOSED);
    vote(CORE_VOTE_FAILURE, NOW + 61 * S);
    assert_int_equal(core_breaker_get(&target).state, BIDE_BREAKER_OPEN);
}

static void a_bad_reload_changes_nothing_and_the_next_one_works(void **state)
{
    struct bide_target_config config = service(), got;
    struct bide_target before;
    struct bide_problem problem;
    init_target(&config);
    charge_all_retries();
    before = target;
    config.breaker.probes = 9;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(bide_target_configure(&target, &config, NOW, &problem), BIDE_ERR_INVALID);
        assert_string_equal(problem.field, "breaker.probes");
        assert_memory_equal(&target, &before, sizeof target);
    }
    config.breaker.probes = 2;
    reload(&config);
    bide_target_config_get(&target, &got);
    assert_int_equal(got.breaker.probes, 2);
}

static void a_target_without_a_configuration_has_the_gates_of_the_preset_service(void **state)
{
    struct bide_target_config config = service(), got;
    assert_int_equal(bide_target_init(&target, NULL, NOW, NULL), BIDE_OK);
    bide_target_config_get(&target, &got);
    assert_memory_equal(&got, &config, sizeof got);
}

static void a_reload_during_another_reload_is_busy_and_changes_nothing(void **state)
{
    struct bide_target_config config = service(), other = fragile(), got;
    struct bide_problem problem;
    init_target(&config);
    target.claim = NOW | 1; /* another process, since now */
    assert_int_equal(bide_target_configure(&target, &other, NOW + 1 * S, &problem), BIDE_ERR_BUSY);
    assert_string_equal(problem.text, "another thread or process is configuring the target; try again");
    assert_null(problem.field);
    assert_int_equal(bide_target_configure(&target, &other, NOW + 10 * S, NULL), BIDE_ERR_BUSY);
    bide_target_config_get(&target, &got);
    assert_memory_equal(&got, &config, sizeof got);
}

static void the_claim_of_a_killed_process_is_taken_over(void **state)
{
    struct bide_target_config config = service(), other = fragile(), got;
    init_target(&config);
    target.claim = NOW | 1;
    assert_int_equal(bide_target_configure(&target, &other, NOW + 10 * S + 2, NULL), BIDE_OK);
    bide_target_config_get(&target, &got);
    assert_memory_equal(&got, &other, sizeof got);
    reload(&config); /* and it was released again */
}

static void a_lost_race_for_the_claim_is_busy_and_the_next_try_works(void **state)
{
    struct bide_target_config config = service(), other = fragile();
    init_target(&config);
    core_cas_failures = 1;
    assert_int_equal(bide_target_configure(&target, &other, NOW, NULL), BIDE_ERR_BUSY);
    assert_int_equal(core_cas_failures, 0);
    reload(&other);
}

static void a_reader_overtaken_by_a_reload_reads_again(void **state)
{
    struct bide_target_config config = service(), got;
    init_target(&config);
    for (uint32_t times = 1; times <= 3; times++) {
        memset(&got, 0, sizeof got);
        core_unchanged_failures = times;
        bide_target_config_get(&target, &got);
        assert_int_equal(core_unchanged_failures, 0);
        assert_memory_equal(&got, &config, sizeof got);
    }
}

/* -- reloading while other threads read ---------------------------------------------------------------------------- */

#define READERS 3
#define RELOADS 20000

/* Configuration number n: each of its fields encodes n. */
static struct bide_target_config numbered(uint32_t n)
{
    struct bide_target_config config = service();
    config.key_retries = n;
    config.throttle_min_volume = n;
    config.hold_off_max_ns = n;
    config.budget.cost_milli = config.budget.cost_throttled_milli = config.budget.cost_timeout_milli = n;
    config.budget.cooldown_ns = n;
    config.breaker.consecutive = config.breaker.min_volume = n;
    config.breaker.ramp_ns = n;
    return config;
}

static bool is_whole(const struct bide_target_config *c)
{
    uint32_t n = c->key_retries;
    return c->throttle_min_volume == n && c->hold_off_max_ns == n && c->budget.cost_milli == n &&
           c->budget.cost_throttled_milli == n && c->budget.cost_timeout_milli == n && c->budget.cooldown_ns == n &&
           c->breaker.consecutive == n && c->breaker.min_volume == n && c->breaker.ramp_ns == n;
}

struct reading {
    pthread_t thread;
    uint32_t mixtures;
    uint32_t seen[3];
};

static uint32_t reloading_is_over;

static void *read_on(void *argument)
{
    struct reading *r = argument;
    do {
        struct bide_target_config c;
        struct bide_budget_config budget;
        struct bide_breaker_config breaker;
        bide_target_config_get(&target, &c);
        core_budget_config(&target, &budget);
        core_breaker_config(&target, &breaker);
        r->mixtures +=
            !is_whole(&c) || budget.cost_milli != budget.cooldown_ns || breaker.min_volume != breaker.ramp_ns;
        r->seen[c.key_retries % 3]++;
    } while (!__atomic_load_n(&reloading_is_over, __ATOMIC_ACQUIRE));
    return NULL;
}

static void readers_never_see_a_mixture_of_two_configurations(void **state)
{
    struct bide_target_config a = numbered(1), b = numbered(2);
    struct reading readings[READERS] = {0};
    init_target(&a);
    __atomic_store_n(&reloading_is_over, 0, __ATOMIC_RELEASE);
    for (int i = 0; i < READERS; i++)
        assert_int_equal(pthread_create(&readings[i].thread, NULL, read_on, &readings[i]), 0);
    for (int i = 0; i < RELOADS; i++)
        reload(i % 2 ? &a : &b);
    __atomic_store_n(&reloading_is_over, 1, __ATOMIC_RELEASE);
    for (int i = 0; i < READERS; i++) {
        pthread_join(readings[i].thread, NULL);
        assert_int_equal(readings[i].mixtures, 0);
        assert_int_equal(readings[i].seen[0], 0);
        assert_true(readings[i].seen[1] + readings[i].seen[2] > 0);
    }
}

struct writing {
    pthread_t thread;
    struct bide_target_config config;
    uint32_t done, strange;
};

static void *write_on(void *argument)
{
    struct writing *w = argument;
    while (w->done < RELOADS) {
        enum bide_err err = bide_target_configure(&target, &w->config, NOW, NULL);
        w->done += err == BIDE_OK;
        w->strange += err != BIDE_OK && err != BIDE_ERR_BUSY;
    }
    return NULL;
}

static void one_of_two_concurrent_reloads_wins_as_a_whole_and_the_other_is_busy(void **state)
{
    struct bide_target_config got;
    struct writing writings[2] = {{.config = numbered(1)}, {.config = numbered(2)}};
    init_target(&writings[0].config);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&writings[i].thread, NULL, write_on, &writings[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(writings[i].thread, NULL);
    assert_int_equal(writings[0].strange + writings[1].strange, 0);
    bide_target_config_get(&target, &got);
    assert_true(is_whole(&got));
    assert_int_equal(target.active, 2 * RELOADS); /* each successful reload changed it */
}

/* -- a reload that changes the kind of budget ---------------------------------------------------------------------- */

static void a_longer_or_shorter_window_remembers_requests_and_retries(void **state)
{
    static const int64_t windows[] = {1 * S, 9 * S, 11 * S, 3600 * S};
    for (size_t i = 0; i < COUNT(windows); i++) {
        struct bide_target_config config = windowed(10 * S);
        init_target(&config);
        first_attempts(100); /* ten retries */
        for (int n = 0; n < 4; n++)
            assert_true(charge_retry());
        config.budget.window_ns = windows[i];
        reload(&config);
        assert_int_equal(core_budget_left_milli(&target, NOW), 6000);
        assert_int_equal(charge_all_retries(), 6);
    }
}

static void an_exhausted_window_is_not_refilled_by_a_new_length(void **state)
{
    struct bide_target_config config = windowed(10 * S);
    init_target(&config);
    first_attempts(100);
    assert_int_equal(charge_all_retries(), 10);
    config.budget.window_ns = 20 * S;
    reload(&config);
    assert_false(charge_retry());
    assert_int_equal(core_budget_left_milli(&target, NOW), 0);
}

/* A clock that starts at 0, as in the simulator: cleared slots must not count as slots of its first instants. */
static void a_longer_window_does_not_restore_expired_counts(void **state)
{
    struct bide_target_config config = windowed(1 * S);
    assert_int_equal(bide_target_init(&target, &config, 0, NULL), BIDE_OK);
    for (uint32_t i = 0; i < 1000; i++)
        core_budget_record_first(&target, 0, 0);
    config.budget.window_ns = 100 * S;
    assert_int_equal(bide_target_configure(&target, &config, 20 * S, NULL), BIDE_OK);
    for (uint32_t i = 0; i < 100; i++)
        core_budget_record_first(&target, 0, 20 * S);
    assert_int_equal(core_budget_left_milli(&target, 20 * S), 10000);
}

static void a_bucket_starts_with_at_most_what_the_window_had_left(void **state)
{
    struct bide_target_config config = windowed(10 * S), tokens = service();
    init_target(&config);
    first_attempts(100);
    for (int n = 0; n < 7; n++)
        assert_true(charge_retry());
    reload(&tokens);
    assert_int_equal(core_budget_left_milli(&target, NOW), 3000);
    assert_int_equal(charge_all_retries(), 3);
}

static void a_bucket_that_replaces_a_larger_budget_starts_just_full(void **state)
{
    struct bide_target_config config = service(), tokens = service();
    config.budget.kind = BIDE_BUDGET_NONE;
    init_target(&config);
    reload(&tokens);
    assert_int_equal(core_budget_left_milli(&target, NOW), 10000);
}

static void a_drained_bucket_is_not_refilled_by_changing_its_kind_and_back(void **state)
{
    struct bide_target_config tokens = service(), window = windowed(10 * S);
    init_target(&tokens);
    assert_int_equal(charge_all_retries(), 10);
    reload(&window);
    assert_false(charge_retry());
    reload(&tokens);
    assert_false(charge_retry());
}

static void budget_kinds_without_state_can_be_changed_to_and_from(void **state)
{
    static const enum bide_budget_kind kinds[] = {BIDE_BUDGET_CONCURRENCY, BIDE_BUDGET_NONE};
    for (size_t i = 0; i < COUNT(kinds); i++) {
        struct bide_target_config config = service(), other = service();
        other.budget.kind = kinds[i];
        other.budget.reserve = 2;
        init_target(&config);
        reload(&other);
        assert_true(charge_retry());
        other.budget.kind = BIDE_BUDGET_WINDOW;
        reload(&other);
        other.budget.kind = kinds[i];
        reload(&other);
        assert_true(charge_retry());
    }
}

/* -- memory with a new owner --------------------------------------------------------------------------------------- */

static void a_target_in_reused_memory_is_like_new(void **state)
{
    struct bide_target_config config = fragile();
    uint32_t tick;
    config.key_retries = 1;
    init_target(&config);
    charge_all_retries();
    vote(CORE_VOTE_FAILURE, NOW);
    vote(CORE_VOTE_FAILURE, NOW);
    bide_target_hold_off(&target, NOW + 20 * S, NOW);
    assert_true(core_key_charge(&target, 9, NOW, &tick));
    config.budget.capacity_milli = 3000;
    assert_int_equal(core_target_reuse(&target, &config, NOW, NULL), BIDE_OK);
    assert_true(core_target_is_evictable(&target, NOW));
    assert_int_equal(core_budget_left_milli(&target, NOW), 3000);
    assert_int_equal(core_breaker_get(&target).state, BIDE_BREAKER_CLOSED);
    reload(&config);
}

static void a_call_in_flight_does_not_change_the_new_owner(void **state)
{
    struct bide_target_config config = fragile();
    struct bide_policy p = policy();
    struct bide_call calls[3];
    config.key_retries = 5;
    config.latency = true;
    init_target(&config);
    for (uint64_t i = 0; i < 3; i++)
        assert_int_equal(begin(&calls[i], &p, i).action, BIDE_ACTION_START);
    assert_int_equal(bide_call_outcome(&calls[0], 1, &failed, NOW).action, BIDE_ACTION_WAIT);
    assert_int_equal(core_target_reuse(&target, &config, NOW, NULL), BIDE_OK);
    struct bide_target before = target;
    bide_call_cancel(&calls[0], NOW);
    bide_call_outcome(&calls[1], 1, &failed, NOW);
    bide_call_outcome(&calls[2], 1, &ok, NOW + 1 * S);
    assert_memory_equal(&target, &before, sizeof target);
}

static void the_owner_number_may_wrap(void **state)
{
    struct bide_target_config config = service();
    struct bide_policy p = policy();
    struct bide_call call;
    init_target(&config);
    for (uint32_t i = 0; i < 70000; i++)
        assert_int_equal(core_target_reuse(&target, &config, NOW, NULL), BIDE_OK);
    assert_int_equal(target.identity >> 32, 0x62696465);
    assert_int_equal(target.identity & 0xffff, 3);
    assert_int_equal(begin(&call, &p, 1).action, BIDE_ACTION_START);
    assert_int_equal(bide_call_outcome(&call, 1, &ok, NOW).action, BIDE_ACTION_DONE);
}

static void *call_on(void *argument)
{
    struct bide_policy p = policy();
    uint32_t *calls = argument;
    do {
        struct bide_call call;
        struct bide_request request = {.safety = BIDE_SAFE, .seed = ++*calls};
        if (bide_call_begin(&call, &p, &target, &request, NOW).action == BIDE_ACTION_START)
            bide_call_outcome(&call, 1, &failed, NOW);
        bide_call_cancel(&call, NOW);
    } while (!__atomic_load_n(&reloading_is_over, __ATOMIC_ACQUIRE));
    return NULL;
}

/* Race: the call loaded the owner at the beginning of its event; the memory may get a new owner before the event
 * ends. */
static void the_owner_may_change_during_an_event(void **state)
{
    struct bide_target_config config = service();
    pthread_t thread;
    uint32_t calls = 0;
    init_target(&config);
    __atomic_store_n(&reloading_is_over, 0, __ATOMIC_RELEASE);
    assert_int_equal(pthread_create(&thread, NULL, call_on, &calls), 0);
    for (int i = 0; i < RELOADS; i++)
        assert_int_equal(core_target_reuse(&target, &config, NOW, NULL), BIDE_OK);
    __atomic_store_n(&reloading_is_over, 1, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    assert_true(calls > 0);
}

/* -- hold-off ------------------------------------------------------------------------------------------------------ */

static void a_hold_off_is_extended_and_never_shortened(void **state)
{
    struct bide_target_config config = service();
    init_target(&config);
    bide_target_hold_off(&target, NOW + 20 * S, NOW);
    assert_int_equal(core_hold_off_until(&target, NOW), NOW + 20 * S);
    bide_target_hold_off(&target, NOW + 10 * S, NOW);
    bide_target_hold_off(&target, NOW, NOW);
    bide_target_hold_off(&target, 0, NOW);
    bide_target_hold_off(&target, -1, NOW);
    assert_int_equal(core_hold_off_until(&target, NOW), NOW + 20 * S);
    bide_target_hold_off(&target, NOW + 30 * S, NOW);
    assert_int_equal(core_hold_off_until(&target, NOW), NOW + 30 * S);
}

static void a_hold_off_ends_at_its_instant(void **state)
{
    struct bide_target_config config = service();
    init_target(&config);
    bide_target_hold_off(&target, NOW + 20 * S, NOW);
    assert_int_equal(core_hold_off_until(&target, NOW + 20 * S - 1), NOW + 20 * S);
    assert_int_equal(core_hold_off_until(&target, NOW + 20 * S), 0);
}

/* A held permit must be released later, so such a target cannot be reused. */
static void a_target_with_a_held_permit_is_not_reused(void **state)
{
    uint64_t *const held[] = {&target.in_flight, &target.calls, &target.retries};
    struct bide_target_config config = service();
    for (size_t i = 0; i < COUNT(held); i++) {
        init_target(&config);
        *held[i] = 1;
        struct bide_target before = target;
        assert_int_equal(core_target_reuse(&target, &config, NOW, NULL), BIDE_ERR_BUSY);
        assert_memory_equal(&target, &before, sizeof target);
        *held[i] = 0;
        assert_int_equal(core_target_reuse(&target, &config, NOW, NULL), BIDE_OK);
        assert_false(core_permit_acquire(held[i], 0, 10)); /* the old owner can neither acquire */
        core_permit_release(held[i], 0, 1);                /* nor release */
        assert_int_equal(core_permits_held(held[i]), 0);
        assert_true(core_permit_acquire(held[i], 1, 10));
    }
}

static void a_target_that_is_being_configured_is_not_reused(void **state)
{
    struct bide_target_config config = service();
    init_target(&config);
    target.claim = NOW - 1;
    assert_int_equal(core_target_reuse(&target, &config, NOW, NULL), BIDE_ERR_BUSY);
}

static void a_reload_to_a_shorter_maximum_shortens_the_hold_off(void **state)
{
    struct bide_target_config config = service();
    init_target(&config);
    bide_target_hold_off(&target, NOW + 60 * S, NOW);
    config.hold_off_max_ns = 5 * S;
    reload(&config);
    assert_int_equal(core_hold_off_until(&target, NOW), NOW + 5 * S);
}

static void a_reload_to_another_rate_credits_earlier_time_at_the_old_rate(void **state)
{
    struct bide_target_config config = service();
    config.budget.initial_milli = 0;
    config.budget.refill_per_minute_milli = 0;
    init_target(&config);
    config.budget.capacity_milli = 100000;
    config.budget.refill_per_minute_milli = 60000;
    assert_int_equal(bide_target_configure(&target, &config, NOW + 3600 * S, NULL), BIDE_OK);
    assert_int_equal(core_budget_left_milli(&target, NOW + 3600 * S), 0);
    assert_in_range(core_budget_left_milli(&target, NOW + 3602 * S), 1990, 2010); /* accurate to a tick */
}

static void a_reload_that_races_with_a_charge_loses_no_credit(void **state)
{
    struct bide_target_config config = service();
    init_target(&config);
    core_cas_successes = 1; /* the claim */
    core_cas_failures = 1;
    reload(&config);
    assert_int_equal(core_cas_failures, 0);
    assert_int_equal(core_budget_left_milli(&target, NOW), config.budget.capacity_milli);
}

static void a_too_long_hold_off_is_limited_from_now(void **state)
{
    struct bide_target_config config = service();
    config.hold_off_max_ns = 60 * S;
    init_target(&config);
    bide_target_hold_off(&target, BIDE_NEVER, NOW);
    assert_int_equal(core_hold_off_until(&target, NOW), NOW + 60 * S);
    assert_int_equal(core_hold_off_until(&target, NOW + 5 * S), NOW + 60 * S);
}

static void no_hold_off_when_hints_are_not_shared(void **state)
{
    struct bide_target_config config = service();
    config.hold_off_max_ns = 0;
    init_target(&config);
    bide_target_hold_off(&target, NOW + 20 * S, NOW);
    assert_int_equal(core_hold_off_until(&target, NOW), 0);
}

static void a_hold_off_is_extended_despite_lost_races(void **state)
{
    struct bide_target_config config = service();
    for (uint32_t losses = 1; losses <= 3; losses++) {
        init_target(&config);
        core_cas_failures = losses;
        bide_target_hold_off(&target, NOW + 20 * S, NOW);
        assert_int_equal(core_cas_failures, 0);
        assert_int_equal(core_hold_off_until(&target, NOW), NOW + 20 * S);
    }
}

/* -- counters ------------------------------------------------------------------------------------------------------ */

static void refusals_are_counted_by_gate(void **state)
{
    struct bide_target_config config = service();
    struct bide_policy p = policy();
    struct bide_call call;
    config.budget.capacity_milli = 0;
    init_target(&config);
    for (uint64_t i = 0; i < 3; i++) {
        assert_int_equal(begin(&call, &p, i).action, BIDE_ACTION_START);
        assert_int_equal(bide_call_outcome(&call, 1, &failed, NOW).reason, BIDE_REASON_BUDGET_EMPTY);
    }
    bide_breaker_hold(&target, BIDE_HOLD_OPEN);
    for (uint64_t i = 0; i < 2; i++)
        assert_int_equal(begin(&call, &p, i).reason, BIDE_REASON_BREAKER_OPEN);
    p.require_key = true;
    struct bide_request unsafe = {.safety = BIDE_UNSAFE};
    assert_int_equal(bide_call_begin(&call, &p, &target, &unsafe, NOW).reason, BIDE_REASON_KEY_REQUIRED);
    for (uint32_t i = 0; i < BIDE_GATE_COUNT; i++) {
        enum bide_gate gate = (enum bide_gate)(1u << i);
        uint64_t expected = gate == BIDE_GATE_BUDGET ? 3 : gate == BIDE_GATE_BREAKER ? 2 : gate == BIDE_GATE_KEY;
        assert_int_equal(bide_target_get(&target, NOW).refused[BIDE_GATE_INDEX(gate)], expected);
    }
}

static void a_view_has_the_state_of_every_gate(void **state)
{
    struct bide_target_config config = service();
    init_target(&config);
    for (uint32_t i = 0; i < BIDE_GATE_COUNT; i++)
        target.refused[i] = 5 + i;
    bide_budget_add_milli(&target, -3000, NOW);
    bide_breaker_hold(&target, BIDE_HOLD_OPEN);
    bide_target_hold_off(&target, NOW + 2 * S, NOW);
    struct bide_target_view view = bide_target_get(&target, NOW + 1 * S);
    assert_int_equal(view.budget_left_milli, core_budget_left_milli(&target, NOW + 1 * S));
    assert_int_equal(view.hold_off_until_ns, NOW + 2 * S);
    assert_int_equal(bide_target_get(&target, NOW + 2 * S).hold_off_until_ns, 0);
    assert_int_equal(view.breaker.state, BIDE_BREAKER_HELD_OPEN);
    for (uint32_t i = 0; i < BIDE_GATE_COUNT; i++)
        assert_int_equal(view.refused[BIDE_GATE_INDEX(1u << i)], 5 + i);
    for (size_t i = 0; i < COUNT(view.reserved_); i++)
        assert_int_equal(view.reserved_[i], 0);
}

static void the_counts_of_all_lanes_are_summed(void **state)
{
    struct bide_target_config config = windowed(10 * S);
    init_target(&config);
    first_attempts(100);
    assert_int_equal(core_lanes_sum(&target, offsetof(struct bide_lane_words_, requests)), 100);
    for (uint32_t i = 0; i < BIDE_LANES; i++)
        assert_in_range(target.lane[i].requests, 12, 13);
}

/* -- eviction ------------------------------------------------------------------------------------------------------ */

static void a_target_with_an_attempt_in_flight_is_not_evictable(void **state)
{
    struct bide_target_config config = service();
    struct bide_policy p = policy();
    struct bide_call call;
    config.in_flight_max = 5;
    init_target(&config);
    begin(&call, &p, 1);
    assert_false(core_target_is_evictable(&target, NOW));
    bide_call_outcome(&call, 1, &ok, NOW);
    assert_true(core_target_is_evictable(&target, NOW));
}

static void a_target_in_hold_off_is_not_evictable(void **state)
{
    struct bide_target_config config = service();
    init_target(&config);
    bide_target_hold_off(&target, NOW + 20 * S, NOW);
    assert_false(core_target_is_evictable(&target, NOW));
    assert_true(core_target_is_evictable(&target, NOW + 20 * S));
}

static void a_target_whose_budget_is_not_full_is_not_evictable(void **state)
{
    struct bide_target_config config = service();
    init_target(&config);
    assert_true(charge_retry());
    assert_false(core_target_is_evictable(&target, NOW));
    assert_true(core_target_is_evictable(&target, NOW + 61 * S));
}

static void a_target_with_a_failure_in_its_breaker_is_not_evictable(void **state)
{
    struct bide_target_config config = service();
    init_target(&config);
    vote(CORE_VOTE_FAILURE, NOW);
    assert_false(core_target_is_evictable(&target, NOW));
    assert_true(core_target_is_evictable(&target, NOW + 10 * S));
}

static void a_target_with_a_counting_key_is_not_evictable(void **state)
{
    struct bide_target_config config = service();
    uint32_t tick;
    config.key_retries = 1;
    init_target(&config);
    assert_true(core_key_charge(&target, 9, NOW, &tick));
    assert_false(core_target_is_evictable(&target, NOW));
    assert_true(core_target_is_evictable(&target, NOW + 31 * S));
}

static void a_target_that_throttles_is_not_evictable(void **state)
{
    struct bide_target_config config = service();
    config.throttle_k_milli = 2000;
    init_target(&config);
    assert_true(core_target_is_evictable(&target, NOW));
    for (uint64_t seed = 0; seed < 100; seed++)
        core_throttle_admit(&target, 0, (struct core_random_key){seed, 1, CORE_FOR_THROTTLE}, NOW);
    assert_false(core_target_is_evictable(&target, NOW));
    assert_true(core_target_is_evictable(&target, NOW + 120 * S));
}

/* -- the claim, owners and shared targets -------------------------------------------------------------------------- */

static void a_claim_is_stale_after_more_than_ten_seconds(void **state)
{
    struct bide_target_config config = service();
    init_target(&config);
    target.claim = NOW + 1;
    assert_int_equal(bide_target_configure(&target, &config, NOW + 1 + 10 * S, NULL), BIDE_ERR_BUSY);
    assert_int_equal(bide_target_configure(&target, &config, NOW + 2 + 10 * S, NULL), BIDE_OK);
}

static int64_t reload_ns;
static enum bide_err reload_elsewhere_result;

/* Another thread reloads while this one changes the budget, the second CAS of its reload. */
static void reload_elsewhere(uint64_t *word)
{
    struct bide_target_config config = service();
    if (word != &target.budget)
        core_before_cas = reload_elsewhere;
    else
        reload_elsewhere_result = bide_target_configure(&target, &config, reload_ns, NULL);
}

static void a_claim_is_held_at_any_instant(void **state)
{
    static const int64_t clocks[] = {0, 1, 2, NOW, NOW + 1};
    for (size_t i = 0; i < COUNT(clocks); i++) {
        struct bide_target_config config = service();
        reload_ns = clocks[i];
        assert_int_equal(bide_target_init(&target, &config, reload_ns, NULL), BIDE_OK);
        core_before_cas = reload_elsewhere;
        assert_int_equal(bide_target_configure(&target, &config, reload_ns, NULL), BIDE_OK);
        assert_null(core_before_cas);
        assert_int_equal(reload_elsewhere_result, BIDE_ERR_BUSY);
    }
}

static bool early_permit;

/* A call of the first owner asks for a permit after its word was handed over, and before the next word is. */
static void acquire_for_the_first_owner(uint64_t *word)
{
    if (word != &target.calls) {
        core_before_cas = acquire_for_the_first_owner;
        return;
    }
    early_permit = core_permit_acquire(&target.in_flight, 0, 10);
}

static void a_permit_that_was_handed_over_is_not_acquired_by_its_former_owner(void **state)
{
    struct bide_target_config config = service();
    init_target(&config);
    core_before_cas = acquire_for_the_first_owner;
    assert_int_equal(core_target_reuse(&target, &config, NOW, NULL), BIDE_OK);
    assert_null(core_before_cas);
    assert_false(early_permit);
}

static void a_refused_reuse_leaves_the_permits_with_their_owner(void **state)
{
    struct bide_target_config config = service();
    init_target(&config);
    assert_int_equal(core_target_reuse(&target, &config, NOW, NULL), BIDE_OK);
    assert_true(core_permit_acquire(&target.retries, 1, 10));
    assert_int_equal(core_target_reuse(&target, &config, NOW, NULL), BIDE_ERR_BUSY);
    assert_true(core_permit_acquire(&target.in_flight, 1, 10));
    assert_true(core_permit_acquire(&target.calls, 1, 10));
}

static void a_shared_target_counts_no_attempts_in_flight(void **state)
{
    static const struct {
        uint32_t in_flight_max;
        enum bide_budget_kind kind;
        const char *field; /* NULL: accepted */
    } rows[] = {
        {0, BIDE_BUDGET_TOKENS, NULL},
        {0, BIDE_BUDGET_WINDOW, NULL},
        {0, BIDE_BUDGET_NONE, NULL},
        {0, BIDE_BUDGET_CONCURRENCY, "budget.kind"},
        {1, BIDE_BUDGET_TOKENS, "in_flight_max"},
        {2, BIDE_BUDGET_CONCURRENCY, "in_flight_max"},
    };
    struct bide_target_config config = service();
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct bide_problem problem = {0};
        config.in_flight_max = rows[i].in_flight_max;
        config.budget.kind = rows[i].kind;
        init_target(&config); /* a private target may */
        reload(&config);
        target.identity |= CORE_SHARED;
        enum bide_err expected = rows[i].field ? BIDE_ERR_INVALID : BIDE_OK;
        assert_int_equal(bide_target_configure(&target, &config, NOW, &problem), expected);
        assert_int_equal(bide_target_configure(&target, &config, NOW, NULL), expected);
        if (rows[i].field) {
            assert_string_equal(problem.field, rows[i].field);
            assert_int_equal(problem.value, rows[i].in_flight_max > 0 ? rows[i].in_flight_max : rows[i].kind);
        }
    }
    config.throttle_max_permille = 0; /* a wrong configuration is reported as such */
    struct bide_problem problem = {0};
    assert_int_equal(bide_target_configure(&target, &config, NOW, &problem), BIDE_ERR_INVALID);
    assert_string_equal(problem.field, "throttle_max_permille");
}

/* -- what a reload and a late request leave alone ------------------------------------------------------------------ */

static void a_reload_keeps_the_throttle_s_window_unless_its_length_changes(void **state)
{
    struct bide_target_config config = service();
    config.throttle_k_milli = 2000;
    init_target(&config);
    core_throttle_admit(&target, 0, (struct core_random_key){1, 1, CORE_FOR_THROTTLE}, NOW);
    struct bide_window_words_ asks = target.asks;
    assert_true(asks.edge_ns != 0);
    reload(&config);
    assert_memory_equal(&target.asks, &asks, sizeof asks);
    config.throttle_window_ns++;
    reload(&config);
    assert_int_equal(target.asks.edge_ns, 0);
}

static void a_target_whose_throttle_was_turned_off_is_evictable(void **state)
{
    struct bide_target_config config = service();
    config.throttle_k_milli = 2000;
    init_target(&config);
    for (uint64_t seed = 0; seed < 100; seed++)
        core_throttle_admit(&target, 0, (struct core_random_key){seed, 1, CORE_FOR_THROTTLE}, NOW);
    assert_false(core_target_is_evictable(&target, NOW));
    config.throttle_k_milli = 0;
    reload(&config);
    assert_true(core_target_is_evictable(&target, NOW));
}

/* Else the success of an attempt that started before it could no longer end the hold-off. */
static void a_hold_off_that_is_over_when_requested_changes_nothing(void **state)
{
    static const int64_t ends[] = {NOW, NOW + S - 1, NOW + S};
    struct bide_target_config config = service();
    for (size_t i = 0; i < COUNT(ends); i++) {
        init_target(&config);
        bide_target_hold_off(&target, NOW + 10 * S, NOW);
        struct bide_target before = target;
        bide_target_hold_off(&target, ends[i], NOW + S);
        assert_memory_equal(&target, &before, sizeof target);
    }
}

/* The reserved fields are kept, and nothing beside them: the field behind them differs in its first byte. */
static void a_reload_keeps_no_byte_of_the_old_configuration(void **state)
{
    struct bide_target_config config = service(), now;
    (void)state;
    init_target(&config);
    config.throttle_window_ns += 7;
    config.budget.kind = BIDE_BUDGET_WINDOW;
    config.budget.on_empty = BIDE_ON_EMPTY_OPEN;
    config.breaker.ramp_ns += 7;
    reload(&config);
    bide_target_config_get(&target, &now);
    assert_memory_equal(&now, &config, sizeof now);
}

/* Another process may run a later version, which uses the reserved fields of a shared target. */
static void a_reload_keeps_what_a_later_version_has_configured(void **state)
{
    struct bide_target_config config = service();
    (void)state;
    init_target(&config);
    struct bide_target_config *active = &target.config[0];
    for (size_t i = 0; i < COUNT(active->reserved_); i++)
        active->reserved_[i] = 7 + i;
    for (size_t i = 0; i < COUNT(active->reserved_flags_); i++)
        active->reserved_flags_[i] = (uint8_t)(3 + i);
    for (unsigned reloads = 1; reloads <= 3; reloads++) {
        reload(&config);
        active = &target.config[reloads % 2];
        for (size_t i = 0; i < COUNT(active->reserved_); i++)
            assert_int_equal(active->reserved_[i], 7 + i);
        for (size_t i = 0; i < COUNT(active->reserved_flags_); i++)
            assert_int_equal(active->reserved_flags_[i], 3 + i);
    }
}

/* ---- how many attempts may start ---- */

static void assert_next(uint32_t attempts, enum bide_reason reason, int64_t at_ns, int64_t now_ns)
{
    struct bide_admission next = bide_target_next(&target, now_ns);
    assert_int_equal(next.attempts, attempts);
    assert_int_equal(next.reason, reason);
    assert_int_equal(next.at_ns, at_ns);
    for (size_t i = 0; i < COUNT(next.reserved_); i++)
        assert_int_equal(next.reserved_[i], 0);
}

static void nothing_limits_the_attempts_of_a_healthy_target(void **state)
{
    struct bide_target_config config = service();
    (void)state;
    init_target(&config);
    assert_next(UINT32_MAX, BIDE_REASON_NOTHING, NOW, NOW);
    assert_next(UINT32_MAX, BIDE_REASON_NOTHING, S, S); /* shortly after boot: the breaker has not just closed */
    bide_target_hold_off(&target, NOW + S, NOW);        /* for retries only */
    assert_next(UINT32_MAX, BIDE_REASON_NOTHING, NOW, NOW);
    bide_breaker_hold(&target, BIDE_HOLD_CLOSED);
    assert_next(UINT32_MAX, BIDE_REASON_NOTHING, NOW, NOW);
}

static void a_breaker_admits_its_probes_and_then_one_attempt_at_a_time(void **state)
{
    struct bide_target_config config = fragile();
    struct bide_policy p = policy();
    struct bide_call probe[2];
    (void)state;
    config.breaker.probes = 2;
    config.breaker.probe_timeout_ns = 10 * S;
    config.breaker.ramp_ns = 4 * S;
    init_target(&config);
    vote(CORE_VOTE_FAILURE, NOW);
    vote(CORE_VOTE_FAILURE, NOW);
    int64_t until_ns = core_breaker_get(&target).until_ns;
    assert_next(0, BIDE_REASON_BREAKER_OPEN, until_ns, NOW);
    assert_next(0, BIDE_REASON_BREAKER_OPEN, until_ns, until_ns - 1);
    assert_next(2, BIDE_REASON_BREAKER_PROBING, until_ns, until_ns);
    struct bide_request request = {.safety = BIDE_SAFE, .seed = 1};
    assert_int_equal(bide_call_begin(&probe[0], &p, &target, &request, until_ns).action, BIDE_ACTION_START);
    assert_next(1, BIDE_REASON_BREAKER_PROBING, until_ns, until_ns);
    assert_int_equal(bide_call_begin(&probe[1], &p, &target, &request, until_ns + S).action, BIDE_ACTION_START);
    struct bide_admission full = bide_target_next(&target, until_ns + S);
    assert_int_equal(full.attempts, 0);
    assert_in_range(full.at_ns, until_ns + 10 * S, until_ns + 10 * S + 3 * MS); /* the first slot expires */
    assert_next(1, BIDE_REASON_BREAKER_PROBING, full.at_ns, full.at_ns);
    bide_call_outcome(&probe[0], 1, &ok, until_ns + 2 * S);
    full = bide_target_next(&target, until_ns + 2 * S);
    assert_int_equal(full.attempts, 0);
    assert_in_range(full.at_ns, until_ns + 11 * S, until_ns + 11 * S + 3 * MS); /* the second one does */
    bide_call_outcome(&probe[1], 1, &ok, until_ns + 2 * S);
    int64_t ramp_end_ns = ((((until_ns + 2 * S) >> 20) + 1) << 20) + 4 * S; /* the breaker counts in ticks of 2^20 ns */
    assert_next(1, BIDE_REASON_BREAKER_RAMPING, ramp_end_ns - 1, ramp_end_ns - 1);
    assert_next(UINT32_MAX, BIDE_REASON_NOTHING, ramp_end_ns, ramp_end_ns);
    assert_next(1, BIDE_REASON_BREAKER_RAMPING, until_ns + 3 * S, until_ns + 3 * S);
    assert_next(UINT32_MAX, BIDE_REASON_NOTHING, until_ns + 7 * S, until_ns + 7 * S);
    bide_breaker_hold(&target, BIDE_HOLD_OPEN);
    assert_next(0, BIDE_REASON_BREAKER_OPEN, BIDE_NEVER, NOW);
    assert_int_equal(bide_target_get(&target, NOW).breaker.openings_total, 1);
    assert_int_equal(bide_target_get(&target, NOW).reserved_[0], 0);
}

static void the_smallest_limit_of_all_gates_counts(void **state)
{
    struct bide_target_config config = fragile();
    struct bide_policy p = policy();
    struct bide_call calls[3];
    (void)state;
    config.in_flight_max = 3;
    config.hold_off_first = true;
    init_target(&config);
    for (uint32_t i = 0; i < 3; i++) {
        assert_next(3 - i, BIDE_REASON_IN_FLIGHT_FULL, BIDE_NEVER, NOW);
        begin(&calls[i], &p, i + 1);
    }
    core_unchanged_successes = 1; /* the copy of the breaker's settings; that of the limit is repeated */
    core_unchanged_failures = 1;
    assert_next(0, BIDE_REASON_IN_FLIGHT_FULL, BIDE_NEVER, NOW);
    assert_int_equal(core_unchanged_failures, 0);
    bide_call_cancel(&calls[0], NOW);
    bide_target_hold_off(&target, NOW + S, NOW);
    assert_next(0, BIDE_REASON_HOLD_OFF, NOW + S, NOW);
    vote(CORE_VOTE_FAILURE, NOW); /* opens for 5 s, which is longer */
    vote(CORE_VOTE_FAILURE, NOW);
    assert_next(0, BIDE_REASON_BREAKER_OPEN, core_breaker_get(&target).until_ns, NOW);
    bide_target_hold_off(&target, NOW + 60 * S, NOW);
    assert_next(0, BIDE_REASON_HOLD_OFF, NOW + 60 * S, NOW);
    config.in_flight_max = 1; /* fewer than run already */
    config.hold_off_first = false;
    config.observe = BIDE_GATE_BREAKER;
    reload(&config);
    assert_next(0, BIDE_REASON_IN_FLIGHT_FULL, BIDE_NEVER, NOW);
    config.observe = BIDE_GATE_BREAKER | BIDE_GATE_IN_FLIGHT;
    reload(&config);
    assert_next(UINT32_MAX, BIDE_REASON_NOTHING, NOW, NOW);
}

static void a_throttle_that_sheds_admits_one_attempt_at_a_time(void **state)
{
    struct bide_target_config config = service();
    struct bide_policy p = policy();
    (void)state;
    config.throttle_k_milli = 2000;
    config.breaker.kind = BIDE_BREAKER_OFF;
    init_target(&config);
    assert_next(UINT32_MAX, BIDE_REASON_NOTHING, NOW, NOW);
    for (uint64_t i = 0; i < 30; i++) {
        struct bide_call call;
        begin(&call, &p, i + 1);
        bide_call_outcome(&call, 1, &failed, NOW);
        bide_call_cancel(&call, NOW);
    }
    assert_next(1, BIDE_REASON_THROTTLE, NOW, NOW);
    config.observe = BIDE_GATE_THROTTLE;
    reload(&config);
    assert_next(UINT32_MAX, BIDE_REASON_NOTHING, NOW, NOW);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reload_keeps_no_byte_of_the_old_configuration),
        cmocka_unit_test(a_reload_keeps_what_a_later_version_has_configured),
        cmocka_unit_test(nothing_limits_the_attempts_of_a_healthy_target),
        cmocka_unit_test(a_breaker_admits_its_probes_and_then_one_attempt_at_a_time),
        cmocka_unit_test(the_smallest_limit_of_all_gates_counts),
        cmocka_unit_test(a_throttle_that_sheds_admits_one_attempt_at_a_time),
        cmocka_unit_test(a_new_target_has_a_full_budget_a_closed_breaker_and_no_history),
        cmocka_unit_test(init_refuses_a_bad_configuration_and_reports_its_field),
        cmocka_unit_test(a_target_is_aligned_to_cache_lines_and_at_most_36_of_them),
        cmocka_unit_test(the_packed_word_matches_the_configuration),
        cmocka_unit_test(a_reload_takes_effect_at_once_as_a_whole),
        cmocka_unit_test(a_drained_budget_stays_drained_through_a_reload),
        cmocka_unit_test(a_smaller_capacity_removes_tokens_above_it),
        cmocka_unit_test(an_open_breaker_stays_open_through_a_reload),
        cmocka_unit_test(the_hold_off_and_keys_survive_a_reload),
        cmocka_unit_test(evidence_is_kept_by_a_reload_that_still_fits_it),
        cmocka_unit_test(evidence_is_cleared_when_a_reload_changes_how_it_is_counted),
        cmocka_unit_test(a_shorter_window_slides_from_the_reload_on),
        cmocka_unit_test(a_bad_reload_changes_nothing_and_the_next_one_works),
        cmocka_unit_test(a_target_without_a_configuration_has_the_gates_of_the_preset_service),
        cmocka_unit_test(a_reload_during_another_reload_is_busy_and_changes_nothing),
        cmocka_unit_test(the_claim_of_a_killed_process_is_taken_over),
        cmocka_unit_test(a_lost_race_for_the_claim_is_busy_and_the_next_try_works),
        cmocka_unit_test(a_reader_overtaken_by_a_reload_reads_again),
        cmocka_unit_test(readers_never_see_a_mixture_of_two_configurations),
        cmocka_unit_test(one_of_two_concurrent_reloads_wins_as_a_whole_and_the_other_is_busy),
        cmocka_unit_test(a_longer_or_shorter_window_remembers_requests_and_retries),
        cmocka_unit_test(an_exhausted_window_is_not_refilled_by_a_new_length),
        cmocka_unit_test(a_longer_window_does_not_restore_expired_counts),
        cmocka_unit_test(a_bucket_starts_with_at_most_what_the_window_had_left),
        cmocka_unit_test(a_bucket_that_replaces_a_larger_budget_starts_just_full),
        cmocka_unit_test(a_drained_bucket_is_not_refilled_by_changing_its_kind_and_back),
        cmocka_unit_test(budget_kinds_without_state_can_be_changed_to_and_from),
        cmocka_unit_test(a_target_in_reused_memory_is_like_new),
        cmocka_unit_test(a_call_in_flight_does_not_change_the_new_owner),
        cmocka_unit_test(the_owner_number_may_wrap),
        cmocka_unit_test(the_owner_may_change_during_an_event),
        cmocka_unit_test(a_hold_off_is_extended_and_never_shortened),
        cmocka_unit_test(a_hold_off_ends_at_its_instant),
        cmocka_unit_test(a_target_with_a_held_permit_is_not_reused),
        cmocka_unit_test(a_target_that_is_being_configured_is_not_reused),
        cmocka_unit_test(a_reload_to_a_shorter_maximum_shortens_the_hold_off),
        cmocka_unit_test(a_reload_to_another_rate_credits_earlier_time_at_the_old_rate),
        cmocka_unit_test(a_reload_that_races_with_a_charge_loses_no_credit),
        cmocka_unit_test(a_too_long_hold_off_is_limited_from_now),
        cmocka_unit_test(no_hold_off_when_hints_are_not_shared),
        cmocka_unit_test(a_hold_off_is_extended_despite_lost_races),
        cmocka_unit_test(refusals_are_counted_by_gate),
        cmocka_unit_test(a_view_has_the_state_of_every_gate),
        cmocka_unit_test(the_counts_of_all_lanes_are_summed),
        cmocka_unit_test(a_target_with_an_attempt_in_flight_is_not_evictable),
        cmocka_unit_test(a_target_in_hold_off_is_not_evictable),
        cmocka_unit_test(a_target_whose_budget_is_not_full_is_not_evictable),
        cmocka_unit_test(a_target_with_a_failure_in_its_breaker_is_not_evictable),
        cmocka_unit_test(a_target_with_a_counting_key_is_not_evictable),
        cmocka_unit_test(a_target_that_throttles_is_not_evictable),
        cmocka_unit_test(a_claim_is_stale_after_more_than_ten_seconds),
        cmocka_unit_test(a_claim_is_held_at_any_instant),
        cmocka_unit_test(a_permit_that_was_handed_over_is_not_acquired_by_its_former_owner),
        cmocka_unit_test(a_refused_reuse_leaves_the_permits_with_their_owner),
        cmocka_unit_test(a_shared_target_counts_no_attempts_in_flight),
        cmocka_unit_test(a_reload_keeps_the_throttle_s_window_unless_its_length_changes),
        cmocka_unit_test(a_target_whose_throttle_was_turned_off_is_evictable),
        cmocka_unit_test(a_hold_off_that_is_over_when_requested_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
