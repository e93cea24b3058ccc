/* test_member.c - the state machine of a member: its requests, and the effect of replies on the target.
 *
 * A member on a target with a bucket of a hundred retries, without refill and breaker unless the test is about these.
 * Replies are made by hand; test_bucket.c tests the other side. */
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
#define RETRY        1000 /* its cost */
#define TIMEOUT      (500 * MS)

static struct bide_target target;
static struct lease_member member;
static struct lease_request request; /* the last request made */
static int64_t now;

/* ---- the world ---- */

static const struct lease_terms terms = {.capacity_milli = 1000 * RETRY,
                                         .per_minute_milli = 60 * RETRY,
                                         .open_permille = 500,
                                         .timeout_ns = TIMEOUT,
                                         .hold_off = true};

static struct bide_target_config plain_config(void)
{
    struct bide_target_config c;
    assert_int_equal(bide_target_config_init(&c, BIDE_PRESET_SERVICE), BIDE_OK);
    c.budget.capacity_milli = 100 * RETRY;
    c.budget.refill_per_minute_milli = 0;
    c.breaker.kind = BIDE_BREAKER_OFF;
    return c;
}

static void join_with(const struct bide_target_config *config, const struct lease_terms *with_terms)
{
    now = BEGIN;
    assert_int_equal(bide_target_init(&target, config, now, NULL), BIDE_OK);
    assert_int_equal(lease_member_join(&member, &target, with_terms, 7, now, NULL), BIDE_OK);
}

static void join(void)
{
    struct bide_target_config config = plain_config();
    join_with(&config, &terms);
}

static int64_t level(void)
{
    return bide_budget_left_milli(&target, now);
}

static void spend(int64_t retries)
{
    assert_int_equal(bide_budget_add_milli(&target, -retries * RETRY, now), -retries * RETRY);
}

/* Makes a request, whether it is due or not. */
static void make_request_of(struct lease_member *m)
{
    m->due_ns = now;
    assert_true(lease_member_try_claim(m, now));
    request = *lease_member_make_request(m, now);
    assert_null(lease_request_check(&request));
}

static void make_request(void)
{
    make_request_of(&member);
}

/* Returns a reply that grants so many retries; next interval 1 s, 250 ms if short of tokens. */
static struct lease_reply granting(int64_t retries)
{
    return (struct lease_reply){.version = LEASE_VERSION,
                                .serial = member.seen_serial + 1,
                                .granted_milli = retries * RETRY,
                                .next_ms = LEASE_INTERVAL_BUSY_MS,
                                .earliest_ms = LEASE_INTERVAL_MIN_MS,
                                .members = 1};
}

static void accept_reply(struct lease_reply reply)
{
    assert_null(lease_member_accept_reply(&member, &reply, 1, now));
}

/* Makes a request and accepts this reply, as if the request had wanted the amount granted. */
static void exchange(struct lease_reply reply)
{
    make_request();
    member.request.wanted_milli = reply.granted_milli;
    accept_reply(reply);
}

/* An exchange with an idle share in its reply. */
static void exchange_with_share(int64_t retries, int64_t share_milli)
{
    struct lease_reply reply = granting(retries);
    reply.share_milli = share_milli;
    exchange(reply);
}

static const struct bide_outcome ok = {.kind = BIDE_KIND_OK, .evidence = BIDE_EVIDENCE_ANSWERED};
static const struct bide_outcome failed = {.kind = BIDE_KIND_TRANSIENT, .evidence = BIDE_EVIDENCE_ANSWERED};

/* Makes a call whose first attempt has this outcome. Returns the reason of the verdict. */
static enum bide_reason call(const struct bide_outcome *outcome)
{
    static struct bide_policy policy;
    static uint64_t seed;
    struct bide_call c;
    struct bide_request call_request = {.safety = BIDE_SAFE, .seed = ++seed};
    assert_int_equal(bide_policy_init(&policy, BIDE_PRESET_SERVICE), BIDE_OK);
    struct bide_verdict v = bide_call_begin(&c, &policy, &target, &call_request, now);
    if (v.action != BIDE_START)
        return v.reason;
    v = bide_call_outcome(&c, 1, outcome, now);
    return v.reason; /* a granted retry is charged, and never sent */
}

static void refuse_retries(int times)
{
    for (int i = 0; i < times; i++)
        assert_int_equal(call(&failed), BIDE_REASON_BUDGET_EMPTY);
}

/* Lets the server ask for a hold-off. */
static void throttle_call(int64_t hold_off_ns)
{
    struct bide_outcome o = {.kind = BIDE_KIND_THROTTLED, .evidence = BIDE_EVIDENCE_ANSWERED};
    o.hint = (struct bide_hint){.kind = BIDE_HINT_WAIT, .wait_ns = hold_off_ns};
    (void)call(&o);
}

/* ---- joining ---- */

static void new_member_requests_three_retries_at_once(void **state)
{
    join();
    assert_int_equal(level(), 0); /* tokens from before the join are removed */
    assert_true(lease_member_next_check_ns(&member, now) <= now);
    assert_true(lease_member_try_claim(&member, now));
    request = *lease_member_make_request(&member, now);
    assert_null(lease_request_check(&request));
    const struct lease_request wanted = {.capacity_milli = 1000 * RETRY,
                                         .per_minute_milli = 60 * RETRY,
                                         .unit_milli = RETRY,
                                         .wanted_milli = 3 * RETRY,
                                         .open_permille = 500};
    assert_memory_equal(&request, &wanted, sizeof request);
}

static void budget_without_tokens_cannot_join(void **state)
{
    struct bide_target_config config = plain_config();
    struct bide_problem problem;
    config.budget.kind = BIDE_BUDGET_NONE;
    assert_int_equal(bide_target_init(&target, &config, BEGIN, NULL), BIDE_OK);
    assert_int_equal(lease_member_join(&member, &target, &terms, 7, BEGIN, &problem), BIDE_ERR_INVALID);
    assert_string_equal(problem.field, "budget.kind");
}

