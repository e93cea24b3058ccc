/* batch.c - a small thread pool that works off tasks; a task is the run of a row with a seed.
 *
 * Tasks are numbered row by row and handed out in that order. Results are stored under the task's number, and the
 * figures of a row are computed when its last task has ended, over its seeds in their order; so neither the number of
 * threads nor their speed shows in the result. Only the result of the first seed is kept (for its series). Of the other
 * seeds, a number per metric is kept until their row is complete.
 *
 * With a single thread the caller does the work; otherwise it waits and reports progress. */
#include "batch.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <bide/clock.h>

#define PROGRESS_NS (100 * BIDE_MS) /* between two progress reports */
#define THREADS_MAX 256u
#define WHOLE_PPM   1000000u
#define STACK_BYTES 8388608u

struct batch_pool {
    struct sim_batch *batch;
    size_t metrics;
    size_t tasks;
    double **value;       /* by row, then seed and metric; NULL: not begun, or figures already computed */
    uint32_t *tasks_left; /* by row */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* under the lock */
    size_t next;            /* the next task to be handed out */
    size_t ended;           /* tasks */
    size_t workers_running; /* threads */
    enum sim_end end;
    size_t failed; /* the task that `end` refers to, unless DONE */
    _Atomic bool stop;
    /* used by the calling thread only */
    bool is_single; /* the calling thread runs the tasks */
    int64_t progress_ns;
};

struct worker {
    struct batch_pool *pool;
    pthread_t thread;
    _Atomic uint32_t done_ppm; /* share done of its current task */
};

/* ---- figures ---- */

/* Returns Student's t for a two-sided 95 % interval: from a table where the series below is not yet exact to 1e-5. */
static double student_t_95(uint32_t freedom)
{
    static const double exact[] = {
        0,       12.7062, 4.30265, 3.18245, 2.77645, 2.57058, 2.44691, 2.36462, 2.30600, 2.26216, 2.22814,
        2.20099, 2.17881, 2.16037, 2.14479, 2.13145, 2.11991, 2.10982, 2.10092, 2.09302, 2.08596,
    };
    if (freedom < sizeof exact / sizeof *exact)
        return exact[freedom];
    const double z = 1.959963984540054, z2 = z * z, v = freedom; /* Cornish and Fisher */
    const double first = z * (z2 + 1) / 4, second = z * ((5 * z2 + 16) * z2 + 3) / 96;
    const double third = z * (((3 * z2 + 19) * z2 + 17) * z2 - 15) / 384;
    return z + (first + (second + third / v) / v) / v;
}

/* Computes mean, extremes and confidence interval of the values that lie `stride` apart, a value for each seed. */
static struct sim_figure figure_over_seeds(const double *value, uint32_t seeds, size_t stride)
{
    struct sim_figure f = {.mean = NAN, .min = NAN, .max = NAN};
    double sum = 0, squares = 0;
    for (uint32_t s = 0; s < seeds; s++) {
        double x = value[s * stride];
        if (isnan(x))
            continue;
        f.min = f.count == 0 || x < f.min ? x : f.min;
        f.max = f.count == 0 || x > f.max ? x : f.max;
        sum += x;
        f.count++;
    }
    if (f.count == 0)
        return f;
    f.mean = f.min == f.max ? f.min : sum / f.count;
    for (uint32_t s = 0; s < seeds; s++) {
        double deviation = value[s * stride] - f.mean;
        squares += isnan(deviation) ? 0 : deviation * deviation;
    }
    if (f.count > 1)
        f.half = student_t_95(f.count - 1) * sqrt(squares / (f.count - 1) / f.count);
    return f;
}

static void pool_make_figures(struct batch_pool *pool, size_t row)
{
    struct sim_row_result *outcome = &pool->batch->row[row];
    for (size_t m = 0; m < pool->metrics; m++)
        outcome->figure[m] = figure_over_seeds(pool->value[row] + m, pool->batch->plan.seeds, pool->metrics);
    free(pool->value[row]);
    pool->value[row] = NULL;
}

