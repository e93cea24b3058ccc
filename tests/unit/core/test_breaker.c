/* test_breaker.c - when the circuit breaker opens, how long it stays open, how traffic returns, and manual holds.
 *
 * The evidence of each kind of breaker, calls as the engine makes them, consecutive openings, the ramp after
 * closing, holds, and eviction. Admission of probes in between is in test_probes.c. */
#include "breaker_world.h"

#include <string.h>

/* -- evidence ------------------------------------------------------------------------------------------------------ */

struct sequence {
    uint32_t size, ratio_permille, min_volume;
    int64_t gap_ns;
    const char *calls; /* the breaker opens at the last call and not before */
};

static void assert_opens_at_the_last(const struct bide_target_config *config, const struct sequence *s)
{
    int64_t now_ns = NOW;
    init_target(config);
    for (const char *c = s->calls; *c; c++, now_ns += s->gap_ns) {
        assert_int_equal(state_now(), BIDE_BREAKER_CLOSED);
        call(*c, now_ns);
    }
    assert_int_equal(state_now(), BIDE_BREAKER_OPEN);
    assert_int_equal(target.openings, 1);
}

static void consecutive_failures_open_the_breaker_exactly_at_the_threshold(void **state)
{
    static const struct sequence rows[] = {
        {.size = 1, .calls = "x"},
        {.size = 2, .calls = "xx"},
        {.size = 5, .calls = "xxxxx"},
        {.size = 3, .calls = "...xxx"},
        {.size = 3, .calls = "xx.xx.x.xxx"},          /* a success in between resets the count */
        {.size = 3, .calls = "x--x-x"},               /* a neutral vote neither counts nor resets */
        {.size = 2, .gap_ns = 86400 * S, "x.x.x.xx"}, /* at any distance in time */
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct bide_target_config config = service();
        config.breaker.kind = BIDE_BREAKER_BY_RUN;
        config.breaker.consecutive = rows[i].size;
        assert_opens_at_the_last(&config, &rows[i]);
    }
}

static void a_count_window_opens_exactly_at_its_ratio(void **state)
{
    static const struct sequence rows[] = {
        {10, 500, 10, 0, ".....xxxxx"},
        {10, 500, 10, 0, "......xxxxx"}, /* the oldest success slides out */
        {10, 500, 1, 0, "x"},
        {10, 500, 4, 0, "xxxx"}, /* not below the minimum volume */
        {10, 500, 4, 0, ".x.x"},
        {10, 1000, 3, 0, "xxx"},
        {10, 1000, 10, 0, ".xxxxxxxxxx"},
        {4, 500, 4, 0, "xx......x.x"}, /* the oldest failures slide out */
        {4, 500, 4, 0, "x--.-.--.x.-x"},
        {1, 1, 1, 0, ".....x"},
        {3, 334, 3, 0, "x...xx"}, /* one of three is 333 */
        {3, 333, 3, 0, "...x"},
        {4, 500, 4, 86400 * S, "..x....xx"}, /* the window counts calls, not time */
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct bide_target_config config = service();
        config.breaker.kind = BIDE_BREAKER_BY_COUNT;
        config.breaker.count_window = rows[i].size;
        config.breaker.ratio_permille = rows[i].ratio_permille;
        config.breaker.min_volume = rows[i].min_volume;
        assert_opens_at_the_last(&config, &rows[i]);
    }
}

static void the_largest_count_window_counts_each_of_its_calls(void **state)
{
    static const uint32_t sizes[] = {64, 65, 128, 200, 255, 256};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        struct bide_target_config config = service();
        config.breaker.kind = BIDE_BREAKER_BY_COUNT;
        config.breaker.count_window = config.breaker.min_volume = sizes[i];
        config.breaker.ratio_permille = 997; /* more than all but one of 256 */
        init_target(&config);
        calls(".", NOW);
        for (uint32_t n = 0; n < sizes[i]; n++) {
            assert_int_equal(state_now(), BIDE_BREAKER_CLOSED);
            calls("x", NOW);
        }
        assert_int_equal(state_now(), BIDE_BREAKER_OPEN);
    }
}

/* A thread that still read the configuration of a time window may have written there. */
static void a_count_window_ignores_the_words_beside_its_ring(void **state)
{
    struct bide_target_config config = service();
    config.breaker.kind = BIDE_BREAKER_BY_COUNT;
    config.breaker.count_window = config.breaker.min_volume = 256;
    config.breaker.ratio_permille = 100;
    init_target(&config);
    for (size_t i = 4; i < BIDE_SLOTS; i++)
        target.votes.mark[i] = UINT64_MAX;
    for (int i = 0; i < 256; i++)
        call('.', NOW);
    call('x', NOW);
    assert_int_equal(state_now(), BIDE_BREAKER_CLOSED);
}

