/* test_call_table.c - every event in every state of a call, as one table.
 *
 * A cell states the response of the call:
 *   "start 3 retry", "wait backoff", "done 2 succeeded", "give_up 2 permanent"   a verdict: action, attempt, reason
 *   "none", "none deadline"   no action now, but the state of the call has changed
 *   "-"                       no action and no change: not a byte of call or target, nor the timer
 *
 * begin is the constructor and ignores the previous contents of the memory; a driver that begins a call that has not
 * ended loses that call. In all states but the first two, attempt 1 has failed and was retried, and attempt 2 is the
 * current one; where it is hedged, attempt 3 runs beside it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
/* cmocka.h needs the first four */
#include <cmocka.h>

#include <bide/call.h>

#define COUNT(table) (sizeof(table) / sizeof *(table))
#define MS           BIDE_MS
#define S            BIDE_S
#define START        (100 * S)
#define DEADLINE     (60 * S) /* after START, for every call here */

enum state {
    NOT_BEGUN, /* a zeroed struct, which the other events need and begin does not */
    BEGUN,     /* the target is in hold-off before the first attempt */
    RUNNING,   /* attempt 2 is in flight, no hedge is planned */
    HEDGE_DUE, /* attempt 2 is in flight, and a timer is set for its hedge */
    HEDGED,    /* attempts 2 and 3 are in flight */
    WAITING,   /* attempt 2 has failed, attempt 3 will follow */
    GIVING_UP, /* attempt 2 has failed, the budget is empty, and a long poll waits before it gives up */
    ENDED,     /* attempt 2 has succeeded */
    STATES
};

struct fixture {
    struct bide_policy policy;
    struct bide_target target;
    struct bide_call call;
    int64_t now_ns;
    int64_t wake_ns; /* from the last verdict */
};

static struct bide_outcome outcome_of(enum bide_kind kind)
{
    return (struct bide_outcome){.kind = kind, .evidence = BIDE_EVIDENCE_ANSWERED};
}

static struct bide_verdict record(struct fixture *f, struct bide_verdict v)
{
    f->wake_ns = v.wake_ns;
    return v;
}

static struct bide_verdict begin(struct fixture *f)
{
    const struct bide_request request = {.safety = BIDE_SAFE, .seed = 1};
    return record(f, bide_call_begin(&f->call, &f->policy, &f->target, &request, f->now_ns));
}

static struct bide_verdict report(struct fixture *f, uint32_t attempt, enum bide_kind kind)
{
    struct bide_outcome outcome = outcome_of(kind);
    return record(f, bide_call_outcome(&f->call, attempt, &outcome, f->now_ns));
}

/* Wakes the call exactly when its timer fires. */
static struct bide_verdict wake_on_time(struct fixture *f)
{
    f->now_ns = f->wake_ns;
    return record(f, bide_call_wake(&f->call, f->now_ns));
}

/* Another call receives a Retry-After of 10 s. */
static void request_hold_off(struct fixture *f)
{
    struct bide_call other = {0};
    const struct bide_request request = {.safety = BIDE_SAFE, .seed = 2};
    struct bide_outcome outcome = outcome_of(BIDE_KIND_THROTTLED);
    outcome.hint = (struct bide_hint){BIDE_HINT_WAIT, 10 * S};
    bide_call_begin(&other, &f->policy, &f->target, &request, f->now_ns);
    bide_call_outcome(&other, 1, &outcome, f->now_ns);
    bide_call_cancel(&other, f->now_ns);
}

static void configure(struct fixture *f, enum state state)
{
    struct bide_target_config config;
    bide_policy_init(&f->policy, BIDE_PRESET_SERVICE);
    f->policy.attempts_max = 5;
    f->policy.base_ns = f->policy.cap_ns = 1 * S;
    f->policy.call_timeout_ns = DEADLINE;
    f->policy.hedges_max = state == HEDGE_DUE || state == HEDGED ? 1 : 0;
    f->policy.hedge_delay_ns = 500 * MS;
    f->policy.long_poll = state == GIVING_UP;
    bide_target_config_init(&config, BIDE_PRESET_SERVICE);
    config.hold_off_first = true;
    config.budget.capacity_milli = state == GIVING_UP ? 1000 : 10000;
    config.budget.refill_per_minute_milli = 0;
    assert_int_equal(bide_policy_check(&f->policy, NULL), BIDE_OK);
    assert_int_equal(bide_target_init(&f->target, &config, START, NULL), BIDE_OK);
}

