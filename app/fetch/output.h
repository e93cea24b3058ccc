/* output.h - where an answer goes, so that only one worth keeping is ever seen there.
 *
 *     file     written beside its final name, as NAME.bide-XXXXXX, and renamed when it is whole. What had that name
 *              before stays as it was until then, and for good if the answer is not to be kept. Its mode is that of
 *              what it replaces, or by umask
 *     device   a FIFO, /dev/null, a terminal, /dev/stdout: what is written is gone
 *     now      standard output, whose turn it is: likewise
 *     later    standard output, but others come first: kept in memory, then in a file without a name, until poured
 *
 * Files and what waits for its turn can be taken back (rewound); the other two cannot. */
#ifndef FETCH_OUTPUT_H
#define FETCH_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FETCH_SPOOL_MEMORY 65536u /* of an answer that waits for its turn; the rest is on disk */

enum fetch_output_kind { FETCH_OUTPUT_FILE, FETCH_OUTPUT_DEVICE, FETCH_OUTPUT_STDOUT, FETCH_OUTPUT_SPOOL };

struct fetch_output {
    enum fetch_output_kind kind;
    int fd;             /* -1: none */
    char *path;         /* of a file: its final name */
    char *part_path;    /* ... and the one it has until then; NULL: it is not there */
    char *spool_memory; /* what is kept in memory, of FETCH_SPOOL_MEMORY bytes */
    size_t spool_length;
    int error; /* errno of the first thing that went wrong; 0: nothing did */
    bool replaces;
};

/* path NULL is standard output: now, or in its turn. False: see error. The place must be closed in any case. */
bool fetch_output_open(struct fetch_output *output, const char *path, bool is_next);

bool fetch_output_can_rewind(const struct fetch_output *output);

/* False: see error; where that is 0, a signal ended it. */
bool fetch_output_write(struct fetch_output *output, const void *at, size_t length);
bool fetch_output_rewind(struct fetch_output *output);

/* The answer is whole: the file gets its name. Of what waits for its turn nothing happens yet. */
bool fetch_output_commit(struct fetch_output *output);

/* Its turn has come: what was spooled goes to standard output. */
bool fetch_output_copy_spool(struct fetch_output *output);

/* Leaves nothing behind that was not kept. May be called twice, and on a zeroed place whose fd is -1. */
void fetch_output_close(struct fetch_output *output);

#endif
