/* connection.c - can a kept-alive connection still carry a request? Asked before the first byte is sent.
 *
 * A server may close an idle connection, or send a response that no request asked for (408, RFC 9110 section 15.5.9).
 * On such a connection a request would be lost, or would be answered by bytes that arrived before it was sent.
 * libcurl's own check of a pooled connection is incomplete, and differs by version:
 *
 *     before 8.0     notices a close, but neither waiting bytes nor close_notify without FIN
 *     8.0 to 8.21    notices both over HTTP/1, but not every close of an HTTP/2 connection over TLS
 *     since 8.22     checks a connection at most once a second and relies on its replay, which bide stops
 *
 * So bide checks the socket, too. Of an easy handle it is that of the last transfer, checked before the next one: in
 * PREREQFUNCTION libcurl may already have read close_notify, and reports no HTTP version. An adopted handle keeps the
 * socket as long as all its transfers, bide's and others, use the same connection. Other sockets are checked in
 * PREREQFUNCTION: since 8.22 libcurl shows them there (CURLINFO_ACTIVESOCKET); before that a multi remembers the
 * sockets of all connections by their ends (http_sockets_note). libcurl searches all its connections for
 * CURLINFO_ACTIVESOCKET, which takes longer than all else that bide does for a call, so a known connection is not noted
 * again. A remembered descriptor may meanwhile be closed, or be another socket: if something waits there, its local
 * port is compared with the one that PREREQFUNCTION got. Known weakness: before 8.22 an easy handle that alternates
 * between connections, and a connection of a multi that only the program's own transfers have used, are not checked.
 *
 * Waiting bytes are stale on an HTTP/1 connection; on an HTTP/2 connection only with FIN or an alert behind them. If
 * the version is unknown, bytes count as HTTP/2 if they can be a frame (its first byte is 0, because libcurl accepts
 * frames of up to 16 KiB) or a TLS record, and otherwise as HTTP/1. A wrong guess costs a connection, no request; so
 * does a TLS 1.3 session ticket that arrives after the first response of an HTTP/1 connection. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* POLLRDHUP */
#endif
#include "attempt.h"
#include "record.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#define TLS_HEAD             5u
#define TLS_ALERT            0x15
#define TLS_APPLICATION_DATA 0x17
#define TLS_PEEK             512 /* bytes that are searched for an alert */

#define PLACES_TRIED 4u /* of the table of a multi, for a connection */

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

