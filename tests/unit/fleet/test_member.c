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

#include "core/atomic.h"
#include "core/random.h"
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

static const struct lease_terms terms = {
    .capacity_milli = 1000 * RETRY, .per_minute_milli = 60 * RETRY, .timeout_ns = TIMEOUT};

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
    return bide_target_get(&target, now).budget_left_milli;
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
    if (v.action != BIDE_ACTION_START)
        return v.reason;
    v = bide_call_outcome(&c, 1, outcome, now);
    return v.reason; /* a granted retry is charged, and never sent */
}

static void refuse_retries(int times)
{
    for (int i = 0; i < times; i++)
        assert_int_equal(call(&failed), BIDE_REASON_BUDGET_EMPTY);
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
    const struct lease_request wanted = {
        .capacity_milli = 1000 * RETRY, .per_minute_milli = 60 * RETRY, .unit_milli = RETRY, .wanted_milli = 3 * RETRY};
    assert_memory_equal(&request, &wanted, sizeof request);
}

/* A target with a floor of one retry a minute. */
static struct bide_target_config floor_config(void)
{
    struct bide_target_config config = plain_config();
    config.budget.refill_per_minute_milli = RETRY;
    return config;
}

static void join_with_floor(void)
{
    struct bide_target_config config = floor_config();
    join_with(&config, &terms);
}

static void joined_member_can_retry_once_before_its_first_reply(void **state)
{
    join_with_floor();
    assert_int_equal(level(), RETRY);
    spend(1);
    refuse_retries(1);
    make_request();
    assert_int_equal(request.spent_milli, 0); /* before this process became the exchanger */
}

static void member_without_redis_has_one_retry_or_its_floor_whichever_is_more(void **state)
{
    join_with_floor();
    now = BEGIN + 59 * S;
    assert_int_equal(level(), RETRY);
    now = BEGIN + 61 * S;
    assert_in_range(level(), RETRY, RETRY * 61 / 60);
    now = BEGIN + 600 * S;
    assert_in_range(level(), 10 * RETRY - 1, 10 * RETRY);
}

static void failed_first_request_does_not_start_the_floor_earlier(void **state)
{
    join_with_floor();
    for (; now < BEGIN + 180 * S; now += S) {
        make_request();
        lease_member_request_failed(&member, now, now);
    }
    assert_in_range(level(), 3 * RETRY - 5, 3 * RETRY);
}

static void spent_advance_is_repaid_from_the_first_grant(void **state)
{
    join_with_floor();
    spend(1);
    exchange_with_share(3, 2 * RETRY);
    assert_int_equal(level(), 2 * RETRY);
    now += 100 * MS;
    make_request();
    assert_int_equal(request.spent_milli, 0); /* repaying is no spending */
    accept_reply(granting(0));
    assert_int_equal(level(), 2 * RETRY); /* only once */
}

static void spent_advance_is_repaid_from_several_small_grants(void **state)
{
    join_with_floor();
    spend(1);
    exchange(granting(0));
    exchange(granting(0)); /* the fleet's bucket is empty */
    struct lease_reply reply = granting(0);
    reply.granted_milli = 400;
    exchange(reply);
    assert_int_equal(level(), 0);
    exchange_with_share(1, 2 * RETRY);
    assert_int_equal(level(), 400);
    exchange_with_share(1, 2 * RETRY);
    assert_int_equal(level(), 400 + RETRY);
}

static void advance_leaves_room_for_the_whole_grant(void **state)
{
    struct bide_target_config config = floor_config();
    config.budget.capacity_milli = 3 * RETRY;
    join_with(&config, &terms);
    exchange(granting(3));
    assert_int_equal(level(), 3 * RETRY);
    assert_int_equal(member.overflow_milli, 0);
}

static void member_is_not_leased_before_its_first_reply(void **state)
{
    join_with_floor();
    assert_int_equal(lease_member_leased_until_ns(&member), 0);
    assert_int_equal(core_lease_until(&target), now + 60 * S + 1); /* delays the floor; the accrual is rounded up */
    make_request();
    lease_member_request_failed(&member, now, now);
    assert_int_equal(lease_member_leased_until_ns(&member), 0);
    exchange(granting(1));
    assert_int_equal(core_lease_until(&target), now + 2500 * MS + TIMEOUT);
    assert_int_equal(lease_member_leased_until_ns(&member), core_lease_until(&target));
}

static void first_reply_removes_the_advance(void **state)
{
    join_with_floor();
    make_request();
    assert_int_equal(request.wanted_milli, 3 * RETRY); /* as if the advance were not there */
    now += 100 * MS;
    struct lease_reply reply = granting(2);
    reply.share_milli = 2 * RETRY; /* so that the member keeps its tokens */
    accept_reply(reply);
    assert_int_equal(level(), 2 * RETRY);
    now += S;
    make_request();
    assert_int_equal(request.spent_milli, 0);
    accept_reply(granting(0));
    assert_int_equal(level(), 2 * RETRY); /* only once */
}

