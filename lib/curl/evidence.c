/* evidence.c - from what libcurl saw to an outcome: kind, reach, flags and the server's hint.
 *
 * The kind comes from tables (status, CURLcode), from problem details and from the owner's rules and hook, later
 * ones above earlier ones. The reach is what is known: libcurl never came to send, or sent no byte: never sent. It
 * was stopped from sending a second time, and the connection had been made for the first: the server refused the
 * stream. Otherwise it may have run. */
#include "classify_curl.h"
#include "attempt.h"

#include <bide/clock.h>
#include <bide/retry_after.h>

#include <string.h>
#include <strings.h>

/* ---- header fields ---- */

static struct bide_text field_at(CURL *easy, const char *name, size_t index)
{
    struct curl_header *h = NULL;
    if (curl_easy_header(easy, name, index, CURLH_HEADER, -1, &h) != CURLHE_OK)
        return (struct bide_text){NULL, 0};
    return (struct bide_text){h->value, strlen(h->value)};
}

struct bide_text http_field(CURL *easy, const char *name)
{
    return field_at(easy, name, 0);
}

/* Several fields of one name: the longest wait. */
static struct bide_hint retry_after(CURL *easy, struct bide_text date, int64_t wall_s)
{
    struct bide_hint hint = {0};
    for (size_t i = 0; i < BIDE_CURL_LINES_MAX; i++) {
        struct bide_text value = field_at(easy, "Retry-After", i);
        if (!value.at)
            break;
        hint = bide_hint_merge(hint, bide_hint_retry_after(value, date, wall_s));
    }
    return hint;
}

/* Fields of lesser standing are read only when Retry-After said nothing. */
static struct bide_hint other_waits(const struct http_exchange *x, struct bide_text date, int64_t wall_s)
{
    static const char *const milliseconds[] = {"retry-after-ms", "x-ms-retry-after-ms", "x-amz-retry-after"};
    const struct bide_curl_options *o = x->transfer->options;
    struct bide_hint hint = {0};
    for (size_t i = 0; i < sizeof milliseconds / sizeof *milliseconds; i++)
        hint = bide_hint_merge(hint, bide_hint_milliseconds(http_field(x->easy, milliseconds[i])));
    if (hint.kind == BIDE_HINT_NONE)
        hint = bide_hint_ratelimit(http_field(x->easy, "RateLimit"));
    if (hint.kind == BIDE_HINT_NONE && o->reset_header)
        hint = bide_hint_reset(http_field(x->easy, o->reset_header), o->reset_unit, date, wall_s);
    return hint;
}

static struct bide_hint stops(CURL *easy)
{
    static const char *const fields[] = {BIDE_RETRY_HEADER, "x-should-retry", "stripe-should-retry"};
    struct bide_hint hint = {0};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        hint = bide_hint_merge(hint, bide_hint_should_retry(http_field(easy, fields[i])));
    struct bide_text pushback = http_field(easy, "grpc-retry-pushback-ms");
    return pushback.at ? bide_hint_merge(hint, bide_hint_grpc_pushback(pushback)) : hint;
}

static struct bide_hint hint_of(const struct http_exchange *x)
{
    struct bide_text date = http_field(x->easy, "Date");
    int64_t wall_s = bide_wall_s();
    struct bide_hint hint = retry_after(x->easy, date, wall_s);
    if (hint.kind == BIDE_HINT_NONE)
        hint = other_waits(x, date, wall_s);
    return bide_hint_merge(hint, stops(x->easy));
}

/* ---- an answer ---- */

static void ask_hook(struct http_exchange *x, struct bide_text body, bool whole, struct bide_outcome *outcome)
{
    const struct bide_curl_options *o = x->transfer->options;
    struct bide_curl_response response = {.easy = x->easy, .status = x->answer.status, .body = body, .whole = whole};
    bool fine = outcome->kind == BIDE_KIND_OK;
    if (o->classify)
        o->classify(o->context, &response, outcome);
    if (fine && outcome->kind != BIDE_KIND_OK && outcome->hint.kind == BIDE_HINT_NONE)
        outcome->hint = hint_of(x); /* the tables had no reason to look for it */
}

/* What makes a failure final, whatever the tables say. Without a sink the owner's own function may have some of it. */
static void qualify(const struct http_exchange *x, struct bide_outcome *outcome)
{
    curl_off_t written = 0;
    if (outcome->kind == BIDE_KIND_OK)
        return;
    if (http_body_spent(x))
        outcome->flags |= BIDE_FLAG_BODY_SPENT;
    if (!x->transfer->sink && curl_easy_getinfo(x->easy, CURLINFO_SIZE_DOWNLOAD_T, &written) == CURLE_OK && written > 0)
        outcome->evidence = BIDE_EVIDENCE_BODY_DELIVERED;
}

struct bide_outcome http_status_outcome(struct http_exchange *x)
{
    struct bide_outcome outcome = bide_classify_http(x->answer.status, x->transfer->options->status_rules);
    if (outcome.kind != BIDE_KIND_OK)
        outcome.hint = hint_of(x);
    ask_hook(x, (struct bide_text){NULL, 0}, false, &outcome);
    qualify(x, &outcome);
    return outcome;
}

static bool has_details(const struct http_exchange *x)
{
    return x->answer.status >= 400 && bide_details_media_type(http_field(x->easy, "Content-Type")) &&
           !http_field(x->easy, "Content-Encoding").at;
}

