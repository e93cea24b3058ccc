/* live_h2.c - a raw cleartext HTTP/2 server. Sections refer to RFC 9113. */
#include "live_h2.h"

#include "live_tcp.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREFACE      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" /* section 3.4 */
#define PREFACE_MAX  (sizeof PREFACE - 1)
#define PREFACE_HEAD 18u
#define FRAME_MAX    16384u /* section 4.2: the limit without SETTINGS_MAX_FRAME_SIZE */
#define STREAMS_MAX  256u
#define ACTIONS_MAX  LIVE_H2_SEEN_MAX

enum { DATA = 0, HEADERS = 1, RST_STREAM = 3, SETTINGS = 4, PING = 6, GOAWAY = 7 };                /* section 6 */
enum { ACK = 0x1, END_STREAM = 0x1, END_HEADERS = 0x4 };                                           /* flags */
enum { NO_ERROR = 0, INTERNAL_ERROR = 2, REFUSED_STREAM = 7, CANCEL = 8, HTTP_1_1_REQUIRED = 13 }; /* section 7 */

struct live_h2 {
    struct live_tcp *tcp;
    enum live_h2_action actions[ACTIONS_MAX];
    size_t action_count;
    pthread_mutex_t lock;
    size_t count;
    struct live_h2_seen seen[LIVE_H2_SEEN_MAX];
    char url[64];
};

struct frame {
    size_t length;
    unsigned type;
    unsigned flags;
    uint32_t stream;
    unsigned char payload[FRAME_MAX];
};

static void put32(unsigned char *at, uint32_t value)
{
    at[0] = (unsigned char)(value >> 24);
    at[1] = (unsigned char)(value >> 16);
    at[2] = (unsigned char)(value >> 8);
    at[3] = (unsigned char)value;
}

