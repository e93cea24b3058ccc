/* test_fetch_progress.c - what a bar says of jobs, whatever servers say of their lengths. */
#include "fetch/progress.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* The line where there is room for so many columns. */
static const char *line_of(const struct fetch_progress *p, size_t columns)
{
    static char text[FETCH_PROGRESS_SIZE];
    struct fetch_progress_look look = {.attempts_max = 4, .columns = columns, .bar = "##", .bar_columns = 4};
    fetch_progress_line(p, &look, text, sizeof text);
    return text;
}

static void one_job_tells_its_attempt_or_its_wait(void **state)
{
    struct fetch_job job = {.state = FETCH_RUNS, .attempt = 1};
    struct fetch_progress p = {0};
    fetch_progress_look(&p, &job, 1, 5 * BIDE_S);
    assert_string_equal(line_of(&p, 80), "0 B  0 B/s");
    job.attempt = 2;
    assert_string_equal(line_of(&p, 80), "attempt 2  0 B  0 B/s");
    job.state = FETCH_WAITS;
    job.wake_ns = 7 * BIDE_S;
    assert_string_equal(line_of(&p, 80), "attempt 3 of 4 in 2s  0 B  0 B/s");
}

static void several_jobs_are_counted(void **state)
{
    struct fetch_job jobs[] = {
        {.state = FETCH_OVER}, {.state = FETCH_OVER, .exit_status = 22}, {.state = FETCH_WAITS}, {0}};
    struct fetch_progress p = {0};
    fetch_progress_look(&p, jobs, 4, BIDE_S);
    assert_string_equal(line_of(&p, 80), "2 of 4 done, 1 failed, 1 waiting  0 B  0 B/s");
}

static void the_rate_follows_and_says_how_long_it_will_take(void **state)
{
    struct fetch_job job = {.state = FETCH_RUNS, .total = 100000};
    struct fetch_progress p = {0};
    fetch_progress_look(&p, &job, 1, BIDE_S);
    assert_string_equal(line_of(&p, 80), "  0% ##    0 B  0 B/s");
    job.bytes = 20000;
    fetch_progress_look(&p, &job, 1, 2 * BIDE_S);
    assert_string_equal(line_of(&p, 80), " 20% ##    20.0 kB of 100 kB  2.5 kB/s  32s left");
}

static void a_total_is_known_when_all_are(void **state)
{
    struct fetch_job jobs[] = {{.state = FETCH_OVER, .bytes = 10}, {.state = FETCH_RUNS, .total = 30}};
    struct fetch_progress p = {0};
    fetch_progress_look(&p, jobs, 2, BIDE_S);
    assert_non_null(strstr(line_of(&p, 80), " 25%"));
    jobs[1].total = 0;
    fetch_progress_look(&p, jobs, 2, 2 * BIDE_S);
    assert_null(strchr(line_of(&p, 80), '%'));
}

static void a_line_fits_by_leaving_out_what_matters_least(void **state)
{
    static const char *const lines[] = {
        "1 of 2 done, 0 failed, 1 waiting   25% ##    10 B of 40 B  1 B/s  30s left",
        "1 of 2 done, 0 failed, 1 waiting   25%  10 B of 40 B  1 B/s  30s left",
        "1 of 2 done, 0 failed, 1 waiting   25%  10 B of 40 B  1 B/s",
        "1 of 2 done, 0 failed, 1 waiting   25%  10 B of 40 B",
        "1 of 2 done, 0 failed   25%  10 B of 40 B",
        "1 of 2 done, 0 failed   25%  10 B",
        "1 of 2 done, 0 failed   25%",
        "1 of 2 done   25%",
        "1 of 2 done",
    };
    struct fetch_job jobs[] = {{.state = FETCH_OVER, .bytes = 10}, {.state = FETCH_WAITS, .total = 30}};
    struct fetch_progress p = {0};
    fetch_progress_look(&p, jobs, 2, BIDE_S);
    p.rate = 1;
    for (size_t columns = 100, i = 0; columns > 0; columns--) {
        if (strlen(lines[i]) > columns && i + 1 < sizeof lines / sizeof *lines)
            i++;
        assert_string_equal(line_of(&p, columns), lines[i]);
    }
}

static void a_bar_is_as_wide_as_it_looks(void **state)
{
    struct fetch_job job = {.state = FETCH_RUNS, .bytes = 1, .total = 2};
    struct fetch_progress p = {0};
    char text[FETCH_PROGRESS_SIZE];
    struct fetch_progress_look look = {.columns = 21, .bar = "██", .bar_columns = 4};
    fetch_progress_look(&p, &job, 1, BIDE_S);
    fetch_progress_line(&p, &look, text, sizeof text);
    assert_string_equal(text, " 50% ██    1 B  0 B/s");
}

static void lengths_that_cannot_be_are_no_trouble(void **state)
{
    struct fetch_job jobs[] = {{.state = FETCH_RUNS, .total = UINT64_MAX}, {.state = FETCH_RUNS, .total = UINT64_MAX}};
    struct fetch_progress p = {0};
    fetch_progress_look(&p, jobs, 2, BIDE_S);
    jobs[0].bytes = 8;
    fetch_progress_look(&p, jobs, 2, 2 * BIDE_S);
    assert_non_null(strstr(line_of(&p, 80), "  8 B  1 B/s"));
    jobs[0].total = jobs[1].total = INT64_MAX / 2;
    fetch_progress_look(&p, jobs, 2, 3 * BIDE_S);
    jobs[0].bytes = 1000;
    fetch_progress_look(&p, jobs, 2, 4 * BIDE_S);
    assert_non_null(strstr(line_of(&p, 200), "left"));
    jobs[0].total = jobs[1].total = 1; /* less than there is */
    fetch_progress_look(&p, jobs, 2, 5 * BIDE_S);
    assert_non_null(strstr(line_of(&p, 200), "  0 left"));
    assert_non_null(strstr(line_of(&p, 200), "  100%"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_job_tells_its_attempt_or_its_wait),
        cmocka_unit_test(several_jobs_are_counted),
        cmocka_unit_test(the_rate_follows_and_says_how_long_it_will_take),
        cmocka_unit_test(a_total_is_known_when_all_are),
        cmocka_unit_test(a_line_fits_by_leaving_out_what_matters_least),
        cmocka_unit_test(a_bar_is_as_wide_as_it_looks),
        cmocka_unit_test(lengths_that_cannot_be_are_no_trouble),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
