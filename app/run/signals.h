/* signals.h - receives signals through a signalfd and restores them for the command.
 *
 * While bide runs, the handled signals are blocked and read from one descriptor. A signal that was ignored at the start
 * (nohup) stays ignored, for bide and for the command. SIGPIPE and SIGXFSZ are ignored in bide, so that write fails
 * with an error instead; the command gets their original actions. SIGUSR1 and SIGUSR2 are for the command. */
#ifndef RUN_SIGNALS_H
#define RUN_SIGNALS_H

#include "common/signals.h"

struct run_signals {
    int fd;
    struct cli_signals_blocked blocked;         /* with the original mask */
    struct sigaction sigpipe, sigxfsz, sigchld; /* original actions */
};

bool run_signals_open(struct run_signals *signals); /* returns false and sets errno on failure */

/* Stops bide, or its whole process group, as the stop key does, and returns after SIGCONT. Returns false if the process
 * was not stopped: SIGTSTP is ignored, or the group is orphaned (ssh -t), so that no shell could continue it. */
bool run_signals_stop_self(bool with_group);

/* Waits, like a stopped process, for SIGCONT or a signal that ends bide. Returns its number. */
int run_signals_wait_continue(const struct run_signals *signals);

/* Returns the next pending signal, 0 if there is none, -1 and sets errno if they cannot be read. */
int run_signals_read(const struct run_signals *signals);

/* Restores mask and actions: in the child before exec, and at the end of bide. */
void run_signals_restore(const struct run_signals *signals);

#endif
