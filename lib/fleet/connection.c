/* connection.c - a connection to Redis as a state machine: a function for each stage, none of which waits.
 *
 *     DOWN -> START -> RESOLVE -> CONNECT -> TLS -> AUTH -> SELECT -> READY
 *
 * Stages that are not needed are skipped: a unix socket has no name to resolve, redis:// no TLS, a URL without password
 * no AUTH. A step goes on until the stage no longer changes. Addresses are tried in turn; each gets an equal part of
 * the time left, so that an address that drops packets does not prevent the next from being tried.
 *
 * A name lookup that was too slow continues in the background, and the next opening uses its result: a connection never
 * has more than one resolver thread, and a slow resolver costs only an attempt. */
#include "connection.h"

#include "fd.h"
#include "redis_reply.h"
#include "resolver.h"
#include "tls.h"

#include <assert.h>
#include <errno.h>
#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define OUT_MAX     (4 * FLEET_COMMAND_MAX) /* bytes queued */
#define AWAITED_MAX 256u                    /* commands that wait for their reply */

enum stage { STAGE_DOWN, STAGE_START, STAGE_RESOLVE, STAGE_CONNECT, STAGE_TLS, STAGE_AUTH, STAGE_SELECT, STAGE_READY };

struct fleet_connection {
    const struct fleet_url *url;
    enum stage stage;
    bool redirected;
    bool more_to_read; /* the last step stopped before all was read */
    bool peer_closed;  /* the server closed the connection */
    struct fleet_endpoint endpoint;
    int64_t deadline_ns;         /* of the opening */
    int64_t address_deadline_ns; /* of the address being tried */
    struct fleet_resolver *resolver;
    const struct addrinfo *next_address; /* to try next; owned by the resolver */
    int last_errno;                      /* of the address tried last */
    int fd;
    struct fleet_tls *tls;
    short read_event, write_event; /* events for which reading and writing wait */
    struct fleet_reply_reader *reader;
    int64_t reply_deadline_ns[AWAITED_MAX]; /* of the commands sent; a ring buffer */
    size_t first_awaited, awaited;
    size_t out_used;
    char out[OUT_MAX];
    char problem[768];
};

/* ---- opening and closing ---- */

struct fleet_connection *fleet_connection_new(const struct fleet_url *url)
{
    struct fleet_connection *conn = calloc(1, sizeof *conn);
    if (conn == NULL)
        return NULL;
    conn->url = url;
    conn->fd = -1;
    conn->reader = fleet_reply_reader_new(url->password);
    if (conn->reader != NULL)
        return conn;
    fleet_connection_free(conn);
    return NULL;
}

/* Releases the addresses, so that the next opening resolves the name again. */
static void connection_release_addresses(struct fleet_connection *conn)
{
    fleet_resolver_release(conn->resolver);
    conn->resolver = NULL;
    conn->next_address = NULL;
}

/* Closes the socket. Received bytes remain readable, and a lookup in progress continues. */
static void connection_disconnect(struct fleet_connection *conn)
{
    assert(conn->out_used <= sizeof conn->out && conn->awaited <= AWAITED_MAX);
    fleet_tls_free(conn->tls);
    conn->tls = NULL;
    if (conn->fd >= 0)
        close(conn->fd);
    conn->fd = -1;
    if (conn->stage == STAGE_CONNECT)
        connection_release_addresses(conn);
    explicit_bzero(conn->out, conn->out_used);
    conn->out_used = 0;
    conn->stage = STAGE_DOWN;
}

void fleet_connection_free(struct fleet_connection *conn)
{
    if (conn == NULL)
        return;
    connection_disconnect(conn);
    fleet_resolver_release(conn->resolver);
    fleet_reply_reader_free(conn->reader);
    free(conn);
}

void fleet_connection_abandon(struct fleet_connection *conn)
{
    if (conn->fd >= 0)
        close(conn->fd);
    conn->fd = -1;
    if (conn->resolver != NULL)
        fleet_resolver_abandon(conn->resolver);
    conn->stage = STAGE_DOWN;
}

