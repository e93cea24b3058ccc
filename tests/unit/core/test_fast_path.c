/* test_fast_path.c - fast path and slow path decide alike, with each gate and each hot setting turned on alone.
 *
 * The same random events are played on two targets, one with every fast path turned off: verdicts and all bytes of the
 * target must be equal. A gate or setting that a fast path skips shows as a difference. The tables below have a row for
 * every gate and every row of CORE_HOT_LIST, or this file does not compile. */
#include "call_world.h"
#include "core/lease.h"

#define CALLS     3u
#define STEPS     60u
#define SEQUENCES 60u

static struct bide_request request;
static bool leased;
static uint64_t seed;
static uint32_t draws;

static uint64_t draw(uint64_t most)
{
    return core_uniform((struct core_random_key){seed, draws++, CORE_FOR_BACKOFF}, most);
}

/* ---- what is turned on ---- */

/* Nothing is on: tokens in plenty, and a breaker by time that does not open. Every event may take its fast path. */
static void nothing(void)
{
    reset_world();
    leased = false;
    request = get;
    policy.call_timeout_ns = 10 * S;
    config.budget.capacity_milli = 1000000;
    config.breaker.kind = BIDE_BREAKER_BY_TIME;
    config.breaker.min_volume = 100000;
}

static void turn_on_BREAKER_KIND(void)
{
    config.breaker.kind = BIDE_BREAKER_BY_RUN;
    config.breaker.consecutive = 2;
}

static void turn_on_SLOW_IS_FAILURE(void)
{
    config.breaker.slow_ns = 100 * MS;
    config.breaker.min_volume = 2;
}

static void turn_on_BUDGET_KIND(void)
{
    config.budget.kind = BIDE_BUDGET_CONCURRENCY;
    config.budget.reserve = 1;
}

static void turn_on_COUNTS_FIRST(void)
{
    config.budget.earn_first_milli = 10;
    config.budget.initial_milli = 0;
}

static void turn_on_REFUND(void)
{
    config.budget.refund_permille = 500;
}

static void turn_on_COST_FAILURE(void)
{
    config.budget.cost_failure_milli = 700;
}

static void turn_on_THROTTLE(void)
{
    config.throttle_k_milli = 1001;
    config.throttle_min_volume = 1;
}

static void turn_on_IN_FLIGHT(void)
{
    config.in_flight_max = 1;
}

static void turn_on_KEYS(void)
{
    config.key_retries = 1;
    config.key_interval_ns = S;
    request.retry_key = 77;
}

static void turn_on_HOLD_OFF_FIRST(void)
{
    config.hold_off_first = true;
}

static void turn_on_LATENCY(void)
{
    config.latency = true;
}

static void turn_on_ON_EMPTY_OPEN(void)
{
    config.budget.on_empty = BIDE_ON_EMPTY_OPEN;
    config.budget.capacity_milli = 2000;
}

static void turn_on_TRUST(void)
{
    config.trust = BIDE_TRUST_THROTTLED | BIDE_TRUST_UNAVAILABLE;
    request.safety = BIDE_UNSAFE;
}

static void turn_on_OBSERVE(void)
{
    config.observe = BIDE_TARGET_GATES;
    config.budget.capacity_milli = 2000;
    config.breaker.min_volume = 2;
}

static void turn_on_LEASED(void)
{
    leased = true;
}

static void turn_on_window(void)
{
    config.budget.kind = BIDE_BUDGET_WINDOW;
    config.budget.ratio_ppm = 100000;
    config.budget.window_ns = 2 * S;
}

static void turn_on_by_count(void)
{
    config.breaker.kind = BIDE_BREAKER_BY_COUNT;
    config.breaker.count_window = 4;
    config.breaker.min_volume = 2;
}

/* A row for each of CORE_HOT_LIST: a new row needs its function above. Then further values of some settings. */
static const struct setting {
    const char *name;
    uint32_t bits;
    void (*turn_on)(void);
} settings[] = {
#define ROW(NAME, low, bits, gate, begin, success, failure, wake) {#NAME, CORE_HOT_BITS(low, bits), turn_on_##NAME},
    CORE_HOT_LIST(ROW)
#undef ROW
        {"a window budget", CORE_HOT_BUDGET_KIND, turn_on_window},
    {"a breaker by count", CORE_HOT_BREAKER_KIND, turn_on_by_count},
};

/* The settings that keep an event off its fast path, once more by name: CORE_HOT_LIST has no other witness, since some
 * settings act alike on both paths in most sequences. */
