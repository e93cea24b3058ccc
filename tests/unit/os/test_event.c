/* test_event.c - each step of a call is reported once: every START has one end, every call has one last event. */
#include <bide/bide.h>

#include "seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define T0      (1000 * BIDE_S)
#define LOG_MAX 64

static const struct bide_outcome ok = {.kind = BIDE_KIND_OK, .evidence = BIDE_EVIDENCE_ANSWERED};
static const struct bide_outcome failed = {.kind = BIDE_KIND_TRANSIENT, .evidence = BIDE_EVIDENCE_ANSWERED};

/* What a listener received: the structs, with copies of what they point to. */
struct event_log {
    int count;
    struct bide_event event[LOG_MAX];
    struct bide_verdict verdict[LOG_MAX];
    struct bide_outcome outcome[LOG_MAX];
    struct bide_trace trace[LOG_MAX];
    bool has_outcome[LOG_MAX];
    char target[LOG_MAX][BIDE_TARGET_NAME_MAX + 1];
};

static void log_event(void *context, const struct bide_event *event)
{
    struct event_log *log = context;
    int i = log->count++;
    assert_true(i < LOG_MAX);
    log->event[i] = *event;
    log->verdict[i] = *event->verdict;
    log->has_outcome[i] = event->outcome != NULL;
    if (event->outcome != NULL)
        log->outcome[i] = *event->outcome;
    if (event->trace != NULL)
        log->trace[i] = *event->trace;
    snprintf(log->target[i], sizeof log->target[i], "%s", event->target);
}

/* A call that the test itself drives, reported to a log. */
struct driven {
    struct bide_policy policy;
    struct bide_call call;
    struct bide_report report;
    struct bide_verdict verdict;
    struct event_log log;
};

static void driven_step(struct driven *d, struct bide_verdict verdict, const struct bide_attempt_end *end, int64_t now)
{
    d->verdict = verdict;
    bide_report_verdict(&d->report, &verdict, end, now);
}

static void driven_begin_traced(struct driven *d, uint32_t hedges, const struct bide_trace *trace)
{
    static const struct bide_request get = {.safety = BIDE_SAFE, .seed = 7};
    struct bide_listener listener = {.event = log_event, .context = &d->log};
    *d = (struct driven){.log.count = 0};
    bide_policy_init(&d->policy, BIDE_PRESET_SERVICE);
    d->policy.hedges_max = hedges;
    d->policy.hedge_delay_ns = hedges > 0 ? 100 * BIDE_MS : d->policy.hedge_delay_ns;
    assert_true(bide_report_begin(
        &d->report, &(struct bide_report_call){.target_name = "payments", .listener = &listener, .trace = trace}, T0));
    driven_step(d, bide_call_begin(&d->call, &d->policy, BIDE_NO_TARGET, &get, T0), NULL, T0);
}

static void driven_begin(struct driven *d, uint32_t hedges)
{
    driven_begin_traced(d, hedges, NULL);
}

static void driven_end(struct driven *d, uint32_t attempt, const struct bide_outcome *outcome, int status, int64_t now)
{
    struct bide_attempt_end end = {.outcome = outcome, .attempt = attempt, .status = status};
    driven_step(d, bide_call_outcome(&d->call, attempt, outcome, now), &end, now);
}

static void driven_wake(struct driven *d)
{
    int64_t now = d->verdict.wake_ns;
    driven_step(d, bide_call_wake(&d->call, now), NULL, now);
}

static void driven_cancel(struct driven *d, int64_t now)
{
    driven_step(d, bide_call_cancel(&d->call, now), NULL, now);
}

/* The log as text: "start 1, wait after 1 transient, ...". */
static void assert_log(const struct event_log *log, const char *expected)
{
    char text[1024] = "";
    for (int i = 0; i < log->count; i++) {
        size_t used = strlen(text);
        const struct bide_event *event = &log->event[i];
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", i > 0 ? ", " : "",
                                 bide_action_label(log->verdict[i].action));
        if (log->has_outcome[i])
            snprintf(text + used, sizeof text - used, " after %u %s", event->attempt,
                     bide_kind_label(log->outcome[i].kind));
        else if (event->attempt > 0)
            snprintf(text + used, sizeof text - used, " %u", event->attempt);
    }
    assert_string_equal(text, expected);
}

