/* batch.c - all jobs, so many at once, over one bide_multi.
 *
 * Jobs begin in their order. Answers for standard output come there in the same order: the one whose turn it is when it
 * begins streams, the others are spooled to their end and poured when their turn comes. So that spools stay bounded, no
 * more than FETCH_AHEAD_MAX of them are begun and not poured. Files do not wait for anybody. */
#include "call.h"

#include "setup.h"

#include <bide/clock.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TARGETS_MAX 1024u
#define FEED_NS     (20 * BIDE_MS) /* how often a request's body that is not there yet is looked for */

struct run {
    struct fetch_batch *batch;
    struct fetch_start start;
    struct fetch_transfer **of;      /* by job: begun, and not finished */
    struct fetch_transfer **at_work; /* some of them, `working` in all */
    size_t working;
    size_t next;  /* job to begin */
    size_t turn;  /* job whose answer standard output waits for */
    size_t ahead; /* jobs begun for standard output, and not finished */
};

volatile sig_atomic_t fetch_signal;
static struct bide_multi *volatile running; /* for the handler */

/* ---- signals ---- */

/* bide_multi_wakeup is one write to a descriptor. */
static void on_signal(int number)
{
    int saved = errno;
    fetch_signal = number;
    if (running)
        bide_multi_wakeup(running);
    errno = saved;
}