static const uint32_t slow_settings[CORE_FAST_PATHS] = {
    [CORE_FAST_BEGIN] =
        CORE_HOT_COUNTS_FIRST | CORE_HOT_THROTTLE | CORE_HOT_IN_FLIGHT | CORE_HOT_KEYS | CORE_HOT_HOLD_OFF_FIRST,
    [CORE_FAST_SUCCESS] = CORE_HOT_BREAKER_KIND | CORE_HOT_SLOW_IS_FAILURE | CORE_HOT_BUDGET_KIND | CORE_HOT_THROTTLE |
                          CORE_HOT_LATENCY | CORE_HOT_LEASED,
    [CORE_FAST_FAILURE] = CORE_HOT_BREAKER_KIND | CORE_HOT_SLOW_IS_FAILURE | CORE_HOT_BUDGET_KIND |
                          CORE_HOT_COST_FAILURE | CORE_HOT_THROTTLE | CORE_HOT_LATENCY | CORE_HOT_LEASED,
    [CORE_FAST_WAKE] = CORE_HOT_THROTTLE | CORE_HOT_IN_FLIGHT,
};

static void require_key(void)
{
    policy.require_key = true;
    request.safety = BIDE_IDEMPOTENT;
}

static void unsafe_requests(void)
{
    request.safety = BIDE_UNSAFE;
}

static void short_hints(void)
{
    policy.hint_max_ns = 10 * MS;
}

static void inner_layer(void)
{
    request.inbound.attempt = 2;
}

/* Not a gate, and decided on both paths. */
static void few_waits(void)
{
    policy.waits_max_ns = 250 * MS;
}

static void open_soon(void)
{
    config.breaker.min_volume = 2;
}

static void few_tokens(void)
{
    config.budget.capacity_milli = 2000;
}

/* The gate of bit i refuses after turn_on_gate[i]. */
static void (*const turn_on_gate[])(void) = {
    require_key,       unsafe_requests, short_hints,  inner_layer, turn_on_THROTTLE,
    turn_on_IN_FLIGHT, open_soon,       turn_on_KEYS, few_tokens,
};

_Static_assert(COUNT(turn_on_gate) == BIDE_GATE_COUNT, "a gate is not tested");

/* ---- the same events on both paths ---- */

static const struct bide_outcome outcomes[] = {
    {.kind = BIDE_KIND_OK, .evidence = BIDE_EVIDENCE_ANSWERED},
    {.kind = BIDE_KIND_OK, .evidence = BIDE_EVIDENCE_ANSWERED},
    {.kind = BIDE_KIND_OK, .evidence = BIDE_EVIDENCE_ANSWERED},
    {.kind = BIDE_KIND_OK, .evidence = BIDE_EVIDENCE_ANSWERED},
    {.kind = BIDE_KIND_TRANSIENT, .evidence = BIDE_EVIDENCE_ANSWERED},
    {.kind = BIDE_KIND_TRANSIENT, .evidence = BIDE_EVIDENCE_NOT_SENT},
    {.kind = BIDE_KIND_TRANSIENT, .evidence = BIDE_EVIDENCE_ANSWERED, .flags = BIDE_FLAG_UNAVAILABLE},
    {.kind = BIDE_KIND_TRANSIENT, .evidence = BIDE_EVIDENCE_UNKNOWN, .flags = BIDE_FLAG_TIMED_OUT},
    {.kind = BIDE_KIND_TRANSIENT, .evidence = BIDE_EVIDENCE_ANSWERED, .hint = {BIDE_HINT_WAIT, 50 * MS}},
    {.kind = BIDE_KIND_THROTTLED, .evidence = BIDE_EVIDENCE_ANSWERED, .hint = {BIDE_HINT_WAIT, 50 * MS}},
    {.kind = BIDE_KIND_PERMANENT, .evidence = BIDE_EVIDENCE_ANSWERED},
    {.kind = BIDE_KIND_CANCELLED, .evidence = BIDE_EVIDENCE_NOT_SENT},
};

static struct bide_verdict random_event(struct bide_call *c, int64_t now_ns)
{
    uint64_t event = draw(9);
    struct bide_request r = request;
    r.seed = draw(1000);
    if (c->state == CORE_NEW || c->state == CORE_ENDED || event == 0) {
        bide_call_cancel(c, now_ns);
        return bide_call_begin(c, &policy, &target, &r, now_ns);
    }
    if (event == 1)
        return bide_call_cancel(c, now_ns);
    if (c->state == CORE_RUNNING && c->wake_ns > now_ns)
        return bide_call_outcome(c, c->attempt, &outcomes[draw(COUNT(outcomes) - 1)], now_ns);
    return bide_call_wake(c, now_ns);
}

