/* test_bucket.c - the fleet's token bucket: refill, grants, counting members, intervals.
 *
 * Time is a number. A fleet is a loop over members that send requests at the intervals they were given, plus or minus a
 * tenth at random (seed.h). */
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
#include "seed.h"

#define T0   INT64_C(1700000000000) /* start of a window */
#define YEAR (INT64_C(365) * 86400000)

static struct lease_bucket bucket;
static struct lease_reply reply;
static int64_t now_ms;

/* A bucket of 100 tokens without refill. */
static const struct lease_request idle_request = {.capacity_milli = 100000, .unit_milli = 1000};

/* The initial tokens are used up, except in the tests about them. */
static int reset(void **state)
{
    bucket = (struct lease_bucket){.initial_milli = LEASE_MILLI_MAX};
    now_ms = T0;
    return 0;
}

/* Serves a request of a member that is new each time, unless the request says otherwise. */
static struct lease_reply serve(struct lease_request request)
{
    assert_null(lease_request_check(&request));
    lease_bucket_serve(&bucket, &request, now_ms, &reply);
    assert_null(lease_reply_check(&reply, &request));
    assert_null(lease_bucket_check(&bucket));
    assert_true(bucket.level_milli <= request.capacity_milli);
    return reply;
}

static struct lease_reply serve_after(int64_t elapsed_ms, struct lease_request request)
{
    now_ms += elapsed_ms;
    return serve(request);
}

static struct lease_request returning(int64_t milli)
{
    struct lease_request request = idle_request;
    request.returned_milli = milli;
    return request;
}

static struct lease_request wanting(int64_t milli)
{
    struct lease_request request = idle_request;
    request.wanted_milli = milli;
    return request;
}

static struct lease_request refilling(int64_t per_minute_milli)
{
    struct lease_request request = idle_request;
    request.per_minute_milli = per_minute_milli;
    return request;
}

/* ---- tokens ---- */

static void new_bucket_is_empty(void **state)
{
    struct lease_request request = refilling(60000);
    request.wanted_milli = 1000;
    serve(request);
    assert_int_equal(reply.granted_milli, 0);
    assert_int_equal(reply.level_milli, 0);
    assert_int_equal(reply.serial, 1);
}

static void each_new_member_adds_one_retry_up_to_the_capacity(void **state)
{
    struct lease_request request = wanting(1000);
    bucket.initial_milli = 0;
    request.capacity_milli = 2500;
    assert_int_equal(serve(request).granted_milli, 1000);
    request.seen_serial = 1;
    assert_int_equal(serve(request).granted_milli, 0); /* not new any more */
    request.seen_serial = 0;
    assert_int_equal(serve(request).granted_milli, 1000);
    assert_int_equal(serve(request).granted_milli, 0);
    assert_int_equal(reply.level_milli, 500); /* the rest of the capacity */
    assert_int_equal(serve(request).level_milli, 500);
    assert_int_equal(bucket.initial_milli, 2500);
    request.capacity_milli = 1000; /* less than was added before */
    assert_int_equal(serve(request).level_milli, 500);
    assert_int_equal(bucket.initial_milli, 2500);
}

static void initial_retry_does_not_exceed_a_full_bucket(void **state)
{
    serve(returning(100000));
    bucket.initial_milli = 0;
    assert_int_equal(serve(idle_request).level_milli, 100000);
    assert_int_equal(bucket.initial_milli, 1000);
}

static void leaving_member_adds_no_initial_retry(void **state)
{
    struct lease_request request = idle_request;
    bucket.initial_milli = 0;
    request.leaving = 1;
    assert_int_equal(serve(request).level_milli, 0);
    assert_int_equal(bucket.initial_milli, 0);
}

static void fleet_that_lost_its_bucket_adds_no_initial_retries(void **state)
{
    struct lease_request request = wanting(1000);
    bucket.initial_milli = 0;
    request.seen_serial = 7;
    assert_int_equal(serve(request).granted_milli, 0);
    request.seen_serial = 0;
    assert_int_equal(serve(request).granted_milli, 0);
}

static void returned_and_earned_tokens_are_granted_again(void **state)
{
    struct lease_request request = returning(3000);
    request.earned_milli = 2000;
    serve(request);
    assert_int_equal(reply.level_milli, 5000);
    assert_int_equal(serve(wanting(4000)).granted_milli, 4000);
    assert_int_equal(reply.level_milli, 1000);
    assert_int_equal(bucket.granted_milli, 4000);
}

