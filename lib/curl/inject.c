/* inject.c - header fields that bide adds to a request, and keeps from other origins.
 *
 * The header list for libcurl is built without copying: up to six nodes of bide's own, followed by the caller's list.
 * The nodes are linked anew for each attempt; all fields but the key are also written anew.
 *
 * When libcurl follows a redirect it sends the header list to the new location, wherever that is (it withholds only
 * Authorization and Cookie). An idempotency key, or a token in a custom field, is meant for a single origin. So when a
 * leg leads to another scheme, host or port, that leg and all later legs of the attempt get another list: only the
 * caller's Accept and User-Agent (which identifies a program, not a user), Range and If-Range of a resumed download,
 * and while the request still has its body the fields that describe the body. Without these libcurl would declare a
 * JSON body as application/x-www-form-urlencoded. */
#include "attempt.h"
#include "origin.h"
#include "record.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define NODES_MAX 6

struct http_inject {
    struct curl_slist node[NODES_MAX];
    struct curl_slist *headers;          /* the caller's list */
    struct curl_slist *abroad;           /* copies of the fields that may go to another origin; NULL: none */
    char first_origin[HTTP_ORIGIN_SIZE]; /* the URL of the first leg, up to its path */
    char attempt[sizeof BIDE_LAYER_HEADER ": " + BIDE_LAYER_TEXT_MAX];
    char trace[sizeof BIDE_TRACE_HEADER ": " + BIDE_TRACE_TEXT_SIZE];
    char range[sizeof "Range: bytes=-" + 20];
    char *if_range;
    char *trace_state; /* the complete field; NULL: none is sent */
    char key[];        /* the complete field: name and value */
};

/* Returns true if bide sets CURLOPT_HTTPHEADER. */
static bool options_own_header_list(const struct bide_curl_options *o)
{
    return o->headers || o->inject != 0 || o->resume || o->before;
}

static bool options_need_inject(const struct bide_curl_options *o)
{
    return options_own_header_list(o) || o->redirect == BIDE_CURL_REDIRECT_REFUSE;
}

/* The field's array is large enough for every name. */
static size_t field_write_name(char *field, const char *name)
{
    size_t length = strlen(name);
    memcpy(field, name, length + 1);
    return length;
}

/* Cannot fail: the key was checked with the options, and http_inject_install allocated enough for it. */
static void inject_write_key(struct http_inject *in, size_t size, const struct http_call *call)
{
    const struct bide_curl_options *o = call->options;
    size_t used = field_write_name(in->key, BIDE_KEY_HEADER ": ");
    size_t written = bide_key_format(in->key + used, size - used, o->key ? o->key : call->key, o->key_form);
    assert(written > 0);
    (void)written;
}

CURLcode http_inject_install(struct http_attempt *attempt)
{
    const struct bide_curl_options *o = attempt->call->options;
    if (!options_need_inject(o) || attempt->inject)
        return CURLE_OK;
    bool keyed = o->inject & BIDE_CURL_INJECT_KEY;
    size_t key = keyed ? sizeof BIDE_KEY_HEADER ": \"\"" + 2 * strlen(o->key ? o->key : attempt->call->key) : 0;
    attempt->inject = malloc(sizeof *attempt->inject + key);
    if (!attempt->inject)
        return CURLE_OUT_OF_MEMORY;
    attempt->inject->headers = o->headers;
    attempt->inject->if_range = NULL;
    attempt->inject->trace_state = NULL;
    attempt->inject->abroad = NULL;
    attempt->inject->first_origin[0] = '\0';
    if (keyed)
        inject_write_key(attempt->inject, key, attempt->call);
    return CURLE_OK;
}

/* ---- one attempt ---- */

static void inject_write_attempt(struct http_inject *in, const struct http_call *call, const struct bide_verdict *v,
                                 int64_t now_ns)
{
    struct bide_request request = {0};
    if (call->options->inbound)
        bide_layer_apply(call->options->inbound, &request, now_ns);
    int64_t until_ns = call->engine.deadline_ns;
    struct bide_layer layer = {.attempt = v->attempt,
                               .attempts_max = call->engine.policy->attempts_max,
                               .left_ns = until_ns == BIDE_NEVER ? BIDE_NEVER : until_ns - now_ns};
    layer = bide_layer_outbound(&request, layer);
    size_t used = field_write_name(in->attempt, BIDE_LAYER_HEADER ": ");
    bide_layer_format(in->attempt + used, sizeof in->attempt - used, &layer);
}

/* The parent id is that of the attempt's events, if there is a listener. */
static void inject_write_trace(struct http_inject *in, const struct http_call *call, uint32_t attempt)
{
    struct bide_trace child = call->report ? bide_report_trace(call->report, attempt) : bide_trace_child(&call->trace);
    bide_trace_format(in->trace + field_write_name(in->trace, BIDE_TRACE_HEADER ": "), &child);
}

