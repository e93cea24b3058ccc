/* test_chaos.c - the fault-injection server on real sockets: follows its script, and survives every client.
 *
 * The server runs in a thread. The client is a socket and a buffer, so that every byte and every end of a connection
 * can be observed. No test waits "long enough": a read ends with bytes, FIN or RST, and a timeout far beyond any
 * healthy machine only turns a hang into a failure. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bide/clock.h>
#include <bide/hint.h>
#include <bide/request.h>

#include "chaos/chaos.h"

#define COUNT(table)              (sizeof(table) / sizeof *(table))
#define PATIENCE_S                60 /* reached only by a hang */
#define HOST                      "Host: x\r\n"
#define ASK(method, path, fields) method " " path " HTTP/1.1\r\n" HOST fields "\r\n"
#define GET(path)                 ASK("GET", path, "")
#define OLD(path)                 "GET " path " HTTP/1.0\r\n\r\n"

/* ---- a server ---- */

struct world {
    struct chaos *server;
    pthread_t thread;
    const struct chaos_seen *seen;
    size_t count;
};

static void *serve(void *context)
{
    assert_int_equal(chaos_run(context), BIDE_OK);
    return NULL;
}

static struct world world_start_with(struct chaos_config config)
{
    struct world world = {0};
    struct chaos_error error;
    if (chaos_new(&world.server, &config, &error) != BIDE_OK)
        fail_msg("line %u: %s (%s)", error.line, error.text, strerror(errno));
    assert_int_equal(pthread_create(&world.thread, NULL, serve, world.server), 0);
    return world;
}

static struct world world_start(const char *script)
{
    return world_start_with((struct chaos_config){.script = script, .journal_fd = -1, .keep = true});
}

/* Stops the server; from now on its requests can be inspected. */
static void world_stop(struct world *world)
{
    chaos_stop(world->server);
    pthread_join(world->thread, NULL);
    world->seen = chaos_seen(world->server, &world->count);
}

static void world_free(struct world *world)
{
    if (world->seen == NULL && world->count == 0)
        world_stop(world);
    chaos_free(world->server);
}

static void await_requests(const struct world *world, uint64_t count)
{
    int64_t until_ns = bide_now() + PATIENCE_S * BIDE_S;
    while (chaos_requests(world->server) < count && bide_now() < until_ns)
        sched_yield();
    assert_true(chaos_requests(world->server) >= count);
}

/* ---- a client ---- */

enum ended { OPEN, FIN, RST };

struct client {
    int fd;
    char data[200000];
    size_t length; /* received bytes not parsed yet */
    enum ended ended;
};

struct reply {
    int status; /* 0: no response */
    char head[40000];
    char body[150000];
    size_t length;
    bool whole; /* as long as its head announced */
};

static struct reply reply; /* the last response */

static int receive_bytes; /* receive buffer of new sockets; 0: default */

static int connect_to(uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
    const struct timeval patience = {.tv_sec = PATIENCE_S};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    if (receive_bytes > 0)
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

static struct client *client_new(const struct world *world)
{
    struct client *client = calloc(1, sizeof *client);
    assert_non_null(client);
    client->fd = connect_to(chaos_port(world->server));
    assert_true(client->fd >= 0);
    return client;
}

static void client_close(struct client *client)
{
    close(client->fd);
    free(client);
}

static void client_reset(struct client *client)
{
    setsockopt(client->fd, SOL_SOCKET, SO_LINGER, &(struct linger){.l_onoff = 1}, sizeof(struct linger));
    client_close(client);
}

static void client_send_bytes(const struct client *client, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t n = send(client->fd, bytes, length, MSG_NOSIGNAL);
        if (n < 0)
            return; /* the connection was cut: the received bytes show it */
        bytes += n;
        length -= (size_t)n;
    }
}

static void client_send(const struct client *client, const char *text)
{
    client_send_bytes(client, text, strlen(text));
}

/* Receives more bytes; false at the end. */
static bool client_receive(struct client *client)
{
    if (client->ended != OPEN || client->length == sizeof client->data)
        return false;
    ssize_t n = recv(client->fd, client->data + client->length, sizeof client->data - client->length, 0);
    if (n < 0 && errno == EAGAIN)
        fail_msg("nothing came for %d s", PATIENCE_S);
    client->length += n > 0 ? (size_t)n : 0;
    client->ended = n > 0 ? OPEN : n == 0 ? FIN : RST;
    return n > 0;
}

static enum ended client_await_end(struct client *client)
{
    do
        client->length = 0;
    while (client_receive(client));
    return client->ended;
}

/* Takes bytes from the start of the buffer; false if the connection ended before. */
static bool take_bytes(struct client *client, char *to, size_t count)
{
    while (client->length < count && client_receive(client))
        continue;
    bool enough = client->length >= count;
    count = enough ? count : client->length;
    memcpy(to, client->data, count);
    memmove(client->data, client->data + count, client->length - count);
    client->length -= count;
    return enough;
}

static bool take_line(struct client *client, char *to, size_t room)
{
    size_t length = 0;
    while (length < room - 1 && take_bytes(client, to + length, 1))
        if (to[length++] == '\n') {
            to[length] = '\0';
            return true;
        }
    return false;
}

static bool header_value(const char *name, char *value, size_t room)
{
    char wanted[100];
    snprintf(wanted, sizeof wanted, "\n%s: ", name);
    const char *found = strcasestr(reply.head, wanted);
    if (found == NULL)
        return false;
    found += strlen(wanted);
    snprintf(value, room, "%.*s", (int)strcspn(found, "\r\n"), found);
    return true;
}

static bool has_header_line(const char *field)
{
    char line[300];
    snprintf(line, sizeof line, "\n%s\r\n", field);
    return strstr(reply.head, line) != NULL;
}

static bool read_chunks(struct client *client)
{
    char line[100];
    while (take_line(client, line, sizeof line)) {
        size_t size = strtoul(line, NULL, 16);
        size_t before = client->length;
        if (size == 0)
            return take_line(client, line, sizeof line);
        bool whole = take_bytes(client, reply.body + reply.length, size);
        reply.length += whole ? size : before < size ? 0 : size;
        if (!whole || !take_line(client, line, sizeof line))
            return false;
    }
    return false;
}

static bool read_counted(struct client *client, size_t count)
{
    char byte;
    while (reply.length < count && take_bytes(client, &byte, 1))
        reply.body[reply.length++] = byte;
    return reply.length == count;
}

static bool read_head(struct client *client)
{
    size_t length = 0;
    reply.status = 0;
    reply.length = 0;
    reply.whole = false;
    while (take_line(client, reply.head + length, sizeof reply.head - length)) {
        bool empty = reply.head[length] == '\r' || reply.head[length] == '\n';
        length += strlen(reply.head + length);
        if (empty) {
            reply.status = (int)strtol(reply.head + 9, NULL, 10);
            return true;
        }
    }
    return false;
}

/* Reads a response; returns its status, or 0. */
static int read_reply(struct client *client, bool head_only)
{
    char value[100];
    if (!read_head(client))
        return 0;
    if (head_only || reply.status < 200 || reply.status == 204 || reply.status == 304)
        reply.whole = true;
    else if (header_value("Transfer-Encoding", value, sizeof value))
        reply.whole = read_chunks(client);
    else if (header_value("Content-Length", value, sizeof value))
        reply.whole = read_counted(client, strtoul(value, NULL, 10));
    else
        reply.whole = !read_counted(client, sizeof reply.body) && client->ended == FIN;
    return reply.status;
}

static int client_request(struct client *client, const char *request)
{
    client_send(client, request);
    return read_reply(client, strncmp(request, "HEAD", 4) == 0);
}

/* Sends one request on a new connection. */
static int request_once(const struct world *world, const char *request, enum ended *ended)
{
    struct client *client = client_new(world);
    int status = client_request(client, request);
    if (ended != NULL)
        *ended = client->ended != OPEN ? client->ended : client_await_end(client);
    client_close(client);
    return status;
}

