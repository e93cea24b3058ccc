/* world.c - defaults of a world, and checks of a world as a whole.
 *
 * There are two kinds of faults: worlds that cannot be simulated (a peak that ends before it begins), and valid keys
 * that have no effect in this world (the rate of a herd). The cases of a scenario differ, so a key may matter in some
 * of them only; scenario_rows.c reports a key that has no effect in any row. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "scenario_key.h"

#define YEAR        (BIDE_MINUTE * 60 * 24 * 365)
#define POINTS_MAX  1000000
#define CALLS_MAX   4e9        /* limit on events of a run */
#define IDS_MAX     (1u << 30) /* callers or clients of a group: see the ids in state.h */
#define PROCESS_MAX (1u << 28)
#define TARGETS_MAX (1u << 30)

/* ---- defaults ---- */

void sim_world_init(struct sim_world *world)
{
    *world = (struct sim_world){.groups = 1, .services = 1};
    sim_element_init(SIM_PART_WORLD, world);
    sim_element_init(SIM_PART_NETWORK, world);
    sim_element_init(SIM_PART_FLEET, world);
    for (uint32_t i = 0; i < SIM_GROUPS_MAX; i++)
        sim_element_init(SIM_PART_CLIENTS, &world->clients[i]);
    for (uint32_t i = 0; i < SIM_SERVICES_MAX; i++)
        sim_element_init(SIM_PART_SERVICE, &world->service[i]);
    for (uint32_t i = 0; i < SIM_OUTAGES_MAX; i++)
        sim_element_init(SIM_PART_OUTAGE, &world->outage[i]);
}

void sim_world_prepare(struct sim_world *world)
{
    for (uint32_t i = 0; i < world->outages; i++) {
        struct sim_outage *outage = &world->outage[i];
        if (outage->fail_ppm == SIM_USUAL)
            outage->fail_ppm = outage->kind == SIM_OUTAGE_SLOW ? world->service[outage->service].fail_ppm : 1000000;
    }
}

/* ---- collecting faults ---- */

struct faults {
    const struct sim_world *world;
    struct sim_fault *fault;
    size_t count;
};

__attribute__((format(printf, 5, 6))) static void fault_add(struct faults *f, enum sim_part part, uint32_t element,
                                                            const char *key, const char *reason, ...)
{
    va_list values;
    if (f->count == SIM_FAULTS_MAX)
        return;
    struct sim_fault *fault = &f->fault[f->count++];
    *fault = (struct sim_fault){.field = sim_field_of(part, key), .element = element};
    va_start(values, reason);
    vsnprintf(fault->reason, sizeof fault->reason, reason, values);
    va_end(values);
}

struct text {
    char text[TEXT_VALUE_SIZE];
};

static struct text duration_text(int64_t ns)
{
    struct text text;
    text_duration_format(text.text, ns);
    return text;
}

/* ---- keys without effect ---- */

static bool is_herd(const struct sim_world *world, uint32_t i)
{
    return world->clients[i].arrival == SIM_HERD;
}

static bool is_closed(const struct sim_world *world, uint32_t i)
{
    return world->clients[i].arrival == SIM_CLOSED;
}

static bool is_steady(const struct sim_world *world, uint32_t i)
{
    return world->clients[i].arrival == SIM_POISSON || world->clients[i].arrival == SIM_UNIFORM;
}

static bool is_open_loop(const struct sim_world *world, uint32_t i)
{
    return is_steady(world, i) || world->clients[i].arrival == SIM_RAMP || world->clients[i].arrival == SIM_SPIKE;
}

static bool is_spike(const struct sim_world *world, uint32_t i)
{
    return world->clients[i].arrival == SIM_SPIKE;
}

static bool has_one_shard(const struct sim_world *world, uint32_t i)
{
    return world->service[world->clients[i].service].shards == 1;
}

static bool is_row(const struct sim_world *world, uint32_t i)
{
    return world->service[i].kind == SIM_ROW;
}

