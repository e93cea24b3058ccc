/* exchange.c - one attempt on one easy handle: libcurl's callbacks gather evidence here, and judge.
 *
 * Three callbacks see everything. PREREQ comes each time libcurl is about to send a request, and is the guard against
 * its silent replay: libcurl sends a request again by itself, a POST included, when a reused connection dies before a
 * byte of the answer, or when a stream was refused. Then, and only then, it asks a second time although nothing answered
 * the request before.
 *
 * HEADER sees the answer's head line by line (and no proxy's answer to CONNECT); its end is where failures are judged. WRITE sees the body, and what becomes
 * of it depends on the judgement (enum http_mode). It is set only if the options have a sink. */
#include "exchange.h"

#include <bide/clock.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define CUT_TRANSFER  0 /* from a write or header callback: a short count ends the transfer */
#define DRAIN_MOST_NS BIDE_S
#define DRAIN_LEAST   (100 * BIDE_MS)

/* ---- judgement ---- */

static void judge(struct http_exchange *x, const struct bide_outcome *outcome, int64_t now_ns)
{
    struct http_transfer *t = x->transfer;
    struct bide_outcome o = *outcome; /* the hook or the listener may look at what we hold */
    x->judged = true;
    x->outcome = o;
    if (t->over)
        return; /* another attempt won in the same moment */
    http_transfer_record(t, x, &o, now_ns);
    http_transfer_obey(t, bide_call_outcome(&t->call, x->start.attempt, &o, now_ns), &o, now_ns);
}

/* A hedge's answer that comes after another won. */
static bool lost(const struct http_exchange *x)
{
    return x->transfer->winner && x->transfer->winner != x;
}

static bool deliver(struct http_exchange *x, const char *at, size_t length)
{
    size_t taken = http_deliver(x->transfer, at, length);
    x->paused = taken == CURL_WRITEFUNC_PAUSE;
    x->sink_failed = taken != length && !x->paused;
    return !x->sink_failed;
}

/* From now on the body goes to the sink, beginning with what was held back. */
static bool pass(struct http_exchange *x)
{
    size_t held = x->body.length;
    x->mode = HTTP_PASS;
    x->transfer->winner = x;
    x->body.length = 0;
    x->sink_failed = !http_show_head(x->transfer, &x->head) || (held > 0 && !deliver(x, x->body.at, held));
    x->sink_failed = x->sink_failed || x->paused; /* what was held back cannot be held back again */
    return !x->sink_failed;
}

/* Is the rest of a body that will be thrown away worth reading, so that the connection lives? Not if it is long, and not
 * if libcurl would have to decompress it. Without a sink the owner's own function would get it. */
