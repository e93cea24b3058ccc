/* call.h - a call over HTTP: the engine's call, and the state that its attempts share.
 *
 *     struct http_call       a logical request with its retries; wraps struct bide_call, which decides
 *     struct http_attempt    a single try of it on an easy handle (attempt.h)
 *
 * Two drivers use it: easy.c makes one attempt after another, multi.c many at once. Both execute call->verdict and
 * decide nothing. The outcome of an attempt is reported to the engine as early as it is known, inside libcurl's
 * callbacks:
 *
 *     end of the response head   a failure is reported here, and its body is then kept, discarded or streamed to the
 *                                sink; the body of a success is streamed, unless it must be classified first
 *     first byte of the body     statuses that libcurl may follow with a request of its own (3xx, 401, 407, 417)
 *     end of the body            bodies that were held: problem details, bodies for the classify hook (or earlier, when
 *                                the buffer is full)
 *     end of the transfer        everything else: successes, and failures without a response
 *
 * Owners: the files that write each field of struct http_call (every file may read all fields):
 *
 *     call.c      all fields that are not named below; counts delivered_bytes; sets wants_fresh_connection by the
 *                 outcome, code at the end of an attempt, body_dropped at the end of the call; clears winner,
 *                 kept_attempt and connect_status when an attempt starts; frees resume at the end of the call
 *     response.c  winner, kept_attempt, resumed, resume_refuted, sink_refuted, sink_gets_heads; body_dropped when a
 *                 final body cannot follow part of another; resets delivered_bytes when a changed body starts over;
 *                 frees resume when the body starts over
 *     attempt.c   clears winner before a leg; delivered_bytes, sink_refuted and wants_fresh_connection before an
 *                 attempt; sets safety_known when the method is seen, code when an attempt cannot be made,
 *                 body_dropped after a 401
 *     resume.c    resume; delivered_bytes when the call begins with a part of the body
 *     body.c      file_stamp           evidence.c  connect_status
 *     easy.c      credentials_refreshed, report
 *     multi.c     sockets, report, on_change, driver_ends_late, credentials_refreshed; code when libcurl rejects the
 *                 handle or the call is cancelled late; clears winner when the call is cancelled; sets
 *                 verdict.wake_ns to BIDE_NEVER when a planned hedge is impossible
 *
 * Only call.c calls the engine; response.c, attempt.c and multi.c pass it outcomes by http_call_end_attempt. */
#ifndef HTTP_CALL_H
#define HTTP_CALL_H

#include <bide/curl.h>

struct http_attempt;
struct http_record;

/* A byte buffer that grows. The zero value is empty. */
struct http_buffer {
    char *at;
    size_t length;
    size_t capacity;
};

bool http_buffer_append(struct http_buffer *buffer, const void *at, size_t length); /* false: out of memory */
void http_buffer_free(struct http_buffer *buffer);

/* The ends of a connection, as PREREQFUNCTION gets them. */
struct http_ends {
    const char *ip; /* of the peer: the server, or a proxy */
    int port;
    int local_port;
};

/* The socket of a kept-alive connection, as it was after the first transfer that bide saw on it (connection.c). */
struct http_socket {
    curl_socket_t fd;
    uint32_t peer;       /* hash of the peer's address and port: connections to two peers may share a local port */
    uint16_t local_port; /* 0: an empty place */
    bool http_1;         /* the transfer was HTTP/1.x: the server sends nothing before the next request */
    bool http_2;         /* HTTP/2: the server may send frames at any time */
};

#define HTTP_SOCKETS_LOG2 12
#define HTTP_SOCKETS      (1u << HTTP_SOCKETS_LOG2) /* places in the table of a multi */

/* How to request the rest of a body that broke off (Range and If-Range). */
struct http_resume {
    uint64_t total;   /* length of the complete body; 0: unknown */
    char validator[]; /* an entity tag or a date, for If-Range */
};

