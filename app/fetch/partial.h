/* partial.h - the record beside a partial download, by which a later process continues it (-C -).
 *
 *     FILE.part        the first bytes of one response body, nothing else
 *     FILE.part.bide   the record: which URL, which version of the resource, how long
 *
 * Invariant, at every instant and so after kill -9: if FILE.part is not empty, the record describes the response that
 * its bytes are from, or is missing. For that the partial file is emptied before the record of another response is
 * written, and the record is written completely (under another name, then renamed) before the first byte of its
 * response. Both are written only by the process that has locked FILE.part (common/atomic_file.h).
 *
 * The record has a hash of the URL, because a URL may contain secrets, and only its owner may read it. A power failure
 * can lose bytes that the kernel had not written yet; the files are synced only at the end. */
#ifndef FETCH_PARTIAL_H
#define FETCH_PARTIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FETCH_RECORD_SUFFIX  ".bide"
#define FETCH_VALIDATOR_SIZE 1024u /* a response with a longer validator is not continued */

struct fetch_partial {
    uint64_t url_hash;
    uint64_t total;                       /* length of the whole body; 0: unknown */
    char validator[FETCH_VALIDATOR_SIZE]; /* of the response; "": it has none */
};

uint64_t fetch_partial_hash_url(const char *url);

/* Writes the record. Returns 0 or an errno. */
int fetch_partial_write(const char *path, const struct fetch_partial *record);

/* Reads the record. Returns NULL, or why it cannot be used: a clause with a subject. */
const char *fetch_partial_read(const char *path, struct fetch_partial *record);

/* Returns NULL if a partial file of this length, 1 or more, can be continued by a request for this URL; otherwise why
 * not. */
const char *fetch_partial_check(const struct fetch_partial *record, uint64_t url_hash, uint64_t length);

/* Returns how many bytes of the partial file to continue from. The last byte of a file that may be complete is
 * requested again: only a 206 shows that the resource is unchanged, and there is no range of no bytes. */
uint64_t fetch_partial_start(const struct fetch_partial *record, uint64_t length);

#endif
