/* test_lease_bank.c - the bank of a fleet: the bucket, who is counted, who gets how much and when, quiet and opinion.
 *
 * Time is a number. A fleet is a loop over instances that come when they were told, a tenth earlier or later at random;
 * the seed is fixed, so every run is the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "core/random.h"
#include "fleet/protocol/bucket.h"

#define T0   INT64_C(1700000000000) /* at the beginning of a window */
#define YEAR (INT64_C(365) * 86400000)

static struct lease_bank bank;
static struct lease_answer answer;
static int64_t now_ms;

/* A bank of 100 tokens without a trickle. */
static const struct lease_ask plain = {.capacity_milli = 100000, .unit_milli = 1000};

static int reset(void **state)
{
    bank = (struct lease_bank){0};
    now_ms = T0;
    return 0;
}

/* An exchange of somebody who is new each time, unless the ask says otherwise. */
static struct lease_answer say(struct lease_ask ask)
{
    assert_null(lease_ask_check(&ask));
    lease_bank_exchange(&bank, &ask, now_ms, &answer);
    assert_null(lease_answer_check(&answer, &ask));
    assert_null(lease_bank_check(&bank));
    assert_true(bank.level_milli <= ask.capacity_milli);
    return answer;
}

static struct lease_answer say_then(int64_t passed_ms, struct lease_ask ask)
{
    now_ms += passed_ms;
    return say(ask);
}

static struct lease_ask give(int64_t milli)
{
    struct lease_ask ask = plain;
    ask.give_milli = milli;
    return ask;
}

static struct lease_ask want(int64_t milli)
{
    struct lease_ask ask = plain;
    ask.want_milli = milli;
    return ask;
}

static struct lease_ask trickling(int64_t per_minute_milli)
{
    struct lease_ask ask = plain;
    ask.per_minute_milli = per_minute_milli;
    return ask;
}

/* ---- the bucket ---- */

static void a_new_bank_is_empty(void **state)
{
    struct lease_ask ask = trickling(60000);
    ask.want_milli = 1000;
    say(ask);
    assert_int_equal(answer.granted_milli, 0);
    assert_int_equal(answer.level_milli, 0);
    assert_int_equal(answer.serial, 1);
}

static void what_is_given_back_and_earned_is_granted_again(void **state)
{
    struct lease_ask ask = give(3000);
    ask.earned_milli = 2000;
    say(ask);
    assert_int_equal(answer.level_milli, 5000);
    assert_int_equal(say(want(4000)).granted_milli, 4000);
    assert_int_equal(answer.level_milli, 1000);
    assert_int_equal(bank.granted_milli, 4000);
}

static void it_never_holds_more_than_the_capacity(void **state)
{
    assert_int_equal(say(give(LEASE_MILLI_MAX)).level_milli, 100000);
    assert_int_equal(say_then(YEAR, trickling(LEASE_MILLI_MAX)).level_milli, 100000);
}

static void a_smaller_capacity_takes_away_and_a_larger_one_does_not_bring_it_back(void **state)
{
    struct lease_ask small = plain;
    small.capacity_milli = 10000;
    say(give(100000));
    assert_int_equal(say(small).level_milli, 10000);
    assert_int_equal(say(plain).level_milli, 10000);
    small.capacity_milli = 0;
    assert_int_equal(say(small).level_milli, 0);
    assert_int_equal(say(plain).level_milli, 0);
}

static void it_trickles_as_time_passes(void **state)
{
    say(trickling(60000));
    assert_int_equal(say_then(1, trickling(60000)).level_milli, 1);
    assert_int_equal(say_then(59999, trickling(60000)).level_milli, 60000);
}

static void asking_often_loses_nothing_of_a_slow_trickle(void **state)
{
    say(trickling(7));
    for (int i = 0; i < 10 * 60000 - 1; i++)
        say_then(1, trickling(7));
    assert_int_equal(answer.level_milli, 69);
    assert_int_equal(say_then(1, trickling(7)).level_milli, 70);
}

static void each_ask_trickles_at_its_own_rate(void **state)
{
    say(trickling(60000));
    say_then(1000, trickling(0));
    assert_int_equal(answer.level_milli, 0);
    say_then(1000, trickling(120000));
    assert_int_equal(answer.level_milli, 2000);
}

