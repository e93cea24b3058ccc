/* test_batch.c - the batch over fake runs with known results and a controlled order of ending. */
#define _GNU_SOURCE
#include "sim/batch.h"

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- fake scenario and runs ---- */

#define ROWS_MAX 8u

static struct sim_row rows[ROWS_MAX];
static size_t row_count;
static size_t waits_for_next = SIZE_MAX; /* this row's run ends only after that of the next row */
static size_t fails_at = SIZE_MAX;
static enum sim_end fails_with;
static _Atomic bool ended[ROWS_MAX];
static _Atomic unsigned runs, plain_runs;

size_t sim_scenario_rows(const struct sim_scenario *scenario)
{
    (void)scenario;
    return row_count;
}

const struct sim_row *sim_scenario_row(const struct sim_scenario *scenario, size_t row)
{
    (void)scenario;
    return &rows[row];
}

uint64_t sim_world_bytes(const struct sim_world *world)
{
    return world->clients[0].count;
}

/* Row r with seed s has 1000 r + s calls; every third seed has no disturbance. */
enum sim_end sim_run(const struct sim_world *world, const struct sim_run_options *options, struct sim_result *result)
{
    size_t row = world->groups;
    atomic_fetch_add(&runs, 1);
    atomic_fetch_add(&plain_runs, options->plain_queue);
    for (double done = 0; row == waits_for_next && !atomic_load(&ended[row + 1]); done += done < 0.5 ? 0.1 : 0)
        if (!options->progress(options->context, done))
            return SIM_END_STOPPED;
    if (!options->progress(options->context, 1))
        return SIM_END_STOPPED;
    if (row == fails_at)
        return fails_with;
    result->seed = options->seed;
    result->calls = 1000 * row + options->seed;
    result->disturbed = options->seed % 3 != 0;
    result->recovers = true;
    result->recover_ns = (int64_t)options->seed * BIDE_S;
    result->points = 4;
    result->point = calloc(result->points, sizeof *result->point);
    result->point[0].calls = options->seed;
    atomic_store(&ended[row], true);
    return SIM_END_DONE;
}

static void make_rows(size_t count)
{
    memset(rows, 0, sizeof rows);
    row_count = count;
    for (size_t r = 0; r < ROWS_MAX; r++) {
        snprintf(rows[r].label, sizeof rows[r].label, "row %zu", r);
        rows[r].world.groups = (uint32_t)r;
        atomic_store(&ended[r], false);
    }
    waits_for_next = fails_at = SIZE_MAX;
    runs = plain_runs = 0;
}

static const struct sim_figure *figure(const struct sim_batch *batch, size_t row, const char *metric)
{
    size_t m = sim_metric_find(metric, strlen(metric));
    assert_true(m != SIZE_MAX);
    return &batch->row[row].figure[m];
}

static void assert_near(double value, double expected)
{
    if (!(fabs(value - expected) < 1e-5 * (1 + fabs(expected))))
        fail_msg("%.9g instead of %.9g", value, expected);
}

/* ---- figures ---- */

static void single_seed_has_no_interval(void **state)
{
    struct sim_batch batch;
    const char *failed_row;
    make_rows(2);
    assert_int_equal(sim_batch_run(&batch, NULL, &(struct sim_plan){.seed = 7, .seeds = 1, .threads = 1}, &failed_row),
                     0);
    assert_near(figure(&batch, 1, "calls")->mean, 1007);
    assert_true(figure(&batch, 1, "calls")->half == 0);
    assert_int_equal(figure(&batch, 1, "calls")->count, 1);
    assert_int_equal(batch.row[1].result.seed, 7);
    sim_batch_free(&batch);
}

static void several_seeds_have_mean_extremes_and_student_t_interval(void **state)
{
    struct sim_batch batch;
    const char *failed_row;
    make_rows(1);
    /* 11 ... 15: mean 13, deviation sqrt(2.5); t(4) = 2.77645 */
    assert_int_equal(sim_batch_run(&batch, NULL, &(struct sim_plan){.seed = 11, .seeds = 5, .threads = 1}, &failed_row),
                     0);
    const struct sim_figure *f = figure(&batch, 0, "calls");
    assert_near(f->mean, 13);
    assert_near(f->min, 11);
    assert_near(f->max, 15);
    assert_near(f->half, 2.77645 * sqrt(2.5 / 5));
    assert_int_equal(f->count, 5);
    sim_batch_free(&batch);
}

