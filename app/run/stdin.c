/* stdin.c - the command's standard input, and whether it can be given a second time.
 *
 * Known weakness: a pipe is read ahead, as ssh does. In a loop such as `while read line; do bide run ...; done` that
 * takes its lines from a pipe, give bide </dev/null. */
#include "stdin.h"

#include <errno.h>
#include <limits.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

void run_stdin_init(struct run_stdin *input, struct run_stdin_wish wish)
{
    struct stat status;
    input->pipe = (struct run_pipe){-1, -1};
    input->mode = RUN_STDIN_INHERITED;
    if (!wish.again || fstat(STDIN_FILENO, &status) != 0)
        return;
    if (S_ISREG(status.st_mode) && (input->start = lseek(STDIN_FILENO, 0, SEEK_CUR)) >= 0)
        input->mode = RUN_STDIN_REWOUND;
    else if (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode))
        input->mode = wish.replay ? RUN_STDIN_REPLAYED : RUN_STDIN_RELAYED;
}

static bool flows(const struct run_stdin *input)
{
    return input->mode == RUN_STDIN_RELAYED || input->mode == RUN_STDIN_REPLAYED;
}

/* Is there something that came and is not yet in the pipe? */
static bool has_more(const struct run_stdin *input)
{
    return input->length > 0 || (input->mode == RUN_STDIN_REPLAYED && input->passed < input->spool.size);
}

/* ---- an attempt ---- */

bool run_stdin_open(struct run_stdin *input, int *child_fd)
{
    *child_fd = -1;
    if (input->mode == RUN_STDIN_REWOUND)
        return lseek(STDIN_FILENO, input->start, SEEK_SET) >= 0;
    if (input->mode == RUN_STDIN_REPLAYED) {
        run_file_close(&input->pipe.read);
        run_file_close(&input->pipe.write);
        input->passed = 0;
        input->broken = false;
        input->length = 0; /* it is in the spool */
    }
    if (flows(input) && input->pipe.read < 0) {
        if (!run_file_pipe(&input->pipe))
            return false;
        run_file_nonblocking(input->pipe.write);
    }
    *child_fd = input->pipe.read;
    return true;
}

void run_stdin_started(struct run_stdin *input)
{
    if (input->mode == RUN_STDIN_REPLAYED)
        run_file_close(&input->pipe.read);
    if (input->ended && !has_more(input))
        run_file_close(&input->pipe.write);
}

/* ---- while it runs ---- */

struct pollfd run_stdin_wants(const struct run_stdin *input)
{
    if (!flows(input) || input->pipe.write < 0 || input->broken)
        return (struct pollfd){.fd = -1};
    if (has_more(input))
        return (struct pollfd){.fd = input->pipe.write, .events = POLLOUT};
    return (struct pollfd){.fd = input->ended ? -1 : STDIN_FILENO, .events = POLLIN};
}

/* Fills the buffer: from the spool what was there before, else from our own stdin. */
static void fetch(struct run_stdin *input)
{
    bool from_spool = input->mode == RUN_STDIN_REPLAYED && input->passed < input->spool.size;
    ssize_t n = from_spool ? run_spool_read(&input->spool, input->passed, input->buffer, RUN_STDIN_SIZE)
                           : read(STDIN_FILENO, input->buffer, RUN_STDIN_SIZE);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (from_spool && n <= 0)
        input->error = n < 0 ? errno : EIO;
    input->ended = input->ended || n <= 0;
    input->at = 0;
    input->length = n > 0 ? (size_t)n : 0;
    if (!from_spool && n > 0 && input->mode == RUN_STDIN_REPLAYED &&
        !run_spool_add(&input->spool, input->buffer, (size_t)n))
        input->error = errno;
}

static void pass_on(struct run_stdin *input)
{
    ssize_t n = write(input->pipe.write, input->buffer + input->at, input->length);
    if (n < 0 && errno != EAGAIN && errno != EINTR)
        input->broken = true; /* it reads no more; what came is in the spool */
    if (n <= 0)
        return;
    input->at += (size_t)n;
    input->length -= (size_t)n;
    input->passed += n;
}

void run_stdin_serve(struct run_stdin *input)
{
    if (input->length == 0)
        fetch(input);
    if (input->length > 0)
        pass_on(input);
    if (input->ended && !has_more(input))
        run_file_close(&input->pipe.write);
}

/* ---- afterwards ---- */

bool run_stdin_is_spent(const struct run_stdin *input)
{
    int unread = 0;
    if (input->mode != RUN_STDIN_RELAYED)
        return false;
    return ioctl(input->pipe.read, FIONREAD, &unread) != 0 || unread < input->passed;
}

void run_stdin_free(struct run_stdin *input)
{
    run_file_close(&input->pipe.read);
    run_file_close(&input->pipe.write);
    run_spool_empty(&input->spool);
}
