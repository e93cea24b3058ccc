/* evidence.c - turns libcurl's observations into an outcome: kind, evidence, flags and the server's hint.
 *
 * The kind comes from tables (HTTP status, CURLcode) or the caller's rules for them, then from the caller's rules for
 * the type of problem details, then from the classify hook; each source overrides the sources before it. The evidence
 * decides whether an unsafe request may be repeated, so it must be proof:
 *
 *     not sent         libcurl never reached PREREQFUNCTION (no leg), or wrote no byte (plain HTTP without CONNECT)
 *     rejected         status 421 or 425
 *     answered         any other response
 *     body delivered   part of the response is in the sink, and it can neither be resumed nor rewound; or the handle's
 *                      own write function received part of it
 *     unknown          everything else, a replay that the guard (attempt.c) stopped included: the request may have
 *                      run; a rule of the caller for the CURLcode overrides it */
#include "attempt.h"
#include "classify_curl.h"

#include <bide/clock.h>
#include <bide/retry_after.h>

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#define LINE_PROBE_BYTES ((size_t)256 * 1024) /* more than libcurl's longest header line */

/* ---- header fields ---- */

/* A response head: the server's (CURLH_HEADER), or a proxy's response to CONNECT (CURLH_CONNECT). */
struct head {
    CURL *easy;
    unsigned origin;
};

static struct bide_text head_field_at(struct head head, const char *name, size_t index)
{
    struct curl_header *h = NULL;
    if (curl_easy_header(head.easy, name, index, head.origin, -1, &h) != CURLHE_OK)
        return (struct bide_text){NULL, 0};
    return (struct bide_text){h->value, strlen(h->value)};
}

static struct bide_text head_field(struct head head, const char *name)
{
    return head_field_at(head, name, 0);
}

struct bide_text http_header_field(CURL *easy, const char *name)
{
    return head_field((struct head){easy, CURLH_HEADER}, name);
}

/* Returns true for a date before the Date of the response: local time that is called GMT, or a date long forgotten. */
static bool hint_is_past_date(struct bide_text value, struct bide_hint hint)
{
    bool is_number = value.length > 0 && value.at[0] >= '0' && value.at[0] <= '9';
    return hint.kind == BIDE_HINT_WAIT && hint.wait_ns == 0 && !is_number;
}

/* If the field is repeated, the longest wait counts. *present: there is such a field, readable or not. A past date
 * counts as one that cannot be read. */
static struct bide_hint hint_from_retry_after(struct head head, struct bide_text date, int64_t wall_s, bool *present)
{
    struct bide_hint hint = {0};
    for (size_t i = 0; i < BIDE_CURL_LINES_MAX; i++) {
        struct bide_text value = head_field_at(head, "Retry-After", i);
        *present = *present || value.at;
        if (!value.at)
            break;
        struct bide_hint one = bide_hint_retry_after(value, date, wall_s);
        if (!hint_is_past_date(value, one))
            hint = bide_hint_merge(hint, one);
    }
    return hint;
}

/* The server asked for time in a form that cannot be read (a date in UTC or in the past, "+2", "soon"): full jitter
 * could draw a retry at once, so the wait is at least twice the base, within the limits of the policy. Only under the
 * floor rule: presets with another rule reproduce systems that ignore such a value. */
static struct bide_hint hint_from_unreadable_field(const struct bide_policy *p)
{
    int64_t wait_ns = 2 * p->base_ns; /* at most twice BIDE_DURATION_MAX */
    wait_ns = wait_ns < p->cap_ns ? wait_ns : p->cap_ns;
    wait_ns = wait_ns < p->hint_max_ns ? wait_ns : p->hint_max_ns;
    bool asks = p->hint_rule == BIDE_HINT_RULE_FLOOR && wait_ns > 0;
    return asks ? (struct bide_hint){BIDE_HINT_WAIT, wait_ns} : (struct bide_hint){0};
}

/* Vendor fields and RateLimit are read only if there is no Retry-After. */
static struct bide_hint hint_from_other_fields(struct head head, const struct bide_curl_options *o,
                                               struct bide_text date, int64_t wall_s)
{
    static const char *const milliseconds[] = {"retry-after-ms", "x-ms-retry-after-ms", "x-amz-retry-after"};
    struct bide_hint hint = {0};
    for (size_t i = 0; i < sizeof milliseconds / sizeof *milliseconds; i++)
        hint = bide_hint_merge(hint, bide_hint_milliseconds(head_field(head, milliseconds[i])));
    if (hint.kind == BIDE_HINT_NONE)
        hint = bide_hint_ratelimit(head_field(head, "RateLimit"));
    if (hint.kind == BIDE_HINT_NONE && o->reset_header)
        hint = bide_hint_reset(head_field(head, o->reset_header), o->reset_unit, date, wall_s);
    return hint;
}

