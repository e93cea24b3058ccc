/* request.h - reading HTTP/1.x requests (RFC 9112) from bytes as they come. */
#ifndef CHAOS_REQUEST_H
#define CHAOS_REQUEST_H

#include "chaos.h"

enum chaos_read {
    CHAOS_READ_MORE = 0, /* what is there is fine, but not all */
    CHAOS_READ_DONE,
    CHAOS_READ_BAD, /* see refusal */
};

/* Where the reading of a body stands. */
enum chaos_body_state {
    CHAOS_BODY_COMPLETE = 0, /* nothing more belongs to it */
    CHAOS_BODY_BYTES,        /* `left` more bytes: of the body or of a chunk */
    CHAOS_CHUNK_SIZE,
    CHAOS_CHUNK_EXTENSION,
    CHAOS_CHUNK_END, /* the CRLF after a chunk's bytes */
    CHAOS_TRAILER,
};

/* Zero before the first byte of a request. The texts point into the bytes that the head was read from. */
struct chaos_request {
    size_t scanned;    /* of a head that is not complete: no need to look there again */
    size_t head_bytes; /* once complete, with the empty line */
    int error_status;  /* the status that a wrong request is answered with */

    struct bide_text method, path, query; /* query: absent if there was no question mark */
    struct bide_text range, if_range;     /* absent, or their raw value */
    bool head_only;                       /* HEAD */
    bool http10;
    bool close;            /* the client wants, or by its version means, no further request */
    bool expects_continue; /* Expect: 100-continue */
    bool has_host;

    bool chunked;
    bool has_length;
    uint64_t length;

    enum chaos_body_state body;
    uint64_t left;
    uint32_t framing_bytes; /* of one chunk size line, or of all trailers: bounded */
    uint32_t line_bytes;    /* of the trailer line that is being read */
    uint64_t body_bytes;    /* read so far */
    uint64_t body_fnv;      /* their hash, unless there are none */
};

/* Reads a head from the front of the bytes. To be called again with the same bytes and more after MORE. */
enum chaos_read chaos_request_head(struct chaos_request *request, const char *bytes, size_t length);

/* What can be told of a head that never became complete, or was too long: method and path, if its first line is there.
 * False: there is nothing but line ends. */
bool chaos_request_partial(struct chaos_request *request, const char *bytes, size_t length);

/* Takes what belongs to the body from the front of the bytes, `taken` of them. */
enum chaos_read chaos_request_body(struct chaos_request *request, struct bide_text bytes, size_t *taken);

/* The bide_hash of the body that was read. */
uint64_t chaos_request_hash(const struct chaos_request *request);

/* The next header field of a head; cursor: what is left of it, at first all after the request line. */
bool chaos_next_field(struct bide_text *cursor, struct bide_text *name, struct bide_text *value);

/* The next line, without its CRLF or LF; false: there is no whole line. */
bool chaos_next_line(struct bide_text *cursor, struct bide_text *line);

bool chaos_name_equals(struct bide_text name, const char *other); /* in any case */

#endif
