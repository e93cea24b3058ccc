/* test_connection.c - a connection to a real Redis, and to servers that are broken, hostile or absent.
 *
 * No step may wait beyond its deadline, allocate as much as a server announces, reveal a password or raise a signal:
 * SIGPIPE has its default action and would end this program. getaddrinfo is replaced, so that a lookup can hang. */
#define _GNU_SOURCE
#include "live_redis.h"
#include "live_tcp.h"
#include "live_tls.h"

#include <bide/clock.h>

#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "fleet/connection.h"
#include "fleet/resolver.h"

#define TIMEOUT_LONG  (20 * BIDE_S)  /* for events that must happen */
#define TIMEOUT_SHORT (60 * BIDE_MS) /* for timeouts that must happen */

static struct fleet_url url;
static struct fleet_connection *connection;
static struct live_redis redis;
static struct live_tcp *tcp;
static struct fleet_redis_reply reply;

static int reset_all(void **state)
{
    connection = NULL;
    tcp = NULL;
    memset(&redis, 0, sizeof redis);
    return 0;
}

static int close_all(void **state)
{
    fleet_connection_free(connection);
    connection = NULL;
    fleet_url_free(&url);
    live_tcp_free(tcp);
    live_redis_free(&redis);
    return 0;
}

/* ---- names ---- */

static sem_t resolver_released; /* a hanging lookup waits for it */
static int resolver_calls;

/* "cache.test" is 127.0.0.1; "stuck.test" too, after resolver_released is posted; "two.test" is 127.0.0.2, then
 * 127.0.0.1; "none.test" does not exist. */
int getaddrinfo(const char *node, const char *service, const struct addrinfo *want, struct addrinfo **found)
{
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
    bool ours = node != NULL && strstr(node, ".test") != NULL;
    if (!ours || (want->ai_flags & AI_NUMERICHOST) != 0)
        return real(node, service, want, found);
    __atomic_add_fetch(&resolver_calls, 1, __ATOMIC_SEQ_CST);
    if (strcmp(node, "none.test") == 0)
        return EAI_NONAME;
    if (strcmp(node, "stuck.test") == 0)
        while (sem_wait(&resolver_released) != 0)
            continue;
    if (strcmp(node, "two.test") != 0)
        return real("127.0.0.1", service, want, found);
    if (real("127.0.0.2", service, want, found) != 0)
        return EAI_FAIL;
    return real("127.0.0.1", service, want, &(*found)->ai_next);
}

/* ---- driving the connection ---- */

static void open_url(const char *text)
{
    struct bide_problem problem;
    fleet_connection_free(connection);
    fleet_url_free(&url);
    if (fleet_url_parse(&url, text, &problem) != BIDE_OK)
        fail_msg("%s", problem.text);
    connection = fleet_connection_new(&url);
    assert_non_null(connection);
}

static void open_url_at_port(const char *format, unsigned port)
{
    char text[600];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(text, sizeof text, format, port);
#pragma GCC diagnostic pop
    open_url(text);
}

/* Polls for the connection's events, and steps it. */
static void wait_and_step(void)
{
    short events;
    int64_t now_ns = bide_now(), deadline_ns = fleet_connection_deadline_ns(connection);
    struct pollfd ready = {.fd = fleet_connection_fd(connection, &events)};
    ready.events = events;
    int64_t wait_ns = deadline_ns <= now_ns ? 0 : deadline_ns - now_ns;
    wait_ns = wait_ns < 50 * BIDE_MS ? wait_ns : 50 * BIDE_MS;
    poll(&ready, 1, (int)((wait_ns + BIDE_MS - 1) / BIDE_MS));
    fleet_connection_step(connection, bide_now());
}

static enum fleet_connection_state wait_until_opened(void)
{
    while (fleet_connection_state(connection) == FLEET_CONNECTION_OPENING)
        wait_and_step();
    return fleet_connection_state(connection);
}

static enum fleet_connection_state open_connection(void)
{
    fleet_connection_open(connection, NULL, bide_now() + TIMEOUT_LONG);
    return wait_until_opened();
}

static void open_and_expect_ready(void)
{
    if (open_connection() != FLEET_CONNECTION_READY)
        fail_msg("%s", fleet_connection_problem(connection));
    assert_string_equal(fleet_connection_problem(connection), "");
}

static void expect_problem(const char *text)
{
    assert_int_equal(fleet_connection_state(connection), FLEET_CONNECTION_DOWN);
    const char *problem = fleet_connection_problem(connection);
    if (strstr(problem, text) == NULL)
        fail_msg("%s\nwanted: %s", problem, text);
    assert_int_equal(strncmp(problem, url.redacted, strlen(url.redacted)), 0);
    for (const char *c = problem; *c != '\0'; c++)
        assert_true(*c >= ' ' && *c <= '~');
}

static void expect_open_failure(const char *text)
{
    assert_int_equal(open_connection(), FLEET_CONNECTION_DOWN);
    expect_problem(text);
}

static bool send_command(int argc, const char *const *argv, int64_t timeout_ns)
{
    return fleet_connection_send(connection, argc, argv, NULL, bide_now() + timeout_ns);
}

/* Returns false if the connection went down instead. */
static bool await_reply(void)
{
    while (!fleet_connection_next_reply(connection, &reply)) {
        if (fleet_connection_state(connection) == FLEET_CONNECTION_DOWN)
            return false;
        wait_and_step();
    }
    return true;
}

static bool send_and_await(const char *a, const char *b, const char *c)
{
    const char *const argv[] = {a, b, c};
    assert_true(send_command(c != NULL ? 3 : b != NULL ? 2 : 1, argv, TIMEOUT_LONG));
    return await_reply();
}