static struct bide_hint hint_from_stop_fields(struct head head)
{
    static const char *const fields[] = {BIDE_RETRY_HEADER, "x-should-retry", "stripe-should-retry"};
    struct bide_hint hint = {0};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        hint = bide_hint_merge(hint, bide_hint_should_retry(head_field(head, fields[i])));
    struct bide_text pushback = head_field(head, "grpc-retry-pushback-ms");
    return pushback.at ? bide_hint_merge(hint, bide_hint_grpc_pushback(pushback)) : hint;
}

static struct bide_hint hint_from_head(const struct http_attempt *attempt, unsigned origin)
{
    struct head head = {attempt->easy, origin};
    struct bide_text date = head_field(head, "Date");
    int64_t wall_s = bide_wall_s();
    bool present = false;
    struct bide_hint hint = hint_from_retry_after(head, date, wall_s, &present);
    if (hint.kind == BIDE_HINT_NONE)
        hint = hint_from_other_fields(head, attempt->call->options, date, wall_s);
    if (hint.kind == BIDE_HINT_NONE && present)
        hint = hint_from_unreadable_field(attempt->call->engine.policy);
    return bide_hint_merge(hint, hint_from_stop_fields(head));
}

/* ---- a response ---- */

static void outcome_apply_classify_hook(struct http_attempt *attempt, struct bide_text body, bool whole,
                                        struct bide_outcome *outcome)
{
    const struct bide_curl_options *o = attempt->call->options;
    struct bide_curl_response response = {
        .easy = attempt->easy, .status = attempt->response.status, .body = body, .whole = whole};
    bool was_success = outcome->kind == BIDE_KIND_OK;
    if (o->classify)
        o->classify(o->context, &response, outcome);
    if (was_success && outcome->kind != BIDE_KIND_OK && outcome->hint.kind == BIDE_HINT_NONE)
        /* Hints are read only for failures, and the tables saw a success. */
        outcome->hint = hint_from_head(attempt, CURLH_HEADER);
}

/* Marks failures that must not be repeated even if the tables allow it: the request body cannot be sent again, or,
 * without a sink, the handle's own write function has received part of the response. */
static void outcome_forbid_repeat(const struct http_attempt *attempt, struct bide_outcome *outcome)
{
    curl_off_t written = 0;
    if (outcome->kind == BIDE_KIND_OK)
        return;
    if (http_body_spent(attempt))
        outcome->flags |= BIDE_FLAG_BODY_SPENT;
    if (!attempt->call->has_sink && curl_easy_getinfo(attempt->easy, CURLINFO_SIZE_DOWNLOAD_T, &written) == CURLE_OK &&
        written > 0)
        outcome->evidence = BIDE_EVIDENCE_BODY_DELIVERED;
}

struct bide_outcome http_outcome_from_head(struct http_attempt *attempt)
{
    struct bide_outcome outcome = bide_classify_http(attempt->response.status, attempt->call->options->status_rules);
    if (outcome.kind != BIDE_KIND_OK)
        outcome.hint = hint_from_head(attempt, CURLH_HEADER);
    outcome_apply_classify_hook(attempt, (struct bide_text){NULL, 0}, false, &outcome);
    outcome_forbid_repeat(attempt, &outcome);
    return outcome;
}

static bool response_has_problem_details(const struct http_attempt *attempt)
{
    return attempt->response.status >= 400 &&
           bide_details_media_type(http_header_field(attempt->easy, "Content-Type")) &&
           !http_header_field(attempt->easy, "Content-Encoding").at;
}

bool http_outcome_needs_body(const struct http_attempt *attempt)
{
    const struct http_call *call = attempt->call;
    if (!call->has_sink || attempt->state.is_head)
        return false;
    return (attempt->state.outcome.kind == BIDE_KIND_OK && call->options->hold_max > 0) ||
           (attempt->state.outcome.kind != BIDE_KIND_OK && response_has_problem_details(attempt));
}

static void outcome_apply_problem_details(struct http_attempt *attempt, struct bide_text body,
                                          struct bide_outcome *outcome)
{
    const struct bide_curl_options *o = attempt->call->options;
    struct bide_details details;
    if (!response_has_problem_details(attempt) || !bide_details_parse(body, &details))
        return;
    outcome->hint = bide_hint_merge(outcome->hint, details.hint);
    const struct bide_details_rule *rule = bide_details_find(&details, o->type_rules, o->type_rule_count);
    if (rule) {
        outcome->kind = rule->kind;
        outcome->evidence = rule->evidence;
        outcome->flags = rule->flags;
    }
}

