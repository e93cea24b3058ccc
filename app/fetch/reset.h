/* reset.h - the fields of older rate limits: X-RateLimit-Reset and RateLimit-Reset.
 *
 * RateLimit-Reset (draft-ietf-httpapi-ratelimit-headers up to 07) is a number of seconds. X-RateLimit-Reset has no
 * specification, and servers confuse the two: some send a number of seconds, others an instant in seconds or
 * milliseconds since 1970. So for both fields a number of less than a year is a wait, a number within a year of the
 * server's time, in either unit, an instant, and any other number is ignored. */
#ifndef FETCH_RESET_H
#define FETCH_RESET_H

#include <bide/hint.h>

/* Values of a response; NULL texts are absent fields. */
struct fetch_reset {
    struct bide_text x_remaining; /* X-RateLimit-Remaining */
    struct bide_text x_reset;     /* X-RateLimit-Reset */
    struct bide_text remaining;   /* RateLimit-Remaining */
    struct bide_text reset;       /* RateLimit-Reset */
    struct bide_text date;        /* Date: the server's own time */
    int64_t wall_s;               /* this host's time, if there is no Date */
};

/* Returns the wait that the fields ask for, the longer of two. A field whose limit has requests remaining does not
 * explain the failure, and does not count. */
struct bide_hint fetch_reset_hint(const struct fetch_reset *fields);

#endif
