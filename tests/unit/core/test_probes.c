/* test_probes.c - who may probe a breaker that was open, whose result is heard, and who loses a race.
 *
 * Half open, a breaker has a few places. A place is leased: a probe that does not report in time loses it, and what it
 * says later is not heard. The lost races are those of all changes of the breaker, made to fail one by one. */
#define _POSIX_C_SOURCE 200809L /* pthread_barrier_t */

#include <pthread.h>

#include "breaker_world.h"

/* -- half open ------------------------------------------------------------------------------------------------------*/

static void of_a_thousand_callers_exactly_so_many_probe(void **state)
{
    for (uint32_t probes = 1; probes <= BIDE_PROBES_MAX; probes++) {
        struct bide_target_config config = fragile(probes);
        uint32_t admitted = 0;
        open_it(&config);
        for (uint64_t seed = 0; seed < 1000; seed++) {
            struct core_admission a = ask(seed, LATER);
            admitted += a.probe;
            if (!a.probe)
                assert_int_equal(a.refused, BIDE_REASON_BREAKER_PROBING);
        }
        assert_int_equal(admitted, probes);
    }
}

/* The places count from a clock that began in 1970, too. */
static void a_clock_of_any_age_admits_as_many(void **state)
{
    static const int64_t clocks[] = {0, 1, INT64_C(1760000000) * S, INT64_C(2000000000) * S};
    for (size_t i = 0; i < COUNT(clocks); i++) {
        struct bide_target_config config = fragile(2);
        uint32_t admitted = 0;
        assert_int_equal(bide_target_init(&target, &config, clocks[i], NULL), BIDE_OK);
        bide_breaker_trip(&target, 1, clocks[i]);
        for (uint64_t seed = 0; seed < 100; seed++)
            admitted += ask(seed, clocks[i] + 6 * S).probe;
        assert_int_equal(admitted, 2);
        assert_true(ask(1, clocks[i] + 17 * S).probe);
    }
}

#define THREADS 8
#define ROUNDS  300
#define ASKS    40

static pthread_barrier_t together;
static uint32_t admitted_together;

static void *ask_together(void *argument)
{
    uint64_t seed = (uint64_t)(uintptr_t)argument;
    for (int round = 0; round < ROUNDS; round++) {
        pthread_barrier_wait(&together); /* it is open, and the time has come */
        for (int i = 0; i < ASKS; i++)
            if (core_breaker_admit(&target, seed, LATER).probe)
                __atomic_fetch_add(&admitted_together, 1, __ATOMIC_RELAXED);
        pthread_barrier_wait(&together); /* all have asked */
    }
    return NULL;
}

static void of_eight_threads_that_ask_at_once_exactly_so_many_probe(void **state)
{
    pthread_t threads[THREADS];
    uint32_t wrong = 0;
    pthread_barrier_init(&together, NULL, THREADS + 1);
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_together, (void *)i), 0);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        struct bide_target_config config = fragile(1 + round % BIDE_PROBES_MAX);
        open_it(&config);
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

static void a_neutral_outcome_returns_the_place_without_a_vote(void **state)
{
    struct bide_target_config config = fragile(1);
    open_it(&config);
    for (int i = 0; i < 1000; i++) { /* more often than a stamp can count */
        report(probe_at(LATER), CORE_VOTE_NEUTRAL, LATER);
        assert_int_equal(state_now(), BIDE_BREAKER_HALF_OPEN);
    }
}

/* Opens a breaker of so many probes, and takes every place. */
static void hold_all_places(struct core_admission held[BIDE_PROBES_MAX], uint32_t probes)
{
    struct bide_target_config config = fragile(probes);
    open_it(&config);
    for (uint32_t i = 0; i < probes; i++)
        held[i] = probe_at(LATER);
}

static void all_probes_must_succeed_before_it_closes(void **state)
{
    for (uint32_t probes = 1; probes <= BIDE_PROBES_MAX; probes++) {
        struct core_admission held[BIDE_PROBES_MAX];
        hold_all_places(held, probes);
        for (uint32_t i = 0; i < probes; i++) {
            assert_int_equal(state_now(), BIDE_BREAKER_HALF_OPEN);
            report(held[probes - 1 - i], CORE_VOTE_HEALTHY, LATER);
            if (i + 1 < probes)
                assert_refused(ask(9, LATER), BIDE_REASON_BREAKER_PROBING); /* one that succeeded keeps its place */
        }
        assert_int_equal(state_now(), BIDE_BREAKER_CLOSED);
    }
}