static void interval_beyond_the_table_uses_the_series(void **state)
{
    struct sim_batch batch;
    const char *failed_row;
    make_rows(1);
    /* 1 ... 31: deviation sqrt(n (n + 1) / 12); t(30) = 2.04227 */
    assert_int_equal(sim_batch_run(&batch, NULL, &(struct sim_plan){.seed = 1, .seeds = 31, .threads = 1}, &failed_row),
                     0);
    assert_near(figure(&batch, 0, "calls")->half, 2.04227 * sqrt(31.0 * 32 / 12 / 31));
    sim_batch_free(&batch);
    /* 22 seeds: the first beyond the table; t(21) = 2.07961 */
    make_rows(1);
    assert_int_equal(sim_batch_run(&batch, NULL, &(struct sim_plan){.seed = 1, .seeds = 22, .threads = 1}, &failed_row),
                     0);
    assert_near(figure(&batch, 0, "calls")->half, 2.07961 * sqrt(22.0 * 23 / 12 / 22));
    sim_batch_free(&batch);
}

static void mean_ignores_seeds_without_a_value(void **state)
{
    struct sim_batch batch;
    const char *failed_row;
    make_rows(1);
    assert_int_equal(sim_batch_run(&batch, NULL, &(struct sim_plan){.seed = 1, .seeds = 3, .threads = 1}, &failed_row),
                     0);
    assert_near(figure(&batch, 0, "recover_s")->mean, 1.5);
    assert_int_equal(figure(&batch, 0, "recover_s")->count, 2);
    assert_true(isnan(figure(&batch, 0, "latency_p99_ms")->mean));
    assert_int_equal(figure(&batch, 0, "latency_p99_ms")->count, 0);
    sim_batch_free(&batch);
}

static void only_the_first_seed_keeps_its_series(void **state)
{
    struct sim_batch batch;
    const char *failed_row;
    make_rows(3);
    assert_int_equal(sim_batch_run(&batch, NULL, &(struct sim_plan){.seed = 5, .seeds = 4, .threads = 2}, &failed_row),
                     0);
    for (size_t r = 0; r < 3; r++) {
        assert_int_equal(batch.row[r].result.seed, 5);
        assert_int_equal(batch.row[r].result.point[0].calls, 5);
    }
    assert_int_equal(runs, 12);
    sim_batch_free(&batch); /* the leak sanitizer checks the other seeds */
}

/* ---- threads ---- */

static void figures_do_not_depend_on_threads_or_their_speed(void **state)
{
    struct sim_batch one, four;
    const char *failed_row;
    size_t metrics = 0;
    while (sim_metric(metrics) != NULL)
        metrics++;
    make_rows(6);
    assert_int_equal(sim_batch_run(&one, NULL, &(struct sim_plan){.seed = 3, .seeds = 9, .threads = 1}, &failed_row),
                     0);
    make_rows(6);
    waits_for_next = 0; /* all its seeds end after those of row 1; there are enough threads for both */
    assert_int_equal(sim_batch_run(&four, NULL, &(struct sim_plan){.seed = 3, .seeds = 9, .threads = 12}, &failed_row),
                     0);
    for (size_t r = 0; r < 6; r++)
        assert_memory_equal(one.row[r].figure, four.row[r].figure, metrics * sizeof(struct sim_figure));
    sim_batch_free(&one);
    sim_batch_free(&four);
}

static void threads_do_not_exceed_runs(void **state)
{
    make_rows(2);
    assert_int_equal(sim_batch_threads(NULL, &(struct sim_plan){.seeds = 1, .threads = 64}), 2);
    assert_int_equal(sim_batch_threads(NULL, &(struct sim_plan){.seeds = 100, .threads = 64}), 64);
    assert_true(sim_batch_threads(NULL, &(struct sim_plan){.seeds = 100}) >= 1);
}

