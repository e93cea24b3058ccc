/* hint.h - what a server asks for in its header fields, read exactly.
 *
 * Each function reads one field value (not NUL-terminated; leading and trailing blanks are ignored) and gives a hint:
 * NONE when the field is absent or malformed (malformed is as absent: the own backoff applies), WAIT with nanoseconds
 * otherwise, saturated, never wrapped. A wait of zero, or a date in the past, is WAIT 0. Dates need the wall clock:
 * `date` is the response's own Date field when it has one, so that a skewed clock cancels out; without it, wall_s, our
 * own idea of the time in seconds since 1970.
 *
 * Where several fields speak, bide_hint_merge keeps the one that wins. */
#ifndef BIDE_HINT_H
#define BIDE_HINT_H

#include <bide/base.h>
#include <bide/outcome.h>

BIDE_BEGIN_DECLS

struct bide_text {
    const char *at; /* NULL: absent */
    size_t length;
};

/* Retry-After (RFC 9110 10.2.3): seconds, or an HTTP-date in any of its three forms. "1.5" is outside the grammar, but
 * the server asked for time: rounded up to 2 s. Signs, hex, exponents and units are malformed. Several values joined by
 * commas (an intermediary does that) give the longest, if all are well formed. */
BIDE_API struct bide_hint bide_hint_retry_after(struct bide_text value, struct bide_text date, int64_t wall_s);

/* RateLimit (draft-ietf-httpapi-ratelimit-headers): the longest t among the items whose remaining r is 0. An item
 * that still has quota asks for nothing. A malformed field is ignored whole, as the draft demands. */
BIDE_API struct bide_hint bide_hint_ratelimit(struct bide_text value);

/* X-RateLimit-Reset and its kin mean different things to different servers: the unit is declared, never guessed. */
enum bide_reset_unit {
    BIDE_RESET_IGNORE = 0,   /* the field is not read */
    BIDE_RESET_SECONDS,      /* seconds from now */
    BIDE_RESET_MILLISECONDS, /* milliseconds from now */
    BIDE_RESET_UNIX_SECONDS, /* an instant, seconds since 1970 */
    BIDE_RESET_HTTP_DATE,    /* an instant, as HTTP writes it */
    BIDE_RESET_RFC3339,      /* an instant, as 2026-01-31T12:00:00Z or with an offset */
};
BIDE_API struct bide_hint bide_hint_reset(struct bide_text value, enum bide_reset_unit unit, struct bide_text date,
                                          int64_t wall_s);

/* retry-after-ms, x-amz-retry-after, x-ms-retry-after-ms: whole milliseconds. */
BIDE_API struct bide_hint bide_hint_milliseconds(struct bide_text value);

/* grpc-retry-pushback-ms (gRFC A6): a signed 32-bit number without leading zeros; anything else, also an empty value,
 * says STOP. */
BIDE_API struct bide_hint bide_hint_grpc_pushback(struct bide_text value);

/* STOP beats WAIT beats NONE; of two waits the longer one. For several Retry-After fields, and for fields of equal
 * standing. (Retry-After beats RateLimit: read that only when Retry-After gave NONE.) */
BIDE_API struct bide_hint bide_hint_merge(struct bide_hint a, struct bide_hint b);

/* Reads an HTTP-date into seconds since 1970; false if malformed. wall_s resolves two-digit years: one that seems more
 * than 50 years ahead is the latest past year with those digits. */
BIDE_API bool bide_http_date(struct bide_text value, int64_t wall_s, int64_t *seconds);

BIDE_END_DECLS
#endif