static void advance_stays_while_the_fleet_cannot_be_reached(void **state)
{
    join_with_floor();
    make_request();
    lease_member_request_failed(&member, now + S, now);
    now += S;
    make_request();
    lease_member_request_failed(&member, now + S, now);
    assert_int_equal(level(), RETRY);
    spend(1);
    refuse_retries(1);
}

static void advance_is_not_returned_to_the_fleet(void **state)
{
    join_with_floor();
    assert_true(lease_member_leave(&member, now, &request));
    assert_int_equal(request.returned_milli, 0);
    assert_int_equal(level(), 0);
    assert_int_equal(member.advance_milli, 0);
}

/* The driver repays it from the reply to the pending request. */
static void spent_advance_remains_to_be_repaid_after_leaving(void **state)
{
    join_with_floor();
    spend(1);
    make_request();
    assert_true(lease_member_leave(&member, now, &request));
    assert_int_equal(member.advance_milli, RETRY);
}

static const struct lease_terms shared = {
    .capacity_milli = 1000 * RETRY, .per_minute_milli = 60 * RETRY, .timeout_ns = TIMEOUT, .shared = true};

static void shared_target_has_one_advance_for_all_processes(void **state)
{
    struct bide_target_config config = floor_config();
    join_with(&config, &shared);
    for (int i = 0; i < 10; i++) {
        spend(i == 0);
        refuse_retries(1);
        (void)lease_member_leave(&member, now, &request);
        assert_int_equal(lease_member_join(&member, &target, &shared, 8, now, NULL), BIDE_OK);
        assert_int_equal(level(), 0);
    }
}

/* The process that began the lease leaves, and another process takes its place. */
static void replace_process_of_shared_target(void)
{
    assert_false(lease_member_leave(&member, now, &request));
    assert_int_equal(member.advance_milli, 0); /* the target has it, not the process that left */
    now += S;
    assert_int_equal(lease_member_join(&member, &target, &shared, 8, now, NULL), BIDE_OK);
}

static void advance_of_a_shared_target_never_gets_into_the_fleets_bucket(void **state)
{
    struct bide_target_config config = floor_config();
    join_with(&config, &shared);
    replace_process_of_shared_target();
    assert_int_equal(level(), RETRY); /* for the next process */
    make_request();
    assert_int_equal(request.wanted_milli, 3 * RETRY);
    accept_reply(granting(0));
    assert_int_equal(level(), 0);
    make_request();
    assert_int_equal(request.returned_milli, 0);
}

static void spent_advance_of_a_shared_target_is_repaid_by_the_next_process(void **state)
{
    struct bide_target_config config = floor_config();
    join_with(&config, &shared);
    spend(1);
    make_request();
    lease_member_request_failed(&member, now, now);
    replace_process_of_shared_target();
    exchange(granting(3));
    assert_int_equal(level(), 2 * RETRY);
    replace_process_of_shared_target();
    make_request();
    assert_int_equal(request.wanted_milli, RETRY);
    accept_reply(granting(1));
    assert_int_equal(level(), 3 * RETRY); /* only once */
}

static void advance_in_an_invalid_memo_is_one_retry_at_most(void **state)
{
    struct bide_target_config config = floor_config();
    join_with(&config, &shared);
    core_lease_memo_set(&target, (struct core_lease_memo){.base_milli = UINT64_MAX});
    exchange(granting(3));
    assert_int_equal(level(), 3 * RETRY); /* the advance was not spent */
}

static struct lease_member other;

/* Another process joins and leaves while this process is beginning the lease: it holds no claim any more. */
static void other_process_joins_and_leaves(uint64_t *word)
{
    assert_int_equal(lease_member_join(&other, &target, &shared, 8, now + 1, NULL), BIDE_OK);
    assert_int_equal(other.advance_milli, RETRY);
    assert_false(lease_member_leave(&other, now + 1, &request));
}

static void process_that_loses_the_race_to_begin_the_lease_adds_no_advance(void **state)
{
    struct bide_target_config config = floor_config();
    now = BEGIN;
    assert_int_equal(bide_target_init(&target, &config, now, NULL), BIDE_OK);
    core_before_cas = other_process_joins_and_leaves;
    assert_int_equal(lease_member_join(&member, &target, &shared, 7, now, NULL), BIDE_OK);
    assert_null(core_before_cas);
    assert_int_equal(member.advance_milli, 0);
    assert_int_equal(level(), RETRY);
}

static void process_without_the_claim_adds_no_advance(void **state)
{
    struct bide_target_config config = floor_config();
    now = BEGIN;
    assert_int_equal(bide_target_init(&target, &config, now, NULL), BIDE_OK);
    assert_true(core_lease_claim(&target, 8, now + 10 * S, now));
    assert_int_equal(lease_member_join(&member, &target, &shared, 7, now, NULL), BIDE_OK);
    assert_int_equal(member.advance_milli, 0);
    assert_int_equal(level(), 0);
}

