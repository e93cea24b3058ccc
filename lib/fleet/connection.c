/* link.c - a connection to Redis as a state machine: one function for each stage, none of which waits.
 *
 *     DOWN -> OPENING -> LOOKING -> CONNECTING -> SHAKING -> AUTH -> SELECT -> READY
 *
 * with what is not needed left out (an address has nothing to look up, a plain URL no TLS, no password no AUTH). A step
 * goes on until its stage stays the same. Addresses are tried one after the other; each gets its part of what is left
 * of the time, so that one that swallows everything does not keep the next from being tried.
 *
 * A lookup that did not come in time goes on aside, and the next opening takes what it brought: there is never more
 * than one thread for a link, and a slow resolver only costs an attempt. */
#include "connection.h"

#include "fd.h"
#include "redis_reply.h"
#include "resolver.h"
#include "tls.h"

#include <assert.h>
#include <errno.h>
#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define OUT_MAX     (4 * FLEET_COMMAND_MAX) /* bytes queued */
#define PENDING_MAX 256u                    /* commands without their replies */

enum stage { DOWN, OPENING, LOOKING, CONNECTING, SHAKING, AUTH, SELECT, READY };

struct fleet_link {
    const struct fleet_url *url;
    enum stage stage;
    bool elsewhere;
    bool again; /* a step stopped before all was read */
    bool ended; /* the other side did */
    struct fleet_place place;
    int64_t deadline_ns; /* of the beginning */
    int64_t turn_ns;     /* of the address being tried */
    struct fleet_lookup *lookup;
    const struct addrinfo *next; /* address to try; the lookup's */
    int error;                   /* of the address tried last */
    int fd;
    struct fleet_tls *tls;
    short read_event, write_event; /* what reading and writing wait for */
    struct fleet_replies *replies;
    int64_t pending_ns[PENDING_MAX]; /* deadlines of commands sent, a ring */
    size_t first, pending;
    size_t queued;
    char out[OUT_MAX];
    char problem[768];
};

/* ---- making and ending ---- */

struct fleet_link *fleet_link_new(const struct fleet_url *url)
{
    struct fleet_link *link = calloc(1, sizeof *link);
    if (link == NULL)
        return NULL;
    link->url = url;
    link->fd = -1;
    link->replies = fleet_replies_new(url->password);
    if (link->replies != NULL)
        return link;
    fleet_link_free(link);
    return NULL;
}

/* They were tried: the next opening looks them up again. */
static void forget_addresses(struct fleet_link *link)
{
    fleet_lookup_leave(link->lookup);
    link->lookup = NULL;
    link->next = NULL;
}

/* Closes; what was read stays to be taken, and a lookup that is under way goes on. */
static void disconnect(struct fleet_link *link)
{
    fleet_tls_free(link->tls);
    link->tls = NULL;
    if (link->fd >= 0)
        close(link->fd);
    link->fd = -1;
    if (link->stage == CONNECTING)
        forget_addresses(link);
    explicit_bzero(link->out, link->queued);
    link->queued = 0;
    link->stage = DOWN;
}

void fleet_link_free(struct fleet_link *link)
{
    if (link == NULL)
        return;
    disconnect(link);
    fleet_lookup_leave(link->lookup);
    fleet_replies_free(link->replies);
    free(link);
}

void fleet_link_abandon(struct fleet_link *link)
{
    if (link->fd >= 0)
        close(link->fd);
    link->fd = -1;
    if (link->lookup != NULL)
        fleet_lookup_abandon(link->lookup);
    link->stage = DOWN;
}

__attribute__((format(printf, 2, 3))) static void down(struct fleet_link *link, const char *format, ...)
{
    char text[FLEET_ERROR_MAX + 64], where[sizeof link->place + 32] = "";
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (link->elsewhere)
        snprintf(where, sizeof where, " (moved to %s:%s)", link->place.host, link->place.port);
    snprintf(link->problem, sizeof link->problem, "%.380s%.120s: %.260s", link->url->shown, where, text);
    disconnect(link);
}

static void down_errno(struct fleet_link *link, int error)
{
    char room[128];
    down(link, "%s", strerror_r(error, room, sizeof room));
}

