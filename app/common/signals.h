/* signals.h - signal set-up of the commands that run for a while.
 *
 *     SIGINT SIGTERM SIGHUP SIGQUIT   end the command, through its handler
 *     SIGPIPE SIGXFSZ                 ignored: the write fails with an error, which the command reports
 *
 * A signal that was ignored when the program started (nohup, background jobs of a script) stays ignored. */
#ifndef CLI_SIGNALS_H
#define CLI_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

#define CLI_END_SIGNALS SIGINT, SIGTERM, SIGHUP, SIGQUIT

/* Returns true if the action of the signal is SIG_IGN. Ask before the signal is blocked: Linux keeps a blocked signal
 * pending, for a signalfd or sigwait, even if it is ignored. */
bool cli_signal_is_ignored(int number);

/* Installs the handler, with flags of sigaction, unless the signal is ignored. */
void cli_signal_catch(int number, void (*handler)(int number), int flags);

/* Installs the handler for all signals that end a command, and ignores SIGPIPE and SIGXFSZ. */
void cli_signals_catch(void (*handler)(int number), int flags);

/* Restores the default actions of the signals that end a command: the next one ends the process at once. */
void cli_signals_release(void);

/* Blocks the signals that end a command, and SIGTSTP, so that they wait until the command has restored the terminal.
 * Ignored signals are not blocked. */
struct cli_signals_blocked {
    sigset_t set;      /* the blocked signals, for a signalfd or sigtimedwait */
    sigset_t original; /* the mask before */
};

/* Sets `set` and blocks nothing yet: the caller may add signals. */
void cli_signals_collect(struct cli_signals_blocked *blocked);

/* Blocks `set`. Returns false and sets errno on failure. */
bool cli_signals_block(struct cli_signals_blocked *blocked);

/* Blocks `set`, and returns a descriptor to read it from (close-on-exec, non-blocking); -1 and errno on failure. */
int cli_signals_descriptor(struct cli_signals_blocked *blocked);

/* Returns the next signal of the descriptor, which has arrived now, or 0. */
int cli_signals_read(int fd);

/* Returns true if there is one, and leaves it there. */
bool cli_signals_pending(int fd);

/* Restores the mask: a signal that arrived meanwhile has its original action now. */
void cli_signals_unblock(const struct cli_signals_blocked *blocked);

/* Ends the process by the default action of the signal, so that a shell sees it. */
_Noreturn void cli_signal_die(int number);

#endif
