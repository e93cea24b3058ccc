/* scenario.h - what happens in a demo, settled before it begins: which calls come when, and what server they meet.
 *
 * The server has a capacity and a queue, as most have. It can do a quarter more than is asked of it, and its queue
 * holds more than callers have patience for: DEMO_QUEUE_NS of work. For some seconds it is down and answers 503 to
 * everything. Whether it comes back depends on what the callers did meanwhile: a queue filled by their retries stays
 * longer than an attempt may take, and then the server works for callers that have left, and those come again.
 *
 * Calls come by themselves, as those of many users do: call number i begins at a moment in the i-th slot of 1/rate,
 * drawn from the seed. Every plan meets the same calls at the same moments, and a server of its own by the same
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
#define DEMO_SERVICE_NS    (50 * BIDE_MS) /* of one request, about */
#define DEMO_QUEUE_NS      (4 * BIDE_S)   /* of work waits at most; what comes then gets 503 */
#define DEMO_GRACE_NS      (2 * BIDE_S)   /* after the last call began, for those under way */
#define DEMO_PATH          "/work"

struct demo_scenario {
    uint64_t seed;
    uint32_t rate;     /* calls a second */
    int64_t length_ns; /* they come for so long */
    int64_t down_ns;   /* the outage begins ... */
    int64_t up_ns;     /* ... and ends, both since the start */
    uint32_t capacity; /* served at once; this and the next two are what demo_scenario_settle finds */
    uint32_t queue;
    int64_t service_ns;
};

/* The outage takes the same place in every length: from 5/18 to 9/18 of it, in tenths of a second. */
void demo_scenario_outage(struct demo_scenario *scenario);

/* Finds the server that fits the rate. NULL, or what is wrong and what would be right. */
const char *demo_scenario_complete(struct demo_scenario *scenario);

/* Descriptors that both plans together may need. */
uint64_t demo_scenario_descriptors(const struct demo_scenario *scenario);

uint32_t demo_call_count(const struct demo_scenario *scenario);
int64_t demo_call_start_ns(const struct demo_scenario *scenario, uint32_t number); /* when it begins, since the start */
uint64_t demo_call_seed(const struct demo_scenario *scenario, uint32_t number);
uint32_t demo_capacity_per_s(const struct demo_scenario *scenario); /* requests that the server can do */

/* The server's script. Returns text. */
#define DEMO_SCRIPT_SIZE 160u
const char *demo_script(char text[DEMO_SCRIPT_SIZE], const struct demo_scenario *scenario);

/* How the calls are made: one policy, and one target that all calls share. */
struct demo_client {
    const char *name;
    struct bide_policy policy;
    struct bide_target_config target;
    const struct bide_rules *status_rules; /* NULL: the table's */
};

/* The loop that people write: so many attempts, so long between them, and nothing else: no jitter, no budget, no
 * breaker, no deadline; what the server asks is not heard. An attempt may take as long as in the other policy, so that
 * the two differ in how they retry and in nothing else. */
#define DEMO_NAIVE_ATTEMPTS 10u
#define DEMO_NAIVE_WAIT_NS  (500 * BIDE_MS)
void demo_client_init_naive(struct demo_client *client, const struct bide_policy *other);

/* "3 attempts, full jitter 100ms..2s, 2s an attempt, budget, breaker". Returns text. */
#define DEMO_SUMMARY_SIZE 256u
const char *demo_client_summary(char text[DEMO_SUMMARY_SIZE], const struct demo_client *client);

#endif
