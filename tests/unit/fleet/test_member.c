/* test_lease_ledger.c - an instance's side of the exchange: what is asked for, and what an answer does to the target.
 *
 * One ledger on one target with a bucket of a hundred retries, no trickle and no breaker unless a test is about these.
 * Answers are made by hand: the other side is bank.c's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include <bide/bide.h>

#include "fleet/protocol/bucket.h"
#include "fleet/protocol/member.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))
#define MS           BIDE_MS
#define S            BIDE_S
#define BEGIN        (1000 * S)
#define RETRY        1000 /* what one costs */
#define TIMEOUT      (500 * MS)

static struct bide_target target;
static struct lease_ledger ledger;
static struct lease_ask ask; /* the last one */
static int64_t now;

/* -- the world ------------------------------------------------------------------------------------------------------*/

static const struct lease_terms terms = {.capacity_milli = 1000 * RETRY,
                                         .per_minute_milli = 60 * RETRY,
                                         .open_permille = 500,
                                         .timeout_ns = TIMEOUT,
                                         .hold_off = true};

static struct bide_target_config plain(void)
{
    struct bide_target_config c;
    assert_int_equal(bide_target_config_init(&c, BIDE_PRESET_SERVICE), BIDE_OK);
    c.budget.capacity_milli = 100 * RETRY;
    c.budget.refill_per_minute_milli = 0;
    c.breaker.kind = BIDE_BREAKER_OFF;
    return c;
}

static void begin_with(const struct bide_target_config *config, const struct lease_terms *these)
{
    now = BEGIN;
    assert_int_equal(bide_target_init(&target, config, now, NULL), BIDE_OK);
    assert_int_equal(lease_ledger_begin(&ledger, &target, these, 7, now, NULL), BIDE_OK);
}

static void begin(void)
{
    struct bide_target_config config = plain();
    begin_with(&config, &terms);
}

static int64_t level(void)
{
    return bide_budget_left_milli(&target, now);
}

static void spend(int64_t retries)
{
    assert_int_equal(bide_budget_add_milli(&target, -retries * RETRY, now), -retries * RETRY);
}

/* Asks, whether it is time or not. */
static void ask_of(struct lease_ledger *l)
{
    l->due_ns = now;
    assert_true(lease_ledger_is_due(l, now));
    ask = *lease_ledger_ask(l, now);
    assert_null(lease_ask_check(&ask));
}

static void ask_now(void)
{
    ask_of(&ledger);
}

/* One that grants so much: come again in a second, 250 ms if short. */
static struct lease_answer granting(int64_t retries)
{
    return (struct lease_answer){.version = LEASE_VERSION,
                                 .serial = ledger.seen + 1,
                                 .granted_milli = retries * RETRY,
                                 .next_ms = LEASE_BUSY_MS,
                                 .soon_ms = LEASE_SOON_MS,
                                 .instances = 1};
}

static void hear(struct lease_answer a)
{
    assert_null(lease_ledger_answer(&ledger, &a, 1, now));
}

/* As if so much had been wanted. */
static void exchange(struct lease_answer a)
{
    ask_now();
    ledger.ask.want_milli = a.granted_milli;
    hear(a);
}

/* An exchange whose answer also says the share. */
static void exchange_sharing(int64_t retries, int64_t share_milli)
{
    struct lease_answer a = granting(retries);
    a.share_milli = share_milli;
    exchange(a);
}

static const struct bide_outcome ok = {.kind = BIDE_KIND_OK, .evidence = BIDE_EVIDENCE_ANSWERED};
static const struct bide_outcome failed = {.kind = BIDE_KIND_TRANSIENT, .evidence = BIDE_EVIDENCE_ANSWERED};

/* A call that ends like this at its first attempt; what came of it. */
static enum bide_reason call(const struct bide_outcome *outcome)
{
    static struct bide_policy policy;
    static uint64_t seed;
    struct bide_call c;
    struct bide_request request = {.safety = BIDE_SAFE, .seed = ++seed};
    assert_int_equal(bide_policy_init(&policy, BIDE_PRESET_SERVICE), BIDE_OK);
    struct bide_verdict v = bide_call_begin(&c, &policy, &target, &request, now);
    if (v.action != BIDE_START)
        return v.reason;
    v = bide_call_outcome(&c, 1, outcome, now);
    return v.reason; /* a retry that was granted is paid for, and never made */
}

static void be_refused(int times)
{
    for (int i = 0; i < times; i++)
        assert_int_equal(call(&failed), BIDE_REASON_BUDGET_EMPTY);
}

/* The server asks for so much quiet. */
static void be_throttled(int64_t wait_ns)
{
    struct bide_outcome o = {.kind = BIDE_KIND_THROTTLED, .evidence = BIDE_EVIDENCE_ANSWERED};
    o.hint = (struct bide_hint){.kind = BIDE_HINT_WAIT, .wait_ns = wait_ns};
    (void)call(&o);
}

/* -- beginning ------------------------------------------------------------------------------------------------------*/

static void who_comes_asks_at_once_and_for_three_retries(void **state)
{
    begin();
    assert_int_equal(level(), 0); /* what was in it is not the fleet's */
    assert_true(lease_ledger_look_ns(&ledger, now) <= now);
    assert_true(lease_ledger_is_due(&ledger, now));
    ask = *lease_ledger_ask(&ledger, now);
    assert_null(lease_ask_check(&ask));
    const struct lease_ask wanted = {.capacity_milli = 1000 * RETRY,
                                     .per_minute_milli = 60 * RETRY,
                                     .unit_milli = RETRY,
                                     .want_milli = 3 * RETRY,
                                     .open_permille = 500};
    assert_memory_equal(&ask, &wanted, sizeof ask);
}

