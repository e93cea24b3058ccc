/* test_meter.c - a meter counts every attempt, outcome, wait, refusal and end of a call exactly once.
 *
 * The counts are compared with a tally that is kept from the events of a listener, which is written apart from the
 * meter. */
#include <bide/bide.h>

#include "os/meter.h"
#include "seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define T0 (1000 * BIDE_S)

static const struct bide_outcome ok = {.kind = BIDE_KIND_OK, .evidence = BIDE_EVIDENCE_ANSWERED};
static const struct bide_outcome failed = {.kind = BIDE_KIND_TRANSIENT, .evidence = BIDE_EVIDENCE_ANSWERED};

static struct bide_meter meter;

static struct bide_meter *meter_of_call(void *context, const struct bide_report_call *call)
{
    (void)context;
    (void)call;
    return &meter;
}

static const struct bide_listener counter = {.meter = meter_of_call};

static int begin_counting(void **state)
{
    (void)state;
    memset(&meter, 0, sizeof meter);
    assert_int_equal(bide_listen(&counter), BIDE_OK);
    return 0;
}

static int end_counting(void **state)
{
    (void)state;
    bide_listen(NULL);
    return 0;
}

static struct bide_meter_view view(void)
{
    struct bide_meter_view found;
    bide_meter_get(&meter, &found);
    return found;
}

static uint64_t sum(const uint64_t *words, size_t count)
{
    uint64_t all = 0;
    for (size_t i = 0; i < count; i++)
        all += words[i];
    return all;
}

static uint64_t count(const struct bide_histogram *histogram)
{
    return sum(histogram->count, BIDE_METER_BINS);
}

/* ---- a call that the test drives ---- */

struct driven {
    struct bide_policy policy;
    struct bide_call call;
    struct bide_report report;
    struct bide_verdict verdict;
};

static void step(struct driven *d, struct bide_verdict verdict, const struct bide_attempt_end *end, int64_t now)
{
    if (verdict.action != BIDE_ACTION_NONE || d->verdict.action == BIDE_ACTION_NONE)
        d->verdict = verdict;
    bide_report_verdict(&d->report, &verdict, end, now);
}

static void begin_on(struct driven *d, struct bide_target *target, int64_t now)
{
    static const struct bide_request get = {.safety = BIDE_SAFE, .seed = 7};
    assert_true(bide_report_begin(&d->report, &(struct bide_report_call){.target_name = "payments"}, now));
    step(d, bide_call_begin(&d->call, &d->policy, target, &get, now), NULL, now);
}

static void begin(struct driven *d)
{
    *d = (struct driven){.verdict.action = BIDE_ACTION_NONE};
    bide_policy_init(&d->policy, BIDE_PRESET_SERVICE);
    begin_on(d, BIDE_NO_TARGET, T0);
}

static void end_attempt(struct driven *d, uint32_t attempt, const struct bide_outcome *outcome, int64_t now)
{
    struct bide_attempt_end end = {.outcome = outcome, .attempt = attempt};
    step(d, bide_call_outcome(&d->call, attempt, outcome, now), &end, now);
}

static void success_at_once_is_one_call_one_attempt_one_outcome(void **state)
{
    struct driven d;
    (void)state;
    begin(&d);
    struct bide_meter_view m = view();
    assert_int_equal(m.attempts[BIDE_METER_ATTEMPT_1], 1);
    assert_int_equal(sum(&m.outcomes[0][0], sizeof m.outcomes / sizeof(uint64_t)), 0);
    end_attempt(&d, 1, &ok, T0 + 3 * BIDE_MS);
    m = view();
    assert_int_equal(d.verdict.action, BIDE_ACTION_DONE);
    assert_int_equal(sum(m.attempts, 8), 1);
    assert_int_equal(m.outcomes[BIDE_METER_ATTEMPT_1][BIDE_KIND_OK], 1);
    assert_int_equal(m.calls[BIDE_METER_FIRST], 1);
    assert_int_equal(m.call_ok.count[2], 1); /* above 2.5 ms, up to 5 ms */
    assert_int_equal(m.attempt_ok.count[2], 1);
    assert_int_equal(m.call_ok.sum_us, 3000);
    assert_int_equal(m.attempt_ok.sum_us, 3000);
    assert_int_equal(sum(m.give_ups, BIDE_METER_REASONS), 0);
}

