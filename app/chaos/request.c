/* request.c - incremental parser for HTTP/1.x requests (RFC 9112).
 *
 * A head is parsed once, when its empty line has arrived; until then each call resumes the search for that line where
 * the last call stopped, so a client that sends single bytes costs no more than a client that sends everything at once.
 * Bodies are never stored: their bytes are counted and hashed as they arrive.
 *
 * Ambiguous input, which an intermediary might interpret differently (request smuggling), is rejected: blanks before a
 * colon, folded lines, bare CR, two lengths, a length together with chunks. A bare LF ends a line like CRLF (RFC 9112
 * 2.2), and empty lines before a request are skipped. */
#include "request.h"

#include "core/random.h"
#include "text/slice.h"

#include <string.h>
#include <strings.h>

#define FNV_START   UINT64_C(0xcbf29ce484222325)
#define FNV_PRIME   UINT64_C(0x100000001b3)
#define FRAMING_MAX 16384u /* of a chunk's extensions, or of all trailers */
#define CHUNK_MAX   (UINT64_MAX >> 8)

static enum chaos_read request_set_error(struct chaos_request *request, int status)
{
    request->error_status = status;
    return CHAOS_READ_BAD;
}

bool chaos_name_equals(struct bide_text name, const char *other)
{
    return strlen(other) == name.length && strncasecmp(name.at, other, name.length) == 0;
}

/* RFC 9110 5.6.2 */
static bool is_token(struct bide_text text)
{
    static const char marks[] = "!#$%&'*+-.^_`|~";
    for (size_t i = 0; i < text.length; i++) {
        char c = text.at[i];
        bool alpha = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!alpha && (c == '\0' || strchr(marks, c) == NULL))
            return false;
    }
    return text.length > 0;
}

/* Returns true if there are no control characters but HTAB: no NUL or CR in a value. */
static bool text_has_no_controls(struct bide_text text)
{
    for (size_t i = 0; i < text.length; i++)
        if (((unsigned char)text.at[i] < 0x20 && text.at[i] != '\t') || text.at[i] == 0x7f)
            return false;
    return true;
}

/* Splits at a byte: returns the part before it and leaves the part after it. Absent if the byte does not occur. */
static struct bide_text text_take_until(struct bide_text *text, char byte)
{
    const char *found = text->length > 0 ? memchr(text->at, byte, text->length) : NULL;
    if (found == NULL)
        return (struct bide_text){0};
    struct bide_text before = {text->at, (size_t)(found - text->at)};
    text->at = found + 1;
    text->length -= before.length + 1;
    return before;
}

bool chaos_next_line(struct bide_text *cursor, struct bide_text *line)
{
    *line = text_take_until(cursor, '\n');
    if (line->length > 0 && line->at[line->length - 1] == '\r')
        line->length--;
    return line->at != NULL;
}

bool chaos_next_field(struct bide_text *cursor, struct bide_text *name, struct bide_text *value)
{
    struct bide_text line;
    if (!chaos_next_line(cursor, &line) || line.length == 0)
        return false;
    *name = text_take_until(&line, ':');
    *value = text_trim(line, TEXT_OWS);
    return true;
}

/* ---- the head ---- */

static bool field_read_length(struct chaos_request *request, struct bide_text value)
{
    uint64_t length = 0;
    for (size_t i = 0; i < value.length; i++) {
        if (value.at[i] < '0' || value.at[i] > '9' || length > CHUNK_MAX / 10)
            return false;
        length = length * 10 + (uint64_t)(value.at[i] - '0');
    }
    if (value.length == 0 || (request->has_length && request->length != length))
        return false;
    request->has_length = true;
    request->length = length;
    return true;
}

static void field_read_connection(struct chaos_request *request, struct bide_text value)
{
    while (value.at != NULL) {
        struct bide_text option = text_take_item(&value, ',', TEXT_OWS);
        if (chaos_name_equals(option, "close"))
            request->close = true;
        else if (chaos_name_equals(option, "keep-alive"))
            request->close = false;
    }
}

/* Reads the fields that affect the server. Returns 0, or the status of the error response. */
static int request_read_field(struct chaos_request *request, struct bide_text name, struct bide_text value)
{
    if (chaos_name_equals(name, "host")) {
        if (request->has_host)
            return 400;
        request->has_host = true;
    } else if (chaos_name_equals(name, "content-length")) {
        return field_read_length(request, value) ? 0 : 400;
    } else if (chaos_name_equals(name, "transfer-encoding")) {
        if (request->chunked || !chaos_name_equals(value, "chunked"))
            return 501;
        request->chunked = true;
    } else if (chaos_name_equals(name, "connection")) {
        field_read_connection(request, value);
    } else if (chaos_name_equals(name, "expect")) {
        request->expects_continue = chaos_name_equals(value, "100-continue");
    } else if (chaos_name_equals(name, "range")) {
        request->range = value;
    } else if (chaos_name_equals(name, "if-range")) {
        request->if_range = value;
    }
    return 0;
}

