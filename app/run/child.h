/* child.h - one child process in its own process group: fork and exec, termination, SIGKILL.
 *
 * An attempt ends when the group leader ends. Processes that the leader leaves in the background belong to the user and
 * keep running. A group that is being terminated (deadline, or a signal to bide) must go completely, including the
 * leader's children: first SIGTERM (or the signal that bide received), and SIGKILL after the grace period.
 *
 * If bide is killed with SIGKILL, the kernel sends SIGTERM to the leader (PR_SET_PDEATHSIG). */
#ifndef RUN_CHILD_H
#define RUN_CHILD_H

#include <bide/base.h>

#include "signals.h"
#include "terminal.h"

struct run_spawn {
    char *const *argv;
    char *const *environment;
    int in, out, err, hint; /* become descriptors 0, 1, 2 and 3; -1: inherited from bide */
    const struct run_signals *signals;
    struct run_terminal *terminal; /* becomes the child's while it runs; NULL: no terminal */
};

struct run_child {
    pid_t pid;   /* 0: no process */
    bool exited; /* the leader has ended; wait_status is valid */
    int wait_status;
    int wait_error;      /* errno of waitpid: how the leader ended is unknown; 0: none */
    int exec_error;      /* errno of exec; 0: exec succeeded */
    int exec_error_fd;   /* pipe through which the child reports a failed exec */
    bool terminating;    /* the group was sent a termination signal */
    bool timed_out;      /* ... because the attempt's deadline passed */
    bool killed;         /* ... and SIGKILL after the grace period */
    int64_t deadline_ns; /* deadline of the attempt */
    int64_t kill_ns;     /* when SIGKILL is due */
    int64_t grace_ns;
};

/* Starts the process. deadline_ns and grace_ns must be set. Returns false and sets errno on failure. */
bool run_child_start(struct run_child *child, const struct run_spawn *spawn);

/* Returns true while the leader runs, or while any process of a terminated group runs. */
bool run_child_is_alive(const struct run_child *child);

/* Reaps the leader and any other child after SIGCHLD, or sets wait_error. Returns the number of the signal that stopped
 * the leader, 0 if it was not stopped. */
int run_child_on_sigchld(struct run_child *child);

/* Returns the instant at which run_child_on_timer must be called next. */
int64_t run_child_next_ns(const struct run_child *child, int64_t now_ns);

/* Sends the signals that are due: SIGTERM at the deadline, SIGKILL after the grace period. */
void run_child_on_timer(struct run_child *child, int64_t now_ns);

/* Sends the signal to the group, and SIGKILL at kill_ns. A second call can only make that instant earlier. */
void run_child_terminate(struct run_child *child, int signo, int64_t kill_ns);

/* Sends a signal to the group. */
void run_child_signal(const struct run_child *child, int signo);

/* Sends a signal to the command itself, as if it had been sent to the command and not to bide: its children would not
 * get it either. */
void run_child_signal_leader(const struct run_child *child, int signo);

#endif
