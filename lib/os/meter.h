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

#include <assert.h>

/* Returns true if the target has a meter of its own: a shared target. target: may be NULL or BIDE_NO_TARGET. */
static inline bool os_target_has_meter(const struct bide_target *target)
{
    return target != NULL && target != BIDE_NO_TARGET && (core_load(&target->identity) & CORE_SHARED) != 0;
}

/* Returns the meter of a target that has one: shared.c keeps it directly behind the target. Both are mapped writable;
 * counting a call changes no word of the target. */
static inline struct bide_meter *os_target_meter(const struct bide_target *target)
{
    return (struct bide_meter *)((uintptr_t)target + sizeof *target);
}

/* The bins of a histogram: their upper bounds, and for each position of the highest bit of a duration the bin of the
 * shortest such duration. An octave, from 2^n to 2^(n+1) - 1, contains two bounds at most. */
extern const struct os_meter_bins {
    int64_t bound_ns[BIDE_METER_BINS];
    uint8_t octave[64];
} os_meter_bins;

/* Returns the bin of a duration. The bound of the last bin is not exceeded, so no step leads beyond it. */
static inline uint32_t os_meter_bin(uint64_t time_ns)
{
    const int64_t *bound_ns = os_meter_bins.bound_ns;
    uint32_t bin = os_meter_bins.octave[63 ^ (uint64_t)__builtin_clzll(time_ns | 1)];
    bin += time_ns > (uint64_t)bound_ns[bin];
    bin += time_ns > (uint64_t)bound_ns[bin];
    assert(bin < BIDE_METER_BINS && time_ns <= (uint64_t)bound_ns[bin] &&
           (bin == 0 || time_ns > (uint64_t)bound_ns[bin - 1]));
    return bin;
}

/* Counts a duration, below 0 as 0, with the count released: see the head of this file. */
static inline void os_meter_add_duration(struct bide_histogram *histogram, int64_t time_ns)
{
    uint64_t time = time_ns > 0 ? (uint64_t)time_ns : 0;
    core_add(&histogram->sum_us, time / 1000);
    __atomic_add_fetch(&histogram->count[os_meter_bin(time)], 1, __ATOMIC_RELEASE);
}

/* Returns the class of attempt number `number`, which is 1 or more. */
static inline enum bide_meter_attempt os_meter_attempt(uint32_t number, enum bide_attempt_kind kind)
{
    assert(number > 0);
    if (kind != BIDE_ATTEMPT_REGULAR)
        return kind == BIDE_ATTEMPT_HEDGE ? BIDE_METER_HEDGE : BIDE_METER_REFRESH;
    return number < 4 ? (enum bide_meter_attempt)(number - 1) : BIDE_METER_ATTEMPT_4_OR_MORE;
}

static inline void os_meter_start(struct bide_meter_lane_ *lane, enum bide_meter_attempt attempt)
{
    core_add(&lane->rest.attempts[attempt], 1);
}

/* An attempt has ended, `time_ns` after its start. */
static inline void os_meter_end(struct bide_meter_lane_ *lane, enum bide_meter_attempt attempt, enum bide_kind kind,
                                int64_t time_ns)
{
    struct bide_meter_view *m = &lane->rest;
    struct bide_histogram *histogram = &m->attempt_failed;
    assert((unsigned)kind <= BIDE_KIND_OK);
    if (kind == BIDE_KIND_OK)
        histogram = &m->attempt_ok;
    else if (kind == BIDE_KIND_CANCELLED)
        histogram = &m->attempt_cancelled;
    os_meter_add_duration(histogram, time_ns);
    __atomic_add_fetch(&m->outcomes[attempt][kind % BIDE_METER_KINDS], 1, __ATOMIC_RELEASE);
}

/* A call begins to wait, and has waited for `time_ns`. */
static inline void os_meter_wait(struct bide_meter_lane_ *lane, enum bide_reason reason)
{
    assert((unsigned)reason < BIDE_REASON_COUNT);
    core_add(&lane->rest.waits[reason], 1);
}

static inline void os_meter_wait_end(struct bide_meter_lane_ *lane, int64_t time_ns)
{
    core_add(&lane->rest.wait_us, time_ns > 0 ? (uint64_t)time_ns / 1000 : 0);
    __atomic_add_fetch(&lane->rest.waits_ended, 1, __ATOMIC_RELEASE);
}

/* Counts the refusal of the gate to which the reason of a WAIT, GIVE_UP or NONE belongs, if it belongs to one. */
static inline void os_meter_refusal(struct bide_meter_lane_ *lane, enum bide_reason reason)
{
    assert((unsigned)reason < BIDE_REASON_COUNT);
    unsigned gate = core_reason_gates[reason];
    if (gate != 0)
        core_add(&lane->rest.refusals[BIDE_GATE_INDEX(gate)][BIDE_METER_ENFORCE], 1);
}

/* Counts the refusals of a verdict: of the gate that refused, and of those that only observe. */
void os_meter_refusals(struct bide_meter_lane_ *lane, const struct bide_verdict *verdict);

/* A call has ended with DONE or GIVE_UP, `time_ns` after its begin and after `attempts` attempts. */
void os_meter_call(struct bide_meter_lane_ *lane, const struct bide_verdict *verdict, uint32_t attempts,
                   int64_t time_ns);

/* A call with a single attempt, which os_meter_start counted, succeeded after `time_ns`: end of the attempt and of the
 * call in one. */
static inline void os_meter_at_once(struct bide_meter_lane_ *lane, int64_t time_ns)
{
    os_meter_add_duration(&lane->at_once, time_ns);
}

#endif
