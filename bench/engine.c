/* engine.c - the cost of the engine: instructions, CPU time, bytes and allocations.
 *
 * All figures are for the service preset. Timed calls read the real clock once per event, as a driver does; retried
 * calls have a backoff of a nanosecond, so that their wait is over when the clock is read again. Counted calls use a
 * fictitious clock, and each starts from a copy of the same target, which has seen a healthy call every 10 ms for
 * longer than its breaker's window: the n calls are identical, although a budget drains and a breaker remembers. */
#include <bide/bide.h>

#include "bench.h"
#include "pair.h"

#define CALLS     40000u /* a few milliseconds: short enough for an undisturbed run */
#define WARM_UP   1200
#define WARM_STEP (10 * BIDE_MS)
#define MADE_UP   (100 * BIDE_S) /* time of counted calls, well inside a slot of the breaker's window */

struct world {
    struct bide_policy policy; /* the unchanged preset */
    struct bide_policy hasty;  /* with a backoff of a nanosecond */
    struct bide_target target; /* real clock */
    struct bide_target warm;   /* fictitious clock; never modified: */
    struct bide_target copy;   /* each counted call uses a copy */
    struct bide_outcome ok;
    struct bide_outcome unavailable;
};

/* ---- counting malloc, calloc and realloc ---- */

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
static uint64_t allocations;

void *malloc(size_t size)
{
    __atomic_add_fetch(&allocations, 1, __ATOMIC_RELAXED);
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    __atomic_add_fetch(&allocations, 1, __ATOMIC_RELAXED);
    return __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    __atomic_add_fetch(&allocations, 1, __ATOMIC_RELAXED);
    return __libc_realloc(old, size);
}

/* ---- one call ---- */

static struct bide_request request_of(uint64_t seed)
{
    return (struct bide_request){.safety = BIDE_SAFE, .lane = bide_lane(), .seed = seed};
}

/* Fails if a call ended in another way than expected: its cost would be meaningless. */
static void require_action(const struct bide_verdict *v, enum bide_action action)
{
    if (v->action == action)
        return;
    fprintf(stderr, "engine: %s (%s) instead of %s\n", bide_action_label(v->action), bide_reason_label(v->reason),
            bide_action_label(action));
    exit(EXIT_FAILURE);
}

/* Makes a call that succeeds at once, on the real clock. */
static void call_succeeds(struct world *w, uint64_t seed)
{
    struct bide_request request = request_of(seed);
    struct bide_call call;
    struct bide_verdict v = bide_call_begin(&call, &w->policy, &w->target, &request, bide_now());
    v = bide_call_outcome(&call, v.attempt, &w->ok, bide_now());
    require_action(&v, BIDE_ACTION_DONE);
}

/* Makes a call that fails once and then succeeds, on the real clock. */
static void call_recovers(struct world *w, uint64_t seed)
{
    struct bide_request request = request_of(seed);
    struct bide_call call;
    struct bide_verdict v = bide_call_begin(&call, &w->hasty, &w->target, &request, bide_now());
    v = bide_call_outcome(&call, v.attempt, &w->unavailable, bide_now());
    v = bide_call_wake(&call, bide_now());
    v = bide_call_outcome(&call, v.attempt, &w->ok, bide_now());
    require_action(&v, BIDE_ACTION_DONE);
}

/* ---- timed: n calls, of which some fail once ---- */

static void calls_all_succeed(void *context, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        call_succeeds(context, i);
}

static void calls_one_percent_fail(void *context, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (i % 100 == 99)
            call_recovers(context, i);
        else
            call_succeeds(context, i);
}

static struct bide_outcome make_attempt(void *context, const struct bide_verdict *start)
{
    (void)start;
    return ((struct world *)context)->ok;
}

static void run_blocking(void *context, uint32_t n)
{
    struct world *w = context;
    struct bide_job job = {.policy = &w->policy, .target = &w->target, .attempt = make_attempt, .context = w};
    for (uint32_t i = 0; i < n; i++) {
        struct bide_verdict v = bide_run(&job);
        require_action(&v, BIDE_ACTION_DONE);
    }
}

static void ignore_event(void *context, const struct bide_event *event)
{
    (void)context;
    (void)event;
}

/* The same under a listener of the process that does nothing. */
static void run_blocking_with_listener(void *context, uint32_t n)
{
    static const struct bide_listener listener = {.event = ignore_event};
    bide_listen(&listener);
    run_blocking(context, n);
    bide_listen(NULL);
}

/* ---- counted: n calls on n copies of a target ---- */

static void copy_targets(void *context, uint32_t n)
{
    struct world *w = context;
    for (uint32_t i = 0; i < n; i++) {
        w->copy = w->warm;
        struct bide_request request = request_of(i);
        __asm__ volatile("" : : "r"(&w->copy), "r"(&request) : "memory"); /* prevents their removal by the compiler */
    }
}

