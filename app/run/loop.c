/* loop.c - the event loop of `bide run`: executes the engine's verdicts with child processes, waits and streams.
 *
 * All events arrive through one poll (poll_once): signals, one timer, the command's streams. Three loops around it wait
 * for a process (child_wait), for an instant (execute_wait) and for slow readers (streams_drain; held_output_write
 * polls for itself). Above them, execute_verdicts() performs one action per verdict and decides nothing.
 *
 * A signal to bide first terminates the running process. The engine gets it, as a cancellation, as soon as no process
 * runs. */
#include "loop.h"

#include "common/outer.h"
#include "os/probe.h"

#include "child.h"
#include "common/fd.h"
#include "env.h"
#include "signals.h"
#include "stdin.h"
#include "tap.h"
#include "terminal.h"

#include <bide/clock.h>
#include <bide/entropy.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECOND_SIGNAL_GRACE_NS BIDE_S /* replaces a longer grace period after a second signal */
#define EXIT_SIGNAL_BASE       128

struct run {
    const struct run_config *config;
    struct bide_call call;
    struct bide_request request;
    struct bide_verdict verdict;
    int64_t verdict_ns;        /* when the verdict was returned */
    struct bide_report report; /* to the listener of the process, if there is one */
    int64_t call_start_ns;
    int64_t deadline_ns; /* of the call; BIDE_NEVER: none */

    struct run_signals signals;
    struct run_terminal terminal;
    int timer_fd; /* -1: not created yet */
    int64_t timer_ns;

    struct run_env_vars environment;
    struct run_child child;
    bool stdin_attached; /* the running child gets stdin; false for the condition */
    struct run_stdin input;
    struct run_tap out, err, hint;
    bool err_joins_out; /* stderr is written to the pipe of stdout, so that the order of lines is kept */
    struct cli_spool held_output, held_stderr;

    struct run_result result; /* of the last attempt */
    bool has_result;
    bool stop_received; /* bide itself got SIGTSTP, and has sent it to the child */
    int signal;         /* the first termination signal that bide received; 0: none */
    bool failed;        /* bide itself failed, and has reported it */
};

/* ---- events ---- */

static void event_report(struct run *r, enum run_event_kind kind, int status)
{
    struct run_event event = {.kind = kind,
                              .verdict = &r->verdict,
                              .result = r->has_result ? &r->result : NULL,
                              .call_start_ns = r->call_start_ns,
                              .now_ns = kind == RUN_WAITING ? r->verdict_ns : bide_now(),
                              .status = status,
                              .signal = r->signal};
    r->config->event(r->config->context, &event);
}

static void event_report_text(struct run *r, const char *text)
{
    struct run_event event = {.kind = RUN_ERROR,
                              .verdict = &r->verdict,
                              .text = text,
                              .call_start_ns = r->call_start_ns,
                              .now_ns = bide_now()};
    r->config->event(r->config->context, &event);
}

/* bide itself failed: reports the first failure, terminates the child. The exit status will be RUN_EXIT_INTERNAL.
 * `error` is an errno, 0 if the subject says it all. */
static void run_fail(struct run *r, const char *subject, int error)
{
    char text[768];
    if (r->failed)
        return;
    r->failed = true;
    snprintf(text, sizeof text, error != 0 ? "%s: %s" : "%s", subject, strerror(error));
    event_report_text(r, text);
    run_child_terminate(&r->child, SIGTERM, bide_now() + r->config->grace_ns);
}

/* A spool could not be written: names the directory and the variable that selects it. */
static void run_fail_spool(struct run *r, const char *subject, int error)
{
    char text[512];
    struct cli_spool_directory directory = cli_spool_directory();
    snprintf(text, sizeof text, "cannot store %s in %.300s (%s)", subject, directory.path, directory.source);
    run_fail(r, text, error);
}

/* ---- signals ---- */

/* The command was stopped: stop bide and its process group, too, until a shell continues them; only bide if it got the
 * signal itself, which the sender has sent to the others as well or not meant for them. Without a terminal there is no
 * shell to continue them. If bide could not be stopped: the stop key has no effect; a command that wanted the terminal
 * (SIGTTIN, SIGTTOU) gets SIGHUP, as the kernel sends to an orphaned group; a command stopped with SIGSTOP stays
 * stopped. */