/* Sends the count-th request; again, if this test was so slow that the connection was cut as idle before. */
static struct client *client_begin(const struct world *world, const char *request, uint64_t count)
{
    for (;;) {
        struct client *client = client_new(world);
        struct pollfd gone = {.fd = client->fd, .events = POLLRDHUP};
        client_send(client, request);
        while (chaos_requests(world->server) < count && poll(&gone, 1, 0) == 0)
            sched_yield();
        if (chaos_requests(world->server) >= count)
            return client;
        client_close(client);
    }
}

static bool body_is(const char *text)
{
    return reply.length == strlen(text) && memcmp(reply.body, text, reply.length) == 0;
}

static void assert_pattern(uint64_t offset, size_t length)
{
    assert_int_equal(reply.length, length);
    for (size_t i = 0; i < length; i++)
        if (reply.body[i] != chaos_pattern(offset + i))
            fail_msg("byte %zu is wrong", i);
}

/* ---- responses ---- */

static void every_path_responds_with_200_without_a_script(void **state)
{
    struct world world = world_start(NULL);
    struct client *client = client_new(&world);
    assert_int_equal(client_request(client, GET("/")), 200);
    assert_true(body_is("ok\n"));
    assert_int_equal(client_request(client, GET("/what/ever?it=is")), 200);
    client_close(client);
    world_free(&world);
}

static void path_without_a_line_gets_404(void **state)
{
    struct world world = world_start("/a 200");
    struct client *client = client_new(&world);
    assert_int_equal(client_request(client, GET("/b")), 404);
    assert_int_equal(client_request(client, GET("/a?b")), 200);
    assert_int_equal(client_request(client, ASK("GET", "http://x/a", "")), 200);
    client_close(client);
    world_free(&world);
}

static void steps_are_taken_in_order(void **state)
{
    static const int want[] = {503, 429, 429, 200, 200};
    struct world world = world_start("/a 503 | 429 x2 | 200 body=\"hello\"");
    struct client *client = client_new(&world);
    for (size_t i = 0; i < COUNT(want); i++)
        assert_int_equal(client_request(client, GET("/a")), want[i]);
    assert_true(body_is("hello"));
    client_close(client);
    world_stop(&world);
    assert_int_equal(world.count, COUNT(want));
    for (size_t i = 0; i < COUNT(want); i++) {
        assert_int_equal(world.seen[i].status, want[i]);
        assert_int_equal(world.seen[i].connection, 1);
        assert_int_equal(world.seen[i].on_connection, i + 1);
        assert_string_equal(world.seen[i].method, "GET");
        assert_string_equal(world.seen[i].path, "/a");
        assert_string_equal(world.seen[i].result, "answered");
        assert_true(world.seen[i].at_ns <= world.seen[i].end_ns);
    }
    world_free(&world);
}

static void retry_after_has_every_form(void **state)
{
    struct world world =
        world_start("/a 429 retry-after=date+50 | 429 retry-after=rfc850+50 | 429 retry-after=asctime+50 |"
                    "429 retry-after=50 | 429 retry-after=\"soon, maybe\"");
    struct client *client = client_new(&world);
    for (int i = 0; i < 5; i++) {
        char value[100], date[100];
        assert_int_equal(client_request(client, GET("/a")), 429);
        assert_true(header_value("Retry-After", value, sizeof value) && header_value("Date", date, sizeof date));
        struct bide_hint hint = bide_hint_retry_after((struct bide_text){value, strlen(value)},
                                                      (struct bide_text){date, strlen(date)}, bide_wall_s());
        assert_int_equal(hint.kind, i < 4 ? BIDE_HINT_WAIT : BIDE_HINT_NONE);
        if (i < 4)
            assert_int_equal(hint.wait_ns, 50 * BIDE_S);
    }
    client_close(client);
    world_free(&world);
}

static void long_retry_after_is_sent_completely(void **state)
{
    char script[10100] = "/a 429 retry-after=\"", value[10100];
    memset(script + strlen(script), '9', 10000);
    memcpy(script + strlen(script), "\"", 2);
    struct world world = world_start(script);
    assert_int_equal(request_once(&world, OLD("/a"), NULL), 429);
    assert_true(header_value("Retry-After", value, sizeof value));
    assert_int_equal(strlen(value), 10000);
    world_free(&world);
}

static void headers_are_sent_as_written(void **state)
{
    char location[100];
    struct world world =
        world_start("/a 401 header=\"WWW-Authenticate: Bearer\" header=\"X-A: 1\" header=\"X-A: 2\" type=a/b\n"
                    "/b 302 location=http://127.0.0.1:$PORT/c date=none\n/c date=\"never\"");
    struct client *client = client_new(&world);
    assert_int_equal(client_request(client, GET("/a")), 401);
    assert_true(has_header_line("WWW-Authenticate: Bearer") && has_header_line("X-A: 1") && has_header_line("X-A: 2") &&
                has_header_line("Content-Type: a/b"));
    assert_int_equal(client_request(client, GET("/b")), 302);
    snprintf(location, sizeof location, "Location: http://127.0.0.1:%u/c", (unsigned)chaos_port(world.server));
    assert_true(has_header_line(location));
    assert_null(strstr(reply.head, "Date:"));
    assert_int_equal(client_request(client, GET("/c")), 200);
    assert_true(has_header_line("Date: never"));
    client_close(client);
    world_free(&world);
}

static void bodies_have_every_framing(void **state)
{
    struct world world =
        world_start("/counted bytes=100000\n/chunked bytes=100000 chunked\n/text body=\"a b\" chunked\n"
                    "/open bytes=100000 length=none\n/none 204\n/empty body=\"\"");
    struct client *client = client_new(&world);
    assert_int_equal(client_request(client, GET("/counted")), 200);
    assert_pattern(0, 100000);
    assert_int_equal(client_request(client, GET("/chunked")), 200);
    assert_pattern(0, 100000);
    assert_true(reply.whole);
    assert_int_equal(client_request(client, GET("/text")), 200);
    assert_true(body_is("a b"));
    assert_int_equal(client_request(client, GET("/none")), 204);
    assert_int_equal(client_request(client, GET("/empty")), 200);
    assert_true(has_header_line("Content-Length: 0"));
    assert_int_equal(client_request(client, GET("/open")), 200);
    assert_pattern(0, 100000);
    assert_true(reply.whole && has_header_line("Connection: close"));
    client_close(client);
    world_free(&world);
}

static void pattern_has_numbered_lines_of_eight_bytes(void **state)
{
    static const char want[] = "0000000\n0000001\n";
    for (size_t i = 0; i < sizeof want - 1; i++)
        assert_int_equal(chaos_pattern(i), want[i]);
    assert_int_equal(chaos_pattern(8 * 0xabcdefull), '0');
    assert_int_equal(chaos_pattern(8 * 0xabcdefull + 6), 'f');
}

static void response_to_head_has_no_body(void **state)
{
    struct world world = world_start("/a bytes=1000\n/b chunked body=x\n/c 503 body=abc length=+5");
    struct client *client = client_new(&world);
    assert_int_equal(client_request(client, ASK("HEAD", "/a", "")), 200);
    assert_true(has_header_line("Content-Length: 1000"));
    assert_int_equal(client_request(client, ASK("HEAD", "/b", "")), 200);
    assert_int_equal(client_request(client, ASK("HEAD", "/c", "")), 503);
    assert_true(has_header_line("Content-Length: 8"));
    assert_int_equal(client_request(client, GET("/a")), 200); /* the next response begins where a body would have */
    assert_pattern(0, 1000);
    client_close(client);
    world_free(&world);
}

static void content_length_can_be_wrong(void **state)
{
    struct world world =
        world_start("/long body=hello length=+10 close=end\n/short body=hello length=-3\n/zero body=x length=-9");
    enum ended ended;
    assert_int_equal(request_once(&world, GET("/long"), &ended), 200);
    assert_true(!reply.whole && body_is("hello") && has_header_line("Content-Length: 15") && ended == FIN);
    struct client *client = client_new(&world);
    assert_int_equal(client_request(client, GET("/short")), 200);
    assert_true(reply.whole && body_is("he"));
    char rest[3];
    assert_true(take_bytes(client, rest, 3) && memcmp(rest, "llo", 3) == 0);
    assert_int_equal(client_request(client, GET("/zero")), 200);
    assert_true(has_header_line("Content-Length: 0"));
    client_close(client);
    world_free(&world);
}

