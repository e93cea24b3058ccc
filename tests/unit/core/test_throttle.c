/* test_throttle.c - adaptive client throttling (load shedding): the formula of the SRE book as a table, then the share
 * that is refused.
 *
 * reject = max(0, (requests - K * accepts) / (requests + 1)), over a sliding window of 120 s here. */
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
#define NOW          (1000000 * S)

static struct bide_target target;

static struct bide_target_config throttling(uint32_t k_milli)
{
    struct bide_target_config config;
    bide_target_config_init(&config, BIDE_PRESET_SERVICE);
    config.throttle_k_milli = k_milli;
    config.throttle_max_permille = 1000;
    config.throttle_min_volume = 0;
    return config;
}

static void init_target(const struct bide_target_config *config)
{
    assert_int_equal(bide_target_init(&target, config, NOW, NULL), BIDE_OK);
}

static bool admit(uint64_t seed, int64_t now_ns)
{
    return core_throttle_admit(&target, (uint32_t)seed % BIDE_LANES,
                               (struct core_random_key){seed, 1, CORE_FOR_THROTTLE}, now_ns);
}

/* Sends n requests; the server accepts `accepts_percent` of the admitted requests. Returns the number refused. */
static uint32_t send_requests(uint32_t n, uint32_t accepts_percent, int64_t from_ns, int64_t gap_ns)
{
    uint32_t refused = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (!admit(i, from_ns + i * gap_ns))
            refused++;
        else if (i % 100 < accepts_percent)
            core_throttle_record_accept(&target, i % BIDE_LANES);
    }
    return refused;
}

/* -- the formula --------------------------------------------------------------------------------------------------- */

static void the_share_matches_the_formula_of_the_sre_book(void **state)
{
    static const struct {
        uint64_t requests, accepts;
        uint32_t k_milli;
        double reject;
    } rows[] = {
        {0, 0, 2000, 0.0},
        {1, 0, 2000, 0.5},
        {10, 10, 2000, 0.0},
        {100, 100, 2000, 0.0},
        {100, 50, 2000, 0.0},
        {100, 49, 2000, 0.019801980198019802},
        {100, 40, 2000, 0.19801980198019803},
        {100, 10, 2000, 0.7920792079207921},
        {100, 0, 2000, 0.9900990099009901},
        {1000, 0, 2000, 0.999000999000999},
        {100, 90, 1100, 0.00990099009900976},
        {110, 100, 1100, 0.0},
        {111, 100, 1100, 0.008928571428571301},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct core_fraction got = core_throttle_reject_share(rows[i].requests, rows[i].accepts, rows[i].k_milli);
        double error = (double)got.numerator / (double)got.denominator - rows[i].reject;
        assert_true(error > -1e-12 && error < 1e-12);
        assert_int_equal(got.denominator, 1000 * (rows[i].requests + 1));
    }
}

static void the_share_does_not_overflow_with_the_largest_window_counts(void **state)
{
    const uint64_t most = (UINT64_C(1) << 40) - 1;
    struct core_fraction all = core_throttle_reject_share(most, 0, 1000000),
                         none = core_throttle_reject_share(most, most, 1000000);
    assert_int_equal(all.numerator, most * 1000);
    assert_int_equal(all.denominator, (most + 1) * 1000);
    assert_int_equal(none.numerator, 0);
}

/* -- the refused share --------------------------------------------------------------------------------------------- */

static void no_request_is_refused_when_the_server_accepts_all(void **state)
{
    struct bide_target_config config = throttling(2000);
    init_target(&config);
    assert_int_equal(send_requests(10000, 100, NOW, 10 * MS), 0);
}

static void no_request_is_refused_when_the_server_accepts_half_with_k_2(void **state)
{
    struct bide_target_config config = throttling(2000);
    init_target(&config);
    send_requests(2000, 100, NOW, 1 * MS);
    assert_true(send_requests(10000, 55, NOW + 2 * S, 1 * MS) < 10);
}

/* In equilibrium requests = K * accepts: a share p of the requests is admitted, of which the server accepts a: p * a
 * = 1 / K. */
static void in_equilibrium_the_server_receives_k_times_what_it_accepts(void **state)
{
    struct bide_target_config config = throttling(2000);
    init_target(&config);
    send_requests(12000, 20, NOW, 10 * MS);                              /* one window to reach the equilibrium */
    uint32_t refused = send_requests(24000, 20, NOW + 120 * S, 10 * MS); /* accepts 20 % of what it receives */
    uint32_t sent = 24000 - refused;
    assert_in_range(sent, 1, 24000 / 2);
    assert_true(sent * 20 / 100 * 2 <= 24000 + 1200);
    assert_true(refused > 24000 / 2);
}