struct bide_outcome http_outcome_from_body(struct http_attempt *attempt, bool whole)
{
    struct bide_outcome outcome = attempt->state.outcome;
    size_t head_bytes = attempt->response.head_in_body_bytes;
    struct bide_text body = {attempt->body.at ? attempt->body.at + head_bytes : "", attempt->body.length - head_bytes};
    if (whole)
        outcome_apply_problem_details(attempt, body, &outcome);
    outcome_apply_classify_hook(attempt, body, whole, &outcome);
    outcome_forbid_repeat(attempt, &outcome);
    return outcome;
}

/* ---- no usable response ---- */

/* The meaning of each reason for which bide ended a transfer. */
static const struct {
    CURLcode code;
    enum bide_kind kind;
    uint32_t flags;
} stop_outcomes[] = {
    [HTTP_STOP_REPLAY] = {CURLE_GOT_NOTHING, BIDE_KIND_TRANSIENT, BIDE_FLAG_FRESH},
    [HTTP_STOP_LEGS] = {CURLE_TOO_MANY_REDIRECTS, BIDE_KIND_PERMANENT, 0},
    [HTTP_STOP_HEAD_TOO_LONG] = {CURLE_WEIRD_SERVER_REPLY, BIDE_KIND_PERMANENT, 0},
    [HTTP_STOP_NO_MEMORY] = {CURLE_OUT_OF_MEMORY, BIDE_KIND_CANCELLED, BIDE_FLAG_LOCAL},
    [HTTP_STOP_SINK_FAILED] = {CURLE_WRITE_ERROR, BIDE_KIND_CANCELLED, BIDE_FLAG_LOCAL},
    [HTTP_STOP_OTHER_ORIGIN] = {CURLE_ABORTED_BY_CALLBACK, BIDE_KIND_PERMANENT, 0},
    [HTTP_STOP_STALLED] = {CURLE_OPERATION_TIMEDOUT, BIDE_KIND_TRANSIENT, BIDE_FLAG_TIMED_OUT},
};

CURLcode http_stop_code(enum http_stop stop, CURLcode code)
{
    assert(stop <= HTTP_STOP_STALLED);
    return stop > HTTP_STOP_CUT ? stop_outcomes[stop].code : code;
}

/* Returns true if the peer answered the TLS handshake with something that is not TLS: a port of plain HTTP. libcurl has
 * one code for all failed handshakes, so only the text of the TLS library shows it (OpenSSL; GnuTLS). Without an error
 * buffer, and for other texts, the failure stays transient. */
static bool peer_speaks_no_tls(const struct http_attempt *attempt, CURLcode code)
{
    static const char *const texts[] = {"wrong version number", "unexpected TLS packet"};
    const char *error = attempt->call->options->error_buffer;
    if (code != CURLE_SSL_CONNECT_ERROR || !error || attempt->is_copy)
        return false;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strstr(error, texts[i]))
            return true;
    return false;
}

/* Returns true if libcurl cannot use the proxy's URL: its syntax, or its scheme. The code is that of a proxy whose name
 * was not resolved, or that did not accept the connection: only the text differs. */
static bool proxy_is_unsupported(const struct http_attempt *attempt, CURLcode code)
{
    static const char text[] = "Unsupported proxy";
    const char *error = attempt->call->options->error_buffer;
    return (code == CURLE_COULDNT_RESOLVE_PROXY || code == CURLE_COULDNT_CONNECT) && error && !attempt->is_copy &&
           strncmp(error, text, sizeof text - 1) == 0;
}

/* libcurl limits a header line to 100 KB, and up to 8.x reports a longer one as CURLE_OUT_OF_MEMORY. If there is memory
 * for such a line now, it was the limit. */
static bool head_exceeds_libcurl_limit(const struct http_attempt *attempt, CURLcode code)
{
    if (code != CURLE_OUT_OF_MEMORY || attempt->state.legs == 0 || attempt->state.stop != HTTP_STOP_NONE ||
        !(attempt->response.in_head || attempt->response.status < 200))
        return false;
    void *volatile line = malloc(LINE_PROBE_BYTES); /* otherwise clang removes both calls and assumes success */
    free(line);
    return line != NULL;
}

CURLcode http_failure_code(struct http_attempt *attempt, CURLcode code)
{
    if (head_exceeds_libcurl_limit(attempt, code))
        attempt->state.stop = HTTP_STOP_HEAD_TOO_LONG;
    return http_stop_code(attempt->state.stop, code);
}

