/* live_call.h - for live tests: one call of bide_curl_perform with all that belongs to it.
 *
 *     struct live_call c;
 *     live_call_open(&c, "/flaky 503 | 200", 3);       a server, a handle, 3 attempts, a sink, a target that says yes
 *     c.options. ... =  ... ;
 *     live_perform(&c, "/flaky");                      c.code, c.result, c.sink
 *     live_stop(&c.server);                            c.server.seen
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

/* The handle writes to the sink by itself; the options have none. */
void live_call_without_sink(struct live_call *call);

/* The handle makes a POST (or what CUSTOMREQUEST says) of this text, from memory. */
void live_call_post(struct live_call *call, const char *text);

/* Performs, with what is set; empties the sink before. Returns the code, which is in call->code as well. */
CURLcode live_call_perform(struct live_call *call, const char *path);
CURLcode live_call_perform_url(struct live_call *call, const char *url);

/* How it ended. */
void live_expect(const struct live_call *call, enum bide_action action, enum bide_reason reason, uint32_t attempts);
void live_expect_done(const struct live_call *call, uint32_t attempts); /* with all of its answer */
void live_expect_text(const struct live_sink *sink, const char *text);
void live_expect_pattern(const struct live_sink *sink, size_t length); /* chaos's bytes=N */

/* A whole call to /a: the sink, or without one the handle's own function, gets "fine" from the last attempt, and
 * nothing else. */
void live_expect_last_response_only(const char *script, uint32_t attempts, bool sink);

/* One attempt of the result, from 0. */
void live_expect_attempt(const struct live_call *call, size_t index, CURLcode code, enum bide_kind kind,
                         enum bide_evidence evidence);

/* The requests for one path that the server saw (after live_stop): the n-th of them, from 0; NULL: no more. */
const struct chaos_seen *live_server_request(const struct live_server *server, const char *path, size_t n);

/* A listening socket that nobody serves: to see that nobody comes. */
struct live_trap {
    int fd;
    unsigned port;
    char url[64];
};
void live_trap_open(struct live_trap *trap);
bool live_trap_sprung(const struct live_trap *trap); /* somebody connected */
void live_trap_close(struct live_trap *trap);

/* A port that refuses connections as long as the socket lives: bound, not listening. */
void live_refuser_open(struct live_trap *trap);

#endif