static void play(bool slow, struct bide_verdict said[STEPS])
{
    struct bide_call calls[CALLS] = {{0}};
    int64_t now_ns = T0;
    draws = 0;
    open_target();
    if (leased) {
        assert_int_equal(core_lease_begin(&target, T0, NULL), BIDE_OK);
        assert_int_equal(bide_budget_add_milli(&target, 5000, T0), 5000);
    }
    core_force_slow_path = slow;
    for (uint32_t i = 0; i < STEPS; i++, now_ns += (int64_t)draw(150) * MS)
        said[i] = random_event(&calls[draw(CALLS - 1)], now_ns);
    core_force_slow_path = false;
}

/* Plays random sequences on both paths. Returns how often each gate refused, as bits. */
static uint32_t assert_same_on_both_paths(const char *name)
{
    static struct bide_verdict fast[STEPS], slow[STEPS];
    static struct bide_target after_fast;
    uint32_t refused = 0;
    memset(core_fast_paths_taken, 0, sizeof core_fast_paths_taken);
    for (seed = 1; seed <= SEQUENCES; seed++) {
        play(false, fast);
        after_fast = target;
        play(true, slow);
        for (uint32_t i = 0; i < STEPS; i++)
            if (memcmp(&fast[i], &slow[i], sizeof fast[i]) != 0)
                fail_msg("%s, seed %d, event %u: %s %s on the fast path, %s %s on the slow path", name, (int)seed, i,
                         bide_action_label(fast[i].action), bide_reason_label(fast[i].reason),
                         bide_action_label(slow[i].action), bide_reason_label(slow[i].reason));
        if (memcmp(&after_fast, &target, sizeof target) != 0)
            fail_msg("%s, seed %d: the targets differ", name, (int)seed);
        for (uint32_t i = 0; i < BIDE_GATE_COUNT; i++)
            refused |= target.refused[i] > 0 ? 1u << i : 0;
    }
    return refused;
}

static void both_paths_agree_while_nothing_is_on(void **state)
{
    nothing();
    assert_int_equal(assert_same_on_both_paths("nothing"), 0);
    for (uint32_t i = 0; i < CORE_FAST_PATHS; i++)
        assert_true(core_fast_paths_taken[i] > 100);
}

static void each_fast_path_is_closed_by_the_settings_named_here(void **state)
{
    assert_int_equal(slow_settings[CORE_FAST_BEGIN], CORE_HOT_NO_FAST_BEGIN);
    assert_int_equal(slow_settings[CORE_FAST_SUCCESS], CORE_HOT_NO_FAST_SUCCESS);
    assert_int_equal(slow_settings[CORE_FAST_FAILURE], CORE_HOT_NO_FAST_FAILURE);
    assert_int_equal(slow_settings[CORE_FAST_WAKE], CORE_HOT_NO_FAST_WAKE);
}

static void each_hot_setting_alone_acts_the_same_on_both_paths(void **state)
{
    for (size_t i = 0; i < COUNT(settings); i++) {
        nothing();
        settings[i].turn_on();
        assert_same_on_both_paths(settings[i].name);
        if (!(core_hot(&target) & settings[i].bits))
            fail_msg("%s: its hot bits are not set", settings[i].name);
        for (uint32_t path = 0; path < CORE_FAST_PATHS; path++)
            if ((slow_settings[path] & settings[i].bits) != 0 && core_fast_paths_taken[path] > 0)
                fail_msg("%s: fast path %u was taken", settings[i].name, path);
    }
}

static void each_gate_alone_refuses_the_same_on_both_paths(void **state)
{
    for (uint32_t i = 0; i < BIDE_GATE_COUNT; i++) {
        const char *name = bide_gate_label((enum bide_gate)(1u << i));
        nothing();
        turn_on_gate[i]();
        uint32_t refused = assert_same_on_both_paths(name);
        if (refused != 1u << i)
            fail_msg("%s: the gates that refused are 0x%x", name, refused);
    }
}

static void a_limit_of_all_waits_acts_the_same_on_both_paths(void **state)
{
    nothing();
    few_waits();
    assert_int_equal(assert_same_on_both_paths("a limit of all waits"), 0);
    for (uint32_t i = 0; i < CORE_FAST_PATHS; i++)
        assert_true(core_fast_paths_taken[i] > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_paths_agree_while_nothing_is_on),
        cmocka_unit_test(each_fast_path_is_closed_by_the_settings_named_here),
        cmocka_unit_test(each_hot_setting_alone_acts_the_same_on_both_paths),
        cmocka_unit_test(each_gate_alone_refuses_the_same_on_both_paths),
        cmocka_unit_test(a_limit_of_all_waits_acts_the_same_on_both_paths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