static bool eval(const char *server_script)
{
    return send_and_await("EVAL", server_script, "0");
}

/* ---- fake servers ---- */

struct server_script {
    const char *bytes;
    size_t length;
    size_t chunk;     /* bytes written at once; 0: all */
    unsigned times;   /* repetitions; 0: once */
    bool unsolicited; /* reply before any command */
    bool stay_open;   /* until the client closes */
    bool reset;
};

static bool server_received; /* a server received the first bytes of the connection */

static void wait_for_end(int fd)
{
    char byte;
    while (recv(fd, &byte, 1, 0) == 1)
        continue;
}

static void server_run(void *context, int fd, unsigned number)
{
    const struct server_script *server_script = context;
    char command[4096];
    if (!server_script->unsolicited && recv(fd, command, sizeof command, 0) <= 0)
        return;
    __atomic_store_n(&server_received, true, __ATOMIC_SEQ_CST);
    size_t chunk = server_script->chunk > 0 ? server_script->chunk : server_script->length;
    bool there = true;
    for (unsigned n = 0; there && n <= server_script->times; n++)
        for (size_t i = 0; there && i < server_script->length; i += chunk)
            there = live_tcp_write(fd, server_script->bytes + i,
                                   server_script->length - i < chunk ? server_script->length - i : chunk);
    if (server_script->reset)
        live_tcp_reset(fd);
    if (there && server_script->stay_open)
        wait_for_end(fd);
}

/* Starts a server with this script instead of the previous server. */
static void server_start(struct server_script server_script)
{
    static struct server_script kept;
    live_tcp_free(tcp);
    __atomic_store_n(&server_received, false, __ATOMIC_SEQ_CST);
    kept = server_script;
    if (kept.length == 0)
        kept.length = strlen(kept.bytes);
    tcp = live_tcp_new(server_run, &kept);
}

/* Opens a connection to a silent server, steps it until the server has received something, and lets its deadline
 * pass. */
static void expect_open_timeout(const char *format, const char *problem)
{
    server_start((struct server_script){.bytes = "", .stay_open = true});
    open_url_at_port(format, live_tcp_port(tcp));
    int64_t deadline_ns = bide_now() + TIMEOUT_LONG;
    fleet_connection_open(connection, NULL, deadline_ns);
    while (!__atomic_load_n(&server_received, __ATOMIC_SEQ_CST))
        wait_and_step();
    fleet_connection_step(connection, deadline_ns - 1);
    assert_int_equal(fleet_connection_state(connection), FLEET_CONNECTION_OPENING);
    fleet_connection_step(connection, deadline_ns);
    expect_problem(problem);
}

/* Starts a server with this script and sends a command. */
static bool send_to_server(struct server_script server_script)
{
    server_start(server_script);
    open_url_at_port("redis://127.0.0.1:%u", live_tcp_port(tcp));
    open_and_expect_ready();
    return send_and_await("PING", NULL, NULL);
}

static void expect_garbage(struct server_script server_script, const char *text)
{
    size_t before = mallinfo2().uordblks;
    assert_false(send_to_server(server_script));
    expect_problem(text);
    size_t after = mallinfo2().uordblks;
    assert_true(after < before + (UINT64_C(1) << 20)); /* with a sanitizer both are 0 */
}

/* ---- broken and hostile servers ---- */

static void reply_may_arrive_byte_by_byte(void **state)
{
    struct server_script server_script = {
        .bytes = "*4\r\n:1\r\n$2\r\n-5\r\n:9223372036854775807\r\n$1\r\n0\r\n", .chunk = 1, .stay_open = true};
    assert_true(send_to_server(server_script));
    assert_int_equal(reply.kind, FLEET_REPLY_VALUES);
    assert_int_equal(reply.values, 4);
    assert_int_equal(reply.value[0], 1);
    assert_int_equal(reply.value[1], -5);
    assert_true(reply.value[2] == INT64_MAX);
    assert_int_equal(reply.value[3], 0);
    assert_int_equal(fleet_connection_state(connection), FLEET_CONNECTION_READY);
}

static void truncated_reply_is_not_returned(void **state)
{
    struct server_script server_script = {.bytes = "*3\r\n:1\r\n:2\r\n:"};
    assert_false(send_to_server(server_script));
    expect_problem("the server closed the connection");
}

static void reset_connection_is_down(void **state)
{
    struct server_script server_script = {.bytes = "*3\r\n", .reset = true};
    assert_false(send_to_server(server_script));
    assert_int_equal(fleet_connection_state(connection), FLEET_CONNECTION_DOWN);
    assert_string_not_equal(fleet_connection_problem(connection), "");
}

static void complete_reply_before_the_close_is_returned(void **state)
{
    struct server_script server_script = {.bytes = "-ERR max number of clients reached\r\n"};
    assert_true(send_to_server(server_script));
    assert_int_equal(reply.kind, FLEET_REPLY_ERROR);
    assert_string_equal(reply.error, "ERR max number of clients reached");
    while (fleet_connection_state(connection) != FLEET_CONNECTION_DOWN)
        wait_and_step();
    assert_false(fleet_connection_next_reply(connection, &reply));
}

static void bytes_that_are_not_resp_close_the_connection(void **state)
{
    expect_garbage((struct server_script){.bytes = "\1\2\3\4", .length = 4, .stay_open = true},
                   "the server does not speak the Redis protocol");
    expect_garbage((struct server_script){.bytes = "HTTP/1.1 400 Bad Request\r\n\r\n"}, "perhaps HTTP");
    expect_garbage((struct server_script){.bytes = "\x15\3\3\0\2\2\x46", .length = 7}, "perhaps TLS; use rediss://");
    expect_garbage((struct server_script){.bytes = ":12a\r\n", .stay_open = true},
                   "the server does not speak the Redis protocol");
    expect_garbage((struct server_script){.bytes = "*-2\r\n", .stay_open = true},
                   "the server does not speak the Redis protocol");
    expect_garbage((struct server_script){.bytes = "$99999999999999999999\r\n", .stay_open = true},
                   "the server does not speak the Redis protocol");
}

