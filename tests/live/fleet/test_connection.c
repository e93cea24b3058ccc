/* test_fleet_link.c - a link to Redis: what it does with a real one, and with servers that are broken, hostile or none.
 *
 * Nothing here may wait longer than its deadline, allocate what a server announces, repeat a password, or raise a
 * signal: SIGPIPE is left as it is, and would end this program. getaddrinfo is our own, so that a resolver can hang. */
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

#define GENEROUS (20 * BIDE_S)  /* for what must come */
#define SHORT    (60 * BIDE_MS) /* for what must not */

static struct fleet_url url;
static struct fleet_link *link_; /* link(2) is taken */
static struct live_redis redis;
static struct live_tcp *tcp;
static struct fleet_reply reply;

static int open_all(void **state)
{
    link_ = NULL;
    tcp = NULL;
    memset(&redis, 0, sizeof redis);
    return 0;
}

static int close_all(void **state)
{
    fleet_link_free(link_);
    link_ = NULL;
    fleet_url_free(&url);
    live_tcp_free(tcp);
    live_redis_free(&redis);
    return 0;
}

/* ---- names ---- */

static sem_t released; /* a resolver that hangs waits for it */
static int lookups;

/* "cache.test" is here, "stuck.test" too but not before it is released; "two.test" is also at 127.0.0.2, and there
 * first; "none.test" is nowhere. */
int getaddrinfo(const char *node, const char *service, const struct addrinfo *want, struct addrinfo **found)
{
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
    bool ours = node != NULL && strstr(node, ".test") != NULL;
    if (!ours || (want->ai_flags & AI_NUMERICHOST) != 0)
        return real(node, service, want, found);
    __atomic_add_fetch(&lookups, 1, __ATOMIC_SEQ_CST);
    if (strcmp(node, "none.test") == 0)
        return EAI_NONAME;
    if (strcmp(node, "stuck.test") == 0)
        while (sem_wait(&released) != 0)
            continue;
    if (strcmp(node, "two.test") != 0)
        return real("127.0.0.1", service, want, found);
    if (real("127.0.0.2", service, want, found) != 0)
        return EAI_FAIL;
    return real("127.0.0.1", service, want, &(*found)->ai_next);
}

/* ---- driving ---- */

static void make(const char *text)
{
    struct bide_fleet_problem problem;
    fleet_link_free(link_);
    fleet_url_free(&url);
    if (fleet_url_read(&url, text, &problem) != BIDE_OK)
        fail_msg("%s", problem.text);
    link_ = fleet_link_new(&url);
    assert_non_null(link_);
}

static void make_at(const char *format, unsigned port)
{
    char text[600];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(text, sizeof text, format, port);
#pragma GCC diagnostic pop
    make(text);
}

/* Waits for what the link waits for, and steps. */
static void turn(void)
{
    short events;
    int64_t now_ns = bide_now(), deadline_ns = fleet_link_deadline_ns(link_);
    struct pollfd ready = {.fd = fleet_link_fd(link_, &events)};
    ready.events = events;
    int64_t wait_ns = deadline_ns <= now_ns ? 0 : deadline_ns - now_ns;
    wait_ns = wait_ns < 50 * BIDE_MS ? wait_ns : 50 * BIDE_MS;
    poll(&ready, 1, (int)((wait_ns + BIDE_MS - 1) / BIDE_MS));
    fleet_link_step(link_, bide_now());
}

static enum fleet_link_state settle(void)
{
    while (fleet_link_state(link_) == FLEET_LINK_BEGINNING)
        turn();
    return fleet_link_state(link_);
}

static enum fleet_link_state begin(void)
{
    fleet_link_open(link_, NULL, bide_now() + GENEROUS);
    return settle();
}

static void expect_ready(void)
{
    if (begin() != FLEET_LINK_READY)
        fail_msg("%s", fleet_link_problem(link_));
    assert_string_equal(fleet_link_problem(link_), "");
}

static void expect_problem(const char *text)
{
    assert_int_equal(fleet_link_state(link_), FLEET_LINK_DOWN);
    const char *problem = fleet_link_problem(link_);
    if (strstr(problem, text) == NULL)
        fail_msg("%s\nwanted: %s", problem, text);
    assert_int_equal(strncmp(problem, url.shown, strlen(url.shown)), 0);
    for (const char *c = problem; *c != '\0'; c++)
        assert_true(*c >= ' ' && *c <= '~');
}

static void expect_no_beginning(const char *text)
{
    assert_int_equal(begin(), FLEET_LINK_DOWN);
    expect_problem(text);
}

static bool send_words(int argc, const char *const *argv, int64_t timeout_ns)
{
    return fleet_link_send(link_, argc, argv, NULL, bide_now() + timeout_ns);
}

/* False: the link went down instead. */
static bool await_reply(void)
{
    while (!fleet_link_reply(link_, &reply)) {
        if (fleet_link_state(link_) == FLEET_LINK_DOWN)
            return false;
        turn();
    }
    return true;
}

