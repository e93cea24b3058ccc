/* tap.h - an output stream of the command that bide reads: forwarded or spooled, and searched for patterns.
 *
 *     command ──► child_fd | in_fd ──► bide ──► lines  (patterns, hints)
 *                                        ├────► out_fd (bide's own stream)
 *                                        └────► spool  (held until the attempt has succeeded)
 *
 * Each attempt has its own pipe (or pseudo-terminal, if out_fd is a terminal), so that a background process of one
 * attempt cannot write into the next. Nothing here blocks: a slow reader slows the command down as it would without
 * bide. After the command's end the rest of the pipe is forwarded, without waiting for other processes that hold it
 * open. */
#ifndef RUN_TAP_H
#define RUN_TAP_H

#include "common/fd.h"
#include "common/spool.h"
#include "lines.h"

#include <poll.h>

#define RUN_TAP_SIZE  65536u
#define RUN_DRAIN_MAX ((size_t)1 << 20) /* bytes forwarded after the command's end: the capacity of a pipe */

struct run_tap {
    bool enabled;
    int out_fd;              /* -1: not forwarded */
    struct cli_spool *spool; /* NULL: not spooled */
    int in_fd, child_fd;     /* -1: closed */
    bool is_terminal;
    bool child_exited; /* the command has ended */
    size_t drained;
    int error;             /* errno of out_fd or the spool; 0: none */
    int read_error;        /* errno of in_fd: the rest of the output is unknown; 0: none */
    size_t offset, length; /* part of the buffer that is not forwarded yet */
    size_t write_max;      /* bytes that one write to out_fd accepts without blocking */
    bool *midline;         /* set to whether the forwarded output ends without a newline; may be NULL */
    struct run_lines lines;
    char buffer[RUN_TAP_SIZE];
};

void run_tap_init(struct run_tap *tap, int out_fd); /* `enabled` must be set */

bool run_tap_open(struct run_tap *tap); /* for an attempt; returns false and sets errno on failure */

/* In the parent after fork: closes the child's end. */
void run_tap_after_fork(struct run_tap *tap);

/* Returns the descriptor to poll; run_tap_on_ready must be called when it is ready. */
struct pollfd run_tap_pollfd(const struct run_tap *tap);
void run_tap_on_ready(struct run_tap *tap);

/* The command has ended: forward the rest. The tap must be served until run_tap_is_done. */
void run_tap_finish(struct run_tap *tap);
bool run_tap_is_done(const struct run_tap *tap);

void run_tap_close(struct run_tap *tap);
void run_tap_free(struct run_tap *tap);

#endif
