/* test_budget.c - the three kinds of retry budget, to the thousandth of a token.
 *
 * Time is an argument, so the refill is arithmetic. Failed compare-and-swaps are injected: the behaviour of a budget
 * that loses a race against another thread is tested like any other. The last tests let eight real threads spend
 * concurrently. */
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
#include "seed.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))
#define MS           BIDE_MS
#define S            BIDE_S
#define TICK         (INT64_C(1) << 23) /* the refill is credited in steps of 8.4 ms */

static const struct bide_outcome transient = {.kind = BIDE_KIND_TRANSIENT};

static struct bide_target target;
static struct bide_target_config config;

/* Ten tokens, one per retry, no refill and no earnings. */
static const struct bide_budget_config ten = {.capacity_milli = 10000,
                                              .initial_milli = BIDE_FULL,
                                              .cost_milli = 1000,
                                              .cost_throttled_milli = 1000,
                                              .cost_timeout_milli = 1000,
                                              .window_ns = 10 * S};

/* One retry per ten requests of the last ten seconds. */
static const struct bide_budget_config tenth = {.kind = BIDE_BUDGET_WINDOW, .ratio_ppm = 100000, .window_ns = 10 * S};

static const struct bide_budget_config three_at_once = {
    .kind = BIDE_BUDGET_CONCURRENCY, .ratio_ppm = 200000, .reserve = 3, .window_ns = 10 * S};

static void init_target(struct bide_budget_config budget, int64_t now_ns)
{
    assert_int_equal(bide_target_config_init(&config, BIDE_PRESET_SERVICE), BIDE_OK);
    config.breaker.kind = BIDE_BREAKER_OFF;
    config.budget = budget;
    assert_int_equal(bide_target_init(&target, &config, now_ns, NULL), BIDE_OK);
}

static void reload(struct bide_budget_config budget, int64_t now_ns)
{
    config.budget = budget;
    assert_int_equal(bide_target_configure(&target, &config, now_ns, NULL), BIDE_OK);
}

static int64_t tokens_left(int64_t now_ns)
{
    return core_budget_left_milli(&target, now_ns);
}

static bool charge_for(const struct bide_outcome *reason, int64_t now_ns, struct core_charge *charge)
{
    charge->owner = 0;
    return core_budget_charge(&target, reason, now_ns, charge);
}

static bool charge_retry(int64_t now_ns)
{
    struct core_charge charge = {0};
    return charge_for(&transient, now_ns, &charge);
}

static uint32_t charge_all_retries(int64_t now_ns)
{
    uint32_t n = 0;
    while (n < 100000 && charge_retry(now_ns))
        n++;
    return n;
}

static void requests(uint32_t count, int64_t now_ns)
{
    for (uint32_t i = 0; i < count; i++)
        core_budget_record_first(&target, i % BIDE_LANES, now_ns);
}

static void succeed(uint32_t last_milli)
{
    core_budget_credit_success(&target, last_milli);
}

/* ---- tokens ---- */

static void a_new_bucket_starts_full_or_at_its_initial_level(void **state)
{
    struct bide_budget_config budget = ten;
    (void)state;
    init_target(budget, 5 * S);
    assert_int_equal(tokens_left(5 * S), 10000);
    budget.initial_milli = 2500;
    init_target(budget, 5 * S);
    assert_int_equal(tokens_left(5 * S), 2500);
    budget.initial_milli = 0;
    init_target(budget, 5 * S);
    assert_int_equal(tokens_left(5 * S), 0);
}

static void a_bucket_of_ten_affords_ten_retries_and_not_one_more(void **state)
{
    (void)state;
    init_target(ten, 0);
    assert_int_equal(charge_all_retries(0), 10);
    assert_int_equal(tokens_left(0), 0);
    assert_false(charge_retry(100 * BIDE_MINUTE)); /* no refill */
}

static void a_retry_is_charged_in_full_or_refused(void **state)
{
    struct bide_budget_config budget = ten;
    (void)state;
    budget.initial_milli = 1999;
    init_target(budget, 0);
    assert_int_equal(charge_all_retries(0), 1);
    assert_int_equal(tokens_left(0), 999); /* a refusal charges nothing */
}

static void the_cost_depends_on_the_kind_of_failure(void **state)
{
    static const struct {
        struct bide_outcome reason;
        int64_t price_milli;
    } table[] = {
        {{.kind = BIDE_KIND_TRANSIENT}, 1000},
        {{.kind = BIDE_KIND_CONFLICT}, 1000},
        {{.kind = BIDE_KIND_THROTTLED}, 500},
        {{.kind = BIDE_KIND_TRANSIENT, .flags = BIDE_FLAG_TIMED_OUT}, 3000},
        {{.kind = BIDE_KIND_THROTTLED, .flags = BIDE_FLAG_TIMED_OUT}, 500},
    };
    struct bide_budget_config budget = ten;
    (void)state;
    budget.cost_throttled_milli = 500;
    budget.cost_timeout_milli = 3000;
    for (size_t i = 0; i < COUNT(table); i++) {
        struct core_charge charge = {0};
        init_target(budget, 0);
        assert_true(charge_for(&table[i].reason, 0, &charge));
        assert_int_equal(tokens_left(0), 10000 - table[i].price_milli);
        core_budget_refund(&target, charge);
        assert_int_equal(tokens_left(0), 10000);
    }
}

static void zero_capacity_never_affords_a_retry(void **state)
{
    struct bide_budget_config budget = ten;
    (void)state;
    budget.capacity_milli = 0;
    budget.earn_success_milli = budget.earn_first_milli = 1000;
    budget.refill_per_minute_milli = 1000;
    init_target(budget, 0);
    succeed(0);
    requests(5, 0);
    assert_false(charge_retry(0));
    assert_false(charge_retry(100 * BIDE_MINUTE));
    assert_int_equal(tokens_left(100 * BIDE_MINUTE), 0);
    assert_int_equal(bide_budget_add_milli(&target, 1000, 0), 0);
    budget.cost_milli = budget.cost_throttled_milli = budget.cost_timeout_milli = 0; /* not even at cost 0 */
    budget.cost_failure_milli = 1;
    target.config[0].budget = budget;
    assert_false(charge_retry(0));
}

static void a_retry_needs_more_than_the_threshold(void **state)
{
    struct bide_budget_config budget = ten;
    (void)state;
    budget.threshold_milli = 5000;
    init_target(budget, 0);
    assert_int_equal(charge_all_retries(0), 5); /* 10, 9, 8, 7 and 6 are more than 5 */
    assert_int_equal(tokens_left(0), 5000);
    assert_int_equal(bide_budget_add_milli(&target, 1, 0), 1);
    assert_true(charge_retry(0));
}

static void a_failure_charges_at_most_what_the_bucket_holds(void **state)
{
    struct bide_budget_config budget = ten;
    (void)state;
    budget.cost_failure_milli = 4000;
    init_target(budget, 0);
    core_budget_charge_failure(&target, 0);
    assert_int_equal(tokens_left(0), 6000);
    core_budget_charge_failure(&target, 0);
    core_budget_charge_failure(&target, 0);
    assert_int_equal(tokens_left(0), 0);
}

