/* terminal.h - lends the controlling terminal to the command's process group and reclaims it.
 *
 * The command has its own process group, so bide must make that the foreground group; otherwise the command would be
 * stopped when it reads the terminal. If bide is not part of a pipeline, the terminal is lent at the start. In a
 * pipeline the neighbours (a pager, an ssh that asks for a password) may need it: it is lent only when the command was
 * stopped by SIGTTIN or SIGTTOU.
 *
 * If stdout or stderr is a terminal and bide must read that stream, the command gets a pseudo-terminal of the same size
 * instead; every byte is forwarded unchanged. */
#ifndef RUN_TERMINAL_H
#define RUN_TERMINAL_H

#include "common/fd.h"

#include <sys/types.h>
#include <termios.h>

struct run_terminal {
    int fd;             /* -1: no controlling terminal */
    bool lend_at_start; /* lend it at the start of an attempt */
    bool lent;
    bool has_modes, has_lent_modes;
    struct termios modes;      /* bide's */
    struct termios lent_modes; /* the command's, while it is stopped */
};

void run_terminal_open(struct run_terminal *terminal);
void run_terminal_close(struct run_terminal *terminal);

/* Returns true if bide's process group is in the foreground. */
bool run_terminal_is_foreground(const struct run_terminal *terminal);

/* Makes the group the foreground group, if bide's group is that now. */
void run_terminal_lend(struct run_terminal *terminal, pid_t group);

/* Makes bide's group the foreground group again, if the terminal was lent. With `restore`, resets the modes: for a
 * command that died without doing so. */
void run_terminal_reclaim(struct run_terminal *terminal, bool restore);

/* Before bide stops together with a stopped command, and after both continue. Resume also detects that a shell has
 * taken the terminal in the meantime: it is then not reclaimed. */
void run_terminal_pause(struct run_terminal *terminal);
void run_terminal_resume(struct run_terminal *terminal, pid_t group);

/* Opens a pseudo-terminal with the size of the terminal `model`: read is for bide, write for the command. Returns false
 * on failure. */
bool run_terminal_open_pty(int model, struct cli_pipe *pty);

/* Copies the size of the terminal `model` to the pseudo-terminal. */
void run_terminal_copy_size(int pty, int model);

#endif
