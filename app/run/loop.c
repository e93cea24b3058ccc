/* loop.c - a command, run again while it fails in a way that may pass.
 *
 * Everything that can happen comes through one poll (turn): signals, one timer, the streams of the command. The three
 * things bide waits for are loops around it: a process (attend), an instant (sleep_until), a slow reader of what is
 * still to be written (drain, let_out). Above them obey() does one deed for each verdict and decides nothing.
 *
 * A signal to bide is told to the engine, as a cancellation, at the first moment when no process runs; before that it
 * only makes the process leave. */
#include "loop.h"

#include "child.h"
#include "env.h"
#include "fd.h"
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
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define IMPATIENT_NS BIDE_S /* the grace after a second signal */
#define SIGNALLED    128

struct run {
    const struct run_config *config;
    struct bide_call call;
    struct bide_request request;
    struct bide_verdict verdict;
    int64_t decided_ns; /* when it was given */
    int64_t begun_ns;
    int64_t deadline_ns; /* of the call; BIDE_NEVER: none */

    struct run_signals signals;
    struct run_terminal terminal;
    int timer_fd; /* -1: not needed so far */
    int64_t timer_ns;

    struct run_env_own environment;
    struct run_child child;
    bool feeds; /* the child that runs is the one that gets stdin */
    struct run_stdin input;
    struct run_tap out, err, hint;
    struct run_spool held;

    struct run_ending ending; /* of the last attempt */
    bool has_ending;
    int signal;  /* the first that bide was sent; 0: none */
    bool failed; /* bide itself did, and has said so */
};

/* ---- telling ---- */

static void tell(struct run *r, enum run_what what, int status)
{
    struct run_event event = {.action = what,
                              .verdict = &r->verdict,
                              .ending = r->has_ending ? &r->ending : NULL,
                              .begun_ns = r->begun_ns,
                              .now_ns = what == RUN_WAITS ? r->decided_ns : bide_now(),
                              .status = status,
                              .signal = r->signal};
    r->config->event(r->config->context, &event);
}

static void say(struct run *r, const char *text)
{
    struct run_event event = {
        .action = RUN_TROUBLE, .verdict = &r->verdict, .text = text, .begun_ns = r->begun_ns, .now_ns = bide_now()};
    r->config->event(r->config->context, &event);
}

/* bide itself failed: the exit status is RUN_EXIT_OWN, whatever else happens. Said once. */
static void fail(struct run *r, const char *what, int error)
{
    char text[768];
    if (r->failed)
        return;
    r->failed = true;
    snprintf(text, sizeof text, "%s: %s", what, strerror(error));
    say(r, text);
    run_child_leave(&r->child, SIGTERM, bide_now() + r->config->grace_ns);
}

/* Nor can what is to be kept: where was that to be, and who chose the place? */
static void fail_to_keep(struct run *r, const char *what, int error)
{
    char text[512];
    struct run_spool_place place = run_spool_place();
    snprintf(text, sizeof text, "%s cannot be kept in %.300s (%s)", what, place.directory,
             place.is_chosen ? "TMPDIR" : "TMPDIR would choose another place");
    fail(r, text, error);
}

/* ---- signals ---- */

/* The command was stopped: so are we, and all of our group, until somebody continues us. Without a terminal there is
 * nobody to do that. Where we cannot be stopped, the stop key does nothing; a terminal that it cannot have is lost to
 * it, which the kernel, too, tells by SIGHUP; and what was stopped by hand stays so. */
static void stop_with(struct run *r, int number)
{
    struct run_terminal *terminal = &r->terminal;
    if (terminal->fd < 0 || r->child.leaving)
        return;
    if ((number == SIGTTIN || number == SIGTTOU) && run_terminal_is_ours(terminal)) {
        run_terminal_lend(terminal, r->child.pid); /* it only wanted the terminal */
    } else {
        run_terminal_pause(terminal);
        bool stopped = run_signals_stop(true);
        run_terminal_resume(terminal, r->child.pid);
        if (!stopped && number == SIGSTOP)
            return;
        if (!stopped && number != SIGTSTP)
            run_child_signal(&r->child, SIGHUP);
    }
    run_child_signal(&r->child, SIGCONT);
}

static void on_stop_key(struct run *r)
{
    if (r->child.pid > 0 && !r->child.gone)
        run_child_signal(&r->child, SIGTSTP); /* its stop will be ours */
    else if (r->terminal.fd >= 0)
        run_signals_stop(false); /* our neighbours had it from the keyboard, too */
}

