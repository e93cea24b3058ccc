/* output.c - destination of a response: atomic file replacement, devices, and spools for standard output; see
 * output.h. */
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
#define NAMES_MAX   100
#define COPY_BYTES  65536u

static bool output_fail(struct fetch_output *output)
{
    if (output->error == 0)
        output->error = errno != 0 ? errno : EIO;
    return false;
}

/* A termination signal ends a blocked write; that is not recorded as an error. */
static bool output_write_all(struct fetch_output *output, int fd, const char *at, size_t length)
{
    while (length > 0 && fetch_signal == 0) {
        ssize_t written = write(fd, at, length);
        if (written >= 0) {
            at += written;
            length -= (size_t)written;
        } else if (errno == EAGAIN) {
            poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, -1);
        } else if (errno != EINTR) {
            return output_fail(output);
        }
    }
    return length == 0;
}

/* ---- files ---- */

/* "dir/name" -> "dir/name.bide-012abc"; the name is truncated to fit into NAME_MAX. */
static char *part_path_make(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t directory = (size_t)(name - path), length = strlen(name);
    char *part_path = NULL;
    if (length > NAME_MAX - SUFFIX_SIZE)
        length = NAME_MAX - SUFFIX_SIZE;
    unsigned number = (unsigned)(bide_seed() & 0xffffff);
    return asprintf(&part_path, "%.*s" SUFFIX "%06x", (int)(directory + length), path, number) >= 0 ? part_path : NULL;
}

static bool part_file_open(struct fetch_output *output, mode_t mode)
{
    for (int i = 0; i < NAMES_MAX; i++) {
        errno = ENOMEM;
        char *part_path = part_path_make(output->path);
        output->fd = part_path ? open(part_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode) : -1;
        if (output->fd >= 0) {
            output->part_path = part_path;
            return !output->replaces || fchmod(output->fd, mode) == 0 || output_fail(output);
        }
        free(part_path);
        if (errno != EEXIST)
            break;
    }
    return output_fail(output);
}

/* The file exists: it must be writable, and a symbolic link to it stays a link. */
static bool file_open_existing(struct fetch_output *output, const char *path, mode_t mode)
{
    if (faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) != 0)
        return output_fail(output);
    output->replaces = true;
    output->path = realpath(path, NULL);
    return output->path ? part_file_open(output, mode) : output_fail(output);
}

static bool file_open_new(struct fetch_output *output, const char *path)
{
    struct stat st;
    errno = ENOENT;
    if (lstat(path, &st) == 0) /* a dangling symbolic link */
        return output_fail(output);
    output->path = strdup(path);
    return output->path ? part_file_open(output, 0666) : output_fail(output);
}

static bool device_open(struct fetch_output *output, const char *path)
{
    output->kind = FETCH_OUTPUT_DEVICE;
    output->fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    return output->fd >= 0 || output_fail(output);
}

/* True for a descriptor opened by another program, such as /dev/stdout. It may refer to a regular file, which must not
 * be replaced: its owner expects the response in that open file, behind its present contents. */
static bool path_is_descriptor(const char *path)
{
    static const char *const names[] = {"/dev/std", "/dev/fd/", "/proc/"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(path, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

bool fetch_output_open(struct fetch_output *output, const char *path, bool is_next)
{
    struct stat st;
    *output = (struct fetch_output){.kind = is_next ? FETCH_OUTPUT_STDOUT : FETCH_OUTPUT_SPOOL, .fd = -1};
    if (!path)
        return true;
    output->kind = FETCH_OUTPUT_FILE;
    if (stat(path, &st) != 0)
        return errno == ENOENT ? file_open_new(output, path) : output_fail(output);
    if (S_ISDIR(st.st_mode)) {
        errno = EISDIR;
        return output_fail(output);
    }
    return S_ISREG(st.st_mode) && !path_is_descriptor(path) ? file_open_existing(output, path, st.st_mode & 0777)
                                                            : device_open(output, path);
}

/* The rename destroys the old file, so the new file must be on disk before (fsync). */
static bool file_commit(struct fetch_output *output)
{
    if (output->replaces && fsync(output->fd) != 0)
        return output_fail(output);
    int fd = output->fd;
    output->fd = -1;
    if (close(fd) != 0 || rename(output->part_path, output->path) != 0)
        return output_fail(output);
    free(output->part_path);
    output->part_path = NULL;
    return true;
}

/* ---- spool ---- */

static int spool_file_open(void)
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

static bool spool_write(struct fetch_output *output, const char *at, size_t length)
{
    if (!output->spool_memory && !(output->spool_memory = malloc(FETCH_SPOOL_MEMORY)))
        return output_fail(output);
    if (output->fd < 0 && length <= FETCH_SPOOL_MEMORY - output->spool_length) {
        memcpy(output->spool_memory + output->spool_length, at, length);
        output->spool_length += length;
        return true;
    }
    if (output->fd < 0 && (output->fd = spool_file_open()) < 0)
        return output_fail(output);
    return output_write_all(output, output->fd, at, length);
}

static bool spool_file_copy(struct fetch_output *output)
{
    off_t from = 0;
    for (ssize_t n; (n = pread(output->fd, output->spool_memory, COPY_BYTES, from)) != 0; from += n)
        if (n < 0 || !output_write_all(output, STDOUT_FILENO, output->spool_memory, (size_t)n))
            return n < 0 ? output_fail(output) : false;
    return true;
}

bool fetch_output_copy_spool(struct fetch_output *output)
{
    _Static_assert(COPY_BYTES <= FETCH_SPOOL_MEMORY, "the memory is used again");
    if (output->error != 0 || !output_write_all(output, STDOUT_FILENO, output->spool_memory, output->spool_length))
        return false;
    return output->fd < 0 || spool_file_copy(output);
}

/* ---- all kinds ---- */

bool fetch_output_can_rewind(const struct fetch_output *output)
{
    return output->kind == FETCH_OUTPUT_FILE || output->kind == FETCH_OUTPUT_SPOOL;
}

bool fetch_output_write(struct fetch_output *output, const void *at, size_t length)
{
    switch (output->kind) {
    case FETCH_OUTPUT_SPOOL: return spool_write(output, at, length);
    case FETCH_OUTPUT_STDOUT: return output_write_all(output, STDOUT_FILENO, at, length);
    case FETCH_OUTPUT_FILE:
    case FETCH_OUTPUT_DEVICE: break;
    }
    return output_write_all(output, output->fd, at, length);
}

bool fetch_output_rewind(struct fetch_output *output)
{
    if (!fetch_output_can_rewind(output))
        return false;
    output->spool_length = 0;
    if (output->fd < 0)
        return true;
    return (ftruncate(output->fd, 0) == 0 && lseek(output->fd, 0, SEEK_SET) == 0) || output_fail(output);
}

bool fetch_output_commit(struct fetch_output *output)
{
    if (output->error != 0)
        return false;
    if (output->kind == FETCH_OUTPUT_FILE)
        return file_commit(output);
    if (output->kind != FETCH_OUTPUT_DEVICE)
        return true;
    int fd = output->fd;
    output->fd = -1;
    return close(fd) == 0 || output_fail(output);
}

void fetch_output_close(struct fetch_output *output)
{
    if (output->fd >= 0)
        close(output->fd);
    if (output->part_path)
        unlink(output->part_path);
    free(output->part_path);
    free(output->path);
    free(output->spool_memory);
    *output = (struct fetch_output){.kind = output->kind, .fd = -1, .error = output->error};
}
