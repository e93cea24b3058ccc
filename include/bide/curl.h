/* http.h - libcurl with patience: bide_curl_perform(h, NULL, NULL, NULL) where curl_easy_perform(h) stood.
 *
 * The handle is configured by its owner, as ever. bide makes the attempts: it waits between them, honours what the
 * server asks, repeats nothing that may have run and is not safe to repeat, spends the retry budget of the target
 * and heeds its breaker. libcurl's own silent replay of a request on a dead kept-alive connection is stopped: a
 * repetition is ours, or there is none.
 *
 * What bide owns. libcurl's options cannot be read back, so those that bide sets replace the owner's. For each the
 * options below have a field, and after the call the handle has what that field says (NULL being libcurl's own
 * default):
 *
 *     PREREQFUNCTION, PREREQDATA              always                       prereq, prereq_data
 *     HEADERFUNCTION, HEADERDATA              always                       header, header_data
 *     SUPPRESS_CONNECT_HEADERS                always                       0 afterwards
 *     TIMEOUT_MS, CONNECTTIMEOUT_MS           always                       the policy's; 0 afterwards
 *     WRITEFUNCTION, WRITEDATA                if the options have a sink   write, write_data
 *     HTTPHEADER                              if `headers`, `inject`,      headers
 *                                             `resume` or `before` is set
 *     NOPROGRESS, XFERINFOFUNCTION, -DATA     with `cancel` or `progress`  progress, progress_data
 *     POSTFIELDS..., READFUNCTION, SEEK...    if the options have a body   body
 *     PRIVATE                                 in a multi                   as it was
 *     FRESH_CONNECT                           if the last attempt wants a  0 afterwards
 *                                             new connection (408, 421)
 *     FORBID_REUSE                            if a success came before     0 afterwards
 *                                             the request's body was sent
 *
 * Without a sink, the body goes where the handle's own write function leads. bide then judges a failure at the end
 * of its headers and cuts the transfer there if there will be another attempt, so that nothing of it is written (but
 * for heads, with CURLOPT_HEADER); but an HTTP/1.1 connection is lost by that, problem details cannot be read, and a
 * call that gives up during a wait has no body to show. With a sink none of this is so: give one.
 *
 * Threads: as with libcurl, a handle is used by one thread at a time. Targets and policies are shared. */
#ifndef BIDE_CURL_H
#define BIDE_CURL_H

#include <bide/call.h>
#include <bide/classify.h>
#include <bide/details.h>
#include <bide/hint.h>
#include <bide/key.h>
#include <bide/layer.h>
#include <bide/run.h>
#include <bide/targets.h>
#include <bide/trace.h>

#include <curl/curl.h>

#define BIDE_CURL_KEEP_MAX          65536u  /* longest error body that is kept, or drained for its connection's sake */
#define BIDE_CURL_HEAD_MAX          262144u /* longest response head, all its lines together */
#define BIDE_CURL_LINES_MAX         512u    /* most lines of one response head */
#define BIDE_CURL_ATTEMPTS_RECORDED 16u     /* attempts that a result describes one by one */

BIDE_BEGIN_DECLS

/* May the request be repeated once it may have run? */
enum bide_curl_safety {
    BIDE_CURL_BY_METHOD = 0, /* as RFC 9110 says of its method, seen when it is about to be sent */
    BIDE_CURL_UNSAFE,
    BIDE_CURL_IDEMPOTENT,
    BIDE_CURL_SAFE,
    BIDE_CURL_KEYED, /* the caller's own headers carry an idempotency key */
};

/* Where the request's body comes from, and so whether it can be sent again. */
enum bide_curl_body_kind {
    BIDE_CURL_BODY_UNKNOWN = 0, /* the handle's own. A GET, HEAD, OPTIONS or DELETE that uploaded nothing can be sent
                                    again; anything else is taken for spent once the request began */
    BIDE_CURL_BODY_REPEATABLE,  /* the handle's own, and libcurl can send it any number of times: POSTFIELDS, or none */
    BIDE_CURL_BODY_MEMORY,      /* `at`, `length`: sent as with CURLOPT_POSTFIELDS (not copied) */
    BIDE_CURL_BODY_FILE,        /* `fd` from `offset`, `length` bytes (-1: to its end): read by pread, so that the
                                   descriptor's own place does not matter. One that changed since is not sent again */
    BIDE_CURL_BODY_STREAM,      /* `read`, `read_data`; with `seek` it can be sent again, without it is one-shot */
};

