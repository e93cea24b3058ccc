/* event.c - reports each step of a call to its meter and to the listeners: see bide/event.h.
 *
 * A report keeps the attempts in flight, at most one round of them (an attempt and its hedges), so that each START is
 * matched by one end: an end without a running attempt is ignored, and at the end of the call every attempt that still
 * runs is reported as cancelled.
 *
 * Fast path: a call that succeeds by its first attempt, which started when the call began, and whose only listener of
 * events, if any, is that of the process and wants ends only. Then the end of the attempt and of the call are one count
 * and one event.
 *
 * The ids of the attempts' spans are computed from the call's, so that none of them is stored or drawn. */
#include <bide/entropy.h>
#include <bide/event.h>

#include "core/random.h"
#include "entropy.h"
#include "meter.h"

#include <assert.h>
#include <string.h>

#define RUNNING_MAX (1 + BIDE_HEDGES_MAX)
#define OUT_OF_LINE static __attribute__((noinline)) /* the fast path needs no frame for it */

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

/* Draws a trace id. Both halves are 0, which would mean "no trace", once in 2^128 draws. */
static inline void trace_draw(struct bide_trace *trace, const struct bide_listener *listener)
{
    os_draw_pair(&trace->trace_hi, &trace->trace_lo);
    trace->parent = 0;
    trace->flags = BIDE_TRACE_RANDOM;
    if (listener != NULL && listener->sample != NULL && listener->sample(listener->context, trace))
        trace->flags = BIDE_TRACE_RANDOM | BIDE_TRACE_SAMPLED;
}

/* Here and not with the rest of trace.h, because the listener decides about its sampled flag. */
struct bide_trace bide_trace_new(void)
{
    struct bide_trace trace;
    trace_draw(&trace, bide_listener_get());
    return trace;
}

/* ---- the report of a call ---- */

enum report_phase {
    REPORT_BEGUN = 0, /* fast path: no event yet */
    REPORT_FIRST,     /* fast path: the first attempt runs; it started when the call began, and nothing else happened */
    REPORT_FULL,      /* slow path: all fields are in use */
    REPORT_OVER,      /* the call has ended, or nobody receives reports of it */
};

/* Returns NULL if no meter of a listener counts the call. A shared target has its own. */
static struct bide_meter *report_meter(const struct bide_report_call *call, const struct bide_listener *process)
{
    if (process == NULL || process->meter == NULL || os_target_has_meter(call->target))
        return NULL;
    return process->meter(process->context, call);
}

static bool trace_is_empty(const struct bide_trace *trace)
{
    return (trace->trace_hi | trace->trace_lo) == 0;
}

/* An id is not 0. */
static inline uint64_t id_of(uint64_t number)
{
    return number + (number == 0);
}

/* Begins a trace, when it is first needed. The id of the call is computed from the trace's: as random as that, and no
 * other call begins this trace. */
static inline void report_draw_trace(struct bide_report *report)
{
    report->draws_trace = false;
    trace_draw(&report->trace, report->process);
    report->call_id = id_of(report->trace.trace_hi ^ report->trace.trace_lo);
}

/* Leaves the fast path. */
static void report_fill(struct bide_report *report)
{
    bool runs = report->phase == REPORT_FIRST;
    memset(report->running, 0, sizeof report->running);
    if (runs)
        report->running[0] = (struct bide_report_attempt){.start_ns = report->begin_ns, .number = report->attempts};
    if (report->has_listener && report->draws_trace)
        report_draw_trace(report);
    report->ended_ns = 0;
    report->is_waiting = false;
    report->phase = REPORT_FULL;
}

/* A trace that another service began is recorded as the listener of the process decides. */
static void report_continue_trace(struct bide_report *report, const struct bide_trace *trace)
{
    const struct bide_listener *process = report->process;
    report->trace = *trace;
    if (trace->parent == 0 || process == NULL || process->sample == NULL)
        return;
    report->trace.flags &= (uint8_t)~BIDE_TRACE_SAMPLED;
    if (process->sample(process->context, trace))
        report->trace.flags |= BIDE_TRACE_SAMPLED;
}

