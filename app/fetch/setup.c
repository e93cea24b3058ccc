/* setup.c - translates a request into options of a libcurl handle and of libbide-curl.
 *
 * The method is chosen as by curl: -X if given, else HEAD, PUT for an upload, POST for data, GET. libbide-curl gets the
 * request body, not libcurl, so that it can be sent again. */
#include "setup.h"

#include "text/slice.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUFFER_BYTES     131072u
#define BUFFER_BYTES_MIN 1024u /* libcurl's */
#define READS_PER_CHECK  100u
#define TRACE_STATE_MAX  8192u

/* ---- method and body ---- */

static bool request_has_method(const struct fetch_request *r, const char *name)
{
    return r->method && strcmp(r->method, name) == 0;
}

/* Methods that send Content-Length even for an empty body: servers may require it. */
static bool request_needs_body(const struct fetch_request *r)
{
    return request_has_method(r, "POST") || request_has_method(r, "PUT") || request_has_method(r, "PATCH");
}

static bool request_has_data(const struct fetch_request *r)
{
    return r->data.at && !r->data_in_query;
}

/* Of a file on standard input, only the part after the current offset. */
static struct bide_curl_body body_from_file(int fd, const struct stat *st)
{
    off_t from = lseek(fd, 0, SEEK_CUR);
    from = from > 0 ? from : 0;
    int64_t length = st->st_size > from ? st->st_size - from : 0;
    return (struct bide_curl_body){.kind = BIDE_CURL_BODY_FILE, .fd = fd, .offset = from, .length = length};
}

bool fetch_upload_is_one_shot(const struct fetch_request *r)
{
    struct stat st;
    return r->upload_fd >= 0 && !(fstat(r->upload_fd, &st) == 0 && S_ISREG(st.st_mode));
}

/* For a stream, the caller sets the read function. */
static struct bide_curl_body body_from_request(const struct fetch_request *r)
{
    struct stat st;
    if (r->upload_fd >= 0 && fstat(r->upload_fd, &st) == 0 && S_ISREG(st.st_mode))
        return body_from_file(r->upload_fd, &st);
    if (r->upload_fd >= 0)
        return (struct bide_curl_body){.kind = BIDE_CURL_BODY_STREAM, .fd = r->upload_fd, .length = -1};
    if (request_has_data(r))
        return (struct bide_curl_body){
            .kind = BIDE_CURL_BODY_MEMORY, .at = r->data.at, .length = (int64_t)r->data.length};
    if (request_needs_body(r))
        return (struct bide_curl_body){.kind = BIDE_CURL_BODY_MEMORY, .at = "", .length = 0};
    return (struct bide_curl_body){.kind = BIDE_CURL_BODY_REPEATABLE};
}

/* ---- options of a handle ---- */

/* Sets options until the first failure, and records its code. */
struct setter {
    CURL *easy;
    CURLcode code;
};

static void easy_set_long(struct setter *s, CURLoption option, long value)
{
    if (s->code == CURLE_OK)
        s->code = curl_easy_setopt(s->easy, option, value);
}

/* NULL: option not given, libcurl's default stays. */
static void easy_set_text(struct setter *s, CURLoption option, const char *value)
{
    if (s->code == CURLE_OK && value)
        s->code = curl_easy_setopt(s->easy, option, value);
}

static void easy_set_method(struct setter *s, const struct fetch_request *r)
{
    if (r->upload_fd >= 0)
        easy_set_long(s, CURLOPT_UPLOAD, 1);
    else if (request_has_data(r) || request_needs_body(r))
        easy_set_long(s, CURLOPT_POST, 1);
    if (r->head || request_has_method(r, "HEAD"))
        easy_set_long(s, CURLOPT_NOBODY, 1);
    else
        easy_set_text(s, CURLOPT_CUSTOMREQUEST, r->method);
}