static void on_child_stopped(struct run *r, int signo)
{
    struct run_terminal *terminal = &r->terminal;
    if (terminal->fd < 0 || r->child.terminating)
        return;
    if ((signo == SIGTTIN || signo == SIGTTOU) && run_terminal_is_foreground(terminal)) {
        run_terminal_lend(terminal, r->child.pid); /* the command only needs the terminal */
    } else {
        run_terminal_pause(terminal);
        bool stopped = run_signals_stop_self(!r->stop_received);
        r->stop_received = false;
        run_terminal_resume(terminal, r->child.pid);
        if (!stopped && signo == SIGSTOP)
            return;
        if (!stopped && signo != SIGTSTP)
            run_child_signal(&r->child, SIGHUP);
    }
    run_child_signal(&r->child, SIGCONT);
}

/* Termination signal: ends the call now, or as soon as the child has ended. */
static void on_termination(struct run *r, int signo)
{
    int64_t grace_ns =
        r->signal != 0 && r->config->grace_ns > SECOND_SIGNAL_GRACE_NS ? SECOND_SIGNAL_GRACE_NS : r->config->grace_ns;
    r->signal = r->signal != 0 ? r->signal : signo;
    run_child_terminate(&r->child, signo, bide_now() + grace_ns);
}

/* Without a terminal (a batch system suspends the job): stops the command and waits for SIGCONT. */
static void suspend(struct run *r)
{
    run_child_signal(&r->child, SIGTSTP);
    int signo = run_signals_wait_continue(&r->signals);
    run_child_signal(&r->child, SIGCONT);
    if (signo > 0 && signo != SIGCONT)
        on_termination(r, signo);
}

static void on_sigtstp(struct run *r)
{
    bool running = r->child.pid > 0 && !r->child.exited;
    r->stop_received = running;
    if (r->terminal.fd < 0)
        suspend(r);
    else if (running)
        run_child_signal(&r->child, SIGTSTP); /* SIGCHLD will report the stop, and bide follows */
    else
        run_signals_stop_self(false); /* the keyboard sent it to the rest of the pipeline, too */
}

/* bide alone was stopped and continued: a shell may have taken the terminal in between. Without a terminal, SIGCONT is
 * for the command, too, which may have been stopped together with bide; and also if SIGCONT arrives before SIGCHLD has
 * reported the stop that a SIGTSTP to bide has caused. */
static void on_sigcont(struct run *r)
{
    if (r->terminal.fd < 0 || r->stop_received)
        run_child_signal(&r->child, SIGCONT);
    else if (r->child.pid > 0 && !r->child.exited)
        run_terminal_resume(&r->terminal, r->child.pid);
    r->stop_received = false;
}

static void on_sigwinch(struct run *r)
{
    for (struct run_tap *tap = &r->out; tap != NULL; tap = tap == &r->out ? &r->err : NULL)
        if (tap->is_terminal && tap->in_fd >= 0)
            run_terminal_copy_size(tap->in_fd, tap->out_fd);
    if (!r->terminal.lent)
        run_child_signal(&r->child, SIGWINCH);
}

static void read_signals(struct run *r)
{
    int signo;
    while ((signo = run_signals_read(&r->signals)) > 0)
        switch (signo) {
        case SIGCHLD: {
            int stopped = run_child_on_sigchld(&r->child);
            if (stopped != 0)
                on_child_stopped(r, stopped);
            break;
        }
        case SIGTSTP: on_sigtstp(r); break;
        case SIGCONT: on_sigcont(r); break;
        case SIGWINCH: on_sigwinch(r); break;
        case SIGUSR1:
        case SIGUSR2: run_child_signal_leader(&r->child, signo); break; /* during a wait: dropped */
        default: on_termination(r, signo); break;
        }
    if (signo < 0)
        run_fail(r, "cannot read signals", errno);
}

/* ---- one iteration of the loop ---- */

/* Arms the timer; an instant in the past fires immediately. Returns false if no timer is armed. */
static bool timer_arm(struct run *r, int64_t until_ns)
{
    struct itimerspec when = {.it_value = {.tv_sec = until_ns / BIDE_S, .tv_nsec = until_ns % BIDE_S}};
    if (until_ns == BIDE_NEVER)
        return false;
    if (r->timer_fd < 0)
        r->timer_fd = cli_fd_above_first(timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK));
    if (r->timer_fd >= 0 && r->timer_ns != until_ns &&
        timerfd_settime(r->timer_fd, TFD_TIMER_ABSTIME, &when, NULL) == 0)
        r->timer_ns = until_ns;
    return r->timer_fd >= 0 && r->timer_ns == until_ns;
}

enum { POLL_SIGNALS, POLL_TIMER, POLL_STDIN, POLL_STDOUT, POLL_STDERR, POLL_HINT, POLL_COUNT };

