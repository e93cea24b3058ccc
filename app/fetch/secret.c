/* secret.c - see secret.h. The prompt uses /dev/tty, so that standard input and output stay free for data. A signal
 * during the prompt takes effect after the echo is restored; after a stop (Ctrl-Z) the prompt is repeated. */
#include "secret.h"

#include "common/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#define INPUT_MAX 1024u
#define SHOWN_MAX 3u /* asterisks, for a secret of any length */

char *fetch_secret_take(const char *argument)
{
    char *copy = strdup(argument);
    char *original = (char *)(uintptr_t)argument; /* argv may be modified by the program */
    size_t length = strlen(original), shown = length < SHOWN_MAX ? length : SHOWN_MAX;
    if (copy) {
        memset(original, '*', shown);
        explicit_bzero(original + shown, length - shown);
    }
    return copy;
}

void fetch_secret_free(char *secret)
{
    if (secret)
        explicit_bzero(secret, strlen(secret));
    free(secret);
}

/* ---- prompt ---- */

/* Waits until the terminal has input. Returns false if a signal arrives first. */
static bool input_wait(int fd, int signal_fd)
{
    struct pollfd fds[] = {{.fd = signal_fd, .events = POLLIN}, {.fd = fd, .events = POLLIN}};
    while (poll(fds, 2, -1) < 0)
        if (errno != EINTR)
            return false;
    return fds[0].revents == 0;
}

/* Reads one line without its newline. Returns false at end of input, and when a signal arrives. */
static bool input_read_line(int fd, int signal_fd, char line[INPUT_MAX])
{
    for (size_t used = 0; used < INPUT_MAX - 1 && input_wait(fd, signal_fd); used++) {
        ssize_t n = read(fd, line + used, 1);
        if (n <= 0 || line[used] == '\n') {
            line[used] = '\0';
            return n > 0;
        }
    }
    return false;
}

static bool prompt_without_echo(int fd, int signal_fd, const char *prompt, char input[INPUT_MAX])
{
    struct termios before, no_echo;
    if (tcgetattr(fd, &before) != 0)
        return false;
    no_echo = before;
    no_echo.c_lflag &= ~(tcflag_t)ECHO;
    if (tcsetattr(fd, TCSAFLUSH, &no_echo) != 0)
        return false;
    bool received = dprintf(fd, "%s", prompt) > 0 && input_read_line(fd, signal_fd, input);
    tcsetattr(fd, TCSAFLUSH, &before);
    dprintf(fd, "\n");
    return received;
}

/* Prompts once. Returns false if there was no line; *stopped: because of SIGTSTP, from which the process has resumed.
 * The signals are only blocked, so that their original actions take effect after the echo is restored. */
static bool prompt_once(int fd, const char *prompt, char input[INPUT_MAX], bool *stopped)
{
    struct cli_signals_blocked blocked;
    sigset_t pending;
    bool received = false;
    cli_signals_collect(&blocked);
    int signal_fd = signalfd(-1, &blocked.set, SFD_CLOEXEC);
    *stopped = false;
    if (signal_fd >= 0 && cli_signals_block(&blocked)) {
        received = prompt_without_echo(fd, signal_fd, prompt, input);
        *stopped = !received && sigpending(&pending) == 0 && sigismember(&pending, SIGTSTP) == 1 &&
                   sigismember(&blocked.original, SIGTSTP) == 0; /* else it stays pending */
        cli_signals_unblock(&blocked);
    }
    if (signal_fd >= 0)
        close(signal_fd);
    return received;
}

char *fetch_secret_prompt(const char *prompt)
{
    char input[INPUT_MAX], *copy = NULL;
    bool received, stopped;
    int fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return NULL;
    do
        received = prompt_once(fd, prompt, input, &stopped);
    while (stopped);
    if (received)
        copy = strdup(input);
    explicit_bzero(input, sizeof input);
    close(fd);
    return copy;
}