/* Only we were stopped, by hand: a shell may have had the terminal meanwhile. */
static void on_continue(struct run *r)
{
    if (r->child.pid > 0 && !r->child.gone)
        run_terminal_resume(&r->terminal, r->child.pid);
}

static void on_resize(struct run *r)
{
    for (struct run_tap *tap = &r->out; tap != NULL; tap = tap == &r->out ? &r->err : NULL)
        if (tap->is_terminal && tap->from >= 0)
            run_terminal_resize(tap->from, tap->to);
    if (!r->terminal.lent)
        run_child_signal(&r->child, SIGWINCH);
}

/* The end is wished for: now, or as soon as what runs has left. */
static void on_end(struct run *r, int number)
{
    int64_t grace_ns = r->signal != 0 && r->config->grace_ns > IMPATIENT_NS ? IMPATIENT_NS : r->config->grace_ns;
    r->signal = r->signal != 0 ? r->signal : number;
    run_child_leave(&r->child, number, bide_now() + grace_ns);
}

static void on_signals(struct run *r)
{
    int number;
    while ((number = run_signals_next(&r->signals)) != 0)
        switch (number) {
        case SIGCHLD: {
            int stopped = run_child_look(&r->child);
            if (stopped != 0)
                stop_with(r, stopped);
            break;
        }
        case SIGTSTP: on_stop_key(r); break;
        case SIGCONT: on_continue(r); break;
        case SIGWINCH: on_resize(r); break;
        default: on_end(r, number); break;
        }
}

/* ---- one turn of the loop ---- */

/* Arms the timer; an instant that has passed fires at once. */
static bool arm(struct run *r, int64_t until_ns)
{
    struct itimerspec when = {.it_value = {.tv_sec = until_ns / BIDE_S, .tv_nsec = until_ns % BIDE_S}};
    if (until_ns == BIDE_NEVER)
        return false;
    if (r->timer_fd < 0)
        r->timer_fd = run_file_high(timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK));
    if (r->timer_fd >= 0 && r->timer_ns != until_ns &&
        timerfd_settime(r->timer_fd, TFD_TIMER_ABSTIME, &when, NULL) == 0)
        r->timer_ns = until_ns;
    return r->timer_fd >= 0;
}

enum { SIGNALS, TIMER, INPUT, OUT, ERR, HINT, SLOTS };

/* Waits until something happens, or until that instant, and does what is to be done about it. */
static void turn(struct run *r, int64_t until_ns)
{
    static const struct pollfd nothing = {.fd = -1};
    struct pollfd set[SLOTS] = {
        [SIGNALS] = {.fd = r->signals.fd, .events = POLLIN},
        [TIMER] = {.fd = arm(r, until_ns) ? r->timer_fd : -1, .events = POLLIN},
        [INPUT] = r->feeds ? run_stdin_wants(&r->input) : nothing,
        [OUT] = run_tap_wants(&r->out),
        [ERR] = run_tap_wants(&r->err),
        [HINT] = run_tap_wants(&r->hint),
    };
    bool no_timer = set[TIMER].fd < 0 && until_ns != BIDE_NEVER; /* none could be had: look again soon */
    if (poll(set, SLOTS, no_timer ? 10 : -1) < 0)
        return;
    if (set[TIMER].revents != 0)
        r->timer_ns = 0;
    if (set[INPUT].revents != 0)
        run_stdin_serve(&r->input);
    if (set[OUT].revents != 0)
        run_tap_serve(&r->out);
    if (set[ERR].revents != 0)
        run_tap_serve(&r->err);
    if (set[HINT].revents != 0)
        run_tap_serve(&r->hint);
    if (set[SIGNALS].revents != 0)
        on_signals(r);
    if (r->input.error != 0)
        fail_to_keep(r, "standard input", r->input.error);
    if (r->out.error != 0 && r->out.error != EPIPE && r->config->hold)
        fail_to_keep(r, "the output", r->out.error);
    else if (r->out.error != 0 && r->out.error != EPIPE)
        fail(r, "standard output", r->out.error);
}

/* ---- a process ---- */

