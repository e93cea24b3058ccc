/* attempt.h - one attempt on one easy handle.
 *
 * An attempt is one or more legs: libcurl follows redirects and answers challenges by itself. Each leg has an answer
 * of its own. Three files make an exchange: exchange.c stands at libcurl's callbacks, answer.c decides what becomes
 * of an answer, evidence.c says what it all means. */
#ifndef HTTP_ATTEMPT_H
#define HTTP_ATTEMPT_H

#include "call.h"

struct http_inject;

/* What becomes of the body. */
enum http_route {
    HTTP_ROUTE_UNDECIDED = 0, /* the head has not ended, or libcurl may answer it by itself */
    HTTP_ROUTE_SINK,          /* to the sink */
    HTTP_ROUTE_HOLD,          /* held back until it is known what it says */
    HTTP_ROUTE_KEEP,          /* there will be another attempt: kept in case there will not */
    HTTP_ROUTE_DISCARD,       /* nobody wants it; read on for the connection's sake */
};

/* Why we ended a transfer. libcurl's code then tells of a callback, not of the reason: see http_stop_code. */
enum http_stop {
    HTTP_STOP_NONE = 0,       /* we did not */
    HTTP_STOP_CUT,            /* all that was needed of its answer is known */
    HTTP_STOP_STALE,          /* the connection was dead before anything was sent */
    HTTP_STOP_REPLAY,         /* libcurl was about to send the request a second time */
    HTTP_STOP_REFUSED_STREAM, /* likewise, because the server had refused the stream */
    HTTP_STOP_HEAD_TOO_LONG,  /* the head was too long */
    HTTP_STOP_SINK_FAILED,    /* the owner's sink or header function did not take what it was given */
    HTTP_STOP_OTHER_ORIGIN,   /* a redirect led to another origin, and that is not wanted */
};

/* The answer to one leg. Zeroed when the leg begins. */
struct http_response {
    size_t head_bytes;         /* of all lines, those of interim answers included */
    size_t head_in_body_bytes; /* of a head that is in the body too (CURLOPT_HEADER) */
    uint32_t head_lines;
    int status;
    enum http_route route;
    bool in_head;
    bool http_1;         /* HTTP/1.x */
    bool leg_may_follow; /* libcurl may answer it with another leg: a redirect, a challenge */
    bool awaits_refresh; /* 401: ask the owner for new credentials, then do it again */
    bool paused;         /* the sink wants a pause */
};

/* One attempt. Zeroed when it starts. */
struct http_attempt_state {
    struct bide_outcome outcome; /* what the head said */
    int64_t start_ns;
    size_t drained_bytes;
    uint32_t legs; /* requests that libcurl was about to send. None: it cannot have run */
    CURLcode end_code;
    enum http_stop stop;
    bool connection_is_new; /* made for this request; looked at only for unsafe ones */
    bool bodyless_method;   /* a method that normally has no body */
    bool is_get;            /* GET: a broken body may be resumed */
    bool is_head;           /* HEAD */
    bool left_origin;       /* a redirect led to another origin */
    bool reported;
    bool from_response; /* ... by its answer */
    bool complete;      /* libcurl saw it to its end */
};

struct http_attempt {
    struct http_call *call;
    CURL *easy;
    struct http_inject *inject; /* NULL: no header list of ours */
    struct http_buffer head;    /* of a failure, for the owner's header function */
    struct http_buffer body;    /* held or kept */
    struct bide_verdict start;  /* the verdict that began it: its number, its deadlines */
    size_t uploaded_bytes;      /* of the request's body, so far */
    bool upload_complete;       /* its reader said so */
    bool fresh_connect_set;     /* FRESH_CONNECT is set */
    bool forbid_reuse_set;      /* FORBID_REUSE is set */
    struct http_attempt_state state;
    struct http_response response;
};

/* Before the first attempt: takes the handle's options over. After the last: gives them back as the options say. */
CURLcode http_attempt_install(struct http_attempt *attempt);
void http_attempt_uninstall(struct http_attempt *attempt);

