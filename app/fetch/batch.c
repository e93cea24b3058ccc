/* batch.c - runs all jobs over one bide_multi, at most `parallel` at a time.
 *
 * Jobs start in their order. Responses for standard output are written in the same order: the job that is next when it
 * starts streams its response; the others spool theirs completely and copy it when they are next. At most
 * FETCH_AHEAD_MAX such jobs are started and not yet written, which bounds the number of spools. Jobs that write to
 * files finish at once.
 *
 * A deadline applies to each job from its start. While the breaker of the server refuses attempts for longer than a job
 * may wait, the next job is not started: otherwise all jobs of the list would give up at once. */
#include "call.h"

#include "common/signals.h"

#include "outage.h"
#include "setup.h"

#include <bide/clock.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TARGETS_MAX    1024u
#define UPLOAD_POLL_NS (20 * BIDE_MS) /* interval at which a paused upload checks its input */
#define HELD_POLL_NS   BIDE_MINUTE
#define RAMP_POLLS     10 /* how often the ramp of a breaker is checked for its end */
#define ORIGIN_SIZE    300u

struct batch_run {
    struct fetch_batch *batch;
    struct fetch_call_params params;
    struct fetch_listener listener; /* of the calls: passes their events on to that of the batch */
    struct fetch_outages outages;
    struct fetch_call **calls;  /* by job index: started and not finished */
    struct fetch_call **active; /* running calls, active_count of them */
    size_t active_count;
    size_t next_start;      /* next job to start */
    size_t next_output;     /* next job to write to standard output */
    size_t outputs_pending; /* jobs for standard output that are started and not finished */
    int64_t held_until_ns;  /* no job is started before this instant; BIDE_NEVER: before a call ends; 0: no limit */
};

volatile sig_atomic_t fetch_signal;
static struct bide_multi *volatile batch_multi; /* read by the signal handler */

/* ---- signals ---- */

/* bide_multi_wakeup is async-signal-safe: one write to a descriptor. */
static void on_signal(int number)
{
    int saved = errno;
    fetch_signal = number;
    if (batch_multi)
        bide_multi_wakeup(batch_multi);
    errno = saved;
}

void fetch_install_signals(void)
{
    cli_signals_catch(on_signal, (int)SA_RESETHAND);
}

/* ---- jobs ---- */

static void call_finish(struct batch_run *run, struct fetch_call *call)
{
    if (!call->job->output_path)
        run->outputs_pending--;
    run->calls[call->index] = NULL;
    fetch_call_finish(call);
    fetch_call_free(call);
}

static void active_remove(struct batch_run *run, const struct fetch_call *call)
{
    for (size_t i = 0; i < run->active_count; i++)
        if (run->active[i] == call) {
            run->active[i] = run->active[--run->active_count];
            return;
        }
}

/* Called inside bide_multi, where a call must not be freed: only marks the job. */
static void on_call_over(void *owner, struct fetch_call *call)
{
    active_remove(owner, call);
    call->job->state = FETCH_JOB_ENDED;
}

static bool batch_may_start(const struct batch_run *run)
{
    const struct fetch_batch *b = run->batch;
    if (run->next_start >= b->count || run->active_count >= b->parallel || fetch_signal != 0)
        return false;
    return b->jobs[run->next_start].output_path || run->outputs_pending < FETCH_AHEAD_MAX;
}

static bool batch_start_next(struct batch_run *run)
{
    struct fetch_batch *b = run->batch;
    struct fetch_call *call = calloc(1, sizeof *call);
    if (!call)
        return false;
    call->request = b->request;
    call->listener = &run->listener;
    call->index = run->next_start++;
    call->job = &b->jobs[call->index];
    call->on_over = on_call_over;
    call->owner = run;
    run->params.is_next = !call->job->output_path && run->outputs_pending == 0;
    run->outputs_pending += !call->job->output_path;
    run->calls[call->index] = call;
    run->active[run->active_count++] = call;
    fetch_call_start(call, &run->params);
    return true;
}

