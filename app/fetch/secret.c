/* secret.c - see secret.h. The terminal is /dev/tty, so that standard input and output stay free for data; a signal
 * while it is asked puts the echo back before it does what it does. */
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

#define ANSWER_MAX 1024u

char *fetch_take(const char *argument)
{
    char *copy = strdup(argument);
    char *seen = (char *)(uintptr_t)argument; /* argv is the program's own to write */
    if (copy)
        memset(seen, '*', strlen(seen));
    return copy;
}

void fetch_forget(char *secret)
{
    if (secret)
        explicit_bzero(secret, strlen(secret));
    free(secret);
}

/* ---- asking ---- */

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    interrupted = number;
}

/* One line, without its end. False: none came. */
static bool read_line(int fd, char line[ANSWER_MAX])
{
    size_t used = 0;
    while (used < ANSWER_MAX - 1) {
        ssize_t n = read(fd, line + used, 1);
        if (n <= 0 || line[used] == '\n') {
            line[used] = '\0';
            return n > 0;
        }
        used++;
    }
    return false;
}

static bool ask_quietly(int fd, const char *question, char answer[ANSWER_MAX])
{
    struct termios before, quiet;
    if (tcgetattr(fd, &before) != 0)
        return false;
    quiet = before;
    quiet.c_lflag &= ~(tcflag_t)ECHO;
    if (tcsetattr(fd, TCSAFLUSH, &quiet) != 0)
        return false;
    bool came = dprintf(fd, "%s", question) > 0 && read_line(fd, answer);
    tcsetattr(fd, TCSAFLUSH, &before);
    dprintf(fd, "\n");
    return came;
}

char *fetch_ask(const char *question)
{
    struct sigaction catch = {.sa_handler = on_signal}, sigint, sigterm;
    char answer[ANSWER_MAX], *copy = NULL;
    int fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return NULL;
    sigaction(SIGINT, &catch, &sigint);
    sigaction(SIGTERM, &catch, &sigterm);
    if (ask_quietly(fd, question, answer))
        copy = strdup(answer);
    explicit_bzero(answer, sizeof answer);
    sigaction(SIGINT, &sigint, NULL);
    sigaction(SIGTERM, &sigterm, NULL);
    close(fd);
    if (interrupted != 0)
        raise(interrupted);
    return copy;
}