static void level_never_exceeds_the_capacity(void **state)
{
    assert_int_equal(serve(returning(LEASE_MILLI_MAX)).level_milli, 100000);
    assert_int_equal(serve_after(YEAR, refilling(LEASE_MILLI_MAX)).level_milli, 100000);
}

static void smaller_capacity_removes_tokens_for_good(void **state)
{
    struct lease_request small = idle_request;
    small.capacity_milli = 10000;
    serve(returning(100000));
    assert_int_equal(serve(small).level_milli, 10000);
    assert_int_equal(serve(idle_request).level_milli, 10000);
    small.capacity_milli = 0;
    assert_int_equal(serve(small).level_milli, 0);
    assert_int_equal(serve(idle_request).level_milli, 0);
}

static void bucket_refills_over_time(void **state)
{
    serve(refilling(60000));
    assert_int_equal(serve_after(1, refilling(60000)).level_milli, 1);
    assert_int_equal(serve_after(59999, refilling(60000)).level_milli, 60000);
}

static void frequent_requests_lose_no_fraction_of_the_refill(void **state)
{
    serve(refilling(7));
    for (int i = 0; i < 10 * 60000 - 1; i++)
        serve_after(1, refilling(7));
    assert_int_equal(reply.level_milli, 69);
    assert_int_equal(serve_after(1, refilling(7)).level_milli, 70);
}

static void each_request_refills_at_its_own_rate(void **state)
{
    serve(refilling(60000));
    serve_after(1000, refilling(0));
    assert_int_equal(reply.level_milli, 0);
    serve_after(1000, refilling(120000));
    assert_int_equal(reply.level_milli, 2000);
}

static void clock_going_back_adds_no_tokens(void **state)
{
    serve(refilling(60000));
    serve_after(60000, refilling(60000));
    assert_int_equal(reply.level_milli, 60000);
    serve_after(-60000, refilling(60000));
    for (int i = 0; i < 60; i++)
        assert_int_equal(serve_after(1000, refilling(60000)).level_milli, 60000);
    assert_int_equal(serve_after(1000, refilling(60000)).level_milli, 61000);
}

static void clock_going_back_a_millisecond_removes_no_tokens(void **state)
{
    serve(refilling(60000));
    serve_after(1000, refilling(60000));
    assert_int_equal(serve_after(-1, refilling(60000)).level_milli, 1000);
    assert_int_equal(serve_after(1, refilling(60000)).level_milli, 1000);
}

static void clock_going_far_back_refills_from_there(void **state)
{
    serve(refilling(60000));
    assert_int_equal(serve_after(-YEAR, refilling(60000)).level_milli, 0);
    assert_int_equal(serve_after(1000, refilling(60000)).level_milli, 1000);
}

static void clock_jump_of_a_year_refills_an_hour_at_most(void **state)
{
    serve(refilling(1000));
    assert_int_equal(serve_after(YEAR, refilling(1000)).level_milli, 60000);
    assert_int_equal(serve_after(-YEAR, refilling(1000)).level_milli, 60000);
}

static void rollback_of_redis_empties_the_bucket(void **state)
{
    struct lease_request ahead = wanting(1000);
    serve(returning(50000));
    ahead.seen_serial = 1000;
    serve(ahead);
    assert_int_equal(reply.granted_milli, 0);
    assert_int_equal(reply.level_milli, 0);
    assert_int_equal(reply.serial, 1001 + LEASE_SERIAL_LEAP);
}

static void tokens_returned_with_the_proof_of_a_rollback_count(void **state)
{
    struct lease_request ahead = returning(3000);
    serve(returning(50000));
    ahead.seen_serial = 1000;
    assert_int_equal(serve(ahead).level_milli, 3000);
}

static void rollback_empties_the_bucket_once(void **state)
{
    struct lease_request ahead = returning(3000);
    serve(returning(50000));
    ahead.seen_serial = 1000;
    serve(ahead);
    ahead.seen_serial = 1500; /* another member, from before: tokens that came in since are kept */
    assert_int_equal(serve(ahead).level_milli, 6000);
    assert_int_equal(reply.members, 2);
}

static void known_serial_is_no_proof_of_a_rollback(void **state)
{
    struct lease_request request = returning(50000);
    serve(request);
    request = idle_request;
    request.seen_serial = 1;
    assert_int_equal(serve(request).level_milli, 50000);
    assert_int_equal(reply.serial, 2);
}

