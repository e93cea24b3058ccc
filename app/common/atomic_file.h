/* draft.h - a file that is written beside its name and gets it when it is whole.
 *
 * What had that name before stays as it was until then, and for good if the file is not to be kept: nobody ever finds
 * half of it. Its mode is that of what it replaces, or by umask; a link is followed. What is no regular file (a FIFO,
 * /dev/full) is written to as it is. */
#ifndef CLI_ATOMIC_FILE_H
#define CLI_ATOMIC_FILE_H

#include <stdio.h>

#define CLI_ATOMIC_FILES_MAX 8u

struct cli_atomic_file {
    FILE *file;      /* NULL: none is open */
    char *path;      /* the name it gets, its real one; owned. NULL: it is written as it is */
    char *temp_path; /* the one it has until then; NULL: it is written as it is */
};

/* NULL, or why it cannot be written: then nothing is open. */
const char *cli_atomic_file_open(struct cli_atomic_file *file, const char *path);

/* It is whole. NULL, or why it could not all be written: then it is gone. Closed in any case. */
const char *cli_atomic_file_commit(struct cli_atomic_file *file);

/* Leaves nothing behind that was not kept. Accepts a zeroed one, and one that is closed. */
void cli_atomic_file_discard(struct cli_atomic_file *file);

/* Removes all that are open, for a signal handler that ends the program: calls nothing but unlink. */
void cli_atomic_files_unlink(void);

#endif