static void lease_ended_by_another_process_is_begun_again(void **state)
{
    join();
    exchange(granting(5));
    now += S;
    assert_int_equal(bide_lease_end(&target, now), BIDE_OK);
    bide_budget_add_milli(&target, 50 * RETRY, now);
    make_request();
    assert_true(bide_lease_is_on(&target));
    assert_int_equal(level() + request.returned_milli, 0);
}

/* ---- reports ---- */

static void earned_tokens_are_reported_once(void **state)
{
    join();
    for (int i = 0; i < 3; i++)
        assert_int_equal(call(&ok), BIDE_REASON_SUCCEEDED);
    make_request();
    assert_int_equal(request.firsts, 3);
    assert_int_equal(request.successes, 3);
    assert_int_equal(request.earned_milli, 300);
    accept_reply(granting(0));
    assert_int_equal(level(), 0);
    make_request();
    assert_int_equal(request.firsts + request.successes + request.earned_milli, 0);
}

static void tokens_missing_since_the_last_exchange_are_reported_as_spent(void **state)
{
    join();
    exchange(granting(10));
    spend(3);
    now += S;
    make_request();
    assert_int_equal(request.spent_milli, 3 * RETRY);
    spend(2); /* while the request is pending */
    accept_reply(granting(0));
    spend(1);
    make_request();
    assert_int_equal(request.spent_milli, 3 * RETRY);
}

static void refunded_charges_are_not_reported_as_spending(void **state)
{
    join();
    exchange(granting(10));
    bide_budget_add_milli(&target, 5 * RETRY, now); /* refunds of charges from before the last exchange */
    now += S;
    make_request();
    assert_int_equal(request.spent_milli, 0);
}

static void forfeited_refill_is_not_reported_as_spent(void **state)
{
    struct bide_target_config config = plain_config();
    config.budget.refill_per_minute_milli = 60 * RETRY;
    join_with(&config, &terms);
    exchange(granting(1));
    make_request();
    lease_member_request_failed(&member, now + 20 * S, now);
    now += 20 * S;
    assert_in_range(level(), 18900, 20000); /* the floor starts within the first second */
    make_request();
    accept_reply(granting(0));
    assert_in_range(level(), 0, RETRY);
    make_request();
    assert_int_equal(request.spent_milli, 0);
}

static void counters_are_clamped_to_the_range_of_their_field(void **state)
{
    join();
    exchange(granting(100));
    target.lane[0].firsts = target.lane[1].successes = target.lane[2].earned_milli = UINT64_MAX / 2;
    target.refused[8] = UINT64_MAX;
    now += 1;
    make_request(); /* passes the range check */
    assert_int_equal(request.earned_milli, LEASE_MILLI_MAX);
    accept_reply(granting(0));
    target.refused[8] = 3; /* the counter went back */
    make_request();
}

/* ---- how much to hold ---- */

static void member_requests_twice_its_expected_spending(void **state)
{
    join();
    exchange(granting(20));
    spend(20);
    now += S;
    make_request(); /* 20 a second, half of the rate is new: 10. Twice that until the next exchange */
    assert_int_equal(member.rate_milli_per_s, 10 * RETRY);
    assert_int_equal(request.wanted_milli, 20 * RETRY);
    accept_reply(granting(20));
    spend(20);
    now += S;
    make_request();
    assert_int_equal(request.wanted_milli, 30 * RETRY);
}

static void longer_interval_requests_more_tokens(void **state)
{
    struct lease_reply reply = granting(20);
    join();
    reply.next_ms = 5000;
    exchange(reply);
    spend(20);
    now += 5 * S; /* 4 a second, half of the rate is new: 2. Twice that, for 5 s: 20 */
    make_request();
    assert_int_equal(request.wanted_milli, 20 * RETRY);
}

static void refused_retries_count_as_demand(void **state)
{
    join();
    exchange(granting(0));
    now += S;
    refuse_retries(8);
    make_request();
    assert_int_equal(member.rate_milli_per_s, 4 * RETRY);
    assert_int_equal(request.wanted_milli, 8 * RETRY);
}

static void refused_member_requests_one_retry_more_than_it_holds(void **state)
{
    struct bide_target_config config = plain_config();
    config.budget.cost_timeout_milli = 3 * RETRY;
    join_with(&config, &terms);
    exchange(granting(2));
    now += 100 * S; /* so long that the rate is nearly 0 */
    struct bide_outcome timeout = failed;
    timeout.flags |= BIDE_FLAG_TIMED_OUT;
    assert_int_equal(call(&timeout), BIDE_REASON_BUDGET_EMPTY);
    make_request();
    assert_int_equal(request.wanted_milli, RETRY);
    assert_int_equal(request.returned_milli, 0);
}

static void request_never_exceeds_the_room_in_the_target(void **state)
{
    join();
    exchange(granting(100));
    spend(100);
    now += 100 * MS;
    make_request();
    assert_int_equal(request.wanted_milli, 100 * RETRY);
    accept_reply(granting(100));
    spend(60);
    bide_budget_add_milli(&target, -500, now);
    now += 100 * MS;
    make_request();
    assert_int_equal(level(), 39500);
    assert_int_equal(request.wanted_milli, 60 * RETRY); /* whole retries */
}

static void target_without_capacity_requests_nothing(void **state)
{
    struct bide_target_config config = plain_config();
    config.budget.capacity_milli = 0;
    join_with(&config, &terms);
    refuse_retries(3);
    make_request();
    assert_int_equal(request.wanted_milli, 0);
}

