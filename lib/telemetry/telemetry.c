/* telemetry.c - starts and stops telemetry: see bide/telemetry.h. */
#include <bide/clock.h>
#include <bide/telemetry.h>

#include "listener.h"
#include "meters.h"
#include "problem.h"
#include "snapshot.h"

#define TARGETS_MAX 100000u

/* Sets the problem of reserved words, and of a limit that is too high. */
static enum bide_err options_check(const struct bide_telemetry_options *o, struct bide_problem *problem)
{
    for (size_t i = 0; i < sizeof o->reserved_ / sizeof *o->reserved_; i++)
        if (o->reserved_[i] != 0)
            return telemetry_problem_number(problem, "reserved_", 1, "0: this library does not know that field");
    if (o->targets_max > TARGETS_MAX)
        return telemetry_problem_number(problem, "targets_max", o->targets_max, "1 to 100000 (0: 128)");
    return BIDE_OK;
}

enum bide_err bide_telemetry_start(const struct bide_telemetry_options *options, struct bide_problem *problem)
{
    static const struct bide_telemetry_options defaults;
    const struct bide_telemetry_options *o = options != NULL ? options : &defaults;
    uint32_t targets_max = o->targets_max != 0 ? o->targets_max : BIDE_TELEMETRY_TARGETS;
    enum bide_err err = options_check(o, problem);
    if (err != BIDE_OK)
        return err;
    if (!telemetry_meters_begin(targets_max))
        return telemetry_problem_set(problem, BIDE_ERR_NOMEM, 0, "no memory for a table of %u meters", targets_max);
    struct bide_targets *targets = o->targets != NULL ? o->targets : bide_targets_default();
    if (targets == NULL)
        return telemetry_problem_set(problem, BIDE_ERR_NOMEM, 0, "no memory for the table of targets");
    struct telemetry_listener_options listen = {
        .spans = o->otlp != NULL, .sampler.limit = TELEMETRY_SAMPLER_ALL, .ring_bytes = 4 << 20};
    err = telemetry_listener_begin(&listen, problem);
    if (err == BIDE_OK)
        telemetry_snapshot_targets_set(targets);
    return err;
}

void bide_telemetry_stop(void)
{
    telemetry_listener_end();
    telemetry_snapshot_targets_set(NULL);
}

enum bide_err bide_telemetry_inbound(const char *name, const struct bide_inbound_ratio *ratio,
                                     struct bide_problem *problem)
{
    return telemetry_snapshot_inbound_set(name, ratio, problem);
}

size_t bide_telemetry_write(char *text, size_t size)
{
    struct telemetry_numbers *numbers = telemetry_snapshot_new(bide_now());
    size_t length = numbers != NULL ? telemetry_prometheus_write_all(text, size, numbers) : 0;
    if (numbers == NULL && size > 0)
        text[0] = '\0';
    telemetry_snapshot_free(numbers);
    return length;
}
