/* tap.h - a stream of the command on its way through bide: passed on byte by byte, or kept, and looked at meanwhile.
 *
 *     command ──► child | from ──► bide ──► lines (patterns, hints)
 *                                    ├────► to    (bide's own stream)
 *                                    └────► spool (held until the attempt is known to be good)
 *
 * One pipe per attempt, or a pseudo-terminal where `to` is a terminal, so that what an attempt left running in the
 * background cannot write into the next one. Nothing here blocks: a reader that is slow slows the command down, as it
 * would without bide. When the command has ended, what is in the pipe is still passed on, without waiting for others
 * who hold it open. */
#ifndef RUN_TAP_H
#define RUN_TAP_H

#include "fd.h"
#include "lines.h"
#include "spool.h"

#include <poll.h>

#define RUN_TAP_SIZE  65536u
#define RUN_DRAIN_MAX ((size_t)1 << 20) /* of what comes after the end: as much as a pipe can hold */

struct run_tap {
    bool enabled;
    int out_fd;              /* -1: it is not passed on */
    struct run_spool *spool; /* NULL: it is not kept */
    int in_fd, child_fd;     /* -1: closed */
    bool is_terminal;
    bool child_exited; /* the command is gone */
    size_t drained;
    int error;             /* errno of what went wrong with `to` or the spool; 0: nothing */
    size_t offset, length; /* what of the buffer is still to be passed on */
    size_t write_max;      /* as much as `to` takes without blocking */
    bool *midline;         /* set to whether what was passed on ends without a newline; NULL: nobody asks */
    struct run_lines lines;
    char buffer[RUN_TAP_SIZE];
};

void run_tap_init(struct run_tap *tap, int out_fd); /* `used` is to be set before */

bool run_tap_open(struct run_tap *tap); /* for an attempt; false, with errno */

/* In the parent, once the child has its end. */
void run_tap_after_fork(struct run_tap *tap);

/* What to poll for, and what to do then. */
struct pollfd run_tap_pollfd(const struct run_tap *tap);
void run_tap_on_ready(struct run_tap *tap);

/* The command is gone. Goes on being served until it is done. */
void run_tap_finish(struct run_tap *tap);
bool run_tap_is_done(const struct run_tap *tap);

void run_tap_close(struct run_tap *tap);
void run_tap_free(struct run_tap *tap);

#endif
