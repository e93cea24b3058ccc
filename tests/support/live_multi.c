/* live_multi.c - a call in a multi that stores how it ended. */
#include "live_multi.h"

#include <bide/clock.h>

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define GIVE_UP_NS (60 * BIDE_S) /* not reached unless a test fails */

static void die(const char *message)
{
    fprintf(stderr, "live_multi: %s\n", message);
    abort();
}

/* ---- calls ---- */

void live_multi_call_init(struct live_multi_call *call, const char *url, const struct bide_policy *policy)
{
    *call = (struct live_multi_call){.easy = curl_easy_init()};
    if (!call->easy || curl_easy_setopt(call->easy, CURLOPT_URL, url) != CURLE_OK)
        die("cannot make a handle");
    call->options = (struct bide_curl_options){0};
    call->options.no_headers = true; /* the handle is new */
    call->options.policy = policy;
    call->options.write = live_sink_write;
    call->options.write_data = &call->sink;
}

static void on_done(void *context, const struct bide_multi_end *end)
{
    struct live_multi_call *call = context;
    call->done++;
    call->code = end->code;
    call->verdict = end->verdict;
    call->by_copy = end->last_easy != end->easy;
    curl_easy_getinfo(end->last_easy, CURLINFO_RESPONSE_CODE, &call->last_status);
    if (end->easy != call->easy)
        die("done was called with another handle");
    struct bide_multi_call *ended = call->active;
    if (call->after_done)
        call->after_done(call->other);
    if (call->active == ended) /* not started again */
        call->active = NULL;
}

void live_multi_call_restart(struct live_multi_call *call)
{
    struct bide_multi_job job = {.easy = call->easy,
                                 .target = call->target,
                                 .options = &call->options,
                                 .result = &call->result,
                                 .done = on_done,
                                 .context = call};
    unsigned done = call->done;
    struct bide_multi_call *active = NULL;
    call->start_error = bide_multi_start(call->multi, &job, &active, NULL);
    if (call->start_error == BIDE_OK && (active == NULL) != (call->done == done + 1))
        die("the call must be NULL exactly if it is done");
    call->active = active;
}

void live_multi_call_start(struct live_multi_call *call, struct bide_multi *multi, struct bide_target *target)
{
    call->multi = multi;
    call->target = target;
    live_multi_call_restart(call);
}

void live_multi_call_post(struct live_multi_call *call, const char *text)
{
    curl_easy_setopt(call->easy, CURLOPT_POST, 1L);
    call->options.body.kind = BIDE_CURL_BODY_MEMORY;
    call->options.body.at = text;
    call->options.body.length = (int64_t)strlen(text);
}

void live_multi_call_free(struct live_multi_call *call)
{
    curl_easy_cleanup(call->easy);
    live_sink_free(&call->sink);
}

/* ---- polling ---- */

struct bide_multi *live_multi_new(void)
{
    struct bide_multi *multi;
    if (bide_multi_new(&multi) != BIDE_OK)
        die("cannot make a multi");
    return multi;
}

bool live_multi_run_until(struct bide_multi *multi, bool (*condition)(void *context), void *context)
{
    int64_t until_ns = bide_now() + GIVE_UP_NS;
    while (!condition(context) && bide_now() < until_ns)
        bide_multi_poll(multi, bide_now() + 10 * BIDE_MS);
    return condition(context);
}

bool live_multi_run(struct bide_multi *multi)
{
    int64_t until_ns = bide_now() + GIVE_UP_NS;
    while (bide_multi_poll(multi, until_ns) > 0 && bide_now() < until_ns)
        continue;
    return bide_multi_running_get(multi) == 0;
}

/* ---- a port that does not accept ---- */

/* A listener that does not accept drops SYNs once its queue is full. */
void live_blackhole_open(struct live_blackhole *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    *port = (struct live_blackhole){0};
    for (; port->count < sizeof port->fd / sizeof *port->fd; port->count++) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | (port->count > 0 ? SOCK_NONBLOCK : 0), 0);
        port->fd[port->count] = fd;
        if (port->count > 0)
            (void)connect(fd, (struct sockaddr *)&address, size);
        else if (bind(fd, (struct sockaddr *)&address, size) != 0 || listen(fd, 0) != 0 ||
                 getsockname(fd, (struct sockaddr *)&address, &size) != 0)
            die("cannot bind a port");
    }
    snprintf(port->url, sizeof port->url, "http://127.0.0.1:%u/", ntohs(address.sin_port));
}

void live_blackhole_close(struct live_blackhole *port)
{
    while (port->count > 0)
        close(port->fd[--port->count]);
}
