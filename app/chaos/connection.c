/* connection.c - state machine of a connection: reads requests in sequence, and answers, delays or cuts each.
 *
 *     HEAD ─► BODY ─► QUEUE ─► SERVICE ─► DELAY ─► SEND ─► HEAD ...
 *               │                                   │ ├────► DRAIN ─► HEAD     the rest of a body answered early
 *               │                                   │ └────► LINGER, HALF_CLOSED: FIN was sent, input is discarded
 *               └─────────────────────────────────► CUT
 *
 * The treatment of a request is decided when its head is complete: request_choose_step selects the step, and the
 * response is prepared. From then on each state has a handler that does all it can do now; it returns true to continue
 * with the next state and false to wait for an event or the timer.
 *
 * The timer of an open connection is always set, mostly to the idle timeout, except during delay=never. Activity does
 * not move it (that would cost a heap operation per request): when the timer fires, the handler checks the clock and
 * sets it again. */
#include "server.h"

#include <bide/clock.h>

#include "core/random.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define TURN_BYTES_MAX (1u << 20)   /* per connection and turn; then other connections get theirs */
#define UNSENT_POLL_NS BIDE_MS      /* interval at which handle_cut checks whether the output was sent */
#define LINGER_MAX_NS  (2 * BIDE_S) /* longest wait for the client's FIN */

enum state { HEAD = 0, BODY, QUEUE, SERVICE, DELAY, SEND, CUT, DRAIN, HALF_CLOSED, LINGER };

enum admission { NOT_ADMITTED = 0, ADMITTED, QUEUED, IN_SERVICE }; /* with respect to its line's capacity */

enum purpose { FOR_FAIL = 1, FOR_DELAY };

struct chaos_connection {
    struct bide_timer timer; /* first member: a timer pointer is also a connection pointer */
    struct chaos *server;
    struct chaos_connection *next, *previous;
    struct chaos_wire wire; /* fd -1: closed */
    enum state state;
    int64_t active_ns; /* time of the last transferred byte */
    int64_t wake_ns;   /* SERVICE, DELAY, LINGER, and SEND with drip: earliest time to continue */

    struct chaos_request request;
    struct chaos_response response;
    struct chaos_record record;
    enum chaos_result result; /* to be recorded when the response was sent */
    enum chaos_cut reuse;     /* cut to be applied to the next request */
    uint64_t number;          /* of the request on its line */

    struct chaos_line *line; /* NULL: no line for this path */
    enum admission admission;
    struct chaos_connection *queue_next; /* in the line's queue */
};

/* ---- closing a connection ---- */

static void request_leave_line(struct chaos_connection *c);

static void record_close(struct chaos_connection *c, enum chaos_result result)
{
    c->record.seen.body_bytes = c->request.body_bytes;
    c->record.seen.body_hash = chaos_request_hash(&c->request);
    chaos_journal_end(&c->server->journal, &c->record, result);
}

/* Records the result of the request in progress, if any, and closes. */
static void connection_end(struct chaos_connection *c, enum chaos_result result, void (*how)(struct chaos_wire *wire))
{
    struct chaos *server = c->server;
    if (c->wire.fd < 0)
        return;
    record_close(c, result);
    how(&c->wire);
    bide_timers_set(&server->timers, &c->timer, BIDE_NEVER);
    request_leave_line(c);
    *(c->previous != NULL ? &c->previous->next : &server->live) = c->next;
    if (c->next != NULL)
        c->next->previous = c->previous;
    c->next = server->closed;
    server->closed = c;
}

static void connection_close(struct chaos_connection *c, enum chaos_result result)
{
    connection_end(c, result, chaos_wire_close);
}

static void connection_reset(struct chaos_connection *c, enum chaos_result result)
{
    connection_end(c, result, chaos_wire_reset);
}

static void connection_set_timer(struct chaos_connection *c, int64_t due_ns)
{
    if (bide_timers_set(&c->server->timers, &c->timer, due_ns) != BIDE_OK)
        connection_close(c, CHAOS_RESULT_LEFT);
}

