/* output.h - destination of a response, so that only a complete response becomes visible.
 *
 *     file     replaced when the response is complete (common/atomic_file.h), unchanged if the response is not kept
 *     device   a FIFO, /dev/null, a terminal, /dev/stdout: written bytes cannot be removed
 *     stdout   standard output of the job that is next: likewise
 *     spool    standard output of a later job: kept in memory, then in an unnamed temporary file, until the job is next
 *
 * A file that is to be continued by a later process is written as FILE.part, with a record beside it (partial.h).
 *
 * Only files and spools can be rewound. */
#ifndef FETCH_OUTPUT_H
#define FETCH_OUTPUT_H

#include "common/atomic_file.h"
#include "common/spool.h"

#include "partial.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FETCH_SPOOL_MEMORY 65536u /* larger spools continue in a temporary file */

enum fetch_output_kind { FETCH_OUTPUT_FILE, FETCH_OUTPUT_DEVICE, FETCH_OUTPUT_STDOUT, FETCH_OUTPUT_SPOOL };

struct fetch_output {
    enum fetch_output_kind kind;
    struct cli_atomic_file file; /* of kinds FILE and DEVICE */
    struct cli_spool spool;
    char *record_path;           /* of a partial file, owned; NULL: the file is not partial */
    struct fetch_partial next;   /* describes the response whose first byte is written next; set by the caller */
    struct fetch_partial record; /* describes the bytes in the partial file, if `recorded` */
    bool recorded;               /* the partial file has bytes, and their record is on disk */
    int error;                   /* errno of the first failure; 0: none */
    bool spool_failed;           /* it was that of the spool, not of the destination */
    bool is_locked;              /* another process writes the partial file */
};

/* Opens the output; path NULL is standard output, streamed if `is_next`, else spooled. Returns false after setting
 * `error`. The output must be closed in either case. */
bool fetch_output_open(struct fetch_output *output, const char *path, bool is_next);

/* Opens the partial file of `path`, to continue what it holds of this URL. Sets *held to the number of bytes that were
 * kept, and *why to NULL or the reason why the bytes in it were dropped. Otherwise as above. */
bool fetch_output_open_partial(struct fetch_output *output, const char *path, const char *url, uint64_t *held,
                               const char **why);

/* Creates the directories of the path that do not exist. Returns 0 or errno. */
int fetch_output_create_directories(const char *path);

bool fetch_output_can_rewind(const struct fetch_output *output);

/* Return false after setting `error`, or with error 0 if a signal interrupted the write. */
bool fetch_output_write(struct fetch_output *output, const void *at, size_t length);
bool fetch_output_rewind(struct fetch_output *output);

/* The response is complete: renames the file, and deletes the record of a partial file. A spool stays as it is. */
bool fetch_output_commit(struct fetch_output *output);

/* The job is next: copies the spool to standard output. */
bool fetch_output_copy_spool(struct fetch_output *output);

/* Closes the output and removes a temporary file; a partial file stays, unless it is empty. May be called twice, and on
 * a zeroed struct. */
void fetch_output_close(struct fetch_output *output);

#endif
