/* live_h2.h - for live tests: a raw cleartext HTTP/2 server, reached with prior knowledge or by an upgrade, that
 * performs a given action for each request.
 *
 *     static const enum live_h2_action actions[] = {LIVE_H2_REFUSE, LIVE_H2_OK};
 *     struct live_h2 *server = live_h2_new(actions, 2);   the first request is refused, all later requests succeed
 *
 * Frames are written by hand and header blocks are not parsed, so it can send what no real server can be made to send.
 * An action is performed when its request is complete, in order over all connections. A client that uses HTTP/1.1 gets
 * a 200 in HTTP/1.1. */
#ifndef LIVE_H2_H
#define LIVE_H2_H

#include <stddef.h>
#include <stdint.h>

#define LIVE_H2_SEEN_MAX 256u

enum live_h2_action {
    LIVE_H2_OK = 0,            /* 200 "ok\n" */
    LIVE_H2_503,               /* 503 "busy\n" */
    LIVE_H2_REFUSE,            /* RST_STREAM with REFUSED_STREAM: not processed */
    LIVE_H2_GOAWAY,            /* GOAWAY whose last stream is below the request's: not processed */
    LIVE_H2_GOAWAY_AND_CLOSE,  /* GOAWAY whose last stream is the request's, which may have run; then closes */
    LIVE_H2_CANCEL,            /* RST_STREAM with CANCEL */
    LIVE_H2_INTERNAL_ERROR,    /* RST_STREAM with INTERNAL_ERROR */
    LIVE_H2_HTTP_1_1_REQUIRED, /* RST_STREAM with HTTP_1_1_REQUIRED */
    LIVE_H2_HALF,              /* 200, half of the announced body, and RST_STREAM with INTERNAL_ERROR */
    LIVE_H2_CLOSE,             /* closes the connection */
    LIVE_H2_SILENCE,           /* no response */
};

/* One complete request. */
struct live_h2_seen {
    unsigned connection; /* from 1 */
    uint32_t stream;     /* 0: HTTP/1.1 */
    size_t body_bytes;
    enum live_h2_action action;
};

struct live_h2;

struct live_h2 *live_h2_new(const enum live_h2_action *actions, size_t count); /* the last action is repeated */
void live_h2_free(struct live_h2 *server);                                     /* accepts NULL */
const char *live_h2_url(struct live_h2 *server);

/* Return the number of requests so far (from any thread), and one of them, from 1. */
size_t live_h2_requests(struct live_h2 *server);
struct live_h2_seen live_h2_seen(struct live_h2 *server, size_t n);

#endif
