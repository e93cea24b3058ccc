/* test_threads.c - eight threads on one target, and on one table of targets: nothing is overspent, lost or torn.
 *
 * Most useful under -fsanitize=thread. Errors in threads are counted and checked at the end, because cmocka's
 * assertions belong to the main thread. */
#include <bide/bide.h>

#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/gates.h"
#include "live_chance.h"

#define THREADS 8

/* Runs the same function in all threads, each with its own element of an array. */
static void in_threads(void *(*work)(void *), void *parts, size_t size)
{
    pthread_t thread[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, work, (char *)parts + i * size), 0);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(thread[i], NULL), 0);
}

/* -- One target ---------------------------------------------------------------------------------------------------- */

/* Budgets without refill: they earn only by successes. */
static struct bide_target_config countable(uint32_t capacity_milli, uint32_t earn_success_milli)
{
    struct bide_target_config config;
    bide_target_config_init(&config, BIDE_PRESET_SERVICE);
    config.budget.kind = BIDE_BUDGET_TOKENS;
    config.budget.capacity_milli = capacity_milli;
    config.budget.initial_milli = BIDE_FULL;
    config.budget.cost_milli = config.budget.cost_throttled_milli = config.budget.cost_timeout_milli = 1000;
    config.budget.earn_success_milli = earn_success_milli;
    config.budget.earn_first_milli = config.budget.refill_per_minute_milli = config.budget.refund_permille = 0;
    config.breaker.kind = BIDE_BREAKER_OFF;
    return config;
}

static struct bide_policy without_waits(uint32_t attempts_max)
{
    struct bide_policy policy;
    bide_policy_init(&policy, BIDE_PRESET_SERVICE);
    policy.attempts_max = attempts_max;
    policy.backoff = BIDE_BACKOFF_NONE;
    return policy;
}

struct caller {
    struct bide_target *target;
    const struct bide_policy *policy;
    struct random random;
    uint64_t retries, successes, refused, unexpected;
};

static struct bide_outcome fail_often(void *context, const struct bide_verdict *start)
{
    struct caller *c = context;
    c->retries += start->attempt > 1;
    bool fails = draw(&c->random, 3) > 0;
    return (struct bide_outcome){.kind = fails ? BIDE_KIND_TRANSIENT : BIDE_KIND_OK,
                                 .evidence = BIDE_EVIDENCE_NOT_SENT};
}

static void *make_calls(void *part)
{
    struct caller *c = part;
    struct bide_job job = {.policy = c->policy, .target = c->target, .attempt = fail_often, .context = c};
    for (int i = 0; i < 5000; i++) {
        struct bide_verdict end = bide_run(&job);
        c->successes += end.action == BIDE_ACTION_DONE;
        c->refused += end.reason == BIDE_REASON_BUDGET_EMPTY;
        c->unexpected += end.action != BIDE_ACTION_DONE && end.action != BIDE_ACTION_GIVE_UP;
    }
    return NULL;
}

/* Every token is accounted for: spent plus left equals initial plus earned, minus what was earned while the bucket was
 * full. */
static void threads_never_spend_more_than_initial_plus_earned_tokens(void **state)
{
    enum { CAPACITY = 100000, EARN = 100 };
    struct bide_target_config config = countable(CAPACITY, EARN);
    struct bide_policy policy = without_waits(4);
    struct bide_target target;
    struct caller callers[THREADS], sum = {0};
    uint64_t seed = seed_once();
    assert_int_equal(bide_target_init(&target, &config, bide_now(), NULL), BIDE_OK);
    for (unsigned i = 0; i < THREADS; i++)
        callers[i] = (struct caller){.target = &target, .policy = &policy, .random = {seed + i}};
    in_threads(make_calls, callers, sizeof *callers);
    for (size_t i = 0; i < THREADS; i++) {
        sum.retries += callers[i].retries;
        sum.successes += callers[i].successes;
        sum.refused += callers[i].refused;
        sum.unexpected += callers[i].unexpected;
    }
    uint64_t left = (uint64_t)bide_target_get(&target, bide_now()).budget_left_milli;
    assert_int_equal(sum.unexpected, 0);
    assert_true(sum.refused > 0); /* otherwise nothing was tested */
    assert_true(sum.retries * 1000 + left <= CAPACITY + sum.successes * EARN);
    assert_true(sum.retries * 1000 + left > CAPACITY); /* tokens were earned and spent */
    assert_int_equal(bide_target_get(&target, bide_now()).refused[BIDE_GATE_INDEX(BIDE_GATE_BUDGET)], sum.refused);
}

