/* program.c - the main of a subcommand that is a program of its own: CLI_PROGRAM names its table. */
#include "common/options.h"

#include <fcntl.h>
#include <unistd.h>

extern const struct cli_command CLI_PROGRAM;

/* The next file that is opened takes the number of a standard stream that is closed, and what is printed would go into
 * it. Those numbers are taken first, by what can only be used the other way round: an error, as if it were closed. And
 * closed is what a command finds them that is run from here. */
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
