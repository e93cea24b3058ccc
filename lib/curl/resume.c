/* resume.c - continues a response body that broke off, in this call or in an earlier one (resume_from).
 *
 * The rest is appended only if it provably continues the bytes that the sink holds:
 *
 * - the request was a GET, and the response a 200 without Content-Encoding;
 * - it has a strong validator: an entity tag that is not weak or, without an entity tag, a Last-Modified a minute or
 *   more before its Date;
 * - the next response is a 206 with the same validator (a Last-Modified may be missing, an entity tag may not be new),
 *   whose Content-Range starts at the first missing byte, extends to the end, and names the same total length.
 *
 * Any other response is not appended. If the sink can be rewound, a 200 starts over at once, and after any other
 * response that does not fit the next attempt does. */
#include "attempt.h"

#include <bide/clock.h>

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define DATE_MARGIN_S 60

/* Returns the value of a field; "" if the field is repeated: such a field proves nothing. */
static struct bide_text single_field(CURL *easy, const char *name)
{
    struct curl_header *second = NULL;
    bool repeated = curl_easy_header(easy, name, 1, CURLH_HEADER, -1, &second) == CURLHE_OK;
    return repeated ? (struct bide_text){"", 0} : http_header_field(easy, name);
}

static bool is_strong_tag(struct bide_text tag)
{
    return tag.at && tag.length >= 2 && tag.at[0] == '"' && tag.at[tag.length - 1] == '"';
}

static bool is_strong_date(struct bide_text modified, struct bide_text date)
{
    int64_t wall_s = bide_wall_s(), then_s, now_s;
    return modified.at && date.at && bide_http_date(modified, wall_s, &then_s) &&
           bide_http_date(date, wall_s, &now_s) && now_s - then_s >= DATE_MARGIN_S;
}

/* A date is a validator only for a response without an entity tag (RFC 9110 section 13.1.5): a weak tag shows that the
 * bytes may change while the date does not. */
static struct bide_text response_validator(CURL *easy)
{
    struct bide_text tag = single_field(easy, "ETag"), modified = single_field(easy, "Last-Modified");
    bool is_strong = tag.at ? is_strong_tag(tag) : is_strong_date(modified, http_header_field(easy, "Date"));
    return !is_strong ? (struct bide_text){NULL, 0} : tag.at ? tag : modified;
}

/* Returns false only if the server rules out ranges; without Accept-Ranges they are worth trying. */
static bool response_allows_ranges(CURL *easy)
{
    struct bide_text ranges = http_header_field(easy, "Accept-Ranges");
    return !(ranges.at && ranges.length == 4 && strncmp(ranges.at, "none", 4) == 0);
}

/* Returns the validator of a response whose body can be resumed; at is NULL if it cannot. */
static struct bide_text response_resumable_by(CURL *easy)
{
    if (http_header_field(easy, "Content-Encoding").at || !response_allows_ranges(easy))
        return (struct bide_text){NULL, 0};
    return response_validator(easy);
}

bool bide_curl_validator(char *text, size_t size, CURL *easy)
{
    long status = 0;
    struct bide_text validator = {NULL, 0};
    if (size > 0)
        text[0] = '\0';
    if (easy && curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status) == CURLE_OK && status == 200)
        validator = response_resumable_by(easy);
    if (!validator.at || validator.length >= size)
        return false;
    memcpy(text, validator.at, validator.length);
    text[validator.length] = '\0';
    return true;
}

static struct http_resume *resume_create(struct bide_text validator, uint64_t total)
{
    struct http_resume *r = malloc(sizeof *r + validator.length + 1);
    if (!r)
        return NULL;
    r->total = total;
    memcpy(r->validator, validator.at, validator.length);
    r->validator[validator.length] = '\0';
    return r;
}

bool http_resume_validator_is_strong(const char *validator)
{
    int64_t seconds;
    struct bide_text text = {validator, strlen(validator)};
    return is_strong_tag(text) || bide_http_date(text, bide_wall_s(), &seconds);
}

bool http_resume_begin(struct http_call *call)
{
    const struct bide_curl_resume_from *from = call->options->resume_from;
    if (!from)
        return true;
    call->resume = resume_create((struct bide_text){from->validator, strlen(from->validator)}, from->total);
    call->delivered_bytes = from->delivered_bytes;
    return call->resume != NULL;
}

bool http_resume_prepare(struct http_attempt *attempt)
{
    struct http_call *call = attempt->call;
    if (call->resume || !call->options->resume || !call->has_sink || call->sink_gets_heads || call->resume_refuted)
        return call->resume != NULL;
    if (!attempt->state.is_get || attempt->response.status != 200)
        return false;
    struct bide_text validator = response_resumable_by(attempt->easy);
    curl_off_t total = -1;
    curl_easy_getinfo(attempt->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &total);
    if (validator.at)
        call->resume = resume_create(validator, total > 0 ? (uint64_t)total : 0);
    return call->resume != NULL;
}

