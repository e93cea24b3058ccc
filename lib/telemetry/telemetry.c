/* telemetry.c - starts and stops telemetry: see bide/telemetry.h. */
#include <bide/telemetry.h>

#include "core/problem.h"
#include "meters.h"

#define TARGETS_MAX 100000u

static const struct bide_listener listener = {.meter = telemetry_meters_find};

enum bide_err bide_telemetry_start(const struct bide_telemetry_options *options, struct bide_problem *problem)
{
    static const struct bide_telemetry_options defaults;
    (void)problem;
    const struct bide_telemetry_options *o = options != NULL ? options : &defaults;
    uint32_t targets_max = o->targets_max != 0 ? o->targets_max : BIDE_TELEMETRY_TARGETS;
    if (targets_max > TARGETS_MAX)
        return BIDE_ERR_INVALID;
    if (!telemetry_meters_begin(targets_max))
        return BIDE_ERR_NOMEM;
    return bide_listen(&listener);
}

void bide_telemetry_stop(void)
{
    if (bide_listener_get() == &listener)
        bide_listen(NULL);
}

size_t bide_telemetry_write(char *text, size_t size)
{
    if (size > 0)
        text[0] = '\0';
    return 0;
}
