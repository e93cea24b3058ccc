/* fd.h - keeps bide's own descriptors out of the range that a command may use.
 *
 * Descriptors 0 to 2 of the command may be closed, and 3 and above may be the user's. Every descriptor that bide opens
 * for itself is moved to CLI_FD_FIRST or above and is close-on-exec. */
#ifndef CLI_FD_H
#define CLI_FD_H

#include <stdbool.h>

#define CLI_FD_FIRST 10

/* Moves a descriptor to CLI_FD_FIRST or above. Returns -1 and sets errno on failure, after closing `fd`. -1 is returned
 * as it is. */
int cli_fd_above_first(int fd);

struct cli_pipe {
    int read, write;
};

/* Returns false and sets errno on failure. */
bool cli_fd_pipe(struct cli_pipe *pipe);

void cli_fd_set_nonblocking(int fd);

/* Closes the descriptor and sets it to -1; ignores -1. Preserves errno. */
void cli_fd_close(int *fd);

#endif