/* ---- what an event says ---- */

static void events_name_target_call_attempt_status_and_instants(void **state)
{
    struct driven d;
    (void)state;
    driven_begin(&d, 0);
    driven_end(&d, 1, &failed, 503, T0 + 30 * BIDE_MS);
    int64_t second_ns = d.verdict.wake_ns;
    driven_wake(&d);
    driven_end(&d, 2, &ok, 200, second_ns + 20 * BIDE_MS);
    assert_log(&d.log, "start 1, wait after 1 transient, start 2, done after 2 ok");
    for (int i = 0; i < 4; i++) {
        assert_string_equal(d.log.target[i], "payments");
        assert_true(d.log.event[i].call_id != 0 && d.log.event[i].call_id == d.log.event[0].call_id);
        assert_int_equal(d.log.event[i].begin_ns, T0);
        assert_int_equal(d.log.event[i].start_ns, i < 2 ? T0 : second_ns);
        assert_int_equal(d.log.event[i].attempt_kind, BIDE_ATTEMPT_REGULAR);
        assert_null(d.log.event[i].trace);
    }
    assert_int_equal(d.log.event[1].now_ns, T0 + 30 * BIDE_MS);
    assert_int_equal(d.log.event[1].status, 503);
    assert_int_equal(d.log.event[1].delay_ns, 0);
    assert_int_equal(d.log.event[2].delay_ns, second_ns - T0 - 30 * BIDE_MS);
    assert_int_equal(d.log.event[3].delay_ns, second_ns - T0 - 30 * BIDE_MS);
    assert_int_equal(d.log.event[3].status, 200);
}

static void two_calls_have_different_ids(void **state)
{
    struct driven a, b;
    (void)state;
    driven_begin(&a, 0);
    driven_begin(&b, 0);
    assert_true(a.log.event[0].call_id != b.log.event[0].call_id);
}

static void a_target_name_beyond_the_limit_is_no_name(void **state)
{
    char name[BIDE_TARGET_NAME_MAX + 2];
    struct bide_report report;
    struct event_log log = {0};
    struct bide_listener listener = {.event = log_event, .context = &log};
    (void)state;
    memset(name, 'x', sizeof name);
    name[BIDE_TARGET_NAME_MAX + 1] = '\0';
    const char *given[] = {name, name + 1, NULL};
    for (size_t i = 0; i < 3; i++) {
        struct bide_verdict start = {.action = BIDE_ACTION_START, .attempt = 1};
        bide_report_begin(&report, &(struct bide_report_call){.target_name = given[i], .listener = &listener}, T0);
        bide_report_verdict(&report, &start, NULL, T0);
    }
    assert_string_equal(log.target[0], "");
    assert_string_equal(log.target[1], name + 1);
    assert_int_equal(log.event[1].target_length, BIDE_TARGET_NAME_MAX);
    assert_string_equal(log.target[2], "");
}

static void a_refused_call_has_one_event(void **state)
{
    static const struct bide_request late = {.safety = BIDE_SAFE, .seed = 7, .deadline_ns = T0 - 1};
    struct driven d;
    (void)state;
    driven_begin(&d, 0);
    d.log.count = 0;
    bide_report_begin(
        &d.report,
        &(struct bide_report_call){.listener = &(struct bide_listener){.event = log_event, .context = &d.log}}, T0);
    driven_step(&d, bide_call_begin(&d.call, &d.policy, BIDE_NO_TARGET, &late, T0), NULL, T0);
    assert_log(&d.log, "give_up");
    assert_int_equal(d.log.verdict[0].reason, BIDE_REASON_DEADLINE);
}

/* ---- one end for each start ---- */

