/* terminal.h - the controlling terminal: lent to the command while it runs, and taken back.
 *
 * The command has a process group of its own, so the terminal has to be given to it, or reading from it would stop the
 * command. When bide is alone with the command it is lent at once. In a pipeline it is not: the neighbours (a pager, an
 * ssh that asks for a password) may need it, and keep it until the command is seen to stop because it wanted it.
 *
 * A pseudo-terminal stands in for stdout or stderr where those are a terminal and bide must see what is written: the
 * command finds a terminal of the same size there, and every byte arrives unchanged. */
#ifndef RUN_TERMINAL_H
#define RUN_TERMINAL_H

#include "fd.h"

#include <sys/types.h>
#include <termios.h>

struct run_terminal {
    int fd;             /* -1: there is none */
    bool lend_at_start; /* lend it before it is asked for */
    bool lent;
    bool has_modes, has_lent_modes;
    struct termios modes;      /* ours */
    struct termios lent_modes; /* the command's, while it is stopped */
};

void run_terminal_open(struct run_terminal *terminal);
void run_terminal_close(struct run_terminal *terminal);

/* True if bide's group is the one in the foreground. */
bool run_terminal_is_foreground(const struct run_terminal *terminal);

/* Gives it to the group, if it is ours to give. */
void run_terminal_lend(struct run_terminal *terminal, pid_t group);

/* Takes it back, if it was lent. Modes are put back as they were if the command had no chance to do so. */
void run_terminal_reclaim(struct run_terminal *terminal, bool restore);

/* For a command that was stopped, before bide stops itself, and when both go on. Resume also finds out that somebody
 * else took what was lent: it is not to be taken from them. */
void run_terminal_pause(struct run_terminal *terminal);
void run_terminal_resume(struct run_terminal *terminal, pid_t group);

/* A pseudo-terminal that looks like the terminal `like`: read is ours, write is for the command. False: there is none
 * to be had. */
bool run_terminal_open_pty(int model, struct run_pipe *pty);

/* Its size as that of the real one. */
void run_terminal_copy_size(int pty, int model);

#endif