static bool worth_reading(const struct http_exchange *x)
{
    curl_off_t length = -1;
    curl_easy_getinfo(x->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    if (x->head_only || length == 0)
        return true;
    return x->transfer->sink && length <= (curl_off_t)BIDE_HTTP_KEEP_MAX && !http_field(x->easy, "Content-Encoding").at;
}

/* The attempt is over, and what is left of its body must not hold up the next one for long. */
static void hurry(const struct http_exchange *x, int64_t now_ns)
{
    int64_t left_ns = x->transfer->verdict.wake_ns - now_ns;
    left_ns = left_ns < DRAIN_LEAST ? DRAIN_LEAST : left_ns < DRAIN_MOST_NS ? left_ns : DRAIN_MOST_NS;
    int64_t by_ns = now_ns + left_ns < x->start.attempt_deadline_ns ? now_ns + left_ns : x->start.attempt_deadline_ns;
    curl_easy_setopt(x->easy, CURLOPT_TIMEOUT_MS, (long)((by_ns - x->start_ns) / BIDE_MS + 1));
}

/* There will be another attempt, or another one runs: what becomes of this one's body? False: cut it. */
static bool set_aside(struct http_exchange *x, enum http_mode mode, int64_t now_ns)
{
    x->mode = mode;
    if (mode == HTTP_KEEP)
        x->transfer->keeper = x;
    if (!worth_reading(x))
        return false;
    hurry(x, now_ns);
    return true;
}

/* A failure was judged. False: the transfer ends here. */
static bool follow(struct http_exchange *x, int64_t now_ns)
{
    struct http_transfer *t = x->transfer;
    if (lost(x))
        return false;
    switch (t->verdict.what) {
    case BIDE_WAIT: return set_aside(x, HTTP_KEEP, now_ns);
    case BIDE_NONE:
    case BIDE_START: return set_aside(x, HTTP_DROP, now_ns);
    case BIDE_DONE:
    case BIDE_GIVE_UP: break;
    }
    if (t->delivered == 0)
        return pass(x);
    t->dropped = true; /* it would follow part of another answer */
    return set_aside(x, HTTP_DROP, now_ns);
}

static bool judge_and_follow(struct http_exchange *x, const struct bide_outcome *outcome)
{
    int64_t now_ns = bide_now();
    x->answered = true;
    judge(x, outcome, now_ns);
    return follow(x, now_ns);
}

/* ---- the head ---- */

/* What libcurl may answer by itself, with another leg: redirects, authentication, Expect. Judged when a byte of the body
 * arrives, which it does not if libcurl goes on. */
static bool libcurl_may_answer(const struct http_exchange *x)
{
    return x->status < 400 ? x->status >= 300 : x->status == 401 || x->status == 407 || x->status == 417;
}

static bool may_refresh(const struct http_exchange *x)
{
    const struct http_transfer *t = x->transfer;
    return x->status == 401 && t->options->refresh && !t->refreshed && !http_body_spent(x);
}

/* The sink has the beginning of the body, and this answer was asked for the rest. */
static bool continues(struct http_exchange *x)
{
    struct http_transfer *t = x->transfer;
    if (http_resume_fits(x)) {
        t->resumed = true;
        return pass(x);
    }
    if (x->status == 200 && t->options->rewind && t->options->rewind(t->options->write_data)) {
        t->delivered = 0; /* it changed: all of it, from the start */
        free(t->resume);
        t->resume = NULL;
        return pass(x);
    }
    static const struct bide_outcome changed = {.kind = BIDE_KIND_TRANSIENT, .reach = BIDE_REACH_BODY_DELIVERED};
    return judge_and_follow(x, &changed);
}

/* A server may answer before it has the whole body. libcurl (7.88) then takes the transfer for complete, stops sending
 * and keeps the connection; the server takes what comes next for the rest of the body. That connection must not be used
 * again. (After a failure libcurl closes it. HTTP/2 ends a stream of its own.) */
static void distrust_early_answer(struct http_exchange *x)
{
    x->forbidden = !http_body_sent(x);
    if (x->forbidden)
        curl_easy_setopt(x->easy, CURLOPT_FORBID_REUSE, 1L);
}

static bool success(struct http_exchange *x)
{
    if (lost(x))
        return false;
    if (!x->bodiless && x->version_1)
        distrust_early_answer(x);
    if (x->transfer->delivered > 0)
        return continues(x);
    if (http_wants_body(x)) {
        x->mode = HTTP_HOLD;
        return true;
    }
    return pass(x);
}

/* A success that nobody wants to look at. */
static bool is_plain(const struct http_exchange *x)
{
    const struct bide_http_options *o = x->transfer->options;
    return x->status < 300 && !o->classify && !o->status_rules;
}

/* What the head says is known. False: cut the transfer. */
static bool decide(struct http_exchange *x)
{
    if (is_plain(x))
        x->outcome.kind = BIDE_KIND_OK;
    else
        x->outcome = http_status_outcome(x);
    if (x->outcome.kind == BIDE_KIND_OK)
        return success(x);
    if (may_refresh(x)) {
        x->wants_refresh = true;
        x->mode = HTTP_HOLD;
        return x->transfer->sink || worth_reading(x);
    }
    if (http_wants_body(x)) {
        x->mode = HTTP_HOLD;
        return true;
    }
    return judge_and_follow(x, &x->outcome);
}

static bool head_ended(struct http_exchange *x)
{
    if (x->status < 200 || x->judged || x->mode != HTTP_UNDECIDED)
        return true;
    x->answerable = libcurl_may_answer(x);
    if (x->answerable && !(x->status == 401 && !x->transfer->sink && may_refresh(x)))
        return true;
    return decide(x);
}

static bool is_status_line(const char *line, size_t length)
{
    return length > 5 && memcmp(line, "HTTP/", 5) == 0;
}

/* "HTTP/1.1 503 Service Unavailable", where a head may begin. (After the body come trailers.) */
static void status_line(struct http_exchange *x, const char *line, size_t length)
{
    const char *end = line + length, *at = memchr(line, ' ', length);
    at = at ? at + 1 : end;
    for (x->status = 0; at < end && *at >= '0' && *at <= '9' && x->status < 100; at++)
        x->status = x->status * 10 + (*at - '0');
    x->head.length = 0;
    x->in_head = true;
    x->version_1 = line[5] == '1';
}

static bool within_bounds(const struct http_exchange *x)
{
    return x->head_bytes <= BIDE_HTTP_HEAD_MAX && x->head_lines <= BIDE_HTTP_LINES_MAX;
}

/* The owner's header function sees what libcurl would show it; heads of failures when they are final. */
static bool show_line(struct http_exchange *x, char *line, size_t length)
{
    const struct bide_http_options *o = x->transfer->options;
    if (x->status >= 400 && x->mode != HTTP_PASS)
        return http_buffer_add(&x->head, line, length);
    x->sink_failed = o->header(line, 1, length, o->header_data) != length;
    return !x->sink_failed;
}

/* A line that begins or ends a head, or that somebody wants to see. False: cut the transfer. */
static __attribute__((noinline)) bool take_line(struct http_exchange *x, char *line, size_t length)
{
    bool blank = line[0] == '\r' || line[0] == '\n';
    if (!x->in_head && x->mode == HTTP_UNDECIDED && is_status_line(line, length))
        status_line(x, line, length);
    x->oversize = !within_bounds(x);
    x->in_head = x->in_head && !blank;
    if (x->oversize || (x->transfer->options->header && !show_line(x, line, length)))
        return false;
    return !blank || head_ended(x);
}

/* Most lines of most answers are of no interest, and only counted. */
static size_t on_header(char *line, size_t size, size_t count, void *context)
{
    struct http_exchange *x = context;
    x->head_bytes += size * count;
    x->head_lines++;
    if (x->in_head && line[0] > '\r' && !x->transfer->options->header && within_bounds(x))
        return size * count;
    if (take_line(x, line, size * count))
        return size * count;
    x->cut = true;
    return CUT_TRANSFER;
}

/* ---- the body ---- */

/* What was held back is whole, or as much of it as we hold. False: cut the transfer. */
static bool decide_held(struct http_exchange *x, bool whole)
{
    x->outcome = http_body_outcome(x, whole);
    if (x->outcome.kind == BIDE_KIND_OK)
        return lost(x) ? false : pass(x);
    return judge_and_follow(x, &x->outcome);
}

static size_t hold_most(const struct http_exchange *x)
{
    return x->outcome.kind == BIDE_KIND_OK ? x->transfer->options->hold_max : BIDE_HTTP_KEEP_MAX;
}

static bool store(struct http_exchange *x, const char *at, size_t length, size_t most)
{
    return x->body.length <= most && length <= most - x->body.length && http_buffer_add(&x->body, at, length);
}

/* With CURLOPT_HEADER the head goes to the write function too, a moment before the header function sees it. */
static bool is_head(const struct http_exchange *x, const char *at, size_t length)
{
    return x->in_head || (x->status < 200 && is_status_line(at, length));
}

/* One piece of the body. False: cut the transfer. */
static bool take(struct http_exchange *x, const char *at, size_t length)
{
    switch (x->mode) {
    case HTTP_UNDECIDED:
        if (is_head(x, at, length))
            return store(x, at, length, BIDE_HTTP_KEEP_MAX);
        return decide(x) && take(x, at, length); /* decide leaves this mode */
    case HTTP_PASS: return deliver(x, at, length);
    case HTTP_HOLD:
        if (store(x, at, length, hold_most(x)))
            return true;
        x->wants_refresh = false; /* too long to wait for its end */
        return decide_held(x, false) && take(x, at, length);
    case HTTP_KEEP: return store(x, at, length, BIDE_HTTP_KEEP_MAX);
    case HTTP_DROP: x->drained_bytes += length; return x->drained_bytes <= BIDE_HTTP_KEEP_MAX;
    }
    return false;
}

static size_t on_body(char *at, size_t size, size_t count, void *context)
{
    struct http_exchange *x = context;
    x->paused = false;
    if (!lost(x) && take(x, at, size * count))
        return x->paused ? CURL_WRITEFUNC_PAUSE : size * count;
    x->cut = true;
    return CUT_TRANSFER;
}

/* ---- before a request is sent ---- */

static bool is(const char *method, const char *name)
{
    return strcmp(method, name) == 0;
}

/* The method is known. False: the policy wants a key. (Safe is what the engine was told at the beginning.) */
static bool learn_safety(struct http_exchange *x, const char *method)
{
    struct http_transfer *t = x->transfer;
    if (t->safety_known)
        return true;
    t->safety_known = true;
    enum bide_safety safety = x->get ? BIDE_SAFE : bide_method_safety(method, strlen(method));
    struct bide_verdict v = {0};
    if (safety != BIDE_SAFE)
        v = bide_call_safety(&t->call, safety, x->start_ns);
    if (v.what == BIDE_GIVE_UP) {
        x->judged = true;
        http_transfer_obey(t, v, NULL, bide_now());
        return false;
    }
    return true;
}

static void note_method(struct http_exchange *x, const char *method)
{
    x->get = is(method, "GET");
    x->head_only = !x->get && is(method, "HEAD");
    x->bodiless = x->get || x->head_only || is(method, "OPTIONS") || is(method, "DELETE") || is(method, "TRACE");
}

/* Has the server closed this connection while it lay idle? Newer versions of libcurl do not look each time, and rely on
 * their replay. Here a request that may not be repeated would be lost, though not a byte of it was sent. */
static bool is_dead(CURL *easy)
{
    curl_socket_t fd = CURL_SOCKET_BAD;
    char byte;
    if (curl_easy_getinfo(easy, CURLINFO_ACTIVESOCKET, &fd) != CURLE_OK || fd == CURL_SOCKET_BAD)
        return false;
    ssize_t n = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

/* libcurl's idea of the method: only now, before a redirect may change it, is it the request's own. */
static bool first_leg(struct http_exchange *x)
{
    const char *method = NULL;
    if (curl_easy_getinfo(x->easy, CURLINFO_EFFECTIVE_METHOD, &method) != CURLE_OK || !method)
        method = "";
    note_method(x, method);
    http_inject_first_leg(x);
    if (x->transfer->poke)
        x->transfer->poke(x->transfer);
    if (!learn_safety(x, method))
        return false;
    x->stale = x->transfer->call.safety == BIDE_UNSAFE && is_dead(x->easy);
    return !x->stale;
}

/* Nothing answered the last leg, and libcurl is about to send it again. Either it used a connection that was there
 * before, and that died: it may have run. Or it had made the connection itself (so this is the second new one), and then
 * only a refused stream makes it try again; but where others may share the connection, that is not certain. */
static void note_replay(struct http_exchange *x)
{
    long connects = 0;
    curl_easy_getinfo(x->easy, CURLINFO_NUM_CONNECTS, &connects);
    x->replayed = true;
    x->refused = x->transfer->alone && x->legs == 1 && connects > 1;
}

/* What the leg before was told is libcurl's affair: it goes on, so nothing of that answer was passed on. */
static void begin_leg(struct http_exchange *x)
{
    if (x->transfer->winner == x && x->transfer->delivered == 0)
        x->transfer->winner = NULL;
    if (!x->judged)
        x->mode = HTTP_UNDECIDED;
    x->wants_refresh = x->answerable = x->in_head = false;
    x->head.length = x->body.length = 0;
    x->head_bytes = x->head_lines = 0; /* interim heads count as one with what follows */
    x->status = 0;
}

static int on_prereq(void *context, char *ip, char *local_ip, int port, int local_port)
{
    struct http_exchange *x = context;
    const struct bide_http_options *o = x->transfer->options;
    if (x->legs > 0 && x->status < 200) {
        note_replay(x);
        return CURL_PREREQFUNC_ABORT;
    }
    begin_leg(x);
    bool may = x->legs++ == 0 ? first_leg(x) : http_inject_leg(x);
    if (!may || lost(x) || x->judged)
        return CURL_PREREQFUNC_ABORT;
    return o->prereq ? o->prereq(o->prereq_data, ip, local_ip, port, local_port) : CURL_PREREQFUNC_OK;
}

static int on_progress(void *context, curl_off_t total, curl_off_t now, curl_off_t up_total, curl_off_t up_now)
{
    struct http_exchange *x = context;
    const struct bide_http_options *o = x->transfer->options;
    if (bide_cancelled(o->cancel))
        return 1;
    return o->progress ? o->progress(o->progress_data, total, now, up_total, up_now) : 0;
}

/* ---- the handle ---- */

/* A libcurl too old to know an option says so, and then nothing is performed: the guard is not optional. */
static CURLcode own_callbacks(struct http_exchange *x)
{
    CURL *h = x->easy;
    CURLcode code = curl_easy_setopt(h, CURLOPT_PREREQFUNCTION, on_prereq);
    if (code != CURLE_OK)
        return code;
    curl_easy_setopt(h, CURLOPT_PREREQDATA, x);
    curl_easy_setopt(h, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(h, CURLOPT_HEADERDATA, x);
    curl_easy_setopt(h, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    if (x->transfer->sink) {
        curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, on_body);
        curl_easy_setopt(h, CURLOPT_WRITEDATA, x);
    }
    if (x->transfer->options->cancel || x->transfer->options->progress) {
        curl_easy_setopt(h, CURLOPT_XFERINFOFUNCTION, on_progress);
        curl_easy_setopt(h, CURLOPT_XFERINFODATA, x);
        curl_easy_setopt(h, CURLOPT_NOPROGRESS, 0L);
    }
    return CURLE_OK;
}

CURLcode http_exchange_own(struct http_exchange *x)
{
    CURLcode code = own_callbacks(x);
    if (code == CURLE_OK)
        code = http_body_own(x);
    return code == CURLE_OK ? http_inject_own(x) : code;
}

void http_exchange_disown(struct http_exchange *x)
{
    const struct bide_http_options *o = x->transfer->options;
    CURL *h = x->easy;
    curl_easy_setopt(h, CURLOPT_PREREQFUNCTION, o->prereq);
    if (o->prereq)
        curl_easy_setopt(h, CURLOPT_PREREQDATA, o->prereq_data);
    curl_easy_setopt(h, CURLOPT_HEADERFUNCTION, o->header);
    curl_easy_setopt(h, CURLOPT_HEADERDATA, o->header_data);
    curl_easy_setopt(h, CURLOPT_SUPPRESS_CONNECT_HEADERS, 0L);
    curl_easy_setopt(h, CURLOPT_TIMEOUT_MS, 0L);
    curl_easy_setopt(h, CURLOPT_CONNECTTIMEOUT_MS, 0L);
    if (x->transfer->sink) {
        curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, o->write);
        curl_easy_setopt(h, CURLOPT_WRITEDATA, o->write_data);
    }
    if (o->cancel || o->progress) {
        curl_easy_setopt(h, CURLOPT_XFERINFOFUNCTION, o->progress);
        curl_easy_setopt(h, CURLOPT_XFERINFODATA, o->progress_data);
        curl_easy_setopt(h, CURLOPT_NOPROGRESS, o->progress ? 0L : 1L);
    }
    if (x->fresh)
        curl_easy_setopt(h, CURLOPT_FRESH_CONNECT, 0L);
    if (x->forbidden)
        curl_easy_setopt(h, CURLOPT_FORBID_REUSE, 0L);
    http_body_disown(x);
    http_inject_disown(x);
}

/* ---- start and end ---- */

/* Whole milliseconds until then, at least one; 0, which is libcurl's "none", for never. */
static long milliseconds_until(int64_t instant_ns, int64_t now_ns)
{
    const int64_t most_ns = INT32_MAX * BIDE_MS;
    if (instant_ns == BIDE_NEVER)
        return 0;
    int64_t left_ns = instant_ns - now_ns;
    return left_ns <= BIDE_MS ? 1 : (long)((left_ns < most_ns ? left_ns : most_ns) / BIDE_MS);
}

static void reset(struct http_exchange *x, int64_t now_ns)
{
    x->head.length = 0;
    x->body.length = 0;
    x->outcome = (struct bide_outcome){0};
    x->head_lines = 0;
    x->head_bytes = 0;
    x->drained_bytes = 0;
    x->start_ns = now_ns;
    x->status = 0;
    x->mode = HTTP_UNDECIDED;
    x->legs = 0;
    x->stale = x->paused = x->in_head = x->answerable = x->refused = x->replayed = x->bodiless = x->get = x->head_only =
        x->strayed = false;
    x->answered = x->judged = x->cut = x->oversize = x->sink_failed = x->wants_refresh = false;
}

/* What the sink has must go, or be continued. */
static bool ready_sink(struct http_transfer *t)
{
    if (t->delivered == 0 || t->resume)
        return true;
    if (!t->options->rewind || !t->options->rewind(t->options->write_data))
        return false;
    t->delivered = 0;
    return true;
}

/* A new connection, where the last answer asked for one. For this attempt only. */
static void choose_connection(struct http_exchange *x)
{
    if (x->forbidden)
        curl_easy_setopt(x->easy, CURLOPT_FORBID_REUSE, 0L);
    x->forbidden = false;
    if (x->transfer->fresh != x->fresh)
        curl_easy_setopt(x->easy, CURLOPT_FRESH_CONNECT, x->transfer->fresh ? 1L : 0L);
    x->fresh = x->transfer->fresh;
    x->transfer->fresh = false;
}

static CURLcode prepare(struct http_exchange *x, int64_t now_ns)
{
    if (!ready_sink(x->transfer))
        return CURLE_WRITE_ERROR;
    if (!http_body_rewind(x))
        return CURLE_SEND_FAIL_REWIND;
    choose_connection(x);
    curl_easy_setopt(x->easy, CURLOPT_TIMEOUT_MS, milliseconds_until(x->start.attempt_deadline_ns, now_ns));
    curl_easy_setopt(x->easy, CURLOPT_CONNECTTIMEOUT_MS, milliseconds_until(x->start.connect_deadline_ns, now_ns));
    return http_inject_attempt(x, &x->start, now_ns);
}

/* It could not even be prepared. What was kept of the attempt before stays. */
static CURLcode refuse(struct http_exchange *x, CURLcode code, int64_t now_ns)
{
    static const struct bide_outcome unsent = {.kind = BIDE_KIND_CANCELLED, .reach = BIDE_REACH_NEVER_SENT};
    struct http_transfer *t = x->transfer;
    t->code = code;
    x->judged = true;
    http_transfer_obey(t, bide_call_outcome(&t->call, x->start.attempt, &unsent, now_ns), &unsent, now_ns);
    return code;
}

static void tell_delay(const struct http_exchange *x, int64_t now_ns)
{
    const struct http_transfer *t = x->transfer;
    if (t->result && x->start.attempt <= BIDE_HTTP_ATTEMPTS_TOLD)
        t->result->attempt[x->start.attempt - 1] =
            (struct bide_http_attempt){.delay_ns = t->ended_ns > 0 ? now_ns - t->ended_ns : 0};
}

CURLcode http_exchange_start(struct http_exchange *x, const struct bide_verdict *v, int64_t now_ns)
{
    struct http_transfer *t = x->transfer;
    x->start = *v;
    CURLcode code = prepare(x, now_ns);
    if (code != CURLE_OK)
        return refuse(x, code, now_ns);
    tell_delay(x, now_ns);
    reset(x, now_ns);
    t->attempts++;
    t->keeper = NULL;
    t->winner = NULL; /* nobody starts beside an answer that goes to the sink already */
    return CURLE_OK;
}

CURLcode http_exchange_again(struct http_exchange *x, int64_t now_ns)
{
    int64_t start_ns = x->start_ns;
    CURLcode code = prepare(x, now_ns);
    if (code != CURLE_OK)
        return refuse(x, code, now_ns);
    reset(x, start_ns);
    return CURLE_OK;
}

static void keep_code(struct http_exchange *x, CURLcode code)
{
    struct http_transfer *t = x->transfer;
    bool ours = x->cut && !x->sink_failed && !x->oversize;
    if (lost(x))
        return;
    bool aside = x->answered && x->mode != HTTP_PASS && code != CURLE_HTTP_RETURNED_ERROR; /* that is FAILONERROR's */
    t->code = ours || aside ? CURLE_OK : code;
    if (t->result && x->start.attempt <= BIDE_HTTP_ATTEMPTS_TOLD)
        t->result->attempt[x->start.attempt - 1].code = t->code;
    if (x->mode == HTTP_KEEP && code != CURLE_OK)
        x->cut = true; /* what was kept is not whole */
}

/* Where a callback of ours ended the transfer, libcurl's code tells of the callback, not of the reason. */
static CURLcode name(const struct http_exchange *x, CURLcode code)
{
    if (x->stale)
        return CURLE_SEND_ERROR;
    if (x->replayed)
        return x->refused ? CURLE_HTTP2_STREAM : CURLE_GOT_NOTHING;
    if (x->oversize)
        return CURLE_WEIRD_SERVER_REPLY;
    return x->sink_failed ? CURLE_WRITE_ERROR : code;
}

/* Everything that was not judged on the way is judged now. */
static void conclude(struct http_exchange *x, CURLcode code, int64_t now_ns)
{
    bool answered = code == CURLE_OK || x->cut || x->status >= 400; /* a failure stays one, though its body broke */
    if (!x->judged && answered && x->mode == HTTP_HOLD)
        (void)decide_held(x, code == CURLE_OK);
    code = name(x, code);
    if (code == CURLE_OK && !x->judged && !http_resume_is_whole(x->transfer))
        code = CURLE_PARTIAL_FILE;
    if (x->status < 200)
        x->status = 0; /* interim answers are none */
    if (!x->judged) {
        struct bide_outcome fine = {.kind = BIDE_KIND_OK, .reach = BIDE_REACH_ANSWERED};
        struct bide_outcome o = code == CURLE_OK ? fine : http_failure_outcome(x, code);
        judge(x, &o, now_ns);
    }
    keep_code(x, code);
}

void http_exchange_end(struct http_exchange *x, CURLcode code, int64_t now_ns)
{
    if (lost(x) && !x->judged) {
        http_exchange_abandon(x, now_ns);
        return;
    }
    bool answered = code == CURLE_OK || (x->answerable && x->status >= 400);
    if (!x->judged && answered && x->mode == HTTP_UNDECIDED && x->status > 0)
        (void)decide(x); /* no body came: its end is the end of the head */
    x->wants_refresh = x->wants_refresh && !x->judged && (code == CURLE_OK || x->cut);
    x->ended = code;
    if (!x->wants_refresh)
        conclude(x, code, now_ns);
}

void http_exchange_settle(struct http_exchange *x, int64_t now_ns)
{
    x->wants_refresh = false;
    x->transfer->dropped = x->cut;
    conclude(x, x->ended, now_ns);
}

void http_exchange_abandon(struct http_exchange *x, int64_t now_ns)
{
    x->cut = true;
    judge(x, &(struct bide_outcome){.kind = BIDE_KIND_CANCELLED, .reach = BIDE_REACH_MAYBE_RAN}, now_ns);
}

void http_exchange_free(struct http_exchange *x)
{
    http_buffer_free(&x->head);
    http_buffer_free(&x->body);
}