static void a_hedge_that_lost_ends_as_cancelled_before_the_call(void **state)
{
    struct driven d;
    (void)state;
    driven_begin(&d, 1);
    driven_wake(&d);
    assert_int_equal(d.log.event[1].attempt_kind, BIDE_ATTEMPT_HEDGE);
    driven_end(&d, 1, &ok, 200, T0 + BIDE_S);
    assert_log(&d.log, "start 1, start 2, none after 2 cancelled, done after 1 ok");
    assert_int_equal(d.log.event[2].attempt_kind, BIDE_ATTEMPT_HEDGE);
    assert_int_equal(d.log.event[2].start_ns, T0 + 100 * BIDE_MS);
    assert_int_equal(d.log.event[2].now_ns, T0 + BIDE_S);
    assert_int_equal(d.log.event[3].attempt_kind, BIDE_ATTEMPT_REGULAR);
}

static void a_hedge_that_fails_first_ends_while_the_call_goes_on(void **state)
{
    struct driven d;
    (void)state;
    driven_begin(&d, 1);
    driven_wake(&d);
    driven_end(&d, 2, &failed, 503, T0 + 200 * BIDE_MS);
    driven_end(&d, 1, &ok, 200, T0 + BIDE_S);
    assert_log(&d.log, "start 1, start 2, none after 2 transient, done after 1 ok");
}

static void cancellation_ends_every_running_attempt(void **state)
{
    struct driven d;
    (void)state;
    driven_begin(&d, 2);
    driven_wake(&d);
    driven_wake(&d);
    driven_cancel(&d, T0 + BIDE_S);
    assert_log(&d.log, "start 1, start 2, start 3, none after 1 cancelled, none after 2 cancelled, "
                       "none after 3 cancelled, give_up");
}

static void late_and_repeated_ends_are_ignored(void **state)
{
    struct driven d;
    (void)state;
    driven_begin(&d, 0);
    driven_end(&d, 1, &failed, 503, T0 + BIDE_S);
    driven_end(&d, 1, &failed, 503, T0 + BIDE_S);
    driven_end(&d, 9, &failed, 503, T0 + BIDE_S);
    driven_cancel(&d, T0 + BIDE_S);
    driven_cancel(&d, T0 + BIDE_S);
    driven_end(&d, 1, &ok, 200, T0 + 2 * BIDE_S);
    assert_log(&d.log, "start 1, wait after 1 transient, give_up");
}

static void a_refused_hedge_is_reported_with_its_gate(void **state)
{
    struct driven d;
    (void)state;
    driven_begin(&d, 1);
    d.call.deadline_ns = T0 + 50 * BIDE_MS; /* passed when the hedge is due */
    driven_wake(&d);
    assert_log(&d.log, "start 1, none");
    assert_int_equal(d.log.verdict[1].reason, BIDE_REASON_DEADLINE);
    assert_int_equal(d.log.event[1].attempt, 0);
}

static void an_attempt_repeated_after_a_401_is_a_refresh(void **state)
{
    static const struct bide_outcome denied = {.evidence = BIDE_EVIDENCE_ANSWERED};
    static const struct bide_verdict none;
    struct driven d;
    (void)state;
    driven_begin(&d, 0);
    struct bide_verdict start = d.verdict;
    driven_step(&d, none, &(struct bide_attempt_end){&denied, 1, 401}, T0 + BIDE_S);
    driven_step(&d, start, NULL, T0 + BIDE_S);
    driven_end(&d, 1, &ok, 200, T0 + 2 * BIDE_S);
    assert_log(&d.log, "start 1, none after 1 permanent, start 1, done after 1 ok");
    assert_int_equal(d.log.event[1].attempt_kind, BIDE_ATTEMPT_REGULAR);
    assert_int_equal(d.log.event[2].attempt_kind, BIDE_ATTEMPT_REFRESH);
    assert_int_equal(d.log.event[3].attempt_kind, BIDE_ATTEMPT_REFRESH);
    assert_int_equal(d.log.event[3].start_ns, T0 + BIDE_S);
}

