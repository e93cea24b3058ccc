/* test_result.c - outcome and exit status from the observations of an attempt (app/run/result.c). */
#include "run/result.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const struct bide_rule three[] = {{.first = 3, .last = 3, .kind = BIDE_KIND_TRANSIENT}};
static const struct bide_rules only_three = {.rule = three, .count = 1, .only = true};
static const struct bide_rules also_three = {.rule = three, .count = 1};

static enum bide_kind kind(struct run_result result, const struct bide_rules *rules)
{
    return run_result_outcome(&result, rules).kind;
}

static void exit_table_decides_without_rules(void **state)
{
    assert_int_equal(kind((struct run_result){.status = 0}, NULL), BIDE_KIND_OK);
    assert_int_equal(kind((struct run_result){.status = 1}, NULL), BIDE_KIND_TRANSIENT);
    assert_int_equal(kind((struct run_result){.status = 64}, NULL), BIDE_KIND_PERMANENT);
    assert_int_equal(kind((struct run_result){.status = 137, .killed = true}, NULL), BIDE_KIND_TRANSIENT);
    assert_int_equal(kind((struct run_result){.status = 143, .killed = true}, NULL), BIDE_KIND_CANCELLED);
}

static void retry_on_list_makes_other_statuses_permanent(void **state)
{
    assert_int_equal(kind((struct run_result){.status = 3}, &only_three), BIDE_KIND_TRANSIENT);
    assert_int_equal(kind((struct run_result){.status = 1}, &only_three), BIDE_KIND_PERMANENT);
    assert_int_equal(kind((struct run_result){.status = 0}, &only_three), BIDE_KIND_OK);
}

static void pattern_match_is_transient_for_any_status(void **state)
{
    for (int status = 0; status < 256; status++)
        assert_int_equal(kind((struct run_result){.status = status, .has_patterns = true, .pattern = "x"}, &only_three),
                         BIDE_KIND_TRANSIENT);
}

static void without_match_only_retry_on_list_makes_failure_transient(void **state)
{
    struct run_result one = {.status = 1, .has_patterns = true}, third = {.status = 3, .has_patterns = true};
    struct run_result success = {.status = 0, .has_patterns = true};
    assert_int_equal(kind(one, NULL), BIDE_KIND_PERMANENT);
    assert_int_equal(kind(third, &also_three), BIDE_KIND_PERMANENT);
    assert_int_equal(kind(third, &only_three), BIDE_KIND_TRANSIENT);
    assert_int_equal(kind(success, NULL), BIDE_KIND_OK);
}

static void interruption_takes_precedence_over_pattern(void **state)
{
    struct run_result e = {.status = 128 + SIGINT, .killed = true, .has_patterns = true, .pattern = "x"};
    assert_int_equal(kind(e, NULL), BIDE_KIND_CANCELLED);
}

static void timeout_is_transient_and_exits_124(void **state)
{
    struct run_result e = {.status = 128 + SIGTERM, .killed = true, .timed_out = true};
    struct bide_outcome o = run_result_outcome(&e, &only_three);
    assert_int_equal(o.kind, BIDE_KIND_TRANSIENT);
    assert_int_equal(o.flags, BIDE_FLAG_TIMED_OUT);
    assert_int_equal(run_result_exit_status(&e), 124);
    e = (struct run_result){.status = 0, .timed_out = true}; /* exited 0, but after the deadline */
    assert_int_equal(kind(e, NULL), BIDE_KIND_TRANSIENT);
    assert_int_equal(run_result_exit_status(&e), 124);
}

static void exec_failure_is_permanent_and_exits_126_or_127(void **state)
{
    struct run_result missing = {.status = 127, .exec_error = ENOENT}, forbidden = {.exec_error = EACCES};
    assert_int_equal(kind(missing, NULL), BIDE_KIND_PERMANENT);
    assert_int_equal(kind(forbidden, NULL), BIDE_KIND_PERMANENT);
    assert_int_equal(run_result_exit_status(&missing), 127);
    assert_int_equal(run_result_exit_status(&forbidden), 126);
}

static void failed_condition_makes_success_transient(void **state)
{
    struct run_result e = {.status = 0, .condition_status = 5};
    assert_int_equal(kind(e, NULL), BIDE_KIND_TRANSIENT);
    assert_int_equal(kind(e, &only_three), BIDE_KIND_TRANSIENT);
    assert_int_equal(run_result_exit_status(&e), 5);
    e.condition_status = 128 + SIGINT; /* Ctrl-C */
    assert_int_equal(kind(e, NULL), BIDE_KIND_CANCELLED);
}

static void matched_success_exits_1_and_failure_keeps_its_status(void **state)
{
    struct run_result success = {.status = 0, .pattern = "x"}, bad = {.status = 7, .pattern = "x"};
    assert_int_equal(run_result_exit_status(&success), 1);
    assert_int_equal(run_result_exit_status(&bad), 7);
}

static void stdout_without_reader_is_permanent(void **state)
{
    struct run_result e = {.status = 128 + SIGPIPE, .killed = true, .stdout_closed = true};
    assert_int_equal(kind(e, NULL), BIDE_KIND_PERMANENT);
    e.stdout_closed = false;
    assert_int_equal(kind(e, NULL), BIDE_KIND_TRANSIENT);
}

static void hint_and_spent_stdin_are_reported_only_for_failures(void **state)
{
    struct run_result e = {.status = 1, .stdin_spent = true, .hint = {BIDE_HINT_WAIT, 5 * BIDE_S}};
    struct bide_outcome o = run_result_outcome(&e, NULL);
    assert_int_equal(o.flags, BIDE_FLAG_BODY_SPENT);
    assert_int_equal(o.hint.wait_ns, 5 * BIDE_S);
    e.status = 0;
    o = run_result_outcome(&e, NULL);
    assert_int_equal(o.kind, BIDE_KIND_OK);
    assert_int_equal(o.flags, 0);
    assert_int_equal(o.hint.kind, BIDE_HINT_NONE);
}

static void death_by_signal_is_128_plus_number(void **state)
{
    assert_int_equal(run_shell_status(SIGKILL), 137); /* as waitpid reports it */
    assert_int_equal(run_shell_status(3 << 8), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exit_table_decides_without_rules),
        cmocka_unit_test(retry_on_list_makes_other_statuses_permanent),
        cmocka_unit_test(pattern_match_is_transient_for_any_status),
        cmocka_unit_test(without_match_only_retry_on_list_makes_failure_transient),
        cmocka_unit_test(interruption_takes_precedence_over_pattern),
        cmocka_unit_test(timeout_is_transient_and_exits_124),
        cmocka_unit_test(exec_failure_is_permanent_and_exits_126_or_127),
        cmocka_unit_test(failed_condition_makes_success_transient),
        cmocka_unit_test(matched_success_exits_1_and_failure_keeps_its_status),
        cmocka_unit_test(stdout_without_reader_is_permanent),
        cmocka_unit_test(hint_and_spent_stdin_are_reported_only_for_failures),
        cmocka_unit_test(death_by_signal_is_128_plus_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