void fleet_link_open(struct fleet_link *link, const char *elsewhere, int64_t deadline_ns)
{
    disconnect(link);
    link->problem[0] = '\0';
    link->first = link->pending = 0;
    link->again = link->ended = link->elsewhere = false;
    link->read_event = POLLIN;
    link->write_event = POLLOUT;
    link->error = 0;
    link->deadline_ns = deadline_ns;
    link->place = link->url->place;
    link->stage = OPENING;
    if (!fleet_replies_begin(link->replies))
        down_errno(link, ENOMEM);
    else if (elsewhere != NULL && link->url->path[0] != '\0')
        down(link, "it pointed to another place; from a unix socket nothing is sent there");
    else if (elsewhere != NULL && !fleet_place_read(&link->place, elsewhere, &link->url->place))
        down(link, "it pointed to another place, which is not host:port");
    else
        link->elsewhere = elsewhere != NULL;
}

/* ---- bytes ---- */

static int io_result(ssize_t n)
{
    if (n > 0)
        return (int)n;
    if (n == 0)
        return FLEET_IO_END;
    return errno == EAGAIN || errno == EINTR ? FLEET_IO_WAIT : FLEET_IO_BROKEN;
}

static int io_read(struct fleet_link *link, char *into, size_t size)
{
    if (link->tls == NULL)
        return io_result(recv(link->fd, into, size, 0));
    int n = fleet_tls_read(link->tls, into, size);
    link->read_event = fleet_tls_event(link->tls, POLLIN);
    return n;
}

static int io_write(struct fleet_link *link, const char *from, size_t size)
{
    if (link->tls == NULL)
        return io_result(send(link->fd, from, size, MSG_NOSIGNAL));
    int n = fleet_tls_write(link->tls, from, size);
    link->write_event = fleet_tls_event(link->tls, POLLOUT);
    return n;
}

static void down_broken(struct fleet_link *link)
{
    if (link->tls != NULL)
        down(link, "%s", fleet_tls_problem(link->tls));
    else
        down_errno(link, errno);
}

/* Writes what can be written. A failure is left to the reading, which may still bring the server's reason. */
static void flush(struct fleet_link *link)
{
    size_t sent = 0;
    int n = 1;
    while (sent < link->queued && (n = io_write(link, link->out + sent, link->queued - sent)) > 0)
        sent += (size_t)n;
    memmove(link->out, link->out + sent, link->queued - sent);
    explicit_bzero(link->out + link->queued - sent, sent); /* AUTH may have been in it */
    link->queued = n == FLEET_IO_BROKEN || n == FLEET_IO_END ? 0 : link->queued - sent;
}

/* Reads what is there and can be kept. */
static void fill(struct fleet_link *link)
{
    char piece[FLEET_PIECE_MAX];
    while (fleet_replies_room(link->replies)) {
        int n = io_read(link, piece, sizeof piece);
        if (n > 0)
            fleet_replies_feed(link->replies, piece, (size_t)n);
        else if (n == FLEET_IO_BROKEN)
            down_broken(link);
        link->ended = n == FLEET_IO_END;
        if (n <= 0)
            return;
    }
    link->again = true;
}

/* The next reply; garbage is the end, and says more than that the connection was closed after it. */
static bool take(struct fleet_link *link, struct fleet_reply *reply)
{
    const char *reason;
    enum fleet_reading reading = fleet_replies_next(link->replies, reply, &reason);
    if (reading == FLEET_READING_GARBAGE && (link->stage != DOWN || link->ended))
        down(link, "%s", reason);
    return reading == FLEET_READING_REPLY;
}

