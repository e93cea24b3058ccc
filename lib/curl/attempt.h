/* attempt.h - an attempt of a call on an easy handle.
 *
 * An attempt has one or more legs: libcurl follows redirects and answers authentication challenges by itself, and each
 * of these requests is a leg with a response of its own. The attempt spans seven files:
 *
 *     attempt.c   libcurl's callbacks, the start of an attempt and its end
 *     response.c  parses the response head, decides when to report the outcome and where the body goes
 *     evidence.c  builds the outcome: kind, evidence, flags, server hint
 *     inject.c    header fields that bide adds          body.c  the request body
 *     resume.c    continues a body that broke off       connection.c  is a kept-alive connection still usable?
 *
 * Owners: the files that write each field of struct http_attempt (every file may read all fields):
 *
 *     easy.c, multi.c  call, easy            inject.c  inject, state.left_origin
 *     body.c           uploaded_bytes, upload_complete, state.uploaded_chunks
 *     response.c       response; head and body while a response arrives; forbid_reuse_set for an early success;
 *                      state.outcome, state.from_response, state.drained_bytes, state.mismatch
 *     connection.c     state.socket_known, checked_socket before a transfer
 *     attempt.c        start, stale_port, checked_socket, fresh_connect_set, forbid_reuse_set, the rest of state;
 *                      empties head and body and zeroes response before a leg; clears response.paused; counts
 *                      response.head_bytes and head_lines; at the end zeroes response.status if it is interim (1xx)
 *     call.c           empties head when it passes the head to the caller
 *
 * Two fields of state have several writers. state.stop is set by the file that ends a transfer: attempt.c, response.c
 * or inject.c; evidence.c sets it for a head that libcurl found too long. state.reported is set with each report to the
 * engine: by response.c (http_report_outcome); by attempt.c and multi.c for an attempt that cannot be made; by call.c
 * when the engine ends the call over the request's safety. */
#ifndef HTTP_ATTEMPT_H
#define HTTP_ATTEMPT_H

#include "call.h"

struct http_inject;

/* Where the response body goes. */
enum http_route {
    HTTP_ROUTE_UNDECIDED = 0, /* the head is not complete, or libcurl may follow it with another leg */
    HTTP_ROUTE_SINK,          /* to the sink, as it arrives */
    HTTP_ROUTE_HOLD,          /* into the buffer: the outcome depends on it */
    HTTP_ROUTE_KEEP,          /* into the buffer: delivered if the planned next attempt is not made after all */
    HTTP_ROUTE_DISCARD,       /* nowhere: only read so that the connection stays usable */
};

/* The response to a leg. Zeroed when the leg begins. */
struct http_response {
    size_t head_bytes;         /* of all lines, those of interim (1xx) responses included */
    size_t head_in_body_bytes; /* of the head at the start of the body buffer (CURLOPT_HEADER) */
    uint32_t head_lines;
    int status;
    enum http_route route;
    bool in_head;
    bool http_1;         /* HTTP/1.x */
    bool leg_may_follow; /* libcurl may follow it with another leg: a redirect, a challenge */
    bool awaits_refresh; /* 401: the refresh hook decides whether the attempt is repeated */
    bool paused;         /* the sink returned CURL_WRITEFUNC_PAUSE */
};

/* The progress of an attempt. Zeroed when it starts. */
struct http_attempt_state {
    struct bide_outcome outcome; /* from the head; after the report, the outcome that was reported */
    int64_t start_ns;
    size_t drained_bytes; /* of a discarded body */
    uint32_t legs;        /* requests that libcurl was about to send; 0 proves that nothing was sent */
    CURLcode end_code;    /* libcurl's code for the whole transfer */
    enum http_stop stop;
    enum bide_curl_mismatch mismatch;
    bool bodyless_method;  /* a method that normally has no body */
    bool is_get;           /* GET: a broken body may be resumed */
    bool is_head;          /* HEAD */
    bool left_origin;      /* a redirect led to another origin */
    bool uploaded_chunks;  /* an earlier leg sent a body of unknown length, which BIDE_CURL_BODY_REPEATABLE rules out */
    bool scheme_unchecked; /* the engine has the safety by the method, which counts only if the scheme is HTTP's */
    bool reported;         /* the engine has the outcome, or ended the call without it */
    bool from_response;    /* the outcome was reported by the response's head or body, not by libcurl's code */
    bool complete;         /* libcurl ended the transfer with CURLE_OK */
    bool reconnected;      /* it was moved to a new connection before anything was sent: once per attempt */
    bool socket_known;     /* the table of the multi has a connection with the ends of the first leg's */
};