static void announced_lengths_are_not_allocated(void **state)
{
    static char megabyte[1 << 20];
    memset(megabyte, 'a', sizeof megabyte);
    memcpy(megabyte, "$1073741824\r\n", 13);
    expect_garbage((struct server_script){.bytes = megabyte, .length = sizeof megabyte}, "a reply that does not end");
    live_tcp_free(tcp); /* the server reads it */
    tcp = NULL;
    memcpy(megabyte, "+aaaaaaaaaaaa", 13);
    expect_garbage((struct server_script){.bytes = megabyte, .length = sizeof megabyte, .times = 1000},
                   "a reply that does not end");
    expect_garbage((struct server_script){.bytes = "*2147483647\r\n:1\r\n", .stay_open = true},
                   "a reply of too many values");
    expect_garbage((struct server_script){.bytes = "*65\r\n", .stay_open = true}, "a reply of too many values");
    expect_garbage((struct server_script){.bytes = "*1\r\n", .times = 1000}, "an array inside an array");
    expect_garbage((struct server_script){.bytes = "*2\r\n:1\r\n*0\r\n", .stay_open = true},
                   "an array inside an array");
}

static void reply_kinds_are_distinguished(void **state)
{
    static const struct {
        const char *bytes;
        int kind;
        size_t values;
    } table[] = {
        {"+OK\r\n", FLEET_REPLY_OTHER, 0},
        {"$2\r\nab\r\n", FLEET_REPLY_OTHER, 0},
        {"*2\r\n:1\r\n$1\r\nx\r\n", FLEET_REPLY_OTHER, 1},
        {"*1\r\n$20\r\n99999999999999999999\r\n", FLEET_REPLY_OTHER, 0},
        {"*1\r\n$1\r\n-\r\n", FLEET_REPLY_OTHER, 0},
        {"*1\r\n$0\r\n\r\n", FLEET_REPLY_OTHER, 0},
        {"*2\r\n:1\r\n-ERR x\r\n", FLEET_REPLY_OTHER, 1},
        {":7\r\n", FLEET_REPLY_VALUES, 1},
        {"$-1\r\n", FLEET_REPLY_VALUES, 0},
        {"*-1\r\n", FLEET_REPLY_VALUES, 0},
        {"*0\r\n", FLEET_REPLY_VALUES, 0},
        {"*2\r\n:1\r\n$-1\r\n", FLEET_REPLY_VALUES, 0},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct server_script server_script = {.bytes = table[i].bytes, .stay_open = true};
        assert_true(send_to_server(server_script));
        assert_int_equal(reply.kind, table[i].kind);
        assert_int_equal(reply.values, table[i].values);
        assert_int_equal(fleet_connection_state(connection), FLEET_CONNECTION_READY);
    }
}

static void missing_reply_times_out(void **state)
{
    server_start((struct server_script){.bytes = "", .stay_open = true});
    open_url_at_port("redis://127.0.0.1:%u", live_tcp_port(tcp));
    open_and_expect_ready();
    int64_t before_ns = bide_now();
    assert_true(send_command(1, (const char *const[]){"PING"}, TIMEOUT_LONG));
    assert_true(send_command(1, (const char *const[]){"PING"},
                             TIMEOUT_SHORT)); /* the earlier deadline counts, though its command came later */
    assert_true(fleet_connection_deadline_ns(connection) <= bide_now() + TIMEOUT_SHORT);
    assert_false(await_reply());
    assert_true(bide_now() - before_ns >= TIMEOUT_SHORT);
    expect_problem("no reply in time");
    assert_true(fleet_connection_deadline_ns(connection) == BIDE_NEVER);
}

static void silent_server_times_out_while_opening(void **state)
{
    expect_open_timeout("redis://:hunter2@127.0.0.1:%u", "no reply to AUTH in time");
    expect_open_timeout("redis://127.0.0.1:%u/1", "no reply to SELECT in time");
    expect_open_timeout("rediss://127.0.0.1:%u", "no TLS handshake in time");
}

/* Binds a port on which nothing listens; the caller closes it. */
static int bind_port(struct sockaddr_in *address)
{
    socklen_t length = sizeof *address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)address, sizeof *address), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)address, &length), 0);
    return fd;
}

static void refused_connection_is_reported(void **state)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = bind_port(&address);
    open_url_at_port("redis://127.0.0.1:%u", ntohs(address.sin_port));
    expect_open_failure("Connection refused");
    open_url_at_port("redis://two.test:%u", ntohs(address.sin_port));
    int before = __atomic_load_n(&resolver_calls, __ATOMIC_SEQ_CST);
    expect_open_failure("Connection refused");
    expect_open_failure("Connection refused");
    assert_int_equal(__atomic_load_n(&resolver_calls, __ATOMIC_SEQ_CST), before + 2); /* the address may have changed */
    close(fd);
    open_url("unix:///nowhere/at/all");
    expect_open_failure("No such file or directory");
}

static void server_that_closes_at_once_is_down(void **state)
{
    struct server_script server_script = {.bytes = "", .unsolicited = true};
    server_start(server_script);
    open_url_at_port("redis://:hunter2@127.0.0.1:%u", live_tcp_port(tcp));
    assert_int_equal(open_connection(), FLEET_CONNECTION_DOWN);
    open_url_at_port("rediss://127.0.0.1:%u", live_tcp_port(tcp));
    assert_int_equal(open_connection(), FLEET_CONNECTION_DOWN);
    open_url_at_port("redis://127.0.0.1:%u", live_tcp_port(tcp)); /* nothing to send: the close is seen later */
    open_connection();
    while (fleet_connection_state(connection) != FLEET_CONNECTION_DOWN)
        wait_and_step();
    expect_problem("the server closed the connection");
}

