/* spool.h - a growing byte buffer: in memory while small, then in an unnamed temporary file.
 *
 * The file is created in $TMPDIR or /tmp, is invisible to other processes, and disappears with the process, however it
 * ends. Bytes are appended at the end and read at any offset, so a spool can be read repeatedly while it grows. */
#ifndef CLI_SPOOL_H
#define CLI_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CLI_SPOOL_MEMORY ((size_t)1 << 20) /* default of memory_max */

struct cli_spool_directory {
    const char *path;
    const char *source; /* for messages: the variable that selects it */
};
struct cli_spool_directory cli_spool_directory(void); /* the directory of the temporary file */

struct cli_spool {
    size_t memory_max; /* bytes that stay in memory; 0: CLI_SPOOL_MEMORY */
    char *memory;      /* owned; NULL: empty, or moved to the file */
    int fd_plus_one;
    int64_t size;
};

/* Returns false and sets errno on failure, most likely ENOSPC. Bytes added before stay readable. */
bool cli_spool_add(struct cli_spool *spool, const char *bytes, size_t length);

/* Returns the number of bytes read, 0 at the end, -1 with errno on failure. */
ssize_t cli_spool_read(const struct cli_spool *spool, int64_t offset, char *bytes, size_t room);

void cli_spool_clear(struct cli_spool *spool); /* discards the bytes, frees memory and closes the file */

#endif