static bool is_unlimited(const struct sim_world *world, uint32_t i)
{
    return world->service[i].kind == SIM_UNLIMITED;
}

static bool queue_is_unbounded(const struct sim_world *world, uint32_t i)
{
    return world->service[i].kind == SIM_QUEUEING && world->service[i].queue_max == UINT32_MAX;
}

static bool queue_is_zero(const struct sim_world *world, uint32_t i)
{
    return world->service[i].kind == SIM_QUEUEING && world->service[i].queue_max == 0;
}

static bool sends_no_hint(const struct sim_world *world, uint32_t i)
{
    return world->service[i].hint == SIM_HINT_NO;
}

static bool is_never_cold(const struct sim_world *world, uint32_t i)
{
    return world->service[i].kind != SIM_ROW && world->service[i].cold_permille == 1000;
}

static bool has_no_cold_time(const struct sim_world *world, uint32_t i)
{
    return world->service[i].kind != SIM_ROW && world->service[i].cold_ns == 0;
}

static bool never_fails(const struct sim_world *world, uint32_t i)
{
    bool fails = world->service[i].fail_ppm > 0 || world->service[i].bad_shards > 0;
    for (uint32_t j = 0; j < world->outages; j++)
        fails = fails || (world->outage[j].service == i && world->outage[j].kind == SIM_OUTAGE_SLOW);
    return !fails;
}

static bool has_outage(const struct sim_world *world, uint32_t i)
{
    for (uint32_t j = 0; j < world->outages; j++)
        if (world->outage[j].service == i)
            return true;
    return false;
}

static bool stays_warm(const struct sim_world *world, uint32_t i)
{
    return world->service[i].kind != SIM_ROW && !world->service[i].cold_at_start && !has_outage(world, i);
}

/* Returns true if no response of this service can carry a hint: it neither fails nor rejects. */
static bool never_sends_hint(const struct sim_world *world, uint32_t i)
{
    const struct sim_service *s = &world->service[i];
    bool turns_away = s->kind == SIM_QUEUEING && s->queue_max != UINT32_MAX && s->full != SIM_REFUSE_SILENCE;
    return s->kind != SIM_ROW && never_fails(world, i) && !turns_away && !has_outage(world, i) && s->calls < 0;
}

static bool shards_are_alike(const struct sim_world *world, uint32_t i)
{
    for (uint32_t j = 0; j < world->groups; j++)
        if (world->clients[j].service == i && world->clients[j].scope == SIM_SCOPE_SHARD)
            return false;
    return world->service[i].kind != SIM_ROW && world->service[i].bad_shards == 0;
}

static bool calls_no_service(const struct sim_world *world, uint32_t i)
{
    return world->service[i].calls < 0;
}

static bool outage_is_not_slow(const struct sim_world *world, uint32_t i)
{
    return world->outage[i].kind != SIM_OUTAGE_SLOW;
}

static bool outage_is_silent(const struct sim_world *world, uint32_t i)
{
    return world->outage[i].kind == SIM_OUTAGE_SILENCE || world->outage[i].kind == SIM_OUTAGE_HOLD;
}

static bool fleet_is_unused(const struct sim_world *world, uint32_t i)
{
    (void)i;
    for (uint32_t j = 0; j < world->groups; j++)
        if (world->clients[j].fleet)
            return false;
    return true;
}

static bool fleet_is_never_down(const struct sim_world *world, uint32_t i)
{
    return !fleet_is_unused(world, i) && world->fleet.down_from_ns == BIDE_NEVER;
}