/* Brings the call to attempt 2. */
static void reach_attempt_2(struct fixture *f)
{
    begin(f);
    report(f, 1, BIDE_KIND_TRANSIENT);
    assert_int_equal(wake_on_time(f).attempt, 2);
}

static void enter(struct fixture *f, enum state state)
{
    memset(f, 0, sizeof *f);
    f->now_ns = START;
    f->wake_ns = BIDE_NEVER;
    configure(f, state);
    switch (state) {
    case NOT_BEGUN: break;
    case BEGUN:
        request_hold_off(f);
        assert_int_equal(begin(f).reason, BIDE_REASON_HOLD_OFF);
        break;
    case RUNNING:
    case HEDGE_DUE: reach_attempt_2(f); break;
    case HEDGED:
        reach_attempt_2(f);
        assert_int_equal(wake_on_time(f).reason, BIDE_REASON_HEDGE);
        break;
    case WAITING:
        reach_attempt_2(f);
        assert_int_equal(report(f, 2, BIDE_KIND_TRANSIENT).reason, BIDE_REASON_BACKOFF);
        break;
    case GIVING_UP:
        reach_attempt_2(f);
        assert_int_equal(report(f, 2, BIDE_KIND_TRANSIENT).reason, BIDE_REASON_BUDGET_EMPTY);
        break;
    case ENDED:
        reach_attempt_2(f);
        assert_int_equal(report(f, 2, BIDE_KIND_OK).action, BIDE_ACTION_DONE);
        break;
    case STATES: break;
    }
}

/* -- events -------------------------------------------------------------------------------------------------------- */

enum op {
    BEGIN,
    WAKE_EARLY,    /* a nanosecond before the timer, or at any time when there is none */
    WAKE_DUE,      /* on time */
    WAKE_LATE,     /* two seconds late: the machine was suspended */
    WAKE_TOO_LATE, /* after the deadline of the call */
    CANCEL,
    REPORT, /* of an attempt, with a kind */
    DELIVERED
};

struct event {
    const char *name;
    enum op op;
    uint32_t attempt;
    enum bide_kind kind;
};

/* Without a timer, the wakes come at an arbitrary instant. */
static int64_t instant_of(const struct fixture *f, enum op op)
{
    int64_t due = f->wake_ns == BIDE_NEVER ? f->now_ns + 1 : f->wake_ns;
    switch (op) {
    case WAKE_EARLY: return due - 1;
    case WAKE_DUE: return due;
    case WAKE_LATE: return due + 2 * S;
    case WAKE_TOO_LATE: return START + DEADLINE;
    default: return f->now_ns;
    }
}

static struct bide_verdict send(struct fixture *f, const struct event *e)
{
    const struct bide_request request = {.safety = BIDE_SAFE, .seed = 3};
    struct bide_outcome outcome = outcome_of(e->kind);
    int64_t now = instant_of(f, e->op);
    switch (e->op) {
    case BEGIN: return bide_call_begin(&f->call, &f->policy, &f->target, &request, now);
    case CANCEL: return bide_call_cancel(&f->call, now);
    case DELIVERED:
        outcome.evidence = BIDE_EVIDENCE_BODY_DELIVERED;
        return bide_call_outcome(&f->call, e->attempt, &outcome, now);
    case REPORT: return bide_call_outcome(&f->call, e->attempt, &outcome, now);
    default: return bide_call_wake(&f->call, now);
    }
}

/* -- the table ----------------------------------------------------------------------------------------------------- */

#define OK        BIDE_KIND_OK
#define TRANSIENT BIDE_KIND_TRANSIENT
#define THROTTLED BIDE_KIND_THROTTLED
#define CONFLICT  BIDE_KIND_CONFLICT
#define PERMANENT BIDE_KIND_PERMANENT
#define CANCELLED BIDE_KIND_CANCELLED