static void idle_member_keeps_its_share_in_whole_retries(void **state)
{
    join();
    exchange_with_share(1, 5700);
    now += S;
    make_request();
    assert_int_equal(request.wanted_milli, 4 * RETRY);
    accept_reply(granting(4));
    assert_int_equal(level(), 5 * RETRY);
}

static void idle_member_with_a_tiny_share_keeps_nothing(void **state)
{
    join();
    exchange_with_share(1, 499);
    bide_budget_add_milli(&target, 300, now);
    now += S;
    make_request();
    assert_int_equal(request.wanted_milli, 0);
    assert_int_equal(request.returned_milli, 1300); /* also the fraction of a retry, which is useless here */
    assert_int_equal(level(), 0);
    accept_reply(granting(0));
    make_request();
    assert_int_equal(request.returned_milli + request.wanted_milli, 0);
}

static void idle_member_returns_tokens_above_twice_its_share(void **state)
{
    join();
    exchange_with_share(8, 4000);
    now += S;
    make_request();
    assert_int_equal(request.returned_milli + request.wanted_milli, 0);
    struct lease_reply reply = granting(0);
    reply.share_milli = 3700;
    accept_reply(reply);
    make_request();
    assert_int_equal(request.returned_milli, 5 * RETRY); /* whole retries stay */
    assert_int_equal(request.spent_milli, 0);
    assert_int_equal(level(), 3 * RETRY);
}

static void busy_member_returns_tokens_above_one_and_a_half_times_its_demand(void **state)
{
    join();
    exchange(granting(25));
    spend(10);
    now += S;
    make_request(); /* 5 a second: hold 10, there are 15 */
    assert_int_equal(request.returned_milli + request.wanted_milli, 0);
    accept_reply(granting(0));
    spend(5);
    now += S;
    bide_budget_add_milli(&target, 6 * RETRY, now); /* 2 a second: hold 4 or 5, there are 16 */
    make_request();
    assert_in_range(request.returned_milli, 11 * RETRY, 12 * RETRY);
}

static void returning_and_requesting_does_not_oscillate(void **state)
{
    for (int64_t total = 1; total <= 60; total++) {
        int64_t fleet_milli = total * RETRY;
        int moves = 0, last = 0;
        join();
        for (int i = 1; i < 50; i++, now += S) {
            make_request();
            fleet_milli += request.returned_milli;
            struct lease_reply reply =
                granting((request.wanted_milli < fleet_milli ? request.wanted_milli : fleet_milli) / RETRY);
            fleet_milli -= reply.granted_milli;
            reply.share_milli = fleet_milli / 2; /* as the bucket computes it for its only member */
            accept_reply(reply);
            bool moved = request.returned_milli + request.wanted_milli > 0;
            moves += moved;
            last = moved ? i : last;
        }
        assert_true(last < 10 && moves < 10);
        assert_true(2 * level() <= total * RETRY);
    }
}

static void all_tokens_return_when_demand_ends(void **state)
{
    join();
    exchange(granting(50));
    spend(40);
    int exchanges = 0;
    for (; level() > 0 && exchanges < 20; exchanges++) {
        now += S;
        make_request();
        accept_reply(granting(request.wanted_milli / RETRY));
    }
    assert_int_equal(level(), 0);
    assert_in_range(exchanges, 2, 16);
}

static void grant_that_does_not_fit_is_returned_with_the_next_request(void **state)
{
    join();
    exchange(granting(100));
    spend(100);
    now += 100 * MS;
    make_request();
    assert_int_equal(request.wanted_milli, 100 * RETRY);
    bide_budget_add_milli(&target, 30 * RETRY, now); /* refunds of charges */
    accept_reply(granting(100));
    assert_int_equal(level(), 100 * RETRY);
    assert_int_equal(member.overflow_milli, 30 * RETRY);
    now += 100 * MS;
    make_request();
    assert_int_equal(request.returned_milli, 30 * RETRY);
    assert_int_equal(member.overflow_milli, 0);
}

/* ---- when to send ---- */

static void next_request_is_jittered_by_a_tenth(void **state)
{
    int64_t least = INT64_MAX, most = 0;
    for (uint64_t seed = 0; seed < 1000; seed++) {
        join();
        make_request();
        struct lease_reply reply = granting(0);
        reply.next_ms = 10000;
        assert_null(lease_member_accept_reply(&member, &reply, seed, now));
        int64_t wait = member.due_ns - now;
        least = wait < least ? wait : least;
        most = wait > most ? wait : most;
    }
    assert_in_range(least, 9000 * MS, 9010 * MS);
    assert_in_range(most, 10990 * MS, 11000 * MS);
}

static void idle_member_sends_nothing_before_it_is_due(void **state)
{
    join();
    struct lease_reply reply = granting(0);
    reply.next_ms = 10000;
    exchange(reply);
    int64_t due = member.due_ns;
    assert_in_range(lease_member_next_check_ns(&member, now), now + LEASE_INTERVAL_MIN_MS * MS,
                    now + 2 * LEASE_INTERVAL_MIN_MS * MS);
    while (now < due) {
        assert_false(lease_member_try_claim(&member, now));
        int64_t look = lease_member_next_check_ns(&member, now);
        assert_in_range(look, now + 1, due);
        assert_true(look == due || look >= now + LEASE_INTERVAL_MIN_MS * MS);
        now = look;
    }
    assert_true(lease_member_try_claim(&member, now));
    assert_int_equal(lease_member_next_check_ns(&member, now), due);
}

static void member_short_of_tokens_sends_earlier_but_not_at_once(void **state)
{
    join();
    exchange(granting(0));
    refuse_retries(1);
    assert_false(lease_member_try_claim(&member, now));
    assert_false(lease_member_try_claim(&member, now + 224 * MS));
    now += 276 * MS;
    assert_true(lease_member_try_claim(&member, now));
    (void)lease_member_make_request(&member, now);
    assert_int_equal(lease_member_next_check_ns(&member, now), BIDE_NEVER);
    assert_false(lease_member_try_claim(&member, now + 3600 * S)); /* at most one request is pending */
}

