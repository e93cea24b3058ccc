/* retry_after.h - for a server: asking clients for time, without a thundering herd when it ends.
 *
 * Retry-After has whole seconds: clients that were refused in the same second with the same number return in the same
 * second. So the number is drawn: at least the time needed, at most that plus a spread. Send these header fields with a
 * failure and, for clients that read it, a body by bide_details_format.
 *
 * Threads: all functions may be called from any thread. */
#ifndef BIDE_RETRY_AFTER_H
#define BIDE_RETRY_AFTER_H

#include <bide/base.h>
#include <bide/hint.h>

/* "Bide-Retry: ?0" means "do not retry" (a structured-field boolean). */
#define BIDE_RETRY_HEADER "Bide-Retry"

BIDE_BEGIN_DECLS

/* Final: its size will not change. */
struct bide_retry_after {
    int64_t wait_ns;   /* ask for at least this much time; rounded up to whole seconds; BIDE_NEVER: no Retry-After */
    int64_t spread_ns; /* and up to this much more, drawn from the seed */
    uint64_t seed;     /* bide_seed(), or any number that differs between clients */
    bool no_retry;     /* also send "do not retry" */
};

/* Returns the seconds for Retry-After: uniform in ceil(wait) ... ceil(wait + spread), both ends included. Either end is
 * saturated at 2^31 - 1; a negative value counts as 0. */
BIDE_API int64_t bide_retry_after_seconds(const struct bide_retry_after *retry_after);

/* Writes the header fields, each ending in CR LF, and a NUL: "Retry-After: 7\r\n", "Bide-Retry: ?0\r\n", or nothing.
 * Returns the length; 0 and an empty text also if size is too small. */
BIDE_API size_t bide_retry_after_format(char *text, size_t size, const struct bide_retry_after *retry_after);

/* For a client: STOP for ?0 (and for "false" in any case, as x-should-retry and similar fields are written); NONE for
 * all other values. "Try again" is not a hint: whether to retry is decided by the policy. */
BIDE_API struct bide_hint bide_hint_should_retry(struct bide_text value);

BIDE_END_DECLS
#endif
