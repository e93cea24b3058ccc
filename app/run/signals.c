/* signals.c - receives signals through a signalfd and restores them for the command; see signals.h. */
#include "signals.h"

#include "common/fd.h"

#include <errno.h>
#include <sys/signalfd.h>
#include <unistd.h>

static const int command_signals[] = {SIGUSR1, SIGUSR2};

bool run_signals_open(struct run_signals *signals)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN}, default_action = {.sa_handler = SIG_DFL};
    sigset_t *set = &signals->blocked.set;
    cli_signals_collect(&signals->blocked);
    sigaddset(set, SIGCHLD); /* these three even if they were ignored: the loop needs them */
    sigaddset(set, SIGCONT);
    sigaddset(set, SIGWINCH);
    for (int i = 0; i < 2; i++)
        if (!cli_signal_is_ignored(command_signals[i]))
            sigaddset(set, command_signals[i]);
    signals->fd = cli_fd_above_first(signalfd(-1, set, SFD_CLOEXEC | SFD_NONBLOCK));
    if (signals->fd < 0)
        return false;
    sigaddset(set, SIGTTOU); /* never read: a background process may still call tcsetpgrp and tcsetattr */
    if (!cli_signals_block(&signals->blocked))
        return false;
    sigaction(SIGPIPE, &ignore, &signals->sigpipe);
    sigaction(SIGXFSZ, &ignore, &signals->sigxfsz);
    sigaction(SIGCHLD, &default_action, &signals->sigchld); /* with SIG_IGN the kernel would reap the children */
    return true;
}

/* Only the kernel knows whether the process group is orphaned; it discards SIGTSTP then. After a real stop a SIGCONT is
 * pending. It is never an older SIGCONT, because the generation of SIGTSTP discards pending SIGCONT.
 *
 * Known weakness: a SIGCONT that a program sends directly after a SIGTSTP, before this process has stopped, may be
 * discarded as well. A shell sends it when it has seen the stop. */
bool run_signals_stop_self(bool with_group)
{
    static const struct timespec no_wait = {0};
    sigset_t stop, cont;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTSTP);
    sigemptyset(&cont);
    sigaddset(&cont, SIGCONT);
    kill(with_group ? 0 : getpid(), SIGTSTP);
    sigprocmask(SIG_UNBLOCK, &stop, NULL); /* the process stops here */
    sigprocmask(SIG_BLOCK, &stop, NULL);
    return sigtimedwait(&cont, NULL, &no_wait) == SIGCONT;
}

/* The process does not really stop: a SIGCONT that arrives between the receipt of SIGTSTP and the stop would be lost,
 * and without a terminal nobody sends a second one. Both are blocked, so here it is pending. */
int run_signals_wait_continue(const struct run_signals *signals)
{
    static const int end_signals[] = {CLI_END_SIGNALS};
    sigset_t set;
    int signo;
    sigemptyset(&set);
    sigaddset(&set, SIGCONT);
    for (size_t i = 0; i < sizeof end_signals / sizeof *end_signals; i++)
        if (sigismember(&signals->blocked.set, end_signals[i]))
            sigaddset(&set, end_signals[i]);
    while ((signo = sigwaitinfo(&set, NULL)) < 0 && errno == EINTR)
        continue;
    return signo;
}

int run_signals_read(const struct run_signals *signals)
{
    struct signalfd_siginfo info;
    ssize_t n = read(signals->fd, &info, sizeof info);
    if (n == sizeof info)
        return (int)info.ssi_signo;
    return n < 0 && errno != EAGAIN && errno != EINTR ? -1 : 0;
}

void run_signals_restore(const struct run_signals *signals)
{
    sigaction(SIGPIPE, &signals->sigpipe, NULL);
    sigaction(SIGXFSZ, &signals->sigxfsz, NULL);
    sigaction(SIGCHLD, &signals->sigchld, NULL);
    cli_signals_unblock(&signals->blocked);
}
