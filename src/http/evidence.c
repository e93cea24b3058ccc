/* evidence.c - from what libcurl saw to an outcome: kind, reach, flags and the server's hint.
 *
 * The kind comes from tables (status, CURLcode), from problem details and from the owner's rules and hook, later ones
 * above earlier ones. The reach is what is known: libcurl never asked to send, or sent no byte: never sent. It was
 * stopped from sending a second time, on a connection that was new: the server refused the stream, for nothing else
 * makes it try again there. Otherwise it may have run. */
#include "exchange.h"

#include <bide/clock.h>
#include <bide/reply.h>

#include <string.h>

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
    for (size_t i = 0; i < BIDE_HTTP_LINES_MAX; i++) {
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
    const struct bide_http_options *o = x->transfer->options;
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
    const struct bide_http_options *o = x->transfer->options;
    struct bide_http_response response = {.easy = x->easy, .status = x->status, .body = body, .whole = whole};
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
        outcome->reach = BIDE_REACH_BODY_DELIVERED;
}

struct bide_outcome http_status_outcome(struct http_exchange *x)
{
    struct bide_outcome outcome = bide_classify_http(x->status, x->transfer->options->status_rules);
    if (outcome.kind != BIDE_KIND_OK)
        outcome.hint = hint_of(x);
    ask_hook(x, (struct bide_text){NULL, 0}, false, &outcome);
    qualify(x, &outcome);
    return outcome;
}

static bool has_details(const struct http_exchange *x)
{
    return x->status >= 400 && bide_details_media_type(http_field(x->easy, "Content-Type")) &&
           !http_field(x->easy, "Content-Encoding").at;
}

bool http_wants_body(const struct http_exchange *x)
{
    const struct http_transfer *t = x->transfer;
    if (!t->sink || x->head_only)
        return false;
    return (x->outcome.kind == BIDE_KIND_OK && t->options->hold_max > 0) ||
           (x->outcome.kind != BIDE_KIND_OK && has_details(x));
}

static void add_details(struct http_exchange *x, struct bide_text body, struct bide_outcome *outcome)
{
    const struct bide_http_options *o = x->transfer->options;
    struct bide_details details;
    if (!has_details(x) || !bide_details_parse(body, &details))
        return;
    outcome->hint = bide_hint_merge(outcome->hint, details.hint);
    const struct bide_details_rule *rule = bide_details_find(&details, o->type_rules, o->type_rule_count);
    if (rule) {
        outcome->kind = rule->kind;
        outcome->reach = rule->reach;
        outcome->flags = rule->flags;
    }
}

struct bide_outcome http_body_outcome(struct http_exchange *x, bool whole)
{
    struct bide_outcome outcome = x->outcome;
    struct bide_text body = {x->body.at ? x->body.at : "", x->body.length};
    if (whole)
        add_details(x, body, &outcome);
    ask_hook(x, body, whole, &outcome);
    qualify(x, &outcome);
    return outcome;
}

/* ---- no answer that counts ---- */

static long info(CURL *easy, CURLINFO what)
{
    long value = 0;
    return curl_easy_getinfo(easy, what, &value) == CURLE_OK ? value : 0;
}

/* CONNECT is a request too: where there was one, the size does not tell. */
static bool sent_nothing(CURL *easy)
{
    return info(easy, CURLINFO_HTTP_CONNECTCODE) == 0 && info(easy, CURLINFO_REQUEST_SIZE) == 0;
}

static enum bide_reach reach_of(struct http_exchange *x)
{
    if (x->legs == 0 || x->stale || sent_nothing(x->easy))
        return BIDE_REACH_NEVER_SENT;
    if (x->transfer->delivered > 0 && !http_resume_possible(x) && !x->transfer->options->rewind)
        return BIDE_REACH_BODY_DELIVERED;
    return x->refused ? BIDE_REACH_REFUSED : BIDE_REACH_MAYBE_RAN;
}

/* A proxy's answer to CONNECT: the request itself was not sent. */
static void heed_proxy(const struct http_exchange *x, struct bide_outcome *outcome)
{
    long status = x->legs > 0 ? 0 : info(x->easy, CURLINFO_HTTP_CONNECTCODE);
    if (status >= 400)
        outcome->kind = bide_classify_http((int)status, NULL).kind;
}

struct bide_outcome http_failure_outcome(struct http_exchange *x, CURLcode code)
{
    static const struct bide_outcome again = {.kind = BIDE_KIND_TRANSIENT, .flags = BIDE_FLAG_FRESH};
    const struct bide_http_options *o = x->transfer->options;
    struct bide_outcome outcome = bide_classify_curl(code, o->curl_rules);
    if (x->replayed || x->stale)
        outcome = again;
    else if (x->sink_failed)
        outcome.kind = BIDE_KIND_CANCELLED;
    else if (x->oversize || x->strayed)
        outcome.kind = x->oversize || code == CURLE_ABORTED_BY_CALLBACK ? BIDE_KIND_PERMANENT : outcome.kind;
    else if (code == CURLE_HTTP_RETURNED_ERROR && x->status >= 400) /* FAILONERROR: the answer counts after all */
        return http_status_outcome(x);
    outcome.reach = reach_of(x);
    heed_proxy(x, &outcome);
    qualify(x, &outcome);
    return outcome;
}