static void server_that_closes_after_auth_is_down(void **state)
{
    struct server_script server_script = {.bytes = "+OK\r\n"};
    server_start(server_script);
    open_url_at_port("redis://:hunter2@127.0.0.1:%u/1", live_tcp_port(tcp));
    assert_int_equal(open_connection(), FLEET_CONNECTION_DOWN);
    open_url_at_port("redis://:hunter2@127.0.0.1:%u", live_tcp_port(tcp));
    open_connection();
    while (fleet_connection_state(connection) != FLEET_CONNECTION_DOWN)
        wait_and_step();
    expect_problem("the server closed the connection");
}

static void unsolicited_reply_closes_the_connection(void **state)
{
    struct server_script server_script = {.bytes = "-DENIED it is protected\r\n", .unsolicited = true};
    server_start(server_script);
    open_url_at_port("redis://127.0.0.1:%u", live_tcp_port(tcp));
    open_connection();
    while (fleet_connection_state(connection) != FLEET_CONNECTION_DOWN)
        wait_and_step();
    expect_problem("the server sent an unsolicited reply: DENIED it is protected");
    server_script = (struct server_script){.bytes = ":1\r\n:2\r\n",
                                           .stay_open = true}; /* the second would be taken for the next reply */
    assert_true(send_to_server(server_script));
    assert_int_equal(reply.value[0], 1);
    expect_problem("the server sent an unsolicited reply"); /* at once, before anything can be sent */
}

static void echoed_password_is_masked(void **state)
{
    static const struct {
        const char *bytes, *problem;
    } table[] = {
        {"-ERR wrong password: hunter2!\r\n", "the server refuses AUTH: the server gave an unknown reason"},
        {"-ERR unknown command 'AUTH', with args beginning with: 'app' 'hunter'\r\n",
         "the server refuses AUTH: the server does not know that command"},
        {"-WRONGPASS hunter2 is wrong\r\n", "the server refuses AUTH: WRONGPASS, wrong user or password"},
        {"-hunter2hunter2\r\n", "the server refuses AUTH"},
        {"+OK\r\n-ERR \x01\x1b[31mhunter2\xff\r\n", "the server sent an unsolicited reply: ERR ??[31m***?"},
        {"+OK\r\nhunter2\r\n", "the server does not speak the Redis protocol"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        server_start((struct server_script){.bytes = table[i].bytes, .stay_open = true});
        open_url_at_port("redis://app:hunter2@127.0.0.1:%u", live_tcp_port(tcp));
        expect_open_failure(table[i].problem);
        assert_null(strstr(fleet_connection_problem(connection), "hunter"));
        assert_null(strstr(fleet_connection_problem(connection), "app"));
    }
}

/* ---- resolving names ---- */

static void host_name_is_resolved(void **state)
{
    struct server_script server_script = {.bytes = "+PONG\r\n", .stay_open = true};
    server_start(server_script);
    open_url_at_port("redis://cache.test:%u", live_tcp_port(tcp));
    open_and_expect_ready();
    assert_true(send_and_await("PING", NULL, NULL));
    open_url("redis://none.test");
    expect_open_failure("Name or service not known");
}

/* The first address is a listener with a full backlog that accepts nothing: it does not even refuse. */
static void silent_address_costs_only_its_share_of_the_time(void **state)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1)};
    int filler[4];
    server_start((struct server_script){.bytes = "+PONG\r\n", .stay_open = true});
    address.sin_port = htons(live_tcp_port(tcp));
    int listener = bind_port(&address);
    assert_int_equal(listen(listener, 0), 0);
    for (int i = 0; i < 4; i++) {
        filler[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        connect(filler[i], (struct sockaddr *)&address, sizeof address);
    }
    open_url_at_port("redis://two.test:%u", live_tcp_port(tcp));
    int64_t deadline_ns = bide_now() + 2 * TIMEOUT_LONG;
    fleet_connection_open(connection, NULL, deadline_ns);
    while (fleet_connection_deadline_ns(connection) == 0 ||
           fleet_connection_deadline_ns(connection) == deadline_ns) /* still resolving */
        wait_and_step();
    assert_true(fleet_connection_deadline_ns(connection) < deadline_ns);
    fleet_connection_step(connection, fleet_connection_deadline_ns(connection)); /* as if that time had come */
    assert_int_equal(wait_until_opened(), FLEET_CONNECTION_READY);
    assert_true(send_and_await("PING", NULL, NULL));
    for (int i = 0; i < 4; i++)
        close(filler[i]);
    close(listener);
}

/* localhost is usually ::1 as well, where nothing listens. */
static void every_address_is_tried(void **state)
{
    struct server_script server_script = {.bytes = "+PONG\r\n", .stay_open = true};
    server_start(server_script);
    open_url_at_port("redis://localhost:%u", live_tcp_port(tcp));
    open_and_expect_ready();
}

