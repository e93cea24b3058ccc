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
 * holds. */
#ifndef RUN_ENV_H
#define RUN_ENV_H

#include <bide/request.h>

/* Fills inbound and deadline from the environment. Returns the name of a variable that makes no sense and is ignored;
 * NULL: there is none. */
const char *run_env_read(struct bide_request *request, int64_t now_ns);

struct run_env {
    uint32_t attempt, attempts_max;
    int last_status;     /* -1: none */
    const char *target;  /* NULL: it has no name */
    int64_t deadline_ns; /* BIDE_NEVER: none */
    int64_t now_ns;
    bool offers_hint_fd;
};

/* For the next child. False: no memory. */
bool run_env_write(const struct run_env *env);

/* Draws the key of this call, unless an outer one is there. */
bool run_env_key(void);

#endif
