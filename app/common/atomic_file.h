/* atomic_file.h - atomic replacement of a file: write to a temporary file in the same directory, then rename it.
 *
 * Until the commit the old file keeps its content, and after a discard or a crash it still has it: no reader ever sees
 * a partly written file. The new file gets the mode of the file it replaces, or the mode that umask allows; symbolic
 * links are followed. A path that is no regular file (a FIFO, /dev/full) is opened and written directly. */
#ifndef CLI_ATOMIC_FILE_H
#define CLI_ATOMIC_FILE_H

#include <stdio.h>

#define CLI_ATOMIC_FILES_MAX 8u

struct cli_atomic_file {
    FILE *file;      /* NULL: not open */
    char *path;      /* resolved final path, owned; NULL: written directly */
    char *temp_path; /* path until the commit, owned; NULL: written directly */
};

/* Opens the file for writing. Returns NULL, or the reason why it cannot be written; nothing is open then. */
const char *cli_atomic_file_open(struct cli_atomic_file *file, const char *path);

/* Closes the temporary file and renames it to its final path. Returns NULL, or the reason why not all could be written;
 * the temporary file is deleted then. The file is closed in both cases. */
const char *cli_atomic_file_commit(struct cli_atomic_file *file);

/* Closes and deletes a temporary file that was not committed. Accepts a zeroed and a closed file. */
void cli_atomic_file_discard(struct cli_atomic_file *file);

/* Unlinks the temporary files of all open files. For a signal handler that ends the program: calls only unlink. */
void cli_atomic_files_unlink(void);

#endif