static bool ask(const char *a, const char *b, const char *c)
{
    const char *const argv[] = {a, b, c};
    assert_true(send_words(c != NULL ? 3 : b != NULL ? 2 : 1, argv, GENEROUS));
    return await_reply();
}

static bool eval(const char *script)
{
    return ask("EVAL", script, "0");
}

/* ---- servers of our own ---- */

struct script {
    const char *bytes;
    size_t length;
    size_t piece;   /* bytes written at once; 0: all */
    unsigned times; /* over and over; 0: once */
    bool unasked;   /* before a command came */
    bool stay;      /* until the other side leaves */
    bool reset;
};

static bool heard; /* a server got a first piece of what the link says */

static void wait_for_end(int fd)
{
    char byte;
    while (recv(fd, &byte, 1, 0) == 1)
        continue;
}

static void serve(void *context, int fd, unsigned number)
{
    const struct script *script = context;
    char command[4096];
    if (!script->unasked && recv(fd, command, sizeof command, 0) <= 0)
        return;
    __atomic_store_n(&heard, true, __ATOMIC_SEQ_CST);
    size_t piece = script->piece > 0 ? script->piece : script->length;
    bool there = true;
    for (unsigned n = 0; there && n <= script->times; n++)
        for (size_t i = 0; there && i < script->length; i += piece)
            there = live_tcp_write(fd, script->bytes + i, script->length - i < piece ? script->length - i : piece);
    if (script->reset)
        live_tcp_reset(fd);
    if (there && script->stay)
        wait_for_end(fd);
}

/* A server of that kind instead of the one before; it reads its script as long as it is there. */
static void start(struct script script)
{
    static struct script kept;
    live_tcp_free(tcp);
    __atomic_store_n(&heard, false, __ATOMIC_SEQ_CST);
    kept = script;
    if (kept.length == 0)
        kept.length = strlen(kept.bytes);
    tcp = live_tcp_new(serve, &kept);
}

/* Begins at a server that says nothing, and goes on until that has heard the link; then its time has come. */
static void begin_late(const char *format, const char *problem)
{
    start((struct script){.bytes = "", .stay = true});
    make_at(format, live_tcp_port(tcp));
    int64_t deadline_ns = bide_now() + GENEROUS;
    fleet_link_open(link_, NULL, deadline_ns);
    while (!__atomic_load_n(&heard, __ATOMIC_SEQ_CST))
        turn();
    fleet_link_step(link_, deadline_ns - 1);
    assert_int_equal(fleet_link_state(link_), FLEET_LINK_BEGINNING);
    fleet_link_step(link_, deadline_ns);
    expect_problem(problem);
}

/* The same, asked once. */
static bool ask_server(struct script script)
{
    start(script);
    make_at("redis://127.0.0.1:%u", live_tcp_port(tcp));
    expect_ready();
    return ask("PING", NULL, NULL);
}

static void expect_garbage(struct script script, const char *text)
{
    size_t before = mallinfo2().uordblks;
    assert_false(ask_server(script));
    expect_problem(text);
    size_t after = mallinfo2().uordblks;
    assert_true(after < before + (UINT64_C(1) << 20)); /* with a sanitizer both are 0 */
}

/* ---- broken and hostile servers ---- */

static void a_reply_may_come_byte_by_byte(void **state)
{
    struct script script = {
        .bytes = "*4\r\n:1\r\n$2\r\n-5\r\n:9223372036854775807\r\n$1\r\n0\r\n", .piece = 1, .stay = true};
    assert_true(ask_server(script));
    assert_int_equal(reply.kind, FLEET_REPLY_VALUES);
    assert_int_equal(reply.values, 4);
    assert_int_equal(reply.value[0], 1);
    assert_int_equal(reply.value[1], -5);
    assert_true(reply.value[2] == INT64_MAX);
    assert_int_equal(reply.value[3], 0);
    assert_int_equal(fleet_link_state(link_), FLEET_LINK_READY);
}

static void a_reply_that_is_cut_is_none(void **state)
{
    struct script script = {.bytes = "*3\r\n:1\r\n:2\r\n:"};
    assert_false(ask_server(script));
    expect_problem("it closed the connection");
}

static void a_connection_that_is_reset_is_down(void **state)
{
    struct script script = {.bytes = "*3\r\n", .reset = true};
    assert_false(ask_server(script));
    assert_int_equal(fleet_link_state(link_), FLEET_LINK_DOWN);
    assert_string_not_equal(fleet_link_problem(link_), "");
}

static void a_whole_reply_before_the_end_is_still_given(void **state)
{
    struct script script = {.bytes = "-ERR max number of clients reached\r\n"};
    assert_true(ask_server(script));
    assert_int_equal(reply.kind, FLEET_REPLY_ERROR);
    assert_string_equal(reply.error, "ERR max number of clients reached");
    while (fleet_link_state(link_) != FLEET_LINK_DOWN)
        turn();
    assert_false(fleet_link_reply(link_, &reply));
}