static void member_is_short_after_spending_more_than_half(void **state)
{
    join();
    exchange(granting(8));
    now += 300 * MS;
    spend(4);
    assert_false(lease_member_try_claim(&member, now));
    spend(1);
    assert_true(lease_member_try_claim(&member, now));
}

/* ---- connected and disconnected ---- */

static void reply_extends_the_lease_beyond_the_next_exchange(void **state)
{
    join();
    assert_true(bide_lease_until(&target) <= now);
    struct lease_reply reply = granting(0);
    reply.next_ms = 10000;
    exchange(reply);
    assert_int_equal(bide_lease_until(&target), now + 25 * S + TIMEOUT);
}

static void failed_request_ends_the_lease_at_once(void **state)
{
    join();
    exchange(granting(5));
    now += S;
    make_request();
    assert_int_equal(request.returned_milli, 5 * RETRY);
    now += TIMEOUT;
    lease_member_request_failed(&member, now + 3 * S, now);
    assert_int_equal(bide_lease_until(&target), now);
    assert_int_equal(level(), 0); /* returned tokens are lost */
    assert_int_equal(lease_member_next_check_ns(&member, now), now + 3 * S);
}

static void disconnected_member_waits_for_its_retry_time(void **state)
{
    join();
    exchange(granting(0));
    lease_member_request_failed(&member, now + 3 * S, now); /* without a request: no connection */
    refuse_retries(1);
    assert_false(lease_member_try_claim(&member, now + 3 * S - 1));
    assert_true(lease_member_try_claim(&member, now + 3 * S));
}

static void consecutive_failures_do_not_restart_the_floor(void **state)
{
    struct bide_target_config config = plain_config();
    config.budget.refill_per_minute_milli = 6 * RETRY; /* one retry in 10 s */
    join_with(&config, &terms);
    exchange_with_share(1, 0);
    for (int i = 0; i < 30; i++) {
        now += S;
        make_request();
        assert_int_equal(request.returned_milli, i == 0 ? RETRY : 0); /* tokens returned in a lost request are gone */
        lease_member_request_failed(&member, now + S, now);
    }
    assert_in_range(level(), 1800, 2900); /* the floor starts within the first 10 s, once */
}

static void floors_start_at_random_times_when_redis_is_lost(void **state)
{
    struct bide_target_config config = plain_config();
    unsigned early = 0;
    config.budget.refill_per_minute_milli = 6 * RETRY; /* one retry in 10 s */
    for (uint32_t claimant_id = 1; claimant_id <= 1000; claimant_id++) {
        join_with(&config, &terms);
        member.claimant_id = claimant_id;
        exchange(granting(0));
        make_request();
        lease_member_request_failed(&member, now + S, now);
        assert_in_range(bide_lease_until(&target), now, now + 10 * S);
        early += bide_lease_until(&target) < now + S;
    }
    assert_in_range(early, 70, 130); /* a tenth */
}

static void late_reply_is_never_applied(void **state)
{
    join();
    make_request();
    struct lease_reply reply = granting(1);
    lease_member_request_failed(&member, now + S, now);
    assert_string_equal(lease_member_accept_reply(&member, &reply, 1, now), "late");
    now += S;
    assert_int_equal(level(), 0);
    make_request();
    accept_reply(reply);
    assert_string_equal(lease_member_accept_reply(&member, &reply, 1, now), "late"); /* nor is a repeated reply */
    assert_int_equal(level(), RETRY);
}

/* ---- invalid replies ---- */

static void invalid_reply_is_rejected_and_changes_nothing(void **state)
{
    static const struct {
        const char *field;
        size_t offset;
        int64_t value;
    } invalid[] = {
#define INVALID(field, value) {#field, offsetof(struct lease_reply, field), value}
        INVALID(version, 0),
        INVALID(version, LEASE_VERSION + 1),
        INVALID(serial, -1),
        INVALID(serial, 0),
        INVALID(serial, 1), /* the serial of the last reply */
        INVALID(serial, LEASE_COUNT_MAX + 1),
        INVALID(granted_milli, -1),
        INVALID(granted_milli, 4 * RETRY + 1), /* more than was wanted */
        INVALID(granted_milli, INT64_MAX),
        INVALID(share_milli, -1),
        INVALID(share_milli, INT64_MAX),
        INVALID(next_ms, 0),
        INVALID(next_ms, LEASE_INTERVAL_MIN_MS - 1),
        INVALID(next_ms, LEASE_INTERVAL_MAX_MS + 1),
        INVALID(next_ms, LEASE_MS_MAX),
        INVALID(next_ms, INT64_MIN),
        INVALID(earliest_ms, 0),
        INVALID(earliest_ms, LEASE_INTERVAL_BUSY_MS + 1), /* later than next_ms */
        INVALID(earliest_ms, LEASE_MS_MAX),
        INVALID(hold_off_ms, -1),
        INVALID(hold_off_ms, LEASE_MS_MAX + 1),
        INVALID(hold_off_number, -1),
        INVALID(opening, -1),
        INVALID(is_open, 2),
        INVALID(members, -1),
        INVALID(level_milli, -1),
        INVALID(counted_as, 8),
    };
    join();
    exchange_with_share(0, 4 * RETRY);
    now += S;
    make_request();
    assert_int_equal(request.wanted_milli, 4 * RETRY);
    struct bide_target before = target;
    struct lease_member member_before = member;
    for (size_t i = 0; i < COUNT(invalid); i++) {
        struct lease_reply reply = granting(4);
        memcpy((char *)&reply + invalid[i].offset, &invalid[i].value, sizeof invalid[i].value);
        const char *wrong = lease_member_accept_reply(&member, &reply, 1, now);
        assert_non_null(wrong);
        assert_string_equal(wrong, invalid[i].field);
    }
    assert_memory_equal(&target, &before, sizeof target);
    assert_memory_equal(&member, &member_before, sizeof member);
    accept_reply(granting(4));
    assert_int_equal(level(), 4 * RETRY);
}

