/* curl.h - retries for libcurl: bide_curl_perform(h, NULL, NULL, NULL) in place of curl_easy_perform(h).
 *
 * The owner configures the handle as usual. bide makes the attempts: it waits between them, honours Retry-After,
 * repeats no request that may have run and is not idempotent, charges the retry budget of the target and obeys its
 * circuit breaker. libcurl's own silent replay of a request on a dead keep-alive connection is stopped: only bide
 * repeats a request.
 *
 * Options that bide owns. During a call bide sets the options below on the handle, and libcurl's options cannot be read
 * back. A handle that is configured with <bide/curl_record.h> keeps its own: they are recorded, called in turn and
 * restored. For every other handle the owner states them in the fields of the options, or states that the handle has
 * none: BIDE_CURL_PLAIN_HANDLE. After the call the handle has the value of the field (NULL being libcurl's default).
 *
 *     PREREQFUNCTION, PREREQDATA              always                       prereq, prereq_data
 *     HEADERFUNCTION, HEADERDATA              always                       header, header_data
 *     SUPPRESS_CONNECT_HEADERS                always, to 1, when the       0 afterwards
 *                                             request is about to be sent
 *     TIMEOUT_MS, CONNECTTIMEOUT_MS           always                       call_timeout_ns, connect_timeout_ns
 *     LOW_SPEED_LIMIT, LOW_SPEED_TIME         with stall_timeout_ns, or    0 afterwards
 *                                             without a policy (easy only)
 *     WRITEFUNCTION, WRITEDATA                if the options have a sink   write, write_data
 *     HTTPHEADER                              if `headers`, `inject`,      headers (which these three require,
 *                                             `resume` or `before` is set  or no_headers)
 *     NOPROGRESS, XFERINFOFUNCTION, -DATA     with `cancel` or `progress`  progress, progress_data
 *     POSTFIELDS..., UPLOAD (memory),         if the options have a body:  a stream: its functions and length; memory
 *     READFUNCTION, SEEK..., INFILESIZE       memory, file or stream       and file: an empty body afterwards
 *     FRESH_CONNECT                           if the last outcome needs a  0 afterwards
 *                                             new connection (408, 421,
 *                                             425, a stopped replay), the
 *                                             kept-alive one is stale, or
 *                                             with fresh_if_unsafe
 *     FORBID_REUSE                            if a success came before     0 afterwards
 *                                             the request's body was sent,
 *                                             for a stale connection, or
 *                                             with fresh_if_unsafe
 *
 * Without a sink, the body goes to the handle's own write function. bide then classifies a failure at the end of its
 * headers and stops the attempt there if there will be another attempt, so that none of its body is written (only
 * headers, with CURLOPT_HEADER). The price: an HTTP/1.1 connection is lost, problem details cannot be read, and a call
 * that gives up during a wait has no body to show. A sink avoids all of this.
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

#define BIDE_CURL_KEEP_MAX          65536u  /* longest error body that is kept, or drained to keep its connection */
#define BIDE_CURL_HEAD_MAX          262144u /* longest response head, all its lines together */
#define BIDE_CURL_LINES_MAX         512u    /* most lines of one response head */
#define BIDE_CURL_ATTEMPTS_RECORDED 16u     /* attempts that a result records one by one */
#define BIDE_CURL_STALL_NS          (30 * BIDE_S) /* the stall timeout of a call without a policy */

/* The code of a call that sent nothing because bide refused it: the circuit breaker is open, the deadline has passed, a
 * key is missing, ... The result has the reason. libcurl itself never returns this code. */
#define BIDE_CURL_NOT_SENT CURLE_OBSOLETE57

/* The code of a call without options on a handle that was not recorded (curl_record.h). Nor this one. */
#define BIDE_CURL_NOT_RECORDED CURLE_OBSOLETE44

BIDE_BEGIN_DECLS

