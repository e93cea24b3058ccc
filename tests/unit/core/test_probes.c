/* test_probes.c - which calls may probe a half-open breaker, which results count, and lost races.
 *
 * A half-open breaker has a few probe slots. A probe occupies its slot until the probe timeout: a probe that does
 * not report in time loses it, and its late result is ignored. The lost races are those of all state changes of the
 * breaker, made to fail one by one. */
#define _POSIX_C_SOURCE 200809L /* pthread_barrier_t */

#include <pthread.h>

#include "breaker_world.h"

/* -- half open ----------------------------------------------------------------------------------------------------- */

static void exactly_the_configured_number_of_a_thousand_calls_probe(void **state)
{
    for (uint32_t probes = 1; probes <= BIDE_PROBES_MAX; probes++) {
        struct bide_target_config config = fragile(probes);
        uint32_t admitted = 0;
        open_breaker(&config);
        for (uint64_t seed = 0; seed < 1000; seed++) {
            struct core_admission a = admit(seed, LATER);
            admitted += a.probe;
            if (!a.probe)
                assert_int_equal(a.refused.reason, BIDE_REASON_BREAKER_PROBING);
        }
        assert_int_equal(admitted, probes);
    }
}

/* The slots work with a clock that began in 1970, too. */
static void the_number_of_probes_is_the_same_with_any_clock(void **state)
{
    static const int64_t clocks[] = {0, 1, INT64_C(1760000000) * S, INT64_C(2000000000) * S};
    for (size_t i = 0; i < COUNT(clocks); i++) {
        struct bide_target_config config = fragile(2);
        uint32_t admitted = 0;
        assert_int_equal(bide_target_init(&target, &config, clocks[i], NULL), BIDE_OK);
        bide_breaker_trip(&target, 1, clocks[i]);
        for (uint64_t seed = 0; seed < 100; seed++)
            admitted += admit(seed, clocks[i] + 6 * S).probe;
        assert_int_equal(admitted, 2);
        assert_true(admit(1, clocks[i] + 17 * S).probe);
    }
}

#define THREADS 8
#define ROUNDS  300
#define ASKS    40

static pthread_barrier_t together;
static uint32_t admitted_together;

static void *admit_together(void *argument)
{
    uint64_t seed = (uint64_t)(uintptr_t)argument;
    for (int round = 0; round < ROUNDS; round++) {
        pthread_barrier_wait(&together); /* open, and the open time is over */
        for (int i = 0; i < ASKS; i++)
            if (core_breaker_admit(&target, seed, LATER).probe)
                __atomic_fetch_add(&admitted_together, 1, __ATOMIC_RELAXED);
        pthread_barrier_wait(&together); /* all threads have requested admission */
    }
    return NULL;
}

static void exactly_the_configured_number_of_eight_threads_probe(void **state)
{
    pthread_t threads[THREADS];
    uint32_t wrong = 0;
    pthread_barrier_init(&together, NULL, THREADS + 1);
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, admit_together, (void *)i), 0);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        struct bide_target_config config = fragile(1 + round % BIDE_PROBES_MAX);
        open_breaker(&config);
        __atomic_store_n(&admitted_together, 0, __ATOMIC_RELAXED);
        pthread_barrier_wait(&together);
        pthread_barrier_wait(&together);
        wrong += __atomic_load_n(&admitted_together, __ATOMIC_RELAXED) != config.breaker.probes;
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&together);
    assert_int_equal(wrong, 0);
}

static void a_neutral_outcome_releases_the_slot_without_a_vote(void **state)
{
    struct bide_target_config config = fragile(1);
    open_breaker(&config);
    for (int i = 0; i < 1000; i++) { /* more often than the stamp can count */
        report(probe_at(LATER), CORE_VOTE_NEUTRAL, LATER);
        assert_int_equal(state_now(), BIDE_BREAKER_HALF_OPEN);
    }
}

/* Opens a breaker with `probes` probes and claims every slot. */
static void claim_all_slots(struct core_admission held[BIDE_PROBES_MAX], uint32_t probes)
{
    struct bide_target_config config = fragile(probes);
    open_breaker(&config);
    for (uint32_t i = 0; i < probes; i++)
        held[i] = probe_at(LATER);
}

