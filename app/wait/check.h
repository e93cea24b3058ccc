/* check.h - one condition that `bide wait` waits for, and one check whether it is met.
 *
 *   tcp:HOST:PORT   ready when a connection is accepted
 *   URL             ready when GET returns a status below 400 and its whole body; bide fetch sends the request
 *   COMMAND         ready when it exits 0
 *
 * Each check runs in a child process of its own group, which is killed when the time of the check is over: a name
 * server that does not answer blocks getaddrinfo, and no other way ends that. The child writes why the condition is not
 * ready; of a command's output that is the last line. */
#ifndef WAIT_CHECK_H
#define WAIT_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WAIT_ERROR_SIZE 256u

enum wait_kind { WAIT_TCP, WAIT_URL, WAIT_COMMAND };

struct wait_check {
    enum wait_kind kind;
    char name[1024]; /* for messages: a URL up to its query, which may be secret; of a command its first word */
    const char *url; /* WAIT_URL */
    char host[256];  /* WAIT_TCP: without the brackets of IPv6 */
    char port[8];
    char *const *command; /* WAIT_COMMAND */
};

/* Parses "tcp:HOST:PORT" or a URL. Returns NULL, or a description of a valid value. */
const char *wait_check_parse(struct wait_check *check, const char *text);

enum wait_result {
    WAIT_READY,
    WAIT_NOT_READY,
    WAIT_TIMED_OUT,
    WAIT_IMPOSSIBLE, /* no later check can succeed: the command cannot be executed, the URL is invalid */
};

/* Why a condition is not met. */
struct wait_error {
    char text[WAIT_ERROR_SIZE];
    int exit_status; /* WAIT_IMPOSSIBLE: of bide wait: 125, 126 or 127 */
};

/* Prepares the process for checks: a signal that ends it ends the running check, too, and ends PID 1 of a container,
 * which the kernel protects from signals without a handler. SIGCHLD gets its default action. */
void wait_install_signals(void);

/* Makes one check, which ends by the instant `deadline_ns`. If the condition is not met, sets `error`. As PID 1 of a
 * container it also reaps the orphans that checks have left. */
enum wait_result wait_check_run(const struct wait_check *check, int64_t deadline_ns, struct wait_error *error);

#endif