static void totals_saturate(void **state)
{
    struct lease_request request = idle_request;
    request.firsts = request.successes = request.spent_milli = LEASE_COUNT_MAX;
    serve(request);
    serve(request);
    assert_int_equal(bucket.firsts, LEASE_COUNT_MAX);
    assert_int_equal(bucket.successes, LEASE_COUNT_MAX);
    assert_int_equal(bucket.spent_milli, LEASE_COUNT_MAX);
    request.seen_serial = LEASE_COUNT_MAX;
    assert_int_equal(serve(request).serial, LEASE_COUNT_MAX);
    assert_int_equal(serve(request).serial, LEASE_COUNT_MAX);
}

/* ---- grants ---- */

static void only_requester_gets_the_whole_bucket(void **state)
{
    serve(returning(100000));
    assert_int_equal(serve(wanting(70000)).granted_milli, 70000);
}

static void tokens_are_divided_among_members_that_want_them(void **state)
{
    for (int i = 0; i < 9; i++)
        serve(wanting(20000)); /* the bucket is empty, but the requests are counted */
    serve(returning(100000));
    assert_int_equal(serve(wanting(20000)).granted_milli, 10000);
    assert_int_equal(serve(wanting(20000)).granted_milli, 8000); /* 90 for eleven members */
}

static void less_than_a_retry_is_not_granted(void **state)
{
    serve(returning(999));
    assert_int_equal(serve(wanting(5000)).granted_milli, 0);
    serve(returning(1));
    assert_int_equal(serve(wanting(5000)).granted_milli, 1000);
}

static void last_retry_goes_to_the_first_request(void **state)
{
    for (int i = 0; i < 50; i++)
        serve(wanting(1000));
    serve(returning(1000));
    assert_int_equal(serve(wanting(9000)).granted_milli, 1000);
    assert_int_equal(serve(wanting(9000)).granted_milli, 0);
}

static void unit_of_zero_does_not_divide_by_zero(void **state)
{
    struct lease_request request = returning(7);
    request.unit_milli = 0;
    request.wanted_milli = 5;
    assert_int_equal(serve(request).granted_milli, 5);
}

static void leaving_member_is_granted_nothing(void **state)
{
    struct lease_request request = wanting(5000);
    request.returned_milli = 9000;
    request.leaving = 1;
    serve(request);
    assert_int_equal(reply.granted_milli, 0);
    assert_int_equal(reply.level_milli, 9000);
}

static void idle_share_is_half_the_level_divided_by_all_members(void **state)
{
    serve(returning(80000));
    serve(idle_request);
    serve(idle_request);
    serve(idle_request);
    assert_int_equal(reply.members, 4);
    assert_int_equal(reply.share_milli, 10000);
}

static void empty_bucket_has_no_idle_share(void **state)
{
    assert_int_equal(serve(idle_request).share_milli, 0);
}

/* ---- a fleet ---- */

struct member {
    int64_t due_ms;
    struct lease_reply last_reply;
    bool was_wanting;
    int64_t granted_milli;
};

struct fleet {
    uint32_t count;
    struct member *member;
    uint32_t drawn;
    int64_t exchanges;
};

/* Makes a member's request; member_exchange fills in the serial and was_wanting. */
typedef struct lease_request request_of_member(const struct fleet *fleet, uint32_t index);

static struct lease_request idle_member_request(const struct fleet *fleet, uint32_t index)
{
    return idle_request;
}

static struct lease_request busy_member_request(const struct fleet *fleet, uint32_t index)
{
    struct lease_request request = idle_request;
    request.firsts = request.successes = 10;
    return request;
}

static uint64_t fleet_seed;

static uint64_t draw(struct fleet *fleet, uint64_t below)
{
    return core_uniform((struct core_random_key){.seed = fleet_seed, .draw = fleet->drawn++}, below - 1);
}

/* All members join within the first second. */
static struct fleet fleet_start(uint32_t count)
{
    struct fleet fleet = {.count = count, .member = calloc(count, sizeof *fleet.member)};
    assert_non_null(fleet.member);
    for (uint32_t i = 0; i < count; i++)
        fleet.member[i].due_ms = now_ms + (int64_t)draw(&fleet, 1000);
    return fleet;
}