static void a_time_window_opens_exactly_at_its_ratio(void **state)
{
    static const struct sequence rows[] = {
        {0, 500, 4, 0, "..xx"},
        {0, 500, 4, 0, "xxxx"}, /* not below the minimum volume */
        {0, 500, 20, 0, "..........xxxxxxxxxx"},
        {0, 500, 1, 0, "x"},
        {0, 500, 3, 0, "...xxx"},
        {0, 1000, 3, 0, "xxx"},
        {0, 100, 10, 0, ".........x"},
        {0, 500, 4, 1 * S, "x--x-xx"},
        {0, 500, 4, 900 * MS, "xx.x"},
        {0, 1000, 3, 1 * S, "x.---------xxx"},    /* the success is more than ten seconds old at the end */
        {0, 1000, 3, 2 * S, "x---x---x-----xxx"}, /* never three in ten seconds before */
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct bide_target_config config = service();
        config.breaker.ratio_permille = rows[i].ratio_permille;
        config.breaker.min_volume = rows[i].min_volume;
        assert_opens_at_the_last(&config, &rows[i]);
    }
}

static void failures_further_apart_than_the_window_never_open_the_breaker(void **state)
{
    struct bide_target_config config = service();
    config.breaker.min_volume = 2;
    init_target(&config);
    for (int64_t i = 0; i < 100; i++) {
        call('x', NOW + i * 10 * S);
        assert_int_equal(state_now(), BIDE_BREAKER_CLOSED);
    }
}

/* Other implementations had this bug: after an idle day, yesterday's failures opened the breaker at the first
 * failure of today. */
static void failures_from_before_an_idle_time_do_not_count(void **state)
{
    static const int64_t rests[] = {10 * S, 11 * S, 100 * S, 3600 * S, 86400 * S};
    for (size_t i = 0; i < COUNT(rests); i++) {
        struct bide_target_config config = service();
        init_target(&config);
        calls("xxxxxxxxxxxxxxxxxxx", NOW); /* 19 */
        calls("xxxxxxxxxxxxxxxxxxx", NOW + rests[i]);
        assert_int_equal(state_now(), BIDE_BREAKER_CLOSED);
        call('x', NOW + rests[i]);
        assert_int_equal(state_now(), BIDE_BREAKER_OPEN);
    }
}

static void old_successes_do_not_hide_new_failures(void **state)
{
    struct bide_target_config config = service();
    init_target(&config);
    for (int i = 0; i < 100000; i++)
        call('.', NOW + i * MS / 10);
    calls("xxxxxxxxxxxxxxxxxxx", NOW + 20 * S);
    assert_int_equal(state_now(), BIDE_BREAKER_CLOSED);
    call('x', NOW + 20 * S);
    assert_int_equal(state_now(), BIDE_BREAKER_OPEN);
}

static void a_breaker_that_is_off_never_opens_by_evidence(void **state)
{
    struct bide_target_config config = service();
    config.breaker.kind = BIDE_BREAKER_OFF;
    config.breaker.consecutive = 1;
    config.breaker.min_volume = 1;
    init_target(&config);
    for (int i = 0; i < 1000; i++)
        calls("x.-", NOW);
    assert_int_equal(state_now(), BIDE_BREAKER_CLOSED);
    assert_true(core_breaker_is_evictable(&target, NOW));
}

static void trip_opens_a_closed_breaker_without_evidence(void **state)
{
    struct bide_target_config config = service();
    init_target(&config);
    core_cas_failures = 1;
    assert_false(bide_breaker_trip(&target, 1, NOW)); /* another thread changed the word first */
    assert_int_equal(state_now(), BIDE_BREAKER_CLOSED);
    assert_true(bide_breaker_trip(&target, 1, NOW));
    assert_int_equal(state_now(), BIDE_BREAKER_OPEN);
    struct bide_breaker_view before = core_breaker_get(&target);
    assert_false(bide_breaker_trip(&target, 1, NOW + 1 * S)); /* open already */
    probe_at(LATER);
    assert_false(bide_breaker_trip(&target, 1, LATER)); /* half open: its probe decides */
    assert_int_equal(state_now(), BIDE_BREAKER_HALF_OPEN);
    assert_int_equal(core_breaker_get(&target).generation, before.generation + 1);
    assert_int_equal(target.openings, 1);
}

/* -- calls as the engine makes them -------------------------------------------------------------------------------- */

static void run_call(const struct bide_outcome *outcome, int64_t took_ns)
{
    struct bide_policy policy = single_attempt();
    struct bide_call c;
    assert_int_equal(begin(&c, &policy, 1, NOW).action, BIDE_ACTION_START);
    bide_call_outcome(&c, 1, outcome, NOW + took_ns);
}

static void a_slow_success_counts_as_a_failure(void **state)
{
    static const struct {
        int64_t slow_ns, took_ns;
        enum bide_breaker_state then;
    } rows[] = {
        {1 * S, 1 * S - 1, BIDE_BREAKER_CLOSED},
        {1 * S, 1 * S, BIDE_BREAKER_OPEN},
        {1 * S, 9 * S, BIDE_BREAKER_OPEN},
        {BIDE_NEVER, 3600 * S, BIDE_BREAKER_CLOSED},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct bide_target_config config = fragile(1);
        config.breaker.slow_ns = rows[i].slow_ns;
        init_target(&config);
        run_call(&ok, rows[i].took_ns);
        assert_int_equal(state_now(), rows[i].then);
    }
}

