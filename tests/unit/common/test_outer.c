/* test_outer.c - the variables that an outer bide sets for a nested one (app/common/outer.c). */
#define _GNU_SOURCE
#include "common/outer.h"

#include <bide/base.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void attempt_and_deadline_of_outer_bide_are_taken(void **state)
{
    (void)state;
    setenv("BIDE_ATTEMPT", "3", 1);
    setenv("BIDE_DEADLINE_MS", "1500", 1);
    struct cli_outer outer = cli_outer_read(BIDE_S);
    assert_int_equal(outer.attempt, 3);
    assert_int_equal(outer.deadline_ns, BIDE_S + 1500 * BIDE_MS);
    assert_string_equal(outer.ignored[0], "");
    assert_string_equal(outer.ignored[1], "");
}

static void nothing_is_taken_without_an_outer_bide(void **state)
{
    (void)state;
    unsetenv("BIDE_ATTEMPT");
    unsetenv("BIDE_DEADLINE_MS");
    struct cli_outer outer = cli_outer_read(BIDE_S);
    assert_int_equal(outer.attempt, 0);
    assert_int_equal(outer.deadline_ns, 0);
    assert_string_equal(outer.ignored[0], "");
}

static void invalid_value_is_ignored_and_reported(void **state)
{
    (void)state;
    static const char *const invalid[] = {"", "0", "-1", "+1", " 1", "1x", "4294967296", "99999999999999999999"};
    for (size_t i = 0; i < sizeof invalid / sizeof *invalid; i++) {
        setenv("BIDE_ATTEMPT", invalid[i], 1);
        assert_int_equal(cli_outer_read(BIDE_S).attempt, 0);
    }
    setenv("BIDE_ATTEMPT", "abc", 1);
    setenv("BIDE_DEADLINE_MS", "9223372036854775807", 1);
    struct cli_outer outer = cli_outer_read(BIDE_S);
    assert_string_equal(outer.ignored[0],
                        "BIDE_ATTEMPT=abc: must be a whole number from 1 to 4294967295; it is ignored");
    assert_non_null(outer.ignored[1]);
    assert_int_equal(outer.ignored[1][0], 'B');
    assert_int_equal(outer.deadline_ns, 0);
}

static void variables_of_a_bide_that_has_ended_are_ignored(void **state)
{
    (void)state;
    char self[CLI_OUTER_SIZE], reused[CLI_OUTER_SIZE];
    setenv("BIDE_ATTEMPT", "3", 1);
    unsetenv("BIDE_DEADLINE_MS");
    assert_true(cli_outer_describe_self(self));
    setenv("BIDE_OUTER", self, 1);
    assert_int_equal(cli_outer_read(BIDE_S).attempt, 3);
    /* Another process has the number now: it started at another time. */
    snprintf(reused, sizeof reused, "%d:1", (int)getpid());
    const char *const ended[] = {reused, "0:0", "4294967295:77", "", ":", "1", "1:", "x:1", "-1:1", "1:1:1"};
    for (size_t i = 0; i < sizeof ended / sizeof *ended; i++) {
        setenv("BIDE_OUTER", ended[i], 1);
        assert_false(cli_outer_is_alive());
        assert_int_equal(cli_outer_read(BIDE_S).attempt, 0);
    }
    unsetenv("BIDE_OUTER");
    assert_int_equal(cli_outer_read(BIDE_S).attempt, 3);
}

/* A zombie has ended, too, although its parent may never wait for it. */
static void variables_of_a_zombie_are_ignored(void **state)
{
    (void)state;
    int self[2];
    siginfo_t info;
    char text[CLI_OUTER_SIZE] = "";
    assert_int_equal(pipe(self), 0);
    pid_t child = fork();
    if (child == 0)
        _exit(!cli_outer_describe_self(text) || write(self[1], text, sizeof text) < 0);
    assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(read(self[0], text, sizeof text), sizeof text);
    close(self[0]);
    close(self[1]);
    setenv("BIDE_OUTER", text, 1);
    assert_false(cli_outer_is_alive());
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_false(cli_outer_is_alive());
    unsetenv("BIDE_OUTER");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attempt_and_deadline_of_outer_bide_are_taken),
        cmocka_unit_test(nothing_is_taken_without_an_outer_bide),
        cmocka_unit_test(invalid_value_is_ignored_and_reported),
        cmocka_unit_test(variables_of_a_bide_that_has_ended_are_ignored),
        cmocka_unit_test(variables_of_a_zombie_are_ignored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
