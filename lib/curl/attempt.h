/* attempt.h - one attempt on one easy handle.
 *
 * An attempt is one or more legs: libcurl follows redirects and answers challenges by itself. Each leg has an answer
 * of its own. Three files make an exchange: exchange.c stands at libcurl's callbacks, answer.c decides what becomes
 * of an answer, evidence.c says what it all means. */
#ifndef HTTP_EXCHANGE_H
#define HTTP_EXCHANGE_H

#include "call.h"

struct http_inject;

/* What becomes of the body. */
enum http_mode {
    HTTP_UNDECIDED = 0, /* the head has not ended, or libcurl may answer it by itself */
    HTTP_PASS,          /* to the sink */
    HTTP_HOLD,          /* held back until it is known what it says */
    HTTP_KEEP,          /* there will be another attempt: kept in case there will not */
    HTTP_DROP,          /* nobody wants it; read on for the connection's sake */
};

/* Why we ended a transfer. libcurl's code then tells of a callback, not of the reason: see http_stop_code. */
enum http_stop {
    HTTP_RAN = 0,  /* we did not */
    HTTP_CUT,      /* all that was needed of its answer is known */
    HTTP_STALE,    /* the connection was dead before anything was sent */
    HTTP_REPLAY,   /* libcurl was about to send the request a second time */
    HTTP_REFUSED,  /* likewise, because the server had refused the stream */
    HTTP_OVERSIZE, /* the head was too long */
    HTTP_UNTAKEN,  /* the owner's sink or header function did not take what it was given */
    HTTP_STRAYED,  /* a redirect led to another origin, and that is not wanted */
};

/* The answer to one leg. Zeroed when the leg begins. */
struct http_answer {
    size_t head_bytes;  /* of all lines, those of interim answers included */
    size_t shown_bytes; /* of a head that is in the body too (CURLOPT_HEADER) */
    uint32_t head_lines;
    int status;
    enum http_mode mode;
    bool in_head;
    bool version_1;     /* HTTP/1.x */
    bool answerable;    /* libcurl may answer it with another leg: a redirect, a challenge */
    bool wants_refresh; /* 401: ask the owner for new credentials, then do it again */
    bool paused;        /* the sink wants a pause */
};

/* One attempt. Zeroed when it starts. */
struct http_run {
    struct bide_outcome outcome; /* what the head said */
    int64_t start_ns;
    size_t drained_bytes;
    uint32_t legs; /* requests that libcurl was about to send. None: it cannot have run */
    CURLcode ended;
    enum http_stop stop;
    bool own_connection; /* made for this request; looked at only for unsafe ones */
    bool bodiless;       /* a method that normally has no body */
    bool get;            /* GET: a broken body may be resumed */
    bool head_only;      /* HEAD */
    bool strayed;        /* a redirect led to another origin */
    bool judged;
    bool answered; /* ... by its answer */
    bool whole;    /* libcurl saw it to its end */
};

struct http_exchange {
    struct http_transfer *transfer;
    CURL *easy;
    struct http_inject *inject; /* NULL: no header list of ours */
    struct http_buffer head;    /* of a failure, for the owner's header function */
    struct http_buffer body;    /* held or kept */
    struct bide_verdict start;  /* the verdict that began it: its number, its deadlines */
    size_t read_bytes;          /* of the request's body, so far */
    bool read_all;              /* its reader said so */
    bool fresh;                 /* FRESH_CONNECT is set */
    bool forbidden;             /* FORBID_REUSE is set */
    struct http_run run;
    struct http_answer answer;
};

/* Before the first attempt: takes the handle's options over. After the last: gives them back as the options say. */
CURLcode http_exchange_own(struct http_exchange *x);
void http_exchange_disown(struct http_exchange *x);

/* Prepares attempt v->attempt. CURLE_OK: have libcurl perform it; else it cannot be made, and the engine was told. */
CURLcode http_exchange_start(struct http_exchange *x, const struct bide_verdict *v, int64_t now_ns);

/* The same attempt once more, after new credentials. */
CURLcode http_exchange_again(struct http_exchange *x, int64_t now_ns);

/* libcurl is done with it. Judges it, if it was not judged before; the verdict is in the transfer. Not judged
 * afterwards: it wants new credentials, so the owner is to be asked, and then _again or _settle follows. */
void http_exchange_end(struct http_exchange *x, CURLcode code, int64_t now_ns);

/* No new credentials: the 401 that was held back is judged as it is. */
void http_exchange_settle(struct http_exchange *x, int64_t now_ns);

/* We ended it ourselves, because another attempt won. */
void http_exchange_abandon(struct http_exchange *x, int64_t now_ns);

/* Frees what the exchange holds. Not the handle. */
void http_exchange_free(struct http_exchange *x);

/* ---- answer.c ---- */

/* A line of a head, a piece of a body. False: end the transfer. */
bool http_answer_line(struct http_exchange *x, char *line, size_t length);
bool http_answer_piece(struct http_exchange *x, const char *at, size_t length);

/* The head says all there is to know; or the body that was held back does, if it is whole. False: end the transfer. */
bool http_answer_decide(struct http_exchange *x);
bool http_answer_decide_held(struct http_exchange *x, bool whole);

/* Tells the engine how the attempt ended. Once. */
void http_answer_judge(struct http_exchange *x, const struct bide_outcome *outcome, int64_t now_ns);

/* Does the answer of another attempt go to the sink? */
bool http_answer_lost(const struct http_exchange *x);

/* ---- evidence.c ---- */

/* What the answer says, by status, rules, hook and header fields. */
struct bide_outcome http_status_outcome(struct http_exchange *x);

/* The same, with the body that was held. */
struct bide_outcome http_body_outcome(struct http_exchange *x, bool whole);

/* What a transfer without an answer that counts means. */
struct bide_outcome http_failure_outcome(struct http_exchange *x, CURLcode code);

/* libcurl's code, or a better one if we ended the transfer. */
CURLcode http_stop_code(enum http_stop stop, CURLcode code);

/* Is there something to read in the body before it can be judged? */
bool http_wants_body(const struct http_exchange *x);

/* One header field of the last response; absent: at NULL. */
struct bide_text http_field(CURL *easy, const char *name);

/* ---- inject.c ---- */

/* Header fields of our own before the first attempt, and for each. */
CURLcode http_inject_own(struct http_exchange *x);
CURLcode http_inject_attempt(struct http_exchange *x, int64_t now_ns);
void http_inject_disown(struct http_exchange *x);
/* The first leg is about to be sent; then another one (redirect, authentication). False: it must not be. */
void http_inject_first_leg(struct http_exchange *x);
bool http_inject_leg(struct http_exchange *x);

/* Lines without CR, LF and of sane length? */
enum bide_err http_headers_check(const struct curl_slist *list, struct bide_problem *problem);

/* ---- body.c ---- */

CURLcode http_body_own(struct http_exchange *x);
void http_body_disown(struct http_exchange *x);
bool http_body_rewind(struct http_exchange *x);      /* before an attempt; false: cannot be sent again */
bool http_body_sent(const struct http_exchange *x);  /* all of it, as far as is known */
bool http_body_spent(const struct http_exchange *x); /* after one: it cannot be sent another time */

/* ---- resume.c ---- */

bool http_resume_possible(struct http_exchange *x); /* after a break: notes what to ask for */
/* The head of an answer to a resumed request: does its body continue what the sink has? */
bool http_resume_fits(struct http_exchange *x);
/* At the end: has the sink all of what was put together? */
bool http_resume_is_whole(const struct http_transfer *t);

#endif
