/* counters.h - metrics of a side's run, from the server's record of requests and the callers' record of calls.
 *
 * The server's load is counted from the requests that the server received, never from the callers' view. Time since the
 * start is divided into intervals of DEMO_INTERVAL_NS.
 *
 * Recovery. The callers are served again from the first interval boundary r, at or after the end of the outage, such
 * that in every window of DEMO_WINDOW intervals (one second) from r until the last call started, at least
 * DEMO_SERVED_PERCENT % of the calls that started in the window succeeded within DEMO_IN_TIME_NS. The recovery time is
 * r minus the end of the outage. A server that comes back and fails again has not recovered. */
#ifndef DEMO_COUNTERS_H
#define DEMO_COUNTERS_H

#include <bide/verdict.h>

#include "scenario.h"

#define DEMO_INTERVAL_NS    (100 * BIDE_MS)
#define DEMO_WINDOW         10u
#define DEMO_SERVED_PERCENT 90u
#define DEMO_IN_TIME_NS     BIDE_S
#define DEMO_NOT_RECOVERED  INT64_C(-1)

/* A call, from the caller's view. Times are since the start. */
struct demo_call {
    int64_t begin_ns, end_ns;
    uint32_t attempts;
    enum bide_reason reason; /* of its end; CANCELLED: still trying at the end */
};

/* A request, from the server's view. */
struct demo_request {
    int64_t at_ns, end_ns;
    int status;    /* of a completely sent response; else 0 */
    bool is_first; /* a first attempt, by its Bide-Attempt header */
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
    uint32_t requests;  /* received by the server */
    uint32_t served;    /* 200 responses sent, also to callers that had left */
    uint32_t in_time;   /* of the calls that started here, those that succeeded within DEMO_IN_TIME_NS */
};

struct demo_counters {
    struct demo_interval *interval; /* owned */
    size_t intervals;
    uint64_t calls, attempts; /* by the callers' count */
    uint64_t ended[BIDE_REASON_COUNT];
    uint64_t requests, first_attempts; /* by the server's count */
    uint64_t served;
    uint64_t wasted;                /* served after the caller had left */
    uint32_t peak;                  /* most requests in an interval ... */
    size_t peak_interval;           /* ... and its index */
    uint64_t after_calls, after_ok; /* calls that started after the outage, and those that succeeded */
    int64_t recovery_ns;            /* or DEMO_NOT_RECOVERED */
    int64_t median_ns, p99_ns;      /* from a call's start to its success; 0: none succeeded */
};

/* Returns false, with empty counters, if there is no memory. */
bool demo_counters_compute(struct demo_counters *counters, const struct demo_scenario *scenario,
                           const struct demo_record *record);
void demo_counters_free(struct demo_counters *counters); /* accepts NULL and empty counters */

void demo_record_free(struct demo_record *record); /* accepts NULL and an empty record */

double demo_amplification(const struct demo_counters *counters); /* requests per first attempt; 1 without requests */
double demo_share(uint64_t part, uint64_t whole);                /* in percent; 0 if `whole` is 0 */

/* Number of calls that gave up, and of those that the circuit breaker rejected. */
uint64_t demo_gave_up(const struct demo_counters *counters);
uint64_t demo_refused(const struct demo_counters *counters);

#endif
