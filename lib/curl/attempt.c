/* attempt.c - one attempt on one easy handle: at libcurl's callbacks, before its start and after its end.
 *
 * PREREQ comes each time libcurl is about to send a request, and is the guard against its silent replay: libcurl
 * sends a request again by itself, a POST included, when a reused connection dies before a byte of the answer, or
 * when a stream was refused. Then, and only then, it asks a second time although nothing answered the leg before.
 *
 * HEADER sees the answer's head line by line (and no proxy's answer to CONNECT), WRITE the body; WRITE is set only
 * if the options have a sink. What they see goes to answer.c. */
#include "attempt.h"

#include <bide/clock.h>

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#define CUT_TRANSFER 0 /* from a write or header callback: a short count ends the transfer */

/* ---- the answer comes ---- */

static size_t stop_here(struct http_exchange *x)
{
    if (x->run.stop == HTTP_RAN)
        x->run.stop = HTTP_CUT;
    return CUT_TRANSFER;
}

/* Most lines of most answers are of no interest, and only counted. */
static size_t on_header(char *line, size_t size, size_t count, void *context)
{
    struct http_exchange *x = context;
    struct http_answer *a = &x->answer;
    size_t length = size * count;
    a->head_bytes += length;
    a->head_lines++;
    bool dull = a->in_head && line[0] > '\r' && !x->transfer->options->header;
    if (dull && a->head_bytes <= BIDE_CURL_HEAD_MAX && a->head_lines <= BIDE_CURL_LINES_MAX)
        return length;
    return http_answer_line(x, line, length) ? length : stop_here(x);
}

static size_t on_body(char *at, size_t size, size_t count, void *context)
{
    struct http_exchange *x = context;
    x->answer.paused = false;
    if (http_answer_lost(x) || !http_answer_piece(x, at, size * count))
        return stop_here(x);
    return x->answer.paused ? CURL_WRITEFUNC_PAUSE : size * count;
}

/* ---- before a request is sent ---- */

static bool is(const char *method, const char *name)
{
    return strcmp(method, name) == 0;
}

static void note_method(struct http_run *run, const char *method)
{
    run->get = is(method, "GET");
    run->head_only = !run->get && is(method, "HEAD");
    run->bodiless = run->get || run->head_only || is(method, "OPTIONS") || is(method, "DELETE") || is(method, "TRACE");
}

/* The method is known; a hook may have changed it since the last attempt. Never towards safer: safe is what the engine
 * was told at the beginning. False: the policy wants a key. */
