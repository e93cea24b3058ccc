/* stdin.h - the command's standard input, and whether it can be given a second time.
 *
 *   inherited  a terminal, /dev/null, nothing at all: the command has it as bide has it
 *   rewound    a file: each attempt begins where the first one did
 *   relayed    a pipe or socket: passed on through a pipe of ours, which knows afterwards whether any of it was read.
 *              As long as none was, the next attempt finds all of it there; else it is spent
 *   replayed   the same, on request: what came is kept in a spool, and each attempt gets it from the start
 *
 * A relayed or replayed input is read no faster than the command reads, but for what a pipe holds. */
#ifndef RUN_STDIN_H
#define RUN_STDIN_H

#include "fd.h"
#include "spool.h"

#include <poll.h>
#include <stdint.h>
#include <sys/types.h>

#define RUN_STDIN_SIZE 65536u

enum run_stdin_mode { RUN_STDIN_INHERITED = 0, RUN_STDIN_REWOUND, RUN_STDIN_RELAYED, RUN_STDIN_REPLAYED };

struct run_stdin {
    enum run_stdin_mode mode;
    off_t start;          /* rewound: where the file was */
    struct run_pipe pipe; /* relayed: one for all attempts, both ends kept; replayed: one each, and write kept */
    bool at_end;          /* no more will come */
    bool reader_closed;   /* the command closed its end */
    int error;            /* errno of the spool; 0: nothing */
    int64_t written;      /* bytes put into the pipe */
    struct run_spool spool;
    size_t offset, length; /* of the buffer, still to be put into the pipe */
    char buffer[RUN_STDIN_SIZE];
};

struct run_stdin_options {
    bool may_retry; /* there may be a second attempt: else all is as without bide */
    bool replay;    /* --replay-stdin */
};
void run_stdin_init(struct run_stdin *input, struct run_stdin_options options);

/* For an attempt. Sets what the child gets; -1: what bide has. False, with errno. */
bool run_stdin_open(struct run_stdin *input, int *child_fd);
void run_stdin_after_fork(struct run_stdin *input);

struct pollfd run_stdin_pollfd(const struct run_stdin *input);
void run_stdin_on_ready(struct run_stdin *input);

/* The command is gone: did it read any of what cannot be given again? */
bool run_stdin_is_spent(const struct run_stdin *input);

void run_stdin_free(struct run_stdin *input);

#endif
