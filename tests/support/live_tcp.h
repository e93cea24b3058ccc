/* live_tcp.h - for live tests: a TCP server that runs a function in a thread for each connection.
 *
 *     static void reset_at_once(void *context, int fd, unsigned number) { live_tcp_reset(fd); }
 *     struct live_tcp *server = live_tcp_new(reset_at_once, NULL);
 *     ... live_tcp_port(server) ...
 *     live_tcp_free(server);
 *
 * The connection is closed when the function returns. live_tcp_free interrupts reads and writes of the functions and
 * returns after all of them have returned. */
#ifndef LIVE_TCP_H
#define LIVE_TCP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LIVE_TCP_MAX 1024u /* connections over the lifetime of a server */

struct live_tcp;

typedef void live_tcp_function(void *context, int fd, unsigned number); /* number: of the connection, from 1 */

struct live_tcp *live_tcp_new(live_tcp_function *serve, void *context);
void live_tcp_free(struct live_tcp *server); /* accepts NULL */
uint16_t live_tcp_port(const struct live_tcp *server);

/* Transfer all bytes. Return false if the peer closed. */
bool live_tcp_read(int fd, void *into, size_t length);
bool live_tcp_write(int fd, const void *at, size_t length);

/* Reads an HTTP/1.1 head, and nothing after it, as a text. Returns false if the peer closed or the head is too long. */
bool live_tcp_read_head(int fd, char *into, size_t size);

/* Makes close send a reset instead of a FIN. */
void live_tcp_reset(int fd);

/* Relays bytes in both directions until a side closes; with `cut`, until the server sends the first byte. */
void live_tcp_relay(int client, int server, bool cut);

/* Connects to a local port. Returns -1 on failure. */
int live_tcp_connect(uint16_t port);

#endif
