/* signals.c - signal set-up of the commands; see signals.h. */
#include "signals.h"

#include <poll.h>
#include <stddef.h>
#include <sys/signalfd.h>
#include <unistd.h>

static const int end_signals[] = {CLI_END_SIGNALS};

#define END_SIGNALS (sizeof end_signals / sizeof *end_signals)

bool cli_signal_is_ignored(int number)
{
    struct sigaction current;
    return sigaction(number, NULL, &current) == 0 && current.sa_handler == SIG_IGN;
}

void cli_signal_catch(int number, void (*handler)(int number), int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    if (!cli_signal_is_ignored(number))
        sigaction(number, &action, NULL);
}

void cli_signals_catch(void (*handler)(int number), int flags)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGPIPE, &ignore, NULL);
    sigaction(SIGXFSZ, &ignore, NULL);
    for (size_t i = 0; i < END_SIGNALS; i++)
        cli_signal_catch(end_signals[i], handler, flags);
}

void cli_signals_release(void)
{
    for (size_t i = 0; i < END_SIGNALS; i++)
        cli_signal_catch(end_signals[i], SIG_DFL, 0);
}

void cli_signals_collect(struct cli_signals_blocked *blocked)
{
    static const int numbers[] = {CLI_END_SIGNALS, SIGTSTP};
    sigemptyset(&blocked->set);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!cli_signal_is_ignored(numbers[i]))
            sigaddset(&blocked->set, numbers[i]);
}

bool cli_signals_block(struct cli_signals_blocked *blocked)
{
    return sigprocmask(SIG_BLOCK, &blocked->set, &blocked->original) == 0;
}

int cli_signals_descriptor(struct cli_signals_blocked *blocked)
{
    return cli_signals_block(blocked) ? signalfd(-1, &blocked->set, SFD_CLOEXEC | SFD_NONBLOCK) : -1;
}

int cli_signals_read(int fd)
{
    struct signalfd_siginfo info;
    return read(fd, &info, sizeof info) == sizeof info ? (int)info.ssi_signo : 0;
}

bool cli_signals_pending(int fd)
{
    struct pollfd input = {.fd = fd, .events = POLLIN};
    return poll(&input, 1, 0) > 0;
}

void cli_signals_unblock(const struct cli_signals_blocked *blocked)
{
    sigprocmask(SIG_SETMASK, &blocked->original, NULL);
}

_Noreturn void cli_signal_die(int number)
{
    struct sigaction default_action = {.sa_handler = SIG_DFL};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    sigaction(number, &default_action, NULL);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    raise(number);
    _exit(128 + number); /* unreachable for a signal that ends a process */
}
