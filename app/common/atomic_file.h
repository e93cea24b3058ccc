/* atomic_file.h - atomic replacement of a file: write to a temporary file in the same directory, then rename it.
 *
 * Until the commit the old file keeps its content, and after a discard or a crash it still has it: no reader ever sees
 * a partly written file. FILE is written as FILE.bide-XXXXXX. The new file gets the mode of the file that it replaces,
 * or the mode that umask allows; symbolic links are followed, dangling links included. If an old file is replaced, the
 * new one is on disk (fsync) before the rename destroys the old one; a new file is left to the kernel. After a signal,
 * the handler can remove all temporary files.
 *
 * Not kept: hard links (other names of the old file keep the old content), owner, group, access control list and
 * extended attributes. The new file belongs to the process that wrote it.
 *
 * A partial file is a temporary file with a fixed name, FILE.part, that survives the process, so that a later one can
 * continue it. Until the commit or the discard it is locked against other processes.
 *
 * A path that is no regular file (a FIFO, /dev/full) or names an open descriptor (/dev/stdout, /dev/fd/3) is opened and
 * written directly, at the end of what it contains. */
#ifndef CLI_ATOMIC_FILE_H
#define CLI_ATOMIC_FILE_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#define CLI_PARTIAL_SUFFIX ".part"
#define CLI_PARTIAL_ROOM   16u /* bytes that the name of FILE must leave free: for .part, and a file beside FILE.part */

#define CLI_ATOMIC_FILES_MAX 264u /* open at once: the parallel downloads of fetch, and some more */

struct cli_atomic_file {
    FILE *file; /* NULL: not open, or open by descriptor only */
    int fd;     /* valid if is_open */
    bool is_open;
    bool replaces;   /* there is an old file */
    bool is_partial; /* temp_path is FILE.part: a discard does not delete it */
    mode_t mode;     /* of the old file, if `replaces` */
    char *path;      /* resolved final path, owned; NULL: written directly */
    char *temp_path; /* path until the commit, owned; NULL: written directly */
};

/* Opens the file for writing. Returns NULL, or the reason why it cannot be written; nothing is open then. */
const char *cli_atomic_file_open(struct cli_atomic_file *file, const char *path);

/* The same without a stream: the caller writes to `fd`. Returns 0 or an errno. */
int cli_atomic_file_open_fd(struct cli_atomic_file *file, const char *path);

/* Opens FILE.part, or creates it, and locks it; what the caller writes is appended. Returns 0 or an errno: EBUSY if
 * another process has locked it, EPERM if it belongs to another user, ENOTSUP if the path is no regular file. */
int cli_atomic_file_open_partial(struct cli_atomic_file *file, const char *path);

/* Closes the temporary file and renames it to its final path. Returns NULL, or the reason why not all could be written;
 * the temporary file is deleted then. The file is closed in both cases. */
const char *cli_atomic_file_commit(struct cli_atomic_file *file);

/* The same for a file that was opened by descriptor. Returns 0 or an errno. */
int cli_atomic_file_commit_fd(struct cli_atomic_file *file);

/* Closes and deletes a temporary file that was not committed; only closes a partial file. Accepts a zeroed and a closed
 * file. */
void cli_atomic_file_discard(struct cli_atomic_file *file);

/* Unlinks the temporary files of all open files. For a signal handler that ends the program: calls only unlink. */
void cli_atomic_files_unlink(void);

#endif
