/* test_signals.c - the signals that end a command, and those that were ignored at its start (app/common/signals.c). */
#define _GNU_SOURCE
#include "common/signals.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static volatile sig_atomic_t caught;

static void record(int number)
{
    caught = number;
}

static void set_action(int number, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler};
    sigaction(number, &action, NULL);
}

static void end_signals_reach_the_handler(void **state)
{
    (void)state;
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    cli_signals_catch(record, 0);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        raise(numbers[i]);
        assert_int_equal(caught, numbers[i]);
    }
    cli_signals_release();
}

static void signal_ignored_at_the_start_stays_ignored(void **state)
{
    (void)state;
    set_action(SIGHUP, SIG_IGN);
    caught = 0;
    cli_signals_catch(record, 0);
    raise(SIGHUP);
    assert_int_equal(caught, 0);
    cli_signals_release();
    assert_true(cli_signal_is_ignored(SIGHUP));
    assert_false(cli_signal_is_ignored(SIGINT));
    set_action(SIGHUP, SIG_DFL);
}

static void write_to_a_closed_pipe_is_an_error(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    close(ends[0]);
    cli_signals_catch(record, 0);
    assert_int_equal(write(ends[1], "x", 1), -1);
    close(ends[1]);
    cli_signals_release();
    assert_true(cli_signal_is_ignored(SIGXFSZ));
    set_action(SIGPIPE, SIG_DFL);
    set_action(SIGXFSZ, SIG_DFL);
}

/* Runs in a child process, which must end by the signal. */
static int status_of(void (*end)(void))
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        end();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void end_after_release(void)
{
    cli_signals_catch(record, 0);
    cli_signals_release();
    raise(SIGTERM);
}

static void end_by_blocked_and_caught_signal(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    cli_signals_catch(record, 0);
    cli_signal_die(SIGINT);
}

static void process_dies_by_the_signal_itself(void **state)
{
    (void)state;
    int status = status_of(end_after_release);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    status = status_of(end_by_blocked_and_caught_signal);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(end_signals_reach_the_handler),
        cmocka_unit_test(signal_ignored_at_the_start_stays_ignored),
        cmocka_unit_test(write_to_a_closed_pipe_is_an_error),
        cmocka_unit_test(process_dies_by_the_signal_itself),
    };
    for (int number = SIGHUP; number <= SIGTERM; number++) /* whatever this test was started with */
        set_action(number, SIG_DFL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
