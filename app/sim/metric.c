/* metric.c - every metric of a result under a stable name, with its unit, one line of help, and its value.
 *
 * One table serves the terminal, CSV, JSON, --expect and the documentation. Each reason that ends a call has a give-up
 * metric, generated from the engine's list of reasons; the first reasons of that list, up to success, end no call. */
#include "result.h"

#include "conf/suggest.h"
#include "text/slice.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* ---- values ---- */

struct metric_row {
    struct sim_metric metric;
    double (*value)(const struct sim_result *result, size_t argument);
    size_t argument; /* an offset into the result, an index, or millionths: as `value` takes it */
};

static double metric_ratio(uint64_t part, uint64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : NAN;
}

static double ns_to_s(int64_t ns)
{
    return (double)ns / (double)BIDE_S;
}

static double ns_to_ms(int64_t ns)
{
    return (double)ns / (double)BIDE_MS;
}

static double result_count(const struct sim_result *r, size_t offset)
{
    return (double)*(const uint64_t *)(const void *)((const char *)r + offset);
}

static double result_rate(const struct sim_result *r, size_t offset)
{
    return *(const double *)(const void *)((const char *)r + offset);
}

/* Arrivals per call of a client: a first attempt that a gate refused counts as a call, but not as an arrival. */
static double amplification(const struct sim_result *r, size_t argument)
{
    (void)argument;
    return metric_ratio(r->arrivals, r->calls);
}

static double success(const struct sim_result *r, size_t argument)
{
    (void)argument;
    return metric_ratio(r->succeeded, r->calls);
}

static double error(const struct sim_result *r, size_t argument)
{
    (void)argument;
    return metric_ratio(r->gave_up, r->calls);
}

static double users_success(const struct sim_result *r, size_t argument)
{
    (void)argument;
    return metric_ratio(r->users_succeeded, r->users);
}

static double hedge_share(const struct sim_result *r, size_t argument)
{
    (void)argument;
    return metric_ratio(r->hedges, r->calls);
}

static double recovers(const struct sim_result *r, size_t argument)
{
    (void)argument;
    return !r->disturbed ? NAN : r->recovers ? 1 : 0;
}

static double recover_s(const struct sim_result *r, size_t argument)
{
    (void)argument;
    return r->disturbed && r->recovers ? ns_to_s(r->recover_ns) : NAN;
}

static double duration_s(const struct sim_result *r, size_t argument)
{
    (void)argument;
    return ns_to_s(r->ended_ns);
}

static double result_latency_mean(const struct sim_result *r, size_t argument)
{
    (void)argument;
    return r->latency.total > 0 ? ns_to_ms(sim_histogram_mean(&r->latency)) : NAN;
}

static double result_latency(const struct sim_result *r, size_t ppm)
{
    return r->latency.total > 0 ? ns_to_ms(sim_histogram_quantile(&r->latency, (uint32_t)ppm)) : NAN;
}

static const struct sim_peak *result_peak(const struct sim_result *r, size_t offset)
{
    return (const struct sim_peak *)(const void *)((const char *)r + offset);
}

static double result_peak_count(const struct sim_result *r, size_t offset)
{
    return (double)result_peak(r, offset)->max;
}

static double result_peak_ms(const struct sim_result *r, size_t offset)
{
    return result_peak(r, offset)->max > 0 ? ns_to_ms(result_peak(r, offset)->at_ns) : NAN;
}

static double result_budget(const struct sim_result *r, size_t offset)
{
    int64_t milli = *(const int64_t *)(const void *)((const char *)r + offset);
    return milli >= 0 ? (double)milli / 1000 : NAN;
}

static double result_tokens(const struct sim_result *r, size_t offset)
{
    return (double)*(const int64_t *)(const void *)((const char *)r + offset) / 1000;
}

static double fleet_disconnected_s(const struct sim_result *r, size_t argument)
{
    (void)argument;
    return ns_to_s(r->fleet_disconnected_ns);
}

static double gave_up_for(const struct sim_result *r, size_t reason)
{
    return (double)r->reason[reason];
}

