/* test_connection.c - a kept-alive connection that cannot carry the request: nothing was sent, so the call continues on
 * a new connection without a charge, a vote or a wait; and connections that unsafe requests do not share. */
#include "live_call.h"
#include "live_h2.h"
#include "live_multi.h"
#include "live_tcp.h"

#define BIDE_CURL_RECORD_DECLARE_ONLY
#include <bide/budget.h>
#include <bide/clock.h>
#include <bide/curl_record.h>

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BODY  "charge=1"
#define CALLS 30

/* ---- bytes that arrived before the request ---- */

/* Each connection answers its requests; connection `speaker` sends `unsolicited` after `quiet_requests` of them. */
struct idle_server {
    struct live_tcp *tcp;
    const char *unsolicited;
    unsigned speaker;
    unsigned quiet_requests;
    unsigned first_serves; /* requests after which connection 1 is closed; 0: any number */
    bool announces_close;  /* in the last response on connection 1, so that libcurl closes it, too */
    sem_t send_it;
    unsigned requests[3]; /* by connection, the last for all later ones */
    char url[64];
};

static void serve_idle(void *context, int fd, unsigned number)
{
    static const char ok[] = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n";
    static const char last[] = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nok\n";
    struct idle_server *server = context;
    char head[4096], body[sizeof BODY - 1];
    unsigned answered = 0;
    while (live_tcp_read_head(fd, head, sizeof head)) {
        if (strncmp(head, "POST", 4) == 0 && !live_tcp_read(fd, body, sizeof body))
            return;
        server->requests[number < 2 ? number : 2]++;
        bool ends = ++answered == server->first_serves && number == 1;
        bool announced = ends && server->announces_close;
        if (!live_tcp_write(fd, announced ? last : ok, (announced ? sizeof last : sizeof ok) - 1) || ends)
            return;
        if (number == server->speaker && server->unsolicited && answered == server->quiet_requests) {
            sem_wait(&server->send_it);
            live_tcp_write(fd, server->unsolicited, strlen(server->unsolicited));
            server->unsolicited = NULL;
        }
    }
}

static void idle_server_open(struct idle_server *server, const char *unsolicited)
{
    *server = (struct idle_server){.unsolicited = unsolicited, .speaker = 1, .quiet_requests = 1};
    sem_init(&server->send_it, 0, 0);
    server->tcp = live_tcp_new(serve_idle, server);
    snprintf(server->url, sizeof server->url, "http://127.0.0.1:%u/", live_tcp_port(server->tcp));
}

static void wait_until_socket_is_readable(curl_socket_t fd)
{
    struct pollfd waiting = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&waiting, 1, 60000), 1);
}

static void wait_until_readable(CURL *easy)
{
    curl_socket_t fd = CURL_SOCKET_BAD;
    assert_int_equal(curl_easy_getinfo(easy, CURLINFO_ACTIVESOCKET, &fd), CURLE_OK);
    wait_until_socket_is_readable(fd);
}

static void expect_fresh_connection(const char *unsolicited, bool post)
{
    struct idle_server server;
    struct live_call c;
    idle_server_open(&server, unsolicited);
    live_call_open(&c, "/ 200", 4);
    live_target_service(&c.target);
    assert_int_equal(live_call_perform_url(&c, server.url), CURLE_OK);
    sem_post(&server.send_it);
    wait_until_readable(c.easy);
    if (post)
        live_call_post(&c, BODY);
    for (int i = 0; i < 2; i++) { /* the second call must not find the first connection in the pool */
        assert_int_equal(live_call_perform_url(&c, server.url), CURLE_OK);
        live_expect_done(&c, 1);
        assert_int_equal(c.result.status, 200);
        live_expect_text(&c.sink, "ok\n");
    }
    live_tcp_free(server.tcp);
    assert_int_equal(server.requests[1], 1);
    assert_int_equal(server.requests[2], 2);
    live_call_close(&c);
    sem_destroy(&server.send_it);
}

static const char *const unsolicited_bytes[] = {
    "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
    "rest of a body",
    "\x17\x03\x03 a TLS record, whatever it contains",
};

#define UNSOLICITED (sizeof unsolicited_bytes / sizeof *unsolicited_bytes)

