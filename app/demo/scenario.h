/* scenario.h - the scenario of a demo: when calls start, and the server they meet. Everything is fixed before the
 * start.
 *
 * The server has a capacity and a queue, as most servers have. Its capacity is a quarter above the rate of calls, and
 * its queue holds more than callers wait for: DEMO_QUEUE_NS of work. During the outage it returns 503 to every request.
 * Whether it recovers afterwards depends on the callers: if their retries filled the queue, requests wait longer than
 * the attempt timeout, the server works for callers that have left, and those callers retry (a metastable failure).
 *
 * Calls arrive independently, as from many users: call number i starts at a random time, drawn from the seed, in the
 * i-th slot of 1/rate. Both clients make the same calls at the same times, each to its own server with the same
 * script. */
#ifndef DEMO_SCENARIO_H
#define DEMO_SCENARIO_H

#include <bide/policy.h>
#include <bide/target.h>

#define DEMO_RATE          200u
#define DEMO_RATE_MIN      10u
#define DEMO_RATE_MAX      1000u
#define DEMO_LENGTH_NS     (18 * BIDE_S)
#define DEMO_LENGTH_MIN_NS (2 * BIDE_S)
#define DEMO_LENGTH_MAX_NS (300 * BIDE_S)
#define DEMO_SERVICE_NS    (50 * BIDE_MS) /* of a request, approximately */
#define DEMO_QUEUE_NS      (4 * BIDE_S)   /* of work in a full queue; further requests get 503 */
#define DEMO_GRACE_NS      (2 * BIDE_S)   /* after the last call started, for calls in progress */
#define DEMO_PATH          "/work"

struct demo_scenario {
    uint64_t seed;
    uint32_t rate;     /* calls per second */
    int64_t length_ns; /* duration of arrivals */
    int64_t down_ns;   /* start of the outage ... */
    int64_t up_ns;     /* ... and its end, both since the start */
    uint32_t capacity; /* served at once; this and the next two are set by demo_scenario_complete */
    uint32_t queue;
    int64_t service_ns;
};

/* Sets the default outage: from 5/18 to 9/18 of the length, in tenths of a second. */
void demo_scenario_outage(struct demo_scenario *scenario);

/* Computes the server for the rate. Returns NULL, or a description of a valid setting. */
const char *demo_scenario_complete(struct demo_scenario *scenario);

/* Returns the number of descriptors that both sides together may need. */
uint64_t demo_scenario_descriptors(const struct demo_scenario *scenario);

uint32_t demo_call_count(const struct demo_scenario *scenario);
int64_t demo_call_start_ns(const struct demo_scenario *scenario, uint32_t number); /* since the start */
uint64_t demo_call_seed(const struct demo_scenario *scenario, uint32_t number);
uint32_t demo_capacity_per_s(const struct demo_scenario *scenario); /* the server's capacity */

/* Writes the server's script. Returns text. */
#define DEMO_SCRIPT_SIZE 160u
const char *demo_script(char text[DEMO_SCRIPT_SIZE], const struct demo_scenario *scenario);

/* How a side makes its calls: a policy, and a target that all its calls share. */
struct demo_client {
    const char *name;
    struct bide_policy policy;
    struct bide_target_config target;
    const struct bide_rules *status_rules; /* NULL: the default table */
};

/* Sets up the usual retry loop: a fixed number of attempts with a fixed wait between them, and no jitter, budget,
 * circuit breaker or deadline; server hints are ignored. The attempt timeout is that of the other policy, so that the
 * two differ only in how they retry. */
#define DEMO_NAIVE_ATTEMPTS 10u
#define DEMO_NAIVE_WAIT_NS  (500 * BIDE_MS)
void demo_client_init_naive(struct demo_client *client, const struct bide_policy *other);

/* Writes "3 attempts, full jitter 100ms..2s, 2s an attempt, budget, breaker". Returns text. */
#define DEMO_SUMMARY_SIZE 256u
const char *demo_client_summary(char text[DEMO_SUMMARY_SIZE], const struct demo_client *client);

#endif
