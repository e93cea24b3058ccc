/* fd.c - keeps bide's own descriptors out of the range that a command may use. */
#include "fd.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int cli_fd_above_first(int fd)
{
    if (fd < 0 || fd >= CLI_FD_FIRST)
        return fd;
    int high = fcntl(fd, F_DUPFD_CLOEXEC, CLI_FD_FIRST);
    if (high < 0 && errno == EINVAL)
        errno = EMFILE; /* the resource limit is below CLI_FD_FIRST */
    cli_fd_close(&fd);
    return high;
}

bool cli_fd_pipe(struct cli_pipe *pipe)
{
    int fd[2];
    if (pipe2(fd, O_CLOEXEC) != 0)
        return false;
    pipe->read = cli_fd_above_first(fd[0]);
    pipe->write = cli_fd_above_first(fd[1]);
    if (pipe->read >= 0 && pipe->write >= 0)
        return true;
    cli_fd_close(&pipe->read);
    cli_fd_close(&pipe->write);
    return false;
}

void cli_fd_set_nonblocking(int fd)
{
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

void cli_fd_close(int *fd)
{
    int saved = errno;
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
    errno = saved;
}