/* May the request be repeated after it may have run? */
enum bide_curl_safety {
    BIDE_CURL_BY_METHOD = 0, /* by its method (RFC 9110), known when it is about to be sent. A URL that is not http,
                              * https, ws or wss is unsafe: it may send mail, append to a file or run a command */
    BIDE_CURL_UNSAFE,
    BIDE_CURL_IDEMPOTENT,
    BIDE_CURL_SAFE,
    BIDE_CURL_KEYED, /* the caller's own headers carry an idempotency key */
};

/* The source of the request body, which decides whether it can be sent again. A keyed request must name it: as
 * BIDE_CURL_BODY_UNKNOWN it would never be retried once it was sent. */
enum bide_curl_body_kind {
    BIDE_CURL_BODY_UNKNOWN = 0, /* the handle's own. A GET, HEAD, OPTIONS, DELETE or TRACE that uploaded nothing can be
                                 * sent again; any other body counts as spent once the request began */
    BIDE_CURL_BODY_REPEATABLE,  /* the handle's own, and libcurl can send it any number of times: POSTFIELDS,
                                 * COPYPOSTFIELDS, a mime whose parts have a size, or no body. Never with READFUNCTION:
                                 * libcurl does not rewind it. If libcurl uploads without knowing the length, the body
                                 * counts as spent. With a declared length (INFILESIZE, POSTFIELDSIZE) bide notices only
                                 * that a retry timed out without a byte of its body, and then gives up */
    BIDE_CURL_BODY_MEMORY,      /* `at`, `length`: a POST (as by CURLOPT_POSTFIELDS, not copied) or, with `put`, a PUT;
                                 * CUSTOMREQUEST on the handle names another method */
    BIDE_CURL_BODY_FILE,        /* `fd` from `offset`, `length` bytes (-1: to its end), read by pread, so that the file
                                 * position does not matter. A file that changed is not sent again */
    BIDE_CURL_BODY_STREAM,      /* `read`, `read_data`; with `seek` it can be sent again, without it only once */
};

/* For a file or stream, the handle determines the kind of request by CURLOPT_POST or CURLOPT_UPLOAD. Final: its size
 * will not change; room to grow is in the options. */
struct bide_curl_body {
    enum bide_curl_body_kind kind;
    int fd;
    const void *at;
    bool put; /* memory: sent as CURLOPT_UPLOAD does (PUT), not as a POST. The handle need not have CURLOPT_UPLOAD */
    int64_t offset;
    int64_t length; /* -1: unknown (sent chunked) */
    curl_read_callback read;
    void *read_data;
    curl_seek_callback seek; /* to any offset from the start (SEEK_SET), also past the part that was read */
    void *seek_data;
};

/* Header fields that bide adds to each attempt. Any of them makes HTTPHEADER bide's, so the owner's list must be given
 * as `headers`, or its absence be stated by `no_headers`. */
enum bide_curl_inject {
    BIDE_CURL_INJECT_KEY = 1u << 0,     /* Idempotency-Key: `key`, or a generated key; makes the request keyed */
    BIDE_CURL_INJECT_ATTEMPT = 1u << 1, /* Bide-Attempt: see layer.h */
    BIDE_CURL_INJECT_TRACE = 1u << 2,   /* traceparent: continues `traceparent`; NULL or malformed: a new trace */
};

/* A redirect (followed by libcurl, if the handle allows it) to another scheme, host or port. */
enum bide_curl_redirect {
    BIDE_CURL_REDIRECT_STRIP = 0, /* is followed without `headers` and without the fields that bide injects; only
                                   * Accept and User-Agent of `headers` are sent and, with the body, its Content-Type,
                                   * Content-Encoding and Content-Language. A list that is set on the handle itself is
                                   * unknown to bide, and libcurl sends it along */
    BIDE_CURL_REDIRECT_REFUSE,    /* is not followed: permanent */
};

/* The part of a body that the sink holds already, from an earlier call and perhaps of another process. Final: its size
 * will not change. */
struct bide_curl_resume_from {
    uint64_t delivered_bytes; /* in the sink, which appends to them; 1 or more */
    uint64_t total;           /* length of the whole body; 0: unknown */
    const char *validator;    /* of the response that they are from: see bide_curl_validator */
};