static void connection_closes_when_either_side_requests_it(void **state)
{
    static const char *const requests[] = {
        GET("/close"),
        ASK("GET", "/", "Connection: keep-alive, Close\r\n"),
        OLD("/"),
    };
    struct world world = world_start("/close connection=close\n* 200");
    enum ended ended;
    for (size_t i = 0; i < COUNT(requests); i++) {
        assert_int_equal(request_once(&world, requests[i], &ended), 200);
        assert_int_equal(ended, FIN);
        assert_true(has_header_line("Connection: close"));
    }
    struct client *client = client_new(&world);
    for (int i = 0; i < 3; i++)
        assert_int_equal(client_request(client, "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"), 200);
    client_close(client);
    world_free(&world);
}

static void interim_responses_precede_the_final_response(void **state)
{
    struct world world = world_start("/a 200 interim=100 interim=103");
    struct client *client = client_new(&world);
    assert_int_equal(client_request(client, GET("/a")), 100);
    assert_int_equal(read_reply(client, false), 103);
    assert_int_equal(read_reply(client, false), 200);
    client_close(client);
    world_free(&world);
}

static void garbage_is_not_http(void **state)
{
    struct world world = world_start("/a garbage | garbage=\"HTTP/9 what\\r\\n\\r\\n\"");
    struct client *client = client_new(&world);
    assert_int_equal(client_request(client, GET("/a")), 0);
    assert_int_equal(client_await_end(client), FIN);
    client_close(client);
    client = client_new(&world);
    client_send(client, GET("/a"));
    char line[100];
    assert_true(take_line(client, line, sizeof line));
    assert_string_equal(line, "HTTP/9 what\r\n");
    client_close(client);
    world_stop(&world);
    assert_string_equal(world.seen[0].result, "garbage");
    assert_int_equal(world.seen[0].status, 0);
    world_free(&world);
}

/* ---- ranges ---- */

static void range_requests_are_supported(void **state)
{
    static const struct {
        const char *fields;
        int status;
        uint64_t first;
        size_t length;
        const char *range;
    } table[] = {
        {"Range: bytes=10-19", 206, 10, 10, "Content-Range: bytes 10-19/1000"},
        {"Range: bytes=990-", 206, 990, 10, "Content-Range: bytes 990-999/1000"},
        {"Range: bytes=990-5000", 206, 990, 10, "Content-Range: bytes 990-999/1000"},
        {"Range: bytes=-10", 206, 990, 10, "Content-Range: bytes 990-999/1000"},
        {"Range: bytes=-5000", 206, 0, 1000, "Content-Range: bytes 0-999/1000"},
        {"Range: bytes=1000-", 416, 0, 0, "Content-Range: bytes */1000"},
        {"Range: bytes=-0", 416, 0, 0, "Content-Range: bytes */1000"},
        {"Range: bytes=5-9\r\nIf-Range: \"v1\"", 206, 5, 5, "Content-Range: bytes 5-9/1000"},
        {"Range: bytes=5-9\r\nIf-Range: \"v2\"", 200, 0, 1000, NULL},
        {"Range: bytes=5-9\r\nIf-Range: W/\"v1\"", 200, 0, 1000, NULL},
        {"Range: bytes=9-5", 200, 0, 1000, NULL},
        {"Range: bytes=0-1,5-9", 200, 0, 1000, NULL},
        {"Range: bytes=-", 200, 0, 1000, NULL},
        {"Range: bytes=99999999999999999999999-", 200, 0, 1000, NULL},
        {"Range: lines=1-2", 200, 0, 1000, NULL},
    };
    struct world world = world_start("/a bytes=1000 ranges etag=v1\n/weak bytes=10 ranges etag=W/v1\n/plain bytes=10");
    struct client *client = client_new(&world);
    for (size_t i = 0; i < COUNT(table); i++) {
        char request[300];
        snprintf(request, sizeof request, ASK("GET", "/a", "%s\r\n"), table[i].fields);
        assert_int_equal(client_request(client, request), table[i].status);
        assert_pattern(table[i].first, table[i].length);
        assert_true(has_header_line("Accept-Ranges: bytes") && has_header_line("ETag: \"v1\""));
        assert_true(table[i].range == NULL || has_header_line(table[i].range));
    }
    assert_int_equal(client_request(client, ASK("GET", "/weak", "Range: bytes=1-\r\nIf-Range: W/\"v1\"\r\n")), 200);
    assert_int_equal(client_request(client, ASK("GET", "/plain", "Range: bytes=1-\r\n")), 200);
    client_close(client);
    world_free(&world);
}

static void cut_download_can_be_resumed(void **state)
{
    struct world world = world_start("/a bytes=100000 ranges etag=v1 reset=40000 | bytes=100000 ranges etag=v1");
    enum ended ended;
    assert_int_equal(request_once(&world, GET("/a"), &ended), 200);
    assert_pattern(0, 40000);
    assert_int_equal(ended, RST);
    assert_int_equal(request_once(&world, ASK("GET", "/a", "Connection: close\r\nRange: bytes=40000-\r\n"), NULL), 206);
    assert_pattern(40000, 60000);
    world_free(&world);
}

/* ---- cuts ---- */

static void connection_is_cut_at_the_scripted_point(void **state)
{
    static const struct {
        const char *step;
        int status;
        size_t bytes;
        enum ended ended;
        const char *result;
    } table[] = {
        {"reset", 0, 0, RST, "reset"},
        {"close", 0, 0, FIN, "closed"},
        {"bytes=1000 reset=headers", 200, 0, RST, "reset"},
        {"bytes=1000 close=headers", 200, 0, FIN, "closed"},
        {"bytes=1000 reset=half", 200, 500, RST, "reset"},
        {"503 bytes=1000 close=half", 503, 500, FIN, "closed"},
        {"bytes=1000 chunked close=half", 200, 500, FIN, "closed"},
        {"bytes=1000 close=7", 200, 7, FIN, "closed"},
        {"endless=body reset=100000", 200, 100000, RST, "reset"},
        {"bytes=1000 close=end", 200, 1000, FIN, "answered"},
        {"bytes=1000 reset=end", 200, 1000, RST, "answered"},
        {"bytes=1000 close=5000", 200, 1000, FIN, "answered"},
        {"bytes=1000 close=half drip=300/1ms", 200, 500, FIN, "closed"},
    };
    for (size_t i = 0; i < COUNT(table); i++) {
        char script[100];
        enum ended ended;
        snprintf(script, sizeof script, "/a %s", table[i].step);
        struct world world = world_start(script);
        assert_int_equal(request_once(&world, ASK("POST", "/a", "Content-Length: 3\r\n") "abc", &ended),
                         table[i].status);
        assert_int_equal(ended, table[i].ended);
        if (table[i].status != 0)
            assert_pattern(0, table[i].bytes);
        assert_int_equal(reply.whole, strcmp(table[i].result, "answered") == 0);
        world_stop(&world);
        assert_int_equal(world.count, 1);
        assert_string_equal(world.seen[0].result, table[i].result);
        assert_int_equal(world.seen[0].status, table[i].status);
        assert_int_equal(world.seen[0].body_bytes, 3); /* it was read to its end first */
        world_free(&world);
    }
}

/* Reads the rest of a pattern too long for `reply`; returns its length. */
static uint64_t client_read_pattern(struct client *client)
{
    uint64_t offset = 0;
    do {
        for (size_t i = 0; i < client->length; i++, offset++)
            if (client->data[i] != chaos_pattern(offset))
                fail_msg("byte %llu is wrong", (unsigned long long)offset);
        client->length = 0;
    } while (client_receive(client));
    return offset;
}

