/* attempt.c - an attempt on an easy handle: libcurl's callbacks, the start of the attempt and its end.
 *
 * An attempt is a transfer of libcurl. It has one or more legs, each a request with a response of its own: libcurl
 * follows redirects and authentication challenges by itself. The outcome is reported to the engine once per attempt:
 * inside a callback as soon as the response shows it (response.c), otherwise here, when the transfer has ended.
 *
 * libcurl calls PREREQFUNCTION each time it is about to send a request. That makes it the guard against libcurl's
 * silent replay: by itself libcurl sends a request again, a POST included, when a reused connection dies before the
 * first byte of the response, when the server refused an HTTP/2 stream or requires HTTP/1.1. In these cases PREREQ is
 * called a second time although the previous leg got no final response (status < 200); the guard then aborts the
 * transfer and the engine decides whether to retry. libcurl does not expose which case it is, and only a refusal would
 * prove that the request did not run, so the evidence is always unknown.
 *
 * HEADERFUNCTION receives the response head line by line, WRITEFUNCTION the body; the latter is set only if the options
 * name a sink. Both pass the data to response.c. A proxy's response to CONNECT is not the response: before the first
 * leg both callbacks ignore it, and libcurl stores its fields, which may have a hint (evidence.c). From the first leg
 * on libcurl suppresses it, because the callbacks could not distinguish it from the server's. Field owners: see
 * attempt.h. */
#include "attempt.h"
#include "record.h"

#include <bide/clock.h>

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define LEGS_MAX     64u /* of an attempt: without MAXREDIRS libcurl follows redirects without end */
#define CUT_TRANSFER 0   /* returned by a write or header callback: fewer bytes than given end the transfer */

/* ---- callbacks: an adopted handle is used without bide ---- */

static size_t record_pass_header_line(struct http_record *record, char *line, size_t length)
{
    const struct bide_curl_options *o = http_record_options(record, NULL);
    return o->header ? o->header(line, 1, length, o->header_data) : length;
}

static size_t record_pass_body_data(struct http_record *record, char *at, size_t length)
{
    const struct bide_curl_options *o = http_record_options(record, NULL);
    return o->write ? o->write(at, 1, length, o->write_data) : fwrite(at, 1, length, o->write_data);
}

/* ---- callbacks: the response arrives ---- */

static size_t attempt_cut_transfer(struct http_attempt *attempt)
{
    if (attempt->state.stop == HTTP_STOP_NONE)
        attempt->state.stop = HTTP_STOP_CUT;
    return CUT_TRANSFER;
}

static __attribute__((noinline)) size_t attempt_watch_header_line(struct http_attempt *attempt, char *line,
                                                                  size_t length)
{
    if (!attempt->call)
        return record_pass_header_line(attempt->record, line, length);
    if (attempt->state.legs == 0)
        return length; /* a proxy's response to CONNECT */
    attempt->response.head_bytes += length;
    attempt->response.head_lines++;
    return http_response_header_line(attempt, line, length) ? length : attempt_cut_transfer(attempt);
}

/* Fast path: without a header function of the caller, header fields are only counted. Status lines, blank lines and
 * lines beyond a limit go to response.c. The slow path is out of line, so that the fast path needs no stack. */
static size_t on_header(char *line, size_t size, size_t count, void *context)
{
    struct http_attempt *attempt = context;
    struct http_response *response = &attempt->response;
    size_t length = size * count, bytes = response->head_bytes + length;
    if (!response->in_head || line[0] <= '\r' || attempt->call->options->header || bytes > BIDE_CURL_HEAD_MAX ||
        response->head_lines >= BIDE_CURL_LINES_MAX)
        return attempt_watch_header_line(attempt, line, length);
    response->head_bytes = bytes;
    response->head_lines++;
    return length;
}