static void all_probes_must_succeed_to_close_the_breaker(void **state)
{
    for (uint32_t probes = 1; probes <= BIDE_PROBES_MAX; probes++) {
        struct core_admission held[BIDE_PROBES_MAX];
        claim_all_slots(held, probes);
        for (uint32_t i = 0; i < probes; i++) {
            assert_int_equal(state_now(), BIDE_BREAKER_HALF_OPEN);
            report(held[probes - 1 - i], CORE_VOTE_HEALTHY, LATER);
            if (i + 1 < probes)
                assert_refused(admit(9, LATER), BIDE_REASON_BREAKER_PROBING); /* a successful probe keeps its slot */
        }
        assert_int_equal(state_now(), BIDE_BREAKER_CLOSED);
    }
}

static void one_failed_probe_reopens_the_breaker_for_longer(void **state)
{
    for (uint32_t probes = 1; probes <= BIDE_PROBES_MAX; probes++) {
        struct core_admission held[BIDE_PROBES_MAX];
        claim_all_slots(held, probes);
        for (uint32_t i = 0; i + 1 < probes; i++)
            report(held[i], CORE_VOTE_HEALTHY, LATER);
        report(held[probes - 1], CORE_VOTE_FAILURE, LATER);
        assert_int_equal(state_now(), BIDE_BREAKER_OPEN);
        assert_in_range(core_breaker_get(&target).until_ns - LATER, 10 * S, 10 * S + TICK);
        report(probe_at(LATER + 11 * S), CORE_VOTE_HEALTHY, LATER + 11 * S); /* earlier successes no longer count */
        assert_int_equal(state_now(), probes == 1 ? BIDE_BREAKER_CLOSED : BIDE_BREAKER_HALF_OPEN);
    }
}

/* A reload to fewer probes: all slots that count now have succeeded, and no probe is left to report. */
static void fewer_probes_after_a_reload_do_not_block_the_breaker(void **state)
{
    struct bide_target_config config = fragile(2);
    config.breaker.ramp_ns = 0;
    open_breaker(&config);
    struct core_admission a = probe_at(LATER), b = probe_at(LATER);
    report(a, CORE_VOTE_HEALTHY, LATER);
    report(b, CORE_VOTE_NEUTRAL, LATER);
    config.breaker.probes = 1;
    assert_int_equal(bide_target_configure(&target, &config, LATER, NULL), BIDE_OK);
    admit(1, LATER);
    assert_admitted(admit(2, LATER + 1 * S), false);
    assert_int_equal(state_now(), BIDE_BREAKER_CLOSED);
}

static void more_probes_after_a_reload_must_all_succeed(void **state)
{
    struct bide_target_config config = fragile(1);
    open_breaker(&config);
    struct core_admission a = probe_at(LATER);
    config.breaker.probes = 3;
    assert_int_equal(bide_target_configure(&target, &config, LATER, NULL), BIDE_OK);
    report(a, CORE_VOTE_HEALTHY, LATER);
    assert_int_equal(state_now(), BIDE_BREAKER_HALF_OPEN);
    report(probe_at(LATER), CORE_VOTE_HEALTHY, LATER);
    report(probe_at(LATER), CORE_VOTE_HEALTHY, LATER);
    assert_int_equal(state_now(), BIDE_BREAKER_CLOSED);
}

/* A process was killed after its probe had succeeded and before it could close the breaker. */
static void a_process_killed_between_success_and_closing_does_not_block_the_breaker(void **state)
{
    struct bide_target_config config = fragile(1);
    config.breaker.ramp_ns = 0;
    open_breaker(&config);
    struct core_admission a = probe_at(LATER);
    uint64_t half_open = target.breaker;
    report(a, CORE_VOTE_HEALTHY, LATER);
    target.breaker = half_open;
    admit(1, LATER + 1 * S);
    assert_admitted(admit(2, LATER + 2 * S), false);
    assert_int_equal(state_now(), BIDE_BREAKER_CLOSED);
}