/* Writes tracestate, which belongs to the trace that the caller continues: not to a new one. */
static bool inject_write_trace_state(struct http_inject *in, const struct http_call *call)
{
    static const char name[] = "tracestate: ";
    const char *state = call->options->trace_state;
    if (!state || call->trace.parent == 0 || in->trace_state)
        return true;
    size_t size = sizeof name + strlen(state);
    in->trace_state = malloc(size);
    if (!in->trace_state)
        return false;
    snprintf(in->trace_state, size, "%s%s", name, state);
    return true;
}

/* Writes Range and If-Range: the server sends the rest if the resource is unchanged, otherwise all of it. */
static bool inject_write_range(struct http_inject *in, const struct http_call *call)
{
    static const char name[] = "If-Range: ";
    size_t size = sizeof name + strlen(call->resume->validator);
    free(in->if_range);
    in->if_range = malloc(size);
    if (!in->if_range)
        return false;
    snprintf(in->if_range, size, "%s%s", name, call->resume->validator);
    snprintf(in->range, sizeof in->range, "Range: bytes=%" PRIu64 "-", call->delivered_bytes);
    return true;
}

/* Prepends a field to the list. */
static void list_push_field(struct http_inject *in, size_t *used, struct curl_slist **list, char *field)
{
    assert(*used < NODES_MAX);
    in->node[*used] = (struct curl_slist){field, *list};
    *list = &in->node[(*used)++];
}

static CURLcode inject_set_list(struct http_attempt *attempt)
{
    struct http_inject *in = attempt->inject;
    const struct bide_curl_options *o = attempt->call->options;
    struct curl_slist *list = in->headers;
    size_t used = 0;
    if (o->inject & BIDE_CURL_INJECT_KEY)
        list_push_field(in, &used, &list, in->key);
    if (o->inject & BIDE_CURL_INJECT_ATTEMPT)
        list_push_field(in, &used, &list, in->attempt);
    if (o->inject & BIDE_CURL_INJECT_TRACE)
        list_push_field(in, &used, &list, in->trace);
    if (in->trace_state)
        list_push_field(in, &used, &list, in->trace_state);
    if (attempt->call->resume) {
        list_push_field(in, &used, &list, in->range);
        list_push_field(in, &used, &list, in->if_range);
    }
    return curl_easy_setopt(attempt->easy, CURLOPT_HTTPHEADER, list);
}

CURLcode http_inject_prepare_attempt(struct http_attempt *attempt, int64_t now_ns)
{
    const struct bide_verdict *v = &attempt->start;
    const struct http_call *call = attempt->call;
    const struct bide_curl_options *o = call->options;
    assert(attempt->inject);
    if (!options_own_header_list(o))
        return CURLE_OK;
    attempt->inject->headers = o->headers;
    if (o->before && !o->before(o->context, attempt->easy, v, &attempt->inject->headers))
        return CURLE_ABORTED_BY_CALLBACK;
    if (o->before && http_headers_check(attempt->inject->headers, NULL) != BIDE_OK)
        return CURLE_BAD_FUNCTION_ARGUMENT;
    if (o->inject & BIDE_CURL_INJECT_ATTEMPT)
        inject_write_attempt(attempt->inject, call, v, now_ns);
    if (o->inject & BIDE_CURL_INJECT_TRACE)
        inject_write_trace(attempt->inject, call, v->attempt);
    if (!inject_write_trace_state(attempt->inject, call))
        return CURLE_OUT_OF_MEMORY;
    if (call->resume && !inject_write_range(attempt->inject, call))
        return CURLE_OUT_OF_MEMORY;
    return inject_set_list(attempt);
}

static struct curl_slist *call_owner_headers(const struct http_call *call)
{
    return call->record ? call->record->set.headers : call->options->headers;
}

void http_inject_uninstall(struct http_attempt *attempt)
{
    assert(attempt->inject);
    if (options_own_header_list(attempt->call->options))
        curl_easy_setopt(attempt->easy, CURLOPT_HTTPHEADER, call_owner_headers(attempt->call));
    curl_slist_free_all(attempt->inject->abroad);
    free(attempt->inject->if_range);
    free(attempt->inject->trace_state);
    free(attempt->inject);
    attempt->inject = NULL;
}

/* ---- legs ---- */

static const char *easy_effective_url(CURL *easy)
{
    const char *url = NULL;
    return curl_easy_getinfo(easy, CURLINFO_EFFECTIVE_URL, &url) == CURLE_OK && url ? url : "";
}

/* Stores the URL without parsing it: nearly all attempts have a single leg, and then it is never compared. */
void http_inject_note_first_leg(struct http_attempt *attempt)
{
    assert(attempt->inject);
    const char *url = easy_effective_url(attempt->easy), *host = strstr(url, "://");
    size_t length = host ? (size_t)(host + 3 - url) + strcspn(host + 3, "/?#") : 0;
    if (length >= sizeof attempt->inject->first_origin)
        length = 0; /* longer than any origin: an empty text equals no URL */
    memcpy(attempt->inject->first_origin, url, length);
    attempt->inject->first_origin[length] = '\0';
}

