/* attempt.c - an attempt on an easy handle: libcurl's callbacks, the start of the attempt and its end.
 *
 * An attempt is a transfer of libcurl. It has one or more legs, each a request with a response of its own: libcurl
 * follows redirects and authentication challenges by itself. The outcome is reported to the engine once per attempt:
 * inside a callback as soon as the response shows it (response.c), otherwise here, when the transfer has ended.
 *
 * libcurl calls PREREQFUNCTION each time it is about to send a request. That makes it the guard against libcurl's
 * silent replay: by itself libcurl sends a request again, a POST included, when a reused connection dies before the
 * first byte of the response, or when the server refused an HTTP/2 stream. In these cases PREREQ is called a second
 * time although the previous leg got no final response (status < 200); the guard then aborts the transfer and the
 * engine decides whether to retry.
 *
 * HEADERFUNCTION receives the response head line by line (a proxy's response to CONNECT is suppressed), WRITEFUNCTION
 * the body; the latter is set only if the options name a sink. Both pass the data to response.c. Field owners: see
 * attempt.h. */
#include "attempt.h"

#include <bide/clock.h>

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#define CUT_TRANSFER 0 /* returned by a write or header callback: fewer bytes than given end the transfer */

/* ---- callbacks: the response arrives ---- */

static size_t attempt_cut_transfer(struct http_attempt *attempt)
{
    if (attempt->state.stop == HTTP_STOP_NONE)
        attempt->state.stop = HTTP_STOP_CUT;
    return CUT_TRANSFER;
}

/* Fast path: without a header function of the caller, header fields are only counted. Status lines, blank lines and
 * lines beyond a limit go to response.c. */
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

/* ---- callbacks: before a request is sent ---- */

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

/* Reports the safety that follows from the method, at every attempt: the `before` hook may have changed the method.
 * Only a less safe value is reported, because the engine has BIDE_SAFE since begin. Returns false if the policy
 * requires a key. */
static bool attempt_learn_safety(struct http_attempt *attempt, const char *method)
{
    struct http_call *call = attempt->call;
    enum bide_safety safety = attempt->state.is_get ? BIDE_SAFE : bide_method_safety(method, strlen(method));
    call->safety_known = true;
    if (call->safety_given || safety >= (enum bide_safety)call->engine.safety)
        return true;
    return http_call_set_safety(call, attempt, safety);
}

/* Returns true if the server closed this connection while it was idle. libcurl since 8.22 checks an idle connection at
 * most once a second and relies on its replay, which the guard stops: an unsafe request would fail although no byte of
 * it was sent. */
