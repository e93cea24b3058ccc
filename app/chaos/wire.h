/* wire.h - the two directions of a connection's socket: input not taken yet, output not sent yet. */
#ifndef CHAOS_WIRE_H
#define CHAOS_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHAOS_WIRE_ROOM 65536u /* of the buffers that all connections share */

enum chaos_io {
    CHAOS_IO_DONE = 0, /* some was read; all was sent */
    CHAOS_IO_LATER,    /* epoll will tell when there is more, or more room */
    CHAOS_IO_GONE,     /* the client has closed or is gone, or there is no memory */
};

struct chaos_wire {
    int fd; /* -1: closed */
    bool readable;
    bool hung_up;        /* the client has sent FIN or RST: read on until it shows */
    uint32_t turn_bytes; /* moved in this turn */
    char *at;            /* input that was not taken yet */
    size_t left;
    char *buffer; /* NULL: it is in the shared one */
    size_t room;
    const char *out; /* output that was not sent yet */
    size_t out_left;
    char *out_buffer; /* NULL: it is in the shared one */
};

/* Reads more input behind what is left. shared: a buffer of CHAOS_WIRE_ROOM, used when nothing is left. */
enum chaos_io chaos_wire_read(struct chaos_wire *wire, char *shared);
void chaos_wire_consume(struct chaos_wire *wire, size_t count);

/* Output behind what is not sent yet, copied; false: no memory. */
bool chaos_wire_append(struct chaos_wire *wire, const char *bytes, size_t length);

/* Output in the shared buffer, when all before it was sent. */
void chaos_wire_set_output(struct chaos_wire *wire, const char *shared, size_t length);

/* Sends of the output, at most so much. */
enum chaos_io chaos_wire_send(struct chaos_wire *wire, size_t most);

/* Bytes in the kernel that we did not read, and that it did not send. */
int chaos_wire_unread(const struct chaos_wire *wire);
int chaos_wire_unsent(const struct chaos_wire *wire);

/* The end of a turn: what is left in shared buffers moves to our own, and those that are empty go. False: no memory. */
bool chaos_wire_end_turn(struct chaos_wire *wire);

/* Closes: with FIN, unless something is unread, or with RST. The buffers stay until chaos_wire_free. */
void chaos_wire_close(struct chaos_wire *wire);
void chaos_wire_reset(struct chaos_wire *wire);
void chaos_wire_free(struct chaos_wire *wire);

#endif
