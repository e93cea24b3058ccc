/* loan.c - lends bide's stdin, a pipe or stream socket, to the command; see loan.h.
 *
 * No call here blocks, although stdin may be in blocking mode and another reader may take its bytes at any time:
 * O_NONBLOCK would affect all processes that share stdin, so each call has its own flag instead. */
#include "loan.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- reading without waiting ---- */

/* Reads what tee or splice has put into `peeked`. Of a pipe in packet mode (O_DIRECT) a read returns one packet.
 * Returns its length; -1 and errno on failure. */
static ssize_t peeked_read(struct run_loan *loan, char *bytes, ssize_t length)
{
    ssize_t have = 0;
    while (have < length) {
        ssize_t n = read(loan->peeked.read, bytes + have, (size_t)(length - have));
        if (n == 0 || (n < 0 && errno != EINTR))
            return -1;
        have += n > 0 ? n : 0;
    }
    return length;
}

/* Copies up to loan->pages of stdin and leaves them there. Returns their number, 0 at the end of input, -1 with
 * errno on failure, EAGAIN if there are none at the moment. */
static ssize_t stdin_peek(struct run_loan *loan)
{
    size_t room = loan->pages * RUN_LOAN_PAGE;
    if (loan->is_socket)
        return recv(STDIN_FILENO, loan->bytes, room, MSG_PEEK | MSG_DONTWAIT);
    ssize_t n = tee(STDIN_FILENO, loan->peeked.write, room, SPLICE_F_NONBLOCK);
    return peeked_read(loan, loan->bytes, n);
}

/* Removes up to `length` bytes from a pipe. Returns like stdin_peek. */
static ssize_t pipe_take(struct run_loan *loan, int fd, char *bytes, size_t length)
{
    ssize_t n = splice(fd, NULL, loan->peeked.write, NULL, length, SPLICE_F_NONBLOCK);
    return peeked_read(loan, bytes, n);
}

static ssize_t stdin_take(struct run_loan *loan, char *bytes, size_t length)
{
    if (loan->is_socket)
        return recv(STDIN_FILENO, bytes, length, MSG_DONTWAIT);
    return pipe_take(loan, STDIN_FILENO, bytes, length);
}

/* ---- lending ---- */

void run_loan_init(struct run_loan *loan, bool is_socket)
{
    loan->is_socket = is_socket;
    loan->pipe = loan->peeked = (struct cli_pipe){-1, -1};
}

bool run_loan_open(struct run_loan *loan)
{
    assert(loan->length == 0);
    run_loan_free(loan);
    if (!cli_fd_pipe(&loan->pipe) || !cli_fd_pipe(&loan->peeked))
        return false;
    cli_fd_set_nonblocking(loan->pipe.write);
    loan->pages = 1;
    return true;
}

/* Sets the capacity of the empty pipe, so that a copy of this length uses all its pages. Returns the length that does:
 * a whole power of two of pages, or less than one page. Set anew for each copy: the command may have enlarged the pipe,
 * which would then always be writable. */
static size_t loan_fit_pipe(struct run_loan *loan, size_t length)
{
    size_t capacity = RUN_LOAN_PAGE;
    while (capacity * 2 <= length)
        capacity *= 2;
    if (fcntl(loan->pipe.write, F_SETPIPE_SZ, (int)capacity) < 0) {
        capacity = RUN_LOAN_PAGE; /* more pages may exceed the user's limit; a single one never does */
        if (fcntl(loan->pipe.write, F_SETPIPE_SZ, (int)capacity) < 0)
            loan->error = errno;
    }
    return length < capacity ? length : capacity;
}

/* Lends what stdin has now. */
static void loan_lend(struct run_loan *loan)
{
    ssize_t n = stdin_peek(loan);
    assert(loan->length == 0);
    if (n > 0 && (n = write(loan->pipe.write, loan->bytes, loan_fit_pipe(loan, (size_t)n))) > 0)
        loan->length = (size_t)n;
    else if (n == 0)
        cli_fd_close(&loan->pipe.write); /* the end of input */
    else if (errno != EAGAIN && errno != EINTR)
        loan->error = errno;
}

/* ---- settling ---- */

/* Removes the first `length` lent bytes, which the command has read, from stdin. */
static void loan_remove(struct run_loan *loan, size_t length)
{
    size_t have = 0;
    assert(length <= loan->length);
    while (have < length) {
        ssize_t n = stdin_take(loan, loan->taken + have, length - have);
        if (n == 0 || (n < 0 && errno != EINTR))
            break;
        have += n > 0 ? (size_t)n : 0;
    }
    loan->conflict = loan->conflict || have < length || memcmp(loan->taken, loan->bytes, length) != 0;
    loan->removed += (int64_t)length;
}

/* Takes the unread part of the copy back from the pipe. Returns its length. */
static size_t loan_take_back(struct run_loan *loan)
{
    size_t have = 0;
    ssize_t n = 0;
    while (have < loan->length) {
        n = pipe_take(loan, loan->pipe.read, loan->taken, loan->length - have);
        if (n == 0 || (n < 0 && errno != EINTR))
            break;
        have += n > 0 ? (size_t)n : 0;
    }
    if (n < 0 && errno != EAGAIN)
        loan->error = errno;
    return have;
}

/* Ends the loan of the present copy. The next one is larger if the command has read all of it, smaller if not. */
static void loan_end(struct run_loan *loan)
{
    size_t unread = loan_take_back(loan);
    loan_remove(loan, loan->length - unread);
    if (unread > 0)
        loan->pages = loan->pages > 1 ? loan->pages / 2 : 1;
    else if (loan->pages < RUN_LOAN_PAGES)
        loan->pages *= 2;
    loan->length = 0;
}

/* A process that the command left in the background may still read from the pipe: it cannot get bytes that were taken
 * back, and finds the end of input after the others. */
void run_loan_settle(struct run_loan *loan)
{
    if (loan->length > 0)
        loan_end(loan);
    run_loan_free(loan);
}

/* ---- events ---- */

struct pollfd run_loan_pollfd(const struct run_loan *loan)
{
    if (loan->pipe.write < 0 || loan->error != 0 || loan->conflict)
        return (struct pollfd){.fd = -1};
    if (loan->length > 0)
        return (struct pollfd){.fd = loan->pipe.write, .events = POLLOUT};
    return (struct pollfd){.fd = STDIN_FILENO, .events = POLLIN};
}

void run_loan_on_ready(struct run_loan *loan)
{
    if (loan->length > 0)
        loan_end(loan);
    if (loan->error == 0 && !loan->conflict)
        loan_lend(loan);
}

void run_loan_free(struct run_loan *loan)
{
    cli_fd_close(&loan->pipe.read);
    cli_fd_close(&loan->pipe.write);
    cli_fd_close(&loan->peeked.read);
    cli_fd_close(&loan->peeked.write);
}