static void half_of_the_requests_are_refused_after_one_not_accepted(void **state)
{
    uint32_t refused = 0;
    for (uint64_t seed = 0; seed < 4000; seed++) {
        struct bide_target_config config = throttling(2000);
        init_target(&config);
        assert_true(admit(seed, NOW)); /* nothing is counted yet */
        refused += !admit(seed + 1000000, NOW);
    }
    assert_in_range(refused, 2000 - 160, 2000 + 160);
}

static void requests_refused_here_count_as_requests(void **state)
{
    struct bide_target_config config = throttling(2000);
    init_target(&config);
    send_requests(100, 0, NOW, 0);
    assert_int_equal(core_lanes_sum(&target, offsetof(struct bide_lane_words_, attempts)), 100);
    assert_int_equal(core_lanes_sum(&target, offsetof(struct bide_lane_words_, accepts)), 0);
    uint32_t refused =
        send_requests(1000, 0, NOW, 0); /* 1000 requests of 1100 were never sent: all but 1 in 100 refused */
    assert_in_range(refused, 985, 1000);
}

/* Without a cap the share in a long outage comes so close to 1 that the recovery of the server would not be seen. */
static void the_refused_share_never_exceeds_the_cap(void **state)
{
    static const uint32_t caps[] = {1, 500, 900, 999};
    for (size_t i = 0; i < COUNT(caps); i++) {
        struct bide_target_config config = throttling(2000);
        config.throttle_max_permille = caps[i];
        init_target(&config);
        send_requests(2000, 0, NOW, 0);
        uint32_t refused = send_requests(20000, 0, NOW, 0), expected = 20 * caps[i];
        assert_in_range(refused, expected < 300 ? 0 : expected - 300, expected + 300);
    }
}

static void refusals_begin_at_the_minimum_volume(void **state)
{
    struct bide_target_config config = throttling(2000);
    uint32_t refused = 0;
    config.throttle_min_volume = 50;
    for (uint64_t seed = 0; seed < 200; seed++) {
        init_target(&config);
        assert_int_equal(send_requests(50, 0, NOW, 0), 0);
        refused += !admit(seed + 1000, NOW); /* 50 of 51 */
    }
    assert_in_range(refused, 185, 200);
}

static void requests_older_than_the_window_do_not_count(void **state)
{
    struct bide_target_config config = throttling(2000);
    init_target(&config);
    send_requests(1000, 0, NOW, 0);
    assert_false(admit(7, NOW));
    assert_true(admit(7, NOW + 120 * S));
    assert_int_equal(send_requests(1000, 100, NOW + 121 * S, 0), 0);
}

static void after_an_outage_traffic_returns_gradually_and_then_in_full(void **state)
{
    struct bide_target_config config = throttling(2000);
    config.throttle_max_permille = 900;
    init_target(&config);
    uint32_t before = 54000 - 500; /* nine in ten */
    assert_true(send_requests(60000, 0, NOW, 2 * MS) > before);
    for (int64_t window = 1; window <= 3; window++) {
        uint32_t refused = send_requests(60000, 100, NOW + window * 120 * S, 2 * MS);
        assert_true(refused < before);
        before = refused;
    }
    assert_int_equal(send_requests(60000, 100, NOW + 480 * S, 2 * MS), 0);
}

static void a_shorter_window_applies_from_the_reload_on(void **state)
{
    struct bide_target_config config = throttling(2000);
    config.throttle_window_ns = 3600 * S;
    init_target(&config);
    admit(1, NOW);
    config.throttle_window_ns = 10 * S;
    assert_int_equal(bide_target_configure(&target, &config, NOW, NULL), BIDE_OK);
    assert_true(send_requests(1000, 0, NOW + 1 * S, 0) > 900);
}

/* -- eviction ------------------------------------------------------------------------------------------------------ */

static void the_throttle_is_evictable_while_it_would_refuse_nothing(void **state)
{
    struct bide_target_config config = throttling(2000);
    init_target(&config);
    assert_true(core_throttle_is_evictable(&target, NOW));
    send_requests(100, 100, NOW, 0);
    assert_true(core_throttle_is_evictable(&target, NOW));
    send_requests(300, 0, NOW, 0);
    assert_false(core_throttle_is_evictable(&target, NOW));
    assert_true(core_throttle_is_evictable(&target, NOW + 120 * S));
}