/* Keys that have no effect on an element for which the predicate is true. */
static const struct {
    enum sim_part part;
    bool (*applies)(const struct sim_world *world, uint32_t element);
    const char *keys, *reason;
} ignored_rules[] = {
    {SIM_PART_CLIENTS, is_herd, "rate peak_rate end_rate peak_from peak_until calls until think pace",
     "no effect: a herd of `count` callers begins at once, at `from`"},
    {SIM_PART_CLIENTS, is_closed, "rate peak_rate end_rate peak_from peak_until",
     "no effect: the rate of closed clients follows from `count` and `think`"},
    {SIM_PART_CLIENTS, is_steady, "peak_rate end_rate peak_from peak_until",
     "no effect: only a ramp or a spike has a peak (arrival = ramp or spike)"},
    {SIM_PART_CLIENTS, is_spike, "end_rate", "no effect: only a ramp has an end rate (arrival = ramp)"},
    {SIM_PART_CLIENTS, is_open_loop, "think pace", "no effect: only closed clients think (arrival = closed)"},
    {SIM_PART_CLIENTS, has_one_shard, "scope", "no effect: their service has a single shard"},
    {SIM_PART_FLEET, fleet_is_unused, "capacity refill_per_minute delay timeout down_from down_until",
     "no effect: no clients lease from the fleet (set clients.fleet = yes)"},
    {SIM_PART_FLEET, fleet_is_never_down, "down_until", "no effect without down_from"},
    {SIM_PART_SERVICE, is_row,
     "servers time per_in_flight order queue_max full drop_dead fail throttles shards bad_shards hint cold cold_time "
     "cold_at_start calls",
     "no effect: a row has no queue, no service time, and fails only by conflict"},
    {SIM_PART_SERVICE, is_unlimited, "servers order queue_max full drop_dead",
     "no effect: an unlimited service has no queue (set kind = queueing)"},
    {SIM_PART_SERVICE, queue_is_unbounded, "full", "no effect: the queue has no limit (set queue_max)"},
    {SIM_PART_SERVICE, queue_is_zero, "order drop_dead", "no effect: no request may wait (set queue_max to 1 or more)"},
    {SIM_PART_SERVICE, never_fails, "throttles", "no effect: no request fails here (set fail)"},
    {SIM_PART_SERVICE, sends_no_hint, "hint_time hint_spread", "no effect without hint = delta or date"},
    {SIM_PART_SERVICE, is_never_cold, "cold_time cold_at_start",
     "no effect: the service is never cold (set cold below 100%)"},
    {SIM_PART_SERVICE, has_no_cold_time, "cold", "no effect without cold_time"},
    {SIM_PART_SERVICE, stays_warm, "cold cold_time",
     "no effect: without an [outage] the service is never cold (or set cold_at_start = yes)"},
    {SIM_PART_SERVICE, never_sends_hint, "hint",
     "no effect: no request fails here (set fail, queue_max or an [outage])"},
    {SIM_PART_SERVICE, shards_are_alike, "shards",
     "no effect: all shards are alike (set bad_shards, or scope = shard)"},
    {SIM_PART_SERVICE, calls_no_service, "policy processes fan",
     "no effect: the service calls no other (set calls = NAME)"},
    {SIM_PART_OUTAGE, outage_is_not_slow, "capacity", "no effect: only an outage of kind = slow has a capacity"},
    {SIM_PART_OUTAGE, outage_is_silent, "fail",
     "no effect: this outage sends no response (kind = fail, throttle or slow does)"},
};

static bool field_is_default(const struct sim_world *world, const struct sim_field *field, uint32_t i)
{
    char text[SIM_VALUE_MAX];
    const char *standard = field->form == SIM_FORM_SERVICE ? world->service[0].name : field->key.standard;
    return strcmp(sim_field_text(text, field, sim_part_in(world, field->part, i), world), standard) == 0;
}

static void check_rule(struct faults *f, size_t rule, uint32_t element)
{
    char key[32];
    const char *at = ignored_rules[rule].keys;
    for (size_t length = strcspn(at, " "); length > 0; at += strspn(at, " "), length = strcspn(at, " ")) {
        snprintf(key, sizeof key, "%.*s", (int)length, at);
        at += length;
        if (field_is_default(f->world, sim_field_of(ignored_rules[rule].part, key), element))
            continue;
        size_t before = f->count;
        fault_add(f, ignored_rules[rule].part, element, key, "%s", ignored_rules[rule].reason);
        if (f->count > before)
            f->fault[before].ignored = true;
    }
}