static void attend(struct run *r)
{
    while (run_child_lives(&r->child)) {
        turn(r, run_child_due(&r->child, bide_now()));
        run_child_tick(&r->child, bide_now());
    }
    if (r->child.leaving)
        prctl(PR_SET_CHILD_SUBREAPER, 0);
    run_terminal_take(&r->terminal, WIFSIGNALED(r->child.wait_status));
    r->child.pid = 0; /* what it left in the background is the user's, and no signal reaches it from here */
}

/* Starts it and stays with it until it is gone. False: it could not be started. */
static bool run_child(struct run *r, struct run_spawn *spawn, int64_t cut_ns)
{
    spawn->environment = run_env_list(&r->environment);
    spawn->signals = &r->signals;
    spawn->terminal = &r->terminal;
    r->child = (struct run_child){.cut_ns = cut_ns, .grace_ns = r->config->grace_ns};
    if (spawn->environment == NULL || !run_child_start(&r->child, spawn))
        return false;
    run_stdin_started(&r->input);
    run_tap_started(&r->out);
    run_tap_started(&r->err);
    run_tap_started(&r->hint);
    attend(r);
    return true;
}

/* What is still in the pipes. A reader that does not read holds us up, as it would the command; not after a signal. */
static void drain(struct run *r)
{
    int64_t until_ns = BIDE_NEVER;
    run_tap_end(&r->out);
    run_tap_end(&r->err);
    run_tap_end(&r->hint);
    while (!(run_tap_is_done(&r->out) && run_tap_is_done(&r->err) && run_tap_is_done(&r->hint))) {
        if (r->signal != 0 && until_ns == BIDE_NEVER)
            until_ns = bide_now() + IMPATIENT_NS;
        if (bide_now() >= until_ns)
            break;
        turn(r, until_ns);
    }
    run_tap_close(&r->out);
    run_tap_close(&r->err);
    run_tap_close(&r->hint);
}

/* A line for the shell, as it is given to sh -c. Its stdout goes where its stderr goes if `talks`. Returns its status
 * as a shell reports it. */
static int run_shell(struct run *r, const char *line, struct run_spawn spawn, int64_t cut_ns)
{
    char shell[] = "/bin/sh", option[] = "-c";
    char *copy = strdup(line);
    char *const argv[] = {shell, option, copy, NULL};
    int status = RUN_EXIT_OWN;
    spawn.argv = argv;
    if (copy == NULL || !run_child(r, &spawn, cut_ns))
        fail(r, "/bin/sh cannot be started", errno);
    else
        status = r->child.cut ? RUN_EXIT_TIME : run_shell_status(r->child.wait_status);
    free(copy);
    return status;
}

/* ---- an attempt ---- */

static bool open_streams(struct run *r, struct run_spawn *spawn)
{
    run_spool_empty(&r->held);
    if (!run_stdin_open(&r->input, &spawn->in) || !run_tap_open(&r->out) || !run_tap_open(&r->err) ||
        !run_tap_open(&r->hint))
        return false;
    spawn->out = r->out.child;
    spawn->err = r->err.child;
    spawn->hint = r->hint.child;
    return true;
}

static bool write_environment(struct run *r)
{
    struct run_env env = {.attempt = r->verdict.attempt,
                          .attempts_max = r->config->policy->attempts_max,
                          .last_status = r->has_ending ? r->ending.status : -1,
                          .target = r->config->target_name,
                          .deadline_ns = r->deadline_ns,
                          .now_ns = bide_now(),
                          .offers_hint_fd = r->hint.used};
    if (r->request.inbound.attempt > env.attempt)
        env.attempt = r->request.inbound.attempt;
    return run_env_write(&r->environment, &env);
}

static bool nobody_reads_stdout(void)
{
    struct pollfd ask = {.fd = STDOUT_FILENO, .events = POLLOUT};
    return poll(&ask, 1, 0) > 0 && (ask.revents & POLLERR) != 0;
}

/* What the process did and what its streams said. */
static struct run_ending gather(struct run *r)
{
    const struct run_child *child = &r->child;
    bool of_stdout = r->out.lines.matched != NULL;
    struct run_ending e = {.status = run_shell_status(child->wait_status),
                           .killed = WIFSIGNALED(child->wait_status),
                           .cut = child->cut,
                           .start_error = child->start_error,
                           .pattern = of_stdout ? r->out.lines.matched : r->err.lines.matched,
                           .stream = of_stdout ? "stdout" : "stderr",
                           .patterns = r->out.lines.patterns != NULL || r->err.lines.patterns != NULL,
                           .input_spent = run_stdin_is_spent(&r->input),
                           .hint = bide_hint_merge(r->err.lines.hint, r->hint.lines.hint)};
    e.output_gone =
        (e.killed && WTERMSIG(child->wait_status) == SIGPIPE && nobody_reads_stdout()) || r->out.error == EPIPE;
    return e;
}