static void the_same_seed_is_always_refused_or_always_admitted(void **state)
{
    struct bide_target_config config = throttling(2000);
    for (uint64_t seed = 0; seed < 100; seed++) {
        bool answers[2];
        for (int again = 0; again < 2; again++) {
            init_target(&config);
            send_requests(10, 10, NOW, 0);
            answers[again] = admit(seed, NOW);
        }
        assert_int_equal(answers[0], answers[1]);
    }
}

/* Every draw, computed here from the share: of n requests none was accepted, and the cap is in thousandths. */
static void the_cap_is_exact(void **state)
{
    static const uint32_t caps[] = {500, 1000};
    for (size_t i = 0; i < COUNT(caps); i++) {
        struct bide_target_config config = throttling(2000);
        config.throttle_max_permille = caps[i];
        init_target(&config);
        for (uint64_t n = 0; n < 20000; n++) {
            uint64_t all = (n + 1) * 1000, share = n * 1000, most = (n + 1) * caps[i];
            struct core_random_key key = {n, 1, CORE_FOR_THROTTLE};
            assert_int_equal(admit(n, NOW), core_uniform(key, all - 1) >= (share < most ? share : most));
        }
    }
}

/* -- exact draws, and settings from shared memory ------------------------------------------------------------------ */

/* One request without an accept: the share is 1000 of 2000. 40,000 seeds: a range of 1999 or 2001 would show. */
static void the_draw_has_exactly_the_range_of_the_share(void **state)
{
    struct bide_target_config config = throttling(2000);
    init_target(&config);
    for (uint64_t seed = 0; seed < 40000; seed++) {
        for (uint32_t i = 0; i < BIDE_LANES; i++)
            target.lane[i].attempts = 0;
        admit(0, NOW);
        uint64_t drawn = core_uniform((struct core_random_key){seed, 1, CORE_FOR_THROTTLE}, 1999);
        assert_int_equal(admit(seed, NOW), drawn >= 1000);
    }
}

/* A largest share of 0, which the check refuses but another process may store, refuses nothing. */
static void a_largest_share_of_zero_refuses_nothing(void **state)
{
    struct bide_target_config config = throttling(2000);
    init_target(&config);
    target.config[0].throttle_max_permille = 0;
    assert_int_equal(send_requests(5000, 0, NOW, 0), 0);
}

/* A call that read the settings before a reload turned throttling off: with a K of 0 the formula would refuse nearly
 * everything. */
static void a_reload_that_turns_throttling_off_refuses_no_attempt(void **state)
{
    struct bide_target_config config = throttling(2000);
    init_target(&config);
    send_requests(1000, 0, NOW, 0);
    assert_false(core_throttle_is_evictable(&target, NOW));
    config.throttle_k_milli = 0;
    assert_int_equal(bide_target_configure(&target, &config, NOW, NULL), BIDE_OK);
    assert_int_equal(send_requests(1000, 0, NOW, 0), 0);
}

/* ---- a call that waits for gates ---- */

static uint64_t requested(void)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < BIDE_LANES; i++)
        sum += target.lane[i].attempts;
    return sum;
}

/* Half of the attempts are refused. A refusal counts as a request, unless the call waits and will request it again. */
static void a_refused_attempt_that_will_be_requested_again_is_not_counted(void **state)
{
    for (int waits = 0; waits < 2; waits++) {
        struct bide_target_config config = throttling(2000);
        struct bide_policy policy;
        uint32_t refused = 0;
        bide_policy_init(&policy, BIDE_PRESET_SERVICE);
        policy.when_refused = waits ? BIDE_WHEN_REFUSED_WAIT : BIDE_WHEN_REFUSED_GIVE_UP;
        init_target(&config);
        send_requests(100, 25, NOW, 0);
        for (uint64_t seed = 1; seed <= 50; seed++) {
            struct bide_call call;
            uint64_t before = requested();
            struct bide_verdict v = bide_call_begin(&call, &policy, &target, &(struct bide_request){.seed = seed}, NOW);
            if (v.action == BIDE_ACTION_START)
                continue;
            refused++;
            assert_int_equal(v.action, waits ? BIDE_ACTION_WAIT : BIDE_ACTION_GIVE_UP);
            assert_int_equal(v.reason, BIDE_REASON_THROTTLE);
            assert_int_equal(requested() - before, waits ? 0 : 1);
        }
        assert_in_range(refused, 5, 49);
    }
}

