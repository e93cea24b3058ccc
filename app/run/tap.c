/* tap.c - a stream of the command on its way through bide: passed on byte by byte, or kept, and looked at meanwhile. */
#include "tap.h"

#include "terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* A pipe once more, as a descriptor of our own that does not block; the original one may be shared, and stays as it is.
 * -1: it cannot be had. */
static int reopen(int fd)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return run_file_high(open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC));
}

/* Where nothing better is to be had, poll says that a pipe takes PIPE_BUF, and is trusted for terminals. */
void run_tap_init(struct run_tap *tap, int to)
{
    struct stat status;
    bool known = tap->used && to >= 0 && fstat(to, &status) == 0;
    int mine = known && S_ISFIFO(status.st_mode) ? reopen(to) : -1;
    tap->to = mine >= 0 ? mine : to;
    tap->from = tap->child = -1;
    tap->slice = mine >= 0 || (known && S_ISREG(status.st_mode)) ? RUN_TAP_SIZE : PIPE_BUF;
}

bool run_tap_open(struct run_tap *tap)
{
    struct run_pipe ends;
    run_tap_close(tap);
    if (!tap->used)
        return true;
    tap->is_terminal = tap->to >= 0 && tap->spool == NULL && isatty(tap->to) && run_terminal_imitate(tap->to, &ends);
    if (!tap->is_terminal && !run_file_pipe(&ends))
        return false;
    tap->from = ends.read;
    tap->child = ends.write;
    run_file_nonblocking(tap->from);
    tap->ending = false;
    tap->drained = 0;
    run_lines_reset(&tap->lines);
    return true;
}

void run_tap_started(struct run_tap *tap)
{
    run_file_close(&tap->child);
}

void run_tap_close(struct run_tap *tap)
{
    run_file_close(&tap->from);
    run_file_close(&tap->child);
    tap->at = tap->length = 0;
}

void run_tap_free(struct run_tap *tap)
{
    run_tap_close(tap);
    if (tap->to >= RUN_FILE_FIRST)
        run_file_close(&tap->to);
}

struct pollfd run_tap_wants(const struct run_tap *tap)
{
    if (tap->length > 0)
        return (struct pollfd){.fd = tap->to, .events = POLLOUT};
    return (struct pollfd){.fd = tap->from, .events = POLLIN};
}

/* Nobody reads: the command is told by its own SIGPIPE. Any other error is remembered, and the rest is let go. */
static void fail(struct run_tap *tap, int error)
{
    tap->error = error;
    tap->at = tap->length = 0;
    if (error == EPIPE)
        run_file_close(&tap->from);
}

static void pass_on(struct run_tap *tap)
{
    size_t part = tap->length < tap->slice ? tap->length : tap->slice;
    ssize_t n = write(tap->to, tap->buffer + tap->at, part);
    if (n < 0 && errno != EAGAIN && errno != EINTR)
        fail(tap, errno);
    if (n <= 0)
        return;
    tap->at += (size_t)n;
    tap->length -= (size_t)n;
    if (tap->midline != NULL)
        *tap->midline = tap->buffer[tap->at - 1] != '\n';
}

static void take_in(struct run_tap *tap, size_t length)
{
    run_lines_add(&tap->lines, tap->buffer, length);
    if (tap->error != 0)
        return;
    if (tap->spool != NULL && !run_spool_add(tap->spool, tap->buffer, length))
        fail(tap, errno);
    if (tap->spool == NULL && tap->to >= 0) {
        tap->at = 0;
        tap->length = length;
    }
}

/* A pseudo-terminal whose other end nobody holds any more says EIO. */
static void fetch(struct run_tap *tap)
{
    size_t room = tap->lines.patterns != NULL ? RUN_LINE_MAX : RUN_TAP_SIZE; /* searching takes time: see lines.h */
    ssize_t n = read(tap->from, tap->buffer, room);
    bool nothing_yet = n < 0 && (errno == EAGAIN || errno == EINTR);
    if (n > 0)
        take_in(tap, (size_t)n);
    if (tap->ending)
        tap->drained += n > 0 ? (size_t)n : 0;
    if ((n <= 0 && !nothing_yet) || (tap->ending && (nothing_yet || tap->drained >= RUN_DRAIN_MAX)))
        run_file_close(&tap->from);
    if (tap->is_terminal && tap->from >= 0)
        run_terminal_resize(tap->from, tap->to);
}

void run_tap_serve(struct run_tap *tap)
{
    if (tap->length > 0)
        pass_on(tap);
    else if (tap->from >= 0)
        fetch(tap);
    while (tap->ending && tap->length == 0 && tap->from >= 0)
        fetch(tap);
    if (run_tap_is_done(tap))
        run_lines_end(&tap->lines);
}

void run_tap_end(struct run_tap *tap)
{
    tap->ending = true;
    if (tap->length == 0)
        run_tap_serve(tap);
}

bool run_tap_is_done(const struct run_tap *tap)
{
    return tap->ending && tap->from < 0 && tap->length == 0;
}
