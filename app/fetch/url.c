/* url.c - URLs, parsed by libcurl, so that the displayed host and path are those that libcurl requests. */
#include "url.h"

#include <curl/curl.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SUGGESTION_MAX 120u /* bytes of a URL in an error text */

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

/* Returns the description of a valid URL for a text without a scheme. It shows the text as a URL, if it is one. */
static const char *url_want_scheme(const char *url)
{
    static char text[256];
    char *whole = NULL, *shown = NULL;
    if (url[0] == '{' || url[0] == '[')
        return "a URL (--json takes no value; JSON is sent with -d and -H 'Content-Type: application/json')";
    if (asprintf(&whole, "http://%s", url + strspn(url, "/")) >= 0)
        shown = fetch_url_display(whole);
    bool fits = shown && strlen(shown) <= SUGGESTION_MAX && strcmp(shown, "http:///") != 0;
    snprintf(text, sizeof text, "a URL with its scheme, such as %s (curl guesses http, bide does not)",
             fits ? shown : "https://host/path");
    free(whole);
    free(shown);
    return text;
}

const char *fetch_url_check(const char *url)
{
    if (!strstr(url, "://"))
        return url_want_scheme(url);
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

#define LETTERS           "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
#define DIGITS            "0123456789"
#define NUMBER_LENGTH_MAX 8u  /* a longer component without "=", or one that is no number, may be a token */
#define NAME_LENGTH_MAX   32u /* a longer name may be one, too */

/* Returns the length of the name of "name=value", 0 if the text may be a token: base64 ends with "=" as well. */
static size_t parameter_name_length(const char *text, size_t length)
{
    size_t name = strspn(text, LETTERS DIGITS "_.-");
    bool is_name = name <= NAME_LENGTH_MAX && name < length && text[name] == '=' && strchr(LETTERS, text[0]) != NULL;
    return is_name && name + strspn(text + name, "=") < length ? name : 0;
}

static void parameter_write(FILE *out, const char *text, size_t length)
{
    size_t name = parameter_name_length(text, length);
    if (length <= NUMBER_LENGTH_MAX && strspn(text, DIGITS) >= length)
        fprintf(out, "%.*s", (int)length, text);
    else
        fprintf(out, "%.*s%s***", (int)name, text, name > 0 ? "=" : "");
}

static void query_write(FILE *out, const char *query)
{
    for (;;) {
        size_t length = strcspn(query, "&");
        parameter_write(out, query, length);
        if (query[length] == '\0')
            return;
        fputc('&', out);
        query += length + 1;
    }
}

/* The parameters of a path segment begin with a semicolon: ";jsessionid=..." (RFC 3986 section 3.3). */
static void path_write(FILE *out, const char *path)
{
    for (;;) {
        size_t plain = strcspn(path, ";");
        fprintf(out, "%.*s", (int)plain, path);
        path += plain;
        if (path[0] == '\0')
            return;
        size_t length = strcspn(path + 1, ";/");
        fputc(';', out);
        parameter_write(out, path + 1, length);
        path += 1 + length;
    }
}

/* Masks the values of path and query: "/a;v=1?page=2&3" becomes "/a;v=***?page=***&3". Returns an allocated text, NULL
 * if out of memory. */
static char *path_and_query_mask(const char *path, const char *query)
{
    char *masked = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&masked, &size);
    if (!out)
        return NULL;
    path_write(out, path);
    if (query[0] != '\0')
        fputc('?', out);
    query_write(out, query);
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
    char *query = url_part(parsed, CURLUPART_QUERY), *masked = path && query ? path_and_query_mask(path, query) : NULL;
    if (scheme && host && port && masked &&
        asprintf(&plain, "%s://%s%s%s%s", scheme, host, port[0] != '\0' ? ":" : "", port, masked) >= 0)
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

/* Replaces the bytes by three asterisks, by fewer if there is no room for three. Returns the place after them. */
static char *text_mask(char *at, size_t length)
{
    size_t stars = length < 3 ? length : 3, rest = strlen(at + length);
    memset(at, '*', stars);
    memmove(at + stars, at + length, rest);
    explicit_bzero(at + stars + rest, length - stars);
    return at + stars;
}

/* An unparsable URL may have a password that contains a slash: hide everything before the last @. JSON is no URL, but
 * the value of curl's --json. */
void fetch_url_mask(char *url)
{
    if (url[0] == '{' || url[0] == '[') {
        text_mask(url + 1, strlen(url + 1));
        return;
    }
    CURLU *parsed = url_parse(url);
    char *host = strstr(url, "://");
    host = host ? host + 3 + strspn(host + 3, "/") : url; /* libcurl accepts additional slashes */
    size_t length = parsed ? strcspn(host, "/?#") : strlen(host);
    curl_url_cleanup(parsed);
    for (size_t i = length; i > 0; i--)
        if (host[i - 1] == '@') {
            host = text_mask(host, i - 1);
            break;
        }
    for (host += strcspn(host, ";?#"); *host == ';'; host += strcspn(host, ";?#"))
        host = text_mask(host + 1, strcspn(host + 1, ";/?#"));
    if (*host != '\0')
        text_mask(host + 1, strlen(host + 1));
}

static bool proxy_has_known_scheme(CURLU *parsed)
{
    static const char *const schemes[] = {"http", "https", "socks4", "socks4a", "socks5", "socks5h"};
    char *scheme = url_part(parsed, CURLUPART_SCHEME);
    bool known = false;
    for (size_t i = 0; scheme && i < sizeof schemes / sizeof *schemes; i++)
        known = known || strcasecmp(scheme, schemes[i]) == 0;
    curl_free(scheme);
    return known;
}

/* A proxy has no path, query or fragment. In "http://user:12/34@host" the password is one, and libcurl would connect to
 * the host "user". */
static bool proxy_is_origin(CURLU *parsed)
{
    char *path = url_part(parsed, CURLUPART_PATH), *query = url_part(parsed, CURLUPART_QUERY);
    char *fragment = url_part(parsed, CURLUPART_FRAGMENT);
    bool is_origin = path && query && fragment && strcmp(path, "/") == 0 && query[0] == '\0' && fragment[0] == '\0';
    curl_free(path);
    curl_free(query);
    curl_free(fragment);
    return is_origin;
}

/* Parses the value with the flags that libcurl uses for it: a proxy without a scheme is an HTTP proxy. "" is none. */
const char *fetch_proxy_check(const char *proxy)
{
    CURLU *parsed = curl_url();
    bool valid =
        parsed &&
        curl_url_set(parsed, CURLUPART_URL, proxy, CURLU_NON_SUPPORT_SCHEME | CURLU_GUESS_SCHEME) == CURLUE_OK &&
        proxy_has_known_scheme(parsed) && proxy_is_origin(parsed);
    curl_url_cleanup(parsed);
    return valid || proxy[0] == '\0'
               ? NULL
               : "host:port or the URL of a proxy (http, https, socks4, socks4a, socks5, socks5h), such as "
                 "http://host:3128; blanks, / # ? and @ in a password are written as %20 %2F %23 %3F and %40";
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
