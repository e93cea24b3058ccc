/* child.c - one child process in its own process group: fork and exec, termination, SIGKILL.
 *
 * No signal reports the death of grandchildren, so the group is polled every GROUP_POLL_NS while it is being
 * terminated. During that time bide is a subreaper (PR_SET_CHILD_SUBREAPER): orphans of the leader become children of
 * bide and are reaped, so that a zombie does not count as alive. After the leader's end, a process that survives
 * SIGKILL for KILL_WAIT_NS (uninterruptible sleep in the kernel) is abandoned.
 *
 * Known weakness: between the death of the last process of the group and the next poll, the kernel could reuse the
 * group's ID. It assigns IDs in sequence, so all of them would have to be used up within GROUP_POLL_NS. */
#include "child.h"

#include <errno.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define GROUP_POLL_NS (20 * BIDE_MS)
#define KILL_WAIT_NS  BIDE_S

/* ---- start ---- */

static bool child_set_fd(int fd, int target_fd)
{
    int result = 0;
    if (fd >= 0)
        while ((result = dup2(fd, target_fd)) < 0 && errno == EINTR)
            continue;
    return result >= 0;
}

/* Runs in the child process: only async-signal-safe functions are allowed after fork. */
static _Noreturn void child_exec(const struct run_spawn *spawn, pid_t parent, int exec_error_fd)
{
    setpgid(0, 0);
    if (spawn->terminal != NULL && spawn->terminal->lent)
        tcsetpgrp(spawn->terminal->fd, getpid()); /* parent and child both set it: the order of the two is unknown */
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(1); /* the parent died before prctl took effect, so no SIGTERM would follow */
    run_signals_restore(spawn->signals);
    /* With a stream that bide does not see, no pattern would match and --hold would not hold. */
    if (child_set_fd(spawn->in, STDIN_FILENO) && child_set_fd(spawn->out, STDOUT_FILENO) &&
        child_set_fd(spawn->err, STDERR_FILENO) && child_set_fd(spawn->hint, 3))
        execvpe(spawn->argv[0], spawn->argv, spawn->environment);
    int error = errno;
    while (write(exec_error_fd, &error, sizeof error) < 0 && errno == EINTR)
        continue;
    _exit(127);
}

bool run_child_start(struct run_child *child, const struct run_spawn *spawn)
{
    struct cli_pipe started;
    pid_t parent = getpid();
    struct run_terminal *terminal = spawn->terminal;
    child->exec_error_fd = -1;
    if (!cli_fd_pipe(&started))
        return false;
    if (terminal != NULL)
        terminal->lent = terminal->lend_at_start && run_terminal_is_foreground(terminal); /* read by the child, too */
    child->pid = fork();
    if (child->pid == 0)
        child_exec(spawn, parent, started.write);
    cli_fd_close(&started.write);
    if (child->pid < 0) {
        cli_fd_close(&started.read);
        child->pid = 0;
        if (terminal != NULL)
            terminal->lent = false;
        return false;
    }
    setpgid(child->pid, child->pid);
    if (terminal != NULL && terminal->lent)
        tcsetpgrp(terminal->fd, child->pid);
    child->exec_error_fd = started.read;
    return true;
}

/* ---- supervision ---- */

static bool group_is_alive(const struct run_child *child)
{
    return kill(-child->pid, 0) == 0 || errno == EPERM;
}

bool run_child_is_alive(const struct run_child *child)
{
    return child->pid > 0 && (!child->exited || (child->terminating && group_is_alive(child)));
}

/* Reaps orphans of the leader, which the kernel gave to bide as the subreaper. */
static void group_reap(const struct run_child *child)
{
    while (waitpid(-child->pid, NULL, WNOHANG) > 0)
        continue;
}

static void child_record_exit(struct run_child *child, int wait_status)
{
    child->exited = true;
    child->wait_status = wait_status;
    cli_fd_set_nonblocking(child->exec_error_fd); /* exec or exit has closed the write end; never block here */
    if (read(child->exec_error_fd, &child->exec_error, sizeof child->exec_error) != sizeof child->exec_error)
        child->exec_error = 0;
    cli_fd_close(&child->exec_error_fd);
}

/* Reaps every child, because SIGCHLD of several may arrive as one: the leader, orphans of its group, and as PID 1 of a
 * container all orphans. */
int run_child_on_sigchld(struct run_child *child)
{
    int status, stopped = 0;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0 || (pid < 0 && errno == EINTR)) {
        if (pid < 0 || pid != child->pid || child->exited)
            continue;
        stopped = WIFSTOPPED(status) ? WSTOPSIG(status) : 0;
        if (!WIFSTOPPED(status))
            child_record_exit(child, status);
    }
    if (pid < 0 && child->pid > 0 && !child->exited) { /* ECHILD: the leader cannot be waited for */
        child->exited = true;
        child->wait_error = errno;
    }
    return stopped;
}

int64_t run_child_next_ns(const struct run_child *child, int64_t now_ns)
{
    int64_t due_ns = child->terminating ? child->kill_ns : child->deadline_ns;
    if (child->exited && now_ns + GROUP_POLL_NS < due_ns)
        due_ns = now_ns + GROUP_POLL_NS;
    return due_ns;
}

void run_child_on_timer(struct run_child *child, int64_t now_ns)
{
    if (child->pid <= 0)
        return;
    if (child->exited)
        group_reap(child);
    if (!child->terminating && !child->exited && now_ns >= child->deadline_ns) {
        child->timed_out = true;
        run_child_terminate(child, SIGTERM, now_ns + child->grace_ns);
    } else if (child->terminating && now_ns >= child->kill_ns) {
        run_child_signal(child, SIGKILL);
        child->terminating = !child->killed; /* SIGKILL was sent before: nothing more can be done */
        child->kill_ns = now_ns + KILL_WAIT_NS;
        child->killed = true;
    }
}

/* ---- termination ---- */

void run_child_signal(const struct run_child *child, int signo)
{
    if (child->pid > 0)
        kill(-child->pid, signo);
}

void run_child_signal_leader(const struct run_child *child, int signo)
{
    if (child->pid > 0 && !child->exited)
        kill(child->pid, signo);
}

void run_child_terminate(struct run_child *child, int signo, int64_t kill_ns)
{
    if (child->pid <= 0)
        return;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    run_child_signal(child, signo);
    run_child_signal(child, SIGCONT); /* a stopped process does not handle SIGTERM */
    if (!child->terminating || kill_ns < child->kill_ns)
        child->kill_ns = kill_ns;
    child->terminating = true;
}
