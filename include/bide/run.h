/* run.h - a blocking call: the caller supplies a function that makes one attempt.
 *
 *     static struct bide_outcome fetch(void *context, const struct bide_verdict *start) { ... }
 *
 *     struct bide_job job = {.name = "inventory", .request.safety = BIDE_SAFE, .attempt = fetch, .context = &mine};
 *     struct bide_verdict end = bide_run(&job);
 *     if (end.action != BIDE_ACTION_DONE) ... bide_reason_text(end.reason)
 *
 * A name, a safety and a function are enough: all calls of the process with that name share a target, which has a retry
 * budget and a circuit breaker. The other fields may be 0.
 *
 * A few lines on top of the engine; it decides nothing. It fills the request's seed (if 0) and lane. A single thread
 * makes one attempt at a time, so hedges are not started. The attempt function must return by
 * start->attempt_deadline_ns; if it fails after that, it should set BIDE_FLAG_TIMED_OUT.
 *
 * Threads: bide_run may be called from any thread, several at once; attempt and event are called in the thread of
 * their call. */
#ifndef BIDE_RUN_H
#define BIDE_RUN_H

#include <bide/call.h>
#include <bide/event.h>
#include <bide/targets.h>
#include <bide/wait.h>

BIDE_BEGIN_DECLS

struct bide_job {
    const char *name;                 /* of the dependency; NULL: "default". With a target: only for events */
    const struct bide_policy *policy; /* NULL: the preset service */
    struct bide_target *target;  /* NULL: the target of that name in bide_targets_default; BIDE_NO_TARGET: no gates of a
                                 * target, also if there is no memory for that table */
    struct bide_request request; /* seed 0: drawn from bide_seed */
    struct bide_outcome (*attempt)(void *context, const struct bide_verdict *start); /* required */
    void (*event)(void *context, const struct bide_event *event);                    /* NULL: no events */
    void *context;
    const struct bide_cancel *cancel; /* NULL: cannot be cancelled */
    uint64_t reserved_[4];            /* zero: room to grow */
};

/* Runs the call to its end and returns the last verdict: DONE or GIVE_UP. */
BIDE_API struct bide_verdict bide_run(const struct bide_job *job);

BIDE_END_DECLS
#endif
