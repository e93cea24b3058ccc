/* stdin.h - the command's standard input, and whether it can be repeated for the next attempt.
 *
 *   inherited  a terminal, /dev/null, closed, or not for reading: the command gets bide's own stdin. With --stdin
 *              inherit a pipe or socket, too; bide cannot see whether it was read, so there is no attempt after one
 *              that may have
 *   rewound    a regular file or a block device: each attempt starts at the offset of the first
 *   lent       a pipe or stream socket: bytes that the command does not read stay in it (loan.h). While none was read,
 *              the next attempt finds the input complete; otherwise it is spent
 *   replayed   the same with --stdin replay: a spool keeps the input, and each attempt gets it from the start. It is
 *              read only as fast as the command reads it, plus the capacity of a pipe */
#ifndef RUN_STDIN_H
#define RUN_STDIN_H

#include "common/fd.h"
#include "common/spool.h"
#include "loan.h"

#include <poll.h>
#include <stdint.h>
#include <sys/types.h>

#define RUN_STDIN_SIZE 65536u

enum run_stdin_mode { RUN_STDIN_INHERITED = 0, RUN_STDIN_REWOUND, RUN_STDIN_LENT, RUN_STDIN_REPLAYED };

/* --stdin: what happens to input from a pipe or socket. */
enum run_stdin_option { RUN_STDIN_LEND = 0, RUN_STDIN_INHERIT, RUN_STDIN_REPLAY };

struct run_stdin {
    enum run_stdin_mode mode;
    bool is_opaque;       /* inherited: a pipe or socket, which an attempt may have read */
    off_t start;          /* rewound: file offset at the start */
    struct run_loan loan; /* lent */
    struct cli_pipe pipe; /* replayed: one for each attempt, write end kept */
    bool at_end;          /* end of input reached */
    bool reader_closed;   /* the command closed its end */
    int error;            /* errno of the spool; 0: none */
    int read_error;       /* errno of bide's own stdin; 0: none */
    int64_t written;      /* bytes written to the pipe */
    struct cli_spool spool;
    size_t offset, length; /* unsent part of the buffer */
    char buffer[RUN_STDIN_SIZE];
};

struct run_stdin_options {
    bool may_retry; /* a second attempt is possible; otherwise stdin is inherited */
    enum run_stdin_option piped;
};
void run_stdin_init(struct run_stdin *input, struct run_stdin_options options);

/* Prepares an attempt. Sets the descriptor for the child, -1 to inherit. Returns false and sets errno on failure. */
bool run_stdin_open(struct run_stdin *input, int *child_fd);
void run_stdin_after_fork(struct run_stdin *input);

struct pollfd run_stdin_pollfd(const struct run_stdin *input);
void run_stdin_on_ready(struct run_stdin *input);

/* After the command's end: takes back what was lent and not read. */
void run_stdin_finish(struct run_stdin *input);

/* Returns true if the command read input, or may have read input, that cannot be repeated. */
bool run_stdin_is_spent(const struct run_stdin *input);

void run_stdin_free(struct run_stdin *input);

#endif