static void time_that_goes_back_mints_nothing(void **state)
{
    say(trickling(60000));
    say_then(60000, trickling(60000));
    assert_int_equal(answer.level_milli, 60000);
    say_then(-60000, trickling(60000));
    for (int i = 0; i < 60; i++)
        assert_int_equal(say_then(1000, trickling(60000)).level_milli, 60000);
    assert_int_equal(say_then(1000, trickling(60000)).level_milli, 61000);
}

static void a_millisecond_back_takes_nothing_away(void **state)
{
    say(trickling(60000));
    say_then(1000, trickling(60000));
    assert_int_equal(say_then(-1, trickling(60000)).level_milli, 1000);
    assert_int_equal(say_then(1, trickling(60000)).level_milli, 1000);
}

static void a_clock_that_went_far_back_trickles_on_from_there(void **state)
{
    say(trickling(60000));
    assert_int_equal(say_then(-YEAR, trickling(60000)).level_milli, 0);
    assert_int_equal(say_then(1000, trickling(60000)).level_milli, 1000);
}

static void a_clock_that_jumps_a_year_ahead_and_back_mints_an_hour_at_most(void **state)
{
    say(trickling(1000));
    assert_int_equal(say_then(YEAR, trickling(1000)).level_milli, 60000);
    assert_int_equal(say_then(-YEAR, trickling(1000)).level_milli, 60000);
}

static void lost_writes_empty_the_bucket(void **state)
{
    struct lease_ask knowing = want(1000);
    say(give(50000));
    knowing.seen = 1000;
    say(knowing);
    assert_int_equal(answer.granted_milli, 0);
    assert_int_equal(answer.level_milli, 0);
    assert_int_equal(answer.serial, 1001 + LEASE_LEAP);
}

static void what_comes_with_the_news_of_lost_writes_counts(void **state)
{
    struct lease_ask knowing = give(3000);
    say(give(50000));
    knowing.seen = 1000;
    assert_int_equal(say(knowing).level_milli, 3000);
}

static void lost_writes_empty_the_bucket_once(void **state)
{
    struct lease_ask knowing = give(3000);
    say(give(50000));
    knowing.seen = 1000;
    say(knowing);
    knowing.seen = 1500; /* another one, from before: what came in since is not lost */
    assert_int_equal(say(knowing).level_milli, 6000);
    assert_int_equal(answer.instances, 2);
}

static void who_has_seen_what_the_bank_knows_changes_nothing(void **state)
{
    struct lease_ask ask = give(50000);
    say(ask);
    ask = plain;
    ask.seen = 1;
    assert_int_equal(say(ask).level_milli, 50000);
    assert_int_equal(answer.serial, 2);
}

static void totals_stop_where_numbers_end(void **state)
{
    struct lease_ask ask = plain;
    ask.firsts = ask.successes = ask.spent_milli = LEASE_COUNT_MAX;
    say(ask);
    say(ask);
    assert_int_equal(bank.firsts, LEASE_COUNT_MAX);
    assert_int_equal(bank.successes, LEASE_COUNT_MAX);
    assert_int_equal(bank.spent_milli, LEASE_COUNT_MAX);
    ask.seen = LEASE_COUNT_MAX;
    assert_int_equal(say(ask).serial, LEASE_COUNT_MAX);
    assert_int_equal(say(ask).serial, LEASE_COUNT_MAX);
}

/* ---- how much ---- */

static void who_wants_alone_gets_all_of_it(void **state)
{
    say(give(100000));
    assert_int_equal(say(want(70000)).granted_milli, 70000);
}

static void those_who_want_share(void **state)
{
    for (int i = 0; i < 9; i++)
        say(want(20000)); /* there is nothing yet, but they are counted */
    say(give(100000));
    assert_int_equal(say(want(20000)).granted_milli, 10000);
    assert_int_equal(say(want(20000)).granted_milli, 8000); /* 90 for eleven */
}

static void less_than_a_unit_is_not_granted(void **state)
{
    say(give(999));
    assert_int_equal(say(want(5000)).granted_milli, 0);
    say(give(1));
    assert_int_equal(say(want(5000)).granted_milli, 1000);
}

static void a_single_unit_goes_to_whoever_comes_first(void **state)
{
    for (int i = 0; i < 50; i++)
        say(want(1000));
    say(give(1000));
    assert_int_equal(say(want(9000)).granted_milli, 1000);
    assert_int_equal(say(want(9000)).granted_milli, 0);
}

static void a_unit_of_nothing_is_no_division_by_zero(void **state)
{
    struct lease_ask ask = give(7);
    ask.unit_milli = 0;
    ask.want_milli = 5;
    assert_int_equal(say(ask).granted_milli, 5);
}