/* Takes the trace of the caller; without one, a trace is drawn later if the listener of the process records traces. */
static void report_begin_trace(struct bide_report *report, const struct bide_report_call *call)
{
    bool is_continued = call->trace != NULL && !trace_is_empty(call->trace);
    report->draws_trace = !is_continued && report->process != NULL && report->process->sample != NULL;
    if (report->draws_trace)
        return;
    report->trace = (struct bide_trace){0};
    if (is_continued)
        report_continue_trace(report, call->trace);
    report->call_id = bide_seed();
}

static const char *report_copy_name(struct bide_report *report, const struct bide_report_call *call)
{
    const char *name = bide_report_target_name(call);
    return memcpy(report->found_name, name, strlen(name) + 1);
}

/* Begins a report with a listener of events. */
OUT_OF_LINE void report_begin_events(struct bide_report *report, const struct bide_report_call *call)
{
    report->target_name = call->target_name != NULL ? call->target_name : report_copy_name(report, call);
    report->about = call->about;
    report->about_context = call->about_context;
    report->has_own = call->listener != NULL && call->listener->event != NULL;
    report_begin_trace(report, call);
    if (report->has_own)
        report->own = *call->listener;
    if (report->has_own || !report->process->ends_only)
        report_fill(report);
}

bool bide_report_wanted(const struct bide_target *target, const struct bide_listener *own)
{
    return (own != NULL && own->event != NULL) || bide_listener_get() != NULL || os_target_has_meter(target);
}

bool bide_report_begin(struct bide_report *report, const struct bide_report_call *call, int64_t now_ns)
{
    const struct bide_listener *process = bide_listener_get(), *own = call->listener;
    struct bide_meter *meter = report_meter(call, process);
    report->lane = meter != NULL ? &meter->lane[call->lane % BIDE_LANES] : NULL;
    report->begin_ns = now_ns;
    report->attempts = 0;
    report->phase = REPORT_BEGUN;
    report->process = process;
    report->has_listener = (process != NULL && process->event != NULL) || (own != NULL && own->event != NULL);
    if (report->has_listener)
        report_begin_events(report, call);
    else if (meter == NULL)
        report->phase = REPORT_OVER;
    return report->phase != REPORT_OVER;
}

/* Returns the running attempt of that number, or for 0 an empty place; NULL: there is none. */
static struct bide_report_attempt *report_find(struct bide_report *report, uint32_t number)
{
    for (size_t i = 0; i < RUNNING_MAX; i++)
        if (report->running[i].number == number)
            return &report->running[i];
    return NULL;
}

/* Returns the span id of an attempt: a bijection of the sum, so that the attempts of a call differ. */
static inline uint64_t report_span(const struct bide_report *report, uint32_t number, enum bide_attempt_kind kind)
{
    return id_of(core_mix(report->call_id + CORE_GOLDEN * (2 * (uint64_t)number + (kind == BIDE_ATTEMPT_REFRESH))));
}

/* Passes an event to the listeners. */
static void report_pass(const struct bide_report *report, const struct bide_event *event)
{
    const struct bide_listener *process = report->process;
    if (report->has_own)
        report->own.event(report->own.context, event);
    bool is_end = event->outcome != NULL || event->verdict->action >= BIDE_ACTION_WAIT;
    if (process != NULL && process->event != NULL && (is_end || !process->ends_only))
        process->event(process->context, event);
}

/* Sets the name of an event. */
static inline void report_name(const struct bide_report *report, struct bide_event *event)
{
    size_t length = strlen(report->target_name);
    event->target = length <= BIDE_TARGET_NAME_MAX ? report->target_name : "";
    event->target_length = length <= BIDE_TARGET_NAME_MAX ? length : 0;
}

