/* sim.c - cost of the simulator: attempts per second of the catalogue's storm_herd with full jitter, as `bide sim` runs
 * it, with the engine in the loop; and the storm of 25 million callers, in seconds and bytes.
 *
 * For comparison, in the same program, the same storm without the engine and without statistics: over a binary heap,
 * the familiar baseline, and over the simulator's own queue. Python's heapq and SimPy are in bench/sim_peer.py. All
 * values are CPU time of the process, of the fastest run; a run begins without memory and frees all it allocates. */
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/batch.h"
#include "sim/queue.h"

#include "bench.h"

#define RUNS        15
#define OUTAGE_NS   (200 * BIDE_MS) /* as in scenarios/storm_herd.ini */
#define BASE_NS     (100 * BIDE_MS)
#define ATTEMPTS    6u
#define MANY        100000u
#define MOST        25000000u
#define MEAN_MIN    3.8 /* attempts per caller: 3.904, by the catalogue's golden values */
#define MEAN_MAX    4.0
#define STORM_AIM_S 30.0
#define STORM_AIM   4e9 /* bytes */
#define LEAST       4e6 /* attempts per second */

/* ---- the storm, with the engine ---- */

struct storm {
    struct sim_scenario *scenario;
    const struct sim_world *world;
};

static struct storm storm_of(uint32_t callers)
{
    char count[64], errors[CONF_ERROR_MAX];
    snprintf(count, sizeof count, "clients.herd.count=%u", (unsigned)callers);
    const char *const set[] = {count, NULL};
    struct sim_overrides overrides = {.set = set};
    struct storm storm = {.scenario = sim_scenario_read("storm_herd", &overrides, errors)};
    if (!storm.scenario) {
        fprintf(stderr, "sim: %s\n", errors);
        exit(EXIT_FAILURE);
    }
    for (size_t i = 0; i < sim_scenario_rows(storm.scenario); i++)
        if (strcmp(sim_scenario_row(storm.scenario, i)->name, "full") == 0)
            storm.world = &sim_scenario_row(storm.scenario, i)->world;
    if (!storm.world) {
        fprintf(stderr, "sim: storm_herd has no case \"full\"\n");
        exit(EXIT_FAILURE);
    }
    return storm;
}

/* Checks that the storm is the intended storm: other results cannot be compared. */
static uint64_t expect_mean(uint64_t attempts, uint32_t callers)
{
    double mean = (double)attempts / callers;
    if (mean > MEAN_MIN && mean < MEAN_MAX)
        return attempts;
    fprintf(stderr, "sim: %.3f attempts of a caller, not 3.904\n", mean);
    exit(EXIT_FAILURE);
}

static uint64_t with_engine(const void *context, uint32_t callers)
{
    static struct sim_result result; /* too large for some stacks */
    const struct storm *storm = context;
    if (sim_run(storm->world, &(struct sim_run_options){.seed = 1}, &result) != SIM_END_DONE) {
        fprintf(stderr, "sim: the storm of %u callers was not run to its end\n", (unsigned)callers);
        exit(EXIT_FAILURE);
    }
    uint64_t attempts = result.attempts;
    sim_result_free(&result);
    return attempts;
}

/* ---- the same storm without the engine ---- */

/* Returns when the next attempt after a failure begins: full jitter. */
static int64_t retry_at(const struct sim_event *event)
{
    struct sim_random_key key = {.seed = 1, .stream = SIM_FOR_CALL, .id = event->id, .turn = event->seq};
    return event->at_ns + (int64_t)sim_random_range(key, (uint64_t)BASE_NS << event->seq);
}

static bool fails(const struct sim_event *event)
{
    return event->at_ns <= OUTAGE_NS && event->seq + 1 < ATTEMPTS;
}

static void sift_up(struct sim_event *heap, size_t i, struct sim_event event)
{
    for (; i > 0 && event.at_ns < heap[(i - 1) / 2].at_ns; i = (i - 1) / 2)
        heap[i] = heap[(i - 1) / 2];
    heap[i] = event;
}