static void a_budget_that_is_not_of_tokens_is_refused(void **state)
{
    struct bide_target_config config = plain();
    struct bide_problem problem;
    config.budget.kind = BIDE_BUDGET_NONE;
    assert_int_equal(bide_target_init(&target, &config, BEGIN, NULL), BIDE_OK);
    assert_int_equal(lease_ledger_begin(&ledger, &target, &terms, 7, BEGIN, &problem), BIDE_ERR_INVALID);
    assert_string_equal(problem.field, "budget.kind");
}

static void a_lease_that_somebody_ended_is_begun_again(void **state)
{
    begin();
    exchange(granting(5));
    now += S;
    assert_int_equal(bide_lease_end(&target, now), BIDE_OK);
    bide_budget_add_milli(&target, 50 * RETRY, now);
    ask_now();
    assert_true(bide_lease_is_on(&target));
    assert_int_equal(level() + ask.give_milli, 0);
}

/* -- what is reported -----------------------------------------------------------------------------------------------*/

static void what_calls_earned_is_told_once(void **state)
{
    begin();
    for (int i = 0; i < 3; i++)
        assert_int_equal(call(&ok), BIDE_REASON_SUCCEEDED);
    ask_now();
    assert_int_equal(ask.firsts, 3);
    assert_int_equal(ask.successes, 3);
    assert_int_equal(ask.earned_milli, 300);
    hear(granting(0));
    assert_int_equal(level(), 0);
    ask_now();
    assert_int_equal(ask.firsts + ask.successes + ask.earned_milli, 0);
}

static void what_is_missing_since_the_last_exchange_was_spent(void **state)
{
    begin();
    exchange(granting(10));
    spend(3);
    now += S;
    ask_now();
    assert_int_equal(ask.spent_milli, 3 * RETRY);
    spend(2); /* while the ask is under way */
    hear(granting(0));
    spend(1);
    ask_now();
    assert_int_equal(ask.spent_milli, 3 * RETRY);
}

static void more_than_there_was_is_not_spending(void **state)
{
    begin();
    exchange(granting(10));
    bide_budget_add_milli(&target, 5 * RETRY, now); /* charges given back, from before the lease's last exchange */
    now += S;
    ask_now();
    assert_int_equal(ask.spent_milli, 0);
}

static void a_trickle_that_is_forfeited_was_not_spent(void **state)
{
    struct bide_target_config config = plain();
    config.budget.refill_per_minute_milli = 60 * RETRY;
    begin_with(&config, &terms);
    exchange(granting(1));
    ask_now();
    lease_ledger_nothing(&ledger, now + 20 * S, now);
    now += 20 * S;
    assert_in_range(level(), 18900, 20000); /* it begins somewhere in the first second */
    ask_now();
    hear(granting(0));
    assert_in_range(level(), 0, RETRY);
    ask_now();
    assert_int_equal(ask.spent_milli, 0);
}

static void numbers_that_are_too_large_are_cut_to_what_can_be_said(void **state)
{
    begin();
    exchange(granting(100));
    target.lane[0].firsts = target.lane[1].successes = target.lane[2].earned_milli = UINT64_MAX / 2;
    target.refused[8] = UINT64_MAX;
    now += 1;
    ask_now(); /* is in range */
    assert_int_equal(ask.earned_milli, LEASE_MILLI_MAX);
    hear(granting(0));
    target.refused[8] = 3; /* went back */
    ask_now();
}

/* -- how much -------------------------------------------------------------------------------------------------------*/

static void twice_what_is_spent_until_the_next_exchange_is_wanted(void **state)
{
    begin();
    exchange(granting(20));
    spend(20);
    now += S;
    ask_now(); /* 20 a second, new by half: 10. Twice that until the next exchange */
    assert_int_equal(ledger.rate_milli_per_s, 10 * RETRY);
    assert_int_equal(ask.want_milli, 20 * RETRY);
    hear(granting(20));
    spend(20);
    now += S;
    ask_now();
    assert_int_equal(ask.want_milli, 30 * RETRY);
}

static void who_is_to_come_later_wants_for_longer(void **state)
{
    struct lease_answer a = granting(20);
    begin();
    a.next_ms = 5000;
    exchange(a);
    spend(20);
    now += 5 * S; /* 4 a second, new by half: 2. Twice that, in 5 s: 20 */
    ask_now();
    assert_int_equal(ask.want_milli, 20 * RETRY);
}

static void refused_retries_are_demand_too(void **state)
{
    begin();
    exchange(granting(0));
    now += S;
    be_refused(8);
    ask_now();
    assert_int_equal(ledger.rate_milli_per_s, 4 * RETRY);
    assert_int_equal(ask.want_milli, 8 * RETRY);
}

static void who_was_refused_wants_one_more_than_there_is(void **state)
{
    struct bide_target_config config = plain();
    config.budget.cost_timeout_milli = 3 * RETRY;
    begin_with(&config, &terms);
    exchange(granting(2));
    now += 100 * S; /* so long that the rate is next to nothing */
    struct bide_outcome timeout = failed;
    timeout.flags |= BIDE_FLAG_TIMED_OUT;
    assert_int_equal(call(&timeout), BIDE_REASON_BUDGET_EMPTY);
    ask_now();
    assert_int_equal(ask.want_milli, RETRY);
    assert_int_equal(ask.give_milli, 0);
}

static void never_more_is_wanted_than_has_place(void **state)
{
    begin();
    exchange(granting(100));
    spend(100);
    now += 100 * MS;
    ask_now();
    assert_int_equal(ask.want_milli, 100 * RETRY);
    hear(granting(100));
    spend(60);
    bide_budget_add_milli(&target, -500, now);
    now += 100 * MS;
    ask_now();
    assert_int_equal(level(), 39500);
    assert_int_equal(ask.want_milli, 60 * RETRY); /* whole retries */
}

static void who_may_not_retry_at_all_wants_nothing(void **state)
{
    struct bide_target_config config = plain();
    config.budget.capacity_milli = 0;
    begin_with(&config, &terms);
    be_refused(3);
    ask_now();
    assert_int_equal(ask.want_milli, 0);
}

