/* signals.c - receives signals through a signalfd and restores them for the command; see signals.h. */
#include "signals.h"

#include "fd.h"

#include <sys/signalfd.h>
#include <unistd.h>

/* SIGTTOU is blocked but never read: a background process may then still call tcsetpgrp and tcsetattr. */
static const int handled_signals[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH};

bool run_signals_open(struct run_signals *signals)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN}, default_action = {.sa_handler = SIG_DFL};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof handled_signals / sizeof *handled_signals; i++)
        sigaddset(&set, handled_signals[i]);
    signals->fd = run_fd_above_first(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    if (signals->fd < 0)
        return false;
    sigaddset(&set, SIGTTOU);
    sigprocmask(SIG_BLOCK, &set, &signals->mask);
    sigaction(SIGPIPE, &ignore, &signals->sigpipe);
    sigaction(SIGXFSZ, &ignore, &signals->sigxfsz);
    sigaction(SIGCHLD, &default_action, &signals->sigchld); /* with SIG_IGN the kernel would reap the children */
    return true;
}

/* Only the kernel knows whether the process group is orphaned; it discards SIGTSTP then. After a real stop a SIGCONT is
 * pending. It is never an older SIGCONT, because the generation of SIGTSTP discards pending SIGCONT. */
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

int run_signals_read(const struct run_signals *signals)
{
    struct signalfd_siginfo info;
    return read(signals->fd, &info, sizeof info) == sizeof info ? (int)info.ssi_signo : 0;
}

void run_signals_restore(const struct run_signals *signals)
{
    sigaction(SIGPIPE, &signals->sigpipe, NULL);
    sigaction(SIGXFSZ, &signals->sigxfsz, NULL);
    sigaction(SIGCHLD, &signals->sigchld, NULL);
    sigprocmask(SIG_SETMASK, &signals->mask, NULL);
}