static void request_carries_the_highest_serial_seen(void **state)
{
    join();
    make_request();
    assert_int_equal(request.seen_serial, 0);
    struct lease_reply reply = granting(0);
    reply.serial = 41;
    accept_reply(reply);
    make_request();
    assert_int_equal(request.seen_serial, 41);
    lease_member_request_failed(&member, now, now);
    make_request();
    assert_int_equal(request.seen_serial, 41);
}

static void request_carries_how_the_bucket_counted_the_member(void **state)
{
    join();
    make_request();
    assert_int_equal(request.counted_as, 0);
    struct lease_reply reply = granting(0);
    reply.counted_as = 3;
    accept_reply(reply);
    make_request();
    assert_int_equal(request.counted_as, 3);
}

/* ---- shared targets ---- */

static struct lease_member other;

/* Two processes have a member for the target; the first is the exchanger. */
static void join_two_processes(void)
{
    struct lease_terms shared_terms = terms;
    struct bide_target_config config = plain_config();
    shared_terms.shared = true;
    join_with(&config, &shared_terms);
    exchange(granting(10));
    assert_int_equal(lease_member_join(&other, &target, &shared_terms, 8, now, NULL), BIDE_OK);
}

/* Returns when the second process takes over, checking as often as lease_member_next_check_ns says. */
static int64_t wait_until_other_takes_over(void)
{
    for (int i = 0; i < 1000 && !lease_member_try_claim(&other, now); i++) {
        int64_t look = lease_member_next_check_ns(&other, now);
        assert_true(look > now);
        now = look;
    }
    return now;
}

static void only_the_exchanger_touches_the_target(void **state)
{
    join_two_processes();
    assert_int_equal(level(), 10 * RETRY); /* joining again removes nothing */
    for (int i = 0; i < 100; i++) {
        now += S;
        struct bide_target before = target;
        assert_false(lease_member_try_claim(&other, now));
        assert_in_range(lease_member_next_check_ns(&other, now), now + 1, now + 10 * S);
        lease_member_request_failed(&other, now + S, now);
        assert_memory_equal(&target, &before, sizeof target);
        exchange(granting(0));
    }
    assert_true(member.exchanger);
    assert_false(other.exchanger);
}

static void killed_exchanger_is_replaced_soon_after_the_lease_ends(void **state)
{
    join_two_processes();
    int64_t ends = bide_lease_until(&target);
    int64_t taken = wait_until_other_takes_over();
    assert_in_range(taken, BEGIN + 2 * S, ends + 2 * S);
    assert_true(other.exchanger);
}

static void failed_request_keeps_the_claim(void **state)
{
    join_two_processes();
    now += S;
    make_request();
    now += TIMEOUT;
    lease_member_request_failed(&member, now + 5 * S, now);
    now += 5 * S + TIMEOUT;
    assert_false(lease_member_try_claim(&other, now));
    assert_true(lease_member_try_claim(&member, now));
}

static void successor_is_the_same_member_to_the_bucket(void **state)
{
    join_two_processes();
    spend(3);
    throttle_call(100 * S); /* as if set by the fleet */
    wait_until_other_takes_over();
    request = *lease_member_make_request(&other, now);
    assert_null(lease_request_check(&request));
    assert_int_equal(request.spent_milli, 3 * RETRY);
    assert_int_equal(request.seen_serial, member.seen_serial);
    assert_int_equal(request.counted_as, member.reply.counted_as);
    assert_int_equal(request.wanted_milli + request.returned_milli,
                     0); /* seven retries are left: kept until it knows more */
    assert_int_equal(request.hold_off_ms, 0);
    assert_int_equal(level(), 7 * RETRY);
}

static void member_that_lost_the_claim_does_not_touch_the_target(void **state)
{
    join_two_processes();
    now += S;
    make_request(); /* and the process is stopped for a long time */
    wait_until_other_takes_over();
    struct lease_reply reply = granting(1);
    reply.is_open = reply.opening = 1;
    reply.hold_off_ms = 5000;
    member.request.wanted_milli = RETRY;
    struct bide_target before = target;
    accept_reply(reply);
    assert_memory_equal(&target, &before, sizeof target);
    assert_false(member.exchanger);
    assert_int_equal(member.overflow_milli, RETRY);
    assert_false(lease_member_try_claim(&member, now));
    assert_true(lease_member_leave(&member, now, &request));
    assert_int_equal(request.returned_milli, RETRY);
    assert_int_equal(request.seen_serial, 0); /* the other process keeps the target: it must not be counted out */
    before = target;
    lease_member_request_failed(&member, now + S, now);
    assert_memory_equal(&target, &before, sizeof target);
}

static void member_that_regains_the_claim_continues_from_the_memo(void **state)
{
    join_two_processes();
    wait_until_other_takes_over();
    now += S;
    assert_false(lease_member_try_claim(&member, now)); /* this process was late and notices it */
    spend(4);
    struct lease_request last;
    assert_false(lease_member_leave(&other, now, &last));
    now += S;
    make_request();
    assert_int_equal(request.spent_milli, 4 * RETRY);
    assert_int_equal(request.wanted_milli + request.returned_milli, 0);
    assert_int_equal(request.seen_serial, 1);
}