static void hanging_resolver_costs_a_deadline_and_one_thread(void **state)
{
    struct server_script server_script = {.bytes = "+PONG\r\n", .stay_open = true};
    server_start(server_script);
    int before = __atomic_load_n(&resolver_calls, __ATOMIC_SEQ_CST);
    open_url_at_port("redis://stuck.test:%u", live_tcp_port(tcp));
    for (int i = 0; i < 3; i++) {
        fleet_connection_open(connection, NULL, bide_now() + TIMEOUT_SHORT);
        assert_int_equal(wait_until_opened(), FLEET_CONNECTION_DOWN);
        expect_problem("the host name was not resolved in time");
    }
    fleet_connection_open(connection, "cache.test:1", bide_now() + TIMEOUT_LONG);
    assert_int_equal(wait_until_opened(), FLEET_CONNECTION_DOWN);
    expect_problem("(moved to cache.test:1): the lookup of another host name is still running");
    assert_true(__atomic_load_n(&resolver_calls, __ATOMIC_SEQ_CST) <=
                before + 1); /* the lookup may not have started yet */
    sem_post(&resolver_released);
    open_and_expect_ready(); /* with the result of the first lookup */
    assert_int_equal(__atomic_load_n(&resolver_calls, __ATOMIC_SEQ_CST), before + 1);
}

static void connection_may_be_freed_while_its_resolver_hangs(void **state)
{
    open_url("redis://stuck.test:1");
    fleet_connection_open(connection, NULL, bide_now() + TIMEOUT_SHORT);
    assert_int_equal(wait_until_opened(), FLEET_CONNECTION_DOWN);
    fleet_connection_free(connection);
    connection = NULL;
    sem_post(&resolver_released); /* the thread ends by itself and frees its memory */
}

/* ---- a real Redis ---- */

static void replies_match_commands_in_order(void **state)
{
    live_redis_start(&redis, "");
    open_url(live_redis_url(&redis, ""));
    open_and_expect_ready();
    for (int i = 0; i < 200; i++) {
        char number[16];
        snprintf(number, sizeof number, "%d", i);
        assert_true(send_command(3, (const char *const[]){"INCRBY", "sum", number}, TIMEOUT_LONG));
    }
    for (int i = 0, sum = 0; i < 200; i++) {
        assert_true(await_reply());
        assert_int_equal(reply.kind, FLEET_REPLY_VALUES);
        assert_int_equal(reply.value[0], sum += i);
    }
    assert_false(fleet_connection_next_reply(connection, &reply));
    assert_true(fleet_connection_deadline_ns(connection) == BIDE_NEVER);
}

static void script_replies_are_parsed(void **state)
{
    live_redis_start(&redis, "");
    open_url(live_redis_url(&redis, ""));
    open_and_expect_ready();
    assert_true(eval("return {1, -2, '3', 9007199254740991}"));
    assert_int_equal(reply.kind, FLEET_REPLY_VALUES);
    assert_int_equal(reply.values, 4);
    assert_true(reply.value[3] == INT64_C(9007199254740991));
    assert_true(eval("return redis.error_reply('MOVED 1 ' .. string.rep('a', 250) .. ':7000')"));
    assert_int_equal(reply.kind, FLEET_REPLY_ERROR);
    assert_string_equal(reply.error + strlen(reply.error) - 5, ":7000");
    assert_true(send_and_await("HMGET", "nobody", "a"));
    assert_int_equal(reply.kind, FLEET_REPLY_VALUES);
    assert_int_equal(reply.values, 0);
    assert_true(send_and_await("EVALSHA", "0123456789012345678901234567890123456789", "0"));
    assert_int_equal(reply.kind, FLEET_REPLY_ERROR);
    assert_memory_equal(reply.error, "NOSCRIPT ", 9);
    assert_false(eval("return {1, {2}}"));
    expect_problem("an array inside an array");
}

static void oversized_command_is_not_queued(void **state)
{
    static char large[FLEET_COMMAND_MAX + 1];
    memset(large, 'a', FLEET_COMMAND_MAX);
    live_redis_start(&redis, "");
    open_url(live_redis_url(&redis, ""));
    assert_false(send_command(1, (const char *const[]){"PING"}, TIMEOUT_LONG)); /* not READY */
    open_and_expect_ready();
    assert_false(send_command(2, (const char *const[]){"ECHO", large}, TIMEOUT_LONG));
    assert_false(send_command(0, NULL, TIMEOUT_LONG));
    large[FLEET_COMMAND_MAX - 4] = '\0';
    size_t sent = 0;
    while (send_command(2, (const char *const[]){"STRLEN", large + 2}, TIMEOUT_LONG))
        sent++;
    assert_int_equal(sent, 3); /* room for four, less the protocol bytes around each */
    for (size_t i = 0; i < sent; i++)
        assert_true(await_reply() && reply.values == 1 && reply.value[0] == 0);
    for (sent = 0; send_command(1, (const char *const[]){"DBSIZE"}, TIMEOUT_LONG); sent++)
        continue;
    assert_int_equal(sent, 256);
    for (size_t i = 0; i < sent; i++)
        assert_true(await_reply() && reply.value[0] == 0);
}

static void closing_flushes_the_queue(void **state)
{
    live_redis_start(&redis, "");
    open_url(live_redis_url(&redis, ""));
    open_and_expect_ready();
    assert_true(send_command(3, (const char *const[]){"SET", "last", "7"}, TIMEOUT_LONG));
    fleet_connection_close(connection);
    assert_int_equal(fleet_connection_state(connection), FLEET_CONNECTION_DOWN);
    assert_string_equal(fleet_connection_problem(connection), "");
    for (int64_t until_ns = bide_now() + TIMEOUT_LONG; strcmp(live_redis_do(&redis, "GET last"), "7") != 0;)
        assert_true(bide_now() < until_ns);
}