/* A member that got less than it wanted is short of tokens. */
static void member_exchange(struct fleet *fleet, uint32_t index, request_of_member *make_request)
{
    struct member *member = &fleet->member[index];
    struct lease_request request = make_request(fleet, index);
    request.seen_serial = member->last_reply.serial;
    request.was_wanting = member->was_wanting;
    member->last_reply = serve(request);
    member->was_wanting = request.wanted_milli > 0;
    member->granted_milli += reply.granted_milli;
    int64_t wait_ms = reply.granted_milli < request.wanted_milli ? reply.earliest_ms : reply.next_ms;
    member->due_ms = now_ms + wait_ms * (int64_t)(900 + draw(fleet, 201)) / 1000;
    fleet->exchanges++;
}

/* Steps of a millisecond would be slow for 10,000 members: in steps of 10 ms, serves all that are due, starting with a
 * random member. */
static void fleet_run(struct fleet *fleet, int64_t ms, request_of_member *make_request)
{
    for (int64_t until_ms = now_ms + ms; now_ms < until_ms; now_ms += 10) {
        uint32_t first = (uint32_t)draw(fleet, fleet->count);
        for (uint32_t i = 0; i < fleet->count; i++) {
            uint32_t index = (first + i) % fleet->count;
            if (fleet->member[index].due_ms <= now_ms)
                member_exchange(fleet, index, make_request);
        }
    }
}

static void assert_about(int64_t number, int64_t right)
{
    if (number * 10 < right * 8 || number * 10 > right * 12)
        fail_msg("%lld is not within a fifth of %lld", (long long)number, (long long)right);
}

static int64_t members(void)
{
    return lease_bucket_get(&bucket, now_ms).count.all;
}

static void members_are_counted_exactly(void **state)
{
    static const uint32_t counts[] = {1, 3, 10, 100, 1000, 10000};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        for (int is_busy = 0; is_busy < 2; is_busy++) {
            reset(NULL);
            struct fleet fleet = fleet_start(counts[i]);
            fleet_run(&fleet, 1010, is_busy ? busy_member_request : idle_member_request);
            assert_int_equal(reply.members, counts[i]); /* at once, not only when windows have filled */
            for (int look = 0; look < 12; look++) {
                fleet_run(&fleet, counts[i] > 1000 ? 5300 : 10700, is_busy ? busy_member_request : idle_member_request);
                assert_int_equal(members(), counts[i]);
            }
            free(fleet.member);
        }
    }
}

static void idle_fleet_of_10000_makes_1000_exchanges_per_second(void **state)
{
    struct fleet fleet = fleet_start(10000);
    fleet_run(&fleet, 20000, idle_member_request);
    for (int second = 0; second < 30; second++) {
        int64_t before = fleet.exchanges;
        fleet_run(&fleet, 1000, idle_member_request);
        assert_in_range(fleet.exchanges - before, 700, 1300); /* in any second: the members are not in step */
    }
    free(fleet.member);
}

static void busy_fleet_of_10000_makes_no_more_exchanges_than_an_idle_one(void **state)
{
    struct fleet fleet = fleet_start(10000);
    fleet_run(&fleet, 20000, busy_member_request);
    fleet.exchanges = 0;
    fleet_run(&fleet, 30000, busy_member_request);
    assert_in_range(fleet.exchanges, 24000, 33000);
    free(fleet.member);
}

static void small_fleet_exchanges_every_second_when_busy_and_every_ten_when_idle(void **state)
{
    struct fleet fleet = fleet_start(5);
    fleet_run(&fleet, 20000, idle_member_request);
    assert_int_equal(reply.next_ms, LEASE_INTERVAL_IDLE_MS);
    fleet_run(&fleet, 20000, busy_member_request);
    assert_int_equal(reply.next_ms, LEASE_INTERVAL_BUSY_MS);
    free(fleet.member);
}

static void interval_never_exceeds_a_minute(void **state)
{
    int64_t longest_ms = 0;
    for (int i = 0; i < 90000; i++)
        longest_ms = serve(idle_request).next_ms > longest_ms ? reply.next_ms : longest_ms;
    assert_int_equal(reply.members, 90000);
    assert_int_equal(longest_ms, LEASE_INTERVAL_MAX_MS);
}

static void members_that_join_together_are_spread_over_the_interval(void **state)
{
    int in[10] = {0};
    for (int i = 0; i < 1000; i++)
        in[(serve(idle_request).next_ms - LEASE_INTERVAL_IDLE_MS / 2) / (LEASE_INTERVAL_IDLE_MS / 10)]++;
    for (int i = 0; i < 10; i++)
        assert_in_range(in[i], 90, 110);
}

