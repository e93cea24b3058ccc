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

static const int64_t bounds_ns[BIDE_METER_BINS] = {
    BIDE_MS,        2500000,       5 * BIDE_MS,   10 * BIDE_MS,  25 * BIDE_MS, 50 * BIDE_MS,   75 * BIDE_MS,
    100 * BIDE_MS,  250 * BIDE_MS, 500 * BIDE_MS, 750 * BIDE_MS, BIDE_S,       2500 * BIDE_MS, 5 * BIDE_S,
    7500 * BIDE_MS, 10 * BIDE_S,   30 * BIDE_S,   60 * BIDE_S,   300 * BIDE_S, BIDE_NEVER,
};

/* For each position of the highest bit of a duration, the bin of the shortest such duration. An octave, from 2^n to
 * 2^(n+1) - 1, contains two bounds at most. */
static const uint8_t octave_bin[64] = {
    [20] = 1,  [21] = 1,  [22] = 2,  [23] = 3,  [24] = 4,  [25] = 5,  [26] = 6,  [27] = 8,  [28] = 9,
    [29] = 10, [30] = 12, [31] = 12, [32] = 13, [33] = 15, [34] = 16, [35] = 17, [36] = 18, [37] = 18,
    [38] = 18, [39] = 19, [40] = 19, [41] = 19, [42] = 19, [43] = 19, [44] = 19, [45] = 19, [46] = 19,
    [47] = 19, [48] = 19, [49] = 19, [50] = 19, [51] = 19, [52] = 19, [53] = 19, [54] = 19, [55] = 19,
    [56] = 19, [57] = 19, [58] = 19, [59] = 19, [60] = 19, [61] = 19, [62] = 19, [63] = 19,
};

uint32_t os_meter_bin(int64_t time_ns)
{
    uint64_t time = time_ns > 0 ? (uint64_t)time_ns : 0;
    uint32_t bin = octave_bin[63 - __builtin_clzll(time | 1)];
    bin += bin < BIDE_METER_BINS - 1 && time > (uint64_t)bounds_ns[bin];
    bin += bin < BIDE_METER_BINS - 1 && time > (uint64_t)bounds_ns[bin];
    assert(time <= (uint64_t)bounds_ns[bin] && (bin == 0 || time > (uint64_t)bounds_ns[bin - 1]));
    return bin;
}

int64_t bide_meter_bound_ns(uint32_t bin)
{
    return bin < BIDE_METER_BINS ? bounds_ns[bin] : BIDE_NEVER;
}

static void histogram_add(struct bide_histogram *histogram, int64_t time_ns)
{
    core_add(&histogram->sum_us, time_ns > 0 ? (uint64_t)time_ns / 1000 : 0);
    core_add(&histogram->count[os_meter_bin(time_ns)], 1);
}

/* ---- adding ---- */

/* Counts an end: see the head of meter.h. */
static void count_end(uint64_t *word)
{
    __atomic_add_fetch(word, 1, __ATOMIC_RELEASE);
}

enum bide_meter_attempt os_meter_attempt(uint32_t number, enum bide_attempt_kind kind)
{
    assert(number > 0);
    if (kind != BIDE_ATTEMPT_REGULAR)
        return kind == BIDE_ATTEMPT_HEDGE ? BIDE_METER_HEDGE : BIDE_METER_REFRESH;
    return number < 4 ? (enum bide_meter_attempt)(number - 1) : BIDE_METER_ATTEMPT_4_OR_MORE;
}

void os_meter_end(struct bide_meter_lane_ *lane, const struct os_meter_end *end)
{
    struct bide_meter_view *m = &lane->rest;
    struct bide_histogram *histogram = &m->attempt_failed;
    unsigned kind = (unsigned)end->kind < BIDE_METER_KINDS ? (unsigned)end->kind : BIDE_KIND_PERMANENT;
    if (kind == BIDE_KIND_OK)
        histogram = &m->attempt_ok;
    else if (kind == BIDE_KIND_CANCELLED)
        histogram = &m->attempt_cancelled;
    histogram_add(histogram, end->time_ns);
    count_end(&m->outcomes[end->attempt][kind]);
}

void os_meter_wait(struct bide_meter_lane_ *lane, enum bide_reason reason)
{
    assert((unsigned)reason < BIDE_REASON_COUNT);
    core_add(&lane->rest.waits[reason], 1);
}

void os_meter_wait_end(struct bide_meter_lane_ *lane, int64_t time_ns)
{
    core_add(&lane->rest.wait_us, time_ns > 0 ? (uint64_t)time_ns / 1000 : 0);
    count_end(&lane->rest.waits_ended);
}

void os_meter_refusals(struct bide_meter_lane_ *lane, const struct bide_verdict *verdict)
{
    enum bide_gate gate = verdict->action != BIDE_ACTION_START ? bide_reason_gate(verdict->reason) : 0;
    if (gate != 0)
        core_add(&lane->rest.refusals[BIDE_GATE_INDEX(gate)][BIDE_METER_ENFORCE], 1);
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
        histogram_add(&m->call_ok, time_ns);
    else if (result == BIDE_METER_FAILED)
        histogram_add(&m->call_failed, time_ns);
}

void os_meter_at_once(struct bide_meter_lane_ *lane, int64_t time_ns)
{
    uint64_t time = time_ns > 0 ? (uint64_t)time_ns : 0;
    core_add(&lane->at_once.sum_us, time / 1000);
    count_end(&lane->at_once.count[os_meter_bin((int64_t)time)]);
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
