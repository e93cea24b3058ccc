/* server.c - the server: one thread, one epoll instance, one listening socket.
 *
 * Each turn flushes the journal, waits for events, passes them to the connections, then runs the timers that are due.
 * The listening socket has its own timer: the socket leaves the epoll set for a moment when the process runs out of
 * descriptors, and is closed during an outage that refuses connections. Meanwhile a second socket, bound to the same
 * port but never listening, reserves the port: no other process can get it, and no client that connects from a random
 * port can pick this port and connect to itself. */
#include "server.h"

#include <bide/clock.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVENTS_MAX      256
#define ACCEPTS_MAX     256            /* per turn */
#define ACCEPT_PAUSE_NS (20 * BIDE_MS) /* after running out of descriptors */
#define POLL_MAX_MS     60000          /* longest wait in a turn */

/* ---- the listening socket ---- */

/* Returns a socket bound to the port (0: any free port, stored in *port), or -1 with errno set. */
static int bind_loopback(uint16_t *port)
{
    const int one = 1;
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(*port)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, (struct sockaddr *)&address, size) != 0 || getsockname(fd, (struct sockaddr *)&address, &size) != 0) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    *port = ntohs(address.sin_port);
    return fd;
}

static bool server_start_listening(struct chaos *server)
{
    uint16_t port = server->port; /* other threads may read server->port: it never changes */
    if (server->listen_fd < 0)
        server->listen_fd = bind_loopback(&port);
    return server->listen_fd >= 0 && listen(server->listen_fd, SOMAXCONN) == 0;
}

static void server_stop_listening(struct chaos *server)
{
    if (server->listen_fd >= 0)
        close(server->listen_fd);
    server->listen_fd = -1;
    server->accepting = false;
}

/* Returns false if the listening socket could not be added to the epoll set. */
static bool server_watch_listener(struct chaos *server, bool accepting)
{
    struct epoll_event watch = {.events = EPOLLIN, .data.ptr = server};
    if (server->accepting == accepting)
        return true;
    if (epoll_ctl(server->epoll_fd, accepting ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, server->listen_fd, &watch) == 0)
        server->accepting = accepting;
    return server->accepting || !accepting;
}

static bool server_is_refusing(const struct chaos *server, int64_t since_ns)
{
    const struct chaos_outage *outage =
        server->script.catch_all != NULL ? chaos_line_outage(server->script.catch_all, since_ns) : NULL;
    return outage != NULL && outage->refuse;
}

/* Returns when, since the start, the next outage of the line `*` begins or ends; BIDE_NEVER: none will. */
static int64_t server_next_outage_change(const struct chaos *server, int64_t since_ns)
{
    const struct chaos_line *catch_all = server->script.catch_all;
    int64_t next_ns = BIDE_NEVER;
    for (size_t i = 0; catch_all != NULL && i < catch_all->outages; i++) {
        const struct chaos_span *when = &catch_all->outage[i].when;
        int64_t change_ns = when->min_ns > since_ns ? when->min_ns : when->max_ns;
        if (change_ns > since_ns && change_ns < next_ns)
            next_ns = change_ns;
    }
    return next_ns;
}

/* Opens, closes, watches or ignores the listening socket as required now, and sets the timer for the next change. */
static void server_update_listener(struct chaos *server)
{
    int64_t now_ns = bide_now(), since_ns = now_ns - server->start_ns,
            next_ns = server_next_outage_change(server, since_ns);
    next_ns = next_ns == BIDE_NEVER ? BIDE_NEVER : server->start_ns + next_ns;
    if (server_is_refusing(server, since_ns))
        server_stop_listening(server);
    else if (!server_start_listening(server))
        server->accept_ns = now_ns + ACCEPT_PAUSE_NS;
    if (server->listen_fd >= 0 && !server_watch_listener(server, now_ns >= server->accept_ns))
        server->accept_ns = now_ns + ACCEPT_PAUSE_NS;
    if (now_ns < server->accept_ns && server->accept_ns < next_ns)
        next_ns = server->accept_ns;
    bide_timers_set(&server->timers, &server->listen_timer, next_ns); /* cannot fail: chaos_new set it before */
}

static void server_accept(struct chaos *server)
{
    for (int i = 0; i < ACCEPTS_MAX; i++) {
        int fd = accept4(server->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0)
            chaos_connection_new(server, fd);
        else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            server->accept_ns = bide_now() + ACCEPT_PAUSE_NS;
            server_update_listener(server);
            return;
        } else if (errno != EINTR && errno != ECONNABORTED) {
            return;
        }
    }
}

/* ---- the server ---- */

