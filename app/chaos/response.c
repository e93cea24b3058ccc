/* reply.c - the bytes of an answer, made piece by piece from a step and a request.
 *
 * An answer has three parts: a head, made whole; perhaps headers without end; a body, made as far as there is room.
 * Most answers are one piece, sent with one system call. What the answer will be, which bytes of which body, whole or
 * cut, in chunks or not, is settled when the head of the request is there; from then on the request is not needed.
 *
 * A cut is a body that ends too soon: the connection sees that the answer was cut short, and cuts itself. */
#include "response.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define CHUNK_ROOM 48u /* a chunk's size and its two line ends, and the last chunk */

struct pen {
    char *at;
    size_t length;
};

static void put(struct pen *pen, const char *bytes, size_t length)
{
    memcpy(pen->at + pen->length, bytes, length);
    pen->length += length;
}

static void put_text(struct pen *pen, const char *text)
{
    put(pen, text, strlen(text));
}

static void put_number(struct pen *pen, uint64_t number)
{
    char digits[20];
    size_t at = sizeof digits;
    do
        digits[--at] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    put(pen, digits + at, sizeof digits - at);
}

/* ---- dates ---- */

#define DAYS_MAX INT64_C(100000000000) /* seconds from 1970 that gmtime_r can say with four digits of year, and more */

