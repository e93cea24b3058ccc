/* test_loop.c - what the listener of the process gets of a command that is repeated (app/run/loop.c). */
#define _GNU_SOURCE
#include "run/loop.h"

#include <bide/event.h>

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char events[512]; /* "start 1, wait after 1 transient 7, ..." */
static char target[BIDE_TARGET_NAME_MAX + 1];

static void log_event(void *context, const struct bide_event *event)
{
    size_t used = strlen(events);
    (void)context;
    snprintf(target, sizeof target, "%s", event->target);
    used += (size_t)snprintf(events + used, sizeof events - used, "%s%s", used > 0 ? ", " : "",
                             bide_action_label(event->verdict->action));
    if (event->outcome != NULL)
        snprintf(events + used, sizeof events - used, " after %u %s %d", event->attempt,
                 bide_kind_label(event->outcome->kind), event->status);
    else if (event->attempt > 0)
        snprintf(events + used, sizeof events - used, " %u", event->attempt);
}

static void interrupt_wait(void *context, const struct run_event *event)
{
    (void)context;
    if (event->kind == RUN_WAITING)
        kill(getpid(), SIGTERM); /* bide reads it before it waits */
}

static void ignore_event(void *context, const struct run_event *event)
{
    (void)context;
    (void)event;
}

static int run_shell_command(const char *line, void (*event)(void *context, const struct run_event *event))
{
    static const struct bide_listener listener = {.event = log_event};
    char text[128];
    struct bide_policy policy;
    snprintf(text, sizeof text, "%s", line);
    char *const command[] = {(char[]){"sh"}, (char[]){"-c"}, text, NULL};
    struct run_config config = {.policy = &policy,
                                .target = BIDE_NO_TARGET,
                                .target_name = "backup",
                                .command = command,
                                .grace_ns = 10 * BIDE_MS,
                                .event = event,
                                .has_seed = true};
    bide_policy_init(&policy, BIDE_PRESET_COMMAND);
    policy.attempts_max = 3;
    policy.base_ns = policy.cap_ns = BIDE_MS;
    events[0] = '\0';
    assert_int_equal(bide_listen(&listener), BIDE_OK);
    int status = run_command(&config);
    bide_listen(NULL);
    return status;
}

static void each_attempt_is_reported_with_its_exit_status(void **state)
{
    (void)state;
    assert_int_equal(run_shell_command("exit $((7 * (BIDE_ATTEMPT < 2)))", ignore_event), 0);
    assert_string_equal(events, "start 1, wait after 1 transient 7, start 2, done after 2 ok 0");
    assert_string_equal(target, "backup");
}

static void a_wait_that_a_signal_ends_is_reported_as_given_up(void **state)
{
    (void)state;
    assert_int_equal(run_shell_command("exit 7", interrupt_wait), 128 + SIGTERM);
    assert_string_equal(events, "start 1, wait after 1 transient 7, give_up");
}

static void an_attempt_that_a_signal_ends_is_reported_as_cancelled(void **state)
{
    (void)state;
    assert_int_equal(run_shell_command("kill -TERM $PPID; exec sleep 1000", ignore_event), 128 + SIGTERM);
    assert_string_equal(events, "start 1, none after 1 cancelled 0, give_up");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_attempt_is_reported_with_its_exit_status),
        cmocka_unit_test(a_wait_that_a_signal_ends_is_reported_as_given_up),
        cmocka_unit_test(an_attempt_that_a_signal_ends_is_reported_as_cancelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
