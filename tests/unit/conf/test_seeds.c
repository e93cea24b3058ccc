/* test_seeds.c - requirements and worked examples of the five seed documents, checked against the engine.
 *
 * The documents are: 000 "Retry Strategies and Exponential Backoff", 001 "Retry with Exponential Backoff and Jitter"
 * (with its "Verify:" lines), 002 "Retry strategies: backoff, jitter, and thundering herd", 003 "Retries:
 * exponential backoff, jitter" (PaySetu, CricStream), 004 "Retry budgets, exponential backoff, and full jitter".
 * Their policies are in scenarios/seeds.conf, their worked examples are restated here. Where the arithmetic of a
 * document is wrong, or its text and its code disagree, the name or comment of the test states so, and the test asserts
 * the right value. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include <string.h>

#include <bide/backoff.h>
#include <bide/call.h>
#include <bide/classify.h>
#include <bide/hint.h>
#include <bide/layer.h>

#include "conf/conf.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))
#define MS           BIDE_MS
#define S            BIDE_S

static const struct bide_outcome good = {.kind = BIDE_KIND_OK, .evidence = BIDE_EVIDENCE_ANSWERED};
static const struct bide_outcome failed = {.kind = BIDE_KIND_TRANSIENT, .evidence = BIDE_EVIDENCE_ANSWERED};
static const struct bide_request get = {.safety = BIDE_SAFE};

/* The policies of the documents. */
static struct conf_pair paysetu, cricstream, seed_001, seed_004;

static struct conf_pair read_policy(const char *name)
{
    struct conf_policy policy;
    char errors[CONF_ERROR_MAX];
    if (!conf_find(&policy, "scenarios/seeds.conf", name, errors))
        fail_msg("%s", errors);
    return policy.pair;
}

static int read_policies(void **state)
{
    (void)state;
    paysetu = read_policy("paysetu");
    cricstream = read_policy("cricstream");
    seed_001 = read_policy("seed-001");
    seed_004 = read_policy("seed-004");
    return 0;
}

static struct bide_policy policy_of(enum bide_preset preset)
{
    struct bide_policy policy;
    assert_int_equal(bide_policy_init(&policy, preset), BIDE_OK);
    return policy;
}

static void target_of(struct bide_target *target, const struct bide_target_config *config, int64_t now_ns)
{
    assert_int_equal(bide_target_init(target, config, now_ns, NULL), BIDE_OK);
}

static struct bide_outcome with_retry_after(struct bide_outcome outcome, const char *value)
{
    outcome.hint = bide_hint_retry_after((struct bide_text){value, strlen(value)}, (struct bide_text){NULL, 0}, 0);
    return outcome;
}

/* Runs a GET that is answered once. */
static struct bide_verdict answer_get(struct bide_call *call, const struct bide_policy *policy,
                                      struct bide_target *target, struct bide_outcome outcome, int64_t now_ns)
{
    bide_call_begin(call, policy, target, &get, now_ns);
    return bide_call_outcome(call, 1, &outcome, now_ns);
}

static bool is_retryable(int status)
{
    struct bide_policy policy = policy_of(BIDE_PRESET_SERVICE);
    struct bide_call call;
    return answer_get(&call, &policy, BIDE_NO_TARGET, bide_classify_http(status, NULL), 0).action == BIDE_ACTION_WAIT;
}

/* ---- what to retry ---- */

static void seed_001_verify_1_a_503_is_retryable_and_a_400_is_not(void **state)
{
    (void)state;
    assert_true(is_retryable(503));
    assert_false(is_retryable(400));
}

static void the_statuses_that_the_seeds_agree_on_are_retried(void **state)
{
    static const int yes[] = {408, 429, 500, 502, 503, 504}; /* 408: all but 000; 500: all but 004's code */
    static const int no[] = {400, 401, 403, 404, 409, 410, 422, 200, 301}; /* 410: 002; 409: 004 */
    (void)state;
    for (size_t i = 0; i < COUNT(yes); i++)
        if (!is_retryable(yes[i]))
            fail_msg("%d", yes[i]);
    for (size_t i = 0; i < COUNT(no); i++)
        if (is_retryable(no[i]))
            fail_msg("%d", no[i]);
}

/* Their prose lists "5xx", their code 500 502 503 504: a repeated 501 or 505 gets the same response. */
static void seeds_000_and_002_list_5xx_but_501_and_505_are_not_retried(void **state)
{
    (void)state;
    assert_false(is_retryable(501));
    assert_false(is_retryable(505));
}

