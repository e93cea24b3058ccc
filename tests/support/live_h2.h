/* live_h2.h - for live tests: a raw HTTP/2 server in clear text, to be met with prior knowledge or by an upgrade, that
 * does to each request what it was told.
 *
 *     static const enum live_h2_deed deeds[] = {LIVE_H2_REFUSE, LIVE_H2_OK};
 *     struct live_h2 *server = live_h2_new(deeds, 2);     the first request is refused, all later ones are answered
 *
 * Frames are written by hand and header blocks not even read; so it can say what no real server can be made to say. A
 * deed is done when its request is complete, in that order over all connections. A client that wants HTTP/1.1
 * is answered 200 in kind. */
#ifndef LIVE_H2_H
#define LIVE_H2_H

#include <stddef.h>
#include <stdint.h>

#define LIVE_H2_SEEN_MAX 256u

enum live_h2_action {
    LIVE_H2_OK = 0,            /* 200 "ok\n" */
    LIVE_H2_503,               /* 503 "busy\n" */
    LIVE_H2_REFUSE,            /* RST_STREAM with REFUSED_STREAM: it was not processed */
    LIVE_H2_GOAWAY,            /* GOAWAY whose last stream is one below it: likewise */
    LIVE_H2_CANCEL,            /* RST_STREAM with CANCEL */
    LIVE_H2_INTERNAL_ERROR,    /* RST_STREAM with INTERNAL_ERROR */
    LIVE_H2_HTTP_1_1_REQUIRED, /* RST_STREAM with HTTP_1_1_REQUIRED */
    LIVE_H2_HALF,              /* 200, half of the body it announced, and RST_STREAM with INTERNAL_ERROR */
    LIVE_H2_CLOSE,             /* the whole connection is closed */
    LIVE_H2_SILENCE,           /* nothing, ever */
};

/* One complete request. */
struct live_h2_seen {
    unsigned connection; /* from 1 */
    uint32_t stream;     /* 0: HTTP/1.1 */
    size_t body_bytes;
    enum live_h2_action action;
};

struct live_h2;

struct live_h2 *live_h2_new(const enum live_h2_action *actions,
                            size_t count); /* the last one holds for all that follow */
void live_h2_free(struct live_h2 *server); /* accepts NULL */
const char *live_h2_url(struct live_h2 *server);

/* Requests so far, from any thread, and one of them, from 1. */
size_t live_h2_requests(struct live_h2 *server);
struct live_h2_seen live_h2_seen(struct live_h2 *server, size_t n);

#endif
