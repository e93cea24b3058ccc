/* details.h - problem details (RFC 9457, application/problem+json): the description of a failure in a response body.
 *
 * Of the members of a problem, four matter for retries: the type, a stable URI that can be mapped to a kind of outcome;
 * the status; and two members by which a server controls retries:
 *
 *     {"type": "https://example.net/overloaded", "status": 503, "title": "Overloaded",
 *      "retry_after": 2.5, "retry": false}
 *
 * retry_after is a number of seconds from now (not negative; a fraction counts), retry is a boolean. The former may
 * also be spelled with a hyphen or in camel case (retry-after, retryAfter); if spellings differ, the longest wait
 * counts. A member of the wrong type or out of range is ignored; unknown members are skipped; the status in the body is
 * only informative, the real status counts. Waits saturate. A body that is not a JSON object, is longer than
 * BIDE_DETAILS_MAX or deeper than BIDE_DETAILS_DEPTH, or repeats a member of these, counts as no details. Parsing
 * allocates no memory.
 *
 * Threads: all functions may be called from any thread. */
#ifndef BIDE_DETAILS_H
#define BIDE_DETAILS_H

#include <bide/base.h>
#include <bide/hint.h>
#include <bide/outcome.h>

#define BIDE_DETAILS_MAX      65536u /* longest body that is parsed */
#define BIDE_DETAILS_DEPTH    32u    /* deepest nesting of objects and arrays, the outermost included */
#define BIDE_DETAILS_TYPE_MAX 256u   /* size of the type, NUL included; a longer type counts as absent */

BIDE_BEGIN_DECLS

/* Final: its size will not change. */
struct bide_details {
    char type[BIDE_DETAILS_TYPE_MAX]; /* "" when absent: RFC 9457's about:blank. No control characters */
    int status;                       /* 100 to 999; 0: absent */
    struct bide_hint hint;            /* retry false: STOP; retry_after: WAIT */
};

/* Maps a type to an outcome. Types are compared byte by byte. Final: its size will not change. */
struct bide_details_rule {
    const char *type;
    enum bide_kind kind;
    enum bide_evidence evidence;
    uint32_t flags; /* enum bide_outcome_flag */
};

/* Returns true if this Content-Type is problem details in JSON. Parameters and case do not matter. */
BIDE_API bool bide_details_media_type(struct bide_text value);

/* Parses a body. Returns false and zeroes *details if the body is no problem details. */
BIDE_API bool bide_details_parse(struct bide_text body, struct bide_details *details);

/* Returns the first rule with that type, or NULL. An absent type matches no rule. */
BIDE_API const struct bide_details_rule *bide_details_find(const struct bide_details *details,
                                                           const struct bide_details_rule *rule, size_t count);

/* The problem details that a server sends. Absent members are NULL, 0, BIDE_NEVER or false. Final: its size will not
 * change. */
struct bide_details_response {
    const char *type;
    const char *title;
    const char *detail;
    int status;
    int64_t retry_after_ns; /* BIDE_NEVER: absent. Rounded up to milliseconds */
    bool no_retry;          /* "retry": false */
};

/* Writes the body with its NUL, as one line of JSON. Returns its length; 0 and an empty text if size is too small
 * or a text is not UTF-8. */
BIDE_API size_t bide_details_format(char *text, size_t size, const struct bide_details_response *response);

BIDE_END_DECLS
#endif