static void check_ignored_keys(struct faults *f)
{
    for (size_t rule = 0; rule < sizeof ignored_rules / sizeof *ignored_rules; rule++)
        for (uint32_t i = 0; i < sim_part_count(f->world, ignored_rules[rule].part); i++)
            if (ignored_rules[rule].applies(f->world, i))
                check_rule(f, rule, i);
}

/* ---- clients ---- */

static int64_t world_clients_end_ns(const struct sim_world *world, const struct sim_clients *c)
{
    return c->until_ns < world->duration_ns ? c->until_ns : world->duration_ns;
}

static void check_span(struct faults *f, uint32_t i)
{
    const struct sim_clients *c = &f->world->clients[i];
    int64_t end_ns = world_clients_end_ns(f->world, c);
    if (c->until_ns != BIDE_NEVER && c->until_ns > f->world->duration_ns)
        fault_add(f, SIM_PART_CLIENTS, i, "until", "must be the duration (%s) at most, or never",
                  duration_text(f->world->duration_ns).text);
    else if (c->from_ns >= end_ns && c->until_ns != 0) /* until = 0 switches the group off */
        fault_add(f, SIM_PART_CLIENTS, i, "from", "must be less than %s: no call would begin",
                  duration_text(end_ns).text);
    if ((c->arrival != SIM_RAMP && c->arrival != SIM_SPIKE) || c->until_ns == 0)
        return;
    if (c->peak_from_ns < c->from_ns || c->peak_from_ns > end_ns)
        fault_add(f, SIM_PART_CLIENTS, i, "peak_from", "must be %s to %s", duration_text(c->from_ns).text,
                  duration_text(end_ns).text);
    else if (c->peak_until_ns < c->peak_from_ns || (c->arrival == SIM_SPIKE && c->peak_until_ns == c->peak_from_ns))
        fault_add(f, SIM_PART_CLIENTS, i, "peak_until", "must be later than peak_from (%s)",
                  duration_text(c->peak_from_ns).text);
    else if (c->peak_until_ns > end_ns)
        fault_add(f, SIM_PART_CLIENTS, i, "peak_until", "must be %s at most", duration_text(end_ns).text);
}

static bool is_positive(const struct sim_distribution *time)
{
    return time->a_ns > 0 || time->b_ns > 0 || time->points > 0;
}

static void check_arrival(struct faults *f, uint32_t i)
{
    const struct sim_clients *c = &f->world->clients[i];
    if ((c->arrival == SIM_HERD || c->arrival == SIM_CLOSED) && c->count == 0)
        fault_add(f, SIM_PART_CLIENTS, i, "count", "must be 1 or more");
    if (is_steady(f->world, i) && c->rate_micro == 0)
        fault_add(f, SIM_PART_CLIENTS, i, "rate", "must be more than 0/s (or set arrival = herd or closed)");
    if ((c->arrival == SIM_RAMP || c->arrival == SIM_SPIKE) && c->peak_rate_micro == 0)
        fault_add(f, SIM_PART_CLIENTS, i, "peak_rate", "must be more than 0/s for a %s",
                  is_spike(f->world, i) ? "spike" : "ramp");
    if (c->arrival == SIM_CLOSED && !is_positive(&c->think))
        fault_add(f, SIM_PART_CLIENTS, i, "think", "must be more than 0: closed clients need time between two calls");
    if (c->arrival == SIM_CLOSED && c->fanout > 1)
        fault_add(f, SIM_PART_CLIENTS, i, "fanout", "must be 1: a closed client has one call at a time");
}