static void what_is_not_the_protocol_is_down(void **state)
{
    expect_garbage((struct script){.bytes = "\1\2\3\4", .length = 4, .stay = true}, "it does not speak Redis");
    expect_garbage((struct script){.bytes = "HTTP/1.1 400 Bad Request\r\n\r\n"}, "perhaps HTTP");
    expect_garbage((struct script){.bytes = "\x15\3\3\0\2\2\x46", .length = 7}, "perhaps TLS; want rediss://");
    expect_garbage((struct script){.bytes = ":12a\r\n", .stay = true}, "it does not speak Redis");
    expect_garbage((struct script){.bytes = "*-2\r\n", .stay = true}, "it does not speak Redis");
    expect_garbage((struct script){.bytes = "$99999999999999999999\r\n", .stay = true}, "it does not speak Redis");
}

static void what_is_announced_is_not_allocated(void **state)
{
    static char megabyte[1 << 20];
    memset(megabyte, 'a', sizeof megabyte);
    memcpy(megabyte, "$1073741824\r\n", 13);
    expect_garbage((struct script){.bytes = megabyte, .length = sizeof megabyte}, "a reply that does not end");
    live_tcp_free(tcp); /* which reads it */
    tcp = NULL;
    memcpy(megabyte, "+aaaaaaaaaaaa", 13);
    expect_garbage((struct script){.bytes = megabyte, .length = sizeof megabyte, .times = 1000},
                   "a reply that does not end");
    expect_garbage((struct script){.bytes = "*2147483647\r\n:1\r\n", .stay = true}, "a reply of too many values");
    expect_garbage((struct script){.bytes = "*65\r\n", .stay = true}, "a reply of too many values");
    expect_garbage((struct script){.bytes = "*1\r\n", .times = 1000}, "an array inside an array");
    expect_garbage((struct script){.bytes = "*2\r\n:1\r\n*0\r\n", .stay = true}, "an array inside an array");
}

static void other_replies_are_told_apart(void **state)
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
        struct script script = {.bytes = table[i].bytes, .stay = true};
        assert_true(ask_server(script));
        assert_int_equal(reply.kind, table[i].kind);
        assert_int_equal(reply.values, table[i].values);
        assert_int_equal(fleet_link_state(link_), FLEET_LINK_READY);
    }
}

static void silence_ends_at_its_deadline(void **state)
{
    start((struct script){.bytes = "", .stay = true});
    make_at("redis://127.0.0.1:%u", live_tcp_port(tcp));
    expect_ready();
    int64_t before_ns = bide_now();
    assert_true(send_words(1, (const char *const[]){"PING"}, GENEROUS));
    assert_true(send_words(1, (const char *const[]){"PING"}, SHORT)); /* the earlier one counts, though it came later */
    assert_true(fleet_link_deadline_ns(link_) <= bide_now() + SHORT);
    assert_false(await_reply());
    assert_true(bide_now() - before_ns >= SHORT);
    expect_problem("no answer in time");
    assert_true(fleet_link_deadline_ns(link_) == BIDE_NEVER);
}

static void silence_ends_a_beginning_too(void **state)
{
    begin_late("redis://:hunter2@127.0.0.1:%u", "no answer to AUTH in time");
    begin_late("redis://127.0.0.1:%u/1", "no answer to SELECT in time");
    begin_late("rediss://127.0.0.1:%u", "no TLS handshake in time");
}

/* A port that is taken and at which nobody listens; to be closed. */
static int take_port(struct sockaddr_in *address)
{
    socklen_t length = sizeof *address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)address, sizeof *address), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)address, &length), 0);
    return fd;
}

static void nobody_listens(void **state)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = take_port(&address);
    make_at("redis://127.0.0.1:%u", ntohs(address.sin_port));
    expect_no_beginning("Connection refused");
    make_at("redis://two.test:%u", ntohs(address.sin_port));
    int before = __atomic_load_n(&lookups, __ATOMIC_SEQ_CST);
    expect_no_beginning("Connection refused");
    expect_no_beginning("Connection refused");
    assert_int_equal(__atomic_load_n(&lookups, __ATOMIC_SEQ_CST), before + 2); /* it may be elsewhere by now */
    close(fd);
    make("unix:///nowhere/at/all");
    expect_no_beginning("No such file or directory");
}

static void a_server_that_hangs_up_is_down(void **state)
{
    struct script script = {.bytes = "", .unasked = true};
    start(script);
    make_at("redis://:hunter2@127.0.0.1:%u", live_tcp_port(tcp));
    assert_int_equal(begin(), FLEET_LINK_DOWN);
    make_at("rediss://127.0.0.1:%u", live_tcp_port(tcp));
    assert_int_equal(begin(), FLEET_LINK_DOWN);
    make_at("redis://127.0.0.1:%u", live_tcp_port(tcp)); /* nothing to say: it is only seen later */
    begin();
    while (fleet_link_state(link_) != FLEET_LINK_DOWN)
        turn();
    expect_problem("it closed the connection");
}