static void seed_000_a_conflict_is_retried_at_once_one_time(void **state)
{
    struct bide_policy policy = policy_of(BIDE_PRESET_SERVICE);
    struct bide_outcome conflict = {.kind = BIDE_KIND_CONFLICT, .evidence = BIDE_EVIDENCE_ANSWERED};
    struct bide_call call;
    (void)state;
    policy.jitter = BIDE_JITTER_NONE;
    struct bide_verdict v = answer_get(&call, &policy, BIDE_NO_TARGET, conflict, S);
    assert_int_equal(v.reason, BIDE_REASON_CONFLICT);
    assert_int_equal(v.wake_ns, S);
    bide_call_wake(&call, S);
    v = bide_call_outcome(&call, 2, &conflict, S);
    assert_int_equal(v.reason, BIDE_REASON_BACKOFF);
    assert_int_equal(v.wake_ns, S + 200 * MS);
}

static void seeds_000_001_004_a_post_without_a_key_is_not_retried(void **state)
{
    static const struct {
        enum bide_safety safety;
        enum bide_action action;
    } table[] = {
        {BIDE_UNSAFE, BIDE_ACTION_GIVE_UP},
        {BIDE_IDEMPOTENT, BIDE_ACTION_WAIT},
        {BIDE_SAFE, BIDE_ACTION_WAIT},
        {BIDE_KEYED, BIDE_ACTION_WAIT},
    };
    struct bide_policy policy = policy_of(BIDE_PRESET_SERVICE);
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        struct bide_request request = {.safety = table[i].safety};
        struct bide_call call;
        bide_call_begin(&call, &policy, BIDE_NO_TARGET, &request, 0);
        assert_int_equal(bide_call_outcome(&call, 1, &failed, 0).action, table[i].action);
    }
}

/* Its wrapper throws for every method but GET and HEAD, PUT and DELETE included. */
static void seed_004_refuses_to_send_a_mutating_request_without_a_key(void **state)
{
    struct bide_policy policy = seed_004.policy;
    (void)state;
    for (int safety = BIDE_UNSAFE; safety <= BIDE_KEYED; safety++) {
        struct bide_request request = {.safety = (enum bide_safety)safety};
        struct bide_call call;
        bool allowed = safety == BIDE_SAFE || safety == BIDE_KEYED;
        struct bide_verdict v = bide_call_begin(&call, &policy, BIDE_NO_TARGET, &request, 0);
        assert_int_equal(v.action, allowed ? BIDE_ACTION_START : BIDE_ACTION_GIVE_UP);
        assert_int_equal(v.reason, allowed ? BIDE_REASON_FIRST_ATTEMPT : BIDE_REASON_KEY_REQUIRED);
    }
}

/* "429: yes, only with Retry-After"; its code retries it without. Both can be configured. */
static void seed_004_documents_429_only_with_a_hint_but_retries_it_without(void **state)
{
    struct bide_policy policy = seed_004.policy;
    struct bide_outcome limited = bide_classify_http(429, NULL);
    struct bide_call call;
    (void)state;
    assert_int_equal(answer_get(&call, &policy, BIDE_NO_TARGET, limited, 0).action, BIDE_ACTION_WAIT);
    policy.throttled_needs_hint = true;
    assert_int_equal(answer_get(&call, &policy, BIDE_NO_TARGET, limited, 0).reason, BIDE_REASON_HINT_MISSING);
    assert_int_equal(answer_get(&call, &policy, BIDE_NO_TARGET, with_retry_after(limited, "2"), 0).action,
                     BIDE_ACTION_WAIT);
}

/* ---- waits ---- */

static void seed_000_backoff_without_jitter_waits_1_2_4_8_seconds(void **state)
{
    struct bide_policy policy = policy_of(BIDE_PRESET_EXTERNAL);
    (void)state;
    policy.jitter = BIDE_JITTER_NONE;
    for (uint32_t n = 0; n < 4; n++)
        assert_int_equal(bide_backoff_envelope(&policy, (struct bide_step){.step = n}), S << n);
}

/* MAX_RETRIES = 4, base 500 ms, cap 30 s; the loop makes four attempts, so three retries. */
static void seed_000_s_max_retries_of_4_are_attempts(void **state)
{
    struct bide_policy policy = policy_of(BIDE_PRESET_SERVICE);
    struct bide_verdict v = {.action = BIDE_ACTION_NONE};
    struct bide_call call;
    int64_t now_ns = 0;
    (void)state;
    policy.base_ns = 500 * MS;
    bide_call_begin(&call, &policy, BIDE_NO_TARGET, &get, now_ns);
    for (uint32_t retry = 0; retry < 3; retry++) {
        v = bide_call_outcome(&call, retry + 1, &failed, now_ns);
        assert_int_equal(v.action, BIDE_ACTION_WAIT);
        assert_in_range(v.wake_ns - now_ns, 0, 500 * MS << retry);
        now_ns = v.wake_ns;
        assert_int_equal(bide_call_wake(&call, now_ns).attempt, retry + 2);
    }
    assert_int_equal(bide_call_outcome(&call, 4, &failed, now_ns).reason, BIDE_REASON_ATTEMPTS_SPENT);
}