/* Closes with FIN. close() with unread input would send RST and destroy the response in transit; in that case sends FIN
 * first and discards input until the client has closed. */
static bool connection_finish(struct chaos_connection *c, enum chaos_result result)
{
    if (chaos_wire_unread(&c->wire) == 0 && c->request.body == CHAOS_BODY_COMPLETE) {
        connection_close(c, result);
        return false;
    }
    record_close(c, result);
    shutdown(c->wire.fd, SHUT_WR);
    c->state = LINGER;
    c->wire.readable = true;
    c->wake_ns = bide_now() + LINGER_MAX_NS;
    connection_set_timer(c, c->wake_ns);
    return c->wire.fd >= 0;
}

/* ---- input and output ---- */

/* Handles a client that closed its side or reset the connection: records a partial head, and closes. Returns false, so
 * that handlers can return it. */
static bool connection_client_left(struct chaos_connection *c)
{
    struct chaos_request half;
    if (c->state == HEAD && c->wire.left > 0 && chaos_request_partial(&half, c->wire.at, c->wire.left)) {
        c->request = half;
        c->record.seen.on_connection++;
        chaos_journal_begin(&c->server->journal, &c->record, &half, (struct bide_text){c->wire.at, c->wire.left});
    }
    connection_close(c, c->state <= BODY ? CHAOS_RESULT_HALF : CHAOS_RESULT_LEFT);
    return false;
}

/* Returns true if other connections should get their turn first; the timer then continues this connection. */
static bool connection_yield_turn(struct chaos_connection *c)
{
    if (c->wire.turn_bytes < TURN_BYTES_MAX)
        return false;
    connection_set_timer(c, bide_now());
    return true;
}

/* Returns false if there is no input now, or the connection was closed. */
static bool connection_read(struct chaos_connection *c)
{
    if (connection_yield_turn(c))
        return false;
    enum chaos_io io = chaos_wire_read(&c->wire, c->server->in);
    if (io == CHAOS_IO_GONE)
        return connection_client_left(c);
    if (io == CHAOS_IO_DONE)
        c->active_ns = bide_now();
    return io == CHAOS_IO_DONE;
}

/* Returns false if some output remains, or the connection was closed. */
static bool connection_send(struct chaos_connection *c, size_t most)
{
    size_t before = c->wire.out_left;
    enum chaos_io io = chaos_wire_send(&c->wire, most);
    if (c->wire.out_left < before)
        c->active_ns = bide_now();
    if (io == CHAOS_IO_GONE)
        connection_close(c, CHAOS_RESULT_LEFT);
    return io == CHAOS_IO_DONE;
}

/* Sends an interim (1xx) response at once. */
static void connection_send_interim(struct chaos_connection *c, int status)
{
    char bytes[64];
    size_t length = chaos_response_interim(bytes, status);
    if (!chaos_wire_append(&c->wire, bytes, length))
        connection_close(c, CHAOS_RESULT_LEFT);
    else
        connection_send(c, SIZE_MAX);
}

/* ---- deciding about a request ---- */

/* Returns a random number that depends on the seed, the request and the purpose only, not on other traffic. */
static uint64_t request_random(const struct chaos_connection *c, enum purpose purpose)
{
    uint64_t line = (uint64_t)(c->line - c->server->script.line);
    return core_mix(core_mix(c->server->seed + line * CORE_GOLDEN) + (c->number * 4 + (uint64_t)purpose) * CORE_GOLDEN);
}

static bool request_is_to_fail(const struct chaos_connection *c)
{
    return c->line->fail_ppm > 0 && core_bits_to_range(request_random(c, FOR_FAIL), 999999) < c->line->fail_ppm;
}