static const struct event events[] = {
    {"begin", BEGIN, 0, 0},
    {"wake early", WAKE_EARLY, 0, 0},
    {"wake", WAKE_DUE, 0, 0},
    {"wake late", WAKE_LATE, 0, 0},
    {"wake after the deadline", WAKE_TOO_LATE, 0, 0},
    {"cancel", CANCEL, 0, 0},
    {"2 succeeds", REPORT, 2, OK},
    {"2 fails, transient", REPORT, 2, TRANSIENT},
    {"2 is throttled", REPORT, 2, THROTTLED},
    {"2 loses a race", REPORT, 2, CONFLICT},
    {"2 fails, permanent", REPORT, 2, PERMANENT},
    {"2 is cancelled", REPORT, 2, CANCELLED},
    {"2 delivered half", DELIVERED, 2, TRANSIENT},
    {"3 succeeds", REPORT, 3, OK},
    {"3 fails, transient", REPORT, 3, TRANSIENT},
    {"3 is throttled", REPORT, 3, THROTTLED},
    {"3 loses a race", REPORT, 3, CONFLICT},
    {"3 fails, permanent", REPORT, 3, PERMANENT},
    {"3 is cancelled", REPORT, 3, CANCELLED},
    {"3 delivered half", DELIVERED, 3, TRANSIENT},
};

/* A state and event that are not in this table must give "-". */
static const struct cell {
    enum state state;
    const char *event;
    const char *send_and_describe;
} table[] = {
    {NOT_BEGUN, "begin", "start 1 first_attempt"},

    {BEGUN, "begin", "wait hold_off"},
    {BEGUN, "wake", "start 1 first_attempt"},
    {BEGUN, "wake late", "wait late_wake"},
    {BEGUN, "wake after the deadline", "give_up 0 deadline"},
    {BEGUN, "cancel", "give_up 0 cancelled"},

    {RUNNING, "begin", "start 1 first_attempt"},
    {RUNNING, "cancel", "give_up 2 cancelled"},
    {RUNNING, "2 succeeds", "done 2 succeeded"},
    {RUNNING, "2 fails, transient", "wait backoff"},
    {RUNNING, "2 is throttled", "wait backoff"},
    {RUNNING, "2 loses a race", "wait conflict"},
    {RUNNING, "2 fails, permanent", "give_up 2 permanent"},
    {RUNNING, "2 is cancelled", "give_up 2 cancelled"},
    {RUNNING, "2 delivered half", "give_up 2 body_delivered"},

    {HEDGE_DUE, "begin", "start 1 first_attempt"},
    {HEDGE_DUE, "wake", "start 3 hedge"},
    {HEDGE_DUE, "wake late", "start 3 hedge"},
    {HEDGE_DUE, "wake after the deadline", "none deadline"},
    {HEDGE_DUE, "cancel", "give_up 2 cancelled"},
    {HEDGE_DUE, "2 succeeds", "done 2 succeeded"},
    {HEDGE_DUE, "2 fails, transient", "wait backoff"},
    {HEDGE_DUE, "2 is throttled", "wait backoff"},
    {HEDGE_DUE, "2 loses a race", "wait conflict"},
    {HEDGE_DUE, "2 fails, permanent", "give_up 2 permanent"},
    {HEDGE_DUE, "2 is cancelled", "give_up 2 cancelled"},
    {HEDGE_DUE, "2 delivered half", "give_up 2 body_delivered"},

    {HEDGED, "begin", "start 1 first_attempt"},
    {HEDGED, "cancel", "give_up 3 cancelled"},
    {HEDGED, "2 succeeds", "done 2 succeeded"},
    {HEDGED, "2 fails, transient", "none"},
    {HEDGED, "2 is throttled", "none"},
    {HEDGED, "2 loses a race", "none"},
    {HEDGED, "2 fails, permanent", "give_up 2 permanent"},
    {HEDGED, "2 is cancelled", "none"},
    {HEDGED, "2 delivered half", "give_up 2 body_delivered"},
    {HEDGED, "3 succeeds", "done 3 succeeded"},
    {HEDGED, "3 fails, transient", "none"},
    {HEDGED, "3 is throttled", "none"},
    {HEDGED, "3 loses a race", "none"},
    {HEDGED, "3 fails, permanent", "give_up 3 permanent"},
    {HEDGED, "3 is cancelled", "none"},
    {HEDGED, "3 delivered half", "give_up 3 body_delivered"},

    {WAITING, "begin", "start 1 first_attempt"},
    {WAITING, "wake", "start 3 retry"},
    {WAITING, "wake late", "wait late_wake"},
    {WAITING, "wake after the deadline", "give_up 2 deadline"},
    {WAITING, "cancel", "give_up 2 cancelled"},

    {GIVING_UP, "begin", "start 1 first_attempt"},
    {GIVING_UP, "wake", "give_up 2 budget_empty"},
    {GIVING_UP, "wake late", "give_up 2 budget_empty"},
    {GIVING_UP, "wake after the deadline", "give_up 2 budget_empty"},
    {GIVING_UP, "cancel", "give_up 2 cancelled"},

    {ENDED, "begin", "start 1 first_attempt"},
};

