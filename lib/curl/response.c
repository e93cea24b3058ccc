/* response.c - evaluates a response: when its outcome is reported, and where its body goes.
 *
 * The sink gets one response. So a body is streamed to the sink only when nothing can follow it: a success, or a
 * failure that the engine gave up on. Every other body is held (the outcome depends on its content), kept (another
 * attempt is planned, but may not come about) or discarded. Heads are treated like bodies: the caller's header function
 * gets the head of a failure when the failure is final.
 *
 *     end of head ──► outcome from the head
 *         success            stream the body, or hold it for the classify hook; after a break, resume or start over
 *         401 with refresh   hold the body until the refresh hook has decided
 *         problem details    hold the body, then outcome from the body
 *         other failure      report to the engine; then its verdict decides:
 *                                WAIT      keep the body: another attempt is planned
 *                                NONE      discard the body: another attempt (a hedge) is in flight
 *                                GIVE_UP   stream the body, unless the sink holds part of another response
 *     3xx, 401, 407, 417     the same, but at the first byte of the body or at the end of the transfer: until then
 *                            libcurl may follow the response with a request of its own, another leg of the attempt
 *
 * Functions that return bool return false to end the transfer. The winner is the attempt whose response goes to the
 * sink; a hedge that has lost to it ends. Field owners: see attempt.h. */
#include "attempt.h"

#include <bide/clock.h>

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define DRAIN_MAX_NS BIDE_S
#define DRAIN_MIN_NS (100 * BIDE_MS)

/* ---- outcome and route ---- */

void http_report_outcome(struct http_attempt *attempt, const struct bide_outcome *outcome, int64_t now_ns)
{
    struct http_call *call = attempt->call;
    assert(!attempt->state.reported);
    struct bide_outcome o = *outcome; /* a copy: `outcome` may point to state.outcome, which is overwritten below */
    attempt->state.reported = true;
    attempt->state.outcome = o;
    if (call->is_over)
        return; /* another attempt ended the call in the same call of libcurl */
    if (o.kind != BIDE_KIND_OK)
        http_attempt_check_scheme(attempt);
    http_call_record_outcome(call, attempt, &o, now_ns);
    http_call_end_attempt(
        call,
        (struct bide_attempt_end){.outcome = &o, .attempt = attempt->start.attempt, .status = attempt->response.status},
        now_ns);
}

static bool response_write_sink(struct http_attempt *attempt, const char *at, size_t length)
{
    size_t taken = http_call_write_sink(attempt->call, at, length);
    attempt->response.paused = taken == CURL_WRITEFUNC_PAUSE;
    if (taken != length && !attempt->response.paused)
        attempt->state.stop = HTTP_STOP_SINK_FAILED;
    return attempt->state.stop != HTTP_STOP_SINK_FAILED;
}

/* Makes this attempt the winner and sends its body to the sink from now on, the buffered part first. */
static bool response_stream_body(struct http_attempt *attempt)
{
    size_t held = attempt->body.length;
    assert(attempt->call->has_sink || held == 0);
    assert(!http_attempt_has_lost(attempt));
    attempt->response.route = HTTP_ROUTE_SINK;
    attempt->call->winner = attempt;
    attempt->body.length = 0;
    bool taken = http_call_show_head(attempt->call, &attempt->head) &&
                 (held == 0 || response_write_sink(attempt, attempt->body.at, held));
    if (!taken || attempt->response.paused) /* libcurl's pause repeats only its own data, not our buffer */
        attempt->state.stop = HTTP_STOP_SINK_FAILED;
    return attempt->state.stop != HTTP_STOP_SINK_FAILED;
}

/* Returns true if the rest of an unwanted body should be read so that the connection can be reused: not if it is long,
 * not if libcurl would decompress it, and not without a sink, because the handle's own write function would receive
 * it. */
