/* mask.c - URLs without their secrets: see mask.h.
 *
 * libcurl accepts more than RFC 3986: a URL without a scheme, one to three slashes behind it. Here the authority begins
 * behind "scheme:" and all slashes, or at once, and ends at the next slash, question mark or number sign; what precedes
 * its last at sign is the user. When in doubt, more is left out. */
#include "mask.h"

#include <string.h>
#include <strings.h>

#define REDACTED "REDACTED"

/* Returns the position of the first of these characters at or behind `from`, or the length. */
static size_t url_find(struct bide_text url, size_t from, const char *characters)
{
    size_t at = from;
    while (at < url.length && (url.at[at] == '\0' || strchr(characters, url.at[at]) == NULL))
        at++;
    return at;
}

/* The parts of a URL, as positions. */
struct parts {
    size_t authority; /* behind the scheme and the slashes */
    size_t host;      /* behind the user */
    size_t path;      /* end of the authority */
    size_t query;     /* at the question mark; or the end */
    size_t end;       /* at the number sign; or the end */
};

static bool is_scheme_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '+' || c == '-' ||
           c == '.';
}

/* Returns where the authority begins. "host:80/" has no scheme: no slash follows the colon. */
static size_t url_authority(struct bide_text url)
{
    size_t at = 0;
    while (at < url.length && is_scheme_byte(url.at[at]))
        at++;
    if (at == 0 || at + 1 >= url.length || url.at[at] != ':' || url.at[at + 1] != '/')
        return 0;
    at++;
    while (at < url.length && url.at[at] == '/')
        at++;
    return at;
}

/* Returns false for a "host" with something else than a port behind its colon: that may be user and password of a URL
 * that is malformed further behind, as http://user:pass?word@example.net. */
static bool host_is_plain(struct bide_text host)
{
    size_t begin = host.length > 0 && host.at[0] == '[' ? url_find(host, 0, "]") : 0;
    for (size_t i = url_find(host, begin, ":") + 1; i < host.length; i++)
        if (host.at[i] < '0' || host.at[i] > '9')
            return false;
    return true;
}

static struct parts url_parts(struct bide_text url)
{
    struct parts parts = {.authority = url_authority(url)};
    parts.path = url_find(url, parts.authority, "/?#");
    parts.host = parts.authority;
    for (size_t i = parts.authority; i < parts.path; i++)
        if (url.at[i] == '@')
            parts.host = i + 1;
    if (!host_is_plain((struct bide_text){url.at + parts.host, parts.path - parts.host}))
        parts.host = parts.path;
    parts.end = url_find(url, parts.path, "#");
    parts.query = url_find((struct bide_text){url.at, parts.end}, parts.path, "?");
    return parts;
}

static uint32_t scheme_port(struct bide_text url)
{
    static const struct {
        const char *scheme;
        uint32_t port;
    } known[] = {{"https:", 443}, {"http:", 80}, {"wss:", 443}, {"ws:", 80}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        size_t length = strlen(known[i].scheme);
        if (url.length >= length && strncasecmp(url.at, known[i].scheme, length) == 0)
            return known[i].port;
    }
    return 0;
}

/* Returns the number; 0 if it is none, or above 65535. */
static uint32_t port_parse(struct bide_text text)
{
    uint32_t port = 0;
    for (size_t i = 0; i < text.length; i++) {
        if (text.at[i] < '0' || text.at[i] > '9' || port > 65535)
            return 0;
        port = 10 * port + (uint32_t)(text.at[i] - '0');
    }
    return port <= 65535 ? port : 0;
}

struct telemetry_server telemetry_url_server(struct bide_text url)
{
    struct parts parts = url_parts(url);
    struct bide_text authority = {url.at, parts.path};
    bool is_v6 = parts.host < parts.path && url.at[parts.host] == '[';
    size_t begin = parts.host + is_v6, end = url_find(authority, begin, is_v6 ? "]" : ":");
    size_t colon = url_find(authority, end, ":");
    struct telemetry_server server = {.address = {url.at + begin, end - begin}, .port = scheme_port(url)};
    if (colon + 1 < parts.path)
        server.port = port_parse((struct bide_text){url.at + colon + 1, parts.path - colon - 1});
    return server;
}

static char *append(char *to, const char *at, size_t length)
{
    memcpy(to, at, length);
    return to + length;
}

/* Writes one part of a query, "name=value". */
static char *append_masked(char *to, struct bide_text part)
{
    size_t equals = url_find(part, 0, "=");
    if (equals < part.length)
        to = append(to, part.at, equals + 1);
    return part.length > 0 ? append(to, REDACTED, strlen(REDACTED)) : to;
}

size_t telemetry_url_mask(char *masked, struct bide_text url)
{
    struct parts parts = url_parts(url);
    struct bide_text known = {url.at, parts.end};
    char *to = append(masked, url.at, parts.authority);
    to = append(to, url.at + parts.host, parts.query - parts.host);
    for (size_t at = parts.query, next; at < parts.end; at = next) {
        next = url_find(known, at + 1, "&");
        to = append(to, url.at + at, 1);
        to = append_masked(to, (struct bide_text){url.at + at + 1, next - at - 1});
    }
    return (size_t)(to - masked);
}