/* Prepares attempt v->attempt. CURLE_OK: have libcurl perform it; else it cannot be made, and the engine was told. */
CURLcode http_attempt_start(struct http_attempt *attempt, const struct bide_verdict *v, int64_t now_ns);

/* The same attempt once more, after new credentials. */
CURLcode http_attempt_restart(struct http_attempt *attempt, int64_t now_ns);

/* libcurl is done with it. Judges it, if it was not judged before; the verdict is in the transfer. Not judged
 * afterwards: it wants new credentials, so the owner is to be asked, and then _again or _settle follows. */
void http_attempt_end(struct http_attempt *attempt, CURLcode code, int64_t now_ns);

/* No new credentials: the 401 that was held back is judged as it is. */
void http_attempt_end_with_401(struct http_attempt *attempt, int64_t now_ns);

/* We ended it ourselves, because another attempt won. */
void http_attempt_abandon(struct http_attempt *attempt, int64_t now_ns);

/* Frees what the exchange holds. Not the handle. */
void http_attempt_free(struct http_attempt *attempt);

/* ---- answer.c ---- */

/* A line of a head, a piece of a body. False: end the transfer. */
bool http_response_header_line(struct http_attempt *attempt, char *line, size_t length);
bool http_response_body_data(struct http_attempt *attempt, const char *at, size_t length);

/* The head says all there is to know; or the body that was held back does, if it is whole. False: end the transfer. */
bool http_response_decide_by_head(struct http_attempt *attempt);
bool http_response_decide_by_body(struct http_attempt *attempt, bool whole);

/* Tells the engine how the attempt ended. Once. */
void http_report_outcome(struct http_attempt *attempt, const struct bide_outcome *outcome, int64_t now_ns);

/* Does the answer of another attempt go to the sink? */
bool http_attempt_has_lost(const struct http_attempt *attempt);

/* ---- evidence.c ---- */

/* What the answer says, by status, rules, hook and header fields. */
struct bide_outcome http_outcome_from_head(struct http_attempt *attempt);

/* The same, with the body that was held. */
struct bide_outcome http_outcome_from_body(struct http_attempt *attempt, bool whole);

/* What a transfer without an answer that counts means. */
struct bide_outcome http_outcome_from_failure(struct http_attempt *attempt, CURLcode code);

/* libcurl's code, or a better one if we ended the transfer. */
CURLcode http_stop_code(enum http_stop stop, CURLcode code);

/* Is there something to read in the body before it can be judged? */
bool http_outcome_needs_body(const struct http_attempt *attempt);

/* One header field of the last response; absent: at NULL. */
struct bide_text http_header_field(CURL *easy, const char *name);

/* ---- inject.c ---- */

/* Header fields of our own before the first attempt, and for each. */
CURLcode http_inject_install(struct http_attempt *attempt);
CURLcode http_inject_prepare_attempt(struct http_attempt *attempt, int64_t now_ns);
void http_inject_uninstall(struct http_attempt *attempt);
/* The first leg is about to be sent; then another one (redirect, authentication). False: it must not be. */
void http_inject_note_first_leg(struct http_attempt *attempt);
bool http_inject_check_leg(struct http_attempt *attempt);

/* Lines without CR, LF and of sane length? */
enum bide_err http_headers_check(const struct curl_slist *list, struct bide_problem *problem);

/* ---- body.c ---- */

CURLcode http_body_install(struct http_attempt *attempt);
void http_body_uninstall(struct http_attempt *attempt);
bool http_body_rewind(struct http_attempt *attempt);      /* before an attempt; false: cannot be sent again */
bool http_body_sent(const struct http_attempt *attempt);  /* all of it, as far as is known */
bool http_body_spent(const struct http_attempt *attempt); /* after one: it cannot be sent another time */

/* ---- resume.c ---- */

bool http_resume_prepare(struct http_attempt *attempt); /* after a break: notes what to ask for */
/* The head of an answer to a resumed request: does its body continue what the sink has? */
bool http_resume_accept_part(struct http_attempt *attempt);
/* At the end: has the sink all of what was put together? */
bool http_resume_is_complete(const struct http_call *call);

#endif