static void a_cancelled_or_permanent_probe_releases_its_slot(void **state)
{
    static const enum bide_kind neutral[] = {BIDE_KIND_PERMANENT, BIDE_KIND_CONFLICT, BIDE_KIND_CANCELLED};
    struct bide_target_config config = fragile(1);
    struct bide_policy policy = single_attempt();
    struct bide_call c, other;
    for (size_t i = 0; i < COUNT(neutral) + 1; i++) {
        open_breaker(&config);
        assert_int_equal(begin(&c, &policy, 1, LATER).action, BIDE_ACTION_START);
        assert_int_equal(begin(&other, &policy, 2, LATER).reason, BIDE_REASON_BREAKER_PROBING);
        if (i < COUNT(neutral))
            bide_call_outcome(&c, 1, &(struct bide_outcome){.kind = neutral[i], .evidence = BIDE_EVIDENCE_ANSWERED},
                              LATER);
        else
            bide_call_cancel(&c, LATER);
        assert_int_equal(state_now(), BIDE_BREAKER_HALF_OPEN);
        assert_int_equal(begin(&other, &policy, 3, LATER).action, BIDE_ACTION_START);
    }
}

static void a_successful_probe_closes_the_breaker_and_a_failed_one_reopens_it(void **state)
{
    struct bide_target_config config = fragile(1);
    struct bide_policy policy = single_attempt();
    struct bide_call c;
    open_breaker(&config);
    begin(&c, &policy, 1, LATER);
    bide_call_outcome(&c, 1, &bad_gateway, LATER);
    assert_int_equal(state_now(), BIDE_BREAKER_OPEN);
    assert_int_equal(begin(&c, &policy, 1, LATER + 20 * S).action, BIDE_ACTION_START);
    bide_call_outcome(&c, 1, &ok, LATER + 20 * S);
    assert_int_equal(state_now(), BIDE_BREAKER_CLOSED);
}

/* -- probe timeout ------------------------------------------------------------------------------------------------- */

static void a_probe_that_times_out_loses_its_slot(void **state)
{
    struct bide_target_config config = fragile(1);
    open_breaker(&config);
    for (int64_t n = 0; n < 5; n++) {
        int64_t at = LATER + n * 11 * S;
        probe_at(at);
        assert_refused(admit(2, at + 1), BIDE_REASON_BREAKER_PROBING);
        assert_refused(admit(2, at + 10 * S), BIDE_REASON_BREAKER_PROBING);
    }
    assert_int_equal(state_now(), BIDE_BREAKER_HALF_OPEN);
    report(probe_at(LATER + 60 * S), CORE_VOTE_HEALTHY, LATER + 60 * S); /* a minute later it still closes */
    assert_int_equal(state_now(), BIDE_BREAKER_CLOSED);
}

static void a_successful_probe_counts_beyond_its_timeout(void **state)
{
    struct bide_target_config config = fragile(2);
    open_breaker(&config);
    report(probe_at(LATER), CORE_VOTE_HEALTHY, LATER);
    report(probe_at(LATER + 3600 * S), CORE_VOTE_HEALTHY, LATER + 3600 * S);
    assert_int_equal(state_now(), BIDE_BREAKER_CLOSED);
}

static void a_probe_timeout_of_thirty_years_is_no_success(void **state)
{
    struct bide_target_config config = fragile(1);
    const int64_t late = 14 * (BIDE_DURATION_MAX / 10), last_tick = (INT64_C(1) << 41) - 1;
    config.breaker.probe_timeout_ns = BIDE_DURATION_MAX;
    init_target(&config);
    bide_breaker_trip(&target, 1, late);
    struct core_admission a = probe_at(late + 6 * S);
    assert_refused(admit(2, late + 7 * S), BIDE_REASON_BREAKER_PROBING);
    assert_refused(admit(2, (last_tick - 2) * TICK), BIDE_REASON_BREAKER_PROBING); /* the latest end of a slot */
    assert_int_equal(state_now(), BIDE_BREAKER_HALF_OPEN);
    report(a, CORE_VOTE_HEALTHY, late + 8 * S);
    assert_int_equal(state_now(), BIDE_BREAKER_CLOSED);
}