static const char *expected(enum state state, const char *event)
{
    for (size_t i = 0; i < COUNT(table); i++)
        if (table[i].state == state && strcmp(table[i].event, event) == 0)
            return table[i].send_and_describe;
    return "-";
}

static const char *const state_names[] = {"not begun", "begun",   "running",   "hedge due",
                                          "hedged",    "waiting", "giving up", "ended"};

static void print_verdict(char *text, size_t size, struct bide_verdict v)
{
    const char *what = bide_action_label(v.action), *reason = bide_reason_label(v.reason);
    if (v.action == BIDE_ACTION_NONE)
        snprintf(text, size, v.reason == BIDE_REASON_NOTHING ? "none" : "none %s", reason);
    else if (v.action == BIDE_ACTION_WAIT)
        snprintf(text, size, "wait %s", reason);
    else
        snprintf(text, size, "%s %u %s", what, (unsigned)v.attempt, reason);
}

/* Sends the event and describes the response in the language of the table: "-" if nothing changed at all. */
static void send_and_describe(struct fixture *f, const struct event *e, char *text, size_t size)
{
    static struct fixture before;
    before = *f;
    struct bide_verdict v = send(f, e);
    bool same = memcmp(&before.call, &f->call, sizeof f->call) == 0 &&
                memcmp(&before.target, &f->target, sizeof f->target) == 0 && v.wake_ns == before.wake_ns;
    print_verdict(text, size, v);
    if (same && strcmp(text, "none") == 0)
        snprintf(text, size, "-");
}

static void every_event_in_every_state_matches_the_table(void **state)
{
    static struct fixture f;
    size_t wrong = 0, found = 0;
    (void)state;
    for (size_t i = 0; i < COUNT(events) * STATES; i++) {
        const struct event *event = &events[i / STATES];
        enum state s = (enum state)(i % STATES);
        const char *wanted = expected(s, event->name);
        char got[64];
        enter(&f, s);
        send_and_describe(&f, event, got, sizeof got);
        found += strcmp(wanted, "-") != 0;
        if (strcmp(got, wanted) != 0) {
            print_error("%s, %s: expected \"%s\", got \"%s\"\n", state_names[s], event->name, wanted, got);
            wrong++;
        }
    }
    assert_int_equal(wrong, 0);
    assert_int_equal(found, COUNT(table)); /* every row of the table was used */
}

/* Outcomes of attempts that never existed or ended earlier, of any kind, in any state. */
static void reports_of_other_attempts_change_nothing_in_any_state(void **state)
{
    static const uint32_t others[] = {0, 1, 4, 5, 6, 33, UINT32_MAX};
    static struct fixture f;
    (void)state;
    for (int s = 0; s < STATES; s++)
        for (size_t i = 0; i < COUNT(others); i++)
            for (int kind = BIDE_KIND_PERMANENT; kind <= BIDE_KIND_OK; kind++) {
                const struct event e = {"", REPORT, others[i], (enum bide_kind)kind};
                char got[64];
                enter(&f, (enum state)s);
                send_and_describe(&f, &e, got, sizeof got);
                assert_string_equal(got, "-");
            }
}