void fetch_catch(void)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction stop = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND}, ignore = {.sa_handler = SIG_IGN};
    struct sigaction before;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (sigaction(ends[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN) /* nohup stays nohup */
            sigaction(ends[i], &stop, NULL);
    sigaction(SIGPIPE, &ignore, NULL);
    sigaction(SIGXFSZ, &ignore, NULL);
}

/* ---- jobs ---- */

static void finish(struct run *run, struct fetch_transfer *t)
{
    if (!t->job->path)
        run->ahead--;
    run->of[t->index] = NULL;
    fetch_transfer_finish(t);
    fetch_transfer_free(t);
}

static void leave_work(struct run *run, const struct fetch_transfer *t)
{
    for (size_t i = 0; i < run->working; i++)
        if (run->at_work[i] == t) {
            run->at_work[i] = run->at_work[--run->working];
            return;
        }
}

/* Called from inside bide_multi: what is over is only marked. */
static void on_over(void *owner, struct fetch_transfer *t)
{
    leave_work(owner, t);
    t->job->state = FETCH_OVER;
}

static bool may_begin(const struct run *run)
{
    const struct fetch_batch *b = run->batch;
    if (run->next >= b->count || run->working >= b->parallel || fetch_signal != 0)
        return false;
    return b->jobs[run->next].path || run->ahead < FETCH_AHEAD_MAX;
}

static bool begin_next(struct run *run)
{
    struct fetch_batch *b = run->batch;
    struct fetch_transfer *t = calloc(1, sizeof *t);
    if (!t)
        return false;
    t->request = b->request;
    t->listener = &b->listener;
    t->index = run->next++;
    t->job = &b->jobs[t->index];
    t->over = on_over;
    t->owner = run;
    run->start.now = !t->job->path && run->ahead == 0;
    run->ahead += !t->job->path;
    run->of[t->index] = t;
    run->at_work[run->working++] = t;
    fetch_transfer_begin(t, &run->start);
    return true;
}

/* Finishes what is over: files at once, standard output in its turn. */
static void settle(struct run *run)
{
    const struct fetch_batch *b = run->batch;
    for (size_t i = run->turn; i < run->next; i++) {
        struct fetch_transfer *t = run->of[i];
        bool over = t && b->jobs[i].state == FETCH_OVER;
        bool poured = over && !b->jobs[i].path;
        if (over && b->jobs[i].path)
            finish(run, t);
        if (poured && i == run->turn) {
            if (t->place.kind == FETCH_TO_SPOOL && !fetch_place_pour(&t->place))
                t->job->cancelled = t->place.error == 0;
            finish(run, t);
        }
        if (i == run->turn && !run->of[i])
            run->turn++;
    }
}

/* ---- the loop ---- */

static int64_t until_of(const struct run *run)
{
    const struct fetch_listener *l = &run->batch->listener;
    int64_t pause_ns = l->tick ? l->tick_ns : BIDE_NEVER;
    for (size_t i = 0; i < run->working; i++)
        if (run->at_work[i]->fed_later && pause_ns > FEED_NS)
            pause_ns = FEED_NS;
    return pause_ns == BIDE_NEVER ? BIDE_NEVER : bide_now() + pause_ns;
}

static void look_around(struct run *run)
{
    for (size_t i = 0; i < run->working; i++) {
        fetch_transfer_tell(run->at_work[i]);
        fetch_transfer_feed(run->at_work[i]);
    }
    settle(run);
    if (run->batch->listener.tick)
        run->batch->listener.tick(run->batch->listener.context);
}

static bool work(struct run *run)
{
    for (;;) {
        while (may_begin(run))
            if (!begin_next(run))
                return false;
        settle(run);
        if (fetch_signal != 0 || (run->working == 0 && !may_begin(run)))
            return true;
        if (run->working > 0)
            bide_multi_poll(run->start.multi, until_of(run));
        look_around(run);
    }
}

/* What was not begun, because of a signal. */
static void give_up_rest(struct run *run)
{
    for (size_t i = run->next; i < run->batch->count; i++) {
        struct fetch_job *job = &run->batch->jobs[i];
        job->verdict = (struct bide_verdict){.action = BIDE_GIVE_UP, .reason = BIDE_REASON_CANCELLED};
        job->cancelled = true;
        job->state = FETCH_OVER;
        job->exit_status = fetch_exit_status(job);
    }
}

static enum bide_err open_run(struct run *run, struct bide_problem *problem)
{
    const struct fetch_batch *b = run->batch;
    const struct fetch_request *r = b->request;
    run->of = calloc(b->count, sizeof(struct fetch_transfer *));
    run->at_work = calloc(b->parallel, sizeof(struct fetch_transfer *));
    if (!run->of || !run->at_work)
        return BIDE_ERR_NOMEM;
    enum bide_err err = r->target ? bide_targets_name_check(r->target, problem) : BIDE_OK;
    if (err == BIDE_OK)
        err = bide_targets_new(&run->start.targets, TARGETS_MAX, r->gates, problem);
    if (err == BIDE_OK)
        err = bide_multi_new(&run->start.multi);
    run->start.target = r->shared;
    if (err == BIDE_OK && r->target && !r->shared)
        run->start.target = bide_targets_get(run->start.targets, r->target, bide_now());
    return err;
}

/* Stands for the reader that a transfer has. */
static size_t read_nothing(char *into, size_t size, size_t count, void *context)
{
    (void)into;
    (void)size;
    (void)count;
    (void)context;
    return 0;
}

/* The options are the same for all jobs: one look suffices. */
static enum bide_err check(const struct fetch_request *request, struct bide_problem *problem)
{
    struct bide_curl_options options;
    fetch_options(&options, request, 0);
    options.write_data = &options; /* a sink, whichever */
    if (options.body.kind == BIDE_CURL_BODY_STREAM)
        options.body.read = read_nothing;
    return bide_curl_options_check(&options, problem);
}

int fetch_all(struct fetch_batch *batch, struct bide_problem *problem)
{
    struct run run = {.batch = batch};
    int status = -1;
    *problem = (struct bide_problem){.field = "memory", .want = "more of it"};
    if (check(batch->request, problem) != BIDE_OK || open_run(&run, problem) != BIDE_OK)
        goto out;
    running = run.start.multi;
    bool worked = work(&run);
    if (!worked || fetch_signal != 0)
        bide_multi_cancel_all(run.start.multi);
    settle(&run);
    running = NULL;
    give_up_rest(&run);
    status = worked ? 0 : -1;
    for (size_t i = 0; worked && i < batch->count && status == 0; i++)
        status = batch->jobs[i].exit_status;
out:
    if (run.of)
        for (size_t i = 0; i < batch->count; i++)
            fetch_transfer_free(run.of[i]);
    bide_multi_free(run.start.multi);
    bide_targets_free(run.start.targets);
    free(run.at_work);
    free(run.of);
    return status;
}
