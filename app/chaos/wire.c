/* wire.c - a connection's socket: input not consumed yet, output not sent yet.
 *
 * All connections share one input buffer and one output buffer. Most requests and responses fit in a single piece, so
 * the contents of a shared buffer are used up before the next connection gets its turn; the rest moves to a buffer of
 * the connection's own at the end of the turn. An idle connection has no buffer.
 *
 * epoll is edge-triggered and registered once, so `readable` and `hung_up` remember its events. A read that did not
 * fill the buffer has emptied the socket, unless a FIN is known to follow. */
#include "wire.h"

#include <errno.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define READ_MORE_BYTES 4096u /* per read, behind the first part of a head */

/* ---- input ---- */

/* Frees the connection's own input buffer. */
static void wire_free_input_buffer(struct chaos_wire *wire)
{
    free(wire->buffer);
    wire->buffer = NULL;
    wire->room = 0;
}

/* Moves the unconsumed input to the start of the connection's own buffer, with room for more behind it. */
static bool wire_own_input(struct chaos_wire *wire, size_t more)
{
    size_t need = wire->left + more;
    if (wire->buffer != NULL && need <= wire->room) {
        memmove(wire->buffer, wire->at, wire->left);
    } else {
        char *made = malloc(need * 2);
        if (made == NULL)
            return false;
        memcpy(made, wire->at, wire->left);
        free(wire->buffer);
        wire->buffer = made;
        wire->room = need * 2;
    }
    wire->at = wire->buffer;
    return true;
}

enum chaos_io chaos_wire_read(struct chaos_wire *wire, char *shared)
{
    size_t room = wire->left > 0 ? READ_MORE_BYTES : CHAOS_WIRE_ROOM;
    ssize_t n;
    if (!wire->readable)
        return CHAOS_IO_LATER;
    if (wire->left > 0 && !wire_own_input(wire, room))
        return CHAOS_IO_GONE;
    if (wire->left == 0) {
        wire_free_input_buffer(wire);
        wire->at = shared;
    }
    while ((n = recv(wire->fd, wire->at + wire->left, room, 0)) < 0 && errno == EINTR)
        continue;
    wire->readable = n == (ssize_t)room || (n > 0 && wire->hung_up);
    if (n <= 0)
        return n < 0 && errno == EAGAIN ? CHAOS_IO_LATER : CHAOS_IO_GONE;
    wire->left += (size_t)n;
    wire->turn_bytes += (uint32_t)n;
    return CHAOS_IO_DONE;
}

void chaos_wire_consume(struct chaos_wire *wire, size_t count)
{
    wire->at += count;
    wire->left -= count;
}

int chaos_wire_unread(const struct chaos_wire *wire)
{
    int bytes = 0;
    return ioctl(wire->fd, FIONREAD, &bytes) == 0 ? bytes : 0;
}

/* ---- output ---- */

bool chaos_wire_append(struct chaos_wire *wire, const char *bytes, size_t length)
{
    char *made = malloc(wire->out_left + length + 1);
    if (made == NULL)
        return false;
    if (wire->out_left > 0)
        memcpy(made, wire->out, wire->out_left);
    memcpy(made + wire->out_left, bytes, length);
    free(wire->out_buffer);
    wire->out = wire->out_buffer = made;
    wire->out_left += length;
    return true;
}

void chaos_wire_set_output(struct chaos_wire *wire, const char *shared, size_t length)
{
    free(wire->out_buffer);
    wire->out_buffer = NULL;
    wire->out = shared;
    wire->out_left = length;
}

enum chaos_io chaos_wire_send(struct chaos_wire *wire, size_t most)
{
    size_t count = wire->out_left < most ? wire->out_left : most;
    while (count > 0) {
        ssize_t n = send(wire->fd, wire->out, count, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? CHAOS_IO_LATER : CHAOS_IO_GONE;
        wire->out += n;
        wire->out_left -= (size_t)n;
        count -= (size_t)n;
        wire->turn_bytes += (uint32_t)n;
    }
    return CHAOS_IO_DONE;
}

int chaos_wire_unsent(const struct chaos_wire *wire)
{
    int bytes = 0;
    return ioctl(wire->fd, SIOCOUTQNSD, &bytes) == 0 ? bytes : 0;
}

/* ---- end of a turn, end of the connection ---- */

bool chaos_wire_end_turn(struct chaos_wire *wire)
{
    bool kept = true;
    if (wire->left == 0)
        wire_free_input_buffer(wire);
    else if (wire->buffer == NULL)
        kept = wire_own_input(wire, 0);
    if (wire->out_left == 0)
        chaos_wire_set_output(wire, NULL, 0);
    else if (wire->out_buffer == NULL)
        kept &= chaos_wire_append(wire, "", 0);
    return kept;
}

void chaos_wire_close(struct chaos_wire *wire)
{
    close(wire->fd);
    wire->fd = -1;
}

void chaos_wire_reset(struct chaos_wire *wire)
{
    const struct linger none = {.l_onoff = 1, .l_linger = 0};
    setsockopt(wire->fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
    chaos_wire_close(wire);
}

void chaos_wire_free(struct chaos_wire *wire)
{
    free(wire->buffer);
    free(wire->out_buffer);
    *wire = (struct chaos_wire){.fd = -1};
}
