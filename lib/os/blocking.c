/* blocking.c - bide_run: makes a call in the calling thread and blocks until it has ended.
 *
 * The loop executes each verdict with one action, decides nothing, and reports each verdict to the job's listener
 * before executing it. One thread makes one attempt at a time, so the wake-up time for a hedge that comes with START is
 * ignored.
 *
 * Cancellation is checked before each attempt and during each wait. If the call was cancelled by the time of a START,
 * the loop cancels it before reporting, so the listener sees START exactly once per attempt made. A cancellation during
 * an attempt does not interrupt the attempt: its outcome is recorded first, because it may be the success that the
 * caller wants, and the call is cancelled only if that outcome did not end it. */
#include <bide/clock.h>
#include <bide/entropy.h>
#include <bide/run.h>

#include <assert.h>

static void job_report(const struct bide_job *job, const struct bide_verdict *verdict,
                       const struct bide_outcome *outcome)
{
    if (job->event == NULL)
        return; /* no listener: do not read the clock */
    struct bide_event event = {.verdict = verdict, .outcome = outcome, .now_ns = bide_now()};
    job->event(job->context, &event);
}

static struct bide_target *job_target(const struct bide_job *job, int64_t now_ns)
{
    struct bide_targets *table = job->target == NULL ? bide_targets_default() : NULL;
    if (table != NULL)
        return bide_targets_get(table, job->name != NULL ? job->name : "default", now_ns);
    return job->target != NULL ? job->target : BIDE_NO_TARGET;
}

static struct bide_verdict job_begin(const struct bide_job *job, struct bide_call *call)
{
    struct bide_request request = job->request;
    int64_t now_ns = bide_now();
    struct bide_target *target = job_target(job, now_ns);
    request.seed = request.seed != 0 ? request.seed : bide_seed();
    request.lane = bide_lane();
    return bide_call_begin(call, job->policy, target, &request, now_ns);
}

static struct bide_verdict job_attempt(const struct bide_job *job, struct bide_call *call,
                                       const struct bide_verdict *start, struct bide_outcome *outcome)
{
    *outcome = job->attempt(job->context, start);
    return bide_call_outcome(call, start->attempt, outcome, bide_now());
}

static struct bide_verdict job_wait(const struct bide_job *job, struct bide_call *call, int64_t until_ns)
{
    bool reached = bide_wait_until(until_ns, job->cancel);
    int64_t now_ns = bide_now();
    return reached ? bide_call_wake(call, now_ns) : bide_call_cancel(call, now_ns);
}

/* Handles the verdict NONE, which this loop gives the engine no reason to return. If a wake-up is pending, waits for
 * it; otherwise ends the call instead of looping for ever. */
static struct bide_verdict job_handle_none(const struct bide_job *job, struct bide_call *call, int64_t wake_ns)
{
    int64_t now_ns = bide_now();
    if (wake_ns != BIDE_NEVER && wake_ns > now_ns)
        return job_wait(job, call, wake_ns);
    struct bide_verdict v = bide_call_cancel(call, now_ns);
    if (v.action == BIDE_ACTION_NONE) /* the call had already ended */
        v = (struct bide_verdict){
            .action = BIDE_ACTION_GIVE_UP, .reason = BIDE_REASON_CANCELLED, .wake_ns = BIDE_NEVER};
    return v;
}

struct bide_verdict bide_run(const struct bide_job *job)
{
    assert(job->attempt != NULL);
    struct bide_call call = {0};
    struct bide_verdict v = job_begin(job, &call);
    struct bide_outcome outcome;
    const struct bide_outcome *cause = NULL; /* the outcome that led to the current verdict */
    for (;;) {
        if (v.action == BIDE_ACTION_START && bide_cancelled(job->cancel))
            v = bide_call_cancel(&call, bide_now());
        job_report(job, &v, cause);
        cause = v.action == BIDE_ACTION_START ? &outcome : NULL;
        switch (v.action) {
        case BIDE_ACTION_NONE: v = job_handle_none(job, &call, v.wake_ns); break;
        case BIDE_ACTION_START: v = job_attempt(job, &call, &v, &outcome); break;
        case BIDE_ACTION_WAIT: v = job_wait(job, &call, v.wake_ns); break;
        case BIDE_ACTION_DONE:
        case BIDE_ACTION_GIVE_UP: return v;
        }
    }
}
