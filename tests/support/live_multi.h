/* live_multi.h - for live tests: a call in a multi that stores how it ended.
 *
 *     struct live_multi_call call;
 *     live_multi_call_init(&call, live_server_url(&server, "/flaky"), &policy);     a handle, a sink, a result
 *     live_multi_call_start(&call, multi, target);
 *     live_multi_run(multi);
 *     ... call.done, call.code, call.verdict, call.result, call.sink ...
 *     live_multi_call_free(&call); */
#ifndef LIVE_MULTI_H
#define LIVE_MULTI_H

#include "live_chaos.h"

#include <bide/multi.h>

struct live_multi_call {
    struct bide_multi *multi;
    struct bide_target *target;
    CURL *easy;
    struct bide_curl_options options; /* with the policy and the sink; may be changed before the start */
    struct bide_curl_result result;
    struct live_sink sink;
    struct bide_multi_call *active;                    /* NULL before the start and after done */
    void (*after_done)(struct live_multi_call *other); /* called in done, with `other` */
    struct live_multi_call *other;

    unsigned done; /* calls of done; the fields below describe the last */
    CURLcode code;
    struct bide_verdict verdict;
    bool by_copy;              /* a copy of the handle made the last attempt */
    long last_status;          /* the HTTP status of the handle that made the last attempt */
    enum bide_err start_error; /* the result of bide_multi_start */
};

void live_multi_call_init(struct live_multi_call *call, const char *url, const struct bide_policy *policy);
void live_multi_call_start(struct live_multi_call *call, struct bide_multi *multi, struct bide_target *target);
void live_multi_call_restart(struct live_multi_call *call); /* with the same arguments; for `after_done` */
void live_multi_call_free(struct live_multi_call *call);

/* Makes the request a POST with this text as its body, from memory. */
void live_multi_call_post(struct live_multi_call *call, const char *text);

/* Polls until all calls are done. Returns false if some are not after a minute. */
bool live_multi_run(struct bide_multi *multi);

/* Polls until the condition is true. Returns false if it is not after a minute. */
bool live_multi_run_until(struct bide_multi *multi, bool (*condition)(void *context), void *context);

struct bide_multi *live_multi_new(void);

/* A port of this host on which connecting never completes, until it is closed. */
struct live_blackhole {
    int fd[8];
    size_t count;
    char url[64];
};

void live_blackhole_open(struct live_blackhole *port);
void live_blackhole_close(struct live_blackhole *port);

#endif
