/* watch.h - a view that is updated at intervals until the user ends it: a page on the alternate screen of a live
 * terminal, otherwise lines.
 *
 * On a live terminal `q` ends it, SIGWINCH draws again, Ctrl-Z restores the terminal before the process stops. The
 * signals that end a command end it, with status 128 + number. */
#ifndef CLI_WATCH_H
#define CLI_WATCH_H

#include "keyboard.h"
#include "options.h"

#include <stdint.h>

enum { CLI_WATCH_GO_ON = -1 };

struct cli_watch {
    const struct cli_command *command; /* for error messages */
    bool live;                         /* a page on the alternate screen */
    int64_t interval_ns;
    int64_t count; /* of updates; 0: unlimited */
    /* Reads and shows the view. Returns CLI_WATCH_GO_ON, or the exit status that ends it: the terminal is restored
     * before cli_watch_run returns, so the caller reports an error after that. */
    int (*update)(struct cli_watch *watch);
    void *context;

    bool is_due; /* for `update`: an interval has ended, or none has begun; false: only the page must be drawn again */
    /* Private. */
    int64_t updates; /* those that were due */
    int signal_fd;
    struct cli_keyboard keyboard; /* open only if live */
};

/* Returns the exit status. */
int cli_watch_run(struct cli_watch *watch);

/* Returns the name of the key that ends a live view: "q" or "Ctrl-C". */
const char *cli_watch_end_key(const struct cli_watch *watch);

#endif
