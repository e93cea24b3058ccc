/* connection.c - one connection: requests come in, and each is answered, delayed or cut, one after the other.
 *
 *     HEAD ─► BODY ─► QUEUE ─► SERVICE ─► DELAY ─► SEND ─► HEAD ...
 *               │                                   │ ├────► DRAIN ─► HEAD     the rest of a body answered early
 *               │                                   │ └────► LINGER, HALF_CLOSED: FIN was sent, input is discarded
 *               └─────────────────────────────────► CUT
 *
 * What will happen to a request is settled when its head is there: `choose` finds the step, a reply is begun. After
 * that each state has one function that does what can be done now, and says whether to go on with the next; false means
 * that an event or the timer must come first.
 *
 * The timer is always set while a connection lives, mostly to a time long after nothing has happened any more: work on
 * a connection does not move it, and when it fires, it looks at the clock and is set anew. */
#include "server.h"

#include <bide/clock.h>

#include "core/random.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define TURN_BYTES (1u << 20)   /* one connection reads or sends in a turn, then others have theirs */
#define UNSENT_NS  BIDE_MS      /* between two looks whether all is sent before a reset */
#define LINGER_NS  (2 * BIDE_S) /* at most, for the client's FIN */

enum state { HEAD = 0, BODY, QUEUE, SERVICE, DELAY, SEND, CUT, DRAIN, HALF_CLOSED, LINGER };

enum place { OUTSIDE = 0, ADMITTED, QUEUED, SERVED }; /* under the capacity of its line */

enum purpose { FOR_FAIL = 1, FOR_DELAY };

struct chaos_connection {
    struct bide_timer timer; /* first: its address is the connection's */
    struct chaos *server;
    struct chaos_connection *next, *previous;
    struct chaos_wire wire; /* closed: dead */
    enum state state;
    int64_t active_ns; /* when bytes last moved */
    int64_t wake_ns;   /* SERVICE, DELAY, LINGER, and SEND with a drip: not before */

    struct chaos_request request;
    struct chaos_reply reply;
    struct chaos_record record;
    enum chaos_deed deed; /* that a sent reply will have been */
    enum chaos_cut reuse; /* of the next request */
    uint64_t number;      /* of the request on its line */

    struct chaos_line *line; /* NULL: none serves this path */
    enum place place;
    struct chaos_connection *behind; /* in the queue of the line */
};

/* ---- the end of a connection ---- */

static void leave_line(struct chaos_connection *c);

static void end_record(struct chaos_connection *c, enum chaos_deed deed)
{
    c->record.seen.body_bytes = c->request.body_bytes;
    c->record.seen.body_hash = chaos_request_hash(&c->request);
    chaos_journal_end(&c->server->journal, &c->record, deed);
}

/* Whatever request was under way ends with this deed. */
static void end_with(struct chaos_connection *c, enum chaos_deed deed, void (*how)(struct chaos_wire *wire))
{
    struct chaos *server = c->server;
    if (c->wire.fd < 0)
        return;
    end_record(c, deed);
    how(&c->wire);
    bide_timers_set(&server->timers, &c->timer, BIDE_NEVER);
    leave_line(c);
    *(c->previous != NULL ? &c->previous->next : &server->live) = c->next;
    if (c->next != NULL)
        c->next->previous = c->previous;
    c->next = server->dead;
    server->dead = c;
}

static void end(struct chaos_connection *c, enum chaos_deed deed)
{
    end_with(c, deed, chaos_wire_close);
}

static void reset(struct chaos_connection *c, enum chaos_deed deed)
{
    end_with(c, deed, chaos_wire_reset);
}

static void wait_until(struct chaos_connection *c, int64_t due_ns)
{
    if (bide_timers_set(&c->server->timers, &c->timer, due_ns) != BIDE_OK)
        end(c, CHAOS_DEED_LEFT);
}

/* With FIN. While something is unread close() would send RST, and destroy the answer on its way: then FIN first, and
 * the rest is discarded until the client has gone. */
static bool finish(struct chaos_connection *c, enum chaos_deed deed)
{
    if (chaos_wire_unread(&c->wire) == 0 && c->request.body == CHAOS_BODY_WHOLE) {
        end(c, deed);
        return false;
    }
    end_record(c, deed);
    shutdown(c->wire.fd, SHUT_WR);
    c->state = LINGER;
    c->wire.readable = true;
    c->wake_ns = bide_now() + LINGER_NS;
    wait_until(c, c->wake_ns);
    return c->wire.fd >= 0;
}