/* A response, for the classify hook. Other fields can be read with curl_easy_header. */
struct bide_curl_response {
    CURL *easy;
    long status;
    struct bide_text body; /* the part that was held back; NULL: none (see hold_max) */
    bool whole;            /* body is the whole body */
    uint64_t reserved_[2]; /* zero: room to grow */
};

/* A zeroed struct has the default of every field. */
struct bide_curl_options {
    enum bide_curl_safety safety;
    enum bide_curl_redirect redirect;
    /* Valid (bide_policy_check), and outlives the call. NULL: BIDE_PRESET_TRANSFER with a stall timeout of
     * BIDE_CURL_STALL_NS: an attempt may take any time as long as it makes progress. */
    const struct bide_policy *policy;
    struct bide_targets *targets; /* finds a NULL target by its origin; NULL: bide_targets_default */
    int64_t deadline_ns;          /* of the call, an instant of bide_now; 0: none but the policy's */
    int64_t call_timeout_ns;      /* of the call, a duration; 0: none. The earliest limit applies */
    int64_t connect_timeout_ns;   /* of an attempt; 0: the policy's; BIDE_NEVER: none of its own */
    int64_t stall_timeout_ns;     /* an attempt fails after this long without a byte; 0: the default above, or none if
                                   * there is a policy; BIDE_NEVER: none. A multi counts bytes. bide_curl_perform leaves
                                   * it to libcurl: whole seconds, rounded up, at less than a byte per second on average
                                   * of five */
    uint64_t seed;                /* 0: drawn */
    uint64_t retry_key;           /* see request.h */
    const struct bide_layer *inbound; /* the layer information of the request being served, if any */
    /* Ends waits at once, attempts within a second. NULL: cannot be cancelled. For a multi use bide_multi_cancel. */
    const struct bide_cancel *cancel;

    /* The sink of the response. write NULL and write_data not: a FILE *, as with libcurl. Both NULL: no sink. */
    curl_write_callback write;
    void *write_data;
    /* Discards all that was written, so that a broken body can be tried again. Also called at the end of a call that
     * has failed, if the server no longer has the body that the sink holds a part of. */
    bool (*rewind)(void *write_data);
    bool resume;     /* a broken body may be resumed by Range and If-Range (needs a sink) */
    size_t hold_max; /* bytes of a success to hold back for the classify hook; 0: none */

    /* The owner's values of the options that bide owns. */
    curl_write_callback header;
    void *header_data;
    curl_prereq_callback prereq;
    void *prereq_data;
    curl_xferinfo_callback progress;
    void *progress_data;
    struct curl_slist *headers; /* sent with each attempt, but see `redirect`. No control bytes but HTAB */
    bool no_headers;            /* the handle itself has no header list (CURLOPT_HTTPHEADER) that would be replaced.
                                 * `inject`, `resume` and `before` require this or `headers` */
    char *error_buffer;         /* CURLOPT_ERRORBUFFER of the handle, CURL_ERROR_SIZE bytes: bide empties it when the
                                 * call begins, and writes its reason if it ended the call itself. NULL: none */

    uint32_t inject; /* enum bide_curl_inject */
    enum bide_key_form key_form;
    const char *key;
    const char *traceparent;
    const char *trace_state; /* tracestate, sent as it is with a traceparent that continues `traceparent`. NULL: none */

    struct bide_curl_body body;

    /* An unsafe request gets a connection of its own: it never meets one that the server is about to close, at the
     * price of a handshake; and, where the safety is learned from the method, of the pooled connection that libcurl had
     * chosen. (FRESH_CONNECT and FORBID_REUSE, for the requests that turn out to be unsafe.) */
    bool fresh_if_unsafe;

    /* Neither a listener nor a meter learns of the call. For a program that exports what a listener collects, whose
     * exports would otherwise cause exports. */
    bool unobserved;

