/* child.h - one process in a group of its own: started, asked to end, killed.
 *
 * The leader's end is the end of the attempt; what it left running in the background is the user's, and stays. It is
 * different once the group was told to end, by a deadline or by a signal to bide: then all of the group has to go, the
 * leader's children too. First SIGTERM (or the signal that bide got), then, when the grace period is over, SIGKILL.
 *
 * If bide is killed outright, the kernel sends SIGTERM to the leader. */
#ifndef RUN_CHILD_H
#define RUN_CHILD_H

#include <bide/base.h>

#include "signals.h"
#include "terminal.h"

struct run_spawn {
    char *const *argv;
    char *const *environment;
    int in, out, err, hint; /* to become 0, 1, 2 and 3; -1: as bide has them */
    const struct run_signals *signals;
    struct run_terminal *terminal; /* lent to it; NULL: not */
};

struct run_child {
    pid_t pid;   /* 0: none */
    bool exited; /* the leader ended: wait_status says how */
    int wait_status;
    int exec_error;      /* errno of exec; 0: it ran */
    int exec_error_fd;   /* where the child says so */
    bool terminating;    /* the group was told to end */
    bool timed_out;      /* ... because its time was over */
    bool killed;         /* ... and has got SIGKILL since */
    int64_t deadline_ns; /* when its time is over */
    int64_t kill_ns;     /* when the grace is over */
    int64_t grace_ns;
};

/* False, with errno: there is no process. The grace and the deadline are to be set before. */
bool run_child_start(struct run_child *child, const struct run_spawn *spawn);

/* True as long as there is somebody to wait for. */
bool run_child_is_alive(const struct run_child *child);

/* What SIGCHLD was about. Returns the signal that stopped the leader; 0: it was not stopped. */
int run_child_on_sigchld(struct run_child *child);

/* When run_child_tick wants to be called. */
int64_t run_child_next_ns(const struct run_child *child, int64_t now_ns);

/* Sends what is due. */
void run_child_on_timer(struct run_child *child, int64_t now_ns);

/* Tells the group to end, by this signal; grace_ns from now it is killed. Again: the shorter of both graces. */
void run_child_terminate(struct run_child *child, int signo, int64_t kill_ns);

/* Sends a signal to the group. */
void run_child_signal(const struct run_child *child, int signo);

#endif