static void batch_passes_the_reference_queue_to_runs(void **state)
{
    struct sim_batch batch;
    const char *failed_row;
    make_rows(2);
    struct sim_plan plan = {.seeds = 2, .threads = 1, .plain_queue = true};
    assert_int_equal(sim_batch_run(&batch, NULL, &plan, &failed_row), 0);
    assert_int_equal(plain_runs, 4);
    sim_batch_free(&batch);
}

/* ---- stopping and failing ---- */

struct watcher {
    pthread_t thread;
    unsigned calls;
    double done;
};

static bool stop_at_third_call(void *context, double done)
{
    struct watcher *w = context;
    assert_true(pthread_equal(pthread_self(), w->thread));
    assert_true(done >= w->done && done <= 1);
    w->done = done;
    return ++w->calls < 3;
}

static void progress_is_called_in_the_calling_thread_and_can_stop_all_runs(void **state)
{
    for (uint32_t threads = 1; threads <= 3; threads++) {
        struct sim_batch batch;
        const char *failed_row;
        struct watcher watcher = {.thread = pthread_self()};
        make_rows(1);
        waits_for_next = 0; /* there is no next row: the run would never end */
        struct sim_plan plan = {.seeds = 3, .threads = threads, .progress = stop_at_third_call, .context = &watcher};
        assert_int_equal(sim_batch_run(&batch, NULL, &plan, &failed_row), SIM_END_STOPPED);
        assert_int_equal(watcher.calls, 3);
        assert_null(batch.row);
    }
}

static void failed_row_is_named_and_no_run_begins_after_it(void **state)
{
    struct sim_batch batch;
    const char *failed_row = NULL;
    make_rows(5);
    fails_at = 2;
    fails_with = SIM_END_ENDLESS;
    struct sim_plan plan = {.seeds = 10, .threads = 1};
    assert_int_equal(sim_batch_run(&batch, NULL, &plan, &failed_row), SIM_END_ENDLESS);
    assert_string_equal(failed_row, "row 2");
    assert_int_equal(runs, 21);
    assert_null(batch.row);
    plan.threads = 4;
    fails_with = SIM_END_NO_MEMORY;
    assert_int_equal(sim_batch_run(&batch, NULL, &plan, &failed_row), SIM_END_NO_MEMORY);
    assert_string_equal(failed_row, "row 2");
    sim_batch_free(&batch);
    sim_batch_free(NULL);
}

/* ---- memory ---- */

static void memory_estimate_adds_the_largest_rows_that_run_together(void **state)
{
    make_rows(3);
    rows[0].world.clients[0].count = 1000000000;
    rows[1].world.clients[0].count = 4000000000;
    rows[2].world.clients[0].count = 2000000000;
    uint64_t one = sim_batch_bytes(NULL, &(struct sim_plan){.seeds = 1, .threads = 1});
    uint64_t two = sim_batch_bytes(NULL, &(struct sim_plan){.seeds = 1, .threads = 2});
    uint64_t both = sim_batch_bytes(NULL, &(struct sim_plan){.seeds = 2, .threads = 2});
    /* An eighth and a stack are added for each run. */
    assert_true(one >= 4500000000 && one < 4520000000);
    assert_true(two - one >= 2250000000 && two - one < 2270000000);
    assert_true(both - one >= 4500000000 && both - one < 4520000000);
    rows[1].world.clients[0].count = UINT64_MAX;
    assert_true(sim_batch_bytes(NULL, &(struct sim_plan){.seeds = 2, .threads = 2}) == UINT64_MAX);
}

static char root[64];

