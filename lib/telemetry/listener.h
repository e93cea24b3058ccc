/* listener.h - what a call does for spans and log lines: it decides whether its trace is recorded, and writes records
 * (record.h) into the ring (ring.h).
 *
 * Threads: calls come from any thread. telemetry_listener_begin and telemetry_listener_end are called by start and
 * stop, the functions of the consumer by the export thread. */
#ifndef TELEMETRY_LISTENER_H
#define TELEMETRY_LISTENER_H

#include "record.h"

#define TELEMETRY_SAMPLER_ALL (UINT64_C(1) << 56)

/* OTEL_TRACES_SAMPLER. */
struct telemetry_sampler {
    bool parent_based; /* a trace that another service began keeps its flag */
    uint64_t limit;    /* of TELEMETRY_SAMPLER_ALL: the share of the traces that is recorded */
};

/* The decision is the same for all spans of a trace, in all services with the same share: it depends on the 56 bits of
 * the trace id that are random (W3C trace context, level 2). */
static inline bool telemetry_sampler_decide(const struct telemetry_sampler *sampler, const struct bide_trace *trace)
{
    if (sampler->parent_based && trace->parent != 0)
        return (trace->flags & BIDE_TRACE_SAMPLED) != 0;
    return (trace->trace_lo & (TELEMETRY_SAMPLER_ALL - 1)) < sampler->limit;
}

struct telemetry_listener_options {
    bool spans;                       /* records of sampled traces are wanted */
    bool log;                         /* records of failures, waits and calls that gave up are wanted */
    struct telemetry_sampler sampler; /* with spans */
    uint64_t ring_bytes;
};

/* Opens the ring, and listens to the calls of the process. Without spans and log only meters are kept. BIDE_ERR_BUSY:
 * the process has another listener. */
enum bide_err telemetry_listener_begin(const struct telemetry_listener_options *options, struct bide_problem *problem);

/* Calls that begin from now on are not reported; the events of the others are counted as lost (shutdown). The ring
 * keeps its records for the consumer. */
void telemetry_listener_end(void);

/* Returns true if the listener of the process is this one. */
bool telemetry_listener_is_set(void);

/* Consumer: as telemetry_ring_peek, _pop, _look_ahead, _has_passed and _sleep. */
const struct telemetry_record *telemetry_listener_peek(size_t *size);
void telemetry_listener_pop(void);
const struct telemetry_record *telemetry_listener_look_ahead(void);
bool telemetry_listener_has_passed(void);
bool telemetry_listener_sleep(uint64_t pending);
void telemetry_listener_awake(void);
uint64_t telemetry_listener_pending(void);
uint64_t telemetry_listener_capacity(void); /* bytes */

/* Becomes readable when a producer wakes the consumer, or telemetry_listener_wake is called; awake makes it
 * unreadable. */
int telemetry_listener_fd(void);
void telemetry_listener_wake(void);

/* In a forked child: the ring is a copy that may hold places without a producer. From now on events are counted as
 * lost, until the child starts telemetry itself. */
void telemetry_listener_forked(void);

#endif
