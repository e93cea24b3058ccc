/* response.h - generates the bytes of a response, piece by piece, from a step and a request. */
#ifndef CHAOS_RESPONSE_H
#define CHAOS_RESPONSE_H

#include "request.h"
#include "script.h"

#define CHAOS_RESPONSE_ROOM 65536u /* bytes of a piece: the whole head fits, and most bodies */

enum chaos_response_part { CHAOS_PART_HEAD = 0, CHAOS_PART_ENDLESS_HEADERS, CHAOS_PART_BODY, CHAOS_PART_OVER };

struct chaos_response {
    const struct chaos_step *step;
    int status;
    enum chaos_response_part part;
    bool close;     /* the connection ends after this response */
    bool head_only; /* no body follows the head */
    bool chunked;
    bool cut_short;        /* the script cuts the response before its end */
    uint64_t length;       /* of the complete body, or of the requested range */
    uint64_t total;        /* of the body without a range */
    uint64_t at;           /* offset of the next body byte */
    uint64_t left;         /* body bytes still to be generated; UINT64_MAX: endless */
    struct bide_text text; /* the body; absent: generated pattern */
};

/* Prepares the response. Must be called while the texts of the request are valid. */
void chaos_response_begin(struct chaos_response *response, const struct chaos_step *step,
                          const struct chaos_request *request);

/* Generates the next bytes, at most CHAOS_RESPONSE_ROOM. Returns 0 when the response is complete. */
size_t chaos_response_next(struct chaos_response *response, char *bytes, int64_t wall_s);

/* Generates an interim (1xx) response; returns its length. */
size_t chaos_response_interim(char *bytes, int status);

/* Writes the date and a NUL; returns the length. */
#define CHAOS_DATE_ROOM 48u
size_t chaos_date(char *text, enum chaos_stamp form, int64_t wall_s);

#endif