/* Returns the target of the next job; NULL: no call has used it yet. */
static const struct bide_target *batch_next_target(const struct batch_run *run)
{
    char origin[ORIGIN_SIZE];
    if (run->params.target)
        return run->params.target;
    bool found = bide_curl_origin(origin, sizeof origin, run->batch->jobs[run->next_start].url);
    return found ? bide_targets_find(run->params.targets, origin) : NULL;
}

/* Returns true if a job that starts now could wait by itself: until this instant and, since a breaker that closes
 * admits a growing share, for its ramp. */
static bool batch_job_can_wait(const struct fetch_request *request, int64_t until_ns, int64_t now_ns)
{
    const struct bide_policy *policy = request->policy;
    int64_t attempt_ns = policy->attempt_min_ns > 0 ? policy->attempt_min_ns : policy->connect_timeout_ns;
    int64_t room_ns = policy->call_timeout_ns - request->gates->breaker.ramp_ns;
    return policy->call_timeout_ns == BIDE_NEVER || (attempt_ns < room_ns && until_ns - now_ns < room_ns - attempt_ns);
}

/* Returns `held_until_ns`. If no call is running whose end may open the gate, and the gate opens at no known instant or
 * after the deadline of all jobs together, the job is started, and reports why it gives up. */
static int64_t batch_hold_next(const struct batch_run *run)
{
    const struct fetch_request *r = run->batch->request;
    const struct bide_target *target = batch_next_target(run);
    if (run->batch->count < 2 || r->policy->when_refused != BIDE_WHEN_REFUSED_WAIT || !target)
        return 0;
    int64_t now_ns = bide_now(), end_ns = r->deadline_ns > 0 ? r->deadline_ns : BIDE_NEVER;
    struct bide_admission next = bide_target_next(target, now_ns);
    if (next.reason == BIDE_REASON_BREAKER_RAMPING)
        next = (struct bide_admission){.at_ns = now_ns + r->gates->breaker.ramp_ns / RAMP_POLLS + 1};
    bool must_start = next.attempts > 0 || (run->active_count == 0 && next.at_ns >= end_ns);
    return must_start || batch_job_can_wait(r, next.at_ns, now_ns) ? 0 : next.at_ns;
}

/* Ends a job that was not started, because its server is down. */
static void batch_skip_next(struct batch_run *run)
{
    size_t index = run->next_start++;
    struct fetch_job *job = &run->batch->jobs[index];
    job->verdict = (struct bide_verdict){.action = BIDE_ACTION_GIVE_UP, .reason = BIDE_REASON_WAITS_SPENT};
    job->code = BIDE_CURL_NOT_SENT;
    job->in_outage = true;
    job->state = FETCH_JOB_ENDED;
    job->exit_status = fetch_exit_status(job);
    snprintf(job->error_text, sizeof job->error_text, "%s", bide_curl_strerror(job->code));
    run->listener.on_event(
        run, &(struct fetch_event){
                 .job = job, .index = index, .verdict = job->verdict, .code = job->code, .text = job->error_text});
}

static void batch_on_event(void *context, const struct fetch_event *event)
{
    struct batch_run *run = context;
    const struct fetch_listener *l = &run->batch->listener;
    fetch_outages_note(&run->outages, event, bide_now());
    if (event->verdict.action == BIDE_ACTION_GIVE_UP && event->job->state == FETCH_JOB_ENDED)
        fetch_outages_note_end(&run->outages, event->index);
    if (l->on_event)
        l->on_event(l->context, event);
}

static void batch_on_restart(void *context, const struct fetch_job *job, const char *why)
{
    const struct fetch_listener *l = &((struct batch_run *)context)->batch->listener;
    if (l->on_restart)
        l->on_restart(l->context, job, why);
}

