/* hint_fd.h - passes a server's Retry-After on to the `bide run` around this program.
 *
 * bide run offers its command a pipe on descriptor 3 (BIDE_HINT_FD), and names the pipe by its inode (BIDE_HINT_PIPE).
 * A script may have reused the descriptor, and a daemon may have inherited the variables long ago: a hint is written
 * only to that pipe. */
#ifndef CLI_HINT_FD_H
#define CLI_HINT_FD_H

#include <bide/hint.h>

#include <stdbool.h>

/* Writes the hint, if it is a wait and an outer bide run offers its pipe. Returns true if it was written. */
bool cli_hint_pass_on(const struct bide_hint *hint);

#endif