static void who_leaves_is_granted_nothing(void **state)
{
    struct lease_ask ask = want(5000);
    ask.give_milli = 9000;
    ask.leaving = 1;
    say(ask);
    assert_int_equal(answer.granted_milli, 0);
    assert_int_equal(answer.level_milli, 9000);
}

static void an_idle_instance_may_take_half_of_what_is_left_divided_by_all(void **state)
{
    say(give(80000));
    say(plain);
    say(plain);
    say(plain);
    assert_int_equal(answer.instances, 4);
    assert_int_equal(answer.share_milli, 10000);
}

static void there_is_no_share_of_an_empty_bucket(void **state)
{
    assert_int_equal(say(plain).share_milli, 0);
}

/* ---- a fleet ---- */

struct member {
    int64_t due_ms;
    struct lease_answer told;
    int64_t granted_milli;
};

struct fleet {
    uint32_t count;
    struct member *member;
    uint32_t drawn;
    int64_t exchanges;
};

/* What a member asks; the world fills in the rest. */
typedef struct lease_ask fleet_ask(const struct fleet *fleet, uint32_t who);

static struct lease_ask idle(const struct fleet *fleet, uint32_t who)
{
    return plain;
}

static struct lease_ask busy(const struct fleet *fleet, uint32_t who)
{
    struct lease_ask ask = plain;
    ask.firsts = ask.successes = 10;
    return ask;
}

static uint64_t draw(struct fleet *fleet, uint64_t below)
{
    return core_uniform((struct core_random_key){.seed = 7, .draw = fleet->drawn++}, below - 1);
}

/* All come within the first second. */
static struct fleet fleet_of(uint32_t count)
{
    struct fleet fleet = {.count = count, .member = calloc(count, sizeof *fleet.member)};
    assert_non_null(fleet.member);
    for (uint32_t i = 0; i < count; i++)
        fleet.member[i].due_ms = now_ms + (int64_t)draw(&fleet, 1000);
    return fleet;
}

/* Who got less than it wanted is short. */
static void come(struct fleet *fleet, uint32_t who, fleet_ask *asks)
{
    struct member *it = &fleet->member[who];
    struct lease_ask ask = asks(fleet, who);
    ask.seen = it->told.serial;
    ask.mark = it->told.mark;
    it->told = say(ask);
    it->granted_milli += answer.granted_milli;
    int64_t wait_ms = answer.granted_milli < ask.want_milli ? answer.soon_ms : answer.next_ms;
    it->due_ms = now_ms + wait_ms * (int64_t)(900 + draw(fleet, 201)) / 1000;
    fleet->exchanges++;
}

/* Millisecond by millisecond would be slow for ten thousand: in steps of 10 ms, all that are due, beginning
 * with anybody. */
static void run(struct fleet *fleet, int64_t ms, fleet_ask *asks)
{
    for (int64_t until_ms = now_ms + ms; now_ms < until_ms; now_ms += 10) {
        uint32_t first = (uint32_t)draw(fleet, fleet->count);
        for (uint32_t i = 0; i < fleet->count; i++) {
            uint32_t who = (first + i) % fleet->count;
            if (fleet->member[who].due_ms <= now_ms)
                come(fleet, who, asks);
        }
    }
}

static void assert_about(int64_t number, int64_t right)
{
    if (number * 10 < right * 8 || number * 10 > right * 12)
        fail_msg("%lld is not within a fifth of %lld", (long long)number, (long long)right);
}

static int64_t instances(void)
{
    return lease_bank_look(&bank, now_ms).count.all;
}

static void instances_are_counted_exactly(void **state)
{
    static const uint32_t counts[] = {1, 3, 10, 100, 1000, 10000};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        for (int is_busy = 0; is_busy < 2; is_busy++) {
            reset(NULL);
            struct fleet fleet = fleet_of(counts[i]);
            run(&fleet, 1010, is_busy ? busy : idle);
            assert_int_equal(answer.instances, counts[i]); /* at once, not when windows have filled */
            for (int look = 0; look < 12; look++) {
                run(&fleet, counts[i] > 1000 ? 5300 : 10700, is_busy ? busy : idle);
                assert_int_equal(instances(), counts[i]);
            }
            free(fleet.member);
        }
    }
}