static void database_is_selected(void **state)
{
    live_redis_start(&redis, "");
    open_url(live_redis_url(&redis, "/5"));
    open_and_expect_ready();
    assert_true(send_and_await("SET", "where", "5"));
    open_url(live_redis_unix_url(&redis, "?db=5"));
    open_and_expect_ready();
    assert_true(send_and_await("GET", "where", NULL));
    assert_int_equal(reply.value[0], 5);
    open_url(live_redis_url(&redis, ""));
    open_and_expect_ready();
    assert_true(send_and_await("GET", "where", NULL));
    assert_int_equal(reply.values, 0);
    open_url(live_redis_url(&redis, "/999"));
    expect_open_failure("the server refuses SELECT: ERR DB index is out of range");
}

static void unix_socket_is_supported(void **state)
{
    live_redis_start(&redis, "");
    open_url(live_redis_unix_url(&redis, "?db=2"));
    open_and_expect_ready();
    assert_true(send_and_await("PING", NULL, NULL));
    assert_int_equal(reply.kind, FLEET_REPLY_OTHER);
    fleet_connection_open(connection, "127.0.0.1:1", bide_now() + TIMEOUT_LONG); /* a password would leave the host */
    expect_problem("not followed from a unix socket");
}

static void password_authenticates(void **state)
{
    live_redis_start(&redis, "requirepass hunter2\n");
    open_url_at_port("redis://:hunter2@127.0.0.1:%u", redis.process.port);
    open_and_expect_ready();
    assert_true(send_and_await("DBSIZE", NULL, NULL));
    assert_int_equal(reply.kind, FLEET_REPLY_VALUES);
    open_url_at_port("redis://:hunter3@127.0.0.1:%u", redis.process.port);
    expect_open_failure("the server refuses AUTH: WRONGPASS");
    assert_null(strstr(fleet_connection_problem(connection), "hunter"));
    open_url_at_port("redis://127.0.0.1:%u", redis.process.port);
    open_and_expect_ready();
    assert_true(send_and_await("DBSIZE", NULL, NULL));
    assert_memory_equal(reply.error, "NOAUTH ", 7);
    open_url_at_port("redis://:hunter2@127.0.0.1:%u/3", redis.process.port);
    open_and_expect_ready();
}

static void user_authenticates(void **state)
{
    live_redis_start(&redis, "user default off\nuser app on >hunter2 ~* +@all\n");
    open_url_at_port("redis://app:hunter2@127.0.0.1:%u", redis.process.port);
    open_and_expect_ready();
    assert_true(send_and_await("DBSIZE", NULL, NULL));
    assert_int_equal(reply.kind, FLEET_REPLY_VALUES);
    open_url_at_port("redis://other:hunter2@127.0.0.1:%u", redis.process.port);
    expect_open_failure("the server refuses AUTH: WRONGPASS");
}

static void connection_follows_an_endpoint(void **state)
{
    struct live_redis other = {0};
    char endpoint[64];
    live_redis_start(&redis, "");
    live_redis_start(&other, "");
    live_redis_do(&other, "SET who 2");
    open_url(live_redis_url(&redis, ""));
    open_and_expect_ready();
    snprintf(endpoint, sizeof endpoint, "127.0.0.1:%u", (unsigned)other.process.port);
    fleet_connection_open(connection, endpoint, bide_now() + TIMEOUT_LONG);
    assert_int_equal(wait_until_opened(), FLEET_CONNECTION_READY);
    assert_true(send_and_await("GET", "who", NULL));
    assert_int_equal(reply.value[0], 2);
    live_redis_free(&other);
    while (fleet_connection_state(connection) != FLEET_CONNECTION_DOWN)
        wait_and_step();
    expect_problem("(moved to 127.0.0.1:");
    fleet_connection_open(connection, "no place", bide_now() + TIMEOUT_LONG);
    expect_problem("that is not host:port");
    open_and_expect_ready(); /* the URL's endpoint is still there */
}

/* ---- TLS ---- */

/* Starts a Redis with TLS and a certificate for this name. */
static void start_tls(const char *alt_name, const char *lines)
{
    live_redis_dir(&redis);
    live_tls_make(&redis.process, "site", alt_name);
    live_tls_make(&redis.process, "client", "DNS:client.test");
    live_tls_make(&redis.process, "stranger", "IP:127.0.0.1");
    live_redis_start(&redis, lines);
}

static void make_tls(const char *host, const char *tail)
{
    char text[1024];
    size_t used = (size_t)snprintf(text, sizeof text, "rediss://%s:%u", host, (unsigned)redis.process.port);
    for (const char *c = tail; *c != '\0'; c++) { /* $ stands for the directory */
        if (*c == '$')
            used += (size_t)snprintf(text + used, sizeof text - used, "%s/", redis.process.dir);
        else
            text[used++] = *c;
    }
    text[used] = '\0';
    open_url(text);
}

static void tls_reads_and_writes(void **state)
{
    start_tls("IP:127.0.0.1", LIVE_REDIS_TLS "requirepass hunter2\n");
    make_tls("127.0.0.1", "?ca_file=$site.pem");
    open_and_expect_ready();
    assert_true(send_and_await("DBSIZE", NULL, NULL));
    assert_memory_equal(reply.error, "NOAUTH ", 7);
    char text[512];
    snprintf(text, sizeof text, "rediss://:hunter2@127.0.0.1:%u/2?ca_file=%s", (unsigned)redis.process.port,
             live_tls_path(&redis.process, "site"));
    open_url(text);
    open_and_expect_ready();
    for (int i = 0; i < 200; i++)
        assert_true(
            send_command(3, (const char *const[]){"EVAL", "return {1,2,3,4,5,6,7,8,9,10,11,12}", "0"}, TIMEOUT_LONG));
    for (int i = 0; i < 200; i++)
        assert_true(await_reply() && reply.values == 12);
    assert_true(send_command(3, (const char *const[]){"SET", "last", "7"}, TIMEOUT_LONG));
    fleet_connection_close(connection);
    for (int64_t until_ns = bide_now() + TIMEOUT_LONG; live_redis_number(&redis, "EVAL %s 0",
                                                                         "redis.call('SELECT', 2) "
                                                                         "return redis.call('EXISTS', 'last')") != 1;)
        assert_true(bide_now() < until_ns);
}