static void a_server_that_leaves_after_auth_is_down(void **state)
{
    struct script script = {.bytes = "+OK\r\n"};
    start(script);
    make_at("redis://:hunter2@127.0.0.1:%u/1", live_tcp_port(tcp));
    assert_int_equal(begin(), FLEET_LINK_DOWN);
    make_at("redis://:hunter2@127.0.0.1:%u", live_tcp_port(tcp));
    begin();
    while (fleet_link_state(link_) != FLEET_LINK_DOWN)
        turn();
    expect_problem("it closed the connection");
}

static void a_server_that_speaks_unasked_is_down(void **state)
{
    struct script script = {.bytes = "-DENIED it is protected\r\n", .unasked = true};
    start(script);
    make_at("redis://127.0.0.1:%u", live_tcp_port(tcp));
    begin();
    while (fleet_link_state(link_) != FLEET_LINK_DOWN)
        turn();
    expect_problem("it says unasked: DENIED it is protected");
    script = (struct script){.bytes = ":1\r\n:2\r\n", .stay = true}; /* the second would answer what comes next */
    assert_true(ask_server(script));
    assert_int_equal(reply.value[0], 1);
    expect_problem("it says unasked"); /* at once, before anything can be sent */
}

static void a_password_that_is_echoed_is_not_repeated(void **state)
{
    static const struct {
        const char *bytes, *problem;
    } table[] = {
        {"-ERR wrong password: hunter2!\r\n", "it refuses AUTH: it does not say why in words we know"},
        {"-ERR unknown command 'AUTH', with args beginning with: 'app' 'hunter'\r\n",
         "it refuses AUTH: it does not know that command"},
        {"-WRONGPASS hunter2 is wrong\r\n", "it refuses AUTH: WRONGPASS, the user or the password is wrong"},
        {"-hunter2hunter2\r\n", "it refuses AUTH"},
        {"+OK\r\n-ERR \x01\x1b[31mhunter2\xff\r\n", "it says unasked: ERR ??[31m***?"},
        {"+OK\r\nhunter2\r\n", "it does not speak Redis"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        start((struct script){.bytes = table[i].bytes, .stay = true});
        make_at("redis://app:hunter2@127.0.0.1:%u", live_tcp_port(tcp));
        expect_no_beginning(table[i].problem);
        assert_null(strstr(fleet_link_problem(link_), "hunter"));
        assert_null(strstr(fleet_link_problem(link_), "app"));
    }
}

/* ---- names that are looked up ---- */

static void a_name_is_looked_up(void **state)
{
    struct script script = {.bytes = "+PONG\r\n", .stay = true};
    start(script);
    make_at("redis://cache.test:%u", live_tcp_port(tcp));
    expect_ready();
    assert_true(ask("PING", NULL, NULL));
    make("redis://none.test");
    expect_no_beginning("Name or service not known");
}

/* The first is a listener that has not accepted anybody and has no room for more: it does not even refuse. */
static void an_address_that_swallows_everything_costs_its_part_of_the_time(void **state)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1)};
    int filler[4];
    start((struct script){.bytes = "+PONG\r\n", .stay = true});
    address.sin_port = htons(live_tcp_port(tcp));
    int listener = take_port(&address);
    assert_int_equal(listen(listener, 0), 0);
    for (int i = 0; i < 4; i++) {
        filler[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        connect(filler[i], (struct sockaddr *)&address, sizeof address);
    }
    make_at("redis://two.test:%u", live_tcp_port(tcp));
    int64_t deadline_ns = bide_now() + 2 * GENEROUS;
    fleet_link_open(link_, NULL, deadline_ns);
    while (fleet_link_deadline_ns(link_) == 0 || fleet_link_deadline_ns(link_) == deadline_ns) /* being looked up */
        turn();
    assert_true(fleet_link_deadline_ns(link_) < deadline_ns);
    fleet_link_step(link_, fleet_link_deadline_ns(link_)); /* as if that time had come */
    assert_int_equal(settle(), FLEET_LINK_READY);
    assert_true(ask("PING", NULL, NULL));
    for (int i = 0; i < 4; i++)
        close(filler[i]);
    close(listener);
}

/* localhost is ::1, too, in most places, where nobody listens. */
static void all_addresses_are_tried(void **state)
{
    struct script script = {.bytes = "+PONG\r\n", .stay = true};
    start(script);
    make_at("redis://localhost:%u", live_tcp_port(tcp));
    expect_ready();
}

