/* request.c - reads the head of an HTTP/1 request: see request.h. */
#include "request.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

/* A part of a line. */
struct part {
    const char *at;
    size_t length;
};

static bool part_equals(struct part part, const char *word)
{
    return strlen(word) == part.length && memcmp(part.at, word, part.length) == 0;
}

static bool part_equals_any_case(struct part part, const char *word)
{
    return strlen(word) == part.length && strncasecmp(part.at, word, part.length) == 0;
}

/* Removes the part before the next separator, and the separator, from the front of a line. Returns false if there is no
 * separator. */
static bool part_take(struct part *line, char separator, struct part *part)
{
    const char *end = memchr(line->at, separator, line->length);
    if (end == NULL)
        return false;
    *part = (struct part){line->at, (size_t)(end - line->at)};
    line->at = end + 1;
    line->length -= part->length + 1;
    return true;
}

/* RFC 9110 section 5.6.2. */
static bool part_is_token(struct part part)
{
    for (size_t i = 0; i < part.length; i++) {
        char c = part.at[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!is_letter && (c == '\0' || strchr("!#$%&'*+-.^_`|~", c) == NULL))
            return false;
    }
    return part.length > 0;
}

/* Returns true if the part has printable ASCII only, without blanks. */
static bool part_is_visible(struct part part)
{
    for (size_t i = 0; i < part.length; i++)
        if (part.at[i] <= ' ' || part.at[i] > '~')
            return false;
    return part.length > 0;
}

/* Returns true if the part has no control character but HTAB. */
static bool part_is_value(struct part part)
{
    for (size_t i = 0; i < part.length; i++) {
        unsigned char c = (unsigned char)part.at[i];
        if ((c < ' ' && c != '\t') || c == 0x7f)
            return false;
    }
    return true;
}

static struct part part_trim(struct part part)
{
    for (; part.length > 0 && (*part.at == ' ' || *part.at == '\t'); part.length--)
        part.at++;
    while (part.length > 0 && (part.at[part.length - 1] == ' ' || part.at[part.length - 1] == '\t'))
        part.length--;
    return part;
}

/* ---- the request line ---- */

/* Returns the path of a target in origin or absolute form (RFC 9112 section 3.2), without the query. */
static struct part target_path(struct part target)
{
    static const char scheme[] = "http://";
    const size_t prefix = sizeof scheme - 1;
    struct part query = target, path;
    if (target.length >= prefix && strncasecmp(target.at, scheme, prefix) == 0) {
        const char *slash = memchr(target.at + prefix, '/', target.length - prefix);
        if (slash == NULL)
            return (struct part){"/", 1};
        query = (struct part){slash, target.length - (size_t)(slash - target.at)};
    }
    return part_take(&query, '?', &path) ? path : query;
}

static enum telemetry_resource target_resource(struct part target)
{
    struct part path = target_path(target);
    if (part_equals(path, "/metrics"))
        return TELEMETRY_RESOURCE_METRICS;
    return part_equals(path, "/") ? TELEMETRY_RESOURCE_INDEX : TELEMETRY_RESOURCE_NONE;
}

/* Returns 0, or the status of the error. */
static int read_version(struct telemetry_request *request, struct part version)
{
    static const char name[] = "HTTP/";
    const char *digits = version.at + sizeof name - 1;
    if (version.length != sizeof name - 1 + 3 || memcmp(version.at, name, sizeof name - 1) != 0 || digits[0] < '0' ||
        digits[0] > '9' || digits[1] != '.' || digits[2] < '0' || digits[2] > '9')
        return 400;
    request->is_http_1_0 = digits[2] == '0';
    return digits[0] == '1' ? 0 : 505;
}

/* Returns 0, or the status of the error. */
static int read_request_line(struct telemetry_request *request, struct part line)
{
    struct part method, target;
    if (!part_take(&line, ' ', &method) || !part_is_token(method) || !part_take(&line, ' ', &target) ||
        !part_is_visible(target))
        return 400;
    request->has_line = true;
    request->is_head = part_equals(method, "HEAD");
    request->is_get = request->is_head || part_equals(method, "GET");
    request->resource = target_resource(target);
    return read_version(request, line);
}

/* ---- header fields ---- */

/* Returns 0, or the status of the error. The server closes the connection after its response, so a body could not be
 * taken for another request here; but a GET has none. */
static int read_field(struct telemetry_request *request, struct part line)
{
    struct part name;
    if (!part_take(&line, ':', &name) || !part_is_token(name) || !part_is_value(line))
        return 400;
    struct part value = part_trim(line);
    if (part_equals_any_case(name, "Host"))
        return ++request->hosts > 1 ? 400 : 0;
    if (part_equals_any_case(name, "Transfer-Encoding"))
        return 400;
    if (part_equals_any_case(name, "Content-Length"))
        return part_equals(value, "0") ? 0 : 400;
    return 0;
}

/* Returns the status of a request whose head is complete. */
static int request_status(const struct telemetry_request *request)
{
    if (request->hosts == 0 && !request->is_http_1_0)
        return 400;
    if (request->resource == TELEMETRY_RESOURCE_NONE)
        return 404;
    return request->is_get ? 200 : 405;
}

/* ---- lines ---- */

/* Returns the status after a line, 0 if more lines follow. Empty lines before the request line are skipped (RFC 9112
 * section 2.2). */
static int read_line(struct telemetry_request *request, struct part line)
{
    if (line.length == 0)
        return request->has_line ? request_status(request) : 0;
    return request->has_line ? read_field(request, line) : read_request_line(request, line);
}

/* Returns the status of a request of which `length` bytes, without the end of a line, are too many; else 0. */
static int request_limit(const struct telemetry_request *request, size_t length)
{
    if (!request->has_line && length - request->line_at >= TELEMETRY_REQUEST_LINE_MAX)
        return 414;
    if (length < TELEMETRY_REQUEST_MAX)
        return 0;
    return request->has_line ? 431 : 414;
}

bool telemetry_request_read(struct telemetry_request *request, const char *bytes, size_t length)
{
    assert(length >= request->line_at && length <= TELEMETRY_REQUEST_MAX);
    while (request->status == 0) {
        struct part rest = {bytes + request->line_at, length - request->line_at}, line;
        if (!part_take(&rest, '\n', &line)) {
            request->status = request_limit(request, length);
            break;
        }
        if (!request->has_line && line.length > TELEMETRY_REQUEST_LINE_MAX)
            request->status = 414;
        else if (line.length == 0 || line.at[line.length - 1] != '\r')
            request->status = 400;
        else
            request->status = read_line(request, (struct part){line.at, line.length - 1});
        request->line_at += line.length + 1;
    }
    assert(request->status != 0 || length < TELEMETRY_REQUEST_MAX);
    return request->status != 0;
}
