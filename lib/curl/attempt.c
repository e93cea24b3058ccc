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

static size_t attempt_cut_transfer(struct http_attempt *attempt)
{
    if (attempt->state.stop == HTTP_STOP_NONE)
        attempt->state.stop = HTTP_STOP_CUT;
    return CUT_TRANSFER;
}

/* Most lines of most answers are of no interest, and only counted. */
static size_t on_header(char *line, size_t size, size_t count, void *context)
{
    struct http_attempt *attempt = context;
    struct http_response *response = &attempt->response;
    size_t length = size * count;
    response->head_bytes += length;
    response->head_lines++;
    bool unwatched_line = response->in_head && line[0] > '\r' && !attempt->call->options->header;
    if (unwatched_line && response->head_bytes <= BIDE_CURL_HEAD_MAX && response->head_lines <= BIDE_CURL_LINES_MAX)
        return length;
    return http_response_header_line(attempt, line, length) ? length : attempt_cut_transfer(attempt);
}

static size_t on_body(char *at, size_t size, size_t count, void *context)
{
    struct http_attempt *attempt = context;
    attempt->response.paused = false;
    if (http_attempt_has_lost(attempt) || !http_response_body_data(attempt, at, size * count))
        return attempt_cut_transfer(attempt);
    return attempt->response.paused ? CURL_WRITEFUNC_PAUSE : size * count;
}

/* ---- before a request is sent ---- */

static bool method_is(const char *method, const char *name)
{
    return strcmp(method, name) == 0;
}

static void attempt_note_method(struct http_attempt_state *state, const char *method)
{
    state->is_get = method_is(method, "GET");
    state->is_head = !state->is_get && method_is(method, "HEAD");
    state->bodyless_method = state->is_get || state->is_head || method_is(method, "OPTIONS") ||
                             method_is(method, "DELETE") || method_is(method, "TRACE");
}

/* The method is known; a hook may have changed it since the last attempt. Never towards safer: safe is what the engine
 * was told at the beginning. False: the policy wants a key. */
static bool attempt_learn_safety(struct http_attempt *attempt, const char *method)
{
    struct http_call *call = attempt->call;
    enum bide_safety safety = attempt->state.is_get ? BIDE_SAFE : bide_method_safety(method, strlen(method));
    call->safety_known = true;
    if (call->safety_given || safety >= (enum bide_safety)call->engine.safety)
        return true;
    return http_call_set_safety(call, attempt, safety);
}

/* Has the server closed this connection while it lay idle? Newer versions of libcurl do not look each time, and rely on
 * their replay. Here a request that may not be repeated would be lost, though not a byte of it was sent. */