static void a_response_sent_before_the_request_is_never_its_response(void **state)
{
    for (size_t i = 0; i < UNSOLICITED; i++) {
        expect_fresh_connection(unsolicited_bytes[i], true);
        expect_fresh_connection(unsolicited_bytes[i], false);
    }
}

/* Stores the socket of a new connection: libcurl before 8.22 does not show it after a transfer of a multi. */
static int note_socket(void *context, curl_socket_t fd, curlsocktype purpose)
{
    curl_socket_t *last = context;
    *last = fd;
    return CURL_SOCKOPT_OK;
}

/* The second handle has never used the connection of the first. */
static void a_response_sent_before_the_request_is_not_its_response_in_a_multi(void **state)
{
    for (size_t i = 0; i < 2 * UNSOLICITED; i++) {
        struct idle_server server;
        struct live_multi_call calls[2];
        struct bide_policy policy = live_policy(4);
        struct bide_target target;
        struct bide_multi *multi = live_multi_new();
        curl_socket_t fd = CURL_SOCKET_BAD;
        live_target_service(&target);
        idle_server_open(&server, unsolicited_bytes[i / 2]);
        for (size_t n = 0; n < 2; n++) {
            live_multi_call_init(&calls[n], server.url, &policy);
            live_multi_call_post(&calls[n], BODY);
        }
        curl_easy_setopt(calls[0].easy, CURLOPT_SOCKOPTFUNCTION, note_socket);
        curl_easy_setopt(calls[0].easy, CURLOPT_SOCKOPTDATA, &fd);
        live_multi_call_start(&calls[0], multi, &target);
        assert_true(live_multi_run(multi));
        assert_int_equal(calls[0].code, CURLE_OK);
        sem_post(&server.send_it);
        wait_until_socket_is_readable(fd);
        for (int n = 0; n < 2; n++) {
            struct live_multi_call *call = &calls[i % 2];
            live_multi_call_start(call, multi, &target);
            assert_true(live_multi_run(multi));
            assert_int_equal(call->code, CURLE_OK);
            assert_int_equal(call->result.status, 200);
            assert_int_equal(call->result.attempts, 1);
        }
        bide_multi_free(multi);
        live_tcp_free(server.tcp);
        assert_int_equal(server.requests[1], 1);
        assert_int_equal(server.requests[2], 2);
        live_multi_call_free(&calls[0]);
        live_multi_call_free(&calls[1]);
        sem_destroy(&server.send_it);
    }
}

static void run_post(struct live_multi_call *call, struct bide_multi *multi, struct bide_target *target)
{
    live_multi_call_start(call, multi, target);
    assert_true(live_multi_run(multi));
    assert_int_equal(call->code, CURLE_OK);
    assert_int_equal(call->result.status, 200);
    assert_int_equal(call->result.attempts, 1);
}

/* Two handles take turns on the connection. Its socket is noted at the first call only. */
static void a_connection_of_a_multi_is_checked_at_each_use(void **state)
{
    struct idle_server server;
    struct live_multi_call calls[2];
    struct bide_policy policy = live_policy(4);
    struct bide_target target;
    struct bide_multi *multi = live_multi_new();
    curl_socket_t fd = CURL_SOCKET_BAD;
    live_target_service(&target);
    idle_server_open(&server, unsolicited_bytes[1]);
    server.quiet_requests = 5;
    for (size_t n = 0; n < 2; n++) {
        live_multi_call_init(&calls[n], server.url, &policy);
        live_multi_call_post(&calls[n], BODY);
        curl_easy_setopt(calls[n].easy, CURLOPT_SOCKOPTFUNCTION, note_socket);
        curl_easy_setopt(calls[n].easy, CURLOPT_SOCKOPTDATA, &fd);
    }
    for (size_t n = 0; n < server.quiet_requests; n++)
        run_post(&calls[n % 2], multi, &target);
    sem_post(&server.send_it);
    wait_until_socket_is_readable(fd);
    run_post(&calls[1], multi, &target);
    bide_multi_free(multi);
    live_tcp_free(server.tcp);
    assert_int_equal(server.requests[1], 5);
    assert_int_equal(server.requests[2], 1);
    live_multi_call_free(&calls[0]);
    live_multi_call_free(&calls[1]);
    sem_destroy(&server.send_it);
}

static void socket_share_port(int fd)
{
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)), 0);
}

