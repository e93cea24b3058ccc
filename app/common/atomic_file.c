/* draft.c - see draft.h. Names of open drafts are in a small table, so that a signal handler can remove the files. */
#include "atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *volatile parts[CLI_ATOMIC_FILES_MAX]; /* NULL: free */

/* One name for another: NULL for a new one, and for one that is gone. False: there is no place. */
static bool exchange(const char *name, const char *by)
{
    for (size_t i = 0; i < CLI_ATOMIC_FILES_MAX; i++)
        if (parts[i] == name) {
            parts[i] = by;
            return true;
        }
    return false;
}

void cli_atomic_files_unlink(void)
{
    for (size_t i = 0; i < CLI_ATOMIC_FILES_MAX; i++) {
        const char *part = parts[i];
        if (part != NULL)
            unlink(part);
    }
}

static mode_t mode_of_new(void)
{
    mode_t mask = umask(0);
    umask(mask);
    return 0666 & ~mask;
}

/* The real name of a file that need not be there: through links, one that leads to nothing included. To be freed; NULL
 * with errno: no such directory, no memory. That links go round in a circle was found out by whoever called stat. */
static char *real_name(const char *path)
{
    char target[PATH_MAX], *name = realpath(path, NULL), *directory;
    const char *slash = strrchr(path, '/'), *last = slash != NULL ? slash + 1 : path;
    if (name != NULL || errno != ENOENT)
        return name;
    ssize_t length = readlink(path, target, sizeof target - 1);
    if (asprintf(&name, "%.*s.", (int)(last - path), path) < 0)
        return NULL;
    directory = realpath(name, NULL);
    free(name);
    name = NULL;
    target[length > 0 ? length : 0] = '\0';
    if (directory != NULL &&
        asprintf(&name, "%s/%s", target[0] == '/' ? "" : directory, length > 0 ? target : last) < 0)
        name = NULL;
    free(directory);
    if (length <= 0 || name == NULL)
        return name;
    directory = real_name(name);
    free(name);
    return directory;
}

/* Its real name, and that of the file beside it. */
static bool name_it(struct cli_atomic_file *draft, const char *path)
{
    draft->path = real_name(path);
    if (draft->path != NULL && asprintf(&draft->temp_path, "%s.XXXXXX", draft->path) < 0)
        draft->temp_path = NULL;
    return draft->temp_path != NULL;
}

static int create(struct cli_atomic_file *draft, const char *path, const struct stat *found)
{
    if (!name_it(draft, path))
        return -1;
    errno = EMFILE;
    int fd = exchange(NULL, draft->temp_path) ? mkostemp(draft->temp_path, O_CLOEXEC) : -1;
    if (fd >= 0) {
        (void)!fchmod(fd, found != NULL ? found->st_mode & 0777 : mode_of_new());
        return fd;
    }
    exchange(draft->temp_path, NULL); /* there is no such file, so nothing is to be removed */
    free(draft->temp_path);
    draft->temp_path = NULL;
    return -1;
}

const char *cli_atomic_file_open(struct cli_atomic_file *draft, const char *path)
{
    struct stat found;
    *draft = (struct cli_atomic_file){0};
    errno = 0;
    bool exists = stat(path, &found) == 0;
    if (!exists && errno != ENOENT)
        return strerror(errno);
    if (exists && S_ISDIR(found.st_mode))
        return "it is a directory";
    if (exists && access(path, W_OK) != 0)
        return strerror(errno);
    int fd = exists && !S_ISREG(found.st_mode) ? open(path, O_WRONLY | O_CLOEXEC)
                                               : create(draft, path, exists ? &found : NULL);
    draft->file = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (draft->file != NULL)
        return NULL;
    int error = errno;
    if (fd >= 0)
        close(fd);
    cli_atomic_file_discard(draft);
    return strerror(error != 0 ? error : ENOMEM);
}

const char *cli_atomic_file_commit(struct cli_atomic_file *draft)
{
    const char *reason = NULL;
    errno = 0;
    bool whole = !ferror(draft->file);
    whole = fclose(draft->file) == 0 && whole;
    draft->file = NULL;
    if (whole && draft->temp_path != NULL)
        whole = rename(draft->temp_path, draft->path) == 0;
    if (!whole)
        reason = errno != 0 ? strerror(errno) : "not all could be written";
    if (whole && draft->temp_path != NULL) {
        exchange(draft->temp_path, NULL);
        free(draft->temp_path);
        draft->temp_path = NULL;
    }
    cli_atomic_file_discard(draft);
    return reason;
}

void cli_atomic_file_discard(struct cli_atomic_file *draft)
{
    if (draft->file != NULL)
        fclose(draft->file);
    if (draft->temp_path != NULL) {
        unlink(draft->temp_path);
        exchange(draft->temp_path, NULL);
    }
    free(draft->temp_path);
    free(draft->path);
    *draft = (struct cli_atomic_file){0};
}