static void invalid_or_old_memo_is_ignored(void **state)
{
    static const uint64_t progress[] = {UINT64_MAX, (uint64_t)LEASE_COUNT_MAX << 4, 1, 0};
    for (unsigned i = 0; i < sizeof progress / sizeof *progress; i++) {
        join_two_processes();
        bide_lease_memo_set(&target, (struct bide_lease_memo){progress[i], UINT64_MAX});
        wait_until_other_takes_over();
        request = *lease_member_make_request(&other, now);
        assert_null(lease_request_check(&request));
        assert_int_equal(request.seen_serial, 0);
        assert_int_equal(request.spent_milli, 0);
    }
}

static void exchanger_that_fails_for_a_minute_releases_the_claim(void **state)
{
    join_two_processes();
    while (member.exchanger) {
        now += 5 * S;
        make_request();
        assert_false(lease_member_try_claim(&other, now));
        lease_member_request_failed(&member, now + 5 * S, now);
        assert_true(now <= BEGIN + 61 * S);
    }
    assert_true(now >= BEGIN + 60 * S);
    now += S;
    assert_true(lease_member_try_claim(&other, now));
}

static void sole_owner_keeps_the_claim_over_failures(void **state)
{
    join();
    exchange(granting(0));
    for (int i = 0; i < 100; i++) {
        now += 10 * S;
        make_request();
        lease_member_request_failed(&member, now + S, now);
        assert_true(member.exchanger);
    }
}

/* ---- hold-off ---- */

static struct lease_reply reply_with_hold_off(int64_t ms, int64_t number)
{
    struct lease_reply reply = granting(0);
    reply.hold_off_ms = ms;
    reply.hold_off_number = number;
    return reply;
}

static void hold_off_of_the_server_is_reported_and_its_echo_is_not(void **state)
{
    join();
    throttle_call(9 * S);
    now += 4 * S;
    make_request();
    assert_int_equal(request.hold_off_ms, 5000);
    now += 20 * MS;
    accept_reply(reply_with_hold_off(5000, 1));
    assert_int_equal(bide_target_hold_off_until(&target, now),
                     BEGIN + 9 * S); /* unchanged, not a little later each time */
    now += S;
    make_request();
    assert_int_equal(request.hold_off_ms, 0);
    assert_int_equal(request.hold_off_ended, 0);
    accept_reply(reply_with_hold_off(4000, 1));
    throttle_call(8 * S); /* longer than the fleet's */
    make_request();
    assert_int_equal(request.hold_off_ms, 8000);
}

static void hold_off_in_a_lost_request_is_reported_again(void **state)
{
    join();
    throttle_call(9 * S);
    make_request();
    assert_int_equal(request.hold_off_ms, 9000);
    lease_member_request_failed(&member, now + S, now);
    now += S;
    make_request();
    assert_int_equal(request.hold_off_ms, 8000);
}

static void hold_off_of_the_fleet_is_obeyed_and_not_reported_back(void **state)
{
    join();
    exchange(reply_with_hold_off(5000, 3));
    assert_int_equal(bide_target_hold_off_until(&target, now), now + 5 * S);
    for (int i = 1; i < 5; i++) {
        now = BEGIN + i * S;
        make_request();
        assert_int_equal(request.hold_off_ms, 0);
        now += 3 * MS; /* round-trip time */
        accept_reply(reply_with_hold_off(5000 - i * 1000, 3));
        assert_int_equal(bide_target_hold_off_until(&target, now), BEGIN + 5 * S);
    }
    now += 10 * S;
    make_request();
    assert_int_equal(request.hold_off_ms + request.hold_off_ended, 0);
}

static void success_that_ends_the_hold_off_is_reported_once(void **state)
{
    join();
    exchange(reply_with_hold_off(5000, 3));
    now += S;
    assert_int_equal(call(&ok), BIDE_REASON_SUCCEEDED);
    assert_int_equal(bide_target_hold_off_until(&target, now), 0);
    make_request();
    assert_int_equal(request.hold_off_ended, 3);
    assert_int_equal(request.hold_off_ms, 0);
    accept_reply(granting(0));
    make_request();
    assert_int_equal(request.hold_off_ended, 0);
}

static void success_during_a_request_is_not_undone_by_its_reply(void **state)
{
    join();
    exchange(reply_with_hold_off(5000, 3));
    now += S;
    make_request();
    assert_int_equal(call(&ok), BIDE_REASON_SUCCEEDED);
    accept_reply(reply_with_hold_off(4000, 3));
    assert_int_equal(bide_target_hold_off_until(&target, now), 0);
    make_request();
    assert_int_equal(request.hold_off_ended, 3);
    accept_reply(reply_with_hold_off(4000, 4)); /* another member was asked again */
    assert_int_equal(bide_target_hold_off_until(&target, now), now + 4 * S);
}

static void shorter_hold_off_after_a_success_is_reported(void **state)
{
    join();
    exchange(reply_with_hold_off(60000, 3));
    now += S;
    assert_int_equal(call(&ok), BIDE_REASON_SUCCEEDED);
    throttle_call(2 * S);
    make_request();
    assert_int_equal(request.hold_off_ended, 3);
    assert_int_equal(request.hold_off_ms, 2000);
}

static void hold_off_is_limited_by_the_target(void **state)
{
    struct bide_target_config config = plain_config();
    config.hold_off_max_ns = 30 * S;
    join_with(&config, &terms);
    exchange(reply_with_hold_off(LEASE_MS_MAX, 1));
    assert_int_equal(bide_target_hold_off_until(&target, now), now + 30 * S);
    now += S;
    make_request();
    assert_int_equal(request.hold_off_ms + request.hold_off_ended, 0);
}

static void member_without_shared_hold_off_neither_reports_nor_obeys_it(void **state)
{
    struct lease_terms indifferent = terms;
    struct bide_target_config config = plain_config();
    indifferent.hold_off = false;
    join_with(&config, &indifferent);
    exchange(reply_with_hold_off(5000, 3));
    assert_int_equal(bide_target_hold_off_until(&target, now), 0);
    throttle_call(9 * S);
    make_request();
    assert_int_equal(request.hold_off_ms + request.hold_off_ended, 0);
}

