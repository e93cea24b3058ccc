/* server.h - internal state of the server, and the functions of connections that it calls. */
#ifndef CHAOS_SERVER_H
#define CHAOS_SERVER_H

#include <bide/timers.h>
#include <bide/wait.h>

#include "journal.h"
#include "response.h"
#include "script.h"
#include "wire.h"

/* server.c writes all fields, with these exceptions: connection.c writes `connections`, `live`, `closed` and the
 * contents of `in` and `out` (through wire.c and response.c); `script`, `journal` and `timers` are changed by their own
 * functions only. */
struct chaos {
    struct chaos_script script;
    struct chaos_journal journal;
    struct bide_timers timers;
    struct bide_cancel cancel;
    int epoll_fd;
    int hold_fd;   /* bound but never listening: reserves the port while connections are refused */
    int listen_fd; /* -1: connections are refused */
    uint16_t port;
    uint64_t seed;
    int64_t idle_ns;
    int64_t start_ns;
    struct bide_timer listen_timer;  /* when to update the listening socket */
    int64_t accept_ns;               /* do not accept before this: descriptors ran out */
    bool accepting;                  /* the listening socket is in the epoll set */
    uint64_t connections;            /* accepted so far */
    struct chaos_connection *live;   /* list of open connections */
    struct chaos_connection *closed; /* closed in this turn; pending epoll events may still refer to them */
    char in[CHAOS_WIRE_ROOM];        /* shared by all connections: see wire.c */
    char out[CHAOS_RESPONSE_ROOM];
};

/* Takes ownership of an accepted descriptor; closes it if there is no memory. */
void chaos_connection_new(struct chaos *server, int fd);

/* Handles epoll events. */
void chaos_connection_event(struct chaos_connection *connection, uint32_t events);

/* Handles the connection's timer, which was popped because it is due. */
void chaos_connection_timer(struct bide_timer *timer);

/* Closes all connections; frees closed connections. */
void chaos_connections_close_all(struct chaos *server);
void chaos_connections_free_closed(struct chaos *server);

#endif