bool http_wants_body(const struct http_exchange *x)
{
    const struct http_transfer *t = x->transfer;
    if (!t->sink || x->run.head_only)
        return false;
    return (x->run.outcome.kind == BIDE_KIND_OK && t->options->hold_max > 0) ||
           (x->run.outcome.kind != BIDE_KIND_OK && has_details(x));
}

static void add_details(struct http_exchange *x, struct bide_text body, struct bide_outcome *outcome)
{
    const struct bide_curl_options *o = x->transfer->options;
    struct bide_details details;
    if (!has_details(x) || !bide_details_parse(body, &details))
        return;
    outcome->hint = bide_hint_merge(outcome->hint, details.hint);
    const struct bide_details_rule *rule = bide_details_find(&details, o->type_rules, o->type_rule_count);
    if (rule) {
        outcome->kind = rule->kind;
        outcome->evidence = rule->evidence;
        outcome->flags = rule->flags;
    }
}

struct bide_outcome http_body_outcome(struct http_exchange *x, bool whole)
{
    struct bide_outcome outcome = x->run.outcome;
    size_t head = x->answer.shown_bytes;
    struct bide_text body = {x->body.at ? x->body.at + head : "", x->body.length - head};
    if (whole)
        add_details(x, body, &outcome);
    ask_hook(x, body, whole, &outcome);
    qualify(x, &outcome);
    return outcome;
}

/* ---- no answer that counts ---- */

/* What it means that we ended the transfer. */
static const struct {
    CURLcode code;
    enum bide_kind kind;
    uint32_t flags;
} ended_by[] = {
    [HTTP_STALE] = {CURLE_SEND_ERROR, BIDE_KIND_TRANSIENT, BIDE_FLAG_FRESH},
    [HTTP_REPLAY] = {CURLE_GOT_NOTHING, BIDE_KIND_TRANSIENT, BIDE_FLAG_FRESH},
    [HTTP_REFUSED] = {CURLE_HTTP2_STREAM, BIDE_KIND_TRANSIENT, BIDE_FLAG_FRESH},
    [HTTP_OVERSIZE] = {CURLE_WEIRD_SERVER_REPLY, BIDE_KIND_PERMANENT, 0},
    [HTTP_UNTAKEN] = {CURLE_WRITE_ERROR, BIDE_KIND_CANCELLED, 0},
    [HTTP_STRAYED] = {CURLE_ABORTED_BY_CALLBACK, BIDE_KIND_PERMANENT, 0},
};

CURLcode http_stop_code(enum http_stop stop, CURLcode code)
{
    return stop > HTTP_CUT ? ended_by[stop].code : code;
}

static long info(CURL *easy, CURLINFO what)
{
    long value = 0;
    return curl_easy_getinfo(easy, what, &value) == CURLE_OK ? value : 0;
}

/* Not a byte of the request was written. CONNECT is a request too, and TLS may have sent some of what is not counted
 * yet: where either is, the size does not tell. */
static bool sent_nothing(CURL *easy)
{
    const char *scheme = NULL;
    return curl_easy_getinfo(easy, CURLINFO_SCHEME, &scheme) == CURLE_OK && scheme && strcasecmp(scheme, "http") == 0 &&
           info(easy, CURLINFO_HTTP_CONNECTCODE) == 0 && info(easy, CURLINFO_REQUEST_SIZE) == 0;
}

/* `rule`: the owner's, which holds where nothing is known better. */
static enum bide_evidence reach_of(struct http_exchange *x, const struct bide_rule *rule)
{
    if (x->run.legs == 0 || x->run.stop == HTTP_STALE || sent_nothing(x->easy))
        return BIDE_EVIDENCE_NOT_SENT;
    if (x->transfer->delivered > 0 && !http_resume_possible(x) && !x->transfer->options->rewind)
        return BIDE_EVIDENCE_BODY_DELIVERED;
    if (x->run.stop == HTTP_REFUSED)
        return BIDE_EVIDENCE_REJECTED;
    return rule && x->run.stop <= HTTP_CUT ? rule->evidence : BIDE_EVIDENCE_UNKNOWN;
}

/* A proxy's answer to CONNECT: the request itself was not sent. */
static void heed_proxy(const struct http_exchange *x, struct bide_outcome *outcome)
{
    long status = x->run.legs > 0 ? 0 : info(x->easy, CURLINFO_HTTP_CONNECTCODE);
    if (status >= 400)
        outcome->kind = bide_classify_http((int)status, NULL).kind;
}

struct bide_outcome http_failure_outcome(struct http_exchange *x, CURLcode code)
{
    const struct bide_rules *rules = x->transfer->options->curl_rules;
    struct bide_outcome outcome = bide_classify_curl(code, rules);
    if (code == CURLE_HTTP_RETURNED_ERROR && x->answer.status >= 400) /* FAILONERROR: the answer counts after all */
        return http_status_outcome(x);
    if (x->run.stop > HTTP_CUT) {
        outcome.kind = ended_by[x->run.stop].kind;
        outcome.flags = ended_by[x->run.stop].flags;
    }
    outcome.evidence = reach_of(x, http_curl_rule((int)code, rules));
    heed_proxy(x, &outcome);
    qualify(x, &outcome);
    return outcome;
}
