/* test_run_judge.c - from what was seen of an attempt to an outcome and an exit status (app/run/result.c). */
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

static enum bide_kind kind(struct run_ending ending, const struct bide_rules *rules)
{
    return run_judge(&ending, rules).kind;
}

static void without_rules_the_table_decides(void **state)
{
    assert_int_equal(kind((struct run_ending){.status = 0}, NULL), BIDE_KIND_OK);
    assert_int_equal(kind((struct run_ending){.status = 1}, NULL), BIDE_KIND_TRANSIENT);
    assert_int_equal(kind((struct run_ending){.status = 64}, NULL), BIDE_KIND_PERMANENT);
    assert_int_equal(kind((struct run_ending){.status = 137, .killed = true}, NULL), BIDE_KIND_TRANSIENT);
    assert_int_equal(kind((struct run_ending){.status = 143, .killed = true}, NULL), BIDE_KIND_CANCELLED);
}

static void a_list_to_retry_makes_all_else_permanent(void **state)
{
    assert_int_equal(kind((struct run_ending){.status = 3}, &only_three), BIDE_KIND_TRANSIENT);
    assert_int_equal(kind((struct run_ending){.status = 1}, &only_three), BIDE_KIND_PERMANENT);
    assert_int_equal(kind((struct run_ending){.status = 0}, &only_three), BIDE_KIND_OK);
}

static void a_match_is_transient_whatever_the_status(void **state)
{
    for (int status = 0; status < 256; status++)
        assert_int_equal(kind((struct run_ending){.status = status, .patterns = true, .pattern = "x"}, &only_three),
                         BIDE_KIND_TRANSIENT);
}

static void without_a_match_only_a_list_makes_a_failure_transient(void **state)
{
    struct run_ending one = {.status = 1, .patterns = true}, third = {.status = 3, .patterns = true};
    struct run_ending fine = {.status = 0, .patterns = true};
    assert_int_equal(kind(one, NULL), BIDE_KIND_PERMANENT);
    assert_int_equal(kind(third, &also_three), BIDE_KIND_PERMANENT);
    assert_int_equal(kind(third, &only_three), BIDE_KIND_TRANSIENT);
    assert_int_equal(kind(fine, NULL), BIDE_KIND_OK);
}

static void somebody_who_interrupts_it_is_heard_before_a_pattern(void **state)
{
    struct run_ending e = {.status = 128 + SIGINT, .killed = true, .patterns = true, .pattern = "x"};
    assert_int_equal(kind(e, NULL), BIDE_KIND_CANCELLED);
}

static void time_that_ran_out_is_transient_and_exits_124(void **state)
{
    struct run_ending e = {.status = 128 + SIGTERM, .killed = true, .cut = true};
    struct bide_outcome o = run_judge(&e, &only_three);
    assert_int_equal(o.kind, BIDE_KIND_TRANSIENT);
    assert_int_equal(o.flags, BIDE_FLAG_TIMED_OUT);
    assert_int_equal(run_exit_status(&e), 124);
    e = (struct run_ending){.status = 0, .cut = true}; /* it ended well, but too late */
    assert_int_equal(kind(e, NULL), BIDE_KIND_TRANSIENT);
    assert_int_equal(run_exit_status(&e), 124);
}

static void what_cannot_be_started_is_permanent_and_exits_as_a_shell_does(void **state)
{
    struct run_ending missing = {.status = 127, .start_error = ENOENT}, forbidden = {.start_error = EACCES};
    assert_int_equal(kind(missing, NULL), BIDE_KIND_PERMANENT);
    assert_int_equal(kind(forbidden, NULL), BIDE_KIND_PERMANENT);
    assert_int_equal(run_exit_status(&missing), 127);
    assert_int_equal(run_exit_status(&forbidden), 126);
}

static void a_condition_that_fails_makes_a_success_transient(void **state)
{
    struct run_ending e = {.status = 0, .condition = 5};
    assert_int_equal(kind(e, NULL), BIDE_KIND_TRANSIENT);
    assert_int_equal(kind(e, &only_three), BIDE_KIND_TRANSIENT);
    assert_int_equal(run_exit_status(&e), 5);
    e.condition = 128 + SIGINT; /* Ctrl-C */
    assert_int_equal(kind(e, NULL), BIDE_KIND_CANCELLED);
}

static void a_success_that_matched_exits_1_and_a_failure_with_its_own(void **state)
{
    struct run_ending fine = {.status = 0, .pattern = "x"}, bad = {.status = 7, .pattern = "x"};
    assert_int_equal(run_exit_status(&fine), 1);
    assert_int_equal(run_exit_status(&bad), 7);
}

static void output_that_nobody_reads_is_no_reason_to_try_again(void **state)
{
    struct run_ending e = {.status = 128 + SIGPIPE, .killed = true, .output_gone = true};
    assert_int_equal(kind(e, NULL), BIDE_KIND_PERMANENT);
    e.output_gone = false;
    assert_int_equal(kind(e, NULL), BIDE_KIND_TRANSIENT);
}

static void hints_and_spent_input_go_with_failures_only(void **state)
{
    struct run_ending e = {.status = 1, .input_spent = true, .hint = {BIDE_HINT_WAIT, 5 * BIDE_S}};
    struct bide_outcome o = run_judge(&e, NULL);
    assert_int_equal(o.flags, BIDE_FLAG_BODY_SPENT);
    assert_int_equal(o.hint.wait_ns, 5 * BIDE_S);
    e.status = 0;
    o = run_judge(&e, NULL);
    assert_int_equal(o.kind, BIDE_KIND_OK);
    assert_int_equal(o.flags, 0);
    assert_int_equal(o.hint.kind, BIDE_HINT_NONE);
}

static void death_by_a_signal_is_128_and_its_number(void **state)
{
    assert_int_equal(run_shell_status(SIGKILL), 137); /* as wait reports it */
    assert_int_equal(run_shell_status(3 << 8), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_rules_the_table_decides),
        cmocka_unit_test(a_list_to_retry_makes_all_else_permanent),
        cmocka_unit_test(a_match_is_transient_whatever_the_status),
        cmocka_unit_test(without_a_match_only_a_list_makes_a_failure_transient),
        cmocka_unit_test(somebody_who_interrupts_it_is_heard_before_a_pattern),
        cmocka_unit_test(time_that_ran_out_is_transient_and_exits_124),
        cmocka_unit_test(what_cannot_be_started_is_permanent_and_exits_as_a_shell_does),
        cmocka_unit_test(a_condition_that_fails_makes_a_success_transient),
        cmocka_unit_test(a_success_that_matched_exits_1_and_a_failure_with_its_own),
        cmocka_unit_test(output_that_nobody_reads_is_no_reason_to_try_again),
        cmocka_unit_test(hints_and_spent_input_go_with_failures_only),
        cmocka_unit_test(death_by_a_signal_is_128_and_its_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