/* Ends the call if input or output was lost, or if it is unknown whether output matches: exit status 0 would be a
 * guess. */
static void streams_check(struct run *r)
{
    if (r->input.error != 0)
        run_fail_spool(r, "standard input", r->input.error);
    if (r->input.read_error != 0) /* the command would take it for the end of the input */
        run_fail(r, "cannot read standard input", r->input.read_error);
    if (r->input.loan.conflict)
        run_fail(r,
                 "standard input: another process read it at the same time, so that the command may have got wrong or "
                 "repeated input (--stdin inherit gives the command the pipe itself)",
                 0);
    if (r->out.error != 0 && r->out.error != EPIPE && r->out.spool != NULL)
        run_fail_spool(r, "standard output", r->out.error);
    else if (r->out.error != 0 && r->out.error != EPIPE)
        run_fail(r, "cannot write standard output", r->out.error);
    if (r->err.error != 0 && r->err.spool != NULL)
        run_fail_spool(r, "standard error", r->err.error);
    if (r->out.read_error != 0)
        run_fail(r, "cannot read the command's stdout", r->out.read_error);
    if (r->err.read_error != 0)
        run_fail(r, "cannot read the command's stderr", r->err.read_error);
    if (r->hint.read_error != 0)
        run_fail(r, "cannot read the command's hints", r->hint.read_error);
    if (r->out.lines.error != 0)
        run_fail(r, "cannot search stdout for a pattern", r->out.lines.error);
    if (r->err.lines.error != 0)
        run_fail(r, "cannot search stderr for a pattern", r->err.lines.error);
}

/* Waits for an event or the instant, and handles all events that are ready. */
static void poll_once(struct run *r, int64_t until_ns)
{
    static const struct pollfd nothing = {.fd = -1};
    struct pollfd set[POLL_COUNT] = {
        [POLL_SIGNALS] = {.fd = r->signals.fd, .events = POLLIN},
        [POLL_TIMER] = {.fd = timer_arm(r, until_ns) ? r->timer_fd : -1, .events = POLLIN},
        [POLL_STDIN] = r->stdin_attached ? run_stdin_pollfd(&r->input) : nothing,
        [POLL_STDOUT] = run_tap_pollfd(&r->out),
        [POLL_STDERR] = run_tap_pollfd(&r->err),
        [POLL_HINT] = run_tap_pollfd(&r->hint),
    };
    bool no_timer = set[POLL_TIMER].fd < 0 && until_ns != BIDE_NEVER; /* no timerfd: poll every 10 ms */
    if (poll(set, POLL_COUNT, no_timer ? 10 : -1) < 0) {
        if (errno != EINTR)
            run_fail(r, "cannot wait for events", errno);
        return;
    }
    if (set[POLL_TIMER].revents != 0)
        r->timer_ns = 0;
    if (set[POLL_STDIN].revents != 0)
        run_stdin_on_ready(&r->input);
    if (set[POLL_STDOUT].revents != 0)
        run_tap_on_ready(&r->out);
    if (set[POLL_STDERR].revents != 0)
        run_tap_on_ready(&r->err);
    if (set[POLL_HINT].revents != 0)
        run_tap_on_ready(&r->hint);
    if (set[POLL_SIGNALS].revents != 0)
        read_signals(r);
    streams_check(r);
}

/* ---- a child process ---- */

static void child_wait(struct run *r)
{
    while (run_child_is_alive(&r->child)) {
        poll_once(r, run_child_next_ns(&r->child, bide_now()));
        run_child_on_timer(&r->child, bide_now());
        if (r->failed) /* the failure may be that no signals arrive */
            run_child_on_sigchld(&r->child);
        if (r->child.wait_error != 0)
            run_fail(r, "cannot wait for the command", r->child.wait_error);
    }
    if (r->child.terminating)
        prctl(PR_SET_CHILD_SUBREAPER, 0);
    run_terminal_reclaim(&r->terminal, WIFSIGNALED(r->child.wait_status));
    r->child.pid = 0; /* background processes that it left behind belong to the user and get no signals */
}

/* Starts a child and waits for its end. Returns false if it could not be started. */
static bool child_run(struct run *r, struct run_spawn *spawn, int64_t deadline_ns)
{
    spawn->environment = run_env_build(&r->environment);
    spawn->signals = &r->signals;
    spawn->terminal = &r->terminal;
    r->child = (struct run_child){.deadline_ns = deadline_ns, .grace_ns = r->config->grace_ns};
    if (spawn->environment == NULL || !run_child_start(&r->child, spawn))
        return false;
    run_stdin_after_fork(&r->input);
    run_tap_after_fork(&r->out);
    run_tap_after_fork(&r->err);
    run_tap_after_fork(&r->hint);
    streams_check(r); /* of the input that was read before the start */
    child_wait(r);
    if (r->stdin_attached)
        run_stdin_finish(&r->input);
    return true;
}