/* -- results that come too late or twice --------------------------------------------------------------------------- */

/* All possible votes. */
static const enum core_vote votes[] = {CORE_VOTE_HEALTHY, CORE_VOTE_FAILURE, CORE_VOTE_NEUTRAL};

static void a_result_after_the_probe_timeout_is_ignored(void **state)
{
    for (size_t i = 0; i < COUNT(votes); i++) {
        struct bide_target_config config = fragile(1);
        open_breaker(&config);
        struct core_admission late = probe_at(LATER);
        uint64_t gate = target.breaker;
        report(late, votes[i], LATER + 10 * S + TICK);
        assert_int_equal(target.breaker, gate);
    }
}

static void a_result_after_the_slot_was_reassigned_is_ignored(void **state)
{
    for (size_t i = 0; i < COUNT(votes); i++) {
        struct bide_target_config config = fragile(1);
        open_breaker(&config);
        struct core_admission late = probe_at(LATER), next = probe_at(LATER + 11 * S);
        uint64_t gate = target.breaker;
        report(late, votes[i], LATER + 12 * S);
        assert_int_equal(target.breaker, gate);
        assert_refused(admit(3, LATER + 12 * S),
                       BIDE_REASON_BREAKER_PROBING); /* the slot still belongs to the other probe */
        report(next, CORE_VOTE_HEALTHY, LATER + 12 * S);
        assert_int_equal(state_now(), BIDE_BREAKER_CLOSED);
    }
}

/* The stamp of a slot has 128 values: the late result finds its own stamp again only after as many claims. */
static void a_result_is_ignored_for_the_next_127_claims_of_its_slot(void **state)
{
    struct bide_target_config config = fragile(1);
    open_breaker(&config);
    struct core_admission late = probe_at(LATER);
    for (int64_t n = 1; n < 128; n++) {
        probe_at(LATER + n * 11 * S);
        report(late, CORE_VOTE_FAILURE, LATER + n * 11 * S);
        assert_int_equal(state_now(), BIDE_BREAKER_HALF_OPEN);
    }
}

static void a_result_of_an_earlier_half_open_period_is_ignored(void **state)
{
    for (size_t i = 0; i < COUNT(votes); i++) {
        struct bide_target_config config = fragile(2);
        config.breaker.probe_timeout_ns = 3600 * S;
        open_breaker(&config);
        struct core_admission late = probe_at(LATER);
        report(probe_at(LATER), CORE_VOTE_FAILURE, LATER);
        int64_t again = LATER + 20 * S;
        probe_at(again);
        uint64_t gate = target.breaker;
        report(late, votes[i], again);
        assert_int_equal(target.breaker, gate);
        assert_admitted(admit(3, again), true); /* one slot left, as before */
        assert_refused(admit(4, again), BIDE_REASON_BREAKER_PROBING);
    }
}

static void a_result_counts_once(void **state)
{
    struct bide_target_config config = fragile(2);
    open_breaker(&config);
    struct core_admission a = probe_at(LATER);
    for (int i = 0; i < 3; i++)
        report(a, CORE_VOTE_HEALTHY, LATER);
    report(a, CORE_VOTE_FAILURE, LATER);
    report(a, CORE_VOTE_NEUTRAL, LATER);
    assert_int_equal(state_now(), BIDE_BREAKER_HALF_OPEN);
    struct core_admission b = probe_at(LATER);
    report(b, CORE_VOTE_NEUTRAL, LATER);
    report(b, CORE_VOTE_HEALTHY, LATER); /* it released its slot */
    assert_int_equal(state_now(), BIDE_BREAKER_HALF_OPEN);
}