static bool learn_safety(struct http_exchange *x, const char *method)
{
    struct http_transfer *t = x->transfer;
    enum bide_safety safety = x->run.get ? BIDE_SAFE : bide_method_safety(method, strlen(method));
    t->safety_known = true;
    if (t->safety_told || safety >= (enum bide_safety)t->call.safety)
        return true;
    return http_transfer_is(t, x, safety);
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

/* What matters only where a repetition must be proved harmless. False: do not send it on this connection. */
static bool look_at_connection(struct http_exchange *x)
{
    long connects = 0;
    if (x->transfer->call.safety != BIDE_UNSAFE)
        return true;
    curl_easy_getinfo(x->easy, CURLINFO_NUM_CONNECTS, &connects);
    x->run.own_connection = connects > 0;
    if (is_dead(x->easy))
        x->run.stop = HTTP_STALE;
    return x->run.stop != HTTP_STALE;
}

/* libcurl's idea of the method: only now, before a redirect may change it, is it the request's own. */
static bool first_leg(struct http_exchange *x)
{
    const char *method = NULL;
    if (curl_easy_getinfo(x->easy, CURLINFO_EFFECTIVE_METHOD, &method) != CURLE_OK || !method)
        method = "";
    note_method(&x->run, method);
    http_inject_first_leg(x);
    if (x->transfer->poke)
        x->transfer->poke(x->transfer);
    return learn_safety(x, method) && look_at_connection(x);
}

/* Nothing answered the last leg, and libcurl is about to send it again. Either it used a connection that was there
 * before, and that died: it may have run. Or libcurl had made the connection for it, and then only a refusal makes
 * it try again; but where others may share the connection, that is not certain. */
static void note_replay(struct http_exchange *x)
{
    bool refused = x->transfer->alone && x->run.legs == 1 && x->run.own_connection;
    x->run.stop = refused ? HTTP_REFUSED : HTTP_REPLAY;
}

/* libcurl goes on, so nothing of the answer before was passed on. */
static void begin_leg(struct http_exchange *x)
{
    if (x->transfer->winner == x && x->transfer->delivered == 0)
        x->transfer->winner = NULL;
    x->head.length = x->body.length = 0;
    x->answer = (struct http_answer){0};
}

static int on_prereq(void *context, char *ip, char *local_ip, int port, int local_port)
{
    struct http_exchange *x = context;
    const struct bide_curl_options *o = x->transfer->options;
    if (x->run.judged || http_answer_lost(x))
        return CURL_PREREQFUNC_ABORT;
    if (x->run.legs > 0 && x->answer.status < 200) {
        note_replay(x);
        return CURL_PREREQFUNC_ABORT;
    }
    begin_leg(x);
    bool may = x->run.legs++ == 0 ? first_leg(x) : http_inject_leg(x);
    if (!may)
        return CURL_PREREQFUNC_ABORT;
    return o->prereq ? o->prereq(o->prereq_data, ip, local_ip, port, local_port) : CURL_PREREQFUNC_OK;
}

static int on_progress(void *context, curl_off_t total, curl_off_t now, curl_off_t up_total, curl_off_t up_now)
{
    struct http_exchange *x = context;
    const struct bide_curl_options *o = x->transfer->options;
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

static void disown_callbacks(CURL *h, const struct bide_curl_options *o, bool sink)
{
    curl_easy_setopt(h, CURLOPT_PREREQFUNCTION, o->prereq);
    curl_easy_setopt(h, CURLOPT_PREREQDATA, o->prereq_data);
    curl_easy_setopt(h, CURLOPT_HEADERFUNCTION, o->header);
    curl_easy_setopt(h, CURLOPT_HEADERDATA, o->header_data);
    curl_easy_setopt(h, CURLOPT_SUPPRESS_CONNECT_HEADERS, 0L);
    if (sink) {
        curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, o->write);
        curl_easy_setopt(h, CURLOPT_WRITEDATA, o->write_data);
    }
    if (o->cancel || o->progress) {
        curl_easy_setopt(h, CURLOPT_XFERINFOFUNCTION, o->progress);
        curl_easy_setopt(h, CURLOPT_XFERINFODATA, o->progress_data);
        curl_easy_setopt(h, CURLOPT_NOPROGRESS, o->progress ? 0L : 1L);
    }
}

void http_exchange_disown(struct http_exchange *x)
{
    disown_callbacks(x->easy, x->transfer->options, x->transfer->sink);
    curl_easy_setopt(x->easy, CURLOPT_TIMEOUT_MS, 0L);
    curl_easy_setopt(x->easy, CURLOPT_CONNECTTIMEOUT_MS, 0L);
    if (x->fresh)
        curl_easy_setopt(x->easy, CURLOPT_FRESH_CONNECT, 0L);
    if (x->forbidden)
        curl_easy_setopt(x->easy, CURLOPT_FORBID_REUSE, 0L);
    http_body_disown(x);
    http_inject_disown(x);
}

/* ---- start ---- */

/* Whole milliseconds until then, at least one; 0, which is libcurl's "none", for never. */
static long milliseconds_until(int64_t instant_ns, int64_t now_ns)
{
    const int64_t most_ns = INT32_MAX * BIDE_MS;
    if (instant_ns == BIDE_NEVER)
        return 0;
    int64_t left_ns = instant_ns - now_ns;
    return left_ns <= BIDE_MS ? 1 : (long)((left_ns < most_ns ? left_ns : most_ns) / BIDE_MS);
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

/* What was kept of the attempt before is not touched: if this fails, it is still the last answer. */
static CURLcode prepare(struct http_exchange *x, int64_t now_ns)
{
    if (!ready_sink(x->transfer))
        return CURLE_WRITE_ERROR;
    if (!http_body_rewind(x))
        return CURLE_SEND_FAIL_REWIND;
    choose_connection(x);
    curl_easy_setopt(x->easy, CURLOPT_TIMEOUT_MS, milliseconds_until(x->start.attempt_deadline_ns, now_ns));
    curl_easy_setopt(x->easy, CURLOPT_CONNECTTIMEOUT_MS, milliseconds_until(x->start.connect_deadline_ns, now_ns));
    return http_inject_attempt(x, now_ns);
}

static CURLcode refuse(struct http_exchange *x, CURLcode code, int64_t now_ns)
{
    static const struct bide_outcome unsent = {.kind = BIDE_KIND_CANCELLED, .evidence = BIDE_EVIDENCE_NOT_SENT};
    struct http_transfer *t = x->transfer;
    t->code = code;
    x->run.judged = true;
    http_transfer_obey(t, bide_call_outcome(&t->call, x->start.attempt, &unsent, now_ns), &unsent, now_ns);
    return code;
}

static void begin_run(struct http_exchange *x, int64_t now_ns)
{
    x->head.length = x->body.length = 0;
    x->answer = (struct http_answer){0};
    x->run = (struct http_run){.start_ns = now_ns};
}

CURLcode http_exchange_start(struct http_exchange *x, const struct bide_verdict *v, int64_t now_ns)
{
    struct http_transfer *t = x->transfer;
    x->start = *v;
    CURLcode code = prepare(x, now_ns);
    if (code != CURLE_OK)
        return refuse(x, code, now_ns);
    begin_run(x, now_ns);
    http_transfer_started(t, x, now_ns);
    return CURLE_OK;
}

CURLcode http_exchange_again(struct http_exchange *x, int64_t now_ns)
{
    CURLcode code = prepare(x, now_ns);
    if (code != CURLE_OK)
        return refuse(x, code, now_ns);
    begin_run(x, now_ns);
    return CURLE_OK;
}

/* ---- end ---- */

/* What is returned, if this attempt is the last. Where its answer was judged and its body set aside, all is well,
 * but for FAILONERROR, which says otherwise. */
static CURLcode code_of(const struct http_exchange *x, CURLcode code)
{
    bool aside = x->run.answered && x->answer.mode != HTTP_PASS && code != CURLE_HTTP_RETURNED_ERROR;
    return aside || x->run.stop == HTTP_CUT ? CURLE_OK : code;
}

/* Everything that was not judged on the way is judged now. */
static void conclude(struct http_exchange *x, CURLcode code, int64_t now_ns)
{
    struct http_answer *a = &x->answer;
    bool held = a->mode == HTTP_HOLD && (code == CURLE_OK || x->run.stop == HTTP_CUT || a->status >= 400);
    if (!x->run.judged && held)
        (void)http_answer_decide_held(x, code == CURLE_OK); /* a failure stays one, though its body broke */
    code = http_stop_code(x->run.stop, code);
    if (code == CURLE_OK && !x->run.judged && !http_resume_is_whole(x->transfer))
        code = CURLE_PARTIAL_FILE;
    if (a->status < 200)
        a->status = 0; /* interim answers are none */
    if (!x->run.judged) {
        struct bide_outcome fine = {.kind = BIDE_KIND_OK, .evidence = BIDE_EVIDENCE_ANSWERED};
        struct bide_outcome o = code == CURLE_OK ? fine : http_failure_outcome(x, code);
        http_answer_judge(x, &o, now_ns);
        if (a->status >= 400 && x->transfer->verdict.action == BIDE_GIVE_UP)
            (void)http_show_head(x->transfer, &x->head); /* with FAILONERROR nobody else does */
    }
    http_transfer_ended(x->transfer, x, code_of(x, code));
}

/* Where no body came, the end of the transfer is the end of the head. */
static bool ends_undecided(const struct http_exchange *x, CURLcode code)
{
    const struct http_answer *a = &x->answer;
    if (x->run.judged || a->mode != HTTP_UNDECIDED)
        return false;
    return code == CURLE_OK ? a->status > 0 || x->body.length > 0 : a->answerable && a->status >= 400;
}

void http_exchange_end(struct http_exchange *x, CURLcode code, int64_t now_ns)
{
    x->run.ended = code;
    x->run.whole = code == CURLE_OK;
    if (http_answer_lost(x) && !x->run.judged) {
        http_exchange_abandon(x, now_ns);
        return;
    }
    if (ends_undecided(x, code))
        (void)http_answer_decide(x);
    bool answered = code == CURLE_OK || x->run.stop == HTTP_CUT;
    if (x->run.judged || !answered || !x->answer.wants_refresh)
        conclude(x, code, now_ns);
}

void http_exchange_settle(struct http_exchange *x, int64_t now_ns)
{
    x->transfer->dropped = !x->run.whole;
    conclude(x, x->run.ended, now_ns);
}

void http_exchange_abandon(struct http_exchange *x, int64_t now_ns)
{
    static const struct bide_outcome lost = {.kind = BIDE_KIND_CANCELLED, .evidence = BIDE_EVIDENCE_UNKNOWN};
    http_answer_judge(x, &lost, now_ns);
}

void http_exchange_free(struct http_exchange *x)
{
    http_buffer_free(&x->head);
    http_buffer_free(&x->body);
}
