/* log_output.c - writes without waiting: see log_output.h.
 *
 * O_NONBLOCK belongs to the open file description, which the caller shares with other processes (stderr, above all), so
 * it must not be set there. A pipe or a terminal is opened once more, through /proc, with a description of its own. A
 * socket has a flag for each call. A file never blocks in this sense. What cannot be opened again (no /proc, another
 * owner) is polled before each write: then a write can wait if another writer fills the last page of the pipe in
 * between. */
#include "log_output.h"

#include "dropped.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static int output_open_again(int fd)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return open(path, O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

bool telemetry_output_open(struct telemetry_output *output, int fd)
{
    struct stat file;
    int flags = fcntl(fd, F_GETFL);
    *output = (struct telemetry_output){.fd = -1};
    if (flags < 0 || fstat(fd, &file) < 0)
        return false;
    if ((flags & O_ACCMODE) == O_RDONLY) {
        errno = EBADF;
        return false;
    }
    output->is_socket = S_ISSOCK(file.st_mode);
    if (S_ISFIFO(file.st_mode) || S_ISCHR(file.st_mode))
        output->fd = output_open_again(fd);
    if (output->fd < 0)
        output->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    return output->fd >= 0;
}

/* Returns how much was written; -1, with errno: nothing. */
static ssize_t output_try(const struct telemetry_output *output, const char *bytes, size_t length)
{
    struct pollfd writable = {.fd = output->fd, .events = POLLOUT};
    ssize_t n;
    do {
        if (poll(&writable, 1, 0) == 0) {
            errno = EAGAIN;
            return -1;
        }
        n = output->is_socket ? send(output->fd, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL)
                              : write(output->fd, bytes, length);
    } while (n < 0 && errno == EINTR);
    return n;
}

static enum telemetry_output_result output_failure(int error)
{
    return error == EAGAIN ? TELEMETRY_OUTPUT_BLOCKED : TELEMETRY_OUTPUT_ERROR;
}

/* Writes the rest of an earlier line, or gives it up after an error. */
static enum telemetry_output_result output_finish(struct telemetry_output *output)
{
    while (output->rest_length > 0) {
        ssize_t n = output_try(output, output->rest, output->rest_length);
        if (n < 0 && errno == EAGAIN)
            return TELEMETRY_OUTPUT_BLOCKED;
        if (n < 0) {
            output->rest_length = 0;
            output->is_cut = true;
            telemetry_dropped_add(TELEMETRY_LOGS, TELEMETRY_WRITE_ERROR, 1);
            return TELEMETRY_OUTPUT_ERROR;
        }
        output->rest_length -= (size_t)n;
        memmove(output->rest, output->rest + n, output->rest_length);
    }
    return TELEMETRY_OUTPUT_WRITTEN;
}

/* Ends the part of a line whose rest is lost. */
static enum telemetry_output_result output_end_cut_line(struct telemetry_output *output)
{
    if (output->is_cut && output_try(output, "\n", 1) < 0)
        return output_failure(errno);
    output->is_cut = false;
    return TELEMETRY_OUTPUT_WRITTEN;
}

enum telemetry_output_result telemetry_output_write(struct telemetry_output *output, const char *line, size_t length)
{
    assert(length > 0 && length <= TELEMETRY_LINE_MAX);
    enum telemetry_output_result result = output_finish(output);
    if (result == TELEMETRY_OUTPUT_WRITTEN)
        result = output_end_cut_line(output);
    if (result != TELEMETRY_OUTPUT_WRITTEN)
        return result;
    ssize_t n = output_try(output, line, length);
    if (n < 0)
        return output_failure(errno);
    output->rest_length = length - (size_t)n;
    memcpy(output->rest, line + n, output->rest_length);
    return TELEMETRY_OUTPUT_WRITTEN;
}

bool telemetry_output_close(struct telemetry_output *output)
{
    bool is_whole = output_finish(output) != TELEMETRY_OUTPUT_BLOCKED;
    if (output->fd >= 0)
        close(output->fd);
    output->fd = -1;
    return is_whole;
}
