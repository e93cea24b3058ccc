/* live_proxy.h - for live tests: an HTTP proxy that makes tunnels (CONNECT), or fails in a given way.
 *
 *     static const enum live_proxy_action actions[] = {LIVE_PROXY_503, LIVE_PROXY_TUNNEL};
 *     struct live_proxy *proxy = live_proxy_new(actions, 2);   the first CONNECT fails, all later ones succeed
 *     curl_easy_setopt(easy, CURLOPT_PROXY, live_proxy_url(proxy));
 *     curl_easy_setopt(easy, CURLOPT_HTTPPROXYTUNNEL, 1L);
 *
 * A tunnel always leads to this machine, whatever host is requested. */
#ifndef LIVE_PROXY_H
#define LIVE_PROXY_H

#include <stddef.h>

enum live_proxy_action {
    LIVE_PROXY_TUNNEL = 0, /* succeeds */
    LIVE_PROXY_407,        /* requires credentials */
    LIVE_PROXY_403,        /* forbids the tunnel */
    LIVE_PROXY_502,
    LIVE_PROXY_503,
    LIVE_PROXY_503_WAIT, /* with Retry-After: 1 */
    LIVE_PROXY_429_WAIT, /* with retry-after-ms: 300 */
    LIVE_PROXY_503_STOP, /* with Bide-Retry: ?0 */
    LIVE_PROXY_CLOSE,    /* reads the CONNECT and closes */
    LIVE_PROXY_SILENCE,  /* reads the CONNECT and does not respond */
    LIVE_PROXY_CUT,      /* makes the tunnel, and cuts it when the server sends the first byte */
};

struct live_proxy;

struct live_proxy *live_proxy_new(const enum live_proxy_action *actions, size_t count); /* the last one repeats */
void live_proxy_free(struct live_proxy *proxy);                                         /* accepts NULL */
const char *live_proxy_url(struct live_proxy *proxy);
size_t live_proxy_requests(struct live_proxy *proxy); /* CONNECTs so far */

#endif
