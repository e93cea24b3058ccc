/* server.c - serves a page to Prometheus: see server.h.
 *
 * A connection receives a request, sends the response, and drains: after its last byte it tells the client that no more
 * follows (shutdown), and discards what the client still sends. If it were closed with bytes unread, the kernel would
 * send a reset, which may destroy a response that the client has not read yet: that of a request which is too long, or
 * of the first of several requests.
 *
 * Connections are kept in the order of their acceptance, so the first is the oldest. */
#include "server.h"

#include <bide/telemetry.h>

#include "address.h"
#include "problem.h"
#include "request.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define REQUEST_NS   (10 * BIDE_S) /* from accept to the last byte of the response */
#define DRAIN_NS     BIDE_S        /* for the client to read it and close */
#define PAUSE_NS     BIDE_S        /* before the next accept, if there is no descriptor or memory */
#define PAGES_MAX    8u
#define ACCEPTS_MAX  16u /* in one call of process: even in a flood each connection has a few turns */
#define DISCARD_SIZE 16384u
#define BACKLOG      64

enum phase {
    PHASE_RECEIVING,
    PHASE_SENDING,
    PHASE_DRAINING,
};

struct connection {
    int fd;
    enum phase phase;
    int64_t deadline_ns;
    struct telemetry_request request;
    size_t length; /* bytes received; later those of the head to send */
    size_t sent;   /* of head and page together */
    char *page;    /* NULL: the response has none */
    size_t page_length;
    char bytes[TELEMETRY_REQUEST_MAX]; /* received; later the head to send, with a short body */
};

struct telemetry_server {
    int listener;
    int64_t accept_at_ns; /* no accept before; 0: at any time */
    char *(*page)(void *context, size_t *length);
    void *context;
    size_t count;
    struct connection *connection[TELEMETRY_SERVER_CONNECTIONS]; /* the oldest first */
};

/* ---- connections ---- */

/* A response that was not taken in time is cut by a reset: otherwise the kernel would keep its rest for the client. */
static void connection_free(struct connection *c)
{
    const struct linger reset = {.l_onoff = 1, .l_linger = 0};
    if (c->phase == PHASE_SENDING)
        setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    close(c->fd);
    free(c->page);
    free(c);
}

static void server_remove(struct telemetry_server *server, size_t at)
{
    assert(at < server->count);
    connection_free(server->connection[at]);
    server->count--;
    memmove(&server->connection[at], &server->connection[at + 1], (server->count - at) * sizeof(struct connection *));
}

/* Closes the oldest connection with a page if there are too many of them. */
static void server_limit_pages(struct telemetry_server *server)
{
    size_t pages = 0, oldest = server->count;
    for (size_t i = server->count; i-- > 0;)
        if (server->connection[i]->page != NULL) {
            pages++;
            oldest = i;
        }
    if (pages >= PAGES_MAX)
        server_remove(server, oldest);
}

/* ---- responses ---- */

struct response {
    int status;
    const char *reason;
    const char *body; /* NULL: the page */
};

static const struct response *response_of(int status)
{
    static const struct response table[] = {
        {200, "OK", NULL},
        {400, "Bad Request", "not a valid HTTP/1 request without a body\n"},
        {404, "Not Found", "the metrics are at /metrics\n"},
        {405, "Method Not Allowed", "only GET and HEAD are served\n"},
        {414, "URI Too Long", "the request line is longer than 2048 bytes\n"},
        {431, "Request Header Fields Too Large", "the request is longer than 8192 bytes\n"},
        {503, "Service Unavailable", "no memory for the page\n"},
        {505, "HTTP Version Not Supported", "only HTTP/1.1 and HTTP/1.0 are served\n"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].status == status)
            return &table[i];
    assert(false);
    return &table[1];
}

/* Replaces the bytes received by the head of a response, and its body unless that is a page. */
static void connection_write_head(struct connection *c, const struct response *response, const char *body)
{
    size_t length = body != NULL ? strlen(body) : c->page_length;
    int n = snprintf(
        c->bytes, sizeof c->bytes,
        "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n%s"
        "X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n%s",
        response->status, response->reason, body != NULL ? "text/plain; charset=utf-8" : BIDE_TELEMETRY_CONTENT_TYPE,
        length, response->status == 405 ? "Allow: GET, HEAD\r\n" : "", body != NULL && !c->request.is_head ? body : "");
    assert(n > 0 && (size_t)n < sizeof c->bytes);
    c->length = (size_t)n;
}

