/* live_call.h - for live tests: one call of bide_curl_perform with everything it needs.
 *
 *     struct live_call c;
 *     live_call_open(&c, "/flaky 503 | 200", 3);       a server, a handle, 3 attempts, a sink, a target without gates
 *     c.options. ... =  ... ;
 *     live_call_perform(&c, "/flaky");                 c.code, c.result, c.sink
 *     live_server_stop(&c.server);                     c.server.seen
 *     live_call_close(&c); */
#ifndef LIVE_CALL_H
#define LIVE_CALL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "live_chaos.h"

#include <cmocka.h>

struct live_call {
    struct live_server server;
    struct bide_policy policy;
    struct bide_target target;
    struct bide_curl_options options;
    struct bide_curl_result result;
    struct live_sink sink;
    CURL *easy;
    CURLcode code;
};

void live_call_open(struct live_call *call, const char *script, uint32_t attempts);
void live_call_close(struct live_call *call);

/* The handle's own write function writes to the sink; the options name none. */
void live_call_without_sink(struct live_call *call);

/* Makes the request a POST (or the method of CUSTOMREQUEST) with this text as its body, from memory. */
void live_call_post(struct live_call *call, const char *text);

/* Empties the sink and performs the call. Returns the code, which is in call->code as well. */
CURLcode live_call_perform(struct live_call *call, const char *path);
CURLcode live_call_perform_url(struct live_call *call, const char *url);

/* Check how the call ended. */
void live_expect(const struct live_call *call, enum bide_action action, enum bide_reason reason, uint32_t attempts);
void live_expect_done(const struct live_call *call, uint32_t attempts); /* with its complete response */
void live_expect_text(const struct live_sink *sink, const char *text);
void live_expect_pattern(const struct live_sink *sink, size_t length); /* the body of chaos's bytes=N */

/* Performs a call to /a and checks that the sink (or, without one, the handle's write function) gets "fine" from the
 * last attempt and nothing else. */
void live_expect_last_response_only(const char *script, uint32_t attempts, bool sink);

/* Checks one attempt of the result, from 0. */
void live_expect_attempt(const struct live_call *call, size_t index, CURLcode code, enum bide_kind kind,
                         enum bide_evidence evidence);

/* Returns the n-th request for a path that the server saw, from 0 (after live_server_stop); NULL if there are fewer. */
const struct chaos_seen *live_server_request(const struct live_server *server, const char *path, size_t n);

/* A listening socket without a server, to check that no connection is made. */
struct live_trap {
    int fd;
    unsigned port;
    char url[64];
};
void live_trap_open(struct live_trap *trap);
bool live_trap_sprung(const struct live_trap *trap); /* true if a connection was made */
void live_trap_close(struct live_trap *trap);

/* Binds a port without listening: it refuses connections as long as the socket exists. */
void live_refuser_open(struct live_trap *trap);

#endif
