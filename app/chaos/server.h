/* server.h - the server as its parts see it, and what a connection offers to it. */
#ifndef CHAOS_SERVER_H
#define CHAOS_SERVER_H

#include <bide/timers.h>
#include <bide/wait.h>

#include "journal.h"
#include "response.h"
#include "script.h"
#include "wire.h"

struct chaos {
    struct chaos_script script;
    struct chaos_journal journal;
    struct bide_timers timers;
    struct bide_cancel cancel;
    int epoll_fd;
    int hold_fd;   /* bound, never listening: the port stays ours, also while connections are refused */
    int listen_fd; /* -1: connections are refused */
    uint16_t port;
    uint64_t seed;
    int64_t idle_ns;
    int64_t start_ns;
    struct bide_timer listen_timer;  /* when to look at the listening socket again */
    int64_t accept_ns;               /* not before: there were no descriptors */
    bool accepting;                  /* the listening socket is watched */
    uint64_t connections;            /* so far */
    struct chaos_connection *live;   /* a list */
    struct chaos_connection *closed; /* closed in this turn: events in hand may still name them */
    char in[CHAOS_WIRE_ROOM];        /* shared by all connections: see wire.c */
    char out[CHAOS_RESPONSE_ROOM];
};

/* A descriptor that was accepted becomes the connection's, or is closed. */
void chaos_connection_new(struct chaos *server, int fd);

/* Events of epoll. */
void chaos_connection_event(struct chaos_connection *connection, uint32_t events);

/* Its timer, which was popped, is due. */
void chaos_connection_timer(struct bide_timer *timer);

/* Ends all, and forgets those that are dead. */
void chaos_connections_close_all(struct chaos *server);
void chaos_connections_free_closed(struct chaos *server);

#endif
