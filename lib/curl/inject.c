/* inject.c - header fields of our own, and where they must not go.
 *
 * The list that libcurl sends is put together without copying: up to five nodes of ours, the last of which leads on
 * to the owner's list. It is made anew for each attempt.
 *
 * libcurl sends a header list along when it follows a redirect, wherever that leads (of the list it holds back only
 * Authorization and Cookie). A field that was meant for one origin, an idempotency key or a token in a field of its
 * own, is nobody else's business; so at a leg that leads to another scheme, host or port the list is taken away. */
#include "attempt.h"
#include "origin.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODES 5

struct http_inject {
    struct curl_slist node[NODES];
    struct curl_slist *headers;   /* the owner's */
    char first[HTTP_ORIGIN_SIZE]; /* where the first leg went: its URL up to the path */
    char attempt[sizeof BIDE_LAYER_HEADER ": " + BIDE_LAYER_TEXT_MAX];
    char trace[sizeof BIDE_TRACE_HEADER ": " + BIDE_TRACE_TEXT_SIZE];
    char range[sizeof "Range: bytes=-" + 20];
    char *if_range;
    char key[]; /* the whole field */
};

/* Is HTTPHEADER ours? */
static bool owns_headers(const struct bide_curl_options *o)
{
    return o->headers || o->inject != 0 || o->resume || o->before;
}

static bool wanted(const struct bide_curl_options *o)
{
    return owns_headers(o) || o->redirect == BIDE_CURL_REDIRECT_REFUSE;
}

/* There is room. */
static size_t begin_field(char *field, const char *name)
{
    size_t length = strlen(name);
    memcpy(field, name, length + 1);
    return length;
}

/* The key is checked already: it fits. */
static void write_key(struct http_inject *in, size_t size, const struct http_transfer *t)
{
    const struct bide_curl_options *o = t->options;
    size_t used = begin_field(in->key, BIDE_KEY_HEADER ": ");
    bide_key_format(in->key + used, size - used, o->key ? o->key : t->key, o->key_form);
}

CURLcode http_inject_own(struct http_exchange *x)
{
    const struct bide_curl_options *o = x->transfer->options;
    if (!wanted(o) || x->inject)
        return CURLE_OK;
    bool keyed = o->inject & BIDE_CURL_INJECT_KEY;
    size_t key = keyed ? sizeof BIDE_KEY_HEADER ": \"\"" + 2 * strlen(o->key ? o->key : x->transfer->key) : 0;
    x->inject = malloc(sizeof *x->inject + key);
    if (!x->inject)
        return CURLE_OUT_OF_MEMORY;
    x->inject->headers = o->headers;
    x->inject->if_range = NULL;
    x->inject->first[0] = '\0';
    if (keyed)
        write_key(x->inject, key, x->transfer);
    return CURLE_OK;
}

/* ---- one attempt ---- */

static void write_attempt(struct http_inject *in, const struct http_transfer *t, const struct bide_verdict *v,
                          int64_t now_ns)
{
    struct bide_request request = {0};
    if (t->options->inbound)
        bide_layer_apply(t->options->inbound, &request, now_ns);
    int64_t until_ns = t->call.deadline_ns;
    struct bide_layer own = {.attempt = v->attempt,
                             .attempts_max = t->call.policy->attempts_max,
                             .left_ns = until_ns == BIDE_NEVER ? BIDE_NEVER : until_ns - now_ns};
    own = bide_layer_outbound(&request, own);
    size_t used = begin_field(in->attempt, BIDE_LAYER_HEADER ": ");
    bide_layer_format(in->attempt + used, sizeof in->attempt - used, &own);
}

static void write_trace(struct http_inject *in, const struct bide_trace *trace)
{
    struct bide_trace child = bide_trace_child(trace);
    bide_trace_format(in->trace + begin_field(in->trace, BIDE_TRACE_HEADER ": "), &child);
}

/* Range, and If-Range: send the rest if it is still the same, else the whole. */
static bool write_range(struct http_inject *in, const struct http_transfer *t)
{
    static const char name[] = "If-Range: ";
    size_t size = sizeof name + strlen(t->resume->validator);
    free(in->if_range);
    in->if_range = malloc(size);
    if (!in->if_range)
        return false;
    snprintf(in->if_range, size, "%s%s", name, t->resume->validator);
    snprintf(in->range, sizeof in->range, "Range: bytes=%" PRIu64 "-", t->delivered);
    return true;
}

/* Puts a field in front. */
static void push(struct http_inject *in, size_t *used, struct curl_slist **list, char *field)
{
    in->node[*used] = (struct curl_slist){field, *list};
    *list = &in->node[(*used)++];
}

