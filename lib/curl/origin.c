/* origin.c - the origin of a URL (scheme, host, port), and the target of that origin.
 *
 * The origin names the target of a call, and decides whether a redirect leaves the server that the caller's headers
 * were meant for. So the parser is strict: it accepts http and https URLs (http if there is no scheme) with plain host
 * names and addresses and rejects everything else. User, password, path and query are never copied. */
#include "origin.h"
#include "http/value.h"
#include "record.h"

#include <string.h>

/* Returns true if the text begins with the word, ignoring case. The word must be in lower case. */
static bool text_has_prefix(const char *text, const char *word)
{
    for (; *word != '\0'; text++, word++)
        if (http_lower(*text) != *word)
            return false;
    return true;
}

static bool is_host_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
}

static bool is_address_char(char c)
{
    return (c >= 'a' && c <= 'f') || (c >= '0' && c <= '9') || c == ':' || c == '.';
}

/* The rest of the output buffer. */
struct origin_writer {
    char *at;
    size_t capacity; /* the terminating NUL included */
};

static bool origin_append(struct origin_writer *writer, const char *text, size_t length)
{
    if (length >= writer->capacity)
        return false;
    for (size_t i = 0; i < length; i++)
        *writer->at++ = http_lower(text[i]);
    writer->capacity -= length;
    *writer->at = '\0';
    return true;
}

/* Returns the length of the host at `text`, brackets included; 0 if it is not a host that this parser accepts. */
static size_t host_length(const char *text, size_t limit)
{
    size_t n = 0;
    if (limit > 0 && text[0] == '[') {
        for (n = 1; n < limit && is_address_char(http_lower(text[n])); n++)
            continue;
        return n > 1 && n < limit && text[n] == ']' ? n + 1 : 0;
    }
    while (n < limit && is_host_char(http_lower(text[n])))
        n++;
    return n;
}

/* Appends ":8080", or the default port if the URL has none. */
static bool origin_append_port(struct origin_writer *writer, const char *text, size_t length, const char *default_port)
{
    if (length > 0 && text[0] != ':')
        return false;
    size_t zeros = 1;
    while (zeros + 1 < length && text[zeros] == '0')
        zeros++;
    if (length <= 1)
        return origin_append(writer, default_port, strlen(default_port));
    for (size_t i = zeros; i < length; i++)
        if (text[i] < '0' || text[i] > '9')
            return false;
    return length - zeros <= 5 && origin_append(writer, ":", 1) && origin_append(writer, text + zeros, length - zeros);
}

static bool origin_append_authority(struct origin_writer *writer, const char *text, const char *default_port)
{
    size_t length = strcspn(text, "/?#");
    for (size_t i = length; i > 0; i--)
        if (text[i - 1] == '@') { /* skip user and password */
            text += i;
            length -= i;
            break;
        }
    size_t host = host_length(text, length);
    return host > 0 && origin_append(writer, text, host) &&
           origin_append_port(writer, text + host, length - host, default_port);
}

bool bide_curl_origin(char *text, size_t size, const char *url)
{
    struct origin_writer writer = {text, size};
    bool known = false;
    if (text_has_prefix(url, "http://"))
        known = origin_append(&writer, "http://", 7) && origin_append_authority(&writer, url + 7, ":80");
    else if (text_has_prefix(url, "https://"))
        known = origin_append(&writer, "https://", 8) && origin_append_authority(&writer, url + 8, ":443");
    else if (strstr(url, "://") == NULL) /* no scheme: libcurl assumes http, too */
        known = origin_append(&writer, "http://", 7) && origin_append_authority(&writer, url, ":80");
    if (!known && size > 0)
        text[0] = '\0';
    return known;
}

/* ---- the target of an origin ---- */

/* Returns the length of a URL up to its path; 0 if it has no scheme, or a user or password, which is not kept. */
static size_t url_length_to_path(const char *url)
{
    const char *authority = strstr(url, "://");
    if (!authority)
        return 0;
    size_t length = (size_t)(authority - url) + 3 + strcspn(authority + 3, "/?#");
    return memchr(url, '@', length) ? 0 : length;
}

static bool record_has_origin_of(const struct record_origin *kept, const char *url)
{
    return kept->length > 0 && strncmp(url, kept->url, kept->length) == 0 && strchr("/?#", url[kept->length]);
}

static void record_keep_origin(struct record_origin *kept, const char *url, const char *origin)
{
    size_t length = url_length_to_path(url), size = strlen(origin) + 1;
    kept->length = 0;
    if (length == 0 || length > sizeof kept->url || size > sizeof kept->text)
        return;
    memcpy(kept->url, url, length);
    memcpy(kept->text, origin, size);
    kept->length = length;
}

/* All URLs that bide_curl_origin rejects share a target. */
#define UNKNOWN_ORIGIN "unknown origin"

const char *http_target_name(char origin[HTTP_ORIGIN_SIZE], CURL *easy)
{
    const char *url = NULL;
    curl_easy_getinfo(easy, CURLINFO_EFFECTIVE_URL, &url);
    return url && bide_curl_origin(origin, HTTP_ORIGIN_SIZE, url) ? origin : UNKNOWN_ORIGIN;
}

/* For a name that is too long the table returns its overflow target. */
struct bide_target *http_target_for_url(struct bide_targets *table, CURL *easy, struct http_record *record,
                                        int64_t now_ns)
{
    char origin[HTTP_ORIGIN_SIZE];
    const char *url = NULL;
    if (!table && !(table = bide_targets_default()))
        return BIDE_NO_TARGET;
    curl_easy_getinfo(easy, CURLINFO_EFFECTIVE_URL, &url);
    if (url && record && record_has_origin_of(&record->origin, url))
        return bide_targets_get(table, record->origin.text, now_ns);
    if (!url || !bide_curl_origin(origin, sizeof origin, url))
        return bide_targets_get(table, UNKNOWN_ORIGIN, now_ns);
    if (record)
        record_keep_origin(&record->origin, url, origin);
    return bide_targets_get(table, origin, now_ns);
}
