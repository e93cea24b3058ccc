/* connection.h - a non-blocking connection to Redis: our own socket, OpenSSL, hiredis' command formatter and reply
 * parser.
 *
 * The caller polls fleet_connection_fd and calls fleet_connection_step when it is ready or a deadline has come. Opening
 * proceeds by itself: resolve the host (on a separate thread, because getaddrinfo has no deadline), connect, TLS, AUTH,
 * SELECT. When the state is READY, commands may be sent. Replies come in the order of the commands. After any error the
 * connection is DOWN: fleet_connection_problem says why, without secrets, and only fleet_connection_open leads out of
 * that state.
 *
 * The peer is not trusted. A reply of more than FLEET_REPLY_MAX bytes, nested deeper than an array of integers, not in
 * the Redis protocol (RESP), or without a command closes the connection. */
#ifndef FLEET_CONNECTION_H
#define FLEET_CONNECTION_H

#include <stddef.h>
#include <stdint.h>

#include "url.h"

#define FLEET_REPLY_MAX        16384u /* bytes of a reply before it counts as garbage */
#define FLEET_REPLY_VALUES_MAX 64u
#define FLEET_REPLY_ERROR_MAX  320u   /* -MOVED may name a host of 255 bytes */
#define FLEET_COMMAND_MAX      16384u /* bytes */
#define FLEET_COMMAND_ARGS_MAX 64     /* of a command */

enum fleet_connection_state { FLEET_CONNECTION_DOWN = 0, FLEET_CONNECTION_OPENING, FLEET_CONNECTION_READY };

struct fleet_redis_reply {
    enum { FLEET_REPLY_ERROR, FLEET_REPLY_VALUES, FLEET_REPLY_OTHER } kind;
    char error[FLEET_REPLY_ERROR_MAX]; /* printable, password masked */
    int64_t value[FLEET_REPLY_VALUES_MAX];
    size_t values; /* integers, also as strings; a nil makes it 0 */
};

struct fleet_connection; /* allocated by fleet_connection_new */

struct fleet_connection *fleet_connection_new(const struct fleet_url *url); /* url must outlive it. NULL: no memory */
void fleet_connection_free(struct fleet_connection *conn);                  /* sends nothing; accepts NULL */

/* Starts opening, at the next step; the connection goes DOWN unless READY by deadline_ns. `endpoint`: "host:port" of a
 * -MOVED, or NULL for the URL's. */
void fleet_connection_open(struct fleet_connection *conn, const char *endpoint, int64_t deadline_ns);

enum fleet_connection_state fleet_connection_state(const struct fleet_connection *conn);

/* Returns why the connection is DOWN, "redis://cache:6379/0: Connection refused"; "" if there is no problem. */
const char *fleet_connection_problem(const struct fleet_connection *conn);

/* Returns the descriptor to poll (-1: none) and sets POLLIN and POLLOUT bits. Both may change with every step. */
int fleet_connection_fd(const struct fleet_connection *conn, short *events);

/* Makes all progress that is possible without waiting. Read all replies after each step, also when it went DOWN. */
void fleet_connection_step(struct fleet_connection *conn, int64_t now_ns);

/* Queues a command. Returns false if not READY or without room; then nothing is queued. The connection goes DOWN if the
 * reply is not there by deadline_ns. argc, argv, length as for redisAppendCommandArgv; length NULL: strings. */
bool fleet_connection_send(struct fleet_connection *conn, int argc, const char *const *argv, const size_t *length,
                           int64_t deadline_ns);

/* Returns the next reply, in order; false if there is none yet, or after garbage, which makes the connection DOWN.
 * Replies received before the connection went DOWN are still returned. */
bool fleet_connection_next_reply(struct fleet_connection *conn, struct fleet_redis_reply *reply);

/* Returns when to step at the latest, whatever poll says: BIDE_NEVER for no limit, a past time for "at once". */
int64_t fleet_connection_deadline_ns(const struct fleet_connection *conn);

/* Flushes the queue without waiting, then goes DOWN, without a problem. */
void fleet_connection_close(struct fleet_connection *conn);

/* In a child after fork: closes the descriptors and sends nothing. Only fleet_connection_free may follow. No
 * allocation, no lock. */
void fleet_connection_abandon(struct fleet_connection *conn);

#endif