static void an_idle_fleet_of_ten_thousand_makes_a_thousand_exchanges_a_second(void **state)
{
    struct fleet fleet = fleet_of(10000);
    run(&fleet, 20000, idle);
    for (int second = 0; second < 30; second++) {
        int64_t before = fleet.exchanges;
        run(&fleet, 1000, idle);
        assert_in_range(fleet.exchanges - before, 700, 1300); /* in any second: nobody comes in a herd */
    }
    free(fleet.member);
}

static void a_busy_fleet_of_ten_thousand_makes_no_more_than_an_idle_one(void **state)
{
    struct fleet fleet = fleet_of(10000);
    run(&fleet, 20000, busy);
    fleet.exchanges = 0;
    run(&fleet, 30000, busy);
    assert_in_range(fleet.exchanges, 24000, 33000);
    free(fleet.member);
}

static void a_small_fleet_comes_each_second_if_it_has_something_to_say_and_each_ten_if_not(void **state)
{
    struct fleet fleet = fleet_of(5);
    run(&fleet, 20000, idle);
    assert_int_equal(answer.next_ms, LEASE_IDLE_MS);
    run(&fleet, 20000, busy);
    assert_int_equal(answer.next_ms, LEASE_BUSY_MS);
    free(fleet.member);
}

static void nobody_waits_longer_than_a_minute_however_many_there_are(void **state)
{
    int64_t longest_ms = 0;
    for (int i = 0; i < 90000; i++)
        longest_ms = say(plain).next_ms > longest_ms ? answer.next_ms : longest_ms;
    assert_int_equal(answer.instances, 90000);
    assert_int_equal(longest_ms, LEASE_SLOWEST_MS);
}

static void those_that_come_together_do_not_come_together_again(void **state)
{
    int in[10] = {0};
    for (int i = 0; i < 1000; i++)
        in[(say(plain).next_ms - LEASE_IDLE_MS / 2) / (LEASE_IDLE_MS / 10)]++;
    for (int i = 0; i < 10; i++)
        assert_in_range(in[i], 90, 110);
}

static void half_a_fleet_that_dies_is_forgotten_in_forty_seconds(void **state)
{
    struct fleet fleet = fleet_of(200);
    run(&fleet, 60000, idle);
    fleet.count = 100;
    run(&fleet, 40000, idle);
    assert_about(instances(), 100);
    free(fleet.member);
}

static void half_a_fleet_that_leaves_is_forgotten_at_once(void **state)
{
    struct fleet fleet = fleet_of(200);
    run(&fleet, 60000, idle);
    for (uint32_t i = 100; i < 200; i++) {
        struct lease_ask ask = plain;
        ask.seen = fleet.member[i].told.serial;
        ask.leaving = 1;
        say(ask);
    }
    assert_int_equal(instances(), 100);
    free(fleet.member);
}

static void processes_that_live_for_a_moment_do_not_add_up(void **state)
{
    for (int i = 0; i < 1000; i++) {
        say_then(70, want(1000));
        struct lease_ask ask = plain;
        ask.seen = answer.serial;
        ask.mark = answer.mark;
        ask.leaving = 1;
        say_then(30, ask);
    }
    assert_in_range(instances(), 0, 1);
    assert_in_range(lease_bank_look(&bank, now_ms).count.wanting, 0, 1);
}

static void who_leaves_again_and_again_leaves_no_debt(void **state)
{
    struct lease_ask ask = plain;
    say(plain);
    ask.seen = 1;
    ask.mark = 7;
    ask.leaving = 1;
    for (int i = 0; i < 10; i++)
        say(ask);
    say(plain);
    assert_int_equal(answer.instances, 1);
}

static void who_leaves_without_having_come_is_not_subtracted(void **state)
{
    struct lease_ask stranger = plain;
    stranger.leaving = 1;
    for (int i = 0; i < 5; i++)
        say(plain);
    for (int i = 0; i < 5; i++)
        say(stranger);
    assert_int_equal(instances(), 5);
}

static void a_fleet_that_comes_back_after_a_gap_is_counted_at_once(void **state)
{
    struct fleet fleet = fleet_of(1000);
    run(&fleet, 30000, busy);
    now_ms += 120000;
    run(&fleet, 100, busy); /* all are overdue, and come */
    assert_about(answer.instances, 1000);
    free(fleet.member);
}

static void those_that_were_there_before_a_gap_are_not_counted_with_those_after_it(void **state)
{
    struct fleet fleet = fleet_of(100);
    run(&fleet, 15000, idle);
    assert_int_equal(say_then(40000, plain).instances, 1);
    free(fleet.member);
}