static void count_successes(void *context, uint32_t n)
{
    struct world *w = context;
    for (uint32_t i = 0; i < n; i++) {
        w->copy = w->warm;
        struct bide_request request = request_of(i);
        struct bide_call call;
        struct bide_verdict v = bide_call_begin(&call, &w->policy, &w->copy, &request, MADE_UP);
        v = bide_call_outcome(&call, v.attempt, &w->ok, MADE_UP);
        require_action(&v, BIDE_ACTION_DONE);
    }
}

static void count_retries(void *context, uint32_t n)
{
    struct world *w = context;
    for (uint32_t i = 0; i < n; i++) {
        w->copy = w->warm;
        struct bide_request request = request_of(i);
        struct bide_call call;
        struct bide_verdict v = bide_call_begin(&call, &w->policy, &w->copy, &request, MADE_UP);
        v = bide_call_outcome(&call, v.attempt, &w->unavailable, MADE_UP);
        int64_t woken_ns = v.wake_ns;
        v = bide_call_wake(&call, woken_ns);
        v = bide_call_outcome(&call, v.attempt, &w->ok, woken_ns);
        require_action(&v, BIDE_ACTION_DONE);
    }
}

static const struct bench_part parts[] = {{"copies", copy_targets},
                                          {"successes", count_successes},
                                          {"retries", count_retries},
                                          {"blocking", run_blocking},
                                          {"listener", run_blocking_with_listener}};

/* ---- results ---- */

static void warm_up(struct world *w)
{
    for (int i = WARM_UP; i >= 0; i--) {
        struct bide_request request = request_of((uint64_t)i);
        struct bide_call call;
        int64_t now_ns = MADE_UP - i * WARM_STEP;
        struct bide_verdict v = bide_call_begin(&call, &w->policy, &w->warm, &request, now_ns);
        v = bide_call_outcome(&call, v.attempt, &w->ok, now_ns);
        require_action(&v, BIDE_ACTION_DONE);
    }
}

static void world_init(struct world *w)
{
    struct bide_target_config config;
    bide_policy_init(&w->policy, BIDE_PRESET_SERVICE);
    bide_target_config_init(&config, BIDE_PRESET_SERVICE);
    w->hasty = w->policy;
    w->hasty.base_ns = 1;
    if (bide_policy_check(&w->hasty, NULL) != BIDE_OK ||
        bide_target_init(&w->target, &config, bide_now(), NULL) != BIDE_OK ||
        bide_target_init(&w->warm, &config, MADE_UP - WARM_UP * WARM_STEP, NULL) != BIDE_OK)
        abort();
    w->ok = bide_classify_http(200, NULL);
    w->unavailable = bide_classify_http(503, NULL);
    warm_up(w);
}

static void print_times(struct world *w)
{
    double one_ns = bench_ns(calls_all_succeed, w, CALLS), one_percent_ns = bench_ns(calls_one_percent_fail, w, CALLS);
    struct pair_cost two = pair_ns(calls_all_succeed, w, CALLS),
                     two_percent = pair_ns(calls_one_percent_fail, w, CALLS);
    double retry_ns = bench_ns(count_retries, w, CALLS) - bench_ns(count_successes, w, CALLS);
    bench_figure("engine.success.ns", one_ns, "ns", 80);
    bench_figure("engine.success.ns.two_threads", two.cpu_ns, "ns", 2 * one_ns);
    bench_figure("engine.success.ns.one_percent", one_percent_ns, "ns", BENCH_NO_AIM);
    bench_figure("engine.success.ns.two_threads_one_percent", two_percent.cpu_ns, "ns", 2 * one_percent_ns);
    bench_figure("engine.two_threads.together", two.together_percent, "%", BENCH_NO_AIM);
    bench_figure("engine.retry.ns", retry_ns, "ns", BENCH_NO_AIM);
    bench_figure("os.run.ns", bench_ns(run_blocking, w, CALLS), "ns", BENCH_NO_AIM);
}

static void print_allocations(struct world *w)
{
    uint64_t before = allocations;
    calls_one_percent_fail(w, CALLS);
    run_blocking(w, CALLS);
    bench_figure("engine.allocations", (double)(allocations - before), "in_all", 0);
}

int main(int argc, char **argv)
{
    static struct world world;
    world_init(&world);
    if (argc == 3)
        return bench_count(parts, sizeof parts / sizeof *parts, &world, argv);
    bench_instructions("engine.success.instructions", "successes-copies", 200);
    bench_instructions("engine.retry.instructions", "retries-successes", 650);
    bench_instructions("event.success.instructions", "listener-blocking", BENCH_NO_AIM);
    print_times(&world);
    print_allocations(&world);
    bench_figure("engine.call.bytes", sizeof(struct bide_call), "bytes", 96);
    bench_figure("engine.target.bytes", sizeof(struct bide_target), "bytes", 2304);
    return EXIT_SUCCESS;
}