__attribute__((format(printf, 2, 3))) static void connection_fail(struct fleet_connection *conn, const char *format,
                                                                  ...)
{
    char text[FLEET_REPLY_ERROR_MAX + 64], moved[sizeof conn->endpoint + 32] = "";
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (conn->redirected)
        snprintf(moved, sizeof moved, " (moved to %s:%s)", conn->endpoint.host, conn->endpoint.port);
    snprintf(conn->problem, sizeof conn->problem, "%.380s%.120s: %.260s", conn->url->redacted, moved, text);
    connection_disconnect(conn);
}

static void connection_fail_errno(struct fleet_connection *conn, int error)
{
    char buffer[128];
    connection_fail(conn, "%s", strerror_r(error, buffer, sizeof buffer));
}

void fleet_connection_open(struct fleet_connection *conn, const char *endpoint, int64_t deadline_ns)
{
    connection_disconnect(conn);
    conn->problem[0] = '\0';
    conn->first_awaited = conn->awaited = 0;
    conn->more_to_read = conn->peer_closed = conn->redirected = false;
    conn->read_event = POLLIN;
    conn->write_event = POLLOUT;
    conn->last_errno = 0;
    conn->deadline_ns = deadline_ns;
    conn->endpoint = conn->url->endpoint;
    conn->stage = STAGE_START;
    if (!fleet_reply_reader_reset(conn->reader))
        connection_fail_errno(conn, ENOMEM);
    else if (endpoint != NULL && conn->url->path[0] != '\0')
        connection_fail(conn, "the server redirects to another host (MOVED), which is not followed from a unix socket");
    else if (endpoint != NULL && !fleet_endpoint_parse(&conn->endpoint, endpoint, &conn->url->endpoint))
        connection_fail(conn, "the server redirects (MOVED) to something that is not host:port");
    else
        conn->redirected = endpoint != NULL;
}

/* ---- bytes ---- */

static int io_result(ssize_t n)
{
    if (n > 0)
        return (int)n;
    if (n == 0)
        return FLEET_IO_EOF;
    return errno == EAGAIN || errno == EINTR ? FLEET_IO_WOULD_BLOCK : FLEET_IO_ERROR;
}

static int connection_recv(struct fleet_connection *conn, char *into, size_t size)
{
    if (conn->tls == NULL)
        return io_result(recv(conn->fd, into, size, 0));
    int n = fleet_tls_read(conn->tls, into, size);
    conn->read_event = fleet_tls_event(conn->tls, POLLIN);
    return n;
}

static int connection_send_bytes(struct fleet_connection *conn, const char *from, size_t size)
{
    if (conn->tls == NULL)
        return io_result(send(conn->fd, from, size, MSG_NOSIGNAL));
    int n = fleet_tls_write(conn->tls, from, size);
    conn->write_event = fleet_tls_event(conn->tls, POLLOUT);
    return n;
}

static void connection_fail_io(struct fleet_connection *conn)
{
    if (conn->tls != NULL)
        connection_fail(conn, "%s", fleet_tls_problem(conn->tls));
    else
        connection_fail_errno(conn, errno);
}

/* Writes as much as the socket takes. A write error only discards the queue: connection_receive fails next, after it
 * has read the server's last reply, which may give the reason. */
static void connection_flush(struct fleet_connection *conn)
{
    size_t sent = 0;
    int n = 1;
    while (sent < conn->out_used && (n = connection_send_bytes(conn, conn->out + sent, conn->out_used - sent)) > 0)
        sent += (size_t)n;
    assert(sent <= conn->out_used);
    memmove(conn->out, conn->out + sent, conn->out_used - sent);
    explicit_bzero(conn->out + conn->out_used - sent, sent); /* may have contained AUTH */
    conn->out_used = n == FLEET_IO_ERROR || n == FLEET_IO_EOF ? 0 : conn->out_used - sent;
}

/* Reads all bytes that the reply reader has room for. */
static void connection_receive(struct fleet_connection *conn)
{
    char chunk[FLEET_CHUNK_MAX];
    while (fleet_reply_reader_has_room(conn->reader)) {
        int n = connection_recv(conn, chunk, sizeof chunk);
        if (n > 0)
            fleet_reply_reader_feed(conn->reader, chunk, (size_t)n);
        else if (n == FLEET_IO_ERROR)
            connection_fail_io(conn);
        conn->peer_closed = n == FLEET_IO_EOF;
        if (n <= 0)
            return;
    }
    conn->more_to_read = true;
}