static void killed_members_are_forgotten_within_two_windows(void **state)
{
    struct fleet fleet = fleet_start(200);
    fleet_run(&fleet, 60000, idle_member_request);
    fleet.count = 100;
    fleet_run(&fleet, 40000, idle_member_request);
    assert_about(members(), 100);
    free(fleet.member);
}

static void leaving_members_are_forgotten_at_once(void **state)
{
    struct fleet fleet = fleet_start(200);
    fleet_run(&fleet, 60000, idle_member_request);
    for (uint32_t i = 100; i < 200; i++) {
        struct lease_request request = idle_request;
        request.seen_serial = fleet.member[i].last_reply.serial;
        request.leaving = 1;
        serve(request);
    }
    assert_int_equal(members(), 100);
    free(fleet.member);
}

static void short_lived_processes_do_not_add_up(void **state)
{
    for (int i = 0; i < 1000; i++) {
        serve_after(70, wanting(1000));
        struct lease_request request = idle_request;
        request.seen_serial = reply.serial;
        request.was_wanting = 1;
        request.leaving = 1;
        serve_after(30, request);
    }
    assert_in_range(members(), 0, 1);
    assert_in_range(lease_bucket_get(&bucket, now_ms).count.wanting, 0, 1);
}

static void repeated_leaving_does_not_make_the_count_negative(void **state)
{
    struct lease_request request = idle_request;
    serve(idle_request);
    request.seen_serial = 1;
    request.was_wanting = 1;
    request.leaving = 1;
    for (int i = 0; i < 10; i++)
        serve(request);
    serve(idle_request);
    assert_int_equal(reply.members, 1);
}

static void leaving_of_an_uncounted_member_is_not_subtracted(void **state)
{
    struct lease_request unknown = idle_request;
    unknown.leaving = 1;
    for (int i = 0; i < 5; i++)
        serve(idle_request);
    for (int i = 0; i < 5; i++)
        serve(unknown);
    assert_int_equal(members(), 5);
}

static void fleet_that_returns_after_a_gap_is_counted_at_once(void **state)
{
    struct fleet fleet = fleet_start(1000);
    fleet_run(&fleet, 30000, busy_member_request);
    now_ms += 120000;
    fleet_run(&fleet, 100, busy_member_request); /* all are overdue and send at once */
    assert_about(reply.members, 1000);
    free(fleet.member);
}

static void members_from_before_a_gap_are_not_counted(void **state)
{
    struct fleet fleet = fleet_start(100);
    fleet_run(&fleet, 15000, idle_member_request);
    assert_int_equal(serve_after(40000, idle_request).members, 1);
    free(fleet.member);
}

static void fleet_is_counted_again_after_redis_lost_the_key(void **state)
{
    struct fleet fleet = fleet_start(1000);
    fleet_run(&fleet, 30000, busy_member_request);
    bucket = (struct lease_bucket){0};
    fleet_run(&fleet, 2500, busy_member_request);
    assert_about(members(), 1000);
    free(fleet.member);
}

static void clock_going_back_does_not_multiply_the_members(void **state)
{
    struct fleet fleet = fleet_start(100);
    fleet_run(&fleet, 30000, busy_member_request);
    now_ms -= 300000;
    for (uint32_t i = 0; i < fleet.count; i++) /* the members' own clocks did not go back */
        fleet.member[i].due_ms -= 300000;
    for (int i = 0; i < 20; i++) {
        fleet_run(&fleet, 5000, busy_member_request);
        assert_about(members(), 100);
    }
    free(fleet.member);
}

/* ---- grants in a fleet ---- */

static struct lease_request wanting_member_request(const struct fleet *fleet, uint32_t index)
{
    struct lease_request request = wanting(5000);
    request.per_minute_milli = 6000000; /* 100 a second */
    return request;
}

static void grants_are_even_among_members_that_want_tokens(void **state)
{
    struct fleet fleet = fleet_start(50);
    fleet_run(&fleet, 100000, wanting_member_request);
    int64_t smallest = INT64_MAX, largest = 0, sum = 0;
    for (uint32_t i = 0; i < fleet.count; i++) {
        int64_t got = fleet.member[i].granted_milli;
        smallest = got < smallest ? got : smallest;
        largest = got > largest ? got : largest;
        sum += got;
    }
    assert_true(sum >= 9500000 && sum <= 10000000); /* no token is left over, none is created */
    assert_true(smallest * 10 >= sum / 50 * 7 && largest * 10 <= sum / 50 * 13);
    free(fleet.member);
}

