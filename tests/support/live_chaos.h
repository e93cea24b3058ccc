/* live_chaos.h - for live tests: a chaos server in a thread, the requests it saw, and a sink that stores the body.
 *
 *     struct live_server server;
 *     live_server_start(&server, "/flaky 503 | 200");
 *     ... live_server_url(&server, "/flaky") ...
 *     live_server_stop(&server);             now server.seen[0 ... server.count - 1] are its requests
 *     live_server_free(&server); */
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

void live_server_start(struct live_server *server, const char *script);    /* an invalid script fails the test */
const char *live_server_url(struct live_server *server, const char *path); /* valid until the next call */
void live_server_stop(struct live_server *server);
void live_server_free(struct live_server *server); /* stops it as well */

/* Returns the number of requests for this path. */
size_t live_server_requests(const struct live_server *server, const char *path);

/* A sink for bide_curl_options.write and .rewind, with itself as write_data. The zero value is empty. */
struct live_sink {
    char *at; /* NUL-terminated */
    size_t length;
    size_t pieces;  /* calls of live_sink_write */
    size_t rewinds; /* calls of live_sink_rewind */
};

size_t live_sink_write(char *at, size_t size, size_t count, void *sink);
bool live_sink_rewind(void *sink);
void live_sink_free(struct live_sink *sink);

/* Returns a policy for tests: the given attempts, a backoff of 1 to 2 ms, no jitter, long timeouts. */
struct bide_policy live_policy(uint32_t attempts);

/* Initialize a target that refuses nothing, or one with the preset `service`. */
void live_target_without_gates(struct bide_target *target);
void live_target_service(struct bide_target *target);

#endif