/* Why bide ended a transfer. libcurl then reports a callback's error; http_stop_code gives the real reason's code. */
enum http_stop {
    HTTP_STOP_NONE = 0,      /* libcurl ended it */
    HTTP_STOP_CUT,           /* the rest of the response is not needed, or there is no memory for its body */
    HTTP_STOP_RECONNECT,     /* nothing was sent: the attempt continues on a new connection */
    HTTP_STOP_REPLAY,        /* libcurl was about to send the request a second time */
    HTTP_STOP_LEGS,          /* libcurl was about to send one leg too many */
    HTTP_STOP_HEAD_TOO_LONG, /* the response head exceeded a limit */
    HTTP_STOP_NO_MEMORY,     /* no memory to buffer the response head */
    HTTP_STOP_SINK_FAILED,   /* the caller's sink or header function returned an error */
    HTTP_STOP_OTHER_ORIGIN,  /* a redirect led to another origin, which the options forbid */
    HTTP_STOP_STALLED,       /* no byte moved for the stall timeout */
};

struct http_call {
    struct bide_call engine;
    struct bide_verdict verdict;               /* the newest verdict: the driver's next action */
    const struct bide_curl_options *options;   /* the caller's; of a recorded handle, completed by its values */
    struct http_record *record;                /* NULL: the handle is not recorded */
    struct bide_curl_result *result;           /* NULL: not wanted */
    struct bide_report *report;                /* to the listeners; NULL: there is none */
    CURL *easy;                                /* the caller's handle */
    const struct http_attempt *winner;         /* its response goes to the sink; NULL: no response does yet */
    const struct http_attempt *last_attempt;   /* its outcome was reported last; its code is the call's */
    struct http_attempt *kept_attempt;         /* holds the final response if no attempt follows after all */
    struct http_resume *resume;                /* NULL: the next attempt requests the whole body */
    const struct http_socket *sockets;         /* of a multi: those of its connections; NULL: an easy call */
    void (*on_change)(struct http_call *call); /* a new verdict, or the method became known. NULL: no listener */
    struct bide_trace trace;
    int64_t begin_ns;
    int64_t last_outcome_ns;  /* when an outcome was last reported: the delay before the next attempt counts from it */
    uint64_t file_stamp;      /* of a request body in a file, before it was first sent; 0: not taken yet */
    uint64_t delivered_bytes; /* response bytes that the sink holds */
    uint32_t attempts;        /* made so far */
    int64_t stall_ns;         /* time without progress that fails an attempt; BIDE_NEVER: bide has no limit */
    CURLcode code;            /* of the last attempt */
    enum http_stop last_stop; /* of the last attempt */
    enum bide_curl_mismatch last_mismatch; /* of the last attempt */
    int status;                            /* of the last attempt; 0: no response */
    int connect_status;                    /* of the proxy that rejected the last attempt's CONNECT; 0: none did */
    char key[BIDE_KEY_TEXT_SIZE];
    bool has_sink;               /* the options set write or write_data */
    bool sink_gets_heads;        /* CURLOPT_HEADER is set: response heads go to the sink, too */
    bool safety_given;           /* by the options, not to be learned from the method */
    bool driver_ends_late;       /* the driver itself ends attempts at their time limit, not CURLOPT_TIMEOUT_MS */
    bool cancelled;              /* by the caller: the sink gets nothing more */
    bool safety_known;           /* given, or learned from the method */
    bool wants_fresh_connection; /* the next attempt must not reuse a connection */
    bool credentials_refreshed;  /* the refresh hook was called: once per call */
    bool resumed;                /* the body in the sink was continued by a 206 */
    bool resume_refuted;         /* a response to a range did not fit: no more ranges */
    bool sink_refuted;           /* ... and the sink still holds the bytes that it did not continue */
    bool body_dropped;           /* the final response's body did not reach the sink */
    bool is_over;                /* DONE or GIVE_UP was received */
};

/* Set a problem, which may be NULL: "FIELD is VALUE; must be WANT", or any text (with errno, for BIDE_ERR_SYSTEM).
 * Return the error. (lib/core has the same for libbide, but does not export it.) */
