/* test_fetch_progress.c - what a bar says of jobs, whatever servers say of their lengths. */
#include "fetch/progress.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const char *state_of(const struct fetch_progress *p)
{
    static char text[256];
    size_t used = fetch_progress_state(p, text, sizeof text, 4);
    assert_int_equal(used, strlen(text));
    return text;
}

static const char *amount_of(const struct fetch_progress *p)
{
    static char text[256];
    fetch_progress_amount(p, text, sizeof text);
    return text;
}

static void one_job_tells_its_attempt_or_its_wait(void **state)
{
    struct fetch_job job = {.state = FETCH_RUNS, .attempt = 1};
    struct fetch_progress p = {0};
    fetch_progress_look(&p, &job, 1, 5 * BIDE_S);
    assert_string_equal(state_of(&p), "");
    job.attempt = 2;
    assert_string_equal(state_of(&p), "attempt 2  ");
    job.state = FETCH_WAITS;
    job.wake_ns = 7 * BIDE_S;
    assert_string_equal(state_of(&p), "attempt 3 of 4 in 2s  ");
}

static void several_jobs_are_counted(void **state)
{
    struct fetch_job jobs[] = {
        {.state = FETCH_OVER}, {.state = FETCH_OVER, .exit_status = 22}, {.state = FETCH_WAITS}, {0}};
    struct fetch_progress p = {0};
    fetch_progress_look(&p, jobs, 4, BIDE_S);
    assert_string_equal(state_of(&p), "2 of 4 done, 1 failed, 1 waiting  ");
}

static void the_rate_follows_and_says_how_long_it_will_take(void **state)
{
    struct fetch_job job = {.state = FETCH_RUNS, .total = 100000};
    struct fetch_progress p = {0};
    fetch_progress_look(&p, &job, 1, BIDE_S);
    assert_string_equal(amount_of(&p), "0 B  0 B/s");
    job.bytes = 20000;
    fetch_progress_look(&p, &job, 1, 2 * BIDE_S);
    assert_string_equal(amount_of(&p), "20.0 kB of 100 kB  2.5 kB/s  32s left");
    assert_int_equal(fetch_progress_percent(&p), 20);
}

static void a_total_is_known_when_all_are(void **state)
{
    struct fetch_job jobs[] = {{.state = FETCH_OVER, .bytes = 10}, {.state = FETCH_RUNS, .total = 30}};
    struct fetch_progress p = {0};
    fetch_progress_look(&p, jobs, 2, BIDE_S);
    assert_int_equal(fetch_progress_percent(&p), 25);
    jobs[1].total = 0;
    fetch_progress_look(&p, jobs, 2, 2 * BIDE_S);
    assert_int_equal(fetch_progress_percent(&p), 0);
}

static void lengths_that_cannot_be_are_no_trouble(void **state)
{
    struct fetch_job jobs[] = {{.state = FETCH_RUNS, .total = UINT64_MAX}, {.state = FETCH_RUNS, .total = UINT64_MAX}};
    struct fetch_progress p = {0};
    fetch_progress_look(&p, jobs, 2, BIDE_S);
    jobs[0].bytes = 8;
    fetch_progress_look(&p, jobs, 2, 2 * BIDE_S);
    assert_string_equal(amount_of(&p), "8 B  1 B/s");
    jobs[0].total = jobs[1].total = INT64_MAX / 2;
    fetch_progress_look(&p, jobs, 2, 3 * BIDE_S);
    jobs[0].bytes = 1000;
    fetch_progress_look(&p, jobs, 2, 4 * BIDE_S);
    assert_non_null(strstr(amount_of(&p), "left"));
    jobs[0].total = jobs[1].total = 1; /* less than there is */
    fetch_progress_look(&p, jobs, 2, 5 * BIDE_S);
    assert_non_null(strstr(amount_of(&p), "  0 left"));
    assert_int_equal(fetch_progress_percent(&p), 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_job_tells_its_attempt_or_its_wait),
        cmocka_unit_test(several_jobs_are_counted),
        cmocka_unit_test(the_rate_follows_and_says_how_long_it_will_take),
        cmocka_unit_test(a_total_is_known_when_all_are),
        cmocka_unit_test(lengths_that_cannot_be_are_no_trouble),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
