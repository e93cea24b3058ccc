/* counters.c - counts the records of calls and requests per interval, and derives the metrics. */
#include "counters.h"

#include <stdlib.h>

static size_t interval_at(const struct demo_counters *t, int64_t at_ns)
{
    size_t interval = at_ns > 0 ? (size_t)(at_ns / DEMO_INTERVAL_NS) : 0;
    return interval < t->intervals ? interval : t->intervals - 1;
}

/* ---- calls and requests ---- */

static void count_call(struct demo_counters *t, const struct demo_scenario *s, const struct demo_call *call)
{
    bool ok = call->reason == BIDE_REASON_SUCCEEDED, after = call->begin_ns >= s->up_ns;
    struct demo_interval *began = &t->interval[interval_at(t, call->begin_ns)];
    t->calls++;
    t->attempts += call->attempts;
    t->ended[call->reason < BIDE_REASON_COUNT ? call->reason : BIDE_REASON_NOTHING]++;
    t->after_calls += after;
    t->after_ok += after && ok;
    began->began++;
    began->in_time += ok && call->end_ns - call->begin_ns <= DEMO_IN_TIME_NS;
    if (ok)
        t->interval[interval_at(t, call->end_ns)].succeeded++;
}

static void count_request(struct demo_counters *t, const struct demo_request *request)
{
    t->requests++;
    t->first_attempts += request->is_first;
    t->interval[interval_at(t, request->at_ns)].requests++;
    if (request->status != 200)
        return;
    t->served++;
    t->interval[interval_at(t, request->end_ns)].served++;
}

static void find_peak(struct demo_counters *t)
{
    for (size_t i = 0; i < t->intervals; i++)
        if (t->interval[i].requests > t->peak) {
            t->peak = t->interval[i].requests;
            t->peak_interval = i;
        }
}

/* ---- recovery ---- */

/* Returns true if the second that begins with this interval is well served. */
static bool is_well_served(const struct demo_counters *t, size_t first)
{
    uint64_t began = 0, in_time = 0;
    for (size_t i = first; i < first + DEMO_WINDOW; i++) {
        began += t->interval[i].began;
        in_time += t->interval[i].in_time;
    }
    return in_time * 100 >= began * DEMO_SERVED_PERCENT;
}

/* Searches backwards from the last second, as long as each second is well served. */
static int64_t find_recovery(const struct demo_counters *t, const struct demo_scenario *s)
{
    size_t up = (size_t)((s->up_ns + DEMO_INTERVAL_NS - 1) / DEMO_INTERVAL_NS);
    size_t end = (size_t)(s->length_ns / DEMO_INTERVAL_NS); /* of the last second */
    if (end < up + DEMO_WINDOW)
        return DEMO_NOT_RECOVERED; /* there is no full second to examine */
    size_t first = end - DEMO_WINDOW + 1;
    while (first > up && is_well_served(t, first - 1))
        first--;
    return first > end - DEMO_WINDOW ? DEMO_NOT_RECOVERED : (int64_t)first * DEMO_INTERVAL_NS - s->up_ns;
}

/* ---- latency ---- */

static int compare_ns(const void *one, const void *other)
{
    int64_t a = *(const int64_t *)one, b = *(const int64_t *)other;
    return (a > b) - (a < b);
}

static bool find_latencies(struct demo_counters *t, const struct demo_record *record)
{
    size_t count = 0, room = t->ended[BIDE_REASON_SUCCEEDED] > 0 ? t->ended[BIDE_REASON_SUCCEEDED] : 1;
    int64_t *took_ns = malloc(room * sizeof *took_ns);
    if (took_ns == NULL)
        return false;
    for (size_t i = 0; i < record->calls; i++)
        if (record->call[i].reason == BIDE_REASON_SUCCEEDED)
            took_ns[count++] = record->call[i].end_ns - record->call[i].begin_ns;
    qsort(took_ns, count, sizeof *took_ns, compare_ns);
    if (count > 0) {
        t->median_ns = took_ns[(count - 1) / 2];
        t->p99_ns = took_ns[(count - 1) - (count - 1) / 100];
    }
    free(took_ns);
    return true;
}

/* ---- the counters ---- */

bool demo_counters_compute(struct demo_counters *t, const struct demo_scenario *s, const struct demo_record *record)
{
    *t = (struct demo_counters){.intervals = (size_t)((s->length_ns + DEMO_GRACE_NS) / DEMO_INTERVAL_NS) + 1};
    t->interval = calloc(t->intervals, sizeof *t->interval);
    if (t->interval == NULL)
        goto nomem;
    for (size_t i = 0; i < record->calls; i++)
        count_call(t, s, &record->call[i]);
    for (size_t i = 0; i < record->requests; i++)
        count_request(t, &record->request[i]);
    find_peak(t);
    uint64_t succeeded = t->ended[BIDE_REASON_SUCCEEDED];
    t->wasted = t->served > succeeded ? t->served - succeeded : 0;
    t->recovery_ns = find_recovery(t, s);
    if (find_latencies(t, record))
        return true;
nomem:
    demo_counters_free(t);
    return false;
}

void demo_counters_free(struct demo_counters *t)
{
    if (t == NULL)
        return;
    free(t->interval);
    *t = (struct demo_counters){0};
}

void demo_record_free(struct demo_record *record)
{
    if (record == NULL)
        return;
    free(record->call);
    free(record->request);
    *record = (struct demo_record){0};
}

double demo_amplification(const struct demo_counters *t)
{
    return t->first_attempts > 0 ? (double)t->requests / (double)t->first_attempts : 1;
}

double demo_share(uint64_t part, uint64_t whole)
{
    return whole > 0 ? 100.0 * (double)part / (double)whole : 0;
}

uint64_t demo_gave_up(const struct demo_counters *t)
{
    return t->calls - t->ended[BIDE_REASON_SUCCEEDED] - t->ended[BIDE_REASON_CANCELLED];
}

uint64_t demo_refused(const struct demo_counters *t)
{
    return t->ended[BIDE_REASON_BREAKER_OPEN] + t->ended[BIDE_REASON_BREAKER_PROBING] +
           t->ended[BIDE_REASON_BREAKER_RAMPING];
}
