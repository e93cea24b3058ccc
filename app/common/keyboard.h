/* keyboard.h - reads single keys from the terminal on stdin, without Enter and without echo.
 *
 * Signals stay on: Ctrl-C, Ctrl-Z and Ctrl-\ send theirs. The modes of the terminal are changed only while this process
 * is in the foreground; a background process would be stopped (SIGTTOU), and the modes belong to another process. */
#ifndef CLI_KEYBOARD_H
#define CLI_KEYBOARD_H

#include <stdbool.h>
#include <termios.h>

struct cli_keyboard {
    bool is_open;
    struct termios before; /* valid if is_open */
};

/* Changes the modes, unless stdin is no terminal or this process is in the background. If the keyboard is open already,
 * sets the modes again: a shell may have changed them while this process was stopped. */
void cli_keyboard_open(struct cli_keyboard *keyboard);

/* Restores the modes. Keys that were not read are left to the next reader. */
void cli_keyboard_close(struct cli_keyboard *keyboard);

/* Returns the descriptor to poll for input, or -1 if no key may be read now. */
int cli_keyboard_fd(const struct cli_keyboard *keyboard);

/* Returns the next key, 0 if none is pending, -1 if the terminal is gone. Does not wait. */
int cli_keyboard_read(const struct cli_keyboard *keyboard);

#endif