/* Parses digits, saturating. Returns false if there are none. */
static bool parse_digits(const char **at, uint64_t *number)
{
    const char *start = *at;
    for (*number = 0; **at >= '0' && **at <= '9'; (*at)++)
        *number = *number > UINT64_MAX / 10 - 1 ? UINT64_MAX : *number * 10 + (uint64_t)(**at - '0');
    return *at != start;
}

struct content_range {
    uint64_t first, last, total;
    bool unknown_total; /* "*" */
};

/* Parses "bytes 500-999/1000", also with "*" as the total. Returns false for anything else. */
static bool content_range_parse(struct content_range *range, const char *value)
{
    static const char unit[] = "bytes ";
    *range = (struct content_range){0};
    if (strncmp(value, unit, sizeof unit - 1) != 0)
        return false;
    value += sizeof unit - 1;
    if (!parse_digits(&value, &range->first) || *value++ != '-' || !parse_digits(&value, &range->last) ||
        *value++ != '/')
        return false;
    range->unknown_total = strcmp(value, "*") == 0;
    return range->unknown_total || (parse_digits(&value, &range->total) && *value == '\0');
}

/* An unknown total does not prove that the range is the rest. */
static bool content_range_is_rest(const struct content_range *range, uint64_t from)
{
    return !range->unknown_total && range->first == from && range->first < range->total &&
           range->last == range->total - 1;
}

bool http_content_range_continues(const char *value, uint64_t from, uint64_t *total)
{
    struct content_range range;
    bool is_rest = content_range_parse(&range, value) && content_range_is_rest(&range, from);
    *total = range.total;
    return is_rest;
}

/* RFC 9110 section 15.3.7: a 206 carries the ETag of the corresponding 200, but after If-Range it may omit
 * Last-Modified. A server that ignored If-Range is recognized by a different validator. */
static bool response_has_validator(CURL *easy, const char *validator)
{
    bool is_tag = validator[0] == '"';
    struct bide_text tag = single_field(easy, "ETag"), modified = single_field(easy, "Last-Modified");
    if (is_tag || tag.at)
        return tag.at && strcmp(tag.at, validator) == 0;
    return !modified.at || strcmp(modified.at, validator) == 0;
}

static enum bide_curl_mismatch response_compare_range(const struct http_call *call, const char *value, uint64_t *total)
{
    struct content_range range;
    if (!content_range_parse(&range, value))
        return BIDE_CURL_MISMATCH_NO_RANGE;
    if (range.unknown_total)
        return BIDE_CURL_MISMATCH_UNKNOWN;
    *total = range.total;
    if (call->resume->total != 0 && call->resume->total != range.total)
        return BIDE_CURL_MISMATCH_LENGTH;
    return content_range_is_rest(&range, call->delivered_bytes) ? BIDE_CURL_MISMATCH_NONE : BIDE_CURL_MISMATCH_RANGE;
}

/* A response without Content-Range is multipart if the server sent several ranges. */
static enum bide_curl_mismatch response_name_missing_range(CURL *easy)
{
    static const char parts[] = "multipart/byteranges";
    struct bide_text type = http_header_field(easy, "Content-Type");
    bool is_parts = type.at && strncasecmp(type.at, parts, sizeof parts - 1) == 0;
    return is_parts ? BIDE_CURL_MISMATCH_PARTS : BIDE_CURL_MISMATCH_NO_RANGE;
}

enum bide_curl_mismatch http_resume_compare(struct http_attempt *attempt)
{
    struct http_resume *r = attempt->call->resume;
    struct bide_text range = single_field(attempt->easy, "Content-Range");
    uint64_t total = 0;
    assert(r && attempt->call->delivered_bytes > 0);
    if (attempt->response.status == 200 && !response_has_validator(attempt->easy, r->validator))
        return BIDE_CURL_MISMATCH_CHANGED;
    if (attempt->response.status != 206 || attempt->call->sink_gets_heads)
        return BIDE_CURL_MISMATCH_STATUS;
    if (!range.at)
        return response_name_missing_range(attempt->easy);
    if (http_header_field(attempt->easy, "Content-Encoding").at)
        return BIDE_CURL_MISMATCH_ENCODED;
    if (!response_has_validator(attempt->easy, r->validator))
        return BIDE_CURL_MISMATCH_CHANGED;
    enum bide_curl_mismatch mismatch = response_compare_range(attempt->call, range.at, &total);
    if (mismatch == BIDE_CURL_MISMATCH_NONE)
        r->total = total;
    return mismatch;
}

bool http_resume_is_complete(const struct http_call *call)
{
    return !call->resumed || !call->resume || call->delivered_bytes == call->resume->total;
}
