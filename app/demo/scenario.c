/* scenario.c - computes the calls, the server and the naive client; no I/O. */
#include "scenario.h"

#include "core/random.h"
#include "text/unit.h"

#include <inttypes.h>
#include <stdio.h>

#define CAPACITY_PERCENT 125u /* server capacity relative to the rate */
#define OWN_DESCRIPTORS  64u
#define SOCKET_ENDS      2u /* the server is in the same process */
#define SIDES            2u

void demo_scenario_outage(struct demo_scenario *s)
{
    const int64_t step_ns = 100 * BIDE_MS;
    s->down_ns = s->length_ns * 5 / 18 / step_ns * step_ns;
    s->up_ns = s->length_ns / 2 / step_ns * step_ns;
}

static const char *scenario_error(const struct demo_scenario *s)
{
    if (s->rate < DEMO_RATE_MIN || s->rate > DEMO_RATE_MAX)
        return "a rate from 10 to 1000 calls a second";
    if (s->length_ns < DEMO_LENGTH_MIN_NS || s->length_ns > DEMO_LENGTH_MAX_NS)
        return "a length from 2s to 300s";
    if (s->down_ns < 0 || s->down_ns >= s->up_ns)
        return "an outage that ends after its begin, such as 5s..9s";
    if (s->up_ns > s->length_ns - BIDE_S)
        return "an outage that ends at least a second before the last call";
    return NULL;
}

const char *demo_scenario_complete(struct demo_scenario *s)
{
    const char *wrong = scenario_error(s);
    if (wrong != NULL)
        return wrong;
    uint64_t per_s = (uint64_t)s->rate * CAPACITY_PERCENT / 100;
    s->capacity = (uint32_t)((per_s * (uint64_t)DEMO_SERVICE_NS + BIDE_S - 1) / BIDE_S);
    s->service_ns = (int64_t)((uint64_t)s->capacity * 1000 / per_s) * BIDE_MS; /* chaos takes whole milliseconds */
    s->queue = (uint32_t)(demo_capacity_per_s(s) * (uint64_t)DEMO_QUEUE_NS / BIDE_S);
    return NULL;
}

uint64_t demo_scenario_descriptors(const struct demo_scenario *s)
{
    return OWN_DESCRIPTORS + (uint64_t)(s->capacity + s->queue) * SOCKET_ENDS * SIDES;
}

uint32_t demo_call_count(const struct demo_scenario *s)
{
    return (uint32_t)(s->length_ns / BIDE_MS * s->rate / 1000);
}

uint64_t demo_call_seed(const struct demo_scenario *s, uint32_t number)
{
    uint64_t seed = core_mix(s->seed + (number + UINT64_C(1)) * CORE_GOLDEN);
    return seed != 0 ? seed : 1; /* 0 means "draw a seed" */
}

int64_t demo_call_start_ns(const struct demo_scenario *s, uint32_t number)
{
    uint64_t within_ns = core_bits_to_range(core_mix(demo_call_seed(s, number)), BIDE_S - 1);
    return (int64_t)((number * (uint64_t)BIDE_S + within_ns) / s->rate);
}

uint32_t demo_capacity_per_s(const struct demo_scenario *s)
{
    return (uint32_t)(s->capacity * BIDE_S / s->service_ns);
}

const char *demo_script(char text[DEMO_SCRIPT_SIZE], const struct demo_scenario *s)
{
    snprintf(text, DEMO_SCRIPT_SIZE,
             DEMO_PATH " outage=%" PRId64 "ms..%" PRId64 "ms:503 capacity=%" PRIu32 " queue=%" PRIu32
                       " service=%" PRId64 "ms",
             s->down_ns / BIDE_MS, s->up_ns / BIDE_MS, s->capacity, s->queue, s->service_ns / BIDE_MS);
    return text;
}

void demo_client_init_naive(struct demo_client *client, const struct bide_policy *other)
{
    *client = (struct demo_client){.name = "naive loop"};
    bide_policy_init(&client->policy, BIDE_PRESET_CURL); /* without budget, breaker and layers */
    bide_target_config_init(&client->target, BIDE_PRESET_CURL);
    client->policy.attempts_max = DEMO_NAIVE_ATTEMPTS;
    client->policy.backoff = BIDE_BACKOFF_FIXED;
    client->policy.base_ns = client->policy.cap_ns = DEMO_NAIVE_WAIT_NS;
    client->policy.jitter = BIDE_JITTER_NONE;
    client->policy.hint_rule = BIDE_HINT_RULE_IGNORE;
    client->policy.call_timeout_ns = BIDE_NEVER;
    client->policy.attempt_timeout_ns = other->attempt_timeout_ns;
    client->policy.connect_timeout_ns = other->connect_timeout_ns;
}

/* ---- summary ---- */

static const char *const jitter_names[] = {
    [BIDE_JITTER_FULL] = "full jitter",
    [BIDE_JITTER_EQUAL] = "equal jitter",
    [BIDE_JITTER_DECORRELATED] = "decorrelated jitter",
    [BIDE_JITTER_DECORRELATED_AWS] = "decorrelated jitter",
    [BIDE_JITTER_PROPORTIONAL] = "proportional jitter",
    [BIDE_JITTER_ADDITIVE] = "added jitter",
    [BIDE_JITTER_NONE] = "no jitter",
};

static void wait_summary(char text[DEMO_SUMMARY_SIZE], const struct bide_policy *p)
{
    char base[TEXT_VALUE_SIZE], cap[TEXT_VALUE_SIZE];
    text_duration_format(base, p->base_ns);
    text_duration_format(cap, p->cap_ns);
    if (p->backoff == BIDE_BACKOFF_NONE)
        snprintf(text, DEMO_SUMMARY_SIZE, "at once");
    else if (p->backoff == BIDE_BACKOFF_FIXED || p->base_ns == p->cap_ns)
        snprintf(text, DEMO_SUMMARY_SIZE, "%s apart, %s", base, jitter_names[p->jitter]);
    else
        snprintf(text, DEMO_SUMMARY_SIZE, "%s %s..%s", jitter_names[p->jitter], base, cap);
}

const char *demo_client_summary(char text[DEMO_SUMMARY_SIZE], const struct demo_client *client)
{
    const struct bide_policy *p = &client->policy;
    char waits[DEMO_SUMMARY_SIZE], limit[TEXT_VALUE_SIZE];
    wait_summary(waits, p);
    snprintf(text, DEMO_SUMMARY_SIZE, "%" PRIu32 " attempts, %.100s, %s an attempt, %s, %s", p->attempts_max, waits,
             p->attempt_timeout_ns == BIDE_NEVER ? "any time" : text_duration_format(limit, p->attempt_timeout_ns),
             client->target.budget.kind == BIDE_BUDGET_NONE ? "no budget" : "budget",
             client->target.breaker.kind == BIDE_BREAKER_OFF ? "no breaker" : "breaker");
    return text;
}