static void retry_that_succeeds_is_a_rescued_call_with_its_wait(void **state)
{
    struct driven d;
    (void)state;
    begin(&d);
    end_attempt(&d, 1, &failed, T0 + 10 * BIDE_MS);
    assert_int_equal(d.verdict.action, BIDE_ACTION_WAIT);
    assert_int_equal(view().waits[BIDE_REASON_BACKOFF], 1);
    assert_int_equal(view().waits_ended, 0);
    int64_t woken = d.verdict.wake_ns;
    step(&d, bide_call_wake(&d.call, woken), NULL, woken);
    end_attempt(&d, 2, &ok, woken + 10 * BIDE_MS);
    struct bide_meter_view m = view();
    assert_int_equal(m.attempts[BIDE_METER_ATTEMPT_1], 1);
    assert_int_equal(m.attempts[BIDE_METER_ATTEMPT_2], 1);
    assert_int_equal(m.outcomes[BIDE_METER_ATTEMPT_1][BIDE_KIND_TRANSIENT], 1);
    assert_int_equal(m.outcomes[BIDE_METER_ATTEMPT_2][BIDE_KIND_OK], 1);
    assert_int_equal(m.calls[BIDE_METER_RESCUED], 1);
    assert_int_equal(m.waits_ended, 1);
    assert_int_equal(m.wait_us, (uint64_t)(woken - T0 - 10 * BIDE_MS) / 1000);
    assert_int_equal(m.attempt_ok.sum_us, 10000);
    assert_int_equal(m.attempt_failed.sum_us, 10000);
    assert_int_equal(m.call_ok.sum_us, (uint64_t)(woken + 10 * BIDE_MS - T0) / 1000);
}

static void cancelled_wait_ends_and_the_call_is_in_no_histogram(void **state)
{
    struct driven d;
    (void)state;
    begin(&d);
    end_attempt(&d, 1, &failed, T0);
    step(&d, bide_call_cancel(&d.call, T0 + BIDE_MS), NULL, T0 + BIDE_MS);
    struct bide_meter_view m = view();
    assert_int_equal(m.calls[BIDE_METER_CANCELLED], 1);
    assert_int_equal(m.give_ups[BIDE_REASON_CANCELLED], 1);
    assert_int_equal(m.waits_ended, 1);
    assert_int_equal(m.wait_us, 1000);
    assert_int_equal(count(&m.call_ok) + count(&m.call_failed), 0);
}

static void attempt_that_is_cut_ends_as_cancelled(void **state)
{
    struct driven d;
    (void)state;
    begin(&d);
    step(&d, bide_call_cancel(&d.call, T0 + BIDE_MS), NULL, T0 + BIDE_MS);
    struct bide_meter_view m = view();
    assert_int_equal(m.outcomes[BIDE_METER_ATTEMPT_1][BIDE_KIND_CANCELLED], 1);
    assert_int_equal(count(&m.attempt_cancelled), 1);
    assert_int_equal(m.calls[BIDE_METER_CANCELLED], 1);
}

/* Returns a target whose breaker is held open by hand. */
static void target_open(struct bide_target *target)
{
    assert_int_equal(bide_target_init(target, NULL, T0, NULL), BIDE_OK);
    bide_breaker_hold(target, BIDE_HOLD_OPEN);
}

static void refused_call_has_no_attempt_and_no_duration(void **state)
{
    struct driven d = {.verdict.action = BIDE_ACTION_NONE};
    struct bide_target target;
    (void)state;
    target_open(&target);
    bide_policy_init(&d.policy, BIDE_PRESET_SERVICE);
    begin_on(&d, &target, T0);
    struct bide_meter_view m = view();
    assert_int_equal(m.calls[BIDE_METER_REFUSED], 1);
    assert_int_equal(m.give_ups[BIDE_REASON_BREAKER_OPEN], 1);
    assert_int_equal(m.refusals[BIDE_GATE_INDEX(BIDE_GATE_BREAKER)][BIDE_METER_ENFORCE], 1);
    assert_int_equal(sum(m.attempts, 8), 0);
    assert_int_equal(count(&m.call_ok) + count(&m.call_failed), 0);
}

