/* signals.h - signals as something to read, and put back as they were for the command.
 *
 * While bide runs they are blocked and come through one descriptor. A signal that was ignored at the start (nohup)
 * stays ignored, for bide and for the command. SIGPIPE and SIGXFSZ are errors of write here, and as they were for the
 * command. */
#ifndef RUN_SIGNALS_H
#define RUN_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

struct run_signals {
    int fd;
    sigset_t mask;                              /* as it was */
    struct sigaction sigpipe, sigxfsz, sigchld; /* as they were */
};

bool run_signals_open(struct run_signals *signals); /* false, with errno */

/* Stops us, or all of our group, as the stop key does; returns when somebody goes on with us. False: we were not
 * stopped, because the signal is ignored, or because no shell is there to go on with our group (ssh -t). */
bool run_signals_stop_self(bool with_group);

/* The next one that came; 0: none. */
int run_signals_read(const struct run_signals *signals);

/* As it was before: in a child before exec, and at the end. */
void run_signals_restore(const struct run_signals *signals);

#endif
