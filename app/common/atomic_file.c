/* atomic_file.c - see atomic_file.h. The paths of the open temporary files are in a small static table, so that a
 * signal handler can unlink them. */
#include "atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

static mode_t new_file_mode(void)
{
    mode_t mask = umask(0);
    umask(mask);
    return 0666 & ~mask;
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

/* Sets the resolved path and the template of the temporary file in the same directory. */
static bool file_set_paths(struct cli_atomic_file *file, const char *path)
{
    file->path = resolve_path(path);
    if (file->path != NULL && asprintf(&file->temp_path, "%s.XXXXXX", file->path) < 0)
        file->temp_path = NULL;
    return file->temp_path != NULL;
}

static int file_create_temp(struct cli_atomic_file *file, const char *path, const struct stat *existing)
{
    if (!file_set_paths(file, path))
        return -1;
    errno = EMFILE;
    int fd = slot_replace(NULL, file->temp_path) ? mkostemp(file->temp_path, O_CLOEXEC) : -1;
    if (fd >= 0) {
        (void)!fchmod(fd, existing != NULL ? existing->st_mode & 0777 : new_file_mode());
        return fd;
    }
    slot_replace(file->temp_path, NULL); /* mkostemp failed, so there is no file to unlink */
    free(file->temp_path);
    file->temp_path = NULL;
    return -1;
}

const char *cli_atomic_file_open(struct cli_atomic_file *file, const char *path)
{
    struct stat existing;
    *file = (struct cli_atomic_file){0};
    errno = 0;
    bool exists = stat(path, &existing) == 0;
    if (!exists && errno != ENOENT)
        return strerror(errno);
    if (exists && S_ISDIR(existing.st_mode))
        return "Is a directory";
    if (exists && access(path, W_OK) != 0)
        return strerror(errno);
    int fd = exists && !S_ISREG(existing.st_mode) ? open(path, O_WRONLY | O_CLOEXEC)
                                                  : file_create_temp(file, path, exists ? &existing : NULL);
    file->file = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (file->file != NULL)
        return NULL;
    int error = errno;
    if (fd >= 0)
        close(fd);
    cli_atomic_file_discard(file);
    return strerror(error != 0 ? error : ENOMEM);
}

const char *cli_atomic_file_commit(struct cli_atomic_file *file)
{
    const char *problem = NULL;
    errno = 0;
    bool whole = !ferror(file->file);
    whole = fclose(file->file) == 0 && whole;
    file->file = NULL;
    if (whole && file->temp_path != NULL)
        whole = rename(file->temp_path, file->path) == 0;
    if (!whole)
        problem = errno != 0 ? strerror(errno) : "not all data could be written";
    if (whole && file->temp_path != NULL) {
        slot_replace(file->temp_path, NULL);
        free(file->temp_path);
        file->temp_path = NULL;
    }
    cli_atomic_file_discard(file);
    return problem;
}

void cli_atomic_file_discard(struct cli_atomic_file *file)
{
    if (file->file != NULL)
        fclose(file->file);
    if (file->temp_path != NULL) {
        unlink(file->temp_path);
        slot_replace(file->temp_path, NULL);
    }
    free(file->temp_path);
    free(file->path);
    *file = (struct cli_atomic_file){0};
}