static void gate_that_observes_counts_what_it_would_have_refused(void **state)
{
    struct driven d = {.verdict.action = BIDE_ACTION_NONE};
    struct bide_target_config config;
    struct bide_target target;
    (void)state;
    bide_target_config_init(&config, BIDE_PRESET_SERVICE);
    config.observe = BIDE_GATE_BREAKER;
    assert_int_equal(bide_target_init(&target, &config, T0, NULL), BIDE_OK);
    bide_breaker_hold(&target, BIDE_HOLD_OPEN);
    bide_policy_init(&d.policy, BIDE_PRESET_SERVICE);
    begin_on(&d, &target, T0);
    end_attempt(&d, 1, &ok, T0 + BIDE_MS);
    struct bide_meter_view m = view();
    assert_int_equal(m.refusals[BIDE_GATE_INDEX(BIDE_GATE_BREAKER)][BIDE_METER_OBSERVE], 1);
    assert_int_equal(m.refusals[BIDE_GATE_INDEX(BIDE_GATE_BREAKER)][BIDE_METER_ENFORCE], 0);
    assert_int_equal(m.calls[BIDE_METER_FIRST], 1);
}

static void hedges_and_refreshes_are_classes_of_their_own(void **state)
{
    struct driven d = {.verdict.action = BIDE_ACTION_NONE};
    static const struct bide_verdict none = {.action = BIDE_ACTION_NONE, .wake_ns = BIDE_NEVER};
    (void)state;
    bide_policy_init(&d.policy, BIDE_PRESET_SERVICE);
    d.policy.hedges_max = 1;
    d.policy.hedge_delay_ns = 100 * BIDE_MS;
    begin_on(&d, BIDE_NO_TARGET, T0);
    struct bide_verdict first = d.verdict;
    static const struct bide_outcome denied = {.kind = BIDE_KIND_PERMANENT};
    struct bide_attempt_end with_401 = {.outcome = &denied, .attempt = 1};
    bide_report_verdict(&d.report, &none, &with_401, T0 + BIDE_MS);
    bide_report_verdict(&d.report, &first, NULL, T0 + BIDE_MS);
    step(&d, bide_call_wake(&d.call, first.wake_ns), NULL, first.wake_ns);
    end_attempt(&d, 2, &ok, first.wake_ns + BIDE_MS);
    struct bide_meter_view m = view();
    assert_int_equal(m.attempts[BIDE_METER_ATTEMPT_1], 1);
    assert_int_equal(m.attempts[BIDE_METER_REFRESH], 1);
    assert_int_equal(m.attempts[BIDE_METER_HEDGE], 1);
    assert_int_equal(m.outcomes[BIDE_METER_ATTEMPT_1][BIDE_KIND_PERMANENT], 1);
    assert_int_equal(m.outcomes[BIDE_METER_REFRESH][BIDE_KIND_CANCELLED], 1);
    assert_int_equal(m.outcomes[BIDE_METER_HEDGE][BIDE_KIND_OK], 1);
    assert_int_equal(m.calls[BIDE_METER_RESCUED], 1);
}

static void refreshed_first_attempt_that_succeeds_is_no_rescue(void **state)
{
    struct driven d;
    static const struct bide_verdict none = {.action = BIDE_ACTION_NONE, .wake_ns = BIDE_NEVER};
    static const struct bide_outcome denied = {.kind = BIDE_KIND_PERMANENT};
    (void)state;
    begin(&d);
    struct bide_verdict first = d.verdict;
    bide_report_verdict(&d.report, &none, &(struct bide_attempt_end){.outcome = &denied, .attempt = 1}, T0);
    bide_report_verdict(&d.report, &first, NULL, T0);
    end_attempt(&d, 1, &ok, T0 + BIDE_MS);
    struct bide_meter_view m = view();
    assert_int_equal(m.attempts[BIDE_METER_ATTEMPT_1] + m.attempts[BIDE_METER_REFRESH], 2);
    assert_int_equal(m.outcomes[BIDE_METER_ATTEMPT_1][BIDE_KIND_PERMANENT], 1);
    assert_int_equal(m.outcomes[BIDE_METER_REFRESH][BIDE_KIND_OK], 1);
    assert_int_equal(m.calls[BIDE_METER_FIRST], 1);
}

/* ---- durations ---- */

