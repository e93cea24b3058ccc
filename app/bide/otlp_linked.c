/* otlp_linked.c - --otlp in a program with libbide-telemetry linked in. See common/otlp.h for the link-time choice. */
#include "common/otlp.h"

#include <bide/telemetry.h>

#include "telemetry/dropped.h"

#include <inttypes.h>
#include <stdio.h>

bool cli_otlp_ensure_linked(const struct cli_command *command, const struct cli_otlp *otlp)
{
    (void)command, (void)otlp;
    return true;
}

/* Spans only: the counters of a command end with it, so its metrics would be new series in each run, of one sample
 * each. Commands that share a target have their counters in its file, and `bide metrics` exports those. */
bool cli_otlp_start(const struct cli_command *command, const struct cli_otlp *otlp)
{
    const struct bide_telemetry_options options = {.otlp = "", .otlp_spans_only = true};
    struct bide_problem problem;
    if (otlp->on && bide_telemetry_start(&options, &problem) != BIDE_OK)
        return cli_fail(command, "--otlp: %s", problem.text), false;
    return true;
}

void cli_otlp_stop(const struct cli_command *command, const struct cli_otlp *otlp, bool quiet)
{
    if (!otlp->on)
        return;
    bide_telemetry_stop();
    for (int i = 0; i < TELEMETRY_CAUSE_COUNT && !quiet; i++) {
        uint64_t lost = telemetry_dropped_get(TELEMETRY_SPANS, (enum telemetry_cause)i);
        if (lost > 0)
            cli_report(command, "--otlp: %" PRIu64 " span%s lost: %s", lost, lost == 1 ? " was" : "s were",
                       telemetry_cause_text((enum telemetry_cause)i));
    }
}