/* Compares the stored beginning of a URL with another URL: equal bytes first, then the parsed origins. */
static bool urls_have_same_origin(const char *first_origin, const char *other)
{
    char a[HTTP_ORIGIN_SIZE], b[HTTP_ORIGIN_SIZE];
    size_t length = strlen(first_origin);
    if (length > 0 && strncmp(first_origin, other, length) == 0 &&
        strchr("/?#", other[length])) /* or the terminating NUL */
        return true;
    return bide_curl_origin(a, sizeof a, first_origin) && bide_curl_origin(b, sizeof b, other) && strcmp(a, b) == 0;
}

/* The key is not sent to the new origin. If the method is unsafe without it, the call is unsafe from now on and is not
 * repeated. (A safe method changes nothing: a retry starts at the first origin, which knows the key.) Returns false if
 * the policy requires a key. */
static bool call_lose_key(struct http_attempt *attempt)
{
    const char *method = NULL;
    if (attempt->call->engine.safety != BIDE_KEYED)
        return true;
    curl_easy_getinfo(attempt->easy, CURLINFO_EFFECTIVE_METHOD, &method);
    if (method && bide_method_safety(method, strlen(method)) != BIDE_UNSAFE)
        return true;
    return http_call_set_safety(attempt->call, attempt, BIDE_UNSAFE);
}

/* Returns true if the line is a field of that name, or its removal ("Name:"). */
static bool line_has_name(const char *line, const char *name)
{
    size_t length = strlen(name);
    return strncasecmp(line, name, length) == 0 && (line[length] == ':' || line[length] == ';');
}

/* Returns true if the field tells another origin nothing but the form of the request: no credentials, no identity. */
static bool line_may_leave_origin(const char *line, bool has_body)
{
    static const char *const names[] = {"Accept", "User-Agent", "Content-Type", "Content-Encoding", "Content-Language"};
    size_t count = has_body ? sizeof names / sizeof *names : 2;
    for (size_t i = 0; i < count; i++)
        if (line_has_name(line, names[i]))
            return true;
    return false;
}

static bool inject_append_abroad(struct http_inject *in, const char *line)
{
    struct curl_slist *longer = curl_slist_append(in->abroad, line);
    if (longer)
        in->abroad = longer;
    return longer != NULL;
}

/* Replaces the list of an earlier leg by copies of the fields that may leave the origin. A resumed download goes on
 * where the redirect leads, which is where its body came from. False: out of memory. */
static bool inject_copy_abroad(struct http_inject *in, bool has_body, bool resumes)
{
    bool copied = true;
    curl_slist_free_all(in->abroad);
    in->abroad = NULL;
    for (const struct curl_slist *line = in->headers; line && copied; line = line->next)
        copied = !line_may_leave_origin(line->data, has_body) || inject_append_abroad(in, line->data);
    return copied && (!resumes || (inject_append_abroad(in, in->range) && inject_append_abroad(in, in->if_range)));
}

/* libcurl drops the body after 303, and that of a POST, which becomes a GET, after 301 and 302. */
static bool leg_has_body(CURL *easy, int redirect)
{
    const char *method = NULL;
    curl_easy_getinfo(easy, CURLINFO_EFFECTIVE_METHOD, &method);
    return redirect != 303 && method && strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0;
}

/* Sets the header list of a leg at another origin. The handle must not keep a list that is about to be freed. */
static bool inject_set_list_abroad(struct http_attempt *attempt, int redirect)
{
    return curl_easy_setopt(attempt->easy, CURLOPT_HTTPHEADER, NULL) == CURLE_OK &&
           inject_copy_abroad(attempt->inject, leg_has_body(attempt->easy, redirect), attempt->call->resume != NULL) &&
           curl_easy_setopt(attempt->easy, CURLOPT_HTTPHEADER, attempt->inject->abroad) == CURLE_OK;
}

bool http_inject_prepare_leg(struct http_attempt *attempt, int redirect)
{
    if (!attempt->inject)
        return true;
    if (attempt->state.left_origin)
        return !attempt->inject->abroad || inject_set_list_abroad(attempt, redirect);
    attempt->state.left_origin =
        !urls_have_same_origin(attempt->inject->first_origin, easy_effective_url(attempt->easy));
    if (!attempt->state.left_origin)
        return true;
    const struct bide_curl_options *o = attempt->call->options;
    if (o->redirect == BIDE_CURL_REDIRECT_REFUSE) {
        attempt->state.stop = HTTP_STOP_OTHER_ORIGIN;
        return false;
    }
    if (!options_own_header_list(o))
        return true;
    return inject_set_list_abroad(attempt, redirect) && call_lose_key(attempt);
}
