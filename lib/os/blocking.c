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

#include "meter.h"
#include "probe.h"

#include <assert.h>

struct run {
    const struct bide_job *job;
    struct bide_call call;
    struct bide_target *target;
    uint32_t lane;
    int64_t now_ns;              /* the instant given to the engine with the last event */
    struct bide_outcome outcome; /* of the last attempt */
    uint32_t ended;              /* its number, until it is reported */
    struct bide_report *report;  /* NULL: nobody receives reports */
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

/* Returns false if nobody receives reports of the call: neither a listener nor a meter. */
static bool job_is_watched(const struct bide_job *job, const struct bide_target *target)
{
    return job->event != NULL || bide_listener_get() != NULL || os_target_has_meter(target);
}

/* Returns the report, or NULL if the listener of the process wants nothing of this call. */
static __attribute__((noinline)) struct bide_report *run_begin_report(const struct run *r, struct bide_report *report)
{
    const struct bide_job *job = r->job;
    struct bide_listener own;
    struct bide_report_call call = {
        .target_name = job_name(job), .target = r->target, .lane = r->lane, .is_of_table = job->target == NULL};
    if (job->target != NULL && job->name == NULL)
        call.target_name = NULL;
    if (job->event != NULL) {
        own = (struct bide_listener){.event = job->event, .context = job->context};
        call.listener = &own;
    }
    return bide_report_begin(report, &call, r->now_ns) ? report : NULL;
}

static struct bide_verdict run_begin(struct run *r)
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

static void run_report(struct run *r, const struct bide_verdict *verdict)
{
    struct bide_attempt_end end = {.outcome = &r->outcome, .attempt = r->ended};
    bide_report_verdict(r->report, verdict, end.attempt > 0 ? &end : NULL, r->now_ns);
    r->ended = 0;
}

static struct bide_verdict run_attempt(struct run *r, const struct bide_job *job, const struct bide_verdict *start)
{
    OS_PROBE_START(r, job->name, start->attempt, start->reason);
    r->outcome = job->attempt(job->context, start);
    r->ended = start->attempt;
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

struct bide_verdict bide_run(const struct bide_job *job)
{
    struct run r; /* bide_call_begin initialises the call */
    struct bide_report report;
    assert(job->attempt != NULL);
    r.job = job;
    r.now_ns = bide_now();
    r.ended = 0;
    r.target = job_target(job, r.now_ns);
    r.lane = bide_lane();
    r.report = job_is_watched(job, r.target) ? run_begin_report(&r, &report) : NULL;
    struct bide_verdict v = run_begin(&r);
    for (;;) {
        if (v.action == BIDE_ACTION_START && bide_cancelled(job->cancel))
            v = run_cancel(&r);
        if (r.report != NULL)
            run_report(&r, &v);
        switch (v.action) {
        case BIDE_ACTION_NONE: v = run_handle_none(&r, v.wake_ns); break;
        case BIDE_ACTION_START: v = run_attempt(&r, job, &v); break;
        case BIDE_ACTION_WAIT:
            OS_PROBE_WAIT(&r, job->name, v.attempt, v.reason, v.wake_ns - r.now_ns);
            v = run_wait(&r, v.wake_ns);
            break;
        case BIDE_ACTION_DONE:
        case BIDE_ACTION_GIVE_UP: OS_PROBE_END(&r, job->name, v.attempt, v.reason); return v;
        }
    }
}
