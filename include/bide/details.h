/* details.h - problem details (RFC 9457, application/problem+json): what a server says of a failure in its body.
 *
 * Of the many members a problem may have, a retry cares for four: the type, a stable URI that can be mapped to a kind
 * of outcome; the status; and two members by which a server tells how to go on:
 *
 *     {"type": "https://example.net/overloaded", "status": 503, "title": "Overloaded",
 *      "retry_after": 2.5, "retry": false}
 *
 * retry_after is a number of seconds from now (not negative; a fraction counts), retry a boolean. The former may also
 * be spelled with a hyphen or in camel case (retry-after, retryAfter); where spellings differ, the longest wait counts.
 * A member of the wrong type or out of range is as absent; unknown members are skipped; the body's status is only told,
 * the real one wins. Waits saturate. A body that is no JSON object is as absent, and so is one that is longer than
 * BIDE_DETAILS_MAX, deeper than BIDE_DETAILS_DEPTH, or names one of these members twice. Reading needs no memory. */
#ifndef BIDE_DETAILS_H
#define BIDE_DETAILS_H

#include <bide/base.h>
#include <bide/hint.h>
#include <bide/outcome.h>

#define BIDE_DETAILS_MAX      65536u /* longest body that is read */
#define BIDE_DETAILS_DEPTH    32u    /* most objects and arrays inside one another, the outermost included */
#define BIDE_DETAILS_TYPE_MAX 256u   /* longest type that is kept, NUL included; a longer one is as absent */

BIDE_BEGIN_DECLS

struct bide_details {
    char type[BIDE_DETAILS_TYPE_MAX]; /* "" when absent: RFC 9457's about:blank. No control characters */
    int status;                       /* 100 to 999; 0: not said */
    struct bide_hint hint;            /* retry false: STOP; retry_after: WAIT */
};

/* What a type means: mapped by the user, compared byte by byte. */
struct bide_details_rule {
    const char *type;
    enum bide_kind kind;
    enum bide_evidence evidence;
    uint32_t flags; /* enum bide_outcome_flag */
};

/* Is this Content-Type one of problem details in JSON? Parameters and case do not matter. */
BIDE_API bool bide_details_media_type(struct bide_text value);

/* Reads a body. False and zeroed details if it is none. */
BIDE_API bool bide_details_parse(struct bide_text body, struct bide_details *details);

/* The first rule with that type; NULL: none. An absent type has no rule. */
BIDE_API const struct bide_details_rule *bide_details_find(const struct bide_details *details,
                                                           const struct bide_details_rule *rule, size_t count);

/* What a server answers. Absent members are NULL, 0, BIDE_NEVER or false. */
struct bide_details_response {
    const char *type;
    const char *title;
    const char *detail;
    int status;
    int64_t retry_after_ns; /* BIDE_NEVER: not said. Rounded up to milliseconds */
    bool no_retry;          /* "retry": false */
};

/* Writes the body with its NUL, as one line of JSON. Returns its length; 0 and an empty text if size is too small
 * or a text is not UTF-8. */
BIDE_API size_t bide_details_format(char *text, size_t size, const struct bide_details_response *response);

BIDE_END_DECLS
#endif