/* Its loop sleeps for Retry-After even when no attempt is left. */
static void seed_000_waits_after_its_last_attempt_and_the_engine_does_not(void **state)
{
    struct bide_policy policy = policy_of(BIDE_PRESET_SERVICE);
    struct bide_call call;
    (void)state;
    policy.attempts_max = 1;
    struct bide_verdict v =
        answer_get(&call, &policy, BIDE_NO_TARGET, with_retry_after(bide_classify_http(429, NULL), "30"), 0);
    assert_int_equal(v.reason, BIDE_REASON_ATTEMPTS_SPENT);
    assert_int_equal(v.wake_ns, BIDE_NEVER);
}

static void seed_001_verify_2_full_jitter_lies_between_zero_and_the_ceiling(void **state)
{
    static const struct {
        uint32_t attempt; /* from 0 */
        int64_t hi_ns;
    } table[] = {{0, S}, {5, 30 * S}};
    struct bide_policy policy = seed_001.policy;
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        struct bide_step step = {.step = table[i].attempt};
        struct bide_range window = bide_backoff_window(&policy, step);
        assert_int_equal(window.lo_ns, 0);
        assert_int_equal(window.hi_ns, table[i].hi_ns);
        for (uint64_t seed = 0; seed < 1000; seed++)
            assert_in_range(bide_backoff_wait(&policy, step, seed, 1), 0, table[i].hi_ns);
    }
}

/* "2^20 = 1,048,576 seconds (~12 days)". */
static void seed_001_an_uncapped_wait_would_be_twelve_days_and_the_cap_makes_it_half_a_minute(void **state)
{
    struct bide_policy policy = seed_001.policy;
    (void)state;
    assert_int_equal(bide_backoff_envelope(&policy, (struct bide_step){.step = 20}), 30 * S);
    policy.cap_ns = BIDE_DURATION_MAX;
    int64_t uncapped_ns = bide_backoff_envelope(&policy, (struct bide_step){.step = 20});
    assert_int_equal(uncapped_ns, 1048576 * S);
    assert_int_equal(uncapped_ns / (BIDE_MINUTE * 60 * 24), 12);
}

/* base 200 ms, cap 30 s. The document has "attempt 8: 30 s (capped)"; by its own list attempt 8 waits 25.6 s, and
 * attempt 9 is capped. */
static void seed_002_s_eighth_wait_is_25_6_seconds_and_not_capped_as_documented(void **state)
{
    static const int64_t ms[] = {200, 400, 800, 1600, 3200, 6400, 12800, 25600, 30000};
    struct bide_policy policy = policy_of(BIDE_PRESET_SERVICE);
    (void)state;
    for (uint32_t n = 0; n < COUNT(ms); n++)
        assert_int_equal(bide_backoff_envelope(&policy, (struct bide_step){.step = n}), ms[n] * MS);
}

/* random(base, cap) "AWS-style" is not equal jitter, which is half fixed and half random, as in 001, 002 and 003. */
static void seed_004_calls_something_else_equal_jitter(void **state)
{
    struct bide_policy policy = seed_004.policy;
    (void)state;
    policy.jitter = BIDE_JITTER_EQUAL;
    for (uint32_t n = 0; n < 7; n++) {
        struct bide_range window = bide_backoff_window(&policy, (struct bide_step){.step = n});
        assert_int_equal(window.hi_ns, 200 * MS << n);
        assert_int_equal(window.lo_ns, 100 * MS << n);
    }
}

static void seeds_001_002_003_decorrelated_jitter_grows_from_the_previous_wait(void **state)
{
    static const struct {
        int64_t previous_ms, hi_ms;
    } table[] = {{0, 300}, {100, 300}, {300, 900}, {650, 1950}, {700, 2000}, {2000, 2000}};
    struct bide_policy policy = paysetu.policy;
    (void)state;
    policy.jitter = BIDE_JITTER_DECORRELATED_AWS; /* min(cap, random(base, 3 * previous)), to the letter */
    for (size_t i = 0; i < COUNT(table); i++) {
        struct bide_step step = {.previous_ns = table[i].previous_ms * MS};
        struct bide_range window = bide_backoff_window(&policy, step);
        assert_int_equal(window.lo_ns, 100 * MS);
        assert_int_equal(window.hi_ns, table[i].hi_ms * MS);
    }
}

/* A floor of 50 ms under a window of 0 to 200 ms. max(floor, raw) would put a quarter of all first waits at exactly
 * 50 ms, in lockstep again. The engine moves the window instead. */
static void seed_004_s_floor_holds_and_waits_do_not_pile_up_on_it(void **state)
{
    struct bide_policy policy = seed_004.policy;
    uint32_t at_the_floor = 0;
    (void)state;
    for (uint64_t seed = 0; seed < 10000; seed++) {
        int64_t wait_ns = bide_backoff_wait(&policy, (struct bide_step){.step = 0}, seed, 1);
        assert_in_range(wait_ns, 50 * MS, 200 * MS);
        at_the_floor += wait_ns < 51 * MS;
    }
    assert_in_range(at_the_floor, 20, 150); /* 1 in 150 expected */
}

