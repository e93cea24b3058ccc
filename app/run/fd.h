/* fd.h - descriptors of our own stay out of the way of those that a command may expect.
 *
 * A command's descriptors 0 to 2 may be closed, and 3 and up may be the user's. What bide opens for itself lies at
 * RUN_FILE_FIRST and above, and is closed by exec. */
#ifndef RUN_FD_H
#define RUN_FD_H

#include <stdbool.h>

#define RUN_FD_FIRST 10

/* Moves a descriptor up. -1, with errno, if that fails; the one given is then closed. -1 stays -1. */
int run_fd_above_first(int fd);

struct run_pipe {
    int read, write;
};

/* False, with errno. */
bool run_fd_pipe(struct run_pipe *pipe);

void run_fd_set_nonblocking(int fd);

/* Closes, and makes it -1; accepts -1. Keeps errno. */
void run_fd_close(int *fd);

#endif