static void check_numbers(struct faults *f, uint32_t i)
{
    const struct sim_clients *c = &f->world->clients[i];
    uint64_t processes = c->processes > 0 ? c->processes : c->count;
    uint64_t shards = c->scope == SIM_SCOPE_SHARD ? f->world->service[c->service].shards : 1;
    if (c->fanout == 0)
        fault_add(f, SIM_PART_CLIENTS, i, "fanout", "must be 1 or more");
    if (c->count >= IDS_MAX)
        fault_add(f, SIM_PART_CLIENTS, i, "count", "must be less than %u", IDS_MAX);
    else if (c->count > 0 && c->processes > c->count)
        fault_add(f, SIM_PART_CLIENTS, i, "processes",
                  "must be count (%llu) at most: other processes would have no client", (unsigned long long)c->count);
    else if (processes < PROCESS_MAX && processes * shards < TARGETS_MAX)
        return;
    else if (c->processes == 0)
        fault_add(f, SIM_PART_CLIENTS, i, "count",
                  "must be fewer than %llu, or set processes: each caller has its own gates",
                  (unsigned long long)(TARGETS_MAX / shards < PROCESS_MAX ? TARGETS_MAX / shards : PROCESS_MAX));
    else
        fault_add(f, SIM_PART_CLIENTS, i, "processes", "must be fewer than %u%s", PROCESS_MAX,
                  shards > 1 ? ", and 1073741824 over all shards" : "");
}

/* Checks that the policy's gates can be shared by processes of a host, and that its budget can be leased. */
static void check_shared(struct faults *f, uint32_t i)
{
    const struct sim_clients *c = &f->world->clients[i];
    const struct conf_policy *policy = f->world->policy_of_clients[i];
    uint64_t processes = c->processes > 0 ? c->processes : c->count > 0 ? c->count : 1;
    if (c->hosts > processes)
        fault_add(f, SIM_PART_CLIENTS, i, "hosts",
                  "must be processes (%llu) at most: other hosts would have no process", (unsigned long long)processes);
    if (policy == NULL)
        return;
    const struct bide_target_config *config = &policy->pair.target;
    if (c->hosts > 0 && (config->budget.kind == BIDE_BUDGET_CONCURRENCY || config->in_flight_max > 0))
        fault_add(f, SIM_PART_CLIENTS, i, "hosts",
                  "must be 0 with policy %.64s: its limit on attempts in flight cannot be shared", policy->name);
    if (c->fleet && config->budget.kind != BIDE_BUDGET_TOKENS)
        fault_add(f, SIM_PART_CLIENTS, i, "fleet", "needs budget.kind = tokens in policy %.64s", policy->name);
    else if (c->fleet && config->budget.threshold_milli > 0)
        fault_add(f, SIM_PART_CLIENTS, i, "fleet",
                  "needs budget.threshold = 0 in policy %.64s: leased tokens below it could not be spent",
                  policy->name);
}

/* Gaussian jitter replaces the jitter of the policy: a wait that is already random would be randomized twice. */
static void check_gauss(struct faults *f, uint32_t i)
{
    const struct conf_policy *policy = f->world->policy_of_clients[i];
    bool random = policy != NULL && policy->pair.policy.jitter != BIDE_JITTER_NONE;
    if (f->world->clients[i].gauss_milli > 0 && random)
        fault_add(f, SIM_PART_CLIENTS, i, "gauss", "needs jitter = none in policy %.64s", policy->name);
}

/* Returns an upper bound on the expected number of calls: the highest rate all the time. 0 for closed clients: their
 * number depends on the run. */
static double clients_calls_max(const struct sim_world *world, const struct sim_clients *c)
{
    int64_t end_ns = world_clients_end_ns(world, c), span_ns = end_ns > c->from_ns ? end_ns - c->from_ns : 0;
    double seconds = (double)span_ns / 1e9, rate = (double)c->rate_micro, calls;
    if (c->arrival == SIM_HERD)
        return (double)c->count * c->fanout;
    if (c->arrival == SIM_CLOSED)
        return 0; /* not known before the run */
    if (!(c->arrival == SIM_POISSON || c->arrival == SIM_UNIFORM)) {
        rate = (double)c->peak_rate_micro > rate ? (double)c->peak_rate_micro : rate;
        rate = (double)c->end_rate_micro > rate ? (double)c->end_rate_micro : rate;
    }
    calls = rate / 1e6 * seconds * c->fanout;
    double max = (double)c->calls * c->fanout; /* `calls` limits users */
    return c->calls > 0 && max < calls ? max : calls;
}