/* Forwards the rest of the output after the command's end. A reader that does not read blocks bide as it would block
 * the command, but only for SECOND_SIGNAL_GRACE_NS after a signal or a failure. */
static void streams_drain(struct run *r)
{
    int64_t until_ns = BIDE_NEVER;
    run_tap_finish(&r->out);
    run_tap_finish(&r->err);
    run_tap_finish(&r->hint);
    while (!(run_tap_is_done(&r->out) && run_tap_is_done(&r->err) && run_tap_is_done(&r->hint))) {
        if ((r->signal != 0 || r->failed) && until_ns == BIDE_NEVER)
            until_ns = bide_now() + SECOND_SIGNAL_GRACE_NS;
        if (bide_now() >= until_ns)
            break;
        poll_once(r, until_ns);
    }
    streams_check(r);
    run_tap_close(&r->out);
    run_tap_close(&r->err);
    run_tap_close(&r->hint);
}

/* Runs a command line with `sh -c --`: it may begin with '-'. Returns its exit status in the form that a shell
 * reports. */
static int shell_run(struct run *r, const char *line, struct run_spawn spawn, int64_t deadline_ns)
{
    char shell[] = "/bin/sh", option[] = "-c", end[] = "--";
    char *copy = strdup(line);
    char *const argv[] = {shell, option, end, copy, NULL};
    int status = RUN_EXIT_INTERNAL;
    spawn.argv = argv;
    if (copy == NULL || !child_run(r, &spawn, deadline_ns))
        run_fail(r, "cannot start /bin/sh", errno);
    else
        status = r->child.timed_out ? RUN_EXIT_TIMEOUT : run_shell_status(r->child.wait_status);
    free(copy);
    return status;
}

/* ---- an attempt ---- */

static bool streams_open(struct run *r, struct run_spawn *spawn)
{
    cli_spool_clear(&r->held_output);
    cli_spool_clear(&r->held_stderr);
    if (!run_stdin_open(&r->input, &spawn->in) || !run_tap_open(&r->out) || !run_tap_open(&r->err) ||
        !run_tap_open(&r->hint))
        return false;
    spawn->out = r->out.child_fd;
    spawn->err = r->err_joins_out ? r->out.child_fd : r->err.child_fd;
    spawn->hint = r->hint.child_fd;
    return true;
}

/* Returns 0 if there is no pipe. */
static ino_t pipe_inode(int fd)
{
    struct stat status;
    return fd >= 0 && fstat(fd, &status) == 0 ? status.st_ino : 0;
}

/* Returns the trace of the process that started bide; empty if there is none, or a malformed one. */
static struct bide_trace inherited_trace(void)
{
    struct bide_trace trace = {0};
    const char *text = getenv("TRACEPARENT");
    if (text != NULL)
        bide_trace_parse((struct bide_text){text, strlen(text)}, &trace);
    return trace;
}

static bool attempt_set_environment(struct run *r)
{
    struct run_env env = {.trace = bide_report_trace(&r->report, r->verdict.attempt),
                          .is_new_trace = inherited_trace().parent == 0,
                          .attempt = r->verdict.attempt,
                          .attempts_max = r->config->policy->attempts_max,
                          .last_status = r->has_result ? r->result.status : -1,
                          .target = r->config->target_name,
                          .deadline_ns = r->deadline_ns,
                          .now_ns = bide_now(),
                          .hint_pipe = pipe_inode(r->hint.child_fd)};
    if (r->request.inbound.attempt > env.attempt)
        env.attempt = r->request.inbound.attempt;
    if (r->config->like != NULL)
        run_env_set(&r->environment, RUN_ENV_LANGUAGE, "en");
    return run_env_write(&r->environment, &env);
}

static bool stdout_has_no_reader(void)
{
    struct pollfd stdout_poll = {.fd = STDOUT_FILENO, .events = POLLOUT};
    return poll(&stdout_poll, 1, 0) > 0 && (stdout_poll.revents & POLLERR) != 0;
}

