/* watch.c - see watch.h. */
#include "watch.h"

#include "signals.h"
#include "term.h"

#include <bide/clock.h>

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- signals ---- */

/* Ignored signals (nohup) stay ignored. Returns -1 and sets errno on failure. */
static int signals_open(void)
{
    struct cli_signals_blocked blocked;
    cli_signals_collect(&blocked);
    if (!cli_signal_is_ignored(SIGWINCH))
        sigaddset(&blocked.set, SIGWINCH);
    sigaddset(&blocked.set, SIGCONT);
    return cli_signals_descriptor(&blocked);
}

/* ---- the screen ---- */

static void watch_enter_screen(struct cli_watch *w)
{
    if (!w->live)
        return;
    cli_keyboard_open(&w->keyboard);
    fputs(CLI_SCREEN_ENTER, stdout);
}

static void watch_leave_screen(struct cli_watch *w)
{
    if (w->live)
        fputs(CLI_SCREEN_LEAVE, stdout);
    fflush(stdout);
    cli_keyboard_close(&w->keyboard);
}

/* Ctrl-Z: restores the terminal, stops, and enters the screen again when continued. */
static void watch_suspend(struct cli_watch *w)
{
    watch_leave_screen(w);
    raise(SIGSTOP);
    watch_enter_screen(w);
}

const char *cli_watch_end_key(const struct cli_watch *watch)
{
    return watch->keyboard.is_open ? "q" : "Ctrl-C";
}

/* ---- the loop ---- */

/* Returns true if `q` was pressed; drops other keys. */
static bool watch_read_keys(struct cli_watch *w)
{
    int key;
    while ((key = cli_keyboard_read(&w->keyboard)) > 0)
        if (key == 'q')
            return true;
    if (key < 0)
        cli_keyboard_close(&w->keyboard); /* otherwise poll would report the lost terminal for ever */
    return false;
}

/* Waits for a key, a signal or the instant. */
static void watch_wait(const struct cli_watch *w, int64_t until_ns)
{
    int64_t left_ns = until_ns - bide_now();
    struct timespec left = {left_ns > 0 ? left_ns / BIDE_S : 0, left_ns > 0 ? left_ns % BIDE_S : 0};
    struct pollfd fds[] = {{.fd = w->signal_fd, .events = POLLIN},
                           {.fd = cli_keyboard_fd(&w->keyboard), .events = POLLIN}};
    ppoll(fds, sizeof fds / sizeof *fds, &left, NULL);
}

/* Waits until the view must be updated: at the instant, when the window has another size, when continued. Returns
 * CLI_WATCH_GO_ON, or the exit status. */
static int watch_pause(struct cli_watch *w, int64_t until_ns)
{
    do {
        watch_wait(w, until_ns);
        if (watch_read_keys(w))
            return EXIT_SUCCESS;
        int number = cli_signals_read(w->signal_fd);
        if (number == SIGTSTP)
            watch_suspend(w);
        else if (number == SIGCONT && w->live)
            cli_keyboard_open(&w->keyboard); /* after SIGSTOP, or moved to the foreground */
        else if (number != 0 && number != SIGWINCH && number != SIGCONT)
            return 128 + number;
        if (number != 0 && w->live)
            break;
    } while (bide_now() < until_ns);
    return CLI_WATCH_GO_ON;
}

static int watch_loop(struct cli_watch *w)
{
    int64_t due_ns = bide_now();
    for (int status = CLI_WATCH_GO_ON;;) {
        w->is_due = bide_now() >= due_ns;
        if ((status = w->update(w)) != CLI_WATCH_GO_ON)
            return status;
        if (!cli_flush(w->command))
            return CLI_EXIT_BIDE_FAILED;
        if (w->is_due) {
            w->updates++;
            due_ns = bide_now() + w->interval_ns;
        }
        if (w->count > 0 && w->updates >= w->count)
            return EXIT_SUCCESS;
        if ((status = watch_pause(w, due_ns)) != CLI_WATCH_GO_ON)
            return status;
    }
}

int cli_watch_run(struct cli_watch *watch)
{
    watch->signal_fd = signals_open();
    if (watch->signal_fd < 0)
        return cli_fail(watch->command, "signalfd: %s", strerror(errno));
    watch_enter_screen(watch);
    int status = watch_loop(watch);
    watch_leave_screen(watch);
    close(watch->signal_fd);
    return status;
}