static void threads_without_successes_spend_exactly_the_capacity(void **state)
{
    struct bide_target_config config = countable(50000, 0);
    struct bide_policy policy = without_waits(4);
    struct bide_target target;
    struct caller callers[THREADS];
    uint64_t retries = 0, seed = seed_once();
    assert_int_equal(bide_target_init(&target, &config, bide_now(), NULL), BIDE_OK);
    for (unsigned i = 0; i < THREADS; i++)
        callers[i] = (struct caller){.target = &target, .policy = &policy, .random = {seed + i}};
    in_threads(make_calls, callers, sizeof *callers);
    for (size_t i = 0; i < THREADS; i++)
        retries += callers[i].retries;
    assert_int_equal(retries, 50);
    assert_int_equal(bide_target_get(&target, bide_now()).budget_left_milli, 0);
}

/* -- A target that is reused --------------------------------------------------------------------------------------- */

struct holder {
    struct bide_target *target;
    const struct bide_policy *policy;
    int *stop;
    uint64_t unexpected;
};

static void *call_until_stopped(void *part)
{
    struct holder *h = part;
    const struct bide_outcome failed = {.kind = BIDE_KIND_TRANSIENT, .evidence = BIDE_EVIDENCE_NOT_SENT};
    while (!__atomic_load_n(h->stop, __ATOMIC_RELAXED)) {
        struct bide_call call = {0};
        struct bide_request request = {.seed = bide_seed(), .lane = bide_lane()};
        enum bide_action action = bide_call_begin(&call, h->policy, h->target, &request, bide_now()).action;
        if (action == BIDE_ACTION_START)
            action = bide_call_outcome(&call, 1, &failed, bide_now()).action;
        if (action == BIDE_ACTION_WAIT)
            action = bide_call_cancel(&call, bide_now()).action;
        h->unexpected += action != BIDE_ACTION_GIVE_UP;
    }
    return NULL;
}

static void *reuse_target(void *part)
{
    struct holder *h = part;
    struct bide_target_config config;
    bide_target_config_get(h->target, &config);
    for (int i = 0; i < 50000; i++)
        h->unexpected += core_target_reuse(h->target, &config, bide_now(), NULL) != BIDE_OK;
    __atomic_store_n(h->stop, 1, __ATOMIC_RELAXED);
    return NULL;
}

static void *call_or_reuse(void *part)
{
    struct holder *h = part;
    return h->policy != NULL ? call_until_stopped(h) : reuse_target(h);
}

/* What a table does to a target while calls still hold it, far more often than any table would. */
static void calls_survive_reuse_of_their_target_at_any_instant(void **state)
{
    struct bide_target_config config;
    struct bide_policy policy = without_waits(4);
    struct bide_target target;
    struct holder holders[THREADS];
    int stop = 0;
    bide_target_config_init(&config, BIDE_PRESET_SERVICE);
    assert_int_equal(bide_target_init(&target, &config, bide_now(), NULL), BIDE_OK);
    for (size_t i = 0; i < THREADS; i++)
        holders[i] = (struct holder){.target = &target, .policy = i > 0 ? &policy : NULL, .stop = &stop};
    in_threads(call_or_reuse, holders, sizeof *holders);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(holders[i].unexpected, 0);
}

/* -- A table ------------------------------------------------------------------------------------------------------- */

enum { MOST = 16, STICKY = 4, PASSING = 100, STEPS = 10000 };

struct visitor {
    struct bide_targets *table;
    const struct bide_policy *policy;
    struct bide_target **sticky; /* drained: must stay in the table, and stay drained */
    struct random random;
    unsigned first; /* the first visitor also reloads */
    uint64_t errors;
};

static const char *write_name(char *name, size_t size, char prefix, unsigned number)
{
    snprintf(name, size, "%c%u.a-longer-name-of-several-words.example", prefix, number);
    return name;
}

static void visit_sticky(struct visitor *v)
{
    char name[64];
    unsigned i = draw(&v->random, STICKY);
    write_name(name, sizeof name, 's', i);
    v->errors += bide_targets_get(v->table, name, bide_now()) != v->sticky[i];
    v->errors += bide_targets_find(v->table, name) != v->sticky[i];
    v->errors += bide_target_get(v->sticky[i], bide_now()).budget_left_milli != 0;
}

static struct bide_outcome fail_sometimes(void *context, const struct bide_verdict *start)
{
    struct visitor *v = context;
    bool fails = draw(&v->random, 50) == 0;
    return (struct bide_outcome){.kind = fails ? BIDE_KIND_TRANSIENT : BIDE_KIND_OK,
                                 .evidence = BIDE_EVIDENCE_NOT_SENT};
}