static void seed_003_without_jitter_a_thousand_callers_return_in_the_same_instant(void **state)
{
    struct bide_policy policy = paysetu.policy;
    uint32_t in_bucket[10] = {0};
    (void)state;
    for (int jittered = 0; jittered < 2; jittered++) {
        int64_t first_ns = -1;
        policy.jitter = jittered ? BIDE_JITTER_FULL : BIDE_JITTER_NONE;
        for (uint64_t seed = 0; seed < 1000; seed++) {
            struct bide_request request = {.safety = BIDE_SAFE, .seed = seed};
            struct bide_call call;
            bide_call_begin(&call, &policy, BIDE_NO_TARGET, &request, 0);
            int64_t wake_ns = bide_call_outcome(&call, 1, &failed, 0).wake_ns;
            first_ns = first_ns < 0 ? wake_ns : first_ns;
            if (!jittered)
                assert_int_equal(wake_ns, first_ns);
            else
                in_bucket[wake_ns / (10 * MS) % 10]++;
        }
    }
    for (size_t i = 0; i < COUNT(in_bucket); i++)
        assert_in_range(in_bucket[i], 60, 145); /* 100 in each 10 ms */
}

/* ---- the loop ---- */

static void seed_001_verify_3_it_retries_on_503_gives_up_on_400_and_after_the_last_attempt(void **state)
{
    struct bide_policy policy = seed_001.policy;
    struct bide_call call;
    struct bide_verdict v = bide_call_begin(&call, &policy, BIDE_NO_TARGET, &get, 0);
    (void)state;
    for (uint32_t attempt = 1; attempt <= 4; attempt++) {
        struct bide_outcome o = bide_classify_http(503, NULL);
        assert_int_equal(v.action, BIDE_ACTION_START);
        assert_int_equal(v.attempt, attempt);
        v = bide_call_outcome(&call, attempt, &o, 0);
        if (attempt < 4)
            v = bide_call_wake(&call, v.wake_ns);
    }
    assert_int_equal(v.reason, BIDE_REASON_ATTEMPTS_SPENT);
    assert_int_equal(answer_get(&call, &policy, BIDE_NO_TARGET, bide_classify_http(400, NULL), 0).reason,
                     BIDE_REASON_PERMANENT);
}

/* min(float(retry_after), cap), exactly. */
static void seed_001_verify_5_a_retry_after_of_5_waits_5_seconds_and_without_one_it_is_jitter(void **state)
{
    struct bide_policy policy = seed_001.policy;
    struct bide_call call;
    (void)state;
    assert_int_equal(answer_get(&call, &policy, BIDE_NO_TARGET, with_retry_after(failed, "5"), 0).wake_ns, 5 * S);
    assert_int_equal(answer_get(&call, &policy, BIDE_NO_TARGET, with_retry_after(failed, "31"), 0).wake_ns, 30 * S);
    struct bide_verdict v = answer_get(&call, &policy, BIDE_NO_TARGET, with_retry_after(failed, "soon"), 0);
    assert_int_equal(v.reason, BIDE_REASON_BACKOFF);
    assert_in_range(v.wake_ns, 0, S);
}

/* 503 with Retry-After: 30: a client that waits a second is rude, a client that waits 30 seconds is polite. */
static void seed_002_retry_after_is_honoured_and_jittered_upwards(void **state)
{
    struct bide_policy policy = policy_of(BIDE_PRESET_SERVICE);
    struct bide_call call;
    (void)state;
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct bide_request request = {.safety = BIDE_SAFE, .seed = seed};
        struct bide_outcome o = with_retry_after(bide_classify_http(503, NULL), "30");
        bide_call_begin(&call, &policy, BIDE_NO_TARGET, &request, 0);
        assert_in_range(bide_call_outcome(&call, 1, &o, 0).wake_ns, 30 * S, 33 * S);
    }
}

/* ---- budgets ---- */

static uint32_t affordable_retries(const struct bide_policy *policy, struct bide_target *target)
{
    struct bide_call call;
    uint32_t n = 0;
    while (n < 1000 && answer_get(&call, policy, target, failed, 0).action == BIDE_ACTION_WAIT)
        n++;
    return n;
}

static void seed_001_verify_4_after_100_retries_of_5_tokens_the_101st_is_refused(void **state)
{
    struct bide_policy policy = seed_001.policy;
    struct bide_target target;
    struct bide_call call;
    (void)state;
    target_of(&target, &seed_001.target, 0);
    assert_int_equal(bide_target_get(&target, 0).budget_left_milli, 500000);
    assert_int_equal(affordable_retries(&policy, &target), 100);
    assert_int_equal(answer_get(&call, &policy, &target, failed, 0).reason, BIDE_REASON_BUDGET_EMPTY);
}