/* One token per minute: 1/1000 in 60 ms. The current tick is never complete, so the refill is never too much if the
 * bucket begins with a tick, as here. */
static void the_refill_is_credited_per_tick_and_rounded_down(void **state)
{
    static const struct {
        int64_t at_ns;
        int64_t left_milli;
    } table[] = {
        {0, 0},
        {60 * MS, 0},                     /* 7 ticks are 58.7 ms */
        {8 * TICK, 1},                    /* 67.1 ms */
        {30 * S, 499},                    /* 3576 ticks */
        {60 * S, 999},                    /* 7152 ticks are 59.995 s */
        {7153 * TICK - 1, 999},           /* ... */
        {7153 * TICK, 1000},              /* 60.004 s */
        {60 * BIDE_MINUTE, 59999},        /* 429153 ticks */
        {60 * BIDE_MINUTE + TICK, 60000}, /* ... and one */
        {99 * BIDE_MINUTE + TICK, 99000},
        {100 * BIDE_MINUTE + TICK, 100000},
        {10000 * BIDE_MINUTE, 100000}, /* never above the capacity */
    };
    struct bide_budget_config budget = ten;
    (void)state;
    budget.capacity_milli = 100000;
    budget.initial_milli = 0;
    budget.refill_per_minute_milli = 1000;
    init_target(budget, 0);
    for (size_t i = 0; i < COUNT(table); i++)
        if (tokens_left(table[i].at_ns) != table[i].left_milli)
            fail_msg("row %zu: %lld left", i, (long long)tokens_left(table[i].at_ns));
}

/* The bucket counts from the beginning of the tick in which it was made, at most one tick too early. */
static void a_bucket_made_within_a_tick_gains_the_part_before(void **state)
{
    struct bide_budget_config budget = ten;
    (void)state;
    budget.initial_milli = 0;
    budget.refill_per_minute_milli = 1000;
    init_target(budget, TICK - 1);
    assert_int_equal(tokens_left(TICK - 1), 0);
    assert_int_equal(tokens_left(8 * TICK - 1), 0);
    assert_int_equal(tokens_left(8 * TICK), 1); /* 1/1000 after 58.7 ms instead of 60 ms */
    init_target(budget, TICK);
    assert_int_equal(tokens_left(9 * TICK - 1), 0); /* 67.1 ms: a bucket that begins with a tick gains nothing */
    assert_int_equal(tokens_left(9 * TICK), 1);
}

static void a_drained_bucket_affords_one_retry_a_minute(void **state)
{
    struct bide_budget_config budget = ten;
    uint32_t taken = 0;
    (void)state;
    budget.initial_milli = 0;
    budget.refill_per_minute_milli = 1000;
    init_target(budget, 0);
    for (int64_t now_ns = 0; now_ns < 100 * BIDE_MINUTE; now_ns += 7 * MS)
        taken += charge_retry(now_ns);
    assert_in_range(taken, 98, 99); /* each charge may lose a tick: never a hundredth retry too early */
}

/* The rate may be so high that a tick refills many thousandths: the result is rounded down. The bucket begins with a
 * tick; a bucket that does not may gain up to one tick. */
static void the_refill_never_exceeds_its_rate(void **state)
{
    static const uint32_t rates[] = {1, 7, 1000, 59999, 1000000, 100000000};
    (void)state;
    for (size_t i = 0; i < COUNT(rates); i++) {
        struct bide_budget_config budget = ten;
        uint64_t taken_milli = 0;
        budget.capacity_milli = BIDE_CAPACITY_MAX_MILLI;
        budget.initial_milli = 0;
        budget.cost_milli = 1;
        budget.refill_per_minute_milli = rates[i];
        init_target(budget, 0);
        for (int64_t now_ns = 0, step = 1; now_ns < 20 * S; now_ns += step, step = step * 5 / 4 + 1) {
            struct core_charge charge = {0};
            while (taken_milli < 200000 && charge_for(&transient, now_ns, &charge))
                taken_milli++;
            assert_true(taken_milli * (uint64_t)BIDE_MINUTE <= (uint64_t)now_ns * rates[i]);
        }
    }
}

static void time_spent_full_is_not_credited_later(void **state)
{
    struct bide_budget_config budget = ten;
    (void)state;
    budget.capacity_milli = 2000;
    budget.refill_per_minute_milli = 1000;
    init_target(budget, 0);
    assert_int_equal(charge_all_retries(0), 2);
    assert_int_equal(charge_all_retries(60 * BIDE_MINUTE), 2); /* full again, an hour ago */
    assert_int_equal(tokens_left(60 * BIDE_MINUTE), 0);
    assert_int_equal(charge_all_retries(61 * BIDE_MINUTE + TICK), 1);
}

static void time_spent_full_by_successes_is_not_credited_later(void **state)
{
    struct bide_budget_config budget = ten;
    (void)state;
    budget.capacity_milli = 2000;
    budget.earn_success_milli = 1000;
    budget.refill_per_minute_milli = 1000;
    init_target(budget, 0);
    assert_int_equal(charge_all_retries(0), 2);
    succeed(0);
    succeed(0); /* full, with the time stamp of the drain */
    assert_int_equal(charge_all_retries(60 * BIDE_MINUTE), 2);
    assert_int_equal(tokens_left(60 * BIDE_MINUTE), 0);
}

static void a_success_earns_its_fraction_up_to_the_capacity(void **state)
{
    struct bide_budget_config budget = ten;
    (void)state;
    budget.initial_milli = 9750;
    budget.earn_success_milli = 100;
    init_target(budget, 0);
    succeed(0);
    succeed(1000); /* no refund is configured: a retried call earns the same */
    assert_int_equal(tokens_left(0), 9950);
    succeed(0);
    assert_int_equal(tokens_left(0), 10000);
}

static void a_full_bucket_is_only_read(void **state)
{
    struct bide_budget_config budget = ten;
    (void)state;
    budget.earn_success_milli = budget.earn_first_milli = 100;
    budget.refill_per_minute_milli = 1000;
    init_target(budget, 0);
    uint64_t word = target.budget;
    core_cas_failures = 1;
    succeed(0);
    requests(1, 10 * BIDE_MINUTE);
    assert_int_equal(bide_budget_add_milli(&target, 5, 10 * BIDE_MINUTE), 0);
    assert_int_equal(tokens_left(10 * BIDE_MINUTE), 10000);
    assert_int_equal(core_cas_failures, 1); /* no compare-and-swap was tried */
    core_cas_failures = 0;
    assert_int_equal(target.budget, word);
}

static void first_attempts_may_earn(void **state)
{
    struct bide_budget_config budget = ten;
    (void)state;
    budget.initial_milli = 0;
    budget.earn_first_milli = 200;
    init_target(budget, 0);
    requests(4, 0);
    assert_false(charge_retry(0));
    requests(1, 0);
    assert_int_equal(tokens_left(0), 1000);
    assert_true(charge_retry(0));
    requests(1000, 0);
    assert_int_equal(tokens_left(0), 10000);
}