/* Stores the new socket, whose descriptor is higher than the last. A close resets the connection, so that its local
 * port can be used again at once. */
static curl_socket_t open_socket_on_shared_port(void *context, curlsocktype purpose, struct curl_sockaddr *address)
{
    curl_socket_t *last = context, low = socket(address->family, address->socktype, address->protocol);
    *last = fcntl(low, F_DUPFD, *last + 1);
    close(low);
    live_tcp_reset(*last);
    socket_share_port(*last);
    return *last;
}

/* Binds a socket to a free port, so that no other program gets it. */
static int reserve_port(long *port)
{
    struct sockaddr_in name = {.sin_family = AF_INET};
    socklen_t size = sizeof name;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    socket_share_port(fd);
    assert_int_equal(bind(fd, (struct sockaddr *)&name, size), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&name, &size), 0);
    *port = ntohs(name.sin_port);
    return fd;
}

/* The server closes the first connection, and the second has the same local port. */
static void a_connection_with_the_ends_of_a_closed_one_is_checked(void **state)
{
    struct idle_server server;
    struct live_multi_call call;
    struct bide_policy policy = live_policy(4);
    struct bide_target target;
    struct bide_multi *multi = live_multi_new();
    curl_socket_t fd = CURL_SOCKET_BAD, first;
    long port;
    int reserved = reserve_port(&port);
    live_target_service(&target);
    idle_server_open(&server, unsolicited_bytes[1]);
    server.speaker = 2;
    server.first_serves = 1;
    live_multi_call_init(&call, server.url, &policy);
    live_multi_call_post(&call, BODY);
    curl_easy_setopt(call.easy, CURLOPT_OPENSOCKETFUNCTION, open_socket_on_shared_port);
    curl_easy_setopt(call.easy, CURLOPT_OPENSOCKETDATA, &fd);
    curl_easy_setopt(call.easy, CURLOPT_LOCALPORT, port);
    run_post(&call, multi, &target);
    first = fd;
    wait_until_socket_is_readable(fd);
    run_post(&call, multi, &target);
    assert_int_not_equal(first, fd);
    curl_easy_setopt(call.easy, CURLOPT_LOCALPORT, 0L);
    sem_post(&server.send_it);
    wait_until_socket_is_readable(fd);
    run_post(&call, multi, &target);
    bide_multi_free(multi);
    live_tcp_free(server.tcp);
    live_expect_text(&call.sink, "ok\nok\nok\n"); /* of three calls, on three connections */
    live_multi_call_free(&call);
    sem_destroy(&server.send_it);
    close(reserved);
}

/* ---- the kept connection of an adopted handle ---- */

struct adopted_call {
    CURL *easy;
    struct live_sink sink;
    curl_socket_t fd;
    struct bide_target target;
};

static void adopted_open(struct adopted_call *c, const struct idle_server *server)
{
    *c = (struct adopted_call){.easy = bide_curl_easy_init(), .fd = CURL_SOCKET_BAD};
    live_target_service(&c->target);
    bide_curl_easy_setopt(c->easy, CURLOPT_URL, server->url);
    bide_curl_easy_setopt(c->easy, CURLOPT_WRITEFUNCTION, live_sink_write);
    bide_curl_easy_setopt(c->easy, CURLOPT_WRITEDATA, &c->sink);
    bide_curl_easy_setopt(c->easy, CURLOPT_OPENSOCKETFUNCTION, open_socket_on_shared_port);
    bide_curl_easy_setopt(c->easy, CURLOPT_OPENSOCKETDATA, &c->fd);
    assert_int_equal(bide_curl_adopt(c->easy), CURLE_OK);
}

static void adopted_perform(struct adopted_call *c, unsigned times)
{
    for (unsigned n = 0; n < times; n++)
        assert_int_equal(bide_curl_perform(c->easy, &c->target, NULL, NULL), CURLE_OK);
}

static void adopted_close(struct adopted_call *c, struct idle_server *server)
{
    bide_curl_easy_cleanup(c->easy);
    live_sink_free(&c->sink);
    live_tcp_free(server->tcp);
    sem_destroy(&server->send_it);
}

