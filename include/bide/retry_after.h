/* reply.h - for a server: how to ask callers for time, so that they do not all come back together.
 *
 * Retry-After has whole seconds, and callers that were refused in the same second and told the same number return in
 * the same second. So the number is drawn: at least what is needed, at most that and a spread. What to send with a
 * failure is the header fields here and, for callers that read it, a body by bide_details_format. */
#ifndef BIDE_RETRY_AFTER_H
#define BIDE_RETRY_AFTER_H

#include <bide/base.h>
#include <bide/hint.h>

/* "Bide-Retry: ?0" says "do not retry" (a structured-field boolean). */
#define BIDE_RETRY_HEADER "Bide-Retry"

BIDE_BEGIN_DECLS

struct bide_retry_after {
    int64_t wait_ns;   /* ask for at least this much time; rounded up to whole seconds; BIDE_NEVER: say nothing of it */
    int64_t spread_ns; /* and up to this much more, drawn from the seed */
    uint64_t seed;     /* bide_seed(), or anything that differs between callers */
    bool no_retry;     /* say "do not retry", too */
};

/* The seconds for Retry-After: ceil(wait) ... ceil(wait + spread), both ends included, each equally likely. Either end
 * is saturated at 2^31 - 1; what is negative is as 0. */
BIDE_API int64_t bide_retry_after_seconds(const struct bide_retry_after *retry_after);

/* Writes the header fields, each ending in CR LF, and a NUL: "Retry-After: 7\r\n", "Bide-Retry: ?0\r\n", or nothing.
 * Returns the length; 0 and an empty text also if size is too small. */
BIDE_API size_t bide_retry_after_format(char *text, size_t size, const struct bide_retry_after *retry_after);

/* The client's side of it: STOP for ?0 (and for "false" in any case, as x-should-retry and its kin are written); NONE
 * for all else. "Try again" is not a hint: whether to retry is the policy's. */
BIDE_API struct bide_hint bide_hint_should_retry(struct bide_text value);

BIDE_END_DECLS
#endif