static void only_transient_outcomes_vote_as_failures(void **state)
{
    static const struct {
        enum bide_kind kind;
        enum bide_breaker_state then;
    } rows[] = {
        {BIDE_KIND_OK, BIDE_BREAKER_CLOSED},       {BIDE_KIND_PERMANENT, BIDE_BREAKER_CLOSED},
        {BIDE_KIND_CONFLICT, BIDE_BREAKER_CLOSED}, {BIDE_KIND_CANCELLED, BIDE_BREAKER_CLOSED},
        {BIDE_KIND_TRANSIENT, BIDE_BREAKER_OPEN},  {BIDE_KIND_THROTTLED, BIDE_BREAKER_CLOSED},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct bide_target_config config = fragile(1);
        struct bide_outcome outcome = {.kind = rows[i].kind, .evidence = BIDE_EVIDENCE_ANSWERED};
        init_target(&config);
        run_call(&outcome, 1 * MS);
        assert_int_equal(state_now(), rows[i].then);
    }
}

static void in_observe_mode_the_breaker_counts_refusals_and_admits_calls(void **state)
{
    struct bide_target_config config = fragile(1);
    struct bide_policy policy = single_attempt();
    struct bide_call c;
    config.observe = BIDE_GATE_BREAKER;
    open_breaker(&config);
    for (uint64_t i = 1; i <= 5; i++) {
        struct bide_verdict v = begin(&c, &policy, i, NOW + 1 * S);
        assert_int_equal(v.action, BIDE_ACTION_START);
        assert_int_equal(v.observed, BIDE_GATE_BREAKER);
        assert_int_equal(target.refused[BIDE_GATE_INDEX(BIDE_GATE_BREAKER)], i);
        bide_call_outcome(&c, 1, i % 2 ? &ok : &bad_gateway,
                          NOW + 1 * S); /* no vote: an enforcing breaker would have refused the call */
        assert_int_equal(state_now(), BIDE_BREAKER_OPEN);
        assert_int_equal(target.openings, 1);
    }
    struct bide_verdict v = begin(&c, &policy, 9, LATER); /* the probe it would admit */
    assert_int_equal(v.observed, 0);
    bide_call_outcome(&c, 1, &ok, LATER);
    assert_int_equal(state_now(), BIDE_BREAKER_CLOSED);
}

/* -- open ---------------------------------------------------------------------------------------------------------- */

static void an_open_breaker_refuses_every_call_until_its_end(void **state)
{
    struct bide_target_config config = fragile(1);
    open_breaker(&config);
    int64_t until_ns = core_breaker_get(&target).until_ns;
    assert_in_range(until_ns - NOW, 5 * S, 5 * S + TICK);
    assert_refused(admit(1, NOW), BIDE_REASON_BREAKER_OPEN);
    assert_refused(admit(1, until_ns - 1), BIDE_REASON_BREAKER_OPEN);
    assert_true(core_breaker_is_open_at(&target, until_ns - 1));
    assert_false(core_breaker_is_open_at(&target, until_ns));
    assert_int_equal(state_now(), BIDE_BREAKER_OPEN); /* until the next call */
    assert_admitted(admit(1, until_ns), true);
    assert_int_equal(state_now(), BIDE_BREAKER_HALF_OPEN);
    assert_int_equal(core_breaker_get(&target).until_ns, 0);
}

static void the_open_time_is_jittered_over_its_whole_range_and_never_beyond(void **state)
{
    static const uint32_t jitters[] = {100, 500, 900};
    for (size_t i = 0; i < COUNT(jitters); i++) {
        struct bide_target_config config = fragile(1);
        int64_t least = 5 * S - 5 * MS * jitters[i], most = 5 * S + 5 * MS * jitters[i];
        int64_t shortest = BIDE_NEVER, longest = 0, sum = 0;
        config.breaker.open_jitter_permille = jitters[i];
        for (uint64_t seed = 0; seed < 2000; seed++) {
            init_target(&config);
            bide_breaker_trip(&target, seed, NOW);
            int64_t open_ns = core_breaker_get(&target).until_ns - NOW;
            assert_in_range(open_ns, least, most + TICK);
            shortest = open_ns < shortest ? open_ns : shortest;
            longest = open_ns > longest ? open_ns : longest;
            sum += open_ns / 2000;
        }
        assert_true(shortest < least + (most - least) / 100);
        assert_true(longest > most - (most - least) / 100);
        assert_in_range(sum, 5 * S - (most - least) / 40, 5 * S + (most - least) / 40);
    }
}

/* Reopens the breaker repeatedly, each time as soon as a probe is admitted. */
static void assert_open_times(const struct bide_target_config *config, const int64_t *open_s, size_t count)
{
    int64_t now_ns = NOW;
    open_breaker(config);
    for (size_t i = 0; i < count; i++) {
        struct bide_breaker_view view = core_breaker_get(&target);
        assert_int_equal(view.state, BIDE_BREAKER_OPEN);
        assert_int_equal(view.openings, i < 15 ? i + 1 : 15);
        assert_in_range(view.until_ns - now_ns, open_s[i] * S, open_s[i] * S + TICK);
        now_ns = view.until_ns;
        report(probe_at(now_ns), CORE_VOTE_FAILURE, now_ns);
    }
    assert_int_equal(target.openings, count + 1);
}