static void the_connection_of_an_adopted_handle_is_checked_at_each_use(void **state)
{
    struct idle_server server;
    struct adopted_call c;
    idle_server_open(&server, unsolicited_bytes[1]);
    server.quiet_requests = 5;
    adopted_open(&c, &server);
    adopted_perform(&c, server.quiet_requests);
    sem_post(&server.send_it);
    wait_until_socket_is_readable(c.fd);
    adopted_perform(&c, 2);
    live_expect_text(&c.sink, "ok\nok\nok\nok\nok\nok\nok\n");
    adopted_close(&c, &server);
    assert_int_equal(server.requests[1], 5);
    assert_int_equal(server.requests[2], 2);
}

/* The first connection is closed after it was kept, by libcurl at once or when it notices that the server has closed
 * it. The second, made by a call or without bide, has the same local port; the descriptor of the first becomes a pipe
 * on which nothing waits. */
static void a_connection_with_the_ends_of_the_kept_one_is_checked(void **state)
{
    for (int i = 0; i < 4; i++) {
        bool at_once = i & 1, without_bide = i & 2;
        struct idle_server server;
        struct adopted_call c;
        long port;
        int reserved = reserve_port(&port), quiet[2];
        assert_int_equal(pipe(quiet), 0);
        idle_server_open(&server, unsolicited_bytes[1]);
        server.first_serves = 2;
        server.announces_close = at_once;
        server.speaker = 2;
        adopted_open(&c, &server);
        bide_curl_easy_setopt(c.easy, CURLOPT_LOCALPORT, port);
        adopted_perform(&c, 2);
        curl_socket_t first = c.fd;
        if (at_once)
            assert_int_equal(dup2(quiet[0], first), first);
        else
            wait_until_socket_is_readable(first);
        if (without_bide)
            assert_int_equal(curl_easy_perform(c.easy), CURLE_OK);
        else
            adopted_perform(&c, 1);
        assert_int_not_equal(first, c.fd);
        assert_int_equal(dup2(quiet[0], first), first); /* closed by now in both cases, or the pipe already */
        bide_curl_easy_setopt(c.easy, CURLOPT_LOCALPORT, 0L);
        sem_post(&server.send_it);
        wait_until_socket_is_readable(c.fd);
        adopted_perform(&c, 1);
        live_expect_text(&c.sink, "ok\nok\nok\nok\n");
        adopted_close(&c, &server);
        close(first);
        close(quiet[0]);
        close(quiet[1]);
        close(reserved);
    }
}

/* ---- a server that closes idle connections ---- */

static void idle_closes_by_a_healthy_server_cost_nothing(void **state)
{
    static const char *const scripts[] = {"/pay 200 close=end | loop", "/pay 200 reset=end | loop"};
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
        struct live_call c;
        live_call_open(&c, scripts[i], 4);
        live_target_service(&c.target);
        live_call_post(&c, BODY);
        for (int n = 0; n < CALLS; n++) {
            assert_int_equal(live_call_perform(&c, "/pay"), CURLE_OK);
            live_expect_done(&c, 1);
            wait_until_readable(c.easy);
        }
        live_server_stop(&c.server);
        assert_int_equal(live_server_requests(&c.server, "/pay"), CALLS);
        assert_int_equal(bide_target_get(&c.target, bide_now()).refused[BIDE_GATE_INDEX(BIDE_GATE_BREAKER)], 0);
        live_call_close(&c);
    }
}

/* ---- unsafe requests alone on their connections ---- */

/* Returns the connection of the n-th request for a path, from 1. */
static uint64_t connection_of(const struct live_call *c, const char *path, size_t n)
{
    for (size_t i = 0; i < c->server.count; i++)
        if (strcmp(c->server.seen[i].path, path) == 0 && --n == 0)
            return c->server.seen[i].connection;
    fail_msg("%s was not requested that often", path);
    return 0;
}