static bool request_admit(struct chaos_connection *c)
{
    if (c->line->capacity == 0)
        return true;
    if (c->line->admitted >= (uint64_t)c->line->capacity + c->line->queue)
        return false;
    c->line->admitted++;
    c->admission = ADMITTED;
    return true;
}

/* Decides how to treat the request: a cut after reuse=, an outage on `*`, an outage of the line, the capacity, fail=,
 * or else the next step of the line, which only the last case consumes. */
static const struct chaos_step *request_choose_step(struct chaos_connection *c)
{
    const struct chaos_script *script = &c->server->script;
    const struct chaos_outage *outage;
    int64_t since_ns = bide_now() - c->server->start_ns;
    c->line = chaos_script_find(script, c->request.path);
    if (c->reuse != CHAOS_CUT_NONE)
        return chaos_step_cut(c->reuse);
    if (script->catch_all != NULL && (outage = chaos_line_outage(script->catch_all, since_ns)) != NULL)
        return &outage->step;
    if (c->line == NULL)
        return chaos_step_plain(script->lines == 0 ? 200 : 404);
    if ((outage = chaos_line_outage(c->line, since_ns)) != NULL)
        return &outage->step;
    if (!request_admit(c))
        return chaos_step_plain(503);
    c->number = ++c->line->requests;
    return request_is_to_fail(c) ? &c->line->fail : chaos_line_next_step(c->line);
}

static void response_begin(struct chaos_connection *c, const struct chaos_step *step, enum chaos_result result)
{
    chaos_response_begin(&c->response, step, &c->request);
    c->result = result;
    c->record.seen.status = 0;
}

/* Responds to a malformed request with an error, and closes. */
static bool request_refuse(struct chaos_connection *c)
{
    response_begin(c, chaos_step_plain(c->request.error_status), CHAOS_RESULT_MALFORMED);
    c->request.body = CHAOS_BODY_BYTES; /* all further input is discarded */
    c->request.left = UINT64_MAX;
    c->state = SEND;
    return true;
}

/* RFC 9110 10.1.1: no 100 if the body has begun to arrive, or before a final status that does not need the body. */
static bool request_wants_continue(const struct chaos_connection *c, const struct chaos_step *step)
{
    return c->request.expects_continue && c->request.body != CHAOS_BODY_COMPLETE && c->wire.left == 0 &&
           !step->no_continue && (!step->early || step->early_bytes > 0);
}

/* Handles a head that is complete or malformed: opens its record and chooses the step. */
static bool request_on_head(struct chaos_connection *c, enum chaos_read read)
{
    size_t length = c->request.head_bytes > 0 ? c->request.head_bytes : c->wire.left;
    c->record.seen.on_connection++;
    chaos_journal_begin(&c->server->journal, &c->record, &c->request, (struct bide_text){c->wire.at, length});
    if (read == CHAOS_READ_BAD) {
        chaos_wire_consume(&c->wire, length);
        return request_refuse(c);
    }
    const struct chaos_step *step = request_choose_step(c);
    response_begin(c, step, step->garbage ? CHAOS_RESULT_GARBAGE : CHAOS_RESULT_ANSWERED);
    chaos_wire_consume(&c->wire, length);
    c->state = BODY;
    if (request_wants_continue(c, step))
        connection_send_interim(c, 100);
    return c->wire.fd >= 0;
}

static bool handle_head(struct chaos_connection *c)
{
    enum chaos_read read = CHAOS_READ_MORE;
    do {
        if (c->wire.left > 0)
            read = chaos_request_head(&c->request, c->wire.at, c->wire.left);
    } while (read == CHAOS_READ_MORE && connection_read(c));
    return read != CHAOS_READ_MORE && request_on_head(c, read);
}

static bool request_on_read(struct chaos_connection *c);