enum bide_err http_problem_set(struct bide_problem *problem, const char *field, int64_t value, const char *want);
enum bide_err http_problem_set_text(struct bide_problem *problem, enum bide_err err, const char *text);

/* Checks the options of a call, except the policy (see bide_curl_options_check). */
enum bide_err http_options_check(const struct bide_curl_options *options, struct bide_problem *problem);

/* Returns true if a call with these options (may be NULL), on the target that the caller gave (may be NULL), has a
 * listener or a meter: call->report must then be memory for its reports. */
bool http_call_is_watched(const struct bide_curl_options *options, const struct bide_target *target);

/* Begins the call, of which only `report` is set: checks the options, finds the target, begins the engine's call. The
 * first verdict is in call->verdict. If the options are wrong, returns BIDE_ERR_INVALID after filling *problem (may be
 * NULL); if no idempotency key can be generated, BIDE_ERR_SYSTEM. Then the call has not begun. */
enum bide_err http_call_begin(struct http_call *call, CURL *easy, struct bide_target *target,
                              const struct bide_curl_options *options, struct bide_curl_result *result,
                              struct bide_problem *problem);

/* Reports to the engine that the timer of the verdict (wake_ns) expired, and stores the new verdict. */
void http_call_wake(struct http_call *call, int64_t now_ns);

/* Cancels the call. Returns false if it was over already. */
bool http_call_cancel(struct http_call *call, int64_t now_ns);

/* Stores a verdict of the engine, reports it to the listeners and notifies on_change. Verdicts after DONE or GIVE_UP
 * are ignored. end: the end of the attempt that led to the verdict, or NULL. */
void http_call_set_verdict(struct http_call *call, struct bide_verdict verdict, const struct bide_attempt_end *end,
                           int64_t now_ns);

/* Passes the outcome of an attempt to the engine, and stores the verdict. */
void http_call_end_attempt(struct http_call *call, struct bide_attempt_end end, int64_t now_ns);

/* Reports to the listeners that an attempt ended with a 401 and starts once more. The engine does not learn that. */
void http_call_report_refresh(struct http_call *call, const struct http_attempt *attempt, int64_t now_ns);

/* Corrects the safety in the engine: when the method becomes known, and when a redirect makes the key useless. Returns
 * false if the policy requires a key: the call is over, and the request must not be sent. */
bool http_call_set_safety(struct http_call *call, struct http_attempt *attempt, enum bide_safety safety);

/* Record an attempt in the call and its result: when it starts, when libcurl has ended it, when its outcome is known
 * (often before libcurl ends it). */
void http_call_attempt_started(struct http_call *call, const struct http_attempt *attempt, int64_t now_ns);
void http_call_attempt_ended(struct http_call *call, const struct http_attempt *attempt, CURLcode code);
void http_call_record_outcome(struct http_call *call, const struct http_attempt *attempt,
                              const struct bide_outcome *outcome, int64_t now_ns);

/* Ends the call: delivers a kept response if it turned out to be final, fills the result and frees the call's memory.
 * Returns the code for bide_curl_perform to return. */
CURLcode http_call_finish(struct http_call *call);

/* Passes a buffered head to the caller's header function, line by line as libcurl does, and empties the buffer. Returns
 * false if the function rejected a line. The buffer is empty if the caller has no header function. */
bool http_call_show_head(struct http_call *call, struct http_buffer *head);

/* ---- describe.c: sentences for people, cut at size ---- */

/* Describes why a call that is over did not succeed. */
void http_describe_failure(char *text, size_t size, const struct http_call *call);

/* Describes the call for an event: see struct bide_call_about. context: the call. */
void http_describe_about(void *context, struct bide_call_about *about);

/* Writes the new verdict to the verbose output of a recorded handle. */
void http_trace_verdict(const struct http_call *call, int64_t now_ns);

/* ---- the sink ---- */

/* Writes body bytes to the sink. Returns the sink's result: the length if it accepted all of them. */
size_t http_call_write_sink(struct http_call *call, const char *at, size_t length);

#endif