static void one_failed_probe_opens_it_again_for_longer_whatever_the_others_said(void **state)
{
    for (uint32_t probes = 1; probes <= BIDE_PROBES_MAX; probes++) {
        struct core_admission held[BIDE_PROBES_MAX];
        hold_all_places(held, probes);
        for (uint32_t i = 0; i + 1 < probes; i++)
            report(held[i], CORE_VOTE_HEALTHY, LATER);
        report(held[probes - 1], CORE_VOTE_FAILURE, LATER);
        assert_int_equal(state_now(), BIDE_BREAKER_OPEN);
        assert_in_range(bide_breaker_get(&target).until_ns - LATER, 10 * S, 10 * S + TICK);
        report(probe_at(LATER + 11 * S), CORE_VOTE_HEALTHY, LATER + 11 * S); /* earlier successes are of no use now */
        assert_int_equal(state_now(), probes == 1 ? BIDE_BREAKER_CLOSED : BIDE_BREAKER_HALF_OPEN);
    }
}

/* A reload to fewer probes: the places that decide now have all succeeded, and nobody is left to report. */
static void fewer_probes_after_a_reload_do_not_lock_it(void **state)
{
    struct bide_target_config config = fragile(2);
    config.breaker.ramp_ns = 0;
    open_it(&config);
    struct core_admission a = probe_at(LATER), b = probe_at(LATER);
    report(a, CORE_VOTE_HEALTHY, LATER);
    report(b, CORE_VOTE_NEUTRAL, LATER);
    config.breaker.probes = 1;
    assert_int_equal(bide_target_configure(&target, &config, LATER, NULL), BIDE_OK);
    ask(1, LATER);
    assert_admitted(ask(2, LATER + 1 * S), false);
    assert_int_equal(state_now(), BIDE_BREAKER_CLOSED);
}

static void more_probes_after_a_reload_must_all_succeed(void **state)
{
    struct bide_target_config config = fragile(1);
    open_it(&config);
    struct core_admission a = probe_at(LATER);
    config.breaker.probes = 3;
    assert_int_equal(bide_target_configure(&target, &config, LATER, NULL), BIDE_OK);
    report(a, CORE_VOTE_HEALTHY, LATER);
    assert_int_equal(state_now(), BIDE_BREAKER_HALF_OPEN);
    report(probe_at(LATER), CORE_VOTE_HEALTHY, LATER);
    report(probe_at(LATER), CORE_VOTE_HEALTHY, LATER);
    assert_int_equal(state_now(), BIDE_BREAKER_CLOSED);
}

/* A process killed after its probe had succeeded and before it could close the breaker. */
static void a_process_killed_between_its_success_and_the_closing_does_not_lock_it(void **state)
{
    struct bide_target_config config = fragile(1);
    config.breaker.ramp_ns = 0;
    open_it(&config);
    struct core_admission a = probe_at(LATER);
    uint64_t half_open = target.breaker;
    report(a, CORE_VOTE_HEALTHY, LATER);
    target.breaker = half_open;
    ask(1, LATER + 1 * S);
    assert_admitted(ask(2, LATER + 2 * S), false);
    assert_int_equal(state_now(), BIDE_BREAKER_CLOSED);
}

static void a_probing_call_that_is_cancelled_or_permanent_makes_room_for_the_next(void **state)
{
    static const enum bide_kind neutral[] = {BIDE_KIND_PERMANENT, BIDE_KIND_CONFLICT, BIDE_KIND_CANCELLED};
    struct bide_target_config config = fragile(1);
    struct bide_policy policy = once();
    struct bide_call c, other;
    for (size_t i = 0; i < COUNT(neutral) + 1; i++) {
        open_it(&config);
        assert_int_equal(begin(&c, &policy, 1, LATER).action, BIDE_START);
        assert_int_equal(begin(&other, &policy, 2, LATER).reason, BIDE_REASON_BREAKER_PROBING);
        if (i < COUNT(neutral))
            bide_call_outcome(&c, 1, &(struct bide_outcome){.kind = neutral[i], .evidence = BIDE_EVIDENCE_ANSWERED},
                              LATER);
        else
            bide_call_cancel(&c, LATER);
        assert_int_equal(state_now(), BIDE_BREAKER_HALF_OPEN);
        assert_int_equal(begin(&other, &policy, 3, LATER).action, BIDE_START);
    }
}