/* Drives calls by random events, also by events that no driver would send. */
static void random_calls_end_each_start_once_from(uint64_t seed)
{
    static const struct bide_outcome *const outcomes[] = {&ok, &failed, &failed, &failed};
    static int ends[16];
    for (int trial = 0; trial < SEED_TRIALS(20000); trial++) {
        struct driven d;
        int64_t now = T0;
        driven_begin(&d, (uint32_t)(seed % 4));
        for (int step = 0; step < 12 && d.call.attempt < 12; step++) {
            seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            uint64_t draw = seed >> 33;
            now += (int64_t)(draw % 50) * BIDE_MS;
            if (draw % 3 == 0 && d.verdict.wake_ns != BIDE_NEVER) {
                now = d.verdict.wake_ns > now ? d.verdict.wake_ns : now;
                driven_step(&d, bide_call_wake(&d.call, now), NULL, now);
            } else if (draw % 17 == 0) {
                driven_cancel(&d, now);
            } else {
                driven_end(&d, (uint32_t)(draw / 64 % (d.call.attempt + 2)), outcomes[draw / 4096 % 4], 0, now);
            }
        }
        driven_cancel(&d, now);
        memset(ends, 0, sizeof ends);
        for (int i = 0; i < d.log.count; i++) {
            bool last = d.log.verdict[i].action == BIDE_ACTION_DONE || d.log.verdict[i].action == BIDE_ACTION_GIVE_UP;
            assert_int_equal(last, i == d.log.count - 1);
            if (d.log.verdict[i].action == BIDE_ACTION_START)
                ends[d.log.event[i].attempt]++;
            if (d.log.has_outcome[i])
                assert_int_equal(--ends[d.log.event[i].attempt], 0);
        }
        for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
            assert_int_equal(ends[i], 0);
    }
}

static void random_calls_end_each_start_once(void **state)
{
    (void)state;
    seed_each(UINT64_C(0x6576656e74), random_calls_end_each_start_once_from);
}

/* ---- traces ---- */

static bool sample_all(void *context, const struct bide_trace *trace)
{
    (void)context, (void)trace;
    return true;
}

static void each_attempt_has_a_parent_id_of_its_own_in_the_trace_of_the_call(void **state)
{
    static const struct bide_trace inbound = {.trace_hi = 1, .trace_lo = 2, .parent = 3, .flags = BIDE_TRACE_SAMPLED};
    struct driven d;
    (void)state;
    driven_begin_traced(&d, 0, &inbound);
    struct bide_trace sent = bide_report_trace(&d.report, 1);
    driven_end(&d, 1, &failed, 503, T0);
    assert_int_equal(bide_report_trace(&d.report, 1).trace_lo, 0); /* it no longer runs */
    assert_int_equal(bide_report_trace(&d.report, 0).trace_lo, 0);
    driven_wake(&d);
    driven_cancel(&d, T0 + BIDE_S);
    assert_log(&d.log, "start 1, wait after 1 transient, start 2, none after 2 cancelled, give_up");
    for (int i = 0; i < d.log.count; i++) {
        assert_non_null(d.log.event[i].trace);
        assert_true(d.log.trace[i].trace_hi == 1 && d.log.trace[i].trace_lo == 2);
        assert_int_equal(d.log.trace[i].flags, BIDE_TRACE_SAMPLED);
    }
    assert_true(sent.parent != 3 && sent.parent != 0);
    assert_true(d.log.trace[0].parent == sent.parent && d.log.trace[1].parent == sent.parent);
    assert_true(d.log.trace[2].parent != sent.parent && d.log.trace[3].parent == d.log.trace[2].parent);
    assert_int_equal(d.log.trace[4].parent, 3);
    for (int i = 0; i < d.log.count; i++)
        assert_int_equal(d.log.event[i].inbound_id, 3);
}

static void a_call_gets_a_trace_if_the_listener_of_the_process_records_traces(void **state)
{
    static const struct bide_listener listener = {.sample = sample_all};
    struct driven d;
    (void)state;
    assert_int_equal(bide_listen(&listener), BIDE_OK);
    driven_begin(&d, 0);
    bide_listen(NULL);
    driven_end(&d, 1, &ok, 200, T0);
    assert_log(&d.log, "start 1, done after 1 ok");
    for (int i = 0; i < d.log.count; i++) {
        assert_non_null(d.log.event[i].trace);
        assert_int_equal(d.log.trace[i].flags, BIDE_TRACE_SAMPLED | BIDE_TRACE_RANDOM);
        assert_int_equal(d.log.event[i].inbound_id, 0);
        assert_true(d.log.trace[i].parent != 0 && d.log.trace[i].parent != d.log.event[i].call_id);
    }
}