/* The condition has nothing to read, and what it prints is talk. */
static int ask_condition(struct run *r, int64_t cut_ns)
{
    struct run_spawn spawn = {.err = -1, .hint = -1};
    spawn.in = run_file_high(open("/dev/null", O_RDWR | O_CLOEXEC));
    spawn.out = fcntl(STDERR_FILENO, F_GETFD) >= 0 ? STDERR_FILENO : spawn.in; /* never where data goes */
    r->feeds = false;
    int status = run_shell(r, r->config->until, spawn, cut_ns);
    run_file_close(&spawn.in);
    return status;
}

/* Makes the attempt, and whatever belongs to it. */
static void attempt(struct run *r)
{
    const struct run_config *config = r->config;
    struct run_spawn spawn = {.argv = config->command};
    int64_t start_ns = bide_now(), cut_ns = r->verdict.attempt_deadline_ns;
    if (!open_streams(r, &spawn) || !write_environment(r)) {
        fail(r, "the command's streams cannot be made", errno);
        return;
    }
    r->feeds = true;
    if (!run_child(r, &spawn, cut_ns)) {
        fail(r, "no process can be started", errno);
        return;
    }
    drain(r);
    r->ending = gather(r);
    r->ending.cut_after_ns = r->ending.cut ? cut_ns - start_ns : 0;
    r->has_ending = true;
    bool fine = r->ending.status == 0 && !r->ending.cut && r->ending.pattern == NULL && !r->failed;
    if (config->until != NULL && fine) /* one that was not asked does not hold */
        r->ending.condition = r->signal != 0 ? SIGNALLED + r->signal : ask_condition(r, cut_ns);
    r->ending.outcome = run_judge(&r->ending, config->exits);
    r->ending.took_ns = bide_now() - start_ns;
}

/* ---- what was held ---- */

/* Whether more of stdout may be written: false after a signal. */
static bool stdout_takes(struct run *r)
{
    struct pollfd set[] = {{.fd = r->out.to, .events = POLLOUT}, {.fd = r->signals.fd, .events = POLLIN}};
    while (r->signal == 0) {
        if (poll(set, 2, -1) < 0)
            continue;
        if (set[1].revents != 0)
            on_signals(r);
        else if (set[0].revents != 0)
            return true;
    }
    return false;
}

/* Returns errno; 0: all of it was written. */
static int write_out(struct run *r, const char *bytes, size_t length)
{
    while (length > 0 && stdout_takes(r)) {
        ssize_t n = write(r->out.to, bytes, length < r->out.slice ? length : r->out.slice);
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            return errno;
        bytes += n > 0 ? n : 0;
        length -= n > 0 ? (size_t)n : 0;
    }
    return length > 0 ? EINTR : 0;
}

/* Lets out what the attempt printed. Returns the exit status. */
static int let_out(struct run *r)
{
    ssize_t n;
    int64_t at = 0;
    int error = 0;
    while (error == 0 && (n = run_spool_read(&r->held, at, r->out.buffer, RUN_TAP_SIZE)) != 0) {
        error = n < 0 ? errno : write_out(r, r->out.buffer, (size_t)n);
        at += n;
    }
    run_spool_empty(&r->held);
    if (r->signal != 0)
        return SIGNALLED + r->signal;
    if (error == EPIPE)
        return SIGNALLED + SIGPIPE;
    if (error != 0)
        fail(r, "standard output", error);
    return error != 0 ? RUN_EXIT_OWN : 0;
}

/* ---- the end ---- */

/* Nothing was run: who said so? */
static int status_of_refusal(const struct run *r)
{
    if (r->verdict.reason == BIDE_REASON_DEADLINE || r->verdict.reason == BIDE_REASON_DEADLINE_NEAR)
        return RUN_EXIT_TIME;
    return r->verdict.reason == BIDE_REASON_BAD_POLICY ? RUN_EXIT_OWN : RUN_EXIT_REFUSED;
}