static void connection_respond(struct telemetry_server *server, struct connection *c)
{
    const struct response *response = response_of(c->request.status);
    const char *body = response->body;
    if (c->request.status == 200 && c->request.resource == TELEMETRY_RESOURCE_METRICS) {
        char *page = server->page(server->context, &c->page_length);
        if (page == NULL)
            response = response_of(503);
        body = response->body;
        c->page = page;
    } else if (c->request.status == 200) {
        body = "the metrics are at /metrics\n";
    }
    connection_write_head(c, response, body);
    if (c->request.is_head) {
        free(c->page);
        c->page = NULL;
    }
    c->phase = PHASE_SENDING;
}

/* ---- steps: each returns false if the connection is over ---- */

static bool would_block(void)
{
    return errno == EAGAIN || errno == EINTR;
}

/* Sends what the socket takes; after the last byte the connection drains. */
static bool connection_send(struct connection *c, int64_t now_ns)
{
    size_t whole = c->length + (c->page != NULL ? c->page_length : 0);
    size_t head = c->sent < c->length ? c->length - c->sent : 0, body = whole - c->sent - head;
    struct iovec parts[2] = {{c->bytes + (c->length - head), head}, {NULL, 0}};
    if (body > 0)
        parts[1] = (struct iovec){c->page + (c->page_length - body), body};
    ssize_t n = sendmsg(c->fd, &(struct msghdr){.msg_iov = parts, .msg_iovlen = 2}, MSG_NOSIGNAL);
    if (n < 0)
        return would_block();
    c->sent += (size_t)n;
    assert(c->sent <= whole);
    if (c->sent < whole)
        return true;
    free(c->page);
    c->page = NULL;
    c->phase = PHASE_DRAINING;
    c->deadline_ns = now_ns + DRAIN_NS < c->deadline_ns ? now_ns + DRAIN_NS : c->deadline_ns;
    return shutdown(c->fd, SHUT_WR) == 0;
}

/* Receives a part of the request. The end of what the client sends (a half-close) before the end of its request is the
 * end of the connection. */
static bool connection_receive(struct connection *c)
{
    ssize_t n = recv(c->fd, c->bytes + c->length, sizeof c->bytes - c->length, 0);
    if (n <= 0)
        return n < 0 && would_block();
    c->length += (size_t)n;
    telemetry_request_read(&c->request, c->bytes, c->length);
    return true;
}

static bool connection_drain(const struct connection *c)
{
    char discarded[DISCARD_SIZE];
    ssize_t n = recv(c->fd, discarded, sizeof discarded, 0);
    return n > 0 || (n < 0 && would_block());
}

/* Advances the connection at this place. Making room for a page may close an older connection, which moves this one. */
static void server_advance(struct telemetry_server *server, struct connection *c, int64_t now_ns)
{
    bool goes_on = true;
    if (c->phase == PHASE_RECEIVING) {
        goes_on = connection_receive(c);
        if (goes_on && c->request.status != 0) {
            if (c->request.resource == TELEMETRY_RESOURCE_METRICS)
                server_limit_pages(server);
            connection_respond(server, c);
        }
    } else if (c->phase == PHASE_DRAINING) {
        goes_on = connection_drain(c);
    }
    if (goes_on && c->phase == PHASE_SENDING)
        goes_on = connection_send(c, now_ns);
    for (size_t i = 0; i < server->count && !goes_on; i++)
        if (server->connection[i] == c) {
            server_remove(server, i);
            return;
        }
}

/* ---- accepting ---- */

static void server_add(struct telemetry_server *server, int fd, int64_t now_ns)
{
    struct connection *c = calloc(1, sizeof *c);
    if (c == NULL) {
        close(fd);
        return;
    }
    c->fd = fd;
    c->deadline_ns = now_ns + REQUEST_NS;
    if (server->count == TELEMETRY_SERVER_CONNECTIONS)
        server_remove(server, 0);
    server->connection[server->count++] = c;
}

/* Errors of a connection that failed while it waited in the backlog concern only this one (accept(2)). After any other
 * error, as EMFILE, the connection stays in the backlog and the listener stays readable: without a pause the loop would
 * spin. */
static bool error_is_of_connection(int error)
{
    return error == ECONNABORTED || error == EINTR || error == EPROTO || error == ENETDOWN || error == ENOPROTOOPT ||
           error == EHOSTDOWN || error == ENONET || error == EHOSTUNREACH || error == EOPNOTSUPP ||
           error == ENETUNREACH || error == ETIMEDOUT || error == ECONNRESET;
}