static void other_processes_of_a_shared_target_are_leased_with_the_first_reply(void **state)
{
    struct bide_target_config config = floor_config();
    join_with(&config, &shared);
    assert_int_equal(lease_member_join(&other, &target, &shared, 8, now, NULL), BIDE_OK);
    assert_int_equal(lease_member_leased_until_ns(&other), 0);
    exchange(granting(1));
    assert_int_equal(lease_member_leased_until_ns(&other), now + 2500 * MS + TIMEOUT);
}

static void reply_with_a_shorter_interval_does_not_shorten_the_lease(void **state)
{
    join();
    struct lease_reply reply = granting(1);
    reply.next_ms = 10 * LEASE_INTERVAL_BUSY_MS;
    exchange(reply);
    int64_t until_ns = core_lease_until(&target);
    assert_int_equal(until_ns, now + 25 * S + TIMEOUT);
    now += S;
    exchange(granting(1));
    assert_int_equal(core_lease_until(&target), until_ns);
}

static void memo_without_a_serial_is_no_reply(void **state)
{
    struct bide_target_config config = floor_config();
    join_with(&config, &shared);
    core_lease_memo_set(&target, (struct core_lease_memo){.progress = 1}); /* was_wanting, serial 0 */
    assert_int_equal(lease_member_leased_until_ns(&member), 0);
}

static void join_at_the_first_instants_of_the_clock_has_the_advance(void **state)
{
    struct bide_target_config config = floor_config();
    for (now = 0; now < 3; now++) {
        assert_int_equal(bide_target_init(&target, &config, now, NULL), BIDE_OK);
        assert_int_equal(lease_member_join(&member, &target, &terms, 7, now, NULL), BIDE_OK);
        assert_int_equal(level(), RETRY);
    }
}