/* More than all buffers in between hold; another client is served meanwhile. */
static void reset_follows_all_bytes_before_it(void **state)
{
    struct world world = world_start("/big bytes=40000000 reset=half\n/other bytes=65000");
    receive_bytes = 65536;
    struct client *client = client_new(&world);
    receive_bytes = 0;
    struct client *other = client_new(&world);
    client_send(client, GET("/big"));
    await_requests(&world, 1);
    for (int i = 0; i < 3; i++)
        assert_int_equal(client_request(other, GET("/other")), 200);
    assert_true(read_head(client));
    assert_int_equal(client_read_pattern(client), 20000000);
    assert_int_equal(client->ended, RST);
    client_close(other);
    client_close(client);
    world_free(&world);
}

static void connections_can_be_cut_on_accept(void **state)
{
    struct world world = world_start("* reset=accept x2 | close=accept | 200");
    for (int i = 0; i < 3; i++) {
        struct client client = {.fd = connect_to(chaos_port(world.server))};
        bool early = client.fd < 0 && errno == ECONNRESET; /* the RST may arrive before connect has returned */
        assert_int_equal(early ? RST : client_await_end(&client), i < 2 ? RST : FIN);
        if (!early)
            close(client.fd);
    }
    assert_int_equal(request_once(&world, OLD("/"), NULL), 200);
    assert_int_equal(chaos_requests(world.server), 1);
    world_stop(&world);
    assert_int_equal(world.count, 4);
    assert_int_equal(world.seen[0].on_connection, 0);
    assert_string_equal(world.seen[0].result, "reset");
    assert_string_equal(world.seen[2].result, "closed");
    assert_int_equal(world.seen[3].on_connection, 1);
    world_free(&world);
}

static void reused_connection_is_cut_after_its_next_request(void **state)
{
    static const struct {
        const char *script;
        enum ended ended;
        const char *result;
    } table[] = {{"/a 200 reuse=reset | 201", RST, "reset"}, {"/a 200 reuse=close | 201", FIN, "closed"}};
    for (size_t i = 0; i < COUNT(table); i++) {
        struct world world = world_start(table[i].script);
        struct client *client = client_new(&world);
        assert_int_equal(client_request(client, GET("/a")), 200);
        assert_int_equal(client_request(client, ASK("POST", "/a", "Content-Length: 5\r\n") "hello"), 0);
        assert_int_equal(client->ended, table[i].ended);
        client_close(client);
        client = client_new(&world);
        assert_int_equal(client_request(client, GET("/a")), 201); /* the cut consumed no step */
        client_close(client);
        world_stop(&world);
        assert_int_equal(world.count, 3);
        assert_string_equal(world.seen[1].result, table[i].result);
        assert_int_equal(world.seen[1].on_connection, 2);
        assert_int_equal(world.seen[1].body_bytes, 5);
        world_free(&world);
    }
}

static void half_closed_connection_still_reads(void **state)
{
    struct world world = world_start("/a half-close");
    struct client *client = client_new(&world);
    char block[4096] = {0};
    assert_int_equal(client_request(client, GET("/a")), 200);
    assert_int_equal(client_await_end(client), FIN);
    for (int i = 0; i < 4096; i++) /* 16 MiB: more than any buffer in between holds */
        assert_int_equal(send(client->fd, block, sizeof block, MSG_NOSIGNAL), sizeof block);
    client_close(client);
    world_free(&world);
}

/* ---- request bodies ---- */

static void early_response_keeps_the_connection_open(void **state)
{
    struct world world = world_start("/a 503 early\n/b 503 early=4\n/c 200");
    struct client *client = client_new(&world);
    for (int i = 0; i < 2; i++) {
        client_send(client, i == 0 ? ASK("POST", "/a", "Content-Length: 10\r\n")
                                   : ASK("POST", "/b", "Content-Length: 10\r\n") "0123");
        assert_int_equal(read_reply(client, false), 503);
        client_send(client, i == 0 ? "0123456789" : "456789"); /* the rest arrives late, and is discarded */
        assert_int_equal(client_request(client, GET("/c")), 200);
    }
    client_close(client);
    world_stop(&world);
    assert_int_equal(world.count, 4);
    assert_int_equal(world.seen[0].body_bytes, 0);
    assert_int_equal(world.seen[2].body_bytes, 4);
    world_free(&world);
}

static void early_response_reads_exactly_the_scripted_bytes(void **state)
{
    struct world world = world_start("/a 503 early=4");
    struct client *client = client_new(&world);
    assert_int_equal(client_request(client, ASK("POST", "/a", "Content-Length: 10\r\n") "0123456789" GET("/b")), 503);
    assert_int_equal(read_reply(client, false), 404);
    assert_int_equal(
        client_request(client, ASK("POST", "/a",
                                   "Transfer-Encoding: chunked\r\n") "2\r\nab\r\n8\r\ncdefghij\r\n0\r\n\r\n" GET("/b")),
        503);
    assert_int_equal(read_reply(client, false), 404);
    client_close(client);
    world_stop(&world);
    assert_int_equal(world.seen[0].body_bytes, 4);
    assert_int_equal(world.seen[2].body_bytes, 4);
    world_free(&world);
}

static void expect_100_continue_gets_a_100(void **state)
{
#define EXPECT(path) "POST " path " HTTP/1.1\r\n" HOST "Content-Length: 3\r\nExpect: 100-continue\r\n\r\n"
    struct world world = world_start("/a 200\n/no 200 continue=no\n/early 417 early");
    struct client *client = client_new(&world);
    assert_int_equal(client_request(client, EXPECT("/a")), 100);
    assert_int_equal(client_request(client, "abc"), 200);
    assert_int_equal(client_request(client, EXPECT("/a") "abc"), 200); /* the body is already there */
    assert_int_equal(client_request(client, EXPECT("/early")), 417);
    client_send(client, "abc");
    client_send(client, EXPECT("/no"));
    await_requests(&world, 4);
    assert_int_equal(client_request(client, "abc"), 200);
    client_close(client);
    world_free(&world);
}

static void body_hash_is_independent_of_framing_and_segmentation(void **state)
{
    static const char *const requests[] = {
        ASK("PUT", "/a", "Content-Length: 11\r\n") "hello world",
        ASK("PUT", "/a", "Transfer-Encoding: chunked\r\n") "5\r\nhello\r\n1;ext=\"1\"\r\n \r\n0005 "
                                                           "\r\nworld\r\n0\r\nX-Trailer: 1\r\n\r\n",
        "\r\nPUT /a HTTP/1.1\nHost: x\nTransfer-Encoding: Chunked\n\nB\nhello world\n0\n\n",
    };
    struct world world = world_start(NULL);
    struct client *client = client_new(&world);
    size_t sent = 0;
    for (size_t i = 0; i < COUNT(requests); i++, sent += 2) {
        assert_int_equal(client_request(client, requests[i]), 200);
        for (const char *byte = requests[i]; *byte != '\0'; byte++)
            client_send_bytes(client, byte, 1);
        assert_int_equal(read_reply(client, false), 200);
    }
    client_close(client);
    world_stop(&world);
    assert_int_equal(world.count, sent);
    for (size_t i = 0; i < world.count; i++) {
        assert_int_equal(world.seen[i].body_bytes, 11);
        assert_true(world.seen[i].body_hash == bide_hash("hello world", 11));
    }
    world_free(&world);
}

static void pipelined_requests_are_answered_in_order(void **state)
{
    struct world world = world_start("/a 200 delay=5ms\n/b 201\n/c 202 interim=103\n/d 203 chunked");
    struct client *client = client_new(&world);
    client_send(client, GET("/a") ASK("POST", "/b", "Content-Length: 2\r\n") "xy" GET("/c") GET("/d") GET("/a"));
    static const int want[] = {200, 201, 103, 202, 203, 200};
    for (size_t i = 0; i < COUNT(want); i++)
        assert_int_equal(read_reply(client, false), want[i]);
    client_close(client);
    world_free(&world);
}