/* "5 tokens per successful call refunded": its own code. (The SDKs it names refund 1, or the last charge: see the
 * AWS presets.) */
static void seed_001_each_success_buys_one_retry(void **state)
{
    struct bide_policy policy = seed_001.policy;
    struct bide_target target;
    struct bide_call call;
    (void)state;
    target_of(&target, &seed_001.target, 0);
    affordable_retries(&policy, &target);
    answer_get(&call, &policy, &target, good, 0);
    assert_int_equal(bide_target_get(&target, 0).budget_left_milli, 5000);
    assert_int_equal(affordable_retries(&policy, &target), 1);
}

/* "When the bucket empties, the client opens a circuit and returns a deterministic error immediately." */
static void seed_002_an_empty_budget_opens_the_circuit(void **state)
{
    struct bide_policy policy = policy_of(BIDE_PRESET_SERVICE);
    struct bide_target_config config;
    struct bide_target target;
    struct bide_call call;
    (void)state;
    bide_target_config_init(&config, BIDE_PRESET_SERVICE);
    config.breaker.kind = BIDE_BREAKER_BY_RUN;
    config.breaker.consecutive = 1000; /* so that failures do not open it */
    config.budget.on_empty = BIDE_ON_EMPTY_OPEN;
    assert_int_equal(bide_target_init(&target, &config, 0, NULL), BIDE_OK);
    assert_int_equal(affordable_retries(&policy, &target), 10);
    assert_int_equal(bide_call_begin(&call, &policy, &target, &get, 0).reason, BIDE_REASON_BREAKER_OPEN);
}

/* 20 % of the last minute's requests, the first ten free. Its code counts failed attempts only, so that it allows 20
 * % of the failures, and compares before it counts: 3 of 10. Here the limit is 20 % of the requests, and never more. */
static void seed_004_a_fifth_of_the_requests_may_be_retries_after_a_warm_up_of_ten(void **state)
{
    struct bide_policy policy = seed_004.policy;
    struct bide_target target;
    struct bide_call call;
    int64_t now_ns = 600 * S;
    (void)state;
    target_of(&target, &seed_004.target, now_ns);
    for (int i = 0; i < 9; i++)
        assert_int_equal(answer_get(&call, &policy, &target, failed, now_ns).action, BIDE_ACTION_WAIT);
    assert_int_equal(answer_get(&call, &policy, &target, failed, now_ns).reason,
                     BIDE_REASON_BUDGET_EMPTY); /* 10 of 10 */

    now_ns += 100 * S; /* a minute later all of it has expired */
    for (int i = 0; i < 100; i++)
        answer_get(&call, &policy, &target, good, now_ns);
    uint32_t retries = 0;
    while (answer_get(&call, &policy, &target, failed, now_ns).action == BIDE_ACTION_WAIT)
        retries++;
    assert_int_equal(retries, 25); /* of 125 */
}

/* "Disable retries for a cooldown period." */
static void seed_004_allows_no_retries_for_a_cooldown_after_a_refusal(void **state)
{
    struct bide_policy policy = seed_004.policy;
    struct bide_target target;
    struct bide_call call;
    (void)state;
    target_of(&target, &seed_004.target, 0);
    for (int i = 0; i < 10; i++)
        answer_get(&call, &policy, &target, failed, 0);
    for (int i = 0; i < 1000; i++)
        answer_get(&call, &policy, &target, good, 0);
    assert_int_equal(answer_get(&call, &policy, &target, failed, 10 * S - 1).reason, BIDE_REASON_BUDGET_EMPTY);
    assert_int_equal(answer_get(&call, &policy, &target, failed, 10 * S).action, BIDE_ACTION_WAIT);
}

/* "Without a budget every client burns through its 6 attempts, amplifying traffic by 6." */
static void seed_002_six_attempts_amplify_six_times_and_a_budget_stops_that(void **state)
{
    struct bide_policy policy = policy_of(BIDE_PRESET_SERVICE);
    struct bide_target_config config;
    struct bide_target target;
    uint32_t attempts[2] = {0, 0};
    (void)state;
    policy.attempts_max = 6;
    policy.backoff = BIDE_BACKOFF_NONE;
    bide_target_config_init(&config, BIDE_PRESET_SERVICE);
    target_of(&target, &config, 0);
    bide_breaker_hold(&target, BIDE_HOLD_CLOSED);
    for (uint32_t i = 0; i < 2000; i++) {
        struct bide_call call;
        struct bide_verdict v = bide_call_begin(&call, &policy, i % 2 ? &target : BIDE_NO_TARGET, &get, 0);
        while (v.action == BIDE_ACTION_START) {
            attempts[i % 2]++;
            v = bide_call_outcome(&call, v.attempt, &failed, 0);
            v = v.action == BIDE_ACTION_WAIT ? bide_call_wake(&call, 0) : v;
        }
    }
    assert_int_equal(attempts[0], 6000);
    assert_int_equal(attempts[1], 1010);
}