static void a_probing_call_that_succeeds_closes_it_and_one_that_fails_opens_it_again(void **state)
{
    struct bide_target_config config = fragile(1);
    struct bide_policy policy = once();
    struct bide_call c;
    open_it(&config);
    begin(&c, &policy, 1, LATER);
    bide_call_outcome(&c, 1, &bad_gateway, LATER);
    assert_int_equal(state_now(), BIDE_BREAKER_OPEN);
    assert_int_equal(begin(&c, &policy, 1, LATER + 20 * S).action, BIDE_START);
    bide_call_outcome(&c, 1, &ok, LATER + 20 * S);
    assert_int_equal(state_now(), BIDE_BREAKER_CLOSED);
}

/* -- leases ---------------------------------------------------------------------------------------------------------*/

static void a_probe_that_never_reports_loses_its_place(void **state)
{
    struct bide_target_config config = fragile(1);
    open_it(&config);
    for (int64_t n = 0; n < 5; n++) {
        int64_t at = LATER + n * 11 * S;
        probe_at(at);
        assert_refused(ask(2, at + 1), BIDE_REASON_BREAKER_PROBING);
        assert_refused(ask(2, at + 10 * S), BIDE_REASON_BREAKER_PROBING);
    }
    assert_int_equal(state_now(), BIDE_BREAKER_HALF_OPEN);
    report(probe_at(LATER + 60 * S), CORE_VOTE_HEALTHY, LATER + 60 * S); /* six days later it would still close */
    assert_int_equal(state_now(), BIDE_BREAKER_CLOSED);
}

static void a_probe_that_succeeded_is_remembered_longer_than_its_lease(void **state)
{
    struct bide_target_config config = fragile(2);
    open_it(&config);
    report(probe_at(LATER), CORE_VOTE_HEALTHY, LATER);
    report(probe_at(LATER + 3600 * S), CORE_VOTE_HEALTHY, LATER + 3600 * S);
    assert_int_equal(state_now(), BIDE_BREAKER_CLOSED);
}

static void a_lease_of_thirty_years_is_still_no_success(void **state)
{
    struct bide_target_config config = fragile(1);
    const int64_t late = 13 * (BIDE_DURATION_MAX / 10);
    config.breaker.probe_timeout_ns = BIDE_DURATION_MAX;
    given(&config);
    bide_breaker_trip(&target, 1, late);
    struct core_admission a = probe_at(late + 6 * S);
    assert_refused(ask(2, late + 7 * S), BIDE_REASON_BREAKER_PROBING);
    assert_int_equal(state_now(), BIDE_BREAKER_HALF_OPEN);
    report(a, CORE_VOTE_HEALTHY, late + 8 * S);
    assert_int_equal(state_now(), BIDE_BREAKER_CLOSED);
}

/* -- results that come too late or twice ----------------------------------------------------------------------------*/

/* All that a result can say. */
static const enum core_vote votes[] = {CORE_VOTE_HEALTHY, CORE_VOTE_FAILURE, CORE_VOTE_NEUTRAL};

static void a_result_after_the_lease_is_not_heard(void **state)
{
    for (size_t i = 0; i < COUNT(votes); i++) {
        struct bide_target_config config = fragile(1);
        open_it(&config);
        struct core_admission late = probe_at(LATER);
        uint64_t gate = target.breaker;
        report(late, votes[i], LATER + 10 * S + TICK);
        assert_int_equal(target.breaker, gate);
    }
}

static void a_result_after_the_place_was_given_to_another_is_not_heard(void **state)
{
    for (size_t i = 0; i < COUNT(votes); i++) {
        struct bide_target_config config = fragile(1);
        open_it(&config);
        struct core_admission late = probe_at(LATER), next = probe_at(LATER + 11 * S);
        uint64_t gate = target.breaker;
        report(late, votes[i], LATER + 12 * S);
        assert_int_equal(target.breaker, gate);
        assert_refused(ask(3, LATER + 12 * S), BIDE_REASON_BREAKER_PROBING); /* the place is still the other's */
        report(next, CORE_VOTE_HEALTHY, LATER + 12 * S);
        assert_int_equal(state_now(), BIDE_BREAKER_CLOSED);
    }
}

