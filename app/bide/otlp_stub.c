/* otlp_stub.c - the functions of common/otlp.h in a program without libbide-telemetry: stubs.
 *
 * They never see the option: cli_otlp_ensure_linked has executed another program or has failed if it was given. */
#include "common/otlp.h"

bool cli_otlp_start(const struct cli_command *command, const struct cli_otlp *otlp)
{
    (void)command;
    return !otlp->on;
}

void cli_otlp_stop(const struct cli_command *command, const struct cli_otlp *otlp, bool quiet)
{
    (void)command, (void)otlp, (void)quiet;
}
