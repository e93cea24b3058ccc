/* test_command.c - a target whose gate refuses the first attempt (app/run/loop.c). The rest of run_command is tested
 * through the command line, in tests/cli/run*.bats. */
#define _GNU_SOURCE
#include "run/loop.h"

#include <bide/breaker.h>
#include <bide/clock.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static struct bide_policy policy;
static struct bide_target target;
static struct run_event last;
static unsigned events;
static char *const must_not_run[] = {(char[]){"sh"}, (char[]){"-c"}, (char[]){"kill -KILL $PPID"}, NULL};
static char *const runs[] = {(char[]){"true"}, NULL};

static void record_event(void *context, const struct run_event *event)
{
    (void)context;
    last = *event;
    events++;
}

static struct run_config config_of(char *const *command)
{
    struct bide_target_config gates;
    events = 0;
    bide_policy_init(&policy, BIDE_PRESET_COMMAND);
    bide_target_config_init(&gates, BIDE_PRESET_SERVICE);
    assert_int_equal(bide_target_init(&target, &gates, bide_now(), NULL), BIDE_OK);
    return (struct run_config){
        .policy = &policy, .target = &target, .command = command, .grace_ns = BIDE_S, .event = record_event};
}

static void open_breaker_runs_nothing_and_exits_75(void **state)
{
    struct run_config config = config_of(must_not_run);
    bide_breaker_hold(&target, BIDE_HOLD_OPEN);
    assert_int_equal(run_command(&config), RUN_EXIT_REFUSED);
    assert_int_equal(events, 1);
    assert_int_equal(last.kind, RUN_GAVE_UP);
    assert_null(last.result);
}

static void fallback_runs_after_refused_first_attempt(void **state)
{
    struct run_config config = config_of(must_not_run);
    bide_breaker_hold(&target, BIDE_HOLD_OPEN);
    config.fallback = "test $BIDE_REASON = breaker_open && exit $((BIDE_STATUS + 1))";
    assert_int_equal(run_command(&config), RUN_EXIT_REFUSED + 1);
    assert_int_equal(last.kind, RUN_FALLBACK_ENDED);
}

static void closed_breaker_lets_command_run(void **state)
{
    struct run_config config = config_of(runs);
    assert_int_equal(run_command(&config), 0);
    assert_int_equal(last.kind, RUN_SUCCEEDED);
    assert_int_equal(events, 3);
}

static void passed_deadline_runs_nothing_and_exits_124(void **state)
{
    struct run_config config = config_of(must_not_run);
    setenv("BIDE_DEADLINE_MS", "0", 1);
    assert_int_equal(run_command(&config), RUN_EXIT_TIMEOUT);
    unsetenv("BIDE_DEADLINE_MS");
    assert_int_equal(last.kind, RUN_GAVE_UP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(open_breaker_runs_nothing_and_exits_75),
        cmocka_unit_test(fallback_runs_after_refused_first_attempt),
        cmocka_unit_test(closed_breaker_lets_command_run),
        cmocka_unit_test(passed_deadline_runs_nothing_and_exits_124),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