/* ---- PaySetu and CricStream ---- */

/* The document adds 4 * 150 ms + 3 * 2000 ms = 6.6 s. But with a base of 100 ms the three waits are at most 100, 200
 * and 400 ms; the cap of 2 s is never reached, and the call ends after 1.3 s. */
static void seed_003_paysetu_s_worst_case_is_1_3_seconds_and_not_6_6(void **state)
{
    struct bide_policy policy = paysetu.policy;
    struct bide_call call;
    int64_t now_ns = 0;
    (void)state;
    policy.jitter = BIDE_JITTER_NONE; /* the longest waits */
    struct bide_verdict v = bide_call_begin(&call, &policy, BIDE_NO_TARGET, &get, now_ns);
    while (v.action == BIDE_ACTION_START) {
        now_ns = v.attempt_deadline_ns;
        struct bide_outcome cut = {.kind = BIDE_KIND_TRANSIENT, .flags = BIDE_FLAG_TIMED_OUT};
        v = bide_call_outcome(&call, v.attempt, &cut, now_ns);
        if (v.action == BIDE_ACTION_WAIT) {
            now_ns = v.wake_ns;
            v = bide_call_wake(&call, now_ns);
        }
    }
    assert_int_equal(v.reason, BIDE_REASON_ATTEMPTS_SPENT);
    assert_int_equal(v.attempt, 4);
    assert_int_equal(now_ns, 150 * MS * 4 + 100 * MS + 200 * MS + 400 * MS);
    assert_true(now_ns <= 6600 * MS);
}

static void seed_003_paysetu_connects_in_30_ms_or_not_at_all(void **state)
{
    struct bide_policy policy = paysetu.policy;
    struct bide_call call;
    struct bide_verdict v = bide_call_begin(&call, &policy, BIDE_NO_TARGET, &get, S);
    (void)state;
    assert_int_equal(v.attempt_deadline_ns, S + 150 * MS);
    assert_int_equal(v.connect_deadline_ns, S + 30 * MS);
}

/* "Eight attempts with waits up to 10 s under a limit of 2 s cannot succeed": the deadline stops them. */
static void seed_003_waits_that_do_not_fit_the_deadline_are_not_started(void **state)
{
    struct bide_policy policy = paysetu.policy;
    struct bide_call call;
    int64_t now_ns = 0;
    (void)state;
    policy.attempts_max = 8;
    policy.cap_ns = 10 * S;
    policy.call_timeout_ns = 2 * S;
    policy.jitter = BIDE_JITTER_NONE;
    struct bide_verdict v = bide_call_begin(&call, &policy, BIDE_NO_TARGET, &get, now_ns);
    while (v.action == BIDE_ACTION_START) {
        now_ns = v.attempt_deadline_ns;
        v = bide_call_outcome(&call, v.attempt, &failed, now_ns);
        if (v.action == BIDE_ACTION_WAIT) {
            now_ns = v.wake_ns;
            v = bide_call_wake(&call, now_ns);
        }
    }
    assert_int_equal(v.reason, BIDE_REASON_DEADLINE_NEAR);
    assert_true(now_ns < 2 * S);
}

static enum bide_reason retry_segment(struct bide_target *target, const char *name, int64_t now_ns)
{
    struct bide_policy policy = cricstream.policy;
    struct bide_request request = {.safety = BIDE_SAFE, .retry_key = bide_hash(name, strlen(name))};
    struct bide_call call;
    bide_call_begin(&call, &policy, target, &request, now_ns);
    struct bide_verdict v = bide_call_outcome(&call, 1, &failed, now_ns);
    if (v.action != BIDE_ACTION_WAIT)
        return v.reason;
    now_ns = v.wake_ns;
    assert_int_equal(bide_call_wake(&call, now_ns).action, BIDE_ACTION_START);
    return bide_call_outcome(&call, 2, &failed, now_ns).reason; /* two attempts, no more */
}

static void seed_003_cricstream_retries_a_segment_once_in_30_seconds(void **state)
{
    struct bide_target target;
    (void)state;
    target_of(&target, &cricstream.target, 0);
    assert_int_equal(retry_segment(&target, "over-19-ball-6.ts", 100 * S), BIDE_REASON_ATTEMPTS_SPENT);
    assert_int_equal(retry_segment(&target, "over-19-ball-6.ts", 100 * S), BIDE_REASON_KEY_LIMIT);
    assert_int_equal(retry_segment(&target, "over-20-ball-1.ts", 100 * S), BIDE_REASON_ATTEMPTS_SPENT);
    assert_int_equal(retry_segment(&target, "over-19-ball-6.ts", 130 * S - 1), BIDE_REASON_KEY_LIMIT);
    assert_int_equal(retry_segment(&target, "over-19-ball-6.ts", 131 * S), BIDE_REASON_ATTEMPTS_SPENT);
}