/* Finishes ended jobs: file jobs at once, standard output jobs when they are next. */
static void batch_finish_ended(struct batch_run *run)
{
    const struct fetch_batch *b = run->batch;
    for (size_t i = run->next_output; i < run->next_start; i++) {
        struct fetch_call *call = run->calls[i];
        bool over = call && b->jobs[i].state == FETCH_JOB_ENDED;
        bool to_stdout = over && !b->jobs[i].output_path;
        if (over && b->jobs[i].output_path)
            call_finish(run, call);
        if (to_stdout && i == run->next_output) {
            if (call->output.kind == FETCH_OUTPUT_SPOOL && !fetch_output_copy_spool(&call->output))
                call->job->cancelled = call->output.error == 0;
            call_finish(run, call);
        }
        if (i == run->next_output && !run->calls[i])
            run->next_output++;
    }
}

/* Ends the waits for servers that are down for too long. A running attempt is not ended: it may be the one that
 * succeeds. Backwards, because an ended call is replaced by the last. */
static void batch_end_waits(struct batch_run *run)
{
    int64_t now_ns = bide_now();
    for (size_t i = run->active_count; i-- > 0;) {
        struct fetch_call *call = run->active[i];
        if (call->job->state != FETCH_JOB_WAITING || !fetch_outages_ends_wait(&run->outages, call->index, now_ns))
            continue;
        call->in_outage = true;
        bide_multi_cancel(run->params.multi, call->running);
    }
    batch_finish_ended(run);
    fetch_outages_restart(&run->outages, now_ns);
}

/* ---- event loop ---- */

static int64_t batch_poll_until(const struct batch_run *run)
{
    const struct fetch_listener *l = &run->batch->listener;
    int64_t pause_ns = l->on_tick ? l->tick_ns : BIDE_NEVER;
    for (size_t i = 0; i < run->active_count; i++)
        if (run->active[i]->upload_paused && pause_ns > UPLOAD_POLL_NS)
            pause_ns = UPLOAD_POLL_NS;
    int64_t until_ns = pause_ns == BIDE_NEVER ? BIDE_NEVER : bide_now() + pause_ns;
    int64_t due_ns = fetch_outages_due(&run->outages);
    until_ns = due_ns < until_ns ? due_ns : until_ns;
    return run->held_until_ns != 0 && run->held_until_ns < until_ns ? run->held_until_ns : until_ns;
}

/* bide_multi_poll waits only while it has a call; all jobs may be held. */
static void batch_poll(struct batch_run *run)
{
    int64_t until_ns = batch_poll_until(run), wait_ns = until_ns - bide_now();
    if (run->active_count > 0)
        bide_multi_poll(run->params.multi, until_ns);
    else if (wait_ns > 0)
        curl_multi_poll(bide_multi_handle_get(run->params.multi), NULL, 0,
                        (int)((wait_ns < HELD_POLL_NS ? wait_ns : HELD_POLL_NS) / BIDE_MS) + 1, NULL);
}

static void batch_after_poll(struct batch_run *run)
{
    for (size_t i = 0; i < run->active_count; i++) {
        fetch_call_report(run->active[i]);
        fetch_call_resume_upload(run->active[i]);
    }
    batch_finish_ended(run);
    if (run->batch->listener.on_tick)
        run->batch->listener.on_tick(run->batch->listener.context);
}

/* Starts all jobs that may start now. Returns false if out of memory. */
static bool batch_start(struct batch_run *run)
{
    run->held_until_ns = 0;
    while (batch_may_start(run)) {
        if (fetch_outages_is_down(&run->outages, run->next_start))
            batch_skip_next(run);
        else if ((run->held_until_ns = batch_hold_next(run)) != 0)
            return true;
        else if (!batch_start_next(run))
            return false;
    }
    return true;
}

static bool batch_loop(struct batch_run *run)
{
    for (;;) {
        batch_end_waits(run);
        if (!batch_start(run))
            return false;
        batch_finish_ended(run);
        if (fetch_signal != 0 || (run->active_count == 0 && !batch_may_start(run)))
            return true;
        batch_poll(run);
        batch_after_poll(run);
    }
}