static size_t on_body(char *at, size_t size, size_t count, void *context)
{
    struct http_attempt *attempt = context;
    if (!attempt->call)
        return record_pass_body_data(attempt->record, at, size * count);
    if (attempt->state.legs == 0)
        return size * count; /* the head of a proxy's response to CONNECT, with CURLOPT_HEADER */
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

static void attempt_set_suppress(struct http_attempt *attempt, bool suppress)
{
    if (attempt->suppress_set != suppress)
        curl_easy_setopt(attempt->easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, suppress ? 1L : 0L);
    attempt->suppress_set = suppress;
}

/* What the owner recorded holds for each attempt, and is on the handle from the beginning. */
static __attribute__((noinline)) void attempt_change_connection(struct http_attempt *attempt, bool fresh,
                                                                bool forbid_reuse)
{
    const struct http_record *record = attempt->call->record;
    fresh = fresh || (record && record->set.fresh_connect);
    forbid_reuse = forbid_reuse || (record && record->set.forbid_reuse);
    if (fresh != attempt->fresh_connect_set)
        curl_easy_setopt(attempt->easy, CURLOPT_FRESH_CONNECT, fresh ? 1L : 0L);
    if (forbid_reuse != attempt->forbid_reuse_set)
        curl_easy_setopt(attempt->easy, CURLOPT_FORBID_REUSE, forbid_reuse ? 1L : 0L);
    attempt->fresh_connect_set = fresh;
    attempt->forbid_reuse_set = forbid_reuse;
}

/* Sets FRESH_CONNECT and FORBID_REUSE on the handle. Usually there is nothing to do. */
static void attempt_set_connection(struct http_attempt *attempt, bool fresh, bool forbid_reuse)
{
    if (fresh || forbid_reuse || attempt->fresh_connect_set || attempt->forbid_reuse_set)
        attempt_change_connection(attempt, fresh, forbid_reuse);
}

/* An unsafe request may have to be alone on its connection. Both options are needed: without FORBID_REUSE a later leg
 * (307, Digest) would reuse the connection of the first, and be replayed on it. */
static bool call_wants_isolation(const struct http_call *call)
{
    return call->options->fresh_if_unsafe && call->engine.safety == BIDE_UNSAFE;
}

/* The first leg is about to be sent. Returns false to have it sent on a new connection instead, once per attempt: the
 * connection was reused, and is stale or must not be shared. FORBID_REUSE makes libcurl drop a stale connection. */
static bool attempt_check_connection(struct http_attempt *attempt, const struct http_ends *ends)
{
    bool isolate = call_wants_isolation(attempt->call);
    if (attempt->record)
        http_connection_keep(attempt, ends);
    bool stale = (attempt->stale_port != 0 && ends->local_port == attempt->stale_port) ||
                 http_connection_is_stale(attempt, ends);
    if (!stale && !isolate)
        return true;
    if (attempt->state.reconnected || !http_connection_is_reused(attempt->easy)) {
        if (isolate)
            attempt_set_connection(attempt, true, true);
        return true;
    }
    attempt_set_connection(attempt, attempt->fresh_connect_set, stale);
    attempt->state.stop = HTTP_STOP_RECONNECT;
    return false;
}

/* libcurl reports GET or PUT for every transfer of other schemes, and these can send mail, append to files and run
 * commands. */
static bool easy_scheme_is_http(CURL *easy)
{
    static const char *const schemes[] = {"http", "https", "ws", "wss"};
    const char *scheme = NULL;
    curl_easy_getinfo(easy, CURLINFO_SCHEME, &scheme);
    for (size_t i = 0; scheme && i < sizeof schemes / sizeof *schemes; i++)
        if (strcasecmp(scheme, schemes[i]) == 0)
            return true;
    return false;
}

/* Returns true if the safety matters even if the attempt is a success. */
static bool call_needs_safety_to_send(const struct http_call *call)
{
    const struct bide_policy *p = call->engine.policy;
    return p->require_key || p->hedges_max > 0 || call->options->fresh_if_unsafe;
}

/* Reports the safety of the request, at every attempt: the `before` hook may have changed the method. Only a less safe
 * value is reported, because the engine has BIDE_SAFE since begin. Returns false if the policy requires a key. */
static bool attempt_learn_safety(struct http_attempt *attempt, const char *method)
{
    struct http_call *call = attempt->call;
    call->safety_known = true;
    if (call->safety_given)
        return true;
    enum bide_safety safety = attempt->state.is_get ? BIDE_SAFE : bide_method_safety(method, strlen(method));
    attempt->state.scheme_unchecked = !call_needs_safety_to_send(call);
    if (!attempt->state.scheme_unchecked && !easy_scheme_is_http(attempt->easy))
        safety = BIDE_UNSAFE;
    return safety >= (enum bide_safety)call->engine.safety || http_call_set_safety(call, attempt, safety);
}

void http_attempt_check_scheme(struct http_attempt *attempt)
{
    if (!attempt->state.scheme_unchecked)
        return;
    attempt->state.scheme_unchecked = false;
    if (!easy_scheme_is_http(attempt->easy))
        (void)http_call_set_safety(attempt->call, attempt, BIDE_UNSAFE); /* the policy requires no key */
}

/* Reads the request's own method: before this moment libcurl reports GET for everything, and after a redirect the
 * method of the new leg. Returns false if the request must not be sent. */
static bool attempt_begin_first_leg(struct http_attempt *attempt, const struct http_ends *ends)
{
    const char *method = NULL;
    attempt->state.legs = 1;
    if (curl_easy_getinfo(attempt->easy, CURLINFO_EFFECTIVE_METHOD, &method) != CURLE_OK || !method)
        method = "";
    attempt_note_method(&attempt->state, method);
    attempt_set_suppress(attempt, true);
    if (attempt->inject)
        http_inject_note_first_leg(attempt);
    if (attempt->call->on_change)
        attempt->call->on_change(attempt->call);
    return attempt_learn_safety(attempt, method) && attempt_check_connection(attempt, ends);
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

/* The guard. */
static bool attempt_begin_later_leg(struct http_attempt *attempt)
{
    int previous = attempt->response.status;
    if (previous < 200) {
        assert(attempt->state.stop == HTTP_STOP_NONE);
        attempt->state.stop = HTTP_STOP_REPLAY;
        return false;
    }
    if (attempt->state.legs >= LEGS_MAX) {
        attempt->state.stop = HTTP_STOP_LEGS;
        return false;
    }
    attempt->state.legs++;
    attempt_reset_response(attempt);
    return http_inject_prepare_leg(attempt, previous);
}

/* Returns false if libcurl must not send the request. */
static bool attempt_admit_leg(struct http_attempt *attempt, const struct http_ends *ends)
{
    if (attempt->state.reported || http_attempt_has_lost(attempt))
        return false;
    return attempt->state.legs == 0 ? attempt_begin_first_leg(attempt, ends) : attempt_begin_later_leg(attempt);
}

static int on_prereq(void *context, char *ip, char *local_ip, int port, int local_port)
{
    struct http_attempt *attempt = context;
    const struct http_call *call = attempt->call;
    const struct bide_curl_options *o = call ? call->options : http_record_options(attempt->record, NULL);
    if (!call)
        attempt->record->kept.local_port = 0; /* a transfer without bide may change the connection */
    if (call && !attempt_admit_leg(attempt, &(struct http_ends){ip, port, local_port}))
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

/* Returns true if bide itself sets the request body on the handle. */
static bool options_have_body(const struct bide_curl_options *o)
{
    return o->body.kind != BIDE_CURL_BODY_UNKNOWN && o->body.kind != BIDE_CURL_BODY_REPEATABLE;
}

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
    if (attempt->call->has_sink) {
        curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, on_body);
        curl_easy_setopt(h, CURLOPT_WRITEDATA, attempt);
    }
    attempt->callbacks_set = true;
    return CURLE_OK;
}

static void handle_install_progress(struct http_attempt *attempt)
{
    curl_easy_setopt(attempt->easy, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(attempt->easy, CURLOPT_XFERINFODATA, attempt);
    curl_easy_setopt(attempt->easy, CURLOPT_NOPROGRESS, 0L);
}

/* Returns the value of LOW_SPEED_TIME. Over an easy handle libcurl watches for a stall, in whole seconds and by its
 * average of the last five: a stream of less than a byte per second counts as stalled. A multi counts bytes. */
static long stall_seconds(int64_t stall_ns)
{
    int64_t seconds = stall_ns / BIDE_S + (stall_ns % BIDE_S > 0);
    return stall_ns == BIDE_NEVER ? 0 : (long)(seconds < INT32_MAX ? seconds : INT32_MAX);
}

/* A value of the options whose effect ends with the call. */
static void attempt_set_stall(struct http_attempt *attempt, long seconds)
{
    if (attempt->stall_s_set == seconds)
        return;
    curl_easy_setopt(attempt->easy, CURLOPT_LOW_SPEED_LIMIT, seconds > 0 ? 1L : 0L);
    curl_easy_setopt(attempt->easy, CURLOPT_LOW_SPEED_TIME, seconds);
    attempt->stall_s_set = seconds;
}

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

static void attempt_set_timeouts_to(struct http_attempt *attempt, long total_ms, long connect_ms)
{
    if (attempt->timeout_ms_set != total_ms)
        curl_easy_setopt(attempt->easy, CURLOPT_TIMEOUT_MS, total_ms);
    if (attempt->connect_ms_set != connect_ms)
        curl_easy_setopt(attempt->easy, CURLOPT_CONNECTTIMEOUT_MS, connect_ms);
    attempt->timeout_ms_set = total_ms;
    attempt->connect_ms_set = connect_ms;
}

void http_attempt_set_connect_timeout(struct http_attempt *attempt, int64_t timeout_ns)
{
    attempt_set_timeouts_to(attempt, attempt->timeout_ms_set, milliseconds_until(timeout_ns, 0));
}

/* Of a recorded handle the owner's values are known; a copy has those that bide had set on the original. */
static void attempt_note_handle(struct http_attempt *attempt)
{
    const struct http_record *record = attempt->is_copy ? NULL : attempt->call->record;
    attempt->timeout_ms_set = record ? (long)record->set.timeout_ms : -1;
    attempt->connect_ms_set = record ? (long)record->set.connect_timeout_ms : -1;
    attempt->suppress_set = record ? record->set.suppress_connect_headers : attempt->is_copy;
    attempt->fresh_connect_set = record ? record->set.fresh_connect : attempt->is_copy;
    attempt->forbid_reuse_set = record ? record->set.forbid_reuse : attempt->is_copy;
    attempt->stall_s_set = 0;
}

/* The owner has set an option of an adopted handle: it may have values of an earlier call beside the owner's, and may
 * have been used without bide's callbacks. */
static void attempt_retake_handle(struct http_record *record)
{
    http_record_restore_handle(record);
    record->kept.local_port = 0;
}

CURLcode http_attempt_install(struct http_attempt *attempt)
{
    const struct http_call *call = attempt->call;
    CURLcode code = CURLE_OK;
    if (call->record && !attempt->is_copy)
        call->record->running = call->options;
    if (call->record && call->record->adopted && call->record->adopted != attempt)
        http_attempt_restore_handle(call->record->adopted); /* this call uses the handle in a multi */
    if (!attempt->callbacks_set) {
        if (attempt->record)
            attempt_retake_handle(attempt->record);
        attempt_note_handle(attempt);
        code = handle_install_callbacks(attempt);
    }
    if (call->options->cancel || call->options->progress)
        handle_install_progress(attempt);
    attempt_set_stall(attempt, call->driver_ends_late ? 0 : stall_seconds(call->stall_ns));
    if (code == CURLE_OK && options_have_body(call->options))
        code = http_body_install(attempt);
    return code == CURLE_OK ? http_inject_install(attempt) : code;
}

static long whole_milliseconds(int64_t duration_ns)
{
    const int64_t max_ms = INT32_MAX;
    int64_t ms = duration_ns / BIDE_MS;
    return duration_ns == BIDE_NEVER ? 0 : (long)(ms < max_ms ? ms : max_ms);
}

/* Sets the values that the options state: the handle is not recorded. */
static void attempt_restore_by_options(struct http_attempt *attempt)
{
    const struct bide_curl_options *o = attempt->call->options;
    CURL *h = attempt->easy;
    curl_easy_setopt(h, CURLOPT_PREREQFUNCTION, o->prereq);
    curl_easy_setopt(h, CURLOPT_PREREQDATA, o->prereq_data);
    curl_easy_setopt(h, CURLOPT_HEADERFUNCTION, o->header);
    curl_easy_setopt(h, CURLOPT_HEADERDATA, o->header_data);
    if (attempt->call->has_sink) {
        curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, o->write);
        curl_easy_setopt(h, CURLOPT_WRITEDATA, o->write_data);
    }
    attempt_set_suppress(attempt, false);
    attempt_set_stall(attempt, 0);
    attempt_set_timeouts_to(attempt, whole_milliseconds(o->call_timeout_ns), whole_milliseconds(o->connect_timeout_ns));
}

static void handle_restore_progress(CURL *h, const struct http_call *call)
{
    const struct bide_curl_options *o = call->options;
    if (call->record) {
        http_record_restore_progress(call->record, h);
        return;
    }
    curl_easy_setopt(h, CURLOPT_XFERINFOFUNCTION, o->progress);
    curl_easy_setopt(h, CURLOPT_XFERINFODATA, o->progress_data);
    curl_easy_setopt(h, CURLOPT_NOPROGRESS, o->progress ? 0L : 1L);
}

void http_attempt_restore_handle(struct http_attempt *attempt)
{
    const struct http_record *record = attempt->record ? attempt->record : attempt->call->record;
    if (!record) {
        attempt_restore_by_options(attempt);
    } else {
        http_record_restore_callbacks(record, attempt->easy);
        attempt_set_suppress(attempt, record->set.suppress_connect_headers);
        if (attempt->stall_s_set > 0)
            http_record_restore_stall(record, attempt->easy);
        attempt_set_timeouts_to(attempt, (long)record->set.timeout_ms, (long)record->set.connect_timeout_ms);
    }
    attempt->stall_s_set = 0;
    attempt->callbacks_set = false;
}

void http_attempt_uninstall(struct http_attempt *attempt)
{
    const struct http_call *call = attempt->call;
    if (call->record && !attempt->is_copy)
        call->record->running = NULL;
    if (call->options->cancel || call->options->progress)
        handle_restore_progress(attempt->easy, call);
    attempt_set_connection(attempt, false, false);
    if (options_have_body(attempt->call->options))
        http_body_uninstall(attempt);
    if (attempt->inject)
        http_inject_uninstall(attempt);
    if (!attempt->record)
        http_attempt_restore_handle(attempt);
}

/* ---- start ---- */

/* Empties the sink before an attempt, unless it is empty or the attempt resumes its content. Returns false if the sink
 * cannot be rewound. */
static bool call_rewind_sink(struct http_call *call)
{
    if (call->delivered_bytes == 0 || call->resume)
        return true;
    if (!call->options->rewind || !call->options->rewind(call->options->write_data))
        return false;
    call->delivered_bytes = 0;
    call->sink_refuted = false;
    return true;
}

/* Requests a new connection, for this attempt only, if the last outcome requires it (BIDE_FLAG_FRESH) or the request
 * must be alone on its connection. Permits reuse again if the previous attempt had forbidden it. */
static void attempt_choose_connection(struct http_attempt *attempt)
{
    bool isolate = call_wants_isolation(attempt->call);
    attempt_set_connection(attempt, attempt->call->wants_fresh_connection || isolate, isolate);
    attempt->call->wants_fresh_connection = false;
    attempt->checked_socket = CURL_SOCKET_BAD;
    attempt->stale_port =
        attempt->call->sockets || attempt->fresh_connect_set ? 0 : http_connection_stale_port(attempt);
}

/* Returns the connect timeout: the caller's or the policy's, and not beyond the end of the attempt. If the driver ends
 * late attempts, an attempt's time begins when it is sent, so it does not limit its connect timeout. */
static long attempt_connect_ms(const struct http_attempt *attempt, long total_ms, int64_t now_ns)
{
    int64_t given_ns = attempt->call->options->connect_timeout_ns;
    if (given_ns == 0 && !attempt->call->driver_ends_late)
        return milliseconds_until(attempt->start.connect_deadline_ns, now_ns);
    long ms = milliseconds_until(given_ns != 0 ? given_ns : attempt->call->engine.policy->connect_timeout_ns, 0);
    return total_ms != 0 && (ms == 0 || total_ms < ms) ? total_ms : ms;
}

static void attempt_set_timeouts(struct http_attempt *attempt, int64_t now_ns)
{
    bool limited = !attempt->call->driver_ends_late;
    long total_ms = limited ? milliseconds_until(attempt->start.attempt_deadline_ns, now_ns) : 0;
    attempt_set_timeouts_to(attempt, total_ms, attempt_connect_ms(attempt, total_ms, now_ns));
}

/* Returns the value of SUPPRESS_CONNECT_HEADERS before the first leg. An adopted handle without a proxy keeps that of
 * the legs. If it gets a proxy that bide does not know of, only a hint in the response to CONNECT is lost. */
static bool attempt_suppresses_at_start(const struct http_attempt *attempt)
{
    const struct http_record *record = attempt->call->record;
    return record && (record->set.suppress_connect_headers || (attempt->record && !http_record_may_connect(record)));
}

/* The buffers of the previous attempt stay untouched: if a step fails, its kept response becomes final. */
static CURLcode attempt_prepare(struct http_attempt *attempt, int64_t now_ns)
{
    if (!call_rewind_sink(attempt->call))
        return CURLE_WRITE_ERROR;
    if (options_have_body(attempt->call->options) && !http_body_rewind(attempt))
        return CURLE_SEND_FAIL_REWIND;
    attempt_choose_connection(attempt);
    attempt_set_suppress(attempt, attempt_suppresses_at_start(attempt));
    attempt_set_timeouts(attempt, now_ns);
    return attempt->inject ? http_inject_prepare_attempt(attempt, now_ns) : CURLE_OK;
}

/* Reports that the attempt cannot be made or, after a 401, cannot be repeated. If nothing was sent, the engine refunds
 * its charge; unless another attempt is in flight, it ends the call. Returns the code. */
static CURLcode attempt_report_failed_start(struct http_attempt *attempt, enum bide_evidence evidence, CURLcode code,
                                            int64_t now_ns)
{
    struct bide_outcome outcome = {.kind = BIDE_KIND_CANCELLED, .evidence = evidence};
    struct http_call *call = attempt->call;
    call->code = code;
    attempt->state.reported = true;
    http_call_end_attempt(call, (struct bide_attempt_end){.outcome = &outcome, .attempt = attempt->start.attempt},
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
    assert(v->action == BIDE_ACTION_START && !call->is_over);
    attempt->start = *v;
    CURLcode code = attempt_prepare(attempt, now_ns);
    if (code != CURLE_OK)
        return attempt_report_failed_start(attempt, BIDE_EVIDENCE_NOT_SENT, code, now_ns);
    attempt_reset_state(attempt, now_ns);
    http_call_attempt_started(call, attempt, now_ns);
    return CURLE_OK;
}

CURLcode http_attempt_restart(struct http_attempt *attempt, int64_t now_ns)
{
    assert(!attempt->state.reported && attempt->call->credentials_refreshed);
    http_call_report_refresh(attempt->call, attempt, now_ns);
    CURLcode code = attempt_prepare(attempt, now_ns);
    if (code != CURLE_OK)
        return attempt_report_failed_start(attempt, BIDE_EVIDENCE_ANSWERED, code, now_ns);
    attempt_reset_state(attempt, now_ns);
    return CURLE_OK;
}

CURLcode http_attempt_reconnect(struct http_attempt *attempt, int64_t now_ns)
{
    int64_t start_ns = attempt->state.start_ns;
    assert(!attempt->state.reported && !attempt->state.reconnected);
    attempt->call->wants_fresh_connection = true;
    CURLcode code = attempt_prepare(attempt, now_ns);
    if (code != CURLE_OK)
        return attempt_report_failed_start(attempt, BIDE_EVIDENCE_NOT_SENT, code, now_ns);
    attempt_reset_state(attempt, start_ns);
    attempt->state.reconnected = true;
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
    code = http_failure_code(attempt, code);
    if (code == CURLE_OK && !attempt->state.reported && !http_resume_is_complete(attempt->call))
        code = CURLE_PARTIAL_FILE;
    if (response->status < 200)
        response->status = 0; /* an interim (1xx) response is not a response */
    if (!attempt->state.reported) {
        struct bide_outcome success = {.kind = BIDE_KIND_OK, .evidence = BIDE_EVIDENCE_ANSWERED};
        struct bide_outcome o = code == CURLE_OK ? success : http_outcome_from_failure(attempt, code);
        http_report_outcome(attempt, &o, now_ns);
        if (response->status >= 400 && attempt->call->verdict.action == BIDE_ACTION_GIVE_UP)
            /* With FAILONERROR the callbacks never see the end of the head. */
            (void)http_call_show_head(attempt->call, &attempt->head);
    }
    assert(attempt->state.reported);
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

/* A connection that closes within the head of a success has no response; libcurl returns CURLE_OK, as for one without
 * a body. A failure counts, whatever the rest of its head would be. */
enum http_attempt_next http_attempt_end(struct http_attempt *attempt, CURLcode code, int64_t now_ns)
{
    if (code == CURLE_OK && attempt->response.in_head && attempt->response.status < 400)
        code = CURLE_PARTIAL_FILE;
    attempt->state.end_code = code;
    attempt->state.complete = code == CURLE_OK;
    if (http_attempt_has_lost(attempt) && !attempt->state.reported) {
        http_attempt_abandon(attempt, now_ns);
        return HTTP_NEXT_VERDICT;
    }
    if (attempt->state.stop == HTTP_STOP_RECONNECT)
        return HTTP_NEXT_RECONNECT;
    if (response_is_undecided(attempt, code))
        (void)http_response_decide_by_head(attempt);
    bool has_response = code == CURLE_OK || attempt->state.stop == HTTP_STOP_CUT;
    if (!attempt->state.reported && has_response && attempt->response.awaits_refresh)
        return HTTP_NEXT_REFRESH;
    attempt_conclude(attempt, code, now_ns);
    return HTTP_NEXT_VERDICT;
}

void http_attempt_end_with_401(struct http_attempt *attempt, int64_t now_ns)
{
    assert(attempt->response.awaits_refresh && !attempt->state.reported);
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
    if (attempt->head.at)
        http_buffer_free(&attempt->head);
    if (attempt->body.at)
        http_buffer_free(&attempt->body);
}
