/* hint_fd.c - passes a server's Retry-After on to the `bide run` around this program; see hint_fd.h. */
#include "hint_fd.h"

#include "text/unit.h"

#include <bide/base.h>

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool variable_read(const char *name, uint64_t *number)
{
    const char *value = getenv(name);
    return value != NULL && text_number_parse(value, strlen(value), number);
}

bool cli_hint_pass_on(const struct bide_hint *hint)
{
    uint64_t fd, inode;
    struct stat status;
    char line[64];
    if (hint->kind != BIDE_HINT_WAIT || !variable_read("BIDE_HINT_FD", &fd) || !variable_read("BIDE_HINT_PIPE", &inode))
        return false;
    if (fd > INT_MAX || fstat((int)fd, &status) != 0 || !S_ISFIFO(status.st_mode) || status.st_ino != inode)
        return false;
    int length = snprintf(line, sizeof line, "retry-after-ms: %" PRId64 "\n", (hint->wait_ns + BIDE_MS - 1) / BIDE_MS);
    return write((int)fd, line, (size_t)length) == length; /* shorter than PIPE_BUF: whole or not at all */
}