/* After any event of the table, the same event again has no effect (an early wake returns the same timer again). */
static void a_repeated_event_returns_none(void **state)
{
    static struct fixture f;
    (void)state;
    for (size_t i = 0; i < COUNT(events); i++)
        for (int s = 0; s < STATES; s++) {
            const struct event *e = &events[i];
            char got[64];
            if (e->op == BEGIN)
                continue; /* begins a new call each time */
            enter(&f, (enum state)s);
            int64_t now = instant_of(&f, e->op);
            record(&f, send(&f, e));
            f.now_ns = now;
            if (e->op != WAKE_DUE && e->op != WAKE_LATE && e->op != WAKE_TOO_LATE) {
                send_and_describe(&f, e, got, sizeof got);
                assert_string_equal(got, "-");
            } else if (f.wake_ns == BIDE_NEVER || f.wake_ns > now) { /* at the same instant */
                struct bide_verdict v = bide_call_wake(&f.call, now);
                assert_int_equal(v.action, BIDE_ACTION_NONE);
                assert_true(v.wake_ns == f.wake_ns);
            }
        }
}

/* After the end every event, in any order, returns none. */
static void no_event_has_an_effect_after_the_end(void **state)
{
    static struct fixture f;
    (void)state;
    for (size_t first = 0; first < COUNT(events); first++)
        for (size_t second = 0; second < COUNT(events); second++) {
            char got[64];
            if (events[first].op == BEGIN || events[second].op == BEGIN)
                continue; /* begins a new call */
            enter(&f, ENDED);
            send_and_describe(&f, &events[first], got, sizeof got);
            assert_string_equal(got, "-");
            send_and_describe(&f, &events[second], got, sizeof got);
            assert_string_equal(got, "-");
        }
}

static void a_hedged_round_ends_when_both_attempts_have_failed(void **state)
{
    static struct fixture f;
    (void)state;
    for (uint32_t first = 2; first <= 3; first++) {
        enter(&f, HEDGED);
        assert_int_equal(report(&f, first, BIDE_KIND_TRANSIENT).action, BIDE_ACTION_NONE);
        struct bide_verdict v = report(&f, 5 - first, BIDE_KIND_TRANSIENT);
        assert_int_equal(v.action, BIDE_ACTION_WAIT);
        assert_int_equal(v.reason, BIDE_REASON_BACKOFF);
    }
}

/* With uninitialized memory, or that of an earlier call, a new call gives the same verdicts. */
static void begin_ignores_previous_memory_contents(void **state)
{
    static struct fixture clean, used;
    (void)state;
    for (int fill = 0; fill < 256; fill++) {
        enter(&clean, NOT_BEGUN);
        enter(&used, NOT_BEGUN);
        clean.policy.cap_ns = used.policy.cap_ns = 30 * S;
        clean.policy.jitter = used.policy.jitter = fill % 2 == 0 ? BIDE_JITTER_FULL : BIDE_JITTER_DECORRELATED;
        memset(&used.call, fill, sizeof used.call);
        assert_int_equal(begin(&used).action, begin(&clean).action);
        assert_int_equal(report(&used, 1, BIDE_KIND_TRANSIENT).wake_ns, report(&clean, 1, BIDE_KIND_TRANSIENT).wake_ns);
        assert_int_equal(wake_on_time(&used).attempt, wake_on_time(&clean).attempt);
        assert_int_equal(report(&used, 2, BIDE_KIND_CONFLICT).reason, report(&clean, 2, BIDE_KIND_CONFLICT).reason);
        assert_int_equal(bide_call_cancel(&used.call, used.now_ns).action, BIDE_ACTION_GIVE_UP);
        assert_int_equal(bide_call_cancel(&clean.call, clean.now_ns).action, BIDE_ACTION_GIVE_UP);
        assert_memory_equal(&used.target, &clean.target, sizeof clean.target);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_event_in_every_state_matches_the_table),
        cmocka_unit_test(reports_of_other_attempts_change_nothing_in_any_state),
        cmocka_unit_test(a_repeated_event_returns_none),
        cmocka_unit_test(no_event_has_an_effect_after_the_end),
        cmocka_unit_test(begin_ignores_previous_memory_contents),
        cmocka_unit_test(a_hedged_round_ends_when_both_attempts_have_failed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