static void easy_set_protocols(struct setter *s, const struct fetch_request *r)
{
#if LIBCURL_VERSION_NUM >= 0x075500
    easy_set_text(s, CURLOPT_PROTOCOLS_STR, "http,https");
    easy_set_text(s, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
#else
    easy_set_long(s, CURLOPT_PROTOCOLS, CURLPROTO_HTTP | CURLPROTO_HTTPS);
    easy_set_long(s, CURLOPT_REDIR_PROTOCOLS, CURLPROTO_HTTP | CURLPROTO_HTTPS);
#endif
#if LIBCURL_VERSION_NUM >= 0x075700
    easy_set_long(s, CURLOPT_QUICK_EXIT, 1); /* do not wait for a resolver thread at exit */
#endif
    if (r->http_version != CURL_HTTP_VERSION_NONE)
        easy_set_long(s, CURLOPT_HTTP_VERSION, r->http_version);
    easy_set_long(s, CURLOPT_FOLLOWLOCATION, r->location);
    easy_set_long(s, CURLOPT_MAXREDIRS, r->redirects);
}

static void easy_set_credentials(struct setter *s, const struct fetch_request *r)
{
    easy_set_text(s, CURLOPT_USERPWD, r->user);
    easy_set_long(s, CURLOPT_NETRC, r->netrc ? CURL_NETRC_OPTIONAL : CURL_NETRC_IGNORED);
    easy_set_text(s, CURLOPT_PROXY, r->proxy);
    easy_set_text(s, CURLOPT_NOPROXY, r->no_proxy);
    easy_set_text(s, CURLOPT_CAINFO, r->ca_file);
    easy_set_text(s, CURLOPT_SSLCERT, r->cert);
    easy_set_text(s, CURLOPT_SSLKEY, r->key);
    if (r->insecure) {
        easy_set_long(s, CURLOPT_SSL_VERIFYPEER, 0);
        easy_set_long(s, CURLOPT_SSL_VERIFYHOST, 0);
    }
}

/* While the server sends faster than libcurl (7.88) reads, libcurl fills up to READS_PER_CHECK buffers before it
 * compares with the rate: with these buffers, what a second allows. */
static uint64_t rate_buffer_bytes(uint64_t rate)
{
    uint64_t bytes = rate / READS_PER_CHECK;
    return bytes < BUFFER_BYTES_MIN ? BUFFER_BYTES_MIN : bytes < BUFFER_BYTES ? bytes : BUFFER_BYTES;
}

/* Returns the longest pause by which libcurl then holds the rate; no byte moves in it. An upload reads less at once. */
static int64_t rate_pause_ns(uint64_t rate)
{
    return rate == 0 ? 0 : (int64_t)(READS_PER_CHECK * rate_buffer_bytes(rate) * (uint64_t)BIDE_S / rate);
}

static void easy_set_rate(struct setter *s, uint64_t rate)
{
    if (rate == 0)
        return;
    easy_set_long(s, CURLOPT_BUFFERSIZE, (long)rate_buffer_bytes(rate));
    if (s->code == CURLE_OK)
        s->code = curl_easy_setopt(s->easy, CURLOPT_MAX_RECV_SPEED_LARGE, (curl_off_t)rate);
    if (s->code == CURLE_OK)
        s->code = curl_easy_setopt(s->easy, CURLOPT_MAX_SEND_SPEED_LARGE, (curl_off_t)rate);
}

CURL *fetch_easy_new(const struct fetch_request *r, const char *url, CURLcode *code)
{
    struct setter s = {.easy = curl_easy_init(), .code = CURLE_OK};
    if (!s.easy) {
        *code = CURLE_OUT_OF_MEMORY;
        return NULL;
    }
    easy_set_text(&s, CURLOPT_URL, url);
    easy_set_long(&s, CURLOPT_NOSIGNAL, 1);
    easy_set_long(&s, CURLOPT_TCP_KEEPALIVE, 1);
    easy_set_long(&s, CURLOPT_BUFFERSIZE, BUFFER_BYTES);
    easy_set_rate(&s, r->rate_limit);
    easy_set_long(&s, CURLOPT_IPRESOLVE, r->ip_version);
    easy_set_protocols(&s, r);
    easy_set_method(&s, r);
    easy_set_credentials(&s, r);
    easy_set_text(&s, CURLOPT_USERAGENT, r->user_agent);
    easy_set_text(&s, CURLOPT_RANGE, r->range);
    easy_set_text(&s, CURLOPT_UNIX_SOCKET_PATH, r->unix_socket);
    easy_set_text(&s, CURLOPT_ACCEPT_ENCODING, r->compressed ? "" : NULL);
    if (s.code == CURLE_OK && r->resolve)
        s.code = curl_easy_setopt(s.easy, CURLOPT_RESOLVE, r->resolve);
    *code = s.code;
    if (s.code == CURLE_OK)
        return s.easy;
    curl_easy_cleanup(s.easy);
    return NULL;
}

/* ---- options of libbide-curl ---- */

/* An Idempotency-Key among the -H makes the request keyed. A field without a value is not sent, and does not count. */
static bool headers_have_key(const struct curl_slist *headers)
{
    static const char name[] = BIDE_KEY_HEADER ":";
    for (; headers; headers = headers->next)
        if (strncasecmp(headers->data, name, sizeof name - 1) == 0)
            return text_trim(text_from(headers->data + sizeof name - 1), TEXT_OWS).length > 0;
    return false;
}

static bool is_field_value(const char *text)
{
    size_t length = strlen(text);
    for (size_t i = 0; i < length; i++)
        if (((unsigned char)text[i] < ' ' && text[i] != '\t') || text[i] == 0x7f)
            return false;
    return length <= TRACE_STATE_MAX;
}

/* The trace of the process that started bide goes on, as in `bide run`. As a malformed TRACEPARENT, a TRACESTATE that
 * no field can carry is ignored. */
static void request_inject_trace(struct bide_curl_options *o)
{
    const char *state = getenv("TRACESTATE");
    o->inject |= BIDE_CURL_INJECT_TRACE;
    o->traceparent = getenv("TRACEPARENT");
    if (o->traceparent && state && is_field_value(state))
        o->trace_state = state;
}

void fetch_request_options(struct bide_curl_options *o, const struct fetch_request *r, size_t index)
{
    *o = (struct bide_curl_options){0};
    o->policy = r->policy;
    o->status_rules = r->status_rules;
    o->headers = r->headers;
    o->no_headers = true; /* fetch_easy_new sets no list */
    o->safety = r->safety;
    if (o->safety == BIDE_CURL_BY_METHOD && headers_have_key(r->headers))
        o->safety = BIDE_CURL_KEYED;
    if (r->keyed) {
        o->inject = BIDE_CURL_INJECT_KEY;
        o->key = r->idempotency_key;
        o->key_form = r->key_form;
    }
    if (r->traced)
        request_inject_trace(o);
    if (r->inbound.attempt > 0)
        o->inbound = &r->inbound;
    o->deadline_ns = r->deadline_ns;
    o->stall_timeout_ns = r->stall_ns == BIDE_NEVER ? BIDE_NEVER : r->stall_ns + rate_pause_ns(r->rate_limit);
    o->seed = r->seed != 0 ? r->seed + index : 0;
    o->body = body_from_request(r);
    o->resume = !r->include && !r->head;
}