static void write_file(const char *path, const char *text)
{
    char whole[256];
    snprintf(whole, sizeof whole, "%s/%s", root, path);
    for (char *slash = whole + strlen(root) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        mkdir(whole, 0700);
        *slash = '/';
    }
    FILE *file = fopen(whole, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int make_root(void **state)
{
    snprintf(root, sizeof root, "/tmp/test_sim_batch.XXXXXX");
    return mkdtemp(root) == NULL;
}

static int remove_root(void **state)
{
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", root);
    return system(command);
}

static void system_without_proc_files_has_no_known_limit(void **state)
{
    assert_true(sim_memory_available_under(root) == UINT64_MAX);
}

static void available_memory_is_the_least_of_system_and_control_groups(void **state)
{
    write_file("proc/meminfo", "MemTotal:  9000000 kB\nMemAvailable:  8000000 kB\n");
    assert_int_equal(sim_memory_available_under(root), 8000000 * UINT64_C(1024));
    write_file("proc/self/cgroup", "0::/a/b\n");
    write_file("sys/fs/cgroup/a/b/memory.max", "max\n");
    write_file("sys/fs/cgroup/a/b/memory.current", "100\n");
    assert_int_equal(sim_memory_available_under(root), 8000000 * UINT64_C(1024));
    write_file("sys/fs/cgroup/a/memory.max", "500000000\n"); /* of the parent group */
    write_file("sys/fs/cgroup/a/memory.current", "200000000\n");
    assert_int_equal(sim_memory_available_under(root), 300000000);
    write_file("sys/fs/cgroup/a/memory.stat", "anon 5\ninactive_file 50000000\n"); /* can be reclaimed */
    assert_int_equal(sim_memory_available_under(root), 350000000);
    write_file("sys/fs/cgroup/a/b/memory.max", "50\n"); /* usage above the maximum: nothing is left */
    assert_int_equal(sim_memory_available_under(root), 0);
}

static void control_groups_v1_limit_available_memory(void **state)
{
    write_file("proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/c\n0::/\n");
    write_file("sys/fs/cgroup/memory/c/memory.limit_in_bytes", "700000000\n");
    write_file("sys/fs/cgroup/memory/c/memory.usage_in_bytes", "100000000\n");
    assert_int_equal(sim_memory_available_under(root), 600000000);
}

/* Uses very high limits, which do not disturb the test itself. */
static void rlimits_limit_available_memory(void **state)
{
    const rlim_t far = (rlim_t)1 << 50;
    const struct rlimit space = {far, RLIM_INFINITY}, data = {far / 2, RLIM_INFINITY};
    struct rlimit space_before, data_before;
    getrlimit(RLIMIT_AS, &space_before);
    getrlimit(RLIMIT_DATA, &data_before);
    if (space_before.rlim_max != RLIM_INFINITY || data_before.rlim_max != RLIM_INFINITY)
        return; /* the tests already run under a limit */
    write_file("proc/self/status", "Name: t\nVmSize:    1000 kB\nVmData:     500 kB\n");
    setrlimit(RLIMIT_AS, &space);
    uint64_t by_space = sim_memory_available_under(root);
    setrlimit(RLIMIT_DATA, &data);
    uint64_t by_data = sim_memory_available_under(root);
    setrlimit(RLIMIT_AS, &space_before);
    setrlimit(RLIMIT_DATA, &data_before);
    assert_int_equal(by_space, (far - 1000 * 1024) / 4 * 3); /* address space: a quarter is reserved for gaps between
                                                              * chunks */
    assert_int_equal(by_data, far / 2 - 500 * 1024);
}

static void this_machine_has_some_memory(void **state)
{
    assert_true(sim_memory_available() > 1000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(single_seed_has_no_interval),
        cmocka_unit_test(several_seeds_have_mean_extremes_and_student_t_interval),
        cmocka_unit_test(interval_beyond_the_table_uses_the_series),
        cmocka_unit_test(mean_ignores_seeds_without_a_value),
        cmocka_unit_test(only_the_first_seed_keeps_its_series),
        cmocka_unit_test(figures_do_not_depend_on_threads_or_their_speed),
        cmocka_unit_test(threads_do_not_exceed_runs),
        cmocka_unit_test(batch_passes_the_reference_queue_to_runs),
        cmocka_unit_test(progress_is_called_in_the_calling_thread_and_can_stop_all_runs),
        cmocka_unit_test(failed_row_is_named_and_no_run_begins_after_it),
        cmocka_unit_test(memory_estimate_adds_the_largest_rows_that_run_together),
        cmocka_unit_test_setup_teardown(system_without_proc_files_has_no_known_limit, make_root, remove_root),
        cmocka_unit_test_setup_teardown(available_memory_is_the_least_of_system_and_control_groups, make_root,
                                        remove_root),
        cmocka_unit_test_setup_teardown(control_groups_v1_limit_available_memory, make_root, remove_root),
        cmocka_unit_test_setup_teardown(rlimits_limit_available_memory, make_root, remove_root),
        cmocka_unit_test(this_machine_has_some_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
