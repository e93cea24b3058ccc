/* event.c - reports each step of a call to its meter and to the listeners: see bide/event.h.
 *
 * A report keeps the attempts in flight, at most one round of them (an attempt and its hedges), so that each START is
 * matched by one end: an end without a running attempt is ignored, and at the end of the call every attempt that still
 * runs is reported as cancelled.
 *
 * report.h has the fast path of a call that only a meter counts. A listener of the process that wants ends only has
 * one, too: a call that succeeds by its first attempt, which started when the call began, is one event.
 *
 * The ids of the attempts' spans are computed from the call's, so that none of them is stored or drawn. */
#include <bide/entropy.h>
#include <bide/event.h>

#include "core/random.h"
#include "entropy.h"
#include "report.h"

#include <assert.h>
#include <string.h>

#define RUNNING_MAX (1 + BIDE_HEDGES_MAX)
#define OUT_OF_LINE static __attribute__((noinline)) /* the fast path needs no frame for it */

/* ---- the listener of the process ---- */

const struct bide_listener *os_process_listener;
bool os_process_only_counts;

/* The function that finds meters: the targets of tables remember what it returned. */
static struct bide_meter *(*process_meter)(void *context, const struct bide_report_call *call);

/* Returns false if the process has another function. */
static bool listener_set_meter(const struct bide_listener *listener)
{
    struct bide_meter *(*none)(void *, const struct bide_report_call *) = NULL;
    return listener->meter == NULL ||
           __atomic_compare_exchange_n(&process_meter, &none, listener->meter, false, __ATOMIC_RELAXED,
                                       __ATOMIC_RELAXED) ||
           none == listener->meter;
}