/* Pipelined input of one client is not mixed with that of another. */
static void two_clients_may_pipeline_concurrently(void **state)
{
    struct world world = world_start("/a 200 delay=3ms\n/b 201\n/c 202 delay=3ms\n/d 203");
    struct client *one = client_new(&world), *other = client_new(&world);
    for (int i = 0; i < 10; i++) {
        client_send(one, GET("/a") GET("/b") GET("/a"));
        client_send(other, GET("/c") GET("/d") GET("/c"));
    }
    for (int i = 0; i < 30; i++) {
        assert_int_equal(read_reply(one, false), i % 3 == 1 ? 201 : 200);
        assert_int_equal(read_reply(other, false), i % 3 == 1 ? 203 : 202);
    }
    client_close(one);
    client_close(other);
    world_free(&world);
}

/* ---- time ---- */

static void response_is_never_sent_before_its_delay(void **state)
{
    struct world world = world_start("/a delay=30ms\n/b delay=5ms..15ms");
    struct client *client = client_new(&world);
    assert_int_equal(client_request(client, GET("/a")), 200);
    for (int i = 0; i < 5; i++)
        assert_int_equal(client_request(client, GET("/b")), 200);
    client_close(client);
    world_stop(&world);
    assert_true(world.seen[0].end_ns - world.seen[0].at_ns >= 30 * BIDE_MS);
    for (int i = 1; i < 6; i++)
        assert_true(world.seen[i].end_ns - world.seen[i].at_ns >= 5 * BIDE_MS);
    world_free(&world);
}

static void client_may_leave_during_an_infinite_delay(void **state)
{
    struct world world = world_start("/a delay=never\n/b 200");
    for (int i = 0; i < 2; i++) {
        struct client *client = client_new(&world);
        client_send(client, GET("/a"));
        await_requests(&world, (uint64_t)i + 1);
        i == 0 ? client_close(client) : client_reset(client);
    }
    assert_int_equal(request_once(&world, OLD("/b"), NULL), 200);
    world_stop(&world);
    assert_int_equal(world.count, 3);
    for (int i = 0; i < 2; i++) {
        assert_string_equal(world.seen[i].result, "left");
        assert_int_equal(world.seen[i].status, 0);
    }
    world_free(&world);
}

/* With a very short idle timeout: time in which the server delays does not count. */
static void client_is_not_idle_while_the_server_delays(void **state)
{
    struct world world = world_start_with(
        (struct chaos_config){.script = "/a delay=30ms bytes=40 drip=40/15ms\n/b capacity=1 service=30ms",
                              .journal_fd = -1,
                              .keep = true,
                              .idle_ns = 10 * BIDE_MS});
    struct client *client = client_begin(&world, GET("/a"), 1);
    assert_int_equal(read_reply(client, false), 200);
    assert_pattern(0, 40);
    client_close(client);
    client = client_begin(&world, GET("/b"), 2);
    assert_int_equal(read_reply(client, false), 200);
    client_close(client);
    world_stop(&world);
    assert_string_equal(world.seen[0].result, "answered");
    world_free(&world);
}

static void drip_is_complete_and_slow(void **state)
{
    struct world world = world_start("/a bytes=100 drip=20/2ms");
    struct client *client = client_new(&world);
    assert_int_equal(client_request(client, GET("/a")), 200);
    assert_pattern(0, 100);
    size_t bytes = strlen(reply.head) + 100;
    client_close(client);
    world_stop(&world);
    assert_true(world.seen[0].end_ns - world.seen[0].at_ns >= (int64_t)((bytes - 1) / 20) * 2 * BIDE_MS);
    world_free(&world);
}

static void outage_applies_to_its_time_and_path(void **state)
{
    struct world world =
        world_start("/now outage=0..1000s:502 200\n/later outage=1000s..2000s 200\n/cut outage=0..1000s\n"
                    "/shut outage=0s..1000s:close");
    struct client *client = client_new(&world);
    enum ended ended;
    assert_int_equal(client_request(client, GET("/now")), 502);
    assert_int_equal(client_request(client, GET("/later")), 200);
    assert_int_equal(request_once(&world, GET("/cut"), &ended), 0);
    assert_int_equal(ended, RST);
    assert_int_equal(request_once(&world, GET("/shut"), &ended), 0);
    assert_int_equal(ended, FIN);
    client_close(client);
    world_free(&world);
}

static void outage_of_the_catch_all_line_applies_to_every_path(void **state)
{
    struct world world = world_start("/a 200\n* outage=0..1000s:503 | 404");
    assert_int_equal(request_once(&world, OLD("/a"), NULL), 503);
    world_free(&world);
}

/* Connects until the result is as wanted. */
static void await_connect(const struct world *world, bool connects)
{
    int64_t until_ns = bide_now() + PATIENCE_S * BIDE_S;
    for (bool done = false; !done && bide_now() < until_ns;) {
        int fd = connect_to(chaos_port(world->server));
        done = connects ? fd >= 0 : fd < 0 && errno == ECONNREFUSED;
        if (fd >= 0)
            close(fd);
        if (done)
            return;
    }
    fail_msg("it never %s", connects ? "accepted" : "refused");
}

static void outage_can_refuse_connections_and_ends(void **state)
{
    struct world world = world_start("* outage=0..1000s:refuse");
    await_connect(&world, false);
    world_free(&world);
    world = world_start("* outage=0..50ms:refuse");
    int64_t until_ns = bide_now() + PATIENCE_S * BIDE_S;
    int status = 0;
    while (status != 200 && bide_now() < until_ns) { /* may be too early, and then cut by the outage */
        struct client client = {.fd = connect_to(chaos_port(world.server))};
        if (client.fd < 0)
            continue;
        if (send(client.fd, OLD("/"), strlen(OLD("/")), MSG_NOSIGNAL) > 0)
            status = read_reply(&client, false);
        close(client.fd);
    }
    assert_int_equal(status, 200);
    world_free(&world);
}

/* ---- load and random failures ---- */

static void full_line_responds_with_503_at_once(void **state)
{
    struct world world = world_start("/a capacity=1 queue=1 service=1000s\n/b 200");
    struct client *served = client_new(&world), *queued = client_new(&world), *late = client_new(&world);
    client_send(served, GET("/a"));
    await_requests(&world, 1);
    client_send(queued, GET("/a"));
    await_requests(&world, 2);
    assert_int_equal(client_request(late, GET("/a")), 503);
    assert_int_equal(client_request(late, GET("/b")), 200);
    client_reset(served); /* the queued request gets its place, and the queue is empty */
    int64_t until_ns = bide_now() + PATIENCE_S * BIDE_S;
    struct client *next;
    struct pollfd watch;
    do { /* until the server has noticed: then this request is queued, and not answered */
        next = client_new(&world);
        uint64_t before = chaos_requests(world.server);
        client_send(next, GET("/a"));
        await_requests(&world, before + 1);
        client_send(late, GET("/b")); /* when this is answered, the other would have been */
        assert_int_equal(read_reply(late, false), 200);
        watch = (struct pollfd){.fd = next->fd, .events = POLLIN};
        if (poll(&watch, 1, 0) == 0)
            break;
        client_close(next);
    } while (bide_now() < until_ns);
    assert_int_equal(client_request(late, GET("/a")), 503);
    client_close(next);
    client_close(late);
    client_close(queued);
    world_free(&world);
}

static void queued_requests_are_served_in_order(void **state)
{
    enum { CLIENTS = 12 };
    struct world world = world_start("/a capacity=2 queue=100 service=2ms");
    struct client *client[CLIENTS];
    for (int i = 0; i < CLIENTS; i++) {
        client[i] = client_new(&world);
        client_send(client[i], GET("/a"));
    }
    for (int i = 0; i < CLIENTS; i++) {
        assert_int_equal(read_reply(client[i], false), 200);
        client_close(client[i]);
    }
    world_stop(&world);
    int64_t first_ns = world.seen[0].at_ns, last_ns = 0;
    for (size_t i = 0; i < world.count; i++)
        last_ns = world.seen[i].end_ns > last_ns ? world.seen[i].end_ns : last_ns;
    assert_true(last_ns - first_ns >= CLIENTS / 2 * 2 * BIDE_MS);
    world_free(&world);
}

