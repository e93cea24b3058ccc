/* program.c - the main of a subcommand that is a program of its own: CLI_PROGRAM names its table. */
#include "common/options.h"

extern const struct cli_command CLI_PROGRAM;

int main(int argc, char **argv)
{
    (void)argc;
    return cli_main(&CLI_PROGRAM, argv + 1);
}