static void an_idle_one_keeps_its_share_in_whole_retries(void **state)
{
    begin();
    exchange_sharing(1, 5700);
    now += S;
    ask_now();
    assert_int_equal(ask.want_milli, 4 * RETRY);
    hear(granting(4));
    assert_int_equal(level(), 5 * RETRY);
}

static void an_idle_one_whose_share_is_next_to_nothing_keeps_nothing(void **state)
{
    begin();
    exchange_sharing(1, 499);
    bide_budget_add_milli(&target, 300, now);
    now += S;
    ask_now();
    assert_int_equal(ask.want_milli, 0);
    assert_int_equal(ask.give_milli, 1300); /* less than a retry too: here it is of no use */
    assert_int_equal(level(), 0);
    hear(granting(0));
    ask_now();
    assert_int_equal(ask.give_milli + ask.want_milli, 0);
}

static void who_has_more_than_twice_the_share_gives_the_rest_back(void **state)
{
    begin();
    exchange_sharing(8, 4000);
    now += S;
    ask_now();
    assert_int_equal(ask.give_milli + ask.want_milli, 0);
    struct lease_answer a = granting(0);
    a.share_milli = 3700;
    hear(a);
    ask_now();
    assert_int_equal(ask.give_milli, 5 * RETRY); /* whole retries stay */
    assert_int_equal(ask.spent_milli, 0);
    assert_int_equal(level(), 3 * RETRY);
}

static void what_is_beyond_the_demand_by_half_goes_back(void **state)
{
    begin();
    exchange(granting(25));
    spend(10);
    now += S;
    ask_now(); /* 5 a second: 10 to hold, 15 there */
    assert_int_equal(ask.give_milli + ask.want_milli, 0);
    hear(granting(0));
    spend(5);
    now += S;
    bide_budget_add_milli(&target, 6 * RETRY, now); /* 2 a second: 4 or 5 to hold, 16 there */
    ask_now();
    assert_in_range(ask.give_milli, 11 * RETRY, 12 * RETRY);
}

static void giving_and_taking_in_turn_comes_to_an_end(void **state)
{
    for (int64_t all = 1; all <= 60; all++) {
        int64_t bank = all * RETRY;
        int moves = 0, last = 0;
        begin();
        for (int i = 1; i < 50; i++, now += S) {
            ask_now();
            bank += ask.give_milli;
            struct lease_answer a = granting((ask.want_milli < bank ? ask.want_milli : bank) / RETRY);
            bank -= a.granted_milli;
            a.share_milli = bank / 2; /* as the bank says it to the only instance */
            hear(a);
            bool moved = ask.give_milli + ask.want_milli > 0;
            moves += moved;
            last = moved ? i : last;
        }
        assert_true(last < 10 && moves < 10);
        assert_true(2 * level() <= all * RETRY);
    }
}

static void when_demand_ends_everything_flows_back(void **state)
{
    begin();
    exchange(granting(50));
    spend(40);
    int exchanges = 0;
    for (; level() > 0 && exchanges < 20; exchanges++) {
        now += S;
        ask_now();
        hear(granting(ask.want_milli / RETRY));
    }
    assert_int_equal(level(), 0);
    assert_in_range(exchanges, 2, 16);
}

static void what_no_longer_fits_is_given_back_with_the_next_ask(void **state)
{
    begin();
    exchange(granting(100));
    spend(100);
    now += 100 * MS;
    ask_now();
    assert_int_equal(ask.want_milli, 100 * RETRY);
    bide_budget_add_milli(&target, 30 * RETRY, now); /* calls gave their charges back */
    hear(granting(100));
    assert_int_equal(level(), 100 * RETRY);
    assert_int_equal(ledger.owed_milli, 30 * RETRY);
    now += 100 * MS;
    ask_now();
    assert_int_equal(ask.give_milli, 30 * RETRY);
    assert_int_equal(ledger.owed_milli, 0);
}

/* -- when -----------------------------------------------------------------------------------------------------------*/

static void the_next_time_is_spread_by_a_tenth(void **state)
{
    int64_t least = INT64_MAX, most = 0;
    for (uint64_t seed = 0; seed < 1000; seed++) {
        begin();
        ask_now();
        struct lease_answer a = granting(0);
        a.next_ms = 10000;
        assert_null(lease_ledger_answer(&ledger, &a, seed, now));
        int64_t wait = ledger.due_ns - now;
        least = wait < least ? wait : least;
        most = wait > most ? wait : most;
    }
    assert_in_range(least, 9000 * MS, 9010 * MS);
    assert_in_range(most, 10990 * MS, 11000 * MS);
}

static void an_idle_one_does_not_ask_before_it_is_due(void **state)
{
    begin();
    struct lease_answer a = granting(0);
    a.next_ms = 10000;
    exchange(a);
    int64_t due = ledger.due_ns;
    assert_in_range(lease_ledger_look_ns(&ledger, now), now + LEASE_SOON_MS * MS, now + 2 * LEASE_SOON_MS * MS);
    while (now < due) {
        assert_false(lease_ledger_is_due(&ledger, now));
        int64_t look = lease_ledger_look_ns(&ledger, now);
        assert_in_range(look, now + 1, due);
        assert_true(look == due || look >= now + LEASE_SOON_MS * MS);
        now = look;
    }
    assert_true(lease_ledger_is_due(&ledger, now));
    assert_int_equal(lease_ledger_look_ns(&ledger, now), due);
}

static void who_is_short_asks_earlier_but_not_at_once(void **state)
{
    begin();
    exchange(granting(0));
    be_refused(1);
    assert_false(lease_ledger_is_due(&ledger, now));
    assert_false(lease_ledger_is_due(&ledger, now + 224 * MS));
    now += 276 * MS;
    assert_true(lease_ledger_is_due(&ledger, now));
    (void)lease_ledger_ask(&ledger, now);
    assert_int_equal(lease_ledger_look_ns(&ledger, now), BIDE_NEVER);
    assert_false(lease_ledger_is_due(&ledger, now + 3600 * S)); /* one at a time */
}