static enum bide_err server_open(struct chaos *server)
{
    struct epoll_event watch = {.events = EPOLLIN, .data.ptr = &server->cancel};
    if ((server->hold_fd = bind_loopback(&server->port)) < 0 || !server_start_listening(server))
        return BIDE_ERR_SYSTEM;
    if ((server->epoll_fd = epoll_create1(EPOLL_CLOEXEC)) < 0 || bide_cancel_init(&server->cancel) != BIDE_OK)
        return BIDE_ERR_SYSTEM;
    if (epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, bide_cancel_fd_get(&server->cancel), &watch) != 0)
        return BIDE_ERR_SYSTEM;
    return bide_timers_set(&server->timers, &server->listen_timer, 0);
}

enum bide_err chaos_new(struct chaos **server, const struct chaos_config *config, struct chaos_error *error)
{
    enum bide_err err = BIDE_ERR_NOMEM;
    struct chaos *made = malloc(sizeof *made); /* only the part before the large buffers is zeroed */
    *server = NULL;
    if (error != NULL)
        *error = (struct chaos_error){0};
    if (made == NULL)
        goto out;
    memset(made, 0, offsetof(struct chaos, in));
    made->hold_fd = made->listen_fd = made->epoll_fd = -1;
    made->journal.fd = config->journal_fd;
    made->journal.keep = config->keep;
    made->port = config->port;
    made->seed = config->seed;
    made->idle_ns = config->idle_ns > 0 ? config->idle_ns : CHAOS_IDLE_NS;
    made->start_ns = bide_now();
    if ((err = server_open(made)) != BIDE_OK)
        goto out;
    if ((err = chaos_script_read(&made->script, config->script != NULL ? config->script : "", made->port, error)) != 0)
        goto out;
    *server = made;
    made = NULL;
out:
    chaos_free(made);
    return err;
}

void chaos_free(struct chaos *server)
{
    if (server == NULL)
        return;
    int saved = errno;
    chaos_connections_close_all(server);
    chaos_connections_free_closed(server);
    chaos_journal_free(&server->journal);
    chaos_script_free(&server->script);
    bide_timers_free(&server->timers);
    bide_cancel_free(&server->cancel);
    server_stop_listening(server);
    if (server->hold_fd >= 0)
        close(server->hold_fd);
    if (server->epoll_fd >= 0)
        close(server->epoll_fd);
    free(server);
    errno = saved;
}

uint16_t chaos_port(const struct chaos *server)
{
    return server->port;
}

void chaos_stop(struct chaos *server)
{
    bide_cancel_now(&server->cancel);
}

uint64_t chaos_requests(const struct chaos *server)
{
    return __atomic_load_n(&server->journal.requests, __ATOMIC_RELAXED);
}

int chaos_journal_error(const struct chaos *server)
{
    return server->journal.error;
}

const struct chaos_seen *chaos_seen(const struct chaos *server, size_t *count)
{
    *count = server->journal.count;
    return server->journal.seen;
}

/* ---- serving ---- */

/* Returns the milliseconds until the first timer, rounded up so that no timer fires early. */
static int server_poll_timeout_ms(const struct chaos *server)
{
    int64_t due_ns = bide_timers_due_get(&server->timers);
    if (due_ns == BIDE_NEVER)
        return POLL_MAX_MS;
    int64_t left_ns = due_ns - bide_now();
    return left_ns <= 0 ? 0 : left_ns < POLL_MAX_MS * BIDE_MS ? (int)((left_ns + BIDE_MS - 1) / BIDE_MS) : POLL_MAX_MS;
}

static void server_run_timers(struct chaos *server)
{
    int64_t now_ns = bide_now(); /* a timer set to "now" meanwhile waits for the next turn */
    struct bide_timer *timer;
    while ((timer = bide_timers_pop(&server->timers, now_ns)) != NULL)
        if (timer == &server->listen_timer)
            server_update_listener(server);
        else
            chaos_connection_timer(timer);
}

/* Returns false if the server was stopped. */
static bool server_handle_events(struct chaos *server, const struct epoll_event *event, int count)
{
    for (int i = 0; i < count; i++) {
        if (event[i].data.ptr == &server->cancel)
            return false;
        if (event[i].data.ptr == server)
            server_accept(server);
        else
            chaos_connection_event(event[i].data.ptr, event[i].events);
    }
    return true;
}

enum bide_err chaos_run(struct chaos *server)
{
    struct epoll_event event[EVENTS_MAX];
    enum bide_err err = BIDE_OK;
    for (bool going = true; going;) {
        chaos_journal_flush(&server->journal);
        int count = epoll_wait(server->epoll_fd, event, EVENTS_MAX, server_poll_timeout_ms(server));
        if (count < 0 && errno != EINTR) {
            err = BIDE_ERR_SYSTEM;
            break;
        }
        going = server_handle_events(server, event, count);
        server_run_timers(server);
        chaos_connections_free_closed(server);
    }
    chaos_connections_close_all(server);
    chaos_connections_free_closed(server);
    chaos_journal_finish(&server->journal);
    return err;
}