static void a_result_of_an_earlier_time_of_probing_is_not_heard(void **state)
{
    for (size_t i = 0; i < COUNT(votes); i++) {
        struct bide_target_config config = fragile(2);
        config.breaker.probe_timeout_ns = 3600 * S;
        open_it(&config);
        struct core_admission late = probe_at(LATER);
        report(probe_at(LATER), CORE_VOTE_FAILURE, LATER);
        int64_t again = LATER + 20 * S;
        probe_at(again);
        uint64_t gate = target.breaker;
        report(late, votes[i], again);
        assert_int_equal(target.breaker, gate);
        assert_admitted(ask(3, again), true); /* one place left, as before */
        assert_refused(ask(4, again), BIDE_REASON_BREAKER_PROBING);
    }
}

static void a_result_is_heard_once(void **state)
{
    struct bide_target_config config = fragile(2);
    open_it(&config);
    struct core_admission a = probe_at(LATER);
    for (int i = 0; i < 3; i++)
        report(a, CORE_VOTE_HEALTHY, LATER);
    report(a, CORE_VOTE_FAILURE, LATER);
    report(a, CORE_VOTE_NEUTRAL, LATER);
    assert_int_equal(state_now(), BIDE_BREAKER_HALF_OPEN);
    struct core_admission b = probe_at(LATER);
    report(b, CORE_VOTE_NEUTRAL, LATER);
    report(b, CORE_VOTE_HEALTHY, LATER); /* it gave its place back */
    assert_int_equal(state_now(), BIDE_BREAKER_HALF_OPEN);
}

static void results_of_calls_begun_before_the_opening_never_vote(void **state)
{
    struct bide_target_config config = fragile(2);
    struct core_admission early;
    config.breaker.consecutive = 3;
    config.breaker.ramp_ns = 0;
    given(&config);
    early = ask(1, NOW);
    bide_breaker_trip(&target, 1, NOW);
    uint64_t gate = target.breaker;
    for (int i = 0; i < 100; i++)
        report(early, i % 2 ? CORE_VOTE_FAILURE : CORE_VOTE_HEALTHY, NOW); /* while it is open */
    assert_int_equal(target.breaker, gate);
    struct core_admission a = probe_at(LATER), b = probe_at(LATER);
    gate = target.breaker;
    for (int i = 0; i < 100; i++)
        report(early, i % 2 ? CORE_VOTE_FAILURE : CORE_VOTE_HEALTHY, LATER); /* while it is half open */
    assert_int_equal(target.breaker, gate);
    report(a, CORE_VOTE_HEALTHY, LATER);
    report(b, CORE_VOTE_HEALTHY, LATER);
    for (int i = 0; i < 100; i++)
        report(early, CORE_VOTE_FAILURE, LATER); /* and after it has closed again */
    assert_int_equal(state_now(), BIDE_BREAKER_CLOSED);
    calls("xx", LATER);
    assert_int_equal(state_now(), BIDE_BREAKER_CLOSED); /* two of three: they left no evidence either */
}

/* -- lost races -----------------------------------------------------------------------------------------------------*/

