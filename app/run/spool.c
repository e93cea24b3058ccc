/* spool.c - bytes kept for later: in memory while they are few, beyond that in a file without a name. */
#include "spool.h"

#include "fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int file_of(const struct run_spool *spool)
{
    return spool->fd_plus_one - 1;
}

struct run_spool_place run_spool_place(void)
{
    const char *chosen = getenv("TMPDIR");
    bool is_chosen = chosen != NULL && chosen[0] != '\0';
    return (struct run_spool_place){is_chosen ? chosen : "/tmp", is_chosen};
}

/* Where the file system knows no files without a name, one is made and its name removed. */
static int open_unnamed(void)
{
    const char *directory = run_spool_place().directory;
    char path[PATH_MAX];
    int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0)
        return run_file_high(fd);
    if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)
        return -1;
    int length = snprintf(path, sizeof path, "%s/bide-XXXXXX", directory);
    if (length < 0 || (size_t)length >= sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    if ((fd = mkostemp(path, O_CLOEXEC)) >= 0)
        unlink(path);
    return fd >= 0 ? run_file_high(fd) : -1;
}

/* All of it at that place, or errno. */
static bool write_at(int fd, const char *bytes, size_t length, int64_t offset)
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

static bool move_to_file(struct run_spool *spool)
{
    int fd = open_unnamed();
    if (fd < 0)
        return false;
    if (!write_at(fd, spool->memory, (size_t)spool->size, 0)) {
        run_file_close(&fd);
        return false;
    }
    free(spool->memory);
    spool->memory = NULL;
    spool->fd_plus_one = fd + 1;
    return true;
}

/* 1: kept in memory; 0: too much for it; -1: there is none. */
static int add_to_memory(struct run_spool *spool, const char *bytes, size_t length)
{
    if (file_of(spool) >= 0 || length > RUN_SPOOL_MEMORY - (size_t)spool->size)
        return 0;
    if (spool->memory == NULL && (spool->memory = malloc(RUN_SPOOL_MEMORY)) == NULL)
        return -1;
    memcpy(spool->memory + spool->size, bytes, length);
    return 1;
}

bool run_spool_add(struct run_spool *spool, const char *bytes, size_t length)
{
    if (length == 0)
        return true;
    int kept = add_to_memory(spool, bytes, length);
    if (kept < 0 || (kept == 0 && file_of(spool) < 0 && !move_to_file(spool)))
        return false;
    if (kept == 0 && !write_at(file_of(spool), bytes, length, spool->size))
        return false;
    spool->size += (int64_t)length;
    return true;
}

ssize_t run_spool_read(const struct run_spool *spool, int64_t offset, char *bytes, size_t room)
{
    int64_t left = spool->size - offset;
    size_t length = left < (int64_t)room ? (size_t)(left > 0 ? left : 0) : room;
    ssize_t n;
    if (length == 0)
        return 0;
    if (file_of(spool) < 0) {
        memcpy(bytes, spool->memory + offset, length);
        return (ssize_t)length;
    }
    while ((n = pread(file_of(spool), bytes, length, offset)) < 0 && errno == EINTR)
        continue;
    return n;
}

void run_spool_empty(struct run_spool *spool)
{
    int fd = file_of(spool);
    run_file_close(&fd);
    free(spool->memory);
    *spool = (struct run_spool){0};
}
