/* blocking.c - bide_run: makes a call in the calling thread and blocks until it has ended.
 *
 * The loop executes each verdict with one action, decides nothing, and reports each verdict before executing it. One
 * thread makes one attempt at a time, so the wake-up time for a hedge that comes with START is ignored.
 *
 * Cancellation is checked before each attempt and during each wait. If the call was cancelled by the time of a START,
 * the loop cancels it before reporting, so the listener sees START exactly once per attempt made. A cancellation during
 * an attempt does not interrupt the attempt: its outcome is recorded first, because it may be the success that the
 * caller wants, and the call is cancelled only if that outcome did not end it. */
#include <bide/clock.h>
#include <bide/entropy.h>
#include <bide/run.h>

#include "entropy.h"
#include "probe.h"
#include "report.h"

#include <assert.h>

#define INLINED static inline __attribute__((always_inline)) /* on the path of every call, twice */

#ifndef RUN_REPORTS
#define RUN_REPORTS 1 /* bench/telemetry.c compiles this file with 0 as well: a call without reports */
#endif

struct run {
    const struct bide_job *job;
    struct bide_call call;
    struct bide_target *target;
    uint32_t lane;
    int64_t now_ns;              /* the instant given to the engine with the last event */
    struct bide_outcome outcome; /* of the last attempt */
};

static const char *job_name(const struct bide_job *job)
{
    return job->name != NULL ? job->name : "default";
}

static struct bide_target *job_target(const struct bide_job *job, int64_t now_ns)
{
    struct bide_targets *table = job->target == NULL ? bide_targets_default() : NULL;
    if (table != NULL)
        return bide_targets_get(table, job_name(job), now_ns);
    return job->target != NULL ? job->target : BIDE_NO_TARGET;
}

/* Returns the meter of the target, which is of the default table, if the target knows it already, and the call has no
 * listener of its own. */
INLINED struct bide_meter *run_known_meter(const struct run *r)
{
    if (((uintptr_t)r->job->event | (uintptr_t)r->job->target) != 0 || r->target == BIDE_NO_TARGET)
        return NULL;
    return os_table_target_meter(r->target);
}

/* Begins the report of a call that may have any listener. Returns false if there is neither a listener
 * nor a meter after all. */
static __attribute__((noinline)) bool run_begin_any_report(const struct run *r, struct bide_report *report)
{
    const struct bide_job *job = r->job;
    struct bide_listener own;
    struct bide_report_call call = {.target_name = job_name(job),
                                    .target = r->target,
                                    .lane = r->lane,
                                    .is_of_table = job->target == NULL && r->target != BIDE_NO_TARGET};
    if (job->target != NULL && job->name == NULL)
        call.target_name = NULL;
    if (job->event != NULL) {
        own = (struct bide_listener){.event = job->event, .context = job->context};
        call.listener = &own;
    }
    return bide_report_begin(report, &call, r->now_ns);
}

INLINED struct bide_verdict run_begin(struct run *r)
{
    struct bide_request request = r->job->request;
    request.seed = request.seed != 0 ? request.seed : bide_seed();
    request.lane = r->lane;
    return bide_call_begin(&r->call, r->job->policy, r->target, &request, r->now_ns);
}

static struct bide_verdict run_cancel(struct run *r)
{
    r->now_ns = bide_now();
    return bide_call_cancel(&r->call, r->now_ns);
}

/* One attempt runs at a time, and no verdict is reported while it runs: it has ended with this verdict. */
static __attribute__((noinline)) void run_report_slowly(const struct run *r, struct bide_report *report,
                                                        const struct bide_verdict *verdict)
{
    struct bide_attempt_end end = {.outcome = &r->outcome, .attempt = os_report_running(report)};
    os_report_slowly(report, verdict, &end, r->now_ns);
}

INLINED void run_report(const struct run *r, struct bide_report *report, const struct bide_verdict *verdict)
{
    if (!os_report_try_fast(report, verdict, r->now_ns))
        run_report_slowly(r, report, verdict);
}

INLINED struct bide_verdict run_attempt(struct run *r, const struct bide_verdict *start)
{
    const struct bide_job *job = r->job;
    OS_PROBE_START(r, job->name, start->attempt, start->reason);
    r->outcome = job->attempt(job->context, start);
    OS_PROBE_OUTCOME(r, job->name, start->attempt, r->outcome.kind, 0);
    r->now_ns = bide_now();
    return bide_call_outcome(&r->call, start->attempt, &r->outcome, r->now_ns);
}

static struct bide_verdict run_wait(struct run *r, int64_t until_ns)
{
    if (!bide_wait_until(until_ns, r->job->cancel))
        return run_cancel(r);
    r->now_ns = bide_now();
    return bide_call_wake(&r->call, r->now_ns);
}

/* Handles the verdict NONE, which this loop gives the engine no reason to return. If a wake-up is pending, waits for
 * it; otherwise ends the call instead of looping for ever. */