static void about_put(void *context, struct bide_call_about *about)
{
    about->method = context;
}

static void an_event_describes_its_call_on_request(void **state)
{
    struct event_log log = {.count = 0};
    struct bide_listener listener = {.event = log_event, .context = &log};
    char method[] = "GET";
    struct bide_report report;
    struct bide_verdict verdict = {.action = BIDE_ACTION_START, .attempt = 1};
    struct bide_call_about about = {0};
    (void)state;
    bide_report_begin(
        &report, &(struct bide_report_call){.listener = &listener, .about = about_put, .about_context = method}, T0);
    bide_report_verdict(&report, &verdict, NULL, T0);
    log.event[0].about(log.event[0].about_context, &about);
    assert_string_equal(about.method, "GET");
    assert_null(about.url);
}

static bool sample_even_ids(void *context, const struct bide_trace *trace)
{
    (void)context;
    return trace->trace_lo % 2 == 0;
}

static void the_listener_of_the_process_decides_whether_a_new_trace_is_sampled(void **state)
{
    static const struct bide_listener listener = {.sample = sample_even_ids};
    (void)state;
    assert_int_equal(bide_trace_new().flags, BIDE_TRACE_RANDOM);
    assert_int_equal(bide_listen(&listener), BIDE_OK);
    for (int i = 0; i < 100; i++) {
        struct bide_trace trace = bide_trace_new();
        assert_int_equal(trace.flags & BIDE_TRACE_SAMPLED, trace.trace_lo % 2 == 0 ? BIDE_TRACE_SAMPLED : 0);
    }
    bide_listen(NULL);
}

/* ---- the listener of the process ---- */

static struct event_log process_log;
static const struct bide_listener process_listener = {.event = log_event, .context = &process_log};

static void the_listener_of_the_process_gets_the_events_of_calls_that_begin_under_it(void **state)
{
    struct driven before, during;
    (void)state;
    process_log.count = 0;
    driven_begin(&before, 0);
    assert_int_equal(bide_listen(&process_listener), BIDE_OK);
    driven_begin(&during, 0);
    bide_listen(NULL);
    driven_cancel(&before, T0);
    driven_cancel(&during, T0);
    assert_log(&process_log, "start 1, none after 1 cancelled, give_up");
    assert_log(&during.log, "start 1, none after 1 cancelled, give_up");
    assert_log(&before.log, "start 1, none after 1 cancelled, give_up");
    assert_int_equal(process_log.event[0].call_id, during.log.event[0].call_id);
}

static void a_process_has_one_listener(void **state)
{
    static const struct bide_listener other = {.event = log_event, .context = &process_log};
    (void)state;
    assert_null(bide_listener_get());
    assert_int_equal(bide_listen(&process_listener), BIDE_OK);
    assert_int_equal(bide_listen(&process_listener), BIDE_OK);
    assert_int_equal(bide_listen(&other), BIDE_ERR_BUSY);
    assert_ptr_equal(bide_listener_get(), &process_listener);
    assert_int_equal(bide_listen(NULL), BIDE_OK);
    assert_int_equal(bide_listen(&other), BIDE_OK);
    assert_int_equal(bide_listen(NULL), BIDE_OK);
}

static void without_a_listener_reports_are_ignored(void **state)
{
    struct bide_report report;
    struct bide_verdict start = {.action = BIDE_ACTION_START, .attempt = 1};
    (void)state;
    assert_false(bide_report_begin(&report, &(struct bide_report_call){.target_name = "payments"}, T0));
    bide_report_verdict(&report, &start, NULL, T0);
    assert_int_equal(bide_report_trace(&report, 1).trace_lo, 0);
}

static struct bide_outcome succeed(void *context, const struct bide_verdict *start)
{
    (void)context;
    (void)start;
    return ok;
}

