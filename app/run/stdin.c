/* stdin.c - the command's standard input, and whether it can be repeated for the next attempt; see stdin.h.
 *
 * Known weakness: a pipe is read ahead, as ssh does. In a loop such as `while read line; do bide run ...; done` that
 * reads from a pipe, start bide with </dev/null. */
#include "stdin.h"

#include <errno.h>
#include <limits.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

void run_stdin_init(struct run_stdin *input, struct run_stdin_options options)
{
    struct stat status;
    input->pipe = (struct cli_pipe){-1, -1};
    input->mode = RUN_STDIN_INHERITED;
    if (!options.may_retry || fstat(STDIN_FILENO, &status) != 0)
        return;
    if (S_ISREG(status.st_mode) && (input->start = lseek(STDIN_FILENO, 0, SEEK_CUR)) >= 0)
        input->mode = RUN_STDIN_REWOUND;
    else if (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode))
        input->mode = options.replay ? RUN_STDIN_REPLAYED : RUN_STDIN_RELAYED;
}

static bool stdin_is_piped(const struct run_stdin *input)
{
    return input->mode == RUN_STDIN_RELAYED || input->mode == RUN_STDIN_REPLAYED;
}

/* Returns true if bytes were received that are not written to the pipe yet. */
static bool stdin_has_unsent(const struct run_stdin *input)
{
    return input->length > 0 || (input->mode == RUN_STDIN_REPLAYED && input->written < input->spool.size);
}

/* ---- start of an attempt ---- */

bool run_stdin_open(struct run_stdin *input, int *child_fd)
{
    *child_fd = -1;
    if (input->mode == RUN_STDIN_REWOUND)
        return lseek(STDIN_FILENO, input->start, SEEK_SET) >= 0;
    if (input->mode == RUN_STDIN_REPLAYED) {
        cli_fd_close(&input->pipe.read);
        cli_fd_close(&input->pipe.write);
        input->written = 0;
        input->reader_closed = false;
        input->length = 0; /* those bytes are in the spool */
    }
    if (stdin_is_piped(input) && input->pipe.read < 0) {
        if (!cli_fd_pipe(&input->pipe))
            return false;
        cli_fd_set_nonblocking(input->pipe.write);
    }
    *child_fd = input->pipe.read;
    return true;
}

void run_stdin_after_fork(struct run_stdin *input)
{
    if (input->mode == RUN_STDIN_REPLAYED)
        cli_fd_close(&input->pipe.read);
    if (input->at_end && !stdin_has_unsent(input))
        cli_fd_close(&input->pipe.write);
}

/* ---- while the command runs ---- */

struct pollfd run_stdin_pollfd(const struct run_stdin *input)
{
    if (!stdin_is_piped(input) || input->pipe.write < 0 || input->reader_closed)
        return (struct pollfd){.fd = -1};
    if (stdin_has_unsent(input))
        return (struct pollfd){.fd = input->pipe.write, .events = POLLOUT};
    return (struct pollfd){.fd = input->at_end ? -1 : STDIN_FILENO, .events = POLLIN};
}

/* Fills the buffer: from the spool while it has unsent bytes, then from bide's own stdin. */
static void stdin_fill_buffer(struct run_stdin *input)
{
    bool from_spool = input->mode == RUN_STDIN_REPLAYED && input->written < input->spool.size;
    ssize_t n = from_spool ? cli_spool_read(&input->spool, input->written, input->buffer, RUN_STDIN_SIZE)
                           : read(STDIN_FILENO, input->buffer, RUN_STDIN_SIZE);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (from_spool && n <= 0)
        input->error = n < 0 ? errno : EIO;
    else if (n < 0)
        input->read_error = errno;
    input->at_end = input->at_end || n <= 0;
    input->offset = 0;
    input->length = n > 0 ? (size_t)n : 0;
    if (!from_spool && n > 0 && input->mode == RUN_STDIN_REPLAYED &&
        !cli_spool_add(&input->spool, input->buffer, (size_t)n))
        input->error = errno;
}

static void stdin_write_pipe(struct run_stdin *input)
{
    ssize_t n = write(input->pipe.write, input->buffer + input->offset, input->length);
    if (n < 0 && errno != EAGAIN && errno != EINTR)
        input->reader_closed = true; /* the command reads no more; the spool keeps the input for the next attempt */
    if (n <= 0)
        return;
    input->offset += (size_t)n;
    input->length -= (size_t)n;
    input->written += n;
}

void run_stdin_on_ready(struct run_stdin *input)
{
    if (input->length == 0)
        stdin_fill_buffer(input);
    if (input->length > 0)
        stdin_write_pipe(input);
    if (input->at_end && !stdin_has_unsent(input))
        cli_fd_close(&input->pipe.write);
}

/* ---- after the command's end ---- */

bool run_stdin_is_spent(const struct run_stdin *input)
{
    int unread = 0;
    if (input->mode != RUN_STDIN_RELAYED)
        return false;
    return ioctl(input->pipe.read, FIONREAD, &unread) != 0 || unread < input->written;
}

void run_stdin_free(struct run_stdin *input)
{
    cli_fd_close(&input->pipe.read);
    cli_fd_close(&input->pipe.write);
    cli_spool_clear(&input->spool);
}
