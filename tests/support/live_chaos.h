/* live_chaos.h - for live tests: a chaos server in a thread, what it saw, and a sink that remembers.
 *
 *     struct live_server server;
 *     live_serve(&server, "/flaky 503 | 200");
 *     ... live_url(&server, "/flaky") ...
 *     live_stop(&server);                    from now on server.seen[0 ... server.count - 1] is what it saw
 *     live_free(&server); */
#ifndef LIVE_CHAOS_H
#define LIVE_CHAOS_H

#include <pthread.h>

#include <bide/curl.h>

#include "chaos/chaos.h"

struct live_server {
    struct chaos *chaos;
    pthread_t thread;
    const struct chaos_seen *seen;
    size_t count;
    char url[256];
    bool running;
};

void live_server_start(struct live_server *server, const char *script);    /* a bad script fails the test */
const char *live_server_url(struct live_server *server, const char *path); /* until the next call */
void live_server_stop(struct live_server *server);
void live_server_free(struct live_server *server); /* stops it, too */

/* How many of the requests seen were for this path. */
size_t live_server_requests(const struct live_server *server, const char *path);

/* A sink: as bide_curl_options.write and .rewind, with itself as write_data. Zeroed: empty. */
struct live_sink {
    char *at; /* ends in a NUL */
    size_t length;
    size_t pieces;  /* calls of live_write */
    size_t rewinds; /* calls of live_rewind */
};

size_t live_sink_write(char *at, size_t size, size_t count, void *sink);
bool live_sink_rewind(void *sink);
void live_sink_free(struct live_sink *sink);

/* A policy for tests: so many attempts, a backoff of 1 to 2 ms, no jitter; deadlines far away. */
struct bide_policy live_policy(uint32_t attempts);

/* A target that refuses nothing, or the preset `service` as it is. */
void live_target_without_gates(struct bide_target *target);
void live_target_service(struct bide_target *target);

#endif
