/* test_votes.c - which failures are evidence against the server: votes in the breaker, and counts of the throttle. */
#include "call_world.h"

#define USUAL    (50 * MS)
#define DEADLINE (20 * MS)

static const struct bide_outcome timed_out = {.kind = BIDE_KIND_TRANSIENT, .flags = BIDE_FLAG_TIMED_OUT};
static const struct bide_outcome no_descriptor = {
    .kind = BIDE_KIND_TRANSIENT, .evidence = BIDE_EVIDENCE_NOT_SENT, .flags = BIDE_FLAG_LOCAL};

/* A breaker that a single vote opens, and a usual latency of 50 ms. */
static void open_votes(enum bide_breaker_kind kind)
{
    reset_world();
    policy.call_timeout_ns = NEVER;
    config.breaker.kind = kind;
    config.breaker.consecutive = 1;
    config.breaker.min_volume = 1;
    config.breaker.ratio_permille = 1;
    config.breaker.count_window = 1;
    open_target();
    bide_call_begin(&call, &policy, &target, &get, T0 - S);
    bide_call_outcome(&call, 1, &good, T0 - S + USUAL);
}

/* Returns true if the outcome of an attempt that ends after took_ns opens the breaker. */
static bool opens(const struct bide_outcome *outcome, int64_t deadline_ns, int64_t took_ns)
{
    struct bide_request request = get;
    request.deadline_ns = deadline_ns;
    bide_call_begin(&call, &policy, &target, &request, T0);
    bide_call_outcome(&call, 1, outcome, T0 + took_ns);
    bide_call_cancel(&call, T0 + took_ns);
    return core_breaker_get(&target).state == BIDE_BREAKER_OPEN;
}

static const enum bide_breaker_kind kinds[] = {BIDE_BREAKER_BY_TIME, BIDE_BREAKER_BY_COUNT, BIDE_BREAKER_BY_RUN};

static void only_a_timeout_at_the_deadline_that_came_before_the_usual_latency_casts_no_vote(void **state)
{
    static const struct {
        const struct bide_outcome *outcome;
        int64_t deadline_ns, took_ns;
        bool opens;
    } rows[] = {
        {&timed_out, T0 + DEADLINE, DEADLINE, false},
        {&timed_out, T0 + DEADLINE, DEADLINE + 1, false},
        {&timed_out, T0 + DEADLINE, DEADLINE - 2 * MS, false}, /* the client library rounded down */
        {&timed_out, T0 + DEADLINE, DEADLINE - 2 * MS - 1, true},
        {&timed_out, NEVER, DEADLINE, true},
        {&failed, T0 + DEADLINE, DEADLINE, true},
        {&limited, T0 + DEADLINE, DEADLINE, false},
        {&timed_out, T0 + USUAL, USUAL - 1, false},
        {&timed_out, T0 + USUAL, USUAL, true},
        {&no_descriptor, NEVER, 0, false},
        {&no_descriptor, T0 + DEADLINE, DEADLINE, false},
    };
    for (size_t kind = 0; kind < COUNT(kinds); kind++)
        for (size_t i = 0; i < COUNT(rows); i++) {
            open_votes(kinds[kind]);
            if (opens(rows[i].outcome, rows[i].deadline_ns, rows[i].took_ns) != rows[i].opens)
                fail_msg("breaker %zu, row %zu: %s", kind, i, rows[i].opens ? "not opened" : "opened");
        }
}

static void a_success_marked_local_is_a_success(void **state)
{
    static const struct bide_outcome odd = {.kind = BIDE_KIND_OK, .flags = BIDE_FLAG_LOCAL | BIDE_FLAG_TIMED_OUT};
    open_votes(BIDE_BREAKER_BY_RUN);
    config.breaker.consecutive = 2;
    open_target();
    assert_false(opens(&failed, NEVER, 0));
    assert_false(opens(&odd, NEVER, 0)); /* ends the run */
    assert_false(opens(&failed, NEVER, 0));
    assert_true(opens(&failed, NEVER, 0));
}

/* With a time window only the first success of a slot (a second) is sampled: the others take the fast path. */
static void a_time_window_samples_the_first_success_of_each_slot(void **state)
{
    open_votes(BIDE_BREAKER_BY_TIME);
    for (int i = 0; i < 5; i++) {
        bide_call_begin(&call, &policy, &target, &get, T0);
        bide_call_outcome(&call, 1, &good, T0 + (i + 1) * 100 * MS); /* 100, 200, ... 500 ms */
    }
    assert_int_equal(core_load(&target.usual_ns), USUAL + USUAL / 4);
    bide_call_begin(&call, &policy, &target, &get, T0 + S);
    bide_call_outcome(&call, 1, &good, T0 + S + USUAL);
    assert_true((int64_t)core_load(&target.usual_ns) < USUAL + USUAL / 4);
}

static uint64_t counted_attempts(void)
{
    return core_lanes_sum(&target, offsetof(struct bide_lane_words_, attempts));
}

static uint64_t counted_accepts(void)
{
    return core_lanes_sum(&target, offsetof(struct bide_lane_words_, accepts));
}

static void the_throttle_forgets_attempts_that_are_no_evidence(void **state)
{
    static const struct bide_outcome unknown_name = {
        .kind = BIDE_KIND_PERMANENT, .evidence = BIDE_EVIDENCE_NOT_SENT, .flags = BIDE_FLAG_LOCAL};
    reset_world();
    config.throttle_k_milli = 2000;
    open_target();
    opens(&good, NEVER, USUAL);
    assert_int_equal(counted_attempts(), 1);
    opens(&no_descriptor, NEVER, 0);
    opens(&unknown_name, NEVER, 0);
    opens(&timed_out, T0 + DEADLINE, DEADLINE);
    assert_int_equal(counted_attempts(), 1);
    assert_int_equal(counted_accepts(), 1);
    opens(&timed_out, T0 + USUAL, USUAL);
    opens(&failed, NEVER, 0);
    assert_int_equal(counted_attempts(), 3);
    assert_int_equal(counted_accepts(), 1);
}

static void a_new_owner_of_the_memory_has_no_usual_latency(void **state)
{
    open_votes(BIDE_BREAKER_BY_RUN);
    assert_int_equal(core_load(&target.usual_ns), USUAL);
    assert_int_equal(bide_target_configure(&target, &config, T0, NULL), BIDE_OK);
    assert_int_equal(core_load(&target.usual_ns), USUAL); /* a reload keeps it */
    assert_int_equal(core_target_reuse(&target, &config, T0, NULL), BIDE_OK);
    assert_int_equal(core_load(&target.usual_ns), 0);
    assert_int_equal(core_load(&target.usual_at_ns), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_a_timeout_at_the_deadline_that_came_before_the_usual_latency_casts_no_vote),
        cmocka_unit_test(a_success_marked_local_is_a_success),
        cmocka_unit_test(a_time_window_samples_the_first_success_of_each_slot),
        cmocka_unit_test(the_throttle_forgets_attempts_that_are_no_evidence),
        cmocka_unit_test(a_new_owner_of_the_memory_has_no_usual_latency),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
