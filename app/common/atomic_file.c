/* atomic_file.c - see atomic_file.h. The paths of the open temporary files are in a small static table, so that a
 * signal handler can unlink them. */
#include "atomic_file.h"

#include <bide/entropy.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define SUFFIX      ".bide-" /* and six hexadecimal digits */
#define SUFFIX_SIZE (sizeof SUFFIX - 1 + 6)
#define NAMES_MAX   100 /* tried before giving up */

static const char *volatile temp_paths[CLI_ATOMIC_FILES_MAX]; /* NULL: free slot */

/* Replaces the slot that holds `current` by `replacement`. NULL as `current` claims a free slot, NULL as `replacement`
 * releases the slot. Returns false if no slot holds `current`: the table is full. */
static bool slot_replace(const char *current, const char *replacement)
{
    for (size_t i = 0; i < CLI_ATOMIC_FILES_MAX; i++)
        if (temp_paths[i] == current) {
            temp_paths[i] = replacement;
            return true;
        }
    return false;
}

void cli_atomic_files_unlink(void)
{
    for (size_t i = 0; i < CLI_ATOMIC_FILES_MAX; i++) {
        const char *temp_path = temp_paths[i];
        if (temp_path != NULL)
            unlink(temp_path);
    }
}

/* Returns the absolute path of a file that need not exist, with symbolic links followed, a dangling link included. The
 * caller frees it. Returns NULL with errno if the directory does not exist or memory is short. A loop of links cannot
 * occur here: the caller's stat has already failed with ELOOP. */
static char *resolve_path(const char *path)
{
    char target[PATH_MAX], *current = realpath(path, NULL), *directory;
    const char *slash = strrchr(path, '/'), *last = slash != NULL ? slash + 1 : path;
    if (current != NULL || errno != ENOENT)
        return current;
    ssize_t length = readlink(path, target, sizeof target - 1);
    if (asprintf(&current, "%.*s.", (int)(last - path), path) < 0)
        return NULL;
    directory = realpath(current, NULL);
    free(current);
    current = NULL;
    target[length > 0 ? length : 0] = '\0';
    if (directory != NULL &&
        asprintf(&current, "%s/%s", target[0] == '/' ? "" : directory, length > 0 ? target : last) < 0)
        current = NULL;
    free(directory);
    if (length <= 0 || current == NULL)
        return current;
    directory = resolve_path(current);
    free(current);
    return directory;
}

/* ---- temporary file ---- */

/* "dir/name" -> "dir/name.bide-012abc"; the name is shortened to fit into NAME_MAX. Returns NULL if out of memory. */
static char *temp_path_make(const char *path)
{
    const char *name = strrchr(path, '/') + 1; /* the path is absolute */
    size_t directory = (size_t)(name - path), length = strlen(name);
    char *temp_path = NULL;
    if (length > NAME_MAX - SUFFIX_SIZE)
        length = NAME_MAX - SUFFIX_SIZE;
    unsigned number = (unsigned)(bide_seed() & 0xffffff);
    return asprintf(&temp_path, "%.*s" SUFFIX "%06x", (int)(directory + length), path, number) >= 0 ? temp_path : NULL;
}

/* Creates the temporary file under one random name. Returns false and sets errno on failure. */
static bool temp_create_once(struct cli_atomic_file *file, mode_t mode)
{
    errno = ENOMEM;
    if ((file->temp_path = temp_path_make(file->path)) == NULL)
        return false;
    errno = EMFILE;
    file->fd =
        slot_replace(NULL, file->temp_path) ? open(file->temp_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode) : -1;
    if (file->fd >= 0) {
        file->is_open = true;
        return !file->replaces || fchmod(file->fd, mode) == 0; /* umask does not apply to the mode of an old file */
    }
    int error = errno;
    slot_replace(file->temp_path, NULL); /* there is no file to unlink */
    free(file->temp_path);
    file->temp_path = NULL;
    errno = error;
    return false;
}

static bool temp_create(struct cli_atomic_file *file, const char *path, mode_t mode)
{
    if ((file->path = resolve_path(path)) == NULL)
        return false;
    for (int i = 0; i < NAMES_MAX; i++) {
        if (temp_create_once(file, mode))
            return true;
        if (errno != EEXIST)
            break;
    }
    return false;
}

/* ---- partial file ---- */

/* Returns true if the temporary path is still that of the open file. */
static bool path_names_file(const char *path, int fd)
{
    struct stat named, opened;
    return lstat(path, &named) == 0 && fstat(fd, &opened) == 0 && named.st_dev == opened.st_dev &&
           named.st_ino == opened.st_ino;
}

/* Another user could have prepared the content, in a directory that all may write to. */
static bool partial_is_own(int fd)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return false;
    errno = S_ISREG(st.st_mode) ? EPERM : ENOTSUP;
    return S_ISREG(st.st_mode) && st.st_uid == geteuid();
}

/* Opens and locks the file under its present name. Returns false and sets errno on failure. */
static bool partial_open_once(struct cli_atomic_file *file, mode_t mode)
{
    file->fd = open(file->temp_path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, mode | 0600);
    file->is_open = file->fd >= 0;
    if (!file->is_open || !partial_is_own(file->fd))
        return false;
    if (flock(file->fd, LOCK_EX | LOCK_NB) == 0)
        return !file->replaces || fchmod(file->fd, mode | 0600) == 0;
    if (errno == EWOULDBLOCK)
        errno = EBUSY;
    return false;
}