size_t chaos_date(char *text, enum chaos_stamp form, int64_t wall_s)
{
    static const char *const days[] = {"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};
    static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    struct tm tm = {0};
    time_t when = wall_s < 0 ? 0 : wall_s > DAYS_MAX ? DAYS_MAX : wall_s;
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

/* The same second is asked for again and again: its text is kept, one for each thread that serves. */
static void put_date(struct pen *pen, int64_t wall_s)
{
    static _Thread_local char text[CHAOS_DATE_ROOM];
    static _Thread_local size_t length;
    static _Thread_local int64_t of_s;
    if (length == 0 || of_s != wall_s)
        length = chaos_date(text, CHAOS_STAMP_IMF, wall_s);
    of_s = wall_s;
    put_text(pen, "Date: ");
    put(pen, text, length);
    put_text(pen, "\r\n");
}

/* ---- what the answer will be ---- */

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

static const char *phrase_of(int status)
{
    for (size_t i = 0; i < sizeof phrases / sizeof *phrases; i++)
        if (phrases[i].status == status)
            return phrases[i].phrase;
    return "Unnamed";
}

static void choose_body(struct chaos_reply *reply)
{
    const struct chaos_step *step = reply->step;
    const char *phrase = reply->status == 200 ? "ok" : phrase_of(reply->status);
    switch (step->body) {
    case CHAOS_BODY_DEFAULT:
        reply->text = (struct bide_text){phrase, strlen(phrase) + 1}; /* put_body makes the NUL a line end */
        break;
    case CHAOS_BODY_TEXT: reply->text = (struct bide_text){step->text.at, step->text.length}; break;
    case CHAOS_BODY_PATTERN:
    case CHAOS_BODY_ENDLESS: reply->text = (struct bide_text){0}; break;
    }
    reply->total = step->body == CHAOS_BODY_ENDLESS ? UINT64_MAX
                   : reply->text.at != NULL         ? reply->text.length
                                                    : step->body_bytes;
    reply->length = reply->total;
}

static bool take_number(struct bide_text *text, uint64_t *number)
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

/* One range of RFC 9110 14.1.2: bytes=5-9, bytes=5- or bytes=-5. Anything else is ignored, as the RFC allows. */
static bool read_range(struct bide_text text, uint64_t total, uint64_t *first, uint64_t *last)
{
    if (text.length < 7 || memcmp(text.at, "bytes=", 6) != 0)
        return false;
    text.at += 6, text.length -= 6;
    bool from = take_number(&text, first);
    if (text.length == 0 || text.at[0] != '-')
        return false;
    text.at++, text.length--;
    bool to = take_number(&text, last);
    if (text.length > 0 || !(from || to) || (from && to && *last < *first))
        return false;
    if (!from)
        *first = *last < total ? total - *last : 0;
    if (!from || !to || *last >= total)
        *last = total > 0 ? total - 1 : 0;
    return from || to;
}

/* RFC 9110 13.1.5: the tag must be the same and strong. A date never is. */
static bool unchanged(const struct chaos_step *step, struct bide_text if_range)
{
    return if_range.at == NULL || (step->etag.length == if_range.length && step->etag.at[0] == '"' &&
                                   memcmp(step->etag.at, if_range.at, if_range.length) == 0);
}

static void choose_range(struct chaos_reply *reply, const struct chaos_request *request)
{
    uint64_t first, last;
    if (!reply->step->ranges || reply->status != 200 || request->range.at == NULL || reply->total == UINT64_MAX ||
        !unchanged(reply->step, request->if_range) || !read_range(request->range, reply->total, &first, &last))
        return;
    if (first >= reply->total) {
        reply->status = 416;
        reply->length = 0;
        return;
    }
    reply->status = 206;
    reply->at = first;
    reply->length = last - first + 1;
}

static void choose_cut(struct chaos_reply *reply)
{
    const struct chaos_step *step = reply->step;
    uint64_t most = reply->length;
    if (step->cut != CHAOS_CUT_NONE && step->cut_at == CHAOS_AT_HEADERS)
        most = 0;
    else if (step->cut != CHAOS_CUT_NONE && step->cut_at == CHAOS_AT_HALF)
        most = reply->length / 2;
    else if (step->cut != CHAOS_CUT_NONE && step->cut_at == CHAOS_AT_BYTE && step->cut_bytes < most)
        most = step->cut_bytes;
    reply->cut_short = most < reply->length;
    reply->left = reply->head_only ? 0 : most;
}

void chaos_reply_begin(struct chaos_reply *reply, const struct chaos_step *step, const struct chaos_request *request)
{
    *reply = (struct chaos_reply){.step = step, .status = step->status};
    reply->head_only = request->head_only || step->status == 204 || step->status == 304;
    choose_body(reply);
    choose_range(reply, request);
    choose_cut(reply);
    bool unframed = step->length == CHAOS_LENGTH_NONE || (step->chunked && request->http10) ||
                    (reply->total == UINT64_MAX && request->http10);
    reply->chunked = !unframed && (step->chunked || reply->total == UINT64_MAX);
    reply->close = request->close || step->says_close || step->garbage || (unframed && !reply->head_only);
}

/* ---- its bytes ---- */

static void put_status(struct pen *pen, int status)
{
    put_text(pen, "HTTP/1.1 ");
    put_number(pen, (uint64_t)status);
    put(pen, " ", 1);
    put_text(pen, phrase_of(status));
    put_text(pen, "\r\n");
}

static void put_retry_date(struct pen *pen, const struct chaos_step *step, int64_t wall_s)
{
    char date[CHAOS_DATE_ROOM];
    if (step->retry_stamp == CHAOS_STAMP_NONE)
        return;
    put_text(pen, "Retry-After: ");
    put(pen, date, chaos_date(date, step->retry_stamp, wall_s + step->retry_s));
    put_text(pen, "\r\n");
}

/* A Content-Length that is off stays a number. */
static uint64_t said_length(const struct chaos_reply *reply)
{
    int64_t off = reply->step->length == CHAOS_LENGTH_OFF ? reply->step->length_off : 0;
    if (off < 0 && (uint64_t)-off > reply->length)
        return 0;
    return reply->length + (uint64_t)off;
}

static void put_framing(struct pen *pen, const struct chaos_reply *reply)
{
    if (reply->status == 204 || reply->status == 304)
        return;
    if (reply->chunked)
        put_text(pen, "Transfer-Encoding: chunked\r\n");
    else if (reply->step->length != CHAOS_LENGTH_NONE && reply->total != UINT64_MAX) {
        put_text(pen, "Content-Length: ");
        put_number(pen, said_length(reply));
        put_text(pen, "\r\n");
    }
}

static void put_range(struct pen *pen, const struct chaos_reply *reply)
{
    if (reply->step->ranges)
        put_text(pen, "Accept-Ranges: bytes\r\n");
    if (!reply->step->ranges || (reply->status != 206 && reply->status != 416))
        return;
    put_text(pen, "Content-Range: bytes ");
    if (reply->status == 206) {
        put_number(pen, reply->at);
        put(pen, "-", 1);
        put_number(pen, reply->at + reply->length - 1);
    } else {
        put(pen, "*", 1);
    }
    put(pen, "/", 1);
    put_number(pen, reply->total);
    put_text(pen, "\r\n");
}

static void put_head(struct pen *pen, const struct chaos_reply *reply, int64_t wall_s)
{
    const struct chaos_step *step = reply->step;
    put_status(pen, reply->status);
    if (!step->no_date)
        put_date(pen, wall_s + step->date_s);
    put_framing(pen, reply);
    put_range(pen, reply);
    put_retry_date(pen, step, wall_s);
    put(pen, step->fields.length > 0 ? step->fields.at : "", step->fields.length);
    if (reply->close)
        put_text(pen, "Connection: close\r\n");
    if (!step->endless_headers)
        put_text(pen, "\r\n");
}

static void put_endless_headers(struct pen *pen, struct chaos_reply *reply)
{
    while (pen->length + 80 < CHAOS_REPLY_ROOM) {
        put_text(pen, "X-Endless-");
        put_number(pen, reply->at++);
        put_text(pen, ": and on and on and on\r\n");
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

static void put_body(struct pen *pen, struct chaos_reply *reply, size_t count)
{
    char *to = pen->at + pen->length;
    for (size_t i = 0; reply->text.at == NULL && i < count; i++)
        to[i] = chaos_pattern(reply->at + i);
    if (reply->text.at != NULL)
        memcpy(to, reply->text.at + reply->at, count);
    if (reply->step->body == CHAOS_BODY_DEFAULT && count > 0 && reply->at + count == reply->total)
        to[count - 1] = '\n';
    pen->length += count;
    reply->at += count;
    reply->left -= reply->left == UINT64_MAX ? 0 : count;
}

static void put_chunk(struct pen *pen, struct chaos_reply *reply, size_t count)
{
    char size[CHUNK_ROOM];
    snprintf(size, sizeof size, "%zx\r\n", count);
    put_text(pen, size);
    put_body(pen, reply, count);
    put_text(pen, "\r\n");
}

static void put_some_body(struct pen *pen, struct chaos_reply *reply)
{
    size_t room = CHAOS_REPLY_ROOM - pen->length - CHUNK_ROOM;
    size_t count = reply->left < room ? (size_t)reply->left : room;
    if (count > 0 && reply->chunked)
        put_chunk(pen, reply, count);
    else if (count > 0)
        put_body(pen, reply, count);
    if (reply->left > 0)
        return;
    if (reply->chunked && !reply->cut_short && !reply->head_only)
        put_text(pen, "0\r\n\r\n");
    reply->part = CHAOS_PART_OVER;
}

size_t chaos_reply_more(struct chaos_reply *reply, char *bytes, int64_t wall_s)
{
    struct pen pen = {.at = bytes};
    if (reply->part == CHAOS_PART_HEAD) {
        if (!reply->step->garbage)
            put_head(&pen, reply, wall_s);
        reply->part = reply->step->endless_headers ? CHAOS_PART_ENDLESS_HEADERS : CHAOS_PART_BODY;
    }
    if (reply->part == CHAOS_PART_ENDLESS_HEADERS)
        put_endless_headers(&pen, reply);
    else if (reply->part == CHAOS_PART_BODY)
        put_some_body(&pen, reply);
    return pen.length;
}

size_t chaos_reply_interim(char *bytes, int status)
{
    struct pen pen = {.at = bytes};
    put_status(&pen, status);
    put_text(&pen, "\r\n");
    return pen.length;
}