static bool connection_is_dead(CURL *easy)
{
    curl_socket_t fd = CURL_SOCKET_BAD;
    char byte;
    if (curl_easy_getinfo(easy, CURLINFO_ACTIVESOCKET, &fd) != CURLE_OK || fd == CURL_SOCKET_BAD)
        return false;
    ssize_t n = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

/* What matters only where a repetition must be proved harmless. False: do not send it on this connection. */
static bool attempt_check_connection(struct http_attempt *attempt)
{
    long connects = 0;
    if (attempt->call->engine.safety != BIDE_UNSAFE)
        return true;
    curl_easy_getinfo(attempt->easy, CURLINFO_NUM_CONNECTS, &connects);
    attempt->state.connection_is_new = connects > 0;
    if (connection_is_dead(attempt->easy))
        attempt->state.stop = HTTP_STOP_STALE;
    return attempt->state.stop != HTTP_STOP_STALE;
}

/* libcurl's idea of the method: only now, before a redirect may change it, is it the request's own. */
static bool attempt_begin_first_leg(struct http_attempt *attempt)
{
    const char *method = NULL;
    if (curl_easy_getinfo(attempt->easy, CURLINFO_EFFECTIVE_METHOD, &method) != CURLE_OK || !method)
        method = "";
    attempt_note_method(&attempt->state, method);
    http_inject_note_first_leg(attempt);
    if (attempt->call->on_change)
        attempt->call->on_change(attempt->call);
    return attempt_learn_safety(attempt, method) && attempt_check_connection(attempt);
}

/* Nothing answered the last leg, and libcurl is about to send it again. Either it used a connection that was there
 * before, and that died: it may have run. Or libcurl had made the connection for it, and then only a refusal makes
 * it try again; but where others may share the connection, that is not certain. */
static void attempt_note_replay(struct http_attempt *attempt)
{
    bool refused_stream =
        attempt->call->connection_unshared && attempt->state.legs == 1 && attempt->state.connection_is_new;
    attempt->state.stop = refused_stream ? HTTP_STOP_REFUSED_STREAM : HTTP_STOP_REPLAY;
}

/* libcurl goes on, so nothing of the answer before was passed on. */
static void attempt_reset_response(struct http_attempt *attempt)
{
    if (attempt->call->winner == attempt && attempt->call->delivered_bytes == 0)
        attempt->call->winner = NULL;
    attempt->head.length = attempt->body.length = 0;
    attempt->response = (struct http_response){0};
}

static int on_prereq(void *context, char *ip, char *local_ip, int port, int local_port)
{
    struct http_attempt *attempt = context;
    const struct bide_curl_options *o = attempt->call->options;
    if (attempt->state.reported || http_attempt_has_lost(attempt))
        return CURL_PREREQFUNC_ABORT;
    if (attempt->state.legs > 0 && attempt->response.status < 200) {
        attempt_note_replay(attempt);
        return CURL_PREREQFUNC_ABORT;
    }
    attempt_reset_response(attempt);
    bool allowed = attempt->state.legs++ == 0 ? attempt_begin_first_leg(attempt) : http_inject_check_leg(attempt);
    if (!allowed)
        return CURL_PREREQFUNC_ABORT;
    return o->prereq ? o->prereq(o->prereq_data, ip, local_ip, port, local_port) : CURL_PREREQFUNC_OK;
}

static int on_progress(void *context, curl_off_t total, curl_off_t now, curl_off_t up_total, curl_off_t up_now)
{
    struct http_attempt *attempt = context;
    const struct bide_curl_options *o = attempt->call->options;
    if (bide_cancelled(o->cancel))
        return 1;
    return o->progress ? o->progress(o->progress_data, total, now, up_total, up_now) : 0;
}

/* ---- the handle ---- */

/* A libcurl too old to know an option says so, and then nothing is performed: the guard is not optional. */
static CURLcode handle_install_callbacks(struct http_attempt *attempt)
{
    CURL *h = attempt->easy;
    CURLcode code = curl_easy_setopt(h, CURLOPT_PREREQFUNCTION, on_prereq);
    if (code != CURLE_OK)
        return code;
    curl_easy_setopt(h, CURLOPT_PREREQDATA, attempt);
    curl_easy_setopt(h, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(h, CURLOPT_HEADERDATA, attempt);
    curl_easy_setopt(h, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    if (attempt->call->has_sink) {
        curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, on_body);
        curl_easy_setopt(h, CURLOPT_WRITEDATA, attempt);
    }
    if (attempt->call->options->cancel || attempt->call->options->progress) {
        curl_easy_setopt(h, CURLOPT_XFERINFOFUNCTION, on_progress);
        curl_easy_setopt(h, CURLOPT_XFERINFODATA, attempt);
        curl_easy_setopt(h, CURLOPT_NOPROGRESS, 0L);
    }
    return CURLE_OK;
}

CURLcode http_attempt_install(struct http_attempt *attempt)
{
    CURLcode code = handle_install_callbacks(attempt);
    if (code == CURLE_OK)
        code = http_body_install(attempt);
    return code == CURLE_OK ? http_inject_install(attempt) : code;
}

static void handle_uninstall_callbacks(CURL *h, const struct bide_curl_options *o, bool has_sink)
{
    curl_easy_setopt(h, CURLOPT_PREREQFUNCTION, o->prereq);
    curl_easy_setopt(h, CURLOPT_PREREQDATA, o->prereq_data);
    curl_easy_setopt(h, CURLOPT_HEADERFUNCTION, o->header);
    curl_easy_setopt(h, CURLOPT_HEADERDATA, o->header_data);
    curl_easy_setopt(h, CURLOPT_SUPPRESS_CONNECT_HEADERS, 0L);
    if (has_sink) {
        curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, o->write);
        curl_easy_setopt(h, CURLOPT_WRITEDATA, o->write_data);
    }
    if (o->cancel || o->progress) {
        curl_easy_setopt(h, CURLOPT_XFERINFOFUNCTION, o->progress);
        curl_easy_setopt(h, CURLOPT_XFERINFODATA, o->progress_data);
        curl_easy_setopt(h, CURLOPT_NOPROGRESS, o->progress ? 0L : 1L);
    }
}

void http_attempt_uninstall(struct http_attempt *attempt)
{
    handle_uninstall_callbacks(attempt->easy, attempt->call->options, attempt->call->has_sink);
    curl_easy_setopt(attempt->easy, CURLOPT_TIMEOUT_MS, 0L);
    curl_easy_setopt(attempt->easy, CURLOPT_CONNECTTIMEOUT_MS, 0L);
    if (attempt->fresh_connect_set)
        curl_easy_setopt(attempt->easy, CURLOPT_FRESH_CONNECT, 0L);
    if (attempt->forbid_reuse_set)
        curl_easy_setopt(attempt->easy, CURLOPT_FORBID_REUSE, 0L);
    http_body_uninstall(attempt);
    http_inject_uninstall(attempt);
}

/* ---- start ---- */

/* Whole milliseconds until then, at least one; 0, which is libcurl's "none", for never. */
static long milliseconds_until(int64_t instant_ns, int64_t now_ns)
{
    const int64_t max_ns = INT32_MAX * BIDE_MS;
    if (instant_ns == BIDE_NEVER)
        return 0;
    int64_t left_ns = instant_ns - now_ns;
    return left_ns <= BIDE_MS ? 1 : (long)((left_ns < max_ns ? left_ns : max_ns) / BIDE_MS);
}

/* What the sink has must go, or be continued. */
static bool call_rewind_sink(struct http_call *call)
{
    if (call->delivered_bytes == 0 || call->resume)
        return true;
    if (!call->options->rewind || !call->options->rewind(call->options->write_data))
        return false;
    call->delivered_bytes = 0;
    return true;
}

/* A new connection, where the last answer asked for one. For this attempt only. */
static void attempt_choose_connection(struct http_attempt *attempt)
{
    if (attempt->forbid_reuse_set)
        curl_easy_setopt(attempt->easy, CURLOPT_FORBID_REUSE, 0L);
    attempt->forbid_reuse_set = false;
    if (attempt->call->wants_fresh_connection != attempt->fresh_connect_set)
        curl_easy_setopt(attempt->easy, CURLOPT_FRESH_CONNECT, attempt->call->wants_fresh_connection ? 1L : 0L);
    attempt->fresh_connect_set = attempt->call->wants_fresh_connection;
    attempt->call->wants_fresh_connection = false;
}

/* What was kept of the attempt before is not touched: if this fails, it is still the last answer. */
static CURLcode attempt_prepare(struct http_attempt *attempt, int64_t now_ns)
{
    if (!call_rewind_sink(attempt->call))
        return CURLE_WRITE_ERROR;
    if (!http_body_rewind(attempt))
        return CURLE_SEND_FAIL_REWIND;
    attempt_choose_connection(attempt);
    curl_easy_setopt(attempt->easy, CURLOPT_TIMEOUT_MS, milliseconds_until(attempt->start.attempt_deadline_ns, now_ns));
    curl_easy_setopt(attempt->easy, CURLOPT_CONNECTTIMEOUT_MS,
                     milliseconds_until(attempt->start.connect_deadline_ns, now_ns));
    return http_inject_prepare_attempt(attempt, now_ns);
}

static CURLcode attempt_report_unsent(struct http_attempt *attempt, CURLcode code, int64_t now_ns)
{
    static const struct bide_outcome unsent = {.kind = BIDE_KIND_CANCELLED, .evidence = BIDE_EVIDENCE_NOT_SENT};
    struct http_call *call = attempt->call;
    call->code = code;
    attempt->state.reported = true;
    http_call_set_verdict(call, bide_call_outcome(&call->engine, attempt->start.attempt, &unsent, now_ns), &unsent,
                          now_ns);
    return code;
}

static void attempt_reset_state(struct http_attempt *attempt, int64_t now_ns)
{
    attempt->head.length = attempt->body.length = 0;
    attempt->response = (struct http_response){0};
    attempt->state = (struct http_attempt_state){.start_ns = now_ns};
}

CURLcode http_attempt_start(struct http_attempt *attempt, const struct bide_verdict *v, int64_t now_ns)
{
    struct http_call *call = attempt->call;
    attempt->start = *v;
    CURLcode code = attempt_prepare(attempt, now_ns);
    if (code != CURLE_OK)
        return attempt_report_unsent(attempt, code, now_ns);
    attempt_reset_state(attempt, now_ns);
    http_call_attempt_started(call, attempt, now_ns);
    return CURLE_OK;
}

CURLcode http_attempt_restart(struct http_attempt *attempt, int64_t now_ns)
{
    CURLcode code = attempt_prepare(attempt, now_ns);
    if (code != CURLE_OK)
        return attempt_report_unsent(attempt, code, now_ns);
    attempt_reset_state(attempt, now_ns);
    return CURLE_OK;
}

/* ---- end ---- */

/* What is returned, if this attempt is the last. Where its answer was judged and its body set aside, all is well,
 * but for FAILONERROR, which says otherwise. */
static CURLcode attempt_return_code(const struct http_attempt *attempt, CURLcode code)
{
    bool set_aside =
        attempt->state.from_response && attempt->response.route != HTTP_ROUTE_SINK && code != CURLE_HTTP_RETURNED_ERROR;
    return set_aside || attempt->state.stop == HTTP_STOP_CUT ? CURLE_OK : code;
}

/* Everything that was not judged on the way is judged now. */
static void attempt_conclude(struct http_attempt *attempt, CURLcode code, int64_t now_ns)
{
    struct http_response *response = &attempt->response;
    bool held = response->route == HTTP_ROUTE_HOLD &&
                (code == CURLE_OK || attempt->state.stop == HTTP_STOP_CUT || response->status >= 400);
    if (!attempt->state.reported && held)
        (void)http_response_decide_by_body(attempt, code == CURLE_OK); /* a failure stays one, though its body broke */
    code = http_stop_code(attempt->state.stop, code);
    if (code == CURLE_OK && !attempt->state.reported && !http_resume_is_complete(attempt->call))
        code = CURLE_PARTIAL_FILE;
    if (response->status < 200)
        response->status = 0; /* interim answers are none */
    if (!attempt->state.reported) {
        struct bide_outcome success = {.kind = BIDE_KIND_OK, .evidence = BIDE_EVIDENCE_ANSWERED};
        struct bide_outcome o = code == CURLE_OK ? success : http_outcome_from_failure(attempt, code);
        http_report_outcome(attempt, &o, now_ns);
        if (response->status >= 400 && attempt->call->verdict.action == BIDE_GIVE_UP)
            (void)http_call_show_head(attempt->call, &attempt->head); /* with FAILONERROR nobody else does */
    }
    http_call_attempt_ended(attempt->call, attempt, attempt_return_code(attempt, code));
}

/* Where no body came, the end of the transfer is the end of the head. */
static bool response_is_undecided(const struct http_attempt *attempt, CURLcode code)
{
    const struct http_response *response = &attempt->response;
    if (attempt->state.reported || response->route != HTTP_ROUTE_UNDECIDED)
        return false;
    return code == CURLE_OK ? response->status > 0 || attempt->body.length > 0
                            : response->leg_may_follow && response->status >= 400;
}

void http_attempt_end(struct http_attempt *attempt, CURLcode code, int64_t now_ns)
{
    attempt->state.end_code = code;
    attempt->state.complete = code == CURLE_OK;
    if (http_attempt_has_lost(attempt) && !attempt->state.reported) {
        http_attempt_abandon(attempt, now_ns);
        return;
    }
    if (response_is_undecided(attempt, code))
        (void)http_response_decide_by_head(attempt);
    bool has_response = code == CURLE_OK || attempt->state.stop == HTTP_STOP_CUT;
    if (attempt->state.reported || !has_response || !attempt->response.awaits_refresh)
        attempt_conclude(attempt, code, now_ns);
}

void http_attempt_end_with_401(struct http_attempt *attempt, int64_t now_ns)
{
    attempt->call->body_dropped = !attempt->state.complete;
    attempt_conclude(attempt, attempt->state.end_code, now_ns);
}

void http_attempt_abandon(struct http_attempt *attempt, int64_t now_ns)
{
    static const struct bide_outcome abandoned = {.kind = BIDE_KIND_CANCELLED, .evidence = BIDE_EVIDENCE_UNKNOWN};
    http_report_outcome(attempt, &abandoned, now_ns);
}

void http_attempt_free(struct http_attempt *attempt)
{
    http_buffer_free(&attempt->head);
    http_buffer_free(&attempt->body);
}