static void bide_run_reports_to_the_listener_of_the_process(void **state)
{
    struct bide_job job = {.name = "inventory", .target = BIDE_NO_TARGET, .attempt = succeed};
    (void)state;
    process_log.count = 0;
    assert_int_equal(bide_listen(&process_listener), BIDE_OK);
    bide_run(&job);
    job.name = NULL;
    bide_run(&job);
    bide_listen(NULL);
    assert_log(&process_log, "start 1, done after 1 ok, start 1, done after 1 ok");
    assert_string_equal(process_log.target[0], "inventory");
    assert_string_equal(process_log.target[2], ""); /* a target without a name */
    assert_true(process_log.event[0].call_id != process_log.event[2].call_id);
}

static struct bide_meter *one_meter(void *context, const struct bide_report_call *call)
{
    (void)context, (void)call;
    return NULL;
}

static struct bide_meter *other_meter(void *context, const struct bide_report_call *call)
{
    (void)call;
    return context;
}

static void a_process_has_one_function_that_finds_meters(void **state)
{
    static const struct bide_listener one = {.meter = one_meter}, other = {.meter = other_meter};
    (void)state;
    assert_int_equal(bide_listen(&one), BIDE_OK);
    bide_listen(NULL);
    assert_int_equal(bide_listen(&other), BIDE_ERR_BUSY);
    assert_null(bide_listener_get());
    assert_int_equal(bide_listen(&one), BIDE_OK);
    bide_listen(NULL);
    assert_int_equal(bide_listen(&process_listener), BIDE_OK);
    bide_listen(NULL);
}

/* ---- a listener that wants ends only ---- */

static bool sample_odd(void *context, const struct bide_trace *trace)
{
    (void)context;
    return (trace->trace_lo & 1) != 0;
}

/* A call that succeeds at once, with a listener of the process that samples. `sent` receives what its attempt sends. */
static void run_at_once(struct event_log *log, const struct bide_trace *trace, struct bide_trace *sent)
{
    static struct bide_listener process;
    struct bide_report report;
    struct bide_verdict start = {.action = BIDE_ACTION_START, .attempt = 1};
    struct bide_verdict done = {.action = BIDE_ACTION_DONE, .reason = BIDE_REASON_SUCCEEDED, .attempt = 1};
    process = (struct bide_listener){.event = log_event, .sample = sample_odd, .context = log, .ends_only = true};
    assert_int_equal(bide_listen(&process), BIDE_OK);
    assert_true(bide_report_begin(&report, &(struct bide_report_call){.target_name = "inventory", .trace = trace}, T0));
    assert_int_equal(bide_report_trace(&report, 1).trace_lo, 0);
    bide_report_verdict(&report, &start, NULL, T0);
    if (sent != NULL)
        *sent = bide_report_trace(&report, 1);
    bide_report_verdict(&report, &done, &(struct bide_attempt_end){.outcome = &ok, .attempt = 1}, T0 + 5);
    bide_listen(NULL);
}

static void assert_same_trace(const struct bide_trace *a, const struct bide_trace *b)
{
    assert_true(a->trace_hi == b->trace_hi && a->trace_lo == b->trace_lo);
    assert_true(a->parent == b->parent && a->flags == b->flags);
}

static void a_call_that_succeeds_at_once_is_one_event_if_ends_only_are_wanted(void **state)
{
    struct bide_trace sent;
    (void)state;
    for (int i = 0; i < 8; i++) {
        struct event_log log = {0};
        run_at_once(&log, NULL, i % 2 == 0 ? &sent : NULL);
        assert_int_equal(log.count, 1);
        const struct bide_event *event = &log.event[0];
        assert_string_equal(log.target[0], "inventory");
        assert_true(log.has_outcome[0] && log.verdict[0].action == BIDE_ACTION_DONE);
        assert_true(event->begin_ns == T0 && event->start_ns == T0 && event->now_ns == T0 + 5);
        assert_true(event->attempt == 1 && event->attempts == 1 && event->delay_ns == 0 && event->inbound_id == 0);
        assert_true(event->call_id != 0 && log.trace[0].parent != 0 && event->call_id != log.trace[0].parent);
        assert_int_equal(log.trace[0].flags & BIDE_TRACE_SAMPLED, log.trace[0].trace_lo & 1);
        if (i % 2 == 0)
            assert_same_trace(&sent, &log.trace[0]);
    }
}