static void a_retried_success_is_refunded_its_last_charge_or_a_share_of_it(void **state)
{
    static const struct {
        uint32_t refund_permille, last_milli;
        int64_t earned_milli;
    } table[] = {
        {1000, 3000, 3000}, {500, 3000, 1500}, {1, 999, 0}, {333, 1000, 333}, {1000, 0, 70}, {0, 3000, 70},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        struct bide_budget_config budget = ten;
        budget.initial_milli = 0;
        budget.earn_success_milli = 70;
        budget.refund_permille = table[i].refund_permille;
        init_target(budget, 0);
        succeed(table[i].last_milli);
        assert_int_equal(tokens_left(0), table[i].earned_milli);
    }
}

static void add_milli_adds_and_removes_tokens(void **state)
{
    static const struct {
        int64_t amount_milli, really_milli, left_milli;
    } table[] = {
        {-2500, -2500, 7500},   {1000, 1000, 8500},  {5000, 1500, 10000}, {1, 0, 10000},
        {0, 0, 10000},          {-10001, -10000, 0}, {-1, 0, 0},          {INT64_MAX, 10000, 10000},
        {INT64_MIN, -10000, 0}, {-INT64_MAX, 0, 0},  {9999, 9999, 9999},
    };
    (void)state;
    init_target(ten, 0);
    for (size_t i = 0; i < COUNT(table); i++) {
        assert_int_equal(bide_budget_add_milli(&target, table[i].amount_milli, 0), table[i].really_milli);
        assert_int_equal(tokens_left(0), table[i].left_milli);
    }
}

static void removing_tokens_includes_the_refill_so_far(void **state)
{
    struct bide_budget_config budget = ten;
    (void)state;
    budget.initial_milli = 0;
    budget.refill_per_minute_milli = 1000;
    init_target(budget, 0);
    assert_int_equal(bide_budget_add_milli(&target, -9000, 5 * BIDE_MINUTE + TICK), -5000);
    assert_int_equal(tokens_left(5 * BIDE_MINUTE + TICK), 0);
}

static void add_milli_changes_only_token_budgets(void **state)
{
    (void)state;
    init_target(tenth, 0);
    assert_int_equal(bide_budget_add_milli(&target, 5000, 0), 0);
    init_target(three_at_once, 0);
    assert_int_equal(bide_budget_add_milli(&target, -5000, 0), 0);
    assert_int_equal(tokens_left(0), 3000);
}

static void a_clock_that_steps_back_creates_no_tokens(void **state)
{
    struct bide_budget_config budget = ten;
    (void)state;
    budget.initial_milli = 0;
    budget.refill_per_minute_milli = 1000;
    init_target(budget, 10 * BIDE_MINUTE);
    for (int64_t back_ns = 0; back_ns <= 10 * BIDE_MINUTE; back_ns += S) {
        assert_int_equal(tokens_left(10 * BIDE_MINUTE - back_ns), 0);
        assert_false(charge_retry(10 * BIDE_MINUTE - back_ns));
    }
    assert_true(charge_retry(11 * BIDE_MINUTE + TICK));  /* and no refill was lost */
    assert_false(charge_retry(10 * BIDE_MINUTE));        /* nor is the minute credited twice */
    assert_false(charge_retry(11 * BIDE_MINUTE + TICK)); /* ... */
    assert_true(charge_retry(12 * BIDE_MINUTE + 2 * TICK));
}

static void the_stamp_may_wrap_after_eighteen_years(void **state)
{
    struct bide_budget_config budget = ten;
    const int64_t wrap_ns = TICK << 36;
    (void)state;
    budget.initial_milli = 0;
    budget.refill_per_minute_milli = 1000;
    init_target(budget, wrap_ns - BIDE_MINUTE);
    assert_int_equal(tokens_left(wrap_ns - 1), 999);
    assert_true(charge_retry(wrap_ns + TICK));
    assert_false(charge_retry(wrap_ns + TICK));
    assert_int_equal(charge_all_retries(wrap_ns + 3 * BIDE_MINUTE + 3 * TICK), 3);
    assert_false(charge_retry(wrap_ns - BIDE_MINUTE)); /* a clock just before the wrap */
}

/* Half of the range counts as the future: a bucket untouched for more than nine years earns nothing, which is the
 * safe side. */
static void a_bucket_untouched_for_ten_years_earns_nothing(void **state)
{
    struct bide_budget_config budget = ten;
    const int64_t year_ns = BIDE_MINUTE * 60 * 24 * 365;
    (void)state;
    budget.initial_milli = 0;
    budget.refill_per_minute_milli = 1000;
    init_target(budget, 0);
    assert_int_equal(tokens_left(9 * year_ns), 10000);
    assert_int_equal(tokens_left((TICK << 35) - TICK), 10000); /* the last tick of the first half */
    assert_int_equal(tokens_left(TICK << 35), 0);
    assert_int_equal(tokens_left(10 * year_ns), 0);
}

static void a_charge_that_loses_a_race_retries_with_the_new_level(void **state)
{
    struct bide_budget_config budget = ten;
    (void)state;
    budget.initial_milli = 5000;
    budget.earn_success_milli = 100;
    init_target(budget, 0);
    core_cas_failures = 3;
    assert_true(charge_retry(0));
    assert_int_equal(core_cas_failures, 0);
    assert_int_equal(tokens_left(0), 4000);
    core_cas_failures = 3;
    succeed(0);
    assert_int_equal(tokens_left(0), 4100);
    core_cas_failures = 3;
    assert_int_equal(bide_budget_add_milli(&target, -100, 0), -100);
    assert_int_equal(tokens_left(0), 4000);
}

/* xorshift64: any fixed sequence will do. */
static uint64_t next_random(uint64_t *x)
{
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return *x;
}

static void spending_never_exceeds_the_initial_tokens_plus_earnings_from(uint64_t first)
{
    struct bide_budget_config budget = ten;
    budget.earn_success_milli = 130;
    budget.earn_first_milli = 17;
    budget.refill_per_minute_milli = 900;
    for (uint64_t seed = first; seed < first + 20; seed++) {
        uint64_t x = seed * 0x9e3779b97f4a7c15 | 1, spent = 0, earned = 0;
        int64_t now_ns = 0, latest_ns = 0;
        struct core_charge charge = {0};
        init_target(budget, 0);
        for (int i = 0; i < 5000; i++) {
            now_ns += (int64_t)(next_random(&x) % (uint64_t)(2 * S)) - S / 10; /* sometimes backwards */
            now_ns = now_ns < 0 ? 0 : now_ns;
            latest_ns = now_ns > latest_ns ? now_ns : latest_ns;
            switch (next_random(&x) % 5) {
            case 0: succeed(0), earned += 130; break;
            case 1: requests(1, now_ns), earned += 17; break;
            case 2:
                if (charge_for(&transient, now_ns, &charge)) {
                    spent += charge.amount;
                    if (next_random(&x) % 4 == 0)
                        core_budget_refund(&target, charge), spent -= charge.amount;
                }
                break;
            default: spent += charge_retry(now_ns) ? 1000 : 0; break;
            }
            uint64_t trickled = (uint64_t)latest_ns / 1000000 * 900 / 60000;
            assert_true(spent <= 10000 + earned + trickled + 1);
            assert_in_range(tokens_left(now_ns), 0, 10000);
        }
    }
}