/* Returns the next reply. Garbage fails the connection, even if the server has closed it: garbage is the better
 * explanation. */
static bool connection_parse_reply(struct fleet_connection *conn, struct fleet_redis_reply *reply)
{
    const char *reason;
    enum fleet_read_result result = fleet_reply_reader_next(conn->reader, reply, &reason);
    if (result == FLEET_READ_GARBAGE && (conn->stage != STAGE_DOWN || conn->peer_closed))
        connection_fail(conn, "%s", reason);
    return result == FLEET_READ_REPLY;
}

static bool connection_queue_command(struct fleet_connection *conn, int argc, const char *const *argv,
                                     const size_t *length)
{
    const char *args[FLEET_COMMAND_ARGS_MAX];
    size_t total = 0;
    char *command = NULL;
    if (argc < 1 || argc > FLEET_COMMAND_ARGS_MAX)
        return false;
    for (int i = 0; i < argc; i++) {
        args[i] = argv[i];
        size_t more = length != NULL ? length[i] : strlen(argv[i]);
        if (more > FLEET_COMMAND_MAX - total)
            return false;
        total += more;
    }
    long long size = redisFormatCommandArgv(&command, argc, args, length);
    if (size < 0)
        return false;
    bool fits = (size_t)size <= sizeof conn->out - conn->out_used;
    if (fits)
        memcpy(conn->out + conn->out_used, command, (size_t)size);
    conn->out_used += fits ? (size_t)size : 0;
    explicit_bzero(command, (size_t)size);
    redisFreeCommand(command);
    return fits;
}

/* ---- stages: resolve and connect ---- */