static void the_listener_decides_about_a_continued_trace(void **state)
{
    (void)state;
    for (uint8_t i = 0; i < 4; i++) {
        struct event_log log = {0};
        struct bide_trace sent, inbound = {.trace_hi = 5, .trace_lo = 6u + i % 2, .parent = 9, .flags = i / 2};
        run_at_once(&log, &inbound, &sent);
        assert_int_equal(log.event[0].inbound_id, 9);
        assert_true(log.trace[0].trace_hi == 5 && log.trace[0].trace_lo == 6u + i % 2);
        assert_int_equal(sent.flags & BIDE_TRACE_SAMPLED, i % 2);
    }
}

static void a_call_that_fails_at_once_keeps_the_ids_of_its_attempts(void **state)
{
    static struct bide_listener process;
    struct event_log log = {0};
    struct bide_report report;
    struct bide_verdict start = {.action = BIDE_ACTION_START, .attempt = 1}, again = start;
    struct bide_verdict give_up = {.action = BIDE_ACTION_GIVE_UP, .reason = BIDE_REASON_PERMANENT, .attempt = 2};
    (void)state;
    again.attempt = 2;
    process = (struct bide_listener){.event = log_event, .sample = sample_odd, .context = &log, .ends_only = true};
    assert_int_equal(bide_listen(&process), BIDE_OK);
    bide_report_begin(&report, &(struct bide_report_call){.target_name = "inventory"}, T0);
    bide_report_verdict(&report, &start, NULL, T0);
    struct bide_trace first = bide_report_trace(&report, 1);
    bide_report_verdict(&report, &again, &(struct bide_attempt_end){.outcome = &failed, .attempt = 1}, T0 + 1);
    bide_report_verdict(&report, &again, NULL, T0 + 2);
    struct bide_trace second = bide_report_trace(&report, 2);
    bide_report_verdict(&report, &give_up, &(struct bide_attempt_end){.outcome = &failed, .attempt = 2}, T0 + 3);
    bide_listen(NULL);
    assert_int_equal(log.count, 2); /* two ends, no START */
    assert_same_trace(&log.trace[0], &first);
    assert_same_trace(&log.trace[1], &second);
    assert_true(first.parent != second.parent && log.event[0].call_id == log.event[1].call_id);
    assert_int_equal(log.event[1].delay_ns, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_name_target_call_attempt_status_and_instants),
        cmocka_unit_test(two_calls_have_different_ids),
        cmocka_unit_test(a_target_name_beyond_the_limit_is_no_name),
        cmocka_unit_test(a_refused_call_has_one_event),
        cmocka_unit_test(a_hedge_that_lost_ends_as_cancelled_before_the_call),
        cmocka_unit_test(a_hedge_that_fails_first_ends_while_the_call_goes_on),
        cmocka_unit_test(cancellation_ends_every_running_attempt),
        cmocka_unit_test(late_and_repeated_ends_are_ignored),
        cmocka_unit_test(a_refused_hedge_is_reported_with_its_gate),
        cmocka_unit_test(an_attempt_repeated_after_a_401_is_a_refresh),
        cmocka_unit_test(random_calls_end_each_start_once),
        cmocka_unit_test(each_attempt_has_a_parent_id_of_its_own_in_the_trace_of_the_call),
        cmocka_unit_test(a_call_gets_a_trace_if_the_listener_of_the_process_records_traces),
        cmocka_unit_test(an_event_describes_its_call_on_request),
        cmocka_unit_test(the_listener_of_the_process_decides_whether_a_new_trace_is_sampled),
        cmocka_unit_test(the_listener_of_the_process_gets_the_events_of_calls_that_begin_under_it),
        cmocka_unit_test(a_process_has_one_listener),
        cmocka_unit_test(without_a_listener_reports_are_ignored),
        cmocka_unit_test(bide_run_reports_to_the_listener_of_the_process),
        cmocka_unit_test(a_process_has_one_function_that_finds_meters),
        cmocka_unit_test(a_call_that_succeeds_at_once_is_one_event_if_ends_only_are_wanted),
        cmocka_unit_test(the_listener_decides_about_a_continued_trace),
        cmocka_unit_test(a_call_that_fails_at_once_keeps_the_ids_of_its_attempts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