enum bide_err bide_listen(const struct bide_listener *listener)
{
    const struct bide_listener *none = NULL;
    if (listener == NULL) {
        __atomic_store_n(&os_process_only_counts, false, __ATOMIC_RELAXED);
        __atomic_store_n(&os_process_listener, NULL, __ATOMIC_RELAXED);
        return BIDE_OK;
    }
    if (!listener_set_meter(listener))
        return BIDE_ERR_BUSY;
    bool was_free =
        __atomic_compare_exchange_n(&os_process_listener, &none, listener, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    if (was_free)
        __atomic_store_n(&os_process_only_counts, listener->meter != NULL && listener->event == NULL, __ATOMIC_RELAXED);
    return was_free || none == listener ? BIDE_OK : BIDE_ERR_BUSY;
}

const struct bide_listener *bide_listener_get(void)
{
    return os_listener();
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

/* Returns the meter of the name of a table's target, which from now on knows it, if it still has that name. */
OUT_OF_LINE struct bide_meter *table_target_find_meter(const struct bide_report_call *call,
                                                       const struct bide_listener *process)
{
    struct bide_target *target = (struct bide_target *)(uintptr_t)call->target;
    uint64_t version = os_table_target_version(target, bide_report_target_name(call));
    struct bide_meter *meter = process->meter(process->context, call);
    if (meter != NULL)
        os_table_target_set_meter(target, version, meter);
    return meter;
}

/* Returns the meter that counts the call: of a shared target its own, also without a listener. NULL: none does. */
static struct bide_meter *report_meter(const struct bide_report_call *call, const struct bide_listener *process)
{
    if (os_target_has_meter(call->target))
        return os_target_meter(call->target);
    if (process == NULL || process->meter == NULL)
        return NULL;
    if (!call->is_of_table || call->target == NULL || call->target == BIDE_NO_TARGET ||
        (core_load(&call->target->identity) & CORE_OVERFLOW) != 0)
        return process->meter(process->context, call);
    struct bide_meter *meter = os_table_target_meter(call->target);
    return meter != NULL ? meter : table_target_find_meter(call, process);
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

/* Begins to use all fields. */
static void report_fill(struct bide_report *report)
{
    report->running_count = os_report_running(report) != 0;
    if (report->running_count > 0)
        report->running[0] = (struct bide_report_attempt){.start_ns = report->since_ns, .number = report->attempts};
    if (report->has_listener && report->draws_trace)
        report_draw_trace(report);
    report->ended_ns = 0;
    report->is_waiting = report->phase == OS_REPORT_WAITS;
    report->phase = OS_REPORT_FULL;
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

/* Begins a report with a listener of events. NULL meter: the call is not counted. */
OUT_OF_LINE void report_begin_events(struct bide_report *report, const struct bide_report_call *call,
                                     struct bide_meter *meter, int64_t now_ns)
{
    os_report_begin(report, meter != NULL ? &meter->lane[call->lane % BIDE_LANES] : NULL, now_ns);
    os_report_begin_quietly(report, report->process,
                            call->target_name != NULL ? call->target_name : report_copy_name(report, call));
    report->about = call->about;
    report->about_context = call->about_context;
    report->has_own = call->listener != NULL && call->listener->event != NULL;
    report_begin_trace(report, call);
    if (report->has_own)
        report->own = *call->listener;
    if (report->has_own || meter == NULL || !report->process->ends_only)
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
    report->process = process;
    report->phase = OS_REPORT_OVER;
    if ((process != NULL && process->event != NULL) || (own != NULL && own->event != NULL))
        report_begin_events(report, call, meter, now_ns);
    else if (meter != NULL)
        os_report_begin(report, &meter->lane[call->lane % BIDE_LANES], now_ns);
    return report->phase != OS_REPORT_OVER;
}

/* Returns NULL if no attempt of that number runs. */
static struct bide_report_attempt *report_find(struct bide_report *report, uint32_t number)
{
    for (uint32_t i = 0; i < report->running_count; i++)
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
    event->trace = NULL; /* it ends here */
}

static enum bide_attempt_kind attempt_kind(const struct bide_report *report, const struct bide_verdict *start)
{
    if (start->attempt <= report->attempts)
        return BIDE_ATTEMPT_REFRESH;
    return start->reason == BIDE_REASON_HEDGE ? BIDE_ATTEMPT_HEDGE : BIDE_ATTEMPT_REGULAR;
}

static void report_start(struct bide_report *report, const struct bide_verdict *verdict, int64_t now_ns)
{
    assert(report->running_count < RUNNING_MAX && verdict->attempt > 0); /* a round has RUNNING_MAX attempts at most */
    if (report->running_count == RUNNING_MAX)
        return;
    struct bide_report_attempt *attempt = &report->running[report->running_count++];
    attempt->start_ns = now_ns;
    attempt->number = verdict->attempt;
    attempt->kind = attempt_kind(report, verdict);
    if (verdict->attempt > report->attempts)
        report->attempts = verdict->attempt;
    if (report->lane != NULL)
        os_meter_start(report->lane, os_meter_attempt(attempt->number, attempt->kind));
    if (!report->has_listener)
        return;
    bool is_delayed = attempt->kind == BIDE_ATTEMPT_REGULAR && report->ended_ns != 0;
    attempt->delay_ns = is_delayed ? now_ns - report->ended_ns : 0;
    report_send(report, &(struct bide_event){.verdict = verdict, .now_ns = now_ns}, attempt);
}

/* Reports the end of a running attempt, and with it the verdict. */
static void report_end(struct bide_report *report, struct bide_report_attempt *running,
                       const struct bide_verdict *verdict, const struct bide_attempt_end *end, int64_t now_ns)
{
    assert(report->running_count > 0 && running->number == end->attempt);
    struct bide_report_attempt ended = *running;
    report->running_count--;
    for (struct bide_report_attempt *end_of = &report->running[report->running_count]; running < end_of; running++)
        *running = running[1];
    report->ended_ns = now_ns;
    if (report->lane != NULL)
        os_meter_end(report->lane, os_meter_attempt(ended.number, ended.kind), end->outcome->kind,
                     now_ns - ended.start_ns);
    if (report->has_listener)
        report_send(
            report,
            &(struct bide_event){.verdict = verdict, .outcome = end->outcome, .status = end->status, .now_ns = now_ns},
            &ended);
}

/* The call has ended: the attempts that still run are cut. `last` is the number of the attempt whose end ended the
 * call, or 0. */
OUT_OF_LINE void report_cut_attempts(struct bide_report *report, uint32_t last, int64_t now_ns)
{
    static const struct bide_outcome cancelled = {.kind = BIDE_KIND_CANCELLED, .evidence = BIDE_EVIDENCE_UNKNOWN};
    static const struct bide_verdict none = {
        .wake_ns = BIDE_NEVER, .attempt_deadline_ns = BIDE_NEVER, .connect_deadline_ns = BIDE_NEVER};
    for (uint32_t i = 0; i < report->running_count;) {
        struct bide_attempt_end end = {.outcome = &cancelled, .attempt = report->running[i].number};
        if (end.attempt == last)
            i++;
        else
            report_end(report, &report->running[i], &none, &end, now_ns);
    }
}

/* Counts a verdict: the wait that it ends, its refusals, the wait that it begins, or the end of the call. NONE leaves a
 * waiting call waiting. */
static void report_count(struct bide_report *report, const struct bide_verdict *verdict, int64_t now_ns)
{
    if (report->is_waiting && verdict->action != BIDE_ACTION_NONE) {
        os_meter_wait_end(report->lane, now_ns - report->since_ns);
        report->is_waiting = false;
    }
    os_meter_refusals(report->lane, verdict);
    if (verdict->action == BIDE_ACTION_WAIT) {
        os_meter_wait(report->lane, verdict->reason);
        report->is_waiting = true;
        report->since_ns = now_ns;
    }
    if (report->phase == OS_REPORT_OVER)
        os_meter_call(report->lane, verdict, report->attempts, now_ns - report->begin_ns);
}

/* ---- one attempt at a time, and only a meter ---- */

/* The running attempt has ended, with WAIT, DONE or GIVE_UP. */
static void report_count_end(struct bide_report *report, const struct bide_verdict *verdict,
                             const struct bide_attempt_end *end, int64_t now_ns)
{
    struct bide_meter_lane_ *lane = report->lane;
    os_meter_end(lane, os_meter_attempt(report->attempts, BIDE_ATTEMPT_REGULAR), end->outcome->kind,
                 now_ns - report->since_ns);
    os_meter_refusal(lane, verdict->reason);
    if (verdict->action == BIDE_ACTION_WAIT) {
        report->phase = OS_REPORT_WAITS;
        report->since_ns = now_ns;
        os_meter_wait(lane, verdict->reason);
    } else {
        report->phase = OS_REPORT_OVER;
        os_meter_call(lane, verdict, report->attempts, now_ns - report->begin_ns);
    }
}

/* The wait has ended, with a START: of a retry, because a hedge or a refresh starts while no call waits. */
static void report_count_start(struct bide_report *report, const struct bide_verdict *verdict, int64_t now_ns)
{
    struct bide_meter_lane_ *lane = report->lane;
    assert(verdict->attempt > report->attempts && verdict->reason != BIDE_REASON_HEDGE);
    os_meter_wait_end(lane, now_ns - report->since_ns);
    os_meter_start(lane, os_meter_attempt(verdict->attempt, BIDE_ATTEMPT_REGULAR));
    report->attempts = verdict->attempt;
    report->phase = OS_REPORT_RUNS;
    report->since_ns = now_ns;
}

/* ---- one attempt, and a listener that wants ends only ---- */

static void report_start_quietly(struct bide_report *report, const struct bide_verdict *start)
{
    report->attempts = start->attempt;
    report->phase = OS_REPORT_QUIET_FIRST;
    os_meter_start(report->lane, BIDE_METER_ATTEMPT_1);
}

void os_report_end_at_once(struct bide_report *report, const struct bide_verdict *verdict,
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
    report->phase = OS_REPORT_OVER;
    os_meter_at_once(report->lane, now_ns - report->begin_ns);
    report->process->event(report->process->context, &event);
}

/* ---- any course of events ---- */

/* Uses all fields: there is a listener of events, an attempt beside another, a cancellation, a refusal before the first
 * attempt, or a gate that observes. */
OUT_OF_LINE void report_verdict(struct bide_report *report, const struct bide_verdict *verdict,
                                const struct bide_attempt_end *end, int64_t now_ns)
{
    struct bide_event event = {.verdict = verdict, .now_ns = now_ns};
    if (report->phase < OS_REPORT_FULL)
        report_fill(report);
    bool is_over = verdict->action == BIDE_ACTION_DONE || verdict->action == BIDE_ACTION_GIVE_UP;
    struct bide_report_attempt *ended = end->attempt > 0 ? report_find(report, end->attempt) : NULL;
    if (is_over) {
        report->phase = OS_REPORT_OVER;
        if (report->running_count > (ended != NULL)) {
            report_cut_attempts(report, ended != NULL ? end->attempt : 0, now_ns);
            ended = report->running_count > 0 ? &report->running[0] : NULL;
        }
    }
    if (report->lane != NULL)
        report_count(report, verdict, now_ns);
    if (ended != NULL)
        report_end(report, ended, verdict, end, now_ns);
    else if (verdict->action == BIDE_ACTION_START)
        report_start(report, verdict, now_ns);
    else if (report->has_listener && (verdict->action != BIDE_ACTION_NONE || verdict->reason != BIDE_REASON_NOTHING))
        report_send(report, &event, NULL);
}

void os_report_slowly(struct bide_report *report, const struct bide_verdict *verdict,
                      const struct bide_attempt_end *end, int64_t now_ns)
{
    uint8_t phase = report->phase;
    if (phase == OS_REPORT_WAITS && verdict->action == BIDE_ACTION_START && verdict->observed == 0)
        report_count_start(report, verdict, now_ns);
    else if ((phase == OS_REPORT_RUNS || phase == OS_REPORT_FIRST) && verdict->action >= BIDE_ACTION_WAIT &&
             end->attempt == report->attempts && verdict->observed == 0)
        report_count_end(report, verdict, end, now_ns);
    else if (phase == OS_REPORT_QUIET && verdict->action == BIDE_ACTION_START && verdict->observed == 0 &&
             now_ns == report->begin_ns)
        report_start_quietly(report, verdict);
    else if (phase == OS_REPORT_QUIET_FIRST && verdict->action == BIDE_ACTION_DONE && verdict->observed == 0 &&
             end->attempt == report->attempts)
        os_report_end_at_once(report, verdict, end, now_ns);
    else if (phase != OS_REPORT_OVER)
        report_verdict(report, verdict, end, now_ns);
}

void bide_report_verdict(struct bide_report *report, const struct bide_verdict *verdict,
                         const struct bide_attempt_end *end, int64_t now_ns)
{
    static const struct bide_attempt_end none = {.attempt = 0};
    if (!os_report_try_fast(report, verdict, now_ns))
        os_report_slowly(report, verdict, end != NULL ? end : &none, now_ns);
}

/* Returns true if that attempt runs, after setting its kind. */
static bool report_runs(const struct bide_report *report, uint32_t number, enum bide_attempt_kind *kind)
{
    *kind = BIDE_ATTEMPT_REGULAR;
    if (report->phase != OS_REPORT_FULL)
        return report->phase == OS_REPORT_QUIET_FIRST && number == report->attempts;
    for (uint32_t i = 0; i < report->running_count; i++)
        if (report->running[i].number == number) {
            *kind = report->running[i].kind;
            return true;
        }
    return false;
}

struct bide_trace bide_report_trace(struct bide_report *report, uint32_t attempt)
{
    struct bide_trace trace = {0};
    enum bide_attempt_kind kind;
    if (!report_runs(report, attempt, &kind) || !report->has_listener)
        return trace;
    if (report->draws_trace)
        report_draw_trace(report);
    if (trace_is_empty(&report->trace))
        return trace;
    trace = report->trace;
    trace.parent = report_span(report, attempt, kind);
    return trace;
}