static void server_accept(struct telemetry_server *server, int64_t now_ns)
{
    server->accept_at_ns = 0;
    for (unsigned i = 0; i < ACCEPTS_MAX; i++) {
        int fd = accept4(server->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            server_add(server, fd, now_ns);
        } else if (errno == EAGAIN) {
            return;
        } else if (!error_is_of_connection(errno)) {
            server->accept_at_ns = now_ns + PAUSE_NS;
            return;
        }
    }
}

/* ---- opening and closing ---- */

static enum bide_err listen_failed(struct bide_problem *problem, const char *address)
{
    char buffer[128];
    int error = errno;
    return telemetry_problem_set(problem, BIDE_ERR_SYSTEM, error, "listen %.200s: %s", address,
                                 strerror_r(error, buffer, sizeof buffer));
}

/* Returns a socket that listens, or -1 with errno. */
static int listener_open(const struct telemetry_address *address)
{
    const int on = 1;
    int fd = socket(address->socket.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(fd, (const struct sockaddr *)&address->socket, address->length) != 0 || listen(fd, BACKLOG) != 0) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

enum bide_err telemetry_server_open(struct telemetry_server **server, const char *address,
                                    char *(*page)(void *context, size_t *length), void *context,
                                    struct bide_problem *problem)
{
    struct telemetry_address parsed;
    if (!telemetry_address_parse(address, &parsed))
        return telemetry_problem_text(problem, "listen", address, TELEMETRY_ADDRESS_WANT);
    struct telemetry_server *new = calloc(1, sizeof *new);
    if (new == NULL)
        return telemetry_problem_set(problem, BIDE_ERR_NOMEM, 0, "listen %.200s: no memory", address);
    new->page = page;
    new->context = context;
    new->listener = listener_open(&parsed);
    if (new->listener < 0) {
        enum bide_err err = listen_failed(problem, address);
        free(new);
        return err;
    }
    *server = new;
    return BIDE_OK;
}

void telemetry_server_close(struct telemetry_server *server)
{
    if (server == NULL)
        return;
    while (server->count > 0)
        server_remove(server, server->count - 1);
    close(server->listener);
    free(server);
}

void telemetry_server_forked(const struct telemetry_server *server)
{
    close(server->listener);
}

uint16_t telemetry_server_port(const struct telemetry_server *server)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } address = {.v6 = {.sin6_family = AF_UNSPEC}};
    socklen_t length = sizeof address;
    if (getsockname(server->listener, &address.any, &length) != 0)
        return 0;
    return ntohs(address.any.sa_family == AF_INET6 ? address.v6.sin6_port : address.v4.sin_port);
}

/* ---- the loop of the owner ---- */

size_t telemetry_server_fds(const struct telemetry_server *server, struct pollfd fds[TELEMETRY_SERVER_FDS])
{
    fds[0] = (struct pollfd){.fd = server->accept_at_ns == 0 ? server->listener : -1, .events = POLLIN};
    for (size_t i = 0; i < server->count; i++) {
        const struct connection *c = server->connection[i];
        fds[i + 1] = (struct pollfd){.fd = c->fd, .events = c->phase == PHASE_SENDING ? POLLOUT : POLLIN};
    }
    return server->count + 1;
}

int64_t telemetry_server_due(const struct telemetry_server *server)
{
    int64_t due_ns = server->accept_at_ns != 0 ? server->accept_at_ns : BIDE_NEVER;
    for (size_t i = 0; i < server->count; i++)
        if (server->connection[i]->deadline_ns < due_ns)
            due_ns = server->connection[i]->deadline_ns;
    return due_ns;
}

static struct connection *server_find(const struct telemetry_server *server, int fd)
{
    for (size_t i = 0; i < server->count; i++)
        if (server->connection[i]->fd == fd)
            return server->connection[i];
    return NULL;
}

static void server_end_slow(struct telemetry_server *server, int64_t now_ns)
{
    for (size_t i = server->count; i-- > 0;)
        if (server->connection[i]->deadline_ns <= now_ns)
            server_remove(server, i);
}

/* Accepts last: a new connection may have the number of a descriptor that was closed in this call. */
void telemetry_server_process(struct telemetry_server *server, const struct pollfd *fds, size_t count, int64_t now_ns)
{
    bool accepts = server->accept_at_ns != 0 && server->accept_at_ns <= now_ns;
    for (size_t i = 0; i < count; i++) {
        struct connection *c = fds[i].revents != 0 ? server_find(server, fds[i].fd) : NULL;
        if (c != NULL)
            server_advance(server, c, now_ns);
        else if (fds[i].revents != 0 && fds[i].fd == server->listener && server->accept_at_ns == 0)
            accepts = true;
    }
    server_end_slow(server, now_ns);
    if (accepts)
        server_accept(server, now_ns);
}