static void a_resolver_that_hangs_costs_a_deadline_and_one_thread(void **state)
{
    struct script script = {.bytes = "+PONG\r\n", .stay = true};
    start(script);
    int before = __atomic_load_n(&lookups, __ATOMIC_SEQ_CST);
    make_at("redis://stuck.test:%u", live_tcp_port(tcp));
    for (int i = 0; i < 3; i++) {
        fleet_link_open(link_, NULL, bide_now() + SHORT);
        assert_int_equal(settle(), FLEET_LINK_DOWN);
        expect_problem("its name was not found in time");
    }
    fleet_link_open(link_, "cache.test:1", bide_now() + GENEROUS);
    assert_int_equal(settle(), FLEET_LINK_DOWN);
    expect_problem("(moved to cache.test:1): the name of another place is still being looked up");
    assert_true(__atomic_load_n(&lookups, __ATOMIC_SEQ_CST) <= before + 1); /* it may not have come that far yet */
    sem_post(&released);
    expect_ready(); /* by what the first lookup brought */
    assert_int_equal(__atomic_load_n(&lookups, __ATOMIC_SEQ_CST), before + 1);
}

static void a_link_may_go_while_its_resolver_hangs(void **state)
{
    make("redis://stuck.test:1");
    fleet_link_open(link_, NULL, bide_now() + SHORT);
    assert_int_equal(settle(), FLEET_LINK_DOWN);
    fleet_link_free(link_);
    link_ = NULL;
    sem_post(&released); /* the thread ends by itself, and frees what is left */
}

/* ---- a real Redis ---- */

static void commands_are_answered_in_their_order(void **state)
{
    live_redis_start(&redis, "");
    make(live_redis_url(&redis, ""));
    expect_ready();
    for (int i = 0; i < 200; i++) {
        char number[16];
        snprintf(number, sizeof number, "%d", i);
        assert_true(send_words(3, (const char *const[]){"INCRBY", "sum", number}, GENEROUS));
    }
    for (int i = 0, sum = 0; i < 200; i++) {
        assert_true(await_reply());
        assert_int_equal(reply.kind, FLEET_REPLY_VALUES);
        assert_int_equal(reply.value[0], sum += i);
    }
    assert_false(fleet_link_reply(link_, &reply));
    assert_true(fleet_link_deadline_ns(link_) == BIDE_NEVER);
}

static void replies_are_as_the_script_says(void **state)
{
    live_redis_start(&redis, "");
    make(live_redis_url(&redis, ""));
    expect_ready();
    assert_true(eval("return {1, -2, '3', 9007199254740991}"));
    assert_int_equal(reply.kind, FLEET_REPLY_VALUES);
    assert_int_equal(reply.values, 4);
    assert_true(reply.value[3] == INT64_C(9007199254740991));
    assert_true(eval("return redis.error_reply('MOVED 1 ' .. string.rep('a', 250) .. ':7000')"));
    assert_int_equal(reply.kind, FLEET_REPLY_ERROR);
    assert_string_equal(reply.error + strlen(reply.error) - 5, ":7000");
    assert_true(ask("HMGET", "nobody", "a"));
    assert_int_equal(reply.kind, FLEET_REPLY_VALUES);
    assert_int_equal(reply.values, 0);
    assert_true(ask("EVALSHA", "0123456789012345678901234567890123456789", "0"));
    assert_int_equal(reply.kind, FLEET_REPLY_ERROR);
    assert_memory_equal(reply.error, "NOSCRIPT ", 9);
    assert_false(eval("return {1, {2}}"));
    expect_problem("an array inside an array");
}

static void what_does_not_fit_is_not_queued(void **state)
{
    static char large[FLEET_COMMAND_MAX + 1];
    memset(large, 'a', FLEET_COMMAND_MAX);
    live_redis_start(&redis, "");
    make(live_redis_url(&redis, ""));
    assert_false(send_words(1, (const char *const[]){"PING"}, GENEROUS)); /* not READY */
    expect_ready();
    assert_false(send_words(2, (const char *const[]){"ECHO", large}, GENEROUS));
    assert_false(send_words(0, NULL, GENEROUS));
    large[FLEET_COMMAND_MAX - 4] = '\0';
    size_t sent = 0;
    while (send_words(2, (const char *const[]){"STRLEN", large + 2}, GENEROUS))
        sent++;
    assert_int_equal(sent, 3); /* there is room for four times as much, and each has a few bytes around it */
    for (size_t i = 0; i < sent; i++)
        assert_true(await_reply() && reply.values == 1 && reply.value[0] == 0);
    for (sent = 0; send_words(1, (const char *const[]){"DBSIZE"}, GENEROUS); sent++)
        continue;
    assert_int_equal(sent, 256);
    for (size_t i = 0; i < sent; i++)
        assert_true(await_reply() && reply.value[0] == 0);
}