/* An early response is sent after exactly early_bytes of the body; the rest stays unread. */
static bool handle_body(struct chaos_connection *c)
{
    const struct chaos_step *step = c->response.step;
    bool early = step->early && c->request.body_bytes >= step->early_bytes;
    if (early || c->request.body == CHAOS_BODY_COMPLETE)
        return request_on_read(c);
    if (c->wire.left == 0 && !connection_read(c))
        return false;
    size_t most = c->wire.left, consumed = 0;
    if (step->early && most > step->early_bytes - c->request.body_bytes)
        most = (size_t)(step->early_bytes - c->request.body_bytes);
    enum chaos_read read = chaos_request_body(&c->request, (struct bide_text){c->wire.at, most}, &consumed);
    chaos_wire_consume(&c->wire, consumed);
    return read != CHAOS_READ_BAD || request_refuse(c);
}

/* ---- waiting ---- */

static void response_delay(struct chaos_connection *c)
{
    struct chaos_span span = c->response.step->delay;
    uint64_t width = (uint64_t)(span.max_ns - span.min_ns);
    int64_t ns = span.min_ns + (int64_t)core_bits_to_range(request_random(c, FOR_DELAY), width);
    c->state = DELAY;
    c->wake_ns = span.min_ns == BIDE_NEVER ? BIDE_NEVER : ns > 0 ? bide_now() + ns : 0;
    if (ns > 0)
        connection_set_timer(c, c->wake_ns);
}

static void request_serve(struct chaos_connection *c)
{
    c->line->serving++;
    c->admission = IN_SERVICE;
    c->state = SERVICE;
    c->wake_ns = bide_now() + c->line->service_ns;
    connection_set_timer(c, c->wake_ns);
}

static void request_enqueue(struct chaos_connection *c)
{
    *(c->line->last != NULL ? &c->line->last->queue_next : &c->line->first) = c;
    c->line->last = c;
    c->queue_next = NULL;
    c->admission = QUEUED;
    c->state = QUEUE;
}

static void request_dequeue(struct chaos_connection *c)
{
    struct chaos_connection *ahead = NULL, *at = c->line->first;
    for (; at != c; at = at->queue_next)
        ahead = at;
    *(ahead != NULL ? &ahead->queue_next : &c->line->first) = c->queue_next;
    if (c->line->last == c)
        c->line->last = ahead;
}

/* Releases the connection's place in the line's capacity; the first connection in the queue gets it. */
static void request_leave_line(struct chaos_connection *c)
{
    struct chaos_line *line = c->line;
    enum admission admission = c->admission;
    c->admission = NOT_ADMITTED;
    if (admission == NOT_ADMITTED)
        return;
    line->admitted--;
    if (admission == QUEUED)
        request_dequeue(c);
    if (admission != IN_SERVICE)
        return;
    line->serving--;
    struct chaos_connection *first = line->first;
    if (first != NULL) {
        request_dequeue(first);
        request_serve(first);
    }
}

/* Continues when the request was read as far as the step wants: sends interim responses, then cuts, queues, serves or
 * delays. */
static bool request_on_read(struct chaos_connection *c)
{
    const struct chaos_step *step = c->response.step;
    for (size_t i = 0; i < CHAOS_INTERIM_MAX && step->interim[i] != 0 && c->wire.fd >= 0; i++)
        connection_send_interim(c, step->interim[i]);
    if (c->wire.fd < 0)
        return false;
    if (step->cut != CHAOS_CUT_NONE && step->cut_at == CHAOS_AT_REQUEST)
        c->state = CUT;
    else if (c->admission == NOT_ADMITTED)
        response_delay(c);
    else if (c->line->serving < c->line->capacity)
        request_serve(c);
    else
        request_enqueue(c);
    return c->wire.fd >= 0;
}

static bool handle_service(struct chaos_connection *c)
{
    if (bide_now() < c->wake_ns)
        return false;
    request_leave_line(c);
    response_delay(c);
    return c->wire.fd >= 0;
}

/* `delay=never` ends when the client closes its side. With any other delay, a client that closed its sending side still
 * gets its response. */