static bool queue(struct fleet_link *link, int argc, const char *const *argv, const size_t *length)
{
    const char *args[FLEET_ARGS_MAX];
    size_t total = 0;
    char *command = NULL;
    if (argc < 1 || argc > FLEET_ARGS_MAX)
        return false;
    for (int i = 0; i < argc; i++) {
        args[i] = argv[i];
        size_t more = length != NULL ? length[i] : strlen(argv[i]);
        if (more > FLEET_COMMAND_MAX - total)
            return false;
        total += more;
    }
    long long size = redisFormatCommandArgv(&command, argc, args, length);
    if (size < 0)
        return false;
    bool fits = (size_t)size <= sizeof link->out - link->queued;
    if (fits)
        memcpy(link->out + link->queued, command, (size_t)size);
    link->queued += fits ? (size_t)size : 0;
    explicit_bzero(command, (size_t)size);
    redisFreeCommand(command);
    return fits;
}

/* ---- stages: where is it ---- */

static void open_socket(struct fleet_link *link, const struct sockaddr *address, socklen_t length)
{
    int on = 1;
    link->fd = fleet_fd_above(socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (link->fd < 0) {
        link->error = errno;
        return;
    }
    if (address->sa_family != AF_UNIX) {
        setsockopt(link->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        setsockopt(link->fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    }
    if (connect(link->fd, address, length) == 0 || errno == EINPROGRESS || errno == EINTR)
        return;
    link->error = errno;
    close(link->fd);
    link->fd = -1;
}

/* This address's part of the time. */
static int64_t turn_end(const struct fleet_link *link, int64_t now_ns)
{
    int64_t turns = 1;
    for (const struct addrinfo *a = link->next; a != NULL; a = a->ai_next)
        turns++;
    return link->deadline_ns > now_ns ? now_ns + (link->deadline_ns - now_ns) / turns : now_ns;
}

static void try_next(struct fleet_link *link, int64_t now_ns)
{
    if (link->fd >= 0)
        close(link->fd);
    link->fd = -1;
    while (link->fd < 0 && link->next != NULL) {
        const struct addrinfo *address = link->next;
        link->next = address->ai_next;
        open_socket(link, address->ai_addr, address->ai_addrlen);
    }
    if (link->fd < 0)
        down_errno(link, link->error);
    link->turn_ns = turn_end(link, now_ns);
}

static void connect_local(struct fleet_link *link)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    static_assert(sizeof link->url->path <= sizeof address.sun_path, "a path that was read fits");
    memcpy(address.sun_path, link->url->path, sizeof link->url->path);
    open_socket(link, (const struct sockaddr *)&address, sizeof address);
    if (link->fd < 0)
        down_errno(link, link->error);
    else
        link->stage = CONNECTING;
    link->turn_ns = link->deadline_ns;
}

static bool is_same(const struct fleet_place *a, const struct fleet_place *b)
{
    return strcmp(a->host, b->host) == 0 && strcmp(a->port, b->port) == 0;
}

static void start(struct fleet_link *link)
{
    const struct addrinfo *found;
    const char *reason;
    if (link->url->path[0] != '\0') {
        connect_local(link);
        return;
    }
    if (link->lookup != NULL && !is_same(fleet_lookup_place(link->lookup), &link->place)) {
        if (!fleet_lookup_over(link->lookup, &found, &reason)) {
            down(link, "the name of another place is still being looked up");
            return;
        }
        forget_addresses(link);
    }
    if (link->lookup == NULL)
        link->lookup = fleet_lookup_new(&link->place);
    if (link->lookup == NULL)
        down_errno(link, errno);
    else
        link->stage = LOOKING;
}

static void look(struct fleet_link *link, int64_t now_ns)
{
    const char *reason;
    if (!fleet_lookup_over(link->lookup, &link->next, &reason))
        return;
    link->stage = CONNECTING;
    if (link->next != NULL) {
        try_next(link, now_ns);
        return;
    }
    down(link, "%s", reason); /* which also forgets the lookup */
}

/* ---- stages: who are we ---- */

static void select_database(struct fleet_link *link)
{
    char number[16];
    snprintf(number, sizeof number, "%d", link->url->db);
    link->stage = READY;
    if (link->url->db == 0)
        return;
    link->stage = SELECT;
    if (!queue(link, 2, (const char *const[]){"SELECT", number}, NULL))
        down_errno(link, ENOMEM);
}

static void greet(struct fleet_link *link)
{
    const struct fleet_url *url = link->url;
    const char *const args[] = {"AUTH", url->user != NULL ? url->user : url->password, url->password};
    if (url->password == NULL) {
        select_database(link);
        return;
    }
    link->stage = AUTH;
    if (!queue(link, url->user != NULL ? 3 : 2, args, NULL))
        down_errno(link, ENOMEM);
}

static void secure(struct fleet_link *link)
{
    char problem[FLEET_TLS_PROBLEM_MAX];
    forget_addresses(link);
    if (!link->url->tls) {
        greet(link);
        return;
    }
    link->tls = fleet_tls_new(link->url, link->place.host, link->fd, problem);
    link->stage = SHAKING;
    if (link->tls == NULL)
        down(link, "%s", problem);
}

static void await_connection(struct fleet_link *link, int64_t now_ns)
{
    struct pollfd ready = {.fd = link->fd, .events = POLLOUT};
    socklen_t length = sizeof link->error;
    if (poll(&ready, 1, 0) > 0) {
        if (getsockopt(link->fd, SOL_SOCKET, SO_ERROR, &link->error, &length) != 0)
            link->error = errno;
    } else if (now_ns >= link->turn_ns && link->next != NULL) {
        link->error = ETIMEDOUT;
    } else {
        return;
    }
    if (link->error == 0)
        secure(link);
    else
        try_next(link, now_ns);
}

static void shake(struct fleet_link *link)
{
    int result = fleet_tls_handshake(link->tls);
    link->read_event = fleet_tls_event(link->tls, POLLIN);
    if (result == 1) {
        greet(link);
    } else if (result == FLEET_IO_END) {
        down(link, "it closed the connection during the TLS handshake");
    } else if (result == FLEET_IO_BROKEN) {
        down_broken(link);
    }
}

/* What a refusal of AUTH means. In some of them Redis repeats arguments, cut and changed, so its words are not told. */
static const char *explain_auth(const char *error)
{
    static const struct {
        const char *begins, *means;
    } table[] = {
        {"WRONGPASS", "WRONGPASS, the user or the password is wrong"},
        {"ERR invalid password", "the password is wrong"},
        {"ERR Client sent AUTH", "no password is set there"},
        {"ERR AUTH", "no password is set there"},
        {"ERR wrong number", "it knows no users, only a password (Redis before 6)"},
        {"ERR unknown command", "it does not know that command"},
        {"ERR max number", "it has too many clients"},
        {"NOPERM", "NOPERM, the user may not do that"},
        {"LOADING", "LOADING, it is reading its data"},
        {"DENIED", "DENIED, it is in protected mode"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strncmp(error, table[i].begins, strlen(table[i].begins)) == 0)
            return table[i].means;
    return "it does not say why in words we know";
}

/* The answer to AUTH or SELECT: nothing but OK leads on. */
static void introduce(struct fleet_link *link)
{
    struct fleet_reply reply;
    const char *what = link->stage == AUTH ? "AUTH" : "SELECT";
    flush(link);
    fill(link);
    if (link->stage == DOWN || !take(link, &reply)) {
        if (link->stage != DOWN && link->ended)
            down(link, "it closed the connection before it answered %s", what);
        return;
    }
    if (reply.kind == FLEET_REPLY_ERROR)
        down(link, "it refuses %s: %s", what, link->stage == AUTH ? explain_auth(reply.error) : reply.error);
    else if (reply.kind != FLEET_REPLY_OTHER)
        down(link, "it answers %s with numbers", what);
    else if (link->stage == AUTH)
        select_database(link);
    else
        link->stage = READY;
}

/* ---- ready ---- */

/* Bytes that answer nothing would be taken for the answer to what comes next. */
static void check_unasked(struct fleet_link *link)
{
    struct fleet_reply reply;
    if (link->stage != READY || link->pending > 0 || fleet_replies_unread(link->replies) == 0)
        return;
    bool whole = take(link, &reply);
    if (link->stage == READY)
        down(link, "it says unasked: %s", whole && reply.kind == FLEET_REPLY_ERROR ? reply.error : "something");
}

static void exchange(struct fleet_link *link)
{
    flush(link);
    fill(link);
    check_unasked(link);
    if (link->stage != DOWN && link->ended)
        down(link, "it closed the connection");
}

bool fleet_link_send(struct fleet_link *link, int argc, const char *const *argv, const size_t *length,
                     int64_t deadline_ns)
{
    if (link->stage != READY || link->pending == PENDING_MAX || !queue(link, argc, argv, length))
        return false;
    link->pending_ns[(link->first + link->pending++) % PENDING_MAX] = deadline_ns;
    return true;
}

bool fleet_link_reply(struct fleet_link *link, struct fleet_reply *reply)
{
    if (link->pending == 0 || !take(link, reply))
        return false;
    link->first = (link->first + 1) % PENDING_MAX;
    link->pending--;
    check_unasked(link);
    return true;
}

void fleet_link_close(struct fleet_link *link)
{
    if (link->stage == READY) {
        flush(link);
        if (link->tls != NULL)
            fleet_tls_bye(link->tls);
    }
    disconnect(link);
    link->first = link->pending = 0;
    link->problem[0] = '\0';
}

/* ---- steps and deadlines ---- */

static int64_t earliest_pending(const struct fleet_link *link)
{
    int64_t earliest = BIDE_NEVER;
    for (size_t i = 0; i < link->pending; i++) {
        int64_t deadline_ns = link->pending_ns[(link->first + i) % PENDING_MAX];
        earliest = deadline_ns < earliest ? deadline_ns : earliest;
    }
    return earliest;
}

static void advance(struct fleet_link *link, int64_t now_ns)
{
    switch (link->stage) {
    case DOWN: break;
    case OPENING: start(link); break;
    case LOOKING: look(link, now_ns); break;
    case CONNECTING: await_connection(link, now_ns); break;
    case SHAKING: shake(link); break;
    case AUTH:
    case SELECT: introduce(link); break;
    case READY: exchange(link); break;
    }
}

static void check_deadline(struct fleet_link *link, int64_t now_ns)
{
    static const char *const late[] = {
        [OPENING] = "it was not begun in time", [LOOKING] = "its name was not found in time",
        [CONNECTING] = "no connection in time", [SHAKING] = "no TLS handshake in time; is TLS spoken there?",
        [AUTH] = "no answer to AUTH in time",   [SELECT] = "no answer to SELECT in time",
        [READY] = "no answer in time",
    };
    int64_t deadline_ns = link->stage == READY ? earliest_pending(link) : link->deadline_ns;
    if (link->stage != DOWN && now_ns >= deadline_ns)
        down(link, "%s", late[link->stage]);
}

void fleet_link_step(struct fleet_link *link, int64_t now_ns)
{
    enum stage before;
    link->again = false;
    do {
        before = link->stage;
        advance(link, now_ns);
    } while (link->stage != before && link->stage != DOWN);
    check_deadline(link, now_ns);
}

int64_t fleet_link_deadline_ns(const struct fleet_link *link)
{
    if (link->stage == DOWN)
        return BIDE_NEVER;
    if (link->stage == OPENING || link->again)
        return 0;
    if (link->stage == READY)
        return earliest_pending(link);
    return link->stage == CONNECTING && link->turn_ns < link->deadline_ns ? link->turn_ns : link->deadline_ns;
}

int fleet_link_fd(const struct fleet_link *link, short *events)
{
    *events = 0;
    switch (link->stage) {
    case DOWN:
    case OPENING: return -1;
    case LOOKING: *events = POLLIN; return fleet_lookup_fd(link->lookup);
    case CONNECTING: *events = POLLOUT; break;
    case SHAKING: *events = link->read_event; break;
    case AUTH:
    case SELECT:
    case READY: *events = (short)(link->read_event | (link->queued > 0 ? link->write_event : 0)); break;
    }
    return link->fd;
}

enum fleet_link_state fleet_link_state(const struct fleet_link *link)
{
    if (link->stage == DOWN)
        return FLEET_LINK_DOWN;
    return link->stage == READY ? FLEET_LINK_READY : FLEET_LINK_BEGINNING;
}

const char *fleet_link_problem(const struct fleet_link *link)
{
    return link->problem;
}
