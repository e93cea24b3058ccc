/* loan.h - lends bide's stdin, a pipe or stream socket, to the command: what the command does not read stays in it.
 *
 *     stdin ──peek──► bytes ──write──► pipe, full ──► command
 *       ▲                                  │
 *       └─ remove what the command read ◄──┘ take back the rest
 *
 * A shell that reads its script from a pipe, `while read`, and the next attempt all continue where the command stopped
 * reading. So bide only looks at the input (tee(2), or recv with MSG_PEEK) and writes a copy into the command's pipe,
 * whose size is set so that the copy fills all its pages: the pipe is then reported as writable as soon as the command
 * has read something (with one page: when it has read all). At that moment, and after the command's end, bide takes
 * back the unread part of the copy, and removes the difference from stdin. The copy has one page for a command that
 * reads slowly, and up to RUN_LOAN_PAGES for one that reads them at once.
 *
 * Every removed byte is compared with the byte that was lent. A difference means that another process read from stdin
 * at the same time, so that some input was processed twice and some not at all: the loan has a conflict.
 *
 * Known weakness: if bide is killed with SIGKILL, bytes that the command has read may still be in stdin. */
#ifndef RUN_LOAN_H
#define RUN_LOAN_H

#include "common/fd.h"

#include <poll.h>
#include <stddef.h>
#include <stdint.h>

#define RUN_LOAN_PAGE  4096u /* the smallest page: fits into one buffer of a pipe on every platform */
#define RUN_LOAN_PAGES 16u   /* a power of two: the capacity of most pipes */
#define RUN_LOAN_SIZE  (RUN_LOAN_PAGES * RUN_LOAN_PAGE)

struct run_loan {
    bool is_socket;            /* stdin is a socket, not a pipe */
    struct cli_pipe pipe;      /* to the command; a new one for each attempt */
    struct cli_pipe peeked;    /* bytes of a pipe pass through this one on their way to bide */
    size_t length;             /* bytes lent: written to the pipe, and still in stdin */
    size_t pages;              /* that the next copy may have: a power of two */
    int64_t removed;           /* bytes that the command, in all its attempts, has read */
    bool conflict;             /* another process read from stdin at the same time */
    int error;                 /* errno of a failed call; 0: none */
    char bytes[RUN_LOAN_SIZE]; /* the copy */
    char taken[RUN_LOAN_SIZE]; /* bytes removed from stdin, or taken back */
};

void run_loan_init(struct run_loan *loan, bool is_socket);

/* Prepares an attempt: pipe.read is the command's stdin. Returns false and sets errno on failure. */
bool run_loan_open(struct run_loan *loan);

/* Returns the descriptor to poll; run_loan_on_ready must be called when it is ready. */
struct pollfd run_loan_pollfd(const struct run_loan *loan);
void run_loan_on_ready(struct run_loan *loan);

/* After the command's end: removes what the command has read from stdin, and takes back the rest. */
void run_loan_settle(struct run_loan *loan);

void run_loan_free(struct run_loan *loan);

#endif
