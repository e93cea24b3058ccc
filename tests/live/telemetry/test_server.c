/* test_server.c - the server of /metrics with real sockets: every scraper gets its response, and none can hold on to
 * more than its share.
 *
 * Server and clients are in one thread, and time is an argument: the test waits only until a socket is ready. SIGPIPE
 * is at its default, so raising it would end the test. */
#define _GNU_SOURCE
#include "telemetry/server.h"

#include "live_tcp.h"

#include <bide/telemetry.h>

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define COUNT(table) (sizeof(table) / sizeof *(table))
#define T0           (1000 * BIDE_S)
#define PATIENCE_MS  30000      /* until a socket is ready: only a server that hangs needs as long */
#define BIG          (8u << 20) /* a page that no socket buffer takes as a whole */
#define GET          "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"

static struct telemetry_server *server;
static int64_t now_ns;
static size_t page_size; /* of the next page; 0: a short one */
static bool is_out_of_memory;
static unsigned pages; /* made */

/* Returns a byte of a long page, by its place. */
static char page_byte(size_t at)
{
    return (char)('a' + at / 1000 % 26);
}

static char *make_page(void *context, size_t *length)
{
    static const char text[] = "# TYPE up gauge\nup 1\n";
    assert_ptr_equal(context, &server);
    if (is_out_of_memory)
        return NULL;
    pages++;
    *length = page_size > 0 ? page_size : sizeof text - 1;
    char *page = malloc(*length);
    assert_non_null(page);
    for (size_t i = 0; i < *length; i++)
        page[i] = page_size > 0 ? page_byte(i) : text[i];
    return page;
}

static int open_server(void **state)
{
    (void)state;
    now_ns = T0;
    page_size = 0;
    is_out_of_memory = false;
    pages = 0;
    return telemetry_server_open(&server, "127.0.0.1:0", make_page, &server, NULL) == BIDE_OK ? 0 : -1;
}

static int close_server(void **state)
{
    (void)state;
    telemetry_server_close(server);
    return 0;
}

/* ---- client and server in turns ---- */

/* Waits until the server or the client can go on, and lets the server go on. client: -1: none. */
static void take_turn(int client, short events)
{
    struct pollfd fds[TELEMETRY_SERVER_FDS + 1];
    size_t count = telemetry_server_fds(server, fds);
    fds[count] = (struct pollfd){.fd = client, .events = events};
    assert_true(poll(fds, (nfds_t)count + 1, PATIENCE_MS) > 0);
    telemetry_server_process(server, fds, count, now_ns);
}

static size_t connections(void)
{
    struct pollfd fds[TELEMETRY_SERVER_FDS];
    return telemetry_server_fds(server, fds) - 1;
}

static void take_turns_until(size_t count)
{
    while (connections() != count)
        take_turn(-1, 0);
}

static int client_connect(void)
{
    int fd = live_tcp_connect(telemetry_server_port(server));
    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    return fd;
}

/* The server has accepted it, too. */
static int client_open(void)
{
    size_t before = connections();
    int fd = client_connect();
    take_turns_until(before + 1);
    return fd;
}

static void client_send(int fd, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t n = send(fd, bytes, length, MSG_NOSIGNAL);
        if (n < 0) {
            assert_int_equal(errno, EAGAIN);
            take_turn(fd, POLLOUT);
            continue;
        }
        bytes += n;
        length -= (size_t)n;
    }
}

/* Receives up to the end that the server sends. Returns the length, or -1 after a reset. */
static ssize_t client_receive(int fd, char *into, size_t size)
{
    size_t length = 0;
    for (;;) {
        assert_true(length < size);
        ssize_t n = recv(fd, into + length, size - length, 0);
        if (n == 0)
            break;
        if (n < 0 && errno == ECONNRESET)
            return -1;
        if (n < 0) {
            assert_int_equal(errno, EAGAIN);
            take_turn(fd, POLLIN);
            continue;
        }
        length += (size_t)n;
    }
    return (ssize_t)length;
}

/* Sends a request and receives the whole response, as a text. */
static const char *fetch_bytes(const char *bytes, size_t length)
{
    static char response[65536];
    int fd = client_open();
    client_send(fd, bytes, length);
    ssize_t n = client_receive(fd, response, sizeof response - 1);
    assert_true(n >= 0);
    response[n] = '\0';
    close(fd);
    take_turns_until(0);
    return response;
}

static const char *fetch(const char *request)
{
    return fetch_bytes(request, strlen(request));
}

