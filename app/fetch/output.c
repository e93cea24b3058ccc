/* output.c - files that appear whole or not at all, and answers that wait for their turn. */
#include "output.h"

#include "fetch.h"

#include <bide/entropy.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SUFFIX      ".bide-" /* and six hexadecimal digits */
#define SUFFIX_SIZE (sizeof SUFFIX - 1 + 6)
#define NAMES_TRIED 100
#define POUR_BYTES  65536u

static bool failed(struct fetch_place *place)
{
    if (place->error == 0)
        place->error = errno != 0 ? errno : EIO;
    return false;
}

/* A signal that ends us also ends a write that waits for its reader, which is no error of the place. */
static bool write_all(struct fetch_place *place, int fd, const char *at, size_t length)
{
    while (length > 0 && fetch_signal == 0) {
        ssize_t written = write(fd, at, length);
        if (written >= 0) {
            at += written;
            length -= (size_t)written;
        } else if (errno == EAGAIN) {
            poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, -1);
        } else if (errno != EINTR) {
            return failed(place);
        }
    }
    return length == 0;
}

/* ---- files ---- */

/* "dir/name" -> "dir/name.bide-012abc", the name cut where it would be too long with that. */
static char *part_name(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t directory = (size_t)(name - path), length = strlen(name);
    char *part = NULL;
    if (length > NAME_MAX - SUFFIX_SIZE)
        length = NAME_MAX - SUFFIX_SIZE;
    unsigned number = (unsigned)(bide_seed() & 0xffffff);
    return asprintf(&part, "%.*s" SUFFIX "%06x", (int)(directory + length), path, number) >= 0 ? part : NULL;
}

static bool open_part(struct fetch_place *place, mode_t mode)
{
    for (int i = 0; i < NAMES_TRIED; i++) {
        errno = ENOMEM;
        char *part = part_name(place->path);
        place->fd = part ? open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode) : -1;
        if (place->fd >= 0) {
            place->part = part;
            return !place->replaces || fchmod(place->fd, mode) == 0 || failed(place);
        }
        free(part);
        if (errno != EEXIST)
            break;
    }
    return failed(place);
}

/* There is such a file: it must be ours to write, and a link to it stays one. */
static bool open_over(struct fetch_place *place, const char *path, mode_t mode)
{
    if (faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) != 0)
        return failed(place);
    place->replaces = true;
    place->path = realpath(path, NULL);
    return place->path ? open_part(place, mode) : failed(place);
}

static bool open_new(struct fetch_place *place, const char *path)
{
    struct stat st;
    errno = ENOENT;
    if (lstat(path, &st) == 0) /* a link that leads nowhere */
        return failed(place);
    place->path = strdup(path);
    return place->path ? open_part(place, 0666) : failed(place);
}

static bool open_device(struct fetch_place *place, const char *path)
{
    place->kind = FETCH_TO_DEVICE;
    place->fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    return place->fd >= 0 || failed(place);
}

/* A descriptor that somebody else has opened, /dev/stdout say: it may be a file, but whoever reads that looks for the
 * answer in this very one, behind what it has already. */