static void a_fleet_whose_bank_lost_everything_is_counted_again_at_once(void **state)
{
    struct fleet fleet = fleet_of(1000);
    run(&fleet, 30000, busy);
    bank = (struct lease_bank){0};
    run(&fleet, 2500, busy);
    assert_about(instances(), 1000);
    free(fleet.member);
}

static void a_clock_that_goes_back_does_not_multiply_the_fleet(void **state)
{
    struct fleet fleet = fleet_of(100);
    run(&fleet, 30000, busy);
    now_ms -= 300000;
    for (uint32_t i = 0; i < fleet.count; i++) /* their own clocks did not */
        fleet.member[i].due_ms -= 300000;
    for (int i = 0; i < 20; i++) {
        run(&fleet, 5000, busy);
        assert_about(instances(), 100);
    }
    free(fleet.member);
}

/* ---- sharing in a fleet ---- */

static struct lease_ask hungry(const struct fleet *fleet, uint32_t who)
{
    struct lease_ask ask = want(5000);
    ask.per_minute_milli = 6000000; /* a hundred a second */
    return ask;
}

static void what_there_is_goes_evenly_to_those_that_want(void **state)
{
    struct fleet fleet = fleet_of(50);
    run(&fleet, 100000, hungry);
    int64_t least = INT64_MAX, most = 0, sum = 0;
    for (uint32_t i = 0; i < fleet.count; i++) {
        int64_t got = fleet.member[i].granted_milli;
        least = got < least ? got : least;
        most = got > most ? got : most;
        sum += got;
    }
    assert_true(sum >= 9500000 && sum <= 10000000); /* nothing is left lying, nothing is minted */
    assert_true(least * 10 >= sum / 50 * 7 && most * 10 <= sum / 50 * 13);
    free(fleet.member);
}

/* One in a hundred. */
static struct lease_ask one_is_hungry(const struct fleet *fleet, uint32_t who)
{
    return who == 0 ? hungry(fleet, who) : busy(fleet, who);
}

static void one_hungry_instance_among_many_gets_what_it_wants(void **state)
{
    struct fleet fleet = fleet_of(100);
    say(give(100000));
    run(&fleet, 20000, one_is_hungry);
    assert_int_equal(fleet.member[0].told.granted_milli, 5000);
    assert_int_equal(lease_bank_look(&bank, now_ms).count.wanting, 1);
    free(fleet.member);
}

static void who_wants_is_counted_at_once_and_who_ceases_is_not(void **state)
{
    struct fleet fleet = fleet_of(100);
    run(&fleet, 30000, busy);
    assert_int_equal(lease_bank_look(&bank, now_ms).count.wanting, 0);
    run(&fleet, 1500, hungry);
    assert_about(lease_bank_look(&bank, now_ms).count.wanting, 100);
    run(&fleet, 1500, busy);
    assert_in_range(lease_bank_look(&bank, now_ms).count.wanting, 0, 5);
    free(fleet.member);
}

static void who_is_short_comes_sooner_and_less_so_when_many_are(void **state)
{
    say(give(100000));
    assert_int_equal(say(want(1000)).soon_ms, LEASE_SOON_MS);
    for (int i = 0; i < 5000; i++)
        say(want(1));
    say(give(100000));
    assert_in_range(answer.soon_ms, 999, 1001);
    struct lease_ask all = want(LEASE_MILLI_MAX);
    all.capacity_milli = 0;
    say(all);
    assert_in_range(answer.soon_ms, 2000, 5100); /* nothing to be had */
    assert_true(answer.soon_ms <= answer.next_ms);
}

/* ---- quiet ---- */

static struct lease_ask hold_off(int64_t ms)
{
    struct lease_ask ask = plain;
    ask.hold_off_ms = ms;
    return ask;
}

static struct lease_ask over(int64_t number)
{
    struct lease_ask ask = plain;
    ask.hold_off_over = number;
    return ask;
}

static void a_hold_off_is_told_to_all_until_it_is_over(void **state)
{
    say(hold_off(5000));
    int64_t number = answer.hold_off_number;
    assert_int_equal(answer.hold_off_ms, 5000);
    assert_int_equal(say_then(2000, plain).hold_off_ms, 3000);
    assert_int_equal(answer.hold_off_number, number);
    assert_int_equal(say_then(3000, plain).hold_off_ms, 0);
}