static void a_last_push_reaches_redis(void **state)
{
    live_redis_start(&redis, "");
    make(live_redis_url(&redis, ""));
    expect_ready();
    assert_true(send_words(3, (const char *const[]){"SET", "last", "7"}, GENEROUS));
    fleet_link_close(link_);
    assert_int_equal(fleet_link_state(link_), FLEET_LINK_DOWN);
    assert_string_equal(fleet_link_problem(link_), "");
    for (int64_t until_ns = bide_now() + GENEROUS; strcmp(live_redis_do(&redis, "GET last"), "7") != 0;)
        assert_true(bide_now() < until_ns);
}

static void a_database_is_selected(void **state)
{
    live_redis_start(&redis, "");
    make(live_redis_url(&redis, "/5"));
    expect_ready();
    assert_true(ask("SET", "where", "5"));
    make(live_redis_unix_url(&redis, "?db=5"));
    expect_ready();
    assert_true(ask("GET", "where", NULL));
    assert_int_equal(reply.value[0], 5);
    make(live_redis_url(&redis, ""));
    expect_ready();
    assert_true(ask("GET", "where", NULL));
    assert_int_equal(reply.values, 0);
    make(live_redis_url(&redis, "/999"));
    expect_no_beginning("it refuses SELECT: ERR DB index is out of range");
}

static void a_unix_socket_is_a_link_too(void **state)
{
    live_redis_start(&redis, "");
    make(live_redis_unix_url(&redis, "?db=2"));
    expect_ready();
    assert_true(ask("PING", NULL, NULL));
    assert_int_equal(reply.kind, FLEET_REPLY_OTHER);
    fleet_link_open(link_, "127.0.0.1:1", bide_now() + GENEROUS); /* a password would go over the network */
    expect_problem("from a unix socket nothing is sent there");
}

static void a_password_opens(void **state)
{
    live_redis_start(&redis, "requirepass hunter2\n");
    make_at("redis://:hunter2@127.0.0.1:%u", redis.process.port);
    expect_ready();
    assert_true(ask("DBSIZE", NULL, NULL));
    assert_int_equal(reply.kind, FLEET_REPLY_VALUES);
    make_at("redis://:hunter3@127.0.0.1:%u", redis.process.port);
    expect_no_beginning("it refuses AUTH: WRONGPASS");
    assert_null(strstr(fleet_link_problem(link_), "hunter"));
    make_at("redis://127.0.0.1:%u", redis.process.port);
    expect_ready();
    assert_true(ask("DBSIZE", NULL, NULL));
    assert_memory_equal(reply.error, "NOAUTH ", 7);
    make_at("redis://:hunter2@127.0.0.1:%u/3", redis.process.port);
    expect_ready();
}

static void a_user_opens(void **state)
{
    live_redis_start(&redis, "user default off\nuser app on >hunter2 ~* +@all\n");
    make_at("redis://app:hunter2@127.0.0.1:%u", redis.process.port);
    expect_ready();
    assert_true(ask("DBSIZE", NULL, NULL));
    assert_int_equal(reply.kind, FLEET_REPLY_VALUES);
    make_at("redis://other:hunter2@127.0.0.1:%u", redis.process.port);
    expect_no_beginning("it refuses AUTH: WRONGPASS");
}

static void a_link_goes_where_it_is_told(void **state)
{
    struct live_redis other = {0};
    char place[64];
    live_redis_start(&redis, "");
    live_redis_start(&other, "");
    live_redis_do(&other, "SET who 2");
    make(live_redis_url(&redis, ""));
    expect_ready();
    snprintf(place, sizeof place, "127.0.0.1:%u", (unsigned)other.process.port);
    fleet_link_open(link_, place, bide_now() + GENEROUS);
    assert_int_equal(settle(), FLEET_LINK_READY);
    assert_true(ask("GET", "who", NULL));
    assert_int_equal(reply.value[0], 2);
    live_redis_free(&other);
    while (fleet_link_state(link_) != FLEET_LINK_DOWN)
        turn();
    expect_problem("(moved to 127.0.0.1:");
    fleet_link_open(link_, "no place", bide_now() + GENEROUS);
    expect_problem("which is not host:port");
    expect_ready(); /* the URL's own is still there */
}

/* ---- TLS ---- */

/* A Redis with TLS whose certificate is for that name. */
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
    make(text);
}

static void tls_reads_and_writes(void **state)
{
    start_tls("IP:127.0.0.1", LIVE_REDIS_TLS "requirepass hunter2\n");
    make_tls("127.0.0.1", "?ca_file=$site.pem");
    expect_ready();
    assert_true(ask("DBSIZE", NULL, NULL));
    assert_memory_equal(reply.error, "NOAUTH ", 7);
    char text[512];
    snprintf(text, sizeof text, "rediss://:hunter2@127.0.0.1:%u/2?ca_file=%s", (unsigned)redis.process.port,
             live_tls_path(&redis.process, "site"));
    make(text);
    expect_ready();
    for (int i = 0; i < 200; i++)
        assert_true(send_words(3, (const char *const[]){"EVAL", "return {1,2,3,4,5,6,7,8,9,10,11,12}", "0"}, GENEROUS));
    for (int i = 0; i < 200; i++)
        assert_true(await_reply() && reply.values == 12);
    assert_true(send_words(3, (const char *const[]){"SET", "last", "7"}, GENEROUS));
    fleet_link_close(link_);
    for (int64_t until_ns = bide_now() + GENEROUS; live_redis_number(&redis, "EVAL %s 0",
                                                                     "redis.call('SELECT', 2) "
                                                                     "return redis.call('EXISTS', 'last')") != 1;)
        assert_true(bide_now() < until_ns);
}

