/* spool.c - a growing byte buffer: in memory while small, then in an unnamed temporary file; see spool.h. */
#include "spool.h"

#include "fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int spool_fd(const struct cli_spool *spool)
{
    return spool->fd_plus_one - 1;
}

struct cli_spool_directory cli_spool_directory(void)
{
    const char *chosen = getenv("TMPDIR");
    bool from_tmpdir = chosen != NULL && chosen[0] != '\0';
    return from_tmpdir ? (struct cli_spool_directory){chosen, "$TMPDIR"}
                       : (struct cli_spool_directory){"/tmp", "$TMPDIR selects another directory"};
}

/* Creates an unnamed file. Without O_TMPFILE support: creates a named file and unlinks it. */
static int open_unnamed(void)
{
    const char *directory = cli_spool_directory().path;
    char path[PATH_MAX];
    int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0)
        return cli_fd_above_first(fd);
    if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)
        return -1;
    int length = snprintf(path, sizeof path, "%s/bide-XXXXXX", directory);
    if (length < 0 || (size_t)length >= sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    if ((fd = mkostemp(path, O_CLOEXEC)) >= 0)
        unlink(path);
    return fd >= 0 ? cli_fd_above_first(fd) : -1;
}

/* Writes all bytes at the offset. Returns false and sets errno on failure. */
static bool write_all_at(int fd, const char *bytes, size_t length, int64_t offset)
{
    while (length > 0) {
        ssize_t n = pwrite(fd, bytes, length, offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        bytes += n;
        offset += n;
        length -= (size_t)n;
    }
    return true;
}

static bool spool_move_to_file(struct cli_spool *spool)
{
    int fd = open_unnamed();
    if (fd < 0)
        return false;
    if (!write_all_at(fd, spool->memory, (size_t)spool->size, 0)) {
        cli_fd_close(&fd);
        return false;
    }
    free(spool->memory);
    spool->memory = NULL;
    spool->fd_plus_one = fd + 1;
    return true;
}

/* Returns 1 if the bytes were stored, 0 if they need the file, -1 if out of memory. */
static int spool_add_to_memory(struct cli_spool *spool, const char *bytes, size_t length)
{
    size_t room = spool->memory_max > 0 ? spool->memory_max : CLI_SPOOL_MEMORY;
    if (spool_fd(spool) >= 0 || length > room - (size_t)spool->size)
        return 0;
    if (spool->memory == NULL && (spool->memory = malloc(room)) == NULL)
        return -1;
    memcpy(spool->memory + spool->size, bytes, length);
    return 1;
}

bool cli_spool_add(struct cli_spool *spool, const char *bytes, size_t length)
{
    if (length == 0)
        return true;
    int stored = spool_add_to_memory(spool, bytes, length);
    if (stored < 0 || (stored == 0 && spool_fd(spool) < 0 && !spool_move_to_file(spool)))
        return false;
    if (stored == 0 && !write_all_at(spool_fd(spool), bytes, length, spool->size))
        return false;
    spool->size += (int64_t)length;
    return true;
}

ssize_t cli_spool_read(const struct cli_spool *spool, int64_t offset, char *bytes, size_t room)
{
    int64_t left = spool->size - offset;
    size_t length = left < (int64_t)room ? (size_t)(left > 0 ? left : 0) : room;
    ssize_t n;
    if (length == 0)
        return 0;
    if (spool_fd(spool) < 0) {
        memcpy(bytes, spool->memory + offset, length);
        return (ssize_t)length;
    }
    while ((n = pread(spool_fd(spool), bytes, length, offset)) < 0 && errno == EINTR)
        continue;
    return n;
}

void cli_spool_clear(struct cli_spool *spool)
{
    int fd = spool_fd(spool);
    cli_fd_close(&fd);
    free(spool->memory);
    *spool = (struct cli_spool){.memory_max = spool->memory_max};
}
