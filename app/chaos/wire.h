/* wire.h - a connection's socket: input not consumed yet, output not sent yet. */
#ifndef CHAOS_WIRE_H
#define CHAOS_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHAOS_WIRE_ROOM 65536u /* of the buffers shared by all connections */

enum chaos_io {
    CHAOS_IO_DONE = 0, /* input was read, or all output was sent */
    CHAOS_IO_LATER,    /* wait for the next epoll event */
    CHAOS_IO_GONE,     /* the client closed or reset the connection, or there is no memory */
};

/* wire.c writes all fields, with these exceptions: connection.c sets `fd` at the start, `readable` and `hung_up` by
 * epoll events, and clears `turn_bytes` at the start of a turn. */
struct chaos_wire {
    int fd; /* -1: closed */
    bool readable;
    bool hung_up;        /* FIN or RST was received: keep reading until recv returns it */
    uint32_t turn_bytes; /* transferred in this turn */
    char *at;            /* input not consumed yet */
    size_t left;
    char *buffer; /* NULL: input is in the shared buffer */
    size_t room;
    const char *out; /* output not sent yet */
    size_t out_left;
    char *out_buffer; /* NULL: output is in the shared buffer */
};

/* Reads more input behind the rest. `shared` is a buffer of CHAOS_WIRE_ROOM bytes, used when there is no rest. */
enum chaos_io chaos_wire_read(struct chaos_wire *wire, char *shared);
void chaos_wire_consume(struct chaos_wire *wire, size_t count);

/* Appends a copy to the unsent output; false without memory. */
bool chaos_wire_append(struct chaos_wire *wire, const char *bytes, size_t length);

/* Sets the output to bytes in the shared buffer; all previous output must have been sent. */
void chaos_wire_set_output(struct chaos_wire *wire, const char *shared, size_t length);

/* Sends at most `most` bytes of the output. */
enum chaos_io chaos_wire_send(struct chaos_wire *wire, size_t most);

/* Returns the number of bytes in the kernel's receive queue, and not yet sent from its send queue. */
int chaos_wire_unread(const struct chaos_wire *wire);
int chaos_wire_unsent(const struct chaos_wire *wire);

/* Ends a turn: moves unfinished data from the shared buffers to the connection's own, and frees its empty buffers.
 * Returns false without memory. */
bool chaos_wire_end_turn(struct chaos_wire *wire);

/* Closes with FIN (RST if input is unread), or with RST. The buffers remain until chaos_wire_free. */
void chaos_wire_close(struct chaos_wire *wire);
void chaos_wire_reset(struct chaos_wire *wire);
void chaos_wire_free(struct chaos_wire *wire);

#endif