static void losing_the_race_to_open_leaves_it_closed_with_its_evidence(void **state)
{
    struct bide_target_config config = fragile(1);
    config.breaker.consecutive = 3;
    given(&config);
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

static void losing_the_race_to_half_open_is_a_refusal_like_any_other(void **state)
{
    struct bide_target_config config = fragile(1);
    open_it(&config);
    core_cas_failures = 1;
    assert_refused(ask(1, LATER), BIDE_REASON_BREAKER_PROBING);
    assert_int_equal(core_cas_failures, 0);
    assert_int_equal(state_now(), BIDE_BREAKER_OPEN);
    probe_at(LATER);
}

static void losing_the_race_for_a_place_means_trying_the_next_one(void **state)
{
    struct bide_target_config config = fragile(2);
    open_it(&config);
    core_cas_successes = 1; /* half open */
    core_cas_failures = 1;
    probe_at(LATER);
    assert_int_equal(core_cas_failures, 0);
    core_cas_failures = 1;
    assert_refused(ask(2, LATER), BIDE_REASON_BREAKER_PROBING);
    assert_int_equal(core_cas_failures, 0);
    probe_at(LATER);
    assert_refused(ask(3, LATER), BIDE_REASON_BREAKER_PROBING);
}

static void a_report_that_loses_its_race_is_not_heard_and_the_lease_goes_on(void **state)
{
    static const enum core_vote mild[] = {CORE_VOTE_HEALTHY, CORE_VOTE_NEUTRAL}; /* a failure: the next test */
    for (size_t i = 0; i < COUNT(mild); i++) {
        struct bide_target_config config = fragile(1);
        open_it(&config);
        struct core_admission a = probe_at(LATER);
        core_cas_failures = 1;
        report(a, mild[i], LATER);
        assert_int_equal(core_cas_failures, 0);
        assert_int_equal(state_now(), BIDE_BREAKER_HALF_OPEN);
        assert_refused(ask(2, LATER), BIDE_REASON_BREAKER_PROBING);
        probe_at(LATER + 11 * S);
    }
}

static void a_failed_probe_that_loses_the_race_to_open_keeps_its_place(void **state)
{
    struct bide_target_config config = fragile(1);
    open_it(&config);
    struct core_admission a = probe_at(LATER);
    core_cas_failures = 1;
    report(a, CORE_VOTE_FAILURE, LATER);
    assert_int_equal(core_cas_failures, 0);
    assert_int_equal(target.openings, 1);
    assert_refused(ask(2, LATER), BIDE_REASON_BREAKER_PROBING);
    probe_at(LATER + 11 * S);
}

/* The winner has closed it; should there be none, the next one who asks does. */
static void losing_the_race_to_close_leaves_it_to_the_next_one(void **state)
{
    struct bide_target_config config = fragile(1);
    config.breaker.ramp_ns = 0;
    open_it(&config);
    struct core_admission a = probe_at(LATER);
    core_cas_successes = 1; /* the report itself */
    core_cas_failures = 1;
    report(a, CORE_VOTE_HEALTHY, LATER);
    assert_int_equal(core_cas_failures, 0);
    assert_int_equal(state_now(), BIDE_BREAKER_HALF_OPEN);
    ask(2, LATER);
    assert_int_equal(state_now(), BIDE_BREAKER_CLOSED);
    assert_admitted(ask(3, LATER), false);
}

static void losing_the_race_to_forget_the_openings_forgets_them_later(void **state)
{
    struct bide_target_config config = fragile(1);
    close_it(&config);
    core_cas_failures = 1;
    assert_admitted(ask(1, LATER + 80 * S), false);
    assert_int_equal(core_cas_failures, 0);
    assert_int_equal(bide_breaker_get(&target).openings, 1);
    assert_admitted(ask(1, LATER + 80 * S), false);
    assert_int_equal(bide_breaker_get(&target).openings, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_a_thousand_callers_exactly_so_many_probe),
        cmocka_unit_test(a_clock_of_any_age_admits_as_many),
        cmocka_unit_test(of_eight_threads_that_ask_at_once_exactly_so_many_probe),
        cmocka_unit_test(a_neutral_outcome_returns_the_place_without_a_vote),
        cmocka_unit_test(all_probes_must_succeed_before_it_closes),
        cmocka_unit_test(one_failed_probe_opens_it_again_for_longer_whatever_the_others_said),
        cmocka_unit_test(fewer_probes_after_a_reload_do_not_lock_it),
        cmocka_unit_test(more_probes_after_a_reload_must_all_succeed),
        cmocka_unit_test(a_process_killed_between_its_success_and_the_closing_does_not_lock_it),
        cmocka_unit_test(a_probing_call_that_is_cancelled_or_permanent_makes_room_for_the_next),
        cmocka_unit_test(a_probing_call_that_succeeds_closes_it_and_one_that_fails_opens_it_again),
        cmocka_unit_test(a_probe_that_never_reports_loses_its_place),
        cmocka_unit_test(a_probe_that_succeeded_is_remembered_longer_than_its_lease),
        cmocka_unit_test(a_lease_of_thirty_years_is_still_no_success),
        cmocka_unit_test(a_result_after_the_lease_is_not_heard),
        cmocka_unit_test(a_result_after_the_place_was_given_to_another_is_not_heard),
        cmocka_unit_test(a_result_of_an_earlier_time_of_probing_is_not_heard),
        cmocka_unit_test(a_result_is_heard_once),
        cmocka_unit_test(results_of_calls_begun_before_the_opening_never_vote),
        cmocka_unit_test(losing_the_race_to_open_leaves_it_closed_with_its_evidence),
        cmocka_unit_test(losing_the_race_to_half_open_is_a_refusal_like_any_other),
        cmocka_unit_test(losing_the_race_for_a_place_means_trying_the_next_one),
        cmocka_unit_test(a_report_that_loses_its_race_is_not_heard_and_the_lease_goes_on),
        cmocka_unit_test(a_failed_probe_that_loses_the_race_to_open_keeps_its_place),
        cmocka_unit_test(losing_the_race_to_close_leaves_it_to_the_next_one),
        cmocka_unit_test(losing_the_race_to_forget_the_openings_forgets_them_later),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
