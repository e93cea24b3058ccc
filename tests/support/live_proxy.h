/* live_proxy.h - for live tests: an HTTP proxy that makes tunnels (CONNECT), or fails to, as it was told.
 *
 *     static const enum live_proxy_deed deeds[] = {LIVE_PROXY_503, LIVE_PROXY_TUNNEL};
 *     struct live_proxy *proxy = live_proxy_new(deeds, 2);     the first CONNECT fails, all later ones work
 *     curl_easy_setopt(easy, CURLOPT_PROXY, live_proxy_url(proxy));
 *     curl_easy_setopt(easy, CURLOPT_HTTPPROXYTUNNEL, 1L);
 *
 * Whatever host a tunnel is for, it leads to that port of this machine. */
#ifndef LIVE_PROXY_H
#define LIVE_PROXY_H

#include <stddef.h>

enum live_proxy_action {
    LIVE_PROXY_TUNNEL = 0, /* as a proxy should */
    LIVE_PROXY_407,        /* asks for credentials */
    LIVE_PROXY_403,        /* forbids it */
    LIVE_PROXY_502,
    LIVE_PROXY_503,
    LIVE_PROXY_CLOSE,   /* reads the CONNECT, and closes */
    LIVE_PROXY_SILENCE, /* reads the CONNECT, and says nothing */
    LIVE_PROXY_CUT,     /* makes the tunnel, and cuts it when the first byte comes back through it */
};

struct live_proxy;

struct live_proxy *live_proxy_new(const enum live_proxy_action *actions, size_t count); /* the last holds on */
void live_proxy_free(struct live_proxy *proxy);                                         /* accepts NULL */
const char *live_proxy_url(struct live_proxy *proxy);
size_t live_proxy_requests(struct live_proxy *proxy); /* CONNECTs so far */

#endif
