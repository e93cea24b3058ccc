/* tap.c - an output stream of the command that bide reads: forwarded or spooled, and searched for patterns; see
 * tap.h. */
#include "tap.h"

#include "terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* Opens the pipe a second time through /proc, non-blocking: setting O_NONBLOCK on the original would affect all
 * processes that share it. Returns -1 on failure. */
static int pipe_reopen(int fd)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return cli_fd_above_first(open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC));
}

/* Without a non-blocking descriptor: poll guarantees PIPE_BUF bytes for a pipe, and is trusted for a terminal. */
void run_tap_init(struct run_tap *tap, int out_fd)
{
    struct stat status;
    bool known = tap->enabled && out_fd >= 0 && fstat(out_fd, &status) == 0;
    int own_fd = known && S_ISFIFO(status.st_mode) ? pipe_reopen(out_fd) : -1;
    tap->out_fd = own_fd >= 0 ? own_fd : out_fd;
    tap->in_fd = tap->child_fd = -1;
    tap->write_max = own_fd >= 0 || (known && S_ISREG(status.st_mode)) ? RUN_TAP_SIZE : PIPE_BUF;
}

bool run_tap_open(struct run_tap *tap)
{
    struct cli_pipe ends;
    run_tap_close(tap);
    if (!tap->enabled)
        return true;
    tap->is_terminal =
        tap->out_fd >= 0 && tap->spool == NULL && isatty(tap->out_fd) && run_terminal_open_pty(tap->out_fd, &ends);
    if (!tap->is_terminal && !cli_fd_pipe(&ends))
        return false;
    tap->in_fd = ends.read;
    tap->child_fd = ends.write;
    cli_fd_set_nonblocking(tap->in_fd);
    tap->child_exited = false;
    tap->drained = 0;
    tap->read_error = 0;
    run_lines_reset(&tap->lines);
    return true;
}

void run_tap_after_fork(struct run_tap *tap)
{
    cli_fd_close(&tap->child_fd);
}

void run_tap_close(struct run_tap *tap)
{
    cli_fd_close(&tap->in_fd);
    cli_fd_close(&tap->child_fd);
    tap->offset = tap->length = 0;
}

void run_tap_free(struct run_tap *tap)
{
    run_tap_close(tap);
    if (tap->out_fd >= CLI_FD_FIRST)
        cli_fd_close(&tap->out_fd);
}

struct pollfd run_tap_pollfd(const struct run_tap *tap)
{
    if (tap->length > 0)
        return (struct pollfd){.fd = tap->out_fd, .events = POLLOUT};
    return (struct pollfd){.fd = tap->in_fd, .events = POLLIN};
}

/* EPIPE: close the read end, so that the command gets SIGPIPE itself. Other errors are recorded and further output is
 * dropped. */
static void tap_fail(struct run_tap *tap, int error)
{
    tap->error = error;
    tap->offset = tap->length = 0;
    if (error == EPIPE)
        cli_fd_close(&tap->in_fd);
}

static void tap_write(struct run_tap *tap)
{
    size_t part = tap->length < tap->write_max ? tap->length : tap->write_max;
    ssize_t n = write(tap->out_fd, tap->buffer + tap->offset, part);
    if (n < 0 && errno != EAGAIN && errno != EINTR)
        tap_fail(tap, errno);
    if (n <= 0)
        return;
    tap->offset += (size_t)n;
    tap->length -= (size_t)n;
    if (tap->midline != NULL)
        *tap->midline = tap->buffer[tap->offset - 1] != '\n';
}

static void tap_consume(struct run_tap *tap, size_t length)
{
    run_lines_add(&tap->lines, tap->buffer, length);
    if (tap->error != 0)
        return;
    if (tap->spool != NULL && !cli_spool_add(tap->spool, tap->buffer, length))
        tap_fail(tap, errno);
    if (tap->spool == NULL && tap->out_fd >= 0) {
        tap->offset = 0;
        tap->length = length;
    }
}

/* A pseudo-terminal returns EIO after its last writer has closed it. */
static void tap_read(struct run_tap *tap)
{
    bool searched = tap->lines.patterns != NULL || tap->lines.known[0] != NULL;
    size_t room = searched ? RUN_LINE_MAX : RUN_TAP_SIZE; /* bounds one search: see lines.h */
    ssize_t n = read(tap->in_fd, tap->buffer, room);
    bool nothing_yet = n < 0 && (errno == EAGAIN || errno == EINTR);
    bool at_end = n == 0 || (n < 0 && errno == EIO && tap->is_terminal);
    if (n < 0 && !nothing_yet && !at_end)
        tap->read_error = errno;
    if (n > 0)
        tap_consume(tap, (size_t)n);
    if (tap->child_exited)
        tap->drained += n > 0 ? (size_t)n : 0;
    if ((n <= 0 && !nothing_yet) || (tap->child_exited && (nothing_yet || tap->drained >= RUN_DRAIN_MAX)))
        cli_fd_close(&tap->in_fd);
    if (tap->is_terminal && tap->in_fd >= 0)
        run_terminal_copy_size(tap->in_fd, tap->out_fd);
}

void run_tap_on_ready(struct run_tap *tap)
{
    if (tap->length > 0)
        tap_write(tap);
    else if (tap->in_fd >= 0)
        tap_read(tap);
    while (tap->child_exited && tap->length == 0 && tap->in_fd >= 0)
        tap_read(tap);
    if (run_tap_is_done(tap))
        run_lines_end(&tap->lines);
}

void run_tap_finish(struct run_tap *tap)
{
    tap->child_exited = true;
    if (tap->length == 0)
        run_tap_on_ready(tap);
}

bool run_tap_is_done(const struct run_tap *tap)
{
    return tap->child_exited && tap->in_fd < 0 && tap->length == 0;
}