static void bin_of_a_duration_has_the_least_bound_that_is_not_below_it(void **state)
{
    (void)state;
    for (uint32_t bin = 0; bin < BIDE_METER_BINS - 1; bin++) {
        int64_t bound = bide_meter_bound_ns(bin);
        assert_int_equal(os_meter_bin((uint64_t)bound), bin);
        assert_int_equal(os_meter_bin((uint64_t)bound + 1), bin + 1);
        assert_true(bin == 0 || bound > bide_meter_bound_ns(bin - 1));
    }
    for (int bit = 0; bit < 63; bit++) {
        int64_t time = INT64_C(1) << bit;
        uint32_t bin = 0;
        while (time > bide_meter_bound_ns(bin))
            bin++;
        assert_int_equal(os_meter_bin((uint64_t)time), bin);
    }
    assert_int_equal(os_meter_bin(0), 0);
    assert_int_equal(os_meter_bin(INT64_MAX), BIDE_METER_BINS - 1);
    assert_int_equal(bide_meter_bound_ns(0), BIDE_MS);
    assert_int_equal(bide_meter_bound_ns(BIDE_METER_BINS - 2), 300 * BIDE_S);
    assert_true(bide_meter_bound_ns(BIDE_METER_BINS - 1) == BIDE_NEVER);
}

/* ---- random calls beside a tally of their events ---- */

struct tally {
    struct bide_meter_view m;
    uint64_t ok_us, failed_us; /* of calls */
    int64_t wait_ns;           /* when the wait began */
    bool waits;
    uint32_t attempts;
};

static void tally_event(void *context, const struct bide_event *e)
{
    struct tally *t = context;
    const struct bide_verdict *v = e->verdict;
    unsigned class = 0;
    if (e->attempt > 0 && e->attempt_kind == BIDE_ATTEMPT_REGULAR)
        class = e->attempt > 4 ? 3 : e->attempt - 1;
    else if (e->attempt > 0)
        class = e->attempt_kind == BIDE_ATTEMPT_HEDGE ? 4 : 5;
    if (v->action != BIDE_ACTION_NONE && t->waits) {
        t->m.waits_ended++;
        t->m.wait_us += (uint64_t)(e->now_ns - t->wait_ns) / 1000;
        t->waits = false;
    }
    if (e->outcome != NULL) {
        t->m.outcomes[class][e->outcome->kind]++;
    } else if (v->action == BIDE_ACTION_START) {
        t->m.attempts[class]++;
        t->attempts++;
    }
    if (v->action == BIDE_ACTION_WAIT) {
        t->m.waits[v->reason]++;
        t->waits = true;
        t->wait_ns = e->now_ns;
    }
    uint64_t us = (uint64_t)(e->now_ns - e->begin_ns) / 1000;
    if (v->action == BIDE_ACTION_DONE) {
        t->m.calls[v->attempt == 1 ? 0 : 1]++;
        t->ok_us += us;
    } else if (v->action == BIDE_ACTION_GIVE_UP) {
        int result = v->reason == BIDE_REASON_CANCELLED ? 4 : t->attempts > 0 ? 2 : 3;
        t->m.calls[result]++;
        t->m.give_ups[v->reason]++;
        t->failed_us += result == 2 ? us : 0;
    }
    if (v->action == BIDE_ACTION_DONE || v->action == BIDE_ACTION_GIVE_UP)
        t->attempts = 0;
}

static uint64_t dice_state;

static uint32_t dice(uint32_t sides)
{
    dice_state = dice_state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)(dice_state >> 33) % sides;
}

