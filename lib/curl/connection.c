/* connection.c - can a kept-alive connection still carry a request? Asked before the first byte is sent.
 *
 * A server may close an idle connection, or send a response that no request asked for (408, RFC 9110 section 15.5.9).
 * On such a connection a request would be lost, or would be answered by bytes that arrived before it was sent.
 * libcurl's own check of a pooled connection differs by version:
 *
 *     before 8.0     notices a close, but not waiting bytes. CURLINFO_ACTIVESOCKET is the socket of the handle's last
 *                    transfer, and is unknown while a transfer runs: bide checks it before the transfer and compares
 *                    local ports in PREREQFUNCTION. Known weakness: handles of a multi, and handles that alternate
 *                    between connections, are not checked for waiting bytes
 *     8.0 to 8.21    notices both, right before the request
 *     since 8.22     checks a connection at most once a second and relies on its replay, which bide stops. The socket
 *                    is known in PREREQFUNCTION: bide checks it there
 *
 * After close_notify and FIN a TLS connection still has a record to read, so a close is detected by poll, not by a read
 * of 0 bytes. Waiting bytes count only if they can be HTTP/1: an HTTP/2 frame (its first byte is 0, because libcurl
 * accepts frames of up to 16 KiB) and a TLS record are legitimate. The rest of a cleartext HTTP/2 frame that libcurl
 * has read in part is taken for HTTP/1; that costs a connection, no request. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* POLLRDHUP */
#endif
#include "attempt.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#define LIBCURL_8_0  0x080000u
#define LIBCURL_8_12 0x080c00u
#define LIBCURL_8_22 0x081600u

#if LIBCURL_VERSION_NUM < 0x080600
#define CURLINFO_QUEUE_TIME_T (CURLINFO)(CURLINFO_OFF_T + 65) /* the library may be newer than its header */
#endif

/* The version of the library that is loaded. Threads that race to store it store the same number. */
static unsigned libcurl_version_number(void)
{
    static unsigned stored;
    unsigned version = __atomic_load_n(&stored, __ATOMIC_RELAXED);
    if (version == 0) {
        version = curl_version_info(CURLVERSION_NOW)->version_num;
        __atomic_store_n(&stored, version, __ATOMIC_RELAXED);
    }
    return version;
}

static bool easy_socket(CURL *easy, curl_socket_t *fd)
{
    return curl_easy_getinfo(easy, CURLINFO_ACTIVESOCKET, fd) == CURLE_OK && *fd != CURL_SOCKET_BAD;
}

static bool socket_is_closed(curl_socket_t fd)
{
    struct pollfd p = {.fd = fd, .events = POLLRDHUP};
    return poll(&p, 1, 0) > 0;
}

static bool is_tls_record(const unsigned char *at)
{
    return at[0] >= 0x14 && at[0] <= 0x18 && at[1] == 3; /* content type, major version: RFC 8446 section 5.1 */
}

/* Returns true if bytes wait that are not part of HTTP/2 or TLS. */
static bool socket_has_response(curl_socket_t fd)
{
    unsigned char at[2] = {0};
    ssize_t n = recv(fd, at, sizeof at, MSG_PEEK | MSG_DONTWAIT);
    return n > 0 && at[0] != 0 && !is_tls_record(at);
}

static int socket_local_port(curl_socket_t fd)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
        struct sockaddr_storage room;
    } name = {0};
    socklen_t length = sizeof name;
    if (getsockname(fd, &name.any, &length) != 0)
        return 0;
    if (name.any.sa_family == AF_INET)
        return ntohs(name.v4.sin_port);
    return name.any.sa_family == AF_INET6 ? ntohs(name.v6.sin6_port) : 0;
}

int http_connection_stale_port(CURL *easy)
{
    curl_socket_t fd = CURL_SOCKET_BAD;
    if (libcurl_version_number() >= LIBCURL_8_0 || !easy_socket(easy, &fd) || !socket_has_response(fd))
        return 0;
    return socket_local_port(fd);
}

bool http_connection_is_reused(CURL *easy)
{
    long made = 0;
    return curl_easy_getinfo(easy, CURLINFO_NUM_CONNECTS, &made) == CURLE_OK && made == 0;
}

bool http_connection_is_stale(CURL *easy)
{
    curl_socket_t fd = CURL_SOCKET_BAD;
    if (libcurl_version_number() < LIBCURL_8_22 || !http_connection_is_reused(easy) || !easy_socket(easy, &fd))
        return false;
    return socket_is_closed(fd) || socket_has_response(fd);
}

/* Known weakness: libcurl 8.8 to 8.11 counts the queue, too, but a handle then reports the queue time of its previous
 * transfer until its new transfer has left the queue. */
bool http_connection_counts_queue(void)
{
    return libcurl_version_number() >= LIBCURL_8_12;
}

int64_t http_connection_queue_ns(CURL *easy)
{
    curl_off_t us = 0;
    return curl_easy_getinfo(easy, CURLINFO_QUEUE_TIME_T, &us) == CURLE_OK ? us * BIDE_US : 0;
}