/* What the driver does when libcurl has ended a transfer. */
enum http_attempt_next {
    HTTP_NEXT_VERDICT,   /* the outcome is reported: execute the call's verdict */
    HTTP_NEXT_REFRESH,   /* a 401 that the refresh hook may repair: call the hook, then http_attempt_restart or
                          * http_attempt_end_with_401 */
    HTTP_NEXT_RECONNECT, /* nothing was sent on a connection that cannot be used: http_attempt_reconnect */
};

struct http_attempt {
    struct http_call *call;
    CURL *easy;
    struct http_inject *inject;   /* NULL: bide sets no header list */
    struct http_buffer head;      /* of a failure, for the caller's header function */
    struct http_buffer body;      /* held or kept */
    struct bide_verdict start;    /* the START verdict: attempt number and deadlines */
    size_t uploaded_bytes;        /* of the request body, read so far */
    bool upload_complete;         /* the reader returned 0 */
    int stale_port;               /* local port of the handle's last connection, if it is stale; 0: it is not */
    curl_socket_t checked_socket; /* of that connection */
    struct http_record *record;   /* whose attempt this is while its handle is adopted; NULL: an attempt of one call */
    bool is_copy;                 /* the handle is a copy of the caller's, made during the call */
    /* What is on the handle now. */
    long timeout_ms_set; /* -1: unknown */
    long connect_ms_set;
    long stall_s_set; /* 0: not bide's */
    bool callbacks_set;
    bool suppress_set; /* CURLOPT_SUPPRESS_CONNECT_HEADERS */
    bool fresh_connect_set;
    bool forbid_reuse_set;
    struct http_attempt_state state;
    struct http_response response;
};

/* Returns true if the response of another attempt goes to the sink. */
static inline bool http_attempt_has_lost(const struct http_attempt *attempt)
{
    return attempt->call->winner && attempt->call->winner != attempt;
}

/* Before the first attempt: sets bide's callbacks and options on the handle, unless they stayed there (an adopted
 * handle). After the last: restores the owner's values, those of the record or of the caller's options. */
CURLcode http_attempt_install(struct http_attempt *attempt);
void http_attempt_uninstall(struct http_attempt *attempt);
/* Restores the owner's values on a handle, also those that stay on an adopted handle after a call. */
void http_attempt_restore_handle(struct http_attempt *attempt);

/* Prepares attempt v->attempt. On CURLE_OK libcurl must perform it. Any other code: the attempt cannot be made, and
 * that was reported to the engine. */
CURLcode http_attempt_start(struct http_attempt *attempt, const struct bide_verdict *v, int64_t now_ns);

/* Prepare the same attempt once more: after the refresh hook provided new credentials; for HTTP_NEXT_RECONNECT, where
 * the engine learns nothing: no charge, no vote, no wait. */
CURLcode http_attempt_restart(struct http_attempt *attempt, int64_t now_ns);
CURLcode http_attempt_reconnect(struct http_attempt *attempt, int64_t now_ns);

/* Changes the connect timeout of a running attempt, counted from its start in libcurl. */
void http_attempt_set_connect_timeout(struct http_attempt *attempt, int64_t timeout_ns);

/* libcurl has ended the transfer. Reports the outcome if that was not done before, and returns what is to be done. */
enum http_attempt_next http_attempt_end(struct http_attempt *attempt, CURLcode code, int64_t now_ns);

/* The refresh hook had no new credentials: reports the 401 that was held. */
void http_attempt_end_with_401(struct http_attempt *attempt, int64_t now_ns);

/* Reports the attempt as cancelled, because another attempt won. */
void http_attempt_abandon(struct http_attempt *attempt, int64_t now_ns);

/* Reports the request as unsafe if state.scheme_unchecked, and the scheme is not HTTP's. To be called before a failure
 * is reported, and before libcurl may send another leg: then it has only the scheme of that leg. */
void http_attempt_check_scheme(struct http_attempt *attempt);

/* Frees the buffers, not the handle. */
void http_attempt_free(struct http_attempt *attempt);

/* ---- response.c ---- */

/* Process a line of a head, a piece of a body. Return false to end the transfer. */
bool http_response_header_line(struct http_attempt *attempt, char *line, size_t length);
bool http_response_body_data(struct http_attempt *attempt, const char *at, size_t length);

/* Decide the outcome and the route of the body: from the head alone, or from the body that was held. `whole`: the
 * buffer has the complete body. Return false to end the transfer. */
bool http_response_decide_by_head(struct http_attempt *attempt);
bool http_response_decide_by_body(struct http_attempt *attempt, bool whole);

/* Reports the outcome of the attempt to the engine and stores the verdict. To be called once per attempt. */
void http_report_outcome(struct http_attempt *attempt, const struct bide_outcome *outcome, int64_t now_ns);

/* ---- evidence.c ---- */

/* Returns the outcome by status, rules, classify hook and header fields. */
struct bide_outcome http_outcome_from_head(struct http_attempt *attempt);