static void a_certificate_is_of_the_host_s_name(void **state)
{
    start_tls("DNS:cache.test", LIVE_REDIS_TLS);
    make_tls("cache.test", "?ca_file=$site.pem");
    expect_ready();
    make_tls("127.0.0.1", "?ca_file=$site.pem");
    expect_no_beginning("its certificate is not trusted: IP address mismatch");
    make_tls("other.test", "?ca_file=$site.pem");
    expect_no_beginning("its certificate is not trusted: hostname mismatch");
}

static void a_certificate_of_nobody_we_know_is_refused(void **state)
{
    start_tls("IP:127.0.0.1", LIVE_REDIS_TLS);
    make_tls("127.0.0.1", "");
    expect_no_beginning("its certificate is not trusted: self");
    make_tls("127.0.0.1", "?ca_file=$stranger.pem");
    expect_no_beginning("its certificate is not trusted: ");
}

static void a_certificate_out_of_date_is_refused(void **state)
{
    live_redis_dir(&redis);
    live_tls_make(&redis.process, "site", "IP:127.0.0.1");
    live_tls_expire(&redis.process, "site");
    live_redis_start(&redis, LIVE_REDIS_TLS);
    make_tls("127.0.0.1", "?ca_file=$site.pem");
    expect_no_beginning("its certificate is not trusted: certificate has expired");
}

static void a_certificate_of_our_own_opens(void **state)
{
    start_tls("IP:127.0.0.1", LIVE_REDIS_TLS_MUTUAL);
    make_tls("127.0.0.1", "?ca_file=$site.pem&cert_file=$client.pem&key_file=$client.key");
    expect_ready();
    assert_true(ask("DBSIZE", NULL, NULL));
    assert_int_equal(reply.kind, FLEET_REPLY_VALUES);
    static const char *const refused[] = {"?ca_file=$site.pem",
                                          "?ca_file=$site.pem&cert_file=$stranger.pem&key_file=$stranger.key"};
    for (size_t i = 0; i < 2; i++) {
        make_tls("127.0.0.1", refused[i]);
        if (begin() == FLEET_LINK_READY) /* TLS 1.3: the server says so afterwards */
            assert_false(ask("DBSIZE", NULL, NULL));
        assert_int_equal(fleet_link_state(link_), FLEET_LINK_DOWN);
        assert_string_not_equal(fleet_link_problem(link_), "");
    }
}

static void files_that_are_wrong_are_named(void **state)
{
    start_tls("IP:127.0.0.1", LIVE_REDIS_TLS);
    live_process_run(&redis.process, (const char *const[]){"openssl", "pkey", "-in", "client.key", "-aes128",
                                                           "-passout", "pass:hunter2", "-out", "locked.key", NULL});
    make_tls("127.0.0.1", "?ca_file=$none.pem");
    expect_no_beginning("none.pem: No such file or directory");
    make_tls("127.0.0.1", "?ca_file=$site.key");
    expect_no_beginning("want certificates, in PEM");
    make_tls("127.0.0.1", "?ca_file=$site.pem&cert_file=$none.pem");
    expect_no_beginning("cert_file ");
    make_tls("127.0.0.1", "?ca_file=$site.pem&cert_file=$client.pem&key_file=$site.key");
    expect_no_beginning("key_file ");
    make_tls("127.0.0.1", "?ca_file=$site.pem&cert_file=$client.pem&key_file=$locked.key"); /* and nobody is asked */
    expect_no_beginning("key_file ");
}

static void tls_and_plain_do_not_mix(void **state)
{
    struct script script = {.bytes = "-ERR Protocol error\r\n", .length = 21};
    start(script);
    make_at("rediss://127.0.0.1:%u", live_tcp_port(tcp));
    expect_no_beginning("it does not speak TLS; want redis://");
    start_tls("IP:127.0.0.1", LIVE_REDIS_TLS);
    make_at("redis://127.0.0.1:%u", redis.process.port);
    expect_ready();
    assert_false(ask("PING", NULL, NULL));
    assert_int_equal(fleet_link_state(link_), FLEET_LINK_DOWN);
}

/* ---- signals and forks ---- */