/* ---- breaker votes ---- */

static void join_with_breaker(int64_t open_permille)
{
    struct lease_terms with_terms = terms;
    struct bide_target_config config = plain_config();
    with_terms.open_permille = open_permille;
    config.breaker.kind = BIDE_BREAKER_BY_RUN;
    config.breaker.consecutive = 5;
    config.breaker.open_jitter_permille = 0;
    join_with(&config, &with_terms);
}

static struct lease_reply opening(int64_t number, bool is_open)
{
    struct lease_reply reply = granting(0);
    reply.opening = number;
    reply.is_open = is_open;
    return reply;
}

static enum bide_breaker_state breaker_state(void)
{
    return bide_breaker_get(&target).state;
}

static void new_opening_of_the_fleet_opens_the_breaker_once(void **state)
{
    join_with_breaker(500);
    exchange(opening(4, true));
    assert_int_equal(breaker_state(), BIDE_BREAKER_CLOSED); /* a new member ignores the current state */
    exchange(opening(5, false));
    assert_int_equal(breaker_state(), BIDE_BREAKER_CLOSED); /* already over */
    exchange(opening(5, true));
    assert_int_equal(breaker_state(), BIDE_BREAKER_CLOSED);
    exchange(opening(6, true));
    assert_int_equal(breaker_state(), BIDE_BREAKER_OPEN);
    assert_int_equal(member.openings_followed, 1);
    bide_breaker_hold(&target, BIDE_HOLD_CLOSED);
    bide_breaker_hold(&target, BIDE_HOLD_RELEASE);
    exchange(opening(6, true));
    assert_int_equal(breaker_state(), BIDE_BREAKER_CLOSED);
    assert_int_equal(member.openings_followed, 1);
}

static void reconnected_member_ignores_an_opening_it_missed(void **state)
{
    join_with_breaker(500);
    exchange(opening(4, false));
    make_request();
    lease_member_request_failed(&member, now, now);
    exchange(opening(5, true));
    assert_int_equal(member.openings_followed, 0);
    exchange(opening(6, true));
    assert_int_equal(member.openings_followed, 1);
}

static void openings_are_followed_after_the_bucket_lost_its_count(void **state)
{
    join_with_breaker(500);
    exchange(opening(6, false));
    exchange(opening(0, false));
    exchange(opening(1, true));
    assert_int_equal(breaker_state(), BIDE_BREAKER_OPEN);
}

static void member_that_ignores_votes_stays_closed(void **state)
{
    join_with_breaker(0);
    exchange(opening(0, false));
    exchange(opening(1, true));
    assert_int_equal(breaker_state(), BIDE_BREAKER_CLOSED);
    join(); /* without a breaker */
    exchange(opening(0, false));
    exchange(opening(1, true));
    assert_int_equal(breaker_state(), BIDE_BREAKER_CLOSED);
}

static void breaker_without_traffic_does_not_vote(void **state)
{
    join_with_breaker(500);
    make_request();
    assert_int_equal(request.breaker_vote, 0);
    accept_reply(granting(0));
    call(&ok);
    make_request();
    assert_int_equal(request.breaker_vote, 1);
    accept_reply(granting(0));
    make_request();
    assert_int_equal(request.breaker_vote, 0);
    join();
    call(&ok);
    make_request();
    assert_int_equal(request.breaker_vote, 0); /* the target has no breaker */
}

static void open_breaker_votes_until_its_open_time_ends(void **state)
{
    join_with_breaker(500);
    assert_true(bide_breaker_trip(&target, 1, now));
    make_request();
    assert_int_equal(request.breaker_vote, 2);
    accept_reply(granting(0));
    now = bide_breaker_get(&target).until_ns - 1;
    make_request();
    assert_int_equal(request.breaker_vote, 2);
    accept_reply(granting(0));
    now += 1;
    make_request(); /* no call since the open time ended */
    assert_int_equal(request.breaker_vote, 0);
    accept_reply(granting(0));
    bide_breaker_hold(&target, BIDE_HOLD_OPEN);
    make_request();
    assert_int_equal(request.breaker_vote, 2);
}

static void half_open_breaker_votes_open(void **state)
{
    static struct bide_policy policy;
    struct bide_call c;
    struct bide_request call_request = {.safety = BIDE_SAFE, .seed = 1};
    join_with_breaker(500);
    assert_true(bide_breaker_trip(&target, 1, now));
    now = bide_breaker_get(&target).until_ns;
    assert_int_equal(bide_policy_init(&policy, BIDE_PRESET_SERVICE), BIDE_OK);
    assert_int_equal(bide_call_begin(&c, &policy, &target, &call_request, now).action, BIDE_START);
    assert_int_equal(breaker_state(), BIDE_BREAKER_HALF_OPEN);
    make_request();
    assert_int_equal(request.breaker_vote, 2);
}

/* ---- leaving ---- */

static void leaving_member_returns_everything(void **state)
{
    join();
    exchange(granting(10));
    spend(2);
    call(&ok);
    member.overflow_milli = 500;
    now += 400 * MS;
    assert_true(lease_member_leave(&member, now, &request));
    assert_null(lease_request_check(&request));
    const struct lease_request wanted = {.capacity_milli = 1000 * RETRY,
                                         .per_minute_milli = 60 * RETRY,
                                         .unit_milli = RETRY,
                                         .returned_milli = 8500,
                                         .earned_milli = 100,
                                         .firsts = 1,
                                         .successes = 1,
                                         .spent_milli = 2 * RETRY,
                                         .open_permille = 500,
                                         .seen_serial = 1,
                                         .leaving = 1};
    assert_memory_equal(&request, &wanted, sizeof request);
    assert_int_equal(level(), 0);
}