static CURLcode set_list(struct http_exchange *x)
{
    struct http_inject *in = x->inject;
    const struct bide_curl_options *o = x->transfer->options;
    struct curl_slist *list = in->headers;
    size_t used = 0;
    if (o->inject & BIDE_CURL_INJECT_KEY)
        push(in, &used, &list, in->key);
    if (o->inject & BIDE_CURL_INJECT_ATTEMPT)
        push(in, &used, &list, in->attempt);
    if (o->inject & BIDE_CURL_INJECT_TRACE)
        push(in, &used, &list, in->trace);
    if (x->transfer->resume) {
        push(in, &used, &list, in->range);
        push(in, &used, &list, in->if_range);
    }
    return curl_easy_setopt(x->easy, CURLOPT_HTTPHEADER, list);
}

CURLcode http_inject_attempt(struct http_exchange *x, int64_t now_ns)
{
    const struct bide_verdict *v = &x->start;
    const struct http_transfer *t = x->transfer;
    const struct bide_curl_options *o = t->options;
    if (!owns_headers(o))
        return CURLE_OK;
    x->inject->headers = o->headers;
    if (o->before && !o->before(o->context, x->easy, v, &x->inject->headers))
        return CURLE_ABORTED_BY_CALLBACK;
    if (o->before && http_headers_check(x->inject->headers, NULL) != BIDE_OK)
        return CURLE_BAD_FUNCTION_ARGUMENT;
    if (o->inject & BIDE_CURL_INJECT_ATTEMPT)
        write_attempt(x->inject, t, v, now_ns);
    if (o->inject & BIDE_CURL_INJECT_TRACE)
        write_trace(x->inject, &t->trace);
    if (t->resume && !write_range(x->inject, t))
        return CURLE_OUT_OF_MEMORY;
    return set_list(x);
}

void http_inject_disown(struct http_exchange *x)
{
    if (x->inject && owns_headers(x->transfer->options))
        curl_easy_setopt(x->easy, CURLOPT_HTTPHEADER, x->transfer->options->headers);
    if (x->inject)
        free(x->inject->if_range);
    free(x->inject);
    x->inject = NULL;
}

/* ---- legs ---- */

static const char *url_of(CURL *easy)
{
    const char *url = NULL;
    return curl_easy_getinfo(easy, CURLINFO_EFFECTIVE_URL, &url) == CURLE_OK && url ? url : "";
}

/* Nearly always there is no other leg, so this one is only remembered, not understood. */
void http_inject_first_leg(struct http_exchange *x)
{
    if (!x->inject)
        return;
    const char *url = url_of(x->easy), *host = strstr(url, "://");
    size_t length = host ? (size_t)(host + 3 - url) + strcspn(host + 3, "/?#") : 0;
    if (length >= sizeof x->inject->first)
        length = 0; /* a place that no other one equals */
    memcpy(x->inject->first, url, length);
    x->inject->first[length] = '\0';
}

/* `first` is a URL up to its path. Do both begin alike, or are they understood, and of the same origin? */
static bool same_origin(const char *first, const char *other)
{
    char a[HTTP_ORIGIN_SIZE], b[HTTP_ORIGIN_SIZE];
    size_t length = strlen(first);
    if (length > 0 && strncmp(first, other, length) == 0 && strchr("/?#", other[length])) /* or its end */
        return true;
    return bide_curl_origin(a, sizeof a, first) && bide_curl_origin(b, sizeof b, other) && strcmp(a, b) == 0;
}

/* A request that is unsafe without its key, where the key does not go, may not be repeated any more: the call is unsafe
 * from now on. (Never safer: a retry begins where the key is known.) False: the policy wants a key. */
static bool goes_on_without_key(struct http_exchange *x)
{
    const char *method = NULL;
    if (x->transfer->call.safety != BIDE_KEYED)
        return true;
    curl_easy_getinfo(x->easy, CURLINFO_EFFECTIVE_METHOD, &method);
    if (method && bide_method_safety(method, strlen(method)) != BIDE_UNSAFE)
        return true;
    return http_transfer_is(x->transfer, x, BIDE_UNSAFE);
}

bool http_inject_leg(struct http_exchange *x)
{
    if (!x->inject || x->run.strayed)
        return true;
    x->run.strayed = !same_origin(x->inject->first, url_of(x->easy));
    if (!x->run.strayed)
        return true;
    const struct bide_curl_options *o = x->transfer->options;
    if (o->redirect == BIDE_CURL_REDIRECT_REFUSE) {
        x->run.stop = HTTP_STRAYED;
        return false;
    }
    if (!owns_headers(o))
        return true;
    return curl_easy_setopt(x->easy, CURLOPT_HTTPHEADER, NULL) == CURLE_OK && goes_on_without_key(x);
}