static void who_has_spent_more_than_half_is_short_before_it_is_refused(void **state)
{
    begin();
    exchange(granting(8));
    now += 300 * MS;
    spend(4);
    assert_false(lease_ledger_is_due(&ledger, now));
    spend(1);
    assert_true(lease_ledger_is_due(&ledger, now));
}

/* -- connected and alone --------------------------------------------------------------------------------------------*/

static void an_answer_extends_the_lease_beyond_the_next_exchange(void **state)
{
    begin();
    assert_true(bide_lease_until(&target) <= now);
    struct lease_answer a = granting(0);
    a.next_ms = 10000;
    exchange(a);
    assert_int_equal(bide_lease_until(&target), now + 25 * S + TIMEOUT);
}

static void when_nothing_comes_the_target_goes_on_alone_at_once(void **state)
{
    begin();
    exchange(granting(5));
    now += S;
    ask_now();
    assert_int_equal(ask.give_milli, 5 * RETRY);
    now += TIMEOUT;
    lease_ledger_nothing(&ledger, now + 3 * S, now);
    assert_int_equal(bide_lease_until(&target), now);
    assert_int_equal(level(), 0); /* what was asked is spent */
    assert_int_equal(lease_ledger_look_ns(&ledger, now), now + 3 * S);
}

static void who_is_alone_does_not_ask_before_its_time_however_short(void **state)
{
    begin();
    exchange(granting(0));
    lease_ledger_nothing(&ledger, now + 3 * S, now); /* without an ask: nobody to ask */
    be_refused(1);
    assert_false(lease_ledger_is_due(&ledger, now + 3 * S - 1));
    assert_true(lease_ledger_is_due(&ledger, now + 3 * S));
}

static void failures_in_a_row_leave_the_floor_alone(void **state)
{
    struct bide_target_config config = plain();
    config.budget.refill_per_minute_milli = 6 * RETRY; /* one in 10 s */
    begin_with(&config, &terms);
    exchange_sharing(1, 0);
    for (int i = 0; i < 30; i++) {
        now += S;
        ask_now();
        assert_int_equal(ask.give_milli, i == 0 ? RETRY : 0); /* what is given into the void is gone */
        lease_ledger_nothing(&ledger, now + S, now);
    }
    assert_in_range(level(), 1800, 2900); /* it begins somewhere in the first ten seconds, once */
}

static void the_floors_of_a_fleet_that_loses_its_bank_do_not_ripen_together(void **state)
{
    struct bide_target_config config = plain();
    unsigned early = 0;
    config.budget.refill_per_minute_milli = 6 * RETRY; /* one in 10 s */
    for (uint32_t who = 1; who <= 1000; who++) {
        begin_with(&config, &terms);
        ledger.who = who;
        exchange(granting(0));
        ask_now();
        lease_ledger_nothing(&ledger, now + S, now);
        assert_in_range(bide_lease_until(&target), now, now + 10 * S);
        early += bide_lease_until(&target) < now + S;
    }
    assert_in_range(early, 70, 130); /* a tenth */
}

static void a_late_answer_is_never_applied(void **state)
{
    begin();
    ask_now();
    struct lease_answer a = granting(1);
    lease_ledger_nothing(&ledger, now + S, now);
    assert_string_equal(lease_ledger_answer(&ledger, &a, 1, now), "late");
    now += S;
    assert_int_equal(level(), 0);
    ask_now();
    hear(a);
    assert_string_equal(lease_ledger_answer(&ledger, &a, 1, now), "late"); /* nor one that comes twice */
    assert_int_equal(level(), RETRY);
}

/* -- lies -----------------------------------------------------------------------------------------------------------*/

static void an_answer_that_cannot_be_true_is_refused_and_changes_nothing(void **state)
{
    static const struct {
        const char *field;
        size_t offset;
        int64_t value;
    } lies[] = {
#define LIE(field, value) {#field, offsetof(struct lease_answer, field), value}
        LIE(version, 0),
        LIE(version, LEASE_VERSION + 1),
        LIE(serial, -1),
        LIE(serial, 0),
        LIE(serial, 1), /* that was the last one's */
        LIE(serial, LEASE_COUNT_MAX + 1),
        LIE(granted_milli, -1),
        LIE(granted_milli, 4 * RETRY + 1), /* more than was wanted */
        LIE(granted_milli, INT64_MAX),
        LIE(share_milli, -1),
        LIE(share_milli, INT64_MAX),
        LIE(next_ms, 0),
        LIE(next_ms, LEASE_SOON_MS - 1),
        LIE(next_ms, LEASE_SLOWEST_MS + 1),
        LIE(next_ms, LEASE_MS_MAX),
        LIE(next_ms, INT64_MIN),
        LIE(soon_ms, 0),
        LIE(soon_ms, LEASE_BUSY_MS + 1), /* later than next */
        LIE(soon_ms, LEASE_MS_MAX),
        LIE(hold_off_ms, -1),
        LIE(hold_off_ms, LEASE_MS_MAX + 1),
        LIE(hold_off_number, -1),
        LIE(opening, -1),
        LIE(is_open, 2),
        LIE(instances, -1),
        LIE(level_milli, -1),
        LIE(mark, 8),
    };
    begin();
    exchange_sharing(0, 4 * RETRY);
    now += S;
    ask_now();
    assert_int_equal(ask.want_milli, 4 * RETRY);
    struct bide_target before = target;
    struct lease_ledger book = ledger;
    for (size_t i = 0; i < COUNT(lies); i++) {
        struct lease_answer a = granting(4);
        memcpy((char *)&a + lies[i].offset, &lies[i].value, sizeof lies[i].value);
        const char *wrong = lease_ledger_answer(&ledger, &a, 1, now);
        assert_non_null(wrong);
        assert_string_equal(wrong, lies[i].field);
    }
    assert_memory_equal(&target, &before, sizeof target);
    assert_memory_equal(&ledger, &book, sizeof ledger);
    hear(granting(4));
    assert_int_equal(level(), 4 * RETRY);
}

