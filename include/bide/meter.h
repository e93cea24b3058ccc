/* meter.h - counters and histograms of one target: what its calls and attempts did.
 *
 * A report (event.h) adds each event of a call to the meter of its target, at the event: nothing is sampled, and no
 * buffer that may be full lies in between, so the counts are exact. What is read adds up:
 *
 *     attempts = outcomes + attempts in flight
 *     waits    = waits that have ended + calls that wait now
 *     calls    = calls that succeeded + give-ups            give-ups = calls failed + refused + cancelled
 *     call_ok has as many calls as the results first and rescued, call_failed as many as failed
 *
 * A meter consists of 64-bit words, without pointers, and is used through atomic builtins: it works anywhere, also in
 * memory that processes share. A process that is killed leaves its attempts in flight and its waiting calls in these
 * sums for ever, and a call whose end it was counting at that moment in some of its words only; nothing else is wrong.
 * The words that calls write are spread over BIDE_LANES parts.
 *
 * Memory of zeros is an empty meter.
 *
 * Threads: all functions may be called from any thread and process that shares the meter. */
#ifndef BIDE_METER_H
#define BIDE_METER_H

#include <bide/outcome.h>
#include <bide/target.h>
#include <bide/verdict.h>

BIDE_BEGIN_DECLS

/* Which attempt of its call. */
enum bide_meter_attempt {
    BIDE_METER_ATTEMPT_1 = 0,
    BIDE_METER_ATTEMPT_2,
    BIDE_METER_ATTEMPT_3,
    BIDE_METER_ATTEMPT_4_OR_MORE,
    BIDE_METER_HEDGE,   /* whatever its number */
    BIDE_METER_REFRESH, /* the request that repeats an attempt after a 401 */
    BIDE_METER_ATTEMPT_COUNT
};

/* How a call ended. */
enum bide_meter_result {
    BIDE_METER_FIRST = 0, /* succeeded by its first attempt */
    BIDE_METER_RESCUED,   /* succeeded by a later attempt: a retry or a hedge */
    BIDE_METER_FAILED,    /* gave up after an attempt */
    BIDE_METER_REFUSED,   /* gave up without an attempt: a gate refused the first, or it could not start in time */
    BIDE_METER_CANCELLED, /* by the caller */
    BIDE_METER_RESULT_COUNT
};

/* Why a gate's refusal was counted. */
enum bide_meter_mode {
    BIDE_METER_ENFORCE = 0, /* the gate refused */
    BIDE_METER_OBSERVE,     /* it would have refused, but only observes */
    BIDE_METER_MODE_COUNT
};

#define BIDE_METER_BINS    20u /* of a histogram: the last has no upper bound */
#define BIDE_METER_KINDS   8u  /* room for enum bide_kind */
#define BIDE_METER_GATES   12u /* room for BIDE_GATE_COUNT */
#define BIDE_METER_REASONS 48u /* room for BIDE_REASON_COUNT */

/* Durations. Final: its size will not change. */
struct bide_histogram {
    uint64_t count[BIDE_METER_BINS]; /* durations above the bound of the bin before, up to the bin's own */
    uint64_t sum_us;                 /* each duration rounded down to microseconds */
};

/* The counts of a meter. Words without a meaning yet are 0. Final: its size will not change. */
struct bide_meter_view {
    uint64_t attempts[8];                                       /* enum bide_meter_attempt: started */
    uint64_t outcomes[8][BIDE_METER_KINDS];                     /* enum bide_meter_attempt, enum bide_kind */
    uint64_t calls[8];                                          /* enum bide_meter_result: ended */
    uint64_t give_ups[BIDE_METER_REASONS];                      /* enum bide_reason */
    uint64_t refusals[BIDE_METER_GATES][BIDE_METER_MODE_COUNT]; /* BIDE_GATE_INDEX; hedges included */
    uint64_t waits[BIDE_METER_REASONS];                         /* enum bide_reason: begun */
    uint64_t waits_ended;
    uint64_t wait_us; /* of the waits that have ended, as they were, not as they were planned */
    uint64_t reserved_[6];
    struct bide_histogram call_ok;
    struct bide_histogram call_failed; /* neither refused nor cancelled calls: their time says nothing of the server */
    struct bide_histogram attempt_ok;
    struct bide_histogram attempt_failed;
    struct bide_histogram attempt_cancelled;
};

/* Private: one part of a meter. */
struct bide_meter_lane_ {
    /* Calls that succeeded at once, by a single attempt: each is one count here, and is one in outcomes, calls, call_ok
     * and attempt_ok of the view. */
    struct bide_histogram at_once;
    struct bide_meter_view rest;
} __attribute__((aligned(64)));

struct bide_meter {
    uint64_t reserved_[8]; /* zero: room to grow */
    struct bide_meter_lane_ lane[BIDE_LANES];
} __attribute__((aligned(64)));

/* Adds up the lanes. Calls that end meanwhile may be missing in some of the counts, but no attempt and no wait ends in
 * the view that has not begun in it. */
BIDE_API void bide_meter_get(const struct bide_meter *meter, struct bide_meter_view *view);

/* Returns the upper bound of a bin, which belongs to it: 1 ms for bin 0, 300 s for the last but one; BIDE_NEVER for the
 * last. */
BIDE_API int64_t bide_meter_bound_ns(uint32_t bin);

/* Return a label, as "4_or_more" or "rescued"; never NULL. */
BIDE_API const char *bide_meter_attempt_label(enum bide_meter_attempt attempt);
BIDE_API const char *bide_meter_result_label(enum bide_meter_result result);

BIDE_END_DECLS
#endif