static void visit_passing(struct visitor *v)
{
    char name[64];
    write_name(name, sizeof name, 'p', draw(&v->random, PASSING));
    struct bide_target *target = bide_targets_get(v->table, name, bide_now());
    struct bide_job job = {.policy = v->policy, .target = target, .attempt = fail_sometimes, .context = v};
    v->errors += target == NULL;
    if (target == NULL)
        return;
    enum bide_action action = bide_run(&job).action;
    v->errors += action != BIDE_ACTION_DONE && action != BIDE_ACTION_GIVE_UP;
}

static void reload(struct visitor *v, uint32_t capacity_milli)
{
    struct bide_target_config config = countable(capacity_milli, 1000);
    config.breaker.kind = BIDE_BREAKER_BY_TIME;
    v->errors += bide_targets_configure(v->table, &config, bide_now(), NULL) != BIDE_OK;
    config.budget.capacity_milli = UINT32_MAX; /* invalid */
    v->errors += bide_targets_configure(v->table, &config, bide_now(), NULL) != BIDE_ERR_INVALID;
}

static void *visit(void *part)
{
    struct visitor *v = part;
    for (unsigned step = 0; step < STEPS; step++) {
        if (draw(&v->random, 4) == 0)
            visit_sticky(v);
        else
            visit_passing(v);
        if (v->first && step % 500 == 0)
            reload(v, step % 1000 == 0 ? 20000 : 10000);
        v->errors += bide_targets_view_get(v->table).held > MOST;
    }
    return NULL;
}

static void threads_find_evict_and_reload_without_losing_a_drained_target(void **state)
{
    struct bide_target_config config = countable(10000, 1000);
    struct bide_policy policy = without_waits(3);
    struct bide_targets *table;
    struct bide_target *sticky[STICKY];
    struct visitor visitors[THREADS];
    char name[64];
    uint64_t errors = 0, seed = seed_once();
    config.breaker.kind = BIDE_BREAKER_BY_TIME;
    assert_int_equal(bide_targets_new(&table, MOST, &config, NULL), BIDE_OK);
    for (unsigned i = 0; i < STICKY; i++) {
        sticky[i] = bide_targets_get(table, write_name(name, sizeof name, 's', i), bide_now());
        bide_budget_add_milli(sticky[i], -BIDE_S, bide_now());
    }
    for (unsigned i = 0; i < THREADS; i++)
        visitors[i] = (struct visitor){
            .table = table, .policy = &policy, .sticky = sticky, .random = {seed + i}, .first = i == 0};
    in_threads(visit, visitors, sizeof *visitors);
    for (size_t i = 0; i < THREADS; i++)
        errors += visitors[i].errors;
    assert_int_equal(errors, 0);
    assert_true(bide_targets_view_get(table).evicted > 0);
    bide_targets_free(table);
}

/* -- Seeds --------------------------------------------------------------------------------------------------------- */

enum { DRAWS = 1000 };

static void *draw_seeds(void *part)
{
    for (size_t i = 0; i < DRAWS; i++)
        ((uint64_t *)part)[i] = bide_seed();
    return NULL;
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void threads_draw_different_seeds(void **state)
{
    static uint64_t seeds[THREADS][DRAWS];
    in_threads(draw_seeds, seeds, sizeof *seeds);
    qsort(seeds, THREADS * DRAWS, sizeof(uint64_t), by_value);
    for (size_t i = 1; i < THREADS * DRAWS; i++)
        assert_true(((uint64_t *)seeds)[i] != ((uint64_t *)seeds)[i - 1]);
}

static void *find_default(void *part)
{
    struct bide_target **found = part;
    *found = bide_targets_get(bide_targets_default(), "payments", bide_now());
    return NULL;
}

static void threads_find_one_table_of_the_process(void **state)
{
    struct bide_target *found[THREADS];
    in_threads(find_default, found, sizeof *found);
    for (size_t i = 1; i < THREADS; i++)
        assert_ptr_equal(found[i], found[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_find_one_table_of_the_process),
        cmocka_unit_test(threads_never_spend_more_than_initial_plus_earned_tokens),
        cmocka_unit_test(threads_without_successes_spend_exactly_the_capacity),
        cmocka_unit_test(calls_survive_reuse_of_their_target_at_any_instant),
        cmocka_unit_test(threads_find_evict_and_reload_without_losing_a_drained_target),
        cmocka_unit_test(threads_draw_different_seeds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