/* Plays a call with random events to its end. Returns the instant of its end. */
static int64_t play_call(struct driven *d, struct bide_target *target, const struct bide_listener *listener,
                         int64_t now)
{
    static const enum bide_kind kinds[] = {BIDE_KIND_OK,        BIDE_KIND_OK,       BIDE_KIND_TRANSIENT,
                                           BIDE_KIND_THROTTLED, BIDE_KIND_CONFLICT, BIDE_KIND_PERMANENT};
    struct bide_request request = {.safety = BIDE_SAFE, .seed = dice(1u << 30) + 1};
    struct bide_report_call call = {.target_name = "x", .listener = listener};
    d->policy.hedges_max = dice(3);
    d->policy.attempts_max = 1 + d->policy.hedges_max + dice(5);
    assert_int_equal(bide_policy_check(&d->policy, NULL), BIDE_OK);
    assert_true(bide_report_begin(&d->report, &call, now));
    d->verdict = (struct bide_verdict){.action = BIDE_ACTION_NONE};
    step(d, bide_call_begin(&d->call, &d->policy, target, &request, now), NULL, now);
    uint32_t started = d->verdict.action == BIDE_ACTION_START;
    while (d->verdict.action != BIDE_ACTION_DONE && d->verdict.action != BIDE_ACTION_GIVE_UP) {
        struct bide_verdict before = d->verdict;
        now += dice(2) == 0 ? 0 : (int64_t)dice(300) * BIDE_MS;
        if (dice(40) == 0) {
            step(d, bide_call_cancel(&d->call, now), NULL, now);
        } else if (before.wake_ns != BIDE_NEVER && (before.action == BIDE_ACTION_WAIT || dice(3) == 0)) {
            now = now > before.wake_ns ? now : before.wake_ns;
            struct bide_verdict v = bide_call_wake(&d->call, now);
            d->verdict = v.action == BIDE_ACTION_NONE ? before : v;
            d->verdict.wake_ns = v.wake_ns;
            bide_report_verdict(&d->report, &v, NULL, now);
        } else {
            struct bide_outcome o = {.kind = kinds[dice(6)], .evidence = BIDE_EVIDENCE_ANSWERED};
            uint32_t attempt = 1 + dice(started + 1); /* now and then one that has ended, or none */
            struct bide_attempt_end end = {.outcome = &o, .attempt = attempt};
            struct bide_verdict v = bide_call_outcome(&d->call, attempt, &o, now);
            bool late = v.action == BIDE_ACTION_NONE && v.reason == BIDE_REASON_NOTHING && v.wake_ns == before.wake_ns;
            d->verdict = v.action == BIDE_ACTION_NONE ? before : v;
            d->verdict.wake_ns = v.wake_ns;
            bide_report_verdict(&d->report, &v, late ? NULL : &end, now);
        }
        started += d->verdict.action == BIDE_ACTION_START && d->verdict.attempt > started;
    }
    return now;
}

/* Identities of a meter without a call in flight. */
static void assert_adds_up(const struct bide_meter_view *m)
{
    assert_int_equal(sum(m->attempts, 8), sum(&m->outcomes[0][0], sizeof m->outcomes / sizeof(uint64_t)));
    assert_int_equal(sum(m->waits, BIDE_METER_REASONS), m->waits_ended);
    assert_int_equal(m->calls[BIDE_METER_FAILED] + m->calls[BIDE_METER_REFUSED] + m->calls[BIDE_METER_CANCELLED],
                     sum(m->give_ups, BIDE_METER_REASONS));
    assert_int_equal(m->calls[BIDE_METER_FIRST] + m->calls[BIDE_METER_RESCUED], count(&m->call_ok));
    assert_int_equal(m->calls[BIDE_METER_FAILED], count(&m->call_failed));
    assert_int_equal(count(&m->attempt_ok) + count(&m->attempt_failed) + count(&m->attempt_cancelled),
                     sum(m->attempts, 8));
}

/* listener: of a tally; NULL: the meter alone, which has a fast path. */
static struct bide_meter_view play(uint64_t seed, const struct bide_listener *listener, uint64_t refused[])
{
    struct driven d = {.verdict.action = BIDE_ACTION_NONE};
    struct bide_target target;
    int64_t now = T0;
    dice_state = seed;
    memset(&meter, 0, sizeof meter);
    bide_policy_init(&d.policy, BIDE_PRESET_SERVICE);
    d.policy.hedge_delay_ns = 50 * BIDE_MS;
    assert_int_equal(bide_target_init(&target, NULL, T0, NULL), BIDE_OK);
    for (int i = 0; i < 500; i++)
        now = play_call(&d, &target, listener, now + (int64_t)dice(1000) * BIDE_MS);
    memcpy(refused, bide_target_get(&target, now).refused, BIDE_GATE_COUNT * sizeof *refused);
    return view();
}