static void certificate_must_match_the_host(void **state)
{
    start_tls("DNS:cache.test", LIVE_REDIS_TLS);
    make_tls("cache.test", "?ca_file=$site.pem");
    open_and_expect_ready();
    make_tls("127.0.0.1", "?ca_file=$site.pem");
    expect_open_failure("the server's certificate is not trusted: IP address mismatch");
    make_tls("other.test", "?ca_file=$site.pem");
    expect_open_failure("the server's certificate is not trusted: hostname mismatch");
}

static void untrusted_certificate_is_rejected(void **state)
{
    start_tls("IP:127.0.0.1", LIVE_REDIS_TLS);
    make_tls("127.0.0.1", "");
    expect_open_failure("the server's certificate is not trusted: self");
    make_tls("127.0.0.1", "?ca_file=$stranger.pem");
    expect_open_failure("the server's certificate is not trusted: ");
}

static void expired_certificate_is_rejected(void **state)
{
    live_redis_dir(&redis);
    live_tls_make(&redis.process, "site", "IP:127.0.0.1");
    live_tls_expire(&redis.process, "site");
    live_redis_start(&redis, LIVE_REDIS_TLS);
    make_tls("127.0.0.1", "?ca_file=$site.pem");
    expect_open_failure("the server's certificate is not trusted: certificate has expired");
}

static void client_certificate_authenticates(void **state)
{
    start_tls("IP:127.0.0.1", LIVE_REDIS_TLS_MUTUAL);
    make_tls("127.0.0.1", "?ca_file=$site.pem&cert_file=$client.pem&key_file=$client.key");
    open_and_expect_ready();
    assert_true(send_and_await("DBSIZE", NULL, NULL));
    assert_int_equal(reply.kind, FLEET_REPLY_VALUES);
    static const char *const refused[] = {"?ca_file=$site.pem",
                                          "?ca_file=$site.pem&cert_file=$stranger.pem&key_file=$stranger.key"};
    for (size_t i = 0; i < 2; i++) {
        make_tls("127.0.0.1", refused[i]);
        if (open_connection() == FLEET_CONNECTION_READY) /* TLS 1.3: the server rejects it after the handshake */
            assert_false(send_and_await("DBSIZE", NULL, NULL));
        assert_int_equal(fleet_connection_state(connection), FLEET_CONNECTION_DOWN);
        assert_string_not_equal(fleet_connection_problem(connection), "");
    }
}

static void wrong_tls_files_are_named(void **state)
{
    start_tls("IP:127.0.0.1", LIVE_REDIS_TLS);
    live_process_run(&redis.process, (const char *const[]){"openssl", "pkey", "-in", "client.key", "-aes128",
                                                           "-passout", "pass:hunter2", "-out", "locked.key", NULL});
    make_tls("127.0.0.1", "?ca_file=$none.pem");
    expect_open_failure("none.pem: No such file or directory");
    make_tls("127.0.0.1", "?ca_file=$site.key");
    expect_open_failure("must hold certificates in PEM");
    make_tls("127.0.0.1", "?ca_file=$site.pem&cert_file=$none.pem");
    expect_open_failure("cert_file ");
    make_tls("127.0.0.1", "?ca_file=$site.pem&cert_file=$client.pem&key_file=$site.key");
    expect_open_failure("key_file ");
    make_tls("127.0.0.1", "?ca_file=$site.pem&cert_file=$client.pem&key_file=$locked.key"); /* without a prompt */
    expect_open_failure("key_file ");
}

/* A FIFO without a writer: whoever opens it for reading waits. */
static void tls_file_that_would_block_is_refused(void **state)
{
    static const char *const tails[] = {"?ca_file=$fifo", "?ca_file=$site.pem&cert_file=$fifo",
                                        "?ca_file=$site.pem&cert_file=$client.pem&key_file=$fifo"};
    start_tls("IP:127.0.0.1", LIVE_REDIS_TLS);
    live_process_run(&redis.process, (const char *const[]){"mkfifo", "fifo", NULL});
    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
        make_tls("127.0.0.1", tails[i]);
        expect_open_failure("fifo: is not a regular file");
    }
    make_tls("127.0.0.1", "?ca_file=/dev/null");
    expect_open_failure("ca_file /dev/null: is not a regular file");
}

static void damaged_certificate_after_a_good_one_is_refused(void **state)
{
    start_tls("IP:127.0.0.1", LIVE_REDIS_TLS);
    live_process_run(&redis.process, (const char *const[]){"sh", "-c",
                                                           "cat site.pem > bad.pem; sed '3s/^..../AAAA/' site.pem >> "
                                                           "bad.pem; cat site.pem site.pem > twice.pem; : > empty.pem",
                                                           NULL});
    make_tls("127.0.0.1", "?ca_file=$bad.pem");
    expect_open_failure("must hold certificates in PEM");
    make_tls("127.0.0.1", "?ca_file=$empty.pem");
    expect_open_failure("must hold certificates in PEM");
    make_tls("127.0.0.1", "?ca_file=$twice.pem");
    open_and_expect_ready();
}

static void tls_and_plain_do_not_mix(void **state)
{
    struct server_script server_script = {.bytes = "-ERR Protocol error\r\n", .length = 21};
    server_start(server_script);
    open_url_at_port("rediss://127.0.0.1:%u", live_tcp_port(tcp));
    expect_open_failure("the server does not speak TLS; use redis://");
    start_tls("IP:127.0.0.1", LIVE_REDIS_TLS);
    open_url_at_port("redis://127.0.0.1:%u", redis.process.port);
    open_and_expect_ready();
    assert_false(send_and_await("PING", NULL, NULL));
    assert_int_equal(fleet_connection_state(connection), FLEET_CONNECTION_DOWN);
}

