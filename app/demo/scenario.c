/* scenario.c - the calls, the server and the naive plan, by arithmetic alone. */
#include "scenario.h"

#include "conf/unit.h"
#include "core/random.h"

#include <inttypes.h>
#include <stdio.h>

#define SPARE_PERCENT    125u /* what the server can do, of what is asked of it */
#define OWN_DESCRIPTORS  64u
#define ENDS_OF_A_SOCKET 2u /* the server runs in this process too */
#define PLANS            2u

void demo_scenario_outage(struct demo_scenario *s)
{
    const int64_t step_ns = 100 * BIDE_MS;
    s->down_ns = s->length_ns * 5 / 18 / step_ns * step_ns;
    s->up_ns = s->length_ns / 2 / step_ns * step_ns;
}

static const char *complaint(const struct demo_scenario *s)
{
    if (s->rate < DEMO_RATE_MIN || s->rate > DEMO_RATE_MAX)
        return "a rate from 10 to 1000 calls a second";
    if (s->length_ns < DEMO_LENGTH_MIN_NS || s->length_ns > DEMO_LENGTH_MAX_NS)
        return "a length from 2s to 300s";
    if (s->down_ns < 0 || s->down_ns >= s->up_ns)
        return "an outage that ends after it began, such as 5s..9s";
    if (s->up_ns > s->length_ns - BIDE_S)
        return "an outage that ends a second before the calls do, or earlier";
    return NULL;
}

const char *demo_scenario_settle(struct demo_scenario *s)
{
    const char *wrong = complaint(s);
    if (wrong != NULL)
        return wrong;
    uint64_t per_s = (uint64_t)s->rate * SPARE_PERCENT / 100;
    s->capacity = (uint32_t)((per_s * (uint64_t)DEMO_SERVICE_NS + BIDE_S - 1) / BIDE_S);
    s->service_ns = (int64_t)((uint64_t)s->capacity * 1000 / per_s) * BIDE_MS; /* chaos keeps whole milliseconds */
    s->queue = (uint32_t)(demo_capacity_per_s(s) * (uint64_t)DEMO_QUEUE_NS / BIDE_S);
    return NULL;
}

uint64_t demo_scenario_descriptors(const struct demo_scenario *s)
{
    return OWN_DESCRIPTORS + (uint64_t)(s->capacity + s->queue) * ENDS_OF_A_SOCKET * PLANS;
}

uint32_t demo_calls(const struct demo_scenario *s)
{
    return (uint32_t)(s->length_ns / BIDE_MS * s->rate / 1000);
}

uint64_t demo_call_seed(const struct demo_scenario *s, uint32_t number)
{
    uint64_t seed = core_mix(s->seed + (number + UINT64_C(1)) * CORE_GOLDEN);
    return seed != 0 ? seed : 1; /* 0 would be drawn anew */
}

int64_t demo_call_ns(const struct demo_scenario *s, uint32_t number)
{
    uint64_t within_ns = core_mix(demo_call_seed(s, number)) % BIDE_S;
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

void demo_naive(struct demo_plan *plan, const struct bide_policy *other)
{
    *plan = (struct demo_plan){.name = "naive loop"};
    bide_policy_init(&plan->policy, BIDE_PRESET_CURL); /* knows no budget, no breaker, no layers */
    bide_target_config_init(&plan->target, BIDE_PRESET_CURL);
    plan->policy.attempts_max = DEMO_NAIVE_ATTEMPTS;
    plan->policy.backoff = BIDE_BACKOFF_FIXED;
    plan->policy.base_ns = plan->policy.cap_ns = DEMO_NAIVE_WAIT_NS;
    plan->policy.jitter = BIDE_JITTER_NONE;
    plan->policy.hint_rule = BIDE_HINT_RULE_IGNORE;
    plan->policy.deadline_ns = BIDE_NEVER;
    plan->policy.attempt_timeout_ns = other->attempt_timeout_ns;
    plan->policy.connect_timeout_ns = other->connect_timeout_ns;
}

/* ---- in words ---- */

static const char *const jitter_words[] = {
    [BIDE_JITTER_FULL] = "full jitter",
    [BIDE_JITTER_EQUAL] = "equal jitter",
    [BIDE_JITTER_DECORRELATED] = "decorrelated jitter",
    [BIDE_JITTER_DECORRELATED_AWS] = "decorrelated jitter",
    [BIDE_JITTER_PROPORTIONAL] = "proportional jitter",
    [BIDE_JITTER_ADDITIVE] = "added jitter",
    [BIDE_JITTER_NONE] = "no jitter",
};

static void wait_words(char text[DEMO_WORDS_SIZE], const struct bide_policy *p)
{
    char base[CONF_VALUE_SIZE], cap[CONF_VALUE_SIZE];
    conf_duration_format(base, p->base_ns);
    conf_duration_format(cap, p->cap_ns);
    if (p->backoff == BIDE_BACKOFF_NONE)
        snprintf(text, DEMO_WORDS_SIZE, "at once");
    else if (p->backoff == BIDE_BACKOFF_FIXED || p->base_ns == p->cap_ns)
        snprintf(text, DEMO_WORDS_SIZE, "%s apart, %s", base, jitter_words[p->jitter]);
    else
        snprintf(text, DEMO_WORDS_SIZE, "%s %s..%s", jitter_words[p->jitter], base, cap);
}

const char *demo_plan_words(char text[DEMO_WORDS_SIZE], const struct demo_plan *plan)
{
    const struct bide_policy *p = &plan->policy;
    char waits[DEMO_WORDS_SIZE], limit[CONF_VALUE_SIZE];
    wait_words(waits, p);
    snprintf(text, DEMO_WORDS_SIZE, "%" PRIu32 " attempts, %.100s, %s an attempt, %s, %s", p->attempts_max, waits,
             p->attempt_timeout_ns == BIDE_NEVER ? "any time" : conf_duration_format(limit, p->attempt_timeout_ns),
             plan->target.budget.kind == BIDE_BUDGET_NONE ? "no budget" : "budget",
             plan->target.breaker.kind == BIDE_BREAKER_OFF ? "no breaker" : "breaker");
    return text;
}
