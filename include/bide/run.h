/* run.h - the blocking way to make a call: give it a function that makes one attempt.
 *
 *     static struct bide_outcome fetch(void *context, const struct bide_verdict *start) { ... }
 *
 *     struct bide_job job = { .policy = &policy, .target = target, .attempt = fetch, .context = &mine };
 *     struct bide_verdict end = bide_run(&job);
 *
 * A few lines over the engine; it decides nothing. It fills the request's seed (if 0) and lane. One thread makes one
 * attempt at a time, so hedges are not started here. The attempt function must return by start->attempt_deadline_ns;
 * one that fails after it should say BIDE_FLAG_TIMED_OUT. */
#ifndef BIDE_RUN_H
#define BIDE_RUN_H

#include <bide/call.h>
#include <bide/wait.h>

BIDE_BEGIN_DECLS

/* What happened, for logs and metrics: each verdict, with the outcome that led to it (NULL for begin, wake and
 * cancel). START is told once for each attempt that is made. */
struct bide_event {
    const struct bide_verdict *verdict;
    const struct bide_outcome *outcome;
    int64_t now_ns; /* when it is told: a moment after it was decided */
};

struct bide_job {
    const struct bide_policy *policy;
    struct bide_target *target;  /* NULL: no shared gates */
    struct bide_request request; /* seed 0: drawn from bide_seed */
    struct bide_outcome (*attempt)(void *context, const struct bide_verdict *start);
    void (*event)(void *context, const struct bide_event *event); /* NULL: nobody listens */
    void *context;
    const struct bide_cancel *cancel; /* NULL: cannot be cancelled */
};

/* Runs the call to its end and returns the last verdict: DONE or GIVE_UP. */
BIDE_API struct bide_verdict bide_run(const struct bide_job *job);

BIDE_END_DECLS
#endif
