/* hint.h - parsing the time that a server asks for in its header fields.
 *
 * Each function parses a field value (not NUL-terminated; blanks around it are ignored) into a hint: NONE if the field
 * is absent or malformed (then the caller's own backoff applies), otherwise WAIT with nanoseconds, saturated. A wait of
 * zero, or a date in the past, is WAIT 0. Dates need a clock: `date` is the Date field of the same response if it has
 * this field, so that a difference between the clocks cancels out; otherwise wall_s, our own time in seconds since
 * 1970, is used.
 *
 * If several fields carry a hint, bide_hint_merge selects one of them.
 *
 * Threads: all functions may be called from any thread. */
#ifndef BIDE_HINT_H
#define BIDE_HINT_H

#include <bide/base.h>
#include <bide/outcome.h>

BIDE_BEGIN_DECLS

/* Final: its size will not change. */
struct bide_text {
    const char *at; /* NULL: absent */
    size_t length;
};

/* Retry-After (RFC 9110 10.2.3): seconds, or an HTTP-date in any of its three forms. "1.5" is outside the grammar, but
 * the server asked for time: rounded up to 2 s. Signs, hex, exponents and units are malformed. Several values joined by
 * commas (intermediaries do that) give the longest, if all are well formed. */
BIDE_API struct bide_hint bide_hint_retry_after(struct bide_text value, struct bide_text date, int64_t wall_s);

/* RateLimit (draft-ietf-httpapi-ratelimit-headers): the longest t among the items with remaining r = 0. An item with
 * quota left asks for no wait. A malformed field is ignored as a whole, as the draft demands. */
BIDE_API struct bide_hint bide_hint_ratelimit(struct bide_text value);

/* X-RateLimit-Reset and similar fields have different units on different servers: the caller declares the unit, it is
 * never guessed. */
enum bide_reset_unit {
    BIDE_RESET_IGNORE = 0,   /* the field is ignored */
    BIDE_RESET_SECONDS,      /* seconds from now */
    BIDE_RESET_MILLISECONDS, /* milliseconds from now */
    BIDE_RESET_UNIX_SECONDS, /* an instant, seconds since 1970 */
    BIDE_RESET_HTTP_DATE,    /* an instant, as an HTTP-date */
    BIDE_RESET_RFC3339,      /* an instant, as 2026-01-31T12:00:00Z or with an offset */
    BIDE_RESET_DURATION,     /* from now, as Go writes durations: 6m0s, 1h2m3.5s, 17ms, 120us, 0s, 0; without a sign */
};
BIDE_API struct bide_hint bide_hint_reset(struct bide_text value, enum bide_reset_unit unit, struct bide_text date,
                                          int64_t wall_s);

/* retry-after-ms, x-amz-retry-after, x-ms-retry-after-ms: whole milliseconds. */
BIDE_API struct bide_hint bide_hint_milliseconds(struct bide_text value);

/* grpc-retry-pushback-ms (gRFC A6): milliseconds, 0 to 2^31 - 1 without leading zeros. A negative number, or any other
 * value, also an empty value, means STOP. */
BIDE_API struct bide_hint bide_hint_grpc_pushback(struct bide_text value);

/* STOP beats WAIT, WAIT beats NONE, the longer wait beats the shorter. For repeated Retry-After fields, and for fields
 * of equal rank. (Retry-After outranks RateLimit: parse RateLimit only if Retry-After gave NONE.) */
BIDE_API struct bide_hint bide_hint_merge(struct bide_hint a, struct bide_hint b);

/* Parses an HTTP-date into seconds since 1970; returns false if it is malformed. wall_s resolves two-digit years: a
 * year that seems more than 50 years ahead is the latest past year with those digits. */
BIDE_API bool bide_http_date(struct bide_text value, int64_t wall_s, int64_t *seconds);

BIDE_END_DECLS
#endif
