/* request.h - incremental parser for HTTP/1.x requests (RFC 9112). */
#ifndef CHAOS_REQUEST_H
#define CHAOS_REQUEST_H

#include "chaos.h"

enum chaos_read {
    CHAOS_READ_MORE = 0, /* valid so far, but incomplete */
    CHAOS_READ_DONE,
    CHAOS_READ_BAD, /* see error_status */
};

/* State of reading a body. */
enum chaos_body_state {
    CHAOS_BODY_COMPLETE = 0, /* no further bytes belong to it */
    CHAOS_BODY_BYTES,        /* `left` more bytes of the body or of a chunk */
    CHAOS_CHUNK_SIZE,
    CHAOS_CHUNK_EXTENSION,
    CHAOS_CHUNK_END, /* the CRLF after a chunk's data */
    CHAOS_TRAILER,
};

/* Zero before the first byte of a request. The texts point into the bytes from which the head was read. request.c
 * writes all fields; connection.c clears the struct for the next request, and sets body and left to discard input. */
struct chaos_request {
    size_t scanned;    /* bytes of an incomplete head already searched for its end */
    size_t head_bytes; /* of a complete head, with the empty line */
    int error_status;  /* status of the response to a bad request */

    struct bide_text method, path, query; /* query: absent without a question mark */
    struct bide_text range, if_range;     /* raw values, or absent */
    bool head_only;                       /* HEAD request */
    bool http10;
    bool close;            /* by Connection header or HTTP version, no further request follows */
    bool expects_continue; /* Expect: 100-continue */
    bool has_host;

    bool chunked;
    bool has_length;
    uint64_t length;

    enum chaos_body_state body;
    uint64_t left;
    uint32_t framing_bytes; /* of a chunk size line, or of all trailers: bounded */
    uint32_t line_bytes;    /* of the current trailer line */
    uint64_t body_bytes;    /* read so far */
    uint64_t body_fnv;      /* FNV-1a of these bytes, if there are any */
};

/* Parses the head at the start of the bytes. After MORE, call again with the same bytes and more. */
enum chaos_read chaos_request_head(struct chaos_request *request, const char *bytes, size_t length);

/* Extracts method and path from a head that stayed incomplete or was too long, if its first line is there. Returns
 * false if there are only line ends. */
bool chaos_request_partial(struct chaos_request *request, const char *bytes, size_t length);

/* Consumes bytes that belong to the body; sets `taken` to their number. */
enum chaos_read chaos_request_body(struct chaos_request *request, struct bide_text bytes, size_t *taken);

/* Returns the bide_hash of the body that was read. */
uint64_t chaos_request_hash(const struct chaos_request *request);

/* Returns the next header field; `cursor` is the remaining head, at first everything after the request line. */
bool chaos_next_field(struct bide_text *cursor, struct bide_text *name, struct bide_text *value);

/* Returns the next line, without its CRLF or LF; false if there is no complete line. */
bool chaos_next_line(struct bide_text *cursor, struct bide_text *line);

bool chaos_name_equals(struct bide_text name, const char *other); /* case-insensitive */

#endif