/* For a file or stream the handle says by CURLOPT_POST or CURLOPT_UPLOAD what kind of request it is. */
struct bide_curl_body {
    enum bide_curl_body_kind kind;
    int fd;
    const void *at;
    int64_t offset;
    int64_t length; /* -1: unknown (sent chunked) */
    curl_read_callback read;
    void *read_data;
    curl_seek_callback seek; /* to any place from its start (SEEK_SET), also over what was not read yet */
    void *seek_data;
};

/* Header fields that bide adds to each attempt. Any of them makes HTTPHEADER bide's; the owner's list is `headers`. */
enum bide_curl_inject {
    BIDE_CURL_INJECT_KEY = 1u << 0,     /* Idempotency-Key: `key`, or a new one if NULL; makes the request keyed */
    BIDE_CURL_INJECT_ATTEMPT = 1u << 1, /* Bide-Attempt: see layer.h */
    BIDE_CURL_INJECT_TRACE = 1u << 2,   /* traceparent: `traceparent` continued; NULL or malformed: a new one */
};

/* A redirect (followed by libcurl, if the handle says so) that leads to another scheme, host or port. */
enum bide_curl_redirect {
    BIDE_CURL_REDIRECT_STRIP = 0, /* goes there without `headers` and without what bide injects. A list that is set on
                                      the handle itself is not known to bide, and libcurl sends it along */
    BIDE_CURL_REDIRECT_REFUSE,    /* is not followed: permanent */
};

/* One response, for the classify hook. Other fields are read with curl_easy_header. */
struct bide_curl_response {
    CURL *easy;
    long status;
    struct bide_text body; /* what was held back of it; NULL: nothing (see hold_max) */
    bool whole;            /* the body is all of it */
};

struct bide_curl_options {
    uint32_t struct_size; /* set by bide_curl_options_init, which zeroes the rest */
    enum bide_curl_safety safety;
    const struct bide_policy *policy; /* checked, and outlives the call; NULL: BIDE_PRESET_SERVICE */
    struct bide_targets *targets;     /* where a NULL target is looked up by origin; NULL: a table of this process */
    int64_t deadline_ns;              /* an instant of bide_now; 0: the policy's alone */
    uint64_t seed;                    /* 0: drawn */
    uint64_t retry_key;               /* see request.h */
    const struct bide_layer *inbound; /* what the request being served said, if there is one */
    const struct bide_cancel
        *cancel; /* ends waits at once, attempts within a second; NULL: cannot be cancelled. Not for
                                         a multi: bide_multi_cancel */

    /* Where the response goes. write NULL and write_data not: a FILE *, as with libcurl. Both NULL: no sink. */
    curl_write_callback write;
    void *write_data;
    bool (*rewind)(void *write_data); /* takes back all that was written: then a broken body may be tried anew */
    bool resume;                      /* a broken body may be resumed by Range and If-Range (needs a sink) */
    size_t hold_max;                  /* hold back so much of a success for the classify hook; 0: none */

    /* The owner's values of what bide owns. */
    curl_write_callback header;
    void *header_data;
    curl_prereq_callback prereq;
    void *prereq_data;
    curl_xferinfo_callback progress;
    void *progress_data;
    struct curl_slist *headers; /* sent with each attempt, but not to another origin */

    uint32_t inject; /* enum bide_curl_inject */
    enum bide_key_form key_form;
    const char *key;
    const char *traceparent;
    enum bide_curl_redirect redirect;

    struct bide_curl_body body;

    /* What a response means. */
    const struct bide_rules *status_rules;      /* by HTTP status */
    const struct bide_rules *curl_rules;        /* by CURLcode */
    const struct bide_details_rule *type_rules; /* by the type of problem details */
    size_t type_rule_count;
    const char *reset_header; /* "X-RateLimit-Reset", say, to be read as reset_unit says; NULL: none */
    enum bide_reset_unit reset_unit;

