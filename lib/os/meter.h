/* meter.h - adds the events of a call to a meter: for event.c, which calls these functions in the order of the events.
 *
 * Counts of ends (outcomes, ended waits) are released, and bide_meter_get acquires them before it reads the counts of
 * starts: a reader that sees the end of an attempt sees its start, too. */
#ifndef OS_METER_H
#define OS_METER_H

#include <bide/event.h>
#include <bide/meter.h>

#include "core/atomic.h"
#include "core/gates.h"

/* Returns true if the target has a meter of its own: a shared target. target: may be NULL or BIDE_NO_TARGET. */
static inline bool os_target_has_meter(const struct bide_target *target)
{
    return target != NULL && target != BIDE_NO_TARGET && (core_load(&target->identity) & CORE_SHARED) != 0;
}

/* How an attempt ended. */
struct os_meter_end {
    enum bide_meter_attempt attempt;
    enum bide_kind kind;
    int64_t time_ns; /* since its start */
};

/* Returns the bin of a duration. Negative durations count as 0. */
uint32_t os_meter_bin(int64_t time_ns);

/* Returns the class of attempt number `number`, which is 1 or more. */
enum bide_meter_attempt os_meter_attempt(uint32_t number, enum bide_attempt_kind kind);

static inline void os_meter_start(struct bide_meter_lane_ *lane, enum bide_meter_attempt attempt)
{
    core_add(&lane->rest.attempts[attempt], 1);
}

void os_meter_end(struct bide_meter_lane_ *lane, const struct os_meter_end *end);

/* A call begins to wait, and has waited for `time_ns`. */
void os_meter_wait(struct bide_meter_lane_ *lane, enum bide_reason reason);
void os_meter_wait_end(struct bide_meter_lane_ *lane, int64_t time_ns);

/* Counts the refusals of a verdict: of the gate that refused, and of those that only observe. */
void os_meter_refusals(struct bide_meter_lane_ *lane, const struct bide_verdict *verdict);

/* A call has ended with DONE or GIVE_UP, `time_ns` after its begin and after `attempts` attempts. */
void os_meter_call(struct bide_meter_lane_ *lane, const struct bide_verdict *verdict, uint32_t attempts,
                   int64_t time_ns);

/* A call with a single attempt, which os_meter_start counted, succeeded after `time_ns`: end of the attempt and of the
 * call in one. */
void os_meter_at_once(struct bide_meter_lane_ *lane, int64_t time_ns);

#endif