/* ---- progress ---- */

static double pool_share_done(struct batch_pool *pool, const struct worker *worker, size_t workers)
{
    pthread_mutex_lock(&pool->lock);
    double done = (double)pool->ended;
    pthread_mutex_unlock(&pool->lock);
    for (size_t i = 0; i < workers; i++)
        done += (double)atomic_load_explicit(&worker[i].done_ppm, memory_order_relaxed) / WHOLE_PPM;
    done /= (double)pool->tasks;
    return done < 1 ? done : 1; /* a finished task and its worker's share may both be counted for a moment */
}

static void pool_report_progress(struct batch_pool *pool, const struct worker *worker, size_t workers)
{
    const struct sim_plan *plan = &pool->batch->plan;
    if (plan->progress != NULL && !plan->progress(plan->context, pool_share_done(pool, worker, workers)))
        atomic_store(&pool->stop, true);
}

/* Progress callback of a single run. */
static bool worker_on_progress(void *context, double done)
{
    struct worker *worker = context;
    struct batch_pool *pool = worker->pool;
    atomic_store_explicit(&worker->done_ppm, (uint32_t)(done * WHOLE_PPM), memory_order_relaxed);
    if (pool->is_single && bide_now() - pool->progress_ns >= PROGRESS_NS) {
        pool_report_progress(pool, worker, 1);
        pool->progress_ns = bide_now();
    }
    return !atomic_load(&pool->stop);
}

/* ---- a task ---- */

/* Stores the metrics of a finished run; keeps the whole result of the first seed. */
static void task_store_result(struct batch_pool *pool, size_t row, uint32_t seed, struct sim_result *result)
{
    double *value = pool->value[row] + seed * pool->metrics;
    for (size_t m = 0; m < pool->metrics; m++)
        value[m] = sim_metric_value(result, m);
    if (seed == 0) {
        pool->batch->row[row].result = *result;
        result->point = NULL;
    }
    sim_result_free(result);
}

static enum sim_end task_run(struct worker *worker, size_t task)
{
    struct batch_pool *pool = worker->pool;
    const struct sim_plan *plan = &pool->batch->plan;
    size_t row = task / plan->seeds;
    uint32_t seed = (uint32_t)(task % plan->seeds);
    struct sim_run_options options = {plan->seed + seed, plan->plain_queue, worker_on_progress, worker};
    struct sim_result *result = calloc(1, sizeof *result); /* too large for a thread's stack */
    if (result == NULL)
        return SIM_END_NO_MEMORY;
    enum sim_end end = sim_run(&sim_scenario_row(pool->batch->scenario, row)->world, &options, result);
    if (end == SIM_END_DONE)
        task_store_result(pool, row, seed, result);
    free(result);
    return end;
}

/* Takes the next task and allocates the values of its row. Returns false if none is left. Called under the lock. */
static bool pool_take_task(struct batch_pool *pool, size_t *task)
{
    const struct sim_plan *plan = &pool->batch->plan;
    if (pool->next == pool->tasks || atomic_load(&pool->stop))
        return false;
    *task = pool->next++;
    size_t row = *task / plan->seeds;
    if (pool->value[row] == NULL)
        pool->value[row] = calloc(plan->seeds, pool->metrics * sizeof(double));
    if (pool->value[row] != NULL)
        return true;
    pool->end = SIM_END_NO_MEMORY;
    pool->failed = *task;
    atomic_store(&pool->stop, true);
    return false;
}

/* Returns true if this failure is to be reported instead of the recorded failure: the first task in order wins, and
 * STOPPED only if nothing else failed. */
static bool pool_failure_precedes(const struct batch_pool *pool, size_t task, enum sim_end end)
{
    if (pool->end == SIM_END_DONE || (pool->end == SIM_END_STOPPED) != (end == SIM_END_STOPPED))
        return end != SIM_END_STOPPED || pool->end == SIM_END_DONE;
    return task < pool->failed;
}

