/* call.h - one logical call over HTTP, and the attempts it is made of.
 *
 *     transfer    the call: the engine's state, the newest verdict, what was kept of the last failure
 *     exchange    one attempt on one easy handle
 *
 * Two drivers stand on this: http.c makes one attempt after the other, multi.c many at once. Both obey
 * transfer->verdict and decide nothing. An attempt is judged as early as it can be, inside libcurl's callbacks:
 *
 *     end of the head     a failure is judged here, and its body then kept, dropped or passed on;
 *                         a success is passed on, unless somebody wants to see its body first
 *     first body byte     what libcurl might have answered by itself (redirects, 401, 407, 417)
 *     end of the body     what was held back: problem details, bodies for the classify hook
 *     end of transfer     everything else: successes, and failures without an answer */
#ifndef HTTP_CALL_H
#define HTTP_CALL_H

#include <bide/curl.h>

struct http_attempt;

/* Bytes that grow. Zeroed: empty. */
struct http_buffer {
    char *at;
    size_t length;
    size_t capacity;
};

bool http_buffer_append(struct http_buffer *buffer, const void *at, size_t length); /* false: no memory */
void http_buffer_free(struct http_buffer *buffer);

/* What to ask for when a broken body is resumed. */
struct http_resume {
    uint64_t total;   /* length of the whole, 0: unknown */
    char validator[]; /* an entity tag or a date, for If-Range */
};

struct http_call {
    struct bide_call engine;
    struct bide_verdict verdict; /* the newest: to be obeyed */
    const struct bide_curl_options *options;
    struct bide_curl_result *result;           /* NULL: not wanted */
    const struct http_attempt *winner;         /* its answer goes to the sink; what others do is lost */
    const struct http_attempt *last_attempt;   /* the attempt that was judged last: its code is the call's */
    struct http_attempt *kept_attempt;         /* holds the answer that is the last one if no attempt follows */
    struct http_resume *resume;                /* NULL: from the start */
    void (*on_change)(struct http_call *call); /* there is a new verdict, or the safety is known. NULL: nobody asks */
    struct bide_trace trace;
    int64_t begin_ns;
    int64_t last_outcome_ns;  /* when the last attempt was judged: the delay before the next counts from here */
    uint64_t file_stamp;      /* of a file, before it was first sent; 0: none yet */
    uint64_t delivered_bytes; /* bytes that the sink has */
    uint32_t attempts;        /* made */
    CURLcode code;            /* of the last attempt */
    int status;               /* of the last attempt; 0: no answer */
    char key[BIDE_KEY_TEXT_SIZE];
    bool has_sink;               /* the options have one */
    bool sink_gets_heads;        /* they go to the sink, too (CURLOPT_HEADER) */
    bool safety_given;           /* by the options */
    bool cancelled;              /* by the owner, who wants no more of it */
    bool safety_known;           /* told, or learned from the method */
    bool wants_fresh_connection; /* the next attempt wants a new connection */
    bool credentials_refreshed;
    bool resumed;
    bool body_dropped;        /* the last answer's body is gone */
    bool connection_unshared; /* no other transfer shares its connection at the same time */
    bool is_over;
};

/* Begins the call: options and target found, the engine asked. The first verdict is in t->verdict. BIDE_ERR_INVALID:
 * see the problem; nothing was begun. */
enum bide_err http_call_begin(struct http_call *call, CURL *easy, struct bide_target *target,
                              const struct bide_curl_options *options, struct bide_curl_result *result,
                              struct bide_problem *problem);

/* The wait is over. */
void http_call_wake(struct http_call *call, int64_t now_ns);

/* The owner wants no more of it. False: it was over already. */
bool http_call_cancel(struct http_call *call, int64_t now_ns);

/* A verdict came from the engine: keeps it, tells the listener. outcome: what led to it, or NULL. */
void http_call_set_verdict(struct http_call *call, struct bide_verdict verdict, const struct bide_outcome *outcome,
                           int64_t now_ns);

/* The safety of the request turned out to be this. False: the policy wants a key, and the call is over. */
bool http_call_set_safety(struct http_call *call, struct http_attempt *attempt, enum bide_safety safety);

/* An attempt begins, was judged, has ended with this code: keeps its record. */
void http_call_attempt_started(struct http_call *call, const struct http_attempt *attempt, int64_t now_ns);
void http_call_attempt_ended(struct http_call *call, const struct http_attempt *attempt, CURLcode code);
void http_call_record_outcome(struct http_call *call, const struct http_attempt *attempt,
                              const struct bide_outcome *outcome, int64_t now_ns);

/* The call is over: delivers what was kept for this case, fills the result, frees what the transfer holds. Returns what
 * bide_curl_perform returns. */
CURLcode http_call_finish(struct http_call *call);

/* Gives a head to the owner's header function, line by line as libcurl does, and forgets it. False: one was not
 * taken. */
bool http_call_show_head(struct http_call *call, struct http_buffer *head);

/* Gives bytes of a body to the sink. Returns what the sink says: their number, if it took them. */
size_t http_call_write_sink(struct http_call *call, const char *at, size_t length);

#endif