static bool handle_delay(struct chaos_connection *c)
{
    if (c->wake_ns == BIDE_NEVER && c->wire.hung_up)
        return connection_client_left(c);
    if (c->wake_ns > 0 && bide_now() < c->wake_ns)
        return false;
    c->wake_ns = 0;
    c->state = SEND;
    return true;
}

/* ---- sending a response ---- */

/* Continues when the response was sent as far as the step wants: cuts or closes, or prepares for the next request. */
static bool response_on_sent(struct chaos_connection *c)
{
    const struct chaos_step *step = c->response.step;
    c->wake_ns = 0;
    if (step->cut != CHAOS_CUT_NONE) {
        c->state = CUT;
        return true;
    }
    if (c->response.close)
        return connection_finish(c, c->result);
    record_close(c, c->result);
    c->reuse = step->reuse;
    if (step->half_close)
        shutdown(c->wire.fd, SHUT_WR);
    c->state = step->half_close ? HALF_CLOSED : c->request.body != CHAOS_BODY_COMPLETE ? DRAIN : HEAD;
    if (c->state == HEAD)
        c->request = (struct chaos_request){0};
    return true;
}

static bool response_drip(struct chaos_connection *c)
{
    int64_t now_ns = bide_now();
    if (now_ns < c->wake_ns || !connection_send(c, c->response.step->drip_bytes))
        return false;
    c->wake_ns = now_ns + c->response.step->drip_ns;
    connection_set_timer(c, c->wake_ns);
    return false;
}

static bool handle_send(struct chaos_connection *c)
{
    if (connection_yield_turn(c))
        return false;
    if (c->wire.out_left == 0) {
        size_t length = chaos_response_next(&c->response, c->server->out, bide_wall_s());
        if (length == 0)
            return response_on_sent(c);
        chaos_wire_set_output(&c->wire, c->server->out, length);
        if (!c->response.step->garbage)
            c->record.seen.status = c->response.status;
    }
    if (c->response.step->drip_bytes > 0)
        return response_drip(c);
    if (!connection_send(c, SIZE_MAX))
        return false;
    return c->response.part != CHAOS_PART_OVER || response_on_sent(c);
}

/* Waits until everything before the cut was sent: RST would discard unsent output. */
static bool handle_cut(struct chaos_connection *c)
{
    const struct chaos_step *step = c->response.step;
    bool whole = step->cut_at != CHAOS_AT_REQUEST && !c->response.cut_short;
    bool resets = step->cut == CHAOS_CUT_RESET;
    if (resets && chaos_wire_unsent(&c->wire) > 0) {
        connection_set_timer(c, bide_now() + UNSENT_POLL_NS);
        return false;
    }
    if (!resets)
        return connection_finish(c, whole ? c->result : CHAOS_RESULT_CLOSED);
    connection_reset(c, whole ? c->result : CHAOS_RESULT_RESET);
    return false;
}

/* Reads the rest of a body after an early response. */
static bool handle_drain(struct chaos_connection *c)
{
    size_t consumed = 0;
    if (c->wire.left == 0 && !connection_read(c))
        return false;
    if (chaos_request_body(&c->request, (struct bide_text){c->wire.at, c->wire.left}, &consumed) == CHAOS_READ_BAD)
        return connection_finish(c, CHAOS_RESULT_MALFORMED);
    chaos_wire_consume(&c->wire, consumed);
    if (c->request.body == CHAOS_BODY_COMPLETE) {
        c->request = (struct chaos_request){0};
        c->state = HEAD;
    }
    return true;
}

static bool handle_discard(struct chaos_connection *c)
{
    chaos_wire_consume(&c->wire, c->wire.left);
    return connection_read(c);
}

static bool handle_queue(struct chaos_connection *c)
{
    (void)c;
    return false;
}

/* ---- events ---- */