/* ---- input and output ---- */

/* The client has closed its side, or is gone. */
static bool client_left(struct chaos_connection *c)
{
    struct chaos_request half;
    if (c->state == HEAD && c->wire.left > 0 && chaos_request_half(&half, c->wire.at, c->wire.left)) {
        c->request = half;
        c->record.seen.on_connection++;
        chaos_journal_begin(&c->server->journal, &c->record, &half, (struct bide_text){c->wire.at, c->wire.left});
    }
    end(c, c->state <= BODY ? CHAOS_DEED_HALF : CHAOS_DEED_LEFT);
    return false;
}

/* True when others should have their turn first. */
static bool exhausted(struct chaos_connection *c)
{
    if (c->wire.turn_bytes < TURN_BYTES)
        return false;
    wait_until(c, bide_now());
    return true;
}

/* False: there is nothing to be read now, or the connection is over. */
static bool read_more(struct chaos_connection *c)
{
    if (exhausted(c))
        return false;
    enum chaos_io io = chaos_wire_read(&c->wire, c->server->in);
    if (io == CHAOS_IO_GONE)
        return client_left(c);
    if (io == CHAOS_IO_DONE)
        c->active_ns = bide_now();
    return io == CHAOS_IO_DONE;
}

/* False: not all could be sent, or the connection is over. */
static bool send_out(struct chaos_connection *c, size_t most)
{
    size_t before = c->wire.out_left;
    enum chaos_io io = chaos_wire_send(&c->wire, most);
    if (c->wire.out_left < before)
        c->active_ns = bide_now();
    if (io == CHAOS_IO_GONE)
        end(c, CHAOS_DEED_LEFT);
    return io == CHAOS_IO_DONE;
}

/* Interim responses: short, and before anything else. */
static void say(struct chaos_connection *c, int status)
{
    char bytes[64];
    size_t length = chaos_reply_interim(bytes, status);
    if (!chaos_wire_add(&c->wire, bytes, length))
        end(c, CHAOS_DEED_LEFT);
    else
        send_out(c, SIZE_MAX);
}

/* ---- what happens to a request ---- */

/* A number that belongs to this request and purpose alone, whatever else is going on. */
static uint64_t draw(const struct chaos_connection *c, enum purpose purpose)
{
    uint64_t line = (uint64_t)(c->line - c->server->script.line);
    return core_mix(core_mix(c->server->seed + line * CORE_GOLDEN) + (c->number * 4 + (uint64_t)purpose) * CORE_GOLDEN);
}

static bool fails(const struct chaos_connection *c)
{
    return c->line->fail_ppm > 0 && draw(c, FOR_FAIL) % 1000000 < c->line->fail_ppm;
}

static bool admit(struct chaos_connection *c)
{
    if (c->line->capacity == 0)
        return true;
    if (c->line->inside >= (uint64_t)c->line->capacity + c->line->queue)
        return false;
    c->line->inside++;
    c->place = ADMITTED;
    return true;
}

/* Questions in this order; one that decides takes no step. */
static const struct chaos_step *choose(struct chaos_connection *c)
{
    const struct chaos_script *script = &c->server->script;
    const struct chaos_outage *outage;
    int64_t since_ns = bide_now() - c->server->start_ns;
    c->line = chaos_script_find(script, c->request.path);
    if (c->reuse != CHAOS_CUT_NONE)
        return chaos_step_cut(c->reuse);
    if (script->all != NULL && (outage = chaos_line_outage(script->all, since_ns)) != NULL)
        return &outage->step;
    if (c->line == NULL)
        return chaos_step_plain(script->lines == 0 ? 200 : 404);
    if ((outage = chaos_line_outage(c->line, since_ns)) != NULL)
        return &outage->step;
    if (!admit(c))
        return chaos_step_plain(503);
    c->number = ++c->line->requests;
    return fails(c) ? &c->line->fail : chaos_line_take(c->line);
}

static void begin_reply(struct chaos_connection *c, const struct chaos_step *step, enum chaos_deed deed)
{
    chaos_reply_begin(&c->reply, step, &c->request);
    c->deed = deed;
    c->record.seen.status = 0;
}

/* Not a request that can be served: says so, and closes. */
static bool refuse(struct chaos_connection *c)
{
    begin_reply(c, chaos_step_plain(c->request.refusal), CHAOS_DEED_MALFORMED);
    c->request.body = CHAOS_BODY_BYTES; /* whatever comes belongs to it */
    c->request.left = UINT64_MAX;
    c->state = SEND;
    return true;
}