static void results_of_calls_begun_before_the_opening_never_vote(void **state)
{
    struct bide_target_config config = fragile(2);
    struct core_admission early;
    config.breaker.consecutive = 3;
    config.breaker.ramp_ns = 0;
    init_target(&config);
    early = admit(1, NOW);
    bide_breaker_trip(&target, 1, NOW);
    uint64_t gate = target.breaker;
    for (int i = 0; i < 100; i++)
        report(early, i % 2 ? CORE_VOTE_FAILURE : CORE_VOTE_HEALTHY, NOW); /* while open */
    assert_int_equal(target.breaker, gate);
    struct core_admission a = probe_at(LATER), b = probe_at(LATER);
    gate = target.breaker;
    for (int i = 0; i < 100; i++)
        report(early, i % 2 ? CORE_VOTE_FAILURE : CORE_VOTE_HEALTHY, LATER); /* while half open */
    assert_int_equal(target.breaker, gate);
    report(a, CORE_VOTE_HEALTHY, LATER);
    report(b, CORE_VOTE_HEALTHY, LATER);
    for (int i = 0; i < 100; i++)
        report(early, CORE_VOTE_FAILURE, LATER); /* and after closing */
    assert_int_equal(state_now(), BIDE_BREAKER_CLOSED);
    calls("xx", LATER);
    assert_int_equal(state_now(), BIDE_BREAKER_CLOSED); /* two of three: the late votes left no evidence */
}

/* -- lost races ---------------------------------------------------------------------------------------------------- */

static void a_lost_race_to_open_leaves_the_breaker_closed_with_its_evidence(void **state)
{
    struct bide_target_config config = fragile(1);
    config.breaker.consecutive = 3;
    init_target(&config);
    calls("xx", NOW);
    core_cas_failures = 1;
    call('x', NOW);
    assert_int_equal(core_cas_failures, 0);
    assert_int_equal(state_now(), BIDE_BREAKER_CLOSED);
    assert_int_equal(target.openings, 0);
    call('x', NOW);
    assert_int_equal(state_now(), BIDE_BREAKER_OPEN);
    assert_int_equal(target.openings, 1);
}

static void a_lost_race_to_half_open_is_a_normal_refusal(void **state)
{
    struct bide_target_config config = fragile(1);
    open_breaker(&config);
    core_cas_failures = 1;
    assert_refused(admit(1, LATER), BIDE_REASON_BREAKER_PROBING);
    assert_int_equal(core_cas_failures, 0);
    assert_int_equal(state_now(), BIDE_BREAKER_OPEN);
    probe_at(LATER);
}

static void probe_elsewhere(uint64_t *word)
{
    assert_ptr_equal(word, &target.breaker);
    probe_at(LATER);
}

/* Race: another thread makes the same change. The loser is refused, though a second slot is free. */
static void the_loser_of_the_race_to_half_open_is_no_probe(void **state)
{
    struct bide_target_config config = fragile(2);
    open_breaker(&config);
    core_before_cas = probe_elsewhere;
    assert_refused(admit(2, LATER), BIDE_REASON_BREAKER_PROBING);
    probe_at(LATER);
}

static void a_lost_race_for_a_slot_tries_the_next_slot(void **state)
{
    struct bide_target_config config = fragile(2);
    open_breaker(&config);
    core_cas_successes = 1; /* half open */
    core_cas_failures = 1;
    probe_at(LATER);
    assert_int_equal(core_cas_failures, 0);
    core_cas_failures = 1;
    assert_refused(admit(2, LATER), BIDE_REASON_BREAKER_PROBING);
    assert_int_equal(core_cas_failures, 0);
    probe_at(LATER);
    assert_refused(admit(3, LATER), BIDE_REASON_BREAKER_PROBING);
}

static void a_caller_that_stalled_while_the_state_changed_claims_no_slot(void **state)
{
    struct bide_target_config config = fragile(2);
    open_breaker(&config);
    probe_at(LATER);
    struct bide_target before = target;
    core_unchanged_successes = 1; /* the configuration is copied first */
    core_unchanged_failures = 1;
    assert_refused(admit(2, LATER), BIDE_REASON_BREAKER_PROBING);
    assert_int_equal(core_unchanged_failures, 0);
    assert_memory_equal(target.probe, before.probe, sizeof target.probe);
    probe_at(LATER); /* the next caller claims the slot */
}