/* Replaces the event at the top of the heap. */
static void sift_down(struct sim_event *heap, size_t n, struct sim_event event)
{
    size_t i = 0;
    for (size_t child = 1; child < n; child = 2 * i + 1) {
        child += child + 1 < n && heap[child + 1].at_ns < heap[child].at_ns;
        if (event.at_ns <= heap[child].at_ns)
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = event;
}

static uint64_t over_a_heap(const void *context, uint32_t callers)
{
    (void)context;
    struct sim_event *heap = malloc(callers * sizeof *heap);
    size_t n = 0;
    uint64_t attempts = 0;
    for (uint32_t id = 0; heap && id < callers; id++)
        sift_up(heap, n++, (struct sim_event){0, id, 0});
    while (heap && n > 0) {
        struct sim_event event = heap[0];
        attempts++;
        if (fails(&event)) {
            sift_down(heap, n, (struct sim_event){retry_at(&event), event.id, event.seq + 1});
        } else {
            n--;
            sift_down(heap, n, heap[n]);
        }
    }
    free(heap);
    return attempts;
}

static uint64_t over_the_queue(const void *context, uint32_t callers)
{
    (void)context;
    struct sim_queue *queue = sim_queue_new(false);
    uint64_t attempts = 0;
    struct sim_event event;
    for (uint32_t id = 0; queue && id < callers; id++)
        sim_queue_push(queue, (struct sim_event){0, id, 0});
    while (queue && sim_queue_pop(queue, &event)) {
        attempts++;
        if (fails(&event))
            sim_queue_push(queue, (struct sim_event){retry_at(&event), event.id, event.seq + 1});
    }
    sim_queue_free(queue);
    return attempts;
}

/* ---- measuring ---- */

typedef uint64_t workload(const void *context, uint32_t callers); /* returns the number of attempts */

static double attempts_per_s(workload *body, const void *context, uint32_t callers)
{
    double best = 0;
    for (int run = 0; run < RUNS; run++) {
        double begin_ns = bench_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
        uint64_t attempts = expect_mean(body(context, callers), callers);
        double rate = (double)attempts * 1e9 / (bench_clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begin_ns);
        best = rate > best ? rate : best;
    }
    return best;
}

static void measure_engine(const char *key, uint32_t callers)
{
    struct storm storm = storm_of(callers);
    bench_figure_least(key, attempts_per_s(with_engine, &storm, callers), "attempts/s", LEAST);
    sim_scenario_free(storm.scenario);
}

static double seconds(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

/* Runs in a child process, so that its peak memory is measured alone. */
static void measure_largest(void)
{
    struct storm storm = storm_of(MOST);
    uint64_t needs = sim_world_bytes(storm.world), available = sim_memory_available();
    if (available < needs) {
        fprintf(stderr, "sim: the storm of 25 million callers is left out: it needs %.1f GB, and there are %.1f\n",
                (double)needs / 1e9, (double)available / 1e9);
        return;
    }
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        _exit(expect_mean(with_engine(&storm, MOST), MOST) > 0 ? EXIT_SUCCESS : EXIT_FAILURE);
    int status;
    struct rusage used;
    if (child < 0 || wait4(child, &status, 0, &used) != child || status != 0) {
        fprintf(stderr, "sim: the storm of 25 million callers has failed\n");
        exit(EXIT_FAILURE);
    }
    bench_figure("sim.storm_25m.seconds", seconds(used.ru_utime) + seconds(used.ru_stime), "s", STORM_AIM_S);
    bench_figure("sim.storm_25m.bytes", (double)used.ru_maxrss * 1024, "bytes", STORM_AIM);
    sim_scenario_free(storm.scenario);
}

int main(void)
{
    measure_engine("sim.attempts_per_s.1k", 1000);
    measure_engine("sim.attempts_per_s.100k", MANY);
    bench_figure("sim.bare_queue.attempts_per_s.100k", attempts_per_s(over_the_queue, NULL, MANY), "attempts/s",
                 BENCH_NO_AIM);
    bench_figure("sim.bare_heap.attempts_per_s.100k", attempts_per_s(over_a_heap, NULL, MANY), "attempts/s",
                 BENCH_NO_AIM);
    measure_largest();
    return EXIT_SUCCESS;
}