/* RFC 9110 10.1.1: not if the body is coming already, nor before a final status that does not need it. */
static bool wants_continue(const struct chaos_connection *c, const struct chaos_step *step)
{
    return c->request.expects && c->request.body != CHAOS_BODY_WHOLE && c->wire.left == 0 && !step->no_continue &&
           (!step->early || step->early_bytes > 0);
}

/* The head is there, or is wrong. */
static bool on_head(struct chaos_connection *c, enum chaos_read read)
{
    size_t length = c->request.head_bytes > 0 ? c->request.head_bytes : c->wire.left;
    c->record.seen.on_connection++;
    chaos_journal_begin(&c->server->journal, &c->record, &c->request, (struct bide_text){c->wire.at, length});
    if (read == CHAOS_READ_WRONG) {
        chaos_wire_take(&c->wire, length);
        return refuse(c);
    }
    const struct chaos_step *step = choose(c);
    begin_reply(c, step, step->garbage ? CHAOS_DEED_GARBAGE : CHAOS_DEED_ANSWERED);
    chaos_wire_take(&c->wire, length);
    c->state = BODY;
    if (wants_continue(c, step))
        say(c, 100);
    return c->wire.fd >= 0;
}

static bool do_head(struct chaos_connection *c)
{
    enum chaos_read read = CHAOS_READ_MORE;
    do {
        if (c->wire.left > 0)
            read = chaos_request_head(&c->request, c->wire.at, c->wire.left);
    } while (read == CHAOS_READ_MORE && read_more(c));
    return read != CHAOS_READ_MORE && on_head(c, read);
}

static bool on_request(struct chaos_connection *c);

/* An early answer counts bytes of the body exactly, and leaves the others. */
static bool do_body(struct chaos_connection *c)
{
    const struct chaos_step *step = c->reply.step;
    bool early = step->early && c->request.body_bytes >= step->early_bytes;
    if (early || c->request.body == CHAOS_BODY_WHOLE)
        return on_request(c);
    if (c->wire.left == 0 && !read_more(c))
        return false;
    size_t most = c->wire.left, taken = 0;
    if (step->early && most > step->early_bytes - c->request.body_bytes)
        most = (size_t)(step->early_bytes - c->request.body_bytes);
    enum chaos_read read = chaos_request_body(&c->request, (struct bide_text){c->wire.at, most}, &taken);
    chaos_wire_take(&c->wire, taken);
    return read != CHAOS_READ_WRONG || refuse(c);
}

/* ---- waiting ---- */

static void delay(struct chaos_connection *c)
{
    struct chaos_span span = c->reply.step->delay;
    uint64_t width = (uint64_t)(span.max_ns - span.min_ns);
    int64_t ns = span.min_ns + (width > 0 ? (int64_t)(draw(c, FOR_DELAY) % (width + 1)) : 0);
    c->state = DELAY;
    c->wake_ns = span.min_ns == BIDE_NEVER ? BIDE_NEVER : ns > 0 ? bide_now() + ns : 0;
    if (ns > 0)
        wait_until(c, c->wake_ns);
}

static void serve(struct chaos_connection *c)
{
    c->line->serving++;
    c->place = SERVED;
    c->state = SERVICE;
    c->wake_ns = bide_now() + c->line->service_ns;
    wait_until(c, c->wake_ns);
}

static void enqueue(struct chaos_connection *c)
{
    *(c->line->last != NULL ? &c->line->last->behind : &c->line->first) = c;
    c->line->last = c;
    c->behind = NULL;
    c->place = QUEUED;
    c->state = QUEUE;
}

static void unqueue(struct chaos_connection *c)
{
    struct chaos_connection *ahead = NULL, *at = c->line->first;
    for (; at != c; at = at->behind)
        ahead = at;
    *(ahead != NULL ? &ahead->behind : &c->line->first) = c->behind;
    if (c->line->last == c)
        c->line->last = ahead;
}

/* Gives back whatever place it has; the next one in the queue gets it. */
static void leave_line(struct chaos_connection *c)
{
    struct chaos_line *line = c->line;
    enum place place = c->place;
    c->place = OUTSIDE;
    if (place == OUTSIDE)
        return;
    line->inside--;
    if (place == QUEUED)
        unqueue(c);
    if (place != SERVED)
        return;
    line->serving--;
    struct chaos_connection *first = line->first;
    if (first != NULL) {
        unqueue(first);
        serve(first);
    }
}

