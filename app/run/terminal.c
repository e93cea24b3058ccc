/* terminal.c - lends the controlling terminal to the command's process group and reclaims it; see terminal.h. */
#include "terminal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_pipe_or_socket(int fd)
{
    struct stat status;
    return fstat(fd, &status) == 0 && (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode));
}

void run_terminal_open(struct run_terminal *terminal)
{
    *terminal = (struct run_terminal){.fd = cli_fd_above_first(open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY))};
    if (terminal->fd < 0)
        return;
    terminal->lend_at_start = !is_pipe_or_socket(STDIN_FILENO) && !is_pipe_or_socket(STDOUT_FILENO);
    terminal->has_modes = tcgetattr(terminal->fd, &terminal->modes) == 0;
}

void run_terminal_close(struct run_terminal *terminal)
{
    cli_fd_close(&terminal->fd);
}

bool run_terminal_is_foreground(const struct run_terminal *terminal)
{
    return terminal->fd >= 0 && tcgetpgrp(terminal->fd) == getpgrp();
}

void run_terminal_lend(struct run_terminal *terminal, pid_t group)
{
    if (run_terminal_is_foreground(terminal))
        terminal->lent = tcsetpgrp(terminal->fd, group) == 0;
}

void run_terminal_reclaim(struct run_terminal *terminal, bool restore)
{
    if (!terminal->lent)
        return;
    tcsetpgrp(terminal->fd, getpgrp());
    terminal->lent = false;
    if (restore && terminal->has_modes)
        tcsetattr(terminal->fd, TCSADRAIN, &terminal->modes);
}

void run_terminal_pause(struct run_terminal *terminal)
{
    if (!terminal->lent)
        return;
    terminal->has_lent_modes = tcgetattr(terminal->fd, &terminal->lent_modes) == 0;
    run_terminal_reclaim(terminal, true);
}

void run_terminal_resume(struct run_terminal *terminal, pid_t group)
{
    bool foreground = run_terminal_is_foreground(terminal);
    terminal->lent = terminal->lent && tcgetpgrp(terminal->fd) == group;
    if (foreground && terminal->has_lent_modes)
        tcsetattr(terminal->fd, TCSADRAIN, &terminal->lent_modes);
    if (foreground && (terminal->lend_at_start || terminal->has_lent_modes))
        run_terminal_lend(terminal, group);
    terminal->has_lent_modes = terminal->has_lent_modes && !foreground;
}

bool run_terminal_open_pty(int model, struct cli_pipe *pty)
{
    struct termios modes;
    int locked = 1;
    *pty = (struct cli_pipe){.read = cli_fd_above_first(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)), .write = -1};
    if (pty->read < 0 || unlockpt(pty->read) != 0)
        goto out;
    pty->write = cli_fd_above_first(ioctl(pty->read, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
    if (pty->write < 0 || tcgetattr(pty->write, &modes) != 0)
        goto out;
    cfmakeraw(&modes);
    if (tcsetattr(pty->write, TCSANOW, &modes) != 0)
        goto out;
    /* A pager looks up its keyboard by the name of its stderr. It must not open this pseudo-terminal, which has no
     * keyboard: locked, it cannot be opened again, and such programs fall back to /dev/tty. */
    ioctl(pty->read, TIOCSPTLCK, &locked);
    run_terminal_copy_size(pty->read, model);
    return true;
out:
    cli_fd_close(&pty->read);
    cli_fd_close(&pty->write);
    return false;
}

void run_terminal_copy_size(int pty, int model)
{
    struct winsize size, current;
    if (ioctl(model, TIOCGWINSZ, &size) == 0 && ioctl(pty, TIOCGWINSZ, &current) == 0 &&
        (size.ws_row != current.ws_row || size.ws_col != current.ws_col))
        ioctl(pty, TIOCSWINSZ, &size);
}