static void failure_pattern(uint64_t seed, char pattern[1001])
{
    struct world world = world_start_with(
        (struct chaos_config){.script = "/a fail=30%:500 200\n/b 200", .seed = seed, .journal_fd = -1});
    struct client *client = client_new(&world);
    for (int i = 0; i < 1000; i++) {
        pattern[i] = client_request(client, GET("/a")) == 500 ? 'x' : '.';
        if (i % 3 == 0)
            client_request(client, GET("/b")); /* other traffic has no influence */
    }
    pattern[1000] = '\0';
    client_close(client);
    world_free(&world);
}

static void failures_have_the_scripted_share_and_depend_on_the_seed(void **state)
{
    char one[1001], same[1001], other[1001];
    size_t failed = 0;
    failure_pattern(7, one);
    failure_pattern(7, same);
    failure_pattern(8, other);
    assert_string_equal(one, same);
    assert_string_not_equal(one, other);
    for (int i = 0; i < 1000; i++)
        failed += one[i] == 'x';
    assert_in_range(failed, 250, 350);
}

static void failures_can_be_cuts(void **state)
{
    struct world world = world_start("/a fail=100%:reset\n/b fail=100%:close\n/c fail=0%");
    enum ended ended;
    assert_int_equal(request_once(&world, GET("/a"), &ended), 0);
    assert_int_equal(ended, RST);
    assert_int_equal(request_once(&world, GET("/b"), &ended), 0);
    assert_int_equal(ended, FIN);
    assert_int_equal(request_once(&world, OLD("/c"), NULL), 200);
    world_free(&world);
}

/* ---- hostile clients ---- */

