/* live_multi.h - for live tests: a call in a multi that remembers how it ended.
 *
 *     struct live_call call;
 *     live_call_init(&call, live_url(&server, "/flaky"), &policy);     a handle, options with a sink, a result
 *     live_call_start(&call, multi, target);
 *     live_run(multi);
 *     ... call.done, call.code, call.verdict, call.result, call.sink ...
 *     live_call_free(&call); */
#ifndef LIVE_MULTI_H
#define LIVE_MULTI_H

#include "live_chaos.h"

#include <bide/multi.h>

struct live_multi_call {
    struct bide_multi *multi;
    struct bide_target *target;
    CURL *easy;
    struct bide_curl_options options; /* with the policy and the sink; change it before the start */
    struct bide_curl_result result;
    struct live_sink sink;
    struct bide_multi_call *active;                    /* NULL before the start and once it is done */
    void (*after_done)(struct live_multi_call *other); /* called from done, with `other` */
    struct live_multi_call *other;

    unsigned done; /* times; what follows is of the last */
    CURLcode code;
    struct bide_verdict verdict;
    bool by_copy;              /* a copy of the handle made the last attempt */
    long last_status;          /* what that one says is its status */
    enum bide_err start_error; /* what the start returned */
};

void live_multi_call_init(struct live_multi_call *call, const char *url, const struct bide_policy *policy);
void live_multi_call_start(struct live_multi_call *call, struct bide_multi *multi, struct bide_target *target);
void live_multi_call_restart(struct live_multi_call *call); /* start it as before: for `then` */
void live_multi_call_free(struct live_multi_call *call);

/* Makes it a POST of this text, sent as a body of memory. */
void live_multi_call_post(struct live_multi_call *call, const char *text);

/* Polls until all calls are done. False: some were not, after a minute. */
bool live_multi_run(struct bide_multi *multi);

/* Polls until it is so. False: it was not, after a minute. */
bool live_multi_run_until(struct bide_multi *multi, bool (*condition)(void *context), void *context);

struct bide_multi *live_multi_new(void);

/* A port of this host where connecting takes for ever; until it is closed. */
struct live_blackhole {
    int fd[8];
    size_t count;
    char url[64];
};

void live_blackhole_open(struct live_blackhole *port);
void live_blackhole_close(struct live_blackhole *port);

#endif