static void the_latest_hold_off_holds_and_has_a_number_of_its_own(void **state)
{
    say(hold_off(5000));
    int64_t first = answer.hold_off_number;
    assert_int_equal(say(hold_off(3000)).hold_off_ms, 5000);
    assert_int_equal(answer.hold_off_number, first);
    assert_int_equal(say(hold_off(9000)).hold_off_ms, 9000);
    assert_true(answer.hold_off_number > first);
}

static void a_hold_off_that_ends_a_little_later_is_the_same(void **state)
{
    say(hold_off(5000));
    int64_t first = answer.hold_off_number;
    assert_int_equal(say(hold_off(5999)).hold_off_ms, 5000);
    assert_int_equal(answer.hold_off_number, first);
    assert_int_equal(say(hold_off(6000)).hold_off_ms, 6000);
    assert_true(answer.hold_off_number > first);
}

static void a_success_ends_the_hold_off_that_it_saw_and_no_other(void **state)
{
    say(hold_off(5000));
    int64_t first = answer.hold_off_number;
    say(hold_off(9000));
    int64_t second = answer.hold_off_number;
    assert_int_equal(say(over(first)).hold_off_ms, 9000);
    assert_int_equal(say(over(0)).hold_off_ms, 9000);
    assert_int_equal(say(over(second)).hold_off_ms, 0);
}

static void a_new_hold_off_with_the_end_of_an_old_one_holds(void **state)
{
    say(hold_off(5000));
    struct lease_ask ask = hold_off(2000);
    ask.hold_off_over = answer.hold_off_number;
    int64_t first = answer.hold_off_number;
    assert_int_equal(say(ask).hold_off_ms, 2000);
    assert_true(answer.hold_off_number > first);
}

static void a_hold_off_of_a_day_is_kept_for_a_day(void **state)
{
    assert_int_equal(say(hold_off(LEASE_MS_MAX)).hold_off_ms, LEASE_MS_MAX);
    assert_int_equal(say_then(LEASE_MS_MAX - 1, plain).hold_off_ms, 1);
    assert_int_equal(say_then(1, plain).hold_off_ms, 0);
}

static void a_clock_that_went_far_back_does_not_prolong_a_hold_off(void **state)
{
    say(hold_off(5000));
    assert_int_equal(say_then(-YEAR, plain).hold_off_ms, 0);
}

static void a_hold_off_keeps_its_number_apart_from_those_before_a_loss(void **state)
{
    say(hold_off(5000));
    struct lease_ask knowing = hold_off(9000);
    knowing.seen = 500; /* somebody may have seen any number up to that */
    assert_true(say(knowing).hold_off_number > 500);
}

/* ---- opinion ---- */

static struct lease_ask opinion(int64_t breaker)
{
    struct lease_ask ask = plain;
    ask.breaker = breaker;
    ask.open_permille = 500;
    return ask;
}

/* Counting has begun long enough ago for opinions to count. */
static void settle(void)
{
    say(plain);
    now_ms += LEASE_SETTLE_MS;
}

static void an_opinion_needs_three(void **state)
{
    settle();
    assert_int_equal(say(opinion(2)).is_open, 0);
    assert_int_equal(say(opinion(2)).is_open, 0);
    assert_int_equal(say(opinion(2)).is_open, 1);
    assert_int_equal(answer.opening, answer.serial);
}