static void the_highest_serial_seen_is_told(void **state)
{
    begin();
    ask_now();
    assert_int_equal(ask.seen, 0);
    struct lease_answer a = granting(0);
    a.serial = 41;
    hear(a);
    ask_now();
    assert_int_equal(ask.seen, 41);
    lease_ledger_nothing(&ledger, now, now);
    ask_now();
    assert_int_equal(ask.seen, 41);
}

static void how_the_bank_counts_us_is_told_back(void **state)
{
    begin();
    ask_now();
    assert_int_equal(ask.mark, 0);
    struct lease_answer a = granting(0);
    a.mark = 3;
    hear(a);
    ask_now();
    assert_int_equal(ask.mark, 3);
}

/* -- one of many ----------------------------------------------------------------------------------------------------*/

static struct lease_ledger other;

/* Two processes have the target; the first of them exchanges. */
static void begin_two(void)
{
    struct lease_terms both = terms;
    struct bide_target_config config = plain();
    both.shared = true;
    begin_with(&config, &both);
    exchange(granting(10));
    assert_int_equal(lease_ledger_begin(&other, &target, &both, 8, now, NULL), BIDE_OK);
}

/* When the other becomes the one, looking as it is told to. */
static int64_t when_it_takes_over(void)
{
    for (int i = 0; i < 1000 && !lease_ledger_is_due(&other, now); i++) {
        int64_t look = lease_ledger_look_ns(&other, now);
        assert_true(look > now);
        now = look;
    }
    return now;
}

static void only_one_exchanges_and_the_other_touches_nothing(void **state)
{
    begin_two();
    assert_int_equal(level(), 10 * RETRY); /* beginning again takes nothing away */
    for (int i = 0; i < 100; i++) {
        now += S;
        struct bide_target before = target;
        assert_false(lease_ledger_is_due(&other, now));
        assert_in_range(lease_ledger_look_ns(&other, now), now + 1, now + 10 * S);
        lease_ledger_nothing(&other, now + S, now);
        assert_memory_equal(&target, &before, sizeof target);
        exchange(granting(0));
    }
    assert_true(ledger.exchanger);
    assert_false(other.exchanger);
}

static void a_killed_exchanger_is_followed_before_the_lease_has_long_ended(void **state)
{
    begin_two();
    int64_t ends = bide_lease_until(&target);
    int64_t taken = when_it_takes_over();
    assert_in_range(taken, BEGIN + 2 * S, ends + 2 * S);
    assert_true(other.exchanger);
}

static void a_lost_exchange_does_not_lose_the_claim(void **state)
{
    begin_two();
    now += S;
    ask_now();
    now += TIMEOUT;
    lease_ledger_nothing(&ledger, now + 5 * S, now);
    now += 5 * S + TIMEOUT;
    assert_false(lease_ledger_is_due(&other, now));
    assert_true(lease_ledger_is_due(&ledger, now));
}

static void who_takes_over_is_the_same_instance_to_the_bank(void **state)
{
    begin_two();
    spend(3);
    be_throttled(100 * S); /* as if by the fleet */
    when_it_takes_over();
    ask = *lease_ledger_ask(&other, now);
    assert_null(lease_ask_check(&ask));
    assert_int_equal(ask.spent_milli, 3 * RETRY);
    assert_int_equal(ask.seen, ledger.seen);
    assert_int_equal(ask.mark, ledger.answer.mark);
    assert_int_equal(ask.want_milli + ask.give_milli, 0); /* seven are there: left alone until it knows more */
    assert_int_equal(ask.hold_off_ms, 0);
    assert_int_equal(level(), 7 * RETRY);
}

static void who_lost_the_claim_meanwhile_does_not_touch_the_target(void **state)
{
    begin_two();
    now += S;
    ask_now(); /* and is stopped for a long time */
    when_it_takes_over();
    struct lease_answer a = granting(1);
    a.is_open = a.opening = 1;
    a.hold_off_ms = 5000;
    ledger.ask.want_milli = RETRY;
    struct bide_target before = target;
    hear(a);
    assert_memory_equal(&target, &before, sizeof target);
    assert_false(ledger.exchanger);
    assert_int_equal(ledger.owed_milli, RETRY);
    assert_false(lease_ledger_is_due(&ledger, now));
    assert_true(lease_ledger_leave(&ledger, now, &ask));
    assert_int_equal(ask.give_milli, RETRY);
    assert_int_equal(ask.seen, 0); /* the target's other process is still there: nobody is to be counted out */
    before = target;
    lease_ledger_nothing(&ledger, now + S, now);
    assert_memory_equal(&target, &before, sizeof target);
}

static void who_gets_the_claim_back_goes_on_where_the_other_was(void **state)
{
    begin_two();
    when_it_takes_over();
    now += S;
    assert_false(lease_ledger_is_due(&ledger, now)); /* it was late, and sees that */
    spend(4);
    struct lease_ask last;
    assert_false(lease_ledger_leave(&other, now, &last));
    now += S;
    ask_now();
    assert_int_equal(ask.spent_milli, 4 * RETRY);
    assert_int_equal(ask.want_milli + ask.give_milli, 0);
    assert_int_equal(ask.seen, 1);
}

static void a_memo_that_cannot_be_true_or_is_old_is_not_believed(void **state)
{
    static const uint64_t progress[] = {UINT64_MAX, (uint64_t)LEASE_COUNT_MAX << 4, 1, 0};
    for (unsigned i = 0; i < sizeof progress / sizeof *progress; i++) {
        begin_two();
        bide_lease_memo_set(&target, (struct bide_lease_memo){progress[i], UINT64_MAX});
        when_it_takes_over();
        ask = *lease_ledger_ask(&other, now);
        assert_null(lease_ask_check(&ask));
        assert_int_equal(ask.seen, 0);
        assert_int_equal(ask.spent_milli, 0);
    }
}