static double refused_by(const struct sim_result *r, size_t gate)
{
    return (double)r->refused_by[gate];
}

/* ---- the table ---- */

#define FIELD(name) offsetof(struct sim_result, name)
#define COUNT(name, about)                                                                                             \
    {                                                                                                                  \
        {#name, "", about, false}, result_count, FIELD(name)                                                           \
    }
#define OTHER(name, unit, about)                                                                                       \
    {                                                                                                                  \
        {#name, unit, about, false}, name, 0                                                                           \
    }
#define LATENCY(name, ppm, about)                                                                                      \
    {                                                                                                                  \
        {"latency_" #name "_ms", "ms", about, false}, result_latency, ppm                                              \
    }
#define REFUSED(index, gate, what)                                                                                     \
    {                                                                                                                  \
        {"refused_by_" gate, "", "attempts refused by the gate: " what, false}, refused_by, index                      \
    }

#define PEAK(what, index, width, about)                                                                                \
    {{"peak_" #what "_" width, "", "most " about " in a bin of " width, false},                                        \
     result_peak_count,                                                                                                \
     FIELD(peak[index].what)},                                                                                         \
    {                                                                                                                  \
        {"peak_" #what "_" width "_at_ms", "ms", "when that bin of " width " begins", false}, result_peak_ms,          \
            FIELD(peak[index].what)                                                                                    \
    }
#define PEAKS(what, about)                                                                                             \
    PEAK(what, 0, "1ms", about), PEAK(what, 1, "10ms", about), PEAK(what, 2, "50ms", about), PEAK(what, 3, "1s", about)

static const struct metric_row fixed_rows[] = {
    COUNT(calls, "calls begun by clients"),
    COUNT(attempts, "attempts started by clients: first attempts, retries and hedges"),
    COUNT(retries, "retries started by clients"),
    COUNT(hedges, "hedges started by clients"),
    OTHER(hedge_share, "", "hedges per call"),
    OTHER(amplification, "",
          "arrivals at the last service per call of the clients; below 1 where breakers refuse calls"),
    OTHER(success, "", "share of calls that succeeded"),
    OTHER(error, "", "share of calls that gave up"),
    {{"goodput", "/s", "successful calls per second in the last quarter of the calls' time", false},
     result_rate,
     FIELD(goodput)},
    {{"attempt_rate", "/s", "arrivals per second in the last quarter of the calls' time", false},
     result_rate,
     FIELD(attempt_rate)},
    COUNT(arrivals, "attempts that reached the last service"),
    COUNT(first_arrivals, "arrivals that are first attempts"),
    COUNT(served, "attempts that the last service answered successfully"),
    COUNT(failed, "attempts that the last service served and failed"),
    COUNT(refused, "attempts that it rejected or left without a response: queue full, or an outage"),
    COUNT(dropped, "attempts that it dropped because they were past their deadline"),
    COUNT(wasted, "attempts that it served for callers that no longer waited"),
    COUNT(lost, "messages that the network lost"),
    {{"recovers", "", "over 10 s, success is at least 90 % of that before the disturbance; none without one", true},
     recovers,
     0},
    OTHER(recover_s, "s", "from the end of the disturbance until recovery; none if it never recovers"),
    OTHER(duration_s, "s", "time of the last event"),
    {{"latency_mean_ms", "ms", "mean latency of users' calls that succeeded, waits included", false},
     result_latency_mean,
     0},
    LATENCY(p50, 500000, "half of the users' calls that succeeded took no longer"),
    LATENCY(p90, 900000, "90 % of the users' calls that succeeded took no longer"),
    LATENCY(p99, 990000, "99 % of the users' calls that succeeded took no longer"),
    LATENCY(p999, 999000, "99.9 % of the users' calls that succeeded took no longer"),
    LATENCY(max, 1000000, "the longest of the users' calls that succeeded"),
    PEAKS(arrivals, "arrivals"),
    PEAKS(retries, "arrivals that are not first attempts"),
    PEAKS(served, "attempts served"),
    PEAKS(probes, "probes of half-open breakers"),
    COUNT(users, "users' calls: a fan-out counts once; else the same as calls"),
    OTHER(users_success, "", "share of users' calls without a failed call"),
    COUNT(openings, "openings of the clients' breakers"),
    COUNT(reopenings, "openings by a failed probe"),
    COUNT(probes, "attempts let through by half-open breakers"),
    {{"budget_low", "", "lowest level of the retry budget, mean over targets; none without a budget", false},
     result_budget,
     FIELD(budget_low_milli)},
    {{"budget_end", "", "level of the retry budget at the end", false}, result_budget, FIELD(budget_end_milli)},
    REFUSED(0, "key", "a key is required"),
    REFUSED(1, "repeat", "not safe to repeat"),
    REFUSED(2, "hint", "the server's hint"),
    REFUSED(3, "layer", "the layer above retries"),
    REFUSED(4, "throttle", "adaptive throttling"),
    REFUSED(5, "in_flight", "the in-flight limit"),
    REFUSED(6, "breaker", "the breaker"),
    REFUSED(7, "key_limit", "retries of one key"),
    REFUSED(8, "budget", "the retry budget"),
    COUNT(fleet_exchanges, "exchanges with the fleet's bucket"),
    {{"peak_fleet_exchanges_1s", "", "most exchanges in a second", false}, result_count, FIELD(fleet_peak)},
    COUNT(fleet_lost, "exchanges without a reply in time"),
    {{"fleet_leased", "", "tokens granted by the bucket, minus those returned", false},
     result_tokens,
     FIELD(fleet_leased_milli)},
    {{"fleet_earned", "", "tokens earned by calls and reported to the bucket", false},
     result_tokens,
     FIELD(fleet_earned_milli)},
    OTHER(fleet_disconnected_s, "s", "time without a lease, summed over members"),
    COUNT(events, "events of the simulation"),
    COUNT(unfinished, "calls still in progress when the run stopped"),
    COUNT(gave_up, "calls that gave up, for any reason"),
};

static const struct metric_row reason_rows[] = {
#define REASON_ROW(NAME, label, sentence)                                                                              \
    {{"gave_up_" label, "", "calls that gave up: " sentence, false}, gave_up_for, BIDE_REASON_##NAME},
    BIDE_REASON_LIST(REASON_ROW)
#undef REASON_ROW
};

#define FIXED_ROWS  (sizeof fixed_rows / sizeof *fixed_rows)
#define REASON_ROWS (sizeof reason_rows / sizeof *reason_rows)
#define FIRST_END   ((size_t)BIDE_REASON_SUCCEEDED + 1) /* the reasons before this end no call in failure */

static const struct metric_row *metric_row_at(size_t i)
{
    if (i < FIXED_ROWS)
        return &fixed_rows[i];
    return i - FIXED_ROWS < REASON_ROWS - FIRST_END ? &reason_rows[i - FIXED_ROWS + FIRST_END] : NULL;
}

const struct sim_metric *sim_metric(size_t i)
{
    const struct metric_row *metric_row = metric_row_at(i);
    return metric_row != NULL ? &metric_row->metric : NULL;
}

size_t sim_metric_find(const char *name, size_t length)
{
    const struct sim_metric *metric;
    for (size_t i = 0; (metric = sim_metric(i)) != NULL; i++)
        if (text_equals((struct bide_text){name, length}, metric->name))
            return i;
    return SIZE_MAX;
}

const char *sim_metric_suggest(const char *name, size_t length)
{
    struct conf_suggestion suggestion = {.word = name, .length = length};
    const struct sim_metric *metric;
    for (size_t i = 0; (metric = sim_metric(i)) != NULL; i++)
        conf_suggestion_consider(&suggestion, metric->name, metric->name);
    return suggestion.found;
}

double sim_metric_value(const struct sim_result *result, size_t metric)
{
    const struct metric_row *metric_row = metric_row_at(metric);
    return metric_row != NULL ? metric_row->value(result, metric_row->argument) : NAN;
}

/* ---- the result ---- */

void sim_result_free(struct sim_result *result)
{
    free(result->point);
    result->point = NULL;
    result->points = 0;
}