static bool response_is_worth_draining(const struct http_attempt *attempt)
{
    curl_off_t length = -1;
    curl_easy_getinfo(attempt->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    if (attempt->state.is_head || length == 0)
        return true;
    return attempt->call->has_sink && length <= (curl_off_t)BIDE_CURL_KEEP_MAX &&
           !http_header_field(attempt->easy, "Content-Encoding").at;
}

/* Shortens the transfer's timeout to the wait before the next attempt, within 100 ms to 1 s and the attempt's deadline:
 * draining must not delay that attempt for long. */
static void response_limit_drain_time(struct http_attempt *attempt, int64_t now_ns)
{
    int64_t left_ns = attempt->call->verdict.wake_ns - now_ns, last_ns = attempt->start.attempt_deadline_ns;
    left_ns = left_ns < DRAIN_MIN_NS ? DRAIN_MIN_NS : left_ns < DRAIN_MAX_NS ? left_ns : DRAIN_MAX_NS;
    int64_t by_ns = now_ns + left_ns < last_ns ? now_ns + left_ns : last_ns;
    attempt->timeout_ms_set = (long)((by_ns - attempt->state.start_ns) / BIDE_MS + 1);
    curl_easy_setopt(attempt->easy, CURLOPT_TIMEOUT_MS, attempt->timeout_ms_set);
}

/* Keeps or discards a body that must not go to the sink: another attempt is planned or in flight, or the sink holds
 * part of another response. The rest of the body is drained only if that saves the connection. */
static bool response_set_aside(struct http_attempt *attempt, enum http_route route, int64_t now_ns)
{
    assert(route == HTTP_ROUTE_KEEP || route == HTTP_ROUTE_DISCARD);
    attempt->response.route = route;
    if (route == HTTP_ROUTE_KEEP)
        attempt->call->kept_attempt = attempt;
    if (!response_is_worth_draining(attempt))
        return false;
    response_limit_drain_time(attempt, now_ns);
    return true;
}

static bool response_route_body(struct http_attempt *attempt, int64_t now_ns)
{
    struct http_call *call = attempt->call;
    if (http_attempt_has_lost(attempt))
        return false;
    switch (call->verdict.action) {
    case BIDE_ACTION_WAIT: return response_set_aside(attempt, HTTP_ROUTE_KEEP, now_ns);
    case BIDE_ACTION_NONE:
    case BIDE_ACTION_START: return response_set_aside(attempt, HTTP_ROUTE_DISCARD, now_ns);
    case BIDE_ACTION_DONE:
    case BIDE_ACTION_GIVE_UP: break;
    }
    if (call->delivered_bytes == 0)
        return response_stream_body(attempt);
    call->body_dropped = true; /* the sink holds part of another response */
    return response_set_aside(attempt, HTTP_ROUTE_DISCARD, now_ns);
}

static bool response_report_and_route(struct http_attempt *attempt, const struct bide_outcome *outcome)
{
    int64_t now_ns = bide_now();
    attempt->state.from_response = true;
    http_report_outcome(attempt, outcome, now_ns);
    return response_route_body(attempt, now_ns);
}

/* ---- evaluating the head ---- */

/* Statuses that libcurl may follow with a leg of its own: redirects, authentication, Expect. Their outcome is decided
 * when on_body gets a byte of the body, which happens only if libcurl does not send another leg; for an empty body, and
 * without a sink, at the end of the transfer (response_is_undecided in attempt.c). */
static bool libcurl_may_send_another_leg(int status)
{
    return status < 400 ? status >= 300 : status == 401 || status == 407 || status == 417;
}

static bool response_may_refresh(const struct http_attempt *attempt)
{
    const struct http_call *call = attempt->call;
    return attempt->response.status == 401 && call->options->refresh && !call->credentials_refreshed &&
           !http_body_spent(attempt);
}

static void call_forget_resume(struct http_call *call)
{
    free(call->resume);
    call->resume = NULL;
    call->resumed = false;
}

/* The response does not continue the bytes in the sink, nor is it a whole body: another range, an unknown total, 416.
 * If the sink can be rewound, nobody has seen these bytes, and the next attempt requests the body from its start. The
 * call then resumes nothing any more: a server that gets ranges wrong would do so again. */
static bool response_reject_part(struct http_attempt *attempt, enum bide_curl_mismatch mismatch)
{
    struct http_call *call = attempt->call;
    struct bide_outcome outcome = {.kind = BIDE_KIND_TRANSIENT, .evidence = BIDE_EVIDENCE_BODY_DELIVERED};
    attempt->state.mismatch = mismatch;
    if (call->options->rewind) {
        outcome.evidence = BIDE_EVIDENCE_ANSWERED;
        call_forget_resume(call);
        call->resume_refuted = call->sink_refuted = true;
    }
    return response_report_and_route(attempt, &outcome);
}

/* The sink holds the beginning of the body, and this response was requested to continue it. Streams a 206 that fits;
 * starts over with a 200 if the sink can be rewound. */
static bool response_resume_or_restart(struct http_attempt *attempt)
{
    struct http_call *call = attempt->call;
    enum bide_curl_mismatch mismatch = http_resume_compare(attempt);
    if (mismatch == BIDE_CURL_MISMATCH_NONE) {
        call->resumed = true;
        return response_stream_body(attempt);
    }
    if (attempt->response.status != 200 || !call->options->rewind || !call->options->rewind(call->options->write_data))
        return response_reject_part(attempt, mismatch);
    call->delivered_bytes = 0; /* the resource changed: the whole new body replaces the part */
    call_forget_resume(call);
    return response_stream_body(attempt);
}

/* A server may respond before it has received the whole request body. libcurl (7.88) then considers the transfer
 * complete, stops sending and keeps the connection; the server would read the next request as the rest of the body. So
 * this connection must not be reused. (After a failure libcurl closes it. An HTTP/2 stream ends by itself.) */
static void response_distrust_early_success(struct http_attempt *attempt)
{
    if (attempt->forbid_reuse_set || http_body_sent(attempt))
        return;
    curl_easy_setopt(attempt->easy, CURLOPT_FORBID_REUSE, 1L);
    attempt->forbid_reuse_set = true;
}

static bool response_hold_body(struct http_attempt *attempt)
{
    attempt->response.route = HTTP_ROUTE_HOLD;
    return true;
}

static bool response_accept_success(struct http_attempt *attempt)
{
    if (http_attempt_has_lost(attempt))
        return false;
    if (!attempt->state.bodyless_method && attempt->response.http_1)
        response_distrust_early_success(attempt);
    if (attempt->call->delivered_bytes > 0)
        return response_resume_or_restart(attempt);
    return http_outcome_needs_body(attempt) ? response_hold_body(attempt) : response_stream_body(attempt);
}

/* Holds the 401 until the refresh hook was called, in case it has no new credentials. Without a sink nothing can be
 * held: the transfer ends here. */
static bool response_await_refresh(struct http_attempt *attempt)
{
    attempt->response.awaits_refresh = true;
    return response_hold_body(attempt) && attempt->call->has_sink;
}

/* Fast path: a 2xx that neither rules nor the classify hook can turn into a failure. */
static bool response_is_plain_success(const struct http_attempt *attempt)
{
    const struct bide_curl_options *o = attempt->call->options;
    return attempt->response.status < 300 && !o->classify && !o->status_rules;
}

bool http_response_decide_by_head(struct http_attempt *attempt)
{
    if (response_is_plain_success(attempt))
        attempt->state.outcome.kind = BIDE_KIND_OK;
    else
        attempt->state.outcome = http_outcome_from_head(attempt);
    if (attempt->state.outcome.kind == BIDE_KIND_OK)
        return response_accept_success(attempt);
    if (response_may_refresh(attempt))
        return response_await_refresh(attempt);
    if (attempt->response.status == 416 && attempt->call->resume)
        return response_reject_part(attempt, BIDE_CURL_MISMATCH_STATUS);
    return http_outcome_needs_body(attempt) ? response_hold_body(attempt)
                                            : response_report_and_route(attempt, &attempt->state.outcome);
}

bool http_response_decide_by_body(struct http_attempt *attempt, bool whole)
{
    assert(attempt->response.route == HTTP_ROUTE_HOLD && attempt->response.head_in_body_bytes <= attempt->body.length);
    attempt->state.outcome = http_outcome_from_body(attempt, whole);
    if (attempt->state.outcome.kind == BIDE_KIND_OK)
        return !http_attempt_has_lost(attempt) && response_stream_body(attempt);
    return response_report_and_route(attempt, &attempt->state.outcome);
}

/* ---- the head, line by line ---- */

/* The head is complete. Decides at once, unless the head is interim or libcurl may follow it with another leg. A 401
 * for the refresh hook is decided at once, too, if there is no sink to hold its body. */
static bool response_end_head(struct http_attempt *attempt)
{
    struct http_response *response = &attempt->response;
    if (response->status < 200 || attempt->state.reported || response->route != HTTP_ROUTE_UNDECIDED)
        return true;
    response->leg_may_follow = libcurl_may_send_another_leg(response->status);
    if (response->leg_may_follow) {
        http_attempt_check_scheme(attempt);
        http_body_note_end_of_leg(attempt);
    }
    if (response->leg_may_follow && (attempt->call->has_sink || !response_may_refresh(attempt)))
        return true;
    return http_response_decide_by_head(attempt);
}

static bool is_status_line(const char *line, size_t length)
{
    return length > 5 && memcmp(line, "HTTP/", 5) == 0;
}

/* Parses "HTTP/1.1 503 Service Unavailable". To be called only where a head may begin: lines after the body are
 * trailers. */
static void response_parse_status_line(struct http_attempt *attempt, const char *line, size_t length)
{
    struct http_response *response = &attempt->response;
    const char *end = line + length, *at = length > 8 && line[8] == ' ' ? line + 8 : memchr(line, ' ', length);
    int status = 0;
    for (at = at ? at + 1 : end; at < end && *at >= '0' && *at <= '9' && status < 100; at++)
        status = status * 10 + (*at - '0');
    response->status = status;
    response->in_head = true;
    response->http_1 = line[5] == '1';
    attempt->head.length = 0;
}

/* Passes a line to the caller's header function, as libcurl would; lines of failures are buffered until the failure is
 * final. */
static bool response_show_header_line(struct http_attempt *attempt, char *line, size_t length)
{
    const struct bide_curl_options *o = attempt->call->options;
    bool is_buffered = attempt->response.status >= 400 && attempt->response.route != HTTP_ROUTE_SINK;
    if (is_buffered && !http_buffer_append(&attempt->head, line, length))
        attempt->state.stop = HTTP_STOP_NO_MEMORY;
    if (is_buffered)
        return attempt->state.stop != HTTP_STOP_NO_MEMORY;
    if (o->header(line, 1, length, o->header_data) != length)
        attempt->state.stop = HTTP_STOP_SINK_FAILED;
    return attempt->state.stop != HTTP_STOP_SINK_FAILED;
}

/* head_bytes and head_lines include this line already: on_header counts it. */
bool http_response_header_line(struct http_attempt *attempt, char *line, size_t length)
{
    struct http_response *response = &attempt->response;
    bool blank = line[0] == '\r' || line[0] == '\n';
    if (!response->in_head && response->route == HTTP_ROUTE_UNDECIDED && is_status_line(line, length))
        response_parse_status_line(attempt, line, length);
    response->in_head = response->in_head && !blank;
    if (response->head_bytes > BIDE_CURL_HEAD_MAX || response->head_lines > BIDE_CURL_LINES_MAX) {
        attempt->state.stop = HTTP_STOP_HEAD_TOO_LONG;
        return false;
    }
    if (attempt->call->options->header && !response_show_header_line(attempt, line, length))
        return false;
    return !blank || response_end_head(attempt);
}

/* ---- the body, piece by piece ---- */

static size_t response_hold_limit(const struct http_attempt *attempt)
{
    size_t limit = attempt->state.outcome.kind == BIDE_KIND_OK ? attempt->call->options->hold_max : BIDE_CURL_KEEP_MAX;
    return limit + attempt->response.head_in_body_bytes;
}

static bool response_store_bytes(struct http_attempt *attempt, const char *at, size_t length, size_t limit)
{
    return attempt->body.length <= limit && length <= limit - attempt->body.length &&
           http_buffer_append(&attempt->body, at, length);
}

/* With CURLOPT_HEADER libcurl passes head lines to the write function, too, before it calls the header function. */
static bool response_data_is_head(const struct http_attempt *attempt, const char *at, size_t length)
{
    return attempt->response.in_head || (attempt->response.status < 200 && is_status_line(at, length));
}

static bool response_store_head(struct http_attempt *attempt, const char *at, size_t length)
{
    if (length > BIDE_CURL_HEAD_MAX - attempt->body.length)
        attempt->state.stop = HTTP_STOP_HEAD_TOO_LONG;
    else if (!http_buffer_append(&attempt->body, at, length))
        attempt->state.stop = HTTP_STOP_NO_MEMORY;
    if (attempt->state.stop != HTTP_STOP_NONE)
        return false;
    attempt->response.head_in_body_bytes = attempt->body.length;
    attempt->call->sink_gets_heads = true;
    return true;
}

/* The buffer is full: classify with the part received so far. A 401 that awaits new credentials needs no body. */
static bool response_decide_on_overflow(struct http_attempt *attempt, const char *at, size_t length)
{
    if (attempt->response.awaits_refresh)
        return false;
    return http_response_decide_by_body(attempt, false) && http_response_body_data(attempt, at, length);
}

bool http_response_body_data(struct http_attempt *attempt, const char *at, size_t length)
{
    switch (attempt->response.route) {
    case HTTP_ROUTE_UNDECIDED:
        if (response_data_is_head(attempt, at, length))
            return response_store_head(attempt, at, length);
        /* The route is decided by this call, so the recursion ends. */
        return http_response_decide_by_head(attempt) && http_response_body_data(attempt, at, length);
    case HTTP_ROUTE_SINK: return response_write_sink(attempt, at, length);
    case HTTP_ROUTE_HOLD:
        return response_store_bytes(attempt, at, length, response_hold_limit(attempt)) ||
               response_decide_on_overflow(attempt, at, length);
    case HTTP_ROUTE_KEEP:
        return response_store_bytes(attempt, at, length, BIDE_CURL_KEEP_MAX + attempt->response.head_in_body_bytes);
    case HTTP_ROUTE_DISCARD:
        attempt->state.drained_bytes += length;
        return attempt->state.drained_bytes <= BIDE_CURL_KEEP_MAX;
    }
    return false;
}
