/* live_proxy.c - an HTTP proxy that makes tunnels, or fails to. */
#include "live_proxy.h"

#include "live_tcp.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ACTIONS_MAX 16u

struct live_proxy {
    struct live_tcp *tcp;
    enum live_proxy_action actions[ACTIONS_MAX];
    size_t action_count;
    atomic_size_t count;
    char url[64];
};

/* "CONNECT host:port HTTP/1.1" */
static void tunnel(int client, const char *head, bool cut)
{
    static const char established[] = "HTTP/1.1 200 Connection established\r\n\r\n";
    const char *colon = strchr(head, ':');
    int server = colon ? live_tcp_connect((uint16_t)strtoul(colon + 1, NULL, 10)) : -1;
    if (server < 0)
        return;
    if (live_tcp_write(client, established, sizeof established - 1))
        live_tcp_relay(client, server, cut);
    close(server);
}

static void send_status(int client, const char *status, const char *fields)
{
    char text[256];
    int length = snprintf(text, sizeof text, "HTTP/1.1 %s\r\n%sContent-Length: 6\r\n\r\nproxy\n", status, fields);
    live_tcp_write(client, text, (size_t)length);
    live_tcp_read(client, text, 1); /* until the client closes */
}

static void serve(void *context, int fd, unsigned number)
{
    struct live_proxy *proxy = context;
    char head[8192];
    (void)number;
    if (!live_tcp_read_head(fd, head, sizeof head) || strncmp(head, "CONNECT ", 8) != 0)
        return;
    size_t n = atomic_fetch_add(&proxy->count, 1);
    switch (proxy->actions[n < proxy->action_count ? n : proxy->action_count - 1]) {
    case LIVE_PROXY_TUNNEL: tunnel(fd, head, false); break;
    case LIVE_PROXY_CUT: tunnel(fd, head, true); break;
    case LIVE_PROXY_407:
        send_status(fd, "407 Proxy Authentication Required",
                    "Proxy-Authenticate: Basic realm=x\r\nConnection: close\r\n");
        break;
    case LIVE_PROXY_403: send_status(fd, "403 Forbidden", ""); break;
    case LIVE_PROXY_502: send_status(fd, "502 Bad Gateway", ""); break;
    case LIVE_PROXY_503: send_status(fd, "503 Service Unavailable", ""); break;
    case LIVE_PROXY_503_WAIT: send_status(fd, "503 Service Unavailable", "Retry-After: 1\r\n"); break;
    case LIVE_PROXY_429_WAIT: send_status(fd, "429 Too Many Requests", "retry-after-ms: 300\r\n"); break;
    case LIVE_PROXY_503_STOP: send_status(fd, "503 Service Unavailable", "Bide-Retry: ?0\r\n"); break;
    case LIVE_PROXY_CLOSE: break;
    case LIVE_PROXY_SILENCE: live_tcp_read(fd, head, 1); break; /* until the client closes */
    }
}

struct live_proxy *live_proxy_new(const enum live_proxy_action *actions, size_t count)
{
    struct live_proxy *proxy = calloc(1, sizeof *proxy);
    if (!proxy || count == 0 || count > ACTIONS_MAX)
        abort();
    memcpy(proxy->actions, actions, count * sizeof *actions);
    proxy->action_count = count;
    proxy->tcp = live_tcp_new(serve, proxy);
    snprintf(proxy->url, sizeof proxy->url, "http://127.0.0.1:%u", live_tcp_port(proxy->tcp));
    return proxy;
}

void live_proxy_free(struct live_proxy *proxy)
{
    if (!proxy)
        return;
    live_tcp_free(proxy->tcp);
    free(proxy);
}

const char *live_proxy_url(struct live_proxy *proxy)
{
    return proxy->url;
}

size_t live_proxy_requests(struct live_proxy *proxy)
{
    return atomic_load(&proxy->count);
}