static void an_unsafe_request_can_have_a_connection_of_its_own(void **state)
{
    for (int given = 0; given < 2; given++) {
        struct live_call c;
        live_call_open(&c, "/get 200\n/pay 200", 4);
        c.options.fresh_if_unsafe = true;
        assert_int_equal(live_call_perform(&c, "/get"), CURLE_OK);
        live_call_post(&c, BODY);
        c.options.safety = given ? BIDE_CURL_UNSAFE : BIDE_CURL_BY_METHOD;
        assert_int_equal(live_call_perform(&c, "/pay"), CURLE_OK);
        live_expect_done(&c, 1);
        assert_int_equal(live_call_perform(&c, "/pay"), CURLE_OK);
        live_expect_done(&c, 1);
        c.options.body.kind = BIDE_CURL_BODY_UNKNOWN;
        c.options.safety = BIDE_CURL_BY_METHOD;
        curl_easy_setopt(c.easy, CURLOPT_HTTPGET, 1L);
        assert_int_equal(live_call_perform(&c, "/get"), CURLE_OK);
        live_server_stop(&c.server);
        assert_int_equal(live_server_requests(&c.server, "/pay"), 2);
        assert_int_equal(connection_of(&c, "/get", 1), 1);
        assert_int_equal(connection_of(&c, "/pay", 1), 2);
        assert_int_equal(connection_of(&c, "/pay", 2), 3);
        if (given) /* the pooled connection was not even chosen */
            assert_int_equal(connection_of(&c, "/get", 2), 1);
        live_call_close(&c);
    }
}

/* The first leg leaves its connection cut for the next request (reuse=close): a second leg on it would be lost. */
static void later_legs_of_an_unsafe_request_are_alone_as_well(void **state)
{
    struct live_call c;
    live_call_open(&c, "/pay 307 header=\"Location: /there\" reuse=close\n/there 200", 4);
    c.options.fresh_if_unsafe = true;
    curl_easy_setopt(c.easy, CURLOPT_FOLLOWLOCATION, 1L);
    live_call_post(&c, BODY);
    assert_int_equal(live_call_perform(&c, "/pay"), CURLE_OK);
    live_expect_done(&c, 1);
    live_server_stop(&c.server);
    assert_int_equal(live_server_requests(&c.server, "/there"), 1);
    assert_true(connection_of(&c, "/there", 1) != connection_of(&c, "/pay", 1));
    live_call_close(&c);
}

/* The race that no client can win on a shared connection: the server closes it while the request is on its way. */
static void unsafe_requests_of_their_own_connection_survive_the_keep_alive_race(void **state)
{
    struct live_call c;
    live_call_open(&c, "/pay 200 reuse=close | loop", 4);
    c.options.fresh_if_unsafe = true;
    live_call_post(&c, BODY);
    for (int n = 0; n < CALLS; n++) {
        assert_int_equal(live_call_perform(&c, "/pay"), CURLE_OK);
        live_expect_done(&c, 1);
    }
    live_server_stop(&c.server);
    assert_int_equal(live_server_requests(&c.server, "/pay"), CALLS);
    live_call_close(&c);
}

/* ---- a server that makes libcurl send requests without end ---- */

static void the_legs_of_an_attempt_are_bounded(void **state)
{
    struct live_call c;
    live_call_open(&c, "/a 302 header=\"Location: /a\" | loop", 4);
    curl_easy_setopt(c.easy, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(c.easy, CURLOPT_MAXREDIRS, -1L); /* libcurl itself follows for ever */
    c.policy.attempt_timeout_ns = 20 * BIDE_S;
    assert_int_equal(live_call_perform(&c, "/a"), CURLE_TOO_MANY_REDIRECTS);
    live_expect(&c, BIDE_ACTION_GIVE_UP, BIDE_REASON_PERMANENT, 1);
    live_server_stop(&c.server);
    assert_int_equal(live_server_requests(&c.server, "/a"), 64);
    live_call_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_response_sent_before_the_request_is_never_its_response),
        cmocka_unit_test(a_response_sent_before_the_request_is_not_its_response_in_a_multi),
        cmocka_unit_test(a_connection_of_a_multi_is_checked_at_each_use),
        cmocka_unit_test(a_connection_with_the_ends_of_a_closed_one_is_checked),
        cmocka_unit_test(the_connection_of_an_adopted_handle_is_checked_at_each_use),
        cmocka_unit_test(a_connection_with_the_ends_of_the_kept_one_is_checked),
        cmocka_unit_test(idle_closes_by_a_healthy_server_cost_nothing),
        cmocka_unit_test(an_unsafe_request_can_have_a_connection_of_its_own),
        cmocka_unit_test(later_legs_of_an_unsafe_request_are_alone_as_well),
        cmocka_unit_test(unsafe_requests_of_their_own_connection_survive_the_keep_alive_race),
        cmocka_unit_test(the_legs_of_an_attempt_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
