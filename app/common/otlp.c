/* otlp.c - the option table of otlp.h. */
#include "otlp.h"

const struct cli_option cli_otlp_options[CLI_OTLP_COUNT] = {
    {.name = "otlp",
     .help = "export a span for each attempt to an OpenTelemetry collector, as OTEL_* say",
     .kind = CLI_FLAG,
     CLI_AT(struct cli_otlp, on),
     .details =
         "By OTLP/HTTP to `OTEL_EXPORTER_OTLP_ENDPOINT`, by default http://localhost:4318. `TRACEPARENT` is "
         "continued. bide waits at most 500ms for the collector before it exits, and reports lost spans. Metrics "
         "are not exported this way, because each run would be new series: use `--shared` and `bide metrics`."},
};