static long easy_info_long(CURL *easy, CURLINFO which)
{
    long value = 0;
    return curl_easy_getinfo(easy, which, &value) == CURLE_OK ? value : 0;
}

/* Returns true if libcurl wrote no byte of the request. CURLINFO_REQUEST_SIZE proves that only for plain HTTP: it
 * counts CONNECT as well, and TLS may have sent bytes that are not counted yet. */
static bool request_was_not_written(CURL *easy)
{
    const char *scheme = NULL;
    return curl_easy_getinfo(easy, CURLINFO_SCHEME, &scheme) == CURLE_OK && scheme && strcasecmp(scheme, "http") == 0 &&
           easy_info_long(easy, CURLINFO_HTTP_CONNECTCODE) == 0 && easy_info_long(easy, CURLINFO_REQUEST_SIZE) == 0;
}

/* `rule`: the caller's rule for this CURLcode; it applies where nothing better is known. If part of a body is in the
 * sink, this also prepares the call to resume it: a body that can be resumed does not forbid a retry. */
static enum bide_evidence failure_decide_evidence(struct http_attempt *attempt, const struct bide_rule *rule)
{
    if (attempt->state.legs == 0 || request_was_not_written(attempt->easy))
        return BIDE_EVIDENCE_NOT_SENT;
    if (attempt->call->delivered_bytes > 0 && !http_resume_prepare(attempt) && !attempt->call->options->rewind)
        return BIDE_EVIDENCE_BODY_DELIVERED;
    return rule && attempt->state.stop <= HTTP_STOP_CUT ? rule->evidence : BIDE_EVIDENCE_UNKNOWN;
}

/* A proxy rejected CONNECT: its status decides the kind, and its header fields may have a hint. (libcurl 7.88 stores
 * them only without SUPPRESS_CONNECT_HEADERS, which is not set before the first leg.) The request was not sent. */
static void outcome_apply_connect_status(struct http_attempt *attempt, struct bide_outcome *outcome)
{
    long status = attempt->state.legs > 0 ? 0 : easy_info_long(attempt->easy, CURLINFO_HTTP_CONNECTCODE);
    if (status < 400)
        return;
    attempt->call->connect_status = (int)status;
    outcome->kind = bide_classify_http((int)status, NULL).kind;
    outcome->hint = hint_from_head(attempt, CURLH_CONNECT);
}

/* Returns the error of a socket that is created now; 0: none. */
static int os_socket_error(void)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    close(fd);
    return 0;
}

static bool os_error_is_local(long error)
{
    return bide_classify_errno((int)error, NULL).flags & BIDE_FLAG_LOCAL;
}

/* Marks a connection that could not be made because this host has run out of descriptors, ports or memory as a local
 * failure; its CURLcode is the same as that of a server that is down. libcurl reports the errno of connect but, up to
 * 8.22 at least, not that of socket, and CURLINFO_OS_ERRNO may then be left from an earlier attempt. So a socket is
 * created here: if the process cannot do that, libcurl could not either. */
static void outcome_apply_os_error(const struct http_attempt *attempt, CURLcode code, struct bide_outcome *outcome)
{
    if (code != CURLE_COULDNT_CONNECT)
        return;
    if (os_error_is_local(easy_info_long(attempt->easy, CURLINFO_OS_ERRNO)) || os_error_is_local(os_socket_error()))
        outcome->flags |= BIDE_FLAG_LOCAL;
}

struct bide_outcome http_outcome_from_failure(struct http_attempt *attempt, CURLcode code)
{
    const struct bide_rules *rules = attempt->call->options->curl_rules;
    struct bide_outcome outcome = bide_classify_curl(code, rules);
    /* FAILONERROR: libcurl reports an error, but the response is valid evidence. */
    if (code == CURLE_HTTP_RETURNED_ERROR && attempt->response.status >= 400)
        return http_outcome_from_head(attempt);
    if (attempt->state.stop > HTTP_STOP_CUT) {
        outcome.kind = stop_outcomes[attempt->state.stop].kind;
        outcome.flags = stop_outcomes[attempt->state.stop].flags;
    }
    outcome.evidence = failure_decide_evidence(attempt, http_curl_rule((int)code, rules));
    bool is_permanent = peer_speaks_no_tls(attempt, code) || proxy_is_unsupported(attempt, code);
    if (is_permanent && !http_curl_rule((int)code, rules))
        outcome.kind = BIDE_KIND_PERMANENT;
    outcome_apply_connect_status(attempt, &outcome);
    outcome_apply_os_error(attempt, code, &outcome);
    outcome_forbid_repeat(attempt, &outcome);
    return outcome;
}