/* The fallback is no retry: of attempts and deadlines it hears what we ourselves were told. */
static bool write_fallback_environment(struct run *r, int status)
{
    char text[16];
    struct run_env_own *own = &r->environment;
    int64_t outer_ns = r->request.deadline_ns;
    struct run_env env = {.attempt = r->request.inbound.attempt > 1 ? r->request.inbound.attempt : 1,
                          .attempts_max = 1,
                          .last_status = r->has_ending ? r->ending.status : -1,
                          .target = r->config->target_name,
                          .deadline_ns = outer_ns != 0 ? outer_ns : BIDE_NEVER,
                          .now_ns = bide_now()};
    snprintf(text, sizeof text, "%d", status);
    if (r->hint.used)
        run_env_set(own, RUN_ENV_HINT_FD, NULL);
    run_env_set(own, RUN_ENV_WHY, bide_reason_label(r->verdict.reason));
    run_env_set(own, RUN_ENV_STATUS, text);
    return run_env_write(own, &env);
}

static int fall_back(struct run *r, int status)
{
    struct run_spawn spawn = {.out = -1, .err = -1, .hint = -1};
    if (!write_fallback_environment(r, status) || !run_stdin_open(&r->input, &spawn.in)) {
        fail(r, "the fallback cannot be started", errno);
        return RUN_EXIT_OWN;
    }
    r->feeds = true;
    status = run_shell(r, r->config->fallback, spawn, BIDE_NEVER);
    if (r->signal != 0)
        return SIGNALLED + r->signal;
    if (!r->failed)
        tell(r, RUN_FELL_BACK, status);
    return status;
}

static bool was_interrupted(const struct run *r)
{
    return r->signal != 0 || (r->has_ending && r->ending.outcome.kind == BIDE_KIND_CANCELLED);
}

static int give_up(struct run *r)
{
    int status = r->has_ending ? run_exit_status(&r->ending) : status_of_refusal(r);
    if (r->signal != 0)
        status = SIGNALLED + r->signal;
    tell(r, RUN_GAVE_UP, status);
    if (r->config->fallback != NULL && !was_interrupted(r))
        return fall_back(r, status);
    return status;
}

static int succeed(struct run *r)
{
    int status = r->config->hold ? let_out(r) : 0;
    if (status == 0)
        tell(r, RUN_SUCCEEDED, 0);
    if (status != 0 && r->signal != 0) {
        r->verdict.reason = BIDE_REASON_CANCELLED; /* it is not the command that ends here, but what it printed */
        tell(r, RUN_GAVE_UP, status);
    }
    return status;
}

/* ---- verdicts ---- */

static void cancel(struct run *r)
{
    r->decided_ns = bide_now();
    r->verdict = bide_call_cancel(&r->call, r->decided_ns);
}

static void start(struct run *r)
{
    on_signals(r);
    if (r->signal != 0) { /* in the last moment: nothing is started any more */
        cancel(r);
        return;
    }
    tell(r, RUN_STARTS, 0);
    attempt(r);
    if (r->failed)
        return;
    tell(r, RUN_ENDED, 0);
    if (r->signal != 0 && r->ending.outcome.kind != BIDE_KIND_OK) {
        cancel(r);
        return;
    }
    r->decided_ns = bide_now();
    r->verdict = bide_call_outcome(&r->call, r->verdict.attempt, &r->ending.outcome, r->decided_ns);
}

static void await(struct run *r)
{
    int64_t until_ns = r->verdict.wake_ns, tick_ns = r->config->tick_ns, now_ns = bide_now();
    tell(r, RUN_WAITS, 0);
    while (r->signal == 0 && now_ns < until_ns) {
        int64_t next_ns = tick_ns > 0 && now_ns + tick_ns < until_ns ? now_ns + tick_ns : until_ns;
        turn(r, next_ns);
        now_ns = bide_now();
        if (tick_ns > 0 && r->signal == 0 && now_ns < until_ns && run_terminal_is_ours(&r->terminal))
            tell(r, RUN_TICK, 0); /* in the background it would write over what somebody types */
    }
    if (r->signal != 0) {
        cancel(r);
        return;
    }
    r->decided_ns = now_ns;
    r->verdict = bide_call_wake(&r->call, now_ns);
}

/* One deed for each verdict. Returns the exit status, in the end. */
static int obey(struct run *r)
{
    while (!r->failed)
        switch (r->verdict.action) {
        case BIDE_START: start(r); break;
        case BIDE_WAIT: await(r); break;
        case BIDE_DONE: return succeed(r);
        case BIDE_GIVE_UP: return give_up(r);
        case BIDE_NONE: cancel(r); break; /* nothing that this loop does leads here */
        }
    return RUN_EXIT_OWN;
}

