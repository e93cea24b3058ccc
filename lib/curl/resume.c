/* resume.c - going on where a broken body stopped.
 *
 * Only when the bytes that the sink has can be proved to be the beginning of what comes: it was a GET, answered by a
 * whole 200 in no encoding, it has a strong validator (an entity tag that is not weak, or a Last-Modified a minute
 * older than the answer's own Date), and the next answer is a 206 of the same validator whose Content-Range begins
 * exactly there and goes to the end, in something of the same length. Anything else is not appended: a 200 starts
 * over if the sink can be rewound. */
#include "attempt.h"

#include <bide/clock.h>

#include <stdlib.h>
#include <string.h>

#define DATE_MARGIN_S 60

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

static struct bide_text validator_of(CURL *easy)
{
    struct bide_text tag = http_field(easy, "ETag"), modified = http_field(easy, "Last-Modified");
    if (is_strong_tag(tag))
        return tag;
    return is_strong_date(modified, http_field(easy, "Date")) ? modified : (struct bide_text){NULL, 0};
}

static bool offers_ranges(CURL *easy)
{
    struct bide_text none = http_field(easy, "Accept-Ranges");
    return !(none.at && none.length == 4 && strncmp(none.at, "none", 4) == 0);
}

static struct http_resume *make(CURL *easy, struct bide_text validator)
{
    struct http_resume *r = malloc(sizeof *r + validator.length + 1);
    curl_off_t total = -1;
    if (!r)
        return NULL;
    curl_easy_getinfo(easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &total);
    r->total = total > 0 ? (uint64_t)total : 0;
    memcpy(r->validator, validator.at, validator.length);
    r->validator[validator.length] = '\0';
    return r;
}

bool http_resume_possible(struct http_exchange *x)
{
    struct http_transfer *t = x->transfer;
    if (t->resume || !t->options->resume || !t->sink || t->shows_heads)
        return t->resume != NULL;
    if (!x->run.get || x->answer.status != 200 || http_field(x->easy, "Content-Encoding").at || !offers_ranges(x->easy))
        return false;
    struct bide_text validator = validator_of(x->easy);
    if (validator.at)
        t->resume = make(x->easy, validator);
    return t->resume != NULL;
}

/* Reads digits, saturating. False if there are none. */
static bool read_number(const char **at, uint64_t *number)
{
    const char *start = *at;
    for (*number = 0; **at >= '0' && **at <= '9'; (*at)++)
        *number = *number > UINT64_MAX / 10 - 1 ? UINT64_MAX : *number * 10 + (uint64_t)(**at - '0');
    return *at != start;
}

/* "bytes 500-999/1000": does it begin at `from` and go to the end? *whole is then the length of all. */
static bool range_begins(const char *value, uint64_t from, uint64_t *whole)
{
    static const char unit[] = "bytes ";
    uint64_t first, last;
    if (strncmp(value, unit, sizeof unit - 1) != 0)
        return false;
    value += sizeof unit - 1;
    if (!read_number(&value, &first) || *value++ != '-' || !read_number(&value, &last) || *value++ != '/')
        return false;
    if (!read_number(&value, whole) || *value != '\0') /* "*": nobody knows whether this is all */
        return false;
    return first == from && last == *whole - 1;
}

/* RFC 9110 15.3.7: a 206 carries the validators that a 200 would. One that ignored If-Range shows itself there. */
static bool is_same_version(CURL *easy, const char *validator)
{
    bool tag = validator[0] == '"';
    struct bide_text now = http_field(easy, tag ? "ETag" : "Last-Modified");
    return now.at ? strcmp(now.at, validator) == 0 : !tag;
}

bool http_resume_fits(struct http_exchange *x)
{
    struct http_resume *r = x->transfer->resume;
    struct bide_text range = http_field(x->easy, "Content-Range");
    uint64_t whole;
    if (x->answer.status != 206 || !range.at || http_field(x->easy, "Content-Encoding").at ||
        !is_same_version(x->easy, r->validator))
        return false;
    if (!range_begins(range.at, x->transfer->delivered, &whole) || (r->total != 0 && r->total != whole))
        return false;
    r->total = whole;
    return true;
}

bool http_resume_is_whole(const struct http_transfer *t)
{
    return !t->resumed || !t->resume || t->delivered == t->resume->total;
}