/* Completes an event and passes it on. attempt: the attempt that starts or has ended; NULL: none. */
static void report_send(struct bide_report *report, struct bide_event *event, const struct bide_report_attempt *attempt)
{
    struct bide_trace trace = report->trace;
    report_name(report, event);
    event->call_id = report->call_id;
    event->inbound_id = trace.parent;
    event->begin_ns = report->begin_ns;
    event->attempts = report->attempts;
    event->about = report->about;
    event->about_context = report->about_context;
    event->trace = trace_is_empty(&trace) ? NULL : &trace;
    if (attempt != NULL) {
        event->attempt = attempt->number;
        event->attempt_kind = attempt->kind;
        event->start_ns = attempt->start_ns;
        event->delay_ns = attempt->delay_ns;
        trace.parent = report_span(report, attempt->number, attempt->kind);
    }
    report_pass(report, event);
}

/* Reports the end of a call whose only attempt has succeeded, to the listener of the process. */
OUT_OF_LINE void report_end_at_once(struct bide_report *report, const struct bide_verdict *verdict,
                                    const struct bide_attempt_end *end, int64_t now_ns)
{
    if (report->draws_trace)
        report_draw_trace(report);
    struct bide_event event; /* each field is set: clearing all of it first would cost more */
    event.verdict = verdict;
    event.outcome = end->outcome;
    event.trace = trace_is_empty(&report->trace) ? NULL : &report->trace;
    event.inbound_id = report->trace.parent;
    event.call_id = report->call_id;
    event.begin_ns = report->begin_ns;
    event.now_ns = now_ns;
    event.start_ns = report->begin_ns;
    event.delay_ns = 0;
    event.attempt = report->attempts;
    event.attempts = report->attempts;
    event.status = end->status;
    event.attempt_kind = BIDE_ATTEMPT_REGULAR;
    event.about = report->about;
    event.about_context = report->about_context;
    memset(event.reserved_, 0, sizeof event.reserved_);
    report_name(report, &event);
    report->trace.parent = report_span(report, report->attempts, BIDE_ATTEMPT_REGULAR);
    if (report->lane != NULL)
        os_meter_at_once(report->lane, now_ns - report->begin_ns);
    report->process->event(report->process->context, &event);
}

static void report_start(struct bide_report *report, const struct bide_verdict *verdict, int64_t now_ns)
{
    struct bide_report_attempt *attempt = report_find(report, 0);
    assert(attempt != NULL && verdict->attempt > 0); /* a round has RUNNING_MAX attempts at most */
    if (attempt == NULL)
        return;
    *attempt = (struct bide_report_attempt){.start_ns = now_ns, .number = verdict->attempt};
    if (verdict->attempt <= report->attempts)
        attempt->kind = BIDE_ATTEMPT_REFRESH;
    else if (verdict->reason == BIDE_REASON_HEDGE)
        attempt->kind = BIDE_ATTEMPT_HEDGE;
    else if (report->ended_ns != 0)
        attempt->delay_ns = now_ns - report->ended_ns;
    if (verdict->attempt > report->attempts)
        report->attempts = verdict->attempt;
    if (report->lane != NULL)
        os_meter_start(report->lane, os_meter_attempt(attempt->number, attempt->kind));
    if (report->has_listener)
        report_send(report, &(struct bide_event){.verdict = verdict, .now_ns = now_ns}, attempt);
}

