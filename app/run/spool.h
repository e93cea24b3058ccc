/* spool.h - bytes kept for later: in memory while they are few, beyond that in a file without a name.
 *
 * The file is made in $TMPDIR or /tmp, is nobody else's to see, and goes with the process, however that ends. Bytes are
 * added at the end and read from anywhere, so one spool can be read again and again while it grows. */
#ifndef RUN_SPOOL_H
#define RUN_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define RUN_SPOOL_MEMORY ((size_t)1 << 20)

struct run_spool_directory {
    const char *path;
    bool from_tmpdir; /* by $TMPDIR */
};
struct run_spool_directory run_spool_directory(void); /* where the file is made */

struct run_spool {
    char *memory; /* owned; NULL: none yet, or moved to the file */
    int fd_plus_one;
    int64_t size;
};

/* False: errno says why; ENOSPC is the likely one. What was added before is still there. */
bool run_spool_add(struct run_spool *spool, const char *bytes, size_t length);

/* How many bytes were read, 0 at the end; -1: errno says why. */
ssize_t run_spool_read(const struct run_spool *spool, int64_t offset, char *bytes, size_t room);

void run_spool_clear(struct run_spool *spool); /* forgets the bytes, and gives disk and memory back */

#endif
