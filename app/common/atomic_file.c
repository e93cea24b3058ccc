/* atomic_file.c - see atomic_file.h. The paths of the open temporary files are in a small static table, so that a
 * signal handler can unlink them. */
#include "atomic_file.h"

#include <bide/entropy.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
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

/* Returns false and sets errno on failure. */
static bool file_open(struct cli_atomic_file *file, const char *path)
{
    struct stat existing;
    file->replaces = stat(path, &existing) == 0;
    if (!file->replaces)
        return errno == ENOENT && temp_create(file, path, 0666);
    if (S_ISDIR(existing.st_mode)) {
        errno = EISDIR;
        return false;
    }
    if (S_ISREG(existing.st_mode) && !path_is_descriptor(path))
        return faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0 && temp_create(file, path, existing.st_mode & 0777);
    file->fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    file->is_open = file->fd >= 0;
    return file->is_open;
}

int cli_atomic_file_open_fd(struct cli_atomic_file *file, const char *path)
{
    *file = (struct cli_atomic_file){0};
    errno = 0;
    if (file_open(file, path))
        return 0;
    int error = errno;
    cli_atomic_file_discard(file);
    return error != 0 ? error : ENOMEM;
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

int cli_atomic_file_commit_fd(struct cli_atomic_file *file)
{
    errno = 0;
    bool whole = file->temp_path == NULL || !file->replaces || fsync(file->fd) == 0;
    whole = whole && file_close(file);
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
    if (file->temp_path != NULL) {
        unlink(file->temp_path);
        slot_replace(file->temp_path, NULL);
    }
    free(file->temp_path);
    free(file->path);
    *file = (struct cli_atomic_file){0};
}
