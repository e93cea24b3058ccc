/* program.c - the main function of a subcommand that is a separate program. CLI_PROGRAM is the name of its command
 * table. */
#include "common/options.h"

#include <fcntl.h>
#include <unistd.h>

extern const struct cli_command CLI_PROGRAM;

/* If stdin, stdout or stderr is closed, the next file that is opened would get its number, and output would go into
 * that file. Occupy such a number with /dev/null opened in the wrong direction, so that using it fails as if it were
 * closed. The descriptors are close-on-exec, so a child still finds them closed. */
static void occupy_closed_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            open("/dev/null", (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
}

int main(int argc, char **argv)
{
    (void)argc;
    occupy_closed_streams();
    return cli_main(&CLI_PROGRAM, argv + 1);
}