static void who_fails_for_a_minute_lets_another_try(void **state)
{
    begin_two();
    while (ledger.exchanger) {
        now += 5 * S;
        ask_now();
        assert_false(lease_ledger_is_due(&other, now));
        lease_ledger_nothing(&ledger, now + 5 * S, now);
        assert_true(now <= BEGIN + 61 * S);
    }
    assert_true(now >= BEGIN + 60 * S);
    now += S;
    assert_true(lease_ledger_is_due(&other, now));
}

static void who_is_the_only_one_goes_on_trying(void **state)
{
    begin();
    exchange(granting(0));
    for (int i = 0; i < 100; i++) {
        now += 10 * S;
        ask_now();
        lease_ledger_nothing(&ledger, now + S, now);
        assert_true(ledger.exchanger);
    }
}

/* -- quiet ----------------------------------------------------------------------------------------------------------*/

static struct lease_answer hold_off_of(int64_t ms, int64_t number)
{
    struct lease_answer a = granting(0);
    a.hold_off_ms = ms;
    a.hold_off_number = number;
    return a;
}

static void what_the_server_asked_for_is_told_and_its_echo_is_not(void **state)
{
    begin();
    be_throttled(9 * S);
    now += 4 * S;
    ask_now();
    assert_int_equal(ask.hold_off_ms, 5000);
    now += 20 * MS;
    hear(hold_off_of(5000, 1));
    assert_int_equal(bide_target_hold_off_until(&target, now), BEGIN + 9 * S); /* not a little later each time */
    now += S;
    ask_now();
    assert_int_equal(ask.hold_off_ms, 0);
    assert_int_equal(ask.hold_off_over, 0);
    hear(hold_off_of(4000, 1));
    be_throttled(8 * S); /* more than that */
    ask_now();
    assert_int_equal(ask.hold_off_ms, 8000);
}

static void what_was_lost_on_the_way_is_told_again(void **state)
{
    begin();
    be_throttled(9 * S);
    ask_now();
    assert_int_equal(ask.hold_off_ms, 9000);
    lease_ledger_nothing(&ledger, now + S, now);
    now += S;
    ask_now();
    assert_int_equal(ask.hold_off_ms, 8000);
}

static void the_fleets_hold_off_is_kept_and_not_told_back(void **state)
{
    begin();
    exchange(hold_off_of(5000, 3));
    assert_int_equal(bide_target_hold_off_until(&target, now), now + 5 * S);
    for (int i = 1; i < 5; i++) {
        now = BEGIN + i * S;
        ask_now();
        assert_int_equal(ask.hold_off_ms, 0);
        now += 3 * MS; /* on its way */
        hear(hold_off_of(5000 - i * 1000, 3));
        assert_int_equal(bide_target_hold_off_until(&target, now), BEGIN + 5 * S);
    }
    now += 10 * S;
    ask_now();
    assert_int_equal(ask.hold_off_ms + ask.hold_off_over, 0);
}

static void a_success_that_ends_it_is_told_once(void **state)
{
    begin();
    exchange(hold_off_of(5000, 3));
    now += S;
    assert_int_equal(call(&ok), BIDE_REASON_SUCCEEDED);
    assert_int_equal(bide_target_hold_off_until(&target, now), 0);
    ask_now();
    assert_int_equal(ask.hold_off_over, 3);
    assert_int_equal(ask.hold_off_ms, 0);
    hear(granting(0));
    ask_now();
    assert_int_equal(ask.hold_off_over, 0);
}

static void a_success_while_we_ask_is_not_undone_by_the_answer(void **state)
{
    begin();
    exchange(hold_off_of(5000, 3));
    now += S;
    ask_now();
    assert_int_equal(call(&ok), BIDE_REASON_SUCCEEDED);
    hear(hold_off_of(4000, 3));
    assert_int_equal(bide_target_hold_off_until(&target, now), 0);
    ask_now();
    assert_int_equal(ask.hold_off_over, 3);
    hear(hold_off_of(4000, 4)); /* somebody was asked again */
    assert_int_equal(bide_target_hold_off_until(&target, now), now + 4 * S);
}

static void after_a_success_the_server_may_ask_for_less(void **state)
{
    begin();
    exchange(hold_off_of(60000, 3));
    now += S;
    assert_int_equal(call(&ok), BIDE_REASON_SUCCEEDED);
    be_throttled(2 * S);
    ask_now();
    assert_int_equal(ask.hold_off_over, 3);
    assert_int_equal(ask.hold_off_ms, 2000);
}

static void no_hold_off_is_longer_than_the_target_allows(void **state)
{
    struct bide_target_config config = plain();
    config.hold_off_max_ns = 30 * S;
    begin_with(&config, &terms);
    exchange(hold_off_of(LEASE_MS_MAX, 1));
    assert_int_equal(bide_target_hold_off_until(&target, now), now + 30 * S);
    now += S;
    ask_now();
    assert_int_equal(ask.hold_off_ms + ask.hold_off_over, 0);
}

static void who_does_not_share_hold_off_neither_tells_nor_keeps_it(void **state)
{
    struct lease_terms deaf = terms;
    struct bide_target_config config = plain();
    deaf.hold_off = false;
    begin_with(&config, &deaf);
    exchange(hold_off_of(5000, 3));
    assert_int_equal(bide_target_hold_off_until(&target, now), 0);
    be_throttled(9 * S);
    ask_now();
    assert_int_equal(ask.hold_off_ms + ask.hold_off_over, 0);
}

/* -- the breaker ----------------------------------------------------------------------------------------------------*/