static void malformed_requests_are_rejected_and_closed(void **state)
{
    static const struct {
        const char *request;
        int status;
    } table[] = {
        {"\x16\x03\x01 hello\r\n\r\n", 400},
        {"GET\r\n\r\n", 400},
        {"GET /\r\n\r\n", 400},
        {"GET  / HTTP/1.1\r\n" HOST "\r\n", 400},
        {"GET / x HTTP/1.1\r\n" HOST "\r\n", 400},
        {"G(T / HTTP/1.1\r\n" HOST "\r\n", 400},
        {ASK("GET", "/\x01", ""), 400},
        {ASK("GET", "a", ""), 400},
        {ASK("GET", "?a", ""), 400},
        {ASK("GET", "*", ""), 400},
        {"GET / HTTP/1.1\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\n" HOST HOST "\r\n", 400},
        {ASK("GET", "/", "X : 1\r\n"), 400},
        {ASK("GET", "/", "X: 1\r\n fold\r\n"), 400},
        {ASK("GET", "/", "X: a\rb\r\n"), 400},
        {ASK("GET", "/", "nocolon\r\n"), 400},
        {ASK("GET", "/", ": x\r\n"), 400},
        {"GET / HTTP/2.0\r\n" HOST "\r\n", 505},
        {"GET / HTTP/1.2\r\n" HOST "\r\n", 505},
        {"GET / HTTQ/1.1\r\n" HOST "\r\n", 400},
        {"AVERYLONGMETHODX / HTTP/1.1\r\n" HOST "\r\n", 501},
        {ASK("POST", "/", "Content-Length: x\r\n"), 400},
        {ASK("POST", "/", "Content-Length: -1\r\n"), 400},
        {ASK("POST", "/", "Content-Length:\r\n"), 400},
        {ASK("POST", "/", "Content-Length: 99999999999999999999\r\n"), 400},
        {ASK("POST", "/", "Content-Length: 1\r\nContent-Length: 2\r\n"), 400},
        {ASK("POST", "/", "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"), 400},
        {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
        {ASK("POST", "/", "Transfer-Encoding: gzip\r\n"), 501},
        {ASK("POST", "/", "Transfer-Encoding: chunked, chunked\r\n"), 501},
        {ASK("POST", "/", "Transfer-Encoding: chunked\r\n") "x\r\n", 400},
        {ASK("POST", "/", "Transfer-Encoding: chunked\r\n") "\r\n", 400},
        {ASK("POST", "/", "Transfer-Encoding: chunked\r\n") "1\r\naX", 400},
        {ASK("POST", "/", "Transfer-Encoding: chunked\r\n") "fffffffffffffffff\r\n", 400},
    };
    struct world world = world_start(NULL);
    enum ended ended;
    for (size_t i = 0; i < COUNT(table); i++) {
        int status = request_once(&world, table[i].request, &ended);
        if (status != table[i].status || ended != FIN)
            fail_msg("%s gives %d, and ends with %d", table[i].request, status, ended);
    }
    world_stop(&world);
    assert_int_equal(world.count, COUNT(table));
    for (size_t i = 0; i < COUNT(table); i++) {
        assert_string_equal(world.seen[i].result, "malformed");
        assert_int_equal(world.seen[i].status, table[i].status);
    }
    world_free(&world);
}

/* Sends a request with a head of that many bytes, behind another request, so that it does not start at a buffer
 * boundary. */
static int request_with_long_head(const struct world *world, size_t bytes, enum ended *ended)
{
    static const char before[] = GET("/"), client_begin[] = "GET /long HTTP/1.1\r\n" HOST "X: ";
    char *request = malloc(sizeof before + bytes);
    assert_non_null(request);
    memset(request, 'a', sizeof before + bytes);
    memcpy(request, before, sizeof before - 1);
    memcpy(request + sizeof before - 1, client_begin, sizeof client_begin - 1);
    memcpy(request + sizeof before - 1 + bytes - 4, "\r\n\r\n", 5);
    struct client *client = client_new(world);
    assert_int_equal(client_request(client, request), 200);
    int status = read_reply(client, false);
    shutdown(client->fd, SHUT_WR);
    *ended = client_await_end(client);
    client_close(client);
    free(request);
    return status;
}

static void too_long_head_is_rejected(void **state)
{
    struct world world = world_start(NULL);
    enum ended ended;
    assert_int_equal(request_with_long_head(&world, CHAOS_HEAD_MAX, &ended), 200);
    assert_int_equal(request_with_long_head(&world, CHAOS_HEAD_MAX + 1, &ended), 431);
    assert_int_equal(ended, FIN);
    assert_int_equal(request_with_long_head(&world, CHAOS_HEAD_MAX * 20, &ended), 431);
    assert_int_equal(ended, FIN);
    world_stop(&world);
    assert_int_equal(world.count, 6);
    assert_string_equal(world.seen[3].path, "/long");
    assert_string_equal(world.seen[3].result, "malformed");
    world_free(&world);
}

static void partial_requests_are_recorded_as_half(void **state)
{
    struct world world = world_start(NULL);
    static const char *const halves[] = {"G", "GET /half HTTP/1.1\r\nHo",
                                         ASK("POST", "/half", "Content-Length: 10\r\n") "abc"};
    for (size_t i = 0; i < COUNT(halves); i++) {
        struct client *client = client_new(&world);
        client_send(client, halves[i]);
        shutdown(client->fd, SHUT_WR);
        assert_int_equal(client_await_end(client), FIN);
        client_close(client);
    }
    struct client *client = client_new(&world);
    client_send(client, "\r\n");
    shutdown(client->fd, SHUT_WR); /* a line end is not even a partial request */
    assert_int_equal(client_await_end(client), FIN);
    client_close(client);
    world_stop(&world);
    assert_int_equal(world.count, 3);
    for (size_t i = 0; i < world.count; i++)
        assert_string_equal(world.seen[i].result, "half");
    assert_string_equal(world.seen[0].path, "");
    assert_string_equal(world.seen[1].path, "/half");
    assert_int_equal(world.seen[2].body_bytes, 3);
    world_free(&world);
}

static void silent_client_is_disconnected(void **state)
{
    struct world world = world_start_with(
        (struct chaos_config){.script = NULL, .journal_fd = -1, .keep = true, .idle_ns = 20 * BIDE_MS});
    struct client *slow = client_new(&world), *mute = client_new(&world);
    client_send(slow, "GET /slow HTTP/1.1\r\nHo");
    assert_int_equal(client_await_end(slow), FIN);
    assert_int_equal(client_await_end(mute), FIN);
    client_close(slow);
    client_close(mute);
    world_stop(&world);
    assert_int_equal(world.count, 1);
    assert_string_equal(world.seen[0].result, "half");
    assert_true(world.seen[0].at_ns > 0);
    world_free(&world);
}

/* Blocked while sending, and while waiting to reset. */
static void client_that_does_not_read_is_disconnected(void **state)
{
    static const char *const requests[] = {GET("/a"), GET("/b"), GET("/c")};
    struct client *client[COUNT(requests)];
    struct world world = world_start_with(
        (struct chaos_config){.script = "/a endless=body\n/b endless=headers\n/c bytes=60000 reset=end",
                              .journal_fd = -1,
                              .keep = true,
                              .idle_ns = 20 * BIDE_MS});
    receive_bytes = 1024;
    for (size_t i = 0; i < COUNT(requests); i++)
        client[i] = client_begin(&world, requests[i], i + 1);
    receive_bytes = 0;
    for (size_t i = 0; i < COUNT(requests); i++) {
        struct pollfd gone = {.fd = client[i]->fd, .events = POLLRDHUP};
        assert_int_equal(poll(&gone, 1, PATIENCE_S * 1000), 1);
        client_close(client[i]);
    }
    world_stop(&world);
    for (size_t i = 0; i < COUNT(requests); i++)
        assert_string_equal(world.seen[i].result, "left");
    world_free(&world);
}

static void endless_responses_continue_until_the_client_leaves(void **state)
{
    struct world world = world_start("/a endless=body\n/b endless=headers\n/c 200");
    for (int i = 0; i < 2; i++) {
        struct client *client = client_new(&world);
        client_send(client, i == 0 ? GET("/a") : GET("/b"));
        for (size_t heard = 0; heard < 10000000; heard += client->length) {
            client->length = 0;
            assert_true(client_receive(client));
        }
        struct client *other = client_new(&world); /* is served meanwhile */
        assert_int_equal(client_request(other, GET("/c")), 200);
        client_close(other);
        i == 0 ? client_close(client) : client_reset(client);
    }
    assert_int_equal(request_once(&world, OLD("/c"), NULL), 200);
    world_free(&world);
}

/* Random sequences of fragments of requests; each client leaves in one of three ways. */
static void random_input_does_not_break_the_server(void **state)
{
    static const char *const pieces[] = {
        GET("/a"),
        "POST /b HTTP/1.1\r\n",
        HOST,
        "Content-Length: 5\r\n",
        "\r\n",
        "hello",
        "Transfer-Encoding: chunked\r\n",
        "5\r\n",
        "0\r\n\r\n",
        "Expect: 100-continue\r\n",
        "\xff\x01\n",
        "GET ",
        "/c",
        " HTTP/1.1",
        "Range: bytes=1-\r\n",
    };
    struct world world =
        world_start("/a bytes=100000 delay=1ms | reset | garbage | 503 early close=half | loop\n"
                    "/b early=2 reuse=close | drip=1/1ms | 200 half-close | loop\n/c capacity=1 queue=1 service=1ms\n"
                    "* 200");
    uint64_t chance = 1;
    for (int i = 0; i < 400; i++) {
        struct client *client = client_new(&world);
        for (int j = 0; j < 12; j++) {
            chance = chance * UINT64_C(6364136223846793005) + 1442695040888963407;
            client_send(client, pieces[(chance >> 33) % COUNT(pieces)]);
        }
        if (chance >> 62 == 0)
            shutdown(client->fd, SHUT_WR);
        if (chance >> 62 == 1)
            client_reset(client);
        else
            client_close(client);
    }
    assert_int_equal(request_once(&world, OLD("/"), NULL), 200);
    world_stop(&world);
    for (size_t i = 0; i < world.count; i++)
        assert_true(world.seen[i].end_ns > 0 && strcmp(world.seen[i].result, "reading") != 0);
    world_free(&world);
}

static void many_connections_are_served_concurrently(void **state)
{
    enum { CLIENTS = 400 };
    static int fd[CLIENTS];
    struct world world = world_start("/a capacity=400 service=1ms");
    for (int i = 0; i < CLIENTS; i++) {
        fd[i] = connect_to(chaos_port(world.server));
        assert_true(fd[i] >= 0);
        assert_true(send(fd[i], GET("/a"), strlen(GET("/a")), MSG_NOSIGNAL) > 0);
    }
    for (int i = 0; i < CLIENTS; i++) {
        char bytes[100];
        assert_true(recv(fd[i], bytes, sizeof bytes, 0) > 12);
        assert_memory_equal(bytes, "HTTP/1.1 200", 12);
        close(fd[i]);
    }
    world_free(&world);
}

/* Starts a server with few descriptors in a child process. */
static pid_t start_poor_server(uint16_t *port)
{
    int tell[2];
    assert_int_equal(pipe(tell), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct chaos_config config = {.journal_fd = -1};
        struct chaos *server;
        if (chaos_new(&server, &config, NULL) != BIDE_OK)
            _exit(1);
        int most = dup(0); /* the lowest free descriptor */
        setrlimit(RLIMIT_NOFILE, &(struct rlimit){(rlim_t)most + 5, (rlim_t)most + 5});
        *port = chaos_port(server);
        if (write(tell[1], port, sizeof *port) != sizeof *port)
            _exit(1);
        chaos_run(server);
        _exit(0);
    }
    assert_int_equal(read(tell[0], port, sizeof *port), sizeof *port);
    close(tell[0]);
    close(tell[1]);
    return child;
}

static void server_without_descriptors_pauses_and_continues(void **state)
{
    enum { CLIENTS = 60 };
    int fd[CLIENTS];
    uint16_t port = 0;
    pid_t child = start_poor_server(&port);
    for (int i = 0; i < CLIENTS; i++) {
        fd[i] = connect_to(port);
        assert_true(fd[i] >= 0 && send(fd[i], GET("/"), strlen(GET("/")), MSG_NOSIGNAL) > 0);
    }
    for (int i = 0; i < CLIENTS; i++) { /* each client that leaves makes room for another */
        char bytes[100];
        assert_true(recv(fd[i], bytes, sizeof bytes, 0) > 12);
        assert_memory_equal(bytes, "HTTP/1.1 200", 12);
        close(fd[i]);
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

/* ---- recorded requests ---- */

static void every_header_of_a_request_is_recorded(void **state)
{
    struct world world = world_start("/a reset");
    request_once(&world,
                 "PATCH /a?token=s3cret HTTP/1.1\r\n" HOST "Idempotency-Key: \"k-1\"\r\nBide-Attempt: 2;max=4\r\n"
                 "traceparent: 00-aa-bb-01\r\nAuthorization: Bearer s3cret\r\nx-secret:  a b \r\nX-Secret: 2\r\n\r\n",
                 NULL);
    world_stop(&world);
    assert_int_equal(world.count, 1);
    const struct chaos_seen *seen = &world.seen[0];
    struct bide_text value;
    assert_string_equal(seen->method, "PATCH");
    assert_string_equal(seen->path, "/a");
    assert_string_equal(seen->query, "token=s3cret");
    assert_string_equal(seen->key, "\"k-1\"");
    assert_string_equal(seen->attempt, "2;max=4");
    assert_string_equal(seen->traceparent, "00-aa-bb-01");
    assert_string_equal(seen->authorization, "Bearer s3cret");
    assert_true(chaos_seen_header(seen, "X-Secret", &value));
    assert_true(value.length == 3 && memcmp(value.at, "a b", 3) == 0);
    assert_false(chaos_seen_header(seen, "X-Other", &value));
    assert_false(chaos_seen_header(seen, "PATCH /a?token=s3cret HTTP/1.1", &value));
    world_free(&world);
}

static void absent_fields_are_null(void **state)
{
    struct world world = world_start(NULL);
    request_once(&world, OLD("/"), NULL);
    world_stop(&world);
    assert_null(world.seen[0].query);
    assert_null(world.seen[0].key);
    assert_null(world.seen[0].attempt);
    assert_null(world.seen[0].traceparent);
    assert_null(world.seen[0].authorization);
    assert_true(world.seen[0].body_hash == bide_hash("", 0));
    world_free(&world);
}

static void journal_has_a_line_per_request_and_no_secret(void **state)
{
    int ends[2];
    char text[4000] = {0};
    assert_int_equal(pipe(ends), 0);
    struct world world = world_start_with((struct chaos_config){.script = "/a 503 | reset", .journal_fd = ends[1]});
    request_once(&world,
                 "POST /a?q=s3cret HTTP/1.0\r\nIdempotency-Key: \"a\\b\"\r\nBide-Attempt: 2\r\nCookie: s3cret\r\n"
                 "Authorization: s3cret\r\nProxy-Authorization: s3cret\r\nContent-Length: 2\r\n\r\nhi",
                 NULL);
    request_once(&world, "GET /a HTTP/1.0\r\ntraceparent: \xe9\r\n\r\n", NULL);
    size_t length = 0;
    for (int lines = 0; lines < 2;) { /* lines arrive while it serves */
        ssize_t n = read(ends[0], text + length, sizeof text - 1 - length);
        assert_true(n > 0);
        for (ssize_t i = 0; i < n; i++)
            lines += text[length + (size_t)i] == '\n';
        length += (size_t)n;
    }
    assert_null(strstr(text, "s3cret"));
    assert_non_null(strstr(text, "\"connection\":1,\"on_connection\":1,\"method\":\"POST\",\"path\":\"/a\","
                                 "\"key\":\"\\\"a\\\\b\\\"\",\"attempt\":\"2\",\"traceparent\":null,"
                                 "\"body_bytes\":2,\"body_hash\":\""));
    assert_non_null(strstr(text, "\"status\":503,\"result\":\"answered\"}\n{\"at_ns\":"));
    assert_non_null(strstr(text, "\"traceparent\":\"\xef\xbf\xbd\",\"body_bytes\":0"));
    assert_non_null(strstr(text, "\"status\":0,\"result\":\"reset\"}\n"));
    world_stop(&world);
    assert_int_equal(world.count, 0); /* `keep` was not set */
    world.count = 1;
    world_free(&world);
    close(ends[0]);
    close(ends[1]);
}

static void request_in_progress_is_recorded_as_unfinished(void **state)
{
    struct world world = world_start("/a delay=never");
    struct client *client = client_new(&world);
    client_send(client, GET("/a"));
    await_requests(&world, 1);
    world_stop(&world);
    assert_int_equal(world.count, 1);
    assert_string_equal(world.seen[0].result, "unfinished");
    assert_int_equal(world.seen[0].status, 0);
    client_close(client);
    world_free(&world);
}

/* ---- start and stop ---- */

static void bad_script_is_refused(void **state)
{
    struct chaos_config config = {.script = "/a 200\n/b what", .journal_fd = -1};
    struct chaos_error error;
    struct chaos *server;
    assert_int_equal(chaos_new(&server, &config, &error), BIDE_ERR_INVALID);
    assert_null(server);
    assert_int_equal(error.line, 2);
    assert_int_equal(chaos_new(&server, &config, NULL), BIDE_ERR_INVALID);
    chaos_free(NULL);
}

static void port_in_use_is_refused(void **state)
{
    struct world world = world_start(NULL);
    struct chaos_config config = {.port = chaos_port(world.server), .journal_fd = -1};
    struct chaos *server;
    assert_int_equal(chaos_new(&server, &config, NULL), BIDE_ERR_SYSTEM);
    assert_int_equal(errno, EADDRINUSE);
    world_free(&world);
    assert_int_equal(chaos_new(&server, &config, NULL), BIDE_OK); /* free again at once */
    chaos_free(server);
}

static void server_may_be_stopped_before_it_runs(void **state)
{
    struct chaos_config config = {.journal_fd = -1};
    struct chaos *server;
    assert_int_equal(chaos_new(&server, &config, NULL), BIDE_OK);
    int fd = connect_to(chaos_port(server)); /* it listens from the start */
    assert_true(fd >= 0);
    chaos_stop(server);
    assert_int_equal(chaos_run(server), BIDE_OK);
    chaos_free(server);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_path_responds_with_200_without_a_script),
        cmocka_unit_test(path_without_a_line_gets_404),
        cmocka_unit_test(steps_are_taken_in_order),
        cmocka_unit_test(retry_after_has_every_form),
        cmocka_unit_test(long_retry_after_is_sent_completely),
        cmocka_unit_test(headers_are_sent_as_written),
        cmocka_unit_test(bodies_have_every_framing),
        cmocka_unit_test(pattern_has_numbered_lines_of_eight_bytes),
        cmocka_unit_test(response_to_head_has_no_body),
        cmocka_unit_test(content_length_can_be_wrong),
        cmocka_unit_test(connection_closes_when_either_side_requests_it),
        cmocka_unit_test(interim_responses_precede_the_final_response),
        cmocka_unit_test(garbage_is_not_http),
        cmocka_unit_test(range_requests_are_supported),
        cmocka_unit_test(cut_download_can_be_resumed),
        cmocka_unit_test(connection_is_cut_at_the_scripted_point),
        cmocka_unit_test(reset_follows_all_bytes_before_it),
        cmocka_unit_test(connections_can_be_cut_on_accept),
        cmocka_unit_test(reused_connection_is_cut_after_its_next_request),
        cmocka_unit_test(half_closed_connection_still_reads),
        cmocka_unit_test(early_response_keeps_the_connection_open),
        cmocka_unit_test(early_response_reads_exactly_the_scripted_bytes),
        cmocka_unit_test(expect_100_continue_gets_a_100),
        cmocka_unit_test(body_hash_is_independent_of_framing_and_segmentation),
        cmocka_unit_test(pipelined_requests_are_answered_in_order),
        cmocka_unit_test(two_clients_may_pipeline_concurrently),
        cmocka_unit_test(response_is_never_sent_before_its_delay),
        cmocka_unit_test(client_may_leave_during_an_infinite_delay),
        cmocka_unit_test(client_is_not_idle_while_the_server_delays),
        cmocka_unit_test(drip_is_complete_and_slow),
        cmocka_unit_test(outage_applies_to_its_time_and_path),
        cmocka_unit_test(outage_of_the_catch_all_line_applies_to_every_path),
        cmocka_unit_test(outage_can_refuse_connections_and_ends),
        cmocka_unit_test(full_line_responds_with_503_at_once),
        cmocka_unit_test(queued_requests_are_served_in_order),
        cmocka_unit_test(failures_have_the_scripted_share_and_depend_on_the_seed),
        cmocka_unit_test(failures_can_be_cuts),
        cmocka_unit_test(malformed_requests_are_rejected_and_closed),
        cmocka_unit_test(too_long_head_is_rejected),
        cmocka_unit_test(partial_requests_are_recorded_as_half),
        cmocka_unit_test(silent_client_is_disconnected),
        cmocka_unit_test(client_that_does_not_read_is_disconnected),
        cmocka_unit_test(endless_responses_continue_until_the_client_leaves),
        cmocka_unit_test(random_input_does_not_break_the_server),
        cmocka_unit_test(many_connections_are_served_concurrently),
        cmocka_unit_test(server_without_descriptors_pauses_and_continues),
        cmocka_unit_test(every_header_of_a_request_is_recorded),
        cmocka_unit_test(absent_fields_are_null),
        cmocka_unit_test(journal_has_a_line_per_request_and_no_secret),
        cmocka_unit_test(request_in_progress_is_recorded_as_unfinished),
        cmocka_unit_test(bad_script_is_refused),
        cmocka_unit_test(port_in_use_is_refused),
        cmocka_unit_test(server_may_be_stopped_before_it_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