/* Only the first of 100 members wants tokens. */
static struct lease_request first_member_wants(const struct fleet *fleet, uint32_t index)
{
    return index == 0 ? wanting_member_request(fleet, index) : busy_member_request(fleet, index);
}

static void single_requester_among_many_members_gets_what_it_requests(void **state)
{
    struct fleet fleet = fleet_start(100);
    serve(returning(100000));
    fleet_run(&fleet, 20000, first_member_wants);
    assert_int_equal(fleet.member[0].last_reply.granted_milli, 5000);
    assert_int_equal(lease_bucket_get(&bucket, now_ms).count.wanting, 1);
    free(fleet.member);
}

static void each_kind_of_report_shortens_the_interval(void **state)
{
    static const size_t reports[] = {
        offsetof(struct lease_request, returned_milli), offsetof(struct lease_request, earned_milli),
        offsetof(struct lease_request, wanted_milli),   offsetof(struct lease_request, firsts),
        offsetof(struct lease_request, successes),      offsetof(struct lease_request, spent_milli),
    };
    static const int64_t one = 1;
    serve(idle_request);
    struct lease_request request = idle_request;
    request.seen_serial = 1;
    assert_int_equal(serve(request).next_ms, LEASE_INTERVAL_IDLE_MS);
    for (size_t i = 0; i < sizeof reports / sizeof *reports; i++) {
        struct lease_request busy = request;
        memcpy((char *)&busy + reports[i], &one, sizeof one);
        assert_int_equal(serve(busy).next_ms, LEASE_INTERVAL_BUSY_MS);
    }
}

static void requesters_are_counted_at_once_and_dropped_when_they_stop(void **state)
{
    struct fleet fleet = fleet_start(100);
    fleet_run(&fleet, 30000, busy_member_request);
    assert_int_equal(lease_bucket_get(&bucket, now_ms).count.wanting, 0);
    fleet_run(&fleet, 1500, wanting_member_request);
    assert_about(lease_bucket_get(&bucket, now_ms).count.wanting, 100);
    fleet_run(&fleet, 1500, busy_member_request);
    assert_in_range(lease_bucket_get(&bucket, now_ms).count.wanting, 0, 5);
    free(fleet.member);
}

static void earliest_interval_grows_with_the_number_of_requesters(void **state)
{
    serve(returning(100000));
    assert_int_equal(serve(wanting(1000)).earliest_ms, LEASE_INTERVAL_MIN_MS);
    for (int i = 0; i < 5000; i++)
        serve(wanting(1));
    serve(returning(100000));
    assert_in_range(reply.earliest_ms, 999, 1001);
    struct lease_request all = wanting(LEASE_MILLI_MAX);
    all.capacity_milli = 0;
    serve(all);
    assert_in_range(reply.earliest_ms, 2000, 5100); /* the bucket is empty */
    assert_true(reply.earliest_ms <= reply.next_ms);
}

/* ---- reading ---- */

static void reading_includes_the_refill_and_changes_nothing(void **state)
{
    serve(refilling(60000));
    serve(idle_request);
    bucket.per_minute_milli = 60000;
    struct lease_bucket before = bucket;
    struct lease_bucket_view view = lease_bucket_get(&bucket, now_ms + 2000);
    assert_memory_equal(&bucket, &before, sizeof bucket);
    assert_int_equal(view.level_milli, 2000);
    assert_int_equal(view.count.all, 2);
    assert_int_equal(lease_bucket_get(&bucket, now_ms + YEAR).count.all, 0);
    assert_int_equal(lease_bucket_get(&bucket, now_ms + YEAR).level_milli, 100000);
}

static void stored_fields_have_ranges(void **state)
{
    int64_t number[LEASE_BUCKET_FIELD_COUNT];
    size_t place = 0;
#define CHECK_LIMITS(name, field, largest)                                                                             \
    memset(number, 0, sizeof number);                                                                                  \
    number[place++] = (largest) + 1;                                                                                   \
    memcpy(&bucket, number, sizeof bucket);                                                                            \
    assert_string_equal(lease_bucket_check(&bucket), name);                                                            \
    bucket.field = -1;                                                                                                 \
    assert_string_equal(lease_bucket_check(&bucket), name);                                                            \
    bucket.field = largest;                                                                                            \
    assert_null(lease_bucket_check(&bucket));
    LEASE_BUCKET_FIELDS(CHECK_LIMITS)
    assert_int_equal(place, LEASE_BUCKET_FIELD_COUNT); /* the list covers the whole struct, in its order */
}