static bool (*const state_handlers[])(struct chaos_connection *c) = {
    [HEAD] = handle_head,           [BODY] = handle_body,      [QUEUE] = handle_queue, [SERVICE] = handle_service,
    [DELAY] = handle_delay,         [SEND] = handle_send,      [CUT] = handle_cut,     [DRAIN] = handle_drain,
    [HALF_CLOSED] = handle_discard, [LINGER] = handle_discard,
};

static void connection_run(struct chaos_connection *c)
{
    c->wire.turn_bytes = 0;
    while (c->wire.fd >= 0 && state_handlers[c->state](c))
        continue;
    if (c->wire.fd >= 0 && !chaos_wire_end_turn(&c->wire))
        connection_close(c, CHAOS_RESULT_LEFT);
}

void chaos_connection_event(struct chaos_connection *c, uint32_t events)
{
    if (c->wire.fd < 0)
        return;
    if ((events & (EPOLLHUP | EPOLLERR)) != 0 && c->state != HEAD && c->state != BODY) {
        connection_client_left(c);
        return;
    }
    c->wire.hung_up |= (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
    c->wire.readable |= (events & EPOLLIN) != 0 || c->wire.hung_up;
    connection_run(c);
}

/* Returns true if the client neither sent nor read anything for idle_ns. Time in which the server made the client wait
 * does not count. */
static bool connection_is_idle(const struct chaos_connection *c, int64_t now_ns)
{
    int64_t since_ns = c->wake_ns > c->active_ns ? c->wake_ns : c->active_ns;
    if (c->state == LINGER)
        return now_ns >= c->wake_ns;
    return c->state != QUEUE && since_ns != BIDE_NEVER && now_ns - since_ns >= c->server->idle_ns;
}

/* A client that does not read would never receive a FIN: use RST. */
static void connection_cut_idle(struct chaos_connection *c)
{
    if (c->state == SEND || c->state == CUT)
        connection_reset(c, CHAOS_RESULT_LEFT);
    else
        connection_client_left(c);
}

/* Runs the connection before it checks for idleness: if the server is late, the client is not to blame. */
void chaos_connection_timer(struct bide_timer *timer)
{
    struct chaos_connection *c = (struct chaos_connection *)(void *)timer;
    connection_run(c);
    int64_t now_ns = bide_now();
    if (c->wire.fd < 0)
        return;
    if (connection_is_idle(c, now_ns))
        connection_cut_idle(c);
    else if (timer->place == 0 && c->wake_ns != BIDE_NEVER)
        connection_set_timer(c, c->wake_ns > now_ns ? c->wake_ns : now_ns + c->server->idle_ns);
}

/* ---- opening a connection ---- */

/* A step of the line `*` may cut connections on accept: the next connection takes it. */
static bool connection_cut_at_accept(struct chaos_connection *c)
{
    struct chaos_line *all = c->server->script.catch_all;
    if (all == NULL || all->step[all->step_index].cut == CHAOS_CUT_NONE ||
        all->step[all->step_index].cut_at != CHAOS_AT_ACCEPT)
        return false;
    bool resets = chaos_line_next_step(all)->cut == CHAOS_CUT_RESET;
    chaos_journal_begin(&c->server->journal, &c->record, &c->request, (struct bide_text){"", 0});
    if (resets)
        connection_reset(c, CHAOS_RESULT_RESET);
    else
        connection_close(c, CHAOS_RESULT_CLOSED);
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
    if (connection_cut_at_accept(c))
        return;
    connection_set_timer(c, c->active_ns + server->idle_ns);
    if (c->wire.fd >= 0 && epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, fd, &watch) != 0)
        connection_close(c, CHAOS_RESULT_LEFT);
}

void chaos_connections_close_all(struct chaos *server)
{
    while (server->live != NULL)
        connection_close(server->live, CHAOS_RESULT_UNFINISHED);
}

void chaos_connections_free_closed(struct chaos *server)
{
    while (server->closed != NULL) {
        struct chaos_connection *c = server->closed;
        server->closed = c->next;
        chaos_wire_free(&c->wire);
        free(c);
    }
}