static void spending_never_exceeds_the_initial_tokens_plus_earnings(void **state)
{
    (void)state;
    seed_each(1, spending_never_exceeds_the_initial_tokens_plus_earnings_from);
}

/* ---- window ---- */

static void a_window_allows_its_ratio_of_the_requests_and_its_reserve(void **state)
{
    static const struct {
        uint32_t ratio_ppm, reserve, requests, retries;
    } table[] = {
        {100000, 0, 0, 0}, {100000, 0, 9, 0},    {100000, 0, 10, 1}, {100000, 0, 19, 1}, {100000, 0, 100, 10},
        {100000, 3, 0, 3}, {100000, 3, 100, 13}, {0, 0, 1000, 0},    {0, 2, 1000, 2},    {1000000, 0, 50, 50},
        {333333, 0, 3, 0}, {333334, 0, 3, 1},    {1, 0, 999, 0},     {750000, 0, 4, 3},  {600000, 0, 5, 3},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        struct bide_budget_config budget = tenth;
        budget.ratio_ppm = table[i].ratio_ppm;
        budget.reserve = table[i].reserve;
        init_target(budget, 5 * S);
        requests(table[i].requests, 5 * S);
        assert_int_equal(tokens_left(5 * S), 1000 * table[i].retries);
        assert_int_equal(charge_all_retries(5 * S), table[i].retries);
        assert_int_equal(tokens_left(5 * S), 0);
    }
}

static void below_the_minimum_volume_every_retry_is_allowed(void **state)
{
    struct bide_budget_config budget = tenth;
    (void)state;
    budget.min_volume = 20;
    init_target(budget, 5 * S);
    requests(19, 5 * S);
    assert_int_equal(tokens_left(5 * S), INT64_MAX);
    for (int i = 0; i < 50; i++)
        assert_true(charge_retry(5 * S));
    requests(1, 5 * S);
    assert_int_equal(tokens_left(5 * S), 0); /* 50 of 2: never negative */
    assert_false(charge_retry(5 * S));
}

static void a_window_cools_down_after_a_refusal(void **state)
{
    struct bide_budget_config budget = tenth;
    (void)state;
    budget.cooldown_ns = 2 * S;
    init_target(budget, 5 * S);
    requests(10, 5 * S);
    assert_int_equal(charge_all_retries(5 * S), 1);
    requests(90, 5 * S); /* enough requests again, but in cooldown: */
    assert_int_equal(tokens_left(7 * S - 1), 0);
    assert_false(charge_retry(7 * S - 1));
    assert_int_equal(tokens_left(7 * S), 9000); /* the refusal in between did not extend it */
    assert_true(charge_retry(7 * S));
}

/* The state that a reload killed half-way leaves behind. */
static void an_endless_cooldown_is_limited_to_window_plus_cooldown(void **state)
{
    struct bide_budget_config budget = tenth;
    (void)state;
    budget.cooldown_ns = 2 * S;
    init_target(budget, 0);
    requests(100, 5 * S);
    target.budget = INT64_MAX;
    assert_false(charge_retry(5 * S));
    requests(100, 17 * S);
    assert_false(charge_retry(17 * S - 1)); /* the window and the cooldown */
    assert_true(charge_retry(17 * S));
}

static void requests_and_retries_slide_out_of_the_window(void **state)
{
    (void)state;
    init_target(tenth, 0);
    requests(100, 20 * S + 500 * MS);
    assert_int_equal(charge_all_retries(20 * S + 500 * MS), 10);
    requests(50, 25 * S);
    assert_int_equal(tokens_left(25 * S), 5000);
    assert_int_equal(charge_all_retries(25 * S), 5);
    assert_int_equal(tokens_left(30 * S - 1), 0); /* all 150 and all 15 */
    assert_int_equal(tokens_left(30 * S), 0);     /* the 100 are gone, and so are their 10: 5 of 5 */
    requests(10, 30 * S);
    assert_int_equal(tokens_left(30 * S), 1000); /* 6 for 60 */
    assert_int_equal(tokens_left(35 * S), 1000); /* 1 for the last 10 */
    assert_int_equal(tokens_left(40 * S), 0);    /* everything has expired */
    assert_int_equal(tokens_left(1000000 * S), 0);
    assert_int_equal(charge_all_retries(1000000 * S), 0);
}

static void every_lane_counts(void **state)
{
    (void)state;
    init_target(tenth, 0);
    for (uint32_t lane = 0; lane < BIDE_LANES; lane++)
        for (int i = 0; i < 10; i++)
            core_budget_record_first(&target, lane, S);
    assert_int_equal(tokens_left(S), 8000);
}

static void a_refund_goes_to_the_slot_that_was_charged(void **state)
{
    struct core_charge charge, other;
    (void)state;
    init_target(tenth, 0);
    requests(20, 5 * S);
    assert_true(charge_for(&transient, 5 * S, &charge));
    assert_true(charge_for(&transient, 9 * S, &other));
    assert_int_equal(tokens_left(9 * S), 0);
    core_budget_refund(&target, charge);
    assert_int_equal(tokens_left(9 * S), 1000);
    core_budget_refund(&target, charge); /* already refunded: its slot does not count it any more */
    assert_int_equal(tokens_left(9 * S), 1000);
}

static void a_charge_whose_slot_has_expired_is_not_refunded(void **state)
{
    struct core_charge charge, other;
    (void)state;
    init_target(tenth, 0);
    requests(10, 5 * S);
    assert_true(charge_for(&transient, 5 * S, &charge));
    requests(10, 15 * S);
    assert_true(charge_for(&transient, 15 * S, &other)); /* in the same slot word, ten slots later */
    core_budget_refund(&target, charge);
    assert_int_equal(tokens_left(15 * S), 0);
}

static void a_refund_that_loses_a_race_is_retried(void **state)
{
    struct core_charge charge = {0};
    (void)state;
    init_target(tenth, 0);
    requests(10, 5 * S);
    assert_true(charge_for(&transient, 5 * S, &charge));
    core_cas_failures = 2;
    core_budget_refund(&target, charge);
    assert_int_equal(core_cas_failures, 0);
    assert_int_equal(tokens_left(5 * S), 1000);
}

static void counters_may_wrap(void **state)
{
    static const uint64_t before[] = {UINT64_MAX - 6, (UINT64_C(1) << 40) - 7, UINT64_C(3) << 40, UINT64_MAX};
    (void)state;
    for (size_t i = 0; i < COUNT(before); i++) {
        init_target(tenth, 0);
        target.lane[3].requests = before[i];
        requests(100, 5 * S);
        assert_int_equal(tokens_left(5 * S), 10000);
        assert_int_equal(charge_all_retries(5 * S), 10);
        assert_int_equal(tokens_left(9 * S), 0);
    }
}

static void a_window_without_requests_has_its_reserve_only(void **state)
{
    struct bide_budget_config budget = tenth;
    (void)state;
    budget.ratio_ppm = 1000000;
    budget.reserve = 1;
    init_target(budget, 0);
    assert_int_equal(charge_all_retries(0), 1);
    assert_int_equal(charge_all_retries(100 * S), 1); /* the reserve is available again after the window */
    target.lane[0].requests = UINT64_MAX;
    assert_int_equal(charge_all_retries(200 * S), 1);
}

