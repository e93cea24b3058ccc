/* live_tcp.c - a TCP server that runs a function in a thread for each connection. */
#include "live_tcp.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct connection {
    struct live_tcp *server;
    pthread_t thread;
    unsigned number;
    int fd; /* -1: closed. Guarded by the lock, because the number may be reused at once */
};

struct live_tcp {
    live_tcp_function *serve;
    void *context;
    pthread_t thread;
    pthread_mutex_t lock;
    int listener;
    uint16_t port;
    unsigned count;
    struct connection connection[LIVE_TCP_MAX];
};

static void die(const char *message)
{
    fprintf(stderr, "live_tcp: %s\n", message);
    abort();
}

static void *serve_one(void *context)
{
    struct connection *c = context;
    c->server->serve(c->server->context, c->fd, c->number);
    pthread_mutex_lock(&c->server->lock);
    close(c->fd);
    c->fd = -1;
    pthread_mutex_unlock(&c->server->lock);
    return NULL;
}

static void *accept_all(void *context)
{
    struct live_tcp *server = context;
    for (int fd; (fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0;) {
        if (server->count == LIVE_TCP_MAX)
            die("too many connections");
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)); /* several small writes per response */
        struct connection *c = &server->connection[server->count];
        *c = (struct connection){.server = server, .number = ++server->count, .fd = fd};
        if (pthread_create(&c->thread, NULL, serve_one, c) != 0)
            die("cannot start a thread");
    }
    return NULL;
}

struct live_tcp *live_tcp_new(live_tcp_function *serve, void *context)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    struct live_tcp *server = calloc(1, sizeof *server);
    if (!server)
        die("out of memory");
    server->serve = serve;
    server->context = context;
    pthread_mutex_init(&server->lock, NULL);
    server->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(server->listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(server->listener, 64) != 0 ||
        getsockname(server->listener, (struct sockaddr *)&address, &length) != 0)
        die("cannot listen");
    server->port = ntohs(address.sin_port);
    if (pthread_create(&server->thread, NULL, accept_all, server) != 0)
        die("cannot start a thread");
    return server;
}

void live_tcp_free(struct live_tcp *server)
{
    if (!server)
        return;
    shutdown(server->listener, SHUT_RDWR); /* interrupts accept */
    pthread_join(server->thread, NULL);
    pthread_mutex_lock(&server->lock);
    for (unsigned i = 0; i < server->count; i++)
        if (server->connection[i].fd >= 0)
            shutdown(server->connection[i].fd, SHUT_RDWR);
    pthread_mutex_unlock(&server->lock);
    for (unsigned i = 0; i < server->count; i++)
        pthread_join(server->connection[i].thread, NULL);
    close(server->listener);
    pthread_mutex_destroy(&server->lock);
    free(server);
}

uint16_t live_tcp_port(const struct live_tcp *server)
{
    return server->port;
}

bool live_tcp_read(int fd, void *into, size_t length)
{
    return length == 0 || recv(fd, into, length, MSG_WAITALL) == (ssize_t)length;
}

bool live_tcp_write(int fd, const void *at, size_t length)
{
    const char *from = at;
    while (length > 0) {
        ssize_t n = send(fd, from, length, MSG_NOSIGNAL);
        if (n <= 0)
            return false;
        from += n;
        length -= (size_t)n;
    }
    return true;
}

bool live_tcp_read_head(int fd, char *into, size_t size)
{
    size_t length = 0;
    while (length + 1 < size && recv(fd, into + length, 1, 0) == 1) {
        into[++length] = '\0';
        if (length >= 4 && memcmp(into + length - 4, "\r\n\r\n", 4) == 0)
            return true;
    }
    return false;
}

void live_tcp_reset(int fd)
{
    struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

/* Relays the available bytes. Returns false if that side closed. */
static bool relay_bytes(int from, int to)
{
    char piece[16384];
    ssize_t n = recv(from, piece, sizeof piece, 0);
    return n > 0 && live_tcp_write(to, piece, (size_t)n);
}

void live_tcp_relay(int client, int server, bool cut)
{
    struct pollfd ends[2] = {{.fd = client, .events = POLLIN}, {.fd = server, .events = POLLIN}};
    for (bool open = true; open && poll(ends, 2, -1) > 0;) {
        if (ends[1].revents != 0)
            open = !cut && relay_bytes(server, client);
        if (open && ends[0].revents != 0)
            open = relay_bytes(client, server);
    }
}

int live_tcp_connect(uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    close(fd);
    return -1;
}