/* "Retry-After: 5 says: wait 5 seconds before any caller retries." */
static void seed_003_cricstream_waits_at_least_as_long_as_retry_after(void **state)
{
    struct bide_policy policy = cricstream.policy;
    struct bide_call call;
    (void)state;
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct bide_request request = {.safety = BIDE_SAFE, .seed = seed};
        struct bide_outcome o = with_retry_after(failed, "5");
        bide_call_begin(&call, &policy, BIDE_NO_TARGET, &request, 0);
        assert_true(bide_call_outcome(&call, 1, &o, 0).wake_ns >= 5 * S);
    }
}

/* "Five retries with a 60 s timeout each can still run five minutes": five retries are six attempts, so six minutes. */
static void seed_004_s_five_retries_of_a_minute_are_six_minutes_and_a_deadline_ends_them_sooner(void **state)
{
    static const struct {
        int64_t deadline_ns, ended_ns;
    } table[] = {{BIDE_NEVER, 6 * BIDE_MINUTE}, {90 * S, 90 * S}};
    struct bide_policy policy = policy_of(BIDE_PRESET_SERVICE);
    (void)state;
    policy.attempts_max = 6;
    policy.attempt_timeout_ns = BIDE_MINUTE;
    policy.backoff = BIDE_BACKOFF_NONE;
    for (size_t i = 0; i < COUNT(table); i++) {
        struct bide_call call;
        int64_t now_ns = 0;
        policy.call_timeout_ns = table[i].deadline_ns;
        struct bide_verdict v = bide_call_begin(&call, &policy, BIDE_NO_TARGET, &get, now_ns);
        while (v.action == BIDE_ACTION_START) {
            now_ns = v.attempt_deadline_ns;
            v = bide_call_outcome(&call, v.attempt, &failed, now_ns);
            v = v.action == BIDE_ACTION_WAIT ? bide_call_wake(&call, now_ns) : v;
        }
        assert_int_equal(now_ns, table[i].ended_ns);
    }
}

/* ---- layers ---- */

/* Returns the number of requests to the leaf when every layer above it receives only failures. */
static uint32_t leaf_attempts(const struct bide_policy *policy, uint32_t layers, struct bide_layer inbound)
{
    struct bide_request request = {.safety = BIDE_SAFE};
    struct bide_call call;
    uint32_t n = 0;
    if (layers == 0)
        return 1;
    bide_layer_apply(&inbound, &request, 0);
    struct bide_verdict v = bide_call_begin(&call, policy, BIDE_NO_TARGET, &request, 0);
    while (v.action == BIDE_ACTION_START) {
        struct bide_layer own = {.attempt = v.attempt, .left_ns = BIDE_NEVER};
        n += leaf_attempts(policy, layers - 1, bide_layer_outbound(&request, own));
        v = bide_call_outcome(&call, v.attempt, &failed, 0);
        v = v.action == BIDE_ACTION_WAIT ? bide_call_wake(&call, 0) : v;
    }
    return n;
}

/* "Retries 3 times at three layers: 27" counts attempts: 3 each. Three retries are four attempts, and 64 requests
 * (as in the SRE book). Also, A, B and C above a leaf are three layers; A calls B calls C has two, and 9 requests. */
static void seeds_000_and_001_the_27_of_three_layers_counts_attempts_and_not_retries(void **state)
{
    static const struct {
        uint32_t attempts, layers, leaf;
    } table[] = {{3, 1, 3}, {3, 2, 9}, {3, 3, 27}, {4, 3, 64}, {3, 5, 243}, {2, 3, 8}};
    struct bide_policy policy = policy_of(BIDE_PRESET_SERVICE);
    (void)state;
    policy.layer = BIDE_LAYER_ANY;
    policy.backoff = BIDE_BACKOFF_NONE;
    for (size_t i = 0; i < COUNT(table); i++) {
        policy.attempts_max = table[i].attempts;
        assert_int_equal(leaf_attempts(&policy, table[i].layers, (struct bide_layer){0}), table[i].leaf);
    }
}

/* A layer that receives a retry does not retry: k attempts at n layers are 1 + n (k - 1) requests instead of k^n. */
static void layers_that_forward_the_attempt_add_up_and_do_not_multiply(void **state)
{
    static const struct {
        uint32_t attempts, layers, leaf;
    } table[] = {{3, 1, 3}, {3, 2, 5}, {3, 3, 7}, {4, 3, 10}, {3, 5, 11}};
    struct bide_policy policy = policy_of(BIDE_PRESET_SERVICE);
    (void)state;
    policy.backoff = BIDE_BACKOFF_NONE;
    for (size_t i = 0; i < COUNT(table); i++) {
        policy.attempts_max = table[i].attempts;
        assert_int_equal(leaf_attempts(&policy, table[i].layers, (struct bide_layer){0}), table[i].leaf);
    }
}

