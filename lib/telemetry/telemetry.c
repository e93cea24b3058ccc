/* telemetry.c - starts and stops telemetry: see bide/telemetry.h. */
#include <bide/telemetry.h>

#include "listener.h"
#include "meters.h"
#include "problem.h"

#define TARGETS_MAX 100000u

enum bide_err bide_telemetry_start(const struct bide_telemetry_options *options, struct bide_problem *problem)
{
    static const struct bide_telemetry_options defaults;
    const struct bide_telemetry_options *o = options != NULL ? options : &defaults;
    uint32_t targets_max = o->targets_max != 0 ? o->targets_max : BIDE_TELEMETRY_TARGETS;
    if (targets_max > TARGETS_MAX)
        return telemetry_problem_number(problem, "targets_max", targets_max, "1 to 100000, or 0 for the default");
    if (!telemetry_meters_begin(targets_max))
        return telemetry_problem_set(problem, BIDE_ERR_NOMEM, 0, "no memory for the meters");
    struct telemetry_listener_options listen = {
        .spans = o->otlp != NULL, .sampler.limit = TELEMETRY_SAMPLER_ALL, .ring_bytes = 4 << 20};
    return telemetry_listener_begin(&listen, problem);
}

void bide_telemetry_stop(void)
{
    telemetry_listener_end();
}

size_t bide_telemetry_write(char *text, size_t size)
{
    if (size > 0)
        text[0] = '\0';
    return 0;
}