static bool is_descriptor(const char *path)
{
    static const char *const names[] = {"/dev/std", "/dev/fd/", "/proc/"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(path, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

bool fetch_place_open(struct fetch_place *place, const char *path, bool now)
{
    struct stat st;
    *place = (struct fetch_place){.kind = now ? FETCH_TO_STDOUT : FETCH_TO_SPOOL, .fd = -1};
    if (!path)
        return true;
    place->kind = FETCH_TO_FILE;
    if (stat(path, &st) != 0)
        return errno == ENOENT ? open_new(place, path) : failed(place);
    if (S_ISDIR(st.st_mode)) {
        errno = EISDIR;
        return failed(place);
    }
    return S_ISREG(st.st_mode) && !is_descriptor(path) ? open_over(place, path, st.st_mode & 0777)
                                                       : open_device(place, path);
}

/* What it replaces is gone with the rename: then the new one must be on disk before. */
static bool keep_file(struct fetch_place *place)
{
    if (place->replaces && fsync(place->fd) != 0)
        return failed(place);
    int fd = place->fd;
    place->fd = -1;
    if (close(fd) != 0 || rename(place->part, place->path) != 0)
        return failed(place);
    free(place->part);
    place->part = NULL;
    return true;
}

/* ---- what waits for its turn ---- */

static int open_nameless(void)
{
    const char *directory = getenv("TMPDIR");
    char name[PATH_MAX];
    if (!directory || directory[0] != '/')
        directory = "/tmp";
    int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
        return fd;
    int length = snprintf(name, sizeof name, "%s/bide-XXXXXX", directory);
    if (length < 0 || (size_t)length >= sizeof name)
        return -1;
    fd = mkostemp(name, O_CLOEXEC);
    if (fd >= 0)
        unlink(name);
    return fd;
}

static bool spool(struct fetch_place *place, const char *at, size_t length)
{
    if (!place->spool && !(place->spool = malloc(FETCH_SPOOL_MEMORY)))
        return failed(place);
    if (place->fd < 0 && length <= FETCH_SPOOL_MEMORY - place->spooled) {
        memcpy(place->spool + place->spooled, at, length);
        place->spooled += length;
        return true;
    }
    if (place->fd < 0 && (place->fd = open_nameless()) < 0)
        return failed(place);
    return write_all(place, place->fd, at, length);
}

static bool pour_disk(struct fetch_place *place)
{
    off_t from = 0;
    for (ssize_t n; (n = pread(place->fd, place->spool, POUR_BYTES, from)) != 0; from += n)
        if (n < 0 || !write_all(place, STDOUT_FILENO, place->spool, (size_t)n))
            return n < 0 ? failed(place) : false;
    return true;
}

bool fetch_place_pour(struct fetch_place *place)
{
    _Static_assert(POUR_BYTES <= FETCH_SPOOL_MEMORY, "the memory is used again");
    if (place->error != 0 || !write_all(place, STDOUT_FILENO, place->spool, place->spooled))
        return false;
    return place->fd < 0 || pour_disk(place);
}

/* ---- any ---- */

bool fetch_place_can_rewind(const struct fetch_place *place)
{
    return place->kind == FETCH_TO_FILE || place->kind == FETCH_TO_SPOOL;
}

bool fetch_place_write(struct fetch_place *place, const void *at, size_t length)
{
    switch (place->kind) {
    case FETCH_TO_SPOOL: return spool(place, at, length);
    case FETCH_TO_STDOUT: return write_all(place, STDOUT_FILENO, at, length);
    case FETCH_TO_FILE:
    case FETCH_TO_DEVICE: break;
    }
    return write_all(place, place->fd, at, length);
}

bool fetch_place_rewind(struct fetch_place *place)
{
    if (!fetch_place_can_rewind(place))
        return false;
    place->spooled = 0;
    if (place->fd < 0)
        return true;
    return (ftruncate(place->fd, 0) == 0 && lseek(place->fd, 0, SEEK_SET) == 0) || failed(place);
}

bool fetch_place_keep(struct fetch_place *place)
{
    if (place->error != 0)
        return false;
    if (place->kind == FETCH_TO_FILE)
        return keep_file(place);
    if (place->kind != FETCH_TO_DEVICE)
        return true;
    int fd = place->fd;
    place->fd = -1;
    return close(fd) == 0 || failed(place);
}

void fetch_place_close(struct fetch_place *place)
{
    if (place->fd >= 0)
        close(place->fd);
    if (place->part)
        unlink(place->part);
    free(place->part);
    free(place->path);
    free(place->spool);
    *place = (struct fetch_place){.kind = place->kind, .fd = -1, .error = place->error};
}
