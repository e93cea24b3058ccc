/* event.c - reports each step of a call to the listeners: see bide/event.h.
 *
 * A report keeps the attempts in flight, at most one round of them (an attempt and its hedges), so that each START is
 * matched by one end: an end without a running attempt is ignored, and at the end of the call every attempt that still
 * runs is reported as cancelled. */
#include <bide/entropy.h>
#include <bide/event.h>

#include <assert.h>
#include <string.h>

#define RUNNING_MAX (1 + BIDE_HEDGES_MAX)

/* ---- the listener of the process ---- */

static const struct bide_listener *process_listener;

enum bide_err bide_listen(const struct bide_listener *listener)
{
    const struct bide_listener *none = NULL;
    if (listener == NULL) {
        __atomic_store_n(&process_listener, NULL, __ATOMIC_RELAXED);
        return BIDE_OK;
    }
    bool was_free =
        __atomic_compare_exchange_n(&process_listener, &none, listener, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    return was_free || none == listener ? BIDE_OK : BIDE_ERR_BUSY;
}

const struct bide_listener *bide_listener_get(void)
{
    return __atomic_load_n(&process_listener, __ATOMIC_ACQUIRE);
}

/* ---- the report of a call ---- */

bool bide_report_begin(struct bide_report *report, const struct bide_report_call *call, int64_t now_ns)
{
    const struct bide_listener *process = bide_listener_get();
    *report = (struct bide_report){.process = process, .call_id = bide_seed(), .begin_ns = now_ns};
    if (call->listener != NULL)
        report->own = *call->listener;
    if (call->trace != NULL)
        report->trace = *call->trace;
    if (call->target != NULL && strnlen(call->target, sizeof report->target) < sizeof report->target)
        memcpy(report->target, call->target, strlen(call->target));
    report->is_over = report->own.event == NULL && (process == NULL || process->event == NULL);
    return !report->is_over;
}

static struct bide_report_attempt *report_find(struct bide_report *report, uint32_t number)
{
    for (size_t i = 0; i < RUNNING_MAX; i++)
        if (report->running[i].number == number)
            return &report->running[i];
    return NULL;
}

static bool report_has_trace(const struct bide_report *report)
{
    return (report->trace.trace_hi | report->trace.trace_lo) != 0;
}

/* Passes an event to the listeners. attempt: the attempt that starts or has ended; NULL: none. */
static void report_send(struct bide_report *report, struct bide_event event, const struct bide_report_attempt *attempt)
{
    struct bide_trace trace = report->trace;
    event.target = report->target;
    event.call_id = report->call_id;
    event.begin_ns = report->begin_ns;
    event.trace = report_has_trace(report) ? &trace : NULL;
    if (attempt != NULL) {
        event.attempt = attempt->number;
        event.attempt_kind = attempt->kind;
        event.start_ns = attempt->start_ns;
        trace.parent = attempt->span;
    }
    if (report->own.event != NULL)
        report->own.event(report->own.context, &event);
    if (report->process != NULL && report->process->event != NULL)
        report->process->event(report->process->context, &event);
}

static void report_start(struct bide_report *report, const struct bide_verdict *verdict, int64_t now_ns)
{
    struct bide_report_attempt *attempt = report_find(report, 0);
    assert(attempt != NULL && verdict->attempt > 0); /* a round has RUNNING_MAX attempts at most */
    if (attempt == NULL)
        return;
    *attempt = (struct bide_report_attempt){.start_ns = now_ns, .number = verdict->attempt};
    if (report_has_trace(report))
        attempt->span = bide_seed();
    if (verdict->attempt <= report->attempts)
        attempt->kind = BIDE_ATTEMPT_REFRESH;
    else if (verdict->reason == BIDE_REASON_HEDGE)
        attempt->kind = BIDE_ATTEMPT_HEDGE;
    if (verdict->attempt > report->attempts)
        report->attempts = verdict->attempt;
    report_send(report, (struct bide_event){.verdict = verdict, .now_ns = now_ns, .ended_ns = report->ended_ns},
                attempt);
}

/* Reports the end of a running attempt, and with it the verdict. */
static void report_end(struct bide_report *report, const struct bide_verdict *verdict,
                       const struct bide_attempt_end *end, int64_t now_ns)
{
    struct bide_report_attempt *running = report_find(report, end->attempt);
    struct bide_report_attempt ended = *running;
    *running = (struct bide_report_attempt){0};
    report->ended_ns = now_ns;
    report_send(
        report,
        (struct bide_event){.verdict = verdict, .outcome = end->outcome, .status = end->status, .now_ns = now_ns},
        &ended);
}

/* The call has ended: the attempts that still run are cut. `last` is the number of the attempt whose end ended the
 * call, or 0. */
static void report_cut_attempts(struct bide_report *report, uint32_t last, int64_t now_ns)
{
    static const struct bide_outcome cancelled = {.kind = BIDE_KIND_CANCELLED, .evidence = BIDE_EVIDENCE_UNKNOWN};
    static const struct bide_verdict none = {
        .wake_ns = BIDE_NEVER, .attempt_deadline_ns = BIDE_NEVER, .connect_deadline_ns = BIDE_NEVER};
    for (size_t i = 0; i < RUNNING_MAX; i++) {
        uint32_t number = report->running[i].number;
        if (number != 0 && number != last)
            report_end(report, &none, &(struct bide_attempt_end){.outcome = &cancelled, .attempt = number}, now_ns);
    }
}

void bide_report_verdict(struct bide_report *report, const struct bide_verdict *verdict,
                         const struct bide_attempt_end *end, int64_t now_ns)
{
    if (report->is_over)
        return;
    bool ended = end != NULL && end->attempt > 0 && report_find(report, end->attempt) != NULL;
    report->is_over = verdict->action == BIDE_ACTION_DONE || verdict->action == BIDE_ACTION_GIVE_UP;
    if (report->is_over)
        report_cut_attempts(report, ended ? end->attempt : 0, now_ns);
    if (ended)
        report_end(report, verdict, end, now_ns);
    else if (verdict->action == BIDE_ACTION_START)
        report_start(report, verdict, now_ns);
    else if (verdict->action != BIDE_ACTION_NONE || verdict->reason != BIDE_REASON_NOTHING)
        report_send(report, (struct bide_event){.verdict = verdict, .now_ns = now_ns}, NULL);
}

struct bide_trace bide_report_trace(const struct bide_report *report, uint32_t attempt)
{
    struct bide_trace trace = report->trace;
    for (size_t i = 0; i < RUNNING_MAX; i++)
        if (attempt > 0 && report->running[i].number == attempt && report_has_trace(report)) {
            trace.parent = report->running[i].span;
            return trace;
        }
    return (struct bide_trace){0};
}
