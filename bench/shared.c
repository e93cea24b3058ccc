/* shared.c - the cost of a shared target compared with a private target.
 *
 * The code is the same; only the memory may differ, a file mapping instead of private pages. Each call fails once, is
 * charged for its retry, succeeds and earns as much as it paid, at a fictitious time, so that no clock is read and all
 * calls are alike. The file is in the default place for such files: in memory, under /dev/shm. */
#include <bide/bide.h>

#include <unistd.h>

#include "bench.h"
#include "pair.h"

#define CALLS   40000u
#define MADE_UP (100 * BIDE_S)

struct world {
    struct bide_policy policy;
    struct bide_target *target;
};

static void require_action(const struct bide_verdict *v, enum bide_action action)
{
    if (v->action == action)
        return;
    fprintf(stderr, "shared: %s (%s) instead of %s\n", bide_action_label(v->action), bide_reason_label(v->reason),
            bide_action_label(action));
    exit(EXIT_FAILURE);
}

static void charge_and_earn(void *context, uint32_t n)
{
    struct world *w = context;
    struct bide_outcome ok = bide_classify_http(200, NULL), unavailable = bide_classify_http(503, NULL);
    for (uint32_t i = 0; i < n; i++) {
        struct bide_request request = {.safety = BIDE_SAFE, .lane = bide_lane(), .seed = i + 1};
        struct bide_call call;
        struct bide_verdict v = bide_call_begin(&call, &w->policy, w->target, &request, MADE_UP);
        v = bide_call_outcome(&call, v.attempt, &unavailable, MADE_UP);
        int64_t woken_ns = v.wake_ns;
        v = bide_call_wake(&call, woken_ns);
        v = bide_call_outcome(&call, v.attempt, &ok, woken_ns);
        require_action(&v, BIDE_ACTION_DONE);
    }
}

/* A budget that is never full and never empty, and a breaker that never has enough evidence. */
static struct bide_target_config bench_config(void)
{
    struct bide_target_config config;
    bide_target_config_init(&config, BIDE_PRESET_SERVICE);
    config.budget.capacity_milli = BIDE_CAPACITY_MAX_MILLI;
    config.budget.initial_milli = BIDE_CAPACITY_MAX_MILLI / 2;
    config.budget.cost_milli = config.budget.earn_success_milli = 1000;
    config.breaker.min_volume = 1000000000;
    return config;
}

static void print_figures(struct world *mine, struct world *shared)
{
    double mine_ns = bench_ns(charge_and_earn, mine, CALLS), shared_ns = bench_ns(charge_and_earn, shared, CALLS);
    struct pair_cost mine_two = pair_ns(charge_and_earn, mine, CALLS),
                     shared_two = pair_ns(charge_and_earn, shared, CALLS);
    bench_figure("shared.charge.ns", shared_ns, "ns", BENCH_NO_AIM);
    bench_figure("shared.charge_ratio", shared_ns / mine_ns, "ratio", 1.5);
    bench_figure("shared.charge_ratio.two_threads", shared_two.cpu_ns / mine_two.cpu_ns, "ratio", 1.5);
}

int main(void)
{
    static struct bide_target target;
    struct bide_target_config config = bench_config();
    struct bide_problem problem;
    struct bide_shared shared_target;
    char directory[] = "/dev/shm/bide-bench-XXXXXX";
    struct bide_shared_options options = {.directory = mkdtemp(directory)};
    if (options.directory == NULL || bide_target_init(&target, &config, MADE_UP, NULL) != BIDE_OK)
        abort();
    if (bide_shared_open(&shared_target, "bench", &config, &options, MADE_UP, &problem) != BIDE_OK) {
        fprintf(stderr, "shared: %s\n", problem.text);
        return EXIT_FAILURE;
    }
    struct world mine = {.target = &target}, shared = {.target = shared_target.target};
    bide_policy_init(&mine.policy, BIDE_PRESET_SERVICE);
    bide_policy_init(&shared.policy, BIDE_PRESET_SERVICE);
    print_figures(&mine, &shared);
    bide_shared_close(&shared_target);
    bide_shared_remove("bench", &options, NULL);
    return rmdir(directory) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