static void check_clients(struct faults *f)
{
    for (uint32_t i = 0; i < f->world->groups; i++) {
        check_arrival(f, i);
        check_span(f, i);
        check_numbers(f, i);
        check_shared(f, i);
        check_gauss(f, i);
        if (clients_calls_max(f->world, &f->world->clients[i]) > CALLS_MAX)
            fault_add(f, SIM_PART_CLIENTS, i, f->world->clients[i].arrival == SIM_HERD ? "count" : "rate",
                      "must be lower, or the duration shorter: more than 4000M calls would begin");
    }
}

/* ---- services ---- */

static void check_service(struct faults *f, uint32_t i)
{
    const struct sim_service *s = &f->world->service[i];
    if (s->servers == 0)
        fault_add(f, SIM_PART_SERVICE, i, "servers", "must be 1 or more (use [outage] for a service that is down)");
    if (s->shards == 0)
        fault_add(f, SIM_PART_SERVICE, i, "shards", "must be 1 or more");
    else if (s->bad_shards > s->shards)
        fault_add(f, SIM_PART_SERVICE, i, "bad_shards", "must be shards (%u) at most", s->shards);
    if (s->hint != SIM_HINT_NO && s->hint_ns == 0 && s->hint_spread_ns == 0)
        fault_add(f, SIM_PART_SERVICE, i, "hint", "needs a hint_time or a hint_spread");
    if (s->cold_permille == 0)
        fault_add(f, SIM_PART_SERVICE, i, "cold", "must be 0.1%% or more: the service would never start");
    if (s->processes == 0 || s->processes >= PROCESS_MAX)
        fault_add(f, SIM_PART_SERVICE, i, "processes", "must be 1 to %u", PROCESS_MAX - 1);
    if (s->fan == 0)
        fault_add(f, SIM_PART_SERVICE, i, "fan", "must be 1 or more (or set calls = none)");
}

/* Reports a cycle of services that call each other once: at its service with the lowest index. */
static void check_call_cycle(struct faults *f, uint32_t i)
{
    const struct sim_world *world = f->world;
    int32_t at = (int32_t)i;
    uint32_t min = i;
    for (uint32_t steps = 0; steps < world->services; steps++) {
        at = world->service[at].calls;
        if (at < 0)
            return;
        min = (uint32_t)at < min ? (uint32_t)at : min;
        if (at == (int32_t)i) {
            if (min == i)
                fault_add(f, SIM_PART_SERVICE, i, "calls",
                          "must not form a cycle: set calls = none in one of these services");
            return;
        }
    }
}

static void check_services(struct faults *f)
{
    for (uint32_t i = 0; i < f->world->services; i++) {
        check_service(f, i);
        check_call_cycle(f, i);
    }
}

/* ---- outages ---- */

static void check_outage(struct faults *f, uint32_t i)
{
    const struct sim_outage *o = &f->world->outage[i];
    const struct sim_service *s = &f->world->service[o->service];
    if (o->from_ns >= f->world->duration_ns)
        fault_add(f, SIM_PART_OUTAGE, i, "from", "must be less than the duration (%s)",
                  duration_text(f->world->duration_ns).text);
    if (o->until_ns < o->from_ns || (o->until_ns == o->from_ns && !o->inclusive))
        fault_add(f, SIM_PART_OUTAGE, i, "until", "must be later than from (%s)", duration_text(o->from_ns).text);
    if (o->kind == SIM_OUTAGE_HOLD && o->until_ns == BIDE_NEVER)
        fault_add(f, SIM_PART_OUTAGE, i, "until", "must be a time: held requests arrive then (or set kind = silence)");
    if (o->kind != SIM_OUTAGE_SLOW)
        return;
    if (o->capacity_permille == 0)
        fault_add(f, SIM_PART_OUTAGE, i, "capacity", "must be 0.1%% or more (or set kind = silence)");
    if (s->kind == SIM_ROW)
        fault_add(f, SIM_PART_OUTAGE, i, "kind", "must not be slow: a row has no service time");
    if (o->capacity_permille == 1000 && (o->fail_ppm == SIM_USUAL || o->fail_ppm == s->fail_ppm))
        fault_add(f, SIM_PART_OUTAGE, i, "kind", "has no effect: set capacity below 100%%, or fail");
}