    /* Hooks, all with `context`. NULL: none. They run in the thread of the call; inside libcurl, classify does. */
    void *context;
    /* About to make an attempt: sign it anew. May set options that bide does not own, and *headers, which is the
     * list above, to another one, kept alive until the next call of before or the end. False: make no attempt, it is
     * over. */
    bool (*before)(void *context, CURL *easy, const struct bide_verdict *start, struct curl_slist **headers);
    /* Refine the outcome that the tables gave. Called at the end of a response's head; once more with the body if some
     * of it is held. A schema error is BIDE_KIND_PERMANENT, "try later" in a 200 BIDE_KIND_TRANSIENT. */
    void (*classify)(void *context, const struct bide_curl_response *response, struct bide_outcome *outcome);
    /* The answer was 401: get new credentials and set them. True: the attempt is made once more, which is no retry.
     * Asked once in a call; without a sink, before libcurl could answer a challenge by itself. */
    bool (*refresh)(void *context, CURL *easy);
    void (*event)(void *context, const struct bide_event *event);
};

/* One attempt, as it ended. */
struct bide_curl_attempt {
    long status;   /* 0: no answer */
    CURLcode code; /* what libcurl said; CURLE_OK where bide itself ended the transfer after the head */
    enum bide_kind kind;
    enum bide_evidence evidence;
    struct bide_hint hint;
    int64_t delay_ns;    /* waited before it */
    int64_t time_ns;     /* from its start to its judgement */
    bool replay_stopped; /* libcurl was about to repeat it by itself */
};

struct bide_curl_result {
    struct bide_verdict verdict; /* the last one: DONE, or GIVE_UP and why */
    uint32_t attempts;           /* made in all; the first BIDE_CURL_ATTEMPTS_RECORDED are described */
    uint32_t refreshed;          /* 1: an attempt was made once more after a 401 */
    long status;                 /* of the last attempt; 0: it had no answer */
    int64_t total_ns;
    bool body_dropped; /* the last answer's body did not reach the sink: it was longer than BIDE_CURL_KEEP_MAX or cut
                           when a wait was given up, or would have followed part of another */
    bool resumed;      /* the body was put together from several attempts */
    char key[BIDE_KEY_TEXT_SIZE]; /* the key that was generated, or "" */
    struct bide_curl_attempt attempt[BIDE_CURL_ATTEMPTS_RECORDED];
};

#define bide_curl_options_init(options) bide_curl_options_init_sized((options), sizeof *(options))
BIDE_API void bide_curl_options_init_sized(struct bide_curl_options *options, size_t size);

/* Names the first field that is wrong. bide_curl_perform asks this itself, before a socket is opened. */
BIDE_API enum bide_err bide_curl_options_check(const struct bide_curl_options *options, struct bide_problem *problem);

/* Performs the call to its end. A NULL target is the one of the URL's origin (scheme, host, port); NULL options are
 * those of init; result may be NULL.
 *
 * CURLE_OK: there is a final answer, and it is where libcurl would have put it; as with libcurl that may be a
 * failure, see CURLINFO_RESPONSE_CODE or the result. CURLE_HTTP_RETURNED_ERROR: the last answer was a failure whose
 * body was not kept. Else the CURLcode of the last attempt, or, where none was made, CURLE_ABORTED_BY_CALLBACK (a
 * gate refused, or cancelled), CURLE_OPERATION_TIMEDOUT (deadline) or CURLE_BAD_FUNCTION_ARGUMENT (the options are
 * wrong: bide_curl_options_check says how). In all other cases the result's verdict says why. */
BIDE_API CURLcode bide_curl_perform(CURL *easy, struct bide_target *target, const struct bide_curl_options *options,
                                    struct bide_curl_result *result);

/* What a CURLcode means: every code has a row. rules may be NULL. The reach is that of a request whose sending had
 * begun; a caller that knows better says so. */
BIDE_API struct bide_outcome bide_classify_curl(CURLcode code, const struct bide_rules *rules);

/* Writes the origin of a URL, "https://example.net:443": lower case, with its port, without user, path and query; and a
 * NUL. False and "" if it is none that bide understands. */
BIDE_API bool bide_curl_origin(char *text, size_t size, const char *url);

BIDE_END_DECLS
#endif