static void assert_begins(const char *text, const char *begin)
{
    if (strncmp(text, begin, strlen(begin)) != 0)
        fail_msg("%.200s\ndoes not begin with %s", text, begin);
}

/* ---- responses ---- */

static void a_scrape_gets_the_page_with_its_content_type(void **state)
{
    (void)state;
    assert_string_equal(fetch(GET), "HTTP/1.1 200 OK\r\n"
                                    "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
                                    "Content-Length: 21\r\n"
                                    "X-Content-Type-Options: nosniff\r\n"
                                    "Connection: close\r\n\r\n"
                                    "# TYPE up gauge\nup 1\n");
}

static void head_has_the_length_of_the_page_and_no_body(void **state)
{
    (void)state;
    const char *response = fetch("HEAD /metrics HTTP/1.0\r\n\r\n");
    assert_begins(response, "HTTP/1.1 200 OK\r\nContent-Type: " BIDE_TELEMETRY_CONTENT_TYPE "\r\n");
    assert_non_null(strstr(response, "\r\nContent-Length: 21\r\n"));
    assert_string_equal(strstr(response, "\r\n\r\n"), "\r\n\r\n");
    response = fetch("HEAD /nowhere HTTP/1.0\r\n\r\n");
    assert_begins(response, "HTTP/1.1 404 ");
    assert_string_equal(strstr(response, "\r\n\r\n"), "\r\n\r\n");
}