static void connection_open_socket(struct fleet_connection *conn, const struct sockaddr *address, socklen_t length)
{
    int on = 1;
    conn->fd = fleet_fd_above_stdio(socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (conn->fd < 0) {
        conn->last_errno = errno;
        return;
    }
    if (address->sa_family != AF_UNIX) {
        setsockopt(conn->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        setsockopt(conn->fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    }
    if (connect(conn->fd, address, length) == 0 || errno == EINPROGRESS || errno == EINTR)
        return;
    conn->last_errno = errno;
    close(conn->fd);
    conn->fd = -1;
}

/* Returns the end of this address's part of the time left. */
static int64_t address_time_slice_end_ns(const struct fleet_connection *conn, int64_t now_ns)
{
    int64_t addresses = 1;
    for (const struct addrinfo *a = conn->next_address; a != NULL; a = a->ai_next)
        addresses++;
    return conn->deadline_ns > now_ns ? now_ns + (conn->deadline_ns - now_ns) / addresses : now_ns;
}

static void connection_try_next_address(struct fleet_connection *conn, int64_t now_ns)
{
    if (conn->fd >= 0)
        close(conn->fd);
    conn->fd = -1;
    while (conn->fd < 0 && conn->next_address != NULL) {
        const struct addrinfo *address = conn->next_address;
        conn->next_address = address->ai_next;
        connection_open_socket(conn, address->ai_addr, address->ai_addrlen);
    }
    if (conn->fd < 0)
        connection_fail_errno(conn, conn->last_errno);
    conn->address_deadline_ns = address_time_slice_end_ns(conn, now_ns);
}

static void connection_open_unix(struct fleet_connection *conn)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    static_assert(sizeof conn->url->path <= sizeof address.sun_path, "a path that was read fits");
    memcpy(address.sun_path, conn->url->path, sizeof conn->url->path);
    connection_open_socket(conn, (const struct sockaddr *)&address, sizeof address);
    if (conn->fd < 0)
        connection_fail_errno(conn, conn->last_errno);
    else
        conn->stage = STAGE_CONNECT;
    conn->address_deadline_ns = conn->deadline_ns;
}

static bool endpoint_equals(const struct fleet_endpoint *a, const struct fleet_endpoint *b)
{
    return strcmp(a->host, b->host) == 0 && strcmp(a->port, b->port) == 0;
}

static void stage_start(struct fleet_connection *conn)
{
    const struct addrinfo *addresses;
    const char *reason;
    if (conn->url->path[0] != '\0') {
        connection_open_unix(conn);
        return;
    }
    if (conn->resolver != NULL && !endpoint_equals(fleet_resolver_endpoint(conn->resolver), &conn->endpoint)) {
        if (!fleet_resolver_result(conn->resolver, &addresses, &reason)) {
            connection_fail(conn, "the lookup of another host name is still running");
            return;
        }
        connection_release_addresses(conn);
    }
    if (conn->resolver == NULL)
        conn->resolver = fleet_resolver_new(&conn->endpoint);
    if (conn->resolver == NULL)
        connection_fail_errno(conn, errno);
    else
        conn->stage = STAGE_RESOLVE;
}

static void stage_resolve(struct fleet_connection *conn, int64_t now_ns)
{
    const char *reason;
    if (!fleet_resolver_result(conn->resolver, &conn->next_address, &reason))
        return;
    conn->stage = STAGE_CONNECT;
    if (conn->next_address != NULL) {
        connection_try_next_address(conn, now_ns);
        return;
    }
    connection_fail(conn, "%s", reason); /* also releases the resolver */
}

/* ---- stages: TLS, AUTH, SELECT ---- */

static void connection_begin_select(struct fleet_connection *conn)
{
    char number[16];
    snprintf(number, sizeof number, "%d", conn->url->db);
    conn->stage = STAGE_READY;
    if (conn->url->db == 0)
        return;
    conn->stage = STAGE_SELECT;
    if (!connection_queue_command(conn, 2, (const char *const[]){"SELECT", number}, NULL))
        connection_fail_errno(conn, ENOMEM);
}

static void connection_begin_auth(struct fleet_connection *conn)
{
    const struct fleet_url *url = conn->url;
    const char *const args[] = {"AUTH", url->user != NULL ? url->user : url->password, url->password};
    if (url->password == NULL) {
        connection_begin_select(conn);
        return;
    }
    conn->stage = STAGE_AUTH;
    if (!connection_queue_command(conn, url->user != NULL ? 3 : 2, args, NULL))
        connection_fail_errno(conn, ENOMEM);
}

static void connection_begin_tls(struct fleet_connection *conn)
{
    char problem[FLEET_TLS_PROBLEM_MAX];
    connection_release_addresses(conn);
    if (!conn->url->tls) {
        connection_begin_auth(conn);
        return;
    }
    conn->tls = fleet_tls_new(conn->url, conn->endpoint.host, conn->fd, problem);
    conn->stage = STAGE_TLS;
    if (conn->tls == NULL)
        connection_fail(conn, "%s", problem);
}

static void stage_connect(struct fleet_connection *conn, int64_t now_ns)
{
    struct pollfd ready = {.fd = conn->fd, .events = POLLOUT};
    socklen_t length = sizeof conn->last_errno;
    assert(conn->fd >= 0 && conn->tls == NULL);
    if (poll(&ready, 1, 0) > 0) {
        if (getsockopt(conn->fd, SOL_SOCKET, SO_ERROR, &conn->last_errno, &length) != 0)
            conn->last_errno = errno;
    } else if (now_ns >= conn->address_deadline_ns && conn->next_address != NULL) {
        conn->last_errno = ETIMEDOUT;
    } else {
        return;
    }
    if (conn->last_errno == 0)
        connection_begin_tls(conn);
    else
        connection_try_next_address(conn, now_ns);
}

static void stage_tls_handshake(struct fleet_connection *conn)
{
    assert(conn->tls != NULL && conn->out_used == 0); /* nothing is sent in the clear */
    int result = fleet_tls_handshake(conn->tls);
    conn->read_event = fleet_tls_event(conn->tls, POLLIN);
    if (result == 1) {
        connection_begin_auth(conn);
    } else if (result == FLEET_IO_EOF) {
        connection_fail(conn, "the server closed the connection during the TLS handshake");
    } else if (result == FLEET_IO_ERROR) {
        connection_fail_io(conn);
    }
}

/* Explains why AUTH failed. Redis' own text is not repeated, because some of its errors quote the arguments, truncated
 * or changed, so that masking would not find the password. */
static const char *auth_error_meaning(const char *error)
{
    static const struct {
        const char *begins, *means;
    } table[] = {
        {"WRONGPASS", "WRONGPASS, wrong user or password"},
        {"ERR invalid password", "wrong password"},
        {"ERR Client sent AUTH", "the server has no password set"},
        {"ERR AUTH", "the server has no password set"},
        {"ERR wrong number", "the server supports no users, only a password (Redis before 6)"},
        {"ERR unknown command", "the server does not know that command"},
        {"ERR max number", "the server has too many clients"},
        {"NOPERM", "NOPERM, the user lacks the permission"},
        {"LOADING", "LOADING, the server is loading its data"},
        {"DENIED", "DENIED, the server is in protected mode"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strncmp(error, table[i].begins, strlen(table[i].begins)) == 0)
            return table[i].means;
    return "the server gave an unknown reason";
}

/* Awaits the reply to AUTH or SELECT. Anything but OK fails the connection. */
static void stage_auth_or_select(struct fleet_connection *conn)
{
    struct fleet_redis_reply reply;
    const char *command = conn->stage == STAGE_AUTH ? "AUTH" : "SELECT";
    connection_flush(conn);
    connection_receive(conn);
    if (conn->stage == STAGE_DOWN || !connection_parse_reply(conn, &reply)) {
        if (conn->stage != STAGE_DOWN && conn->peer_closed)
            connection_fail(conn, "the server closed the connection before it replied to %s", command);
        return;
    }
    if (reply.kind == FLEET_REPLY_ERROR)
        connection_fail(conn, "the server refuses %s: %s", command,
                        conn->stage == STAGE_AUTH ? auth_error_meaning(reply.error) : reply.error);
    else if (reply.kind != FLEET_REPLY_OTHER)
        connection_fail(conn, "the server replied to %s with numbers", command);
    else if (conn->stage == STAGE_AUTH)
        connection_begin_select(conn);
    else
        conn->stage = STAGE_READY;
}

/* ---- stage: ready ---- */

/* Bytes without a command would be taken for the reply to the next command. */
static void connection_check_unsolicited(struct fleet_connection *conn)
{
    struct fleet_redis_reply reply;
    if (conn->stage != STAGE_READY || conn->awaited > 0 || fleet_reply_reader_unread(conn->reader) == 0)
        return;
    bool whole = connection_parse_reply(conn, &reply);
    if (conn->stage == STAGE_READY)
        connection_fail(conn, "the server sent an unsolicited reply: %s",
                        whole && reply.kind == FLEET_REPLY_ERROR ? reply.error : "not an error");
}

static void stage_ready(struct fleet_connection *conn)
{
    assert(conn->fd >= 0 && (conn->tls != NULL) == conn->url->tls);
    connection_flush(conn);
    connection_receive(conn);
    connection_check_unsolicited(conn);
    if (conn->stage != STAGE_DOWN && conn->peer_closed)
        connection_fail(conn, "the server closed the connection");
}

bool fleet_connection_send(struct fleet_connection *conn, int argc, const char *const *argv, const size_t *length,
                           int64_t deadline_ns)
{
    if (conn->stage != STAGE_READY || conn->awaited == AWAITED_MAX ||
        !connection_queue_command(conn, argc, argv, length))
        return false;
    conn->reply_deadline_ns[(conn->first_awaited + conn->awaited++) % AWAITED_MAX] = deadline_ns;
    return true;
}

bool fleet_connection_next_reply(struct fleet_connection *conn, struct fleet_redis_reply *reply)
{
    if (conn->awaited == 0 || !connection_parse_reply(conn, reply))
        return false;
    assert(conn->awaited <= AWAITED_MAX && conn->first_awaited < AWAITED_MAX);
    conn->first_awaited = (conn->first_awaited + 1) % AWAITED_MAX;
    conn->awaited--;
    connection_check_unsolicited(conn);
    return true;
}

void fleet_connection_close(struct fleet_connection *conn)
{
    if (conn->stage == STAGE_READY) {
        connection_flush(conn);
        if (conn->tls != NULL)
            fleet_tls_shutdown(conn->tls);
    }
    connection_disconnect(conn);
    conn->first_awaited = conn->awaited = 0;
    conn->problem[0] = '\0';
}

/* ---- steps and deadlines ---- */

static int64_t connection_earliest_deadline_ns(const struct fleet_connection *conn)
{
    int64_t earliest = BIDE_NEVER;
    for (size_t i = 0; i < conn->awaited; i++) {
        int64_t deadline_ns = conn->reply_deadline_ns[(conn->first_awaited + i) % AWAITED_MAX];
        earliest = deadline_ns < earliest ? deadline_ns : earliest;
    }
    return earliest;
}

static void connection_advance(struct fleet_connection *conn, int64_t now_ns)
{
    switch (conn->stage) {
    case STAGE_DOWN: break;
    case STAGE_START: stage_start(conn); break;
    case STAGE_RESOLVE: stage_resolve(conn, now_ns); break;
    case STAGE_CONNECT: stage_connect(conn, now_ns); break;
    case STAGE_TLS: stage_tls_handshake(conn); break;
    case STAGE_AUTH:
    case STAGE_SELECT: stage_auth_or_select(conn); break;
    case STAGE_READY: stage_ready(conn); break;
    }
}

static void connection_check_deadline(struct fleet_connection *conn, int64_t now_ns)
{
    static const char *const late[] = {
        [STAGE_START] = "not started in time",     [STAGE_RESOLVE] = "the host name was not resolved in time",
        [STAGE_CONNECT] = "no connection in time", [STAGE_TLS] = "no TLS handshake in time; does the server use TLS?",
        [STAGE_AUTH] = "no reply to AUTH in time", [STAGE_SELECT] = "no reply to SELECT in time",
        [STAGE_READY] = "no reply in time",
    };
    int64_t deadline_ns = conn->stage == STAGE_READY ? connection_earliest_deadline_ns(conn) : conn->deadline_ns;
    if (conn->stage != STAGE_DOWN && now_ns >= deadline_ns)
        connection_fail(conn, "%s", late[conn->stage]);
}

void fleet_connection_step(struct fleet_connection *conn, int64_t now_ns)
{
    enum stage before;
    conn->more_to_read = false;
    do {
        before = conn->stage;
        connection_advance(conn, now_ns);
    } while (conn->stage != before && conn->stage != STAGE_DOWN);
    connection_check_deadline(conn, now_ns);
}

int64_t fleet_connection_deadline_ns(const struct fleet_connection *conn)
{
    if (conn->stage == STAGE_DOWN)
        return BIDE_NEVER;
    if (conn->stage == STAGE_START || conn->more_to_read)
        return 0;
    if (conn->stage == STAGE_READY)
        return connection_earliest_deadline_ns(conn);
    return conn->stage == STAGE_CONNECT && conn->address_deadline_ns < conn->deadline_ns ? conn->address_deadline_ns
                                                                                         : conn->deadline_ns;
}

int fleet_connection_fd(const struct fleet_connection *conn, short *events)
{
    *events = 0;
    switch (conn->stage) {
    case STAGE_DOWN:
    case STAGE_START: return -1;
    case STAGE_RESOLVE: *events = POLLIN; return fleet_resolver_fd(conn->resolver);
    case STAGE_CONNECT: *events = POLLOUT; break;
    case STAGE_TLS: *events = conn->read_event; break;
    case STAGE_AUTH:
    case STAGE_SELECT:
    case STAGE_READY: *events = (short)(conn->read_event | (conn->out_used > 0 ? conn->write_event : 0)); break;
    }
    return conn->fd;
}

enum fleet_connection_state fleet_connection_state(const struct fleet_connection *conn)
{
    if (conn->stage == STAGE_DOWN)
        return FLEET_CONNECTION_DOWN;
    return conn->stage == STAGE_READY ? FLEET_CONNECTION_READY : FLEET_CONNECTION_OPENING;
}

const char *fleet_connection_problem(const struct fleet_connection *conn)
{
    return conn->problem;
}