/* Records the end of a task. Called under the lock. */
static void pool_finish_task(struct batch_pool *pool, size_t task, enum sim_end end)
{
    size_t row = task / pool->batch->plan.seeds;
    if (end == SIM_END_DONE) {
        pool->ended++;
        if (--pool->tasks_left[row] == 0)
            pool_make_figures(pool, row);
        return;
    }
    atomic_store(&pool->stop, true);
    if (pool_failure_precedes(pool, task, end)) {
        pool->end = end;
        pool->failed = task;
    }
}

static void *worker_main(void *context)
{
    struct worker *worker = context;
    struct batch_pool *pool = worker->pool;
    size_t task;
    pthread_mutex_lock(&pool->lock);
    while (pool_take_task(pool, &task)) {
        pthread_mutex_unlock(&pool->lock);
        enum sim_end end = task_run(worker, task);
        pthread_mutex_lock(&pool->lock);
        atomic_store_explicit(&worker->done_ppm, 0, memory_order_relaxed);
        pool_finish_task(pool, task, end);
    }
    pool->workers_running--;
    pthread_cond_signal(&pool->changed);
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

/* ---- the pool ---- */

static bool pool_open(struct batch_pool *pool, struct sim_batch *batch)
{
    pthread_condattr_t monotonic;
    *pool = (struct batch_pool){.batch = batch, .tasks = batch->rows * batch->plan.seeds, .progress_ns = bide_now()};
    while (sim_metric(pool->metrics) != NULL)
        pool->metrics++;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&pool->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pool->value = calloc(batch->rows, sizeof *pool->value);
    pool->tasks_left = calloc(batch->rows, sizeof *pool->tasks_left);
    batch->row = calloc(batch->rows, sizeof *batch->row);
    bool ok = pool->value != NULL && pool->tasks_left != NULL && batch->row != NULL;
    for (size_t r = 0; ok && r < batch->rows; r++) {
        pool->tasks_left[r] = batch->plan.seeds;
        batch->row[r].figure = calloc(pool->metrics, sizeof(struct sim_figure));
        ok = batch->row[r].figure != NULL;
    }
    return ok;
}

static void pool_close(struct batch_pool *pool)
{
    for (size_t r = 0; pool->value != NULL && r < pool->batch->rows; r++)
        free(pool->value[r]);
    free(pool->value);
    free(pool->tasks_left);
    pthread_cond_destroy(&pool->changed);
    pthread_mutex_destroy(&pool->lock);
}

/* Waits until all workers have ended, and reports progress meanwhile. */
static void pool_wait(struct batch_pool *pool, const struct worker *worker, size_t workers)
{
    pthread_mutex_lock(&pool->lock);
    while (pool->workers_running > 0) {
        int64_t until_ns = bide_now() + PROGRESS_NS;
        struct timespec until = {(time_t)(until_ns / BIDE_S), (long)(until_ns % BIDE_S)};
        if (pthread_cond_timedwait(&pool->changed, &pool->lock, &until) == 0)
            continue;
        pthread_mutex_unlock(&pool->lock);
        pool_report_progress(pool, worker, workers);
        pthread_mutex_lock(&pool->lock);
    }
    pthread_mutex_unlock(&pool->lock);
}

/* Runs the tasks with as many threads as can be created; with none, in this thread. */
static void pool_run(struct batch_pool *pool, struct worker *worker, size_t workers)
{
    size_t started = 0;
    for (size_t i = 0; i < workers; i++)
        worker[i].pool = pool;
    pool->workers_running = workers;
    while (workers > 1 && started < workers &&
           pthread_create(&worker[started].thread, NULL, worker_main, &worker[started]) == 0)
        started++;
    pthread_mutex_lock(&pool->lock);
    pool->workers_running -= workers - started;
    pthread_mutex_unlock(&pool->lock);
    if (started == 0) {
        pool->is_single = true;
        pool->workers_running = 1;
        worker_main(&worker[0]);
    } else {
        pool_wait(pool, worker, started);
    }
    for (size_t i = 0; i < started; i++)
        pthread_join(worker[i].thread, NULL);
}

uint32_t sim_batch_threads(const struct sim_scenario *scenario, const struct sim_plan *plan)
{
    uint64_t tasks = (uint64_t)sim_scenario_rows(scenario) * plan->seeds;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t threads = plan->threads > 0 ? plan->threads : cores > 0 ? (uint64_t)cores : 1;
    threads = threads < THREADS_MAX ? threads : THREADS_MAX;
    threads = threads < tasks ? threads : tasks;
    return threads > 0 ? (uint32_t)threads : 1;
}

enum sim_end sim_batch_run(struct sim_batch *batch, const struct sim_scenario *scenario, const struct sim_plan *plan,
                           const char **failed_row)
{
    struct worker *worker = NULL;
    struct batch_pool pool;
    *batch = (struct sim_batch){scenario, *plan, NULL, sim_scenario_rows(scenario)};
    size_t threads = sim_batch_threads(scenario, plan);
    if (!pool_open(&pool, batch) || (worker = calloc(threads, sizeof *worker)) == NULL)
        pool.end = SIM_END_NO_MEMORY;
    else
        pool_run(&pool, worker, threads);
    if (pool.end == SIM_END_DONE && pool.ended < pool.tasks)
        pool.end = SIM_END_STOPPED; /* stopped between two tasks */
    if (pool.end != SIM_END_DONE) {
        *failed_row = batch->rows > 0 ? sim_scenario_row(scenario, pool.failed / plan->seeds)->label : "";
        sim_batch_free(batch);
    }
    pool_close(&pool);
    free(worker);
    return pool.end;
}

void sim_batch_free(struct sim_batch *batch)
{
    if (batch == NULL || batch->row == NULL)
        return;
    for (size_t r = 0; r < batch->rows; r++) {
        sim_result_free(&batch->row[r].result);
        free(batch->row[r].figure);
    }
    free(batch->row);
    batch->row = NULL;
}

/* ---- memory ---- */

static uint64_t add_saturated(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static int compare_descending(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? 1 : a > b ? -1 : 0;
}

/* Returns the memory of a row's result, which is kept until the end. */
static uint64_t row_kept_bytes(const struct sim_world *world)
{
    uint64_t points = world->bin_ns > 0 ? (uint64_t)(world->duration_ns / world->bin_ns) + 1 : 1;
    return add_saturated(sizeof(struct sim_row_result), points * sizeof(struct sim_point));
}

/* Returns the memory of a row's values: a number for each seed and metric. */
static uint64_t row_value_bytes(const struct sim_plan *plan)
{
    uint64_t metrics = 0;
    while (sim_metric(metrics) != NULL)
        metrics++;
    return plan->seeds * metrics * sizeof(double);
}

/* Returns the memory of a run, with an allowance for the allocator and the thread's stack. */
static uint64_t run_bytes(const struct sim_world *world)
{
    uint64_t bytes = sim_world_bytes(world);
    return add_saturated(add_saturated(bytes, bytes / 8), STACK_BYTES);
}

/* Sums the memory kept for all rows and that of the largest rows that may run at the same time, each with all its
 * seeds. */
uint64_t sim_batch_bytes(const struct sim_scenario *scenario, const struct sim_plan *plan)
{
    uint32_t threads = sim_batch_threads(scenario, plan);
    uint64_t need[SIM_ROWS_MAX], bytes = threads * row_value_bytes(plan);
    size_t rows = sim_scenario_rows(scenario);
    rows = rows < SIM_ROWS_MAX ? rows : SIM_ROWS_MAX;
    for (size_t r = 0; r < rows; r++) {
        const struct sim_world *world = &sim_scenario_row(scenario, r)->world;
        need[r] = run_bytes(world);
        bytes = add_saturated(bytes, row_kept_bytes(world));
    }
    qsort(need, rows, sizeof *need, compare_descending);
    for (size_t r = 0; r < rows && threads > 0; r++)
        for (uint32_t s = 0; s < plan->seeds && threads > 0; s++, threads--)
            bytes = add_saturated(bytes, need[r]);
    return bytes;
}
