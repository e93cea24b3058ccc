/* test_progress.c - the progress line, whatever lengths servers announce. */
#include "fetch/progress.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* Returns the line for a terminal of this width. */
static const char *line_of(const struct fetch_progress *p, size_t columns)
{
    static char text[FETCH_PROGRESS_SIZE];
    struct fetch_progress_layout layout = {.attempts_max = 4, .columns = columns, .bar = "##", .bar_columns = 4};
    fetch_progress_line(p, &layout, text, sizeof text);
    return text;
}

static void single_job_shows_attempt_or_wait(void **state)
{
    struct fetch_job job = {.state = FETCH_JOB_RUNNING, .attempt = 1};
    struct fetch_progress p = {0};
    fetch_progress_update(&p, &job, 1, 5 * BIDE_S);
    assert_string_equal(line_of(&p, 80), "0 B  0 B/s");
    job.attempt = 2;
    assert_string_equal(line_of(&p, 80), "attempt 2  0 B  0 B/s");
    job.state = FETCH_JOB_WAITING;
    job.wake_ns = 7 * BIDE_S;
    assert_string_equal(line_of(&p, 80), "attempt 3 of 4 in 2s  0 B  0 B/s");
}

static void several_jobs_are_counted_by_state(void **state)
{
    struct fetch_job jobs[] = {
        {.state = FETCH_JOB_ENDED}, {.state = FETCH_JOB_ENDED, .exit_status = 22}, {.state = FETCH_JOB_WAITING}, {0}};
    struct fetch_progress p = {0};
    fetch_progress_update(&p, jobs, 4, BIDE_S);
    assert_string_equal(line_of(&p, 80), "2 of 4 done, 1 failed, 1 waiting  0 B  0 B/s");
}

static void rate_is_smoothed_and_gives_remaining_time(void **state)
{
    struct fetch_job job = {.state = FETCH_JOB_RUNNING, .total = 100000};
    struct fetch_progress p = {0};
    fetch_progress_update(&p, &job, 1, BIDE_S);
    assert_string_equal(line_of(&p, 80), "  0% ##    0 B  0 B/s");
    job.bytes = 20000;
    fetch_progress_update(&p, &job, 1, 2 * BIDE_S);
    assert_string_equal(line_of(&p, 80), " 20% ##    20.0 kB of 100 kB  2.5 kB/s  32s left");
}

static void total_is_known_only_if_all_lengths_are(void **state)
{
    struct fetch_job jobs[] = {{.state = FETCH_JOB_ENDED, .bytes = 10}, {.state = FETCH_JOB_RUNNING, .total = 30}};
    struct fetch_progress p = {0};
    fetch_progress_update(&p, jobs, 2, BIDE_S);
    assert_non_null(strstr(line_of(&p, 80), " 25%"));
    jobs[1].total = 0;
    fetch_progress_update(&p, jobs, 2, 2 * BIDE_S);
    assert_null(strchr(line_of(&p, 80), '%'));
}

static void line_fits_by_dropping_least_important_part(void **state)
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
    struct fetch_job jobs[] = {{.state = FETCH_JOB_ENDED, .bytes = 10}, {.state = FETCH_JOB_WAITING, .total = 30}};
    struct fetch_progress p = {0};
    fetch_progress_update(&p, jobs, 2, BIDE_S);
    p.rate = 1;
    for (size_t columns = 100, i = 0; columns > 0; columns--) {
        if (strlen(lines[i]) > columns && i + 1 < sizeof lines / sizeof *lines)
            i++;
        assert_string_equal(line_of(&p, columns), lines[i]);
    }
}

static void bar_width_counts_characters_not_bytes(void **state)
{
    struct fetch_job job = {.state = FETCH_JOB_RUNNING, .bytes = 1, .total = 2};
    struct fetch_progress p = {0};
    char text[FETCH_PROGRESS_SIZE];
    struct fetch_progress_layout layout = {.columns = 21, .bar = "██", .bar_columns = 4};
    fetch_progress_update(&p, &job, 1, BIDE_S);
    fetch_progress_line(&p, &layout, text, sizeof text);
    assert_string_equal(text, " 50% ██    1 B  0 B/s");
}

static void impossible_lengths_are_harmless(void **state)
{
    struct fetch_job jobs[] = {{.state = FETCH_JOB_RUNNING, .total = UINT64_MAX},
                               {.state = FETCH_JOB_RUNNING, .total = UINT64_MAX}};
    struct fetch_progress p = {0};
    fetch_progress_update(&p, jobs, 2, BIDE_S);
    jobs[0].bytes = 8;
    fetch_progress_update(&p, jobs, 2, 2 * BIDE_S);
    assert_non_null(strstr(line_of(&p, 80), "  8 B  1 B/s"));
    jobs[0].total = jobs[1].total = INT64_MAX / 2;
    fetch_progress_update(&p, jobs, 2, 3 * BIDE_S);
    jobs[0].bytes = 1000;
    fetch_progress_update(&p, jobs, 2, 4 * BIDE_S);
    assert_non_null(strstr(line_of(&p, 200), "left"));
    jobs[0].total = jobs[1].total = 1; /* less than already received */
    fetch_progress_update(&p, jobs, 2, 5 * BIDE_S);
    assert_non_null(strstr(line_of(&p, 200), "  0 left"));
    assert_non_null(strstr(line_of(&p, 200), "  100%"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(single_job_shows_attempt_or_wait),
        cmocka_unit_test(several_jobs_are_counted_by_state),
        cmocka_unit_test(rate_is_smoothed_and_gives_remaining_time),
        cmocka_unit_test(total_is_known_only_if_all_lengths_are),
        cmocka_unit_test(line_fits_by_dropping_least_important_part),
        cmocka_unit_test(bar_width_counts_characters_not_bytes),
        cmocka_unit_test(impossible_lengths_are_harmless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