static void each_consecutive_opening_is_longer_up_to_the_maximum(void **state)
{
    static const int64_t doubling[] = {5, 10, 20, 40, 60, 60, 60, 60, 60, 60, 60, 60, 60, 60, 60, 60, 60, 60};
    static const int64_t constant[] = {5, 5, 5, 5, 5};
    static const int64_t tenfold[] = {5, 50, 60, 60};
    struct bide_target_config config = fragile(1);
    assert_open_times(&config, doubling, COUNT(doubling));
    config.breaker.open_growth_milli = 1000;
    assert_open_times(&config, constant, COUNT(constant));
    config.breaker.open_growth_milli = 10000;
    assert_open_times(&config, tenfold, COUNT(tenfold));
}

static void an_open_time_beyond_the_tick_range_ends_at_the_last_tick(void **state)
{
    struct bide_target_config config = fragile(1);
    const int64_t end = (INT64_C(1) << 61) - TICK, late = 2 * BIDE_DURATION_MAX;
    config.breaker.open_ns = config.breaker.open_max_ns = BIDE_DURATION_MAX;
    init_target(&config);
    bide_breaker_trip(&target, 1, late);
    assert_int_equal(core_breaker_get(&target).until_ns, end);
    assert_refused(admit(1, end - 1), BIDE_REASON_BREAKER_OPEN);
}

/* -- closing ------------------------------------------------------------------------------------------------------- */

static void closing_clears_the_evidence_that_opened_the_breaker(void **state)
{
    static const enum bide_breaker_kind kinds[] = {BIDE_BREAKER_BY_TIME, BIDE_BREAKER_BY_COUNT, BIDE_BREAKER_BY_RUN};
    static const int64_t clocks[] = {0, NOW};
    for (size_t i = 0; i < COUNT(kinds); i++)
        for (size_t k = 0; k < COUNT(clocks); k++) {
            struct bide_target_config config = service();
            int64_t at = clocks[k];
            config.breaker.kind = kinds[i];
            config.breaker.consecutive = config.breaker.min_volume = config.breaker.count_window = 3;
            config.breaker.open_ns = 1 * S;
            assert_int_equal(bide_target_init(&target, &config, at, NULL), BIDE_OK);
            calls("..........xxx", at);
            bide_breaker_trip(&target, 1, at); /* the ten successes would have kept a time window closed */
            assert_int_equal(state_now(), BIDE_BREAKER_OPEN);
            report(probe_at(at + 2 * S), CORE_VOTE_HEALTHY, at + 2 * S);
            calls("xx", at + 3 * S);
            assert_int_equal(state_now(), BIDE_BREAKER_CLOSED);
            calls("x", at + 3 * S);
            assert_int_equal(state_now(), BIDE_BREAKER_OPEN);
        }
}

static uint32_t admitted_of(uint32_t n, int64_t now_ns)
{
    uint32_t admitted = 0;
    for (uint64_t seed = 0; seed < n; seed++) {
        struct core_admission a = admit(seed, now_ns);
        admitted += a.refused.reason == BIDE_REASON_NOTHING;
        if (a.refused.reason != BIDE_REASON_NOTHING)
            assert_refused(a, BIDE_REASON_BREAKER_RAMPING);
    }
    return admitted;
}

static void after_closing_traffic_ramps_up_from_a_tenth_to_all(void **state)
{
    static const struct {
        int64_t after_ms;
        uint32_t percent;
    } rows[] = {{0, 10}, {2500, 32}, {5000, 55}, {7500, 77}, {9900, 99}};
    struct bide_target_config config = fragile(1);
    close_breaker(&config);
    for (size_t i = 0; i < COUNT(rows); i++) {
        uint32_t admitted = admitted_of(10000, LATER + rows[i].after_ms * MS), expected = rows[i].percent * 100;
        assert_in_range(admitted, expected - 200, expected + 250);
    }
    assert_int_equal(admitted_of(10000, LATER + 10 * S + TICK), 10000);
    assert_int_equal(admitted_of(10000, LATER + 100 * S), 10000);
}

/* A call that the ramp refuses knows its turn: it is admitted then, and not earlier (but for rounding, 20 ns). */
static void a_call_that_the_ramp_refuses_is_admitted_at_the_instant_it_is_told(void **state)
{
    struct bide_target_config config = fragile(1);
    int64_t now_ns = LATER + 3 * S;
    uint32_t refused = 0;
    close_breaker(&config);
    for (uint64_t seed = 0; seed < 1000; seed++) {
        struct core_admission a = admit(seed, now_ns);
        if (a.refused.reason == BIDE_REASON_NOTHING)
            continue;
        refused++;
        assert_true(a.refused.until_ns > now_ns);
        assert_int_equal(admit(seed, a.refused.until_ns).refused.reason, BIDE_REASON_NOTHING);
        assert_refused(admit(seed, a.refused.until_ns - 20), BIDE_REASON_BREAKER_RAMPING);
    }
    assert_in_range(refused, 500, 900);
}

static void a_seed_admitted_during_ramp_up_stays_admitted(void **state)
{
    struct bide_target_config config = fragile(1);
    close_breaker(&config);
    for (uint64_t seed = 0; seed < 500; seed++) {
        bool before = false;
        for (int64_t at = LATER; at <= LATER + 11 * S; at += 250 * MS) {
            bool now = admit(seed, at).refused.reason == BIDE_REASON_NOTHING;
            assert_true(now || !before);
            before = now;
        }
        assert_true(before);
    }
}

static void without_a_ramp_all_traffic_returns_at_once(void **state)
{
    struct bide_target_config config = fragile(1);
    config.breaker.ramp_ns = 0;
    close_breaker(&config);
    assert_int_equal(admitted_of(1000, LATER), 1000);
}