/* Collects exit status, matches, hint and stream errors of the attempt. */
static struct run_result attempt_collect(struct run *r)
{
    const struct run_child *child = &r->child;
    bool of_stdout = r->out.lines.matched != NULL;
    struct run_result e = {.status = run_shell_status(child->wait_status),
                           .killed = WIFSIGNALED(child->wait_status),
                           .timed_out = child->timed_out,
                           .exec_error = child->exec_error,
                           .pattern = of_stdout ? r->out.lines.matched : r->err.lines.matched,
                           .stream = of_stdout ? "stdout" : "stderr",
                           .has_patterns = r->out.lines.patterns != NULL || r->err.lines.patterns != NULL,
                           .like = r->config->like,
                           .known = {r->err.lines.known_matched[0], r->err.lines.known_matched[1]},
                           .stdin_spent = run_stdin_is_spent(&r->input),
                           .hint = bide_hint_merge(r->err.lines.hint, r->hint.lines.hint)};
    e.stdout_closed =
        (e.killed && WTERMSIG(child->wait_status) == SIGPIPE && stdout_has_no_reader()) || r->out.error == EPIPE;
    return e;
}

/* Runs the condition of --until: stdin is /dev/null, stdout goes to stderr. With --cron both are stored. */
static int condition_run(struct run *r, int64_t deadline_ns)
{
    struct run_spawn spawn = {.err = -1, .hint = -1};
    struct run_tap *stored = r->err_joins_out ? &r->out : &r->err;
    spawn.in = cli_fd_above_first(open("/dev/null", O_RDWR | O_CLOEXEC));
    spawn.out = fcntl(STDERR_FILENO, F_GETFD) >= 0 ? STDERR_FILENO : spawn.in; /* never stdout: that is for data */
    if (r->config->only_failures && run_tap_open(stored))
        spawn.out = spawn.err = stored->child_fd;
    r->stdin_attached = false;
    int status = shell_run(r, r->config->until, spawn, deadline_ns);
    streams_drain(r);
    cli_fd_close(&spawn.in);
    return status;
}

/* Runs one attempt, and the condition if the attempt succeeded; fills r->result. */
static void attempt_run(struct run *r)
{
    const struct run_config *config = r->config;
    struct run_spawn spawn = {.argv = config->command};
    int64_t start_ns = bide_now(), deadline_ns = r->verdict.attempt_deadline_ns;
    if (!streams_open(r, &spawn) || !attempt_set_environment(r)) {
        run_fail(r, "cannot create the pipes of the command", errno);
        return;
    }
    r->stdin_attached = true;
    if (!child_run(r, &spawn, deadline_ns)) {
        run_fail(r, "cannot start a process", errno);
        return;
    }
    streams_drain(r);
    r->result = attempt_collect(r);
    r->result.timed_out_after_ns = r->result.timed_out ? deadline_ns - start_ns : 0;
    r->has_result = true;
    bool succeeded = r->result.status == 0 && !r->result.timed_out && r->result.pattern == NULL && !r->failed;
    if (config->until != NULL && succeeded) /* a condition that was not run because of a signal counts as failed */
        r->result.condition_status = r->signal != 0 ? EXIT_SIGNAL_BASE + r->signal : condition_run(r, deadline_ns);
    r->result.outcome = run_result_outcome(&r->result, config->exit_rules);
    r->result.took_ns = bide_now() - start_ns;
}

/* ---- held output ---- */

/* Waits until the tap's own stream is writable. Returns 0, EINTR after a termination signal, or the errno of poll. */
static int output_wait_writable(struct run *r, const struct run_tap *tap)
{
    struct pollfd set[] = {{.fd = tap->out_fd, .events = POLLOUT}, {.fd = r->signals.fd, .events = POLLIN}};
    while (r->signal == 0) {
        int ready = poll(set, 2, -1);
        if (ready < 0 && errno != EINTR)
            return errno;
        if (ready <= 0)
            continue;
        if (set[1].revents != 0)
            read_signals(r);
        else if (set[0].revents != 0)
            return 0;
    }
    return EINTR;
}