/* The request was read, as far as it is going to be. */
static bool on_request(struct chaos_connection *c)
{
    const struct chaos_step *step = c->reply.step;
    for (size_t i = 0; i < CHAOS_INTERIM_MAX && step->interim[i] != 0 && c->wire.fd >= 0; i++)
        say(c, step->interim[i]);
    if (c->wire.fd < 0)
        return false;
    if (step->cut != CHAOS_CUT_NONE && step->cut_at == CHAOS_AT_REQUEST)
        c->state = CUT;
    else if (c->place == OUTSIDE)
        delay(c);
    else if (c->line->serving < c->line->capacity)
        serve(c);
    else
        enqueue(c);
    return c->wire.fd >= 0;
}

static bool do_service(struct chaos_connection *c)
{
    if (bide_now() < c->wake_ns)
        return false;
    leave_line(c);
    delay(c);
    return c->wire.fd >= 0;
}

/* Who waits for ever is let go when the client goes; else a client that has closed one side still gets its answer. */
static bool do_delay(struct chaos_connection *c)
{
    if (c->wake_ns == BIDE_NEVER && c->wire.hung_up)
        return client_left(c);
    if (c->wake_ns > 0 && bide_now() < c->wake_ns)
        return false;
    c->wake_ns = 0;
    c->state = SEND;
    return true;
}

/* ---- answering ---- */

/* The answer was sent, as far as it is going to be. */
static bool on_sent(struct chaos_connection *c)
{
    const struct chaos_step *step = c->reply.step;
    c->wake_ns = 0;
    if (step->cut != CHAOS_CUT_NONE) {
        c->state = CUT;
        return true;
    }
    if (c->reply.close)
        return finish(c, c->deed);
    end_record(c, c->deed);
    c->reuse = step->reuse;
    if (step->half_close)
        shutdown(c->wire.fd, SHUT_WR);
    c->state = step->half_close ? HALF_CLOSED : c->request.body != CHAOS_BODY_WHOLE ? DRAIN : HEAD;
    if (c->state == HEAD)
        c->request = (struct chaos_request){0};
    return true;
}

static bool drip(struct chaos_connection *c)
{
    int64_t now_ns = bide_now();
    if (now_ns < c->wake_ns || !send_out(c, c->reply.step->drip_bytes))
        return false;
    c->wake_ns = now_ns + c->reply.step->drip_ns;
    wait_until(c, c->wake_ns);
    return false;
}

static bool do_send(struct chaos_connection *c)
{
    if (exhausted(c))
        return false;
    if (c->wire.out_left == 0) {
        size_t length = chaos_reply_more(&c->reply, c->server->out, bide_wall_s());
        if (length == 0)
            return on_sent(c);
        chaos_wire_show(&c->wire, c->server->out, length);
        if (!c->reply.step->garbage)
            c->record.seen.status = c->reply.status;
    }
    if (c->reply.step->drip_bytes > 0)
        return drip(c);
    if (!send_out(c, SIZE_MAX))
        return false;
    return c->reply.part != CHAOS_PART_OVER || on_sent(c);
}

/* A reset throws away what is unsent: the client is to get all that comes before it, so that is waited for. */
static bool do_cut(struct chaos_connection *c)
{
    const struct chaos_step *step = c->reply.step;
    bool whole = step->cut_at != CHAOS_AT_REQUEST && !c->reply.cut_short;
    bool resets = step->cut == CHAOS_CUT_RESET;
    if (resets && chaos_wire_unsent(&c->wire) > 0) {
        wait_until(c, bide_now() + UNSENT_NS);
        return false;
    }
    if (!resets)
        return finish(c, whole ? c->deed : CHAOS_DEED_CLOSED);
    reset(c, whole ? c->deed : CHAOS_DEED_RESET);
    return false;
}

/* The rest of a body that was answered early. */
static bool do_drain(struct chaos_connection *c)
{
    size_t taken = 0;
    if (c->wire.left == 0 && !read_more(c))
        return false;
    if (chaos_request_body(&c->request, (struct bide_text){c->wire.at, c->wire.left}, &taken) == CHAOS_READ_WRONG)
        return finish(c, CHAOS_DEED_MALFORMED);
    chaos_wire_take(&c->wire, taken);
    if (c->request.body == CHAOS_BODY_WHOLE) {
        c->request = (struct chaos_request){0};
        c->state = HEAD;
    }
    return true;
}

static bool do_discard(struct chaos_connection *c)
{
    chaos_wire_take(&c->wire, c->wire.left);
    return read_more(c);
}