static void a_clock_slightly_before_the_closing_admits_as_at_the_closing(void **state)
{
    struct bide_target_config config = fragile(1);
    close_breaker(&config);
    assert_int_equal(admitted_of(10000, LATER - 1 * S), admitted_of(10000, LATER));
}

static void failures_during_ramp_up_reopen_the_breaker_for_longer(void **state)
{
    struct bide_target_config config = fragile(1);
    close_breaker(&config);
    call('x', LATER + 1 * S);
    assert_int_equal(state_now(), BIDE_BREAKER_OPEN);
    assert_int_equal(core_breaker_get(&target).openings, 2);
    assert_in_range(core_breaker_get(&target).until_ns - LATER - 1 * S, 10 * S, 10 * S + TICK);
}

/* The count resets after the breaker stayed closed for the ramp and the longest open time: 10 s and 60 s. */
static void the_opening_count_resets_after_staying_closed(void **state)
{
    struct bide_target_config config = fragile(1);
    for (int reset = 0; reset < 2; reset++) {
        close_breaker(&config);
        int64_t at = (LATER / TICK + 1) * TICK + 70 * S - (reset ? 0 : 1);
        assert_admitted(admit(1, at), false);
        assert_int_equal(core_breaker_get(&target).openings, reset ? 0 : 1);
        assert_int_equal(CORE_BREAKER_CALM(target.breaker), reset);
        call('x', at);
        assert_in_range(core_breaker_get(&target).until_ns - at, (reset ? 5 : 10) * S, (reset ? 5 : 10) * S + TICK);
    }
}

static void a_call_begun_before_the_opening_count_reset_still_votes(void **state)
{
    struct bide_target_config config = fragile(1);
    close_breaker(&config);
    struct core_admission a = admit(1, LATER + 69 * S);
    admit(2, LATER + 71 * S);
    report(a, CORE_VOTE_FAILURE, LATER + 72 * S);
    assert_int_equal(state_now(), BIDE_BREAKER_OPEN);
}

/* -- manual holds -------------------------------------------------------------------------------------------------- */

static void a_breaker_held_open_refuses_every_call_until_released(void **state)
{
    struct bide_target_config config = fragile(1);
    init_target(&config);
    bide_breaker_hold(&target, BIDE_HOLD_OPEN);
    assert_int_equal(state_now(), BIDE_BREAKER_HELD_OPEN);
    assert_int_equal(core_breaker_get(&target).until_ns, 0);
    assert_refused(admit(1, NOW), BIDE_REASON_BREAKER_OPEN);
    assert_refused(admit(1, NOW + 86400 * S), BIDE_REASON_BREAKER_OPEN);
    assert_true(core_breaker_is_open_at(&target, BIDE_NEVER));
    assert_false(bide_breaker_trip(&target, 1, NOW));
    calls(".x-", NOW);
    assert_int_equal(state_now(), BIDE_BREAKER_HELD_OPEN);
    bide_breaker_hold(&target, BIDE_HOLD_RELEASE);
    assert_int_equal(state_now(), BIDE_BREAKER_CLOSED);
    assert_int_equal(admitted_of(1000, NOW), 1000); /* a manual release has no ramp */
}

static void a_breaker_held_closed_ignores_evidence_until_released(void **state)
{
    struct bide_target_config config = fragile(1);
    init_target(&config);
    bide_breaker_hold(&target, BIDE_HOLD_CLOSED);
    assert_int_equal(state_now(), BIDE_BREAKER_HELD_CLOSED);
    calls("xxxxxxxxxxxx", NOW);
    assert_false(bide_breaker_trip(&target, 1, NOW));
    assert_int_equal(state_now(), BIDE_BREAKER_HELD_CLOSED);
    assert_int_equal(admitted_of(1000, NOW), 1000);
    assert_false(core_breaker_is_open_at(&target, NOW));
    bide_breaker_hold(&target, BIDE_HOLD_RELEASE);
    call('x', NOW);
    assert_int_equal(state_now(), BIDE_BREAKER_OPEN);
}

static void a_manual_hold_replaces_every_other_state(void **state)
{
    static const enum bide_hold holds[] = {BIDE_HOLD_CLOSED, BIDE_HOLD_OPEN};
    static const enum bide_breaker_state then[] = {BIDE_BREAKER_HELD_CLOSED, BIDE_BREAKER_HELD_OPEN};
    for (size_t i = 0; i < COUNT(holds); i++) {
        struct bide_target_config config = fragile(1);
        open_breaker(&config);
        bide_breaker_hold(&target, holds[i]);
        assert_int_equal(state_now(), then[i]);
        open_breaker(&config);
        struct core_admission probe = probe_at(LATER);
        bide_breaker_hold(&target, holds[i]);
        report(probe, CORE_VOTE_FAILURE, LATER); /* it began before the hold */
        assert_int_equal(state_now(), then[i]);
        assert_int_equal(core_breaker_get(&target).openings, 0);
    }
}

static void a_manual_hold_clears_the_evidence(void **state)
{
    struct bide_target_config config = fragile(1);
    config.breaker.consecutive = 2;
    init_target(&config);
    call('x', NOW);
    bide_breaker_hold(&target, BIDE_HOLD_CLOSED);
    bide_breaker_hold(&target, BIDE_HOLD_RELEASE);
    call('x', NOW);
    assert_int_equal(state_now(), BIDE_BREAKER_CLOSED);
}