/* ---- exact instants ---- */

/* Ten minutes back, refilled_ms stays, and nothing is added until the clock has caught up; a millisecond more, and the
 * refill counts from there. */
static void clock_going_back_ten_minutes_is_waited_for(void **state)
{
    static const int64_t back_ms[] = {LEASE_CLOCK_BACK_MAX_MS, LEASE_CLOCK_BACK_MAX_MS + 1};
    for (int i = 0; i < 2; i++) {
        reset(state);
        serve(refilling(60000));
        serve_after(-back_ms[i], refilling(60000));
        assert_int_equal(serve_after(1000, refilling(60000)).level_milli, i * 1000);
    }
}

/* A window is 20 s long. A member of the last window is still counted; after a window without any request none is. */
static void window_ends_exactly_after_its_length(void **state)
{
    static const struct {
        int64_t after_ms, began_ms, members;
    } table[] = {
        {19999, 0, 2}, {20000, 20000, 2}, {39999, 39999, 2}, {40000, 40000, 1}, {60000, 60000, 1},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        reset(state);
        serve(idle_request);
        assert_int_equal(serve_after(table[i].after_ms, idle_request).members, table[i].members);
        assert_int_equal(bucket.window_began_ms - T0, table[i].began_ms);
    }
}

/* 20,000 members in both windows together: 40 s. */
static void window_of_a_large_fleet_is_longer(void **state)
{
    serve(idle_request);
    bucket.this_window.all = bucket.last_window.all = 10000;
    serve_after(39999, idle_request);
    assert_int_equal(bucket.window_began_ms, T0);
}

static void clock_going_back_restarts_the_length_of_the_window(void **state)
{
    serve(idle_request);
    serve_after(-30000, idle_request);
    assert_int_equal(bucket.window_began_ms, T0 - 30000);
    serve_after(20000, idle_request);
    assert_int_equal(bucket.window_began_ms, T0 - 10000);
    assert_int_equal(reply.members, 3);
}

/* The first member was last seen two windows ago: it is new, and replaces no other member's count. */
static void member_not_seen_for_two_windows_is_new(void **state)
{
    struct lease_request again = idle_request;
    serve(idle_request);
    serve_after(20000, idle_request);
    again.seen_serial = 1;
    assert_int_equal(serve_after(20000, again).members, 2);
}

/* ---- exact intervals ---- */

/* A thousand serials visit all steps from 0.5 to 1.5 of the interval. */
static void interval_of_a_new_member_follows_from_its_serial(void **state)
{
    static const struct {
        int64_t serial, next_ms, of_a_large_fleet_ms;
    } table[] = {
        {1001, 11190, 60000}, {2, 7380, 44280},    {3, 13570, 60000},    {37, 14030, 60000},   {500, 10000, 60000},
        {999, 8810, 52860},   {1000, 5000, 30000}, {1499, 13810, 60000}, {1500, 10000, 60000}, {1501, 6190, 37140},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        reset(state);
        serve(idle_request);
        bucket.serial = table[i].serial - 1;
        assert_int_equal(serve(idle_request).next_ms, table[i].next_ms);
        bucket.serial = table[i].serial - 1;
        bucket.this_window.all = 100000; /* a minute, before it is spread */
        assert_int_equal(serve(idle_request).next_ms, table[i].of_a_large_fleet_ms);
    }
}

static void intervals_of_a_large_fleet_are_exact(void **state)
{
    struct lease_request known = returning(10000);
    serve(idle_request);
    known.seen_serial = 1;
    known.was_wanting = 1;
    known.wanted_milli = 10000;
    bucket.this_window = (struct lease_counts){.all = 20000, .wanting = 10000};
    serve(known);
    assert_int_equal(reply.granted_milli, 1000); /* 9 retries are left: 5,000 exchanges per second */
    assert_int_equal(reply.next_ms, 20000);
    assert_int_equal(reply.earliest_ms, 2000);
    known.returned_milli = 0;
    known.seen_serial = reply.serial;
    bucket.level_milli = 2000;
    assert_int_equal(serve(known).level_milli, 1000); /* one retry is left */
    assert_int_equal(reply.earliest_ms, 2000);
    known.seen_serial = reply.serial;
    assert_int_equal(serve(known).level_milli, 0);
    assert_int_equal(reply.earliest_ms, 10000);
}