static void begin_with_breaker(int64_t open_permille)
{
    struct lease_terms these = terms;
    struct bide_target_config config = plain();
    these.open_permille = open_permille;
    config.breaker.kind = BIDE_BREAKER_BY_RUN;
    config.breaker.consecutive = 5;
    config.breaker.open_jitter_permille = 0;
    begin_with(&config, &these);
}

static struct lease_answer opening(int64_t number, bool is_open)
{
    struct lease_answer a = granting(0);
    a.opening = number;
    a.is_open = is_open;
    return a;
}

static enum bide_breaker_state breaker_state(void)
{
    return bide_breaker_get(&target).state;
}

static void a_new_opening_of_the_fleet_opens_ours_once(void **state)
{
    begin_with_breaker(500);
    exchange(opening(4, true));
    assert_int_equal(breaker_state(), BIDE_BREAKER_CLOSED); /* who comes has seen nothing yet */
    exchange(opening(5, false));
    assert_int_equal(breaker_state(), BIDE_BREAKER_CLOSED); /* and over again */
    exchange(opening(5, true));
    assert_int_equal(breaker_state(), BIDE_BREAKER_CLOSED);
    exchange(opening(6, true));
    assert_int_equal(breaker_state(), BIDE_BREAKER_OPEN);
    assert_int_equal(ledger.openings_followed, 1);
    bide_breaker_hold(&target, BIDE_HOLD_CLOSED);
    bide_breaker_hold(&target, BIDE_HOLD_RELEASE);
    exchange(opening(6, true));
    assert_int_equal(breaker_state(), BIDE_BREAKER_CLOSED);
    assert_int_equal(ledger.openings_followed, 1);
}

static void who_comes_back_does_not_follow_an_opening_that_is_old_to_the_others(void **state)
{
    begin_with_breaker(500);
    exchange(opening(4, false));
    ask_now();
    lease_ledger_nothing(&ledger, now, now);
    exchange(opening(5, true));
    assert_int_equal(ledger.openings_followed, 0);
    exchange(opening(6, true));
    assert_int_equal(ledger.openings_followed, 1);
}

static void a_bank_that_forgot_its_openings_counts_anew(void **state)
{
    begin_with_breaker(500);
    exchange(opening(6, false));
    exchange(opening(0, false));
    exchange(opening(1, true));
    assert_int_equal(breaker_state(), BIDE_BREAKER_OPEN);
}

static void who_does_not_follow_stays_closed(void **state)
{
    begin_with_breaker(0);
    exchange(opening(0, false));
    exchange(opening(1, true));
    assert_int_equal(breaker_state(), BIDE_BREAKER_CLOSED);
    begin(); /* without a breaker */
    exchange(opening(0, false));
    exchange(opening(1, true));
    assert_int_equal(breaker_state(), BIDE_BREAKER_CLOSED);
}

static void a_breaker_without_traffic_has_no_opinion(void **state)
{
    begin_with_breaker(500);
    ask_now();
    assert_int_equal(ask.breaker, 0);
    hear(granting(0));
    call(&ok);
    ask_now();
    assert_int_equal(ask.breaker, 1);
    hear(granting(0));
    ask_now();
    assert_int_equal(ask.breaker, 0);
    begin();
    call(&ok);
    ask_now();
    assert_int_equal(ask.breaker, 0); /* there is none */
}

static void an_open_breaker_says_so_until_its_time_is_over(void **state)
{
    begin_with_breaker(500);
    assert_true(bide_breaker_trip(&target, 1, now));
    ask_now();
    assert_int_equal(ask.breaker, 2);
    hear(granting(0));
    now = bide_breaker_get(&target).until_ns - 1;
    ask_now();
    assert_int_equal(ask.breaker, 2);
    hear(granting(0));
    now += 1;
    ask_now(); /* nobody has asked it since */
    assert_int_equal(ask.breaker, 0);
    hear(granting(0));
    bide_breaker_hold(&target, BIDE_HOLD_OPEN);
    ask_now();
    assert_int_equal(ask.breaker, 2);
}

static void a_half_open_breaker_is_not_closed(void **state)
{
    static struct bide_policy policy;
    struct bide_call c;
    struct bide_request request = {.safety = BIDE_SAFE, .seed = 1};
    begin_with_breaker(500);
    assert_true(bide_breaker_trip(&target, 1, now));
    now = bide_breaker_get(&target).until_ns;
    assert_int_equal(bide_policy_init(&policy, BIDE_PRESET_SERVICE), BIDE_OK);
    assert_int_equal(bide_call_begin(&c, &policy, &target, &request, now).action, BIDE_START);
    assert_int_equal(breaker_state(), BIDE_BREAKER_HALF_OPEN);
    ask_now();
    assert_int_equal(ask.breaker, 2);
}

/* -- leaving --------------------------------------------------------------------------------------------------------*/

static void who_leaves_gives_everything_back(void **state)
{
    begin();
    exchange(granting(10));
    spend(2);
    call(&ok);
    ledger.owed_milli = 500;
    now += 400 * MS;
    assert_true(lease_ledger_leave(&ledger, now, &ask));
    assert_null(lease_ask_check(&ask));
    const struct lease_ask wanted = {.capacity_milli = 1000 * RETRY,
                                     .per_minute_milli = 60 * RETRY,
                                     .unit_milli = RETRY,
                                     .give_milli = 8500,
                                     .earned_milli = 100,
                                     .firsts = 1,
                                     .successes = 1,
                                     .spent_milli = 2 * RETRY,
                                     .open_permille = 500,
                                     .seen = 1,
                                     .leaving = 1};
    assert_memory_equal(&ask, &wanted, sizeof ask);
    assert_int_equal(level(), 0);
}

static void who_left_asks_no_more(void **state)
{
    begin();
    exchange(granting(10));
    now += S;
    ask_now();
    struct lease_answer a = granting(0);
    assert_true(lease_ledger_leave(&ledger, now, &ask));
    assert_string_equal(lease_ledger_answer(&ledger, &a, 1, now), "late");
    assert_int_equal(lease_ledger_look_ns(&ledger, now), BIDE_NEVER);
    assert_false(lease_ledger_is_due(&ledger, now + 1000 * S));
}