/* ---- the whole ---- */

bool run_hint_fd_is_free(void)
{
    return fcntl(RUN_HINT_FD_NUMBER, F_GETFD) < 0 && errno == EBADF;
}

static void prepare_streams(struct run *r)
{
    const struct run_config *config = r->config;
    run_stdin_init(&r->input, (struct run_stdin_wish){config->policy->attempts_max > 1, config->replay_stdin});
    r->out.used = config->hold || config->stdout_patterns != NULL;
    r->out.spool = config->hold ? &r->held : NULL;
    r->out.lines.patterns = config->stdout_patterns;
    r->err.lines.hints = (config->hints & RUN_HINT_STDERR) != 0;
    r->err.lines.patterns = config->stderr_patterns;
    r->err.used = r->err.lines.hints || config->stderr_patterns != NULL;
    r->err.midline = config->midline;
    r->hint.lines.hints = r->hint.lines.bare = r->hint.used = (config->hints & RUN_HINT_FD) != 0;
    run_tap_init(&r->out, STDOUT_FILENO);
    run_tap_init(&r->err, STDERR_FILENO);
    run_tap_init(&r->hint, -1);
}

static void begin(struct run *r)
{
    const struct run_config *config = r->config;
    int64_t own_ns = config->policy->deadline_ns;
    char text[128];
    r->begun_ns = r->decided_ns = bide_now();
    /* Whoever uses this command says that running it again is safe. */
    r->request = (struct bide_request){.safety = BIDE_SAFE, .lane = bide_lane()};
    r->request.seed = config->has_seed ? config->seed : bide_seed();
    const char *bad = run_env_read(&r->request, r->begun_ns);
    if (bad != NULL) {
        snprintf(text, sizeof text, "%s makes no sense and is ignored: want a whole number", bad);
        say(r, text);
    }
    r->deadline_ns = own_ns == BIDE_NEVER ? BIDE_NEVER : r->begun_ns + own_ns;
    if (r->request.deadline_ns != 0 && r->request.deadline_ns < r->deadline_ns)
        r->deadline_ns = r->request.deadline_ns;
    r->verdict = bide_call_begin(&r->call, config->policy, config->target, &r->request, r->begun_ns);
}

static void release(struct run *r)
{
    run_signals_restore(&r->signals);
    run_file_close(&r->signals.fd);
    run_file_close(&r->timer_fd);
    run_terminal_close(&r->terminal);
    run_stdin_free(&r->input);
    run_tap_free(&r->out);
    run_tap_free(&r->err);
    run_tap_free(&r->hint);
    run_spool_empty(&r->held);
    run_env_free(&r->environment);
}

/* Was it Ctrl-C? The keyboard sends SIGINT to the group in the foreground: to the command's, if it had the terminal. */
static bool was_keyboard(const struct run *r)
{
    bool command_died = r->has_ending && r->ending.killed && r->ending.status == SIGNALLED + SIGINT;
    return run_terminal_is_ours(&r->terminal) && (r->signal == SIGINT || (r->signal == 0 && command_died));
}

int run_command(const struct run_config *config)
{
    int status = RUN_EXIT_OWN;
    struct run *r = calloc(1, sizeof *r);
    if (r == NULL)
        return status;
    r->config = config;
    r->timer_fd = r->signals.fd = -1;
    run_terminal_open(&r->terminal);
    prepare_streams(r);
    if (!run_signals_take(&r->signals) || !run_env_key(&r->environment)) {
        fail(r, "cannot begin", errno);
        goto out;
    }
    begin(r);
    status = obey(r);
    if (status == SIGNALLED + SIGINT && was_keyboard(r)) {
        if (r->signal == 0) { /* the command alone had it: our neighbours now, too. Ours is read, not died of */
            kill(0, SIGINT);
            on_signals(r);
        }
        status = -SIGINT;
    }
    if (r->failed)
        status = RUN_EXIT_OWN;
out:
    release(r);
    free(r);
    return status;
}

_Noreturn void run_die(int number)
{
    struct sigaction usual = {.sa_handler = SIG_DFL};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    sigaction(number, &usual, NULL);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    raise(number);
    _exit(SIGNALLED + number);
}