static void an_opinion_needs_its_share(void **state)
{
    settle();
    for (int i = 0; i < 4; i++)
        assert_int_equal(say(opinion(1)).is_open, 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(say(opinion(2)).is_open, 0);
    assert_int_equal(say(opinion(2)).is_open, 1);
}

static void those_without_an_opinion_do_not_count(void **state)
{
    settle();
    for (int i = 0; i < 100; i++)
        say(opinion(0));
    for (int i = 0; i < 3; i++)
        say(opinion(2));
    assert_int_equal(answer.is_open, 1);
}

static void those_that_come_first_do_not_speak_for_all(void **state)
{
    for (int i = 0; i < 10; i++)
        assert_int_equal(say(opinion(2)).is_open, 0);
    assert_int_equal(say_then(LEASE_SETTLE_MS - 1, opinion(2)).is_open, 0);
    assert_int_equal(say_then(1, opinion(2)).is_open, 1);
}

static void a_clock_that_went_far_back_does_not_silence_the_fleet(void **state)
{
    settle();
    now_ms -= YEAR;
    for (int i = 0; i < 3; i++)
        say(opinion(2));
    assert_int_equal(say_then(LEASE_SETTLE_MS, opinion(2)).is_open, 1);
}

static void an_opinion_ceases_below_half_of_its_share_and_returns_with_another_number(void **state)
{
    settle();
    for (int i = 0; i < 3; i++)
        say(opinion(2));
    int64_t first = answer.opening;
    for (int i = 0; i < 9; i++)
        assert_int_equal(say(opinion(1)).is_open, 1);
    assert_int_equal(say(opinion(1)).is_open, 0);
    assert_int_equal(answer.opening, first);
    for (int i = 0; i < 20 && !answer.is_open; i++)
        say(opinion(2));
    assert_int_equal(answer.is_open, 1);
    assert_int_not_equal(answer.opening, first);
}

static void an_opinion_that_nobody_has_any_more_is_none(void **state)
{
    settle();
    struct lease_ask ask[3];
    for (int i = 0; i < 3; i++) {
        ask[i] = opinion(0);
        ask[i].mark = say(opinion(2)).mark;
        ask[i].seen = answer.serial;
    }
    assert_int_equal(answer.is_open, 1);
    for (int i = 0; i < 3; i++)
        say(ask[i]);
    assert_int_equal(answer.is_open, 0);
}

static void who_does_not_want_to_know_changes_nothing(void **state)
{
    settle();
    for (int i = 0; i < 3; i++)
        say(opinion(2));
    int64_t first = answer.opening;
    struct lease_ask deaf = opinion(1);
    deaf.open_permille = 0;
    for (int i = 0; i < 3; i++)
        assert_int_equal(say(deaf).is_open, 0);
    assert_int_equal(say(opinion(2)).is_open, 1);
    assert_int_equal(answer.opening, first);
}

static struct lease_ask failing(const struct fleet *fleet, uint32_t who)
{
    struct lease_ask ask = busy(fleet, who);
    ask.breaker = who % 10 < 7 ? 2 : 1;
    ask.open_permille = 500;
    return ask;
}

static struct lease_ask healthy(const struct fleet *fleet, uint32_t who)
{
    struct lease_ask ask = failing(fleet, who);
    ask.breaker = 1;
    return ask;
}

static void a_fleet_changes_its_opinion_within_an_interval(void **state)
{
    struct fleet fleet = fleet_of(200);
    run(&fleet, 30000, healthy);
    assert_int_equal(answer.is_open, 0);
    run(&fleet, 1500, failing);
    assert_int_equal(answer.is_open, 1);
    int64_t first = answer.opening;
    run(&fleet, 60000, failing);
    assert_int_equal(answer.opening, first); /* once, not again and again */
    run(&fleet, 1500, healthy);
    assert_int_equal(answer.is_open, 0);
    free(fleet.member);
}

/* ---- looking ---- */

static void looking_changes_nothing_and_knows_the_trickle(void **state)
{
    say(trickling(60000));
    say(hold_off(5000));
    bank.per_minute_milli = 60000;
    struct lease_bank before = bank;
    struct lease_bank_view view = lease_bank_look(&bank, now_ms + 2000);
    assert_memory_equal(&bank, &before, sizeof bank);
    assert_int_equal(view.level_milli, 2000);
    assert_int_equal(view.hold_off_ms, 3000);
    assert_int_equal(view.count.all, 2);
    assert_int_equal(lease_bank_look(&bank, now_ms + YEAR).count.all, 0);
    assert_int_equal(lease_bank_look(&bank, now_ms + YEAR).level_milli, 100000);
}

static void what_is_stored_has_its_ranges(void **state)
{
    int64_t number[LEASE_BANK_COUNT];
    size_t place = 0;
#define LEASE_EDGE(name, field, most)                                                                                  \
    memset(number, 0, sizeof number);                                                                                  \
    number[place++] = (most) + 1;                                                                                      \
    memcpy(&bank, number, sizeof bank);                                                                                \
    assert_string_equal(lease_bank_check(&bank), name);                                                                \
    bank.field = -1;                                                                                                   \
    assert_string_equal(lease_bank_check(&bank), name);                                                                \
    bank.field = most;                                                                                                 \
    assert_null(lease_bank_check(&bank));
    LEASE_BANK_LIST(LEASE_EDGE)
    assert_int_equal(place, LEASE_BANK_COUNT); /* the list is the whole struct, in its order */
}

#define TEST(name) cmocka_unit_test_setup(name, reset)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_new_bank_is_empty),
        TEST(what_is_given_back_and_earned_is_granted_again),
        TEST(it_never_holds_more_than_the_capacity),
        TEST(a_smaller_capacity_takes_away_and_a_larger_one_does_not_bring_it_back),
        TEST(it_trickles_as_time_passes),
        TEST(asking_often_loses_nothing_of_a_slow_trickle),
        TEST(each_ask_trickles_at_its_own_rate),
        TEST(time_that_goes_back_mints_nothing),
        TEST(a_millisecond_back_takes_nothing_away),
        TEST(a_clock_that_went_far_back_trickles_on_from_there),
        TEST(a_clock_that_jumps_a_year_ahead_and_back_mints_an_hour_at_most),
        TEST(lost_writes_empty_the_bucket),
        TEST(what_comes_with_the_news_of_lost_writes_counts),
        TEST(lost_writes_empty_the_bucket_once),
        TEST(who_has_seen_what_the_bank_knows_changes_nothing),
        TEST(totals_stop_where_numbers_end),
        TEST(who_wants_alone_gets_all_of_it),
        TEST(those_who_want_share),
        TEST(less_than_a_unit_is_not_granted),
        TEST(a_single_unit_goes_to_whoever_comes_first),
        TEST(a_unit_of_nothing_is_no_division_by_zero),
        TEST(who_leaves_is_granted_nothing),
        TEST(an_idle_instance_may_take_half_of_what_is_left_divided_by_all),
        TEST(there_is_no_share_of_an_empty_bucket),
        TEST(instances_are_counted_exactly),
        TEST(an_idle_fleet_of_ten_thousand_makes_a_thousand_exchanges_a_second),
        TEST(a_busy_fleet_of_ten_thousand_makes_no_more_than_an_idle_one),
        TEST(a_small_fleet_comes_each_second_if_it_has_something_to_say_and_each_ten_if_not),
        TEST(nobody_waits_longer_than_a_minute_however_many_there_are),
        TEST(those_that_come_together_do_not_come_together_again),
        TEST(half_a_fleet_that_dies_is_forgotten_in_forty_seconds),
        TEST(half_a_fleet_that_leaves_is_forgotten_at_once),
        TEST(processes_that_live_for_a_moment_do_not_add_up),
        TEST(who_leaves_again_and_again_leaves_no_debt),
        TEST(who_leaves_without_having_come_is_not_subtracted),
        TEST(a_fleet_that_comes_back_after_a_gap_is_counted_at_once),
        TEST(those_that_were_there_before_a_gap_are_not_counted_with_those_after_it),
        TEST(a_fleet_whose_bank_lost_everything_is_counted_again_at_once),
        TEST(a_clock_that_goes_back_does_not_multiply_the_fleet),
        TEST(what_there_is_goes_evenly_to_those_that_want),
        TEST(one_hungry_instance_among_many_gets_what_it_wants),
        TEST(who_wants_is_counted_at_once_and_who_ceases_is_not),
        TEST(who_is_short_comes_sooner_and_less_so_when_many_are),
        TEST(a_hold_off_is_told_to_all_until_it_is_over),
        TEST(the_latest_hold_off_holds_and_has_a_number_of_its_own),
        TEST(a_hold_off_that_ends_a_little_later_is_the_same),
        TEST(a_success_ends_the_hold_off_that_it_saw_and_no_other),
        TEST(a_new_hold_off_with_the_end_of_an_old_one_holds),
        TEST(a_hold_off_of_a_day_is_kept_for_a_day),
        TEST(a_clock_that_went_far_back_does_not_prolong_a_hold_off),
        TEST(a_hold_off_keeps_its_number_apart_from_those_before_a_loss),
        TEST(an_opinion_needs_three),
        TEST(an_opinion_needs_its_share),
        TEST(those_without_an_opinion_do_not_count),
        TEST(those_that_come_first_do_not_speak_for_all),
        TEST(a_clock_that_went_far_back_does_not_silence_the_fleet),
        TEST(an_opinion_ceases_below_half_of_its_share_and_returns_with_another_number),
        TEST(an_opinion_that_nobody_has_any_more_is_none),
        TEST(who_does_not_want_to_know_changes_nothing),
        TEST(a_fleet_changes_its_opinion_within_an_interval),
        TEST(looking_changes_nothing_and_knows_the_trickle),
        TEST(what_is_stored_has_its_ranges),
    };
    return cmocka_run_group_tests_name("lease bank", tests, NULL, NULL);
}