static void a_result_that_loses_its_race_is_ignored_and_keeps_its_slot(void **state)
{
    static const enum core_vote mild[] = {CORE_VOTE_HEALTHY, CORE_VOTE_NEUTRAL}; /* a failure: the next test */
    for (size_t i = 0; i < COUNT(mild); i++) {
        struct bide_target_config config = fragile(1);
        open_breaker(&config);
        struct core_admission a = probe_at(LATER);
        core_cas_failures = 1;
        report(a, mild[i], LATER);
        assert_int_equal(core_cas_failures, 0);
        assert_int_equal(state_now(), BIDE_BREAKER_HALF_OPEN);
        assert_refused(admit(2, LATER), BIDE_REASON_BREAKER_PROBING);
        probe_at(LATER + 11 * S);
    }
}

static void a_failed_probe_that_loses_the_race_to_open_keeps_its_slot(void **state)
{
    struct bide_target_config config = fragile(1);
    open_breaker(&config);
    struct core_admission a = probe_at(LATER);
    core_cas_failures = 1;
    report(a, CORE_VOTE_FAILURE, LATER);
    assert_int_equal(core_cas_failures, 0);
    assert_int_equal(target.openings, 1);
    assert_refused(admit(2, LATER), BIDE_REASON_BREAKER_PROBING);
    probe_at(LATER + 11 * S);
}

/* Normally the winner of the race has closed the breaker; if there is none, the next call does. */
static void a_lost_race_to_close_leaves_it_to_the_next_call(void **state)
{
    struct bide_target_config config = fragile(1);
    config.breaker.ramp_ns = 0;
    open_breaker(&config);
    struct core_admission a = probe_at(LATER);
    core_cas_successes = 1; /* the report itself */
    core_cas_failures = 1;
    report(a, CORE_VOTE_HEALTHY, LATER);
    assert_int_equal(core_cas_failures, 0);
    assert_int_equal(state_now(), BIDE_BREAKER_HALF_OPEN);
    admit(2, LATER);
    assert_int_equal(state_now(), BIDE_BREAKER_CLOSED);
    assert_admitted(admit(3, LATER), false);
}

static void a_lost_race_to_reset_the_opening_count_resets_it_later(void **state)
{
    struct bide_target_config config = fragile(1);
    close_breaker(&config);
    core_cas_failures = 1;
    assert_admitted(admit(1, LATER + 80 * S), false);
    assert_int_equal(core_cas_failures, 0);
    assert_int_equal(core_breaker_get(&target).openings, 1);
    assert_admitted(admit(1, LATER + 80 * S), false);
    assert_int_equal(core_breaker_get(&target).openings, 0);
}

/* Another process wrote the state without a new generation: the ticket of the probe fits, its vote does not. */
static void a_probe_votes_only_while_the_breaker_is_half_open(void **state)
{
    static const enum bide_breaker_state others[] = {BIDE_BREAKER_CLOSED, BIDE_BREAKER_OPEN, BIDE_BREAKER_HELD_CLOSED,
                                                     BIDE_BREAKER_HELD_OPEN};
    struct bide_target_config config = fragile(1);
    for (size_t i = 0; i < COUNT(others); i++) {
        open_breaker(&config);
        struct core_admission probe = probe_at(LATER);
        target.breaker = (target.breaker & ~UINT64_C(7)) | others[i];
        report(probe, CORE_VOTE_FAILURE, LATER);
        report(probe, CORE_VOTE_HEALTHY, LATER);
        assert_int_equal(state_now(), others[i]);
    }
}

/* Another thread holds and releases the breaker, which closes it, and records a failure there. */
static void close_and_fail_elsewhere(uint64_t *word)
{
    if (word != &target.breaker) {
        core_before_cas = close_and_fail_elsewhere;
        return;
    }
    bide_breaker_hold(&target, BIDE_HOLD_CLOSED);
    bide_breaker_hold(&target, BIDE_HOLD_RELEASE);
    call('x', LATER);
}