/* Reports the end of a running attempt, and with it the verdict. */
static void report_end(struct bide_report *report, const struct bide_verdict *verdict,
                       const struct bide_attempt_end *end, int64_t now_ns)
{
    struct bide_report_attempt *running = report_find(report, end->attempt);
    struct bide_report_attempt ended = *running;
    running->number = 0;
    report->ended_ns = now_ns;
    if (report->lane != NULL)
        os_meter_end(report->lane, &(struct os_meter_end){.attempt = os_meter_attempt(ended.number, ended.kind),
                                                          .kind = end->outcome->kind,
                                                          .time_ns = now_ns - ended.start_ns});
    if (report->has_listener)
        report_send(
            report,
            &(struct bide_event){.verdict = verdict, .outcome = end->outcome, .status = end->status, .now_ns = now_ns},
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

/* Counts a verdict: the wait that it ends, its refusals, the wait that it begins, or the end of the call. NONE leaves a
 * waiting call waiting. */
static void report_count(struct bide_report *report, const struct bide_verdict *verdict, int64_t now_ns)
{
    if (report->is_waiting && verdict->action != BIDE_ACTION_NONE) {
        os_meter_wait_end(report->lane, now_ns - report->wait_ns);
        report->is_waiting = false;
    }
    os_meter_refusals(report->lane, verdict);
    if (verdict->action == BIDE_ACTION_WAIT) {
        os_meter_wait(report->lane, verdict->reason);
        report->is_waiting = true;
        report->wait_ns = now_ns;
    }
    if (report->phase == REPORT_OVER)
        os_meter_call(report->lane, verdict, report->attempts, now_ns - report->begin_ns);
}

/* Reports a verdict on the slow path. */
OUT_OF_LINE void report_verdict(struct bide_report *report, const struct bide_verdict *verdict,
                                const struct bide_attempt_end *end, int64_t now_ns)
{
    if (report->phase < REPORT_FULL)
        report_fill(report);
    bool ended = end != NULL && end->attempt > 0 && report_find(report, end->attempt) != NULL;
    bool is_over = verdict->action == BIDE_ACTION_DONE || verdict->action == BIDE_ACTION_GIVE_UP;
    report->phase = is_over ? REPORT_OVER : REPORT_FULL;
    if (is_over)
        report_cut_attempts(report, ended ? end->attempt : 0, now_ns);
    if (report->lane != NULL)
        report_count(report, verdict, now_ns);
    if (ended)
        report_end(report, verdict, end, now_ns);
    else if (verdict->action == BIDE_ACTION_START)
        report_start(report, verdict, now_ns);
    else if (report->has_listener && (verdict->action != BIDE_ACTION_NONE || verdict->reason != BIDE_REASON_NOTHING))
        report_send(report, &(struct bide_event){.verdict = verdict, .now_ns = now_ns}, NULL);
}

void bide_report_verdict(struct bide_report *report, const struct bide_verdict *verdict,
                         const struct bide_attempt_end *end, int64_t now_ns)
{
    if (report->phase == REPORT_BEGUN && verdict->action == BIDE_ACTION_START && verdict->observed == 0 &&
        now_ns == report->begin_ns) {
        report->attempts = verdict->attempt;
        report->phase = REPORT_FIRST;
        if (report->lane != NULL)
            os_meter_start(report->lane, BIDE_METER_ATTEMPT_1);
    } else if (report->phase == REPORT_FIRST && verdict->action == BIDE_ACTION_DONE && verdict->observed == 0 &&
               end != NULL && end->attempt == report->attempts) {
        report->phase = REPORT_OVER;
        if (report->has_listener)
            report_end_at_once(report, verdict, end, now_ns);
        else
            os_meter_at_once(report->lane, now_ns - report->begin_ns);
    } else if (report->phase != REPORT_OVER) {
        report_verdict(report, verdict, end, now_ns);
    }
}

/* Returns true if that attempt runs, after setting its kind. */
static bool report_runs(const struct bide_report *report, uint32_t number, enum bide_attempt_kind *kind)
{
    *kind = BIDE_ATTEMPT_REGULAR;
    if (report->phase < REPORT_FULL)
        return report->phase == REPORT_FIRST && number == report->attempts;
    for (size_t i = 0; i < RUNNING_MAX; i++)
        if (report->running[i].number == number) {
            *kind = report->running[i].kind;
            return true;
        }
    return false;
}

struct bide_trace bide_report_trace(struct bide_report *report, uint32_t attempt)
{
    enum bide_attempt_kind kind;
    if (attempt == 0 || !report->has_listener || !report_runs(report, attempt, &kind))
        return (struct bide_trace){0};
    if (report->draws_trace)
        report_draw_trace(report);
    struct bide_trace trace = report->trace;
    trace.parent = report_span(report, attempt, kind);
    return trace_is_empty(&trace) ? (struct bide_trace){0} : trace;
}