/* Each wait is followed by a new draw: the share stays the same, and every call is admitted in the end. */
static void a_call_that_waits_for_the_throttle_draws_again_after_each_wait(void **state)
{
    struct bide_target_config config = throttling(2000);
    struct bide_policy policy;
    bide_policy_init(&policy, BIDE_PRESET_SERVICE);
    policy.when_refused = BIDE_WHEN_REFUSED_WAIT;
    policy.call_timeout_ns = BIDE_NEVER;
    policy.base_ns = policy.cap_ns = 1; /* all within the window */
    init_target(&config);
    send_requests(1000, 25, NOW, 0);
    for (uint64_t seed = 1; seed <= 100; seed++) {
        struct bide_call call;
        struct bide_verdict v = bide_call_begin(&call, &policy, &target, &(struct bide_request){.seed = seed}, NOW);
        for (int i = 0; i < 60 && v.action == BIDE_ACTION_WAIT; i++)
            v = bide_call_wake(&call, v.wake_ns);
        assert_int_equal(v.action, BIDE_ACTION_START);
    }
}

/* The first retry of a call that gives up when it is refused; a hint leaves the backoff at its first step. */
static enum bide_action retry_with(uint64_t seed, struct bide_hint hint)
{
    struct bide_target_config config = throttling(2000);
    struct bide_outcome outcome = {.kind = BIDE_KIND_TRANSIENT, .evidence = BIDE_EVIDENCE_NOT_SENT, .hint = hint};
    struct bide_policy policy;
    struct bide_call call;
    bide_policy_init(&policy, BIDE_PRESET_SERVICE);
    policy.jitter = BIDE_JITTER_NONE;
    policy.base_ns = policy.cap_ns = 1;
    init_target(&config);
    send_requests(100, 25, NOW, 0);
    struct bide_verdict v = bide_call_begin(&call, &policy, &target, &(struct bide_request){.seed = seed}, NOW);
    if (v.action == BIDE_ACTION_START)
        v = bide_call_outcome(&call, 1, &outcome, NOW);
    return v.action == BIDE_ACTION_WAIT ? bide_call_wake(&call, v.wake_ns).action : BIDE_ACTION_NONE;
}

static void the_draw_of_an_attempt_does_not_depend_on_the_backoff(void **state)
{
    uint32_t started = 0, refused = 0;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        enum bide_action action = retry_with(seed, (struct bide_hint){0});
        assert_int_equal(retry_with(seed, (struct bide_hint){BIDE_HINT_WAIT, 5}), action);
        started += action == BIDE_ACTION_START;
        refused += action == BIDE_ACTION_GIVE_UP;
    }
    assert_true(started > 5 && refused > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_draw_of_an_attempt_does_not_depend_on_the_backoff),
        cmocka_unit_test(a_refused_attempt_that_will_be_requested_again_is_not_counted),
        cmocka_unit_test(a_call_that_waits_for_the_throttle_draws_again_after_each_wait),
        cmocka_unit_test(the_share_matches_the_formula_of_the_sre_book),
        cmocka_unit_test(the_share_does_not_overflow_with_the_largest_window_counts),
        cmocka_unit_test(no_request_is_refused_when_the_server_accepts_all),
        cmocka_unit_test(no_request_is_refused_when_the_server_accepts_half_with_k_2),
        cmocka_unit_test(in_equilibrium_the_server_receives_k_times_what_it_accepts),
        cmocka_unit_test(half_of_the_requests_are_refused_after_one_not_accepted),
        cmocka_unit_test(requests_refused_here_count_as_requests),
        cmocka_unit_test(the_refused_share_never_exceeds_the_cap),
        cmocka_unit_test(refusals_begin_at_the_minimum_volume),
        cmocka_unit_test(requests_older_than_the_window_do_not_count),
        cmocka_unit_test(after_an_outage_traffic_returns_gradually_and_then_in_full),
        cmocka_unit_test(a_shorter_window_applies_from_the_reload_on),
        cmocka_unit_test(the_throttle_is_evictable_while_it_would_refuse_nothing),
        cmocka_unit_test(the_same_seed_is_always_refused_or_always_admitted),
        cmocka_unit_test(the_cap_is_exact),
        cmocka_unit_test(the_draw_has_exactly_the_range_of_the_share),
        cmocka_unit_test(a_largest_share_of_zero_refuses_nothing),
        cmocka_unit_test(a_reload_that_turns_throttling_off_refuses_no_attempt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