/* Returns 0, or the errno of the failed write. */
static int output_write(struct run *r, const struct run_tap *tap, const char *bytes, size_t length)
{
    while (length > 0) {
        int error = output_wait_writable(r, tap);
        if (error != 0)
            return error;
        ssize_t n = write(tap->out_fd, bytes, length < tap->write_max ? length : tap->write_max);
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            return errno;
        bytes += n > 0 ? n : 0;
        length -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

/* Writes a spool to the tap's own stream. Returns 0, or the errno of the failure. */
static int spool_write(struct run *r, struct cli_spool *spool, const struct run_tap *tap)
{
    ssize_t n;
    int64_t at = 0;
    int error = 0;
    char *buffer = r->out.buffer; /* the command has ended: the buffer is free */
    while (error == 0 && (n = cli_spool_read(spool, at, buffer, RUN_TAP_SIZE)) != 0) {
        error = n < 0 ? errno : output_write(r, tap, buffer, (size_t)n);
        if (n > 0 && tap->midline != NULL)
            *tap->midline = buffer[n - 1] != '\n';
        at += n;
    }
    cli_spool_clear(spool);
    return error;
}

/* Writes the held stdout of the successful attempt. Returns the exit status. */
static int held_output_write(struct run *r)
{
    int error = spool_write(r, &r->held_output, &r->out);
    if (r->signal != 0)
        return EXIT_SIGNAL_BASE + r->signal;
    if (error == EPIPE)
        return EXIT_SIGNAL_BASE + SIGPIPE;
    if (error != 0)
        run_fail(r, "cannot write standard output", error);
    return error != 0 ? RUN_EXIT_INTERNAL : 0;
}

/* Writes the held output of the last, failed attempt to stderr; stdout is for the data of a success. If stderr cannot
 * be written, no stream is left to report that, and the exit status shows the failure anyway. */
static void held_failure_write(struct run *r)
{
    int signo = r->signal;
    r->signal = 0; /* a signal that ended the command must not suppress its output; a second one does */
    spool_write(r, &r->held_output, &r->err);
    spool_write(r, &r->held_stderr, &r->err);
    r->signal = signo != 0 ? signo : r->signal;
}

/* ---- the end of the call ---- */

/* Exit status if the engine refused the first attempt. */
static int refusal_exit_status(const struct run *r)
{
    if (r->verdict.reason == BIDE_REASON_DEADLINE || r->verdict.reason == BIDE_REASON_DEADLINE_NEAR)
        return RUN_EXIT_TIMEOUT;
    return RUN_EXIT_REFUSED;
}

/* The fallback is not a retry: it gets attempt number and deadline of the outer bide, not of this call. */
static bool fallback_set_environment(struct run *r, int status)
{
    char text[16];
    struct run_env_vars *vars = &r->environment;
    int64_t outer_ns = r->request.deadline_ns;
    struct run_env env = {.attempt = r->request.inbound.attempt > 1 ? r->request.inbound.attempt : 1,
                          .attempts_max = 1,
                          .last_status = r->has_result ? r->result.status : -1,
                          .target = r->config->target_name,
                          .deadline_ns = outer_ns != 0 ? outer_ns : BIDE_NEVER,
                          .now_ns = bide_now()};
    snprintf(text, sizeof text, "%d", status);
    if (r->hint.enabled) {
        run_env_set(vars, RUN_ENV_HINT_FD, NULL);
        run_env_set(vars, RUN_ENV_HINT_PIPE, NULL);
    }
    run_env_set(vars, RUN_ENV_REASON, bide_reason_label(r->verdict.reason));
    run_env_set(vars, RUN_ENV_STATUS, text);
    return run_env_write(vars, &env);
}

static int fallback_run(struct run *r, int status)
{
    struct run_spawn spawn = {.out = -1, .err = -1, .hint = -1};
    if (!fallback_set_environment(r, status) || !run_stdin_open(&r->input, &spawn.in)) {
        run_fail(r, "cannot start the fallback", errno);
        return RUN_EXIT_INTERNAL;
    }
    r->stdin_attached = true;
    status = shell_run(r, r->config->fallback, spawn, BIDE_NEVER);
    if (r->signal != 0)
        return EXIT_SIGNAL_BASE + r->signal;
    if (!r->failed)
        event_report(r, RUN_FALLBACK_ENDED, status);
    return status;
}

static bool call_was_interrupted(const struct run *r)
{
    return r->signal != 0 || (r->has_result && r->result.outcome.kind == BIDE_KIND_CANCELLED);
}

static int call_give_up(struct run *r)
{
    int status = r->has_result ? run_result_exit_status(&r->result) : refusal_exit_status(r);
    if (r->signal != 0)
        status = EXIT_SIGNAL_BASE + r->signal;
    if (r->config->show_failed)
        held_failure_write(r);
    event_report(r, RUN_GAVE_UP, status);
    if (r->config->fallback != NULL && !call_was_interrupted(r))
        return fallback_run(r, status);
    return status;
}

static int call_succeed(struct run *r)
{
    int status = r->config->hold_stdout ? held_output_write(r) : 0;
    if (status == 0)
        event_report(r, RUN_SUCCEEDED, 0);
    if (status != 0 && r->signal != 0) { /* the command succeeded, but a signal interrupted the write of its output */
        r->verdict.reason = BIDE_REASON_CANCELLED;
        event_report(r, RUN_GAVE_UP, status);
    }
    return status;
}

/* ---- verdicts ---- */

/* `end`: the end of the attempt that led to the verdict, or NULL. */
static void verdict_set(struct run *r, struct bide_verdict verdict, const struct bide_attempt_end *end)
{
    r->verdict = verdict;
    os_probe_verdict((struct os_probe){r, r->config->target_name}, &verdict, end, r->verdict_ns);
    bide_report_verdict(&r->report, &verdict, end, r->verdict_ns);
}

static void call_cancel(struct run *r)
{
    r->verdict_ns = bide_now();
    verdict_set(r, bide_call_cancel(&r->call, r->verdict_ns), NULL);
}

static void call_end_attempt(struct run *r)
{
    struct bide_attempt_end end = {&r->result.outcome, r->verdict.attempt, r->result.status};
    r->verdict_ns = bide_now();
    verdict_set(r, bide_call_outcome(&r->call, end.attempt, end.outcome, r->verdict_ns), &end);
}

static void execute_start(struct run *r)
{
    read_signals(r);
    if (r->signal != 0) { /* last check before a process is started */
        call_cancel(r);
        return;
    }
    event_report(r, RUN_ATTEMPT_STARTS, 0);
    attempt_run(r);
    if (r->failed)
        return;
    event_report(r, RUN_ATTEMPT_ENDED, 0);
    if (r->signal != 0 && r->result.outcome.kind != BIDE_KIND_OK)
        call_cancel(r);
    else
        call_end_attempt(r);
}

static void execute_wait(struct run *r)
{
    int64_t until_ns = r->verdict.wake_ns, tick_ns = r->config->tick_ns, now_ns = bide_now();
    event_report(r, RUN_WAITING, 0);
    while (r->signal == 0 && !r->failed && now_ns < until_ns) {
        int64_t next_ns = tick_ns > 0 && now_ns + tick_ns < until_ns ? now_ns + tick_ns : until_ns;
        poll_once(r, next_ns);
        now_ns = bide_now();
        if (tick_ns > 0 && r->signal == 0 && now_ns < until_ns && run_terminal_is_foreground(&r->terminal))
            event_report(r, RUN_TICK, 0); /* in the background it would overwrite typed text */
    }
    if (r->signal != 0) {
        call_cancel(r);
        return;
    }
    r->verdict_ns = now_ns;
    verdict_set(r, bide_call_wake(&r->call, now_ns), NULL);
}

/* Executes verdicts until the call ends. Returns the exit status. */
static int execute_verdicts(struct run *r)
{
    while (!r->failed)
        switch (r->verdict.action) {
        case BIDE_ACTION_START: execute_start(r); break;
        case BIDE_ACTION_WAIT: execute_wait(r); break;
        case BIDE_ACTION_DONE: return call_succeed(r);
        case BIDE_ACTION_GIVE_UP: return call_give_up(r);
        case BIDE_ACTION_NONE: call_cancel(r); break; /* unreachable from this loop */
        }
    call_cancel(r); /* releases what the call has acquired of a shared target */
    return RUN_EXIT_INTERNAL;
}

/* ---- entry point ---- */

bool run_hint_fd_is_free(void)
{
    return fcntl(RUN_HINT_FD_NUMBER, F_GETFD) < 0 && errno == EBADF;
}

/* stderr needs a pipe only if bide searches or stores it. A pipe would change the order of the two streams in a log
 * and end processes that the command leaves in the background (SIGPIPE): by default the command gets the real one. */
static void streams_init(struct run *r)
{
    const struct run_config *config = r->config;
    run_stdin_init(&r->input, (struct run_stdin_options){config->policy->attempts_max > 1, config->stdin_option});
    r->out.enabled = config->hold_stdout || config->only_failures || config->stdout_patterns != NULL;
    r->out.spool = config->hold_stdout || config->only_failures ? &r->held_output : NULL;
    r->out.lines.patterns = config->stdout_patterns;
    r->err.lines.hints = (config->hints & RUN_HINT_STDERR) != 0;
    r->err.lines.patterns = config->stderr_patterns;
    for (size_t i = 0; config->like != NULL && i < RUN_KNOWN_COUNT; i++)
        r->err.lines.known[i] = &config->known[i];
    bool searched = r->err.lines.hints || config->stderr_patterns != NULL || config->like != NULL;
    r->err_joins_out = config->only_failures && !config->hold_stdout && !searched && config->stdout_patterns == NULL;
    r->err.enabled = searched || (config->only_failures && !r->err_joins_out);
    r->err.spool = config->only_failures ? &r->held_stderr : NULL;
    r->err.midline = config->midline;
    r->hint.lines.hints = r->hint.lines.bare = r->hint.enabled = (config->hints & RUN_HINT_FD) != 0;
    run_tap_init(&r->out, STDOUT_FILENO);
    run_tap_init(&r->err, STDERR_FILENO);
    run_tap_init(&r->hint, -1);
}

/* Describes the call for an event: see struct bide_call_about. context: struct run_config. */
static void call_about(void *context, struct bide_call_about *about)
{
    const struct run_config *config = context;
    const char *slash = strrchr(config->command[0], '/');
    about->program = slash != NULL && slash[1] != '\0' ? slash + 1 : config->command[0];
    about->trace_state = inherited_trace().parent != 0 ? getenv("TRACESTATE") : NULL;
}

static void call_begin_report(struct run *r)
{
    const struct run_config *config = r->config;
    struct bide_trace trace = inherited_trace();
    struct bide_report_call call = {.target_name = config->target_name,
                                    .target = config->target,
                                    .trace = &trace,
                                    .lane = r->request.lane,
                                    .about = call_about,
                                    .about_context = (void *)(uintptr_t)config};
    bide_report_begin(&r->report, &call, r->call_start_ns);
}

static void call_begin(struct run *r)
{
    const struct run_config *config = r->config;
    int64_t own_ns = config->policy->call_timeout_ns;
    r->call_start_ns = r->verdict_ns = bide_now();
    /* The user of `bide run` asserts that repeating the command is safe. */
    r->request = (struct bide_request){.safety = BIDE_SAFE, .lane = bide_lane()};
    r->request.seed = config->has_seed ? config->seed : bide_seed();
    struct cli_outer outer = cli_outer_read(r->call_start_ns);
    r->request.inbound.attempt = outer.attempt;
    r->request.deadline_ns = outer.deadline_ns;
    for (size_t i = 0; i < CLI_OUTER_COUNT; i++)
        if (outer.ignored[i][0] != '\0')
            event_report_text(r, outer.ignored[i]);
    r->deadline_ns = own_ns == BIDE_NEVER ? BIDE_NEVER : r->call_start_ns + own_ns;
    if (r->request.deadline_ns != 0 && r->request.deadline_ns < r->deadline_ns)
        r->deadline_ns = r->request.deadline_ns;
    call_begin_report(r);
    verdict_set(r, bide_call_begin(&r->call, config->policy, config->target, &r->request, r->call_start_ns), NULL);
}

static void run_free(struct run *r)
{
    run_signals_restore(&r->signals);
    cli_fd_close(&r->signals.fd);
    cli_fd_close(&r->timer_fd);
    run_terminal_close(&r->terminal);
    run_stdin_free(&r->input);
    run_tap_free(&r->out);
    run_tap_free(&r->err);
    run_tap_free(&r->hint);
    cli_spool_clear(&r->held_output);
    cli_spool_clear(&r->held_stderr);
    run_env_free(&r->environment);
}

/* Ctrl-C sends SIGINT to the foreground group: to the command's group if that had the terminal, else to bide's. */
static bool sigint_is_from_keyboard(const struct run *r)
{
    bool command_died = r->has_result && r->result.killed && r->result.status == EXIT_SIGNAL_BASE + SIGINT;
    return run_terminal_is_foreground(&r->terminal) && (r->signal == SIGINT || (r->signal == 0 && command_died));
}

int run_command(const struct run_config *config)
{
    int status = RUN_EXIT_INTERNAL;
    struct run *r = calloc(1, sizeof *r);
    if (r == NULL) {
        config->event(config->context, &(struct run_event){.kind = RUN_ERROR, .text = "out of memory"});
        return status;
    }
    r->config = config;
    r->timer_fd = r->signals.fd = -1;
    run_terminal_open(&r->terminal);
    streams_init(r);
    if (!run_signals_open(&r->signals) || !run_env_make_key(&r->environment)) {
        run_fail(r, "cannot set up signals and the idempotency key", errno);
        goto out;
    }
    call_begin(r);
    status = execute_verdicts(r);
    if (status == EXIT_SIGNAL_BASE + SIGINT && sigint_is_from_keyboard(r)) {
        if (r->signal == 0) { /* only the command's group got SIGINT: send it to bide's group, and read our copy */
            kill(0, SIGINT);
            read_signals(r);
        }
        status = -SIGINT;
    }
    if (r->failed)
        status = RUN_EXIT_INTERNAL;
out:
    run_free(r);
    free(r);
    return status;
}