static void check_overlap(struct faults *f, uint32_t i)
{
    const struct sim_outage *one = &f->world->outage[i];
    for (uint32_t j = 0; j < i; j++) {
        const struct sim_outage *other = &f->world->outage[j];
        if (one->service == other->service && one->from_ns < other->until_ns && other->from_ns < one->until_ns)
            fault_add(f, SIM_PART_OUTAGE, i, "from",
                      "must not overlap another outage of the same service, from %s until %s",
                      duration_text(other->from_ns).text, duration_text(other->until_ns).text);
    }
}

/* ---- the fleet ---- */

static void check_fleet(struct faults *f)
{
    const struct sim_fleet *fleet = &f->world->fleet;
    if (fleet->capacity_milli == 0 || fleet->capacity_milli > BIDE_CAPACITY_MAX_MILLI)
        fault_add(f, SIM_PART_FLEET, 0, "capacity", "must be more than 0, and 268435.455 at most");
    if (fleet->refill_per_minute_milli > BIDE_CAPACITY_MAX_MILLI)
        fault_add(f, SIM_PART_FLEET, 0, "refill_per_minute", "must be 268435.455 at most");
    if (fleet->timeout_ns == 0)
        fault_add(f, SIM_PART_FLEET, 0, "timeout", "must be more than 0");
    if (fleet->down_from_ns == BIDE_NEVER)
        return;
    if (fleet->down_from_ns >= f->world->duration_ns)
        fault_add(f, SIM_PART_FLEET, 0, "down_from", "must be less than the duration (%s), or never",
                  duration_text(f->world->duration_ns).text);
    else if (fleet->down_until_ns <= fleet->down_from_ns)
        fault_add(f, SIM_PART_FLEET, 0, "down_until", "must be later than down_from (%s)",
                  duration_text(fleet->down_from_ns).text);
}

/* ---- world ---- */

static void check_scenario(struct faults *f)
{
    const struct sim_world *world = f->world;
    if (world->duration_ns <= 0 || world->duration_ns > YEAR)
        fault_add(f, SIM_PART_WORLD, 0, "duration", "must be more than 0, and 365d at most");
    if (world->bin_ns <= 0)
        fault_add(f, SIM_PART_WORLD, 0, "bin", "must be more than 0");
    else if (world->duration_ns / world->bin_ns > POINTS_MAX)
        fault_add(f, SIM_PART_WORLD, 0, "bin", "must be %s or more: there would be more than a million bins",
                  duration_text(world->duration_ns / POINTS_MAX + 1).text);
    if (world->recover_from_ns != BIDE_NEVER && world->recover_from_ns >= world->duration_ns)
        fault_add(f, SIM_PART_WORLD, 0, "recover_from", "must be less than the duration (%s), or never",
                  duration_text(world->duration_ns).text);
}

size_t sim_world_faults(const struct sim_world *world, struct sim_fault faults[SIM_FAULTS_MAX])
{
    struct faults f = {world, faults, 0};
    check_scenario(&f);
    check_clients(&f);
    check_services(&f);
    check_fleet(&f);
    for (uint32_t i = 0; i < world->outages; i++) {
        check_outage(&f, i);
        check_overlap(&f, i);
    }
    check_ignored_keys(&f);
    return f.count;
}