static bool connection_is_dead(CURL *easy)
{
    curl_socket_t fd = CURL_SOCKET_BAD;
    char byte;
    if (curl_easy_getinfo(easy, CURLINFO_ACTIVESOCKET, &fd) != CURLE_OK || fd == CURL_SOCKET_BAD)
        return false;
    ssize_t n = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

/* For unsafe requests: notes whether the connection is new, for attempt_note_replay, and checks that it is alive.
 * Returns false if the request must not be sent on this connection. */
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

/* Reads the request's own method: before this moment libcurl reports GET for everything, and after a redirect the
 * method of the new leg. Returns false if the request must not be sent. */
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

/* libcurl is about to repeat a leg that got no response. It does so in two cases. Either a reused connection died: the
 * request may have run, evidence unknown. Or the server refused the HTTP/2 stream: it did not process the request. If
 * libcurl made the connection for this leg, only the second case is possible. In a multi that does not follow: another
 * call may join the new connection, which libcurl then treats as reused for this call, too. So a refusal is inferred
 * only where the connection is unshared.
 *
 * Known weakness: libcurl also repeats after HTTP_1_1_REQUIRED, and while it still has the flag of a stream that was
 * refused earlier on a reused connection. Neither proves that the request was not processed (RFC 9113 section 8.7). */
static void attempt_note_replay(struct http_attempt *attempt)
{
    bool refused_stream =
        attempt->call->connection_unshared && attempt->state.legs == 1 && attempt->state.connection_is_new;
    attempt->state.stop = refused_stream ? HTTP_STOP_REFUSED_STREAM : HTTP_STOP_REPLAY;
}

/* A new leg begins: libcurl has consumed the response to the previous leg. If none of it reached the sink, this attempt
 * is not the winner any more. */
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
    bool allowed = attempt->state.legs++ == 0 ? attempt_begin_first_leg(attempt) : http_inject_prepare_leg(attempt);
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

/* ---- the handle's options ---- */

/* Only the first option is checked: a libcurl without PREREQFUNCTION (before 7.80) must not perform the request
 * unguarded. */
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

/* Returns whole milliseconds until the instant, at least 1. Returns 0, libcurl's value for "no timeout", for
 * BIDE_NEVER. */
static long milliseconds_until(int64_t instant_ns, int64_t now_ns)
{
    const int64_t max_ns = INT32_MAX * BIDE_MS;
    if (instant_ns == BIDE_NEVER)
        return 0;
    int64_t left_ns = instant_ns - now_ns;
    return left_ns <= BIDE_MS ? 1 : (long)((left_ns < max_ns ? left_ns : max_ns) / BIDE_MS);
}

/* Empties the sink before an attempt, unless it is empty or the attempt resumes its content. Returns false if the sink
 * cannot be rewound. */
static bool call_rewind_sink(struct http_call *call)
{
    if (call->delivered_bytes == 0 || call->resume)
        return true;
    if (!call->options->rewind || !call->options->rewind(call->options->write_data))
        return false;
    call->delivered_bytes = 0;
    return true;
}

/* Requests a new connection if the last outcome requires it (BIDE_FLAG_FRESH), for this attempt only; and permits reuse
 * again if the previous attempt had forbidden it. */
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

/* The buffers of the previous attempt stay untouched: if a step fails, its kept response becomes final. */
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

/* Reports that the attempt cannot be made. The engine refunds its charge and, unless another attempt is in flight, ends
 * the call. Returns the code. */
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

/* Returns the code that the call returns if this is the last attempt. Once a response was reported and set aside, its
 * transfer may be cut, or break off while it is drained: that is no error. Under CURLOPT_FAILONERROR libcurl's code is
 * CURLE_HTTP_RETURNED_ERROR, which the caller wants. */
static CURLcode attempt_return_code(const struct http_attempt *attempt, CURLcode code)
{
    bool set_aside =
        attempt->state.from_response && attempt->response.route != HTTP_ROUTE_SINK && code != CURLE_HTTP_RETURNED_ERROR;
    return set_aside || attempt->state.stop == HTTP_STOP_CUT ? CURLE_OK : code;
}

/* Reports the outcome if the callbacks did not, and records libcurl's code. */
static void attempt_conclude(struct http_attempt *attempt, CURLcode code, int64_t now_ns)
{
    struct http_response *response = &attempt->response;
    bool held = response->route == HTTP_ROUTE_HOLD &&
                (code == CURLE_OK || attempt->state.stop == HTTP_STOP_CUT || response->status >= 400);
    /* If the held body broke off, a failure is still that failure, but a success is no success. */
    if (!attempt->state.reported && held)
        (void)http_response_decide_by_body(attempt, code == CURLE_OK);
    code = http_stop_code(attempt->state.stop, code);
    if (code == CURLE_OK && !attempt->state.reported && !http_resume_is_complete(attempt->call))
        code = CURLE_PARTIAL_FILE;
    if (response->status < 200)
        response->status = 0; /* an interim (1xx) response is not a response */
    if (!attempt->state.reported) {
        struct bide_outcome success = {.kind = BIDE_KIND_OK, .evidence = BIDE_EVIDENCE_ANSWERED};
        struct bide_outcome o = code == CURLE_OK ? success : http_outcome_from_failure(attempt, code);
        http_report_outcome(attempt, &o, now_ns);
        if (response->status >= 400 && attempt->call->verdict.action == BIDE_GIVE_UP)
            /* With FAILONERROR the callbacks never see the end of the head. */
            (void)http_call_show_head(attempt->call, &attempt->head);
    }
    http_call_attempt_ended(attempt->call, attempt, attempt_return_code(attempt, code));
}

/* Returns true if the head must be evaluated now, because no body byte arrived to trigger it: the response is empty, or
 * libcurl might have followed it with another leg. */
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
