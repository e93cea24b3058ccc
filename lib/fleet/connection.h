/* link.h - a connection to Redis on which no step waits: a socket of our own, TLS, hiredis' formatter and reader.
 *
 * The driver calls fleet_link_step when the descriptor is ready or a deadline has come, and learns what it waits for. A
 * link goes through its beginning by itself: look up (on a thread of its own, for getaddrinfo has no deadline),
 * connect, TLS, AUTH, SELECT; then it is READY, and commands may be sent. Replies come in the order of the commands.
 * One thing wrong and the link is DOWN: `problem` says what, without secrets, and only fleet_link_open leads out of it.
 *
 * Untrusted: a reply may be anything. More than FLEET_REPLY_MAX bytes, deeper than an array of integers, not the
 * protocol at all, or not asked for: down. */
#ifndef FLEET_CONNECTION_H
#define FLEET_CONNECTION_H

#include <stddef.h>
#include <stdint.h>

#include "url.h"

#define FLEET_REPLY_MAX        16384u /* bytes of one reply that are taken before it is called garbage */
#define FLEET_REPLY_VALUES_MAX 64u
#define FLEET_REPLY_ERROR_MAX  320u   /* -MOVED may name a host of 255 */
#define FLEET_COMMAND_MAX      16384u /* bytes */
#define FLEET_COMMAND_ARGS_MAX 64     /* of one command */

enum fleet_connection_state { FLEET_CONNECTION_DOWN = 0, FLEET_CONNECTION_OPENING, FLEET_CONNECTION_READY };

struct fleet_redis_reply {
    enum { FLEET_REPLY_ERROR, FLEET_REPLY_VALUES, FLEET_REPLY_OTHER } kind;
    char error
        [FLEET_REPLY_ERROR_MAX]; /* "NOSCRIPT No matching script": printable bytes, the password replaced (reply.c) */
    int64_t value[FLEET_REPLY_VALUES_MAX];
    size_t values; /* an integer or an array of them; strings that are decimal integers count. One nil: 0 values */
};

struct fleet_connection; /* allocated by fleet_link_new */

struct fleet_connection *
fleet_connection_new(const struct fleet_url *url);         /* which must live as long. NULL: no memory */
void fleet_connection_free(struct fleet_connection *conn); /* without a last byte; accepts NULL */

/* Begins, with the next step; must be READY by deadline_ns, or it goes DOWN. `elsewhere` "host:port" (from -MOVED)
 * instead of the URL's; NULL: the URL's. */
void fleet_connection_open(struct fleet_connection *conn, const char *endpoint, int64_t deadline_ns);

enum fleet_connection_state fleet_connection_state(const struct fleet_connection *conn);
const char *fleet_connection_problem(
    const struct fleet_connection *conn); /* "redis://cache:6379/0: Connection refused"; "": none */

/* What to poll for: fd (-1: nothing) and POLLIN/POLLOUT bits. It is another one after each step. */
int fleet_connection_fd(const struct fleet_connection *conn, short *events);

/* Does what can be done without waiting. Take all replies after each step, also when it went DOWN. */
void fleet_connection_step(struct fleet_connection *conn, int64_t now_ns);

/* Queues one command, READY only; false: no room, nothing queued. Its reply must be there by deadline_ns, or the link
 * goes DOWN. argv as for hiredis; length NULL: texts. */
bool fleet_connection_send(struct fleet_connection *conn, int argc, const char *const *argv, const size_t *length,
                           int64_t deadline_ns);

/* The next reply, in order. False: none yet, or garbage, and now the link is DOWN. What was read before a link went
 * DOWN is still given. */
bool fleet_connection_next_reply(struct fleet_connection *conn, struct fleet_redis_reply *reply);

/* When to step at the latest, whatever is polled: BIDE_NEVER if it does not matter, the past for "at once". */
int64_t fleet_connection_deadline_ns(const struct fleet_connection *conn);

/* A last push of what is queued, without waiting; then DOWN, with no problem. */
void fleet_connection_close(struct fleet_connection *conn);

/* In a child after fork: closes the descriptors and writes nothing; only fleet_link_free may follow. No allocation, no
 * lock. */
void fleet_connection_abandon(struct fleet_connection *conn);

#endif
