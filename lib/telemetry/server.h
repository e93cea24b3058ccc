/* server.h - serves a page to Prometheus: HTTP/1.1, GET and HEAD of /metrics, driven by the poll loop of its owner.
 *
 *     size_t count = telemetry_server_fds(server, fds);
 *     poll(fds, count, until telemetry_server_due(server));
 *     telemetry_server_process(server, fds, count, bide_now());
 *
 * A connection serves one request and is closed. All it can hold on to is bounded:
 *   - connections: 64. One more, and the oldest is closed: the one that has been slow for longest;
 *   - time: 10 s from accept to the last byte of the response, and a second for the client to read it;
 *   - the head of a request: 8 KiB;
 *   - pages: made when a request is complete, freed when they are sent, 8 at a time; one more, and the oldest
 *   connection
 *     with a page is closed. So clients that request pages and read nothing hold 8 of them.
 * No function blocks or raises SIGPIPE. If the process has no file descriptor left, the server accepts again after a
 * second.
 *
 * A page that its client did not read is not counted as a loss: the counters in it are in the next one, too.
 *
 * Threads: one thread at a time. */
#ifndef TELEMETRY_SERVER_H
#define TELEMETRY_SERVER_H

#include <bide/base.h>

#include <poll.h>

#define TELEMETRY_SERVER_CONNECTIONS 64u
#define TELEMETRY_SERVER_FDS         65u /* connections, and the socket that listens */

struct telemetry_server;

/* Listens. The address is "127.0.0.1:9464", "[::1]:9464", or another numeric address of this host; "localhost:9464" and
 * ":9464" are 127.0.0.1. Port 0 is any free port. `page` returns the page in a buffer of malloc and sets *length, or
 * returns NULL if there is no memory: the response is then 503. */
enum bide_err telemetry_server_open(struct telemetry_server **server, const char *address,
                                    char *(*page)(void *context, size_t *length), void *context,
                                    struct bide_problem *problem);

/* Stores what to poll for. Returns how many there are; a descriptor may be -1, which poll ignores. */
size_t telemetry_server_fds(const struct telemetry_server *server, struct pollfd fds[TELEMETRY_SERVER_FDS]);

/* Returns when to call telemetry_server_process at the latest; BIDE_NEVER: when a descriptor is ready. */
int64_t telemetry_server_due(const struct telemetry_server *server);

/* Does all that can be done without blocking. fds: what was polled, or a part of it; descriptors of others in it are
 * ignored. */
void telemetry_server_process(struct telemetry_server *server, const struct pollfd *fds, size_t count, int64_t now_ns);

/* Returns the port that it listens on. */
uint16_t telemetry_server_port(const struct telemetry_server *server);

/* In a forked child: closes its copy of the socket that listens, and nothing else, because another thread of the parent
 * may have been using the rest. Otherwise the child would occupy the address, and connections that nobody accepts would
 * wait in its backlog. */
void telemetry_server_forked(const struct telemetry_server *server);

/* Closes all connections. Accepts NULL. */
void telemetry_server_close(struct telemetry_server *server);

#endif