static void releasing_a_breaker_that_is_not_held_changes_nothing(void **state)
{
    struct bide_target_config config = fragile(1);
    open_breaker(&config);
    struct bide_target before = target;
    bide_breaker_hold(&target, BIDE_HOLD_RELEASE);
    bide_breaker_hold(&target, (enum bide_hold)3); /* nor does a hold that does not exist */
    bide_breaker_hold(&target, (enum bide_hold)7);
    assert_memory_equal(&target, &before, sizeof target);
    assert_int_equal(core_breaker_get(&target).openings_total, 1);
}

static void a_manual_hold_retries_until_its_swap_succeeds(void **state)
{
    for (uint32_t losses = 1; losses <= 3; losses++) {
        struct bide_target_config config = fragile(1);
        init_target(&config);
        core_cas_failures = losses;
        bide_breaker_hold(&target, BIDE_HOLD_OPEN);
        assert_int_equal(core_cas_failures, 0);
        assert_int_equal(state_now(), BIDE_BREAKER_HELD_OPEN);
    }
}

static void the_generation_may_wrap(void **state)
{
    struct bide_target_config config = fragile(1);
    config.breaker.ramp_ns = 0;
    for (uint32_t before = 0; before < 4; before++) { /* so that each change in turn wraps the generation */
        init_target(&config);
        while (core_breaker_get(&target).generation != 0x10000 - 2 - before)
            bide_breaker_hold(&target, BIDE_HOLD_CLOSED);
        bide_breaker_hold(&target, BIDE_HOLD_RELEASE);
        call('x', NOW);
        assert_int_equal(state_now(), BIDE_BREAKER_OPEN);
        report(probe_at(LATER), CORE_VOTE_HEALTHY, LATER);
        assert_int_equal(state_now(), BIDE_BREAKER_CLOSED);
        assert_int_equal(core_breaker_get(&target).generation, (0x10000 - 1 - before + 3) & 0xffff);
        call('x', LATER);
        assert_int_equal(state_now(), BIDE_BREAKER_OPEN);
    }
}

/* Shared memory can be corrupted. Three of the eight values of the state bits are invalid. */
static void a_state_that_does_not_exist_counts_as_closed(void **state)
{
    for (uint64_t odd = BIDE_BREAKER_HELD_OPEN + 1; odd < 8; odd++) {
        struct bide_target_config config = fragile(1);
        init_target(&config);
        target.breaker = (target.breaker & ~UINT64_C(7)) | odd;
        assert_int_equal(state_now(), BIDE_BREAKER_CLOSED);
        assert_admitted(admit(1, NOW), false);
        call('x', NOW);
        assert_int_equal(state_now(), BIDE_BREAKER_OPEN);
    }
}

/* -- eviction ------------------------------------------------------------------------------------------------------ */

/* A failure in a time window is remembered for the length of the window; in a run or a count it would be for ever. */
static void a_breaker_is_evictable_only_without_failures_in_its_time_window(void **state)
{
    static const enum bide_breaker_kind kinds[] = {BIDE_BREAKER_BY_TIME, BIDE_BREAKER_BY_COUNT, BIDE_BREAKER_BY_RUN};
    for (size_t i = 0; i < COUNT(kinds); i++) {
        struct bide_target_config config = service();
        config.breaker.kind = kinds[i];
        config.breaker.count_window = config.breaker.min_volume = 5;
        init_target(&config);
        assert_true(core_breaker_is_evictable(&target, NOW));
        assert_true(core_breaker_is_evictable(&target, 0)); /* a clock that starts at 0 */
        calls("....", NOW);
        assert_true(core_breaker_is_evictable(&target, NOW));
        call('x', NOW);
        assert_int_equal(core_breaker_is_evictable(&target, NOW), kinds[i] != BIDE_BREAKER_BY_TIME);
        assert_true(core_breaker_is_evictable(&target, NOW + 10 * S));
    }
}

static void a_breaker_is_not_evictable_until_closed_and_settled(void **state)
{
    struct bide_target_config config = fragile(1);
    open_breaker(&config);
    assert_false(core_breaker_is_evictable(&target, NOW));
    assert_false(core_breaker_is_evictable(&target, NOW + 86400 * S)); /* no call since */
    report(probe_at(LATER), CORE_VOTE_NEUTRAL, LATER);
    assert_false(core_breaker_is_evictable(&target, LATER + 86400 * S));
    report(probe_at(LATER), CORE_VOTE_HEALTHY, LATER);
    assert_int_equal(state_now(), BIDE_BREAKER_CLOSED);
    assert_false(core_breaker_is_evictable(&target, LATER + 69 * S)); /* the opening count */
    assert_true(core_breaker_is_evictable(&target, LATER + 71 * S));
    bide_breaker_hold(&target, BIDE_HOLD_CLOSED);
    assert_false(core_breaker_is_evictable(&target, NOW));
    bide_breaker_hold(&target, BIDE_HOLD_OPEN);
    assert_false(core_breaker_is_evictable(&target, NOW));
    bide_breaker_hold(&target, BIDE_HOLD_RELEASE);
    assert_true(core_breaker_is_evictable(&target, NOW));
}