/* Race: a thread that comes too late to close the breaker must not clear the votes that were cast since. */
static void only_the_thread_that_closes_the_breaker_clears_the_votes(void **state)
{
    struct bide_target_config config = fragile(1);
    config.breaker.consecutive = 2;
    open_breaker(&config);
    struct core_admission probe = probe_at(LATER);
    core_before_cas = close_and_fail_elsewhere;
    report(probe, CORE_VOTE_HEALTHY, LATER);
    assert_null(core_before_cas);
    assert_int_equal(target.failures, 1);
    call('x', LATER);
    assert_int_equal(state_now(), BIDE_BREAKER_OPEN);
}

/* A reload lowers the number of probes: a success in a slot beyond it does not count. */
static void a_success_beyond_the_number_of_probes_does_not_close_the_breaker(void **state)
{
    struct bide_target_config config = fragile(2);
    open_breaker(&config);
    struct core_admission first = probe_at(LATER), second = probe_at(LATER);
    report(second, CORE_VOTE_HEALTHY, LATER);
    config.breaker.probes = 1;
    assert_int_equal(bide_target_configure(&target, &config, LATER, NULL), BIDE_OK);
    report(first, CORE_VOTE_NEUTRAL, LATER);
    assert_int_equal(state_now(), BIDE_BREAKER_HALF_OPEN);
    report(probe_at(LATER), CORE_VOTE_HEALTHY, LATER);
    assert_int_equal(state_now(), BIDE_BREAKER_CLOSED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exactly_the_configured_number_of_a_thousand_calls_probe),
        cmocka_unit_test(the_number_of_probes_is_the_same_with_any_clock),
        cmocka_unit_test(exactly_the_configured_number_of_eight_threads_probe),
        cmocka_unit_test(a_neutral_outcome_releases_the_slot_without_a_vote),
        cmocka_unit_test(all_probes_must_succeed_to_close_the_breaker),
        cmocka_unit_test(one_failed_probe_reopens_the_breaker_for_longer),
        cmocka_unit_test(fewer_probes_after_a_reload_do_not_block_the_breaker),
        cmocka_unit_test(more_probes_after_a_reload_must_all_succeed),
        cmocka_unit_test(a_process_killed_between_success_and_closing_does_not_block_the_breaker),
        cmocka_unit_test(a_cancelled_or_permanent_probe_releases_its_slot),
        cmocka_unit_test(a_successful_probe_closes_the_breaker_and_a_failed_one_reopens_it),
        cmocka_unit_test(a_probe_that_times_out_loses_its_slot),
        cmocka_unit_test(a_successful_probe_counts_beyond_its_timeout),
        cmocka_unit_test(a_probe_timeout_of_thirty_years_is_no_success),
        cmocka_unit_test(a_result_after_the_probe_timeout_is_ignored),
        cmocka_unit_test(a_result_after_the_slot_was_reassigned_is_ignored),
        cmocka_unit_test(a_result_is_ignored_for_the_next_127_claims_of_its_slot),
        cmocka_unit_test(a_result_of_an_earlier_half_open_period_is_ignored),
        cmocka_unit_test(a_result_counts_once),
        cmocka_unit_test(results_of_calls_begun_before_the_opening_never_vote),
        cmocka_unit_test(a_lost_race_to_open_leaves_the_breaker_closed_with_its_evidence),
        cmocka_unit_test(a_lost_race_to_half_open_is_a_normal_refusal),
        cmocka_unit_test(the_loser_of_the_race_to_half_open_is_no_probe),
        cmocka_unit_test(a_lost_race_for_a_slot_tries_the_next_slot),
        cmocka_unit_test(a_caller_that_stalled_while_the_state_changed_claims_no_slot),
        cmocka_unit_test(a_result_that_loses_its_race_is_ignored_and_keeps_its_slot),
        cmocka_unit_test(a_failed_probe_that_loses_the_race_to_open_keeps_its_slot),
        cmocka_unit_test(a_lost_race_to_close_leaves_it_to_the_next_call),
        cmocka_unit_test(a_lost_race_to_reset_the_opening_count_resets_it_later),
        cmocka_unit_test(a_probe_votes_only_while_the_breaker_is_half_open),
        cmocka_unit_test(only_the_thread_that_closes_the_breaker_clears_the_votes),
        cmocka_unit_test(a_success_beyond_the_number_of_probes_does_not_close_the_breaker),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
