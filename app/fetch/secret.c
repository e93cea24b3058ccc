/* secret.c - see secret.h. The prompt uses /dev/tty, so that standard input and output stay free for data. A signal
 * during the prompt restores the echo before it takes effect. */
#include "secret.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#define INPUT_MAX 1024u

char *fetch_secret_take(const char *argument)
{
    char *copy = strdup(argument);
    char *original = (char *)(uintptr_t)argument; /* argv may be modified by the program */
    if (copy)
        memset(original, '*', strlen(original));
    return copy;
}

void fetch_secret_free(char *secret)
{
    if (secret)
        explicit_bzero(secret, strlen(secret));
    free(secret);
}

/* ---- prompt ---- */

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    interrupted = number;
}

/* Reads one line without its newline. Returns false at end of input. */
static bool read_line(int fd, char line[INPUT_MAX])
{
    size_t used = 0;
    while (used < INPUT_MAX - 1) {
        ssize_t n = read(fd, line + used, 1);
        if (n <= 0 || line[used] == '\n') {
            line[used] = '\0';
            return n > 0;
        }
        used++;
    }
    return false;
}

static bool prompt_without_echo(int fd, const char *prompt, char input[INPUT_MAX])
{
    struct termios before, no_echo;
    if (tcgetattr(fd, &before) != 0)
        return false;
    no_echo = before;
    no_echo.c_lflag &= ~(tcflag_t)ECHO;
    if (tcsetattr(fd, TCSAFLUSH, &no_echo) != 0)
        return false;
    bool received = dprintf(fd, "%s", prompt) > 0 && read_line(fd, input);
    tcsetattr(fd, TCSAFLUSH, &before);
    dprintf(fd, "\n");
    return received;
}

char *fetch_secret_prompt(const char *prompt)
{
    struct sigaction catch = {.sa_handler = on_signal}, sigint, sigterm;
    char input[INPUT_MAX], *copy = NULL;
    int fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return NULL;
    sigaction(SIGINT, &catch, &sigint);
    sigaction(SIGTERM, &catch, &sigterm);
    if (prompt_without_echo(fd, prompt, input))
        copy = strdup(input);
    explicit_bzero(input, sizeof input);
    sigaction(SIGINT, &sigint, NULL);
    sigaction(SIGTERM, &sigterm, NULL);
    close(fd);
    if (interrupted != 0)
        raise(interrupted);
    return copy;
}