/* On the success path threads must not share a cache line: a healthy vote writes its own lane, or nothing. */
static void a_healthy_vote_on_a_closed_breaker_writes_no_shared_word(void **state)
{
    static const enum bide_breaker_kind kinds[] = {BIDE_BREAKER_BY_TIME, BIDE_BREAKER_BY_COUNT, BIDE_BREAKER_BY_RUN,
                                                   BIDE_BREAKER_OFF};
    for (size_t i = 0; i < COUNT(kinds); i++) {
        struct bide_target_config config = service();
        config.breaker.kind = kinds[i];
        config.breaker.count_window = 20;
        init_target(&config);
        for (int n = 0; n < 20; n++)
            call('.', NOW);
        struct bide_target before = target;
        for (int n = 0; n < 20; n++)
            call('.', NOW);
        assert_memory_equal(&target, &before, offsetof(struct bide_target, lane));
    }
}

/* -- cleared evidence, and exact numbers --------------------------------------------------------------------------- */

static struct bide_target_config opens_at_four(enum bide_breaker_kind kind)
{
    struct bide_target_config config = service();
    config.breaker.kind = kind;
    config.breaker.min_volume = 4;
    config.breaker.consecutive = 4;
    config.breaker.count_window = 10;
    config.breaker.window_ns = 100 * S; /* a slot is 10 s long, longer than the open time */
    return config;
}

static void open_and_close(const struct bide_target_config *config, int64_t now_ns)
{
    assert_true(bide_breaker_trip(&target, 1, now_ns));
    report(probe_at(now_ns + 6 * S), CORE_VOTE_HEALTHY, now_ns + 6 * S);
}

static void hold_and_release(const struct bide_target_config *config, int64_t now_ns)
{
    bide_breaker_hold(&target, BIDE_HOLD_CLOSED);
    bide_breaker_hold(&target, BIDE_HOLD_RELEASE);
}

static void reload_another_window(const struct bide_target_config *config, int64_t now_ns)
{
    struct bide_target_config other = *config;
    other.breaker.window_ns++;
    other.breaker.count_window++;
    assert_int_equal(bide_target_configure(&target, &other, now_ns, NULL), BIDE_OK);
}

/* After three failures each of these closes the breaker without evidence: three more leave it closed, the fourth opens
 * it. The failures come in each of the ten slots of the window, after others in the slot before. */
static void evidence_is_cleared_on_closing_on_release_and_with_another_window(void **state)
{
    static void (*const clear[])(const struct bide_target_config *, int64_t) = {open_and_close, hold_and_release,
                                                                                reload_another_window};
    for (size_t i = 0; i < COUNT(clear); i++)
        for (int64_t kind = BIDE_BREAKER_BY_TIME; kind <= BIDE_BREAKER_BY_RUN; kind++)
            for (int64_t at = NOW; at < NOW + 100 * S; at += 10 * S) {
                struct bide_target_config config = opens_at_four((enum bide_breaker_kind)kind);
                init_target(&config);
                calls("xx", at - 5 * S);
                calls("x", at);
                clear[i](&config, at);
                assert_int_equal(state_now(), BIDE_BREAKER_CLOSED);
                calls("xxx", at + 6 * S);
                assert_int_equal(state_now(), BIDE_BREAKER_CLOSED);
                calls("x", at + 6 * S);
                assert_int_equal(state_now(), BIDE_BREAKER_OPEN);
            }
}

static void a_time_window_opens_at_exactly_its_ratio(void **state)
{
    struct bide_target_config config = service(); /* 500 thousandths */
    init_target(&config);
    for (int i = 0; i < 501; i++)
        call('.', NOW);
    for (int i = 0; i < 500; i++)
        call('x', NOW);
    assert_int_equal(state_now(), BIDE_BREAKER_CLOSED);
    call('x', NOW);
    assert_int_equal(state_now(), BIDE_BREAKER_OPEN);
}

/* 100,000 seeds: one thousandth more or less would show. */
static void the_ramp_begins_with_a_tenth_of_the_calls(void **state)
{
    struct bide_target_config config = service();
    uint32_t admitted = 0;
    close_breaker(&config);
    for (uint64_t seed = 0; seed < 100000; seed++)
        admitted += admit(seed, LATER).refused.reason == BIDE_REASON_NOTHING;
    assert_in_range(admitted, 9700, 10300);
}

/* A ramp of ten nanoseconds begins with one of ten draws, of which none is left out and none is added. */
static void the_shortest_ramp_admits_exactly_its_share(void **state)
{
    struct bide_target_config config = service();
    uint32_t admitted = 0;
    config.breaker.ramp_ns = 10;
    close_breaker(&config);
    for (uint64_t seed = 0; seed < 100000; seed++)
        admitted += admit(seed, LATER).refused.reason == BIDE_REASON_NOTHING;
    assert_in_range(admitted, 9700, 10300);
}

