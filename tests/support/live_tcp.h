/* live_tcp.h - for live tests: a server whose every connection is a function in a thread of its own.
 *
 *     static void slam(void *context, int fd, unsigned number) { live_tcp_reset(fd); }
 *     struct live_tcp *server = live_tcp_new(slam, NULL);
 *     ... live_tcp_port(server) ...
 *     live_tcp_free(server);
 *
 * The connection is closed when the function returns. live_tcp_free ends what its functions are reading or writing, and
 * returns when all have returned. */
#ifndef LIVE_TCP_H
#define LIVE_TCP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LIVE_TCP_MAX 1024u /* connections in the life of a server */

struct live_tcp;

typedef void live_tcp_function(void *context, int fd, unsigned number); /* number: of the connection, from 1 */

struct live_tcp *live_tcp_new(live_tcp_function *serve, void *context);
void live_tcp_free(struct live_tcp *server); /* accepts NULL */
uint16_t live_tcp_port(const struct live_tcp *server);

/* All of it, or false: the other side left. */
bool live_tcp_read(int fd, void *into, size_t length);
bool live_tcp_write(int fd, const void *at, size_t length);

/* Reads an HTTP/1.1 head, and nothing behind it, into a text. False: the other side left, or it is too long. */
bool live_tcp_read_head(int fd, char *into, size_t size);

/* When it is closed, the other side gets a reset instead of an end. */
void live_tcp_reset(int fd);

/* Passes bytes on between the two until one of them ends; with `cut`, until the first byte comes from the server. */
void live_tcp_relay(int client, int server, bool cut);

/* A connection to a port here, or -1. */
int live_tcp_connect(uint16_t port);

#endif
