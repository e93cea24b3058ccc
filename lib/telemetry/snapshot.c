/* snapshot.c - reads all numbers of this process: see snapshot.h. */
#include "snapshot.h"

#include <bide/clock.h>
#include <bide/telemetry.h>

#include "core/atomic.h"
#include "core/gates.h"
#include "log.h"
#include "meters.h"
#include "problem.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* A registered ratio. Ratios of one name, as of the threads of a server, are exported as their sum. */
struct inbound_entry {
    char name[BIDE_TARGET_NAME_MAX + 1];
    const struct bide_inbound_ratio *ratio;
};

static struct {
    pthread_mutex_t lock;
    struct bide_targets *targets;
    struct inbound_entry inbound[BIDE_TELEMETRY_INBOUND_MAX];
    size_t inbound_count;
    int64_t start_ns; /* since 1970; 0: not known */
} sources = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* A snapshot is one allocation: numbers is its first member, the targets follow it. */
struct snapshot {
    struct telemetry_numbers numbers;
    struct telemetry_process process;
    struct telemetry_inbound inbound[BIDE_TELEMETRY_INBOUND_MAX];
    char inbound_name[BIDE_TELEMETRY_INBOUND_MAX][BIDE_TARGET_NAME_MAX + 1];
    struct telemetry_target target[];
};

/* ---- sources ---- */

static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

static void sources_lock(void)
{
    pthread_mutex_lock(&sources.lock);
}

static void sources_unlock(void)
{
    pthread_mutex_unlock(&sources.lock);
}

static void fork_register(void)
{
    pthread_atfork(sources_lock, sources_unlock, sources_unlock);
}

/* Takes the lock. A child that is forked while another thread has it would find it taken for ever: fork waits for it.
 * If there is no memory to register that, such a child may hang when it starts telemetry. */
static void sources_enter(void)
{
    pthread_once(&fork_once, fork_register);
    sources_lock();
}

void telemetry_snapshot_targets_set(struct bide_targets *targets)
{
    sources_enter();
    sources.targets = targets;
    sources_unlock();
}

void telemetry_snapshot_started(int64_t wall_ns)
{
    sources_enter();
    if (sources.start_ns == 0)
        sources.start_ns = wall_ns;
    sources_unlock();
}

/* Under the lock. */
static void inbound_remove(const char *name)
{
    size_t kept = 0;
    for (size_t i = 0; i < sources.inbound_count; i++)
        if (strcmp(sources.inbound[i].name, name) != 0)
            sources.inbound[kept++] = sources.inbound[i];
    sources.inbound_count = kept;
}

/* Under the lock. A ratio that is registered already stays as it is: it must not be counted twice. */
static enum bide_err inbound_add(const char *name, const struct bide_inbound_ratio *ratio, struct bide_problem *problem)
{
    for (size_t i = 0; i < sources.inbound_count; i++)
        if (sources.inbound[i].ratio == ratio) {
            if (strcmp(sources.inbound[i].name, name) == 0)
                return BIDE_OK;
            return telemetry_problem_set(problem, BIDE_ERR_INVALID, 0,
                                         "this inbound ratio is registered already, with the name \"%s\"",
                                         sources.inbound[i].name);
        }
    if (sources.inbound_count == BIDE_TELEMETRY_INBOUND_MAX)
        return telemetry_problem_set(problem, BIDE_ERR_INVALID, 0,
                                     "inbound ratio \"%s\": %u are registered already, and there is room for no more",
                                     name, BIDE_TELEMETRY_INBOUND_MAX);
    struct inbound_entry *entry = &sources.inbound[sources.inbound_count++];
    memcpy(entry->name, name, strlen(name) + 1);
    entry->ratio = ratio;
    return BIDE_OK;
}

enum bide_err telemetry_snapshot_inbound_set(const char *name, const struct bide_inbound_ratio *ratio,
                                             struct bide_problem *problem)
{
    enum bide_err err = bide_targets_name_check(name, problem);
    if (err != BIDE_OK)
        return err;
    sources_enter();
    if (ratio == NULL)
        inbound_remove(name);
    else
        err = inbound_add(name, ratio, problem);
    sources_unlock();
    return err;
}

/* ---- reading ---- */

static bool target_has_lease(const struct bide_target *target, int64_t now_ns)
{
    return (core_hot(target) & CORE_HOT_LEASED) != 0 && (int64_t)core_load(&target->lease_end_ns) > now_ns;
}