static void smallest_unit_is_a_thousandth(void **state)
{
    for (int64_t unit = 0; unit <= 1; unit++) {
        struct lease_request request = returning(1);
        request.unit_milli = unit;
        request.wanted_milli = 1;
        assert_int_equal(serve(request).granted_milli, 1);
    }
}

static void terms_of_the_last_request_are_stored(void **state)
{
    serve(refilling(60000));
    assert_int_equal(bucket.per_minute_milli, 60000);
    assert_int_equal(bucket.capacity_milli, 100000);
}

#define TEST(name) cmocka_unit_test_setup(name, reset)

static int play_seed(uint64_t seed)
{
    const struct CMUnitTest tests[] = {
        TEST(new_bucket_is_empty),
        TEST(each_new_member_adds_one_retry_up_to_the_capacity),
        TEST(initial_retry_does_not_exceed_a_full_bucket),
        TEST(leaving_member_adds_no_initial_retry),
        TEST(fleet_that_lost_its_bucket_adds_no_initial_retries),
        TEST(returned_and_earned_tokens_are_granted_again),
        TEST(level_never_exceeds_the_capacity),
        TEST(smaller_capacity_removes_tokens_for_good),
        TEST(bucket_refills_over_time),
        TEST(frequent_requests_lose_no_fraction_of_the_refill),
        TEST(each_request_refills_at_its_own_rate),
        TEST(clock_going_back_adds_no_tokens),
        TEST(clock_going_back_a_millisecond_removes_no_tokens),
        TEST(clock_going_far_back_refills_from_there),
        TEST(clock_jump_of_a_year_refills_an_hour_at_most),
        TEST(rollback_of_redis_empties_the_bucket),
        TEST(tokens_returned_with_the_proof_of_a_rollback_count),
        TEST(rollback_empties_the_bucket_once),
        TEST(known_serial_is_no_proof_of_a_rollback),
        TEST(totals_saturate),
        TEST(only_requester_gets_the_whole_bucket),
        TEST(tokens_are_divided_among_members_that_want_them),
        TEST(less_than_a_retry_is_not_granted),
        TEST(last_retry_goes_to_the_first_request),
        TEST(unit_of_zero_does_not_divide_by_zero),
        TEST(leaving_member_is_granted_nothing),
        TEST(idle_share_is_half_the_level_divided_by_all_members),
        TEST(empty_bucket_has_no_idle_share),
        TEST(members_are_counted_exactly),
        TEST(idle_fleet_of_10000_makes_1000_exchanges_per_second),
        TEST(busy_fleet_of_10000_makes_no_more_exchanges_than_an_idle_one),
        TEST(small_fleet_exchanges_every_second_when_busy_and_every_ten_when_idle),
        TEST(interval_never_exceeds_a_minute),
        TEST(members_that_join_together_are_spread_over_the_interval),
        TEST(killed_members_are_forgotten_within_two_windows),
        TEST(leaving_members_are_forgotten_at_once),
        TEST(short_lived_processes_do_not_add_up),
        TEST(repeated_leaving_does_not_make_the_count_negative),
        TEST(leaving_of_an_uncounted_member_is_not_subtracted),
        TEST(fleet_that_returns_after_a_gap_is_counted_at_once),
        TEST(members_from_before_a_gap_are_not_counted),
        TEST(fleet_is_counted_again_after_redis_lost_the_key),
        TEST(clock_going_back_does_not_multiply_the_members),
        TEST(grants_are_even_among_members_that_want_tokens),
        TEST(single_requester_among_many_members_gets_what_it_requests),
        TEST(each_kind_of_report_shortens_the_interval),
        TEST(requesters_are_counted_at_once_and_dropped_when_they_stop),
        TEST(earliest_interval_grows_with_the_number_of_requesters),
        TEST(reading_includes_the_refill_and_changes_nothing),
        TEST(stored_fields_have_ranges),
        TEST(clock_going_back_ten_minutes_is_waited_for),
        TEST(window_ends_exactly_after_its_length),
        TEST(window_of_a_large_fleet_is_longer),
        TEST(clock_going_back_restarts_the_length_of_the_window),
        TEST(member_not_seen_for_two_windows_is_new),
        TEST(interval_of_a_new_member_follows_from_its_serial),
        TEST(intervals_of_a_large_fleet_are_exact),
        TEST(smallest_unit_is_a_thousandth),
        TEST(terms_of_the_last_request_are_stored),
    };
    fleet_seed = seed;
    return cmocka_run_group_tests_name("lease bucket", tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    return seed_main(argv[0], 7, play_seed);
}
