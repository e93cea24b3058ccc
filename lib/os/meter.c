/* meter.c - counters and histograms of one target: see bide/meter.h. */
#include "meter.h"

#include <bide/clock.h>

#include "core/atomic.h"
#include "core/label.h"

#include <assert.h>
#include <string.h>

_Static_assert(sizeof(struct bide_meter_view) / sizeof(uint64_t) == 313, "the view is read as an array of words");
_Static_assert(sizeof(struct bide_meter) == 64 + BIDE_LANES * 2688, "lanes are whole cache lines");
_Static_assert(BIDE_REASON_COUNT <= BIDE_METER_REASONS && BIDE_GATE_COUNT <= BIDE_METER_GATES &&
                   (unsigned)BIDE_KIND_OK < BIDE_METER_KINDS,
               "the meter has a word for each");

#define VIEW_WORDS (sizeof(struct bide_meter_view) / sizeof(uint64_t))

/* ---- durations ---- */

const struct os_meter_bins os_meter_bins = {
    .bound_ns =
        {
            BIDE_MS,        2500000,       5 * BIDE_MS,   10 * BIDE_MS,  25 * BIDE_MS, 50 * BIDE_MS,   75 * BIDE_MS,
            100 * BIDE_MS,  250 * BIDE_MS, 500 * BIDE_MS, 750 * BIDE_MS, BIDE_S,       2500 * BIDE_MS, 5 * BIDE_S,
            7500 * BIDE_MS, 10 * BIDE_S,   30 * BIDE_S,   60 * BIDE_S,   300 * BIDE_S, BIDE_NEVER,
        },
    .octave =
        {
            [20] = 1,  [21] = 1,  [22] = 2,  [23] = 3,  [24] = 4,  [25] = 5,  [26] = 6,  [27] = 8,  [28] = 9,
            [29] = 10, [30] = 12, [31] = 12, [32] = 13, [33] = 15, [34] = 16, [35] = 17, [36] = 18, [37] = 18,
            [38] = 18, [39] = 19, [40] = 19, [41] = 19, [42] = 19, [43] = 19, [44] = 19, [45] = 19, [46] = 19,
            [47] = 19, [48] = 19, [49] = 19, [50] = 19, [51] = 19, [52] = 19, [53] = 19, [54] = 19, [55] = 19,
            [56] = 19, [57] = 19, [58] = 19, [59] = 19, [60] = 19, [61] = 19, [62] = 19, [63] = 19,
        },
};

int64_t bide_meter_bound_ns(uint32_t bin)
{
    return bin < BIDE_METER_BINS ? os_meter_bins.bound_ns[bin] : BIDE_NEVER;
}

/* ---- adding ---- */

void os_meter_refusals(struct bide_meter_lane_ *lane, const struct bide_verdict *verdict)
{
    if (verdict->action != BIDE_ACTION_START)
        os_meter_refusal(lane, verdict->reason);
    for (uint32_t bits = verdict->observed; bits != 0; bits &= bits - 1)
        core_add(&lane->rest.refusals[BIDE_GATE_INDEX(bits) % BIDE_METER_GATES][BIDE_METER_OBSERVE], 1);
}

static enum bide_meter_result call_result(const struct bide_verdict *verdict, uint32_t attempts)
{
    if (verdict->action == BIDE_ACTION_DONE)
        return verdict->attempt > 1 ? BIDE_METER_RESCUED : BIDE_METER_FIRST;
    if (verdict->reason == BIDE_REASON_CANCELLED)
        return BIDE_METER_CANCELLED;
    return attempts > 0 ? BIDE_METER_FAILED : BIDE_METER_REFUSED;
}

void os_meter_call(struct bide_meter_lane_ *lane, const struct bide_verdict *verdict, uint32_t attempts,
                   int64_t time_ns)
{
    struct bide_meter_view *m = &lane->rest;
    enum bide_meter_result result = call_result(verdict, attempts);
    assert(verdict->action == BIDE_ACTION_DONE || verdict->action == BIDE_ACTION_GIVE_UP);
    core_add(&m->calls[result], 1);
    if (verdict->action == BIDE_ACTION_GIVE_UP)
        core_add(&m->give_ups[verdict->reason], 1);
    if (result <= BIDE_METER_RESCUED)
        os_meter_add_duration(&m->call_ok, time_ns);
    else if (result == BIDE_METER_FAILED)
        os_meter_add_duration(&m->call_failed, time_ns);
}

/* ---- reading ---- */

static void histogram_merge(struct bide_histogram *to, const struct bide_histogram *from)
{
    for (size_t i = 0; i < BIDE_METER_BINS; i++)
        to->count[i] += from->count[i];
    to->sum_us += from->sum_us;
}

/* Adds `count` words to others. Acquire loads: what is read after this is not older than what these words count. */
static void words_merge(uint64_t *to, const uint64_t *from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[i] += core_load_acquire(&from[i]);
}

/* Attempts and waits are read last: see the head of meter.h. They are the words before `outcomes` and those of
 * `waits`. */
void bide_meter_get(const struct bide_meter *meter, struct bide_meter_view *view)
{
    struct bide_meter_view sum = {0};
    struct bide_histogram at_once = {{0}, 0};
    for (size_t i = 0; i < BIDE_LANES; i++) {
        const struct bide_meter_lane_ *lane = &meter->lane[i];
        words_merge((uint64_t *)&at_once, (const uint64_t *)&lane->at_once, sizeof at_once / sizeof(uint64_t));
        words_merge((uint64_t *)&sum, (const uint64_t *)&lane->rest, VIEW_WORDS);
    }
    memset(sum.attempts, 0, sizeof sum.attempts);
    memset(sum.waits, 0, sizeof sum.waits);
    for (size_t i = 0; i < BIDE_LANES; i++) {
        const struct bide_meter_view *rest = &meter->lane[i].rest;
        words_merge(sum.attempts, rest->attempts, sizeof sum.attempts / sizeof(uint64_t));
        words_merge(sum.waits, rest->waits, sizeof sum.waits / sizeof(uint64_t));
    }
    for (size_t i = 0; i < BIDE_METER_BINS; i++) {
        sum.outcomes[BIDE_METER_ATTEMPT_1][BIDE_KIND_OK] += at_once.count[i];
        sum.calls[BIDE_METER_FIRST] += at_once.count[i];
    }
    histogram_merge(&sum.call_ok, &at_once);
    histogram_merge(&sum.attempt_ok, &at_once);
    *view = sum;
}

/* ---- labels ---- */

static const char *const attempt_labels[] = {"1", "2", "3", "4_or_more", "hedge", "refresh"};
static const char *const result_labels[] = {"first", "rescued", "failed", "refused", "cancelled"};
_Static_assert(sizeof attempt_labels / sizeof *attempt_labels == BIDE_METER_ATTEMPT_COUNT, "each has a label");
_Static_assert(sizeof result_labels / sizeof *result_labels == BIDE_METER_RESULT_COUNT, "each has a label");

const char *bide_meter_attempt_label(enum bide_meter_attempt attempt)
{
    return CORE_LABEL(attempt_labels, attempt);
}

const char *bide_meter_result_label(enum bide_meter_result result)
{
    return CORE_LABEL(result_labels, result);
}
