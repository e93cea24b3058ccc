/* otlp_missing.c - --otlp in a build without libbide-telemetry: rejected, not ignored. See common/otlp.h for the
 * link-time choice. */
#include "common/otlp.h"

bool cli_otlp_ensure_linked(const struct cli_command *command, const struct cli_otlp *otlp)
{
    if (otlp->on)
        cli_fail(command, "--otlp: this bide was built without telemetry (libcurl)");
    return !otlp->on;
}