    /* Classification of a response. */
    const struct bide_rules *status_rules;      /* by HTTP status */
    const struct bide_rules *curl_rules;        /* by CURLcode */
    const struct bide_details_rule *type_rules; /* by the type of problem details */
    size_t type_rule_count;
    const char *reset_header; /* for instance "X-RateLimit-Reset", parsed by reset_unit; NULL: none */
    enum bide_reset_unit reset_unit;

    /* Hooks, all with `context`; NULL: none. They run in the thread of the call; classify runs inside libcurl. */
    void *context;
    /* Called before each attempt, for instance to sign it anew. May set options that bide does not own, and set
     * *headers, which is the list above, to another list that stays alive until the next call of before or the end.
     * Returns false to end the call without an attempt. */
    bool (*before)(void *context, CURL *easy, const struct bide_verdict *start, struct curl_slist **headers);
    /* Refines the outcome that the tables gave. Called at the end of a response's head, and once more with the body if
     * a part of it is held back. A schema error is BIDE_KIND_PERMANENT, "try later" in a 200 is BIDE_KIND_TRANSIENT. */
    void (*classify)(void *context, const struct bide_curl_response *response, struct bide_outcome *outcome);
    /* The response was 401: gets new credentials and sets them. Returns true to repeat the attempt, which does not
     * count as a retry. Called once per call; without a sink, before libcurl could react to a challenge by itself. */
    bool (*refresh)(void *context, CURL *easy);
    void (*event)(void *context, const struct bide_event *event); /* see event.h */

    /* The call begins by resuming this part (needs `resume`; for a GET). NULL: the sink is empty. A response that does
     * not continue it replaces it, with `rewind`; without `rewind` the call gives up. */
    const struct bide_curl_resume_from *resume_from;

    const char *target_name; /* in events; NULL: the origin of the URL, which is the name in a table of targets */

    uint64_t reserved_[5]; /* zero: room to grow */
};

/* Why a response did not continue the bytes in the sink. The body starts over then, or the call gives up if the sink
 * cannot be rewound. */
enum bide_curl_mismatch {
    BIDE_CURL_MISMATCH_NONE = 0,
    BIDE_CURL_MISMATCH_STATUS,   /* not 206; 416, for instance */
    BIDE_CURL_MISMATCH_PARTS,    /* multipart/byteranges */
    BIDE_CURL_MISMATCH_NO_RANGE, /* no Content-Range, or a malformed one */
    BIDE_CURL_MISMATCH_ENCODED,  /* Content-Encoding */
    BIDE_CURL_MISMATCH_CHANGED,  /* another validator */
    BIDE_CURL_MISMATCH_UNKNOWN,  /* an unknown total length, which does not prove that the range is the rest */
    BIDE_CURL_MISMATCH_LENGTH,   /* another total length */
    BIDE_CURL_MISMATCH_RANGE,    /* another range, or not all of the rest */
};

/* The end of an attempt. Final: its size will not change. */
struct bide_curl_attempt {
    long status;   /* 0: no response */
    CURLcode code; /* libcurl's result; CURLE_OK also if bide cut the transfer (after the head, or a losing hedge) */
    enum bide_kind kind;
    enum bide_evidence evidence;
    struct bide_hint hint;
    int64_t delay_ns;                 /* wait before the attempt */
    int64_t time_ns;                  /* from its start to its classification */
    bool replay_stopped;              /* libcurl was about to repeat it by itself */
    bool stalled;                     /* in a multi: no byte moved for the stall timeout */
    enum bide_curl_mismatch mismatch; /* of a resumed body */
};