/* "Retry only at the outermost layer." */
static void a_caller_that_sends_no_retry_is_the_only_layer_to_retry(void **state)
{
    struct bide_policy policy = policy_of(BIDE_PRESET_SERVICE);
    struct bide_layer no_retry = {.attempt = 1, .left_ns = BIDE_NEVER, .no_retry = true};
    (void)state;
    policy.backoff = BIDE_BACKOFF_NONE;
    assert_int_equal(leaf_attempts(&policy, 2, no_retry),
                     1); /* with no-retry from the outermost layer, each of its attempts is one request */
    policy.layer = BIDE_LAYER_ANY;
    assert_int_equal(leaf_attempts(&policy, 2, no_retry), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seed_001_verify_1_a_503_is_retryable_and_a_400_is_not),
        cmocka_unit_test(the_statuses_that_the_seeds_agree_on_are_retried),
        cmocka_unit_test(seeds_000_and_002_list_5xx_but_501_and_505_are_not_retried),
        cmocka_unit_test(seed_000_a_conflict_is_retried_at_once_one_time),
        cmocka_unit_test(seeds_000_001_004_a_post_without_a_key_is_not_retried),
        cmocka_unit_test(seed_004_refuses_to_send_a_mutating_request_without_a_key),
        cmocka_unit_test(seed_004_documents_429_only_with_a_hint_but_retries_it_without),
        cmocka_unit_test(seed_000_backoff_without_jitter_waits_1_2_4_8_seconds),
        cmocka_unit_test(seed_000_s_max_retries_of_4_are_attempts),
        cmocka_unit_test(seed_000_waits_after_its_last_attempt_and_the_engine_does_not),
        cmocka_unit_test(seed_001_verify_2_full_jitter_lies_between_zero_and_the_ceiling),
        cmocka_unit_test(seed_001_an_uncapped_wait_would_be_twelve_days_and_the_cap_makes_it_half_a_minute),
        cmocka_unit_test(seed_002_s_eighth_wait_is_25_6_seconds_and_not_capped_as_documented),
        cmocka_unit_test(seed_004_calls_something_else_equal_jitter),
        cmocka_unit_test(seeds_001_002_003_decorrelated_jitter_grows_from_the_previous_wait),
        cmocka_unit_test(seed_004_s_floor_holds_and_waits_do_not_pile_up_on_it),
        cmocka_unit_test(seed_003_without_jitter_a_thousand_callers_return_in_the_same_instant),
        cmocka_unit_test(seed_001_verify_3_it_retries_on_503_gives_up_on_400_and_after_the_last_attempt),
        cmocka_unit_test(seed_001_verify_5_a_retry_after_of_5_waits_5_seconds_and_without_one_it_is_jitter),
        cmocka_unit_test(seed_002_retry_after_is_honoured_and_jittered_upwards),
        cmocka_unit_test(seed_001_verify_4_after_100_retries_of_5_tokens_the_101st_is_refused),
        cmocka_unit_test(seed_001_each_success_buys_one_retry),
        cmocka_unit_test(seed_002_an_empty_budget_opens_the_circuit),
        cmocka_unit_test(seed_004_a_fifth_of_the_requests_may_be_retries_after_a_warm_up_of_ten),
        cmocka_unit_test(seed_004_allows_no_retries_for_a_cooldown_after_a_refusal),
        cmocka_unit_test(seed_002_six_attempts_amplify_six_times_and_a_budget_stops_that),
        cmocka_unit_test(seed_003_paysetu_s_worst_case_is_1_3_seconds_and_not_6_6),
        cmocka_unit_test(seed_003_paysetu_connects_in_30_ms_or_not_at_all),
        cmocka_unit_test(seed_003_waits_that_do_not_fit_the_deadline_are_not_started),
        cmocka_unit_test(seed_003_cricstream_retries_a_segment_once_in_30_seconds),
        cmocka_unit_test(seed_003_cricstream_waits_at_least_as_long_as_retry_after),
        cmocka_unit_test(seed_004_s_five_retries_of_a_minute_are_six_minutes_and_a_deadline_ends_them_sooner),
        cmocka_unit_test(seeds_000_and_001_the_27_of_three_layers_counts_attempts_and_not_retries),
        cmocka_unit_test(layers_that_forward_the_attempt_add_up_and_do_not_multiply),
        cmocka_unit_test(a_caller_that_sends_no_retry_is_the_only_layer_to_retry),
    };
    return cmocka_run_group_tests(tests, read_policies, NULL);
}