/* Race: between open and flock the process that held the lock may rename the file to its final name, or delete it. Then
 * the lock is on a file that must not be written any more: it counts only if the path still names the locked file. The
 * path cannot change afterwards, because only the holder of the lock renames or deletes the file. */
static bool partial_open(struct cli_atomic_file *file, const char *path, mode_t mode)
{
    if ((file->path = resolve_path(path)) == NULL)
        return false;
    const char *name = strrchr(file->path, '/') + 1;
    errno = strlen(name) + CLI_PARTIAL_ROOM > NAME_MAX ? ENAMETOOLONG : ENOMEM;
    if (errno == ENAMETOOLONG || asprintf(&file->temp_path, "%s" CLI_PARTIAL_SUFFIX, file->path) < 0)
        return false;
    for (int i = 0; i < NAMES_MAX; i++) {
        if (!partial_open_once(file, mode))
            return false;
        if (path_names_file(file->temp_path, file->fd))
            return true;
        close(file->fd);
        file->is_open = false;
    }
    errno = EBUSY;
    return false;
}

/* ---- opening ---- */

/* True for a descriptor opened by another program, such as /dev/stdout. It may refer to a regular file, which must not
 * be replaced: its owner expects the output in that open file, behind its present contents. */
static bool path_is_descriptor(const char *path)
{
    static const char *const names[] = {"/dev/std", "/dev/fd/", "/proc/"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(path, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

static bool file_create(struct cli_atomic_file *file, const char *path, mode_t mode)
{
    file->mode = mode;
    return file->is_partial ? partial_open(file, path, mode) : temp_create(file, path, mode);
}

/* Returns false and sets errno on failure. */
static bool file_open(struct cli_atomic_file *file, const char *path)
{
    struct stat existing;
    file->replaces = stat(path, &existing) == 0;
    if (!file->replaces)
        return errno == ENOENT && file_create(file, path, 0666);
    if (S_ISDIR(existing.st_mode)) {
        errno = EISDIR;
        return false;
    }
    if (S_ISREG(existing.st_mode) && !path_is_descriptor(path))
        return faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0 && file_create(file, path, existing.st_mode & 0777);
    if (file->is_partial) {
        errno = ENOTSUP;
        return false;
    }
    file->fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    file->is_open = file->fd >= 0;
    return file->is_open;
}

/* Returns 0 or an errno. */
static int file_open_as(struct cli_atomic_file *file, const char *path, bool is_partial)
{
    *file = (struct cli_atomic_file){.is_partial = is_partial};
    errno = 0;
    if (file_open(file, path))
        return 0;
    int error = errno;
    cli_atomic_file_discard(file);
    return error != 0 ? error : ENOMEM;
}

int cli_atomic_file_open_fd(struct cli_atomic_file *file, const char *path)
{
    return file_open_as(file, path, false);
}

int cli_atomic_file_open_partial(struct cli_atomic_file *file, const char *path)
{
    return file_open_as(file, path, true);
}

const char *cli_atomic_file_open(struct cli_atomic_file *file, const char *path)
{
    int error = cli_atomic_file_open_fd(file, path);
    if (error != 0)
        return strerror(error);
    if ((file->file = fdopen(file->fd, "w")) != NULL)
        return NULL;
    error = errno;
    cli_atomic_file_discard(file);
    return strerror(error);
}

/* ---- commit and discard ---- */

/* Closes stream and descriptor. Returns false and sets errno on failure. */
static bool file_close(struct cli_atomic_file *file)
{
    bool closed = true;
    if (file->is_open)
        closed = (file->file != NULL ? fclose(file->file) : close(file->fd)) == 0;
    file->is_open = false;
    file->file = NULL;
    return closed;
}

/* Gives a partial file the mode of the old file, which may deny its owner to write, and checks that another program has
 * not replaced it. Returns false and sets errno on failure. */
static bool partial_finish(const struct cli_atomic_file *file)
{
    if (file->replaces && fchmod(file->fd, file->mode) != 0)
        return false;
    errno = EBUSY;
    return path_names_file(file->temp_path, file->fd);
}

int cli_atomic_file_commit_fd(struct cli_atomic_file *file)
{
    errno = 0;
    bool whole = !file->is_partial || partial_finish(file);
    whole = whole && (file->temp_path == NULL || !(file->replaces || file->is_partial) || fsync(file->fd) == 0);
    /* A partial file stays locked until it is renamed; fsync has reported what close would. */
    whole = whole && (file->is_partial || file_close(file));
    if (whole && file->temp_path != NULL && (whole = rename(file->temp_path, file->path) == 0)) {
        slot_replace(file->temp_path, NULL);
        free(file->temp_path);
        file->temp_path = NULL;
    }
    int error = whole ? 0 : errno != 0 ? errno : EIO;
    cli_atomic_file_discard(file);
    return error;
}

const char *cli_atomic_file_commit(struct cli_atomic_file *file)
{
    errno = 0;
    bool whole = !ferror(file->file);
    whole = fflush(file->file) == 0 && whole;
    if (whole) {
        int error = cli_atomic_file_commit_fd(file);
        return error != 0 ? strerror(error) : NULL;
    }
    const char *problem = errno != 0 ? strerror(errno) : "not all data could be written";
    cli_atomic_file_discard(file);
    return problem;
}

void cli_atomic_file_discard(struct cli_atomic_file *file)
{
    file_close(file);
    if (file->temp_path != NULL && !file->is_partial) {
        unlink(file->temp_path);
        slot_replace(file->temp_path, NULL);
    }
    free(file->temp_path);
    free(file->path);
    *file = (struct cli_atomic_file){0};
}