/* ---- signals and forks ---- */

/* Writes to connections with a closed peer: SIGPIPE would end this program. */
static void writing_to_a_closed_connection_raises_no_signal(void **state)
{
    start_tls("IP:127.0.0.1", LIVE_REDIS_TLS);
    for (int i = 0; i < 2; i++) {
        if (i == 0)
            make_tls("127.0.0.1", "?ca_file=$site.pem");
        else
            open_url(live_redis_unix_url(&redis, ""));
        open_and_expect_ready();
        live_redis_kill(&redis, SIGKILL);
        for (int n = 0; n < 3; n++)
            send_command(1, (const char *const[]){"PING"}, TIMEOUT_LONG);
        fleet_connection_close(connection);
        live_redis_again(&redis);
    }
}

static void forked_child_does_not_disturb_the_connection(void **state)
{
    start_tls("IP:127.0.0.1", LIVE_REDIS_TLS);
    make_tls("127.0.0.1", "?ca_file=$site.pem");
    open_and_expect_ready();
    assert_true(send_command(1, (const char *const[]){"DBSIZE"}, TIMEOUT_LONG));
    pid_t child = fork();
    if (child == 0) {
        fleet_connection_abandon(connection);
        fleet_connection_free(connection);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(await_reply());
    assert_true(send_and_await("DBSIZE", NULL, NULL));
}

/* Output of a program that has closed 0, 1 and 2 must not reach Redis. */
static void descriptors_are_above_stdio(void **state)
{
    short events;
    int status;
    live_redis_start(&redis, "");
    pid_t child = fork();
    if (child == 0) {
        for (int fd = 0; fd <= STDERR_FILENO; fd++)
            close(fd);
        for (int i = 0; i < 2; i++) {
            open_url(i == 0 ? live_redis_url(&redis, "") : live_redis_unix_url(&redis, ""));
            if (open_connection() != FLEET_CONNECTION_READY ||
                fleet_connection_fd(connection, &events) <= STDERR_FILENO)
                _exit(1);
        }
        struct fleet_resolver *lookup = fleet_resolver_new(&(struct fleet_endpoint){"127.0.0.1", "1"});
        _exit(lookup != NULL && fleet_resolver_fd(lookup) > STDERR_FILENO ? 0 : 2);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static int count_descriptors(void)
{
    int count = 0;
    for (int fd = 0; fd < 1024; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static void failures_leak_no_descriptor(void **state)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = bind_port(&address), before = 0;
    for (int i = 0; i < 40; i++) {
        open_url_at_port("redis://127.0.0.1:%u", ntohs(address.sin_port));
        assert_int_equal(open_connection(), FLEET_CONNECTION_DOWN);
        open_url_at_port("rediss://127.0.0.1:%u?ca_file=/nowhere", ntohs(address.sin_port));
        assert_int_equal(open_connection(), FLEET_CONNECTION_DOWN);
        open_url("unix:///nowhere");
        assert_int_equal(open_connection(), FLEET_CONNECTION_DOWN);
        fleet_connection_open(connection, NULL, bide_now() + TIMEOUT_LONG);
        if (i == 0)
            before = count_descriptors();
    }
    assert_int_equal(count_descriptors(), before);
    close(fd);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, reset_all, close_all)
    const struct CMUnitTest tests[] = {
        TEST(reply_may_arrive_byte_by_byte),
        TEST(truncated_reply_is_not_returned),
        TEST(reset_connection_is_down),
        TEST(complete_reply_before_the_close_is_returned),
        TEST(bytes_that_are_not_resp_close_the_connection),
        TEST(announced_lengths_are_not_allocated),
        TEST(reply_kinds_are_distinguished),
        TEST(missing_reply_times_out),
        TEST(silent_server_times_out_while_opening),
        TEST(refused_connection_is_reported),
        TEST(server_that_closes_at_once_is_down),
        TEST(server_that_closes_after_auth_is_down),
        TEST(unsolicited_reply_closes_the_connection),
        TEST(echoed_password_is_masked),
        TEST(host_name_is_resolved),
        TEST(every_address_is_tried),
        TEST(silent_address_costs_only_its_share_of_the_time),
        TEST(hanging_resolver_costs_a_deadline_and_one_thread),
        TEST(connection_may_be_freed_while_its_resolver_hangs),
        TEST(replies_match_commands_in_order),
        TEST(script_replies_are_parsed),
        TEST(oversized_command_is_not_queued),
        TEST(closing_flushes_the_queue),
        TEST(database_is_selected),
        TEST(unix_socket_is_supported),
        TEST(password_authenticates),
        TEST(user_authenticates),
        TEST(connection_follows_an_endpoint),
        TEST(tls_reads_and_writes),
        TEST(certificate_must_match_the_host),
        TEST(untrusted_certificate_is_rejected),
        TEST(expired_certificate_is_rejected),
        TEST(client_certificate_authenticates),
        TEST(wrong_tls_files_are_named),
        TEST(tls_file_that_would_block_is_refused),
        TEST(damaged_certificate_after_a_good_one_is_refused),
        TEST(tls_and_plain_do_not_mix),
        TEST(writing_to_a_closed_connection_raises_no_signal),
        TEST(forked_child_does_not_disturb_the_connection),
        TEST(descriptors_are_above_stdio),
        TEST(failures_leak_no_descriptor),
    };
    sem_init(&resolver_released, 0, 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
