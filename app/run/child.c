/* child.c - one process in a group of its own: started, asked to end, killed.
 *
 * Whether the rest of a group still lives is asked every LOOK_NS: nobody tells. While a group is told to end, bide is
 * the reaper of what the leader leaves behind, so that the dead among them are not taken for alive. What even SIGKILL
 * does not end within PATIENCE_NS (a process in the kernel's hands) is left alone.
 *
 * Known weakness: between the end of the last of a group and the next look, its number could become another group's.
 * The kernel hands numbers out in turn, so that takes a whole round of them within LOOK_NS. */
#include "child.h"

#include <errno.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOOK_NS     (20 * BIDE_MS)
#define PATIENCE_NS BIDE_S

/* ---- starting ---- */

static void become(int fd, int number)
{
    if (fd >= 0)
        dup2(fd, number);
}

/* In the child. Only what may be called after fork. */
static _Noreturn void exec_child(const struct run_spawn *spawn, pid_t parent, int started_fd)
{
    setpgid(0, 0);
    if (spawn->terminal != NULL && spawn->terminal->lent)
        tcsetpgrp(spawn->terminal->fd, getpid()); /* the parent does so too: whoever comes first */
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(1); /* it went before we could ask to be told */
    become(spawn->in, STDIN_FILENO);
    become(spawn->out, STDOUT_FILENO);
    become(spawn->err, STDERR_FILENO);
    become(spawn->hint, 3);
    run_signals_restore(spawn->signals);
    execvpe(spawn->argv[0], spawn->argv, spawn->environment);
    int error = errno;
    while (write(started_fd, &error, sizeof error) < 0 && errno == EINTR)
        continue;
    _exit(127);
}

bool run_child_start(struct run_child *child, const struct run_spawn *spawn)
{
    struct run_pipe started;
    pid_t parent = getpid();
    struct run_terminal *terminal = spawn->terminal;
    child->started_fd = -1;
    if (!run_file_pipe(&started))
        return false;
    if (terminal != NULL)
        terminal->lent = terminal->at_once && run_terminal_is_ours(terminal); /* the child must know it, too */
    child->pid = fork();
    if (child->pid == 0)
        exec_child(spawn, parent, started.write);
    run_file_close(&started.write);
    if (child->pid < 0) {
        run_file_close(&started.read);
        child->pid = 0;
        if (terminal != NULL)
            terminal->lent = false;
        return false;
    }
    setpgid(child->pid, child->pid);
    if (terminal != NULL && terminal->lent)
        tcsetpgrp(terminal->fd, child->pid);
    child->started_fd = started.read;
    return true;
}

/* ---- its life ---- */

static bool group_lives(const struct run_child *child)
{
    return kill(-child->pid, 0) == 0 || errno == EPERM;
}

bool run_child_lives(const struct run_child *child)
{
    return child->pid > 0 && (!child->gone || (child->leaving && group_lives(child)));
}

/* Those that the leader left to us. */
static void reap(const struct run_child *child)
{
    while (waitpid(-child->pid, NULL, WNOHANG) > 0)
        continue;
}

static void bury(struct run_child *child, int wait_status)
{
    child->gone = true;
    child->wait_status = wait_status;
    run_file_nonblocking(child->started_fd); /* nobody holds the other end now; but be sure */
    if (read(child->started_fd, &child->start_error, sizeof child->start_error) != sizeof child->start_error)
        child->start_error = 0;
    run_file_close(&child->started_fd);
}

int run_child_look(struct run_child *child)
{
    int status = 0;
    if (child->gone) {
        reap(child);
        return 0;
    }
    pid_t pid = child->pid > 0 ? waitpid(child->pid, &status, WNOHANG | WUNTRACED) : 0;
    if (pid <= 0)
        return 0;
    if (WIFSTOPPED(status))
        return WSTOPSIG(status);
    bury(child, status);
    return 0;
}

int64_t run_child_due(const struct run_child *child, int64_t now_ns)
{
    int64_t due_ns = child->leaving ? child->kill_ns : child->cut_ns;
    if (child->gone && now_ns + LOOK_NS < due_ns)
        due_ns = now_ns + LOOK_NS;
    return due_ns;
}

void run_child_tick(struct run_child *child, int64_t now_ns)
{
    if (child->pid <= 0)
        return;
    if (child->gone)
        reap(child);
    if (!child->leaving && !child->gone && now_ns >= child->cut_ns) {
        child->cut = true;
        run_child_leave(child, SIGTERM, now_ns + child->grace_ns);
    } else if (child->leaving && now_ns >= child->kill_ns) {
        run_child_signal(child, SIGKILL);
        child->leaving = !child->killed; /* a second time: nothing more can be done */
        child->kill_ns = now_ns + PATIENCE_NS;
        child->killed = true;
    }
}

/* ---- its end ---- */

void run_child_signal(const struct run_child *child, int number)
{
    if (child->pid > 0)
        kill(-child->pid, number);
}

void run_child_leave(struct run_child *child, int number, int64_t kill_ns)
{
    if (child->pid <= 0)
        return;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    run_child_signal(child, number);
    run_child_signal(child, SIGCONT); /* one that is stopped could not end */
    if (!child->leaving || kill_ns < child->kill_ns)
        child->kill_ns = kill_ns;
    child->leaving = true;
}