static void who_leaves_a_shared_target_leaves_it_to_the_others(void **state)
{
    begin_two();
    call(&ok);
    now += S;
    assert_false(lease_ledger_is_due(&other, now));
    assert_false(lease_ledger_leave(&ledger, now, &ask));
    assert_int_equal(level(), 10 * RETRY);
    assert_int_equal(bide_lease_collect(&target).successes, 1);
    now = lease_ledger_look_ns(&other, now);
    assert_in_range(now, BEGIN + S, BEGIN + 3 * S);
    assert_true(lease_ledger_is_due(&other, now));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_comes_asks_at_once_and_for_three_retries),
        cmocka_unit_test(a_budget_that_is_not_of_tokens_is_refused),
        cmocka_unit_test(a_lease_that_somebody_ended_is_begun_again),
        cmocka_unit_test(what_calls_earned_is_told_once),
        cmocka_unit_test(what_is_missing_since_the_last_exchange_was_spent),
        cmocka_unit_test(more_than_there_was_is_not_spending),
        cmocka_unit_test(a_trickle_that_is_forfeited_was_not_spent),
        cmocka_unit_test(numbers_that_are_too_large_are_cut_to_what_can_be_said),
        cmocka_unit_test(twice_what_is_spent_until_the_next_exchange_is_wanted),
        cmocka_unit_test(who_is_to_come_later_wants_for_longer),
        cmocka_unit_test(refused_retries_are_demand_too),
        cmocka_unit_test(who_was_refused_wants_one_more_than_there_is),
        cmocka_unit_test(never_more_is_wanted_than_has_place),
        cmocka_unit_test(who_may_not_retry_at_all_wants_nothing),
        cmocka_unit_test(an_idle_one_keeps_its_share_in_whole_retries),
        cmocka_unit_test(an_idle_one_whose_share_is_next_to_nothing_keeps_nothing),
        cmocka_unit_test(who_has_more_than_twice_the_share_gives_the_rest_back),
        cmocka_unit_test(what_is_beyond_the_demand_by_half_goes_back),
        cmocka_unit_test(giving_and_taking_in_turn_comes_to_an_end),
        cmocka_unit_test(when_demand_ends_everything_flows_back),
        cmocka_unit_test(what_no_longer_fits_is_given_back_with_the_next_ask),
        cmocka_unit_test(the_next_time_is_spread_by_a_tenth),
        cmocka_unit_test(an_idle_one_does_not_ask_before_it_is_due),
        cmocka_unit_test(who_is_short_asks_earlier_but_not_at_once),
        cmocka_unit_test(who_has_spent_more_than_half_is_short_before_it_is_refused),
        cmocka_unit_test(an_answer_extends_the_lease_beyond_the_next_exchange),
        cmocka_unit_test(when_nothing_comes_the_target_goes_on_alone_at_once),
        cmocka_unit_test(who_is_alone_does_not_ask_before_its_time_however_short),
        cmocka_unit_test(failures_in_a_row_leave_the_floor_alone),
        cmocka_unit_test(the_floors_of_a_fleet_that_loses_its_bank_do_not_ripen_together),
        cmocka_unit_test(a_late_answer_is_never_applied),
        cmocka_unit_test(an_answer_that_cannot_be_true_is_refused_and_changes_nothing),
        cmocka_unit_test(the_highest_serial_seen_is_told),
        cmocka_unit_test(how_the_bank_counts_us_is_told_back),
        cmocka_unit_test(only_one_exchanges_and_the_other_touches_nothing),
        cmocka_unit_test(a_killed_exchanger_is_followed_before_the_lease_has_long_ended),
        cmocka_unit_test(a_lost_exchange_does_not_lose_the_claim),
        cmocka_unit_test(who_takes_over_is_the_same_instance_to_the_bank),
        cmocka_unit_test(who_lost_the_claim_meanwhile_does_not_touch_the_target),
        cmocka_unit_test(who_gets_the_claim_back_goes_on_where_the_other_was),
        cmocka_unit_test(a_memo_that_cannot_be_true_or_is_old_is_not_believed),
        cmocka_unit_test(who_fails_for_a_minute_lets_another_try),
        cmocka_unit_test(who_is_the_only_one_goes_on_trying),
        cmocka_unit_test(what_the_server_asked_for_is_told_and_its_echo_is_not),
        cmocka_unit_test(what_was_lost_on_the_way_is_told_again),
        cmocka_unit_test(the_fleets_hold_off_is_kept_and_not_told_back),
        cmocka_unit_test(a_success_that_ends_it_is_told_once),
        cmocka_unit_test(a_success_while_we_ask_is_not_undone_by_the_answer),
        cmocka_unit_test(after_a_success_the_server_may_ask_for_less),
        cmocka_unit_test(no_hold_off_is_longer_than_the_target_allows),
        cmocka_unit_test(who_does_not_share_hold_off_neither_tells_nor_keeps_it),
        cmocka_unit_test(a_new_opening_of_the_fleet_opens_ours_once),
        cmocka_unit_test(who_comes_back_does_not_follow_an_opening_that_is_old_to_the_others),
        cmocka_unit_test(a_bank_that_forgot_its_openings_counts_anew),
        cmocka_unit_test(who_does_not_follow_stays_closed),
        cmocka_unit_test(a_breaker_without_traffic_has_no_opinion),
        cmocka_unit_test(an_open_breaker_says_so_until_its_time_is_over),
        cmocka_unit_test(a_half_open_breaker_is_not_closed),
        cmocka_unit_test(who_leaves_gives_everything_back),
        cmocka_unit_test(who_left_asks_no_more),
        cmocka_unit_test(who_leaves_a_shared_target_leaves_it_to_the_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
