/* test_faults.c - system calls and searches that fail while `bide run` runs a command (app/run/loop.c): bide reports
 * the failure and exits 125, never 0, and never waits for ever.
 *
 * The functions below replace those of libc in this program; each fails if its switch is set. */
#define _GNU_SOURCE
#include "run/loop.h"

#include <bide/clock.h>

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct {
    bool search, read_pipe, wait, timer, poll;
} fails;

#define ORIGINAL(name) ((__typeof__(&(name)))(uintptr_t)dlsym(RTLD_NEXT, #name))

regoff_t re_search(struct re_pattern_buffer *buffer, const char *string, regoff_t length, regoff_t start,
                   regoff_t range, struct re_registers *registers)
{
    return fails.search ? -2 : ORIGINAL(re_search)(buffer, string, length, start, range, registers);
}

ssize_t read(int fd, void *bytes, size_t size)
{
    struct stat status;
    if (fails.read_pipe && fstat(fd, &status) == 0 && S_ISFIFO(status.st_mode) && size > sizeof(int)) {
        errno = EIO;
        return -1;
    }
    return ORIGINAL(read)(fd, bytes, size);
}

pid_t waitpid(pid_t pid, int *status, int options)
{
    errno = ECHILD;
    return fails.wait ? -1 : ORIGINAL(waitpid)(pid, status, options);
}

int timerfd_settime(int fd, int flags, const struct itimerspec *new_time, struct itimerspec *old_time)
{
    errno = EINVAL;
    return fails.timer ? -1 : ORIGINAL(timerfd_settime)(fd, flags, new_time, old_time);
}

int poll(struct pollfd *set, nfds_t count, int timeout)
{
    errno = ENOMEM;
    return fails.poll ? -1 : ORIGINAL(poll)(set, count, timeout);
}

/* ---- the call ---- */

static struct bide_policy policy;
static struct run_patterns patterns;
static bool patterns_are_of_stdout;
static char error_text[256];
static enum run_event_kind last;

static void record_event(void *context, const struct run_event *event)
{
    (void)context;
    last = event->kind;
    if (event->kind == RUN_ERROR)
        snprintf(error_text, sizeof error_text, "%s", event->text);
}

static int run_shell_command(const char *line, const char *pattern, uint32_t attempts)
{
    char text[128];
    snprintf(text, sizeof text, "%s", line);
    char *const command[] = {(char[]){"sh"}, (char[]){"-c"}, text, NULL};
    struct run_config config = {.policy = &policy,
                                .target = BIDE_NO_TARGET,
                                .command = command,
                                .grace_ns = 10 * BIDE_MS,
                                .event = record_event,
                                .has_seed = true};
    bide_policy_init(&policy, BIDE_PRESET_COMMAND);
    policy.attempts_max = attempts;
    policy.base_ns = policy.cap_ns = BIDE_MS;
    error_text[0] = '\0';
    run_patterns_free(&patterns);
    if (pattern != NULL) {
        assert_null(run_patterns_add(&patterns, pattern));
        *(patterns_are_of_stdout ? &config.stdout_patterns : &config.stderr_patterns) = &patterns;
    }
    int status = run_command(&config);
    memset(&fails, 0, sizeof fails);
    return status;
}

static void failed_search_is_no_success(void **state)
{
    (void)state;
    fails.search = true;
    assert_int_equal(run_shell_command("echo busy >&2", "busy", 1), RUN_EXIT_INTERNAL);
    assert_string_equal(error_text, "cannot search stderr for a pattern: Cannot allocate memory");
    assert_int_equal(run_shell_command("echo busy >&2", "busy", 1), 1);
    assert_int_equal(run_shell_command("echo fine >&2", "busy", 1), 0);
}

static void unreadable_output_is_no_success(void **state)
{
    (void)state;
    fails.read_pipe = true;
    assert_int_equal(run_shell_command("echo busy >&2", "busy", 1), RUN_EXIT_INTERNAL);
    assert_string_equal(error_text, "cannot read the command's stderr: Input/output error");
}

static struct bide_verdict last_verdict;

static void record_verdict(void *context, const struct bide_event *event)
{
    (void)context;
    last_verdict = *event->verdict;
}

static void a_call_that_bide_itself_fails_is_cancelled(void **state)
{
    static const struct bide_listener listener = {.event = record_verdict};
    (void)state;
    fails.read_pipe = true;
    assert_int_equal(bide_listen(&listener), BIDE_OK);
    assert_int_equal(run_shell_command("echo busy >&2", "busy", 1), RUN_EXIT_INTERNAL);
    bide_listen(NULL);
    assert_int_equal(last_verdict.action, BIDE_ACTION_GIVE_UP);
    assert_int_equal(last_verdict.reason, BIDE_REASON_CANCELLED);
}

static void search_and_read_of_stdout_fail_as_those_of_stderr(void **state)
{
    (void)state;
    patterns_are_of_stdout = true;
    fails.search = true;
    assert_int_equal(run_shell_command("echo busy", "busy", 1), RUN_EXIT_INTERNAL);
    assert_string_equal(error_text, "cannot search stdout for a pattern: Cannot allocate memory");
    fails.read_pipe = true;
    assert_int_equal(run_shell_command("echo busy", "busy", 1), RUN_EXIT_INTERNAL);
    assert_string_equal(error_text, "cannot read the command's stdout: Input/output error");
    assert_int_equal(run_shell_command("echo busy", "busy", 1), 1);
    patterns_are_of_stdout = false;
}

static void unreadable_input_is_no_end_of_input(void **state)
{
    (void)state;
    int ends[2], saved = dup(STDIN_FILENO);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
    assert_int_equal(write(ends[1], "some data", 9), 9);
    fails.read_pipe = true;
    assert_int_equal(run_shell_command("cat >/dev/null", NULL, 2), RUN_EXIT_INTERNAL);
    assert_string_equal(error_text, "cannot read standard input: Input/output error");
    dup2(saved, STDIN_FILENO);
    close(saved);
    close(ends[0]);
    close(ends[1]);
}

static void command_that_cannot_be_waited_for_ends_the_call(void **state)
{
    (void)state;
    fails.wait = true;
    assert_int_equal(run_shell_command("true", NULL, 1), RUN_EXIT_INTERNAL);
    assert_string_equal(error_text, "cannot wait for the command: No child processes");
}

static void retry_needs_no_timer_descriptor(void **state)
{
    (void)state;
    fails.timer = true;
    assert_int_equal(run_shell_command("exit 1", NULL, 2), 1);
    assert_int_equal(last, RUN_GAVE_UP);
}

static void failing_poll_ends_the_call(void **state)
{
    (void)state;
    fails.poll = true;
    assert_int_equal(run_shell_command("exit 1", NULL, 2), RUN_EXIT_INTERNAL);
    assert_string_equal(error_text, "cannot wait for events: Cannot allocate memory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failed_search_is_no_success),
        cmocka_unit_test(unreadable_output_is_no_success),
        cmocka_unit_test(a_call_that_bide_itself_fails_is_cancelled),
        cmocka_unit_test(search_and_read_of_stdout_fail_as_those_of_stderr),
        cmocka_unit_test(unreadable_input_is_no_end_of_input),
        cmocka_unit_test(command_that_cannot_be_waited_for_ends_the_call),
        cmocka_unit_test(retry_needs_no_timer_descriptor),
        cmocka_unit_test(failing_poll_ends_the_call),
    };
    alarm(60); /* the defects below made bide wait for ever */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