/* Race: two threads read the clock a moment apart; the later one begins the new slot first. */
static void a_clock_slightly_behind_the_slot_allows_no_extra_retry(void **state)
{
    static const int64_t behind_ns[] = {1, TICK, S - 1, S, 5 * S};
    (void)state;
    for (size_t i = 0; i < COUNT(behind_ns); i++) {
        init_target(tenth, 0);
        requests(10, 26 * S);
        assert_true(charge_retry(26 * S));
        assert_int_equal(tokens_left(26 * S - behind_ns[i]), 0);
        assert_false(charge_retry(26 * S - behind_ns[i]));
        requests(10, 26 * S - behind_ns[i]);
        assert_int_equal(tokens_left(26 * S), 1000);
    }
}

static void another_thread_may_begin_the_slot(void **state)
{
    (void)state;
    init_target(tenth, 0);
    requests(10, 5 * S);
    core_cas_failures = 2; /* both words of the next slot */
    requests(10, 6 * S);
    core_cas_failures = 0;
    assert_in_range(tokens_left(6 * S), 0, 2000);
    requests(10, 7 * S);
    assert_in_range(tokens_left(7 * S), 1000, 3000);
}

static void a_slot_that_has_begun_is_not_begun_again(void **state)
{
    (void)state;
    init_target(tenth, 0);
    requests(10, 5 * S);
    target.spends.edge_ns = 0; /* a thread with a stale view of the edge */
    requests(10, 5 * S);
    assert_int_equal(tokens_left(5 * S), 2000);
}

/* Race: this thread summed the total, then another thread counted more requests and began a slot with that larger
 * total as its mark. */
static void a_mark_above_the_total_counts_no_requests(void **state)
{
    (void)state;
    init_target(tenth, 0);
    target.lane[0].requests = 100;
    requests(1, 5 * S);
    target.lane[0].requests = 90;
    assert_int_equal(tokens_left(5 * S), 0);
    assert_false(charge_retry(5 * S));
}

/* ---- concurrency ---- */

static void retries_in_flight_are_a_share_of_the_calls_but_at_least_the_reserve(void **state)
{
    static const struct {
        uint64_t calls;
        uint32_t retries;
    } table[] = {{0, 3}, {1, 3}, {15, 3}, {19, 3}, {20, 4}, {24, 4}, {25, 5}, {1000, 200}};
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        init_target(three_at_once, 0);
        target.calls = table[i].calls;
        assert_int_equal(tokens_left(0), 1000 * table[i].retries);
        assert_int_equal(charge_all_retries(0), table[i].retries);
        assert_int_equal(tokens_left(0), 0);
        target.calls = 0; /* the other calls ended: more retries are in flight than the limit allows now */
        assert_in_range(tokens_left(0), 0, 0);
    }
    target.calls = 999999; /* a fifth is rounded downwards */
    assert_int_equal(tokens_left(0), 1000 * (199999 - 200));
}

static void a_permit_is_released_after_a_reload_to_any_kind(void **state)
{
    static const struct bide_budget_config none = {.kind = BIDE_BUDGET_NONE, .window_ns = S};
    const struct bide_budget_config *const kinds[] = {&three_at_once, &ten, &tenth, &none};
    (void)state;
    for (size_t i = 0; i < COUNT(kinds); i++) {
        struct core_charge charge = {0};
        init_target(three_at_once, 0);
        assert_true(charge_for(&transient, 0, &charge));
        assert_int_equal(target.retries, 1);
        reload(*kinds[i], 0);
        core_budget_refund(&target, charge);
        assert_int_equal(target.retries, 0);
    }
}

/* ---- no budget ---- */

static void without_a_budget_every_retry_is_allowed(void **state)
{
    struct core_charge charge = {0};
    (void)state;
    init_target((struct bide_budget_config){.kind = BIDE_BUDGET_NONE, .window_ns = S}, 0);
    for (int i = 0; i < 1000; i++)
        assert_true(charge_for(&transient, 0, &charge));
    core_budget_refund(&target, charge);
    assert_int_equal(tokens_left(0), INT64_MAX);
}

/* ---- another configuration ---- */

static void a_smaller_capacity_removes_tokens_and_a_larger_one_adds_none(void **state)
{
    struct bide_budget_config budget = ten;
    (void)state;
    init_target(ten, 0);
    assert_true(charge_retry(0));
    budget.capacity_milli = 4000;
    reload(budget, 0);
    assert_int_equal(tokens_left(0), 4000);
    succeed(0); /* above the capacity: the bucket is only read */
    assert_true(charge_retry(0));
    reload(ten, 0);
    assert_int_equal(tokens_left(0), 3000);
}

static void a_drained_bucket_stays_drained_after_a_reload(void **state)
{
    struct bide_budget_config budget = ten;
    (void)state;
    init_target(ten, 0);
    charge_all_retries(0);
    budget.capacity_milli = 50000;
    reload(budget, 0);
    assert_int_equal(tokens_left(0), 0);
}

static void a_charge_of_another_kind_is_not_refunded(void **state)
{
    struct core_charge tokens, window;
    (void)state;
    init_target(ten, 0);
    assert_true(charge_for(&transient, 0, &tokens));
    reload(tenth, 0);
    requests(20, 0);
    assert_true(charge_for(&transient, 0, &window));
    core_budget_refund(&target, tokens);
    tokens.amount = window.amount; /* even if the amount is that of the window's charge */
    core_budget_refund(&target, tokens);
    assert_int_equal(tokens_left(0), 1000);
    reload(ten, 0);
    core_budget_refund(&target, window);
    assert_int_equal(tokens_left(0), 1000);
}

/* The bucket starts with what the window could afford, at most with its own initial level. */
static void a_bucket_that_replaces_a_window_starts_with_its_remaining_retries(void **state)
{
    struct bide_budget_config warm = tenth;
    (void)state;
    init_target(tenth, 0);
    requests(40, 5 * S);
    assert_true(charge_retry(5 * S));
    reload(ten, 5 * S);
    assert_int_equal(tokens_left(5 * S), 3000);
    init_target(tenth, 0);
    requests(1000, 5 * S);
    reload(ten, 5 * S);
    assert_int_equal(tokens_left(5 * S), 10000);
    warm.min_volume = 10; /* no history yet: like a new budget */
    init_target(warm, 0);
    reload(ten, 5 * S);
    assert_int_equal(tokens_left(5 * S), 10000);
}

static void retries_are_carried_into_a_window_of_another_length(void **state)
{
    static const int64_t lengths[] = {2 * S, 5 * S, 60 * S, 3600 * S};
    (void)state;
    for (size_t i = 0; i < COUNT(lengths); i++) {
        struct bide_budget_config budget = tenth;
        const int64_t now_ns = 1000 * S + 500 * MS;
        init_target(tenth, 0);
        requests(50, now_ns - S);
        assert_true(charge_retry(now_ns - S));
        assert_true(charge_retry(now_ns));
        assert_int_equal(tokens_left(now_ns), 3000);
        budget.window_ns = lengths[i];
        reload(budget, now_ns);
        assert_int_equal(tokens_left(now_ns), 3000);
        assert_int_equal(tokens_left(now_ns + lengths[i]), 0); /* and has expired after the new length */
        requests(10, now_ns + lengths[i]);
        assert_int_equal(tokens_left(now_ns + lengths[i]), 1000);
    }
}