static void member_that_left_sends_no_request(void **state)
{
    join();
    exchange(granting(10));
    now += S;
    make_request();
    struct lease_reply reply = granting(0);
    assert_true(lease_member_leave(&member, now, &request));
    assert_string_equal(lease_member_accept_reply(&member, &reply, 1, now), "late");
    assert_int_equal(lease_member_next_check_ns(&member, now), BIDE_NEVER);
    assert_false(lease_member_try_claim(&member, now + 1000 * S));
}

static void leaving_a_shared_target_keeps_its_tokens(void **state)
{
    join_two_processes();
    call(&ok);
    now += S;
    assert_false(lease_member_try_claim(&other, now));
    assert_false(lease_member_leave(&member, now, &request));
    assert_int_equal(level(), 10 * RETRY);
    assert_int_equal(bide_lease_collect(&target).successes, 1);
    now = lease_member_next_check_ns(&other, now);
    assert_in_range(now, BEGIN + S, BEGIN + 3 * S);
    assert_true(lease_member_try_claim(&other, now));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(new_member_requests_three_retries_at_once),
        cmocka_unit_test(budget_without_tokens_cannot_join),
        cmocka_unit_test(lease_ended_by_another_process_is_begun_again),
        cmocka_unit_test(earned_tokens_are_reported_once),
        cmocka_unit_test(tokens_missing_since_the_last_exchange_are_reported_as_spent),
        cmocka_unit_test(refunded_charges_are_not_reported_as_spending),
        cmocka_unit_test(forfeited_refill_is_not_reported_as_spent),
        cmocka_unit_test(counters_are_clamped_to_the_range_of_their_field),
        cmocka_unit_test(member_requests_twice_its_expected_spending),
        cmocka_unit_test(longer_interval_requests_more_tokens),
        cmocka_unit_test(refused_retries_count_as_demand),
        cmocka_unit_test(refused_member_requests_one_retry_more_than_it_holds),
        cmocka_unit_test(request_never_exceeds_the_room_in_the_target),
        cmocka_unit_test(target_without_capacity_requests_nothing),
        cmocka_unit_test(idle_member_keeps_its_share_in_whole_retries),
        cmocka_unit_test(idle_member_with_a_tiny_share_keeps_nothing),
        cmocka_unit_test(idle_member_returns_tokens_above_twice_its_share),
        cmocka_unit_test(busy_member_returns_tokens_above_one_and_a_half_times_its_demand),
        cmocka_unit_test(returning_and_requesting_does_not_oscillate),
        cmocka_unit_test(all_tokens_return_when_demand_ends),
        cmocka_unit_test(grant_that_does_not_fit_is_returned_with_the_next_request),
        cmocka_unit_test(next_request_is_jittered_by_a_tenth),
        cmocka_unit_test(idle_member_sends_nothing_before_it_is_due),
        cmocka_unit_test(member_short_of_tokens_sends_earlier_but_not_at_once),
        cmocka_unit_test(member_is_short_after_spending_more_than_half),
        cmocka_unit_test(reply_extends_the_lease_beyond_the_next_exchange),
        cmocka_unit_test(failed_request_ends_the_lease_at_once),
        cmocka_unit_test(disconnected_member_waits_for_its_retry_time),
        cmocka_unit_test(consecutive_failures_do_not_restart_the_floor),
        cmocka_unit_test(floors_start_at_random_times_when_redis_is_lost),
        cmocka_unit_test(late_reply_is_never_applied),
        cmocka_unit_test(invalid_reply_is_rejected_and_changes_nothing),
        cmocka_unit_test(request_carries_the_highest_serial_seen),
        cmocka_unit_test(request_carries_how_the_bucket_counted_the_member),
        cmocka_unit_test(only_the_exchanger_touches_the_target),
        cmocka_unit_test(killed_exchanger_is_replaced_soon_after_the_lease_ends),
        cmocka_unit_test(failed_request_keeps_the_claim),
        cmocka_unit_test(successor_is_the_same_member_to_the_bucket),
        cmocka_unit_test(member_that_lost_the_claim_does_not_touch_the_target),
        cmocka_unit_test(member_that_regains_the_claim_continues_from_the_memo),
        cmocka_unit_test(invalid_or_old_memo_is_ignored),
        cmocka_unit_test(exchanger_that_fails_for_a_minute_releases_the_claim),
        cmocka_unit_test(sole_owner_keeps_the_claim_over_failures),
        cmocka_unit_test(hold_off_of_the_server_is_reported_and_its_echo_is_not),
        cmocka_unit_test(hold_off_in_a_lost_request_is_reported_again),
        cmocka_unit_test(hold_off_of_the_fleet_is_obeyed_and_not_reported_back),
        cmocka_unit_test(success_that_ends_the_hold_off_is_reported_once),
        cmocka_unit_test(success_during_a_request_is_not_undone_by_its_reply),
        cmocka_unit_test(shorter_hold_off_after_a_success_is_reported),
        cmocka_unit_test(hold_off_is_limited_by_the_target),
        cmocka_unit_test(member_without_shared_hold_off_neither_reports_nor_obeys_it),
        cmocka_unit_test(new_opening_of_the_fleet_opens_the_breaker_once),
        cmocka_unit_test(reconnected_member_ignores_an_opening_it_missed),
        cmocka_unit_test(openings_are_followed_after_the_bucket_lost_its_count),
        cmocka_unit_test(member_that_ignores_votes_stays_closed),
        cmocka_unit_test(breaker_without_traffic_does_not_vote),
        cmocka_unit_test(open_breaker_votes_until_its_open_time_ends),
        cmocka_unit_test(half_open_breaker_votes_open),
        cmocka_unit_test(leaving_member_returns_everything),
        cmocka_unit_test(member_that_left_sends_no_request),
        cmocka_unit_test(leaving_a_shared_target_keeps_its_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