/* RFC 9112 3.2: http://host/path becomes /path. Other forms are valid with CONNECT and OPTIONS only. */
static bool request_read_target(struct chaos_request *request, struct bide_text target)
{
    if (target.length > 7 && strncasecmp(target.at, "http://", 7) == 0) {
        const char *slash = memchr(target.at + 7, '/', target.length - 7);
        struct bide_text root = {"/", 1};
        target = slash != NULL ? (struct bide_text){slash, target.length - (size_t)(slash - target.at)} : root;
    }
    request->query = target;
    request->path = text_take_until(&request->query, '?');
    if (request->path.at == NULL) {
        request->path = target;
        request->query = (struct bide_text){0};
    }
    bool other = text_equals(request->method, "CONNECT") ||
                 (text_equals(request->method, "OPTIONS") && text_equals(target, "*"));
    return request->path.length > 0 && (request->path.at[0] == '/' || other);
}

static int read_request_line(struct chaos_request *request, struct bide_text line)
{
    request->method = text_take_until(&line, ' ');
    struct bide_text target = text_take_until(&line, ' ');
    if (request->method.at == NULL || target.at == NULL || !is_token(request->method) ||
        !text_has_no_controls(target) || target.length == 0)
        return 400;
    if (request->method.length > CHAOS_METHOD_MAX)
        return 501;
    if (line.length != 8 || memcmp(line.at, "HTTP/", 5) != 0)
        return 400;
    request->http10 = text_equals(line, "HTTP/1.0");
    request->close = request->http10;
    request->head_only = text_equals(request->method, "HEAD");
    if (!request_read_target(request, target))
        return 400;
    return request->http10 || text_equals(line, "HTTP/1.1") ? 0 : 505;
}

/* Determines the body's framing (RFC 9112 6.3). */
static int request_frame_body(struct chaos_request *request)
{
    if (!request->http10 && !request->has_host)
        return 400; /* RFC 9112 3.2 */
    if (request->chunked && (request->has_length || request->http10))
        return 400;
    request->body = request->chunked ? CHAOS_CHUNK_SIZE : request->length > 0 ? CHAOS_BODY_BYTES : CHAOS_BODY_COMPLETE;
    request->left = request->chunked ? 0 : request->length;
    return 0;
}

static int request_read_head(struct chaos_request *request, struct bide_text head)
{
    struct bide_text line, name, value;
    chaos_next_line(&head, &line);
    int error_status = read_request_line(request, line);
    while (error_status == 0 && chaos_next_line(&head, &line) && line.length > 0) {
        value = line;
        name = text_take_until(&value, ':');
        value = text_trim(value, TEXT_OWS);
        error_status = name.at != NULL && is_token(name) && text_has_no_controls(value)
                           ? request_read_field(request, name, value)
                           : 400;
    }
    return error_status != 0 ? error_status : request_frame_body(request);
}

/* Searches for the empty line. Returns the length of the head including it; 0 if it has not arrived. */
static size_t head_find_end(struct chaos_request *request, const char *bytes, size_t length, size_t begin)
{
    size_t at = request->scanned > begin ? request->scanned : begin;
    const char *end;
    while ((end = memchr(bytes + at, '\n', length - at)) != NULL) {
        size_t next = (size_t)(end - bytes) + 1;
        size_t cr = next < length && bytes[next] == '\r';
        if (next + cr >= length) /* the bytes after this line end have not arrived: search it again */
            break;
        if (bytes[next + cr] == '\n')
            return next + cr + 1;
        at = next;
    }
    request->scanned = end != NULL ? (size_t)(end - bytes) : length;
    return 0;
}

bool chaos_request_partial(struct chaos_request *request, const char *bytes, size_t length)
{
    struct bide_text line, rest = {bytes, length};
    while (rest.length > 0 && (rest.at[0] == '\r' || rest.at[0] == '\n'))
        rest.at++, rest.length--;
    *request = (struct chaos_request){0};
    bool any = rest.length > 0;
    if (chaos_next_line(&rest, &line) && read_request_line(request, line) != 0)
        *request = (struct chaos_request){0};
    return any;
}

