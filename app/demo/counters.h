/* tally.h - what a plan's run came to: from the server's own record of requests and the callers' record of calls.
 *
 * What the server felt is counted from what the server saw, never from what the callers believe. Time since the start
 * is cut into buckets of DEMO_BUCKET_NS.
 *
 * Recovery. The callers are served again from the first bucket boundary r, not before the outage's end, such that from
 * r on, whatever stretch of DEMO_STRETCH buckets (one second) one looks at until the last call has begun, at least
 * DEMO_SERVED_PERCENT % of the calls that began within it succeeded within DEMO_IN_TIME_NS of their begin. Recovery
 * time is r less the end of the outage. A server that comes back and falls again has not recovered. */
#ifndef DEMO_COUNTERS_H
#define DEMO_COUNTERS_H

#include <bide/verdict.h>

#include "scenario.h"

#define DEMO_INTERVAL_NS    (100 * BIDE_MS)
#define DEMO_WINDOW         10u
#define DEMO_SERVED_PERCENT 90u
#define DEMO_IN_TIME_NS     BIDE_S
#define DEMO_NOT_RECOVERED  INT64_C(-1)

/* A call, as its caller saw it. Times are since the start. */
struct demo_call {
    int64_t begin_ns, end_ns;
    uint32_t attempts;
    enum bide_reason reason; /* BIDE_REASON_SUCCEEDED, or why it gave up; CANCELLED: it was still trying at the end */
};

/* A request, as the server saw it. */
struct demo_request {
    int64_t at_ns, end_ns;
    int status;    /* of the answer that was sent in whole; else 0 */
    bool is_first; /* a first try, by its Bide-Attempt */
};

struct demo_record {
    struct demo_call *call;
    size_t calls;
    struct demo_request *request;
    size_t requests;
};

struct demo_interval {
    uint32_t began;     /* calls */
    uint32_t succeeded; /* calls that ended in success */
    uint32_t requests;  /* that came to the server */
    uint32_t served;    /* answers with 200 that the server sent, also to callers that had left */
    uint32_t in_time;   /* of the calls that began here, those that succeeded within DEMO_IN_TIME_NS */
};

struct demo_counters {
    struct demo_interval *interval; /* owned */
    size_t intervals;
    uint64_t calls, attempts; /* as the callers count */
    uint64_t ended[BIDE_REASON_COUNT];
    uint64_t requests, first_attempts; /* as the server counts */
    uint64_t served;
    uint64_t wasted;                /* served, but the caller had gone */
    uint32_t peak;                  /* most requests of one bucket ... */
    size_t peak_interval;           /* ... and which */
    uint64_t after_calls, after_ok; /* calls that began after the outage, and those of them that succeeded */
    int64_t recovery_ns;            /* or DEMO_NOT_RECOVERED */
    int64_t median_ns, p99_ns;      /* from a call's begin to its success; 0: none succeeded */
};

/* False: no memory; the tally is then empty. */
bool demo_counters(struct demo_counters *counters, const struct demo_scenario *scenario,
                   const struct demo_record *record);
void demo_counters_free(struct demo_counters *counters); /* accepts NULL and an empty one */

void demo_record_free(struct demo_record *record); /* likewise */

double demo_amplification(const struct demo_counters *counters); /* requests per first try; 1 if there was none */
double demo_share(uint64_t part, uint64_t whole);                /* in percent; 0 of nothing */

/* How many calls gave up, and how many of those because the breaker let them not even try. */
uint64_t demo_gave_up(const struct demo_counters *counters);
uint64_t demo_refused(const struct demo_counters *counters);

#endif