static void meter_agrees_with_a_tally_from(uint64_t seed)
{
    for (int round = 0; round < 20; round++) {
        struct tally t = {.waits = false};
        struct bide_listener listener = {.event = tally_event, .context = &t};
        uint64_t refused[BIDE_GATE_COUNT];
        struct bide_meter_view m = play(seed + (uint64_t)round, &listener, refused);
        assert_adds_up(&m);
        assert_memory_equal(m.attempts, t.m.attempts, sizeof m.attempts);
        assert_memory_equal(m.outcomes, t.m.outcomes, sizeof m.outcomes);
        assert_memory_equal(m.calls, t.m.calls, sizeof m.calls);
        assert_memory_equal(m.give_ups, t.m.give_ups, sizeof m.give_ups);
        assert_memory_equal(m.waits, t.m.waits, sizeof m.waits);
        assert_int_equal(m.waits_ended, t.m.waits_ended);
        assert_int_equal(m.wait_us, t.m.wait_us);
        assert_int_equal(m.call_ok.sum_us, t.ok_us);
        assert_int_equal(m.call_failed.sum_us, t.failed_us);
        for (int gate = 4; gate < BIDE_GATE_COUNT; gate++) /* the target counts the gates of the target */
            assert_int_equal(m.refusals[gate][BIDE_METER_ENFORCE] + m.refusals[gate][BIDE_METER_OBSERVE],
                             refused[gate]);
    }
}

static void meter_agrees_with_a_tally_of_the_events(void **state)
{
    (void)state;
    seed_each(UINT64_C(0x6d65746572), meter_agrees_with_a_tally_from);
}

static void fast_path_counts_as_the_slow_path_from(uint64_t seed)
{
    uint64_t refused[BIDE_GATE_COUNT];
    for (int round = 0; round < 20; round++) {
        struct tally t = {.waits = false};
        struct bide_listener listener = {.event = tally_event, .context = &t};
        struct bide_meter_view slow = play(seed + (uint64_t)round, &listener, refused);
        struct bide_meter_view fast = play(seed + (uint64_t)round, NULL, refused);
        assert_memory_equal(&slow, &fast, sizeof slow);
        assert_true(fast.calls[BIDE_METER_FIRST] > 0 && fast.calls[BIDE_METER_RESCUED] > 0);
    }
}

static void fast_path_counts_as_the_slow_path_does(void **state)
{
    (void)state;
    seed_each(UINT64_C(0x70617468), fast_path_counts_as_the_slow_path_from);
}

static void every_reason_of_a_refusal_names_its_gate(void **state)
{
    (void)state;
    uint32_t gates = 0;
    for (int reason = 0; reason < BIDE_REASON_COUNT; reason++)
        gates |= bide_reason_gate((enum bide_reason)reason);
    assert_int_equal(gates, BIDE_POLICY_GATES | BIDE_TARGET_GATES);
    assert_int_equal(bide_reason_gate(BIDE_REASON_BUDGET_EMPTY), BIDE_GATE_BUDGET);
    assert_int_equal(bide_reason_gate(BIDE_REASON_BREAKER_RAMPING), BIDE_GATE_BREAKER);
    assert_int_equal(bide_reason_gate(BIDE_REASON_ATTEMPTS_SPENT), 0);
    assert_int_equal(bide_reason_gate(BIDE_REASON_COUNT), 0);
}

static void labels_are_those_of_the_metrics(void **state)
{
    (void)state;
    assert_string_equal(bide_meter_attempt_label(BIDE_METER_ATTEMPT_4_OR_MORE), "4_or_more");
    assert_string_equal(bide_meter_attempt_label(BIDE_METER_ATTEMPT_COUNT), "unknown");
    assert_string_equal(bide_meter_result_label(BIDE_METER_RESCUED), "rescued");
    assert_string_equal(bide_meter_result_label(BIDE_METER_RESULT_COUNT), "unknown");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_counting, end_counting)
    const struct CMUnitTest tests[] = {
        TEST(success_at_once_is_one_call_one_attempt_one_outcome),
        TEST(retry_that_succeeds_is_a_rescued_call_with_its_wait),
        TEST(cancelled_wait_ends_and_the_call_is_in_no_histogram),
        TEST(attempt_that_is_cut_ends_as_cancelled),
        TEST(refused_call_has_no_attempt_and_no_duration),
        TEST(gate_that_observes_counts_what_it_would_have_refused),
        TEST(hedges_and_refreshes_are_classes_of_their_own),
        TEST(refreshed_first_attempt_that_succeeds_is_no_rescue),
        TEST(bin_of_a_duration_has_the_least_bound_that_is_not_below_it),
        TEST(meter_agrees_with_a_tally_of_the_events),
        TEST(fast_path_counts_as_the_slow_path_does),
        TEST(every_reason_of_a_refusal_names_its_gate),
        TEST(labels_are_those_of_the_metrics),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
