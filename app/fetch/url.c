/* url.c - URLs, parsed by libcurl, so that the displayed host and path are those that libcurl requests. */
#include "url.h"

#include <curl/curl.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static CURLU *url_parse(const char *url)
{
    CURLU *parsed = curl_url();
    if (parsed && curl_url_set(parsed, CURLUPART_URL, url, CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK)
        return parsed;
    curl_url_cleanup(parsed);
    return NULL;
}

/* Returns "" if the part is missing, NULL if out of memory. Free with curl_free. */
static char *url_part(CURLU *parsed, CURLUPart which)
{
    char *text = NULL;
    if (curl_url_get(parsed, which, &text, 0) != CURLUE_OK)
        text = curl_easy_escape(NULL, "", 0);
    return text;
}

const char *fetch_url_check(const char *url)
{
    if (!strstr(url, "://"))
        return "a URL such as https://host/path";
    CURLU *parsed = url_parse(url);
    if (!parsed)
        return "a URL that can be parsed, such as https://host/path?a=b";
    char *scheme = url_part(parsed, CURLUPART_SCHEME);
    bool known = scheme && (strcmp(scheme, "http") == 0 || strcmp(scheme, "https") == 0);
    curl_free(scheme);
    curl_url_cleanup(parsed);
    return known ? NULL : "an http:// or https:// URL";
}

/* Writes bytes that a terminal or log could misinterpret as %XX. */
static char *text_escape(const char *text)
{
    size_t length = strlen(text), used = 0;
    char *out = malloc(3 * length + 1);
    if (!out)
        return NULL;
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c > ' ' && c < 0x7f)
            out[used++] = text[i];
        else
            used += (size_t)snprintf(out + used, 4, "%%%02X", c);
    }
    out[used] = '\0';
    return out;
}

#define BARE_LENGTH_MAX 8u  /* a longer component without "=", or one that is no number, may be a token */
#define NAME_LENGTH_MAX 64u /* a longer name may be one, too */

/* Masks the values of a query: "page=2&3" becomes "page=***&3". Returns an allocated text, NULL if out of memory. */
static char *query_mask(const char *query)
{
    char *masked = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&masked, &size);
    if (!out)
        return NULL;
    for (;;) {
        size_t length = strcspn(query, "&"), name = strcspn(query, "=&");
        bool has_value = name < length;
        bool shown =
            has_value ? name <= NAME_LENGTH_MAX : length <= BARE_LENGTH_MAX && strspn(query, "0123456789") >= length;
        fprintf(out, "%.*s%s", shown ? (int)name : 3, shown ? query : "***", has_value ? "=***" : "");
        if (query[length] == '\0')
            break;
        fputc('&', out);
        query += length + 1;
    }
    bool written = fflush(out) == 0 && !ferror(out);
    fclose(out);
    if (!written) {
        free(masked);
        masked = NULL;
    }
    return masked;
}

char *fetch_url_display(const char *url)
{
    CURLU *parsed = url_parse(url);
    char *plain = NULL, *shown = NULL;
    if (!parsed)
        return NULL;
    char *scheme = url_part(parsed, CURLUPART_SCHEME), *host = url_part(parsed, CURLUPART_HOST);
    char *port = url_part(parsed, CURLUPART_PORT), *path = url_part(parsed, CURLUPART_PATH);
    char *query = url_part(parsed, CURLUPART_QUERY), *masked = query ? query_mask(query) : NULL;
    if (scheme && host && port && path && masked &&
        asprintf(&plain, "%s://%s%s%s%s%s%s", scheme, host, port[0] != '\0' ? ":" : "", port, path,
                 query[0] != '\0' ? "?" : "", masked) >= 0)
        shown = text_escape(plain);
    free(masked);
    curl_free(query);
    free(plain);
    curl_free(scheme);
    curl_free(host);
    curl_free(port);
    curl_free(path);
    curl_url_cleanup(parsed);
    return shown;
}

char *fetch_url_file_name(const char *url)
{
    CURLU *parsed = url_parse(url);
    char *path = parsed ? url_part(parsed, CURLUPART_PATH) : NULL, *copy = NULL;
    const char *slash = path ? strrchr(path, '/') : NULL, *name = slash ? slash + 1 : "";
    if (path)
        copy = strdup(strcmp(name, ".") != 0 && strcmp(name, "..") != 0 ? name : "");
    curl_free(path);
    curl_url_cleanup(parsed);
    return copy;
}

char *fetch_url_with_query(const char *url, const char *query)
{
    CURLU *parsed = url_parse(url);
    char *result = NULL, *copy = NULL;
    if (parsed && curl_url_set(parsed, CURLUPART_QUERY, query, CURLU_APPENDQUERY) == CURLUE_OK &&
        curl_url_get(parsed, CURLUPART_URL, &result, 0) == CURLUE_OK && !fetch_url_check(result)) /* e.g. a space */
        copy = strdup(result);
    curl_free(result);
    curl_url_cleanup(parsed);
    return copy;
}

/* An unparsable URL may have a password that contains a slash: hide everything before the last @. */
void fetch_url_mask(char *url)
{
    CURLU *parsed = url_parse(url);
    char *host = strstr(url, "://");
    host = host ? host + 3 + strspn(host + 3, "/") : url; /* libcurl accepts additional slashes */
    size_t length = parsed ? strcspn(host, "/?#") : strlen(host);
    curl_url_cleanup(parsed);
    for (size_t i = length; i > 0; i--)
        if (host[i - 1] == '@') {
            memset(host, '*', i - 1);
            break;
        }
    char *query = strpbrk(host, "?#");
    if (query)
        memset(query + 1, '*', strlen(query + 1));
}

/* A proxy without a scheme is an HTTP proxy, "" is none. */
const char *fetch_proxy_check(const char *proxy)
{
    static const char *const schemes[] = {"http", "https", "socks4", "socks4a", "socks5", "socks5h"};
    const char *end = strstr(proxy, "://");
    if (!end)
        return strchr(proxy, ' ') ? "host:port, or a URL such as http://host:3128" : NULL;
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        if (strlen(schemes[i]) == (size_t)(end - proxy) && strncasecmp(proxy, schemes[i], (size_t)(end - proxy)) == 0 &&
            end[3] != '\0')
            return NULL;
    return "a URL of a proxy: http, https, socks4, socks4a, socks5 or socks5h, such as http://host:3128";
}

/* "0-99", "500-" or "-500", several separated by commas (RFC 9110 section 14.1.1). */
const char *fetch_range_check(const char *range)
{
    static const char digits[] = "0123456789";
    for (;;) {
        size_t from = strspn(range, digits);
        size_t to = range[from] == '-' ? strspn(range + from + 1, digits) : 0;
        if (range[from] != '-' || from + to == 0)
            break;
        range += from + 1 + to;
        if (*range == '\0')
            return NULL;
        if (*range++ != ',')
            break;
    }
    return "bytes such as 0-499, 500- or -500";
}