struct bide_curl_result {
    struct bide_verdict verdict; /* the last verdict: DONE, or GIVE_UP with its reason */
    uint32_t attempts;           /* attempts made; the first BIDE_CURL_ATTEMPTS_RECORDED are recorded below */
    uint32_t refreshed;          /* 1: an attempt was repeated after a 401 */
    long status;                 /* of the last attempt; 0: it had no response */
    int64_t total_ns;
    bool body_dropped; /* the body of the last response did not reach the sink: it was longer than BIDE_CURL_KEEP_MAX,
                        * was stopped when a wait was given up, or would have followed a part of another body */
    bool resumed;      /* the body was assembled from several attempts */
    char key[BIDE_KEY_TEXT_SIZE]; /* the generated idempotency key, or "" */
    char error[CURL_ERROR_SIZE];  /* why the call failed, a sentence for people; "" if it succeeded */
    struct bide_curl_attempt attempt[BIDE_CURL_ATTEMPTS_RECORDED];
    uint64_t reserved_[4]; /* zero: room to grow */
};

/* Reports the first invalid field; headers[2] is the third line of `headers`. bide_curl_perform checks the options
 * itself before it opens a socket, all but `policy`: checking that at each call would cost more than the call's other
 * checks together. */
BIDE_API enum bide_err bide_curl_options_check(const struct bide_curl_options *options, struct bide_problem *problem);

/* States that none of the options in the table above is set on the handle, which was not recorded (curl_record.h). */
#define BIDE_CURL_PLAIN_HANDLE bide_curl_plain_options()
BIDE_API const struct bide_curl_options *bide_curl_plain_options(void);

/* Performs the call to its end. NULL target: that of the URL's origin (scheme, host, port), in options->targets;
 * BIDE_NO_TARGET: no gates of a target. NULL options: the handle's options as recorded, otherwise the defaults; refused
 * for a handle that was not recorded. NULL result: not wanted.
 *
 * CURLE_OK: there is a final response, delivered where libcurl would have delivered it; as with libcurl it may be a
 * failure, see CURLINFO_RESPONSE_CODE or the result. CURLE_HTTP_RETURNED_ERROR: the last response was a failure whose
 * body was not kept; CURLE_PARTIAL_FILE: likewise, and the sink holds part of an earlier response.
 * CURLE_ABORTED_BY_CALLBACK: the call was cancelled. BIDE_CURL_NOT_SENT: bide refused the call before anything was
 * sent. Otherwise the CURLcode of the last attempt. In all these cases the verdict of the result has the reason.
 *
 * If the call could not begin, the result is zero but for its error: BIDE_CURL_NOT_RECORDED for NULL options on a
 * handle that was not recorded, CURLE_BAD_FUNCTION_ARGUMENT if the options are invalid (see bide_curl_options_check) or
 * a call is running on this recorded handle, CURLE_FAILED_INIT if no key could be generated (see bide_key_make). */
BIDE_API CURLcode bide_curl_perform(CURL *easy, struct bide_target *target, const struct bide_curl_options *options,
                                    struct bide_curl_result *result);

/* As curl_easy_strerror; knows the two codes above, too. */
BIDE_API const char *bide_curl_strerror(CURLcode code);

/* Describes a mismatch, to be read behind the status of the response: "206 with an unknown length". "" for NONE. */
BIDE_API const char *bide_curl_mismatch_text(enum bide_curl_mismatch mismatch);

/* Classifies a CURLcode: every code has a row. NULL rules: only the table. The evidence is that of a request whose
 * sending had begun; a caller with better evidence overwrites it. */
BIDE_API struct bide_outcome bide_classify_curl(CURLcode code, const struct bide_rules *rules);

/* Writes the origin of a URL, "https://example.net:443": lower case, with its port, without user, path and query; and a
 * NUL. Returns false and writes "" for a URL that bide does not understand. */
BIDE_API bool bide_curl_origin(char *text, size_t size, const char *url);

/* Writes the validator with which a later call can resume the body of the handle's last response (resume_from), and a
 * NUL: a strong entity tag, or a Last-Modified a minute or more before Date. Returns false and writes "" if that body
 * cannot be resumed: not a 200, no such validator, a Content-Encoding, "Accept-Ranges: none", or too long. To be called
 * in the classify hook, or after the call. */
BIDE_API bool bide_curl_validator(char *text, size_t size, CURL *easy);

BIDE_END_DECLS
#endif