static void other_requests_get_the_status_of_their_error(void **state)
{
    static const struct {
        const char *request, *status, *part;
    } table[] = {
        {"GET / HTTP/1.0\r\n\r\n", "200 OK", "the metrics are at /metrics\n"},
        {"GET /favicon.ico HTTP/1.0\r\n\r\n", "404 Not Found", "/metrics"},
        {"DELETE /metrics HTTP/1.0\r\n\r\n", "405 Method Not Allowed", "\r\nAllow: GET, HEAD\r\n"},
        {"GET /metrics HTTP/1.1\r\n\r\n", "400 Bad Request", "\r\nConnection: close\r\n"},
        {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "505 HTTP Version Not Supported", "HTTP/1.1"},
        {"garbage\n", "400 Bad Request", "not a valid"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        char begin[64];
        const char *response = fetch(table[i].request);
        snprintf(begin, sizeof begin, "HTTP/1.1 %s\r\nContent-Type: text/plain; charset=utf-8\r\n", table[i].status);
        assert_begins(response, begin);
        assert_non_null(strstr(response, table[i].part));
        unsigned long length = strtoul(strstr(response, "Content-Length: ") + 16, NULL, 10);
        assert_int_equal(length, strlen(strstr(response, "\r\n\r\n") + 4));
    }
    assert_int_equal(pages, 0);
}

static void without_memory_for_the_page_the_status_is_503(void **state)
{
    (void)state;
    is_out_of_memory = true;
    assert_begins(fetch(GET), "HTTP/1.1 503 Service Unavailable\r\n");
    is_out_of_memory = false;
    assert_begins(fetch(GET), "HTTP/1.1 200 OK\r\n");
}

/* ---- hostile requests ---- */

static void a_request_may_come_byte_by_byte(void **state)
{
    static char response[1024];
    (void)state;
    int fd = client_open();
    for (const char *at = GET; *at != '\0'; at++) {
        client_send(fd, at, 1);
        take_turn(-1, 0);
    }
    assert_true(client_receive(fd, response, sizeof response) > 0);
    assert_begins(response, "HTTP/1.1 200 OK\r\n");
    close(fd);
}

/* The rest is discarded: closing with unread bytes would reset the connection and destroy the response. */
static void of_several_requests_the_first_is_served(void **state)
{
    (void)state;
    const char *response = fetch("GET / HTTP/1.0\r\n\r\n" GET GET GET "POST / HTTP/1.1\r\n\r\n");
    assert_begins(response, "HTTP/1.1 200 OK\r\n");
    assert_null(strstr(response + 1, "HTTP/1.1"));
    assert_int_equal(pages, 0);
}

static void a_header_of_a_megabyte_gets_its_response(void **state)
{
    static char request[1 << 20];
    static const char begin[] = "GET /metrics HTTP/1.1\r\nX: ";
    (void)state;
    memset(request, 'x', sizeof request);
    memcpy(request, begin, sizeof begin - 1);
    assert_begins(fetch_bytes(request, sizeof request), "HTTP/1.1 431 Request Header Fields Too Large\r\n");
    memset(request, 'x', sizeof request);
    assert_begins(fetch_bytes(request, sizeof request), "HTTP/1.1 414 URI Too Long\r\n");
    memset(request, '\0', sizeof request);
    memcpy(request + sizeof request - 2, "\r\n", 2);
    assert_begins(fetch_bytes(request, sizeof request), "HTTP/1.1 414 URI Too Long\r\n");
}

static void a_half_closed_client_gets_its_response(void **state)
{
    static char response[1024];
    (void)state;
    int fd = client_open();
    client_send(fd, GET, sizeof GET - 1);
    assert_int_equal(shutdown(fd, SHUT_WR), 0);
    assert_true(client_receive(fd, response, sizeof response) > 0);
    assert_begins(response, "HTTP/1.1 200 OK\r\n");
    close(fd);
    take_turns_until(0);
}

static void a_client_that_closes_early_is_forgotten(void **state)
{
    (void)state;
    int fd = client_open();
    client_send(fd, GET, sizeof GET - 3);
    assert_int_equal(shutdown(fd, SHUT_WR), 0);
    take_turns_until(0);
    close(fd);
    fd = client_open();
    live_tcp_reset(fd);
    close(fd);
    take_turns_until(0);
    assert_int_equal(pages, 0);
}

/* ---- slow and greedy clients ---- */

static bool is_sending(size_t *count)
{
    struct pollfd fds[TELEMETRY_SERVER_FDS];
    size_t all = telemetry_server_fds(server, fds);
    *count = 0;
    for (size_t i = 1; i < all; i++)
        *count += fds[i].events == POLLOUT;
    return *count > 0;
}

/* Requests the page and reads nothing. */
static int client_stall(void)
{
    unsigned before = pages;
    int fd = client_open();
    client_send(fd, GET, sizeof GET - 1);
    while (pages == before)
        take_turn(-1, 0);
    return fd;
}

/* A reset after a half-close is EPIPE, which raises SIGPIPE; without it, it is ECONNRESET. */
static void a_reset_while_the_page_is_sent_ends_the_connection(void **state)
{
    char some[1000];
    (void)state;
    page_size = BIG;
    for (int half_closed = 0; half_closed < 2; half_closed++) {
        size_t sending;
        int fd = client_stall();
        assert_true(is_sending(&sending));
        assert_true(recv(fd, some, sizeof some, 0) > 0);
        if (half_closed)
            assert_int_equal(shutdown(fd, SHUT_WR), 0);
        live_tcp_reset(fd);
        close(fd);
        take_turns_until(0);
    }
}

static void a_slow_reader_gets_the_whole_page(void **state)
{
    static char response[BIG + 1000];
    (void)state;
    page_size = BIG;
    int fd = client_stall();
    size_t length = (size_t)client_receive(fd, response, sizeof response);
    const char *page = strstr(response, "\r\n\r\n") + 4;
    assert_int_equal(response + length - page, BIG);
    for (size_t i = 0; i < BIG; i++)
        if (page[i] != page_byte(i))
            fail_msg("byte %zu of the page is wrong", i);
    close(fd);
    take_turns_until(0);
}

static void clients_that_never_read_hold_eight_pages_at_most(void **state)
{
    int fds[20];
    size_t sending;
    (void)state;
    page_size = BIG;
    for (size_t i = 0; i < COUNT(fds); i++) {
        fds[i] = client_stall();
        assert_true(is_sending(&sending));
        assert_in_range(sending, 1, 8);
    }
    assert_int_equal(sending, 8);
    for (size_t i = 0; i < COUNT(fds); i++)
        close(fds[i]);
    take_turns_until(0);
    page_size = 0;
    assert_begins(fetch(GET), "HTTP/1.1 200 OK\r\n");
}

static void a_request_has_ten_seconds(void **state)
{
    (void)state;
    assert_int_equal(telemetry_server_due(server), BIDE_NEVER);
    int fd = client_open();
    assert_int_equal(telemetry_server_due(server), T0 + 10 * BIDE_S);
    client_send(fd, "GET ", 4);
    take_turn(-1, 0);
    now_ns = T0 + 10 * BIDE_S - 1;
    telemetry_server_process(server, NULL, 0, now_ns);
    assert_int_equal(connections(), 1);
    now_ns = telemetry_server_due(server);
    telemetry_server_process(server, NULL, 0, now_ns);
    assert_int_equal(connections(), 0);
    assert_int_equal(telemetry_server_due(server), BIDE_NEVER);
    close(fd);
}

static void a_page_that_is_not_read_in_ten_seconds_is_cut_by_a_reset(void **state)
{
    static char response[2 * BIG];
    (void)state;
    page_size = BIG;
    int fd = client_stall();
    now_ns = T0 + 10 * BIDE_S;
    telemetry_server_process(server, NULL, 0, now_ns);
    assert_int_equal(connections(), 0);
    assert_int_equal(client_receive(fd, response, sizeof response), -1);
    close(fd);
}

/* The response was read, but the client leaves the connection open. */
static void an_open_connection_is_closed_a_second_after_its_response(void **state)
{
    static char response[1024];
    (void)state;
    int fd = client_open();
    client_send(fd, GET, sizeof GET - 1);
    assert_true(client_receive(fd, response, sizeof response) > 0);
    assert_int_equal(connections(), 1);
    assert_int_equal(telemetry_server_due(server), T0 + BIDE_S);
    now_ns = T0 + BIDE_S;
    telemetry_server_process(server, NULL, 0, now_ns);
    assert_int_equal(connections(), 0);
    close(fd);
}

/* ---- many clients, and no descriptors ---- */

static void one_connection_too_many_closes_the_oldest(void **state)
{
    int fds[TELEMETRY_SERVER_CONNECTIONS + 1];
    char byte;
    (void)state;
    for (size_t i = 0; i < TELEMETRY_SERVER_CONNECTIONS; i++)
        fds[i] = client_open();
    assert_int_equal(recv(fds[0], &byte, 1, 0), -1);
    assert_int_equal(errno, EAGAIN);
    fds[TELEMETRY_SERVER_CONNECTIONS] = client_connect();
    take_turn(-1, 0);
    assert_int_equal(connections(), TELEMETRY_SERVER_CONNECTIONS);
    assert_int_equal(recv(fds[0], &byte, 1, 0), 0); /* closed */
    assert_int_equal(recv(fds[1], &byte, 1, 0), -1);
    assert_int_equal(errno, EAGAIN);
    for (size_t i = 0; i < COUNT(fds); i++)
        close(fds[i]);
    take_turns_until(0);
}

/* More connections than the server accepts in a turn wait in the backlog: each gets its turn. */
static void a_hundred_scrapes_at_once_are_all_served(void **state)
{
    int fds[100];
    (void)state;
    for (size_t i = 0; i < COUNT(fds); i++) {
        fds[i] = client_connect();
        client_send(fds[i], GET, sizeof GET - 1);
        if (i == 50) /* the backlog has 64 places */
            while (pages < i)
                take_turn(-1, 0);
    }
    for (size_t i = 0; i < COUNT(fds); i++) {
        static char response[1024];
        assert_true(client_receive(fds[i], response, sizeof response) > 0);
        assert_begins(response, "HTTP/1.1 200 OK\r\n");
        close(fds[i]);
    }
    assert_int_equal(pages, COUNT(fds));
}

/* The connection stays in the backlog, so the listener stays readable: polling it would spin. */
static void without_descriptors_the_server_pauses_for_a_second(void **state)
{
    struct rlimit limit, low;
    struct pollfd fds[TELEMETRY_SERVER_FDS];
    (void)state;
    int fd = client_connect();
    int next = open("/dev/null", O_RDONLY);
    assert_true(next >= 0);
    close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    low = limit;
    low.rlim_cur = (rlim_t)next;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    take_turn(-1, 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(telemetry_server_fds(server, fds), 1);
    assert_int_equal(fds[0].fd, -1);
    assert_int_equal(telemetry_server_due(server), T0 + BIDE_S);
    now_ns = T0 + BIDE_S;
    telemetry_server_process(server, NULL, 0, now_ns);
    assert_int_equal(connections(), 1);
    assert_int_equal(telemetry_server_due(server), now_ns + 10 * BIDE_S);
    close(fd);
    take_turns_until(0);
}

static void descriptors_of_others_are_ignored_and_ours_are_not_inherited(void **state)
{
    struct pollfd fds[TELEMETRY_SERVER_FDS];
    (void)state;
    int fd = client_open();
    assert_int_equal(telemetry_server_fds(server, fds), 2);
    for (size_t i = 0; i < 2; i++)
        assert_true((fcntl(fds[i].fd, F_GETFD) & FD_CLOEXEC) != 0);
    telemetry_server_process(server, &(struct pollfd){.fd = fd, .revents = POLLIN | POLLHUP}, 1, now_ns);
    assert_int_equal(connections(), 1);
    close(fd);
    take_turns_until(0);
}

/* ---- opening ---- */

static void errors_of_the_address_say_what_is_right(void **state)
{
    struct telemetry_server *other = NULL;
    struct bide_problem problem;
    char address[32], text[64];
    (void)state;
    assert_int_equal(telemetry_server_open(&other, "example.org:80", make_page, &server, &problem), BIDE_ERR_INVALID);
    assert_string_equal(problem.field, "listen");
    assert_begins(problem.text,
                  "listen is \"example.org:80\"; must be a numeric address and a port, as 127.0.0.1:9464");
    snprintf(address, sizeof address, "127.0.0.1:%u", telemetry_server_port(server));
    assert_int_equal(telemetry_server_open(&other, address, make_page, &server, &problem), BIDE_ERR_SYSTEM);
    assert_int_equal(problem.system_errno, EADDRINUSE);
    snprintf(text, sizeof text, "listen %s: ", address);
    assert_begins(problem.text, text);
    assert_int_equal(telemetry_server_open(&other, address, make_page, &server, NULL), BIDE_ERR_SYSTEM);
    assert_null(other);
}

/* A host without IPv6 refuses the address: that is an error like any other. */
static void an_ipv6_address_has_its_port(void **state)
{
    struct telemetry_server *other = NULL;
    struct bide_problem problem;
    (void)state;
    if (telemetry_server_open(&other, "[::1]:0", make_page, &server, &problem) == BIDE_OK)
        assert_int_not_equal(telemetry_server_port(other), 0);
    else
        assert_true(problem.system_errno == EADDRNOTAVAIL || problem.system_errno == EAFNOSUPPORT);
    telemetry_server_close(other);
}

/* The server closes first, so its side of the connection is in TIME_WAIT. */
static void the_port_can_be_used_again_at_once(void **state)
{
    char address[32];
    (void)state;
    snprintf(address, sizeof address, "localhost:%u", telemetry_server_port(server));
    assert_begins(fetch(GET), "HTTP/1.1 200 OK\r\n");
    telemetry_server_close(server);
    assert_int_equal(telemetry_server_open(&server, address, make_page, &server, NULL), BIDE_OK);
    assert_begins(fetch(GET), "HTTP/1.1 200 OK\r\n");
}

static void closing_closes_all_connections(void **state)
{
    char byte;
    (void)state;
    int idle = client_open();
    page_size = BIG;
    int stalled = client_stall();
    telemetry_server_close(server);
    server = NULL;
    assert_int_equal(recv(idle, &byte, 1, 0), 0);
    close(idle);
    close(stalled);
    telemetry_server_close(NULL);
}

int main(void)
{
#define SERVER_TEST(name) cmocka_unit_test_setup_teardown(name, open_server, close_server)
    const struct CMUnitTest tests[] = {
        SERVER_TEST(a_scrape_gets_the_page_with_its_content_type),
        SERVER_TEST(head_has_the_length_of_the_page_and_no_body),
        SERVER_TEST(other_requests_get_the_status_of_their_error),
        SERVER_TEST(without_memory_for_the_page_the_status_is_503),
        SERVER_TEST(a_request_may_come_byte_by_byte),
        SERVER_TEST(of_several_requests_the_first_is_served),
        SERVER_TEST(a_header_of_a_megabyte_gets_its_response),
        SERVER_TEST(a_half_closed_client_gets_its_response),
        SERVER_TEST(a_client_that_closes_early_is_forgotten),
        SERVER_TEST(a_reset_while_the_page_is_sent_ends_the_connection),
        SERVER_TEST(a_slow_reader_gets_the_whole_page),
        SERVER_TEST(clients_that_never_read_hold_eight_pages_at_most),
        SERVER_TEST(a_request_has_ten_seconds),
        SERVER_TEST(a_page_that_is_not_read_in_ten_seconds_is_cut_by_a_reset),
        SERVER_TEST(an_open_connection_is_closed_a_second_after_its_response),
        SERVER_TEST(one_connection_too_many_closes_the_oldest),
        SERVER_TEST(a_hundred_scrapes_at_once_are_all_served),
        SERVER_TEST(without_descriptors_the_server_pauses_for_a_second),
        SERVER_TEST(descriptors_of_others_are_ignored_and_ours_are_not_inherited),
        SERVER_TEST(errors_of_the_address_say_what_is_right),
        SERVER_TEST(an_ipv6_address_has_its_port),
        SERVER_TEST(the_port_can_be_used_again_at_once),
        SERVER_TEST(closing_closes_all_connections),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