static uint32_t get32(const unsigned char *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* Section 4.1. */
/* Writes the frame at once: the rest of a frame that a client has read in part looks like garbage to it. */
static bool send_frame(int fd, unsigned type, unsigned flags, uint32_t stream, const void *payload, size_t length)
{
    unsigned char frame[9 + 256] = {0, (unsigned char)(length >> 8), (unsigned char)length, (unsigned char)type,
                                    (unsigned char)flags};
    if (length > sizeof frame - 9)
        abort();
    put32(frame + 5, stream);
    memcpy(frame + 9, payload, length);
    return live_tcp_write(fd, frame, 9 + length);
}

static bool read_frame(int fd, struct frame *frame)
{
    unsigned char head[9];
    if (!live_tcp_read(fd, head, sizeof head))
        return false;
    frame->length = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
    frame->type = head[3];
    frame->flags = head[4];
    frame->stream = get32(head + 5) & 0x7fffffffu;
    return frame->length <= sizeof frame->payload && live_tcp_read(fd, frame->payload, frame->length);
}

/* ---- actions ---- */

static enum live_h2_action record_request(struct live_h2 *server, struct live_h2_seen seen)
{
    pthread_mutex_lock(&server->lock);
    size_t n = server->count;
    seen.action = server->actions[n < server->action_count ? n : server->action_count - 1];
    if (n == LIVE_H2_SEEN_MAX) {
        fputs("live_h2: too many requests\n", stderr);
        abort();
    }
    server->seen[n] = seen;
    server->count++;
    pthread_mutex_unlock(&server->lock);
    return seen.action;
}

static bool send_response(int fd, uint32_t stream, const char *block, const char *body)
{
    return send_frame(fd, HEADERS, END_HEADERS, stream, block, strlen(block)) &&
           send_frame(fd, DATA, END_STREAM, stream, body, strlen(body));
}

static bool reset_stream(int fd, uint32_t stream, uint32_t error)
{
    unsigned char payload[4];
    put32(payload, error);
    return send_frame(fd, RST_STREAM, 0, stream, payload, sizeof payload);
}

/* Sends :status 200, content-length: 10 and five bytes. The stream is reset when the client has answered a PING and so
 * has seen these frames. */
static bool send_half_response(int fd, uint32_t stream)
{
    static const char block[] = "\x88\x0f\x0d\x02"
                                "10";
    unsigned char ping[8] = {0};
    put32(ping, stream);
    return send_frame(fd, HEADERS, END_HEADERS, stream, block, sizeof block - 1) &&
           send_frame(fd, DATA, 0, stream, "half\n", 5) && send_frame(fd, PING, 0, 0, ping, sizeof ping);
}

static bool go_away(int fd, uint32_t last_stream)
{
    unsigned char payload[8];
    put32(payload, last_stream);
    put32(payload + 4, NO_ERROR);
    return send_frame(fd, GOAWAY, 0, 0, payload, sizeof payload);
}

/* Returns false to close the connection. Header blocks follow RFC 7541: 0x88 is :status 200 of the static table, 0x08
 * the same name with another value. */
static bool perform_action(int fd, uint32_t stream, enum live_h2_action action)
{
    switch (action) {
    case LIVE_H2_OK: return send_response(fd, stream, "\x88", "ok\n");
    case LIVE_H2_503:
        return send_response(fd, stream,
                             "\x08\x03"
                             "503",
                             "busy\n");
    case LIVE_H2_REFUSE: return reset_stream(fd, stream, REFUSED_STREAM);
    case LIVE_H2_GOAWAY: return go_away(fd, stream > 2 ? stream - 2 : 0);
    case LIVE_H2_GOAWAY_AND_CLOSE: return go_away(fd, stream) && false;
    case LIVE_H2_CANCEL: return reset_stream(fd, stream, CANCEL);
    case LIVE_H2_INTERNAL_ERROR: return reset_stream(fd, stream, INTERNAL_ERROR);
    case LIVE_H2_HTTP_1_1_REQUIRED: return reset_stream(fd, stream, HTTP_1_1_REQUIRED);
    case LIVE_H2_HALF: return send_half_response(fd, stream);
    case LIVE_H2_CLOSE: return false;
    case LIVE_H2_SILENCE: return true;
    }
    return false;
}

/* ---- connections ---- */

static bool on_frame(struct live_h2 *server, int fd, const struct frame *f, struct live_h2_seen *streams)
{
    struct live_h2_seen *seen = &streams[f->stream / 2 % STREAMS_MAX];
    if (f->type == SETTINGS && !(f->flags & ACK))
        return send_frame(fd, SETTINGS, ACK, 0, "", 0);
    if (f->type == PING && f->flags & ACK)
        return reset_stream(fd, get32(f->payload), INTERNAL_ERROR);
    if (f->type == PING)
        return send_frame(fd, PING, ACK, 0, f->payload, f->length);
    if (f->type == DATA)
        seen->body_bytes += f->length;
    if ((f->type != DATA && f->type != HEADERS) || !(f->flags & END_STREAM))
        return true;
    seen->stream = f->stream;
    return perform_action(fd, f->stream, record_request(server, *seen));
}

/* upgraded: the request that asked for the upgrade, or NULL. */
static void serve_frames(struct live_h2 *server, int fd, unsigned number, const struct live_h2_seen *upgraded)
{
    struct live_h2_seen *streams = calloc(STREAMS_MAX, sizeof *streams);
    struct frame *frame = malloc(sizeof *frame);
    for (size_t i = 0; streams && i < STREAMS_MAX; i++)
        streams[i].connection = number;
    bool open = streams && frame && send_frame(fd, SETTINGS, 0, 0, "", 0);
    if (open && upgraded)
        open = perform_action(fd, 1, record_request(server, *upgraded));
    while (open && read_frame(fd, frame))
        open = on_frame(server, fd, frame, streams);
    free(frame);
    free(streams);
}

static void serve_http_1(struct live_h2 *server, int fd, struct live_h2_seen seen)
{
    static const char text[] = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n";
    char byte;
    record_request(server, seen);
    if (live_tcp_write(fd, text, sizeof text - 1))
        live_tcp_read(fd, &byte, 1); /* until the client closes */
}

/* RFC 7540 section 3.2: the request that asks for the upgrade is stream 1; the preface follows our 101. */
static void upgrade(struct live_h2 *server, int fd, struct live_h2_seen seen)
{
    static const char text[] = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n";
    char preface[PREFACE_MAX];
    if (live_tcp_write(fd, text, sizeof text - 1) && live_tcp_read(fd, preface, sizeof preface))
        serve_frames(server, fd, seen.connection, &seen);
}

/* Reads the body of an HTTP/1.1 request. Returns its length, or 0. */
static size_t read_body(int fd, const char *head)
{
    static const char name[] = "Content-Length: ";
    char body[256];
    const char *field = strstr(head, name);
    size_t length = field ? strtoul(field + sizeof name - 1, NULL, 10) : 0;
    return length <= sizeof body && live_tcp_read(fd, body, length) ? length : 0;
}

static void serve(void *context, int fd, unsigned number)
{
    struct live_h2 *server = context;
    struct live_h2_seen seen = {.connection = number};
    char head[8192];
    if (!live_tcp_read_head(fd, head, sizeof head)) /* the preface looks like a head, up to its last six bytes */
        return;
    if (strncmp(head, PREFACE, PREFACE_HEAD) == 0) {
        if (live_tcp_read(fd, head, PREFACE_MAX - PREFACE_HEAD))
            serve_frames(server, fd, number, NULL);
        return;
    }
    seen.body_bytes = read_body(fd, head);
    seen.stream = strstr(head, "Upgrade: h2c") ? 1 : 0;
    if (seen.stream > 0)
        upgrade(server, fd, seen);
    else
        serve_http_1(server, fd, seen);
}

struct live_h2 *live_h2_new(const enum live_h2_action *actions, size_t count)
{
    struct live_h2 *server = calloc(1, sizeof *server);
    if (!server || count == 0 || count > ACTIONS_MAX)
        abort();
    memcpy(server->actions, actions, count * sizeof *actions);
    server->action_count = count;
    pthread_mutex_init(&server->lock, NULL);
    server->tcp = live_tcp_new(serve, server);
    snprintf(server->url, sizeof server->url, "http://127.0.0.1:%u/", live_tcp_port(server->tcp));
    return server;
}

void live_h2_free(struct live_h2 *server)
{
    if (!server)
        return;
    live_tcp_free(server->tcp);
    pthread_mutex_destroy(&server->lock);
    free(server);
}

const char *live_h2_url(struct live_h2 *server)
{
    return server->url;
}

size_t live_h2_requests(struct live_h2 *server)
{
    pthread_mutex_lock(&server->lock);
    size_t n = server->count;
    pthread_mutex_unlock(&server->lock);
    return n;
}

struct live_h2_seen live_h2_seen(struct live_h2 *server, size_t n)
{
    pthread_mutex_lock(&server->lock);
    struct live_h2_seen seen = n > 0 && n <= server->count ? server->seen[n - 1] : (struct live_h2_seen){0};
    pthread_mutex_unlock(&server->lock);
    return seen;
}