void telemetry_snapshot_state(struct telemetry_target *to, const struct bide_target *target, int64_t now_ns)
{
    struct bide_target_config config;
    bide_target_config_get(target, &config);
    to->state = bide_target_get(target, now_ns);
    to->openings = to->state.breaker.openings_total;
    to->capacity_milli = config.budget.kind == BIDE_BUDGET_TOKENS ? config.budget.capacity_milli : 0;
    to->has_lease = target_has_lease(target, now_ns);
    to->has_state = true;
}

/* The memory of an evicted target is reused for another name, which changes its identity: then the state just read may
 * be that of the other name, and is dropped. */
static void read_target(struct telemetry_target *to, const struct telemetry_meter *meter, int64_t now_ns)
{
    *to = (struct telemetry_target){.name = meter->name, .now_ns = now_ns};
    bide_meter_get(&meter->meter, &to->meter);
    const struct bide_target *target = sources.targets != NULL ? bide_targets_find(sources.targets, meter->name) : NULL;
    if (target == NULL)
        return;
    uint64_t identity = core_load_acquire(&target->identity);
    telemetry_snapshot_state(to, target, now_ns);
    to->has_state =
        bide_targets_find(sources.targets, meter->name) == target && core_is_unchanged(&target->identity, identity);
}

/* Adds a ratio to the sum of its name. */
static void read_inbound(struct snapshot *snapshot, const struct inbound_entry *entry, int64_t now_ns)
{
    struct bide_inbound_ratio_view view = bide_inbound_ratio_get(entry->ratio, now_ns);
    size_t *count = &snapshot->process.inbound_count, i = 0;
    while (i < *count && strcmp(snapshot->inbound_name[i], entry->name) != 0)
        i++;
    if (i == *count) {
        memcpy(snapshot->inbound_name[i], entry->name, sizeof entry->name);
        snapshot->inbound[i] = (struct telemetry_inbound){.name = snapshot->inbound_name[i]};
        (*count)++;
    }
    snapshot->inbound[i].first += view.requests_total - view.retries_total;
    snapshot->inbound[i].retry += view.retries_total;
}

static void read_dropped(struct telemetry_process *process)
{
    for (unsigned i = 0; i < TELEMETRY_SIGNAL_COUNT; i++)
        for (unsigned cause = 0; cause < TELEMETRY_CAUSE_COUNT; cause++)
            process->dropped[i][cause] = telemetry_dropped_get((enum telemetry_signal)i, (enum telemetry_cause)cause);
}

struct telemetry_numbers *telemetry_snapshot_new(int64_t now_ns)
{
    uint32_t count = telemetry_meters_count(); /* meters that are added meanwhile are in the next snapshot */
    struct snapshot *snapshot = malloc(sizeof *snapshot + count * sizeof snapshot->target[0]);
    if (snapshot == NULL)
        return NULL;
    snapshot->process = (struct telemetry_process){.inbound = snapshot->inbound};
    snapshot->numbers =
        (struct telemetry_numbers){.targets = snapshot->target, .count = count, .process = &snapshot->process};
    sources_enter();
    snapshot->process.start_ns = sources.start_ns;
    for (uint32_t i = 0; i < count; i++)
        read_target(&snapshot->target[i], telemetry_meters_at(i), now_ns);
    for (size_t i = 0; i < sources.inbound_count; i++)
        read_inbound(snapshot, &sources.inbound[i], now_ns);
    sources_unlock();
    read_dropped(&snapshot->process);
    return &snapshot->numbers;
}

/* Known weakness: looking a target up counts as using it, so a table evicts these targets last. */
void telemetry_snapshot_log_breakers(struct telemetry_log *log, int64_t now_ns)
{
    uint32_t count = telemetry_meters_count();
    sources_enter();
    for (uint32_t i = 0; i < count && sources.targets != NULL; i++) {
        const char *name = telemetry_meters_at(i)->name;
        const struct bide_target *target = bide_targets_find(sources.targets, name);
        if (target == NULL)
            continue;
        struct bide_breaker_view breaker = bide_target_get(target, now_ns).breaker;
        telemetry_log_breaker(log, i, name, &breaker, now_ns);
    }
    sources_unlock();
}

void telemetry_snapshot_free(struct telemetry_numbers *numbers)
{
    free(numbers); /* the first member of its struct snapshot */
}

/* The text of a snapshot has one length, so writing it twice needs no second try. */
char *telemetry_snapshot_page(void *context, size_t *length)
{
    struct telemetry_numbers *numbers = telemetry_snapshot_new(bide_now());
    (void)context;
    if (numbers == NULL)
        return NULL;
    *length = telemetry_prometheus_write_all(NULL, 0, numbers);
    char *text = malloc(*length + 1);
    if (text != NULL)
        telemetry_prometheus_write_all(text, *length + 1, numbers);
    telemetry_snapshot_free(numbers);
    return text;
}
