/* response.c - generates the bytes of a response, piece by piece, from a step and a request.
 *
 * A response has up to three parts: a head, generated at once; optionally endless headers; a body, generated as far as
 * there is room. Most responses are a single piece, sent with a single system call. Everything about the response
 * (which bytes of which body, complete or cut, chunked or not) is decided when the head of the request is complete;
 * afterwards the request is not needed.
 *
 * A cut is a body that ends too soon: the connection sees `cut_short` and then closes or resets. */
#include "response.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define CHUNK_ROOM 48u /* chunk size, two line ends and the last chunk */

struct output {
    char *at;
    size_t length;
};

static void put_bytes(struct output *output, const char *bytes, size_t length)
{
    memcpy(output->at + output->length, bytes, length);
    output->length += length;
}

static void put_text(struct output *output, const char *text)
{
    put_bytes(output, text, strlen(text));
}

static void put_number(struct output *output, uint64_t number)
{
    char digits[20];
    size_t at = sizeof digits;
    do
        digits[--at] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    put_bytes(output, digits + at, sizeof digits - at);
}

/* ---- dates ---- */

/* Seconds since 1970 that gmtime_r can format; the year may have more than four digits. */
#define SECONDS_MAX INT64_C(100000000000)

size_t chaos_date(char *text, enum chaos_stamp form, int64_t wall_s)
{
    static const char *const days[] = {"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};
    static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    struct tm tm = {0};
    time_t when = wall_s < 0 ? 0 : wall_s > SECONDS_MAX ? SECONDS_MAX : wall_s;
    int length;
    gmtime_r(&when, &tm);
    const char *day = days[tm.tm_wday], *month = months[tm.tm_mon];
    if (form == CHAOS_STAMP_RFC850)
        length = snprintf(text, CHAOS_DATE_ROOM, "%s, %02d-%s-%02d %02d:%02d:%02d GMT", day, tm.tm_mday, month,
                          tm.tm_year % 100, tm.tm_hour, tm.tm_min, tm.tm_sec);
    else if (form == CHAOS_STAMP_ASCTIME)
        length = snprintf(text, CHAOS_DATE_ROOM, "%.3s %s %2d %02d:%02d:%02d %d", day, month, tm.tm_mday, tm.tm_hour,
                          tm.tm_min, tm.tm_sec, tm.tm_year + 1900);
    else
        length = snprintf(text, CHAOS_DATE_ROOM, "%.3s, %02d %s %d %02d:%02d:%02d GMT", day, tm.tm_mday, month,
                          tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec);
    return (size_t)length;
}

/* Caches the text of the current second, per thread. */
static void put_date(struct output *output, int64_t wall_s)
{
    static _Thread_local char text[CHAOS_DATE_ROOM];
    static _Thread_local size_t length;
    static _Thread_local int64_t cached_s;
    if (length == 0 || cached_s != wall_s)
        length = chaos_date(text, CHAOS_STAMP_IMF, wall_s);
    cached_s = wall_s;
    put_text(output, "Date: ");
    put_bytes(output, text, length);
    put_text(output, "\r\n");
}

/* ---- choosing the response ---- */

static const struct {
    int status;
    const char *phrase;
} phrases[] = {
    {100, "Continue"},
    {102, "Processing"},
    {103, "Early Hints"},
    {200, "OK"},
    {201, "Created"},
    {202, "Accepted"},
    {204, "No Content"},
    {206, "Partial Content"},
    {301, "Moved Permanently"},
    {302, "Found"},
    {303, "See Other"},
    {304, "Not Modified"},
    {307, "Temporary Redirect"},
    {308, "Permanent Redirect"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {412, "Precondition Failed"},
    {416, "Range Not Satisfiable"},
    {417, "Expectation Failed"},
    {422, "Unprocessable Content"},
    {423, "Locked"},
    {425, "Too Early"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
};

static const char *status_phrase(int status)
{
    for (size_t i = 0; i < sizeof phrases / sizeof *phrases; i++)
        if (phrases[i].status == status)
            return phrases[i].phrase;
    return "Unnamed";
}

static void response_choose_body(struct chaos_response *response)
{
    const struct chaos_step *step = response->step;
    const char *phrase = response->status == 200 ? "ok" : status_phrase(response->status);
    switch (step->body) {
    case CHAOS_BODY_DEFAULT:
        response->text = (struct bide_text){phrase, strlen(phrase) + 1}; /* put_body replaces the NUL by a line end */
        break;
    case CHAOS_BODY_TEXT: response->text = (struct bide_text){step->text.at, step->text.length}; break;
    case CHAOS_BODY_PATTERN:
    case CHAOS_BODY_ENDLESS: response->text = (struct bide_text){0}; break;
    }
    response->total = step->body == CHAOS_BODY_ENDLESS ? UINT64_MAX
                      : response->text.at != NULL      ? response->text.length
                                                       : step->body_bytes;
    response->length = response->total;
}

static bool text_take_number(struct bide_text *text, uint64_t *number)
{
    size_t digits = 0;
    for (*number = 0; digits < text->length && text->at[digits] >= '0' && text->at[digits] <= '9'; digits++) {
        if (*number > UINT64_MAX / 100)
            return false;
        *number = *number * 10 + (uint64_t)(text->at[digits] - '0');
    }
    text->at += digits;
    text->length -= digits;
    return digits > 0;
}

/* Parses a single range (RFC 9110 14.1.2): bytes=5-9, bytes=5- or bytes=-5. Anything else is ignored, as the RFC
 * allows. */
static bool range_parse(struct bide_text text, uint64_t total, uint64_t *first, uint64_t *last)
{
    if (text.length < 7 || memcmp(text.at, "bytes=", 6) != 0)
        return false;
    text.at += 6, text.length -= 6;
    bool from = text_take_number(&text, first);
    if (text.length == 0 || text.at[0] != '-')
        return false;
    text.at++, text.length--;
    bool to = text_take_number(&text, last);
    if (text.length > 0 || !(from || to) || (from && to && *last < *first))
        return false;
    if (!from)
        *first = *last < total ? total - *last : 0;
    if (!from || !to || *last >= total)
        *last = total > 0 ? total - 1 : 0;
    return from || to;
}

/* RFC 9110 13.1.5: the entity tags must be equal and strong. A date never matches. */
static bool range_condition_holds(const struct chaos_step *step, struct bide_text if_range)
{
    return if_range.at == NULL || (step->etag.length == if_range.length && step->etag.at[0] == '"' &&
                                   memcmp(step->etag.at, if_range.at, if_range.length) == 0);
}

static void response_choose_range(struct chaos_response *response, const struct chaos_request *request)
{
    uint64_t first, last;
    if (!response->step->ranges || response->status != 200 || request->range.at == NULL ||
        response->total == UINT64_MAX || !range_condition_holds(response->step, request->if_range) ||
        !range_parse(request->range, response->total, &first, &last))
        return;
    if (first >= response->total) {
        response->status = 416;
        response->length = 0;
        return;
    }
    response->status = 206;
    response->at = first;
    response->length = last - first + 1;
}

static void response_choose_cut(struct chaos_response *response)
{
    const struct chaos_step *step = response->step;
    uint64_t most = response->length;
    if (step->cut != CHAOS_CUT_NONE && step->cut_at == CHAOS_AT_HEADERS)
        most = 0;
    else if (step->cut != CHAOS_CUT_NONE && step->cut_at == CHAOS_AT_HALF)
        most = response->length / 2;
    else if (step->cut != CHAOS_CUT_NONE && step->cut_at == CHAOS_AT_BYTE && step->cut_bytes < most)
        most = step->cut_bytes;
    response->cut_short = most < response->length;
    response->left = response->head_only ? 0 : most;
}

void chaos_response_begin(struct chaos_response *response, const struct chaos_step *step,
                          const struct chaos_request *request)
{
    *response = (struct chaos_response){.step = step, .status = step->status};
    response->head_only = request->head_only || step->status == 204 || step->status == 304;
    response_choose_body(response);
    response_choose_range(response, request);
    response_choose_cut(response);
    bool unframed = step->length == CHAOS_LENGTH_NONE || (step->chunked && request->http10) ||
                    (response->total == UINT64_MAX && request->http10);
    response->chunked = !unframed && (step->chunked || response->total == UINT64_MAX);
    response->close = request->close || step->connection_close || step->garbage || (unframed && !response->head_only);
}

/* ---- generating bytes ---- */

static void put_status(struct output *output, int status)
{
    put_text(output, "HTTP/1.1 ");
    put_number(output, (uint64_t)status);
    put_bytes(output, " ", 1);
    put_text(output, status_phrase(status));
    put_text(output, "\r\n");
}

static void put_retry_date(struct output *output, const struct chaos_step *step, int64_t wall_s)
{
    char date[CHAOS_DATE_ROOM];
    if (step->retry_stamp == CHAOS_STAMP_NONE)
        return;
    put_text(output, "Retry-After: ");
    put_bytes(output, date, chaos_date(date, step->retry_stamp, wall_s + step->retry_s));
    put_text(output, "\r\n");
}

/* A Content-Length made wrong on purpose does not become negative. */
static uint64_t response_content_length(const struct chaos_response *response)
{
    int64_t off = response->step->length == CHAOS_LENGTH_OFF ? response->step->length_off : 0;
    if (off < 0 && (uint64_t)-off > response->length)
        return 0;
    return response->length + (uint64_t)off;
}

static void put_framing(struct output *output, const struct chaos_response *response)
{
    if (response->status == 204 || response->status == 304)
        return;
    if (response->chunked)
        put_text(output, "Transfer-Encoding: chunked\r\n");
    else if (response->step->length != CHAOS_LENGTH_NONE && response->total != UINT64_MAX) {
        put_text(output, "Content-Length: ");
        put_number(output, response_content_length(response));
        put_text(output, "\r\n");
    }
}

static void put_range(struct output *output, const struct chaos_response *response)
{
    if (response->step->ranges)
        put_text(output, "Accept-Ranges: bytes\r\n");
    if (!response->step->ranges || (response->status != 206 && response->status != 416))
        return;
    put_text(output, "Content-Range: bytes ");
    if (response->status == 206) {
        put_number(output, response->at);
        put_bytes(output, "-", 1);
        put_number(output, response->at + response->length - 1);
    } else {
        put_bytes(output, "*", 1);
    }
    put_bytes(output, "/", 1);
    put_number(output, response->total);
    put_text(output, "\r\n");
}

static void put_head(struct output *output, const struct chaos_response *response, int64_t wall_s)
{
    const struct chaos_step *step = response->step;
    put_status(output, response->status);
    if (!step->no_date)
        put_date(output, wall_s + step->date_s);
    put_framing(output, response);
    put_range(output, response);
    put_retry_date(output, step, wall_s);
    put_bytes(output, step->fields.length > 0 ? step->fields.at : "", step->fields.length);
    if (response->close)
        put_text(output, "Connection: close\r\n");
    if (!step->endless_headers)
        put_text(output, "\r\n");
}

static void put_endless_headers(struct output *output, struct chaos_response *response)
{
    while (output->length + 80 < CHAOS_RESPONSE_ROOM) {
        put_text(output, "X-Endless-");
        put_number(output, response->at++);
        put_text(output, ": and on and on and on\r\n");
    }
}

char chaos_pattern(uint64_t offset)
{
    static const char digits[] = "0123456789abcdef";
    uint64_t number = offset / 8, place = offset % 8;
    if (place == 7)
        return '\n';
    return digits[number >> (4 * (6 - place)) & 15];
}

static void put_body(struct output *output, struct chaos_response *response, size_t count)
{
    char *to = output->at + output->length;
    for (size_t i = 0; response->text.at == NULL && i < count; i++)
        to[i] = chaos_pattern(response->at + i);
    if (response->text.at != NULL)
        memcpy(to, response->text.at + response->at, count);
    if (response->step->body == CHAOS_BODY_DEFAULT && count > 0 && response->at + count == response->total)
        to[count - 1] = '\n';
    output->length += count;
    response->at += count;
    response->left -= response->left == UINT64_MAX ? 0 : count;
}

static void put_chunk(struct output *output, struct chaos_response *response, size_t count)
{
    char size[CHUNK_ROOM];
    snprintf(size, sizeof size, "%zx\r\n", count);
    put_text(output, size);
    put_body(output, response, count);
    put_text(output, "\r\n");
}

static void put_body_part(struct output *output, struct chaos_response *response)
{
    size_t room = CHAOS_RESPONSE_ROOM - output->length - CHUNK_ROOM;
    size_t count = response->left < room ? (size_t)response->left : room;
    if (count > 0 && response->chunked)
        put_chunk(output, response, count);
    else if (count > 0)
        put_body(output, response, count);
    if (response->left > 0)
        return;
    if (response->chunked && !response->cut_short && !response->head_only)
        put_text(output, "0\r\n\r\n");
    response->part = CHAOS_PART_OVER;
}

size_t chaos_response_next(struct chaos_response *response, char *bytes, int64_t wall_s)
{
    struct output output = {.at = bytes};
    if (response->part == CHAOS_PART_HEAD) {
        if (!response->step->garbage)
            put_head(&output, response, wall_s);
        response->part = response->step->endless_headers ? CHAOS_PART_ENDLESS_HEADERS : CHAOS_PART_BODY;
    }
    if (response->part == CHAOS_PART_ENDLESS_HEADERS)
        put_endless_headers(&output, response);
    else if (response->part == CHAOS_PART_BODY)
        put_body_part(&output, response);
    return output.length;
}

size_t chaos_response_interim(char *bytes, int status)
{
    struct output output = {.at = bytes};
    put_status(&output, status);
    put_text(&output, "\r\n");
    return output.length;
}
