/* stdin.c - the command's standard input, and whether it can be repeated for the next attempt; see stdin.h. */
#include "stdin.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* Returns true if stdin is a socket that is read like a pipe; one that keeps message boundaries cannot be lent. */
static bool stdin_is_stream_socket(void)
{
    int type = 0;
    socklen_t length = sizeof type;
    return getsockopt(STDIN_FILENO, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type == SOCK_STREAM;
}

/* Returns false for the write end of a pipe and for a socket that listens: the command uses them in another way. */
static bool stdin_has_input(void)
{
    int listens = 0;
    socklen_t length = sizeof listens;
    if ((fcntl(STDIN_FILENO, F_GETFL) & O_ACCMODE) == O_WRONLY)
        return false;
    return getsockopt(STDIN_FILENO, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) != 0 || listens == 0;
}

void run_stdin_init(struct run_stdin *input, struct run_stdin_options options)
{
    static const enum run_stdin_mode piped_modes[] = {RUN_STDIN_LENT, RUN_STDIN_INHERITED, RUN_STDIN_REPLAYED};
    struct stat status;
    input->pipe = (struct cli_pipe){-1, -1};
    run_loan_init(&input->loan, false);
    input->mode = RUN_STDIN_INHERITED;
    if (!options.may_retry || fstat(STDIN_FILENO, &status) != 0)
        return;
    bool is_file = S_ISREG(status.st_mode) || S_ISBLK(status.st_mode), is_socket = S_ISSOCK(status.st_mode);
    if (is_file && (input->start = lseek(STDIN_FILENO, 0, SEEK_CUR)) >= 0)
        input->mode = RUN_STDIN_REWOUND;
    if (!(S_ISFIFO(status.st_mode) || is_socket) || !stdin_has_input())
        return;
    if (!is_socket || stdin_is_stream_socket())
        input->mode = piped_modes[options.piped];
    input->loan.is_socket = is_socket;
    input->is_opaque = input->mode == RUN_STDIN_INHERITED;
}

/* Returns true if bytes were received that are not written to the pipe yet. */
static bool stdin_has_unsent(const struct run_stdin *input)
{
    return input->length > 0 || input->written < input->spool.size;
}

/* ---- start of an attempt ---- */

static bool stdin_open_replayed(struct run_stdin *input)
{
    cli_fd_close(&input->pipe.read);
    cli_fd_close(&input->pipe.write);
    input->written = 0;
    input->reader_closed = false;
    input->length = 0; /* those bytes are in the spool */
    if (!cli_fd_pipe(&input->pipe))
        return false;
    cli_fd_set_nonblocking(input->pipe.write);
    return true;
}

bool run_stdin_open(struct run_stdin *input, int *child_fd)
{
    struct pollfd ready;
    bool opened = true;
    if (input->mode == RUN_STDIN_REWOUND)
        opened = lseek(STDIN_FILENO, input->start, SEEK_SET) >= 0;
    else if (input->mode == RUN_STDIN_LENT)
        opened = run_loan_open(&input->loan);
    else if (input->mode == RUN_STDIN_REPLAYED)
        opened = stdin_open_replayed(input);
    *child_fd = input->mode == RUN_STDIN_LENT ? input->loan.pipe.read : input->pipe.read;
    ready = run_stdin_pollfd(input);
    if (opened && poll(&ready, 1, 0) > 0)
        run_stdin_on_ready(input); /* a command that only asks whether there is input (`read -t 0`) must see it */
    return opened;
}

void run_stdin_after_fork(struct run_stdin *input)
{
    cli_fd_close(&input->pipe.read);
    if (input->at_end && !stdin_has_unsent(input))
        cli_fd_close(&input->pipe.write);
}

/* ---- while the command runs ---- */

struct pollfd run_stdin_pollfd(const struct run_stdin *input)
{
    if (input->mode == RUN_STDIN_LENT)
        return run_loan_pollfd(&input->loan);
    if (input->pipe.write < 0 || input->reader_closed)
        return (struct pollfd){.fd = -1};
    if (stdin_has_unsent(input))
        return (struct pollfd){.fd = input->pipe.write, .events = POLLOUT};
    return (struct pollfd){.fd = input->at_end ? -1 : STDIN_FILENO, .events = POLLIN};
}

/* Fills the buffer: from the spool while it has unsent bytes, then from bide's own stdin. */
static void stdin_fill_buffer(struct run_stdin *input)
{
    bool from_spool = input->written < input->spool.size;
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
    if (!from_spool && n > 0 && !cli_spool_add(&input->spool, input->buffer, (size_t)n))
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

static void stdin_replay(struct run_stdin *input)
{
    if (input->length == 0)
        stdin_fill_buffer(input);
    if (input->length > 0)
        stdin_write_pipe(input);
    if (input->at_end && !stdin_has_unsent(input))
        cli_fd_close(&input->pipe.write);
}

void run_stdin_on_ready(struct run_stdin *input)
{
    if (input->mode == RUN_STDIN_REPLAYED) {
        stdin_replay(input);
        return;
    }
    run_loan_on_ready(&input->loan);
    input->read_error = input->loan.error;
}

/* ---- after the command's end ---- */

void run_stdin_finish(struct run_stdin *input)
{
    if (input->mode != RUN_STDIN_LENT)
        return;
    run_loan_settle(&input->loan);
    input->read_error = input->loan.error;
}

bool run_stdin_is_spent(const struct run_stdin *input)
{
    return input->is_opaque || (input->mode == RUN_STDIN_LENT && input->loan.removed > 0);
}

void run_stdin_free(struct run_stdin *input)
{
    run_loan_free(&input->loan);
    cli_fd_close(&input->pipe.read);
    cli_fd_close(&input->pipe.write);
    cli_spool_clear(&input->spool);
}
