/* env.h - environment variables by which bide informs the command, and a `bide run` or `bide fetch` inside it, which
 * reads them with common/outer.h.
 *
 *   BIDE_ATTEMPT           number of this attempt, from 1; the larger of ours and the outer bide's
 *   BIDE_ATTEMPTS          maximum number of attempts, or unlimited
 *   BIDE_LAST_STATUS       exit status of the previous attempt; unset in the first
 *   BIDE_TARGET            name of the target; unset if it has none
 *   BIDE_DEADLINE_MS       milliseconds left until the call's deadline; unset if there is none
 *   BIDE_IDEMPOTENCY_KEY   the same in all attempts of a call; the outer bide's key is kept
 *   BIDE_OUTER             process ID and start time of this bide; the other variables count while it lives
 *   BIDE_HINT_FD           descriptor for hints; unset if none is offered
 *   BIDE_HINT_PIPE         inode of the pipe on that descriptor, by which bide fetch recognizes it
 *   BIDE_REASON            only for the fallback: the reason for giving up
 *   BIDE_STATUS            only for the fallback: the exit status without it
 *   LANGUAGE               only with --like: en, so that messages are not translated
 *   TRACEPARENT            the attempt's own parent id in the trace, if spans are exported; else it is inherited
 *   TRACESTATE             removed where TRACEPARENT begins a new trace; else it is inherited
 *
 * The functions here never write bide's own environment, because threads of libraries (fleet, resolver) may read it at
 * any time. The changes are kept in struct run_env_vars and merged into the list that exec gets. */
#ifndef RUN_ENV_H
#define RUN_ENV_H

#include <bide/request.h>
#include <bide/trace.h>

#include <sys/types.h>

#define RUN_ENV_LIST(X)                                                                                                \
    X(ATTEMPT, "BIDE_ATTEMPT")                                                                                         \
    X(ATTEMPTS, "BIDE_ATTEMPTS")                                                                                       \
    X(LAST_STATUS, "BIDE_LAST_STATUS")                                                                                 \
    X(TARGET, "BIDE_TARGET")                                                                                           \
    X(DEADLINE_MS, "BIDE_DEADLINE_MS")                                                                                 \
    X(IDEMPOTENCY_KEY, "BIDE_IDEMPOTENCY_KEY")                                                                         \
    X(OUTER, "BIDE_OUTER")                                                                                             \
    X(HINT_FD, "BIDE_HINT_FD")                                                                                         \
    X(HINT_PIPE, "BIDE_HINT_PIPE")                                                                                     \
    X(REASON, "BIDE_REASON")                                                                                           \
    X(STATUS, "BIDE_STATUS")                                                                                           \
    X(LANGUAGE, "LANGUAGE")                                                                                            \
    X(TRACE, "TRACEPARENT")                                                                                            \
    X(TRACE_STATE, "TRACESTATE")

enum run_env_name {
#define RUN_ENV_NAME(name, text) RUN_ENV_##name,
    RUN_ENV_LIST(RUN_ENV_NAME)
#undef RUN_ENV_NAME
        RUN_ENV_COUNT
};

#define RUN_ENV_SIZE 192u /* of "NAME=value": a target name has up to 127 bytes */

/* Variables that bide sets or removes for the next child. All zeros: everything is inherited. */
struct run_env_vars {
    struct {
        enum { RUN_ENV_INHERITED = 0, RUN_ENV_SET, RUN_ENV_UNSET } state;
        char text[RUN_ENV_SIZE]; /* "BIDE_ATTEMPT=2" */
    } variable[RUN_ENV_COUNT];
    char **list;
};

/* Sets a variable; NULL removes it. Returns false if the value is too long. */
bool run_env_set(struct run_env_vars *vars, enum run_env_name name, const char *value);

struct run_env {
    uint32_t attempt, attempts_max;
    int last_status;     /* -1: no previous attempt */
    const char *target;  /* NULL: the target has no name */
    int64_t deadline_ns; /* BIDE_NEVER: no deadline */
    int64_t now_ns;
    struct bide_trace trace; /* of the attempt; empty: TRACEPARENT is inherited */
    bool is_new_trace;       /* not that of the process that started bide: TRACESTATE does not belong to it */
    ino_t hint_pipe;         /* inode of the pipe for hints; 0: none is offered */
};

/* Sets the variables of one attempt. Returns false if the target's name is too long. */
bool run_env_write(struct run_env_vars *vars, const struct run_env *env);

/* Generates the idempotency key of this call, unless an outer bide that still runs has set one: a daemon must not use
 * the key of the call that started it for ever. Returns false if there is no entropy. */
bool run_env_make_key(struct run_env_vars *vars);

/* Returns the complete environment for exec, NULL if out of memory. Valid until the next call. */
char **run_env_build(struct run_env_vars *vars);

void run_env_free(struct run_env_vars *vars);

#endif