static void refusals_before_the_claim_are_no_demand(void **state)
{
    struct bide_target_config config = plain_config();
    int64_t wanted_milli[2];
    for (int refused = 0; refused < 2; refused++) {
        now = BEGIN;
        assert_int_equal(bide_target_init(&target, &config, now, NULL), BIDE_OK);
        target.refused[8] = refused ? 5 : 0;
        assert_int_equal(lease_member_join(&member, &target, &terms, 7, now, NULL), BIDE_OK);
        make_request();
        wanted_milli[refused] = request.wanted_milli;
    }
    assert_int_equal(wanted_milli[1], wanted_milli[0]);
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
    assert_int_equal(core_lease_end(&target, now), BIDE_OK);
    bide_budget_add_milli(&target, 50 * RETRY, now);
    make_request();
    assert_true(core_lease_is_on(&target));
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
    assert_true(core_lease_until(&target) <= now);
    struct lease_reply reply = granting(0);
    reply.next_ms = 10000;
    exchange(reply);
    assert_int_equal(core_lease_until(&target), now + 25 * S + TIMEOUT);
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
    assert_int_equal(core_lease_until(&target), now);
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
        (void)core_lease_claim(&target, member.claimant_id, 0, now); /* which the join has made */
        member.claimant_id = claimant_id;
        exchange(granting(0));
        make_request();
        lease_member_request_failed(&member, now + S, now);
        assert_in_range(core_lease_until(&target), now, now + 10 * S);
        early += core_lease_until(&target) < now + S;
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
        INVALID(members, -1),
        INVALID(level_milli, -1),
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

static void request_repeats_whether_the_last_replied_request_wanted_tokens(void **state)
{
    join();
    make_request();
    assert_true(request.wanted_milli > 0);
    assert_int_equal(request.was_wanting, 0);
    accept_reply(granting(3));
    now += S;
    make_request();
    assert_int_equal(request.wanted_milli, 0);
    assert_int_equal(request.was_wanting, 1);
    lease_member_request_failed(&member, now, now);
    make_request();
    assert_int_equal(request.was_wanting, 1); /* the bucket may not have seen the failed request */
    accept_reply(granting(0));
    make_request();
    assert_int_equal(request.was_wanting, 0);
}

/* ---- shared targets ---- */

/* Two processes have a member for the target; the first is the exchanger. */
static void join_two_processes(void)
{
    struct bide_target_config config = plain_config();
    join_with(&config, &shared);
    exchange(granting(10));
    assert_int_equal(lease_member_join(&other, &target, &shared, 8, now, NULL), BIDE_OK);
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
    int64_t ends = core_lease_until(&target);
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
    wait_until_other_takes_over();
    request = *lease_member_make_request(&other, now);
    assert_null(lease_request_check(&request));
    assert_int_equal(request.spent_milli, 3 * RETRY);
    assert_int_equal(request.seen_serial, member.seen_serial);
    assert_int_equal(request.was_wanting, member.was_wanting);
    assert_int_equal(request.wanted_milli + request.returned_milli,
                     0); /* seven retries are left: kept until it knows more */
    assert_int_equal(level(), 7 * RETRY);
}

static void member_that_lost_the_claim_does_not_touch_the_target(void **state)
{
    join_two_processes();
    now += S;
    make_request(); /* and the process is stopped for a long time */
    wait_until_other_takes_over();
    struct lease_reply reply = granting(1);
    member.request.wanted_milli = RETRY;
    struct bide_target before = target;
    accept_reply(reply);
    assert_memory_equal(&target, &before, sizeof target);
    assert_false(member.exchanger);
    assert_int_equal(member.overflow_milli, RETRY);
    assert_int_equal(member.state, LEASE_MEMBER_JOINED);
    assert_false(lease_member_try_claim(&member, now));
    lease_member_request_failed(&member, now + S, now);
    assert_memory_equal(&target, &before, sizeof target);
    assert_true(lease_member_leave(&member, now, &request));
    assert_int_equal(request.returned_milli, RETRY);
    assert_int_equal(request.seen_serial, 0); /* the other process keeps the target: it must not be counted out */
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
    static const uint64_t progress[] = {UINT64_MAX,
                                        (uint64_t)LEASE_COUNT_MAX << 4,
                                        (uint64_t)LEASE_COUNT_MAX << 1,
                                        (uint64_t)(LEASE_COUNT_MAX / 2 + 1) << 1,
                                        1,
                                        0};
    for (unsigned i = 0; i < sizeof progress / sizeof *progress; i++) {
        join_two_processes();
        core_lease_memo_set(&target, (struct core_lease_memo){progress[i], UINT64_MAX});
        wait_until_other_takes_over();
        request = *lease_member_make_request(&other, now);
        assert_null(lease_request_check(&request));
        assert_int_equal(request.seen_serial, 0);
        assert_int_equal(request.spent_milli, 0);
    }
}

static void largest_serial_of_a_memo_is_half_of_the_range(void **state)
{
    join_two_processes();
    core_lease_memo_set(&target, (struct core_lease_memo){(uint64_t)(LEASE_COUNT_MAX / 2) << 1, 0});
    wait_until_other_takes_over();
    assert_int_equal(lease_member_make_request(&other, now)->seen_serial, LEASE_COUNT_MAX / 2);
}

static void budget_of_another_kind_is_not_short_of_tokens(void **state)
{
    join_two_processes();
    exchange(granting(5));
    target.config[target.active & 1].budget.kind = BIDE_BUDGET_NONE; /* as only a write from outside can do */
    now += S / 2;
    assert_int_equal(level(), INT64_MAX);
    assert_false(lease_member_try_claim(&member, now));
    make_request();
    assert_int_equal(request.wanted_milli, 0);
    accept_reply(granting(0));
    assert_int_equal(member.base_milli, LEASE_MILLI_MAX);
}

/* The sanitizers check the arithmetic; make_request checks the ranges of the request. */
static void requests_are_valid_whatever_another_process_writes(void **state)
{
    static uint64_t words[sizeof target / sizeof(uint64_t)];
    for (uint64_t round = 0; round < 3000; round++) {
        join_two_processes();
        exchange(granting(5));
        memcpy(words, &target, sizeof words);
        for (uint64_t i = 0; i < 1 + round % 20; i++) {
            uint64_t drawn = core_mix(round << 8 | i), most = drawn & 1 ? UINT64_MAX : INT64_MAX;
            words[drawn % COUNT(words)] = core_mix(drawn) % 3 == 0 ? most : core_mix(drawn + 1);
        }
        memcpy(&target, words, sizeof words);
        now += (int64_t)(round % 100) * S;
        member.due_ns = other.due_ns = now;
        struct lease_member *m = lease_member_try_claim(&member, now) ? &member : &other;
        if (m == &other && !lease_member_try_claim(&other, now))
            continue;
        request = *lease_member_make_request(m, now);
        assert_null(lease_request_check(&request));
        struct lease_reply reply = granting(0);
        reply.serial = request.seen_serial + 1;
        if (round % 2 == 0)
            (void)lease_member_accept_reply(m, &reply, round, now);
        else
            lease_member_request_failed(m, now + S, now);
        (void)lease_member_leave(m, now, &request);
        assert_null(lease_request_check(&request));
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

static void memo_older_than_the_own_serial_is_ignored(void **state)
{
    join_two_processes();
    wait_until_other_takes_over();
    assert_false(lease_member_try_claim(&member, now));
    member.seen_serial = 41;
    member.was_wanting = true;
    core_lease_memo_set(&target, (struct core_lease_memo){.progress = UINT64_C(40) << 1});
    now += 1000 * S;
    make_request();
    assert_int_equal(request.seen_serial, 41);
    assert_int_equal(request.was_wanting, 1);
}

static void failed_request_of_a_replaced_exchanger_does_not_touch_the_target(void **state)
{
    join_two_processes();
    now += S;
    make_request();
    wait_until_other_takes_over();
    struct bide_target before = target;
    lease_member_request_failed(&member, now + S, now);
    assert_memory_equal(&target, &before, sizeof target);
    assert_false(member.exchanger);
}

static void target_that_can_no_longer_be_leased_gets_no_request(void **state)
{
    struct bide_target_config config = plain_config();
    join();
    exchange(granting(1));
    assert_int_equal(core_lease_end(&target, now), BIDE_OK);
    config.budget.kind = BIDE_BUDGET_NONE;
    assert_int_equal(bide_target_configure(&target, &config, now, NULL), BIDE_OK);
    now += 10 * S;
    assert_false(lease_member_try_claim(&member, now));
    assert_true(lease_member_next_check_ns(&member, now) > now);
}

static void spending_less_than_a_retry_is_no_shortage(void **state)
{
    join();
    exchange(granting(0));
    member.base_milli = RETRY - 1; /* all of it is spent, but less than the cost of a retry */
    now = member.earliest_ns;
    assert_false(lease_member_try_claim(&member, now));
    member.base_milli = RETRY;
    assert_true(lease_member_try_claim(&member, now));
}

/* ---- states ---- */

static void member_is_joined_leased_failing_and_leaving(void **state)
{
    join();
    assert_int_equal(member.state, LEASE_MEMBER_JOINED);
    make_request();
    assert_int_equal(member.state, LEASE_MEMBER_JOINED);
    lease_member_request_failed(&member, now, now);
    assert_int_equal(member.state, LEASE_MEMBER_FAILING);
    lease_member_request_failed(&member, now, now);
    assert_int_equal(member.state, LEASE_MEMBER_FAILING);
    exchange(granting(1));
    assert_int_equal(member.state, LEASE_MEMBER_LEASED);
    exchange(granting(0));
    assert_int_equal(member.state, LEASE_MEMBER_LEASED);
    make_request();
    lease_member_request_failed(&member, now, now);
    assert_int_equal(member.state, LEASE_MEMBER_FAILING);
    assert_true(lease_member_leave(&member, now, &request));
    assert_int_equal(member.state, LEASE_MEMBER_LEAVING);
}

static void replaced_exchanger_is_joined_again(void **state)
{
    join_two_processes();
    assert_int_equal(member.state, LEASE_MEMBER_LEASED);
    wait_until_other_takes_over();
    assert_false(lease_member_try_claim(&member, now));
    now += 1000 * S;
    assert_true(lease_member_try_claim(&member, now)); /* the other process is gone */
    assert_int_equal(member.state, LEASE_MEMBER_JOINED);
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
                                         .seen_serial = 1,
                                         .leaving = 1,
                                         .was_wanting = 1};
    assert_memory_equal(&request, &wanted, sizeof request);
    assert_int_equal(level(), 0);
}

static void shared_member_has_a_final_request_only_for_tokens_or_a_pending_request(void **state)
{
    join_two_processes();
    assert_false(lease_member_leave(&other, now, &request));
    now += S;
    make_request();
    assert_true(lease_member_leave(&member, now, &request)); /* the reply may still grant tokens */
    assert_int_equal(request.returned_milli, 0);
    assert_int_equal(request.seen_serial, 0);
    assert_int_equal(request.leaving, 1);
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
    assert_int_equal(core_lease_collect(&target).successes, 1);
    now = lease_member_next_check_ns(&other, now);
    assert_in_range(now, BEGIN + S, BEGIN + 3 * S);
    assert_true(lease_member_try_claim(&other, now));
}

/* ---- exact numbers ---- */

static void set_cost_of_a_retry(uint32_t cost_milli)
{
    target.config[0].budget.cost_milli = target.config[1].budget.cost_milli = cost_milli;
}

/* Another process may store a cost of 0, which the check of a configuration refuses. */
static void unit_is_the_cost_of_a_retry_and_at_least_a_thousandth(void **state)
{
    static const uint32_t costs[] = {0, 1, 2};
    for (size_t i = 0; i < COUNT(costs); i++) {
        join();
        set_cost_of_a_retry(costs[i]);
        make_request();
        assert_int_equal(request.unit_milli, costs[i] > 0 ? costs[i] : 1);
    }
}

static void floor_starts_even_if_a_retry_costs_nothing(void **state)
{
    struct bide_target_config config = floor_config();
    join_with(&config, &terms);
    exchange(granting(0));
    set_cost_of_a_retry(0);
    make_request();
    lease_member_request_failed(&member, now + S, now);
    assert_int_equal(core_lease_until(&target), now);
}

/* The rate is halved by the request, which measures no spending. */
static void demand_is_rounded_up_to_whole_retries(void **state)
{
    static const struct {
        int64_t rate_milli_per_s, next_ms, wanted_milli;
    } table[] = {{2, 500, RETRY}, {2002, 1000, 3 * RETRY}, {2000, 1000, 2 * RETRY}, {0, 1000, 0}};
    for (size_t i = 0; i < COUNT(table); i++) {
        join();
        exchange(granting(0));
        member.rate_milli_per_s = table[i].rate_milli_per_s;
        member.next_ms = table[i].next_ms;
        now += S;
        make_request();
        assert_int_equal(request.wanted_milli, table[i].wanted_milli);
    }
}

static void rate_is_measured_over_a_millisecond_or_more(void **state)
{
    static const int64_t elapsed_ns[] = {0, MS, 2 * MS};
    static const int64_t rates[] = {500 * RETRY, 500 * RETRY, 250 * RETRY};
    for (size_t i = 0; i < COUNT(rates); i++) {
        join();
        exchange(granting(1));
        spend(1);
        now += elapsed_ns[i];
        make_request();
        assert_int_equal(member.rate_milli_per_s, rates[i]);
    }
}

/* The demand is 10 retries. */
static void surplus_begins_exactly_above_one_and_a_half_times_the_demand(void **state)
{
    for (int64_t held = 14; held <= 16; held++) {
        join();
        exchange(granting(held));
        member.rate_milli_per_s = 10 * RETRY;
        now += S;
        make_request();
        assert_int_equal(request.returned_milli, held > 15 ? (held - 10) * RETRY : 0);
    }
}

static void surplus_of_a_thousandth_is_returned(void **state)
{
    join();
    exchange(granting(0));
    assert_int_equal(bide_budget_add_milli(&target, 1, now), 1);
    now += S;
    make_request();
    assert_int_equal(request.returned_milli, 1);
}

static void full_bucket_requests_nothing_even_if_a_retry_costs_a_thousandth(void **state)
{
    struct bide_target_config config = plain_config();
    config.budget.cost_milli = 1;
    join_with(&config, &terms);
    exchange_with_share(100, 1000 * RETRY);
    now += S;
    make_request();
    assert_int_equal(level(), 100 * RETRY);
    assert_int_equal(request.wanted_milli, 0);
}

static void each_refusal_counts_in_one_request(void **state)
{
    join();
    exchange(granting(0));
    now += S;
    refuse_retries(8);
    make_request();
    assert_int_equal(member.rate_milli_per_s, 4 * RETRY);
    accept_reply(granting(0));
    now += S;
    refuse_retries(2);
    make_request();
    assert_int_equal(member.rate_milli_per_s, 3 * RETRY);
    accept_reply(granting(0));
    now += S;
    make_request();
    assert_int_equal(member.rate_milli_per_s, 3 * RETRY / 2);
}

/* 700 of 1500 are left: less than half, but less than a retry is spent. */
static void shortage_needs_a_whole_retry_spent(void **state)
{
    join();
    exchange(granting(0));
    assert_int_equal(bide_budget_add_milli(&target, 700, now), 700);
    member.base_milli = 1500;
    now = member.earliest_ns;
    assert_false(lease_member_try_claim(&member, now));
    member.base_milli = 1700;
    assert_true(lease_member_try_claim(&member, now));
}

static void smallest_floor_has_its_advance(void **state)
{
    struct bide_target_config config = plain_config();
    config.budget.refill_per_minute_milli = 1;
    join_with(&config, &terms);
    assert_int_equal(level(), RETRY);
}

static void next_request_is_drawn_from_exactly_a_fifth_of_the_interval(void **state)
{
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct lease_reply reply;
        join();
        make_request();
        reply = granting(0);
        assert_null(lease_member_accept_reply(&member, &reply, seed, now));
        uint64_t drawn = core_bits_to_range(core_mix(seed + CORE_GOLDEN), (uint64_t)(200 * MS));
        assert_int_equal(member.due_ns, now + 900 * MS + (int64_t)drawn);
    }
}

static void request_for_a_thousandth_wants_tokens(void **state)
{
    for (int64_t wanted = 0; wanted <= 1; wanted++) {
        join();
        make_request();
        member.request.wanted_milli = wanted;
        accept_reply(granting(0));
        assert_int_equal(member.was_wanting, wanted);
    }
}

/* ---- the claim, exactly ---- */

/* Twice the timeout and a second, rounded up to a tick of half a second. */
static void claim_lasts_for_twice_the_timeout_and_a_second(void **state)
{
    struct lease_terms slow = terms;
    struct bide_target_config config = plain_config();
    slow.timeout_ns = 10 * S;
    join_with(&config, &slow);
    make_request();
    assert_false(core_lease_claim(&target, 8, now + 60 * S, now + 21 * S - 1));
    assert_true(core_lease_claim(&target, 8, now + 60 * S, now + 22 * S));
}

static void claim_is_released_at_instant_zero(void **state)
{
    struct bide_target_config config = plain_config();
    assert_int_equal(bide_target_init(&target, &config, 0, NULL), BIDE_OK);
    assert_int_equal(lease_member_join(&member, &target, &terms, 7, 0, NULL), BIDE_OK);
    assert_true(lease_member_try_claim(&member, 0));
    assert_true(lease_member_leave(&member, 0, &request));
    assert_true(core_lease_claim(&target, 8, S, 0));
}

static void new_exchanger_starts_with_the_level_of_the_target(void **state)
{
    static const struct lease_reply none;
    struct bide_target_config config = floor_config();
    join_with(&config, &terms);
    memset(&member.reply, 0x5a, sizeof member.reply);
    member.spent_milli = member.rate_milli_per_s = member.share_milli = member.next_ms = 99;
    member.requested_ns = member.replied_ns = 99;
    assert_true(lease_member_try_claim(&member, now));
    assert_int_equal(member.base_milli, level());
    assert_int_equal(level(), RETRY);
    assert_int_equal(member.spent_milli + member.rate_milli_per_s + member.share_milli, 0);
    assert_int_equal(member.next_ms, LEASE_INTERVAL_BUSY_MS);
    assert_int_equal(member.requested_ns, now);
    assert_int_equal(member.replied_ns, now);
    assert_memory_equal(&member.reply, &none, sizeof none);
}

static void failing_member_that_becomes_the_exchanger_stays_failing(void **state)
{
    join();
    lease_member_request_failed(&member, now, now);
    assert_false(member.exchanger);
    assert_true(lease_member_try_claim(&member, now));
    assert_int_equal(member.state, LEASE_MEMBER_FAILING);
}

static void memo_carries_whether_the_last_request_wanted_tokens(void **state)
{
    for (uint64_t wanting = 0; wanting <= 1; wanting++) {
        join_two_processes();
        core_lease_memo_set(&target, (struct core_lease_memo){5 << 1 | wanting, 0});
        wait_until_other_takes_over();
        assert_int_equal(other.seen_serial, 5);
        assert_int_equal(other.was_wanting, wanting);
    }
}

/* If this process is killed now, its successor must not report this spending again. */
static void memo_is_current_while_a_request_is_pending(void **state)
{
    join_two_processes();
    spend(8);
    now += S;
    make_request();
    assert_int_equal(request.spent_milli, 8 * RETRY);
    assert_int_equal(core_lease_memo_get(&target).base_milli, 2 * RETRY);
}

/* The successor has leased the target meanwhile; its lease must not end. */
static void failed_request_of_a_replaced_exchanger_does_not_end_the_lease(void **state)
{
    join_two_processes();
    now += S;
    make_request();
    wait_until_other_takes_over();
    (void)lease_member_make_request(&other, now);
    struct lease_reply reply = granting(0);
    assert_null(lease_member_accept_reply(&other, &reply, 1, now));
    int64_t until_ns = core_lease_until(&target);
    assert_true(until_ns > now);
    lease_member_request_failed(&member, now + S, now);
    assert_int_equal(core_lease_until(&target), until_ns);
}

static void replaced_exchanger_checks_again_after_a_second(void **state)
{
    join_two_processes();
    now += S;
    make_request();
    wait_until_other_takes_over();
    struct lease_reply reply = granting(0);
    accept_reply(reply);
    assert_int_equal(lease_member_next_check_ns(&member, now), now + S);
}

/* The minute after which a failing exchanger releases its claim counts from its last reply. */
static void each_reply_renews_the_minute_of_the_claim(void **state)
{
    join_two_processes();
    now += 2 * S;
    exchange(granting(0));
    make_request();
    now += 59 * S;
    lease_member_request_failed(&member, now + S, now);
    assert_true(member.exchanger);
    now += S;
    lease_member_request_failed(&member, now + S, now);
    assert_false(member.exchanger);
}

static void final_request_for_a_shared_target_reports_no_counts(void **state)
{
    join_two_processes();
    now += S;
    make_request();
    member.overflow_milli = 1;
    member.request_pending = false;
    assert_true(lease_member_leave(&member, now, &request)); /* a thousandth is worth a request */
    assert_int_equal(request.returned_milli, 1);
    assert_int_equal(request.firsts + request.successes + request.earned_milli, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(new_member_requests_three_retries_at_once),
        cmocka_unit_test(joined_member_can_retry_once_before_its_first_reply),
        cmocka_unit_test(member_without_redis_has_one_retry_or_its_floor_whichever_is_more),
        cmocka_unit_test(failed_first_request_does_not_start_the_floor_earlier),
        cmocka_unit_test(spent_advance_is_repaid_from_the_first_grant),
        cmocka_unit_test(spent_advance_is_repaid_from_several_small_grants),
        cmocka_unit_test(advance_leaves_room_for_the_whole_grant),
        cmocka_unit_test(member_is_not_leased_before_its_first_reply),
        cmocka_unit_test(first_reply_removes_the_advance),
        cmocka_unit_test(advance_stays_while_the_fleet_cannot_be_reached),
        cmocka_unit_test(advance_is_not_returned_to_the_fleet),
        cmocka_unit_test(spent_advance_remains_to_be_repaid_after_leaving),
        cmocka_unit_test(shared_target_has_one_advance_for_all_processes),
        cmocka_unit_test(advance_of_a_shared_target_never_gets_into_the_fleets_bucket),
        cmocka_unit_test(spent_advance_of_a_shared_target_is_repaid_by_the_next_process),
        cmocka_unit_test(advance_in_an_invalid_memo_is_one_retry_at_most),
        cmocka_unit_test(process_that_loses_the_race_to_begin_the_lease_adds_no_advance),
        cmocka_unit_test(process_without_the_claim_adds_no_advance),
        cmocka_unit_test(other_processes_of_a_shared_target_are_leased_with_the_first_reply),
        cmocka_unit_test(reply_with_a_shorter_interval_does_not_shorten_the_lease),
        cmocka_unit_test(memo_without_a_serial_is_no_reply),
        cmocka_unit_test(join_at_the_first_instants_of_the_clock_has_the_advance),
        cmocka_unit_test(refusals_before_the_claim_are_no_demand),
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
        cmocka_unit_test(request_repeats_whether_the_last_replied_request_wanted_tokens),
        cmocka_unit_test(only_the_exchanger_touches_the_target),
        cmocka_unit_test(killed_exchanger_is_replaced_soon_after_the_lease_ends),
        cmocka_unit_test(failed_request_keeps_the_claim),
        cmocka_unit_test(successor_is_the_same_member_to_the_bucket),
        cmocka_unit_test(member_that_lost_the_claim_does_not_touch_the_target),
        cmocka_unit_test(member_that_regains_the_claim_continues_from_the_memo),
        cmocka_unit_test(invalid_or_old_memo_is_ignored),
        cmocka_unit_test(largest_serial_of_a_memo_is_half_of_the_range),
        cmocka_unit_test(budget_of_another_kind_is_not_short_of_tokens),
        cmocka_unit_test(requests_are_valid_whatever_another_process_writes),
        cmocka_unit_test(exchanger_that_fails_for_a_minute_releases_the_claim),
        cmocka_unit_test(sole_owner_keeps_the_claim_over_failures),
        cmocka_unit_test(memo_older_than_the_own_serial_is_ignored),
        cmocka_unit_test(failed_request_of_a_replaced_exchanger_does_not_touch_the_target),
        cmocka_unit_test(target_that_can_no_longer_be_leased_gets_no_request),
        cmocka_unit_test(spending_less_than_a_retry_is_no_shortage),
        cmocka_unit_test(member_is_joined_leased_failing_and_leaving),
        cmocka_unit_test(replaced_exchanger_is_joined_again),
        cmocka_unit_test(leaving_member_returns_everything),
        cmocka_unit_test(shared_member_has_a_final_request_only_for_tokens_or_a_pending_request),
        cmocka_unit_test(member_that_left_sends_no_request),
        cmocka_unit_test(leaving_a_shared_target_keeps_its_tokens),
        cmocka_unit_test(unit_is_the_cost_of_a_retry_and_at_least_a_thousandth),
        cmocka_unit_test(floor_starts_even_if_a_retry_costs_nothing),
        cmocka_unit_test(demand_is_rounded_up_to_whole_retries),
        cmocka_unit_test(rate_is_measured_over_a_millisecond_or_more),
        cmocka_unit_test(surplus_begins_exactly_above_one_and_a_half_times_the_demand),
        cmocka_unit_test(surplus_of_a_thousandth_is_returned),
        cmocka_unit_test(full_bucket_requests_nothing_even_if_a_retry_costs_a_thousandth),
        cmocka_unit_test(each_refusal_counts_in_one_request),
        cmocka_unit_test(shortage_needs_a_whole_retry_spent),
        cmocka_unit_test(smallest_floor_has_its_advance),
        cmocka_unit_test(next_request_is_drawn_from_exactly_a_fifth_of_the_interval),
        cmocka_unit_test(request_for_a_thousandth_wants_tokens),
        cmocka_unit_test(claim_lasts_for_twice_the_timeout_and_a_second),
        cmocka_unit_test(claim_is_released_at_instant_zero),
        cmocka_unit_test(new_exchanger_starts_with_the_level_of_the_target),
        cmocka_unit_test(failing_member_that_becomes_the_exchanger_stays_failing),
        cmocka_unit_test(memo_carries_whether_the_last_request_wanted_tokens),
        cmocka_unit_test(memo_is_current_while_a_request_is_pending),
        cmocka_unit_test(failed_request_of_a_replaced_exchanger_does_not_end_the_lease),
        cmocka_unit_test(replaced_exchanger_checks_again_after_a_second),
        cmocka_unit_test(each_reply_renews_the_minute_of_the_claim),
        cmocka_unit_test(final_request_for_a_shared_target_reports_no_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
