/* keyboard.c - reads single keys from the terminal on stdin; see keyboard.h. */
#include "keyboard.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

static bool is_foreground(void)
{
    return tcgetpgrp(STDIN_FILENO) == getpgrp();
}

void cli_keyboard_open(struct cli_keyboard *keyboard)
{
    struct termios modes;
    if (!is_foreground() || tcgetattr(STDIN_FILENO, &modes) != 0)
        return;
    if (!keyboard->is_open)
        keyboard->before = modes;
    modes.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    modes.c_cc[VMIN] = 0; /* a read never waits, even if another process has taken the key that poll reported */
    modes.c_cc[VTIME] = 0;
    keyboard->is_open = tcsetattr(STDIN_FILENO, TCSADRAIN, &modes) == 0;
}

void cli_keyboard_close(struct cli_keyboard *keyboard)
{
    if (keyboard->is_open && is_foreground())
        tcsetattr(STDIN_FILENO, TCSADRAIN, &keyboard->before);
    keyboard->is_open = false;
}

int cli_keyboard_fd(const struct cli_keyboard *keyboard)
{
    return keyboard->is_open && is_foreground() ? STDIN_FILENO : -1;
}

int cli_keyboard_read(const struct cli_keyboard *keyboard)
{
    struct pollfd input = {.fd = cli_keyboard_fd(keyboard), .events = POLLIN};
    unsigned char key;
    if (poll(&input, 1, 0) <= 0)
        return 0;
    ssize_t n = read(STDIN_FILENO, &key, 1);
    if (n > 0)
        return key;
    return (n < 0 && errno == EINTR) || (n == 0 && (input.revents & POLLHUP) == 0) ? 0 : -1;
}
