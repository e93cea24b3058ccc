/* otlp.h - the option --otlp: a span for the call and one for each attempt is exported over OTLP/HTTP, as the variables
 * OTEL_* say (see bide/telemetry.h).
 *
 * Which code is behind --otlp is decided at link time, as for --fleet (fleet.h), because libbide-telemetry loads
 * libcurl:
 *
 *   program                files of app/bide          cli_otlp_ensure_linked, if --otlp was given
 *   bide-run, bide-fetch   otlp_linked.c              succeeds: libbide-telemetry is linked in
 *   bide                   bide.c, otlp_stub.c        execs bide-run
 *   any, built without it  otlp_missing.c, otlp_stub.c  fails */
#ifndef CLI_OTLP_H
#define CLI_OTLP_H

#include "options.h"

/* --otlp */
#define CLI_OTLP_COUNT 1u
extern const struct cli_option cli_otlp_options[CLI_OTLP_COUNT];

#define CLI_OTLP_GROUP(type, member)                                                                                   \
    {                                                                                                                  \
        .title = "Tracing", .option = cli_otlp_options, .count = CLI_OTLP_COUNT, .offset = offsetof(type, member)      \
    }

struct cli_otlp {
    bool on;
};

/* Ensures that this program can export spans if --otlp was given. Must be called before the command reads or opens
 * anything, because in `bide` itself it may exec another program. Returns false after reporting an error. */
bool cli_otlp_ensure_linked(const struct cli_command *command, const struct cli_otlp *otlp);

/* Starts the export if --otlp was given; calls that begin from now on have spans. Returns false after reporting an
 * error: a variable is wrong. A collector that cannot be reached is no error. */
bool cli_otlp_start(const struct cli_command *command, const struct cli_otlp *otlp);

/* Sends what is left, for at most 500 ms, and reports spans that were lost unless `quiet`. */
void cli_otlp_stop(const struct cli_command *command, const struct cli_otlp *otlp, bool quiet);

#endif