static long easy_info_long(CURL *easy, CURLINFO which)
{
    long value = 0;
    return curl_easy_getinfo(easy, which, &value) == CURLE_OK ? value : 0;
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

/* Returns true if one of the records is an alert: close_notify, or an error. TLS 1.3 disguises it as application data
 * (RFC 8446 section 5.2); its length identifies it: two bytes, the type, and a tag of 16. HTTP/2 frames are
 * longer. */
static bool tls_has_alert(const unsigned char *at, size_t length)
{
    while (length >= TLS_HEAD && is_tls_record(at)) {
        size_t record = (size_t)at[3] << 8 | at[4];
        if (at[0] == TLS_ALERT || (at[0] == TLS_APPLICATION_DATA && record == 2 + 1 + 16))
            return true;
        if (record > length - TLS_HEAD)
            return false;
        at += TLS_HEAD + record;
        length -= TLS_HEAD + record;
    }
    return false;
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

static void socket_note_version(struct http_socket *socket, CURL *easy)
{
    long version = easy_info_long(easy, CURLINFO_HTTP_VERSION);
    socket->http_1 = version == CURL_HTTP_VERSION_1_1 || version == CURL_HTTP_VERSION_1_0;
    socket->http_2 = version == CURL_HTTP_VERSION_2_0;
}

/* Returns true if nothing waits there, which is the usual case. Does not change the socket, as a peek can: that takes a
 * pending error. */
static bool socket_is_quiet(curl_socket_t fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN | POLLRDHUP};
    return poll(&p, 1, 0) == 0;
}

static bool socket_bytes_are_stale(struct http_socket socket, const unsigned char *at, size_t n)
{
    if (n > 0 && !socket.http_1 && (socket.http_2 || at[0] == 0 || (n > 1 && is_tls_record(at))))
        return socket_is_closed(socket.fd) || tls_has_alert(at, n);
    return true;
}

static bool socket_is_stale(struct http_socket socket)
{
    unsigned char at[TLS_PEEK];
    ssize_t n = recv(socket.fd, at, TLS_PEEK, MSG_PEEK | MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN)
        return false;
    return socket_bytes_are_stale(socket, at, n < 0 ? 0 : (size_t)n); /* after an error as after a close */
}

/* Slow path: something waits on the socket. */
static __attribute__((noinline)) int easy_stale_port(CURL *easy, curl_socket_t fd)
{
    struct http_socket last = {.fd = fd};
    socket_note_version(&last, easy);
    return socket_is_stale(last) ? socket_local_port(fd) : 0;
}

/* Fast path: the kept connection of an adopted handle is quiet. It is forgotten if libcurl then chooses or makes
 * another one (http_connection_keep). */
int http_connection_stale_port(struct http_attempt *attempt)
{
    CURL *easy = attempt->easy;
    curl_socket_t *checked = &attempt->checked_socket;
    const struct record_kept *kept = attempt->record ? &attempt->record->kept : NULL;
    if (kept && kept->local_port != 0 && socket_is_quiet(kept->fd)) {
        *checked = kept->fd;
        return 0;
    }
    return !easy_socket(easy, checked) || socket_is_quiet(*checked) ? 0 : easy_stale_port(easy, *checked);
}

bool http_connection_is_reused(CURL *easy)
{
    return easy_info_long(easy, CURLINFO_NUM_CONNECTS) == 0;
}

static uint32_t ends_peer(const struct http_ends *ends)
{
    return (uint32_t)bide_hash(ends->ip, strlen(ends->ip)) ^ (uint32_t)ends->port;
}

static bool socket_has_ends(const struct http_socket *socket, uint32_t peer, int local_port)
{
    return socket->local_port == local_port && socket->peer == peer;
}

/* Returns the place of a connection: the one that has its ends, otherwise an empty one, otherwise one of another
 * connection. Linux assigns local ports in steps: a multiplication by the golden ratio spreads those of a peer. */
static size_t sockets_place(const struct http_socket *sockets, uint32_t peer, int local_port)
{
    size_t first = (peer + (uint32_t)local_port * 0x9e3779b9u) >> (32 - HTTP_SOCKETS_LOG2), at = first;
    for (unsigned n = 0; n < PLACES_TRIED; n++, at = (at + 1) % HTTP_SOCKETS)
        if (socket_has_ends(&sockets[at], peer, local_port) || sockets[at].local_port == 0)
            return at;
    return first;
}

static struct http_socket sockets_find(const struct http_socket *sockets, const struct http_ends *ends)
{
    uint32_t peer = ends_peer(ends);
    const struct http_socket *found = &sockets[sockets_place(sockets, peer, ends->local_port)];
    return socket_has_ends(found, peer, ends->local_port) ? *found : (struct http_socket){.fd = CURL_SOCKET_BAD};
}

/* Keeps the checked socket if it is that of the chosen connection. */
static __attribute__((noinline)) void kept_replace(struct record_kept *kept, curl_socket_t checked,
                                                   const struct http_ends *ends)
{
    size_t size = strlen(ends->ip) + 1;
    kept->local_port = 0;
    if (checked == CURL_SOCKET_BAD || size > sizeof kept->ip || socket_local_port(checked) != ends->local_port)
        return;
    *kept = (struct record_kept){.fd = checked, .local_port = ends->local_port, .port = ends->port};
    memcpy(kept->ip, ends->ip, size);
}

/* A new connection may have the ends of the kept one, which is closed then (CURLOPT_LOCALPORT). */
void http_connection_keep(struct http_attempt *attempt, const struct http_ends *ends)
{
    struct record_kept *kept = &attempt->record->kept;
    bool reused = http_connection_is_reused(attempt->easy);
    if (!reused || kept->local_port != ends->local_port || kept->port != ends->port || strcmp(kept->ip, ends->ip) != 0)
        kept_replace(kept, reused ? attempt->checked_socket : CURL_SOCKET_BAD, ends);
}

/* Returns the socket that libcurl has chosen, if it is known and was not checked before. */
static struct http_socket attempt_chosen_socket(struct http_attempt *attempt, const struct http_ends *ends)
{
    struct http_socket chosen = {.fd = CURL_SOCKET_BAD};
    if (attempt->call->sockets)
        chosen = sockets_find(attempt->call->sockets, ends);
    curl_socket_t fd = CURL_SOCKET_BAD;
    if (libcurl_version_number() >= LIBCURL_8_22 && easy_socket(attempt->easy, &fd) && fd != chosen.fd)
        chosen = (struct http_socket){.fd = fd};
    attempt->state.socket_known = chosen.local_port != 0;
    if (chosen.fd == attempt->checked_socket)
        chosen.fd = CURL_SOCKET_BAD;
    return chosen;
}

/* The local port is compared before anything is read: a remembered descriptor may be one of the program's own now. */
static __attribute__((noinline)) bool chosen_socket_is_stale(struct http_attempt *attempt, const struct http_ends *ends)
{
    struct http_socket chosen = attempt_chosen_socket(attempt, ends);
    return chosen.fd != CURL_SOCKET_BAD && !socket_is_quiet(chosen.fd) &&
           socket_local_port(chosen.fd) == ends->local_port && socket_is_stale(chosen);
}

bool http_connection_is_stale(struct http_attempt *attempt, const struct http_ends *ends)
{
    bool can_know = attempt->call->sockets || libcurl_version_number() >= LIBCURL_8_22;
    return can_know && chosen_socket_is_stale(attempt, ends);
}

/* A new connection replaces an entry with the same ends, which is of a connection that was closed. */
void http_sockets_note(struct http_socket *sockets, const struct http_attempt *attempt)
{
    const struct http_attempt_state *state = &attempt->state;
    CURL *easy = attempt->easy;
    if (state->socket_known && state->legs == 1 && http_connection_is_reused(easy))
        return;
    struct http_ends ends = {.local_port = (int)easy_info_long(easy, CURLINFO_LOCAL_PORT),
                             .port = (int)easy_info_long(easy, CURLINFO_PRIMARY_PORT)};
    struct http_socket last = {.local_port = (uint16_t)ends.local_port};
    if (ends.local_port <= 0 || curl_easy_getinfo(easy, CURLINFO_PRIMARY_IP, &ends.ip) != CURLE_OK || !ends.ip ||
        !easy_socket(easy, &last.fd))
        return;
    last.peer = ends_peer(&ends);
    socket_note_version(&last, easy);
    sockets[sockets_place(sockets, last.peer, ends.local_port)] = last;
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