static void a_shortened_window_forgets_after_its_new_length(void **state)
{
    struct bide_budget_config hour = tenth, seconds = tenth;
    (void)state;
    hour.reserve = seconds.reserve = 1;
    hour.window_ns = 3600 * S; /* slots of six minutes */
    init_target(hour, 0);
    assert_true(charge_retry(7200 * S));
    reload(seconds, 7201 * S);
    assert_int_equal(tokens_left(7201 * S), 0);
    assert_false(charge_retry(7201 * S));
    assert_int_equal(tokens_left(7211 * S), 1000);
    assert_true(charge_retry(7211 * S));
}

static void a_reload_with_the_same_window_keeps_its_counts(void **state)
{
    struct bide_budget_config budget = tenth;
    (void)state;
    init_target(tenth, 0);
    requests(20, 5 * S);
    assert_true(charge_retry(5 * S));
    budget.ratio_ppm = 200000;
    reload(budget, 5 * S);
    assert_int_equal(tokens_left(5 * S), 3000);
}

static void a_reload_never_reads_a_cooldown_as_tokens_or_tokens_as_a_cooldown(void **state)
{
    struct bide_budget_config cool = tenth;
    (void)state;
    cool.cooldown_ns = 1000 * S;
    init_target(cool, 0);
    assert_false(charge_retry(5 * S));
    reload(ten, 5 * S);
    assert_int_equal(tokens_left(5 * S), 0); /* it was refusing: no retry was left */
    init_target(ten, 5 * S);
    reload(cool, 5 * S);
    requests(10, 5 * S);
    assert_true(charge_retry(5 * S));
    cool.cost_failure_milli = 1000;
    reload(cool, 5 * S);
    core_budget_charge_failure(&target, 5 * S); /* a call that still saw the token budget */
    assert_int_equal(target.budget, 0);
}

static void a_reader_overtaken_by_two_reloads_reads_a_whole_configuration(void **state)
{
    (void)state;
    init_target(ten, 0);
    core_unchanged_failures = 2; /* the configuration was swapped while it was read: twice */
    assert_int_equal(tokens_left(0), 10000);
    assert_int_equal(core_unchanged_failures, 0);
    for (uint32_t copy = 0; copy < 2; copy++) { /* a charge reads the settings of a bucket, then all if it is none */
        init_target(three_at_once, 0);
        core_unchanged_successes = copy;
        core_unchanged_failures = 1;
        assert_true(charge_retry(0));
        assert_int_equal(core_unchanged_failures, 0);
    }
}

/* ---- eviction ---- */

static void a_target_is_evictable_when_eviction_creates_no_retry(void **state)
{
    struct bide_budget_config refilling = ten, cool = tenth;
    struct core_charge charge = {0};
    (void)state;
    refilling.refill_per_minute_milli = 1000;
    init_target(refilling, 0);
    assert_true(core_target_is_evictable(&target, 0));
    assert_true(charge_retry(0));
    assert_false(core_target_is_evictable(&target, 0));
    assert_true(core_target_is_evictable(&target, BIDE_MINUTE + TICK));

    cool.cooldown_ns = 30 * S;
    init_target(cool, 0);
    requests(10, S);
    assert_true(core_target_is_evictable(&target, S)); /* requests without retries do not matter */
    assert_true(charge_retry(S));
    assert_false(core_target_is_evictable(&target, S));
    assert_true(core_target_is_evictable(&target, 11 * S));
    assert_false(charge_retry(11 * S));
    assert_false(core_target_is_evictable(&target, 41 * S - 1));
    assert_true(core_target_is_evictable(&target, 41 * S));

    init_target(three_at_once, 0);
    assert_true(core_target_is_evictable(&target, 0));
    target.calls = 1;
    assert_false(core_target_is_evictable(&target, 0));
    target.calls = 0;
    assert_true(charge_for(&transient, 0, &charge));
    assert_false(core_target_is_evictable(&target, 0));
    core_budget_refund(&target, charge);
    assert_true(core_target_is_evictable(&target, 0));

    init_target(tenth, 0);
    target.retries = 1; /* a permit held since before a reload */
    assert_false(core_target_is_evictable(&target, 0));
}

static void a_bucket_that_starts_empty_is_evictable_at_its_start(void **state)
{
    struct bide_budget_config budget = ten;
    (void)state;
    budget.initial_milli = 3000;
    init_target(budget, 0);
    assert_true(core_target_is_evictable(&target, 0));
    assert_true(charge_retry(0));
    assert_false(core_target_is_evictable(&target, 0));
}

/* ---- eight threads ---- */

enum { THREADS = 8, CALLS = 4000 };

static struct bide_policy policy;
static uint64_t retries_started, retries_out, most_out;