/* The ends of the range are reached to a ten-thousandth, and not exceeded. */
static void the_open_time_varies_by_exactly_its_jitter(void **state)
{
    struct bide_target_config config = service();
    int64_t least = BIDE_NEVER, most = 0;
    config.breaker.open_ns = config.breaker.open_max_ns = 1000 * S;
    config.breaker.open_jitter_permille = 500;
    for (uint64_t seed = 0; seed < 20000; seed++) {
        init_target(&config);
        assert_true(bide_breaker_trip(&target, seed, NOW));
        int64_t open_ns = core_breaker_get(&target).until_ns - NOW;
        least = open_ns < least ? open_ns : least;
        most = open_ns > most ? open_ns : most;
    }
    assert_in_range(least, 500 * S, 500 * S + 300 * MS);
    assert_in_range(most, 1500 * S - 300 * MS, 1500 * S + TICK);
}

static void a_closed_breaker_is_evictable_exactly_when_it_has_settled(void **state)
{
    struct bide_target_config config = service();
    close_breaker(&config);
    int64_t closed_ns = (LATER / TICK + 1) * TICK, settled_ns = closed_ns + 70 * S;
    assert_false(core_breaker_is_evictable(&target, settled_ns - 1));
    assert_true(core_breaker_is_evictable(&target, settled_ns));
}

static void clearing_the_evidence_changes_nothing_beside_it(void **state)
{
    struct bide_target_config config = service();
    struct bide_target before;
    init_target(&config);
    memset(&target.votes, 0x5a, sizeof target.votes);
    memset(&target.spends, 0x5a, sizeof target.spends);
    target.failures = 7;
    before = target;
    core_breaker_clear_evidence(&target);
    before.votes = (struct bide_window_words_){0};
    before.failures = 0;
    assert_memory_equal(&target, &before, sizeof target);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(consecutive_failures_open_the_breaker_exactly_at_the_threshold),
        cmocka_unit_test(a_count_window_opens_exactly_at_its_ratio),
        cmocka_unit_test(the_largest_count_window_counts_each_of_its_calls),
        cmocka_unit_test(a_count_window_ignores_the_words_beside_its_ring),
        cmocka_unit_test(a_time_window_opens_exactly_at_its_ratio),
        cmocka_unit_test(failures_further_apart_than_the_window_never_open_the_breaker),
        cmocka_unit_test(failures_from_before_an_idle_time_do_not_count),
        cmocka_unit_test(old_successes_do_not_hide_new_failures),
        cmocka_unit_test(a_breaker_that_is_off_never_opens_by_evidence),
        cmocka_unit_test(trip_opens_a_closed_breaker_without_evidence),
        cmocka_unit_test(a_slow_success_counts_as_a_failure),
        cmocka_unit_test(only_transient_outcomes_vote_as_failures),
        cmocka_unit_test(in_observe_mode_the_breaker_counts_refusals_and_admits_calls),
        cmocka_unit_test(an_open_breaker_refuses_every_call_until_its_end),
        cmocka_unit_test(the_open_time_is_jittered_over_its_whole_range_and_never_beyond),
        cmocka_unit_test(each_consecutive_opening_is_longer_up_to_the_maximum),
        cmocka_unit_test(an_open_time_beyond_the_tick_range_ends_at_the_last_tick),
        cmocka_unit_test(closing_clears_the_evidence_that_opened_the_breaker),
        cmocka_unit_test(after_closing_traffic_ramps_up_from_a_tenth_to_all),
        cmocka_unit_test(a_call_that_the_ramp_refuses_is_admitted_at_the_instant_it_is_told),
        cmocka_unit_test(a_seed_admitted_during_ramp_up_stays_admitted),
        cmocka_unit_test(without_a_ramp_all_traffic_returns_at_once),
        cmocka_unit_test(a_clock_slightly_before_the_closing_admits_as_at_the_closing),
        cmocka_unit_test(failures_during_ramp_up_reopen_the_breaker_for_longer),
        cmocka_unit_test(the_opening_count_resets_after_staying_closed),
        cmocka_unit_test(a_call_begun_before_the_opening_count_reset_still_votes),
        cmocka_unit_test(a_breaker_held_open_refuses_every_call_until_released),
        cmocka_unit_test(a_breaker_held_closed_ignores_evidence_until_released),
        cmocka_unit_test(a_manual_hold_replaces_every_other_state),
        cmocka_unit_test(a_manual_hold_clears_the_evidence),
        cmocka_unit_test(releasing_a_breaker_that_is_not_held_changes_nothing),
        cmocka_unit_test(a_manual_hold_retries_until_its_swap_succeeds),
        cmocka_unit_test(the_generation_may_wrap),
        cmocka_unit_test(a_state_that_does_not_exist_counts_as_closed),
        cmocka_unit_test(a_breaker_is_evictable_only_without_failures_in_its_time_window),
        cmocka_unit_test(a_breaker_is_not_evictable_until_closed_and_settled),
        cmocka_unit_test(a_healthy_vote_on_a_closed_breaker_writes_no_shared_word),
        cmocka_unit_test(evidence_is_cleared_on_closing_on_release_and_with_another_window),
        cmocka_unit_test(a_time_window_opens_at_exactly_its_ratio),
        cmocka_unit_test(the_ramp_begins_with_a_tenth_of_the_calls),
        cmocka_unit_test(the_shortest_ramp_admits_exactly_its_share),
        cmocka_unit_test(the_open_time_varies_by_exactly_its_jitter),
        cmocka_unit_test(a_closed_breaker_is_evictable_exactly_when_it_has_settled),
        cmocka_unit_test(clearing_the_evidence_changes_nothing_beside_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