static struct bide_verdict run_handle_none(struct run *r, int64_t wake_ns)
{
    if (wake_ns != BIDE_NEVER && wake_ns > bide_now())
        return run_wait(r, wake_ns);
    struct bide_verdict v = run_cancel(r);
    if (v.action == BIDE_ACTION_NONE) /* the call had already ended */
        v = (struct bide_verdict){
            .action = BIDE_ACTION_GIVE_UP, .reason = BIDE_REASON_CANCELLED, .wake_ns = BIDE_NEVER};
    return v;
}

/* Executes the verdicts of the call, from *v to the last. report: NULL: it has none. Inlined for each case. */
INLINED void run_loop(struct run *r, struct bide_report *report, struct bide_verdict *v)
{
    for (;;) {
        if (v->action == BIDE_ACTION_START && bide_cancelled(r->job->cancel))
            *v = run_cancel(r);
        if (report != NULL)
            run_report(r, report, v);
        switch (v->action) {
        case BIDE_ACTION_NONE: *v = run_handle_none(r, v->wake_ns); break;
        case BIDE_ACTION_START: *v = run_attempt(r, v); break;
        case BIDE_ACTION_WAIT:
            OS_PROBE_WAIT(r, r->job->name, v->attempt, v->reason, v->wake_ns - r->now_ns);
            *v = run_wait(r, v->wake_ns);
            break;
        case BIDE_ACTION_DONE:
        case BIDE_ACTION_GIVE_UP: OS_PROBE_END(r, r->job->name, v->attempt, v->reason); return;
        }
    }
}

/* The call has succeeded by its first attempt: the listener draws nothing itself. */
INLINED void run_pass_at_once(const struct run *r, const struct bide_listener *process, int64_t begin_ns)
{
    struct bide_at_once call;
    call.target = job_name(r->job);
    call.outcome = &r->outcome;
    os_draw_pair(&call.random[0], &call.random[1]);
    call.begin_ns = begin_ns;
    call.now_ns = r->now_ns;
    process->at_once(process->context, &call);
}

/* Makes the first attempt of a call for a listener that wants ends only, and that has begun with a START. A success is
 * one event, so the report begins when the attempt has ended. */
INLINED void run_quietly(struct run *r, const struct bide_listener *process, struct bide_meter *meter,
                         struct bide_verdict *v)
{
    struct bide_report report;
    struct bide_attempt_end end = {.outcome = &r->outcome, .attempt = 1};
    int64_t begin_ns = r->now_ns;
    os_meter_start(&meter->lane[r->lane % BIDE_LANES], BIDE_METER_ATTEMPT_1);
    *v = run_attempt(r, v);
    if (v->action == BIDE_ACTION_DONE && v->observed == 0 && process->at_once != NULL) {
        os_meter_at_once(&meter->lane[r->lane % BIDE_LANES], r->now_ns - begin_ns);
        run_pass_at_once(r, process, begin_ns);
        OS_PROBE_END(r, r->job->name, v->attempt, v->reason);
        return;
    }
    os_report_begin(&report, &meter->lane[r->lane % BIDE_LANES], begin_ns);
    os_report_begin_quietly(&report, process, job_name(r->job));
    report.attempts = 1;
    report.phase = OS_REPORT_QUIET_FIRST;
    if (v->action == BIDE_ACTION_DONE && v->observed == 0) {
        os_report_end_at_once(&report, v, &end, r->now_ns);
        OS_PROBE_END(r, r->job->name, v->attempt, v->reason);
    } else {
        run_loop(r, &report, v);
    }
}

/* Any listener. Another thread may remove that of the process meanwhile: the call then keeps it. */
static __attribute__((noinline)) void run_watched(struct run *r, struct bide_verdict *v)
{
    struct bide_report report;
    const struct bide_listener *process = os_listener();
    struct bide_meter *meter = run_known_meter(r);
    if (meter != NULL && process != NULL && os_listener_is_quiet(process) && v->action == BIDE_ACTION_START &&
        v->observed == 0 && !bide_cancelled(r->job->cancel))
        run_quietly(r, process, meter, v);
    else if (run_begin_any_report(r, &report))
        run_loop(r, &report, v);
    else
        run_loop(r, NULL, v);
}

/* Returns false if no reports are needed: there is no listener, and no target that may have a meter of its own, as a
 * shared target does. One test for the usual case. */
INLINED bool job_may_be_watched(const struct bide_job *job)
{
    return __builtin_expect(((uintptr_t)os_listener() | (uintptr_t)job->event | (uintptr_t)job->target) != 0, 0);
}

struct bide_verdict bide_run(const struct bide_job *job)
{
    struct run r; /* its other fields are written before they are read */
    struct bide_report report;
    struct bide_meter *meter;
    assert(job->attempt != NULL);
    r.job = job;
    r.now_ns = bide_now();
    r.target = job_target(job, r.now_ns);
    r.lane = bide_lane();
    struct bide_verdict v = run_begin(&r);
    if (!RUN_REPORTS || !job_may_be_watched(job)) {
        run_loop(&r, NULL, &v);
    } else if (__atomic_load_n(&os_process_only_counts, __ATOMIC_RELAXED) && (meter = run_known_meter(&r)) != NULL) {
        os_report_begin(&report, &meter->lane[r.lane % BIDE_LANES], r.now_ns);
        run_loop(&r, &report, &v);
    } else {
        run_watched(&r, &v);
    }
    return v;
}