static void record_maximum(uint64_t out)
{
    uint64_t most = __atomic_load_n(&most_out, __ATOMIC_RELAXED);
    while (out > most && !__atomic_compare_exchange_n(&most_out, &most, out, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

/* Calls that fail, and fail again if they are retried; every third retry is cancelled before it starts. */
static void *fail_again_and_again(void *number)
{
    static const struct bide_outcome hopeless = {.kind = BIDE_KIND_PERMANENT};
    uint32_t lane = *(uint32_t *)number;
    for (uint32_t i = 0; i < CALLS; i++) {
        struct bide_request request = {.safety = BIDE_SAFE, .lane = lane, .seed = i};
        struct bide_call call;
        bide_call_begin(&call, &policy, &target, &request, S);
        if (bide_call_outcome(&call, 1, &transient, S).action != BIDE_ACTION_WAIT)
            continue;
        record_maximum(__atomic_add_fetch(&retries_out, 1, __ATOMIC_RELAXED));
        bool sent = i % 3 != 0 && bide_call_wake(&call, S).action == BIDE_ACTION_START;
        __atomic_fetch_add(&retries_started, sent, __ATOMIC_RELAXED);
        __atomic_fetch_sub(&retries_out, 1, __ATOMIC_RELAXED);
        if (sent)
            bide_call_outcome(&call, 2, &hopeless, S);
        else
            bide_call_cancel(&call, S);
    }
    return NULL;
}

static void run_eight_threads(void)
{
    pthread_t threads[THREADS];
    uint32_t numbers[THREADS];
    retries_started = retries_out = most_out = 0;
    assert_int_equal(bide_policy_init(&policy, BIDE_PRESET_SERVICE), BIDE_OK);
    policy.backoff = BIDE_BACKOFF_NONE;
    for (uint32_t i = 0; i < THREADS; i++) {
        numbers[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, fail_again_and_again, &numbers[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
}

static void eight_threads_spend_a_bucket_to_the_last_token_and_not_beyond(void **state)
{
    struct bide_budget_config budget = ten;
    (void)state;
    budget.capacity_milli = 1000000;
    init_target(budget, 0);
    run_eight_threads();
    assert_int_equal(retries_started, 1000);
    assert_int_equal(tokens_left(S), 0);
}

static void eight_threads_never_exceed_the_ratio_of_a_window(void **state)
{
    (void)state;
    init_target(tenth, 0);
    run_eight_threads();
    assert_in_range(retries_started, 1, THREADS * CALLS / 10);
    assert_int_equal(tokens_left(S),
                     1000 * (THREADS * CALLS / 10 - (int64_t)retries_started)); /* unsent retries are refunded */
}

static void eight_threads_never_have_more_retries_in_flight_than_the_limit(void **state)
{
    struct bide_budget_config budget = three_at_once;
    (void)state;
    budget.ratio_ppm = 0;
    init_target(budget, 0);
    run_eight_threads();
    assert_in_range(most_out, 1, 3);
    assert_int_equal(target.retries, 0);
    assert_int_equal(target.calls, 0);
    assert_int_equal(tokens_left(S), 3000);
}

/* A budget that could not afford a retry allows none for one window after a reload to a window; one that could does. */
static void a_drained_budget_stays_drained_for_one_window(void **state)
{
    struct bide_budget_config five = tenth, longer = tenth, none = {.kind = BIDE_BUDGET_NONE, .window_ns = S};
    five.reserve = 5;
    longer.window_ns = 20 * S;
    longer.reserve = 5;
    const struct {
        struct bide_budget_config from, to;
        int64_t spend_milli; /* of a bucket */
        uint32_t retries;    /* of a window */
        bool drained;
    } table[] = {
        {ten, five, 9000, 0, false},                               /* one token left */
        {ten, five, 9001, 0, true},                                /* less than the cost of a retry */
        {ten, five, 0, 0, false},     {tenth, longer, 0, 2, true}, /* both of its two retries were made */
        {tenth, longer, 0, 1, false}, {none, five, 0, 0, false},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        init_target(table[i].from, 0);
        requests(table[i].from.kind == BIDE_BUDGET_WINDOW ? 20 : 0, 5 * S);
        bide_budget_add_milli(&target, -table[i].spend_milli, 5 * S);
        for (uint32_t n = 0; n < table[i].retries; n++)
            assert_true(charge_retry(5 * S));
        reload(table[i].to, 5 * S);
        assert_int_equal(charge_retry(5 * S), !table[i].drained);
        assert_int_equal(charge_retry(5 * S + table[i].to.window_ns - 1), !table[i].drained);
        assert_true(charge_retry(5 * S + table[i].to.window_ns));
    }
}

/* ---- races with a reload ---- */

static struct bide_budget_config tenth_then_cooldown(void)
{
    struct bide_budget_config budget = tenth;
    budget.cooldown_ns = 5 * S;
    return budget;
}

/* Three tokens of ten, so that a wrong word shows. */
static void reload_to_tokens(uint64_t *word)
{
    struct bide_budget_config budget = ten;
    budget.initial_milli = 3000;
    if (word != &target.budget)
        core_before_cas = reload_to_tokens;
    else
        reload(budget, 5 * S);
}

/* Race: a thread refuses a retry of a window and stores the end of the cooldown, while the budget becomes a bucket.
 * Read as a bucket, an instant would be any number of tokens. */
static void a_refusal_does_not_overwrite_a_bucket_that_a_reload_made(void **state)
{
    (void)state;
    init_target(tenth_then_cooldown(), 0);
    requests(20, 5 * S);
    assert_true(charge_retry(5 * S));
    assert_true(charge_retry(5 * S));
    core_before_cas = reload_to_tokens;
    assert_false(charge_retry(5 * S));
    assert_null(core_before_cas);
    assert_int_equal(tokens_left(5 * S), 0); /* the window had no retry left */
}

/* Race: the same with the repair of a cooldown that ends too far ahead. */
static void the_repair_of_a_cooldown_does_not_overwrite_a_bucket(void **state)
{
    (void)state;
    init_target(tenth_then_cooldown(), 0);
    target.budget = (uint64_t)1 << 60;
    core_before_cas = reload_to_tokens;
    assert_false(charge_retry(5 * S));
    assert_null(core_before_cas);
    assert_int_equal(tokens_left(5 * S), 0);
}

static void a_reload_from_a_window_to_tokens_keeps_the_retries_left(void **state)
{
    (void)state;
    init_target(tenth, 0);
    requests(20, 5 * S);
    reload_to_tokens(&target.budget);
    assert_int_equal(tokens_left(5 * S), 2000);
}

/* ---- exact words ---- */

static void a_threshold_of_a_thousandth_is_a_threshold(void **state)
{
    struct bide_budget_config budget = ten;
    (void)state;
    budget.cost_milli = budget.threshold_milli = budget.initial_milli = 1;
    init_target(budget, 0);
    assert_false(charge_retry(0));
    assert_int_equal(bide_budget_add_milli(&target, 1, 0), 1);
    assert_true(charge_retry(0));
}

/* A word from before the drain must not come again, or a stale compare-and-swap would succeed (ABA). */
static void a_drained_bucket_is_stamped_with_the_next_tick(void **state)
{
    (void)state;
    init_target(ten, 100 * TICK);
    core_budget_drain(&target, 300 * TICK);
    assert_int_equal(target.budget, UINT64_C(301) << 28);
    core_budget_drain(&target, 300 * TICK);
    assert_int_equal(target.budget, UINT64_C(302) << 28);
}

static void adding_no_tokens_changes_nothing(void **state)
{
    struct bide_budget_config budget = ten;
    (void)state;
    budget.initial_milli = 0;
    budget.refill_per_minute_milli = 1000;
    init_target(budget, 0);
    assert_int_equal(bide_budget_add_milli(&target, 0, 5 * BIDE_MINUTE), 0);
    assert_int_equal(target.budget, 0);
}

/* Only the tokens of a leased bucket are leased; a permit is one permit. */
static void a_charge_records_one_permit_and_no_lease(void **state)
{
    const struct bide_budget_config kinds[] = {ten, tenth, three_at_once, {.kind = BIDE_BUDGET_NONE, .window_ns = S}};
    (void)state;
    for (size_t i = 0; i < COUNT(kinds); i++) {
        struct core_charge charge = {.amount = 7, .leased = true};
        init_target(kinds[i], 0);
        requests(kinds[i].kind == BIDE_BUDGET_WINDOW ? 10 : 0, 0);
        assert_true(charge_for(&transient, 0, &charge));
        assert_false(charge.leased);
        if (kinds[i].kind == BIDE_BUDGET_CONCURRENCY)
            assert_int_equal(charge.amount, 1);
    }
}

/* ---- the steps of a reload ---- */

static void a_reload_that_loses_a_race_still_credits_the_refill_so_far(void **state)
{
    struct bide_budget_config budget = ten;
    (void)state;
    budget.initial_milli = 0;
    budget.refill_per_minute_milli = 1000;
    init_target(budget, 0);
    core_cas_successes = 1; /* the claim of the configuration */
    core_cas_failures = 1;
    reload(ten, 5 * BIDE_MINUTE + TICK);
    assert_int_equal(core_cas_failures, 0);
    assert_int_equal(tokens_left(5 * BIDE_MINUTE + TICK), 5000);
}

/* Between the two steps of a reload no retry is allowed, whether a call reads the word as tokens or as a window. */
static void no_retry_is_allowed_between_the_steps_of_a_reload(void **state)
{
    static const int64_t clocks[] = {0, TICK, 5 * S};
    struct bide_budget_config cheap = ten, reserve = tenth;
    (void)state;
    cheap.cost_milli = 1;
    reserve.reserve = 5;
    for (size_t i = 0; i < COUNT(clocks); i++) {
        init_target(cheap, clocks[i]);
        core_budget_before_reload(&target, &reserve, clocks[i]);
        assert_false(charge_retry(clocks[i]));
        init_target(reserve, clocks[i]);
        core_budget_before_reload(&target, &cheap, clocks[i]);
        assert_false(charge_retry(clocks[i]));
    }
}

static void a_reload_to_a_window_changes_nothing_beside_its_words(void **state)
{
    struct bide_window_words_ votes, asks;
    (void)state;
    init_target(ten, 0);
    memset(&target.votes, 0x5a, sizeof target.votes);
    memset(&target.asks, 0x5a, sizeof target.asks);
    votes = target.votes;
    asks = target.asks;
    reload(tenth, 5 * S);
    assert_memory_equal(&target.votes, &votes, sizeof votes);
    assert_memory_equal(&target.asks, &asks, sizeof asks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_bucket_starts_full_or_at_its_initial_level),
        cmocka_unit_test(a_bucket_of_ten_affords_ten_retries_and_not_one_more),
        cmocka_unit_test(a_retry_is_charged_in_full_or_refused),
        cmocka_unit_test(the_cost_depends_on_the_kind_of_failure),
        cmocka_unit_test(zero_capacity_never_affords_a_retry),
        cmocka_unit_test(a_retry_needs_more_than_the_threshold),
        cmocka_unit_test(a_failure_charges_at_most_what_the_bucket_holds),
        cmocka_unit_test(the_refill_is_credited_per_tick_and_rounded_down),
        cmocka_unit_test(a_bucket_made_within_a_tick_gains_the_part_before),
        cmocka_unit_test(a_drained_bucket_affords_one_retry_a_minute),
        cmocka_unit_test(the_refill_never_exceeds_its_rate),
        cmocka_unit_test(time_spent_full_is_not_credited_later),
        cmocka_unit_test(time_spent_full_by_successes_is_not_credited_later),
        cmocka_unit_test(a_success_earns_its_fraction_up_to_the_capacity),
        cmocka_unit_test(a_full_bucket_is_only_read),
        cmocka_unit_test(first_attempts_may_earn),
        cmocka_unit_test(a_retried_success_is_refunded_its_last_charge_or_a_share_of_it),
        cmocka_unit_test(add_milli_adds_and_removes_tokens),
        cmocka_unit_test(removing_tokens_includes_the_refill_so_far),
        cmocka_unit_test(add_milli_changes_only_token_budgets),
        cmocka_unit_test(a_clock_that_steps_back_creates_no_tokens),
        cmocka_unit_test(the_stamp_may_wrap_after_eighteen_years),
        cmocka_unit_test(a_bucket_untouched_for_ten_years_earns_nothing),
        cmocka_unit_test(a_charge_that_loses_a_race_retries_with_the_new_level),
        cmocka_unit_test(spending_never_exceeds_the_initial_tokens_plus_earnings),
        cmocka_unit_test(a_window_allows_its_ratio_of_the_requests_and_its_reserve),
        cmocka_unit_test(below_the_minimum_volume_every_retry_is_allowed),
        cmocka_unit_test(a_window_cools_down_after_a_refusal),
        cmocka_unit_test(an_endless_cooldown_is_limited_to_window_plus_cooldown),
        cmocka_unit_test(requests_and_retries_slide_out_of_the_window),
        cmocka_unit_test(every_lane_counts),
        cmocka_unit_test(a_refund_goes_to_the_slot_that_was_charged),
        cmocka_unit_test(a_charge_whose_slot_has_expired_is_not_refunded),
        cmocka_unit_test(a_refund_that_loses_a_race_is_retried),
        cmocka_unit_test(counters_may_wrap),
        cmocka_unit_test(a_window_without_requests_has_its_reserve_only),
        cmocka_unit_test(a_clock_slightly_behind_the_slot_allows_no_extra_retry),
        cmocka_unit_test(another_thread_may_begin_the_slot),
        cmocka_unit_test(a_slot_that_has_begun_is_not_begun_again),
        cmocka_unit_test(a_mark_above_the_total_counts_no_requests),
        cmocka_unit_test(retries_in_flight_are_a_share_of_the_calls_but_at_least_the_reserve),
        cmocka_unit_test(a_permit_is_released_after_a_reload_to_any_kind),
        cmocka_unit_test(without_a_budget_every_retry_is_allowed),
        cmocka_unit_test(a_smaller_capacity_removes_tokens_and_a_larger_one_adds_none),
        cmocka_unit_test(a_drained_bucket_stays_drained_after_a_reload),
        cmocka_unit_test(a_charge_of_another_kind_is_not_refunded),
        cmocka_unit_test(a_bucket_that_replaces_a_window_starts_with_its_remaining_retries),
        cmocka_unit_test(retries_are_carried_into_a_window_of_another_length),
        cmocka_unit_test(a_shortened_window_forgets_after_its_new_length),
        cmocka_unit_test(a_reload_with_the_same_window_keeps_its_counts),
        cmocka_unit_test(a_reload_never_reads_a_cooldown_as_tokens_or_tokens_as_a_cooldown),
        cmocka_unit_test(a_reader_overtaken_by_two_reloads_reads_a_whole_configuration),
        cmocka_unit_test(a_target_is_evictable_when_eviction_creates_no_retry),
        cmocka_unit_test(a_bucket_that_starts_empty_is_evictable_at_its_start),
        cmocka_unit_test(eight_threads_spend_a_bucket_to_the_last_token_and_not_beyond),
        cmocka_unit_test(eight_threads_never_exceed_the_ratio_of_a_window),
        cmocka_unit_test(eight_threads_never_have_more_retries_in_flight_than_the_limit),
        cmocka_unit_test(a_refusal_does_not_overwrite_a_bucket_that_a_reload_made),
        cmocka_unit_test(the_repair_of_a_cooldown_does_not_overwrite_a_bucket),
        cmocka_unit_test(a_reload_from_a_window_to_tokens_keeps_the_retries_left),
        cmocka_unit_test(a_drained_budget_stays_drained_for_one_window),
        cmocka_unit_test(a_threshold_of_a_thousandth_is_a_threshold),
        cmocka_unit_test(a_drained_bucket_is_stamped_with_the_next_tick),
        cmocka_unit_test(adding_no_tokens_changes_nothing),
        cmocka_unit_test(a_charge_records_one_permit_and_no_lease),
        cmocka_unit_test(a_reload_that_loses_a_race_still_credits_the_refill_so_far),
        cmocka_unit_test(no_retry_is_allowed_between_the_steps_of_a_reload),
        cmocka_unit_test(a_reload_to_a_window_changes_nothing_beside_its_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
