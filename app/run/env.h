/* env.h - what one bide tells the command, and through it the next bide, in its environment.
 *
 *   BIDE_ATTEMPT           this attempt, from 1; the larger of ours and that of the bide around us
 *   BIDE_ATTEMPTS          how many there will be at most
 *   BIDE_LAST_STATUS       how the attempt before ended; unset in the first
 *   BIDE_TARGET            the target's name, if it has one
 *   BIDE_DEADLINE_MS       milliseconds left until the call's deadline, if it has one
 *   BIDE_IDEMPOTENCY_KEY   the same for all attempts of a call: an outer one is kept
 *   BIDE_HINT_FD           where to write a hint; unset if there is no such place
 *
 * Of an outer bide, BIDE_ATTEMPT and BIDE_DEADLINE_MS are read: layers do not multiply, and the earlier deadline
 * holds.
 *
 * This process's own environment is never written: threads of libraries (a fleet's, a resolver's) read it whenever they
 * like. What is ours is kept aside and goes into the list that the command is started with. */
#ifndef RUN_ENV_H
#define RUN_ENV_H

#include <bide/request.h>

/* Fills inbound and deadline from the environment. Returns the name of a variable that makes no sense and is ignored;
 * NULL: there is none. */
const char *run_env_read(struct bide_request *request, int64_t now_ns);

#define RUN_ENV_LIST(X)                                                                                                \
    X(ATTEMPT, "BIDE_ATTEMPT")                                                                                         \
    X(ATTEMPTS, "BIDE_ATTEMPTS")                                                                                       \
    X(LAST_STATUS, "BIDE_LAST_STATUS")                                                                                 \
    X(TARGET, "BIDE_TARGET")                                                                                           \
    X(DEADLINE_MS, "BIDE_DEADLINE_MS")                                                                                 \
    X(IDEMPOTENCY_KEY, "BIDE_IDEMPOTENCY_KEY")                                                                         \
    X(HINT_FD, "BIDE_HINT_FD")                                                                                         \
    X(REASON, "BIDE_REASON")                                                                                           \
    X(STATUS, "BIDE_STATUS")

enum run_env_name {
#define RUN_ENV_NAME(name, text) RUN_ENV_##name,
    RUN_ENV_LIST(RUN_ENV_NAME)
#undef RUN_ENV_NAME
        RUN_ENV_COUNT
};

#define RUN_ENV_SIZE 192u /* of "NAME=value": a target's name has 127 bytes */

/* The variables that are ours, as the next child shall see them. All zeros: those that bide was started with. */
struct run_env_vars {
    struct {
        enum { RUN_ENV_INHERITED = 0, RUN_ENV_SET, RUN_ENV_UNSET } state;
        char text[RUN_ENV_SIZE]; /* "BIDE_ATTEMPT=2" */
    } variable[RUN_ENV_COUNT];
    char **list;
};

/* A value of NULL: it is not there. False: the value is too long. */
bool run_env_set(struct run_env_vars *vars, enum run_env_name name, const char *value);

struct run_env {
    uint32_t attempt, attempts_max;
    int last_status;     /* -1: none */
    const char *target;  /* NULL: it has no name */
    int64_t deadline_ns; /* BIDE_NEVER: none */
    int64_t now_ns;
    bool offers_hint_fd;
};

/* For the next child. False: the target's name is too long. */
bool run_env_write(struct run_env_vars *vars, const struct run_env *env);

/* Draws the key of this call, unless an outer one is there. */
bool run_env_make_key(struct run_env_vars *vars);

/* The whole environment of the next child, for exec; ours until the next call. NULL: no memory. */
char **run_env_build(struct run_env_vars *vars);

void run_env_free(struct run_env_vars *vars);

#endif
