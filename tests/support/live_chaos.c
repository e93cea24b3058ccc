/* live_chaos.c - a chaos server in a thread, and a sink that stores the body. */
#include "live_chaos.h"

#include <bide/clock.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void die(const char *message)
{
    fprintf(stderr, "live_chaos: %s\n", message);
    abort();
}

static void *serve(void *context)
{
    struct live_server *server = context;
    if (chaos_run(server->chaos) != BIDE_OK)
        die("the server failed");
    return NULL;
}

void live_server_start(struct live_server *server, const char *script)
{
    struct chaos_config config = {.script = script, .seed = 1, .journal_fd = -1, .keep = true};
    struct chaos_error error;
    *server = (struct live_server){0};
    if (chaos_new(&server->chaos, &config, &error) != BIDE_OK)
        die(error.text);
    if (pthread_create(&server->thread, NULL, serve, server) != 0)
        die("cannot start a thread");
    server->running = true;
}

const char *live_server_url(struct live_server *server, const char *path)
{
    snprintf(server->url, sizeof server->url, "http://127.0.0.1:%u%s", chaos_port(server->chaos), path);
    return server->url;
}

void live_server_stop(struct live_server *server)
{
    if (!server->running)
        return;
    chaos_stop(server->chaos);
    pthread_join(server->thread, NULL);
    server->running = false;
    server->seen = chaos_seen(server->chaos, &server->count);
}

void live_server_free(struct live_server *server)
{
    live_server_stop(server);
    chaos_free(server->chaos);
    server->chaos = NULL;
}

size_t live_server_requests(const struct live_server *server, const char *path)
{
    size_t n = 0;
    for (size_t i = 0; i < server->count; i++)
        n += strcmp(server->seen[i].path, path) == 0;
    return n;
}

/* ---- the sink ---- */

size_t live_sink_write(char *at, size_t size, size_t count, void *context)
{
    struct live_sink *sink = context;
    size_t length = size * count;
    sink->at = realloc(sink->at, sink->length + length + 1);
    if (!sink->at)
        die("out of memory");
    memcpy(sink->at + sink->length, at, length);
    sink->length += length;
    sink->at[sink->length] = '\0';
    sink->pieces++;
    return length;
}

bool live_sink_rewind(void *context)
{
    struct live_sink *sink = context;
    sink->length = 0;
    sink->rewinds++;
    return true;
}

void live_sink_free(struct live_sink *sink)
{
    free(sink->at);
    *sink = (struct live_sink){0};
}

/* ---- policies and targets ---- */

struct bide_policy live_policy(uint32_t attempts)
{
    struct bide_policy policy;
    bide_policy_init(&policy, BIDE_PRESET_SERVICE);
    policy.attempts_max = attempts;
    policy.base_ns = BIDE_MS;
    policy.cap_ns = 2 * BIDE_MS;
    policy.jitter = BIDE_JITTER_NONE;
    policy.attempt_timeout_ns = 60 * BIDE_S;
    policy.connect_timeout_ns = 60 * BIDE_S;
    policy.call_timeout_ns = 100 * BIDE_S;
    return policy;
}

void live_target_without_gates(struct bide_target *target)
{
    struct bide_target_config config;
    bide_target_config_init(&config, BIDE_PRESET_SERVICE);
    config.breaker.kind = BIDE_BREAKER_OFF;
    config.budget.kind = BIDE_BUDGET_NONE;
    config.hold_off_max_ns = 0;
    bide_target_init(target, &config, bide_now(), NULL);
}

void live_target_service(struct bide_target *target)
{
    struct bide_target_config config;
    bide_target_config_init(&config, BIDE_PRESET_SERVICE);
    bide_target_init(target, &config, bide_now(), NULL);
}
