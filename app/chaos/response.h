/* reply.h - the bytes of an answer, made piece by piece from a step and a request. */
#ifndef CHAOS_RESPONSE_H
#define CHAOS_RESPONSE_H

#include "request.h"
#include "script.h"

#define CHAOS_RESPONSE_ROOM 65536u /* for one piece: the whole head fits, and most bodies */

enum chaos_response_part { CHAOS_PART_HEAD = 0, CHAOS_PART_ENDLESS_HEADERS, CHAOS_PART_BODY, CHAOS_PART_OVER };

struct chaos_response {
    const struct chaos_step *step;
    int status;
    enum chaos_response_part part;
    bool close;     /* the connection ends with this answer */
    bool head_only; /* nothing follows the head */
    bool chunked;
    bool cut_short;        /* the script ends it before its end */
    uint64_t length;       /* of the body as it would be whole, or of the range */
    uint64_t total;        /* of the body without range */
    uint64_t at;           /* the next byte of the body */
    uint64_t left;         /* bytes of it still to be made; UINT64_MAX: no end */
    struct bide_text text; /* the body, if it is one; absent: a pattern */
};

/* To be called while the texts of the request are there. */
void chaos_response_begin(struct chaos_response *response, const struct chaos_step *step,
                          const struct chaos_request *request);

/* Makes the next bytes, at most CHAOS_REPLY_ROOM of them. 0: it is over. */
size_t chaos_response_next(struct chaos_response *response, char *bytes, int64_t wall_s);

/* The interim response with that status; returns its length. */
size_t chaos_response_interim(char *bytes, int status);

/* Writes the date and a NUL; returns its length. */
#define CHAOS_DATE_ROOM 48u
size_t chaos_date(char *text, enum chaos_stamp form, int64_t wall_s);

#endif