/* Returns the same, refined by the body that was held. */
struct bide_outcome http_outcome_from_body(struct http_attempt *attempt, bool whole);

/* Returns the outcome of a transfer that ended without a usable response. If part of a body is in the sink, prepares
 * the call to resume it. */
struct bide_outcome http_outcome_from_failure(struct http_attempt *attempt, CURLcode code);

/* Returns libcurl's code, or the code of the real reason if bide ended the transfer. The latter function also finds the
 * reason of a failure that libcurl names wrongly, and sets state.stop. */
CURLcode http_stop_code(enum http_stop stop, CURLcode code);
CURLcode http_failure_code(struct http_attempt *attempt, CURLcode code);

/* Returns true if the body must be read before the outcome is certain. */
bool http_outcome_needs_body(const struct http_attempt *attempt);

/* Returns a header field of the last response; at is NULL if it is absent. */
struct bide_text http_header_field(CURL *easy, const char *name);

/* ---- inject.c ---- */

/* Allocates attempt->inject if the options need it. The other functions, but http_inject_prepare_leg, are called only
 * if it is there: most calls do not need it. */
CURLcode http_inject_install(struct http_attempt *attempt);
/* Write the fields anew for an attempt, free them. */
CURLcode http_inject_prepare_attempt(struct http_attempt *attempt, int64_t now_ns);
void http_inject_uninstall(struct http_attempt *attempt);
/* Stores the origin of the first leg, which is about to be sent. */
void http_inject_note_first_leg(struct http_attempt *attempt);
/* Compares the origin of a later leg, which is about to be sent after a response of status `redirect`. If it differs,
 * removes all header fields that the other origin must not get, the idempotency key among them: the call may become
 * unsafe. Returns false if the leg must not be sent. */
bool http_inject_prepare_leg(struct http_attempt *attempt, int redirect);

/* Checks that header lines contain no control bytes and are not too long. */
enum bide_err http_headers_check(const struct curl_slist *list, struct bide_problem *problem);

/* ---- body.c ---- */

/* Called only if bide sets the body on the handle: memory, file or stream. */
CURLcode http_body_install(struct http_attempt *attempt);
void http_body_uninstall(struct http_attempt *attempt);
bool http_body_rewind(struct http_attempt *attempt); /* before an attempt; false: cannot be sent again */

/* Called for every body. */
bool http_body_sent(const struct http_attempt *attempt);      /* all of it, as far as libcurl reports */
bool http_body_spent(const struct http_attempt *attempt);     /* after an attempt: cannot be sent another time */
void http_body_note_end_of_leg(struct http_attempt *attempt); /* libcurl may begin another leg, with sizes of its own */

/* ---- connection.c ---- */

/* Before a transfer of an easy handle: returns the local port of its last connection if that was closed or has bytes
 * that no request asked for; 0 if it can be used. Sets checked_socket to its socket. */
int http_connection_stale_port(struct http_attempt *attempt);
/* In PREREQFUNCTION of an adopted handle: keeps the chosen connection, or forgets the kept one. */
void http_connection_keep(struct http_attempt *attempt, const struct http_ends *ends);
/* In PREREQFUNCTION: the transfer made no connection of its own so far; the connection is stale. The latter returns
 * false for attempt->checked_socket, and for a socket that bide does not know. Sets state.socket_known. */
bool http_connection_is_reused(CURL *easy);
bool http_connection_is_stale(struct http_attempt *attempt, const struct http_ends *ends);
/* After a transfer in a multi: stores its socket in the table, in place of another one with similar ends. */
void http_sockets_note(struct http_socket *sockets, const struct http_attempt *attempt);

/* libcurl counts the time in its own queue as connect time, and reports it. */
bool http_connection_counts_queue(void);
/* Of a transfer in a multi, if libcurl reports it: how long it was in libcurl's queue; 0: it is still there. */
int64_t http_connection_queue_ns(CURL *easy);

/* ---- resume.c ---- */

/* At the beginning of the call: takes over the part in the sink (resume_from), if any. Returns false if out of
 * memory. */
bool http_resume_begin(struct http_call *call);
/* Returns true for an entity tag that is not weak, or a date. */
bool http_resume_validator_is_strong(const char *validator);
/* After a body broke off: stores how to request the rest. Returns false if it cannot be resumed. */
bool http_resume_prepare(struct http_attempt *attempt);
/* The head of a response to a resumed request. Returns NONE if its body continues the bytes in the sink. */
enum bide_curl_mismatch http_resume_compare(struct http_attempt *attempt);
/* Parses "bytes 500-999/1000", a Content-Range. Returns true if the range starts at `from` and extends to the end;
 * *total is then the length of the complete body. */
bool http_content_range_continues(const char *value, uint64_t from, uint64_t *total);
/* At the end of the call: returns false if a resumed body lacks bytes. */
bool http_resume_is_complete(const struct http_call *call);

#endif