enum chaos_read chaos_request_head(struct chaos_request *request, const char *bytes, size_t length)
{
    size_t begin = 0;
    while (begin < length && (bytes[begin] == '\r' || bytes[begin] == '\n'))
        begin++;
    size_t searched = length < CHAOS_HEAD_MAX ? length : CHAOS_HEAD_MAX;
    size_t end = begin < searched ? head_find_end(request, bytes, searched, begin) : 0;
    if (end == 0 && length < CHAOS_HEAD_MAX)
        return CHAOS_READ_MORE;
    if (end == 0) {
        chaos_request_partial(request, bytes, length);
        return request_set_error(request, 431);
    }
    request->head_bytes = end;
    int error_status = request_read_head(request, (struct bide_text){bytes + begin, end - begin});
    return error_status != 0 ? request_set_error(request, error_status) : CHAOS_READ_DONE;
}

/* ---- the body (RFC 9112 7.1 for chunks) ---- */

static size_t body_take_bytes(struct chaos_request *request, struct bide_text bytes)
{
    size_t count = bytes.length < request->left ? bytes.length : (size_t)request->left;
    uint64_t fnv = request->body_bytes > 0 ? request->body_fnv : FNV_START;
    for (size_t i = 0; i < count; i++)
        fnv = (fnv ^ (unsigned char)bytes.at[i]) * FNV_PRIME;
    request->body_fnv = fnv;
    request->body_bytes += count;
    request->left -= count;
    if (request->left == 0)
        request->body = request->chunked ? CHAOS_CHUNK_END : CHAOS_BODY_COMPLETE;
    return count;
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static void chunk_end_size_line(struct chaos_request *request)
{
    request->body = request->left > 0 ? CHAOS_BODY_BYTES : CHAOS_TRAILER;
    request->framing_bytes = 0;
    request->line_bytes = 0;
}

/* Consumes a byte of a chunk's size line: hex digits, optional extension, CRLF or LF. framing_bytes counts the bytes,
 * so a line without a digit is detected as invalid. */
static bool chunk_take_size_byte(struct chaos_request *request, char c)
{
    int digit = hex_value(c);
    if (digit >= 0 && request->left <= CHUNK_MAX >> 4) {
        request->left = request->left << 4 | (uint64_t)digit;
        return true;
    }
    if (digit >= 0 || request->framing_bytes == 1)
        return false;
    request->body = CHAOS_CHUNK_EXTENSION;
    if (c == '\n')
        chunk_end_size_line(request);
    return c == '\n' || c == '\r' || c == ';' || c == ' ' || c == '\t';
}

static bool body_take_framing_byte(struct chaos_request *request, char c)
{
    if (++request->framing_bytes > FRAMING_MAX)
        return false;
    switch (request->body) {
    case CHAOS_CHUNK_SIZE: return chunk_take_size_byte(request, c);
    case CHAOS_CHUNK_EXTENSION:
        if (c == '\n')
            chunk_end_size_line(request);
        return true;
    case CHAOS_CHUNK_END:
        if (c == '\n') {
            request->body = CHAOS_CHUNK_SIZE;
            request->framing_bytes = 0;
        }
        return c == '\n' || c == '\r';
    case CHAOS_TRAILER:
        if (c == '\n' && request->line_bytes == 0)
            request->body = CHAOS_BODY_COMPLETE;
        request->line_bytes = c == '\n' ? 0 : request->line_bytes + (c != '\r');
        return true;
    case CHAOS_BODY_COMPLETE:
    case CHAOS_BODY_BYTES: break;
    }
    return false;
}

enum chaos_read chaos_request_body(struct chaos_request *request, struct bide_text bytes, size_t *taken)
{
    *taken = 0;
    while (*taken < bytes.length && request->body != CHAOS_BODY_COMPLETE) {
        if (request->body == CHAOS_BODY_BYTES)
            *taken += body_take_bytes(request, (struct bide_text){bytes.at + *taken, bytes.length - *taken});
        else if (!body_take_framing_byte(request, bytes.at[(*taken)++]))
            return request_set_error(request, 400);
    }
    return request->body == CHAOS_BODY_COMPLETE ? CHAOS_READ_DONE : CHAOS_READ_MORE;
}

uint64_t chaos_request_hash(const struct chaos_request *request)
{
    uint64_t hash = core_mix(request->body_bytes > 0 ? request->body_fnv : FNV_START);
    return hash + (hash == 0);
}