/* Writes on connections whose other end is gone: SIGPIPE would end this program. */
static void no_signal_is_raised(void **state)
{
    start_tls("IP:127.0.0.1", LIVE_REDIS_TLS);
    for (int i = 0; i < 2; i++) {
        if (i == 0)
            make_tls("127.0.0.1", "?ca_file=$site.pem");
        else
            make(live_redis_unix_url(&redis, ""));
        expect_ready();
        live_redis_kill(&redis, SIGKILL);
        for (int n = 0; n < 3; n++)
            send_words(1, (const char *const[]){"PING"}, GENEROUS);
        fleet_link_close(link_);
        live_redis_again(&redis);
    }
}

static void a_child_leaves_the_link_of_its_parent_alone(void **state)
{
    start_tls("IP:127.0.0.1", LIVE_REDIS_TLS);
    make_tls("127.0.0.1", "?ca_file=$site.pem");
    expect_ready();
    assert_true(send_words(1, (const char *const[]){"DBSIZE"}, GENEROUS));
    pid_t child = fork();
    if (child == 0) {
        fleet_link_abandon(link_);
        fleet_link_free(link_);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(await_reply());
    assert_true(ask("DBSIZE", NULL, NULL));
}

/* In a program that has closed 0, 1 and 2 what it prints must not go to Redis. */
static void no_descriptor_is_a_standard_one(void **state)
{
    short events;
    int status;
    live_redis_start(&redis, "");
    pid_t child = fork();
    if (child == 0) {
        for (int fd = 0; fd <= STDERR_FILENO; fd++)
            close(fd);
        for (int i = 0; i < 2; i++) {
            make(i == 0 ? live_redis_url(&redis, "") : live_redis_unix_url(&redis, ""));
            if (begin() != FLEET_LINK_READY || fleet_link_fd(link_, &events) <= STDERR_FILENO)
                _exit(1);
        }
        struct fleet_lookup *lookup = fleet_lookup_new(&(struct fleet_place){"127.0.0.1", "1"});
        _exit(lookup != NULL && fleet_lookup_fd(lookup) > STDERR_FILENO ? 0 : 2);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static int descriptors(void)
{
    int count = 0;
    for (int fd = 0; fd < 1024; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static void whatever_fails_leaves_no_descriptor(void **state)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = take_port(&address), before = 0;
    for (int i = 0; i < 40; i++) {
        make_at("redis://127.0.0.1:%u", ntohs(address.sin_port));
        assert_int_equal(begin(), FLEET_LINK_DOWN);
        make_at("rediss://127.0.0.1:%u?ca_file=/nowhere", ntohs(address.sin_port));
        assert_int_equal(begin(), FLEET_LINK_DOWN);
        make("unix:///nowhere");
        assert_int_equal(begin(), FLEET_LINK_DOWN);
        fleet_link_open(link_, NULL, bide_now() + GENEROUS);
        if (i == 0)
            before = descriptors();
    }
    assert_int_equal(descriptors(), before);
    close(fd);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)
    const struct CMUnitTest tests[] = {
        TEST(a_reply_may_come_byte_by_byte),
        TEST(a_reply_that_is_cut_is_none),
        TEST(a_connection_that_is_reset_is_down),
        TEST(a_whole_reply_before_the_end_is_still_given),
        TEST(what_is_not_the_protocol_is_down),
        TEST(what_is_announced_is_not_allocated),
        TEST(other_replies_are_told_apart),
        TEST(silence_ends_at_its_deadline),
        TEST(silence_ends_a_beginning_too),
        TEST(nobody_listens),
        TEST(a_server_that_hangs_up_is_down),
        TEST(a_server_that_leaves_after_auth_is_down),
        TEST(a_server_that_speaks_unasked_is_down),
        TEST(a_password_that_is_echoed_is_not_repeated),
        TEST(a_name_is_looked_up),
        TEST(all_addresses_are_tried),
        TEST(an_address_that_swallows_everything_costs_its_part_of_the_time),
        TEST(a_resolver_that_hangs_costs_a_deadline_and_one_thread),
        TEST(a_link_may_go_while_its_resolver_hangs),
        TEST(commands_are_answered_in_their_order),
        TEST(replies_are_as_the_script_says),
        TEST(what_does_not_fit_is_not_queued),
        TEST(a_last_push_reaches_redis),
        TEST(a_database_is_selected),
        TEST(a_unix_socket_is_a_link_too),
        TEST(a_password_opens),
        TEST(a_user_opens),
        TEST(a_link_goes_where_it_is_told),
        TEST(tls_reads_and_writes),
        TEST(a_certificate_is_of_the_host_s_name),
        TEST(a_certificate_of_nobody_we_know_is_refused),
        TEST(a_certificate_out_of_date_is_refused),
        TEST(a_certificate_of_our_own_opens),
        TEST(files_that_are_wrong_are_named),
        TEST(tls_and_plain_do_not_mix),
        TEST(no_signal_is_raised),
        TEST(a_child_leaves_the_link_of_its_parent_alone),
        TEST(no_descriptor_is_a_standard_one),
        TEST(whatever_fails_leaves_no_descriptor),
    };
    sem_init(&released, 0, 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