/* Cancels jobs that were not started because of a signal. */
static void batch_cancel_rest(struct batch_run *run)
{
    for (size_t i = run->next_start; i < run->batch->count; i++) {
        struct fetch_job *job = &run->batch->jobs[i];
        job->verdict = (struct bide_verdict){.action = BIDE_ACTION_GIVE_UP, .reason = BIDE_REASON_CANCELLED};
        job->cancelled = true;
        job->state = FETCH_JOB_ENDED;
        job->exit_status = fetch_exit_status(job);
    }
}

static enum bide_err batch_open(struct batch_run *run, struct bide_problem *problem)
{
    const struct fetch_batch *b = run->batch;
    const struct fetch_request *r = b->request;
    run->calls = calloc(b->count, sizeof(struct fetch_call *));
    run->active = calloc(b->parallel, sizeof(struct fetch_call *));
    if (!run->calls || !run->active)
        return BIDE_ERR_NOMEM;
    enum bide_err err = r->target ? bide_targets_name_check(r->target, problem) : BIDE_OK;
    if (err == BIDE_OK)
        err = bide_targets_new(&run->params.targets, TARGETS_MAX, r->gates, problem);
    if (err == BIDE_OK)
        err = bide_multi_new(&run->params.multi);
    if (err == BIDE_OK && !fetch_outages_init(&run->outages, b))
        err = BIDE_ERR_NOMEM;
    run->params.target = r->shared;
    if (err != BIDE_OK || !r->target || r->shared)
        return err;
    run->params.target = bide_targets_get(run->params.targets, r->target, bide_now());
    return run->params.target ? BIDE_OK : BIDE_ERR_NOMEM; /* NULL would mean a target per origin */
}

/* Placeholder for the upload reader of a call. */
static size_t read_nothing(char *into, size_t size, size_t count, void *context)
{
    (void)into;
    (void)size;
    (void)count;
    (void)context;
    return 0;
}

/* All jobs have the same options: checks them once, before the first call. */
static enum bide_err batch_check_options(const struct fetch_request *request, struct bide_problem *problem)
{
    struct bide_curl_options options;
    fetch_request_options(&options, request, 0);
    options.write_data = &options; /* any non-NULL sink */
    if (options.body.kind == BIDE_CURL_BODY_STREAM)
        options.body.read = read_nothing;
    return bide_curl_options_check(&options, problem);
}

/* The first failure decides, except that a signal which ended a job ended the command. */
static int batch_exit_status(const struct fetch_batch *batch)
{
    int status = 0;
    for (size_t i = 0; i < batch->count; i++)
        if (status == 0 || batch->jobs[i].cancelled)
            status = batch->jobs[i].exit_status;
    return status;
}

int fetch_batch_run(struct fetch_batch *batch, struct bide_problem *problem)
{
    struct batch_run run = {.batch = batch, .listener = {.on_event = batch_on_event, .on_restart = batch_on_restart}};
    run.listener.context = &run;
    int status = -1;
    enum bide_err err = batch_check_options(batch->request, problem);
    if (err == BIDE_OK)
        err = batch_open(&run, problem);
    if (err != BIDE_OK)
        goto out;
    batch_multi = run.params.multi;
    bool completed = batch_loop(&run);
    if (!completed || fetch_signal != 0)
        bide_multi_cancel_all(run.params.multi);
    batch_finish_ended(&run);
    batch_multi = NULL;
    batch_cancel_rest(&run);
    status = completed ? batch_exit_status(batch) : -1;
    err = completed ? BIDE_OK : BIDE_ERR_NOMEM;
out:
    if (err == BIDE_ERR_NOMEM)
        *problem = (struct bide_problem){.text = "out of memory"};
    if (run.calls)
        for (size_t i = 0; i < batch->count; i++)
            fetch_call_free(run.calls[i]);
    bide_multi_free(run.params.multi);
    bide_targets_free(run.params.targets);
    fetch_outages_free(&run.outages);
    free(run.active);
    free(run.calls);
    return status;
}