static bool do_queue(struct chaos_connection *c)
{
    (void)c;
    return false;
}

/* ---- a turn ---- */

static bool (*const doing[])(struct chaos_connection *c) = {
    [HEAD] = do_head, [BODY] = do_body, [QUEUE] = do_queue, [SERVICE] = do_service,     [DELAY] = do_delay,
    [SEND] = do_send, [CUT] = do_cut,   [DRAIN] = do_drain, [HALF_CLOSED] = do_discard, [LINGER] = do_discard,
};

static void go(struct chaos_connection *c)
{
    c->wire.turn_bytes = 0;
    while (c->wire.fd >= 0 && doing[c->state](c))
        continue;
    if (c->wire.fd >= 0 && !chaos_wire_tidy(&c->wire))
        end(c, CHAOS_DEED_LEFT);
}

void chaos_connection_event(struct chaos_connection *c, uint32_t events)
{
    if (c->wire.fd < 0)
        return;
    if ((events & (EPOLLHUP | EPOLLERR)) != 0 && c->state != HEAD && c->state != BODY) {
        client_left(c);
        return;
    }
    c->wire.hung_up |= (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
    c->wire.readable |= (events & EPOLLIN) != 0 || c->wire.hung_up;
    go(c);
}

/* True when the client had its time and did nothing with it. Time that we let pass ourselves is not counted. */
static bool idle(const struct chaos_connection *c, int64_t now_ns)
{
    int64_t since_ns = c->wake_ns > c->active_ns ? c->wake_ns : c->active_ns;
    if (c->state == LINGER)
        return now_ns >= c->wake_ns;
    return c->state != QUEUE && since_ns != BIDE_NEVER && now_ns - since_ns >= c->server->idle_ns;
}

/* What it does not read would keep a FIN from reaching it. */
static void cut_idle(struct chaos_connection *c)
{
    if (c->state == SEND || c->state == CUT)
        reset(c, CHAOS_DEED_LEFT);
    else
        client_left(c);
}

/* Work first: if we are late, that is not the client's fault. */
void chaos_connection_timer(struct bide_timer *timer)
{
    struct chaos_connection *c = (struct chaos_connection *)(void *)timer;
    go(c);
    int64_t now_ns = bide_now();
    if (c->wire.fd < 0)
        return;
    if (idle(c, now_ns))
        cut_idle(c);
    else if (timer->place == 0 && c->wake_ns != BIDE_NEVER)
        wait_until(c, c->wake_ns > now_ns ? c->wake_ns : now_ns + c->server->idle_ns);
}

/* ---- the beginning of a connection ---- */

/* A step of the line for all may cut connections at their accept: whoever comes next takes it. */
static bool cut_at_accept(struct chaos_connection *c)
{
    struct chaos_line *all = c->server->script.all;
    if (all == NULL || all->step[all->at].cut == CHAOS_CUT_NONE || all->step[all->at].cut_at != CHAOS_AT_ACCEPT)
        return false;
    bool resets = chaos_line_take(all)->cut == CHAOS_CUT_RESET;
    chaos_journal_begin(&c->server->journal, &c->record, &c->request, (struct bide_text){"", 0});
    if (resets)
        reset(c, CHAOS_DEED_RESET);
    else
        end(c, CHAOS_DEED_CLOSED);
    return true;
}

void chaos_connection_new(struct chaos *server, int fd)
{
    const int one = 1;
    struct epoll_event watch = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET};
    struct chaos_connection *c = calloc(1, sizeof *c);
    if (c == NULL) {
        close(fd);
        return;
    }
    *c = (struct chaos_connection){.server = server, .wire.fd = fd, .next = server->live, .active_ns = bide_now()};
    c->record.seen.connection = ++server->connections;
    if (server->live != NULL)
        server->live->previous = c;
    server->live = c;
    watch.data.ptr = c;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (cut_at_accept(c))
        return;
    wait_until(c, c->active_ns + server->idle_ns);
    if (c->wire.fd >= 0 && epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, fd, &watch) != 0)
        end(c, CHAOS_DEED_LEFT);
}

void chaos_connections_end(struct chaos *server)
{
    while (server->live != NULL)
        end(server->live, CHAOS_DEED_UNFINISHED);
}

void chaos_connections_bury(struct chaos *server)
{
    while (server->dead != NULL) {
        struct chaos_connection *c = server->dead;
        server->dead = c->next;
        chaos_wire_free(&c->wire);
        free(c);
    }
}
